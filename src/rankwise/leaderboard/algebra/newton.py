"""Newton's method for the likelihoods of the rating models."""

from __future__ import annotations

from typing import NamedTuple, Protocol

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from rankwise.arrays import Array
from rankwise.errors import warn_user
from rankwise.leaderboard.algebra.comparison_design import TINY_PENALTY, ComparisonDesign
from rankwise.leaderboard.algebra.outcome_likelihood import Derivatives, OutcomeLikelihood

MAX_ITERATIONS = 200
LEAST_STEP = 1e-10
SHORT_STEP = 1e-5  # length of the last step, relative to the unknowns
ROUGH_TOLERANCE = 0.03  # of conjugate gradients far from the minimum
EXACT_TOLERANCE = 1e-7  # of conjugate gradients at the minimum
STEEP_END = 0.3  # slope at the end of a step, relative to its start; e⁻¹ where the loss is e^(−m)


class Point(NamedTuple):
    """The objective J at some unknowns, and W times its gradient.

    In the result of `newton`, (J − min J)/J is at most `relative_gap`, after n_iter steps.
    `derivatives` are those of the outcomes of `PairLikelihood`.
    """

    unknowns: Array
    value: float
    gradient: Array
    relative_gap: float = np.inf
    n_iter: int = 0
    derivatives: Derivatives | None = None


class Problem(Protocol):
    """An objective ``J(u) = L(u)/W + ½ uᵀ Λ u / W`` that `newton` minimizes."""

    penalties: Array
    total_weight: float

    def evaluate(self, unknowns: Array) -> Point:
        """Value and gradient."""

    def newton_step(self, point: Point, tol: float) -> Array:
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
        self.outcome_weight = self.counts.outcome_weight
        self.total_weight = float(self.outcome_weight.sum())
        self.ridge = 2 * alpha * self.total_weight
        # λ of the unknowns of the system, and of θ, the parameter of the ties.
        self.penalties = np.append(system.penalties(self.ridge), TINY_PENALTY * self.total_weight)

    def start(self) -> Array:
        """Zero ratings, and the θ that matches the share of ties."""
        start = np.zeros(self.system.n_unknowns + 1)  # the last one is θ of the ties
        if self.likelihood.has_tie_parameter:  # some outcomes are ties, so their share is not 0
            is_tie = self.counts.target == 0
            tie_share = float(self.outcome_weight @ is_tie) / self.total_weight
            tie_share = min(0.99, tie_share)  # no extreme start if nearly all are ties
            # Equal items tie with the probability ν/(2 + ν), and θ = log ν.
            start[-1] = np.log(2 * tie_share / (1 - tie_share))
        return start

    def evaluate(self, unknowns: Array) -> Point:
        """Value and gradient at [u, θ]."""
        counts = self.counts
        theta = unknowns[-1]  # of the ties; the others are the unknowns of the system
        pair_margins = self.system.margins(unknowns[:-1])
        derivatives = self.likelihood.derivatives(
            pair_margins[counts.pair_of_outcome], counts.target, theta
        )

        # Negative log likelihood plus half the penalty, and its gradient (of the system and of θ).
        weight = self.outcome_weight
        half_penalty = 0.5 * self.penalties @ unknowns**2
        value = float(weight @ derivatives.loss + half_penalty)

        pair_slopes = counts.sum_by_pair(weight * derivatives.slope)
        theta_gradient = weight @ derivatives.theta_slope
        gradient = np.append(self.system.apply_transpose(pair_slopes), theta_gradient)
        gradient += self.penalties * unknowns
        return Point(unknowns, value / self.total_weight, gradient, derivatives=derivatives)

    def newton_step(self, point: Point, tol: float) -> Array:
        """Newton's step; θ is eliminated by its Schur complement."""
        derivatives = point.derivatives
        assert derivatives is not None  # of every point of `evaluate`
        counts = self.counts
        weight = self.outcome_weight
        # Step of the unknowns of the system if θ stays: −H⁻¹ g
        pair_curvatures = counts.sum_by_pair(weight * derivatives.curvature)
        solve = self.system.solver(pair_curvatures, self.ridge, tol)
        step_for_same_theta: Array = -solve(point.gradient[:-1])
        if not self.likelihood.has_tie_parameter:
            return np.append(step_for_same_theta, 0.0)

        # Block elimination of the Hessian [[H, c], [cᵀ, t]] of unknowns and θ, with the mixed
        # derivatives c: the step of θ follows from the Schur complement t − cᵀ H⁻¹ c.
        mixed_by_pair = counts.sum_by_pair(weight * derivatives.mixed_curvature)
        mixed = self.system.apply_transpose(mixed_by_pair)
        solved_mixed = solve(mixed)  # H⁻¹ c
        theta_curvature = (
            float(weight @ derivatives.theta_curvature) + TINY_PENALTY * self.total_weight
        )
        schur_complement = theta_curvature - float(mixed @ solved_mixed)
        # Derivative in θ after the step of the others.
        theta_gradient = point.gradient[-1] + float(mixed @ step_for_same_theta)
        theta_step = -theta_gradient / max(schur_complement, 1e-300)  # 0 or less by rounding only
        return np.asarray(np.append(step_for_same_theta - theta_step * solved_mixed, theta_step))


