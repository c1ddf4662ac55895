"""Minimize ``loss(R w) + α ‖w‖²`` for a margin loss until a certified relative gap is reached."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from enum import StrEnum
from typing import NamedTuple

import numpy as np

from rankwise.arrays import Array
from rankwise.solvers.bundle import Bundle
from rankwise.solvers.curvature import (
    curvature_near_margin,
    inverse_curvature,
    second_moment,
    usual_curvature,
)
from rankwise.solvers.cutting_plane import cutting_plane
from rankwise.solvers.margin_objective import BoundedPoint, MarginObjective, Point
from rankwise.solvers.quasi_newton import InverseHessian, quasi_newton
from rankwise.solvers.truncated_newton import truncated_newton

SAMPLE_STEP = 16  # a first solution is found on one sixteenth of the items
SAMPLED_FROM = 20_000  # if there are at least so many
SAMPLE_ITERATIONS = 102  # enough for a first point
STALLED = 20  # iterations without any change: rounding allows no more


class End(StrEnum):
    """Every way a search can end; none of them raises."""

    CONVERGED = "converged"  # the gap is at most the tolerance
    MAX_ITER = "max_iter"  # the limit of iterations came first
    STALLED = "stalled"  # nothing changes any more: rounding allows no smaller gap
    INTERRUPTED = "interrupted"  # by Ctrl-C or by `watch`
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


class Warm(NamedTuple):
    """What one solution leaves to the next one on the same data and loss, at another α."""

    w: Array
    bundle: Bundle
    moment: Array


class MarginSolution(NamedTuple):
    """The best point found.

    Attributes
    ----------
    best : Iterate
        Weights, objective and bound.
    history : list of Iterate
        After each iteration, without the weights.
    end : End
        Why it stopped.
    warm : Warm
        For the next α.
    """

    best: Iterate
    history: list[Iterate]
    end: End
    warm: Warm


@np.errstate(over="ignore", invalid="ignore", divide="ignore")  # the search goes around them
def minimize_margin(
    objective: MarginObjective,
    method: str,
    *,
    tol: float,
    max_iter: int,
    start: Array | None = None,
    warm: Warm | None = None,
    moment: Array | None = None,
    watch: Callable[[Iterate], bool] | None = None,
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
    warm : Warm, optional
        From a solution with the same loss and features at another α; its planes stay valid.
    moment : ndarray of shape (n_features, n_features) or (n_features,), optional
        Second moment of the differences of pairs, or its diagonal; computed if not given.
    watch : callable, optional
        Called after each iteration; True stops.

    Returns
    -------
    MarginSolution
        Also after Ctrl-C, which ends the search and nothing else.
    """
    zero = np.zeros(objective.R.shape[1])
    bundle = Bundle(len(zero), objective.columns) if warm is None else warm.bundle
    if moment is None:
        moment = _first_moment(objective, method) if warm is None else warm.moment
    run = _Run(tol, max_iter, objective.rounding, Iterate(zero, np.inf, 0.0), watch)
    try:
        if start is None:
            start = warm.w if warm is not None else _solve_sample(objective, method, tol, moment)
        run.follow(_steps(method, objective, objective.at(start), bundle, moment))
    except KeyboardInterrupt:
        run.end = End.INTERRUPTED
    if not run.history:  # interrupted before the first look at all items
        run.take(BoundedPoint(objective.at(zero if start is None else start), 0.0))
    if not run.best.w.any():
        _leave_zero(run, objective, bundle)
    return MarginSolution(run.best, run.history, run.end, Warm(run.best.w, bundle, moment))


def _first_moment(objective: MarginObjective, method: str) -> Array:
    """What the solvers estimate the curvature from; BMRM does not use it."""
    return np.ones(objective.R.shape[1]) if method == "bmrm" else second_moment(objective)


@dataclass
class _Run:
    """The best point of a search so far, and why the search ended."""

    tol: float
    max_iter: int
    rounding: Callable[[Point], float]
    best: Iterate
    watch: Callable[[Iterate], bool] | None = None
    history: list[Iterate] = field(default_factory=list)
    end: End = End.STALLED

    def follow(self, steps: Iterator[BoundedPoint]) -> None:
        """Take steps until one of the reasons to stop."""
        unchanged = 0
        for step in steps:
            before = self.best
            self.take(step)
            unchanged = unchanged + 1 if before[1:] == self.best[1:] else 0
            end = self._reason(self.watch is not None and self.watch(self.best))
            if end is not None or unchanged >= STALLED:
                self.end = end or End.STALLED
                return

    def _reason(self, stop: bool) -> End | None:
        if self.best.bound > self.best.objective:
            return End.CONTRADICTED
        if self.best.gap <= self.tol:
            return End.CONVERGED
        if stop:
            return End.INTERRUPTED
        return End.MAX_ITER if len(self.history) >= self.max_iter else None

    def take(self, step: BoundedPoint) -> None:
        """Keep what is better than before; a bound is cut at the objective only within rounding."""
        w, objective, bound = self.best
        if step.point.value < objective:
            w, objective = step.point.w, step.point.value
        bound = max(bound, step.bound)
        if objective < bound <= objective + self.rounding(step.point):
            bound = objective
        self.best = Iterate(w, objective, bound)
        self.history.append(self.best._replace(w=np.zeros(0)))


def _leave_zero(run: _Run, objective: MarginObjective, bundle: Bundle) -> None:
    """Move to the lowest point of the planes if it is as good: zero weights order nothing.

    With a large α zero is within the tolerance, and its neighbors differ from it by rounding.
    """
    point = objective.at(bundle.solve(objective.alpha)[1])
    candidate = Iterate(point.w, point.value, min(run.best.bound, point.value))
    if run.end != End.CONTRADICTED and candidate.gap <= max(run.best.gap, run.tol):
        run.best = candidate
        run.history[-1] = candidate._replace(w=np.zeros(0))


def _steps(
    method: str, objective: MarginObjective, point: Point, bundle: Bundle, moment: Array
) -> Iterator[BoundedPoint]:
    if method == "bmrm":
        return cutting_plane(objective, point, bundle)
    curvature = usual_curvature(moment)
    if method == "newton-cg":
        guess = inverse_curvature(curvature, objective.alpha)
        return truncated_newton(objective, point, bundle, guess)
    if objective.loss.preferences.n_items >= SAMPLED_FROM and point.w.any():
        curvature = curvature_near_margin(objective, point.scores, moment)
    guess = inverse_curvature(curvature, objective.alpha)
    return quasi_newton(objective, point, bundle, InverseHessian(guess))


def _solve_sample(objective: MarginObjective, method: str, tol: float, moment: Array) -> Array:
    """Weights from a part of the items; zero if there are too few."""
    zero = np.zeros(objective.R.shape[1])
    if method == "bmrm" or objective.loss.preferences.n_items < SAMPLED_FROM:
        return zero
    sample = objective.loss.sample(SAMPLE_STEP)
    if sample is None:
        return zero
    rows, loss = sample
    small = MarginObjective(objective.R[rows], loss, objective.alpha)
    run = _Run(tol, SAMPLE_ITERATIONS, small.rounding, Iterate(zero, np.inf, 0.0))
    run.follow(_steps(method, small, small.at(zero), Bundle(len(zero), small.columns), moment))
    return run.best.w
