"""Ranking metrics for items in groups, with documented rules for ties and undefined groups.

Every metric is called ``metric(y_true, y_score, groups=None, *, ..., undefined="skip",
per_group=False)``. Rows may come in any order; larger y and larger scores are better.
"""

from rankwise.metrics.evaluation import Evaluation, EvaluationRow, evaluate
from rankwise.metrics.metric import Metric
from rankwise.metrics.rank_correlation import (
    auc,
    concordance,
    disagreement_error,
    kendall_tau,
    mean_squared_error,
    pooled_auc,
    spearman,
)
from rankwise.metrics.registry import get_metric, make_metric, metric_names
from rankwise.metrics.retrieval import (
    average_precision,
    expected_reciprocal_rank,
    hit_rate,
    judged,
    letor_ndcg,
    ndcg,
    precision,
    r_precision,
    rank_biased_precision,
    recall,
    reciprocal_rank,
    success,
    top_k,
)
from rankwise.metrics.runs import RunEvaluation, evaluate_runs
from rankwise.metrics.shared_items import ComparisonMean, dyadic_robust_mean
from rankwise.metrics.survival import (
    ConcordanceDifference,
    concordance_difference,
    kaplan_meier,
)
from rankwise.metrics.unjudged import (
    Bounds,
    NextJudgment,
    judgments_to_flip,
    unjudged_bounds,
)

__all__ = [
    "Bounds",
    "ComparisonMean",
    "ConcordanceDifference",
    "Evaluation",
    "EvaluationRow",
    "Metric",
    "NextJudgment",
    "RunEvaluation",
    "auc",
    "average_precision",
    "concordance",
    "concordance_difference",
    "disagreement_error",
    "dyadic_robust_mean",
    "evaluate",
    "evaluate_runs",
    "expected_reciprocal_rank",
    "get_metric",
    "hit_rate",
    "judged",
    "judgments_to_flip",
    "kaplan_meier",
    "kendall_tau",
    "letor_ndcg",
    "make_metric",
    "mean_squared_error",
    "metric_names",
    "ndcg",
    "pooled_auc",
    "precision",
    "r_precision",
    "rank_biased_precision",
    "recall",
    "reciprocal_rank",
    "spearman",
    "success",
    "top_k",
    "unjudged_bounds",
]
