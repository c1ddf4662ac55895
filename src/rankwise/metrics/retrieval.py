"""Metrics that weigh the top of a list: NDCG, AP, precision, recall, reciprocal ranks, hits."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import gammaln

from rankwise.arrays import Array, Indices
from rankwise.metrics.grades import LARGEST_GRADE
from rankwise.metrics.metric import GroupValues, check_data, group_metric
from rankwise.metrics.ranking import GroupedTargets, Ranking, divide
from rankwise.validation import check_int, check_option

_RELEVANT = "at least one relevant item"
_POSITIVE = "at least one item with y > 0"
_TIED_SCORES = ("average", "optimistic", "pessimistic", "order")


@group_metric("ndcg", "NDCG", needs=f"{_POSITIVE} (and positive weight)", has_weights=True)
def ndcg(
    ranking: Ranking,
    *,
    k: int | None = None,
    gain: str = "exponential",
    tied_scores: str = "average",
) -> GroupValues:
    r"""How much of the worth of a perfect order the first k places hold; upper places count more.

    Normalized discounted cumulative gain is

    .. math:: \mathrm{DCG@}k = \sum_{p=1}^{k} \frac{g(y_{(p)})}{\log_2(1 + p)}, \qquad
              \mathrm{NDCG@}k = \mathrm{DCG@}k \,/\, \text{DCG@}k \text{ of the best order}

    with the gain :math:`2^y - 1` [2]_ or y [1]_ of relevance y, 0 or larger. Tied scores get the
    expectation over all orders of the tied items [3]_, so that the value does not depend on the
    order of rows.

    Libraries differ: scikit-learn and trec_eval use linear gain and count groups without
    relevant items as 0 (``gain="linear", undefined="zero"``); LightGBM and XGBoost use
    exponential gain, count such groups as 1 and leave ties in the order of rows
    (``undefined="one", tied_scores="order"``).

    Parameters
    ----------
    k : int, optional
        Cut-off; by default the whole list counts.
    gain : {"exponential", "linear"}, default="exponential"
        ``2**y - 1`` or ``y``.
    tied_scores : {"average", "optimistic", "pessimistic", "order"}, default="average"
        Expectation, or tied items by falling y, by rising y, or in the order of rows.
    sample_weight : array-like of shape (m,), optional
        Weights of the items, 0 or larger: the gain of an item is multiplied by its weight, in the
        best order too. For clicks, the weight of a clicked item is one over its propensity.

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
    check_option("gain", gain, ("exponential", "linear"))
    check_option("tied_scores", tied_scores, _TIED_SCORES)
    return GroupValues(_gain_ratio(ranking, k, gain, tied_scores, next_place=1))


@group_metric("letor_ndcg", "NDCG of LETOR")
def letor_ndcg(ranking: Ranking, *, k: int | None = None) -> GroupValues:
    r"""How much of the worth of a perfect order the first k places hold, as LETOR's tools count it.

    The evaluation tools of the LETOR collections compute

    .. math:: \mathrm{DCG@}k = \sum_{p=1}^{k} \frac{2^{y_{(p)}} - 1}{\log_2 \max(p, 2)}

    Use it to compare with numbers published for LETOR. It differs from `ndcg` in three points: the
    first two places count alike, tied scores stay in the order of rows, and a group without
    relevant items has 0.

    Parameters
    ----------
    k
        As in `ndcg`.

    Examples
    --------
    >>> letor_ndcg([1, 2, 0], [3, 2, 1])  # the first two places count alike
    1.0
    """
    ratio = _gain_ratio(ranking, k, "exponential", "order", next_place=0)
    return GroupValues(np.nan_to_num(ratio))


def _gain_ratio(
    ranking: Ranking, k: int | None, gain: str, tied_scores: str, next_place: int
) -> Array:
    """Discounted gain as a share of that of the best order; places are counted from next_place."""
    targets = ranking.targets
    _check_grades("ndcg", targets, exponential=gain == "exponential")
    gains = targets.y.astype(np.float64)
    if gain == "exponential":
        gains = np.exp2(gains) - 1.0
    best = targets.order
    if targets.weights is not None:
        gains *= targets.weights
        best = targets.by_group(np.argsort(-gains))
    places = np.arange(1, targets.sizes.max() + 1)
    discounts = 1 / np.log2(np.maximum(places + next_place, 2))
    discount = np.where(places <= (k or len(places)), discounts, 0.0)[targets.position - 1]
    ideal = targets.sum(gains[best] * discount)
    reached = targets.sum(ranking.ranked(gains, tied_scores) * discount)
    return np.minimum(divide(reached, ideal), 1.0)


