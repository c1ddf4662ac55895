"""Losses: functions of a graph and of the scores f that a model gives to its items."""

from rankwise.losses.pairwise import (
    HingeLoss,
    LogisticLoss,
    LossValue,
    PairwiseLoss,
    Plane,
    SquaredHingeLoss,
    StrictPairLoss,
)
from rankwise.losses.plackett_luce import PlackettLuceLoss
from rankwise.losses.squared import LossTerm, SquaredLoss

__all__ = [
    "HingeLoss",
    "LogisticLoss",
    "LossTerm",
    "LossValue",
    "PairwiseLoss",
    "PlackettLuceLoss",
    "Plane",
    "SquaredHingeLoss",
    "SquaredLoss",
    "StrictPairLoss",
]
