"""Numbers from the cells of a column."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING

import numpy as np

from rankwise.arrays import Array, Mask
from rankwise.datasets.column_values import (
    distinct_cells,
    is_number,
    is_text,
    replace_words_by_nulls,
)
from rankwise.datasets.files import import_arrow
from rankwise.datasets.table_files import TableFile
from rankwise.datasets.vocabulary import GAPS, MISSING, as_text, finite_number, shown_value

if TYPE_CHECKING:
    import pyarrow as pa

MAX_EXACT_INTEGER = 2**53  # float64 represents integers exactly up to here
MAX_DIGITS = 300  # longer integers may be infinite in float64
HEAD_ROWS = 1000  # parsed first, so that a long column of words fails early
_SYMBOL = "[%$€£¥₹]|[A-Z]{3}"
_UNIT = "[a-zµ°][a-zA-Z²³/]{0,3}"  # km, m², °C

MAX_LISTED_LEVELS = 20  # words of a target that a message lists

_REMEDY = {
    "feature": "Fill in missing values, write words as numbers, or drop the column with ignore=.",
    "target": "Write numbers for words, the larger the better. Pass target= for another column.",
}


def column_numbers(table: TableFile, position: int, column: pa.ChunkedArray, role: str) -> Array:
    """Return a column as float64, NaN for missing cells; infinite numbers are refused."""
    numbers: Array = (
        number_column(table, position, column, role).cast("double", safe=False).to_numpy()
    )
    refuse_first(table, position, column, np.isinf(numbers), role)
    return numbers + 0.0  # minus zero is zero


def number_column(
    table: TableFile, position: int, column: pa.ChunkedArray, role: str
) -> pa.ChunkedArray:
    """Return a numeric column unchanged, else the numbers in its text cells."""
    types = import_arrow().types
    if is_number(column.type):
        return column
    if types.is_boolean(column.type) or types.is_null(column.type):
        return column.cast("double")
    bad_row = 0
    if is_text(column):
        numbers, first_bad = parse_numbers(column, table.decimal, table.thousands)
        if first_bad is None:
            return numbers
        bad_row = first_bad
    raise _cell_error(table, bad_row, position, column, role)


def column_matrix(
    table: TableFile, features: Sequence[int], columns: Mapping[int, pa.ChunkedArray]
) -> Array:
    """Return the features as one array in column-major order."""
    n_rows = len(next(iter(columns.values())))
    X = np.empty((n_rows, len(features)), order="F")
    for k, position in enumerate(features):
        numbers = number_column(table, position, columns[position], "feature")
        feature = X[:, k]
        np.add(numbers.to_numpy(), 0.0, out=feature)  # minus zero is zero
        is_exact = feature.min() > -MAX_EXACT_INTEGER and feature.max() < MAX_EXACT_INTEGER
        if not is_exact:  # also if a value is NaN
            _check_exact(table, position, numbers)
            refuse_first(table, position, columns[position], ~np.isfinite(feature), "feature")
    return X


def _check_exact(table: TableFile, position: int, column: pa.ChunkedArray) -> None:
    """Refuse integers that float64 would round: different identifiers would become equal."""
    types = import_arrow().types
    if not types.is_integer(column.type):  # a text of more than 63 bits is read as floats
        column = table.read([position], [])[position]
    if not (types.is_integer(column.type) or is_text(column)):
        return
    for row, cell in enumerate(column.to_pylist()):
        digits = str(cell).strip().removeprefix("-")
        if not digits.isdecimal() or len(digits) >= MAX_DIGITS:
            continue
        integer = int(digits)
        if int(float(integer)) != integer:
            raise table.error(
                f"column {shown_value(table.names[position])} is {cell}, which float64 would "
                "round. Drop it with ignore= if it is an identifier, or pass it as id=.",
                row,
            )


def refuse_first(
    table: TableFile, position: int, column: pa.ChunkedArray, is_bad: Mask, role: str
) -> None:
    """Raise an error about the first bad row of a column, if there is one."""
    if is_bad.any():
        raise _cell_error(table, int(is_bad.argmax()), position, column, role)


def _cell_error(
    table: TableFile, row: int, position: int, column: pa.ChunkedArray, role: str
) -> Exception:
    """Return the error about a cell that is not a number."""
    cell = shown_value(as_text(column[row].as_py()).replace("\n", " "))
    name = shown_value(table.names[position])
    problem = f"the {role}, column {name}, is {cell}, expected a finite number."
    remedy = _REMEDY.get(role, "")
    levels: list[str] = []
    if role == "target":
        levels = _target_levels(column)
    if levels:
        order = ", ".join(levels)
        remedy = (
            f"Pass the order of the words with the worst first, such as levels=({order}). Pass "
            "target= for another column."
        )
    return table.error(f"{problem} {remedy}".strip(), row)


def _target_levels(column: pa.ChunkedArray) -> list[str]:
    """Return the words of a target in alphabetical order; none if it has numbers or too many."""
    if not is_text(column):
        return []
    texts = distinct_cells(column)[1]
    words = sorted(text for text in texts if text.lower() not in MISSING | GAPS)
    has_numbers = any(finite_number(word) is not None for word in words)
    if has_numbers or not 2 <= len(words) <= MAX_LISTED_LEVELS:
        return []
    return [repr(word) for word in words]


def without_words(column: pa.ChunkedArray, words: Sequence[str]) -> pa.ChunkedArray:
    """Return a column in which these words, or the numbers they spell, are missing."""
    if not words or not (is_text(column) or is_number(column.type)):
        return column
    if is_text(column):
        return replace_words_by_nulls(column, frozenset(word.strip().lower() for word in words))
    arrow = import_arrow()
    compute = import_arrow("pyarrow.compute")
    numbers = [number for word in words if (number := finite_number(word)) is not None]
    is_missing = compute.is_in(column.cast("double", safe=False), arrow.array(numbers, "double"))
    return compute.if_else(is_missing, None, column)


def parse_numbers(
    column: pa.ChunkedArray, decimal: str = ".", thousands: str = ""
) -> tuple[pa.ChunkedArray, None] | tuple[None, int]:
    r"""Parse a column of texts as numbers.

    A symbol or unit (%, a currency, km) must be the same in all cells; percentages are divided by
    100. Apostrophes and spaces may separate thousands; `thousands` is an additional separator.

    Returns
    -------
    numbers : pyarrow.ChunkedArray or None
        The numbers, null for missing cells; None if a cell is not a number.
    row : int or None
        The first row that is not a number.

    Examples
    --------
    >>> import pyarrow
    >>> prices = pyarrow.chunked_array([["$1,200", "-", "$9.50"]])
    >>> parse_numbers(prices, ".", ",")[0].to_pylist()
    [1200.0, None, 9.5]
    >>> parse_numbers(pyarrow.chunked_array([["12 %", "0.5"]]))
    (None, 1)
    """
    if len(column) > HEAD_ROWS:
        head = parse_numbers(column[:HEAD_ROWS], decimal, thousands)
        if head[0] is None:
            return head
    arrow = import_arrow()
    compute = import_arrow("pyarrow.compute")
    cells = compute.utf8_trim_whitespace(replace_words_by_nulls(column, MISSING | GAPS))
    plain = cells
    if decimal == ",":
        without_points = compute.replace_substring(cells, ".", "_")  # no number has a point then
        plain = compute.replace_substring(without_points, ",", ".")
    for number_type in (arrow.int64(), arrow.float64()):
        with suppress(arrow.ArrowInvalid):
            return plain.cast(number_type), None
    return _parse_formatted(cells, decimal, thousands)


def _parse_formatted(
    cells: pa.ChunkedArray, decimal: str, thousands: str
) -> tuple[pa.ChunkedArray, None] | tuple[None, int]:
    """Parse cells with thousands separators, symbols or units, as `parse_numbers` does."""
    arrow = import_arrow()
    compute = import_arrow("pyarrow.compute")
    separator = f"['\\s\xa0\u202f{thousands}]"
    point = rf"\{decimal}"
    grouped = rf"[1-9][0-9]{{0,2}}(?:{separator}[0-9]{{3}})+(?:{point}[0-9]*)?"
    ungrouped = rf"(?:[0-9]+(?:{point}[0-9]*)?|{point}[0-9]+)(?:[eE][+-]?[0-9]+)?"
    pattern = (
        rf"^(?P<sign>[+-]?)(?P<prefix>{_SYMBOL})?\s?"
        rf"(?P<number>{grouped}|{ungrouped})\s?(?P<suffix>{_SYMBOL}|{_UNIT})?$"
    )
    match = compute.extract_regex(cells, pattern)
    field = {
        name: compute.struct_field(match, name) for name in ("sign", "prefix", "number", "suffix")
    }
    units = compute.binary_join_element_wise(field["prefix"], field["suffix"], "")
    unit = next((unit for unit in units.to_pylist() if unit is not None), "")
    has_other_unit = compute.not_equal(compute.fill_null(units, "?"), unit)
    is_bad = compute.and_(has_other_unit, compute.is_valid(cells))
    if compute.any(is_bad).as_py():
        return None, compute.index(is_bad, True).as_py()
    plain = compute.replace_substring_regex(field["number"], separator, "")
    values = compute.replace_substring(plain, decimal, ".").cast(arrow.float64())
    is_negative = compute.equal(field["sign"], "-")
    signed = compute.if_else(is_negative, compute.negate(values), values)
    divisor = 100.0 if "%" in unit else 1.0
    return compute.divide(signed, divisor), None
