"""Checks, loss and solution of dyadic problems, shared by label ranking and conditional ranking."""

from __future__ import annotations

from typing import Any

import numpy as np

from rankwise.arrays import Array
from rankwise.dyadic.loss import DyadicLoss
from rankwise.dyadic.solver import DyadicProblem
from rankwise.formatting import count
from rankwise.rankers.ranking_problem import warn_about_solutions
from rankwise.runtime.progress import Progress
from rankwise.solvers import Solutions
from rankwise.validation import check_alphas, check_sample_weight


def check_table(Y: Array, row: str, column: str) -> Array:
    """Two columns or more, no infinity, and in each row and column a known score."""
    if Y.ndim != 2:
        raise ValueError(f"Y has shape {Y.shape}; expected a table, a {row} in each row.")
    if Y.shape[1] < 2:
        raise ValueError(
            f"Y has the scores of one {column} only; expected at least two {column}s to rank for "
            f"each {row}. One score for each {row} is a list of items: RankRLS ranks those."
        )
    if np.isinf(Y).any():
        i, j = np.argwhere(np.isinf(Y))[0]
        raise ValueError(
            f"Y contains infinity, the first in row {i}, column {j}; give finite scores, and NaN "
            "where a score is unknown."
        )
    for axis, what in ((1, row), (0, column)):
        empty = np.flatnonzero(np.isnan(Y).all(axis=axis))
        if len(empty):
            raise ValueError(
                f"Y has no score for {count(len(empty), what)}, the first is number {empty[0]}; "
                "leave out what has none."
            )
    return Y


def table_loss(
    model: Any, Y: Array, ties: str, sample_weight: Any = None, *, one_list: bool = False
) -> DyadicLoss:
    """The loss of a checked table with the cost of a model, refused without pairs.

    A row of weight 2 counts as two equal ones.
    """
    options = {"cost": model.cost, "ties": ties, "group_weight": model.group_weight}
    weight = None if sample_weight is None else check_sample_weight(sample_weight, len(Y))
    if weight is not None and model.group_weight == "groups":
        raise ValueError("sample_weight needs group_weight='pairs': groups count alike otherwise.")
    if weight is not None and (weight == weight[0]).all():
        weight = None
    loss = DyadicLoss(Y, **options, one_list=one_list, weight=weight)
    if not loss.n_pairs:
        raise ValueError(
            "there is nothing to rank: no two known scores can be compared (equal ones do not "
            "count if ties are left out)."
        )
    return loss


def solve_table(model: Any, table: DyadicProblem, kernel: Any) -> Solutions:
    """The solution of the alpha of a model, with a progress line and warnings."""
    line = Progress(type(model).__name__)
    solution = table.solve(check_alphas([model.alpha], "alpha"), watch=line.iteration)
    line.close()
    warn_about_solutions(solution, kernel, model.tol)
    return solution
