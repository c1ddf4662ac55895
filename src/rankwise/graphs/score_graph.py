"""ScoreGraph: the preferences that scores induce inside groups, never formed.

Gram matrices are added up over blocks of rows, around the means of groups and levels. Features may
be an array, or anything that has a shape and gives dense rows when it is indexed, such as kernel
values that are computed a block of rows at a time and never stored.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike

from rankwise.arrays import Array, Indices
from rankwise.caching import cached_property
from rankwise.graphs.base import GraphDescription, PreferenceGraph
from rankwise.graphs.gram import nested_scatter, sums_of_squares
from rankwise.graphs.laplacian_roots import GraphRoot, LevelRoot
from rankwise.graphs.levels import (
    Levels,
    Partition,
    find_levels,
    group_center,
    group_means,
    group_sums,
)
from rankwise.graphs.pair_graph import COSTS, GROUP_WEIGHTS, PairGraph
from rankwise.graphs.supervision import Relevance, check_weight_ratio, read_y
from rankwise.graphs.violated_pairs import OrderedPairs
from rankwise.groups import Groups
from rankwise.runtime.memory import check_matrix_fits
from rankwise.validation import check_option, check_weights

TIES = ("include", "exclude")


class ScoreGraph(PreferenceGraph):
    """All pairs inside each group, preferred by score.

    Rankers make it of y and groups; use it to look at the pairs and their weights.

    With levels = (group, distinct score) and P the item-to-level indicator, every cost below has
    ``L = D − P C Pᵀ`` with one small block of C per group ([RankRLS09] equation 25 is the first):

    * ``cost="magnitude"`` (equation 21): δ = y_i − y_j. With ties, L of a group of n items is n
      times the centering matrix; without, the cliques of equal scores are taken out of it.
    * ``cost="sign"`` (equation 20): δ = 1 for every pair of different scores.
    * ``cost="relative"`` (equation 22): δ = y_i − y_j, weight 1/δ².

    Parameters
    ----------
    y : array-like of shape (n_items,) or (n_items, n_outputs)
        Scores, larger is better. Several outputs only where L does not depend on the scores, that
        is for ``cost="magnitude", ties="include"``. A target of `make_target` is fine, too.
    groups : array-like of shape (n_items,), optional
        Group labels, any hashable ones in any order; None puts all items in one group.
    cost : {"magnitude", "sign", "relative"}
        Which of the three costs of [RankRLS09] section 2.4.
    ties : {"include", "exclude"}
        Whether pairs of equal score are edges of magnitude zero. Only the magnitude cost can have
        them; the other two leave them out whatever is given here.
    group_weight : {"pairs", "groups"}
        "pairs": every pair counts alike; "groups": every group counts alike, a pair weighs one
        over the number of pairs of its group ([RankRLS09] end of section 2.4).
    sample_weight : array-like of shape (n_items,), optional
        Weights of the items, 0 or larger: a pair weighs the product of its two, divided under
        ``group_weight="groups"`` by the sum of these products in its group. An item of weight 0
        is in no pair.

    Examples
    --------
    >>> graph = ScoreGraph([3, 1, 1, 5, 4], groups=["a", "a", "a", "b", "b"])
    >>> graph.n_pairs
    4
    >>> graph.divergence
    array([ 4., -2., -2.,  1., -1.])
    >>> print(graph.describe())
    items                 5
    groups                2
    pairs                 4
    tied pairs            1
    groups without pairs  0
    isolated items        0
    total weight          4
    """

    scores: Array

    def __init__(
        self,
        y: ArrayLike | Relevance,
        groups: ArrayLike | None = None,
        *,
        cost: str = "magnitude",
        ties: str = "include",
        group_weight: str = "pairs",
        sample_weight: ArrayLike | None = None,
    ) -> None:
        check_option("cost", cost, COSTS)
        check_option("ties", ties, TIES)
        check_option("group_weight", group_weight, GROUP_WEIGHTS)
        target = read_y(y, groups, sample_weight)
        if target.groups is None:
            raise ValueError(
                f"y is a {type(target.y).__name__}, which is a PreferenceGraph already; expected "
                "the scores of the items."
            )
        scores = target.y if target is y else target.y.copy()  # the caller may change y
        ties = ties if cost == "magnitude" else "exclude"
        if scores.ndim == 2 and ties == "exclude":
            raise ValueError(
                f"y has {scores.shape[1]} outputs, but with cost={cost!r} and ties={ties!r} the "
                "pairs depend on the scores; make one ScoreGraph per output."
            )
        weight = self.item_weights = target.weight
        self.y = self.scores = scores
        self._groups, self.groups, self.group_labels = target.groups, *target.groups
        self.n_items, self.n_groups = len(scores), len(self.group_labels)
        self.n_units = self.n_groups
        self.cost, self.ties, self.group_weight = cost, ties, group_weight
        is_clique = ties == "include" and self.n_groups == 1
        self.is_complete = is_clique and (weight is None or bool((weight > 0).all()))
        if ties == "include":  # a level need not tell scores apart
            self.levels = Levels(self.groups, np.arange(self.n_groups), self.n_groups, weight)
        else:
            self.levels = find_levels(scores, self.groups, self.n_groups, weight)
        self._weigh_pairs()
        if cost == "relative":
            self.total_weight = self._edges.total_weight
            if self.n_pairs and not 0 < self.total_weight < np.inf:
                raise ValueError(
                    "cost='relative' weighs a pair by 1/(y_i − y_j)², which overflows or vanishes: "
                    "scores differ by less than 1e-150, or by more than 1e150. Bring them nearer "
                    "to 1, or use cost='magnitude'."
                )

    def _weigh_pairs(self) -> None:
        """Count and weigh the pairs of each group."""
        levels, weight = self.levels, self.item_weights
        counted = slice(None) if weight is None else weight > 0
        size = group_sums(None, self.groups[counted], self.n_groups)
        pairs = 0.5 * size * (size - 1)
        if self.ties == "exclude":
            tied = group_sums(None, levels.of_item[counted], len(levels.group))
            pairs -= group_sums(0.5 * tied * (tied - 1), levels.group, self.n_groups)
        self._n_pairs_of_group, self.n_pairs = pairs, int(pairs.sum())
        total = pairs
        if weight is not None and self.ties == "exclude":
            total = group_sums(0.5 * levels.size * levels.others, levels.group, self.n_groups)
        elif weight is not None:
            others = levels.group_size[self.groups] - weight
            total = group_sums(0.5 * weight * others, self.groups, self.n_groups)
        self.pair_weights = np.ones_like(total)
        if self.group_weight == "groups":
            self.pair_weights = np.divide(1.0, total, out=np.zeros_like(total), where=total > 0)
        self.total_weight = float(total @ self.pair_weights)
        self._pull = self.pair_weights * levels.group_size
        self._within, self._between = self._pull, np.zeros(self.n_groups)
        if self.ties == "exclude":
            self._within = self.pair_weights[levels.group] * levels.others
            self._between = self._pull[levels.group]

    @property
    def squared_magnitude(self) -> float:
        """Σ ω δ²; 1 for each pair under the sign cost, else δ = y_i − y_j and the sum is yᵀ d."""
        if self.cost == "sign":
            return self.total_weight
        return float(np.sum(self._centered_scores() * self.divergence))

    @cached_property
    def divergence(self) -> Array:
        """The vector d = Σ ω δ (e_i − e_j): L y for the magnitude cost, counts for sign."""
        if self.cost == "relative":
            return super().divergence
        if self.cost == "magnitude":
            centered = self._centered_scores()
            return self.laplacian(centered, out=centered)
        levels = self.levels
        higher = levels.group_size[levels.group] - levels.lower - levels.size
        return levels.to_items(self.pair_weights[levels.group] * (levels.lower - higher))

    @property
    def degrees(self) -> Array:
        """Weight of the pairs of each item: the diagonal of L."""
        if self.cost == "relative":
            return super().degrees
        levels = self.levels
        if self.ties == "exclude":
            return levels.to_items(self._within)
        weight = np.ones(self.n_items) if levels.weight is None else levels.weight
        return levels.to_items(self.pair_weights) * (levels.group_size[self.groups] - weight)

    @cached_property
    def components(self) -> Indices:
        """For each item the number of its connected component; groups without pairs fall apart."""
        connected = (self._n_pairs_of_group > 0)[self.groups]
        if self.item_weights is not None:
            connected &= self.item_weights > 0
        alone = self.n_groups + np.arange(self.n_items)
        labels = np.where(connected, self.groups, alone)
        return np.unique(labels, return_inverse=True)[1].astype(np.intp)

    def laplacian(self, V: Array, out: Array | None = None) -> Array:
        """``L V`` in O(m), but for the relative cost; `out` may be V.

        Deviations from the mean of the level are scaled by `_within`, those of the means of levels
        from the mean of the group by `_between`, and means of groups by 0. With weights w the means
        are weighted, and item i is multiplied by w_i at the end: a clique has
        ``L v = w ∘ (s v − Σ w v)``, s = Σ w.
        """
        if self.cost == "relative":
            return super().laplacian(V)
        levels = self.levels
        means, group_means = levels.means(V)
        out = group_center(V, levels.of_item, means, self._within, out, levels.weight)
        if self.ties == "exclude":
            pull = self._between if V.ndim == 1 else self._between[:, None]
            out += levels.to_items(pull * (means - group_means))
        return out

    def root(self, scale: float = 1.0, shift: float = 0.0) -> GraphRoot:
        """F with ``F Fᵀ = scale L + shift D``; O(m) but for the relative cost."""
        if self.cost == "relative":
            return super().root(scale, shift)
        within, between = scale * self._within + shift, scale * self._between + shift
        return LevelRoot(self.levels, within, between, shift)

    def system(self, R: Any, t: Array) -> tuple[Array, Array]:
        """``Rᵀ L R`` and ``Rᵀ t``; for dense R in one blocked pass, but for the relative cost."""
        levels = self.levels
        if self.cost == "relative" or sp.issparse(R):
            return super().system(R, t)
        if len(levels.group) == self.n_items:  # every level is one item
            groups = Partition(levels.group[levels.of_item], self._pull)
            return nested_scatter(R, [groups], t, levels.weight)
        nestings = [Partition(levels.of_item, self._within)]
        if self.ties == "exclude":
            nestings.append(Partition(levels.group, self._pull))
        return nested_scatter(R, nestings, t, levels.weight)

    def sparse_norms(self, R: Any) -> Array:
        """``rᵀ L r`` for every column r of sparse R; O(non-zeros) but for the relative cost.

        L scales deviations from the mean of the level by `_within` and those of level means from
        the mean of the group by `_between`. Sums of squares around means follow from plain sums.
        """
        if self.cost == "relative":
            return super().sparse_norms(R)
        levels, between = self.levels, self._between
        weight = np.ones(self.n_items) if levels.weight is None else levels.weight
        members = (weight, levels.of_item, np.arange(self.n_items + 1))
        level_sums = sp.csr_matrix(members, (self.n_items, len(levels.group))).T.tocsr() @ R
        norms = sums_of_squares(R, weight * self._within[levels.of_item])
        size = np.where(levels.size > 0, levels.size, 1.0)
        norms += sums_of_squares(level_sums, (between - self._within) / size)
        if between.any():
            every = np.arange(len(levels.group))
            shape = (self.n_groups, len(every))
            of_group = sp.csr_matrix((np.ones(len(every)), (levels.group, every)), shape)
            norms -= sums_of_squares(of_group @ level_sums, self.pair_weights)
        return norms

    def subset(self, items: Indices) -> ScoreGraph:
        """The graph that the scores of these items induce."""
        present, codes = np.unique(self.groups[items], return_inverse=True)
        weight = None if self.item_weights is None else self.item_weights[items]
        groups = Groups(codes, self.group_labels[present])
        return self._like(Relevance(self.y[items], groups, weight))

    def weighted(self, sample_weight: ArrayLike) -> ScoreGraph:
        """The graph of the same scores with these weights, times those that it has."""
        weight = check_weights(sample_weight, self.n_items)
        if self.item_weights is not None:
            weight = weight * self.item_weights
        check_weight_ratio(weight, self._groups)
        return self._like(Relevance(self.y, self._groups, weight))

    def _like(self, target: Relevance, cost: str | None = None) -> ScoreGraph:
        """Another graph with the same options, or with another cost."""
        cost = cost or self.cost
        return ScoreGraph(target, cost=cost, ties=self.ties, group_weight=self.group_weight)

    def pairs(self) -> PairGraph:
        """Every pair explicitly: for the relative cost, tests and small data, O(pairs)."""
        if self.y.ndim == 2:
            raise ValueError("pairs() needs one output; make a ScoreGraph of one column of y.")
        order = np.argsort(self.groups, kind="stable")
        size = np.bincount(self.groups, minlength=self.n_groups)
        start = np.repeat(np.cumsum(size) - size, size)
        n_before = np.arange(self.n_items) - start  # in the same group, by this order
        total = int(n_before.sum())
        advice = "use cost='magnitude' or 'sign', or smaller groups"
        check_matrix_fits(total, 8, "the list of all pairs", advice)
        first = np.repeat(np.arange(self.n_items), n_before)
        second = np.arange(total) - np.repeat(np.cumsum(n_before) - n_before - start, n_before)
        i, j = order[second], order[first]
        weight = self.pair_weights[self.groups[i]]
        if self.item_weights is not None:
            weight = weight * self.item_weights[i] * self.item_weights[j]
        keep = weight > 0
        if self.ties == "exclude":
            keep &= self.y[i] != self.y[j]
        i, j, weight = i[keep], j[keep], weight[keep]
        swap = self.y[i] < self.y[j]
        i, j = np.where(swap, j, i), np.where(swap, i, j)
        magnitude = self.y[i] - self.y[j]
        return PairGraph.of(
            i, j, magnitude, weight, self.n_items, cost=self.cost, groups=self._groups
        )

    def strict(self) -> OrderedPairs:
        """All pairs of different score, never formed."""
        if self.cost == "relative":
            raise ValueError(
                "a ScoreGraph with cost='relative' weighs every pair differently, which the sweep "
                "over sorted scores cannot do; use cost='sign', or graph.pairs() for a small graph."
            )
        if self.ties == "exclude":
            return OrderedPairs(self)
        target = Relevance(self.y, self._groups, self.item_weights)
        return OrderedPairs(self._like(target, cost="sign"))

    def describe(self) -> GraphDescription:
        """Counts of groups, pairs, ties (over all outputs) and of items that are in no pair."""
        target = Relevance(self.y, self._groups, self.item_weights)
        columns = self.y.reshape(self.n_items, -1).T
        untied = [self._like(target._replace(y=y), cost="sign") for y in columns]
        n_every = ScoreGraph(target).n_pairs
        is_alone = np.bincount(self.components)[self.components] == 1
        return GraphDescription(
            n_items=self.n_items,
            n_groups=self.n_groups,
            n_pairs=self.n_pairs,
            n_tied_pairs=sum(n_every - graph.n_pairs for graph in untied),
            n_groups_without_pairs=int((self._n_pairs_of_group == 0).sum()),
            n_isolated_items=int(is_alone.sum()),
            total_weight=self.total_weight,
        )

    def _centered_scores(self) -> Array:
        size = group_sums(None, self.groups, self.n_groups)
        means = group_means(self.y, self.groups, size)
        return group_center(self.y, self.groups, means, np.ones(self.n_groups))
