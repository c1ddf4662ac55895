"""What the columns of a table hold: numbers, categories, dates, text, vectors or nothing."""

from __future__ import annotations

import datetime
import decimal
import math
import re
from collections import Counter
from collections.abc import Sequence
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rankwise.arrays import Array
from rankwise.datasets.parse_numbers import NumberFormat, find_format, parse_quantity, read_format
from rankwise.frames import as_array

FEW_VALUES = 50  # a text of no more values is a category, whatever it looks like
MOST_VALUES = 10_000  # values of a category that are told apart; the most frequent ones
SAMPLE = 1000  # cells that are looked at one by one
ROWS_OF_A_CODE = 20  # a value of a column that ends in "id" with more rows than that is a category
LONG_NUMBER = 10**15
FEW_ROWS = 20  # too few to say that all are different by intent
REPEATED = 0.2  # share of the rows whose value is there again, at least, in a category of words
NAMED = "its name says so"
DATE_PARTS = ("year", "month", "weekday", "days", "hour")
DAY = np.timedelta64(1, "D")

_MONTH = r"(jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)[a-z]*\.?"
_DATE = re.compile(
    r"\d{1,2}[./-]\d{1,2}[./-]\d{2,4}([ T].*)?|\d{4}[./-]\d{1,2}([./-]\d{1,2})?([ T].*)?"
    rf"|(\d{{1,2}}[ -])?{_MONTH}[ -](\d{{1,2}},? ?)?\d{{4}}( .*)?|\d{{1,2}}-{_MONTH}-\d{{2}}",
    re.IGNORECASE,
)
_FORMATS = (
    *("%Y/%m/%d", "%Y.%m.%d", "%Y-%m", "%Y/%m", "%d.%m.%Y", "%d.%m.%y", "%m/%d/%Y", "%d/%m/%Y"),
    *("%m/%d/%y", "%d/%m/%y", "%d-%m-%Y", "%m-%d-%Y", "%d-%b-%Y", "%d-%b-%y", "%d %b %Y"),
    *("%d %B %Y", "%b %d, %Y", "%B %d, %Y", "%b %d %Y", "%b %Y", "%B %Y"),
)
_TIMES = ("", " %H:%M", " %H:%M:%S", " %I:%M %p", " %I:%M:%S %p")
_IDENTIFIER = re.compile(
    r"(^|[_. -])(id|ID|Id)$|[a-z](ID|Id)$|^([Ii]tem|ITEM|docid|uuid|UUID|index|Unnamed: \d+)$"
)
_NUMBER = re.compile(
    r"[$€£]? ?([+-]?(\d{1,3}(,\d{3})+(\.\d+)?|\d*[.,]?\d+([eE][+-]?\d+)?|\d+\.)) ?%?"
)

ColumnType = Literal["number", "order", "date", "vector", "category", "text", "left out"]


