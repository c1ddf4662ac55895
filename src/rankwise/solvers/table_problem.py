"""A table to be ranked: the loss, the two sides, and the model of every alpha."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from rankwise.arrays import Array, Indices
from rankwise.losses import TableLoss
from rankwise.solvers.iterative import Watch
from rankwise.solvers.squared_loss import Solutions
from rankwise.solvers.table_iterations import minimize_table, table_weights
from rankwise.solvers.table_sides import Side, WeightedSide
from rankwise.solvers.tables import CompleteTable, table_shift

INDEFINITE = -1e-8  # of the largest eigenvalue: more negative than rounding makes them


@dataclass(frozen=True)
class TableProblem:
    """Minimize ``loss(F) + α ‖f‖²`` over scores ``F = R B Sᵀ`` of a table.

    Attributes
    ----------
    loss : TableLoss
        What is known about the cells.
    rows, columns : Side
        R and S: features, or kernel values.
    tol, max_iter
        Limits of the conjugate gradients, if there is no closed form.
    """

    loss: TableLoss
    rows: Side
    columns: Side
    tol: float = 1e-8
    max_iter: int | None = None

    @property
    def has_closed_form(self) -> bool:
        """Whether two decompositions give everything."""
        return self.loss.is_complete and self.rows.is_decomposable

    @cached_property
    def complete(self) -> CompleteTable:
        """The closed form."""
        columns = None if self.columns.matrix is None else self.columns.spectrum
        return CompleteTable(self.rows.spectrum, columns, self.loss.Y)

    def shift(self, alpha: float) -> float:
        """ρ of the closed form."""
        return table_shift(alpha, *self.loss.shape)

    def part(self, rows: Indices | None, columns: Indices | None) -> TableProblem:
        """The problem of a smaller table; None for all rows or columns, with what they know."""
        return replace(
            self,
            loss=self.loss.part(rows, columns),
            rows=self.rows if rows is None else self.rows.part(rows),
            columns=self.columns if columns is None else self.columns.part(columns),
        )

    def sides(self) -> tuple[WeightedSide, WeightedSide]:
        """Features of both sides that suit the known cells."""
        rows, columns = table_weights(self.loss)
        return self.rows.weighted(rows), self.columns.weighted(columns)

    def solve(self, alphas: Array, watch: Watch | None = None) -> Solutions:
        """B for every alpha, shape (n_alphas, n_row_functions, n_column_functions)."""
        if self.has_closed_form:
            return self._closed_form(alphas)
        rows, columns = self.sides()
        found = minimize_table(
            self.loss, rows, columns, alphas, tol=self.tol, max_iter=self.max_iter, watch=watch
        )
        coef = found.coef if rows.back is None else rows.back @ found.coef
        coef = coef if columns.back is None else coef @ columns.back.T
        return found._replace(coef=coef)

    def _closed_form(self, alphas: Array) -> Solutions:
        table, back = self.complete, self.rows.back
        coef = [back @ table.coefficients(self.shift(alpha)) for alpha in alphas]
        if self.columns.matrix is not None:
            coef = [each @ self.columns.back.T for each in coef]
        values = table.values
        is_definite = values.min(initial=0.0) >= INDEFINITE * np.abs(values).max(initial=0.0)
        return Solutions(np.stack(coef), bool(is_definite))
