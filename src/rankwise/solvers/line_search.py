"""Searches along a line of a convex objective.

A search returns a place that is lower, or None if it finds none. Then the line does not lead down,
or every trial was higher, which happens by rounding near the minimum.
"""

from __future__ import annotations

import math

from rankwise.solvers.margin_objective import Line, Trial

DECREASE, CURVATURE = 1e-4, 0.9


def weak_wolfe(line: Line, first: float = 1.0, max_trials: int = 30) -> Trial | None:
    """A step that decreases the objective enough and is not too short; None if there is none.

    Doubling and bisection, which also works where the objective has kinks (Lewis and Overton,
    Nonsmooth optimization via quasi-Newton methods, 2013).
    """
    if not _leads_down(line):
        return None
    value, slope = line.start.value, line.slope
    low, high, t = 0.0, math.inf, first
    best: Trial | None = None
    for _ in range(max_trials):
        trial = line.at(t)
        if not trial.value <= value + DECREASE * t * slope:
            high = t
        else:
            best, low = trial, t
            if trial.slope >= CURVATURE * slope:
                break
        t = 2 * low if high == math.inf else 0.5 * (low + high)
    return best


def lowest_on_line(line: Line, first: float = 1.0, max_trials: int = 10) -> Trial | None:
    """The lowest place to a tenth of the first slope, by false position; None if none is lower."""
    if not _leads_down(line):
        return None
    low, high = (0.0, line.slope), (math.inf, math.inf)
    t, best = first, None
    for _ in range(max_trials):
        trial = line.at(t)
        if trial.value < (line.start.value if best is None else best.value):
            best = trial
        if abs(trial.slope) <= 0.1 * abs(line.slope):
            break
        if trial.slope < 0:
            low = (t, trial.slope)
        else:
            high = (t, trial.slope if math.isfinite(trial.slope) else math.inf)
        t = 2 * t if high[0] == math.inf else _between(low, high)
    return best


def _leads_down(line: Line) -> bool:
    """A convex objective is nowhere lower on a line whose slope at the start is not negative."""
    return -math.inf < line.slope < 0


def _between(low: tuple[float, float], high: tuple[float, float]) -> float:
    """Where a straight line from a negative to a positive slope is zero, away from both ends."""
    (a, s), (b, r) = low, high
    return a + (b - a) * min(max(s / (s - r), 0.1), 0.9)
