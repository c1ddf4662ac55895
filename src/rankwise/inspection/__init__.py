"""Why a model ranks as it does: contributions of columns, and what is lost without a column."""

from rankwise.inspection.contributions import Contributions, contributions
from rankwise.inspection.permuting import PermutationImportance, permutation_importance

__all__ = ["Contributions", "PermutationImportance", "contributions", "permutation_importance"]
