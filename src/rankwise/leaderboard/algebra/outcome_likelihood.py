"""Likelihood of wins, ties and losses."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from rankwise.arrays import Array


def are_verdicts(outcome: Array) -> bool:
    """Whether all outcomes are wins, ties and losses: 1, 0 and −1."""
    return bool(np.isin(outcome, [-1.0, 0.0, 1.0]).all())


class Derivatives(NamedTuple):
    """Minus the log likelihood of each outcome, and its derivatives in the margin and in θ.

    Attributes
    ----------
    loss, slope, curvature : ndarray
        The loss and its first and second derivative in the margin.
    theta_slope, mixed_curvature, theta_curvature : ndarray
        Derivatives that involve the parameter θ of the ties; 0 if there is none.
    """

    loss: Array
    slope: Array
    curvature: Array
    theta_slope: Array
    mixed_curvature: Array
    theta_curvature: Array


class _Powers(NamedTuple):
    """``e^(m/2), ν, e^(−m/2)``, each divided by ``e^largest_exponent``, so that none overflows."""

    win: Array
    tie: Array
    loss: Array
    largest_exponent: Array


class OutcomeLikelihood:
    """Win, tie and loss have probabilities in the ratio ``e^(m/2) : ν : e^(−m/2)``.

    With ν = e^θ this is the model of Davidson (1970). Without the parameter ν is 0, P(win) = σ(m),
    and a tie is half a win and half a loss (Bradley and Terry 1952).

    Parameters
    ----------
    has_tie_parameter : bool
        Whether ties have their own probability.
    """

    def __init__(self, has_tie_parameter: bool) -> None:
        self.has_tie_parameter = has_tie_parameter

    def derivatives(self, margin: Array, outcome: Array, theta: Array | float) -> Derivatives:
        """Loss and derivatives for outcomes 1, 0 and −1; convex in m and θ."""
        # Probabilities are in the ratio of the powers e^(m/2), ν = e^θ and e^(−m/2) of a win, a tie
        # and a loss; here they are divided by the largest one.
        win, tie, loss, largest_exponent = self._powers(margin, theta)

        # The largest of the three powers is 1. Adding the other two first keeps small ones exact.
        sum_of_others = np.where(tie == 1, win + loss, tie + np.minimum(win, loss))
        total = 1 + sum_of_others

        # Minus the log of the probability: log(sum of the powers) − exponent of the outcome.
        is_tie = outcome == 0
        tie_exponent = theta if self.has_tie_parameter else 0.0
        exponent_of_outcome = np.where(is_tie, tie_exponent, 0.5 * outcome * margin)
        negative_log_likelihood = (largest_exponent - exponent_of_outcome) + np.log1p(sum_of_others)

        # Derivatives with respect to the margin and to θ.
        p_win = win / total
        p_tie = tie / total
        p_loss = loss / total
        slope_of_tie = 0.5 * (p_win - p_loss)
        slope = np.where(outcome > 0, -(p_loss + 0.5 * p_tie), slope_of_tie)
        slope = np.where(outcome < 0, p_win + 0.5 * p_tie, slope)
        # Variance of the outcomes 1, 0 and −1, without cancellation.
        outcome_variance = p_win * (p_loss + p_tie) + p_loss * (p_win + p_tie) + 2 * p_win * p_loss
        theta_slope = np.where(is_tie, -(p_win + p_loss), p_tie) * self.has_tie_parameter
        return Derivatives(
            loss=negative_log_likelihood,
            slope=slope,
            curvature=0.25 * outcome_variance,  # the exponents contain half of the margin
            theta_slope=theta_slope,
            mixed_curvature=-0.5 * p_tie * (p_win - p_loss),
            theta_curvature=p_tie * (p_win + p_loss),
        )

    def probabilities(self, margin: Array, theta: Array | float) -> Array:
        """Probabilities of win, tie and loss along the last axis."""
        powers = self._powers(margin, theta)
        shares = np.stack([powers.win, powers.tie, powers.loss], axis=-1)
        return np.asarray(shares / shares.sum(axis=-1, keepdims=True))

    def _powers(self, margin: Array, theta: Array | float) -> _Powers:
        # e^(m/2), e^θ and e^(−m/2), divided by the largest one, so that none overflows. Without the
        # parameter of the ties e^θ is 0.
        tie_exponent = theta if self.has_tie_parameter else -np.inf  # e^−∞ = 0
        largest_exponent = np.maximum(0.5 * np.abs(margin), tie_exponent)
        return _Powers(
            win=np.exp(0.5 * margin - largest_exponent),
            tie=np.exp(tie_exponent - largest_exponent),
            loss=np.exp(-0.5 * margin - largest_exponent),
            largest_exponent=largest_exponent,
        )


class OutcomeCurve(NamedTuple):
    """Fitted probabilities of win, tie and loss as functions of the margin.

    Attributes
    ----------
    likelihood : OutcomeLikelihood
        Formula of the probabilities.
    theta : float
        Log of the parameter ν of the ties; 0 without the parameter.
    """

    likelihood: OutcomeLikelihood
    theta: float = 0.0

    def probabilities(self, margins: Array) -> Array:
        """Probabilities of win, tie and loss along the last axis."""
        return self.likelihood.probabilities(margins, self.theta)

    def derivatives(self, margins: Array, outcome: Array) -> Derivatives:
        """Loss of outcomes and its derivatives."""
        return self.likelihood.derivatives(margins, outcome, self.theta)

    def expected(self, margins: Array) -> Array:
        """Probability of a win minus that of a loss."""
        probabilities = self.probabilities(margins)
        p_win = probabilities[..., 0]
        p_loss = probabilities[..., 2]
        return np.asarray(p_win - p_loss)

    def variances(self, margins: Array) -> Array:
        """Variance of the outcomes 1, 0 and −1."""
        # Variance of the outcomes 1 (win), 0 (tie) and −1 (loss), without cancellation.
        win, tie, loss = np.moveaxis(self.probabilities(margins), -1, 0)
        return np.asarray(win * (tie + loss) + loss * (tie + win) + 2 * win * loss)
