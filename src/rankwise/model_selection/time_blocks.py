"""Blocks of later groups for forward validation."""

from __future__ import annotations

from typing import Any

import numpy as np

from rankwise.datasets.times import as_times, in_days
from rankwise.frames import as_array
from rankwise.groups import Groups
from rankwise.model_selection.folds import Folds

N_BLOCKS = 6  # in the order of time; all but the first are judged


def time_series_blocks(time: Any, groups: Groups, n_blocks: int = N_BLOCKS) -> Folds:
    """Rows in blocks of whole groups, from the earliest to the latest.

    A group is as late as its last row, and groups of one time stay together. If there is one
    group only, its items are the units.

    Parameters
    ----------
    time : array-like of shape (n_items,)
        Dates or numbers.
    groups : Groups
        Groups of the items.
    n_blocks : int
        Number of blocks, of about as many groups; fewer if there are fewer times.
    """
    moments = in_days(as_times(as_array(time, "time"), len(groups.codes), "row"))
    unit = groups.codes if groups.n_groups > 1 else np.arange(len(groups.codes))
    last = np.full(unit.max() + 1, -np.inf)
    np.maximum.at(last, unit, moments)
    distinct, place = np.unique(last, return_inverse=True)
    if len(distinct) < 2:
        raise ValueError(
            "all rows are of one time, so nothing came later; pass the time of each row or group, "
            "or leave out time."
        )
    earlier = np.cumsum(np.bincount(place)) - 1  # the last unit of each time
    block = np.minimum(earlier * n_blocks // len(last), n_blocks - 1)[place]
    _, block = np.unique(block, return_inverse=True)
    if block.max() == 0:  # nearly all units are of the last time
        block = (place == place.max()).astype(np.intp)
    return [np.flatnonzero(block[unit] == k) for k in range(block.max() + 1)]
