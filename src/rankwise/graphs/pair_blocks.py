"""All pairs of a graph in blocks, ties included, for losses that visit every pair."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator
from functools import singledispatch
from typing import NamedTuple

import numpy as np

from rankwise.arrays import Array, Indices
from rankwise.graphs.base import PreferenceGraph
from rankwise.graphs.pair_graph import EdgeArrays, PairGraph
from rankwise.graphs.score_graph import ScoreGraph

BLOCK_PAIRS = 2**15  # arrays of this size stay in the cache


class PairBlock(NamedTuple):
    """Pairs of items; a tie is half a preference in each direction.

    Attributes
    ----------
    items : ndarray of int or slice
        The distinct items of the block.
    first, second : ndarray of int
        The two items of each pair, numbered among the items of the block.
    weight : ndarray
        ω of each pair.
    lost : ndarray
        Part of ω with which the second item is preferred, at most half of ω; half for a tie.
    """

    items: Indices | slice
    first: Indices
    second: Indices
    weight: Array
    lost: Array

    def differences(self, v: Array) -> Array:
        """``v_first − v_second`` for each pair."""
        block_values = v[self.items]
        return np.asarray(block_values[self.first] - block_values[self.second])

    def add_flows(self, flows: Array, out: Array) -> None:
        """Add ``Σ flow (e_first − e_second)`` to a vector of all items."""
        n = len(out[self.items])
        out[self.items] += np.bincount(self.first, flows, n) - np.bincount(self.second, flows, n)


@singledispatch
def pair_blocks(graph: PreferenceGraph) -> Iterator[PairBlock]:
    """The pairs of any graph.

    Edges are listed unless another function is registered for the class of the graph, which makes
    the pairs a block at a time.
    """
    return _blocks_of_edges(graph.pairs())


@pair_blocks.register
def _pair_blocks_of_scores(graph: ScoreGraph) -> Iterator[PairBlock]:
    if graph.cost == "relative":
        return _blocks_of_edges(graph.pairs())
    return _blocks_of_scores(graph)


def _blocks_of_edges(graph: PairGraph) -> Iterator[PairBlock]:
    """The distinct pairs, with parallel edges added up.

    The first item of a pair is the item that is preferred with more weight.
    """
    n_items = graph.n_items
    low = np.minimum(graph.winner, graph.loser)
    high = np.maximum(graph.winner, graph.loser)
    distinct, pair_of_edge = np.unique(low * n_items + high, return_inverse=True)
    share_of_high = np.where(graph.magnitude > 0, graph.winner > graph.loser, 0.5)
    weight_of_high = graph.edge_weight * share_of_high
    weight_of_low = graph.edge_weight * (1 - share_of_high)
    weight = np.asarray(np.bincount(pair_of_edge, graph.edge_weight), np.float64)
    lost = np.asarray(np.bincount(pair_of_edge, weight_of_high), np.float64)
    is_swapped = 2 * lost > weight
    lost = np.where(is_swapped, np.bincount(pair_of_edge, weight_of_low), lost)
    low_item, high_item = np.divmod(distinct, max(n_items, 1))
    first = np.where(is_swapped, high_item, low_item)
    second = np.where(is_swapped, low_item, high_item)
    size = max(BLOCK_PAIRS, n_items)
    for start in range(0, len(distinct), size):
        block = slice(start, start + size)
        yield PairBlock(slice(None), first[block], second[block], weight[block], lost[block])


def edges_of_blocks(blocks: Iterable[PairBlock]) -> EdgeArrays:
    """The pairs of blocks without ties as edges of magnitude 1, without pairs of weight 0."""
    listed = [np.empty((3, 0))]
    for block in blocks:
        items = np.asarray(block.items)
        listed.append(np.stack([items[block.first], items[block.second], block.weight]))
    winner, loser, weight = np.concatenate(listed, axis=1)
    edges = EdgeArrays(winner.astype(np.intp), loser.astype(np.intp), np.ones(len(weight)), weight)
    return edges.take(weight > 0)


class PartnerBlock(NamedTuple):
    """Consecutive items of an order, each paired with a range of earlier items.

    Attributes
    ----------
    start : int
        Position of the first item of the block in the order.
    items : ndarray of int
        The distinct items of the block.
    owner, partner : ndarray of int
        Each item that has partners, and the partner, numbered among the items of the block.
    """

    start: int
    items: Indices
    owner: Indices
    partner: Indices


def partner_blocks(
    order: Indices, first_partner: Indices, n_partners: Indices
) -> Iterator[PartnerBlock]:
    """Pair each item with a range of the items before it, about `BLOCK_PAIRS` pairs at a time.

    Parameters
    ----------
    order : ndarray of int, shape (n_items,)
        The items.
    first_partner, n_partners : ndarray of int, shape (n_items,)
        For each position in the order the position of the first partner, which does not decrease,
        and the number of partners.
    """
    n_pairs_before = np.cumsum(n_partners)
    cuts = np.flatnonzero(np.diff(n_pairs_before // BLOCK_PAIRS, prepend=0))
    for start, stop in itertools.pairwise([0, *cuts.tolist(), len(order)]):
        count = n_partners[start:stop]
        if not count.any():
            continue
        base = first_partner[start]
        owner = np.repeat(np.arange(start, stop) - base, count)
        pairs_before_item = np.cumsum(count) - count
        partner = np.repeat(first_partner[start:stop] - base - pairs_before_item, count)
        partner += np.arange(len(partner))
        yield PartnerBlock(int(base), order[base:stop], owner, partner)


def _blocks_of_scores(graph: ScoreGraph) -> Iterator[PairBlock]:
    """Items sorted by group and score, each with the items of its group before it.

    If ties are excluded, these are the items of lower score only.
    """
    n_items = graph.n_items
    y = graph.y.reshape(n_items)
    order = np.lexsort((y, graph.groups))
    group = graph.groups[order]
    position = np.arange(n_items)
    starts_group = np.diff(group, prepend=-1) != 0
    starts_level = starts_group | (np.diff(y[order], prepend=0.0) != 0)
    group_start = np.maximum.accumulate(np.where(starts_group, position, 0))
    level_start = np.maximum.accumulate(np.where(starts_level, position, 0))
    end_of_partners = position if graph.ties == "include" else level_start
    for start, items, owner, partner in partner_blocks(
        order, group_start, end_of_partners - group_start
    ):
        weight = graph.pair_weights[graph.groups[items]][owner]
        if graph.item_weights is not None:
            weight *= graph.item_weights[items[owner]] * graph.item_weights[items[partner]]
        first_equal = level_start[start : start + len(items)] - start
        is_tie = partner >= first_equal[owner]
        lost = np.where(is_tie, 0.5 * weight, 0.0)
        yield PairBlock(items, owner, partner, weight, lost)
