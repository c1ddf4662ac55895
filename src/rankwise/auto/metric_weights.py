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

STRENGTHS = (1.0, 0.1)  # penalties of the distance to the weights that count pairs
WEIGHT_SUM = 2.0  # Σ|w|, so that a strength means the same for any number of members
MAX_ITERATIONS = 50  # of L-BFGS; 10 to 20 are usual
DIFFERENCE = 1e-2  # step of the finite differences of gradients
TOLERANCE = 1e-5  # of the objective, relative


def scaled_weights(weights: Array) -> Array:
    """Weights with Σ|w| = 2 along the last axis; zero weights stay zero."""
    absolute_sum = np.abs(weights).sum(axis=-1, keepdims=True)
    return WEIGHT_SUM * weights / np.where(absolute_sum > 0, absolute_sum, 1.0)  # zeros stay


@dataclass(frozen=True, eq=False)
class MetricWeights:
    """Weights that maximize a smooth metric, for one strength.

    Attributes
    ----------
    pull_strength : float
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

    pull_strength: float
    optimum: Array
    gradients: Array
    is_defined: NDArray[np.bool_]
    curvature: Array

    @classmethod
    def fit(
        cls, metric: SmoothMetric, pairwise_weights: Array, pull_strength: float
    ) -> MetricWeights:
        """Maximize the metric, starting from the weights that count pairs."""
        # maximize mean metric − pull_strength · ‖weights − start‖²
        start = scaled_weights(pairwise_weights)

        def loss_and_gradient(weights: Array) -> tuple[float, Array]:
            """Negative mean of the metric plus the pull to the start, and its gradient."""
            result = metric.evaluate_at(weights)
            is_defined = ~np.isnan(result.values)
            departure = weights - start
            mean_metric = result.values[is_defined].mean()
            objective = mean_metric - pull_strength * (departure**2).sum()
            mean_gradient = result.gradients[is_defined].mean(axis=0)
            return -float(objective), -(mean_gradient - 2 * pull_strength * departure)

        options = {"maxiter": MAX_ITERATIONS, "ftol": TOLERANCE}
        optimum = minimize(loss_and_gradient, start, jac=True, method="L-BFGS-B", options=options).x
        result = metric.evaluate_at(optimum)
        is_defined = ~np.isnan(result.values)
        mean_gradient = result.gradients[is_defined].mean(axis=0)

        # negative Hessian of the objective, for Newton steps from the optimum
        hessian = _mean_hessian(metric, optimum, mean_gradient)
        curvature = _concave_part(hessian) + 2 * pull_strength * np.eye(len(optimum))
        return cls(pull_strength, optimum, result.gradients, is_defined, curvature)

    def member_weights(self, unit_counts: NDArray[np.intp], pairwise_weights: Array) -> Array:
        """Weights for units that count several times, shape (..., n_members).

        Parameters
        ----------
        unit_counts : ndarray of int of shape (..., n_units)
            How often each unit counts.
        pairwise_weights : ndarray of shape (..., n_members)
            Weights that count pairs, for the same counts.
        """
        # gradient of the mean metric over the counted units, each as often as it counts
        unit_counts = unit_counts * self.is_defined
        n_counted = np.maximum(unit_counts.sum(axis=-1, keepdims=True), 1)
        mean_gradient = unit_counts @ self.gradients / n_counted
        return self._newton_step(mean_gradient, pairwise_weights)

    def weights_without_each_unit(
        self, unit_counts: NDArray[np.intp], pairwise_weights: Array
    ) -> Array:
        """The same without each unit, shape (..., n_units, n_members).

        Parameters
        ----------
        unit_counts : ndarray of int of shape (..., n_units)
            How often each unit counts.
        pairwise_weights : ndarray of shape (..., n_units, n_members)
            Weights that count pairs, without each unit.
        """
        unit_counts = unit_counts * self.is_defined

        # gradient of the mean metric over the other units, (..., n_units, n_members)
        n_remaining = np.maximum(unit_counts.sum(axis=-1, keepdims=True) - unit_counts, 1)
        gradients_of_units = unit_counts[..., None] * self.gradients
        sum_of_gradients = (unit_counts @ self.gradients)[..., None, :]
        mean_gradient = (sum_of_gradients - gradients_of_units) / n_remaining[..., None]
        return self._newton_step(mean_gradient, pairwise_weights)

    def _newton_step(self, mean_gradient: Array, pairwise_weights: Array) -> Array:
        """Weights one Newton step from the optimum, for other gradients of the metric.

        Parameters
        ----------
        mean_gradient : ndarray of shape (..., n_members)
            Gradients of the mean metric at the optimum.
        pairwise_weights : ndarray of shape (..., n_members)
            Weights that count pairs, to which the objective pulls.
        """
        # optimum + curvature⁻¹ gradient, for the gradient of metric − pull to the pairwise weights
        pull = 2 * self.pull_strength * (self.optimum - scaled_weights(pairwise_weights))
        gradient_of_objective = (mean_gradient - pull).reshape(-1, len(self.optimum))
        steps = np.linalg.solve(self.curvature, gradient_of_objective.T).T
        return np.asarray(self.optimum + steps.reshape(mean_gradient.shape))


def _mean_hessian(metric: SmoothMetric, weights: Array, mean_gradient: Array) -> Array:
    """Hessian of the mean of the metric, by finite differences of its gradient.

    Parameters
    ----------
    metric : SmoothMetric
        The metric.
    weights : ndarray of shape (n_members,)
        Where the Hessian is computed.
    mean_gradient : ndarray of shape (n_members,)
        Gradient of the mean at these weights.
    """
    # one row of the Hessian per weight: change of the gradient by a small step of the weight
    rows = []
    for step in DIFFERENCE * np.eye(len(weights)):
        shifted = metric.evaluate_at(weights + step)
        is_defined = ~np.isnan(shifted.values)
        shifted_gradient = shifted.gradients[is_defined].mean(axis=0)
        rows.append((shifted_gradient - mean_gradient) / DIFFERENCE)
    hessian = np.stack(rows)
    return np.asarray((hessian + hessian.T) / 2)  # the differences are symmetric only roughly


def _concave_part(hessian: Array) -> Array:
    """The negative of a symmetric matrix, without its negative eigenvalues."""
    # negative Hessian without negative eigenvalues: −H = V Λ Vᵀ becomes V max(Λ, 0) Vᵀ
    eigenvalues, eigenvectors = np.linalg.eigh(-hessian)
    return np.asarray((eigenvectors * np.maximum(eigenvalues, 0.0)) @ eigenvectors.T)
