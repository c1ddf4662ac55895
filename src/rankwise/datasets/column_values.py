"""Values of the columns of a table: labels, times, missing cells."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankwise.arrays import Array, Indices
from rankwise.datasets.files import import_arrow
from rankwise.datasets.table_files import TableFile
from rankwise.datasets.times import in_days, read_times
from rankwise.datasets.vocabulary import GAPS, MISSING, as_text, distinct_labels, shown_value
from rankwise.errors import warn_user
from rankwise.formatting import join_words


def distinct_cells(column: Any) -> tuple[Indices, list[str]]:
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
        arrow = import_arrow()
        if arrow.types.is_nested(column.type):
            raise ValueError(f"a column has the type {column.type}, expected numbers or text.")
        if not is_number(column.type):
            column = column.cast(arrow.string(), safe=False)
        encoded = column.combine_chunks().dictionary_encode(null_encoding="encode")
        if isinstance(encoded, arrow.ChunkedArray):
            encoded = encoded.combine_chunks()
        values = encoded.dictionary.to_pylist()
        code_of_row = encoded.indices.to_numpy(zero_copy_only=False)
    else:
        code_of_value: dict[Any, int] = {}
        rows = [code_of_value.setdefault(value, len(code_of_value)) for value in column]
        code_of_row = np.array(rows, dtype=np.intp)
        values = list(code_of_value)
    texts = [as_text(value) for value in values]
    code_of_text = {text: code for code, text in enumerate(dict.fromkeys(texts))}
    codes = np.array([code_of_text[text] for text in texts], dtype=np.intp)
    return codes[code_of_row], list(code_of_text)


def label_column(column: Any) -> NDArray[Any]:
    """Return one label per row: int64 if all are integers, else strings; "" if missing."""
    types = import_arrow().types
    is_whole = types.is_integer(column.type) and not types.is_uint64(column.type)
    if is_whole and not column.null_count:
        labels: NDArray[Any] = column.to_numpy().astype(np.int64, copy=False)
        return labels
    codes, texts = distinct_cells(column)
    return distinct_labels(texts, canonical=True)[codes]


def joined_labels(columns: Sequence[Any]) -> Any:
    """Return one label for each combination of cells; missing where one cell is missing."""
    cells = []
    for column in columns:
        codes, texts = distinct_cells(column)
        cells.append([texts[code].replace("/", "//") for code in codes])
    labels = []
    for row in zip(*cells, strict=True):
        is_complete = all(row)
        labels.append(" / ".join(row) if is_complete else None)
    return import_arrow().chunked_array([labels])


def places_of_words(table: TableFile, at: int, column: Any, words: Sequence[str]) -> Any:
    """Return the position of each word in an order, from 0; other words are refused."""
    arrow = import_arrow()
    position: dict[str, int | None] = {word.lower(): k for k, word in enumerate(words)}
    position |= dict.fromkeys((MISSING | GAPS) - position.keys())
    codes, texts = distinct_cells(column)
    unknown = [k for k, text in enumerate(texts) if text.lower() not in position]
    if unknown:
        cells = join_words(shown_value(texts[k]) for k in unknown)
        problem = f"column {shown_value(table.names[at])} is {cells},"
        row = int(np.isin(codes, unknown).argmax())
        raise table.error(f"{problem} expected one of {', '.join(words)}.", row)
    positions = arrow.array([position[text.lower()] for text in texts], arrow.float64())
    return arrow.chunked_array([positions.take(arrow.array(codes))])


def complete_rows(table: Any, has_gap: dict[str, NDArray[np.bool_]]) -> Indices | None:
    """Return the rows without missing values; None if these are all rows.

    A warning reports the dropped rows. If no row is complete, the error of the table is raised.
    """
    missing = {role: int(gaps.sum()) for role, gaps in has_gap.items() if gaps.any()}
    if not missing:
        return None
    is_complete = ~np.any(list(has_gap.values()), axis=0)
    lacking = ", ".join(f"{n:,} without {role}" for role, n in missing.items())
    n_dropped = len(is_complete) - int(is_complete.sum())
    if not is_complete.any():
        raise table.error(f"no row is complete: {lacking}. Check the names of the columns.")
    warn_user(
        f"{table.path}: {n_dropped:,} of {len(is_complete):,} rows are dropped: {lacking}.",
    )
    return np.flatnonzero(is_complete)


def is_number(kind: Any) -> bool:
    """Whether an Arrow type is numeric."""
    types = import_arrow().types
    return bool(types.is_integer(kind) or types.is_floating(kind))


def is_text(column: Any) -> bool:
    """Whether an Arrow column contains text."""
    types = import_arrow().types
    return bool(types.is_string(column.type) or types.is_large_string(column.type))


def column_times(table: TableFile, at: int, column: Any) -> Array:
    """Return dates as days since 1970 and numbers unchanged; NaN for missing cells."""
    codes, texts = distinct_cells(column)
    present = np.flatnonzero([text.lower() not in MISSING for text in texts])

    def error(k: int, problem: str) -> Exception:
        return table.error(problem, int((codes == present[k]).argmax()))

    days = np.full(len(texts), np.nan)
    days[present] = in_days(read_times([texts[k] for k in present], error))
    return days[codes]


def with_missing(column: Any, words: frozenset[str] = MISSING) -> Any:
    """Return a column of texts with nulls for empty cells, NA and the like."""
    arrow = import_arrow()
    compute = import_arrow("pyarrow.compute")
    lowercase = compute.utf8_lower(compute.utf8_trim_whitespace(column))
    is_missing = compute.is_in(lowercase, arrow.array(sorted(words), column.type))
    return compute.if_else(is_missing, None, column)
