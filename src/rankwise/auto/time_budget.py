"""The time budget of AutoRanker."""

from __future__ import annotations

from time import perf_counter

import numpy as np

PROBE = 400  # rows of a matrix whose product tells how slow the machine is


class TimeBudget:
    """What is left of a time limit, and how slow the machine is.

    Attributes
    ----------
    pace : float
        Seconds that work takes for each second that it was expected to take.
    reserved : dict of float
        Seconds that the training of members will take, one after the other.
    """

    def __init__(self, limit: float | None, start: float) -> None:
        self._end = np.inf if limit is None else start + limit
        self.pace = 1.0 if limit is None else measure_pace()
        self.reserved: dict[str, float] = {}

    def left(self) -> float:
        """Seconds for further members."""
        return self._end - perf_counter() - sum(self.reserved.values())

    def affords(self, expected: float, share: float) -> bool:
        """Whether work that is expected to take so long fits in a share of what is left."""
        left = self.left()
        return left > 0 and self.pace * expected <= share * left


def measure_pace() -> float:
    """How many times as long as on one idle core of a usual machine a product takes now."""
    block = np.ones((PROBE, PROBE))
    begun = perf_counter()
    for _ in range(5):
        block @ block
    return max(1.0, (perf_counter() - begun) / (5 * 1e-10 * PROBE**3))
