"""Records of a leaderboard: rows, differences, histories and head-to-head results."""

from __future__ import annotations

from typing import NamedTuple

from rankwise.arrays import AnyArray, Array, Indices
from rankwise.leaderboard.board_types import Label

RANK_COLUMNS = ("rank", "best_rank", "worst_rank", "best_of_all", "worst_of_all", "tier")


class LeaderboardRow(NamedTuple):
    """One item of a `Leaderboard`; intervals are None if the board or the item has none.

    Attributes
    ----------
    rank : int or None
        1 is best; items of equal rating share a rank. Ranks are counted within the component. None
        if the item has fewer comparisons than `min_comparisons`, or none at all.
    item : str or int
        The label.
    rating : float
        On the scale of the board.
    low, high : float or None
        Interval of the rating.
    best_rank, worst_rank : int or None
        Possible ranks: 1 + the number of items significantly above, and the number of items that
        are not significantly below. For each item separately: with the confidence c, a share of
        1 − c of the true ranks is expected outside.
    best_of_all, worst_of_all : int or None
        Possible ranks for all items simultaneously: with the confidence of the board, all true
        ranks are inside.
    tier : int or None
        A tier starts with an item significantly below the first item of the previous tier; its
        items are not significantly below its first item. Two of them may differ. Thin items have no
        tier.
    n, wins, ties, losses : int
        Number of comparisons of the item, and of each outcome.
    thin : bool
        Whether there are fewer than 5 comparisons, or only one kind of outcome.
    component : int
        Items of different components were never compared, directly or through other items, so their
        ratings cannot be compared; 1 is the largest component. Always 1 with features, which make
        all items comparable.
    """

    rank: int | None
    item: Label
    rating: float
    low: float | None
    high: float | None
    best_rank: int | None
    worst_rank: int | None
    best_of_all: int | None
    worst_of_all: int | None
    tier: int | None
    n: int
    wins: int
    ties: int
    losses: int
    thin: bool
    component: int


class RatingDifference(NamedTuple):
    """Difference of two ratings; the interval is None on a board without intervals."""

    value: float
    low: float | None
    high: float | None


class RatingHistory(NamedTuple):
    """Ratings of an item over time.

    Attributes
    ----------
    times : ndarray
        Dates or numbers.
    rating, low, high : ndarray
        The rating and its interval; the interval is NaN on a board without intervals.
    """

    times: AnyArray
    rating: Array
    low: Array
    high: Array


class HeadToHead(NamedTuple):
    """Outcomes of every two items that met.

    Attributes
    ----------
    first, second : ndarray of shape (n_edges,)
        Positions of the two items in the items of the board.
    n : ndarray of shape (n_edges,)
        Number of comparisons.
    observed : ndarray of shape (n_edges,)
        Weighted mean outcome of the first item: 1 if it won all, −1 if it lost all.
    expected : ndarray of shape (n_edges,)
        Mean outcome of the same comparisons that ratings and effects predict.
    """

    first: Indices
    second: Indices
    n: Indices
    observed: Array
    expected: Array