@group_metric("err", "Expected reciprocal rank", needs=_POSITIVE, short="ERR")
def expected_reciprocal_rank(
    ranking: Ranking,
    *,
    k: int | None = None,
    max_grade: float | None = None,
    tied_scores: str = "pessimistic",
) -> GroupValues:
    r"""One over the place where a reader who goes down the list is satisfied, on average.

    .. math:: \mathrm{ERR@}k = \sum_{p=1}^{k} \frac{R_{(p)}}{p} \prod_{q < p} (1 - R_{(q)}),
              \qquad R_i = \frac{2^{y_i} - 1}{2^{y_\max}}

    [1]_ eq. 4 and 5. It is not divided by its best value: a perfect order has less than 1. There
    is no closed form for its expectation over the orders of tied items, so ties are pessimistic.

    Parameters
    ----------
    k : int, optional
        Cut-off; by default the whole list counts.
    max_grade : float, optional
        Highest grade of the scale, :math:`y_\max`. By default the largest y of the data; give it
        to compare values from different data.
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
    check_option("tied_scores", tied_scores, ("pessimistic", "optimistic", "order"))
    targets = ranking.targets
    _check_grades("expected_reciprocal_rank", targets, exponential=True)
    highest = float(targets.y.max() if max_grade is None else max_grade)
    if highest < targets.y.max():
        raise ValueError(
            f"max_grade={max_grade} but y_true has a grade of {targets.y.max()}; "
            "pass the highest grade of the scale."
        )
    y = targets.y[ranking.order(tied_scores)].astype(np.float64)
    stop = (np.exp2(y) - 1.0) / 2.0**highest
    values = np.empty(targets.n_groups)
    lengths = targets.sizes if k is None else np.minimum(targets.sizes, k)
    for which, offset, valid in _pad_in_buckets(lengths):
        stops = np.where(valid, stop[targets.starts[which, None] + offset], 0.0)
        values[which] = (_stop_probability(stops) / (offset + 1)).sum(axis=1)
    values[targets.sum(y) == 0] = np.nan
    return GroupValues(values)


@group_metric("map", "Mean average precision", needs=_RELEVANT, short="AP")
def average_precision(
    ranking: Ranking,
    *,
    k: int | None = None,
    relevant: float | None = None,
    normalizer: str = "relevant",
    tied_scores: str = "average",
) -> GroupValues:
    r"""Mean, over relevant items, of the share of relevant items down to them: 1 if all come first.

    The average precision of a group, whose mean over groups is MAP, is

    .. math:: \mathrm{AP@}k = \frac{1}{N} \sum_{p=1}^{k} [\text{item at } p \text{ is relevant}]
              \cdot \frac{\text{relevant items among the first } p}{p}

    N is the number of relevant items of the group, in the first k or not, as in trec_eval
    (``map_cut``). With ``normalizer="attainable"`` it is min(N, k), so that a perfect order has 1
    also where more than k items are relevant. trec_eval counts groups without relevant items as 0
    (``undefined="zero"``). Tied scores get the expectation over all orders of
    the tied items, in closed form [1]_; scikit-learn instead lets them enter all at once.

    Parameters
    ----------
    k : int, optional
        Cut-off; by default the whole list counts.
    relevant : float, optional
        Items with ``y >= relevant`` are relevant; by default those with ``y > 0``.
    normalizer : {"relevant", "attainable"}, default="relevant"
        Divide by the number of relevant items, or by no more than k. The same without k.
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
    check_option("normalizer", normalizer, ("relevant", "attainable"))
    hit = _relevant(ranking, relevant, tied_scores)[ranking.order(tied_scores)]
    targets = ranking.targets
    if ranking.has_ties and tied_scores == "average":
        hits_so_far = _expected_hits(ranking, hit)
    else:
        hits_so_far = np.where(hit, targets.cumulate(hit), 0)
    earned = hits_so_far / targets.position
    n_best = targets.sum(hit)
    if k is not None:
        earned[targets.position > k] = 0.0
        n_best = np.minimum(n_best, k) if normalizer == "attainable" else n_best
    return GroupValues(np.minimum(divide(targets.sum(earned), n_best), 1.0))


