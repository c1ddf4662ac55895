"""Where results go: tables and JSON on standard output, files whole or not at all."""

from __future__ import annotations

import json
import math
import os
import shutil
import sys
import textwrap
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import typer

from rankwise.cli.session import current
from rankwise.text_tables import Table, one_line, plain, text_width


def say(text: str, **style: Any) -> None:
    """Print a line of a result: on standard output, unless a file is written there."""
    styled = typer.style(text, **style) if style else text
    typer.echo(styled, err=current.is_output_taken)


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
        if current.is_output_taken:
            raise ValueError("standard output (-) can be one of the files only; name the others.")
        current.is_output_taken = True
        return
    target = os.path.realpath(path)
    folder = os.path.dirname(target)
    problem = ""
    if os.path.isdir(target):
        problem = "this is a folder; name a file in it"
    elif os.path.islink(target):
        problem = "this is a loop of symbolic links; name another file"
    elif not os.path.isdir(folder):
        problem = f"the folder {folder} does not exist; create it first"
    elif target in (os.path.realpath(other) for other in others if other is not None):
        problem = "the output would replace an input, or another output; choose another name"
    elif not os.access(target if os.path.exists(target) else folder, os.W_OK):
        problem = "no permission to write there; choose another place"
    if problem:
        raise ValueError(f"{path}: {problem}.")


def write_text(path: Path | None, text: str) -> None:
    """Write to a file, or to standard output if there is none."""
    if path is None or str(path) == "-":
        for line in text.splitlines(keepends=True):  # a reader that leaves is noticed by the next
            sys.stdout.write(line)
        return
    from rankwise.datasets.files import replace_file

    with replace_file(path) as stream:
        stream.write(text.encode())


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
        say(_wrapped(f"{name:<{width}}{value}", width))


def _terminal_width() -> int | None:
    """Columns of the terminal; a file has no width."""
    return shutil.get_terminal_size().columns if sys.stdout.isatty() else None


def _wrapped(text: str, indent: int = 0) -> str:
    """A line, or on a terminal as many as it takes without breaking a word."""
    columns, line = _terminal_width(), one_line(text)
    if columns is None:
        return line
    more = " " * indent
    return textwrap.fill(line, columns, subsequent_indent=more, break_long_words=False) or line


def print_table(table: Table, *, best: int = -1) -> None:
    """A table and its notes on standard output; on a narrow terminal names are wrapped.

    Parameters
    ----------
    table : Table
        What to print; its title is not printed.
    best : int
        Row to stress, if any.
    """
    lines = table.lines(_terminal_width())
    for k, line in enumerate(lines):
        say(line, **({"bold": True} if k in (0, best + 1) else {}))
        if k == 0:
            is_unicode = "utf" in (sys.stdout.encoding or "").lower()
            say(("─" if is_unicode else "-") * max(map(text_width, lines)))
    for note in table.notes:
        say(_wrapped(note))
