"""Which classes a model file may hold, and which attributes of each, of which kind.

Nothing else is ever constructed by `load`.
"""

from __future__ import annotations

import numbers
from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np
import scipy.sparse as sp
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import (
    MaxAbsScaler,
    MinMaxScaler,
    Normalizer,
    PowerTransformer,
    QuantileTransformer,
    RobustScaler,
    StandardScaler,
)

from rankwise.estimators import (
    CoRankRLS,
    CoRankRLSCV,
    RankingPursuit,
    RankingPursuitCV,
    RankRLS,
    RankRLSCV,
    RankSVM,
    RankSVMCV,
    View,
)
from rankwise.estimators.pursuit_path import PursuitFunction
from rankwise.features import FeatureMap, Kernel

__all__ = [
    "ATTRIBUTES",
    "CLASSES",
    "FORGOTTEN_ATTRIBUTES",
    "FORGOTTEN_PARAMETERS",
    "NEVER_KEPT",
    "RANKERS",
    "RECORDS",
    "SCALERS",
    "SPARSE",
    "is_integers",
    "is_number",
    "is_whole",
]

Kind: TypeAlias = Callable[[Any], bool]


def is_whole(value: Any) -> bool:
    """A whole number."""
    return isinstance(value, numbers.Integral) and not isinstance(value, bool)


def is_number(value: Any) -> bool:
    """A real number."""
    return isinstance(value, numbers.Real) and not isinstance(value, bool)


def is_integers(value: Any) -> bool:
    """An array of whole numbers."""
    return isinstance(value, np.ndarray) and value.dtype.kind in "iu"


def _is_text(value: Any) -> bool:
    return isinstance(value, str)


def _is_floats(value: Any) -> bool:
    return isinstance(value, np.ndarray) and value.dtype.kind == "f"


def _is_array(value: Any) -> bool:
    return isinstance(value, np.ndarray)


def _is_matrix(value: Any) -> bool:
    return bool((_is_floats(value) or sp.issparse(value)) and value.ndim == 2)


def _is_table(value: Any) -> bool:
    return isinstance(value, dict)


def _is_tuple(value: Any) -> bool:
    return isinstance(value, tuple)


def _either(*kinds: Kind) -> Kind:
    return lambda value: any(kind(value) for kind in kinds)


def _maybe(kind: Kind) -> Kind:
    return lambda value: value is None or kind(value)


def _each(kind: Kind) -> Kind:
    return lambda value: isinstance(value, list) and all(kind(entry) for entry in value)


def _one_of(*classes: type) -> Kind:
    return lambda value: type(value) in classes


_SEEN: dict[str, Kind] = {"n_features_in_": is_whole, "feature_names_in_": _is_array}
_COUNTS = _either(is_whole, is_integers)
_KERNEL_MODEL: dict[str, Kind] = {
    **_SEEN,
    "coef_": _is_floats,
    "dual_coef_": _is_floats,
    "X_fit_": _is_matrix,
    "basis_indices_": is_integers,
    "n_pairs_": _COUNTS,
    "n_iter_": is_whole,
    "n_split_groups_": is_whole,  # this one and the next: of a model that Dask has trained
    "n_evaluations_": is_whole,
    "solver_": _is_text,
    "output_shape_": _is_tuple,
}
_SEARCH: dict[str, Kind] = {
    **_SEEN,
    "best_score_": is_number,
    "best_params_": _is_table,
    "cv_results_": _is_table,
}
_ALPHA_SEARCH: dict[str, Kind] = {**_SEARCH, "alpha_": _either(is_number, _is_floats)}
_SCALER: dict[str, Kind] = {
    **_SEEN,
    "n_samples_seen_": _either(is_number, _is_array),
    "scale_": _maybe(_is_floats),
    "_sklearn_output_config": _is_table,
}

