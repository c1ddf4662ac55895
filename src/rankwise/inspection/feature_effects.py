"""Contribution of each feature to the score of an additive model, as a curve."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import MaxAbsScaler, MinMaxScaler, RobustScaler, StandardScaler

from rankwise.arrays import Array, MatrixLike
from rankwise.frames import as_array, column_names
from rankwise.inspection.model_parts import name_columns
from rankwise.preprocessing.hinge_features import HingeFeatures
from rankwise.rankers.base import RankerMixin
from rankwise.rankers.linear_models import linear_weights
from rankwise.rankers.pipelines import transform_step

N_POINTS = 200  # of a curve
AFFINE_SCALERS = (MaxAbsScaler, MinMaxScaler, RobustScaler, StandardScaler)


class FeatureCurve(NamedTuple):
    """Contribution of one feature to the score.

    Attributes
    ----------
    name : str
        Name of the feature.
    x : ndarray
        Its values, ascending.
    added : ndarray
        Their contributions to the score, centered over the items.
    spread : float
        Standard deviation of the contribution over the items.
    """

    name: str
    x: Array
    added: Array
    spread: float


def has_curves(estimator: BaseEstimator) -> bool:
    """Whether an estimator is a Pipeline that ends in `HingeFeatures` and a ranker."""
    if not isinstance(estimator, Pipeline) or len(estimator.steps) < 2:
        return False
    _, last_transformer = estimator.steps[-2]
    return isinstance(last_transformer, HingeFeatures)


def feature_curves(
    estimator: Pipeline,
    X: MatrixLike,
    groups: ArrayLike | None = None,
    names: list[str] | None = None,
) -> tuple[list[FeatureCurve], str]:
    """Return the curves, largest contribution first, and the scale of x.

    Parameters
    ----------
    estimator : Pipeline
        Fitted scalers, `HingeFeatures` and a linear ranker.
    X : array-like or data frame of shape (n_items, n_features)
        Items; each curve spans the range of their values.
    groups : array-like of shape (n_items,), optional
        Their groups, for a `GroupScaler`.
    names : list of str, optional
        Names of the columns; by default those of X.

    Returns
    -------
    curves : list of FeatureCurve
        One for each feature.
    scale : {"value", "scaled value"}
        Whether x of the curves are values of the column or scaled values.
    """
    if not has_curves(estimator):
        raise TypeError(
            f"estimator is {type(estimator).__name__}; expected a fitted Pipeline of scalers, "
            "HingeFeatures and a linear ranker."
        )
    scalers = estimator[:-2]
    _, hinges = estimator.steps[-2]
    _, ranker = estimator.steps[-1]
    values = np.asarray(as_array(X), dtype=np.float64)
    scaled_values = values
    if len(scalers):
        scaled_values = np.asarray(transform_step(scalers, X, groups))
    if names is None:
        names = column_names(X)

    # Draw over the values of the column, if each scaled value corresponds to one value
    is_affine = all(isinstance(scaler, AFFINE_SCALERS) for _, scaler in scalers.steps)
    if is_affine:
        x = values
        scale = "value"
    else:
        x = scaled_values
        scale = "scaled value"
        names = [str(name) for name in scalers.get_feature_names_out(names)]
    names = name_columns(names, scaled_values.shape[1])

    contributions = _contributions_of_features(hinges, ranker, scaled_values)
    curves = [_make_curve(name, x[:, j], contributions[:, j]) for j, name in enumerate(names)]
    curves.sort(key=lambda curve: -curve.spread)
    return curves, scale


def _contributions_of_features(
    hinges: HingeFeatures, ranker: RankerMixin, scaled_values: Array
) -> Array:
    """Return the centered contribution of each feature to the score of each item."""
    # Features of the ranker: the values themselves, then max(value − knot, 0) for all knots
    weights = linear_weights(ranker).weights
    value_weights = weights[: hinges.n_features_in_]
    hinge_weights = weights[hinges.n_features_in_ :]
    contributions = np.empty_like(scaled_values)
    for j, values in enumerate(scaled_values.T):
        is_of_feature = hinges.columns_ == j
        hinge_values = np.maximum(values[:, None] - hinges.knots_[is_of_feature], 0.0)
        contribution = value_weights[j] * values + hinge_values @ hinge_weights[is_of_feature]
        contributions[:, j] = contribution - contribution.mean()
    return contributions


def _make_curve(name: str, x: Array, contribution: Array) -> FeatureCurve:
    """Return at most `N_POINTS` points of a curve, in ascending order of x."""
    # At most N_POINTS items, at equal steps of their rank
    items_by_x = np.argsort(x, kind="stable")
    ranks = np.unique(np.linspace(0, len(x) - 1, N_POINTS).astype(int))
    items = items_by_x[ranks]
    return FeatureCurve(name, x[items], contribution[items], float(contribution.std()))
