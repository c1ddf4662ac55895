"""Tables that are read by column: Parquet, Feather (Arrow), JSON, or a data frame."""

from __future__ import annotations

import io
import json
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from importlib.util import find_spec
from typing import TYPE_CHECKING

from rankwise.datasets.file_formats import Format
from rankwise.datasets.files import damaged_file_error, import_arrow
from rankwise.datasets.vocabulary import is_gap
from rankwise.errors import TableFormatError

if TYPE_CHECKING:
    import pyarrow as pa

LEAST_ARROW_ROWS = 1000  # of a data frame; fewer are encoded in Python
MAX_BLOCK_BYTES = 2**31 - 1  # of Arrow


class TableFile(ABC):
    """A table whose columns are read by position.

    Attributes
    ----------
    path : str
        The file.
    names : list of str
        Names of the columns.
    line : int or None
        Line of the column names.
    decimal, thousands : str
        Decimal mark, and separator of thousands (empty if there is none).
    has_names : bool
        Whether the file contains the names; otherwise they are the positions of the columns.
    """

    path: str
    names: list[str]
    line: int | None = None
    decimal: str = "."
    thousands: str = ""
    has_names: bool = True

    @abstractmethod
    def read(
        self, text_columns: Sequence[int], typed_columns: Sequence[int]
    ) -> dict[int, pa.ChunkedArray]:
        """Read columns by position.

        Parameters
        ----------
        text_columns : sequence of int
            Columns to read as text, unchanged.
        typed_columns : sequence of int
            Columns to read with the type that their values show. If both sequences are empty, the
            first column is read.

        Returns
        -------
        dict from int to pyarrow.ChunkedArray
            Columns by position; lists for a `FrameTable`.
        """

    @abstractmethod
    def n_rows(self) -> int:
        """Return the number of rows."""

    def line_of_row(self, row: int) -> int:
        """Return the line or the number of a row, counted from 1."""
        return row + 1

    def error(self, problem: str, row: int | None = None) -> Exception:
        """Return the error to raise about a row, or about the column names if `row` is None."""
        line = self.line
        if row is not None:
            line = self.line_of_row(row)
        return TableFormatError(self.path, line, problem)


class ArrowTable(TableFile):
    """A file of the format parquet, feather or json; only the columns in use of Parquet are read.

    Attributes
    ----------
    format : {"parquet", "feather", "json"}
        The format.
    content : pyarrow.Buffer
        The bytes of the file.
    """

    def __init__(self, path: str, content: pa.Buffer, format: Format) -> None:
        self.path = path
        self.format = format
        self.content = content
        self._parquet_file: pa.parquet.ParquetFile | None = None
        self._table: pa.Table = None  # of the other formats
        arrow = import_arrow()
        source = arrow.BufferReader(content)
        try:
            if format == "parquet":
                self._parquet_file = import_arrow("pyarrow.parquet").ParquetFile(source)
                self.names = list(self._parquet_file.schema_arrow.names)
                return
            if format == "json":
                self._table = _read_json(path, bytes(content))
            else:
                self._table = import_arrow("pyarrow.ipc").open_file(source).read_all()
            self.names = list(self._table.column_names)
        except (arrow.ArrowException, OSError, UnicodeError) as problem:
            raise damaged_file_error(TableFormatError, path, problem) from None

    def read(
        self, text_columns: Sequence[int], typed_columns: Sequence[int]
    ) -> dict[int, pa.ChunkedArray]:
        """See `TableFile`; columns of types with few functions in Arrow are converted."""
        # Without requested columns the first one is read, which shows the number of rows.
        positions = list(dict.fromkeys([*text_columns, *typed_columns])) or [0]
        names = [self.names[position] for position in positions]
        arrow = import_arrow()
        try:
            table = self.read_table(names)
            table.validate(full=True)  # a bad offset must not be followed
        except (arrow.ArrowException, OSError) as problem:
            raise damaged_file_error(TableFormatError, self.path, problem) from None
        if not table.num_rows:
            raise TableFormatError(self.path, None, "the file has columns but no rows.")
        columns = [_as_plain_type(column) for column in table.columns]
        return dict(zip(positions, columns, strict=True))

    def read_table(self, names: Sequence[str] | None = None) -> pa.Table:
        """Return the columns with these names, or all columns, as an Arrow table."""
        if self._parquet_file is not None:
            table = self._parquet_file.read(columns=names)
        else:
            table = self._table
        if names is None:
            return table
        return table.select(names)

    def n_rows(self) -> int:
        """Return the number of rows, see `TableFile`."""
        if self._parquet_file is not None:
            return int(self._parquet_file.metadata.num_rows)
        return int(self._table.num_rows)