@group_metric("p", "Precision", short="P")
def precision(
    ranking: Ranking, *, k: int, relevant: float | None = None, tied_scores: str = "average"
) -> GroupValues:
    """Share of the first k places that are relevant.

    It divides by k even if a group has fewer items, and a group without relevant items has 0:
    both as trec_eval and the LETOR scripts do. So it is defined for every group.

    Parameters
    ----------
    relevant, tied_scores
        As in `average_precision`.
    k : int
        Cut-off.

    Examples
    --------
    >>> precision([1, 0, 1, 0], [4, 3, 2, 1], k=2)
    0.5
    """
    is_relevant = _relevant(ranking, relevant, tied_scores)
    return GroupValues(
        _sum_first(ranking, is_relevant, check_int("k", k, least=1), tied_scores) / k
    )


@group_metric("recall", "Recall", needs=_RELEVANT)
def recall(
    ranking: Ranking, *, k: int, relevant: float | None = None, tied_scores: str = "average"
) -> GroupValues:
    """Share of the relevant items that are at the first k places.

    It divides by the number of all relevant items, as trec_eval does, so it cannot reach 1 where
    more than k items are relevant.

    Parameters
    ----------
    relevant, tied_scores
        As in `average_precision`.
    k : int
        Cut-off.

    Examples
    --------
    >>> recall([1, 0, 1, 1], [4, 3, 2, 1], k=3)  # two of the three relevant ones
    0.6666666666666666
    """
    is_relevant = _relevant(ranking, relevant, tied_scores)
    hits = _sum_first(ranking, is_relevant, check_int("k", k, least=1), tied_scores)
    return GroupValues(np.minimum(divide(hits, ranking.targets.sum_rows(is_relevant)), 1.0))


@group_metric("rprec", "R-precision", needs=_RELEVANT)
def r_precision(
    ranking: Ranking, *, relevant: float | None = None, tied_scores: str = "average"
) -> GroupValues:
    """Share of relevant items at the first R places of a group that has R relevant items.

    Precision and recall are equal at this place. trec_eval calls it ``Rprec`` and counts groups
    without relevant items as 0 (``undefined="zero"``).

    Parameters
    ----------
    relevant, tied_scores
        As in `average_precision`.

    Examples
    --------
    >>> r_precision([1, 0, 1, 0], [4, 3, 2, 1])  # one of the first two items
    0.5
    """
    is_relevant = _relevant(ranking, relevant, tied_scores)
    targets = ranking.targets
    n_relevant = targets.sum_rows(is_relevant)
    is_counted = targets.position <= np.repeat(n_relevant, targets.sizes)
    hits = targets.sum(ranking.ranked(is_relevant, tied_scores) * is_counted)
    return GroupValues(np.minimum(divide(hits, n_relevant), 1.0))


@group_metric("success", "Success", needs=_RELEVANT)
def success(
    ranking: Ranking, *, k: int, relevant: float | None = None, tied_scores: str = "average"
) -> GroupValues:
    r"""Share of the groups that have a relevant item at the first k places.

    trec_eval calls it ``success_k`` and counts groups without relevant items as 0
    (``undefined="zero"``). With tied scores, the expectation over all orders of the tied items, as
    in `hit_rate`, which asks for the best item of the group in the place of any relevant one.

    Parameters
    ----------
    relevant, tied_scores
        As in `average_precision`.
    k : int
        Cut-off.

    Examples
    --------
    >>> success([1, 0, 0, 0, 0, 1], [3, 2, 1, 3, 2, 1], ["a", "a", "a", "b", "b", "b"], k=2)
    0.5
    """
    is_relevant = _relevant(ranking, relevant, tied_scores)[ranking.order(tied_scores)]
    targets = ranking.targets
    if ranking.has_ties and tied_scores == "average":
        starts = ranking.run_starts
        sizes = ranking.run_sizes
    else:
        starts = np.arange(len(is_relevant))
        sizes = np.ones(len(is_relevant), dtype=np.intp)
    values = _chance_of_any(ranking, is_relevant, starts, sizes, check_int("k", k, least=1))
    values[targets.sum(is_relevant) == 0] = np.nan
    return GroupValues(values)


