"""Output of a command: results, notes, warnings and failures; checks of output files."""

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
from typing import Any, NoReturn

import click

from rankwise.cli.argument_names import with_options
from rankwise.formatting import TextTable, one_line, text_width, to_json_values
from rankwise.runtime.interrupts import no_interrupted_fits
from rankwise.runtime.progress import Progress

INTERRUPTED = 130  # exit codes: 128 + number of the signal, as in shells
BROKEN_PIPE = 141
OVERFLOW = (  # replaces NumPy's warnings, such as "overflow encountered in square"
    "some calculations overflowed or are undefined, so results may be wrong: the data "
    "contain very large or very small numbers; correct or rescale them"
)


@dataclass
class Session:
    """State of the running command.

    Attributes
    ----------
    command : str
        Name of the command.
    quiet : bool
        Whether notes, progress and summaries are suppressed.
    debug : bool
        Whether a failure prints its traceback.
    writes_file_to_stdout : bool
        Whether an output file is standard output; tables and JSON go to standard error then.
    notes : set of str
        Notes that were printed.
    """

    command: str = ""
    quiet: bool = False
    debug: bool = False
    writes_file_to_stdout: bool = False
    notes: set[str] = field(default_factory=set)


current = Session()


def note(text: str) -> None:
    """Print a note on standard error, unless it is empty or was printed before."""
    line = one_line(" ".join(text.split()))  # without line breaks and control characters
    was_printed = line in current.notes
    if line and not current.quiet and not was_printed:
        current.notes.add(line)
        click.echo(f"rankwise: note: {line}", err=True)


@contextmanager
def command_session(
    command: str = "", *, quiet: bool = False, debug: bool = False
) -> Iterator[None]:
    """Run the body of a command; a failure becomes one line and an exit code.

    An interrupted training raises KeyboardInterrupt, so no model of it is written.

    Parameters
    ----------
    command : str, default=""
        Name of the command: messages name its options.
    quiet : bool, default=False
        Suppress notes, progress and summaries.
    debug : bool, default=False
        Print the traceback of a failure.
    """
    new_session = Session(command, quiet, debug)
    vars(current).update(vars(new_session))  # replaces the state of an earlier command
    Progress.DELAY = math.inf if quiet else 1.0  # seconds before progress is shown
    with _warnings_as_notes(), no_interrupted_fits():
        try:
            yield
            sys.stdout.flush()
        except (click.exceptions.Exit, click.Abort):
            raise
        except BrokenPipeError:  # the reader of our output, such as `head`, has ended
            _discard_output()
            raise click.exceptions.Exit(BROKEN_PIPE) from None
        except KeyboardInterrupt:
            _exit_interrupted()
        except Exception as error:
            if _follows_interrupt(error):
                _exit_interrupted()
            _print_failure(with_options(_failure_text(error), command))
            if isinstance(error, OSError):  # perhaps of standard output, such as a full disk
                _discard_output()
            raise click.exceptions.Exit(1) from None


@contextmanager
def _warnings_as_notes() -> Iterator[None]:
    """Print warnings as notes, without the source line that Python adds."""

    def print_as_note(message: Warning | str, category: type[Warning], *_: Any) -> None:
        text = str(message)
        is_from_numpy = issubclass(category, RuntimeWarning) and "encountered in" in text
        if is_from_numpy:
            note(OVERFLOW)
        else:
            note(with_options(text, current.command))

    with warnings.catch_warnings():
        warnings.simplefilter("always")
        for category in (DeprecationWarning, PendingDeprecationWarning, ResourceWarning):
            warnings.simplefilter("ignore", category)
        warnings.showwarning = print_as_note  # type: ignore[assignment]
        yield


def _exit_interrupted() -> NoReturn:
    _print_failure("interrupted; no incomplete file was written")
    raise click.exceptions.Exit(INTERRUPTED) from None


def _follows_interrupt(error: Exception) -> bool:
    """Whether Ctrl-C led to an error: compiled modules that are being imported replace it."""
    # Compiled modules raise another error if they are interrupted while they are imported.
    cause: BaseException | None = error
    while cause is not None:
        if isinstance(cause, KeyboardInterrupt):
            return True
        cause = cause.__cause__ or cause.__context__
    return False


def _print_failure(text: str) -> None:
    if current.debug:
        traceback.print_exc()
    click.echo(f"rankwise: {one_line(text)}", err=True)


def _failure_text(error: Exception) -> str:
    """Describe an error in one line."""
    text = " ".join(str(error).split())
    if isinstance(error, MemoryError):
        return f"not enough memory. {text}".strip()
    if isinstance(error, OSError) and error.errno is not None:
        reason = " ".join((error.strerror or "").split())
        if error.filename is None:  # of a stream: all files are opened by name
            return f"standard output: {reason}"
        return f"{error.filename}: {reason}"
    if isinstance(error, (ValueError, OSError, ImportError)):
        return text or type(error).__name__
    return f"internal error, please report it: {type(error).__name__}: {text} (see --debug)"


