"""How sure a ranking is: standard errors, probabilities, intervals of ranks, the next question."""

from rankwise.uncertainty.belief import Belief, belief_of_comparisons
from rankwise.uncertainty.calibrated_ranker import CalibratedRanker, RankInterval, Reliability
from rankwise.uncertainty.jackknife import Difference, Jackknife, jackknife
from rankwise.uncertainty.next_pairs import NextPairs, Question, next_pairs

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
