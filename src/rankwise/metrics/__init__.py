"""Ranking metrics for items in groups: conventions spelled out, ties and empty groups included.

Every metric is called ``metric(y_true, y_score, groups=None, *, ..., undefined="skip",
per_group=False)``. Rows may come in any order; larger y and larger scores are better.
"""

from rankwise.metrics.evaluation import Evaluation, EvaluationRow, evaluate
from rankwise.metrics.pairwise import auc, disagreement_error, kendall_tau, spearman
from rankwise.metrics.registry import Metric, get_metric, metric_names
from rankwise.metrics.top_heavy import (
    average_precision,
    expected_reciprocal_rank,
    hit_rate,
    ndcg,
    precision,
    recall,
    reciprocal_rank,
    top_k,
)

__all__ = [
    "Evaluation",
    "EvaluationRow",
    "Metric",
    "auc",
    "average_precision",
    "disagreement_error",
    "evaluate",
    "expected_reciprocal_rank",
    "get_metric",
    "hit_rate",
    "kendall_tau",
    "metric_names",
    "ndcg",
    "precision",
    "recall",
    "reciprocal_rank",
    "spearman",
    "top_k",
]
