"""Square roots of graph Laplacians: F with F Fᵀ = scale·L + shift·D.

D is the diagonal matrix of the weights of the items, 1 by default.

With a root, the kernel problem becomes symmetric: ``a = F c`` with
``(Fᵀ K F + λ I) c = b`` and ``F b = d`` is the solution of [RankRLS09] equation 17, and K need
not be strictly positive definite.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

import numpy as np
import scipy.linalg

from rankwise.arrays import Array, Indices, row_factors
from rankwise.graphs.levels import Levels
from rankwise.groups import indices_by_group

BLOCK_ENTRIES = 2**19
FEW_LEVELS = 16  # with at least this many items per level, arrays by level are small next to K


class GraphRoot(ABC):
    """A square matrix F with ``F Fᵀ = scale·L + shift·D``; a subclass implements its products."""

    @abstractmethod
    def apply(self, V: Array) -> Array:
        """``F V``."""

    @abstractmethod
    def adjoint(self, V: Array) -> Array:
        """``Fᵀ V``."""

    @abstractmethod
    def solve(self, d: Array) -> Array:
        """A vector b with ``F b = d``, for d in the range of F."""

    @abstractmethod
    def solve_adjoint(self, r: Array) -> Array:
        """A vector f with ``Fᵀ f = r``, for r in the range of Fᵀ."""

    def sandwich(self, K: Array) -> Array:
        """``Fᵀ K F``, written to the symmetric matrix K a block of columns or rows at a time."""
        # Fᵀ K F in the memory of K, by the product with Fᵀ of its columns, and then of its rows
        block_rows = _block_rows(K)
        for start in range(0, len(K), block_rows):  # Fᵀ K
            columns = K[:, start : start + block_rows]
            columns[:] = self.adjoint(np.ascontiguousarray(columns))
        for start in range(0, len(K), block_rows):  # (Fᵀ K) F = (Fᵀ (Fᵀ K)ᵀ)ᵀ
            rows = K[start : start + block_rows]
            rows[:] = self.adjoint(np.ascontiguousarray(rows.T)).T
        return K


class LevelRoot(GraphRoot):
    """Root of any combination of centering inside levels and inside groups.

    Every vector is the sum of three orthogonal components: deviation from the mean of the level,
    deviation of the level means from the mean of the group, and the mean of the group. L of the
    magnitude and sign costs only scales these, so its root N scales them by square roots: O(m).

    With weights w it is ``F = D^½ N``, D = diag(w), since L is ``D^½ N² D^½``. The components are
    then the components of a vector ``v = √w ∘ x``: a constant of x is a multiple of √w, and a mean
    of x is ``Σ √w v / Σ w``. For a clique, ``N = √s (I − uuᵀ)`` with s = Σ w and u = √(w/s).
    Items of weight 0 have zero rows.
    """

    def __init__(self, levels: Levels, within: Array, between: Array, shift: float) -> None:
        # squared factors of each level for the three components of a vector: deviation from the
        # level mean, deviation of the level mean from the group mean, and the group mean
        of_group_means = np.full(len(within), shift)
        self._levels = levels
        self._factors = np.sqrt([within, between, of_group_means])  # (3, n_levels)
        self._root_weight: Array | None = None
        if levels.item_weights is not None:
            self._root_weight = np.sqrt(levels.item_weights)

    def apply(self, V: Array) -> Array:
        """``F V``."""
        # F = D^½ N with the item weights D; N scales the components of a vector
        NV = self._scale_components(V, self._factors)
        return _scale_rows(self._root_weight, NV)

    def adjoint(self, V: Array) -> Array:
        """``Fᵀ V``."""
        # Fᵀ = N D^½
        weighted_V = _scale_rows(self._root_weight, V)
        return self._scale_components(weighted_V, self._factors)

    def solve(self, d: Array) -> Array:
        """A vector b with ``F b = d``, for d in the range of F."""
        # F⁻¹ d = N⁻¹ D^−½ d, where factors of zero stay zero
        unweighted_d = _scale_rows(reciprocal_or_zero(self._root_weight), d)
        return self._scale_components(unweighted_d, reciprocal_or_zero(self._factors))

    def solve_adjoint(self, r: Array) -> Array:
        """A vector f with ``Fᵀ f = r``, for r in the range of Fᵀ."""
        # (Fᵀ)⁻¹ r = D^−½ N⁻¹ r, where factors of zero stay zero
        weighted_f = self._scale_components(r, reciprocal_or_zero(self._factors))
        return _scale_rows(reciprocal_or_zero(self._root_weight), weighted_f)

    def sandwich(self, K: Array) -> Array:
        """``Fᵀ K F``, written to the symmetric matrix K.

        N = S + E with S diagonal; all rows of a level of E V are equal: U for V = K, C for
        V = Uᵀ. So ``(N K N)_ij = s_i K_ij s_j + U_cj s_j + s_i U_ci + C_cc``, in two halves and one
        pass. With many levels U is as large as K, so N is applied from both sides, by blocks.
        """
        if self._root_weight is not None or FEW_LEVELS * len(self._levels.group_of_level) > len(K):
            return super().sandwich(K)
        # Fᵀ K F = N K N, where N scales each item and adds a constant in each level: four terms
        level_of_item = self._levels.level_of_item
        scale = self._factors[0][level_of_item]
        # constants that N adds to the columns of K in each level, and then to the rows of the
        # result
        U = self._constants_of_levels(K, self._factors)  # (n_levels, n_items)
        C = self._constants_of_levels(np.ascontiguousarray(U.T), self._factors)
        # for items i and j of the levels c_i and c_j, N K N is K_ij scaled by the factors of both,
        # plus half[c_i, j] + half[c_j, i]
        half = U * scale + 0.5 * C[:, level_of_item]
        half_transposed = np.ascontiguousarray(half.T)
        block_rows = _block_rows(K)
        for start in range(0, len(K), block_rows):
            rows = slice(start, start + block_rows)
            block = K[rows]
            block *= scale
            block *= scale[rows, None]
            block += half[level_of_item[rows]]
            block += np.take(half_transposed[rows], level_of_item, axis=1)
        return K

    def _scale_components(self, V: Array, factors: Array) -> Array:
        """The sum of the three components of V, each times its factor."""
        # v is (v − level mean) + (level mean − group mean) + group mean
        level_of_item = self._levels.level_of_item
        within, _, _ = factors
        out: Array = V * row_factors(within, V)[level_of_item]
        constants = self._constants_of_levels(V, factors)
        out += _scale_rows(self._root_weight, constants[level_of_item])
        return out

    def _constants_of_levels(self, V: Array, factors: Array) -> Array:
        """Constant of each level that is added to the factor of the level times V."""
        # within (v − level mean) + between (level mean − group mean) + of_group_means group mean,
        # less within v
        within, between, of_group_means = (row_factors(factor, V) for factor in factors)
        # with item weights w the means are Σ √w v / Σ w
        level_mean, group_mean = self._levels.means(V, self._root_weight)
        constants: Array = (between - within) * level_mean
        constants += (of_group_means - between) * group_mean
        return constants


def _scale_rows(factor: Array | None, V: Array) -> Array:
    if factor is None:  # all factors are 1
        return V
    return np.asarray(V * row_factors(factor, V))


def reciprocal_or_zero(factor: Any) -> Any:
    """Reciprocals, with 0 for 0 and None for None."""
    if factor is None:
        return None
    return np.divide(1.0, factor, out=np.zeros_like(factor), where=factor > 0)


class CholeskyRoot(GraphRoot):
    """Cholesky root of the Laplacian of each connected component, for graphs of any shape.

    Without shift the Laplacian of a component is singular (constants), but the matrix with the
    last vertex removed is positive definite and the last row follows from the rest.
    """

    def __init__(self, L: Any, shift: Array, components: Indices) -> None:
        """Factorize ``L + diag(shift)`` of each component; L is sparse."""
        # F is block-diagonal: one triangle for the items of each connected component
        self._blocks = []
        for items in indices_by_group(components):
            block = L[items][:, items].toarray()
            self._blocks.append((items, _cholesky_root(block, shift[items])))

    def apply(self, V: Array) -> Array:
        """``F V``."""
        out = np.empty_like(V)
        for items, F in self._blocks:
            out[items] = F @ V[items]
        return out

    def adjoint(self, V: Array) -> Array:
        """``Fᵀ V``."""
        out = np.empty_like(V)
        for items, F in self._blocks:
            out[items] = F.T @ V[items]
        return out

    def solve(self, d: Array) -> Array:
        """A vector b with ``F b = d``, for d in the range of F."""
        return self._solve_triangles(d, transpose=False)

    def solve_adjoint(self, r: Array) -> Array:
        """A vector f with ``Fᵀ f = r``, for r in the range of Fᵀ."""
        return self._solve_triangles(r, transpose=True)

    def _solve_triangles(self, d: Array, *, transpose: bool) -> Array:
        """Solve with F or Fᵀ of each component; the last entry is 0 if F is singular."""
        # solve F b = d, or Fᵀ f = d
        out = np.zeros_like(d)
        for items, F in self._blocks:
            rank = len(items)
            if F[-1, -1] == 0:  # the last row follows from the others: its entry stays 0
                rank -= 1
            if rank:
                rows = items[:rank]
                out[rows] = scipy.linalg.solve_triangular(
                    F[:rank, :rank], d[rows], trans=int(transpose), lower=True
                )
        return out

    def sandwich(self, K: Array) -> Array:
        """``Fᵀ K F``, written to the symmetric matrix K."""
        # Fᵀ K F for a block-diagonal F, first the rows and then the columns
        for items, F in self._blocks:
            K[items] = F.T @ K[items]
        for items, F in self._blocks:
            K[:, items] = K[:, items] @ F
        return K


def _cholesky_root(L: Array, shift: Array) -> Array:
    """Lower triangular F with F Fᵀ = L + diag(shift); its last column is zero if singular."""
    # lower triangle F with F Fᵀ = L + diag(shift), for the Laplacian L of a connected component
    n = len(L)
    if shift.all():  # positive definite, else L alone, which is singular
        L[np.diag_indices(n)] += shift
        F: Array = scipy.linalg.cholesky(L, lower=True)
        return F
    F = np.zeros((n, n))
    if n > 1:  # L without its last row and column is positive definite
        leading_root = scipy.linalg.cholesky(L[:-1, :-1], lower=True)
        F[:-1, :-1] = leading_root
        # the last row of F Fᵀ is that of L; the last diagonal entry of F is 0
        F[-1, :-1] = scipy.linalg.solve_triangular(leading_root, L[:-1, -1], lower=True)
    return F


def _block_rows(K: Array) -> int:
    return max(1, BLOCK_ENTRIES // max(1, len(K)))
