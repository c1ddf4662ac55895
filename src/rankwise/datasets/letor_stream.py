"""Read LETOR files in chunks of whole groups; a file that is read whole is one chunk."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from rankwise.datasets.files import Watch, line_blocks, location, numbered_lines
from rankwise.datasets.group_sizes import read_group_sizes
from rankwise.datasets.labels import distinct_labels, show
from rankwise.datasets.letor_blocks import Block, Rows, read_blocks
from rankwise.datasets.letor_rows import RowRules, check_qid, split_row
from rankwise.datasets.ranking_data import RankingData, as_ids
from rankwise.errors import LetorFormatError
from rankwise.progress import Meter

__all__ = ["first_row_has_qid", "largest_feature", "stream_chunks"]

MIB = 2**20


class _Groups(Protocol):
    """Numbers the groups of rows in the order of the file; -1 if all rows are one list."""

    def codes(self, block: Block) -> NDArray[np.int64]:
        """The group of each row of the next block."""

    def end_file(self, path: str) -> None:
        """A file has no more rows."""

    def labels(self, codes: NDArray[np.int64]) -> NDArray[Any] | None:
        """The labels of groups."""


def stream_chunks(
    paths: list[str],
    rules: RowRules,
    n_rows: int | None,
    sparse: bool | str,
    ids: bool,
    *,
    width: int | None,
    side_files: list[str],
    progress: bool | None,
) -> Iterator[RankingData]:
    """Yield chunks of whole groups with at least so many rows (None: all); the last may be less."""
    is_whole = n_rows is None
    groups = _SizedGroups(paths, side_files) if side_files else _QidGroups(in_order=not is_whole)
    rows = Rows(rules.dtype, ids)

    def chunk(n: int) -> RankingData:
        X, y, codes, comments = rows.take(n, width, sparse)
        return RankingData(X, y, groups.labels(codes), as_ids(comments))

    for block in _blocks_of_files(paths, rules, groups, progress):
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


def first_row_has_qid(path: str) -> bool:
    """Whether the first row has a qid, as then all rows must."""
    for _, line in numbered_lines(path):
        body, qid, _ = split_row(line)
        if body and not body.isspace():
            return qid is not None
    raise LetorFormatError(path, None, "the file has no rows, expected at least one.")


def largest_feature(paths: list[str], zero_based: bool, progress: bool | None) -> int:
    """Number of columns, from the last feature of each row: ids increase along a row.

    Anything that is not right is left for the second reading to explain.
    """
    largest = -1
    meter = _FileMeter("counting features of", paths, progress)
    for path in paths:
        for _, block in line_blocks(path, meter.watch(path)):
            for line in block.split(b"\n"):
                words = line.partition(b"#")[0].rsplit(None, 1)
                name = words[-1].partition(b":")[0] if words else b""
                if name.isdigit() and len(name) <= 10:
                    largest = max(largest, int(name))
    meter.close()
    return max(1, largest + 1 if zero_based else largest)


def _blocks_of_files(
    paths: list[str], rules: RowRules, groups: _Groups, progress: bool | None
) -> Iterator[Block]:
    meter = _FileMeter("reading", paths, progress)
    for path in paths:
        is_empty = True
        for block in read_blocks(path, rules, meter.watch(path)):
            is_empty = is_empty and not len(block.labels)
            yield block
        if is_empty:
            raise LetorFormatError(path, None, "the file has no rows, expected at least one.")
        groups.end_file(path)
    meter.close()


class _QidGroups:
    """Groups by qid, or one list where no row has one.

    A qid never passes through a floating point number, and one that spells no number is a string.

    Parameters
    ----------
    in_order : bool
        Whether the rows of a group have to stand next to each other.
    """

    def __init__(self, *, in_order: bool) -> None:
        self._in_order = in_order
        self._code_of: dict[bytes, int] = {}
        self._names: list[bytes] = []
        self._last: bytes | None = None
        self._first: tuple[str, bool] | None = None

    def codes(self, block: Block) -> NDArray[np.int64]:
        codes = np.empty(len(block.heads), dtype=np.int64)
        for k, row in enumerate(block.heads.tolist()):
            begin, end = block.qids[row]
            qid = None if begin < 0 else block.text[begin:end]
            codes[k] = self._code(qid, block.path, int(block.lines[row]))
        return np.repeat(codes, np.diff(block.heads, append=len(block.labels)))

    def _code(self, qid: bytes | None, path: str, line: int) -> int:
        if self._first is None:
            self._first = (f"{path}:{line}", qid is not None)
        self._check_all_or_none(qid is not None, path, line)
        if qid is None:
            return -1
        code = self._code_of.get(qid)
        if code is None:
            check_qid(qid, path, line)
            code = self._code_of[qid] = len(self._names)
            self._names.append(qid)
        elif self._in_order and qid != self._last:
            raise LetorFormatError(
                path,
                line,
                f"the group {show(qid)} comes back after rows of other groups. To be read in "
                "chunks, the rows of a group must stand next to each other: sort the file by qid, "
                "or read it whole, without chunks.",
            )
        self._last = qid
        return code

    def _check_all_or_none(self, has_qid: bool, path: str, line: int) -> None:
        where, expected = self._first or ("", has_qid)
        if has_qid != expected:
            has, had = ("no qid", "has one") if expected else ("a qid", "has none")
            raise LetorFormatError(
                path,
                line,
                f"this row has {has}, but the first row ({where}) {had}. Give every row a qid "
                "right after its label, or none at all.",
            )

    def end_file(self, path: str) -> None:
        """The next file may go on with the same group."""

    def labels(self, codes: NDArray[np.int64]) -> NDArray[Any] | None:
        """One label per row: int64 if all qids are whole numbers, else strings; None if no qids."""
        if not self._names:
            return None
        low = int(codes.min())
        names = [qid.decode("utf-8") for qid in self._names[low : int(codes.max()) + 1]]
        labels: NDArray[Any] = distinct_labels(names)[codes - low]
        return labels


class _SizedGroups:
    """Groups by their sizes, one file of sizes for each data file; empty groups are counted."""

    def __init__(self, paths: list[str], side_files: list[str]) -> None:
        self._side_file = dict(zip(paths, side_files, strict=True))
        self._sizes = {path: read_group_sizes(name) for path, name in self._side_file.items()}
        self._before, self._n_rows = 0, 0  # groups of earlier files, rows of this one

    def codes(self, block: Block) -> NDArray[np.int64]:
        if (block.qids >= 0).any():
            line = int(block.lines[(block.qids[:, 0] >= 0).argmax()])
            raise LetorFormatError(
                block.path, line, "this row has a qid, but the first row has none."
            )
        ends = np.cumsum(self._sizes[block.path])
        rows = np.arange(self._n_rows, self._n_rows + len(block.labels))
        self._n_rows += len(rows)
        if self._n_rows > ends[-1]:
            extra = block.lines[len(rows) - (self._n_rows - int(ends[-1]))]
            self._refuse(block.path, f"more rows (line {extra})")
        return self._before + np.searchsorted(ends, rows, side="right").astype(np.int64)

    def end_file(self, path: str) -> None:
        if self._n_rows < self._sizes[path].sum():
            self._refuse(path, f"{self._n_rows} rows")
        self._before += len(self._sizes[path])
        self._n_rows = 0

    def labels(self, codes: NDArray[np.int64]) -> NDArray[Any]:
        return codes

    def _refuse(self, path: str, found: str) -> None:
        raise LetorFormatError(
            self._side_file[path],
            None,
            f"the group sizes sum to {self._sizes[path].sum()} but {path} has {found}; each row "
            "must belong to exactly one group. If this file belongs to other data, pass "
            "group_sizes=None.",
        )


class _FileMeter:
    """A bar over the bytes of several files, in MiB."""

    def __init__(self, what: str, paths: list[str], show: bool | None) -> None:
        self._start, total = {}, 0
        for path in paths:
            self._start[path] = total
            total += os.path.getsize(location(path))
        name = os.path.basename(paths[0]) if len(paths) == 1 else f"{len(paths)} files"
        self._meter = Meter(f"{what} {name} (MiB)", max(1, -(-total // MIB)), show)

    def watch(self, path: str) -> Watch | None:
        if not self._meter.is_shown:
            return None
        return lambda done: self._meter.update((self._start[path] + done) // MIB)

    def close(self) -> None:
        self._meter.close()
