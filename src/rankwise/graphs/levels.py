"""Levels of equal scores inside groups, and sums over them."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rankwise._compiled import add_rows, scale_rows, sort_by_group
from rankwise.arrays import Array, Indices
from rankwise.caching import cached_property


class Levels:
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
        self.size = group_sums(weight, of_item, len(group))
        self.group_size = group_sums(self.size, group, n_groups)

    @cached_property
    def first(self) -> Indices:
        """Number of the first level of each group."""
        return np.searchsorted(self.group, np.arange(self.n_groups))

    def means(self, V: Array, mass: Array | None = None) -> tuple[Array, Array]:
        """For each level the mean of V, with a mass ``Σ mass v / Σ weight``; that of its group."""
        mass = self.weight if mass is None else mass
        of_level = group_means(V, self.of_item, self.size, mass)
        return of_level, group_means(of_level, self.group, self.group_size, self.size)[self.group]

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


def find_levels(y: Array, group: Indices, n_groups: int, weight: Array | None = None) -> Levels:
    """The levels of (group, distinct score)."""
    order = np.argsort(y)
    if n_groups > 1:
        size = np.bincount(group, minlength=n_groups)
        order = sort_by_group(order, group.astype(np.int32), np.cumsum(size) - size)
    g, s = group[order], y[order]
    first = np.r_[True, (g[1:] != g[:-1]) | (s[1:] != s[:-1])][: len(y)]
    of_item = np.empty(len(y), dtype=np.intp)
    of_item[order] = np.cumsum(first) - 1
    return Levels(of_item, g[first], n_groups, weight)


def group_sums(values: NDArray[Any] | None, code: Indices, n_codes: int) -> NDArray[np.float64]:
    """Sum of the values of each code in float64; their number if there are no values."""
    return np.bincount(code, weights=values, minlength=n_codes).astype(np.float64, copy=False)


def group_means(V: NDArray[Any], family: Indices, size: Array, mass: Array | None = None) -> Array:
    """``Σ mass v / size`` of the values or rows of each family; zero for one without size."""
    size = np.where(size > 0, size, 1.0)
    if V.ndim == 1:
        return group_sums(V if mass is None else mass * V, family, len(size)) / size
    sums: Array = np.zeros((len(size), V.shape[1]))
    rows = np.ascontiguousarray(V, dtype=np.float64)
    add_rows(rows, family, np.zeros(len(V)), sums, np.zeros(V.shape[1]), mass)
    return sums / size[:, None]


def group_center(
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


class Partition(NamedTuple):
    """One step of nesting: the parent of each child, and the weight of each parent's scatter."""

    parent: Indices
    weight: Array
