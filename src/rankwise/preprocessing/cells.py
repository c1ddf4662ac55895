"""Cells of a table column as NumPy arrays: numbers, dates, texts or vectors."""

from __future__ import annotations

import datetime
import decimal
import math
import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, TypeGuard

import numpy as np

from rankwise.arrays import AnyArray, Array, Mask
from rankwise.frames import as_array

if TYPE_CHECKING:
    from rankwise.frames import Column

SAMPLE = 1000
"""Number of cells that are inspected one by one."""
DATE_PARTS = ("year", "month", "weekday", "days", "hour")
DAY = np.timedelta64(1, "D")
SCALARS = (str, bool, int, float, decimal.Decimal, np.generic)

_MONTH = r"(jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)[a-z]*\.?"
_DATE = re.compile(
    r"\d{1,2}[./-]\d{1,2}[./-]\d{2,4}([ T].*)?|\d{4}[./-]\d{1,2}([./-]\d{1,2})?([ T].*)?"
    rf"|(\d{{1,2}}[ -])?{_MONTH}[ -](\d{{1,2}},? ?)?\d{{4}}( .*)?|\d{{1,2}}-{_MONTH}-\d{{2}}",
    re.IGNORECASE,
)
_DAY_FORMATS = (
    *("%Y/%m/%d", "%Y.%m.%d", "%Y-%m", "%Y/%m", "%d.%m.%Y", "%d.%m.%y", "%m/%d/%Y", "%d/%m/%Y"),
    *("%m/%d/%y", "%d/%m/%y", "%d-%m-%Y", "%m-%d-%Y", "%d-%b-%Y", "%d-%b-%y", "%d %b %Y"),
    *("%d %B %Y", "%b %d, %Y", "%B %d, %Y", "%b %d %Y", "%b %Y", "%B %Y"),
)
_TIME_FORMATS = ("", " %H:%M", " %H:%M:%S", " %I:%M %p", " %I:%M:%S %p")
_NUMBER = re.compile(
    r"[$€£]? ?(?P<number>[+-]?"
    r"(\d{1,3}(?P<thousands>,\d{3})+(\.\d+)?|\d*[.,]?\d+([eE][+-]?\d+)?|\d+\.)) ?%?"
)


def read_cells(column: Column) -> AnyArray:
    """Convert a column of a frame to an array.

    Parameters
    ----------
    column : narwhals Series
        The column.

    Returns
    -------
    ndarray
        Numbers, booleans or dates of shape (n_rows,); texts as objects with None for missing
        values; vectors as numbers of shape (n_rows, n_entries). Cells that are none of these, such
        as lists of different lengths, become objects of shape (n_rows, 1).
    """
    cells: AnyArray = np.asarray(as_array(column))
    if str(column.dtype).startswith(("Categorical", "Enum")):
        cells = np.array(cell_as_text(cells), dtype=object)
    if cells.dtype.kind == "U":  # text
        cells = cells.astype(object)
    if cells.dtype.kind == "m":  # durations: as numbers of days
        return np.where(np.isnat(cells), np.nan, cells / DAY)
    if cells.dtype.kind == "c":  # complex numbers are not supported
        return _mark_as_mixed(cells.astype(object))
    if cells.dtype != object or cells.ndim > 1:
        return cells
    return _read_objects(cells)


def _mark_as_mixed(cells: AnyArray) -> AnyArray:
    """Objects as a matrix of one column, the representation of cells of several kinds."""
    return cells[:, None]


def are_mixed(cells: AnyArray) -> bool:
    """Whether the cells that `read_cells` returns are of several kinds, or of an unknown one."""
    return cells.ndim > 1 and cells.dtype == object


def _read_objects(cells: AnyArray) -> AnyArray:
    """Lists, dates, texts or decimals in an array of objects."""
    values = [cell for cell in cells if not is_missing(cell)]
    if any(_is_sequence(value) for value in values[:SAMPLE]):
        return _read_lists(cells, values)
    cell_types = {type(cell) for cell in cells}
    if any(issubclass(cell_type, datetime.date) for cell_type in cell_types):
        return np.array([_without_time_zone(cell) for cell in cells], dtype="M8[s]")
    if str in cell_types:
        return _read_texts(cells, values)
    try:
        return cells.astype(np.float64)  # decimals, or only missing values
    except (TypeError, ValueError):
        return _mark_as_mixed(cells)


def _read_texts(cells: AnyArray, values: list[object]) -> AnyArray:
    """Cells as text; objects if a value is neither a text nor a number."""
    if not all(isinstance(value, SCALARS) for value in values):
        return _mark_as_mixed(cells)
    return np.array(cell_as_text(cells), dtype=object)


def _is_sequence(cell: object) -> TypeGuard[Sequence[object]]:
    return hasattr(cell, "__len__") and not isinstance(cell, str)


def _read_lists(cells: AnyArray, values: list[Sequence[object]]) -> AnyArray:
    """Vectors as rows of a matrix, with NaN for missing ones; lists of words as texts."""
    are_words = all(isinstance(entry, str) for value in values for entry in value)
    if are_words:
        texts = [None if is_missing(cell) else " ".join(cell) for cell in cells]
        return np.array(texts, dtype=object)
    lengths = {len(value) for value in values}
    if len(lengths) > 1:
        return _mark_as_mixed(cells)
    (length,) = lengths
    return _read_vectors(cells, length)


