"""Conformal prediction sets: top items that contain the best item with a given probability.

With f^(−g) a model trained without list g, the gap from the top of the list to its best item is

    s_g = max f^(−g) − f^(−g)(best of g).

The gaps of new lists have the same distribution. With q the ⌈(G + 1) · level⌉-th smallest of G
gaps, the items with ``f ≥ max f − q`` therefore contain the best item with a probability of about
`level`. The calibration set of this conformal prediction consists of exact hold-outs.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from rankwise.arrays import Array, Indices, Numbers

ROUNDING_OF_COUNT = 1e-9  # of a number of lists multiplied by the level


def max_by_list(values: Numbers, lists: Indices) -> Array:
    """The largest value of each list."""
    n_lists = lists.max(initial=-1) + 1
    largest = np.full(n_lists, -np.inf)
    np.maximum.at(largest, lists, values)
    return largest


def gap_to_top(scores: Array, lists: Indices) -> Array:
    """Difference between the highest score of the list and the score of each item."""
    highest_of_list = max_by_list(scores, lists)
    return np.asarray(highest_of_list[lists] - scores)


def held_out_gaps(y: Array, scores: Array, lists: Indices, grade: float | None = None) -> Array:
    """Gaps of lists by held-out scores, in ascending order.

    Parameters
    ----------
    y, scores : ndarray of shape (n_items,)
        True and held-out scores; items with nan in either are ignored.
    lists : ndarray of int, shape (n_items,)
        Number of the list of each item.
    grade : float, default=None
        Items with y of at least this value are best items. By default the best items are those with
        the highest y of the list.

    Returns
    -------
    ndarray of shape (n_lists,)
        Difference between the top score and the highest score of a best item. Lists in which all
        items or no items are best ones carry no information and are dropped.
    """
    is_defined = ~(np.isnan(y) | np.isnan(scores))
    y = y[is_defined]
    scores = scores[is_defined]
    _, lists = np.unique(lists[is_defined], return_inverse=True)
    if grade is None:
        highest_y_of_list = max_by_list(y, lists)
        is_requested = y == highest_y_of_list[lists]
    else:
        is_requested = y >= grade

    # Smallest gap from the highest score of a list to the score of a requested item
    gaps_of_requested = np.where(is_requested, gap_to_top(scores, lists), np.inf)
    smallest_gap = -max_by_list(-gaps_of_requested, lists)  # by list

    # Lists without a requested item, or with requested items only, carry no information
    n_requested = np.bincount(lists, is_requested)
    n_items = np.bincount(lists)
    is_informative = (n_requested > 0) & (n_requested < n_items)
    return np.sort(smallest_gap[is_informative])


def conformal_quantile(gaps: Array, level: float) -> float:
    """The gap that a share `level` of new lists does not exceed.

    Raises
    ------
    ValueError
        If there are too few gaps for the level.
    """
    if not 0 < level < 1:
        raise ValueError(f"level={level!r}; expected a number between 0 and 1.")
    n_lists = len(gaps)
    # The ⌈(n + 1) · level⌉-th smallest gap
    rank = math.ceil((n_lists + 1) * level - ROUNDING_OF_COUNT)
    if rank > n_lists:
        n_needed = math.ceil(level / (1 - level) - ROUNDING_OF_COUNT)
        advice = "train with more lists (groups)"
        if n_lists:
            advice = f"use a level of at most {n_lists / (n_lists + 1):.3f}, or {advice}"
        raise ValueError(
            f"level={level!r} needs at least {n_needed} held-out lists that contain both best "
            f"items and others, and there were {n_lists}; {advice}."
        )
    return float(gaps[max(rank, 1) - 1])


def in_best_set(scores: Array, lists: Indices, gaps: Array, level: float) -> NDArray[np.bool_]:
    """Whether each item belongs to the prediction set of its list at this level."""
    # The set contains the items whose distance from the top is at most a quantile of held-out gaps
    largest_gap = conformal_quantile(gaps, level)
    return np.asarray(gap_to_top(scores, lists) <= largest_gap)
