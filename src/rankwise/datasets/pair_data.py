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

    def rankings_of_pairs(self, pairs: Any, items: Indices) -> Rankings:
        """Return the rankings of some of the pairs, with these items numbered from 0."""
        is_chosen = np.zeros(self.n_rankings, bool)
        is_chosen[self.pairs.ranking[pairs]] = True
        new_number_of_ranking = np.cumsum(is_chosen) - 1  # 0, 1, … for the chosen rankings
        is_row_chosen = is_chosen[self.ranking]  # a row is an item of a ranking
        return Rankings(
            ranking=new_number_of_ranking[self.ranking[is_row_chosen]],
            item=np.searchsorted(items, self.item[is_row_chosen]),  # `items` increase
            place=self.place[is_row_chosen],
            weight=self.weight[is_chosen],
        )

    def with_all_items(self, n_items: int) -> Rankings:
        """Return rankings that contain all items; added items have no place."""
        is_listed = np.zeros((self.n_rankings, n_items), bool)
        is_listed[self.ranking, self.item] = True
        # each ranking gets the items that it does not list, without a place
        ranking_to_extend, added_item = np.nonzero(~is_listed)
        no_place = np.full(len(added_item), np.inf)
        return Rankings(
            ranking=np.concatenate([self.ranking, ranking_to_extend]),
            item=np.concatenate([self.item, added_item]),
            place=np.concatenate([self.place, no_place]),
            weight=self.weight,
        )

    @cached_property
    def pairs(self) -> RankedPairs:
        """All pairs of items of a ranking of which at least one has a place."""
        n_items_of_ranking = np.bincount(self.ranking, minlength=self.n_rankings)
        n_with_one_item = int(np.sum(n_items_of_ranking < 2))
        if 0 < n_with_one_item < self.n_rankings:
            warn_user(
                f"{n_with_one_item:,} of {self.n_rankings:,} rankings have one item only and are "
                "ignored."
            )
        rows_by_ranking = np.argsort(self.ranking, kind="stable")
        start_of_ranking = np.cumsum(n_items_of_ranking) - n_items_of_ranking  # in rows_by_ranking
        blocks = []  # one for all rankings with the same number of items
        for n_items in np.unique(n_items_of_ranking[n_items_of_ranking > 1]):
            rankings = np.flatnonzero(n_items_of_ranking == n_items)
            # (n_rankings, n_items): the rows of each ranking
            positions = start_of_ranking[rankings][:, np.newaxis] + np.arange(n_items)
            blocks.append(self._pairs_of_rows(rankings, rows_by_ranking[positions]))
        if not any(len(block.first) for block in blocks):
            raise ValueError(
                "no ranking has two items with a place; check which column is the ranking (a race, "
                "a ballot), which one the item, and which one the place."
            )
        return RankedPairs(
            first=np.concatenate([block.first for block in blocks]),
            second=np.concatenate([block.second for block in blocks]),
            outcome=np.concatenate([block.outcome for block in blocks]),
            weight=np.concatenate([block.weight for block in blocks]),
            ranking=np.concatenate([block.ranking for block in blocks]),
        )

    def _pairs_of_rows(self, rankings: Indices, rows: NDArray[np.intp]) -> RankedPairs:
        """The pairs of rankings of one size; `rows` has the rows of each ranking."""
        n_items = rows.shape[1]  # rows: (n_rankings, n_items)
        has_place = np.isfinite(self.place[rows])  # the place of an item without one is infinite
        position, first_column, second_column = _pairs_with_a_place(has_place)
        first_row = rows[position, first_column]
        second_row = rows[position, second_column]
        ranking = rankings[position]

        is_above = self.place[first_row] < self.place[second_row]
        is_below = self.place[first_row] > self.place[second_row]
        # An item is in n_items − 1 pairs; the weights of all pairs of a ranking add up to
        # n_items − 1 times that of the ranking.
        return RankedPairs(
            first=self.item[first_row],
            second=self.item[second_row],
            outcome=is_above.astype(np.float64) - is_below,
            weight=2 / n_items * self.weight[ranking],
            ranking=ranking,
        )


