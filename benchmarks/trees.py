"""Beside boosted trees: seconds of training, on made-up queries with a curved utility.

`python -m experiments.quality` has the quality of the same learners on public data.
"""

from __future__ import annotations

import gzip
import math
import os
import time
import warnings
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np

from benchmarks.row import DataMissing, Row, Work, Works
from experiments.shared.command_line import find_data
from rankwise import AutoRanker, RankRLSCV
from rankwise.datasets import read_letor

Data = tuple[np.ndarray, np.ndarray, np.ndarray]

N_TREES = {"tiny": 2, "short": 100, "full": 100}
SHAPES = {"tiny": (200, 4), "short": (5_000, 20), "full": (20_000, 50)}
LARGE = {"tiny": (200, 4), "short": (10_000, 50), "full": (100_000, 50)}


def queries(shape: tuple[int, int]) -> Data:
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


def beside(ours: Callable[..., Any], peer: Callable[..., Any]) -> Callable[[str], Works]:
    """A learner of ours with all that it chooses, and some trees of the peer."""

    def prepare(size: str) -> Works:
        data = queries(SHAPES[size])

        def fit() -> None:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # tiny data
                ours().fit(*data)

        return fit, lambda: peer(N_TREES[size], *data)

    return prepare


def lightgbm_example() -> Data:
    """The training data of LightGBM's example of ranking."""
    folder = os.environ.get("RANKWISE_DATA")
    if folder is None:
        raise DataMissing("set RANKWISE_DATA to the folder of the data sets")
    rows_path, sizes_path = find_data(
        folder, "lightgbm_rank/rank.train.gz", "lightgbm_rank/rank.train.query.gz"
    )
    rows = read_letor(rows_path, n_features=300, sparse=False)
    with gzip.open(sizes_path, "rt") as file:
        group_sizes = [int(line) for line in file]
    return rows.X, rows.y, np.repeat(np.arange(len(group_sizes)), group_sizes)


@cache
def data_of(name: str, size: str) -> Data:
    """A data set by its name in the table."""
    if name == EXAMPLE:
        X, y, groups = lightgbm_example()
        if size == "full":
            return X, y, groups
        return X[:400], y[:400], groups[:400]
    return queries(SHAPES[size])


@cache
def auto_seconds(name: str, size: str) -> float:
    """Seconds of AutoRanker, which runs once for all peers."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # tiny data
        start = time.perf_counter()
        AutoRanker().fit(*data_of(name, size))
        return time.perf_counter() - start


def auto_beside(name: str, peer: Callable[..., Any]) -> Callable[[str], Works]:
    """AutoRanker with all that it chooses, and a thousand trees of the peer."""

    def prepare(size: str) -> Works:
        data = data_of(name, size)

        def peer_seconds() -> float:
            start = time.perf_counter()
            peer(10 * N_TREES[size], *data)
            return time.perf_counter() - start

        return lambda: auto_seconds(name, size), peer_seconds

    return prepare


def auto_alone(size: str) -> tuple[Work, None]:
    """AutoRanker on many rows."""
    data = queries(LARGE[size])
    return lambda: AutoRanker().fit(*data), None


TITLE = "Beside boosted trees"
EXAMPLE = "LightGBM's example"
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
    *(
        Row(
            TITLE,
            f"AutoRanker, {data}, all chosen",
            f"{name}, 1,000 trees",
            1.0 if peer is catboost else math.inf,
            auto_beside(data, peer),
            peer.__name__,
            is_long=True,
            unit="s in all",
        )
        for data in ("20,000 × 50", EXAMPLE)
        for name, peer in PEERS
    ),
    Row(TITLE, "AutoRanker, 100,000 × 50", "60 s", 1.0, auto_alone, limit=60.0, is_long=True),
]
