"""Files of scores: one a line, or as a column beside the table they were computed from."""

from __future__ import annotations

import csv
import io
import json
import os
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rankwise.datasets.files import PathLike, import_arrow, numbered_lines, replace_file
from rankwise.datasets.table_files import ArrowTable, TableFile, format_of_suffix, open_table
from rankwise.datasets.vocabulary import finite_number, shown_value
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
    with replace_file(path) as stream:
        stream.write(scores_text(scores, gaps).encode())


def scores_text(scores: ArrayLike, gaps: bool = False) -> str:
    """One score a line, in the shortest way that reads back as the same number."""
    numbers = _as_scores(scores, gaps).astype(np.float64)
    return "".join([f"{number!r}\n" for number in numbers.tolist()])


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
    numbers = []
    for number, line in numbered_lines(name, error=TableFormatError):
        value = finite_number(line)
        if value is None:
            problem = f"got {shown_value(line.strip())}, expected one finite number a line"
            raise TableFormatError(name, number, f"{problem} and nothing else.")
        numbers.append(value + 0.0)  # minus zero is zero
    if not numbers:
        raise TableFormatError(name, None, "the file is empty, expected one score a line.")
    return np.array(numbers)


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
    source: PathLike | TableFile,
    path: PathLike,
    scores: ArrayLike | Mapping[str, ArrayLike],
    *,
    column: str = "prediction",
    delimiter: str | None = None,
    order: ArrayLike | None = None,
) -> None:
    r"""Copy a table and add the scores of its rows as last columns.

    Parameters
    ----------
    source : str or path
        CSV, TSV, Parquet, Feather or JSON file.  The rows of a text are copied as they are,
        quotation marks included, without blank lines; other files keep their columns and types.
    path : str or path
        File to write, whole or not at all, of the same kind; it may be `source`.  The suffixes
        ``.gz``, ``.bz2``, ``.xz`` and ``.zst`` compress.
    scores : array-like of shape (n_rows,), or mapping from str to such arrays
        One score for each row, NaN where there is none; whole numbers, such as ranks, are written
        as such.  A mapping has the names of several columns.
    column : str, default="prediction"
        Name of the new column.
    delimiter : str, optional
        Character between the columns of `source`, if `read_ranking` had to be told.
    order : array-like of int, shape (n_rows,), optional
        The rows in the order in which they are to be written; as in `source` if not given.

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
    columns = scores if isinstance(scores, Mapping) else {column: scores}
    added = {name: _as_scores(values, gaps=True) for name, values in columns.items()}
    table: Any = (
        source if isinstance(source, TableFile) else open_table(os.fspath(source), delimiter)
    )
    kind = table.format if isinstance(table, ArrowTable) else "csv"
    suffix = format_of_suffix(os.fspath(path))
    if suffix not in (None, kind, "tsv" if kind == "csv" else None):
        raise ValueError(f"{table.path} is a {kind} file, and so is its copy; rename {path}.")
    n_rows = table.n_rows()
    for name, values in added.items():
        if not name or name != name.strip() or not name.isprintable():
            raise ValueError(f"column is {name!r}; pass a name without surrounding blanks.")
        if name in table.names:
            raise table.error(
                f"the column {shown_value(name)} is there already. Choose another name."
            )
        if len(values) != n_rows:
            raise ValueError(f"{table.path} has {n_rows} rows but there are {len(values)} scores.")
    places = np.arange(n_rows) if order is None else np.asarray(order)
    write = {"csv": _write_text, "json": _write_json}.get(kind, _write_arrow)
    with replace_file(path) as stream:
        write(stream, table, added, places)


def _write_arrow(stream: Any, table: Any, added: dict[str, NDArray[Any]], order: Any) -> None:
    """A copy of a Parquet or Feather file."""
    rows = table.file.read() if table.format == "parquet" else table.whole
    for name, values in added.items():
        rows = rows.append_column(name, import_arrow().array(values, from_pandas=True))
    if table.format == "parquet":
        import_arrow("pyarrow.parquet").write_table(rows.take(order), stream)
    else:
        import_arrow("pyarrow.feather").write_feather(rows.take(order), stream)


def _write_text(stream: Any, table: Any, added: dict[str, NDArray[Any]], order: Any) -> None:
    """The lines of a CSV file with more cells in each."""

    def extended(text: str, cells: Iterable[Any]) -> bytes:
        more = io.StringIO()
        csv.writer(more, delimiter=table.delimiter, lineterminator="").writerow(["x", *cells])
        row = text.rstrip("\r\n")
        return (row + more.getvalue()[1:] + (text[len(row) :] or "\n")).encode()

    texts = (text for _, text, cells in table.records() if cells)
    rows = list(map(extended, texts, _rows_of(added)))
    stream.write(extended(table.header_text, added))
    stream.writelines(rows[k] for k in order)


def _write_json(stream: Any, table: Any, added: dict[str, NDArray[Any]], order: Any) -> None:
    """Objects with more entries in each, one a line or in an array."""
    text = bytes(table.content).decode("utf-8-sig")
    is_array = text.lstrip().startswith("[")
    rows = json.loads(text) if is_array else map(json.loads, filter(str.strip, text.split("\n")))
    new = [
        row | {name: None if cell == "" else cell for name, cell in zip(added, cells, strict=True)}
        for row, cells in zip(rows, _rows_of(added), strict=True)
    ]
    sorted_rows = [new[k] for k in order]
    for document in [sorted_rows] if is_array else sorted_rows:
        stream.write(json.dumps(document, ensure_ascii=False).encode() + b"\n")


def _rows_of(added: dict[str, NDArray[Any]]) -> Iterator[tuple[Any, ...]]:
    """The new cells of each row; NaN is an empty cell."""
    columns = [["" if v != v else v for v in values.tolist()] for values in added.values()]
    return zip(*columns, strict=True)
