"""Likelihood of wins, ties and losses."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from rankwise.arrays import Array


def are_verdicts(outcome: Array) -> bool:
    """Whether all outcomes are wins, ties and losses: 1, 0 and −1."""
    return bool(np.isin(outcome, [-1.0, 0.0, 1.0]).all())


class Derivatives(NamedTuple):
    """Minus the log likelihood of each outcome, and its derivatives in the margin m and in θ.

    Attributes
    ----------
    value, m, mm : ndarray
        The loss, its slope and its curvature in the margin.
    t, mt, tt : ndarray
        Derivatives that involve the parameter θ of the ties; 0 if there is none.
    """

    value: Array
    m: Array
    mm: Array
    t: Array
    mt: Array
    tt: Array


class _Powers(NamedTuple):
    """``e^(m/2), ν, e^(−m/2)``, each divided by ``e^top``, where top is the largest exponent."""

    win: Array
    tie: Array
    loss: Array
    top: Array


class OutcomeLikelihood:
    """Win, tie and loss have probabilities in the ratio ``e^(m/2) : ν : e^(−m/2)``.

    With ν = e^θ this is the model of Davidson (1970). Without the parameter ν is 0, P(win) = σ(m),
    and a tie is half a win and half a loss (Bradley and Terry 1952).

    Parameters
    ----------
    has_parameter : bool
        Whether ties have a probability of their own.
    """

    def __init__(self, has_parameter: bool) -> None:
        self.has_parameter = has_parameter

    def at(self, margin: Array, outcome: Array, theta: Array | float) -> Derivatives:
        """Loss and derivatives for outcomes 1, 0 and −1; convex in m and θ."""
        win, tie, loss, top = self._powers(margin, theta)
        # The sum of the powers without the largest one, which is 1.
        others = np.where(tie == 1, win + loss, tie + np.minimum(win, loss))
        total = 1 + others
        tie_exponent = theta if self.has_parameter else 0.0
        is_tie = outcome == 0
        exponent = np.where(is_tie, tie_exponent, 0.5 * outcome * margin)
        value = (top - exponent) + np.log1p(others)

        p_win = win / total
        p_tie = tie / total
        p_loss = loss / total
        slope = np.where(outcome > 0, -(p_loss + 0.5 * p_tie), 0.5 * (p_win - p_loss))
        slope = np.where(outcome < 0, p_win + 0.5 * p_tie, slope)
        variance = p_win * (p_loss + p_tie) + p_loss * (p_win + p_tie) + 2 * p_win * p_loss
        return Derivatives(
            value=value,
            m=slope,
            mm=0.25 * variance,
            t=np.where(is_tie, -(p_win + p_loss), p_tie) * self.has_parameter,
            mt=-0.5 * p_tie * (p_win - p_loss),
            tt=p_tie * (p_win + p_loss),
        )

    def probabilities(self, margin: Array, theta: Array | float) -> Array:
        """Probabilities of win, tie and loss along the last axis."""
        powers = self._powers(margin, theta)
        shares = np.stack([powers.win, powers.tie, powers.loss], axis=-1)
        return np.asarray(shares / shares.sum(axis=-1, keepdims=True))

    def _powers(self, margin: Array, theta: Array | float) -> _Powers:
        tie_exponent = theta if self.has_parameter else -np.inf
        top = np.maximum(0.5 * np.abs(margin), tie_exponent)
        return _Powers(
            win=np.exp(0.5 * margin - top),
            tie=np.exp(tie_exponent - top),
            loss=np.exp(-0.5 * margin - top),
            top=top,
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
        return self.likelihood.at(margins, outcome, self.theta)

    def expected(self, margins: Array) -> Array:
        """Probability of a win minus that of a loss."""
        probabilities = self.probabilities(margins)
        return np.asarray(probabilities[..., 0] - probabilities[..., 2])

    def variances(self, margins: Array) -> Array:
        """Variance of the outcomes 1, 0 and −1."""
        win, tie, loss = np.moveaxis(self.probabilities(margins), -1, 0)
        return np.asarray(win * (tie + loss) + loss * (tie + win) + 2 * win * loss)
