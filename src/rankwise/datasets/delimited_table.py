"""A table in a text file, such as CSV."""

from __future__ import annotations

import codecs
import csv
import io
import re
from collections.abc import Callable, Iterator, Sequence, Set
from itertools import islice
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from rankwise.datasets.file_formats import DELIMITERS
from rankwise.datasets.files import BLOCK_BYTES, import_arrow
from rankwise.datasets.table_files import MAX_BLOCK_BYTES, TableFile, one_block
from rankwise.datasets.vocabulary import GAPS, MISSING, shown_value
from rankwise.errors import TableFormatError

if TYPE_CHECKING:
    import pyarrow as pa
    from pyarrow import csv as arrow_csv

HEAD_BYTES = 1 << 16  # of the rows, read to recognize decimal marks and codes
_LINE = re.compile(rb"[^\r\n]*(?:\r\n|\n|\r|\Z)")
_SEPARATOR = re.compile("sep=(.)", re.IGNORECASE)  # a line that Excel writes above the header
_COMMENT = re.compile(r"#[^,;|\t]*")  # above the header
_CODE = re.compile(r"\s*0[0-9]+\s*")  # such as 007, which is text and not the number 7
_NULLS = sorted(
    {form for word in MISSING | GAPS for form in (word, word.upper(), word.title())} | {"NaN"}
)


class _Header(NamedTuple):
    """The first line that is neither blank nor a comment: the column names.

    Attributes
    ----------
    text : str
        The line.
    number : int
        Its number, counted from 1.
    start, end : int
        Its position in bytes.
    delimiter : str or None
        The delimiter that a line ``sep=;`` above it names.
    """

    text: str
    number: int
    start: int
    end: int
    delimiter: str | None


class Record(NamedTuple):
    """A row of a text table.

    Attributes
    ----------
    line : int
        Number of its first line, counted from 1.
    text : str
        Its lines, with their ends.
    cells : list of str
        Its cells; a blank line has none.
    """

    line: int
    text: str
    cells: list[str]


