"""Read ranking data from tables: as arrays of numbers, or with names and types of all columns."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rankwise.datasets.files import PathLike, import_arrow
from rankwise.datasets.labels import as_text, show
from rankwise.datasets.number_text import is_text, spelled_numbers, with_gaps
from rankwise.datasets.ranking_data import RankingData
from rankwise.datasets.table_columns import Column, ColumnOptions, TableColumns, choose_columns
from rankwise.datasets.table_files import OpenTable, open_table
from rankwise.datasets.table_text import TextTable
from rankwise.datasets.table_values import (
    column_matrix,
    column_numbers,
    group_labels,
    refuse_first,
)
from rankwise.errors import TableFormatError


class RankingTable(NamedTuple):
    """A table of items with the names and types of its columns.

    Attributes
    ----------
    X : pyarrow.Table
        The columns that are nothing else; gaps are nulls.
    y : ndarray of shape (n_rows,) or None
        Scores; larger is better.
    groups : ndarray of shape (n_rows,) or None
        Group label of each row.
    ids : ndarray of str objects of shape (n_rows,) or None
        Names of the items.
    weight : ndarray of shape (n_rows,) or None
        Weights of the items.
    n_without_score : int
        Number of rows that were left out because they have no score.
    """

    X: Any
    y: NDArray[np.float64] | None
    groups: NDArray[Any] | None
    ids: NDArray[np.object_] | None
    weight: NDArray[np.float64] | None
    n_without_score: int


def read_table(
    path: PathLike,
    *,
    target: Column | None = "auto",
    group: Column | None = "auto",
    id: Column | None = None,
    ignore: Sequence[Column] = (),
    features: Sequence[Column] | None = None,
    delimiter: str | None = None,
    decimal: str | None = None,
    header: bool = True,
    target_needed: bool = True,
) -> RankingData:
    """Read a table of numbers with one item a row: CSV, TSV, Parquet, Feather or JSON lines.

    Parameters
    ----------
    path : str or path
        Text in UTF-8 (or UTF-16 with its mark) whose first line names the columns, a Parquet or
        Feather file, or one JSON object a line; plain or compressed by gzip, bzip2, xz or
        zstandard.  ``-`` is standard input.
    target : str, int or None, default="auto"
        Column with the relevance labels, by name or by position counted from 0.  "auto" takes the
        one called y, label, relevance, target, score or rating, in small or capital letters.
        None: there is no target.  Empty cells, nan and NA become NaN: items without a score.
    group : str, int or None, default="auto"
        Column with the group (query) of each item.  "auto" takes the one called group, groups,
        group_id, qid, query, query_id, user, user_id, session or session_id, if there is one.
        None: all items are one list, and such a column is a feature unless ignored.
    id : str or int, optional
        Column with the names of the items.
    ignore : list of str or int, default=()
        Columns to leave out.
    features : list of str or int, optional
        Columns of X, in this order; by default all that are nothing else, in the order of the file.
        An empty list reads no features.
    delimiter : str, optional
        Character between the columns of a text; by default the comma, tab, semicolon or bar that
        gives the header most columns.
    decimal : {".", ","}, optional
        Mark in front of the decimals; by default a comma only where the delimiter is another
        character and the first rows show it.
    header : bool, default=True
        Whether the first line of a text names the columns.  If not, their names are their numbers
        from 0.
    target_needed : bool, default=True
        Whether a file without target column is an error.  If not, `y` is None then.

    Returns
    -------
    RankingData
        ``X`` (float64), ``y``, ``groups``, ``ids`` and ``feature_names``.  `groups` is int64 if all
        labels are whole numbers, else strings; None if there is no such column.

    Raises
    ------
    TableFormatError
        If the columns are not clear or a cell cannot be read; the message names file, line, column
        and remedy.  Gaps, words and whole numbers that a float would round are such errors.
    ImportError
        If pyarrow is missing.
    OSError
        If the file cannot be opened.

    See Also
    --------
    read_frame : Keep text, dates and gaps.
    read_ranking : Read a file of whatever kind.
    write_table_with_scores : Write the table back with a column of predictions.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = Path(folder) / "hotels.csv"
    ...     _ = file.write_text('''hotel,query,price,stars,relevance
    ... Ritz,7,310,5,1
    ... "Lake, north",7,95.5,3,2
    ... Astoria,8,120,4,''')
    ...     data = read_table(file, id="hotel")
    >>> data.X
    array([[310. ,   5. ],
           [ 95.5,   3. ],
           [120. ,   4. ]])
    >>> data.y, data.groups
    (array([ 1.,  2., nan]), array([7, 7, 8]))
    >>> list(data.ids), list(data.feature_names)
    (['Ritz', 'Lake, north', 'Astoria'], ['price', 'stars'])
    """
    source = open_table(os.fspath(path), delimiter, decimal, header)
    options = ColumnOptions(target, group, id, ignore, features, target_needed)
    columns = choose_columns(source, options)
    table = _read_columns(source, columns)
    return RankingData(
        column_matrix(source, columns.features, table),
        *_roles(source, columns, table),
        np.array(columns.feature_names, dtype=object),
    )


def read_frame(
    path: PathLike,
    *,
    target: Column | None = "auto",
    group: Column | None = "auto",
    id: Column | None = None,
    weight: Column | None = None,
    ignore: Sequence[Column] = (),
    features: Sequence[Column] | None = None,
    delimiter: str | None = None,
    decimal: str | None = None,
    header: bool = True,
    target_needed: bool = True,
    text: Sequence[Column] = (),
    numeric: Sequence[Column] = (),
    keep_unscored: bool = False,
) -> RankingTable:
    """Read a table with one item a row and keep text, dates and gaps as they are.

    Rows without a score are left out and counted, unless they are to be kept.

    Parameters
    ----------
    path, target, group, id, ignore, features, delimiter, decimal, header, target_needed
        See `read_table`.
    weight : str or int, optional
        Column with the weights of the items: numbers from 0 on.
    text, numeric : lists of str or int, default=()
        Features to read as they are spelled, and features that have to be numbers or gaps: a
        word in them is an error that names it.
    keep_unscored : bool, default=False
        Whether rows without a score stay, with NaN in `y`.

    Returns
    -------
    RankingTable
        ``X`` as an Arrow table, of which ``X.to_pandas()`` or ``polars.from_arrow(X)`` make a data
        frame; ``y``, ``groups``, ``ids``, ``weight`` as arrays.

    Raises
    ------
    TableFormatError
        As `read_table` does, but not for gaps and words; and if no row has a score.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = Path(folder) / "hotels.csv"
    ...     _ = file.write_text('''query,price,town,relevance
    ... 7,310,Rome,1
    ... 7,,Turku,2
    ... 8,120,Rome,''')
    ...     data = read_frame(file)
    >>> data.X.to_pydict(), data.y, data.n_without_score
    ({'price': [310, None], 'town': ['Rome', 'Turku']}, array([1., 2.]), 1)
    """
    source = open_table(os.fspath(path), delimiter, decimal, header)
    options = ColumnOptions(
        target, group, id, ignore, features, target_needed, weight, text, numeric
    )
    columns = choose_columns(source, options)
    table = _with_numbers(source, columns, _read_columns(source, columns))
    X = table.select([str(k) for k in columns.features]).rename_columns(columns.feature_names)
    for k, (at, column) in enumerate(zip(columns.features, X.columns, strict=True)):
        if is_text(column):
            numbers = None
            if isinstance(source, TextTable) and at not in columns.text:
                numbers = spelled_numbers(column, source.decimal, source.thousands)
            column = with_gaps(column) if numbers is None else numbers
            X = X.set_column(k, X.column_names[k], column)
    y, groups, ids = _roles(source, columns, table)
    weights = None
    if columns.weight is not None:
        weights = column_numbers(source, columns.weight, table, "weight")
        refuse_first(source, columns.weight, ~((weights >= 0) & (weights < np.inf)), "weight")
    if y is None or keep_unscored or not np.isnan(y).any():
        return RankingTable(X, y, groups, ids, weights, 0)
    kept = np.flatnonzero(~np.isnan(y))
    if not len(kept):
        name = show(source.names[columns.target or 0])
        raise TableFormatError(source.path, None, f"no row has a score: column {name} is empty.")
    left: list[Any] = [None if part is None else part[kept] for part in (y, groups, ids, weights)]
    return RankingTable(X.take(kept), left[0], left[1], left[2], left[3], len(y) - len(kept))


def _read_columns(source: OpenTable, columns: TableColumns) -> Any:
    texts = [at for at in (columns.group, columns.id, *columns.text) if at is not None]
    values = [at for at in (columns.target, columns.weight) if at is not None]
    return source.read(texts, [*values, *columns.features])


def _roles(
    source: OpenTable, columns: TableColumns, table: Any
) -> tuple[NDArray[np.float64] | None, NDArray[Any] | None, NDArray[np.object_] | None]:
    """Target, group and names of all rows."""
    y = groups = ids = None
    if columns.target is not None:
        y = column_numbers(source, columns.target, table, "target")
        refuse_first(source, columns.target, np.isinf(y), "target")
    if columns.group is not None:
        groups = group_labels(source, columns.group, table[str(columns.group)])
    if columns.id is not None:
        names = table[str(columns.id)].to_pylist()
        ids = np.array([as_text(value) for value in names], dtype=object)
    return y, groups, ids


def _with_numbers(source: OpenTable, columns: TableColumns, table: Any) -> Any:
    """Numbers in the columns that have to have them; a word is an error with its line."""
    arrow = import_arrow()
    for at in columns.numeric:
        column = table[str(at)]
        if arrow.types.is_null(column.type):
            numbers = column.cast(arrow.float64())
        else:
            floats = column_numbers(source, at, table, "feature")
            refuse_first(source, at, np.isinf(floats), "feature")
            numbers = arrow.chunked_array([arrow.array(floats, from_pandas=True)])
        table = table.set_column(table.column_names.index(str(at)), str(at), numbers)
    return table
