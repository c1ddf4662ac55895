"""Files of scores: one a line, or as a column of a copy of the scored table."""

from __future__ import annotations

import csv
import io
import json
import math
import os
from collections.abc import Iterable, Mapping
from typing import IO, TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from rankwise.arrays import Array, Indices, Numbers
from rankwise.datasets.delimited_table import DelimitedTable
from rankwise.datasets.file_formats import format_of_suffix
from rankwise.datasets.files import PathLike, import_arrow, numbered_lines, replace_file
from rankwise.datasets.open_tables import open_table
from rankwise.datasets.table_files import ArrowTable, TableFile
from rankwise.datasets.vocabulary import finite_number, shown_value
from rankwise.errors import TableFormatError
from rankwise.frames import as_array

Cell: TypeAlias = str | int | float


def write_scores(path: PathLike, scores: ArrayLike, *, gaps: bool = False) -> None:
    """Write one score a line, in the order of the input, as SVMrank does.

    Parameters
    ----------
    path : str or path
        File, written completely or not at all; ``.gz``, ``.bz2``, ``.xz`` and ``.zst`` compress.
    scores : array-like of shape (n_rows,)
        Finite numbers; each is written as the shortest text that is read back as the same number.
    gaps : bool, default=False
        Whether scores may be NaN, which is written as nan.

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
    with replace_file(path) as stream:
        stream.write(scores_text(scores, gaps).encode())


def scores_text(scores: ArrayLike, gaps: bool = False) -> str:
    """Return one score a line, as the shortest text that is read back as the same number."""
    numbers = _as_scores(scores, gaps).astype(np.float64)
    return "".join([f"{number!r}\n" for number in numbers.tolist()])


def read_scores(path: PathLike) -> Array:
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
        If a line is not one finite number, or there are no lines.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from rankwise.datasets import read_scores, write_scores
    >>> path = Path(tempfile.mkdtemp()) / "scores.txt"
    >>> write_scores(path, [0.5, -2.0])
    >>> read_scores(path)
    array([ 0.5, -2. ])
    """
    name = os.fspath(path)
    scores = []
    for line_number, line in numbered_lines(name, error=TableFormatError):
        score = finite_number(line)
        if score is None:
            raise TableFormatError(
                name,
                line_number,
                f"got {shown_value(line.strip())}, expected one finite number per line and "
                "nothing else.",
            )
        scores.append(score + 0.0)  # minus zero is zero
    if not scores:
        raise TableFormatError(name, None, "the file is empty, expected one score per line.")
    return np.array(scores)


def _as_scores(scores: ArrayLike, gaps: bool = False) -> Numbers:
    """Return the scores as float64, or as int64 if they are integers (ranks)."""
    numbers: Numbers = np.asarray(as_array(scores))
    if numbers.dtype.kind in "iu":
        numbers = numbers.astype(np.int64)
    else:
        numbers = numbers.astype(np.float64)
    if numbers.ndim != 1:
        raise ValueError(f"scores has the shape {numbers.shape}; pass one score per row.")
    is_invalid = np.isinf(numbers)
    if not gaps:
        is_invalid |= np.isnan(numbers)
    if is_invalid.any():
        row = int(is_invalid.argmax())
        raise ValueError(f"scores[{row}] is {numbers[row]}; scores must be finite.")
    return numbers


