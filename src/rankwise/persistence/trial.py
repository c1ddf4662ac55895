"""Whether the parts of a model fit together: it is made whole, looked through, and scores items.

What does not fit shows when it is used. So a model must score a row of zeros and a block of two, in
finite numbers. Before that, whatever compiled code would use without a look is checked.
"""

from __future__ import annotations

import copy
import warnings
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

import joblib
import numpy as np
import scipy.sparse as sp
from sklearn.compose import ColumnTransformer
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import OneHotEncoder

from rankwise.estimators.base import RankerMixin
from rankwise.estimators.kernel_model import KernelModel
from rankwise.estimators.pipelines import last_step, transform_step
from rankwise.features.feature_map import FeatureMap
from rankwise.model_selection.group_routing import predict_items
from rankwise.persistence.keeping import NEVER_KEPT
from rankwise.persistence.parts import is_known

LIMITS = {"n_jobs": 2**10, "_max_degree": 2**6, "_n_out_full": 2**22, "n_features_out_": 2**22}
"""Numbers in files that set how much work `transform` takes, and how large they may be."""

DENSE_FEATURES = 10**6


def check_model(model: Any) -> None:
    """Raise ValueError unless this is a ranker, or a Pipeline with one at its end."""
    ranker = model
    if isinstance(model, Pipeline):
        steps = vars(model).get("steps")
        if not isinstance(steps, list) or not steps or not all(map(_is_step, steps)):
            raise ValueError("the steps of the Pipeline are not a list of pairs (name, step)")
        *others, (_, ranker) = steps
        if any(isinstance(step, RankerMixin) for _, step in others):
            raise ValueError("a step of the Pipeline before its end is a ranker")
    if not isinstance(ranker, RankerMixin):
        raise ValueError(f"{type(ranker).__name__} is not a ranker of rankwise")
    for part in _parts(model):
        _check_part(part)


