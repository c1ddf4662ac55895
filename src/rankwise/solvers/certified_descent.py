"""Minimize ``loss(R w) + α ‖w‖²`` for a margin loss until a certified relative gap is reached.

A loss over pairs sees differences of scores only. A constant added to a column changes none of
them, but it costs digits: columns far from zero are shifted, and constant ones are left out.

The ways to the minimum are quasi-Newton steps, truncated Newton and cutting planes. Each is a
generator that yields, after every iteration, its point and a lower bound for all points;
`minimize_pairwise` stops it. Every point adds a plane to the bundle, which certifies it.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from scipy.sparse.linalg import LinearOperator, cg

from rankwise.arrays import Array
from rankwise.losses import LossValue, PairwiseLoss
from rankwise.solvers.bundle import Bundle

FAR = 1e3  # columns this many times half their range away from zero are shifted
REFRESH = 16  # after so many points of lines in a row scores are computed anew: rounding adds up
MAX_FEATURES = 500  # with more features only the diagonal of the curvature is used
MOMENT_ITEMS = 20_000  # so many items tell the second moment of the pairs
NEAR_MARGIN = 0.15  # about this share of the pairs makes the curvature
RARE = 0.1  # lower bound of a second moment, as a share of the variance: a sample misses rare ones
MEMORY = 30  # steps that L-BFGS remembers
PATIENCE = 10  # iterations without real progress before bundle steps take over
FURTHER = 0.1  # how far towards the lowest point of the planes a second plane is taken
MAX_PRODUCTS = 50  # of conjugate gradients with the Hessian
MAX_TRIALS = 30  # on one line
DECREASE, CURVATURE = 1e-4, 0.9  # conditions of Wolfe
SAMPLE_STEP = 16  # a first solution is found on one sixteenth of the items, if they are many
SAMPLE_ITERATIONS = 102  # enough for a first point
STALLED = 20  # iterations without any change: rounding allows no more


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
        Subgradient of the loss.
    gradient : ndarray of shape (n_features,)
        Subgradient of the objective, slope + 2 α w.
    plane : tuple of float
        Offset of the plane that touches the loss here, and s and p of its rounding.
    age : int
        How many steps were added to the scores since they were a product with R.
    """

    w: Array
    scores: Array
    loss: LossValue
    value: float
    slope: Array
    gradient: Array
    plane: tuple[float, float, float]
    age: int = 0


@dataclass(frozen=True)
class Objective:
    """``J(w) = loss(R w) + α ‖w‖²``, in float64.

    Attributes
    ----------
    R : array or sparse matrix of shape (n_items, n_features)
        Features of the items, in float64 and near zero; `make_objective` makes them so.
    loss : PairwiseLoss
        A function of the scores R w that a constant added to all of them does not change.
    alpha : float
        Regularization.
    magnitude : ndarray of shape (n_features,)
        Largest absolute value of each column; 0 for constant columns.
    n_items : int
        Number of terms of a sum over items.
    """

    R: Any
    loss: PairwiseLoss
    alpha: float
    magnitude: Array
    n_items: int

    def scores(self, w: Array) -> Array:
        """``R w``, up to a constant."""
        return np.asarray(self.R @ np.where(self.magnitude > 0, w, 0.0))

    def pull_back(self, u: Array) -> Array:
        """``Rᵀ u`` for a u that sums to zero: from derivatives in scores to those in weights."""
        return np.where(self.magnitude > 0, self.R.T @ u, 0.0)

    def at(self, w: Array) -> Iterate:
        """Two products with R and one sweep."""
        scores = self.scores(w)
        return self.point(w, scores, self.loss.at(scores), 0)

    def point(self, w: Array, scores: Array, loss: LossValue, age: int) -> Iterate:
        """The point of weights whose scores and loss are known: one product with Rᵀ.

        Where the loss does not tell its offset it is a difference, whose terms count for its size.
        """
        slope = self.pull_back(loss.gradient)
        value = loss.value + self.alpha * float(w @ w)
        offset, size, pull = loss.offset, loss.size, loss.pull
        if offset is None:
            offset = loss.value - float(loss.gradient @ scores)
            size = abs(offset) + 2 * abs(loss.value)
        size = abs(offset) if size is None else size
        if pull is None:  # of the hinge: a violated pair adds its weight to two entries
            pull = max(float(np.abs(loss.gradient).sum()), 2 * abs(offset))
        plane = offset, size, pull
        return Iterate(w, scores, loss, value, slope, slope + 2 * self.alpha * w, plane, age)


