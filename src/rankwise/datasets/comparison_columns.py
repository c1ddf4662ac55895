"""Roles of the columns of a table of comparisons."""

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
        Whether the items are two sides, and other columns contain the outcome.
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
        for first, second in self.differences:
            positions += [first, second]
        return _distinct_positions(positions)

    @property
    def text(self) -> list[int]:
        """Positions of the columns that are read as labels."""
        roles_of_one_column = (
            self.outcome,
            self.ranking,
            self.place,
            self.tie,
            self.group,
            self.judge,
            self.cluster,
            self.time,
        )
        positions = [*self.items, *roles_of_one_column, *self.context, *self.covariates]
        return _distinct_positions(positions)


def _distinct_positions(positions: Iterable[int | None]) -> list[int]:
    """The positions that are not None, each once."""
    without_none = [position for position in positions if position is not None]
    return list(dict.fromkeys(without_none))


def find_columns(table: TableFile, options: PairColumns) -> ComparisonColumns:
    """Find the columns that the options name; names match regardless of case.

    Parameters
    ----------
    table : TableFile
        The table.
    options : PairColumns
        The arguments of `read_pairs`, with defaults.
    """
    finder = _ColumnFinder(table)
    further_columns = _find_further_columns(finder, options)
    places = options.get("places")
    if places is not None:
        items = finder.positions(places, "places")
        return ComparisonColumns(items, has_places=True, **further_columns)
    if options.get("ranking") is not None:
        item = finder.position(options["item"], "item")
        return ComparisonColumns(
            items=(item,),
            ranking=finder.position(options.get("ranking"), "ranking"),
            place=finder.position(options["place"], "place"),
            **further_columns,
        )
    if options.get("sides") is not None:
        return _find_columns_of_sides(finder, options, further_columns)
    winner = finder.position(_outcome_column(options), "winner", _SIDES_HINT)
    loser = finder.position(options["loser"], "loser", _LOSER_HINT)
    return ComparisonColumns(items=(winner, loser), **further_columns)


def _outcome_column(options: PairColumns) -> Column:
    """The column with the outcome: `outcome`, or else `winner`."""
    outcome = options.get("outcome")
    if outcome is None:
        return options["winner"]
    return outcome


def _find_columns_of_sides(
    finder: _ColumnFinder, options: PairColumns, further_columns: dict[str, Any]
) -> ComparisonColumns:
    """Find the two columns of items, and the columns with the outcome."""
    sides = options["sides"]
    assert sides is not None
    items = finder.positions(sides, "sides")
    if len(set(items)) < 2:
        raise ValueError(f"sides={sides!r}; expected the names of two different columns.")
    result_columns: dict[str, Any] = {}
    scores = options.get("scores")
    wins = options.get("wins")
    if scores is not None:
        result_columns["scores"] = finder.positions(scores, "scores")
    if wins is not None:
        result_columns["wins"] = finder.positions(wins, "wins")
    if not result_columns:
        outcome_position = finder.position(_outcome_column(options), "outcome")
        if options.get("margin"):  # the outcome is a number, the margin of the first side
            result_columns["margin"] = outcome_position
        else:
            result_columns["outcome"] = outcome_position
    return ComparisonColumns(items, has_sides=True, **result_columns, **further_columns)


def _find_further_columns(finder: _ColumnFinder, options: PairColumns) -> dict[str, Any]:
    """Find the columns that identify neither the items nor the winner."""
    positions: dict[str, Any] = {
        "magnitude": finder.optional_position(options.get("magnitude"), "magnitude"),
        "weight": finder.optional_position(options.get("weight"), "weight"),
        "tie": finder.optional_position(options.get("tie"), "tie"),
        "group": finder.optional_position(options.get("group"), "group"),
    }
    judge = options.get("judge")
    if judge is not None:
        positions["judge"] = finder.position(judge, "judge")
    cluster = options.get("cluster")
    if cluster is not None:
        positions["cluster"] = finder.position(cluster, "cluster")
    time = options.get("time")
    if time is not None and not is_row_order(finder.table, time):
        positions["time"] = finder.position(time, "time")
    context = options.get("context")
    if context is not None:
        if isinstance(context, (str, int)):
            context = [context]
        positions["context"] = finder.positions(context, "context")
    team_weights = options.get("team_weights")
    if team_weights is not None:
        positions["team_weights"] = finder.positions(team_weights, "team_weights")
    return positions | _find_covariates(finder, options)


def _find_covariates(finder: _ColumnFinder, options: PairColumns) -> dict[str, Any]:
    """Find covariates of the comparisons, and pairs of covariates of the two sides."""
    covariates: list[int] = []
    differences: list[tuple[int, int]] = []
    for column in options.get("covariates") or ():
        if isinstance(column, (str, int)):
            covariates.append(finder.position(column, "covariates"))
            continue
        columns_of_sides = list(column)
        if len(columns_of_sides) > 2:
            raise ValueError(
                f"covariates has {column!r}; expected two columns in a tuple, one for each side."
            )
        positions = finder.positions(columns_of_sides, "covariates")
        if len(positions) == 2:
            first, second = positions
            differences.append((first, second))
        else:
            covariates += positions
    return {"covariates": tuple(covariates), "differences": tuple(differences)}


def is_row_order(table: TableFile, time: Column) -> bool:
    """Whether `time` means the order of the rows, not a column."""
    return str(time) == "rows" and "rows" not in table.names


class _ColumnFinder:
    """Finds columns of a table by name, regardless of case, or by position."""

    def __init__(self, table: TableFile) -> None:
        self.table = table
        self.names_in_lower_case = [name.lower() for name in table.names]

    def position(self, column: Column | None, role: str, hint: str = "") -> int:
        """Position of a column; an unknown one is an error of the table."""
        assert column is not None
        if isinstance(column, str) and column not in self.table.names:
            name = column.lower()
            if self.names_in_lower_case.count(name) == 1:
                return self.names_in_lower_case.index(name)
        return position_of(self.table, column, role, hint)

    def positions(self, columns: Sequence[Column], role: str) -> tuple[int, ...]:
        """Positions of several columns."""
        return tuple(self.position(column, role) for column in columns)

    def optional_position(self, column: Column | None, role: str) -> int | None:
        """Position of a column, by default of the column that has the name of the role."""
        if column is not None:
            return self.position(column, role)
        if self.table.names.count(role) == 1:
            return self.table.names.index(role)
        if self.names_in_lower_case.count(role) == 1:
            return self.names_in_lower_case.index(role)
        return None
