"""Weights and kernel expansions of fitted rankers."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from rankwise.arrays import Array
from rankwise.kernels.feature_maps import FeatureMap


class KernelExpansion(NamedTuple):
    """Scores as the mean of functions: ``f(x) = mean_v Σ_j coef_vj k_v(x, item_vj) + intercept``.

    Attributes
    ----------
    maps : list of FeatureMap
        One for each view; a linear ranker without views has its columns as they are.
    coefficients : list of ndarray of shape (n, n_outputs)
        Weights of the columns or of the items of each map.
    intercept : float or ndarray of shape (n_outputs,)
        What is added to all scores, or to those of each output.
    output_shape : tuple of int
        Shape of the scores of one item: () or (n_outputs,).
    """

    maps: list[FeatureMap]
    coefficients: list[Array]
    intercept: float | Array = 0.0
    output_shape: tuple[int, ...] = ()


def kernel_expansion(model: Any) -> KernelExpansion:
    """Take a fitted ranker apart.

    Raises
    ------
    ValueError
        If it is none of rankwise's linear and kernel rankers.
    """
    if not hasattr(model, "kernel_expansion"):
        raise ValueError(
            f"{type(model).__name__} is none of rankwise's rankers with weights or a kernel; "
            "expected a RankRLS, RankSVM, RankLogistic, CoRankRLS or RankingPursuit, or the search "
            "for one."
        )
    parts: KernelExpansion = model.kernel_expansion()
    return parts


class LinearWeights(NamedTuple):
    """``f(x) = weights · x + intercept``."""

    weights: Array
    intercept: float


def linear_weights(model: Any) -> LinearWeights:
    """The scores of a fitted ranker as a function of its features.

    Views and basis items of linear kernels are summed up.

    Raises
    ------
    ValueError
        If the ranker has another kernel, several outputs, or is none of rankwise's.
    """
    parts = kernel_expansion(model)
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
    return LinearWeights(np.mean(lines, axis=0), float(parts.intercept))


def map_weights(linear: FeatureMap, coef: Array, n_features: int) -> Array:
    """Weights of all features from those of a linear map's columns or items, for each output."""
    weights = np.zeros((n_features, coef.shape[1]))
    if linear.items is None:
        np.add.at(weights, linear.indices, coef)
    else:
        own = slice(None) if linear.columns is None else linear.columns
        weights[own] = np.asarray(linear.items.T @ coef)
    return weights
