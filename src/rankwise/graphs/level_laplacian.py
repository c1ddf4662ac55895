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
    joins_levels : bool
        Whether items of one level are pairs.
    """

    levels: Levels
    pair_weights: Array
    within: Array
    between: Array
    joins_levels: bool

    @classmethod
    def of_all_pairs(cls, groups_as_levels: Levels, pair_weights: Array) -> LevelLaplacian:
        """All pairs of each group; the levels are the groups."""
        # factors of v − level mean, and of level mean − group mean, which are equal here
        within = pair_weights * groups_as_levels.group_size
        between = np.zeros(groups_as_levels.n_groups)
        return cls(groups_as_levels, pair_weights, within, between, joins_levels=True)

    @classmethod
    def of_different_levels(cls, levels: Levels, pair_weights: Array) -> LevelLaplacian:
        """The pairs of each group whose items have different levels."""
        # factors of v − level mean, and of level mean − group mean
        within = pair_weights[levels.group] * levels.weight_of_other_levels
        between = (pair_weights * levels.group_size)[levels.group]
        return cls(levels, pair_weights, within, between, joins_levels=False)

    def product(self, V: Array, out: Array | None = None) -> Array:
        """``L V`` in O(n_items) for each column; written to `out` if given, which may be V."""
        # w (within (v − level mean) + between (level mean − group mean)) of each item
        levels = self.levels
        if self.joins_levels:  # each group is one level
            means_of_groups = group_means(V, levels.of_item, levels.size, levels.weight)
            return group_center(V, levels.of_item, means_of_groups, self.within, out, levels.weight)
        level_means, means_of_groups = levels.means(V)
        out = group_center(V, levels.of_item, level_means, self.within, out, levels.weight)
        level_deviation = level_means - means_of_groups
        out += levels.to_items(row_factors(self.between, V) * level_deviation)
        return out

    def diagonal(self) -> Array:
        """Weight of the pairs of each item."""
        levels = self.levels
        if not self.joins_levels:
            return levels.to_items(self.within)
        weight = weights_or_ones(levels.weight, levels.n_items)
        weight_of_others = levels.group_size[levels.of_item] - weight
        return levels.to_items(self.pair_weights) * weight_of_others

    def root(self, scale: float, shift: float) -> LevelRoot:
        """F with ``F Fᵀ = scale L + shift D``, D the weights of the items."""
        # factors of the components of a vector: see `product`; D multiplies all of them by 1
        within = scale * self.within + shift
        between = scale * self.between + shift
        return LevelRoot(self.levels, within, between, shift)

    def gram(self, R: Any, t: Array) -> tuple[Array, Array]:
        """``Rᵀ L R`` and ``Rᵀ t`` of dense R in one pass over blocks of rows."""
        # scatter of the items around their levels, and of the levels around their groups
        levels = self.levels
        group_factors = self.pair_weights * levels.group_size
        if levels.n_levels == levels.n_items:  # every level is one item, its own mean
            items_of_groups = Partition(levels.group[levels.of_item], group_factors)
            return nested_scatter(R, [items_of_groups], t, levels.weight)
        partitions = [Partition(levels.of_item, self.within)]
        if not self.joins_levels:
            partitions.append(Partition(levels.group, group_factors))
        return nested_scatter(R, partitions, t, levels.weight)

    def column_norms(self, R: Any) -> Array:
        """``rᵀ L r`` for each column r of sparse R in O(number of non-zeros).

        Sums of squares around the means of levels and groups follow from plain sums.
        """
        levels = self.levels
        weight = weights_or_ones(levels.weight, levels.n_items)
        level_of_each_item = (weight, levels.of_item, np.arange(levels.n_items + 1))
        indicator = sp.csr_matrix(level_of_each_item, (levels.n_items, levels.n_levels))
        level_sums = indicator.T.tocsr() @ R
        level_size = np.where(levels.size > 0, levels.size, 1.0)

        # Σ within (r − level mean)² + Σ between (level mean − group mean)², multiplied out
        norms = sums_of_squares(R, weight * self.within[levels.of_item])
        norms += sums_of_squares(level_sums, (self.between - self.within) / level_size)
        if self.between.any():
            every_level = np.arange(levels.n_levels)
            ones = np.ones(levels.n_levels)
            shape = (levels.n_groups, levels.n_levels)
            levels_by_group = sp.csr_matrix((ones, (levels.group, every_level)), shape)
            norms -= sums_of_squares(levels_by_group @ level_sums, self.pair_weights)
        return norms
