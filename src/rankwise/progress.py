"""One line of progress on standard error, and silence when nobody is looking."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from typing import TypeVar

__all__ = ["track"]

T = TypeVar("T")
WIDTH = 30


def track(steps: Sequence[T], what: str, show: bool | None = None) -> Iterator[T]:
    """Yield the steps and draw a bar that tells how many are done.

    Parameters
    ----------
    steps : sequence
        What to go through.
    what : str
        What is being done, in front of the bar.
    show : bool, optional
        Whether to draw; by default only if standard error is a terminal.
    """
    is_shown = sys.stderr.isatty() if show is None else show
    for done, step in enumerate(steps):
        if is_shown:
            _draw(what, done, len(steps))
        yield step
    if is_shown and steps:
        _draw(what, len(steps), len(steps))
        sys.stderr.write("\n")


def _draw(what: str, done: int, total: int) -> None:
    filled = WIDTH * done // total
    bar = "█" * filled + "·" * (WIDTH - filled)
    sys.stderr.write(f"\r{what} {bar} {done}/{total}")
    sys.stderr.flush()
