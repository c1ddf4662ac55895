"""The objective of RankSVM as a function of the weights, its points and its lines."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from rankwise.arrays import Array
from rankwise.losses import LossAt, MarginLoss
from rankwise.solvers.columns import Columns

REFRESH = 16  # after so many points of lines in a row scores are computed anew: rounding adds up


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
        Subgradient of the loss; the plane ``slopeᵀ w + offset`` touches the loss here and lies
        below it everywhere.
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

    @property
    def offset(self) -> float:
        """Of the plane that touches the loss here; a function of the scores, not of w."""
        if self.loss.offset is not None:
            return self.loss.offset
        return self.loss.value - float(self.loss.gradient @ self.scores)

    @property
    def size(self) -> float:
        """Size of the terms of the offset."""
        if self.loss.size is not None:
            return self.loss.size
        known = self.loss.offset is not None
        return abs(self.offset) + (0.0 if known else 2 * abs(self.loss.value))

    @property
    def pull(self) -> float:
        """Size of the terms of the derivatives in the scores."""
        if self.loss.pull is not None:
            return self.loss.pull
        return float(np.abs(self.loss.gradient).sum())


class BoundedPoint(NamedTuple):
    """What a solver reports after each iteration: its point, and a bound for all points."""

    point: Point
    bound: float


class Trial(NamedTuple):
    """The objective at one place of a line: how far, its value, its slope along the line."""

    t: float
    value: float
    slope: float
    loss: LossAt


@dataclass(frozen=True)
class MarginObjective:
    """``J(w) = loss(R w) + α ‖w‖²``, in float64.

    Attributes
    ----------
    R : array, sparse matrix or Columns of shape (n_items, n_features)
        Features of the items.
    loss : MarginLoss
        A function of the scores R w that a constant added to all of them does not change.
    alpha : float
        Regularization.
    columns : Columns
        R, ready for products.
    """

    R: Any
    loss: MarginLoss
    alpha: float
    columns: Columns = field(init=False)

    def __post_init__(self) -> None:
        columns = self.R if isinstance(self.R, Columns) else Columns(self.R)
        object.__setattr__(self, "columns", columns)
        object.__setattr__(self, "R", columns.R)

    def scores(self, w: Array) -> Array:
        """``R w``, up to a constant."""
        return self.columns.times(w)

    def pull_back(self, u: Array) -> Array:
        """``Rᵀ u``: from a derivative in the scores to one in the weights."""
        return self.columns.pull_back(u)

    def at(self, w: Array) -> Point:
        """Two products with R and one sweep."""
        scores = self.scores(w)
        return self.point(w, scores, self.loss.at(scores), 0)

    def line(self, start: Point, direction: Array) -> Line:
        """The points ``start + t direction``; one product with R for all of them."""
        return Line(self, start, direction)

    def rounding(self, point: Point) -> float:
        """By how much the value of a point may be wrong: see `Bundle`."""
        reach = float(self.columns.magnitude @ np.abs(point.w))
        return self.columns.rounding * (1 + point.value + point.pull * reach)

    def point(self, w: Array, scores: Array, loss: LossAt, age: int) -> Point:
        """The point of weights whose scores and loss are known: one product with Rᵀ."""
        slope = self.pull_back(loss.gradient)
        value = loss.value + self.alpha * float(w @ w)
        return Point(w, scores, loss, value, slope, slope + 2 * self.alpha * w, age)


class Line:
    """The objective along a line, on cached scores: one sweep a trial, no product with R."""

    def __init__(self, objective: MarginObjective, start: Point, direction: Array) -> None:
        self.start = start
        self.direction = direction
        self._objective = objective
        self._change = objective.scores(direction)
        w = start.w
        self._norms = float(w @ w), float(w @ direction), float(direction @ direction)

    @property
    def slope(self) -> float:
        """Slope at the start."""
        return float(self.start.gradient @ self.direction)

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
