"""Files of scores: one a line, or as a column beside the table they were computed from."""

from __future__ import annotations

import csv
import io
import os
from collections.abc import Iterator
from itertools import islice
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rankwise.datasets.decimals import parse_decimals
from rankwise.datasets.file_kinds import kind_of
from rankwise.datasets.files import PathLike, numbered_lines, replace_file
from rankwise.datasets.parquet import write_parquet_with_scores
from rankwise.datasets.table_records import is_blank, raw_records, read_header, split_record
from rankwise.datasets.labels import finite_number, show
from rankwise.errors import LetorFormatError

__all__ = ["read_scores", "write_scores", "write_table_with_scores"]

_BLOCK_LINES = 1 << 16


def write_scores(path: PathLike, scores: ArrayLike) -> None:
    """Write one score a line, in the order of the input, as SVMrank does.

    Parameters
    ----------
    path : str or path
        File to write, whole or not at all; ``.gz``, ``.bz2`` and ``.xz`` compress.
    scores : array-like of shape (n_rows,)
        Finite numbers; each is written in the shortest way that reads back as the same number.

    Raises
    ------
    ValueError
        If the scores are not a list of finite numbers.
    OSError
        If the file cannot be written; an old one is as it was then.

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
    numbers = _as_scores(scores).astype(np.float64)
    with replace_file(path) as stream:
        for start in range(0, len(numbers), _BLOCK_LINES):
            lines = map(repr, numbers[start : start + _BLOCK_LINES].tolist())
            stream.write("".join([f"{line}\n" for line in lines]).encode("ascii"))


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
    LetorFormatError
        If a line holds anything but one finite number, or there are no lines.
    OSError
        If the file cannot be opened.

    See Also
    --------
    write_scores : Write such a file; its example reads one, too.
    """
    name = os.fspath(path)
    lines = numbered_lines(name)
    blocks = []
    while block := list(islice(lines, _BLOCK_LINES)):
        text = b"".join([line for _, line in block]).replace(b"\r\n", b"\n").removesuffix(b"\n")
        numbers = parse_decimals(text, len(block))
        if numbers is None:
            numbers = np.array([_score(name, number, line) for number, line in block])
        blocks.append(numbers)
    if not blocks:
        raise LetorFormatError(name, None, "the file is empty, expected one score a line.")
    return np.concatenate(blocks)


def _score(path: str, number: int, line: bytes) -> float:
    value = finite_number(line)
    if value is None:
        raise LetorFormatError(
            path,
            number,
            f"got {show(line.strip())}, expected one finite number a line and nothing else.",
        )
    return value + 0.0  # minus zero is zero, as on the fast path


def _as_scores(scores: ArrayLike) -> NDArray[Any]:
    """The scores as float64, or as int64 if they come as whole numbers (ranks)."""
    numbers: NDArray[Any] = np.asarray(scores)
    numbers = numbers.astype(np.int64 if numbers.dtype.kind in "iu" else np.float64)
    if numbers.ndim != 1:
        raise ValueError(f"scores has the shape {numbers.shape}; pass one score per row.")
    if not np.isfinite(numbers).all():
        row = int((~np.isfinite(numbers)).argmax())
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
        CSV, TSV or Parquet file.  The rows of a CSV file are copied as they are, quotation marks
        and blank lines included; a Parquet file keeps its columns, types and row groups.
    path : str or path
        File to write, whole or not at all, of the same kind; it may be `source`.  The suffixes
        ``.gz``, ``.bz2`` and ``.xz`` compress.
    scores : array-like of shape (n_rows,)
        One finite score for each row; whole numbers, such as ranks, are written as such.
    column : str, default="prediction"
        Name of the new column.
    delimiter : str, optional
        Character between the columns of `source`, if `read_table` had to be told.

    Raises
    ------
    LetorFormatError
        If `source` is not a table, cannot be read, or has a column of that name.
    ValueError
        If there are more or fewer scores than rows.
    OSError
        If a file cannot be opened or written.

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
        raise LetorFormatError(
            name,
            None,
            "this is a LETOR (svmlight) file, to which no column can be added. "
            "Write the scores one a line with write_scores.",
        )
    _check_suffix(name, os.fspath(path), kind == "parquet")
    if kind == "parquet":
        write_parquet_with_scores(name, path, numbers, column)
        return
    with replace_file(path) as stream:
        for record in _extended_records(name, numbers, column, delimiter):
            stream.write(record)


def _check_suffix(source: str, path: str, is_parquet: bool) -> None:
    named_parquet = path.lower().removesuffix(".gz").endswith((".parquet", ".pq"))
    named_text = path.lower().removesuffix(".gz").endswith((".csv", ".tsv", ".tab", ".txt"))
    if named_text if is_parquet else named_parquet:
        kind, other = ("Parquet", ".parquet") if is_parquet else ("text", ".csv")
        raise ValueError(
            f"{source} is a {kind} file and so is its copy; {path} should end with {other}."
        )


def _extended_records(
    path: str, scores: NDArray[Any], column: str, delimiter: str | None
) -> Iterator[bytes]:
    """Yield the lines of a CSV file with one more cell in each."""
    lines = numbered_lines(path)
    header = read_header(path, lines, delimiter)
    if column in header.names:
        raise LetorFormatError(
            path, header.line, f"the column {show(column)} is there already. Choose another name."
        )
    mark = header.delimiter.encode()
    yield _with_cell(header.text.encode(), mark, _quoted(column, header.delimiter))
    remaining = iter(scores.tolist())
    n_rows, n_marks = 0, len(header.names) - 1
    for line, raw in raw_records(path, lines, header.delimiter):
        if is_blank(raw, mark):
            yield raw
            continue
        if raw.count(mark) != n_marks:  # a delimiter inside quotation marks, or a bad row
            split_record(path, line, raw, header.delimiter, len(header.names))
        n_rows += 1
        score = next(remaining, None)
        if score is not None:
            yield _with_cell(raw, mark, repr(score).encode())
    if n_rows != len(scores):
        raise ValueError(f"{path} has {n_rows} rows but there are {len(scores)} scores.")


def _with_cell(raw: bytes, mark: bytes, cell: bytes) -> bytes:
    """Put a cell in front of the end of the line."""
    row = raw.rstrip(b"\r\n")
    return row + mark + cell + (raw[len(row) :] or b"\n")


def _quoted(name: str, delimiter: str) -> bytes:
    text = io.StringIO()
    csv.writer(text, delimiter=delimiter, lineterminator="").writerow([name])
    return text.getvalue().encode()
