"""Explanations of a model: contributions and permutation importance of columns."""

from rankwise.inspection.importance import PermutationImportance, permutation_importance
from rankwise.inspection.score_contributions import Contributions, contributions

__all__ = ["Contributions", "PermutationImportance", "contributions", "permutation_importance"]
