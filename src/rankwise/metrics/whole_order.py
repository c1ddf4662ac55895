"""Metrics of whole orders, as label ranking has them: Spearman's correlation, the best label."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import gammaln

from rankwise.arrays import Array, Indices
from rankwise.metrics.arguments import check_cutoff
from rankwise.metrics.averaging import GroupMetric, GroupValues, MetricValue, mean_over_groups
from rankwise.metrics.ranking import Ranking, Targets


def spearman(
    y_true: ArrayLike,
    y_score: ArrayLike,
    groups: ArrayLike | None = None,
    *,
    sample_weight: ArrayLike | None = None,
    undefined: str = "skip",
    per_group: bool = False,
) -> MetricValue:
    r"""Spearman's rank correlation between relevance and scores, inside groups.

    Pearson's correlation of the ranks; items with equal values share the mean of their ranks.
    Without ties, with d the differences of ranks among n items,

    .. math:: \rho = 1 - \frac{6 \sum d^2}{n (n^2 - 1)}

    Where relevance varies but all scores are equal we return 0, as `kendall_tau` does.

    Parameters
    ----------
    y_true, y_score, groups, per_group
        As in `disagreement_error`.
    sample_weight : None
        Weights of items have no meaning here, and are refused.
    undefined : {"skip", "zero", "one", "nan", "raise"}, default="skip"
        What to do with groups whose y are all equal.

    Returns
    -------
    float or ndarray
        In [-1, 1]. One value per column for (m, v) input.

    Examples
    --------
    >>> round(spearman([1, 2, 3, 4], [10, 20, 40, 30]), 3)
    0.8
    """
    return mean_over_groups(
        SPEARMAN, y_true, y_score, groups, undefined=undefined, per_group=per_group,
        sample_weight=sample_weight,
    )  # fmt: skip


def hit_rate(
    y_true: ArrayLike,
    y_score: ArrayLike,
    groups: ArrayLike | None = None,
    *,
    k: int = 1,
    sample_weight: ArrayLike | None = None,
    undefined: str = "skip",
    per_group: bool = False,
) -> MetricValue:
    r"""Share of groups whose best item is among the k items of the highest scores (top-k).

    If several items are best, one of them is enough. With tied scores, the expectation over all
    orders of the tied items: if n items share the score of the k-th, r of them are best, none of
    the best scores higher and s of the n are among the first k,

    .. math:: 1 - \binom{n - r}{s} / \binom{n}{s}

    Parameters
    ----------
    y_true, y_score, groups, per_group
        As in `disagreement_error`.
    k : int, default=1
        Cut-off.
    sample_weight : None
        Weights of items have no meaning here, and are refused.
    undefined : {"skip", "zero", "one", "nan", "raise"}, default="skip"
        What to do with groups whose y are all equal.

    Returns
    -------
    float or ndarray
        In [0, 1]. One value per column for (m, v) input.

    Examples
    --------
    >>> hit_rate([3, 1, 2, 1, 2, 3], [0.9, 0.1, 0.5, 0.9, 0.5, 0.1], [1, 1, 1, 2, 2, 2])
    0.5
    """
    return mean_over_groups(
        HIT, y_true, y_score, groups, undefined=undefined, per_group=per_group, k=k,
        sample_weight=sample_weight,
    )  # fmt: skip


def _spearman_by_group(ranking: Ranking) -> GroupValues:
    targets = ranking.targets
    by_score, by_target = np.empty((2, len(targets.y)))
    by_score[ranking.order()] = ranking.average(targets.position)
    by_target[targets.order] = _mean_of_runs(targets)
    order = ranking.order()  # any one that goes through the groups
    middle = np.repeat((targets.sizes + 1) / 2, targets.sizes)
    a, b = by_score[order] - middle, by_target[order] - middle
    squares = targets.sum(a * a), targets.sum(b * b)
    rho = np.zeros(targets.n_groups)
    size = np.sqrt(squares[0] * squares[1])
    np.divide(targets.sum(a * b), size, out=rho, where=size > 0)
    rho[squares[1] == 0] = np.nan
    return GroupValues(np.clip(rho, -1.0, 1.0))


def _mean_of_runs(targets: Targets) -> Array:
    """Ranks of the items in the order of y, the mean of their ranks for equal ones."""
    starts = targets.level_starts
    sizes = np.diff(starts, append=len(targets.y))
    sums = np.add.reduceat(targets.position, starts, dtype=np.float64)
    return np.repeat(sums / sizes, sizes)


def _hit_by_group(ranking: Ranking, *, k: int) -> GroupValues:
    check_cutoff(k)
    targets, starts = ranking.targets, ranking.run_starts
    sorted_y = targets.y[targets.order]
    best = np.repeat(sorted_y[targets.starts], targets.sizes)
    is_best = targets.y[ranking.order()] == best
    n_best = np.add.reduceat(is_best, starts, dtype=np.int64)
    above = targets.position[starts] - 1
    taken = np.clip(k - above, 0, ranking.run_sizes)
    missed = _none_taken(ranking.run_sizes, n_best, taken)
    group = np.searchsorted(targets.starts, starts, side="right") - 1
    first = np.searchsorted(group, np.arange(targets.n_groups))
    values = 1.0 - np.multiply.reduceat(missed, first)
    values[np.logical_and.reduceat(sorted_y == best, targets.starts)] = np.nan
    return GroupValues(values)


def _none_taken(n: Indices, r: NDArray[np.int64], s: Indices) -> Array:
    """Probability that s of n items in random order have none of r: C(n − r, s)/C(n, s)."""
    out = np.where(s > n - r, 0.0, 1.0)
    some = (r > 0) & (s > 0) & (s <= n - r)
    a, b, c = n[some], r[some], s[some]
    out[some] = np.exp(
        gammaln(a - b + 1) - gammaln(a - b - c + 1) - gammaln(a + 1) + gammaln(a - c + 1)
    )
    return np.asarray(out)


_DIFFERENT = "two items with different y"
SPEARMAN = GroupMetric("spearman", _spearman_by_group, _DIFFERENT, has_weights=False)
HIT = GroupMetric("hit_rate", _hit_by_group, _DIFFERENT, has_weights=False)
