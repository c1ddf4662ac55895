"""The objective of margin rankers in the weights, and ways to its minimum.

A loss over pairs sees differences of scores only. A constant added to a column changes none of
them, but it costs digits: columns far from zero are shifted, and constant ones are left out.

The ways are quasi-Newton steps, truncated Newton and cutting planes. Each is a generator that
yields, after every iteration, its point and a lower bound for all points;
`rankwise.solvers.margin_loss.minimize_margin` stops it. Every point adds a plane to the bundle,
which certifies it.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from scipy.sparse.linalg import LinearOperator, cg

from rankwise.arrays import Array
from rankwise.graphs import ScoreGraph
from rankwise.losses import LossAt, MarginLoss
from rankwise.solvers.bundle import Bundle

FAR = 1e3  # columns this many times half their range away from zero are shifted
REFRESH = 16  # after so many points of lines in a row scores are computed anew: rounding adds up
MAX_FEATURES = 500  # with more features only the diagonal of the curvature is used
NEAR_MARGIN = 0.15  # about this share of the pairs makes the curvature
WIDTH = 0.25  # pairs are near the margin if their scores differ by one, more or less this
NEIGHBORS = 5  # pairs that are drawn for each item to find those near the margin
ENOUGH = 10  # times the number of features: the pairs that a curvature needs
RARE = 0.1  # lower bound of a second moment, as a share of the variance: a sample misses rare ones
MEMORY = 30  # steps that L-BFGS remembers
PATIENCE = 10  # iterations without real progress before bundle steps take over
FURTHER = 0.1  # how far beyond the lowest point of a line the second plane is taken
MAX_PRODUCTS = 50  # of conjugate gradients with the Hessian
DECREASE, CURVATURE = 1e-4, 0.9  # conditions of Wolfe


class Point(NamedTuple):
    """The objective at one w.

    Attributes
    ----------
    w : ndarray of shape (n_features,)
        Weights.
    scores : ndarray of shape (n_items,)
        R w, up to a constant.
    loss : LossAt
        The loss at these scores.
    value : float
        The objective, loss + α ‖w‖².
    slope : ndarray of shape (n_features,)
        Subgradient of the loss.
    gradient : ndarray of shape (n_features,)
        Subgradient of the objective, slope + 2 α w.
    age : int
        How many steps were added to the scores since they were a product with R.
    """

    w: Array
    scores: Array
    loss: LossAt
    value: float
    slope: Array
    gradient: Array
    age: int = 0


@dataclass(frozen=True)
class MarginObjective:
    """``J(w) = loss(R w) + α ‖w‖²``, in float64.

    Attributes
    ----------
    R : array or sparse matrix of shape (n_items, n_features)
        Features of the items, in float64 and near zero; `make_objective` makes them so.
    loss : MarginLoss
        A function of the scores R w that a constant added to all of them does not change.
    alpha : float
        Regularization.
    magnitude : ndarray of shape (n_features,)
        Largest absolute value of each column; 0 for constant columns.
    n_items : int
        Number of terms of a sum over items.
    """

    R: Any
    loss: MarginLoss
    alpha: float
    magnitude: Array
    n_items: int

    def scores(self, w: Array) -> Array:
        """``R w``, up to a constant."""
        return np.asarray(self.R @ np.where(self.magnitude > 0, w, 0.0))

    def pull_back(self, u: Array) -> Array:
        """``Rᵀ u`` for a u that sums to zero: from derivatives in scores to those in weights."""
        return np.where(self.magnitude > 0, self.R.T @ u, 0.0)

    def at(self, w: Array) -> Point:
        """Two products with R and one sweep."""
        scores = self.scores(w)
        return self.point(w, scores, self.loss.at(scores), 0)

    def point(self, w: Array, scores: Array, loss: LossAt, age: int) -> Point:
        """The point of weights whose scores and loss are known: one product with Rᵀ."""
        slope = self.pull_back(loss.gradient)
        value = loss.value + self.alpha * float(w @ w)
        return Point(w, scores, loss, value, slope, slope + 2 * self.alpha * w, age)


def make_objective(R: Any, loss: MarginLoss, alpha: float) -> MarginObjective:
    """The objective for features of any type; they are copied if they must be shifted or widened.

    Parameters
    ----------
    R : array or sparse matrix of shape (n_items, n_features)
        Features of the items. Sparse ones are not shifted.
    loss : MarginLoss
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
    return MarginObjective(R, loss, alpha, np.where(low == high, 0.0, magnitude), R.shape[0])


class Trial(NamedTuple):
    """The objective at one place of a line: how far, its value, its slope along the line."""

    t: float
    value: float
    slope: float
    loss: LossAt


