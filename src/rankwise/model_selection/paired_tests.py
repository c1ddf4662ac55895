"""Tests of paired differences over groups, and Holm's correction of their p-values."""

from __future__ import annotations

import numpy as np
import scipy.stats

from rankwise.arrays import Array

TESTS = ("wilcoxon", "randomization")
EXACT_LIMIT = 100  # groups of the signed-rank test; more are left to the normal approximation
ALL_SIGNS = 20  # differences whose signs are all tried by the randomization test
N_DRAWS = 100_000  # signs drawn for more of them
CHUNK = 2**22  # signs in memory


def signed_rank_test(difference: Array) -> float:
    """P-value of Wilcoxon's test; zeros are ranked and count for neither side (Pratt)."""
    if not difference.any():
        return 1.0
    if len(difference) <= EXACT_LIMIT:
        return _exact_signed_rank_p(difference)
    return float(scipy.stats.wilcoxon(difference, zero_method="pratt").pvalue)


def _exact_signed_rank_p(difference: Array) -> float:
    """Chance of a rank sum as far from its mean, every sign being as likely as the other.

    The distribution of the sum of the ranks with positive sign, one rank after the other; ranks
    are doubled, so that those of tied differences are whole numbers.
    """
    nonzero = difference != 0
    ranks = np.rint(2 * scipy.stats.rankdata(np.abs(difference))).astype(int)[nonzero]
    observed, total = int(ranks[difference[nonzero] > 0].sum()), int(ranks.sum())
    chance = np.zeros(total + 1)
    chance[0] = 1.0
    for rank in ranks:
        chance[rank:] += chance[:-rank].copy()
        chance *= 0.5
    as_far = np.abs(2 * np.arange(total + 1) - total) >= abs(2 * observed - total)
    return float(min(1.0, chance[as_far].sum()))


def randomization_test(difference: Array, seed: int = 0) -> float:
    """Chance of a mean as far from zero if the sign of each difference were thrown by a coin.

    All signs are tried for up to 20 differences other than zero. For more, 100,000 are drawn, and
    the signs that were observed count as one more draw, so that p is never 0.
    """
    size = np.abs(difference[difference != 0])
    observed = abs(float(difference.sum())) - 1e-9 * float(size.sum())  # equal up to rounding
    if len(size) <= ALL_SIGNS:
        sums = np.zeros(1)
        for each in size:
            sums = np.concatenate([sums + each, sums - each])
        return float((np.abs(sums) >= observed).mean())
    rng = np.random.default_rng(seed)
    chunk = max(1, CHUNK // len(size))
    as_far = 0
    for start in range(0, N_DRAWS, chunk):
        n = min(chunk, N_DRAWS - start)
        bits = np.frombuffer(rng.bytes(n * (-(-len(size) // 8))), np.uint8).reshape(n, -1)
        heads = np.unpackbits(bits, axis=1, count=len(size))
        as_far += int((np.abs(2 * (heads @ size) - size.sum()) >= observed).sum())
    return (as_far + 1) / (N_DRAWS + 1)


def holm(p: list[float]) -> list[float]:
    """Holm's step-down correction: the i-th smallest of n times n − i, never falling."""
    order = np.argsort(p)
    steps = np.asarray(p)[order] * np.arange(len(p), 0, -1)
    corrected = np.empty(len(p))
    corrected[order] = np.minimum(np.maximum.accumulate(steps), 1.0)
    return [float(value) for value in corrected]


def mean_interval(difference: Array, confidence: float) -> tuple[float, float]:
    """Student's interval of the mean; NaN for a single group."""
    n = len(difference)
    if n < 2:
        return float("nan"), float("nan")
    half = scipy.stats.t.ppf(0.5 + confidence / 2, n - 1) * difference.std(ddof=1) / np.sqrt(n)
    return float(difference.mean() - half), float(difference.mean() + half)
