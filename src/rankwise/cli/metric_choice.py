"""Which metrics to show if the user names none."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rankwise.metrics import Metric

DEFAULT_METRIC = "disagreement"  # chooses parameters
GRADED_METRICS = ("ndcg@10", "map", "disagreement", "tau")
METRICS = ("disagreement", "tau")
MOST_LEVELS = 32  # 2 ** y is the gain of NDCG


def metrics_for(names: list[str] | None, y: Any, weights: Any = None) -> list[Metric]:
    """The metrics asked for, or those that suit the scores and take the weights, if any."""
    import numpy as np

    from rankwise.metrics import get_metric

    if names:
        return list(dict.fromkeys(get_metric(name) for name in names))
    known = y[~np.isnan(y)]
    is_graded = (known >= 0).all() and (known < MOST_LEVELS).all() and (known % 1 == 0).all()
    usual = map(get_metric, GRADED_METRICS if is_graded else METRICS)
    return [metric for metric in usual if weights is None or metric.core.has_weights]


def held_out_metrics(names: list[str] | None, y: Any, groups: Any, weights: Any) -> list[Metric]:
    """The metrics asked for, or the one that chooses in training and then those that suit.

    One list is held out pair by pair, of which no other metric has a value.
    """
    usual = [DEFAULT_METRIC]
    if not names and groups is not None:
        usual += [metric.name for metric in metrics_for(None, y, weights)]
    return metrics_for(names or usual, y)
