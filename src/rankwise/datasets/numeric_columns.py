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
    doubles = number_column(table, position, column, role).cast("double", safe=False)
    numbers: Array = doubles.to_numpy()
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
    row_without_number = 0
    if is_text(column):
        numbers, first_row_without_number = parse_numbers(column, table.decimal, table.thousands)
        if first_row_without_number is None:
            return numbers
        row_without_number = first_row_without_number
    raise _cell_error(table, row_without_number, position, column, role)


def column_matrix(
    table: TableFile, features: Sequence[int], columns: Mapping[int, pa.ChunkedArray]
) -> Array:
    """Return the features as one array in column-major order."""
    n_rows = len(next(iter(columns.values())))
    X = np.empty((n_rows, len(features)), order="F")
    for feature, position in enumerate(features):
        numbers = number_column(table, position, columns[position], "feature")
        values = X[:, feature]  # a view, which the next line fills
        np.add(numbers.to_numpy(), 0.0, out=values)  # minus zero is zero
        are_small = values.min() > -MAX_EXACT_INTEGER and values.max() < MAX_EXACT_INTEGER
        if not are_small:  # also if a value is NaN
            _refuse_rounded_integers(table, position, numbers)
            refuse_first(table, position, columns[position], ~np.isfinite(values), "feature")
    return X


def _refuse_rounded_integers(table: TableFile, position: int, column: pa.ChunkedArray) -> None:
    """Refuse integers that float64 would round: different identifiers would become equal."""
    types = import_arrow().types
    if not types.is_integer(column.type):  # a text of more than 63 bits is read as floats
        column = table.read([position], [])[position]
    if not (types.is_integer(column.type) or is_text(column)):
        return
    for row, cell in enumerate(column.to_pylist()):
        digits = str(cell).strip().removeprefix("-")
        is_integer = digits.isdecimal() and len(digits) < MAX_DIGITS
        if not is_integer:
            continue
        integer = int(digits)
        is_rounded = int(float(integer)) != integer
        if is_rounded:
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
    text = as_text(column[row].as_py()).replace("\n", " ")
    name = shown_value(table.names[position])
    problem = f"the {role}, column {name}, is {shown_value(text)}, expected a finite number."
    remedy = _REMEDY.get(role, "")
    words_of_target: list[str] = []
    if role == "target":
        words_of_target = _quoted_words(column)
    if words_of_target:
        remedy = (
            "Pass the order of the words with the worst first, such as "
            f"levels=({', '.join(words_of_target)}). Pass target= for another column."
        )
    return table.error(f"{problem} {remedy}".strip(), row)


def _quoted_words(column: pa.ChunkedArray) -> list[str]:
    """Return the words of a column, quoted and sorted; none if it has numbers or too many words."""
    if not is_text(column):
        return []
    _, texts = distinct_cells(column)
    words = sorted(text for text in texts if text.lower() not in MISSING | GAPS)
    has_numbers = any(finite_number(word) is not None for word in words)
    if has_numbers or not 2 <= len(words) <= MAX_LISTED_LEVELS:
        return []
    return [repr(word) for word in words]


def replace_words_and_numbers_by_nulls(
    column: pa.ChunkedArray, words: Sequence[str]
) -> pa.ChunkedArray:
    """Return a column in which these words, or the numbers they spell, are missing."""
    if not words or not (is_text(column) or is_number(column.type)):
        return column
    if is_text(column):
        return replace_words_by_nulls(column, frozenset(word.strip().lower() for word in words))
    arrow = import_arrow()
    compute = import_arrow("pyarrow.compute")
    numbers_of_words = [finite_number(word) for word in words]
    missing_numbers = [number for number in numbers_of_words if number is not None]
    values = column.cast("double", safe=False)
    is_missing = compute.is_in(values, arrow.array(missing_numbers, "double"))
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
        # A long column of words fails at its first rows.
        _, row_without_number = parse_numbers(column[:HEAD_ROWS], decimal, thousands)
        if row_without_number is not None:
            return None, row_without_number
    arrow = import_arrow()
    compute = import_arrow("pyarrow.compute")
    cells = compute.utf8_trim_whitespace(replace_words_by_nulls(column, MISSING | GAPS))
    cells_with_point = cells
    if decimal == ",":
        # With an underscore in place of its point, "1.5" is not a number.
        without_points = compute.replace_substring(cells, ".", "_")
        cells_with_point = compute.replace_substring(without_points, ",", ".")
    for number_type in (arrow.int64(), arrow.float64()):
        with suppress(arrow.ArrowInvalid):
            return cells_with_point.cast(number_type), None
    return _parse_formatted(cells, decimal, thousands)


def _parse_formatted(
    cells: pa.ChunkedArray, decimal: str, thousands: str
) -> tuple[pa.ChunkedArray, None] | tuple[None, int]:
    """Parse cells with thousands separators, symbols or units, as `parse_numbers` does."""
    arrow = import_arrow()
    compute = import_arrow("pyarrow.compute")
    separator = f"['\\s\xa0\u202f{thousands}]"
    # One struct for each cell; it is null if the cell is not a number.
    matches = compute.extract_regex(cells, _formatted_number_pattern(decimal, separator))
    sign = compute.struct_field(matches, "sign")
    prefix = compute.struct_field(matches, "prefix")
    digits = compute.struct_field(matches, "digits")
    suffix = compute.struct_field(matches, "suffix")

    # All cells that are not missing must be numbers with the unit of the first one.
    units = compute.binary_join_element_wise(prefix, suffix, "")
    first_unit = next((unit for unit in units.to_pylist() if unit is not None), "")
    has_other_unit = compute.not_equal(compute.fill_null(units, "?"), first_unit)  # "?" is no unit
    is_invalid = compute.and_(has_other_unit, compute.is_valid(cells))
    if compute.any(is_invalid).as_py():
        return None, compute.index(is_invalid, True).as_py()

    without_separators = compute.replace_substring_regex(digits, separator, "")
    magnitudes = compute.replace_substring(without_separators, decimal, ".").cast(arrow.float64())
    is_negative = compute.equal(sign, "-")
    numbers = compute.if_else(is_negative, compute.negate(magnitudes), magnitudes)
    divisor = 1.0
    if "%" in first_unit:
        divisor = 100.0
    return compute.divide(numbers, divisor), None


def _formatted_number_pattern(decimal: str, separator: str) -> str:
    """Return the regular expression of a sign, a prefix, digits and a suffix."""
    point = rf"\{decimal}"
    grouped_digits = rf"[1-9][0-9]{{0,2}}(?:{separator}[0-9]{{3}})+(?:{point}[0-9]*)?"
    ungrouped_digits = rf"(?:[0-9]+(?:{point}[0-9]*)?|{point}[0-9]+)(?:[eE][+-]?[0-9]+)?"
    return (
        rf"^(?P<sign>[+-]?)(?P<prefix>{_SYMBOL})?\s?"
        rf"(?P<digits>{grouped_digits}|{ungrouped_digits})\s?(?P<suffix>{_SYMBOL}|{_UNIT})?$"
    )