def try_model(model: Any, n_bytes: int) -> None:
    """Raise ValueError unless the model scores items, in finite numbers.

    The ranker must score zeros. A whole Pipeline scores what its encoders know, zeros or ones, or
    says of each that it is no legal item.

    Parameters
    ----------
    model : estimator
        Looked through by `check_model`.
    n_bytes : int
        Size of its file; a model of more features than that gets sparse zeros.
    """
    ranker = last_step(model)
    n_features = ranker.n_features_in_
    if not 1 <= n_features < 2**40:
        raise ValueError(f"n_features_in_ is {n_features}")
    is_dense = n_features <= max(DENSE_FEATURES, n_bytes // 8)
    with (
        warnings.catch_warnings(),
        np.errstate(all="ignore"),
        joblib.parallel_config(backend="sequential"),
    ):
        warnings.simplefilter("ignore")
        _score(ranker, np.zeros((2, n_features)) if is_dense else sp.csr_array((2, n_features)))
        if ranker is not model:
            _try_steps(model)


def _try_steps(model: Any) -> None:
    for fill in (0.0, 1.0):
        example = _example(model, fill)
        if getattr(example, "dtype", None) == np.float64:  # many steps take no sparse items
            _is_scored(model, sp.csr_array(example), ValueError, TypeError)
        with suppress(ImportError):  # of pandas or polars, which the model was trained with
            if _is_scored(model, _as_seen(model, example), ValueError):
                return


def _is_scored(model: Any, items: Any, *complaints: type[Exception]) -> bool:
    """False if the model complains of the items; when NumPy does, it is about the parts."""
    try:
        _score_by_steps(model, items)
    except complaints as error:
        if any(word in str(error) for word in ("broadcast", "aligned", "matmul")):
            raise
        return False
    return True


def _score_by_steps(model: Any, items: Any) -> None:
    for _, step in model.steps:
        shape, n_features = np.shape(items), getattr(step, "n_features_in_", None)
        if len(shape) == 2 and n_features not in (None, shape[1]):
            raise TypeError(f"{type(step).__name__} takes {n_features} features, not {shape[1]}")
        if isinstance(step, RankerMixin):
            _score(step, items)
        elif hasattr(step, "transform"):
            items = transform_step(step, items, [0] * shape[0])


def _score(model: Any, items: Any) -> None:
    one, two = predict_items(model, items[:1], [0]), predict_items(model, items, [0, 0])
    if one.shape[:1] != (1,) or two.shape != (2, *one.shape[1:]):
        raise TypeError(f"scores of one item and of two have shapes {one.shape} and {two.shape}")
    if not (np.isfinite(one).all() and np.isfinite(two).all()):
        raise TypeError("its scores are not finite numbers")
    if hasattr(model, "predict_above") and not np.isfinite(model.predict_above(items, 0, 1)).all():
        raise TypeError("its probabilities are not finite numbers")


def _example(step: Any, fill: float) -> Any:
    """Two rows that a step takes: zeros or ones, the first categories of encoders, or a text."""
    first, parts = _first_step(step), list(_parts(step))
    n_features = next(n for n in (getattr(part, "n_features_in_", 0) for part in parts) if n)
    if n_features > DENSE_FEATURES:
        return sp.csr_array((2, n_features))
    if isinstance(first, ColumnTransformer):
        row = np.full(n_features, fill, dtype=object)
        for name, part, _ in first.transformers_:
            at = first._transformer_to_input_indices.get(name, [])
            row[at] = _example(part, fill)[0] if hasattr(part, "transform") else fill
        return np.array([row, row])
    for part in parts:
        if len(getattr(part, "categories_", ())) == n_features:
            row = np.array([kinds[0] for kinds in part.categories_], dtype=object)
            return np.array([row, row])
        if hasattr(part, "vocabulary_"):
            return np.array(["a text", "a text"], dtype=object)
    return np.full((2, n_features), fill)


def _first_step(step: Any) -> Any:
    while isinstance(step, Pipeline):
        step = next(one for _, one in step.steps if hasattr(one, "__dict__"))
    return step


def _as_seen(model: Any, items: Any) -> Any:
    names = getattr(_first_step(model), "feature_names_in_", None)
    if names is None:
        return items
    import pandas as pd

    return pd.DataFrame(items, columns=names).infer_objects()


def _parts(value: Any) -> Iterator[Any]:
    """Every estimator and feature map inside."""
    is_object = hasattr(value, "__dict__") and is_known(value)
    if is_object or isinstance(value, FeatureMap):
        yield value
    inside = vars(value) if is_object else value
    if isinstance(inside, (dict, list, tuple)):
        for entry in list(inside.values()) if isinstance(inside, dict) else inside:
            yield from _parts(entry)


def _check_part(part: Any) -> None:
    name, state = (
        type(part).__name__,
        part._asdict() if isinstance(part, FeatureMap) else vars(part),
    )
    for key in NEVER_KEPT & set(state):
        if state[key] is not None:
            raise ValueError(f"{name} has {key!r}, which no model file has")
    for key in LIMITS.keys() & set(state):
        if not (state[key] is None or -LIMITS[key] <= state[key] <= LIMITS[key]):
            raise ValueError(f"{name} has {key}={state[key]!r:.40}; the limit is {LIMITS[key]:,}")
    if state.get("input", "content") != "content":
        raise ValueError(f"{name} would read files: input={state['input']!r:.40}")
    if "feature_names_in_" in state:
        names, n_features = state["feature_names_in_"], state.get("n_features_in_")
        if np.shape(names) != (n_features,) or not all(isinstance(one, str) for one in names):
            raise ValueError(f"feature_names_in_ of {name} are not {n_features!r:.40} names")
    if not all(
        np.ndim(kinds) == 1 and hasattr(kinds, "dtype") for kinds in state.get("categories_", ())
    ):
        raise ValueError(f"the categories of {name} are no arrays")
    words = sorted(state.get("vocabulary_", {}).values())
    if words != list(range(len(words))):
        raise ValueError(f"the words of {name} are not numbered from 0")
    if isinstance(part, (RankerMixin, FeatureMap)):
        _check_numbers(name, state)
    is_fitted = "n_features_in_" in state  # a model that is a parameter of another is not
    if (
        isinstance(part, KernelModel)
        and is_fitted
        and ("coef_" in state) != (part.kernel == "linear")
    ):
        raise ValueError(f"coefficients and kernel of {name} do not match")
    if isinstance(part, FeatureMap) and part.is_columns and not part.kernel.is_linear:
        raise ValueError("a view has a kernel but no items")
    if isinstance(part, OneHotEncoder) and "categories_" in state:
        _check_one_hot(part)


def _check_numbers(name: str, state: dict[str, Any]) -> None:
    """Numbers of rows and columns count from 0; NumPy would take others from the end."""
    for key, array in state.items():
        if isinstance(array, np.ndarray) and array.dtype.kind == "i" and (array < 0).any():
            raise ValueError(f"{key} of {name} has the number {array.min()}")


def _check_one_hot(encoder: Any) -> None:
    """Each category has a column: the encoder builds its matrix without a look at that."""
    encoder = copy.copy(encoder)
    encoder.sparse_output, encoder._sklearn_output_config = True, {}
    n_rows = max(len(kinds) for kinds in encoder.categories_) + 1
    items = np.empty((n_rows, len(encoder.categories_)), dtype=object)
    for k, kinds in enumerate(encoder.categories_):
        items[:, k] = kinds[-1]
        items[: len(kinds), k] = kinds
    if encoder.handle_unknown != "error":
        items[-1] = "\0"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        encoder.transform(items).check_format(full_check=True)


def _is_step(step: Any) -> bool:
    if not isinstance(step, tuple) or len(step) != 2 or not isinstance(step[0], str):
        return False
    is_idle = step[1] is None or (isinstance(step[1], str) and step[1] == "passthrough")
    return is_idle or is_known(step[1])
