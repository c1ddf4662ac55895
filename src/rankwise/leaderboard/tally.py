"""Comparisons counted: which pairs of items there are, and what was said about each."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from rankwise.graphs import PairGraph

__all__ = ["Tally"]

Array = NDArray[np.float64]
Positions = NDArray[np.intp]


@dataclass(frozen=True, eq=False)
class Tally:
    """Comparisons of the same two items, magnitude and weight are one cell with a count.

    Thousands of battles between tens of items have few cells, which makes resampling cheap.

    Attributes
    ----------
    n_items : int
        Number of items.
    first, second : ndarray of shape (n_distinct,)
        The two items of each distinct pair, ``first < second``.
    pair : ndarray of shape (n_cells,)
        The distinct pair of each cell.
    target : ndarray of shape (n_cells,)
        δ, by how much the first item of the pair won; negative if the second did.
    weight : ndarray of shape (n_cells,)
        ω of each comparison of the cell.
    count : ndarray of shape (n_cells,)
        Number of comparisons in the cell.
    cell : ndarray of shape (n_comparisons,)
        The cell of each comparison.
    """

    n_items: int
    first: Positions
    second: Positions
    pair: Positions
    target: Array
    weight: Array
    count: Positions
    cell: Positions

    @classmethod
    def of(cls, graph: PairGraph) -> Tally:
        """Count the edges of a graph."""
        first = np.minimum(graph.winner, graph.loser)
        second = np.maximum(graph.winner, graph.loser)
        ends, pair = np.unique(first * graph.n_items + second, return_inverse=True)
        target = np.where(graph.winner == first, graph.edge_target, -graph.edge_target)
        keys = (pair, target + 0.0, graph.edge_weight)  # −0 is 0
        order = np.lexsort(keys)
        changes = [np.diff(key[order]) != 0 for key in keys]
        starts = np.r_[0, 1 + np.flatnonzero(np.logical_or.reduce(changes))]
        count = np.diff(np.r_[starts, len(order)])
        cell = np.empty(len(order), dtype=np.intp)
        cell[order] = np.repeat(np.arange(len(count)), count)
        chosen = order[starts]
        return cls(
            graph.n_items,
            ends // graph.n_items,
            ends % graph.n_items,
            pair[chosen],
            keys[1][chosen],
            graph.edge_weight[chosen],
            count,
            cell,
        )

    @property
    def n_distinct(self) -> int:
        """Number of distinct pairs of items."""
        return len(self.first)

    @cached_property
    def total_weight(self) -> float:
        """W, the sum of the weights of all comparisons."""
        return float(self.count @ self.weight)

    @cached_property
    def incidence(self) -> sp.csr_matrix:
        """B of shape (n_distinct, n_items): a row is e_first − e_second, so L = Bᵀ diag(w) B."""
        n = self.n_distinct
        columns = np.column_stack([self.first, self.second]).ravel()
        signs = np.tile([1.0, -1.0], n)
        shape = (n, self.n_items)
        return sp.csr_matrix((signs, columns, np.arange(0, 2 * n + 1, 2)), shape=shape)

    def pair_sums(self, count: NDArray[np.integer]) -> tuple[Array, Array]:
        """Σ ω and Σ ω δ of each distinct pair if the cells have these counts."""
        weight = count * self.weight
        sums = np.zeros((2, self.n_distinct))
        np.add.at(sums[0], self.pair, weight)
        np.add.at(sums[1], self.pair, weight * self.target)
        return sums[0], sums[1]
