"""CSV and its relatives, read by Arrow; what Arrow refuses is found again and explained."""

from __future__ import annotations

import codecs
import csv
import io
import mmap
import re
from collections import deque
from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Any

import numpy as np

from rankwise.datasets.files import (
    BLOCK_BYTES,
    MAX_LINE,
    import_arrow,
    location,
    text_content,
)
from rankwise.datasets.labels import GAPS, MISSING, show
from rankwise.errors import TableFormatError

DELIMITERS = (",", "\t", ";", "|")

_LINE = re.compile(rb"[^\r\n]*(?:\r\n|\n|\r|\Z)")
_HEAD_BYTES = 1 << 16
_SEPARATOR = re.compile("sep=(.)", re.IGNORECASE)  # a line that Excel puts on top
_NULLS = sorted(
    {form for word in MISSING | GAPS for form in (word, word.upper(), word.title())} | {"NaN"}
)


class TextTable:
    """A text with one row a line and a character between the columns; see `read_table`.

    Attributes
    ----------
    names : list of str
        Of the columns; numbers from 0 if the text has none.
    line : int
        The line of the header.
    has_names : bool
        Whether the names are from the file.
    delimiter, decimal : str
        As given or found.
    """

    def __init__(
        self,
        path: str,
        delimiter: str | None = None,
        decimal: str | None = None,
        header: bool = True,
    ) -> None:
        self.path, self.has_names = path, header
        if delimiter is not None:
            _check_delimiter(delimiter)
        if decimal not in (None, ".", ","):
            raise ValueError(f"decimal is {decimal!r}; pass '.', ',' or None.")
        self._content = text_content(path, TableFormatError)
        number, begin, end = self._first_line()
        self.header_text = self._decoded(self._content[begin:end], number)
        if header and (told := _SEPARATOR.fullmatch(self.header_text.strip("\r\n"))):
            delimiter = delimiter or told[1]
            number, begin, end = self._first_line(end, number)
            self.header_text = self._decoded(self._content[begin:end], number)
        self.line: int | None = number
        self.delimiter = delimiter or self._found_delimiter(self.header_text)
        self.names = self._split(self.header_text, self.delimiter)
        self._begin, self._n_before = end, number
        if not header:
            self.names = [str(k) for k in range(len(self.names))]
            self._begin, self._n_before = begin, number - 1
        self.decimal = decimal or self._found_decimal()

    def _first_line(self, begin: int = 0, n_before: int = 0) -> tuple[int, int, int]:
        """Number, begin and end of the first line that is not blank, after so many."""
        begin = begin or (3 if self._content[:3] == codecs.BOM_UTF8 else 0)
        for number, found in enumerate(_LINE.finditer(self._content, begin), start=n_before + 1):
            if found[0].strip():
                return number, found.start(), found.end()
        problem = "the file is empty, expected a line of column names."
        raise TableFormatError(self.path, None, problem)

    def _found_delimiter(self, text: str) -> str:
        sizes = {mark: len(self._split(text, mark)) for mark in DELIMITERS if mark in text}
        most = max(sizes.values(), default=1)
        best = [mark for mark, size in sizes.items() if size == most > 1]
        if len(best) == 1:
            return best[0]
        problem = (
            f"expected column names separated by comma, tab, semicolon or bar, got "
            f"{show(text.strip())}. Pass delimiter= if it is another character."
        )
        if best:
            problem = (
                f"cannot tell what separates the columns in {show(text.strip())}. Pass delimiter=."
            )
        raise TableFormatError(self.path, self.line, problem)

    def _split(self, text: str, delimiter: str) -> list[str]:
        try:
            names = next(csv.reader([text], delimiter=delimiter, strict=True))
        except csv.Error as error:
            problem = f"cannot read the column names: {error}."
            raise TableFormatError(self.path, self.line, problem) from None
        return [name.strip() for name in names]

    def _found_decimal(self) -> str:
        if self.delimiter == ",":
            return "."
        head = bytes(self._content[self._begin : self._begin + _HEAD_BYTES])
        # three digits after a comma or a point may be thousands
        number = rb"(?:[0-9]+%b(?:[0-9]{1,2}|[0-9]{4,})|0%b[0-9]{3})(?:[eE][+-]?[0-9]+)?"
        cell = rb'(?:^|[%b\n"])\s*[+-]?' + number + rb'\s*(?=[%b\r\n"])'
        mark = re.escape(self.delimiter.encode())
        comma, point = (re.search(cell % (mark, sign, sign, mark), head) for sign in (b",", rb"\."))
        return "," if comma and not point else "."

    def read(self, texts: Sequence[int], values: Sequence[int]) -> Any:
        """An Arrow table of the columns at these positions, which are their names in it.

        The cells of `texts` are as they are spelled; what the `values` are, Arrow finds out.

        Raises
        ------
        TableFormatError
            If a row has too few or too many cells, or the text is damaged.
        """
        arrow, reader = import_arrow(), import_arrow("pyarrow.csv")
        has_quotes = self._content.find(b'"', self._begin) >= 0
        if has_quotes and not self._has_plain_quotes():
            deque(self.records(), 0)  # explains them
        keys = [str(k) for k in range(len(self.names))]
        parse = reader.ParseOptions(delimiter=self.delimiter, newlines_in_values=has_quotes)
        convert = reader.ConvertOptions(
            include_columns=[keys[k] for k in dict.fromkeys([*texts, *values])] or keys[:1],
            column_types={keys[k]: arrow.string() for k in texts},
            null_values=_NULLS,
            decimal_point=self.decimal,
        )

        def read_body(body: Any, n_bytes: int = BLOCK_BYTES) -> Any:
            options = reader.ReadOptions(column_names=keys, block_size=n_bytes)
            try:
                table = reader.read_csv(arrow.BufferReader(body), options, parse, convert)
            except arrow.ArrowInvalid as error:
                if "straddling" not in str(error) or n_bytes > MAX_LINE:
                    raise
                return read_body(body, 8 * n_bytes)  # a row is longer than a block
            if not table.num_rows:
                raise arrow.ArrowInvalid("Empty CSV")  # as Arrow says when there are no lines
            if arrow.binary() in table.schema.types:  # not UTF-8
                deque(self.records(), 0)
            return table

        body = self._owned_by_arrow(arrow, self._content).slice(self._begin)
        blanks = re.escape(b" \t\v\f".replace(self.delimiter.encode(), b""))
        try:
            try:
                return read_body(body)
            except arrow.ArrowInvalid:
                deque(self.records(), 0)  # explains it, unless there are lines of blanks
                text = re.sub(rb"(?m)^[%b]+(?:\r?\n|\Z)" % blanks, b"", body)
                return read_body(self._owned_by_arrow(arrow, text))
        except arrow.ArrowInvalid as error:
            problem = f"{error}."
            if "Empty CSV" in problem:
                problem = "the file has column names but no rows below them."
            raise TableFormatError(self.path, None, problem) from None

    def _owned_by_arrow(self, arrow: Any, content: Any) -> Any:
        """The bytes in memory that Arrow's threads can give back without Python.

        They may do so after `read`, when Python is ending already: with memory of Python's own
        the process would then abort.
        """
        if isinstance(content, mmap.mmap):
            return arrow.memory_map(location(self.path)).read_buffer()
        copy = arrow.BufferOutputStream()
        copy.write(content)
        return copy.getvalue()

    @property
    def thousands(self) -> str:
        """What may stand between thousands, and is not a decimal mark for sure."""
        return "." if self.decimal == "," else "," if self.delimiter == "," else ""

    def place(self, row: int) -> int:
        """The line in which a row starts."""
        return self._record(row)[0]

    def spelled(self, row: int, column: int) -> str:
        """A cell as it stands in the file."""
        return self._record(row)[2][column]

    def _record(self, row: int) -> tuple[int, str, list[str]]:
        return next(islice((record for record in self.records() if record[2]), row, None))

    def records(self) -> Iterator[tuple[int, str, list[str]]]:
        """Rows by the strict rules: the line in which each starts, its text and its cells.

        A blank line has no cells.

        Raises
        ------
        TableFormatError
            At a row that is not right.
        """
        text = self._decoded(self._content[self._begin :], self._n_before + 1)
        taken: list[str] = []

        def lines() -> Iterator[str]:
            for line in io.StringIO(text, newline=""):
                taken.append(line)
                yield line

        csv.field_size_limit(MAX_LINE)  # of the process; by default 128 KiB
        reader = csv.reader(lines(), delimiter=self.delimiter, strict=True)
        while True:
            line = self._n_before + reader.line_num + 1
            taken.clear()
            try:
                cells = next(reader)
            except StopIteration:
                return
            except csv.Error as error:
                problem = f"{error}. Check the quotation marks and line ends of this row."
                raise TableFormatError(self.path, line, problem) from None
            is_right = len(cells) == len(self.names)
            if not is_right and len(cells) < 2 and not "".join(cells).strip():
                cells = []
            elif not is_right:
                problem = (
                    f"the row has {len(cells)} columns, the header has {len(self.names)}. "
                    "Quote the fields that contain the delimiter."
                )
                raise TableFormatError(self.path, line, problem)
            yield line, "".join(taken), cells

    def _has_plain_quotes(self) -> bool:
        """Whether every quotation mark opens or closes a whole cell, or is doubled in one."""
        body = np.frombuffer(self._content, dtype=np.uint8)[self._begin :]
        at = np.flatnonzero(body == ord('"'))
        if len(at) % 2:
            return False
        text = np.concatenate([[ord("\n")], body, [ord("\n")]])  # so `at` is before, at + 2 after
        outside = np.frombuffer(f'\n\r"{self.delimiter}'.encode(), dtype=np.uint8)
        return bool(np.isin(text[np.concatenate([at[::2], at[1::2] + 2])], outside).all())

    def _decoded(self, text: bytes, line: int) -> str:
        try:
            return bytes(text).decode("utf-8")
        except UnicodeDecodeError as error:
            start = text.rfind(b"\n", 0, error.start) + 1
            bad = bytes(text[start : error.start + 40]).splitlines()[0]
            raise TableFormatError(
                self.path,
                line + text.count(b"\n", 0, error.start),
                f"{show(bad.strip())} is not text in UTF-8. Save the file in that encoding "
                "(iconv -f cp1252 -t utf-8 does it for many files of Windows).",
            ) from None


def _check_delimiter(delimiter: str) -> None:
    bad = not isinstance(delimiter, str) or len(delimiter) != 1 or delimiter in '\n\r\0" .+-_'
    if bad or delimiter.isalnum() or not delimiter.isascii():
        raise ValueError(
            f"delimiter is {delimiter!r}; pass a single character that is part of no number, "
            "such as ',' or ';' or '\\t'."
        )
