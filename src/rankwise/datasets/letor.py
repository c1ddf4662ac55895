"""Read ranking data in the LETOR format: svmlight rows with ``qid:`` and a comment."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from numbers import Integral
from typing import Literal, overload

import numpy as np
from numpy.typing import DTypeLike, NDArray

from rankwise.datasets.files import PathLike, Watch, line_blocks, location, numbered_lines
from rankwise.datasets.group_sizes import find_group_sizes
from rankwise.datasets.letor_blocks import Block, Rows, read_blocks
from rankwise.datasets.letor_groups import QidGroups, SizedGroups
from rankwise.datasets.letor_rows import RowRules, split_row
from rankwise.datasets.ranking_data import RankingData
from rankwise.errors import LetorFormatError
from rankwise.machine import Progress

MIB = 2**20


@overload
def read_letor(
    path: PathLike | Sequence[PathLike],
    *,
    n_features: int | None = None,
    dtype: DTypeLike = np.float64,
    sparse: bool | Literal["auto"] = "auto",
    zero_based: bool = False,
    ids: bool = False,
    group_sizes: PathLike | Sequence[PathLike] | None = "auto",
    chunks: None = None,
    progress: bool | None = None,
) -> RankingData: ...


@overload
def read_letor(
    path: PathLike | Sequence[PathLike],
    *,
    n_features: int | None = None,
    dtype: DTypeLike = np.float64,
    sparse: bool | Literal["auto"] = "auto",
    zero_based: bool = False,
    ids: bool = False,
    group_sizes: PathLike | Sequence[PathLike] | None = "auto",
    chunks: int,
    progress: bool | None = None,
) -> Iterator[RankingData]: ...


def read_letor(
    path: PathLike | Sequence[PathLike],
    *,
    n_features: int | None = None,
    dtype: DTypeLike = np.float64,
    sparse: bool | Literal["auto"] = "auto",
    zero_based: bool = False,
    ids: bool = False,
    group_sizes: PathLike | Sequence[PathLike] | None = "auto",
    chunks: int | None = None,
    progress: bool | None = None,
) -> RankingData | Iterator[RankingData]:
    """Read one or several files of rows ``label qid:group feature:value … # comment``.

    This is the format of the LETOR collections, SVMrank, RankLib and (with a file of group sizes)
    LightGBM.  The rows may come in any order: those with the same qid form a group.

    Parameters
    ----------
    path : str, path, or a list of them
        Plain text, or compressed by gzip, bzip2, xz or zstandard (by pyarrow); ``-`` is standard
        input.  Several files are read as if they were one: the same qid in two files is the same
        group.
    n_features : int, optional
        Number of columns of `X`; by default the largest feature id that occurs, at most 2**27.
        Pass the number of the training data when reading test data.
    dtype : {float64, float32}, default=float64
        Type of `X`.
    sparse : {"auto", True, False}, default="auto"
        Whether `X` is a CSR matrix; "auto" gives a dense array if at least a third of its entries
        are written in the files (zeros that are written count), else CSR.
    zero_based : bool, default=False
        Whether the first feature has the id 0, as in some files of XGBoost users, and not 1.
    ids : bool, default=False
        Whether to keep the comments (the text after ``#``, without surrounding blanks).
    group_sizes : "auto", path, list of paths or None, default="auto"
        File with one group size per line, for data without qids; with several data files, one for
        each.  "auto" looks for the name of the data file followed by ``.query`` or ``.group`` when
        no row has a qid, as LightGBM does; None does not look.
    chunks : int, optional
        Read files of any size piece by piece: return an iterator over pieces of at least this many
        rows (the last may have fewer), each of whole groups, so that memory is bounded by a piece
        and the longest group.  The rows of a group must then stand next to each other.  Without
        qids and group sizes all rows are one list, which is cut anywhere.
    progress : bool, optional
        Whether to draw a bar on standard error while reading in chunks; by default only if that is
        a terminal.

    Returns
    -------
    RankingData, or an iterator over RankingData
        ``X``, ``y``, ``groups`` and ``ids``.  `groups` is int64 if all qids (of the chunk) are
        whole numbers, else strings; None if there are neither qids nor group sizes.

    Raises
    ------
    LetorFormatError
        If a line cannot be read, or the group sizes do not fit; the message names file, line and
        remedy.  Missing, infinite and NaN labels or values are such errors, and so is a group that
        comes back after other rows when reading in chunks.

    See Also
    --------
    write_letor : Write such a file.
    read_group_sizes : Read a file of group sizes on its own.
    RankRLS.partial_fit : Learns from chunks, exactly.

    Notes
    -----
    In chunks, all have the same number of columns: pass `n_features`, or the files are read once
    more beforehand to find the largest feature id.  Whether X is dense is decided by the first
    chunk.  What is kept besides a chunk is the set of qids.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = Path(folder) / "toy.txt"
    ...     _ = file.write_text('''2 qid:1 1:0.5 2:1  # first
    ... 0 qid:1 2:0.25     # second
    ... 1 qid:2 1:3        # third''')
    ...     data = read_letor(file, ids=True)
    >>> data.X
    array([[0.5 , 1.  ],
           [0.  , 0.25],
           [3.  , 0.  ]])
    >>> data.y, data.groups
    (array([2., 0., 1.]), array([1, 1, 2]))
    >>> list(data.ids)
    ['first', 'second', 'third']

    In chunks, for files that do not fit in memory:

    >>> from rankwise import RankRLS
    >>> from rankwise.datasets import write_letor
    >>> model = RankRLS()
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = f"{folder}/toy.txt"
    ...     write_letor(file, [[1.0], [2.0], [5.0], [4.0]], [0, 1, 1, 0], [7, 7, 8, 8])
    ...     for X, y, groups, *_ in read_letor(file, chunks=2):
    ...         model = model.partial_fit(X, y, groups, whole_groups=True)
    >>> model.n_samples_seen_, model.n_pairs_
    (4, 2)
    """
    paths = _as_paths(path)
    kind = np.dtype(dtype)
    if kind not in (np.dtype(np.float64), np.dtype(np.float32)):
        raise ValueError(f"dtype is {kind}; pass numpy.float64 or numpy.float32.")
    if sparse not in (True, False, "auto"):
        raise ValueError(f"sparse is {sparse!r}; pass True, False or 'auto'.")
    if n_features is not None and n_features < 1:
        raise ValueError(f"n_features is {n_features}; pass a positive number or None.")
    if chunks is not None and (not isinstance(chunks, Integral) or chunks < 1):
        raise ValueError(f"chunks={chunks!r}; pass a whole number of rows, at least 1, or None.")
    side_files = _side_files(paths, group_sizes)
    rules = RowRules(bool(zero_based), None if n_features is None else int(n_features), kind)
    width = rules.n_features
    if chunks is not None and width is None:
        width = _largest_feature(paths, rules.zero_based, progress)
    groups = (
        SizedGroups(paths, side_files) if side_files else QidGroups(in_order=chunks is not None)
    )
    blocks = _blocks(paths, rules, groups, False if chunks is None else progress)
    data = _chunks(blocks, groups, Rows(kind, ids), chunks, width, sparse)
    return next(data) if chunks is None else data


def _as_paths(path: PathLike | Sequence[PathLike]) -> list[str]:
    if isinstance(path, (str, os.PathLike)):
        return [os.fspath(path)]
    if hasattr(path, "read"):
        raise TypeError("path is an open file; pass its name, or a list of names.")
    paths = [os.fspath(one) for one in path]
    if not paths:
        raise ValueError("path is an empty list; name at least one file.")
    return paths


def _side_files(paths: list[str], group_sizes: PathLike | Sequence[PathLike] | None) -> list[str]:
    """A file of group sizes for every data file; none if there are qids or no such files."""
    has_qids = _first_row_has_qid(paths[0])
    if group_sizes is None or (group_sizes == "auto" and has_qids):
        return []
    if has_qids:
        raise ValueError(
            f"{paths[0]} has qids and group_sizes is given too; "
            "pass group_sizes=None to group by qid."
        )
    if group_sizes != "auto":
        side_files = _as_paths(group_sizes)
        if len(side_files) != len(paths):
            raise ValueError(
                f"group_sizes names {len(side_files)} files but there are {len(paths)} data files; "
                "pass one for each."
            )
        return side_files
    found = [find_group_sizes(path) for path in paths]
    side_files = [name for name in found if name is not None]
    if side_files and None in found:
        raise LetorFormatError(
            paths[found.index(None)],
            None,
            f"no file of group sizes is next to it, but {side_files[0]} is next to another "
            "file. Add the missing one, or pass group_sizes=None to do without groups.",
        )
    return side_files


def _first_row_has_qid(path: str) -> bool:
    """Whether the first row has a qid, as then all rows must."""
    for _, line in numbered_lines(path):
        body, qid = split_row(line)
        if body.strip():
            return qid is not None
    raise LetorFormatError(path, None, "the file has no rows, expected at least one.")


def _largest_feature(paths: list[str], zero_based: bool, progress: bool | None) -> int:
    """Number of columns, from the last feature of each row: ids increase along a row.

    Anything that is not right is left for the second reading to explain.
    """
    largest = 0 if zero_based else 1
    meter = _FileMeter("counting features of", paths, progress)
    for path in paths:
        for _, block in line_blocks(path, meter.watch(path)):
            for line in block.split(b"\n"):
                words = line.partition(b"#")[0].rsplit(None, 1)
                name = words[-1].partition(b":")[0] if words else b""
                if name.isdigit() and len(name) <= 10:
                    largest = max(largest, int(name))
    meter.close()
    return largest + zero_based


def _blocks(
    paths: list[str], rules: RowRules, groups: QidGroups | SizedGroups, progress: bool | None
) -> Iterator[Block]:
    """The blocks of all files, none of which may be empty."""
    meter = _FileMeter("reading", paths, progress)
    for path in paths:
        n_rows = 0
        for block in read_blocks(path, rules, meter.watch(path)):
            n_rows += len(block.labels)
            yield block
        if not n_rows:
            raise LetorFormatError(path, None, "the file has no rows, expected at least one.")
        groups.end_file(path)
    meter.close()


def _chunks(
    blocks: Iterator[Block],
    groups: QidGroups | SizedGroups,
    rows: Rows,
    n_rows: int | None,
    width: int | None,
    sparse: bool | str,
) -> Iterator[RankingData]:
    """Yield chunks of whole groups with at least so many rows (None: all); the last may be less."""

    def chunk(n: int) -> RankingData:
        X, y, codes, ids = rows.take(n, width, sparse)
        return RankingData(X, y, groups.labels(codes), ids)

    for block in blocks:
        rows.extend(block, groups.codes(block))
        while n_rows is not None and (end := _end_of_chunk(rows.codes, n_rows)):
            data = chunk(end)
            if sparse == "auto":
                sparse = hasattr(data.X, "toarray")
            yield data
    if len(rows):
        yield chunk(len(rows))


def _end_of_chunk(codes: NDArray[np.int64], n_rows: int) -> int:
    """Where the next group starts after so many rows; 0 if that is not known yet."""
    if len(codes) <= n_rows:
        return 0
    if codes[0] < 0:
        return n_rows
    changes = np.flatnonzero(codes[n_rows:] != codes[n_rows - 1 : -1])
    return n_rows + int(changes[0]) if len(changes) else 0


class _FileMeter:
    """A bar over the bytes of several files, in MiB."""

    def __init__(self, what: str, paths: list[str], show: bool | None) -> None:
        sizes = [os.path.getsize(location(path)) for path in paths]
        self._start = dict(zip(paths, np.cumsum([0, *sizes]).tolist(), strict=False))
        name = os.path.basename(paths[0]) if len(paths) == 1 else f"{len(paths)} files"
        meter = Progress(f"{what} {name} (MiB)", max(1, -(-sum(sizes) // MIB)), show)
        self._meter, self.close = meter, meter.close

    def watch(self, path: str) -> Watch | None:
        if not self._meter.is_shown:
            return None
        return lambda done: self._meter.update((self._start[path] + done) // MIB)
