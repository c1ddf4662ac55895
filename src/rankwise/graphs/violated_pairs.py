"""Strict preferences, and the preferences that a vector of scores violates; for pairwise losses.

The violated pairs (i → j), those with ``f_i − f_j < 1``, are a graph in which every δ is one.
`ViolatedOrderedPairs` and `ViolatedEdgePairs` both have

* `weight`, Σ ω, `divergence`, Σ ω (e_i − e_j), and `slack`, Σ ω (1 − (f_i − f_j));
* ``laplacian(v)``, the product of L = Σ ω (e_i − e_j)(e_i − e_j)ᵀ with a vector;
* ``squared_hinge_sums()``, the sums of the squared hinge; see `SquaredHingeSums`.
"""

from __future__ import annotations

from functools import singledispatch
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rankwise._compiled import count_violated, sort_by_group, sort_in_groups, sum_violated
from rankwise.arrays import Array, Indices
from rankwise.caching import cached_property
from rankwise.graphs.base import PairGraph, PreferenceGraph
from rankwise.graphs.score_graph import ScoreGraph

SMALL_GROUP = 200  # largest mean size of groups that are sorted one by one


class SquaredHingeSums(NamedTuple):
    """Sums over the violated pairs, from which the squared hinge and its derivatives follow.

    Attributes
    ----------
    loss : float
        Σ ω slack².
    negative_half_gradient : ndarray of shape (n_items,)
        Σ ω slack (e_i − e_j).
    offset : float
        Σ ω (1 − (f_i − f_j)²).
    offset_terms, half_gradient_terms : float
        Sums of the absolute terms of offset and gradient, which bound their rounding errors.
    """

    loss: float
    negative_half_gradient: Array
    offset: float
    offset_terms: float
    half_gradient_terms: float


class OrderedPairs:
    """All pairs of different level inside each group; the pairs are not listed.

    With weights of items, the sweeps add up weights instead of counting.

    Parameters
    ----------
    graph : PreferenceGraph
        Items, groups and weights of the pairs.
    level : ndarray of int32, shape (n_items,)
        Level of each item in its group; the item of the higher level is preferred.
    group_factor : ndarray of shape (n_groups,), optional
        Factor of the weights of the pairs of each group.
    can_lose : ndarray of bool, shape (n_items,), optional
        Items to which an item of a higher level is preferred; all items if not given.
    """

    def __init__(
        self,
        graph: PreferenceGraph,
        level: NDArray[np.int32],
        group_factor: Array | None = None,
        can_lose: NDArray[np.bool_] | None = None,
    ) -> None:
        self.graph = graph
        self.n_items = graph.n_items
        self.n_pairs = graph.n_pairs
        self.item_weights = graph.item_weights
        self.level = level
        self.can_lose = can_lose
        self.group = graph.groups.astype(np.int32)
        self.group_sizes = np.bincount(graph.groups, minlength=graph.n_groups)
        self.group_starts = np.cumsum(self.group_sizes) - self.group_sizes
        every_item = np.arange(self.n_items)
        self._items_by_group = sort_by_group(every_item, self.group, self.group_starts)
        self.weight_of_item = self._find_weight_of_item(group_factor)
        self.total_weight = graph.total_weight
        if self.item_weights is not None:  # added up in the same way as weights of violated pairs
            self.total_weight = self.violated(np.zeros(self.n_items)).weight

    def _find_weight_of_item(self, group_factor: Array | None) -> Array | None:
        """Factor of each item in the weights of its pairs; None if all are 1."""
        if group_factor is None:
            return self.item_weights
        factor = group_factor[self.graph.groups]
        if self.item_weights is None:
            return factor
        return np.asarray(factor * self.item_weights)

    def violated(self, f: NDArray[np.floating]) -> ViolatedOrderedPairs:
        """Pairs whose scores differ by less than one, or in the wrong direction.

        One sort and one sweep: [TreeRSVM11] algorithm 2.
        """
        scores = self.center(f)
        n_groups = len(self.group_sizes)
        has_small_groups = n_groups * SMALL_GROUP > self.n_items
        if has_small_groups:
            order = sort_in_groups(scores, self._items_by_group, self.group_starts)
        else:
            order = np.argsort(scores)
            if n_groups > 1:
                order = sort_by_group(order, self.group, self.group_starts)
        return ViolatedOrderedPairs(self, scores, order)

    def center(self, v: NDArray[np.floating]) -> Array:
        """Subtract the mean of each group."""
        v = np.asarray(v, dtype=np.float64)
        if len(self.group_sizes) == 1:
            return np.asarray(v - v.mean())
        group_means = np.bincount(self.group, weights=v) / self.group_sizes
        return np.asarray(v - group_means[self.group])