class Line:
    """The points ``start + t direction`` of an objective.

    On cached scores: one product with R for all of them, then one sweep a trial.
    """

    def __init__(self, objective: MarginObjective, start: Point, direction: Array) -> None:
        self.start, self.direction = start, direction
        self.slope = float(start.gradient @ direction)
        self._objective = objective
        self._change = objective.scores(direction)
        w = start.w
        self._norms = float(w @ w), float(w @ direction), float(direction @ direction)

    def at(self, t: float) -> Trial:
        """The objective at ``start + t direction``."""
        loss = self._objective.loss.at(self.start.scores + t * self._change)
        alpha, (ww, wd, dd) = self._objective.alpha, self._norms
        value = loss.value + alpha * (ww + 2 * t * wd + t * t * dd)
        slope = float(loss.gradient @ self._change) + 2 * alpha * (wd + t * dd)
        return Trial(t, value, slope, loss)

    def point(self, trial: Trial) -> Point:
        """A trial with its derivatives in the weights: one product with Rᵀ."""
        w = self.start.w + trial.t * self.direction
        if self.start.age >= REFRESH:
            return self._objective.at(w)
        scores = self.start.scores + trial.t * self._change
        return self._objective.point(w, scores, trial.loss, self.start.age + 1)


Steps = Iterator[tuple[Point, float]]


def cutting_planes(objective: MarginObjective, point: Point, bundle: Bundle, _: Array) -> Steps:
    """Yield the lowest points of ever more planes, plain BMRM: [TreeRSVM11] algorithm 1.

    Converges for every α > 0, but slowly for small ones; kept as the reference. It does not use the
    second moment of the pairs.
    """
    while True:
        bundle.touch(point)
        bound, lowest = bundle.solve(objective.alpha)
        yield point, bound
        point = objective.at(lowest)


def bundle_steps(objective: MarginObjective, point: Point, bundle: Bundle) -> Steps:
    """Search the line to the lowest point of the bundle; two new planes, near the best point."""
    while True:
        bound, lowest = bundle.solve(objective.alpha, point.value)
        yield point, bound
        line = Line(objective, point, lowest - point.w)
        trial = lowest_on_line(line)
        t = 0.0
        if trial is not None:
            point, t = line.point(trial), trial.t
            bundle.touch(point)
        further = t + FURTHER * (1 - t) if t < 1 else t * (1 + FURTHER)
        bundle.touch(line.point(line.at(further)))


def quasi_newton(objective: MarginObjective, point: Point, bundle: Bundle, moment: Array) -> Steps:
    """Yield ever lower points, and ever higher bounds, until no step leads further down.

    Where kinks slow the quasi-Newton steps (few pairs, small α), so that neither the gap is halved
    nor the bound (while it is low) doubled, steps towards the lowest point of the bundle take over.
    """
    memory = InverseHessian(inverse_curvature(moment, objective.alpha))
    recent: deque[tuple[float, float]] = deque(maxlen=PATIENCE + 1)
    bundle.touch(point)
    while True:
        bound, _ = bundle.solve(objective.alpha, point.value)
        yield point, bound
        recent.append((point.value - bound, bound))
        gap_before, bound_before = recent[0]
        is_slow = point.value - bound > 0.5 * gap_before and bound < 2 * bound_before
        if len(recent) > PATIENCE and is_slow:
            break
        line = Line(objective, point, -memory.times(point.gradient))
        trial = weak_wolfe(line)
        if trial is None:
            break
        new = line.point(trial)
        memory.update(new.w - point.w, new.gradient - point.gradient)
        point = new
        bundle.touch(point)
    yield from bundle_steps(objective, point, bundle)


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


def truncated_newton(
    objective: MarginObjective, point: Point, bundle: Bundle, moment: Array
) -> Steps:
    """Yield ever lower points; where no Newton step leads further down, bundle steps take over.

    The Hessian is ``Rᵀ H R + 2 α I`` with H from the Laplacian of the violated pairs. Its system
    is solved by conjugate gradients, only as exactly as the gradient is small. Close to the minimum
    one plane is a tight bound.
    """
    n = len(point.w)
    guess = inverse_curvature(moment, objective.alpha)
    precondition = LinearOperator((n, n), matvec=guess, dtype=np.float64)
    while True:
        bundle.touch(point)
        bound, _ = bundle.solve(objective.alpha, point.value)
        yield point, bound
        curvature, gradient = point.loss.curvature, point.gradient

        def hessian(v: Array, curvature: Callable[[Array], Array] = curvature) -> Array:
            curved = objective.pull_back(curvature(objective.scores(v)))
            return curved + 2 * objective.alpha * v

        direction, _ = cg(
            LinearOperator((n, n), matvec=hessian, dtype=np.float64),
            -gradient,
            rtol=min(0.1, float(np.sqrt(gradient @ guess(gradient)))),
            maxiter=MAX_PRODUCTS,
            M=precondition,
        )
        line = Line(objective, point, direction)
        trial = weak_wolfe(line)
        if trial is None:
            break
        point = line.point(trial)
    yield from bundle_steps(objective, point, bundle)


