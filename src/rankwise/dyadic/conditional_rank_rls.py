"""ConditionalRankRLS: rank the columns of a table for each row, by features of both."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.stats import rankdata
from sklearn.base import BaseEstimator, clone
from sklearn.utils.metadata_routing import UNUSED
from sklearn.utils.validation import check_is_fitted

from rankwise.arrays import Array, CrossValidation, MatrixLike, ParameterValue
from rankwise.dyadic.cross_validation import DyadicTask
from rankwise.dyadic.fitting import (
    check_order_of_table,
    check_table,
    make_table_loss,
    read_table,
    solve_with_progress,
)
from rankwise.dyadic.frame_encoding import encode_items, fit_vectorizer
from rankwise.dyadic.solver import DyadicProblem
from rankwise.dyadic.table_items import ExpectedFeatures, TableItems
from rankwise.fitted_schema import (
    FittedSchema,
    Floats,
    Integer,
    Items,
    Labels,
    Model,
    Values,
    check_kernel_items,
)
from rankwise.frames import as_array
from rankwise.kernels.kernel import Kernel, KernelName
from rankwise.metrics import get_metric
from rankwise.metrics.registry import MetricName
from rankwise.rankers.base import RankerMixin
from rankwise.rankers.search import BaseSearch
from rankwise.runtime.memory import check_matrix_fits
from rankwise.runtime.threads import single_threaded
from rankwise.validation import check_float_array, check_option, restored_on_failure

TABLES_IN_MEMORY = 8.0  # tables of the size of Y at a time
RANKED = ("columns", "rows", "cells")


class ConditionalRankRLS(RankerMixin, BaseEstimator):
    """Ranks the columns of a table for each row: targets for a drug, products for a customer.

    Use it if rows and columns both have features, also for rows and columns that are new.

    Rows and columns have features or kernels, G and K, and Y contains scores of cells. The model
    ``F = G A K`` is fitted by RankRLS over the pairs of cells of one row,

        J(f) = 1/W Σ_i Σ_jk ω (y_ij − y_ik − (f_ij − f_ik))² + α ‖f‖²

    with the kernel G(i, i′) K(j, j′) of two cells. It predicts for new rows, new columns, and
    both. If all cells are known, two decompositions give the models of all alphas; otherwise the
    solver uses conjugate gradients, with products of the size of the table. The kernel matrix of
    all cells is never formed. If columns have names but no features, use `LabelRanker`.

    Parameters
    ----------
    alpha : float, default=0.001
        Regularization, positive; relative to the mean over pairs.
    row_kernel : str or callable, default="linear"
        "linear", any other name of `sklearn.metrics.pairwise.pairwise_kernels`, "ngram" for
        a list of texts, a function of two rows, which may be any objects, or "precomputed".
    column_kernel : str or callable, default="linear"
        Kernel of the columns, with the same options.
    row_gamma, column_gamma : float, optional
        Parameter gamma of the named kernels.
    row_kernel_params, column_kernel_params : dict, optional
        "degree" and "coef0" of named kernels, "ngram_range" and "shared" of "ngram", keyword
        arguments of callable ones.
    ranked : {"columns", "rows", "cells"}, default="columns"
        Pairs in the loss: columns of one row, rows of one column, or any two cells, as for
        affinities on one scale. "cells" is solved by conjugate gradients.
    cost, ties, group_weight : str, default="magnitude", "include" and "pairs"
        As in `RankRLS`; the groups are the rows. Anything but ``cost="magnitude",
        ties="include"`` is solved by conjugate gradients.
    fit_intercept : bool or "auto", default="auto"
        Whether the columns have an order that all rows share: the mean of k(x, x) is added to the
        kernel of the rows (to that of the columns if rows are ranked, to both if cells are).
        "auto" adds it to linear kernels only; most other kernels contain a constant.
    tol : float, default=1e-8
        Conjugate gradients stop when the preconditioned norm of the residual is at most this times
        that of the right-hand side.
    max_iter : int, optional
        Largest number of iterations; by default ten times the number of unknowns.

    Attributes
    ----------
    coef_ : ndarray of shape (n_row_functions, n_column_functions)
        Weights of products of features (linear kernels) and of kernel values to the training rows
        or columns (others).
    column_coef_ : ndarray of shape (n_column_functions,)
        Weights of the order that all rows share.
    row_coef_ : ndarray of shape (n_row_functions,)
        Weights of the order of rows that all columns share.
    intercept_ : float
        Constant that puts scores on the scale of Y if cells are ranked, else 0.
    rows_fit_, columns_fit_ : array or sparse matrix
        The training rows and columns (not for linear kernels, nor precomputed ones of rows).
    n_columns_ : int
        Number of training columns.
    feature_names_ : list
        Names of the features of the rows and of the columns, None for features without names.
    n_pairs_, n_iter_, n_features_in_
        As in `RankRLS`; the features are the row features.

    Examples
    --------
    >>> import numpy as np
    >>> from rankwise import ConditionalRankRLS
    >>> rng = np.random.default_rng(0)
    >>> drugs, targets = rng.standard_normal((20, 3)), rng.standard_normal((8, 2))
    >>> Y = drugs @ rng.standard_normal((3, 2)) @ targets.T
    >>> model = ConditionalRankRLS(alpha=1e-6).fit(drugs[:15], targets, Y[:15])
    >>> model.predict(drugs[15:]).shape
    (5, 8)
    >>> model.score(drugs[15:], targets, Y[15:])
    1.0
    """

    _fitted: ClassVar[FittedSchema] = {
        "row_vectorizer_": Model(optional=True),
        "column_vectorizer_": Model(optional=True),
        "coef_": Floats("row_terms column_terms"),
        "row_coef_": Floats("row_terms"),
        "column_coef_": Floats("column_terms"),
        "rows_fit_": Items("row_terms features"),
        "columns_fit_": Labels("columns", "columns column_features"),
        "intercept_": Floats(""),
        "feature_names_": Values(),
        "n_columns_": Integer(),
        "n_column_features_": Integer(),
        "n_iter_": Values(),
        "n_pairs_": Values(),
    }

    __metadata_request__fit = {"groups": UNUSED, "sample_weight": True}  # noqa: RUF012
    __metadata_request__score = {"groups": UNUSED, "sample_weight": UNUSED}  # noqa: RUF012

    def __init__(
        self,
        alpha: float = 1e-3,
        *,
        row_kernel: KernelName = "linear",
        column_kernel: KernelName = "linear",
        row_gamma: float | Sequence[float] | None = None,
        column_gamma: float | Sequence[float] | None = None,
        row_kernel_params: dict[str, object] | None = None,
        column_kernel_params: dict[str, object] | None = None,
        ranked: str = "columns",
        cost: str = "magnitude",
        ties: str = "include",
        group_weight: str = "pairs",
        fit_intercept: bool | str = "auto",
        tol: float = 1e-8,
        max_iter: int | None = None,
    ) -> None:
        self.alpha = alpha
        self.row_kernel = row_kernel
        self.column_kernel = column_kernel
        self.row_gamma = row_gamma
        self.column_gamma = column_gamma
        self.row_kernel_params = row_kernel_params
        self.column_kernel_params = column_kernel_params
        self.ranked = ranked
        self.cost = cost
        self.ties = ties
        self.group_weight = group_weight
        self.fit_intercept = fit_intercept
        self.tol = tol
        self.max_iter = max_iter

    @single_threaded
    @restored_on_failure
    def fit(
        self,
        rows: MatrixLike,
        columns: MatrixLike,
        Y: ArrayLike,
        sample_weight: ArrayLike | None = None,
    ) -> Self:
        """Fit the model to a table.

        Parameters
        ----------
        rows : array-like, sparse matrix or data frame of shape (n_rows, n_row_features)
            Features of the rows; the square kernel matrix if precomputed. A data frame with text,
            dates or missing values is encoded by a `TableVectorizer`.
        columns : array-like, sparse matrix or data frame of shape (n_columns, n_column_features)
            Features of the columns, likewise.
        Y : array-like of shape (n_rows, n_columns)
            Scores, larger is better, NaN where unknown.
        sample_weight : array-like of shape (n_rows,), optional
            Weights of the rows: a row of weight 2 is equivalent to two equal rows. For
            ``ranked="columns"`` and ``group_weight="pairs"``.

        Returns
        -------
        ConditionalRankRLS
            The fitted estimator.
        """
        task = self._make_task(rows, columns, Y, "rows", sample_weight)
        return self._fit_to_task(task)

    @single_threaded
    def predict(self, rows: MatrixLike, columns: MatrixLike = None) -> Array:
        """Predict scores of cells; only differences within a ranked list have a meaning.

        A ranked list is a row, or a column if rows are ranked. If cells are ranked, scores are on
        the scale of Y.

        Parameters
        ----------
        rows : array-like or sparse matrix of shape (n_rows, n_row_features)
            Rows, old or new; kernel values to the training rows if precomputed.
        columns : array-like of shape (n_columns, n_column_features), optional
            Columns, old or new; kernel values to the training columns if precomputed. None for the
            training columns.

        Returns
        -------
        ndarray of shape (n_rows, n_columns)
            Scores. Kernel values are computed in blocks of rows.
        """
        check_is_fitted(self)
        rows = encode_items(self.row_vectorizer_, rows)
        if columns is not None:  # None: the training columns, which are kept encoded
            columns = encode_items(self.column_vectorizer_, columns)
        return self._predict_encoded(rows, columns)

    def _predict_encoded(self, rows: MatrixLike, columns: MatrixLike = None) -> Array:
        """Scores of cells, from features."""
        row_items, column_items = self._read_new_items(rows, columns)
        training_rows = getattr(self, "rows_fit_", None)  # only kernels of rows need them

        # Score of a cell, from its row x and its column z (features for linear kernels, otherwise
        # kernel values to the training rows and columns):
        #     x · coef_ z + x · row_coef_ + z · column_coef_ + intercept_
        row_weights = np.column_stack([self.coef_, self.row_coef_])
        row_products = row_items.scores(training_rows, row_weights)
        row_times_coef = row_products[:, :-1]  # x · coef_, (n_rows, length of z)
        row_offsets = row_products[:, -1:]  # x · row_coef_, (n_rows, 1)
        column_weights_per_row = np.ascontiguousarray((row_times_coef + self.column_coef_).T)
        scores = column_items.scores(self.columns_fit_, column_weights_per_row).T
        return np.asarray(scores + row_offsets + self.intercept_)

    def _read_new_items(
        self, rows: MatrixLike, columns: MatrixLike | None
    ) -> tuple[TableItems, TableItems]:
        """The checked rows and columns of a prediction; None is the training columns."""
        row_names, column_names = self.feature_names_
        expected_rows = ExpectedFeatures(self.n_features_in_, row_names)
        row_items = TableItems.read("rows", self._make_row_kernel(), rows, expected_rows)
        column_kernel = self._make_column_kernel()
        if columns is None:
            column_items = TableItems("columns", column_kernel, self.columns_fit_, None)
        else:
            expected_columns = ExpectedFeatures(self.n_column_features_, column_names)
            column_items = TableItems.read("columns", column_kernel, columns, expected_columns)
        return row_items, column_items

    def rank(self, rows: MatrixLike, columns: MatrixLike = None) -> NDArray[np.intp]:
        """Ranks of the columns for each row (or as set by `ranked`); 1 is best.

        Parameters
        ----------
        rows, columns
            As in `predict`.

        Returns
        -------
        ndarray of shape (n_rows, n_columns)
            Ranks; equal scores share the smallest of their ranks.
        """
        scores = self.predict(rows, columns)
        # None: all cells are one list, whose ranks `rankdata` returns in the shape of a list
        ranked_axis = {"rows": 0, "columns": 1, "cells": None}[self.ranked]
        ranks = rankdata(-scores, method="min", axis=ranked_axis)
        return np.asarray(ranks, dtype=np.intp).reshape(scores.shape)

    def score(  # type: ignore[override]
        self,
        rows: MatrixLike,
        columns: MatrixLike,
        Y: ArrayLike,
        metric: MetricName = "concordance",
    ) -> float:
        """Mean of a ranking metric over the rows, by default the share of concordant pairs.

        Parameters
        ----------
        rows, columns
            As in `predict`.
        Y : array-like of shape (n_rows, n_columns)
            True scores, NaN where unknown.
        metric : str or Metric, default="concordance"
            Any name of `rankwise.metrics`.

        Returns
        -------
        float
            The metric; its mean over the columns if rows are ranked, its value over all cells if
            cells are ranked.
        """
        check_order_of_table(rows, columns, Y)
        scores = self.predict(rows, columns)
        Y = check_float_array("Y", as_array(Y, "Y"))
        if Y.shape != scores.shape:
            raise ValueError(f"Y has shape {Y.shape}; expected {scores.shape}.")
        is_observed = ~np.isnan(Y)
        row_of_cell, column_of_cell = np.nonzero(is_observed)
        # Ranked rows are compared within a column, ranked columns within a row, cells all together.
        groups = {"rows": column_of_cell, "columns": row_of_cell, "cells": None}[self.ranked]
        return float(get_metric(metric)(Y[is_observed], scores[is_observed], groups))

    @single_threaded
    def leave_out(
        self,
        rows: MatrixLike,
        columns: MatrixLike,
        Y: ArrayLike,
        leave: str = "rows",
        *,
        alphas: ArrayLike | None = None,
        cv: CrossValidation = "auto",
        sample_weight: ArrayLike | None = None,
    ) -> Array:
        """Exact scores of each cell by a model without its row, its column, or both.

        Parameters
        ----------
        rows, columns, Y, sample_weight
            As in `fit`; the estimator does not change.
        leave : {"rows", "columns", "both"}, default="rows"
            Whether the row of a cell, its column, or both are left out.
        alphas : array-like of shape (n_alphas,), optional
            Several values of alpha; by default that of the estimator.
        cv : "auto", None, int, splitter or iterable, default="auto"
            None leaves out one row or column at a time, as "auto" does if all cells are known; else
            "auto" makes five folds and refits the model for each. For ``leave="both"``, "auto"
            makes ten folds of rows and leaves out every column in each of them if all cells are
            known; else five folds of rows times five of columns.

        Returns
        -------
        ndarray of shape (n_rows, n_columns) or (n_rows, n_columns, n_alphas)
            Held-out scores. The scores of a row are centered at their mean over the training
            columns, so that columns of different folds can be compared; if cells are ranked, scores
            are on the scale of Y.
        """
        task = self.hold_out_task(rows, columns, Y, leave, sample_weight)
        return task.leave_out(alphas, cv)

    def hold_out_task(
        self,
        rows: MatrixLike,
        columns: MatrixLike,
        Y: ArrayLike,
        leave: str = "rows",
        sample_weight: ArrayLike | None = None,
    ) -> ConditionalTask:
        """The model and its data, ready to be cross-validated; see `rankwise.model_selection`.

        Parameters
        ----------
        rows, columns, Y, leave, sample_weight
            As in `leave_out`.

        Returns
        -------
        ConditionalTask
            Task with a copy of the estimator.
        """
        model: ConditionalRankRLS = clone(self)
        return model._make_task(rows, columns, Y, leave, sample_weight)

    def _make_row_kernel(self) -> Kernel:
        return make_kernel(self.row_kernel, self.row_gamma, self.row_kernel_params)

    def _make_column_kernel(self) -> Kernel:
        return make_kernel(self.column_kernel, self.column_gamma, self.column_kernel_params)

    def _make_task(
        self,
        rows: MatrixLike,
        columns: MatrixLike,
        Y: ArrayLike,
        leave: str,
        sample_weight: ArrayLike | None,
    ) -> ConditionalTask:
        """Check the parameters and the data, and set up the problem.

        The problem ranks the columns of its rows, so the table is transposed if rows are ranked.
        """
        self._check_options(sample_weight)
        check_order_of_table(rows, columns, Y)
        Y = read_table(Y)
        row_items, column_items = self._read_items(rows, columns)

        # Below, the items of each list are ranked: the columns of each row of Y, which is therefore
        # transposed if rows are ranked.
        is_transposed = self.ranked == "rows"
        if is_transposed:
            lists = column_items
            items = row_items
            Y = check_table(Y.T, "column", "row")
            leave = {"rows": "columns", "columns": "rows"}.get(leave, leave)  # "both" stays
        else:
            lists = row_items
            items = column_items
            Y = check_table(Y, "row", "column")
        n_lists, n_items = Y.shape
        advice = "train on fewer rows or columns"
        check_matrix_fits(n_lists, n_items, "a table", advice, n_matrices=TABLES_IN_MEMORY)
        lists.check_n_items(n_lists)
        items.check_n_items(n_items)

        cells_are_one_list = self.ranked == "cells"
        loss = make_table_loss(
            Y,
            cost=self.cost,
            ties=self.ties,
            group_weight=self.group_weight,
            sample_weight=sample_weight,
            cells_are_one_list=cells_are_one_list,
        )
        list_side = lists.make_side(
            has_constant=self._has_constant(lists.kernel), weight=loss.weight
        )
        # A score that is added to all items of a list cancels in pairs of this list, so a constant
        # of the items has an effect only if cells of all lists are compared.
        item_side = items.make_side(
            has_constant=cells_are_one_list and self._has_constant(items.kernel),
            is_centered=not cells_are_one_list,
        )
        problem = DyadicProblem(loss, list_side, item_side, self.tol, self.max_iter)
        return ConditionalTask(self, problem, lists, items, leave, is_transposed=is_transposed)

    def _check_options(self, sample_weight: ArrayLike | None) -> None:
        """Check `ranked`, `fit_intercept`, and whether rows can have weights."""
        check_option("ranked", self.ranked, RANKED)
        if not isinstance(self.fit_intercept, bool):
            check_option("fit_intercept", self.fit_intercept, ("auto",))
        if sample_weight is not None and self.ranked != "columns":
            raise ValueError(
                f"ranked={self.ranked!r} does not support sample_weight, the weights of ranked "
                "rows; omit sample_weight, or use ranked='columns'."
            )

    def _read_items(self, rows: MatrixLike, columns: MatrixLike) -> tuple[TableItems, TableItems]:
        """The checked rows and columns; fits the vectorizers of data frames."""
        row_kernel = self._make_row_kernel()
        column_kernel = self._make_column_kernel()
        self.row_vectorizer_ = fit_vectorizer(rows, row_kernel)
        self.column_vectorizer_ = fit_vectorizer(columns, column_kernel)
        encoded_rows = encode_items(self.row_vectorizer_, rows)
        encoded_columns = encode_items(self.column_vectorizer_, columns)
        return (
            TableItems.read("rows", row_kernel, encoded_rows),
            TableItems.read("columns", column_kernel, encoded_columns),
        )

    def _has_constant(self, kernel: Kernel) -> bool:
        """Whether a constant is added to this kernel."""
        if self.fit_intercept == "auto":
            return kernel.is_linear
        return bool(self.fit_intercept)

    def _fit_to_task(self, task: ConditionalTask) -> Self:
        """Solve the problem of the task, and set the fitted attributes."""
        problem = task.problem
        kernels = (self.row_kernel, self.column_kernel)
        solution = solve_with_progress(problem, self.alpha, type(self).__name__, kernels)
        coef_of_only_alpha = solution.coef[0]
        coef, list_coef, item_coef = task.split_constants(coef_of_only_alpha)
        if task.is_transposed:
            rows = task.items
            columns = task.lists
            self.coef_ = np.ascontiguousarray(coef.T)
            self.row_coef_ = item_coef
            self.column_coef_ = list_coef
        else:
            rows = task.lists
            columns = task.items
            self.coef_ = np.ascontiguousarray(coef)
            self.row_coef_ = list_coef
            self.column_coef_ = item_coef

        self.feature_names_ = [rows.names, columns.names]
        self.n_features_in_ = rows.items.shape[1]
        self.n_columns_, self.n_column_features_ = columns.items.shape
        self.n_pairs_ = problem.loss.n_pairs
        self.n_iter_ = solution.n_iter
        self.columns_fit_ = columns.items
        self.__dict__.pop("rows_fit_", None)  # of an earlier fit with another kernel
        needs_training_rows = not (rows.kernel.is_precomputed or rows.kernel.is_linear)
        if needs_training_rows:
            self.rows_fit_ = rows.items

        self.intercept_ = 0.0
        if problem.loss.cells_are_one_list:  # puts the scores on the scale of Y
            residuals = problem.loss.Y - self._predict_encoded(rows.items)
            self.intercept_ = float(np.nanmean(residuals))
        return self

    def _check_fitted(self) -> None:
        training_rows = vars(self).get("rows_fit_")
        training_columns = vars(self).get("columns_fit_")
        check_kernel_items(training_rows, self.row_kernel, self.row_kernel_params)
        check_kernel_items(training_columns, self.column_kernel, self.column_kernel_params)


class ConditionalTask(DyadicTask):
    """ConditionalRankRLS with its data, for cross-validation.

    Parameters
    ----------
    learner : ConditionalRankRLS
        Learner with its alpha.
    problem : DyadicProblem
        The table, with a list in each row.
    lists, items : TableItems
        The rows and columns of this table, with their kernels.
    leave, is_transposed
        As in `DyadicTask`.
    """

    def __init__(
        self,
        learner: ConditionalRankRLS,
        problem: DyadicProblem,
        lists: TableItems,
        items: TableItems,
        leave: str,
        *,
        is_transposed: bool,
    ) -> None:
        super().__init__(learner, problem, leave, is_transposed=is_transposed)
        self.lists = lists
        self.items = items

    def split_constants(self, B: Array) -> tuple[Array, Array, Array]:
        """Weights of products of list and item features, of list features, and of item features.

        The last two belong to the constants of the items and of the lists.
        """
        # B: weights of all products of a feature of the list and a feature of the item. A side may
        # have a constant feature, whose products with the other side are weights of that side.
        list_weights, weights_of_list_constant = self.lists.split_constant(B, self.problem.rows)
        stacked_weights = np.vstack([list_weights, weights_of_list_constant])
        item_weights, weights_of_item_constant = self.items.split_constant(
            stacked_weights.T, self.problem.decomposed_columns
        )
        # The last weights are those of the list constant. Its product with the item constant is
        # dropped: a constant of all cells does not change an order.
        weights_of_list_and_item = item_weights.T
        coef = weights_of_list_and_item[:-1]
        item_coef = weights_of_list_and_item[-1].copy()  # list constant times item features
        list_coef = weights_of_item_constant[:-1]  # list features times item constant
        return coef, list_coef, item_coef

    def train(self, **values: ParameterValue) -> ConditionalRankRLS:
        """ConditionalRankRLS fitted to all data with this alpha."""
        model: ConditionalRankRLS = self.learner.set_params(**values)
        return model._fit_to_task(self)


class ConditionalRankRLSCV(BaseSearch):
    """ConditionalRankRLS that selects alpha, and kernel parameters if lists are given.

    Use it in place of `ConditionalRankRLS` if alpha is not known.

    Every alpha is evaluated on held-out rows, columns or both; choose those that will be new in
    predictions. The held-out scores are exact, and computed without refits if all cells are known.

    Parameters
    ----------
    alphas : array-like of shape (n_alphas,), optional
        Candidates; by default 40 values, two per decade, as in `RankRLSCV`.
    leave : {"rows", "columns", "both"}, default="rows"
        What is held out.
    cv : "auto", None, int, splitter or iterable, default="auto"
        As in `ConditionalRankRLS.leave_out`.
    scoring : str, Metric or function, default="disagreement"
        Any name of `rankwise.metrics`; each row is a group.
    row_gamma, column_gamma : float or list of float, default=None
        Parameter gamma of the kernels; a list of values is searched.
    store_predictions : bool, default=False
        Whether to store the held-out scores in ``cv_results_["predictions"]``: a list of arrays of
        shape (n_rows · n_columns, n_alphas).
    row_kernel, column_kernel, row_kernel_params, column_kernel_params, ranked, cost, ties, \
