"""The rows or the columns of a table as a solver sees them: features, kernel values, or neither."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import scipy.linalg
import scipy.sparse as sp
from numpy.typing import NDArray

from rankwise.arrays import Array, Indices
from rankwise.features import center_kernel
from rankwise.machine import idle_cores
from rankwise.solvers.hold_out_items import Spectrum, spectrum_of_features, spectrum_of_kernel

SPARSE_DIRECT_LIMIT = 5000  # sparse features with more rows and columns stay as they are


class WeightedSide(NamedTuple):
    """Features R of one side that suit weights H of its items.

    Attributes
    ----------
    features : array, sparse matrix or None
        R, shape (n, r); None for the identity.
    norms : ndarray of shape (r,)
        Diagonal of ``Rᵀ H R``.
    back : ndarray of shape (n_functions, r) or None
        From weights of R to those of the functions of the side; None for the identity.
    """

    features: Any
    norms: Array
    back: Array | None = None


@dataclass(frozen=True)
class Side:
    """One side of a table, with as many functions as there are columns in `matrix`.

    Attributes
    ----------
    matrix : array, sparse matrix or None
        Features of the items, shape (n, p); or kernel values between them, (n, n). None if every
        item is only itself (labels).
    is_kernel : bool
        Which of the two.
    is_centered : bool
        Whether scores count up to a constant on this side, so that the mean of the items has no
        effect.
    """

    matrix: Any
    is_kernel: bool
    is_centered: bool = False

    def part(self, items: Indices) -> Side:
        """Some of the items."""
        if self.matrix is None:
            return self
        rows = self.matrix[items]
        return replace(self, matrix=rows[:, items] if self.is_kernel else rows)

    def seen_from(self, new: Indices, items: Indices) -> Any:
        """The functions of a part, at other items: their features, or kernel values to it."""
        return self.matrix[np.ix_(new, items)] if self.is_kernel else self.matrix[new]

    @property
    def is_decomposable(self) -> bool:
        """Whether `spectrum` can be had: not for sparse features of many rows and columns."""
        is_large = sp.issparse(self.matrix) and min(self.matrix.shape) > SPARSE_DIRECT_LIMIT
        return self.matrix is not None and not is_large

    @cached_property
    def spectrum(self) -> Spectrum:
        """Of the kernel matrix, centered if scores count up to a constant; no zero values."""
        if self.is_kernel:
            found = spectrum_of_kernel(self.matrix, centered=self.is_centered)
        elif self.matrix.shape[1] < self.matrix.shape[0]:
            found = spectrum_of_features(self._features)
        else:
            R = self._features
            found = spectrum_of_kernel(R @ R.T, overwrite=True)
        size = np.abs(found.values).max(initial=0.0)
        keep = np.abs(found.values) > len(found.vectors) * np.finfo(np.float64).eps * size
        return Spectrum(found.values[keep], np.ascontiguousarray(found.vectors[:, keep]))

    @property
    def back(self) -> Array:
        """From weights of the vectors of the spectrum to those of the functions."""
        U = self.spectrum.vectors
        return U if self.is_kernel else self._features.T @ U

    def weighted(self, weight: Array) -> WeightedSide:
        """Features that make ``Rᵀ H R`` diagonal, for H = diag(weight)."""
        if self.matrix is None:
            return WeightedSide(None, weight)
        if self.is_kernel:
            K = center_kernel(self.matrix.copy()) if self.is_centered else self.matrix
            side = _of_kernel(K, weight)
            back = np.asarray(side.back)
            return side._replace(back=back - back.mean(axis=0)) if self.is_centered else side
        if not self.is_decomposable:
            squares = self.matrix.multiply(self.matrix).T @ weight
            return WeightedSide(self.matrix, np.asarray(squares))
        R = self._features
        return _of_features(R, weight) if R.shape[1] <= R.shape[0] else _of_wide(R, weight)

    @cached_property
    def _features(self) -> Array:
        R = self.matrix.toarray() if sp.issparse(self.matrix) else self.matrix
        R = np.asarray(R, dtype=np.float64)
        return R - R.mean(axis=0) if self.is_centered else R


def _of_kernel(K: Array, weight: Array) -> WeightedSide:
    """With ``H^½ K H^½ = V Σ Vᵀ``: ``R = H^(−½) V Σ^½``; negative eigenvalues are left out."""
    root = np.sqrt(weight)[:, None]
    with idle_cores(len(K) ** 3):
        S = root * K * root.T
        values, vectors = scipy.linalg.eigh(S, check_finite=False, overwrite_a=True)
    keep = _are_positive(values)
    scale = np.sqrt(values[keep])
    features = np.ascontiguousarray(vectors[:, keep] / root * scale)
    return WeightedSide(features, values[keep], vectors[:, keep] * root / scale)


def _of_features(R: Array, weight: Array) -> WeightedSide:
    values, P = scipy.linalg.eigh(R.T @ (weight[:, None] * R), check_finite=False)
    keep = _are_positive(values)
    return WeightedSide(R @ P[:, keep], values[keep], P[:, keep])


def _of_wide(R: Array, weight: Array) -> WeightedSide:
    """Features with more columns than rows, by their kernel matrix."""
    side = _of_kernel(R @ R.T, weight)
    return side._replace(back=R.T @ np.asarray(side.back))


def _are_positive(values: Array) -> NDArray[np.bool_]:
    return np.asarray(values > len(values) * np.finfo(float).eps * values.max(initial=0.0))
