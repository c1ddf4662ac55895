"""How far ratings explain the comparisons: circles, and results head to head."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rankwise.arrays import Array, Indices
from rankwise.leaderboard.solving import explained_by_ratings
from rankwise.leaderboard.tally import Tally


class Consistency(NamedTuple):
    """As in `Leaderboard`."""

    unexplained: float
    cyclicity: float
    cycle_ratio: float | None


def consistency(tally: Tally, ratings: Array, expected: Array, effects: Array) -> Consistency:
    """Split Σ ω δ² in disagreement about the same two items, circles and the rest.

    With w and ȳ the weight and the mean margin of each distinct pair, and L r = d,

        Σ ω δ² = Σ ω (δ − ȳ)² + Σ w (ȳ − (r_i − r_j))² + rᵀ d

    The middle term are the circles: HodgeRank's curl and harmonic flow. The effects of covariates
    are taken from δ first. `expected` are the outcomes that the ratings say, for each pair.
    """
    residual = tally.target - expected[tally.pair]
    left = float((tally.count * tally.weight) @ residual**2)
    unexplained = left / tally.squared_target if tally.squared_target > 0 else 0.0
    tally = tally.controlled(effects)
    weights, flows = tally.sums
    between = float(np.sum(flows**2 / weights))
    circles = max(0.0, between - explained_by_ratings(tally, ratings))
    disagreement = max(0.0, tally.squared_target - between)
    n_circles = len(tally.first) - (tally.n_items - int(tally.components.max()))
    n_repeats = len(tally.outcome) - len(tally.first)
    ratio = None
    if n_circles and n_repeats and disagreement > 1e-12 * tally.squared_target:
        ratio = (circles / n_circles) / (disagreement / n_repeats)
    cyclicity = min(1.0, circles / between) if between > 0 else 0.0
    return Consistency(unexplained, cyclicity, ratio)


class HeadToHead(NamedTuple):
    """Matrices by items: row against column; NaN where two never met.

    Attributes
    ----------
    items : ndarray of shape (n_shown,)
        Labels of rows and columns.
    n : ndarray of shape (n_shown, n_shown)
        Number of comparisons.
    observed : ndarray of shape (n_shown, n_shown)
        Weighted mean outcome of the row's item: 1 if it won all, −1 if it lost all.
    expected : ndarray of shape (n_shown, n_shown)
        Mean outcome that ratings and effects let expect in the same comparisons.
    """

    items: NDArray[Any]
    n: Indices
    observed: Array
    expected: Array


class Meetings(NamedTuple):
    """The same by edges: the two items of each, the first one's outcomes."""

    first: Indices
    second: Indices
    n: Indices
    observed: Array
    expected: Array

    def matrix(self, chosen: Indices, labels: NDArray[Any], n_items: int) -> HeadToHead:
        """Of the chosen items, in this order."""
        place = np.full(n_items, -1)
        place[chosen] = np.arange(len(chosen))
        i, j = place[self.first], place[self.second]
        both = (i >= 0) & (j >= 0)
        i, j, size = i[both], j[both], len(chosen)
        n = np.zeros((size, size), np.intp)
        n[i, j] = n[j, i] = self.n[both]
        matrices = []
        for values in (self.observed[both], self.expected[both]):
            matrix = np.full((size, size), np.nan)
            matrix[i, j], matrix[j, i] = values, -values + 0.0
            matrices.append(matrix)
        return HeadToHead(labels[chosen], n, *matrices)


def meetings_of(tally: Tally, expected: Array) -> Meetings:
    """Add up the comparisons of the same two items; `expected` is for each distinct pair."""
    weights, flows = tally.sums
    count = tally.by_pair(tally.count.astype(np.float64))
    total = tally.by_edge(weights)
    return Meetings(
        tally.first[tally.edges],
        tally.second[tally.edges],
        tally.by_edge(count).astype(np.intp),
        tally.by_edge(flows) / total,
        tally.by_edge(weights * expected) / total,
    )