def newton(problem: Problem, start: Array, tol: float) -> Point:
    """Minimize until the relative gap is at most `tol` and the last step is short.

    After a step of length δ the distance to the minimum is about δ², so the last step bounds the
    error of the unknowns. The gap alone does not: with a tiny alpha J hardly depends on ratings
    that only alpha keeps finite. A warning is issued if the search ends at a much larger gap.
    """
    point = problem.evaluate(start)
    norm_at_start = float(np.linalg.norm(point.gradient))
    if norm_at_start == 0:  # the start is the minimum
        norm_at_start = 1.0
    inverse_penalties = 1 / problem.penalties
    n_iter = 0
    is_last_step_short = True
    while True:
        # The objective J is strongly convex: J − min J is at most ½ gᵀ Λ⁻¹ g / W.
        bound_of_gap = float(0.5 * point.gradient**2 @ inverse_penalties / problem.total_weight)
        relative_gap = bound_of_gap / point.value
        if (relative_gap <= tol and is_last_step_short) or n_iter == MAX_ITERATIONS:
            break

        # Conjugate gradients need to be exact only close to the minimum.
        reduction = float(np.linalg.norm(point.gradient)) / norm_at_start
        step_tolerance = min(ROUGH_TOLERANCE, max(EXACT_TOLERANCE, reduction))
        step = problem.newton_step(point, step_tolerance)
        next_point = _line_search(problem, point, step)
        if next_point is None:  # rounding prevents any further decrease
            break

        largest_change = np.abs(next_point.unknowns - point.unknowns).max()
        largest_unknown = np.abs(next_point.unknowns).max()
        is_last_step_short = bool(largest_change <= SHORT_STEP * (1 + largest_unknown))
        point = next_point
        n_iter += 1
    if relative_gap > 1e5 * tol:  # rounding alone causes smaller ones
        warn_user(
            f"the ratings did not converge in {n_iter} steps (relative gap {relative_gap:.1e}); "
            "increase alpha.",
            ConvergenceWarning,
        )
    return point._replace(relative_gap=relative_gap, n_iter=n_iter)


def _line_search(problem: Problem, point: Point, step: Array) -> Point | None:
    """Return the longest of the steps 1, ½, ¼, … with a sufficient decrease; None if none has.

    A step of 1 that ends where the objective is still steep is doubled.
    """
    slope = float(point.gradient @ step) / problem.total_weight  # of the objective along the step
    if not slope < 0:  # also NaN
        return None
    step_size = 1.0
    while step_size > LEAST_STEP:
        trial = _evaluate_step(problem, point, step, step_size)
        rounding = 1e-15 * point.value
        if trial.value <= point.value + 1e-4 * step_size * slope + rounding:  # Armijo's rule
            if step_size == 1:
                return _lengthen_step(problem, point, step, trial)
            return trial
        step_size *= 0.5
    return None


def _lengthen_step(problem: Problem, point: Point, step: Array, trial: Point) -> Point:
    """Double a step of 1 from `point` to `trial` while the objective is steep at its end."""
    # The loss of a side that only won falls as e^(−m). Newton's step adds only 1 to the margin m;
    # many would be needed where a tiny alpha allows a large rating.
    steep_slope = STEEP_END * (point.gradient @ step)  # negative, as the step descends
    step_size = 1.0
    while trial.gradient @ step < steep_slope:
        step_size *= 2
        longer_trial = _evaluate_step(problem, point, step, step_size)
        if not longer_trial.gradient @ step < 0:  # beyond the minimum along the step, or NaN
            break
        trial = longer_trial
    return trial


def _evaluate_step(problem: Problem, point: Point, step: Array, step_size: float) -> Point:
    with np.errstate(over="ignore", invalid="ignore"):
        return problem.evaluate(point.unknowns + step_size * step)
