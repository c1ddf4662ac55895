"""The bars of RankSVM: what is measured against what.

The default alpha, to the default certified gap of 1e-3; the whole of `fit`, validation included.
Hinge and one list in which all scores differ, unless the name says otherwise.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from rankwise import RankSVM

Work = Callable[[], Any]
Features = Callable[[int, int, np.random.Generator], tuple[np.ndarray, np.ndarray]]
N_FEATURES = 54
ENDS = {"tiny": (100, 300), "short": (10_000, 100_000), "full": (10_000, 1_000_000)}
GROWTH = {size: large / small for size, (small, large) in ENDS.items()}


def certified(features: Features) -> Callable[[str], tuple[Work, Work]]:
    """A fit against what one look at the loss cannot do without: X w, Xᵀ u and a sort."""

    def prepare(size: str) -> tuple[Work, Work]:
        n_rows = {"tiny": 300, "short": 50_000, "full": 500_000}[size]
        fit, X = _fit(features, n_rows)
        w = np.ones(N_FEATURES)

        def look() -> None:
            scores = X @ w
            X.T @ scores
            np.argsort(scores)

        return fit, look

    return prepare


def growing(features: Features) -> Callable[[str], tuple[Work, Work]]:
    """The same problem with many and with few rows."""

    def prepare(size: str) -> tuple[Work, Work]:
        small, large = ENDS[size]
        return _fit(features, large)[0], _fit(features, small)[0]

    return prepare


def hinge_in_groups(size: str) -> tuple[Work, Work]:
    """Queries of 100 documents with five levels: the hinge against its square."""
    X, y, groups = _queries(size)
    return _certified_fit(X, y, groups), _certified_fit(X, y, groups, loss="squared_hinge")


def offset_in_groups(size: str) -> tuple[Work, Work]:
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
