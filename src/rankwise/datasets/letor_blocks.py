"""Rows of LETOR files, collected: labels, features and groups of what has been read so far."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rankwise._compiled import read_rows
from rankwise.datasets.files import Watch, line_blocks
from rankwise.datasets.letor_rows import MOST_COLUMNS, RowRules, refuse_line
from rankwise.datasets.ranking_data import Matrix
from rankwise.machine import available_bytes

BLOCK_BYTES = 1 << 20
_DENSE_SHARE = 3  # dense if at least 1 / 3 of the entries are written
_PIECE = 1 << 19  # entries of a dense array filled at once


class Block(NamedTuple):
    """Consecutive rows of a file; see `rankwise._compiled.letor_twin.read_rows`."""

    path: str
    text: bytes
    labels: NDArray[np.float64]
    sizes: NDArray[np.int64]
    columns: NDArray[np.int32]
    values: NDArray[np.float64]
    lines: NDArray[np.int64]
    qids: NDArray[np.int64]
    heads: NDArray[np.int64]
    comments: NDArray[np.int64]


def read_blocks(path: str, rules: RowRules, watch: Watch | None = None) -> Iterator[Block]:
    """Yield the rows of a file by blocks; a line that is not right is explained after its block."""
    largest = float(np.finfo(rules.dtype).max)
    for first, text in line_blocks(path, watch, n_bytes=BLOCK_BYTES):
        *arrays, n_read = read_rows(
            text, rules.zero_based, rules.n_features or MOST_COLUMNS, largest
        )
        arrays[4] = arrays[4] + first
        yield Block(path, text, *arrays)
        if n_read < len(text):
            number = first + text.count(b"\n", 0, n_read)
            refuse_line(path, number, text[n_read : text.index(b"\n", n_read)], rules)


class Rows:
    """Rows that wait to become one chunk; the comments are kept if `ids` are asked for."""

    def __init__(self, dtype: np.dtype[Any], ids: bool) -> None:
        self._labels, self._codes = _Growing(np.float64), _Growing(np.int64)
        self._sizes, self._values = _Growing(np.int64), _Growing(dtype)
        self._columns: _Growing | None = None  # as long as every row has all features
        self._comments: list[bytes] | None = [] if ids else None

    def __len__(self) -> int:
        return len(self._labels)

    @property
    def codes(self) -> NDArray[np.int64]:
        """Group of each row, as given to `extend`."""
        return self._codes.view()

    def extend(self, block: Block, codes: NDArray[np.int64]) -> None:
        """Take the rows of a block, whose groups have these codes."""
        self._take_columns(block)
        self._labels.extend(block.labels)
        self._sizes.extend(block.sizes)
        self._values.extend(block.values)
        self._codes.extend(codes)
        if self._comments is not None:
            self._comments.extend(block.text[a:b] for a, b in block.comments.tolist())

    def _take_columns(self, block: Block) -> None:
        if self._columns is None:
            sizes = self._sizes.view()
            width = int(sizes[0] if len(sizes) else block.sizes[0] if len(block.sizes) else 0)
            if bool((block.sizes == width).all()) and bool(
                (block.columns.reshape(-1, max(width, 1)) == np.arange(width)).all()
            ):
                return
            self._columns = _Growing(np.int32)
            self._columns.extend(np.tile(np.arange(width, dtype=np.int32), len(sizes)))
        self._columns.extend(block.columns)

    def take(
        self, n_rows: int, width: int | None, sparse: bool | str
    ) -> tuple[Matrix, NDArray[np.float64], NDArray[np.int64], NDArray[np.object_] | None]:
        """The first rows: features, labels, codes and comments as text; they are not kept.

        `width` is the number of columns, by default the largest feature of the rows; `sparse` is as
        `read_letor` has it.
        """
        labels, codes = self._labels.take(n_rows), self._codes.take(n_rows)
        sizes = self._sizes.take(n_rows)
        n_entries = int(sizes.sum())
        columns = None if self._columns is None else self._columns.take(n_entries)
        values = self._values.take(n_entries)
        ids = None
        if self._comments is not None:
            texts = [c.decode("utf-8", "backslashreplace").strip() for c in self._comments[:n_rows]]
            ids, self._comments = np.array(texts, dtype=object), self._comments[n_rows:]
        if not len(self):
            self._columns = None
        return _matrix(sizes, columns, values, width, sparse), labels, codes, ids


class _Growing:
    """An array that grows at its end; only what was written takes memory."""

    def __init__(self, dtype: Any) -> None:
        self._array: NDArray[Any] = np.empty(0, dtype=dtype)
        self._size = 0

    def __len__(self) -> int:
        return self._size

    def view(self) -> NDArray[Any]:
        return self._array[: self._size]

    def extend(self, more: NDArray[Any]) -> None:
        end = self._size + len(more)
        if end > len(self._array):  # in place where the system can, so that nothing is there twice
            self._array.resize(end + end // 8, refcheck=False)
        self._array[self._size : end] = more
        self._size = end

    def take(self, n: int) -> NDArray[Any]:
        """The first entries, which are not copied; the others stay."""
        rest, taken = self._array[n : self._size].copy(), self._array
        taken.resize(n, refcheck=False)
        self._array, self._size = rest, len(rest)
        return taken


def _matrix(
    sizes: NDArray[np.int64],
    columns: NDArray[np.int32] | None,
    values: NDArray[Any],
    width: int | None,
    sparse: bool | str,
) -> Matrix:
    """Features of rows as a dense array or CSR matrix; without columns, every row has them all."""
    from scipy.sparse import csr_matrix

    n_rows, n_full = len(sizes), int(sizes.max(initial=0))
    named = n_full if columns is None else int(columns.max(initial=-1)) + 1
    width = named if width is None else width
    if sparse == "auto":
        sparse = len(values) * _DENSE_SHARE < n_rows * width
    if not sparse and columns is None and n_full == width:
        return values.reshape(n_rows, width)
    if not sparse:
        return _dense(sizes, columns, values, width)
    if columns is None:
        columns = np.tile(np.arange(n_full, dtype=np.int32), n_rows)
    index = np.int32 if max(width, len(values)) < 2**31 else np.int64
    ends = np.concatenate([[0], np.cumsum(sizes)]).astype(index)
    return csr_matrix((values, columns.astype(index, copy=False), ends), shape=(n_rows, width))


def _dense(
    sizes: NDArray[np.int64], columns: NDArray[np.int32] | None, values: NDArray[Any], width: int
) -> NDArray[Any]:
    """Fill an array from its last row to the first, and give back the memory of what was used."""
    from scipy.sparse import csr_matrix

    n_bytes = len(sizes) * width * values.itemsize
    free = available_bytes()
    try:
        if free is not None and n_bytes > free + 2 * values.nbytes:
            raise MemoryError
        dense: NDArray[Any] = np.empty((len(sizes), width), dtype=values.dtype)
    except (MemoryError, ValueError):
        raise ValueError(
            f"a dense array of {len(sizes)} rows and {width} features would take "
            f"{n_bytes / 2**30:.1f} GiB; pass sparse=True or sparse='auto'."
        ) from None
    if columns is None:
        n_full = int(sizes.max(initial=0))
        dense[:, :n_full] = values.reshape(len(sizes), n_full)
        dense[:, n_full:] = 0
        return dense
    ends = np.concatenate([[0], np.cumsum(sizes)])
    step = max(1, _PIECE // max(width, 1))
    for low in reversed(range(0, len(sizes), step)):
        high = min(low + step, len(sizes))
        part = slice(ends[low], ends[high])
        rows = csr_matrix(
            (values[part], columns[part], ends[low : high + 1] - ends[low]),
            shape=(high - low, width),
        )
        rows.toarray(out=dense[low:high])
        del rows
        values.resize(ends[low], refcheck=False)
        columns.resize(ends[low], refcheck=False)
    return dense
