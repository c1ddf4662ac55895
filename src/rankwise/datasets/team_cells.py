"""Cells of a table that contain teams: tuples, lists, or texts with a separator."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rankwise.arrays import Indices
from rankwise.datasets.column_values import distinct_cells
from rankwise.datasets.files import import_arrow
from rankwise.datasets.table_files import FrameTable, TableFile
from rankwise.datasets.teams import Teams
from rankwise.datasets.vocabulary import (
    as_text,
    distinct_labels,
    finite_number,
    is_gap,
    shown_value,
)

TEAM_TYPES = (tuple, list, set, frozenset, dict, np.ndarray)
JOINT = " + "  # between the members in messages


class Team(NamedTuple):
    """Members of one side in increasing order, and their shares; no members for a missing cell."""

    members: tuple[str, ...]
    shares: tuple[float, ...]

    @property
    def label(self) -> str:
        """Names of the members; empty for a missing cell."""
        return JOINT.join(self.members)


class TeamColumn(NamedTuple):
    """A column of teams.

    Attributes
    ----------
    codes : ndarray of int, shape (n_rows,)
        Position of the team of each row in `teams`.
    teams : list of Team
        The distinct teams.
    are_words : bool
        Whether the members are strings of a frame; texts of a file may spell whole numbers.
    """

    codes: Indices
    teams: list[Team]
    are_words: bool

    def labels(self) -> list[str]:
        """Label of the team of each row."""
        texts = [team.label for team in self.teams]
        return [texts[code] for code in self.codes.tolist()]

    def take(self, rows: Indices) -> TeamColumn:
        """Return some of the rows."""
        return self._replace(codes=self.codes[rows])


def list_if_nested(column: Any) -> Any:
    """Return a column of Arrow lists as a Python list; other columns unchanged."""
    if isinstance(column, list):
        return column
    if import_arrow().types.is_nested(column.type):
        return column.to_pylist()
    return column


def has_teams(column: Any) -> bool:
    """Whether a cell of a column is a tuple, list, set or mapping of items."""
    if not isinstance(column, list):
        return False
    distinct_types = {type(cell) for cell in column}  # a few, also of a million cells
    return any(issubclass(cell_type, TEAM_TYPES) for cell_type in distinct_types)


def read_teams(
    table: TableFile, column: Any, separator: str | None, weights: Any = None
) -> TeamColumn:
    """Read a column of teams.

    Parameters
    ----------
    table : TableFile
        The table, for its errors.
    column : pyarrow.ChunkedArray or list
        The cells: a tuple, list, set, or mapping from member to share; or the text of one item or
        of several items with the separator.
    separator : str or None
        Text between the members of a team.
    weights : pyarrow.ChunkedArray or list, optional
        Shares of the members of each team, in their order in the cell.
    """
    cells = _list_of_cells(column)
    weight_cells = [None] * len(cells)
    if weights is not None:
        weight_cells = _list_of_cells(weights)
    codes: list[int] = []
    code_of_team: dict[Team, int] = {}
    code_of_text: dict[str, int] = {}  # a text that occurs again is the same team, if unweighted
    for row, (cell, weight_cell) in enumerate(zip(cells, weight_cells, strict=True)):
        is_repeated_text = weights is None and isinstance(cell, str) and cell in code_of_text
        if is_repeated_text:
            codes.append(code_of_text[cell])
            continue
        members = _read_members(table, row, cell, separator)
        member_weights = _member_weights(cell, weight_cell, separator)
        team = _make_team(table, row, members, member_weights)
        code = code_of_team.setdefault(team, len(code_of_team))
        codes.append(code)
        if isinstance(cell, str):
            code_of_text[cell] = code
    are_words = isinstance(table, FrameTable) and any(_has_string(cell) for cell in cells)
    return TeamColumn(np.array(codes, np.intp), list(code_of_team), are_words)


def _list_of_cells(column: Any) -> list[Any]:
    """Cells of a column as a list."""
    if isinstance(column, list):
        return column
    codes, texts = distinct_cells(column)
    return [texts[code] for code in codes.tolist()]


def _has_string(cell: Any) -> bool:
    """Whether a cell of a frame is, or contains, a string."""
    if isinstance(cell, TEAM_TYPES):
        return any(isinstance(member, str) for member in cell)
    return isinstance(cell, str)


def _read_members(table: TableFile, row: int, cell: Any, separator: str | None) -> list[str]:
    """Names of the members of a team; none for a missing cell."""
    if isinstance(cell, TEAM_TYPES):
        members = [as_text(member) for member in cell]
        if not members:
            raise table.error("the team is empty, expected at least one item. Drop the row.", row)
    elif is_gap(cell) or not as_text(cell):
        return []
    elif separator is None:
        members = [as_text(cell)]
    else:
        members = [member.strip() for member in as_text(cell).split(separator)]
    if not all(members):
        raise table.error(f"the team {_shown_team(members)} has a member without a name.", row)
    return members


def _member_weights(cell: Any, weight_cell: Any, separator: str | None) -> list[Any] | None:
    """Weights of the members as they are written; None if every member has the weight 1."""
    if weight_cell is None:
        if isinstance(cell, Mapping):
            return list(cell.values())
        return None
    if isinstance(weight_cell, Mapping):
        return list(weight_cell.values())
    if isinstance(weight_cell, TEAM_TYPES):
        return list(weight_cell)
    if isinstance(weight_cell, str) and separator is not None:
        return weight_cell.split(separator)
    return [weight_cell]


def _make_team(
    table: TableFile, row: int, members: list[str], weights: Sequence[Any] | None
) -> Team:
    """Return the members with a positive weight; refuse repeated members and invalid weights."""
    if not members:
        return Team((), ())
    if len(set(members)) < len(members):
        raise table.error(f"the team {_shown_team(members)} has a member twice.", row)
    if weights is None:
        equal_shares = (1.0,) * len(members)
        return Team(tuple(sorted(members)), equal_shares)
    if len(weights) != len(members):
        raise table.error(
            f"the team {_shown_team(members)} has {len(members)} members, but {len(weights)} "
            "weights; pass one weight for each member, in the same order.",
            row,
        )
    members_and_shares = []
    for member, weight in zip(members, weights, strict=True):
        share = finite_number(as_text(weight))
        if share is None or share < 0:
            raise table.error(
                f"the weight of {shown_value(member)} in its team is {weight!r}, expected a number "
                "from 0, such as the share of the time that the member played.",
                row,
            )
        if share > 0:
            members_and_shares.append((member, share))
    if not members_and_shares:
        team = _shown_team(members)
        raise table.error(f"no member of the team {team} has a positive weight.", row)
    names, shares = zip(*sorted(members_and_shares), strict=True)
    return Team(names, shares)


def _shown_team(members: Sequence[str]) -> str:
    return shown_value(JOINT.join(members))


class Sides(NamedTuple):
    """The two sides of comparisons: items, or teams over one list of teams and members.

    Attributes
    ----------
    first, second : ndarray of int, shape (n_rows,)
        Numbers of the teams; positions of the items if every team has one member.
    items : ndarray of shape (n_items,)
        Labels of the members, in increasing order.
    teams : Teams or None
        The teams; None if every team has one member with the weight 1.
    """

    first: Indices
    second: Indices
    items: NDArray[Any]
    teams: Teams | None


def join_teams(first: TeamColumn, second: TeamColumn) -> Sides:
    """Number the teams of both sides, and their members."""
    number_of_team: dict[Team, int] = {}  # the keys are the teams in the order of their numbers
    first_numbers = _number_teams(first, number_of_team)
    second_numbers = _number_teams(second, number_of_team)

    members = [member for team in number_of_team for member in team.members]
    shares = [share for team in number_of_team for share in team.shares]
    n_members = [len(team.members) for team in number_of_team]
    are_words = first.are_words or second.are_words
    items, item_of_member = _sorted_items(members, are_words)
    teams = Teams(
        team=np.repeat(np.arange(len(n_members)), n_members),
        item=item_of_member,
        share=np.array(shares, np.float64),
    )
    are_single_items = (teams.sizes == 1).all() and (teams.share == 1).all()
    if are_single_items:
        item_of_team = teams.item
        return Sides(item_of_team[first_numbers], item_of_team[second_numbers], items, teams=None)
    return Sides(first_numbers, second_numbers, items, teams)


def _number_teams(column: TeamColumn, number_of_team: dict[Team, int]) -> Indices:
    """Return the number of the team of each row; new teams are added to `number_of_team`."""
    # a team without a number gets the next one, in the dictionary of the caller
    distinct_codes, code_position = np.unique(column.codes, return_inverse=True)
    numbers = []
    for code in distinct_codes:
        team = column.teams[code]
        numbers.append(number_of_team.setdefault(team, len(number_of_team)))
    return np.array(numbers, np.intp)[code_position]


def _sorted_items(members: list[str], are_words: bool) -> tuple[NDArray[Any], Indices]:
    """Return the distinct labels in increasing order, and the position of each member in them."""
    names = list(dict.fromkeys(members))
    if are_words:
        labels = np.array(names, dtype=np.str_)
    else:
        labels = distinct_labels(names, canonical=True)  # integers if all are
    items, position_of_label = np.unique(labels, return_inverse=True)
    position_of_name = dict(zip(names, position_of_label.tolist(), strict=True))
    return items, np.array([position_of_name[name] for name in members], np.intp)
