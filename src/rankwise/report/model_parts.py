"""Look inside a model: its scaling steps, its learner, its weights, its parameters."""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from contextlib import suppress
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.pipeline import Pipeline

from rankwise.arrays import Array
from rankwise.estimators.base import RankerMixin
from rankwise.estimators.linear_function import linear_function
from rankwise.estimators.pipelines import transform_step
from rankwise.estimators.search import Search
from rankwise.frames import as_array, column_names
from rankwise.model_selection.group_routing import predict_items
from rankwise.report.scored_items import as_text
from rankwise.uncertainty import CalibratedRanker

__all__ = ["ModelParts", "input_names", "predict_scores", "take_apart"]

LONGEST_VALUE = 160


class ModelParts(NamedTuple):
    """A model taken apart.

    Attributes
    ----------
    steps : Pipeline or None
        What happens to the features first.
    learner : object or None
        The estimator at the end; None if plain scores were given.
    search : str
        Class of scikit-learn's search that the learner was found in, else empty.
    sure : CalibratedRanker or None
        What knows how sure the learner is.
    steps_before : Pipeline or None
        What happens to the features before it gets them.
    """

    steps: Pipeline | None
    learner: Any
    search: str = ""
    sure: CalibratedRanker | None = None
    steps_before: Pipeline | None = None

    @property
    def name(self) -> str:
        """Class of the learner."""
        return "given scores" if self.learner is None else type(self.learner).__name__

    @property
    def step_names(self) -> list[str]:
        """Classes of the steps before the learner."""
        return [] if self.steps is None else [type(step).__name__ for _, step in self.steps.steps]

    def features(self, X: Any, groups: Any = None) -> Any:
        """What the learner sees of the rows of X: a dense array or a sparse matrix by rows."""
        seen = X if self.steps is None else transform_step(self.steps, X, groups)
        return seen.tocsr() if sp.issparse(seen) else np.asarray(as_array(seen, "X"))

    def feature_names(self, names: list[str] | None, n_features: int) -> list[str]:
        """Names of what the learner sees, from the names of the columns of X."""
        if self.steps is not None:
            try:
                return [as_text(n) for n in self.steps.get_feature_names_out(names)]
            except (AttributeError, ValueError):  # a step that does not tell, or other names
                pass
        is_fitting = names is not None and len(names) == n_features
        return list(names) if names and is_fitting else [f"x{j}" for j in range(n_features)]

    def weights(self) -> Array | None:
        """One weight for each feature that the learner sees; None if it has none."""
        if isinstance(self.learner, RankerMixin):
            with suppress(ValueError):
                return linear_function(self.learner).weights
            return None
        coef = getattr(self.learner, "coef_", None)  # a linear model of scikit-learn, say
        if coef is None:
            return None
        weights = np.asarray(coef.toarray() if sp.issparse(coef) else coef, dtype=np.float64)
        return weights.reshape(-1) if weights.size == weights.shape[-1] else None

    def parameters(self) -> list[tuple[str, str]]:
        """Parameters that the learner chose, and those that the user set."""
        chosen = getattr(self.learner, "best_params_", {})
        rows = [(f"{name} (chosen)", _value(value)) for name, value in chosen.items()]
        return rows + [(name, _value(v)) for name, v, is_set in self._given() if is_set]

    def defaults(self) -> list[str]:
        """The other parameters, as text."""
        return [f"{name}={_value(value)}" for name, value, is_set in self._given() if not is_set]

    def _given(self) -> list[tuple[str, Any, bool]]:
        if not hasattr(self.learner, "get_params"):
            return []
        usual = inspect.signature(type(self.learner).__init__).parameters
        return [
            (name, value, name not in usual or _value(value) != _value(usual[name].default))
            for name, value in self.learner.get_params(deep=False).items()
        ]


def take_apart(model: Any) -> ModelParts:
    """Find the learner inside pipelines and scikit-learn's searches."""
    if not hasattr(model, "predict"):
        return ModelParts(None, None)
    steps: list[tuple[str, Any]] = []
    search, sure, before = "", None, None
    while True:
        if isinstance(model, Pipeline):
            steps += [step for step in model.steps[:-1] if step[1] not in (None, "passthrough")]
            model = model.steps[-1][1]
        elif isinstance(model, CalibratedRanker):
            sure, before = model, Pipeline(list(steps)) if steps else None
            model = model.estimator_
        elif hasattr(model, "best_estimator_") and not isinstance(model, Search):
            search = type(model).__name__
            model = model.best_estimator_
        else:
            return ModelParts(Pipeline(steps) if steps else None, model, search, sure, before)


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
