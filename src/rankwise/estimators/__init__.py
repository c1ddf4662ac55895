"""Estimators: the models, in scikit-learn's interface."""

from rankwise.estimators.rank_rls import RankRLS, RankRLSPath
from rankwise.estimators.rank_rls_cv import RankRLSCV
from rankwise.estimators.rank_svm import RankSVM, RankSVMPath
from rankwise.estimators.rank_svm_cv import RankSVMCV

__all__ = ["RankRLS", "RankRLSCV", "RankRLSPath", "RankSVM", "RankSVMCV", "RankSVMPath"]
