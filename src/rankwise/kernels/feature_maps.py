"""Feature maps: from items to features R, and from weights to coefficients that score new items.

====================  ==========================  ============  ========================
map                   features R of the rows      coefficients  scores
====================  ==========================  ============  ========================
`ColumnFeatures`      columns of X                w             X w
`KernelFeatures`      ``K_mb``                    w             k(X, items) w
`BasisFeatures`       ``K_mb U``, U Uᵀ = K_bb⁺    ``U w``       k(X, items) U w
====================  ==========================  ============  ========================

The first and the last have ``‖f‖² = ‖w‖²``: [RankRLS09] equations 28, 41 and 42. The second is a
dictionary of functions from which a pursuit selects.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from rankwise.arrays import Array, Indices, Matrix
from rankwise.fitted_schema import (
    Floats,
    Integer,
    Ints,
    Items,
    Record,
    check_kernel_items,
    saved_fields,
)
from rankwise.kernels.kernel import Kernel
from rankwise.kernels.stable_products import row_products


@saved_fields({"columns": Ints("columns", optional=True), "n_features": Integer()})
class ColumnFeatures(NamedTuple):
    """Columns of X, unchanged.

    Attributes
    ----------
    columns : ndarray of int or None
        Numbers of the columns; None for all.
    n_features : int
        Number of columns of R.
    """

    columns: Indices | None
    n_features: int

    @property
    def kernel(self) -> Kernel:
        """The linear kernel."""
        return Kernel("linear")

    @property
    def indices(self) -> Indices:
        """Numbers of the columns that the coefficients belong to."""
        if self.columns is None:  # every column of X
            return np.arange(self.n_features)
        return self.columns

    def transform(self, X: Matrix) -> Matrix:
        """R of the rows of X; sparse if X is sparse."""
        return take_columns(X, self.columns)

    def coefficients(self, w: Array) -> Array:
        """Coefficients of the columns from weights of the features."""
        return w

    def scores(self, X: Matrix, coef: Array) -> Array:
        """Scores of the rows of X for coefficients of shape (n,) or (n, k)."""
        return row_products(self.transform(X).astype(np.float64, copy=False), coef)

    def take(self, chosen: Indices) -> ColumnFeatures:
        """The map of some of its columns."""
        return ColumnFeatures(self.indices[chosen], len(chosen))


@saved_fields(
    {
        "kernel": Record(Kernel),
        "columns": Ints("columns", optional=True),
        "n_features": Integer(),
        "basis": Ints("items", optional=True),
        "items": Items("items item_columns", optional=True),
    }
)
class KernelFeatures(NamedTuple):
    """Kernel values to items.

    Attributes
    ----------
    kernel : Kernel
        The kernel.
    columns : ndarray of int or None
        Columns of X that the kernel compares; None for all.
    n_features : int
        Number of items, and of columns of R.
    basis : ndarray of int or None
        Numbers of the items: rows of the training data, or of given points. None for all rows.
    items : array, sparse matrix or None
        These columns of the items; None for a precomputed kernel.
    """

    kernel: Kernel
    columns: Indices | None
    n_features: int
    basis: Indices | None = None
    items: Matrix = None

    @property
    def indices(self) -> Indices:
        """Numbers of the items that the coefficients belong to."""
        if self.basis is None:  # every training item
            return np.arange(self.n_features)
        return self.basis

    def transform(self, X: Matrix) -> Matrix:
        """R of the rows of X."""
        return self.kernel.matrix(_kernel_columns(self, X), self.items)

    def coefficients(self, w: Array) -> Array:
        """Coefficients of the items from weights of the features."""
        return w

    def scores(self, X: Matrix, coef: Array) -> Array:
        """Scores of the rows of X for coefficients of shape (n,) or (n, k)."""
        return self.kernel.product(_kernel_columns(self, X), self.items, coef)

    def take(self, chosen: Indices) -> KernelFeatures:
        """The map of some of its items."""
        items = self.items
        if items is not None:
            items = items[chosen]
        return KernelFeatures(self.kernel, self.columns, len(chosen), self.indices[chosen], items)

    def _check_fitted(self) -> None:
        check_kernel_items(self.items, self.kernel.function, self.kernel.params)


@saved_fields(
    {
        "kernel": Record(Kernel),
        "columns": Ints("columns", optional=True),
        "basis": Ints("items", optional=True),
        "items": Items("items item_columns", optional=True),
        "root": Floats("items features"),
    }
)
class BasisFeatures(NamedTuple):
    """Orthonormal functions in the span of the kernel values to basis items.

    Attributes
    ----------
    kernel : Kernel
        The kernel.
    columns : ndarray of int or None
        Columns of X that the kernel compares; None for all.
    basis : ndarray of int or None
        Numbers of the basis items in the training data; None for given points.
    items : array, sparse matrix or None
        These columns of the basis items; None for a precomputed kernel.
    root : ndarray of shape (n_items, n_features)
        U with ``U Uᵀ = K_bb⁺``.
    """

    kernel: Kernel
    columns: Indices | None
    basis: Indices | None
    items: Matrix
    root: Array

    @property
    def n_features(self) -> int:
        """Number of columns of R."""
        return int(self.root.shape[1])

    @property
    def indices(self) -> Indices:
        """Numbers of the basis items that the coefficients belong to."""
        if self.basis is None:  # points, which are no training items
            return np.arange(len(self.root))
        return self.basis

    def transform(self, X: Matrix) -> Matrix:
        """R of the rows of X; kernel values are computed in chunks of rows."""
        return self.kernel.product(_kernel_columns(self, X), self.items, self.root)

    def coefficients(self, w: Array) -> Array:
        """Coefficients of the basis items from weights of the features."""
        return self.root @ w

    def scores(self, X: Matrix, coef: Array) -> Array:
        """Scores of the rows of X for coefficients of shape (n,) or (n, k)."""
        return self.kernel.product(_kernel_columns(self, X), self.items, coef)

    def _check_fitted(self) -> None:
        check_kernel_items(self.items, self.kernel.function, self.kernel.params)


FeatureMap = ColumnFeatures | KernelFeatures | BasisFeatures


def _kernel_columns(features: KernelFeatures | BasisFeatures, X: Matrix) -> Matrix:
    """The columns of X that the kernel compares, or precomputed values to the items."""
    X = take_columns(X, features.columns)
    if features.kernel.is_precomputed:
        return take_columns(X, features.basis)
    return X


def take_columns(X: Matrix, columns: Indices | None) -> Matrix:
    """These columns of a dense or sparse matrix; X itself, not a copy, for None or all columns."""
    if columns is None or np.array_equal(columns, np.arange(X.shape[1])):
        return X
    return X[:, columns]
