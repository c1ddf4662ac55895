"""Share of the strict preferences of a graph that predicted scores order wrongly."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from rankwise._compiled import count_violated
from rankwise.graphs.score_levels import find_levels

if TYPE_CHECKING:
    from rankwise.graphs.pair_graph import PairGraph

__all__ = ["edge_disagreement", "score_disagreement"]

Array = NDArray[np.float64]
Codes = NDArray[np.intp]


def edge_disagreement(edges: PairGraph, F: NDArray[Any], fold: Codes | None, pooled: bool) -> Array:
    """Look at every edge of positive magnitude; it belongs to the group of its winner."""
    counted = edges.magnitude > 0
    if fold is not None:
        counted &= fold[edges.winner] == fold[edges.loser]
    winner, loser, weight = edges.winner[counted], edges.loser[counted], edges.weight[counted]
    group = np.zeros(len(winner), dtype=np.intp) if pooled else edges.groups[winner]
    n_groups = 1 if pooled else edges.n_groups

    def wrong(f: NDArray[Any]) -> Array:
        gap = f[winner] - f[loser]
        along = weight * ((gap < 0) + 0.5 * (gap == 0))
        return _sums(group, along, n_groups)

    return _shares(wrong, F, _sums(group, weight, n_groups))


def score_disagreement(
    y: Array, groups: Codes, pair_weights: Array, F: NDArray[Any], fold: Codes | None, pooled: bool
) -> Array:
    """All pairs of different score inside each group, never formed: two sweeps for each column.

    Written in ranks, a pair is violated if the winner is not above the loser. With A violated pairs
    for F and B for −F, ties are in both, so twice the errors are A − B plus the number of pairs.
    """
    unit = groups
    if fold is not None:
        unit = np.unique(groups * (fold.max() + 2) + fold, return_inverse=True)[1]
    n_units, n_groups = int(unit.max(initial=-1)) + 1, len(pair_weights)
    level = find_levels(y, unit, n_units)[0].in_group
    size = np.bincount(unit, minlength=n_units)
    starts = np.cumsum(size) - size

    def by_group(lost: NDArray[Any], order: Codes) -> Array:
        counts = _sums(groups[order], lost, n_groups)
        return np.array([counts @ pair_weights]) if pooled else counts

    def violated(rank: NDArray[np.intp]) -> Array:
        order = np.lexsort((rank, unit))
        return by_group(count_violated(rank[order].astype(float), level[order], starts)[0], order)

    total = violated(np.zeros(len(y), dtype=np.intp))

    def wrong(f: NDArray[Any]) -> Array:
        rank = np.unique(f, return_inverse=True)[1]
        return 0.5 * (violated(rank) - violated(-rank) + total)

    return _shares(wrong, F, total)


def _sums(group: Codes, values: NDArray[Any], n_groups: int) -> Array:
    return np.bincount(group, weights=values, minlength=n_groups).astype(np.float64, copy=False)


def _shares(wrong: Any, F: NDArray[Any], total: Array) -> Array:
    shares = np.full((len(total), F[0].size), np.nan)
    for share, f in zip(shares.T, F.reshape(len(F), -1).T, strict=True):
        np.divide(wrong(f), total, out=share, where=total > 0)
    return shares.reshape(len(total), *F.shape[1:])
