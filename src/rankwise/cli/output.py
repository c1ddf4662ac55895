"""Where results go: tables and JSON on standard output, files whole or not at all."""

from __future__ import annotations

import csv
import errno
import io
import json
import math
import os
import shutil
import sys
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import typer

from rankwise.cli.session import is_output_taken, take_output

CHUNK = 2**14
GAP = "  "
LEAST_NAME = 8


def say(text: str, **style: Any) -> None:
    """Print a line of a result: on standard output, unless a file is written there."""
    styled = typer.style(text, **style) if style else text
    typer.echo(styled, err=is_output_taken())


def check_inputs(*paths: Path | None) -> None:
    """Refuse standard input as two files."""
    if [str(path) for path in paths].count("-") > 1:
        raise ValueError("standard input (-) can be one of the files only; name the others.")


def check_output(path: Path | None, *others: Path | None) -> None:
    """Refuse, before any work is done, a path that cannot be written or is needed otherwise.

    Parameters
    ----------
    path : Path or None
        Where to write; None and ``-`` are standard output. If it is ``-``, tables and JSON go to
        standard error from now on.
    *others : Path or None
        Files that are read, or written as something else.
    """
    if path is None:
        return
    if str(path) == "-":
        take_output()
        return
    with suppress(FileNotFoundError):
        path.stat()  # which finds loops of links
    if path.is_dir():
        raise IsADirectoryError(errno.EISDIR, "this is a folder; name a file in it", str(path))
    folder = path.resolve().parent
    if not folder.is_dir():
        raise FileNotFoundError(
            errno.ENOENT, f"the folder {folder} does not exist; create it first", str(path)
        )
    for other in others:
        if other is not None and os.path.realpath(path) == os.path.realpath(other):
            raise ValueError(
                f"{path}: the output would take the place of an input, or of another output; "
                "choose another name."
            )
    if not os.access(path if path.exists() else folder, os.W_OK):
        raise PermissionError(
            errno.EACCES, "no permission to write there; choose another place", str(path)
        )


def write_text(path: Path | None, text: str) -> None:
    """Write to a file, or to standard output if there is none."""
    if path is None or str(path) == "-":
        for start in range(0, len(text), CHUNK):  # a reader that leaves is noticed by the next one
            sys.stdout.write(text[start : start + CHUNK])
        return
    from rankwise.datasets.files import replace_file

    with replace_file(path) as stream:
        stream.write(text.encode())


def write_csv(path: Path, header: Sequence[str], rows: Iterable[Sequence[Any]]) -> None:
    """Write a table; missing numbers become empty cells."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(header)
    writer.writerows(["" if plain(cell) is None else plain(cell) for cell in row] for row in rows)
    write_text(path, text.getvalue())


def plain(value: Any) -> Any:
    """The value in types of JSON, which has no NaN and no arrays."""
    if isinstance(value, Mapping):
        return {str(key): plain(item) for key, item in value.items()}
    if hasattr(value, "tolist"):  # arrays and numbers of NumPy
        value = value.tolist()
    if isinstance(value, (list, tuple)):
        return [plain(item) for item in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return str(value) if isinstance(value, Path) else value


def shown(value: float, style: str = ".4f") -> str:
    """The number as text, a dash if there is none."""
    return "–" if math.isnan(value) else format(value, style)


def print_json(document: Any) -> None:
    """One JSON document on standard output."""
    say(json.dumps(plain(document), indent=2, allow_nan=False, ensure_ascii=False))


def print_pairs(rows: Iterable[tuple[str, str]]) -> None:
    """Names and what they are, aligned."""
    shown = [(name, value) for name, value in rows if value]
    width = max((len(name) for name, _ in shown), default=0) + 2
    for name, value in shown:
        say(_printable(f"{name:<{width}}{value}"))


def _printable(text: str) -> str:
    """Without what could steer a terminal: names may come from anybody's file."""
    return "".join(c if c.isprintable() else repr(c)[1:-1] for c in text)


def print_table(
    header: Sequence[str], rows: Iterable[Sequence[str]], *, n_left: int = 1, best: int = -1
) -> None:
    """A table on standard output; on a narrow terminal names are cut, numbers never.

    Parameters
    ----------
    header : sequence of str
        Names of the columns.
    rows : iterable of sequences of str
        Cells.
    n_left : int
        Number of columns aligned to the left; the others are numbers.
    best : int
        Row to stress, if any.
    """
    from rich.cells import cell_len

    table = [list(header), *map(list, rows)]
    widths = [max(map(cell_len, column)) for column in zip(*table, strict=True)]
    if sys.stdout.isatty():  # a file has no width
        _shrink_names(widths, n_left, shutil.get_terminal_size().columns)
    for k, cells in enumerate(table):
        fitted = [_fitted(cell, widths[at], at < n_left) for at, cell in enumerate(cells)]
        line = GAP.join(fitted).rstrip()
        say(_printable(line), **({"bold": True} if k in (0, best + 1) else {}))
        if k == 0:
            say(_rule() * (sum(widths) + len(GAP) * (len(widths) - 1)))


def _shrink_names(widths: list[int], n_left: int, limit: int) -> None:
    """Make the widest columns of names narrower until the table fits, if that is enough."""
    while n_left and sum(widths) + len(GAP) * (len(widths) - 1) > limit:
        widest = max(range(n_left), key=widths.__getitem__)
        if widths[widest] <= LEAST_NAME:
            return
        widths[widest] -= 1


def _fitted(cell: str, width: int, is_name: bool) -> str:
    from rich.cells import cell_len, set_cell_size

    if cell_len(cell) > width:
        return set_cell_size(cell, width - 1) + "…"
    blanks = " " * (width - cell_len(cell))
    return cell + blanks if is_name else blanks + cell


def _rule() -> str:
    """A line, where the terminal can draw one."""
    try:
        "─".encode(sys.stdout.encoding or "ascii")
    except UnicodeEncodeError:
        return "-"
    return "─"
