"""Metrics of a report: means with intervals, and values of groups."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np

from rankwise.arrays import Array
from rankwise.errors import UndefinedMetricError
from rankwise.formatting import JsonObject
from rankwise.metrics import Metric
from rankwise.metrics.evaluation import with_error_for_shared_items
from rankwise.metrics.grades import default_metrics
from rankwise.metrics.registry import MetricName, get_metrics
from rankwise.pages.page_values import short_numbers
from rankwise.pages.report.report_data import ScoredItems

N_BINS = 20  # of the histogram over groups
ROUNDING = 1e-9  # of a value at the edge of a bin


class MetricResult(NamedTuple):
    """A metric: its mean with an interval, and its value in each group.

    Attributes
    ----------
    metric : Metric
        The metric.
    values : ndarray of shape (n_groups,)
        Value of each group; NaN where it is undefined.
    mean, low, high : float
        Mean over the groups with a value, and its confidence interval; NaN if there is none. There
        is no interval if the value is the same in all groups.
    refusal : str
        Why the metric does not accept these true scores (NDCG of negative ones); else empty.
    """

    metric: Metric
    values: Array
    mean: float = np.nan
    low: float = np.nan
    high: float = np.nan
    refusal: str = ""

    @property
    def n_undefined(self) -> int:
        """Number of groups without a value."""
        return int(np.isnan(self.values).sum())

    @property
    def has_mean(self) -> bool:
        """Whether the metric is defined in at least one group."""
        return not np.isnan(self.mean)

    @property
    def scale(self) -> tuple[float, float]:
        """Smallest and largest value of the metric; of its values and 0 if it is unbounded."""
        # The bounds of the metric; the smallest or largest value, or 0, where it has none
        defined_values = self.values[~np.isnan(self.values)]
        low = self.metric.lowest
        if not np.isfinite(low):
            low = float(defined_values.min(initial=0.0))
        high = self.metric.highest
        if not np.isfinite(high):
            high = float(defined_values.max(initial=0.0))
        if high <= low:  # all values are 0: any length
            high = low + 1.0
        return low, high

    def describe(self) -> JsonObject:
        """The metric for the page, with a histogram of its values in all groups."""
        defined_values = self.values[~np.isnan(self.values)]
        start, end = self.scale
        share_of_scale = (defined_values - start) / (end - start)
        bin_of_value = (share_of_scale * N_BINS + ROUNDING).astype(np.intp)
        bin_of_value = np.clip(bin_of_value, 0, N_BINS - 1)  # the end is in the last bin
        (median,) = short_numbers(np.median(defined_values))
        return {
            "name": self.metric.name,
            "title": self.metric.short_title,
            "greater": self.metric.greater_is_better,
            "start": start,
            "end": end,
            "counts": np.bincount(bin_of_value, minlength=N_BINS).tolist(),
            "defined": len(defined_values),
            "median": median,
        }


def measure(
    scored: ScoredItems, metrics: MetricName | Iterable[MetricName] | None, confidence: float
) -> list[MetricResult]:
    """Evaluate the metrics; those with a value come first.

    Raises
    ------
    UndefinedMetricError
        If no metric is defined in any group.
    """
    if not 0 < confidence < 1:
        raise ValueError(f"confidence={confidence!r}; expected a number between 0 and 1.")
    if metrics is None:
        metrics = default_metrics(scored.y)
    selected = get_metrics(metrics)
    if not selected:
        raise ValueError("metrics is empty; name at least one, such as 'ndcg@10'.")
    results = [_measure_metric(scored, metric, confidence) for metric in selected]
    if all(result.refusal for result in results):
        raise ValueError(results[0].refusal)
    if not any(result.has_mean for result in results):
        needs = "; ".join(f"{metric} needs {metric.needs}" for metric in selected)
        raise UndefinedMetricError(
            f"no metric is defined in any of the {scored.groups.n_groups} groups: {needs}. "
            "Check y and groups."
        )
    with_mean = [result for result in results if result.has_mean]
    without_mean = [result for result in results if not result.has_mean]
    return with_mean + without_mean


def _measure_metric(scored: ScoredItems, metric: Metric, confidence: float) -> MetricResult:
    """Evaluate a metric; its refusal of the true scores does not prevent the page."""
    try:
        by_group = metric.by_group(scored.ranking)
        by_group_of_items = with_error_for_shared_items(by_group, scored.compared_items)
        mean, low, high = metric.interval(by_group_of_items, confidence)
    except ValueError as error:  # the metric does not accept these true scores
        undefined = np.full(scored.groups.n_groups, np.nan)
        return MetricResult(metric, undefined, refusal=str(error))
    return MetricResult(metric, by_group.values, mean, low, high)
