"""Best sets: the head of a list that holds its best item with the asked probability.

With f^(−g) a model that has not seen list g, the gap from the top of the list to its best item,

    s_g = max f^(−g) − f^(−g)(best of g),

is what a new list of the same kind will have. So with q the ⌈(G + 1) · level⌉-th smallest of G
gaps, the items with ``f ≥ max f − q`` hold the best one with a probability of about the level:
conformal prediction, its calibration set made of exact hold-outs.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankwise.arrays import Array, Indices

EQUAL = 1e-9  # of a number of lists: rounding of a product with the level


def group_max(values: NDArray[Any], lists: Indices) -> Array:
    """The largest value of each list."""
    out = np.full(lists.max(initial=-1) + 1, -np.inf)
    np.maximum.at(out, lists, values)
    return out


def gap_to_top(scores: Array, lists: Indices) -> Array:
    """How far each item is below the highest score of its list."""
    return np.asarray(group_max(scores, lists)[lists] - scores)


def held_out_gaps(y: Array, scores: Array, lists: Indices, grade: float | None = None) -> Array:
    """The gaps of lists by held-out scores, in rising order.

    Parameters
    ----------
    y, scores : ndarray of shape (n_items,)
        True and held-out scores; items without one of them (NaN) do not count.
    lists : ndarray of int, shape (n_items,)
        Number of the list of each item.
    grade : float, optional
        Looked for is an item with y of at least this. None: the highest y of the list.

    Returns
    -------
    ndarray of shape (n_lists,)
        From the top to the highest of the items that are looked for. Lists in which all items are
        looked for, or none, say nothing and are left out.
    """
    known = ~(np.isnan(y) | np.isnan(scores))
    y, lists = y[known], np.unique(lists[known], return_inverse=True)[1]
    wanted = y == group_max(y, lists)[lists] if grade is None else y >= grade
    gaps = -group_max(np.where(wanted, -gap_to_top(scores[known], lists), -np.inf), lists)
    share = np.bincount(lists, wanted) / np.maximum(np.bincount(lists), 1)
    return np.sort(gaps[(share > 0) & (share < 1)])


def conformal_quantile(gaps: Array, level: float) -> float:
    """q, the gap that a share `level` of new lists does not exceed.

    Raises
    ------
    ValueError
        If there are too few gaps for the level.
    """
    if not 0 < level < 1:
        raise ValueError(f"level={level!r}; expected a number between 0 and 1.")
    place = math.ceil((len(gaps) + 1) * level - EQUAL)
    if place > len(gaps):
        needed = math.ceil(level / (1 - level) - EQUAL)
        raise ValueError(
            f"level={level!r} can be promised from {needed} held-out lists on, and there were "
            f"{len(gaps)} in which some items are looked for and others are not; "
            + (f"ask for at most {len(gaps) / (len(gaps) + 1):.3f}, or " if len(gaps) else "")
            + "train with more lists (groups)."
        )
    return float(gaps[max(place, 1) - 1])


def in_best_set(scores: Array, lists: Indices, gaps: Array, level: float) -> NDArray[np.bool_]:
    """Whether each item is in the head of its list that holds the best one at this level."""
    return np.asarray(gap_to_top(scores, lists) <= conformal_quantile(gaps, level))
