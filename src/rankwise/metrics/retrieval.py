"""Metrics that emphasize the top of a list: NDCG, AP, precision, recall, reciprocal ranks, hits."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import gammaln

from rankwise.arrays import Array, Indices, Numbers
from rankwise.metrics.grades import LARGEST_GRADE
from rankwise.metrics.metric import GroupValues, check_data, group_metric
from rankwise.metrics.ranking import GroupedTargets, Ranking, divide_or_nan
from rankwise.validation import check_int

_RELEVANT = "at least one relevant item"
_POSITIVE = "at least one item with y > 0"
_TIED_SCORES = ("average", "optimistic", "pessimistic", "order")


@group_metric(
    "ndcg",
    "NDCG",
    needs=f"{_POSITIVE} (and positive weight)",
    accepts_weights=True,
    choices={"gain": ("exponential", "linear"), "tied_scores": _TIED_SCORES},
)
def ndcg(
    ranking: Ranking,
    *,
    k: int | None = None,
    gain: str = "exponential",
    tied_scores: str = "average",
) -> GroupValues:
    r"""Discounted gain of the first k places relative to the ideal order.

    Normalized discounted cumulative gain is

    .. math:: \mathrm{DCG@}k = \sum_{p=1}^{k} \frac{g(y_{(p)})}{\log_2(1 + p)}, \qquad
              \mathrm{NDCG@}k = \mathrm{DCG@}k \,/\, \text{DCG@}k \text{ of the best order}

    with the gain :math:`2^y - 1` [2]_ or y [1]_ of relevance y, 0 or larger. Higher places count
    more. With tied scores the value is the expectation over all orders of the tied items [3]_, so
    it does not depend on the order of rows.

    Libraries differ: scikit-learn and trec_eval use linear gain and count groups without
    relevant items as 0 (``gain="linear", undefined="zero"``); LightGBM and XGBoost use
    exponential gain, count such groups as 1 and leave ties in the order of rows
    (``undefined="one", tied_scores="order"``).

    Parameters
    ----------
    k : int, default=None
        Cut-off; None evaluates the whole list.
    gain : {"exponential", "linear"}, default="exponential"
        ``2**y - 1`` or ``y``.
    tied_scores : {"average", "optimistic", "pessimistic", "order"}, default="average"
        Expectation, or tied items by falling y, by rising y, or in the order of rows.
    sample_weight : array-like of shape (m,), default=None
        Weights of the items, 0 or larger: the gain of an item is multiplied by its weight, also in
        the ideal order. For clicks, the weight of a clicked item is one over its propensity.

    References
    ----------
    .. [1] Järvelin, Kekäläinen: Cumulated gain-based evaluation of IR techniques. ACM TOIS, 2002.
    .. [2] Burges et al.: Learning to rank using gradient descent. ICML 2005.
    .. [3] McSherry, Najork: Computing information retrieval performance measures efficiently in
       the presence of tied scores. ECIR 2008, sec. 3.

    Examples
    --------
    >>> round(ndcg([3, 1, 2], [1, 3, 2]), 3)
    0.681
    >>> round(ndcg([3, 1, 2], [1, 3, 2], gain="linear"), 3)
    0.79
    """
    return GroupValues(_gain_ratio(ranking, k, gain, tied_scores, discount_shift=1))


@group_metric("letor_ndcg", "NDCG of LETOR")
def letor_ndcg(ranking: Ranking, *, k: int | None = None) -> GroupValues:
    r"""Gain of the first k places relative to the ideal order, as computed by LETOR's tools.

    The evaluation tools of the LETOR collections compute

    .. math:: \mathrm{DCG@}k = \sum_{p=1}^{k} \frac{2^{y_{(p)}} - 1}{\log_2 \max(p, 2)}

    Use it to compare with numbers published for LETOR. It differs from `ndcg` in three points: the
    first two places have the same discount, tied items stay in the order of rows, and a group
    without relevant items has 0.

    Parameters
    ----------
    k : int, default=None
        As in `ndcg`.

    Examples
    --------
    >>> letor_ndcg([1, 2, 0], [3, 2, 1])  # the first two places have the same discount
    1.0
    """
    ratio = _gain_ratio(ranking, k, "exponential", "order", discount_shift=0)
    return GroupValues(np.nan_to_num(ratio))


def _gain_ratio(
    ranking: Ranking, k: int | None, gain: str, tied_scores: str, discount_shift: int
) -> Array:
    """Discounted gain relative to the ideal order; the discount is log2(place + discount_shift)."""
    # Discounted cumulative gain of the ranking, divided by that of the ideal order
    targets = ranking.targets
    _check_grades("ndcg", targets, exponential=gain == "exponential")
    gains = targets.y.astype(np.float64)
    if gain == "exponential":
        gains = np.exp2(gains) - 1.0
    ideal_order = targets.ideal_order
    if targets.weights is not None:  # the largest weighted gain comes first
        gains *= targets.weights
        ideal_order = targets.stable_sort_by_group(np.argsort(-gains))

    # 1 / log₂(place + 1), or with a shift of 0 as in LETOR: 1, 1, 1 / log₂(3), …
    places = np.arange(1, targets.group_sizes.max() + 1)
    discount_of_place = 1 / np.log2(np.maximum(places + discount_shift, 2))
    if k is not None:
        discount_of_place[places > k] = 0.0
    discount = discount_of_place[targets.place_in_group - 1]
    ideal_dcg = targets.sum_by_group(gains[ideal_order] * discount)
    dcg = targets.sum_by_group(ranking.sort_values(gains, tied_scores) * discount)
    return np.minimum(divide_or_nan(dcg, ideal_dcg), 1.0)  # may exceed 1 by rounding


@group_metric(
    "err",
    "Expected reciprocal rank",
    needs=_POSITIVE,
    short="ERR",
    choices={"tied_scores": ("pessimistic", "optimistic", "order")},
)
def expected_reciprocal_rank(
    ranking: Ranking,
    *,
    k: int | None = None,
    max_grade: float | None = None,
    tied_scores: str = "pessimistic",
) -> GroupValues:
    r"""Expected reciprocal of the place at which a user finds a satisfying item.

    .. math:: \mathrm{ERR@}k = \sum_{p=1}^{k} \frac{R_{(p)}}{p} \prod_{q < p} (1 - R_{(q)}),
              \qquad R_i = \frac{2^{y_i} - 1}{2^{y_\max}}

    [1]_ eq. 4 and 5. It is not normalized: the ideal order has a value below 1. Its expectation
    over the orders of tied items has no closed form, so ties are broken pessimistically.

    Parameters
    ----------
    k : int, default=None
        Cut-off; None evaluates the whole list.
    max_grade : float, default=None
        Highest grade of the scale, :math:`y_\max`. None takes the largest y of the data; set it to
        compare values between data sets.
    tied_scores : {"pessimistic", "optimistic", "order"}, default="pessimistic"
        Tied items by rising y, by falling y, or in the order of rows.

    References
    ----------
    .. [1] Chapelle, Metzler, Zhang, Grinspan: Expected reciprocal rank for graded relevance.
       CIKM 2009.

    Examples
    --------
    >>> expected_reciprocal_rank([1, 0, 2], [3, 2, 1], max_grade=2)
    0.4375
    """
    targets = ranking.targets
    _check_grades("expected_reciprocal_rank", targets, exponential=True)
    largest_grade = targets.y.max()
    if max_grade is None:
        max_grade = largest_grade
    elif max_grade < largest_grade:
        raise ValueError(
            f"max_grade={max_grade} but y_true has a grade of {largest_grade}; "
            "pass the highest grade of the scale."
        )
    y = targets.y[ranking.order(tied_scores)].astype(np.float64)
    # Probability that the user is satisfied by the item and stops
    satisfaction = (np.exp2(y) - 1.0) / 2.0 ** float(max_grade)
    n_seen = targets.group_sizes
    if k is not None:
        n_seen = np.minimum(n_seen, k)
    values = np.empty(targets.n_groups)
    for groups, offset, is_valid in _pad_in_buckets(n_seen):
        # matrices with a row per group and a column per place, padded; offset: place minus 1
        items = targets.group_starts[groups, None] + offset
        satisfaction_of_place = np.where(is_valid, satisfaction[items], 0.0)
        stop_probability = _probability_of_stopping(satisfaction_of_place)
        values[groups] = (stop_probability / (offset + 1)).sum(axis=1)
    has_relevance = targets.sum_by_group(y) > 0
    values[~has_relevance] = np.nan
    return GroupValues(values)


@group_metric(
    "map",
    "Mean average precision",
    needs=_RELEVANT,
    short="AP",
    choices={"normalizer": ("relevant", "attainable"), "tied_scores": _TIED_SCORES},
)
def average_precision(
    ranking: Ranking,
    *,
    k: int | None = None,
    relevant: float | None = None,
    normalizer: str = "relevant",
    tied_scores: str = "average",
) -> GroupValues:
    r"""Mean of the precision at the places of the relevant items; 1 if all of them come first.

    The average precision of a group, whose mean over groups is MAP, is

    .. math:: \mathrm{AP@}k = \frac{1}{N} \sum_{p=1}^{k} [\text{item at } p \text{ is relevant}]
              \cdot \frac{\text{relevant items among the first } p}{p}

    N is the number of relevant items of the group, as in trec_eval (``map_cut``). With
    ``normalizer="attainable"`` it is min(N, k), so that the ideal order has value 1 even if more
    than k items are relevant. trec_eval counts groups without relevant items as 0
    (``undefined="zero"``). With tied scores the value is the expectation over all orders of the
    tied items, in closed form [1]_; scikit-learn treats all of them as retrieved at once.

    Parameters
    ----------
    k : int, default=None
        Cut-off; None evaluates the whole list.
    relevant : float, default=None
        Items with ``y >= relevant`` are relevant; None takes items with ``y > 0``.
    normalizer : {"relevant", "attainable"}, default="relevant"
        Divide by the number of relevant items, or by at most k. Both are equal without a cut-off.
    tied_scores : {"average", "optimistic", "pessimistic", "order"}, default="average"
        Expectation, or tied items by falling y, by rising y, or in the order of rows.

    References
    ----------
    .. [1] McSherry, Najork: Computing information retrieval performance measures efficiently in
       the presence of tied scores. ECIR 2008, sec. 3.

    Examples
    --------
    >>> round(average_precision([1, 0, 1, 0], [4, 3, 2, 1]), 4)
    0.8333
    """
    targets = ranking.targets
    order = ranking.order(tied_scores)
    is_relevant = _is_relevant(ranking, relevant)[order]
    # Number of relevant items from the top down to each relevant item; 0 at the others
    if ranking.has_ties and tied_scores == "average":
        hits_so_far = _expected_hits(ranking, is_relevant)
    else:
        hits_so_far = np.where(is_relevant, targets.cumsum_by_group(is_relevant), 0)
    precisions = hits_so_far / targets.place_in_group
    n_relevant = targets.sum_by_group(is_relevant)
    largest_sum = n_relevant
    if k is not None:
        precisions[targets.place_in_group > k] = 0.0
        if normalizer == "attainable":
            largest_sum = np.minimum(n_relevant, k)
    sum_of_precisions = targets.sum_by_group(precisions)
    values = divide_or_nan(sum_of_precisions, largest_sum)
    return GroupValues(np.minimum(values, 1.0))  # may exceed 1 by rounding


@group_metric("p", "Precision", short="P", choices={"tied_scores": _TIED_SCORES})
def precision(
    ranking: Ranking, *, k: int, relevant: float | None = None, tied_scores: str = "average"
) -> GroupValues:
    """Share of the first k places that are relevant.

    The divisor is k even if a group has fewer items, and a group without relevant items has 0, as
    in trec_eval and the LETOR scripts. It is therefore defined for every group.

    Parameters
    ----------
    relevant, tied_scores : float and str, default=None and "average"
        As in `average_precision`.
    k : int
        Cut-off.

    Examples
    --------
    >>> precision([1, 0, 1, 0], [4, 3, 2, 1], k=2)
    0.5
    """
    k = check_int("k", k, least=1)
    is_relevant = _is_relevant(ranking, relevant)
    hits = _sum_over_first_places(ranking, is_relevant, k, tied_scores)
    return GroupValues(hits / k)


@group_metric("recall", "Recall", needs=_RELEVANT, choices={"tied_scores": _TIED_SCORES})
def recall(
    ranking: Ranking, *, k: int, relevant: float | None = None, tied_scores: str = "average"
) -> GroupValues:
    """Share of the relevant items that are in the first k places.

    The divisor is the number of all relevant items, as in trec_eval, so the value is below 1 if
    more than k items are relevant.

    Parameters
    ----------
    relevant, tied_scores : float and str, default=None and "average"
        As in `average_precision`.
    k : int
        Cut-off.

    Examples
    --------
    >>> recall([1, 0, 1, 1], [4, 3, 2, 1], k=3)  # two of the three relevant ones
    0.6666666666666666
    """
    k = check_int("k", k, least=1)
    is_relevant = _is_relevant(ranking, relevant)
    hits = _sum_over_first_places(ranking, is_relevant, k, tied_scores)
    n_relevant = ranking.targets.sum_rows_by_group(is_relevant)
    # The sum of averages over ties may exceed the number of relevant items by rounding
    return GroupValues(np.minimum(divide_or_nan(hits, n_relevant), 1.0))


@group_metric("rprec", "R-precision", needs=_RELEVANT, choices={"tied_scores": _TIED_SCORES})
def r_precision(
    ranking: Ranking, *, relevant: float | None = None, tied_scores: str = "average"
) -> GroupValues:
    """Precision at the first R places of a group with R relevant items.

    Precision and recall are equal at this cut-off. trec_eval calls it ``Rprec`` and counts groups
    without relevant items as 0 (``undefined="zero"``).

    Parameters
    ----------
    relevant, tied_scores : float and str, default=None and "average"
        As in `average_precision`.

    Examples
    --------
    >>> r_precision([1, 0, 1, 0], [4, 3, 2, 1])  # one of the first two items
    0.5
    """
    is_relevant = _is_relevant(ranking, relevant)
    targets = ranking.targets
    n_relevant = targets.sum_rows_by_group(is_relevant)
    # The cut-off of each group is its number of relevant items
    cutoff = np.repeat(n_relevant, targets.group_sizes)
    is_within_cutoff = targets.place_in_group <= cutoff
    # Relevance at each place, for tied scores its average
    relevance_of_place = ranking.sort_values(is_relevant, tied_scores)
    hits = targets.sum_by_group(relevance_of_place * is_within_cutoff)
    return GroupValues(divide_or_nan(hits, n_relevant))


@group_metric("success", "Success", needs=_RELEVANT, choices={"tied_scores": _TIED_SCORES})
def success(
    ranking: Ranking, *, k: int, relevant: float | None = None, tied_scores: str = "average"
) -> GroupValues:
    r"""Share of the groups that have a relevant item in the first k places.

    trec_eval calls it ``success_k`` and counts groups without relevant items as 0
    (``undefined="zero"``). With tied scores the value is the expectation over all orders of the
    tied items. `hit_rate` requires the best item of the group instead of any relevant item.

    Parameters
    ----------
    relevant, tied_scores : float and str, default=None and "average"
        As in `average_precision`.
    k : int
        Cut-off.

    Examples
    --------
    >>> success([1, 0, 0, 0, 0, 1], [3, 2, 1, 3, 2, 1], ["a", "a", "a", "b", "b", "b"], k=2)
    0.5
    """
    k = check_int("k", k, least=1)
    is_relevant = _is_relevant(ranking, relevant)[ranking.order(tied_scores)]
    runs = _runs_in_random_order(ranking, tied_scores)
    values = _probability_of_any_in_first_places(ranking, is_relevant, runs, k)
    n_relevant = ranking.targets.sum_by_group(is_relevant)
    values[n_relevant == 0] = np.nan
    return GroupValues(values)


@group_metric(
    "mrr",
    "Mean reciprocal rank",
    needs=_RELEVANT,
    short="RR",
    choices={"tied_scores": _TIED_SCORES},
)
def reciprocal_rank(
    ranking: Ranking,
    *,
    k: int | None = None,
    relevant: float | None = None,
    tied_scores: str = "average",
) -> GroupValues:
    r"""Reciprocal of the place of the first relevant item: 1 if it is first, 1/2 if second.

    With tied scores the value is the expectation over all orders of the tied items: if n items
    share the score of the first relevant item, r of them are relevant, and t items score higher
    [1]_,

    .. math:: \binom{n}{r}^{-1} \sum_{i=1}^{n-r+1} \frac{1}{t + i} \binom{n - i}{r - 1}

    Parameters
    ----------
    relevant, tied_scores : float and str, default=None and "average"
        As in `average_precision`.
    k : int, default=None
        Cut-off; the value is 0 if no relevant item is among the first k. None uses the whole list.

    References
    ----------
    .. [1] McSherry, Najork: Computing information retrieval performance measures efficiently in
       the presence of tied scores. ECIR 2008, sec. 3.

    Examples
    --------
    >>> reciprocal_rank([0, 1, 1], [3, 2, 1])
    0.5
    """
    targets = ranking.targets
    order = ranking.order(tied_scores)
    is_relevant = _is_relevant(ranking, relevant)[order]
    runs = _runs_in_random_order(ranking, tied_scores)  # of tied scores, or single items

    # The first run of each group that contains a relevant item
    n_relevant_of_run = np.add.reduceat(is_relevant, runs.starts, dtype=np.int64)
    runs_with_relevant = np.flatnonzero(n_relevant_of_run)
    group_of_run = _group_of_position(targets, runs.starts[runs_with_relevant])
    defined_groups, first_index = np.unique(group_of_run, return_index=True)
    first_run = runs_with_relevant[first_index]
    # Items of the group above that run, items of the run, and the relevant ones among these
    n_above = targets.place_in_group[runs.starts[first_run]] - 1
    n_items = runs.sizes[first_run]
    n_relevant = n_relevant_of_run[first_run]

    # Expectation over the place of the first relevant item in that run
    values = np.full(targets.n_groups, np.nan)
    n_possible_places = n_items - n_relevant + 1
    for bucket, offset, is_valid in _pad_in_buckets(n_possible_places):
        # offset: number of items of the run that are above, none of them relevant
        n_remaining = n_items[bucket, None] - offset
        probability_if_none_before = np.where(is_valid, n_relevant[bucket, None] / n_remaining, 0.0)
        probability_of_first = _probability_of_stopping(probability_if_none_before)
        place = n_above[bucket, None] + offset + 1
        expected_reciprocal = probability_of_first / place
        if k is not None:
            expected_reciprocal[place > k] = 0.0
        values[defined_groups[bucket]] = expected_reciprocal.sum(axis=1)
    return GroupValues(values)


@group_metric("hit", "Hit rate", needs="two items with different y")
def hit_rate(ranking: Ranking, *, k: int = 1) -> GroupValues:
    r"""Share of the groups whose best item is in the first k places.

    If several items are best, one of them is enough. With tied scores the value is the expectation
    over all orders of the tied items: if n items share the score of the k-th, r of them are best,
    no best item scores higher and s of the n are among the first k,

    .. math:: 1 - \binom{n - r}{s} / \binom{n}{s}

    Parameters
    ----------
    k : int, default=1
        Cut-off.

    Examples
    --------
    >>> hit_rate([3, 1, 2, 1, 2, 3], [0.9, 0.1, 0.5, 0.9, 0.5, 0.1], [1, 1, 1, 2, 2, 2])
    0.5
    """
    check_int("k", k, least=1)
    targets = ranking.targets
    sorted_y = targets.y[targets.ideal_order]
    highest_y_of_group = np.repeat(sorted_y[targets.group_starts], targets.group_sizes)
    is_best = targets.y[ranking.order()] == highest_y_of_group  # in the order of scores
    runs_of_tied_scores = _runs_in_random_order(ranking, "average")
    values = _probability_of_any_in_first_places(ranking, is_best, runs_of_tied_scores, k)
    all_are_best = np.logical_and.reduceat(sorted_y == highest_y_of_group, targets.group_starts)
    values[all_are_best] = np.nan  # no item of these groups could be a miss
    return GroupValues(values)


@group_metric("rbp", "Rank-biased precision", short="RBP", choices={"tied_scores": _TIED_SCORES})
def rank_biased_precision(
    ranking: Ranking,
    *,
    p: float = 0.8,
    k: int | None = None,
    relevant: float | None = None,
    tied_scores: str = "average",
) -> GroupValues:
    r"""Share of relevant items among those seen by a user who may stop after each item.

    For a user who continues to the next item with probability p,

    .. math:: (1 - p) \sum_{i} [\text{item at } i \text{ is relevant}] \; p^{i - 1}

    [1]_ eq. 4. With p = 0.5 a user sees two items on average, with 0.8 five, with 0.95 twenty. A
    group without relevant items has 0.

    Parameters
    ----------
    relevant, tied_scores : float and str, default=None and "average"
        As in `average_precision`.
    p : float, default=0.8
        Probability of continuing to the next item, between 0 and 1.
    k : int, default=None
        Cut-off; None evaluates the whole list.

    References
    ----------
    .. [1] Moffat, Zobel: Rank-biased precision for measurement of retrieval effectiveness. ACM
       TOIS 27, 2008.

    Examples
    --------
    >>> rank_biased_precision([1, 0, 1], [3, 2, 1], p=0.5)
    0.625
    """
    if not 0 < p < 1:
        raise ValueError(f"p={p!r}; pass a probability between 0 and 1, such as 0.8.")
    # RBP = (1 − p) Σ p^(place − 1) over the relevant items
    is_relevant = _is_relevant(ranking, relevant)
    view_probability = p ** (ranking.targets.place_in_group - 1.0)
    expected_hits = _sum_over_first_places(
        ranking, is_relevant, k, tied_scores, weight_of_place=view_probability
    )
    return GroupValues((1 - p) * expected_hits)


@group_metric(
    "judged", "Judged", accepts_missing=True, choices={"tied_scores": ("average", "order")}
)
def judged(ranking: Ranking, *, k: int, tied_scores: str = "average") -> GroupValues:
    """Share of the items in the first k places whose relevance is known.

    An item whose y is NaN is unjudged. If the share is low, other metrics are unreliable, because
    they treat unjudged items as y = 0. NaN in y_true is accepted here, and by `evaluate` if this
    metric is requested.

    Parameters
    ----------
    k : int
        Cut-off; a group with fewer items is evaluated as a whole.
    tied_scores : {"average", "order"}, default="average"
        Expectation over the orders of tied items, or tied items in the order of rows.

    Examples
    --------
    >>> judged([1, float("nan"), 0, 2], [4, 3, 2, 1], k=2)
    0.5
    """
    check_int("k", k, least=1)
    targets = ranking.targets
    is_judged = targets.judged
    if is_judged is None:  # no y is missing
        is_judged = np.ones(len(targets.y), dtype=bool)
    n_judged = _sum_over_first_places(ranking, is_judged, k, tied_scores)
    n_places = np.minimum(targets.group_sizes, k)
    return GroupValues(n_judged / n_places)


def top_k(y_score: ArrayLike, groups: ArrayLike | None = None, *, k: int) -> Indices:
    """Return the rows of the k items with the highest scores of each group, best first.

    Use it to list the best items of each group, for example as recommendations.

    Parameters
    ----------
    y_score : array-like of shape (m,)
        Predicted scores.
    groups : array-like of shape (m,), default=None
        Group label of each row, in any order; None puts all rows in one group.
    k : int
        Number of items; all items of groups that have fewer.

    Returns
    -------
    ndarray of int
        Row numbers, group after group in the order of the sorted labels. Rows with equal scores
        stay in their order.

    Examples
    --------
    >>> import numpy as np
    >>> names = np.array(["tea", "milk", "rye", "oats"])
    >>> names[top_k([0.1, 0.9, 0.3, 0.8], ["drink", "drink", "grain", "grain"], k=1)]
    array(['milk', 'oats'], dtype='<U4')
    """
    check_int("k", k, least=1)
    unused_y = np.zeros(np.shape(y_score)[:1])
    data = check_data(unused_y, y_score, groups)
    if data.score.ndim != 1:
        raise ValueError(
            f"y_score has shape {data.score.shape}; pass one column, as in scores[:, 0]."
        )
    # Rows by group, highest score first
    negative_score = -data.score.astype(np.float64)
    rows = np.lexsort((negative_score, data.groups.codes))
    group_sizes = data.groups.sizes
    group_starts = np.cumsum(group_sizes) - group_sizes
    place_in_group = np.arange(len(rows)) - np.repeat(group_starts, group_sizes)
    top_rows: Indices = rows[place_in_group < k]
    return top_rows


def _check_grades(metric: str, targets: GroupedTargets, *, exponential: bool) -> None:
    """Raise a ValueError if y is negative or too large for the gain."""
    lowest = targets.y.min()
    highest = targets.y.max()
    if lowest < 0:
        raise ValueError(
            f"{metric} needs relevance of 0 or larger, y_true has {lowest}; shift y_true, or use "
            "kendall_tau or disagreement_error, which take any numbers."
        )
    if exponential and highest > LARGEST_GRADE:
        remedy = "use ndcg(..., gain='linear')"
        if metric == "ndcg":
            remedy = "pass gain='linear'"
        raise ValueError(
            f"{metric} has the gain 2**y - 1, too large for y = {highest} "
            f"(at most {LARGEST_GRADE}); {remedy}, or convert y_true to grades such as 0..4."
        )


def _is_relevant(ranking: Ranking, least_relevant: float | None) -> NDArray[np.bool_]:
    """Whether each row is relevant."""
    y = ranking.targets.y
    if least_relevant is None:
        return np.asarray(y > 0)
    return np.asarray(y >= least_relevant)


class _RandomRuns(NamedTuple):
    """Runs of items in ranked order; the order inside a run is random."""

    starts: Indices
    sizes: Indices


def _runs_in_random_order(ranking: Ranking, tied_scores: str) -> _RandomRuns:
    """Runs of tied items for "average"; otherwise each item is a run."""
    if ranking.has_ties and tied_scores == "average":
        return _RandomRuns(ranking.tied_run_starts, ranking.tied_run_sizes)
    n_items = len(ranking.score)
    single_items = np.arange(n_items)  # one run for each item
    return _RandomRuns(single_items, np.ones(n_items, dtype=np.intp))


def _expected_hits(ranking: Ranking, is_relevant: NDArray[np.bool_]) -> Array:
    """Mean over the orders of tied items of [item is relevant] · relevant items down to it.

    In a run of n tied items with r relevant items and b relevant items above the run, the item at
    place i of the run is relevant with probability r / n, and each of the i - 1 items before it in
    the run is then relevant with probability (r - 1) / (n - 1).
    """
    # Runs of tied scores are in random order: n items, r of them relevant
    starts = ranking.tied_run_starts
    n = ranking.tied_run_sizes
    r = np.add.reduceat(is_relevant, starts, dtype=np.int64)  # relevant items in the run
    relevant_so_far = ranking.targets.cumsum_by_group(is_relevant)
    relevant_above_run = relevant_so_far[starts] - is_relevant[starts]
    # Given that an item of the run is relevant, so is any other one with probability (r−1)/(n−1)
    hits_per_place = (r - 1) / np.maximum(n - 1, 1)
    places_before = np.arange(len(is_relevant)) - np.repeat(starts, n)
    hits_before_in_run = places_before * np.repeat(hits_per_place, n)
    hits_if_relevant = np.repeat(relevant_above_run + 1, n) + hits_before_in_run
    probability_of_relevance = np.repeat(r / n, n)
    expected_hits: Array = probability_of_relevance * hits_if_relevant
    return expected_hits


def _sum_over_first_places(
    ranking: Ranking,
    values: Numbers,
    k: int | None,
    tied_scores: str,
    weight_of_place: Numbers | float = 1.0,
) -> Array:
    """Sum of values of the rows over the first k places of each group, weighted by place."""
    targets = ranking.targets
    ranked_values = ranking.sort_values(values, tied_scores)
    n_items = len(ranked_values)
    cutoff = n_items if k is None else k
    weight = np.where(targets.place_in_group <= cutoff, weight_of_place, 0.0)
    return targets.sum_by_group(ranked_values * weight)


def _probability_of_any_in_first_places(
    ranking: Ranking, is_wanted: NDArray[np.bool_], runs: _RandomRuns, k: int
) -> Array:
    """Probability that a wanted item is among the first k places of each group.

    Parameters
    ----------
    ranking : Ranking
        The groups.
    is_wanted : ndarray of bool
        Which items are wanted, in the order of the ranking.
    runs : _RandomRuns
        Runs of items whose order is random.
    k : int
        Cut-off.
    """
    targets = ranking.targets
    n_wanted = np.add.reduceat(is_wanted, runs.starts, dtype=np.int64)
    n_above_run = targets.place_in_group[runs.starts] - 1
    # The first k places contain this many items of each run, drawn at random
    n_drawn = np.clip(k - n_above_run, 0, runs.sizes)
    probability_of_none = _probability_that_none_is_drawn(runs.sizes, n_wanted, n_drawn)
    # Runs are independent: multiply their probabilities in each group
    group_of_run = _group_of_position(targets, runs.starts)
    first_run_of_group = np.searchsorted(group_of_run, np.arange(targets.n_groups))
    probability_of_none = np.multiply.reduceat(probability_of_none, first_run_of_group)
    return np.asarray(1.0 - probability_of_none)


def _group_of_position(targets: GroupedTargets, positions: Indices) -> Indices:
    """Code of the group at each position of an array that is sorted by group."""
    return np.searchsorted(targets.group_starts, positions, side="right") - 1


def _probability_that_none_is_drawn(
    n_items: Indices, n_wanted: NDArray[np.int64], n_drawn: Indices
) -> Array:
    """Probability that items drawn without replacement include no wanted one.

    C(n − r, s) / C(n, s) for s of n items of which r are wanted.
    """
    too_many_are_drawn = n_drawn > n_items - n_wanted
    probability = np.where(too_many_are_drawn, 0.0, 1.0)
    is_between_0_and_1 = (n_wanted > 0) & (n_drawn > 0) & ~too_many_are_drawn
    n = n_items[is_between_0_and_1]
    r = n_wanted[is_between_0_and_1]
    s = n_drawn[is_between_0_and_1]
    # None of r wanted ones among n items is in a sample of s, by the hypergeometric distribution:
    # C(n − r, s) / C(n, s) = (n − r)! (n − s)! / ((n − r − s)! n!)
    probability[is_between_0_and_1] = np.exp(
        gammaln(n - r + 1) - gammaln(n - r - s + 1) - gammaln(n + 1) + gammaln(n - s + 1)
    )
    return np.asarray(probability)


def _probability_of_stopping(probability_if_reached: Array) -> Array:
    """Probability of stopping at each place, from the probabilities given that it is reached.

    Parameters
    ----------
    probability_if_reached : ndarray of shape (n_lists, n_places)
        Probability of stopping at each place of each list, if the place is reached.

    Examples
    --------
    >>> _probability_of_stopping(np.array([[0.5, 0.5, 1.0]]))
    array([[0.5 , 0.25, 0.25]])
    """
    # Cascade: a user at a place stops there with this probability, or continues to the next place.
    # Rows are lists, columns are places
    probability_of_passing = np.cumprod(1.0 - probability_if_reached, axis=1)
    first_is_reached = np.ones((len(probability_if_reached), 1))
    probability_of_reaching = np.hstack([first_is_reached, probability_of_passing[:, :-1]])
    return probability_if_reached * probability_of_reaching


def _pad_in_buckets(
    lengths: Indices,
) -> Iterator[tuple[Indices, Indices, NDArray[np.bool_]]]:
    """Group lists of similar length, so that they can be processed as matrices.

    Lists share a bucket if the same power of two is next above their length, so padding at most
    doubles them. Yields for each bucket the numbers of its lists (b,), the offset of each place
    from the start of its list (b, width), 0 for padding, and whether each place is valid.

    Examples
    --------
    >>> for lists, offset, is_valid in _pad_in_buckets(np.array([3, 1, 4])):
    ...     print(lists, offset.tolist())
    [1] [[0]]
    [0 2] [[0, 1, 2, 0], [0, 1, 2, 3]]
    """
    # Lists whose lengths are within a factor of two, 2^(e−1) < length ≤ 2^e, are padded to one
    # matrix: minus 0.5 they are in [2^(e−1), 2^e), the interval of the exponent e
    _, exponents = np.frexp(lengths - 0.5)
    for exponent in np.unique(exponents):
        lists = np.flatnonzero(exponents == exponent)
        longest = lengths[lists].max()
        place = np.arange(longest)
        is_valid = place < lengths[lists, None]
        offset = np.where(is_valid, place, 0)  # in the list; 0 where there is no item
        yield lists, offset, is_valid