class ViolatedOrderedPairs:
    """The violated pairs of `OrderedPairs`."""

    def __init__(self, pairs: OrderedPairs, scores: Array, order: Indices) -> None:
        self._pairs = pairs
        self._scores = scores
        self._order = order  # items by group and score
        self._sorted_scores = scores[order]
        self._sorted_level = pairs.level[order]
        # for each sorted item the weight of its partners in violated pairs that it should lose, and
        # in violated pairs that it should win; counts if there are no weights
        if pairs.item_weights is not None:
            self._weight_lost, self._weight_won = self._sums_over_partners(pairs.item_weights)
        elif pairs.can_lose is not None:
            self._weight_lost, self._weight_won = self._sums_over_partners(np.ones(pairs.n_items))
        else:
            self._weight_lost, self._weight_won = count_violated(
                self._sorted_scores, self._sorted_level, pairs.group_starts
            )
        self.divergence = self._to_items(self._weight_won - self._weight_lost)
        self.weight = float(self._to_items(self._weight_lost).sum())  # each pair once, at its loser
        # Σ ω (1 − (f_winner − f_loser)) over the violated pairs
        self.slack = self.weight - float(scores @ self.divergence)

    def squared_hinge_sums(self) -> SquaredHingeSums:
        """Sums of the squared hinge."""
        # sums over the violated pairs (i, j) with their weights ω
        f = self._scores
        laplacian_f = self.laplacian(f)
        sum_of_differences = float(f @ self.divergence)  # Σ ω (f_i − f_j)
        sum_of_squares = float(f @ laplacian_f)  # Σ ω (f_i − f_j)²
        absolute_f = np.abs(f)
        # for the difference d of a pair (1 − d)² = 1 − 2 d + d², and also (1 − d²) − 2 d (1 − d):
        # the second form has the terms of the offset and of the gradient
        return SquaredHingeSums(
            loss=self.weight - 2 * sum_of_differences + sum_of_squares,
            negative_half_gradient=self.divergence - laplacian_f,
            offset=self.weight - sum_of_squares,
            offset_terms=self.weight + float(self._degree @ absolute_f**2),
            half_gradient_terms=2 * self.weight + float(self._degree @ absolute_f),
        )

    def laplacian(self, v: Array) -> Array:
        """``L v``."""
        centered = self._pairs.center(v)
        weighted = centered
        if self._pairs.item_weights is not None:
            weighted = centered * self._pairs.item_weights
        sum_over_winners, sum_over_losers = self._sums_over_partners(weighted)
        return self._degree * centered - self._to_items(sum_over_winners + sum_over_losers)

    def _sums_over_partners(self, values: Array) -> tuple[Array, Array]:
        """For each sorted item the sums of values over the items that beat it, and that it beats.

        Over violated pairs only.
        """
        can_lose = self._pairs.can_lose
        if can_lose is None:
            return self._sum_over_violated_partners(values)
        # items that cannot lose are in pairs as winners only
        sum_over_winners, _ = self._sum_over_violated_partners(values)
        _, sum_over_losers = self._sum_over_violated_partners(np.where(can_lose, values, 0.0))
        return np.where(can_lose[self._order], sum_over_winners, 0.0), sum_over_losers

    def _sum_over_violated_partners(self, values: Array) -> tuple[Array, Array]:
        """`_sums_over_partners` if every item can lose."""
        sums: tuple[Array, Array] = sum_violated(
            self._sorted_scores, self._sorted_level, self._pairs.group_starts, values[self._order]
        )
        return sums

    @cached_property
    def _degree(self) -> Array:
        """Weight of the violated pairs of each item: the diagonal of L."""
        return self._to_items(self._weight_won + self._weight_lost)

    def _to_items(self, sorted_values: NDArray[np.number]) -> Array:
        """Values of sorted items in the order of the items, times the weights of the items."""
        item_values = np.empty(len(sorted_values))
        item_values[self._order] = sorted_values
        weight = self._pairs.weight_of_item
        if weight is None:
            return item_values
        return np.asarray(item_values * weight)


