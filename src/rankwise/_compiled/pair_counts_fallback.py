"""The functions of `pair_counts.pyx` in NumPy: the fallback, and a reference for tests.

All of them count, for many queries at once, the items in an interval of a sequence whose level is
below a bound (`_sum_lower`). This takes O(m log r) time and O(m) memory for m items and r levels;
the compiled functions are faster by a constant factor.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from rankwise.arrays import Array, Indices, Numbers

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


def count_violated(scores: Numbers, level: Levels, starts: Indices) -> tuple[Counts, Counts]:
    """Count the violated pairs of items that are sorted by score in groups.

    A pair is violated if the score of the item of higher level is less than the score of the other
    item plus 1: [TreeRSVM11] algorithm 2.

    Parameters
    ----------
    scores : ndarray of shape (m,), float32 or float64
        Scores, ascending in each group.
    level : ndarray of shape (m,)
        Rank of the item's target in its group, 0 for the lowest.
    starts : ndarray of shape (n_groups,)
        First item of each group; no group is empty.

    Returns
    -------
    lost, won : ndarray of shape (m,)
        Number of violated pairs in which the item has the lower and the higher level: c and d of
        [TreeRSVM11] equations 5 and 6.
    """
    ones = np.ones(len(level), dtype=np.int64)
    return _sum_violated_values(scores, level, starts, ones)


def sum_violated(
    scores: Numbers, level: Levels, starts: Indices, values: Array
) -> tuple[Array, Array]:
    """Sum, over the pairs of `count_violated`, the values of the other items of the pairs."""
    return _sum_violated_values(scores, level, starts, values)


def count_inversions(level: Levels, starts: Indices) -> Counts:
    """Count, in each group, the pairs ``p < q`` with ``level[p] > level[q]``.

    Examples
    --------
    >>> count_inversions(np.array([2, 0, 1, 1, 0], dtype=np.int32), np.array([0, 3]))
    array([2, 1])
    """
    ones = np.ones(len(level), dtype=np.int64)
    n_higher_before = _sum_higher_before(level, starts, ones)
    return np.add.reduceat(n_higher_before, starts)  # sums over the groups


def weigh_inversions(level: Levels, starts: Indices, weights: Array) -> Array:
    """Sum ``weights[p] * weights[q]`` over the pairs that `count_inversions` counts."""
    weight_of_higher_before = _sum_higher_before(level, starts, weights)
    return np.add.reduceat(weights * weight_of_higher_before, starts)  # sums over the groups


def _sum_violated_values(
    scores: Numbers, level: Levels, starts: Indices, values: Numbers
) -> tuple[Numbers, Numbers]:
    """Sums of the values over the violated pairs that each item loses and wins."""
    # for each item the sum of the values of the other items in its violated pairs, as the loser and
    # as the winner. A pair is violated if the item of the higher level is not better by at least 1;
    # items are sorted by group and score
    n_items = len(scores)
    sizes = np.diff(starts, append=n_items)
    group = np.repeat(np.arange(len(starts)), sizes)
    group_start = np.repeat(starts, sizes)
    group_stop = group_start + np.repeat(sizes, sizes)

    # an item loses against items of higher levels before the first that is better by at least 1
    first_better = _count_below_limits(scores.astype(np.float64), group)
    depth_below_highest = level.max(initial=0) - level
    lost = _sum_lower(depth_below_highest, group_start, first_better, depth_below_highest, values)

    # it wins against the later items of lower levels, and the earlier ones that it does not
    # exceed by at least 1: those whose first better item comes after it
    first_inferior = np.searchsorted(first_better, np.arange(n_items), side="right")
    first_inferior = np.maximum(first_inferior, group_start)
    won = _sum_lower(level, first_inferior, group_stop, level, values)
    return lost, won


def _count_below_limits(scores: Array, group: Indices) -> Indices:
    """Number of items in previous groups, or in the group with a score below the score plus 1."""
    # for each item the number of items of earlier groups, and of its own with a score below its
    # limit, its score + 1
    n_items = len(scores)
    # sort the limits and the scores together; a limit comes before the scores that are equal to it
    limits_and_scores = np.concatenate([scores + 1.0, scores])
    is_score = np.arange(2 * n_items) >= n_items
    order = np.lexsort((is_score, limits_and_scores, np.concatenate([group, group])))
    is_limit = order < n_items
    item_of_limit = order[is_limit]
    n_scores_before = np.cumsum(~is_limit)
    n_below_limit = np.empty(n_items, dtype=np.intp)
    n_below_limit[item_of_limit] = n_scores_before[is_limit]
    return n_below_limit


def _sum_higher_before(level: Levels, starts: Indices, values: Numbers) -> Numbers:
    """For each item the sum of the values of previous items of its group with a higher level."""
    # for each item the sum of the values of the items of higher level before it in its group
    n_items = len(level)
    group_start = np.repeat(starts, np.diff(starts, append=n_items))
    position = np.arange(n_items)
    depth_below_highest = level.max(initial=0) - level
    return _sum_lower(depth_below_highest, group_start, position, depth_below_highest, values)


def _sum_lower(
    level: Levels, begin: Indices, end: Indices, bound: Levels, values: Numbers
) -> Numbers:
    """For each query the sum of the values in ``begin:end`` whose level is below the bound.

    The bits of the levels are processed from the highest to the lowest (a wavelet matrix). Where
    the bound has a 1, the items of the interval with a 0 are below the bound, so their values are
    added; the query continues with the items with the same bit. For the next bit, the items with a
    0 are moved before those with a 1, and both keep their order: items with equal higher bits
    remain neighbors.
    """
    # for each interval begin:end of items the sum of the values whose level is below `bound`, by a
    # wavelet matrix: from the highest bit on, items with a 0 move before those with a 1
    total = np.zeros(len(bound), dtype=values.dtype)
    n_bits = int(level.max(initial=0)).bit_length()
    for bit in reversed(range(n_bits)):
        # items whose level has a 0 at this bit: their number and their sum before each position
        has_zero = (level >> bit) & 1 == 0
        n_zeros_before = np.r_[0, np.cumsum(has_zero)]
        n_zeros = n_zeros_before[-1]
        sum_of_zeros = np.r_[0, np.cumsum(values[has_zero])].astype(values.dtype)

        # those of the interval are below a bound with a 1 and the same higher bits
        begin_of_zeros = n_zeros_before[begin]
        end_of_zeros = n_zeros_before[end]
        sum_in_interval = sum_of_zeros[end_of_zeros] - sum_of_zeros[begin_of_zeros]
        bound_has_one = (bound >> bit) & 1 == 1
        total[bound_has_one] += sum_in_interval[bound_has_one]

        # continue with the items with the same bit as the bound; those with a 1 come last
        begin_of_ones = n_zeros + begin - begin_of_zeros
        end_of_ones = n_zeros + end - end_of_zeros
        begin = np.where(bound_has_one, begin_of_ones, begin_of_zeros)
        end = np.where(bound_has_one, end_of_ones, end_of_zeros)
        level = np.concatenate([level[has_zero], level[~has_zero]])
        values = np.concatenate([values[has_zero], values[~has_zero]])
    return total