def make_objective(R: Any, loss: PairwiseLoss, alpha: float) -> Objective:
    """The objective for features of any type; they are copied if they must be shifted or widened.

    Parameters
    ----------
    R : array or sparse matrix of shape (n_items, n_features)
        Features of the items. Sparse ones are not shifted.
    loss : PairwiseLoss
        Over the pairs of these items.
    alpha : float
        Regularization.
    """
    low, high = R.min(axis=0), R.max(axis=0)
    if sp.issparse(R):
        low, high = low.toarray().ravel(), high.toarray().ravel()
    low, high = low.astype(np.float64), high.astype(np.float64)
    middle = 0.5 * low + 0.5 * high
    half = np.maximum(high - middle, middle - low)
    magnitude = np.maximum(np.abs(low), np.abs(high))
    if sp.issparse(R):
        R = R.astype(np.float64, copy=False)
    elif R.dtype != np.float64 or ((half > 0) & (magnitude > FAR * half)).any():
        R, magnitude = R - middle, half
    return Objective(R, loss, alpha, np.where(low == high, 0.0, magnitude), R.shape[0])


def line_search(objective: Objective, start: Iterate, direction: Array) -> Iterate | None:
    """A point of a line that is enough lower than its start, and not too near to it.

    None if there is none: then the line does not lead down, or every trial was higher, which
    happens by rounding near the minimum. Doubling and bisection, which also works where the
    objective has kinks (Lewis and Overton, Nonsmooth optimization via quasi-Newton methods, 2013).
    On cached scores: one product with R for all trials, one sweep for each.
    """
    w, alpha, slope = start.w, objective.alpha, float(start.gradient @ direction)
    if not -math.inf < slope < 0:
        return None
    change = objective.scores(direction)
    ww, wd, dd = float(w @ w), float(w @ direction), float(direction @ direction)
    low, high, t = 0.0, math.inf, 1.0
    best: LossValue | None = None
    for _ in range(MAX_TRIALS):
        loss = objective.loss.at(start.scores + t * change)
        value = loss.value + alpha * (ww + 2 * t * wd + t * t * dd)
        if not value <= start.value + DECREASE * t * slope:
            high = t
        else:
            best, low = loss, t
            slope_there = float(loss.gradient @ change) + 2 * alpha * (wd + t * dd)
            if slope_there >= CURVATURE * slope:
                break
        t = 2 * low if high == math.inf else 0.5 * (low + high)
    if best is None:
        return None
    w = w + low * direction
    if start.age >= REFRESH:
        return objective.at(w)
    return objective.point(w, start.scores + low * change, best, start.age + 1)


Steps = Iterator[tuple[Iterate, float]]


def cutting_planes(objective: Objective, point: Iterate, bundle: Bundle, *_: Any) -> Steps:
    """Yield the lowest points of ever more planes, plain BMRM: [TreeRSVM11] algorithm 1.

    Converges for every α > 0, but slowly for small ones; kept as the reference.
    """
    while True:
        bundle.add(point.slope, *point.plane)
        bound, lowest = bundle.solve(objective.alpha)
        yield point, bound
        point = objective.at(lowest)


def descend(
    objective: Objective, point: Iterate, bundle: Bundle, moment: Array, method: str
) -> Steps:
    """Yield ever lower points and bounds, by steps of Newton ("newton-cg") or quasi-Newton.

    Where kinks slow them (few pairs, small α), so that neither the gap is halved nor the bound
    (while it is low) doubled, or no step leads further down, steps towards the lowest point of the
    bundle take over: two new planes, at the point of the step and a little further.
    """
    alpha, guess = objective.alpha, inverse_curvature(moment, objective.alpha)
    pairs: deque[tuple[Array, Array, float]] = deque(maxlen=MEMORY)
    recent: deque[tuple[float, float]] = deque(maxlen=PATIENCE + 1)
    while True:
        bundle.add(point.slope, *point.plane)
        bound, lowest = bundle.solve(alpha, point.value)
        yield point, bound
        recent.append((point.value - bound, bound))
        gap_before, bound_before = recent[0]
        is_slow = point.value - bound > 0.5 * gap_before and bound < 2 * bound_before
        if len(recent) > PATIENCE and is_slow:
            break
        if method == "newton-cg":
            direction = newton_direction(objective, point, guess)
        else:
            direction = quasi_newton_direction(point.gradient, pairs, guess)
        new = line_search(objective, point, direction)
        if new is None:
            break
        step, change = new.w - point.w, new.gradient - point.gradient
        product = float(step @ change)
        if product > 1e-12 * np.linalg.norm(step) * np.linalg.norm(change):
            pairs.append((step, change, product))
        point = new
    while True:
        new = line_search(objective, point, lowest - point.w)
        if new is not None:
            point = new
            bundle.add(point.slope, *point.plane)
        further = objective.at(point.w + FURTHER * (lowest - point.w))
        bundle.add(further.slope, *further.plane)
        bound, lowest = bundle.solve(alpha, point.value)
        yield point, bound


