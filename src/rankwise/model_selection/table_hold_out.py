"""Scores of held-out rows or columns of a table, as models without them would give. Exact.

=========  ==========================================  =========================================
held out   complete table, one at a time               anything else
=========  ==========================================  =========================================
rows       `CompleteTable.without_rows`                folds of rows; one at a time from the
                                                       features of all cells, if these are few
columns    `CompleteTable.without_columns`             folds of columns
both       folds of rows, in each of them              folds of rows times folds of columns
           `new_rows_without_columns`
=========  ==========================================  =========================================

Folds are trained again. The scores of a row are counted from their mean over the columns that were
trained on, so that those of different folds can be compared.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from rankwise.arrays import Array, Indices
from rankwise.features import Design, FeatureMap, Kernel
from rankwise.graphs import ScoreGraph
from rankwise.losses import SquaredLoss
from rankwise.machine import track
from rankwise.model_selection.exact_hold_out import Refit, check_rest, held_out_scores
from rankwise.model_selection.folds import Folds, make_folds
from rankwise.options import check_option
from rankwise.solvers.table_problem import TableProblem
from rankwise.solvers.tables import table_shift

LEAVE = ("rows", "columns", "both")
EXACT_FOLDS, REFIT_FOLDS = 10, 5
FEW_ENTRIES = 2**23  # of the features of all cells, for leave-row-out of incomplete tables


class HeldOutTable(NamedTuple):
    """Held-out scores of a table.

    Attributes
    ----------
    scores : ndarray of shape (q, t, n_alphas)
        Scores by models without the row, the column or the cell; nan in unknown cells if only the
        known ones were scored.
    way : str
        What was held out, such as "leave-row-out" or "folds of columns".
    n_folds : int
        Number of folds.
    refits : bool
        Whether each fold was trained again.
    """

    scores: Array
    way: str
    n_folds: int
    refits: bool


def hold_out_table(
    problem: TableProblem, leave: str, cv: Any, alphas: Array, progress: bool | None = None
) -> HeldOutTable:
    """Hold out.

    Parameters
    ----------
    problem : TableProblem
        The table.
    leave : {"rows", "columns", "both"}
        What is held out together.
    cv : "auto", None, int, splitter or iterable
        None holds out one row or column at a time. "auto" does so where that needs no training;
        else it makes five folds.
    alphas : ndarray of shape (n_alphas,)
        Positive.
    progress : bool, optional
        Whether to draw a bar while folds are trained again.
    """
    check_option("leave", leave, LEAVE)
    if isinstance(cv, str):
        check_option("cv", cv, ("auto",))
    if leave == "both":
        return _both(problem, cv, alphas, progress)
    return _one_side(problem, leave, cv, alphas, progress)


def _one_side(
    problem: TableProblem, leave: str, cv: Any, alphas: Array, progress: bool | None
) -> HeldOutTable:
    is_rows = leave == "rows"
    n = problem.loss.shape[0 if is_rows else 1]
    unit = leave.removesuffix("s")
    has_few = is_rows and _has_few_features(problem)
    is_auto = isinstance(cv, str)
    if cv is None or (is_auto and (problem.has_closed_form or has_few)):
        check_rest(n > 2 if leave == "columns" else n > 1)
        if problem.has_closed_form:
            return HeldOutTable(_closed_form(problem, leave, alphas), f"leave-{unit}-out", n, False)
        if has_few:
            held = _from_features(problem, alphas)
            return HeldOutTable(held, f"leave-{unit}-out", n, False)
    folds = _folds(min(REFIT_FOLDS, n) if is_auto else cv, n)
    out = np.empty((*problem.loss.shape, len(alphas)))
    every = np.arange(n)
    for U in track(folds, f"training again without some {leave}", progress):
        rest = np.setdiff1d(every, U)
        if is_rows:
            out[U] = _refit(problem, U, None, rest, None, alphas)
        else:
            out[:, U] = _refit(problem, None, U, None, rest, alphas)
    way = f"leave-{unit}-out" if cv is None else f"folds of {leave}"
    return HeldOutTable(out, way, len(folds), True)


def _closed_form(problem: TableProblem, leave: str, alphas: Array) -> Array:
    (q, t), table = problem.loss.shape, problem.complete
    out = np.empty((len(alphas), q, t))
    for held, alpha in zip(out, alphas, strict=True):
        if leave == "rows":
            held[:] = table.without_rows(table_shift(alpha, q - 1, t))
        else:
            held[:] = table.without_columns(table_shift(alpha, q, t - 1))
    return out.transpose(1, 2, 0)


def _both(problem: TableProblem, cv: Any, alphas: Array, progress: bool | None) -> HeldOutTable:
    q, t = problem.loss.shape
    is_auto = isinstance(cv, str)
    out = np.empty((q, t, len(alphas)))
    if problem.has_closed_form and (cv is None or isinstance(cv, (int, str))):
        check_rest(t > 2)
        row_folds = _folds(min(EXACT_FOLDS, q) if is_auto else cv, q)
        for U in track(row_folds, "training again without some rows", progress):
            rest = np.setdiff1d(np.arange(q), U)
            part = problem.part(rest, None)
            features = problem.rows.seen_from(U, rest) @ part.rows.back
            for k, alpha in enumerate(alphas):
                shift = table_shift(alpha, len(rest), t - 1)
                out[U, :, k] = part.complete.new_rows_without_columns(features, shift)
        return HeldOutTable(out, "folds of rows, leave-column-out", len(row_folds), False)
    row_folds = _folds(min(REFIT_FOLDS, q) if is_auto else cv, q)
    column_folds = _folds(min(REFIT_FOLDS, t) if is_auto else cv, t)
    pairs = [(U, V) for U in row_folds for V in column_folds]
    for U, V in track(pairs, "training again without rows and columns", progress):
        rows, columns = np.setdiff1d(np.arange(q), U), np.setdiff1d(np.arange(t), V)
        out[np.ix_(U, V)] = _refit(problem, U, V, rows, columns, alphas)
    return HeldOutTable(out, "folds of rows and columns", len(pairs), True)


def _refit(
    problem: TableProblem,
    U: Indices | None,
    V: Indices | None,
    rows: Indices | None,
    columns: Indices | None,
    alphas: Array,
) -> Array:
    """Scores of the rows U and columns V by a model of other rows and columns; None for all."""
    part = problem.part(rows, columns)
    check_rest(part.loss.n_pairs > 0)
    q, t = problem.loss.shape
    every_row, every_column = np.arange(q), np.arange(t)
    rows = every_row if rows is None else rows
    columns = every_column if columns is None else columns
    R = problem.rows.seen_from(every_row if U is None else U, rows)
    coef = part.solve(alphas).coef
    out = np.empty((R.shape[0], t if V is None else len(V), len(alphas)))
    S = problem.columns
    for k, B in enumerate(coef):
        weights = np.asarray(R @ B)
        if S.matrix is None:
            held = trained = weights
        else:
            held = weights @ np.asarray(S.seen_from(every_column if V is None else V, columns)).T
            trained = weights @ np.asarray(S.seen_from(columns, columns)).T
        level = trained.mean(axis=1, keepdims=True) if part.loss.ranked == "columns" else 0.0
        out[:, :, k] = held - level
    return out


def _has_few_features(problem: TableProblem) -> bool:
    """Whether the features of all known cells fit in little memory."""
    if problem.loss.ranked != "columns" or not problem.rows.is_decomposable:
        return False
    rows, columns = problem.rows.matrix, problem.columns.matrix
    widths = [min(side.shape) for side in (rows, columns) if side is not None]
    width = np.prod(widths) * (1 if columns is not None else problem.loss.shape[1])
    return bool(width * problem.loss.known.sum() <= FEW_ENTRIES)


def _from_features(problem: TableProblem, alphas: Array) -> Array:
    """Leave-row-out as leave-group-out of RankRLS on the features of all known cells."""
    rows, columns = problem.sides()
    i, j = np.nonzero(problem.loss.known)
    S = np.eye(problem.loss.shape[1]) if columns.features is None else columns.features
    features = (rows.features[i][:, :, None] * S[j][:, None, :]).reshape(len(i), -1)
    graph = problem.loss.graph()
    design = Design("primal", features, FeatureMap(Kernel("linear"), None, features.shape[1]))
    folds = np.split(np.arange(len(i)), np.flatnonzero(np.diff(i)) + 1)
    refit = Refit(problem.tol, problem.max_iter)
    held = held_out_scores(SquaredLoss(graph), design, folds, alphas, refit)[:, 0]
    out = np.full((*problem.loss.shape, len(alphas)), np.nan)
    out[i, j] = held
    return out


def _folds(cv: Any, n: int) -> Folds:
    """Folds of n rows, columns or cells; None for one at a time."""
    if cv is None:
        return list(np.arange(n)[:, None])
    return make_folds(cv, ScoreGraph(np.zeros(n)))
