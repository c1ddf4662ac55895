"""Probabilities of a win, a tie and a loss as functions of the margin, in three models of ties.

The margin m is in logits: without ties the first item wins with the probability σ(m).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import NamedTuple

import numpy as np
from scipy.special import expit

from rankwise.arrays import Array


class Derivatives(NamedTuple):
    """Minus the log likelihood of each verdict, and its derivatives in m and in θ.

    Attributes
    ----------
    value, m, mm : ndarray
        The loss, its slope and its curvature in the margin.
    t, mt, tt : ndarray
        Derivatives that have the parameter θ of the ties; 0 if there is none.
    """

    value: Array
    m: Array
    mm: Array
    t: Array
    mt: Array
    tt: Array


class Verdicts(ABC):
    """A model of wins (1), ties (0) and losses (−1) of the first item."""

    has_parameter = True

    @abstractmethod
    def at(self, margin: Array, said: Array, theta: Array | float) -> Derivatives:
        """Loss and derivatives of each verdict; one θ for all of them, or one for each."""

    @abstractmethod
    def probabilities(self, margin: Array, theta: Array | float) -> Array:
        """Of a win, a tie and a loss, along a last axis of length 3."""

    def start(self, tied: float) -> float:
        """θ if all margins were 0 and this share of the verdicts ties."""
        return 0.0


class HalfWins(Verdicts):
    """Bradley and Terry 1952: P(win) = σ(m). A tie is half a win and half a loss."""

    has_parameter = False

    def at(self, margin: Array, said: Array, theta: Array | float) -> Derivatives:
        """``−log σ(m)``, ``−log σ(−m)``, or their mean for a tie."""
        away, zero = np.exp(-np.abs(margin)), np.zeros_like(margin)
        likely = 1 / (1 + away)
        rare, is_ahead = away * likely, margin >= 0
        wins, losses = np.where(is_ahead, likely, rare), np.where(is_ahead, rare, likely)
        value = np.log1p(away) + np.where(
            said == 0, 0.5 * np.abs(margin), np.maximum(-said * margin, 0.0)
        )
        slope = np.where(said > 0, -losses, np.where(said < 0, wins, wins - 0.5))
        return Derivatives(value, slope, likely * rare, zero, zero, zero)

    def probabilities(self, margin: Array, theta: Array | float) -> Array:
        """No verdict is a tie."""
        return np.stack([expit(margin), np.zeros_like(margin), expit(-margin)], axis=-1)


class Davidson(Verdicts):
    """Davidson 1970: win, tie and loss are as ``e^(m/2) : ν : e^(−m/2)``, with ν = e^θ."""

    def at(self, margin: Array, said: Array, theta: Array | float) -> Derivatives:
        """Convex in m and θ: the log of a sum of exponentials less a linear function."""
        top = np.maximum(0.5 * np.abs(margin), theta)
        win, tie, loss = self._shares(margin, theta, top)
        total = win + tie + loss
        value = top + np.log(total) - np.where(said == 0, theta, 0.5 * said * margin)
        win, tie, loss = win / total, tie / total, loss / total
        slope = np.where(said > 0, -(loss + 0.5 * tie), 0.5 * (win - loss))
        slope = np.where(said < 0, win + 0.5 * tie, slope)
        bend = 0.25 * (win * (loss + tie) + loss * (win + tie) + 2 * win * loss)
        return Derivatives(
            value,
            slope,
            bend,
            np.where(said == 0, -(win + loss), tie),
            -0.5 * tie * (win - loss),
            tie * (win + loss),
        )

    def probabilities(self, margin: Array, theta: Array | float) -> Array:
        """A tie is likeliest between equals."""
        shares = np.stack(
            self._shares(margin, theta, np.maximum(0.5 * np.abs(margin), theta)), axis=-1
        )
        return np.asarray(shares / shares.sum(axis=-1, keepdims=True))

    def start(self, tied: float) -> float:
        """ν/(2 + ν) is the share."""
        return float(np.log(2 * tied / (1 - tied)))

    @staticmethod
    def _shares(margin: Array, theta: Array | float, top: Array) -> tuple[Array, Array, Array]:
        half = 0.5 * margin
        return np.exp(half - top), np.exp(theta - top), np.exp(-half - top)


class RaoKupper(Verdicts):
    """Rao and Kupper 1967: P(win) = σ(m − θ), P(loss) = σ(−m − θ), a tie the rest; η = e^θ ≥ 1."""

    def at(self, margin: Array, said: Array, theta: Array | float) -> Derivatives:
        """Convex in m and θ; infinite for a tie with θ ≤ 0."""
        if np.any(np.less_equal(theta, 0)):
            bad = np.full_like(margin, np.inf)
            return Derivatives(bad, bad, bad, bad, bad, bad)
        not_win, not_loss = expit(theta - margin), expit(theta + margin)
        one, two = np.logaddexp(0.0, theta - margin), np.logaddexp(0.0, theta + margin)
        is_tie, first, second = said == 0, said >= 0, said <= 0
        not_win, not_loss = np.where(first, not_win, 0.0), np.where(second, not_loss, 0.0)
        value = np.where(first, one, 0.0) + np.where(second, two, 0.0)
        value -= np.where(is_tie, 2 * theta + np.log(-np.expm1(-2 * theta)), 0.0)
        bend_win, bend_loss = not_win * (1 - not_win), not_loss * (1 - not_loss)
        rest = -np.expm1(-2 * theta)
        return Derivatives(
            value,
            not_loss - not_win,
            bend_win + bend_loss,
            not_win + not_loss - np.where(is_tie, 2 / rest, 0.0),
            bend_loss - bend_win,
            bend_win + bend_loss + np.where(is_tie, 4 * (1 - rest) / rest**2, 0.0),
        )

    def probabilities(self, margin: Array, theta: Array | float) -> Array:
        """A tie is between the two thresholds."""
        win, loss = expit(margin - theta), expit(-margin - theta)
        tie = win * loss * np.expm1(2 * theta)
        return np.stack([win, tie, loss], axis=-1)

    def start(self, tied: float) -> float:
        """(η − 1)/(η + 1) is the share."""
        return float(np.log((1 + tied) / (1 - tied)))


VERDICTS: dict[str, type[Verdicts]] = {
    "half": HalfWins,
    "davidson": Davidson,
    "rao-kupper": RaoKupper,
}


def verdicts_of(ties: str) -> Verdicts:
    """The model of this name."""
    return VERDICTS[ties]()
