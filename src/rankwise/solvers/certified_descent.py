"""Minimize ``loss(R w) + α ‖w‖²`` for a pairwise loss until a certified relative gap is reached.

A search has phases: quasi-Newton or Newton steps followed by bundle steps, or cutting planes only.
A phase is a generator that makes one iteration at a time; `minimize_pairwise` stops it. The planes
of all iterations form a bundle, whose lower bound certifies the solution.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from typing import NamedTuple

import numpy as np
from scipy.sparse.linalg import LinearOperator, cg

from rankwise.arrays import Array
from rankwise.losses import LossValue
from rankwise.solvers.bundle import Bundle
from rankwise.solvers.pairwise_objective import (
    Iterate,
    Objective,
    estimate_pair_covariance,
    make_objective,
)

MAX_SCORE_UPDATES = 16  # then scores are computed from the weights again: rounding errors add up
CURVED_SHARE = 0.15  # assumed share of the pairs that contribute to the Hessian
LBFGS_MEMORY = 30  # steps that L-BFGS stores
MIN_COSINE = 1e-12  # of the angle between such a step and the change of the gradient
PATIENCE = 10  # iterations without sufficient progress before bundle steps start
LOOK_AHEAD = 0.1  # a bundle step adds a second plane, this share of the way to the bundle's minimum
MAX_HESSIAN_PRODUCTS = 50  # of conjugate gradients in one Newton step
MAX_TRIALS = 30  # of one line search
SUFFICIENT_DECREASE = 1e-4  # first Wolfe condition
SUFFICIENT_CURVATURE = 0.9  # second Wolfe condition
SAMPLE_STEP = 16  # with many items, a first solution is computed on one of 16
SAMPLE_ITERATIONS = 102  # limit of iterations on that sample
STALLED_ITERATIONS = 20  # iterations without any change after which the search is stalled


def line_search(objective: Objective, start: Iterate, direction: Array) -> Iterate | None:
    """A point on a line that satisfies the weak Wolfe conditions.

    Doubling and bisection, which also works where the objective has kinks (Lewis and Overton,
    Nonsmooth optimization via quasi-Newton methods, 2013). All trials share one product with R;
    each takes one evaluation of the loss.

    Parameters
    ----------
    objective : Objective
        The function.
    start : Iterate
        Start of the line.
    direction : ndarray of shape (n_features,)
        Direction of the line.

    Returns
    -------
    Iterate or None
        None if the direction is not one of descent, or if no trial is low enough, which rounding
        causes near the minimum. The last point that is low enough if the trials run out.
    """
    # doubling and bisection until both Wolfe conditions hold
    alpha = objective.alpha
    slope_at_start = float(start.gradient @ direction)
    if not -math.inf < slope_at_start < 0:
        return None

    # ‖w + step · direction‖² is a polynomial of the step with these coefficients
    w_dot_w = float(start.w @ start.w)
    w_dot_direction = float(start.w @ direction)
    direction_dot_direction = float(direction @ direction)
    score_direction = objective.scores(direction)

    longest_accepted = 0.0
    shortest_rejected = math.inf
    step = 1.0
    accepted_loss: LossValue | None = None
    for _ in range(MAX_TRIALS):
        loss = objective.loss.at(start.scores + step * score_direction)
        squared_norm = w_dot_w + 2 * step * w_dot_direction + step * step * direction_dot_direction
        value = loss.value + alpha * squared_norm
        if value <= start.value + SUFFICIENT_DECREASE * step * slope_at_start:
            longest_accepted = step
            accepted_loss = loss
            slope_of_loss = float(loss.gradient @ score_direction)
            slope = slope_of_loss + 2 * alpha * (w_dot_direction + step * direction_dot_direction)
            if slope >= SUFFICIENT_CURVATURE * slope_at_start:
                break
        else:
            shortest_rejected = step
        if shortest_rejected == math.inf:
            step = 2 * longest_accepted
        else:
            step = 0.5 * (longest_accepted + shortest_rejected)

    if accepted_loss is None:
        return None
    w = start.w + longest_accepted * direction
    if start.n_score_updates >= MAX_SCORE_UPDATES:  # rounding errors of the scores add up
        return objective.at(w)
    scores = start.scores + longest_accepted * score_direction
    return objective.make_iterate(w, scores, accepted_loss, start.n_score_updates + 1)


@dataclass
class Solution:
    """The best point of a search so far, and an upper bound of its distance to the minimum.

    Attributes
    ----------
    w : ndarray of shape (n_features,)
        The best weights.
    bundle : Bundle
        The planes, which stay valid for another α.
    pair_covariance : ndarray
        As `estimate_pair_covariance` returns it.
    objective : float
        Objective at the best weights.
    bound : float
        No weights have an objective below this. It is above `objective` only in a search that
        ends "contradicted".
    history : list of tuple
        Objective and bound after each iteration.
    end : str
        Why the search stopped; no end raises. "converged": the gap is at most the tolerance,
        "max_iter": the limit of iterations came first, "stalled": nothing changes any more,
        rounding permits no smaller gap, "interrupted": by Ctrl-C, "contradicted": the bound is
        above the objective by more than rounding. "running" before the end.
    """

    w: Array
    bundle: Bundle
    pair_covariance: Array
    objective: float = math.inf
    bound: float = 0.0
    history: list[tuple[float, float]] = field(default_factory=list)
    end: str = "running"

    @property
    def gap(self) -> float:
        """``(objective − bound)/objective``."""
        if not self.objective > 0:
            return 0.0
        return 1.0 - self.bound / self.objective

    def record(self, point: Iterate, bound: float) -> None:
        """Record an iteration; keep its point and its bound if they are better.

        A bound above the objective is reduced to it if rounding explains the difference.
        """
        if point.value < self.objective:
            self.w = point.w
            self.objective = point.value
        self.bound = max(self.bound, bound)  # this order keeps the old bound if the new one is NaN
        if self.bound > self.objective:  # possible only by rounding: then both are equal
            rounding_error = self.bundle.rounding_of(point.value, point.loss.plane, point.w)
            if self.bound <= self.objective + rounding_error:
                self.bound = self.objective
        self.history.append((self.objective, self.bound))

    def finished(self, tol: float, max_iter: int) -> bool:
        """Whether the search must stop; sets `end` if so."""
        # set `end` to the reason to stop, if there is one
        recent = self.history[-1 - STALLED_ITERATIONS :]
        is_unchanged = len(recent) > STALLED_ITERATIONS and recent[-1] == recent[0]
        if self.bound > self.objective:  # by more than rounding explains: an error in the loss
            self.end = "contradicted"
        elif self.gap <= tol:
            self.end = "converged"
        elif len(self.history) >= max_iter:
            self.end = "max_iter"
        elif is_unchanged:
            self.end = "stalled"
        return self.end != "running"


class Search:
    """The state that the phases of a search share.

    Parameters
    ----------
    objective : Objective
        The function to minimize.
    point : Iterate
        The first point.
    solution : Solution
        Records the iterations; its bundle receives the planes.

    Attributes
    ----------
    point : Iterate
        The current point.
    bundle_minimizer : ndarray of shape (n_features,)
        Weights that minimize the planes plus the regularizer.
    """

    def __init__(self, objective: Objective, point: Iterate, solution: Solution) -> None:
        self.objective = objective
        self.point = point
        self.solution = solution
        self.bundle_minimizer = point.w

    def update_bound(self, *points: Iterate, solve_fully: bool = False) -> float:
        """Add the planes at these points, compute the bound, and record the current point.

        The master problem is solved as accurately as the objective of the current point requires,
        or fully if `solve_fully`. Returns the bound of this iteration.
        """
        bundle = self.solution.bundle
        for point in points:
            bundle.add(point.loss_gradient, point.loss.plane)
        best_objective = self.point.value
        if solve_fully:
            best_objective = math.inf  # then the master problem is solved fully
        bound, self.bundle_minimizer = bundle.solve(self.objective.alpha, best_objective)
        self.solution.record(self.point, bound)
        return bound


Phase = Callable[[Search], Iterator[None]]


def cutting_planes(search: Search) -> Iterator[None]:
    """Move to the minimizer of the planes so far, plain BMRM: [TreeRSVM11] algorithm 1.

    Converges for every α > 0, but slowly for a small α; used as the reference.
    """
    while True:
        search.update_bound(search.point, solve_fully=True)
        yield  # the caller may stop here
        search.point = search.objective.at(search.bundle_minimizer)


def quasi_newton_steps(search: Search) -> Iterator[None]:
    """Steps of L-BFGS."""
    inverse_hessian = LimitedMemoryInverse(_approximate_inverse_hessian(search))
    return _descent_steps(search, inverse_hessian.descent_direction)


def newton_steps(search: Search) -> Iterator[None]:
    """Steps of a truncated Newton method."""
    preconditioner = _approximate_inverse_hessian(search)

    def descent_direction(point: Iterate) -> Array:
        return newton_direction(search.objective, point, preconditioner)

    return _descent_steps(search, descent_direction)


def _approximate_inverse_hessian(search: Search) -> Callable[[Array], Array]:
    return inverse_curvature(search.solution.pair_covariance, search.objective.alpha)


def _descent_steps(search: Search, descent_direction: Callable[[Iterate], Array]) -> Iterator[None]:
    """Line searches along directions of descent, as long as they make progress.

    Kinks of the loss slow down these steps (few pairs, small α): the phase ends if within
    `PATIENCE` iterations neither the gap was halved nor the bound doubled, or if a line search
    fails.
    """
    gaps: deque[float] = deque(maxlen=PATIENCE + 1)
    bounds: deque[float] = deque(maxlen=PATIENCE + 1)
    while True:
        bound = search.update_bound(search.point)
        yield  # the caller may stop here
        gaps.append(search.point.value - bound)
        bounds.append(bound)
        # in the last PATIENCE steps the gap was not halved, nor the bound doubled
        is_gap_slow = gaps[-1] > 0.5 * gaps[0]
        is_bound_slow = bounds[-1] < 2 * bounds[0]
        if len(gaps) > PATIENCE and is_gap_slow and is_bound_slow:
            return
        direction = descent_direction(search.point)
        next_point = line_search(search.objective, search.point, direction)
        if next_point is None:
            return
        search.point = next_point


def bundle_steps(search: Search) -> Iterator[None]:
    """Line searches towards the minimizer of the bundle.

    Each adds two planes: at its end, and a little further along the line.
    """
    while True:
        target = search.bundle_minimizer
        new_points = []
        next_point = line_search(search.objective, search.point, target - search.point.w)
        if next_point is not None:
            search.point = next_point
            new_points.append(next_point)
        w = search.point.w
        new_points.append(search.objective.at(w + LOOK_AHEAD * (target - w)))
        search.update_bound(*new_points)
        yield  # the caller may stop here


class _Correction(NamedTuple):
    """A step of a search, the change of the gradient along it, and their inner product."""

    step: Array
    gradient_change: Array
    inner_product: float


class LimitedMemoryInverse:
    """The inverse of the Hessian by L-BFGS: the two-loop recursion over steps and gradients.

    Parameters
    ----------
    initial_inverse : callable
        Product of a first approximation with a vector. Its scale is set by the newest step.
    """

    def __init__(self, initial_inverse: Callable[[Array], Array]) -> None:
        self._initial_inverse = initial_inverse
        self._corrections: deque[_Correction] = deque(maxlen=LBFGS_MEMORY)  # the newest is last
        self._previous: Iterate | None = None

    def descent_direction(self, point: Iterate) -> Array:
        """Update the approximation with the step to this point, and return a descent direction."""
        if self._previous is not None:
            self._store_correction(self._previous, point)
        self._previous = point
        return self._times_inverse(-point.gradient)

    def _store_correction(self, previous: Iterate, point: Iterate) -> None:
        """Store a step and the change of the gradient along it, unless they are orthogonal."""
        step = point.w - previous.w
        gradient_change = point.gradient - previous.gradient
        inner_product = float(step @ gradient_change)
        norms = np.linalg.norm(step) * np.linalg.norm(gradient_change)
        if inner_product > MIN_COSINE * norms:
            self._corrections.append(_Correction(step, gradient_change, inner_product))

    def _times_inverse(self, v: Array) -> Array:
        """The approximate inverse times v, which is overwritten: the two-loop recursion."""
        # the two-loop recursion of L-BFGS
        coefficients = []
        for correction in reversed(self._corrections):
            coefficient = float(correction.step @ v) / correction.inner_product
            v -= coefficient * correction.gradient_change
            coefficients.append(coefficient)

        product = self._initial_inverse(v)
        if self._corrections:  # rescale the initial inverse so that it explains the newest step
            newest = self._corrections[-1]
            explained = self._initial_inverse(newest.gradient_change)
            product = product * (newest.inner_product / float(newest.gradient_change @ explained))

        for correction in self._corrections:
            coefficient = coefficients.pop()
            overlap = float(correction.gradient_change @ product) / correction.inner_product
            product += (coefficient - overlap) * correction.step
        return product


def newton_direction(
    objective: Objective, point: Iterate, preconditioner: Callable[[Array], Array]
) -> Array:
    """Direction of descent by conjugate gradients, more accurate the smaller the gradient is.

    The Hessian is ``Rᵀ H R + 2 α I`` with the Hessian H of the loss in the scores.
    """
    n_features = len(point.w)
    gradient = point.gradient

    def hessian_product(v: Array) -> Array:
        in_scores = point.loss.hessian_product(objective.scores(v))
        return objective.derivative_in_weights(in_scores) + 2 * objective.alpha * v

    scaled_gradient_norm = float(np.sqrt(gradient @ preconditioner(gradient)))
    shape = (n_features, n_features)
    direction, _ = cg(
        LinearOperator(shape, matvec=hessian_product, dtype=np.float64),
        -gradient,
        rtol=min(0.1, scaled_gradient_norm),
        maxiter=MAX_HESSIAN_PRODUCTS,
        M=LinearOperator(shape, matvec=preconditioner, dtype=np.float64),
    )
    return np.asarray(direction)


PHASES: dict[str, tuple[Phase, ...]] = {
    "lbfgs": (quasi_newton_steps, bundle_steps),
    "newton-cg": (newton_steps, bundle_steps),
    "bmrm": (cutting_planes,),
}


# A first approximation of the Hessian, so that features may have any scale. The Hessian of a margin
# loss is the mean of (r_i − r_j)(r_i − r_j)ᵀ over the pairs near the margin (hinge) or below it
# (squared hinge). The mean over all pairs has similar directions.


def inverse_curvature(pair_covariance: Array, alpha: float) -> Callable[[Array], Array]:
    """Product of an approximate inverse of the objective's Hessian with a vector.

    This uses NumPy only. The BLAS libraries of NumPy and SciPy have separate threads, which would
    compete for the cores, because products with the features alternate with these.

    Parameters
    ----------
    pair_covariance : ndarray of shape (n_features, n_features) or (n_features,)
        As `estimate_pair_covariance` returns it.
    alpha : float
        Regularization.
    """
    # inverse of the approximate Hessian, loss_curvature + 2 α I
    loss_curvature = CURVED_SHARE * pair_covariance
    is_diagonal = loss_curvature.ndim == 1
    diagonal = loss_curvature if is_diagonal else loss_curvature.diagonal()
    scale = 1 / np.sqrt(diagonal + 2 * alpha)

    def diagonal_product(v: Array) -> Array:
        return np.asarray(scale**2 * v)

    if is_diagonal:
        return diagonal_product

    scaled_hessian = loss_curvature * scale[:, None] * scale
    # exactly 1 with 2 α, and a little more so that rounding leaves it definite
    scaled_hessian[np.diag_indices_from(scaled_hessian)] = 1 + 1e-13 * len(scaled_hessian)
    try:
        inverse_root = np.linalg.inv(np.linalg.cholesky(scaled_hessian)) * scale
    except np.linalg.LinAlgError:  # infinite features, or rounding
        return diagonal_product

    def full_product(v: Array) -> Array:  # the inverse is inverse_rootᵀ inverse_root
        return np.asarray((inverse_root @ v) @ inverse_root)

    return full_product


@np.errstate(over="ignore", invalid="ignore", divide="ignore")  # line searches reject such values
def minimize_pairwise(
    objective: Objective,
    method: str,
    *,
    tol: float,
    max_iter: int,
    initial_weights: Array | None = None,
    solution_at_other_alpha: Solution | None = None,
    pair_covariance: Array | None = None,
    watch: Callable[[Solution], None] | None = None,
    keep_interrupted: bool = False,
) -> Solution:
    """Minimize an objective until the certified relative gap is at most `tol`.

    Parameters
    ----------
    objective : Objective
        The function to minimize.
    method : {"lbfgs", "newton-cg", "bmrm"}
        The phases of the search: quasi-Newton steps or Newton steps, then bundle steps, or cutting
        planes only.
    tol : float
        Relative gap between the objective and its lower bound.
    max_iter : int
        Limit of iterations on all items.
    initial_weights : ndarray of shape (n_features,), optional
        First weights. By default zero, or the solution on a sample if there are many items.
    solution_at_other_alpha : Solution, optional
        Solution of the same loss and features. The search starts from its weights, planes and pair
        covariance.
    pair_covariance : ndarray of shape (n_features, n_features) or (n_features,), optional
        As `estimate_pair_covariance` returns it; computed by default.
    watch : callable, optional
        Called with the Solution after each iteration.
    keep_interrupted : bool, default=False
        Whether Ctrl-C ends the iterations with the best point so far instead of raising
        KeyboardInterrupt.

    Returns
    -------
    Solution
        The best point, its lower bound, and why the search ended.
    """
    uses_sample = method != "bmrm"  # cutting planes need no good first point
    if solution_at_other_alpha is not None:
        initial_weights = solution_at_other_alpha.w
        pair_covariance = solution_at_other_alpha.pair_covariance
        bundle = solution_at_other_alpha.bundle  # its planes do not depend on alpha
    else:
        bundle = Bundle(objective.largest_feature_values, objective.n_items)
    solution = _zero_solution(objective, method, bundle, pair_covariance)

    w = solution.w  # zero
    if initial_weights is not None:
        w = initial_weights
    try:
        if initial_weights is None and uses_sample:
            w = _solve_on_sample(objective, method, tol, solution.pair_covariance)
        search = Search(objective, objective.at(w), solution)
        _run_phases(search, PHASES[method], tol, max_iter, watch)
    except KeyboardInterrupt:
        if not keep_interrupted:
            raise
        solution.end = "interrupted"

    if not solution.history:  # interrupted before the first evaluation on all items
        solution.record(objective.at(w), 0.0)
    if not solution.w.any() and solution.end != "contradicted":
        return _replace_zero(solution, objective, tol)
    return solution


def _zero_solution(
    objective: Objective, method: str, bundle: Bundle, pair_covariance: Array | None
) -> Solution:
    """Zero weights, before the search; computes the pair covariance if the method uses it."""
    zero = np.zeros(objective.R.shape[1])
    if pair_covariance is None and method == "bmrm":  # cutting planes do not use it
        pair_covariance = zero
    elif pair_covariance is None:
        pair_covariance = estimate_pair_covariance(objective)
    return Solution(zero, bundle, pair_covariance)


def _run_phases(
    search: Search,
    phases: tuple[Phase, ...],
    tol: float,
    max_iter: int,
    watch: Callable[[Solution], None] | None,
) -> None:
    """Iterate until the search is finished; the last phase never ends by itself."""
    solution = search.solution
    for phase in phases:
        for _ in phase(search):
            if watch is not None:
                watch(solution)
            if solution.finished(tol, max_iter):
                return


def _solve_on_sample(
    objective: Objective, method: str, tol: float, pair_covariance: Array
) -> Array:
    """Weights for a sample of the items, as a first point; zero if there are few items."""
    zero = np.zeros(objective.R.shape[1])
    sample = objective.loss.sample(SAMPLE_STEP)
    if sample is None:
        return zero
    sampled_rows, sample_loss = sample
    solution = minimize_pairwise(
        make_objective(objective.R[sampled_rows], sample_loss, objective.alpha),
        method,
        tol=tol,
        max_iter=SAMPLE_ITERATIONS,
        initial_weights=zero,
        pair_covariance=pair_covariance,
    )
    return solution.w


def _replace_zero(solution: Solution, objective: Objective, tol: float) -> Solution:
    """Replace zero weights, which do not rank, by nearby weights of about the same objective.

    With a large α zero is within the tolerance. The minimizer of the bundle takes its place if the
    gap stays within the tolerance.
    """
    # the minimizer of the lower bound has about the same objective, and ranks the items
    _, bundle_minimizer = solution.bundle.solve(objective.alpha)
    point = objective.at(bundle_minimizer)
    bound = min(solution.bound, point.value)
    nonzero_solution = replace(solution, w=point.w, objective=point.value, bound=bound)
    if nonzero_solution.gap > max(solution.gap, tol):
        return solution
    nonzero_solution.history[-1] = (nonzero_solution.objective, nonzero_solution.bound)
    return nonzero_solution
