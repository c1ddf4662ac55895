"""A row of the table: a work of ours, and what it is measured against."""

from __future__ import annotations

import math
import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

from threadpoolctl import threadpool_info

SIZES = ("tiny", "short", "full")  # tiny is for the tests; the bars are for the full size
IDLE = 0.3  # cores that other programs may use while a row is measured
PAUSE = 5.0  # seconds between two looks at a busy machine
STATISTICS = Path("/proc/stat")
Work = Callable[[], Any]
Works = tuple[Work, Work]


class DataMissing(Exception):
    """The data of a row are not there; the message says what to do."""


class Row(NamedTuple):
    """`work` should take at most `bar` times as long as `against`: a limit or another library.

    `prepare` takes the size to the two works. Where the limit is a number, it is `limit`, and the
    second work is None. `scale` is how many times the second work would have to be done. With
    `growth` (by size, how many times as many rows the first work has) the ratio is the slope of log
    time over log rows. `spinners` programs use the processors beside it. A work that takes half a
    minute is done once (`is_long`), and its memory is not measured. A work with a `unit` other than
    "s" returns a number of this unit, such as the memory of a process of its own; others are timed.
    Where nothing was promised, the bar is infinite.
    """

    section: str
    work: str
    against: str
    bar: float
    prepare: Callable[[str], tuple[Work, Work | None]]
    package: str | None = None
    limit: float | None = None
    scale: float = 1.0
    growth: dict[str, float] | None = None
    spinners: int = 0
    is_long: bool = False
    unit: str = "s"


def blas_threads() -> int:
    """Threads that BLAS may use here."""
    return max((library["num_threads"] for library in threadpool_info()), default=1)


def load_per_core() -> float:
    """Processes that want a core, for each core there is, in the last minute."""
    return os.getloadavg()[0] / (os.cpu_count() or 1)


def busy_cores(seconds: float = 1.0) -> float:
    """Cores that all programs use while this one sleeps; NaN on systems other than Linux."""
    if not STATISTICS.exists():
        return math.nan
    before = _busy_ticks()
    time.sleep(seconds)
    return (_busy_ticks() - before) / os.sysconf("SC_CLK_TCK") / seconds


def _busy_ticks() -> int:
    """Ticks of the clock in which cores were busy, since the machine was started."""
    first_line = STATISTICS.read_text(encoding="ascii").partition("\n")[0]
    user, nice, system, _idle, _wait, *interrupts = map(int, first_line.split()[1:])
    return user + nice + system + sum(interrupts[:2])


def wait_until_idle(patience: float) -> float:
    """Wait until other programs use less than `IDLE` cores, at most `patience` seconds.

    Returns the number of cores that they use at the end.
    """
    deadline = time.monotonic() + patience
    busy = busy_cores()
    while busy >= IDLE and time.monotonic() < deadline:
        time.sleep(PAUSE)
        busy = busy_cores()
    return busy
