"""Cross-validation of tables: rows, columns or both are held out, each row is a group.

=========  ================================================  =====================================
held out   complete table, one at a time                     all other cases
=========  ================================================  =====================================
rows       `DyadicProblem.without_rows`                      refits for folds of rows; one row at
                                                             a time by the exact leave-group-out of
                                                             RankRLS on the features of all cells,
                                                             if these are few
columns    `DyadicProblem.without_columns`                   refits for folds of columns
both       folds of rows, for each fold                      refits for folds of rows times folds
           `DyadicProblem.without_columns_at` its rows       of columns
=========  ================================================  =====================================

Held-out scores must be comparable between folds. Those of a row are therefore centered at its mean
score over the training columns; those of one list of cells are on the scale of Y.
"""

from __future__ import annotations

import itertools
from abc import abstractmethod
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator

from rankwise.arrays import Array, CrossValidation, Indices, ParameterValue
from rankwise.dyadic.sides import OVERFLOW, DecomposedSide
from rankwise.dyadic.solver import DyadicProblem
from rankwise.graphs import ScoreGraph
from rankwise.groups import Groups
from rankwise.kernels.feature_maps import ColumnFeatures
from rankwise.kernels.solver_input import SolverInput
from rankwise.losses import SquaredLoss
from rankwise.metrics import Metric
from rankwise.metrics.by_group import metric_by_group
from rankwise.model_selection.candidate_evaluation import CrossValidationResult, TableTask
from rankwise.model_selection.candidate_grid import CandidateGrid, default_alphas
from rankwise.model_selection.conformal import held_out_gaps
from rankwise.model_selection.folds import EXACT_FOLDS, REFIT_FOLDS, Folds, make_folds, read_splits
from rankwise.model_selection.shortcuts import check_rest, cross_val_scores
from rankwise.runtime.progress import track
from rankwise.solvers.least_squares import IterationLimits
from rankwise.validation import check_alphas, check_option

FEW_ENTRIES = 2**23  # entries of the features of all cells, for leave-row-out of incomplete tables


class HeldOutTable(NamedTuple):
    """Held-out scores of a table.

    Attributes
    ----------
    scores : ndarray of shape (q, t, n_alphas)
        Scores by models without the row, the column or both; NaN in missing cells if only the
        observed cells were scored.
    scheme : str
        What was held out, such as "leave-row-out" or "folds of columns".
    n_folds : int
        Number of folds.
    refits : bool
        Whether the model was refitted for each fold.
    """

    scores: Array
    scheme: str
    n_folds: int
    refits: bool


