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
from rankwise.metrics.shared_items import ComparedItems, error_of_mean

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


def make_clusters(difference: Array, codes: Indices | None) -> Clusters:
    """Add up differences by cluster; without codes each group is a cluster."""
    if codes is None:
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
        return MeanError(np.nan, 0.0, 0.0)
    n_groups = clusters.sizes.sum()
    mean = clusters.sums.sum() / n_groups
    weight = 1.0 / (n_groups - clusters.sizes)
    change = weight * (clusters.sums - clusters.sizes * mean)
    variance = (n_clusters - 1.0) / n_clusters * float(change @ change)
    diagonal = weight**2 * clusters.sizes
    share = weight * clusters.sizes
    trace = diagonal.sum() - share @ share / n_groups
    squared_norm = (
        diagonal @ diagonal
        - 2.0 * (diagonal @ share**2) / n_groups
        + (share @ share / n_groups) ** 2
    )
    return MeanError(variance, 0.0, float(trace**2 / squared_norm))


def shared_item_error(difference: Array, items: ComparedItems) -> MeanError:
    """Variance of the mean over groups that are comparisons of two items, which may share items."""
    error = error_of_mean(difference, None, items)
    if np.isnan(error.standard_error):
        return MeanError(np.nan, 0.0, 0.0)
    return MeanError(error.standard_error**2, 0.0, error.degrees_of_freedom)


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
    surplus = 0.0
    squares = _variance_over_freedom(of_groups.group_variance, of_groups.degrees_of_freedom)
    for values in arms:
        n_seeds, n_groups = values.shape
        if n_seeds < 2:
            continue
        variance = float(values.mean(axis=1).var(ddof=1)) / n_seeds
        residuals = values - values.mean(axis=1, keepdims=True) - values.mean(axis=0)
        residuals += values.mean()
        freedom = (n_seeds - 1.0) * (n_groups - 1.0)
        interaction = float((residuals**2).sum()) / max(freedom, 1.0) / (n_seeds * n_groups)
        surplus += variance - interaction
        squares += _variance_over_freedom(variance, n_seeds - 1.0)
        squares += _variance_over_freedom(interaction, freedom)
    seed_variance = max(surplus, 0.0)
    total = of_groups.group_variance + seed_variance
    freedom = of_groups.degrees_of_freedom
    if squares > 0.0:
        freedom = total**2 / squares
    return MeanError(of_groups.group_variance, seed_variance, freedom)


def _variance_over_freedom(variance: float, freedom: float) -> float:
    """A term of Satterthwaite's sum."""
    if freedom <= 0.0:
        return 0.0
    return variance**2 / freedom


def student_test(mean: float, error: MeanError, confidence: float) -> MeanTest:
    """Student's t test of a mean, and its interval."""
    freedom = error.degrees_of_freedom
    if freedom <= 0.0:
        return MeanTest(1.0, np.nan, np.nan)
    standard_error = error.standard_error
    if standard_error == 0.0:
        p = 1.0
        if mean != 0.0:
            p = 0.0
        return MeanTest(p, mean, mean)
    p = 2.0 * float(stdtr(freedom, -abs(mean) / standard_error))
    half_width = float(stdtrit(freedom, 0.5 + confidence / 2)) * standard_error
    return MeanTest(p, mean - half_width, mean + half_width)


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
        sums = np.column_stack([pair.sums for pair in clusters[start : start + PAIRS_AT_ONCE]])
        subset_sums, subset_sizes, n_subsets = _sum_over_subsets(sums, sizes, n_draws)
        tolerance = RELATIVE_ROUNDING * np.abs(sums).sum(axis=0)
        subset_sums[np.abs(subset_sums) <= tolerance] = 0.0
        for column in subset_sums.T:
            tests.append(_invert(column / subset_sizes, n_subsets, confidence))
    return tests


def _invert(means: Array, n_subsets: int, confidence: float) -> MeanTest:
    """P-value and interval from the means over the nonempty subsets."""
    n_empty = n_subsets - len(means)
    n_below = n_empty + int((means <= 0.0).sum())
    n_above = n_empty + int((means >= 0.0).sum())
    p = min(1.0, 2.0 * min(n_below, n_above) / n_subsets)
    alpha = 1.0 - confidence + RELATIVE_ROUNDING
    n_outside = int(np.floor(n_subsets * alpha / 2.0 - n_empty)) + 1
    if n_outside < 1 or n_outside > len(means):
        return MeanTest(p, -np.inf, np.inf)
    ordered = np.sort(means)
    return MeanTest(p, float(ordered[n_outside - 1]), float(ordered[-n_outside]))


