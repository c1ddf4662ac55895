"""Read ranking data, one item a row, from a file of any supported format."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from rankwise.arrays import Array, Labels, Mask
from rankwise.datasets.column_roles import (
    Column,
    ColumnArgument,
    choose_columns,
    position_of,
)
from rankwise.datasets.column_values import (
    column_times,
    complete_rows,
    is_text,
    joined_labels,
    label_column,
    levels_of_words,
    replace_words_by_nulls,
)
from rankwise.datasets.delimited_table import DelimitedTable
from rankwise.datasets.event_column import read_events
from rankwise.datasets.file_formats import Format
from rankwise.datasets.files import PathLike, import_arrow
from rankwise.datasets.letor import read_letor
from rankwise.datasets.numeric_columns import (
    column_matrix,
    column_numbers,
    parse_numbers,
    refuse_first,
    replace_words_and_numbers_by_nulls,
)
from rankwise.datasets.open_tables import open_unless_letor
from rankwise.datasets.ranking_data import RankingData
from rankwise.datasets.table_files import TableFile
from rankwise.datasets.vocabulary import as_text
from rankwise.errors import TableFormatError

if TYPE_CHECKING:
    import pyarrow as pa

#: Arguments of `read_ranking` that name columns.
COLUMN_ARGUMENTS = ("target", "group", "id", "weight", "time", "event", "ignore", "features")


def read_ranking(
    path: PathLike | TableFile,
    *,
    format: Format = "auto",
    target: Column | None = "auto",
    group: Column | Sequence[Column] | None = "auto",
    id: Column | None = None,
    weight: Column | None = None,
    time: Column | None = None,
    event: Column | None = None,
    ignore: Sequence[Column] = (),
    features: Sequence[Column] | None = None,
    as_frame: bool = False,
    text: Sequence[Column] = (),
    numeric: Sequence[Column] = (),
    missing: Sequence[str] = (),
    levels: Sequence[str] = (),
    delimiter: str | None = None,
    decimal: str | None = None,
    header: bool = True,
    n_features: int | None = None,
    zero_based: bool = False,
    target_needed: bool = True,
) -> RankingData:
    r"""Read ranking data from a file; its format is recognized by the content.

    Use it to load a table of items, with one item per row, from a file of any supported format.

    Parameters
    ----------
    path : str or path
        LETOR (svmlight with qid), CSV, TSV, Parquet, Feather or JSON (an array of objects, or one
        a line), plain or compressed by gzip, bzip2, xz, zstandard or zip; ``-`` is standard input.
        The first line of a text has the column names. The encoding is UTF-8, or UTF-16 with a byte
        order mark.
    format : {"auto", "letor", "csv", "tsv", "parquet", "feather", "json"}, default="auto"
        Format of the file. "auto" recognizes it by the first bytes and the first line, or else by
        the suffix of the name.
    target : str, int or None, default="auto"
        Column with the relevance labels, by name or by position counted from 0. "auto" selects the
        column called y, label, relevance, target, score or rating, in any case. None: there is no
        target. Empty cells, nan and NA become NaN: items without a score.
    group : str, int, list of them or None, default="auto"
        Column with the group (query) of each item; several columns define one group for each
        combination, such as "Rome / 2024". "auto" selects the column called group, groups,
        group_id, qid, query, query_id, user, user_id, session or session_id, if there is one.
        None: all items are one list, and such a column is a feature unless ignored.
    id : str or int, optional
        Column with the names of the items.
    weight : str or int, optional
        Column with the weights of the items, which are not negative.
    time : str or int, optional
        Column with the time of each item: numbers, such as years, or dates (2024-01-31).
    event : str or int, optional
        The target has right-censored survival times, and this column marks whether the event was
        observed (1, true, yes) or the time is censored (0, false, no).
    ignore : list of str or int, default=()
        Columns to drop.
    features : list of str or int, optional
        Columns of X, in this order; by default all named columns without another role, in the
        order of the file. An empty list reads no features.
    as_frame : bool, default=False
        Whether X is an Arrow table with text, dates and missing values; ``X.to_pandas()`` and
        ``polars.from_arrow(X)`` convert it to a data frame. By default X is an array of numbers,
        and missing values and words are errors.
    text, numeric : lists of str or int, default=()
        With `as_frame`: features to read as text, unchanged, and features that must be numbers or
        missing values; a word in these raises an error that quotes it.
    missing : list of str, default=()
        Words and numbers that mark missing values in this file, such as ``["k.A.", "-999"]``, in
        addition to the usual words, such as NA.
    levels : list of str, default=()
        Words of the target from the worst to the best, such as ``["bad", "fair", "good"]``; they
        become 0, 1, 2.
    delimiter : str, optional
        Character between the columns of a text; by default the comma, tab, semicolon or bar that
        gives the header the most columns.
    decimal : {".", ","}, optional
        Decimal mark; by default a comma if the delimiter is another character and the first rows
        have numbers with a decimal comma, else a point.
    header : bool, default=True
        Whether the first line of a text has the column names. If not, the columns are called 0, 1,
        and so on.
    n_features : int, optional
        Number of features that the data must have. Features that a LETOR file does not mention are
        0; a table must have exactly this number.
    zero_based : bool, default=False
        Whether the features of a LETOR file are counted from 0, as scikit-learn writes them.
    target_needed : bool, default=True
        Whether a table without a target column is an error. If not, `y` is None.

    Returns
    -------
    RankingData
        The data. Rows without a group, weight or time are dropped with a warning if the file has
        such a column. `groups` is int64 if all labels are integers, else strings. The ids of a
        LETOR file are its comments, None if no row has one.

    Raises
    ------
    DataFileError
        A LetorFormatError or TableFormatError, if the format or the columns are ambiguous or a cell
        cannot be read; the message names file, line, column and remedy. Missing values, words, and
        integers that a float would round are such errors, unless X is a frame.
    ValueError
        If an argument does not apply to this format.
    ImportError
        If pyarrow is missing; it is not needed for LETOR files.

    See Also
    --------
    read_letor : Read svmlight rows, also in chunks.
    write_table_with_scores : Write a copy of the table with a column of predictions.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     letor, table = Path(folder) / "a.txt", Path(folder) / "a.csv"
    ...     _ = letor.write_text("2 qid:7 1:0.5 2:1\n1 qid:7 1:3 2:4\n")
    ...     _ = table.write_text("y,qid,length,matches\n2,7,0.5,1\n1,7,3,4\n")
    ...     first, second = read_ranking(letor), read_ranking(table)
    >>> (first.X == second.X).all(), (first.groups == second.groups).all()
    (np.True_, np.True_)
    >>> first.feature_names, list(second.feature_names)
    (None, ['length', 'matches'])

    A frame can have text and missing values; rows without a score have NaN.

    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = Path(folder) / "hotels.csv"
    ...     _ = file.write_text('''query,price,town,relevance
    ... 7,310,Rome,1
    ... 7,,Turku,2
    ... 8,120,Rome,''')
    ...     data = read_ranking(file, as_frame=True)
    >>> data.X.to_pydict()
    {'price': [310, None, 120], 'town': ['Rome', 'Turku', 'Rome']}
    >>> data.y, data.groups
    (array([ 1.,  2., nan]), array([7, 7, 8]))
    """
    arguments: dict[str, ColumnArgument] = {
        "target": target,
        "group": group,
        "id": id,
        "weight": weight,
        "time": time,
        "event": event,
        "ignore": ignore,
        "features": features,
    }
    table: TableFile | None
    if isinstance(path, TableFile):
        table = path
    else:
        file = os.fspath(path)
        table = open_unless_letor(file, delimiter, decimal, header, format)
        if table is None:
            return read_letor_items(file, arguments, n_features, zero_based)
    if zero_based:
        raise ValueError(
            f"{table.path} is a table, whose columns have names; leave out zero_based=."
        )
    positions_of_role, feature_columns = choose_columns(table, arguments, target_needed)
    text_columns = [position_of(table, column, "text") for column in text]
    numeric_columns = [position_of(table, column, "numeric") for column in numeric]
    columns = _read_columns(
        table, positions_of_role, feature_columns, text_columns, missing, levels
    )
    if as_frame:
        X = _frame(table, feature_columns, columns, text_columns, numeric_columns)
    else:
        X = column_matrix(table, feature_columns, columns)
    if n_features is not None and len(feature_columns) != n_features:
        raise TableFormatError(
            table.path,
            None,
            f"the table has {len(feature_columns)} features, expected {n_features}. Choose them "
            "with features= or ignore=.",
        )
    feature_names = [table.names[position] for position in feature_columns]
    data = RankingData(X, None, None, feature_names=np.array(feature_names, dtype=object))
    return _add_roles(data, table, positions_of_role, columns)


def read_letor_items(
    path: str,
    column_arguments: Mapping[str, ColumnArgument],
    n_features: int | None,
    zero_based: bool,
) -> RankingData:
    """Read svmlight rows for `read_ranking`; refuse arguments that name columns.

    Parameters
    ----------
    path : str
        The file.
    column_arguments : mapping
        A value for each of `COLUMN_ARGUMENTS`.
    n_features : int or None
        Number of columns of X.
    zero_based : bool
        Whether the first feature has the id 0.
    """
    refused_arguments = []
    for name, value in column_arguments.items():
        if value not in (None, "auto", (), []):
            refused_arguments.append(f"{name}=")
    for name in ("target", "group"):
        if column_arguments[name] is None:
            refused_arguments.append(f"{name}=")
    if refused_arguments:
        raise ValueError(
            f"{path} is read as a LETOR (svmlight) file, whose columns have no names; leave out "
            f"{', '.join(refused_arguments)}. Pass format='csv' if it is a table."
        )
    data: RankingData = read_letor(path, n_features=n_features, zero_based=zero_based, ids=True)
    has_comments = data.ids is not None and any(data.ids)
    if not has_comments:
        return data._replace(ids=None)
    return data


def _read_columns(
    table: TableFile,
    positions_of_role: Mapping[str, list[int]],
    feature_columns: list[int],
    text_columns: list[int],
    missing: Sequence[str],
    levels: Sequence[str],
) -> dict[int, pa.ChunkedArray]:
    """Read the columns in use; words of `missing` become nulls, and words of `levels` numbers."""
    positions_of_text = list(text_columns)
    positions_of_numbers = list(feature_columns)
    for role, positions in positions_of_role.items():
        is_number = role == "weight" or (role == "target" and not levels)
        if is_number:
            positions_of_numbers += positions
        else:
            positions_of_text += positions
    cells = table.read(positions_of_text, positions_of_numbers)
    columns = {
        position: replace_words_and_numbers_by_nulls(column, missing)
        for position, column in cells.items()
    }
    if levels and "target" in positions_of_role:
        (position,) = positions_of_role["target"]
        columns[position] = levels_of_words(table, position, columns[position], levels)
    return columns


def _frame(
    table: TableFile,
    feature_columns: list[int],
    columns: Mapping[int, pa.ChunkedArray],
    text_columns: list[int],
    numeric_columns: list[int],
) -> pa.Table:
    """Return the features as an Arrow table; texts that spell numbers become numbers."""
    arrow = import_arrow()
    features = []
    for position in feature_columns:
        column = columns[position]
        if position in numeric_columns:
            floats = column_numbers(table, position, column, "feature")
            column = arrow.chunked_array([arrow.array(floats, from_pandas=True)])
        elif is_text(column):
            column = _numbers_or_text(table, position, column, text_columns)
        features.append(column)
    return arrow.table(features, names=[table.names[position] for position in feature_columns])


def _numbers_or_text(
    table: TableFile, position: int, column: pa.ChunkedArray, text_columns: list[int]
) -> pa.ChunkedArray:
    """Return the numbers that all cells of a text file spell, or else the texts, with nulls."""
    if isinstance(table, DelimitedTable):
        columns_as_spelled = {*text_columns, *table.columns_of_codes}
        if position not in columns_as_spelled:
            numbers, _ = parse_numbers(column, table.decimal, table.thousands)
            if numbers is not None:
                return numbers
    return replace_words_by_nulls(column)


def _add_roles(
    data: RankingData,
    table: TableFile,
    positions_of_role: Mapping[str, list[int]],
    columns: Mapping[int, pa.ChunkedArray],
) -> RankingData:
    """Add scores, groups, names, weights and times to the features; drop incomplete rows."""
    names_of_role = {
        role: ", ".join(table.names[position] for position in positions)
        for role, positions in positions_of_role.items()
    }
    data = data._replace(roles=names_of_role)
    data = _add_target(data, table, positions_of_role, columns)
    if "id" in positions_of_role:
        (position,) = positions_of_role["id"]
        ids = [as_text(value) for value in columns[position].to_pylist()]
        data = data._replace(ids=np.array(ids, dtype=object))

    is_missing: dict[str, Mask] = {}
    group_column: pa.ChunkedArray | None = None
    if "group" in positions_of_role:
        group_columns = [columns[position] for position in positions_of_role["group"]]
        group_column = _join_group_columns(group_columns)
        groups = label_column(group_column)
        data = data._replace(groups=groups)
        is_missing["group"] = _is_empty(groups)
    if "weight" in positions_of_role:
        (position,) = positions_of_role["weight"]
        weight = _read_weight(table, position, columns[position])
        data = data._replace(weight=weight)
        is_missing["weight"] = np.isnan(weight)
    if "time" in positions_of_role:
        (position,) = positions_of_role["time"]
        time = column_times(table, columns[position])
        data = data._replace(time=time)
        is_missing["time"] = np.isnan(time)

    rows_without_missing_values = complete_rows(table, is_missing)
    if rows_without_missing_values is None:
        return data
    data = data.take(rows_without_missing_values)
    if group_column is not None:
        # An empty cell makes all labels strings; without it they may be integers.
        remaining_groups = group_column.take(rows_without_missing_values)
        data = data._replace(groups=label_column(remaining_groups))
    return data


def _add_target(
    data: RankingData,
    table: TableFile,
    positions_of_role: Mapping[str, list[int]],
    columns: Mapping[int, pa.ChunkedArray],
) -> RankingData:
    """Add the scores, and the events of survival times."""
    if "target" not in positions_of_role:
        return data
    (position,) = positions_of_role["target"]
    y = column_numbers(table, position, columns[position], "target")
    if "event" not in positions_of_role:
        return data._replace(y=y)
    (position,) = positions_of_role["event"]
    return data._replace(y=y, event=read_events(table, position, columns[position], time=y))


def _join_group_columns(group_columns: Sequence[pa.ChunkedArray]) -> pa.ChunkedArray:
    """Return the only column, or one label for each combination of cells of several columns."""
    if len(group_columns) == 1:
        return group_columns[0]
    return joined_labels(group_columns)


def _is_empty(labels: Labels) -> Mask:
    """Rows without a label; integers have no missing values."""
    if labels.dtype.kind != "U":
        return np.zeros(len(labels), dtype=bool)
    is_empty: Mask = labels == ""
    return is_empty


def _read_weight(table: TableFile, position: int, column: pa.ChunkedArray) -> Array:
    """Return the weights of the items; refuse negative weights."""
    weight = column_numbers(table, position, column, "weight")
    refuse_first(table, position, column, weight < 0, "weight")
    return weight
