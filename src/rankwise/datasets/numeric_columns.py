"""Numbers from the cells of a column."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankwise.arrays import Array
from rankwise.datasets.column_values import distinct_cells, is_number, is_text, with_missing
from rankwise.datasets.files import import_arrow
from rankwise.datasets.table_files import TableFile
from rankwise.datasets.vocabulary import GAPS, MISSING, as_text, finite_number, shown_value

_EXACT = 2**53  # whole numbers up to here are floats

_HEAD = 1000  # cells that are tried first

_MARK = "[%$€£¥₹]|[A-Z]{3}"

_UNIT = "[a-zµ°][a-zA-Z²³/]{0,3}"  # km, m², °C

_REMEDY = {
    "feature": "Fill in gaps, write words as numbers, or leave the column out with ignore=.",
    "target": "Write numbers for words, the larger the better. Pass target= for another column.",
}

_MOST_LEVELS = 20  # words of scores that a message lists


def column_numbers(table: TableFile, at: int, column: Any, role: str) -> Array:
    """A column as float64, NaN where there is nothing; infinite numbers are refused."""
    numbers: Array = number_column(table, at, column, role).cast("double", safe=False).to_numpy()
    refuse_first(table, at, column, np.isinf(numbers), role)
    return numbers + 0.0  # minus zero is zero


def number_column(table: TableFile, at: int, column: Any, role: str) -> Any:
    """The column itself if it has numbers, else the numbers that its cells spell."""
    types = import_arrow().types
    if is_number(column.type):
        return column
    if types.is_boolean(column.type) or types.is_null(column.type):
        return column.cast("double")
    first_bad: int | None = 0
    if is_text(column):
        numbers, first_bad = parse_numbers(column, table.decimal, table.thousands)
        if first_bad is None:
            return numbers
    raise _cell_error(table, first_bad or 0, at, column, role)


def column_matrix(table: TableFile, features: Sequence[int], columns: dict[int, Any]) -> Array:
    """The features as one array, stored by columns."""
    X = np.empty((len(next(iter(columns.values()))), len(features)), order="F")
    for k, at in enumerate(features):
        numbers = number_column(table, at, columns[at], "feature")
        np.add(numbers.to_numpy(), 0.0, out=X[:, k])  # minus zero is zero
        if not max(X[:, k].max(), -X[:, k].min()) < _EXACT:  # or NaN
            _check_exact(table, at, numbers)
            refuse_first(table, at, columns[at], ~np.isfinite(X[:, k]), "feature")
    return X


def _check_exact(table: TableFile, at: int, column: Any) -> None:
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
                f"column {shown_value(table.names[at])} is {cell}, which a float would round. "
                "Leave it out with ignore= if it is an identifier. Or pass it as id=.",
                row,
            )


def refuse_first(
    table: TableFile, at: int, column: Any, is_bad: NDArray[np.bool_], role: str
) -> None:
    """Raise an error about the first bad row of a column, if there is one."""
    if is_bad.any():
        raise _cell_error(table, int(is_bad.argmax()), at, column, role)


def _cell_error(table: TableFile, row: int, at: int, column: Any, role: str) -> Exception:
    cell = shown_value(as_text(column[row].as_py()).replace("\n", " "))
    name = shown_value(table.names[at])
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


def without_words(column: Any, words: Sequence[str]) -> Any:
    """A column in which words, and numbers that they spell, are gaps."""
    if not words or not (is_text(column) or is_number(column.type)):
        return column
    if is_text(column):
        return with_missing(column, frozenset(word.strip().lower() for word in words))
    arrow, compute = import_arrow(), import_arrow("pyarrow.compute")
    numbers = [number for word in words if (number := finite_number(word)) is not None]
    is_gap = compute.is_in(column.cast("double", safe=False), arrow.array(numbers, "double"))
    return compute.if_else(is_gap, None, column)


def parse_numbers(
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
    >>> parse_numbers(prices, ".", ",")[0].to_pylist()
    [1200.0, None, 9.5]
    >>> parse_numbers(pyarrow.chunked_array([["12 %", "0.5"]]))
    (None, 1)
    """
    if len(column) > _HEAD and parse_numbers(column[:_HEAD], decimal, thousands)[0] is None:
        return parse_numbers(column[:_HEAD], decimal, thousands)
    arrow, compute = import_arrow(), import_arrow("pyarrow.compute")
    cells = compute.utf8_trim_whitespace(with_missing(column, MISSING | GAPS))
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