class DyadicTask(TableTask):
    """A learner of tables with its data; evaluates all alphas at once. A subclass has `train`.

    Parameters
    ----------
    learner : estimator
        Learner with its alpha.
    problem : DyadicProblem
        The table; the columns of each row are ranked.
    leave : {"rows", "columns", "both"}
        What is held out.
    is_transposed : bool
        Whether rows of the table are columns of the user's table.
    """

    parameters = ("alpha",)

    def __init__(
        self,
        learner: BaseEstimator,
        problem: DyadicProblem,
        leave: str = "rows",
        *,
        is_transposed: bool = False,
    ) -> None:
        check_option("leave", leave, ("rows", "columns", "both"))
        self.learner = learner
        self.problem = problem
        self.leave = leave
        self.is_transposed = is_transposed
        self._row_name = "row"
        self._column_name = "column"
        if is_transposed:
            self._row_name = "column"
            self._column_name = "row"

    @abstractmethod
    def train(self, **values: ParameterValue) -> BaseEstimator:
        """The learner fitted to all data, with this alpha."""

    def default_values(self, name: str) -> Array:
        """40 alphas from rounding to 1e4 times the mean squared distance in a pair."""
        with np.errstate(over="ignore", invalid="ignore"):
            scale = self.problem.rows.spread() * self.problem.columns.spread()
        if not np.isfinite(scale):
            raise ValueError(OVERFLOW)
        return default_alphas(scale)

    def held_out(self, alphas: Array, cv: CrossValidation) -> HeldOutTable:
        """Held-out scores of all cells.

        Parameters
        ----------
        alphas : ndarray of shape (n_alphas,)
            Positive.
        cv : "auto", None, int, splitter or iterable
            None holds out one row or column at a time. "auto" does so if that requires no refits;
            otherwise it makes five folds.

        Returns
        -------
        HeldOutTable
            Scores, and how they were computed.
        """
        cv = read_splits(cv)
        if isinstance(cv, str):
            check_option("cv", cv, ("auto",))
        holds_out_one = cv is None or isinstance(cv, str)
        if holds_out_one and self.leave == "rows":
            return self._leave_one_row_out(alphas, cv)
        if not self.problem.has_closed_form:
            return self._refit_folds(alphas, cv)
        if holds_out_one and self.leave == "columns":
            return self._leave_one_column_out(alphas)
        if self.leave == "both" and (holds_out_one or isinstance(cv, int)):
            return self._row_folds_without_columns(alphas, cv)
        return self._refit_folds(alphas, cv)

    def leave_out(self, alphas: ArrayLike | None, cv: CrossValidation) -> Array:
        """Held-out scores of all cells for several alphas, or for that of the learner."""
        if alphas is None:
            alpha = check_alphas([self.learner.alpha], "alphas")
            return np.asarray(self._as_passed(self.held_out(alpha, cv).scores)[:, :, 0])
        return self._as_passed(self.held_out(check_alphas(alphas, "alphas"), cv).scores)

    def gaps(self, alpha: float, cv: CrossValidation = "auto") -> Array:
        """Distances from the top score of each held-out row to its best column; see `best_sets`."""
        scores = self.held_out(np.array([alpha]), cv).scores[:, :, 0]
        Y = self.problem.loss.Y
        row_of_cell = np.repeat(np.arange(len(Y)), Y.shape[1])
        return held_out_gaps(Y.ravel(), scores.ravel(), row_of_cell)

    def evaluate(
        self, candidates: CandidateGrid, cv: CrossValidation, metrics: Sequence[Metric]
    ) -> CrossValidationResult:
        """Metrics of the observed cells of each held-out row, for every alpha."""
        held_out = self.held_out(candidates.axes["alpha"], cv)
        loss = self.problem.loss
        is_scored = loss.is_observed & ~np.isnan(held_out.scores).any(axis=2)
        row_of_cell = np.nonzero(is_scored)[0]
        group_of_cell = row_of_cell
        if loss.one_list:
            group_of_cell = np.zeros_like(row_of_cell)
        labels, codes = np.unique(group_of_cell, return_inverse=True)
        y = loss.Y[is_scored][:, None]
        scores = held_out.scores[is_scored][:, None]
        values = {
            metric.name: metric_by_group(metric, y, Groups(codes, labels), None, scores)
            for metric in metrics
        }
        predictions = self._as_passed(held_out.scores).reshape(-1, 1, len(candidates))
        return CrossValidationResult(
            candidates,
            values,
            labels,
            held_out.scheme,
            held_out.n_folds,
            held_out.refits,
            predictions,
        )

    def _as_passed(self, scores: Array) -> Array:
        """Scores by the rows and columns that the user passed."""
        if self.is_transposed:
            return scores.swapaxes(0, 1)
        return scores

    def _leave_one_row_out(self, alphas: Array, cv: CrossValidation) -> HeldOutTable:
        """Models without each row, by refits if there is no shortcut."""
        if self.problem.has_closed_form:
            scores = self.problem.without_rows(alphas)
        elif _has_few_features(self.problem):
            scores = _without_rows_of_features(self.problem, alphas)
        else:
            return self._refit_folds(alphas, cv)
        n_rows = self.problem.loss.shape[0]
        check_rest(n_rows > 1)
        return HeldOutTable(scores, f"leave-{self._row_name}-out", n_rows, refits=False)

    def _leave_one_column_out(self, alphas: Array) -> HeldOutTable:
        n_columns = self.problem.loss.shape[1]
        check_rest(n_columns > 2)
        scores = self.problem.without_columns(alphas)
        return HeldOutTable(scores, f"leave-{self._column_name}-out", n_columns, refits=False)

    def _row_folds_without_columns(self, alphas: Array, cv: CrossValidation) -> HeldOutTable:
        """Models without each fold of rows, and of these the ones without each column."""
        problem = self.problem
        n_rows, n_columns = problem.loss.shape
        check_rest(n_columns > 2)
        folds = _folds(cv, n_rows, EXACT_FOLDS)
        scores = np.empty((n_rows, n_columns, len(alphas)))
        for held_rows in track(folds, f"refitting without some {self._row_name}s"):
            train_rows = np.setdiff1d(np.arange(n_rows), held_rows)
            new_rows = problem.rows.functions_at(held_rows, train_rows)
            rest = problem.subset(train_rows, np.arange(n_columns))
            scores[held_rows] = rest.without_columns_at(new_rows, alphas)
        scheme = f"folds of {self._row_name}s, leave-{self._column_name}-out"
        return HeldOutTable(scores, scheme, len(folds), refits=False)

    def _refit_folds(self, alphas: Array, cv: CrossValidation) -> HeldOutTable:
        """Refits without folds of rows, of columns, or of rows times columns."""
        nothing: Folds = [np.empty(0, np.intp)]
        row_folds = nothing
        column_folds = nothing
        n_rows, n_columns = self.problem.loss.shape
        units = []
        if self.leave in ("rows", "both"):
            row_folds = _folds(cv, n_rows, REFIT_FOLDS)
            units.append(f"{self._row_name}s")
        if self.leave in ("columns", "both"):
            column_folds = _folds(cv, n_columns, REFIT_FOLDS)
            units.append(f"{self._column_name}s")
        unit = " and ".join(units)
        folds = list(itertools.product(row_folds, column_folds))
        scores = np.empty((n_rows, n_columns, len(alphas)))
        for held_rows, held_columns in track(folds, f"refitting without some {unit}"):
            _refit_without(self.problem, held_rows, held_columns, alphas, scores)
        scheme = f"folds of {unit}"
        if cv is None and len(units) == 1:
            scheme = f"leave-{unit.removesuffix('s')}-out"
        return HeldOutTable(scores, scheme, len(folds), refits=True)


