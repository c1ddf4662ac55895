"""Cross-validation of tables: rows, columns or both are held out, each row is a group.

=========  ============================================  =====================================
held out   complete table, one at a time                 all other cases
=========  ============================================  =====================================
rows       `DyadicProblem.leave_row_out_scores`          refits for folds of rows; one row at
                                                         a time by the exact leave-group-out of
                                                         RankRLS on the features of all cells,
                                                         if these are few
columns    `DyadicProblem.leave_column_out_scores`       refits for folds of columns
both       folds of rows, for each fold                  refits for folds of rows times folds
           `DyadicProblem.leave_column_out_scores_at`    of columns
           its rows
=========  ============================================  =====================================

Held-out scores must be comparable between folds. The scores of a row are therefore centered at its
mean score over the training columns; scores of one list of cells are on the scale of Y.
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
from rankwise.kernels.stable_products import first_equal_rows
from rankwise.losses import SquaredLoss
from rankwise.metrics import Metric
from rankwise.metrics.by_group import metric_by_group
from rankwise.model_selection.candidate_evaluation import CrossValidationResult, TableTask
from rankwise.model_selection.candidate_grid import CandidateGrid, default_alphas
from rankwise.model_selection.conformal import held_out_gaps
from rankwise.model_selection.folds import EXACT_FOLDS, REFIT_FOLDS, Folds, make_folds, read_splits
from rankwise.model_selection.shortcuts import check_pairs_remain, cross_val_scores
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

    def default_values(self, _: str) -> Array:
        """40 alphas from the rounding error to 1e4 times the mean squared distance in a pair."""
        # The kernel of cells is a product, and so is the mean squared distance of two cells.
        with np.errstate(over="ignore", invalid="ignore"):  # reported below
            row_spread = self.problem.rows.spread()  # total variance of the features
            column_spread = self.problem.columns.spread()
            mean_squared_distance = row_spread * column_spread
        if not np.isfinite(mean_squared_distance):
            raise ValueError(OVERFLOW)
        return default_alphas(mean_squared_distance)

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
        holds_out_one = cv is None or isinstance(cv, str)  # "auto": one if there is a shortcut

        # use shortcuts without refits if there are any
        if self.leave == "rows" and holds_out_one:
            return self._leave_one_row_out(alphas, cv)
        if self.problem.has_closed_form:
            if self.leave == "columns" and holds_out_one:
                return self._leave_one_column_out(alphas)
            if self.leave == "both" and (holds_out_one or isinstance(cv, int)):
                return self._leave_one_column_out_of_row_folds(alphas, cv)
        return self._refit_folds(alphas, cv)

    def leave_out(self, alphas: ArrayLike | None, cv: CrossValidation) -> Array:
        """Held-out scores of all cells for several alphas, or for the alpha of the learner."""
        if alphas is None:
            only_alpha = check_alphas([self.learner.alpha], "alphas")
            scores = self._by_rows_of_user(self.held_out(only_alpha, cv).scores)
            return np.asarray(scores[:, :, 0])
        checked_alphas = check_alphas(alphas, "alphas")
        return self._by_rows_of_user(self.held_out(checked_alphas, cv).scores)

    def gaps_to_best_column(self, alpha: float, cv: CrossValidation = "auto") -> Array:
        """Distances from the top score of each held-out row to its best column; see `best_sets`."""
        # The gap of a row: its largest predicted score, minus that of its truly best column
        held_out = self.held_out(np.array([alpha]), cv)
        scores = held_out.scores[:, :, 0]  # of the only alpha
        Y = self.problem.loss.Y
        n_rows, n_columns = Y.shape
        row_of_cell = np.repeat(np.arange(n_rows), n_columns)
        return held_out_gaps(Y.ravel(), scores.ravel(), row_of_cell)

    def evaluate(
        self, candidates: CandidateGrid, cv: CrossValidation, metrics: Sequence[Metric]
    ) -> CrossValidationResult:
        """Metrics of the observed cells of each held-out row, for every alpha."""
        held_out = self.held_out(candidates.axes["alpha"], cv)
        loss = self.problem.loss
        is_scored = loss.is_observed & ~np.isnan(held_out.scores).any(axis=2)

        # Each row is a group, unless all cells are one list.
        group_of_cell, _ = np.nonzero(is_scored)
        if loss.cells_are_one_list:
            group_of_cell = np.zeros_like(group_of_cell)
        group_labels, group_codes = np.unique(group_of_cell, return_inverse=True)
        groups = Groups(group_codes, group_labels)

        # `metric_by_group` expects an axis of outputs, here one.
        y = loss.Y[is_scored][:, None]
        scores = held_out.scores[is_scored][:, None]  # (n_cells, 1, n_alphas)
        values_by_metric = {
            metric.name: metric_by_group(metric, y, groups, None, scores) for metric in metrics
        }
        predictions = self._by_rows_of_user(held_out.scores).reshape(-1, 1, len(candidates))
        return CrossValidationResult(
            candidates,
            values_by_metric,
            group_labels,
            held_out.scheme,
            held_out.n_folds,
            held_out.refits,
            predictions,
        )

    def _by_rows_of_user(self, scores: Array) -> Array:
        """Scores by the rows and columns that the user passed."""
        if self.is_transposed:  # the rows of the problem are columns of the user's table
            return scores.swapaxes(0, 1)
        return scores

    def _leave_one_row_out(self, alphas: Array, cv: CrossValidation) -> HeldOutTable:
        """Models without each row, by refits if there is no shortcut."""
        if self.problem.has_closed_form:
            scores = self.problem.leave_row_out_scores(alphas)
        elif _cell_features_fit_in_memory(self.problem):
            scores = _leave_row_out_by_cell_features(self.problem, alphas)
        else:
            return self._refit_folds(alphas, cv)
        n_rows, _ = self.problem.loss.shape
        check_pairs_remain(n_rows > 1)
        scores = self._with_equal_scores_of_equal_columns(scores)
        return HeldOutTable(scores, f"leave-{self._row_name}-out", n_rows, refits=False)

    def _with_equal_scores_of_equal_columns(self, scores: Array) -> Array:
        """Give columns with equal features equal scores, so that rounding does not order them.

        In each row they get the score of the first of them that has one; cells without a score
        stay without.
        """
        columns = self.problem.columns
        if not isinstance(columns, DecomposedSide):  # labels have no features
            return scores
        first_equal_column = first_equal_rows(columns.matrix)
        if first_equal_column is None:
            return scores
        scores = scores.copy()
        rows = np.arange(len(scores))
        for column in np.unique(first_equal_column):
            is_equal = first_equal_column == column
            equal_scores = scores[:, is_equal]  # rows × equal columns × alphas
            is_missing = np.isnan(equal_scores)
            first_known = np.argmin(is_missing[:, :, 0], axis=1)
            score_of_row = equal_scores[rows, first_known][:, np.newaxis]
            scores[:, is_equal] = np.where(is_missing, np.nan, score_of_row)
        return scores

    def _leave_one_column_out(self, alphas: Array) -> HeldOutTable:
        _, n_columns = self.problem.loss.shape
        check_pairs_remain(n_columns > 2)  # two columns to compare remain
        scores = self.problem.leave_column_out_scores(alphas)
        return HeldOutTable(scores, f"leave-{self._column_name}-out", n_columns, refits=False)

    def _leave_one_column_out_of_row_folds(
        self, alphas: Array, cv: CrossValidation
    ) -> HeldOutTable:
        """Models without each fold of rows, and from these the models without each column."""
        problem = self.problem
        n_rows, n_columns = problem.loss.shape
        check_pairs_remain(n_columns > 2)  # two columns to compare remain
        all_columns = np.arange(n_columns)
        folds = _make_folds_of_side(cv, n_rows, EXACT_FOLDS)
        scores = np.empty((n_rows, n_columns, len(alphas)))
        for held_rows in track(folds, f"refitting without some {self._row_name}s"):
            train_rows = np.setdiff1d(np.arange(n_rows), held_rows)
            held_row_basis_values = problem.rows.basis_values_at(held_rows, train_rows)
            train_problem = problem.subset(train_rows, all_columns)
            scores[held_rows] = train_problem.leave_column_out_scores_at(
                held_row_basis_values, alphas
            )
        scheme = f"folds of {self._row_name}s, leave-{self._column_name}-out"
        return HeldOutTable(scores, scheme, len(folds), refits=False)

    def _refit_folds(self, alphas: Array, cv: CrossValidation) -> HeldOutTable:
        """Refits without folds of rows, of columns, or of rows times columns."""
        n_rows, n_columns = self.problem.loss.shape
        hold_out_nothing: Folds = [np.empty(0, np.intp)]
        row_folds = hold_out_nothing
        column_folds = hold_out_nothing
        held_out_names = []
        if self.leave in ("rows", "both"):
            row_folds = _make_folds_of_side(cv, n_rows, REFIT_FOLDS)
            held_out_names.append(self._row_name)
        if self.leave in ("columns", "both"):
            column_folds = _make_folds_of_side(cv, n_columns, REFIT_FOLDS)
            held_out_names.append(self._column_name)

        folds = list(itertools.product(row_folds, column_folds))
        held_out_units = " and ".join(f"{name}s" for name in held_out_names)
        scheme = f"folds of {held_out_units}"
        if cv is None and self.leave != "both":  # None: one row or column at a time
            scheme = f"leave-{held_out_names[0]}-out"
        scores = np.empty((n_rows, n_columns, len(alphas)))
        for held_rows, held_columns in track(folds, f"refitting without some {held_out_units}"):
            _fill_scores_of_refits(self.problem, held_rows, held_columns, alphas, scores)
        return HeldOutTable(scores, scheme, len(folds), refits=True)


def _fill_scores_of_refits(
    problem: DyadicProblem,
    held_rows: Indices,
    held_columns: Indices,
    alphas: Array,
    scores: Array,
) -> None:
    """Fill the scores of held-out rows and columns by models without them.

    If no rows, or no columns, are held out, all of them are scored.
    """
    n_rows, n_columns = problem.loss.shape
    train_rows = np.setdiff1d(np.arange(n_rows), held_rows)
    train_columns = np.setdiff1d(np.arange(n_columns), held_columns)
    scored_rows = held_rows
    if not len(held_rows):  # only columns are held out: score them in all rows
        scored_rows = train_rows
    scored_columns = held_columns
    if not len(held_columns):  # only rows are held out: score all of their columns
        scored_columns = train_columns
    scored_cells = np.ix_(scored_rows, scored_columns)

    train_problem = problem.subset(train_rows, train_columns)
    check_pairs_remain(train_problem.loss.n_pairs > 0)
    coef_per_alpha = train_problem.solve(alphas).coef
    # Basis functions of a side: its features, or kernel values to each of its training items
    row_basis_values = problem.rows.basis_values_at(scored_rows, train_rows)

    if not isinstance(problem.columns, DecomposedSide):  # labels: one column of coef for each
        for alpha_index, coef in enumerate(coef_per_alpha):
            fold_scores = np.asarray(row_basis_values @ coef)
            fold_scores -= fold_scores.mean(axis=1, keepdims=True)  # only differences are learned
            scores[:, :, alpha_index][scored_cells] = fold_scores
        return

    column_basis_values = np.asarray(problem.columns.basis_values_at(scored_columns, train_columns))
    if not problem.loss.cells_are_one_list:  # center scores at their mean over training columns
        train_basis_values = np.asarray(
            problem.columns.basis_values_at(train_columns, train_columns)
        )
        column_basis_values = column_basis_values - train_basis_values.mean(axis=0)
    for alpha_index, coef in enumerate(coef_per_alpha):
        fold_scores = np.linalg.multi_dot([row_basis_values, coef, column_basis_values.T])
        if problem.loss.cells_are_one_list:  # scores are on the scale of Y
            fold_scores = fold_scores + train_problem.mean_residual(coef)
        scores[:, :, alpha_index][scored_cells] = fold_scores


def _cell_features_fit_in_memory(problem: DyadicProblem) -> bool:
    """Whether the features of all observed cells fit in little memory."""
    if not problem.rows.is_decomposed:  # the rows have too many features
        return False
    if problem.loss.cells_are_one_list:  # a row is not a group, which the shortcut holds out
        return False
    # After a singular value decomposition there are at most as many features as items.
    n_row_features = min(problem.rows.matrix.shape)
    _, n_column_features = problem.loss.shape  # labels: one feature each
    if isinstance(problem.columns, DecomposedSide):
        n_column_features = min(problem.columns.matrix.shape)
    n_cells = problem.loss.is_observed.sum()
    return bool(n_row_features * n_column_features * n_cells <= FEW_ENTRIES)


def _leave_row_out_by_cell_features(problem: DyadicProblem, alphas: Array) -> Array:
    """Leave-row-out as leave-group-out of RankRLS on the features of all observed cells."""
    rows, columns = problem.preconditioned_sides()  # any features of the kernels would do
    column_features = columns.features
    if column_features is None:  # labels
        _, n_columns = problem.loss.shape
        column_features = np.eye(n_columns)

    # The features of a cell are all products of a feature of its row and one of its column.
    row_of_cell, column_of_cell = np.nonzero(problem.loss.is_observed)
    n_cells = len(row_of_cell)
    row_features_of_cell = rows.features[row_of_cell][:, :, None]
    column_features_of_cell = column_features[column_of_cell][:, None, :]
    cell_features = (row_features_of_cell * column_features_of_cell).reshape(n_cells, -1)
    _, n_features = cell_features.shape
    solver_input = SolverInput("primal", cell_features, ColumnFeatures(None, n_features))

    # One fold per row: cells are sorted by row, so a fold starts where the row changes.
    fold_starts = np.flatnonzero(np.diff(row_of_cell)) + 1
    folds = np.split(np.arange(n_cells), fold_starts)
    loss = SquaredLoss(problem.loss.graph)
    no_limits: IterationLimits = {}  # the solver is direct
    cell_scores = cross_val_scores(loss, solver_input, folds, alphas, no_limits)
    scores = np.full((*problem.loss.shape, len(alphas)), np.nan)
    scores[row_of_cell, column_of_cell] = cell_scores[:, 0]  # of the only output
    return scores


def _make_folds_of_side(cv: CrossValidation, n_items: int, n_default_folds: int) -> Folds:
    """Folds of rows (or columns); None for one at a time, "auto" for the default number."""
    if isinstance(cv, str):  # "auto"
        cv = min(n_default_folds, n_items)
    if cv is None:  # one item at a time
        return [np.array([item]) for item in range(n_items)]
    one_group = ScoreGraph(np.zeros(n_items))  # `make_folds` splits the items of a graph
    return make_folds(cv, one_group)
