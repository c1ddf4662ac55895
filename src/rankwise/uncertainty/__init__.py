"""How sure a ranking is: standard errors, probabilities, intervals of ranks, the next question."""

from rankwise.uncertainty.calibrated_ranker import CalibratedRanker, RankInterval
from rankwise.uncertainty.calibration import Reliability
from rankwise.uncertainty.jackknife import Difference, Jackknife, jackknife

__all__ = [
    "CalibratedRanker",
    "Difference",
    "Jackknife",
    "RankInterval",
    "Reliability",
    "jackknife",
]
