"""Items made up from what a model knows of its columns, to compare a graph with the model."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.compose import ColumnTransformer
from sklearn.impute import SimpleImputer
from sklearn.pipeline import FeatureUnion, Pipeline
from sklearn.preprocessing import MaxAbsScaler, MinMaxScaler, RobustScaler, StandardScaler

from rankwise.arrays import Array
from rankwise.estimators.score_functions import score_functions
from rankwise.estimators.step_columns import is_idle

N_ROWS = 32
UNKNOWN = "\x01 not seen in training"


def probe_items(model: Any, n_columns: int, *, unusual: bool) -> NDArray[Any]:
    """Items, one row each; of any type in each column.

    Parameters
    ----------
    model : estimator
        A fitted ranker, or a Pipeline that ends in one.
    n_columns : int
        Number of its columns.
    unusual : bool
        Also have gaps and categories that were not there in training. Not every model takes them.
    """
    rng = np.random.default_rng(0)
    found = _typical(model, n_columns, rng)
    items = np.asarray(rng.uniform(0.1, 2.0, (N_ROWS, n_columns)) if found is None else found)
    return _make_unusual(model, items.astype(object)) if unusual else items


def _typical(step: Any, n_columns: int, rng: np.random.Generator) -> NDArray[Any] | None:
    """Rows as a fitted step has seen them; None if it does not tell."""
    shape = (N_ROWS, n_columns)
    if isinstance(step, Pipeline):
        chain = [one for _, one in step.steps if not is_idle(one)]
        fitting = [one for one in chain if getattr(one, "n_features_in_", 0) == n_columns]
        found = (_typical(one, n_columns, rng) for one in fitting)
        return next((rows for rows in found if rows is not None), None)
    if isinstance(step, FeatureUnion):
        found = (_typical(one, n_columns, rng) for _, one in step.transformer_list)
        return next((rows for rows in found if rows is not None), None)
    if isinstance(step, ColumnTransformer):
        return _typical_columns(step, rng.uniform(0.1, 2.0, shape).astype(object), rng)
    if isinstance(step, (StandardScaler, RobustScaler, MinMaxScaler, MaxAbsScaler)):
        return _unscaled(step, rng.normal(size=shape))
    if hasattr(step, "categories_"):
        return np.array([rng.choice(kinds, N_ROWS) for kinds in step.categories_], dtype=object).T
    if isinstance(step, SimpleImputer) and all(isinstance(v, str) for v in step.statistics_):
        return np.tile(step.statistics_.astype(object), (N_ROWS, 1))
    return _typical_items(step, rng) if hasattr(step, "predict") else None


def _typical_columns(
    step: ColumnTransformer, rows: NDArray[Any], rng: np.random.Generator
) -> NDArray[Any]:
    for name, part, _ in step.transformers_:
        at = np.asarray(step._transformer_to_input_indices.get(name, []), dtype=np.intp)
        found = _typical(part, len(at), rng) if len(at) else None
        if found is not None:
            rows[:, at] = found
    return rows


def _unscaled(scaler: Any, z: Array) -> Array:
    """Values that the scaler has seen the like of."""
    if isinstance(scaler, StandardScaler):
        spread = z if scaler.scale_ is None else z * scaler.scale_
        return spread if scaler.mean_ is None else spread + scaler.mean_
    if isinstance(scaler, RobustScaler):
        spread = z if scaler.scale_ is None else z * scaler.scale_
        return spread if scaler.center_ is None else spread + scaler.center_
    share = 0.5 + np.tanh(z) / 2
    if isinstance(scaler, MinMaxScaler):
        return np.asarray(scaler.data_min_ + share * scaler.data_range_)
    return np.asarray(share * scaler.max_abs_)


def _typical_items(ranker: Any, rng: np.random.Generator) -> Array | None:
    for one in score_functions(ranker).maps:
        if one.items is not None and one.columns is None and one.items.shape[0]:
            rows = one.items[rng.choice(one.items.shape[0], N_ROWS)]
            return np.asarray(rows.toarray() if hasattr(rows, "toarray") else rows)
    return None


def _make_unusual(step: Any, rows: NDArray[Any]) -> NDArray[Any]:
    """Gaps where the step fills them, and categories that it does not know, here and there."""
    if isinstance(step, Pipeline):
        first = [one for _, one in step.steps if not is_idle(one)][:1]
        return _make_unusual(first[0], rows) if first else rows
    if isinstance(step, ColumnTransformer):
        for name, part, _ in step.transformers_:
            at = np.asarray(step._transformer_to_input_indices.get(name, []), dtype=np.intp)
            rows[:, at] = _make_unusual(part, rows[:, at])
    elif hasattr(step, "categories_"):
        for k, kinds in enumerate(step.categories_):
            is_text = any(isinstance(kind, str) for kind in kinds)
            rows[k % N_ROWS, k] = UNKNOWN if is_text else -987654321
    elif isinstance(step, SimpleImputer):
        for k in range(rows.shape[1]):
            rows[k % N_ROWS, k] = step.missing_values
    return rows