def _discard_output() -> None:
    """Discard buffered output, so that Python does not fail again when it exits."""
    # Python flushes standard output when it exits, and would fail again: to the null device it
    # cannot fail.
    with suppress(OSError, ValueError):  # standard output may have no file descriptor
        null_device = os.open(os.devnull, os.O_WRONLY)
        os.dup2(null_device, sys.stdout.fileno())
        os.close(null_device)


def echo(text: str, **style: Any) -> None:
    """Print a line of a result on standard output, unless a file is written there."""
    if style:
        text = click.style(text, **style)
    click.echo(text, err=current.writes_file_to_stdout)


def check_files(inputs: Sequence[Path | None], *outputs: Path | None) -> None:
    """Refuse outputs that cannot be written, or would replace an input or another output.

    Commands call it before they do any work. If an output is ``-``, tables and JSON go to standard
    error from now on.

    Parameters
    ----------
    inputs : sequence of (Path or None)
        Files that are read; ``-`` is standard input, None is no file.
    *outputs : Path or None
        Files that are written; ``-`` is standard output, None is no file.
    """
    from rankwise.datasets.files import check_writable

    _refuse_repeated_stream(inputs, "input")
    _refuse_repeated_stream(outputs, "output")
    current.writes_file_to_stdout = Path("-") in outputs
    used_files = {os.path.realpath(path) for path in inputs if path is not None}
    for path in outputs:
        if path is None or str(path) == "-":
            continue
        real_path = check_writable(str(path))
        if real_path in used_files:
            raise ValueError(
                f"{path}: the output would replace an input, or another output; choose another "
                "name."
            )
        used_files.add(real_path)


def _refuse_repeated_stream(paths: Sequence[Path | None], stream: str) -> None:
    if list(paths).count(Path("-")) > 1:
        raise ValueError(f"standard {stream} (-) can be only one of the files; name the others.")


def write_texts(texts: Sequence[tuple[Path, str]]) -> None:
    """Write several files, or none of them if one cannot be written."""
    from rankwise.datasets.files import write_files

    write_files([(path, text.encode()) for path, text in texts])


def write_text(path: Path | None, text: str) -> None:
    """Write to a file, or to standard output if the path is None."""
    if path is None or str(path) == "-":
        for line in text.splitlines(keepends=True):  # a closed pipe fails at the next line
            sys.stdout.write(line)
        return
    from rankwise.datasets.files import replace_file

    with replace_file(path) as stream:
        stream.write(text.encode())


def format_number(value: float, style: str = ".4f") -> str:
    """Format a number; NaN is a dash."""
    if math.isnan(value):
        return "–"
    return format(value, style)


def print_json(document: Any) -> None:
    """Print one JSON document on standard output."""
    echo(json.dumps(to_json_values(document), indent=2, allow_nan=False, ensure_ascii=False))


def print_key_values(rows: Iterable[tuple[str, str]]) -> None:
    """Print names and values in two columns, without empty values."""
    rows_with_value = [(name, value) for name, value in rows if value]
    longest_name = max((len(name) for name, _ in rows_with_value), default=0)
    start_of_values = longest_name + 2
    for name, value in rows_with_value:
        padded_name = name.ljust(start_of_values)
        echo(_wrapped(padded_name + value, indent=start_of_values))


def terminal_width() -> int | None:
    """Width of the terminal in columns, or None if standard output is no terminal."""
    if not sys.stdout.isatty():
        return None
    return shutil.get_terminal_size().columns


def _wrapped(text: str, indent: int = 0) -> str:
    """One line; on a terminal, lines of its width that break between words."""
    line = one_line(text)
    width = terminal_width()
    if width is None or not line:
        return line
    return textwrap.fill(line, width, subsequent_indent=" " * indent, break_long_words=False)


def print_table(table: TextTable, *, bold_row: int | None = None) -> None:
    """Print a table without its title, and its notes; on a narrow terminal names are wrapped.

    Parameters
    ----------
    table : TextTable
        The table.
    bold_row : int, optional
        Number of the row in bold print.
    """
    lines = table.lines(terminal_width())
    header, *rows = lines
    echo(header, bold=True)
    is_unicode = "utf" in (sys.stdout.encoding or "").lower()
    rule_character = "─" if is_unicode else "-"
    echo(rule_character * max(text_width(line) for line in lines))
    for number, row in enumerate(rows):
        if number == bold_row:
            echo(row, bold=True)
        else:
            echo(row)
    for note_below_table in table.notes:
        echo(_wrapped(note_below_table))
