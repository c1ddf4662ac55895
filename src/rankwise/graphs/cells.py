"""Cells: items of one group and one score, which no score-induced graph can tell apart."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from rankwise._compiled import sort_by_group
from rankwise.graphs.protocol import sums_of_squares

__all__ = ["Cells", "score_cells"]

Array = NDArray[np.float64]


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
    """

    def __init__(self, of_item: NDArray[np.intp], group: NDArray[np.intp], n_groups: int) -> None:
        self.of_item = of_item
        self.group = group
        self.n_groups = n_groups

    @cached_property
    def size(self) -> Array:
        """Number of items in each cell."""
        return np.bincount(self.of_item, minlength=len(self.group)).astype(np.float64)

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
    def _indicator(self) -> sp.csr_matrix:
        n_items = len(self.of_item)
        by_item = sp.csr_matrix(
            (np.ones(n_items), self.of_item, np.arange(n_items + 1)),
            shape=(n_items, len(self.group)),
        )
        return by_item.T.tocsr()

    @cached_property
    def _group_indicator(self) -> sp.csr_matrix:
        n_cells = len(self.group)
        starts = np.r_[self.first, n_cells]
        return sp.csr_matrix((self.size, np.arange(n_cells), starts), (self.n_groups, n_cells))

    def means(self, V: Array) -> Array:
        """Mean of V over each cell."""
        return _divide(self._indicator @ V, self.size)

    def sparse_norms(self, R: Any, within: Array, between: Array) -> Array:
        """``rᵀ L r`` for every column r of sparse R, in time linear in its non-zeros.

        L scales deviations from the mean of the cell by `within` and those of cell means from the
        mean of the group by `between`; sums of squares about means are had from plain sums.
        """
        cell_sums = self._indicator @ R
        norms = sums_of_squares(R, within[self.of_item])
        norms += sums_of_squares(cell_sums, (between - within) / self.size)
        if between.any():
            of_cell = np.arange(len(self.group))
            shape = (self.n_groups, len(of_cell))
            members = sp.csr_matrix((np.ones(len(of_cell)), (self.group, of_cell)), shape)
            pull = np.zeros(self.n_groups)
            pull[self.group] = between
            norms -= sums_of_squares(members @ cell_sums, pull / self.group_size)
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


def _divide(sums: Array, size: Array) -> Array:
    size = np.maximum(size, 1.0)  # an empty group has sums of zero
    return sums / (size if sums.ndim == 1 else size[:, None])