def _refit_without(
    problem: DyadicProblem,
    held_rows: Indices,
    held_columns: Indices,
    alphas: Array,
    scores: Array,
) -> None:
    """Fill the scores of held-out rows and columns by models without them.

    If no rows, or no columns, are held out, all of them are scored.
    """
    all_rows = np.arange(problem.loss.shape[0])
    all_columns = np.arange(problem.loss.shape[1])
    train_rows = np.setdiff1d(all_rows, held_rows)
    train_columns = np.setdiff1d(all_columns, held_columns)
    scored_rows = all_rows
    scored_columns = all_columns
    if len(held_rows):
        scored_rows = held_rows
    if len(held_columns):
        scored_columns = held_columns
    rest = problem.subset(train_rows, train_columns)
    check_rest(rest.loss.n_pairs > 0)
    new_rows = problem.rows.functions_at(scored_rows, train_rows)
    solutions = rest.solve(alphas).coef
    if not isinstance(problem.columns, DecomposedSide):
        for k, B in enumerate(solutions):
            fold_scores = np.asarray(new_rows @ B)
            fold_scores -= fold_scores.mean(axis=1, keepdims=True)
            scores[scored_rows[:, None], scored_columns, k] = fold_scores
        return
    new_columns = np.asarray(problem.columns.functions_at(scored_columns, train_columns))
    if not problem.loss.one_list:  # scores are centered at their mean over the training columns
        trained = np.asarray(problem.columns.functions_at(train_columns, train_columns))
        new_columns = new_columns - trained.mean(axis=0)
    for k, B in enumerate(solutions):
        fold_scores = np.linalg.multi_dot([new_rows, B, new_columns.T])
        if problem.loss.one_list:
            fold_scores = fold_scores + rest.mean_residual(B)
        scores[scored_rows[:, None], scored_columns, k] = fold_scores


def _has_few_features(problem: DyadicProblem) -> bool:
    """Whether the features of all observed cells fit in little memory."""
    if not problem.rows.is_decomposed or problem.loss.one_list:
        return False
    n_features = min(problem.rows.matrix.shape)
    if isinstance(problem.columns, DecomposedSide):
        n_features *= min(problem.columns.matrix.shape)
    else:
        n_features *= problem.loss.shape[1]
    return bool(n_features * problem.loss.is_observed.sum() <= FEW_ENTRIES)


def _without_rows_of_features(problem: DyadicProblem, alphas: Array) -> Array:
    """Leave-row-out as leave-group-out of RankRLS on the features of all observed cells."""
    n_columns = problem.loss.shape[1]
    rows, columns = problem.preconditioned_sides()
    column_features = columns.features
    if column_features is None:
        column_features = np.eye(n_columns)
    i, j = np.nonzero(problem.loss.is_observed)
    products = rows.features[i][:, :, None] * column_features[j][:, None, :]
    R = products.reshape(len(i), -1)
    features = SolverInput("primal", R, ColumnFeatures(None, R.shape[1]))
    folds = np.split(np.arange(len(i)), np.flatnonzero(np.diff(i)) + 1)
    loss = SquaredLoss(problem.loss.graph)
    no_limits: IterationLimits = {}  # the solver is direct
    scores = np.full((*problem.loss.shape, len(alphas)), np.nan)
    scores[i, j] = cross_val_scores(loss, features, folds, alphas, no_limits)[:, 0]
    return scores


def _folds(cv: CrossValidation, n: int, n_default: int) -> Folds:
    """Folds of n rows or columns; None for one at a time, "auto" for `n_default` folds."""
    if isinstance(cv, str):
        cv = min(n_default, n)
    if cv is None:
        return list(np.arange(n)[:, None])
    return make_folds(cv, ScoreGraph(np.zeros(n)))
