"""Ranking metrics for items in groups: conventions spelled out, ties and empty groups included.

Every metric is called ``metric(y_true, y_score, groups=None, *, ..., undefined="skip",
per_group=False)``. Rows may come in any order; larger y and larger scores are better.
"""

from rankwise.metrics.binary import average_precision, precision, recall, reciprocal_rank
from rankwise.metrics.evaluation import Evaluation, EvaluationRow, evaluate
from rankwise.metrics.graded import expected_reciprocal_rank, ndcg
from rankwise.metrics.pairwise import auc, disagreement_error, kendall_tau
from rankwise.metrics.registry import Metric, get_metric, metric_names
from rankwise.metrics.top import top_k
from rankwise.metrics.whole_order import hit_rate, spearman

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
