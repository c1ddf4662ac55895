"""ConditionalRankRLS: rank the columns of a table for each row, by features of both."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray
from scipy.stats import rankdata
from sklearn.base import clone
from sklearn.utils import check_array
from sklearn.utils.metadata_routing import UNUSED
from sklearn.utils.validation import check_is_fitted

from rankwise.arrays import Array
from rankwise.dyadic.cross_validation import DyadicTask
from rankwise.dyadic.solver import DyadicProblem, KernelSide, make_side
from rankwise.dyadic.table_fit import check_table, solve_table, table_loss
from rankwise.fitted_schema import (
    FittedSchema,
    Floats,
    Integer,
    Items,
    Labels,
    Values,
    check_kernel_items,
)
from rankwise.formatting import join_words
from rankwise.frames import as_array, check_same_index, column_names
from rankwise.kernels.feature_maps import FeatureMap
from rankwise.kernels.kernel import BaseEstimator, Kernel
from rankwise.metrics import get_metric
from rankwise.model_selection.shortcuts import dense_rows
from rankwise.rankers.base import RankerMixin
from rankwise.rankers.search import BaseSearch
from rankwise.runtime.memory import check_matrix_fits
from rankwise.runtime.threads import single_threaded
from rankwise.validation import (
    as_objects,
    check_float_array,
    check_option,
    reject_dtype,
    restored_on_failure,
)

TABLES = 8.0  # tables of the size of Y in memory at a time
MATRICES = 4.0  # kernel matrices in memory at a time: values, vectors, and what is made of them


@dataclass(eq=False, repr=False, kw_only=True)
class TableMixin(RankerMixin, BaseEstimator):
    """What a ranker of tables and its search share: parameters, ranks and a score."""

    __metadata_request__fit = {"groups": UNUSED, "sample_weight": True}  # noqa: RUF012
    __metadata_request__score = {"groups": UNUSED, "sample_weight": UNUSED}  # noqa: RUF012

    row_kernel: Any = "linear"
    column_kernel: Any = "linear"
    row_gamma: Any = None
    column_gamma: Any = None
    row_kernel_params: dict[str, Any] | None = None
    column_kernel_params: dict[str, Any] | None = None
    ranked: str = "columns"
    cost: str = "magnitude"
    ties: str = "include"
    group_weight: str = "pairs"
    fit_intercept: bool | str = "auto"
    tol: float = 1e-8
    max_iter: int | None = None

    def rank(self, rows: Any, columns: Any = None) -> NDArray[np.intp]:
        """Ranks, 1 is best: of the columns for each row, or of whatever else is ranked.

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
        axis = {"rows": 0, "columns": 1, "cells": None}[self.ranked]
        ranks = rankdata(-scores, method="min", axis=axis)
        return np.asarray(ranks, dtype=np.intp).reshape(scores.shape)

    def score(  # type: ignore[override]
        self, rows: Any, columns: Any, Y: Any, metric: Any = "concordance"
    ) -> float:
        """Mean over the rows of a ranking metric, by default the share of pairs in right order.

        Parameters
        ----------
        rows, columns
            As in `predict`.
        Y : array-like of shape (n_rows, n_columns)
            True scores, NaN where unknown.
        metric : str or Metric
            Any name of `rankwise.metrics`.

        Returns
        -------
        float
            The metric; its mean over the columns if rows are ranked, of all cells if these are.
        """
        scores = self.predict(rows, columns)
        truth = check_float_array("Y", as_array(Y, "Y"))
        if truth.shape != scores.shape:
            raise ValueError(f"Y has shape {truth.shape}; expected {scores.shape}.")
        known = ~np.isnan(truth)
        places = np.nonzero(known)
        groups = {"rows": places[1], "columns": places[0], "cells": None}[self.ranked]
        return float(get_metric(metric)(truth[known], scores[known], groups))