@group_metric("mrr", "Mean reciprocal rank", needs=_RELEVANT, short="RR")
def reciprocal_rank(
    ranking: Ranking,
    *,
    k: int | None = None,
    relevant: float | None = None,
    tied_scores: str = "average",
) -> GroupValues:
    r"""One over the place of the first relevant item: 1 if it is first, 1/2 if second.

    With tied scores, the expectation over all orders of the tied items: if n items share the
    score of the first relevant one, r of them are relevant, and t items score higher [1]_,

    .. math:: \binom{n}{r}^{-1} \sum_{i=1}^{n-r+1} \frac{1}{t + i} \binom{n - i}{r - 1}

    Parameters
    ----------
    relevant, tied_scores
        As in `average_precision`.
    k : int, optional
        Cut-off: 0 if no relevant item is among the first k.

    References
    ----------
    .. [1] McSherry, Najork: Computing information retrieval performance measures efficiently in
       the presence of tied scores. ECIR 2008, sec. 3.

    Examples
    --------
    >>> reciprocal_rank([0, 1, 1], [3, 2, 1])
    0.5
    """
    hit = _relevant(ranking, relevant, tied_scores)[ranking.order(tied_scores)]
    targets = ranking.targets
    if ranking.has_ties and tied_scores == "average":
        starts, sizes = ranking.run_starts, ranking.run_sizes
    else:
        starts, sizes = np.arange(len(hit)), np.ones(len(hit), dtype=np.intp)
    n_hits = np.add.reduceat(hit, starts, dtype=np.int64)
    # the first run of each group that has a relevant item
    runs = np.flatnonzero(n_hits)
    group = np.searchsorted(targets.starts, starts[runs], side="right") - 1
    defined, first = np.unique(group, return_index=True)
    runs = runs[first]
    above = targets.position[starts[runs]] - 1
    n, r = sizes[runs], n_hits[runs]
    values = np.full(targets.n_groups, np.nan)
    # the mean of 1 / place of the first of r relevant among n items in random order
    for which, offset, valid in _pad_in_buckets(n - r + 1):
        hit_if_none_before = np.where(valid, r[which, None] / (n[which, None] - offset), 0.0)
        place = above[which, None] + offset + 1
        earned = _stop_probability(hit_if_none_before) / place
        if k is not None:
            earned[place > k] = 0.0
        values[defined[which]] = earned.sum(axis=1)
    return GroupValues(values)


@group_metric("hit", "Hit rate", needs="two items with different y")
def hit_rate(ranking: Ranking, *, k: int = 1) -> GroupValues:
    r"""Share of the groups whose best item is at the first k places.

    If several items are best, one of them is enough. With tied scores, the expectation over all
    orders of the tied items: if n items share the score of the k-th, r of them are best, none of
    the best scores higher and s of the n are among the first k,

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
    sorted_y = targets.y[targets.order]
    best = np.repeat(sorted_y[targets.starts], targets.sizes)
    is_best = targets.y[ranking.order()] == best
    values = _chance_of_any(ranking, is_best, ranking.run_starts, ranking.run_sizes, k)
    values[np.logical_and.reduceat(sorted_y == best, targets.starts)] = np.nan
    return GroupValues(values)


@group_metric("rbp", "Rank-biased precision", short="RBP")
def rank_biased_precision(
    ranking: Ranking,
    *,
    p: float = 0.8,
    k: int | None = None,
    relevant: float | None = None,
    tied_scores: str = "average",
) -> GroupValues:
    r"""Share of relevant items among those seen by a reader who may stop after each item.

    For a user who goes on to the next item with probability p,

    .. math:: (1 - p) \sum_{i} [\text{item at } i \text{ is relevant}] \; p^{i - 1}

    [1]_ eq. 4. With p = 0.5 a user sees two items on average, with 0.8 five, with 0.95 twenty. A
    group without relevant items has 0.

    Parameters
    ----------
    relevant, tied_scores
        As in `average_precision`.
    p : float, default=0.8
        Probability of looking at the next item, between 0 and 1.
    k : int, optional
        Cut-off; by default the whole list counts.

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
    is_relevant = _relevant(ranking, relevant, tied_scores)
    is_seen = p ** (ranking.targets.position - 1.0)
    return GroupValues((1 - p) * _sum_first(ranking, is_relevant, k, tied_scores, is_seen))