class ColumnInfo(NamedTuple):
    """What is known of one column, and what becomes of it.

    Attributes
    ----------
    name : str
        Of the column.
    kind : {"number", "order", "date", "vector", "category", "text", "left out"}
        What it becomes.
    n_gaps : int
        Number of cells without a value in the training data.
    why : str
        Why it is left out, or in doubt; else empty.
    categories : tuple of str
        The values of a category, the words of an order from low to high, the words of a text, or
        the parts of a date.
    n_rare : int
        Rows of a category whose value is not one of `categories`.
    form : str
        How dates are written, as in `datetime.strptime`; empty for ISO dates. Of numbers with a
        unit, the number 1.5 as the column writes it, such as "$1.5"; empty for other numbers.
    medians : tuple of float
        What fills the gaps of a number, of each part of a date, of each entry of a vector.
    means, scales : tuple of float
        What is taken off them, and what they are then divided by.
    weights : tuple of float
        Weights of the words of a text (inverse document frequencies).
    """

    name: str
    kind: ColumnType
    n_gaps: int = 0
    why: str = ""
    categories: tuple[str, ...] = ()
    n_rare: int = 0
    form: str = ""
    medians: tuple[float, ...] = ()
    means: tuple[float, ...] = ()
    scales: tuple[float, ...] = ()
    weights: tuple[float, ...] = ()

    @property
    def words(self) -> str:
        """The kind in words, such as "number with 3 gaps" or "category of 4 values"."""
        n = len(self.categories)
        text = {
            "category": f"category of {n:,} value{'s' * (n != 1)}",
            "text": f"text, {n:,} words",
            "date": f"date: {', '.join(self.categories)}",
            "order": f"order of {n} words",
            "vector": f"vector of {len(self.medians)} numbers",
        }.get(self.kind, self.kind)
        text += f", {self.n_rare:,} rows of rare ones" if self.n_rare else ""
        if not self.n_gaps or self.kind == "left out":
            return text
        gaps = f"{self.n_gaps:,} gap{'s' * (self.n_gaps != 1)}"
        return f"number with {gaps}" if self.kind == "number" else f"{text}, {gaps}"


def read_cells(column: Any) -> NDArray[Any]:
    """A column of a frame: numbers, dates, texts with None for gaps, or vectors in two dimensions.

    An array of objects in two dimensions holds none of these.
    """
    cells: NDArray[Any] = np.asarray(as_array(column))
    if str(column.dtype).startswith(("Categorical", "Enum")):
        cells = np.array(cell_as_text(cells), dtype=object)
    if cells.dtype.kind == "U":
        cells = cells.astype(object)
    if cells.dtype.kind == "m":
        return np.where(np.isnat(cells), np.nan, cells / DAY)
    if cells.dtype.kind == "c":
        return cells.astype(object)[:, None]
    if cells.dtype != object or cells.ndim > 1:
        return cells
    kinds = {type(cell) for cell in cells}
    known = [cell for cell in cells if not is_missing(cell)]
    if any(hasattr(cell, "__len__") and not isinstance(cell, str) for cell in known[:SAMPLE]):
        return _lists(cells, known)
    if any(issubclass(kind, datetime.date) for kind in kinds):
        return np.array([_naive(cell) for cell in cells], dtype="M8[s]")
    if str in kinds:
        plain = (str, bool, int, float, decimal.Decimal, np.generic)
        is_plain = all(isinstance(cell, plain) for cell in known)
        return np.array(cell_as_text(cells), dtype=object) if is_plain else cells[:, None]
    try:
        return cells.astype(np.float64)  # decimals, or nothing at all
    except (TypeError, ValueError):
        return cells[:, None]


def _naive(cell: Any) -> Any:
    """A date without a time zone; one that has a zone becomes that of UTC."""
    if is_missing(cell):
        return None
    if getattr(cell, "tzinfo", None) is None:
        return cell
    return cell.astimezone(datetime.UTC).replace(tzinfo=None)


def _lists(cells: NDArray[Any], known: list[Any]) -> NDArray[Any]:
    """Vectors as rows of a matrix, NaN where there is none; lists of words as texts."""
    if all(isinstance(word, str) for cell in known for word in cell):
        return np.array([None if is_missing(c) else " ".join(c) for c in cells], dtype=object)
    lengths = {len(cell) for cell in known}
    try:
        matrix = np.full((len(cells), max(lengths)), np.nan)
        for row, cell in zip(matrix, cells, strict=True):
            if not is_missing(cell):
                row[: len(cell)] = np.asarray(cell, dtype=np.float64)
    except (TypeError, ValueError):
        return cells[:, None]
    return matrix if len(lengths) == 1 else cells[:, None]


def is_missing(cell: Any) -> bool:
    """Whether one cell has no value."""
    if hasattr(cell, "__len__"):
        return False
    return cell is None or bool(cell != cell)


