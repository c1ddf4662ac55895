"""ScoreGraph: the pairs of items in the same group, preferred by score; never listed.

Gram matrices are added up over blocks of rows, around the means of groups and levels. Features may
be an array, or any object with a shape that returns dense rows when it is indexed, such as kernel
values that are computed a block of rows at a time and never stored.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike

from rankwise.arrays import Array, Indices
from rankwise.caching import cached_property
from rankwise.graphs.base import GraphDescription, PairGraph, PreferenceGraph
from rankwise.graphs.edges import COSTS, GROUP_WEIGHTS, EdgeArrays
from rankwise.graphs.laplacian_roots import GraphRoot, reciprocal_or_zero
from rankwise.graphs.level_laplacian import LevelLaplacian
from rankwise.graphs.levels import Levels, find_levels
from rankwise.graphs.supervision import Relevance, check_weight_ratio, read_relevance
from rankwise.groups import Groups, group_sums
from rankwise.runtime.memory import check_matrix_fits
from rankwise.validation import check_option, check_weights

TIES = ("include", "exclude")


class ScoreGraph(PreferenceGraph):
    """All pairs of items in the same group, preferred by score.

    Rankers build it from y and groups. Use it to inspect the pairs and their weights.

    With levels = (group, distinct score) and the item-to-level indicator P, the first two costs
    have ``L = D − P C Pᵀ`` with one small block of C per group ([RankRLS09] equation 25 is the
    first):

    * ``cost="magnitude"`` (equation 21): δ = y_i − y_j. With ties, L of a group of n items is n
      times the centering matrix; without, the cliques of equal scores are taken out of it.
    * ``cost="sign"`` (equation 20): δ = 1 for every pair of different scores.
    * ``cost="relative"`` (equation 22): δ = y_i − y_j, weight 1/δ².

    Parameters
    ----------
    y : array-like of shape (n_items,) or (n_items, n_outputs)
        Scores; larger is better. Several outputs only if L does not depend on the scores, which is
        the case for ``cost="magnitude", ties="include"``. May be a target of `make_target`.
    groups : array-like of shape (n_items,), default=None
        Group labels, any hashable labels in any order; None puts all items in one group.
    cost : {"magnitude", "sign", "relative"}, default="magnitude"
        One of the three costs of [RankRLS09] section 2.4.
    ties : {"include", "exclude"}, default="include"
        Whether pairs of equal score are edges of magnitude zero. Only the magnitude cost can have
        such edges; the other two costs always exclude them.
    group_weight : {"pairs", "groups"}, default="pairs"
        "pairs": all pairs have equal weight; "groups": all groups have equal weight, and the weight
        of a pair is one over the number of pairs in its group ([RankRLS09] end of section 2.4).
    sample_weight : array-like of shape (n_items,), default=None
        Weights of the items, 0 or larger. The weight of a pair is the product of the weights of its
        items, divided with ``group_weight="groups"`` by the sum of these products in the group. An
        item of weight 0 is in no pair.

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

    has_relevance = True

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
        if isinstance(y, Relevance):
            relevance = y
            scores = relevance.y
        else:
            relevance = read_relevance(y, groups, sample_weight)
            scores = relevance.y.copy()  # the caller may change y
        if cost != "magnitude":
            ties = "exclude"
        if scores.ndim == 2 and ties == "exclude":
            raise ValueError(
                f"y has {scores.shape[1]} outputs, but with cost={cost!r} and ties={ties!r} the "
                "pairs depend on the scores; make one ScoreGraph per output."
            )
        self.y = scores
        self.item_weights = relevance.weight
        self.cost = cost
        self.ties = ties
        self.group_weight = group_weight
        self.n_items = len(scores)
        self._set_groups(relevance.groups)
        self.is_complete = self._pairs_every_two_items()
        self._set_pairs()
        if cost == "relative":
            self._set_total_weight_of_edges()

    def _set_groups(self, groups: Groups) -> None:
        self._groups = groups
        self.groups = groups.codes
        self.group_labels = groups.labels
        self.n_groups = groups.n_groups
        self.n_units = groups.n_groups

    def _pairs_every_two_items(self) -> bool:
        if self.ties == "exclude" or self.n_groups > 1:
            return False
        all_items_have_weight = self.item_weights is None or (self.item_weights > 0).all()
        return bool(all_items_have_weight)

    def _set_pairs(self) -> None:
        """Find the levels; count and weigh the pairs of each group."""
        # with ties all items of a group are pairs, so the group is one level; else a level has
        # the items of equal score, and pairs are items of different levels
        if self.ties == "include":
            every_group = np.arange(self.n_groups)
            levels = Levels(self.groups, every_group, self.n_groups, self.item_weights)
        else:
            levels = find_levels(self.y, self.groups, self.n_groups, self.item_weights)
        self.levels = levels
        self._n_pairs_of_group = self._count_pairs_of_groups()
        self.n_pairs = int(self._n_pairs_of_group.sum())
        weight_of_groups = self._pair_weight_of_groups()
        # factor of each group's pairs; with group_weight="groups" the total of each group is then 1
        self.pair_weights = np.ones_like(weight_of_groups)
        if self.group_weight == "groups":
            self.pair_weights = reciprocal_or_zero(weight_of_groups)
        self.total_weight = float(weight_of_groups @ self.pair_weights)

    def _set_total_weight_of_edges(self) -> None:
        self.total_weight = self._edges.total_weight
        if self.n_pairs and not 0 < self.total_weight < np.inf:
            raise ValueError(
                "cost='relative' weighs a pair by 1/(y_i − y_j)², which overflows or underflows: "
                "scores differ by less than 1e-150, or by more than 1e150. Bring them nearer "
                "to 1, or use cost='magnitude'."
            )

    def _count_pairs_of_groups(self) -> Array:
        """Number of pairs of items with positive weight in each group."""
        # pairs of two items of positive weight; without ties, of different level
        levels = self.levels
        group_size = levels.weight_of_group  # without weights, an item weighs 1
        level_size = levels.weight_of_level
        if self.item_weights is not None:
            has_weight = self.item_weights > 0
            group_size = group_sums(None, self.groups[has_weight], self.n_groups)
            level_size = group_sums(None, levels.level_of_item[has_weight], levels.n_levels)
        n_pairs: Array = 0.5 * group_size * (group_size - 1)
        if self.ties == "exclude":
            n_tied_pairs = 0.5 * level_size * (level_size - 1)
            n_pairs -= group_sums(n_tied_pairs, levels.group_of_level, self.n_groups)
        return n_pairs

    def _pair_weight_of_groups(self) -> Array:
        """Sum of the products of item weights over the pairs of each group."""
        # Σ w_i w_j over the pairs is half the sum of w_i times the weight of the partners of i
        levels = self.levels
        weight = self.item_weights
        if weight is None:  # every pair weighs 1
            return self._n_pairs_of_group
        if self.ties == "exclude":
            weight_of_levels = 0.5 * levels.weight_of_level * levels.weight_of_other_levels
            return group_sums(weight_of_levels, levels.group_of_level, self.n_groups)
        weight_of_others = levels.weight_of_group[self.groups] - weight
        return group_sums(0.5 * weight * weight_of_others, self.groups, self.n_groups)

    @cached_property
    def _level_laplacian(self) -> LevelLaplacian | None:
        """Laplacian by levels; None for the relative cost, whose pairs all differ in weight."""
        if self.cost == "relative":  # needs the list of all edges
            return None
        if self.ties == "include":
            return LevelLaplacian.of_all_pairs(self.levels, self.pair_weights)
        return LevelLaplacian.of_different_levels(self.levels, self.pair_weights)

    @property
    def squared_magnitude(self) -> float:
        """Σ ω δ²: the number of pairs for the sign cost, else yᵀ d since δ = y_i − y_j."""
        if self.cost == "sign":  # every δ is 1
            return self.total_weight
        return float(np.sum(self._centered_scores() * self.divergence))  # Σ ω (y_i − y_j)² = yᵀ d

    @cached_property
    def divergence(self) -> Array:
        """The vector d = Σ ω δ (e_i − e_j): L y for the magnitude cost, counts for sign."""
        if self._level_laplacian is None:
            return super().divergence
        if self.cost == "magnitude":  # L y, with the Laplacian L
            centered = self._centered_scores()
            return self._level_laplacian.product(centered, out=centered)
        # signs: for each item the weight of the items it is preferred to, less that of the others
        levels = self.levels
        weight_of_lower = levels.weight_of_lower_levels
        weight_of_higher = (
            levels.weight_of_group[levels.group_of_level] - weight_of_lower - levels.weight_of_level
        )
        difference = weight_of_lower - weight_of_higher
        return levels.to_items(self.pair_weights[levels.group_of_level] * difference)

    @property
    def degrees(self) -> Array:
        """Weight of the pairs of each item: the diagonal of L."""
        if self._level_laplacian is None:
            return super().degrees
        return self._level_laplacian.diagonal()

    @cached_property
    def components(self) -> Indices:
        """Connected component of each item; every item without a pair is a component."""
        # a group is one component; an item without a pair is a separate component
        is_connected = (self._n_pairs_of_group > 0)[self.groups]
        if self.item_weights is not None:
            is_connected &= self.item_weights > 0
        label_of_single_item = self.n_groups + np.arange(self.n_items)
        labels = np.where(is_connected, self.groups, label_of_single_item)
        _, component = np.unique(labels, return_inverse=True)
        return component.astype(np.intp)

    def laplacian(self, V: Array) -> Array:
        """``L V``; O(n_items) except for the relative cost.

        Parameters
        ----------
        V : ndarray of shape (n_items,) or (n_items, k)
            Vectors.

        Returns
        -------
        ndarray
            The product, of the shape of V.
        """
        if self._level_laplacian is None:
            return super().laplacian(V)
        return self._level_laplacian.product(V)

    def root(self, scale: float = 1.0, shift: float = 0.0) -> GraphRoot:
        """F with ``F Fᵀ = scale L + shift D``; O(n_items) except for the relative cost.

        Parameters
        ----------
        scale : float, default=1.0
            Factor of the Laplacian.
        shift : float, default=0.0
            Factor of the weights of the items.

        Returns
        -------
        GraphRoot
            F, as products with vectors.
        """
        if self._level_laplacian is None:
            return super().root(scale, shift)
        return self._level_laplacian.root(scale, shift)

    def system(self, R: Any, t: Array) -> tuple[Array, Array]:
        """``Rᵀ L R`` and ``Rᵀ t``; one blocked pass for dense R, except for the relative cost.

        Parameters
        ----------
        R : ndarray or sparse matrix of shape (n_items, p)
            A matrix with one row per item.
        t : ndarray of shape (n_items,) or (n_items, k)
            Right side.

        Returns
        -------
        tuple of ndarray
            ``Rᵀ L R`` of shape (p, p), and ``Rᵀ t``.
        """
        if self._level_laplacian is None or sp.issparse(R):
            return super().system(R, t)
        return self._level_laplacian.gram(R, t)

    def sparse_norms(self, R: Any) -> Array:
        """``rᵀ L r`` for each column r of sparse R; O(non-zeros) except for the relative cost.

        Parameters
        ----------
        R : sparse matrix of shape (n_items, p)
            Columns.

        Returns
        -------
        ndarray of shape (p,)
            Squared norms.
        """
        if self._level_laplacian is None:
            return super().sparse_norms(R)
        return self._level_laplacian.squared_column_norms(R)

    def permuted(self, items: Indices) -> ScoreGraph:
        """The graph in which item k has the score of item ``items[k]``; weights stay.

        Parameters
        ----------
        items : ndarray of int, shape (n_items,)
            A permutation inside the groups.

        Returns
        -------
        ScoreGraph
            A new graph.
        """
        return self._with_same_options(replace(self._relevance(), y=self.y[items]))

    def sampling_order(self) -> Indices:
        """Items sorted by group and y.

        Returns
        -------
        ndarray of int, shape (n_items,)
            Row numbers.
        """
        return np.lexsort((self.y.ravel(), self.groups))

    def subset(self, items: Indices) -> ScoreGraph:
        """The graph of the scores of these items.

        Parameters
        ----------
        items : ndarray of int
            Row numbers of the items.

        Returns
        -------
        ScoreGraph
            A new graph.
        """
        return self._with_same_options(self._relevance().take(items))

    def weighted(self, sample_weight: ArrayLike) -> ScoreGraph:
        """The graph with the weights of the items multiplied by these weights.

        Parameters
        ----------
        sample_weight : array-like of shape (n_items,)
            Weights of the items.

        Returns
        -------
        ScoreGraph
            A new graph.
        """
        weight = check_weights(sample_weight, self.n_items)
        if self.item_weights is not None:
            weight = weight * self.item_weights
        check_weight_ratio(weight, self._groups)
        return self._with_same_options(replace(self._relevance(), weight=weight))

    def _relevance(self) -> Relevance:
        return Relevance(self.y, self._groups, self.item_weights)

    def _with_same_options(self, relevance: Relevance, cost: str | None = None) -> ScoreGraph:
        """A graph with the options of this one, or with another cost."""
        if cost is None:
            cost = self.cost
        return ScoreGraph(relevance, cost=cost, ties=self.ties, group_weight=self.group_weight)

    def pairs(self) -> PairGraph:
        """List all pairs, O(n_pairs): for the relative cost, tests and small data.

        Returns
        -------
        PairGraph
            A graph with the same edges, as arrays.
        """
        if self.y.ndim == 2:
            raise ValueError("pairs() needs one output; make a ScoreGraph of one column of y.")
        i, j = self._all_pairs_in_groups()
        weight = self.pair_weights[self.groups[i]]
        if self.item_weights is not None:
            weight = weight * self.item_weights[i] * self.item_weights[j]
        is_edge = weight > 0
        if self.ties == "exclude":
            is_edge &= self.y[i] != self.y[j]
        i = i[is_edge]
        j = j[is_edge]
        is_reversed = self.y[i] < self.y[j]
        winner = np.where(is_reversed, j, i)
        loser = np.where(is_reversed, i, j)
        edges = EdgeArrays(winner, loser, self.y[winner] - self.y[loser], weight[is_edge])
        return PairGraph.from_arrays(edges, self.n_items, cost=self.cost, groups=self._groups)

    def _all_pairs_in_groups(self) -> tuple[Indices, Indices]:
        """Both items of every pair in a group, each pair once."""
        groups = self._groups
        # positions in groups.order; each item is paired with the items of its group before it
        position = np.arange(self.n_items)
        group_start = np.repeat(groups.starts, groups.sizes)
        n_before = position - group_start
        n_pairs = int(n_before.sum())
        advice = "use cost='magnitude' or 'sign', or smaller groups"
        check_matrix_fits(n_pairs, 8, "the list of all pairs", advice)

        later_position = np.repeat(position, n_before)
        first_pair = np.cumsum(n_before) - n_before
        number_in_run = np.arange(n_pairs) - np.repeat(first_pair, n_before)
        earlier_position = np.repeat(group_start, n_before) + number_in_run
        return groups.order[earlier_position], groups.order[later_position]

    def describe(self) -> GraphDescription:
        """Count groups, pairs, ties (over all outputs) and items that are in no pair.

        Returns
        -------
        GraphDescription
            Counts, which `print` shows as text.
        """
        # a tied pair has equal scores: it is missing in the graph of the signs
        relevance = self._relevance()
        n_pairs_and_ties = ScoreGraph(relevance).n_pairs
        n_tied_pairs = 0
        for output in self.y.reshape(self.n_items, -1).T:
            untied_graph = self._with_same_options(replace(relevance, y=output), cost="sign")
            n_tied_pairs += n_pairs_and_ties - untied_graph.n_pairs
        component_sizes = np.bincount(self.components)
        return GraphDescription(
            n_items=self.n_items,
            n_groups=self.n_groups,
            n_pairs=self.n_pairs,
            n_tied_pairs=n_tied_pairs,
            n_groups_without_pairs=int((self._n_pairs_of_group == 0).sum()),
            n_isolated_items=int((component_sizes == 1).sum()),
            total_weight=self.total_weight,
        )

    def sign_graph(self) -> ScoreGraph:
        """The pairs of different score, without ties; the graph itself if it has no ties.

        Returns
        -------
        ScoreGraph
            A graph with ``cost="sign"`` and ``ties="exclude"``.
        """
        if self.ties == "exclude":  # the same pairs for every cost
            return self
        # with this cost, tied items are never a pair
        return self._with_same_options(self._relevance(), cost="sign")

    def _centered_scores(self) -> Array:
        return self._groups.center(self.y)
