"""The group of every row of a table, kept as codes until all labels are known."""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankwise.datasets.labels import MAX_LABEL, distinct_labels, show
from rankwise.errors import LetorFormatError

__all__ = ["GroupLabels"]


class GroupLabels:
    """Takes labels as they are spelled in the file."""

    def __init__(self) -> None:
        self._codes = array("q")
        self._code_of: dict[str, int] = {}

    def extend(self, path: str, lines: Sequence[int], labels: list[str]) -> None:
        """Take the labels of the next rows, which start at these lines."""
        for label in dict.fromkeys(labels):  # each once, in order
            if label not in self._code_of:
                if not label or len(label) > MAX_LABEL:
                    raise _bad_group(path, lines[labels.index(label)], label)
                self._code_of[label] = len(self._code_of)
        self._codes.extend(map(self._code_of.__getitem__, labels))

    def labels(self) -> NDArray[Any]:
        """One label per row: int64 if all are whole numbers, else strings."""
        distinct = distinct_labels(list(self._code_of), canonical=True)
        labels: NDArray[Any] = distinct[np.frombuffer(self._codes, dtype=np.int64)]
        return labels


def _bad_group(path: str, line: int, label: str) -> LetorFormatError:
    problem = (
        f"the group {show(label)} has {len(label)} characters, at most {MAX_LABEL} are read. "
        "Number the groups instead."
    )
    if not label:
        problem = (
            "the group is empty. Give the row a group, leave it out, or pass group=None "
            "(--group none) to rank all rows as one list."
        )
    return LetorFormatError(path, line, problem)
