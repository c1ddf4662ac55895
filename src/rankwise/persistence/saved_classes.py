"""The classes that a model file may contain.

Classes of rankwise declare their fitted attributes themselves (`rankwise.fitted_schema`). To make
a new estimator savable, declare its attributes and add the class to `RANKERS` or `STEPS`. Only
rankers (`RankerMixin`), alone or as the last step of a Pipeline, are the model of a file.
"""

from __future__ import annotations

from sklearn.kernel_approximation import Nystroem
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import MaxAbsScaler, MinMaxScaler, RobustScaler, StandardScaler

from rankwise.auto.auto_ranker import AutoRanker
from rankwise.auto.boosted_trees import BoostedTrees
from rankwise.auto.comparison_covariates import ComparisonCovariates
from rankwise.auto.comparison_model import ComparisonModel
from rankwise.auto.pair_models import JointPairs, PairTrees
from rankwise.auto.tree_features import TreeFeatures
from rankwise.dyadic.conditional_rank_rls import ConditionalRankRLS, ConditionalRankRLSCV
from rankwise.dyadic.label_ranker import LabelRanker, LabelRankerCV
from rankwise.fitted_schema import Field, FittedSchema, Floats, Ints, Length, Values, fitted_schema
from rankwise.kernels.feature_maps import BasisFeatures, ColumnFeatures, KernelFeatures
from rankwise.kernels.kernel import Kernel
from rankwise.kernels.views import View
from rankwise.preprocessing.column_types import ColumnInfo
from rankwise.preprocessing.group_scaler import GroupScaler
from rankwise.preprocessing.hinge_features import HingeFeatures
from rankwise.preprocessing.table_vectorizer import TableVectorizer
from rankwise.rankers.co_rank_rls import CoRankRLS
from rankwise.rankers.co_rank_rls_cv import CoRankRLSCV
from rankwise.rankers.pursuit_function import PursuitFunction
from rankwise.rankers.rank_logistic import RankLogistic, RankLogisticCV
from rankwise.rankers.rank_rls import RankRLS
from rankwise.rankers.rank_rls_cv import RankRLSCV
from rankwise.rankers.rank_svm import RankSVM, RankSVMCV
from rankwise.rankers.ranking_pursuit import RankingPursuit
from rankwise.rankers.ranking_pursuit_cv import RankingPursuitCV
from rankwise.uncertainty import CalibratedRanker


def _by_class_name(classes: list[type]) -> dict[str, type]:
    return {saved_class.__name__: saved_class for saved_class in classes}


# Parts of models, declared with `saved_fields`.
RECORDS = _by_class_name(
    [BasisFeatures, ColumnFeatures, ColumnInfo, Kernel, KernelFeatures, PursuitFunction]
)

# scikit-learn's transformers, whose attributes are declared here.
SCIKIT_LEARN_SCHEMAS: dict[type, FittedSchema] = {
    MaxAbsScaler: {
        "max_abs_": Floats("features"),
        "scale_": Floats("features"),
        "n_samples_seen_": Values(),
    },
    MinMaxScaler: {
        "min_": Floats("features"),
        "scale_": Floats("features"),
        "data_min_": Floats("features"),
        "data_max_": Floats("features"),
        "data_range_": Floats("features"),
        "n_samples_seen_": Values(),
    },
    Nystroem: {
        "components_": Floats("components features"),
        "normalization_": Floats("components components"),
        "component_indices_": Ints("components"),
        "_n_features_out": Length("components"),
    },
    RobustScaler: {
        "center_": Floats("features", optional=True),
        "scale_": Floats("features", optional=True),
    },
    StandardScaler: {
        "mean_": Floats("features", optional=True),
        "var_": Floats("features", optional=True),
        "scale_": Floats("features", optional=True),
        "n_samples_seen_": Values(),
    },
}

# The transformers that a Pipeline may contain.
STEPS = _by_class_name(
    [
        TableVectorizer,
        GroupScaler,
        HingeFeatures,
        TreeFeatures,
        *SCIKIT_LEARN_SCHEMAS,
    ]
)

RANKERS: list[type] = [
    AutoRanker,
    BoostedTrees,
    CalibratedRanker,
    ConditionalRankRLS,
    ConditionalRankRLSCV,
    CoRankRLS,
    CoRankRLSCV,
    LabelRanker,
    LabelRankerCV,
    RankingPursuit,
    RankingPursuitCV,
    RankLogistic,
    RankLogisticCV,
    RankRLS,
    RankRLSCV,
    RankSVM,
    RankSVMCV,
]

# Parts of an AutoRanker that was trained on comparisons.
COMPARISON_PARTS: list[type] = [ComparisonCovariates, ComparisonModel, JointPairs, PairTrees]

ESTIMATORS = {
    **_by_class_name(RANKERS),
    **_by_class_name([View, Pipeline]),
    **_by_class_name(COMPARISON_PARTS),
    **STEPS,
}


def schema_of(saved_class: type) -> dict[str, Field]:
    """The declared attributes of one of the classes."""
    declared_by_class = fitted_schema(saved_class)
    declared_here = SCIKIT_LEARN_SCHEMAS.get(saved_class, {})
    return {**declared_by_class, **declared_here}
