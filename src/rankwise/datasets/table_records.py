"""The records of a CSV file: a header, then rows that may span lines where they are quoted."""

from __future__ import annotations

import csv
from collections.abc import Iterator
from typing import NamedTuple

from rankwise.datasets.labels import show
from rankwise.errors import LetorFormatError

__all__ = [
    "DELIMITERS",
    "Header",
    "check_delimiter",
    "decode_line",
    "first_line",
    "is_blank",
    "raw_records",
    "read_header",
    "split_header",
    "split_record",
    "wrong_width",
]

DELIMITERS = (",", "\t", ";", "|")


class Header(NamedTuple):
    """The column names, the line on which they stand, and what is between them."""

    line: int
    text: str
    names: list[str]
    delimiter: str


def read_header(path: str, lines: Iterator[tuple[int, bytes]], delimiter: str | None) -> Header:
    """Take the header from the lines; without a delimiter, the one that makes most columns."""
    line, text = first_line(path, lines)
    if delimiter is not None:
        return Header(line, text, split_header(path, line, text, delimiter), delimiter)
    split = {mark: split_header(path, line, text, mark) for mark in DELIMITERS if mark in text}
    sizes = sorted((len(names) for names in split.values()), reverse=True)
    if not split or sizes[0] < 2:
        raise LetorFormatError(
            path,
            line,
            f"expected column names separated by comma, tab, semicolon or bar, "
            f"got {show(text.strip())}. Pass delimiter= (--delimiter) if it is another character.",
        )
    if sizes[0] in sizes[1:]:
        raise LetorFormatError(
            path,
            line,
            f"cannot tell what separates the columns in {show(text.strip())}. "
            "Pass delimiter= (--delimiter).",
        )
    best = max(split, key=lambda mark: len(split[mark]))
    return Header(line, text, split[best], best)


def check_delimiter(delimiter: str) -> None:
    """Raise a ValueError unless the delimiter is one character that can stand between cells."""
    bad = not isinstance(delimiter, str) or len(delimiter) != 1 or delimiter in '\n\r\0" .+-_'
    if bad or delimiter.isalnum():
        raise ValueError(
            f"delimiter is {delimiter!r}; pass a single character that is part of no number, "
            "such as ',' or ';' or '\\t'."
        )


def first_line(path: str, lines: Iterator[tuple[int, bytes]]) -> tuple[int, str]:
    """The first line that is not blank, which holds the column names, and its number."""
    for number, line in lines:
        if line.strip():
            return number, decode_line(path, number, line)
    raise LetorFormatError(path, None, "the file is empty, expected a line of column names.")


def decode_line(path: str, number: int, line: bytes) -> str:
    """The line as text in UTF-8."""
    try:
        return line.decode("utf-8")
    except UnicodeDecodeError:
        raise LetorFormatError(
            path,
            number,
            f"{show(line.strip())} is not text in UTF-8. Save the file in that encoding.",
        ) from None


def is_blank(raw: bytes, mark: bytes) -> bool:
    """Whether a line has no cell; a line of tabs between tabs as marks has empty ones."""
    return not raw.strip() and mark not in raw


def split_header(path: str, line: int, text: str, delimiter: str) -> list[str]:
    """The column names, without surrounding blanks."""
    check_delimiter(delimiter)
    try:
        names = next(csv.reader([text], delimiter=delimiter, strict=True))
    except csv.Error as error:
        raise LetorFormatError(path, line, f"cannot read the column names: {error}.") from None
    return [name.strip() for name in names]


def raw_records(
    path: str, lines: Iterator[tuple[int, bytes]], delimiter: str
) -> Iterator[tuple[int, bytes]]:
    """Yield every record as it stands in the file, with the number of the line where it starts.

    Blank lines are records, too.  Only quotation marks and stray carriage returns need the `csv`
    module to tell where a record ends.
    """
    for number, line in lines:
        if b'"' not in line and line.find(b"\r", 0, -2) < 0:
            yield number, line
            continue
        taken = [line]
        reader = csv.reader(_texts(path, number, lines, taken), delimiter=delimiter, strict=True)
        try:
            next(reader)
        except csv.Error as error:
            raise _bad_record(path, number, error) from None
        yield number, b"".join(taken)


def _texts(
    path: str, number: int, lines: Iterator[tuple[int, bytes]], taken: list[bytes]
) -> Iterator[str]:
    yield decode_line(path, number, taken[0])
    for more, line in lines:
        taken.append(line)
        yield decode_line(path, more, line)


def _bad_record(path: str, line: int, error: csv.Error) -> LetorFormatError:
    problem = f"{error}. Check the quotation marks and line ends of this row."
    return LetorFormatError(path, line, problem)


def split_record(path: str, line: int, raw: bytes, delimiter: str, n_columns: int) -> list[str]:
    """The cells of a record, as many as the header has."""
    texts = [decode_line(path, line, raw)]
    try:
        row = next(csv.reader(texts, delimiter=delimiter, strict=True))
    except csv.Error as error:
        raise _bad_record(path, line, error) from None
    if len(row) != n_columns:
        raise wrong_width(path, line, len(row), n_columns)
    return row


def wrong_width(path: str, line: int, n_cells: int, n_columns: int) -> LetorFormatError:
    """The error for a row that is longer or shorter than the header."""
    return LetorFormatError(
        path,
        line,
        f"the row has {n_cells} columns, the header has {n_columns}. "
        "Quote the fields that contain the delimiter.",
    )
