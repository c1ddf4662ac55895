"""How far comparisons can be explained by ratings, and how far they go in circles."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from rankwise.arrays import Array
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
    unexplained = _share(left, tally.squared_target)
    tally = tally.controlled(effects)
    weights, flows = tally.sums
    between = float(np.sum(flows**2 / weights))
    circles = max(0.0, between - explained_by_ratings(tally, ratings))
    disagreement = max(0.0, tally.squared_target - between)
    n_circles = tally.n_distinct - (tally.n_items - int(tally.components.max()))
    n_repeats = tally.n_comparisons - tally.n_distinct
    ratio = None
    if n_circles and n_repeats and disagreement > 1e-12 * tally.squared_target:
        ratio = (circles / n_circles) / (disagreement / n_repeats)
    return Consistency(
        unexplained=unexplained,
        cyclicity=min(1.0, _share(circles, between)),
        cycle_ratio=ratio,
    )


def _share(part: float, whole: float) -> float:
    return part / whole if whole > 0 else 0.0
