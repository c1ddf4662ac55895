"""Tables of scores and their two sides: long and wide files, and files of features."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rankwise.arrays import Array, Indices
from rankwise.datasets.files import PathLike
from rankwise.datasets.labels import show
from rankwise.datasets.table_files import OpenTable, open_table
from rankwise.datasets.table_values import (
    column_labels,
    column_numbers,
    distinct_cells,
    refuse_first,
)
from rankwise.errors import TableFormatError
from rankwise.machine import check_matrix_fits
from rankwise.options import check_option

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


class ItemFeatures(NamedTuple):
    """Features of the rows or the columns of a table.

    Attributes
    ----------
    names : ndarray of str
        Names of the items.
    X : ndarray of shape (n_items, n_features)
        Features.
    feature_names : list of str
        Names of the features.
    categories : dict
        The values of each column of text.
    """

    names: NDArray[np.str_]
    X: Array
    feature_names: list[str]
    categories: dict[str, list[str]]

    def of(self, names: Sequence[str] | NDArray[np.str_], path: PathLike, what: str) -> Array:
        """The features of these items, in this order.

        Raises
        ------
        ValueError
            If an item has none; `path` and `what` ("row", "column") are for the message.
        """
        place = {name: k for k, name in enumerate(self.names.tolist())}
        missing = [name for name in names if str(name) not in place]
        if missing:
            raise ValueError(
                f"{os.fspath(path)} has no features of {len(missing)} {what}"
                f"{'s' if len(missing) > 1 else ''} of the table, the first is {show(missing[0])}; "
                "add them, or leave out the scores."
            )
        return np.asarray(self.X[[place[str(name)] for name in names]])


def read_score_table(
    path: PathLike,
    *,
    layout: str = "auto",
    delimiter: str | None = None,
    decimal: str | None = None,
) -> ScoreTable:
    r"""Read a table of scores: CSV, TSV, Parquet, Feather or JSON lines.

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
        As in `read_table`.

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
    source = open_table(os.fspath(path), delimiter, decimal)
    if len(source.names) < 3:
        problem = (
            f"the file has {len(source.names)} columns, expected the names of rows and scores for "
            "two columns or more, or the three columns row, column and score."
        )
        raise TableFormatError(source.path, source.line, problem)
    roles = _roles(source)
    if layout == "long" or (layout == "auto" and (roles is not None or _repeats(source))):
        return _long(source, roles or (0, 1, 2))
    return _wide(source)


def read_item_features(
    path: PathLike,
    *,
    categories: Mapping[str, Sequence[str]] | None = None,
    delimiter: str | None = None,
    decimal: str | None = None,
) -> ItemFeatures:
    """Read features of rows or columns: names in the first column, features in the others.

    Parameters
    ----------
    path : str or path
        CSV, TSV, Parquet, Feather or JSON lines with a line for each item. An empty cell is nan.
        A column of text becomes a column of zeros and ones for each of its values, called
        ``column=value``. A file of kernel values has a column for each item, in the order of the
        lines.
    categories : mapping, optional
        The columns of text and their values, if they are known: `categories` of the features that
        a model was trained on. Other values are zeros in all of these columns.
    delimiter, decimal : str, optional
        As in `read_table`.

    Returns
    -------
    ItemFeatures
        Names and features.

    Raises
    ------
    TableFormatError
        If an item comes twice, a column has words beside numbers, or nearly as many words as
        items.
    """
    source = open_table(os.fspath(path), delimiter, decimal)
    features = list(range(1, len(source.names)))
    if not features:
        problem = "the file has one column, expected names of items and their features."
        raise TableFormatError(source.path, source.line, problem)
    table = source.read([0], features)
    names = _names(source, table, "item")
    found: dict[str, list[str]] = {}
    parts, titles = [], []
    for at in features:
        name = str(source.names[at])
        known = None if categories is None else categories.get(name)
        values = _numbers_or_words(source, at, table) if known is None else None
        if values is not None:
            parts.append(values[:, None])
            titles.append(name)
            continue
        codes, texts = _words(source, at, table[str(at)])
        found[name] = _values_of(source, name, texts, len(names)) if known is None else list(known)
        place = {text: k for k, text in enumerate(found[name])}
        value = np.array([place.get(text, -1) for text in texts])[codes]
        parts.append((value[:, None] == np.arange(len(place))).astype(np.float64))
        titles += [f"{name}={text}" for text in found[name]]
    return ItemFeatures(names, np.hstack(parts), titles, found)


