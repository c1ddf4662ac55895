"""Comparisons of items with features, for tests."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pandas as pd

from rankwise import PairGraph
from rankwise.datasets import PairData


class Comparisons(NamedTuple):
    """Items, the two sides of each comparison, and whether the first one won."""

    items: pd.DataFrame
    first: np.ndarray
    second: np.ndarray
    won: np.ndarray

    @property
    def graph(self) -> PairGraph:
        """The comparisons as a graph."""
        winner = np.where(self.won, self.first, self.second)
        loser = np.where(self.won, self.second, self.first)
        return PairGraph(winner, loser, n_items=len(self.items))

    def pair_data(self, **fields) -> PairData:
        """The comparisons by the names of the items, with sides."""
        names = self.items.index.to_numpy().astype(str)
        order = np.argsort(names)
        position = np.argsort(order)
        return PairData(
            first=position[self.first],
            second=position[self.second],
            outcome=np.where(self.won, 1.0, -1.0),
            weight=np.ones(len(self.first)),
            items=names[order],
            **fields,
        )


def draw_sides(rng, n_items, n_comparisons):
    first = rng.integers(n_items, size=n_comparisons)
    second = (first + rng.integers(1, n_items, size=n_comparisons)) % n_items
    return first, second


def cyclic_types(n_items=80, n_comparisons=1500, seed=0) -> Comparisons:
    """A strength, and a cycle of three types that each beat the next one."""
    rng = np.random.default_rng(seed)
    strength = rng.normal(size=n_items)
    kind = rng.integers(3, size=n_items)
    first, second = draw_sides(rng, n_items, n_comparisons)
    step = (kind[second] - kind[first]) % 3
    advantage = np.array([0.0, 2.5, -2.5])[step]
    log_odds = strength[first] - strength[second] + advantage
    won = rng.random(n_comparisons) < 1 / (1 + np.exp(-log_odds))
    items = pd.DataFrame(
        {
            "strength": strength,
            "kind": np.array(["rock", "paper", "scissors"])[kind],
            "noise": rng.normal(size=n_items),
        },
        index=[f"item {k}" for k in range(n_items)],
    )
    return Comparisons(items, first, second, won)


def additive(n_items=80, n_comparisons=1200, seed=1) -> Comparisons:
    """An order that a sum of curves explains."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n_items, 3))
    score = 1.5 * X[:, 0] + np.abs(X[:, 1])
    first, second = draw_sides(rng, n_items, n_comparisons)
    won = rng.random(n_comparisons) < 1 / (1 + np.exp(score[second] - score[first]))
    items = pd.DataFrame(X, columns=["a", "b", "c"], index=[f"item {k}" for k in range(n_items)])
    return Comparisons(items, first, second, won)
