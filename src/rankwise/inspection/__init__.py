"""Explanations of a model: contributions and importance of columns, explanations of pairs."""

from rankwise.inspection.importance import PermutationImportance, permutation_importance
from rankwise.inspection.pair_explanation import PairContributions, pair_contributions
from rankwise.inspection.score_contributions import Contributions, contributions

__all__ = [
    "Contributions",
    "PairContributions",
    "PermutationImportance",
    "contributions",
    "pair_contributions",
    "permutation_importance",
]
