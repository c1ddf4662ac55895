"""Values of the columns of a table: labels, times, missing cells."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from rankwise.arrays import Array, Indices, Labels, Mask
from rankwise.datasets.files import import_arrow
from rankwise.datasets.table_files import TableFile
from rankwise.datasets.times import in_days, read_times
from rankwise.datasets.vocabulary import GAPS, MISSING, as_text, distinct_labels, shown_value
from rankwise.errors import warn_user
from rankwise.formatting import join_words

if TYPE_CHECKING:
    import pyarrow as pa


def distinct_cells(column: pa.ChunkedArray | Sequence[object]) -> tuple[Indices, list[str]]:
    """Encode the cells of a column.

    Parameters
    ----------
    column : pyarrow.ChunkedArray or list
        The column.

    Returns
    -------
    codes : ndarray of shape (n_rows,)
        Position of each cell in `texts`.
    texts : list of str
        The distinct cells without surrounding spaces; a missing cell is the empty text.
    """
    if hasattr(column, "combine_chunks"):
        value_of_row, values = _encode_arrow(column)
    else:
        code_of_value: dict[object, int] = {}
        rows = [code_of_value.setdefault(value, len(code_of_value)) for value in column]
        value_of_row = np.array(rows, dtype=np.intp)
        values = list(code_of_value)
    texts_of_values = [as_text(value) for value in values]  # 7 and "7" have the same text
    texts = list(dict.fromkeys(texts_of_values))
    code_of_text = {text: code for code, text in enumerate(texts)}
    code_of_value_number = np.array([code_of_text[text] for text in texts_of_values], dtype=np.intp)
    return code_of_value_number[value_of_row], texts


def _encode_arrow(column: pa.ChunkedArray) -> tuple[Indices, list[object]]:
    """Return the distinct values of a column of Arrow, and the position of each row's value."""
    arrow = import_arrow()
    if arrow.types.is_nested(column.type):
        raise ValueError(f"a column has the type {column.type}, expected numbers or text.")
    if not is_number(column.type) and not arrow.types.is_large_string(column.type):
        column = column.cast(arrow.string(), safe=False)
    encoded = column.combine_chunks().dictionary_encode(null_encoding="encode")
    if isinstance(encoded, arrow.ChunkedArray):
        encoded = encoded.combine_chunks()
    return encoded.indices.to_numpy(zero_copy_only=False), encoded.dictionary.to_pylist()


def label_column(column: pa.ChunkedArray) -> Labels:
    """Return one label per row: int64 if all are integers, else strings; "" if missing."""
    types = import_arrow().types
    is_whole = types.is_integer(column.type) and not types.is_uint64(column.type)
    if is_whole and not column.null_count:
        labels: Labels = column.to_numpy().astype(np.int64, copy=False)
        return labels
    codes, texts = distinct_cells(column)
    return distinct_labels(texts, canonical=True)[codes]


def joined_labels(columns: Sequence[pa.ChunkedArray]) -> pa.ChunkedArray:
    """Return one label for each combination of cells; null in rows with a missing cell."""
    cells = []
    for column in columns:
        codes, texts = distinct_cells(column)
        cells.append([texts[code].replace("/", "//") for code in codes])
    labels: list[str | None] = []
    for row in zip(*cells, strict=True):
        if all(row):
            labels.append(" / ".join(row))
        else:
            labels.append(None)
    return import_arrow().chunked_array([labels])


def levels_of_words(
    table: TableFile, position: int, column: pa.ChunkedArray, words: Sequence[str]
) -> pa.ChunkedArray:
    """Replace words by their places in an order, from 0; refuse other words.

    Parameters
    ----------
    table : TableFile
        The table.
    position : int
        Position of the column, for messages.
    column : pyarrow.ChunkedArray
        The column.
    words : sequence of str
        The words from low to high.
    """
    arrow = import_arrow()
    level_of: dict[str, int | None] = dict.fromkeys(MISSING | GAPS)
    level_of.update({word.lower(): level for level, word in enumerate(words)})
    codes, texts = distinct_cells(column)
    unknown = [code for code, text in enumerate(texts) if text.lower() not in level_of]
    if unknown:
        cells = join_words(shown_value(texts[code]) for code in unknown)
        raise table.error(
            f"column {shown_value(table.names[position])} is {cells}, expected one of "
            f"{', '.join(words)}.",
            row=int(np.isin(codes, unknown).argmax()),
        )
    levels = arrow.array([level_of[text.lower()] for text in texts], arrow.float64())
    return arrow.chunked_array([levels.take(arrow.array(codes))])


def complete_rows(table: TableFile, is_missing: Mapping[str, Mask]) -> Indices | None:
    """Return the rows without missing values; None if no row has one.

    Parameters
    ----------
    table : TableFile
        The table.
    is_missing : mapping from str to ndarray of bool
        Rows without a value, for each role of a column.

    Notes
    -----
    A warning reports the dropped rows. If no row is complete, the error of the table is raised.
    """
    n_missing = {role: int(rows.sum()) for role, rows in is_missing.items() if rows.any()}
    if not n_missing:
        return None
    is_complete = ~np.any(list(is_missing.values()), axis=0)
    lacking = ", ".join(f"{n:,} without {role}" for role, n in n_missing.items())
    n_dropped = len(is_complete) - int(is_complete.sum())
    if not is_complete.any():
        raise table.error(f"no row is complete: {lacking}. Check the names of the columns.")
    warn_user(
        f"{table.path}: {n_dropped:,} of {len(is_complete):,} rows are dropped: {lacking}.",
    )
    return np.flatnonzero(is_complete)


def is_number(kind: pa.DataType) -> bool:
    """Whether an Arrow type is numeric."""
    types = import_arrow().types
    return bool(types.is_integer(kind) or types.is_floating(kind))


def is_text(column: pa.ChunkedArray) -> bool:
    """Whether an Arrow column contains text."""
    types = import_arrow().types
    return bool(types.is_string(column.type) or types.is_large_string(column.type))


def column_times(table: TableFile, column: pa.ChunkedArray) -> Array:
    """Return dates as days since 1970 and numbers unchanged; NaN for missing cells."""
    codes, texts = distinct_cells(column)
    has_time = np.flatnonzero([text.lower() not in MISSING for text in texts])

    def error(k: int, problem: str) -> Exception:
        return table.error(problem, int((codes == has_time[k]).argmax()))

    days = np.full(len(texts), np.nan)
    days[has_time] = in_days(read_times([texts[code] for code in has_time], error))
    return days[codes]


def with_nulls(column: pa.ChunkedArray, words: frozenset[str] = MISSING) -> pa.ChunkedArray:
    """Replace cells that are words for missing values, in any case, by nulls."""
    arrow = import_arrow()
    compute = import_arrow("pyarrow.compute")
    lowercase = compute.utf8_lower(compute.utf8_trim_whitespace(column))
    is_missing = compute.is_in(lowercase, arrow.array(sorted(words), column.type))
    return compute.if_else(is_missing, None, column)
