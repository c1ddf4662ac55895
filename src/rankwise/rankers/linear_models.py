"""Weights and kernel expansions of fitted rankers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from sklearn.base import BaseEstimator

from rankwise.arrays import Array
from rankwise.kernels.feature_maps import ColumnFeatures, FeatureMap


class KernelExpansion(NamedTuple):
    """Scores as the mean of functions: ``f(x) = mean_v Σ_j coef_vj k_v(x, item_vj) + intercept``.

    Attributes
    ----------
    maps : sequence of FeatureMap
        One map per view; a linear ranker without views has one map of its columns.
    coefficients : list of ndarray of shape (n, n_outputs)
        Weights of the columns or of the items of each map.
    intercept : float or ndarray of shape (n_outputs,), default=0.0
        Constant of all scores, or of each output.
    output_shape : tuple of int, default=()
        Shape of the scores of one item: () or (n_outputs,).
    """

    maps: Sequence[FeatureMap]
    coefficients: list[Array]
    intercept: float | Array = 0.0
    output_shape: tuple[int, ...] = ()


def kernel_expansion(model: BaseEstimator) -> KernelExpansion:
    """Kernel expansion of the scores of a fitted ranker.

    Raises
    ------
    ValueError
        If it is not a linear or kernel ranker of rankwise.
    """
    if not hasattr(model, "kernel_expansion"):
        raise ValueError(
            f"{type(model).__name__} is not a ranker of rankwise with weights or a kernel; "
            "expected a RankRLS, RankSVM, RankLogistic, CoRankRLS or RankingPursuit, or the search "
            "for one."
        )
    expansion: KernelExpansion = model.kernel_expansion()
    return expansion


class LinearWeights(NamedTuple):
    """``f(x) = weights · x + intercept``."""

    weights: Array
    intercept: float


def linear_weights(model: BaseEstimator) -> LinearWeights:
    """Weights and intercept of a fitted ranker with a linear kernel and one output.

    Views are averaged, and basis items are combined into weights of the features.

    Raises
    ------
    ValueError
        If the ranker has another kernel, several outputs, or is not a ranker of rankwise.
    """
    expansion = kernel_expansion(model)
    for feature_map in expansion.maps:
        if not feature_map.kernel.is_linear:
            raise ValueError(
                f"kernel={feature_map.kernel.function!r} is not linear: the model has no weights "
                "of features. Train it with kernel='linear'."
            )
    if expansion.output_shape not in ((), (1,)):
        raise ValueError(
            f"the model has {expansion.output_shape[0]} outputs, but weights exist for a single "
            "output; train a model for each output."
        )
    weights_of_views = [
        map_weights(feature_map, coef, model.n_features_in_)[:, 0]
        for feature_map, coef in zip(expansion.maps, expansion.coefficients, strict=True)
    ]
    return LinearWeights(np.mean(weights_of_views, axis=0), float(expansion.intercept))


def map_weights(linear: FeatureMap, coef: Array, n_features: int) -> Array:
    """Weights of all features, (n_features, n_outputs), from the coefficients of a linear map."""
    if isinstance(linear, ColumnFeatures):
        weights = np.zeros((n_features, coef.shape[1]))
        np.add.at(weights, linear.indices, coef)  # a column may be chosen twice
        return weights
    # a linear kernel: the weights are the sum of the items, each times its coefficient
    weights_of_columns = np.asarray(linear.items.T @ coef)
    if linear.columns is None:
        return weights_of_columns
    weights = np.zeros((n_features, coef.shape[1]))
    weights[linear.columns] = weights_of_columns
    return weights
