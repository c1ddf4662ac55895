"""Columns of a table: which has which role, and what stands in them as labels or numbers."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import suppress
from itertools import chain
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from rankwise.arrays import Array, Indices
from rankwise.datasets.files import import_arrow
from rankwise.datasets.tables import Table
from rankwise.datasets.times import in_days, read_times
from rankwise.datasets.words import (
    GAPS,
    MISSING,
    as_text,
    distinct_labels,
    finite_number,
    show,
)
from rankwise.errors import warn_user
from rankwise.inputs import suggestion
from rankwise.text_tables import listed

Column: TypeAlias = str | int

TARGET_NAMES = ("y", "label", "relevance", "target", "score", "rating")
GROUP_NAMES = (  # without underscores and blanks
    *("group", "groups", "groupid", "qid", "query", "queryid"),
    *("user", "userid", "session", "sessionid"),
)

_PANDAS_INDEX = re.compile(r"(__index_level_\d+__)?")  # or no name
_LISTED = 30
_EXACT = 2**53  # whole numbers up to here are floats
_HEAD = 1000  # cells that are tried first
_MARK = "[%$€£¥₹]|[A-Z]{3}"
_UNIT = "[a-zµ°][a-zA-Z²³/]{0,3}"  # km, m², °C
_REMEDY = {
    "feature": "Fill in gaps, write words as numbers, or leave the column out with ignore=.",
    "target": "Write numbers for words, the larger the better. Pass target= for another column.",
}
_MOST_LEVELS = 20  # words of scores that a message lists


# Roles ------------------------------------------------------------------------------------------


def choose_columns(
    table: Table, asked: Mapping[str, Any], target_needed: bool = True
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
            problem = f"the column {show(names[place])} is named for two things; choose one."
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
        raise table.error(f"the column {show(str(column))} is there twice. Rename one of them.")
    guess = suggestion(column, names).strip()
    what = show(column) if isinstance(column, str) else repr(column)
    raise table.error(
        f"there is no column {what} for the {role}{'; ' + guess if guess else '.'} "
        f"{_listing(table)}. Pass {role}= with the right one.{hint}"
    )


def _listing(table: Any) -> str:
    if len(table.names) == 1:
        return f"The only column is {show(table.names[0])}; delimiter= says what is between several"
    return f"The columns are {listed(map(show, table.names), _LISTED)}"


def _usual_columns(table: Table, role: str, usual: Sequence[str], taken: set[int]) -> list[int]:
    """The column with one of the usual names, or none."""
    words = [re.sub("[ _-]", "", name).lower() for name in table.names]
    places = [at for at, word in enumerate(words) if at not in taken and word in usual]
    if len(places) > 1:
        candidates = ", ".join(show(table.names[at]) for at in places)
        raise table.error(
            f"several columns may be the {role}: {candidates}. Pass {role}= with the right one. "
            "Leave the others out with ignore= unless they are features."
        )
    return places


# Labels -----------------------------------------------------------------------------------------


def distinct_cells(column: Any) -> tuple[Indices, list[str]]:
    """Which distinct cell each row has, and these as text without surrounding blanks.

    The column is one of Arrow, or a list; a gap is the empty text.
    """
    if hasattr(column, "combine_chunks"):
        arrow = import_arrow()
        if arrow.types.is_nested(column.type):
            raise ValueError(f"a column has the type {column.type}, expected numbers or text.")
        if not is_number(column.type):
            column = column.cast(arrow.string(), safe=False)
        encoded = column.combine_chunks().dictionary_encode(null_encoding="encode")
        if isinstance(encoded, arrow.ChunkedArray):
            encoded = encoded.combine_chunks()
        values, numbers = encoded.dictionary.to_pylist(), encoded.indices
        code_of_row = numbers.to_numpy(zero_copy_only=False)
    else:
        place: dict[Any, int] = {}
        code_of_row = np.array([place.setdefault(v, len(place)) for v in column], dtype=np.intp)
        values = list(place)
    spelled = [as_text(value) for value in values]
    place_of = {text: k for k, text in enumerate(dict.fromkeys(spelled))}
    codes = np.array([place_of[text] for text in spelled], dtype=np.intp)
    return codes[code_of_row], list(place_of)


def label_column(column: Any) -> NDArray[Any]:
    """One label per row: int64 if all are whole numbers, else strings; a gap is empty."""
    types = import_arrow().types
    is_whole = types.is_integer(column.type) and not types.is_uint64(column.type)
    if is_whole and not column.null_count:
        labels: NDArray[Any] = column.to_numpy().astype(np.int64, copy=False)
        return labels
    codes, texts = distinct_cells(column)
    return distinct_labels(texts, canonical=True)[codes]


def joined_labels(columns: Sequence[Any]) -> Any:
    """One label for each combination of cells, a gap where one of them is one."""
    cells = []
    for column in columns:
        codes, texts = distinct_cells(column)
        cells.append([texts[code].replace("/", "//") for code in codes])
    rows = zip(*cells, strict=True)
    return import_arrow().chunked_array([[" / ".join(row) if all(row) else None for row in rows]])


def places_of_words(table: Table, at: int, column: Any, words: Sequence[str]) -> Any:
    """The place of each word in an order, counted from 0; an unknown word is refused."""
    arrow = import_arrow()
    place: dict[str, int | None] = {word.lower(): k for k, word in enumerate(words)}
    place |= dict.fromkeys((MISSING | GAPS) - place.keys())
    codes, texts = distinct_cells(column)
    unknown = [k for k, text in enumerate(texts) if text.lower() not in place]
    if unknown:
        problem = f"column {show(table.names[at])} is {listed(show(texts[k]) for k in unknown)},"
        row = int(np.isin(codes, unknown).argmax())
        raise table.error(f"{problem} expected one of {', '.join(words)}.", row)
    places = arrow.array([place[text.lower()] for text in texts], arrow.float64())
    return arrow.chunked_array([places.take(arrow.array(codes))])


def complete_rows(table: Any, has_gap: dict[str, NDArray[np.bool_]]) -> Indices | None:
    """Numbers of the rows without gaps, None if these are all; the others are warned of.

    Raises the error of the table if no row is left.
    """
    missing = {role: int(gaps.sum()) for role, gaps in has_gap.items() if gaps.any()}
    if not missing:
        return None
    is_complete = ~np.any(list(has_gap.values()), axis=0)
    lacking = ", ".join(f"{n:,} without {role}" for role, n in missing.items())
    n_left = len(is_complete) - int(is_complete.sum())
    if not is_complete.any():
        raise table.error(f"no row is complete: {lacking}. Check the names of the columns.")
    warn_user(
        f"{table.path}: {n_left:,} of {len(is_complete):,} rows are left out: {lacking}.",
    )
    return np.flatnonzero(is_complete)


# Numbers ----------------------------------------------------------------------------------------


def is_number(kind: Any) -> bool:
    """Whether a type of Arrow is one of numbers."""
    types = import_arrow().types
    return bool(types.is_integer(kind) or types.is_floating(kind))


def is_text(column: Any) -> bool:
    """Whether a column of Arrow has texts."""
    types = import_arrow().types
    return bool(types.is_string(column.type) or types.is_large_string(column.type))


def column_numbers(table: Table, at: int, column: Any, role: str) -> Array:
    """A column as float64, NaN where there is nothing; infinite numbers are refused."""
    numbers: Array = number_column(table, at, column, role).cast("double", safe=False).to_numpy()
    refuse_first(table, at, column, np.isinf(numbers), role)
    return numbers + 0.0  # minus zero is zero


def number_column(table: Table, at: int, column: Any, role: str) -> Any:
    """The column itself if it has numbers, else the numbers that its cells spell."""
    types = import_arrow().types
    if is_number(column.type):
        return column
    if types.is_boolean(column.type) or types.is_null(column.type):
        return column.cast("double")
    first_bad: int | None = 0
    if is_text(column):
        numbers, first_bad = spelled_numbers(column, table.decimal, table.thousands)
        if first_bad is None:
            return numbers
    raise _cell_error(table, first_bad or 0, at, column, role)


def column_matrix(table: Table, features: Sequence[int], columns: dict[int, Any]) -> Array:
    """The features as one array, stored by columns."""
    X = np.empty((len(next(iter(columns.values()))), len(features)), order="F")
    for k, at in enumerate(features):
        numbers = number_column(table, at, columns[at], "feature")
        np.add(numbers.to_numpy(), 0.0, out=X[:, k])  # minus zero is zero
        if not max(X[:, k].max(), -X[:, k].min()) < _EXACT:  # or NaN
            _check_exact(table, at, numbers)
            refuse_first(table, at, columns[at], ~np.isfinite(X[:, k]), "feature")
    return X


def _check_exact(table: Table, at: int, column: Any) -> None:
    """Refuse whole numbers that floats do not have: an identifier would become another one."""
    types = import_arrow().types
    if not types.is_integer(column.type):  # a text of more than 63 bits is read as floats
        column = table.read([at], [])[at]
    if not (types.is_integer(column.type) or is_text(column)):
        return
    for row, cell in enumerate(column.to_pylist()):
        text = str(cell).strip().removeprefix("-")
        value = int(text) if text.isdecimal() and len(text) < 300 else 0
        if int(float(value)) != value:
            raise table.error(
                f"column {show(table.names[at])} is {cell}, which a float would round. Leave "
                "it out with ignore= if it is an identifier. Or pass it as id=.",
                row,
            )


def column_times(table: Table, at: int, column: Any) -> Array:
    """A column of dates as days since 1970, or of numbers as they are; NaN where there is none."""
    codes, texts = distinct_cells(column)
    known = np.flatnonzero([text.lower() not in MISSING for text in texts])

    def error(k: int, problem: str) -> Exception:
        return table.error(problem, int((codes == known[k]).argmax()))

    days = np.full(len(texts), np.nan)
    days[known] = in_days(read_times([texts[k] for k in known], error))
    return days[codes]


def refuse_first(table: Table, at: int, column: Any, is_bad: NDArray[np.bool_], role: str) -> None:
    """Raise an error about the first bad row of a column, if there is one."""
    if is_bad.any():
        raise _cell_error(table, int(is_bad.argmax()), at, column, role)


def _cell_error(table: Table, row: int, at: int, column: Any, role: str) -> Exception:
    cell = show(as_text(column[row].as_py()).replace("\n", " "))
    name = show(table.names[at])
    problem = f"the {role}, column {name}, is {cell}, expected a finite number."
    remedy = _REMEDY.get(role, "")
    levels = _levels(column) if role == "target" else []
    if levels:
        order = ", ".join(levels)
        remedy = (
            f"Pass the order of the words with the worst first, such as levels=({order}). Pass "
            "target= for another column."
        )
    return table.error(f"{problem} {remedy}".strip(), row)


def _levels(column: Any) -> list[str]:
    """The words of a column of scores in alphabetical order; none if it has numbers or too many."""
    if not is_text(column):
        return []
    texts = distinct_cells(column)[1]
    words = sorted(text for text in texts if text.lower() not in MISSING | GAPS)
    has_numbers = any(finite_number(word) is not None for word in words)
    is_list = 2 <= len(words) <= _MOST_LEVELS and not has_numbers
    return [repr(word) for word in words] if is_list else []


def with_gaps(column: Any, words: frozenset[str] = MISSING) -> Any:
    """A column of texts; those that are blank, NA and the like are nulls."""
    arrow, compute = import_arrow(), import_arrow("pyarrow.compute")
    small = compute.utf8_lower(compute.utf8_trim_whitespace(column))
    gaps = compute.is_in(small, arrow.array(sorted(words), column.type))
    return compute.if_else(gaps, None, column)


def without_words(column: Any, words: Sequence[str]) -> Any:
    """A column in which words, and numbers that they spell, are gaps."""
    if not words or not (is_text(column) or is_number(column.type)):
        return column
    if is_text(column):
        return with_gaps(column, frozenset(word.strip().lower() for word in words))
    arrow, compute = import_arrow(), import_arrow("pyarrow.compute")
    numbers = [number for word in words if (number := finite_number(word)) is not None]
    is_gap = compute.is_in(column.cast("double", safe=False), arrow.array(numbers, "double"))
    return compute.if_else(is_gap, None, column)


def spelled_numbers(
    column: Any, decimal: str = ".", thousands: str = ""
) -> tuple[Any, None] | tuple[None, int]:
    r"""The numbers that a column of texts spells, nulls for gaps; or the first row that has none.

    A mark (%, a currency, a unit such as km) has to be the same in all cells; percents are divided
    by 100. An apostrophe or a blank between thousands is always understood, `thousands` is one
    more.

    Examples
    --------
    >>> import pyarrow
    >>> prices = pyarrow.chunked_array([["$1,200", "-", "$9.50"]])
    >>> spelled_numbers(prices, ".", ",")[0].to_pylist()
    [1200.0, None, 9.5]
    >>> spelled_numbers(pyarrow.chunked_array([["12 %", "0.5"]]))
    (None, 1)
    """
    if len(column) > _HEAD and spelled_numbers(column[:_HEAD], decimal, thousands)[0] is None:
        return spelled_numbers(column[:_HEAD], decimal, thousands)
    arrow, compute = import_arrow(), import_arrow("pyarrow.compute")
    cells = compute.utf8_trim_whitespace(with_gaps(column, MISSING | GAPS))
    plain = cells
    if decimal == ",":  # a point is none then
        plain = compute.replace_substring(compute.replace_substring(cells, ".", "_"), ",", ".")
    for kind in (arrow.int64(), arrow.float64()):
        with suppress(arrow.ArrowInvalid):
            return plain.cast(kind), None
    between = f"['\\s\xa0\u202f{thousands}]"
    point = rf"\{decimal}"
    digits = rf"[1-9][0-9]{{0,2}}(?:{between}[0-9]{{3}})+(?:{point}[0-9]*)?"
    number = rf"{digits}|(?:[0-9]+(?:{point}[0-9]*)?|{point}[0-9]+)(?:[eE][+-]?[0-9]+)?"
    back = f"{_MARK}|{_UNIT}"
    form = rf"^(?P<sign>[+-]?)(?P<front>{_MARK})?\s?(?P<number>{number})\s?(?P<back>{back})?$"
    match = compute.extract_regex(cells, form)
    part = {name: compute.struct_field(match, name) for name in ("sign", "front", "number", "back")}
    marks = compute.binary_join_element_wise(part["front"], part["back"], "")
    first_mark = next((mark for mark in marks.to_pylist() if mark is not None), "")
    is_bad = compute.not_equal(compute.fill_null(marks, "?"), first_mark)
    is_bad = compute.and_(is_bad, compute.is_valid(cells))
    if compute.any(is_bad).as_py():
        return None, compute.index(is_bad, True).as_py()
    plain = compute.replace_substring_regex(part["number"], between, "")
    values = compute.replace_substring(plain, decimal, ".").cast(arrow.float64())
    signed = compute.if_else(compute.equal(part["sign"], "-"), compute.negate(values), values)
    return compute.divide(signed, 100.0 if "%" in first_mark else 1.0), None
