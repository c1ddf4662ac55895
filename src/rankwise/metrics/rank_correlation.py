"""Metrics of the whole ranking: disagreement error, Kendall's tau, AUC, Spearman's correlation."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rankwise._compiled import count_inversions, weigh_inversions
from rankwise.arrays import Array, Indices, Labels, Numbers
from rankwise.groups import Groups
from rankwise.metrics.metric import GroupValues, group_metric
from rankwise.metrics.ranking import GroupedTargets, Ranking, divide_or_nan, find_run_starts
from rankwise.metrics.survival import SurvivalRanking, concordance_error

_DIFFERENT = "two items with different y"
_WEIGHTED = f"{_DIFFERENT} (and positive weights)"
_TWO_KINDS = "relevant and non-relevant items"
_PAIR_CHOICES = {
    "tied_scores": ("half", "wrong"),
    "average": ("groups", "pairs"),
    "tied_y": ("skip", "half"),
}


@group_metric(
    "disagreement",
    "Disagreement error",
    needs=_WEIGHTED,
    short="Disagreement",
    greater_is_better=False,
    accepts_weights=True,
    accepts_survival=True,
    choices=_PAIR_CHOICES,
)
def disagreement_error(
    ranking: Ranking | SurvivalRanking,
    *,
    tied_scores: str = "half",
    tied_y: str = "skip",
    average: str = "groups",
    ipcw: ArrayLike | None = None,
    tau: float | None = None,
) -> GroupValues:
    r"""Share of the pairs of a group that are in the wrong order; random scores give 0.5.

    .. math:: \frac{1}{|E|} \sum_{(i, j) \in E} \frac{1 - \mathrm{sign}(f_i - f_j)}{2},
              \qquad E = \{(i, j) : y_i > y_j, \text{ same group}\}

    A pair with equal scores counts one half, so the error is 1 - AUC for two levels of y, 0.5 for
    constant scores, and one minus the concordance index in general. [RankRLS09]_ eq. 1 counts such
    a pair as wrong: ``tied_scores="wrong"``. The time is O(m log m); no pairs are enumerated.

    Parameters
    ----------
    tied_scores : {"half", "wrong"}, default="half"
        Whether a pair with equal scores counts as half an error or, as in eq. 1, as an error.
    tied_y : {"skip", "half"}, default="skip"
        Whether a pair with equal y is ignored, or counts as half an error for any scores.
        With "half" the error is (1 - Kendall's tau a) / 2.
    average : {"groups", "pairs"}, default="groups"
        Mean over groups, or over all pairs of all groups.
    ipcw, tau : survival times and float, default=None
        For survival times, see `concordance`.
    sample_weight : array-like of shape (m,), default=None
        Weights of the items, 0 or larger. The weight of a pair is the product of the weights of
        its items.

    References
    ----------
    .. [RankRLS09] Pahikkala, Tsivtsivadze, Airola, Järvinen, Boberg: An efficient algorithm for
       learning to rank from preference graphs. Machine Learning 75, 2009.

    Examples
    --------
    >>> disagreement_error([3, 2, 1, 1, 0], [0.9, 0.1, 0.5, 0.2, 0.7], ["a", "a", "a", "b", "b"])
    0.6666666666666666
    """
    standard_error = None
    if isinstance(ranking, SurvivalRanking):
        if ipcw is not None or tau is not None:
            ranking = ranking.with_pair_weights(ipcw, tau)
        standard_error = concordance_error(ranking)
    elif ipcw is not None or tau is not None:
        raise ValueError("ipcw and tau are for survival times; pass times and events as y_true.")

    pairs = count_pairs(ranking)
    error_of_tied_scores = 1.0
    if tied_scores == "half":
        error_of_tied_scores = 0.5
    n_errors = pairs.discordant + error_of_tied_scores * pairs.tied_scores
    n_pairs = pairs.different_y
    if tied_y == "half":  # pairs with equal y count, too, as half an error
        n_tied_y = pairs.total - pairs.different_y
        n_errors = n_errors + n_tied_y / 2
        n_pairs = pairs.total
    # By rounding, the weights of the errors may sum to more than the weights of all pairs
    error = np.minimum(divide_or_nan(n_errors, n_pairs), 1.0)
    if average == "pairs":
        # Weights of pairs were divided by a unit that differs between the groups
        weight_of_group = n_pairs * pairs.weight_unit
        return GroupValues(error, weights=weight_of_group, standard_error=standard_error)
    return GroupValues(error, standard_error=standard_error)


@group_metric(
    "concordance",
    "Concordance",
    needs=_WEIGHTED,
    accepts_weights=True,
    accepts_survival=True,
    choices=_PAIR_CHOICES,
)
def concordance(
    ranking: Ranking | SurvivalRanking,
    *,
    tied_scores: str = "half",
    tied_y: str = "skip",
    average: str = "groups",
    ipcw: ArrayLike | None = None,
    tau: float | None = None,
) -> GroupValues:
    """Share of the pairs of a group that are in the right order; random scores give 0.5.

    One minus `disagreement_error`, with the same options. For survival times this is Harrell's C,
    or with `ipcw` Uno's C, and larger scores should mean longer survival. `evaluate` reports an
    interval: Student's over the groups, or that of the jackknife over the items of one list.

    Parameters
    ----------
    tied_scores, tied_y, average, sample_weight
        As in `disagreement_error`, with the same defaults.
    ipcw : survival times, default=None
        Times and events from which the probability of censoring is estimated, usually those of the
        training data. A pair is weighted by the inverse squared probability that its earlier event
        was not censored: Uno's C, which does not depend on the distribution of the censoring.
    tau : float, default=None
        Pairs whose earlier event is at this time or later are dropped.

    References
    ----------
    .. [Harrell96] Harrell, Lee, Mark: Multivariable prognostic models. Statistics in Medicine 15,
       1996.
    .. [Uno11] Uno, Cai, Pencina, D'Agostino, Wei: On the C-statistics for evaluating overall
       adequacy of risk prediction procedures with censored survival data. Statistics in Medicine
       30, 2011.

    Examples
    --------
    >>> concordance([1, 0, 0, 1], [0.8, 0.3, 0.8, 0.9])
    0.875

    The columns are time and event; the second item was censored:

    >>> concordance([[5, 1], [8, 0], [12, 1], [3, 1]], [0.1, 0.9, 0.8, 0.3])
    0.8
    """
    error = disagreement_error.metric.by_group(
        ranking, tied_scores=tied_scores, tied_y=tied_y, average=average, ipcw=ipcw, tau=tau
    )
    return GroupValues(1.0 - error.values, error.weights, error.standard_error)


@group_metric("tau", "Kendall τ", needs=_WEIGHTED, lowest=-1.0, accepts_weights=True)
def kendall_tau(ranking: Ranking) -> GroupValues:
    r"""Share of pairs in the right order minus the share in the wrong order; −1 is reversed.

    Kendall's rank correlation between relevance and scores, inside groups, is

    .. math:: \tau_b = \frac{C - D}{\sqrt{(n_0 - n_y)(n_0 - n_f)}}

    C and D count concordant and discordant pairs, :math:`n_0` all pairs, :math:`n_y` and
    :math:`n_f` the pairs tied in relevance and in score. [RankRLS07]_ sec. 3.2 uses
    :math:`\tau_b` for each sentence. Random scores give 0 on average. Where relevance varies but
    all scores are equal (0/0) the value is 0 (SciPy returns NaN): a constant model has no
    correlation, and its worst groups must not be skipped. Without correction for ties,
    :math:`\tau_a = (C - D)/n_0` is ``1 - 2 * disagreement_error(..., tied_y="half")``.

    Parameters
    ----------
    sample_weight : array-like of shape (m,), default=None
        Weights of the items, 0 or larger. The weight of a pair is the product of the weights of
        its items.

    References
    ----------
    .. [RankRLS07] Pahikkala, Tsivtsivadze, Airola, Boberg, Salakoski: Learning to rank with
       pairwise regularized least-squares. SIGIR workshop on learning to rank, 2007.

    Examples
    --------
    >>> kendall_tau([1, 2, 3, 4], [10, 20, 40, 30])
    0.6666666666666666
    """
    pairs = count_pairs(ranking)
    concordant = pairs.different_y - pairs.tied_scores - pairs.discordant
    # τ_b = (C − D) / √(pairs with different y · pairs with different scores)
    geometric_mean = np.sqrt(pairs.different_y.astype(np.float64) * pairs.different_scores)
    tau = divide_or_nan(concordant - pairs.discordant, geometric_mean)
    tau[pairs.different_scores == 0] = 0.0  # all scores are equal
    tau[pairs.different_y == 0] = np.nan  # all y are equal
    return GroupValues(np.clip(tau, -1.0, 1.0))  # may exceed ±1 by rounding


@group_metric("auc", "AUC", needs=_TWO_KINDS)
def auc(ranking: Ranking, *, relevant: float | None = None) -> GroupValues:
    r"""Probability that a relevant item is ranked above a non-relevant one.

    The area under the ROC curve, or the Wilcoxon–Mann–Whitney statistic, inside groups:

    .. math:: \frac{1}{|P||N|} \sum_{i \in P} \sum_{j \in N}
              \left([f_i > f_j] + \tfrac{1}{2} [f_i = f_j]\right)

    Without groups, `evaluate` reports DeLong's interval; see `pooled_auc`.

    Parameters
    ----------
    relevant : float, default=None
        Items with ``y >= relevant`` are positive. None takes the larger of the two values of y; it
        is required if y has more than two values.

    Examples
    --------
    >>> auc([1, 0, 0, 1], [0.8, 0.3, 0.8, 0.9])
    0.875
    """
    targets = ranking.targets
    if targets.n_groups == 1:
        return _pooled_auc(ranking, relevant)
    is_positive = _is_positive(targets.y, relevant)[ranking.order()]
    n_positive = targets.sum_by_group(is_positive)
    n_negative = targets.group_sizes - n_positive
    # Mann–Whitney U, the pairs in which the positive item is above the negative one, from the sum
    # of the mid-ranks of the negative items; rank 1 is the top
    mid_rank = ranking.mean_over_ties(targets.place_in_group)
    rank_sum = targets.sum_by_group(np.where(is_positive, 0.0, mid_rank))
    n_concordant = rank_sum - n_negative * (n_negative + 1) / 2
    return GroupValues(divide_or_nan(n_concordant, n_positive * n_negative))


@group_metric("pooled_auc", "AUC of all items", needs=_TWO_KINDS, is_pooled=True)
def pooled_auc(ranking: Ranking, *, relevant: float | None = None) -> GroupValues:
    r"""Probability that a relevant item of any group scores above a non-relevant one.

    The area under the ROC curve of all items in one list. Use it if scores of different groups are
    comparable, such as those of a classifier. The value of a group is the mean placement of its
    positive items among all negative items,

    .. math:: V_i = \frac{1}{|N|} \sum_{j \in N} \left([f_i > f_j] + \tfrac{1}{2} [f_i = f_j]
              \right)

    and the mean over all positive items is the AUC. `evaluate` reports DeLong's interval [1]_ from
    the variance of the placements of positive and negative items; with several groups from the
    variance of the sums of placements per group, because items of one group are dependent [2]_.

    Parameters
    ----------
    relevant : float, default=None
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
    return _pooled_auc(ranking, relevant)


def _pooled_auc(ranking: Ranking, relevant: float | None) -> GroupValues:
    """AUC of all items, with DeLong's standard error."""
    targets = ranking.targets
    is_positive = _is_positive(targets.y, relevant)
    n_positive = targets.sum_rows_by_group(is_positive)
    if is_positive.all() or not is_positive.any():
        undefined = np.full(targets.n_groups, np.nan)
        return GroupValues(undefined, weights=n_positive)

    # Placement of each item among all items of the other class, in one list
    n_items = len(is_positive)
    one_group = Groups(np.zeros(n_items, dtype=np.intp), np.zeros(1))
    pooled_ranking = Ranking(GroupedTargets(targets.y, one_group), ranking.score)
    placement = _placements(pooled_ranking, is_positive)

    cluster_of_item: Labels = np.arange(n_items)
    if targets.n_groups > 1:
        cluster_of_item = targets.codes
    standard_error = _delong_error(placement, is_positive, cluster_of_item)
    # The AUC is the mean placement of the positive items: by group, with their numbers as weights
    placement_sum = targets.sum_rows_by_group(is_positive * placement)
    return GroupValues(divide_or_nan(placement_sum, n_positive), n_positive, standard_error)


def _is_positive(y: Numbers, relevant: float | None) -> NDArray[np.bool_]:
    """Items with y of at least `relevant`, or with the larger of two values of y."""
    if relevant is not None:
        return np.asarray(y >= relevant)
    lowest = y.min()
    highest = y.max()
    has_other_values = ((y != lowest) & (y != highest)).any()
    if has_other_values:
        raise ValueError(
            "y_true has more than two values; pass relevant=c to treat items with y >= c as "
            "positive, or use disagreement_error, which accepts any number of levels."
        )
    return np.asarray(y >= highest)


def _placements(ranking: Ranking, is_positive: NDArray[np.bool_]) -> Array:
    """Share of correctly ordered pairs of each item of one list with items of the other class."""
    # Placement: share of the negative items below a positive item, or of the positive ones above a
    # negative item
    order = ranking.order()
    run_sizes = ranking.tied_run_sizes
    is_positive_by_place = is_positive[order]

    # Items of each class in each run of tied scores, highest scores first
    n_positive = np.add.reduceat(is_positive_by_place, ranking.tied_run_starts, dtype=np.int64)
    n_negative = run_sizes - n_positive
    total_positive = n_positive.sum()
    total_negative = n_negative.sum()

    # Share of the other class above, or below; ties count one half
    positive_above = (np.cumsum(n_positive) - n_positive / 2) / total_positive
    negative_below = (total_negative - np.cumsum(n_negative) + n_negative / 2) / total_negative
    placement = np.empty(len(order))
    placement[order] = np.where(
        is_positive_by_place,
        np.repeat(negative_below, run_sizes),
        np.repeat(positive_above, run_sizes),
    )
    return placement


def _delong_error(
    placement: Array, is_positive: NDArray[np.bool_], cluster_of_item: Labels
) -> float:
    """Standard error of the AUC, clusters of items being independent.

    NaN unless at least two clusters have positive items and two have negative items.
    """
    area_under_curve = placement[is_positive].mean()
    n_clusters = int(cluster_of_item.max()) + 1

    # Obuchowski's variance: Σ_c n_c/(n_c − 1) Σ_k s_ck² + 2 n/(n − 1) Σ_k s_1k s_2k. Here n_c of n
    # clusters contain class c, and s_ck is the sum of its deviations in cluster k, divided by the
    # number of its items. The last term is the covariance of the classes
    variance = 0.0
    product_of_class_sums = np.ones(n_clusters)
    for in_class in (is_positive, ~is_positive):
        clusters_of_class = cluster_of_item[in_class]
        n_clusters_of_class = len(np.unique(clusters_of_class))
        if n_clusters_of_class < 2:
            return float("nan")
        # The AUC is the mean placement of either class
        deviations = placement[in_class] - area_under_curve
        cluster_sums = np.bincount(clusters_of_class, deviations, n_clusters) / in_class.sum()
        correction = n_clusters_of_class / (n_clusters_of_class - 1)
        variance += correction * (cluster_sums @ cluster_sums)
        product_of_class_sums *= cluster_sums
    variance += 2 * n_clusters / (n_clusters - 1) * product_of_class_sums.sum()
    return float(np.sqrt(max(variance, 0.0)))  # the covariance may be negative


@group_metric("spearman", "Spearman ρ", needs=_DIFFERENT, lowest=-1.0)
def spearman(ranking: Ranking) -> GroupValues:
    r"""Correlation of predicted and true ranks; 1 is the same order, −1 is reversed.

    Spearman's rank correlation inside groups: Pearson's correlation of the ranks, where items with
    equal values share the mean of their ranks. Without ties, with d the differences of ranks of n
    items,

    .. math:: \rho = 1 - \frac{6 \sum d^2}{n (n^2 - 1)}

    Where relevance varies but all scores are equal the value is 0, as for `kendall_tau`.

    Examples
    --------
    >>> round(spearman([1, 2, 3, 4], [10, 20, 40, 30]), 3)
    0.8
    """
    targets = ranking.targets
    score_ranks = _mid_ranks(ranking)
    y_ranks = _mid_ranks(Ranking(targets, targets.y))

    # Ranks minus their mean, sorted by group
    order = ranking.order()
    mean_rank = np.repeat((targets.group_sizes + 1) / 2, targets.group_sizes)
    centered_score_ranks = score_ranks[order] - mean_rank
    centered_y_ranks = y_ranks[order] - mean_rank

    # Pearson's correlation of the ranks
    score_variance = targets.sum_by_group(centered_score_ranks * centered_score_ranks)
    y_variance = targets.sum_by_group(centered_y_ranks * centered_y_ranks)
    covariance = targets.sum_by_group(centered_score_ranks * centered_y_ranks)
    rho = divide_or_nan(covariance, np.sqrt(score_variance * y_variance))
    rho[score_variance == 0] = 0.0  # all scores are equal
    rho[y_variance == 0] = np.nan  # all y are equal
    return GroupValues(np.clip(rho, -1.0, 1.0))  # may exceed ±1 by rounding


def _mid_ranks(ranking: Ranking) -> Array:
    """Rank of each row in its group, tied items sharing the mean of their ranks."""
    place_in_group = ranking.targets.place_in_group
    mid_ranks = np.empty(len(ranking.score))
    mid_ranks[ranking.order()] = ranking.mean_over_ties(place_in_group)
    return mid_ranks


@group_metric(
    "mse",
    "Mean squared error",
    short="Squared error",
    greater_is_better=False,
    highest=np.inf,
    accepts_weights=True,
    choices={"average": ("groups", "items")},
)
def mean_squared_error(ranking: Ranking, *, average: str = "groups") -> GroupValues:
    r"""Mean squared difference between scores and true values.

    It measures how well values are predicted, not how well items are ordered:

    .. math:: \frac{1}{n} \sum_{i=1}^{n} (f_i - y_i)^2

    The scores of a ranker have an arbitrary shift and scale, so use it only for models that predict
    the values themselves.

    Parameters
    ----------
    average : {"groups", "items"}, default="groups"
        Mean over groups, or over all items of all groups.
    sample_weight : array-like of shape (m,), default=None
        Weights of the items, 0 or larger.

    Examples
    --------
    >>> mean_squared_error([1, 2, 3], [1, 2, 5])
    1.3333333333333333
    """
    targets = ranking.targets
    weights = targets.weights
    if weights is None:
        weights = np.ones(len(targets.y))
    squared_errors = (ranking.score.astype(np.float64) - targets.y) ** 2
    sum_of_squares = targets.sum_rows_by_group(weights * squared_errors)
    sum_of_weights = targets.sum_rows_by_group(weights)
    error = divide_or_nan(sum_of_squares, sum_of_weights)
    if average == "items":
        return GroupValues(error, weights=sum_of_weights)
    return GroupValues(error)


class PairCounts(NamedTuple):
    """Number (or weight) of the pairs of each group by kind; arrays of shape (n_groups,).

    Attributes
    ----------
    different_y : ndarray
        Pairs with different y.
    discordant : ndarray
        Pairs whose scores are in the opposite order of y.
    tied_scores : ndarray
        Pairs with different y and equal scores.
    total : ndarray
        All pairs.
    different_scores : ndarray
        Pairs with different scores.
    weight_unit : ndarray
        Factor that makes weights of pairs comparable between groups; 1 without weights.
    """

    different_y: Numbers
    discordant: Numbers
    tied_scores: Numbers
    total: Numbers
    different_scores: Numbers
    weight_unit: Array


def count_pairs(ranking: Ranking | SurvivalRanking) -> PairCounts:
    """Count the pairs of each group; with weights a pair counts the product of its weights."""
    if isinstance(ranking, SurvivalRanking):
        return _count_survival_pairs(ranking)
    targets = ranking.targets
    group_starts = targets.group_starts
    # In ranked order a pair is discordant if its levels of y are inverted. Ties are ordered by
    # falling y, so that a pair with equal scores is no inversion
    order = ranking.order("optimistic")
    levels = targets.levels[order].astype(np.int32)
    if targets.weights is None:
        ranked_weights = None
        weight_unit = np.ones(targets.n_groups)
        discordant = count_inversions(levels, group_starts)
        different_y = targets.n_differing_pairs
        total: Numbers = targets.group_sizes * (targets.group_sizes - 1) // 2
    else:
        # a pair has the product of two weights, in units that differ between the groups
        weights, weight_unit = _rescale_weights(targets, order)
        ranked_weights = weights[order]
        discordant = weigh_inversions(levels, group_starts, ranked_weights)  # weight, not number
        different_y = targets.count_pairs_between_runs(
            weights[targets.ideal_order],
            outer_starts=group_starts,
            inner_starts=targets.level_starts,
        )
        single_items = np.arange(len(order))
        total = targets.count_pairs_between_runs(
            ranked_weights, outer_starts=group_starts, inner_starts=single_items
        )
    if not ranking.has_ties:
        no_pairs = np.zeros_like(different_y)
        return PairCounts(
            different_y,
            discordant,
            tied_scores=no_pairs,
            total=total,
            different_scores=total,
            weight_unit=weight_unit,
        )

    # Pairs of one run of tied scores that are not in one run of equal scores and equal y
    equal_item_starts = find_run_starts(targets.levels[order], ranking.tied_run_starts)
    tied_scores = targets.count_pairs_between_runs(
        ranked_weights, outer_starts=ranking.tied_run_starts, inner_starts=equal_item_starts
    )
    # Pairs of one group that are not in one run of tied scores
    different_scores = targets.count_pairs_between_runs(
        ranked_weights, outer_starts=group_starts, inner_starts=ranking.tied_run_starts
    )
    return PairCounts(different_y, discordant, tied_scores, total, different_scores, weight_unit)


def _count_survival_pairs(ranking: SurvivalRanking) -> PairCounts:
    """Counts of the comparable pairs of survival times, all of which have different times."""
    counts = ranking.count_pairs()  # only of pairs whose order in time is known
    return PairCounts(
        different_y=counts.total,
        discordant=counts.discordant,
        tied_scores=counts.tied,
        total=counts.total,
        different_scores=counts.total - counts.tied,
        weight_unit=np.ones(len(counts.total)),  # weights are not rescaled
    )


def _rescale_weights(targets: GroupedTargets, order: Indices) -> tuple[Array, Array]:
    """Divide the weights by the largest weight of their group.

    Running sums extend over all groups, and a group with small weights must not lose digits next to
    one with large weights.

    Returns
    -------
    weights : ndarray of shape (m,)
        At most 1, in row order.
    unit : ndarray of shape (n_groups,)
        Factor of the weights of pairs of each group, at most 1.
    """
    # Divide by the largest weight of the group, so that running sums over all groups lose no digits
    # of a group with small weights
    weights = np.asarray(targets.weights)
    largest_of_group = np.maximum.reduceat(weights[order], targets.group_starts)
    largest_of_group[largest_of_group == 0] = 1.0  # all weights of the group are 0
    scaled = np.empty_like(weights)
    scaled[order] = weights[order] / np.repeat(largest_of_group, targets.group_sizes)
    # A pair has the product of two weights, so its unit is a square
    unit_of_pairs = (largest_of_group / largest_of_group.max()) ** 2
    return scaled, unit_of_pairs
