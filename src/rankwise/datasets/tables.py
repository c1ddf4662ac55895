"""Read ranking data from tables: CSV and its relatives, and Parquet."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from rankwise.datasets.decimals import parse_decimals
from rankwise.datasets.file_kinds import kind_of
from rankwise.datasets.files import PathLike, Watch, numbered_lines
from rankwise.datasets.group_labels import GroupLabels
from rankwise.datasets.parquet import read_parquet
from rankwise.datasets.ranking_data import RankingData
from rankwise.datasets.table_columns import (
    MISSING,
    Column,
    TableColumns,
    Wishes,
    choose_columns,
)
from rankwise.datasets.table_records import read_header
from rankwise.datasets.table_rows import Block, read_blocks
from rankwise.datasets.labels import finite_number, show
from rankwise.errors import LetorFormatError
from rankwise.progress import Meter

__all__ = ["read_table"]

_MIB = 2**20


def read_table(
    path: PathLike,
    *,
    target: Column | None = "auto",
    group: Column | None = "auto",
    id: Column | None = None,
    ignore: Sequence[Column] = (),
    features: Sequence[Column] | None = None,
    delimiter: str | None = None,
    target_needed: bool = True,
    show_progress: bool | None = None,
) -> RankingData:
    """Read a table with one item a row: CSV, TSV or Parquet.

    Parameters
    ----------
    path : str or path
        Text in UTF-8 whose first line names the columns, plain or compressed by gzip, bzip2 or xz;
        or a Parquet file, for which pyarrow has to be installed.
    target : str, int or None, default="auto"
        Column with the relevance labels, by name or by position counted from 0.  "auto" takes the
        one called y, label, relevance, target or score, in small or capital letters.  None: there
        is no target.  Empty cells, nan and NA become NaN: items without a score.
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
        Character between the columns; by default the comma, tab, semicolon or bar that gives the
        header most columns.
    target_needed : bool, default=True
        Whether a file without target column is an error.  If not, `y` is None then.
    show_progress : bool, optional
        Whether to draw a bar on standard error; by default only if that is a terminal.

    Returns
    -------
    RankingData
        ``X`` (float64), ``y``, ``groups``, ``ids`` and ``feature_names``.  `groups` is int64 if all
        labels are whole numbers, else strings; None if there is no such column.

    Raises
    ------
    LetorFormatError
        If the columns are not clear or a cell cannot be read; the message names file, line, column
        and remedy.
    ImportError
        If it is a Parquet file and pyarrow is missing.
    OSError
        If the file cannot be opened.

    See Also
    --------
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
    name = os.fspath(path)
    wishes = Wishes(target, group, id, ignore, features, target_needed)
    kind = kind_of(name)
    if kind == "parquet":
        if delimiter is not None:
            raise ValueError(f"{name} is a Parquet file; leave out delimiter.")
        return read_parquet(name, wishes, show_progress)
    if kind == "letor":
        raise LetorFormatError(
            name,
            None,
            "this file is in the LETOR (svmlight) format, expected a table with a line of column "
            "names. Read it with read_letor or read_ranking (format='letor', --format letor).",
        )
    return _read_text(name, wishes, delimiter, show_progress)


def _read_text(
    path: str, wishes: Wishes, delimiter: str | None, show_progress: bool | None
) -> RankingData:
    meter = Meter(
        f"reading {os.path.basename(path)} (MiB)",
        max(1, -(-os.path.getsize(path) // _MIB)),
        show_progress,
    )
    lines = numbered_lines(path, _watch(meter))
    header = read_header(path, lines, delimiter)
    columns = choose_columns(path, header.line, header.names, wishes)
    data = _assembled(path, columns, read_blocks(path, lines, header.delimiter, columns))
    meter.close()
    return data


def _watch(meter: Meter) -> Watch | None:
    return (lambda done: meter.update(done // _MIB)) if meter.is_shown else None


def _assembled(path: str, columns: TableColumns, blocks: Iterator[Block]) -> RankingData:
    features, targets, ids = [], [], []
    groups = GroupLabels()
    for block in blocks:
        features.append(block.X)
        if columns.target is not None:
            name = columns.names[columns.target]
            targets.append(_targets(path, block.lines, name, block.cells[columns.target]))
        if columns.group is not None:
            groups.extend(path, block.lines, block.cells[columns.group])
        if columns.id is not None:
            ids.extend(block.cells[columns.id])
    if not features:
        raise LetorFormatError(path, None, "the file has column names but no rows below them.")
    X = np.concatenate(features)
    order = np.argsort(np.argsort(columns.features))  # X is in file order, the wish may be another
    return RankingData(
        X if (np.diff(order) == 1).all() else np.ascontiguousarray(X[:, order]),
        np.concatenate(targets) if targets else None,
        groups.labels() if columns.group is not None else None,
        np.array(ids, dtype=object) if columns.id is not None else None,
        np.array(columns.feature_names, dtype=object),
    )


def _targets(path: str, lines: list[int], name: str, cells: list[str]) -> NDArray[np.float64]:
    values = parse_decimals("\n".join(cells).encode("utf-8"), len(cells))
    if values is None:
        numbered = zip(lines, cells, strict=True)
        values = np.array([_target_value(path, line, name, cell) for line, cell in numbered])
    return values


def _target_value(path: str, line: int, name: str, cell: str) -> float:
    if cell.lower() in MISSING:
        return np.nan
    value = finite_number(cell.encode("utf-8"))
    if value is None:
        raise LetorFormatError(
            path,
            line,
            f"the target, column {show(name)}, is {show(cell)}, expected a finite number, or "
            "nothing for an item without a score. Pass target= (--target) if this is not the "
            "target.",
        )
    return value + 0.0  # minus zero is zero, as on the fast path
