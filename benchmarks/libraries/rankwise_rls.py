"""RankRLS: one alpha, and a path of 31."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from benchmarks.libraries.interface import Library, Model
from benchmarks.problems import Problem
from rankwise import RankRLS

N_ALPHAS = 31


def estimator(problem: Problem, **options: Any) -> RankRLS:
    if problem.basis is not None:
        options["basis"] = problem.basis
    model = RankRLS(problem.alpha, kernel=problem.kernel, gamma=problem.gamma, tol=problem.tol)
    return model.set_params(**options)


def path_alphas(problem: Problem) -> np.ndarray:
    """31 alphas around that of the problem, which is the middle one."""
    return problem.alpha * np.logspace(-3, 3, N_ALPHAS)


def squared_norm(model: RankRLS, problem: Problem) -> float:
    """wᵀ w, or aᵀ K a = aᵀ f, over the training or basis items, for a kernel model."""
    if problem.is_linear:
        return float(np.sum(model.coef_**2))
    return float(np.sum(model.dual_coef_ * model.predict(model.X_fit_)))


def _fit(cost: str) -> Callable[[Problem], Callable[[], Model]]:
    def prepare(problem: Problem) -> Callable[[], Model]:
        def fit() -> Model:
            model = estimator(problem, cost=cost).fit(problem.X, problem.y, problem.groups)
            norm = partial(squared_norm, model, problem) if cost == "magnitude" else None
            return Model(model.predict, norm)

        return fit

    return prepare


def _fit_path(problem: Problem) -> Callable[[], Model]:
    def fit() -> Model:
        path = estimator(problem).path(
            problem.X, problem.y, problem.groups, alphas=path_alphas(problem)
        )
        middle = path.model(N_ALPHAS // 2)
        return Model(middle.predict, partial(squared_norm, middle, problem))

    return fit


def _has_squared_loss(problem: Problem) -> bool:
    return not problem.has_margin_loss


LIBRARIES = [
    Library("rankwise RankRLS", _has_squared_loss, _fit("magnitude"), "rankwise"),
    Library(
        "rankwise RankRLS sign",
        lambda problem: _has_squared_loss(problem) and problem.has_levels,
        _fit("sign"),
        "rankwise",
    ),
    Library("rankwise RankRLS 31 alphas", _has_squared_loss, _fit_path, "rankwise"),
]
