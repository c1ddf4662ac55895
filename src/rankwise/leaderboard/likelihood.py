"""Ratings of greatest regularized likelihood, by Newton's method, with a certified gap."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from rankwise.arrays import Array
from rankwise.leaderboard.solving import DENSE_LIMIT, TINY, RatingSystem, SparseSystem
from rankwise.leaderboard.verdicts import Derivatives, Verdicts

TOLERANCE = 1e-14  # of the gap, relative to the objective
MAX_ITERATIONS = 200
LEAST_STEP = 1e-10
ROUGH, EXACT = 0.03, 1e-7  # tolerance of conjugate gradients, far from the minimum and at it


class Fit(NamedTuple):
    """The best unknowns found.

    Attributes
    ----------
    unknowns : ndarray of shape (n_unknowns,)
        Weights of the features, or ratings, followed by the effects of the covariates.
    theta : float
        Parameter of the ties.
    objective : float
        J.
    gap : float
        (J − min J)/J is at most this.
    n_iter : int
        Newton steps.
    """

    unknowns: Array
    theta: float
    objective: float
    gap: float
    n_iter: int

    @property
    def is_done(self) -> bool:
        """Whether the gap is as small as it was to be, but for rounding."""
        return self.gap <= 1e5 * TOLERANCE


class _Point(NamedTuple):
    unknowns: Array
    theta: float
    value: float
    derivatives: Derivatives


class _Problem:
    """``J(u, θ) = 1/W Σ ω ℓ(m) + ½ uᵀ Λ u / W + …`` with the margins m = D u.

    Λ is 2αW for ratings, and next to nothing for effects and for θ.
    """

    def __init__(
        self,
        system: RatingSystem,
        verdicts: Verdicts,
        alpha: float,
        count: NDArray[np.integer] | None,
    ) -> None:
        tally = system.tally
        self.system, self.verdicts = system, verdicts
        self.weight = (tally.count if count is None else count) * tally.weight
        self.total = float(self.weight.sum())
        self.said = np.sign(tally.target)
        self.penalty = system.penalty(2 * alpha * self.total)
        self.shift = 2 * alpha * self.total

    def at(self, unknowns: Array, theta: float) -> _Point:
        tally, p = self.system.tally, self.system.n_ratings
        ratings = unknowns[:p] if self.system.X is None else self.system.X @ unknowns[:p]
        margins = tally.margins(ratings, unknowns[p:])[tally.pair]
        found = self.verdicts.at(margins, self.said, theta)
        value = float(self.weight @ found.value + 0.5 * self.penalty @ unknowns**2)
        value += 0.5 * TINY * self.total * theta**2
        return _Point(unknowns, theta, value / self.total, found)

    def slopes(self, point: _Point) -> tuple[Array, float]:
        """W times the gradient in u and in θ."""
        found = point.derivatives
        items = self.pull_back(found.m) + self.penalty * point.unknowns
        return items, float(self.weight @ found.t) + TINY * self.total * point.theta

    def gap(self, slope: Array, slope_of_theta: float) -> float:
        """``J − min J ≤ ½ gᵀ Λ⁻¹ g/W``, since J is strongly convex: ‖∇J‖²/(4α) for ratings."""
        bound = float(slope**2 @ (1 / self.penalty))
        if self.verdicts.has_parameter:
            bound += slope_of_theta**2 / (TINY * self.total)
        return 0.5 * bound / self.total

    def pull_back(self, values: Array) -> Array:
        """``Dᵀ (ω v)`` of a value for each outcome."""
        flows = self.system.tally.by_pair(self.weight * values)
        return np.asarray(self.system.right(flows[None])[0])

    def step(self, point: _Point, slope: Array, slope_t: float, tol: float) -> tuple[Array, float]:
        """Newton's step; θ by its Schur complement."""
        found = point.derivatives
        solve = self._solver(self.system.tally.by_pair(self.weight * found.mm), tol)
        items = -solve(slope)
        if not self.verdicts.has_parameter:
            return items, 0.0
        cross = self.pull_back(found.mt)
        carried = solve(cross)
        own = float(self.weight @ found.tt) + TINY * self.total - float(cross @ carried)
        change = (-slope_t - float(cross @ items)) / max(own, 1e-300)
        return items - change * carried, change

    def _solver(self, curvatures: Array, tol: float) -> Callable[[Array], Array]:
        system = self.system
        if system.X is None and system.tally.n_items > DENSE_LIMIT:
            sparse = SparseSystem(system, curvatures, self.shift)
            return lambda right: sparse.solve(right, tol)
        matrix = system.grounded(curvatures, self.shift)
        return lambda right: np.asarray(np.linalg.solve(matrix, right))


def maximize_likelihood(
    system: RatingSystem,
    verdicts: Verdicts,
    alpha: float,
    *,
    start: tuple[Array, float] | None = None,
    count: NDArray[np.integer] | None = None,
) -> Fit:
    """Minimize ``1/W Σ ω ℓ(r_i − r_j + zᵀγ, θ) + α ‖r‖²``.

    Parameters
    ----------
    system : RatingSystem
        The comparisons, and features of the items if there are any; α ‖w‖² with r = X w then.
    verdicts : Verdicts
        ℓ, minus the log likelihood.
    alpha : float
        Regularization.
    start : tuple of ndarray and float, optional
        First unknowns and θ; zero, and what the share of ties says, if not given.
    count : ndarray of shape (n_outcomes,), optional
        How often each outcome was there, instead of the counts of the tally.
    """
    problem = _Problem(system, verdicts, alpha, count)
    if start is None:
        tied = float(problem.weight @ (problem.said == 0)) / problem.total
        start = np.zeros(system.size), verdicts.start(min(tied, 0.99))
    point, first, n_iter = problem.at(*start), None, 0
    while True:
        slope, slope_t = problem.slopes(point)
        gap = problem.gap(slope, slope_t) / point.value
        if gap <= TOLERANCE or n_iter == MAX_ITERATIONS:
            break
        size = float(np.linalg.norm(np.r_[slope, slope_t]))
        first = size if first is None else first
        tol = min(ROUGH, max(EXACT, size / first))
        found = _search(problem, point, problem.step(point, slope, slope_t, tol), slope, slope_t)
        if found is None:
            break
        point, n_iter = found, n_iter + 1
    return Fit(point.unknowns, point.theta, point.value, gap, n_iter)


def _search(
    problem: _Problem,
    point: _Point,
    step: tuple[Array, float],
    slope: Array,
    slope_t: float,
) -> _Point | None:
    """The longest of the steps 1, ½, ¼, … that goes down as it should; None if none does."""
    items, theta = step
    expected = (float(slope @ items) + slope_t * theta) / problem.total
    if not expected < 0:
        return None
    t = 1.0
    while t > LEAST_STEP:
        with np.errstate(over="ignore", invalid="ignore"):
            found = problem.at(point.unknowns + t * items, point.theta + t * theta)
        if found.value <= point.value + 1e-4 * t * expected + 1e-15 * point.value:
            return found
        t *= 0.5
    return None
