"""The steps of a pursuit as functions of new items, and when to stop stepping."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np

from rankwise.arrays import Array, Indices
from rankwise.features import FeatureMap
from rankwise.graphs import ScoreGraph
from rankwise.model_selection.measures import (
    Measure,
    mean_defined,
    score_groups,
    undefined_everywhere,
)
from rankwise.rows import row_products
from rankwise.solvers.pursuit import Step


class PursuitFunction(NamedTuple):
    """The function of one view after each step.

    Attributes
    ----------
    basis : FeatureMap
        The chosen functions.
    choices : ndarray of int, shape (n_steps,)
        The number of the function that each step chose.
    coef_path : ndarray of shape (n_steps, n_functions)
        Their coefficients after each step.
    intercept_path : ndarray of shape (n_steps,)
        The level after each step.
    level : float
        The level without any function.
    """

    basis: FeatureMap
    choices: Indices
    coef_path: Array
    intercept_path: Array
    level: float

    @property
    def coef(self) -> Array:
        """Coefficients after the last step."""
        return self.coef_path[-1] if len(self.coef_path) else np.empty(0)

    @property
    def intercept(self) -> float:
        """Level after the last step."""
        return float(self.intercept_path[-1]) if len(self.coef_path) else self.level

    def staged_scores(self, X: Any) -> Array:
        """Scores after each step, shape (n_items, n_steps)."""
        if not len(self.coef_path):
            return np.zeros((X.shape[0], 0))
        return np.asarray(self.basis.scores(X, self.coef_path.T) + self.intercept_path)

    def scores(self, X: Any) -> Array:
        """Scores after the last step; the level if there was none."""
        if not len(self.coef):
            return np.full(X.shape[0], self.intercept)
        return np.asarray(self.basis.scores(X, self.coef) + self.intercept)


def make_functions(
    dictionaries: list[FeatureMap], steps: list[Step], level: float | None
) -> list[PursuitFunction]:
    """Gather the coefficients of all steps; `level` is the mean score if there is an intercept."""
    functions = []
    for view, dictionary in enumerate(dictionaries):
        chosen = steps[-1].basis[view] if steps else []
        path = np.zeros((len(steps), len(chosen)))
        for p, step in enumerate(steps):
            path[p, : len(step.coef[view])] = step.coef[view]
        intercepts = np.array([0.0 if level is None else level - s.means[view] for s in steps])
        basis = dictionary.take(np.array(chosen, dtype=np.intp))
        choices = dictionary.indices[np.array([s.chosen[view] for s in steps], dtype=np.intp)]
        functions.append(PursuitFunction(basis, choices, path, intercepts, level or 0.0))
    return functions


class Validation:
    """Judges the steps of a pursuit by held-out rows.

    Parameters
    ----------
    measure : Metric or HeldOutLoss
        The measure.
    graph : ScoreGraph
        Scores and groups of the held-out rows.
    X : array or sparse matrix
        These rows.
    dictionaries : list of FeatureMap
        What the pursuit chooses from.
    """

    def __init__(
        self,
        measure: Measure,
        graph: ScoreGraph,
        X: Any,
        dictionaries: list[FeatureMap],
    ) -> None:
        self.measure = measure
        self._graph = graph
        self._X = X
        self._dictionaries = dictionaries
        self._values: list[list[Array]] = [[] for _ in dictionaries]

    def score(self, step: Step, level: float | None) -> float:
        """The measure of the mean of the views after a step."""
        total = np.zeros(self._graph.n_items)
        for view, values in enumerate(self._values):
            for j in step.basis[view][len(values) :]:
                one = self._dictionaries[view].take(np.array([j]))
                values.append(one.scores(self._X, np.ones(1)))
            total += row_products(np.array(values).T, step.coef[view])
            total += 0.0 if level is None else level - step.means[view]
        scores = total[:, None, None] / len(self._values)
        every = [np.arange(len(total))]
        mean = mean_defined(score_groups(self._graph, scores, every, self.measure)[0])
        if np.isnan(mean).any():
            raise undefined_everywhere(self.measure)
        return float(mean[0, 0])

    def is_better(self, new: float, old: float, tol: float) -> bool:
        """Whether a score is better than another by more than `tol`."""
        return new > old + tol if self.measure.greater_is_better else new < old - tol


def stop_early(
    steps: Iterable[Step], validation: Validation, level: float | None, patience: int, tol: float
) -> tuple[list[Step], Array]:
    """Step until `patience` steps in a row were no better than the best one by more than `tol`.

    Returns
    -------
    steps : list of Step
        Up to the best one.
    scores : ndarray
        The measure after each step that was made.
    """
    made: list[Step] = []
    scores: list[float] = []
    best = 0
    for step in steps:
        made.append(step)
        scores.append(validation.score(step, level))
        if len(made) == 1 or validation.is_better(scores[-1], scores[best], tol):
            best = len(made) - 1
        if len(made) - 1 - best >= patience:
            break
    return made[: best + 1], np.array(scores)
