"""From one value per group to a mean: what happens to groups where a metric is undefined."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from rankwise.arrays import Array
from rankwise.errors import UndefinedMetricError
from rankwise.metrics.arguments import check_weighted_data
from rankwise.metrics.ranking import Ranking, Targets
from rankwise.options import check_option

UNDEFINED = ("skip", "zero", "one", "nan", "raise")

MetricValue = float | Array


class GroupValues(NamedTuple):
    """Value of a metric in each group.

    Attributes
    ----------
    values : ndarray of shape (n_groups,)
        NaN where the metric is undefined.
    weights : ndarray of shape (n_groups,) or None
        What each group counts in the mean; None lets all count alike.
    """

    values: Array
    weights: Array | None = None


class GroupMetric(NamedTuple):
    """A metric before its groups are averaged.

    Attributes
    ----------
    name : str
        As in messages.
    by_group : callable
        ``by_group(ranking, **options) -> GroupValues``.
    needs : str
        What a group must have for the metric to be defined: "at least one item with y > 0".
    has_weights : bool
        Whether weights of items have a meaning, and `by_group` looks at ``targets.weights``.
    """

    name: str
    by_group: Callable[..., GroupValues]
    needs: str
    has_weights: bool = False


def mean_over_groups(
    metric: GroupMetric,
    y_true: ArrayLike,
    y_score: ArrayLike,
    groups: ArrayLike | None,
    *,
    undefined: str,
    per_group: bool,
    sample_weight: ArrayLike | None = None,
    **options: Any,
) -> MetricValue:
    """Evaluate a metric for raw input; the body of every public metric."""
    check_option("undefined", undefined, UNDEFINED)
    y, score, encoded, weights = check_weighted_data(y_true, y_score, groups, sample_weight)
    if weights is not None:
        check_has_weights(metric)
    if score.ndim == 1:
        ranking = Ranking(Targets(y, encoded, weights), score)
        return _evaluate_one(metric, ranking, undefined, per_group, options)
    shared = Targets(y, encoded, weights) if y.ndim == 1 else None
    columns = []
    for j in range(score.shape[1]):
        targets = shared or Targets(np.ascontiguousarray(y[:, j]), encoded, weights)
        ranking = Ranking(targets, np.ascontiguousarray(score[:, j]))
        columns.append(_evaluate_one(metric, ranking, undefined, per_group, options))
    return np.stack([np.asarray(column) for column in columns], axis=-1)


def check_has_weights(metric: GroupMetric) -> None:
    """Raise a ValueError if weights of items have no meaning for a metric."""
    if not metric.has_weights:
        raise ValueError(
            f"weights of items have no meaning for {metric.name}; leave out sample_weight, or use "
            "ndcg, average_precision, precision or a metric of pairs."
        )


def settle(metric: GroupMetric, found: GroupValues, undefined: str, targets: Targets) -> Array:
    """Give groups without a value the one that ``undefined`` says, or raise."""
    missing = np.isnan(found.values)
    if not missing.any() or undefined in ("skip", "nan"):
        return found.values
    if undefined == "raise":
        first = int(np.argmax(missing))
        label = targets.labels[first]
        raise UndefinedMetricError(
            f"{metric.name} is undefined for group {getattr(label, 'item', lambda: label)()!r} "
            f"({targets.sizes[first]} items): it needs {metric.needs}. Pass undefined='skip' to "
            "leave such groups out of the mean, or 'zero', 'one' or 'nan' to give them that value."
        )
    return np.where(missing, float(undefined == "one"), found.values)


def mean(values: Array, weights: Array | None, undefined: str) -> float:
    """Mean over groups; with "skip" over those that have a value, NaN if none has."""
    if undefined == "skip":
        present = ~np.isnan(values)
        values = values[present]
        weights = None if weights is None else weights[present]
    if len(values) == 0:
        return float("nan")
    if weights is not None and weights.sum() == 0:
        weights = None
    return float(np.average(values, weights=weights))


def _evaluate_one(
    metric: GroupMetric, ranking: Ranking, undefined: str, per_group: bool, options: dict[str, Any]
) -> MetricValue:
    found = metric.by_group(ranking, **options)
    values = settle(metric, found, undefined, ranking.targets)
    if per_group:
        return values
    result = mean(values, found.weights, undefined)
    if np.isnan(result) and undefined == "skip":
        where = "the data" if len(values) == 1 else f"each of the {len(values)} groups"
        raise UndefinedMetricError(
            f"{metric.name} is undefined for {where}: it needs {metric.needs}. Check y_true and "
            "groups, or pass undefined='nan', 'zero' or 'one' to get that value instead."
        )
    return result
