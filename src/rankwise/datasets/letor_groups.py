"""Groups of the rows of LETOR files: by qid, or by a side file of group sizes."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankwise.datasets.group_sizes import read_group_sizes
from rankwise.datasets.labels import distinct_labels, show
from rankwise.datasets.letor_blocks import Block
from rankwise.datasets.letor_rows import check_qid
from rankwise.errors import LetorFormatError


class QidGroups:
    """Numbers groups by qid in the order of the file; -1 for all rows if none has one.

    A qid never passes through a floating point number, and one that spells no number is a string.

    Parameters
    ----------
    in_order : bool
        Whether the rows of a group have to stand next to each other.
    """

    def __init__(self, *, in_order: bool) -> None:
        self._in_order = in_order
        self._code_of: dict[bytes, int] = {}
        self._qids: list[bytes] = []
        self._last: bytes | None = None
        self._first: tuple[str, bool] | None = None

    def codes(self, block: Block) -> NDArray[np.int64]:
        """The group of each row of the next block."""
        codes = np.empty(len(block.heads), dtype=np.int64)
        for k, row in enumerate(block.heads.tolist()):
            begin, end = block.qids[row]
            qid = None if begin < 0 else block.text[begin:end]
            codes[k] = self._code(qid, block.path, int(block.lines[row]))
        return np.repeat(codes, np.diff(block.heads, append=len(block.labels)))

    def _code(self, qid: bytes | None, path: str, line: int) -> int:
        where, expected = self._first = self._first or (f"{path}:{line}", qid is not None)
        if (qid is not None) != expected:
            has, had = ("no qid", "has one") if expected else ("a qid", "has none")
            raise LetorFormatError(
                path,
                line,
                f"this row has {has}, but the first row ({where}) {had}. Give every row a qid "
                "right after its label, or none at all.",
            )
        if qid is None:
            return -1
        if qid not in self._code_of:
            check_qid(qid, path, line)
            self._code_of[qid] = len(self._qids)
            self._qids.append(qid)
        elif self._in_order and qid != self._last:
            raise LetorFormatError(
                path,
                line,
                f"the group {show(qid)} comes back after rows of other groups. To be read in "
                "chunks, the rows of a group must stand next to each other: sort the file by qid, "
                "or read it whole, without chunks.",
            )
        self._last = qid
        return self._code_of[qid]

    def end_file(self, path: str) -> None:
        """A file has no more rows; the next one may go on with the same group."""

    def labels(self, codes: NDArray[np.int64]) -> NDArray[Any] | None:
        """One label per row: int64 if all qids are whole numbers, else strings; None if no qids."""
        if not self._qids:
            return None
        low = int(codes.min())
        qids = self._qids[low : int(codes.max()) + 1]
        labels: NDArray[Any] = distinct_labels([qid.decode("utf-8") for qid in qids])[codes - low]
        return labels


class SizedGroups:
    """Numbers groups by their sizes, one file of sizes a data file; empty groups are counted."""

    def __init__(self, paths: list[str], side_files: list[str]) -> None:
        self._side_file = dict(zip(paths, side_files, strict=True))
        self._ends = {path: np.cumsum(read_group_sizes(f)) for path, f in self._side_file.items()}
        self._before, self._n_rows = 0, 0  # groups of earlier files, rows of this one

    def codes(self, block: Block) -> NDArray[np.int64]:
        """The group of each row of the next block."""
        if (block.qids >= 0).any():
            line = int(block.lines[(block.qids[:, 0] >= 0).argmax()])
            problem = "this row has a qid, but the first row has none."
            raise LetorFormatError(block.path, line, problem)
        ends = self._ends[block.path]
        rows = np.arange(self._n_rows, self._n_rows + len(block.labels))
        self._n_rows += len(rows)
        if self._n_rows > ends[-1]:
            extra = block.lines[len(rows) - (self._n_rows - int(ends[-1]))]
            self._refuse(block.path, f"more rows (line {extra})")
        return self._before + np.searchsorted(ends, rows, side="right").astype(np.int64)

    def end_file(self, path: str) -> None:
        """A file has no more rows, and should have had as many as the sizes say."""
        if self._n_rows < self._ends[path][-1]:
            self._refuse(path, f"{self._n_rows} rows")
        self._before += len(self._ends[path])
        self._n_rows = 0

    def labels(self, codes: NDArray[np.int64]) -> NDArray[np.int64]:
        """One label per row: the number of its group."""
        return codes

    def _refuse(self, path: str, found: str) -> None:
        raise LetorFormatError(
            self._side_file[path],
            None,
            f"the group sizes sum to {self._ends[path][-1]} but {path} has {found}; each row "
            "must belong to exactly one group. If this file belongs to other data, pass "
            "group_sizes=None.",
        )
