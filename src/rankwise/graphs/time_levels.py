"""Levels of equal time, and a root of the Laplacian of right-censored times.

Items are sorted by group and time. Items of equal time and equal event form a *level*; at equal
times, events come before censored items. An item with an event is paired with all items of its
group in later levels, so that every sum over pairs is a sum over levels before or after a level.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rankwise._compiled import sort_by_group
from rankwise.arrays import Array, Indices, weights_or_ones
from rankwise.graphs.gram import block_rows, shift_of_columns
from rankwise.graphs.laplacian_roots import GraphRoot, reciprocal_or_zero
from rankwise.groups import Groups, cumulate_rows, group_sums

CACHED_ENTRIES = 2**16  # of a block of rows that stays in the cache for several passes


class TimeLevels:
    """Items sorted by group and falling time, in levels of equal time and equal event.

    Attributes
    ----------
    order : ndarray of int, shape (n_items,)
        The items, sorted by group and by falling time, and censored items before events.
    start_of_level : ndarray of int, shape (n_levels,)
        Position in `order` of the first item of each level.
    level_of_position : ndarray of int, shape (n_items,)
        Level of each sorted item.
    is_event : ndarray of bool, shape (n_levels,)
        Whether the items of the level have an event.
    level_bounds_of_group : ndarray of int, shape (n_groups + 1,)
        First level of each group, and the number of levels.
    is_weighted : bool
        Whether the items have weights.
    sorted_weight : ndarray of shape (n_items,)
        Weights of the sorted items; 1 without weights.
    weight_of_level, weight_of_later, weight_of_earlier_events : ndarray of shape (n_levels,)
        Weight of the level, of the later levels of its group, and of the earlier events.
    degree : ndarray of shape (n_levels,)
        Weight of the partners of an item of the level.
    coupling : ndarray of shape (n_levels,)
        h of the level, see `SurvivalRoot`.
    """

    def __init__(
        self, time: Array, event: NDArray[np.bool_], groups: Groups, weight: Array | None
    ) -> None:
        # a level starts where the group, the time or the event changes
        self.order = _latest_first(time, event, groups)
        sorted_time = time[self.order]
        sorted_event = event[self.order]
        sorted_group = groups.codes[self.order]
        starts_level = np.ones(len(time), dtype=bool)
        starts_level[1:] = sorted_time[1:] != sorted_time[:-1]
        starts_level[1:] |= sorted_event[1:] != sorted_event[:-1]
        starts_level[1:] |= sorted_group[1:] != sorted_group[:-1]
        self.start_of_level = np.flatnonzero(starts_level)
        self.level_of_position = np.cumsum(starts_level) - 1
        self.is_event = sorted_event[self.start_of_level]
        level_groups = sorted_group[self.start_of_level]
        self.level_bounds_of_group = np.searchsorted(level_groups, np.arange(groups.n_groups + 1))
        self.is_weighted = weight is not None
        self.sorted_weight = weights_or_ones(weight, len(time))[self.order]
        # weight of the items of each level, and in its group of later items and of earlier events
        self.weight_of_level = self.sum_in_levels(self.sorted_weight)
        self.weight_of_later = self.sum_over_later_levels(self.weight_of_level)
        self.weight_of_earlier_events = self.sum_over_earlier_levels(
            self.weight_of_level * self.is_event
        )
        self.degree = self.weight_of_earlier_events + self.is_event * self.weight_of_later
        # h: coupling of an item to the later ones once the earlier levels are eliminated
        remaining = self.weight_of_level + self.weight_of_later
        coupling_by_elimination = self.weight_of_earlier_events * reciprocal_or_zero(remaining)
        self.coupling = np.asarray(coupling_by_elimination + self.is_event)

    def sum_in_levels(self, values: Array) -> Array:
        """Sum of the values of the sorted items of each level."""
        if len(self.start_of_level) == len(values):  # every level is one item
            return values
        return group_sums(values, self.level_of_position, len(self.start_of_level))

    def sum_over_later_levels(self, values: Array) -> Array:
        """Sum of the values of the later levels of the group, for each level."""
        # cumulative sums in each group, without the level itself
        sums = np.zeros_like(values)
        sums[1:] = values[:-1]  # of the next later level; levels are sorted by falling time
        for start, stop in itertools.pairwise(self.level_bounds_of_group.tolist()):
            sums[start] = 0.0  # nothing is later than the first level of a group
            cumulate_rows(sums[start:stop])  # in place
        return sums

    def sum_over_earlier_levels(self, values: Array) -> Array:
        """Sum of the values of the earlier levels of the group, for each level."""
        # cumulative sums in each group from its end, without the level itself
        sums = np.zeros_like(values)
        sums[:-1] = values[1:]  # of the next earlier level; levels are sorted by falling time
        for start, stop in itertools.pairwise(self.level_bounds_of_group.tolist()):
            sums[stop - 1] = 0.0  # nothing is earlier than the last level of a group
            from_last_to_first = sums[start:stop][::-1]
            cumulate_rows(from_last_to_first)  # changes the sums in place
        return sums

    @property
    def group_of_level(self) -> Indices:
        """Group of each level."""
        return np.repeat(
            np.arange(len(self.level_bounds_of_group) - 1), np.diff(self.level_bounds_of_group)
        )

    def to_positions(self, values: NDArray[Any]) -> NDArray[Any]:
        """Value of the level of each sorted item."""
        if len(self.start_of_level) == len(self.order):  # every level is one item
            return values
        return np.asarray(values[self.level_of_position])

    def to_items(self, sorted_values: Array) -> Array:
        """Values of the sorted items in the order of the items."""
        values = np.empty_like(sorted_values)
        values[self.order] = sorted_values
        return values


def _latest_first(time: Array, event: NDArray[np.bool_], groups: Groups) -> Indices:
    """Items by group and falling time; at equal times censored items first."""
    order = np.ascontiguousarray(np.argsort(time)[::-1])
    sorted_time = time[order]
    has_equal_times = (sorted_time[1:] == sorted_time[:-1]).any()
    if has_equal_times:  # at equal times censored items come first; this sort is slower
        order = np.lexsort((event, -time))
    if groups.n_groups > 1:
        order = sort_by_group(order, groups.codes.astype(np.int32), groups.starts)
    return order


class SurvivalRoot(GraphRoot):
    """F with ``F Fᵀ = scale L``, by eliminating the levels in the order of time.

    After the elimination of the levels before level k, each pair of remaining items has the
    coupling c_k, besides its own edge: with the weights T of the level, S of the later levels and u
    of the earlier events, ``c = u/(S + T)``. Items of level k are coupled to later items by
    ``h = c + 1`` if they have an event, else by c. So F is block triangular. With q = u + S (or u,
    without an event), φ the mean of y in level k, and M its mean in the later levels,

        (Fᵀ y)_i = √w_i (√q (y_i − φ) + √(h S) (φ − M)).
    """

    def __init__(self, levels: TimeLevels, scale: float) -> None:
        self._levels = levels
        self._scale = scale
        self._root_weight = np.sqrt(levels.sorted_weight)[:, None]
        # factors of the deviation from the mean of the level, and from that of the later levels
        self._level_factor = np.sqrt(scale * levels.degree)[:, None]
        self._later_factor = np.sqrt(scale * levels.coupling * levels.weight_of_later)[:, None]

    def apply(self, V: Array) -> Array:
        """``F V``."""
        # F V; F is the transpose of the map of v to
        # √w (level_factor (v − level mean) + later_factor (level mean − later mean)), that is
        # √w (level_factor v + √w c) with the level means of √w v and a constant c of each level
        levels = self._levels
        sorted_V = self._sort(V)
        level_mean = self._level_means(self._root_weight * sorted_V)
        # contribution of each level to every item of the later levels, since it is compared with
        # their mean; it is subtracted
        later_share = reciprocal_or_zero(levels.weight_of_later)[:, None]
        flow = self._later_factor * later_share * levels.weight_of_level[:, None] * level_mean
        constant = (self._later_factor - self._level_factor) * level_mean
        constant -= levels.sum_over_earlier_levels(flow)
        deviation = levels.to_positions(self._level_factor) * sorted_V
        deviation += self._root_weight * levels.to_positions(constant)
        return levels.to_items(self._root_weight * deviation).reshape(V.shape)

    def adjoint(self, V: Array) -> Array:
        """``Fᵀ V``."""
        columns = V.reshape(len(V), -1)
        out = np.empty(columns.shape)
        for block in WhitenedRows(self._levels, columns):  # rows of Fᵀ V for scale 1
            out[block.items] = block.rows
        out *= np.sqrt(self._scale)
        return np.asarray(out.reshape(V.shape))

    def solve(self, d: Array) -> Array:
        """A vector b with ``F b = d``, for d in the range of F."""
        # b with F b = d: invert `apply` from the earliest level on. A level mean of d is
        # later_factor times that of √w b, less the flow from the earlier levels
        levels = self._levels
        sorted_d = self._sort(d)
        mean_of_d = self._level_means(sorted_d)
        # eliminating the earlier levels spreads their sum over the remaining items
        remaining = (levels.weight_of_level + levels.weight_of_later)[:, None]
        sum_of_earlier = levels.sum_over_earlier_levels(levels.sum_in_levels(sorted_d))
        flow_from_earlier = sum_of_earlier * reciprocal_or_zero(remaining)
        mean_of_b = reciprocal_or_zero(self._later_factor) * (mean_of_d + flow_from_earlier)

        # d/√w deviates from the level by level_factor times the deviation of b
        deviation = reciprocal_or_zero(self._root_weight) * sorted_d
        deviation -= self._root_weight * levels.to_positions(mean_of_d)
        b = levels.to_positions(reciprocal_or_zero(self._level_factor)) * deviation
        b += self._root_weight * levels.to_positions(mean_of_b)
        return levels.to_items(b).reshape(d.shape)

    def solve_adjoint(self, r: Array) -> Array:
        """A vector f with ``Fᵀ f = r``, for r in the range of Fᵀ."""
        # f with Fᵀ f = r, that is with
        # r = √w (level_factor (f − level mean) + later_factor (level mean − later mean))
        levels = self._levels
        sorted_r = self._sort(r)
        level_mean = self._level_means(self._root_weight * sorted_r)
        # level mean − later mean of f, and from these the later means, from the latest level on
        mean_difference = reciprocal_or_zero(self._later_factor) * level_mean
        share_of_level = levels.weight_of_level * reciprocal_or_zero(
            levels.weight_of_level + levels.weight_of_later
        )
        later_mean = levels.sum_over_later_levels(share_of_level[:, None] * mean_difference)

        deviation = sorted_r - self._root_weight * levels.to_positions(level_mean)
        factor = self._root_weight * levels.to_positions(self._level_factor)
        f = reciprocal_or_zero(factor) * deviation
        f += levels.to_positions(later_mean + mean_difference)
        return levels.to_items(f).reshape(r.shape)

    def _sort(self, V: Array) -> Array:
        return np.asarray(V.reshape(len(V), -1)[self._levels.order])

    def _level_means(self, values: Array) -> Array:
        """Sum of the values of each level, divided by the weight of the level."""
        means: Array = (
            self._levels.sum_in_levels(values)
            * reciprocal_or_zero(self._levels.weight_of_level)[:, None]
        )
        return means


class WhitenedBlock(NamedTuple):
    """Rows of R, and the corresponding rows of ``Fᵀ R``."""

    items: Indices
    features: Array
    rows: Array


class WhitenedRows:
    """The rows of ``Fᵀ R``, in blocks from the latest level to the earliest; see `SurvivalRoot`.

    Parameters
    ----------
    levels : TimeLevels
        Levels of the items.
    R : array of shape (n_items, n_columns)
        Dense features, or an object that returns dense rows when it is indexed.
    """

    def __init__(self, levels: TimeLevels, R: Any) -> None:
        self._levels = levels
        self._R = R
        self._shift = shift_of_columns(R)
        # factors of row − level mean, and of level mean − later mean: see `SurvivalRoot`
        self._level_factor = np.sqrt(levels.degree)
        self._later_factor = np.sqrt(levels.coupling * levels.weight_of_later)
        n_items = len(levels.order)
        self._position_bounds = np.append(levels.start_of_level, n_items)  # of the levels
        self._starts_group = np.zeros(len(levels.start_of_level), dtype=bool)
        self._starts_group[levels.level_bounds_of_group[:-1]] = True

    def __iter__(self) -> Iterator[WhitenedBlock]:
        sum_of_later_rows = np.zeros(self._R.shape[1])  # of the group, in the blocks so far
        for start, stop in self._level_ranges():
            block, sum_of_later_rows = self._whiten(slice(start, stop), sum_of_later_rows)
            yield block

    def _level_ranges(self) -> Iterator[tuple[int, int]]:
        """First level and end of each block of rows."""
        level_starts = self._levels.start_of_level
        n_items, n_columns = self._R.shape
        n_rows_in_cache = max(n_columns, CACHED_ENTRIES // n_columns)
        n_rows_of_block = min(block_rows(n_columns), n_rows_in_cache)
        bounds = np.searchsorted(level_starts, np.arange(0, n_items, n_rows_of_block))
        return itertools.pairwise([*np.unique(bounds).tolist(), len(level_starts)])

    def _whiten(self, block: slice, sum_of_later_rows: Array) -> tuple[WhitenedBlock, Array]:
        """Rows of a block of levels, and the sum of later rows for the next block."""
        # rows of Fᵀ R for a block of levels, from the latest level to the earliest: the row of each
        # item less the mean of its level, plus that mean less the mean of the later ones, each
        # scaled by a factor
        levels = self._levels
        positions = slice(self._position_bounds[block.start], self._position_bounds[block.stop])
        items = levels.order[positions]
        features = self._features(items)
        centered = features
        if self._shift is not None:
            centered = features - self._shift
        weighted = centered
        if levels.is_weighted:
            weighted = centered * levels.sorted_weight[positions, None]

        n_levels = block.stop - block.start
        if len(items) == n_levels:  # every level is one item
            rows, sum_of_later_rows = self._rows_of_level_means(
                block, centered, weighted, sum_of_later_rows
            )
        else:
            level = levels.level_of_position[positions] - block.start
            level_sum = group_sums(weighted, level, n_levels)
            level_mean = level_sum * reciprocal_or_zero(levels.weight_of_level[block])[:, None]
            rows_of_level_means, sum_of_later_rows = self._rows_of_level_means(
                block, level_mean, level_sum, sum_of_later_rows
            )
            rows = self._level_factor[block][level][:, None] * (centered - level_mean[level])
            rows += rows_of_level_means[level]
        if levels.is_weighted:
            rows *= np.sqrt(levels.sorted_weight[positions, None])
        return WhitenedBlock(items, features, rows), sum_of_later_rows

    def _features(self, items: Indices) -> Array:
        if isinstance(self._R, np.ndarray):  # `take` is twice as fast as an index
            features = self._R.take(items, axis=0)
        else:
            features = self._R[items]
        return np.asarray(features, dtype=np.float64)

    def _rows_of_level_means(
        self, block: slice, level_mean: Array, level_sum: Array, sum_of_later_rows: Array
    ) -> tuple[Array, Array]:
        """``√(h S) (φ − M)`` of each level, and the sum of later rows for the next block."""
        # later_factor (level mean − later mean); first the sums of the later levels of the group,
        # which come before a level because levels are sorted by falling time
        starts_group = self._starts_group[block]
        later_sums = np.empty_like(level_sum)
        later_sums[0] = sum_of_later_rows
        later_sums[1:] = level_sum[:-1]
        later_sums[starts_group] = 0.0  # nothing is later in the group
        group_starts = np.flatnonzero(starts_group)
        bounds = np.unique(np.r_[0, group_starts, len(later_sums)]).tolist()
        for start, stop in itertools.pairwise(bounds):
            cumulate_rows(later_sums[start:stop])
        sum_of_later_rows = later_sums[-1] + level_sum[-1]

        rows = later_sums  # in place from here on
        rows *= -reciprocal_or_zero(self._levels.weight_of_later[block])[:, None]  # −M
        rows += level_mean
        rows *= self._later_factor[block, None]
        return rows, sum_of_later_rows
