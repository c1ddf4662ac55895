"""Features of boosted trees: cells, numbers scaled in groups, and scores of single columns."""

from __future__ import annotations

import itertools
from typing import Any, ClassVar, Self

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
        y, groups, weights = unpack_target(y, groups, sample_weight)
        self.needs_groups_ = groups is not None
        self.value_coef_ = np.zeros(sum(self.sizes))
        column_scores = np.empty((len(rows), len(self.sizes)))
        if self.sizes:
            values = sp.csc_array(X[rows][:, self._n_cells(X) :])
            graph = ScoreGraph(y, groups, sample_weight=weights)
            targets = rank_targets(graph)
            fold = fold_of_item(column_folds(graph), graph.n_items)
            for k, block in enumerate(self._value_slices()):
                coef, scores = _fit_column(values[:, block], targets, fold)
                self.value_coef_[block] = coef
                column_scores[:, k] = scores
        return self._join(X, rows, groups, column_scores)

    def transform(self, X: Any, groups: ArrayLike | None = None) -> NDArray[np.float32]:
        """Features of new items; see `fit_transform`."""
        check_is_fitted(self)
        X = self._validate(X, reset=False)
        values = X[:, self._n_cells(X) :]
        scores = [values[:, block] @ self.value_coef_[block] for block in self._value_slices()]
        return self._join(X, np.arange(X.shape[0]), groups, np.array(scores).T)

    def _validate(self, X: Any, *, reset: bool) -> Any:
        return validate_X(self, X, accept_sparse="csr", reset=reset, ensure_all_finite="allow-nan")

    def _n_cells(self, X: Any) -> int:
        """Number of columns before those of values and words."""
        return int(X.shape[1]) - sum(self.sizes)

    def _value_slices(self) -> list[slice]:
        """The columns of each category and text, among those of values and words."""
        bounds = itertools.accumulate(self.sizes, initial=0)
        return [slice(start, end) for start, end in itertools.pairwise(bounds)]

    def _join(
        self, X: Any, rows: Indices, groups: Any, column_scores: Array
    ) -> NDArray[np.float32]:
        """Cells, numbers scaled in groups, and scores of columns, computed block by block."""
        n_cells = self._n_cells(X)
        n_numbers = n_cells - self.n_codes
        n_scaled = n_numbers if self.needs_groups_ else 0
        first_score = n_cells + n_scaled
        features = np.empty((len(rows), first_score + len(self.sizes)), dtype=np.float32)
        codes = encode_groups(groups if self.needs_groups_ else None, len(rows)).codes
        block_size = max(1, BLOCK_ENTRIES // max(1, n_cells))
        for block in blocks_of_groups(codes, block_size):
            cells = dense_rows(X[rows[block]])[:, :n_cells]
            features[block, :n_cells] = cells
            if n_scaled:
                scaled = scale_observed(cells[:, :n_numbers], codes[block])
                features[block, n_cells:first_score] = scaled
        if self.sizes:
            features[:, first_score:] = column_scores
        return features


def blocks_of_groups(codes: Indices, block_size: int) -> list[Indices]:
    """Rows in blocks of about this size, of whole groups; one list is cut into every kth row."""
    if not codes.any():
        n_blocks = max(1, len(codes) // block_size)
        return [np.arange(k, len(codes), n_blocks) for k in range(n_blocks)]
    order = np.argsort(codes, kind="stable")
    starts = np.flatnonzero(np.diff(codes[order], prepend=-1))
    starts_block = np.diff(starts // block_size) > 0
    return np.split(order, starts[1:][starts_block])


def scale_observed(numbers: Array, codes: Indices) -> Array:
    """Numbers scaled in their group, without the missing values, which stay missing."""
    is_missing = np.isnan(numbers)
    if not is_missing.any():
        return np.asarray(scale_in_groups(numbers, codes))
    n_items = len(codes)
    sum_groups = sp.csr_array((np.ones(n_items), (codes, np.arange(n_items))))
    n_observed = np.maximum(sum_groups @ ~is_missing, 1)
    filled = np.where(is_missing, 0.0, numbers)
    means = sum_groups @ filled / n_observed
    deviations = np.where(is_missing, 0.0, filled - means[codes])
    standard_deviation = np.sqrt(sum_groups @ deviations**2 / n_observed)[codes]
    magnitude = np.sqrt(sum_groups @ filled**2 / n_observed)[codes]
    rounding = ROUNDING_EPSILONS * np.finfo(np.float64).eps * magnitude
    scaled = np.divide(
        deviations,
        standard_deviation,
        out=np.zeros_like(filled),
        where=standard_deviation > rounding,
    )
    return np.where(is_missing, np.nan, scaled)


def _fit_column(values: Any, targets: Array, fold: Indices) -> tuple[Array, Array]:
    """Coefficients of a ridge regression on the values of a column, and out-of-fold scores.

    The regularization is the one with the smallest squared error of the out-of-fold scores.
    """
    values_by_row = values.tocsr()
    least_error = np.inf
    best_ridge = RIDGES[0]
    best_scores = targets
    for ridge in RIDGES:
        scores = np.empty(len(targets))
        for k in range(fold.max() + 1):
            is_held_out = fold == k
            coef = _ridge_coef(values[~is_held_out], targets[~is_held_out], ridge)
            scores[is_held_out] = values_by_row[is_held_out] @ coef
        error = float(np.square(scores - targets).sum())
        if error < least_error:
            least_error = error
            best_ridge = ridge
            best_scores = scores
    return _ridge_coef(values, targets, best_ridge), best_scores


def _ridge_coef(values: Any, targets: Array, ridge: float) -> Array:
    model = Ridge(ridge, fit_intercept=False, solver="lsqr", tol=RIDGE_TOL)
    return np.asarray(model.fit(values, targets).coef_)
