"""A table of any kind, opened once: text, Parquet, Feather (Arrow), JSON or a data frame."""

from __future__ import annotations

import codecs
import csv
import io
import json
import os
import re
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Iterator, Mapping, Sequence, Set
from itertools import islice
from typing import Any, Literal, TypeAlias, get_args

import numpy as np

from rankwise.datasets.files import (
    BLOCK_BYTES,
    PACKED,
    damage,
    import_arrow,
    location,
    open_unpacked,
)
from rankwise.datasets.vocabulary import GAPS, MISSING, shown_value
from rankwise.errors import TableFormatError

Format: TypeAlias = Literal["auto", "letor", "csv", "tsv", "parquet", "feather", "json"]
FORMATS = get_args(Format)
DELIMITERS = (",", "\t", ";", "|")

_HEAD_BYTES = 1 << 16
_UTF16 = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
_LETOR_WORD = re.compile(rb"(qid|[0-9]+):[^,;|]*")
_FORMAT_OF_SUFFIX: dict[str, Format] = {
    **dict.fromkeys((".letor", ".svm", ".svmlight", ".libsvm"), "letor"),
    **{".csv": "csv", ".tsv": "tsv", ".tab": "tsv", ".parquet": "parquet", ".pq": "parquet"},
    **{".feather": "feather", ".arrow": "feather"},
    **dict.fromkeys((".json", ".jsonl", ".ndjson"), "json"),
}
_LINE = re.compile(rb"[^\r\n]*(?:\r\n|\n|\r|\Z)")
_SEPARATOR = re.compile("sep=(.)", re.IGNORECASE)  # a line that Excel puts on top
_COMMENT = re.compile(r"#[^,;|\t]*")  # above the names of the columns
_CODE = re.compile(r"\s*0[0-9]+\s*")
_NULLS = sorted(
    {form for word in MISSING | GAPS for form in (word, word.upper(), word.title())} | {"NaN"}
)


def open_table(path: str, delimiter: str | None = None, decimal: str | None = None) -> TableFile:
    """Open a table: its column names are read.  See `read_ranking` for the parameters."""
    table = open_unless_letor(path, delimiter, decimal)
    if table is None:
        problem = "svmlight rows (LETOR), expected a table with a line of column names."
        raise TableFormatError(path, None, problem)
    return table


def open_unless_letor(
    path: str,
    delimiter: str | None = None,
    decimal: str | None = None,
    header: bool = True,
    format: Format = "auto",
) -> TableFile | None:
    """The same, or None for a file of svmlight rows.

    Raises
    ------
    TableFormatError
        If nothing tells what the file is, or `format` contradicts its content.
    """
    if format not in FORMATS:
        raise ValueError(f"format is {format!r}; pass one of {', '.join(FORMATS)}.")
    if format == "auto" and delimiter is not None:
        format = "csv"
    with open_unpacked(path, TableFormatError) as (stream, raw):
        head = stream.read(_HEAD_BYTES)
        format = _format_of(path, _in_utf_8(head), format)
        if format == "letor":
            return None
        if stream is raw and head and not head.startswith(_UTF16):  # a plain file is not copied
            content = import_arrow().memory_map(location(path)).read_buffer()
        else:
            content = _owned_by_arrow(_in_utf_8(head + stream.read()))
    if format in ("csv", "tsv"):
        delimiter = "\t" if delimiter is None and format == "tsv" else delimiter
        return TextTable(path, content, delimiter, decimal, header)
    if delimiter is not None:
        raise ValueError(f"{path} is a {format} file; leave out delimiter=.")
    return ArrowTable(path, content, format)


def _in_utf_8(text: bytes) -> bytes:
    return text.decode("utf-16", "replace").encode() if text.startswith(_UTF16) else text


def _format_of(path: str, head: bytes, asked: Format) -> Format:
    """What to read a file as: as asked, by its first bytes, or else by its suffix."""
    content = _format_of_bytes(head.removeprefix(codecs.BOM_UTF8))
    if asked not in ("auto", content) and {content, asked} & {"parquet", "feather", "json"}:
        raise TableFormatError(path, None, f"this is no {asked} file, but a {content} file.")
    chosen = asked if asked != "auto" else content or format_of_suffix(path)
    if chosen is None:
        problem = "neither rows 'label qid:group feature:value ...' nor column names. Pass format="
        raise TableFormatError(path, None, f"cannot tell what this file is: {problem}.")
    return chosen


