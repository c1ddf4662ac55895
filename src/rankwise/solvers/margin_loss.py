"""Minimize ``loss(R w) + α ‖w‖²`` for a margin loss until a certified relative gap is reached."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from enum import StrEnum
from typing import NamedTuple

import numpy as np

from rankwise.arrays import Array
from rankwise.solvers.bundle import Bundle
from rankwise.solvers.descent import (
    METHODS,
    MarginObjective,
    Point,
    Steps,
    make_objective,
    moment_near_margin,
    second_moment,
)

SAMPLE_STEP = 16  # a first solution is found on one sixteenth of the items, if they are many
SAMPLE_ITERATIONS = 102  # enough for a first point
STALLED = 20  # iterations without any change: rounding allows no more


class End(StrEnum):
    """Every way a search can end; none of them raises."""

    CONVERGED = "converged"  # the gap is at most the tolerance
    MAX_ITER = "max_iter"  # the limit of iterations came first
    STALLED = "stalled"  # nothing changes any more: rounding allows no smaller gap
    INTERRUPTED = "interrupted"  # by Ctrl-C
    CONTRADICTED = "contradicted"  # the bound is above the objective by more than rounding


class Iterate(NamedTuple):
    """The state after an iteration.

    Attributes
    ----------
    w : ndarray of shape (n_features,)
        The best weights so far.
    objective : float
        Their objective.
    bound : float
        No weights have an objective below this. It is above `objective` only in a search that
        ends "contradicted".
    """

    w: Array
    objective: float
    bound: float

    @property
    def gap(self) -> float:
        """``(objective − bound)/objective``."""
        return 1.0 - self.bound / self.objective if self.objective > 0 else 0.0


class MarginSolution(NamedTuple):
    """The best point of a search.

    Attributes
    ----------
    best : Iterate
        Weights, objective and bound.
    history : list of tuple
        Objective and bound after each iteration.
    end : End
        Why it stopped.
    bundle : Bundle
        The planes, which stay valid for another α.
    moment : ndarray
        Second moment of the differences of pairs, or its diagonal.
    """

    best: Iterate
    history: list[tuple[float, float]]
    end: End
    bundle: Bundle
    moment: Array


@np.errstate(over="ignore", invalid="ignore", divide="ignore")  # the search goes around them
def minimize_margin(
    objective: MarginObjective,
    method: str,
    *,
    tol: float,
    max_iter: int,
    start: Array | None = None,
    warm: MarginSolution | None = None,
    moment: Array | None = None,
    watch: Callable[[int, Iterate], None] | None = None,
) -> MarginSolution:
    """Iterate until the gap is at most `tol`.

    Parameters
    ----------
    objective : MarginObjective
        What to minimize.
    method : {"lbfgs", "newton-cg", "bmrm"}
        How.
    tol : float
        Relative gap between the objective and its certified lower bound.
    max_iter : int
        Limit of iterations on all items.
    start : ndarray of shape (n_features,), optional
        First weights; zero, or the solution on a sample of the items, if not given.
    warm : MarginSolution, optional
        Of the same loss and features at another α.
    moment : ndarray of shape (n_features, n_features) or (n_features,), optional
        Second moment of the differences of pairs, or its diagonal; computed if not given.
    watch : callable, optional
        Called with the number and the state of each iteration.

    Returns
    -------
    MarginSolution
        Also after Ctrl-C, which ends the search and nothing else.
    """
    zero = np.zeros(objective.R.shape[1])
    if warm is not None:
        start, moment, bundle = warm.best.w, warm.moment, warm.bundle
    else:
        bundle = Bundle(objective.magnitude, objective.n_items)
    if moment is None:
        moment = zero if method == "bmrm" else second_moment(objective)  # BMRM does not use it
    run = _Run(bundle, tol, max_iter, Iterate(zero, np.inf, 0.0), watch)
    try:
        first_moment = moment
        if start is None:
            start, first_moment = _solve_sample(objective, method, tol, moment)
        run.follow(METHODS[method](objective, objective.at(start), bundle, first_moment))
    except KeyboardInterrupt:
        run.end = End.INTERRUPTED
    if not run.history:  # interrupted before the first look at all items
        run.take(objective.at(zero if start is None else start), 0.0)
    if not run.best.w.any():
        run.leave_zero(objective)
    return MarginSolution(run.best, run.history, run.end, bundle, moment)


@dataclass
class _Run:
    """The best point of a search so far, and why the search ended."""

    bundle: Bundle
    tol: float
    max_iter: int
    best: Iterate
    watch: Callable[[int, Iterate], None] | None = None
    history: list[tuple[float, float]] = field(default_factory=list)
    end: End = End.STALLED

    def follow(self, steps: Steps) -> None:
        """Take steps until one of the reasons to stop."""
        unchanged = 0
        for point, bound in steps:
            before = self.best
            self.take(point, bound)
            if self.watch is not None:
                self.watch(len(self.history), self.best)
            unchanged = unchanged + 1 if before[1:] == self.best[1:] else 0
            if self.best.bound > self.best.objective:
                self.end = End.CONTRADICTED
            elif self.best.gap <= self.tol:
                self.end = End.CONVERGED
            elif len(self.history) >= self.max_iter:
                self.end = End.MAX_ITER
            elif unchanged < STALLED:
                continue
            return

    def take(self, point: Point, bound: float) -> None:
        """Keep what is better than before; a bound is cut at the objective only within rounding."""
        w, objective, _ = self.best
        if point.value < objective:
            w, objective = point.w, point.value
        bound = max(bound, self.best.bound)
        if objective < bound <= objective + self.bundle.rounding_of(point):
            bound = objective
        self.best = Iterate(w, objective, bound)
        self.history.append((objective, bound))

    def leave_zero(self, objective: MarginObjective) -> None:
        """Move to the lowest point of the planes if it is as good: zero weights order nothing.

        With a large α zero is within the tolerance, and its neighbors differ from it by rounding.
        """
        point = objective.at(self.bundle.solve(objective.alpha)[1])
        candidate = Iterate(point.w, point.value, min(self.best.bound, point.value))
        if self.end != End.CONTRADICTED and candidate.gap <= max(self.best.gap, self.tol):
            self.best = candidate
            self.history[-1] = candidate[1:]


def _solve_sample(
    objective: MarginObjective, method: str, tol: float, moment: Array
) -> tuple[Array, Array]:
    """Weights from a sample of the items, zero if there are too few, and a better moment."""
    zero = np.zeros(objective.R.shape[1])
    sample = None if method == "bmrm" else objective.loss.sample(SAMPLE_STEP)
    if sample is None:
        return zero, moment
    rows, loss = sample
    small = make_objective(objective.R[rows], loss, objective.alpha)
    bundle = Bundle(small.magnitude, small.n_items)
    run = _Run(bundle, tol, SAMPLE_ITERATIONS, Iterate(zero, np.inf, 0.0))
    run.follow(METHODS[method](small, small.at(zero), bundle, moment))
    w = run.best.w
    if method == "lbfgs":
        moment = moment_near_margin(small, small.scores(w), moment)
    return w, moment
