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
    asked = {"target": target, "group": group, "id": id, "weight": weight, "time": time}
    asked |= {"ignore": ignore, "features": features}
    if not isinstance(path, TableFile):
        name = os.fspath(path)
        table = open_unless_letor(name, delimiter, decimal, header, format)
        if table is None:
            return _read_letor(name, asked, n_features, zero_based)
        path = table
    if zero_based:
        raise ValueError(
            f"{path.path} is a table, whose columns have names; leave out zero_based=."
        )
    roles, used = choose_columns(path, asked, target_needed)
    texts = [position_of(path, column, "text") for column in text]
    numbers = [position_of(path, column, "numeric") for column in numeric]
    words = ["group", "id", "time", *(["target"] if levels else [])]
    spelled = [at for role in words for at in roles.get(role, ())]
    typed = [at for role in ("target", "weight") for at in roles.get(role, ())]
    columns = path.read([*spelled, *texts], [*typed, *used])
    columns = {at: without_words(column, missing) for at, column in columns.items()}
    if levels and "target" in roles:
        (at,) = roles["target"]
        columns[at] = places_of_words(path, at, columns[at], levels)
    if as_frame:
        X = _frame(path, used, columns, texts, numbers)
    else:
        X = column_matrix(path, used, columns)
    if n_features is not None and len(used) != n_features:
        raise TableFormatError(
            path.path,
            None,
            f"the table has {len(used)} features, expected {n_features}. Choose them with "
            "features= or ignore=.",
        )
    return _with_roles(path, X, roles, used, columns)


def _read_letor(
    path: str, asked: dict[str, Any], n_features: int | None, zero_based: bool
) -> RankingData:
    from rankwise.datasets.letor import read_letor

    foreign = [f"{name}=" for name, value in asked.items() if value not in (None, "auto", (), [])]
    foreign += [f"{name}=" for name in ("target", "group") if asked[name] is None]
    if foreign:
        raise ValueError(
            f"{path} is read as a LETOR (svmlight) file, whose columns have no names; leave out "
            f"{', '.join(foreign)}. Pass format='csv' if it is a table."
        )
    data: RankingData = read_letor(path, n_features=n_features, zero_based=zero_based, ids=True)
    has_comments = data.ids is not None and any(data.ids)
    return data if has_comments else data._replace(ids=None)


def _frame(
    table: TableFile, used: list[int], columns: dict[int, Any], texts: list[int], numbers: list[int]
) -> Any:
    """The features as an Arrow table; numbers are found in texts with marks and gaps, too."""
    arrow = import_arrow()
    kept = []
    for at in used:
        column = columns[at]
        if at in numbers:
            floats = column_numbers(table, at, column, "feature")
            column = arrow.chunked_array([arrow.array(floats, from_pandas=True)])
        elif is_text(column):
            spelled = None
            if isinstance(table, TextTable) and at not in {*texts, *table.codes}:
                spelled, _ = parse_numbers(column, table.decimal, table.thousands)
            column = with_missing(column) if spelled is None else spelled
        kept.append(column)
    return arrow.table(kept, names=[table.names[at] for at in used])


def _with_roles(
    table: TableFile, X: Any, roles: dict[str, list[int]], used: list[int], columns: dict[int, Any]
) -> RankingData:
    """The data with scores, groups, names and weights; rows that lack a group or weight go."""
    names = np.array([table.names[at] for at in used], dtype=object)
    said = {role: ", ".join(table.names[at] for at in places) for role, places in roles.items()}
    values: dict[str, Any] = {"y": None, "groups": None}
    has_gap: dict[str, NDArray[np.bool_]] = {}
    group: Any = None
    for role, (at, *further) in roles.items():
        column = columns[at]
        if role == "target":
            values["y"] = column_numbers(table, at, column, role)
        elif role == "group":
            group = joined_labels([column, *(columns[k] for k in further)]) if further else column
            values["groups"] = labels = label_column(group)
            is_text_label = labels.dtype.kind == "U"
            has_gap[role] = labels == "" if is_text_label else np.zeros(len(labels), bool)
        elif role == "id":
            values["ids"] = np.array([as_text(v) for v in column.to_pylist()], dtype=object)
        elif role == "weight":
            values[role] = weight = column_numbers(table, at, column, role)
            refuse_first(table, at, column, weight < 0, role)
            has_gap[role] = np.isnan(weight)
        else:
            values[role] = column_times(table, at, column)
            has_gap[role] = np.isnan(values[role])
    data = RankingData(X, feature_names=names, roles=said, **values)
    kept = complete_rows(table, has_gap)
    if kept is None:
        return data
    data = data.take(kept)
    if group is not None:  # a gap made strings of whole numbers
        data = data._replace(groups=label_column(group.take(kept)))
    return data
