"""Exact cross-validation, comparison and significance of rankers."""

from rankwise.model_selection.comparison import Comparison, ComparisonRow, compare
from rankwise.model_selection.curves import HeldOutCurves, held_out_curves
from rankwise.model_selection.permutation import PermutationTest, permutation_test
from rankwise.model_selection.predict import (
    LeavePairOut,
    cross_val_predict_groups,
    leave_group_out_predict,
    leave_pair_out,
)
from rankwise.model_selection.scoring import RankingScorer, make_ranking_scorer
from rankwise.model_selection.task import HoldOutTask

__all__ = [
    "Comparison",
    "ComparisonRow",
    "HeldOutCurves",
    "HoldOutTask",
    "LeavePairOut",
    "PermutationTest",
    "RankingScorer",
    "compare",
    "cross_val_predict_groups",
    "held_out_curves",
    "leave_group_out_predict",
    "leave_pair_out",
    "make_ranking_scorer",
    "permutation_test",
]