group_weight, fit_intercept, tol, max_iter
        As in `ConditionalRankRLS`, with the same defaults.

    Attributes
    ----------
    alpha_ : float
        Selected alpha.
    best_score_ : float
        Its score, in the units of the metric.
    best_params_ : dict
        The selected alpha and gamma.
    cv_results_ : dict
        As in `RankRLSCV`; each row is a group.
    best_estimator_ : ConditionalRankRLS
        Model fitted to all data; the search has its fitted attributes, too.

    Examples
    --------
    >>> import numpy as np
    >>> from rankwise import ConditionalRankRLSCV
    >>> rng = np.random.default_rng(0)
    >>> drugs, targets = rng.standard_normal((20, 3)), rng.standard_normal((8, 2))
    >>> Y = drugs @ rng.standard_normal((3, 2)) @ targets.T + rng.standard_normal((20, 8))
    >>> model = ConditionalRankRLSCV(leave="columns").fit(drugs, targets, Y)
    >>> model.cv_results_["cv"], round(model.best_score_, 2)
    ('leave-column-out', 0.15)
    """

    __metadata_request__fit = {"groups": UNUSED, "sample_weight": True}  # noqa: RUF012
    __metadata_request__score = {"groups": UNUSED, "sample_weight": UNUSED}  # noqa: RUF012

    model_class = ConditionalRankRLS
    lists = ("row_gamma", "column_gamma")

    def __init__(
        self,
        alphas: ArrayLike | None = None,
        *,
        leave: str = "rows",
        cv: CrossValidation = "auto",
        scoring: MetricName = "disagreement",
        store_predictions: bool = False,
        row_kernel: KernelName = "linear",
        column_kernel: KernelName = "linear",
        row_gamma: float | Sequence[float] | None = None,
        column_gamma: float | Sequence[float] | None = None,
        row_kernel_params: dict[str, object] | None = None,
        column_kernel_params: dict[str, object] | None = None,
        ranked: str = "columns",
        cost: str = "magnitude",
        ties: str = "include",
        group_weight: str = "pairs",
        fit_intercept: bool | str = "auto",
        tol: float = 1e-8,
        max_iter: int | None = None,
    ) -> None:
        self.alphas = alphas
        self.leave = leave
        self.cv = cv
        self.scoring = scoring
        self.store_predictions = store_predictions
        self.row_kernel = row_kernel
        self.column_kernel = column_kernel
        self.row_gamma = row_gamma
        self.column_gamma = column_gamma
        self.row_kernel_params = row_kernel_params
        self.column_kernel_params = column_kernel_params
        self.ranked = ranked
        self.cost = cost
        self.ties = ties
        self.group_weight = group_weight
        self.fit_intercept = fit_intercept
        self.tol = tol
        self.max_iter = max_iter

    @single_threaded
    @restored_on_failure
    def fit(
        self,
        rows: MatrixLike,
        columns: MatrixLike,
        Y: ArrayLike,
        sample_weight: ArrayLike | None = None,
    ) -> Self:
        """Select the parameters by cross-validation, then fit to all data.

        Parameters
        ----------
        rows, columns, Y, sample_weight
            As in `ConditionalRankRLS.fit`.

        Returns
        -------
        ConditionalRankRLSCV
            The fitted estimator.
        """
        self._search(rows, columns, Y, self.leave, sample_weight)
        return self

    def predict(self, rows: MatrixLike, columns: MatrixLike = None) -> Array:
        """Predict scores of cells by the best model; see `ConditionalRankRLS.predict`.

        Parameters
        ----------
        rows, columns : array-like or data frame
            Features of the rows and of the columns, as in `ConditionalRankRLS.predict`.

        Returns
        -------
        ndarray of shape (n_rows, n_columns)
            Scores; larger is better.
        """
        check_is_fitted(self)
        scores: Array = self.best_estimator_.predict(rows, columns)
        return scores

    def rank(self, rows: MatrixLike, columns: MatrixLike = None) -> NDArray[np.intp]:
        """Ranks by the best model; see `ConditionalRankRLS.rank`.

        Parameters
        ----------
        rows, columns : array-like or data frame
            Features of the rows and of the columns, as in `ConditionalRankRLS.rank`.

        Returns
        -------
        ndarray of int, shape (n_rows, n_columns)
            Ranks; 1 is the best.
        """
        check_is_fitted(self)
        ranks: NDArray[np.intp] = self.best_estimator_.rank(rows, columns)
        return ranks

    def score(  # type: ignore[override]
        self,
        rows: MatrixLike,
        columns: MatrixLike,
        Y: ArrayLike,
        metric: MetricName = "concordance",
    ) -> float:
        """Metric of the best model; see `ConditionalRankRLS.score`.

        Parameters
        ----------
        rows, columns : array-like or data frame
            Features of the rows and of the columns.
        Y : array-like of shape (n_rows, n_columns)
            True scores; NaN where a score is unknown.
        metric : str, Metric or function, default="concordance"
            The metric.

        Returns
        -------
        float
            Mean of the metric over the lists.
        """
        check_is_fitted(self)
        value: float = self.best_estimator_.score(rows, columns, Y, metric)
        return value


def make_kernel(function: Any, gamma: Any, params: dict[str, Any] | None) -> Kernel:
    """The checked kernel of one side of a table."""
    if params is None:
        params = {}
    if callable(function) or function == "ngram":
        return Kernel(function, params=params)
    return Kernel(function, gamma, **params)  # params has degree and coef0
