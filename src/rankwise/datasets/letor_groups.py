"""Groups of the rows of LETOR files by qid."""

from __future__ import annotations

import numpy as np

from rankwise.arrays import Indices, Labels
from rankwise.datasets.letor_blocks import Block
from rankwise.datasets.vocabulary import MAX_LABEL, distinct_labels, shown_value
from rankwise.errors import LetorFormatError


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
            code_of_run[run] = self._code(qid)
            self._previous_qid = qid
        n_rows_of_run = np.diff(starts, append=block.n_rows)
        return np.repeat(code_of_run, n_rows_of_run)

    def _code(self, qid: bytes | None) -> int:
        """Return the code of a qid, which is added if it is new; −1 without qid."""
        if qid is None:
            return -1
        if qid not in self._code_of_qid:
            self._code_of_qid[qid] = len(self._qids)
            self._qids.append(qid)
        return self._code_of_qid[qid]

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
            has_group_sizes = codes[0] >= 0  # else -1 in all rows
            if has_group_sizes:
                return codes
            return None
        # Labels are integers if all labels of these rows are, regardless of the rest of the file.
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
