"""The squared loss over the pairs inside each row of a table, inside each column, or both."""

from __future__ import annotations

from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from rankwise.arrays import Array, Indices
from rankwise.graphs import ScoreGraph

RANKED = ("columns", "rows", "both")


class TableLoss:
    """Mean squared error over pairs of cells of one row (of one column, or both).

        loss(F) = 1/W Σ ω (δ − (F_ij − F_ik))²   over the pairs (ij, ik) of known cells in a row

    [RankRLS09] section 2.2: cells of different rows are never compared. In matrix form the loss is
    ``tr Fᵀ A(F) − 2 tr Fᵀ T`` plus a constant; A is linear and sees the known cells only. Nothing
    larger than the table is formed.

    Parameters
    ----------
    Y : ndarray of shape (q, t)
        Scores, nan where unknown.
    ranked : {"columns", "rows", "both"}
        Which pairs: cells of one row, cells of one column, or both kinds.
    cost, ties, group_weight : str
        As in `rankwise.ScoreGraph`; the groups are the rows (or columns).
    """

    def __init__(
        self,
        Y: Array,
        *,
        ranked: str = "columns",
        cost: str = "magnitude",
        ties: str = "include",
        group_weight: str = "pairs",
    ) -> None:
        self.Y, self.ranked = Y, ranked
        self._options = {"cost": cost, "ties": ties, "group_weight": group_weight}
        tables = {"columns": (Y,), "rows": (Y.T,), "both": (Y, Y.T)}[ranked]
        self._parts = [_RowPairs(table, self._options) for table in tables]

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns."""
        return self.Y.shape[0], self.Y.shape[1]

    @property
    def n_pairs(self) -> int:
        """Number of pairs."""
        return sum(part.n_pairs for part in self._parts)

    @property
    def total_weight(self) -> float:
        """W."""
        return sum(part.weight for part in self._parts)

    @property
    def is_complete(self) -> bool:
        """Whether every cell is known and all pairs of a row ask for the difference of scores."""
        part = self._parts[0]
        return self.ranked == "columns" and part.is_plain and part.is_full

    @cached_property
    def known(self) -> NDArray[np.bool_]:
        """Which cells have a score."""
        return ~np.isnan(self.Y)

    @cached_property
    def target(self) -> Array:
        """T."""
        return self._joined([part.divergence for part in self._parts])

    def times_A(self, F: Array) -> Array:
        """A(F)."""
        tables = (F, F.T) if self.ranked != "rows" else (F.T,)
        pairs = zip(self._parts, tables, strict=False)
        return self._joined([part.laplacian(table) for part, table in pairs])

    def degrees(self) -> tuple[Array, Array]:
        """Sums over the rows and over the columns of the diagonal of A."""
        D = self._joined([part.degrees for part in self._parts])
        return D.sum(axis=1), D.sum(axis=0)

    def part(self, rows: Indices | None, columns: Indices | None) -> TableLoss:
        """The loss of a smaller table; None for all rows or columns."""
        Y = self.Y if rows is None else self.Y[rows]
        Y = Y if columns is None else Y[:, columns]
        return TableLoss(Y, ranked=self.ranked, **self._options)

    def graph(self) -> ScoreGraph:
        """The pairs inside rows as a graph of the known cells, row by row."""
        return ScoreGraph(self.Y[self.known], np.nonzero(self.known)[0], **self._options)

    def _joined(self, tables: list[Array]) -> Array:
        """The sum of tables of the parts, over W; the last part may be that of the columns."""
        if self.ranked != "columns":
            tables[-1] = tables[-1].T
        total = tables[0] if len(tables) == 1 else tables[0] + tables[1]
        return np.asarray(total / self.total_weight)


class _RowPairs:
    """The pairs inside the rows of one table: laplacian, divergence and degrees as tables.

    Where every two known cells of a row are a pair, the Laplacian of a row with n of them is n
    times "subtract the mean of the known cells". Other costs go through the graph of all cells.
    """

    def __init__(self, Y: Array, options: dict[str, str]) -> None:
        self._Y = Y
        self._known = ~np.isnan(Y)
        self._count = self._known.sum(axis=1)
        self.is_full = bool(self._known.all())
        self.is_plain = options["cost"] == "magnitude" and options["ties"] == "include"
        pairs = self._count * (self._count - 1) // 2
        if self.is_plain:
            by_group = options["group_weight"] == "groups"
            weight = np.where(pairs > 0, 1.0 / np.maximum(pairs, 1) if by_group else 1.0, 0.0)
            self._scale = self._count * weight
            self.n_pairs, self.weight = int(pairs.sum()), float((pairs * weight).sum())
            return
        self._graph = ScoreGraph(Y[self._known], np.nonzero(self._known)[0], **options)
        self.n_pairs, self.weight = self._graph.n_pairs, float(self._graph.total_weight)

    @cached_property
    def divergence(self) -> Array:
        if self.is_plain:
            return self.laplacian(np.nan_to_num(self._Y))
        return self._scattered(self._graph.divergence)

    @cached_property
    def degrees(self) -> Array:
        if self.is_plain:
            share = self._scale * (1.0 - 1.0 / np.maximum(self._count, 1))
            return np.asarray(share[:, None] * self._known)
        return self._scattered(self._graph.degrees)

    def laplacian(self, F: Array) -> Array:
        if not self.is_plain:
            return self._scattered(self._graph.laplacian(F[self._known]))
        seen = F if self.is_full else np.where(self._known, F, 0.0)
        mean = seen.sum(axis=1) / np.maximum(self._count, 1)
        out = seen - mean[:, None]
        out *= self._scale[:, None]
        if not self.is_full:
            out *= self._known
        return np.asarray(out)

    def _scattered(self, values: Array) -> Array:
        out = np.zeros(self._Y.shape)
        out[self._known] = values
        return out
