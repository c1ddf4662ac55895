"""Losses: functions of a graph and of the scores f that a model gives to its items."""

from rankwise.losses.margin import (
    HingeLoss,
    LogisticLoss,
    LossAt,
    MarginLoss,
    PreferenceLoss,
    SquaredHingeLoss,
)
from rankwise.losses.plackett_luce import PlackettLuceLoss
from rankwise.losses.squared import LossTerm, SquaredLoss
from rankwise.losses.table import TableLoss

__all__ = [
    "HingeLoss",
    "LogisticLoss",
    "LossAt",
    "LossTerm",
    "MarginLoss",
    "PlackettLuceLoss",
    "PreferenceLoss",
    "SquaredHingeLoss",
    "SquaredLoss",
    "TableLoss",
]
