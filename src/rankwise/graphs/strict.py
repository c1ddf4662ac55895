"""Strict preferences, and which of them a vector of scores violates: what a margin loss needs."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from rankwise._compiled import count_violated, sort_by_group, sort_in_groups, sum_violated
from rankwise.arrays import Array

if TYPE_CHECKING:
    from rankwise.graphs.pair_graph import PairGraph
    from rankwise.graphs.score_graph import ScoreGraph

SMALL_GROUP = 200  # mean size of groups that are sorted one by one, not all at once
MOMENT_ITEMS = 20_000
DRAWS = 60_000  # pairs that are looked at to find some near the margin


class WeighedPairs(NamedTuple):
    """Some pairs (winner → loser) with weights."""

    winner: NDArray[np.intp]
    loser: NDArray[np.intp]
    weight: Array

    def moment(self, R: Any) -> Array:
        """``Σ weight (r_i − r_j)(r_i − r_j)ᵀ``."""
        D = R[self.winner] - R[self.loser]
        D = np.asarray(D.toarray() if hasattr(D, "toarray") else D, dtype=np.float64)
        D *= np.sqrt(self.weight)[:, None]
        return np.asarray(D.T @ D)


class Squares(NamedTuple):
    """Sums over violated pairs of what the square of their slack 1 − (f_i − f_j) consists of.

    Attributes
    ----------
    value : float
        Σ ω slack².
    flow : ndarray of shape (n_items,)
        Σ ω slack (e_i − e_j).
    offset : float
        Σ ω (1 − (f_i − f_j)²).
    size, pull : float
        Sizes of the terms that were added up for the offset and for the flow: how far rounding
        goes.
    """

    value: float
    flow: Array
    offset: float
    size: float
    pull: float


class Violated(Protocol):
    """The pairs (i → j) with ``f_i − f_j < 1``: a preference graph in which every δ is one.

    Attributes
    ----------
    weight : float
        Σ ω over these pairs.
    divergence : ndarray of shape (n_items,)
        Σ ω (e_i − e_j).
    slack : float
        Σ ω (1 − (f_i − f_j)).
    """

    weight: float
    divergence: Array
    slack: float

    def squares(self) -> Squares:
        """Sums of squares of the slack."""

    def laplacian(self, v: Array) -> Array:
        """``L v`` with L = Σ ω (e_i − e_j)(e_i − e_j)ᵀ."""


class StrictPreferences(Protocol):
    """Pairs (i → j), all of them strict, known by which of them a score vector violates."""

    @property
    def n_items(self) -> int:
        """Number of items."""

    @property
    def n_pairs(self) -> int:
        """Number of pairs."""

    @property
    def total_weight(self) -> float:
        """W, the sum of the weights of the pairs."""

    def violated(self, f: NDArray[Any]) -> Violated:
        """The pairs whose scores differ by less than one, or in the wrong direction."""

    def sample(self, step: int) -> tuple[NDArray[np.intp], StrictPreferences] | None:
        """About one of `step` items with the pairs among them; None where that makes no sense."""

    def second_moment(self, R: Any) -> Array:
        """Mean of ``(r_i − r_j)(r_i − r_j)ᵀ`` over the pairs, or over a part of them if many."""

    def near_margin(self, f: Array, width: float) -> WeighedPairs:
        """Some pairs with ``|1 − (f_i − f_j)| < width``; weights sum up to their share."""


class StrictOrder:
    """All pairs of different score inside each group, never formed.

    With weights of items, the sweeps add up weights where they count otherwise.

    Parameters
    ----------
    graph : ScoreGraph
        One without ties: gives scores of one output, groups and the weights of the pairs.
    """

    def __init__(self, graph: ScoreGraph) -> None:
        self._graph = graph
        self.item_weights = graph.item_weights
        self.n_items, self.n_pairs = graph.n_items, graph.n_pairs
        self.total_weight = graph.total_weight
        self._level = graph.levels.in_group
        self._group = graph.groups.astype(np.int32)
        self._size = np.bincount(graph.groups, minlength=graph.n_groups)
        self._starts = np.cumsum(self._size) - self._size

    def violated(self, f: NDArray[Any]) -> Violated:
        """One sort and one sweep: [TreeRSVM11] algorithm 2."""
        scores = self.center(f)
        return _ViolatedOrder(self, scores, self._sort(scores))

    def _sort(self, scores: Array) -> NDArray[np.intp]:
        n_groups = self._graph.n_groups
        if n_groups * SMALL_GROUP > self.n_items:
            order: NDArray[np.intp] = sort_in_groups(scores, self._by_group, self._starts)
            return order
        order = np.argsort(scores)
        return order if n_groups == 1 else sort_by_group(order, self._group, self._starts)

    def sample(self, step: int) -> tuple[NDArray[np.intp], StrictOrder] | None:
        """Every so many groups if there are enough of them, else every so many levels of each."""
        n_groups = self._graph.n_groups
        if n_groups >= 100 * step:
            rows = np.flatnonzero(self._graph.groups % step == 0)
        else:
            by_level = np.argsort(self._graph.levels.of_item, kind="stable")
            rows = np.sort(by_level[::step])
        part = StrictOrder(self._graph.subset(rows))
        return (rows, part) if part.n_pairs else None

    def second_moment(self, R: Any) -> Array:
        """``Rᵀ L R/W``, of a sample of the items if there are many."""
        part = self
        if self.n_items > 2 * MOMENT_ITEMS:
            sample = self.sample(self.n_items // MOMENT_ITEMS)
            if sample is not None:
                part, R = sample[1], R[sample[0]]
        return part._graph.gram(R) / part.total_weight

    def near_margin(self, f: Array, width: float) -> WeighedPairs:
        """Of random pairs inside the groups; the same ones every time."""
        rng = np.random.default_rng(0)
        a = rng.integers(self.n_items, size=DRAWS)
        group = self._group[a]
        size = self._size[group]
        b = self._by_group[self._starts[group] + rng.integers(size)]
        strict = self._level[a] != self._level[b]
        a, b, group, size = a[strict], b[strict], group[strict], size[strict]
        first = self._level[a] > self._level[b]
        winner, loser = np.where(first, a, b), np.where(first, b, a)
        weight = np.asarray(size * self._graph.pair_weights[group], dtype=np.float64)
        if self.item_weights is not None:
            weight *= self.item_weights[a] * self.item_weights[b]
        near = np.abs(1 - (f[winner] - f[loser])) < width
        share = weight[near] / max(weight.sum(), np.finfo(float).tiny)
        return WeighedPairs(winner[near], loser[near], share)

    def center(self, v: NDArray[Any]) -> Array:
        """Subtract the mean of each group."""
        v = np.asarray(v, dtype=np.float64)
        if self._graph.n_groups == 1:
            return np.asarray(v - v.mean())
        means = np.bincount(self._group, weights=v) / self._size
        return np.asarray(v - means[self._group])

    @cached_property
    def _by_group(self) -> NDArray[np.intp]:
        every = np.arange(self.n_items)
        order: NDArray[np.intp] = sort_by_group(every, self._group, self._starts)
        return order

    @cached_property
    def weight_of_item(self) -> Array | float:
        """What the pairs of an item weigh, before the weight of the other item."""
        own = 1.0 if self.item_weights is None else self.item_weights
        if self._graph.group_weight == "pairs":
            return own
        return np.asarray(self._graph.pair_weights[self._graph.groups] * own)


class _ViolatedOrder:
    def __init__(self, pairs: StrictOrder, scores: Array, order: NDArray[np.intp]) -> None:
        self._pairs, self._order = pairs, order
        self._scores = scores
        self._sorted = scores[order], pairs._level[order], pairs._starts
        if pairs.item_weights is None:
            self._lost, self._won = count_violated(*self._sorted)
        else:
            self._lost, self._won = sum_violated(*self._sorted, pairs.item_weights[order])
        self.divergence = self._scatter(self._won - self._lost)
        weight = pairs.weight_of_item
        own = weight if isinstance(weight, float) else weight[order]
        self.weight = float((self._lost * own).sum())
        self.slack = self.weight - float(scores @ self.divergence)

    def squares(self) -> Squares:
        f, d = self._scores, self.divergence
        curved = self.laplacian(f)
        energy, height = float(f @ curved), np.abs(f)
        value = self.weight - 2 * float(f @ d) + energy
        size = self.weight + float(self._degree @ height**2)
        pull = 2 * self.weight + float(self._degree @ height)
        return Squares(value, d - curved, self.weight - energy, size, pull)

    @cached_property
    def _degree(self) -> Array:
        return self._scatter(self._won + self._lost)

    def laplacian(self, v: Array) -> Array:
        centered = self._pairs.center(v)
        values = centered
        if self._pairs.item_weights is not None:
            values = centered * self._pairs.item_weights
        lost, won = sum_violated(*self._sorted, values[self._order])
        return self._degree * centered - self._scatter(lost + won)

    def _scatter(self, values: NDArray[Any]) -> Array:
        out = np.empty(len(values))
        out[self._order] = values
        out *= self._pairs.weight_of_item
        return out


class StrictEdges:
    """The edges of a PairGraph that have a positive magnitude.

    Parameters
    ----------
    graph : PairGraph
        Gives the edges and their weights; magnitudes of zero are ties and left out.
    """

    def __init__(self, graph: PairGraph) -> None:
        strict = graph.magnitude > 0
        graph = graph if strict.all() else graph.with_edges(strict)
        self.n_items = graph.n_items
        self.winner, self.loser, self.weight = graph.winner, graph.loser, graph.edge_weight
        self.n_pairs = len(self.winner)
        self.total_weight = float(self.weight.sum())

    def violated(self, f: NDArray[Any]) -> Violated:
        """Look at every edge."""
        f = np.asarray(f, dtype=np.float64)
        slack = 1 - (f[self.winner] - f[self.loser])
        short = slack > 0
        edges = WeighedPairs(self.winner[short], self.loser[short], self.weight[short])
        return _ViolatedEdges(edges, slack[short], self.n_items)

    def sample(self, step: int) -> None:
        """No part of the items: it would have few edges left."""
        return None

    def second_moment(self, R: Any) -> Array:
        """Of every so many edges if there are many."""
        some = self._every(1 + self.n_pairs // MOMENT_ITEMS)
        return np.asarray(some.moment(R) / some.weight.sum())

    def near_margin(self, f: Array, width: float) -> WeighedPairs:
        """Of every so many edges if there are many."""
        some = self._every(1 + self.n_pairs // DRAWS)
        near = np.abs(1 - (f[some.winner] - f[some.loser])) < width
        share = some.weight[near] / some.weight.sum()
        return WeighedPairs(some.winner[near], some.loser[near], share)

    def _every(self, step: int) -> WeighedPairs:
        return WeighedPairs(self.winner[::step], self.loser[::step], self.weight[::step])


class _ViolatedEdges:
    def __init__(self, edges: WeighedPairs, slack: Array, n_items: int) -> None:
        self._edges, self._slack, self._n_items = edges, slack, n_items
        self.weight = float(edges.weight.sum())
        self.divergence = self._flow(edges.weight)
        self.slack = float(edges.weight @ slack)

    def squares(self) -> Squares:
        """From the slack itself: no difference of large numbers."""
        slack, along = self._slack, self._edges.weight * self._slack
        each = along * (2 - slack)
        size = float(np.abs(each).sum())
        value = float(along @ slack)
        return Squares(value, self._flow(along), float(each.sum()), size, 2 * float(along.sum()))

    def laplacian(self, v: Array) -> Array:
        winner, loser, weight = self._edges
        return self._flow(weight * (v[winner] - v[loser]))

    def _flow(self, along: Array) -> Array:
        """Σ along_k (e_winner − e_loser)."""
        n = self._n_items
        into = np.bincount(self._edges.winner, weights=along, minlength=n)
        return np.asarray(into - np.bincount(self._edges.loser, weights=along, minlength=n))
