"""Levels: items of one group and one score, which a graph of scores cannot tell apart."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from rankwise._compiled import add_rows, scale_rows, sort_by_group
from rankwise.arrays import Array
from rankwise.graphs.protocol import sums_of_squares

__all__ = [
    "ScoreLevels",
    "deviations",
    "find_levels",
    "score_differences",
    "sums_of_families",
]

BLOCK_ENTRIES = 2**22


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
    counts : ndarray of shape (n_items,) or None
        How many equal items each of them stands for; None for one.
    """

    def __init__(
        self,
        of_item: NDArray[np.intp],
        group: NDArray[np.intp],
        n_groups: int,
        counts: Array | None = None,
    ) -> None:
        self.of_item = of_item
        self.group = group
        self.n_groups = n_groups
        self.counts = counts

    @cached_property
    def size(self) -> Array:
        """Number of items in each level."""
        sizes = np.bincount(self.of_item, weights=self.counts, minlength=len(self.group))
        return sizes.astype(np.float64, copy=False)

    @cached_property
    def count(self) -> NDArray[np.intp]:
        """Number of levels in each group."""
        return np.bincount(self.group, minlength=self.n_groups)

    @cached_property
    def first(self) -> NDArray[np.intp]:
        """Number of the first level of each group."""
        return np.cumsum(self.count) - self.count

    @cached_property
    def group_size(self) -> Array:
        """Number of items in each group."""
        return np.asarray(self._group_indicator.sum(axis=1), dtype=np.float64).ravel()

    @cached_property
    def _group_indicator(self) -> sp.csr_matrix:
        n_levels = len(self.group)
        starts = np.r_[self.first, n_levels]
        return sp.csr_matrix((self.size, np.arange(n_levels), starts), (self.n_groups, n_levels))

    def means(self, V: Array) -> Array:
        """Mean of V over each level."""
        if self.counts is not None:
            V = V * (self.counts if V.ndim == 1 else self.counts[:, None])
        return _divide(sums_of_families(V, self.of_item, len(self.group)), self.size)

    def sparse_norms(self, R: Any, within: Array, between: Array) -> Array:
        """``rᵀ L r`` for every column r of sparse R, in time linear in its non-zeros.

        L scales deviations from the mean of the level by `within` and those of level means from the
        mean of the group by `between`. Sums of squares around means follow from plain sums.
        """
        n_items = len(self.of_item)
        members = (np.ones(n_items), self.of_item, np.arange(n_items + 1))
        level_sums = sp.csr_matrix(members, (n_items, len(self.group))).T.tocsr() @ R
        norms = sums_of_squares(R, within[self.of_item])
        norms += sums_of_squares(level_sums, (between - within) / self.size)
        if between.any():
            every = np.arange(len(self.group))
            shape = (self.n_groups, len(every))
            of_group = sp.csr_matrix((np.ones(len(every)), (self.group, every)), shape)
            pull = np.zeros(self.n_groups)
            pull[self.group] = between
            norms -= sums_of_squares(of_group @ level_sums, pull / self.group_size)
        return norms

    @cached_property
    def lower(self) -> Array:
        """Number of items of the group that are below each level."""
        below = np.cumsum(self.size) - self.size
        return np.asarray(below - below[self.first][self.group])

    @property
    def in_group(self) -> NDArray[np.int32]:
        """For each item the number of its level in the group, 0 for the lowest."""
        return (self.of_item - self.first[self.group][self.of_item]).astype(np.int32)

    @property
    def pairs(self) -> Array:
        """Number of pairs of items in each group."""
        return _pairs(self.group_size)

    @property
    def tied_pairs(self) -> Array:
        """Number of pairs of items of one level in each group."""
        tied = np.bincount(self.group, weights=_pairs(self.size), minlength=self.n_groups)
        return tied.astype(np.float64, copy=False)

    def group_means(self, level_means: Array) -> Array:
        """Mean over each group, from the means of its levels."""
        return _divide(self._group_indicator @ level_means, self.group_size)


def find_levels(
    y: Array, group: NDArray[np.intp], n_groups: int
) -> tuple[ScoreLevels, NDArray[np.float64]]:
    """The levels of (group, distinct score), and the score of each level."""
    order = np.argsort(y)
    if n_groups > 1:
        size = np.bincount(group, minlength=n_groups)
        order = sort_by_group(order, group.astype(np.int32), np.cumsum(size) - size)
    g, s = group[order], y[order]
    first = np.r_[True, (g[1:] != g[:-1]) | (s[1:] != s[:-1])][: len(y)]
    of_item = np.empty(len(y), dtype=np.intp)
    of_item[order] = np.cumsum(first) - 1
    return ScoreLevels(of_item, g[first], n_groups), s[first]


def score_differences(
    levels: ScoreLevels, scores: Array
) -> Iterator[tuple[NDArray[Any], NDArray[Any], Array]]:
    """Blocks (levels a, levels b, s_a − s_b) that cover all pairs of levels of one group.

    Groups with equally many levels are stacked; a block has a bounded number of entries.
    """
    for r in np.unique(levels.count[levels.count > 1]):
        block = levels.first[levels.count == r][:, None] + np.arange(r)
        stack = max(1, BLOCK_ENTRIES // (r * r))
        height = r if r * r <= BLOCK_ENTRIES else max(1, BLOCK_ENTRIES // r)
        for k in range(0, len(block), stack):
            columns = block[k : k + stack]
            for top in range(0, r, height):
                rows = columns[:, top : top + height]
                yield rows, columns, scores[rows][:, :, None] - scores[columns][:, None, :]


def sums_of_families(V: NDArray[Any], family: NDArray[np.intp], n_families: int) -> Array:
    """Sum of the values or rows of each family, in float64."""
    if V.ndim == 1:
        return np.bincount(family, weights=V, minlength=n_families).astype(np.float64, copy=False)
    sums: Array = np.zeros((n_families, V.shape[1]))
    add_rows(_as_rows(V), family, np.zeros(len(V)), sums, np.zeros(V.shape[1]))
    return sums


def deviations(
    V: NDArray[Any],
    family: NDArray[np.intp],
    means: Array,
    scale: Array,
    out: Array | None = None,
) -> Array:
    """``scale (v − mean)`` by the mean and the scale of the family; out may be V itself."""
    out = np.empty(V.shape) if out is None else out
    n_families = len(scale)
    scale_rows(_as_rows(V), family, means.reshape(n_families, -1), scale, out.reshape(len(out), -1))
    return out


def _as_rows(V: NDArray[Any]) -> NDArray[Any]:
    dtype = V.dtype if V.dtype == np.float32 else np.float64
    return np.ascontiguousarray(V.reshape(len(V), -1), dtype=dtype)


def _divide(sums: Array, size: Array) -> Array:
    size = np.maximum(size, 1.0)  # an empty group has sums of zero
    return sums / (size if sums.ndim == 1 else size[:, None])


def _pairs(size: Array) -> Array:
    return 0.5 * size * (size - 1)
