"""Rankers that choose their parameters on held-out data."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Self

from numpy.typing import ArrayLike, NDArray
from sklearn.utils.validation import check_is_fitted

from rankwise.graphs.supervision import read_y
from rankwise.kernels.kernel import BaseEstimator, KernelParameters
from rankwise.model_selection.grid_search import SearchResult, grid_search
from rankwise.preprocessing.group_columns import check_groups, refuse_other_keywords
from rankwise.rankers.linear_models import KernelExpansion
from rankwise.rankers.ranking_problem import no_nuisance
from rankwise.runtime.threads import single_threaded
from rankwise.validation import restored_on_failure


@dataclass(eq=False, repr=False, kw_only=True)
class BaseSearch(BaseEstimator):
    """A ranker that chooses its parameters by held-out data and stands for the best model.

    A subclass declares which learner is trained and what is searched. `Search` is the one for
    learners of items with one kernel.
    """

    model_class: ClassVar[Any]
    """The learner; parameters that it shares with the search are handed on."""

    axes: ClassVar[dict[str, str | None]] = {"alpha": "alphas"}
    """Parameters whose candidates one task judges at once; where the user gives their values."""

    lists: ClassVar[tuple[str, ...]] = ()
    """Other parameters that may be lists of values; each combination is a task of its own."""

    cv: Any = "auto"
    scoring: Any = "disagreement"
    store_predictions: bool = False

    def _search(self, *data: Any, time: Any = None) -> None:
        """Select the parameters and train on all data, the arguments of `hold_out_task`."""
        learner_names = self.model_class().get_params(deep=False)
        params = self.get_params(deep=False)
        shared = {name: params[name] for name in params if name in learner_names}
        shared.pop("scoring", None)
        result = grid_search(
            self.model_class(**shared),
            data,
            candidates={
                name: None if argument is None else params[argument]
                for name, argument in self.axes.items()
            },
            parameter_lists={name: params[name] for name in self.lists},
            cv=self.cv,
            scoring=self.scoring,
            time=time,
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

    def __getattr__(self, name: str) -> Any:
        """What `fit` of the learner sets is that of the best model."""
        if name.endswith("_") and not name.startswith("_") and "best_estimator_" in vars(self):
            return getattr(self.best_estimator_, name)
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")


class Search(BaseSearch, KernelParameters):
    """A search for a learner of items in groups, with one kernel; see `RankRLSCV`."""

    lists: ClassVar[tuple[str, ...]] = ("gamma", "degree", "coef0")
    allows_unscored: bool  # of the mixin of the learner

    @refuse_other_keywords
    @single_threaded
    @restored_on_failure
    def fit(
        self,
        X: Any,
        y: Any,
        groups: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
        *,
        time: ArrayLike | None = None,
        nuisance: Any = None,
    ) -> Self:
        """Choose the parameters, then learn from all data.

        Parameters
        ----------
        X, y, groups, sample_weight
            As in ``fit`` of the model. Held-out items are judged with their weights, too.
        time : array-like of shape (n_items,), optional
            When each item was seen: dates or numbers. Groups are then judged by models of earlier
            groups only, in five blocks, as a model that is used tomorrow will be.
        nuisance : array-like or data frame, optional
            As in ``fit`` of RankRLS and RankLogistic; other models refuse it. Held-out items are
            judged by f(x) without it.

        Returns
        -------
        Search
            The fitted estimator.
        """
        allow_nan = self.allows_unscored
        target = read_y(y, groups, sample_weight, nuisance, X=X, allow_nan=allow_nan)
        if not self.model_class.takes_nuisance:
            no_nuisance(type(self).__name__, target)
        X = check_groups(self, X, y, groups)
        self._search(X, target, time=time)
        self.best_estimator_.group_columns_ = self.group_columns_
        self.best_estimator_.max_group_size_ = self.max_group_size_
        return self

    def predict(self, X: Any) -> NDArray[Any]:
        """Score items by the model of the best parameters; see ``predict`` of the model."""
        check_is_fitted(self)
        scores: NDArray[Any] = self.best_estimator_.predict(X)
        return scores

    def kernel_expansion(self) -> KernelExpansion:
        """What the scores of the best model are made of."""
        parts: KernelExpansion = self.best_estimator_.kernel_expansion()
        return parts