def quasi_newton_direction(
    gradient: Array, pairs: deque[tuple[Array, Array, float]], guess: Callable[[Array], Array]
) -> Array:
    """Downwards by L-BFGS: the two-loop recursion over steps and changes of the gradient.

    The scale of the first guess at the inverse of the Hessian is set by the newest pair.
    """
    q = -gradient
    shares = []
    for step, change, product in reversed(pairs):
        share = float(step @ q) / product
        q -= share * change
        shares.append(share)
    q = guess(q)
    if pairs:
        _, change, product = pairs[-1]
        q = q * (product / float(change @ guess(change)))
    for (step, change, product), share in zip(pairs, reversed(shares), strict=True):
        q += (share - float(change @ q) / product) * step
    return q


def newton_direction(
    objective: Objective, point: Iterate, guess: Callable[[Array], Array]
) -> Array:
    """Downwards by conjugate gradients, only as exactly as the gradient is small.

    The Hessian is ``Rᵀ H R + 2 α I`` with H from the Laplacian of the violated pairs.
    """
    n, gradient = len(point.w), point.gradient

    def hessian(v: Array) -> Array:
        curved = objective.pull_back(point.loss.curvature(objective.scores(v)))
        return curved + 2 * objective.alpha * v

    direction, _ = cg(
        LinearOperator((n, n), matvec=hessian, dtype=np.float64),
        -gradient,
        rtol=min(0.1, float(np.sqrt(gradient @ guess(gradient)))),
        maxiter=MAX_PRODUCTS,
        M=LinearOperator((n, n), matvec=guess, dtype=np.float64),
    )
    return np.asarray(direction)


METHODS = {"lbfgs": descend, "newton-cg": descend, "bmrm": cutting_planes}


# A first guess at the curvature, so that features may be on any scale. The Hessian of a margin loss
# is the mean of (r_i − r_j)(r_i − r_j)ᵀ over the pairs near the margin (hinge) or below it (squared
# hinge). The mean over all pairs shows its directions.


def pair_covariance(objective: Objective) -> Array:
    """Mean of ``(r_i − r_j)(r_i − r_j)ᵀ`` over the pairs, or its diagonal for many features.

    From a sample of the items if there are many.
    """
    R, graph = objective.R, objective.loss.graph
    squares = R.multiply(R).sum(axis=0) if sp.issparse(R) else np.einsum("ij,ij->j", R, R)
    variance = np.ravel(squares) / R.shape[0] - np.ravel(R.mean(axis=0)) ** 2
    if R.shape[1] > MAX_FEATURES:
        return np.asarray(2 * np.maximum(variance, 0.0))
    step = R.shape[0] // MOMENT_ITEMS
    sample = objective.loss.sample(step) if step > 1 else None
    if sample is not None:
        R, graph = R[sample[0]], sample[1].graph
    M = graph.gram(R) / graph.total_weight
    M[np.diag_indices_from(M)] = np.maximum(M.diagonal(), RARE * variance)
    return np.asarray(M)


def inverse_curvature(moment: Array, alpha: float) -> Callable[[Array], Array]:
    """The product with a vector of about the inverse of the Hessian of the objective.

    This uses NumPy only. The BLAS libraries of NumPy and SciPy have separate threads, which would
    compete for the cores, because products with the features alternate with these.
    """
    curvature = NEAR_MARGIN * moment
    diagonal = curvature if curvature.ndim == 1 else curvature.diagonal()
    scale = 1 / np.sqrt(diagonal + 2 * alpha)
    if curvature.ndim == 1:
        return lambda v: np.asarray(scale**2 * v)
    H = curvature * scale[:, None] * scale
    H[np.diag_indices_from(H)] = 1 + 1e-13 * len(H)
    try:
        root = np.linalg.inv(np.linalg.cholesky(H)) * scale
    except np.linalg.LinAlgError:  # of infinite features, or by rounding
        return lambda v: np.asarray(scale**2 * v)
    return lambda v: np.asarray((root @ v) @ root)


