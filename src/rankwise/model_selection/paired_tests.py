"""Tests and intervals of a mean of paired differences, from one procedure each.

For every test that has an interval, p is at most α exactly if 0 is outside the 1 − α interval.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

import numpy as np
import scipy.optimize
import scipy.stats
from scipy.special import nctdtr, stdtr, stdtrit

from rankwise.arrays import Array, Indices
from rankwise.metrics.shared_items import ComparedItems, dyadic_robust_error

EXACT_LIMIT = 100  # groups up to which the signed-rank test is exact
ALL_SUBSETS = 16  # units up to which the randomization test enumerates all sign patterns
N_DRAWS = 100_000  # random subsets for more units
BATCH = 1000  # subsets drawn at once
RELATIVE_ROUNDING = 1e-12  # relative difference that counts as equal
PAIRS_AT_ONCE = 32  # of a randomization test
POWER = 0.8
MOST_GROUPS = 10**9  # more groups than this are reported as not attainable


class MeanTest(NamedTuple):
    """Test of a mean difference: its two-sided p-value, and its interval.

    Attributes
    ----------
    p : float
        Two-sided p-value.
    low, high : float
        Interval; NaN if the test has none, infinite if there are too few units.
    """

    p: float
    low: float
    high: float


@dataclass(frozen=True)
class MeanError:
    """Estimated variance of a mean difference.

    Attributes
    ----------
    group_variance : float
        Part that falls with the number of groups.
    seed_variance : float
        Part that does not: variance of training seeds.
    degrees_of_freedom : float
        Of Student's t.
    """

    group_variance: float
    seed_variance: float
    degrees_of_freedom: float

    @property
    def standard_error(self) -> float:
        """Standard error of the mean."""
        return float(np.sqrt(self.group_variance + self.seed_variance))


class Clusters(NamedTuple):
    """Differences added up by cluster.

    Attributes
    ----------
    sums : ndarray of shape (n_clusters,)
        Sum of the differences of each cluster.
    sizes : ndarray of shape (n_clusters,)
        Number of groups of each cluster.
    """

    sums: Array
    sizes: Array


def sum_by_cluster(difference: Array, codes: Indices | None) -> Clusters:
    """Add up differences by cluster; without codes each group is a cluster."""
    if codes is None:  # each group is a cluster
        return Clusters(difference, np.ones(len(difference)))
    sizes = np.bincount(codes).astype(np.float64)
    sums = np.bincount(codes, difference).astype(np.float64, copy=False)
    return Clusters(sums, sizes)


def cluster_error(clusters: Clusters) -> MeanError:
    """Variance of the mean by leaving out clusters, with Satterthwaite's degrees of freedom.

    The mean without cluster c differs from the mean by ``(D_c − n_c d̄) / (N − n_c)``, and V is
    (U − 1) / U times the sum of the squares. The degrees of freedom are (tr G)² / ‖G‖² with the
    covariance G of these changes for independent groups of equal variance. For clusters of one
    group V is the variance of the mean and U − 1 are the degrees of freedom.
    """
    n_clusters = len(clusters.sums)
    if n_clusters < 2:
        return MeanError(np.nan, seed_variance=0.0, degrees_of_freedom=0.0)
    sizes = clusters.sizes
    n_groups = sizes.sum()
    mean = clusters.sums.sum() / n_groups

    # Jackknife: change of the mean if a cluster is left out
    inverse_remaining = 1.0 / (n_groups - sizes)
    change = inverse_remaining * (clusters.sums - sizes * mean)
    variance = (n_clusters - 1.0) / n_clusters * float(change @ change)

    # Satterthwaite's degrees of freedom: (tr G)² / ‖G‖² of the covariance G of these changes for
    # independent groups of equal variance, G = diag(diagonal) − r rᵀ / N
    diagonal = inverse_remaining**2 * sizes
    r = inverse_remaining * sizes  # (n_clusters,)
    trace = diagonal.sum() - r @ r / n_groups
    # ‖G‖² = Σ diagonal² − 2 Σ diagonal r² / N + (rᵀ r / N)²
    squared_norm = (
        diagonal @ diagonal - 2.0 * (diagonal @ r**2) / n_groups + (r @ r / n_groups) ** 2
    )
    degrees_of_freedom = float(trace**2 / squared_norm)
    return MeanError(variance, seed_variance=0.0, degrees_of_freedom=degrees_of_freedom)


def shared_item_error(difference: Array, items: ComparedItems) -> MeanError:
    """Variance of the mean over groups that are comparisons of two items, which may share items."""
    error = dyadic_robust_error(difference, None, items)
    if np.isnan(error.standard_error):
        return MeanError(np.nan, seed_variance=0.0, degrees_of_freedom=0.0)
    return MeanError(
        error.standard_error**2,
        seed_variance=0.0,
        degrees_of_freedom=error.degrees_of_freedom,
    )


def seed_error(of_groups: MeanError, arms: list[Array]) -> MeanError:
    """Add the variance of training seeds to that of the groups.

    For each arm with S seeds and Q groups, V_s is the variance of its seeds' means divided by S,
    and V_qs the mean square of the interaction divided by S Q, which both V_q and V_s contain:

        V = V_q + Σ (V_s − V_qs),

    with Satterthwaite's degrees of freedom.

    Parameters
    ----------
    of_groups : MeanError
        V_q: the variance over groups of the difference of the seeds' means.
    arms : list of ndarray of shape (n_seeds, n_groups)
        The values of both arms; an arm with one seed has no variance of seeds.
    """
    # The error of the mean difference due to groups, plus that of the seeds of both arms
    variance_of_seeds = 0.0
    # Satterthwaite: total variance² / Σ (variance² / degrees of freedom) over the components
    squares_over_freedom = _variance_over_freedom(
        of_groups.group_variance, of_groups.degrees_of_freedom
    )
    for values in arms:  # (n_seeds, n_groups)
        n_seeds, n_groups = values.shape
        if n_seeds < 2:
            continue
        # Variance of the mean over seeds, which contains a part of the interaction
        variance_of_mean = float(values.mean(axis=1).var(ddof=1)) / n_seeds
        interaction, interaction_freedom = _interaction_of_seeds_and_groups(values)
        interaction_of_mean = interaction / (n_seeds * n_groups)
        variance_of_seeds += variance_of_mean - interaction_of_mean
        squares_over_freedom += _variance_over_freedom(variance_of_mean, n_seeds - 1.0)
        squares_over_freedom += _variance_over_freedom(interaction_of_mean, interaction_freedom)
    variance_of_seeds = max(variance_of_seeds, 0.0)  # minus the interaction it may be negative
    total_variance = of_groups.group_variance + variance_of_seeds
    degrees_of_freedom = of_groups.degrees_of_freedom
    if squares_over_freedom > 0.0:
        degrees_of_freedom = total_variance**2 / squares_over_freedom
    return MeanError(of_groups.group_variance, variance_of_seeds, degrees_of_freedom)


def _interaction_of_seeds_and_groups(values: Array) -> tuple[float, float]:
    """Mean square of the interaction of a two-way layout, and its degrees of freedom."""
    n_seeds, n_groups = values.shape
    # Residuals of the additive model seed + group, values of shape (n_seeds, n_groups)
    residuals = values - values.mean(axis=1, keepdims=True) - values.mean(axis=0)
    residuals += values.mean()
    degrees_of_freedom = (n_seeds - 1.0) * (n_groups - 1.0)
    # Without degrees of freedom all residuals are 0, and so is the mean square
    mean_square = float((residuals**2).sum()) / max(degrees_of_freedom, 1.0)
    return mean_square, degrees_of_freedom


def _variance_over_freedom(variance: float, degrees_of_freedom: float) -> float:
    """variance² / degrees of freedom; 0 if there are none."""
    if degrees_of_freedom <= 0.0:
        return 0.0
    return variance**2 / degrees_of_freedom


def student_test(mean: float, error: MeanError, confidence: float) -> MeanTest:
    """Student's t test of a mean, and its interval."""
    degrees_of_freedom = error.degrees_of_freedom
    if degrees_of_freedom <= 0.0:
        return MeanTest(p=1.0, low=np.nan, high=np.nan)
    standard_error = error.standard_error
    if standard_error == 0.0:  # all differences are equal
        p = 1.0
        if mean != 0.0:
            p = 0.0
        return MeanTest(p, low=mean, high=mean)
    p = 2.0 * float(stdtr(degrees_of_freedom, -abs(mean) / standard_error))
    quantile = float(stdtrit(degrees_of_freedom, 0.5 + confidence / 2))
    half_width = quantile * standard_error
    return MeanTest(p, low=mean - half_width, high=mean + half_width)


