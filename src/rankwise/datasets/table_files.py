"""Open a table of any kind: text, Parquet, Feather (Arrow) or JSON lines."""

from __future__ import annotations

import io
import json
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, TypeAlias

from rankwise.datasets.file_kinds import Kind, kind_of
from rankwise.datasets.files import (
    BLOCK_BYTES,
    damage,
    import_arrow,
    location,
    open_unpacked,
    text_content,
)
from rankwise.datasets.labels import as_text
from rankwise.datasets.table_text import TextTable
from rankwise.errors import TableFormatError

_NAMES = {"parquet": "Parquet", "feather": "Feather", "jsonl": "JSON lines"}


def open_table(
    path: str,
    delimiter: str | None = None,
    decimal: str | None = None,
    header: bool = True,
    kind: Kind | None = None,
) -> TextTable | ArrowTable:
    """Open a table; what it is, is told by its content.  Raises the errors of `read_table`."""
    kind = kind or kind_of(path)
    if kind == "letor":
        raise TableFormatError(
            path,
            None,
            "this file is in the LETOR (svmlight) format, expected a table with a line of column "
            "names. Pass format='letor' to a reader that takes both.",
        )
    if kind in _NAMES:
        if delimiter is not None:
            raise ValueError(f"{path} is a {_NAMES[kind]} file; leave out delimiter=.")
        return ArrowTable(path, kind)
    return TextTable(path, delimiter, decimal, header)


class ArrowTable:
    """A file of the kind "parquet", "feather" or "jsonl"; it does what a TextTable does."""

    line: int | None = None
    has_names: bool = True
    decimal, thousands = ".", ""

    def __init__(self, path: str, kind: str) -> None:
        self.path, self.kind = path, kind
        self.arrow = import_arrow("pyarrow", f"{_NAMES[kind]} files")
        if kind == "jsonl":
            self._table = self._json()
            self.names = list(self._table.column_names)
            return
        with self.opened() as file:
            self.names = list((file.schema_arrow if kind == "parquet" else file.schema).names)

    @contextmanager
    def opened(self) -> Iterator[Any]:
        """The open file of pyarrow; what it says about damaged ones becomes our error."""
        with open_unpacked(self.path, TableFormatError) as stream:
            is_plain = isinstance(stream, io.BufferedReader)
            try:
                source = location(self.path) if is_plain else self.arrow.BufferReader(stream.read())
                if self.kind == "parquet":
                    yield import_arrow("pyarrow.parquet", "Parquet files").ParquetFile(source)
                else:
                    source = self.arrow.memory_map(source) if is_plain else source
                    yield import_arrow("pyarrow.ipc", "Feather files").open_file(source)
            except TableFormatError:
                raise
            except (self.arrow.ArrowException, OSError, UnicodeError) as error:
                what = f"{_NAMES[self.kind]} file"
                raise damage(TableFormatError, self.path, None, error, what) from None

    def _json(self) -> Any:
        reader = import_arrow("pyarrow.json", "JSON lines")
        content = bytes(text_content(self.path, TableFormatError))
        try:
            _ = content.decode("utf-8")
            longest = max(map(len, content.split(b"\n")))
            options = reader.ReadOptions(block_size=max(BLOCK_BYTES, 2 * longest))
            return reader.read_json(io.BytesIO(content), options)
        except (self.arrow.ArrowException, UnicodeError) as error:
            for number, line in enumerate(content.split(b"\n"), start=1):
                try:
                    _ = json.loads(line) if line.strip() else None
                except ValueError as bad:
                    problem = f"this line is not one JSON object ({bad}). Write one object a line."
                    raise TableFormatError(self.path, number, problem) from None
            found = re.search(r"in row (\d+)", str(error))
            row = int(found[1]) + 1 if found else None
            problem = f"{error}: every object needs the same types."
            raise TableFormatError(self.path, row, problem) from None

    def read(self, texts: Sequence[int], values: Sequence[int]) -> Any:
        """An Arrow table of the columns at these positions, which are their names in it."""
        used = list(dict.fromkeys([*texts, *values])) or [0]
        names = [self.names[k] for k in used]
        if self.kind == "jsonl":
            table = self._table
        else:
            with self.opened() as file:
                if self.kind == "parquet":
                    table = file.read(columns=names, use_pandas_metadata=False)
                else:
                    table = file.read_all().select(names)
                for column in table.columns:  # before anybody follows a bad offset
                    column.validate(full=True)
        if not table.num_rows:
            raise TableFormatError(self.path, None, "the file has columns but no rows.")
        return plain_types(table.select(names).rename_columns([str(k) for k in used]))

    def place(self, row: int) -> int:
        """The number of a row, counted from one."""
        return row + 1

    def spelled(self, row: int, column: int) -> str:
        """A cell as text."""
        return as_text(self.read([], [column])[0][row].as_py())


def plain_types(table: Any) -> Any:
    """The table without dictionaries, decimals, and other types that Arrow computes little with.

    The values of a dictionary become text: who made it meant categories.
    """
    arrow = import_arrow()
    types = arrow.types
    for at, kind in enumerate(table.schema.types):
        new = None
        if types.is_dictionary(kind) or types.is_string_view(kind):
            new = arrow.string()
        elif types.is_decimal(kind):
            new = arrow.float64()
        elif types.is_float16(kind):
            new = arrow.float32()
        if new is not None:
            column = table[at].cast(kind.value_type) if types.is_dictionary(kind) else table[at]
            table = table.set_column(at, table.column_names[at], column.cast(new))
    return table


OpenTable: TypeAlias = TextTable | ArrowTable
