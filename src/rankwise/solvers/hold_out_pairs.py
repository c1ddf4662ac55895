"""Pairs of items held out of one complete group: leave-pair-out, for all pairs at once.

The algebra of `hold_out_items` with |U| = 2, written out, for items without weights.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from rankwise.arrays import Array, Indices
from rankwise.solvers.hold_out_items import (
    Resolvent,
    Spectrum,
    fitted,
    resolvent,
    rest_without,
)
from rankwise.solvers.least_squares import binary_scale

PRODUCT_ROWS = 256  # of G computed by one matrix product
ROUNDING = 16.0  # units in the last place, times √m, that may be wrong


def pair_differences(
    basis: Spectrum, y: Array, alpha: float, beta: float, n_entries: int
) -> Iterator[tuple[slice, Array]]:
    """Leave-pair-out: blocks of rows i of ``f_i − f_j``, shape (rows, m, n_outputs).

        f_i − f_j = y_i − y_j − [(G_jj + G_ij) u_i − (G_ii + G_ij) u_j] / (G_ii G_jj − G_ij²)

    with u = G y, for every pair at once, in blocks of at most `n_entries` entries. What rounding
    leaves of a difference of zero is set to zero (`_Pairs.rounding`).
    """
    y = y - y.mean(axis=0) if beta == 0 else y
    height = max(1, n_entries // y.size)
    inverse = resolvent(basis, alpha, beta, rest_without(basis, np.arange(2)))
    pairs = [_Pairs(basis, inverse, column) for column in y.T]
    for rows, G in _blocks(basis, inverse, height, whole=True):
        block = np.empty((*G.shape, y.shape[1]))
        determinant = np.outer(pairs[0].g[rows], pairs[0].g) - G * G
        local = np.arange(len(G))
        for k, pair in enumerate(pairs):
            numerator, _ = pair.numerators(rows, slice(0, len(y)), G, determinant)
            numerator[local, rows.start + local] = 0.0
            block[:, :, k] = numerator
        determinant[determinant == 0] = 1.0  # zero by rounding
        block /= determinant[:, :, None]
        yield rows, block


def pair_disagreement(
    basis: Spectrum, y: Array, alphas: Array, beta: float, n_entries: int = 2**15
) -> Array:
    """Share of the pairs with different y that leave-pair-out orders wrongly, ties one half.

    Shape (n_outputs, n_alphas); nan for an output whose y are all equal. The determinant is
    positive, so the sign of a difference is that of its numerator and nothing is divided. Blocks
    of n_entries stay in the cache for all outputs. The pair (j, i) follows from (i, j).
    """
    tied = [np.unique(column, return_counts=True)[1].astype(float) for column in y.T]
    count = (len(y) ** 2 - np.array([n @ n for n in tied])[:, None]) / 2
    y = y / binary_scale(y)  # sums of large scores must not overflow
    if beta == 0:
        y = y - y.mean(axis=0)
        y = y / binary_scale(y)  # products of small differences must not vanish
    wrong = np.zeros((y.shape[1], len(alphas)))
    for k, alpha in enumerate(alphas):
        inverse = resolvent(basis, float(alpha), beta, rest_without(basis, np.arange(2)))
        pairs = [_Pairs(basis, inverse, column) for column in y.T]
        for rows, G in _blocks(basis, inverse, max(1, n_entries // len(y)), whole=False):
            columns = slice(rows.start, len(y))
            determinant = np.outer(pairs[0].g[rows], pairs[0].g[columns]) - G * G
            for j, pair in enumerate(pairs):
                wrong[j, k] += pair.count_wrong(rows, columns, G, determinant)
    share: Array = np.full_like(wrong, np.nan)
    np.divide(wrong, count, out=share, where=count > 0)
    return share


class _Pairs:
    """One output and one alpha: numerators of the differences of all pairs, and their rounding."""

    def __init__(self, basis: Spectrum, inverse: Resolvent, y: Array) -> None:
        self.y = y
        self.g = inverse.diagonal
        self._first = basis.first
        self._wide = np.sqrt(np.abs(inverse.diagonal + inverse.v**2 / inverse.s) + inverse.rest)
        self._u = fitted(basis, inverse, y[:, None])[0][:, 0]
        values = np.maximum(basis.values, 0.0)
        top = values.max(initial=0.0)
        if inverse.rest.any():
            spread = float(np.max(np.sqrt(top * values) / (values + inverse.shift), initial=0.0))
            self._shaken = spread * np.linalg.norm(y)
        else:
            self._shaken = top * np.sqrt(abs(float(y @ self._u)) / inverse.shift)
        self._eps = ROUNDING * np.finfo(float).eps * np.sqrt(len(y))
        self._largest = np.abs(y).max()
        widest, g, u = self._wide.max(), self.g.max(), np.abs(self._u).max()
        most = widest**2 * (8 * g * self._largest + 2 * u) + g**2 * self._shaken
        self._limit = self._eps * most

    def numerators(
        self, rows: slice, columns: slice, G: Array, determinant: Array
    ) -> tuple[Array, bool]:
        """``(f_i − f_j) (G_ii G_jj − G_ij²)``, zero for ties; and whether there are ties.

        Equal items are ties. So are pairs whose sign is lost in rounding.
        """
        y, g, u = self.y, self.g, self._u
        left = np.stack([g[rows], -u[rows]], axis=1)
        found = left @ np.stack([u[columns], g[columns]])
        found += (y[rows, None] - y[columns]) * determinant
        found -= (u[rows, None] - u[columns]) * G
        i, j = np.nonzero(np.abs(found) <= self._limit)
        near = np.abs(found[i, j]) <= self.rounding(
            i + rows.start, j + columns.start, determinant[i, j]
        )
        found[i[near], j[near]] = 0.0
        if self._first is not None:
            found[self._first[rows, None] == self._first[columns]] = 0.0
        return found, bool(near.any()) or self._first is not None

    def rounding(self, i: Indices, j: Indices, determinant: Array) -> Array:
        """What rounding may leave of a numerator of zero; larger numerators have a sign.

            ε √(B_ii B_jj) [(G_ii + G_jj)(|y_i − y_j| + 2 max|y|) + |u_i| + |u_j|] + ε s (det)

        The first term is the rounding of G, relative to the terms ``B_ii`` that cancel in it, and
        of u. The second is that of the decomposition, which is exact for a matrix K + E with
        ``‖E‖ ≤ ε ‖K‖``. Coefficients c of a model without two items turn E into a difference of
        ``‖E‖ ‖c‖`` at most, and the objective bounds ``‖c‖² ≤ yᵀu/λ'``, so ``s = ‖K‖ √(yᵀu/λ')``.
        For features R an error of ``ε ‖R‖`` moves the fit by ``s = ‖y‖ ‖R‖ max σ/(σ² + λ')`` over
        the singular values. ε is `ROUNDING` √m units in the last place.
        """
        gap = np.abs(self.y[i] - self.y[j]) + 2 * self._largest
        moved = (self.g[i] + self.g[j]) * gap + np.abs(self._u[i]) + np.abs(self._u[j])
        return np.asarray(
            self._eps * (self._wide[i] * self._wide[j] * moved + self._shaken * determinant)
        )

    def count_wrong(self, rows: slice, columns: slice, G: Array, determinant: Array) -> float:
        """Pairs i < j in the wrong order, ties one half; the block starts on the diagonal."""
        found, has_ties = self.numerators(rows, columns, G, determinant)
        gap = self.y[rows, None] - self.y[columns]
        gap[:, : len(G)] = np.triu(gap[:, : len(G)], 1)
        if has_ties:
            ties = np.count_nonzero((found == 0) & (gap != 0))
        found *= gap
        return np.count_nonzero(found < 0) + (0.5 * ties if has_ties else 0.0)


def _blocks(
    basis: Spectrum, inverse: Resolvent, height: int, *, whole: bool
) -> Iterator[tuple[slice, Array]]:
    """Blocks of at most `height` rows of G: all columns, or those from the diagonal on.

    G comes from matrix products of more rows.
    """
    m = len(inverse.v)
    many = max(height, PRODUCT_ROWS)
    for top in range(0, m, many):
        left = 0 if whole else top
        scaled = basis.vectors[top : top + many] * inverse.factors
        product = scaled @ basis.vectors[left:].T
        for start in range(top, top + len(product), height):
            rows = slice(start, min(start + height, top + len(product)))
            first = 0 if whole else start
            G = product[start - top : rows.stop - top, first - left :]
            G -= np.outer(inverse.v[rows] / inverse.s, inverse.v[first:])
            yield rows, G
