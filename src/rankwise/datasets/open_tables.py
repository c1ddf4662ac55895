"""Open a file as a table: text, Parquet, Feather (Arrow) or JSON."""

from __future__ import annotations

import codecs
from typing import TYPE_CHECKING

from rankwise.datasets.delimited_table import DelimitedTable
from rankwise.datasets.file_formats import FORMATS, Format, choose_format
from rankwise.datasets.files import import_arrow, open_unpacked, path_on_disk
from rankwise.datasets.table_files import ArrowTable, TableFile
from rankwise.errors import TableFormatError

if TYPE_CHECKING:
    import pyarrow as pa

HEAD_BYTES = 1 << 16  # read to recognize the format
_UTF16 = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)


def open_table(
    path: str, delimiter: str | None = None, decimal: str | None = None, header: bool = True
) -> TableFile:
    """Open a table and read its column names; see `read_ranking` for the parameters."""
    table = open_unless_letor(path, delimiter, decimal, header)
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
    """Open a table and read its column names; return None for svmlight rows.

    Raises
    ------
    TableFormatError
        If the format cannot be recognized, or `format` contradicts the content.
    """
    if format not in FORMATS:
        raise ValueError(f"format={format!r}; pass one of {', '.join(FORMATS)}.")
    requested_format = format
    if format == "auto" and delimiter is not None:  # only text tables have delimiters
        requested_format = "csv"
    with open_unpacked(path, TableFormatError) as (stream, file):
        first_bytes = stream.read(HEAD_BYTES)
        file_format = choose_format(path, _as_utf_8(first_bytes), requested_format)
        if file_format == "letor":
            return None
        is_compressed = stream is not file
        is_utf_16 = first_bytes.startswith(_UTF16)
        if first_bytes and not (is_compressed or is_utf_16):
            # The file is mapped, not copied; an empty file cannot be mapped.
            content = import_arrow().memory_map(path_on_disk(path)).read_buffer()
        else:
            content = _arrow_buffer(_as_utf_8(first_bytes + stream.read()))
    if file_format == "tsv" and delimiter is None:
        delimiter = "\t"
    if file_format in ("csv", "tsv"):
        return DelimitedTable(path, content, delimiter, decimal, header)
    if delimiter is not None:
        raise ValueError(f"{path} is a {file_format} file; leave out delimiter=.")
    return ArrowTable(path, content, file_format)


def _as_utf_8(text: bytes) -> bytes:
    """Convert a text in UTF-16; other bytes are returned unchanged."""
    if text.startswith(_UTF16):
        return text.decode("utf-16", "replace").encode()
    return text


def _arrow_buffer(content: bytes) -> pa.Buffer:
    """Copy bytes to memory of Arrow, whose threads may free it after Python has ended."""
    stream = import_arrow().BufferOutputStream()
    stream.write(content)
    return stream.getvalue()
