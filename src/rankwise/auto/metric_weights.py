"""Weights of stacked members that maximize a smooth version of the requested metric.

The weights of the stack count wrong pairs. From these weights w₀, scaled to Σ|w₀| = 2, this module
maximizes

    mean over units of the smooth metric of Z w  −  strength · ‖w − w₀‖².

Weights without a unit, or for units drawn several times, take one Newton step from the weights of
all units. Their curvature is that of all units, so they are approximate: the error is of the second
order in the change of the weights. They select the strength and give the held-out metric.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize

from rankwise.arrays import Array
from rankwise.auto.smooth_metrics import SmoothMetric

STRENGTHS = (1.0, 0.1)  # of the pull toward the weights that count pairs
WEIGHT_SUM = 2.0  # Σ|w|, so that a strength means the same for any number of members
MAX_ITERATIONS = 50  # of L-BFGS; 10 to 20 are usual
DIFFERENCE = 1e-2  # step of the finite differences of gradients
TOLERANCE = 1e-5  # of the objective, relative


def scaled_weights(weights: Array) -> Array:
    """Weights with Σ|w| = 2 along the last axis; zero weights stay zero."""
    size = np.abs(weights).sum(axis=-1, keepdims=True)
    return WEIGHT_SUM * weights / np.where(size > 0, size, 1.0)


@dataclass(frozen=True, eq=False)
class MetricWeights:
    """Weights that maximize a smooth metric, for one strength.

    Attributes
    ----------
    strength : float
        Factor of the squared distance to the weights that count pairs.
    optimum : ndarray of shape (n_members,)
        The weights of all units.
    gradients : ndarray of shape (n_units, n_members)
        Gradient of the metric of each unit at the optimum.
    is_defined : ndarray of bool of shape (n_units,)
        Units whose metric is defined.
    curvature : ndarray of shape (n_members, n_members)
        Negative Hessian of the objective, positive definite.
    """

    strength: float
    optimum: Array
    gradients: Array
    is_defined: NDArray[np.bool_]
    curvature: Array

    @classmethod
    def fit(cls, metric: SmoothMetric, pairwise: Array, strength: float) -> MetricWeights:
        """Maximize the metric, starting from the weights that count pairs."""
        start = scaled_weights(pairwise)

        def loss_and_gradient(w: Array) -> tuple[float, Array]:
            result = metric.at(w)
            is_defined = ~np.isnan(result.values)
            value = result.values[is_defined].mean() - strength * ((w - start) ** 2).sum()
            gradient = result.gradients[is_defined].mean(axis=0) - 2 * strength * (w - start)
            return -float(value), -gradient

        options = {"maxiter": MAX_ITERATIONS, "ftol": TOLERANCE}
        optimum = minimize(loss_and_gradient, start, jac=True, method="L-BFGS-B", options=options).x
        result = metric.at(optimum)
        is_defined = ~np.isnan(result.values)
        hessian = _mean_hessian(metric, optimum, result.gradients[is_defined].mean(axis=0))
        curvature = _concave_part(hessian) + 2 * strength * np.eye(len(optimum))
        return cls(strength, optimum, result.gradients, is_defined, curvature)

    def weights(self, counts: NDArray[np.intp], pairwise: Array) -> Array:
        """Weights for units that count several times, shape (n_members,).

        Parameters
        ----------
        counts : ndarray of int of shape (n_units,)
            How often each unit counts.
        pairwise : ndarray of shape (n_members,)
            Weights that count pairs, for the same counts.
        """
        counts = counts * self.is_defined
        mean_gradient = counts @ self.gradients / max(counts.sum(), 1)
        return self._newton_step(mean_gradient, pairwise)

    def weights_without_units(self, counts: NDArray[np.intp], pairwise: Array) -> Array:
        """The same without each unit, shape (n_units, n_members).

        Parameters
        ----------
        counts : ndarray of int of shape (n_units,)
            How often each unit counts.
        pairwise : ndarray of shape (n_units, n_members)
            Weights that count pairs, without each unit.
        """
        counts = counts * self.is_defined
        remaining = np.maximum(counts.sum() - counts, 1)
        total = counts @ self.gradients - counts[:, None] * self.gradients
        return self._newton_step(total / remaining[:, None], pairwise)

    def _newton_step(self, mean_gradient: Array, pairwise: Array) -> Array:
        distance = self.optimum - scaled_weights(pairwise)
        gradient = mean_gradient - 2 * self.strength * distance
        step = np.linalg.solve(self.curvature, gradient.T).T
        return np.asarray(self.optimum + step)


def _mean_hessian(metric: SmoothMetric, w: Array, gradient: Array) -> Array:
    """Hessian of the mean of the metric, by differences to its gradient at w."""
    rows = []
    for direction in DIFFERENCE * np.eye(len(w)):
        result = metric.at(w + direction)
        is_defined = ~np.isnan(result.values)
        rows.append((result.gradients[is_defined].mean(axis=0) - gradient) / DIFFERENCE)
    hessian = np.stack(rows)
    return np.asarray((hessian + hessian.T) / 2)


def _concave_part(hessian: Array) -> Array:
    """The negative of a symmetric matrix, without its negative eigenvalues."""
    values, vectors = np.linalg.eigh(-hessian)
    return np.asarray((vectors * np.maximum(values, 0.0)) @ vectors.T)
