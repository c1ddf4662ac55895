"""The functions of `pair_counts.pyx` in NumPy: the fallback without a compiler, and a test oracle.

All of them count, for many queries at once, the items of a stretch of a sequence that have a lower
level than given (`_sum_lower`); time O(m log r) and memory O(m) for m items and r levels, slower
than the compiled sweeps by a constant.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankwise.arrays import Array, Indices

Levels = NDArray[np.int32]
Counts = NDArray[np.int64]


def sort_by_group(order: Indices, group: Levels, starts: Indices) -> Indices:
    """Sort an order of all items by group, stably.

    Parameters
    ----------
    order : ndarray of shape (m,)
        A permutation of the items.
    group : ndarray of shape (m,)
        The group of each item.
    starts : ndarray of shape (n_groups,)
        Where each group starts in the result.
    """
    sorted_order: Indices = order[np.argsort(group[order], kind="stable")]
    return sorted_order


def sort_in_groups(scores: Array, order: Indices, starts: Indices) -> Indices:
    """Sort the items of each group by score.

    Parameters
    ----------
    scores : ndarray of shape (m,)
        Of the items.
    order : ndarray of shape (m,)
        The items by group.
    starts : ndarray of shape (n_groups,)
        Where each group starts in `order`.
    """
    group = np.repeat(np.arange(len(starts)), np.diff(starts, append=len(order)))
    sorted_order: Indices = order[np.lexsort((scores[order], group))]
    return sorted_order


def count_violated(scores: NDArray[Any], level: Levels, starts: Indices) -> tuple[Counts, Counts]:
    """Count, for items sorted by score inside groups, the violated pairs they lose and win.

    A pair is violated if the item of higher level scores less than the other plus one:
    [TreeRSVM11] algorithm 2.

    Parameters
    ----------
    scores : ndarray of shape (m,), float32 or float64
        Rising inside each group.
    level : ndarray of shape (m,)
        Rank of the item's target in its group, 0 for the lowest.
    starts : ndarray of shape (n_groups,)
        Where each group starts; no group is empty.

    Returns
    -------
    lost, won : ndarray of shape (m,)
        The c and d of [TreeRSVM11] equations 5 and 6.
    """
    ones = np.ones(len(level), dtype=np.int64)
    lost, won = _windows(scores, level, starts, ones)
    return lost, won


def sum_violated(
    scores: NDArray[Any], level: Levels, starts: Indices, values: Array
) -> tuple[Array, Array]:
    """Sum, for items sorted by score inside groups, the values over the pairs they lose and win.

    The same pairs as in `count_violated`; each adds the value of its other item.
    """
    return _windows(scores, level, starts, values)


def count_inversions(level: Levels, starts: Indices) -> Counts:
    """Count, in each group, the pairs ``p < q`` with ``level[p] > level[q]``.

    Examples
    --------
    >>> count_inversions(np.array([2, 0, 1, 1, 0], dtype=np.int32), np.array([0, 3]))
    array([2, 1])
    """
    ones = np.ones(len(level), dtype=np.int64)
    return np.add.reduceat(_higher_before(level, starts, ones), starts)


def weigh_inversions(level: Levels, starts: Indices, weights: Array) -> Array:
    """Sum ``weights[p] * weights[q]`` over the pairs that `count_inversions` counts."""
    return np.add.reduceat(weights * _higher_before(level, starts, weights), starts)


def _windows(
    scores: NDArray[Any], level: Levels, starts: Indices, values: NDArray[Any]
) -> tuple[NDArray[Any], NDArray[Any]]:
    """For each item the sums over the violated pairs that it loses and that it wins."""
    m = len(scores)
    sizes = np.diff(starts, append=m)
    first, group = np.repeat(starts, sizes), np.repeat(np.arange(len(starts)), sizes)
    # an item loses to higher ones up to the first that is at least one better; put both kinds
    # in one order, limits before the scores they equal
    exact = scores.astype(np.float64)
    limits = np.r_[exact + 1.0, exact]
    order = np.lexsort((np.arange(2 * m) >= m, limits, np.r_[group, group]))
    is_limit = order < m
    ends = np.empty(m, dtype=np.intp)
    ends[order[is_limit]] = np.cumsum(~is_limit)[is_limit]
    top = level.max(initial=0)
    lost = _sum_lower(top - level, first, ends, top - level, values)
    # it wins against those whose own stretch reaches beyond it
    begins = np.searchsorted(ends, np.arange(m), side="right")
    last = first + np.repeat(sizes, sizes)
    won = _sum_lower(level, np.maximum(begins, first), last, level, values)
    return lost, won


def _higher_before(level: Levels, starts: Indices, values: NDArray[Any]) -> NDArray[Any]:
    m = len(level)
    first = np.repeat(starts, np.diff(starts, append=m))
    top = level.max(initial=0)
    return _sum_lower(top - level, first, np.arange(m), top - level, values)


def _sum_lower(
    level: Levels, begin: Indices, end: Indices, bound: Levels, values: NDArray[Any]
) -> NDArray[Any]:
    """For each query the sum of the values in ``begin:end`` whose level is below the bound.

    The bits of the levels are looked at from the highest to the lowest. A level and a bound that
    first differ in a bit share a stretch when that bit is reached; where the bound has a one, the
    zeros of the stretch are below it. Then the zeros are put before the ones, each in their old
    order, which leaves every stretch of equal higher bits together (a wavelet matrix).
    """
    total = np.zeros(len(bound), dtype=values.dtype)
    for bit in reversed(range(int(level.max(initial=0)).bit_length())):
        zero = (level >> bit) & 1 == 0
        zeros_seen = np.r_[0, np.cumsum(zero)]
        seen = np.r_[values[:0], 0, np.cumsum(values[zero])].astype(values.dtype)
        begin_zero, end_zero = zeros_seen[begin], zeros_seen[end]
        up = (bound >> bit) & 1 == 1
        total[up] += (seen[end_zero] - seen[begin_zero])[up]
        n_zeros = zeros_seen[-1]
        begin = np.where(up, n_zeros + begin - begin_zero, begin_zero)
        end = np.where(up, n_zeros + end - end_zero, end_zero)
        level = np.concatenate([level[zero], level[~zero]])
        values = np.concatenate([values[zero], values[~zero]])
    return total
