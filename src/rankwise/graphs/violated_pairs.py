"""Strict preferences, and which of them a vector of scores violates: what a margin loss needs.

The violated pairs (i → j), those with ``f_i − f_j < 1``, are a graph in which every δ is one. Both
`ViolatedOrderedPairs` and `ViolatedEdgePairs` tell of it

* `weight`, Σ ω, `divergence`, Σ ω (e_i − e_j), and `slack`, Σ ω (1 − (f_i − f_j));
* ``laplacian(v)``, the product of L = Σ ω (e_i − e_j)(e_i − e_j)ᵀ with a vector;
* ``squares()``: value Σ ω slack², flow Σ ω slack (e_i − e_j), offset Σ ω (1 − (f_i − f_j)²), and
  the sizes of the terms that were added up for the offset and for the flow, from which rounding
  is judged.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from rankwise._compiled import count_violated, sort_by_group, sort_in_groups, sum_violated
from rankwise.arrays import Array, Indices
from rankwise.caching import cached_property

if TYPE_CHECKING:
    from rankwise.graphs.pair_graph import PairGraph
    from rankwise.graphs.score_graph import ScoreGraph

SMALL_GROUP = 200  # mean size of groups that are sorted one by one, not all at once


class OrderedPairs:
    """All pairs of different score inside each group, never formed.

    With weights of items, the sweeps add up weights where they count otherwise.

    Parameters
    ----------
    graph : ScoreGraph
        One without ties: gives scores of one output, groups and the weights of the pairs.
    """

    def __init__(self, graph: ScoreGraph) -> None:
        self.graph = graph
        self.n_items, self.n_pairs = graph.n_items, graph.n_pairs
        self.item_weights = graph.item_weights
        self.level = graph.levels.in_group
        self.group = graph.groups.astype(np.int32)
        self.size = np.bincount(graph.groups, minlength=graph.n_groups)
        self.starts = np.cumsum(self.size) - self.size
        self._by_group = sort_by_group(np.arange(self.n_items), self.group, self.starts)
        self.weight_of_item = self.item_weights  # before that of the other item; None if all are 1
        if graph.group_weight == "groups":
            weight = 1.0 if self.item_weights is None else self.item_weights
            self.weight_of_item = graph.pair_weights[graph.groups] * weight
        self.total_weight = graph.total_weight
        if self.item_weights is not None:  # added up as the weights of violated pairs are
            self.total_weight = self.violated(np.zeros(self.n_items)).weight

    def violated(self, f: NDArray[Any]) -> ViolatedOrderedPairs:
        """The pairs whose scores differ by less than one, or in the wrong direction.

        One sort and one sweep: [TreeRSVM11] algorithm 2.
        """
        scores, n_groups = self.center(f), len(self.size)
        if n_groups * SMALL_GROUP > self.n_items:
            order = sort_in_groups(scores, self._by_group, self.starts)
        else:
            order = np.argsort(scores)
            if n_groups > 1:
                order = sort_by_group(order, self.group, self.starts)
        return ViolatedOrderedPairs(self, scores, order)

    def center(self, v: NDArray[Any]) -> Array:
        """Subtract the mean of each group."""
        v = np.asarray(v, dtype=np.float64)
        if len(self.size) == 1:
            return np.asarray(v - v.mean())
        means = np.bincount(self.group, weights=v) / self.size
        return np.asarray(v - means[self.group])


class ViolatedOrderedPairs:
    """The violated pairs of a `OrderedPairs`."""

    def __init__(self, pairs: OrderedPairs, scores: Array, order: Indices) -> None:
        self._pairs, self._scores, self._order = pairs, scores, order
        self._sorted = scores[order], pairs.level[order], pairs.starts
        if pairs.item_weights is None:
            self._lost, self._won = count_violated(*self._sorted)
        else:
            self._lost, self._won = sum_violated(*self._sorted, pairs.item_weights[order])
        self.divergence = self._scatter(self._won - self._lost)
        self.weight = float(self._scatter(self._lost).sum())
        self.slack = self.weight - float(scores @ self.divergence)

    def squares(self) -> tuple[float, Array, float, float, float]:
        """Value, flow, offset and the two sizes."""
        f, d = self._scores, self.divergence
        curved = self.laplacian(f)
        energy, height = float(f @ curved), np.abs(f)
        value = self.weight - 2 * float(f @ d) + energy
        size = self.weight + float(self._degree @ height**2)
        pull = 2 * self.weight + float(self._degree @ height)
        return value, d - curved, self.weight - energy, size, pull

    def laplacian(self, v: Array) -> Array:
        """``L v``."""
        centered, weights = self._pairs.center(v), self._pairs.item_weights
        values = centered if weights is None else centered * weights
        lost, won = sum_violated(*self._sorted, values[self._order])
        return self._degree * centered - self._scatter(lost + won)

    @cached_property
    def _degree(self) -> Array:
        return self._scatter(self._won + self._lost)

    def _scatter(self, values: NDArray[Any]) -> Array:
        out = np.empty(len(values))
        out[self._order] = values
        weight = self._pairs.weight_of_item
        return out if weight is None else out * weight


class EdgePairs:
    """The edges of a PairGraph that have a positive magnitude; those of zero are ties.

    Parameters
    ----------
    graph : PairGraph
        Gives the edges and their weights.
    """

    def __init__(self, graph: PairGraph) -> None:
        strict = graph.magnitude > 0
        graph = self.graph = graph if strict.all() else graph.with_edges(strict)
        self.n_pairs, self.total_weight = self.graph.n_pairs, self.graph.total_weight
        self.winner, self.loser, self.weight = graph.winner, graph.loser, graph.edge_weight

    def violated(self, f: NDArray[Any]) -> ViolatedEdgePairs:
        """The pairs whose scores differ by less than one, or in the wrong direction."""
        f = np.asarray(f, dtype=np.float64)
        slack = 1 - (f[self.winner] - f[self.loser])
        return ViolatedEdgePairs(self, np.flatnonzero(slack > 0), slack)


class ViolatedEdgePairs:
    """The violated pairs of `EdgePairs`."""

    def __init__(self, edges: EdgePairs, short: Indices, slack: Array) -> None:
        self._n_items, self._slack = edges.graph.n_items, slack[short]
        self._winner, self._loser = edges.winner[short], edges.loser[short]
        self._weight = edges.weight[short]
        self.weight = float(self._weight.sum())
        self.divergence = self._flow(self._weight)
        self.slack = float(self._weight @ self._slack)

    def squares(self) -> tuple[float, Array, float, float, float]:
        """Value, flow, offset and the two sizes; from the slack, no difference of large numbers."""
        along = self._weight * self._slack
        each = along * (2 - self._slack)
        value, size = float(along @ self._slack), float(np.abs(each).sum())
        return value, self._flow(along), float(each.sum()), size, 2 * float(along.sum())

    def laplacian(self, v: Array) -> Array:
        """``L v``."""
        return self._flow(self._weight * (v[self._winner] - v[self._loser]))

    def _flow(self, along: Array) -> Array:
        """Σ along_k (e_winner − e_loser)."""
        into = np.bincount(self._winner, weights=along, minlength=self._n_items)
        return np.asarray(into - np.bincount(self._loser, along, self._n_items))
