"""A row of the table: a work of ours, and what it is measured against."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any, NamedTuple

from threadpoolctl import threadpool_info

SIZES = ("tiny", "short", "full")  # tiny is for the tests; the bars are for the full size
Work = Callable[[], Any]
Works = tuple[Work, Work]


class Row(NamedTuple):
    """`work` should take at most `bar` times as long as `against`: a limit or another library.

    `prepare` takes the size to the two works. Where the limit is a number of seconds, it is
    `limit`, and the second work is None. `scale` is how many times the second work would have to
    be done. With `growth` (by size, how many times as many rows the first work has) the ratio is
    the slope of log time over log rows. `spinners` programs use the processors beside it. A work
    that takes half a minute is done once (`is_long`), and its memory is not measured.
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


def blas_threads() -> int:
    """Threads that BLAS may use here."""
    return max((library["num_threads"] for library in threadpool_info()), default=1)


def load_per_core() -> float:
    """Processes that want a core, for each core there is, in the last minute."""
    return os.getloadavg()[0] / (os.cpu_count() or 1)
