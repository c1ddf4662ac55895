"""Losses: functions of a graph and of the scores f that a model gives to its items."""

from rankwise.losses.interface import Loss, LossAt
from rankwise.losses.logistic import LogisticLoss
from rankwise.losses.margin import HingeLoss, MarginLoss, PreferenceLoss, SquaredHingeLoss
from rankwise.losses.squared import LossPart, SquaredLoss
from rankwise.losses.table import TableLoss

__all__ = [
    "HingeLoss",
    "LogisticLoss",
    "Loss",
    "LossAt",
    "LossPart",
    "MarginLoss",
    "PreferenceLoss",
    "SquaredHingeLoss",
    "SquaredLoss",
    "TableLoss",
]
