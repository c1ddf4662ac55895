"""Files of scores: one a line, or as a column beside the table they were computed from."""

from __future__ import annotations

import csv
import io
import json
import os
import sys
from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rankwise._compiled import read_rows
from rankwise.datasets.file_kinds import Kind, format_of_suffix, kind_of
from rankwise.datasets.files import (
    PathLike,
    import_arrow,
    line_blocks,
    numbered_lines,
    replace_file,
)
from rankwise.datasets.labels import finite_number, show
from rankwise.datasets.table_files import ArrowTable, open_table
from rankwise.datasets.table_text import TextTable
from rankwise.errors import TableFormatError
from rankwise.frames import as_array


def write_scores(path: PathLike, scores: ArrayLike, *, gaps: bool = False) -> None:
    """Write one score a line, in the order of the input, as SVMrank does.

    Parameters
    ----------
    path : str or path
        File to write, whole or not at all; ``.gz``, ``.bz2``, ``.xz`` and ``.zst`` compress.
    scores : array-like of shape (n_rows,)
        Finite numbers; each is written in the shortest way that reads back as the same number.
    gaps : bool
        Whether scores may be NaN; a line of them reads nan.

    Raises
    ------
    ValueError
        If the scores are not a list of finite numbers.

    See Also
    --------
    read_scores : Read such a file.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_scores(f"{folder}/scores.txt", [0.1, -2, 1e-9])
    ...     scores = read_scores(f"{folder}/scores.txt")
    >>> scores.tolist()
    [0.1, -2.0, 1e-09]
    """
    numbers = _as_scores(scores, gaps).astype(np.float64)
    with replace_file(path) as stream:
        stream.write("".join([f"{number!r}\n" for number in numbers.tolist()]).encode())


def read_scores(path: PathLike) -> NDArray[np.float64]:
    """Read a file with one number a line.

    Parameters
    ----------
    path : str or path
        Text, plain or compressed.

    Returns
    -------
    ndarray of shape (n_lines,)
        The numbers.

    Raises
    ------
    TableFormatError
        If a line holds anything but one finite number, or there are no lines.

    See Also
    --------
    write_scores : Write such a file; its example reads one, too.
    """
    name = os.fspath(path)
    blocks = []
    for first, text in line_blocks(name, error=TableFormatError):
        # one number a line is a LETOR row without features
        numbers, *_, n_read = read_rows(text, False, 1, sys.float_info.max)
        is_plain = not any(mark in text for mark in (b"#", b":"))
        if not is_plain or n_read < len(text) or len(numbers) < text.count(b"\n"):
            lines = text.split(b"\n")[:-1]
            found = [finite_number(line) for line in lines]
            if None in found:
                at = found.index(None)
                problem = f"got {show(lines[at].strip())}, expected one finite number a line"
                raise TableFormatError(name, first + at, f"{problem} and nothing else.")
            numbers = np.array(found, dtype=np.float64)
        blocks.append(numbers + 0.0)  # minus zero is zero
    if not blocks:
        raise TableFormatError(name, None, "the file is empty, expected one score a line.")
    return np.concatenate(blocks)


def _as_scores(scores: ArrayLike, gaps: bool = False) -> NDArray[Any]:
    """The scores as float64, or as int64 if they come as whole numbers (ranks)."""
    numbers: NDArray[Any] = np.asarray(as_array(scores))
    numbers = numbers.astype(np.int64 if numbers.dtype.kind in "iu" else np.float64)
    if numbers.ndim != 1:
        raise ValueError(f"scores has the shape {numbers.shape}; pass one score per row.")
    bad = np.isinf(numbers) if gaps else ~np.isfinite(numbers)
    if bad.any():
        row = int(bad.argmax())
        raise ValueError(f"scores[{row}] is {numbers[row]}; scores have to be finite.")
    return numbers


