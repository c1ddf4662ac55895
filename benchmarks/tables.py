"""The bars of labels and tables: what is measured against what."""

from __future__ import annotations

import numpy as np
import scipy.linalg
from sklearn.linear_model import Ridge
from sklearn.metrics.pairwise import rbf_kernel

from benchmarks.row import Row, Works
from rankwise import LabelRanker
from rankwise.dyadic.loss import DyadicLoss
from rankwise.dyadic.sides import kernel_side
from rankwise.dyadic.solver import DyadicProblem

ALPHAS = np.logspace(-6, 2, 31)
ITERATIONS = 10


def complete(size: str) -> Works:
    """31 alphas, every row and every column left out, against two eighs and 31 products."""
    G, K, Y = _table(*{"tiny": (20, 10), "short": (600, 150), "full": (2000, 500)}[size])

    def hold_out() -> None:
        sides = kernel_side(G), kernel_side(K, is_centered=True)
        table = DyadicProblem(DyadicLoss(Y), *sides)
        table.leave_row_out_scores(ALPHAS)
        table.leave_column_out_scores(ALPHAS)

    def floor() -> None:
        _, U = scipy.linalg.eigh(G)
        _, V = scipy.linalg.eigh(K)
        for _ in ALPHAS:
            _ = U @ Y @ V.T

    return hold_out, floor


def incomplete(size: str) -> Works:
    """Ten iterations on a table with half of its cells against their two products R B Sᵀ, Rᵀ F S.

    That is twice as much as the two products G Z K would be, which leave no preconditioner.
    """
    G, K, Y = _table(*{"tiny": (20, 10), "short": (600, 300), "full": (2000, 1000)}[size])
    Y[np.random.default_rng(1).random(Y.shape) < 0.5] = np.nan
    sides = kernel_side(G), kernel_side(K, is_centered=True)
    table = DyadicProblem(DyadicLoss(Y), *sides, tol=0.0, max_iter=ITERATIONS)
    rows, columns = table.preconditioned_sides()
    alpha = np.array([1e-6])
    R = rows.features
    S = columns.features
    B = np.ones((R.shape[1], S.shape[1]))

    def iterate() -> None:
        table.solve_iteratively(rows, columns, alpha)

    def products() -> None:
        for _ in range(ITERATIONS):
            _ = R.T @ (R @ (B @ S.T)) @ S

    return iterate, products


def labels(size: str) -> Works:
    """50 labels against ridge regression with as many outputs."""
    n = {"tiny": 60, "short": 2000, "full": 10_000}[size]
    rng = np.random.default_rng(0)
    X = rng.standard_normal((n, 100))
    Y = rng.standard_normal((n, 50))
    return lambda: LabelRanker().fit(X, Y), lambda: Ridge().fit(X, Y)


def _table(n_rows: int, n_columns: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    X = rng.standard_normal((n_rows, 20))
    Z = rng.standard_normal((n_columns, 20))
    return rbf_kernel(X), rbf_kernel(Z), rng.standard_normal((n_rows, n_columns))


TITLE = "Labels and tables"
ROWS = [
    Row(TITLE, "2,000 × 500, rows and columns out", "2 eighs and 31 products", 3.0, complete),
    Row(TITLE, "a table with gaps, one iteration", "its 2 products", 2.0, incomplete),
    Row(TITLE, "LabelRanker, 50 labels", "scikit-learn Ridge", 1.3, labels),
]
