"""ConditionalRankRLS: rank the columns of a table for each row, by features of both."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray
from scipy.stats import rankdata
from sklearn.base import BaseEstimator, clone
from sklearn.utils.metadata_routing import UNUSED
from sklearn.utils.validation import check_is_fitted

from rankwise.arrays import Array
from rankwise.estimators.base import RankerMixin
from rankwise.estimators.checks import warn_of_solutions
from rankwise.estimators.label_targets import check_table
from rankwise.estimators.table_sides import SideKernel, side_kernel
from rankwise.frames import as_array, check_same_index
from rankwise.losses import TableLoss
from rankwise.losses.table import RANKED
from rankwise.machine import Progress, calm, check_matrix_fits
from rankwise.metrics import get_metric
from rankwise.model_selection.candidates import check_alphas
from rankwise.model_selection.table_task import TableTask
from rankwise.options import check_option
from rankwise.real_numbers import as_real
from rankwise.solvers import Solutions
from rankwise.solvers.table_problem import TableProblem

TABLES = 8.0  # tables of the size of Y in memory at a time


class TableMixin(RankerMixin):
    """What a fitted ranker of tables does beside `predict`."""

    __metadata_request__fit = {"groups": UNUSED, "sample_weight": UNUSED}  # noqa: RUF012
    __metadata_request__score = {"groups": UNUSED, "sample_weight": UNUSED}  # noqa: RUF012

    ranked: str

    def rank(self, rows: Any, columns: Any = None) -> NDArray[np.intp]:
        """Ranks, 1 is best: of the columns for each row, or of the rows if these are ranked.

        Parameters
        ----------
        rows, columns
            As in `predict`.

        Returns
        -------
        ndarray of shape (n_rows, n_columns)
            Ranks; equal scores share the smallest of their ranks. If both are ranked, those of the
            columns.
        """
        scores = self.predict(rows, columns)  # type: ignore[attr-defined]
        axis = 0 if self.ranked == "rows" else 1
        return np.asarray(rankdata(-scores, method="min", axis=axis), dtype=np.intp)

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
            The metric; its mean over the columns if rows are ranked, over both if both are.
        """
        scores = self.predict(rows, columns)  # type: ignore[attr-defined]
        truth = as_real("Y", as_array(Y, "Y"))
        if truth.shape != scores.shape:
            raise ValueError(f"Y has shape {truth.shape}; expected {scores.shape}.")
        known = ~np.isnan(truth)
        units = {"columns": (0,), "rows": (1,), "both": (0, 1)}[self.ranked]
        cells = np.nonzero(known)
        judge = get_metric(metric)
        values = [float(judge(truth[known], scores[known], cells[unit])) for unit in units]
        return sum(values) / len(values)


class _Checked(NamedTuple):
    """The data of a fit, checked."""

    rows: Any
    columns: Any
    names: list[list[str] | None]
    row_kernel: SideKernel
    column_kernel: SideKernel
    problem: TableProblem
    is_turned: bool


