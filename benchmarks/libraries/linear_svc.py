"""scikit-learn's LinearSVC on the differences of all pairs: the textbook way to a RankSVM.

Forming the differences is part of the time. ``1/2 ‖w‖² + C Σ_k loss`` is the objective of RankSVM
divided by 2 alpha if ``C = 1/(2 alpha W)``, so the objectives must agree.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from sklearn.svm import LinearSVC

from benchmarks.libraries.interface import Library, Model
from benchmarks.problems import Problem
from rankwise import ScoreGraph

MOST_PAIRS = 5_000_000


def cost_of_pair(problem: Problem) -> float:
    """C of an SVM that adds up its loss over the pairs of different score."""
    graph = ScoreGraph(problem.y, problem.groups, cost="sign")
    return float(1 / (2 * problem.alpha * graph.total_weight))


def _linear_svc(problem: Problem) -> Callable[[], Model]:
    cost = cost_of_pair(problem)
    n_pairs = ScoreGraph(problem.y, problem.groups, cost="sign").n_pairs
    if n_pairs > MOST_PAIRS:
        raise ValueError(f"{n_pairs} pairs are too many for LinearSVC.")

    def fit() -> Model:
        winner, loser = form_pairs(problem.y, problem.groups)
        sign = np.where(np.arange(len(winner)) % 2, 1.0, -1.0)  # it wants two classes
        differences = problem.X[winner] - problem.X[loser]
        differences *= sign[:, None]
        model = LinearSVC(
            C=cost,
            loss=problem.loss,
            dual=problem.loss == "hinge",
            fit_intercept=False,
            random_state=0,
        )
        w = model.fit(differences, sign).coef_[0]
        return linear_model(w)

    return fit


def form_pairs(y: np.ndarray, groups: np.ndarray | None) -> tuple[np.ndarray, np.ndarray]:
    """Winner and loser of all pairs of different score in a group; groups are sorted."""
    labels = np.zeros(len(y), np.intp) if groups is None else groups
    winners, losers = [], []
    for shift in range(1, int(np.unique(labels, return_counts=True)[1].max())):
        first, second = y[:-shift], y[shift:]
        i = np.flatnonzero((labels[:-shift] == labels[shift:]) & (first != second))
        wins = first[i] > second[i]
        winners.append(np.where(wins, i, i + shift))
        losers.append(np.where(wins, i + shift, i))
    return np.concatenate(winners), np.concatenate(losers)


def linear_model(w: np.ndarray, **options: Any) -> Model:
    return Model(lambda X: X @ w, lambda: float(w @ w), **options)


LIBRARIES = [
    Library(
        "LinearSVC on pairs",
        lambda problem: problem.has_margin_loss and problem.few_pairs,
        _linear_svc,
        "scikit-learn",
    ),
]
