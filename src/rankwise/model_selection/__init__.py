"""Exact cross-validation, comparison and significance of rankers."""

from rankwise.model_selection.candidate_evaluation import (
    CrossValidationResult,
    cross_validate_candidates,
)
from rankwise.model_selection.compare_rankers import compare
from rankwise.model_selection.comparison import Comparison, ComparisonRow
from rankwise.model_selection.cross_val_predict import (
    LeavePairOut,
    cross_val_predict_groups,
    leave_group_out_predict,
    leave_pair_out,
)
from rankwise.model_selection.permutation import PermutationTest, permutation_test
from rankwise.model_selection.protocol import HoldOutTask
from rankwise.model_selection.scorer import RankingScorer, make_ranking_scorer

__all__ = [
    "Comparison",
    "ComparisonRow",
    "CrossValidationResult",
    "HoldOutTask",
    "LeavePairOut",
    "PermutationTest",
    "RankingScorer",
    "compare",
    "cross_val_predict_groups",
    "cross_validate_candidates",
    "leave_group_out_predict",
    "leave_pair_out",
    "make_ranking_scorer",
    "permutation_test",
]
