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
    is_arrow = hasattr(column, "combine_chunks")
    if is_arrow:
        value_code_of_row, values = _encode_arrow_values(column)
    else:
        value_code_of_row, values = _encode_values(column)

    # Distinct values may have the same text, such as 7 and "7".
    text_of_value = [as_text(value) for value in values]
    texts = list(dict.fromkeys(text_of_value))
    code_of_text = {text: code for code, text in enumerate(texts)}
    text_code_of_value = np.array([code_of_text[text] for text in text_of_value], dtype=np.intp)
    return text_code_of_value[value_code_of_row], texts


def _encode_values(values: Sequence[object]) -> tuple[Indices, list[object]]:
    """Return the code of each value, and the distinct values in the order of their codes."""
    code_of_value: dict[object, int] = {}
    codes = [code_of_value.setdefault(value, len(code_of_value)) for value in values]
    return np.array(codes, dtype=np.intp), list(code_of_value)


def _encode_arrow_values(column: pa.ChunkedArray) -> tuple[Indices, list[object]]:
    """Return the code of each value of an Arrow column, and the distinct values."""
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
    fits_in_int64 = types.is_integer(column.type) and not types.is_uint64(column.type)
    if fits_in_int64 and not column.null_count:
        labels: Labels = column.to_numpy().astype(np.int64, copy=False)
        return labels
    codes, texts = distinct_cells(column)
    return distinct_labels(texts, canonical=True)[codes]


def joined_labels(columns: Sequence[pa.ChunkedArray]) -> pa.ChunkedArray:
    """Return one label for each combination of cells; null in rows with a missing cell."""
    texts_of_column = []
    for column in columns:
        codes, texts = distinct_cells(column)
        # Doubled slashes keep "a / b" in one cell apart from the cells "a" and "b".
        texts_of_column.append([texts[code].replace("/", "//") for code in codes])
    labels: list[str | None] = []
    for texts_of_row in zip(*texts_of_column, strict=True):
        has_all_cells = all(texts_of_row)  # the text of a missing cell is empty
        label = None
        if has_all_cells:
            label = " / ".join(texts_of_row)
        labels.append(label)
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
    level_of_word: dict[str, int | None] = dict.fromkeys(MISSING | GAPS)  # None: no level
    level_of_word.update({word.lower(): level for level, word in enumerate(words)})
    codes, texts = distinct_cells(column)
    unknown_codes = [code for code, text in enumerate(texts) if text.lower() not in level_of_word]
    if unknown_codes:
        unknown_words = join_words(shown_value(texts[code]) for code in unknown_codes)
        raise table.error(
            f"column {shown_value(table.names[position])} is {unknown_words}, expected one of "
            f"{', '.join(words)}.",
            row=int(np.isin(codes, unknown_codes).argmax()),
        )
    level_of_text = arrow.array([level_of_word[text.lower()] for text in texts], arrow.float64())
    level_of_row = level_of_text.take(arrow.array(codes))
    return arrow.chunked_array([level_of_row])


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
    n_missing_of_role = {role: int(mask.sum()) for role, mask in is_missing.items() if mask.any()}
    if not n_missing_of_role:
        return None
    is_complete = ~np.any(list(is_missing.values()), axis=0)
    reasons = ", ".join(f"{n:,} without {role}" for role, n in n_missing_of_role.items())
    if not is_complete.any():
        raise table.error(f"no row is complete: {reasons}. Check the names of the columns.")
    n_rows = len(is_complete)
    n_dropped = n_rows - int(is_complete.sum())
    warn_user(f"{table.path}: {n_dropped:,} of {n_rows:,} rows are dropped: {reasons}.")
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
    time_codes = np.flatnonzero([text.lower() not in MISSING for text in texts])
    time_texts = [texts[code] for code in time_codes]

    def error_at_first_row(position: int, problem: str) -> Exception:  # position in time_texts
        first_row = int((codes == time_codes[position]).argmax())
        return table.error(problem, first_row)

    day_of_text = np.full(len(texts), np.nan)
    day_of_text[time_codes] = in_days(read_times(time_texts, error_at_first_row))
    return day_of_text[codes]


def replace_words_by_nulls(
    column: pa.ChunkedArray, words: frozenset[str] = MISSING
) -> pa.ChunkedArray:
    """Replace cells that are words for missing values, in any case, by nulls."""
    arrow = import_arrow()
    compute = import_arrow("pyarrow.compute")
    lowercase = compute.utf8_lower(compute.utf8_trim_whitespace(column))
    is_missing = compute.is_in(lowercase, arrow.array(sorted(words), column.type))
    return compute.if_else(is_missing, None, column)
