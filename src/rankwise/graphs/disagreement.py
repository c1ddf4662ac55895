"""Share of the strict preferences of a graph that predicted scores order wrongly."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from rankwise._compiled import count_violated, sum_violated
from rankwise.arrays import Array
from rankwise.graphs.score_levels import find_levels, sums_of_families

if TYPE_CHECKING:
    from rankwise.graphs.pair_graph import PairGraph

Codes = NDArray[np.intp]


def edge_disagreement(edges: PairGraph, F: NDArray[Any], fold: Codes | None, pooled: bool) -> Array:
    """Look at every edge of positive magnitude; it belongs to the group of its winner."""
    counted = edges.magnitude > 0
    if fold is not None:
        counted &= fold[edges.winner] == fold[edges.loser]
    winner, loser, weight = edges.winner[counted], edges.loser[counted], edges.weight[counted]
    group, n_groups = edges.groups[winner], edges.n_groups

    def wrong(f: NDArray[Any]) -> Array:
        gap = f[winner] - f[loser]
        return sums_of_families(weight * ((gap < 0) + 0.5 * (gap == 0)), group, n_groups)

    return _shares(wrong, sums_of_families(weight, group, n_groups), F, np.ones(n_groups), pooled)


def score_disagreement(
    y: Array,
    groups: Codes,
    pair_weights: Array,
    F: NDArray[Any],
    fold: Codes | None,
    pooled: bool,
    weight: Array | None = None,
) -> Array:
    """All pairs of different score inside each group, never formed: two sweeps for each column.

    Written in ranks, a pair is violated if the winner is not above the loser. With A violated pairs
    for F and B for −F, ties are in both, so twice the errors are A − B plus the number of pairs.
    A pair counts the product of the weights of its items, if they have any.
    """
    unit = groups
    if fold is not None:
        unit = np.unique(groups * (fold.max() + 2) + fold, return_inverse=True)[1]
    size = np.bincount(unit)
    level = find_levels(y, unit, len(size))[0].in_group

    def violated(rank: Codes) -> Array:
        order = np.lexsort((rank, unit))
        in_order = rank[order].astype(np.float64), level[order], np.cumsum(size) - size
        if weight is None:
            lost = count_violated(*in_order)[0]
        else:
            lost = weight[order] * sum_violated(*in_order, weight[order])[0]
        return sums_of_families(lost, groups[order], len(pair_weights))

    total = violated(np.zeros(len(y), dtype=np.intp))

    def wrong(f: NDArray[Any]) -> Array:
        rank = np.unique(f, return_inverse=True)[1]
        return np.maximum(0.5 * (violated(rank) - violated(-rank) + total), 0.0)

    return _shares(wrong, total, F, pair_weights, pooled)


def _shares(
    wrong: Callable[[NDArray[Any]], Array],
    total: Array,
    F: NDArray[Any],
    weight: Array,
    pooled: bool,
) -> Array:
    errors = np.stack([wrong(f) for f in F.reshape(len(F), -1).T], axis=1)
    if pooled:
        errors, total = weight[None] @ errors, weight[None] @ total
    shares = np.full(errors.shape, np.nan)
    np.divide(errors, total[:, None], out=shares, where=total[:, None] > 0)
    return shares.reshape(len(total), *F.shape[1:])
