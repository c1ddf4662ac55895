"""Probabilities from differences of scores and their errors, and how reliable they are."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.optimize import minimize
from scipy.special import expit

from rankwise.arrays import Array

MAX_SLOPE = 1e4
"""Largest slope per typical difference; with it all probabilities are 0 or 1."""


class ProbabilityMap(NamedTuple):
    """``P(i above j) = σ(s d / √(1 + c e²))`` for a difference d with standard error e.

    A logistic function that is flatter for uncertain differences. MacKay's formula for a logistic
    function averaged over a normal distribution of d has this form with c = π s²/8. It is ½ for
    d = 0, rises with d, and P(i above j) + P(j above i) = 1.

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
        """Return P for each difference and its standard error."""
        # The logistic function of the difference, flatter where its standard error is larger
        width = np.sqrt(1 + self.error_weight * error**2)
        return np.asarray(expit(self.slope * difference / width))


def fit_probability_map(difference: Array, error: Array) -> ProbabilityMap:
    """Fit s and c by logarithmic loss to pairs whose first item is the better one.

    The target of n pairs is (n + 1)/(n + 2) instead of 1, as in Platt's scaling, so that the slope
    stays finite if all pairs are ordered correctly.
    """
    typical_difference = float(np.sqrt(np.mean(difference**2)))
    if typical_difference == 0:
        return ProbabilityMap(0.0, 0.0)
    d = difference / typical_difference
    e = error / typical_difference
    n_pairs = len(d)
    # The first item of each pair is the better one: the target is nearly 1, as in Platt's scaling
    target = (n_pairs + 1) / (n_pairs + 2)

    def loss_and_gradient(parameters: Array) -> tuple[float, Array]:
        # Cross entropy of P = σ(s d / √(1 + c e²)) with the target, and its gradient
        s, c = parameters
        squared_width = 1 + c * e**2
        width = np.sqrt(squared_width)
        z = s * d / width
        residual = expit(z) - target  # derivative by z
        # −t log P − (1 − t) log(1 − P) = log(1 + exp(−z)) + (1 − t) z, with the target t
        cross_entropy = np.mean(np.logaddexp(0, -z) + (1 - target) * z)
        # dz/ds = d / width, dz/dc = −½ z e² / width²
        derivative_by_s = np.mean(residual * d / width)
        derivative_by_c = np.mean(-0.5 * residual * z * e**2 / squared_width)
        return float(cross_entropy), np.array([derivative_by_s, derivative_by_c])

    starts = [(1.0, 0.0), (2.0, 1.0)]
    bounds = [(0.0, MAX_SLOPE), (0.0, MAX_SLOPE)]
    results = [minimize(loss_and_gradient, start, jac=True, bounds=bounds) for start in starts]
    best_result = min(results, key=lambda result: float(result.fun))
    slope, error_weight = best_result.x
    # Back to the units of the differences
    return ProbabilityMap(
        slope=float(slope / typical_difference),
        error_weight=float(error_weight / typical_difference**2),
    )


class Reliability(NamedTuple):
    """Share of pairs whose predicted item was the better one, by predicted probability.

    Attributes
    ----------
    predicted, observed : ndarray of shape (n_bins,)
        Mean probability and share of each bin, for the item of each pair with a probability of at
        least one half.
    n_pairs : ndarray of shape (n_bins,)
        Number of pairs in each bin.
    """

    predicted: Array
    observed: Array
    n_pairs: Array


def reliability(probability: Array, n_bins: int = 10) -> Reliability:
    """Sort pairs whose first item is the better one into bins of about equal size.

    Parameters
    ----------
    probability : ndarray of shape (n_pairs,)
        Predicted probability that the first item is above.
    n_bins : int, default=10
        Largest number of bins.

    Returns
    -------
    Reliability
        The bins, by rising probability.
    """
    # The item with the larger probability is predicted to be the better one, which the first is
    probability_of_predicted = np.maximum(probability, 1 - probability)
    is_correct = np.where(probability == 0.5, 0.5, probability > 0.5)  # a tie is half correct
    lowest_first = np.argsort(probability_of_predicted, kind="stable")
    bins = [pairs for pairs in np.array_split(lowest_first, n_bins) if len(pairs)]
    return Reliability(
        predicted=np.array([probability_of_predicted[pairs].mean() for pairs in bins]),
        observed=np.array([is_correct[pairs].mean() for pairs in bins]),
        n_pairs=np.array([float(len(pairs)) for pairs in bins]),
    )
