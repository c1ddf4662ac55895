"""Roles of the columns of a table: target, group, weight or feature."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import chain
from typing import TypeAlias

from rankwise.datasets.table_files import TableFile
from rankwise.datasets.vocabulary import finite_number, shown_value
from rankwise.formatting import join_words
from rankwise.validation import suggestion

Column: TypeAlias = str | int  # name, or position counted from 0
ColumnArgument: TypeAlias = Column | Sequence[Column] | None

TARGET_NAMES = ("y", "label", "relevance", "target", "score", "rating")

GROUP_NAMES = (  # without underscores and blanks
    "group",
    "groups",
    "groupid",
    "qid",
    "query",
    "queryid",
    "user",
    "userid",
    "session",
    "sessionid",
)

_PANDAS_INDEX = re.compile(r"(__index_level_\d+__)?")  # or no name

MAX_LISTED_COLUMNS = 30  # in a message


def choose_columns(
    table: TableFile, arguments: Mapping[str, ColumnArgument], target_needed: bool = True
) -> tuple[dict[str, list[int]], list[int]]:
    """Find the columns with a role and the features.

    Parameters
    ----------
    table : TableFile
        The table.
    arguments : mapping
        The arguments of `read_ranking` that name columns.
    target_needed : bool, default=True
        Whether a table without target is an error.

    Returns
    -------
    roles : dict from str to list of int
        Positions of the columns with a role.
    features : list of int
        Positions of the features.

    Raises
    ------
    TableFormatError
        If the names are ambiguous; the message lists them.
    """
    _check_names(table)
    positions_of_role: dict[str, list[int]] = {}
    for role, argument in arguments.items():
        columns = _columns_in_argument(role, argument)
        if role == "target" and not target_needed:
            columns = [column for column in columns if _may_exist(table, column)]
        positions_of_role[role] = [position_of(table, column, role) for column in columns]
    _refuse_columns_with_two_roles(table, positions_of_role)
    _add_columns_with_usual_names(table, arguments, positions_of_role)
    if arguments["target"] == "auto" and target_needed and not positions_of_role["target"]:
        problem = f"no column is called {', '.join(TARGET_NAMES[:-1])} or {TARGET_NAMES[-1]}."
        raise table.error(f"{problem} {_list_of_columns(table)}. Pass target= with the right one.")

    features = positions_of_role.pop("features")
    ignored = positions_of_role.pop("ignore")
    if arguments["features"] is None:
        positions_with_role = {*ignored, *chain(*positions_of_role.values())}
        features = _columns_without_role(table, positions_with_role)
    roles = {role: columns for role, columns in positions_of_role.items() if columns}
    return roles, features


def _add_columns_with_usual_names(
    table: TableFile,
    arguments: Mapping[str, ColumnArgument],
    positions_of_role: dict[str, list[int]],
) -> None:
    """Add the target and the group to the roles, by their usual names, if they are "auto"."""
    positions_with_role = set()
    for role, positions in positions_of_role.items():
        if role != "time":  # the column of times may also be that of groups
            positions_with_role.update(positions)
    for role, usual_names in {"target": TARGET_NAMES, "group": GROUP_NAMES}.items():
        if arguments[role] in ("auto", ["auto"]):
            positions_of_role[role] = _columns_with_usual_name(
                table, role, usual_names, positions_with_role
            )


def _check_names(table: TableFile) -> None:
    """Refuse a header of numbers, and names that occur twice."""
    names = table.names
    are_numbers = all(finite_number(name) is not None for name in names)
    if len(names) > 1 and are_numbers and table.has_names:
        raise table.error(
            "the first line has only numbers, expected the names of the columns. Add a line of "
            "names on top of the file. Or pass header=False and name the columns by number."
        )
    for name, n_columns in Counter(filter(None, names)).items():
        if n_columns > 1:
            raise _repeated_name(table, name)


def _columns_in_argument(role: str, argument: ColumnArgument) -> list[Column]:
    """The columns that an argument names; "auto" names none."""
    if argument is None:
        return []
    if isinstance(argument, (str, int)):
        columns = [argument]
    else:
        columns = list(argument)
    if role in ("target", "group") and columns == ["auto"]:
        return []
    return columns


def _may_exist(table: TableFile, column: Column) -> bool:
    """Whether a column is a position or the name of a column of the table."""
    return not isinstance(column, str) or column in table.names


def _refuse_columns_with_two_roles(
    table: TableFile, positions_of_role: Mapping[str, list[int]]
) -> None:
    """Raise an error about a column with two roles; times may also be the groups."""
    n_roles_of_position: Counter[int] = Counter()
    for role, positions in positions_of_role.items():
        if role != "time":
            n_roles_of_position.update(positions)
    for position, n_roles in n_roles_of_position.items():
        if n_roles > 1:
            name = shown_value(table.names[position])
            raise table.error(f"the column {name} has two roles; choose one.")


def _columns_without_role(table: TableFile, positions_with_role: set[int]) -> list[int]:
    """Positions of the columns without a role, except an index that pandas wrote."""
    positions = []
    for position, name in enumerate(table.names):
        is_pandas_index = _PANDAS_INDEX.fullmatch(name) is not None
        if position not in positions_with_role and not is_pandas_index:
            positions.append(position)
    if not positions:
        raise table.error(f"no column is left for the features. {_list_of_columns(table)}.")
    return positions


def _repeated_name(table: TableFile, name: str) -> Exception:
    return table.error(f"the column {shown_value(name)} occurs twice. Rename one of them.")


def position_of(table: TableFile, column: Column, role: str, hint: str = "") -> int:
    """Position of a column for a role.

    Parameters
    ----------
    table : TableFile
        The table.
    column : str or int
        Name, or position counted from 0.
    role : str
        The argument that names the column.
    hint : str, default=""
        End of the message if there is no such column.

    Raises
    ------
    TableFormatError or ValueError
        The error of the table, if no column has the name, or two have it.
    """
    names = table.names
    if isinstance(column, str) and names.count(column) == 1:
        return names.index(column)
    # True and False are integers in Python, but no positions.
    if not isinstance(column, (str, bool)) and 0 <= column < len(names):
        return int(column)
    if column in names:
        raise _repeated_name(table, str(column))
    name_or_position = repr(column)
    if isinstance(column, str):
        name_or_position = shown_value(column)
    problem = f"there is no column {name_or_position} for the {role}{suggestion(column, names)}"
    raise table.error(
        f"{problem} {_list_of_columns(table)}. Pass {role}= with the right one.{hint}"
    )


def _list_of_columns(table: TableFile) -> str:
    """The names of the columns as a sentence without its point."""
    if len(table.names) == 1:
        return (
            f"The only column is {shown_value(table.names[0])}; delimiter= sets what separates "
            "several columns"
        )
    return f"The columns are {join_words(map(shown_value, table.names), MAX_LISTED_COLUMNS)}"


def _columns_with_usual_name(
    table: TableFile, role: str, usual_names: Sequence[str], positions_with_role: set[int]
) -> list[int]:
    """The column with one of the usual names that has no other role, or none."""
    positions = []
    for position, name in enumerate(table.names):
        plain_name = re.sub("[ _-]", "", name).lower()
        if position not in positions_with_role and plain_name in usual_names:
            positions.append(position)
    if len(positions) > 1:
        candidates = ", ".join(shown_value(table.names[position]) for position in positions)
        raise table.error(
            f"several columns may be the {role}: {candidates}. Pass {role}= with the right one. "
            "Leave the others out with ignore= unless they are features."
        )
    return positions
