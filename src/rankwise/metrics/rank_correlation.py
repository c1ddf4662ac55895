"""Metrics of the whole order: disagreement error, Kendall's tau, AUC, Spearman's correlation."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rankwise._compiled import count_inversions, weigh_inversions
from rankwise.arrays import Array, Indices
from rankwise.groups import Groups
from rankwise.metrics.metric import METRICS, GroupValues, group_metric
from rankwise.metrics.ranking import GroupedTargets, Ranking, divide, run_starts
from rankwise.validation import check_option

_DIFFERENT = "two items with different y"
_WEIGHTED = f"{_DIFFERENT} (and positive weights)"
_TWO_KINDS = "both relevant and other items"


@group_metric(
    "disagreement",
    "Disagreement error",
    needs=_WEIGHTED,
    short="Disagreement",
    greater_is_better=False,
    has_weights=True,
)
def disagreement_error(
    ranking: Ranking,
    *,
    tied_scores: str = "half",
    tied_y: str = "skip",
    average: str = "groups",
) -> GroupValues:
    r"""Share of the pairs of a group that are in the wrong order; a coin has 0.5.

    .. math:: \frac{1}{|E|} \sum_{(i, j) \in E} \frac{1 - \mathrm{sign}(f_i - f_j)}{2},
              \qquad E = \{(i, j) : y_i > y_j, \text{ same group}\}

    A pair with equal scores counts one half here, so that the error is 1 - AUC for two levels of
    y, 0.5 for a constant score, and one minus the concordance index in general. [RankRLS09]_
    eq. 1 counts it as wrong: ``tied_scores="wrong"``. Time O(m log m), no pair is formed.

    Parameters
    ----------
    tied_scores : {"half", "wrong"}, default="half"
        What a pair with equal scores counts: half an error, or, as in eq. 1, a whole one.
    tied_y : {"skip", "half"}, default="skip"
        What a pair with equal y counts: nothing, or, whatever its scores, half an error. With
        "half" the error is (1 - Kendall's tau a) / 2.
    average : {"groups", "pairs"}, default="groups"
        Mean over groups, or over all pairs of all groups.
    sample_weight : array-like of shape (m,), optional
        Weights of the items, 0 or larger; a pair counts the product of its two.

    References
    ----------
    .. [RankRLS09] Pahikkala, Tsivtsivadze, Airola, Järvinen, Boberg: An efficient algorithm for
       learning to rank from preference graphs. Machine Learning 75, 2009.

    Examples
    --------
    >>> disagreement_error([3, 2, 1, 1, 0], [0.9, 0.1, 0.5, 0.2, 0.7], ["a", "a", "a", "b", "b"])
    0.6666666666666666
    """
    check_option("tied_scores", tied_scores, ("half", "wrong"))
    check_option("average", average, ("groups", "pairs"))
    check_option("tied_y", tied_y, ("skip", "half"))
    pairs = count_pairs(ranking)
    share = 0.5 if tied_scores == "half" else 1.0
    wrong, counted = pairs.discordant + share * pairs.undecided, pairs.differing
    if tied_y == "half":
        wrong, counted = wrong + (pairs.everything - counted) / 2, pairs.everything
    weights = counted * pairs.unit if average == "pairs" else None
    return GroupValues(np.minimum(divide(wrong, counted), 1.0), weights)


@group_metric("concordance", "Concordance", needs=_WEIGHTED, has_weights=True)
def concordance(
    ranking: Ranking,
    *,
    tied_scores: str = "half",
    tied_y: str = "skip",
    average: str = "groups",
) -> GroupValues:
    """Share of the pairs of a group that are in the right order; a coin has 0.5.

    One minus `disagreement_error`, with its options.

    Parameters
    ----------
    tied_scores, tied_y, average, sample_weight
        As in `disagreement_error`.

    Examples
    --------
    >>> concordance([1, 0, 0, 1], [0.8, 0.3, 0.8, 0.9])
    0.875
    """
    error, weights, _ = METRICS["disagreement"].by_group(
        ranking, tied_scores=tied_scores, tied_y=tied_y, average=average
    )
    return GroupValues(1.0 - error, weights)


@group_metric("tau", "Kendall τ", needs=_WEIGHTED, lowest=-1.0, has_weights=True)
def kendall_tau(ranking: Ranking) -> GroupValues:
    r"""Share of pairs in the right order less that in the wrong one: 0 is chance, −1 upside down.

    Kendall's rank correlation between relevance and scores, inside groups, is

    .. math:: \tau_b = \frac{C - D}{\sqrt{(n_0 - n_y)(n_0 - n_f)}}

    C and D count concordant and discordant pairs, :math:`n_0` all pairs, :math:`n_y` and
    :math:`n_f` the pairs tied in relevance and in score. [RankRLS07]_ sec. 3.2 uses
    :math:`\tau_b` for each sentence. Where relevance varies but all scores are equal, 0/0, we
    return 0 (SciPy gives NaN): a constant model shows no correlation, and must not have its
    worst groups skipped. Without correction for ties, :math:`\tau_a = (C - D)/n_0` is
    ``1 - 2 * disagreement_error(..., tied_y="half")``.

    Parameters
    ----------
    sample_weight : array-like of shape (m,), optional
        Weights of the items, 0 or larger; a pair counts the product of its two.

    References
    ----------
    .. [RankRLS07] Pahikkala, Tsivtsivadze, Airola, Boberg, Salakoski: Learning to rank with
       pairwise regularized least-squares. SIGIR workshop on learning to rank, 2007.

    Examples
    --------
    >>> kendall_tau([1, 2, 3, 4], [10, 20, 40, 30])
    0.6666666666666666
    """
    differing, discordant, undecided, _, untied, _ = count_pairs(ranking)
    surplus = differing - undecided - 2 * discordant  # C - D
    tau = divide(surplus, np.sqrt(differing.astype(np.float64) * untied))
    tau[untied == 0] = 0.0
    tau[differing == 0] = np.nan
    return GroupValues(np.clip(tau, -1.0, 1.0))


@group_metric("auc", "AUC", needs=_TWO_KINDS)
def auc(ranking: Ranking, *, relevant: float | None = None) -> GroupValues:
    r"""Chance that a relevant item stands above one that is not.

    The area under the ROC curve, or statistic of Wilcoxon, Mann and Whitney, inside groups:

    .. math:: \frac{1}{|P||N|} \sum_{i \in P} \sum_{j \in N}
              \left([f_i > f_j] + \tfrac{1}{2} [f_i = f_j]\right)

    Without groups, `evaluate` gives it DeLong's interval, see `pooled_auc`.

    Parameters
    ----------
    relevant : float, optional
        Items with ``y >= relevant`` are the positive ones. By default the larger of the two
        values in y; if y has more than two, this must be given.

    Examples
    --------
    >>> auc([1, 0, 0, 1], [0.8, 0.3, 0.8, 0.9])
    0.875
    """
    targets = ranking.targets
    if targets.n_groups == 1:
        return METRICS["pooled_auc"].by_group(ranking, relevant=relevant)
    positive = _positive(targets.y, relevant)[ranking.order()]
    n_positive = targets.sum(positive)
    n_negative = targets.sizes - n_positive
    place = ranking.average(targets.position)  # mid-ranks, 1 = top
    above = targets.sum(np.where(positive, 0.0, place))  # each negative: the items above it
    won = above - n_negative * (n_negative + 1) / 2
    return GroupValues(divide(won, n_positive * n_negative))


@group_metric("pooled_auc", "AUC of all items", needs=_TWO_KINDS)
def pooled_auc(ranking: Ranking, *, relevant: float | None = None) -> GroupValues:
    r"""Chance that a relevant item has a higher score than one that is not, groups aside.

    The area under the ROC curve of all items in one list. Use it if scores of different groups are
    on one scale, such as those of a classifier. The value in a group is the mean placement of its
    positive items among all negative ones,

    .. math:: V_i = \frac{1}{|N|} \sum_{j \in N} \left([f_i > f_j] + \tfrac{1}{2} [f_i = f_j]
              \right)

    and the mean over all positive items is the AUC. `evaluate` gives it DeLong's interval [1]_
    from the spread of the placements of positive and negative items; if there are several groups,
    from the sums of placements in each, since items of one group depend on each other [2]_.

    Parameters
    ----------
    relevant
        As in `auc`.

    References
    ----------
    .. [1] DeLong, DeLong, Clarke-Pearson: Comparing the areas under two or more correlated receiver
       operating characteristic curves. Biometrics 44, 1988.
    .. [2] Obuchowski: Nonparametric analysis of clustered ROC curve data. Biometrics 53, 1997.

    Examples
    --------
    >>> pooled_auc([1, 0, 0, 1], [0.8, 0.3, 0.8, 0.9], ["a", "a", "b", "b"])
    0.875
    """
    targets = ranking.targets
    positive = _positive(targets.y, relevant)
    n_positive = targets.sum_rows(positive)
    if positive.all() or not positive.any():
        return GroupValues(np.full(targets.n_groups, np.nan), n_positive)
    one_list = Groups(np.zeros(len(positive), dtype=np.intp), np.zeros(1))
    pooled = Ranking(GroupedTargets(targets.y, one_list), ranking.score)
    placement = _placements(pooled, positive)
    cluster = targets.codes if targets.n_groups > 1 else np.arange(len(positive))
    error = _delong_error(placement, positive, cluster)
    won = targets.sum_rows(positive * placement)
    return GroupValues(divide(won, n_positive), n_positive, error)


def _positive(y: NDArray[Any], relevant: float | None) -> NDArray[np.bool_]:
    low, high = y.min(), y.max()
    if relevant is None and ((y != low) & (y != high)).any():
        raise ValueError(
            "y_true has more than two values; pass relevant=c to call items with y >= c positive, "
            "or use disagreement_error, which takes any number of levels."
        )
    return np.asarray(y >= (high if relevant is None else relevant))


def _placements(ranking: Ranking, positive: NDArray[np.bool_]) -> Array:
    """For each item of one list, the share of the items of the other kind on its right side."""
    order, sizes = ranking.order(), ranking.run_sizes
    is_positive = positive[order]
    n_positive = np.add.reduceat(is_positive, ranking.run_starts, dtype=np.int64)
    n_negative = sizes - n_positive
    above = (np.cumsum(n_positive) - n_positive / 2) / n_positive.sum()
    total = n_negative.sum()
    below = (total - np.cumsum(n_negative) + n_negative / 2) / total
    out = np.empty(len(order))
    out[order] = np.where(is_positive, np.repeat(below, sizes), np.repeat(above, sizes))
    return out


def _delong_error(placement: Array, positive: NDArray[np.bool_], cluster: NDArray[Any]) -> float:
    """Standard error of the AUC; NaN unless two clusters have positive, and two negative items."""
    area, n_clusters = placement[positive].mean(), int(cluster.max()) + 1
    variance, deviations = 0.0, np.ones(n_clusters)
    for kind in (positive, ~positive):
        n_with = len(np.unique(cluster[kind]))
        if n_with < 2:
            return float("nan")
        sums = np.bincount(cluster[kind], placement[kind] - area, n_clusters) / kind.sum()
        variance += n_with / (n_with - 1) * (sums @ sums)
        deviations *= sums
    variance += 2 * n_clusters / (n_clusters - 1) * deviations.sum()
    return float(np.sqrt(max(variance, 0.0)))


@group_metric("spearman", "Spearman ρ", needs=_DIFFERENT, lowest=-1.0)
def spearman(ranking: Ranking) -> GroupValues:
    r"""Correlation of predicted and true ranks: 1 is the same order, 0 is chance, −1 upside down.

    Spearman's rank correlation, inside groups. Pearson's correlation of the ranks; items with equal
    values share the mean of their ranks. Without ties, with d the differences of ranks among n
    items,

    .. math:: \rho = 1 - \frac{6 \sum d^2}{n (n^2 - 1)}

    Where relevance varies but all scores are equal we return 0, as `kendall_tau` does.

    Examples
    --------
    >>> round(spearman([1, 2, 3, 4], [10, 20, 40, 30]), 3)
    0.8
    """
    targets, by_y = ranking.targets, Ranking(ranking.targets, ranking.targets.y)
    ranks, ranks_of_y = np.empty((2, len(targets.y)))
    ranks[ranking.order()] = ranking.average(targets.position)
    ranks_of_y[by_y.order()] = by_y.average(targets.position)
    order = ranking.order()  # any one that goes through the groups
    middle = np.repeat((targets.sizes + 1) / 2, targets.sizes)
    a, b = ranks[order] - middle, ranks_of_y[order] - middle
    squares, squares_of_y = targets.sum(a * a), targets.sum(b * b)
    rho = divide(targets.sum(a * b), np.sqrt(squares * squares_of_y))
    rho[squares == 0] = 0.0
    rho[squares_of_y == 0] = np.nan
    return GroupValues(np.clip(rho, -1.0, 1.0))


@group_metric(
    "mse",
    "Mean squared error",
    short="Squared error",
    greater_is_better=False,
    highest=np.inf,
    has_weights=True,
)
def mean_squared_error(ranking: Ranking, *, average: str = "groups") -> GroupValues:
    r"""Square of the difference between score and true value, on average.

    How well values are predicted, not orders:

    .. math:: \frac{1}{n} \sum_{i=1}^{n} (f_i - y_i)^2

    A ranker is free to shift and stretch its scores, so use it for models of the values themselves.

    Parameters
    ----------
    average : {"groups", "items"}, default="groups"
        Mean over groups, or over all items of all groups.
    sample_weight : array-like of shape (m,), optional
        Weights of the items, 0 or larger.

    Examples
    --------
    >>> mean_squared_error([1, 2, 3], [1, 2, 5])
    1.3333333333333333
    """
    check_option("average", average, ("groups", "items"))
    targets = ranking.targets
    weights = np.ones(len(targets.y)) if targets.weights is None else targets.weights
    squares = (ranking.score.astype(np.float64) - targets.y) ** 2
    error, total = targets.sum_rows(weights * squares), targets.sum_rows(weights)
    return GroupValues(divide(error, total), total if average == "items" else None)


class PairCounts(NamedTuple):
    """Pairs of each group, or their weights; all of shape (n_groups,).

    Attributes
    ----------
    differing : ndarray
        Pairs with different y.
    discordant : ndarray
        Pairs whose scores are in the opposite order of y.
    undecided : ndarray
        Pairs with different y and equal scores.
    everything : ndarray
        All pairs.
    untied : ndarray
        Pairs with different scores.
    unit : ndarray
        What the counts of a group are in units of.
    """

    differing: NDArray[Any]
    discordant: NDArray[Any]
    undecided: NDArray[Any]
    everything: NDArray[Any]
    untied: NDArray[Any]
    unit: Array


def count_pairs(ranking: Ranking) -> PairCounts:
    """Pairs of each group; with weights a pair counts the product of those of its items."""
    targets, by_score = ranking.targets, None
    order = ranking.order("optimistic")  # tied scores by falling y: no inversions among them
    levels, unit = targets.levels[order].astype(np.int32), np.ones(targets.n_groups)
    if targets.weights is None:
        discordant = count_inversions(levels, targets.starts)
        differing, everything = targets.differing, targets.sizes * (targets.sizes - 1) // 2
    else:
        weights, unit = _in_units(targets, order)
        by_score, by_y = weights[order], weights[targets.order]
        discordant = weigh_inversions(levels, targets.starts, by_score)
        differing = targets.pairs_between(by_y, targets.starts, targets.level_starts)
        everything = targets.pairs_between(by_score, targets.starts, np.arange(len(order)))
    untied, undecided = everything, np.zeros_like(differing)
    if ranking.has_ties:
        equal = run_starts(targets.levels[order], ranking.run_starts)  # of score and y
        undecided = targets.pairs_between(by_score, ranking.run_starts, equal)
        untied = targets.pairs_between(by_score, targets.starts, ranking.run_starts)
    return PairCounts(differing, discordant, undecided, everything, untied, unit)


def _in_units(targets: GroupedTargets, order: Indices) -> tuple[Array, Array]:
    """Weights of the items in units of the largest of each group; these units for pairs.

    Sums run over all groups, and a light group must not lose its digits beside a heavy one. The
    units are relative to the largest; the order is any order of the rows by group.
    """
    weights = np.asarray(targets.weights)
    largest = np.maximum.reduceat(weights[order], targets.starts)
    largest[largest == 0] = 1.0
    scaled = np.empty_like(weights)
    scaled[order] = weights[order] / np.repeat(largest, targets.sizes)
    return scaled, (largest / largest.max()) ** 2
