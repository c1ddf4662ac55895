"""Which column of a table is the target, the group, the weight or a feature."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import chain
from typing import Any, TypeAlias

from rankwise.datasets.table_files import TableFile
from rankwise.datasets.vocabulary import finite_number, shown_value
from rankwise.formatting import join_words
from rankwise.validation import suggestion

Column: TypeAlias = str | int

TARGET_NAMES = ("y", "label", "relevance", "target", "score", "rating")

GROUP_NAMES = (  # without underscores and blanks
    *("group", "groups", "groupid", "qid", "query", "queryid"),
    *("user", "userid", "session", "sessionid"),
)

_PANDAS_INDEX = re.compile(r"(__index_level_\d+__)?")  # or no name

_LISTED = 30


def choose_columns(
    table: TableFile, asked: Mapping[str, Any], target_needed: bool = True
) -> tuple[dict[str, list[int]], list[int]]:
    """Positions of the columns with a role, and those of the features.

    `asked` has the parameters of `read_ranking` that name columns.

    Raises
    ------
    TableFormatError
        If the names do not say which column is meant; the message lists them.
    """
    names = table.names
    if len(names) > 1 and all(finite_number(n) is not None for n in names) and table.has_names:
        raise table.error(
            "the first line has only numbers, expected the names of the columns. Add a line of "
            "names on top of the file. Or pass header=False and name the columns by number."
        )
    for name, n in Counter(filter(None, names)).items():
        if n > 1:
            position_of(table, name, "features")  # says that it is there twice
    at: dict[str, list[int]] = {}
    for role, columns in asked.items():
        named = [columns] if isinstance(columns, (str, int)) else columns
        if named is None or (role in ("target", "group") and list(named) == ["auto"]):
            named = ()
        if role == "target" and not target_needed:
            named = [name for name in named if name in names or not isinstance(name, str)]
        at[role] = [position_of(table, column, role) for column in named]
    # groups may be dates
    taken = Counter(place for role, places in at.items() if role != "time" for place in places)
    for place, n in taken.items():
        if n > 1:
            problem = f"the column {shown_value(names[place])} is named for two things; choose one."
            raise table.error(problem)
    for role, usual in (("target", TARGET_NAMES), ("group", GROUP_NAMES)):
        if asked[role] in ("auto", ["auto"]):
            at[role] = _usual_columns(table, role, usual, set(taken))
    if asked["target"] == "auto" and target_needed and not at["target"]:
        problem = f"no column is called {', '.join(TARGET_NAMES[:-1])} or {TARGET_NAMES[-1]}."
        raise table.error(f"{problem} {_listing(table)}. Pass target= with the right one.")
    features, ignored = at.pop("features"), at.pop("ignore")
    if asked["features"] is None:
        used = {*ignored, *chain(*at.values())}
        free = (place for place in range(len(names)) if place not in used)
        features = [place for place in free if not _PANDAS_INDEX.fullmatch(names[place])]
        if not features:
            raise table.error(f"no column is left for the features. {_listing(table)}.")
    return {role: places for role, places in at.items() if places}, features


def position_of(table: Any, column: Column, role: str, hint: str = "") -> int:
    """Position of a column that is named, or numbered from 0, for a role.

    Raises the error of the table if it is not there, or twice; the message lists the columns, and
    ends with `hint`.
    """
    names = table.names
    if isinstance(column, str) and names.count(column) == 1:
        return int(names.index(column))
    if not isinstance(column, (str, bool)) and 0 <= column < len(names):
        return int(column)
    if column in names:
        raise table.error(
            f"the column {shown_value(str(column))} is there twice. Rename one of them."
        )
    guess = suggestion(column, names).strip()
    what = shown_value(column) if isinstance(column, str) else repr(column)
    raise table.error(
        f"there is no column {what} for the {role}{'; ' + guess if guess else '.'} "
        f"{_listing(table)}. Pass {role}= with the right one.{hint}"
    )


def _listing(table: Any) -> str:
    if len(table.names) == 1:
        return (
            f"The only column is {shown_value(table.names[0])}; delimiter= sets what separates "
            "several columns"
        )
    return f"The columns are {join_words(map(shown_value, table.names), _LISTED)}"


def _usual_columns(table: TableFile, role: str, usual: Sequence[str], taken: set[int]) -> list[int]:
    """The column with one of the usual names, or none."""
    words = [re.sub("[ _-]", "", name).lower() for name in table.names]
    places = [at for at, word in enumerate(words) if at not in taken and word in usual]
    if len(places) > 1:
        candidates = ", ".join(shown_value(table.names[at]) for at in places)
        raise table.error(
            f"several columns may be the {role}: {candidates}. Pass {role}= with the right one. "
            "Leave the others out with ignore= unless they are features."
        )
    return places