def _pairs_with_a_place(has_place: NDArray[np.bool_]) -> tuple[Indices, Indices, Indices]:
    """Row and two columns of each pair of a row of which at least one has a place.

    The pairs without a place, which may be far more, are not enumerated.

    Parameters
    ----------
    has_place : ndarray of bool, shape (n_rankings, n_items)
        Whether each item of each ranking has a place.

    Returns
    -------
    row, first_column, second_column : ndarray of shape (n_pairs,)
        In lexicographic order; the first column is smaller than the second one.
    """
    n_items = has_place.shape[1]
    # A cell is an item in a ranking, numbered in row-major order. A cell with a place is paired
    # with all later cells of its row, another cell with those that have a place.
    n_placed_up_to = np.cumsum(has_place, axis=1)  # in the row, with the cell itself
    n_placed_later: Indices = n_placed_up_to[:, -1:] - n_placed_up_to
    n_later = np.arange(n_items)[::-1]
    n_pairs_of_cell = np.where(has_place, n_later, n_placed_later).ravel()
    first_cell = np.repeat(np.arange(has_place.size), n_pairs_of_cell)
    first_pair_of_cell = np.cumsum(n_pairs_of_cell) - n_pairs_of_cell
    number_in_cell = np.arange(len(first_cell)) - first_pair_of_cell[first_cell]  # 0, 1, …

    second_cell = first_cell + 1 + number_in_cell
    is_unplaced = ~has_place.ravel()[first_cell]
    placed_cells = np.flatnonzero(has_place)
    next_placed = np.cumsum(has_place)[first_cell]  # its number among the placed cells
    second_cell[is_unplaced] = placed_cells[(next_placed + number_in_cell)[is_unplaced]]
    row, first_column = np.divmod(first_cell, n_items)
    return row, first_column, second_cell % n_items


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
        if self.teams is None:
            return self.n_items
        return self.teams.n_teams

    @property
    def has_sides(self) -> bool:
        """Whether the first side lost at least once; if it never did, it is the winner."""
        return bool((self.outcome < 0).any())

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
        side_has_item = np.zeros(self.n_sides, bool)
        if self.teams is None:
            side_has_item[item] = True
        else:
            teams_of_item = self.teams.team[self.teams.item == item]
            side_has_item[teams_of_item] = True
        return side_has_item[self.first] | side_has_item[self.second]

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
        sides = np.stack([self.first, self.second])  # numbers of teams or of items
        occurring_sides, (first, second) = np.unique(sides, return_inverse=True)
        teams = None
        rankings = None
        if self.teams is not None:
            teams, positions = self.teams.take(occurring_sides).compact()
        else:
            positions = occurring_sides
            if self.rankings is not None:
                all_pairs = slice(None)
                rankings = self.rankings.rankings_of_pairs(all_pairs, items=positions)
        compact_data = replace(
            self,
            first=first,
            second=second,
            items=self.items[positions],
            teams=teams,
            rankings=rankings,
        )
        return compact_data, positions

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
            rankings = rankings.rankings_of_pairs(rows, items=np.arange(self.n_items))
        return replace(
            self,
            first=self.first[rows],
            second=self.second[rows],
            outcome=self.outcome[rows],
            weight=self.weight[rows],
            groups=_take_rows(self.groups, rows),
            judges=_take_rows(self.judges, rows),
            clusters=_take_rows(self.clusters, rows),
            times=_take_rows(self.times, rows),
            covariates={name: values[rows] for name, values in self.covariates.items()},
            contexts={name: values[rows] for name, values in self.contexts.items()},
            rankings=rankings,
        )


def _take_rows(values: NDArray[Any] | None, rows: NDArray[Any]) -> NDArray[Any] | None:
    """Return the values of these rows; None stays None."""
    if values is None:
        return None
    values_of_rows: NDArray[Any] = values[rows]
    return values_of_rows


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
    for name, (min_columns, max_columns) in N_COLUMNS.items():
        _check_n_columns(name, options.get(name), min_columns, max_columns)
    _check_ways_to_name_winner(options)
    separator = options.get("team_separator")
    if separator is not None and (not isinstance(separator, str) or not separator):
        raise ValueError(
            f"team_separator={separator!r}; expected the text between the members of a team, such "
            "as '+'."
        )
    defaults: PairColumns = {
        "winner": "winner",
        "loser": "loser",
        "item": "item",
        "place": "place",
    }
    return {**defaults, **options}


