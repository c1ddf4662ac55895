"""What a command prints: results, notes, warnings and failures; and where it may write."""

from __future__ import annotations

import json
import math
import os
import shutil
import sys
import textwrap
import traceback
import warnings
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import typer

from rankwise.cli.argument_names import with_options
from rankwise.formatting import TextTable, one_line, text_width, without_markup
from rankwise.runtime.interrupts import no_interrupted_fits
from rankwise.runtime.progress import Progress

INTERRUPTED, BROKEN_PIPE = 130, 141  # 128 + the number of the signal, as shells count
OVERFLOW = (  # in place of NumPy's warnings, such as "overflow encountered in square"
    "some calculations overflowed or have no result, so that results may be wrong: the data "
    "contain very large or very small numbers; correct or rescale them"
)


@dataclass
class Session:
    """The command that runs: whether it is quiet, what was said, who has standard output."""

    quiet: bool = False
    debug: bool = False
    is_output_taken: bool = False  # by a file, so that tables and JSON go to standard error
    told: set[str] = field(default_factory=set)


current = Session()


def note(text: str) -> None:
    """Say something, if there is something, on standard error; the same thing once."""
    line = one_line(" ".join(text.split()))
    if line and not current.quiet and line not in current.told:
        current.told.add(line)
        typer.echo(f"rankwise: note: {line}", err=True)


@contextmanager
def command_session(*, quiet: bool = False, debug: bool = False) -> Iterator[None]:
    """Run the body of a command; what goes wrong becomes one line and an exit code.

    A training that was interrupted raises KeyboardInterrupt: no file gets a model cut short.
    """
    vars(current).update(vars(Session(quiet, debug)))  # forgets an earlier one of this process
    Progress.DELAY = math.inf if quiet else 1.0
    with _warnings_as_notes(), no_interrupted_fits():
        try:
            yield
            sys.stdout.flush()
        except (typer.Exit, typer.Abort):
            raise
        except BrokenPipeError:  # the reader of our output, such as `head`, has had enough
            _discard_output()
            raise typer.Exit(BROKEN_PIPE) from None
        except KeyboardInterrupt:
            _fail("interrupted; no file is half-written")
            raise typer.Exit(INTERRUPTED) from None
        except Exception as error:
            _fail(with_options(_one_line(error)))
            if isinstance(error, OSError):
                _discard_output()
            raise typer.Exit(1) from None


@contextmanager
def _warnings_as_notes() -> Iterator[None]:
    """Show warnings without the source line that Python adds."""

    def show(message: Warning | str, category: type[Warning], *_: Any) -> None:
        is_arithmetic = issubclass(category, RuntimeWarning) and "encountered in" in str(message)
        note(OVERFLOW if is_arithmetic else with_options(str(message)))

    with warnings.catch_warnings():
        warnings.simplefilter("always")
        for category in (DeprecationWarning, PendingDeprecationWarning, ResourceWarning):
            warnings.simplefilter("ignore", category)
        warnings.showwarning = show  # type: ignore[assignment]
        yield


def _fail(text: str) -> None:
    if current.debug:
        traceback.print_exc()
    typer.echo(f"rankwise: {one_line(text)}", err=True)


def _one_line(error: Exception) -> str:
    text = " ".join(str(error).split())
    if isinstance(error, MemoryError):
        return f"not enough memory. {text}".strip()
    if isinstance(error, OSError) and error.errno is not None:
        where = "standard output" if error.filename is None else error.filename
        return f"{where}: {' '.join((error.strerror or '').split())}"
    if isinstance(error, (ValueError, OSError, ImportError)):
        return text or type(error).__name__
    return f"this should not happen, please report it: {type(error).__name__}: {text} (see --debug)"


def _discard_output() -> None:
    """Let what is still in the buffer go nowhere, or Python would complain again at its end."""
    with suppress(OSError, ValueError):
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, sys.stdout.fileno())
        os.close(nowhere)


def echo(text: str, **style: Any) -> None:
    """Print a line of a result: on standard output, unless a file is written there."""
    styled = typer.style(text, **style) if style else text
    typer.echo(styled, err=current.is_output_taken)


def check_files(inputs: Sequence[Path | None], *outputs: Path | None) -> None:
    """Refuse, before any work is done, files that cannot be written or are needed otherwise.

    An output that is None or ``-`` is standard output. If it is ``-``, tables and JSON go to
    standard error from now on.
    """
    for paths, stream in ((inputs, "input"), (outputs, "output")):
        if [str(path) for path in paths].count("-") > 1:
            raise ValueError(f"standard {stream} (-) can be one of the files only; name the others")
    current.is_output_taken = "-" in map(str, outputs)
    from rankwise.datasets.files import check_writable

    taken = {os.path.realpath(path) for path in inputs if path is not None}
    for path in outputs:
        if path is not None and str(path) != "-":
            target = check_writable(str(path))
            if target in taken:
                problem = "the output would replace an input, or another output"
                raise ValueError(f"{path}: {problem}; choose another name.")
            taken.add(target)


def write_texts(texts: Sequence[tuple[Path, str]]) -> None:
    """Write several files, or none of them if one cannot be written."""
    from rankwise.datasets.files import write_files

    write_files([(path, text.encode()) for path, text in texts])


def write_text(path: Path | None, text: str) -> None:
    """Write to a file, or to standard output if there is none."""
    if path is None or str(path) == "-":
        for line in text.splitlines(keepends=True):  # a reader that leaves is noticed by the next
            sys.stdout.write(line)
        return
    from rankwise.datasets.files import replace_file

    with replace_file(path) as stream:
        stream.write(text.encode())


def format_number(value: float, style: str = ".4f") -> str:
    """The number as text, a dash if there is none."""
    return "–" if math.isnan(value) else format(value, style)


def print_json(document: Any) -> None:
    """One JSON document on standard output."""
    echo(json.dumps(without_markup(document), indent=2, allow_nan=False, ensure_ascii=False))


def print_key_values(rows: Iterable[tuple[str, str]]) -> None:
    """Names and what they are, aligned."""
    shown = [(name, value) for name, value in rows if value]
    width = max((len(name) for name, _ in shown), default=0) + 2
    for name, value in shown:
        echo(_wrapped(f"{name:<{width}}{value}", width))


def terminal_width() -> int | None:
    """Columns of the terminal; a file has no width."""
    return shutil.get_terminal_size().columns if sys.stdout.isatty() else None


def _wrapped(text: str, indent: int = 0) -> str:
    """A line, or on a terminal as many as it takes without breaking a word."""
    columns, line = terminal_width(), one_line(text)
    if columns is None:
        return line
    more = " " * indent
    return textwrap.fill(line, columns, subsequent_indent=more, break_long_words=False) or line


def print_table(table: TextTable, *, best: int = -1) -> None:
    """A table and its notes on standard output; on a narrow terminal names are wrapped.

    Parameters
    ----------
    table : Table
        What to print; its title is not printed.
    best : int
        Row to stress, if any.
    """
    lines = table.lines(terminal_width())
    for k, line in enumerate(lines):
        echo(line, **({"bold": True} if k in (0, best + 1) else {}))
        if k == 0:
            is_unicode = "utf" in (sys.stdout.encoding or "").lower()
            echo(("─" if is_unicode else "-") * max(map(text_width, lines)))
    for note in table.notes:
        echo(_wrapped(note))
