"""Search: choosing parameters by cross-validation, whatever the learner and its parameters."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.validation import check_is_fitted, validate_data

from rankwise.arrays import Array
from rankwise.estimators.anatomy import ScoreFunctions
from rankwise.features import KernelParameters
from rankwise.features.kernel import BaseEstimator
from rankwise.frames import as_frame
from rankwise.machine import calm
from rankwise.model_selection.alpha_grid import (
    Edges,
    warn_at_edge,
    warn_at_edge_of_gamma,
    warn_at_limit,
)
from rankwise.model_selection.curves import HeldOutCurves, judge_and_widen
from rankwise.model_selection.measures import Measure, check_scoring, undefined_everywhere
from rankwise.model_selection.task import HoldOutTask
from rankwise.targets import with_weights


class _Choice(NamedTuple):
    """Where the best score is: at which point of the lists, at which candidate of each output."""

    point: int
    at: list[int]
    score: float


class _Tasks:
    """The tasks of all models; a single one is kept, with what it has decomposed."""

    def __init__(self, models: list[Any], data: tuple[Any, ...]) -> None:
        self._models, self._data = models, data
        self._only: HoldOutTask | None = None

    def __iter__(self) -> Iterator[HoldOutTask]:
        return map(self.__getitem__, range(len(self._models)))

    def __getitem__(self, k: int) -> HoldOutTask:
        if len(self._models) > 1:
            task: HoldOutTask = self._models[k].hold_out_task(*self._data)
            return task
        if self._only is None:
            self._only = self._models[0].hold_out_task(*self._data)
        return self._only


class BaseSearch(BaseEstimator):
    """A ranker that chooses its parameters by held-out data and stands for the best model.

    A subclass declares which learner is trained and what is searched. `Search` is the one for
    learners of items with one kernel.
    """

    model_class: ClassVar[Any]
    """The learner; parameters that it shares with the search are handed on."""

    shown: ClassVar[tuple[str, ...]] = (
        "coef_",
        "intercept_",
        "dual_coef_",
        "X_fit_",
        "basis_indices_",
        "n_pairs_",
        "solver_",
        "n_iter_",
    )
    """Attributes of the best model that the search has, too."""

    axes: ClassVar[dict[str, str | None]] = {"alpha": "alphas"}
    """Parameters whose candidates one task judges at once; where the user gives their values."""

    lists: ClassVar[tuple[str, ...]] = ()
    """Other parameters that may be lists of values; each combination is a task of its own."""

    best_estimator_: Any
    cv: Any
    scoring: Any
    store_predictions: bool
    alpha_per_output = False

    def _search(self, *data: Any) -> None:
        """Choose the parameters, then learn from all data, which go to `hold_out_task`."""
        metric, points = self._measure(), self._points()
        tasks = _Tasks([self._model(**point) for point in points], data)
        values = {name: given and getattr(self, given) for name, given in self.axes.items()}
        runs = judge_and_widen(
            tasks, values, self.cv, [metric], lambda runs: self._edges(runs, metric)
        )
        choice = self._choose(runs, metric)
        self._warn(runs, points, choice, metric)
        self._report(runs, points, choice, metric)
        chosen = {name: self.best_params_[name] for name in self.axes}
        self.best_estimator_ = tasks[choice.point].train(**chosen)

    def __getattr__(self, name: str) -> Any:
        if name in type(self).shown and "best_estimator_" in self.__dict__:
            return getattr(self.best_estimator_, name)
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")

    def _measure(self) -> Measure:
        return check_scoring(self.scoring)

    def _model(self, **point: Any) -> Any:
        own, theirs = self.get_params(deep=False), self.model_class().get_params(deep=False)
        shared = set(own) & set(theirs) - {"scoring", *point}
        return self.model_class(**point, **{name: own[name] for name in shared})

    def _points(self) -> list[dict[str, Any]]:
        """Every combination of the parameters that may be lists."""
        given = {name: getattr(self, name) for name in self.lists}
        values = {n: list(value) if np.ndim(value) else [value] for n, value in given.items()}
        for name, choices in values.items():
            if not choices:
                raise ValueError(f"{name} is an empty list; give at least one value to try.")
        return [
            dict(zip(values, point, strict=True)) for point in itertools.product(*values.values())
        ]

    def _choose(self, runs: list[HeldOutCurves], metric: Measure) -> _Choice:
        """The best score; of equal ones the first point of the lists, the simplest candidate."""
        choices = []
        for k, run in enumerate(runs):
            columns = self._columns(run, metric)
            if np.isnan(columns).all():
                continue
            outputs = range(columns.shape[1]) if self.alpha_per_output else [None]
            at = [run.best(metric, output) for output in outputs]
            choices.append(_Choice(k, at, float(np.mean(columns[at, np.arange(len(at))]))))
        if not choices:
            raise undefined_everywhere(metric)
        sign = 1.0 if metric.greater_is_better else -1.0
        return max(choices, key=lambda choice: sign * choice.score)

    def _columns(self, run: HeldOutCurves, metric: Measure) -> Array:
        """Mean scores of the candidates, one column for each choice that is made."""
        return run.mean(metric) if self.alpha_per_output else run.overall(metric)[:, None]

    def _edges(self, runs: list[HeldOutCurves], metric: Measure) -> Edges:
        choice = self._choose(runs, metric)
        run = runs[choice.point]
        columns = zip(self._columns(run, metric).T, choice.at, strict=True)
        found = [run.candidates.edges(scores, at, "alpha") for scores, at in columns]
        return Edges(any(edges.lower for edges in found), any(edges.upper for edges in found))

    def _warn(
        self,
        runs: list[HeldOutCurves],
        points: list[dict[str, Any]],
        choice: _Choice,
        metric: Measure,
    ) -> None:
        """Warn if values end where the score still improves: the user's, or any default ones."""
        run = runs[choice.point]
        if run.candidates.grid is not None:
            warn_at_limit(run.candidates.grid, self._edges(runs, metric))
        for name, given in self.axes.items():
            if given is None or getattr(self, given) is None:
                continue
            values = run.candidates.axes[name]
            for scores, at in zip(self._columns(run, metric).T, choice.at, strict=True):
                line, place = run.candidates.line(at, name)
                if values[place] > 0:  # there is no nu below 0
                    warn_at_edge(name, values, scores[line], place)
        sign = 1.0 if metric.greater_is_better else -1.0
        gains = [np.nan_to_num(sign * self._columns(run, metric), nan=-np.inf) for run in runs]
        best = np.array([gain.max(axis=0).mean() for gain in gains])
        warn_at_edge_of_gamma(points, best, points[choice.point])

    def _report(
        self,
        runs: list[HeldOutCurves],
        points: list[dict[str, Any]],
        choice: _Choice,
        metric: Measure,
    ) -> None:
        run = runs[choice.point]
        chosen: dict[str, Any] = run.candidates[choice.at[0]]
        if self.alpha_per_output:
            chosen["alpha"] = run.candidates.axes["alpha"][choice.at]
        for name, value in chosen.items():
            setattr(self, f"{name}_", value)
        self.best_score_ = choice.score
        searched = [name for name in self.lists if np.ndim(getattr(self, name))]
        self.best_params_ = {**chosen, **{name: points[choice.point][name] for name in searched}}
        self.cv_results_ = {
            **self._tables(runs, points, metric),
            "groups": runs[0].groups,
            "n_undefined": run.n_undefined(metric),
            "cv": runs[0].way,
            "note": run.note(metric, 0 if self.alpha_per_output else None),
        }

    def _tables(
        self, runs: list[HeldOutCurves], points: list[dict[str, Any]], metric: Measure
    ) -> dict[str, Any]:
        """Scores for `cv_results_`: a row for each point, a column for each candidate."""
        (name,) = self.axes
        values = [run.candidates.axes[name] for run in runs]
        is_single = runs[0].by_group[metric.name].shape[2] == 1
        one = (..., 0) if is_single else ...
        tables: dict[str, Any] = {
            (self.axes[name] or name): values if name == "alpha" else values[0].astype(int),
            "params": points,
            "mean_score": np.stack([run.mean(metric)[one] for run in runs]),
            "group_score": [run.by_group[metric.name][one] for run in runs],
        }
        if self.store_predictions:
            held = [run.predictions for run in runs]
            tables["predictions"] = [
                each if each is None or not is_single else each[:, 0] for each in held
            ]
        return tables


class Search(BaseSearch, KernelParameters):
    """A search for a learner of items in groups, with one kernel; see `RankRLSCV`."""

    lists: ClassVar[tuple[str, ...]] = ("gamma", "degree", "coef0")

    @calm
    def fit(
        self,
        X: Any,
        y: Any,
        groups: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
    ) -> Self:
        """Choose the parameters, then learn from all data.

        Parameters
        ----------
        X, y, groups, sample_weight
            As in ``fit`` of the model. Held-out items are judged with their weights, too.

        Returns
        -------
        Search
            The fitted estimator.
        """
        y, groups = with_weights(y, groups, sample_weight, X)
        self._search(X, y, groups)
        frame = as_frame(X)
        validate_data(self, X if frame is None else frame, skip_check_array=True)
        return self

    def predict(self, X: Any) -> NDArray[Any]:
        """Score items by the model of the best parameters; see ``predict`` of the model."""
        check_is_fitted(self)
        scores: NDArray[Any] = self.best_estimator_.predict(X)
        return scores

    def score_functions(self) -> ScoreFunctions:
        """What the scores of the best model are made of."""
        parts: ScoreFunctions = self.best_estimator_.score_functions()
        return parts
