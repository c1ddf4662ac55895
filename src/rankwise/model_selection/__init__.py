"""Exact cross-validation, comparison and significance of rankers."""

from rankwise.model_selection.hold_out import cross_val_predict_groups, leave_group_out_predict
from rankwise.model_selection.leave_pair_out import LeavePairOut, leave_pair_out

__all__ = [
    "LeavePairOut",
    "cross_val_predict_groups",
    "leave_group_out_predict",
    "leave_pair_out",
]