def write_table_with_scores(
    source: PathLike | TableFile,
    path: PathLike,
    scores: ArrayLike | Mapping[str, ArrayLike],
    *,
    column: str = "prediction",
    delimiter: str | None = None,
    order: ArrayLike | None = None,
) -> None:
    r"""Write a copy of a table with the scores of its rows as last columns.

    Use it to add predictions or ranks to a file without changing its other columns.

    Parameters
    ----------
    source : str or path
        CSV, TSV, Parquet, Feather or JSON file. The rows of a text are copied unchanged, including
        quotation marks, without blank lines; other formats keep their columns and types.
    path : str or path
        File of the same format, written completely or not at all; it may be `source`. The suffixes
        ``.gz``, ``.bz2``, ``.xz`` and ``.zst`` compress.
    scores : array-like of shape (n_rows,), or mapping from str to such arrays
        One score for each row, NaN if a row has none. Integers, such as ranks, are written as
        integers. A mapping has one array for each new column.
    column : str, default="prediction"
        Name of the new column.
    delimiter : str, optional
        Character between the columns of `source`, as for `read_ranking`.
    order : array-like of int, shape (n_rows,), optional
        Rows in the order in which they are written; by default the order of `source`.

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
    scores_of_column: Mapping[str, ArrayLike]
    if isinstance(scores, Mapping):
        scores_of_column = scores
    else:
        scores_of_column = {column: scores}
    new_columns = {name: _as_scores(values, gaps=True) for name, values in scores_of_column.items()}
    if isinstance(source, TableFile):
        table = source
    else:
        table = open_table(os.fspath(source), delimiter)
    _check_suffix_of_copy(table, os.fspath(path))
    n_rows = table.n_rows()
    _check_new_columns(table, new_columns, n_rows)
    row_order = np.arange(n_rows)
    if order is not None:
        row_order = np.asarray(order)
    with replace_file(path) as stream:
        if isinstance(table, DelimitedTable):
            _write_text(stream, table, new_columns, row_order)
        elif isinstance(table, ArrowTable) and table.format == "json":
            _write_json(stream, table, new_columns, row_order)
        elif isinstance(table, ArrowTable):
            _write_arrow(stream, table, new_columns, row_order)


def _check_suffix_of_copy(table: TableFile, path: str) -> None:
    """Refuse to write a copy whose suffix belongs to another format than the table."""
    table_format: str = "csv"
    allowed_formats: tuple[str | None, ...] = (None, "csv", "tsv")  # None: another suffix
    if isinstance(table, ArrowTable):
        table_format = table.format
        allowed_formats = (None, table.format)
    if format_of_suffix(path) not in allowed_formats:
        raise ValueError(
            f"{table.path} is a {table_format} file, and so is its copy; rename {path}."
        )


def _check_new_columns(table: TableFile, new_columns: Mapping[str, Numbers], n_rows: int) -> None:
    """Refuse new columns with the name of another column or with another number of rows."""
    for name, values in new_columns.items():
        is_valid_name = name and name == name.strip() and name.isprintable()
        if not is_valid_name:
            raise ValueError(f"column is {name!r}; pass a name without surrounding spaces.")
        if name in table.names:
            raise table.error(
                f"the table already has a column {shown_value(name)}. Choose another name."
            )
        if len(values) != n_rows:
            raise ValueError(f"{table.path} has {n_rows} rows but there are {len(values)} scores.")


def _write_arrow(
    stream: IO[bytes], table: ArrowTable, new_columns: Mapping[str, Numbers], row_order: Indices
) -> None:
    """Write a Parquet or Feather file with the new columns."""
    arrow = import_arrow()
    arrow_table = table.read_table()
    for name, values in new_columns.items():
        arrow_table = arrow_table.append_column(name, arrow.array(values, from_pandas=True))
    arrow_table = arrow_table.take(row_order)
    if table.format == "parquet":
        import_arrow("pyarrow.parquet").write_table(arrow_table, stream)
    else:
        import_arrow("pyarrow.feather").write_feather(arrow_table, stream)


def _write_text(
    stream: IO[bytes], table: DelimitedTable, new_columns: Mapping[str, Numbers], row_order: Indices
) -> None:
    """Write the lines of a text table with the new cells at their ends."""
    lines = [record.text for record in table.records() if record.cells]
    extended_lines = [
        _append_cells(line, cells, table.delimiter)
        for line, cells in zip(lines, _new_cells_of_rows(new_columns), strict=True)
    ]
    stream.write(_append_cells(table.header_text, list(new_columns), table.delimiter))
    stream.writelines(extended_lines[row] for row in row_order)


def _append_cells(line: str, cells: Iterable[Cell], delimiter: str) -> bytes:
    """Append cells to a line, in front of its line end."""
    # The writer quotes cells; behind a first cell "x" the new cells begin with a delimiter.
    row = io.StringIO()
    csv.writer(row, delimiter=delimiter, lineterminator="").writerow(["x", *cells])
    delimiter_and_cells = row.getvalue().removeprefix("x")
    text = line.rstrip("\r\n")
    line_end = line[len(text) :] or "\n"
    return f"{text}{delimiter_and_cells}{line_end}".encode()


def _write_json(
    stream: IO[bytes], table: ArrowTable, new_columns: Mapping[str, Numbers], row_order: Indices
) -> None:
    """Write objects with the new entries, in an array or one a line like the table."""
    text = bytes(table.content).decode("utf-8-sig")
    is_array = text.lstrip().startswith("[")
    if is_array:
        objects = json.loads(text)
    else:
        objects = [json.loads(line) for line in text.split("\n") if line.strip()]
    extended_objects = []
    for row_object, cells in zip(objects, _new_cells_of_rows(new_columns), strict=True):
        values = [None if cell == "" else cell for cell in cells]
        new_entries = dict(zip(new_columns, values, strict=True))
        extended_objects.append(row_object | new_entries)
    ordered_objects = [extended_objects[row] for row in row_order]
    documents = ordered_objects  # one a line
    if is_array:
        documents = [ordered_objects]
    for document in documents:
        stream.write(json.dumps(document, ensure_ascii=False).encode() + b"\n")


def _new_cells_of_rows(new_columns: Mapping[str, Numbers]) -> list[tuple[Cell, ...]]:
    """Return the new cells of each row; NaN is an empty cell."""
    cells_of_columns = []
    for values in new_columns.values():
        cells_of_columns.append(["" if math.isnan(value) else value for value in values.tolist()])
    return list(zip(*cells_of_columns, strict=True))
