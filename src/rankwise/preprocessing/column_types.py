"""How each column of a table is used, inferred from its name and its cells."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Sequence
from enum import StrEnum
from typing import Literal, NamedTuple

import numpy as np

from rankwise.arrays import AnyArray, Indices
from rankwise.datasets.parse_numbers import NumberFormat, find_format, is_format, parse_quantity
from rankwise.fitted_schema import EnumMember, Integer, TupleOf, Word, saved_fields
from rankwise.formatting import count
from rankwise.preprocessing.cells import (
    DATE_PARTS,
    SAMPLE,
    are_mixed,
    as_dates,
    as_text,
    cell_as_text,
    date_parts,
    find_date_format,
    missing_mask,
    parse_number,
)

FEW_VALUES = 50
"""Texts with at most this many values are a category; categories with more are stored sparse."""
MAX_VALUES = 10_000
"""Number of values of a category that have a feature; the most frequent ones."""
ROWS_PER_CODE = 20
"""A column named as an identifier with more rows per value than this is a category."""
LONG_NUMBER = 10**15
MIN_COUNTER_ROWS = 20
"""A table with fewer rows is too short to recognize a row counter."""
MIN_REPEATED = 0.2
"""Share of the rows of a category whose value occurs at least twice; of fewer, an identifier."""
MIN_NUMERIC = 0.8
"""Share of the texts of a column of numbers that are numbers; the others are missing values."""

_ID_NAME = re.compile(
    r"(^|[_. -])(id|ID|Id)$|[a-z](ID|Id)$|^([Ii]tem|ITEM|docid|uuid|UUID|index|Unnamed: \d+)$"
)

MAX_DATE_FORMAT = 40  # characters of the format of a date, in a model file

ColumnType = Literal["number", "order", "date", "vector", "category", "text", "dropped"]
NUMERIC = ("number", "order", "date", "vector")


class Reason(StrEnum):
    """Why a column is dropped, or why its use is uncertain; `text` is the explanation."""

    NONE = ""
    ID_NAME = "id name"
    ROW_COUNTER = "row counter"
    LONG_NUMBERS = "long numbers"
    UNIQUE_VALUES = "unique values"
    EMPTY = "empty"
    MIXED_OBJECTS = "mixed objects"
    UNKNOWN_WORD = "unknown word"
    DATES = "dates"
    WORDS = "words"
    WORDS_AS_MISSING = "words as missing"
    NO_SHARED_WORDS = "no shared words"
    IGNORED = "ignored"
    UNNAMED = "unnamed"

    def text(self, detail: str) -> str:
        """Return the explanation, with the detail inserted."""
        return _REASON_TEXTS[self].format(detail=detail)


_REASON_TEXTS = {
    Reason.NONE: "",
    Reason.ID_NAME: "an identifier: its name says so",
    Reason.ROW_COUNTER: "an identifier: it counts the rows",
    Reason.LONG_NUMBERS: "an identifier: its whole numbers have 16 digits or more",
    Reason.UNIQUE_VALUES: "an identifier: {detail}",
    Reason.EMPTY: "it has no values",
    Reason.MIXED_OBJECTS: "lists of different lengths, or other objects",
    Reason.UNKNOWN_WORD: "it has {detail}, which its order does not name",
    Reason.DATES: "it has dates, expected numbers",
    Reason.WORDS: "it has words, such as {detail}, expected numbers",
    Reason.WORDS_AS_MISSING: "words, such as {detail}, are treated as missing",
    Reason.NO_SHARED_WORDS: "texts in which every word occurs once, or in all of them",
    Reason.IGNORED: "as requested",
    Reason.UNNAMED: "it has no name",
}


@saved_fields(
    {
        "name": Word(),
        "kind": Word("number", "order", "date", "vector", "category", "text", "dropped"),
        "n_missing": Integer(),
        "reason": EnumMember(Reason),
        "detail": Word(),
        "categories": TupleOf(str),
        "n_rare": Integer(),
        "form": Word(),
        "medians": TupleOf(float),
        "means": TupleOf(float),
        "scales": TupleOf(float),
        "weights": TupleOf(float),
    }
)
class ColumnInfo(NamedTuple):
    """Use of a column, and the statistics of its training data.

    Attributes
    ----------
    name : str
        Name of the column.
    kind : {"number", "order", "date", "vector", "category", "text", "dropped"}
        How the column is used.
    n_missing : int
        Number of missing values in the training data.
    reason : Reason
        Why the column is dropped, or why its use is uncertain; else `Reason.NONE`.
    detail : str
        Example or count that belongs to the reason.
    categories : tuple of str
        Values of a category, words of an order from low to high, words of a text, or parts of a
        date.
    n_rare : int
        Number of rows of a category whose value is not one of `categories`.
    form : str
        Format of dates for `datetime.strptime`; empty for ISO dates. For numbers with a unit, the
        number 1.5 as written in the column, such as "$1.5"; empty for other numbers.
    medians : tuple of float
        Values that replace missing values of a number, of each part of a date, or of each entry of
        a vector.
    means, scales : tuple of float
        Values that are subtracted, and by which the difference is divided.
    weights : tuple of float
        Inverse document frequencies of the words of a text.
    """

    name: str
    kind: ColumnType
    n_missing: int = 0
    reason: Reason = Reason.NONE
    detail: str = ""
    categories: tuple[str, ...] = ()
    n_rare: int = 0
    form: str = ""
    medians: tuple[float, ...] = ()
    means: tuple[float, ...] = ()
    scales: tuple[float, ...] = ()
    weights: tuple[float, ...] = ()

    @property
    def is_used(self) -> bool:
        """Whether the column becomes features; False if it is dropped."""
        return self.kind != "dropped"

    @property
    def why(self) -> str:
        """The reason as text, such as "an identifier: it counts the rows"; else empty."""
        return self.reason.text(self.detail)

    @property
    def words(self) -> str:
        """The kind as text, such as "number with 3 missing values" or "category of 4 values"."""
        text = self._kind_text()
        if self.n_rare:
            text += f", {self.n_rare:,} rows with rare values"
        if self.n_missing == 0 or not self.is_used:
            return text
        missing = count(self.n_missing, "missing value")
        if self.kind == "number":
            return f"number with {missing}"
        return f"{text}, {missing}"

    def _kind_text(self) -> str:
        n_categories = len(self.categories)
        if self.kind == "category":
            return f"category of {count(n_categories, 'value')}"
        if self.kind == "text":
            return f"text, {n_categories:,} words"
        if self.kind == "date":
            return f"date: {', '.join(self.categories)}"
        if self.kind == "order":
            return f"order of {n_categories} words"
        if self.kind == "vector":
            return f"vector of {len(self.medians)} numbers"
        return self.kind

    def drop(self, reason: Reason, detail: str = "") -> ColumnInfo:
        """Return the record of a column that is dropped for this reason."""
        return ColumnInfo(self.name, "dropped", self.n_missing, reason, detail)

    def _check_fitted(self) -> None:
        """Check that the entries are consistent, and that no category occurs twice."""
        # the record may come from a file: check the number of entries that the kind requires
        n_categories = len(self.categories)
        n_weights = 0
        if self.kind == "text":
            n_weights = n_categories
        n_numbers = 0  # for categories and texts
        if self.kind in ("number", "order"):
            n_numbers = 1
        elif self.kind == "date":
            n_numbers = n_categories
        elif self.kind in ("vector", "dropped"):
            n_numbers = len(self.medians)
        numbers = [*self.medians, *self.means, *self.scales, *self.weights]
        conditions = [
            len(set(self.categories)) == n_categories,
            len(self.medians) == len(self.means) == len(self.scales) == n_numbers,
            len(self.weights) == n_weights,
            all(math.isfinite(number) for number in numbers),
            all(scale > 0 for scale in self.scales),
            self.kind != "date" or set(self.categories) <= set(DATE_PARTS),
            self.kind != "number" or is_format(self.form),
            len(self.form) <= MAX_DATE_FORMAT,
        ]
        if not all(conditions):
            raise ValueError(f"the facts of the column {self.name!r:.60} do not fit together")


class ColumnRequest(NamedTuple):
    """What the caller requested for a column.

    Attributes
    ----------
    kind : {"number", "category"} or None
        Requested kind; None infers it.
    order : sequence of str or None
        Words from low to high.
    may_drop : bool
        Whether the column is dropped if it looks like an identifier.
    """

    kind: Literal["number", "category"] | None = None
    order: Sequence[str] | None = None
    may_drop: bool = True


def infer_column(
    name: str, cells: AnyArray, request: ColumnRequest, row_numbers: Indices
) -> list[ColumnInfo]:
    """Infer how a column is used.

    Parameters
    ----------
    name : str
        Name of the column.
    cells : ndarray
        Cells as returned by `read_cells`.
    request : ColumnRequest
        What the caller requested for the column.
    row_numbers : ndarray of int, shape (n_rows,)
        Row numbers in the table from which the rows were selected.

    Returns
    -------
    list of ColumnInfo
        One record; two for texts that repeat, which are both a category and a text.
    """
    has_id_name = request.may_drop and _ID_NAME.search(name) is not None
    if has_id_name and _is_code(cells):  # not an identifier of the rows
        request = request._replace(kind="category")
    column = _infer_kind(name, cells, request)
    if request.kind is not None or not column.is_used:
        return [column]
    drop_reason = Reason.NONE
    if has_id_name:
        drop_reason = Reason.ID_NAME
    elif request.may_drop:
        drop_reason = _identifier_reason(cells, row_numbers)
    if drop_reason is not Reason.NONE:
        return [column.drop(drop_reason)]
    if _is_also_text(column):
        return [column, ColumnInfo(name, "text", column.n_missing)]
    return [column]


def _is_also_text(column: ColumnInfo) -> bool:
    """Whether the values of a category are phrases, whose words are also features."""
    has_many_values = column.kind == "category" and len(column.categories) > FEW_VALUES
    return has_many_values and _are_phrases(column.categories)


def _is_code(cells: AnyArray) -> bool:
    """Whether whole numbers or texts have many rows per value."""
    if cells.ndim > 1 or cells.dtype.kind not in "iuO":
        return False
    # values that repeat often, in contrast to identifiers of rows
    values = cells[~missing_mask(cells)]
    n_distinct = len(set(values.tolist()))
    return len(values) > ROWS_PER_CODE * n_distinct


def _are_phrases(texts: Sequence[str]) -> bool:
    """Whether more than half of the texts have several words."""
    n_phrases = sum(" " in text.strip() for text in texts)
    return 2 * n_phrases > len(texts)


def _infer_kind(name: str, cells: AnyArray, request: ColumnRequest) -> ColumnInfo:
    """Infer the kind of a column; the name and the order of the rows are ignored."""
    n_missing = int(missing_mask(cells).sum())
    column = ColumnInfo(name, "number", n_missing)
    if n_missing == len(cells):
        return column.drop(Reason.EMPTY)
    if are_mixed(cells):
        return column.drop(Reason.MIXED_OBJECTS)
    if cells.ndim > 1:
        return column._replace(kind="vector")
    if request.order is not None:
        return _order_column(column, cells, request.order)
    if cells.dtype == object:
        return _infer_text(column, cells, request)
    return _infer_from_dtype(column, cells, request)


def _infer_from_dtype(column: ColumnInfo, cells: AnyArray, request: ColumnRequest) -> ColumnInfo:
    """Infer the kind of numbers, booleans or dates."""
    if request.kind == "category":
        return _category_column(column, cells, is_requested=True)
    is_date = cells.dtype.kind == "M"
    is_bool = cells.dtype.kind == "b"
    if request.kind == "number" and is_date:
        return column.drop(Reason.DATES)
    if request.kind == "number" and is_bool:
        return column.drop(Reason.WORDS, repr(as_text(cells[0].item())))
    if is_date:
        return _date_column(column, cells, date_format="")
    if is_bool:
        return _category_column(column, cells, is_requested=True)
    return column


def _infer_text(column: ColumnInfo, cells: AnyArray, request: ColumnRequest) -> ColumnInfo:
    """Infer the kind of a column of texts."""
    nonmissing_cells = cells[~missing_mask(cells)]
    sample = [str(text) for text in cell_as_text(nonmissing_cells[:SAMPLE])]
    if request.kind == "category":
        return _category_column(column, cells, is_requested=True)
    date_format = find_date_format(sample)
    if date_format is not None:
        if request.kind == "number":
            return column.drop(Reason.DATES)
        return _date_column(column, cells, date_format)
    number_format = find_format(sample)
    if number_format is not None:
        return _quantity_column(column, cells, number_format)
    n_numbers = sum(not math.isnan(parse_number(text)) for text in sample)
    if request.kind != "number":
        return _infer_words(column, cells, sample, n_numbers)
    if n_numbers < len(sample):
        return column.drop(Reason.WORDS, _example_word(sample))
    return column


def _infer_words(
    column: ColumnInfo, cells: AnyArray, sample: list[str], n_numbers: int
) -> ColumnInfo:
    """Infer whether texts are a category, numbers, a text or an identifier."""
    category = _category_column(column, cells, is_requested=False)
    n_values = len(category.categories) + category.n_rare
    if category.kind == "category" and n_values <= FEW_VALUES:
        return category
    has_leading_zeros = any(re.match(r"0\d", text) for text in sample)
    if n_numbers > MIN_NUMERIC * len(sample) and not has_leading_zeros:
        return _number_column(column, cells, sample)
    if not category.is_used and _are_phrases(sample):
        return column._replace(kind="text")
    return category


def _number_column(column: ColumnInfo, cells: AnyArray, sample: list[str]) -> ColumnInfo:
    """Numbers written as text; words among them are missing values."""
    if not any(math.isnan(parse_number(text)) for text in sample):  # no words
        return column
    n_missing = 0  # with the words
    for text in cell_as_text(cells):
        if text is None or math.isnan(parse_number(text)):
            n_missing += 1
    return column._replace(
        n_missing=n_missing, reason=Reason.WORDS_AS_MISSING, detail=_example_word(sample)
    )


def _quantity_column(
    column: ColumnInfo, cells: AnyArray, number_format: NumberFormat
) -> ColumnInfo:
    """Numbers with one unit; words among them are missing values."""
    column = column._replace(form=str(number_format))
    texts = cell_as_text(cells)
    words = [text for text in texts if text and math.isnan(parse_quantity(text, number_format))]
    if not words:
        return column
    return column._replace(
        n_missing=column.n_missing + len(words),
        reason=Reason.WORDS_AS_MISSING,
        detail=_quote(words[0]),
    )


def _order_column(column: ColumnInfo, cells: AnyArray, order: Sequence[str]) -> ColumnInfo:
    """Words with an order, which must name all of them."""
    words = [str(as_text(word)) for word in order]
    texts = {text for text in cell_as_text(cells) if text is not None}
    unknown = sorted(texts - set(words))
    if unknown:
        return column.drop(Reason.UNKNOWN_WORD, _quote(unknown[0]))
    return column._replace(kind="order", categories=tuple(words))


def _date_column(column: ColumnInfo, cells: AnyArray, date_format: str) -> ColumnInfo:
    """Dates, with the parts that vary."""
    dates = as_dates(cells, date_format)
    is_missing = np.isnat(dates)
    numbers = date_parts(dates[~is_missing], DATE_PARTS)
    varying_parts = []
    for date_part, values in zip(DATE_PARTS, numbers.T, strict=True):
        if np.ptp(values) > 0:
            varying_parts.append(date_part)
    if not varying_parts:  # all dates are equal
        varying_parts = ["days"]
    return column._replace(
        kind="date",
        n_missing=int(is_missing.sum()),
        categories=tuple(varying_parts),
        form=date_format,
    )


def _category_column(column: ColumnInfo, cells: AnyArray, *, is_requested: bool) -> ColumnInfo:
    """A category; if it has many values, the values that occur once share one feature.

    Unless the category is requested, a column whose values hardly repeat is an identifier.
    """
    n_rows_of_value = Counter(text for text in cell_as_text(cells) if text is not None)
    n_values = len(n_rows_of_value)
    n_rows = sum(n_rows_of_value.values())
    has_few_values = n_values <= FEW_VALUES
    has_repeated_values = n_values <= max(5, n_rows / 2)  # two rows per value on average
    takes_all_values = is_requested or (has_few_values and has_repeated_values)
    min_count = 1  # rows of a value that has a feature
    if not takes_all_values:
        min_count = 2
    categories = _category_values(n_rows_of_value, min_count)
    n_rows_of_categories = sum(n_rows_of_value[value] for value in categories)
    if not takes_all_values and n_rows_of_categories < MIN_REPEATED * n_rows:
        example = _quote(min(n_rows_of_value))
        detail = f"{n_values:,} values in {n_rows:,} rows, such as {example}"
        return column.drop(Reason.UNIQUE_VALUES, detail)
    n_rare = n_rows - n_rows_of_categories
    return column._replace(kind="category", categories=tuple(categories), n_rare=n_rare)


def _category_values(n_rows_of_value: Counter[str], min_count: int) -> list[str]:
    """Values that occur often enough to have a feature, at most `MAX_VALUES`; sorted."""
    values = [value for value, n_rows in n_rows_of_value.items() if n_rows >= min_count]
    if len(values) > MAX_VALUES:
        values = [value for value, _ in n_rows_of_value.most_common(MAX_VALUES)]
    return sorted(values)


def _identifier_reason(cells: AnyArray, row_numbers: Indices) -> Reason:
    """Why whole numbers look like identifiers; `Reason.NONE` if they do not."""
    # whole numbers may be identifiers of the rows: if they count the rows, or are very long
    if cells.dtype.kind not in "iuf" or cells.ndim > 1:
        return Reason.NONE
    is_missing = missing_mask(cells)
    values = cells[~is_missing]
    if (values != np.floor(values)).any():
        return Reason.NONE
    if not is_missing.any() and _is_row_counter(values, row_numbers):
        return Reason.ROW_COUNTER
    lowest = float(values.min())
    highest = float(values.max())
    if cells.dtype.kind == "f":  # large floats may be measured: all have to be long
        are_long = lowest >= LONG_NUMBER
    else:
        are_long = max(-lowest, highest) >= LONG_NUMBER
    if are_long:
        return Reason.LONG_NUMBERS
    return Reason.NONE


def _is_row_counter(values: AnyArray, row_numbers: Indices) -> bool:
    """Whether whole numbers count the rows of the table from which the rows were selected.

    A counter rises by at least 1 from row to row, and at least every second number of its range
    occurs in the table.
    """
    if len(values) < MIN_COUNTER_ROWS:
        return False
    order = np.argsort(row_numbers, kind="stable")
    # the values rise by at least one a row, and have a range that is not much longer than the table
    steps = np.diff(values[order].astype(np.float64))
    row_steps = np.diff(row_numbers[order])
    n_table_rows = int(row_numbers.max() - row_numbers.min()) + 1
    is_dense = float(values.max()) - float(values.min()) < 2 * n_table_rows
    rises_with_rows = (row_steps > 0) & (steps >= row_steps)
    return is_dense and bool(rises_with_rows.all())


def _example_word(sample: list[str]) -> str:
    """The first text of a sample that is not a number, quoted."""
    # the first text of the sample that is no number
    words = (text for text in sample if math.isnan(parse_number(text)))
    return _quote(next(words, sample[0]))


def _quote(text: str) -> str:
    return f"{text!r:.40}"
