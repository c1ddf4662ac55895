"""The weights of features that a linear ranker amounts to, however it was trained."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from rankwise.arrays import Array
from rankwise.estimators.score_functions import score_functions
from rankwise.features import FeatureMap


class LinearFunction(NamedTuple):
    """``f(x) = weights · x + intercept``."""

    weights: Array
    intercept: float


def linear_function(model: Any) -> LinearFunction:
    """The scores of a fitted ranker as a function of its features.

    Views and basis items of linear kernels are summed up.

    Raises
    ------
    ValueError
        If the ranker has another kernel, several outputs, or is none of rankwise's.
    """
    parts = score_functions(model)
    kernels = [one.kernel for one in parts.maps if not one.kernel.is_linear]
    if kernels:
        raise ValueError(
            f"kernel={kernels[0].function!r} is not linear: the model has no weights of features. "
            "Train it with kernel='linear' to get some."
        )
    if parts.output_shape not in ((), (1,)):
        raise ValueError(
            f"the model has {parts.output_shape[0]} outputs, and weights are those of one; train "
            "a model for each output."
        )
    pairs = zip(parts.maps, parts.coefficients, strict=True)
    lines = [map_weights(one, coef, model.n_features_in_)[:, 0] for one, coef in pairs]
    return LinearFunction(np.mean(lines, axis=0), parts.level)


def map_weights(linear: FeatureMap, coef: Array, n_features: int) -> Array:
    """Weights of all features from those of a linear map's columns or items, for each output."""
    weights = np.zeros((n_features, coef.shape[1]))
    if linear.items is None:
        np.add.at(weights, linear.indices, coef)
    else:
        own = slice(None) if linear.columns is None else linear.columns
        weights[own] = np.asarray(linear.items.T @ coef)
    return weights
