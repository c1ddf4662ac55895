"""All pairs of a graph in blocks, ties included, for losses that visit every pair."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator
from functools import singledispatch
from typing import NamedTuple

import numpy as np

from rankwise.arrays import Array, Indices
from rankwise.graphs.base import PairGraph, PreferenceGraph
from rankwise.graphs.edges import EdgeArrays
from rankwise.graphs.score_graph import ScoreGraph
from rankwise.groups import group_sums

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
    weight_of_second : ndarray
        Part of ω with which the second item is preferred, at most half of ω; half for a tie.
    """

    items: Indices | slice
    first: Indices
    second: Indices
    weight: Array
    weight_of_second: Array

    def differences(self, v: Array) -> Array:
        """``v_first − v_second`` for each pair."""
        block_values = v[self.items]
        return np.asarray(block_values[self.first] - block_values[self.second])

    def add_net_inflow(self, flows: Array, out: Array) -> None:
        """Add ``Σ flow (e_first − e_second)`` to a vector of all items."""
        # a flow goes from the second item of a pair to the first
        n_items = len(out[self.items])  # of the block
        inflow = np.bincount(self.first, flows, n_items)
        outflow = np.bincount(self.second, flows, n_items)
        out[self.items] += inflow - outflow


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
    """The distinct pairs of a list of edges."""
    pairs = _distinct_pairs(graph)
    n_pairs_of_block = max(BLOCK_PAIRS, graph.n_items)
    for start in range(0, len(pairs.weight), n_pairs_of_block):
        block = slice(start, start + n_pairs_of_block)
        yield PairBlock(
            pairs.items,
            pairs.first[block],
            pairs.second[block],
            pairs.weight[block],
            pairs.weight_of_second[block],
        )


def _distinct_pairs(graph: PairGraph) -> PairBlock:
    """All pairs of a list of edges in one block, with parallel edges added up.

    The first item of a pair is the item that is preferred with more weight.
    """
    # edges between the same two items are one pair, whose first item is the one that more weight
    # prefers
    n_items = graph.n_items
    # number the pairs of items by their smaller and their larger index
    smaller_index = np.minimum(graph.winner, graph.loser)
    larger_index = np.maximum(graph.winner, graph.loser)
    keys, pair_of_edge = np.unique(smaller_index * n_items + larger_index, return_inverse=True)
    low_item, high_item = np.divmod(keys, max(n_items, 1))

    # weight of the preferences for each of the two items; a tie is half a preference for both
    share_of_high = np.where(graph.magnitude > 0, graph.winner > graph.loser, 0.5)
    weight = group_sums(graph.edge_weight, pair_of_edge, len(keys))
    weight_of_high = group_sums(graph.edge_weight * share_of_high, pair_of_edge, len(keys))
    weight_of_low = group_sums(graph.edge_weight * (1 - share_of_high), pair_of_edge, len(keys))

    prefers_high = 2 * weight_of_high > weight
    return PairBlock(
        items=slice(None),
        first=np.where(prefers_high, high_item, low_item),
        second=np.where(prefers_high, low_item, high_item),
        weight=weight,
        weight_of_second=np.where(prefers_high, weight_of_low, weight_of_high),
    )


def edges_of_blocks(blocks: Iterable[PairBlock]) -> EdgeArrays:
    """The pairs of blocks without ties as edges of magnitude 1, without pairs of weight 0."""
    columns = [np.empty((3, 0))]  # winner, loser and weight
    for block in blocks:
        items = np.asarray(block.items)
        columns.append(np.stack([items[block.first], items[block.second], block.weight]))
    winner, loser, weight = np.concatenate(columns, axis=1)
    magnitude = np.ones(len(weight))
    edges = EdgeArrays(winner.astype(np.intp), loser.astype(np.intp), magnitude, weight)
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
    # item k of the order owns the pairs with its partners, which are consecutive in the order, from
    # position first_partner[k] on. A block has all pairs of several owners
    n_pairs_so_far = np.cumsum(n_partners)  # a block ends where a multiple of BLOCK_PAIRS is passed
    cuts = np.flatnonzero(np.diff(n_pairs_so_far // BLOCK_PAIRS, prepend=0))
    for start, stop in itertools.pairwise([0, *cuts.tolist(), len(order)]):
        n_partners_of_owner = n_partners[start:stop]
        if not n_partners_of_owner.any():
            continue
        # positions are counted from the first partner of the block
        block_start = first_partner[start]
        owner_position = np.arange(start, stop) - block_start
        first_partner_position = first_partner[start:stop] - block_start

        # pair k of the block has the partner that follows that of pair k − 1 of the same owner
        first_pair = np.cumsum(n_partners_of_owner) - n_partners_of_owner
        owner = np.repeat(owner_position, n_partners_of_owner)
        partner = np.repeat(first_partner_position - first_pair, n_partners_of_owner)
        partner += np.arange(len(partner))
        yield PartnerBlock(int(block_start), order[block_start:stop], owner, partner)


class _SortedItems(NamedTuple):
    """Items sorted by group and score.

    Attributes
    ----------
    order : ndarray of int
        The items.
    group_start, level_start : ndarray of int
        For each position the first position of the same group, and of the same group and score.
    """

    order: Indices
    group_start: Indices
    level_start: Indices


def _sort_items(graph: ScoreGraph) -> _SortedItems:
    y = graph.y.reshape(graph.n_items)
    order = np.lexsort((y, graph.groups))
    starts_group = np.diff(graph.groups[order], prepend=-1) != 0
    starts_level = starts_group | (np.diff(y[order], prepend=0.0) != 0)
    # for each position the first one of the same group, and of the same group and score
    position = np.arange(graph.n_items)
    group_start = np.maximum.accumulate(np.where(starts_group, position, 0))
    level_start = np.maximum.accumulate(np.where(starts_level, position, 0))
    return _SortedItems(order, group_start, level_start)


def _blocks_of_scores(graph: ScoreGraph) -> Iterator[PairBlock]:
    """Items sorted by group and score, each with the items of its group before it.

    If ties are excluded, these are the items of lower score only.
    """
    # the partners of an item are the items of its group before it in the order of their scores, and
    # it is preferred to them; a tie is half a preference for each
    order, group_start, level_start = _sort_items(graph)
    partners_stop = level_start
    if graph.ties == "include":
        partners_stop = np.arange(graph.n_items)
    n_partners = partners_stop - group_start
    for start, items, owner, partner in partner_blocks(order, group_start, n_partners):
        weight_of_item = graph.pair_weights[graph.groups[items]]
        weight = weight_of_item[owner]
        if graph.item_weights is not None:
            weight *= graph.item_weights[items[owner]] * graph.item_weights[items[partner]]
        level_start_in_block = level_start[start : start + len(items)] - start
        is_tie = partner >= level_start_in_block[owner]
        weight_of_second = np.where(is_tie, 0.5 * weight, 0.0)
        yield PairBlock(items, owner, partner, weight, weight_of_second)
