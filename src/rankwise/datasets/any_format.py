"""Read ranking data from a file of any kind that the package knows."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import get_args

from rankwise.datasets.file_kinds import Format, format_of_suffix, kind_of
from rankwise.datasets.files import PathLike
from rankwise.datasets.letor import read_letor
from rankwise.datasets.ranking_data import RankingData
from rankwise.datasets.table_columns import Column
from rankwise.datasets.tables import read_table
from rankwise.errors import TableFormatError

_FORMATS = get_args(Format)
_BINARY = {"parquet": "a Parquet", "feather": "a Feather", "jsonl": "a JSON lines"}


def read_ranking(
    path: PathLike,
    *,
    format: Format = "auto",
    target: Column | None = "auto",
    group: Column | None = "auto",
    id: Column | None = None,
    ignore: Sequence[Column] = (),
    features: Sequence[Column] | None = None,
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
        LETOR (svmlight with qid), CSV, TSV, Parquet, Feather or JSON lines, plain or compressed;
        ``-`` is standard input.
    format : {"auto", "letor", "csv", "tsv", "parquet", "feather", "jsonl"}, default="auto"
        Kind of the file; by default it is told by the first bytes and the first line, and only
        where these say nothing by the suffix of the name.
    target, group, id, ignore, features, delimiter, decimal, header
        Columns of a table, see `read_table`; not for LETOR files, which have no names.
    n_features : int, optional
        Number of features that the data must have.  A LETOR file may name fewer, the others are 0;
        a table has to have exactly this many.
    zero_based : bool, default=False
        Whether the features of a LETOR file count from 0, as scikit-learn writes them.
    target_needed : bool, default=True
        Whether a table without target column is an error.

    Returns
    -------
    RankingData
        As `read_table` or `read_letor` give it.  The ids of a LETOR file are its comments, None if
        no row has one.

    Raises
    ------
    DataFileError
        A LetorFormatError or TableFormatError, if the kind is not clear or the file cannot be read.
    ValueError
        If an option does not belong to this kind of file.

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
    """
    name = os.fspath(path)
    chosen = chosen_format(name, format)
    options = {"target": target, "group": group, "id": id, "ignore": ignore, "features": features}
    options |= {"delimiter": delimiter, "decimal": decimal, "header": header}
    if chosen == "letor":
        usual = read_table.__kwdefaults__ or {}
        given = [key for key, value in options.items() if value not in (usual[key], [])]
        return _read_letor(name, given, n_features, zero_based)
    if zero_based:
        raise ValueError(f"{name} is a table, whose columns have names; leave out zero_based=.")
    if chosen == "tsv" and delimiter is None:
        options["delimiter"] = "\t"
    data = read_table(name, target_needed=target_needed, **options)  # type: ignore[arg-type]
    if n_features is not None and data.X.shape[1] != n_features:
        listed = ", ".join(map(str, [] if data.feature_names is None else data.feature_names[:10]))
        raise TableFormatError(
            name,
            None,
            f"the table has {data.X.shape[1]} features ({listed} ...), expected {n_features}. "
            "Choose them with features= or ignore=.",
        )
    return data


def chosen_format(path: str, format: Format) -> Format:
    """What to read the file as; a format that contradicts the content is an error."""
    if format not in _FORMATS:
        raise ValueError(f"format is {format!r}; pass one of {', '.join(_FORMATS)}.")
    kind = kind_of(path)
    if format != "auto":
        for name in {kind, format} & set(_BINARY) if kind != format else ():
            what = f"this is {'not ' if name == format else ''}{_BINARY[name]} file"
            asked = f"format={format!r} is asked for."
            raise TableFormatError(path, None, f"{what}, but {asked}")
        return format
    if kind == "table":
        return "csv"
    if kind != "unclear":
        return kind
    suffix = format_of_suffix(path)
    if suffix is None:
        raise TableFormatError(
            path,
            None,
            "cannot tell what kind of file this is: it has neither rows 'label qid:group "
            "feature:value ...' nor a line of column names. Pass format= with one of "
            f"{', '.join(_FORMATS[1:-1])} or {_FORMATS[-1]}.",
        )
    return suffix


def _read_letor(
    path: str, table_options: list[str], n_features: int | None, zero_based: bool
) -> RankingData:
    if table_options:
        raise ValueError(
            f"{path} is read as a LETOR (svmlight) file, whose columns have no names; "
            f"leave out {', '.join(f'{name}=' for name in table_options)}. Pass format='csv' if it "
            "is a table."
        )
    data = read_letor(path, n_features=n_features, zero_based=zero_based, ids=True)
    has_comments = data.ids is not None and any(data.ids)
    return data if has_comments else data._replace(ids=None)
