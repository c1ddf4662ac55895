"""Metrics of binary relevance that weigh the top of the list: AP, precision, recall, RR."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rankwise.arrays import Array, Indices
from rankwise.metrics.arguments import check_cutoff
from rankwise.metrics.averaging import GroupMetric, GroupValues, MetricValue, mean_over_groups
from rankwise.metrics.ranking import Ranking, Targets
from rankwise.metrics.stopping import pad_in_buckets, stop_probability
from rankwise.options import check_option

_TIED_SCORES = ("average", "optimistic", "pessimistic", "order")


def average_precision(
    y_true: ArrayLike,
    y_score: ArrayLike,
    groups: ArrayLike | None = None,
    *,
    k: int | None = None,
    relevant: float | None = None,
    normalizer: str = "relevant",
    tied_scores: str = "average",
    sample_weight: ArrayLike | None = None,
    undefined: str = "skip",
    per_group: bool = False,
) -> MetricValue:
    r"""Average precision inside groups; its mean over groups is MAP.

    .. math:: \mathrm{AP@}k = \frac{1}{N} \sum_{p=1}^{k} [\text{item at } p \text{ is relevant}]
              \cdot \frac{\text{relevant items among the first } p}{p}

    N is the number of relevant items of the group, in the first k or not, as in trec_eval
    (``map_cut``). With ``normalizer="attainable"`` it is min(N, k), so that a perfect order has 1
    also where more than k items are relevant. Tied scores get the expectation over all orders of
    the tied items, in closed form [1]_; scikit-learn instead lets them enter all at once.

    Parameters
    ----------
    y_true : array-like of shape (m,) or (m, v), or structured target
        Relevance.
    y_score : array-like of shape (m,) or (m, v)
        Predicted scores.
    groups : array-like of shape (m,), optional
        Group label of each row, in any order; None puts all rows in one group.
    k : int, optional
        Cut-off; by default the whole list counts.
    relevant : float, optional
        Items with ``y >= relevant`` are relevant; by default those with ``y > 0``.
    normalizer : {"relevant", "attainable"}, default="relevant"
        Divide by the number of relevant items, or by no more than k. The same without k.
    tied_scores : {"average", "optimistic", "pessimistic", "order"}, default="average"
        Expectation, or tied items by falling y, by rising y, or in the order of rows.
    sample_weight : array-like of shape (m,), optional
        Weights of the items, 0 or larger: the precision that a relevant item earns is multiplied
        by its weight, and N is the weight of the relevant items (the k heaviest, if attainable).
        The precision itself counts items.
    undefined : {"skip", "zero", "one", "nan", "raise"}, default="skip"
        What to do with groups that have no relevant item; trec_eval has "zero".
    per_group : bool, default=False
        Return one value per group, in the order of the sorted labels, instead of the mean.

    Returns
    -------
    float or ndarray
        In [0, 1]. One value per column for (m, v) input.

    References
    ----------
    .. [1] McSherry, Najork: Computing information retrieval performance measures efficiently in
       the presence of tied scores. ECIR 2008, sec. 3.

    Examples
    --------
    >>> round(average_precision([1, 0, 1, 0], [4, 3, 2, 1]), 4)
    0.8333
    """
    return mean_over_groups(
        AP, y_true, y_score, groups, undefined=undefined, per_group=per_group,
        k=k, relevant=relevant, normalizer=normalizer, tied_scores=tied_scores,
        sample_weight=sample_weight,
    )  # fmt: skip


def precision(
    y_true: ArrayLike,
    y_score: ArrayLike,
    groups: ArrayLike | None = None,
    *,
    k: int,
    relevant: float | None = None,
    tied_scores: str = "average",
    sample_weight: ArrayLike | None = None,
    undefined: str = "skip",
    per_group: bool = False,
) -> MetricValue:
    """Fraction of relevant items among the first k of each group.

    It divides by k even if a group has fewer items, and a group without relevant items has 0:
    both as trec_eval and the LETOR scripts do. So it is defined for every group.

    Parameters
    ----------
    y_true, y_score, groups, relevant, tied_scores, per_group
        As in `average_precision`.
    k : int
        Cut-off.
    sample_weight : array-like of shape (m,), optional
        Weights of the items, 0 or larger: the fraction of the weight of the first k that relevant
        items have; of tied items each has its share of every place.
    undefined : {"skip", "zero", "one", "nan", "raise"}, default="skip"
        What to do with groups whose first k items have no weight; there are no others.

    Returns
    -------
    float or ndarray
        In [0, 1]. One value per column for (m, v) input.

    Examples
    --------
    >>> precision([1, 0, 1, 0], [4, 3, 2, 1], k=2)
    0.5
    """
    return mean_over_groups(
        PRECISION, y_true, y_score, groups, undefined=undefined, per_group=per_group,
        k=k, relevant=relevant, tied_scores=tied_scores, sample_weight=sample_weight,
    )  # fmt: skip


def recall(
    y_true: ArrayLike,
    y_score: ArrayLike,
    groups: ArrayLike | None = None,
    *,
    k: int,
    relevant: float | None = None,
    tied_scores: str = "average",
    sample_weight: ArrayLike | None = None,
    undefined: str = "skip",
    per_group: bool = False,
) -> MetricValue:
    """Fraction of the relevant items of each group that are among its first k.

    It divides by the number of all relevant items, as trec_eval does, so it cannot reach 1 where
    more than k items are relevant.

    Parameters
    ----------
    y_true, y_score, groups, relevant, tied_scores, per_group
        As in `average_precision`.
    k : int
        Cut-off.
    sample_weight : array-like of shape (m,), optional
        Weights of the items, 0 or larger: the fraction of the weight of the relevant items.
    undefined : {"skip", "zero", "one", "nan", "raise"}, default="skip"
        What to do with groups that have no relevant item; trec_eval has "zero".

    Returns
    -------
    float or ndarray
        In [0, 1]. One value per column for (m, v) input.

    Examples
    --------
    >>> recall([1, 0, 1, 1], [4, 3, 2, 1], k=3)  # two of the three relevant ones
    0.6666666666666666
    """
    return mean_over_groups(
        RECALL, y_true, y_score, groups, undefined=undefined, per_group=per_group,
        k=k, relevant=relevant, tied_scores=tied_scores, sample_weight=sample_weight,
    )  # fmt: skip


def reciprocal_rank(
    y_true: ArrayLike,
    y_score: ArrayLike,
    groups: ArrayLike | None = None,
    *,
    k: int | None = None,
    relevant: float | None = None,
    tied_scores: str = "average",
    sample_weight: ArrayLike | None = None,
    undefined: str = "skip",
    per_group: bool = False,
) -> MetricValue:
    r"""One over the place of the first relevant item of each group; its mean is MRR.

    With tied scores, the expectation over all orders of the tied items: if n items share the
    score of the first relevant one, r of them are relevant, and t items score higher [1]_,

    .. math:: \binom{n}{r}^{-1} \sum_{i=1}^{n-r+1} \frac{1}{t + i} \binom{n - i}{r - 1}

    Parameters
    ----------
    y_true, y_score, groups, relevant, tied_scores, per_group
        As in `average_precision`.
    k : int, optional
        Cut-off: 0 if no relevant item is among the first k.
    sample_weight : None
        For uniformity: weights of items have no meaning here, and are refused.
    undefined : {"skip", "zero", "one", "nan", "raise"}, default="skip"
        What to do with groups that have no relevant item; trec_eval has "zero".

    Returns
    -------
    float or ndarray
        In [0, 1]. One value per column for (m, v) input.

    References
    ----------
    .. [1] McSherry, Najork: Computing information retrieval performance measures efficiently in
       the presence of tied scores. ECIR 2008, sec. 3.

    Examples
    --------
    >>> reciprocal_rank([0, 1, 1], [3, 2, 1])
    0.5
    """
    return mean_over_groups(
        RR, y_true, y_score, groups, undefined=undefined, per_group=per_group,
        k=k, relevant=relevant, tied_scores=tied_scores, sample_weight=sample_weight,
    )  # fmt: skip


def _is_relevant(targets: Targets, relevant: float | None) -> NDArray[np.bool_]:
    found: NDArray[np.bool_] = targets.y > 0 if relevant is None else targets.y >= relevant
    return found


def _ap_by_group(
    ranking: Ranking,
    *,
    k: int | None,
    relevant: float | None,
    normalizer: str,
    tied_scores: str,
) -> GroupValues:
    k = check_cutoff(k)
    check_option("normalizer", normalizer, ("relevant", "attainable"))
    check_option("tied_scores", tied_scores, _TIED_SCORES)
    targets = ranking.targets
    hit = _is_relevant(targets, relevant)[ranking.order(tied_scores)]
    if ranking.has_ties and tied_scores == "average":
        hits_so_far = _expected_hits(ranking, hit)
    else:
        hits_so_far = np.where(hit, targets.cumulate(hit), 0)
    earned = hits_so_far / targets.position
    if k is not None:
        earned[targets.position > k] = 0.0
    if targets.weights is not None:
        attainable = k if normalizer == "attainable" else None
        return _weighted_ap(ranking, hit, earned, tied_scores, attainable)
    n_relevant = targets.sum(hit)
    n_best = np.minimum(n_relevant, k) if k and normalizer == "attainable" else n_relevant
    values = np.full(targets.n_groups, np.nan)
    np.divide(targets.sum(earned), n_best, out=values, where=n_relevant > 0)
    return GroupValues(np.minimum(values, 1.0))


def _weighted_ap(
    ranking: Ranking,
    hit: NDArray[np.bool_],
    earned: Array,
    tied_scores: str,
    attainable: int | None,
) -> GroupValues:
    """Average precision from what each place earns; in a run of ties all relevant items share."""
    targets = ranking.targets
    weights = np.asarray(targets.weights)[ranking.order(tied_scores)]
    heavy = np.where(hit, weights, 0.0)
    mean_weight = heavy
    if ranking.has_ties and tied_scores == "average":
        sums = np.add.reduceat(heavy, ranking.run_starts)
        counts = np.add.reduceat(hit, ranking.run_starts, dtype=np.int64)
        mean_weight = np.repeat(sums / np.maximum(counts, 1), ranking.run_sizes)
    best = heavy
    if attainable is not None:
        group = np.repeat(np.arange(targets.n_groups), targets.sizes)
        best = heavy[np.lexsort((-heavy, group))]
        best = np.where(targets.position <= attainable, best, 0.0)
    total, values = targets.sum(best), np.full(targets.n_groups, np.nan)
    np.divide(targets.sum(earned * mean_weight), total, out=values, where=total > 0)
    return GroupValues(np.minimum(values, 1.0))


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
    found = np.repeat(b + 1, n) + before_in_run * np.repeat(per_place, n)
    expected: Array = np.repeat(r / n, n) * found
    return expected


def _first_hits(
    ranking: Ranking, k: int, relevant: float | None, tied_scores: str
) -> tuple[Array, Array, Array]:
    """Weight of the relevant items among the first k of each group, of all first k, and of all."""
    check_cutoff(k, required=True)
    check_option("tied_scores", tied_scores, _TIED_SCORES)
    targets, order = ranking.targets, ranking.order(tied_scores)
    hit: NDArray[Any] = _is_relevant(targets, relevant)[order]
    weight = np.ones(len(hit)) if targets.weights is None else targets.weights[order]

    def first(values: NDArray[Any]) -> NDArray[Any]:
        values = ranking.average(values) if tied_scores == "average" else values
        return targets.sum(np.where(targets.position <= k, values, 0))

    return first(weight * hit), first(weight), targets.sum(weight * hit)


def _precision_by_group(
    ranking: Ranking, *, k: int, relevant: float | None, tied_scores: str
) -> GroupValues:
    hits, total, _ = _first_hits(ranking, k, relevant, tied_scores)
    sizes, weights = ranking.targets.sizes, ranking.targets.weights
    if weights is None:
        return GroupValues(hits / k)
    return GroupValues(np.minimum(_ratio(hits, total), 1.0) * np.minimum(sizes, k) / k)


def _recall_by_group(
    ranking: Ranking, *, k: int, relevant: float | None, tied_scores: str
) -> GroupValues:
    hits, _, every = _first_hits(ranking, k, relevant, tied_scores)
    return GroupValues(np.minimum(_ratio(hits, every), 1.0))


def _ratio(part: Array, whole: Array) -> Array:
    """NaN where the whole is 0."""
    found = np.full(len(whole), np.nan)
    np.divide(part, whole, out=found, where=whole > 0)
    return found


def _rr_by_group(
    ranking: Ranking, *, k: int | None, relevant: float | None, tied_scores: str
) -> GroupValues:
    k = check_cutoff(k)
    check_option("tied_scores", tied_scores, _TIED_SCORES)
    targets = ranking.targets
    hit = _is_relevant(targets, relevant)[ranking.order(tied_scores)]
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
    values = np.full(targets.n_groups, np.nan)
    values[defined] = _first_hit_reciprocal(above, sizes[runs], n_hits[runs], k)
    return GroupValues(values)


def _first_hit_reciprocal(above: Indices, n: Indices, r: NDArray[np.int64], k: int | None) -> Array:
    """Mean of 1 / place of the first of r relevant among n items in random order, below others."""
    values = np.empty(len(n))
    for which, offset, valid in pad_in_buckets(n - r + 1):
        hit_if_none_before = np.where(valid, r[which, None] / (n[which, None] - offset), 0.0)
        place = above[which, None] + offset + 1
        earned = stop_probability(hit_if_none_before) / place
        if k is not None:
            earned[place > k] = 0.0
        values[which] = earned.sum(axis=1)
    return values


_RELEVANT = "at least one relevant item (of positive weight)"
AP = GroupMetric("average_precision", _ap_by_group, _RELEVANT, has_weights=True)
PRECISION = GroupMetric(
    "precision", _precision_by_group, "weight among the first k items", has_weights=True
)
RECALL = GroupMetric("recall", _recall_by_group, _RELEVANT, has_weights=True)
RR = GroupMetric("reciprocal_rank", _rr_by_group, _RELEVANT)