def write_table_with_scores(
    source: PathLike,
    path: PathLike,
    scores: ArrayLike,
    *,
    column: str = "prediction",
    delimiter: str | None = None,
) -> None:
    r"""Copy a table and add the scores of its rows as a last column.

    Parameters
    ----------
    source : str or path
        CSV, TSV, Parquet, Feather or JSON lines file.  The rows of a text are copied as they are,
        quotation marks and blank lines included; other files keep their columns and types.
    path : str or path
        File to write, whole or not at all, of the same kind; it may be `source`.  The suffixes
        ``.gz``, ``.bz2``, ``.xz`` and ``.zst`` compress.
    scores : array-like of shape (n_rows,)
        One finite score for each row; whole numbers, such as ranks, are written as such.
    column : str, default="prediction"
        Name of the new column.
    delimiter : str, optional
        Character between the columns of `source`, if `read_table` had to be told.

    Raises
    ------
    TableFormatError
        If `source` is not a table, cannot be read, or has a column of that name.
    ValueError
        If there are more or fewer scores than rows.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = Path(folder) / "a.csv"
    ...     _ = file.write_text('id,x\n"a, b",1\nc,2\n')
    ...     write_table_with_scores(file, file, [0.5, -1.0])
    ...     print(file.read_text())
    id,x,prediction
    "a, b",1,0.5
    c,2,-1.0
    <BLANKLINE>
    """
    name = os.fspath(source)
    numbers = _as_scores(scores)
    if not column or column != column.strip() or not column.isprintable():
        raise ValueError(f"column is {column!r}; pass a name without surrounding blanks.")
    kind = kind_of(name)
    if kind == "letor":
        raise TableFormatError(
            name,
            None,
            "this is a LETOR (svmlight) file, to which no column can be added. "
            "Write the scores one a line.",
        )
    _check_suffix(name, os.fspath(path), kind)
    table = open_table(name, delimiter, kind=kind)
    if column in table.names:
        raise TableFormatError(
            name, table.line, f"the column {show(column)} is there already. Choose another name."
        )
    if isinstance(table, ArrowTable) and kind != "jsonl":
        _write_arrow(table, path, numbers, column)
        return
    if isinstance(table, TextTable):
        records = _extended_rows(table, numbers, column)
    else:
        records = _extended_objects(name, numbers, column)
    with replace_file(path) as stream:
        for record in records:
            stream.write(record)


def _check_suffix(source: str, path: str, kind: Kind) -> None:
    """Refuse to write one kind of file under the suffix of another."""
    kinds = {"csv", "tsv"} if kind in ("table", "unclear") else {kind}
    said = format_of_suffix(path)
    if said is not None and said not in kinds:
        name = "text" if "csv" in kinds else kind
        raise ValueError(f"{source} is a {name} file and so is its copy; {path} says {said}.")


def _check_length(path: str, n_rows: int, scores: NDArray[Any]) -> None:
    if n_rows != len(scores):
        raise ValueError(f"{path} has {n_rows} rows but there are {len(scores)} scores.")


def _write_arrow(table: ArrowTable, path: PathLike, scores: NDArray[Any], column: str) -> None:
    """Copy a Parquet file, row group by row group, or a Feather file, batch by batch."""
    arrow, start = table.arrow, 0
    added = arrow.field(column, arrow.from_numpy_dtype(scores.dtype))
    with table.opened() as file:
        if table.kind == "parquet":
            parts = map(file.read_row_group, range(file.metadata.num_row_groups))
            n_rows, schema, options = file.metadata.num_rows, file.schema_arrow, {}
            if file.metadata.num_row_groups and file.metadata.num_columns:
                name = str(file.metadata.row_group(0).column(0).compression).lower()
                options["compression"] = name.replace("uncompressed", "none")
            make_writer = import_arrow("pyarrow.parquet", "Parquet files").ParquetWriter
        else:
            parts = map(file.get_batch, range(file.num_record_batches))
            n_rows, schema, options = file.read_all().num_rows, file.schema, {}
            make_writer = import_arrow("pyarrow.ipc", "Feather files").new_file
        _check_length(table.path, n_rows, scores)
        with (
            replace_file(path) as stream,
            make_writer(stream, schema.append(added), **options) as writer,
        ):
            for rows in parts:
                part = arrow.array(scores[start : start + rows.num_rows])
                writer.write(rows.append_column(added, part))
                start += rows.num_rows


def _extended_rows(table: TextTable, scores: NDArray[Any], column: str) -> Iterator[bytes]:
    """Yield the lines of a CSV file with one more cell in each."""
    _check_length(table.path, table.read([], []).num_rows, scores)
    name = io.StringIO()
    csv.writer(name, delimiter=table.delimiter, lineterminator="").writerow([column])
    yield _with_cell(table.header_text, table.delimiter + name.getvalue())
    remaining = iter(scores.tolist())
    for _, text, cells in table.records():
        yield _with_cell(text, f"{table.delimiter}{next(remaining)!r}") if cells else text.encode()


def _extended_objects(path: str, scores: NDArray[Any], column: str) -> Iterator[bytes]:
    """Yield the lines of a file of JSON objects with one more entry in each."""
    lines = [line for _, line in numbered_lines(path, error=TableFormatError) if line.strip()]
    _check_length(path, len(lines), scores)
    for line, score in zip(lines, scores.tolist(), strict=True):
        row = line.rstrip().removesuffix(b"}")
        joint = b"" if row.strip() == b"{" else b", "
        yield row + joint + f"{json.dumps(column)}: {score!r}}}\n".encode()


def _with_cell(text: str, cell: str) -> bytes:
    """Put a cell in front of the end of the line."""
    row = text.rstrip("\r\n")
    return (row + cell + (text[len(row) :] or "\n")).encode()
