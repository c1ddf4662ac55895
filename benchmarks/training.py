"""Training, prediction, metrics and import, against what they cannot do without."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable

import numpy as np
import scipy.linalg
import scipy.sparse as sp
from sklearn.kernel_ridge import KernelRidge
from sklearn.linear_model import Ridge
from sklearn.metrics.pairwise import rbf_kernel

from benchmarks.row import Row, Work, Works
from rankwise import CoRankRLS, RankRLS, RankRLSCV, RankSVM
from rankwise.kernels.stable_products import row_products
from rankwise.metrics import average_precision, disagreement_error, ndcg

GAMMA = 0.1
UNSCORED = {"tiny": (200, 400), "short": (10_000, 80_000), "full": (25_000, 400_000)}


def one_alpha(size: str) -> Works:
    X, y = _curved_list(size)
    alpha = 1e-4
    ridge = KernelRidge(alpha=alpha * (len(y) - 1) / 2, kernel="rbf", gamma=GAMMA)
    rls = RankRLS(alpha, kernel="rbf", gamma=GAMMA)
    return lambda: rls.fit(X, y), lambda: ridge.fit(X, y)


def all_alphas(size: str) -> Works:
    X, y = _curved_list(size)
    K = rbf_kernel(X, gamma=GAMMA)
    rls = RankRLS(kernel="rbf", gamma=GAMMA)
    alphas = np.logspace(-7, -1, 31)
    return lambda: rls.path(X, y, alphas=alphas), lambda: scipy.linalg.eigh(K)


def predict(size: str) -> Works:
    """Without the check of X for NaN, which is no part of the product."""
    n_rows = {"tiny": 300, "short": 100_000, "full": 1_000_000}[size]
    X = np.random.default_rng(0).standard_normal((n_rows, 136))
    w = X[0].copy()
    return lambda: row_products(X, w), lambda: X @ w


def one_alpha_with_groups(size: str) -> Works:
    n_items = {"tiny": 60, "short": 1000, "full": 3000}[size]
    rng = np.random.default_rng(0)
    X = rng.standard_normal((n_items, 10))
    y = rng.standard_normal(n_items)
    group_size = {"tiny": 3, "short": 30, "full": 30}[size]
    groups = np.arange(n_items) // group_size
    ridge = KernelRidge(alpha=0.1, kernel="rbf", gamma=GAMMA)
    rls = RankRLS(kernel="rbf", gamma=GAMMA)
    return lambda: rls.fit(X, y, groups), lambda: ridge.fit(X, y)


def many_outputs(size: str) -> Works:
    n_rows = {"tiny": 300, "short": 20_000, "full": 200_000}[size]
    rng = np.random.default_rng(0)
    X = rng.standard_normal((n_rows, 46))
    Y = rng.standard_normal((n_rows, 100))
    groups = np.arange(n_rows) // 100
    return lambda: RankRLS().fit(X, Y, groups), lambda: Ridge().fit(X, Y)


def weighted(size: str) -> Works:
    """A primal fit of items with weights beside one of the same items without."""
    n_rows = {"tiny": 300, "short": 100_000, "full": 1_000_000}[size]
    rng = np.random.default_rng(0)
    X = rng.standard_normal((n_rows, 136))
    y = rng.integers(0, 5, n_rows).astype(float)
    groups = np.arange(n_rows) // 100
    weights = rng.exponential(size=n_rows)
    return lambda: RankRLS().fit(X, y, groups, weights), lambda: RankRLS().fit(X, y, groups)


def weighted_pairs(size: str) -> Works:
    """RankSVM of items with weights beside one of the same items without."""
    n_rows = {"tiny": 300, "short": 20_000, "full": 200_000}[size]
    rng = np.random.default_rng(0)
    X = rng.standard_normal((n_rows, 20))
    y = X[:, 0] + rng.standard_normal(n_rows)
    weights = rng.exponential(size=n_rows)
    return lambda: RankSVM().fit(X, y, None, weights), lambda: RankSVM().fit(X, y)


def primal(order: str, offset: float = 0.0, dtype: str = "float64") -> Callable[[str], Works]:
    def prepare(size: str) -> Works:
        n_rows, n_features = {
            "tiny": (300, 5),
            "short": (100_000, 136),
            "full": (1_000_000, 136),
        }[size]
        rng = np.random.default_rng(0)
        X = rng.standard_normal((n_rows, n_features))
        items = X
        if offset or dtype != "float64":
            items = (X + offset).astype(dtype)
        y = rng.integers(0, 5, n_rows).astype(float)
        groups = {
            "one list": lambda: None,
            "groups in order": lambda: np.arange(n_rows) // 100,
            "groups shuffled": lambda: rng.permutation(n_rows) // 100,
            "groups of many sizes": lambda: np.sort(rng.integers(0, n_rows // 100, n_rows)),
        }[order]()
        return lambda: RankRLS().fit(items, y, groups), lambda: X.T @ X

    return prepare


def metrics(size: str) -> Works:
    n_rows = {"tiny": 300, "short": 100_000, "full": 1_000_000}[size]
    rng = np.random.default_rng(0)
    y = rng.integers(0, 5, n_rows).astype(float)
    scores = y + rng.standard_normal(n_rows)
    groups = np.arange(n_rows) // 100

    def three() -> None:
        ndcg(y, scores, groups, k=10)
        average_precision(y > 2, scores, groups)
        disagreement_error(y, scores, groups)

    return three, lambda: np.lexsort((scores, groups))


def importing(size: str) -> Works:
    """With compiled files of both packages, which an installation has."""
    environment = {**os.environ}
    environment.pop("PYTHONDONTWRITEBYTECODE", None)

    def run(code: str) -> Work:
        return lambda: subprocess.run([sys.executable, "-c", code], check=True, env=environment)

    return run("from rankwise import RankRLS"), run("import sklearn.linear_model")


def _curved_list(size: str) -> tuple[np.ndarray, np.ndarray]:
    n_items = {"tiny": 50, "short": 1000, "full": 4000}[size]
    rng = np.random.default_rng(0)
    X = rng.standard_normal((n_items, 10))
    return X, np.sin(2 * X[:, 0]) + X[:, 1] * X[:, 2] + 0.3 * rng.standard_normal(n_items)


def unscored_rows(size: str) -> Works:
    """Two Gaussian views on random bases, 1,000 scored rows and many or few unscored ones."""
    few, many = UNSCORED[size]
    n_basis = {"tiny": 5, "short": 100, "full": 100}[size]

    def fit(n_unscored: int) -> Work:
        rng = np.random.default_rng(0)
        X = rng.standard_normal((1000 + n_unscored, 20))
        y = X @ rng.standard_normal(20)
        y[1000:] = np.nan
        groups = np.arange(len(y)) // 20
        model = CoRankRLS(n_basis=n_basis, kernel="rbf", gamma=0.05, random_state=0)
        return lambda: model.fit(X, y, groups)

    return fit(many), fit(few)


def one_hot(size: str) -> Works:
    """Four categories a row; few values are frequent, many are rare."""
    n_rows, n_values = {"tiny": (200, 8), "short": (7_500, 150), "full": (75_000, 1_375)}[size]
    rng = np.random.default_rng(0)
    codes = (n_values * rng.random((n_rows, 4)) ** 2).astype(int) + n_values * np.arange(4)
    starts = np.arange(0, codes.size + 1, 4)
    X = sp.csr_array((np.ones(codes.size), codes.ravel(), starts), shape=(n_rows, 4 * n_values))
    y = X @ rng.standard_normal(X.shape[1]) + rng.standard_normal(n_rows)
    groups = np.arange(n_rows) // 20
    return lambda: RankRLSCV().fit(X, y, groups), lambda: Ridge().fit(X, y)


TITLE = "Training and prediction"
GRAM = "X.T @ X"
ROWS = [
    Row(TITLE, "RankRLS, 1e6 × 136, groups in order", GRAM, 1.4, primal("groups in order")),
    Row(TITLE, "RankRLS, 1e6 × 136, groups shuffled", GRAM, 1.4, primal("groups shuffled")),
    Row(TITLE, "RankRLS, 1e6 × 136, one list", GRAM, 1.4, primal("one list")),
    Row(
        TITLE, "RankRLS, 1e6 × 136, groups of many sizes", GRAM, 1.8, primal("groups of many sizes")
    ),
    Row(TITLE, "RankRLS, 1e6 × 136, offset 1e6", GRAM, 1.8, primal("groups in order", 1e6)),
    Row(TITLE, "RankRLS, 1e6 × 136, float32", GRAM, 1.8, primal("groups in order", 0.0, "float32")),
    Row(TITLE, "RankRLS, 1e6 × 136, with weights", "no weights", 1.5, weighted),
    Row(TITLE, "RankSVM, one list with weights", "no weights", 2.0, weighted_pairs),
    Row(TITLE, "RankRLS, 2e5 × 46, 100 outputs", "scikit-learn Ridge", 1.2, many_outputs),
    Row(TITLE, "RankRLSCV, one-hot, 75,000 × 5,500", "one fit of Ridge", 10.0, one_hot),
    Row(TITLE, "kernel RankRLS, 4,000 items", "scikit-learn KernelRidge", 1.1, one_alpha),
    Row(
        TITLE,
        "kernel RankRLS, 3,000 items in groups of 30",
        "scikit-learn KernelRidge",
        0.9,
        one_alpha_with_groups,
    ),
    Row(TITLE, "kernel RankRLS, 31 alphas", "one eigh", 0.6, all_alphas),
    Row(
        TITLE,
        "CoRankRLS, slope over unscored rows",
        "25,000 rows, ours 400,000",
        1.1,
        unscored_rows,
        growth={size: many / few for size, (few, many) in UNSCORED.items()},
    ),
    Row(TITLE, "predict, 1e6 × 136", "X @ w", 1.3, predict),
    Row(TITLE, "NDCG@10, MAP and pairs, 1e6 rows", "one lexsort", 5.0, metrics),
    Row(TITLE, "import of RankRLS", "import sklearn.linear_model", 1.1, importing),
]
