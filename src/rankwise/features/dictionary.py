"""The dictionary of a pursuit: which functions to choose from, and their values as columns."""

from __future__ import annotations

import numbers
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike

from rankwise.arrays import Indices
from rankwise.features.feature_map import FeatureMap
from rankwise.inputs import check_option
from rankwise.machine import check_matrix_fits

NAMES = ("items", "scored", "features")


def function_values(functions: FeatureMap, X: Any) -> Any:
    """The functions at the rows of X: a float64 array, or a sparse matrix stored by columns."""
    if not functions.is_columns:
        check_matrix_fits(
            X.shape[0],
            functions.n_features,
            "the values of a dictionary",
            "choose from fewer functions, for example dictionary=2000",
        )
    values = functions.features(X)
    if sp.issparse(values):
        return values.tocsc().astype(np.float64, copy=False)
    return np.asarray(values, dtype=np.float64)


def choose_functions(
    dictionary: str | int | ArrayLike,
    available: Indices,
    scored: Indices,
    n_features: int,
    rng: Any,
) -> tuple[Indices, Any]:
    """Numbers of the functions of a dictionary, and the points if these are given.

    Parameters
    ----------
    dictionary : {"items", "scored", "features"}, int or array of shape (n_points, n_features)
        As the user gave it.
    available, scored : ndarray of int
        Rows of X to choose from, and those of them that have a score.
    n_features : int
        Number of columns of X.
    rng : RandomState
        For an int.
    """
    if isinstance(dictionary, str):
        check_option("dictionary", dictionary, NAMES)
        named = {"items": available, "scored": scored, "features": np.arange(n_features)}
        return named[dictionary], None
    if isinstance(dictionary, numbers.Integral):
        count = int(dictionary)
        if not 1 <= count <= len(available):
            raise ValueError(
                f"dictionary={count}; expected a number of items from 1 to {len(available)}, "
                "the number of training items."
            )
        return np.sort(rng.choice(available, size=count, replace=False)), None
    points = _check_points(dictionary, n_features)
    return np.arange(points.shape[0]), points


def _check_points(points: Any, n_features: int) -> Any:
    if sp.issparse(points):
        points = points.tocsr().astype(np.float64, copy=True)
    else:
        try:
            points = np.array(points, dtype=np.float64)
        except (TypeError, ValueError):
            raise ValueError(
                f"dictionary={points!r}; expected one of {', '.join(map(repr, NAMES))}, a number "
                "of items, or an array of points."
            ) from None
    if points.ndim != 2 or points.shape[0] == 0 or points.shape[1] != n_features:
        raise ValueError(
            f"dictionary has shape {points.shape}; expected points of {n_features} features, shape "
            f"(n_points, {n_features}), as the rows of X are."
        )
    if not np.isfinite(points.data if sp.issparse(points) else points).all():
        raise ValueError("dictionary contains NaN or infinity; give points of finite features.")
    return points
