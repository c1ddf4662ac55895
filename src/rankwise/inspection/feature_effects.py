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
    return isinstance(estimator.steps[-2][1], HingeFeatures)


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
        What x of the curves is.
    """
    if not has_curves(estimator):
        raise TypeError(
            f"estimator is {type(estimator).__name__}; expected a fitted Pipeline of scalers, "
            "HingeFeatures and a linear ranker."
        )
    scalers = estimator[:-2]
    items = np.asarray(as_array(X), dtype=np.float64)
    scaled = items
    if len(scalers):
        scaled = np.asarray(transform_step(scalers, X, groups))
    is_affine = all(isinstance(scaler, AFFINE_SCALERS) for _, scaler in scalers.steps)
    if names is None:
        names = column_names(X)
    if is_affine:  # a scaled value stands for one value of the column
        x = items
        scale = "value"
    else:
        names = [str(name) for name in scalers.get_feature_names_out(names)]
        x = scaled
        scale = "scaled value"
    names = name_columns(names, scaled.shape[1])
    added = _contributions(estimator.steps[-2][1], estimator.steps[-1][1], scaled)
    curves = [_curve(names[j], x[:, j], added[:, j]) for j in range(len(names))]
    curves.sort(key=lambda curve: -curve.spread)
    return curves, scale


def _contributions(hinges: HingeFeatures, ranker: RankerMixin, scaled: Array) -> Array:
    """Return the centered contribution of each feature to the score of each item."""
    weights = linear_weights(ranker).weights
    slopes = weights[: hinges.n_features_in_]
    hinge_weights = weights[hinges.n_features_in_ :]
    added = np.empty_like(scaled)
    for j, values in enumerate(scaled.T):
        is_of_feature = hinges.columns_ == j
        hinge_values = np.maximum(values[:, None] - hinges.knots_[is_of_feature], 0.0)
        contribution = slopes[j] * values + hinge_values @ hinge_weights[is_of_feature]
        added[:, j] = contribution - contribution.mean()
    return added


def _curve(name: str, x: Array, added: Array) -> FeatureCurve:
    """Return at most `N_POINTS` points of a curve, in ascending order of x."""
    order = np.argsort(x, kind="stable")
    positions = np.unique(np.linspace(0, len(x) - 1, N_POINTS).astype(int))
    points = order[positions]
    return FeatureCurve(name, x[points], added[points], float(added.std()))
