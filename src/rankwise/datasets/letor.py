"""Ranking data in the LETOR format: svmlight rows with ``qid:`` and a comment."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray

from rankwise._compiled import read_rows
from rankwise.arrays import Array, Indices
from rankwise.datasets.files import PACKED, PathLike, line_blocks, numbered_lines, replace_file
from rankwise.datasets.ranking_data import RankingData
from rankwise.datasets.vocabulary import MAX_LABEL, distinct_labels, finite_number, shown_value
from rankwise.errors import LetorFormatError
from rankwise.frames import as_array
from rankwise.groups import encode_groups
from rankwise.runtime.memory import check_matrix_fits
from rankwise.validation import check_int, reject_dtype

#: More columns are read only if the caller says so: a model has a coefficient for each.
MOST_COLUMNS = 2**27

_DENSE_SHARE = 3  # dense if at least 1 / 3 of the entries are written


class Rows(NamedTuple):
    """Consecutive rows: labels, numbers of their groups, features, and comments if these are kept.

    The features of all rows stand one after another; `sizes` says how many each row has.
    """

    labels: Array
    codes: Indices
    sizes: Indices
    columns: NDArray[np.int32]
    values: NDArray[Any]
    comments: list[bytes]

    def cut(self, n: int) -> tuple[Rows, Rows]:
        """The first rows, and the others."""
        end = int(self.sizes[:n].sum())
        parts: list[Any] = list(self)
        ends = (n, n, n, end, end, n)
        head = [part[:k] for part, k in zip(parts, ends, strict=True)]
        tail = [part[k:] for part, k in zip(parts, ends, strict=True)]
        return Rows(*head), Rows(*tail)


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
) -> Any:
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
    for name, number in {"n_features": n_features, "chunks": chunks}.items():
        if number is not None:
            check_int(name, number, "or None", least=1)
    reader = _Reader(paths, group_sizes, kind, n_features, sparse, zero_based, ids)
    return reader.whole() if chunks is None else reader.chunks(chunks)


def _as_paths(path: PathLike | Sequence[PathLike]) -> list[str]:
    if isinstance(path, (str, os.PathLike)):
        return [os.fspath(path)]
    if hasattr(path, "read"):
        raise TypeError("path is an open file; pass its name, or a list of names.")
    paths = [os.fspath(one) for one in path]
    if not paths:
        raise ValueError("path is an empty list; name at least one file.")
    return paths


# Rows -------------------------------------------------------------------------------------------


@dataclass
class _Reader:
    """Reads files; see `read_letor` for the parameters."""

    paths: list[str]
    group_sizes: Any
    dtype: np.dtype[Any]
    n_features: int | None
    sparse: bool | str
    zero_based: bool
    ids: bool

    def whole(self) -> RankingData:
        """All rows."""
        groups = _QidGroups(in_order=False)
        return self._data(_joined(self._blocks(groups)), groups)

    def chunks(self, n_rows: int) -> Iterator[RankingData]:
        """Yield chunks of whole groups with at least so many rows; the last may have fewer."""
        if self.n_features is None:
            blocks = self._blocks(_QidGroups(in_order=True))
            self.n_features = max(1, *(int(rows.columns.max(initial=0)) + 1 for rows in blocks))
        groups = _QidGroups(in_order=True)
        waiting: list[Rows] = []
        for block in self._blocks(groups):
            waiting.append(block)
            while end := _end_of_chunk(np.concatenate([rows.codes for rows in waiting]), n_rows):
                head, tail = (_joined(waiting) if len(waiting) > 1 else waiting[0]).cut(end)
                waiting = [tail]
                data = self._data(head, groups)
                self.sparse = hasattr(data.X, "toarray")
                yield data
        last = _joined(waiting)
        if len(last.labels):
            yield self._data(last, groups)

    def _blocks(self, groups: _QidGroups) -> Iterator[Rows]:
        """The rows of all files by blocks; a line that is not right is refused after its block."""
        largest, most_columns = float(np.finfo(self.dtype).max), self.n_features or MOST_COLUMNS
        n_groups = 0  # of earlier files, by their sizes
        for k, path in enumerate(self.paths):
            n_rows, side_file, ends = 0, None, np.empty(0, dtype=np.intp)
            for first, text in line_blocks(path):
                labels, counts, columns, values, lines, qids, heads, comments, n_read = read_rows(
                    text, self.zero_based, most_columns, largest
                )
                codes = groups.codes(path, text, lines + first, qids, heads)
                if not n_rows and len(labels):
                    side_file = self._side_file(k, bool(groups.has_qids))
                    ends = np.cumsum(read_group_sizes(side_file)) if side_file else ends
                if side_file:
                    rows = np.arange(n_rows, n_rows + len(labels))
                    codes = n_groups + np.searchsorted(ends, rows, side="right")
                n_rows += len(labels)
                if side_file and n_rows > ends[-1]:
                    break
                kept = [text[a:b] for a, b in comments.tolist()] if self.ids else []
                values = values.astype(self.dtype, copy=False)
                yield Rows(labels, codes, counts, columns, values, kept)
                if n_read < len(text):
                    number = first + text.count(b"\n", 0, n_read)
                    line = text[n_read : text.index(b"\n", n_read)]
                    problem = _problem(line, most_columns, self.zero_based)
                    raise LetorFormatError(path, number, problem)
            if not n_rows:
                raise LetorFormatError(path, None, "the file has no rows, expected at least one.")
            if side_file and n_rows != ends[-1]:
                there = "more" if n_rows > ends[-1] else n_rows
                problem = f"the group sizes sum to {ends[-1]} but {path} has {there} rows; each row"
                remedy = "If this file belongs to other data, pass group_sizes=None."
                problem = f"{problem} must belong to exactly one group. {remedy}"
                raise LetorFormatError(side_file, None, problem)
            n_groups += len(ends)

    def _side_file(self, k: int, has_qids: bool) -> str | None:
        """The file of group sizes of a data file, if there is one and rows have no qid."""
        if self.group_sizes is None or (self.group_sizes == "auto" and has_qids):
            return None
        if has_qids:
            raise ValueError(
                f"{self.paths[k]} has qids and group_sizes is given too; "
                "pass group_sizes=None to group by qid."
            )
        if self.group_sizes != "auto":
            side_files = _as_paths(self.group_sizes)
            if len(side_files) != len(self.paths):
                raise ValueError(
                    f"group_sizes names {len(side_files)} files but there are {len(self.paths)} "
                    "data files; pass one for each."
                )
            return side_files[k]
        names = [_sizes_next_to(path) for path in self.paths]
        if names[k] is None and any(names):
            raise LetorFormatError(
                self.paths[k],
                None,
                "no file of group sizes is next to it, but one is next to another file. Add it, or "
                "pass group_sizes=None to do without groups.",
            )
        return names[k]

    def _data(self, rows: Rows, groups: _QidGroups) -> RankingData:
        comments = None
        if self.ids:
            texts = [text.decode("utf-8", "backslashreplace").strip() for text in rows.comments]
            comments = np.array(texts, dtype=object)
        X = _matrix(rows, self.n_features, self.sparse)
        return RankingData(X, rows.labels, groups.labels(rows.codes), comments)


def _problem(line: bytes, most_columns: int, zero_based: bool) -> str:
    """What to say about a line that is not right."""
    first = 0 if zero_based else 1
    last = most_columns - 1 + first
    if b" 0:" in line and not zero_based:
        return (
            f"feature id 0 in {shown_value(line)}, but ids are expected to start at 1. "
            "Pass zero_based=True if the file counts from 0."
        )
    words = [word for word in line.partition(b"#")[0].split() if not word.startswith(b"qid:")]
    is_number = [finite_number(word.rpartition(b":")[2]) is not None for word in words]
    bad = line if all(is_number) else words[is_number.index(False)]
    return (
        f"got {shown_value(bad)}, expected 'label qid:group feature:value feature:value ... # "
        f"comment' with finite numbers, and features from {first} to {last} in increasing order. "
        "A gap is a feature that is left out, which means 0. Pass n_features= if there are more."
    )


def _joined(blocks: Iterable[Rows]) -> Rows:
    """The rows of all blocks; the arrays grow in place, so that nothing is in memory twice."""
    arrays: list[Any] = []
    lengths = [0] * 5
    comments = []
    for block in blocks:
        parts: list[Any] = list(block[:5])
        arrays = arrays or [np.empty(0, dtype=part.dtype) for part in parts]
        for k, (array, part) in enumerate(zip(arrays, parts, strict=True)):
            start, lengths[k] = lengths[k], lengths[k] + len(part)
            if lengths[k] > len(array):
                array.resize(lengths[k] + lengths[k] // 8, refcheck=False)
            array[start : lengths[k]] = part
        comments += block.comments
    for array, length in zip(arrays, lengths, strict=True):
        array.resize(length, refcheck=False)
    return Rows(*[*arrays, comments])


def _matrix(rows: Rows, width: int | None, sparse: bool | str) -> Any:
    """The features as a dense array or a CSR matrix."""
    from scipy.sparse import csr_matrix

    n_rows, n_entries = len(rows.labels), len(rows.values)
    width = int(rows.columns.max(initial=-1)) + 1 if width is None else width
    if sparse == "auto":
        sparse = n_entries * _DENSE_SHARE < n_rows * width
    if not sparse and n_entries == n_rows * width:  # every row has all features
        return rows.values.reshape(n_rows, width)
    ends = np.concatenate([[0], np.cumsum(rows.sizes)])
    X = csr_matrix((rows.values, rows.columns, ends), shape=(n_rows, width))
    if sparse:
        return X
    check_matrix_fits(n_rows, width, "a dense array", "pass sparse=True or sparse='auto'")
    return X.toarray()


def _end_of_chunk(codes: Indices, n_rows: int) -> int:
    """Where the next group starts after so many rows; 0 if that is not known yet."""
    if len(codes) <= n_rows:
        return 0
    if codes[0] < 0:
        return n_rows
    changes = np.flatnonzero(codes[n_rows:] != codes[n_rows - 1 : -1])
    return n_rows + int(changes[0]) if len(changes) else 0


# Groups -----------------------------------------------------------------------------------------


def _sizes_next_to(path: str) -> str | None:
    """The file of group sizes next to a data file, or None.

    Looked for, in this order: the name of the data file, with and without its ``.gz`` (``.bz2``,
    ``.xz``), followed by ``.query`` or ``.group``, plain or compressed.
    """
    stem, suffix = os.path.splitext(path)
    names = [path, stem] if suffix.lower() in PACKED else [path]
    candidates = map("".join, product(names, (".query", ".group"), ("", *PACKED)))
    return next(filter(os.path.isfile, candidates), None)


def read_group_sizes(path: PathLike) -> NDArray[np.intp]:
    r"""Read a file with one group size per line (LightGBM ``.query``, XGBoost ``.group``).

    Parameters
    ----------
    path : str or path
        Plain or compressed text; blank lines are skipped.

    Returns
    -------
    ndarray of shape (n_groups,)
        Number of consecutive rows of each group; `groups_from_sizes` makes one label per row of it.

    Raises
    ------
    LetorFormatError
        If a line is anything but one non-negative whole number, or there is no line.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = Path(folder) / "train.query"
    ...     _ = file.write_text("2\n1\n")
    ...     read_group_sizes(file)
    array([2, 1])
    """
    name = os.fspath(path)
    sizes: list[int] = []
    for number, line in numbered_lines(name):
        token = line.strip()
        if token and not (token.isdigit() and len(token) < 16):
            raise LetorFormatError(
                name,
                number,
                f"got {shown_value(token)}, expected the number of rows of one group: "
                "one whole number a line and nothing else.",
            )
        if token:
            sizes.append(int(token))
    if not sizes:
        raise LetorFormatError(name, None, "the file has no group sizes, expected one a line.")
    return np.array(sizes, dtype=np.intp)


class _QidGroups:
    """Numbers groups by qid in the order of the file; -1 for all rows if none has one.

    A qid never passes through a floating point number, and one that spells no number is a string.

    Parameters
    ----------
    in_order : bool
        Whether the rows of a group have to stand next to each other.
    """

    def __init__(self, in_order: bool) -> None:
        self._in_order = in_order
        self._code_of: dict[bytes, int] = {}
        self._qids: list[bytes] = []
        self._last: bytes | None = None
        self.has_qids: bool | None = None  # whether the first row has one

    def codes(self, path: str, text: bytes, lines: Any, qids: Any, heads: Any) -> Indices:
        """The group of each row of a block; a new qid starts in the rows `heads`."""
        codes = np.empty(len(heads), dtype=np.int64)
        for k, row in enumerate(heads.tolist()):
            begin, end = qids[row]
            qid = None if begin < 0 else text[begin:end]
            problem = self._qid_problem(qid)
            if problem:
                raise LetorFormatError(path, int(lines[row]), problem)
            if qid is not None and qid not in self._code_of:
                self._code_of[qid] = len(self._qids)
                self._qids.append(qid)
            codes[k] = -1 if qid is None else self._code_of[qid]
            self._last = qid
        return np.repeat(codes, np.diff(heads, append=len(lines)))

    def _qid_problem(self, qid: bytes | None) -> str:
        """What is wrong with the qid of the next row, or nothing."""
        if self.has_qids is None:
            self.has_qids = qid is not None
        if (qid is not None) != self.has_qids:
            has, had = ("no qid", "has one") if self.has_qids else ("a qid", "has none")
            return f"this row has {has}, but the first row {had}. Give every row a qid, or none."
        if qid is None or (qid in self._code_of and not self._in_order) or qid == self._last:
            return ""
        if qid in self._code_of:
            return (
                f"the group {shown_value(qid)} comes back after rows of other groups. To be read "
                "in chunks, the rows of a group must stand next to each other: sort the file "
                "by qid, or read it whole, without chunks."
            )
        decoded = qid.decode("utf-8", "replace")
        if not qid or decoded.encode("utf-8") != qid or len(decoded) > MAX_LABEL:
            expected = f"a group in UTF-8 of at most {MAX_LABEL} characters, such as qid:7"
            return f"the qid is {shown_value(qid)}, expected {expected}, without a space."
        return ""

    def labels(self, codes: Indices) -> NDArray[Any] | None:
        """One label per row: int64 if all qids are whole numbers, else strings.

        Without qids they are the codes, if there are sizes of groups.
        """
        if not self._qids:
            return codes if codes[0] >= 0 else None
        low = int(codes.min())
        qids = self._qids[low : int(codes.max()) + 1]
        labels: NDArray[Any] = distinct_labels([qid.decode("utf-8") for qid in qids])[codes - low]
        return labels


# Writing ---------------------------------------------------------------------------------------


def write_letor(
    path: PathLike,
    X: Any,
    y: ArrayLike,
    groups: ArrayLike | None = None,
    *,
    ids: Sequence[Any] | NDArray[Any] | None = None,
) -> None:
    """Write rows ``label qid:group 1:value 2:value … # id``.

    The file is written whole or not at all: a failure leaves an older file of that name untouched.

    Parameters
    ----------
    path : str or path
        Where to write; the suffixes ``.gz``, ``.bz2`` and ``.xz`` compress.
    X : array-like or sparse matrix of shape (n_rows, n_features)
        Finite numbers.  All entries of a dense `X` are written, zeros too, and the stored entries
        of a sparse one; its first row also gets the last feature, so that the number of features
        survives.
    y : array-like of shape (n_rows,)
        Finite relevance labels.
    groups : array-like of shape (n_rows,), optional
        Group labels: whole numbers, or words without blanks and ``#``.  None writes no qid.
        Words that spell numbers ("7") are read back as numbers if all labels do.
    ids : sequence of length n_rows, optional
        Comment of each row; None or "" for a row without.

    Raises
    ------
    ValueError
        If the lengths differ, or a number, label or id could not be read back as it is.

    See Also
    --------
    read_letor : Read such a file.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = Path(folder) / "toy.txt"
    ...     write_letor(file, [[0.5, 1], [0.1, 0]], [2, 0], groups=[7, 7], ids=["a", "b"])
    ...     print(file.read_text())
    2 qid:7 1:0.5 2:1 # a
    0 qid:7 1:0.1 2:0 # b
    """
    X, labels = _check_numbers(X, y)
    n_rows = X.shape[0]
    codes, names = encode_groups(groups, n_rows)
    qids = [""] if groups is None else _qids(names)
    comments = [None] * n_rows if ids is None else list(ids)
    if len(comments) != n_rows:
        raise ValueError(
            f"ids has {len(comments)} entries but X has {n_rows} rows; pass one per row."
        )
    with replace_file(path) as stream:
        for row, features in enumerate(_feature_texts(X)):
            head = _shortest(float(labels[row])) + qids[codes[row]]
            stream.write(f"{head}{features}{_comment_text(comments[row], row)}\n".encode())


def _check_numbers(X: Any, y: ArrayLike) -> tuple[Any, NDArray[Any]]:
    """X as a finite array or CSR matrix and y as a finite vector, of one length."""
    from sklearn.utils import check_array, check_consistent_length

    reject_dtype("X", X)
    floats = [np.float64, np.float32]
    rows = as_array(X, "X")
    X = check_array(rows, accept_sparse="csr", dtype=floats, ensure_min_features=0, input_name="X")
    labels = as_array(y, "y")
    labels = check_array(labels, ensure_2d=False, dtype=np.float64, input_name="y").ravel()
    check_consistent_length(X, labels)
    return X, labels


def _qids(labels: NDArray[Any]) -> list[str]:
    """For each group, `` qid:label``, with a blank in front."""
    words = [_qid_word(label) for label in labels.tolist()]
    if len(np.unique(distinct_labels(words))) < len(words):
        raise ValueError(
            "two different group labels would be read back as the same (such as '1' and '01', or "
            "1 and '1'); make them distinct."
        )
    return [f" qid:{word}" for word in words]


def _qid_word(label: Any) -> str:
    if isinstance(label, int) or (isinstance(label, float) and label.is_integer()):
        return str(int(label))  # True is 1, as everywhere in Python
    is_word = isinstance(label, str) and label.isprintable() and label.split() == [label]
    if not is_word or "#" in label or len(label) > MAX_LABEL:
        shown = shown_value(label) if isinstance(label, str) else repr(label)
        raise ValueError(
            f"the group label {shown} cannot be written as one word. Use words without blanks and "
            "'#', or whole numbers, such as np.unique(groups, return_inverse=True)[1]."
        )
    return str(label)


def _comment_text(comment: Any, row: int) -> str:
    text = "" if comment is None else str(comment).strip()
    if any(mark in text for mark in "\n\r\0"):
        raise ValueError(
            f"ids[{row}] is {shown_value(text)}: a comment ends with its line. "
            "Take the line breaks and zero bytes out."
        )
    return f" # {text}" if text else ""


def _shortest(value: float) -> str:
    """Shortest text that reads back as the same number."""
    return repr(value).removesuffix(".0")


def _feature_texts(X: Any) -> Iterator[str]:
    """For each row, `` 1:value 2:value``, with a blank in front."""
    if isinstance(X, np.ndarray):
        names = [f" {column}:" for column in range(1, X.shape[1] + 1)]
        for row in X:
            texts = map(_shortest, row.tolist())
            yield "".join([name + text for name, text in zip(names, texts, strict=True)])
        return
    X = X.copy()
    X.sum_duplicates()  # also sorts
    for row in range(X.shape[0]):
        stored = slice(X.indptr[row], X.indptr[row + 1])
        columns, values = (X.indices[stored] + 1).tolist(), X.data[stored].tolist()
        if not row and X.shape[1] not in [0, *columns]:  # keeps the number of features
            columns, values = [*columns, X.shape[1]], [*values, 0.0]
        yield "".join([f" {c}:{_shortest(v)}" for c, v in zip(columns, values, strict=True)])
