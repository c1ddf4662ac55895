"""How far comparisons can be explained by ratings, and how far they go in circles."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from rankwise.graphs import PairGraph
from rankwise.leaderboard.solving import potential
from rankwise.leaderboard.tally import Tally

__all__ = ["Consistency", "consistency"]

Array = NDArray[np.float64]


class Consistency(NamedTuple):
    """As in `Leaderboard`."""

    unexplained: float
    cyclicity: float
    cycle_ratio: float | None


def consistency(graph: PairGraph, tally: Tally, ratings: Array) -> Consistency:
    """Split Σ ω δ² in disagreement about the same two items, circles and the rest.

    With w and ȳ the weight and the mean margin of each distinct pair, and L r = d,

        Σ ω δ² = Σ ω (δ − ȳ)² + Σ w (ȳ − (r_i − r_j))² + rᵀ d

    The middle part are the circles: HodgeRank's curl and harmonic flow.
    """
    weights, flows = tally.pair_sums(tally.count)
    between = float(np.sum(flows**2 / weights))
    explained = float(potential(tally, weights, flows) @ (tally.incidence.T @ flows))
    circles = max(0.0, between - explained)
    disagreement = max(0.0, graph.squared_magnitude - between)
    n_circles = tally.n_distinct - (graph.n_items - int(graph.components.max()) - 1)
    n_repeats = graph.n_pairs - tally.n_distinct
    ratio = None
    if n_circles and n_repeats and disagreement > 1e-12 * graph.squared_magnitude:
        ratio = (circles / n_circles) / (disagreement / n_repeats)
    residual = graph.edge_target - (ratings[graph.winner] - ratings[graph.loser])
    return Consistency(
        unexplained=_share(float(graph.edge_weight @ residual**2), graph.squared_magnitude),
        cyclicity=min(1.0, _share(circles, between)),
        cycle_ratio=ratio,
    )


def _share(part: float, whole: float) -> float:
    return part / whole if whole > 0 else 0.0
