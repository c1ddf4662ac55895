"""Groups of the rows of LETOR files: by qid, or by files of group sizes."""

from __future__ import annotations

import os
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from rankwise.arrays import Indices, Labels
from rankwise.datasets.files import PACKED, PathLike, numbered_lines
from rankwise.datasets.letor_blocks import Block
from rankwise.datasets.vocabulary import MAX_LABEL, distinct_labels, shown_value
from rankwise.errors import LetorFormatError

MAX_SIZE_DIGITS = 15  # of the size of a group


class SizeFile(NamedTuple):
    """The group sizes of a data file: the path, and the row after the last one of each group."""

    path: str
    end_of_group: Indices

    @property
    def n_rows(self) -> int:
        """Sum of the sizes."""
        return int(self.end_of_group[-1])

    @property
    def n_groups(self) -> int:
        """Number of groups."""
        return len(self.end_of_group)

    def group_of_rows(self, data_path: str, start: int, end: int) -> Indices:
        """Return the number of the group of each row from start to end of the data file."""
        if end > self.n_rows:
            raise self._error(data_path, "more")
        return np.searchsorted(self.end_of_group, np.arange(start, end), side="right")

    def refuse_fewer_rows(self, data_path: str, n_rows: int) -> None:
        """Raise an error if the data file has fewer rows than the groups."""
        if n_rows < self.n_rows:
            raise self._error(data_path, str(n_rows))

    def _error(self, data_path: str, n_rows: str) -> LetorFormatError:
        """Return the error about a data file with another number of rows."""
        return LetorFormatError(
            self.path,
            None,
            f"the group sizes sum to {self.n_rows} but {data_path} has {n_rows} rows; each row "
            "must belong to exactly one group. If this file belongs to other data, pass "
            "group_sizes=None.",
        )


def size_file_next_to(path: str) -> str | None:
    """Return the file of group sizes next to a data file, or None.

    The candidates, in this order, are the name of the data file, with and without its ``.gz``
    (``.bz2``, ``.xz``), followed by ``.query`` or ``.group``, plain or compressed.
    """
    path_without_suffix, suffix = os.path.splitext(path)
    names = [path]
    if suffix.lower() in PACKED:
        names.append(path_without_suffix)
    for name in names:
        for size_suffix in (".query", ".group"):
            for packed_suffix in ("", *PACKED):
                candidate = name + size_suffix + packed_suffix
                if os.path.isfile(candidate):
                    return candidate
    return None


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
        If a line is not one non-negative integer, or there is no line.

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
    for line_number, line in numbered_lines(name):
        text = line.strip()
        if not text:
            continue
        if not text.isdigit() or len(text) > MAX_SIZE_DIGITS:
            raise LetorFormatError(
                name,
                line_number,
                f"got {shown_value(text)}, expected the number of rows of one group: one integer "
                "a line and nothing else.",
            )
        sizes.append(int(text))
    if not sizes:
        raise LetorFormatError(name, None, "the file has no group sizes, expected one a line.")
    return np.array(sizes, dtype=np.intp)


class QidGroups:
    """Codes of groups by qid, in the order of the file; −1 for all rows without qids.

    A qid is never converted to a floating-point number; a qid that is not a number is a string.

    Parameters
    ----------
    must_be_consecutive : bool
        Whether the rows of a group must be consecutive.
    """

    def __init__(self, must_be_consecutive: bool) -> None:
        self._must_be_consecutive = must_be_consecutive
        self._code_of_qid: dict[bytes, int] = {}
        self._qids: list[bytes] = []  # by code
        self._previous_qid: bytes | None = None
        self.has_qids: bool | None = None  # whether the first row has one; None before it

    def codes(self, block: Block) -> Indices:
        """Return the group of each row of a block."""
        starts = block.parsed.starts_of_runs  # of rows with the same qid
        code_of_run = np.empty(len(starts), dtype=np.int64)
        for run, row in enumerate(starts.tolist()):
            qid = block.qid(row)
            if self.has_qids is None:
                self.has_qids = qid is not None
            problem = self._describe_problem(qid)
            if problem:
                raise LetorFormatError(block.path, block.line_of_row(row), problem)
            if qid is not None and qid not in self._code_of_qid:
                self._code_of_qid[qid] = len(self._qids)
                self._qids.append(qid)
            code_of_run[run] = -1 if qid is None else self._code_of_qid[qid]
            self._previous_qid = qid
        n_rows_of_run = np.diff(starts, append=block.n_rows)
        return np.repeat(code_of_run, n_rows_of_run)

    def _describe_problem(self, qid: bytes | None) -> str:
        """Describe the problem of the qid of the next row; an empty text if there is none."""
        if qid is None and self.has_qids:
            return "this row has no qid, but the first row has one. Give every row a qid, or none."
        if qid is not None and not self.has_qids:
            return "this row has a qid, but the first row has none. Give every row a qid, or none."
        if qid is None or qid == self._previous_qid:
            return ""
        if qid in self._code_of_qid and self._must_be_consecutive:
            return (
                f"the group {shown_value(qid)} continues after rows of other groups. In chunks, "
                "the rows of a group must be consecutive: sort the file by qid, or read it "
                "without chunks."
            )
        if qid in self._code_of_qid or _is_valid_qid(qid):
            return ""
        return (
            f"the qid is {shown_value(qid)}, expected a group in UTF-8 of at most {MAX_LABEL} "
            "characters without a space, such as qid:7."
        )

    def labels(self, codes: Indices) -> Labels | None:
        """Return one label per row: int64 if all qids are whole numbers, else strings.

        Without qids the labels are the codes from group sizes, or None without group sizes.
        """
        if not self._qids:
            has_group_sizes = codes[0] >= 0
            if has_group_sizes:
                return codes
            return None
        first_code = int(codes.min())
        last_code = int(codes.max())
        qids = self._qids[first_code : last_code + 1]
        labels = distinct_labels([qid.decode("utf-8") for qid in qids])
        return labels[codes - first_code]


def _is_valid_qid(qid: bytes) -> bool:
    """Whether a qid is a text in UTF-8 that is neither empty nor too long."""
    text = qid.decode("utf-8", "replace")
    is_utf_8 = text.encode("utf-8") == qid
    return is_utf_8 and 0 < len(text) <= MAX_LABEL
