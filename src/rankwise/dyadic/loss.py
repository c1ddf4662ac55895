"""Squared loss over the pairs of cells of each row of a table, or over all pairs of its cells."""

from __future__ import annotations

import numpy as np

from rankwise.arrays import Array, Indices, take_weights
from rankwise.caching import cached_property
from rankwise.graphs import ScoreGraph
from rankwise.graphs.supervision import Relevance
from rankwise.groups import Groups


class DyadicLoss:
    """Mean squared error over pairs of observed cells of one row.

        loss(F) = 1/W Σ ω (δ − (F_ij − F_ik))²   over the pairs (ij, ik) of observed cells in a row

    [RankRLS09] section 2.2: cells of different rows are not compared. In matrix form the loss is
    ``tr Fᵀ A(F) − 2 tr Fᵀ T`` plus a constant. A is linear and depends on the observed cells only,
    through their graph. No array is larger than the table. If the table is one list, the pairs
    consist of any two observed cells.

    Parameters
    ----------
    Y : ndarray of shape (q, t)
        Scores, NaN where unknown.
    cost, ties, group_weight : str
        As in `rankwise.ScoreGraph`; the groups are the rows.
    cells_are_one_list : bool
        Whether cells of different rows are compared, too.
    weight : ndarray of shape (q,), optional
        Weights of the pairs of each row; not for one list, nor for groups of equal weight.

    Attributes
    ----------
    is_observed : ndarray of bool, shape (q, t)
        Whether a cell has a score.
    shape : tuple of int
        Numbers of rows and columns.
    n_pairs : int
        Number of pairs.
    weighs_all_pairs_equally : bool
        Whether every cell is observed and the loss compares all pairs of a row by the difference of
        their scores.

    Examples
    --------
    >>> import numpy as np
    >>> from rankwise.dyadic.loss import DyadicLoss
    >>> loss = DyadicLoss(np.array([[1.0, 2.0, np.nan], [3.0, 1.0, 2.0]]))
    >>> loss.n_pairs, loss.weighs_all_pairs_equally
    (4, False)
    """

    def __init__(
        self,
        Y: Array,
        *,
        cost: str = "magnitude",
        ties: str = "include",
        group_weight: str = "pairs",
        cells_are_one_list: bool = False,
        weight: Array | None = None,
    ) -> None:
        self.Y = Y
        self.cells_are_one_list = cells_are_one_list
        self.weight = weight
        self.shape: tuple[int, int] = (Y.shape[0], Y.shape[1])
        self.is_observed = ~np.isnan(Y)
        self._observed_cells = np.flatnonzero(self.is_observed)  # positions in the flattened table
        self._graph_options = {"cost": cost, "ties": ties, "group_weight": group_weight}

        # Closed forms need a complete table whose rows count equally, with all pairs of a row.
        includes_all_pairs = cost == "magnitude" and ties == "include" and not cells_are_one_list
        has_equal_row_weights = weight is None and group_weight in ("pairs", "groups")
        self.weighs_all_pairs_equally = (
            bool(self.is_observed.all()) and includes_all_pairs and has_equal_row_weights
        )
        if self.weighs_all_pairs_equally:
            n_rows, n_columns = self.shape
            self.n_pairs = n_rows * n_columns * (n_columns - 1) // 2
        else:
            self.n_pairs = self.graph.n_pairs

    @cached_property
    def graph(self) -> ScoreGraph:
        """The pairs of the observed cells, row by row."""
        _, n_columns = self.shape
        row_of_cell = self._observed_cells // n_columns
        cell_weight = None
        if self.weight is not None:  # weight of a pair: product of the weights of its cells
            cell_weight = np.sqrt(self.weight)[row_of_cell]
        group_of_cell = row_of_cell
        if self.cells_are_one_list:
            group_of_cell = np.zeros_like(row_of_cell)
        group_labels, group_codes = np.unique(group_of_cell, return_inverse=True)
        groups = Groups(group_codes, group_labels)
        y = self.Y.take(self._observed_cells)
        return ScoreGraph(Relevance(y, groups, cell_weight), **self._graph_options)

    @cached_property
    def target(self) -> Array:
        """T, the linear part of the loss."""
        return self.to_table(self.graph.divergence)

    def times_laplacian(self, scores: Array) -> Array:
        """A(F), the quadratic part of the loss: the Laplacian of the pairs times the scores F."""
        observed_scores = scores.take(self._observed_cells)
        return self.to_table(self.graph.laplacian(observed_scores))

    def subset(self, rows: Indices, columns: Indices) -> DyadicLoss:
        """The loss of a smaller table."""
        Y = self.Y[np.ix_(rows, columns)]
        weight = take_weights(self.weight, rows)
        return DyadicLoss(
            Y, **self._graph_options, cells_are_one_list=self.cells_are_one_list, weight=weight
        )

    def to_table(self, values: Array) -> Array:
        """Values of the observed cells, divided by W, as a table with 0 in all other cells."""
        flat_table = np.zeros(self.Y.size)
        # the loss is a mean over pairs, and the graph has sums
        flat_table[self._observed_cells] = values / self.graph.total_weight
        return flat_table.reshape(self.Y.shape)
