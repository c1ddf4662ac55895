"""Rankers that choose their parameters on held-out data."""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.validation import check_is_fitted

from rankwise.arrays import Array
from rankwise.errors import warn_user
from rankwise.graphs.supervision import read_y
from rankwise.kernels.kernel import BaseEstimator, KernelParameters
from rankwise.metrics import Metric
from rankwise.metrics.by_group import check_scoring, nanmean
from rankwise.model_selection.candidate_grid import CandidateGrid
from rankwise.model_selection.folds import read_splits
from rankwise.model_selection.grid_search import (
    CrossValidationResult,
    evaluate_task,
    forward_validation,
)
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
        """Choose the parameters, then learn from all data, which go to `hold_out_task`.

        If times are given, later groups are held out.
        """
        is_default = self.cv is None or (isinstance(self.cv, str) and self.cv == "auto")
        if time is not None and not is_default:
            raise ValueError(f"cv={self.cv!r} and time both say what is held out; give one.")
        metric, points, cv = check_scoring(self.scoring), self._points(), read_splits(self.cv)
        values = {name: getattr(self, asked or "", None) for name, asked in self.axes.items()}
        runs, scores = [], []
        for point in points:  # one at a time: a task may hold a kernel matrix
            model = self._model(**point)
            task = model.hold_out_task(*data)
            if time is None:
                run = evaluate_task(task, values, cv, [metric])
            else:
                X, target = data
                run = forward_validation(model, X, target, time, values, [metric])
            runs.append(run)
            scores.append(run.overall(metric)[run.best(metric)])
        best = int((np.argmax if metric.greater_is_better else np.argmin)(scores))
        chosen = self._report(runs, points, best, metric)
        if len(points) > 1:
            task = self._model(**points[best]).hold_out_task(*data)
        self.best_estimator_ = task.train(**chosen)

    def __getattr__(self, name: str) -> Any:
        """What `fit` of the learner sets is that of the best model."""
        if name.endswith("_") and not name.startswith("_") and "best_estimator_" in vars(self):
            return getattr(self.best_estimator_, name)
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")

    def _model(self, **point: Any) -> Any:
        own, theirs = self.get_params(deep=False), self.model_class().get_params(deep=False)
        shared = set(own) & set(theirs) - {"scoring", *point}
        return self.model_class(**point, **{name: own[name] for name in shared})

    def _points(self) -> list[dict[str, Any]]:
        """Every combination of the parameters that may be lists."""
        values = []
        for name in self.lists:
            value = getattr(self, name)
            values.append(list(value) if np.ndim(value) else [value])
            if not values[-1]:
                raise ValueError(f"{name} is an empty list; give at least one value to try.")
        return [dict(zip(self.lists, point, strict=True)) for point in itertools.product(*values)]

    def _report(
        self,
        runs: list[CrossValidationResult],
        points: list[dict[str, Any]],
        best: int,
        metric: Metric,
    ) -> dict[str, Any]:
        """Set the attributes that tell of the search; the chosen candidate."""
        run, at = runs[best], runs[best].best(metric)
        scores, chosen = run.overall(metric), run.candidates[at]
        for name, value in chosen.items():
            setattr(self, f"{name}_", value)
            is_asked = getattr(self, self.axes[name] or "", None) is not None
            if value > 0 and (is_asked or name == "alpha"):  # there is no nu below 0
                warn_at_edge(name, run.candidates, scores, at)
        self.best_score_ = float(scores[at])
        self.best_params_ = dict(chosen)
        for name in self.lists:
            if np.ndim(getattr(self, name)):
                self.best_params_[name] = points[best][name]
        # a row for each point and nu, a column for each value of the first parameter
        first = next(iter(self.axes))
        single = run.by_group[metric.name].shape[2] == 1
        output = 0 if single else slice(None)
        values, params, means, by_group, predictions = [], [], [], [], []
        for run, point in zip(runs, points, strict=True):
            grid = run.candidates.axes[first]
            for start in range(0, len(run.candidates), len(grid)):
                line, fixed = slice(start, start + len(grid)), run.candidates[start]
                del fixed[first]
                values.append(grid)
                params.append({**point, **fixed})
                means.append(nanmean(run.by_group[metric.name])[line, output])
                by_group.append(run.by_group[metric.name][:, line, output])
                held = run.predictions
                predictions.append(None if held is None else held[:, output, line])
        self.cv_results_: dict[str, Any] = {
            (self.axes[first] or first): values if first == "alpha" else values[0],
            "params": params,
            "mean_score": np.stack(means),
            "group_score": by_group,
            "groups": runs[0].groups,
            "n_undefined": int(np.isnan(runs[best].by_group[metric.name]).any(axis=(1, 2)).sum()),
            "cv": runs[0].way,
        }
        if self.store_predictions:
            self.cv_results_["predictions"] = predictions
        return chosen


def warn_at_edge(name: str, candidates: CandidateGrid, scores: Array, at: int) -> None:
    """Warn if the grid of a parameter ends at the choice `at` and no other value is as good."""
    grid, line = candidates.axes[name], candidates.line(at, name)
    others = np.delete(scores[line], np.flatnonzero(line == at))
    value = candidates[at][name]
    if len(others) and (others != scores[at]).all() and value in (grid.min(), grid.max()):
        warn_user(
            f"the best {name} {value:g} is at the edge of the grid from {grid.min():g} to "
            f"{grid.max():g}; extend the grid, or scale the features."
        )


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
