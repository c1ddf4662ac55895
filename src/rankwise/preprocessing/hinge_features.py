"""Piecewise linear features."""

from __future__ import annotations

from typing import ClassVar, Self

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils import Tags
from sklearn.utils.validation import _check_feature_names_in, check_is_fitted

from rankwise.arrays import Matrix, MatrixLike, Numbers
from rankwise.fitted_schema import FittedSchema, Floats, Ints
from rankwise.graphs.supervision import TargetLike
from rankwise.preprocessing.validate_features import validate_X
from rankwise.validation import check_int, restored_on_failure


class HingeFeatures(TransformerMixin, BaseEstimator):
    """Add piecewise linear features ``max(x − k, 0)`` at knots k of each feature x.

    Use it before a linear ranker for nonlinear effects that remain interpretable.

    A linear ranker on these columns is an additive model: its score is a sum of piecewise linear
    curves, one for each feature, with a bend at each knot. The exact cross-validation of the ranker
    is unchanged, and `rankwise.plot.FeatureCurvesDisplay` draws the curves.

    Parameters
    ----------
    n_knots : int, default=4
        Number of knots of each feature, at evenly spaced quantiles of its values. Frequent values
        give fewer knots: duplicates are removed.
    n_columns : int, default=None
        Number of leading columns that get knots; None means all. X may then be sparse, such as
        columns of numbers followed by many columns of categories.

    Attributes
    ----------
    knots_ : ndarray of shape (n_features_out - n_features_in,)
        The knots of all features, one feature after the other.
    columns_ : ndarray of int
        Feature of each knot.
    n_features_in_ : int
        Number of features seen in `fit`.
    feature_names_in_ : ndarray of str
        Names of the features, if X had any.

    Examples
    --------
    >>> from rankwise import HingeFeatures
    >>> HingeFeatures(n_knots=1).fit_transform([[0.0], [1.0], [4.0]])
    array([[0., 0.],
           [1., 0.],
           [4., 3.]])
    """

    _fitted: ClassVar[FittedSchema] = {
        "columns_": Ints("knots"),
        "knots_": Floats("knots"),
    }

    def __init__(self, n_knots: int = 4, *, n_columns: int | None = None) -> None:
        self.n_knots = n_knots
        self.n_columns = n_columns

    @restored_on_failure
    def fit(self, X: MatrixLike, y: TargetLike | None = None) -> Self:
        """Choose the knots.

        Parameters
        ----------
        X : array-like or data frame of shape (n_items, n_features)
            Items, preferably scaled.
        y : ignored
            Accepted for Pipelines.

        Returns
        -------
        HingeFeatures
            The fitted transformer.
        """
        n_knots = check_int("n_knots", self.n_knots, "the number of knots of each feature")
        X = validate_X(self, X, accept_sparse=self._sparse_format())
        probabilities = np.arange(1, n_knots + 1) / (n_knots + 1)
        knots_by_column = []
        for column in self._hinged_columns(X).T:
            quantiles = np.unique(np.quantile(column, probabilities))
            is_inside_range = (quantiles > column.min()) & (quantiles < column.max())
            knots_by_column.append(quantiles[is_inside_range])
        n_knots_by_column = [len(knots) for knots in knots_by_column]
        self.knots_ = np.concatenate(knots_by_column).astype(np.float64)
        self.columns_ = np.repeat(np.arange(len(knots_by_column)), n_knots_by_column)
        return self

    def transform(self, X: MatrixLike) -> Matrix:
        """Append the hinges to the features.

        Parameters
        ----------
        X : array-like or data frame of shape (n_items, n_features)
            Items.

        Returns
        -------
        ndarray or csr matrix of shape (n_items, n_features + n_hinges)
            Features, followed by hinges.
        """
        check_is_fitted(self)
        X = validate_X(self, X, reset=False, accept_sparse=self._sparse_format())
        columns = self._hinged_columns(X)[:, self.columns_]
        hinges = np.maximum(columns - self.knots_.astype(X.dtype), 0)
        if sp.issparse(X):
            return sp.hstack([X, sp.csr_array(hinges)], format="csr")
        return np.hstack([X, hinges])

    def _sparse_format(self) -> bool | str:
        """Value of `accept_sparse` for scikit-learn's validation."""
        if self.n_columns is None:
            return False
        return "csr"

    def _hinged_columns(self, X: MatrixLike) -> Numbers:
        """The columns that get knots, as a dense array."""
        columns = X[:, : self.n_columns]
        if sp.issparse(columns):
            columns = columns.toarray()
        return np.asarray(columns)

    def get_feature_names_out(self, input_features: ArrayLike | None = None) -> Numbers:
        """Return the names of the output columns.

        Parameters
        ----------
        input_features : array-like of str, default=None
            Names of the input columns; None takes those seen in `fit`.

        Returns
        -------
        ndarray of str
            The input names, followed by ``name>knot`` for the hinges.
        """
        check_is_fitted(self)
        names = _check_feature_names_in(self, input_features)
        hinge_names = [
            f"{names[column]}>{knot:.6g}"
            for column, knot in zip(self.columns_, self.knots_, strict=True)
        ]
        return np.concatenate([names, np.array(hinge_names, dtype=object)])

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags
