"""Square roots of graph Laplacians: F with F Fᵀ = scale·L + shift·I.

With a root, the kernel problem becomes symmetric: ``a = F c`` with
``(Fᵀ K F + λ I) c = b`` and ``F b = d`` is the solution of [RankRLS09] equation 17, and K need
not be strictly positive definite.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

import numpy as np
import scipy.linalg
from numpy.typing import NDArray

from rankwise.arrays import Array
from rankwise.graphs.score_levels import ScoreLevels

__all__ = ["ComponentRoot", "NestedRoot", "connect_groups", "items_of_components"]

BLOCK_ENTRIES = 2**19
FEW_LEVELS = 16  # with one level for so many items, what belongs to levels is small beside K


class NestedRoot:
    """Symmetric root of any combination of centering inside levels and inside groups.

    Every vector is the sum of three orthogonal parts: deviation from the mean of the level,
    deviation of the level means from the mean of the group, and the mean of the group. L of the
    magnitude and sign costs only scales the parts, so its root scales them by square roots: O(m).
    """

    def __init__(self, levels: ScoreLevels, within: Array, between: Array, shift: float) -> None:
        self._levels = levels
        self._factors = (np.sqrt(within), np.sqrt(between), np.full(len(within), np.sqrt(shift)))

    def apply(self, V: Array) -> Array:
        """``F V``."""
        return self._scale_parts(V, self._factors)

    adjoint = apply

    def solve(self, d: Array) -> Array:
        """Some b with ``F b = d``, for d in the range of F."""
        inverse = tuple(np.divide(1.0, f, out=np.zeros_like(f), where=f > 0) for f in self._factors)
        return self._scale_parts(d, inverse)

    solve_adjoint = solve

    def sandwich(self, K: Array) -> Array:
        """``Fᵀ K F`` in place of the symmetric matrix K.

        F = D + E with D diagonal, and E V the same in all rows of a level: U for V = K, S for
        V = Uᵀ. So ``(F K F)_ij = d_i K_ij d_j + U_cj d_j + d_i U_ci + S_cc``, in two halves and one
        pass. With many levels U is as large as K, so F is applied from both sides, by blocks.
        """
        if FEW_LEVELS * len(self._levels.group) > len(K):
            return self._two_passes(K)
        levels, scale = self._levels, self._factors[0][self._levels.of_item]
        offset = self._offset(K, self._factors)
        corner = self._offset(np.ascontiguousarray(offset.T), self._factors)
        half = offset * scale + 0.5 * corner[:, levels.of_item]
        turned = np.ascontiguousarray(half.T)
        size = _block_rows(K)
        for start in range(0, len(K), size):
            rows = slice(start, start + size)
            block = K[rows]
            block *= scale
            block *= scale[rows, None]
            block += half[levels.of_item[rows]]
            block += np.take(turned[rows], levels.of_item, axis=1)
        return K

    def _two_passes(self, K: Array) -> Array:
        size = _block_rows(K)
        for start in range(0, len(K), size):
            columns = K[:, start : start + size]
            columns[:] = self.apply(np.ascontiguousarray(columns))
        for start in range(0, len(K), size):
            rows = K[start : start + size].T
            K[start : start + size] = self.apply(np.ascontiguousarray(rows)).T
        return K

    def _scale_parts(self, V: Array, factors: tuple[Array, ...]) -> Array:
        offset = self._offset(V, factors)
        within = factors[0] if V.ndim == 1 else factors[0][:, None]
        out: Array = V * within[self._levels.of_item]
        out += offset[self._levels.of_item]
        return out

    def _offset(self, V: Array, factors: tuple[Array, ...]) -> Array:
        """What the items of each level get beside V times the factor of the level."""
        levels = self._levels
        within, between, top = (f if V.ndim == 1 else f[:, None] for f in factors)
        level_mean = levels.means(V)
        group_mean = levels.group_means(level_mean)[levels.group]
        offset: Array = (between - within) * level_mean + (top - between) * group_mean
        return offset


class ComponentRoot:
    """Cholesky root of the Laplacian of each connected component, for graphs of any shape.

    Without shift the Laplacian of a component is singular (constants), but the matrix with the
    last vertex removed is positive definite and the last row follows from the rest.
    """

    def __init__(
        self,
        components: Iterable[NDArray[np.intp]],
        block: Callable[[NDArray[np.intp]], Array],
        shift: float,
    ) -> None:
        self._blocks = [(items, _cholesky_root(block(items), shift)) for items in components]

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
        """Some b with ``F b = d``, for d in the range of F."""
        return self._solve_triangles(d, transpose=False)

    def solve_adjoint(self, r: Array) -> Array:
        """Some f with ``Fᵀ f = r``, for r in the range of Fᵀ."""
        return self._solve_triangles(r, transpose=True)

    def _solve_triangles(self, d: Array, *, transpose: bool) -> Array:
        out = np.zeros_like(d)
        for items, F in self._blocks:
            rank = len(items) if F[-1, -1] > 0 else len(items) - 1
            if rank:
                known = d[items[:rank]]
                out[items[:rank]] = scipy.linalg.solve_triangular(
                    F[:rank, :rank], known, trans=int(transpose), lower=True
                )
        return out

    def sandwich(self, K: Array) -> Array:
        """``Fᵀ K F`` in place of the symmetric matrix K."""
        for items, F in self._blocks:
            K[items] = F.T @ K[items]
        for items, F in self._blocks:
            K[:, items] = K[:, items] @ F
        return K


def items_of_components(components: NDArray[np.intp]) -> list[NDArray[np.intp]]:
    """The items of each connected component, from the component of each item."""
    order = np.argsort(components, kind="stable")
    return np.split(order, np.cumsum(np.bincount(components))[:-1])


def connect_groups(groups: NDArray[np.intp], is_connected: NDArray[np.bool_]) -> NDArray[np.intp]:
    """For each item the number of its component: its group, or the item alone."""
    alone = len(is_connected) + np.arange(len(groups))
    labels = np.where(is_connected[groups], groups, alone)
    return np.unique(labels, return_inverse=True)[1].astype(np.intp)


def _cholesky_root(L: Array, shift: float) -> Array:
    """Lower triangular F with F Fᵀ = L + shift I; its last column is zero if that is singular."""
    n = len(L)
    if shift > 0:
        L[np.diag_indices(n)] += shift
        F: Array = scipy.linalg.cholesky(L, lower=True)
        return F
    F = np.zeros((n, n))
    if n > 1:
        top = scipy.linalg.cholesky(L[:-1, :-1], lower=True)
        F[:-1, :-1] = top
        F[-1, :-1] = scipy.linalg.solve_triangular(top, L[:-1, -1], lower=True)
    return F


def _block_rows(V: Array) -> int:
    width = 1 if V.ndim == 1 else max(1, V.shape[1])
    return max(1, BLOCK_ENTRIES // width)