def randomization_tests(
    clusters: list[Clusters], confidence: float, *, n_draws: int = N_DRAWS
) -> list[MeanTest]:
    """Randomization tests of means by random signs of the units, and their inversion.

    Reversing the signs of a set S of units gives a sum at least as far above δ as the observed one
    exactly if the mean over S, m_S = Σ_S D / Σ_S n, is at most δ. So

        p(δ) = 2 min(P(m_S ≤ δ), P(m_S ≥ δ))

    with the empty set counted on both sides. p(0) is the two-sided p-value over all sign patterns,
    and the interval, all δ with p(δ) > α, ends at order statistics of m_S.

    Parameters
    ----------
    clusters : list of Clusters
        One for each pair; all have the same sizes.
    confidence : float
        1 − α.
    n_draws : int, default=100_000
        Number of random sets if there are more than 16 units; a multiple of 1,000.
    """
    sizes = clusters[0].sizes
    tests = []
    for start in range(0, len(clusters), PAIRS_AT_ONCE):
        block = clusters[start : start + PAIRS_AT_ONCE]
        sums = np.column_stack([pair.sums for pair in block])  # (n_clusters, n_pairs)
        # Subsets of clusters, whose signs are flipped together
        subset_sums, subset_sizes, n_subsets = _subset_sums_and_sizes(sums, sizes, n_draws)
        tolerance = RELATIVE_ROUNDING * np.abs(sums).sum(axis=0)
        is_rounding_of_zero = np.abs(subset_sums) <= tolerance
        subset_sums[is_rounding_of_zero] = 0.0
        for sums_of_pair in subset_sums.T:
            subset_means = sums_of_pair / subset_sizes
            tests.append(_test_from_subset_means(subset_means, n_subsets, confidence))
    return tests


