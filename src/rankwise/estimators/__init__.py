"""Estimators: the models, in scikit-learn's interface."""

from rankwise.estimators.rank_rls import RankRLS, RankRLSPath
from rankwise.estimators.rank_rls_cv import RankRLSCV

__all__ = ["RankRLS", "RankRLSCV", "RankRLSPath"]
