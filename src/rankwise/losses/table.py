"""The squared loss over the pairs inside each row of a table, or over all pairs of its cells."""

from __future__ import annotations

from functools import cached_property

import numpy as np

from rankwise.arrays import Array, Indices
from rankwise.graphs import ScoreGraph
from rankwise.inputs import check_option


class TableLoss:
    """Mean squared error over pairs of known cells of one row.

        loss(F) = 1/W Σ ω (δ − (F_ij − F_ik))²   over the pairs (ij, ik) of known cells in a row

    [RankRLS09] section 2.2: cells of different rows are never compared. In matrix form the loss is
    ``tr Fᵀ A(F) − 2 tr Fᵀ T`` plus a constant; A is linear and sees the known cells only. Nothing
    larger than the table is formed: where every two known cells of a row are a pair, the Laplacian
    of a row with n of them is n times "subtract the mean of the known cells". Other costs go
    through the graph of all cells. If all cells are one list, the pairs are those of any two known
    cells, and the mean is that of all.

    Parameters
    ----------
    Y : ndarray of shape (q, t)
        Scores, nan where unknown.
    cost, ties, group_weight : str
        As in `rankwise.ScoreGraph`; the groups are the rows.
    one_list : bool
        Whether cells of different rows are compared, too.

    Attributes
    ----------
    known : ndarray of bool, shape (q, t)
        Which cells have a score.
    n_pairs : int
        Number of pairs.
    total_weight : float
        W.
    is_complete : bool
        Whether every cell is known and all pairs of a row ask for the difference of scores.
    """

    def __init__(
        self,
        Y: Array,
        *,
        cost: str = "magnitude",
        ties: str = "include",
        group_weight: str = "pairs",
        one_list: bool = False,
    ) -> None:
        check_option("group_weight", group_weight, ("pairs", "groups"))
        self.Y, self.known, self.one_list = Y, ~np.isnan(Y), one_list
        self._options = {"cost": cost, "ties": ties, "group_weight": group_weight}
        self._is_plain = cost == "magnitude" and ties == "include"
        self.is_complete = self._is_plain and bool(self.known.all()) and not one_list
        if self._is_plain:
            self._count = self._sums(self.known)
            pairs = self._count * (self._count - 1) // 2
            weight = 1.0 / np.maximum(pairs, 1) if group_weight == "groups" else 1.0
            self._scale = self._count * np.where(pairs > 0, weight, 0.0)
            self.n_pairs, self.total_weight = int(pairs.sum()), float((pairs * weight).sum())
        else:
            graph = self._graph = self.graph()
            self.n_pairs, self.total_weight = graph.n_pairs, float(graph.total_weight)

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns."""
        return self.Y.shape[0], self.Y.shape[1]

    @cached_property
    def target(self) -> Array:
        """T."""
        if self._is_plain:
            return self.times_A(np.nan_to_num(self.Y))
        return self._table(self._graph.divergence)

    def times_A(self, F: Array) -> Array:
        """A(F)."""
        if not self._is_plain:
            return self._table(self._graph.laplacian(F[self.known]))
        F = np.where(self.known, F, 0.0)
        F -= self._sums(F) / np.maximum(self._count, 1)
        return np.asarray(F * self.known * (self._scale / self.total_weight))

    def degrees(self) -> Array:
        """Diagonal of A, as a table."""
        if not self._is_plain:
            return self._table(self._graph.degrees)
        share = self._scale * (1.0 - 1.0 / np.maximum(self._count, 1)) / self.total_weight
        return np.asarray(share * self.known)

    def subset(self, rows: Indices, columns: Indices) -> TableLoss:
        """The loss of a smaller table."""
        return TableLoss(self.Y[np.ix_(rows, columns)], **self._options, one_list=self.one_list)

    def graph(self) -> ScoreGraph:
        """The pairs as a graph of the known cells, row by row."""
        groups = None if self.one_list else np.nonzero(self.known)[0]
        return ScoreGraph(self.Y[self.known], groups, **self._options)

    def _sums(self, F: Array) -> Array:
        """Sums over each row, or over all cells, in the shape of a column."""
        return np.asarray(F.sum(axis=None if self.one_list else 1, keepdims=True))

    def _table(self, values: Array) -> Array:
        """What the graph gives for the known cells, as a table, over W."""
        out = np.zeros(self.Y.shape)
        out[self.known] = values / self.total_weight
        return out
