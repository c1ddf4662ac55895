"""Kernels: their parameters, their values, and products with their values."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import numpy as np
import scipy.sparse as sp
from sklearn.metrics.pairwise import PAIRWISE_KERNEL_FUNCTIONS, pairwise_kernels

from rankwise.arrays import Array, Matrix
from rankwise.fitted_schema import Number, Options, Word, saved_fields
from rankwise.kernels.ngram import ngram_kernel
from rankwise.kernels.stable_products import first_equal_rows, row_products
from rankwise.validation import suggestion

KernelName: TypeAlias = str | Callable[..., float]
"""Parameter ``kernel``: a name, or a function of two items."""

CHUNK_ENTRIES = 2**23  # kernel values computed at the same time
MAX_NGRAM_LENGTH = 100


@saved_fields(
    {
        "function": Word(),
        "gamma": Number(optional=True),
        "degree": Number(),
        "coef0": Number(),
        "params": Options(),
    }
)
@dataclass
class Kernel:
    """A kernel function: one of scikit-learn's names, "ngram", a callable, or "precomputed".

    Attributes
    ----------
    function : str or callable
        Name, or a function of two items.
    gamma, degree, coef0
        Parameters of scikit-learn's kernels; each kernel uses those that it has.
    params : dict
        Further keyword arguments of a callable, or of "ngram".
    """

    function: KernelName
    gamma: float | None = None
    degree: float = 3
    coef0: float = 1
    params: dict[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.is_linear = self.function == "linear"  # the model is a weight per feature
        self.is_precomputed = self.function == "precomputed"  # X is the kernel matrix itself
        self.takes_objects = callable(self.function) or self.function == "ngram"
        if not callable(self.function):
            self._check_name(self.function)
        if self.gamma is not None and not self.gamma > 0:
            raise ValueError(f"gamma={self.gamma!r}; expected a positive number or None.")
        if self.function == "ngram":
            self._check_ngram_params()
        elif self.params and not callable(self.function):
            raise ValueError(
                f"kernel_params={self.params!r} is for callable kernels and 'ngram'; the kernel "
                f"{self.function!r} takes gamma, degree and coef0."
            )

    @staticmethod
    def _check_name(name: str) -> None:
        names = {*PAIRWISE_KERNEL_FUNCTIONS, "ngram", "precomputed"}
        if name not in names:
            raise ValueError(
                f"kernel={name!r} is unknown{suggestion(name, sorted(names))} Choose one of "
                f"{', '.join(sorted(names))}, or a Python function of two items."
            )

    def _check_ngram_params(self) -> None:
        ngram_range = self.params.get("ngram_range", (1, 3))
        shared = self.params.get("shared", 0)
        is_pair = isinstance(ngram_range, (tuple, list)) and len(ngram_range) == 2
        is_pair_of_ints = is_pair and all(isinstance(length, int) for length in ngram_range)
        if not is_pair_of_ints or not 1 <= ngram_range[0] <= ngram_range[1] <= MAX_NGRAM_LENGTH:
            raise ValueError(
                f"ngram_range={ngram_range!r}; expected two whole numbers from 1 to "
                f"{MAX_NGRAM_LENGTH}, the shortest first, such as (1, 3)."
            )
        if not isinstance(shared, (int, float)) or not 0 <= shared < 1:
            raise ValueError(f"shared={shared!r}; expected a number of at least 0 and below 1.")

    def matrix(self, X: Matrix, Y: Matrix = None) -> Array:
        """Kernel values between the rows of X and the rows of Y (of X if None), as float64.

        Without Y, equal rows of X have equal rows and columns, to the last bit.
        """
        if self.is_precomputed:  # X has the kernel values; a copy, as callers overwrite them
            return np.array(X, dtype=np.float64)
        if Y is None:
            first_equal_row = first_equal_rows(X)
            if first_equal_row is not None:  # compute the values of distinct rows, and repeat them
                distinct_rows, position = np.unique(first_equal_row, return_inverse=True)
                return self.matrix(X[distinct_rows])[np.ix_(position, position)]
        if X.dtype != object:
            return self._number_matrix(X, Y)
        if Y is None:
            return self._symmetric_object_matrix(_objects(X))
        return self._object_matrix(_objects(X), _objects(Y))

    def _number_matrix(self, X: Matrix, Y: Matrix) -> Array:
        """Kernel values of rows of numbers, by scikit-learn."""
        X = X.astype(np.float64, copy=False)
        if self.function == "rbf" and not sp.issparse(X) and not sp.issparse(Y):
            X, Y = _shift_to_mean(X, Y)
        if callable(self.function):
            K = pairwise_kernels(X, Y, metric=self.function, **self.params)
        else:
            parameters = {"degree": self.degree, "coef0": self.coef0}
            if self.gamma is not None:  # None is the default of the kernel
                parameters["gamma"] = self.gamma
            K = pairwise_kernels(X, Y, metric=self.function, filter_params=True, **parameters)
        if sp.issparse(K):
            K = K.toarray()
        return np.asarray(K, dtype=np.float64)

    def _object_matrix(self, row_items: Sequence[Any], column_items: Sequence[Any]) -> Array:
        """Kernel values between two sequences of objects."""
        if not callable(self.function):
            return ngram_kernel(row_items, column_items, **self.params)
        K = np.empty((len(row_items), len(column_items)))
        for i, item in enumerate(row_items):
            K[i] = [self.function(item, column_item, **self.params) for column_item in column_items]
        return K

    def _symmetric_object_matrix(self, items: Sequence[Any]) -> Array:
        """Kernel values between objects, of which half are computed."""
        if not callable(self.function):
            return ngram_kernel(items, **self.params)
        K = np.empty((len(items), len(items)))
        for i, item in enumerate(items):
            K[i, i:] = [self.function(item, later_item, **self.params) for later_item in items[i:]]
        return np.triu(K) + np.triu(K, 1).T  # the upper triangle and its mirror image

    def product(self, X: Matrix, Y: Matrix, coef: Array) -> Array:
        """``k(X, Y) coef``, a chunk of rows of X at a time; equal rows of X give equal rows."""
        if self.is_precomputed:
            return row_products(X, coef)
        first_equal_row = first_equal_rows(X)
        if first_equal_row is not None:  # compute the product of distinct rows, and repeat it
            distinct_rows, position = np.unique(first_equal_row, return_inverse=True)
            return np.asarray(self.product(X[distinct_rows], Y, coef)[position])
        # kernel matrix of X and Y, times coef, a chunk of rows at a time
        n_rows = X.shape[0]
        n_rows_of_chunk = max(1, CHUNK_ENTRIES // max(1, Y.shape[0]))
        product = np.empty((n_rows, *coef.shape[1:]))
        for start in range(0, n_rows, n_rows_of_chunk):
            chunk = slice(start, start + n_rows_of_chunk)
            product[chunk] = self.matrix(X[chunk], Y) @ coef
        return product


def _shift_to_mean(X: Array, Y: Array | None) -> tuple[Array, Array | None]:
    """Both less the mean of the second: squared distances far from zero would cancel."""
    if Y is None:
        return X - X.mean(axis=0, dtype=np.float64), None
    mean = Y.mean(axis=0, dtype=np.float64)
    return X - mean, Y - mean


def _objects(X: Matrix) -> Sequence[Any]:
    """The items of a kernel of objects: entries of the only column, or rows of several columns."""
    if X.shape[1] == 1:  # such as texts
        return list(X[:, 0])
    return list(X)


def center_kernel(K: Array) -> Array:
    """Center the features of a kernel matrix in place.

    A loss over pairs depends on differences only, so its dual coefficients sum to zero and
    constants do not matter; a conditionally positive kernel becomes a positive one.
    """
    # subtract the means of the columns, and then of the rows, in place
    column_mean = K.mean(axis=0)  # also the mean of the rows, since K is symmetric
    K -= column_mean
    K -= (column_mean - column_mean.mean())[:, None]
    return K
