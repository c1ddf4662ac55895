"""Metrics of held-out scores by group and candidate."""

from __future__ import annotations

import numpy as np
from scipy.stats import t as student

from rankwise.arrays import Array
from rankwise.defaults import DEFAULT_CONFIDENCE
from rankwise.groups import Groups
from rankwise.metrics import Metric, get_metric
from rankwise.metrics.ranking import GroupedTargets, Ranking
from rankwise.metrics.registry import MetricName


def metric_by_group(
    metric: Metric, Y: Array, groups: Groups, weight: Array | None, held: Array
) -> Array:
    """The metric of held-out scores, shape (n_groups, n_candidates, n_outputs)."""
    scores = np.empty((len(groups.labels), held.shape[2], Y.shape[1]))
    for j in range(Y.shape[1]):
        targets = GroupedTargets(np.ascontiguousarray(Y[:, j]), groups, weight)
        for k in range(held.shape[2]):
            ranking = Ranking(targets, np.ascontiguousarray(held[:, j, k]))
            scores[:, k, j] = metric.by_group(ranking).values
    return scores


def from_disagreement(metric: Metric, disagreement: Array) -> Array:
    """A metric of pairs from the share that is ordered wrongly."""
    return 1.0 - disagreement if metric.greater_is_better else disagreement


def check_scoring(scoring: MetricName) -> Metric:
    """The metric of a search, which takes the mean over groups (or parts of them) of any metric."""
    metric = get_metric(scoring)
    is_pooled = dict(metric.options).get("average", "groups") != "groups"
    if is_pooled or metric.name.startswith("pooled_auc"):
        raise ValueError(
            f"scoring={metric.name!r}: held-out scores are judged in each group, and the groups "
            "count alike; leave out average, or use 'auc' for 'pooled_auc'."
        )
    return metric


def check_defined(metric: Metric, values: Array) -> None:
    """Raise an UndefinedMetricError if there is no value of the metric to choose by."""
    if np.isnan(values).all():
        advice = "It is NaN there; use larger groups or folds, or another metric."
        raise metric.undefined_error("in every held-out fold", advice)


def nanmean(scores: Array) -> Array:
    """Mean over the first axis, leaving out nan; nan if nothing is left."""
    defined = ~np.isnan(scores)
    count = defined.sum(axis=0)
    total = np.where(defined, scores, 0.0).sum(axis=0)
    mean = np.full(total.shape, np.nan)
    np.divide(total, count, out=mean, where=count > 0)
    return mean


def standard_error(scores: Array) -> Array:
    """Standard error of that mean; nan where there are fewer than two values."""
    count = (~np.isnan(scores)).sum(axis=0)
    squares = np.nansum((scores - nanmean(scores)) ** 2, axis=0)
    error = np.full(squares.shape, np.nan)
    np.divide(squares, count * (count - 1.0), out=error, where=count > 1)
    return np.sqrt(error)


def mean_interval(values: Array) -> dict[str, float]:
    """Mean of the values of independent units, with Student's interval for it."""
    mean = float(nanmean(values))
    n_defined = int((~np.isnan(values)).sum())
    if n_defined < 2:
        return {"score": mean, "low": float("nan"), "high": float("nan")}
    quantile = float(student.ppf((1 + DEFAULT_CONFIDENCE) / 2, n_defined - 1))
    half_width = quantile * float(standard_error(values))
    return {"score": mean, "low": mean - half_width, "high": mean + half_width}