def format_of_suffix(path: str) -> Format | None:
    """What the name of a file, compressed or not, says about its kind."""
    stem, suffix = os.path.splitext(path.lower())
    suffix = os.path.splitext(stem)[1] if suffix in (*PACKED, ".zip") else suffix
    return _FORMAT_OF_SUFFIX.get(suffix)


def _format_of_bytes(head: bytes) -> Format | None:
    if head.startswith(b"PAR1"):
        return "parquet"
    if head.startswith(b"ARROW1\0\0"):
        return "feather"
    lines = [line.strip() for line in head.split(b"\n") if line.strip()] or [b""]
    if lines[0].startswith((b"{", b"[")):
        return "json"
    row = next((line for line in lines if not line.startswith(b"#")), b"")
    words = row.partition(b"#")[0].split()
    n_letor = sum(1 for word in words[1:] if _LETOR_WORD.fullmatch(word))
    if n_letor and 2 * n_letor >= len(words) - 1:
        return "letor"
    return "csv" if any(mark.encode() in lines[0] for mark in DELIMITERS) else None


class TableFile(ABC):
    """Columns of a file; the two kinds below know how to read them.

    Attributes
    ----------
    path : str
        The file.
    names : list of str
        Of the columns.
    line : int or None
        Line of the names.
    decimal, thousands : str
        Marks in numbers.
    has_names : bool
        Whether the names are from the file; else they are numbers from 0.
    """

    path: str
    names: list[str]
    line: int | None = None
    decimal, thousands = ".", ""
    has_names = True

    @abstractmethod
    def read(self, texts: Sequence[int], values: Sequence[int]) -> dict[int, Any]:
        """Read columns by position: `texts` as they are spelled, `values` with their types.

        Parameters
        ----------
        texts, values : sequence of int
            Positions of columns; without any, the first column is read.

        Returns
        -------
        dict from int to column
            Columns of Arrow by position; lists for a data frame.
        """

    @abstractmethod
    def n_rows(self) -> int:
        """Return the number of rows."""

    def place(self, row: int) -> int:
        """Where a row is in the file, counted from 1: its line, or its number."""
        return row + 1

    def error(self, problem: str, row: int | None = None) -> Exception:
        """What to raise about a row, or about the names of the columns."""
        return TableFormatError(self.path, self.line if row is None else self.place(row), problem)


class ArrowTable(TableFile):
    """A file of the format "parquet", of which columns are read, or "feather" or "json"."""

    def __init__(self, path: str, content: Any, format: Format) -> None:
        self.path, self.format, self.content = path, format, content
        arrow = import_arrow()
        source = arrow.BufferReader(content)
        try:
            if format == "parquet":
                self.file = import_arrow("pyarrow.parquet").ParquetFile(source)
                self.names = list(self.file.schema_arrow.names)
                return
            feather = import_arrow("pyarrow.ipc").open_file
            is_json = format == "json"
            self.whole = _read_json(path, bytes(content)) if is_json else feather(source).read_all()
            self.names = list(self.whole.column_names)
        except (arrow.ArrowException, OSError, UnicodeError) as problem:
            raise damage(TableFormatError, path, problem) from None

    def read(self, texts: Sequence[int], values: Sequence[int]) -> dict[int, Any]:
        """See `TableFile`; types that Arrow computes little with are replaced."""
        used = list(dict.fromkeys([*texts, *values])) or [0]
        names = [self.names[k] for k in used]
        arrow = import_arrow()
        try:
            table = self.whole if self.format != "parquet" else self.file.read(columns=names)
            table = table.select(names)
            table.validate(full=True)  # before anybody follows a bad offset
        except (arrow.ArrowException, OSError) as problem:
            raise damage(TableFormatError, self.path, problem) from None
        if not table.num_rows:
            raise TableFormatError(self.path, None, "the file has columns but no rows.")
        return dict(zip(used, map(_plain_type, table.columns), strict=True))

    def n_rows(self) -> int:
        """Return the number of rows, see `TableFile`."""
        if self.format == "parquet":
            return int(self.file.metadata.num_rows)
        return int(self.whole.num_rows)


