"""Likelihoods of outcomes and Newton's method, shared by the rating models."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from rankwise.arrays import Array
from rankwise.errors import warn_user
from rankwise.leaderboard.algebra.rating_system import TINY, RatingSystem

TOLERANCE = 1e-14  # of the gap, relative to the objective

MAX_ITERATIONS = 200

LEAST_STEP = 1e-10

SHORT = 1e-5  # length of a last step, relative to the unknowns

ROUGH, EXACT = 0.03, 1e-7  # tolerance of conjugate gradients, far from the minimum and at it

GAP = 1e-13  # of rankings, relative to the objective


class Derivatives(NamedTuple):
    """Minus the log likelihood of each verdict, and its derivatives in m and in θ.

    Attributes
    ----------
    value, m, mm : ndarray
        The loss, its slope and its curvature in the margin.
    t, mt, tt : ndarray
        Derivatives that have the parameter θ of the ties; 0 if there is none.
    """

    value: Array
    m: Array
    mm: Array
    t: Array
    mt: Array
    tt: Array


class OutcomeLikelihood:
    """Win, tie and loss are as ``e^(m/2) : ν : e^(−m/2)`` with ν = e^θ (Davidson 1970).

    Without the parameter ν is 0, P(win) = σ(m), and a tie is half a win and half a loss (Bradley
    and Terry 1952).

    Parameters
    ----------
    has_parameter : bool
        Whether ties have a probability of their own.
    """

    def __init__(self, has_parameter: bool) -> None:
        self.has_parameter = has_parameter

    def at(self, margin: Array, said: Array, theta: Array | float) -> Derivatives:
        """Convex in m and θ: the log of a sum of exponentials less a linear function."""
        (win, tie, loss), top = self._shares(margin, theta)
        others = np.where(tie == 1, win + loss, tie + np.minimum(win, loss))  # the largest is 1
        of_tie, total = theta if self.has_parameter else 0.0, 1 + others
        value = (top - np.where(said == 0, of_tie, 0.5 * said * margin)) + np.log1p(others)
        win, tie, loss = win / total, tie / total, loss / total
        slope = np.where(said > 0, -(loss + 0.5 * tie), 0.5 * (win - loss))
        slope = np.where(said < 0, win + 0.5 * tie, slope)
        bend = 0.25 * (win * (loss + tie) + loss * (win + tie) + 2 * win * loss)
        along = np.where(said == 0, -(win + loss), tie) * self.has_parameter
        return Derivatives(value, slope, bend, along, -0.5 * tie * (win - loss), tie * (win + loss))

    def probabilities(self, margin: Array, theta: Array | float) -> Array:
        """Of win, tie and loss; a tie is likeliest between equals."""
        shares = np.stack(self._shares(margin, theta)[0], axis=-1)
        return np.asarray(shares / shares.sum(axis=-1, keepdims=True))

    def _shares(self, margin: Array, theta: Array | float) -> tuple[tuple[Array, ...], Array]:
        theta = theta if self.has_parameter else -np.inf
        top = np.maximum(0.5 * np.abs(margin), theta)
        return tuple(np.exp(power - top) for power in (0.5 * margin, theta, -0.5 * margin)), top


class Point(NamedTuple):
    """The objective J at some unknowns, W times its slope, and derivatives by outcome.

    Where `newton` ends, (J − min J)/J is at most the gap, after n_iter steps.
    """

    unknowns: Array
    value: float
    slope: Array
    derivatives: Any = None
    gap: float = np.inf
    n_iter: int = 0


class PairLikelihood:
    """``J(u, θ) = 1/W Σ ω ℓ(m, θ) + ½ [u, θ]ᵀ Λ [u, θ] / W`` with the margins m = D u.

    Λ is 2αW for ratings, and next to nothing for effects and for θ. The gap is
    ``J − min J ≤ ½ gᵀ Λ⁻¹ g/W``, since J is strongly convex: ‖∇J‖²/(4α) for ratings.

    Parameters
    ----------
    system : RatingSystem
        The comparisons, and features of the items if there are any; α ‖w‖² with r = X w then.
    verdicts : Verdicts
        ℓ, minus the log likelihood.
    alpha : float
        Regularization.
    """

    def __init__(self, system: RatingSystem, verdicts: OutcomeLikelihood, alpha: float) -> None:
        self.system, self.verdicts = system, verdicts
        self.weight = system.tally.count * system.tally.weight
        self.total = float(self.weight.sum())
        self.shift = 2 * alpha * self.total
        self.penalty = np.r_[system.penalty(self.shift), TINY * self.total]

    def start(self) -> Array:
        """Zero, and the θ that the share of ties says."""
        start = np.zeros(self.system.size + 1)
        if self.verdicts.has_parameter:  # equals tie in the share ν/(2 + ν)
            tied = min(0.99, float(self.weight @ (self.system.tally.target == 0)) / self.total)
            start[-1] = np.log(2 * tied / (1 - tied))
        return start

    def at(self, unknowns: Array) -> Point:
        """Of u and θ."""
        tally = self.system.tally
        margins = self.system.margins(unknowns[:-1])[tally.pair]
        derivatives = self.verdicts.at(margins, tally.target, unknowns[-1])
        value = float(self.weight @ derivatives.value + 0.5 * self.penalty @ unknowns**2)
        slope = np.append(self.pull_back(derivatives.m), self.weight @ derivatives.t)
        slope += self.penalty * unknowns
        return Point(unknowns, value / self.total, slope, derivatives)

    def pull_back(self, values: Array) -> Array:
        """``Dᵀ (ω v)`` of a value for each outcome."""
        return self.system.right(self.system.tally.by_pair(self.weight * values))

    def step(self, point: Point, tol: float) -> Array:
        """Newton's step; θ by its Schur complement."""
        derivatives, slope = point.derivatives, point.slope
        curvatures = self.system.tally.by_pair(self.weight * derivatives.mm)
        solve = self.system.solver(curvatures, self.shift, tol)
        step: Array = -solve(slope[:-1])
        if not self.verdicts.has_parameter:
            return np.append(step, 0.0)
        cross = self.pull_back(derivatives.mt)
        carried = solve(cross)
        own = float(self.weight @ derivatives.tt) + TINY * self.total - float(cross @ carried)
        change = (-slope[-1] - float(cross @ step)) / max(own, 1e-300)
        return np.asarray(np.append(step - change * carried, change))


