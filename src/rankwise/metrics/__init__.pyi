"""Signatures of the metrics; written by ``python -m tests.metrics.stub``."""

from numpy.typing import ArrayLike

from rankwise.arrays import Array
from rankwise.metrics.evaluation import Evaluation as Evaluation
from rankwise.metrics.evaluation import EvaluationRow as EvaluationRow
from rankwise.metrics.evaluation import evaluate as evaluate
from rankwise.metrics.metric import Metric as Metric
from rankwise.metrics.registry import get_metric as get_metric
from rankwise.metrics.registry import make_metric as make_metric
from rankwise.metrics.registry import metric_names as metric_names
from rankwise.metrics.retrieval import top_k as top_k
from rankwise.metrics.runs import RunEvaluation as RunEvaluation
from rankwise.metrics.runs import evaluate_runs as evaluate_runs
from rankwise.metrics.shared_items import ComparisonMean as ComparisonMean
from rankwise.metrics.shared_items import dyadic_robust_mean as dyadic_robust_mean
from rankwise.metrics.survival import ConcordanceDifference as ConcordanceDifference
from rankwise.metrics.survival import concordance_difference as concordance_difference
from rankwise.metrics.survival import kaplan_meier as kaplan_meier
from rankwise.metrics.unjudged import Bounds as Bounds
from rankwise.metrics.unjudged import NextJudgment as NextJudgment
from rankwise.metrics.unjudged import judgments_to_flip as judgments_to_flip
from rankwise.metrics.unjudged import unjudged_bounds as unjudged_bounds

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

def auc(
    y_true: ArrayLike,
    y_score: ArrayLike,
    groups: ArrayLike | None = None,
    *,
    relevant: float | None = None,
    undefined: str = "skip",
    per_group: bool = False,
) -> float | Array: ...
def average_precision(
    y_true: ArrayLike,
    y_score: ArrayLike,
    groups: ArrayLike | None = None,
    *,
    k: int | None = None,
    relevant: float | None = None,
    normalizer: str = "relevant",
    tied_scores: str = "average",
    undefined: str = "skip",
    per_group: bool = False,
) -> float | Array: ...
def concordance(
    y_true: ArrayLike,
    y_score: ArrayLike,
    groups: ArrayLike | None = None,
    *,
    tied_scores: str = "half",
    tied_y: str = "skip",
    average: str = "groups",
    ipcw: ArrayLike | None = None,
    tau: float | None = None,
    sample_weight: ArrayLike | None = None,
    undefined: str = "skip",
    per_group: bool = False,
) -> float | Array: ...
def disagreement_error(
    y_true: ArrayLike,
    y_score: ArrayLike,
    groups: ArrayLike | None = None,
    *,
    tied_scores: str = "half",
    tied_y: str = "skip",
    average: str = "groups",
    ipcw: ArrayLike | None = None,
    tau: float | None = None,
    sample_weight: ArrayLike | None = None,
    undefined: str = "skip",
    per_group: bool = False,
) -> float | Array: ...
def expected_reciprocal_rank(
    y_true: ArrayLike,
    y_score: ArrayLike,
    groups: ArrayLike | None = None,
    *,
    k: int | None = None,
    max_grade: float | None = None,
    tied_scores: str = "pessimistic",
    undefined: str = "skip",
    per_group: bool = False,
) -> float | Array: ...
def hit_rate(
    y_true: ArrayLike,
    y_score: ArrayLike,
    groups: ArrayLike | None = None,
    *,
    k: int = 1,
    undefined: str = "skip",
    per_group: bool = False,
) -> float | Array: ...
def judged(
    y_true: ArrayLike,
    y_score: ArrayLike,
    groups: ArrayLike | None = None,
    *,
    k: int,
    tied_scores: str = "average",
    undefined: str = "skip",
    per_group: bool = False,
) -> float | Array: ...
def kendall_tau(
    y_true: ArrayLike,
    y_score: ArrayLike,
    groups: ArrayLike | None = None,
    *,
    sample_weight: ArrayLike | None = None,
    undefined: str = "skip",
    per_group: bool = False,
) -> float | Array: ...
def letor_ndcg(
    y_true: ArrayLike,
    y_score: ArrayLike,
    groups: ArrayLike | None = None,
    *,
    k: int | None = None,
    undefined: str = "skip",
    per_group: bool = False,
) -> float | Array: ...
def mean_squared_error(
    y_true: ArrayLike,
    y_score: ArrayLike,
    groups: ArrayLike | None = None,
    *,
    average: str = "groups",
    sample_weight: ArrayLike | None = None,
    undefined: str = "skip",
    per_group: bool = False,
) -> float | Array: ...
def ndcg(
    y_true: ArrayLike,
    y_score: ArrayLike,
    groups: ArrayLike | None = None,
    *,
    k: int | None = None,
    gain: str = "exponential",
    tied_scores: str = "average",
    sample_weight: ArrayLike | None = None,
    undefined: str = "skip",
    per_group: bool = False,
) -> float | Array: ...
def pooled_auc(
    y_true: ArrayLike,
    y_score: ArrayLike,
    groups: ArrayLike | None = None,
    *,
    relevant: float | None = None,
    undefined: str = "skip",
    per_group: bool = False,
) -> float | Array: ...
def precision(
    y_true: ArrayLike,
    y_score: ArrayLike,
    groups: ArrayLike | None = None,
    *,
    k: int,
    relevant: float | None = None,
    tied_scores: str = "average",
    undefined: str = "skip",
    per_group: bool = False,
) -> float | Array: ...
def r_precision(
    y_true: ArrayLike,
    y_score: ArrayLike,
    groups: ArrayLike | None = None,
    *,
    relevant: float | None = None,
    tied_scores: str = "average",
    undefined: str = "skip",
    per_group: bool = False,
) -> float | Array: ...
def rank_biased_precision(
    y_true: ArrayLike,
    y_score: ArrayLike,
    groups: ArrayLike | None = None,
    *,
    p: float = 0.8,
    k: int | None = None,
    relevant: float | None = None,
    tied_scores: str = "average",
    undefined: str = "skip",
    per_group: bool = False,
) -> float | Array: ...
def recall(
    y_true: ArrayLike,
    y_score: ArrayLike,
    groups: ArrayLike | None = None,
    *,
    k: int,
    relevant: float | None = None,
    tied_scores: str = "average",
    undefined: str = "skip",
    per_group: bool = False,
) -> float | Array: ...
def reciprocal_rank(
    y_true: ArrayLike,
    y_score: ArrayLike,
    groups: ArrayLike | None = None,
    *,
    k: int | None = None,
    relevant: float | None = None,
    tied_scores: str = "average",
    undefined: str = "skip",
    per_group: bool = False,
) -> float | Array: ...
def spearman(
    y_true: ArrayLike,
    y_score: ArrayLike,
    groups: ArrayLike | None = None,
    *,
    undefined: str = "skip",
    per_group: bool = False,
) -> float | Array: ...
def success(
    y_true: ArrayLike,
    y_score: ArrayLike,
    groups: ArrayLike | None = None,
    *,
    k: int,
    relevant: float | None = None,
    tied_scores: str = "average",
    undefined: str = "skip",
    per_group: bool = False,
) -> float | Array: ...
