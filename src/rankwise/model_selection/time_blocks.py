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
    day_of_item = in_days(as_times(as_array(time, "time"), n_items, "row"))

    # Units that stay together: groups at their latest time, or the items of one list
    unit_of_item = groups.codes
    if groups.n_groups == 1:
        unit_of_item = np.arange(n_items)
    n_units = unit_of_item.max() + 1
    day_of_unit = np.full(n_units, -np.inf)
    np.maximum.at(day_of_unit, unit_of_item, day_of_item)
    distinct_days, day_number_of_unit = np.unique(day_of_unit, return_inverse=True)
    if len(distinct_days) < 2:
        raise ValueError(
            "all rows have the same time, so no group is later than another; pass the time of each "
            "row or group, or omit time."
        )

    # Blocks of about equal numbers of units, without splitting a day
    last_unit_of_day = np.cumsum(np.bincount(day_number_of_unit)) - 1
    block_of_day = last_unit_of_day * n_blocks // n_units  # 0 to n_blocks − 1, some may be empty
    # Number the blocks that are not empty
    _, block_of_unit = np.unique(block_of_day[day_number_of_unit], return_inverse=True)
    if block_of_unit.max() == 0:  # nearly all units have the latest time: earlier, and latest
        is_latest = day_number_of_unit == day_number_of_unit.max()
        block_of_unit = is_latest.astype(np.intp)
    block_of_item = block_of_unit[unit_of_item]
    return [np.flatnonzero(block_of_item == block) for block in range(block_of_unit.max() + 1)]
