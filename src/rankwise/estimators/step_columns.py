"""Which column of a table each feature comes from that a step of a Pipeline makes."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.compose import ColumnTransformer
from sklearn.pipeline import FeatureUnion, Pipeline

from rankwise.arrays import Indices
from rankwise.estimators.columns import source_of_features

#: Steps that change each column by itself and keep their number.
ONE_TO_ONE = (
    *("StandardScaler", "MinMaxScaler", "MaxAbsScaler", "RobustScaler", "OrdinalEncoder"),
    *("QuantileTransformer", "PowerTransformer", "Binarizer"),
)


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
        return _of_chain([one for _, one in step.steps], n_columns)
    if isinstance(step, ColumnTransformer):
        found = [_of_columns(step, key, one) for key, one, _ in step.transformers_]
        return _joined(found)
    if isinstance(step, FeatureUnion):
        return _joined([source_columns(one, n_columns) for _, one in step.transformer_list])
    if name == "OneHotEncoder":
        return np.repeat(own, [max(places) + 1 for places in one_hot_columns(step)])
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


def one_hot_columns(encoder: Any) -> list[Indices]:
    """For each column, and each of its categories, the place of its feature; -1 if it has none."""
    n_columns = len(encoder.categories_)
    rare = getattr(encoder, "infrequent_categories_", None) or [None] * n_columns
    dropped = getattr(encoder, "drop_idx_", None)
    found = []
    for k, kinds in enumerate(encoder.categories_):
        places = np.arange(len(kinds))
        if rare[k] is not None:
            is_rare = np.isin(kinds, rare[k])
            places = np.where(is_rare, (~is_rare).sum(), np.cumsum(~is_rare) - 1)
        if dropped is not None and dropped[k] is not None:
            out = places[dropped[k]]
            places = np.where(places == out, -1, places - (places > out))
        found.append(places)
    return found


def _of_chain(steps: list[Any], n_columns: int) -> Indices | None:
    sources: Indices = np.arange(n_columns)
    for step in steps:
        own = source_columns(step, len(sources))
        if own is None:
            return None
        sources = sources[own]
    return sources


def _of_columns(step: ColumnTransformer, key: str, part: Any) -> Indices | None:
    if isinstance(part, str) and part == "drop":
        return np.empty(0, dtype=np.intp)
    given = np.asarray(step._transformer_to_input_indices[key], dtype=np.intp)
    own = source_columns(part, len(given)) if len(given) else given
    return None if own is None else given[own]


def _joined(parts: list[Indices | None]) -> Indices | None:
    known = [part for part in parts if part is not None]
    return np.concatenate(known) if len(known) == len(parts) else None
