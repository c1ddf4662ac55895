"""L-BFGS with a bundle: quasi-Newton steps find the point, the planes on the way certify it."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np

from rankwise.arrays import Array
from rankwise.solvers.bundle import Bundle
from rankwise.solvers.line_search import lowest_on_line, weak_wolfe
from rankwise.solvers.margin_objective import BoundedPoint, MarginObjective, Point

MEMORY = 30
PATIENCE = 10  # iterations without real progress before bundle steps take over
FURTHER = 0.1  # how far beyond the lowest point of a line the second plane is taken


class InverseHessian:
    """The limited-memory BFGS approximation, as a product with a vector.

    Parameters
    ----------
    first_guess : callable
        Product of a first approximation with a vector; its scale is set by the newest pair.
    """

    def __init__(self, first_guess: Callable[[Array], Array]) -> None:
        self.first_guess = first_guess
        self._pairs: deque[tuple[Array, Array, float]] = deque(maxlen=MEMORY)
        self._scale = 1.0

    def __len__(self) -> int:
        return len(self._pairs)

    def update(self, step: Array, change: Array) -> None:
        """Learn that `step` changed the gradient by `change`; too small a change is left out."""
        product = float(step @ change)
        if product > 1e-12 * np.linalg.norm(step) * np.linalg.norm(change):
            self._pairs.append((step, change, product))
            self._scale = product / float(change @ self.first_guess(change))

    def times(self, gradient: Array) -> Array:
        """The two-loop recursion."""
        q = gradient.copy()
        shares = []
        for step, change, product in reversed(self._pairs):
            share = float(step @ q) / product
            q -= share * change
            shares.append(share)
        q = self.first_guess(q) * self._scale
        for (step, change, product), share in zip(self._pairs, reversed(shares), strict=True):
            q += (share - float(change @ q) / product) * step
        return q


def quasi_newton(
    objective: MarginObjective, start: Point, bundle: Bundle, memory: InverseHessian
) -> Iterator[BoundedPoint]:
    """Yield ever lower points, and ever higher bounds, until no step leads further down.

    Where kinks slow the quasi-Newton steps (few pairs, small α) steps towards the lowest point of
    the bundle take over.
    """
    point = start
    recent: deque[_Progress] = deque(maxlen=PATIENCE + 1)
    bundle.touch(point)
    while True:
        bound, _ = bundle.solve(objective.alpha, point.value)
        yield BoundedPoint(point, bound)
        recent.append(_Progress(point.value - bound, bound))
        if len(recent) > PATIENCE and _is_slow(recent[0], recent[-1]):
            break
        direction = -memory.times(point.gradient)
        line = objective.line(point, direction)
        trial = weak_wolfe(line)
        if trial is None:
            break
        new = line.point(trial)
        memory.update(new.w - point.w, new.gradient - point.gradient)
        point = new
        bundle.touch(point)
    yield from bundle_steps(objective, point, bundle)


class _Progress(NamedTuple):
    gap: float
    bound: float


def _is_slow(before: _Progress, now: _Progress) -> bool:
    """Whether neither the gap was halved nor the bound (while it is low) doubled."""
    return now.gap > 0.5 * before.gap and now.bound < 2 * before.bound


def bundle_steps(
    objective: MarginObjective, point: Point, bundle: Bundle
) -> Iterator[BoundedPoint]:
    """Search the line to the lowest point of the bundle; two new planes, near the best point."""
    while True:
        bound, lowest = bundle.solve(objective.alpha, point.value)
        yield BoundedPoint(point, bound)
        line = objective.line(point, lowest - point.w)
        trial = lowest_on_line(line)
        t = 0.0
        if trial is not None:
            point, t = line.point(trial), trial.t
            bundle.touch(point)
        further = line.point(line.at(t + FURTHER * (1 - t) if t < 1 else t * (1 + FURTHER)))
        bundle.touch(further)
