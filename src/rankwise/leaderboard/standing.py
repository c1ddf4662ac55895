"""From ratings to the rows of a board: ranks, intervals, wins and losses."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rankwise.arrays import Array, Indices
from rankwise.leaderboard.board import LeaderboardRow
from rankwise.leaderboard.jackknife import Spread
from rankwise.leaderboard.tally import Tally

__all__ = ["Intervals", "intervals_of", "ranks_within", "standings"]

EQUAL = 1e-10  # of the largest rating; a smaller difference is rounding
BLOCK = 2**17  # numbers that stay in the cache
ROUNDING = 1e-9  # of a position among the samples


def ranks_within(ratings: Array, components: Indices) -> Indices:
    """Rank of each item in its component, 1 for the highest rating; equal ones share the best.

    Parameters
    ----------
    ratings : ndarray of shape (n_ratings, n_items)
        Each row is ranked by itself.
    components : ndarray of shape (n_items,)
        Component of each item.
    """
    ranks = np.empty(ratings.shape, dtype=np.intp)
    members_of, size = _members(components), max(1, BLOCK // len(components))
    for start in range(0, len(ratings), size):
        _rank_rows(ratings[start : start + size], members_of, ranks[start : start + size])
    return ranks


def _rank_rows(ratings: Array, members_of: list[Indices], ranks: Indices) -> None:
    least = EQUAL * np.abs(ratings).max(axis=1, keepdims=True, initial=0.0)
    for members in members_of:
        order = members[np.argsort(-ratings[:, members], axis=1)]
        falling = np.take_along_axis(ratings, order, axis=1)
        is_lower = -np.diff(falling, axis=1, prepend=np.inf) > least
        place = np.where(is_lower, np.arange(1, len(members) + 1), 0)
        np.put_along_axis(ranks, order, np.maximum.accumulate(place, axis=1), axis=1)


def _members(components: Indices) -> list[Indices]:
    """The items of each component."""
    order = np.argsort(components, kind="stable")
    return np.split(order, 1 + np.flatnonzero(np.diff(components[order])))


def standings(
    tally: Tally,
    items: NDArray[Any],
    ratings: Array,
    components: Indices,
    intervals: Intervals | None,
) -> dict[str, NDArray[Any] | None]:
    """The columns of a board by the fields of `LeaderboardRow`, in the order of the board."""
    ranks = ranks_within(ratings[None], components)[0]
    order = np.lexsort((ranks, components))
    uncertain = [None] * 5 if intervals is None else list(intervals)
    columns = [ranks, items, ratings, *uncertain, *_records(tally), components]
    placed = [None if column is None else np.asarray(column)[order] for column in columns]
    return dict(zip(LeaderboardRow._fields, placed, strict=True))


def _records(tally: Tally) -> list[Indices]:
    """Comparisons, wins, ties and losses of each item."""
    first, second = tally.first[tally.pair], tally.second[tally.pair]

    def count(ahead: NDArray[np.bool_], behind: NDArray[np.bool_]) -> Indices:
        """How often an item is first in the former outcomes or second in the latter."""
        n, number = tally.n_items, tally.count
        found = np.bincount(first, number * ahead, n) + np.bincount(second, number * behind, n)
        return np.asarray(found, np.intp)

    won, lost = tally.target > 0, tally.target < 0
    wins, losses, ties = count(won, lost), count(lost, won), count(*[tally.target == 0] * 2)
    return [wins + ties + losses, wins, ties, losses]


class Intervals(NamedTuple):
    """Of each item: its rating, its rank, and the best rank that the first ones leave open."""

    low: Array
    high: Array
    rank_low: Indices
    rank_high: Indices
    rank_upper: Indices


def intervals_of(
    ratings: Array,
    samples: Array,
    spread: Spread | None,
    components: Indices,
    confidence: float,
) -> Intervals | None:
    """Intervals from the spread of the ratings, or from resamples of them; None without samples."""
    if not len(samples):
        return None
    tail = (1 - confidence) / 2
    if spread is None:
        low, high = np.quantile(samples, [tail, 1 - tail], axis=0)
    else:
        width = spread.quantile(1 - tail) * spread.errors
        low, high = ratings - width, ratings + width
    ranks = np.sort(ranks_within(samples, components), axis=0)
    last = len(samples) - 1
    rank_low = ranks[math.floor(tail * last + ROUNDING)]
    rank_high = ranks[math.ceil((1 - tail) * last - ROUNDING)]
    rank_upper = np.ones(len(low), dtype=np.intp)
    for members in _members(components):
        sorted_low = np.sort(low[members])
        not_above = np.searchsorted(sorted_low, high[members], side="right")
        rank_upper[members] += len(members) - not_above
    return Intervals(low, high, rank_low, rank_high, rank_upper)
