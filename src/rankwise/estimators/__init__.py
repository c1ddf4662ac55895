"""Estimators: the models, in scikit-learn's interface."""

from rankwise.estimators.rank_rls import RankRLS, RankRLSPath

__all__ = ["RankRLS", "RankRLSPath"]
