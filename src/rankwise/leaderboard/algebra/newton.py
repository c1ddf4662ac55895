"""Newton's method for the likelihoods of the rating models."""

from __future__ import annotations

from typing import NamedTuple, Protocol

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from rankwise.arrays import Array
from rankwise.errors import warn_user
from rankwise.leaderboard.algebra.comparison_design import TINY, ComparisonDesign
from rankwise.leaderboard.algebra.outcome_likelihood import Derivatives, OutcomeLikelihood

MAX_ITERATIONS = 200
LEAST_STEP = 1e-10
SHORT_STEP = 1e-5  # length of the last step, relative to the unknowns
ROUGH_TOLERANCE = 0.03  # of conjugate gradients far from the minimum
EXACT_TOLERANCE = 1e-7  # of conjugate gradients at the minimum


class Point(NamedTuple):
    """The objective J at some unknowns, and W times its gradient.

    In the result of `newton`, (J − min J)/J is at most `gap`, after n_iter steps. `derivatives` are
    those of the outcomes of `PairLikelihood`.
    """

    unknowns: Array
    value: float
    gradient: Array
    gap: float = np.inf
    n_iter: int = 0
    derivatives: Derivatives | None = None


class Problem(Protocol):
    """An objective ``J(u) = L(u)/W + ½ uᵀ Λ u / W`` that `newton` minimizes."""

    penalty: Array
    total: float

    def at(self, unknowns: Array) -> Point:
        """Value and gradient."""

    def step(self, point: Point, tol: float) -> Array:
        """Newton's step, solved to a relative tolerance."""


class PairLikelihood:
    """``J(u, θ) = 1/W Σ ω ℓ(m, θ) + ½ [u, θ]ᵀ Λ [u, θ] / W`` with the margins m = D u.

    Λ is 2αW for ratings, and next to nothing for effects and for θ. J is strongly convex, so the
    gap ``J − min J`` is at most ``½ gᵀ Λ⁻¹ g/W``, which is ‖∇J‖²/(4α) for ratings.

    Parameters
    ----------
    system : ComparisonDesign
        Design matrix and solver.
    likelihood : OutcomeLikelihood
        −ℓ is the log likelihood.
    alpha : float
        Regularization.
    """

    def __init__(
        self, system: ComparisonDesign, likelihood: OutcomeLikelihood, alpha: float
    ) -> None:
        self.system = system
        self.counts = system.counts
        self.likelihood = likelihood
        self.weight = self.counts.outcome_weight
        self.total = float(self.weight.sum())
        self.shift = 2 * alpha * self.total
        self.penalty = np.append(system.penalty(self.shift), TINY * self.total)

    def start(self) -> Array:
        """Zero ratings, and the θ that matches the share of ties."""
        start = np.zeros(self.system.size + 1)
        if self.likelihood.has_parameter:  # equal items tie with the probability ν/(2 + ν)
            tie_share = float(self.weight @ (self.counts.target == 0)) / self.total
            tie_share = min(0.99, tie_share)
            start[-1] = np.log(2 * tie_share / (1 - tie_share))
        return start

    def at(self, unknowns: Array) -> Point:
        """Value and gradient at [u, θ]."""
        derivatives = self._derivatives(unknowns)
        value = float(self.weight @ derivatives.value + 0.5 * self.penalty @ unknowns**2)
        gradient = np.append(self._apply_transpose(derivatives.m), self.weight @ derivatives.t)
        gradient += self.penalty * unknowns
        return Point(unknowns, value / self.total, gradient, derivatives=derivatives)

    def _derivatives(self, unknowns: Array) -> Derivatives:
        margins = self.system.margins(unknowns[:-1])[self.counts.pair]
        return self.likelihood.at(margins, self.counts.target, unknowns[-1])

    def _apply_transpose(self, values: Array) -> Array:
        """``Dᵀ (ω v)`` of a value for each outcome."""
        return self.system.apply_transpose(self.counts.sum_by_pair(self.weight * values))

    def step(self, point: Point, tol: float) -> Array:
        """Newton's step; θ is eliminated by its Schur complement."""
        derivatives = point.derivatives
        if derivatives is None:
            derivatives = self._derivatives(point.unknowns)
        curvatures = self.counts.sum_by_pair(self.weight * derivatives.mm)
        solve = self.system.solver(curvatures, self.shift, tol)
        step: Array = -solve(point.gradient[:-1])
        if not self.likelihood.has_parameter:
            return np.append(step, 0.0)
        mixed = self._apply_transpose(derivatives.mt)
        solved_mixed = solve(mixed)
        theta_curvature = float(self.weight @ derivatives.tt) + TINY * self.total
        complement = theta_curvature - float(mixed @ solved_mixed)
        theta_gradient = point.gradient[-1] + float(mixed @ step)
        theta_step = -theta_gradient / max(complement, 1e-300)
        return np.asarray(np.append(step - theta_step * solved_mixed, theta_step))


def newton(problem: Problem, start: Array, tol: float) -> Point:
    """Minimize until the relative gap is at most `tol` and the last step is short.

    After a step of length δ the distance to the minimum is about δ², so the last step bounds the
    error of the unknowns. The gap alone does not: with a tiny alpha J hardly depends on ratings
    that only alpha keeps finite. A warning is issued if the search ends at a much larger gap.
    """
    point = problem.at(start)
    first_norm = float(np.linalg.norm(point.gradient)) or 1.0
    n_iter = 0
    is_short = True
    while True:
        gap = _relative_gap(problem, point)
        if (gap <= tol and is_short) or n_iter == MAX_ITERATIONS:
            break
        reduction = float(np.linalg.norm(point.gradient)) / first_norm
        step = problem.step(point, min(ROUGH_TOLERANCE, max(EXACT_TOLERANCE, reduction)))
        lower = _line_search(problem, point, step)
        if lower is None:
            break
        change = np.abs(lower.unknowns - point.unknowns).max()
        is_short = bool(change <= SHORT_STEP * (1 + np.abs(lower.unknowns).max()))
        point = lower
        n_iter += 1
    if gap > 1e5 * tol:
        warn_user(
            f"the ratings stopped after {n_iter} steps at a relative gap of {gap:.1e}; "
            "a larger alpha makes them exact.",
            ConvergenceWarning,
        )
    return point._replace(gap=gap, n_iter=n_iter)


def _relative_gap(problem: Problem, point: Point) -> float:
    """Upper bound of (J − min J)/J."""
    bound = float(0.5 * point.gradient**2 @ (1 / problem.penalty) / problem.total)
    return bound / point.value


def _line_search(problem: Problem, point: Point, step: Array) -> Point | None:
    """Return the longest of the steps 1, ½, ¼, … with a sufficient decrease; None if none has."""
    expected = float(point.gradient @ step) / problem.total
    t = 1.0
    while expected < 0 and t > LEAST_STEP:
        with np.errstate(over="ignore", invalid="ignore"):
            trial = problem.at(point.unknowns + t * step)
        if trial.value <= point.value + 1e-4 * t * expected + 1e-15 * point.value:
            return trial
        t *= 0.5
    return None
