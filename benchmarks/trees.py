"""Beside boosted trees: seconds of training, on made-up queries with a curved utility.

`python -m experiments.quality` has the quality of the same learners on public data.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

from benchmarks.row import Row, Work, Works
from rankwise import AutoRanker, RankRLSCV

N_TREES = {"tiny": 2, "short": 100, "full": 100}
SHAPES = {"tiny": (200, 4), "short": (5_000, 20), "full": (20_000, 50)}
LARGE = {"tiny": (200, 4), "short": (10_000, 50), "full": (100_000, 50)}


def queries(shape: tuple[int, int]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Grades 0 to 4 of items in queries of 20."""
    n_rows, n_features = shape
    rng = np.random.default_rng(0)
    X = rng.standard_normal((n_rows, n_features))
    utility = np.sin(2 * X[:, 0]) + X[:, 1] * X[:, 2] + X[:, 3] + rng.standard_normal(n_rows)
    return X, np.digitize(utility, [-1, 0, 1, 2]).astype(float), np.arange(n_rows) // 20


def lightgbm(n_trees: int, X: np.ndarray, y: np.ndarray, groups: np.ndarray) -> Any:
    from lightgbm import LGBMRanker

    sizes = np.unique(groups, return_counts=True)[1]
    model = LGBMRanker(n_estimators=n_trees, random_state=0, verbosity=-1)
    return model.fit(X, y.astype(int), group=sizes)


def xgboost(n_trees: int, X: np.ndarray, y: np.ndarray, groups: np.ndarray) -> Any:
    from xgboost import XGBRanker

    model = XGBRanker(n_estimators=n_trees, objective="rank:ndcg", random_state=0)
    return model.fit(X, y, qid=groups)


def catboost(n_trees: int, X: np.ndarray, y: np.ndarray, groups: np.ndarray) -> Any:
    from catboost import CatBoostRanker

    options = {"loss_function": "YetiRank", "random_seed": 0, "verbose": False}
    model = CatBoostRanker(iterations=n_trees, allow_writing_files=False, **options)
    return model.fit(X, y, group_id=groups)


def beside(
    ours: Callable[..., Any], peer: Callable[..., Any], more_trees: int = 1
) -> Callable[[str], Works]:
    """A learner of ours with all that it chooses, and some trees of the peer."""

    def prepare(size: str) -> Works:
        data = queries(SHAPES[size])

        def fit() -> None:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # tiny data
                ours().fit(*data)

        return fit, lambda: peer(more_trees * N_TREES[size], *data)

    return prepare


def auto_alone(size: str) -> tuple[Work, None]:
    """AutoRanker on many rows."""
    data = queries(LARGE[size])
    return lambda: AutoRanker().fit(*data), None


TITLE = "Beside boosted trees"
PEERS = (("LightGBM", lightgbm), ("XGBoost", xgboost), ("CatBoost YetiRank", catboost))
ROWS = [
    *(
        Row(
            TITLE,
            "RankRLSCV, 40 alphas, 20,000 × 50",
            f"{name}, 100 trees",
            1.0,
            beside(RankRLSCV, peer),
            peer.__name__,
        )
        for name, peer in PEERS
    ),
    Row(
        TITLE,
        "AutoRanker, 20,000 × 50, all chosen",
        "CatBoost YetiRank, 1,000 trees",
        1.0,
        beside(AutoRanker, catboost, more_trees=10),
        "catboost",
        is_long=True,
    ),
    Row(TITLE, "AutoRanker, 100,000 × 50", "60 s", 1.0, auto_alone, limit=60.0, is_long=True),
]
