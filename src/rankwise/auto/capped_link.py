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
TOLERANCE = 1e-6  # relative decrease of the objective below which the search stops
LEAST_PROBABILITY = 1e-15


class Outcomes(NamedTuple):
    """Results of comparisons.

    Attributes
    ----------
    first_win_share : ndarray of shape (n_comparisons,)
        1 if the first item won, 0 if the second one did, and 1/2 for a tie.
    weight : ndarray of shape (n_comparisons,)
        Weights of the comparisons.
    """

    first_win_share: Array
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


def win_probability(differences: Array, min_upset_probability: float) -> Array:
    """Probability that the first item wins; that of swapped sides adds up to exactly 1."""
    # logistic, but the favorite loses with at least this probability, for any difference
    probability_of_favorite = min_upset_probability + (1 - 2 * min_upset_probability) * expit(
        np.abs(differences)
    )
    is_second_favorite = differences < 0  # 1 − p: both sides add up to exactly 1
    return np.asarray(
        np.where(is_second_favorite, 1 - probability_of_favorite, probability_of_favorite)
    )


def as_log_odds(differences: Array, min_upset_probability: float) -> Array:
    """Log odds of a first win; swapped sides have the opposite number."""
    if min_upset_probability == 0:  # differences of a logistic model are log odds
        return differences
    probability_of_favorite = win_probability(np.abs(differences), min_upset_probability)
    odds_of_favorite = probability_of_favorite / (1 - probability_of_favorite)
    return np.asarray(np.sign(differences) * np.log(odds_of_favorite))


def log_losses(differences: Array, first_win_share: Array, min_upset_probability: float) -> Array:
    """Log loss of each comparison."""
    # cross-entropy of the share of wins of the first item and its probability
    if min_upset_probability == 0:  # log(1 + exp(s)) − share s, without overflow
        losses: Array = np.logaddexp(0.0, differences) - first_win_share * differences
        return losses
    first_wins = win_probability(differences, min_upset_probability)
    second_wins = win_probability(-differences, min_upset_probability)
    # no logarithm of 0
    first_wins = np.clip(first_wins, LEAST_PROBABILITY, None)
    second_wins = np.clip(second_wins, LEAST_PROBABILITY, None)
    return np.asarray(-xlogy(first_win_share, first_wins) - xlogy(1 - first_win_share, second_wins))


def wrong_shares(differences: Array, first_win_share: Array) -> Array:
    """1 for a comparison with the wrong winner, 1/2 for equal scores, and NaN for a tie."""
    predicted_share = 0.5 + 0.5 * np.sign(differences)
    is_tie = first_win_share == 0.5  # no order of a tie is wrong
    return np.where(is_tie, np.nan, np.abs(predicted_share - first_win_share))


def link_derivatives(
    differences: Array, outcomes: Outcomes, min_upset_probability: float
) -> Derivatives:
    """Derivatives of the weighted log loss; the information replaces the second derivative."""
    logistic = expit(differences)
    # p = c + (1 − 2c) σ(difference), for the probability c of an upset
    probability = min_upset_probability + (1 - 2 * min_upset_probability) * logistic
    derivative_of_probability = (1 - 2 * min_upset_probability) * logistic * (1 - logistic)
    residual = probability - outcomes.first_win_share
    if min_upset_probability == 0:  # logistic regression, where p' equals the variance
        gradient = residual
        information = derivative_of_probability
    else:  # gradient p' (p − y) / (p (1 − p)), expected curvature p'² / (p (1 − p))
        variance = probability * (1 - probability)  # of an outcome
        gradient = derivative_of_probability * residual / variance
        information = derivative_of_probability**2 / variance
    return Derivatives(outcomes.weight * gradient, outcomes.weight * information)


def fit_coefficients(
    design: LinearDesign,
    outcomes: Outcomes,
    alpha: float,
    min_upset_probability: float = 0.0,
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
    min_upset_probability : float, default=0.0
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
        losses = log_losses(
            design.differences(candidate), outcomes.first_win_share, min_upset_probability
        )
        return float(outcomes.weight @ losses + alpha / 2 * candidate @ candidate)

    value = objective(coefficients)
    for _ in range(MAX_STEPS):
        # Fisher scoring: Newton's step with the expected Hessian
        derivatives = link_derivatives(
            design.differences(coefficients), outcomes, min_upset_probability
        )
        gradient = design.gradient(derivatives.gradient) + alpha * coefficients
        expected_hessian = design.gram(derivatives.information)
        expected_hessian[np.diag_indices_from(expected_hessian)] += alpha
        full_step = scipy.linalg.solve(expected_hessian, gradient, assume_a="pos")

        # halve the step until it does not raise the objective
        step_length = 1.0
        for _ in range(MAX_HALVINGS):
            candidate = coefficients - step_length * full_step
            candidate_value = objective(candidate)
            if candidate_value <= value:
                break
            step_length /= 2

        decrease = value - candidate_value
        if decrease <= 0:  # no step lowers the objective
            break
        coefficients = candidate
        value = candidate_value
        if decrease <= TOLERANCE * value:
            break
    return np.asarray(coefficients)
