"""Power of paired t-tests: tasks that a difference needs, differences that tasks detect."""

from __future__ import annotations

from scipy.stats import nct, norm
from scipy.stats import t as student

POWER = 0.8
MOST_TASKS = 10**9  # more are reported as no number
LARGE_FREEDOM = 10_000  # the normal distribution replaces Student's t


def power_of(n_tasks: int, effect: float, confidence: float) -> float:
    """Probability that a t-test of n differences with mean/sd `effect` is significant."""
    freedom = n_tasks - 1
    shift = effect * n_tasks**0.5
    if freedom > LARGE_FREEDOM:
        quantile = norm.ppf((1 + confidence) / 2)
        return float(norm.sf(quantile - shift) + norm.cdf(-quantile - shift))
    quantile = student.ppf((1 + confidence) / 2, freedom)
    return float(nct.sf(quantile, freedom, shift) + nct.cdf(-quantile, freedom, shift))


def tasks_needed(difference: float, deviation: float, confidence: float) -> int | None:
    """Smallest number of tasks that detects a difference with 80% power; None if it is 0.

    Parameters
    ----------
    difference : float
        Difference of two models.
    deviation : float
        Standard deviation of their difference between tasks.
    confidence : float
        Confidence of the intervals.
    """
    if difference == 0:
        return None
    if deviation == 0:
        return 2
    effect = abs(difference) / deviation
    sum_of_quantiles = norm.ppf((1 + confidence) / 2) + norm.ppf(POWER)
    if (sum_of_quantiles / effect) ** 2 > MOST_TASKS:
        return None
    high = 2
    while power_of(high, effect, confidence) < POWER:
        high *= 2
    low = high // 2  # has less power, or is 1
    while high - low > 1:
        middle = (low + high) // 2
        if power_of(middle, effect, confidence) < POWER:
            low = middle
        else:
            high = middle
    return high


def detectable_difference(error: float, freedom: float, confidence: float) -> float:
    """Difference that a study with this standard error detects with 80% power, approximately."""
    quantiles = student.ppf([(1 + confidence) / 2, POWER], freedom)
    return float(quantiles.sum() * error)
