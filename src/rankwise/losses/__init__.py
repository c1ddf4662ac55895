"""Losses: functions of a graph and of the scores f that a model gives to its items."""

from rankwise.losses.exponential import ExponentialLoss
from rankwise.losses.pairwise import (
    HingeLoss,
    LogisticLoss,
    LossValue,
    PairFunction,
    PairwiseLoss,
    Plane,
    SquaredHingeLoss,
    StrictPairLoss,
)
from rankwise.losses.plackett_luce import PlackettLuceLoss
from rankwise.losses.squared import LossTerm, SquaredLoss

__all__ = [
    "ExponentialLoss",
    "HingeLoss",
    "LogisticLoss",
    "LossTerm",
    "LossValue",
    "PairFunction",
    "PairwiseLoss",
    "PlackettLuceLoss",
    "Plane",
    "SquaredHingeLoss",
    "SquaredLoss",
    "StrictPairLoss",
]

#: Losses of `rankwise.RankSVM` by name.
LOSSES: dict[str, type[PairwiseLoss]] = {
    "hinge": HingeLoss,
    "squared_hinge": SquaredHingeLoss,
    "exponential": ExponentialLoss,
}
