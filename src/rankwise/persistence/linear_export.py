"""Export of linear models to JSON, with the scaling of features folded into the weights."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import MaxAbsScaler, MinMaxScaler, RobustScaler, StandardScaler
from sklearn.utils.validation import check_is_fitted

from rankwise.arrays import Array
from rankwise.formatting import JsonObject
from rankwise.preprocessing.table_vectorizer import TableVectorizer
from rankwise.rankers.linear_models import LinearWeights, linear_weights
from rankwise.rankers.pipelines import is_passthrough
from rankwise.validation import check_option

FORMATS = ("json", "solr", "opensearch", "elasticsearch")


def export_linear(
    model: BaseEstimator,
    *,
    format: str = "json",
    feature_names: Sequence[str] | None = None,
    name: str = "rankwise",
) -> JsonObject:
    """Export a linear ranker to a dictionary for ``json.dumps``.

    Use it to score items without rankwise, for example in a search engine.

    Parameters
    ----------
    model : estimator
        A fitted ranker with a linear kernel and one output, or a Pipeline of `TableVectorizer` with
        numbers only, StandardScaler, MinMaxScaler, MaxAbsScaler, RobustScaler and such a ranker.
        Scaling is folded into the weights, which therefore apply to the raw features.
    format : {"json", "solr", "opensearch", "elasticsearch"}, default="json"
        "json" is ``{"name", "weights": {feature: weight}, "intercept"}``; "solr" the
        `LinearModel` of Solr's learning to rank; "opensearch" and "elasticsearch" are the same, the
        ``model/linear`` that ``_createmodel`` of the learning to rank plug-ins expects. The formats
        of search engines have no intercept: it is dropped, since it is the same for all items.
    feature_names : sequence of str, optional
        Names of the features; by default the names seen in `fit`, else f1, f2, … as numbered in
        the LETOR format.
    name : str, default="rankwise"
        Name of the model.

    Returns
    -------
    dict
        The model in this format.

    Raises
    ------
    ValueError
        If the model is not linear, has several outputs, or has other steps.

    Examples
    --------
    >>> from rankwise import RankRLS
    >>> from rankwise.persistence import export_linear
    >>> model = RankRLS(alpha=0.5).fit([[0.0, 1.0], [2.0, 3.0], [4.0, 0.0]], [0, 1, 2])
    >>> export_linear(model, feature_names=["bm25", "age"])["weights"]
    {'bm25': 0.467..., 'age': -0.012...}
    >>> export_linear(model, format="solr")["features"]
    [{'name': 'f1'}, {'name': 'f2'}]
    """
    check_option("format", format, FORMATS)
    check_is_fitted(model)
    linear = _fold_scaling_into_weights(model)
    names = input_names(model, feature_names, len(linear.weights))
    weights = dict(zip(names, linear.weights.tolist(), strict=True))
    # Search engines take no intercept; it is the same for all items.
    if format == "solr":
        return {
            "class": "org.apache.solr.ltr.model.LinearModel",
            "name": name,
            "features": [{"name": feature} for feature in names],
            "params": {"weights": weights},
        }
    if format in ("opensearch", "elasticsearch"):
        return {"model": {"name": name, "model": {"type": "model/linear", "definition": weights}}}
    return {"name": name, "weights": weights, "intercept": float(linear.intercept)}


def _pipeline_steps(model: BaseEstimator) -> list[BaseEstimator]:
    if isinstance(model, Pipeline):
        return [step for _, step in model.steps]
    return [model]


def _fold_scaling_into_weights(model: BaseEstimator) -> LinearWeights:
    """The linear function of the unscaled features."""
    *scalers, ranker = _pipeline_steps(model)
    linear = linear_weights(ranker)
    for scaler in reversed(scalers):
        if is_passthrough(scaler):
            continue
        # w · (scale x + shift) + intercept = (w scale) · x + (w · shift + intercept)
        scale, shift = scaling(scaler, len(linear.weights))
        intercept = linear.intercept + float(linear.weights @ shift)
        linear = LinearWeights(linear.weights * scale, intercept)
    return linear


class Scaling(NamedTuple):
    """``scale * x + shift`` for features x."""

    scale: Array
    shift: Array


def scaling(scaler: BaseEstimator, n_features: int) -> Scaling:
    """Scale and shift of a fitted scaler.

    Raises
    ------
    ValueError
        If the step is not a linear function of each feature.
    """
    if getattr(scaler, "clip", False):
        raise ValueError(f"{type(scaler).__name__}(clip=True) is not linear; use clip=False.")
    if isinstance(scaler, TableVectorizer):
        return _scaling_of_columns(scaler)
    if type(scaler) is MinMaxScaler:
        return Scaling(scaler.scale_, scaler.min_)
    if type(scaler) not in (StandardScaler, RobustScaler, MaxAbsScaler):
        raise ValueError(
            f"a step {type(scaler).__name__} cannot be folded into weights; expected "
            "StandardScaler, MinMaxScaler, MaxAbsScaler, RobustScaler or 'passthrough'. "
            "export_onnx (rankwise export MODEL MODEL.onnx) supports more steps."
        )
    # These scalers compute (x − center) / scale_.
    scale = np.ones(n_features)
    if scaler.scale_ is not None:
        scale = 1 / scaler.scale_
    center = _center_of(scaler)
    if center is None:
        return Scaling(scale, shift=np.zeros(n_features))
    return Scaling(scale, shift=-center * scale)


def _center_of(scaler: BaseEstimator) -> Array | None:
    """Values that a scaler of scikit-learn subtracts from the features; None without centering."""
    center: Array | None = None
    if isinstance(scaler, StandardScaler) and scaler.with_mean:
        center = scaler.mean_
    elif isinstance(scaler, RobustScaler):
        center = scaler.center_
    return center


def _scaling_of_columns(vectorizer: TableVectorizer) -> Scaling:
    """Scaling of the columns of a table; new items must not have missing values."""
    columns = [column for column in vectorizer.facts_ if column.is_used]
    nonlinear_names = []
    for column in columns:
        if column.kind != "number" or column.n_missing:
            nonlinear_names.append(column.name)
    if nonlinear_names:
        raise ValueError(
            f"the columns {', '.join(nonlinear_names)} have categories or missing values, which "
            "cannot be folded into weights. export_onnx (rankwise export MODEL MODEL.onnx) "
            "supports them."
        )
    # (x − mean) / standard deviation; a column of numbers has one of each
    means = np.array([column.means[0] for column in columns])
    scale = 1 / np.array([column.scales[0] for column in columns])
    return Scaling(scale, shift=-scale * means)


def input_names(
    model: BaseEstimator, feature_names: Sequence[str] | None, n_features: int
) -> list[str]:
    """Unique names of the features: the given names, those seen in `fit`, or f1, f2, …"""
    if feature_names is None:
        feature_names = _names_seen_in_fit(model)
    if feature_names is None:
        feature_names = [f"f{number}" for number in range(1, n_features + 1)]
    names = list(feature_names)
    are_strings = all(isinstance(name, str) and name for name in names)
    are_different_strings = are_strings and len(set(names)) == len(names)  # strings have a hash
    if not are_different_strings or len(names) != n_features:
        raise ValueError(
            f"the names of the features are {', '.join(map(repr, names))}; expected {n_features} "
            "different names: pass feature_names= with one for each feature."
        )
    return [str(name) for name in names]


def _names_seen_in_fit(model: BaseEstimator) -> Sequence[str] | None:
    steps = _pipeline_steps(model)
    if isinstance(steps[0], TableVectorizer):
        return [column.name for column in steps[0].facts_ if column.is_used]
    for step in steps:  # the first step that was fitted on a data frame
        if hasattr(step, "feature_names_in_"):
            names: Sequence[str] = step.feature_names_in_
            return names
    return None
