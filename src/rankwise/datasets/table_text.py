"""CSV and its relatives, read by Arrow; what Arrow refuses is found again and explained."""

from __future__ import annotations

import codecs
import csv
import io
import mmap
import os
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from itertools import islice
from typing import Any

import numpy as np

from rankwise.datasets.files import import_arrow, line_blocks, location
from rankwise.datasets.labels import MISSING, finite_number, show
from rankwise.errors import TableFormatError

__all__ = ["DELIMITERS", "TextTable"]

DELIMITERS = (",", "\t", ";", "|")

_LINE = re.compile(rb"[^\r\n]*(?:\r\n|\n|\r|\Z)")
_HEAD_BYTES = 1 << 16
_NULLS = sorted({word for text in MISSING for word in (text, text.upper(), text.title())} | {"NaN"})


class TextTable:
    """A text with one row a line and a character between the columns.

    Parameters
    ----------
    path : str
        Plain or compressed text in UTF-8; ``-`` is standard input.
    delimiter : str, optional
        Between the columns; by default the one that gives the first line most columns.
    decimal : str, optional
        Mark in front of the decimals of a number, a point or a comma; by default a comma only where
        the delimiter is another character and the first rows show it.
    header : bool, default=True
        Whether the first line names the columns; else their names are their numbers from 0.

    Attributes
    ----------
    names : list of str
        Of the columns.
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
        self._content = _content(path)
        self._check_bytes()
        self.line: int | None
        number, begin, end = self._first_line()
        self.line = number
        self.header_text = self._decoded(self._content[begin:end], number)
        self.delimiter = delimiter or self._found_delimiter(self.header_text)
        self.names = self._split(self.header_text, self.delimiter)
        self._begin, self._n_before = end, number
        if not header:
            self.names = [str(k) for k in range(len(self.names))]
            self._begin, self._n_before = begin, number - 1
        self.decimal = decimal or self._found_decimal()

    def _first_line(self) -> tuple[int, int, int]:
        """Number, begin and end of the first line that is not blank."""
        at = 3 if self._content[:3] == codecs.BOM_UTF8 else 0
        number = 0
        while at < len(self._content):
            found = _LINE.match(self._content, at)
            number += 1
            if found is None or found[0].strip():
                end = len(self._content) if found is None else found.end()
                return number, at, end
            at = found.end()
        raise TableFormatError(
            self.path, None, "the file is empty, expected a line of column names."
        )

    def _found_delimiter(self, text: str) -> str:
        split = {mark: self._split(text, mark) for mark in DELIMITERS if mark in text}
        sizes = sorted((len(names) for names in split.values()), reverse=True)
        if not split or sizes[0] < 2:
            raise TableFormatError(
                self.path,
                self.line,
                f"expected column names separated by comma, tab, semicolon or bar, got "
                f"{show(text.strip())}. Pass delimiter= if it is another character.",
            )
        if sizes[0] in sizes[1:]:
            raise TableFormatError(
                self.path,
                self.line,
                f"cannot tell what separates the columns in {show(text.strip())}. Pass delimiter=.",
            )
        return max(split, key=lambda mark: len(split[mark]))

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
        cell = rb'(?:^|[%b\n"])\s*[+-]?[0-9]+%b(?:[eE][+-]?[0-9]+)?\s*(?=[%b\r\n"])'
        mark = re.escape(self.delimiter.encode())
        # three digits after a comma may be thousands
        signs = rb",(?:[0-9]{1,2}|[0-9]{4,})", rb"\.[0-9]+"
        comma, point = (re.search(cell % (mark, sign, mark), head) for sign in signs)
        return "," if comma and not point else "."

    def read(self, texts: Sequence[int], values: Sequence[int]) -> Any:
        """An Arrow table of the columns at these positions, which are their names in it.

        The cells of `texts` are as they are spelled; what the `values` are, Arrow finds out.

        Raises
        ------
        TableFormatError
            If a row has too few or too many cells, or the text is damaged.
        """
        arrow, reader = import_arrow("pyarrow", "Tables"), import_arrow("pyarrow.csv", "Tables")
        has_quotes = self._content.find(b'"', self._begin) >= 0
        if has_quotes and not self._has_plain_quotes():
            self._explain()
        keys = [str(k) for k in range(len(self.names))]
        parse = reader.ParseOptions(delimiter=self.delimiter, newlines_in_values=has_quotes)
        convert = reader.ConvertOptions(
            include_columns=[keys[k] for k in dict.fromkeys([*texts, *values])] or keys[:1],
            column_types={keys[k]: arrow.string() for k in texts},
            null_values=_NULLS,
            decimal_point=self.decimal,
        )

        def read_body(body: Any) -> Any:
            options = reader.ReadOptions(column_names=keys)
            return reader.read_csv(arrow.BufferReader(body), options, parse, convert)

        try:
            table = self._without_blank_lines(read_body, arrow)
        except arrow.ArrowInvalid as error:
            if "Empty CSV" not in str(error):
                raise TableFormatError(self.path, None, f"{error}.") from None
            table = arrow.table({key: arrow.nulls(0) for key in keys})
        if not table.num_rows:
            raise TableFormatError(
                self.path, None, "the file has column names but no rows below them."
            )
        return table

    def _without_blank_lines(self, read_body: Callable[[Any], Any], arrow: Any) -> Any:
        """Read the rows; if Arrow does not like some, explain it, or leave out lines of blanks."""
        body = arrow.py_buffer(self._content).slice(self._begin)
        try:
            return read_body(body)
        except arrow.ArrowInvalid as error:
            if "Empty CSV" not in str(error):
                self._explain()
        blanks = re.escape(b" \t\v\f".replace(self.delimiter.encode(), b""))
        text = re.sub(rb"(?m)^[%b]+(?:\r?\n|\Z)" % blanks, b"", body)
        return read_body(arrow.py_buffer(text))

    def numbers(self, columns: Sequence[int]) -> dict[int, Any]:
        """The numbers that the cells of columns spell, or the first row that spells none."""
        arrow, compute = (
            import_arrow("pyarrow", "Tables"),
            import_arrow("pyarrow.compute", "Tables"),
        )
        table = self.read(columns, []) if columns else {}
        found: dict[int, Any] = {}
        for column in columns:
            cells = compute.utf8_trim_whitespace(table[str(column)])
            gaps = compute.is_in(compute.utf8_lower(cells), arrow.array(sorted(MISSING)))
            cells = compute.if_else(gaps, None, cells)
            plain = compute.replace_substring(cells, ",", ".") if self.decimal == "," else cells
            for kind in (arrow.int64(), arrow.float64()):
                with suppress(arrow.ArrowInvalid):
                    found[column] = plain.cast(kind)
                    break
            else:
                texts = enumerate(plain.to_pylist())
                bad = (k for k, text in texts if text and finite_number(text.encode()) is None)
                found[column] = next(bad)
        return found

    def raw_records(self) -> Iterator[tuple[bytes, int]]:
        """Every line below the header as it stands, and its number of cells, 0 if it is blank.

        A row with line ends inside quotation marks is one line here.
        """
        lines = iter(_LINE.findall(bytes(self._content[self._begin :])))
        for raw in lines:
            taken = [raw]
            n_cells = raw.count(self.delimiter.encode()) + 1
            if b'"' in raw:
                texts = _decoded_lines(lines, taken)
                n_cells = len(next(csv.reader(texts, delimiter=self.delimiter, strict=True)))
            whole = b"".join(taken)
            yield whole, n_cells if whole.strip() or n_cells > 1 else 0

    def place(self, row: int) -> int:
        """The line in which a row starts."""
        return next(islice(self._records(), row, None))[0]

    def spelled(self, row: int, column: int) -> str:
        """A cell as it stands in the file."""
        return next(islice(self._records(), row, None))[1][column]

    def _check_bytes(self) -> None:
        at = self._content.find(b"\0")
        if at >= 0:
            raise TableFormatError(
                self.path,
                1 + bytes(self._content[:at]).count(b"\n"),
                "this is not a text file (it has zero bytes). Expected plain text in UTF-8.",
            )

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
                f"{show(bad.strip())} is not text in UTF-8. Save the file in that encoding.",
            ) from None

    def _explain(self) -> None:
        """Read row by row, by the strict rules, and raise an error at the first bad one."""
        for _ in self._records():
            pass

    def _records(self) -> Iterator[tuple[int, list[str]]]:
        """Rows as lists of cells, with the lines in which they start."""
        text = self._decoded(self._content[self._begin :], self._n_before + 1)
        reader = csv.reader(io.StringIO(text, newline=""), delimiter=self.delimiter, strict=True)
        while True:
            line = self._n_before + reader.line_num + 1
            try:
                cells = next(reader)
            except StopIteration:
                return
            except csv.Error as error:
                problem = f"{error}. Check the quotation marks and line ends of this row."
                raise TableFormatError(self.path, line, problem) from None
            if len(cells) == len(self.names):
                yield line, cells
            elif cells and (len(cells) > 1 or cells[0].strip()):
                raise TableFormatError(
                    self.path,
                    line,
                    f"the row has {len(cells)} columns, the header has {len(self.names)}. "
                    "Quote the fields that contain the delimiter.",
                )


def _content(path: str) -> Any:
    """The bytes of a text, unpacked; those of a plain file are not copied."""
    name = location(path)
    with open(name, "rb") as file:
        head = file.read(6)
        if not head.startswith((b"\x1f\x8b", b"BZh", b"\xfd7zXZ", b"\x28\xb5\x2f\xfd")):
            size = os.fstat(file.fileno()).st_size
            return mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) if size else b""
    return b"".join([block for _, block in line_blocks(path, error=TableFormatError)])


def _decoded_lines(lines: Iterator[bytes], taken: list[bytes]) -> Iterator[str]:
    """The line that was taken, then further ones, which are added to it."""
    yield taken[0].decode("utf-8")
    for line in lines:
        taken.append(line)
        yield line.decode("utf-8")


def _check_delimiter(delimiter: str) -> None:
    bad = not isinstance(delimiter, str) or len(delimiter) != 1 or delimiter in '\n\r\0" .+-_'
    if bad or delimiter.isalnum() or not delimiter.isascii():
        raise ValueError(
            f"delimiter is {delimiter!r}; pass a single character that is part of no number, "
            "such as ',' or ';' or '\\t'."
        )
