"""The function of `letor_rows.pyx` in Python: the fallback, and a reference for tests."""

from __future__ import annotations

import re
import sys
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from rankwise.arrays import Array

_ROW = re.compile(
    rb"\s*(?P<label>[^\s#]+)(?:\s+qid:(?P<qid>[^\s#]*))?(?P<features>[^#]*)(?:#(?P<comment>.*))?",
    re.DOTALL,
)
_NUMBER = re.compile(rb"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")
_FEATURE = re.compile(rb"\+?(?P<id>[0-9]{1,10}):(?P<value>.*)", re.DOTALL)

#: Begin and end of text in the file; -1 for none.
Span = tuple[int, int]

MAX_FEATURE_ID = 2**31


class ParsedRows(NamedTuple):
    """Rows of a file.

    Attributes
    ----------
    labels, sizes : ndarray of shape (n_rows,)
        Label of each row, and its number of features.
    columns, values : ndarray of shape (n_entries,)
        The features of all rows, row after row.
    lines : ndarray of shape (n_rows,)
        Line numbers of the rows, counted from 0; there may be blank lines and comments.
    qids : ndarray of shape (n_rows, 2)
        Begin and end of the qid in the text; -1 for a row without qid.
    heads : ndarray
        The rows whose qid differs from the previous row.
    comments : ndarray of shape (n_rows, 2)
        Begin and end of the comment in the text.
    n_bytes : int
        Begin of the first malformed line; the length of the text if there is none.
    """

    labels: Array
    sizes: NDArray[np.int64]
    columns: NDArray[np.int32]
    values: Array
    lines: NDArray[np.int64]
    qids: NDArray[np.int64]
    heads: NDArray[np.int64]
    comments: NDArray[np.int64]
    n_bytes: int


class _Feature(NamedTuple):
    """One entry of a row."""

    column: int
    value: float


class _Row(NamedTuple):
    """One row, with spans that begin at the begin of its line."""

    label: float
    columns: list[int]
    values: list[float]
    qid: bytes | None
    qid_span: Span
    comment_span: Span


def read_rows(
    text: bytes | bytearray | memoryview, zero_based: bool, n_columns: int, largest: float
) -> ParsedRows:
    r"""Read rows up to the first malformed row.

    Parameters
    ----------
    text : bytes-like
        Complete lines, the last one with its line feed.
    zero_based : bool
        Whether the first feature has the id 0 instead of 1.
    n_columns : int
        A row with a feature from this column on is malformed.
    largest : float
        A row with a larger absolute value is malformed.

    Returns
    -------
    ParsedRows
        The compiled function returns a plain tuple.

    Examples
    --------
    >>> rows = read_rows(b"2 1:5 3:7\n1 1=4\n", False, 9, 1e300)
    >>> rows.labels, rows.sizes, rows.columns, rows.values, rows.n_bytes
    (array([2.]), array([2]), array([0, 2], dtype=int32), array([5., 7.]), 10)
    """
    # rows of complete lines up to the first malformed one, and how many bytes they have
    content = bytes(text)
    complete_lines = content.split(b"\n")[:-1]
    rows: list[_Row] = []
    line_numbers: list[int] = []
    row_begins: list[int] = []
    begin = 0  # position of the line in the text
    for line_number, line in enumerate(complete_lines):
        match = _ROW.match(line)
        if match is not None:  # else the line is blank, or a comment
            row = _parse_row(match, zero_based, n_columns, largest)
            if row is None:  # malformed
                break
            rows.append(row)
            line_numbers.append(line_number)
            row_begins.append(begin)
        begin += len(line) + 1
    return _join_rows(rows, line_numbers, row_begins, min(begin, len(content)))


def _join_rows(
    rows: list[_Row], line_numbers: list[int], row_begins: list[int], n_bytes: int
) -> ParsedRows:
    """Convert rows to arrays; spans become positions in the text."""
    qids = []
    comments = []
    columns = []
    values = []
    first_rows_of_queries = []
    previous_qid: bytes | None = None
    for number, (row, begin) in enumerate(zip(rows, row_begins, strict=True)):
        qids.append(_shift(row.qid_span, begin))
        comments.append(_shift(row.comment_span, begin))
        columns += row.columns
        values += row.values
        if number == 0 or row.qid != previous_qid:  # the first row of a query
            first_rows_of_queries.append(number)
        previous_qid = row.qid
    return ParsedRows(
        labels=np.array([row.label for row in rows], dtype=np.float64),
        sizes=np.array([len(row.columns) for row in rows], dtype=np.int64),
        columns=np.array(columns, dtype=np.int32),
        values=np.array(values, dtype=np.float64),
        lines=np.array(line_numbers, dtype=np.int64),
        qids=np.array(qids, dtype=np.int64).reshape(-1, 2),
        heads=np.array(first_rows_of_queries, dtype=np.int64),
        comments=np.array(comments, dtype=np.int64).reshape(-1, 2),
        n_bytes=n_bytes,
    )


def _shift(span: Span, begin: int) -> Span:
    """Move a span by the begin of its line, unless it is (-1, -1)."""
    # from positions in the line to positions in the text
    start, stop = span
    if start < 0:  # the regular expression has no such part here
        return span
    return begin + start, begin + stop


def _parse_row(
    match: re.Match[bytes], zero_based: bool, n_columns: int, largest: float
) -> _Row | None:
    """Parse a row; None if it is malformed."""
    label = _parse_number(match["label"], sys.float_info.max)
    if label is None:
        return None
    columns: list[int] = []
    values: list[float] = []
    last_column = -1
    for word in match["features"].split():
        feature = _parse_feature(word, zero_based, n_columns, largest)
        if feature is None or feature.column <= last_column:  # ids must increase
            return None
        columns.append(feature.column)
        values.append(feature.value)
        last_column = feature.column
    comment_span = match.span("comment")
    if match["comment"] is None:  # an empty comment at the end of the line
        end = len(match.string)
        comment_span = (end, end)
    return _Row(label, columns, values, match["qid"], match.span("qid"), comment_span)


def _parse_feature(
    word: bytes, zero_based: bool, n_columns: int, largest: float
) -> _Feature | None:
    """Parse ``id:value``; None if it is malformed, or the id or the value is too large."""
    match = _FEATURE.fullmatch(word)
    if match is None:
        return None
    feature_id = int(match["id"])
    column = feature_id - 1
    if zero_based:
        column = feature_id
    value = _parse_number(match["value"], largest)
    if value is None or feature_id >= MAX_FEATURE_ID or not 0 <= column < n_columns:
        return None
    return _Feature(column, value)


def _parse_number(word: bytes, largest: float) -> float | None:
    """Parse a finite number in decimal notation; None if it is malformed or too large."""
    if _NUMBER.fullmatch(word) is None:
        return None
    value = float(word)
    if abs(value) > largest:
        return None
    return value