class FrameTable(TableFile):
    """A data frame as a table whose columns are lists; errors name the row, counted from 0."""

    path = "the frame"

    def __init__(self, columns: Mapping[str, Any]) -> None:
        self.names = [str(name) for name in columns]
        self._columns = list(columns.values())
        sizes = {name: len(column) for name, column in columns.items()}
        if len(set(sizes.values())) > 1:
            raise ValueError(f"the columns have different lengths: {sizes}.")
        if not sizes or not next(iter(sizes.values())):
            raise ValueError("the frame has no rows; a rating needs at least one comparison.")

    def read(self, texts: Sequence[int], values: Sequence[int]) -> dict[int, Any]:
        """The columns at these positions, as lists."""
        read = {}
        for at in {*texts, *values}:
            column = self._columns[at]
            to_list = getattr(column, "to_list", None) or getattr(column, "tolist", None)
            read[at] = to_list() if to_list else list(column)
        return read

    def n_rows(self) -> int:
        """Return the number of rows, see `TableFile`."""
        return len(self._columns[0])

    def error(self, problem: str, row: int | None = None) -> Exception:
        """A ValueError that names the row."""
        where = self.path if row is None else f"row {row} of {self.path}"
        return ValueError(f"{where}: {problem}")


def _read_json(path: str, content: bytes) -> Any:
    """One object a line, or an array of objects."""
    reader = import_arrow("pyarrow.json")
    try:
        text = content.decode("utf-8-sig")
        if text.lstrip().startswith("["):
            content = "\n".join(map(json.dumps, json.loads(text))).encode()
        options = reader.ReadOptions(block_size=_one_block(content))
        return reader.read_json(io.BytesIO(content), options)
    except ValueError as error:  # of JSON, of UTF-8, or of Arrow
        problem = f"expected objects with the same types, in an array or one a line: {error}."
        raise TableFormatError(path, getattr(error, "lineno", None), problem) from None


def _plain_type(column: Any) -> Any:
    """The column, cast if its type is one that Arrow computes little with.

    The values of a dictionary become text: who made it meant categories.
    """
    arrow = import_arrow()
    types, kind = arrow.types, column.type
    if types.is_dictionary(kind):
        return column.cast(kind.value_type).cast(arrow.string())
    if types.is_string_view(kind):
        return column.cast(arrow.string())
    if types.is_decimal(kind):
        return column.cast(arrow.float64())
    return column.cast(arrow.float32()) if types.is_float16(kind) else column


def _one_block(content: Any) -> int:
    """The size of a block that has all bytes, as far as Arrow has such blocks."""
    return min(len(content) + 1, 2**31 - 1)


def _skip_blanks(row: Any) -> str:
    """What Arrow does with a row that has not as many cells as others."""
    return "skip" if row.actual_columns == 1 and not row.text.strip() else "error"


