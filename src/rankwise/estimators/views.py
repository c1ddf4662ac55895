"""Views of the items: which columns, which kernel, which basis; and the features they give."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import KW_ONLY, dataclass
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator

from rankwise.estimators.checks import basis_points, check_basis
from rankwise.kernels import Kernel, basis_root, choose_basis
from rankwise.rows import row_products

__all__ = [
    "FittedView",
    "StackedFeatures",
    "View",
    "fit_basis",
    "fit_view",
    "take_columns",
    "view_columns",
    "view_kernel",
]

Array = NDArray[np.float64]
Columns = NDArray[np.intp] | None


@dataclass(eq=False)
class View(BaseEstimator):
    """One way of looking at the items, for the learners that take several.

    Views differ in the columns that they see, in the kernel, or in the basis items alone: a basis
    of its own makes a hypothesis space of its own ([CoRankRLS10] section 3.4). A view is a bundle
    of parameters; it can be cloned and compared like an estimator, but has no `fit`.

    Parameters
    ----------
    columns : array-like of int, bool or str, slice, or None
        Columns of X: numbers, a mask, a slice, or names if X is a data frame. None takes all.
    kernel : str or callable
        As in `RankRLS`. With "precomputed" the columns are kernel values to the training items.
    gamma, degree, coef0
        Parameters of the named kernels, as in scikit-learn.
    kernel_params : dict, optional
        Keyword arguments of a callable kernel.
    n_basis : int, optional
        Number of basis items. None leaves it to the learner; a linear view then uses its columns
        as they are.
    basis : {"random", "kmeans++"}, array of int, or array of shape (n_basis, n_features)
        How the basis is chosen, the row numbers of the basis items, or points with all columns.

    Examples
    --------
    >>> from rankwise import View
    >>> View(slice(0, 3), kernel="rbf", n_basis=20).columns
    slice(0, 3, None)
    """

    columns: Any = None
    _: KW_ONLY
    kernel: str | Callable[..., float] = "linear"
    gamma: float | None = None
    degree: float = 3
    coef0: float = 1
    kernel_params: dict[str, Any] | None = None
    n_basis: int | None = None
    basis: str | ArrayLike = "random"


class FittedView(NamedTuple):
    """A view with its basis, ready to give features R_v of any rows.

    The features are the columns themselves, or ``R_v = K_mb U`` with ``U Uᵀ = K_bb⁺`` for a basis b
    ([RankRLS09] equations 41 and 42); in both cases ``‖f_v‖² = ‖w‖²`` for ``f_v = R_v w``.

    Attributes
    ----------
    kernel : Kernel
        Kernel of the view.
    columns : ndarray of int or None
        Columns of X that it sees; None for all.
    n_features : int
        Number r of columns of R_v.
    basis : ndarray of int or None
        Row numbers of the basis items; None for given points, or if the features are the columns
        themselves.
    items : array, sparse matrix or None
        Those columns of the basis items; None for precomputed kernels.
    root : ndarray of shape (n_basis, r) or None
        U.
    """

    kernel: Kernel
    columns: Columns
    n_features: int
    basis: NDArray[np.intp] | None = None
    items: Any = None
    root: Array | None = None

    def features(self, X: Any) -> Any:
        """R_v of the rows of X: dense if the view has a basis, else as X is.

        Kernel values are computed for a chunk of rows at a time.
        """
        X = take_columns(X, self.columns)
        if self.root is None:
            return X
        return self.kernel.product(self._inputs(X), self.items, self.root)

    def coefficients(self, w: Array) -> Array:
        """From weights of the features to weights of the columns or basis items."""
        return w if self.root is None else self.root @ w

    def scores(self, X: Any, coef: Array) -> NDArray[Any]:
        """Scores of the rows of X for `coefficients` of shape (n,) or (n, k)."""
        X = take_columns(X, self.columns)
        if self.root is None:
            return row_products(X, coef.astype(X.dtype, copy=False))
        return self.kernel.product(self._inputs(X), self.items, coef)

    def _inputs(self, X: Any) -> Any:
        return X[:, self.basis] if self.kernel.is_precomputed else X


class StackedFeatures:
    """``[R_1 … R_M]`` of some rows of X (all if None), made a block at a time when it is indexed.

    Offers what `PreferenceGraph.gram` and `PreferenceGraph.system` ask of features, so Gram
    matrices over any number of rows need the memory of one block.
    """

    def __init__(
        self, views: Sequence[FittedView], X: Any, rows: NDArray[np.intp] | None = None
    ) -> None:
        self._views = views
        self._X = X
        self._rows = rows
        n_rows = X.shape[0] if rows is None else len(rows)
        self.shape = (n_rows, sum(view.n_features for view in views))

    def __getitem__(self, part: slice | NDArray[np.intp]) -> Array:
        """Dense features of these of the rows."""
        X = self._X[part if self._rows is None else self._rows[part]]
        blocks = [view.features(X) for view in self._views]
        dense = [block.toarray() if sp.issparse(block) else block for block in blocks]
        whole = dense[0] if len(dense) == 1 else np.hstack(dense)
        return np.asarray(whole, dtype=np.float64)


def fit_view(
    view: View,
    X: Any,
    random_state: Any,
    *,
    n_basis: int | None = None,
    names: Sequence[str] | None = None,
) -> FittedView:
    """Choose the basis of a view from the rows of X.

    Parameters
    ----------
    view : View
        What the user asked for.
    X : array or sparse matrix of shape (n_items, n_features)
        All training items, checked.
    random_state : int, RandomState or None
        Seed of the choice.
    n_basis : int, optional
        Number of basis items of a view with a kernel that names none; all items if there are fewer.
    names : sequence of str, optional
        Names of the columns of X.
    """
    kernel = view_kernel(view)
    columns = view_columns(view, X.shape[1], names)
    n_items, n_columns = X.shape[0], X.shape[1] if columns is None else len(columns)
    if kernel.is_precomputed and (sp.issparse(X) or n_items != n_columns):
        raise ValueError(
            f"a view with kernel='precomputed' sees {n_columns} columns of {n_items} items; "
            "expected the dense square matrix of kernel values between all training items; select "
            "it with columns."
        )
    asked = view.n_basis
    if asked is None and isinstance(view.basis, str):
        if kernel.is_linear:
            return FittedView(kernel, columns, n_columns)
        asked = n_items if n_basis is None else min(n_basis, n_items)
    return fit_basis(kernel, X, asked, view.basis, random_state, columns)


def fit_basis(
    kernel: Kernel,
    X: Any,
    n_basis: int | None,
    basis: str | ArrayLike,
    random_state: Any,
    columns: Columns = None,
) -> FittedView:
    """The view of a kernel on basis items that are chosen from the rows of X, or on given points.

    The kernel matrix of precomputed values is square.
    """
    points = basis_points(basis, n_basis, X.shape[1])
    if points is not None:
        if kernel.is_precomputed:
            raise ValueError(
                "basis gives points, but kernel='precomputed' has no kernel values to them; give "
                "row numbers of the kernel matrix."
            )
        return _with_basis(kernel, columns, take_columns(points, columns), None)
    count = check_basis(n_basis, basis, X.shape[0])
    needs_columns = isinstance(basis, str) and basis != "random"
    seen = take_columns(X, columns) if needs_columns else X
    rows = choose_basis(seen, count, basis, random_state)
    return _with_basis(kernel, columns, take_columns(X[rows], columns), rows)


def view_kernel(view: View) -> Kernel:
    """The kernel of a view, checked."""
    return Kernel(view.kernel, view.gamma, view.degree, view.coef0, view.kernel_params or {})


def view_columns(view: View, n_features: int, names: Sequence[str] | None = None) -> Columns:
    """Numbers of the columns of a view, checked; None for all."""
    columns = view.columns
    if columns is None:
        return None
    if isinstance(columns, slice):
        numbers = np.arange(n_features)[columns]
    else:
        numbers = _numbers(np.atleast_1d(np.asarray(columns)), n_features, names)
    if not len(numbers):
        raise ValueError(
            f"a view has no columns (columns={columns!r}); give at least one, or None for all."
        )
    if len(np.unique(numbers)) != len(numbers):
        raise ValueError(f"columns={columns!r} of a view names a column twice; name each once.")
    return numbers.astype(np.intp)


def take_columns(X: Any, columns: Columns) -> Any:
    """These columns of a dense or sparse matrix; X itself, not a copy, for None."""
    return X if columns is None else X[:, columns]


def _numbers(columns: NDArray[Any], n_features: int, names: Sequence[str] | None) -> NDArray[Any]:
    if columns.ndim == 1 and columns.dtype.kind == "b" and len(columns) == n_features:
        return np.flatnonzero(columns)
    if columns.ndim == 1 and not len(columns):
        return np.empty(0, dtype=np.intp)
    if columns.ndim == 1 and columns.dtype.kind in "iu":
        if columns.min() < 0 or columns.max() >= n_features:
            worst = columns.min() if columns.min() < 0 else columns.max()
            raise ValueError(
                f"a view names column {worst}; the {n_features} columns of X count from 0."
            )
        return columns
    if columns.ndim == 1 and columns.dtype.kind in "UO" and names is not None:
        position = {name: k for k, name in enumerate(names)}
        unknown = [name for name in columns if name not in position]
        if not unknown:
            return np.array([position[name] for name in columns])
        raise ValueError(f"a view names the column {str(unknown[0])!r}, which X does not have.")
    raise ValueError(
        f"columns of a view have dtype {columns.dtype} and shape {columns.shape}; expected a flat "
        f"list of column numbers, a mask of {n_features} entries, a slice, or names if X is a data "
        "frame with names."
    )


def _with_basis(
    kernel: Kernel, columns: Columns, items: Any, rows: NDArray[np.intp] | None
) -> FittedView:
    """The view with these items, rows of X unless they are points of their own, as its basis."""
    root = basis_root(kernel.matrix(items[:, rows] if kernel.is_precomputed else items))
    if not root.shape[1]:  # every kernel value is zero, and so is every score
        root = np.zeros((items.shape[0], 1))
    kept = None if kernel.is_precomputed else items
    return FittedView(kernel, columns, root.shape[1], rows, kept, root)