def newton(problem: Any, start: Array, tol: float) -> Point:
    """Minimize until the relative gap is at most `tol` and the last step is short.

    After a step of length δ the distance to the minimum is about δ², so the last step bounds the
    error of the unknowns. The gap alone does not: with a tiny alpha J hardly depends on ratings
    that only alpha keeps finite. A warning is issued if the search ends at a much larger gap.

    A problem has `penalty`, `total`, `at` and `step`, as `PairLikelihood` has them.
    """
    first_size, n_iter, is_short = None, 0, True
    point: Point = problem.at(start)
    while True:
        gap = float(0.5 * point.slope**2 @ (1 / problem.penalty) / problem.total) / point.value
        if (gap <= tol and is_short) or n_iter == MAX_ITERATIONS:
            break
        size = float(np.linalg.norm(point.slope))
        first_size = first_size or size
        step = problem.step(point, min(ROUGH, max(EXACT, size / first_size)))
        lower = _search(problem, point, step)
        if lower is None:
            break
        change = np.abs(lower.unknowns - point.unknowns).max()
        is_short = bool(change <= SHORT * (1 + np.abs(lower.unknowns).max()))
        point = lower
        n_iter += 1
    if gap > 1e5 * tol:
        warn_user(
            f"the ratings stopped after {n_iter} steps at a relative gap of {gap:.1e}; "
            "a larger alpha makes them exact.",
            ConvergenceWarning,
        )
    return point._replace(gap=gap, n_iter=n_iter)


def _search(problem: Any, point: Point, step: Array) -> Point | None:
    """The longest of the steps 1, ½, ¼, … that goes down as it should; None if none does."""
    expected = float(point.slope @ step) / problem.total
    t = 1.0
    while expected < 0 and t > LEAST_STEP:
        with np.errstate(over="ignore", invalid="ignore"):
            trial: Point = problem.at(point.unknowns + t * step)
        if trial.value <= point.value + 1e-4 * t * expected + 1e-15 * point.value:
            return trial
        t *= 0.5
    return None
