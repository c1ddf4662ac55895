"""Progress lines on the terminal."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator, Sequence

from rankwise.runtime.threads import T


class Progress:
    """One line on standard error that tells how far a long work is; `close` ends it.

    Parameters
    ----------
    what : str
        What is being done, in front of the line.
    total : int, optional
        How many steps there are. Then the line is a bar, else it counts iterations.
    show : bool, optional
        Whether to draw; by default only if standard error is a terminal, and after a second.
    in_place : bool
        Whether the line is drawn over the last one.
    """

    WIDTH = 30
    DELAY = 1.0  # seconds; short work shows no line
    PAUSE = 0.1  # seconds before the line is drawn again

    def __init__(
        self, what: str, total: int | None = None, show: bool | None = None, in_place: bool = True
    ) -> None:
        self.is_shown = sys.stderr.isatty() if show is None else show
        self._what, self._total, self._in_place = what, total, in_place
        delay, self._pause = (self.DELAY, self.PAUSE) if show is None else (0.0, 0.0)
        self._start = time.monotonic() + delay
        self._drawn: int | None = None

    def update(self, done: int, detail: str = "") -> None:
        """Draw the line anew: so many steps are done."""
        if not self.is_shown or done == self._drawn or time.monotonic() < self._start:
            return
        self._drawn = done
        self._start = time.monotonic() + self._pause
        text = f"iteration {done}{detail}"
        if self._total is not None:
            filled = self.WIDTH * done // self._total
            text = "█" * filled + "·" * (self.WIDTH - filled) + f" {done}/{self._total}"
        line = f"{self._what} {text}"
        sys.stderr.write(f"\r{line}" if self._in_place else f"{line}\n")
        sys.stderr.flush()

    def iteration(self, n_iter: int, residual: float) -> None:
        """Draw the line after an iteration of a solver."""
        self.update(n_iter, f", residual {residual:.1e}   ")

    def close(self) -> None:
        """Fill the bar, if it is one, and end the line."""
        if self._drawn is not None:
            self._start = 0.0
        if self._total is not None:
            self.update(self._total)
        if self._drawn is not None and self._in_place:
            sys.stderr.write("\n")


def track(steps: Sequence[T], what: str, show: bool | None = None) -> Iterator[T]:
    """Yield the steps and draw a bar that tells how many are done; see `Progress`."""
    if not steps:
        return
    line = Progress(what, len(steps), show)
    for done, step in enumerate(steps):
        line.update(done)
        yield step
    line.close()
