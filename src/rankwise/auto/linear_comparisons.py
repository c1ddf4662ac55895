"""Linear models of comparisons: differences of items, and columns of pairs."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

from rankwise.arrays import Array, Indices
from rankwise.kernels.stable_products import row_products
from rankwise.rankers.rank_logistic import RankLogistic


class ComparisonDesign:
    """Scores ``f(first) − f(second)`` of item features, plus columns of the comparisons.

    Parameters
    ----------
    features : ndarray or csr_array of shape (n_items, n_features)
        Features of the items.
    first, second : ndarray of int, shape (n_comparisons,)
        The two items of each comparison.
    dense_columns : ndarray of shape (n_comparisons, n_columns)
        Further columns, which change their sign with the sides.
    indicators : csr_array of shape (n_comparisons, n_indicators), optional
        Further columns with few entries.
    """

    def __init__(
        self,
        features: Any,
        first: Indices,
        second: Indices,
        dense_columns: Array,
        indicators: sp.csr_array | None = None,
    ) -> None:
        n_comparisons = len(first)
        if indicators is None:
            indicators = sp.csr_array((n_comparisons, 0))
        self.features = features
        self.first = first
        self.second = second
        self.dense_columns = dense_columns
        self.indicators = indicators

        # incidence matrix: a comparison is a row, with 1 for its first item and −1 for its second
        every_row = np.arange(n_comparisons)
        signs = np.repeat([1.0, -1.0], n_comparisons)
        rows = np.concatenate([every_row, every_row])
        items = np.concatenate([first, second])
        self._incidence = sp.csr_array(
            (signs, (rows, items)), shape=(n_comparisons, features.shape[0])
        )
        self._sizes = (features.shape[1], dense_columns.shape[1], indicators.shape[1])
        self.n_coefficients = sum(self._sizes)

    def take(self, rows: Indices) -> ComparisonDesign:
        """The design of the selected comparisons."""
        return ComparisonDesign(
            self.features,
            self.first[rows],
            self.second[rows],
            self.dense_columns[rows],
            self.indicators[rows],
        )

    def split(self, coefficients: Array) -> tuple[Array, Array, Array]:
        """Coefficients of the item features, of the dense columns, and of the indicators."""
        n_features, n_dense_columns, _ = self._sizes
        feature_coef, dense_coef, indicator_coef = np.split(
            coefficients, [n_features, n_features + n_dense_columns]
        )
        return feature_coef, dense_coef, indicator_coef

    def differences(self, coefficients: Array) -> Array:
        """The difference of scores of each comparison."""
        feature_coef, dense_coef, indicator_coef = self.split(coefficients)
        scores = row_products(self.features, feature_coef)  # of the items
        differences: Array = scores[self.first] - scores[self.second]
        if len(dense_coef):
            differences = differences + self.dense_columns @ dense_coef
        if len(indicator_coef):
            differences = differences + self.indicators @ indicator_coef
        return differences

    def gradient(self, residuals: Array) -> Array:
        """Transposed design times one number per comparison."""
        # transposed design times the residuals, for the three blocks of its columns
        item_residuals = self._incidence.T @ residuals
        return np.concatenate(
            [
                self.features.T @ item_residuals,
                self.dense_columns.T @ residuals,
                self.indicators.T @ residuals,
            ]
        )

    def gram(self, weight: Array) -> Array:
        """Transposed design times the weighted design, by blocks.

        The block of the item features is ``Rᵀ L R`` with the weighted Laplacian L of the items, so
        that its cost grows with the number of items, not of comparisons.
        """
        # Dᵀ W D for the design D, whose columns are [item feature differences, dense, indicators]
        n_comparisons = len(weight)
        diagonal = sp.dia_array((weight[None, :], [0]), shape=(n_comparisons, n_comparisons))
        weighted_incidence = sp.csr_array(diagonal @ self._incidence)
        weighted_dense = weight[:, None] * self.dense_columns
        weighted_indicators = diagonal @ self.indicators

        # blocks of the item features, whose differences are incidence times features
        features = self.features
        laplacian = sp.csr_array(self._incidence.T @ weighted_incidence)
        features_features = _dense(features.T @ _dense(laplacian @ features))
        features_dense = _dense(features.T @ (weighted_incidence.T @ self.dense_columns))
        features_indicators = _dense(features.T @ (weighted_incidence.T @ self.indicators))

        # blocks of the further columns
        dense_dense = self.dense_columns.T @ weighted_dense
        dense_indicators = _dense(self.indicators.T @ weighted_dense).T
        indicators_indicators = _dense(self.indicators.T @ weighted_indicators)
        blocks = [
            [features_features, features_dense, features_indicators],
            [features_dense.T, dense_dense, dense_indicators],
            [features_indicators.T, dense_indicators.T, indicators_indicators],
        ]
        return np.block(blocks)


def fitted_rank_logistic(alpha: float, coef: Array) -> RankLogistic:
    """A RankLogistic with these coefficients, as if it had been fitted."""
    ranker = RankLogistic(alpha)
    ranker.n_features_in_ = len(coef)
    ranker.coef_ = coef
    return ranker


def _dense(matrix: Any) -> Array:
    if sp.issparse(matrix):
        return np.asarray(matrix.toarray())
    return np.asarray(matrix)
