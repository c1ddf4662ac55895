"""Blocks of later groups for forward validation."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from rankwise.datasets.times import as_times, in_days
from rankwise.frames import as_array
from rankwise.groups import Groups
from rankwise.model_selection.folds import Folds

N_BLOCKS = 6  # in the order of time; all but the first are evaluated


def time_series_blocks(time: ArrayLike, groups: Groups, n_blocks: int = N_BLOCKS) -> Folds:
    """Rows in blocks of whole groups, from the earliest to the latest.

    The time of a group is that of its last row, and groups of equal time share a block. If there is
    only one group, its items are the units.

    Parameters
    ----------
    time : array-like of shape (n_items,)
        Dates or numbers.
    groups : Groups
        Groups of the items.
    n_blocks : int, default=6
        Number of blocks, each with about the same number of groups; fewer if there are fewer
        distinct times.

    Returns
    -------
    list of ndarray of int
        Rows of each block.
    """
    n_items = len(groups.codes)
    days = in_days(as_times(as_array(time, "time"), n_items, "row"))
    unit = groups.codes
    if groups.n_groups == 1:
        unit = np.arange(n_items)
    last_day = np.full(unit.max() + 1, -np.inf)
    np.maximum.at(last_day, unit, days)
    distinct_days, day_number = np.unique(last_day, return_inverse=True)
    if len(distinct_days) < 2:
        raise ValueError(
            "all rows have the same time, so no group is later than another; pass the time of each "
            "row or group, or omit time."
        )
    last_unit = np.cumsum(np.bincount(day_number)) - 1  # of each day, in the order of time
    block_of_day = np.minimum(last_unit * n_blocks // len(last_day), n_blocks - 1)
    _, block = np.unique(block_of_day[day_number], return_inverse=True)
    if block.max() == 0:  # nearly all units have the latest time
        block = (day_number == day_number.max()).astype(np.intp)
    return [np.flatnonzero(block[unit] == k) for k in range(block.max() + 1)]
