"""Cells: items of one group and one score, which no score-induced graph can tell apart."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from rankwise._compiled import add_rows, scale_rows, sort_by_group
from rankwise.graphs.protocol import sums_of_squares

__all__ = ["Cells", "deviations", "score_cells", "score_differences", "sums_of_families"]

Array = NDArray[np.float64]
BLOCK_ENTRIES = 2**22


class Cells:
    """A partition of the items into cells, and of the cells into groups.

    Cells are numbered so that those of one group are consecutive, by increasing score.

    Attributes
    ----------
    of_item : ndarray of shape (n_items,)
        The cell of each item.
    group : ndarray of shape (n_cells,)
        The group of each cell.
    n_groups : int
        Number of groups.
    counts : ndarray of shape (n_items,) or None
        How many equal items each of them stands for; None for one.
    """

    def __init__(
        self,
        of_item: NDArray[np.intp],
        group: NDArray[np.intp],
        n_groups: int,
        counts: Array | None = None,
    ) -> None:
        self.of_item = of_item
        self.group = group
        self.n_groups = n_groups
        self.counts = counts

    @cached_property
    def size(self) -> Array:
        """Number of items in each cell."""
        sizes = np.bincount(self.of_item, weights=self.counts, minlength=len(self.group))
        return sizes.astype(np.float64, copy=False)

    @cached_property
    def levels(self) -> NDArray[np.intp]:
        """Number of cells in each group."""
        return np.bincount(self.group, minlength=self.n_groups)

    @cached_property
    def first(self) -> NDArray[np.intp]:
        """Number of the first cell of each group."""
        return np.cumsum(self.levels) - self.levels

    @cached_property
    def group_size(self) -> Array:
        """Number of items in each group."""
        return np.asarray(self._group_indicator.sum(axis=1), dtype=np.float64).ravel()

    @cached_property
    def _group_indicator(self) -> sp.csr_matrix:
        n_cells = len(self.group)
        starts = np.r_[self.first, n_cells]
        return sp.csr_matrix((self.size, np.arange(n_cells), starts), (self.n_groups, n_cells))

    def means(self, V: Array) -> Array:
        """Mean of V over each cell."""
        if self.counts is not None:
            V = V * (self.counts if V.ndim == 1 else self.counts[:, None])
        return _divide(sums_of_families(V, self.of_item, len(self.group)), self.size)

    def sparse_norms(self, R: Any, within: Array, between: Array) -> Array:
        """``rᵀ L r`` for every column r of sparse R, in time linear in its non-zeros.

        L scales deviations from the mean of the cell by `within` and those of cell means from the
        mean of the group by `between`; sums of squares about means are had from plain sums.
        """
        n_items = len(self.of_item)
        members = (np.ones(n_items), self.of_item, np.arange(n_items + 1))
        cell_sums = sp.csr_matrix(members, (n_items, len(self.group))).T.tocsr() @ R
        norms = sums_of_squares(R, within[self.of_item])
        norms += sums_of_squares(cell_sums, (between - within) / self.size)
        if between.any():
            of_cell = np.arange(len(self.group))
            shape = (self.n_groups, len(of_cell))
            cells_of = sp.csr_matrix((np.ones(len(of_cell)), (self.group, of_cell)), shape)
            pull = np.zeros(self.n_groups)
            pull[self.group] = between
            norms -= sums_of_squares(cells_of @ cell_sums, pull / self.group_size)
        return norms

    def group_means(self, cell_means: Array) -> Array:
        """Mean over each group, from the means of its cells."""
        return _divide(self._group_indicator @ cell_means, self.group_size)


def score_cells(
    y: Array, group: NDArray[np.intp], n_groups: int
) -> tuple[Cells, NDArray[np.float64]]:
    """The cells of (group, distinct score), and the score of each cell."""
    order = np.argsort(y)
    if n_groups > 1:
        size = np.bincount(group, minlength=n_groups)
        order = sort_by_group(order, group.astype(np.int32), np.cumsum(size) - size)
    g, s = group[order], y[order]
    first = np.r_[True, (g[1:] != g[:-1]) | (s[1:] != s[:-1])][: len(y)]
    of_item = np.empty(len(y), dtype=np.intp)
    of_item[order] = np.cumsum(first) - 1
    return Cells(of_item, g[first], n_groups), s[first]


def score_differences(
    cells: Cells, scores: Array
) -> Iterator[tuple[NDArray[Any], NDArray[Any], Array]]:
    """Blocks (cells a, cells b, s_a − s_b) that cover all pairs of cells of one group.

    Groups with equally many levels are stacked; a block has a bounded number of entries.
    """
    for r in np.unique(cells.levels[cells.levels > 1]):
        block = cells.first[cells.levels == r][:, None] + np.arange(r)
        stack = max(1, BLOCK_ENTRIES // (r * r))
        height = r if r * r <= BLOCK_ENTRIES else max(1, BLOCK_ENTRIES // r)
        for k in range(0, len(block), stack):
            columns = block[k : k + stack]
            for top in range(0, r, height):
                rows = columns[:, top : top + height]
                yield rows, columns, scores[rows][:, :, None] - scores[columns][:, None, :]


def sums_of_families(V: NDArray[Any], family: NDArray[np.intp], n_families: int) -> Array:
    """Sum of the values or rows of each family, in float64."""
    if V.ndim == 1:
        return np.bincount(family, weights=V, minlength=n_families).astype(np.float64, copy=False)
    sums: Array = np.zeros((n_families, V.shape[1]))
    add_rows(_as_rows(V), family, np.zeros(len(V)), sums, np.zeros(V.shape[1]))
    return sums


def deviations(
    V: NDArray[Any],
    family: NDArray[np.intp],
    means: Array,
    scale: Array,
    out: Array | None = None,
) -> Array:
    """``scale (v − mean)`` by the mean and the scale of the family; out may be V itself."""
    out = np.empty(V.shape) if out is None else out
    n_families = len(scale)
    scale_rows(_as_rows(V), family, means.reshape(n_families, -1), scale, out.reshape(len(out), -1))
    return out


def _as_rows(V: NDArray[Any]) -> NDArray[Any]:
    dtype = V.dtype if V.dtype == np.float32 else np.float64
    return np.ascontiguousarray(V.reshape(len(V), -1), dtype=dtype)


def _divide(sums: Array, size: Array) -> Array:
    size = np.maximum(size, 1.0)  # an empty group has sums of zero
    return sums / (size if sums.ndim == 1 else size[:, None])
