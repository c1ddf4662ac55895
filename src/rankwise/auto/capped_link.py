"""Probabilities of comparisons from differences of scores, and linear models of them.

The capped link is ``P = c + (1 − 2c) σ(s)``: an upset is possible at any difference. With c = 0 it
is the logistic link. The capped loss is not convex, so its minimization starts at the logistic
solution.
"""

from __future__ import annotations

from typing import NamedTuple, Protocol

import numpy as np
import scipy.linalg
from scipy.special import expit, xlogy

from rankwise.arrays import Array

MAX_STEPS = 60
MAX_HALVINGS = 20
TOLERANCE = 1e-6  # of the objective, by which a last step lowers it
LEAST_PROBABILITY = 1e-15


class Outcomes(NamedTuple):
    """Results of comparisons.

    Attributes
    ----------
    share : ndarray of shape (n_comparisons,)
        1 if the first item won, 0 if the second one did, and 1/2 for a tie.
    weight : ndarray of shape (n_comparisons,)
        Weights of the comparisons.
    """

    share: Array
    weight: Array


class Derivatives(NamedTuple):
    """Gradient and Fisher information of the loss with respect to each difference of scores."""

    gradient: Array
    information: Array


class LinearDesign(Protocol):
    """Differences of scores that are linear in coefficients."""

    n_coefficients: int

    def differences(self, coefficients: Array) -> Array:
        """The difference of scores of each comparison."""

    def gradient(self, residuals: Array) -> Array:
        """Transposed design times one number per comparison."""

    def gram(self, weight: Array) -> Array:
        """Transposed design times the weighted design."""


def win_probability(differences: Array, cap: float) -> Array:
    """Probability that the first item wins; that of swapped sides adds up to exactly 1."""
    favored = cap + (1 - 2 * cap) * expit(np.abs(differences))
    return np.asarray(np.where(differences < 0, 1 - favored, favored))


def as_log_odds(differences: Array, cap: float) -> Array:
    """Log odds of a first win; swapped sides have the opposite number."""
    if cap == 0:
        return differences
    favored = win_probability(np.abs(differences), cap)
    return np.asarray(np.sign(differences) * np.log(favored / (1 - favored)))


def log_losses(differences: Array, share: Array, cap: float) -> Array:
    """Log loss of each comparison."""
    if cap == 0:
        losses: Array = np.logaddexp(0.0, differences) - share * differences
        return losses
    first = np.clip(win_probability(differences, cap), LEAST_PROBABILITY, None)
    second = np.clip(win_probability(-differences, cap), LEAST_PROBABILITY, None)
    return np.asarray(-xlogy(share, first) - xlogy(1 - share, second))


def wrong_shares(differences: Array, share: Array) -> Array:
    """1 for a comparison with the wrong winner, 1/2 for equal scores, and NaN for a tie."""
    predicted = 0.5 + 0.5 * np.sign(differences)
    return np.where(share == 0.5, np.nan, np.abs(predicted - share))


def link_derivatives(differences: Array, outcomes: Outcomes, cap: float) -> Derivatives:
    """Derivatives of the weighted log loss; the information replaces the second derivative."""
    logistic = expit(differences)
    slope = (1 - 2 * cap) * logistic * (1 - logistic)
    if cap == 0:
        return Derivatives(outcomes.weight * (logistic - outcomes.share), outcomes.weight * slope)
    probability = cap + (1 - 2 * cap) * logistic
    variance = probability * (1 - probability)
    gradient = slope * (probability - outcomes.share) / variance
    return Derivatives(outcomes.weight * gradient, outcomes.weight * slope**2 / variance)


def fit_coefficients(
    design: LinearDesign,
    outcomes: Outcomes,
    alpha: float,
    cap: float = 0.0,
    start: Array | None = None,
) -> Array:
    """Minimize the log loss plus ``alpha/2 |w|²`` by Fisher scoring with step halving.

    Parameters
    ----------
    design : LinearDesign
        The linear model.
    outcomes : Outcomes
        Results of the comparisons.
    alpha : float
        Ridge penalty, relative to the sum of the losses.
    cap : float, default=0.0
        The c of the capped link.
    start : ndarray of shape (n_coefficients,), optional
        Coefficients to start from.

    Returns
    -------
    ndarray of shape (n_coefficients,)
        The coefficients.
    """
    coefficients = np.zeros(design.n_coefficients)
    if start is not None:
        coefficients = start

    def objective(candidate: Array) -> float:
        losses = log_losses(design.differences(candidate), outcomes.share, cap)
        return float(outcomes.weight @ losses + alpha / 2 * candidate @ candidate)

    value = objective(coefficients)
    for _ in range(MAX_STEPS):
        derivatives = link_derivatives(design.differences(coefficients), outcomes, cap)
        gradient = design.gradient(derivatives.gradient) + alpha * coefficients
        system = design.gram(derivatives.information)
        system[np.diag_indices_from(system)] += alpha
        step = scipy.linalg.solve(system, gradient, assume_a="pos")
        size = 1.0
        for _ in range(MAX_HALVINGS):
            candidate = coefficients - size * step
            candidate_value = objective(candidate)
            if candidate_value <= value:
                break
            size /= 2
        decrease = value - candidate_value
        if decrease <= 0:
            break
        coefficients = candidate
        value = candidate_value
        if decrease <= TOLERANCE * value:
            break
    return np.asarray(coefficients)
