"""What a person hears while a command runs: notes, warnings and failures, one line each."""

from __future__ import annotations

import os
import sys
import traceback
import warnings
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, redirect_stderr, suppress
from dataclasses import dataclass, field
from typing import Any, TextIO

import typer

from rankwise.text_tables import one_line

QUIET_HELP = "No notes and no progress; train says nothing at all."
DEBUG_HELP = "Show the traceback of a failure."
INTERRUPTED, BROKEN_PIPE = 130, 141  # 128 + the number of the signal, as shells count


@dataclass
class Session:
    """The command that runs: whether it is quiet, what was said, who has standard output."""

    quiet: bool = False
    debug: bool = False
    is_output_taken: bool = False  # by a file, so that tables and JSON go to standard error
    told: set[str] = field(default_factory=set)


current = Session()


class _NoTerminal:
    """A stream that says that it is no terminal, so that nobody draws bars on it."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def isatty(self) -> bool:
        return False

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


def begin(*, quiet: bool, debug: bool) -> None:
    """Forget what an earlier command of the same process was told."""
    current.quiet, current.debug, current.is_output_taken = quiet, debug, False
    current.told.clear()


def note(text: str) -> None:
    """Say something, if there is something, on standard error; the same thing once."""
    line = one_line(" ".join(text.split()))
    if line and not current.quiet and line not in current.told:
        current.told.add(line)
        typer.echo(f"rankwise: note: {line}", err=True)


@contextmanager
def telling(*, quiet: bool = False, debug: bool = False) -> Iterator[None]:
    """Run the body of a command; what goes wrong becomes one line and an exit code."""
    begin(quiet=quiet or current.quiet, debug=debug or current.debug)
    with ExitStack() as stack:
        if current.quiet:
            stack.enter_context(redirect_stderr(_NoTerminal(sys.stderr)))
        stack.enter_context(_warnings_as_notes())
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
            _fail(_one_line(error))
            if isinstance(error, OSError):
                _discard_output()
            raise typer.Exit(1) from None


@contextmanager
def _warnings_as_notes() -> Iterator[None]:
    """Show warnings without the source line that Python adds."""

    def show(message: Warning | str, *_: Any) -> None:
        note(str(message))

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
