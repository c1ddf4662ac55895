"""Stream LETOR files that are larger than memory, in chunks of whole groups."""

from __future__ import annotations

import os
from collections.abc import Iterator
from itertools import groupby
from operator import itemgetter
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from rankwise.datasets.files import Watch, numbered_lines
from rankwise.datasets.group_sizes import read_group_sizes
from rankwise.datasets.letor_blocks import Row, checked_rows, parse_blocks, stack_blocks
from rankwise.datasets.letor_rows import QidRule, QueryIds, RowRules, check_qid, split_row
from rankwise.datasets.ranking_data import RankingData, as_ids
from rankwise.datasets.tokens import show
from rankwise.errors import LetorFormatError
from rankwise.progress import Meter

__all__ = ["first_row_has_qid", "largest_feature", "stream_chunks"]

MIB = 2**20


class _Groups(Protocol):
    """Follows the rows and numbers their groups; -1 if all rows are one list."""

    @property
    def number(self) -> int:
        """Of the group of the last row."""

    def append(self, qid: bytes | None, path: str, line: int) -> None:
        """Take the next row."""

    def end_file(self, path: str) -> None:
        """A file has no more rows."""


def stream_chunks(
    paths: list[str],
    rules: RowRules,
    n_rows: int,
    sparse: bool | str,
    ids: bool,
    *,
    width: int,
    side_files: list[str],
    progress: bool | None,
) -> Iterator[RankingData]:
    """Yield chunks of whole groups with at least so many rows; the last may have fewer."""
    groups = _SizedGroups(paths, side_files) if side_files else _QidGroups()
    rows = _rows_of_files(paths, rules, groups, progress)
    for _, chunk in groupby(_numbered_chunks(rows, groups, n_rows), key=itemgetter(0)):
        data = _read_chunk(chunk, rules, sparse, ids, width=width, by_size=bool(side_files))
        if sparse == "auto":
            sparse = hasattr(data.X, "toarray")
        yield data


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
        for _, line in numbered_lines(path, meter.watch(path)):
            words = line.partition(b"#")[0].rsplit(None, 1)
            name = words[-1].partition(b":")[0] if words else b""
            if name.isdigit() and len(name) <= 10:
                largest = max(largest, int(name))
    meter.close()
    return max(1, largest + 1 if zero_based else largest)


def _rows_of_files(
    paths: list[str], rules: RowRules, groups: _Groups, progress: bool | None
) -> Iterator[Row]:
    meter = _FileMeter("reading", paths, progress)
    for path in paths:
        is_empty = True
        for row in checked_rows(path, rules, groups, meter.watch(path)):
            is_empty = False
            yield row
        if is_empty:
            raise LetorFormatError(path, None, "the file has no rows, expected at least one.")
        groups.end_file(path)
    meter.close()


def _numbered_chunks(
    rows: Iterator[Row], groups: _Groups, n_rows: int
) -> Iterator[tuple[int, int, Row]]:
    """Rows with the number of their chunk and of their group; a group is never cut."""
    chunk, count, last = 0, 0, -1
    for row in rows:
        if count >= n_rows and (groups.number != last or groups.number < 0):
            chunk, count = chunk + 1, 0
        last = groups.number
        count += 1
        yield chunk, last, row


def _read_chunk(
    chunk: Iterator[tuple[int, int, Row]],
    rules: RowRules,
    sparse: bool | str,
    ids: bool,
    *,
    width: int,
    by_size: bool,
) -> RankingData:
    queries, numbers = QueryIds(), []
    comments: list[bytes] | None = [] if ids else None

    def noted() -> Iterator[Row]:
        for _, number, row in chunk:
            queries.append(row.qid, row.path, row.line)
            numbers.append(number)
            if comments is not None:
                comments.append(row.comment)
            yield row

    blocks = list(parse_blocks(noted(), rules))
    X = stack_blocks([block.X for block in blocks], rules._replace(n_features=width), sparse)
    y = np.concatenate([block.y for block in blocks])
    groups: NDArray[Any] | None = np.array(numbers) if by_size else queries.groups()
    return RankingData(X, y, groups, as_ids(comments))


class _QidGroups:
    """Groups by qid, all rows of one next to each other; or one list without qids."""

    def __init__(self) -> None:
        self.number = -1
        self._rule = QidRule()
        self._last: bytes | None = None
        self._seen: set[bytes] = set()

    def append(self, qid: bytes | None, path: str, line: int) -> None:
        self._rule.check(qid, path, line)
        if qid is None or qid == self._last:
            return
        check_qid(qid, path, line)
        if qid in self._seen:
            raise LetorFormatError(
                path,
                line,
                f"the group {show(qid)} comes back after rows of other groups. To be read in "
                "chunks, the rows of a group must stand next to each other: sort the file by qid, "
                "or read it whole, without chunks.",
            )
        self._seen.add(qid)
        self._last = qid
        self.number += 1

    def end_file(self, path: str) -> None:
        """The next file may go on with the same group."""


class _SizedGroups:
    """Groups by their sizes, one file of sizes for each data file; empty groups are counted."""

    def __init__(self, paths: list[str], side_files: list[str]) -> None:
        self._rule = QidRule()
        self._side_file = dict(zip(paths, side_files, strict=True))
        self._sizes = {path: read_group_sizes(name) for path, name in self._side_file.items()}
        self._first = 0  # number of the first group of the file
        self._start_file()

    @property
    def number(self) -> int:
        return self._first + self._index

    def append(self, qid: bytes | None, path: str, line: int) -> None:
        self._rule.check(qid, path, line)
        sizes = self._sizes[path]
        while self._read == self._end:
            self._index += 1
            if self._index == len(sizes):
                self._refuse(path, f"more rows (line {line})")
            self._end += int(sizes[self._index])
        self._read += 1

    def end_file(self, path: str) -> None:
        if self._read < self._sizes[path].sum():
            self._refuse(path, f"{self._read} rows")
        self._first += len(self._sizes[path])
        self._start_file()

    def _start_file(self) -> None:
        self._index, self._read, self._end = -1, 0, 0

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
            total += os.path.getsize(path)
        name = os.path.basename(paths[0]) if len(paths) == 1 else f"{len(paths)} files"
        self._meter = Meter(f"{what} {name} (MiB)", max(1, -(-total // MIB)), show)

    def watch(self, path: str) -> Watch | None:
        if not self._meter.is_shown:
            return None
        return lambda done: self._meter.update((self._start[path] + done) // MIB)

    def close(self) -> None:
        self._meter.close()
