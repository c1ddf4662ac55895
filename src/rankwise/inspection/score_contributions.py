"""Contribution of each column to the score of an item, relative to its group."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator

from rankwise.arrays import Array, Indices, Matrix, MatrixLike, dense_rows
from rankwise.caching import cached_property
from rankwise.groups import Groups, encode_groups
from rankwise.inspection.model_parts import input_columns, name_columns, unwrap
from rankwise.rankers.pipelines import input_column_of_feature
from rankwise.validation import check_option


@dataclass(frozen=True, eq=False)
class Contributions:
    """Contributions of the columns of a linear model to the scores; made by `contributions`.

    Attributes
    ----------
    weights : ndarray of shape (n_columns,)
        Weights of the columns of X; ones if the columns of X already are contributions.
    X : ndarray or sparse matrix of shape (n_items, n_columns)
        Columns with one weight each.
    groups : Groups
        The group of each item.
    names : list of str
        Names of the columns.
    """

    weights: Array
    X: Matrix
    groups: Groups
    names: list[str]

    @cached_property
    def means(self) -> Matrix:
        """Mean of each column of X in each group."""
        codes = self.groups.codes
        sizes = self.groups.sizes
        n_items = len(codes)
        # A sparse matrix of shape (n_groups, n_items) that takes the mean of each group
        weight_of_item = 1.0 / sizes[codes]
        averaging = sp.csr_matrix(
            (weight_of_item, (codes, np.arange(n_items))), shape=(len(sizes), n_items)
        )
        return averaging @ self.X

    @cached_property
    def values(self) -> Array:
        """Contributions, shape (n_items, n_columns).

        Their sum over the columns is the score of the item minus the mean score of its group.
        """
        all_items = np.arange(len(self.groups.codes))
        all_columns = np.arange(len(self.weights))
        return self.of(all_items, all_columns)

    def of(self, items: Indices, columns: Indices) -> Array:
        """Return the contributions of some columns to some items.

        Parameters
        ----------
        items, columns : ndarray of int
            Positions of the items and of the columns.

        Returns
        -------
        ndarray of shape (n_selected_items, n_selected_columns)
            Contributions.
        """
        # weight · (feature − mean of the feature in the group of the item)
        means = self.means[self.groups.codes[items]]
        centered = self.X[items][:, columns] - means[:, columns]
        return np.asarray(self.weights[columns] * dense_rows(centered))

    @cached_property
    def scores(self) -> Array:
        """Scores of the items minus the mean of their group: the sum of `values`."""
        mean_score_of_group = self.means @ self.weights
        return np.asarray(self.X @ self.weights - mean_score_of_group[self.groups.codes])

    @cached_property
    def spread(self) -> Array:
        """Standard deviation of the contributions of each column inside groups."""
        # Standard deviation of the contributions of each feature within groups
        n_items = len(self.groups.codes)
        if sp.issparse(self.X):
            # Σ (x − mean)² = Σ x² − Σ n_g mean_g², which keeps the matrices sparse
            sum_of_squares = np.ones(n_items) @ self.X.multiply(self.X)
            squares_of_means = self.groups.sizes @ self.means.multiply(self.means)
            squares_within_groups = np.maximum(sum_of_squares - squares_of_means, 0.0)
        else:
            centered = self.X - self.means[self.groups.codes]
            squares_within_groups = (centered**2).sum(axis=0)
        standard_deviation = np.sqrt(squares_within_groups / n_items)
        return np.asarray(np.abs(self.weights) * standard_deviation)

    @cached_property
    def share(self) -> Array:
        """Share of the variance of the scores inside groups that each column explains.

        ``Σ_i c_ij f_i / Σ_i f_i²`` for the contribution c_ij of column j to item i and the centered
        scores f. The shares sum to 1; the share of a column
        that opposes the other columns is negative.
        """
        largest_score = float(np.abs(self.scores).max())
        if largest_score == 0.0:
            return np.zeros(len(self.weights))
        # Covariance of each contribution with the score, divided by the variance of the score. X
        # need not be centered, because the scores sum to 0 in each group.
        scaled_scores = self.scores / largest_score  # squares neither overflow nor underflow
        covariance = (self.weights / largest_score) * (self.X.T @ scaled_scores)
        return np.asarray(covariance / (scaled_scores @ scaled_scores))


def contributions(
    model: BaseEstimator, X: MatrixLike, groups: ArrayLike | None = None, *, by: str = "column"
) -> Contributions:
    """Explain the scores of a linear model by contributions of the columns, inside groups.

    Use it to see why a linear model ranks an item above another.

    Only differences inside a group affect a ranking, so the contributions are centered in each
    group: with weights w, feature j contributes ``w_j (x_ij − mean of x_j in the group of i)`` to
    the score of item i minus the mean score of its group. These are the SHAP values of a linear
    model with the item's group as background.

    Parameters
    ----------
    model : estimator
        A fitted linear ranker, or a linear model of scikit-learn; a Pipeline that ends in one.
    X : array-like, sparse matrix or data frame of shape (n_items, n_features)
        Items as `predict` takes them.
    groups : array-like of shape (n_items,), optional
        Group labels; None means one list.
    by : {"column", "feature"}, default="column"
        "column" sums the contributions of all features that a Pipeline derives from a column of X
        (one for each category, an indicator of missing values); "feature" reports the features of
        the ranker.

    Returns
    -------
    Contributions
        `values` has one row for each item and one column for each of `names`; `spread` and `share`
        summarize them.

    Raises
    ------
    ValueError
        If the model is not linear, or if `by` is "column" and a step combines columns (PCA).

    See Also
    --------
    permutation_importance : For any model.

    Examples
    --------
    >>> import pandas as pd
    >>> from sklearn.pipeline import make_pipeline
    >>> from sklearn.preprocessing import StandardScaler
    >>> from rankwise import RankRLS
    >>> from rankwise.inspection import contributions
    >>> X = pd.DataFrame({"bm25": [1.0, 2.0, 3.0, 4.0], "age": [2.0, 1.0, 1.0, 3.0]})
    >>> model = make_pipeline(StandardScaler(), RankRLS(1e-6)).fit(X, [1, 5, 7, 4])
    >>> result = contributions(model, X, groups=["a", "a", "b", "b"])
    >>> result.names
    ['bm25', 'age']
    >>> result.values.round(2)
    array([[-0.9 , -1.17],
           [ 0.9 ,  1.17],
           [-0.9 ,  2.35],
           [ 0.9 , -2.35]])
    """
    check_option("by", by, ("column", "feature"))
    parts = unwrap(model)
    weights = parts.weights()
    if weights is None:
        raise ValueError(
            f"{parts.name} does not have one weight for each feature: it is not linear, has "
            "several outputs, or is not a ranker. permutation_importance accepts any model."
        )
    features = parts.features(X, groups)
    encoded_groups = encode_groups(groups, features.shape[0])
    first_step = model  # it knows the columns of X
    if parts.steps is not None:
        first_step = parts.steps
    column_names = input_columns(first_step, X)
    if by == "feature" or parts.steps is None:
        feature_names = parts.feature_names(column_names, len(weights))
        return Contributions(weights, features, encoded_groups, feature_names)

    # Sum the weighted features of each column
    n_columns = getattr(first_step, "n_features_in_", len(weights))
    column_of_feature = input_column_of_feature(parts.steps, n_columns)
    if column_of_feature is None:
        raise ValueError(
            f"a step of {', '.join(parts.step_names)} combines several columns in a feature; "
            "pass by='feature' for the contributions of the features."
        )
    n_features = len(column_of_feature)
    features_to_columns = sp.csr_array(
        (weights, (np.arange(n_features), column_of_feature)), (n_features, n_columns)
    )
    contributions_of_columns = features @ features_to_columns  # they have weights of 1
    return Contributions(
        weights=np.ones(n_columns),
        X=contributions_of_columns,
        groups=encoded_groups,
        names=name_columns(column_names, n_columns),
    )
