"""Export of linear models to JSON, with the scaling of features folded into the weights."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import MaxAbsScaler, MinMaxScaler, RobustScaler, StandardScaler
from sklearn.utils.validation import check_is_fitted

from rankwise.arrays import Array
from rankwise.preprocessing.table_vectorizer import TableVectorizer
from rankwise.rankers.linear_models import LinearWeights, linear_weights
from rankwise.rankers.pipelines import is_passthrough
from rankwise.validation import check_option

FORMATS = ("json", "solr", "opensearch")


def export_linear(
    model: Any,
    *,
    format: str = "json",
    feature_names: Sequence[str] | None = None,
    name: str = "rankwise",
) -> dict[str, Any]:
    """Export a linear ranker to a dictionary for ``json.dumps``.

    Use it to score items without rankwise, for example in a search engine.

    Parameters
    ----------
    model : estimator
        A fitted ranker with a linear kernel and one output, or a Pipeline of `TableVectorizer` of
        numbers,
        StandardScaler, MinMaxScaler, MaxAbsScaler, RobustScaler and such a ranker. Scaling is
        folded in: the weights are for the features as they come.
    format : {"json", "solr", "opensearch"}
        "json" is ``{"name", "weights": {feature: weight}, "intercept"}``; "solr" the
        `LinearModel` of Solr's learning to rank; "opensearch" the ``model/linear`` of the learning
        to rank plug-ins of OpenSearch and Elasticsearch, as their ``_createmodel`` takes it. The
        latter two know no intercept. It is dropped: it shifts all scores alike.
    feature_names : sequence of str, optional
        Names of the features; by default those seen in `fit`, else f1, f2, … with the numbers of
        the LETOR format.
    name : str
        Name of the model.

    Returns
    -------
    dict

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
    linear = _fold_scaling(model)
    names = input_names(model, feature_names, len(linear.weights))
    weights = dict(zip(names, linear.weights.tolist(), strict=True))
    if format == "solr":
        return {
            "class": "org.apache.solr.ltr.model.LinearModel",
            "name": name,
            "features": [{"name": feature} for feature in names],
            "params": {"weights": weights},
        }
    if format == "opensearch":
        return {"model": {"name": name, "model": {"type": "model/linear", "definition": weights}}}
    return {"name": name, "weights": weights, "intercept": float(linear.intercept)}


def _steps_of(model: Any) -> list[Any]:
    if isinstance(model, Pipeline):
        return [step for _, step in model.steps]
    return [model]


def _fold_scaling(model: Any) -> LinearWeights:
    """The linear function of the unscaled features."""
    *scalers, ranker = _steps_of(model)
    linear = linear_weights(ranker)
    for scaler in reversed(scalers):
        if not is_passthrough(scaler):
            scale, shift = scaling(scaler, len(linear.weights))
            intercept = linear.intercept + float(linear.weights @ shift)
            linear = LinearWeights(linear.weights * scale, intercept)
    return linear


def scaling(scaler: Any, n_features: int) -> tuple[Array, Array]:
    """Scale and shift of a fitted scaler: it maps features x to ``scale * x + shift``."""
    if getattr(scaler, "clip", False):
        raise ValueError(f"{type(scaler).__name__}(clip=True) is not linear; use clip=False.")
    if isinstance(scaler, TableVectorizer):
        return _scaling_of_columns(scaler)
    if type(scaler) is MinMaxScaler:
        return scaler.scale_, scaler.min_
    if type(scaler) not in (StandardScaler, RobustScaler, MaxAbsScaler):
        raise ValueError(
            f"a step {type(scaler).__name__} cannot be folded into weights; expected "
            "StandardScaler, MinMaxScaler, MaxAbsScaler, RobustScaler or 'passthrough'. "
            "export_onnx (rankwise export MODEL MODEL.onnx) takes more steps."
        )
    center = getattr(scaler, "center_", None)
    if getattr(scaler, "with_mean", False):
        center = scaler.mean_
    scale = np.ones(n_features)
    if scaler.scale_ is not None:
        scale = 1 / scaler.scale_
    if center is None:
        return scale, np.zeros(n_features)
    return scale, -center * scale


def _scaling_of_columns(columns: TableVectorizer) -> tuple[Array, Array]:
    """That of a table of numbers; gaps of new items must be filled before."""
    used = [column for column in columns.facts_ if column.is_used]
    odd = [c.name for c in used if c.kind != "number" or c.n_missing]
    if odd:
        raise ValueError(
            f"the columns {', '.join(odd)} have categories or gaps, which cannot be folded into "
            "weights. export_onnx (rankwise export MODEL MODEL.onnx) takes them."
        )
    scale = 1 / np.array([column.scales[0] for column in used])
    return scale, -scale * np.array([column.means[0] for column in used])


def input_names(model: Any, feature_names: Sequence[str] | None, n_features: int) -> list[str]:
    """Unique names of the features: the given names, those seen in `fit`, or f1, f2, …"""
    if feature_names is None:
        feature_names = _names_seen_in_fit(model)
    if feature_names is None:
        feature_names = [f"f{number}" for number in range(1, n_features + 1)]
    names = [str(name) if isinstance(name, str) else name for name in feature_names]
    are_strings = all(isinstance(name, str) and name for name in names)
    if not are_strings or len(set(names)) != len(names) or len(names) != n_features:
        raise ValueError(
            f"the names of the features are {', '.join(map(repr, names))}; expected {n_features} "
            "different names: pass feature_names= with one for each feature."
        )
    return names


def _names_seen_in_fit(model: Any) -> Sequence[str] | None:
    steps = _steps_of(model)
    if isinstance(steps[0], TableVectorizer):
        return [column.name for column in steps[0].facts_ if column.is_used]
    for step in steps:
        if hasattr(step, "feature_names_in_"):
            names: Sequence[str] = step.feature_names_in_
            return names
    return None
