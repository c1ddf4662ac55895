"""How held-out scores are judged: a metric in each group."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankwise.arrays import Array
from rankwise.errors import UndefinedMetricError
from rankwise.graphs import PreferenceGraph
from rankwise.groups import Groups
from rankwise.metrics import Metric, get_metric
from rankwise.metrics.ranking import Ranking, Targets
from rankwise.model_selection.folds import Folds, fold_numbers

Measure = Metric


def score_groups(
    graph: PreferenceGraph, held: Array, folds: Folds, metric: Measure
) -> tuple[Array, NDArray[Any]]:
    """The metric in each group, or in each part of a group that one fold holds.

    Shape (n_groups, n_candidates, n_outputs), and the labels of the groups.
    """
    fold = fold_numbers(folds, graph.n_items)
    if graph.scores is None:
        return from_disagreement(metric, graph.disagreement(held[:, 0], fold))[
            :, :, None
        ], graph.group_labels
    parts, unit = np.unique(graph.groups * len(folds) + fold, return_inverse=True)
    groups, Y = Groups(unit, parts), graph.scores.reshape(graph.n_items, -1)
    if not np.isfinite(held).all():
        raise ValueError("held-out scores overflow; scale the features, or use larger alphas.")
    scores = np.empty((len(parts), held.shape[2], Y.shape[1]))
    for j in range(Y.shape[1]):
        targets = Targets(np.ascontiguousarray(Y[:, j]), groups, graph.item_weights)
        for k in range(held.shape[2]):
            ranking = Ranking(targets, np.ascontiguousarray(held[:, j, k]))
            scores[:, k, j] = metric.by_group(ranking).values
    return scores, graph.group_labels[parts // len(folds)]


def from_disagreement(metric: Measure, disagreement: Array) -> Array:
    """A metric of pairs from the share that is ordered wrongly."""
    return 1.0 - disagreement if metric.greater_is_better else disagreement


def check_scoring(scoring: str | Metric) -> Metric:
    """The metric of a search, which takes the mean over groups (or parts of them) of any metric."""
    metric = get_metric(scoring)
    if dict(metric.options).get("average", "groups") != "groups":
        raise ValueError(
            f"scoring={metric.name!r}: held-out scores are judged in each group, and the groups "
            "count alike; leave out average."
        )
    return metric


def undefined_everywhere(metric: Measure) -> UndefinedMetricError:
    """What to raise if a metric has no value for anything that was held out."""
    return UndefinedMetricError(
        f"{metric.name} is undefined in every held-out fold (no two items of different score in "
        "one group, for example); use larger folds, another cv or another metric."
    )


def mean_defined(scores: Array) -> Array:
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
    squares = np.nansum((scores - mean_defined(scores)) ** 2, axis=0)
    error = np.full(squares.shape, np.nan)
    np.divide(squares, count * (count - 1.0), out=error, where=count > 1)
    return np.sqrt(error)
