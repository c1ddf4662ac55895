"""The squared loss over the pairs inside each row of a table, or over all pairs of its cells."""

from __future__ import annotations

from functools import cached_property

import numpy as np

from rankwise.arrays import Array, Indices
from rankwise.graphs import ScoreGraph
from rankwise.groups import Groups
from rankwise.inputs import Target


class TableLoss:
    """Mean squared error over pairs of known cells of one row.

        loss(F) = 1/W Σ ω (δ − (F_ij − F_ik))²   over the pairs (ij, ik) of known cells in a row

    [RankRLS09] section 2.2: cells of different rows are never compared. In matrix form the loss is
    ``tr Fᵀ A(F) − 2 tr Fᵀ T`` plus a constant; A is linear and sees the known cells only, through
    their graph. Nothing larger than the table is formed. If all cells are one list, the pairs are
    those of any two known cells.

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
    graph : ScoreGraph
        The pairs of the known cells, row by row.
    n_pairs : int
        Number of pairs.
    total_weight : float
        W.
    is_complete : bool
        Whether every cell is known and all pairs of a row ask for the difference of scores.

    Examples
    --------
    >>> import numpy as np
    >>> from rankwise.losses import TableLoss
    >>> loss = TableLoss(np.array([[1.0, 2.0, np.nan], [3.0, 1.0, 2.0]]))
    >>> loss.n_pairs, loss.is_complete
    (4, False)
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
        self.Y, self.known, self.one_list = Y, ~np.isnan(Y), one_list
        self._options = {"cost": cost, "ties": ties, "group_weight": group_weight}
        row = np.nonzero(self.known)[0] * (not one_list)
        labels, codes = np.unique(row, return_inverse=True)
        self.graph = ScoreGraph(Target(Y[self.known], Groups(codes, labels)), **self._options)
        self.n_pairs, self.total_weight = self.graph.n_pairs, self.graph.total_weight
        is_plain = cost == "magnitude" and ties == "include"
        self.is_complete = is_plain and bool(self.known.all()) and not one_list

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns."""
        return self.Y.shape[0], self.Y.shape[1]

    @cached_property
    def target(self) -> Array:
        """T."""
        return self._table(self.graph.divergence)

    def times_A(self, F: Array) -> Array:
        """A(F)."""
        return self._table(self.graph.laplacian(F[self.known]))

    def degrees(self) -> Array:
        """Diagonal of A, as a table."""
        return self._table(self.graph.degrees)

    def subset(self, rows: Indices, columns: Indices) -> TableLoss:
        """The loss of a smaller table."""
        return TableLoss(self.Y[np.ix_(rows, columns)], **self._options, one_list=self.one_list)

    def _table(self, values: Array) -> Array:
        """What the graph gives for the known cells, as a table, over W."""
        out = np.zeros(self.Y.shape)
        out[self.known] = values / self.total_weight
        return out
