"""Read ranking data in the LETOR format: svmlight rows with ``qid:`` and a comment."""

from __future__ import annotations

import io
import os
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import DTypeLike, NDArray

from rankwise.datasets.files import PathLike, numbered_lines
from rankwise.datasets.group_sizes import find_group_sizes, groups_of_files
from rankwise.datasets.letor_rows import QueryIds, RowRules, row_problem, split_row
from rankwise.errors import LetorFormatError

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix

    Matrix: TypeAlias = NDArray[Any] | csr_matrix

__all__ = ["RankingData", "read_letor"]

_BLOCK_BYTES = 1 << 22
_DENSE_SHARE = 3  # dense if at least 1 / 3 of the entries are stored


class RankingData(NamedTuple):
    """Items to rank; ``X, y, groups = data[:3]`` unpacks what `fit` takes.

    Attributes
    ----------
    X : ndarray or csr_matrix of shape (n_rows, n_features)
        Features.
    y : ndarray of shape (n_rows,), float64
        Relevance labels; larger is better.
    groups : ndarray of shape (n_rows,) or None
        Group (query) label of each row, or None if the file has none: one list.
    ids : ndarray of str objects of shape (n_rows,) or None
        Comment of each row.
    """

    X: Matrix
    y: NDArray[np.float64]
    groups: NDArray[Any] | None
    ids: NDArray[np.object_] | None = None


class _Rows(NamedTuple):
    """Some consecutive rows of one file, without qid and comment, and their line numbers."""

    path: str
    lines: list[int]
    bodies: list[bytes]


def read_letor(
    path: PathLike | Sequence[PathLike],
    *,
    n_features: int | None = None,
    dtype: DTypeLike = np.float64,
    sparse: bool | Literal["auto"] = "auto",
    zero_based: bool = False,
    ids: bool = False,
    group_sizes: PathLike | Sequence[PathLike] | None = "auto",
) -> RankingData:
    """Read one or several files of rows ``label qid:group feature:value ... # comment``.

    This is the format of the LETOR collections, SVMrank, RankLib and (with a file of group sizes)
    LightGBM.  The rows may come in any order: those with the same qid form a group.

    Parameters
    ----------
    path : str, path, or a list of them
        Plain, gzip, bzip2 or xz text.  Several files are read as if they were one: the same qid in
        two files is the same group.
    n_features : int, optional
        Number of columns of `X`; by default the largest feature id that occurs.  Pass the number of
        the training data when reading test data.
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

    Returns
    -------
    RankingData
        ``X``, ``y``, ``groups`` and ``ids``.  `groups` is int64 if all qids are whole numbers,
        else strings; None if there are neither qids nor group sizes.

    Raises
    ------
    LetorFormatError
        If a line cannot be read, or the group sizes do not fit; the message names file, line and
        remedy.  Missing, infinite and NaN labels or values are such errors.
    OSError
        If a file cannot be opened.

    See Also
    --------
    write_letor : Write such a file.
    read_group_sizes : Read a file of group sizes on its own.

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
    """
    paths = _as_paths(path)
    rules = _as_rules(n_features, dtype, sparse, zero_based)
    queries = QueryIds()
    comments: list[str] | None = [] if ids else None
    parsed = []
    n_rows = []
    for name in paths:
        of_file = [_parse(rows, rules) for rows in _row_blocks(name, rules, queries, comments)]
        if not of_file:
            raise LetorFormatError(name, None, "the file has no rows, expected at least one.")
        parsed.extend(of_file)
        n_rows.append(sum(len(labels) for _, labels in of_file))
    X = _stack([features for features, _ in parsed], rules, sparse)
    y = np.concatenate([labels for _, labels in parsed])
    groups = _find_groups(queries.groups(), paths, n_rows, group_sizes)
    return RankingData(X, y, groups, _as_object_array(comments))


def _as_paths(path: PathLike | Sequence[PathLike]) -> list[str]:
    if isinstance(path, (str, os.PathLike)):
        return [os.fspath(path)]
    if hasattr(path, "read"):
        raise TypeError("path is an open file; pass its name, or a list of names.")
    paths = [os.fspath(one) for one in path]
    if not paths:
        raise ValueError("path is an empty list; name at least one file.")
    return paths


def _as_rules(
    n_features: int | None, dtype: DTypeLike, sparse: bool | str, zero_based: bool
) -> RowRules:
    kind = np.dtype(dtype)
    if kind not in (np.dtype(np.float64), np.dtype(np.float32)):
        raise ValueError(f"dtype is {kind}; pass numpy.float64 or numpy.float32.")
    if sparse not in (True, False, "auto"):
        raise ValueError(f"sparse is {sparse!r}; pass True, False or 'auto'.")
    if n_features is not None and n_features < 1:
        raise ValueError(f"n_features is {n_features}; pass a positive number or None.")
    return RowRules(bool(zero_based), None if n_features is None else int(n_features), kind)


