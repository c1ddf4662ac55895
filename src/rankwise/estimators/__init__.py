"""Estimators: the models, in scikit-learn's interface.

Each is imported when it is first asked for: one learner does not wait for the others.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rankwise.estimators.auto_ranker import AutoRanker
    from rankwise.estimators.co_rank_rls import CoRankRLS, CoRankRLSCV, CoRankRLSPath
    from rankwise.estimators.columns import ColumnFacts, Columns
    from rankwise.estimators.conditional_rank_rls import ConditionalRankRLS, ConditionalRankRLSCV
    from rankwise.estimators.group_scaler import GroupScaler
    from rankwise.estimators.hinge_features import HingeFeatures
    from rankwise.estimators.label_ranker import LabelRanker, LabelRankerCV
    from rankwise.estimators.rank_logistic import RankLogistic, RankLogisticCV, RankLogisticPath
    from rankwise.estimators.rank_rls import RankRLS, RankRLSCV, RankRLSPath
    from rankwise.estimators.rank_svm import RankSVM, RankSVMCV, RankSVMPath
    from rankwise.estimators.ranking_pursuit import RankingPursuit, RankingPursuitCV
    from rankwise.features.view import View

__all__ = [
    "AutoRanker",
    "CoRankRLS",
    "CoRankRLSCV",
    "CoRankRLSPath",
    "ColumnFacts",
    "Columns",
    "ConditionalRankRLS",
    "ConditionalRankRLSCV",
    "GroupScaler",
    "HingeFeatures",
    "LabelRanker",
    "LabelRankerCV",
    "RankLogistic",
    "RankLogisticCV",
    "RankLogisticPath",
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

_HOMES = {
    "AutoRanker": "estimators.auto_ranker",
    "CoRankRLS": "estimators.co_rank_rls",
    "CoRankRLSCV": "estimators.co_rank_rls",
    "CoRankRLSPath": "estimators.co_rank_rls",
    "ColumnFacts": "estimators.columns",
    "Columns": "estimators.columns",
    "ConditionalRankRLS": "estimators.conditional_rank_rls",
    "ConditionalRankRLSCV": "estimators.conditional_rank_rls",
    "LabelRanker": "estimators.label_ranker",
    "LabelRankerCV": "estimators.label_ranker",
    "GroupScaler": "estimators.group_scaler",
    "HingeFeatures": "estimators.hinge_features",
    "RankLogistic": "estimators.rank_logistic",
    "RankLogisticCV": "estimators.rank_logistic",
    "RankLogisticPath": "estimators.rank_logistic",
    "RankRLS": "estimators.rank_rls",
    "RankRLSCV": "estimators.rank_rls",
    "RankRLSPath": "estimators.rank_rls",
    "RankSVM": "estimators.rank_svm",
    "RankSVMCV": "estimators.rank_svm",
    "RankSVMPath": "estimators.rank_svm",
    "RankingPursuit": "estimators.ranking_pursuit",
    "RankingPursuitCV": "estimators.ranking_pursuit",
    "View": "features.view",
}


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module 'rankwise.estimators' has no attribute {name!r}")
    return getattr(import_module(f"rankwise.{_HOMES[name]}"), name)