class PairCounts(NamedTuple):
    """Weights of pairs in each subset of the items, or of the pairs of each item.

    Attributes
    ----------
    total, discordant, tied : ndarray
        All pairs, those in the wrong order, and those with equal scores.
    """

    total: Array
    discordant: Array
    tied: Array

    @property
    def errors(self) -> Array:
        """Weight of the discordant pairs, and half that of the tied ones."""
        return np.asarray(self.discordant + 0.5 * self.tied)

    def sum_by(self, codes: Indices, n_codes: int) -> PairCounts:
        """Sums of the entries of each code."""
        sums = [np.bincount(codes, counts, n_codes).astype(np.float64) for counts in self]
        return PairCounts(*sums)


def count_ordered_pairs(
    scores: NDArray[Any],
    level: NDArray[np.int32],
    subset_of_item: Indices,
    loser_weight: Array,
    winner_weight: Array,
) -> tuple[PairCounts, PairCounts]:
    """Count the pairs of different level by their scores, for each item.

    Parameters
    ----------
    scores : ndarray of shape (n_items,)
        Predicted scores.
    level : ndarray of int32, shape (n_items,)
        Level of each item; the item of the higher level should have the higher score.
    subset_of_item : ndarray of int, shape (n_items,)
        Number of the subset of each item; only pairs inside a subset are counted.
    loser_weight, winner_weight : ndarray of shape (n_items,)
        The weight of a pair is the product of the first of its lower item and the second of its
        higher item.

    Returns
    -------
    as_loser, as_winner : PairCounts
        Pairs in which the item has the lower level, and the higher level.
    """
    n_items = len(scores)
    n_subsets = subset_of_item.max(initial=-1) + 1

    def weigh_violated(margin: Array) -> Array:
        """Pairs whose winner has a margin below that of the loser plus one, shape (2, n_items)."""
        # weights of the violated pairs of each item, those in which the margin of the winner is
        # less than that of the loser plus 1
        order = np.lexsort((margin, subset_of_item))
        starts = np.searchsorted(subset_of_item[order], np.arange(n_subsets))
        weight_of_winners, _ = sum_violated(
            margin[order], level[order], starts, winner_weight[order]
        )
        _, weight_of_losers = sum_violated(margin[order], level[order], starts, loser_weight[order])
        weights = np.empty((2, n_items))  # row 0: of each item as loser; row 1: as winner
        weights[0, order] = loser_weight[order] * weight_of_winners
        weights[1, order] = winner_weight[order] * weight_of_losers
        return weights

    # a pair is violated unless its winner has a higher margin by at least 1: with ranks as
    # margins, unless the winner has the higher score (it is concordant); with zeros, every pair
    _, rank = np.unique(scores, return_inverse=True)
    margin = rank.astype(np.float64)
    total = weigh_violated(np.zeros(n_items))
    not_concordant = weigh_violated(margin)
    not_discordant = weigh_violated(-margin)
    tied = np.maximum(not_concordant + not_discordant - total, 0.0)
    discordant = total - not_discordant
    as_loser = PairCounts(total[0], discordant[0], tied[0])
    as_winner = PairCounts(total[1], discordant[1], tied[1])
    return as_loser, as_winner


