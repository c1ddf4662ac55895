"""The classes that a model file may contain."""

from __future__ import annotations

from sklearn.kernel_approximation import Nystroem
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import MaxAbsScaler, MinMaxScaler, RobustScaler, StandardScaler

from rankwise.auto.auto_ranker import AutoRanker
from rankwise.auto.boosted_trees import BoostedTrees, TreeFeatures
from rankwise.dyadic.conditional_rank_rls import ConditionalRankRLS, ConditionalRankRLSCV
from rankwise.dyadic.label_ranker import LabelRanker, LabelRankerCV
from rankwise.kernels.feature_maps import FeatureMap
from rankwise.kernels.kernel import Kernel
from rankwise.kernels.views import View
from rankwise.preprocessing.column_types import ColumnInfo
from rankwise.preprocessing.group_scaler import GroupScaler
from rankwise.preprocessing.hinge_features import HingeFeatures
from rankwise.preprocessing.table_vectorizer import TableVectorizer
from rankwise.rankers.co_rank_rls import CoRankRLS, CoRankRLSCV
from rankwise.rankers.rank_logistic import RankLogistic, RankLogisticCV
from rankwise.rankers.rank_rls import RankRLS, RankRLSCV
from rankwise.rankers.rank_svm import RankSVM, RankSVMCV
from rankwise.rankers.ranking_pursuit import PursuitFunction, RankingPursuit, RankingPursuitCV
from rankwise.uncertainty import CalibratedRanker


def _by_name(*classes: type) -> dict[str, type]:
    return {known.__name__: known for known in classes}


RECORDS = _by_name(ColumnInfo, FeatureMap, Kernel, PursuitFunction)

STEPS = _by_name(TableVectorizer, GroupScaler, HingeFeatures, TreeFeatures)

STEPS |= _by_name(MaxAbsScaler, MinMaxScaler, Nystroem, RobustScaler, StandardScaler)

RANKERS: list[type] = [AutoRanker, CoRankRLS, CoRankRLSCV, LabelRanker, LabelRankerCV]

RANKERS += [ConditionalRankRLS, ConditionalRankRLSCV, RankingPursuit, RankingPursuitCV]

RANKERS += [RankLogistic, RankLogisticCV, RankRLS, RankRLSCV, RankSVM, RankSVMCV]

ESTIMATORS = _by_name(*RANKERS, BoostedTrees, CalibratedRanker, View, Pipeline) | STEPS
