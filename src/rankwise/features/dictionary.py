"""The dictionary of a pursuit: which functions to choose from, and their values by columns."""

from __future__ import annotations

import numbers
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike

from rankwise.arrays import Array, Indices
from rankwise.features.feature_map import FeatureMap, take_columns
from rankwise.features.kernel import Kernel
from rankwise.memory import available_bytes
from rankwise.options import check_option

NAMES = ("items", "scored", "features")
BLOCK_ENTRIES = 2**20  # of columns at a time: what is done to a block stays in the cache


@dataclass(frozen=True)
class MatrixColumns:
    """Functions whose values are there, dense or sparse."""

    matrix: Any

    @property
    def shape(self) -> tuple[int, int]:
        """Number of rows and of functions."""
        return (self.matrix.shape[0], self.matrix.shape[1])

    def column(self, j: int) -> Array:
        """Values of function j."""
        return _dense(self.matrix[:, [j]])[:, 0]

    def correlate(self, G: Array) -> Array:
        """``Kᵀ G``."""
        return np.asarray(self.matrix.T @ G)

    def blocks(self, *, dense: bool = True) -> Iterator[tuple[slice, Any]]:
        """The columns, a block at a time; sparse ones all at once if they need not be dense."""
        if sp.issparse(self.matrix) and not dense:
            yield slice(0, self.shape[1]), self.matrix
            return
        for columns in _slices(self.shape):
            yield columns, _dense(self.matrix[:, columns])


@dataclass(frozen=True)
class KernelColumns:
    """Functions ``k(x_j, ·)`` that are computed anew, in blocks, whenever they are asked for.

    For dictionaries times rows that do not fit in memory.
    """

    kernel: Kernel
    X: Any
    items: Any

    @property
    def shape(self) -> tuple[int, int]:
        """Number of rows and of functions."""
        return (self.X.shape[0], self.items.shape[0])

    def column(self, j: int) -> Array:
        """Values of function j."""
        return self.kernel.matrix(self.X, self.items[[j]])[:, 0]

    def correlate(self, G: Array) -> Array:
        """``Kᵀ G``."""
        return self.kernel.product(self.items, self.X, G)

    def blocks(self, *, dense: bool = True) -> Iterator[tuple[slice, Any]]:
        """The columns, a block at a time; always dense."""
        for columns in _slices(self.shape):
            yield columns, self.kernel.matrix(self.X, self.items[columns])


def function_values(functions: FeatureMap, X: Any) -> MatrixColumns | KernelColumns:
    """The functions at the rows of X, kept if they take at most half of the free memory."""
    free = available_bytes()
    too_large = free is not None and 16 * X.shape[0] * functions.n_features > free
    if too_large and functions.items is not None:
        seen = take_columns(X, functions.columns)
        return KernelColumns(functions.kernel, seen, functions.items)
    return MatrixColumns(_by_columns(functions.features(X)))


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


def _by_columns(matrix: Any) -> Any:
    """A matrix whose columns are cheap to take and to multiply with float64."""
    if sp.issparse(matrix):
        return matrix.tocsc().astype(np.float64, copy=False)
    return np.asarray(matrix, dtype=np.float64)


def _dense(block: Any) -> Array:
    return np.asarray(block.toarray() if sp.issparse(block) else block, dtype=np.float64)


def _slices(shape: tuple[int, int]) -> Iterator[slice]:
    width = max(1, BLOCK_ENTRIES // max(1, shape[0]))
    for start in range(0, shape[1], width):
        yield slice(start, min(start + width, shape[1]))