def _numbers_or_words(source: OpenTable, at: int, table: Any) -> Array | None:
    """The numbers of a column, nan where there are none; None if it has words and no number."""
    try:
        values = column_numbers(source, at, table, "feature")
    except TableFormatError:
        if _are_words(_words(source, at, table[str(at)])[1]):
            return None
        raise
    refuse_first(source, at, np.isinf(values), "feature")
    return values


def _words(source: OpenTable, at: int, column: Any) -> tuple[Indices, list[str]]:
    """The distinct words of a column, and which each item has; it may be empty."""
    if column.null_count == len(column):
        return np.zeros(len(column), dtype=np.intp), [""]
    return distinct_cells(source, at, column, "feature")


def _are_words(texts: Sequence[str]) -> bool:
    """Whether no cell is a number, and some cell is a word."""
    words = [text for text in texts if text.strip().lower() not in ("", "nan", "na", "null")]
    return bool(words) and not any(_is_number(text) for text in words)


def _is_number(text: str) -> bool:
    try:
        float(text.replace(",", "."))
    except ValueError:
        return text.strip().lower() in ("true", "false")
    return True


def _values_of(source: OpenTable, name: str, texts: Sequence[str], n_items: int) -> list[str]:
    """The values of a column of text, in order; not if they are nearly as many as the items."""
    values = sorted(text for text in texts if text)
    if len(values) > max(n_items // 2, 2):
        problem = (
            f"column {show(name)} has {len(values)} different texts for {n_items} items, which "
            "says nothing about other items; leave the column out of the file."
        )
        raise TableFormatError(source.path, source.line, problem)
    return values


def _roles(source: OpenTable) -> tuple[int, int, int] | None:
    """Places of row, column and score, if the columns are called so."""
    names = [str(name).strip().lower() for name in source.names]
    found = [next((names.index(n) for n in usual if n in names), None) for usual in ROLES]
    if None in found:
        return None
    row, column, score = (int(at) for at in found if at is not None)
    return row, column, score


def _repeats(source: OpenTable) -> bool:
    """Whether there are three columns, and the first names something twice."""
    if len(source.names) != 3:
        return False
    codes, texts = column_labels(source, 0, source.read([0], [])["0"], "row")
    return len(texts) < len(codes)


def _long(source: OpenTable, roles: tuple[int, int, int]) -> ScoreTable:
    row, column, score = roles
    table = source.read([row, column], [score])
    i, rows = column_labels(source, row, table[str(row)], "row")
    j, columns = column_labels(source, column, table[str(column)], "column")
    values = column_numbers(source, score, table, "target")
    refuse_first(source, score, np.isinf(values), "target")
    _check_size(len(rows), len(columns))
    _refuse_repeated(source, i, j, rows, columns)
    Y = np.full((len(rows), len(columns)), np.nan)
    Y[i, j] = values
    return ScoreTable(Y, np.array(rows), np.array(columns))


def _refuse_repeated(
    source: OpenTable, i: Indices, j: Indices, rows: list[str], columns: list[str]
) -> None:
    key = i * len(columns) + j
    _, first = np.unique(key, return_index=True)
    if len(first) < len(key):
        again = int(np.setdiff1d(np.arange(len(key)), first)[0])
        problem = (
            f"the row {show(rows[i[again]])} has a second score for the column "
            f"{show(columns[j[again]])}; give each cell one score, such as the mean."
        )
        raise TableFormatError(source.path, source.place(again), problem)


def _wide(source: OpenTable) -> ScoreTable:
    columns = list(range(1, len(source.names)))
    table = source.read([0], columns)
    names = _names(source, table, "row")
    _check_size(len(names), len(columns))
    Y = np.empty((len(names), len(columns)))
    for k, at in enumerate(columns):
        Y[:, k] = column_numbers(source, at, table, "target")
        refuse_first(source, at, np.isinf(Y[:, k]), "target")
    return ScoreTable(Y, names, np.array([str(source.names[at]) for at in columns]))


def _names(source: OpenTable, table: object, what: str) -> NDArray[np.str_]:
    """Names in the first column, each once."""
    codes, texts = column_labels(source, 0, table["0"], what)  # type: ignore[index]
    if len(texts) < len(codes):
        _, first = np.unique(codes, return_index=True)
        again = int(np.setdiff1d(np.arange(len(codes)), first)[0])
        problem = f"the {what} {show(texts[codes[again]])} comes a second time; give it one line."
        raise TableFormatError(source.path, source.place(again), problem)
    return np.array(texts)[codes]


def _check_size(n_rows: int, n_columns: int) -> None:
    check_matrix_fits(n_rows, n_columns, "a table", "read fewer rows or columns")
