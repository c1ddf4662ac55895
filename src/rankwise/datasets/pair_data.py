"""Comparisons and rankings of items as arrays, and the roles of columns."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, NamedTuple, TypedDict

import numpy as np
from numpy.typing import NDArray

from rankwise.arrays import Array, Indices
from rankwise.caching import cached_property
from rankwise.datasets import comparison_words
from rankwise.datasets.column_roles import Column
from rankwise.datasets.teams import Teams
from rankwise.errors import warn_user
from rankwise.validation import check_option, suggestion

if TYPE_CHECKING:
    from rankwise.graphs import PairGraph


class RankedPairs(NamedTuple):
    """Pairs of items of rankings of which at least one has a place.

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
    """Places of items in rankings.

    Attributes
    ----------
    ranking : ndarray of int, shape (n_rows,)
        The number of the ranking.
    item : ndarray of int, shape (n_rows,)
        Position of the item in the labels.
    place : ndarray of shape (n_rows,)
        1 is best, and only the order counts; inf for items without a place.
    weight : ndarray of shape (n_rankings,)
        Weight of each ranking.
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
        """Return the rankings of some of the pairs, with these items numbered from 0."""
        is_chosen = np.zeros(self.n_rankings, bool)
        is_chosen[self.pairs.ranking[pairs]] = True
        new_number = np.cumsum(is_chosen) - 1
        rows = is_chosen[self.ranking]
        item = np.searchsorted(items, self.item[rows])
        ranking = new_number[self.ranking[rows]]
        return Rankings(ranking, item, self.place[rows], self.weight[is_chosen])

    def with_all(self, n_items: int) -> Rankings:
        """Return rankings that contain all items; added items have no place."""
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
        """All pairs of items of a ranking of which at least one has a place."""
        order = np.argsort(self.ranking, kind="stable")
        sizes = np.bincount(self.ranking, minlength=self.n_rankings)
        n_single = int(np.sum(sizes < 2))
        if 0 < n_single < len(sizes):
            warn_user(
                f"{n_single:,} of {len(sizes):,} rankings have one item only and are ignored."
            )
        starts = np.cumsum(sizes) - sizes
        blocks = []
        for size in np.unique(sizes[sizes > 1]):
            rankings = np.flatnonzero(sizes == size)
            rows = order[starts[rankings][:, None] + np.arange(size)]
            blocks.append(self._pairs_of_rows(rankings, rows))
        if not any(len(block.first) for block in blocks):
            raise ValueError(
                "no ranking has two items with a place; check which column is the ranking (a race, "
                "a ballot), which one the item, and which one the place."
            )
        columns = zip(*blocks, strict=True)
        return RankedPairs(*(np.concatenate(column) for column in columns))

    def _pairs_of_rows(self, rankings: Indices, rows: NDArray[np.intp]) -> RankedPairs:
        """The pairs of rankings of one size; `rows` has the rows of each ranking."""
        size = rows.shape[1]
        i, j = np.triu_indices(size, 1)
        first = rows[:, i].ravel()
        second = rows[:, j].ravel()
        ranking = np.repeat(rankings, len(i))
        has_place = np.isfinite(np.minimum(self.place[first], self.place[second]))
        first = first[has_place]
        second = second[has_place]
        ranking = ranking[has_place]
        is_above = self.place[first] < self.place[second]
        is_below = self.place[first] > self.place[second]
        outcome = is_above.astype(np.float64) - is_below
        weight = 2 / size * self.weight[ranking]
        return RankedPairs(self.item[first], self.item[second], outcome, weight, ranking)


@dataclass(frozen=True, eq=False)
class PairData:
    """Comparisons of items: ``items[first[k]]`` met ``items[second[k]]``, sides as in the data.

    Attributes
    ----------
    first, second : ndarray of shape (n_pairs,)
        Positions in `items`, or numbers of `teams` if there are teams. If the data name winner and
        loser, the winner is first.
    outcome : ndarray of shape (n_pairs,)
        Margin of the first item: positive if it won, negative if the second item won, 0 for a tie;
        1, −1 and 0 if the data have no margins.
    weight : ndarray of shape (n_pairs,)
        Weight of each comparison; 1 if the data have no weights.
    items : ndarray of shape (n_items,)
        The distinct labels in increasing order: int64 if all are whole numbers, else strings.
    groups, judges, clusters : ndarray of shape (n_pairs,) or None
        Labels of each comparison: its board, its judge, and the set of dependent comparisons that
        it belongs to.
    covariates : dict from str to ndarray of shape (n_pairs,)
        Covariates of each comparison: numbers, from the point of view of the first side, or labels
        of categories.
    read_as : str
        The columns that were recognized as sides and outcome; empty if they were named.
    rankings : Rankings or None
        The rankings of several items whose pairs the comparisons are; the clusters are then the
        rankings.
    times : ndarray of shape (n_pairs,) or None
        Time of each comparison: dates (datetime64) or numbers.
    contexts : dict from str to ndarray of shape (n_pairs,)
        Labels of conditions under which strength may differ.
    teams : Teams or None
        Members of the sides, if a side may have several items.
    """

    first: Indices
    second: Indices
    outcome: Array
    weight: Array
    items: NDArray[Any]
    groups: NDArray[Any] | None = None
    judges: NDArray[Any] | None = None
    clusters: NDArray[Any] | None = None
    covariates: dict[str, NDArray[Any]] = field(default_factory=dict)
    read_as: str = ""
    rankings: Rankings | None = None
    times: NDArray[Any] | None = None
    contexts: dict[str, NDArray[Any]] = field(default_factory=dict)
    teams: Teams | None = None

    @property
    def n_items(self) -> int:
        """Number of distinct items."""
        return len(self.items)

    @property
    def n_sides(self) -> int:
        """Number of teams, or of items without teams."""
        return self.n_items if self.teams is None else self.teams.n_teams

    @property
    def n_pairs(self) -> int:
        """Number of comparisons."""
        return len(self.first)

    @property
    def winner(self) -> Indices:
        """The item that won, the first one of a tie."""
        return np.where(self.outcome < 0, self.second, self.first)

    @property
    def loser(self) -> Indices:
        """The item that lost, the second one of a tie."""
        return np.where(self.outcome < 0, self.first, self.second)

    @property
    def magnitude(self) -> Array:
        """Margin of the winner; 0 for a tie."""
        return np.abs(self.outcome)

    def has_item(self, item: int) -> NDArray[np.bool_]:
        """Mask of the comparisons of an item, by its position.

        Parameters
        ----------
        item : int
            Position in `items`.

        Returns
        -------
        ndarray of bool, shape (n_pairs,)
            The mask.
        """
        is_side = np.zeros(self.n_sides, bool)
        if self.teams is None:
            is_side[item] = True
        else:
            is_side[self.teams.team[self.teams.item == item]] = True
        return is_side[self.first] | is_side[self.second]

    def graph(self) -> PairGraph:
        """Return the comparisons as a preference graph, the `y` of a ranker.

        Returns
        -------
        PairGraph
            The graph; item k is the item ``items[k]``.
        """
        from rankwise.graphs import PairGraph

        if self.teams is not None:
            raise ValueError(
                "the comparisons are between teams of several items, so they are not a graph of "
                "the items; pass them to rankwise.leaderboard.rate, which rates the members."
            )
        return PairGraph(self.winner, self.loser, self.magnitude, self.weight, self.n_items)

    def compact(self) -> tuple[PairData, Indices]:
        """Return the same comparisons with only the items that occur, and their positions.

        Returns
        -------
        tuple of PairData and ndarray
            The comparisons, and the old position of each item.
        """
        ends = np.stack([self.first, self.second])
        if self.teams is not None:
            used_teams, (first, second) = np.unique(ends, return_inverse=True)
            teams, members = self.teams.take(used_teams).compact()
            items = self.items[members]
            return replace(self, first=first, second=second, items=items, teams=teams), members
        members, (first, second) = np.unique(ends, return_inverse=True)
        rankings = self.rankings and self.rankings.among(slice(None), members)
        items = self.items[members]
        return replace(self, first=first, second=second, items=items, rankings=rankings), members

    def take(self, rows: NDArray[Any]) -> PairData:
        """Return some of the comparisons, by their numbers, which may be repeated, or a mask.

        Parameters
        ----------
        rows : ndarray of int or bool
            Numbers of comparisons, or a mask.

        Returns
        -------
        PairData
            The comparisons.
        """
        rankings = self.rankings
        if rankings is not None:
            rankings = rankings.among(rows, np.arange(self.n_items))
        return replace(
            self,
            first=self.first[rows],
            second=self.second[rows],
            outcome=self.outcome[rows],
            weight=self.weight[rows],
            groups=_take(self.groups, rows),
            judges=_take(self.judges, rows),
            clusters=_take(self.clusters, rows),
            times=_take(self.times, rows),
            covariates={name: values[rows] for name, values in self.covariates.items()},
            contexts={name: values[rows] for name, values in self.contexts.items()},
            rankings=rankings,
        )


def _take(values: NDArray[Any] | None, rows: NDArray[Any]) -> NDArray[Any] | None:
    if values is None:
        return None
    taken: NDArray[Any] = values[rows]
    return taken


# Reading ----------------------------------------------------------------------------------------


class PairColumns(TypedDict, total=False):
    """Roles of the columns of a table: keywords of `read_pairs`, which describes them."""

    winner: Column
    loser: Column
    sides: Sequence[Column] | None
    outcome: Column | None
    wins: Sequence[Column] | None
    scores: Sequence[Column] | None
    margin: bool
    magnitude: Column | None
    weight: Column | None
    tie: Column | None
    group: Column | None
    judge: Column | None
    cluster: Column | None
    covariates: Sequence[Column | tuple[Column, Column]]
    outcome_words: Mapping[str, str]
    ranking: Column | None
    item: Column
    place: Column
    places: Sequence[Column] | None
    unlisted: str
    time: Column | None
    context: Column | Sequence[Column]
    team_separator: str | None
    team_weights: Sequence[Column] | None


PAIR_COLUMNS = tuple(PairColumns.__annotations__)
N_COLUMNS = {  # smallest and largest number of columns of an argument
    "sides": (2, 2),
    "scores": (2, 2),
    "wins": (2, 3),
    "places": (2, 10**6),
    "team_weights": (2, 2),
    "covariates": (0, 10**6),
}


def validate_columns(options: PairColumns) -> PairColumns:
    """Return the arguments of `read_pairs` with defaults; refuse contradictions."""
    unknown = [name for name in options if name not in PAIR_COLUMNS]
    if unknown:
        guess = suggestion(unknown[0], PAIR_COLUMNS)
        raise TypeError(f"there is no argument {unknown[0]!r}{guess} See read_pairs.")
    margin = options.get("margin")
    if margin is not None and not isinstance(margin, bool | np.bool_):
        raise ValueError(
            f"margin={margin!r}; expected True or False. If it is the column that says by how much "
            f"the winner won, pass magnitude={margin!r}."
        )
    check_option("unlisted", options.get("unlisted", "absent"), ("absent", "last"))
    for name, (least, most) in N_COLUMNS.items():
        _check_n_columns(name, options.get(name), least, most)
    for name in ("scores", "wins"):
        if options.get(name) is not None and options.get("sides") is None:
            raise ValueError(f"{name}= needs sides=, the two columns with the items.")
    separator = options.get("team_separator")
    if separator is not None and (not isinstance(separator, str) or not separator):
        raise ValueError(
            f"team_separator={separator!r}; expected the text between the members of a team, such "
            "as '+'."
        )
    results = [name for name in ("outcome", "wins", "scores") if options.get(name) is not None]
    if len(results) > 1:
        raise ValueError(f"{' and '.join(results)} exclude each other; pass one of them.")
    defaults: PairColumns = {
        "winner": "winner",
        "loser": "loser",
        "item": "item",
        "place": "place",
    }
    return {**defaults, **options}


def _check_n_columns(name: str, columns: Any, least: int, most: int) -> None:
    if columns is None:
        return
    if isinstance(columns, (str, int)) or not least <= len(columns) <= most:
        expected = "two columns" if most == 2 else "columns"
        raise ValueError(f"{name} is {columns!r}; pass a list of {expected}.")


def infer_columns(options: PairColumns, names: Sequence[str]) -> tuple[PairColumns, str]:
    """Recognize sides and outcome by usual names, unless options or names say who won.

    Parameters
    ----------
    options : PairColumns
        The arguments of `read_pairs`, with defaults.
    names : sequence of str
        Names of the columns.

    Returns
    -------
    options : PairColumns
        The arguments with the recognized columns.
    read_as : str
        The recognized columns as text; empty if there are none.
    """
    plain_names = [re.sub(r"[\s_]", "", name).lower() for name in names]
    roles = [options.get(role) for role in ("sides", "outcome", "ranking", "places")]
    has_role = any(role is not None for role in roles)
    has_other_names = options["winner"] != "winner" or options["loser"] != "loser"
    if has_role or has_other_names or "loser" in plain_names:
        return options, ""

    def find(usual_names: Sequence[tuple[str, ...]]) -> list[list[str]]:
        """The columns of each tuple of names that occurs once in the table."""
        columns = []
        for usual in usual_names:
            if all(plain_names.count(name) == 1 for name in usual):
                columns.append([names[plain_names.index(name)] for name in usual])
        return columns

    sides = find(comparison_words.SIDES)
    outcomes = find(comparison_words.OUTCOMES)
    scores = find(comparison_words.SCORES)
    if len(sides) != 1 or len(outcomes or scores) != 1:
        return options, ""
    first, second = sides[0]
    read_as = f"{first!r} and {second!r} are read as the two sides, "
    if outcomes:
        (outcome,) = outcomes[0]
        with_outcome: PairColumns = {**options, "sides": sides[0], "outcome": outcome}
        return with_outcome, f"{read_as}{outcome!r} as the outcome"
    first_score, second_score = scores[0]
    with_scores: PairColumns = {**options, "sides": sides[0], "scores": scores[0]}
    return with_scores, f"{read_as}{first_score!r} and {second_score!r} as their scores"


def from_lists(lists: Sequence[Any]) -> dict[str, list[Any]]:
    """A long table of rankings from lists of items, best first; a tuple or set shares a place."""
    columns: dict[str, list[Any]] = {"ranking": [], "item": [], "place": []}
    for k, ranked in enumerate(lists):
        if isinstance(ranked, str) or not hasattr(ranked, "__iter__"):
            raise TypeError(
                f"ranking {k} is {ranked!r}, expected a list of items, the best one first."
            )
        place = 1
        for entry in ranked:
            members = list(entry) if isinstance(entry, (tuple, list, set, frozenset)) else [entry]
            columns["item"] += members
            columns["place"] += [place] * len(members)
            columns["ranking"] += [k] * len(members)
            place += len(members)
    return columns
