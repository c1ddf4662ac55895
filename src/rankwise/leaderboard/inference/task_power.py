"""Power of paired t-tests: tasks that a difference needs, differences that tasks detect."""

from __future__ import annotations

from scipy.stats import nct, norm
from scipy.stats import t as student

POWER = 0.8
MOST_TASKS = 10**9  # more are reported as no number
LARGE_FREEDOM = 10_000  # the normal distribution replaces Student's t


def power_of(n_tasks: int, effect: float, confidence: float) -> float:
    """Probability that a t-test of n differences with mean/sd `effect` is significant."""
    degrees_of_freedom = n_tasks - 1
    noncentrality = effect * n_tasks**0.5  # expected t statistic
    if degrees_of_freedom > LARGE_FREEDOM:
        quantile = norm.ppf((1 + confidence) / 2)
        return float(norm.sf(quantile - noncentrality) + norm.cdf(-quantile - noncentrality))

    quantile = student.ppf((1 + confidence) / 2, degrees_of_freedom)
    # Noncentral t distribution, beyond both critical values
    p_above = nct.sf(quantile, degrees_of_freedom, noncentrality)
    p_below = nct.cdf(-quantile, degrees_of_freedom, noncentrality)
    return float(p_above + p_below)


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
        return 2  # the fewest that a t-test takes
    effect = abs(difference) / deviation
    # With normal errors the power is reached at ((quantile of the test + of the power) / effect)².
    sum_of_quantiles = norm.ppf((1 + confidence) / 2) + norm.ppf(POWER)
    approximate_n_tasks = (sum_of_quantiles / effect) ** 2
    if approximate_n_tasks > MOST_TASKS:
        return None

    # Double the number until it is enough, then bisect.
    enough = 2
    while power_of(enough, effect, confidence) < POWER:
        enough *= 2
    too_few = enough // 2  # has less power, or is 1
    while enough - too_few > 1:
        middle = (too_few + enough) // 2
        if power_of(middle, effect, confidence) < POWER:
            too_few = middle
        else:
            enough = middle
    return enough


def detectable_difference(error: float, freedom: float, confidence: float) -> float:
    """Difference that a study with this standard error detects with 80% power, approximately."""
    # (quantile of the test + quantile of the power) · standard error
    quantiles = student.ppf([(1 + confidence) / 2, POWER], freedom)
    return float(quantiles.sum() * error)