def _read_vectors(cells: AnyArray, length: int) -> AnyArray:
    """Vectors of the same length as a matrix; objects if an entry is not a number."""
    matrix = np.full((len(cells), length), np.nan)
    try:
        for row, cell in zip(matrix, cells, strict=True):
            if not is_missing(cell):
                row[:] = np.asarray(cell, dtype=np.float64)
    except (TypeError, ValueError):
        return _mark_as_mixed(cells)
    return matrix


def is_missing(cell: object) -> bool:
    """Whether a cell is None, NaN or NaT."""
    if hasattr(cell, "__len__"):  # a text or a list
        return False
    return cell is None or bool(cell != cell)  # NaN and NaT differ from themselves


def missing_mask(cells: AnyArray) -> Mask:
    """Whether each row of a column has a missing value."""
    if cells.ndim > 1:
        return missing_mask(cells[:, 0])
    if cells.dtype == object:
        return np.array([cell is None for cell in cells], dtype=bool)
    if cells.dtype.kind in "fM":  # NaN or NaT
        return np.asarray(np.isnan(cells))
    return np.zeros(len(cells), dtype=bool)


def cell_as_text(cells: AnyArray) -> list[str | None]:
    """Cells as text: 7, 7.0 and "7" are equal, as are true and "True"."""
    text_of_cell: dict[object, str | None] = {}
    texts = []
    for cell in cells.tolist():
        if isinstance(cell, list):  # not hashable
            texts.append(as_text(cell))
            continue
        if cell not in text_of_cell:
            text_of_cell[cell] = as_text(cell)
        texts.append(text_of_cell[cell])
    return texts


def as_text(cell: object) -> str | None:
    """A cell as text; None if it is missing."""
    if is_missing(cell):
        return None
    if isinstance(cell, float) and cell.is_integer():
        cell = int(cell)
    text = str(cell)
    if text.lower() in ("true", "false"):
        return text.lower()
    return text


def parse_number(text: str) -> float:
    """The number in a text, with decimal point or comma, $ or %; NaN if it is not a number."""
    match = _NUMBER.fullmatch(text.strip())
    if match is None:
        return math.nan
    number = match["number"]
    if match["thousands"] is not None:
        return float(number.replace(",", ""))
    return float(number.replace(",", "."))  # a comma is the decimal comma


def find_date_format(texts: Sequence[str]) -> str | None:
    """Format of `datetime.strptime` that all texts have; "" for ISO dates, None for no dates."""
    if not all(map(_DATE.fullmatch, texts)):
        return None
    formats = [""]
    for day_format in _DAY_FORMATS:
        formats += [day_format + time_format for time_format in _TIME_FORMATS]
    for date_format in formats:
        if all(_parse_date(text, date_format) is not None for text in texts):
            return date_format
    return None


def as_dates(cells: AnyArray, date_format: str) -> AnyArray:
    """Cells as NumPy dates; NaT for missing values and for texts of another format."""
    if cells.dtype.kind == "M":
        return cells.astype("M8[s]")
    texts = cell_as_text(cells)
    date_of_text = {text: _parse_date(text, date_format) for text in set(texts)}
    return np.array([date_of_text[text] for text in texts], dtype="M8[s]")


def _parse_date(text: str | None, date_format: str) -> datetime.datetime | None:
    if text is None:
        return None
    try:
        if date_format:
            return datetime.datetime.strptime(text, date_format)
        date = datetime.datetime.fromisoformat(text)
    except ValueError:
        return None
    if date.tzinfo is None:
        return date
    return date.astimezone(datetime.UTC).replace(tzinfo=None)


def _without_time_zone(cell: object) -> object:
    """A date in UTC, without time zone; None if it is missing."""
    if is_missing(cell):
        return None
    if isinstance(cell, datetime.datetime) and cell.tzinfo is not None:
        return cell.astimezone(datetime.UTC).replace(tzinfo=None)
    return cell


def date_parts(dates: AnyArray, names: Sequence[str]) -> Array:
    """Parts of dates as numbers, shape (n_rows, n_names); NaN for NaT.

    The names are from `DATE_PARTS`. Months and years are as in the calendar, weekdays from Monday
    0, days since 1970, hours with fractions.
    """
    midnight = dates.astype("M8[D]")
    days_since_1970 = midnight.astype(np.float64)
    months_since_1970 = midnight.astype("M8[M]").astype(np.float64)
    parts = {
        "year": np.floor(months_since_1970 / 12) + 1970,
        "month": months_since_1970 % 12 + 1,
        "weekday": (days_since_1970 + 3) % 7,  # January 1, 1970 was a Thursday
        "days": days_since_1970,
        "hour": (dates - midnight) / np.timedelta64(1, "h"),
    }
    matrix = np.stack([parts[name] for name in names], axis=1)
    matrix[np.isnat(dates)] = np.nan
    return matrix
