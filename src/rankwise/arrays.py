"""Types of arrays, features and common arguments, and optional weights.

The shape is in the docstring of the function that takes or returns the array.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Protocol, TypeAlias, runtime_checkable

import numpy as np
from numpy.typing import ArrayLike, NDArray

Array = NDArray[np.float64]
Indices = NDArray[np.intp]
Mask = NDArray[np.bool_]
Texts = NDArray[np.object_]  # strings of Python

Labels = NDArray[Any]  # of groups or items: integers or strings
Numbers = NDArray[Any]  # integers or floats, whose type is preserved
AnyArray = NDArray[Any]  # numbers, text, dates or objects

ParameterValue: TypeAlias = "float | Array"
"""A value of a parameter, or an array with a value for each output."""

Matrix: TypeAlias = Any
"""Validated features, an array or a sparse matrix; SciPy has no type hints for the latter."""

MatrixLike: TypeAlias = Any
"""X of a public call: an array-like, a sparse matrix, a data frame or a list of objects."""

RandomState: TypeAlias = "int | np.random.RandomState | None"
"""Parameter ``random_state``, as in scikit-learn."""


@runtime_checkable
class Splitter(Protocol):
    """A cross-validation splitter of scikit-learn."""

    def split(
        self, X: MatrixLike, y: ArrayLike | None = None, groups: ArrayLike | None = None
    ) -> Iterable[tuple[ArrayLike, ArrayLike]]:
        """Yield the row numbers of each training and test set."""
        ...


CrossValidation: TypeAlias = "int | str | Splitter | Iterable[tuple[ArrayLike, ArrayLike]] | None"
"""Parameter ``cv``: a number of folds, the name of a scheme, a splitter or its splits."""


def take_weights(weight: Array | None, rows: Indices | Mask | slice) -> Array | None:
    """Weights of some rows; None (weights of 1) is returned unchanged."""
    if weight is None:
        return None
    return np.asarray(weight[rows])


def weights_or_ones(weight: Array | None, n_items: int) -> Array:
    """The weights, or 1 for every item if there are none."""
    if weight is None:
        return np.ones(n_items)
    return weight


def row_factors(factors: Array, V: Array) -> Array:
    """Factors of the rows of V in a shape that multiplies V: a column if V is a matrix."""
    if V.ndim == 1:  # a number for each row, else a row of V
        return factors
    return factors[:, None]  # broadcasts over the columns of V


def as_matrix(X: MatrixLike) -> Matrix:
    """A sparse matrix by rows, or an array."""
    is_sparse = hasattr(X, "tocsr")
    if is_sparse:
        return X.tocsr()
    return np.asarray(X)


def dense_rows(R: Matrix) -> Array:
    """Features as a dense float64 array."""
    if not isinstance(R, np.ndarray):  # a sparse matrix
        R = R.toarray()
    return np.asarray(R, dtype=np.float64)