def _check_ways_to_name_winner(options: PairColumns) -> None:
    """Refuse scores and wins without sides, and several columns with the outcome."""
    for name in ("scores", "wins"):
        if options.get(name) is not None and options.get("sides") is None:
            raise ValueError(f"{name}= needs sides=, the two columns with the items.")
    passed = [name for name in ("outcome", "wins", "scores") if options.get(name) is not None]
    if len(passed) > 1:
        raise ValueError(f"{' and '.join(passed)} exclude each other; pass one of them.")


def _check_n_columns(name: str, columns: Any, min_columns: int, max_columns: int) -> None:
    if columns is None:
        return
    if isinstance(columns, (str, int)) or not min_columns <= len(columns) <= max_columns:
        expected = "columns"
        if max_columns == 2:
            expected = "two columns"
        raise ValueError(f"{name}={columns!r}; expected a list of {expected}.")


def infer_columns(options: PairColumns, names: Sequence[str]) -> tuple[PairColumns, str]:
    """Recognize sides and outcome by usual names, unless options or names specify them.

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
    if _has_roles(options, names):
        return options, ""
    pairs_of_sides = _columns_with_usual_names(names, comparison_words.SIDES)
    outcomes = _columns_with_usual_names(names, comparison_words.OUTCOMES)
    pairs_of_scores = _columns_with_usual_names(names, comparison_words.SCORES)
    n_results = len(outcomes) or len(pairs_of_scores)  # scores count without an outcome only
    if len(pairs_of_sides) != 1 or n_results != 1:
        return options, ""

    sides = pairs_of_sides[0]
    read_as = f"{sides[0]!r} and {sides[1]!r} are read as the two sides, "
    if outcomes:
        outcome = outcomes[0][0]
        with_outcome: PairColumns = {**options, "sides": sides, "outcome": outcome}
        return with_outcome, f"{read_as}{outcome!r} as the outcome"
    scores = pairs_of_scores[0]
    with_scores: PairColumns = {**options, "sides": sides, "scores": scores}
    return with_scores, f"{read_as}{scores[0]!r} and {scores[1]!r} as their scores"


def _has_roles(options: PairColumns, names: Sequence[str]) -> bool:
    """Whether the options, or a column of losers, specify the columns of the items."""
    for role in ("sides", "outcome", "ranking", "places"):
        if options.get(role) is not None:
            return True
    if options["winner"] != "winner" or options["loser"] != "loser":
        return True
    return "loser" in map(_plain_name, names)


def _columns_with_usual_names(
    names: Sequence[str], usual_names: Sequence[tuple[str, ...]]
) -> list[list[str]]:
    """The columns of each tuple of usual names of which each is the name of exactly one column."""
    plain_names = [_plain_name(name) for name in names]
    columns = []
    for names_of_columns in usual_names:  # such as ("home", "away")
        if all(plain_names.count(name) == 1 for name in names_of_columns):
            columns.append([names[plain_names.index(name)] for name in names_of_columns])
    return columns


def _plain_name(name: str) -> str:
    """The name of a column in lower case, without spaces and underscores."""
    return re.sub(r"[\s_]", "", name).lower()


def columns_of_ranking_lists(rankings: Sequence[Any]) -> dict[str, list[Any]]:
    """A long table of rankings from lists of items, best first; a tuple or set shares a place."""
    columns: dict[str, list[Any]] = {"ranking": [], "item": [], "place": []}
    for number, ranking in enumerate(rankings):
        if isinstance(ranking, str) or not hasattr(ranking, "__iter__"):
            raise TypeError(
                f"ranking {number} is {ranking!r}, expected a list of items, the best one first."
            )
        place = 1
        for entry in ranking:
            items = [entry]
            if isinstance(entry, (tuple, list, set, frozenset)):  # its items share a place
                items = list(entry)
            columns["item"] += items
            columns["place"] += [place] * len(items)
            columns["ranking"] += [number] * len(items)
            place += len(items)
    return columns
