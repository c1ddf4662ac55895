"""Square roots of graph Laplacians: F with F Fᵀ = scale·L + shift·I.

With a root, the kernel problem becomes symmetric (DESIGN.md section 3): ``a = F c`` with
``(Fᵀ K F + λ I) c = b`` and ``F b = d`` is the solution of [RankRLS09] equation 17, and K need
not be strictly positive definite.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

import numpy as np
import scipy.linalg
from numpy.typing import NDArray

from rankwise.graphs.cells import Cells

__all__ = ["ComponentRoot", "NestedRoot", "items_of_components"]

Array = NDArray[np.float64]
BLOCK_ENTRIES = 2**19


class NestedRoot:
    """Symmetric root of any combination of centring inside cells and inside groups.

    Every vector is the sum of three orthogonal parts: deviation from the mean of the cell,
    deviation of the cell means from the mean of the group, and the mean of the group. L of the
    magnitude and sign costs only scales the parts, so its root scales them by square roots: O(m).
    """

    def __init__(self, cells: Cells, within: Array, between: Array, shift: float) -> None:
        self._cells = cells
        self._factors = (np.sqrt(within), np.sqrt(between), np.full(len(within), np.sqrt(shift)))

    def apply(self, V: Array) -> Array:
        """``F V``."""
        return self._scale_parts(V, self._factors, np.empty_like(V))

    adjoint = apply

    def solve(self, d: Array) -> Array:
        """Some b with ``F b = d``, for d in the range of F."""
        inverse = tuple(np.divide(1.0, f, out=np.zeros_like(f), where=f > 0) for f in self._factors)
        return self._scale_parts(d, inverse, np.empty_like(d))

    solve_adjoint = solve

    def sandwich(self, K: Array) -> Array:
        """``Fᵀ K F`` in place of the symmetric matrix K."""
        size = _block_rows(K)
        for start in range(0, len(K), size):
            columns = K[:, start : start + size]
            columns[:] = self.apply(np.ascontiguousarray(columns))
        for start in range(0, len(K), size):
            rows = K[start : start + size].T
            K[start : start + size] = self.apply(np.ascontiguousarray(rows)).T
        return K

    def _scale_parts(self, V: Array, factors: tuple[Array, ...], out: Array) -> Array:
        """Scale the three parts of V; out may be V itself."""
        cells = self._cells
        within, between, top = (_column(factor, V) for factor in factors)
        cell_mean = cells.means(V)
        group_mean = cells.group_means(cell_mean)[cells.group]
        offset = (between - within) * cell_mean + (top - between) * group_mean
        size = _block_rows(V)
        for start in range(0, len(V), size):
            cell = cells.of_item[start : start + size]
            block = V[start : start + size] * within[cell]
            block += offset[cell]
            out[start : start + size] = block
        return out


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


def _column(factor: Array, V: Array) -> Array:
    return factor if V.ndim == 1 else factor[:, None]


def _block_rows(V: Array) -> int:
    width = 1 if V.ndim == 1 else max(1, V.shape[1])
    return max(1, BLOCK_ENTRIES // width)
