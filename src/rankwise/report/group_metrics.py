"""Metrics over all groups, with intervals, and in each group."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np

from rankwise.arrays import Array, Indices
from rankwise.errors import UndefinedMetricError
from rankwise.metrics import Metric, get_metric
from rankwise.report.scored_items import ScoredItems, short_numbers

LISTED_GROUPS = 20_000
BINS = 20


class MetricResult(NamedTuple):
    """A metric: its mean with an interval, and its value in each group.

    Attributes
    ----------
    metric : Metric
        Which one.
    values : ndarray of shape (n_groups,)
        NaN where it is undefined.
    mean, low, high : float
        Mean over the groups with a value, and its confidence interval; NaN if there is none. A
        value that is the same in all groups shows no spread, so it has no interval.
    refusal : str
        Why the metric does not take these true scores (NDCG of negative ones), else empty.
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


def measure(
    scored: ScoredItems, metrics: str | Metric | Iterable[str | Metric], confidence: float
) -> list[MetricResult]:
    """Evaluate the metrics, those that have a value first; there must be at least one."""
    if not 0 < confidence < 1:
        raise ValueError(f"confidence={confidence!r}; expected a number between 0 and 1.")
    names = [metrics] if isinstance(metrics, (str, Metric)) else list(metrics)
    chosen = list(dict.fromkeys(get_metric(name) for name in names))
    if not chosen:
        raise ValueError("metrics is empty; name at least one, such as 'ndcg@10'.")
    results = [_measure_one(scored, metric, confidence) for metric in chosen]
    if all(result.refusal for result in results):
        raise ValueError(results[0].refusal)
    if all(np.isnan(result.mean) for result in results):
        needs = "; ".join(f"{metric} needs {metric.core.needs}" for metric in chosen)
        raise UndefinedMetricError(
            f"no metric is defined in any of the {scored.groups.n_groups} groups: {needs}. "
            "Check y and groups."
        )
    return sorted(results, key=lambda result: bool(np.isnan(result.mean)))


def describe_metric(result: MetricResult) -> dict[str, Any]:
    """A metric for the page, with a histogram of its values in all groups, listed or not."""
    values = result.values[~np.isnan(result.values)]
    place = (values - result.metric.lowest) / (1.0 - result.metric.lowest)
    bins = np.clip((place * BINS + 1e-9).astype(np.intp), 0, BINS - 1)
    return {
        "name": result.metric.name,
        "title": result.metric.short_title,
        "greater": result.metric.greater_is_better,
        "start": result.metric.lowest,
        "counts": np.bincount(bins, minlength=BINS).tolist(),
        "defined": len(values),
        "median": short_numbers(np.median(values))[0],
    }


def describe_groups(
    results: list[MetricResult], scored: ScoredItems, listed: Indices
) -> dict[str, Any]:
    """The table of groups, column by column, for the page."""
    return {
        "names": [scored.group_name(group) for group in listed],
        "sizes": scored.sizes[listed].tolist(),
        "pairs": scored.pairs[listed].tolist(),
        "values": [short_numbers(result.values[listed]) for result in results],
        "total": scored.groups.n_groups,
    }


def choose_groups(
    result: MetricResult, among: Indices, n_wanted: int, rng: np.random.Generator
) -> Indices:
    """Up to so many of the groups, worst first: half the worst, a quarter the best, others drawn.

    If there are not too many it is all of them.
    """
    values = result.values[among]
    badness = -values if result.metric.greater_is_better else values
    order: Indices = among[np.argsort(-badness, kind="stable")]  # NaN last
    if len(order) <= n_wanted:
        return order
    n_defined = len(order) - int(np.isnan(values).sum())
    worst = order[: (n_wanted + 1) // 2]
    best = order[max(len(worst), n_defined - n_wanted // 4) : n_defined]
    rest = order[~np.isin(order, np.r_[worst, best])]
    drawn = rng.choice(rest, size=n_wanted - len(worst) - len(best), replace=False)
    chosen: Indices = np.r_[worst, best, drawn]
    return chosen


def _measure_one(scored: ScoredItems, metric: Metric, confidence: float) -> MetricResult:
    try:
        found = metric.by_group(scored.ranking)
    except ValueError as error:  # the user's other metrics are worth a page all the same
        nothing = np.full(scored.groups.n_groups, np.nan)
        return MetricResult(metric, nothing, refusal=str(error))
    return MetricResult(metric, found.values, *metric.interval(found, confidence))
