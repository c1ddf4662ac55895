"""Why a model ranks as it does: contributions of columns, and what is lost without a column."""

from rankwise.inspection.importance import PermutationImportance, permutation_importance
from rankwise.inspection.score_contributions import Contributions, contributions

__all__ = ["Contributions", "PermutationImportance", "contributions", "permutation_importance"]
