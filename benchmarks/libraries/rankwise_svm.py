"""RankSVM with each of its solvers; the cutting planes of the paper end after 100 iterations."""

from __future__ import annotations

import warnings
from collections.abc import Callable

from sklearn.exceptions import ConvergenceWarning

from benchmarks.libraries.interface import Library, Model
from benchmarks.problems import Problem
from rankwise import RankSVM

BMRM_STEPS = 100


def _fit(solver: str, max_iter: int = 1000) -> Callable[[Problem], Callable[[], Model]]:
    def prepare(problem: Problem) -> Callable[[], Model]:
        def fit() -> Model:
            model = RankSVM(problem.alpha, loss=problem.loss, solver=solver, max_iter=max_iter)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", ConvergenceWarning)  # the objective shows it
                model.fit(problem.X, problem.y, problem.groups)
            return Model(model.predict, lambda: float(model.coef_ @ model.coef_))

        return fit

    return prepare


LIBRARIES = [
    Library(
        "rankwise RankSVM lbfgs", lambda problem: problem.has_margin_loss, _fit("lbfgs"), "rankwise"
    ),
    Library(
        "rankwise RankSVM newton-cg",
        lambda problem: problem.loss == "squared_hinge",
        _fit("newton-cg"),
        "rankwise",
    ),
    Library(
        f"rankwise RankSVM bmrm, {BMRM_STEPS} steps",
        lambda problem: problem.has_margin_loss,
        _fit("bmrm", BMRM_STEPS),
        "rankwise",
    ),
]
