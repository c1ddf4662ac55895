"""Metrics of held-out scores by group and candidate, their means and standard errors."""

from __future__ import annotations

import numpy as np
from scipy.stats import t as student

from rankwise.arrays import Array
from rankwise.defaults import DEFAULT_CONFIDENCE
from rankwise.groups import Groups
from rankwise.metrics.metric import Metric, nanmean_by_group
from rankwise.metrics.ranking import GroupedTargets, Ranking
from rankwise.metrics.registry import MetricName, get_metric

#: Rows of several candidates that are ranked together. Blocks are short: each sorts y again.
STACKED_ROWS = 2**13


class GroupedRelevance:
    """Relevance of items in groups, by which many columns of scores are evaluated.

    Properties of the relevance that metrics use, such as its order, are computed once.

    Parameters
    ----------
    Y : ndarray of shape (n_items, n_outputs)
        Relevance.
    groups : Groups
        The group of each item.
    weight : ndarray of shape (n_items,) or None
        Weights of the items.
    """

    def __init__(self, Y: Array, groups: Groups, weight: Array | None) -> None:
        self._Y = Y
        self._groups = groups
        self._weight = weight
        self._targets: dict[tuple[int, int], GroupedTargets] = {}  # by output and number of copies

    def evaluate(self, metric: Metric, held_out: Array) -> Array:
        """Metric of held-out scores in each group, for each candidate and output.

        Parameters
        ----------
        metric : Metric
            The metric.
        held_out : ndarray of shape (n_items, n_outputs, n_candidates)
            Held-out scores.

        Returns
        -------
        ndarray of shape (n_groups, n_candidates, n_outputs)
            NaN where the metric is undefined.
        """
        # held_out: scores that the candidate models give to the items
        n_items, n_outputs, n_candidates = held_out.shape
        values = np.empty((self._groups.n_groups, n_candidates, n_outputs))
        # Rank a block of candidates at once: their lists are stacked as further groups
        block_size = 1
        if not metric.is_pooled:
            block_size = max(1, min(n_candidates, STACKED_ROWS // max(1, n_items)))
        for output in range(n_outputs):
            for start in range(0, n_candidates, block_size):
                block = slice(start, start + block_size)
                scores = held_out[:, output, block]
                n_stacked = scores.shape[1]
                ranking = Ranking(self._stacked_targets(output, n_stacked), scores.T.ravel())
                stacked_values = metric.by_group(ranking).values  # all groups of each candidate
                values[:, block, output] = stacked_values.reshape(n_stacked, -1).T
        return values

    def _stacked_targets(self, output: int, n_copies: int) -> GroupedTargets:
        """Targets of copies of the items; each copy has its own groups."""
        if (output, n_copies) not in self._targets:
            y = np.tile(self._Y[:, output], n_copies)
            groups = self._groups
            weight = self._weight
            if n_copies > 1:
                # copy c of group g has the code c · n_groups + g
                first_code_of_copy = groups.n_groups * np.arange(n_copies)
                codes = (first_code_of_copy[:, None] + groups.codes).ravel()
                groups = Groups(codes, np.tile(groups.labels, n_copies))
                if weight is not None:
                    weight = np.tile(weight, n_copies)
            self._targets[output, n_copies] = GroupedTargets(y, groups, weight)
        return self._targets[output, n_copies]


def metric_by_group(
    metric: Metric, Y: Array, groups: Groups, weight: Array | None, held_out: Array
) -> Array:
    """Metric of held-out scores in each group; see `GroupedRelevance`.

    Parameters
    ----------
    metric : Metric
        The metric.
    Y : ndarray of shape (n_items, n_outputs)
        Relevance.
    groups : Groups
        The group of each item.
    weight : ndarray of shape (n_items,) or None
        Weights of the items.
    held_out : ndarray of shape (n_items, n_outputs, n_candidates)
        Held-out scores.

    Returns
    -------
    ndarray of shape (n_groups, n_candidates, n_outputs)
        NaN where the metric is undefined.
    """
    _, n_outputs, n_candidates = held_out.shape
    values = np.empty((groups.n_groups, n_candidates, n_outputs))
    for j in range(n_outputs):
        output = slice(j, j + 1)
        # of one output at a time: there may be thousands, such as permutations of y
        relevance = GroupedRelevance(Y[:, output], groups, weight)
        values[:, :, output] = relevance.evaluate(metric, held_out[:, output])
    return values


def pooled_metric(
    metric: Metric, Y: Array, groups: Groups, weight: Array | None, held_out: Array
) -> Array:
    """A metric that weighs its groups, such as the AUC of all items, for each candidate and output.

    Parameters
    ----------
    metric, Y, groups, weight, held_out
        As in `metric_by_group`.

    Returns
    -------
    ndarray of shape (1, n_candidates, n_outputs)
        NaN where the metric is undefined.
    """
    # One value over all items for each candidate and output
    _, n_outputs, n_candidates = held_out.shape
    values = np.empty((1, n_candidates, n_outputs))
    for j in range(n_outputs):
        targets = GroupedTargets(np.ascontiguousarray(Y[:, j]), groups, weight)
        for k in range(n_candidates):
            scores = np.ascontiguousarray(held_out[:, j, k])
            by_group = metric.by_group(Ranking(targets, scores))
            values[0, k, j] = nanmean_by_group(by_group.values, by_group.weights)
    return values


def is_pooled(metric: Metric) -> bool:
    """Whether a metric compares items of different groups, or weighs groups by their pairs."""
    # average="pairs" or "items" gives groups the weight of their pairs or items
    average = dict(metric.options).get("average", "groups")
    return metric.is_pooled or average != "groups"


def from_disagreement(metric: Metric, disagreement: Array) -> Array:
    """Convert the disagreement error to a metric of pairs (the error or its complement)."""
    if metric.greater_is_better:  # concordance and AUC
        return 1.0 - disagreement
    return disagreement


def check_scoring(scoring: MetricName) -> Metric:
    """Return a metric that must be a mean over groups with equal weights."""
    metric = get_metric(scoring)
    if is_pooled(metric):
        raise ValueError(
            f"scoring={metric.name!r}: held-out scores are evaluated in each group, and groups "
            "have equal weights; omit average, or use 'auc' instead of 'pooled_auc'."
        )
    return metric


def check_defined(metric: Metric, values: Array) -> None:
    """Raise an UndefinedMetricError if the metric is undefined everywhere."""
    if np.isnan(values).all():
        advice = "Use larger groups or folds, or another metric."
        raise metric.undefined_error("in every held-out fold", advice)


def nanmean_over_units(values: Array) -> Array:
    """Mean over the first axis, ignoring NaN; NaN if all values are NaN."""
    is_defined = ~np.isnan(values)
    n_values = is_defined.sum(axis=0)
    total = np.where(is_defined, values, 0.0).sum(axis=0)
    mean = np.full(total.shape, np.nan)
    np.divide(total, n_values, out=mean, where=n_values > 0)
    return mean


def standard_error(values: Array) -> Array:
    """Standard error of `nanmean_over_units`; NaN where there are fewer than two values."""
    n_values = (~np.isnan(values)).sum(axis=0)
    sum_of_squares = np.nansum((values - nanmean_over_units(values)) ** 2, axis=0)
    # Variance of the mean: Σ (v − mean)² / (n (n − 1))
    variance_of_mean = np.full(sum_of_squares.shape, np.nan)
    np.divide(sum_of_squares, n_values * (n_values - 1.0), out=variance_of_mean, where=n_values > 1)
    return np.sqrt(variance_of_mean)


def mean_interval(values: Array, confidence: float = DEFAULT_CONFIDENCE) -> dict[str, float]:
    """Return the mean of values of independent units, with Student's interval."""
    mean = float(nanmean_over_units(values))
    n_values = int((~np.isnan(values)).sum())
    if n_values < 2:
        return {"score": mean, "low": float("nan"), "high": float("nan")}
    student_quantile = float(student.ppf((1 + confidence) / 2, n_values - 1))
    half_width = student_quantile * float(standard_error(values))
    return {"score": mean, "low": mean - half_width, "high": mean + half_width}


def new_mean_interval(
    values: Array, n_new: int, confidence: float = DEFAULT_CONFIDENCE
) -> tuple[float, float]:
    """Return the prediction interval of the mean over `n_new` further units.

    The half-width is ``t s √(1/n + 1/n_new)`` with the standard deviation s of the n values and
    Student's t with n − 1 degrees of freedom; NaN with fewer than two values.
    """
    n_values = int((~np.isnan(values)).sum())
    if n_values < 2:
        return float("nan"), float("nan")
    mean = float(nanmean_over_units(values))
    standard_deviation = float(np.nanstd(values, ddof=1))
    student_quantile = float(student.ppf((1 + confidence) / 2, n_values - 1))
    # Variance of the difference of the two means: s² (1/n + 1/n_new)
    error_of_difference = standard_deviation * float(np.sqrt(1 / n_values + 1 / n_new))
    half_width = student_quantile * error_of_difference
    return mean - half_width, mean + half_width
