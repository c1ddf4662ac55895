"""Metrics of graded relevance that weigh the top of the list: NDCG and expected reciprocal rank."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from rankwise.metrics.arguments import check_cutoff
from rankwise.metrics.averaging import GroupMetric, GroupValues, MetricValue, mean_over_groups
from rankwise.metrics.ranking import Ranking, Targets
from rankwise.metrics.stopping import pad_in_buckets, stop_probability
from rankwise.options import check_option

LARGEST_GRADE = 50
"""Above it 2^y - 1 is no longer told from 2^y, and y is hardly a grade."""


def ndcg(
    y_true: ArrayLike,
    y_score: ArrayLike,
    groups: ArrayLike | None = None,
    *,
    k: int | None = None,
    gain: str = "exponential",
    tied_scores: str = "average",
    sample_weight: ArrayLike | None = None,
    undefined: str = "skip",
    per_group: bool = False,
) -> MetricValue:
    r"""Normalized discounted cumulative gain inside groups.

    .. math:: \mathrm{DCG@}k = \sum_{p=1}^{k} \frac{g(y_{(p)})}{\log_2(1 + p)}, \qquad
              \mathrm{NDCG@}k = \mathrm{DCG@}k \,/\, \text{DCG@}k \text{ of the best order}

    with the gain :math:`2^y - 1` [2]_ or y [1]_. Tied scores get the expectation over all orders
    of the tied items [3]_, so that the value does not depend on the order of rows.

    Libraries differ: scikit-learn and trec_eval use linear gain and count groups without
    relevant items as 0 (``gain="linear", undefined="zero"``); LightGBM and XGBoost use
    exponential gain, count such groups as 1 and leave ties in the order of rows
    (``undefined="one", tied_scores="order"``).

    Parameters
    ----------
    y_true : array-like of shape (m,) or (m, v), or structured target
        Relevance, 0 or larger.
    y_score : array-like of shape (m,) or (m, v)
        Predicted scores.
    groups : array-like of shape (m,), optional
        Group label of each row, in any order; None puts all rows in one group.
    k : int, optional
        Cut-off; by default the whole list counts.
    gain : {"exponential", "linear"}, default="exponential"
        ``2**y - 1`` or ``y``.
    tied_scores : {"average", "optimistic", "pessimistic", "order"}, default="average"
        Expectation, or tied items by falling y, by rising y, or in the order of rows.
    sample_weight : array-like of shape (m,), optional
        Weights of the items, 0 or larger: the gain of an item is multiplied by its weight, in the
        best order too. For clicks, the weight of a clicked item is one over its propensity.
    undefined : {"skip", "zero", "one", "nan", "raise"}, default="skip"
        What to do with groups that have no item with y > 0.
    per_group : bool, default=False
        Return one value per group, in the order of the sorted labels, instead of the mean.

    Returns
    -------
    float or ndarray
        In [0, 1]. One value per column for (m, v) input.

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
    return mean_over_groups(
        NDCG, y_true, y_score, groups, undefined=undefined, per_group=per_group,
        k=k, gain=gain, tied_scores=tied_scores, sample_weight=sample_weight,
    )  # fmt: skip


def expected_reciprocal_rank(
    y_true: ArrayLike,
    y_score: ArrayLike,
    groups: ArrayLike | None = None,
    *,
    k: int | None = None,
    max_grade: float | None = None,
    tied_scores: str = "pessimistic",
    sample_weight: ArrayLike | None = None,
    undefined: str = "skip",
    per_group: bool = False,
) -> MetricValue:
    r"""Expected reciprocal rank of the item where a user who reads from the top stops.

    .. math:: \mathrm{ERR@}k = \sum_{p=1}^{k} \frac{R_{(p)}}{p} \prod_{q < p} (1 - R_{(q)}),
              \qquad R_i = \frac{2^{y_i} - 1}{2^{y_\max}}

    [1]_ eq. 4 and 5. It is not divided by its best value: a perfect order has less than 1. There
    is no closed form for its expectation over the orders of tied items, so ties are pessimistic.

    Parameters
    ----------
    y_score, groups, per_group
        As in `ndcg`.
    y_true : array-like of shape (m,) or (m, v), or structured target
        Relevance grades, 0 or larger.
    k : int, optional
        Cut-off; by default the whole list counts.
    max_grade : float, optional
        Highest grade of the scale, :math:`y_\max`. By default the largest y of the data; give it
        to compare values from different data.
    tied_scores : {"pessimistic", "optimistic", "order"}, default="pessimistic"
        Tied items by rising y, by falling y, or in the order of rows.
    sample_weight : None
        For uniformity: weights of items have no meaning here, and are refused.
    undefined : {"skip", "zero", "one", "nan", "raise"}, default="skip"
        What to do with groups that have no item with y > 0.

    Returns
    -------
    float or ndarray
        In [0, 1). One value per column for (m, v) input.

    References
    ----------
    .. [1] Chapelle, Metzler, Zhang, Grinspan: Expected reciprocal rank for graded relevance.
       CIKM 2009.

    Examples
    --------
    >>> expected_reciprocal_rank([1, 0, 2], [3, 2, 1], max_grade=2)
    0.4375
    """
    return mean_over_groups(
        ERR, y_true, y_score, groups, undefined=undefined, per_group=per_group,
        k=k, max_grade=max_grade, tied_scores=tied_scores, sample_weight=sample_weight,
    )  # fmt: skip


def _ndcg_by_group(ranking: Ranking, *, k: int | None, gain: str, tied_scores: str) -> GroupValues:
    k = check_cutoff(k)
    check_option("gain", gain, ("exponential", "linear"))
    check_option("tied_scores", tied_scores, ("average", "optimistic", "pessimistic", "order"))
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
    discounts = np.where(places <= (k or len(places)), 1 / np.log2(1 + places), 0.0)
    discount = discounts[targets.position - 1]
    ranked = gains[ranking.order(tied_scores)]
    if tied_scores == "average":
        ranked = ranking.average(ranked)
    ideal = targets.sum(gains[best] * discount)
    reached = targets.sum(ranked * discount)
    values = np.full(targets.n_groups, np.nan)
    np.divide(reached, ideal, out=values, where=ideal > 0)
    return GroupValues(np.minimum(values, 1.0))


def _err_by_group(
    ranking: Ranking, *, k: int | None, max_grade: float | None, tied_scores: str
) -> GroupValues:
    k = check_cutoff(k)
    if tied_scores == "average":
        raise ValueError(
            "tied_scores='average' is not available for expected_reciprocal_rank: its mean over "
            "the orders of tied items has no closed form. Use 'pessimistic', 'optimistic' or "
            "'order', or ndcg, which averages."
        )
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
    for which, offset, valid in pad_in_buckets(lengths):
        stops = np.where(valid, stop[targets.starts[which, None] + offset], 0.0)
        values[which] = (stop_probability(stops) / (offset + 1)).sum(axis=1)
    values[targets.sum(y) == 0] = np.nan
    return GroupValues(values)


def _check_grades(metric: str, targets: Targets, *, exponential: bool) -> None:
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


_RELEVANT = "at least one item with y > 0 (and positive weight)"
NDCG = GroupMetric("ndcg", _ndcg_by_group, _RELEVANT, has_weights=True)
ERR = GroupMetric("expected_reciprocal_rank", _err_by_group, _RELEVANT)
