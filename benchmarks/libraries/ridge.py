"""scikit-learn's Ridge and KernelRidge: regression on the scores, blind to the groups.

With one list Ridge minimises the very objective of RankRLS, so the objectives must agree.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from sklearn.kernel_ridge import KernelRidge
from sklearn.linear_model import Ridge

from benchmarks.libraries.interface import Library, Model
from benchmarks.problems import Problem
from rankwise import ScoreGraph


def ridge_alpha(problem: Problem) -> float:
    """The penalty that makes ridge regression on one list, with intercept, equal to RankRLS.

    There ``(1/W) Σ over pairs`` is ``(m/W) Σ over items`` of the centred residual.
    """
    graph = ScoreGraph(problem.y, problem.groups)
    mean_group_size = graph.n_items / graph.n_groups
    return problem.alpha * graph.total_weight / mean_group_size


def _ridge(problem: Problem) -> Callable[[], Model]:
    alpha = ridge_alpha(problem)

    def fit() -> Model:
        model = Ridge(alpha).fit(problem.X, problem.y)
        return Model(model.predict, lambda: float(np.sum(model.coef_**2)))

    return fit


def _kernel_ridge(problem: Problem) -> Callable[[], Model]:
    alpha = ridge_alpha(problem)
    centred = problem.y - problem.y.mean(axis=0)  # KernelRidge has no intercept

    def fit() -> Model:
        model = KernelRidge(alpha=alpha, kernel=problem.kernel, gamma=problem.gamma)
        model.fit(problem.X, centred)
        return Model(
            model.predict, lambda: float(np.sum(model.dual_coef_ * model.predict(problem.X)))
        )

    return fit


LIBRARIES = [
    Library(
        "Ridge",
        lambda problem: problem.is_linear and problem.has_scores and not problem.has_margin_loss,
        _ridge,
        "scikit-learn",
    ),
    Library("KernelRidge", lambda problem: not problem.is_linear, _kernel_ridge, "scikit-learn"),
]
