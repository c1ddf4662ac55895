"""Levels: items of one group and one score, which a graph of scores cannot tell apart."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from rankwise._compiled import add_rows, scale_rows, sort_by_group
from rankwise.arrays import Array, Indices
from rankwise.graphs.gram import divide, sums_of_squares


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

    def means(self, V: Array, mass: Array | None = None) -> Array:
        """Mean of V over each level; with a mass, ``Σ mass v / Σ weight``."""
        mass = self.weight if mass is None else mass
        sums = sums_of_families(V, self.of_item, len(self.group), mass)
        return divide(sums, self.size)

    def to_items(self, values: Array) -> Array:
        """What each item gets from its level, times its weight."""
        of_items = values[self.of_item]
        if self.weight is not None:
            of_items *= self.weight if values.ndim == 1 else self.weight[:, None]
        return np.asarray(of_items)

    def sparse_norms(self, R: Any, within: Array, between: Array) -> Array:
        """``rᵀ L r`` for every column r of sparse R, in time linear in its non-zeros.

        L scales deviations from the mean of the level by `within` and those of level means from the
        mean of the group by `between`. Sums of squares around means follow from plain sums.
        """
        n_items = len(self.of_item)
        weight = np.ones(n_items) if self.weight is None else self.weight
        members = (weight, self.of_item, np.arange(n_items + 1))
        level_sums = sp.csr_matrix(members, (n_items, len(self.group))).T.tocsr() @ R
        norms = sums_of_squares(R, weight * within[self.of_item])
        norms += sums_of_squares(level_sums, divide(between - within, self.size))
        if between.any():
            every = np.arange(len(self.group))
            shape = (self.n_groups, len(every))
            of_group = sp.csr_matrix((np.ones(len(every)), (self.group, every)), shape)
            pull = np.zeros(self.n_groups)
            pull[self.group] = between
            norms -= sums_of_squares(of_group @ level_sums, divide(pull, self.group_size))
        return norms

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

    def group_means(self, level_means: Array) -> Array:
        """Mean over each group, from the means of its levels."""
        sums = sums_of_families(level_means, self.group, self.n_groups, self.size)
        return divide(sums, self.group_size)


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


def sums_of_families(
    V: NDArray[Any], family: Indices, n_families: int, mass: Array | None = None
) -> Array:
    """Sum of the values or rows of each family, in float64; each times its mass if given."""
    if V.ndim == 1:
        return sums_by_code(V if mass is None else mass * V, family, n_families)
    sums: Array = np.zeros((n_families, V.shape[1]))
    add_rows(_as_rows(V), family, np.zeros(len(V)), sums, np.zeros(V.shape[1]), mass)
    return sums


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
    scale_rows(_as_rows(V), family, means, scale, out.reshape(len(out), -1), factor)
    return out


def _as_rows(V: NDArray[Any]) -> NDArray[Any]:
    dtype = V.dtype if V.dtype == np.float32 else np.float64
    return np.ascontiguousarray(V.reshape(len(V), -1), dtype=dtype)