ATTRIBUTES: dict[type, dict[str, Kind]] = {
    RankRLS: {**_KERNEL_MODEL, "n_samples_seen_": is_whole},
    RankSVM: {
        **_KERNEL_MODEL,
        "objective_": is_number,
        "lower_bound_": is_number,
        "gap_": is_number,
        "history_": _is_table,
    },
    RankRLSCV: {**_ALPHA_SEARCH, "best_estimator_": _one_of(RankRLS)},
    RankSVMCV: {**_ALPHA_SEARCH, "best_estimator_": _one_of(RankSVM)},
    CoRankRLS: {
        **_SEEN,
        "views_": _each(_one_of(FeatureMap)),
        "view_coef_": _each(_is_floats),
        "basis_indices_": _each(_maybe(is_integers)),
        "n_scored_": is_whole,
        "n_unscored_": is_whole,
        "n_pairs_": is_whole,
    },
    CoRankRLSCV: {**_ALPHA_SEARCH, "nu_": is_number, "best_estimator_": _one_of(CoRankRLS)},
    RankingPursuit: {
        **_SEEN,
        "_functions": _each(_one_of(PursuitFunction)),
        "basis_indices_": _either(is_integers, _each(is_integers)),
        "dual_coef_": _either(_is_floats, _each(_is_floats)),
        "coef_path_": _either(_is_floats, _each(_is_floats)),
        "choice_path_": is_integers,
        "intercept_": is_number,
        "train_error_": _is_floats,
        "validation_score_": _is_floats,
        "coef_": _is_floats,
        "n_basis_": is_whole,
        "n_pairs_": is_whole,
        "search_": _is_text,
    },
    RankingPursuitCV: {
        **_SEARCH,
        "n_basis_": is_whole,
        "best_estimator_": _one_of(RankingPursuit),
    },
    View: {},
    Pipeline: {},
    StandardScaler: {**_SCALER, "mean_": _maybe(_is_floats), "var_": _maybe(_is_floats)},
    MinMaxScaler: {
        **_SCALER,
        "min_": _is_floats,
        "data_min_": _is_floats,
        "data_max_": _is_floats,
        "data_range_": _is_floats,
    },
    MaxAbsScaler: {**_SCALER, "max_abs_": _is_floats},
    RobustScaler: {**_SCALER, "center_": _maybe(_is_floats)},
    Normalizer: _SCALER,
    QuantileTransformer: {
        **_SCALER,
        "n_quantiles_": is_whole,
        "references_": _is_floats,
        "quantiles_": _is_floats,
    },
    PowerTransformer: {
        **_SCALER,
        "lambdas_": _is_floats,
        "_scaler": _one_of(StandardScaler),
    },
}
CLASSES: dict[str, type] = {known.__name__: known for known in ATTRIBUTES}
RANKERS = (
    RankRLS,
    RankRLSCV,
    RankSVM,
    RankSVMCV,
    CoRankRLS,
    CoRankRLSCV,
    RankingPursuit,
    RankingPursuitCV,
)
SCALERS = tuple(known for known, kinds in ATTRIBUTES.items() if "_sklearn_output_config" in kinds)

RECORDS: dict[str, type] = {
    known.__name__: known for known in (Kernel, FeatureMap, PursuitFunction)
}
SPARSE: dict[str, type] = {
    known.__name__: known for known in (sp.csr_matrix, sp.csr_array, sp.csc_matrix, sp.csc_array)
}

FORGOTTEN_ATTRIBUTES = {
    "_chunks": "the sums from which partial_fit goes on",
    "_features": None,
    "_metadata_request": "set_fit_request and set_score_request",
    "_skl_callbacks": "callbacks",
}
"""What is left out, and how the header names it; None if that has been said already."""

FORGOTTEN_PARAMETERS = {"random_state", "cv"}
"""Parameters that only `fit` reads: what cannot be kept of them becomes the default."""

NEVER_KEPT = {"memory"}
"""Parameters that always become the default: from the folder of `memory`, `fit` reads pickles."""