@group_metric("judged", "Judged", has_gaps=True)
def judged(ranking: Ranking, *, k: int, tied_scores: str = "average") -> GroupValues:
    """Share of the items at the first k places whose relevance is known.

    An item whose y is NaN is not judged. If the share is low, other metrics say little: they count
    items that nobody judged as y = 0. NaN in y_true is taken here, and by `evaluate` if this is
    among its metrics.

    Parameters
    ----------
    k : int
        Cut-off; a group that has fewer items counts as far as it goes.
    tied_scores : {"average", "order"}, default="average"
        Expectation over the orders of tied items, or tied items in the order of rows.

    Examples
    --------
    >>> judged([1, float("nan"), 0, 2], [4, 3, 2, 1], k=2)
    0.5
    """
    check_int("k", k, least=1)
    check_option("tied_scores", tied_scores, ("average", "order"))
    targets = ranking.targets
    known = np.ones(len(targets.y), dtype=bool) if targets.judged is None else targets.judged
    first = _sum_first(ranking, known, k, tied_scores)
    return GroupValues(np.minimum(first / np.minimum(targets.sizes, k), 1.0))


def top_k(y_score: ArrayLike, groups: ArrayLike | None = None, *, k: int) -> Indices:
    """Rows of the k items with the highest scores of each group, best first.

    Parameters
    ----------
    y_score : array-like of shape (m,)
        Predicted scores.
    groups : array-like of shape (m,), optional
        Group label of each row, in any order; None puts all rows in one group.
    k : int
        Number of items; a group that has fewer gives all of them.

    Returns
    -------
    ndarray of int
        Numbers of rows, group after group in the order of the sorted labels. Rows with equal
        scores stay in their order.

    Examples
    --------
    >>> import numpy as np
    >>> names = np.array(["tea", "milk", "rye", "oats"])
    >>> names[top_k([0.1, 0.9, 0.3, 0.8], ["drink", "drink", "grain", "grain"], k=1)]
    array(['milk', 'oats'], dtype='<U4')
    """
    check_int("k", k, least=1)
    _, score, encoded, _ = check_data(np.zeros(np.shape(y_score)[:1]), y_score, groups)
    if score.ndim != 1:
        raise ValueError(f"y_score has shape {score.shape}; pass one column, as in scores[:, 0].")
    rows = np.lexsort((-score.astype(np.float64), encoded.codes))
    sizes = encoded.sizes
    place = np.arange(len(rows)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    first: Indices = rows[place < k]
    return first


def _check_grades(metric: str, targets: GroupedTargets, *, exponential: bool) -> None:
    lowest, highest = targets.y.min(), targets.y.max()
    if lowest < 0:
        raise ValueError(
            f"{metric} needs relevance of 0 or larger, y_true has {lowest}; shift y_true, or use "
            "kendall_tau or disagreement_error, which take any numbers."
        )
    if exponential and highest > LARGEST_GRADE:
        other = "pass gain='linear'" if metric == "ndcg" else "use ndcg(..., gain='linear')"
        raise ValueError(
            f"{metric} has the gain 2**y - 1, too large for y = {highest} "
            f"(at most {LARGEST_GRADE}); {other}, or put y_true in grades such as 0..4."
        )


def _relevant(ranking: Ranking, least: float | None, tied_scores: str) -> NDArray[np.bool_]:
    """Which rows are relevant; all metrics of them have the same ways to take tied scores."""
    check_option("tied_scores", tied_scores, _TIED_SCORES)
    y = ranking.targets.y
    is_relevant: NDArray[np.bool_] = y > 0 if least is None else y >= least
    return is_relevant


def _expected_hits(ranking: Ranking, hit: NDArray[np.bool_]) -> Array:
    """Mean, over the orders of tied items, of [relevant here] times relevant items so far.

    In a run of n tied items with r relevant ones and b relevant ones above it, the item at
    place i of the run is relevant with probability r / n, and then each of the i - 1 before it
    in the run is so with probability (r - 1) / (n - 1).
    """
    first, n = ranking.run_starts, ranking.run_sizes
    r = np.add.reduceat(hit, first, dtype=np.int64)
    b = ranking.targets.cumulate(hit)[first] - hit[first]
    per_place = (r - 1) / np.maximum(n - 1, 1)
    before_in_run = np.arange(len(hit)) - np.repeat(first, n)
    if_relevant = np.repeat(b + 1, n) + before_in_run * np.repeat(per_place, n)
    expected: Array = np.repeat(r / n, n) * if_relevant
    return expected


def _sum_first(
    ranking: Ranking,
    values: NDArray[Any],
    k: int | None,
    tied_scores: str,
    worth: NDArray[Any] | float = 1.0,
) -> Array:
    """Sum of values of the rows over the first k places of each group, by the worth of a place."""
    position = ranking.targets.position
    counted = np.where(position <= (k or len(position)), worth, 0.0)
    return ranking.targets.sum(ranking.ranked(values, tied_scores) * counted)


def _chance_of_any(
    ranking: Ranking, is_wanted: NDArray[np.bool_], starts: Indices, sizes: Indices, k: int
) -> Array:
    """For each group, the probability that one of the wanted items is at the first k places.

    Parameters
    ----------
    ranking : Ranking
        The groups.
    is_wanted : ndarray of bool
        Which items are wanted, in the order of the ranking.
    starts, sizes : ndarray of int
        Runs of items whose order is random.
    k : int
        Cut-off.
    """
    targets = ranking.targets
    n_wanted = np.add.reduceat(is_wanted, starts, dtype=np.int64)
    above = targets.position[starts] - 1
    taken = np.clip(k - above, 0, sizes)
    missed = _none_taken(sizes, n_wanted, taken)
    group = np.searchsorted(targets.starts, starts, side="right") - 1
    first = np.searchsorted(group, np.arange(targets.n_groups))
    return np.asarray(1.0 - np.multiply.reduceat(missed, first))


def _none_taken(n: Indices, r: NDArray[np.int64], s: Indices) -> Array:
    """Probability that s of n items in random order have none of r: C(n − r, s)/C(n, s)."""
    out = np.where(s > n - r, 0.0, 1.0)
    is_open = (r > 0) & (s > 0) & (s <= n - r)
    a, b, c = n[is_open], r[is_open], s[is_open]
    out[is_open] = np.exp(
        gammaln(a - b + 1) - gammaln(a - b - c + 1) - gammaln(a + 1) + gammaln(a - c + 1)
    )
    return np.asarray(out)


def _stop_probability(stops_if_there: Array) -> Array:
    """Probability of stopping at each place: of getting there, times of stopping if there.

    Parameters
    ----------
    stops_if_there : ndarray of shape (n_lists, n_places)
        One list a row.

    Examples
    --------
    >>> _stop_probability(np.array([[0.5, 0.5, 1.0]]))
    array([[0.5 , 0.25, 0.25]])
    """
    passed = np.cumprod(1.0 - stops_if_there, axis=1)
    arrives = np.hstack([np.ones((len(passed), 1)), passed[:, :-1]])
    return stops_if_there * arrives


def _pad_in_buckets(
    lengths: Indices,
) -> Iterator[tuple[Indices, Indices, NDArray[np.bool_]]]:
    """Put lists of like length together, to work on them as matrices.

    Lists share a bucket if the same power of two is next above their length, so that padding at
    most doubles them. Yields ``which`` lists (b,), the ``offset`` of each place from the start of
    its list (b, width), 0 where the list has no such place, and which places are ``valid``.

    Examples
    --------
    >>> for which, offset, valid in _pad_in_buckets(np.array([3, 1, 4])):
    ...     print(which, offset.tolist())
    [1] [[0]]
    [0 2] [[0, 1, 2, 0], [0, 1, 2, 3]]
    """
    _, bucket = np.frexp(lengths - 0.5)
    for exponent in np.unique(bucket):
        which = np.flatnonzero(bucket == exponent)
        place = np.arange(lengths[which].max())
        valid = place < lengths[which, None]
        yield which, np.where(valid, place, 0), valid
