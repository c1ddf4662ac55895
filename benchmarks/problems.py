"""Problems: name -> loader of data to learn from and data to test on, in three sizes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from rankwise import PairGraph
from rankwise.datasets import make_ranking

SIZES = ("tiny", "short", "full")  # tiny is for the smoke test


@dataclass(frozen=True)
class Problem:
    """Data, and the objective that is to be minimized on them.

    y is an array, or a PairGraph where only preferences are known. Groups are None or sorted, which
    the boosting libraries need. The loss is "squared" (RankRLS), "hinge" or "squared_hinge"
    (RankSVM); `few_pairs` says that the pairs can be formed.
    """

    name: str
    X: Any
    y: Any
    groups: NDArray[np.intp] | None
    X_test: Any
    y_test: NDArray[np.float64]
    groups_test: NDArray[np.intp] | None
    alpha: float = 1e-3
    kernel: str = "linear"
    gamma: float | None = None
    n_basis: int | None = None
    tol: float = 1e-8  # of iterative solvers
    loss: str = "squared"
    few_pairs: bool = False

    @property
    def has_margin_loss(self) -> bool:
        return self.loss != "squared"

    @property
    def is_linear(self) -> bool:
        return self.kernel == "linear"

    @property
    def is_sparse(self) -> bool:
        return sp.issparse(self.X)

    @property
    def basis(self) -> NDArray[np.intp] | None:
        """Rows of the basis: those that scikit-learn's Nystroem draws with seed 0."""
        if self.n_basis is None:
            return None
        return np.random.RandomState(0).permutation(self.X.shape[0])[: self.n_basis]

    @property
    def has_scores(self) -> bool:
        return not isinstance(self.y, PairGraph)

    @property
    def n_outputs(self) -> int:
        return self.y.shape[1] if self.has_scores and self.y.ndim == 2 else 1

    @property
    def has_levels(self) -> bool:
        """Whether the scores are relevance levels 0, 1, ... of one output, in groups."""
        return self.groups is not None and self.n_outputs == 1


def letor(size: str) -> Problem:
    """Documents of queries, five relevance levels, linear utility: like a LETOR file."""
    n_queries, n_features = {"tiny": (12, 6), "short": (500, 46), "full": (10_000, 136)}[size]
    n_test = max(2, n_queries // 10)
    data = make_ranking(
        n_queries + n_test, (80, 120) if size != "tiny" else 10, n_features,
        noise=0.5, shuffle=False, random_state=0,
    )  # fmt: skip
    cut = int(np.searchsorted(data.groups, n_queries))
    return Problem("letor", *_split(data.X, data.y, cut, data.groups))


def kernel(size: str) -> Problem:
    """One list with a curved utility, for the Gaussian kernel."""
    n_train = {"tiny": 60, "short": 1000, "full": 4000}[size]
    rng = np.random.default_rng(1)
    X = rng.standard_normal((n_train + n_train // 4, 10))
    y = np.sin(2 * X[:, 0]) + X[:, 1] * X[:, 2] + 0.3 * rng.standard_normal(len(X))
    return Problem("kernel", *_split(X, y, n_train), alpha=1e-4, kernel="rbf", gamma=0.1)


def one_list(size: str) -> Problem:
    """One long list in which all scores differ: no pair may ever be formed."""
    n_train, n_features = {"tiny": (100, 5), "short": (50_000, 10), "full": (1_000_000, 54)}[size]
    rng = np.random.default_rng(2)
    X = rng.standard_normal((n_train + n_train // 10, n_features)) + 5.0
    y = X @ rng.standard_normal(n_features) + rng.standard_normal(len(X))
    return Problem("one_list", *_split(X, y, n_train))


def many_outputs(size: str) -> Problem:
    """Many things to rank for, from the same features and the same groups."""
    n_groups, n_features, n_outputs = {
        "tiny": (10, 5, 3),
        "short": (200, 46, 50),
        "full": (2000, 46, 100),
    }[size]
    rng = np.random.default_rng(3)
    groups = np.repeat(np.arange(n_groups + n_groups // 10), 100 if size != "tiny" else 8)
    X = rng.standard_normal((len(groups), n_features))
    Y = X @ rng.standard_normal((n_features, n_outputs))
    Y += rng.standard_normal(Y.shape) + rng.standard_normal((groups[-1] + 1, n_outputs))[groups]
    cut = int(np.searchsorted(groups, n_groups))
    return Problem("many_outputs", *_split(X, Y, cut, groups))


def pairs(size: str) -> Problem:
    """Items without features, X is the identity: rate the players from the results of games."""
    n_items, n_games = {"tiny": (20, 150), "short": (2000, 20_000), "full": (20_000, 200_000)}[size]
    rng = np.random.default_rng(4)
    strength = rng.standard_normal(n_items)
    one = rng.integers(0, n_items, n_games)
    other = (one + rng.integers(1, n_items, n_games)) % n_items
    margin = strength[one] - strength[other] + rng.standard_normal(n_games)
    winner, loser = np.where(margin > 0, one, other), np.where(margin > 0, other, one)
    graph = PairGraph(winner, loser, np.abs(margin), n_items=n_items)
    X = sp.identity(n_items, format="csr")
    return Problem("pairs", X, graph, None, X, strength, None, alpha=1e-6)


def basis(size: str) -> Problem:
    """One long list with a curved utility, for the Gaussian kernel on some of its items."""
    n_train, n_basis = {"tiny": (80, 12), "short": (20_000, 200), "full": (200_000, 500)}[size]
    rng = np.random.default_rng(5)
    X = rng.standard_normal((n_train + n_train // 10, 10))
    y = np.sin(2 * X[:, 0]) + X[:, 1] * X[:, 2] + 0.3 * rng.standard_normal(len(X))
    data = _split(X, y, n_train)
    return Problem("basis", *data, alpha=1e-4, kernel="rbf", gamma=0.1, n_basis=n_basis)


def sparse(size: str) -> Problem:
    """One list of documents: 30 words each, few of them common and most of them rare."""
    n_train, n_words = {"tiny": (90, 40), "short": (20_000, 10_000), "full": (300_000, 200_000)}[
        size
    ]
    rng = np.random.default_rng(6)
    n_rows = n_train + n_train // 10
    rows = np.repeat(np.arange(n_rows), 30)
    words = np.minimum(rng.pareto(0.6, len(rows)).astype(int), n_words - 1)
    X = sp.csr_matrix((np.ones(len(rows)), (rows, words)), shape=(n_rows, n_words))
    X = X.log1p()
    y = X @ rng.standard_normal(n_words) + rng.standard_normal(n_rows)
    return Problem("sparse", *_split(X, y, n_train), alpha=1e-4, tol=1e-6)


PROBLEMS: dict[str, Callable[[str], Problem]] = {
    problem.__name__: problem
    for problem in (letor, kernel, one_list, many_outputs, pairs, basis, sparse)
}


def _split(X: Any, y: Any, cut: int, groups: Any = None) -> tuple[Any, ...]:
    """Train and test part; copies, so that the whole does not count as memory of the fit."""
    first, rest = slice(cut), slice(cut, None)
    train = X[first].copy(), y[first].copy(), None if groups is None else groups[first].copy()
    return *train, X[rest].copy(), y[rest].copy(), None if groups is None else groups[rest].copy()