def _row_blocks(
    path: str, rules: RowRules, queries: QueryIds, comments: list[str] | None
) -> Iterator[_Rows]:
    """Yield blocks of rows of a few megabytes; hand qids and comments to their collectors."""
    rows = _Rows(path, [], [])
    n_bytes = 0
    for number, line in numbered_lines(path):
        body, qid, comment = split_row(line)
        if not body or body.isspace():
            continue
        try:
            queries.append(qid, path, number)
        except LetorFormatError:
            if qid is None:  # a bad label or a misplaced qid is the better explanation
                _raise_problem(path, number, body, rules)
            raise
        # scikit-learn would drop a second qid, and Python reads 1_0 as ten
        if b"_" in body or b"qid" in body:
            _raise_problem(path, number, body, rules)
        if comments is not None:
            comments.append(comment.decode("utf-8", "backslashreplace").strip())
        rows.lines.append(number)
        rows.bodies.append(body)
        n_bytes += len(body)
        if n_bytes >= _BLOCK_BYTES:
            yield rows
            rows, n_bytes = _Rows(path, [], []), 0
    if rows.lines:
        yield rows


def _raise_problem(path: str, number: int, body: bytes, rules: RowRules) -> None:
    problem = row_problem(body, rules)
    if problem is not None:
        raise LetorFormatError(path, number, problem)


def _parse(rows: _Rows, rules: RowRules) -> tuple[Any, NDArray[np.float64]]:
    """Features (CSR) and labels of a block; if any is wrong, the first bad row is explained."""
    from sklearn.datasets import load_svmlight_file

    text = io.BytesIO(b"\n".join(rows.bodies))
    reason = "it is not in the LETOR format"
    try:
        X, y = load_svmlight_file(text, dtype=rules.dtype, zero_based=rules.zero_based)
    except (ValueError, OverflowError) as error:
        reason = str(error)
    else:
        fits = rules.n_features is None or _width(X) <= rules.n_features
        if len(y) == len(rows.lines) and fits and _all_finite(X.data) and _all_finite(y):
            return X, y
    for number, body in zip(rows.lines, rows.bodies, strict=True):
        _raise_problem(rows.path, number, body, rules)
    raise LetorFormatError(rows.path, rows.lines[0], f"cannot read from this line on: {reason}.")


def _all_finite(values: NDArray[Any]) -> bool:
    return bool(np.isfinite(values).all())


def _width(X: Any) -> int:
    """Number of columns that are really named: scikit-learn says 1 where there is none."""
    return int(X.indices.max()) + 1 if X.nnz else 0


def _stack(blocks: list[Any], rules: RowRules, sparse: bool | str) -> Matrix:
    from scipy.sparse import csr_matrix

    width = rules.n_features or max(_width(X) for X in blocks)
    n_rows = sum(X.shape[0] for X in blocks)
    n_stored = sum(X.nnz for X in blocks)
    index = np.int32 if max(width, n_stored) < 2**31 else np.int64
    ends = np.cumsum([0, *(X.nnz for X in blocks)])
    shifted = (X.indptr[1:] + start for X, start in zip(blocks, ends, strict=False))
    stacked = csr_matrix(
        (
            np.concatenate([X.data for X in blocks]),
            np.concatenate([X.indices.astype(index) for X in blocks]),
            np.concatenate([[0], *shifted]).astype(index),
        ),
        shape=(n_rows, width),
    )
    if sparse == "auto":
        sparse = n_stored * _DENSE_SHARE < n_rows * width
    return stacked if sparse else _to_dense(stacked)


def _to_dense(X: Any) -> NDArray[Any]:
    try:
        dense: NDArray[Any] = X.toarray()
    except (MemoryError, ValueError):
        size = X.shape[0] * X.shape[1] * X.dtype.itemsize / 2**30
        raise ValueError(
            f"a dense array of {X.shape[0]} rows and {X.shape[1]} features would take "
            f"{size:.1f} GiB; pass sparse=True or sparse='auto'."
        ) from None
    return dense


def _find_groups(
    groups: NDArray[Any] | None,
    paths: list[str],
    n_rows: list[int],
    group_sizes: PathLike | Sequence[PathLike] | None,
) -> NDArray[Any] | None:
    """The qids if there are any, else the labels made from group sizes, else None."""
    if group_sizes is None:
        return groups
    if isinstance(group_sizes, str) and group_sizes == "auto":
        side_files = [] if groups is not None else _side_files(paths)
        return groups_of_files(paths, n_rows, side_files) if side_files else groups
    if groups is not None:
        raise ValueError(
            f"{paths[0]} has qids and group_sizes is given too; "
            "pass group_sizes=None to group by qid."
        )
    side_files = _as_paths(group_sizes)
    if len(side_files) != len(paths):
        raise ValueError(
            f"group_sizes names {len(side_files)} files but there are {len(paths)} data files; "
            "pass one for each."
        )
    return groups_of_files(paths, n_rows, side_files)


def _side_files(paths: list[str]) -> list[str]:
    """A file of group sizes next to every data file, or next to none of them."""
    found = [find_group_sizes(path) for path in paths]
    side_files = [name for name in found if name is not None]
    if 0 < len(side_files) < len(paths):
        raise LetorFormatError(
            paths[found.index(None)],
            None,
            f"no file of group sizes is next to it, but {side_files[0]} is next to another file. "
            "Add the missing one, or pass group_sizes=None to do without groups.",
        )
    return side_files


def _as_object_array(comments: list[str] | None) -> NDArray[np.object_] | None:
    if comments is None:
        return None
    ids = np.empty(len(comments), dtype=object)
    ids[:] = comments
    return ids
