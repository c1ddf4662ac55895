"""Progress lines on the terminal."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator, Sequence

from rankwise.runtime.threads import T


class Progress:
    """A progress line on standard error; `close` ends it.

    Parameters
    ----------
    title : str
        Name of the work, at the beginning of the line.
    total : int, default=None
        Number of steps. The line is a bar if it is known, and counts iterations if it is None.
    show : bool, default=None
        Whether to draw the line; None: if standard error is a terminal, after one second.
    in_place : bool, default=True
        Whether the line replaces the previous one.
    """

    WIDTH = 30
    DELAY = 1.0  # seconds before the first line; short work has none
    PAUSE = 0.1  # seconds between two lines

    def __init__(
        self, title: str, total: int | None = None, show: bool | None = None, in_place: bool = True
    ) -> None:
        self._title = title
        self._total = total
        self._in_place = in_place
        if show is None:  # on a terminal only, and not for short work
            self.is_shown = sys.stderr.isatty()
            self._pause = self.PAUSE
            self._next_draw_time = time.monotonic() + self.DELAY
        else:
            self.is_shown = show
            self._pause = 0.0
            self._next_draw_time = time.monotonic()
        self._last_drawn: int | None = None

    def update(self, n_done: int, detail: str = "") -> None:
        """Draw the line for this number of finished steps, unless it was drawn a moment ago."""
        if not self.is_shown or n_done == self._last_drawn:
            return
        if time.monotonic() < self._next_draw_time:
            return
        self._last_drawn = n_done
        self._next_draw_time = time.monotonic() + self._pause
        if self._total is None:
            text = f"iteration {n_done}{detail}"
        else:
            n_filled = self.WIDTH * n_done // self._total
            bar = "█" * n_filled + "·" * (self.WIDTH - n_filled)
            text = f"{bar} {n_done}/{self._total}"
        if self._in_place:
            sys.stderr.write(f"\r{self._title} {text}")
        else:
            sys.stderr.write(f"{self._title} {text}\n")
        sys.stderr.flush()

    def iteration(self, n_iter: int, residual: float) -> None:
        """Draw the line after an iteration of a solver."""
        self.update(n_iter, f", residual {residual:.1e}   ")

    def close(self) -> None:
        """Complete the bar, if there is one, and end the line."""
        # A line that is shown is completed at once; otherwise the usual delay applies
        if self._last_drawn is not None:
            self._next_draw_time = 0.0
        if self._total is not None:
            self.update(self._total)
        if self._last_drawn is not None and self._in_place:
            sys.stderr.write("\n")


def track(steps: Sequence[T], title: str, show: bool | None = None) -> Iterator[T]:
    """Yield the steps and draw a bar of the finished steps; see `Progress`."""
    if not steps:
        return
    line = Progress(title, len(steps), show)
    for n_done, step in enumerate(steps):
        line.update(n_done)
        yield step
    line.close()