def is_gap(cells: NDArray[Any]) -> NDArray[np.bool_]:
    """Where a column has no value."""
    if cells.ndim > 1:
        return is_gap(cells[:, 0])
    if cells.dtype == object:
        return np.array([cell is None for cell in cells], dtype=bool)
    return np.isnan(cells) if cells.dtype.kind in "fM" else np.zeros(len(cells), dtype=bool)


def cell_as_text(cells: NDArray[Any]) -> list[str | None]:
    """Cells as text: 7, 7.0 and "7" are one category, as are true and "True"."""
    known: dict[Any, str | None] = {}
    texts = []
    for cell in cells.tolist():
        if cell not in known:
            known[cell] = _text(cell)
        texts.append(known[cell])
    return texts


def _text(cell: Any) -> str | None:
    if is_missing(cell):
        return None
    text = str(int(cell) if isinstance(cell, float) and cell.is_integer() else cell)
    return text.lower() if text.lower() in ("true", "false") else text


def column_numbers(column: ColumnInfo, cells: NDArray[Any]) -> Array:
    """A column as numbers, (n_rows, n_numbers), with NaN for gaps."""
    if column.kind == "order":
        place = {word: float(k) for k, word in enumerate(column.categories)}
        return np.array([[place.get(str(text), np.nan)] for text in cell_as_text(cells)])
    if column.kind == "date":
        return _date_parts(column.name, as_dates(cells, column.form), column.categories)
    if column.kind == "vector":
        is_matrix = cells.ndim == 2 and cells.dtype != object
        if not is_matrix or (column.medians and cells.shape[1] != len(column.medians)):
            raise ValueError(
                f"column {column.name!r} has lists of other lengths than in training; expected "
                f"vectors of {len(column.medians)} numbers in every row."
            )
        numbers = cells.astype(np.float64)
    else:
        numbers = _floats(column, cells)[:, None]
    if np.isinf(numbers).any():
        raise ValueError(f"column {column.name!r} has infinite numbers.")
    return numbers


def _floats(column: ColumnInfo, cells: NDArray[Any]) -> Array:
    if cells.dtype != object:
        return cells.astype(np.float64)
    texts = cell_as_text(cells) if cells.ndim == 1 else ["lists"]
    floats = np.array([np.nan if text is None else _number(text, column.form) for text in texts])
    words = [text for text, x in zip(texts, floats, strict=True) if text is not None and x != x]
    if words and (cells.ndim > 1 or not column.why):
        raise ValueError(
            f"column {column.name!r} has words, such as {words[0]!r:.40}, expected numbers."
        )
    return floats


def _number(text: str, form: str) -> float:
    """The number that a text spells, in the format of the column if it has a unit."""
    return parse_quantity(text, read_format(form)) if form else parse_number(text)


def parse_number(text: str) -> float:
    """The number that a text spells, with decimal point or comma, $ or %; NaN if it is none."""
    match = _NUMBER.fullmatch(text.strip())
    if match is None:
        return math.nan
    digits = match[1].replace(",", "") if match[3] else match[1].replace(",", ".")
    return float(digits)


def as_dates(cells: NDArray[Any], form: str) -> NDArray[Any]:
    """Cells as dates of NumPy, NaT for gaps and for what is no date of this form."""
    if cells.dtype.kind == "M":
        return cells.astype("M8[s]")
    texts = cell_as_text(cells)
    known = {text: _date(text, form) for text in set(texts)}
    return np.array([known[text] for text in texts], dtype="M8[s]")


def _date(text: str | None, form: str) -> Any:
    try:
        if text is None:
            return None
        if form:
            return datetime.datetime.strptime(text, form)
        return _naive(datetime.datetime.fromisoformat(text))
    except ValueError:
        return None


