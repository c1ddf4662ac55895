"""Ratings of items over time."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from rankwise.arrays import AnyArray, Array
from rankwise.datasets import PairData
from rankwise.datasets.times import in_days
from rankwise.leaderboard.board_records import RatingHistory
from rankwise.leaderboard.board_types import Label
from rankwise.validation import check_int

SECONDS_PER_DAY = 86400


class TimeGrid(NamedTuple):
    """Evenly spaced times, in days and as dates or numbers like those of the comparisons."""

    days: Array
    times: AnyArray


def time_grid(times: AnyArray, n_times: int) -> TimeGrid:
    """Return evenly spaced times from the first comparison to the last."""
    n_times = check_int("n_times", n_times, least=2)  # the first and the last
    days = in_days(times)
    grid_days = np.linspace(days.min(), days.max(), n_times)
    grid_times: AnyArray = grid_days
    if times.dtype.kind == "M":  # dates; grid_days are days since 1970
        seconds = (SECONDS_PER_DAY * grid_days).astype(np.int64)
        grid_times = seconds.astype("datetime64[s]")
    return TimeGrid(grid_days, grid_times)


def rating_histories(
    data: PairData,
    grid: TimeGrid,
    ratings: Array,
    half_widths: Array,
    positions: Mapping[Label, int],
) -> dict[Label, RatingHistory]:
    """Return the history of each item, from its first comparison to its last.

    Parameters
    ----------
    data : PairData
        The comparisons, with times.
    grid : TimeGrid
        Times of the ratings.
    ratings, half_widths : ndarray of shape (n_times, n_items)
        Rating of each item at each time, and half the width of its interval.
    positions : dict from label to int
        The items, and their columns.
    """
    days = in_days(np.asarray(data.times))
    step = grid.days[1] - grid.days[0]
    histories = {}
    for item, position in positions.items():
        days_of_item = days[data.has_item(position)]
        # Times of the grid from the first comparison of the item to the last, and one more at
        # each end
        is_after_first = grid.days > days_of_item.min() - step
        is_before_last = grid.days < days_of_item.max() + step
        is_inside = is_after_first & is_before_last
        rating = ratings[is_inside, position]
        half_width = half_widths[is_inside, position]
        histories[item] = RatingHistory(
            times=grid.times[is_inside],
            rating=rating,
            low=rating - half_width,
            high=rating + half_width,
        )
    return histories
