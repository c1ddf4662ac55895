"""SurvivalGraph: right-censored times as preferences; no pair is listed.

The sums over pairs are sums over levels of equal time; see `rankwise.graphs.time_levels`.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray

from rankwise.arrays import Array, Indices, take_weights, weights_or_ones
from rankwise.caching import cached_property
from rankwise.frames import check_same_index
from rankwise.graphs.base import GraphDescription, PairGraph, PreferenceGraph
from rankwise.graphs.laplacian_roots import GraphRoot
from rankwise.graphs.pair_blocks import PairBlock, edges_of_blocks, pair_blocks, partner_blocks
from rankwise.graphs.time_levels import SurvivalRoot, TimeLevels, WhitenedRows
from rankwise.graphs.violated_pairs import (
    OrderedPairs,
    PairCounts,
    count_ordered_pairs,
    strict_pairs,
)
from rankwise.groups import Groups, encode_groups
from rankwise.runtime.memory import check_matrix_fits
from rankwise.validation import check_sample_weight, check_survival, check_weights

NOT_FOLLOWED = -1.0  # time of items that are in no pair: before all others, and censored


class SurvivalGraph(PreferenceGraph):
    """Right-censored times as preferences: a longer survival is preferred.

    Use it as y for survival data. Item j is preferred to item i if the event of item i was observed
    and item j was observed for longer. Pass the graph as y to RankRLS, RankSVM, RankLogistic,
    CoRankRLS or their searches: larger predicted scores then mean longer survival. The pairs are
    never listed: sums over them cost O(n_items log n_items).

    Two events at the same time are no pair. An event and a censored item of the same time are a
    pair: the censored item survived longer. All pairs have the magnitude 1.

    Parameters
    ----------
    time : array-like of shape (n_items,)
        Time of the event or of the censoring, 0 or larger. NaN or None marks an item without
        follow-up; it must have no event and is in no pair.
    event : array-like of shape (n_items,)
        Whether the event was observed (True or 1) or the time is censored (False or 0).
    groups : array-like of shape (n_items,), default=None
        Group labels, such as hospitals: only items of the same group are compared, and
        cross-validation holds out whole groups. None puts all items in one group.
    sample_weight : array-like of shape (n_items,), default=None
        Weights of the items, 0 or larger. The weight of a pair is the product of the weights of its
        items. An item of weight 0 is in no pair.
    entry : None
        Left truncation (delayed entry) is not supported; entry times raise a ValueError.

    Examples
    --------
    The second patient was censored, so it is not compared with the third:

    >>> from rankwise import RankRLS, SurvivalGraph
    >>> graph = SurvivalGraph(time=[5, 8, 12, 3], event=[1, 0, 1, 1])
    >>> graph.n_pairs, graph.divergence
    (5, array([-1.,  2.,  2., -3.]))
    >>> age = [[64.0], [60.0], [48.0], [75.0]]
    >>> RankRLS(alpha=0.1).fit(age, graph).score(age, graph)
    1.0
    """

    cost = "sign"
    ties = "exclude"

    def __init__(
        self,
        time: ArrayLike,
        event: ArrayLike,
        groups: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
        *,
        entry: None = None,
    ) -> None:
        if entry is not None:
            raise ValueError(
                "entry: left truncation (delayed entry) is not supported, because items that enter "
                "late are comparable only while both are under observation. Drop such items, or "
                "count time from the entry if that is meaningful."
            )
        check_same_index(time=time, event=event, groups=groups, sample_weight=sample_weight)
        times, events = check_survival(time, event)
        weight = None
        if sample_weight is not None:
            weight = check_sample_weight(sample_weight, len(times))
        self._set_attributes(times, events, encode_groups(groups, len(times)), weight)
        if not self.n_pairs:
            raise ValueError(f"no two items are comparable: {_why_not_comparable(times, events)}.")

    def _set_attributes(
        self, time: Array, event: NDArray[np.bool_], groups: Groups, weight: Array | None
    ) -> None:
        self.time = time
        self.event = event
        self.item_weights = weight
        self.n_items = len(time)
        self._groups = groups
        self.groups = groups.codes
        self.group_labels = groups.labels
        self.n_groups = groups.n_groups
        self.n_units = groups.n_groups
        sortable_time = np.where(np.isnan(time), NOT_FOLLOWED, time)
        levels = TimeLevels(sortable_time, event, groups, weight)
        self.levels = levels
        # a pair is an event and a later item of its group
        self.total_weight = float(
            (levels.is_event * levels.weight_of_level) @ levels.weight_of_later
        )
        n_pairs = self.total_weight  # without weights, every pair weighs 1
        if levels.is_weighted:  # count the pairs of positive weight
            n_items_of_level = levels.sum_in_levels((levels.sorted_weight > 0).astype(np.float64))
            n_pairs = float(
                (levels.is_event * n_items_of_level)
                @ levels.sum_over_later_levels(n_items_of_level)
            )
        self.n_pairs = int(n_pairs)

    @property
    def hold_out_unit(self) -> str:
        """Cross-validation of one group holds out items."""
        return "items"

    @property
    def squared_magnitude(self) -> float:
        """Σ ω: all magnitudes are 1."""
        return self.total_weight

    @cached_property
    def divergence(self) -> Array:
        """Weight of the earlier events, minus that of the later items of an event."""
        # an item wins against its earlier events; an event loses against the later items
        levels = self.levels
        weight_of_losers = levels.weight_of_earlier_events
        weight_of_winners = levels.is_event * levels.weight_of_later
        difference = levels.to_positions(weight_of_losers - weight_of_winners)
        return levels.to_items(levels.sorted_weight * difference)

    @cached_property
    def degrees(self) -> Array:
        """Weight of the pairs of each item: the diagonal of L."""
        levels = self.levels
        return levels.to_items(levels.sorted_weight * levels.to_positions(levels.degree))

    @cached_property
    def components(self) -> Indices:
        """Connected component: all items of a group that are in a pair; others are alone."""
        # a group is one component; an item without a pair is a separate component
        label_of_single_item = self.n_groups + np.arange(self.n_items)
        labels = np.where(self.degrees > 0, self.groups, label_of_single_item)
        _, component = np.unique(labels, return_inverse=True)
        return component.astype(np.intp)

    def laplacian(self, V: Array) -> Array:
        """``L V = F Fᵀ V`` in O(n_items) for each column.

        Parameters
        ----------
        V : ndarray of shape (n_items,) or (n_items, k)
            Vectors.

        Returns
        -------
        ndarray
            The product, of the shape of V.
        """
        F = SurvivalRoot(self.levels, scale=1.0)
        return F.apply(F.adjoint(V))

    def root(self, scale: float = 1.0, shift: float = 0.0) -> GraphRoot:
        """F with ``F Fᵀ = scale L + shift D``; products cost O(n_items) if shift is 0.

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
        if shift:
            return super().root(scale, shift)
        return SurvivalRoot(self.levels, scale)

    def system(self, R: Any, t: Array) -> tuple[Array, Array]:
        """``Rᵀ L R`` and ``Rᵀ t``; for dense R in one pass over blocks of rows.

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
        if sp.issparse(R):
            return super().system(R, t)
        # Rᵀ L R is the sum of squares of the rows of Fᵀ R with F Fᵀ = L
        n_columns = R.shape[1]
        gram = np.zeros((n_columns, n_columns))
        moment = np.zeros((n_columns, *t.shape[1:]))
        for block in WhitenedRows(self.levels, R):
            gram += block.rows.T @ block.rows
            moment += block.features.T @ t[block.items]
        return gram, moment

    def sparse_norms(self, R: Any) -> Array:
        """``rᵀ L r`` for each column r of sparse R in O(number of non-zeros), with a sort.

        Parameters
        ----------
        R : sparse matrix of shape (n_items, p)
            Columns.

        Returns
        -------
        ndarray of shape (p,)
            Squared norms.
        """
        levels = self.levels
        n_columns = R.shape[1]
        entries = sp.coo_array(R)  # the nonzero values r, with their row and column
        position_of_item = np.argsort(levels.order)

        # entries sorted by column and position, that is by column, group and falling time
        position = position_of_item[entries.row]
        in_order = np.lexsort((position, entries.col))
        position = position[in_order]
        column = entries.col[in_order]
        r = entries.data[in_order]
        weighted_r = levels.sorted_weight[position] * r
        level = levels.level_of_position[position]

        # for each entry the sum of the later entries of its column and group, which are sorted
        # before it, because the time falls
        n_levels = len(levels.start_of_level)
        column_start = column.astype(np.int64) * n_levels
        first_level_of_group = levels.level_bounds_of_group[levels.group_of_level[level]]
        key = column_start + level  # sorted
        first_entry_of_group = np.searchsorted(key, column_start + first_level_of_group)
        first_entry_of_level = np.searchsorted(key, key)
        sum_before = np.r_[0.0, np.cumsum(weighted_r)]
        sum_later = sum_before[first_entry_of_level] - sum_before[first_entry_of_group]

        # rᵀ L r of each column r = Σ degree w r² − 2 Σ over the pairs of w_i r_i w_j r_j, each pair
        # at its event
        squares = levels.degree[level] * weighted_r * r
        products = levels.is_event[level] * weighted_r * sum_later
        norms = np.bincount(column, squares, n_columns)
        norms -= 2 * np.bincount(column, products, n_columns)
        return np.asarray(norms)

    def permuted(self, items: Indices) -> SurvivalGraph:
        """The graph in which item k has the time and the event of item ``items[k]``.

        Parameters
        ----------
        items : ndarray of int, shape (n_items,)
            A permutation inside the groups.

        Returns
        -------
        SurvivalGraph
            A new graph.
        """
        return self._from_arrays(
            self.time[items], self.event[items], self._groups, self.item_weights
        )

    def sampling_order(self) -> Indices:
        """Items sorted by group and time.

        Returns
        -------
        ndarray of int, shape (n_items,)
            Row numbers.
        """
        return self.levels.order

    def subset(self, items: Indices) -> SurvivalGraph:
        """The graph of these items.

        Parameters
        ----------
        items : ndarray of int
            Row numbers of the items.

        Returns
        -------
        SurvivalGraph
            A new graph.
        """
        weight = take_weights(self.item_weights, items)
        return self._from_arrays(
            self.time[items], self.event[items], self._groups.take(items), weight
        )

    def weighted(self, sample_weight: ArrayLike) -> SurvivalGraph:
        """The graph with the weights of the items multiplied by these weights.

        Parameters
        ----------
        sample_weight : array-like of shape (n_items,)
            Weights of the items.

        Returns
        -------
        SurvivalGraph
            A new graph.
        """
        weight = check_weights(sample_weight, self.n_items)
        if self.item_weights is not None:
            weight = weight * self.item_weights
        return self._from_arrays(self.time, self.event, self._groups, weight)

    @classmethod
    def _from_arrays(
        cls, time: Array, event: NDArray[np.bool_], groups: Groups, weight: Array | None
    ) -> SurvivalGraph:
        """A graph of checked arrays, which may have no pairs."""
        graph = cls.__new__(cls)
        graph._set_attributes(time, event, groups, weight)
        return graph

    def pairs(self) -> PairGraph:
        """List all pairs, O(n_pairs): for tests and small data.

        Returns
        -------
        PairGraph
            A graph with the same edges, as arrays.
        """
        check_matrix_fits(self.n_pairs, 8, "the list of all pairs", "use fewer items")
        edges = edges_of_blocks(pair_blocks(self))
        return PairGraph.from_arrays(edges, self.n_items, cost=self.cost, groups=self._groups)

    def disagreement(
        self, F: NDArray[Any], fold: Indices | None = None, *, pooled: bool = False
    ) -> Array:
        """As `PreferenceGraph.disagreement`, by sweeps over sorted scores.

        Parameters
        ----------
        F, fold, pooled
            As in `PreferenceGraph.disagreement`.

        Returns
        -------
        ndarray
            Shares of wrong pairs.
        """
        # weighted share of pairs in the wrong order, for each group and each column of scores
        group_and_fold = self.groups
        if fold is not None:
            n_numbers = fold.max(initial=0) + 2  # an item in no fold may have the number −1
            group_and_fold = self.groups * n_numbers + fold  # one number for both
        _, subset_of_item = np.unique(group_and_fold, return_inverse=True)
        row_of_item = self.groups  # of the result: one for each group, or all groups pooled
        n_rows = self.n_groups
        if pooled:
            row_of_item = np.zeros_like(self.groups)
            n_rows = 1
        score_columns = F.reshape(len(F), -1)
        shares = np.full((n_rows, score_columns.shape[1]), np.nan)
        for column, scores in enumerate(score_columns.T):
            counts_as_earlier, _ = self.count_pairs(scores, subset_of_item)  # each pair once
            counts = counts_as_earlier.sum_by(row_of_item, n_rows)
            np.divide(counts.errors, counts.total, out=shares[:, column], where=counts.total > 0)
        return shares.reshape(n_rows, *F.shape[1:])

    def count_pairs(
        self, scores: NDArray[Any], subset_of_item: Indices, loser_factor: Array | None = None
    ) -> tuple[PairCounts, PairCounts]:
        """Count the pairs of each item inside its subset, as the earlier and as the later item.

        Parameters
        ----------
        scores : ndarray of shape (n_items,)
            Predicted scores.
        subset_of_item : ndarray of int, shape (n_items,)
            Number of the subset of each item; the items of a subset are in one group.
        loser_factor : ndarray of shape (n_items,), optional
            Factor of the weights of the pairs in which the event of the item is the earlier one.

        Returns
        -------
        tuple of PairCounts
            Counts of each item as the earlier and as the later item.
        """
        weight = weights_or_ones(self.item_weights, self.n_items)
        loser_weight = np.where(self.event, weight, 0.0)
        if loser_factor is not None:
            loser_weight = loser_weight * loser_factor
        return count_ordered_pairs(
            scores, self._level_in_group, subset_of_item, loser_weight, weight
        )

    @cached_property
    def _level_in_group(self) -> NDArray[np.int32]:
        """Level of each item, counted from the earliest level of its group."""
        levels = self.levels
        # levels are sorted by group and falling time: the last one of a group is the earliest
        earliest_level_of_group = levels.level_bounds_of_group[1:] - 1
        level_number = np.arange(len(levels.start_of_level))
        number_in_group = earliest_level_of_group[levels.group_of_level] - level_number
        level_of_item = np.empty(self.n_items, dtype=np.int32)
        level_of_item[levels.order] = number_in_group[levels.level_of_position]
        return level_of_item

    def describe(self) -> GraphDescription:
        """Count the items, groups and pairs; events at the same time are tied pairs.

        Returns
        -------
        GraphDescription
            Counts, which `print` shows as text.
        """
        is_in_pair = self.degrees > 0
        n_groups_with_pairs = len(np.unique(self.groups[is_in_pair]))
        # a level: the items of a group with the same time, all events or all censored
        level_sizes = np.diff(self.levels.start_of_level, append=self.n_items)
        n_events_of_level = level_sizes[self.levels.is_event]
        n_tied_pairs = n_events_of_level * (n_events_of_level - 1) // 2  # two events at one time
        return GraphDescription(
            n_items=self.n_items,
            n_groups=self.n_groups,
            n_pairs=self.n_pairs,
            n_tied_pairs=int(n_tied_pairs.sum()),
            n_groups_without_pairs=self.n_groups - n_groups_with_pairs,
            n_isolated_items=int((~is_in_pair).sum()),
            total_weight=self.total_weight,
        )


@strict_pairs.register
def _strict_pairs_of_times(graph: SurvivalGraph) -> OrderedPairs:
    return OrderedPairs(graph, graph._level_in_group, can_lose=graph.event)


@pair_blocks.register
def _pair_blocks_of_times(graph: SurvivalGraph) -> Iterator[PairBlock]:
    """Each event with the later items of its group."""
    # each event is paired with the later items of its group, which are before its level in the
    # order of falling time
    levels = graph.levels
    last_level = len(levels.start_of_level) - 1
    first_level_of_group = np.minimum(levels.level_bounds_of_group[:-1], last_level)
    group_start = levels.start_of_level[first_level_of_group]
    first_partner = levels.to_positions(group_start[levels.group_of_level])
    n_later_items = levels.to_positions(levels.start_of_level) - first_partner
    has_event = graph.event[levels.order]
    n_partners = np.where(has_event, n_later_items, 0)
    for block in partner_blocks(levels.order, first_partner, n_partners):
        weight = np.ones(len(block.owner))
        if graph.item_weights is not None:
            item_weights = graph.item_weights[block.items]
            weight = item_weights[block.owner] * item_weights[block.partner]
        no_ties = np.zeros_like(weight)
        yield PairBlock(block.items, block.partner, block.owner, weight, no_ties)


def _why_not_comparable(time: Array, event: NDArray[np.bool_]) -> str:
    if not event.any():
        return "no event was observed; check that event is 1 where the event happened"
    if len(np.unique(time)) == 1:
        return f"all times are {time[0]:g}; pass the time until the event or the censoring"
    return (
        "no item was observed for longer than an item of its group with an event; check event, and "
        "pass groups only if items of different groups must not be compared"
    )
