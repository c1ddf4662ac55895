"""All pairs of a graph, ties included, a block at a time: what a loss without a sweep needs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from rankwise.arrays import Array, Indices
from rankwise.graphs.graph import PreferenceGraph
from rankwise.graphs.pair_graph import PairGraph
from rankwise.graphs.score_graph import ScoreGraph

BLOCK_PAIRS = 2**13  # in float64 they stay in the cache
STORED_PAIRS = 2**20  # so many pairs are kept between two looks at them
MOMENT_ITEMS = 20_000


class PairBlock(NamedTuple):
    """Some pairs of items.

    Attributes
    ----------
    items : slice
        Where the items of the block are in a vector that `ComparedPairs.arrange` made.
    first, second : ndarray of int
        The two items of each pair, numbered inside the slice.
    weight : ndarray
        ω of each pair.
    lost : ndarray
        The part of ω in which the second item is preferred, at most half of it: half for a tie.
    """

    items: slice
    first: Indices
    second: Indices
    weight: Array
    lost: Array

    def differences(self, v: Array) -> Array:
        """``v_first − v_second`` for each pair, of an arranged vector."""
        own = v[self.items]
        return np.asarray(own[self.first] - own[self.second])

    def add_flows(self, flows: Array, out: Array) -> None:
        """Add ``Σ flow (e_first − e_second)`` to an arranged vector."""
        own = out[self.items]
        own += np.bincount(self.first, flows, len(own))
        own -= np.bincount(self.second, flows, len(own))


class ComparedPairs(Protocol):
    """The pairs of a graph; a tie is half a preference in each direction."""

    @property
    def n_items(self) -> int:
        """Number of items."""

    @property
    def n_pairs(self) -> int:
        """Number of pairs that the graph has."""

    @property
    def total_weight(self) -> float:
        """W, the sum of the weights of the pairs."""

    @property
    def blocks(self) -> Sequence[PairBlock] | Blocks:
        """The pairs; a sequence if there are few enough to be kept."""

    def arrange(self, v: NDArray[Any]) -> Array:
        """The values of the items in the order of the blocks, in float64."""

    def place(self, v: Array) -> Array:
        """Arranged values in the order of the items."""

    def sample(self, step: int) -> tuple[Indices, ComparedPairs] | None:
        """About one of `step` items with the pairs among them; None where that makes no sense."""

    def second_moment(self, R: Any) -> Array:
        """Mean of ``(r_i − r_j)(r_i − r_j)ᵀ`` over the pairs, or over a part of them if many."""


class Blocks:
    """Blocks of pairs that are made again each time they are looked at."""

    def __init__(self, order: _ComparedOrder) -> None:
        self._order = order

    def __iter__(self) -> Iterator[PairBlock]:
        return self._order.make_blocks()


def compare_pairs(graph: PreferenceGraph) -> ComparedPairs:
    """The pairs of any graph; those of scored items are never all in memory if they are many."""
    if isinstance(graph, ScoreGraph):
        return _ComparedOrder(graph)
    return _ComparedEdges(graph.pairs())


class _ComparedEdges:
    """Explicit edges; those between the same two items are added up."""

    def __init__(self, graph: PairGraph) -> None:
        self._graph = graph
        self.n_items, self.n_pairs = graph.n_items, graph.n_pairs
        self.total_weight = graph.total_weight

    @cached_property
    def blocks(self) -> list[PairBlock]:
        """One list of the distinct pairs, the item that is preferred more often first."""
        graph, n = self._graph, self.n_items
        low, high = np.minimum(graph.winner, graph.loser), np.maximum(graph.winner, graph.loser)
        distinct, number = np.unique(low * n + high, return_inverse=True)
        weight = np.asarray(np.bincount(number, graph.edge_weight), np.float64)
        share = np.where(graph.magnitude > 0, graph.winner > graph.loser, 0.5)
        lost = np.asarray(np.bincount(number, graph.edge_weight * share), np.float64)
        swapped = 2 * lost > weight
        lost = np.where(swapped, np.bincount(number, graph.edge_weight * (1 - share)), lost)
        first, second = np.divmod(distinct, max(n, 1))
        first, second = np.where(swapped, second, first), np.where(swapped, first, second)
        size, every = max(BLOCK_PAIRS, n), slice(0, n)
        cuts = (slice(start, start + size) for start in range(0, len(distinct), size))
        return [PairBlock(every, first[cut], second[cut], weight[cut], lost[cut]) for cut in cuts]

    def arrange(self, v: NDArray[Any]) -> Array:
        return np.asarray(v, dtype=np.float64)

    def place(self, v: Array) -> Array:
        return v

    def sample(self, step: int) -> None:
        """No part of the items: it would have few edges left."""
        return None

    def second_moment(self, R: Any) -> Array:
        return self._graph.gram(R) / self.total_weight


class _ComparedOrder:
    """All pairs inside the groups of a ScoreGraph.

    With the items sorted by group and score, those that an item is compared with as the first of
    the pair are the ones before it in its group, without those of the same score if ties are out.
    """

    def __init__(self, graph: ScoreGraph) -> None:
        graph.strict()  # refuses the relative cost
        self._graph = graph
        self.n_items, self.n_pairs = graph.n_items, graph.n_pairs
        self.total_weight = graph.total_weight
        self._has_ties = graph.ties == "include"
        self._order = np.lexsort((graph.y.reshape(self.n_items), graph.groups))
        group, y = graph.groups[self._order], graph.y.reshape(self.n_items)[self._order]
        position = np.arange(self.n_items)
        new_group = np.diff(group, prepend=-1) != 0
        new_level = new_group | (np.diff(y, prepend=0.0) != 0)
        self._start = np.maximum.accumulate(np.where(new_group, position, 0))
        self._level = np.maximum.accumulate(np.where(new_level, position, 0))
        self._count = (position if self._has_ties else self._level) - self._start
        self._weight = graph.pair_weights[group]
        self._own = None if graph.item_weights is None else graph.item_weights[self._order]

    @cached_property
    def blocks(self) -> list[PairBlock] | Blocks:
        return list(self.make_blocks()) if self.n_pairs <= STORED_PAIRS else Blocks(self)

    def make_blocks(self) -> Iterator[PairBlock]:
        """Consecutive items and those that they are compared with."""
        total = np.cumsum(self._count)
        cuts = np.flatnonzero(np.diff(total // BLOCK_PAIRS, prepend=0))
        for start, stop in zip(np.r_[0, cuts], np.r_[cuts, self.n_items], strict=True):
            if stop > start and total[stop - 1] > total[start] - self._count[start]:
                yield self._block(start, stop)

    def _block(self, start: int, stop: int) -> PairBlock:
        count = self._count[start:stop]
        base = int(self._start[start])
        before = np.cumsum(count) - count
        first = np.repeat(np.arange(start, stop) - base, count)
        second = np.repeat(self._start[start:stop] - base - before, count)
        second += np.arange(len(second))
        weight = np.repeat(self._weight[start:stop], count)
        if self._own is not None:
            weight *= self._own[first + base] * self._own[second + base]
        lost = np.zeros_like(weight)
        if self._has_ties:
            tied = second >= np.repeat(self._level[start:stop] - base, count)
            np.multiply(weight, 0.5, out=lost, where=tied)
        return PairBlock(slice(base, int(stop)), first, second, weight, lost)

    def arrange(self, v: NDArray[Any]) -> Array:
        return np.asarray(v, dtype=np.float64)[self._order]

    def place(self, v: Array) -> Array:
        out = np.empty_like(v)
        out[self._order] = v
        return out

    def sample(self, step: int) -> tuple[Indices, ComparedPairs] | None:
        found = self._graph.strict().sample(step)
        if found is None:
            return None
        return found[0], _ComparedOrder(self._graph.subset(found[0]))

    def second_moment(self, R: Any) -> Array:
        """``Rᵀ L R/W``, of a sample of the items if there are many."""
        graph = self._graph
        if self.n_items > 2 * MOMENT_ITEMS:
            found = graph.strict().sample(self.n_items // MOMENT_ITEMS)
            if found is not None:
                graph, R = graph.subset(found[0]), R[found[0]]
        return graph.gram(R) / graph.total_weight
