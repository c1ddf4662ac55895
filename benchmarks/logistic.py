"""The bars of RankLogistic: against LogisticRegression on the differences of explicit pairs.

Both minimize the same objective with the same alpha, and both fits are whole: the explicit pairs
are part of the peer's work. RankLogistic goes to its certified gap of 1e-6, the peer to its own
default tolerance.
"""

from __future__ import annotations

import numpy as np
from sklearn.linear_model import LogisticRegression

from benchmarks.row import Row, Works
from rankwise import RankLogistic

ALPHA = 1e-3
N_FEATURES = 46


def in_groups(size: str) -> Works:
    """Queries of 100 documents with five levels."""
    n_groups = {"tiny": 3, "short": 20, "full": 200}[size]
    return _fits(np.repeat(np.arange(n_groups), 100), n_levels=5)


def one_list(size: str) -> Works:
    """One list in which all scores differ."""
    return _fits(np.zeros({"tiny": 60, "short": 500, "full": 1500}[size], int), n_levels=None)


def _fits(groups: np.ndarray, n_levels: int | None) -> Works:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(len(groups), N_FEATURES))
    y = X @ rng.normal(size=N_FEATURES) / 7 + rng.logistic(size=len(groups))
    if n_levels is not None:
        y = np.digitize(y, np.quantile(y, np.linspace(0, 1, n_levels + 1)[1:-1]))

    def explicit() -> None:
        rows = [np.flatnonzero(groups == group) for group in range(groups[-1] + 1)]
        ends = [items[np.array(np.nonzero(y[items][:, None] > y[items]))] for items in rows]
        winner, loser = np.hstack(ends)
        D = X[winner] - X[loser]
        label = np.arange(len(D)) % 2  # every other pair is turned round: two classes
        D[label == 0] *= -1
        C = 1 / (2 * ALPHA * len(D))
        LogisticRegression(C=C, fit_intercept=False, max_iter=1000).fit(D, label)

    return lambda: RankLogistic(ALPHA).fit(X, y, groups), explicit


TITLE = "RankSVM and RankLogistic"
PEER = "scikit-learn LogisticRegression on explicit pairs"
ROWS = [
    Row(TITLE, "RankLogistic, 200 queries of 100", PEER, 0.5, in_groups),
    Row(TITLE, "RankLogistic, one list of 1,500", PEER, 0.5, one_list),
]
