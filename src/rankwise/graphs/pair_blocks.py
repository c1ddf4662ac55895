"""All pairs of a graph, ties included, a block at a time: what a loss without a sweep needs."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from rankwise.arrays import Array, Indices
from rankwise.graphs.base import PreferenceGraph
from rankwise.graphs.pair_graph import PairGraph
from rankwise.graphs.score_graph import ScoreGraph

BLOCK_PAIRS = 2**15  # in float64 they stay in the cache


class PairBlock(NamedTuple):
    """Pairs of items; a tie is half a preference in each direction.

    Attributes
    ----------
    items : ndarray of int or slice
        The items of the block, each once.
    first, second : ndarray of int
        The two items of each pair, numbered among the items of the block.
    weight : ndarray
        ω of each pair.
    lost : ndarray
        The share of ω in which the second item is preferred, at most half of it: half for a tie.
    """

    items: Indices | slice
    first: Indices
    second: Indices
    weight: Array
    lost: Array

    def differences(self, v: Array) -> Array:
        """``v_first − v_second`` for each pair."""
        values = v[self.items]
        return np.asarray(values[self.first] - values[self.second])

    def add_flows(self, flows: Array, out: Array) -> None:
        """Add ``Σ flow (e_first − e_second)`` to a vector of all items."""
        n = len(out[self.items])
        out[self.items] += np.bincount(self.first, flows, n) - np.bincount(self.second, flows, n)


def pair_blocks(graph: PreferenceGraph) -> Iterator[PairBlock]:
    """The pairs of any graph; those of scored items are never all in memory."""
    if isinstance(graph, ScoreGraph) and graph.cost != "relative":
        return _blocks_of_scores(graph)
    return _blocks_of_edges(graph.pairs())


def _blocks_of_edges(graph: PairGraph) -> Iterator[PairBlock]:
    """The distinct pairs, the item that is preferred more often first; parallel edges added up."""
    n = graph.n_items
    low, high = np.minimum(graph.winner, graph.loser), np.maximum(graph.winner, graph.loser)
    distinct, number = np.unique(low * n + high, return_inverse=True)
    weight = np.asarray(np.bincount(number, graph.edge_weight), np.float64)
    share = np.where(graph.magnitude > 0, graph.winner > graph.loser, 0.5)
    lost = np.asarray(np.bincount(number, graph.edge_weight * share), np.float64)
    swapped = 2 * lost > weight
    lost = np.where(swapped, np.bincount(number, graph.edge_weight * (1 - share)), lost)
    first, second = np.divmod(distinct, max(n, 1))
    first, second = np.where(swapped, second, first), np.where(swapped, first, second)
    size = max(BLOCK_PAIRS, n)
    for start in range(0, len(distinct), size):
        cut = slice(start, start + size)
        yield PairBlock(slice(None), first[cut], second[cut], weight[cut], lost[cut])


def _blocks_of_scores(graph: ScoreGraph) -> Iterator[PairBlock]:
    """Consecutive items, sorted by group and score, and those that they are compared with.

    As the first of a pair an item is compared with those before it in its group, without those of
    the same score if ties are out.
    """
    n, has_ties = graph.n_items, graph.ties == "include"
    order = np.lexsort((graph.y.reshape(n), graph.groups))
    group, y = graph.groups[order], graph.y.reshape(n)[order]
    position = np.arange(n)
    new_group = np.diff(group, prepend=-1) != 0
    new_level = new_group | (np.diff(y, prepend=0.0) != 0)
    group_start = np.maximum.accumulate(np.where(new_group, position, 0))
    level_start = np.maximum.accumulate(np.where(new_level, position, 0))
    counts = (position if has_ties else level_start) - group_start
    total = np.cumsum(counts)
    cuts = np.flatnonzero(np.diff(total // BLOCK_PAIRS, prepend=0))
    for start, stop in zip(np.r_[0, cuts], np.r_[cuts, n], strict=True):
        count = counts[start:stop]
        if not count.any():
            continue
        base = group_start[start]
        items = order[base:stop]
        first = np.repeat(np.arange(start, stop) - base, count)
        before = np.cumsum(count) - count
        second = np.repeat(group_start[start:stop] - base - before, count)
        second += np.arange(len(second))
        weight = np.repeat(graph.pair_weights[group[start:stop]], count)
        if graph.item_weights is not None:
            weight *= graph.item_weights[items[first]] * graph.item_weights[items[second]]
        tied = second >= np.repeat(level_start[start:stop] - base, count)
        lost = np.where(tied, 0.5 * weight, 0.0)
        yield PairBlock(items, first, second, weight, lost)
