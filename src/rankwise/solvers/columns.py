"""Products with the features of the items in float64, whatever their type, without a second copy.

A loss over pairs sees differences of scores only. A constant added to a column changes none of
them, but it costs digits: columns far from zero are shifted, and constant ones are left out.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import scipy.sparse as sp

from rankwise.arrays import Array

BLOCK_ENTRIES = 2**16  # of float64 at a time: half a MiB, which stays in the cache
FAR = 1e3  # a column this many times its range away from zero is shifted
NEAR = 10.0  # columns closer to zero than this many half ranges keep some digits in float32


class Columns:
    """Features R of the items, as the solvers of margin losses use them.

    float64 features near zero are multiplied as they are. float32 features, and dense ones with a
    column far from zero, go through float64 a block of rows at a time.

    Parameters
    ----------
    R : array or sparse matrix of shape (n_items, n_features)
        Features.
    magnitude : ndarray of shape (n_features,), optional
        Largest absolute value of each column; looked up if not given.
    n_items : int, optional
        Number of terms of a sum over items; that of the rows of R if not given.

    Attributes
    ----------
    magnitude : ndarray of shape (n_features,)
        Largest absolute value of each column, after the shift; 0 for constant columns.
    rounding : float
        ``ε (4 + √(n_items + n_features))`` with the ε of float64: by how much of the size of its
        terms a product may be wrong. Rounding errors of either sign grow with the square root of
        their number (Higham, Accuracy and Stability of Numerical Algorithms, section 2.8).
    """

    def __init__(self, R: Any, magnitude: Array | None = None, n_items: int | None = None) -> None:
        self.R, self.shape = R, R.shape
        self._center: Array | None = None
        self._is_near = False
        self.magnitude = self._measure() if magnitude is None else magnitude
        self._constant = self.magnitude == 0
        terms = (self.shape[0] if n_items is None else n_items) + self.shape[1]
        self.rounding = float(np.finfo(np.float64).eps * (4 + np.sqrt(terms)))

    def times(self, w: Array, rough: bool = False) -> Array:
        """``R w`` up to a constant, for one vector w or for the columns of a matrix.

        `rough` allows for the precision of R, where only a direction is asked for.
        """
        w = np.array(w, dtype=np.float64)
        w[self._constant] = 0.0
        if self._is_plain or (rough and self._is_near):
            product = self.R @ w.astype(self.R.dtype, copy=False)
            return np.asarray(product, dtype=np.float64)
        out = np.empty((self.shape[0], *w.shape[1:]))
        for rows, block in self._blocks():
            out[rows] = block @ w
        return out

    def pull_back(self, u: Array, rough: bool = False) -> Array:
        """``Rᵀ u`` for a u that sums to zero."""
        if self._is_plain or (rough and self._is_near):
            total = np.array(self.R.T @ u.astype(self.R.dtype, copy=False), dtype=np.float64)
        else:
            total = np.zeros(self.shape[1])
            for rows, block in self._blocks():
                total += block.T @ u[rows]
        total[self._constant] = 0.0
        return total

    @property
    def _is_plain(self) -> bool:
        return self._center is None and self.R.dtype == np.float64

    def _measure(self) -> Array:
        """Magnitude of the columns; decides whether they are shifted."""
        low, high = _extreme(self.R, "min"), _extreme(self.R, "max")
        middle = 0.5 * low + 0.5 * high
        half = np.maximum(high - middle, middle - low)
        magnitude = np.maximum(np.abs(low), np.abs(high))
        self._is_near = not ((half > 0) & (magnitude > NEAR * half)).any()
        if not sp.issparse(self.R) and ((half > 0) & (magnitude > FAR * half)).any():
            self._center, magnitude = middle, half
        return np.where(low == high, 0.0, magnitude)

    def _blocks(self) -> Iterator[tuple[slice, Any]]:
        n_items, n_features = self.shape
        if sp.issparse(self.R):
            n_features = 1 + self.R.nnz // max(1, n_items)
        height = max(16, BLOCK_ENTRIES // max(1, n_features))
        buffer = None if sp.issparse(self.R) else np.empty((min(height, n_items), n_features))
        for start in range(0, n_items, height):
            rows = slice(start, min(start + height, n_items))
            if buffer is None:
                yield rows, self.R[rows].astype(np.float64)
                continue
            block = buffer[: rows.stop - start]
            block[:] = self.R[rows]
            if self._center is not None:
                block -= self._center
            yield rows, block


def _extreme(R: Any, which: str) -> Array:
    """Smallest or largest entry of each column."""
    found = getattr(R, which)(axis=0)
    found = found.toarray().ravel() if sp.issparse(found) else found
    return np.asarray(found, dtype=np.float64)
