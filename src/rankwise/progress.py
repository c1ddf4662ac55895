"""One line of progress on standard error, if that is a terminal."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator, Sequence
from typing import Self, TypeVar

T = TypeVar("T")
WIDTH = 30
DELAY = 1.0  # seconds; short work shows no line


class Meter:
    """A bar that tells how much is done.

    Parameters
    ----------
    what : str
        What is being done, in front of the bar.
    total : int
        How much there is to do.
    show : bool, optional
        Whether to draw; by default only if standard error is a terminal, and after a second.

    Attributes
    ----------
    is_shown : bool
        Whether anything is drawn.
    """

    def __init__(self, what: str, total: int, show: bool | None = None) -> None:
        self.is_shown = sys.stderr.isatty() if show is None else show
        self._what, self._total = what, total
        self._from = time.monotonic() + (DELAY if show is None else 0.0)
        self._drawn: int | None = None

    def update(self, done: int) -> None:
        """Draw the bar if it has changed."""
        if not self.is_shown or done == self._drawn or time.monotonic() < self._from:
            return
        self._drawn = done
        filled = WIDTH * done // self._total
        bar = "█" * filled + "·" * (WIDTH - filled)
        sys.stderr.write(f"\r{self._what} {bar} {done}/{self._total}")
        sys.stderr.flush()

    def close(self) -> None:
        """Draw the full bar and end the line, if there is one."""
        self.update(self._total)
        if self._drawn is not None:
            sys.stderr.write("\n")


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
    if not steps:
        return
    meter = Meter(what, len(steps), show)
    for done, step in enumerate(steps):
        meter.update(done)
        yield step
    meter.close()


class IterationLine:
    """A line that counts the iterations of a solver, drawn anew after each of them.

    Used in a ``with`` block, which ends the line.

    Parameters
    ----------
    what : str
        What is being done, in front of the count.
    show : bool, optional
        Whether to draw; by default only if standard error is a terminal.
    delay : float
        Seconds before the line appears; short work shows no line.
    """

    def __init__(self, what: str, show: bool | None = None, delay: float = 1.0) -> None:
        self._what = what
        self._is_shown = sys.stderr.isatty() if show is None else show
        self._from = time.monotonic() + delay
        self._is_drawn = False

    def __enter__(self) -> Self:
        return self

    def __call__(self, n_iter: int, residual: float) -> None:
        """Draw the state after an iteration."""
        if self._is_shown and time.monotonic() >= self._from:
            self._is_drawn = True
            sys.stderr.write(f"\r{self._what} iteration {n_iter}, residual {residual:.1e}   ")
            sys.stderr.flush()

    def __exit__(self, *error: object) -> None:
        if self._is_drawn:
            sys.stderr.write("\n")
