"""Blocks of lines of LETOR files, and the rows that are parsed from them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from rankwise._compiled import read_rows
from rankwise.arrays import Array, Indices
from rankwise.datasets.files import line_blocks
from rankwise.datasets.vocabulary import finite_number, shown_value
from rankwise.errors import LetorFormatError

MAX_COLUMNS = 2**27  # with more columns n_features= is required: a model has as many coefficients


class ParsedRows(NamedTuple):
    """What `read_rows` finds in a text; spans are begin and end in bytes, −1 for none."""

    labels: Array
    n_entries: Indices
    columns: NDArray[np.int32]
    values: Array
    lines: Indices  # counted from 0
    qid_spans: Indices
    starts_of_runs: Indices  # rows whose qid differs from that of the previous row
    comment_spans: Indices
    n_bytes_read: int  # less than the length of the text if a line cannot be read


class Block(NamedTuple):
    """Complete lines of a file, and the rows in them."""

    path: str
    text: bytes
    first_line: int
    parsed: ParsedRows

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return len(self.parsed.labels)

    def line_of_row(self, row: int) -> int:
        """Return the number of the line of a row, counted from 1."""
        return self.first_line + int(self.parsed.lines[row])

    def qid(self, row: int) -> bytes | None:
        """Return the qid of a row; None if it has none."""
        start, end = self.parsed.qid_spans[row]
        if start < 0:
            return None
        return self.text[start:end]

    def comments(self) -> list[bytes]:
        """Return the comment of each row."""
        return [self.text[start:end] for start, end in self.parsed.comment_spans.tolist()]


def parse_blocks(
    path: str, n_features: int | None, zero_based: bool, largest_value: float
) -> Iterator[Block]:
    """Yield blocks of parsed lines; an unreadable line raises after the rows before it.

    Parameters
    ----------
    path : str
        The file.
    n_features : int or None
        Number of columns; None: any, up to `MAX_COLUMNS`.
    zero_based : bool
        Whether the first feature has the id 0.
    largest_value : float
        Largest magnitude of a value.
    """
    max_columns = n_features or MAX_COLUMNS
    for first_line, text in line_blocks(path):
        parsed = ParsedRows(*read_rows(text, zero_based, max_columns, largest_value))
        yield Block(path, text, first_line, parsed)
        if parsed.n_bytes_read < len(text):  # the line after these bytes cannot be read
            start = parsed.n_bytes_read
            line_number = first_line + text.count(b"\n", 0, start)
            line = text[start : text.index(b"\n", start)]
            problem = _describe_problem(line, max_columns, zero_based)
            raise LetorFormatError(path, line_number, problem)


def _describe_problem(line: bytes, max_columns: int, zero_based: bool) -> str:
    """Describe the error in a line."""
    first_id = 1
    if zero_based:
        first_id = 0
    last_id = first_id + max_columns - 1
    if b" 0:" in line and not zero_based:
        return (
            f"feature id 0 in {shown_value(line)}, but ids are expected to start at 1. "
            "Pass zero_based=True if the file counts from 0."
        )
    invalid_text = line
    text_before_comment = line.partition(b"#")[0]
    for word in text_before_comment.split():
        value = word.rpartition(b":")[2]
        if not word.startswith(b"qid:") and finite_number(value) is None:
            invalid_text = word
            break
    return (
        f"got {shown_value(invalid_text)}, expected 'label qid:group feature:value feature:value "
        f"... # comment' with finite numbers, and features from {first_id} to {last_id} in "
        "increasing order. A feature that is left out is 0. Pass n_features= if there are more."
    )
