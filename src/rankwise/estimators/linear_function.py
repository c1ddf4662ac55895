"""The weights of features that a linear ranker amounts to, however it was trained."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from rankwise.arrays import Array
from rankwise.estimators.co_rank_rls import CoRankRLS
from rankwise.estimators.kernel_model import KernelModel
from rankwise.estimators.ranking_pursuit import RankingPursuit
from rankwise.estimators.search import Search

__all__ = ["LinearFunction", "linear_function"]


class LinearFunction(NamedTuple):
    """``f(x) = weights · x + intercept``."""

    weights: Array
    intercept: float


def linear_function(model: Any) -> LinearFunction:
    """The scores of a fitted ranker as a function of its features.

    Views and basis items of linear kernels are summed up.

    Raises
    ------
    ValueError
        If the ranker has another kernel, several outputs, or is none of rankwise's.
    """
    if isinstance(model, Search):
        return linear_function(model.best_estimator_)
    if isinstance(model, KernelModel):
        return LinearFunction(_single(model), 0.0)
    if isinstance(model, CoRankRLS):
        parts = zip(model.views_, model.view_coef_, strict=True)
        lines = [
            _on_columns(model, view.kernel, view.columns, coef, view.items) for view, coef in parts
        ]
        return LinearFunction(np.mean(lines, axis=0), 0.0)
    if isinstance(model, RankingPursuit):
        lines = [_pursuit_weights(model, function) for function in model.functions_]
        return LinearFunction(np.mean(lines, axis=0), model.intercept_)
    raise ValueError(
        f"{type(model).__name__} is none of rankwise's rankers; expected a linear RankRLS, "
        "RankSVM, RankLogistic, CoRankRLS or RankingPursuit, or the search for one."
    )


def _single(model: Any) -> Array:
    if not hasattr(model, "coef_"):
        raise _not_linear(model.kernel)
    if model.output_shape_ not in ((), (1,)):
        raise ValueError(
            f"the model has {model.output_shape_[0]} outputs, and weights are those of one; train "
            "a model for each output."
        )
    return np.asarray(model.coef_, dtype=np.float64).ravel()


def _pursuit_weights(model: Any, function: Any) -> Array:
    basis = function.basis
    if not basis.is_columns:
        return _on_columns(model, basis.kernel, basis.columns, function.coef, basis.items)
    weights = np.zeros(model.n_features_in_)
    np.add.at(weights, basis.indices, function.coef)
    return weights


def _on_columns(model: Any, kernel: Any, columns: Any, coef: Array, items: Any) -> Array:
    """Weights of all features from those of a view's columns or of its basis items."""
    if not kernel.is_linear:
        raise _not_linear(kernel.function)
    weights = np.zeros(model.n_features_in_)
    own = coef if items is None else np.asarray(items.T @ coef)
    weights[slice(None) if columns is None else columns] = own
    return weights


def _not_linear(kernel: Any) -> ValueError:
    return ValueError(
        f"kernel={kernel!r} is not linear: the model has no weights of features. Train it with "
        "kernel='linear' to get some."
    )
