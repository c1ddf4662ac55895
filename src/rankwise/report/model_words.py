"""What the page says of a model: its parameters, its scores, the names of its columns."""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankwise.frames import as_array, column_names
from rankwise.model_selection.group_routing import predict_items
from rankwise.report.scored_items import as_text

LONGEST_VALUE = 160


def list_parameters(learner: Any) -> list[tuple[str, str]]:
    """Parameters that the learner chose, and those that the user set."""
    chosen = getattr(learner, "best_params_", {})
    rows = [(f"{name} (chosen)", _value(value)) for name, value in chosen.items()]
    return rows + [(name, _value(value)) for name, value, is_set in _given(learner) if is_set]


def list_defaults(learner: Any) -> list[str]:
    """The other parameters, as text."""
    return [f"{name}={_value(value)}" for name, value, is_set in _given(learner) if not is_set]


def _given(learner: Any) -> list[tuple[str, Any, bool]]:
    if not hasattr(learner, "get_params"):
        return []
    usual = inspect.signature(type(learner).__init__).parameters
    return [
        (name, value, name not in usual or _value(value) != _value(usual[name].default))
        for name, value in learner.get_params(deep=False).items()
    ]


def predict_scores(model: Any, X: Any, groups: Any = None) -> NDArray[Any]:
    """Scores by a model, or the given ones."""
    if hasattr(model, "predict") and not isinstance(model, type):
        return np.asarray(predict_items(model, X, groups))
    scores = np.asarray(as_array(model))
    if scores.ndim == 0:
        raise ValueError(
            f"model is {as_text(repr(model))}; expected a fitted estimator with a method predict, "
            "or an array with one score for each row."
        )
    return scores


def input_names(names: Sequence[Any] | None, model: Any, X: Any) -> list[str] | None:
    """Names of the columns of X: as given, of the data frame, or as the model has seen them."""
    if names is not None:
        shape = X.shape if hasattr(X, "shape") else np.shape(X)
        if len(shape) == 2 and len(names) != shape[1]:
            raise ValueError(
                f"feature_names has {len(names)} entries but X has {shape[1]} columns; "
                "name each column."
            )
        return [as_text(name) for name in names]
    columns = column_names(X)
    found = getattr(model, "feature_names_in_", None) if columns is None else columns
    return None if found is None else [as_text(name) for name in found]


def _value(value: Any) -> str:
    if isinstance(value, float):
        return f"{value:.6g}"
    if isinstance(value, np.ndarray) and value.size > 6:
        return f"array of shape {value.shape}"
    return as_text(repr(value), LONGEST_VALUE)
