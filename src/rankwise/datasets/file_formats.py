"""Recognize the format of a data file by its first bytes, or by the suffix of its name."""

from __future__ import annotations

import codecs
import os
import re
from typing import Literal, TypeAlias, get_args

from rankwise.datasets.files import PACKED
from rankwise.errors import TableFormatError

Format: TypeAlias = Literal["auto", "letor", "csv", "tsv", "parquet", "feather", "json"]
FORMATS = get_args(Format)
DELIMITERS = (",", "\t", ";", "|")

SUFFIXES: dict[Format, tuple[str, ...]] = {
    "letor": (".letor", ".svm", ".svmlight", ".libsvm"),
    "csv": (".csv",),
    "tsv": (".tsv", ".tab"),
    "parquet": (".parquet", ".pq"),
    "feather": (".feather", ".arrow"),
    "json": (".json", ".jsonl", ".ndjson"),
}
_FORMAT_OF_SUFFIX = {
    suffix: file_format for file_format, suffixes in SUFFIXES.items() for suffix in suffixes
}
_UNMISTAKABLE = {"parquet", "feather", "json"}  # the first bytes identify these formats
_LETOR_PAIR = re.compile(rb"(qid|[0-9]+):[^,;|]*")


def choose_format(path: str, head: bytes, requested: Format) -> Format:
    """Return the format to read a file as: as requested, else by its first bytes or its suffix.

    Parameters
    ----------
    path : str
        The file.
    head : bytes
        Its first bytes, decompressed and in UTF-8.
    requested : Format
        The format that the caller asks for; "auto" recognizes it.

    Raises
    ------
    TableFormatError
        If the format cannot be recognized, or the content contradicts the request.
    """
    format_of_content = _format_of_bytes(head.removeprefix(codecs.BOM_UTF8))
    if requested == "auto":
        recognized = format_of_content or format_of_suffix(path)
        if recognized is None:
            raise TableFormatError(
                path,
                None,
                "the format cannot be recognized: the file has neither rows 'label qid:group "
                "feature:value ...' nor column names. Pass format=.",
            )
        return recognized
    # The first bytes show for certain whether a file is Parquet, Feather or JSON.
    is_certain = format_of_content in _UNMISTAKABLE or requested in _UNMISTAKABLE
    if format_of_content != requested and is_certain:
        raise TableFormatError(
            path, None, f"the file has the format {format_of_content}, expected {requested}."
        )
    return requested


def format_of_suffix(path: str) -> Format | None:
    """Return the format that the name of a file, compressed or not, suggests."""
    stem, suffix = os.path.splitext(path.lower())
    if suffix in (*PACKED, ".zip"):
        suffix = os.path.splitext(stem)[1]
    return _FORMAT_OF_SUFFIX.get(suffix)


def _format_of_bytes(head: bytes) -> Format | None:
    """Return the format that the first bytes show; None if they show none."""
    if head.startswith(b"PAR1"):
        return "parquet"
    if head.startswith(b"ARROW1\0\0"):
        return "feather"
    lines = [line.strip() for line in head.split(b"\n") if line.strip()]
    if not lines:
        return None
    if lines[0].startswith((b"{", b"[")):
        return "json"
    lines_without_comments = [line for line in lines if not line.startswith(b"#")]
    if lines_without_comments and _is_letor_row(lines_without_comments[0]):
        return "letor"
    if any(delimiter.encode() in lines[0] for delimiter in DELIMITERS):
        return "csv"
    return None


def _is_letor_row(line: bytes) -> bool:
    """Whether at least half of the words after the label are pairs feature:value."""
    text_before_comment = line.partition(b"#")[0]
    words_after_label = text_before_comment.split()[1:]
    pairs = [word for word in words_after_label if _LETOR_PAIR.fullmatch(word)]
    return len(pairs) > 0 and 2 * len(pairs) >= len(words_after_label)
