"""The bars of exact cross-validation: what is measured against what."""

from __future__ import annotations

import numpy as np
import scipy.linalg
from sklearn.metrics.pairwise import rbf_kernel
from threadpoolctl import threadpool_limits

from benchmarks.row import Row, Work, Works
from rankwise import RankRLS, RankRLSCV
from rankwise.model_selection import leave_group_out_predict, leave_pair_out

ALPHAS = np.logspace(-6, 2, 31)


def leave_group_out(size: str) -> Works:
    """31 alphas by leave-group-out against one primal fit."""
    X, y, groups = _queries(*{"tiny": (300, 5), "short": (20_000, 46), "full": (100_000, 46)}[size])
    return (
        lambda: leave_group_out_predict(RankRLS(), X, y, groups, alphas=ALPHAS),
        lambda: RankRLS().fit(X, y, groups),
    )


def against_refitting(size: str) -> Works:
    """31 alphas by leave-group-out against training again without each group.

    The loop is kind: each refit is a path that serves all alphas.
    """
    X, y, groups = _queries(*{"tiny": (300, 5), "short": (5_000, 46), "full": (20_000, 46)}[size])

    def refit() -> None:
        for group in np.unique(groups):
            rest = groups != group
            path = RankRLS().path(X[rest], y[rest], groups[rest], alphas=ALPHAS)
            path.predict(X[~rest])

    return lambda: leave_group_out_predict(RankRLS(), X, y, groups, alphas=ALPHAS), refit


def two_threads(size: str) -> Works:
    """136 features with two BLAS threads against one."""
    X, y, groups = _queries(*{"tiny": (300, 5), "short": (5_000, 136), "full": (20_000, 136)}[size])

    def limited(n_threads: int) -> Work:
        def work() -> None:
            with threadpool_limits(n_threads, user_api="blas"):
                leave_group_out_predict(RankRLS(), X, y, groups, alphas=ALPHAS)

        return work

    return limited(2), limited(1)


def tiny_groups(size: str) -> Works:
    """Groups of 2 against groups of 100."""
    n_rows = {"tiny": 400, "short": 20_000, "full": 100_000}[size]
    X, y, groups = _queries(n_rows, 20)

    def work(labels: np.ndarray) -> Work:
        return lambda: leave_group_out_predict(RankRLS(), X, y, labels, alphas=ALPHAS)

    return work(np.argsort(np.argsort(groups, kind="stable")) // 2), work(groups)


def kernel_search(size: str) -> Works:
    """Kernel RankRLSCV, groups of 30 and 31 alphas, against one eigh."""
    m = {"tiny": 90, "short": 900, "full": 3000}[size]
    rng = np.random.default_rng(0)
    X = rng.standard_normal((m, 10))
    y = np.sin(2 * X[:, 0]) + X[:, 1] * X[:, 2] + 0.3 * rng.standard_normal(m)
    groups = rng.permutation(m) // 30
    K = rbf_kernel(X, gamma=0.1)
    model = RankRLSCV(kernel="rbf", gamma=0.1)
    return lambda: model.fit(X, y, groups), lambda: scipy.linalg.eigh(K)


def leave_every_pair_out(size: str) -> Works:
    """31 alphas by leave-pair-out against one eigh and 31 matrix products of that size."""
    m = {"tiny": 60, "short": 600, "full": 2000}[size]
    rng = np.random.default_rng(0)
    X = rng.standard_normal((m, 10))
    y = rng.standard_normal(m)
    K = rbf_kernel(X, gamma=0.1)

    def limit() -> None:
        scipy.linalg.eigh(K)
        for _ in ALPHAS:
            K @ K

    model = RankRLS(kernel="rbf", gamma=0.1)
    return lambda: leave_pair_out(model, X, y, alphas=ALPHAS), limit


def _queries(n_rows: int, n_features: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    X = rng.standard_normal((n_rows, n_features))
    y = X @ rng.standard_normal(n_features) + rng.standard_normal(n_rows)
    return X, y.round(), rng.permutation(n_rows) // 100


def one_alpha_held_out(size: str) -> Works:
    """Leave-group-out of a kernel model at one alpha against one fit."""
    m = {"tiny": 60, "short": 800, "full": 2000}[size]
    rng = np.random.default_rng(0)
    X = rng.standard_normal((m, 10))
    y = rng.standard_normal(m)
    groups = np.arange(m) // 20
    model = RankRLS(1e-3, kernel="rbf", gamma=0.1)
    return lambda: leave_group_out_predict(model, X, y, groups), lambda: model.fit(X, y, groups)


TITLE = "Exact cross-validation"
ROWS = [
    Row(TITLE, "every query out, 31 alphas, 1e5 × 46", "one fit", 22.0, leave_group_out),
    Row(
        TITLE,
        "every query out, 20,000 × 46",
        "training again for each query",
        1.0,
        against_refitting,
    ),
    Row(TITLE, "every query out, 20,000 × 136, two threads", "one thread", 1.0, two_threads),
    Row(TITLE, "every query out, groups of 2", "groups of 100", 4.0, tiny_groups),
    Row(TITLE, "kernel RankRLSCV, 3,000 items, 31 alphas", "one eigh", 1.45, kernel_search),
    Row(TITLE, "kernel, every group out, one alpha", "one fit", 4.0, one_alpha_held_out),
    Row(
        TITLE,
        "every pair out, 2,000 items, 31 alphas",
        "eigh and 31 products",
        1.1,
        leave_every_pair_out,
    ),
]
