"""The bars of RankSVM: what is measured against what.

The default alpha, to the default certified gap of 1e-3; the whole of `fit`, validation included.
Hinge and one list in which all scores differ, unless the name says otherwise.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from benchmarks.row import Row, Work, Works
from rankwise import RankSVM
from rankwise._compiled import count_violated, pair_counts_fallback

Features = Callable[[int, int, np.random.Generator], tuple[np.ndarray, np.ndarray]]
N_FEATURES = 54
ENDS = {"tiny": (100, 300), "short": (10_000, 100_000), "full": (10_000, 1_000_000)}
GROWTH = {size: large / small for size, (small, large) in ENDS.items()}


def certified(features: Features) -> Callable[[str], Works]:
    """A fit against what one look at the loss cannot do without: X w, Xᵀ u and a sort."""

    def prepare(size: str) -> Works:
        n_rows = {"tiny": 300, "short": 50_000, "full": 500_000}[size]
        fit, X = _fit(features, n_rows)
        w = np.ones(N_FEATURES)

        def look() -> None:
            scores = X @ w
            X.T @ scores
            np.argsort(scores)

        return fit, look

    return prepare


def growing(features: Features) -> Callable[[str], Works]:
    """The same problem with many and with few rows."""

    def prepare(size: str) -> Works:
        small, large = ENDS[size]
        return _fit(features, large)[0], _fit(features, small)[0]

    return prepare


def hinge_in_groups(size: str) -> Works:
    """Queries of 100 documents with five levels: the hinge against its square."""
    X, y, groups = _queries(size)
    return _certified_fit(X, y, groups), _certified_fit(X, y, groups, loss="squared_hinge")


def offset_in_groups(size: str) -> Works:
    """The same features in float32 and far from zero, against float64 near it."""
    X, y, groups = _queries(size)
    return _certified_fit((X + 1e4).astype(np.float32), y, groups), _certified_fit(X, y, groups)


def _queries(size: str) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    n_rows, n_features = {"tiny": (300, 6), "short": (30_000, 136), "full": (100_000, 136)}[size]
    rng = np.random.default_rng(0)
    X = rng.standard_normal((n_rows, n_features))
    utility = X @ rng.standard_normal(n_features) / np.sqrt(n_features)
    y = np.digitize(utility + rng.standard_normal(n_rows), [-0.5, 0.3, 1.0, 1.7]).astype(float)
    return X, y, np.arange(n_rows) // 100


def _fit(features: Features, n_rows: int) -> tuple[Work, np.ndarray]:
    X, y = features(n_rows, N_FEATURES, np.random.default_rng(0))
    return _certified_fit(X, y), X


def _certified_fit(X: np.ndarray, y: np.ndarray, groups: Any = None, **options: Any) -> Work:
    def fit() -> None:
        model = RankSVM(**options).fit(X, y, groups)
        if not model.gap_ <= model.tol:
            raise RuntimeError(f"the gap is {model.gap_:.1e}, and not {model.tol:g}.")

    return fit


def mixed_features(
    n_rows: int, n_features: int, rng: np.random.Generator
) -> tuple[np.ndarray, np.ndarray]:
    """Correlated columns on scales from 1e-2 to 1e3, a third of them binary; all scores differ."""
    n_binary = n_features // 3
    n_mixed = n_features - n_binary
    factors = rng.standard_normal((n_rows, n_mixed)) * 0.85 ** np.arange(n_mixed)
    mixed = factors @ rng.standard_normal((n_mixed, n_mixed))
    mixed += 0.1 * rng.standard_normal(mixed.shape)
    noisy = mixed[:, :n_binary] / mixed[:, :n_binary].std(axis=0)
    noisy += rng.standard_normal(noisy.shape)
    binary = noisy > rng.uniform(-1, 2, n_binary)
    X = np.hstack([mixed * np.logspace(-2, 3, n_mixed), binary])
    utility = X @ (rng.standard_normal(n_features) / (X.std(axis=0) + 1e-12))
    return X, utility / utility.std() + 0.5 * rng.standard_normal(n_rows)


def even_features(
    n_rows: int, n_features: int, rng: np.random.Generator
) -> tuple[np.ndarray, np.ndarray]:
    """Independent Gaussian columns of one scale; all scores differ."""
    X = rng.standard_normal((n_rows, n_features))
    return X, X @ rng.standard_normal(n_features) + rng.standard_normal(n_rows)


def compiled_sweep(size: str) -> Works:
    """Violated pairs of a sorted list: the compiled sweep against its NumPy fallback."""
    n_items = {"tiny": 100, "short": 100_000, "full": 1_000_000}[size]
    rng = np.random.default_rng(0)
    utility = 3 * rng.standard_normal(n_items)
    scores = utility + rng.standard_normal(n_items)
    order = np.argsort(scores)
    level = np.argsort(np.argsort(utility))[order].astype(np.int32)
    data = scores[order], level, np.zeros(1, np.intp)
    return lambda: count_violated(*data), lambda: pair_counts_fallback.count_violated(*data)


TITLE = "RankSVM and RankLogistic"
LOOK = "2 products and a sort"
ROWS = [
    Row(TITLE, "RankSVM, 5e5 × 54, mixed features", LOOK, 25.0, certified(mixed_features)),
    Row(TITLE, "RankSVM, 5e5 × 54, even features", LOOK, 25.0, certified(even_features)),
    *(
        Row(
            TITLE,
            f"RankSVM, slope over rows, {name} features",
            "10,000 rows, ours 1e6",
            1.15,
            growing(features),
            growth=GROWTH,
        )
        for name, features in (("mixed", mixed_features), ("even", even_features))
    ),
    Row(TITLE, "RankSVM in groups, hinge, 1e5 × 136", "squared hinge", 1.5, hinge_in_groups),
    Row(TITLE, "RankSVM in groups, float32 + 1e4", "float64", 1.5, offset_in_groups),
    Row(TITLE, "sweep over 1e6 items, compiled", "NumPy fallback", 0.67, compiled_sweep),
]
