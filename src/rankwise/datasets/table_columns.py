"""Which column of a table is the target, which the group, which are features."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

from rankwise.datasets.labels import finite_number, show
from rankwise.datasets.table_files import OpenTable
from rankwise.errors import TableFormatError

__all__ = ["Column", "TableColumns", "Wishes", "choose_columns"]

Column = str | int

TARGET_NAMES = ("y", "label", "relevance", "target", "score")
GROUP_NAMES = (
    *("group", "groups", "group_id", "qid", "query", "query_id"),
    *("user", "user_id", "session", "session_id"),
)

_PANDAS_INDEX = re.compile(r"__index_level_\d+__")
_LISTED = 30


class Wishes(NamedTuple):
    """What the caller of `read_table` says about the columns."""

    target: Column | None = "auto"
    group: Column | None = "auto"
    id: Column | None = None
    ignore: Sequence[Column] = ()
    features: Sequence[Column] | None = None
    target_needed: bool = True
    weight: Column | None = None


class TableColumns(NamedTuple):
    """Names of all columns, and the positions of those that are used."""

    names: list[str]
    target: int | None
    group: int | None
    id: int | None
    features: list[int]
    weight: int | None = None

    @property
    def feature_names(self) -> list[str]:
        """Names of the features, in the order of the columns of X."""
        return [self.names[position] for position in self.features]


def choose_columns(table: OpenTable, wishes: Wishes) -> TableColumns:
    """Give every column of a table its role.

    Raises
    ------
    TableFormatError
        If the names do not say which column is meant; the message lists them.
    """
    try:
        return _choose(table.names, wishes, table.has_names)
    except _Unclear as unclear:
        raise TableFormatError(table.path, table.line, str(unclear)) from None


class _Unclear(Exception):
    """What is wrong with the column names, in words for the user."""


def _choose(names: list[str], wishes: Wishes, has_names: bool) -> TableColumns:
    if has_names:
        _check_names(names)
    ignored = [_position(names, column, "ignore") for column in _several(wishes.ignore, "ignore")]
    given = wishes.features
    features = (
        None
        if given is None
        else [_position(names, column, "features") for column in _several(given, "features")]
    )
    named = {
        "target": _named_target(names, wishes),
        "group": _named(names, wishes.group, "group"),
        "id": _named(names, wishes.id, "id"),
        "weight": _named(names, wishes.weight, "weight"),
    }
    _check_one_role_each(names, named, ignored, features)
    taken = {*ignored, *(features or ()), *(at for at in named.values() if at is not None)}
    target, group = named["target"], named["group"]
    if wishes.target == "auto":
        target = _found(names, "target", TARGET_NAMES, taken)
        if target is None and wishes.target_needed:
            raise _Unclear(
                "no column is called y, label, relevance, target or score. "
                f"{_listing(names)}; pass target= (--target) with the right one."
            )
    if wishes.group == "auto":
        group = _found(names, "group", GROUP_NAMES, taken)
    used = {*ignored, target, group, named["id"], named["weight"]}
    if features is None:
        features = [at for at in range(len(names)) if at not in used]
        features = [at for at in features if not _PANDAS_INDEX.fullmatch(names[at])]
    if given is None or features:
        _check_features(names, features)
    return TableColumns(names, target, group, named["id"], features, named["weight"])


def _several(columns: Sequence[Column], option: str) -> Sequence[Column]:
    if isinstance(columns, (str, int)):
        raise ValueError(f"{option} is {columns!r}; pass a list of column names.")
    return columns


def _check_names(names: list[str]) -> None:
    if len(names) > 1 and all(finite_number(name) is not None for name in names):
        raise _Unclear(
            "the first line has only numbers, expected the names of the columns. Add a line of "
            "names on top of the file, or pass header=False and name the columns by number."
        )
    repeated = [name for at, name in enumerate(names) if name and name in names[:at]]
    if repeated:
        raise _Unclear(
            f"the column {show(repeated[0])} is there twice. {_listing(names)}; rename one of them."
        )


def _listing(names: list[str]) -> str:
    listed = ", ".join(show(name) for name in names[:_LISTED])
    more = f" and {len(names) - _LISTED} more" if len(names) > _LISTED else ""
    return f"The columns are {listed}{more}"


def _position(names: list[str], column: Column, option: str) -> int:
    if isinstance(column, str):
        if column in names:
            return names.index(column)
    elif not isinstance(column, bool) and 0 <= column < len(names):
        return int(column)
    raise _Unclear(
        f"there is no column {column!r}. {_listing(names)}; "
        f"pass {option}= (--{option}) with names of these, or delimiter= if they are not the "
        "columns."
    )


def _named(names: list[str], column: Column | None, option: str) -> int | None:
    return None if column is None or column == "auto" else _position(names, column, option)


def _named_target(names: list[str], wishes: Wishes) -> int | None:
    if not wishes.target_needed and isinstance(wishes.target, str) and wishes.target not in names:
        return None
    return _named(names, wishes.target, "target")


def _check_one_role_each(
    names: list[str],
    named: dict[str, int | None],
    ignored: list[int],
    features: list[int] | None,
) -> None:
    roles = [(role, at) for role, at in named.items() if at is not None]
    roles += [("ignore", at) for at in dict.fromkeys(ignored)]
    roles += [("features", at) for at in features or ()]
    role_of: dict[int, str] = {}
    for role, at in roles:
        if at in role_of:
            raise _Unclear(
                f"the column {show(names[at])} is named for {role_of[at]} and for {role}; "
                "it can be one thing only."
            )
        role_of[at] = role


def _found(names: list[str], role: str, usual: tuple[str, ...], taken: set[int]) -> int | None:
    found = [at for at, name in enumerate(names) if at not in taken and name.lower() in usual]
    if len(found) > 1:
        candidates = ", ".join(show(names[at]) for at in found)
        raise _Unclear(
            f"several columns may be the {role}: {candidates}. Pass {role}= (--{role}) with the "
            "right one, and leave the others out with ignore= (--ignore) unless they are features."
        )
    return found[0] if found else None


def _check_features(names: list[str], features: list[int]) -> None:
    if not features:
        raise _Unclear(
            f"no column is left for the features. {_listing(names)}; "
            "pass delimiter= (--delimiter) if these are not the columns."
        )
    unnamed = [at for at in features if not names[at]]
    if unnamed:
        raise _Unclear(
            f"column {unnamed[0]}, counted from 0, has no name. If it numbers the rows, as pandas "
            f"writes them, leave it out with ignore=[{unnamed[0]}]; else name it."
        )