@dataclass(eq=False, repr=False)
class ConditionalRankRLS(TableMixin):
    """Ranks the columns of a table for each row: targets for a drug, products for a customer.

    Use it if rows and columns both have features, also for rows and columns that are new.

    Rows and columns have features or kernels, G and K, and Y holds scores of cells. Learns
    ``F = G A K`` by RankRLS over the pairs of cells of one row,

        J(f) = 1/W Σ_i Σ_jk ω (y_ij − y_ik − (f_ij − f_ik))² + α ‖f‖²

    with the kernel G(i, i′) K(j, j′) of two cells. It scores new rows, new columns, and both. If
    all cells are known, two decompositions give the models of all alphas, each elementwise; else
    conjugate gradients do, with products of the size of the table. The kernel matrix of all cells
    is never formed. For columns that have names only see `LabelRanker`.

    Parameters
    ----------
    alpha : float
        Regularization, positive; relative to the mean over pairs.
    row_kernel : str or callable
        "linear", any other name known to `sklearn.metrics.pairwise.pairwise_kernels`, "ngram" for
        a list of texts, a function of two rows, which may be any objects, or "precomputed".
    column_kernel : str or callable
        The same for columns.
    row_gamma, column_gamma : float, optional
        Width of the named kernels.
    row_kernel_params, column_kernel_params : dict, optional
        "degree" and "coef0" of named kernels, "ngram_range" and "shared" of "ngram", keyword
        arguments of callable ones.
    ranked : {"columns", "rows", "cells"}
        Which pairs are learned from: columns of one row, rows of one column, or any two cells,
        as for affinities that are on one scale; these are solved by conjugate gradients.
    cost, ties, group_weight : str
        As in `RankRLS`; the groups are the rows. Anything but ``cost="magnitude",
        ties="include"`` is solved by conjugate gradients.
    fit_intercept : bool or "auto"
        Whether the columns have an order that all rows share: a constant, as large as the mean of
        k(x, x), is added to the kernel of the rows (to that of the columns if rows are ranked, to
        both if cells are).
        "auto" does so for linear kernels only; others mostly have a constant part of their own.
    tol, max_iter
        Limits of the conjugate gradients.

    Attributes
    ----------
    coef_ : ndarray of shape (n_row_functions, n_column_functions)
        Weights of products of features (linear kernels) and of kernel values to the training rows
        or columns (others).
    column_coef_ : ndarray of shape (n_column_functions,)
        Weights of the order that all rows share.
    row_coef_ : ndarray of shape (n_row_functions,)
        The same for the order of rows that all columns share.
    intercept_ : float
        What takes scores to the scale of Y if cells are ranked, else 0.
    rows_fit_, columns_fit_ : array or sparse matrix
        The training rows and columns (not for linear kernels, nor precomputed ones of rows).
    n_columns_ : int
        Number of training columns.
    feature_names_ : list
        Names of the features of the rows and of those of the columns, None where they have none.
    n_pairs_, n_iter_, n_features_in_
        As in `RankRLS`; the features are those of the rows.

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

    alpha: float = 1e-3

    @single_threaded
    @restored_on_failure
    def fit(self, rows: Any, columns: Any, Y: Any, sample_weight: Any = None) -> Self:
        """Learn from rows, columns and what is known about their cells.

        Parameters
        ----------
        rows : array-like or sparse matrix of shape (n_rows, n_row_features)
            Features of the rows; the square kernel matrix if precomputed.
        columns : array-like or sparse matrix of shape (n_columns, n_column_features)
            The same of the columns.
        Y : array-like of shape (n_rows, n_columns)
            Scores, larger is better, NaN where unknown.
        sample_weight : array-like of shape (n_rows,), optional
            Weights of the rows: one of weight 2 counts as two equal ones. For ``ranked="columns"``
            and ``group_weight="pairs"``.

        Returns
        -------
        ConditionalRankRLS
            The fitted estimator.
        """
        return self._fit_task(self._prepare(rows, columns, Y, sample_weight=sample_weight))

    @single_threaded
    def predict(self, rows: Any, columns: Any = None) -> Array:
        """Scores of cells; differences inside a row (a column, if rows are ranked) count.

        If cells are ranked, scores are on the scale of Y.

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
            Scores. Kernel values are made in blocks of rows.
        """
        check_is_fitted(self)
        of_rows, of_columns = self._kernels()
        expected = self.n_features_in_, self.feature_names_[0]
        by_row = TableItems.read("rows", of_rows, rows, *expected).scores(
            getattr(self, "rows_fit_", None), np.column_stack([self.coef_, self.row_coef_])
        )
        ranked = TableItems("columns", of_columns, self.columns_fit_, None)
        if columns is not None:
            expected = self.n_column_features_, self.feature_names_[1]
            ranked = TableItems.read("columns", of_columns, columns, *expected)
        weights = np.ascontiguousarray((by_row[:, :-1] + self.column_coef_).T)
        scores = ranked.scores(self.columns_fit_, weights).T
        return np.asarray(scores + by_row[:, -1:] + self.intercept_)

    @single_threaded
    def leave_out(
        self,
        rows: Any,
        columns: Any,
        Y: Any,
        leave: str = "rows",
        *,
        alphas: ArrayLike | None = None,
        cv: Any = "auto",
        sample_weight: Any = None,
    ) -> Array:
        """Scores of each cell by a model without its row, its column, or both. Exact.

        Parameters
        ----------
        rows, columns, Y, sample_weight
            As in `fit`; the estimator is left as it is.
        leave : {"rows", "columns", "both"}
            What is new to the model: the row of a cell, its column, or both.
        alphas : array-like of shape (n_alphas,), optional
            Several values of alpha; the estimator's own if not given.
        cv : "auto", None, int, splitter or iterable
            None leaves out one row or column at a time, as "auto" does if all cells are known; else
            "auto" makes five folds, which are trained again. Rows and columns at a time: "auto"
            makes ten folds of rows, in each of which every column is left out, if all cells are
            known; else five folds of rows times five of columns.

        Returns
        -------
        ndarray of shape (n_rows, n_columns) or (n_rows, n_columns, n_alphas)
            Held-out scores. Those of a row are counted from their mean over the columns that the
            model was trained on, so that columns of different folds can be compared; if cells are
            ranked, they are on the scale of Y.
        """
        return self.hold_out_task(rows, columns, Y, leave, sample_weight).leave_out(alphas, cv)

    def hold_out_task(
        self, rows: Any, columns: Any, Y: Any, leave: str = "rows", sample_weight: Any = None
    ) -> ConditionalTask:
        """The model and its data, ready to be cross-validated; see `rankwise.model_selection`."""
        task: ConditionalTask = clone(self)._prepare(rows, columns, Y, leave, sample_weight)
        return task

    def _kernels(self) -> tuple[Kernel, Kernel]:
        return (
            side_kernel(self.row_kernel, self.row_gamma, self.row_kernel_params),
            side_kernel(self.column_kernel, self.column_gamma, self.column_kernel_params),
        )

    def _prepare(
        self, rows: Any, columns: Any, Y: Any, leave: str = "rows", sample_weight: Any = None
    ) -> ConditionalTask:
        """Check everything, and say what is to be minimized.

        If rows are ranked, the table is turned.
        """
        check_option("ranked", self.ranked, ("columns", "rows", "cells"))
        if not isinstance(self.fit_intercept, bool):
            check_option("fit_intercept", self.fit_intercept, ("auto",))
        if sp.issparse(Y):
            raise ValueError(
                "Y is a sparse matrix, where an unknown cell looks like a score of 0; pass an "
                "array with NaN where a score is unknown."
            )
        check_same_index(rows=rows, Y=Y)
        Y = check_float_array(
            "Y", as_array(Y, "Y"), "pass real numbers, NaN where a score is unknown"
        )
        kernels, words, is_one_list = self._kernels(), ("row", "column"), self.ranked == "cells"
        sides = [
            TableItems.read("rows", kernels[0], rows),
            TableItems.read("columns", kernels[1], columns),
        ]
        if self.ranked == "rows":
            sides, words, Y = sides[::-1], words[::-1], Y.T
            leave = {"rows": "columns", "columns": "rows"}.get(leave, leave)
        if sample_weight is not None and self.ranked != "columns":
            raise ValueError(f"ranked={self.ranked!r}: only rows that are lists have weights.")
        Y = check_table(Y, *words)
        q, t = Y.shape
        check_matrix_fits(q, t, "a table", "train on fewer rows or columns", n_matrices=TABLES)
        for side, n in zip(sides, Y.shape, strict=True):
            side.check_number(n)
        loss = table_loss(self, Y, self.ties, sample_weight, one_list=is_one_list)
        has_constant = [
            side.kernel.is_linear if self.fit_intercept == "auto" else bool(self.fit_intercept)
            for side in sides
        ]
        table = DyadicProblem(
            loss,
            sides[0].make(constant=has_constant[0], weight=loss.weight),
            sides[1].make(constant=is_one_list and has_constant[1], is_centered=not is_one_list),
            self.tol,
            self.max_iter,
        )
        task = ConditionalTask(self, table, leave, words)
        task.sides = sides
        return task

    def _fit_task(self, task: ConditionalTask) -> Self:
        (rows, columns), table = task.sides, task.table
        solution = solve_table(self, table, (self.row_kernel, self.column_kernel))
        B, shared = rows.split(solution.coef[0], table.rows)
        both, of_rows = columns.split(np.vstack([B, shared]).T, table.columns)
        coef, self.row_coef_, self.column_coef_ = both.T[:-1], of_rows[:-1], both.T[-1].copy()
        if self.ranked == "rows":
            rows, columns, coef = columns, rows, coef.T
            self.row_coef_, self.column_coef_ = self.column_coef_, self.row_coef_
        self.coef_ = np.ascontiguousarray(coef)
        self.feature_names_ = [rows.names, columns.names]
        self.n_features_in_ = rows.items.shape[1]
        self.n_columns_, self.n_column_features_ = columns.items.shape
        self.n_pairs_, self.n_iter_ = table.loss.n_pairs, solution.n_iter
        self.columns_fit_ = columns.items
        self.__dict__.pop("rows_fit_", None)
        if not (rows.kernel.is_precomputed or rows.kernel.is_linear):
            self.rows_fit_ = rows.items
        self.intercept_ = 0.0
        if table.loss.one_list:
            self.intercept_ = float(np.nanmean(table.loss.Y - self.predict(rows.items)))
        return self

    def _check_fitted(self) -> None:
        rows = vars(self).get("rows_fit_")
        columns = vars(self).get("columns_fit_")
        check_kernel_items(rows, self.row_kernel, self.row_kernel_params)
        check_kernel_items(columns, self.column_kernel, self.column_kernel_params)


class ConditionalTask(DyadicTask):
    """ConditionalRankRLS with its data, for cross-validation.

    `sides` are the items of the rows of the table and of what is ranked in each; those of the
    columns first if rows are ranked.
    """

    sides: list[TableItems]

    def train(self, **values: Any) -> ConditionalRankRLS:
        """ConditionalRankRLS of one alpha."""
        model: ConditionalRankRLS = self.learner.set_params(**values)
        return model._fit_task(self)


@dataclass(eq=False, repr=False)
class ConditionalRankRLSCV(TableMixin, BaseSearch):
    """ConditionalRankRLS that chooses alpha, and kernel widths if lists are given.

    Use it in place of `ConditionalRankRLS` if alpha is not known.

    Every alpha is judged on rows, columns or both that the model has not seen: choose what
    will be new when the model is used. Exact, and without training again if all cells are known.

    Parameters
    ----------
    alphas : array-like of shape (n_alphas,), optional
        Candidates; by default 40 values, two a decade, as in `RankRLSCV`.
    leave : {"rows", "columns", "both"}
        What is held out.
    cv : "auto", None, int, splitter or iterable
        As in `ConditionalRankRLS.leave_out`.
    scoring : str, Metric or function
        Any name of `rankwise.metrics`; each row is a group.
    row_gamma, column_gamma
        Kernel widths; a list of values is searched.
    store_predictions : bool
        Keep the held-out scores in ``cv_results_["predictions"]``: a list of arrays of shape
        (n_rows · n_columns, n_alphas).
    row_kernel, column_kernel, row_kernel_params, column_kernel_params, ranked, cost, ties, \