@dataclass(eq=False, repr=False)
class ConditionalRankRLS(TableMixin, BaseEstimator):
    """Ranks the columns of a table for each row: targets for a drug, products for a customer.

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
        "linear", any other name known to `sklearn.metrics.pairwise.pairwise_kernels`, a function of
        two rows, or "precomputed".
    column_kernel : str or callable
        The same for columns; or "delta", for columns that have names only.
    row_gamma, column_gamma : float, optional
        Width of the named kernels.
    row_kernel_params, column_kernel_params : dict, optional
        "degree" and "coef0" of named kernels, keyword arguments of callable ones.
    ranked : {"columns", "rows", "both"}
        Which pairs are learned from: columns of one row, rows of one column, or both.
    cost, ties, group_weight : str
        As in `RankRLS`; the groups are the rows. Anything but ``cost="magnitude",
        ties="include"`` is solved by conjugate gradients.
    intercept : bool or "auto"
        Whether the columns have an order that all rows share: a constant, as large as the mean of
        k(x, x), is added to the kernel of the rows (to that of the columns if rows are ranked).
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

    learned: ClassVar[tuple[str, ...]] = ("rows_fit_", "columns_fit_")

    alpha: float = 1e-3
    _: KW_ONLY
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
    intercept: bool | str = "auto"
    tol: float = 1e-8
    max_iter: int | None = None

    @calm
    def fit(self, rows: Any, columns: Any, Y: Any) -> Self:
        """Learn from rows, columns and what is known about their cells.

        Parameters
        ----------
        rows : array-like or sparse matrix of shape (n_rows, n_row_features)
            Features of the rows; the square kernel matrix if precomputed.
        columns : array-like or sparse matrix of shape (n_columns, n_column_features)
            The same of the columns; names, or None, if ``column_kernel="delta"``.
        Y : array-like of shape (n_rows, n_columns)
            Scores, larger is better, NaN where unknown.

        Returns
        -------
        ConditionalRankRLS
            The fitted estimator.
        """
        alphas = check_alphas([self.alpha], "alpha")
        data = self._check_data(rows, columns, Y)
        with Progress("ConditionalRankRLS") as line:
            found = data.problem.solve(alphas, watch=line.iteration)
        self._keep(data, found)
        warn_of_solutions([found], (self.row_kernel, self.column_kernel), self.tol)
        return self

    @calm
    def predict(self, rows: Any, columns: Any = None) -> Array:
        """Scores of cells; only differences inside a row (a column, if rows are ranked) count.

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
        side, other = self._kernels()
        rows = side.check(rows, self.n_features_in_, self.feature_names_[0])
        if columns is None:
            columns = self.columns_fit_
        else:
            columns = other.check(columns, self.n_column_features_, self.feature_names_[1])
        rows_fit = getattr(self, "rows_fit_", None)
        weights = np.column_stack([self.coef_, self.row_coef_])
        seen = side.scores(rows, rows_fit, weights)
        across = seen[:, :-1] + self.column_coef_
        scores = other.scores(columns, self.columns_fit_, np.ascontiguousarray(across.T)).T
        return np.asarray(scores + seen[:, -1:])

    def leave_out(
        self,
        rows: Any,
        columns: Any,
        Y: Any,
        leave: str = "rows",
        *,
        alphas: ArrayLike | None = None,
        cv: Any = "auto",
    ) -> Array:
        """Scores of each cell by a model without its row, its column, or both. Exact.

        Parameters
        ----------
        rows, columns, Y
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
            model was trained on, so that columns of different folds can be compared.
        """
        task = self.hold_out_task(rows, columns, Y, leave)
        checked = check_alphas([self.alpha] if alphas is None else alphas, "alphas")
        held = task.held_out(checked, cv).scores
        return held if alphas is not None else np.asarray(held[:, :, 0])

    def hold_out_task(self, rows: Any, columns: Any, Y: Any, leave: str = "rows") -> TableTask:
        """The model and its data, ready to be cross-validated; see `rankwise.model_selection`."""
        data = clone(self)._check_data(rows, columns, Y)
        if data.column_kernel.is_delta and leave in ("columns", "both"):
            raise ValueError(
                f"leave={leave!r}: with column_kernel='delta' a column is like no other, so "
                "nothing is known of one that was held out. Give features of the columns, or hold "
                "out rows."
            )

        def train(alpha: float) -> ConditionalRankRLS:
            model: ConditionalRankRLS = clone(self).set_params(alpha=alpha)
            return model.fit(rows, columns, Y)

        return TableTask(data.problem, leave, self.alpha, train, is_turned=data.is_turned)

    def _kernels(self) -> tuple[SideKernel, SideKernel]:
        return (
            side_kernel("rows", self.row_kernel, self.row_gamma, self.row_kernel_params),
            side_kernel(
                "columns", self.column_kernel, self.column_gamma, self.column_kernel_params
            ),
        )

    @property
    def _constants(self) -> tuple[bool, bool]:
        """Whether a constant is added to the kernel of the rows, and to that of the columns."""
        if not isinstance(self.intercept, bool):
            check_option("intercept", self.intercept, ("auto",))
        kernels = (self.row_kernel, "rows"), (self.column_kernel, "columns")
        on_rows, on_columns = (
            self.ranked != what
            and (self.intercept is True or (self.intercept == "auto" and kernel == "linear"))
            for kernel, what in kernels
        )
        return on_rows, on_columns

    def _check_data(self, rows: Any, columns: Any, Y: Any) -> _Checked:
        check_option("ranked", self.ranked, RANKED)
        side, other = self._kernels()
        if sp.issparse(Y):
            raise ValueError(
                "Y is a sparse matrix, where an unknown cell looks like a score of 0; pass an "
                "array with NaN where a score is unknown."
            )
        table = as_real("Y", as_array(Y, "Y"), "pass real numbers, NaN where a score is unknown")
        if table.ndim != 2:
            raise ValueError(
                f"Y has shape {table.shape}; expected the table of scores, (n_rows, n_columns)."
            )
        is_turned = self.ranked == "rows"
        table = (
            check_table(table.T, "column", "row").T
            if is_turned
            else check_table(table, "row", "column")
        )
        if other.is_delta and columns is None:
            columns = np.arange(table.shape[1])
        names = [side.names(rows), other.names(columns)]
        check_same_index(rows=rows, Y=Y)
        rows, columns = side.check(rows), other.check(columns)
        for kernel, items, n in ((side, rows, table.shape[0]), (other, columns, table.shape[1])):
            kernel.check_count(items, n)
        n_rows, n_columns = table.shape
        advice = "train on fewer rows or columns"
        check_matrix_fits(n_rows, n_columns, "a table", advice, n_matrices=TABLES)
        loss = TableLoss(
            table.T if is_turned else table,
            ranked="columns" if is_turned else self.ranked,
            cost=self.cost,
            ties=self.ties,
            group_weight=self.group_weight,
        )
        if not loss.n_pairs:
            raise ValueError(
                "there is nothing to rank: no two known cells can be compared (equal scores do not "
                "count if ties are left out)."
            )
        on_rows, on_columns = self._constants
        row_side = side.make(rows, constant=on_rows, is_centered=is_turned)
        is_centered = self.ranked == "columns"
        column_side = other.make(columns, constant=on_columns, is_centered=is_centered)
        sides = (column_side, row_side) if is_turned else (row_side, column_side)
        problem = TableProblem(loss, *sides, self.tol, self.max_iter)
        return _Checked(rows, columns, names, side, other, problem, is_turned)

    def _keep(self, data: _Checked, found: Solutions) -> None:
        for name in self.learned:
            self.__dict__.pop(name, None)
        B, problem = found.coef[0], data.problem
        sides = problem.rows, problem.columns
        if data.is_turned:
            B, sides = B.T, (sides[1], sides[0])
        on_rows, on_columns = self._constants
        B, shared = data.row_kernel.split(B, data.rows, sides[0], constant=on_rows)
        both = np.vstack([B, shared]).T
        C, down = data.column_kernel.split(both, data.columns, sides[1], constant=on_columns)
        self.coef_ = np.ascontiguousarray(C.T[:-1])
        self.column_coef_, self.row_coef_ = C.T[-1].copy(), down[:-1].copy()
        self.feature_names_ = data.names
        self.n_features_in_ = data.rows.shape[1]
        self.n_column_features_ = 0 if data.column_kernel.is_delta else data.columns.shape[1]
        self.n_columns_ = problem.loss.shape[0 if data.is_turned else 1]
        self.n_pairs_, self.n_iter_ = problem.loss.n_pairs, found.n_iter
        self.columns_fit_ = data.columns
        if not (data.row_kernel.is_precomputed or data.row_kernel.is_linear):
            self.rows_fit_ = data.rows