def _sum_over_subsets(sums: Array, sizes: Array, n_draws: int) -> tuple[Array, Array, int]:
    """Sums over the nonempty sets of units, all sets or random ones, and the number of sets.

    The empty set, which stands for the observed signs, is one of the sets.
    """
    columns = np.column_stack([sums, sizes])
    if len(sizes) <= ALL_SUBSETS:
        of_subsets = _sums_of_all_subsets(columns)
        n_subsets = len(of_subsets)
    else:
        of_subsets = _sums_of_random_subsets(columns, n_draws)
        n_subsets = len(of_subsets) + 1
    of_subsets = of_subsets[of_subsets[:, -1] > 0.0]
    return of_subsets[:, :-1], of_subsets[:, -1], n_subsets


def _sums_of_all_subsets(columns: Array) -> Array:
    """Sums of columns over all sets of rows."""
    sums = np.zeros((1, columns.shape[1]))
    for row in columns:
        sums = np.concatenate([sums, sums + row])
    return sums


def _sums_of_random_subsets(columns: Array, n_draws: int) -> Array:
    """Sums of columns over random sets of rows, shape (n_draws, n_columns); the seed is fixed."""
    rng = np.random.default_rng(0)
    n_units = len(columns)
    sums = np.empty((n_draws, columns.shape[1]))
    for start in range(0, n_draws, BATCH):
        bits = np.unpackbits(np.frombuffer(rng.bytes(BATCH * ((n_units + 7) // 8)), np.uint8))
        is_in = bits.reshape(BATCH, -1)[:, :n_units]
        sums[start : start + BATCH] = is_in @ columns
    return sums


def signed_rank_p(difference: Array) -> float:
    """P-value of Wilcoxon's test; zeros are ranked and count for neither side (Pratt).

    For few groups it is exact, also with ties, where SciPy's is not: the distribution of the sum of
    the ranks with positive sign is computed by adding one rank after the other. Ranks are doubled,
    so that the mean ranks of ties are integers.
    """
    nonzero = difference != 0
    if not nonzero.any():
        return 1.0
    if len(difference) > EXACT_LIMIT:
        return float(scipy.stats.wilcoxon(difference, zero_method="pratt").pvalue)
    doubled_ranks = np.rint(2 * scipy.stats.rankdata(np.abs(difference))).astype(int)[nonzero]
    observed = int(doubled_ranks[difference[nonzero] > 0].sum())
    total = int(doubled_ranks.sum())
    probability = np.zeros(total + 1)  # of each sum of positive ranks
    probability[0] = 1.0
    for rank in doubled_ranks:
        probability[rank:] += probability[:-rank].copy()
        probability *= 0.5
    distance = np.abs(2 * np.arange(total + 1) - total)
    is_extreme = distance >= abs(2 * observed - total)
    return float(min(1.0, probability[is_extreme].sum()))


@lru_cache(maxsize=1024)
def detectable_effect(freedom: float, alpha: float) -> float:
    """Smallest effect in standard errors that a t test detects with a power of 80%."""
    critical = float(stdtrit(freedom, 1.0 - alpha / 2))

    def missing_power(effect: float) -> float:
        return float(nctdtr(freedom, effect, critical)) - (1.0 - POWER)

    return float(scipy.optimize.brentq(missing_power, 0.0, 10.0 * critical + 10.0))


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
        ratio = n / n_groups
        scaled = MeanError(
            error.group_variance / ratio,
            error.seed_variance,
            max(error.degrees_of_freedom * ratio, 1.0),
        )
        return detectable_difference(scaled, alpha) <= difference

    high = 2
    while not is_enough(high):
        high *= 2
        if high > MOST_GROUPS:
            return float("inf")
    low = high // 2
    while high - low > 1:
        middle = (low + high) // 2
        if is_enough(middle):
            high = middle
        else:
            low = middle
    return float(high)


def groups_to_flip(difference: Array) -> int:
    """Smallest number of groups whose removal reverses the sign of the sum, or makes it zero.

    They are the groups with the largest contributions to the sum.
    """
    total = float(difference.sum())
    if total == 0:
        return 0
    largest_first = np.sort(difference * np.sign(total))[::-1]
    remaining = abs(total) - np.cumsum(largest_first)
    return int(np.argmax(remaining <= RELATIVE_ROUNDING * len(remaining)) + 1)


def holm(p: list[float]) -> list[float]:
    """Holm's step-down correction: the i-th smallest of n times n − i, made nondecreasing."""
    order = np.argsort(p)
    factors = np.arange(len(p), 0, -1)
    steps = np.asarray(p)[order] * factors
    corrected = np.empty(len(p))
    corrected[order] = np.minimum(np.maximum.accumulate(steps), 1.0)
    return [float(value) for value in corrected]
