"""From ratings to the rows of a board: ranks, the ranks that are possible, tiers, records."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.stats import t as student

from rankwise.arrays import Array, Indices
from rankwise.leaderboard.jackknife import COVARIANCE_LIMIT, Spread
from rankwise.leaderboard.tally import Tally

EQUAL = 1e-7  # of the largest rating; a smaller difference is rounding, or the work of alpha
FEW = 5  # comparisons; an item with fewer is thin


class Records(NamedTuple):
    """How the comparisons of each item ended."""

    n: Indices
    wins: Indices
    ties: Indices
    losses: Indices

    @property
    def thin(self) -> NDArray[np.bool_]:
        """Items with few comparisons, or whose comparisons all ended alike."""
        alike = np.max([self.wins, self.ties, self.losses], axis=0) == self.n
        return np.asarray((self.n < FEW) | alike)


def records_of(tally: Tally) -> Records:
    """Comparisons, wins, ties and losses of each item."""
    first, second = tally.first[tally.pair], tally.second[tally.pair]

    def count(ahead: NDArray[np.bool_], behind: NDArray[np.bool_]) -> Indices:
        """How often an item is first in the former outcomes or second in the latter."""
        n, number = tally.n_items, tally.count
        found = np.bincount(first, number * ahead, n) + np.bincount(second, number * behind, n)
        return np.asarray(found, np.intp)

    won, lost = tally.target > 0, tally.target < 0
    wins, losses, ties = count(won, lost), count(lost, won), count(*[tally.target == 0] * 2)
    return Records(wins + ties + losses, wins, ties, losses)


def ranks_within(ratings: Array, components: Indices) -> Indices:
    """Rank of each item in its component, 1 for the highest rating; equal ones share the best."""
    ranks = np.empty(len(ratings), dtype=np.intp)
    least = EQUAL * np.abs(ratings).max(initial=0.0)
    for members in _members(components):
        order = members[np.argsort(-ratings[members], kind="stable")]
        is_lower = -np.diff(ratings[order], prepend=np.inf) > least
        place = np.where(is_lower, np.arange(1, len(members) + 1), 0)
        ranks[order] = np.maximum.accumulate(place)
    return ranks


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
    tier : ndarray or None
        Items of one tier cannot be told from its first one.
    """

    rank: Indices
    low: Array | None = None
    high: Array | None = None
    best_rank: Indices | None = None
    worst_rank: Indices | None = None
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
) -> Standing:
    """Ranks and intervals; items that are not counted stand below the line.

    An item that nothing is known of has no interval.

    The possible ranks of an item follow from its differences to the others: j is surely above i if
    the interval of ``r_j − r_i`` is above 0. The best rank is 1 + the number of items surely above,
    the worst rank leaves out those surely below. To miss the true rank k, more items must be
    wrongly above than are rightly above but not surely so. So the true ranks are inside for at
    least the confidence on average over the items of a board (98–99 % for 95 % in simulations); not
    for all items at once, and not for the true winner of a field of equals.
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
        spread = Spread(root, root[:0], len(samples) - 1 or 1, is_exact=False)
    else:
        return Standing(np.where(counted, ranks_within(ratings, places), 0))
    if known is not None:
        low, high = np.where(known, low, np.nan), np.where(known, high, np.nan)
    key = low if order == "lower" else ratings
    best, worst, tier = np.zeros((3, len(ratings)), np.intp)
    for members in _members(places[counted]):
        at = np.flatnonzero(counted)[members]
        at = at[np.argsort(-ratings[at], kind="stable")]
        sure = _Certainty(ratings[at], spread.root[at], spread.freedom, tail)
        best[at], worst[at], tier[at] = *sure.ranks(), sure.tiers()
    rank = np.where(counted, ranks_within(key, places), 0)
    return Standing(rank, low, high, best, worst, tier)


class _Certainty:
    """Which of some items, by falling rating, are surely above which."""

    def __init__(self, ratings: Array, root: Array, freedom: int, tail: float) -> None:
        self.ratings, self.root = ratings, root
        self.errors = np.linalg.norm(root, axis=1)
        self.quantile = float(student.isf(tail, freedom))
        self.least = EQUAL * np.abs(ratings).max(initial=0.0)

    def ranks(self) -> tuple[Indices, Indices]:
        """Best and worst rank; above 2,000 items s_i + s_j stands for s_ij, which is wider."""
        n, ratings = len(self.ratings), self.ratings
        if n > COVARIANCE_LIMIT:
            width = self.quantile * self.errors
            low, high = ratings - width, ratings + width + self.least
            above = n - np.searchsorted(np.sort(low), high, side="right")
            below = np.searchsorted(np.sort(high), low, side="left")
            return 1 + above, n - below
        G = self.root @ self.root.T
        variance = G.diagonal()[:, None] + G.diagonal() - 2 * G
        bound = self.quantile * np.sqrt(np.maximum(variance, 0.0)) + self.least
        is_above = ratings - ratings[:, None] > bound  # [i, j]: j above i
        return 1 + is_above.sum(axis=1), n - is_above.sum(axis=0)

    def tiers(self) -> Indices:
        """A tier ends before the first item that is surely below the first of the tier."""
        tier, leader = np.ones(len(self.ratings), np.intp), 0
        for k in range(1, len(tier)):
            error = float(np.linalg.norm(self.root[leader] - self.root[k]))
            is_below = self.ratings[leader] - self.ratings[k] > self.quantile * error + self.least
            tier[k] = tier[k - 1] + is_below
            leader = k if is_below else leader
        return tier


def _members(components: Indices) -> list[Indices]:
    """The items of each component."""
    order = np.argsort(components, kind="stable")
    return np.split(order, 1 + np.flatnonzero(np.diff(components[order])))


def ordered_columns(
    items: NDArray[Any], ratings: Array, standing: Standing, records: Records, components: Indices
) -> dict[str, NDArray[Any] | None]:
    """The columns of a board by the fields of `LeaderboardRow`, in the order of the board."""
    is_below = standing.rank == 0
    key = np.where(is_below, len(items), standing.rank)
    order = np.lexsort((-ratings, key, is_below, components))
    columns = [standing.rank, items, ratings, *standing[1:], *records, records.thin, components]
    return {
        name: None if column is None else np.asarray(column)[order]
        for name, column in zip(COLUMNS, columns, strict=True)
    }


COLUMNS = ("rank", "item", "rating", "low", "high", "best_rank", "worst_rank", "tier",
           "n", "wins", "ties", "losses", "thin", "component")  # fmt: skip
