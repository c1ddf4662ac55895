"""The time budget of AutoRanker."""

from __future__ import annotations

import threading
from time import perf_counter

import numpy as np

PROBE_ROWS = 400  # of a matrix whose product measures the speed of the machine
PROBE_PRODUCTS = 5
SECONDS_PER_MULTIPLICATION = 1e-10  # on one core of a typical machine


class TimeBudget:
    """Remaining time of a limit, and the speed of the machine; thread-safe.

    Parameters
    ----------
    limit : float or None
        Seconds; None for no limit.
    start : float
        Time of `perf_counter` from which they count.
    """

    def __init__(self, limit: float | None, start: float) -> None:
        self._start = start
        self._end = np.inf
        self._pace = 1.0  # seconds that work takes per expected second
        if limit is not None:
            self._end = start + limit
            self._pace = measure_pace()
        self._reserved: dict[str, float] = {}  # seconds to train each member at the end
        self._lock = threading.Lock()

    @property
    def pace(self) -> float:
        """Seconds that work takes per second of its expected time."""
        with self._lock:
            return self._pace

    def left(self) -> float:
        """Seconds for further members, without those reserved for training."""
        with self._lock:
            reserved = sum(self._reserved.values())
            return float(self._end - perf_counter() - reserved)

    def is_spent(self, share: float) -> bool:
        """Whether this share of the limit is used up."""
        limit = self._end - self._start  # infinite if there is none
        return bool(perf_counter() - self._start > share * limit)

    def affords(self, expected_seconds: float, share: float) -> bool:
        """Whether work of this expected time fits into a share of the time that is left."""
        seconds_left = self.left()
        return seconds_left > 0 and self.pace * expected_seconds <= share * seconds_left

    def reserve(self, name: str, seconds: float) -> None:
        """Reserve time for the training of a member; replaces its earlier reservation."""
        with self._lock:
            self._reserved[name] = seconds

    def release(self) -> None:
        """Release all reservations, when training begins."""
        with self._lock:
            self._reserved.clear()

    def observe(self, seconds: float, expected_seconds: float) -> None:
        """Update the pace by work that took these seconds."""
        with self._lock:  # the pace may rise at once, but at most halve
            self._pace = max(seconds / expected_seconds, self._pace / 2)


def measure_pace() -> float:
    """Time of a matrix product relative to one idle core of a typical machine, at least 1."""
    block = np.ones((PROBE_ROWS, PROBE_ROWS))
    start = perf_counter()
    for _ in range(PROBE_PRODUCTS):
        block @ block
    seconds = perf_counter() - start
    n_multiplications = PROBE_PRODUCTS * PROBE_ROWS**3
    expected_seconds = n_multiplications * SECONDS_PER_MULTIPLICATION
    return max(1.0, seconds / expected_seconds)  # a faster machine counts as a typical one
