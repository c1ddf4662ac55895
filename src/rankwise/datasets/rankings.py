"""Rankings of several items: races, ballots, votes for the best three; and the pairs in them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rankwise.arrays import Array, Indices
from rankwise.datasets.labels import MISSING, finite_number, show
from rankwise.errors import warn_user
from rankwise.text_tables import count

#: Words, in small letters, for an item that took part and has no place: it is below all that have.
UNPLACED = MISSING | {
    *("dnf", "dsq", "dq", "ret", "nc", "unplaced", "r", "d", "-", "–"),
    *("did not finish", "disqualified", "retired", "not classified"),
}


class RankedPairs(NamedTuple):
    """The pairs of items of rankings, of which at least one has a place.

    Attributes
    ----------
    first, second : ndarray of shape (n_pairs,)
        The two items.
    outcome : ndarray of shape (n_pairs,)
        1 if the first item is above, −1 if it is below, 0 if they share a place.
    weight : ndarray of shape (n_pairs,)
        2/n of a ranking of n items, times its own weight: n(n − 1)/2 pairs weigh n − 1.
    ranking : ndarray of shape (n_pairs,)
        The number of the ranking.
    """

    first: Indices
    second: Indices
    outcome: Array
    weight: Array
    ranking: Indices


@dataclass(frozen=True, eq=False)
class Rankings:
    """Which item has which place in which ranking.

    Attributes
    ----------
    ranking : ndarray of int, shape (n_rows,)
        The number of the ranking.
    item : ndarray of int, shape (n_rows,)
        Position of the item in the labels.
    place : ndarray of shape (n_rows,)
        1 is best, and only the order counts; inf has no place.
    weight : ndarray of shape (n_rankings,)
        How much each ranking counts.
    """

    ranking: Indices
    item: Indices
    place: Array
    weight: Array

    @property
    def n_rankings(self) -> int:
        """Number of rankings."""
        return len(self.weight)

    def among(self, pairs: Any, items: Indices) -> Rankings:
        """The rankings that some of the pairs are of, with these items numbered from 0."""
        chosen = np.zeros(self.n_rankings, bool)
        chosen[self.pairs.ranking[pairs]] = True
        number, rows = np.cumsum(chosen) - 1, chosen[self.ranking]
        item = np.searchsorted(items, self.item[rows])
        return Rankings(number[self.ranking[rows]], item, self.place[rows], self.weight[chosen])

    def with_all(self, n_items: int) -> Rankings:
        """The same with every item that a ranking does not name, without a place."""
        named = np.zeros((self.n_rankings, n_items), bool)
        named[self.ranking, self.item] = True
        ranking, item = np.nonzero(~named)
        return Rankings(
            np.r_[self.ranking, ranking],
            np.r_[self.item, item],
            np.r_[self.place, np.full(len(item), np.inf)],
            self.weight,
        )

    @cached_property
    def pairs(self) -> RankedPairs:
        """Every two items of a ranking, but those that have no place both."""
        order = np.argsort(self.ranking, kind="stable")
        sizes = np.bincount(self.ranking, minlength=self.n_rankings)
        n_alone = int(np.sum(sizes < 2))
        if 0 < n_alone < len(sizes):
            warn_user(
                f"{n_alone:,} of {len(sizes):,} rankings have one item only, and compare nothing."
            )
        starts = np.cumsum(sizes) - sizes
        columns: list[list[Any]] = [[], [], [], [], []]
        for m in np.unique(sizes[sizes > 1]):
            number = np.flatnonzero(sizes == m)
            rows = order[starts[number][:, None] + np.arange(m)]
            i, j = np.triu_indices(m, 1)
            first, second = rows[:, i].ravel(), rows[:, j].ravel()
            of_pair = np.repeat(number, len(i))
            is_known = np.isfinite(np.minimum(self.place[first], self.place[second]))
            first, second, of_pair = first[is_known], second[is_known], of_pair[is_known]
            above = (self.place[first] < self.place[second]).astype(np.float64)
            below = self.place[first] > self.place[second]
            values = (self.item[first], self.item[second], above - below)
            for column, value in zip(
                columns, (*values, 2 / m * self.weight[of_pair], of_pair), strict=True
            ):
                column.append(value)
        if not columns[0] or not sum(map(len, columns[0])):
            raise ValueError(
                "no ranking has two items, so nothing is compared; check which column is the "
                "ranking (a race, a ballot) and which the item, and that there are places."
            )
        return RankedPairs(*(np.concatenate(column) for column in columns))


def read_places(texts: Sequence[str], error: Any) -> Array:
    """Places as numbers, inf for none; `error` makes the error about one of the texts."""
    places = np.full(len(texts), np.inf)
    for k, text in enumerate(texts):
        if text.lower() in UNPLACED:
            continue
        number = finite_number(text)
        if number is None or number <= 0:
            raise error(
                k,
                f"the place is {show(text)}, expected a number from 1, or nothing, DNF, DSQ, … for "
                "an item that took part and has no place.",
            )
        places[k] = number
    return places


def check_rankings(rankings: Rankings, names: Any, labels: NDArray[Any]) -> None:
    """Refuse an item that is in a ranking twice."""
    codes = rankings.ranking * len(labels) + rankings.item
    order = np.argsort(codes, kind="stable")
    twice = np.flatnonzero(np.diff(codes[order]) == 0)
    if len(twice):
        row = order[twice[0]]
        item, ranking = labels[rankings.item[row]], names(int(rankings.ranking[row]))
        raise ValueError(
            f"{item!s} is in {ranking} twice ({count(len(twice), 'such row')}); an item has one "
            "place in a ranking. Correct it, or name the column that tells the rankings apart."
        )


def from_lists(lists: Sequence[Any]) -> tuple[Rankings, NDArray[Any]]:
    """Rankings and labels from lists of items, best first; a tuple or a set is a shared place."""
    number: list[int] = []
    labels: list[Any] = []
    places: list[int] = []
    for k, ranked in enumerate(lists):
        if isinstance(ranked, str) or not hasattr(ranked, "__iter__"):
            raise TypeError(
                f"ranking {k} is {ranked!r}, expected a list of items, the best one first."
            )
        place = 1
        for entry in ranked:
            members = list(entry) if isinstance(entry, (tuple, list, set, frozenset)) else [entry]
            labels += members
            places += [place] * len(members)
            number += [k] * len(members)
            place += len(members)
    names, item = np.unique(np.array(labels), return_inverse=True)
    rankings = Rankings(
        np.array(number, np.intp),
        item.astype(np.intp),
        np.array(places, np.float64),
        np.ones(len(lists)),
    )
    check_rankings(rankings, lambda k: f"ranking {k}", names)
    return rankings, names