def _test_from_subset_means(subset_means: Array, n_subsets: int, confidence: float) -> MeanTest:
    """P-value and interval from the means over the nonempty subsets."""
    # Flipping the signs of a subset raises the mean difference exactly if the mean of the subset is
    # below 0: p is twice the share of such subsets, or of those above 0. The empty subset changes
    # nothing and counts on both sides
    n_empty = n_subsets - len(subset_means)
    n_below = n_empty + int((subset_means <= 0.0).sum())
    n_above = n_empty + int((subset_means >= 0.0).sum())
    p = min(1.0, 2.0 * min(n_below, n_above) / n_subsets)

    # A true difference δ is rejected if at most `most_below` of the means are below it, or above it
    # (Hartigan, 1969), so the others lie between two of the ordered means
    alpha = 1.0 - confidence + RELATIVE_ROUNDING
    most_below = int(np.floor(n_subsets * alpha / 2.0)) - n_empty
    if most_below < 0 or most_below >= len(subset_means):
        return MeanTest(p, low=-np.inf, high=np.inf)
    ordered_means = np.sort(subset_means)
    low = float(ordered_means[most_below])
    high = float(ordered_means[-1 - most_below])
    return MeanTest(p, low, high)


def _subset_sums_and_sizes(sums: Array, sizes: Array, n_draws: int) -> tuple[Array, Array, int]:
    """Sums over the nonempty sets of units, all sets or random ones, and the number of sets.

    The empty set, which stands for the observed signs, is one of the sets.
    """
    # One row for each cluster: its sums of all pairs, and its size
    columns = np.column_stack([sums, sizes])
    n_clusters = len(sizes)
    if n_clusters <= ALL_SUBSETS:
        subset_totals = _sums_of_all_subsets(columns)
        n_subsets = len(subset_totals)
    else:
        subset_totals = _sums_of_random_subsets(columns, n_draws)
        n_subsets = len(subset_totals) + 1  # and the empty subset
    is_nonempty = subset_totals[:, -1] > 0.0
    subset_totals = subset_totals[is_nonempty]
    subset_sums = subset_totals[:, :-1]
    subset_sizes = subset_totals[:, -1]
    return subset_sums, subset_sizes, n_subsets


def _sums_of_all_subsets(columns: Array) -> Array:
    """Sums of columns over all sets of rows."""
    sums = np.zeros((1, columns.shape[1]))  # of the empty subset
    for row in columns:  # each subset so far without and with the row
        sums = np.concatenate([sums, sums + row])
    return sums


def _sums_of_random_subsets(columns: Array, n_draws: int) -> Array:
    """Sums of columns over random sets of rows, shape (n_draws, n_columns); the seed is fixed."""
    rng = np.random.default_rng(0)
    n_units = len(columns)
    n_bytes_of_subset = (n_units + 7) // 8
    sums = np.empty((n_draws, columns.shape[1]))
    for start in range(0, n_draws, BATCH):
        # one random bit for each unit: whether it is in the subset
        random_bytes = np.frombuffer(rng.bytes(BATCH * n_bytes_of_subset), np.uint8)
        bits = np.unpackbits(random_bytes).reshape(BATCH, -1)
        is_in_subset = bits[:, :n_units]
        sums[start : start + BATCH] = is_in_subset @ columns
    return sums