@dataclass
class Solution:
    """The best point of a search so far.

    Attributes
    ----------
    w : ndarray of shape (n_features,)
        The best weights.
    bundle : Bundle
        The planes, which stay valid for another α.
    moment : ndarray
        Second moment of the differences of pairs, or its diagonal.
    objective : float
        Of the best weights.
    bound : float
        No weights have an objective below this. It is above `objective` only in a search that
        ends "contradicted".
    history : list of tuple
        Objective and bound after each iteration.
    end : str
        Why it stopped; none of these raises. "converged": the gap is at most the tolerance,
        "max_iter": the limit of iterations came first, "stalled": nothing changes any more,
        rounding allows no smaller gap, "interrupted": by Ctrl-C, "contradicted": the bound is above
        the objective by more than rounding.
    """

    w: Array
    bundle: Bundle
    moment: Array
    objective: float = math.inf
    bound: float = 0.0
    history: list[tuple[float, float]] = field(default_factory=list)
    end: str = "stalled"

    @property
    def gap(self) -> float:
        """``(objective − bound)/objective``."""
        return 1.0 - self.bound / self.objective if self.objective > 0 else 0.0

    def take(self, point: Iterate, bound: float) -> None:
        """Keep what is better than before; a bound is cut at the objective only within rounding."""
        if point.value < self.objective:
            self.w, self.objective = point.w, point.value
        self.bound = max(bound, self.bound)
        if self.objective < self.bound <= self.objective + self.bundle.rounding_of(point):
            self.bound = self.objective
        self.history.append((self.objective, self.bound))


@np.errstate(over="ignore", invalid="ignore", divide="ignore")  # the search goes around them
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
    """Iterate until the gap is at most `tol`.

    Parameters
    ----------
    objective : Objective
        What to minimize.
    method : {"lbfgs", "newton-cg", "bmrm"}
        How.
    tol : float
        Relative gap between the objective and its certified lower bound.
    max_iter : int
        Limit of iterations on all items.
    start : ndarray of shape (n_features,), optional
        First weights; zero, or the solution on a sample of the items, if not given.
    warm : Solution, optional
        Of the same loss and features at another α.
    moment : ndarray of shape (n_features, n_features) or (n_features,), optional
        Second moment of the differences of pairs, or its diagonal; computed if not given.
    watch : callable, optional
        Called with the state after each iteration.
    keep_interrupted : bool
        Whether Ctrl-C ends the iterations with the best point so far instead of raising
        KeyboardInterrupt.

    Returns
    -------
    Solution
        The best point.
    """
    zero = np.zeros(objective.R.shape[1])
    bundle = Bundle(objective.magnitude, objective.n_items)
    if warm is not None:
        start, moment, bundle = warm.w, warm.moment, warm.bundle
    if moment is None:
        moment = zero if method == "bmrm" else pair_covariance(objective)  # BMRM does not use it
    best = Solution(zero, bundle, moment)
    try:
        sample = objective.loss.sample(SAMPLE_STEP) if start is None and method != "bmrm" else None
        if sample is not None:
            rows, loss = sample
            first = minimize_pairwise(
                make_objective(objective.R[rows], loss, objective.alpha),
                method,
                tol=tol,
                max_iter=SAMPLE_ITERATIONS,
                start=zero,
                moment=moment,
            )
            start = first.w
        start = zero if start is None else start
        for point, bound in METHODS[method](objective, objective.at(start), bundle, moment, method):
            best.take(point, bound)
            if watch is not None:
                watch(best)
            if best.bound > best.objective:
                best.end = "contradicted"
            elif best.gap <= tol:
                best.end = "converged"
            elif len(best.history) >= max_iter:
                best.end = "max_iter"
            elif best.history[-1:] != best.history[-1 - STALLED : -STALLED]:
                continue
            break
    except KeyboardInterrupt:
        if not keep_interrupted:
            raise
        best.end = "interrupted"
    if not best.history:  # interrupted before the first look at all items
        best.take(objective.at(zero if start is None else start), 0.0)
    if not best.w.any() and best.end != "contradicted":
        # Zero weights order nothing. With a large α zero is within the tolerance, and its
        # neighbors differ from it by rounding: the lowest point of the planes, if it is as good.
        point = objective.at(bundle.solve(objective.alpha)[1])
        bound = min(best.bound, point.value)
        moved = replace(best, w=point.w, objective=point.value, bound=bound)
        if moved.gap <= max(best.gap, tol):
            best = moved
            best.history[-1] = best.objective, best.bound
    return best
