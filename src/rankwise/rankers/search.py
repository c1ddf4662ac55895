"""Bases of rankers that select their parameters on held-out data."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from rankwise.arrays import Array, CrossValidation, MatrixLike
from rankwise.fitted_schema import FittedSchema, Model, Values
from rankwise.formatting import to_json_values
from rankwise.kernels.kernel import KernelName
from rankwise.metrics.registry import MetricName, get_metric
from rankwise.model_selection.grid_search import SearchResult, grid_search
from rankwise.model_selection.validation_curve import curves_of_search
from rankwise.rankers.base import RankerMixin, list_nuisance_effects
from rankwise.rankers.linear_models import KernelExpansion
from rankwise.rankers.summary import Summary


class BaseSearch(RankerMixin, BaseEstimator):
    """A ranker that selects its parameters on held-out data and predicts by the best model.

    `Search` is the base for learners of items with one kernel. Searches for tables declare
    `model_class` and `lists`, and call `_search`.
    """

    _fitted: ClassVar[FittedSchema] = {
        "best_estimator_": Model(),
        "best_params_": Values(),
        "best_score_": Values(),
        "cv_results_": Values(),
        "alpha_": Values(),
    }

    model_class: ClassVar[Any]
    """Class of the learner; it receives the parameters that it shares with the search."""

    lists: ClassVar[tuple[str, ...]] = ()
    """Parameters besides alpha that may be lists of values; each combination is a task."""

    alphas: ArrayLike | None
    cv: CrossValidation
    scoring: MetricName
    store_predictions: bool

    def _search(self, *data: Any) -> None:
        """Select the parameters, and train on `data`, the arguments of `hold_out_task`."""
        params = self.get_params(deep=False)
        learner_params = {}
        for name in self.model_class().get_params(deep=False):
            if name in params and name != "scoring":  # that of the search is another one
                learner_params[name] = params[name]
        result = grid_search(
            self.model_class(**learner_params),
            data,
            candidates={"alpha": self.alphas},
            parameter_lists={name: params[name] for name in self.lists},
            cv=self.cv,
            scoring=self.scoring,
            store_predictions=self.store_predictions,
        )
        self._store_search(result)

    def _store_search(self, result: SearchResult) -> Self:
        """Set the fitted attributes of a search."""
        self.best_estimator_ = result.best_estimator
        self.best_score_ = result.best_score
        self.best_params_ = result.best_params
        self.cv_results_ = result.cv_results
        for name, value in result.best_candidate.items():
            setattr(self, f"{name}_", value)
        return self

    def summary(self) -> Summary:
        """Summarize the search: the selected parameters and their held-out score.

        Returns
        -------
        Summary
            A record; ``print`` shows it as text.
        """
        check_is_fitted(self)
        return Summary(
            model=type(self.best_estimator_).__name__,
            parameters={name: to_json_values(value) for name, value in self.best_params_.items()},
            metric=get_metric(self.scoring).name,
            held_out_score=self.best_score_,
            held_out_error=self._error_of_best(),
            held_out_by=str(self.cv_results_.get("cv", "folds")),
            n_candidates=np.asarray(self.cv_results_["mean_score"]).size,
            nuisance=list_nuisance_effects(self.best_estimator_),
        )

    def _error_of_best(self) -> float | None:
        """Standard error of `best_score_`; None unless comparisons were held out."""
        if "standard_error" not in self.cv_results_:
            return None
        chosen_curve = next(curve for curve in curves_of_search(self) if curve.is_chosen)
        assert chosen_curve.error is not None
        best_value: Any = self.best_params_[chosen_curve.parameter]
        return float(chosen_curve.error[chosen_curve.place(best_value)])

    def __getattr__(self, name: str) -> Any:
        """Fitted attributes are those of `best_estimator_`."""
        is_fitted_attribute = name.endswith("_") and not name.startswith("_")
        if is_fitted_attribute and "best_estimator_" in vars(self):
            return getattr(self.best_estimator_, name)
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")


class Search(BaseSearch):
    """Base of the searches for a learner of items with one kernel; see `RankRLSCV`.

    A subclass declares its parameters and `fit`, which calls `grid_search`.
    """

    lists: ClassVar[tuple[str, ...]] = ("gamma", "degree", "coef0")

    kernel: KernelName
    gamma: float | Sequence[float] | None
    degree: float | Sequence[float]
    coef0: float | Sequence[float]
    kernel_params: dict[str, object] | None

    def _store_search(self, result: SearchResult) -> Self:
        super()._store_search(result)
        if "group_columns_" in vars(self):  # rankers of labels have no groups
            self.best_estimator_.group_columns_ = self.group_columns_
            self.best_estimator_.max_group_size_ = self.max_group_size_
        return self

    def predict(self, X: MatrixLike) -> Array:
        """Score items by the best model; see ``predict`` of the learner.

        Parameters
        ----------
        X : array-like, sparse matrix or data frame of shape (n_items, n_features)
            Items.

        Returns
        -------
        ndarray of shape (n_items,) or (n_items, n_outputs)
            Scores; larger is better.
        """
        check_is_fitted(self)
        scores: NDArray[Any] = self.best_estimator_.predict(X)
        return scores

    def kernel_expansion(self) -> KernelExpansion:
        """Kernel expansion of the scores of the best model.

        Returns
        -------
        KernelExpansion
            Basis items and coefficients.
        """
        expansion: KernelExpansion = self.best_estimator_.kernel_expansion()
        return expansion
