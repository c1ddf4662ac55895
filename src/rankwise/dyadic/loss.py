"""The squared loss over the pairs inside each row of a table, or over all pairs of its cells."""

from __future__ import annotations

import numpy as np

from rankwise.arrays import Array, Indices
from rankwise.caching import cached_property
from rankwise.graphs import ScoreGraph
from rankwise.graphs.supervision import Relevance
from rankwise.groups import Groups


class DyadicLoss:
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
    weight : ndarray of shape (q,), optional
        Of the pairs of each row; not for one list, nor for groups that count alike.

    Attributes
    ----------
    known : ndarray of bool, shape (q, t)
        Which cells have a score.
    shape : tuple of int
        Rows and columns.
    n_pairs : int
        Number of pairs.
    is_complete : bool
        Whether every cell is known and all pairs of a row ask for the difference of scores.

    Examples
    --------
    >>> import numpy as np
    >>> from rankwise.dyadic.loss import DyadicLoss
    >>> loss = DyadicLoss(np.array([[1.0, 2.0, np.nan], [3.0, 1.0, 2.0]]))
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
        weight: Array | None = None,
    ) -> None:
        self.Y, self.known, self.one_list, self.weight = Y, ~np.isnan(Y), one_list, weight
        self.shape = q, t = len(Y), Y.shape[1]
        self._cells = np.flatnonzero(self.known)
        self._options = {"cost": cost, "ties": ties, "group_weight": group_weight}
        is_plain = (cost, ties) == ("magnitude", "include") and group_weight in ("pairs", "groups")
        is_whole = bool(self.known.all()) and weight is None and not one_list
        self.is_complete = is_plain and is_whole
        self.n_pairs = q * t * (t - 1) // 2 if self.is_complete else self.graph.n_pairs

    @cached_property
    def graph(self) -> ScoreGraph:
        """The pairs of the known cells, row by row."""
        row = self._cells // self.shape[1]
        # the weight of a pair is the product of those of its cells
        weight = None if self.weight is None else np.sqrt(self.weight)[row]
        labels, codes = np.unique(row * (not self.one_list), return_inverse=True)
        target = Relevance(self.Y.take(self._cells), Groups(codes, labels), weight)
        return ScoreGraph(target, **self._options)

    @cached_property
    def target(self) -> Array:
        """T."""
        return self.table(self.graph.divergence)

    def times_A(self, F: Array) -> Array:
        """A(F)."""
        return self.table(self.graph.laplacian(F.take(self._cells)))

    def subset(self, rows: Indices, columns: Indices) -> DyadicLoss:
        """The loss of a smaller table."""
        weight = None if self.weight is None else self.weight[rows]
        Y = self.Y[np.ix_(rows, columns)]
        return DyadicLoss(Y, **self._options, one_list=self.one_list, weight=weight)

    def table(self, values: Array) -> Array:
        """What the graph gives for the known cells, as a table, over W."""
        out = np.zeros(self.Y.size)
        out[self._cells] = values / self.graph.total_weight
        return out.reshape(self.Y.shape)
