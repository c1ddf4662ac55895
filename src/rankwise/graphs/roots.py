"""Square roots of graph Laplacians: F with F Fᵀ = scale·L + shift·D.

D holds the weights of the items, ones if they have none.

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

BLOCK_ENTRIES = 2**19
FEW_LEVELS = 16  # with one level for so many items, what belongs to levels is small beside K


class NestedRoot:
    """Symmetric root of any combination of centering inside levels and inside groups.

    Every vector is the sum of three orthogonal parts: deviation from the mean of the level,
    deviation of the level means from the mean of the group, and the mean of the group. L of the
    magnitude and sign costs only scales the parts, so its root scales them by square roots: O(m).

    With weights w, the parts are those of a vector ``v = √w ∘ x``: what is a constant of x is a
    multiple of √w, and a mean of x is ``Σ √w v / Σ w``. See `WeightedRoot`.
    """

    def __init__(self, levels: ScoreLevels, within: Array, between: Array, shift: float) -> None:
        self._levels = levels
        self._spread = None if levels.weight is None else np.sqrt(levels.weight)
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
        if self._spread is not None or FEW_LEVELS * len(self._levels.group) > len(K):
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
        offset = offset[self._levels.of_item]
        if self._spread is not None:
            offset *= self._spread if V.ndim == 1 else self._spread[:, None]
        out += offset
        return out

    def _offset(self, V: Array, factors: tuple[Array, ...]) -> Array:
        """What the items of each level get beside V times the factor of the level."""
        levels = self._levels
        within, between, top = (f if V.ndim == 1 else f[:, None] for f in factors)
        level_mean = levels.means(V, self._spread)
        group_mean = levels.group_means(level_mean)[levels.group]
        offset: Array = (between - within) * level_mean + (top - between) * group_mean
        return offset


class WeightedRoot:
    """``F = D^½ N`` for the symmetric root N of a graph in which item i has weight D_ii.

    L is ``D^½ N² D^½``. For a clique, ``N = √s (I − uuᵀ)`` with s = Σ w and u = √(w/s). Items of
    weight 0 have zero rows.

    Parameters
    ----------
    inner : NestedRoot
        N.
    weight : ndarray of shape (n_items,)
        The diagonal of D.
    """

    def __init__(self, inner: NestedRoot, weight: Array) -> None:
        self._inner, self._half = inner, np.sqrt(weight)
        self._back = np.divide(1.0, self._half, out=np.zeros_like(weight), where=weight > 0)

    def apply(self, V: Array) -> Array:
        """``F V``."""
        return _times(self._half, self._inner.apply(V))

    def adjoint(self, V: Array) -> Array:
        """``Fᵀ V``."""
        return self._inner.apply(_times(self._half, V))

    def solve(self, d: Array) -> Array:
        """Some b with ``F b = d``, for d in the range of F."""
        return self._inner.solve(_times(self._back, d))

    def solve_adjoint(self, r: Array) -> Array:
        """Some f with ``Fᵀ f = r``, for r in the range of Fᵀ."""
        return _times(self._back, self._inner.solve(r))

    def sandwich(self, K: Array) -> Array:
        """``Fᵀ K F`` in place of the symmetric matrix K."""
        K *= self._half
        K *= self._half[:, None]
        return self._inner.sandwich(K)


def _times(factor: Array, V: Array) -> Array:
    return np.asarray(V * (factor if V.ndim == 1 else factor[:, None]))


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
        weight: Array | None = None,
    ) -> None:
        def diagonal(items: NDArray[np.intp]) -> Array:
            return shift * (np.ones(len(items)) if weight is None else weight[items])

        self._blocks = [
            (items, _cholesky_root(block(items), diagonal(items))) for items in components
        ]

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
    """For each item the number of its component: its group if connected, or the item alone."""
    alone = groups.max(initial=0) + 1 + np.arange(len(groups))
    labels = np.where(is_connected, groups, alone)
    return np.unique(labels, return_inverse=True)[1].astype(np.intp)


def _cholesky_root(L: Array, shift: Array) -> Array:
    """Lower triangular F with F Fᵀ = L + diag(shift); its last column is zero if singular."""
    n = len(L)
    if shift.all():
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
