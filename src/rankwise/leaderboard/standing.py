"""From ratings to the rows of a board: ranks, the ranks that are possible, tiers, records."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rankwise.arrays import Array, Indices
from rankwise.datasets.pair_data import Rankings
from rankwise.leaderboard.tally import Tally
from rankwise.uncertainty.jackknife import (
    EQUAL,
    Spread,
    items_of_lists,
    joint_quantile,
    possible_ranks,
    ranks_within,
)

FEW = 5  # comparisons; an item with fewer is thin


class Records(NamedTuple):
    """How the comparisons of each item ended; thin are few, or those that all ended alike."""

    n: Indices
    wins: Indices
    ties: Indices
    losses: Indices
    thin: NDArray[np.bool_]


def records_of(tally: Tally) -> Records:
    """Comparisons, wins, ties and losses of each item."""
    first, second = tally.first[tally.pair], tally.second[tally.pair]

    def count(ahead: NDArray[np.bool_], behind: NDArray[np.bool_]) -> Indices:
        """How often an item is first in the former outcomes or second in the latter."""
        n, number = tally.n_items, tally.count
        n_times = np.bincount(first, number * ahead, n) + np.bincount(second, number * behind, n)
        return np.asarray(n_times, np.intp)

    won, lost = tally.target > 0, tally.target < 0
    wins, losses, ties = count(won, lost), count(lost, won), count(*[tally.target == 0] * 2)
    n = wins + ties + losses
    thin = (n < FEW) | (np.max([wins, ties, losses], axis=0) == n)
    return Records(n, wins, ties, losses, thin)


def in_rankings(records: Records, rankings: Rankings) -> Records:
    """The same with the number of rankings that an item is in."""
    n = np.bincount(rankings.item, minlength=len(records.n))
    n = np.where(records.n > 0, n, 0)
    alike = np.max([records.wins, records.ties, records.losses], axis=0) == records.n
    return records._replace(n=n, thin=(n < FEW) | alike)


class Standing(NamedTuple):
    """Of each item; without intervals only the rank is known, and 0 is below the line.

    Attributes
    ----------
    rank : ndarray of shape (n_items,)
        By rating, or by the lower end of the interval.
    low, high : ndarray or None
        Interval of the rating.
    best_rank, worst_rank : ndarray or None
        1 + how many items are surely above, and how many are not surely below.
    best_of_all, worst_of_all : ndarray or None
        The same for all items at once.
    tier : ndarray or None
        Items of one tier are not surely below its first one; 0 for thin items.
    """

    rank: Indices
    low: Array | None = None
    high: Array | None = None
    best_rank: Indices | None = None
    worst_rank: Indices | None = None
    best_of_all: Indices | None = None
    worst_of_all: Indices | None = None
    tier: Indices | None = None


def standing_of(
    ratings: Array,
    spread: Spread | None,
    samples: Array,
    components: Indices,
    confidence: float,
    *,
    order: str = "rating",
    counted: NDArray[np.bool_] | None = None,
    known: NDArray[np.bool_] | None = None,
    thin: NDArray[np.bool_] | None = None,
) -> Standing:
    """Ranks and intervals; items that are not counted stand below the line.

    An item that nothing is known of has no interval, and a thin one no tier.
    """
    counted = np.ones(len(ratings), bool) if counted is None else counted
    places = np.where(counted, components, -components)
    tail = (1 - confidence) / 2
    if spread is not None:
        width = spread.quantile(1 - tail) * spread.errors
        low, high = ratings - width, ratings + width
    elif len(samples):
        low, high = np.quantile(samples, [tail, 1 - tail], axis=0)
        root = (samples - samples.mean(axis=0)).T / np.sqrt(len(samples))
        spread = Spread(root, len(samples) - 1 or 1, is_exact=False)
    else:
        return Standing(np.where(counted, ranks_within(ratings, places), 0))
    if known is not None:
        low, high = np.where(known, low, np.nan), np.where(known, high, np.nan)
    key = low if order == "lower" else ratings
    best, worst, best_of_all, worst_of_all, tier = np.zeros((5, len(ratings)), np.intp)
    of_counted, lists = replace(spread, root=spread.root[counted]), components[counted]
    joint = joint_quantile(of_counted, lists, confidence)
    for low_rank, high_rank, quantile in [(best, worst, None), (best_of_all, worst_of_all, joint)]:
        low_rank[counted], high_rank[counted] = possible_ranks(
            ratings[counted], of_counted, lists, confidence, quantile
        )
    well_known = counted if thin is None else counted & ~thin
    of_known = replace(spread, root=spread.root[well_known])
    tier[well_known] = _tiers(ratings[well_known], of_known, components[well_known], confidence)
    rank = np.where(counted, ranks_within(key, places), 0)
    return Standing(rank, low, high, best, worst, best_of_all, worst_of_all, tier)


def _tiers(ratings: Array, spread: Spread, components: Indices, confidence: float) -> Indices:
    """A tier ends before the first item that is surely below the first one of the tier."""
    tiers, quantile = np.ones(len(ratings), np.intp), spread.quantile((1 + confidence) / 2)
    for items in items_of_lists(components):
        order = items[np.argsort(-ratings[items], kind="stable")]
        least = EQUAL * np.abs(ratings[items]).max(initial=0.0)
        tier, leader = 0, None
        for k in order.tolist():
            if leader is None or ratings[leader] - ratings[k] > (
                quantile * spread.error_of_difference(leader, k) + least
            ):
                tier, leader = tier + 1, k
            tiers[k] = tier
    return tiers


def ordered_columns(
    items: NDArray[Any], ratings: Array, standing: Standing, records: Records, components: Indices
) -> dict[str, NDArray[Any] | None]:
    """The columns of a board by the fields of `LeaderboardRow`, in the order of the board."""
    is_below = standing.rank == 0
    key = np.where(is_below, len(items), standing.rank)
    order = np.lexsort((-ratings, key, is_below, components))
    columns = [standing.rank, items, ratings, *standing[1:], *records, components]
    return {
        name: None if column is None else np.asarray(column)[order]
        for name, column in zip(COLUMNS, columns, strict=True)
    }


COLUMNS = ("rank", "item", "rating", "low", "high", "best_rank", "worst_rank", "best_of_all",
           "worst_of_all", "tier", "n", "wins", "ties", "losses", "thin", "component")  # fmt: skip
