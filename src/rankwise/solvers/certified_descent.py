"""Minimize ``loss(R w) + α ‖w‖²`` for a pairwise loss until a certified relative gap is reached.

A pairwise loss depends on differences of scores only. A constant added to a column changes none of
them, but it costs digits: columns far from zero are shifted, and constant columns are left out.

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
import scipy.sparse as sp
from scipy.sparse.linalg import LinearOperator, cg

from rankwise.arrays import Array, Matrix
from rankwise.losses import LossValue, PairwiseLoss
from rankwise.solvers.bundle import Bundle

SHIFT_RATIO = 1e3  # columns further from zero than this many times half their range are shifted
MAX_SCORE_UPDATES = 16  # then scores are computed from the weights again: rounding errors add up
MAX_COVARIANCE_FEATURES = 500  # with more features only the diagonal of the covariance is used
MAX_COVARIANCE_ITEMS = 20_000  # the covariance of the pairs is estimated from this many items
CURVED_SHARE = 0.15  # assumed share of the pairs that contribute to the Hessian
MIN_VARIANCE_SHARE = 0.1  # lower bound of a sampled variance, as a share of that of all items
LBFGS_MEMORY = 30  # steps that L-BFGS stores
MIN_COSINE = 1e-12  # of the angle between such a step and the change of the gradient
PATIENCE = 10  # iterations without sufficient progress before bundle steps take over
LOOK_AHEAD = 0.1  # a bundle step adds a second plane, this share of the way to the bundle's minimum
MAX_HESSIAN_PRODUCTS = 50  # of conjugate gradients in one Newton step
MAX_TRIALS = 30  # of one line search
SUFFICIENT_DECREASE = 1e-4  # first Wolfe condition
SUFFICIENT_CURVATURE = 0.9  # second Wolfe condition
SAMPLE_STEP = 16  # with many items, a first solution is computed on one of 16
SAMPLE_ITERATIONS = 102  # limit of iterations on that sample
STALLED_ITERATIONS = 20  # iterations without any change after which rounding permits no progress


class Iterate(NamedTuple):
    """The objective at one w.

    Attributes
    ----------
    w : ndarray of shape (n_features,)
        Weights.
    scores : ndarray of shape (n_items,)
        R w, up to a constant.
    loss : LossValue
        The loss at these scores.
    value : float
        The objective, loss + α ‖w‖².
    slope : ndarray of shape (n_features,)
        Subgradient of the loss with respect to w.
    gradient : ndarray of shape (n_features,)
        Subgradient of the objective, slope + 2 α w.
    n_updates : int
        Number of line-search steps added to the scores since they were computed as R w.
    """

    w: Array
    scores: Array
    loss: LossValue
    value: float
    slope: Array
    gradient: Array
    n_updates: int = 0


@dataclass(frozen=True)
class Objective:
    """``J(w) = loss(R w) + α ‖w‖²``, in float64.

    Attributes
    ----------
    R : array or sparse matrix of shape (n_items, n_features)
        Features of the items, in float64 and near zero, as `make_objective` prepares them.
    loss : PairwiseLoss
        A function of the scores R w that does not change if a constant is added to all scores.
    alpha : float
        Regularization.
    magnitude : ndarray of shape (n_features,)
        Largest absolute value of each column; 0 for constant columns.
    n_items : int
        Number of terms of a sum over items.
    """

    R: Matrix
    loss: PairwiseLoss
    alpha: float
    magnitude: Array
    n_items: int

    def scores(self, w: Array) -> Array:
        """``R w``, up to a constant."""
        return np.asarray(self.R @ np.where(self.magnitude > 0, w, 0.0))

    def pull_back(self, u: Array) -> Array:
        """``Rᵀ u`` for a u that sums to zero: derivatives in scores to derivatives in weights."""
        return np.where(self.magnitude > 0, self.R.T @ u, 0.0)

    def at(self, w: Array) -> Iterate:
        """Two products with R and one evaluation of the loss."""
        scores = self.scores(w)
        return self.with_loss(w, scores, self.loss.at(scores))

    def with_loss(self, w: Array, scores: Array, loss: LossValue, n_updates: int = 0) -> Iterate:
        """The objective at weights with this score and loss: one product with Rᵀ."""
        slope = self.pull_back(loss.gradient)
        value = loss.value + self.alpha * float(w @ w)
        gradient = slope + 2 * self.alpha * w
        return Iterate(w, scores, loss, value, slope, gradient, n_updates)


def make_objective(R: Matrix, loss: PairwiseLoss, alpha: float) -> Objective:
    """The objective for features of any type; copies features that must be shifted or converted.

    Parameters
    ----------
    R : array or sparse matrix of shape (n_items, n_features)
        Features of the items. Sparse features are not shifted.
    loss : PairwiseLoss
        Over the pairs of these items.
    alpha : float
        Regularization.

    Returns
    -------
    Objective
        With features in float64.
    """
    low, high = _column_ranges(R)
    middle = 0.5 * low + 0.5 * high
    half_range = np.maximum(high - middle, middle - low)
    magnitude = np.maximum(np.abs(low), np.abs(high))
    if sp.issparse(R):
        R = R.astype(np.float64, copy=False)
    else:
        is_far = (half_range > 0) & (magnitude > SHIFT_RATIO * half_range)
        if R.dtype != np.float64 or is_far.any():
            R = R - middle
            magnitude = half_range
    magnitude = np.where(low == high, 0.0, magnitude)
    return Objective(R, loss, alpha, magnitude, R.shape[0])


def _column_ranges(R: Matrix) -> tuple[Array, Array]:
    """Smallest and largest value of each column."""
    low = R.min(axis=0)
    high = R.max(axis=0)
    if sp.issparse(R):
        low = low.toarray().ravel()
        high = high.toarray().ravel()
    return low.astype(np.float64), high.astype(np.float64)


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
    alpha = objective.alpha
    slope_at_start = float(start.gradient @ direction)
    if not -math.inf < slope_at_start < 0:
        return None
    score_change = objective.scores(direction)
    ww = float(start.w @ start.w)
    wd = float(start.w @ direction)
    dd = float(direction @ direction)
    lower = 0.0
    upper = math.inf
    step = 1.0
    loss_at_lower: LossValue | None = None
    for _ in range(MAX_TRIALS):
        loss = objective.loss.at(start.scores + step * score_change)
        value = loss.value + alpha * (ww + 2 * step * wd + step * step * dd)
        is_lower = value <= start.value + SUFFICIENT_DECREASE * step * slope_at_start
        if is_lower:
            lower = step
            loss_at_lower = loss
            slope = float(loss.gradient @ score_change) + 2 * alpha * (wd + step * dd)
            if slope >= SUFFICIENT_CURVATURE * slope_at_start:
                break
        else:
            upper = step
        if upper == math.inf:
            step = 2 * lower
        else:
            step = 0.5 * (lower + upper)
    if loss_at_lower is None:
        return None
    w = start.w + lower * direction
    if start.n_updates >= MAX_SCORE_UPDATES:
        return objective.at(w)
    scores = start.scores + lower * score_change
    return objective.with_loss(w, scores, loss_at_lower, start.n_updates + 1)


@dataclass
class Solution:
    """The best point of a search so far, and how far it is from the minimum at most.

    Attributes
    ----------
    w : ndarray of shape (n_features,)
        The best weights.
    bundle : Bundle
        The planes, which stay valid for another α.
    moment : ndarray
        Second moment of the differences of pairs, or its diagonal.
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
    moment: Array
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
        if self.bound > self.objective:
            rounding = self.bundle.rounding_of(point.value, point.loss.plane, point.w)
            if self.bound <= self.objective + rounding:
                self.bound = self.objective
        self.history.append((self.objective, self.bound))

    def finished(self, tol: float, max_iter: int) -> bool:
        """Whether the search is to stop; sets `end` if so."""
        before = len(self.history) - 1 - STALLED_ITERATIONS
        if self.bound > self.objective:
            self.end = "contradicted"
        elif self.gap <= tol:
            self.end = "converged"
        elif len(self.history) >= max_iter:
            self.end = "max_iter"
        elif before >= 0 and self.history[-1] == self.history[before]:
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
    lowest : ndarray of shape (n_features,)
        Minimizer of the planes plus the regularizer.
    """

    def __init__(self, objective: Objective, point: Iterate, solution: Solution) -> None:
        self.objective = objective
        self.point = point
        self.solution = solution
        self.lowest = point.w

    def finish_iteration(self, *points: Iterate, is_exact: bool = False) -> float:
        """Add the planes at these points, compute the bound, and record the current point.

        The master problem is solved as accurately as the objective of the current point requires,
        or fully if `is_exact`. Returns the bound of this iteration.
        """
        bundle = self.solution.bundle
        for point in points:
            bundle.add(point.slope, point.loss.plane)
        best_objective = math.inf if is_exact else self.point.value
        bound, self.lowest = bundle.solve(self.objective.alpha, best_objective)
        self.solution.record(self.point, bound)
        return bound


Phase = Callable[[Search], Iterator[None]]


def cutting_planes(search: Search) -> Iterator[None]:
    """Move to the minimizer of the planes so far, plain BMRM: [TreeRSVM11] algorithm 1.

    Converges for every α > 0, but slowly for a small α; used as the reference.
    """
    while True:
        search.finish_iteration(search.point, is_exact=True)
        yield
        search.point = search.objective.at(search.lowest)


def quasi_newton_steps(search: Search) -> Iterator[None]:
    """Steps of L-BFGS."""
    approximation = LimitedMemory(_initial_inverse(search))
    return _descent_steps(search, approximation.direction)


def newton_steps(search: Search) -> Iterator[None]:
    """Steps of a truncated Newton method."""
    preconditioner = _initial_inverse(search)

    def direction(point: Iterate) -> Array:
        return newton_direction(search.objective, point, preconditioner)

    return _descent_steps(search, direction)


def _initial_inverse(search: Search) -> Callable[[Array], Array]:
    return inverse_curvature(search.solution.moment, search.objective.alpha)


def _descent_steps(search: Search, direction: Callable[[Iterate], Array]) -> Iterator[None]:
    """Line searches along directions of descent, as long as they make progress.

    Kinks slow them down (few pairs, small α): the phase ends if in `PATIENCE` iterations neither
    the gap was halved nor the bound doubled, or if a line search fails.
    """
    gaps: deque[float] = deque(maxlen=PATIENCE + 1)
    bounds: deque[float] = deque(maxlen=PATIENCE + 1)
    while True:
        bound = search.finish_iteration(search.point)
        yield
        gaps.append(search.point.value - bound)
        bounds.append(bound)
        is_slow = gaps[-1] > 0.5 * gaps[0] and bounds[-1] < 2 * bounds[0]
        if len(gaps) > PATIENCE and is_slow:
            return
        next_point = line_search(search.objective, search.point, direction(search.point))
        if next_point is None:
            return
        search.point = next_point


def bundle_steps(search: Search) -> Iterator[None]:
    """Line searches towards the minimizer of the bundle.

    Each adds two planes: at its end, and a little further along the line.
    """
    while True:
        target = search.lowest
        points = []
        next_point = line_search(search.objective, search.point, target - search.point.w)
        if next_point is not None:
            search.point = next_point
            points.append(next_point)
        w = search.point.w
        points.append(search.objective.at(w + LOOK_AHEAD * (target - w)))
        search.finish_iteration(*points)
        yield


class LimitedMemory:
    """The inverse of the Hessian by L-BFGS: the two-loop recursion over steps and gradients.

    Parameters
    ----------
    initial_inverse : callable
        Product of a first approximation with a vector. Its scale is set by the newest step.
    """

    def __init__(self, initial_inverse: Callable[[Array], Array]) -> None:
        self._initial_inverse = initial_inverse
        self._updates: deque[tuple[Array, Array, float]] = deque(maxlen=LBFGS_MEMORY)
        self._previous: Iterate | None = None

    def direction(self, point: Iterate) -> Array:
        """Direction of descent at the next point of a search."""
        if self._previous is not None:
            self._update(point.w - self._previous.w, point.gradient - self._previous.gradient)
        self._previous = point
        direction = -point.gradient
        coefficients = []
        for step, change, product in reversed(self._updates):
            coefficient = float(step @ direction) / product
            direction -= coefficient * change
            coefficients.append(coefficient)
        direction = self._initial_inverse(direction)
        if self._updates:
            _, change, product = self._updates[-1]
            direction = direction * (product / float(change @ self._initial_inverse(change)))
        for (step, change, product), coefficient in zip(
            self._updates, reversed(coefficients), strict=True
        ):
            direction += (coefficient - float(change @ direction) / product) * step
        return direction

    def _update(self, step: Array, change: Array) -> None:
        """Store a step and the change of the gradient along it, unless they are orthogonal."""
        product = float(step @ change)
        if product > MIN_COSINE * np.linalg.norm(step) * np.linalg.norm(change):
            self._updates.append((step, change, product))


def newton_direction(
    objective: Objective, point: Iterate, preconditioner: Callable[[Array], Array]
) -> Array:
    """Direction of descent by conjugate gradients, more accurate the smaller the gradient is.

    The Hessian is ``Rᵀ H R + 2 α I`` with the Hessian H of the loss in the scores.
    """
    n_features = len(point.w)
    gradient = point.gradient

    def hessian_product(v: Array) -> Array:
        curved = objective.pull_back(point.loss.hessian_product(objective.scores(v)))
        return curved + 2 * objective.alpha * v

    shape = (n_features, n_features)
    direction, _ = cg(
        LinearOperator(shape, matvec=hessian_product, dtype=np.float64),
        -gradient,
        rtol=min(0.1, float(np.sqrt(gradient @ preconditioner(gradient)))),
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


def pair_covariance(objective: Objective) -> Array:
    """Mean of ``(r_i − r_j)(r_i − r_j)ᵀ`` over the pairs, or its diagonal for many features.

    Estimated from a sample if there are many items.
    """
    R = objective.R
    graph = objective.loss.graph
    if sp.issparse(R):
        squares = R.multiply(R).sum(axis=0)
    else:
        squares = np.einsum("ij,ij->j", R, R)
    variance = np.ravel(squares) / R.shape[0] - np.ravel(R.mean(axis=0)) ** 2
    if R.shape[1] > MAX_COVARIANCE_FEATURES:
        return np.asarray(2 * np.maximum(variance, 0.0))
    step = R.shape[0] // MAX_COVARIANCE_ITEMS
    if step > 1:
        sample = objective.loss.sample(step)
        if sample is not None:
            rows, sample_loss = sample
            R = R[rows]
            graph = sample_loss.graph
    covariance = graph.gram(R) / graph.total_weight
    # a sample may contain no nonzero value of a rare feature
    diagonal = np.maximum(covariance.diagonal(), MIN_VARIANCE_SHARE * variance)
    covariance[np.diag_indices_from(covariance)] = diagonal
    return np.asarray(covariance)


def inverse_curvature(moment: Array, alpha: float) -> Callable[[Array], Array]:
    """Product of an approximate inverse of the objective's Hessian with a vector.

    This uses NumPy only. The BLAS libraries of NumPy and SciPy have separate threads, which would
    compete for the cores, because products with the features alternate with these.

    Parameters
    ----------
    moment : ndarray of shape (n_features, n_features) or (n_features,)
        Second moment of the differences of pairs, or its diagonal.
    alpha : float
        Regularization.
    """
    curvature = CURVED_SHARE * moment
    is_diagonal = curvature.ndim == 1
    diagonal = curvature if is_diagonal else curvature.diagonal()
    scale = 1 / np.sqrt(diagonal + 2 * alpha)

    def diagonal_product(v: Array) -> Array:
        return np.asarray(scale**2 * v)

    if is_diagonal:
        return diagonal_product
    scaled = curvature * scale[:, None] * scale
    scaled[np.diag_indices_from(scaled)] = 1 + 1e-13 * len(scaled)
    try:
        root = np.linalg.inv(np.linalg.cholesky(scaled)) * scale
    except np.linalg.LinAlgError:  # infinite features, or rounding
        return diagonal_product

    def full_product(v: Array) -> Array:
        return np.asarray((root @ v) @ root)

    return full_product


@np.errstate(over="ignore", invalid="ignore", divide="ignore")  # line searches reject such values
def minimize_pairwise(
    objective: Objective,
    method: str,
    *,
    tol: float,
    max_iter: int,
    start: Array | None = None,
    warm: Solution | None = None,
    moment: Array | None = None,
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
    start : ndarray of shape (n_features,), optional
        First weights. By default zero, or the solution on a sample if there are many items.
    warm : Solution, optional
        Solution of the same loss and features at another α, used instead of `start` and `moment`.
    moment : ndarray of shape (n_features, n_features) or (n_features,), optional
        Second moment of the differences of pairs, or its diagonal; computed by default.
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
    zero = np.zeros(objective.R.shape[1])
    if warm is not None:
        start = warm.w
        moment = warm.moment
        bundle = warm.bundle
    else:
        bundle = Bundle(objective.magnitude, objective.n_items)
    if moment is None and method == "bmrm":  # cutting planes do not use it
        moment = zero
    elif moment is None:
        moment = pair_covariance(objective)
    solution = Solution(zero, bundle, moment)
    first = zero
    if start is not None:
        first = start
    try:
        if start is None and method != "bmrm":
            first = _solve_on_sample(objective, method, tol, moment)
        search = Search(objective, objective.at(first), solution)
        _run_phases(search, PHASES[method], tol, max_iter, watch)
    except KeyboardInterrupt:
        if not keep_interrupted:
            raise
        solution.end = "interrupted"
    if not solution.history:  # interrupted before the first evaluation on all items
        solution.record(objective.at(first), 0.0)
    if solution.w.any() or solution.end == "contradicted":
        return solution
    return _replace_zero(solution, objective, tol)


def _run_phases(
    search: Search,
    phases: tuple[Phase, ...],
    tol: float,
    max_iter: int,
    watch: Callable[[Solution], None] | None,
) -> None:
    """Iterate until the search is finished; the last phase has no end of its own."""
    solution = search.solution
    for phase in phases:
        for _ in phase(search):
            if watch is not None:
                watch(solution)
            if solution.finished(tol, max_iter):
                return


def _solve_on_sample(objective: Objective, method: str, tol: float, moment: Array) -> Array:
    """Weights for a sample of the items, as a first point; zero if there are few items."""
    zero = np.zeros(objective.R.shape[1])
    sample = objective.loss.sample(SAMPLE_STEP)
    if sample is None:
        return zero
    rows, loss = sample
    of_sample = make_objective(objective.R[rows], loss, objective.alpha)
    solution = minimize_pairwise(
        of_sample, method, tol=tol, max_iter=SAMPLE_ITERATIONS, start=zero, moment=moment
    )
    return solution.w


def _replace_zero(solution: Solution, objective: Objective, tol: float) -> Solution:
    """Replace zero weights, which order nothing, by nearby weights of about the same objective.

    With a large α zero is within the tolerance. The minimizer of the bundle takes its place if the
    gap stays within the tolerance.
    """
    _, lowest = solution.bundle.solve(objective.alpha)
    point = objective.at(lowest)
    bound = min(solution.bound, point.value)
    moved = replace(solution, w=point.w, objective=point.value, bound=bound)
    if moved.gap <= max(solution.gap, tol):
        moved.history[-1] = (moved.objective, moved.bound)
        return moved
    return solution
