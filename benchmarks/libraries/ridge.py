"""scikit-learn's Ridge, KernelRidge and Nystroem: regression on scores, blind to the groups.

With one list Ridge minimizes the very objective of RankRLS, so the objectives must agree.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.kernel_approximation import Nystroem
from sklearn.kernel_ridge import KernelRidge
from sklearn.linear_model import Ridge, ridge_regression
from sklearn.pipeline import make_pipeline

from benchmarks.libraries.interface import Library, Model
from benchmarks.problems import Problem
from rankwise import ScoreGraph

SAG_EPOCHS = 100


def ridge_alpha(problem: Problem) -> float:
    """The penalty that makes ridge regression on one list, with intercept, equal to RankRLS.

    There ``(1/W) Σ over pairs`` is ``(m/W) Σ over items`` of the centered residual.
    """
    graph = ScoreGraph(problem.y, problem.groups)
    mean_group_size = graph.n_items / graph.n_groups
    return problem.alpha * graph.total_weight / mean_group_size


def _ridge(solver: str) -> Callable[[Problem], Callable[[], Model]]:
    def prepare(problem: Problem) -> Callable[[], Model]:
        alpha = ridge_alpha(problem)

        def fit() -> Model:
            model = Ridge(alpha, solver=solver, tol=problem.tol, random_state=0)
            model.fit(problem.X, problem.y)
            return Model(model.predict, lambda: float(np.sum(model.coef_**2)))

        return fit

    return prepare


def _sag(problem: Problem) -> Callable[[], Model]:
    """Stochastic average gradients, called directly.

    `Ridge(solver="sag")` on sparse X, with an intercept and a tol of 1e-4 or less, takes sparse_cg
    instead, without a word (scikit-learn 1.9.1).
    """
    alpha = ridge_alpha(problem)

    def fit() -> Model:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)  # the objective tells
            coef, intercept = ridge_regression(
                problem.X,
                problem.y,
                alpha,
                solver="sag",
                tol=problem.tol,
                max_iter=SAG_EPOCHS,
                random_state=0,
                return_intercept=True,
            )
        return Model(lambda X: X @ coef + intercept, lambda: float(np.sum(coef**2)))

    return fit


def _nystroem(problem: Problem) -> Callable[[], Model]:
    alpha = ridge_alpha(problem)

    def fit() -> Model:
        features = Nystroem(
            kernel=problem.kernel,
            gamma=problem.gamma,
            n_components=problem.n_basis,
            random_state=0,
        )
        model = make_pipeline(features, Ridge(alpha)).fit(problem.X, problem.y)
        return Model(model.predict, lambda: float(np.sum(model[-1].coef_ ** 2)))

    return fit


def _kernel_ridge(problem: Problem) -> Callable[[], Model]:
    alpha = ridge_alpha(problem)
    centered = problem.y - problem.y.mean(axis=0)  # KernelRidge has no intercept

    def fit() -> Model:
        model = KernelRidge(alpha=alpha, kernel=problem.kernel, gamma=problem.gamma)
        model.fit(problem.X, centered)
        return Model(
            model.predict, lambda: float(np.sum(model.dual_coef_ * model.predict(problem.X)))
        )

    return fit


def _is_regression(problem: Problem) -> bool:
    return problem.is_linear and problem.has_scores and not problem.has_margin_loss


def _is_dense_regression(problem: Problem) -> bool:
    return _is_regression(problem) and not problem.is_sparse


def _is_sparse_regression(problem: Problem) -> bool:
    return _is_regression(problem) and problem.is_sparse


def _has_full_kernel(problem: Problem) -> bool:
    return not problem.is_linear and problem.n_basis is None


LIBRARIES = [
    Library("Ridge", _is_dense_regression, _ridge("auto"), "scikit-learn"),
    *(
        Library(f"Ridge {solver}", _is_sparse_regression, _ridge(solver), "scikit-learn")
        for solver in ("sparse_cg", "lsqr")
    ),
    Library(f"Ridge sag, {SAG_EPOCHS} epochs", _is_sparse_regression, _sag, "scikit-learn"),
    Library("KernelRidge", _has_full_kernel, _kernel_ridge, "scikit-learn"),
    Library(
        "Nystroem + Ridge",
        lambda problem: problem.n_basis is not None,
        _nystroem,
        "scikit-learn",
    ),
]