def _date_parts(name: str, dates: NDArray[Any], parts: Sequence[str]) -> Array:
    """Numbers of the dates: year, month, weekday from Monday 0, days since 1970, hour."""
    days = dates.astype("M8[D]")
    months = days.astype("M8[M]").astype(np.float64)
    numbers = {
        "year": np.floor(months / 12) + 1970,
        "month": months % 12 + 1,
        "weekday": (days.astype(np.float64) + 3) % 7,
        "days": days.astype(np.float64),
        "hour": (dates - days) / np.timedelta64(1, "h"),
    }
    matrix = np.stack([numbers[part] for part in parts], axis=1)
    matrix[np.isnat(dates)] = np.nan
    return matrix


def infer_column(
    name: str, cells: NDArray[Any], forced: str, order: Sequence[str] | None, is_free: bool
) -> list[ColumnInfo]:
    """What becomes of a column, by what is in it: texts that repeat are a category and a text.

    A free column is left out if it looks like an identifier.
    """
    is_named, known = is_free and bool(_IDENTIFIER.search(name)), cells[~is_gap(cells)]
    if is_named and cells.dtype.kind in "iuO" and cells.ndim == 1:
        is_code = len(known) > ROWS_OF_A_CODE * len(set(known.tolist()))
        forced = "category" if is_code else forced
    column = _decide(name, cells, forced, order)
    reason = ""
    if is_free and not forced and column.kind != "left out":
        reason = NAMED if is_named else _counts_or_is_long(cells, known)
    if reason:
        return [ColumnInfo(name, "left out", column.n_gaps, f"an identifier: {reason}")]
    n_words = sum(" " in value.strip() for value in column.categories)
    is_phrases = column.kind == "category" and len(column.categories) > FEW_VALUES
    if is_phrases and not forced and 2 * n_words > len(column.categories):
        return [column, ColumnInfo(name, "text", column.n_gaps)]
    return [column]


def _decide(name: str, cells: NDArray[Any], forced: str, order: Sequence[str] | None) -> ColumnInfo:
    """What becomes of a column, but for identifiers and the words of texts that repeat."""
    gaps = is_gap(cells)
    n_gaps = int(gaps.sum())
    left_out = ColumnInfo(name, "left out", n_gaps)
    if n_gaps == len(cells):
        return left_out._replace(why="it has no values")
    if cells.ndim > 1:
        if cells.dtype != object:
            return ColumnInfo(name, "vector", n_gaps)
        return left_out._replace(why="lists of different lengths, or other objects")
    if order is not None:
        return _order(left_out, cells, order)
    is_text = cells.dtype == object
    sample = [str(_text(cell)) for cell in cells[~gaps][:SAMPLE].tolist()]
    form = _date_form(sample) if is_text else "" if cells.dtype.kind == "M" else None
    n_numbers = sum(parse_number(text) == parse_number(text) for text in sample)
    number_format = find_format(sample) if is_text else None
    if number_format is not None and forced in ("", "number") and form is None:
        return _quantity(left_out, cells, number_format)
    if forced == "number":
        if form is not None or n_numbers < len(sample):
            words = "dates" if form is not None else f"words, such as {_shown(sample)}"
            return left_out._replace(why=f"it has {words}, expected numbers")
        return ColumnInfo(name, "number", n_gaps)
    if forced == "category" or cells.dtype.kind == "b":
        return _category(left_out, cells, forced=True)
    if form is not None:
        dates = as_dates(cells, form)
        numbers = _date_parts(name, dates[~np.isnat(dates)], DATE_PARTS)
        varied = [part for part, x in zip(DATE_PARTS, numbers.T, strict=True) if np.ptp(x) > 0]
        n_gaps = int(np.isnat(dates).sum())
        return ColumnInfo(name, "date", n_gaps, categories=tuple(varied) or ("days",), form=form)
    if not is_text:
        return ColumnInfo(name, "number", n_gaps)
    category = _category(left_out, cells, forced=False)
    if len(category.categories) + category.n_rare <= FEW_VALUES and category.kind == "category":
        return category
    if n_numbers > 0.8 * len(sample) and not any(re.match(r"0\d", text) for text in sample):
        if n_numbers == len(sample):
            return ColumnInfo(name, "number", n_gaps)
        n_gaps = sum(text is None or math.isnan(parse_number(text)) for text in cell_as_text(cells))
        why = f"words, such as {_shown(sample)}, count as gaps"
        return ColumnInfo(name, "number", n_gaps, why)
    n_words = sum(" " in text.strip() for text in sample)
    if category.kind == "left out" and 2 * n_words > len(sample):
        return ColumnInfo(name, "text", n_gaps)
    return category


