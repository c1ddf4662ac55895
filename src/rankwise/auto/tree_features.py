"""Features of boosted trees: cells, numbers scaled in groups, and scores of single columns."""

from __future__ import annotations

from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.linear_model import Ridge
from sklearn.utils.validation import check_is_fitted

from rankwise.arrays import Array, Indices, dense_rows
from rankwise.auto.tree_growth import column_folds, rank_targets
from rankwise.fitted_schema import FittedSchema, Floats, Values
from rankwise.graphs import ScoreGraph
from rankwise.graphs.supervision import unpack_target
from rankwise.groups import encode_groups
from rankwise.model_selection.folds import fold_of_item
from rankwise.preprocessing.group_scaling import ROUNDING_EPSILONS, scale_in_groups
from rankwise.preprocessing.validate_features import validate_X

BLOCK_ENTRIES = 2**20  # entries of X that are processed at a time
RIDGES = (1.0, 10.0, 100.0)  # regularization of the score of a column, as numbers of rows
RIDGE_TOL = 1e-4


class TreeFeatures(TransformerMixin, BaseEstimator):
    """Features of boosted trees, from the cells of a table and the values of its categories.

    The columns of X are numbers, codes of categories, and then one column for each value of a
    category and each word of a text. Numbers and codes are passed through, missing values, too.
    The other features are the numbers scaled in their group, and for each category or text the
    prediction of a ridge regression of the rank target on its values or words alone. In
    `fit_transform` these predictions come from other groups (other items of one list), because
    trees would overfit predictions of their own training items.

    Parameters
    ----------
    n_codes : int, default=0
        Number of columns of codes.
    sizes : tuple of int, default=()
        Numbers of columns of each category and text.

    Attributes
    ----------
    value_coef_ : ndarray of shape (n_values,)
        Coefficients of the columns of values and words.
    needs_groups_ : bool
        Whether there are features that are scaled in groups.
    n_features_in_ : int
        Number of columns seen in `fit`.
    """

    _fitted: ClassVar[FittedSchema] = {
        "value_coef_": Floats("values"),
        "needs_groups_": Values(),
    }

    __metadata_request__fit = {"groups": True}  # noqa: RUF012
    __metadata_request__transform = {"groups": True}  # noqa: RUF012

    def __init__(self, n_codes: int = 0, sizes: tuple[int, ...] = ()) -> None:
        self.n_codes = n_codes
        self.sizes = sizes

    def categorical(self, n_columns: int) -> tuple[int, ...]:
        """Numbers of the columns of codes, for X with this number of columns."""
        # columns: numbers, codes, and one for each value of the categories and word of the texts
        n_cells = n_columns - sum(self.sizes)
        return tuple(range(n_cells - self.n_codes, n_cells))

    def fit(self, X: Any, y: Any, groups: ArrayLike | None = None) -> Self:
        """Fit the coefficients; see `fit_transform`."""
        self.fit_transform(X, y, groups)
        return self

    def fit_transform(
        self,
        X: Any,
        y: Any,
        groups: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
        rows: Indices | None = None,
    ) -> NDArray[np.float32]:
        """Fit the coefficients, and return the features with out-of-fold scores of columns.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_items, n_columns)
            Items.
        y : array-like of shape (n_rows,) or target of `make_target`
            Scores; larger is better.
        groups : array-like of shape (n_rows,), optional
            Group labels.
        sample_weight : array-like of shape (n_rows,), optional
            Weights of the items.
        rows : ndarray of int, optional
            Training items, to which y, groups and weights belong; by default all.

        Returns
        -------
        ndarray of float32, shape (n_rows, n_features)
            Features of the training items.
        """
        X = self._validate(X, reset=True)
        if rows is None:
            rows = np.arange(X.shape[0])
        y, groups, weights = unpack_target(y, groups, sample_weight)  # of these rows
        self.needs_groups_ = groups is not None
        self.value_coef_ = np.zeros(sum(self.sizes))
        column_scores = np.empty((len(rows), len(self.sizes)))
        if self.sizes:
            values_and_words = sp.csc_array(X[rows][:, self._n_cells(X) :])
            graph = ScoreGraph(y, groups, sample_weight=weights)
            targets = rank_targets(graph)
            fold = fold_of_item(column_folds(graph), graph.n_items)
            for k, indicators in enumerate(self._value_slices()):
                fitted = _fit_column(values_and_words[:, indicators], targets, fold)
                self.value_coef_[indicators] = fitted.coef
                column_scores[:, k] = fitted.out_of_fold_scores
        return self._join_features(X, rows, groups, column_scores)

    def transform(self, X: Any, groups: ArrayLike | None = None) -> NDArray[np.float32]:
        """Features of new items; see `fit_transform`."""
        check_is_fitted(self)
        X = self._validate(X, reset=False)
        values_and_words = X[:, self._n_cells(X) :]
        column_scores = [
            values_and_words[:, indicators] @ self.value_coef_[indicators]
            for indicators in self._value_slices()
        ]
        every_row = np.arange(X.shape[0])
        return self._join_features(X, every_row, groups, np.array(column_scores).T)

    def _validate(self, X: Any, *, reset: bool) -> Any:
        return validate_X(self, X, accept_sparse="csr", reset=reset, ensure_all_finite="allow-nan")

    def _n_cells(self, X: Any) -> int:
        """Number of leading columns: numbers and codes."""
        return int(X.shape[1]) - sum(self.sizes)

    def _value_slices(self) -> list[slice]:
        """Range of the columns of each category and text among the columns of values and words."""
        slices = []
        start = 0
        for size in self.sizes:
            slices.append(slice(start, start + size))
            start += size
        return slices

    def _join_features(
        self, X: Any, rows: Indices, groups: Any, column_scores: Array
    ) -> NDArray[np.float32]:
        """Cells, numbers scaled in groups, and scores of columns, computed block by block."""
        n_cells = self._n_cells(X)
        n_numbers = n_cells - self.n_codes
        n_scaled = 0
        if self.needs_groups_:
            n_scaled = n_numbers
        else:  # trained on one list, where numbers are not scaled
            groups = None

        # columns: cells, numbers scaled in groups, scores of categories and texts
        first_score = n_cells + n_scaled
        features = np.empty((len(rows), first_score + len(self.sizes)), dtype=np.float32)
        group_codes = encode_groups(groups, len(rows)).codes
        block_size = max(1, BLOCK_ENTRIES // max(1, n_cells))
        for block in blocks_of_groups(group_codes, block_size):
            cells = dense_rows(X[rows[block]])[:, :n_cells]
            features[block, :n_cells] = cells
            if n_scaled:
                scaled = scale_observed(cells[:, :n_numbers], group_codes[block])
                features[block, n_cells:first_score] = scaled
        if self.sizes:
            features[:, first_score:] = column_scores
        return features


def blocks_of_groups(group_codes: Indices, block_size: int) -> list[Indices]:
    """Rows in blocks of about this size, of whole groups; one list is cut into every kth row."""
    n_rows = len(group_codes)
    is_one_list = not group_codes.any()
    if is_one_list:
        n_blocks = max(1, n_rows // block_size)
        return [np.arange(k, n_rows, n_blocks) for k in range(n_blocks)]  # every n_blocks-th row
    rows_by_group = np.argsort(group_codes, kind="stable")
    # a block begins with the first group that starts at a multiple of block_size, or beyond it
    start_of_group = np.flatnonzero(np.diff(group_codes[rows_by_group], prepend=-1))
    block_of_group = start_of_group // block_size
    starts_new_block = np.diff(block_of_group) > 0
    return np.split(rows_by_group, start_of_group[1:][starts_new_block])


def scale_observed(numbers: Array, group_codes: Indices) -> Array:
    """Numbers scaled in their group, without the missing values, which stay missing."""
    is_missing = np.isnan(numbers)
    if not is_missing.any():
        return np.asarray(scale_in_groups(numbers, group_codes))

    # moments of the observed numbers of each group, (n_groups, n_columns)
    n_items = len(group_codes)
    sum_by_group = sp.csr_array((np.ones(n_items), (group_codes, np.arange(n_items))))
    n_observed = np.maximum(sum_by_group @ ~is_missing, 1)
    filled = np.where(is_missing, 0.0, numbers)
    means = sum_by_group @ filled / n_observed
    deviations = np.where(is_missing, 0.0, filled - means[group_codes])
    standard_deviation = np.sqrt(sum_by_group @ deviations**2 / n_observed)
    root_mean_square = np.sqrt(sum_by_group @ filled**2 / n_observed)

    # a deviation of the size of rounding errors is that of a constant column
    rounding = ROUNDING_EPSILONS * np.finfo(np.float64).eps * root_mean_square
    is_varied = (standard_deviation > rounding)[group_codes]
    scaled = np.divide(
        deviations,
        standard_deviation[group_codes],
        out=np.zeros_like(filled),
        where=is_varied,
    )
    return np.where(is_missing, np.nan, scaled)


class _FittedColumn(NamedTuple):
    """A ridge regression on the values of one column.

    Attributes
    ----------
    coef : ndarray of shape (n_values,)
        Coefficients from all rows.
    out_of_fold_scores : ndarray of shape (n_rows,)
        Scores by models of the other folds.
    """

    coef: Array
    out_of_fold_scores: Array


def _fit_column(values: Any, targets: Array, fold: Indices) -> _FittedColumn:
    """Fit a ridge regression of the targets on the values of a column.

    The regularization is the one with the smallest squared error of the out-of-fold scores.

    Parameters
    ----------
    values : csc_array of shape (n_rows, n_values)
        Indicators of values or words.
    targets : ndarray of shape (n_rows,)
        Rank targets.
    fold : ndarray of int of shape (n_rows,)
        Fold of each row.
    """
    values_by_row = values.tocsr()
    least_error = np.inf
    best_ridge = RIDGES[0]
    best_scores = targets  # until the first ridge
    for ridge in RIDGES:
        scores = np.empty(len(targets))
        for k in range(fold.max() + 1):
            is_held_out = fold == k
            coef = _ridge_coef(values[~is_held_out], targets[~is_held_out], ridge)
            scores[is_held_out] = values_by_row[is_held_out] @ coef
        squared_error = float(np.square(scores - targets).sum())
        if squared_error < least_error:
            least_error = squared_error
            best_ridge = ridge
            best_scores = scores
    return _FittedColumn(_ridge_coef(values, targets, best_ridge), best_scores)


def _ridge_coef(values: Any, targets: Array, ridge: float) -> Array:
    model = Ridge(ridge, fit_intercept=False, solver="lsqr", tol=RIDGE_TOL)
    return np.asarray(model.fit(values, targets).coef_)
