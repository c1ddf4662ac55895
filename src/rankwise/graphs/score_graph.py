"""ScoreGraph: the preferences that scores induce inside groups, never formed.

Gram matrices are added up over blocks of rows, around the means of groups and levels. Features may
be an array, or anything that has a shape and gives dense rows when it is indexed, such as kernel
values that are computed a block of rows at a time and never stored.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property, partial
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray

from rankwise._compiled import add_rows, scale_rows, sort_by_group
from rankwise.arrays import Array, Indices
from rankwise.graphs.graph import GraphDescription, PreferenceGraph
from rankwise.graphs.pair_graph import COSTS, GROUP_WEIGHTS, PairGraph
from rankwise.graphs.roots import GraphRoot, NestedRoot
from rankwise.graphs.strict import StrictOrder
from rankwise.groups import Groups
from rankwise.inputs import Target, as_weights, check_balance, check_option, read_target
from rankwise.machine import check_matrix_fits, map_on_idle_cores

TIES = ("include", "exclude")
BLOCK_BYTES = 2**23
FAR = 0.999  # rows are centered if the means hold this share of the squares of some column
SAMPLE = 64  # rows that tell whether columns are far from zero


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
        y: ArrayLike | Target,
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
        target = read_target(y, groups, sample_weight)
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
            self.levels = ScoreLevels(self.groups, np.arange(self.n_groups), self.n_groups, weight)
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
        size = sums_by_code(None, self.groups[counted], self.n_groups)
        pairs = 0.5 * size * (size - 1)
        if self.ties == "exclude":
            tied = sums_by_code(None, levels.of_item[counted], len(levels.group))
            pairs -= sums_by_code(0.5 * tied * (tied - 1), levels.group, self.n_groups)
        self._n_pairs_of_group, self.n_pairs = pairs, int(pairs.sum())
        total = pairs
        if weight is not None and self.ties == "exclude":
            total = sums_by_code(0.5 * levels.size * levels.others, levels.group, self.n_groups)
        elif weight is not None:
            others = levels.group_size[self.groups] - weight
            total = sums_by_code(0.5 * weight * others, self.groups, self.n_groups)
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
        out = deviations(V, levels.of_item, means, self._within, out, levels.weight)
        if self.ties == "exclude":
            pull = self._between if V.ndim == 1 else self._between[:, None]
            out += levels.to_items(pull * (means - group_means))
        return out

    def root(self, scale: float = 1.0, shift: float = 0.0) -> GraphRoot:
        """F with ``F Fᵀ = scale L + shift D``; O(m) but for the relative cost."""
        if self.cost == "relative":
            return super().root(scale, shift)
        within, between = scale * self._within + shift, scale * self._between + shift
        return NestedRoot(self.levels, within, between, shift)

    def system(self, R: Any, t: Array) -> tuple[Array, Array]:
        """``Rᵀ L R`` and ``Rᵀ t``; for dense R in one blocked pass, but for the relative cost."""
        levels = self.levels
        if self.cost == "relative" or sp.issparse(R):
            return super().system(R, t)
        if len(levels.group) == self.n_items:  # every level is one item
            groups = Nesting(levels.group[levels.of_item], self._pull)
            return nested_scatter(R, [groups], t, levels.weight)
        nestings = [Nesting(levels.of_item, self._within)]
        if self.ties == "exclude":
            nestings.append(Nesting(levels.group, self._pull))
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
        return self._like(Target(self.y[items], groups, weight))

    def weighted(self, sample_weight: ArrayLike) -> ScoreGraph:
        """The graph of the same scores with these weights, times those that it has."""
        weight = as_weights(sample_weight, self.n_items)
        if self.item_weights is not None:
            weight = weight * self.item_weights
        check_balance(weight, self._groups)
        return self._like(Target(self.y, self._groups, weight))

    def _like(self, target: Target, cost: str | None = None) -> ScoreGraph:
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

    def strict(self) -> StrictOrder:
        """All pairs of different score, never formed."""
        if self.cost == "relative":
            raise ValueError(
                "a ScoreGraph with cost='relative' weighs every pair differently, which the sweep "
                "over sorted scores cannot do; use cost='sign', or graph.pairs() for a small graph."
            )
        if self.ties == "exclude":
            return StrictOrder(self)
        target = Target(self.y, self._groups, self.item_weights)
        return StrictOrder(self._like(target, cost="sign"))

    def describe(self) -> GraphDescription:
        """Counts of groups, pairs, ties (over all outputs) and of items that are in no pair."""
        target = Target(self.y, self._groups, self.item_weights)
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
        size = sums_by_code(None, self.groups, self.n_groups)
        means = family_means(self.y, self.groups, size)
        return deviations(self.y, self.groups, means, np.ones(self.n_groups))


class ScoreLevels:
    """A partition of the items into levels, and of the levels into groups.

    Levels are numbered so that those of one group are consecutive, by increasing score.

    Attributes
    ----------
    of_item : ndarray of shape (n_items,)
        The level of each item.
    group : ndarray of shape (n_levels,)
        The group of each level.
    n_groups : int
        Number of groups.
    weight : ndarray of shape (n_items,) or None
        What each item counts; None for one. All sizes and means below go by it.
    size, group_size : ndarray of shape (n_levels,) and (n_groups,)
        Number (or weight) of the items of each level and of each group.
    """

    def __init__(
        self, of_item: Indices, group: Indices, n_groups: int, weight: Array | None = None
    ) -> None:
        self.of_item, self.group, self.n_groups, self.weight = of_item, group, n_groups, weight
        self.size = sums_by_code(weight, of_item, len(group))
        self.group_size = sums_by_code(self.size, group, n_groups)

    @cached_property
    def first(self) -> Indices:
        """Number of the first level of each group."""
        return np.searchsorted(self.group, np.arange(self.n_groups))

    def means(self, V: Array, mass: Array | None = None) -> tuple[Array, Array]:
        """For each level the mean of V, with a mass ``Σ mass v / Σ weight``; that of its group."""
        mass = self.weight if mass is None else mass
        of_level = family_means(V, self.of_item, self.size, mass)
        return of_level, family_means(of_level, self.group, self.group_size, self.size)[self.group]

    def to_items(self, values: Array) -> Array:
        """What each item gets from its level, times its weight."""
        of_items = values[self.of_item]
        if self.weight is not None:
            of_items *= self.weight if values.ndim == 1 else self.weight[:, None]
        return np.asarray(of_items)

    @cached_property
    def lower(self) -> Array:
        """Number (or weight) of items of the group that are below each level."""
        unit = np.where(self.group_size > 0, self.group_size, 1.0)[self.group]
        size = self.size if self.weight is None else self.size / unit  # a light group keeps digits
        below = np.cumsum(size) - size
        below -= below[self.first][self.group]
        return below if self.weight is None else np.asarray(below * unit)

    @property
    def in_group(self) -> NDArray[np.int32]:
        """For each item the number of its level in the group, 0 for the lowest."""
        return (self.of_item - self.first[self.group][self.of_item]).astype(np.int32)

    @property
    def others(self) -> Array:
        """Number (or weight) of the items of the other levels of the group, for each level."""
        return np.asarray(self.group_size[self.group] - self.size)


def find_levels(
    y: Array, group: Indices, n_groups: int, weight: Array | None = None
) -> ScoreLevels:
    """The levels of (group, distinct score)."""
    order = np.argsort(y)
    if n_groups > 1:
        size = np.bincount(group, minlength=n_groups)
        order = sort_by_group(order, group.astype(np.int32), np.cumsum(size) - size)
    g, s = group[order], y[order]
    first = np.r_[True, (g[1:] != g[:-1]) | (s[1:] != s[:-1])][: len(y)]
    of_item = np.empty(len(y), dtype=np.intp)
    of_item[order] = np.cumsum(first) - 1
    return ScoreLevels(of_item, g[first], n_groups, weight)


def sums_by_code(values: NDArray[Any] | None, code: Indices, n_codes: int) -> NDArray[np.float64]:
    """Sum of the values of each code in float64; their number if there are no values."""
    return np.bincount(code, weights=values, minlength=n_codes).astype(np.float64, copy=False)


def family_means(V: NDArray[Any], family: Indices, size: Array, mass: Array | None = None) -> Array:
    """``Σ mass v / size`` of the values or rows of each family; zero for one without size."""
    size = np.where(size > 0, size, 1.0)
    if V.ndim == 1:
        return sums_by_code(V if mass is None else mass * V, family, len(size)) / size
    sums: Array = np.zeros((len(size), V.shape[1]))
    rows = np.ascontiguousarray(V, dtype=np.float64)
    add_rows(rows, family, np.zeros(len(V)), sums, np.zeros(V.shape[1]), mass)
    return sums / size[:, None]


def deviations(
    V: NDArray[Any],
    family: Indices,
    means: Array,
    scale: Array,
    out: Array | None = None,
    factor: Array | None = None,
) -> Array:
    """``factor scale (v − mean)``, mean and scale by family, factor by item; out may be V."""
    out = np.empty(V.shape) if out is None else out
    means = means.reshape(len(scale), -1)
    rows = np.ascontiguousarray(V.reshape(len(V), -1), dtype=np.float64)
    scale_rows(rows, family, means, scale, out.reshape(len(out), -1), factor)
    return out


class Nesting(NamedTuple):
    """One step of nesting: the parent of each child, and the weight of each parent's scatter."""

    parent: Indices
    weight: Array


