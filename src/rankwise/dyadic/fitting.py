"""From a table of scores to its loss and its solution, with checks and warnings."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike

from rankwise.arrays import Array, MatrixLike
from rankwise.dyadic.loss import DyadicLoss
from rankwise.dyadic.solver import DyadicProblem
from rankwise.formatting import count
from rankwise.frames import as_array, check_same_index
from rankwise.rankers.ranking_problem import warn_about_solutions
from rankwise.runtime.progress import Progress
from rankwise.solvers import Solutions
from rankwise.validation import check_alphas, check_float_array, check_sample_weight


def check_order_of_table(rows: MatrixLike, columns: MatrixLike, Y: Any) -> None:
    """Raise a ValueError if a frame Y has the rows or columns of the features in another order."""
    check_same_index(rows=rows, Y=Y)
    if hasattr(Y, "iloc"):
        check_same_index(columns=columns, **{"Y.T": Y.T})


def read_table(Y: ArrayLike) -> Array:
    """The table of scores as floats, with NaN where unknown."""
    if sp.issparse(Y):
        raise ValueError(
            "Y is a sparse matrix, in which a missing cell is the same as a score of 0; pass "
            "an array with NaN where a score is unknown."
        )
    advice = "pass real numbers, NaN where a score is unknown"
    return check_float_array("Y", as_array(Y, "Y"), advice)


def check_table(Y: Array, row_name: str, column_name: str) -> Array:
    """Return Y if it has two columns, finite scores, and a score in each row and column.

    `row_name` and `column_name` are the words for rows and columns in messages, such as "instance"
    and "label".
    """
    if Y.ndim != 2:
        raise ValueError(f"Y has shape {Y.shape}; expected a table, a {row_name} in each row.")
    if Y.shape[1] < 2:
        raise ValueError(
            f"Y has the scores of one {column_name} only; expected at least two {column_name}s to "
            f"rank for each {row_name}. To rank a list with one score per {row_name}, use RankRLS."
        )
    if np.isinf(Y).any():
        row_number, column_number = np.argwhere(np.isinf(Y))[0]
        raise ValueError(
            f"Y contains infinity, the first in row {row_number}, column {column_number}; pass "
            "finite scores, and NaN where a score is unknown."
        )
    is_missing = np.isnan(Y)
    empty_rows = np.flatnonzero(is_missing.all(axis=1))
    empty_columns = np.flatnonzero(is_missing.all(axis=0))
    for empty, name in ((empty_rows, row_name), (empty_columns, column_name)):
        if len(empty):
            raise ValueError(
                f"Y has no score for {count(len(empty), name)}, the first is number {empty[0]}; "
                f"drop each {name} without a score."
            )
    return Y


def make_table_loss(
    Y: Array,
    *,
    cost: str,
    ties: str,
    group_weight: str,
    sample_weight: ArrayLike | None = None,
    cells_are_one_list: bool = False,
) -> DyadicLoss:
    """The loss of a checked table, which must have a pair to rank.

    A row of weight 2 counts as two equal rows.
    """
    row_weight = None
    if sample_weight is not None:
        row_weight = check_sample_weight(sample_weight, len(Y))
        if group_weight == "groups":
            raise ValueError(
                "sample_weight needs group_weight='pairs'; with group_weight='groups' all rows "
                "have equal weight."
            )
        has_equal_weights = (row_weight == row_weight[0]).all()
        if has_equal_weights:  # the same as no weights, for which there are closed forms
            row_weight = None
    loss = DyadicLoss(
        Y,
        cost=cost,
        ties=ties,
        group_weight=group_weight,
        cells_are_one_list=cells_are_one_list,
        weight=row_weight,
    )
    if not loss.n_pairs:
        raise ValueError(
            "there is nothing to rank: Y has no two scores that can be compared. With "
            "ties='exclude' equal scores are not compared."
        )
    return loss


def solve_with_progress(
    problem: DyadicProblem, alpha: float, estimator_name: str, kernel: object
) -> Solutions:
    """The solution for one alpha, with a progress line and warnings.

    `kernel` is the name of the kernel in warnings.
    """
    progress = Progress(estimator_name)
    alphas = check_alphas([alpha], "alpha")
    solution = problem.solve(alphas, watch=progress.iteration)
    progress.close()
    warn_about_solutions(solution, kernel, problem.tol)
    return solution
