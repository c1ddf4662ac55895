"""Ranking data in the LETOR format: svmlight rows with ``qid:`` and a comment."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, NamedTuple, TypeAlias, overload

import numpy as np
from numpy.typing import DTypeLike, NDArray

from rankwise.arrays import Array, Indices, Numbers
from rankwise.datasets.files import PathLike
from rankwise.datasets.group_sizes import SizeFile, read_group_sizes, size_file_next_to
from rankwise.datasets.letor_blocks import Block, parse_blocks
from rankwise.datasets.letor_groups import QidGroups
from rankwise.datasets.ranking_data import RankingData
from rankwise.errors import LetorFormatError
from rankwise.runtime.memory import check_matrix_fits
from rankwise.validation import check_int

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix


_MIN_DENSE_SHARE = 1 / 3  # a matrix is dense if at least this share of its entries is written

_FLOAT_TYPES: dict[np.dtype[np.generic], type[np.float64 | np.float32]] = {
    np.dtype(np.float64): np.float64,
    np.dtype(np.float32): np.float32,
}

GroupSizes: TypeAlias = PathLike | Sequence[PathLike] | None


class Rows(NamedTuple):
    """Consecutive rows of a file.

    Attributes
    ----------
    labels : ndarray of shape (n_rows,)
        Relevance labels.
    group_codes : ndarray of shape (n_rows,)
        Numbers of the groups; −1 without groups.
    n_entries : ndarray of shape (n_rows,)
        Number of features of each row.
    columns, values : ndarray of shape (sum of n_entries,)
        Features of all rows, one row after another.
    comments : list of bytes
        Comments; empty if they are not requested.
    """

    labels: Array
    group_codes: Indices
    n_entries: Indices
    columns: NDArray[np.int32]
    values: Numbers
    comments: list[bytes]

    def split(self, n_rows: int) -> tuple[Rows, Rows]:
        """Return the first rows and the rows after them."""
        # The entries (column and value) of one row follow those of the row before it.
        end_of_entries = int(self.n_entries[:n_rows].sum())
        first_rows = Rows(
            self.labels[:n_rows],
            self.group_codes[:n_rows],
            self.n_entries[:n_rows],
            self.columns[:end_of_entries],
            self.values[:end_of_entries],
            self.comments[:n_rows],
        )
        other_rows = Rows(
            self.labels[n_rows:],
            self.group_codes[n_rows:],
            self.n_entries[n_rows:],
            self.columns[end_of_entries:],
            self.values[end_of_entries:],
            self.comments[n_rows:],
        )
        return first_rows, other_rows


@overload
def read_letor(
    path: PathLike | Sequence[PathLike],
    *,
    n_features: int | None = None,
    dtype: DTypeLike = np.float64,
    sparse: bool | Literal["auto"] = "auto",
    zero_based: bool = False,
    ids: bool = False,
    group_sizes: GroupSizes = "auto",
    chunks: None = None,
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
    group_sizes: GroupSizes = "auto",
    chunks: int,
) -> Iterator[RankingData]: ...


def read_letor(
    path: PathLike | Sequence[PathLike],
    *,
    n_features: int | None = None,
    dtype: DTypeLike = np.float64,
    sparse: bool | Literal["auto"] = "auto",
    zero_based: bool = False,
    ids: bool = False,
    group_sizes: GroupSizes = "auto",
    chunks: int | None = None,
) -> RankingData | Iterator[RankingData]:
    """Read one or several files of rows ``label qid:group feature:value … # comment``.

    Use it for LETOR files, also for files that do not fit in memory (`chunks`).

    This is the format of the LETOR collections, SVMrank, RankLib and (with a file of group sizes)
    LightGBM.  The rows may come in any order: those with the same qid form a group.

    Parameters
    ----------
    path : str, path, or a list of them
        Plain text, or compressed by gzip, bzip2, xz or zstandard (by pyarrow); ``-`` is standard
        input.  Several files are read as if they were one: the same qid in two files is the same
        group.
    n_features : int, optional
        Number of columns of `X`; by default the largest feature id in the files, at most 2**27.
        For test data, pass the number of the training data.
    dtype : {float64, float32}, default=float64
        Type of `X`.
    sparse : {"auto", True, False}, default="auto"
        Whether `X` is a CSR matrix; "auto" returns a dense array if at least a third of its entries
        are written in the files (including zeros), else a CSR matrix.
    zero_based : bool, default=False
        Whether the first feature has the id 0, as in some files for XGBoost, and not 1.
    ids : bool, default=False
        Whether to return the comments (the text after ``#``, without surrounding spaces).
    group_sizes : "auto", path, list of paths or None, default="auto"
        File with one group size per line, for data without qids; with several data files, one for
        each.  "auto" looks for the name of the data file followed by ``.query`` or ``.group`` when
        no row has a qid, as LightGBM does; None does not look.
    chunks : int, optional
        Return an iterator over chunks of at least this many rows (the last may have fewer), each
        of complete groups, so that a chunk and the longest group bound the memory. The rows of a
        group must be consecutive. Without qids and group sizes all rows are one list, which may be
        split anywhere.

    Returns
    -------
    RankingData, or an iterator over RankingData
        ``X``, ``y``, ``groups`` and ``ids``.  `groups` is int64 if all qids (of the chunk) are
        whole numbers, else strings; None if there are neither qids nor group sizes.

    Raises
    ------
    LetorFormatError
        If a line cannot be read, or the group sizes do not match the rows; the message names file,
        line and remedy. Missing, infinite and NaN labels or values are such errors. In chunks, a
        group that continues after other rows is one, too.

    See Also
    --------
    write_letor : Write such a file.
    read_group_sizes : Read a file of group sizes on its own.
    RankRLS.partial_fit : Learns from chunks, exactly.

    Notes
    -----
    All chunks have the same number of columns. Without `n_features` the files are read twice, first
    to find the largest feature id. The first chunk decides whether X is dense. The memory contains
    one chunk and the set of qids.

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
    value_type = _FLOAT_TYPES.get(np.dtype(dtype))
    if value_type is None:
        raise ValueError(f"dtype is {np.dtype(dtype)}; pass numpy.float64 or numpy.float32.")
    if sparse not in (True, False, "auto"):
        raise ValueError(f"sparse is {sparse!r}; pass True, False or 'auto'.")
    for name, number in {"n_features": n_features, "chunks": chunks}.items():
        if number is not None:
            check_int(name, number, "or None", least=1)
    reader = _LetorReader(paths, group_sizes, value_type, n_features, sparse, zero_based, ids)
    if chunks is None:
        return reader.read_all()
    return reader.read_chunks(chunks)


def _as_paths(path: PathLike | Sequence[PathLike]) -> list[str]:
    if isinstance(path, (str, os.PathLike)):
        return [os.fspath(path)]
    if hasattr(path, "read"):
        raise TypeError("path is an open file; pass its name, or a list of names.")
    paths = [os.fspath(name) for name in path]
    if not paths:
        raise ValueError("path is an empty list; name at least one file.")
    return paths


@dataclass
class _LetorReader:
    """Reader of several files as if they were one; `read_letor` documents the parameters."""

    paths: list[str]
    group_sizes: GroupSizes
    dtype: type[np.float64 | np.float32]
    n_features: int | None
    sparse: bool | str
    zero_based: bool
    ids: bool

    def read_all(self) -> RankingData:
        """Return all rows."""
        groups = QidGroups(must_be_consecutive=False)
        rows = _concatenate(self._read_blocks(groups))
        return self._ranking_data(rows, groups)

    def read_chunks(self, n_rows: int) -> Iterator[RankingData]:
        """Yield chunks of whole groups with at least n_rows rows; the last may have fewer."""
        if self.n_features is None:
            self.n_features = self._count_columns()
        groups = QidGroups(must_be_consecutive=True)
        pending: list[Rows] = []  # rows that are not in a chunk yet
        for rows in self._read_blocks(groups):
            pending.append(rows)
            pending_codes = np.concatenate([block.group_codes for block in pending])
            end_of_chunk = _end_of_chunk(pending_codes, n_rows)
            while end_of_chunk > 0:
                all_pending = pending[0]
                if len(pending) > 1:
                    all_pending = _concatenate(pending)
                chunk, other_rows = all_pending.split(end_of_chunk)
                data = self._ranking_data(chunk, groups)
                self.sparse = hasattr(data.X, "toarray")  # all chunks are like the first
                yield data
                pending = [other_rows]
                end_of_chunk = _end_of_chunk(other_rows.group_codes, n_rows)
        last_rows = _concatenate(pending)
        if len(last_rows.labels):
            yield self._ranking_data(last_rows, groups)

    def _count_columns(self) -> int:
        """Return the number of columns that the features of all files need, at least 1."""
        n_columns = 1
        # Groups that are not consecutive are refused here, before the first chunk.
        for rows in self._read_blocks(QidGroups(must_be_consecutive=True)):
            n_columns = max(n_columns, int(rows.columns.max(initial=0)) + 1)
        return n_columns

    def _read_blocks(self, groups: QidGroups) -> Iterator[Rows]:
        """Yield the rows of all files in blocks; an unreadable line raises after its block."""
        largest_value = float(np.finfo(self.dtype).max)
        n_groups_of_earlier_files = 0  # with group sizes
        for file_number, path in enumerate(self.paths):
            n_rows_read = 0
            size_file: SizeFile | None = None
            for block in parse_blocks(path, self.n_features, self.zero_based, largest_value):
                codes = groups.codes(block)
                has_first_row = n_rows_read == 0 and block.n_rows > 0
                if has_first_row:  # it shows whether the file has qids
                    size_file = self._read_size_file(file_number, has_qids=bool(groups.has_qids))
                if size_file is not None:
                    end = n_rows_read + block.n_rows
                    codes_in_file = size_file.group_of_rows(path, n_rows_read, end)
                    codes = n_groups_of_earlier_files + codes_in_file
                n_rows_read += block.n_rows
                yield self._rows_of_block(block, codes)
            if n_rows_read == 0:
                raise LetorFormatError(path, None, "the file has no rows, expected at least one.")
            if size_file is not None:
                size_file.refuse_fewer_rows(path, n_rows_read)
                n_groups_of_earlier_files += size_file.n_groups

    def _rows_of_block(self, block: Block, group_codes: Indices) -> Rows:
        """Return the rows of a block in the requested type of numbers."""
        parsed = block.parsed
        return Rows(
            labels=parsed.labels,
            group_codes=group_codes,
            n_entries=parsed.n_entries,
            columns=parsed.columns,
            values=parsed.values.astype(self.dtype, copy=False),
            comments=block.comments() if self.ids else [],
        )

    def _read_size_file(self, file_number: int, has_qids: bool) -> SizeFile | None:
        """Read the group sizes of a data file; None if it has none."""
        path = self._find_size_file(file_number, has_qids)
        if path is None:
            return None
        end_of_group = np.cumsum(read_group_sizes(path))
        return SizeFile(path, end_of_group)

    def _find_size_file(self, file_number: int, has_qids: bool) -> str | None:
        """Return the file of group sizes of a data file; None with qids or without such a file."""
        if self.group_sizes is None or (self.group_sizes == "auto" and has_qids):
            return None
        if has_qids:
            raise ValueError(
                f"{self.paths[file_number]} has qids and group_sizes is given too; "
                "pass group_sizes=None to group by qid."
            )
        if self.group_sizes != "auto":
            size_files = _as_paths(self.group_sizes)
            if len(size_files) != len(self.paths):
                raise ValueError(
                    f"group_sizes names {len(size_files)} files but there are {len(self.paths)} "
                    "data files; pass one for each."
                )
            return size_files[file_number]
        size_files_next_to_data = [size_file_next_to(path) for path in self.paths]
        size_file = size_files_next_to_data[file_number]
        if size_file is None and any(size_files_next_to_data):
            raise LetorFormatError(
                self.paths[file_number],
                None,
                "no file of group sizes is next to it, but one is next to another file. Add it, or "
                "pass group_sizes=None to read the files without groups.",
            )
        return size_file

    def _ranking_data(self, rows: Rows, groups: QidGroups) -> RankingData:
        """Return the rows as a matrix, labels, groups and comments."""
        comments = None
        if self.ids:
            texts = [text.decode("utf-8", "backslashreplace").strip() for text in rows.comments]
            comments = np.array(texts, dtype=object)
        X = _matrix(rows, self.n_features, self.sparse)
        return RankingData(X, rows.labels, groups.labels(rows.group_codes), comments)


def _concatenate(blocks: Iterable[Rows]) -> Rows:
    """Concatenate the rows of all blocks.

    The arrays grow in place by an eighth at a time, so that no row is in memory twice.
    """
    array_of_field: dict[str, _GrowingArray] = {}
    comments: list[bytes] = []
    for rows in blocks:
        for field, values in rows._asdict().items():
            if field == "comments":
                comments += rows.comments
                continue
            if field not in array_of_field:
                array_of_field[field] = _GrowingArray(values.dtype)
            array_of_field[field].append(values)
    arrays = {field: array.finish() for field, array in array_of_field.items()}
    return Rows(**arrays, comments=comments)


class _GrowingArray:
    """An array that is extended in place."""

    def __init__(self, dtype: np.dtype[np.generic]) -> None:
        self._buffer: Numbers = np.empty(0, dtype=dtype)
        self._length = 0

    def append(self, values: Numbers) -> None:
        """Append values; the buffer is an eighth longer than needed."""
        start = self._length
        self._length += len(values)
        if self._length > len(self._buffer):  # leave room for more, so that few calls copy
            self._buffer.resize(self._length + self._length // 8, refcheck=False)
        self._buffer[start : self._length] = values

    def finish(self) -> Numbers:
        """Return the array in its final length."""
        self._buffer.resize(self._length, refcheck=False)
        return self._buffer


def _matrix(rows: Rows, n_columns: int | None, sparse: bool | str) -> Numbers | csr_matrix:
    """Return the features as a dense array or a CSR matrix."""
    from scipy.sparse import csr_matrix

    n_rows = len(rows.labels)
    n_values = len(rows.values)
    if n_columns is None:
        n_columns = int(rows.columns.max(initial=-1)) + 1
    if sparse == "auto":
        sparse = n_values < _MIN_DENSE_SHARE * n_rows * n_columns
    # The columns of a row increase, so that a row with all features has them in order.
    rows_have_all_features = n_values == n_rows * n_columns
    if rows_have_all_features and not sparse:
        return rows.values.reshape(n_rows, n_columns)
    row_starts = np.concatenate([[0], np.cumsum(rows.n_entries)])
    X = csr_matrix((rows.values, rows.columns, row_starts), shape=(n_rows, n_columns))
    if sparse:
        return X
    check_matrix_fits(n_rows, n_columns, "a dense array", "pass sparse=True or sparse='auto'")
    return X.toarray()


def _end_of_chunk(group_codes: Indices, n_rows: int) -> int:
    """Return where the first group after n_rows rows starts; 0 if more rows are needed."""
    if len(group_codes) <= n_rows:
        return 0
    has_groups = group_codes[0] >= 0
    if not has_groups:
        return n_rows
    # the first group that starts after n_rows rows or more starts the next chunk
    starts_group = group_codes[1:] != group_codes[:-1]  # of each row but the first
    starts_after_n_rows = np.flatnonzero(starts_group[n_rows - 1 :])  # counted from row n_rows
    if len(starts_after_n_rows) == 0:
        return 0
    return n_rows + int(starts_after_n_rows[0])