def signed_rank_p(difference: Array) -> float:
    """P-value of Wilcoxon's test; zeros are ranked and count for neither side (Pratt).

    For few groups it is exact, also with ties, where SciPy's is not: the distribution of the sum of
    the ranks with positive sign is computed by adding one rank after the other. Ranks are doubled,
    so that the mean ranks of ties are integers.
    """
    is_nonzero = difference != 0
    if not is_nonzero.any():
        return 1.0
    if len(difference) > EXACT_LIMIT:
        return float(scipy.stats.wilcoxon(difference, zero_method="pratt").pvalue)

    # Ranks of tied differences are multiples of 1/2, so doubled ranks are whole numbers.
    # Pratt's method: zeros get ranks, too, but count for neither side
    ranks = scipy.stats.rankdata(np.abs(difference))
    doubled_ranks = np.rint(2 * ranks).astype(int)[is_nonzero]
    is_positive = difference[is_nonzero] > 0
    observed_sum = int(doubled_ranks[is_positive].sum())
    total = int(doubled_ranks.sum())

    # Exact distribution of the sum of positive ranks, if each sign is a fair coin
    probability_of_sum = np.zeros(total + 1)
    probability_of_sum[0] = 1.0
    for rank in doubled_ranks:  # positive: the sum rises by the rank; negative: it stays
        probability_of_sum[rank:] += probability_of_sum[:-rank].copy()
        probability_of_sum *= 0.5
    distance_from_mean = np.abs(2 * np.arange(total + 1) - total)
    is_extreme = distance_from_mean >= abs(2 * observed_sum - total)
    return float(min(1.0, probability_of_sum[is_extreme].sum()))


@lru_cache(maxsize=1024)
def detectable_effect(degrees_of_freedom: float, alpha: float) -> float:
    """Smallest effect in standard errors that a t test detects with a power of 80%."""
    # Effect in standard errors that a t test of level alpha detects with the given power
    critical_value = float(stdtrit(degrees_of_freedom, 1.0 - alpha / 2))

    def excess_of_type_2_error(effect: float) -> float:
        probability_of_missing = float(nctdtr(degrees_of_freedom, effect, critical_value))
        return probability_of_missing - (1.0 - POWER)

    largest_effect = 10.0 * critical_value + 10.0  # so large that hardly any test misses it
    return float(scipy.optimize.brentq(excess_of_type_2_error, 0.0, largest_effect))


def detectable_difference(error: MeanError, alpha: float) -> float:
    """Smallest difference that 80% of such studies would find significant at a level."""
    if error.degrees_of_freedom <= 0.0:
        return float("nan")
    return detectable_effect(error.degrees_of_freedom, alpha) * error.standard_error


def groups_needed(error: MeanError, n_groups: int, difference: float, alpha: float) -> float:
    """Number of groups with which a difference is detected with a power of 80%.

    The variance over groups and the degrees of freedom are scaled to other numbers of groups.
    Infinite if the seeds alone hide the difference.
    """
    if error.degrees_of_freedom <= 0.0:
        return float("nan")

    def is_enough(n: int) -> bool:
        # Variance of groups and degrees of freedom scale with n, the variance of seeds does not
        ratio = n / n_groups
        error_of_n_groups = MeanError(
            error.group_variance / ratio,
            error.seed_variance,
            max(error.degrees_of_freedom * ratio, 1.0),  # a t test needs at least 1
        )
        return detectable_difference(error_of_n_groups, alpha) <= difference

    # Double until it is enough, then bisect between the last two numbers
    n_enough = 2
    while not is_enough(n_enough):
        n_enough *= 2
        if n_enough > MOST_GROUPS:
            return float("inf")
    n_too_few = n_enough // 2
    while n_enough - n_too_few > 1:
        middle = (n_too_few + n_enough) // 2
        if is_enough(middle):
            n_enough = middle
        else:
            n_too_few = middle
    return float(n_enough)


def groups_to_flip(difference: Array) -> int:
    """Smallest number of groups whose removal reverses the sign of the sum, or makes it zero.

    They are the groups with the largest contributions to the sum.
    """
    total = float(difference.sum())
    if total == 0:
        return 0
    # Remove the groups that favor the leader, the largest advantage first
    advantages = np.sort(difference * np.sign(total))[::-1]
    remaining_lead = abs(total) - np.cumsum(advantages)
    # Differences are relative to the largest value, so their rounding errors are relative to 1
    is_flipped = remaining_lead <= RELATIVE_ROUNDING * len(remaining_lead)
    return int(np.argmax(is_flipped) + 1)


def holm(p: list[float]) -> list[float]:
    """Holm's step-down correction: the i-th smallest of n times n − i, made nondecreasing."""
    # Holm: the smallest p times n, the next times n − 1, …, then made monotone
    order = np.argsort(p)
    n_hypotheses_left = np.arange(len(p), 0, -1)
    scaled = np.asarray(p)[order] * n_hypotheses_left
    corrected = np.empty(len(p))
    corrected[order] = np.minimum(np.maximum.accumulate(scaled), 1.0)
    return [float(value) for value in corrected]
