"""The function of `letor_rows.pyx` in Python: fallback without a compiler, and test oracle."""

from __future__ import annotations

import re
import sys
from typing import Any

import numpy as np

_ROW = re.compile(rb"\s*([^\s#]+)(?:\s+qid:([^\s#]*))?([^#]*)(?:#(.*))?", re.DOTALL)
_NUMBER = re.compile(rb"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")
_FEATURE = re.compile(rb"\+?([0-9]{1,10}):(.*)", re.DOTALL)


def read_rows(text: Any, zero_based: bool, n_columns: int, largest: float) -> tuple[Any, ...]:
    r"""Read rows up to the first that is not right.

    Parameters
    ----------
    text : bytes-like
        Whole lines, the last one with its line feed.
    zero_based : bool
        Whether the first feature has the id 0 and not 1.
    n_columns : int
        Features from this column on are not right.
    largest : float
        Neither are values that are larger.

    Returns
    -------
    labels, sizes : ndarray of shape (n_rows,)
        Label of each row, and its number of features.
    columns, values : ndarray of shape (n_entries,)
        The features of all rows, one row after the other.
    lines : ndarray of shape (n_rows,)
        Where the rows stand, counted from 0: there may be blank lines and comments.
    qids : ndarray of shape (n_rows, 2)
        Begin and end of the qid in the text; -1 for a row without.
    heads : ndarray
        The rows whose qid is not that of the row before.
    comments : ndarray of shape (n_rows, 2)
        Begin and end of the comment in the text.
    n_bytes : int
        Where the first bad line begins; the length of the text if there is none.

    Examples
    --------
    >>> labels, sizes, columns, values, *_, n = read_rows(b"2 1:5 3:7\n1 1=4\n", False, 9, 1e300)
    >>> labels, sizes, columns, values, n
    (array([2.]), array([2]), array([0, 2], dtype=int32), array([5., 7.]), 10)
    """
    content = bytes(text)
    rows: list[Any] = []
    entries: list[tuple[int, float]] = []
    heads = []
    before: bytes | None = None
    begin = 0
    for line, raw in enumerate(content.split(b"\n")[:-1]):
        found = _ROW.match(raw)
        if found is not None:
            row = _read_row(found, zero_based, n_columns, largest)
            if row is None:
                break
            if not rows or found[2] != before:
                heads.append(len(rows))
            before = found[2]
            at = [begin + k if k >= 0 else k for k in (*found.span(2), *found.span(4))]
            if found[4] is None:
                at[2:] = [begin + len(raw)] * 2
            rows.append((row[0], len(row[1]), line, *at))
            entries.extend(row[1])
        begin += len(raw) + 1
    table = np.array([row[1:] for row in rows], dtype=np.int64).reshape(-1, 6)
    return (
        np.array([row[0] for row in rows], dtype=np.float64),
        table[:, 0],
        np.array([column for column, _ in entries], dtype=np.int32),
        np.array([value for _, value in entries], dtype=np.float64),
        table[:, 1],
        table[:, 2:4],
        np.array(heads, dtype=np.int64),
        table[:, 4:],
        min(begin, len(content)),
    )


def _read_row(
    found: re.Match[bytes], zero_based: bool, n_columns: int, largest: float
) -> tuple[float, list[tuple[int, float]]] | None:
    label = _number(found[1], sys.float_info.max)
    if label is None:
        return None
    entries: list[tuple[int, float]] = []
    before = -1
    for word in found[3].split():
        parts = _FEATURE.fullmatch(word)
        value = None if parts is None else _number(parts[2], largest)
        if parts is None or value is None:
            return None
        column = int(parts[1]) - (0 if zero_based else 1)
        if not before < column < n_columns or int(parts[1]) >= 2**31:
            return None
        entries.append((column, value))
        before = column
    return label, entries


def _number(word: bytes, largest: float) -> float | None:
    if _NUMBER.fullmatch(word) is None:
        return None
    value = float(word)
    return value if -largest <= value <= largest else None
