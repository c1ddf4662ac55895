"""What kind of file this is, told by its content."""

from __future__ import annotations

import codecs
import errno
import os
import re
from typing import Literal, TypeAlias

from rankwise.datasets.files import PACKED, UTF16, from_utf16, open_unpacked
from rankwise.datasets.table_text import DELIMITERS
from rankwise.errors import TableFormatError

Kind: TypeAlias = Literal["parquet", "feather", "jsonl", "letor", "table", "unclear"]
Format: TypeAlias = Literal["auto", "letor", "csv", "tsv", "parquet", "feather", "jsonl"]

_FORMAT_OF_SUFFIX: dict[str, Format] = {
    **dict.fromkeys((".letor", ".svm", ".svmlight", ".libsvm"), "letor"),
    **dict.fromkeys((".csv",), "csv"),
    **dict.fromkeys((".tsv", ".tab"), "tsv"),
    **dict.fromkeys((".parquet", ".pq"), "parquet"),
    **dict.fromkeys((".feather", ".arrow"), "feather"),
    **dict.fromkeys((".jsonl", ".ndjson"), "jsonl"),
}

_HEAD_BYTES = 1 << 16
_LETOR_WORD = re.compile(rb"(qid|[0-9]+):[^,;|]*")
_BINARY: dict[bytes, Kind] = {b"PAR1": "parquet", b"ARROW1\0\0": "feather"}
_MODEL = re.compile(rb"PK\x03\x04.{26}model\.json", re.DOTALL)
_FOREIGN = {
    b"PK\x03\x04": "an Excel workbook, a NumPy archive or another zip file",
    b"\xd0\xcf\x11\xe0": "an old Excel workbook",
    b"SQLite format 3\0": "an SQLite database",
    b"%PDF-": "a PDF document",
    b"Obj\x01": "an Avro file",
    b"\x89HDF": "an HDF5 file",
    b"\x93NUMPY": "a NumPy array",
    b"\x80\x04": "a pickle",
    b"[": "a JSON list",
    b"FEA1": "a Feather file of the first version",
    b"<": "HTML or XML",
}
_REMEDY = "Export or save the data as Parquet, as CSV in UTF-8, or as one JSON object a line"


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
    if head.startswith(UTF16):
        head = from_utf16(head)
    for magic, kind in _BINARY.items():
        if head.startswith(magic):
            return kind
    if _MODEL.match(head):
        problem = "this file is a rankwise model, expected data. Check the order of the arguments."
        raise TableFormatError(path, None, problem)
    for magic, what in _FOREIGN.items():
        if head.startswith(magic):
            raise TableFormatError(path, None, f"this file is {what}. {_REMEDY}.")
    return _kind_of_text(head.removeprefix(codecs.BOM_UTF8))


def _kind_of_text(head: bytes) -> Kind:
    lines = [line.strip() for line in head.split(b"\n") if line.strip()] or [b""]
    if lines[0].startswith(b"{"):
        return "jsonl"
    row = next((line for line in lines if not line.startswith(b"#")), b"")
    words = row.partition(b"#")[0].split()
    n_letor = sum(1 for word in words[1:] if _LETOR_WORD.fullmatch(word))
    if n_letor and 2 * n_letor >= len(words) - 1:
        return "letor"
    return "table" if any(mark.encode() in lines[0] for mark in DELIMITERS) else "unclear"


def format_of_suffix(path: str) -> Format | None:
    """What the name of a file, compressed or not, says about its kind."""
    stem, suffix = os.path.splitext(path.lower())
    return _FORMAT_OF_SUFFIX.get(os.path.splitext(stem)[1] if suffix in PACKED else suffix)
