"""Tables of scores of rows and columns, from long and wide files."""

from __future__ import annotations

import os
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rankwise.arrays import Array, Indices
from rankwise.datasets.columns import column_numbers, distinct_cells
from rankwise.datasets.files import PathLike
from rankwise.datasets.labels import show
from rankwise.datasets.tables import Table, open_table
from rankwise.inputs import check_option
from rankwise.machine import check_matrix_fits

LAYOUTS = ("auto", "wide", "long")
ROLES = (
    ("row", "rows", "user", "user_id", "instance"),
    ("column", "columns", "item", "item_id", "label"),
    ("score", "rating", "value", "y"),
)


class ScoreTable(NamedTuple):
    """Scores of rows and columns.

    Attributes
    ----------
    Y : ndarray of shape (n_rows, n_columns)
        Scores, nan where there is none.
    rows, columns : ndarray of str
        Names, in the order of their first appearance.
    """

    Y: Array
    rows: NDArray[np.str_]
    columns: NDArray[np.str_]


def read_score_table(
    path: PathLike,
    *,
    layout: str = "auto",
    delimiter: str | None = None,
    decimal: str | None = None,
) -> ScoreTable:
    r"""Read a table of scores: CSV, TSV, Parquet, Feather or JSON.

    Parameters
    ----------
    path : str or path
        A *wide* file has a line for each row: its name, then a score for each column, which the
        first line names. A *long* file has a line for each known cell: row, column, score. Empty
        cells, nan and NA are unknown.
    layout : {"auto", "wide", "long"}
        "auto" takes a file for long if it has columns called row, column and score (or user, item
        and rating), or three columns of which the first names some rows twice.
    delimiter, decimal : str, optional
        As in `read_ranking`.

    Returns
    -------
    ScoreTable
        Scores and names.

    Raises
    ------
    TableFormatError
        If a cell is no number, or a row, a column or a cell comes twice.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = Path(folder) / "ratings.csv"
    ...     _ = file.write_text("user,item,rating\nann,tea,5\nbob,tea,2\nann,rum,1")
    ...     table = read_score_table(file)
    >>> table.rows.tolist(), table.columns.tolist()
    (['ann', 'bob'], ['tea', 'rum'])
    >>> table.Y
    array([[ 5.,  1.],
           [ 2., nan]])
    """
    check_option("layout", layout, LAYOUTS)
    table = open_table(os.fspath(path), delimiter, decimal)
    if len(table.names) < 3:
        raise table.error(
            f"the file has {len(table.names)} columns, expected the names of rows and scores for "
            "two columns or more, or the three columns row, column and score."
        )
    names = [name.strip().lower() for name in table.names]
    roles = [next((names.index(n) for n in usual if n in names), None) for usual in ROLES]
    places = (0, 1, 2) if None in roles else roles
    if layout == "auto":
        is_long = None not in roles
        if not is_long and len(table.names) == 3:
            codes, texts = distinct_cells(table.read([0], [])[0])
            is_long = len(texts) < len(codes)
        layout = "long" if is_long else "wide"
    return _long(table, *places) if layout == "long" else _wide(table)


def _long(table: Table, row: int, column: int, score: int) -> ScoreTable:
    columns = table.read([row, column], [score])
    i, rows = _labels(table, columns[row], "row")
    j, labels = _labels(table, columns[column], "column")
    values = column_numbers(table, score, columns[score], "target")
    check_matrix_fits(len(rows), len(labels), "a table", "read fewer rows or columns")
    again = _repeated(i * len(labels) + j)
    if again is not None:
        cell = f"the row {show(rows[i[again]])} has a second score for {show(labels[j[again]])}"
        raise table.error(f"{cell}; give each cell one score, such as the mean.", again)
    Y = np.full((len(rows), len(labels)), np.nan)
    Y[i, j] = values
    return ScoreTable(Y, np.array(rows), np.array(labels))


def _wide(table: Table) -> ScoreTable:
    places = list(range(1, len(table.names)))
    columns = table.read([0], places)
    codes, texts = _labels(table, columns[0], "row")
    again = _repeated(codes)
    if again is not None:
        name = show(texts[codes[again]])
        raise table.error(f"the row {name} comes a second time; give it one line.", again)
    check_matrix_fits(len(codes), len(places), "a table", "read fewer rows or columns")
    scores = [column_numbers(table, at, columns[at], "target") for at in places]
    names = np.array([table.names[at] for at in places])
    return ScoreTable(np.column_stack(scores), np.array(texts)[codes], names)


def _labels(table: Table, column: Any, what: str) -> tuple[Indices, list[str]]:
    """The distinct labels of a column, none of them empty, and which each row has."""
    codes, texts = distinct_cells(column)
    if "" in texts:
        empty = int((codes == texts.index("")).argmax())
        raise table.error(f"the {what} has no name. Give it one, or leave out the line.", empty)
    return codes, texts


def _repeated(codes: Indices) -> int | None:
    """The first row whose code was there before."""
    _, first = np.unique(codes, return_index=True)
    again = np.setdiff1d(np.arange(len(codes)), first)
    return int(again[0]) if len(again) else None