def block_rows(n_columns: int) -> int:
    """Rows of a block that stays in the cache, or that is no larger than the Gram matrix."""
    return max(64, n_columns, BLOCK_BYTES // (8 * max(1, n_columns)))


def nested_scatter(
    R: Any, nestings: list[Nesting], target: Array, mass: Array | None = None
) -> tuple[Array, Array]:
    """Σ of the weighted scatter of children around the mean of their parent; ``Rᵀ t``.

        G = Σ_nestings Σ_parents weight_p Σ_{children c of p} n_c (μ_c − μ_p)(μ_c − μ_p)ᵀ

    Children of the first nesting are the rows of R, children of the next its parents. A row counts
    n_c = 1, or its mass if that is given, and the means are weighted in the same way. A block of
    rows is read from memory once and is in the cache for the product, the means and ``Rᵀ t``.

    Examples
    --------
    Rows 0 and 4 are one family, 5 and 7 another, which weighs three times as much:

    >>> R, target = np.array([[0.0], [4.0], [5.0], [7.0]]), np.ones(4)
    >>> nesting = Nesting(np.array([0, 0, 1, 1]), np.array([1.0, 3.0]))
    >>> nested_scatter(R, [nesting], target)  # 1 · (2² + 2²) + 3 · (1² + 1²)
    (array([[14.]]), array([16.]))

    Both are children of a parent of weight 5 and mean 4:

    >>> parent = Nesting(np.array([0, 0]), np.array([5.0]))
    >>> nested_scatter(R, [nesting, parent], target)[0]  # 14 + 5 · (2 · 2² + 2 · 2²)
    array([[94.]])
    """
    (family, weight), *outer = nestings
    size = sums_by_code(mass, family, len(weight))
    gram, moment, means = _scatter_of_rows(R, family, weight, size, target, mass)
    for parent, weight in outer:
        size_of_parent = sums_by_code(size, parent, len(weight))
        parent_means = family_means(means, parent, size_of_parent, size)
        for block in _blocks(means):
            centered = means[block] - parent_means[parent[block]]
            centered *= np.sqrt(weight[parent[block]] * size[block])[:, None]
            gram += centered.T @ centered
        means, size = parent_means, size_of_parent
    return gram, moment


def _scatter_of_rows(
    R: Any, family: Indices, weight: Array, size: Array, target: Array, mass: Array | None
) -> tuple[Array, Array, Array]:
    """Scatter of the rows around the means of their families; ``Rᵀ t``; and the means.

    Means are known at the end only. So the squares lose those of the means then, ``Σ w x xᵀ −
    Σ w n μ μᵀ``, which costs at most the three digits of `FAR`. Columns far from zero are shifted
    first, by the mean of some rows; the means that are returned are then shifted, too. A column
    that would still lose more (one value for a whole family) asks for a second pass, over centered
    rows, where nothing cancels.
    """
    n_rows, n_columns = R.shape
    columns = target.reshape(n_rows, -1)
    few = np.arange(0, n_rows, max(1, n_rows // SAMPLE))[:SAMPLE]
    sample = R[few].astype(np.float64)
    center = sample.mean(axis=0)
    if not (center**2 > FAR * (sample**2).mean(axis=0)).any():
        center = np.zeros(n_columns)
    is_far = bool(center.any())
    is_even = mass is None and bool((weight == weight[0]).all())
    root = np.ones_like(weight) if is_even else np.sqrt(weight)

    def add_up(blocks: list[slice], means: Array | None = None) -> tuple[Array, Array, Array]:
        """Squares (around the means if given), ``Rᵀ t`` and sums by family of these rows."""
        squares, moment = np.zeros((n_columns, n_columns)), np.zeros((n_columns, columns.shape[1]))
        sums = np.zeros((len(weight), n_columns))
        for block in blocks:
            mass_here = None if mass is None else mass[block]
            rows = R[block] - center if is_far else R[block]
            X = Z = np.ascontiguousarray(rows, dtype=np.float64)
            if means is not None or not is_even:
                factor = None if mass_here is None else np.sqrt(mass_here)
                Z = np.empty(X.shape)
                scale_rows(X, family[block], means, root, Z, factor)
            squares += Z.T @ Z
            if columns.shape[1] == 1:
                t = np.ascontiguousarray(columns[block, 0])
                add_rows(X, family[block], t, sums, moment.reshape(-1), mass_here)
            else:
                add_rows(X, family[block], np.zeros(len(X)), sums, np.zeros(n_columns), mass_here)
                moment += X.T @ columns[block]
        return squares, moment, sums

    blocks, n_multiplications = list(_blocks(R)), n_rows * n_columns**2
    (squares, moment, sums), *others = map_on_idle_cores(add_up, blocks, n_multiplications)
    for more_squares, more_moment, more_sums in others:
        squares += more_squares
        moment += more_moment
        sums += more_sums
    if is_far:
        moment += np.outer(center, columns.sum(axis=0))
    means = sums / np.where(size > 0, size, 1.0)[:, None]
    roots = means * (root * np.sqrt(size))[:, None]
    lost = roots.T @ roots
    if (np.diagonal(lost) > FAR * np.diagonal(squares)).any():
        again = map_on_idle_cores(partial(add_up, means=means), blocks, n_multiplications)
        squares = sum((more_squares for more_squares, *_ in again), start=np.zeros(1))
    else:
        squares -= lost
    squares *= weight[0] if is_even else 1.0
    return squares, moment.reshape(n_columns, *target.shape[1:]), means


def plain_system(R: Any, target: Array, mass: Array | None = None) -> tuple[Array, Array]:
    """``Rᵀ D R`` and ``Rᵀ t`` in float64, D the mass of the rows, 1 if not given.

    A block of rows at a time unless R is sparse.
    """
    if sp.issparse(R):
        heavy = R if mass is None else R.multiply(mass[:, None]).tocsr()
        return np.asarray((R.T @ heavy).toarray(), dtype=np.float64), np.asarray(R.T @ target)
    n_columns = R.shape[1]
    gram, moment = np.zeros((n_columns, n_columns)), np.zeros((n_columns, *target.shape[1:]))
    for block in _blocks(R):
        rows = np.ascontiguousarray(R[block], dtype=np.float64)
        moment += rows.T @ target[block]
        if mass is not None:
            rows = rows * np.sqrt(mass[block])[:, None]
        gram += rows.T @ rows
    return gram, moment


def sums_of_squares(S: Any, weight: Array | None = None) -> Array:
    """``Σ_i w_i s_i²`` for every column s of sparse S; the weights are 1 if not given."""
    weight = np.ones(S.shape[0]) if weight is None else weight
    return np.asarray(S.multiply(S).T @ weight)


def _blocks(R: Any) -> Iterator[slice]:
    height = block_rows(R.shape[1])
    for start in range(0, R.shape[0], height):
        yield slice(start, start + height)