class TextTable(TableFile):
    """A text with one row a line and a character between the columns; Arrow reads it.

    Attributes
    ----------
    header_text : str
        The line of the names.
    delimiter : str
        Between the columns, as given or found.
    codes : set of int
        Columns of codes such as 007, which stay as they are spelled unless they must be numbers.
    """

    def __init__(
        self,
        path: str,
        content: Any,
        delimiter: str | None = None,
        decimal: str | None = None,
        header: bool = True,
    ) -> None:
        self.path = path
        self.has_names = header
        self._buffer = content
        self._parsed: dict[tuple[int, bool], Any] = {}  # by position, and whether it is text
        _check_marks(delimiter, decimal)
        self._text = memoryview(self._buffer)
        characters = np.frombuffer(self._text, dtype=np.uint8)
        if len(characters) and characters.min() == 0:
            number = 1 + bytes(self._text[: int(characters.argmin())]).count(b"\n")
            raise TableFormatError(path, number, "zero bytes, expected text in UTF-8.")
        mark = 3 if bytes(self._text[:3]) == codecs.BOM_UTF8 else 0
        for number, line in enumerate(_LINE.finditer(self._text, mark), start=1):
            self.header_text = self._decoded(line.start(), line.end(), number)
            told = _SEPARATOR.fullmatch(self.header_text.strip("\r\n")) if header else None
            if told:
                delimiter = delimiter or told[1]
            elif self.header_text.strip() and not _COMMENT.fullmatch(self.header_text):
                break
        else:
            raise TableFormatError(path, None, "the file is empty, expected column names.")
        self.line = number
        self.delimiter = delimiter or self._found_delimiter()
        self.names = self._split(self.delimiter)
        self._begin, self._n_before = line.end(), number
        if not header:
            self.names = [str(k) for k in range(len(self.names))]
            self._begin, self._n_before = line.start(), number - 1
        self.decimal = decimal or self._found_decimal()
        # what may stand between thousands, and is not a decimal mark for sure
        self.thousands = "." if self.decimal == "," else "," if self.delimiter == "," else ""
        self.codes = self._found_codes()

    def _found_delimiter(self) -> str:
        sizes = {mark: len(self._split(mark)) for mark in DELIMITERS if mark in self.header_text}
        most = max(sizes.values(), default=1)
        best = [mark for mark, size in sizes.items() if size == most > 1]
        if not best:  # one column, or something else is between them
            return ","
        if len(best) == 1:
            return best[0]
        raise self.error(
            "expected column names separated by comma, tab, semicolon or bar, got "
            f"{shown_value(self.header_text.strip())}. Pass delimiter= with what separates them."
        )

    def _split(self, delimiter: str) -> list[str]:
        try:
            names = next(csv.reader([self.header_text], delimiter=delimiter, strict=True))
        except csv.Error as error:
            raise self.error(f"cannot read the column names: {error}.") from None
        return [name.strip() for name in names]

    def _found_decimal(self) -> str:
        if self.delimiter == ",":
            return "."
        head = bytes(self._text[self._begin : self._begin + _HEAD_BYTES])
        # three digits after a comma or a point may be thousands
        number = rb"(?:[0-9]+%b(?:[0-9]{1,2}|[0-9]{4,})|0%b[0-9]{3})(?:[eE][+-]?[0-9]+)?"
        cell = rb'(?:^|[%b\n"])\s*[+-]?' + number + rb'\s*(?=[%b\r\n"])'
        mark = re.escape(self.delimiter.encode())
        comma, point = (re.search(cell % (mark, sign, sign, mark), head) for sign in (b",", rb"\."))
        return "," if comma and not point else "."

    def _found_codes(self) -> set[int]:
        """Columns with a zero in front of whole numbers, in the first rows: 007 is no number."""
        head = bytes(self._text[self._begin : self._begin + _HEAD_BYTES]).decode("utf-8", "replace")
        rows = csv.reader(head.splitlines(), delimiter=self.delimiter)
        return {k for row in rows for k, cell in enumerate(row) if _CODE.fullmatch(cell)}

    def read(self, texts: Sequence[int], values: Sequence[int]) -> dict[int, Any]:
        """Read columns, see `TableFile`; an invalid row raises an error with its line.

        Columns are parsed once: a later call returns the same columns, or infers the type of a
        column that was parsed as text.
        """
        positions = list(dict.fromkeys([*texts, *values])) or [0]
        as_text = {at for at in positions if at in texts or at in self.codes}
        missing = []
        for at in positions:
            key = (at, at in as_text)
            if key in self._parsed:
                continue
            if (at, True) in self._parsed:
                self._parsed[key] = self._inferred(self._parsed[at, True])
            else:
                missing.append(at)
        if missing:
            for at, column in self._parse(missing, as_text).items():
                self._parsed[at, at in as_text] = column
        return {at: self._parsed[at, at in as_text] for at in positions}

    def n_rows(self) -> int:
        """Return the number of rows, see `TableFile`."""
        if not self._parsed:
            self.read([], [])
        return len(next(iter(self._parsed.values())))

    def _parse(self, positions: Sequence[int], as_text: Set[int]) -> dict[int, Any]:
        """Parse columns with Arrow; those in `as_text` as they are spelled."""
        arrow = import_arrow()
        body = self._text[self._begin :]
        if not re.search(rb"\S", body):
            raise TableFormatError(self.path, None, "the file has column names but no rows.")
        reader = import_arrow("pyarrow.csv")
        keys = [str(at) for at in range(len(self.names))]
        has_quotes = self._check_quotes(body)
        convert = reader.ConvertOptions(
            include_columns=[keys[at] for at in positions],
            column_types={keys[at]: arrow.string() for at in as_text},
            null_values=_NULLS,
            decimal_point=self.decimal,
        )

        def parse_blocks(n_bytes: int, on_bad_row: Any = None) -> Any:
            options = reader.ReadOptions(column_names=keys, block_size=n_bytes)
            parse = reader.ParseOptions(
                delimiter=self.delimiter,
                newlines_in_values=has_quotes,
                invalid_row_handler=on_bad_row,
            )
            source = arrow.BufferReader(self._buffer.slice(self._begin))
            return reader.read_csv(source, options, parse, convert)

        try:
            table = parse_blocks(BLOCK_BYTES)
        except arrow.ArrowInvalid:
            self._check_rows()  # else some lines are blank, or a row is longer than a block
            try:
                table = parse_blocks(_one_block(body), _skip_blanks)
            except arrow.ArrowInvalid as error:
                raise TableFormatError(self.path, None, f"{error}.") from None
        if arrow.binary() in table.schema.types:
            self._check_rows()  # the text is not UTF-8
        return {at: table[keys[at]] for at in positions}

    def _inferred(self, column: Any) -> Any:
        """The cells of a column of text with the type that `_parse` infers."""
        arrow = import_arrow()
        reader = import_arrow("pyarrow.csv")
        cells = arrow.BufferOutputStream()
        reader.write_csv(arrow.table([column], names=["0"]), cells)
        content = cells.getvalue()
        return reader.read_csv(
            arrow.BufferReader(content),
            reader.ReadOptions(block_size=_one_block(content)),
            reader.ParseOptions(newlines_in_values=True, ignore_empty_lines=False),
            reader.ConvertOptions(null_values=_NULLS, decimal_point=self.decimal),
        ).column(0)

    def place(self, row: int) -> int:
        """The line in which a row starts."""
        rows = (line for line, _, cells in self.records() if cells)
        return next(islice(rows, row, None))

    def _check_rows(self) -> None:
        """Raise an error about the first row that is not right, if there is one."""
        deque(self.records(), 0)

    def records(self) -> Iterator[tuple[int, str, list[str]]]:
        """Rows by the strict rules: the line in which each starts, its text and its cells.

        A blank line has no cells.

        Raises
        ------
        TableFormatError
            At a row that is not right.
        """
        text = self._decoded(self._begin, len(self._text), self._n_before + 1)
        taken: list[str] = []

        def lines() -> Iterator[str]:
            for line in io.StringIO(text, newline=""):
                taken.append(line)
                yield line

        csv.field_size_limit(2**31 - 1)  # of the process; by default 128 KiB
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
            if len(cells) < 2 <= len(self.names) and not "".join(cells).strip():
                cells = []
            elif cells and len(cells) != len(self.names):
                problem = (
                    f"the row has {len(cells)} columns, the header has {len(self.names)}. "
                    "Quote the fields that contain the delimiter."
                )
                raise TableFormatError(self.path, line, problem)
            yield line, "".join(taken), cells

    def _check_quotes(self, body: Any) -> bool:
        """Whether there are quotation marks; an open one is refused, which Arrow would not do."""
        if not re.search(b'"', body):
            return False
        characters = np.frombuffer(body, dtype=np.uint8)
        at = np.flatnonzero(characters == ord('"'))
        is_outside = np.zeros(256, dtype=bool)  # characters in front of a cell, or behind it
        is_outside[list(f'\n\r"{self.delimiter}'.encode())] = True
        opening, closing = at[::2], at[1::2]
        around = np.concatenate([opening - 1, closing[closing + 1 < len(characters)] + 1])
        if len(at) % 2 or not is_outside[characters[around]].all():
            self._check_rows()
        return True

    def _decoded(self, begin: int, end: int, line: int) -> str:
        text = bytes(self._text[begin:end])
        try:
            return text.decode("utf-8")
        except UnicodeDecodeError as error:
            line += text.count(b"\n", 0, error.start)
            bad = text[text.rfind(b"\n", 0, error.start) + 1 :].splitlines()[0]
            problem = (
                f"{shown_value(bad.strip())} is not text in UTF-8. Save the file in that encoding "
                "(iconv -f cp1252 -t utf-8 does it for many files of Windows)."
            )
            raise TableFormatError(self.path, line, problem) from None


def _owned_by_arrow(content: bytes) -> Any:
    """A copy in memory that Arrow's threads can give back when Python is ending already."""
    copy = import_arrow().BufferOutputStream()
    copy.write(content)
    return copy.getvalue()


def _check_marks(delimiter: str | None, decimal: str | None) -> None:
    if delimiter is not None and not re.fullmatch(r"[^\w\n\r\0\".+-]", str(delimiter), re.ASCII):
        raise ValueError(f"delimiter is {delimiter!r}; pass one character, such as ',' or '\\t'.")
    if decimal not in (None, ".", ","):
        raise ValueError(f"decimal is {decimal!r}; pass '.', ',' or None.")
