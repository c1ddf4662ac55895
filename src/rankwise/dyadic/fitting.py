"""From a table of scores to its loss and its solution, with checks and warnings."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from rankwise.arrays import Array
from rankwise.dyadic.loss import DyadicLoss
from rankwise.dyadic.solver import DyadicProblem
from rankwise.formatting import count
from rankwise.rankers.ranking_problem import warn_about_solutions
from rankwise.runtime.progress import Progress
from rankwise.solvers import Solutions
from rankwise.validation import check_alphas, check_sample_weight


def check_table(Y: Array, row: str, column: str) -> Array:
    """Return Y if it has two columns, finite scores, and a score in each row and column.

    `row` and `column` are the words for rows and columns in messages, such as "instance" and
    "label".
    """
    if Y.ndim != 2:
        raise ValueError(f"Y has shape {Y.shape}; expected a table, a {row} in each row.")
    if Y.shape[1] < 2:
        raise ValueError(
            f"Y has the scores of one {column} only; expected at least two {column}s to rank for "
            f"each {row}. To rank a list with one score per {row}, use RankRLS."
        )
    if np.isinf(Y).any():
        i, j = np.argwhere(np.isinf(Y))[0]
        raise ValueError(
            f"Y contains infinity, the first in row {i}, column {j}; pass finite scores, and NaN "
            "where a score is unknown."
        )
    is_missing = np.isnan(Y)
    for axis, unit in ((1, row), (0, column)):
        empty = np.flatnonzero(is_missing.all(axis=axis))
        if len(empty):
            raise ValueError(
                f"Y has no score for {count(len(empty), unit)}, the first is number {empty[0]}; "
                f"drop each {unit} without a score."
            )
    return Y


def table_loss(
    Y: Array,
    *,
    cost: str,
    ties: str,
    group_weight: str,
    sample_weight: ArrayLike | None = None,
    one_list: bool = False,
) -> DyadicLoss:
    """The loss of a checked table, which must have a pair to rank.

    A row of weight 2 counts as two equal rows.
    """
    weight = None
    if sample_weight is not None:
        weight = check_sample_weight(sample_weight, len(Y))
    if weight is not None and group_weight == "groups":
        raise ValueError(
            "sample_weight needs group_weight='pairs'; with group_weight='groups' all rows have "
            "equal weight."
        )
    if weight is not None and (weight == weight[0]).all():
        weight = None
    loss = DyadicLoss(
        Y, cost=cost, ties=ties, group_weight=group_weight, one_list=one_list, weight=weight
    )
    if not loss.n_pairs:
        raise ValueError(
            "there is nothing to rank: Y has no two scores that can be compared. With "
            "ties='exclude' equal scores are not compared."
        )
    return loss


def solve_problem(problem: DyadicProblem, alpha: float, name: str, kernel: object) -> Solutions:
    """The solution for one alpha, with a progress line and warnings.

    `name` is the name of the estimator, and `kernel` what a warning calls its kernel.
    """
    progress = Progress(name)
    solution = problem.solve(check_alphas([alpha], "alpha"), watch=progress.iteration)
    progress.close()
    warn_about_solutions(solution, kernel, problem.tol)
    return solution
