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


def places_of_words(table: TableFile, at: int, column: Any, words: Sequence[str]) -> Any:
    """The place of each word in an order, counted from 0; an unknown word is refused."""
    arrow = import_arrow()
    place: dict[str, int | None] = {word.lower(): k for k, word in enumerate(words)}
    place |= dict.fromkeys((MISSING | GAPS) - place.keys())
    codes, texts = distinct_cells(column)
    unknown = [k for k, text in enumerate(texts) if text.lower() not in place]
    if unknown:
        cells = join_words(shown_value(texts[k]) for k in unknown)
        problem = f"column {shown_value(table.names[at])} is {cells},"
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


def is_number(kind: Any) -> bool:
    """Whether a type of Arrow is one of numbers."""
    types = import_arrow().types
    return bool(types.is_integer(kind) or types.is_floating(kind))


def is_text(column: Any) -> bool:
    """Whether a column of Arrow has texts."""
    types = import_arrow().types
    return bool(types.is_string(column.type) or types.is_large_string(column.type))


def column_times(table: TableFile, at: int, column: Any) -> Array:
    """A column of dates as days since 1970, or of numbers as they are; NaN where there is none."""
    codes, texts = distinct_cells(column)
    known = np.flatnonzero([text.lower() not in MISSING for text in texts])

    def error(k: int, problem: str) -> Exception:
        return table.error(problem, int((codes == known[k]).argmax()))

    days = np.full(len(texts), np.nan)
    days[known] = in_days(read_times([texts[k] for k in known], error))
    return days[codes]


def with_missing(column: Any, words: frozenset[str] = MISSING) -> Any:
    """A column of texts; those that are blank, NA and the like are nulls."""
    arrow, compute = import_arrow(), import_arrow("pyarrow.compute")
    small = compute.utf8_lower(compute.utf8_trim_whitespace(column))
    gaps = compute.is_in(small, arrow.array(sorted(words), column.type))
    return compute.if_else(gaps, None, column)
