"""Linear models of comparisons: differences of items, and columns of pairs."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

from rankwise.arrays import Array, Indices
from rankwise.kernels.stable_products import row_products


class ComparisonDesign:
    """Scores ``f(first) − f(second)`` of item features, plus columns of the comparisons.

    Parameters
    ----------
    features : ndarray or csr_array of shape (n_items, n_features)
        Features of the items.
    first, second : ndarray of int, shape (n_comparisons,)
        The two items of each comparison.
    columns : ndarray of shape (n_comparisons, n_columns)
        Further columns, which change their sign with the sides.
    indicators : csr_array of shape (n_comparisons, n_indicators), optional
        Further columns with few entries.
    """

    def __init__(
        self,
        features: Any,
        first: Indices,
        second: Indices,
        columns: Array,
        indicators: sp.csr_array | None = None,
    ) -> None:
        n_comparisons = len(first)
        if indicators is None:
            indicators = sp.csr_array((n_comparisons, 0))
        self.features = features
        self.first = first
        self.second = second
        self.columns = columns
        self.indicators = indicators

        # row of a comparison: 1 in the column of its first item, −1 in that of its second item
        every_row = np.arange(n_comparisons)
        signs = np.repeat([1.0, -1.0], n_comparisons)
        rows = np.concatenate([every_row, every_row])
        items = np.concatenate([first, second])
        self._incidence = sp.csr_array(
            (signs, (rows, items)), shape=(n_comparisons, features.shape[0])
        )
        self._sizes = (features.shape[1], columns.shape[1], indicators.shape[1])
        self.n_coefficients = sum(self._sizes)

    def take(self, rows: Indices) -> ComparisonDesign:
        """The design of the selected comparisons."""
        return ComparisonDesign(
            self.features,
            self.first[rows],
            self.second[rows],
            self.columns[rows],
            self.indicators[rows],
        )

    def split(self, coefficients: Array) -> tuple[Array, Array, Array]:
        """Coefficients of the item features, of the columns, and of the indicators."""
        n_features, n_columns, _ = self._sizes
        feature_coef, column_coef, indicator_coef = np.split(
            coefficients, [n_features, n_features + n_columns]
        )
        return feature_coef, column_coef, indicator_coef

    def differences(self, coefficients: Array) -> Array:
        """The difference of scores of each comparison."""
        feature_coef, column_coef, indicator_coef = self.split(coefficients)
        scores = row_products(self.features, feature_coef)
        differences: Array = scores[self.first] - scores[self.second]
        if len(column_coef):
            differences = differences + self.columns @ column_coef
        if len(indicator_coef):
            differences = differences + self.indicators @ indicator_coef
        return differences

    def gradient(self, residuals: Array) -> Array:
        """Transposed design times one number per comparison."""
        item_residuals = self._incidence.T @ residuals
        return np.concatenate(
            [
                self.features.T @ item_residuals,
                self.columns.T @ residuals,
                self.indicators.T @ residuals,
            ]
        )

    def gram(self, weight: Array) -> Array:
        """Transposed design times the weighted design, by blocks.

        The block of the item features is ``Rᵀ L R`` with the weighted Laplacian L of the items, so
        that its cost grows with the number of items, not of comparisons.
        """
        # rows of the design times the weights
        n_comparisons = len(weight)
        diagonal = sp.dia_array((weight[None, :], [0]), shape=(n_comparisons, n_comparisons))
        weighted_incidence = sp.csr_array(diagonal @ self._incidence)
        weighted_columns = weight[:, None] * self.columns
        weighted_indicators = diagonal @ self.indicators

        # blocks of the item features: features of a comparison are incidence times item features
        features = self.features
        laplacian = sp.csr_array(self._incidence.T @ weighted_incidence)
        features_features = _dense(features.T @ _dense(laplacian @ features))
        features_columns = _dense(features.T @ (weighted_incidence.T @ self.columns))
        features_indicators = _dense(features.T @ (weighted_incidence.T @ self.indicators))

        # blocks of the further columns
        columns_columns = self.columns.T @ weighted_columns
        columns_indicators = _dense(self.indicators.T @ weighted_columns).T
        indicators_indicators = _dense(self.indicators.T @ weighted_indicators)
        blocks = [
            [features_features, features_columns, features_indicators],
            [features_columns.T, columns_columns, columns_indicators],
            [features_indicators.T, columns_indicators.T, indicators_indicators],
        ]
        return np.block(blocks)


def _dense(matrix: Any) -> Array:
    if sp.issparse(matrix):
        return np.asarray(matrix.toarray())
    return np.asarray(matrix)