def _quantity(left_out: ColumnInfo, cells: NDArray[Any], number_format: NumberFormat) -> ColumnInfo:
    """Numbers with one unit; words among them are missing values."""
    texts = cell_as_text(cells)
    words = [text for text in texts if text and math.isnan(parse_quantity(text, number_format))]
    n_gaps = left_out.n_gaps + len(words)
    why = f"words, such as {words[0]!r:.40}, count as gaps" if words else ""
    return left_out._replace(kind="number", n_gaps=n_gaps, why=why, form=str(number_format))


def _order(left_out: ColumnInfo, cells: NDArray[Any], order: Sequence[str]) -> ColumnInfo:
    words = [str(_text(word)) for word in order]
    texts = {text for text in cell_as_text(cells) if text is not None}
    unknown = sorted(texts - set(words))
    if unknown:
        return left_out._replace(why=f"it has {unknown[0]!r:.40}, which its order does not name")
    return left_out._replace(kind="order", categories=tuple(words))


def _date_form(sample: list[str]) -> str | None:
    """How the dates of a sample are written, "" if in ISO's way; None if they are no dates."""
    if not all(map(_DATE.fullmatch, sample)):
        return None
    forms = ["", *(day + time for day in _FORMATS for time in _TIMES)]
    for form in forms:
        if all(_date(text, form) is not None for text in sample):
            return form
    return None


def _category(left_out: ColumnInfo, cells: NDArray[Any], *, forced: bool) -> ColumnInfo:
    """A category. Of many values, those that are there once share one place, as do new ones."""
    counts = Counter(text for text in cell_as_text(cells) if text is not None)
    values, n_rows = sorted(counts), sum(counts.values())
    is_small = len(values) <= FEW_VALUES and (forced or len(values) <= max(5, n_rows / 2))
    if is_small or forced:
        kept = values
    else:
        kept = [value for value in values if counts[value] > 1]
    if len(kept) > MOST_VALUES:
        kept = sorted(value for value, _ in counts.most_common(MOST_VALUES))
    n_rare = n_rows - sum(counts[value] for value in kept)
    if not is_small and not forced and n_rows - n_rare < REPEATED * n_rows:
        text = f"{len(values):,} values in {n_rows:,} rows, such as {values[0]!r:.40}"
        return left_out._replace(why=f"an identifier: {text}")
    return left_out._replace(kind="category", categories=tuple(kept), n_rare=n_rare)


def _counts_or_is_long(cells: NDArray[Any], known: NDArray[Any]) -> str:
    """Why whole numbers look like identifiers; nothing if they do not."""
    if cells.dtype.kind not in "iuf" or cells.ndim > 1 or (known != np.floor(known)).any():
        return ""
    low, high = float(known.min()), float(known.max())
    is_dense = high - low < 2 * len(known)  # at least every second number is there
    if FEW_ROWS <= len(known) == len(cells) and is_dense and (known[1:] > known[:-1]).all():
        return "it counts the rows"
    longest = low if cells.dtype.kind == "f" else max(-low, high)
    return "its whole numbers have 16 digits or more" if longest >= LONG_NUMBER else ""


def _shown(sample: list[str]) -> str:
    word = next((text for text in sample if math.isnan(parse_number(text))), sample[0])
    return f"{word!r:.40}"