METHODS = {"lbfgs": quasi_newton, "newton-cg": truncated_newton, "bmrm": cutting_planes}


# A first guess at the curvature, so that features may be on any scale. The Hessian of a margin loss
# is the mean of (r_i − r_j)(r_i − r_j)ᵀ over the pairs near the margin (hinge) or below it (squared
# hinge). The mean over all pairs shows its directions.


def second_moment(objective: MarginObjective) -> Array:
    """Second moment of the differences of pairs: a matrix, or its diagonal for many features."""
    R = objective.R
    squares = R.multiply(R).sum(axis=0) if sp.issparse(R) else np.einsum("ij,ij->j", R, R)
    variance = np.ravel(squares) / R.shape[0] - np.ravel(R.mean(axis=0)) ** 2
    if R.shape[1] > MAX_FEATURES:
        return np.asarray(2 * np.maximum(variance, 0.0))
    M = objective.loss.second_moment(R)
    M[np.diag_indices_from(M)] = np.maximum(M.diagonal(), RARE * variance)
    return M


def moment_near_margin(objective: MarginObjective, f: Array, moment: Array) -> Array:
    """The second moment of the pairs whose scores differ by about one: the hinge bends there.

    From random pairs of scored items. The fewer are near the margin, the more of the moment of all
    pairs is added. Relative to that moment, as `inverse_curvature` takes it.
    """
    graph = objective.loss.graph
    if moment.ndim == 1 or not isinstance(graph, ScoreGraph):
        return moment
    group, y = graph.groups, graph.y
    order = np.lexsort((np.random.default_rng(0).random(len(f)), group))
    a, b = np.concatenate([(order[k:], order[:-k]) for k in range(1, NEIGHBORS + 1)], axis=1)
    drawn = (group[a] == group[b]) & (y[a] != y[b])
    a, b = a[drawn], b[drawn]
    weight = graph.pair_weights[group[a]] * np.bincount(group)[group[a]]
    if graph.item_weights is not None:
        weight *= graph.item_weights[a] * graph.item_weights[b]
    near = np.abs(1 - np.sign(y[a] - y[b]) * (f[a] - f[b])) < WIDTH
    if near.sum() < ENOUGH * len(moment):
        return moment
    R = objective.R
    D = R[a[near]] - R[b[near]]
    D = D.toarray() if sp.issparse(D) else D
    D *= np.sqrt(weight[near] / (2 * WIDTH * NEAR_MARGIN * weight.sum()))[:, None]
    return np.asarray(D.T @ D + moment * (len(moment) / near.sum()))


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


# Searches along a line of a convex objective return a place that is lower, or None if they find
# none: then the line does not lead down, or every trial was higher, which happens by rounding near
# the minimum.


def weak_wolfe(line: Line, max_trials: int = 30) -> Trial | None:
    """A step that decreases the objective enough and is not too short; None if there is none.

    Doubling and bisection, which also works where the objective has kinks (Lewis and Overton,
    Nonsmooth optimization via quasi-Newton methods, 2013).
    """
    value, slope = line.start.value, line.slope
    low, high, t = 0.0, math.inf, 1.0
    best: Trial | None = None
    if not -math.inf < slope < 0:
        return None
    for _ in range(max_trials):
        trial = line.at(t)
        if not trial.value <= value + DECREASE * t * slope:
            high = t
        else:
            best, low = trial, t
            if trial.slope >= CURVATURE * slope:
                break
        t = 2 * low if high == math.inf else 0.5 * (low + high)
    return best


def lowest_on_line(line: Line, max_trials: int = 10) -> Trial | None:
    """The lowest place to a tenth of the first slope, by false position; None if none is lower."""
    low, low_slope = 0.0, line.slope
    high, high_slope = math.inf, math.inf
    t, best = 1.0, None
    if not -math.inf < line.slope < 0:
        return None
    for _ in range(max_trials):
        trial = line.at(t)
        if trial.value < (line.start.value if best is None else best.value):
            best = trial
        if abs(trial.slope) <= 0.1 * abs(line.slope):
            break
        if trial.slope < 0:
            low, low_slope = t, trial.slope
        else:
            high, high_slope = t, trial.slope if math.isfinite(trial.slope) else math.inf
        if high == math.inf:
            t = 2 * t
        else:  # where a straight line between the slopes is zero, away from both ends
            share = low_slope / (low_slope - high_slope)
            t = low + (high - low) * min(max(share, 0.1), 0.9)
    return best