class FrameTable(TableFile):
    """A data frame as a table whose columns are lists; errors name the row, counted from 0."""

    path = "the frame"

    def __init__(self, columns: Mapping[str, Sequence[object]]) -> None:
        self.names = [str(name) for name in columns]
        self._columns = list(columns.values())
        sizes = {name: len(column) for name, column in columns.items()}
        if len(set(sizes.values())) > 1:
            raise ValueError(f"the columns have different lengths: {sizes}.")
        if not sizes or not next(iter(sizes.values())):
            raise ValueError("the frame has no rows; a rating needs at least one comparison.")

    def read(
        self, text_columns: Sequence[int], typed_columns: Sequence[int]
    ) -> dict[int, pa.ChunkedArray]:
        """Return columns of strings in Arrow, if it is installed, and others as lists."""
        columns = {}
        for position in {*text_columns, *typed_columns}:
            column = self._columns[position]
            strings = None
            if position not in typed_columns:
                strings = arrow_strings(column)
            if strings is None:
                columns[position] = _as_list(column)
            else:
                columns[position] = strings
        return columns

    def n_rows(self) -> int:
        """Return the number of rows, see `TableFile`."""
        return len(self._columns[0])

    def error(self, problem: str, row: int | None = None) -> Exception:
        """A ValueError that names the row."""
        subject = self.path
        if row is not None:
            subject = f"row {row} of {self.path}"
        return ValueError(f"{subject}: {problem}")


def arrow_strings(column: Sequence[object]) -> pa.ChunkedArray | None:
    """Return a column of strings of any library in Arrow, which encodes it faster than Python.

    None for other values, for a few rows, and without pyarrow.
    """
    if len(column) < LEAST_ARROW_ROWS or find_spec("pyarrow") is None:
        return None
    if not _begins_with_string(column):
        return None
    arrow = import_arrow()
    try:
        if hasattr(column, "to_arrow"):
            converted = column.to_arrow()
        else:
            converted = arrow.array(column, from_pandas=True)
    except (arrow.ArrowInvalid, arrow.ArrowTypeError):  # other values than strings
        return None
    values = _as_plain_type(arrow.chunked_array([converted]))
    are_strings = arrow.types.is_string(values.type) or arrow.types.is_large_string(values.type)
    if are_strings:
        return values
    return None


def _begins_with_string(column: Sequence[object]) -> bool:
    """Whether the first value that is not missing, of the first few, is a string."""
    first_rows = _as_list(column[:LEAST_ARROW_ROWS])
    for value in first_rows:
        if not is_gap(value):
            return isinstance(value, str)
    return False


def _as_list(column: Sequence[object]) -> list[object]:
    """Convert a column of any library to a list of Python objects."""
    for method in ("to_list", "tolist"):
        if hasattr(column, method):
            values: list[object] = getattr(column, method)()
            return values
    return list(column)


def _read_json(path: str, content: bytes) -> pa.Table:
    """Read one object a line, or an array of objects."""
    reader = import_arrow("pyarrow.json")
    try:
        text = content.decode("utf-8-sig")
        is_array = text.lstrip().startswith("[")
        if is_array:
            one_object_a_line = "\n".join(json.dumps(record) for record in json.loads(text))
            content = one_object_a_line.encode()
        options = reader.ReadOptions(block_size=one_block(content))
        return reader.read_json(io.BytesIO(content), options)
    except ValueError as error:  # of JSON, of UTF-8, or of Arrow
        line = None
        if isinstance(error, json.JSONDecodeError):
            line = error.lineno
        problem = f"expected objects with the same types, in an array or one a line: {error}."
        raise TableFormatError(path, line, problem) from None


def _as_plain_type(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Convert a column of a type with few functions in Arrow.

    A dictionary becomes text, because a column that was saved as a dictionary has categories.
    """
    arrow = import_arrow()
    types = arrow.types
    if types.is_dictionary(column.type):  # categories, also if they are numbers
        return column.cast(column.type.value_type).cast(arrow.string())
    if types.is_string_view(column.type):
        return column.cast(arrow.string())
    if types.is_decimal(column.type):
        return column.cast(arrow.float64())
    if types.is_float16(column.type):
        return column.cast(arrow.float32())
    return column


def one_block(content: bytes | memoryview) -> int:
    """Return the block size with which Arrow reads the content as one block."""
    return min(len(content) + 1, MAX_BLOCK_BYTES)
