"""What each feature adds to the score of an additive model, as a curve."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import MaxAbsScaler, MinMaxScaler, RobustScaler, StandardScaler

from rankwise.arrays import Array
from rankwise.frames import as_array, column_names
from rankwise.inspection.model_parts import name_columns
from rankwise.preprocessing.hinge_features import HingeFeatures
from rankwise.rankers.linear_models import linear_weights
from rankwise.rankers.pipelines import transform_step

POINTS = 200  # of a curve
AFFINE = (MaxAbsScaler, MinMaxScaler, RobustScaler, StandardScaler)


class FeatureCurve(NamedTuple):
    """What one feature adds to the score.

    Attributes
    ----------
    name : str
        Name of the feature.
    x : ndarray
        Its values, ascending.
    added : ndarray
        What they add to the score, less the mean over the items.
    spread : float
        Standard deviation over the items of what it adds.
    """

    name: str
    x: Array
    added: Array
    spread: float


def has_curves(estimator: Any) -> bool:
    """Whether it is a Pipeline that ends in `HingeFeatures` and a ranker."""
    steps = estimator.steps if isinstance(estimator, Pipeline) else []
    return len(steps) > 1 and isinstance(steps[-2][1], HingeFeatures)


def feature_curves(
    estimator: Any, X: Any, groups: Any = None, names: list[str] | None = None
) -> tuple[list[FeatureCurve], str]:
    """The curves, those that add most first, and what their x is: "value" or "scaled value".

    Parameters
    ----------
    estimator : Pipeline
        Fitted: any scalers, `HingeFeatures`, a linear ranker.
    X : array-like or data frame of shape (n_items, n_features)
        Items between whose values the curves are drawn.
    groups : array-like of shape (n_items,), optional
        Their groups, for a `GroupScaler`.
    names : list of str, optional
        Names of the columns; by default those that X has.
    """
    if not has_curves(estimator):
        raise TypeError(
            f"estimator is {type(estimator).__name__}; expected a fitted Pipeline of scalers, "
            "HingeFeatures and a linear ranker."
        )
    steps = estimator.steps
    before, hinges = estimator[:-2], steps[-2][1]
    items = np.asarray(as_array(X), dtype=np.float64)
    Z = np.asarray(transform_step(before, X, groups) if len(steps) > 2 else items)
    is_affine = all(isinstance(step, AFFINE) for _, step in steps[:-2])
    names = names or column_names(X)
    if not is_affine:
        names = [str(name) for name in before.get_feature_names_out(names)]
    names = name_columns(names, Z.shape[1])
    weights = linear_weights(steps[-1][1]).weights
    bends = weights[hinges.n_features_in_ :]
    curves = []
    for j, z in enumerate(Z.T):
        own = hinges.columns_ == j
        added = weights[j] * z + np.maximum(z[:, None] - hinges.knots_[own], 0.0) @ bends[own]
        added = added - added.mean()
        x = items[:, j] if is_affine else z
        order = np.argsort(x, kind="stable")
        at = order[np.unique(np.linspace(0, len(x) - 1, POINTS).astype(int))]
        curves.append(FeatureCurve(names[j], x[at], added[at], float(added.std())))
    curves.sort(key=lambda curve: -curve.spread)
    return curves, "value" if is_affine else "scaled value"
