"""ScoreGraph: the preferences that scores induce inside groups, never formed."""

from __future__ import annotations

import copy
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rankwise.arrays import Array
from rankwise.frames import check_same_index
from rankwise.graphs.base import BaseGraph
from rankwise.graphs.disagreement import score_disagreement
from rankwise.graphs.protocol import GraphDescription, GraphRoot
from rankwise.graphs.roots import connect_groups
from rankwise.graphs.score_laplacians import NestedLaplacian, RelativeLaplacian
from rankwise.graphs.score_levels import ScoreLevels, deviations, find_levels, sums_of_families
from rankwise.graphs.strict import StrictOrder
from rankwise.groups import encode_groups
from rankwise.options import check_option
from rankwise.targets import as_scores, as_weights, split_weighted

if TYPE_CHECKING:
    from rankwise.graphs.pair_graph import PairGraph

COSTS = ("magnitude", "sign", "relative")
TIES = ("include", "exclude")
GROUP_WEIGHTS = ("pairs", "groups")


class ScoreGraph(BaseGraph):
    """All pairs inside each group, preferred by score.

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
    tied pairs            1 (in use)
    groups without pairs  0
    isolated items        0
    total weight          4
    """

    def __init__(
        self,
        y: ArrayLike,
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
        y, groups, own = split_weighted(y, groups, sample_weight)
        check_same_index(y=y, groups=groups, sample_weight=own)
        self.y = as_scores(y)
        self.sample_weight = None if own is None else as_weights(own, len(self.y))
        self.cost = cost
        self.ties = ties if cost == "magnitude" else "exclude"
        self.group_weight = group_weight
        self._groups = encode_groups(groups, len(self.y))
        if self.y.ndim == 2 and not self._same_for_all_scores:
            raise ValueError(
                f"y has {self.y.shape[1]} outputs, but with cost={cost!r} and ties={ties!r} the "
                "pairs depend on the scores; make one ScoreGraph per output."
            )
        if self.cost == "relative" and not np.isfinite(self._structure.within).all():
            raise ValueError(
                "cost='relative' weighs a pair by 1/(y_i − y_j)², which overflows: some scores "
                "differ by less than 1e-150. Round the scores or use cost='magnitude'."
            )

    @property
    def n_items(self) -> int:
        """Number of items."""
        return len(self.y)

    @property
    def groups(self) -> NDArray[np.intp]:
        """For each item the number of its group."""
        return self._groups.codes

    @property
    def group_labels(self) -> NDArray[Any]:
        """The distinct labels in the order of the group numbers."""
        return self._groups.labels

    @property
    def n_units(self) -> int:
        """Number of groups, those without pairs included."""
        return self.n_groups

    @property
    def scores(self) -> Array:
        """Scores of the items."""
        return self.y

    @property
    def item_weights(self) -> Array | None:
        """Weights of the items; None if they have none."""
        return self.sample_weight

    @property
    def is_complete(self) -> bool:
        """Whether all items are in one group and every two of them are a pair."""
        if not (self._same_for_all_scores and self.n_groups == 1):
            return False
        return self.sample_weight is None or bool((self.sample_weight > 0).all())

    @cached_property
    def n_pairs(self) -> int:
        """Number of pairs of positive weight."""
        return int(self._counted_pairs.sum())

    @property
    def total_weight(self) -> float:
        """W, the sum of the weights of the pairs."""
        return self._structure.total_weight

    @property
    def levels(self) -> ScoreLevels:
        """Items that the graph cannot tell apart: groups × distinct scores, or whole groups."""
        return self._levels_and_scores[0]

    @cached_property
    def pair_weights(self) -> Array:
        """Weight that `group_weight` gives to each pair of a group, shape (n_groups,).

        With weights of items it is what the product of the weights of a pair is multiplied by.
        """
        pairs = self._pairs_in_group
        if self.group_weight == "pairs":
            return np.ones_like(pairs)
        return np.divide(1.0, pairs, out=np.zeros_like(pairs), where=pairs > 0)

    @property
    def squared_magnitude(self) -> float:
        """Σ ω δ²; 1 for each pair under the sign cost, else δ = y_i − y_j and the sum is yᵀ d."""
        if self.cost == "sign":
            return self.total_weight
        return float(np.sum(self._centered_scores * self.divergence))

    @cached_property
    def divergence(self) -> Array:
        """The vector d = Σ ω δ (e_i − e_j): L y for the magnitude cost, counts for sign."""
        if self.cost != "sign":
            return self._structure.divergence(self._centered_scores)
        levels = self.levels
        higher = levels.group_size[levels.group] - levels.lower - levels.size
        balance = self.pair_weights[levels.group] * (levels.lower - higher)
        if levels.weight is not None and not levels.is_lumped:
            levels.balance(balance)
        return levels.to_items(balance)

    @property
    def degrees(self) -> Array:
        """Weight of the pairs of each item: the diagonal of L."""
        return self._structure.degrees

    @property
    def within(self) -> Array:
        """What L multiplies the deviations of an item from its level by, before its weight."""
        return np.asarray(self._structure.within[self.levels.of_item])

    @cached_property
    def components(self) -> NDArray[np.intp]:
        """For each item the number of its connected component; groups without pairs fall apart."""
        connected = (self._counted_pairs > 0)[self.groups]
        if self.sample_weight is not None:
            connected &= self.sample_weight > 0
        return connect_groups(self.groups, connected)

    def laplacian(self, V: Array, out: Array | None = None) -> Array:
        """``L V`` in O(m), plus levels² of each group for the relative cost; `out` may be V."""
        return self._structure.apply(V, out)

    def root(self, scale: float = 1.0, shift: float = 0.0) -> GraphRoot:
        """F with ``F Fᵀ = scale L + shift D``; O(m) but for the relative cost."""
        return self._structure.root(scale, shift)

    def system(self, R: Any, t: Array) -> tuple[Array, Array]:
        """``Rᵀ L R`` and ``Rᵀ t``; for dense R in one blocked pass, but for the relative cost."""
        return self._structure.system(R, t)

    def sparse_norms(self, R: Any) -> Array:
        """``rᵀ L r`` for every column r of sparse R; O(non-zeros) but for the relative cost."""
        return self._structure.sparse_norms(R)

    def subset(self, items: NDArray[np.intp]) -> ScoreGraph:
        """The graph that the scores of these items induce."""
        weight = None if self.sample_weight is None else self.sample_weight[items]
        return self._like(self.y[items], self.group_labels[self.groups[items]], weight)

    def weighted(self, sample_weight: ArrayLike) -> ScoreGraph:
        """The graph of the same scores with these weights, times those that it has."""
        weight = as_weights(sample_weight, self.n_items)
        if self.sample_weight is not None:
            weight = weight * self.sample_weight
        return self._like(self.y, self.group_labels[self.groups], weight)

    def _like(
        self, y: Array, groups: NDArray[Any], weight: Array | None, cost: str | None = None
    ) -> ScoreGraph:
        """Another graph with the same options, or with another cost."""
        return ScoreGraph(
            y,
            groups,
            cost=cost or self.cost,
            ties=self.ties,
            group_weight=self.group_weight,
            sample_weight=weight,
        )

    def lumped(self, weight: Array, squares: Array, counts: Array) -> ScoreGraph:
        """The graph in which item i stands for several items of its group and score.

        These have weights w of sum ``weight[i]``, and ``squares[i]`` is the sum of w²;
        ``counts[i]`` of them are positive. Vectors have one value for all items that one stands
        for, products with L the sum over them. With ties in, their scores may differ, and y is
        their mean.

        Examples
        --------
        >>> n = np.array([3.0, 2.0])
        >>> graph = ScoreGraph([2.0, 1.0]).lumped(n, n, n)
        >>> graph.n_pairs, graph.laplacian(np.array([1.0, 0.0]))
        (10, array([ 6., -6.]))
        """
        levels, scores = self._levels_and_scores
        other = copy.copy(self)
        for name in vars(self):
            if isinstance(getattr(type(self), name, None), cached_property):
                del other.__dict__[name]
        other._levels_and_scores = levels.weighted(weight, squares), scores
        other._counted_levels = levels.weighted(counts, counts)
        return other

    def pairs(self) -> PairGraph:
        """Every pair explicitly: for tests and small data, O(m²)."""
        from rankwise.graphs.pair_graph import PairGraph

        self._check_one_output("pairs()")
        i, j = np.triu_indices(self.n_items, k=1)
        keep = self.groups[i] == self.groups[j]
        if self.ties == "exclude":
            keep &= self.y[i] != self.y[j]
        weight = self.pair_weights[self.groups[i]]
        if self.sample_weight is not None:
            weight = weight * self.sample_weight[i] * self.sample_weight[j]
            keep &= weight > 0
        i, j = i[keep], j[keep]
        swap = self.y[i] < self.y[j]
        i, j = np.where(swap, j, i), np.where(swap, i, j)
        return PairGraph(
            i,
            j,
            magnitude=self.y[i] - self.y[j],
            weight=weight[keep],
            n_items=self.n_items,
            cost=self.cost,
        )

    def strict(self) -> StrictOrder:
        """All pairs of different score, never formed."""
        if self.cost == "relative":
            raise ValueError(
                "a ScoreGraph with cost='relative' weighs every pair differently, which the sweep "
                "over sorted scores cannot do; use cost='sign', or graph.pairs() for a small graph."
            )
        if self.ties == "exclude":
            return StrictOrder(self)
        return StrictOrder(self._like(self.y, self.groups, self.sample_weight, cost="sign"))

    def disagreement(
        self, F: NDArray[Any], fold: NDArray[np.intp] | None = None, *, pooled: bool = False
    ) -> Array:
        """Share of the pairs of different score in each group that F orders wrongly."""
        self._check_one_output("disagreement()")
        return score_disagreement(
            self.y, self.groups, self.pair_weights, F, fold, pooled, self.sample_weight
        )

    def describe(self) -> GraphDescription:
        """Counts of groups, pairs, ties (over all outputs) and of items that are in no pair."""
        columns = self.y.reshape(self.n_items, -1).T
        tied = 0.0
        for y in columns:
            levels = find_levels(y, self.groups, self.n_groups)[0].counting(self.sample_weight)
            tied += float((levels.pairs - levels.untied_pairs).sum())
        empty = self._counted_pairs == 0
        return GraphDescription(
            n_items=self.n_items,
            n_groups=self.n_groups,
            n_pairs=self.n_pairs,
            n_tied_pairs=int(tied),
            ties=self.ties,
            n_groups_without_pairs=int(empty.sum()),
            n_isolated_items=int((empty[self.groups] | self._is_weightless).sum()),
            total_weight=self.total_weight,
        )

    def _check_one_output(self, method: str) -> None:
        if self.y.ndim == 2:
            raise ValueError(f"{method} needs one output; make a ScoreGraph of one column of y.")

    @property
    def _same_for_all_scores(self) -> bool:
        return self.cost == "magnitude" and self.ties == "include"

    @cached_property
    def _levels_and_scores(self) -> tuple[ScoreLevels, Array]:
        if self._same_for_all_scores:  # a level need not tell scores apart
            every = np.arange(self.n_groups)
            levels = ScoreLevels(self.groups, every, self.n_groups)
            scores: Array = np.zeros(self.n_groups)
        else:
            levels, scores = find_levels(self.y, self.groups, self.n_groups)
        if self.sample_weight is not None:
            levels = levels.weighted(self.sample_weight)
        return levels, scores

    @cached_property
    def _structure(self) -> NestedLaplacian | RelativeLaplacian:
        levels, scores = self._levels_and_scores
        if self.cost == "relative":
            return RelativeLaplacian(levels, scores, self.pair_weights)
        return NestedLaplacian(levels, self.pair_weights, self.ties == "include")

    @cached_property
    def _pairs_in_group(self) -> Array:
        """Weight of the pairs of each group, before `pair_weights`."""
        if self._counted_levels is self.levels:
            return self._counted_pairs
        return self._pairs_of(self.levels) * (self._counted_pairs > 0)

    @cached_property
    def _counted_pairs(self) -> Array:
        """Number of pairs of each group."""
        return self._pairs_of(self._counted_levels)

    @cached_property
    def _counted_levels(self) -> ScoreLevels:
        return self.levels.counting(self.sample_weight)

    def _pairs_of(self, levels: ScoreLevels) -> Array:
        return levels.pairs if self.ties == "include" else levels.untied_pairs

    @property
    def _is_weightless(self) -> Any:
        return False if self.sample_weight is None else self.sample_weight == 0

    @property
    def _centered_scores(self) -> Array:
        sums = sums_of_families(self.y, self.groups, self.n_groups)
        size = np.maximum(np.bincount(self.groups, minlength=self.n_groups), 1)
        means = (sums.T / size).T
        return deviations(self.y, self.groups, means, np.ones(self.n_groups))
