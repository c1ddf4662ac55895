"""Estimators: the models, in scikit-learn's interface."""

from rankwise.estimators.co_rank_rls import CoRankRLS, CoRankRLSPath
from rankwise.estimators.co_rank_rls_cv import CoRankRLSCV
from rankwise.estimators.rank_rls import RankRLS, RankRLSPath
from rankwise.estimators.rank_rls_cv import RankRLSCV
from rankwise.estimators.rank_svm import RankSVM, RankSVMPath
from rankwise.estimators.rank_svm_cv import RankSVMCV
from rankwise.estimators.ranking_pursuit import RankingPursuit
from rankwise.estimators.ranking_pursuit_cv import RankingPursuitCV
from rankwise.features import View

__all__ = [
    "CoRankRLS",
    "CoRankRLSCV",
    "CoRankRLSPath",
    "RankRLS",
    "RankRLSCV",
    "RankRLSPath",
    "RankSVM",
    "RankSVMCV",
    "RankSVMPath",
    "RankingPursuit",
    "RankingPursuitCV",
    "View",
]
