"""ConditionalRankRLS: rank the columns of a table for each row, by features of both."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import Any, NamedTuple, Self

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray
from scipy.stats import rankdata
from sklearn.base import clone
from sklearn.utils import check_array
from sklearn.utils.metadata_routing import UNUSED
from sklearn.utils.validation import check_is_fitted

from rankwise.arrays import Array
from rankwise.estimators.base import BaseSearch, RankerMixin
from rankwise.estimators.training_data import check_table, solve_table, table_loss
from rankwise.features.feature_map import FeatureMap
from rankwise.features.kernel import BaseEstimator, Kernel
from rankwise.frames import as_array, check_same_index, column_names
from rankwise.inputs import as_objects, as_real, check_items, check_option
from rankwise.machine import calm, check_matrix_fits
from rankwise.metrics import get_metric
from rankwise.model_selection.tables import TableTask
from rankwise.solvers.tables import Side, Table, with_constant, without_constant
from rankwise.text_tables import listed

DELTA = "delta"
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
        truth = as_real("Y", as_array(Y, "Y"))
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
    is never formed. With ``column_kernel="delta"`` this is label ranking, see `LabelRanker`.

    Parameters
    ----------
    alpha : float
        Regularization, positive; relative to the mean over pairs.
    row_kernel : str or callable
        "linear", any other name known to `sklearn.metrics.pairwise.pairwise_kernels`, "ngram" for
        a list of texts, a function of two rows, which may be any objects, or "precomputed".
    column_kernel : str or callable
        The same for columns; or "delta", for columns that have names only.
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

    alpha: float = 1e-3

    @calm
    def fit(self, rows: Any, columns: Any, Y: Any, sample_weight: Any = None) -> Self:
        """Learn from rows, columns and what is known about their cells.

        Parameters
        ----------
        rows : array-like or sparse matrix of shape (n_rows, n_row_features)
            Features of the rows; the square kernel matrix if precomputed.
        columns : array-like or sparse matrix of shape (n_columns, n_column_features)
            The same of the columns; names, or None, if ``column_kernel="delta"``.
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

    @calm
    def predict(self, rows: Any, columns: Any = None) -> Array:
        """Scores of cells; differences inside a row (a column, if rows are ranked) count.

        If cells are ranked, scores are on the scale of Y.

        Parameters
        ----------
        rows : array-like or sparse matrix of shape (n_rows, n_row_features)
            Rows, old or new; kernel values to the training rows if precomputed.
        columns : array-like of shape (n_columns, n_column_features), optional
            Columns, old or new; kernel values to the training columns if precomputed; names of
            training columns if ``column_kernel="delta"``. None for the training columns.

        Returns
        -------
        ndarray of shape (n_rows, n_columns)
            Scores. Kernel values are made in blocks of rows.
        """
        check_is_fitted(self)
        of_rows, of_columns = self._kernels()
        rows = of_rows.check(rows, self.n_features_in_, self.feature_names_[0])
        if columns is None:
            columns = self.columns_fit_
        else:
            columns = of_columns.check(columns, self.n_column_features_, self.feature_names_[1])
        weights = np.column_stack([self.coef_, self.row_coef_])
        by_row = of_rows.scores(rows, getattr(self, "rows_fit_", None), weights)
        weights = np.ascontiguousarray((by_row[:, :-1] + self.column_coef_).T)
        scores = of_columns.scores(columns, self.columns_fit_, weights).T
        return np.asarray(scores + by_row[:, -1:] + self.intercept_)

    @calm
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
        if self.column_kernel == DELTA and leave in ("columns", "both"):
            raise ValueError(
                f"leave={leave!r}: with column_kernel='delta' a column is like no other, so "
                "nothing is known of one that was held out. Give features of the columns, or hold "
                "out rows."
            )
        task: ConditionalTask = clone(self)._prepare(rows, columns, Y, leave, sample_weight)
        return task

    def _kernels(self) -> tuple[SideKernel, SideKernel]:
        return (
            side_kernel("rows", self.row_kernel, self.row_gamma, self.row_kernel_params),
            side_kernel(
                "columns", self.column_kernel, self.column_gamma, self.column_kernel_params
            ),
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
        Y = as_real("Y", as_array(Y, "Y"), "pass real numbers, NaN where a score is unknown")
        if Y.ndim != 2:
            raise ValueError(
                f"Y has shape {Y.shape}; expected the table of scores, (n_rows, n_columns)."
            )
        if self.column_kernel == DELTA and columns is None:
            columns = np.arange(Y.shape[1])
        n_rows, n_columns = Y.shape
        advice = "train on fewer rows or columns"
        check_matrix_fits(n_rows, n_columns, "a table", advice, n_matrices=TABLES)
        kernels = self._kernels()
        names = [
            kernel.names(items) for kernel, items in zip(kernels, (rows, columns), strict=True)
        ]
        items = kernels[0].check(rows), kernels[1].check(columns)
        for kernel, each, n in zip(kernels, items, Y.shape, strict=True):
            kernel.check_count(each, n)
        words = "row", "column"
        if self.ranked == "rows":
            kernels, items, words, Y = kernels[::-1], items[::-1], words[::-1], Y.T
            leave = {"rows": "columns", "columns": "rows"}.get(leave, leave)
        is_one_list = self.ranked == "cells"
        if sample_weight is not None and self.ranked != "columns":
            raise ValueError(f"ranked={self.ranked!r}: only rows that are lists have weights.")
        Y = check_table(Y, *words)
        loss = table_loss(self, Y, self.ties, sample_weight, one_list=is_one_list)
        has_constant = [
            kernel.is_linear if self.fit_intercept == "auto" else bool(self.fit_intercept)
            for kernel in kernels
        ]
        instances, added = kernels[0].make(items[0], loss.weight, constant=has_constant[0])
        ranked, also = kernels[1].make(
            items[1],
            constant=is_one_list and has_constant[1],
            is_centered=not is_one_list,
        )
        table = Table(loss, instances, ranked, self.tol, self.max_iter)
        task = ConditionalTask(self, table, leave, words)
        task.kernels, task.items, task.feature_names = kernels, items, names
        task.added = added, also
        return task

    def _fit_task(self, task: ConditionalTask) -> Self:
        kernels, items, table = task.kernels, task.items, task.table
        solution = solve_table(self, table, (self.row_kernel, self.column_kernel))
        B, shared = kernels[0].split(solution.coef[0], items[0], table.rows, task.added[0])
        stacked = np.vstack([B, shared]).T
        both, of_rows = kernels[1].split(stacked, items[1], table.columns, task.added[1])
        coef, self.row_coef_, self.column_coef_ = both.T[:-1], of_rows[:-1], both.T[-1].copy()
        if self.ranked == "rows":
            kernels, items, coef = kernels[::-1], items[::-1], coef.T
            self.row_coef_, self.column_coef_ = self.column_coef_, self.row_coef_
        rows, columns = items
        self.coef_ = np.ascontiguousarray(coef)
        self.feature_names_ = task.feature_names
        self.n_features_in_ = rows.shape[1]
        self.n_column_features_ = 0 if kernels[1].kernel is None else columns.shape[1]
        self.n_columns_ = columns.shape[0]
        self.n_pairs_, self.n_iter_ = table.loss.n_pairs, solution.n_iter
        self.columns_fit_ = columns
        self.__dict__.pop("rows_fit_", None)
        if not (kernels[0].is_precomputed or kernels[0].is_linear):
            self.rows_fit_ = rows
        self.intercept_ = 0.0
        if table.loss.one_list:
            self.intercept_ = float(np.nanmean(table.loss.Y - self.predict(rows)))
        return self


class ConditionalTask(TableTask):
    """ConditionalRankRLS with its data, for cross-validation.

    Attributes
    ----------
    kernels, items : tuple
        Of the rows of the table and of what is ranked in each; those of the columns first if rows
        are ranked.
    feature_names : list
        Names of the features of the rows and of the columns, as the user gave them.
    added : tuple of float
        Constants that are added to the kernels.
    """

    kernels: tuple[SideKernel, SideKernel]
    items: tuple[Any, Any]
    feature_names: list[list[str] | None]
    added: tuple[float, float]

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

    @calm
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


class SideKernel(NamedTuple):
    """The kernel of one side.

    Attributes
    ----------
    what : {"rows", "columns"}
        For messages.
    kernel : Kernel or None
        None for "delta": an item is like itself only.
    """

    what: str
    kernel: Kernel | None

    @property
    def is_precomputed(self) -> bool:
        """Whether kernel values are given."""
        return self.kernel is not None and self.kernel.is_precomputed

    @property
    def is_linear(self) -> bool:
        """Whether the model has weights of features."""
        return self.kernel is not None and self.kernel.is_linear

    def names(self, items: Any) -> list[str] | None:
        """Names of the features, if the items are a frame of them."""
        return None if self.kernel is None or self.is_precomputed else column_names(items)

    def check(
        self, items: Any, n_features: int | None = None, names: list[str] | None = None
    ) -> Any:
        """Features or kernel values of items, checked; names for "delta".

        `n_features` and `names` are what a fitted model expects.
        """
        if self.kernel is None:
            return _check_names(items)
        if items is None:
            raise ValueError(f"{self.what} is None; only column_kernel='delta' needs no features.")
        check_items(self.what, items)
        objects = as_objects(self.what, items) if self.kernel.takes_objects else None
        if objects is not None:
            return objects
        features = self.names(items)
        if names is not None and features not in (None, names):
            raise ValueError(
                f"{self.what} has the features {listed(features or (), 6)}; the model was trained "
                f"with {listed(names, 6)}, in this order: pass {self.what}[names] with these names."
            )
        checked = check_array(
            as_array(items, self.what),
            accept_sparse=False if self.is_precomputed else "csr",
            dtype=[np.float64, np.float32],
            input_name=self.what,
            copy=n_features is None,  # a model keeps them, and the caller may change them
        )
        if n_features is not None and checked.shape[1] != n_features:
            unit = "kernel values to the training items" if self.is_precomputed else "features"
            raise ValueError(
                f"{self.what} has {checked.shape[1]} columns; the model was trained with "
                f"{n_features} {unit}."
            )
        return checked

    def check_count(self, items: Any, n: int) -> None:
        """As many items as the table has; square if kernel values are given."""
        if items.shape[0] != n or (self.is_precomputed and items.shape[1] != n):
            expected = f"the kernel values between them, ({n}, {n})"
            raise ValueError(
                f"{self.what} has shape {items.shape}, but Y has {n} {self.what}; give "
                f"{expected if self.is_precomputed else 'one for each'}, and look whether rows and "
                "columns were swapped."
            )

    def make(
        self,
        items: Any,
        weight: Array | None = None,
        *,
        constant: bool = False,
        is_centered: bool = False,
    ) -> tuple[Side, float]:
        """What the solver sees, and the constant that is added to the kernel, the mean of k(x, x).

        Features if they are fewer than items, else kernel values. Refused before memory is taken if
        a kernel matrix would not fit.
        """
        n = items.shape[0]
        is_kernel, added = not self.is_linear or items.shape[1] >= n, 0.0
        if is_kernel:
            advice = f"use a linear kernel on fewer features, or fewer {self.what}"
            what = f"a kernel matrix of the {self.what}"
            check_matrix_fits(n, n, what, advice, n_matrices=MATRICES)
            matrix = np.eye(n) if self.kernel is None else self.kernel.matrix(items)
        else:
            matrix = np.asarray(items.toarray() if sp.issparse(items) else items, dtype=np.float64)
        if constant:
            matrix, added = with_constant(matrix, is_kernel=is_kernel, weight=weight)
        return Side(matrix, is_kernel, is_centered), added

    def split(self, B: Array, items: Any, side: Side, added: float) -> tuple[Array, Array]:
        """Weights of the functions of this side, and what the constant among them adds.

        B has a row for each column of ``side.matrix``.
        """
        B, shared = without_constant(B, added, is_kernel=side.is_kernel)
        return np.asarray(items.T @ B) if self.is_linear and side.is_kernel else B, shared

    def scores(self, items: Any, fitted: Any, weights: Array) -> Array:
        """``k(items, fitted) weights``, kernel values in blocks; weights of features if linear."""
        if self.kernel is None:
            place = {name: k for k, name in enumerate(fitted.tolist())}
            unknown = [name for name in items.tolist() if name not in place]
            if unknown:
                raise ValueError(
                    f"the column {unknown[0]!r} is unknown to the model, which was trained with "
                    f"{len(place)} columns without features; give columns of these, or train with "
                    "features of the columns."
                )
            return np.asarray(weights[[place[name] for name in items.tolist()]])
        kept = None if self.is_precomputed or self.is_linear else fitted
        features = FeatureMap(self.kernel, None, len(weights), None, kept)
        return np.asarray(features.scores(items, weights))


def side_kernel(what: str, function: Any, gamma: Any, params: dict[str, Any] | None) -> SideKernel:
    """The kernel that these parameters name, checked."""
    params = dict(params or {})
    if isinstance(function, str) and function == DELTA:
        if what == "rows":
            raise ValueError(
                "row_kernel='delta': rows without features teach nothing about other rows. If the "
                "columns have features, swap rows and columns, with column_kernel='delta' and "
                "ranked='rows'."
            )
        if gamma is not None or params:
            raise ValueError("column_kernel='delta' has no parameters; leave them out.")
        return SideKernel(what, None)
    if callable(function) or function == "ngram":
        return SideKernel(what, Kernel(function, params=params))
    return SideKernel(what, Kernel(function, gamma, **params))


def _check_names(items: Any) -> NDArray[Any]:
    """Names of columns without features, each once."""
    names = np.asarray(as_array(items, "columns"))
    if names.ndim != 1 or names.dtype.kind not in "iuUO":
        raise ValueError(
            f"columns has dtype {names.dtype} and shape {names.shape}; with column_kernel='delta' "
            "give a name (text or whole number) for each column, or None."
        )
    names = names if names.dtype.kind in "iu" else names.astype(str)
    if len(np.unique(names)) < len(names):
        raise ValueError("columns names a column twice; give each name once.")
    return names