class DelimitedTable(TableFile):
    """A text with one row a line and a delimiter between the columns; Arrow reads it.

    Attributes
    ----------
    header_text : str
        The line of the column names.
    delimiter : str
        The delimiter, as passed or recognized.
    columns_of_codes : set of int
        Columns of codes such as 007, which are read as text unless numbers are required.
    """

    def __init__(
        self,
        path: str,
        content: pa.Buffer,
        delimiter: str | None = None,
        decimal: str | None = None,
        header: bool = True,
    ) -> None:
        _check_delimiter_and_decimal(delimiter, decimal)
        self.path = path
        self.has_names = header
        self._buffer = content
        self._text = memoryview(content)
        self._parsed: dict[tuple[int, bool], pa.ChunkedArray] = {}  # by position and is_text
        self._refuse_zero_bytes()
        header_line = self._find_header(header)
        self.header_text = header_line.text
        self.line = header_line.number
        self._start_of_rows = header_line.end  # in bytes
        self.delimiter = delimiter or header_line.delimiter or self._recognize_delimiter()
        self.names = self._split_header(self.delimiter)
        self._n_lines_before_rows = header_line.number
        if not header:  # the line is the first row
            self.names = [str(position) for position in range(len(self.names))]
            self._start_of_rows = header_line.start
            self._n_lines_before_rows = header_line.number - 1
        self.decimal = decimal or self._recognize_decimal()
        self.thousands = self._thousands_separator()
        self.columns_of_codes = self._find_columns_of_codes()

    def _refuse_zero_bytes(self) -> None:
        """Refuse zero bytes, which no text has."""
        characters = np.frombuffer(self._text, dtype=np.uint8)
        has_zero_byte = len(characters) > 0 and characters.min() == 0
        if has_zero_byte:
            text_before = bytes(self._text[: int(characters.argmin())])
            line = 1 + text_before.count(b"\n")
            raise TableFormatError(self.path, line, "zero bytes, expected text in UTF-8.")

    def _find_header(self, has_names: bool) -> _Header:
        """Return the first line that is neither blank nor a comment."""
        start = 0
        if bytes(self._text[:3]) == codecs.BOM_UTF8:
            start = 3
        delimiter = None
        for number, line in enumerate(_LINE.finditer(self._text, start), start=1):
            text = self._decode(line.start(), line.end(), number)
            separator_line = _SEPARATOR.fullmatch(text.strip("\r\n"))
            is_blank_or_comment = not text.strip() or _COMMENT.fullmatch(text) is not None
            if separator_line and has_names:  # Excel writes sep=; above the names
                delimiter = delimiter or separator_line[1]
            elif not is_blank_or_comment:
                return _Header(text, number, line.start(), line.end(), delimiter)
        raise TableFormatError(self.path, None, "the file is empty, expected column names.")

    def _recognize_delimiter(self) -> str:
        """Return the delimiter that gives the header the most columns.

        A delimiter that splits the first row into another number of cells is used only if all do.
        """
        n_columns = {}
        n_columns_as_in_first_row = {}
        for mark in DELIMITERS:
            if mark in self.header_text:
                n_columns[mark] = len(self._split_header(mark))
                if n_columns[mark] == self._n_cells_in_first_row(mark):
                    n_columns_as_in_first_row[mark] = n_columns[mark]
        if n_columns_as_in_first_row:
            n_columns = n_columns_as_in_first_row
        most_columns = max(n_columns.values(), default=1)
        if most_columns == 1:  # one column, or an unknown delimiter
            return ","
        best_marks = [mark for mark, n in n_columns.items() if n == most_columns]
        if len(best_marks) > 1:
            raise self.error(
                "expected column names separated by comma, tab, semicolon or bar, got "
                f"{shown_value(self.header_text.strip())}. Pass delimiter= with the character "
                "between them."
            )
        return best_marks[0]

    def _n_cells_in_first_row(self, delimiter: str) -> int:
        """Number of cells in the row after the header; 0 if there is none."""
        for cells in self._cells_of_first_rows(delimiter):
            if cells:
                return len(cells)
        return 0

    def _split_header(self, delimiter: str) -> list[str]:
        """Split the header at a delimiter."""
        try:
            names = next(csv.reader([self.header_text], delimiter=delimiter, strict=True))
        except csv.Error as error:
            raise self.error(f"cannot read the column names: {error}.") from None
        return [name.strip() for name in names]

    def _recognize_decimal(self) -> str:
        """Return a comma if the first rows have numbers with a decimal comma only, else a point."""
        if self.delimiter == ",":
            return "."
        has_comma = self._has_decimals(b",")
        has_point = self._has_decimals(rb"\.")
        if has_comma and not has_point:
            return ","
        return "."

    def _has_decimals(self, mark: bytes) -> bool:
        """Whether a cell of the first rows is a number with this decimal mark."""
        delimiter = re.escape(self.delimiter.encode())
        # three digits after a mark may be thousands
        number = rb"(?:[0-9]+%b(?:[0-9]{1,2}|[0-9]{4,})|0%b[0-9]{3})" % (mark, mark)
        exponent = rb"(?:[eE][+-]?[0-9]+)?"
        start_of_cell = rb'(?:^|[%b\n"])\s*[+-]?' % delimiter
        end_of_cell = rb'\s*(?=[%b\r\n"])' % delimiter
        cell = start_of_cell + number + exponent + end_of_cell
        return re.search(cell, self._first_bytes_of_rows()) is not None

    def _thousands_separator(self) -> str:
        """Return the mark that can only separate thousands; empty if both marks may be decimal."""
        if self.decimal == ",":
            return "."
        if self.delimiter == ",":
            return ","
        return ""

    def _find_columns_of_codes(self) -> set[int]:
        """Return the columns with integers such as 007 in the first rows."""
        columns_of_codes = set()  # a code such as 007 is text, not the number 7
        for row in self._cells_of_first_rows(self.delimiter):
            for position, cell in enumerate(row):
                if _CODE.fullmatch(cell):
                    columns_of_codes.add(position)
        return columns_of_codes

    def _first_bytes_of_rows(self) -> bytes:
        """Return the first bytes after the header."""
        return bytes(self._text[self._start_of_rows : self._start_of_rows + HEAD_BYTES])

    def _cells_of_first_rows(self, delimiter: str) -> Iterator[list[str]]:
        """Return the cells of each of the first rows; the last row may be incomplete."""
        text = self._first_bytes_of_rows().decode("utf-8", "replace")
        return csv.reader(text.splitlines(), delimiter=delimiter)

    def read(
        self, text_columns: Sequence[int], typed_columns: Sequence[int]
    ) -> dict[int, pa.ChunkedArray]:
        """Read columns, see `TableFile`; an invalid row raises an error with its line.

        Columns are parsed once: a later call returns the same columns, or infers the type of a
        column that was parsed as text.
        """
        # Without requested columns the first one is parsed, which shows the number of rows.
        positions = list(dict.fromkeys([*text_columns, *typed_columns])) or [0]
        # `_parsed` has columns by position and by whether they are text: a column may be parsed
        # as text, and with the type that its values show.
        is_text = {
            position: position in text_columns or position in self.columns_of_codes
            for position in positions
        }
        unparsed = []
        for position in positions:
            if (position, is_text[position]) in self._parsed:
                continue
            if (position, True) in self._parsed:  # as text only, so far
                text_column = self._parsed[position, True]
                self._parsed[position, False] = self._infer_type(text_column)
            else:
                unparsed.append(position)
        if unparsed:
            unparsed_text = {position for position in unparsed if is_text[position]}
            new_columns = self._parse(unparsed, unparsed_text)
            for position, column in new_columns.items():
                self._parsed[position, is_text[position]] = column
        return {position: self._parsed[position, is_text[position]] for position in positions}

    def n_rows(self) -> int:
        """Return the number of rows, see `TableFile`."""
        if not self._parsed:
            self.read([], [])  # the first column
        return len(next(iter(self._parsed.values())))

    def _parse(self, positions: Sequence[int], as_text: Set[int]) -> dict[int, pa.ChunkedArray]:
        """Parse columns with Arrow; the columns in `as_text` are read as text, unchanged."""
        arrow = import_arrow()
        reader = import_arrow("pyarrow.csv")
        rows = self._text[self._start_of_rows :]
        if not re.search(rb"\S", rows):
            raise TableFormatError(self.path, None, "the file has column names but no rows.")
        has_quotes = re.search(b'"', rows) is not None
        if has_quotes:
            self._refuse_open_quotes(rows)
        keys = [str(position) for position in range(len(self.names))]  # names may be equal
        convert_options = reader.ConvertOptions(
            include_columns=[keys[position] for position in positions],
            column_types={keys[position]: arrow.string() for position in as_text},
            null_values=_NULLS,
            decimal_point=self.decimal,
        )

        def parse_in_blocks(
            n_bytes: int, on_invalid_row: Callable[[arrow_csv.InvalidRow], str] | None = None
        ) -> pa.Table:
            read_options = reader.ReadOptions(column_names=keys, block_size=n_bytes)
            parse_options = reader.ParseOptions(
                delimiter=self.delimiter,
                newlines_in_values=has_quotes,
                invalid_row_handler=on_invalid_row,
            )
            source = arrow.BufferReader(self._buffer.slice(self._start_of_rows))
            return reader.read_csv(source, read_options, parse_options, convert_options)

        try:
            table = parse_in_blocks(BLOCK_BYTES)
        except arrow.ArrowInvalid:
            # if the rows are valid, the file has blank lines or a row longer than a block
            self._refuse_invalid_rows()
            try:
                table = parse_in_blocks(one_block(rows), _skip_blank_row)
            except arrow.ArrowInvalid as error:
                raise TableFormatError(self.path, None, f"{error}.") from None
        is_utf_8 = arrow.binary() not in table.schema.types
        if not is_utf_8:
            self._refuse_invalid_rows()
        return {position: table[keys[position]] for position in positions}

    def _infer_type(self, column: pa.ChunkedArray) -> pa.ChunkedArray:
        """Convert a column of text to the type that `_parse` infers."""
        # The reader of CSV infers types: write the column as CSV, and read it.
        arrow = import_arrow()
        reader = import_arrow("pyarrow.csv")
        csv_file = arrow.BufferOutputStream()
        reader.write_csv(arrow.table([column], names=["0"]), csv_file)
        content = csv_file.getvalue()
        return reader.read_csv(
            arrow.BufferReader(content),
            reader.ReadOptions(block_size=one_block(content)),
            reader.ParseOptions(newlines_in_values=True, ignore_empty_lines=False),
            reader.ConvertOptions(null_values=_NULLS, decimal_point=self.decimal),
        ).column(0)

    def line_of_row(self, row: int) -> int:
        """Return the line in which a row starts."""
        rows_with_cells = (record for record in self.records() if record.cells)
        record = next(islice(rows_with_cells, row, None))
        return record.line

    def _refuse_invalid_rows(self) -> None:
        """Raise an error about the first invalid row, if there is one."""
        for _ in self.records():  # raises at an invalid row
            pass

    def records(self) -> Iterator[Record]:
        """Yield each row by strict rules; a blank line has no cells.

        Raises
        ------
        TableFormatError
            At an invalid row.
        """
        first_line = self._n_lines_before_rows + 1
        text = self._decode(self._start_of_rows, len(self._text), first_line)
        lines_of_row: list[str] = []

        # The reader takes the lines of a row one by one; they are kept for the text of the row.
        def remembered_lines() -> Iterator[str]:
            for line in io.StringIO(text, newline=""):
                lines_of_row.append(line)
                yield line

        csv.field_size_limit(MAX_BLOCK_BYTES)  # of the process; by default 128 KiB
        reader = csv.reader(remembered_lines(), delimiter=self.delimiter, strict=True)
        while True:
            line_number = first_line + reader.line_num
            lines_of_row.clear()
            try:
                cells = next(reader)
            except StopIteration:
                return
            except csv.Error as error:
                problem = f"{error}. Check the quotation marks and line ends of this row."
                raise TableFormatError(self.path, line_number, problem) from None
            has_several_columns = len(self.names) >= 2
            is_blank = has_several_columns and len(cells) < 2 and not "".join(cells).strip()
            if is_blank:
                cells = []
            elif cells and len(cells) != len(self.names):
                problem = (
                    f"the row has {len(cells)} columns, the header has {len(self.names)}. "
                    "Quote the fields that contain the delimiter."
                )
                raise TableFormatError(self.path, line_number, problem)
            yield Record(line_number, "".join(lines_of_row), cells)

    def _refuse_open_quotes(self, rows: memoryview) -> None:
        """Refuse a quotation mark that opens a cell and does not close it; Arrow accepts it."""
        characters = np.frombuffer(rows, dtype=np.uint8)
        quotes = np.flatnonzero(characters == ord('"'))
        has_open_quote = len(quotes) % 2 == 1
        opening_quotes = quotes[::2]
        closing_quotes = quotes[1::2]

        # Before an opening quote and after a closing one is a delimiter, a line end, or another
        # quote (two quotes in a cell stand for one).
        closing_before_end = closing_quotes[closing_quotes + 1 < len(characters)]
        neighbors = np.concatenate([opening_quotes - 1, closing_before_end + 1])
        may_be_neighbor = np.zeros(256, dtype=bool)  # by code of the character
        may_be_neighbor[list(f'\n\r"{self.delimiter}'.encode())] = True
        if has_open_quote or not may_be_neighbor[characters[neighbors]].all():
            self._refuse_invalid_rows()  # slower, and exact

    def _decode(self, start: int, end: int, first_line: int) -> str:
        """Decode bytes that begin in this line; refuse bytes that are not UTF-8."""
        text = bytes(self._text[start:end])
        try:
            return text.decode("utf-8")
        except UnicodeDecodeError as error:
            invalid_line = first_line + text.count(b"\n", 0, error.start)
            start_of_line = text.rfind(b"\n", 0, error.start) + 1
            text_of_line = text[start_of_line:].splitlines()[0]
            problem = (
                f"{shown_value(text_of_line.strip())} is not text in UTF-8. Save the file in that "
                "encoding (iconv -f cp1252 -t utf-8 does it for many files of Windows)."
            )
            raise TableFormatError(self.path, invalid_line, problem) from None


def _check_delimiter_and_decimal(delimiter: str | None, decimal: str | None) -> None:
    """Refuse delimiters and decimal marks that no table has."""
    if delimiter is not None and not re.fullmatch(r"[^\w\n\r\0\".+-]", str(delimiter), re.ASCII):
        raise ValueError(f"delimiter={delimiter!r}; pass one character, such as ',' or '\\t'.")
    if decimal not in (None, ".", ","):
        raise ValueError(f"decimal={decimal!r}; pass '.', ',' or None.")


def _skip_blank_row(row: arrow_csv.InvalidRow) -> str:
    """Tell Arrow to skip a row with another number of cells if the row is blank."""
    if row.actual_columns == 1 and not row.text.strip():
        return "skip"
    return "error"
