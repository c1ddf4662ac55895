"""What a ranking file holds, as arrays."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias, Union

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix

Matrix: TypeAlias = Union[NDArray[Any], "csr_matrix"]


class RankingData(NamedTuple):
    """Items to rank; ``X, y, groups = data[:3]`` unpacks what `fit` takes.

    Attributes
    ----------
    X : ndarray or csr_matrix of shape (n_rows, n_features)
        Features.
    y : ndarray of shape (n_rows,), float64, or None
        Relevance labels; larger is better.  None if the file has none, as in data to predict.
    groups : ndarray of shape (n_rows,) or None
        Group (query) label of each row, or None if the file has none: one list.
    ids : ndarray of str objects of shape (n_rows,) or None
        Comment or name of each row.
    feature_names : ndarray of str objects of shape (n_features,) or None
        Names of the columns of X, if the file has any.
    """

    X: Matrix
    y: NDArray[np.float64] | None
    groups: NDArray[Any] | None
    ids: NDArray[np.object_] | None = None
    feature_names: NDArray[np.object_] | None = None
