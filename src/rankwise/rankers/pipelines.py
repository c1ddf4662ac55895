"""Steps of fitted pipelines: unwrap them, transform items, trace columns."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import sklearn
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator, clone
from sklearn.compose import ColumnTransformer
from sklearn.pipeline import FeatureUnion, Pipeline

from rankwise.arrays import Indices, MatrixLike
from rankwise.graphs.supervision import TargetLike, make_target, unpack_target
from rankwise.model_selection.scorer import group_metadata
from rankwise.preprocessing.table_vectorizer import source_of_features
from rankwise.runtime.interrupts import no_interrupted_fits

#: Steps that transform each column separately, into one feature.
ONE_TO_ONE = (
    "StandardScaler",
    "MinMaxScaler",
    "MaxAbsScaler",
    "RobustScaler",
    "OrdinalEncoder",
    "QuantileTransformer",
    "PowerTransformer",
    "Binarizer",
)


def final_estimator(estimator: BaseEstimator) -> BaseEstimator:
    """Return the last step of a Pipeline, or the estimator itself."""
    if isinstance(estimator, Pipeline):
        return estimator[-1]
    return estimator


def transform_items(
    estimator: BaseEstimator, X: MatrixLike, groups: ArrayLike | None = None
) -> MatrixLike:
    """Transform items by all steps of a fitted Pipeline but the last one."""
    if not isinstance(estimator, Pipeline) or len(estimator) < 2:
        return X
    return transform_step(estimator[:-1], X, groups)


def transform_step(step: BaseEstimator, X: MatrixLike, groups: ArrayLike | None) -> MatrixLike:
    """Transform items by a fitted step; groups are routed to the steps that request them."""
    with sklearn.config_context(enable_metadata_routing=True):
        return step.transform(X, **group_metadata(step, "transform", groups))


def fit_transform(
    step: BaseEstimator, X: MatrixLike, groups: ArrayLike | None, y: ArrayLike | None = None
) -> MatrixLike:
    """Fit a transformer and transform the same items, with groups where it requests them."""
    with sklearn.config_context(enable_metadata_routing=True):
        return step.fit_transform(X, y, **group_metadata(step, "fit_transform", groups))


@no_interrupted_fits()
def fit_ranker(
    estimator: BaseEstimator, X: MatrixLike, y: TargetLike, groups: ArrayLike | None
) -> BaseEstimator:
    """Fit a clone of an estimator; the target passes the groups through any Pipeline."""
    target, labels, weights = unpack_target(y, groups)
    if labels is not None:  # a target carries the groups through the steps of a Pipeline
        target = make_target(target, labels, weights)
    return clone(estimator).fit(X, target)


def is_passthrough(step: object) -> bool:
    """Whether a step of a Pipeline has no effect."""
    return step is None or (isinstance(step, str) and step == "passthrough")


def input_column_of_feature(step: BaseEstimator, n_columns: int) -> Indices | None:
    """Number of the input column that each feature of a fitted step is computed from.

    Parameters
    ----------
    step : transformer
        Fitted.
    n_columns : int
        Number of columns of its input.

    Returns
    -------
    ndarray of int or None
        None if a feature is computed from several columns, or the type of the step is unknown.
    """
    name = type(step).__name__
    if is_passthrough(step) or name in ONE_TO_ONE:
        return np.arange(n_columns)
    if isinstance(step, Pipeline):
        return _columns_of_pipeline(step, n_columns)
    if isinstance(step, ColumnTransformer):
        columns_of_branches = [
            _input_column_of_branch_features(step, key, transformer)
            for key, transformer, _ in step.transformers_
        ]
        return _concatenate_known(columns_of_branches)
    if isinstance(step, FeatureUnion):
        columns_of_branches = [
            input_column_of_feature(transformer, n_columns)
            for _, transformer in step.transformer_list
        ]
        return _concatenate_known(columns_of_branches)
    if name in COLUMNS_OF_STEP:
        return COLUMNS_OF_STEP[name](step, n_columns)
    if hasattr(step, "get_support"):  # a selector of features
        return np.asarray(step.get_support(indices=True))
    return None


def _columns_of_pipeline(pipeline: Pipeline, n_columns: int) -> Indices | None:
    """Input columns through all steps of a pipeline."""
    input_columns = np.arange(n_columns)  # of each feature after the steps so far
    for _, step in pipeline.steps:
        columns_of_step = input_column_of_feature(step, len(input_columns))
        if columns_of_step is None:
            return None
        input_columns = input_columns[columns_of_step]
    return input_columns


def _input_column_of_branch_features(
    step: ColumnTransformer, key: str, transformer: BaseEstimator
) -> Indices | None:
    """Number of the input column of each feature of one branch of a ColumnTransformer."""
    if isinstance(transformer, str) and transformer == "drop":
        return np.empty(0, dtype=np.intp)
    branch_columns = np.asarray(step._transformer_to_input_indices[key], dtype=np.intp)
    if not len(branch_columns):
        return branch_columns
    position_in_branch = input_column_of_feature(transformer, len(branch_columns))
    if position_in_branch is None:
        return None
    return branch_columns[position_in_branch]


def _concatenate_known(columns_of_branches: list[Indices | None]) -> Indices | None:
    """Join the input columns of several transformers; None if one of them is unknown."""
    known_columns = [columns for columns in columns_of_branches if columns is not None]
    if len(known_columns) < len(columns_of_branches):
        return None
    return np.concatenate(known_columns)


def _columns_of_one_hot_encoder(step: BaseEstimator, n_columns: int) -> Indices:
    """One feature for each category, except dropped and infrequent ones."""
    n_features = np.array([len(categories) for categories in step.categories_])
    infrequent = getattr(step, "infrequent_categories_", None)
    for column in range(n_columns):
        if infrequent is not None and infrequent[column] is not None:
            n_features[column] -= len(infrequent[column]) - 1  # they share one feature
        if step.drop_idx_ is not None and step.drop_idx_[column] is not None:
            n_features[column] -= 1
    return np.repeat(np.arange(n_columns), n_features)


def _columns_of_table_vectorizer(step: BaseEstimator, n_columns: int) -> Indices:
    return np.array(source_of_features(step.facts_), dtype=np.intp)


def _columns_of_group_scaler(step: BaseEstimator, n_columns: int) -> Indices:
    columns = np.arange(n_columns)
    if step.with_standard:  # a second feature of each column
        return np.tile(columns, 2)
    return columns


def _columns_of_simple_imputer(step: BaseEstimator, n_columns: int) -> Indices:
    """Columns with a value to impute, then the indicators of missing values."""
    columns = np.arange(n_columns)
    if not step.keep_empty_features:
        is_empty = step.statistics_ != step.statistics_  # nan differs from itself
        columns = columns[~is_empty]
    if step.add_indicator:
        columns = np.concatenate([columns, step.indicator_.features_])
    return columns


def _columns_of_missing_indicator(step: BaseEstimator, n_columns: int) -> Indices:
    return np.asarray(step.features_)


def _columns_of_function_transformer(step: BaseEstimator, n_columns: int) -> Indices | None:
    is_elementwise = step.func is None or isinstance(step.func, np.ufunc)
    if is_elementwise:
        return np.arange(n_columns)
    return None


#: By the name of a step's class: its input columns, from the fitted step and their number.
COLUMNS_OF_STEP: dict[str, Callable[[BaseEstimator, int], Indices | None]] = {
    "OneHotEncoder": _columns_of_one_hot_encoder,
    "TableVectorizer": _columns_of_table_vectorizer,
    "GroupScaler": _columns_of_group_scaler,
    "SimpleImputer": _columns_of_simple_imputer,
    "MissingIndicator": _columns_of_missing_indicator,
    "FunctionTransformer": _columns_of_function_transformer,
}
