"""Where results go: tables and JSON on standard output, files whole or not at all."""

from __future__ import annotations

import errno
import json
import math
import os
import shutil
import sys
from collections.abc import Iterable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import typer

from rankwise.cli.session import is_output_taken, take_output
from rankwise.text_tables import Table, csv_text, one_line, plain, text_width

CHUNK = 2**14


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
    write_text(path, csv_text(header, rows))


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
        say(one_line(f"{name:<{width}}{value}"))


def print_table(table: Table, *, best: int = -1) -> None:
    """A table and its notes on standard output; on a narrow terminal names are cut.

    Parameters
    ----------
    table : Table
        What to print; its title is not printed.
    best : int
        Row to stress, if any.
    """
    # a file has no width
    width = shutil.get_terminal_size().columns if sys.stdout.isatty() else None
    lines = table.lines(width)
    for k, line in enumerate(lines):
        say(line, **({"bold": True} if k in (0, best + 1) else {}))
        if k == 0:
            say(_rule() * max(map(text_width, lines)))
    for note in table.notes:
        say(one_line(note))


def _rule() -> str:
    """A line, where the terminal can draw one."""
    try:
        "─".encode(sys.stdout.encoding or "ascii")
    except UnicodeEncodeError:
        return "-"
    return "─"
