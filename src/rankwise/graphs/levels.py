"""Levels of equal scores inside groups."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from rankwise._compiled import sort_by_group
from rankwise.arrays import Array, Indices, row_factors
from rankwise.caching import cached_property
from rankwise.groups import group_means, group_sums


class Levels:
    """A partition of the items into levels, and of the levels into groups.

    Levels of one group have consecutive numbers, in increasing order of their scores.

    Attributes
    ----------
    level_of_item : ndarray of shape (n_items,)
        Level of each item.
    group_of_level : ndarray of shape (n_levels,)
        Group of each level.
    n_groups : int
        Number of groups.
    item_weights : ndarray of shape (n_items,) or None
        Weights of the items, which sizes and means use; None if all are 1.
    weight_of_level : ndarray of shape (n_levels,)
        Total weight of the items of each level.
    weight_of_group : ndarray of shape (n_groups,)
        Total weight of the items of each group.
    """

    def __init__(
        self,
        level_of_item: Indices,
        group_of_level: Indices,
        n_groups: int,
        item_weights: Array | None = None,
    ) -> None:
        self.level_of_item = level_of_item
        self.group_of_level = group_of_level
        self.n_groups = n_groups
        self.item_weights = item_weights
        self.weight_of_level = group_sums(item_weights, level_of_item, len(group_of_level))
        self.weight_of_group = group_sums(self.weight_of_level, group_of_level, n_groups)

    @property
    def n_items(self) -> int:
        """Number of items."""
        return len(self.level_of_item)

    @property
    def n_levels(self) -> int:
        """Number of levels in all groups."""
        return len(self.group_of_level)

    @cached_property
    def lowest_level(self) -> Indices:
        """Number of the lowest level of each group."""
        return np.searchsorted(self.group_of_level, np.arange(self.n_groups))

    def means(self, V: Array, weight: Array | None = None) -> tuple[Array, Array]:
        """For each level the mean of V in the level, and the mean of V in the level's group.

        Parameters
        ----------
        V : ndarray of shape (n_items,) or (n_items, k)
            Values of the items.
        weight : ndarray of shape (n_items,), optional
            Factors of the items in the sums, which are divided by the sizes in any case; by default
            the weights of the items.
        """
        if weight is None:
            weight = self.item_weights
        level_means = group_means(V, self.level_of_item, self.weight_of_level, weight)
        means_of_groups = group_means(
            level_means, self.group_of_level, self.weight_of_group, self.weight_of_level
        )
        return level_means, means_of_groups[self.group_of_level]

    def to_items(self, values: Array) -> Array:
        """Value of the level of each item, times the weight of the item."""
        item_values = values[self.level_of_item]
        if self.item_weights is not None:
            item_values *= row_factors(self.item_weights, values)
        return np.asarray(item_values)

    @cached_property
    def weight_of_lower_levels(self) -> Array:
        """Total weight of the items of the group that are below each level."""
        if self.item_weights is None:
            return self._sum_of_lower_levels(self.weight_of_level)
        # relative to the weight of the group, so that groups of small weight keep their digits
        divisor_of_group = np.where(self.weight_of_group > 0, self.weight_of_group, 1.0)
        divisor = divisor_of_group[self.group_of_level]
        return np.asarray(self._sum_of_lower_levels(self.weight_of_level / divisor) * divisor)

    @property
    def number_in_group(self) -> NDArray[np.int32]:
        """Level of each item, counted from 0 for the lowest level of its group."""
        lowest_level_of_group = self.lowest_level[self.group_of_level]
        return (self.level_of_item - lowest_level_of_group[self.level_of_item]).astype(np.int32)

    @property
    def weight_of_other_levels(self) -> Array:
        """For each level the total weight of the items in the other levels of its group."""
        return np.asarray(self.weight_of_group[self.group_of_level] - self.weight_of_level)

    def _sum_of_lower_levels(self, size: Array) -> Array:
        """Sum of the sizes of the lower levels of the same group, for each level."""
        sum_before = np.cumsum(size) - size  # over all groups
        sum_before -= sum_before[self.lowest_level][self.group_of_level]
        return np.asarray(sum_before)


def find_levels(
    scores: Array, group: Indices, n_groups: int, weight: Array | None = None
) -> Levels:
    """Levels of the distinct pairs (group, score)."""
    # items by group and score; a level starts where one of them changes
    order = np.argsort(scores)
    if n_groups > 1:
        group_sizes = np.bincount(group, minlength=n_groups)
        group_starts = np.cumsum(group_sizes) - group_sizes
        order = sort_by_group(order, group.astype(np.int32), group_starts)
    sorted_group = group[order]
    sorted_scores = scores[order]
    starts_level = np.ones(len(scores), dtype=bool)
    starts_level[1:] = sorted_group[1:] != sorted_group[:-1]
    starts_level[1:] |= sorted_scores[1:] != sorted_scores[:-1]
    level_of_item = np.empty(len(scores), dtype=np.intp)
    level_of_item[order] = np.cumsum(starts_level) - 1
    return Levels(level_of_item, sorted_group[starts_level], n_groups, weight)


class Partition(NamedTuple):
    """Children and their parents.

    Attributes
    ----------
    parent : ndarray of shape (n_children,)
        Number of the parent of each child.
    weight : ndarray of shape (n_parents,)
        Weight of the scatter of each parent's children.
    size : ndarray of shape (n_parents,)
        Number of items of each parent, or the sum of their weights.
    """

    parent: Indices
    weight: Array
    size: Array
