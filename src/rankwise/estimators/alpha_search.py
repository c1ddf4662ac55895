"""Choosing alpha, and kernel parameters if lists are given, by cross-validation."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.validation import validate_data

from rankwise.errors import UndefinedMetricError
from rankwise.estimators.alpha_grid import (
    Edges,
    edges_of,
    flat_note,
    warn_at_edge,
    warn_at_edge_of_gamma,
    warn_at_limit,
)
from rankwise.estimators.base import RankerMixin
from rankwise.estimators.best_model import BestModel
from rankwise.estimators.checks import check_alphas
from rankwise.estimators.cross_validation import (
    CrossValidation,
    Task,
    best_of,
    check_scoring,
    cross_validate_alphas,
    join_alphas,
    standard_error,
)
from rankwise.estimators.lost_groups import warn_if_groups_were_lost
from rankwise.metrics import Metric, get_metric

__all__ = ["AlphaSearch"]

Array = NDArray[np.float64]


class _Choice(NamedTuple):
    """Where the best score is: in which kernel, at which alpha of each output."""

    kernel: int
    alphas: NDArray[np.intp]
    score: float


class _Tasks:
    """The tasks of all models; a single one is kept, with what it has decomposed."""

    def __init__(self, models: list[Any], data: tuple[Any, Any, Any]) -> None:
        self._models, self._data = models, data
        self._only: Any = None

    def __iter__(self) -> Iterator[Task]:
        if len(self._models) > 1:
            yield from (model._task(*self._data) for model in self._models)
            return
        if self._only is None:
            self._only = self._models[0]._task(*self._data)
        yield self._only


class AlphaSearch(RankerMixin, BestModel):
    """Shared by RankRLSCV and RankSVMCV, which say what is trained and how it is judged."""

    shown = (
        "coef_",
        "dual_coef_",
        "X_fit_",
        "basis_indices_",
        "n_pairs_",
        "solver_",
        "n_iter_",
    )

    model_class: Any
    """The estimator that is trained; its parameters but alpha are the search's, too."""

    alphas: ArrayLike | None
    cv: Any
    scoring: Any
    store_predictions: bool
    alpha_per_output = False

    def fit(self, X: Any, y: Any, groups: ArrayLike | None = None) -> Self:
        """Choose the parameters, then learn from all data.

        Parameters
        ----------
        X, y, groups
            As in ``fit`` of the model.

        Returns
        -------
        AlphaSearch
            The fitted estimator.
        """
        warn_if_groups_were_lost(y, groups, "fit")
        metric = check_scoring(self.scoring)
        grid = self._kernel_grid()
        tasks = _Tasks([self._model(**params) for params in grid], (X, y, groups))
        if self.alphas is None:
            runs, choice = self._judge_default(tasks, metric)
        else:
            alphas = check_alphas(self.alphas, "alphas")
            runs = [cross_validate_alphas(task, alphas, self.cv, metric) for task in tasks]
            choice = self._choose(runs, metric.greater_is_better)
            self._warn_at_edge(runs[choice.kernel], choice)
        sign = 1.0 if metric.greater_is_better else -1.0
        best = np.array([np.nanmax(sign * self._columns(run), axis=0).mean() for run in runs])
        warn_at_edge_of_gamma(grid, best, grid[choice.kernel], stacklevel=3)
        chosen, which = np.unique(runs[choice.kernel].alphas[choice.alphas], return_inverse=True)
        path = self._model(**grid[choice.kernel]).path(X, y, groups, alphas=chosen)
        self.best_estimator_ = path.model(which if len(chosen) > 1 else 0)
        self._report(runs, grid, choice)
        validate_data(self, X, skip_check_array=True)
        return self

    def _judge_default(
        self, tasks: _Tasks, metric: Metric
    ) -> tuple[list[CrossValidation], _Choice]:
        """The default grid, and wider ones while the choice is at an end of it."""
        grids, runs = [], []
        for task in tasks:
            grids.append(task.default_grid())
            runs.append(cross_validate_alphas(task, grids[-1].alphas, self.cv, metric))
        while True:
            choice = self._choose(runs, metric.greater_is_better)
            edges = self._edges(runs[choice.kernel], choice)
            wider = [grid.wider(edges) for grid in grids]
            if wider == grids:
                warn_at_limit(grids[choice.kernel], edges, stacklevel=4)
                return runs, choice
            for k, task in enumerate(tasks):
                more = cross_validate_alphas(task, wider[k].beyond(grids[k]), self.cv, metric)
                runs[k] = join_alphas(runs[k], more)
            grids = wider

    def _model(self, **kernel: Any) -> Any:
        shared = set(self.get_params()) & set(self.model_class().get_params()) - set(kernel)
        return self.model_class(**kernel, **{name: getattr(self, name) for name in shared})

    def _kernel_grid(self) -> list[dict[str, Any]]:
        """Every combination of the kernel parameters that are given as lists."""
        values = {
            name: list(value) if np.ndim(value) else [value]
            for name, value in (
                ("gamma", self.gamma),
                ("degree", self.degree),
                ("coef0", self.coef0),
            )
        }
        for name, choices in values.items():
            if not choices:
                raise ValueError(f"{name} is an empty list; give at least one value to try.")
        return [
            dict(zip(values, point, strict=True)) for point in itertools.product(*values.values())
        ]

    def _choose(self, runs: list[CrossValidation], greater_is_better: bool) -> _Choice:
        sign = 1.0 if greater_is_better else -1.0
        choices = []
        for k, run in enumerate(runs):
            score = sign * run.mean_score  # (n_alphas, n_outputs)
            if np.isnan(score).all():
                continue
            if not self.alpha_per_output:
                score = score.mean(axis=1, keepdims=True)
            at = np.array([best_of(column, run.alphas) for column in score.T])
            choices.append(_Choice(k, at, sign * float(np.mean(score[at, np.arange(len(at))]))))
        if not choices:
            raise UndefinedMetricError(
                f"{get_metric(self.scoring)} is undefined in every held-out fold; use larger "
                "folds, another cv or another scoring."
            )
        return max(choices, key=lambda choice: sign * choice.score)

    def _columns(self, run: CrossValidation) -> Array:
        """Mean scores by alpha, one column for each choice that is made."""
        score = run.mean_score
        return score if self.alpha_per_output else score.mean(axis=1, keepdims=True)

    def _edges(self, run: CrossValidation, choice: _Choice) -> Edges:
        columns = zip(self._columns(run).T, choice.alphas, strict=True)
        found = [edges_of(run.alphas, scores, int(at)) for scores, at in columns]
        return Edges(any(edges.lower for edges in found), any(edges.upper for edges in found))

    def _warn_at_edge(self, run: CrossValidation, choice: _Choice) -> None:
        """Warn if the grid of the user ends where the score still improves."""
        for scores, at in zip(self._columns(run).T, choice.alphas, strict=True):
            warn_at_edge("alpha", run.alphas, scores, int(at), stacklevel=4)

    def _note(self, run: CrossValidation, choice: _Choice) -> str:
        """What is to be said of a flat stretch of the grid, of the first output if it says so."""
        scores = run.group_score.reshape(*run.group_score.shape[:2], -1)
        if not self.alpha_per_output:
            scores = scores.mean(axis=2, keepdims=True)
        at, mean = int(choice.alphas[0]), self._columns(run)[:, 0]
        return flat_note("alpha", run.alphas, mean, standard_error(scores[:, :, 0]), at)

    def _report(
        self, runs: list[CrossValidation], grid: list[dict[str, Any]], choice: _Choice
    ) -> None:
        alphas = runs[choice.kernel].alphas[choice.alphas]
        self.alpha_ = float(alphas[0]) if not self.alpha_per_output else alphas
        self.best_score_ = choice.score
        searched = {n for n in ("gamma", "degree", "coef0") if np.ndim(getattr(self, n))}
        self.best_params_ = {
            "alpha": self.alpha_,
            **{name: grid[choice.kernel][name] for name in searched},
        }
        single = runs[0].mean_score.shape[1] == 1
        self.cv_results_ = {
            "alphas": [run.alphas for run in runs],
            "params": grid,
            "mean_score": np.stack(
                [run.mean_score[:, 0] if single else run.mean_score for run in runs]
            ),
            "group_score": [run.group_score for run in runs],
            "groups": runs[0].groups,
            "n_undefined": runs[choice.kernel].n_undefined,
            "cv": runs[0].way,
            "note": self._note(runs[choice.kernel], choice),
        }
        if self.store_predictions:
            self.cv_results_["predictions"] = [run.predictions for run in runs]
