"""Take a model apart: the steps before the learner, the learner, its weights."""

from __future__ import annotations

from contextlib import suppress
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from sklearn.pipeline import Pipeline

from rankwise.arrays import Array
from rankwise.frames import as_array, column_names
from rankwise.rankers.base import RankerMixin
from rankwise.rankers.linear_models import linear_weights
from rankwise.rankers.pipelines import is_passthrough, transform_step
from rankwise.rankers.search import Search
from rankwise.uncertainty import CalibratedRanker


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
        rows = X if self.steps is None else transform_step(self.steps, X, groups)
        return rows.tocsr() if sp.issparse(rows) else np.asarray(as_array(rows, "X"))

    def feature_names(self, names: list[str] | None, n_features: int) -> list[str]:
        """Names of what the learner sees, from the names of the columns of X."""
        if self.steps is not None:
            with suppress(AttributeError, ValueError):  # a step that does not tell, or other names
                return [str(name) for name in self.steps.get_feature_names_out(names)]
        return name_columns(names, n_features)

    def weights(self) -> Array | None:
        """One weight for each feature that the learner sees; None if it has none."""
        if isinstance(self.learner, RankerMixin):
            with suppress(ValueError):
                return linear_weights(self.learner).weights
        coef = getattr(self.learner, "coef_", None)  # a linear model of scikit-learn, say
        if coef is None or isinstance(self.learner, RankerMixin):
            return None
        weights = np.asarray(coef.toarray() if sp.issparse(coef) else coef, dtype=np.float64)
        return weights.reshape(-1) if weights.size == weights.shape[-1] else None


def unwrap(model: Any) -> ModelParts:
    """Find the learner inside pipelines and scikit-learn's searches."""
    if not hasattr(model, "predict"):
        return ModelParts(None, None)
    steps: list[tuple[str, Any]] = []
    search, sure, before = "", None, None
    while True:
        if isinstance(model, Pipeline):
            steps += [step for step in model.steps[:-1] if not is_passthrough(step[1])]
            model = model.steps[-1][1]
        elif isinstance(model, CalibratedRanker):
            sure, before = model, Pipeline(list(steps)) if steps else None
            model = model.estimator_
        elif hasattr(model, "best_estimator_") and not isinstance(model, Search):
            search = type(model).__name__
            model = model.best_estimator_
        else:
            return ModelParts(Pipeline(steps) if steps else None, model, search, sure, before)


def name_columns(names: list[str] | None, n_columns: int) -> list[str]:
    """These names if there is one for each column, else x0, x1, …"""
    if names is not None and len(names) == n_columns:
        return names
    return [f"x{j}" for j in range(n_columns)]


def input_columns(model: Any, X: Any) -> list[str] | None:
    """Names of the columns that a model takes: as it has seen them, or of the data frame."""
    names = getattr(model, "feature_names_in_", None)
    names = column_names(X) if names is None else names
    return None if names is None else [str(name) for name in names]
