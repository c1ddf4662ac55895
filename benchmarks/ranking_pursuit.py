"""The bars of ranking pursuit: scikit-learn's orthogonal matching pursuit on whitened data.

With ``F Fᵀ = L`` the ranking loss of f is ``‖Fᵀ y − Fᵀ f‖²``, so a regression pursuit on the
columns ``Fᵀ k``, scaled to norm one, chooses as RankingPursuit does with ``backfit="every"``.
Whitening and scaling belong to the work of the peer; kernel values are given to both.

With M views the cost of [Pursuit13] figure 2 grows with nᴹ (M³ + M² l): with three views of 64
functions it should not exceed 64 · 27 / 8 = 216 times that of two.
"""

from __future__ import annotations

import numpy as np
from sklearn.linear_model import orthogonal_mp
from sklearn.metrics.pairwise import rbf_kernel

from benchmarks.row import Row, Works
from rankwise import RankingPursuit, ScoreGraph, View


def items(size: str) -> Works:
    """Basis items of a kernel model; the dictionary is all items."""
    m, n_steps = {"tiny": (40, 5), "short": (1_000, 50), "full": (4_000, 100)}[size]
    X, y, groups = _queries(m, 10)
    K = rbf_kernel(X, gamma=0.1)
    model = RankingPursuit(n_steps, kernel="precomputed", backfit="every")
    return lambda: model.fit(K, y, groups), lambda: peer(K, y, groups, n_steps)


def features(size: str) -> Works:
    """Greedy feature selection."""
    m, p, n_steps = {"tiny": (60, 12, 4), "short": (5_000, 300, 30), "full": (20_000, 1_000, 100)}[
        size
    ]
    X, y, groups = _queries(m, p)
    model = RankingPursuit(n_steps, kernel="linear", dictionary="features", backfit="every")
    return lambda: model.fit(X, y, groups), lambda: peer(X, y, groups, n_steps)


def labelings(size: str) -> Works:
    """Every labeling of three views and of two: nᴹ systems of M equations in each step."""
    n_items = {"tiny": 5, "short": 32, "full": 64}[size]
    X, y, groups = _queries(20 * n_items, 6)
    views = [
        View([k, k + 3], kernel="rbf", gamma=0.3, basis=np.arange(n_items) + k * n_items)
        for k in range(3)
    ]
    y[np.arange(len(y)) % 2 == 1] = np.nan
    three = RankingPursuit(5, views=views, nu=1.0, search="all")
    two = RankingPursuit(5, views=views[:2], nu=1.0, search="all")
    return lambda: three.fit(X, y, groups), lambda: two.fit(X, y, groups)


def peer(K: np.ndarray, y: np.ndarray, groups: np.ndarray, n_steps: int) -> np.ndarray:
    """Coefficients of the columns of K by orthogonal matching pursuit on whitened data."""
    graph = ScoreGraph(y, groups)
    white = graph.root().adjoint(K)
    norms = np.linalg.norm(white, axis=0)
    white /= norms
    return orthogonal_mp(white, graph.root().adjoint(y), n_nonzero_coefs=n_steps) / norms


def _queries(n_rows: int, n_features: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    X = rng.standard_normal((n_rows, n_features))
    y = np.sin(2 * X[:, 0]) + X[:, 1] * X[:, 2] + X[:, 3] + rng.standard_normal(n_rows)
    return X, y, np.arange(n_rows) // 20


TITLE = "RankingPursuit"
PEER = "scikit-learn orthogonal_mp on whitened data"
ROWS = [
    Row(TITLE, "100 of 4,000 items", PEER, 1.25, items),
    Row(TITLE, "100 of 1,000 features", PEER, 1.25, features),
    Row(TITLE, "every labeling of 3 views of 64 items", "216 × 2 views", 1.0, labelings, scale=216),
]
