"""Boards with intervals, beside other libraries that rate items from comparisons.

Ours has intervals by the jackknife in the same call. The others have none, or resample: theirs is
the time of a fit times 100 resamples, as arenas publish them, measured on one fit.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from scipy.sparse import csr_matrix
from sklearn.linear_model import LogisticRegression

from benchmarks.row import Row, Work, Works
from rankwise import PairGraph
from rankwise.leaderboard import rate

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

    said = [evalica.Winner.X] * len(winner)
    return evalica.bradley_terry(winner.tolist(), loser.tolist(), said, limit=1000)


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


def many_items(size: str) -> tuple[Work, None]:
    """A sparse board, without intervals."""
    n_items, n_games = {"tiny": (20, 200), "short": (10_000, 1e5), "full": (100_000, 1e6)}[size]
    rng = np.random.default_rng(0)
    i = rng.integers(0, n_items, int(n_games))
    j = (i + rng.integers(1, n_items, len(i))) % n_items
    graph = PairGraph(i, j, n_items=n_items)
    return lambda: rate(graph, model="least-squares", intervals=False), None


TITLE = "Boards"
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
    Row(
        TITLE,
        "least squares, 100,000 items, 1e6 comparisons",
        "2 s",
        1.0,
        many_items,
        limit=2.0,
    ),
]
