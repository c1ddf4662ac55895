"""Laplacian of the pairs inside groups, as a function of levels: no pair is formed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

from rankwise.arrays import Array, row_factors, weights_or_ones
from rankwise.graphs.gram import nested_scatter, sums_of_squares
from rankwise.graphs.laplacian_roots import LevelRoot
from rankwise.graphs.levels import Levels, Partition
from rankwise.groups import group_center, group_means


@dataclass(frozen=True)
class LevelLaplacian:
    """Laplacian of all pairs inside groups, or of the pairs of different levels.

    With item weights w, the mean of the level and the mean of the group,

        (L v)_i = w_i · (within · (v_i − level mean) + between · (level mean − group mean)),

    where `within` and `between` depend on the level of item i only. A clique of total weight s has
    ``L v = w ∘ (s v − Σ w v)``.

    Attributes
    ----------
    levels : Levels
        Levels of the items. If all pairs count, each group is one level.
    pair_weights : ndarray of shape (n_groups,)
        Weight of the pairs of each group.
    within, between : ndarray of shape (n_levels,)
        Factors of the deviations, see above.
    has_pairs_inside_levels : bool
        Whether items of one level are pairs.
    """

    levels: Levels
    pair_weights: Array
    within: Array
    between: Array
    has_pairs_inside_levels: bool

    @classmethod
    def of_all_pairs(cls, groups_as_levels: Levels, pair_weights: Array) -> LevelLaplacian:
        """All pairs of each group; the levels are the groups."""
        # each group is one level: factors of v − level mean, and of level mean − group mean, zero
        within = pair_weights * groups_as_levels.weight_of_group
        between = np.zeros(groups_as_levels.n_groups)
        return cls(groups_as_levels, pair_weights, within, between, has_pairs_inside_levels=True)

    @classmethod
    def of_different_levels(cls, levels: Levels, pair_weights: Array) -> LevelLaplacian:
        """The pairs of each group whose items have different levels."""
        # factors of v − level mean, and of level mean − group mean
        within = pair_weights[levels.group_of_level] * levels.weight_of_other_levels
        between = (pair_weights * levels.weight_of_group)[levels.group_of_level]
        return cls(levels, pair_weights, within, between, has_pairs_inside_levels=False)

    def product(self, V: Array, out: Array | None = None) -> Array:
        """``L V`` in O(n_items) for each column; written to `out` if given, which may be V."""
        # w (within (v − level mean) + between (level mean − group mean)) of each item
        levels = self.levels
        if self.has_pairs_inside_levels:  # each group is one level
            means_of_groups = group_means(
                V, levels.level_of_item, levels.weight_of_level, levels.item_weights
            )
            return group_center(
                V, levels.level_of_item, means_of_groups, self.within, out, levels.item_weights
            )
        level_means, means_of_groups = levels.means(V)
        out = group_center(
            V, levels.level_of_item, level_means, self.within, out, levels.item_weights
        )
        level_deviation = level_means - means_of_groups
        out += levels.to_items(row_factors(self.between, V) * level_deviation)
        return out

    def diagonal(self) -> Array:
        """Weight of the pairs of each item."""
        # weight of the pairs of each item
        levels = self.levels
        if not self.has_pairs_inside_levels:  # pairs of different levels only
            return levels.to_items(self.within)
        weight = weights_or_ones(levels.item_weights, levels.n_items)
        weight_of_others = levels.weight_of_group[levels.level_of_item] - weight
        return levels.to_items(self.pair_weights) * weight_of_others

    def root(self, scale: float, shift: float) -> LevelRoot:
        """F with ``F Fᵀ = scale L + shift D``, D the weights of the items."""
        # scale L + shift D: L scales the deviations from the level means by `within`, and the
        # deviations of level means from group means by `between`; the item weights D scale both by
        # 1
        within = scale * self.within + shift
        between = scale * self.between + shift
        return LevelRoot(self.levels, within, between, shift)

    def gram(self, R: Any, t: Array) -> tuple[Array, Array]:
        """``Rᵀ L R`` and ``Rᵀ t`` of dense R in one pass over blocks of rows."""
        # scatter of the items around their levels, and of the levels around their groups
        levels = self.levels
        group_factors = self.pair_weights * levels.weight_of_group
        if levels.n_levels == levels.n_items:  # every level is one item, its own mean
            group_of_item = levels.group_of_level[levels.level_of_item]
            items_of_groups = Partition(group_of_item, group_factors, levels.weight_of_group)
            return nested_scatter(R, [items_of_groups], t, levels.item_weights)
        partitions = [Partition(levels.level_of_item, self.within, levels.weight_of_level)]
        if not self.has_pairs_inside_levels:
            levels_of_groups = Partition(
                levels.group_of_level, group_factors, levels.weight_of_group
            )
            partitions.append(levels_of_groups)
        return nested_scatter(R, partitions, t, levels.item_weights)

    def squared_column_norms(self, R: Any) -> Array:
        """``rᵀ L r`` for each column r of sparse R in O(number of non-zeros).

        Sums of squares around the means of levels and groups follow from plain sums.
        """
        # rᵀ L r of each sparse column r
        levels = self.levels
        weight = weights_or_ones(levels.item_weights, levels.n_items)
        # row of each item: its weight in the column of its level
        one_entry_per_row = (weight, levels.level_of_item, np.arange(levels.n_items + 1))
        items_by_level = sp.csr_matrix(one_entry_per_row, (levels.n_items, levels.n_levels))
        level_sums = items_by_level.T.tocsr() @ R
        level_size = np.where(levels.weight_of_level > 0, levels.weight_of_level, 1.0)

        # Σ within (r − level mean)² + Σ between (level mean − group mean)², multiplied out:
        # within r² and (between − within) · (level sum)² / size, less pair weight · (group sum)²
        squared_norms = sums_of_squares(R, weight * self.within[levels.level_of_item])
        squared_norms += sums_of_squares(level_sums, (self.between - self.within) / level_size)
        if self.between.any():
            every_level = np.arange(levels.n_levels)
            ones = np.ones(levels.n_levels)
            shape = (levels.n_groups, levels.n_levels)
            levels_by_group = sp.csr_matrix((ones, (levels.group_of_level, every_level)), shape)
            squared_norms -= sums_of_squares(levels_by_group @ level_sums, self.pair_weights)
        return squared_norms
