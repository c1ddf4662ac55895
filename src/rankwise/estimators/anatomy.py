"""What a fitted model is made of: steps, the ranker, its score function, weights, columns."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import sklearn
from numpy.typing import ArrayLike
from sklearn.base import clone
from sklearn.compose import ColumnTransformer
from sklearn.pipeline import FeatureUnion, Pipeline

from rankwise.arrays import Array, Indices
from rankwise.estimators.columns import source_of_features
from rankwise.features.feature_map import FeatureMap
from rankwise.inputs import make_target, split_weighted
from rankwise.machine import no_interrupted_fits
from rankwise.model_selection.scoring import group_metadata

#: Steps that change each column by itself and keep their number.
ONE_TO_ONE = (
    *("StandardScaler", "MinMaxScaler", "MaxAbsScaler", "RobustScaler", "OrdinalEncoder"),
    *("QuantileTransformer", "PowerTransformer", "Binarizer"),
)


def last_step(estimator: Any) -> Any:
    """Return the ranker itself: the last step of a Pipeline, anything else as it is."""
    return estimator[-1] if isinstance(estimator, Pipeline) else estimator


def transform_items(estimator: Any, X: Any, groups: ArrayLike | None = None) -> Any:
    """Return the items as the last step of a fitted Pipeline gets them."""
    if not isinstance(estimator, Pipeline) or len(estimator) < 2:
        return X
    return transform_step(estimator[:-1], X, groups)


def transform_step(step: Any, X: Any, groups: ArrayLike | None) -> Any:
    """Transform items by a fitted step; groups go to where they are asked for."""
    with sklearn.config_context(enable_metadata_routing=True):
        return step.transform(X, **group_metadata(step, "transform", groups))


def fit_transform(step: Any, X: Any, groups: ArrayLike | None, y: Any = None) -> Any:
    """Fit a transformer and transform the same items; groups go to where they are asked for."""
    with sklearn.config_context(enable_metadata_routing=True):
        return step.fit_transform(X, y, **group_metadata(step, "fit_transform", groups))


@no_interrupted_fits()
def fit_ranker(estimator: Any, X: Any, y: Any, groups: ArrayLike | None) -> Any:
    """Fit a copy of an estimator; the target carries the groups through any Pipeline."""
    y, groups, weights = split_weighted(y, groups)
    return clone(estimator).fit(X, y if groups is None else make_target(y, groups, weights))


class ScoreFunctions(NamedTuple):
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


def score_functions(model: Any) -> ScoreFunctions:
    """Take a fitted ranker apart.

    Raises
    ------
    ValueError
        If it is none of rankwise's linear and kernel rankers.
    """
    if not hasattr(model, "score_functions"):
        raise ValueError(
            f"{type(model).__name__} is none of rankwise's rankers with weights or a kernel; "
            "expected a RankRLS, RankSVM, RankLogistic, CoRankRLS or RankingPursuit, or the search "
            "for one."
        )
    parts: ScoreFunctions = model.score_functions()
    return parts


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
    return LinearFunction(np.mean(lines, axis=0), float(parts.intercept))


def map_weights(linear: FeatureMap, coef: Array, n_features: int) -> Array:
    """Weights of all features from those of a linear map's columns or items, for each output."""
    weights = np.zeros((n_features, coef.shape[1]))
    if linear.items is None:
        np.add.at(weights, linear.indices, coef)
    else:
        own = slice(None) if linear.columns is None else linear.columns
        weights[own] = np.asarray(linear.items.T @ coef)
    return weights


def is_idle(step: Any) -> bool:
    """Whether a step of a Pipeline does nothing."""
    return step is None or (isinstance(step, str) and step == "passthrough")


def source_columns(step: Any, n_columns: int) -> Indices | None:
    """For each feature that a fitted step makes, the number of the column it is made of.

    None if a feature is made of several columns, or the step does not tell.
    """
    own = np.arange(n_columns)
    name = type(step).__name__
    if is_idle(step) or name in ONE_TO_ONE:
        return own
    if isinstance(step, Pipeline):
        sources: Indices | None = own
        for _, one in step.steps:
            made = None if sources is None else source_columns(one, len(sources))
            sources = None if sources is None or made is None else sources[made]
        return sources
    if isinstance(step, ColumnTransformer):
        return _joined([_of_columns(step, key, one) for key, one, _ in step.transformers_])
    if isinstance(step, FeatureUnion):
        return _joined([source_columns(one, n_columns) for _, one in step.transformer_list])
    if name == "OneHotEncoder":
        rare = getattr(step, "infrequent_categories_", None) or [None] * n_columns
        dropped = [None] * n_columns if step.drop_idx_ is None else step.drop_idx_
        n_categories = [
            len(categories) - (0 if few is None else len(few) - 1) - (drop is not None)
            for categories, few, drop in zip(step.categories_, rare, dropped, strict=True)
        ]
        return np.repeat(own, n_categories)
    if name == "Columns":
        return np.array(source_of_features(step.facts_), dtype=np.intp)
    if name == "GroupScaler":
        return np.tile(own, 2) if step.with_standard else own
    if name == "SimpleImputer":
        filled = own if step.keep_empty_features else own[step.statistics_ == step.statistics_]
        return np.r_[filled, step.indicator_.features_] if step.add_indicator else filled
    if name == "MissingIndicator":
        return np.asarray(step.features_)
    if hasattr(step, "get_support"):
        return np.asarray(step.get_support(indices=True))
    if name == "FunctionTransformer" and isinstance(step.func, np.ufunc | None):
        return own
    return None


def _of_columns(step: ColumnTransformer, key: str, part: Any) -> Indices | None:
    if isinstance(part, str) and part == "drop":
        return np.empty(0, dtype=np.intp)
    columns = np.asarray(step._transformer_to_input_indices[key], dtype=np.intp)
    own = source_columns(part, len(columns)) if len(columns) else columns
    return None if own is None else columns[own]


def _joined(parts: list[Indices | None]) -> Indices | None:
    known = [part for part in parts if part is not None]
    return np.concatenate(known) if len(known) == len(parts) else None
