"""Which columns of a table of comparisons have which role."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from rankwise.datasets.column_roles import Column, position_of
from rankwise.datasets.pair_data import PairColumns
from rankwise.datasets.table_files import TableFile

_SIDES_HINT = " Pass sides= and outcome= if it names two sides and who won."
_LOSER_HINT = " Pass sides= if the winner column says which of two sides won."


@dataclass(frozen=True)
class ComparisonColumns:
    """Positions of the columns with a role; None or an empty tuple if no column has it.

    Attributes
    ----------
    items : tuple of int
        Winner and loser; the two sides; the item of a row of a ranking; or the places of a ranking.
    has_sides : bool
        Whether the items are two sides, of which other columns say who won.
    outcome : int or None
        Words, labels or codes for the side that won.
    margin : int or None
        Differences in favor of the first side.
    scores : tuple of int
        Points of the two sides.
    wins : tuple of int
        Numbers of wins of the two sides, and of ties.
    ranking, place : int or None
        Name of a ranking, and the place of the item in it.
    has_places : bool
        Whether the items are the best item, the second best, … of a ranking in a row.
    magnitude, weight, tie, group, judge, cluster, time : int or None
        Further columns of one role.
    context, covariates : tuple of int
        Conditions, and covariates of the comparisons.
    differences : tuple of (int, int)
        Covariates of the two sides, of which the difference is used.
    team_weights : tuple of int
        Weights of the members of the teams on the two sides.
    """

    items: tuple[int, ...]
    has_sides: bool = False
    outcome: int | None = None
    margin: int | None = None
    scores: tuple[int, ...] = ()
    wins: tuple[int, ...] = ()
    ranking: int | None = None
    place: int | None = None
    has_places: bool = False
    magnitude: int | None = None
    weight: int | None = None
    tie: int | None = None
    group: int | None = None
    judge: int | None = None
    cluster: int | None = None
    time: int | None = None
    context: tuple[int, ...] = ()
    covariates: tuple[int, ...] = ()
    differences: tuple[tuple[int, int], ...] = ()
    team_weights: tuple[int, ...] = ()

    @property
    def numeric(self) -> list[int]:
        """Positions of the columns that are read as numbers."""
        positions = [self.magnitude, self.weight, self.margin, *self.scores, *self.wins]
        for pair in self.differences:
            positions += pair
        return _without_none(positions)

    @property
    def text(self) -> list[int]:
        """Positions of the columns that are read as labels."""
        single = (
            self.outcome,
            self.ranking,
            self.place,
            self.tie,
            self.group,
            self.judge,
            self.cluster,
            self.time,
        )
        return _without_none([*self.items, *single, *self.context, *self.covariates])


def _without_none(positions: Iterable[int | None]) -> list[int]:
    """The positions, each once."""
    return list(dict.fromkeys([position for position in positions if position is not None]))


def find_columns(table: TableFile, options: PairColumns) -> ComparisonColumns:
    """Find the columns that the options name; names match regardless of case.

    Parameters
    ----------
    table : TableFile
        The table.
    options : PairColumns
        The arguments of `read_pairs`, with defaults.
    """
    find = _Finder(table)
    shared = _shared_columns(find, options)
    places = options.get("places")
    if places is not None:
        items = find.several(places, "places")
        return ComparisonColumns(items, has_places=True, **shared)
    if options.get("ranking") is not None:
        return ComparisonColumns(
            (find.one(options["item"], "item"),),
            ranking=find.one(options.get("ranking"), "ranking"),
            place=find.one(options["place"], "place"),
            **shared,
        )
    outcome = options.get("outcome")
    if outcome is None:
        outcome = options["winner"]
    sides = options.get("sides")
    if sides is None:
        winner = find.one(outcome, "winner", _SIDES_HINT)
        loser = find.one(options["loser"], "loser", _LOSER_HINT)
        return ComparisonColumns((winner, loser), **shared)
    items = find.several(sides, "sides")
    if len(set(items)) < 2:
        raise ValueError(f"sides is {sides!r}; pass the names of two different columns.")
    scores = options.get("scores")
    if scores is not None:
        shared["scores"] = find.several(scores, "scores")
    wins = options.get("wins")
    if wins is not None:
        shared["wins"] = find.several(wins, "wins")
    if scores is None and wins is None:
        role = "margin" if options.get("margin") else "outcome"
        shared[role] = find.one(outcome, "outcome")
    return ComparisonColumns(items, has_sides=True, **shared)


def _shared_columns(find: _Finder, options: PairColumns) -> dict[str, Any]:
    """Columns that do not depend on how the items are named."""
    columns: dict[str, Any] = {
        "magnitude": find.optional(options.get("magnitude"), "magnitude"),
        "weight": find.optional(options.get("weight"), "weight"),
        "tie": find.optional(options.get("tie"), "tie"),
        "group": find.optional(options.get("group"), "group"),
    }
    judge = options.get("judge")
    if judge is not None:
        columns["judge"] = find.one(judge, "judge")
    cluster = options.get("cluster")
    if cluster is not None:
        columns["cluster"] = find.one(cluster, "cluster")
    time = options.get("time")
    if time is not None and not is_row_order(find.table, time):
        columns["time"] = find.one(time, "time")
    context = options.get("context")
    if context is not None:
        names = [context] if isinstance(context, (str, int)) else context
        columns["context"] = find.several(names, "context")
    team_weights = options.get("team_weights")
    if team_weights is not None:
        columns["team_weights"] = find.several(team_weights, "team_weights")
    return columns | _covariate_columns(find, options)


def _covariate_columns(find: _Finder, options: PairColumns) -> dict[str, Any]:
    """Covariates of a comparison, and pairs of covariates of its sides."""
    covariates = []
    differences = []
    for column in options.get("covariates") or ():
        if isinstance(column, (str, int)):
            covariates.append(find.one(column, "covariates"))
            continue
        names = list(column)
        if len(names) > 2:
            raise ValueError(f"covariates has {column!r}; a pair is one column for each side.")
        positions = find.several(names, "covariates")
        if len(positions) == 1:
            covariates += positions
        else:
            differences.append((positions[0], positions[1]))
    return {"covariates": tuple(covariates), "differences": tuple(differences)}


def is_row_order(table: TableFile, time: Column) -> bool:
    """Whether `time` stands for the order of the rows, not for a column."""
    return str(time) == "rows" and "rows" not in table.names


class _Finder:
    """Finds columns of a table by name, regardless of case, or by position."""

    def __init__(self, table: TableFile) -> None:
        self.table = table
        self.names_in_lower_case = [name.lower() for name in table.names]

    def one(self, column: Column | None, role: str, hint: str = "") -> int:
        """Position of a column; an unknown one is an error of the table."""
        assert column is not None
        if isinstance(column, str) and column not in self.table.names:
            name = column.lower()
            if self.names_in_lower_case.count(name) == 1:
                return self.names_in_lower_case.index(name)
        return position_of(self.table, column, role, hint)

    def several(self, columns: Sequence[Column], role: str) -> tuple[int, ...]:
        """Positions of several columns."""
        return tuple(self.one(column, role) for column in columns)

    def optional(self, column: Column | None, role: str) -> int | None:
        """Position of a column, by default of the column that has the name of the role."""
        if column is not None:
            return self.one(column, role)
        if self.table.names.count(role) == 1:
            return self.table.names.index(role)
        if self.names_in_lower_case.count(role) == 1:
            return self.names_in_lower_case.index(role)
        return None