group_weight, fit_intercept, tol, max_iter
        As in `ConditionalRankRLS`.

    Attributes
    ----------
    alpha_ : float
        Chosen alpha.
    best_score_ : float
        Its score, in the units of the metric.
    best_params_ : dict
        Alpha and the chosen kernel widths.
    cv_results_ : dict
        As in `RankRLSCV`; each row is a group.
    best_estimator_ : ConditionalRankRLS
        The model trained on all data; its attributes are those of the search, too.

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

    model_class = ConditionalRankRLS
    lists = ("row_gamma", "column_gamma")

    alphas: ArrayLike | None = None
    _: KW_ONLY
    leave: str = "rows"

    @single_threaded
    @restored_on_failure
    def fit(self, rows: Any, columns: Any, Y: Any, sample_weight: Any = None) -> Self:
        """Choose the parameters, then learn from all data.

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

    def predict(self, rows: Any, columns: Any = None) -> Array:
        """Scores of cells; see `ConditionalRankRLS.predict`."""
        check_is_fitted(self)
        scores: Array = self.best_estimator_.predict(rows, columns)
        return scores


class TableItems(NamedTuple):
    """The items of one side of a table, checked, with their kernel.

    `what` is "rows" or "columns", for messages; `names` are those of the features, if any.
    """

    what: str
    kernel: Kernel
    items: Any
    names: list[str] | None

    @classmethod
    def read(
        cls,
        what: str,
        kernel: Kernel,
        items: Any,
        n_features: int | None = None,
        expected: list[str] | None = None,
    ) -> Self:
        """Features, objects or kernel values; the last two are what a fitted model expects."""
        reject_dtype(what, items)
        objects = as_objects(what, items) if kernel.takes_objects else None
        if objects is not None:
            return cls(what, kernel, objects, None)
        names = None if kernel.is_precomputed else column_names(items)
        if expected is not None and names not in (None, expected):
            raise ValueError(
                f"{what} has the features {join_words(names or (), 6)}; the model was trained with "
                f"{join_words(expected, 6)}, in this order: pass {what}[names] with these names."
            )
        checked = check_array(
            as_array(items, what),
            accept_sparse=False if kernel.is_precomputed else "csr",
            dtype=[np.float64, np.float32],
            input_name=what,
            copy=n_features is None,  # a model keeps them, and the caller may change them
        )
        if n_features is not None and checked.shape[1] != n_features:
            unit = "kernel values to the training items" if kernel.is_precomputed else "features"
            raise ValueError(
                f"{what} has {checked.shape[1]} columns; the model was trained with "
                f"{n_features} {unit}."
            )
        return cls(what, kernel, checked, names)

    def check_number(self, n: int) -> None:
        """As many items as the table has; square if kernel values are given."""
        shape, is_precomputed = self.items.shape, self.kernel.is_precomputed
        if shape[0] != n or (is_precomputed and shape[1] != n):
            expected = f"the kernel values between them, ({n}, {n})"
            raise ValueError(
                f"{self.what} has shape {shape}, but Y has {n} {self.what}; give "
                f"{expected if is_precomputed else 'one for each'}, and look whether rows and "
                "columns were swapped."
            )

    def make(self, **options: Any) -> KernelSide:
        """What the solver sees: features if they are fewer than items, else kernel values.

        Refused before memory is taken if a kernel matrix would not fit.
        """
        n, matrix = self.items.shape[0], self.items
        is_kernel = not self.kernel.is_linear or matrix.shape[1] >= n
        if is_kernel:
            advice = f"use a linear kernel on fewer features, or fewer {self.what}"
            what = f"a kernel matrix of the {self.what}"
            check_matrix_fits(n, n, what, advice, n_matrices=MATRICES)
            matrix = self.kernel.matrix(matrix)
        else:
            matrix = dense_rows(matrix)
        return make_side(matrix, is_kernel=is_kernel, **options)

    def split(self, B: Array, side: KernelSide) -> tuple[Array, Array]:
        """Weights of the functions of this side, and what the constant among them adds."""
        B, shared = side.split(B)
        is_dual = self.kernel.is_linear and side.is_kernel
        return np.asarray(self.items.T @ B) if is_dual else B, shared

    def scores(self, fitted: Any, weights: Array) -> Array:
        """``k(items, fitted) weights``, kernel values in blocks; weights of features if linear."""
        kept = None if self.kernel.is_precomputed or self.kernel.is_linear else fitted
        features = FeatureMap(self.kernel, None, len(weights), None, kept)
        return np.asarray(features.scores(self.items, weights))


def side_kernel(function: Any, gamma: Any, params: dict[str, Any] | None) -> Kernel:
    """The kernel that these parameters name, checked."""
    if callable(function) or function == "ngram":
        return Kernel(function, params=params or {})
    return Kernel(function, gamma, **(params or {}))
