"""The objective of RankSVM and RankLogistic as a function of the weights, its points and lines.

A loss over pairs sees differences of scores only. A constant added to a column changes none of
them, but it costs digits: columns far from zero are shifted, and constant ones are left out.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from rankwise.arrays import Array
from rankwise.losses import LossAt, MarginLoss

FAR = 1e3  # columns this many times half their range away from zero are shifted
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
