"""LightGBM and XGBoost: 100 boosted trees for relevance levels in groups.

They minimize a loss of their own, so they run once, and not for the squared hinge again.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from benchmarks.libraries.interface import Library, Model
from benchmarks.problems import Problem

N_TREES = 100
N_THREADS: int | None = None  # all


def _lightgbm(problem: Problem) -> Callable[[], Model]:
    from lightgbm import LGBMRanker

    sizes = np.unique(problem.groups, return_counts=True)[1]

    def fit() -> Model:
        model = LGBMRanker(n_estimators=N_TREES, n_jobs=N_THREADS, random_state=0, verbosity=-1)
        model.fit(problem.X, problem.y.astype(int), group=sizes)
        return Model(model.predict)

    return fit


def _xgboost(objective: str) -> Callable[[Problem], Callable[[], Model]]:
    def prepare(problem: Problem) -> Callable[[], Model]:
        from xgboost import XGBRanker

        def fit() -> Model:
            model = XGBRanker(
                n_estimators=N_TREES, n_jobs=N_THREADS, random_state=0, objective=objective
            )
            model.fit(problem.X, problem.y, qid=problem.groups)
            return Model(model.predict)

        return fit

    return prepare


def _is_for_trees(problem: Problem) -> bool:
    return problem.has_levels and problem.loss != "squared_hinge"


LIBRARIES = [
    Library("LightGBM", _is_for_trees, _lightgbm, "lightgbm"),
    Library("XGBoost", _is_for_trees, _xgboost("rank:ndcg"), "xgboost"),
    Library(
        "XGBoost pairwise",
        lambda problem: _is_for_trees(problem) and problem.has_margin_loss,
        _xgboost("rank:pairwise"),
        "xgboost",
    ),
]
