"""Default threads against one thread, beside four programs that spin."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

from benchmarks.row import Row, Works
from rankwise import AutoRanker, PairGraph, RankRLS, RankRLSCV, RankSVM
from rankwise.leaderboard import rate

SHAPES = {"tiny": (60, 3, 10), "short": (2_000, 46, 20), "full": (5_000, 136, 50)}


def works(size: str) -> dict[str, Callable[[], Any]]:
    """What is measured, by name."""
    n_rows, n_columns, n_groups = SHAPES[size]
    rng = np.random.default_rng(0)
    X = rng.standard_normal((n_rows, n_columns))
    y = np.round(X[:, 0] + X[:, 1] * X[:, 2] + rng.standard_normal(n_rows))
    groups = np.arange(n_rows) * n_groups // n_rows
    few = slice(0, n_rows * 2 // 5)
    basis = {"kernel": "rbf", "n_basis": n_rows // 10, "random_state": 0}
    i, j = rng.integers(0, n_groups, (2, 20 * n_rows))
    battles = PairGraph(i[i != j], j[i != j], n_items=n_groups)
    return {
        "RankRLS": lambda: RankRLS().fit(X, y, groups),
        "RankRLSCV": lambda: RankRLSCV().fit(X, y, groups),
        "RankSVM": lambda: RankSVM().fit(X, y, groups),
        "basis search": lambda: RankRLSCV(**basis).fit(X, y, groups),
        "kernel search": lambda: RankRLSCV(kernel="rbf").fit(X[few], y[few], groups[few]),
        "AutoRanker": lambda: AutoRanker().fit(X[few, :46], y[few], groups[few]),
        "rate": lambda: rate(battles),
    }


def with_and_without_threads(name: str) -> Callable[[str], Works]:
    """The same work with the default threads and with one."""

    def prepare(size: str) -> Works:
        work = works(size)[name]

        def in_one_thread() -> None:
            with threadpool_limits(1):
                work()

        return work, in_one_thread

    return prepare


BARS = {
    "RankRLS": 1.3,
    "RankRLSCV": 1.3,
    "RankSVM": 1.3,
    "basis search": 1.3,
    "kernel search": 1.3,
    "AutoRanker": 1.2,
    "rate": 1.3,
}
ROWS = [
    Row(
        "Beside four programs that spin",
        f"{name}, default threads",
        "one thread",
        bar,
        with_and_without_threads(name),
        spinners=4,
    )
    for name, bar in BARS.items()
]
