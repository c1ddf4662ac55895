"""Maps from items to features, and from solutions to coefficients that score new items."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rankwise.arrays import Array, Indices
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


@saved_fields(
    {
        "kernel": Record(Kernel),
        "columns": Ints("columns", optional=True),
        "n_features": Integer(),
        "basis": Ints("items", optional=True),
        "items": Items("items item_columns", optional=True),
        "root": Floats("items features", optional=True),
    }
)
class FeatureMap(NamedTuple):
    """From items to features R with ``f = R w``, and from w to coefficients that score new items.

    ==================  ==========================  ======================  ==================
    map                 features R of the rows      coefficients            set
    ==================  ==========================  ======================  ==================
    columns             the columns as they are     w                       neither
    kernel values       ``K_mb``                    w                       items (or basis)
    orthogonal basis    ``K_mb U``, U Uᵀ = K_bb⁺    ``U w``                 items and root
    ==================  ==========================  ======================  ==================

    The first and the last have ``‖f‖² = ‖w‖²``: [RankRLS09] equations 28, 41 and 42. The second
    gives the functions that a pursuit chooses from.

    Attributes
    ----------
    kernel : Kernel
        The kernel; linear for columns as they are.
    columns : ndarray of int or None
        Columns of X that the map sees; None for all.
    n_features : int
        Number of columns of R.
    basis : ndarray of int or None
        Numbers of the items b: rows of the training data, or of given points. None if they have
        none.
    items : array, sparse matrix or None
        Those columns of the items b; None for columns as they are and for precomputed kernels.
    root : ndarray of shape (n_items, n_features) or None
        U.
    """

    kernel: Kernel
    columns: Indices | None
    n_features: int
    basis: Indices | None = None
    items: Any = None
    root: Array | None = None

    @property
    def is_columns(self) -> bool:
        """Whether the features are columns of X as they are."""
        return self.items is None and not self.kernel.is_precomputed

    @property
    def indices(self) -> Indices:
        """Numbers of the columns or items that the coefficients belong to."""
        numbers = self.columns if self.is_columns else self.basis
        return np.arange(self.n_features) if numbers is None else numbers

    def features(self, X: Any) -> Any:
        """R of the rows of X: columns are as X is, anything else is dense.

        Kernel values are computed for a chunk of rows at a time.
        """
        seen = self._seen(X)
        if self.is_columns:
            return seen
        if self.root is None:
            return self.kernel.matrix(seen, self.items)
        return self.kernel.product(seen, self.items, self.root)

    def coefficients(self, w: Array) -> Array:
        """From weights of the features to weights of the columns or items."""
        return w if self.root is None else self.root @ w

    def scores(self, X: Any, coef: Array) -> NDArray[Any]:
        """Scores of the rows of X for `coefficients` of shape (n,) or (n, k)."""
        seen = self._seen(X)
        if self.is_columns:
            return row_products(seen.astype(np.float64, copy=False), coef)
        return self.kernel.product(seen, self.items, coef)

    def take(self, chosen: Indices) -> FeatureMap:
        """The map of some of its columns or kernel values."""
        numbers = self.indices[chosen]
        if self.is_columns:
            return self._replace(columns=numbers, n_features=len(chosen))
        items = None if self.items is None else self.items[chosen]
        return self._replace(basis=numbers, items=items, n_features=len(chosen))

    def _seen(self, X: Any) -> Any:
        """What the kernel takes: the columns of X, or precomputed values to the items."""
        X = take_columns(X, self.columns)
        return take_columns(X, self.basis) if self.kernel.is_precomputed else X

    def _check_fitted(self) -> None:
        check_kernel_items(self.items, self.kernel.function, self.kernel.params)


def take_columns(X: Any, columns: Indices | None) -> Any:
    """These columns of a dense or sparse matrix; X itself, not a copy, for None or all of them."""
    if columns is None or np.array_equal(columns, np.arange(X.shape[1])):
        return X
    return X[:, columns]
