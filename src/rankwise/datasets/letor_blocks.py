"""Blocks of rows of a LETOR file: checked, parsed by scikit-learn, stacked."""

from __future__ import annotations

import io
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from rankwise.datasets.files import Watch, numbered_lines
from rankwise.datasets.letor_rows import RowRules, row_problem, split_row
from rankwise.errors import LetorFormatError

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix

    Matrix: TypeAlias = NDArray[Any] | csr_matrix

__all__ = ["Block", "QueryCollector", "Row", "checked_rows", "parse_blocks", "stack_blocks"]

BLOCK_BYTES = 1 << 22
_DENSE_SHARE = 3  # dense if at least 1 / 3 of the entries are stored


class QueryCollector(Protocol):
    """Takes the qid of every row, and raises a LetorFormatError if it does not like one."""

    def append(self, qid: bytes | None, path: str, line: int) -> None:
        """Take the qid of the next row, None for a row without."""


class Row(NamedTuple):
    """A row and where it stands; the body is without qid and comment."""

    path: str
    line: int
    body: bytes
    qid: bytes | None
    comment: bytes


class Block(NamedTuple):
    """Features (CSR) and labels of some consecutive rows."""

    X: Any
    y: NDArray[np.float64]


def checked_rows(
    path: str, rules: RowRules, queries: QueryCollector, watch: Watch | None = None
) -> Iterator[Row]:
    """Yield the rows of a file; what scikit-learn would read wrongly is refused here."""
    for number, line in numbered_lines(path, watch):
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
        yield Row(path, number, body, qid, comment)


def parse_blocks(rows: Iterator[Row], rules: RowRules) -> Iterator[Block]:
    """Parse the rows of one file in blocks of a few megabytes."""
    block: list[Row] = []
    n_bytes = 0
    for row in rows:
        block.append(row)
        n_bytes += len(row.body)
        if n_bytes >= BLOCK_BYTES:
            yield _parse(block, rules)
            block, n_bytes = [], 0
    if block:
        yield _parse(block, rules)


def _parse(rows: list[Row], rules: RowRules) -> Block:
    """Features and labels of a block; if any is wrong, the first bad row is explained."""
    from sklearn.datasets import load_svmlight_file

    text = io.BytesIO(b"\n".join(row.body for row in rows))
    reason = "it is not in the LETOR format"
    try:
        X, y = load_svmlight_file(text, dtype=rules.dtype, zero_based=rules.zero_based)
    except (ValueError, OverflowError) as error:
        reason = str(error)
    else:
        fits = rules.n_features is None or _width(X) <= rules.n_features
        if len(y) == len(rows) and fits and _all_finite(X.data) and _all_finite(y):
            return Block(X, y)
    for row in rows:
        _raise_problem(row.path, row.line, row.body, rules)
    raise LetorFormatError(rows[0].path, rows[0].line, f"cannot read from this line on: {reason}.")


def _raise_problem(path: str, number: int, body: bytes, rules: RowRules) -> None:
    problem = row_problem(body, rules)
    if problem is not None:
        raise LetorFormatError(path, number, problem)


def _all_finite(values: NDArray[Any]) -> bool:
    return bool(np.isfinite(values).all())


def _width(X: Any) -> int:
    """Number of columns that are really named: scikit-learn says 1 where there is none."""
    return int(X.indices.max()) + 1 if X.nnz else 0


def stack_blocks(blocks: list[Any], rules: RowRules, sparse: bool | str) -> Matrix:
    """One matrix from the features of blocks; dense or CSR as `read_letor` says."""
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
