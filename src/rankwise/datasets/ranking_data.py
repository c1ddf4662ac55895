"""Read ranking data, one item a row, from a file of any kind that the package knows."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from rankwise.arrays import Array, Indices
from rankwise.datasets.column_roles import Column, choose_columns, position_of
from rankwise.datasets.column_values import (
    column_times,
    complete_rows,
    is_text,
    joined_labels,
    label_column,
    places_of_words,
    with_missing,
)
from rankwise.datasets.files import PathLike, import_arrow
from rankwise.datasets.numeric_columns import (
    column_matrix,
    column_numbers,
    parse_numbers,
    refuse_first,
    without_words,
)
from rankwise.datasets.table_files import Format, TableFile, TextTable, open_unless_letor
from rankwise.datasets.vocabulary import as_text
from rankwise.errors import TableFormatError

Matrix: TypeAlias = Any


class RankingData(NamedTuple):
    """Items to rank; ``X, y, groups = data[:3]`` unpacks what `fit` takes.

    Attributes
    ----------
    X : ndarray, csr_matrix or pyarrow.Table of shape (n_rows, n_features)
        Features; a table keeps text, dates and gaps (nulls).
    y : ndarray of shape (n_rows,), float64, or None
        Relevance labels; larger is better.  None if the file has none, as in data to predict.
    groups : ndarray of shape (n_rows,) or None
        Group (query) label of each row, or None if the file has none: one list.
    ids : ndarray of str objects of shape (n_rows,) or None
        Comment or name of each row.
    feature_names : ndarray of str objects of shape (n_features,) or None
        Names of the columns of X, if the file has any.
    weight : ndarray of shape (n_rows,) or None
        Weights of the items.
    roles : dict from str to str
        Names of the columns that were read as "target", "group", "id" and "weight".
    rows : ndarray of int or None
        Numbers, from 0, of the rows of the file that are here; None if all are.
    time : ndarray of shape (n_rows,) or None
        When each item was; dates are days since 1970.
    """

    X: Matrix
    y: Array | None
    groups: NDArray[Any] | None
    ids: NDArray[np.object_] | None = None
    feature_names: NDArray[np.object_] | None = None
    weight: Array | None = None
    roles: dict[str, str] = {}  # noqa: RUF012, never changed
    rows: Indices | None = None
    time: Array | None = None

    def take(self, kept: Indices) -> RankingData:
        """Some of the rows, by their numbers here."""
        X = self.X.take(kept) if hasattr(self.X, "column_names") else self.X[kept]
        rows = kept if self.rows is None else self.rows[kept]
        others = {name: getattr(self, name) for name in ("y", "groups", "ids", "weight", "time")}
        taken: Any = {name: None if v is None else v[kept] for name, v in others.items()}
        return self._replace(X=X, rows=rows, **taken)


def read_ranking(
    path: PathLike | TableFile,
    *,
    format: Format = "auto",
    target: Column | None = "auto",
    group: Column | Sequence[Column] | None = "auto",
    id: Column | None = None,
    weight: Column | None = None,
    time: Column | None = None,
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
    r"""Read a ranking file whose kind is told by its content, or by `format`.

    Parameters
    ----------
    path : str or path
        LETOR (svmlight with qid), CSV, TSV, Parquet, Feather or JSON (an array of objects, or one
        a line), plain or compressed by gzip, bzip2, xz, zstandard or zip; ``-`` is standard input.
        The first line of a text names the columns; it is in UTF-8, or in UTF-16 with its mark.
    format : {"auto", "letor", "csv", "tsv", "parquet", "feather", "json"}, default="auto"
        Kind of the file; by default it is told by the first bytes and the first line, and only
        where these say nothing by the suffix of the name.
    target : str, int or None, default="auto"
        Column with the relevance labels, by name or by position counted from 0.  "auto" takes the
        one called y, label, relevance, target, score or rating, in small or capital letters.
        None: there is no target.  Empty cells, nan and NA become NaN: items without a score.
    group : str, int, list of them or None, default="auto"
        Column with the group (query) of each item; several columns make a group of each
        combination, such as "Rome / 2024".  "auto" takes the one called group, groups,
        group_id, qid, query, query_id, user, user_id, session or session_id, if there is one.
        None: all items are one list, and such a column is a feature unless ignored.
    id : str or int, optional
        Column with the names of the items.
    weight : str or int, optional
        Column with the weights of the items: numbers from 0 on.
    time : str or int, optional
        Column that says when each item was: numbers, such as years, or dates (2024-01-31).
    ignore : list of str or int, default=()
        Columns to leave out.
    features : list of str or int, optional
        Columns of X, in this order; by default all that are nothing else and have a name, in the
        order of the file.  An empty list reads no features.
    as_frame : bool, default=False
        Whether X is an Arrow table that keeps text, dates and gaps, of which ``X.to_pandas()`` or
        ``polars.from_arrow(X)`` make a data frame.  By default X is an array of numbers, and gaps
        and words in it are errors.
    text, numeric : lists of str or int, default=()
        For `as_frame`: features to read as they are spelled, and features that have to be numbers
        or gaps; a word in them is an error that names it.
    missing : list of str, default=()
        Words and numbers that stand for a gap in this file, such as ``["k.A.", "-999"]``, beside
        those that everybody understands.
    levels : list of str, default=()
        Words of the target from the worst to the best, such as ``["bad", "fair", "good"]``; they
        become 0, 1, 2.
    delimiter : str, optional
        Character between the columns of a text; by default the comma, tab, semicolon or bar that
        gives the header most columns.
    decimal : {".", ","}, optional
        Mark in front of the decimals; by default a comma only where the delimiter is another
        character and the first rows show it.
    header : bool, default=True
        Whether the first line of a text names the columns.  If not, their names are their numbers
        from 0.
    n_features : int, optional
        Number of features that the data must have.  A LETOR file may name fewer, the others are 0;
        a table has to have exactly this many.
    zero_based : bool, default=False
        Whether the features of a LETOR file count from 0, as scikit-learn writes them.
    target_needed : bool, default=True
        Whether a table without target column is an error.  If not, `y` is None then.

    Returns
    -------
    RankingData
        Rows without a group, a weight or a time, where the file has such a column, are left out
        with a warning.  `groups` is int64 if all labels are whole numbers, else strings.  The ids
        of a LETOR file are its comments, None if no row has one.

    Raises
    ------
    DataFileError
        A LetorFormatError or TableFormatError, if the kind or the columns are not clear or a cell
        cannot be read; the message names file, line, column and remedy.  Gaps, words and whole
        numbers that a float would round are such errors, unless X is a frame.
    ValueError
        If an option does not belong to this kind of file.
    ImportError
        If pyarrow is missing; LETOR files do without it.

    See Also
    --------
    read_letor : Read svmlight rows, in chunks if need be.
    write_table_with_scores : Write the table back with a column of predictions.

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

    Text and gaps stay in a frame; rows without a score have NaN.

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
    arguments = {
        "target": target,
        "group": group,
        "id": id,
        "weight": weight,
        "time": time,
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
            return _read_letor(file, arguments, n_features, zero_based)
    if zero_based:
        raise ValueError(
            f"{table.path} is a table, whose columns have names; leave out zero_based=."
        )
    roles, used = choose_columns(table, arguments, target_needed)
    texts = [position_of(table, column, "text") for column in text]
    numbers = [position_of(table, column, "numeric") for column in numeric]
    text_roles = ["group", "id", "time"]
    number_roles = ["weight"]
    if levels:
        text_roles.append("target")
    else:
        number_roles.append("target")
    label_columns = _columns_of(roles, text_roles)
    number_columns = _columns_of(roles, number_roles)
    cells = table.read([*label_columns, *texts], [*number_columns, *used])
    columns = {at: without_words(column, missing) for at, column in cells.items()}
    if levels and "target" in roles:
        (at,) = roles["target"]
        columns[at] = places_of_words(table, at, columns[at], levels)
    if as_frame:
        X = _frame(table, used, columns, texts, numbers)
    else:
        X = column_matrix(table, used, columns)
    if n_features is not None and len(used) != n_features:
        raise TableFormatError(
            table.path,
            None,
            f"the table has {len(used)} features, expected {n_features}. Choose them with "
            "features= or ignore=.",
        )
    return _with_roles(table, X, roles, used, columns)


def _columns_of(roles: dict[str, list[int]], names: Sequence[str]) -> list[int]:
    """Positions of the columns with these roles."""
    return [position for name in names for position in roles.get(name, ())]


def _read_letor(
    path: str, arguments: dict[str, Any], n_features: int | None, zero_based: bool
) -> RankingData:
    """Read svmlight rows; refuse arguments that name columns."""
    from rankwise.datasets.letor import read_letor

    refused = []
    for name, value in arguments.items():
        if value not in (None, "auto", (), []):
            refused.append(f"{name}=")
    for name in ("target", "group"):
        if arguments[name] is None:
            refused.append(f"{name}=")
    if refused:
        raise ValueError(
            f"{path} is read as a LETOR (svmlight) file, whose columns have no names; leave out "
            f"{', '.join(refused)}. Pass format='csv' if it is a table."
        )
    data: RankingData = read_letor(path, n_features=n_features, zero_based=zero_based, ids=True)
    has_comments = data.ids is not None and any(data.ids)
    if not has_comments:
        return data._replace(ids=None)
    return data


def _frame(
    table: TableFile, used: list[int], columns: dict[int, Any], texts: list[int], numbers: list[int]
) -> Any:
    """The features as an Arrow table; texts that spell numbers become numbers."""
    arrow = import_arrow()
    features = []
    for at in used:
        column = columns[at]
        if at in numbers:
            floats = column_numbers(table, at, column, "feature")
            column = arrow.chunked_array([arrow.array(floats, from_pandas=True)])
        elif is_text(column):
            parsed = None
            if isinstance(table, TextTable) and at not in {*texts, *table.codes}:
                parsed, _ = parse_numbers(column, table.decimal, table.thousands)
            column = with_missing(column) if parsed is None else parsed
        features.append(column)
    return arrow.table(features, names=[table.names[at] for at in used])


def _with_roles(
    table: TableFile, X: Any, roles: dict[str, list[int]], used: list[int], columns: dict[int, Any]
) -> RankingData:
    """The data with scores, groups, names, weights and times, without incomplete rows."""
    is_missing: dict[str, NDArray[np.bool_]] = {}
    data = RankingData(
        X,
        y=None,
        groups=None,
        feature_names=np.array([table.names[at] for at in used], dtype=object),
        roles={
            role: ", ".join(table.names[at] for at in positions)
            for role, positions in roles.items()
        },
    )
    group_column: Any = None
    for role, (at, *further) in roles.items():
        column = columns[at]
        if role == "target":
            data = data._replace(y=column_numbers(table, at, column, role))
        elif role == "group":
            group_column = column
            if further:
                group_column = joined_labels([column, *(columns[k] for k in further)])
            groups = label_column(group_column)
            data = data._replace(groups=groups)
            is_missing[role] = np.zeros(len(groups), bool)
            if groups.dtype.kind == "U":
                is_missing[role] = groups == ""
        elif role == "id":
            ids = [as_text(value) for value in column.to_pylist()]
            data = data._replace(ids=np.array(ids, dtype=object))
        elif role == "weight":
            weight = column_numbers(table, at, column, role)
            refuse_first(table, at, column, weight < 0, role)
            data = data._replace(weight=weight)
            is_missing[role] = np.isnan(weight)
        else:
            time = column_times(table, at, column)
            data = data._replace(time=time)
            is_missing[role] = np.isnan(time)
    rows = complete_rows(table, is_missing)
    if rows is None:
        return data
    data = data.take(rows)
    if group_column is not None:  # a missing label made strings of whole numbers
        data = data._replace(groups=label_column(group_column.take(rows)))
    return data
