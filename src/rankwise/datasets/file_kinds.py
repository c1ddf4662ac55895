"""What kind of file this is, told by its content."""

from __future__ import annotations

import codecs
import errno
import os
import re
from typing import Literal, TypeAlias

from rankwise.datasets.files import open_unpacked
from rankwise.datasets.table_text import DELIMITERS
from rankwise.errors import TableFormatError

__all__ = ["Kind", "kind_of"]

Kind: TypeAlias = Literal["parquet", "feather", "jsonl", "letor", "table", "unclear"]

_HEAD_BYTES = 1 << 16
_LETOR_WORD = re.compile(rb"(qid|[0-9]+):[^,;|]*")
_MODEL = b"PK\x03\x04", b"header.json"  # first bytes, and the name of the first part after 30
_FOREIGN = {
    b"PK\x03\x04": (
        "an Excel workbook, a NumPy archive or another zip file",
        "Save it as CSV, or unpack it first",
    ),
    b"\xd0\xcf\x11\xe0": ("an old Excel workbook", "Save it as CSV"),
    b"SQLite format 3\0": ("an SQLite database", "Export the table as CSV"),
    b"%PDF-": ("a PDF document", "Export the data as CSV"),
    b"Obj\x01": ("an Avro file", "Write it as Parquet or CSV"),
    b"\x89HDF": ("an HDF5 file", "Write the table as Parquet or CSV"),
    b"\x93NUMPY": ("a NumPy array", "Load it with numpy.load and fit in Python, or write CSV"),
    b"\x80\x04": ("a pickle", "Write the data as Parquet or CSV"),
    b"\xff\xfe": ("text in UTF-16", "Save it in UTF-8"),
    b"\xfe\xff": ("text in UTF-16", "Save it in UTF-8"),
    b"[": ("a JSON list", "Write one JSON object a line, CSV or Parquet"),
    b"FEA1": ("a Feather file of the first version", "Write it as Parquet or by a newer version"),
    b"<": ("HTML or XML", "Write the data as CSV or Parquet"),
}


def kind_of(path: str) -> Kind:
    """Look at the first bytes, unpacked if need be.

    Raises
    ------
    TableFormatError
        If it is a file of a well-known kind that holds no ranking data.
    OSError
        If the file cannot be opened, or is a pipe, which cannot be read twice.
    """
    if os.path.exists(path) and not (os.path.isfile(path) or os.path.isdir(path)):
        raise OSError(errno.ESPIPE, "not a file on disk; save the data to a file first", path)
    with open_unpacked(path, TableFormatError) as stream:
        head = stream.read(_HEAD_BYTES)
    if head.startswith(b"PAR1"):
        return "parquet"
    if head.startswith(b"ARROW1\0\0"):
        return "feather"
    if head.startswith(_MODEL[0]) and head[30:].startswith(_MODEL[1]):
        raise TableFormatError(
            path,
            None,
            "this file is a rankwise model, expected data. Check the order of the arguments.",
        )
    for magic, (what, remedy) in _FOREIGN.items():
        if head.startswith(magic):
            raise TableFormatError(path, None, f"this file is {what}. {remedy}.")
    if head.removeprefix(codecs.BOM_UTF8).lstrip().startswith(b"{"):
        return "jsonl"
    return _kind_of_text(head.removeprefix(codecs.BOM_UTF8))


def _kind_of_text(head: bytes) -> Kind:
    lines = (line for line in head.split(b"\n") if line.strip())
    line = next((line for line in lines if not line.lstrip().startswith(b"#")), b"")
    words = line.partition(b"#")[0].split()
    n_letor = sum(1 for word in words[1:] if _LETOR_WORD.fullmatch(word))
    if n_letor and 2 * n_letor >= len(words) - 1:
        return "letor"
    first = next((line for line in head.split(b"\n") if line.strip()), b"")
    return "table" if any(mark.encode() in first for mark in DELIMITERS) else "unclear"
