"""Rows of a CSV file in blocks: the text of the features, and the cells of the other columns."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain, islice
from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from rankwise.datasets.decimals import parse_decimals
from rankwise.datasets.table_columns import MISSING, TableColumns
from rankwise.datasets.table_records import (
    decode_line,
    is_blank,
    raw_records,
    split_record,
    wrong_width,
)
from rankwise.datasets.labels import finite_number, show
from rankwise.errors import LetorFormatError

__all__ = ["Block", "read_blocks"]

BLOCK_CELLS = 1 << 18

Records: TypeAlias = list[tuple[int, bytes]]


class _Cut(NamedTuple):
    """Rows cut in pieces: their features with a joint between them, and the other cells."""

    features: list[bytes]
    joint: bytes
    others: dict[int, list[bytes]]


class Block(NamedTuple):
    """Consecutive rows: where each starts, its features, and cells by column position."""

    lines: list[int]
    X: NDArray[np.float64]
    cells: dict[int, list[str]]


def read_blocks(
    path: str, lines: Iterator[tuple[int, bytes]], delimiter: str, columns: TableColumns
) -> Iterator[Block]:
    """Parse the rows below the header block by block; X is in file order."""
    mark = delimiter.encode()
    while chunk := list(islice(lines, _chunk_lines(len(columns.names)))):
        if not _is_plain([raw for _, raw in chunk]):
            break
        plain = _without_blanks(chunk, mark, len(columns.names))
        if plain:
            yield _parse(path, plain, delimiter, columns)
    # from the first quotation mark on, a record may be longer than a line
    records = raw_records(path, chain(chunk, lines), delimiter)
    filled = (pair for pair in records if not is_blank(pair[1], mark))
    while block := list(islice(filled, _chunk_lines(len(columns.names)))):
        yield _parse(path, block, delimiter, columns)


def _is_plain(raws: list[bytes]) -> bool:
    """Whether every line is a record: no quotation marks, no stray carriage returns."""
    content = b"".join(raws)
    if b'"' in content:
        return False
    return b"\r" not in content or all(raw.find(b"\r", 0, -2) < 0 for raw in raws)


def _without_blanks(chunk: Records, mark: bytes, n_columns: int) -> Records:
    if n_columns > 1 and all(mark in raw for _, raw in chunk):
        return chunk
    return [pair for pair in chunk if not is_blank(pair[1], mark)]


def _chunk_lines(n_columns: int) -> int:
    return max(1, BLOCK_CELLS // n_columns)


def _parse(path: str, block: Records, delimiter: str, columns: TableColumns) -> Block:
    content = b"".join([raw for _, raw in block])
    _check_encoding(path, block, content)
    others = [at for at in (columns.target, columns.group, columns.id) if at is not None]
    features = sorted(columns.features)
    cutter = _cut_quoted if b'"' in content else _cut_plain
    cut = cutter(path, block, delimiter, len(columns.names), features, others)
    text = b"\n".join(cut.features)
    if cut.joint != b"\n":
        text = text.replace(cut.joint, b"\n")
    lines = [number for number, _ in block]
    n_cells = len(block) * len(features)
    numbers = parse_decimals(text, n_cells) if n_cells else np.empty(0)
    if numbers is None:
        names = [columns.names[at] for at in features]
        rows = zip(lines, cut.features, strict=True)
        exact = [_exact_row(path, line, row.split(cut.joint), names) for line, row in rows]
        numbers = np.concatenate(exact)
    cells = {at: _as_texts(cut.others[at]) for at in others}
    return Block(lines, numbers.reshape(len(block), len(features)), cells)


def _as_texts(cells: list[bytes]) -> list[str]:
    text = b"\0".join(cells).decode("utf-8")
    texts = text.split("\0")
    has_blanks = text.split(None, 1) != [text]
    return [text.strip() for text in texts] if has_blanks else texts


def _check_encoding(path: str, block: Records, content: bytes) -> None:
    if content.isascii():
        return
    for number, raw in block:
        decode_line(path, number, raw)


def _cut_plain(
    path: str,
    block: Records,
    delimiter: str,
    n_columns: int,
    features: list[int],
    others: list[int],
) -> _Cut:
    """Cut rows without quotation marks; most features stay together in one piece."""
    mark = delimiter.encode()
    for number, raw in block:
        if raw.count(mark) != n_columns - 1:
            raise wrong_width(path, number, raw.count(mark) + 1, n_columns)
    left, right, piece_of = _pieces(n_columns, features)
    rows = [raw.rstrip(b"\r\n").split(mark, left) for _, raw in block]
    if right:
        rows = [row[:left] + row[left].rsplit(mark, right) for row in rows]
    taken = list(dict.fromkeys(piece_of[at] for at in features))
    if len(taken) == 1:
        texts = [row[taken[0]] for row in rows]
    else:
        texts = [mark.join([row[k] for k in taken]) for row in rows]
    return _Cut(texts, mark, {at: [row[piece_of[at]] for row in rows] for at in others})


def _pieces(n_columns: int, features: list[int]) -> tuple[int, int, list[int]]:
    """How many columns to cut off on the left and right, and in which piece each column is."""
    dropped = sorted(set(range(n_columns)) - set(features))
    left = 1 + max((at for at in dropped if 2 * at < n_columns), default=-1)
    right = n_columns - min((at for at in dropped if 2 * at >= n_columns), default=n_columns)
    shift = n_columns - left - right - 1
    if shift < 0:  # no column is left in the middle
        return n_columns, 0, list(range(n_columns))
    return left, right, [min(at, max(left, at - shift)) for at in range(n_columns)]


def _cut_quoted(
    path: str,
    block: Records,
    delimiter: str,
    n_columns: int,
    features: list[int],
    others: list[int],
) -> _Cut:
    rows = [split_record(path, number, raw, delimiter, n_columns) for number, raw in block]
    texts = ["\n".join([row[at].replace("\n", " ") for at in features]) for row in rows]
    cells = {at: [row[at].encode("utf-8") for row in rows] for at in others}
    return _Cut([text.encode("utf-8") for text in texts], b"\n", cells)


def _exact_row(path: str, line: int, cells: list[bytes], names: list[str]) -> NDArray[np.float64]:
    """Parse the features of one row cell by cell, and say what is wrong with the first bad one."""
    values = np.empty(len(names))
    for k, cell in enumerate(cells):
        value = finite_number(cell)
        if value is None:
            raise LetorFormatError(path, line, feature_problem(names[k], cell.decode("utf-8")))
        values[k] = value + 0.0  # minus zero is zero, as on the fast path
    return values


def feature_problem(name: str, cell: str) -> str:
    """Why a cell cannot be a feature, and what to do."""
    if cell.strip().lower() in MISSING | {"?", "-"}:
        return (
            f"the value of column {show(name)} is missing ({show(cell)}). Fill in the missing "
            "values before reading, for example with the mean of the column, or leave the column "
            "out with ignore= (--ignore)."
        )
    remedy = "Encode words as numbers, or leave the column out with ignore= (--ignore)."
    if finite_number(cell.replace(",", ".")) is not None:
        remedy = "Write decimals with a point."
    return f"column {show(name)} is {show(cell)}, expected a finite number. {remedy}"
