"""How sure a ranking is: standard errors, probabilities, intervals of ranks, the next question."""

from rankwise.uncertainty.belief import Belief, belief_of_comparisons
from rankwise.uncertainty.calibrated_ranker import CalibratedRanker, RankInterval
from rankwise.uncertainty.calibration import Reliability
from rankwise.uncertainty.questions import NextPairs, Question, next_pairs
from rankwise.uncertainty.standard_errors import Difference, Jackknife, jackknife

__all__ = [
    "Belief",
    "CalibratedRanker",
    "Difference",
    "Jackknife",
    "NextPairs",
    "Question",
    "RankInterval",
    "Reliability",
    "belief_of_comparisons",
    "jackknife",
    "next_pairs",
]
