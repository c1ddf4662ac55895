"""Piecewise linear features."""

from __future__ import annotations

from typing import Any, ClassVar, Self

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils.validation import _check_feature_names_in, check_is_fitted

from rankwise.fitted_schema import FittedSchema, Floats, Ints
from rankwise.preprocessing.validate_features import validate_X
from rankwise.validation import check_int, restored_on_failure


class HingeFeatures(TransformerMixin, BaseEstimator):
    """Each feature x, and ``max(x − k, 0)`` at some knots k between its values.

    Use it before a linear ranker for curved effects that can still be read.

    A linear ranker on these columns is an additive model: its score is a sum of piecewise linear
    curves, one for each feature, with a bend at each knot. The exact cross-validation of the
    ranker stays as it is, and `rankwise.plot.FeatureCurvesDisplay` draws the curves.

    Parameters
    ----------
    n_knots : int
        Number of knots of each feature, at equal steps between quantiles. Values that are frequent
        give fewer: equal knots count once.
    n_columns : int, optional
        Bend the first so many columns only. X may then be sparse, such as columns of numbers before
        many columns of categories.

    Attributes
    ----------
    knots_ : ndarray of shape (n_features_out - n_features_in,)
        The knots of all features, one feature after the other.
    columns_ : ndarray of int
        The feature that each of them is of.
    n_features_in_ : int
        Number of features seen in `fit`.
    feature_names_in_ : ndarray of str
        Their names, if X had any.

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
    def fit(self, X: Any, y: Any = None) -> Self:
        """Choose the knots.

        Parameters
        ----------
        X : array-like or data frame of shape (n_items, n_features)
            Items, best scaled.
        y : ignored
            Only there for Pipelines.

        Returns
        -------
        HingeFeatures
            The fitted transformer.
        """
        n_knots = check_int("n_knots", self.n_knots, "the number of knots of each feature")
        X = self._bent(validate_X(self, X, accept_sparse=self._takes_sparse()))
        levels = np.arange(1, n_knots + 1) / (n_knots + 1)
        knots = []
        for column in X.T:
            quantiles = np.unique(np.quantile(column, levels))
            knots.append(quantiles[(quantiles > column.min()) & (quantiles < column.max())])
        self.knots_ = np.concatenate(knots).astype(np.float64)
        self.columns_ = np.repeat(np.arange(len(knots)), [len(each) for each in knots])
        return self

    def transform(self, X: Any) -> Any:
        """The features, then the hinges.

        Parameters
        ----------
        X : array-like or data frame of shape (n_items, n_features)
            Items.

        Returns
        -------
        ndarray or csr matrix of shape (n_items, n_features + n_hinges)
            Columns.
        """
        check_is_fitted(self)
        X = validate_X(self, X, reset=False, accept_sparse=self._takes_sparse())
        bent = self._bent(X)
        hinges = np.maximum(bent[:, self.columns_] - self.knots_.astype(X.dtype), 0)
        if sp.issparse(X):
            return sp.hstack([X, sp.csr_array(hinges)], format="csr")
        return np.hstack([X, hinges])

    def _takes_sparse(self) -> Any:
        return False if self.n_columns is None else "csr"

    def _bent(self, X: Any) -> NDArray[Any]:
        """The columns that get knots."""
        bent = X[:, : self.n_columns]
        return np.asarray(bent.toarray() if sp.issparse(bent) else bent)

    def get_feature_names_out(self, input_features: ArrayLike | None = None) -> NDArray[Any]:
        """The names, then ``name>knot`` for the hinges."""
        check_is_fitted(self)
        names = _check_feature_names_in(self, input_features)
        bends = zip(self.columns_, self.knots_, strict=True)
        hinges = [f"{names[j]}>{knot:.6g}" for j, knot in bends]
        return np.concatenate([names, np.array(hinges, dtype=object)])

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags
