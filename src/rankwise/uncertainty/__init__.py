"""Uncertainty of rankings: standard errors, calibrated probabilities, intervals of ranks."""

from rankwise.uncertainty.calibrated_ranker import CalibratedRanker, RankInterval
from rankwise.uncertainty.jackknife_errors import Difference, Jackknife, jackknife
from rankwise.uncertainty.probability_map import Reliability

__all__ = [
    "CalibratedRanker",
    "Difference",
    "Jackknife",
    "RankInterval",
    "Reliability",
    "jackknife",
]
