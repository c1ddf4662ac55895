"""Problems for RankSVM: the same data once with the hinge and once with the squared hinge."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial

import numpy as np

from benchmarks import problems
from benchmarks.problems import Problem

LOSSES = ("hinge", "squared_hinge")


def few_items(size: str) -> Problem:
    """One list so short that its pairs can be formed."""
    n_train = {"tiny": 40, "short": 300, "full": 1000}[size]
    X, y = _standard_list(n_train + n_train // 2, 20, seed=5)
    return Problem("few_items", *problems._split(X, y, n_train), few_pairs=True)


def one_group(size: str) -> Problem:
    """One long list in which all scores differ, features correlated but standardized."""
    n_train, p = {"tiny": (100, 6), "short": (20_000, 54), "full": (1_000_000, 54)}[size]
    X, y = _standard_list(n_train + n_train // 10, p, seed=6)
    return Problem("one_group", *problems._split(X, y, n_train))


def small_groups(size: str) -> Problem:
    """Very many groups of ten with five levels."""
    n_groups = {"tiny": 12, "short": 2_000, "full": 100_000}[size]
    groups = np.repeat(np.arange(n_groups + n_groups // 10), 10)
    X, y = _standard_list(len(groups), 20, seed=7)
    y = np.digitize(y, [-0.5, 0.3, 1.0, 1.7]).astype(float)
    parts = problems._split(X, y, 10 * n_groups, groups)
    return Problem("small_groups", *parts, few_pairs=True)


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


def _standard_list(n_rows: int, n_features: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    X, y = mixed_features(n_rows, n_features, np.random.default_rng(seed))
    X -= X.mean(axis=0)
    X /= X.std(axis=0) + 1e-12
    return X, y - y.mean()


def _with_loss(load: Callable[[str], Problem], loss: str, size: str) -> Problem:
    return replace(load(size), loss=loss)


MARGIN_PROBLEMS: dict[str, Callable[[str], Problem]] = {
    f"{load.__name__} {loss}": partial(_with_loss, load, loss)
    for load in (few_items, one_group, small_groups, problems.letor)
    for loss in LOSSES
}
