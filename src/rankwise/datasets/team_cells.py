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


def plain_list(column: Any) -> Any:
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
    types = set(map(type, column))  # of a million cells a few
    return any(issubclass(kind, TEAM_TYPES) for kind in types)


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
    codes: list[int] = []
    code_of: dict[Team, int] = {}
    shares = [None] * len(column)
    if weights is not None:
        shares = _cells(weights)
    code_of_text: dict[str, int] = {}
    for row, cell in enumerate(_cells(column)):
        is_repeated = weights is None and isinstance(cell, str) and cell in code_of_text
        if is_repeated:
            codes.append(code_of_text[cell])
            continue
        members = _members(table, row, cell, separator)
        team = _make_team(table, row, members, _shares(cell, shares[row], separator))
        code = code_of.setdefault(team, len(code_of))
        codes.append(code)
        if isinstance(cell, str):
            code_of_text[cell] = code
    are_words = isinstance(table, FrameTable) and any(map(_is_word, _cells(column)))
    return TeamColumn(np.array(codes, np.intp), list(code_of), are_words)


def _cells(column: Any) -> list[Any]:
    """Cells of a column as a list."""
    if isinstance(column, list):
        return column
    codes, texts = distinct_cells(column)
    return [texts[code] for code in codes.tolist()]


def _is_word(cell: Any) -> bool:
    """Whether a cell of a frame is, or contains, a string."""
    if isinstance(cell, TEAM_TYPES):
        return any(isinstance(member, str) for member in cell)
    return isinstance(cell, str)


def _members(table: TableFile, row: int, cell: Any, separator: str | None) -> list[str]:
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
        raise table.error(f"the team {_shown(members)} has a member without a name.", row)
    return members


def _shares(cell: Any, weights: Any, separator: str | None) -> list[Any] | None:
    """Weights of the members as they are written; None if every member has the weight 1."""
    if weights is None:
        if isinstance(cell, Mapping):
            return list(cell.values())
        return None
    if isinstance(weights, Mapping):
        return list(weights.values())
    if isinstance(weights, TEAM_TYPES):
        return list(weights)
    if isinstance(weights, str) and separator is not None:
        return weights.split(separator)
    return [weights]


def _make_team(
    table: TableFile, row: int, members: list[str], weights: Sequence[Any] | None
) -> Team:
    """Return the members with a positive weight; refuse repeated members and invalid weights."""
    if not members:
        return Team((), ())
    if len(set(members)) < len(members):
        raise table.error(f"the team {_shown(members)} has a member twice.", row)
    if weights is None:
        return Team(tuple(sorted(members)), (1.0,) * len(members))
    if len(weights) != len(members):
        raise table.error(
            f"the team {_shown(members)} has {len(members)} members, but {len(weights)} weights; "
            "pass one weight for each member, in the same order.",
            row,
        )
    numbers = [finite_number(as_text(weight)) for weight in weights]
    positive = []
    for member, number, weight in zip(members, numbers, weights, strict=True):
        if number is None or number < 0:
            raise table.error(
                f"the weight of {shown_value(member)} in its team is {weight!r}, expected a number "
                "from 0, such as the share of the time that the member played.",
                row,
            )
        if number > 0:
            positive.append((member, number))
    if not positive:
        raise table.error(f"no member of the team {_shown(members)} has a positive weight.", row)
    names, shares = zip(*sorted(positive), strict=True)
    return Team(names, shares)


def _shown(members: Sequence[str]) -> str:
    return shown_value(JOINT.join(members))


class JoinedTeams(NamedTuple):
    """Two columns of teams over one list of teams and members.

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


def join_teams(first: TeamColumn, second: TeamColumn) -> JoinedTeams:
    """Number the teams of both sides, and their members."""
    number_of: dict[Team, int] = {}
    numbers = []
    for column in (first, second):
        used, positions = np.unique(column.codes, return_inverse=True)
        used_numbers = [number_of.setdefault(column.teams[k], len(number_of)) for k in used]
        numbers.append(np.array(used_numbers, np.intp)[positions])
    code_of: dict[str, int] = {}
    member_codes = [
        code_of.setdefault(member, len(code_of)) for team in number_of for member in team.members
    ]
    labels = np.array(list(code_of), dtype=np.str_)
    if not (first.are_words or second.are_words):
        labels = distinct_labels(list(code_of), canonical=True)
    items, position = np.unique(labels, return_inverse=True)
    sizes = [len(team.members) for team in number_of]
    teams = Teams(
        team=np.repeat(np.arange(len(sizes)), sizes),
        item=position[member_codes].astype(np.intp),
        share=np.array([share for team in number_of for share in team.shares], np.float64),
    )
    if (teams.sizes == 1).all() and (teams.share == 1).all():
        return JoinedTeams(teams.item[numbers[0]], teams.item[numbers[1]], items, None)
    return JoinedTeams(numbers[0], numbers[1], items, teams)
