"""Boards with intervals, beside other libraries that rate items from comparisons.

Ours has intervals by the jackknife in the same call. The others have none, or resample: theirs is
the time of a fit times 100 resamples, as arenas publish them, measured on one fit.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any

import numpy as np
import pandas as pd
from scipy.sparse import csr_matrix
from sklearn.linear_model import LogisticRegression

from benchmarks.row import Row, Work, Works
from rankwise import PairGraph
from rankwise.leaderboard import rate, rate_scores

N_RESAMPLES = 100
SHAPES = {"tiny": (5, 300), "short": (60, 100_000), "full": (60, 1_000_000)}


def games_of(size: str) -> tuple[int, np.ndarray, np.ndarray]:
    """Winner and loser of each comparison; the strengths differ by a spread of one."""
    n_items, n_games = SHAPES[size]
    rng = np.random.default_rng(0)
    skill = rng.standard_normal(n_items)
    i = rng.integers(0, n_items, n_games)
    j = (i + rng.integers(1, n_items, n_games)) % n_items
    won = rng.random(n_games) < 1 / (1 + np.exp(skill[j] - skill[i]))
    return n_items, np.where(won, i, j), np.where(won, j, i)


def by_choix(n_items: int, winner: np.ndarray, loser: np.ndarray) -> Any:
    """Spectral iterations to the maximum of the likelihood, on counts of wins."""
    import choix

    wins = np.bincount(winner * n_items + loser, minlength=n_items**2).astype(float)
    return choix.ilsr_pairwise_dense(wins.reshape(n_items, n_items), alpha=0.01, max_iter=10_000)


def by_evalica(n_items: int, winner: np.ndarray, loser: np.ndarray) -> Any:
    """Minorization and maximization."""
    import evalica

    first_wins = [evalica.Winner.X] * len(winner)
    return evalica.bradley_terry(winner.tolist(), loser.tolist(), first_wins, limit=1000)


def by_scikit_learn(n_items: int, winner: np.ndarray, loser: np.ndarray) -> Any:
    """Logistic regression with a column for each item: what FastChat does for a resample."""
    rows = np.repeat(np.arange(len(winner)), 2)
    ends = np.stack([winner, loser], axis=1).ravel()
    sign = np.where(np.arange(len(winner)) % 2, 1.0, -1.0)  # every other one turned round
    values = np.stack([sign, -sign], axis=1).ravel()
    D = csr_matrix((values, (rows, ends)), shape=(len(winner), n_items))
    return LogisticRegression(C=1e6, fit_intercept=False, max_iter=1000).fit(D, sign > 0)


def by_arena_rank(n_items: int, winner: np.ndarray, loser: np.ndarray) -> Any:
    """Its own fit and intervals."""
    import pandas as pd
    from arena_rank.models.bradley_terry import BradleyTerry
    from arena_rank.utils.data_utils import PairDataset

    frame = pd.DataFrame({"model_a": winner, "model_b": loser, "winner": "model_a"})
    data = PairDataset.from_pandas(frame)
    return BradleyTerry(n_competitors=n_items).compute_ratings_and_cis(data)


def beside(peer: Callable[..., Any]) -> Callable[[str], Works]:
    """A board with intervals, and one fit of the peer."""

    def prepare(size: str) -> Works:
        n_items, winner, loser = games_of(size)
        graph = PairGraph(winner, loser, n_items=n_items)
        ours: Work = lambda: rate(graph, model="bradley-terry")  # noqa: E731
        return ours, lambda: peer(n_items, winner, loser)

    return prepare


def text_columns(library: str) -> Callable[[str], tuple[Work, None]]:
    """A board with intervals from a frame with the names of both sides and of the winner."""

    def prepare(size: str) -> tuple[Work, None]:
        n_items, winner, loser = games_of(size)
        names = np.array([f"model-{k}" for k in range(n_items)])
        is_first = np.arange(len(winner)) % 2 == 0
        columns = {
            "model_a": names[np.where(is_first, winner, loser)],
            "model_b": names[np.where(is_first, loser, winner)],
            "winner": np.where(is_first, "model_a", "model_b"),
        }
        frame = import_module(library).DataFrame(columns)
        return lambda: rate(frame, sides=["model_a", "model_b"], outcome="winner"), None

    return prepare


def many_items(size: str) -> tuple[Work, None]:
    """A sparse board, without intervals."""
    n_items, n_games = {"tiny": (20, 200), "short": (10_000, 1e5), "full": (100_000, 1e6)}[size]
    rng = np.random.default_rng(0)
    i = rng.integers(0, n_items, int(n_games))
    j = (i + rng.integers(1, n_items, len(i))) % n_items
    graph = PairGraph(i, j, n_items=n_items)
    return lambda: rate(graph, model="least-squares", intervals=False), None


def scores_over_tasks(n_models: int, n_tasks: int, missing: float) -> Callable[[str], Works]:
    """A board of scores with ranks at once, and a bootstrap of 10,000 over tasks."""

    def prepare(size: str) -> Works:
        rng = np.random.default_rng(0)
        scores = rng.standard_normal((n_models, n_tasks)) + rng.standard_normal((n_models, 1))
        if size == "tiny":
            scores = scores[:6, :20]
        is_missing = rng.random(scores.shape) < missing
        is_missing[: len(scores) // 3] = False
        scores[is_missing] = np.nan
        names = [f"t{k}" for k in range(scores.shape[1])]
        table = pd.DataFrame(scores, np.arange(len(scores)).astype(str), names)

        def ours() -> Any:
            return rate_scores(table).columns

        def bootstrap() -> list[Any]:
            draws = {"tiny": 10, "short": 100, "full": 1000}[size]
            columns = rng.integers(scores.shape[1], size=(draws, scores.shape[1]))
            return [np.nanmean(scores[:, drawn], axis=1) for drawn in columns]

        return ours, bootstrap

    return prepare


def limited(prepare: Callable[[str], Works]) -> Callable[[str], tuple[Work, None]]:
    """Only the first work, for a limit in seconds."""
    return lambda size: (prepare(size)[0], None)


TITLE = "Boards"
SCORE_TABLES = {
    "scores, 103 models × 41 tasks": ((103, 41, 0.0), 0.05),
    "scores, 324 models × 41 tasks, half of two thirds missing": ((324, 41, 0.5), 1.5),
    "scores, 20 models × 5,000 tasks": ((20, 5000, 0.0), 0.3),
}
WORK = "Bradley–Terry, 60 items, 1e6 comparisons, 95% intervals"
ROWS = [
    Row(TITLE, WORK, "arena-rank with its intervals", 1 / 30, beside(by_arena_rank), "arena_rank"),
    *(
        Row(TITLE, WORK, f"{name}, 100 resamples", 1 / 30, beside(peer), package, scale=N_RESAMPLES)
        for name, peer, package in (
            ("choix", by_choix, "choix"),
            ("evalica", by_evalica, "evalica"),
            ("logistic regression", by_scikit_learn, "sklearn"),
        )
    ),
    *(
        Row(
            TITLE,
            f"{WORK}, text columns of {name}",
            "0.15 s",
            1.0,
            text_columns(name.lower()),
            name.lower(),
            limit=0.15,
        )
        for name in ("pandas", "Polars")
    ),
    Row(
        TITLE,
        "least squares, 100,000 items, 1e6 comparisons",
        "2 s",
        1.0,
        many_items,
        limit=2.0,
    ),
    *(
        Row(TITLE, work, f"{limit} s", 1.0, limited(scores_over_tasks(*shape)), limit=limit)
        for work, (shape, limit) in SCORE_TABLES.items()
    ),
    Row(
        TITLE,
        "scores, 103 models × 41 tasks",
        "bootstrap of 10,000 over tasks",
        1 / 50,
        scores_over_tasks(103, 41, 0.0),
        scale=10.0,
    ),
]
