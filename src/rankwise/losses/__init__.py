"""Losses: functions of a graph and of the scores f that a model gives to its items."""

from rankwise.losses.margin import HingeLoss, LossAt, MarginLoss, SquaredHingeLoss
from rankwise.losses.squared import LossPart, SquaredLoss

__all__ = ["HingeLoss", "LossAt", "LossPart", "MarginLoss", "SquaredHingeLoss", "SquaredLoss"]
