"""Columns of a table as arrays: numbers and labels, and what is wrong with a cell."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankwise.datasets.files import import_arrow
from rankwise.datasets.labels import (
    GAPS,
    MAX_LABEL,
    MISSING,
    as_text,
    distinct_labels,
    finite_number,
    show,
)
from rankwise.datasets.number_text import is_text, spelled_numbers
from rankwise.datasets.table_files import OpenTable
from rankwise.datasets.table_text import TextTable
from rankwise.errors import TableFormatError

_EXACT = 2**53  # whole numbers up to here are floats
_BATCH = 1 << 12  # rows
_EXPECTED = {
    "target": "a finite number, or nothing for an item without a score",
    "magnitude": "a finite number such as 1 or 0.5",
    "weight": "a finite number of 0 or more, such as 1 or 0.5",
}


def distinct_cells(
    source: OpenTable, at: int, column: Any, role: str
) -> tuple[NDArray[np.intp], list[str]]:
    """The distinct cells of a column as text without surrounding blanks, and which each row has."""
    arrow = import_arrow()
    if arrow.types.is_nested(column.type) or arrow.types.is_null(column.type):
        _refuse_type(source, at, role, "Write it as whole numbers or strings.")
    if not _is_number(column.type):
        column = column.cast(arrow.string(), safe=False)
    encoded = column.combine_chunks().dictionary_encode(null_encoding="encode")
    if isinstance(encoded, arrow.ChunkedArray):
        encoded = encoded.combine_chunks()
    spelled = [as_text(value) for value in encoded.dictionary.to_pylist()]
    place_of = {text: k for k, text in enumerate(dict.fromkeys(spelled))}
    codes = np.array([place_of[text] for text in spelled], dtype=np.intp)
    return codes[encoded.indices.to_numpy(zero_copy_only=False)], list(place_of)


def column_labels(
    source: OpenTable, at: int, column: Any, role: str
) -> tuple[NDArray[np.intp], list[str]]:
    """The distinct labels of a column, none of them empty or very long, and which each row has."""
    codes, texts = distinct_cells(source, at, column, role)
    for code, text in enumerate(texts):
        if text and len(text) <= MAX_LABEL:
            continue
        problem = f"the {role} is empty. Give it a label, or leave out the row."
        if text:
            length = f"{len(text)} characters, at most {MAX_LABEL} are read"
            problem = f"the {role} {show(text)} has {length}."
        elif role == "group":
            problem += " Pass group=None to rank all rows as one list."
        raise TableFormatError(source.path, source.place(int((codes == code).argmax())), problem)
    return codes, texts


def group_labels(source: OpenTable, at: int, column: Any, role: str = "group") -> NDArray[Any]:
    """One label per row: int64 if all are whole numbers, else strings."""
    types = import_arrow().types
    is_whole = types.is_integer(column.type) and not types.is_uint64(column.type)
    if is_whole and not column.null_count:
        labels: NDArray[Any] = column.to_numpy().astype(np.int64, copy=False)
        return labels
    codes, texts = column_labels(source, at, column, role)
    return distinct_labels(texts, canonical=True)[codes]


def column_numbers(source: OpenTable, at: int, table: Any, role: str) -> NDArray[np.float64]:
    """A column as float64, NaN where there is nothing."""
    (column,) = _number_columns(source, [at], table, role)
    floats: NDArray[np.float64] = column.cast("double", safe=False).to_numpy()
    return floats + 0.0  # minus zero is zero


def _number_columns(source: OpenTable, wanted: Sequence[int], table: Any, role: str) -> list[Any]:
    """The columns themselves if they have numbers, else the numbers that their cells spell."""
    types = import_arrow().types
    columns = {at: table[str(at)] for at in wanted}
    for at, column in columns.items():
        if types.is_boolean(column.type):
            columns[at] = column.cast("double")
    others = [at for at, column in columns.items() if not _is_number(column.type)]
    texts = source.read(others, []) if others else {}
    for at in others:
        cells = texts[str(at)]
        if not is_text(cells):
            remedy = f"Pass {role}= with the right one."
            if role == "feature":
                remedy = "Or leave it out with ignore=."
            _refuse_type(source, at, role, f"Convert it to whole numbers or floats. {remedy}")

        def numbers(n_rows: int, cells: Any = cells) -> Any:
            return spelled_numbers(cells[:n_rows], source.decimal, source.thousands)

        columns[at] = numbers(len(cells))
        if columns[at] is None:
            sizes = range(1, len(cells) + 1)
            row = bisect_left(sizes, True, key=lambda n_rows: numbers(n_rows) is None)
            _refuse_cell(source, row, at, role)
    return [columns[at] for at in wanted]


def column_matrix(source: OpenTable, features: Sequence[int], table: Any) -> NDArray[np.float64]:
    """The features as one array, stored by rows: one pass over blocks that stay in the cache."""
    parts = _number_columns(source, features, table, "feature")
    X, squares = np.empty((table.num_rows, len(parts))), np.zeros(len(parts))
    rest = X
    for batch in import_arrow().table(parts, [str(at) for at in features]).to_batches():
        columns = [column.to_numpy(zero_copy_only=False) for column in batch.columns]
        columns = [values.astype(np.float64, copy=False) for values in columns]
        for start in range(0, batch.num_rows, _BATCH):
            block = slice(start, min(start + _BATCH, batch.num_rows))
            for k, values in enumerate(columns):
                np.add(values[block], 0.0, out=rest[block, k])  # minus zero is zero
        with np.errstate(over="ignore", invalid="ignore"):
            squares += [values @ values for values in columns]
        rest = rest[batch.num_rows :]
    with_doubt = np.flatnonzero(~(squares < _EXACT**2))  # large, or not finite
    for k in with_doubt.tolist():
        _check_exact(source, features[k], parts[k])
        refuse_first(source, features[k], ~np.isfinite(X[:, k]), "feature")
    return X


def _check_exact(source: OpenTable, at: int, column: Any) -> None:
    """Refuse whole numbers that floats do not have: an identifier would become another one."""
    arrow, compute = import_arrow(), import_arrow("pyarrow.compute")
    is_integer = arrow.types.is_integer(column.type)
    if not is_integer and not isinstance(source, TextTable):
        return
    ends = compute.min_max(column).as_py()
    limit = _EXACT if is_integer else 2**63  # a text of more digits is read as a float
    if ends["min"] is None or (ends["min"] >= -limit and ends["max"] <= limit):
        return
    if not is_integer:
        column = source.read([at], [])[str(at)]
    for row, cell in enumerate(column.to_pylist()):
        text = str(cell).strip().removeprefix("-")
        value = int(text) if text.isdecimal() and len(text) < 300 else 0
        if int(float(value)) != value:
            problem = (
                f"column {show(source.names[at])} is {cell}, which a float would round. Leave "
                "it out with ignore= if it is an identifier. Or pass it as id=."
            )
            raise TableFormatError(source.path, source.place(row), problem)


def refuse_first(source: OpenTable, at: int, is_bad: NDArray[np.bool_], role: str) -> None:
    """Raise an error about the first bad row of a column, if there is one."""
    if is_bad.any():
        _refuse_cell(source, int(is_bad.argmax()), at, role)


def _refuse_cell(source: OpenTable, row: int, at: int, role: str) -> None:
    """Say why a cell is no number, and what to do."""
    name, cell = show(source.names[at]), source.spelled(row, at).strip()
    shown = show(cell.replace("\n", " "))
    if role != "feature":
        expected = _EXPECTED.get(role, "a finite number")
        problem = f"the {role}, column {name}, is {shown}, expected {expected}."
        if role in _EXPECTED:
            problem += f" Pass {role}= if this is not the {role}."
        if role == "target":
            problem += " Write numbers for words, the larger the better."
    elif cell.lower() in MISSING | GAPS:
        problem = (
            f"the value of column {name} is missing ({shown}). Fill in the missing values "
            "before reading, for example with the mean of the column. Or leave the column out with "
            "ignore=."
        )
    else:
        remedy = "Encode words as numbers. Or leave the column out with ignore=."
        if cell.lower().lstrip("+-").startswith("inf"):
            remedy = "Write nothing for a gap. Or leave the column out with ignore=."
        elif finite_number(cell.replace(",", ".")) is not None:
            remedy = "Write decimals with a point. Or pass decimal=','."
        elif re.search("[0-9]", cell):
            remedy = "Write the number alone, or the same mark (%, currency) in all rows."
        problem = f"column {name} is {shown}, expected a finite number. {remedy}"
    raise TableFormatError(source.path, source.place(row), problem)


def _refuse_type(source: OpenTable, at: int, role: str, remedy: str) -> None:
    kind = source.read([], [at]).schema.field(0).type
    problem = f"the column {show(source.names[at])} has the type {kind}, which cannot be a {role}."
    raise TableFormatError(source.path, None, f"{problem} {remedy}")


def _is_number(kind: Any) -> bool:
    types = import_arrow().types
    return bool(types.is_integer(kind) or types.is_floating(kind))
