"""Open a table of any kind: text, Parquet, Feather (Arrow) or JSON lines."""

from __future__ import annotations

import io
import json
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Protocol

from rankwise.datasets.file_kinds import Kind, kind_of
from rankwise.datasets.files import (
    import_arrow,
    line_blocks,
    location,
    numbered_lines,
    open_unpacked,
)
from rankwise.datasets.labels import as_text
from rankwise.datasets.table_text import TextTable
from rankwise.errors import TableFormatError

__all__ = ["ArrowTable", "OpenTable", "open_table"]

_NAMES = {"parquet": "Parquet", "feather": "Feather", "jsonl": "JSON lines"}


class OpenTable(Protocol):
    """A table whose column names are known and whose columns can be read."""

    path: str
    names: list[str]
    line: int | None
    has_names: bool

    def read(self, texts: Sequence[int], values: Sequence[int]) -> Any:
        """An Arrow table of the columns at these positions, which are their names in it."""

    def place(self, row: int) -> int:
        """The line or the number of a row, counted from one."""

    def spelled(self, row: int, column: int) -> str:
        """A cell as text."""


def open_table(
    path: str,
    delimiter: str | None = None,
    decimal: str | None = None,
    header: bool = True,
    kind: Kind | None = None,
) -> OpenTable:
    """Open a table; what it is, is told by its content.

    Raises
    ------
    TableFormatError
        If it is no table.
    ImportError
        If pyarrow is missing.
    OSError
        If the file cannot be opened.
    """
    kind = kind or kind_of(path)
    if kind == "letor":
        raise TableFormatError(
            path,
            None,
            "this file is in the LETOR (svmlight) format, expected a table with a line of column "
            "names. Read it with read_letor or read_ranking (format='letor', --format letor).",
        )
    if kind in _NAMES:
        if delimiter is not None:
            raise ValueError(f"{path} is a {_NAMES[kind]} file; leave out delimiter.")
        return ArrowTable(path, kind)
    return TextTable(path, delimiter, decimal, header)


class ArrowTable:
    """A Parquet, Feather or JSON lines file.

    Parameters
    ----------
    path : str
        Of the file.
    kind : {"parquet", "feather", "jsonl"}
        What it is.
    """

    line: int | None = None
    has_names: bool = True

    def __init__(self, path: str, kind: str) -> None:
        self.path, self._kind = path, kind
        self.arrow = import_arrow("pyarrow", f"{_NAMES[kind]} files")
        if kind == "jsonl":
            self._table = self._json()
            self.names = list(self._table.column_names)
            return
        with self.opened() as file:
            schema = file.schema_arrow if kind == "parquet" else file.schema
            self.names = list(schema.names)

    @contextmanager
    def opened(self) -> Iterator[Any]:
        """The open file of pyarrow; what it says about damaged ones becomes our error."""
        with open_unpacked(self.path, TableFormatError) as stream:
            plain = isinstance(stream, io.BufferedReader)
            source: Any = location(self.path) if plain else io.BytesIO(stream.read())
            try:
                if self._kind == "parquet":
                    yield import_arrow("pyarrow.parquet", "Parquet files").ParquetFile(source)
                else:
                    map_file = self.arrow.memory_map if plain else self.arrow.py_buffer
                    source = map_file(source if plain else source.getvalue())
                    yield import_arrow("pyarrow.ipc", "Feather files").open_file(source)
            except TableFormatError:
                raise
            except (self.arrow.ArrowException, OSError, UnicodeError) as error:
                if getattr(error, "errno", None) is not None:
                    raise
                reason = (str(error).splitlines() or [type(error).__name__])[0][:200]
                raise TableFormatError(
                    self.path,
                    None,
                    f"the {_NAMES[self._kind]} file is damaged or cut short ({reason}). Write or "
                    "fetch it again.",
                ) from None

    def _json(self) -> Any:
        reader = import_arrow("pyarrow.json", "JSON lines")
        blocks = line_blocks(self.path, error=TableFormatError)  # of bounded lines
        content = b"".join([block for _, block in blocks])
        try:
            _ = content.decode("utf-8")
            return reader.read_json(io.BytesIO(content))
        except (self.arrow.ArrowException, UnicodeError) as error:
            for number, line in numbered_lines(self.path, error=TableFormatError):
                try:
                    _ = json.loads(line) if line.strip() else None
                except ValueError as bad:
                    problem = f"this line is not one JSON object ({bad}). Write one object a line."
                    raise TableFormatError(self.path, number, problem) from None
            found = re.search(r"in row (\d+)", str(error))
            row = int(found[1]) + 1 if found else None
            raise TableFormatError(
                self.path, row, f"{error}: every object needs the same types."
            ) from None

    def read(self, texts: Sequence[int], values: Sequence[int]) -> Any:
        """An Arrow table of the columns at these positions, which are their names in it."""
        used = list(dict.fromkeys([*texts, *values])) or [0]
        names = [self.names[k] for k in used]
        if self._kind == "jsonl":
            table = self._table.select(names)
        else:
            with self.opened() as file:
                if self._kind == "parquet":
                    table = file.read(columns=names, use_pandas_metadata=False)
                else:
                    table = file.read_all().select(names)
                for column in table.columns:  # before anybody follows a bad offset
                    column.validate(full=True)
        if not table.num_rows:
            raise TableFormatError(self.path, None, "the file has columns but no rows.")
        return table.select(names).rename_columns([str(k) for k in used])

    def place(self, row: int) -> int:
        """The number of a row, counted from one."""
        return row + 1

    def spelled(self, row: int, column: int) -> str:
        """A cell as text."""
        return as_text(self.read([], [column])[0][row].as_py())
