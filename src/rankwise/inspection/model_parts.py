"""The parts of a fitted model: the steps before the learner, the learner, its weights."""

from __future__ import annotations

from contextlib import suppress
from typing import NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.pipeline import Pipeline

from rankwise.arrays import Array, Matrix, MatrixLike
from rankwise.frames import as_array, column_names
from rankwise.rankers.base import RankerMixin
from rankwise.rankers.linear_models import linear_weights
from rankwise.rankers.pipelines import is_passthrough, transform_step
from rankwise.uncertainty import CalibratedRanker


class ModelParts(NamedTuple):
    """The parts of a fitted model, as `unwrap` returns them.

    Attributes
    ----------
    steps : Pipeline or None
        The transformers before the learner.
    learner : object or None
        The final estimator; None if scores were passed instead of a model.
    search : str
        Class name of the scikit-learn search that contains the learner; empty if there is none.
    calibrated : CalibratedRanker or None
        The calibrated ranker that contains the learner.
    steps_before : Pipeline or None
        The transformers before the calibrated ranker.
    """

    steps: Pipeline | None
    learner: BaseEstimator | None
    search: str = ""
    calibrated: CalibratedRanker | None = None
    steps_before: Pipeline | None = None

    @property
    def name(self) -> str:
        """Class name of the learner."""
        if self.learner is None:
            return "given scores"
        return type(self.learner).__name__

    @property
    def step_names(self) -> list[str]:
        """Class names of the steps before the learner."""
        if self.steps is None:
            return []
        return [type(step).__name__ for _, step in self.steps.steps]

    def features(self, X: MatrixLike, groups: ArrayLike | None = None) -> Matrix:
        """Return the learner's features of the rows of X: a dense array or a CSR matrix."""
        rows = X
        if self.steps is not None:
            rows = transform_step(self.steps, X, groups)
        if sp.issparse(rows):
            return rows.tocsr()
        return np.asarray(as_array(rows, "X"))

    def feature_names(self, names: list[str] | None, n_features: int) -> list[str]:
        """Return names of the learner's features, from the names of the columns of X."""
        if self.steps is not None:
            # Errors of a step without get_feature_names_out, or fitted with other names
            with suppress(AttributeError, ValueError):
                return [str(name) for name in self.steps.get_feature_names_out(names)]
        return name_columns(names, n_features)

    def weights(self) -> Array | None:
        """Return one weight for each of the learner's features; None if it is not linear."""
        if isinstance(self.learner, RankerMixin):
            try:
                return linear_weights(self.learner).weights
            except ValueError:  # another kernel, or several outputs
                return None
        coef = getattr(self.learner, "coef_", None)  # for example a linear model of scikit-learn
        if coef is None:
            return None
        if sp.issparse(coef):
            coef = coef.toarray()
        weights = np.asarray(coef, dtype=np.float64)
        has_one_output = weights.size == weights.shape[-1]  # (n_features,) or (1, n_features)
        if not has_one_output:
            return None
        return weights.reshape(-1)


def unwrap(model: BaseEstimator) -> ModelParts:
    """Find the learner inside Pipelines, calibrated rankers and searches of scikit-learn."""
    if not hasattr(model, "predict"):
        return ModelParts(steps=None, learner=None)  # scores instead of a model
    steps: list[tuple[str, TransformerMixin]] = []
    search = ""
    calibrated: CalibratedRanker | None = None
    steps_before_calibrated: Pipeline | None = None
    # Take off one layer at a time, until the learner is left
    while True:
        is_search = hasattr(model, "best_estimator_") and not isinstance(model, RankerMixin)
        if isinstance(model, Pipeline):
            steps += [step for step in model.steps[:-1] if not is_passthrough(step[1])]
            _, model = model.steps[-1]
        elif isinstance(model, CalibratedRanker):
            calibrated = model
            steps_before_calibrated = _pipeline(steps)
            model = model.estimator_
        elif is_search:
            search = type(model).__name__
            model = model.best_estimator_
        else:
            return ModelParts(
                steps=_pipeline(steps),
                learner=model,
                search=search,
                calibrated=calibrated,
                steps_before=steps_before_calibrated,
            )


def _pipeline(steps: list[tuple[str, TransformerMixin]]) -> Pipeline | None:
    """Return the steps as a Pipeline; None without steps."""
    if not steps:
        return None
    return Pipeline(list(steps))


def name_columns(names: list[str] | None, n_columns: int) -> list[str]:
    """Return the names if there is one for each column, else x0, x1, …"""
    if names is not None and len(names) == n_columns:
        return names
    return [f"x{j}" for j in range(n_columns)]


def input_columns(model: BaseEstimator, X: MatrixLike) -> list[str] | None:
    """Return the names of a model's input columns, from its fit or from the data frame."""
    names = getattr(model, "feature_names_in_", None)
    if names is None:
        names = column_names(X)
    if names is None:
        return None
    return [str(name) for name in names]
