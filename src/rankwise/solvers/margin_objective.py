"""The objective of RankSVM as a function of the weights, its points and its lines."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rankwise.losses import LossAt, MarginLoss

__all__ = ["Line", "MarginObjective", "Point", "Step", "Trial"]

Array = NDArray[np.float64]


class Point(NamedTuple):
    """The objective at one w.

    Attributes
    ----------
    w : ndarray of shape (n_features,)
        Weights.
    scores : ndarray of shape (n_items,)
        R w.
    loss : LossAt
        The loss at these scores.
    value : float
        The objective, loss + α ‖w‖².
    slope : ndarray of shape (n_features,)
        Subgradient of the loss; the plane ``slopeᵀ w + offset`` touches the loss here and lies
        below it everywhere.
    gradient : ndarray of shape (n_features,)
        Subgradient of the objective, slope + 2 α w.
    """

    w: Array
    scores: NDArray[Any]
    loss: LossAt
    value: float
    slope: Array
    gradient: Array

    @property
    def offset(self) -> float:
        """Of the plane that touches the loss here."""
        return self.loss.value - float(self.slope @ self.w)


class Step(NamedTuple):
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
    """``J(w) = loss(R w) + α ‖w‖²``.

    Attributes
    ----------
    R : array or sparse matrix of shape (n_items, n_features)
        Features of the items.
    loss : MarginLoss
        A function of the scores R w.
    alpha : float
        Regularisation.
    """

    R: Any
    loss: MarginLoss
    alpha: float

    def scores(self, w: Array) -> NDArray[Any]:
        """``R w``, in the precision of R."""
        return np.asarray(self.R @ w.astype(self.R.dtype, copy=False))

    def pull_back(self, u: Array) -> Array:
        """``Rᵀ u``: from a derivative in the scores to one in the weights."""
        product = self.R.T @ u.astype(self.R.dtype, copy=False)
        return np.asarray(product, dtype=np.float64)

    def at(self, w: Array) -> Point:
        """Two products with R and one sweep."""
        scores = self.scores(w)
        return self._point(w, scores, self.loss.at(scores))

    def line(self, start: Point, direction: Array) -> Line:
        """The points ``start + t direction``; one product with R for all of them."""
        return Line(self, start, direction)

    def _point(self, w: Array, scores: NDArray[Any], loss: LossAt) -> Point:
        slope = self.pull_back(loss.gradient)
        value = loss.value + self.alpha * float(w @ w)
        return Point(w, scores, loss, value, slope, slope + 2 * self.alpha * w)


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
        loss = self._objective.loss.at(self.start.scores + self._step(t))
        alpha, (ww, wd, dd) = self._objective.alpha, self._norms
        value = loss.value + alpha * (ww + 2 * t * wd + t * t * dd)
        slope = float(loss.gradient @ self._change) + 2 * alpha * (wd + t * dd)
        return Trial(t, value, slope, loss)

    def point(self, trial: Trial) -> Point:
        """A trial with its derivatives in the weights: one product with Rᵀ."""
        w = self.start.w + trial.t * self.direction
        return self._objective._point(w, self.start.scores + self._step(trial.t), trial.loss)

    def _step(self, t: float) -> NDArray[Any]:
        return np.asarray(self._change * self._change.dtype.type(t))
