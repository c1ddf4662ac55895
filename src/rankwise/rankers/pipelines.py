"""Steps of fitted pipelines: unwrap them, transform items, trace columns."""

from __future__ import annotations

from typing import Any

import numpy as np
import sklearn
from numpy.typing import ArrayLike
from sklearn.base import clone
from sklearn.compose import ColumnTransformer
from sklearn.pipeline import FeatureUnion, Pipeline

from rankwise.arrays import Indices
from rankwise.graphs.supervision import make_target, unpack_target
from rankwise.model_selection.scorer import group_metadata
from rankwise.preprocessing.table_vectorizer import source_of_features
from rankwise.runtime.interrupts import no_interrupted_fits

#: Steps that change each column by itself and keep their number.
ONE_TO_ONE = (
    *("StandardScaler", "MinMaxScaler", "MaxAbsScaler", "RobustScaler", "OrdinalEncoder"),
    *("QuantileTransformer", "PowerTransformer", "Binarizer"),
)


def final_estimator(estimator: Any) -> Any:
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
    y, groups, weights = unpack_target(y, groups)
    return clone(estimator).fit(X, y if groups is None else make_target(y, groups, weights))


def is_passthrough(step: Any) -> bool:
    """Whether a step of a Pipeline does nothing."""
    return step is None or (isinstance(step, str) and step == "passthrough")


def input_column_of_feature(step: Any, n_columns: int) -> Indices | None:
    """For each feature that a fitted step makes, the number of the column it is made of.

    None if a feature is made of several columns, or the step does not tell.
    """
    own = np.arange(n_columns)
    name = type(step).__name__
    if is_passthrough(step) or name in ONE_TO_ONE:
        return own
    if isinstance(step, Pipeline):
        sources: Indices | None = own
        for _, one in step.steps:
            made = None if sources is None else input_column_of_feature(one, len(sources))
            sources = None if sources is None or made is None else sources[made]
        return sources
    if isinstance(step, ColumnTransformer):
        return _joined([_of_columns(step, key, one) for key, one, _ in step.transformers_])
    if isinstance(step, FeatureUnion):
        return _joined(
            [input_column_of_feature(one, n_columns) for _, one in step.transformer_list]
        )
    if name == "OneHotEncoder":
        rare = getattr(step, "infrequent_categories_", None) or [None] * n_columns
        dropped = [None] * n_columns if step.drop_idx_ is None else step.drop_idx_
        n_categories = [
            len(categories) - (0 if few is None else len(few) - 1) - (drop is not None)
            for categories, few, drop in zip(step.categories_, rare, dropped, strict=True)
        ]
        return np.repeat(own, n_categories)
    if name == "TableVectorizer":
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
    own = input_column_of_feature(part, len(columns)) if len(columns) else columns
    return None if own is None else columns[own]


def _joined(parts: list[Indices | None]) -> Indices | None:
    known = [part for part in parts if part is not None]
    return np.concatenate(known) if len(known) == len(parts) else None
