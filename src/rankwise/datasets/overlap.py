"""A short fingerprint of the rows of a data set, to recognize them later, in any order or in part.

Every row has a hash of 64 bits of its columns, its score and its group. The sketch keeps the
smallest ones, so a row of other data whose hash is below the largest of these was there if and only
if its hash is one of them: such rows are a fair sample of all.

Rows that were never seen may have twins in the training data, too. How many is told by the training
data themselves: a new row has a twin there as often as one of them has a twin among the others.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankwise.datasets.column_values import distinct_cells, is_number
from rankwise.datasets.vocabulary import finite_number

SIZE = 256
SHARE_TO_REPORT = 0.1
STANDARD_ERRORS = 3.0  # by which a share of twins must differ from that inside the training data
_ROWS = 1 << 12  # hashed at once


def fingerprint_rows(X: Any, y: NDArray[np.float64], groups: Any = None) -> str:
    """The sketch of rows: the share of twins among them, and hashes as hexadecimals.

    Parameters
    ----------
    X : ndarray, sparse matrix or pyarrow.Table
        Columns; those of a table count by name, in any order.
    y : ndarray of shape (n_rows,)
        Scores.
    groups : ndarray of shape (n_rows,), optional
        Group labels.

    Examples
    --------
    >>> import numpy as np
    >>> X, y = np.arange(20.0).reshape(10, 2), np.arange(10.0)
    >>> sketch = fingerprint_rows(X, y)
    >>> share_seen(sketch, X[[7, 3]], y[[7, 3]]), share_seen(sketch, X + 1, y)
    (1.0, 0.0)
    """
    hashes, counts = np.unique(_hashes(X, y, groups), return_counts=True)
    kept, counts = hashes[:SIZE], counts[:SIZE]
    twins = counts[counts > 1].sum() / max(1, counts.sum())
    return f"{twins:.4f} {kept.astype('>u8').tobytes().hex()}"


def share_seen(sketch: str, X: Any, y: NDArray[np.float64], groups: Any = None) -> float:
    """About which share of these rows was there when the sketch was made.

    Equal rows count once. The share is 0 unless more rows have twins there than the rows of the
    sketch have among themselves, by three standard errors; and if the sketch is damaged.
    """
    try:
        share, _, text = sketch.partition(" ")
        among = float(share)
        known = np.frombuffer(bytes.fromhex(text), dtype=">u8").astype(np.uint64)
    except ValueError:
        return 0.0
    hashes = np.unique(_hashes(X, y, groups))
    if len(known) >= SIZE:
        hashes = hashes[hashes <= known.max()]
    if not len(hashes) or not len(known):
        return 0.0
    twins = float(np.isin(hashes, known).mean())
    expected = (among * len(known) + 1) / (len(known) + 2)  # never 0 or 1
    error = np.sqrt(expected * (1 - expected) / len(hashes))
    if twins <= among or twins - among < STANDARD_ERRORS * error:
        return 0.0
    return (twins - among) / (1 - among)


def describe_overlap(share: float, model: str, rows: str = "items") -> str:
    """What is to be said about the rows that a model is judged by; nothing if they are new."""
    if share < SHARE_TO_REPORT:
        return ""
    how_many = "all" if share > 0.99 else f"about {share:.0%}"
    return (
        f"{model} was trained on {how_many} of these {rows}, so the figures flatter it; judge "
        f"it on {rows} that it has not seen, or by cross-validation"
    )


def _hashes(X: Any, y: NDArray[np.float64], groups: Any) -> NDArray[np.uint64]:
    """Sums of hashes of the cells of a row, each times the odd number of its column."""
    sums = _mixed(_bits(y)) * _text_hash("y")
    if groups is not None:
        labels, codes = np.unique(np.asarray(groups), return_inverse=True)
        sums += _text_hashes(map(str, labels.tolist()))[codes] * _text_hash("group")
    if hasattr(X, "column_names"):
        for name, column in zip(X.column_names, X.columns, strict=True):
            sums += _cell_hashes(column) * _text_hash(name)
        return _mixed(sums)
    factors = _mixed(np.arange(1, X.shape[1] + 1, dtype=np.uint64)) | np.uint64(1)
    for start in range(0, len(y), _ROWS):
        rows = slice(start, start + _ROWS)
        cells = X[rows].toarray() if hasattr(X, "tocsr") else np.asarray(X)[rows]
        sums[rows] += _mixed(_bits(cells)) @ factors
    return _mixed(sums)


def _cell_hashes(column: Any) -> NDArray[np.uint64]:
    """A hash of each cell of a column of Arrow: of its number, or of its text."""
    if is_number(column.type):
        return _mixed(_bits(column.cast("double", safe=False).to_numpy()))
    codes, texts = distinct_cells(column)
    numbers = [np.nan if text == "" else finite_number(text) for text in texts]
    hashes = _text_hashes(iter(texts))
    is_number_too = np.array([number is not None for number in numbers])
    hashes[is_number_too] = _mixed(_bits([n for n in numbers if n is not None]))
    return hashes[codes]


def _text_hashes(texts: Iterator[str]) -> NDArray[np.uint64]:
    return np.array([_text_hash(text) for text in texts], dtype=np.uint64)


def _text_hash(text: str) -> np.uint64:
    """An odd number that depends on the text."""
    digest = hashlib.blake2b(text.encode(), digest_size=8).digest()
    return np.uint64(int.from_bytes(digest) | 1)


def _bits(values: Any) -> NDArray[np.uint64]:
    floats = np.ascontiguousarray(values, dtype=np.float64) + 0.0  # minus zero is zero
    return np.where(np.isnan(floats), np.nan, floats).view(np.uint64)


def _mixed(values: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """The last step of the generator splitmix64: every bit depends on all."""
    for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
        values = (values ^ (values >> np.uint64(shift))) * np.uint64(factor)
    return values ^ (values >> np.uint64(31))
