"""Which column of a table is the target, which the group, which are features."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

from rankwise.datasets.labels import finite_number, show
from rankwise.datasets.table_files import OpenTable
from rankwise.errors import TableFormatError
from rankwise.options import suggestion

Column = str | int

TARGET_NAMES = ("y", "label", "relevance", "target", "score", "rating")
GROUP_NAMES = (  # without underscores and blanks
    *("group", "groups", "groupid", "qid", "query", "queryid"),
    *("user", "userid", "session", "sessionid"),
)

_PANDAS_INDEX = re.compile(r"__index_level_\d+__")
_LISTED = 30


class ColumnOptions(NamedTuple):
    """What the caller of `read_table` says about the columns."""

    target: Column | None = "auto"
    group: Column | None = "auto"
    id: Column | None = None
    ignore: Sequence[Column] = ()
    features: Sequence[Column] | None = None
    target_needed: bool = True
    weight: Column | None = None
    text: Sequence[Column] = ()
    numeric: Sequence[Column] = ()


class TableColumns(NamedTuple):
    """Names of all columns, and the positions of those that are used."""

    names: list[str]
    target: int | None
    group: int | None
    id: int | None
    features: list[int]
    weight: int | None = None
    text: Sequence[int] = ()
    numeric: Sequence[int] = ()

    @property
    def feature_names(self) -> list[str]:
        """Names of the features, in the order of the columns of X."""
        return [self.names[position] for position in self.features]


def choose_columns(table: OpenTable, options: ColumnOptions) -> TableColumns:
    """Give every column of a table its role.

    Raises
    ------
    TableFormatError
        If the names do not say which column is meant; the message lists them.
    """
    if table.has_names:
        _check_names(table)
    given = {"ignore": options.ignore, "features": options.features or ()}
    given |= {"text": options.text, "numeric": options.numeric}
    for role, columns in given.items():
        if isinstance(columns, (str, int)):
            raise ValueError(f"{role} is {columns!r}; pass a list of column names.")
    once = {name: at for at, name in enumerate(table.names) if name and table.has_names}
    lists = {
        role: [once[c] if c in once else position_of(table, c, role) for c in columns]
        for role, columns in given.items()
    }
    named = _named_columns(table, options)
    _check_one_role_each(table, named, lists)
    taken = {*lists["ignore"], *lists["features"], *named.values()}
    target, group = named.get("target"), named.get("group")
    if options.target == "auto":
        target = _found(table, "target", TARGET_NAMES, taken)
        if target is None and options.target_needed:
            problem = f"no column is called {', '.join(TARGET_NAMES[:-1])} or {TARGET_NAMES[-1]}."
            _refuse(table, f"{problem} {_listing(table)}. Pass target= with the right one.")
    if options.group == "auto":
        group = _found(table, "group", GROUP_NAMES, taken)
    features = lists["features"]
    if options.features is None:
        used = {*taken, target, group}
        free = (at for at in range(len(table.names)) if at not in used)
        features = [at for at in free if not _PANDAS_INDEX.fullmatch(table.names[at])]
        if not features:
            problem = f"no column is left for the features. {_listing(table)}"
            _refuse(table, f"{problem}. Pass delimiter= if these are not the columns.")
    _check_named(table, features)
    return TableColumns(
        table.names,
        target,
        group,
        named.get("id"),
        features,
        named.get("weight"),
        lists["text"],
        lists["numeric"],
    )


def position_of(table: OpenTable, column: Column, role: str, hint: str = "") -> int:
    """Position of a column that is named, or numbered from 0, for a role.

    Raises
    ------
    TableFormatError
        If it is not there, or twice; the message lists the columns, and ends with `hint`.
    """
    names = table.names
    if isinstance(column, str) and names.count(column) == 1:
        return names.index(column)
    if not isinstance(column, (str, bool)) and 0 <= column < len(names):
        return int(column)
    if column in names:
        problem = f"the column {column!r} is there twice. {_listing(table)}; rename one of them."
    else:
        guess = suggestion(column, names).strip()
        problem = (
            f"there is no column {column!r} {'to' if role == 'ignore' else 'for the'} {role}"
            f"{'; ' + guess if guess else '.'} {_listing(table)}. Pass {role}= with the right one. "
            f"Pass delimiter= if these are not the columns.{hint}"
        )
    raise TableFormatError(table.path, table.line, problem)


def _refuse(table: OpenTable, problem: str) -> None:
    raise TableFormatError(table.path, table.line, problem)


def _check_names(table: OpenTable) -> None:
    names = table.names
    if len(names) > 1 and all(finite_number(name) is not None for name in names):
        _refuse(
            table,
            "the first line has only numbers, expected the names of the columns. Add a line of "
            "names on top of the file. Or pass header=False and name the columns by number.",
        )
    for name, n in Counter(filter(None, names)).items():
        if n > 1:
            position_of(table, name, "features")


def _listing(table: OpenTable) -> str:
    listed = ", ".join(show(name) for name in table.names[:_LISTED])
    more = f" and {len(table.names) - _LISTED} more" if len(table.names) > _LISTED else ""
    return f"The columns are {listed}{more}"


def _named_columns(table: OpenTable, options: ColumnOptions) -> dict[str, int]:
    """Positions of the columns that the caller names for a role of their own."""
    named = {}
    for role in ("target", "group", "id", "weight"):
        column = getattr(options, role)
        is_optional = role == "target" and not options.target_needed and isinstance(column, str)
        if (
            column is not None
            and column != "auto"
            and not (is_optional and column not in table.names)
        ):
            named[role] = position_of(table, column, role)
    return named


def _check_one_role_each(
    table: OpenTable, named: dict[str, int], lists: dict[str, list[int]]
) -> None:
    roles = list(named.items())
    roles += [("ignore", at) for at in dict.fromkeys(lists["ignore"])]
    roles += [("features", at) for at in lists["features"]]
    role_of: dict[int, str] = {}
    for role, at in roles:
        if at in role_of:
            _refuse(
                table,
                f"the column {show(table.names[at])} is named for {role_of[at]} and for {role}; "
                "it can be one thing only.",
            )
        role_of[at] = role


def _found(table: OpenTable, role: str, usual: tuple[str, ...], taken: set[int]) -> int | None:
    """The column with one of the usual names, if there is one."""
    words = [re.sub("[ _-]", "", name).lower() for name in table.names]
    found = [at for at, word in enumerate(words) if at not in taken and word in usual]
    if len(found) > 1:
        candidates = ", ".join(show(table.names[at]) for at in found)
        _refuse(
            table,
            f"several columns may be the {role}: {candidates}. Pass {role}= with the "
            "right one. Leave the others out with ignore= unless they are features.",
        )
    return found[0] if found else None


def _check_named(table: OpenTable, features: list[int]) -> None:
    for at in features:
        if not table.names[at]:
            _refuse(
                table,
                f"column {at}, counted from 0, has no name. If it numbers the rows, as pandas "
                f"writes them, leave it out with ignore=[{at}]. Else name it.",
            )
