"""From a difference and its standard error to the probability that the one item is above."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.optimize import minimize
from scipy.special import expit

from rankwise.arrays import Array

SURE = 1e4  # slope per typical difference from which on every probability is 0 or 1


class ProbabilityMap(NamedTuple):
    """``P(i above j) = σ(s d / √(1 + c e²))`` for a difference d with standard error e.

    A logistic curve, flatter where the difference is not known well; MacKay's formula for a
    logistic curve averaged over a normal distribution of d is this with c = π s²/8. It is
    ½ for d = 0, rises with d, and P(i above j) + P(j above i) = 1.

    Attributes
    ----------
    slope : float
        s.
    error_weight : float
        c.
    """

    slope: float
    error_weight: float

    def probability(self, difference: Array, error: Array) -> Array:
        """P for each difference and its standard error."""
        return np.asarray(
            expit(self.slope * difference / np.sqrt(1 + self.error_weight * error**2))
        )


def fit_map(difference: Array, error: Array) -> ProbabilityMap:
    """The map of least logarithmic loss on pairs whose first item is the better one.

    The targets are (n + 1)/(n + 2) instead of 1 for n pairs, as in Platt's scaling, so that pairs
    without a mistake do not make the slope infinite.
    """
    scale = float(np.sqrt(np.mean(difference**2)))
    if scale == 0:
        return ProbabilityMap(0.0, 0.0)
    d, e = difference / scale, error / scale
    target = (len(d) + 1) / (len(d) + 2)

    def loss(parameters: Array) -> tuple[float, Array]:
        s, c = parameters
        width = 1 + c * e**2
        z = s * d / np.sqrt(width)
        pull = expit(z) - target
        value = np.mean(np.logaddexp(0, -z) + (1 - target) * z)
        by_s, by_c = pull * d / np.sqrt(width), -0.5 * pull * z * e**2 / width
        return float(value), np.array([np.mean(by_s), np.mean(by_c)])

    bounds = [(0.0, SURE), (0.0, SURE)]
    starts = [(1.0, 0.0), (2.0, 1.0)]
    found = [minimize(loss, start, jac=True, bounds=bounds, method="L-BFGS-B") for start in starts]
    s, c = min(found, key=lambda result: float(result.fun)).x
    return ProbabilityMap(float(s / scale), float(c / scale**2))


class Reliability(NamedTuple):
    """How often the better item was the one of which a probability said so, by probability.

    Attributes
    ----------
    predicted, observed : ndarray of shape (n_bins,)
        Mean probability and share of a bin. Of each pair that item is looked at which has a
        probability of at least one half.
    n_pairs : ndarray of shape (n_bins,)
        Pairs in the bin.
    """

    predicted: Array
    observed: Array
    n_pairs: Array


def reliability(probability: Array, n_bins: int = 10) -> Reliability:
    """Bins of about equal size of pairs whose first item is the better one.

    Parameters
    ----------
    probability : ndarray of shape (n_pairs,)
        That the first item is above.
    n_bins : int
        At most so many.
    """
    sure = np.maximum(probability, 1 - probability)
    right = np.where(probability == 0.5, 0.5, probability > 0.5)
    order = np.argsort(sure, kind="stable")
    bins = [some for some in np.array_split(order, n_bins) if len(some)]
    return Reliability(
        np.array([sure[some].mean() for some in bins]),
        np.array([right[some].mean() for some in bins]),
        np.array([float(len(some)) for some in bins]),
    )
