"""Where results go: tables and JSON on standard output, files whole or not at all."""

from __future__ import annotations

import csv
import errno
import io
import json
import math
import os
import sys
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import typer

__all__ = [
    "check_output",
    "plain",
    "print_json",
    "print_pairs",
    "print_table",
    "shown",
    "write_csv",
    "write_text",
]

CHUNK = 2**14


def check_output(path: Path | None, *others: Path | None) -> None:
    """Refuse, before any work is done, a path that cannot be written or is needed otherwise.

    Parameters
    ----------
    path : Path or None
        Where to write; None is standard output.
    *others : Path or None
        Files that are read, or written as something else.
    """
    if path is None:
        return
    if path.is_dir():
        raise IsADirectoryError(errno.EISDIR, "this is a folder; name a file in it", str(path))
    folder = path.resolve().parent
    if not folder.is_dir():
        raise FileNotFoundError(
            errno.ENOENT, f"the folder {folder} does not exist; create it first", str(path)
        )
    for other in others:
        if other is not None and path.resolve() == other.resolve():
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
    if path is None:
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
    typer.echo(json.dumps(plain(document), indent=2, allow_nan=False, ensure_ascii=False))


def print_pairs(rows: Iterable[tuple[str, str]], *, err: bool = False) -> None:
    """Names and what they are, aligned."""
    shown = [(name, value) for name, value in rows if value]
    width = max((len(name) for name, _ in shown), default=0) + 2
    for name, value in shown:
        typer.echo(f"{name:<{width}}{value}", err=err)


def print_table(
    header: Sequence[str], rows: Iterable[Sequence[str]], *, n_left: int = 1, best: int = -1
) -> None:
    """A table on standard output.

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
    from rich.box import SIMPLE_HEAD
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table(box=SIMPLE_HEAD, pad_edge=False, show_edge=False, header_style="bold")
    for k, name in enumerate(header):
        justify = "left" if k < n_left else "right"
        table.add_column(Text(name), justify=justify, no_wrap=True)  # type: ignore[arg-type]
    for k, row in enumerate(rows):
        table.add_row(*map(Text, row), style="bold" if k == best else None)
    console = Console(highlight=False)
    if not console.is_terminal:  # a file has no width
        console = Console(highlight=False, width=500)
    with console.capture() as drawn:
        console.print(table)
    for line in drawn.get().splitlines():
        typer.echo(line.rstrip())