class EdgePairs:
    """The edges of a PairGraph with positive magnitude; the other edges are ties.

    Parameters
    ----------
    graph : PairGraph
        Edges and their weights.
    """

    def __init__(self, graph: PairGraph) -> None:
        is_strict = graph.magnitude > 0
        if not is_strict.all():
            graph = graph.with_edges(is_strict)
        self.graph = graph
        self.n_pairs = graph.n_pairs
        self.total_weight = graph.total_weight
        self.winner = graph.winner
        self.loser = graph.loser
        self.weight = graph.edge_weight

    def violated(self, f: NDArray[np.floating]) -> ViolatedEdgePairs:
        """Pairs whose scores differ by less than one, or in the wrong direction."""
        f = np.asarray(f, dtype=np.float64)
        slack = 1 - (f[self.winner] - f[self.loser])
        return ViolatedEdgePairs(self, np.flatnonzero(slack > 0), slack)


class ViolatedEdgePairs:
    """The violated pairs of `EdgePairs`."""

    def __init__(self, pairs: EdgePairs, violated: Indices, slack: Array) -> None:
        self._n_items = pairs.graph.n_items
        self._slack = slack[violated]  # 1 − (f_winner − f_loser)
        self._winner = pairs.winner[violated]
        self._loser = pairs.loser[violated]
        self._weight = pairs.weight[violated]
        self.weight = float(self._weight.sum())
        self.divergence = self._net_inflow(self._weight)
        self.slack = float(self._weight @ self._slack)

    def squared_hinge_sums(self) -> SquaredHingeSums:
        """Sums of the squared hinge, computed from the slack without cancellation."""
        # slack = 1 − (f_i − f_j) of the pairs, all positive
        weighted_slack = self._weight * self._slack
        offset_terms = weighted_slack * (2 - self._slack)  # ω (1 − (f_i − f_j)²)
        return SquaredHingeSums(
            loss=float(weighted_slack @ self._slack),
            negative_half_gradient=self._net_inflow(weighted_slack),
            offset=float(offset_terms.sum()),
            offset_terms=float(np.abs(offset_terms).sum()),
            half_gradient_terms=2 * float(weighted_slack.sum()),
        )

    def laplacian(self, v: Array) -> Array:
        """``L v``."""
        difference = v[self._winner] - v[self._loser]
        return self._net_inflow(self._weight * difference)

    def _net_inflow(self, flow: Array) -> Array:
        """Σ flow_k (e_winner − e_loser)."""
        inflow = np.bincount(self._winner, weights=flow, minlength=self._n_items)
        outflow = np.bincount(self._loser, weights=flow, minlength=self._n_items)
        return np.asarray(inflow - outflow)


@singledispatch
def strict_pairs(graph: PreferenceGraph) -> OrderedPairs | EdgePairs:
    """Strict preferences of a graph, without ties.

    Edges are listed unless another function is registered for the class of the graph.
    """
    return EdgePairs(graph.pairs())


@strict_pairs.register
def _strict_pairs_of_scores(graph: ScoreGraph) -> OrderedPairs:
    if graph.cost == "relative":
        raise ValueError(
            "a ScoreGraph with cost='relative' is not supported, because every pair has its own "
            "weight; use cost='sign', or graph.pairs() for a small graph."
        )
    strict_graph = graph.sign_graph()
    group_factor = None
    if graph.group_weight == "groups":
        group_factor = strict_graph.pair_weights
    return OrderedPairs(strict_graph, strict_graph.levels.number_in_group, group_factor)
