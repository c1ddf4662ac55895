"""Views: subsets of the columns, each with a kernel."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator

from rankwise.arrays import Indices, MatrixLike
from rankwise.kernels.basis import check_numbers
from rankwise.kernels.kernel import Kernel, KernelName


class View(BaseEstimator):
    """A view of the items, for learners that train one model per view.

    Use it in the parameter `views` of `CoRankRLS` and `RankingPursuit`. Views may differ in their
    columns, in the kernel, or only in the basis items: each basis has its own hypothesis space
    ([CoRankRLS10] section 3.4). A view is a set of parameters; it can be cloned and compared like
    an estimator, but has no `fit`.

    Parameters
    ----------
    columns : array-like of int, bool or str, slice, or None, default=None
        Columns of X: numbers, a mask, a slice, or names if X is a data frame. None takes all.
    kernel : str or callable, default="linear"
        As in `RankRLS`. With "precomputed" the columns are kernel values to the training items.
    gamma : float, default=None
        Parameter of the named kernels, as in scikit-learn.
    degree : float, default=3
        Degree of the polynomial kernel.
    coef0 : float, default=1
        Constant of the polynomial and sigmoid kernels.
    kernel_params : dict, optional
        Keyword arguments of a callable kernel.
    n_basis : int, optional
        Number of basis items. None leaves the number to the learner; a linear view then uses its
        columns.
    basis : {"random", "kmeans++"}, array of int, or array of points, default="random"
        How the basis items are selected, their row numbers, or points with all columns.

    Examples
    --------
    >>> from rankwise import View
    >>> View(slice(0, 3), kernel="rbf", n_basis=20).columns
    slice(0, 3, None)
    """

    def __init__(
        self,
        columns: MatrixLike = None,
        *,
        kernel: KernelName = "linear",
        gamma: float | None = None,
        degree: float = 3,
        coef0: float = 1,
        kernel_params: dict[str, object] | None = None,
        n_basis: int | None = None,
        basis: str | ArrayLike = "random",
    ) -> None:
        self.columns = columns
        self.kernel = kernel
        self.gamma = gamma
        self.degree = degree
        self.coef0 = coef0
        self.kernel_params = kernel_params
        self.n_basis = n_basis
        self.basis = basis

    def make_kernel(self) -> Kernel:
        """The kernel, checked.

        Returns
        -------
        Kernel
            The kernel function with its parameters.
        """
        return Kernel(self.kernel, self.gamma, self.degree, self.coef0, self.kernel_params or {})


def check_views(views: Sequence[View]) -> list[View]:
    """The user's list of views, checked."""
    is_list = isinstance(views, (list, tuple))
    if not is_list or not views or not all(isinstance(view, View) for view in views):
        raise ValueError(
            f"views={views!r}; expected a number of random views, or a list with at least one "
            "View, such as rankwise.View(columns, kernel=...)."
        )
    return list(views)


def view_columns(view: View, n_features: int, names: Sequence[str] | None) -> Indices | None:
    """Numbers of the columns of a view; None for all."""
    columns = view.columns
    if columns is None:
        return None
    if not isinstance(columns, slice):
        columns = np.atleast_1d(np.asarray(columns))
        are_names = columns.dtype.kind in "UO"
        if are_names or not len(columns):  # an empty list has no type; it is refused below
            columns = _numbers_of_names(columns, names)
    try:
        numbers = np.arange(n_features)[columns]  # of numbers, a mask or a slice
    except IndexError as error:
        raise ValueError(f"columns={view.columns!r} of a view: {error}.") from None
    if numbers.ndim != 1 or not len(numbers):
        raise ValueError(
            f"a view has no columns (columns={columns!r}); give at least one, or None for all."
        )
    return check_numbers("a view", "column", numbers, n_features)


def _numbers_of_names(columns: NDArray[Any], names: Sequence[str] | None) -> Indices:
    """Numbers of the columns with these names."""
    number_of_name = {}
    if names is not None:
        number_of_name = {name: number for number, name in enumerate(names)}
    unknown = [name for name in columns if name not in number_of_name]
    if unknown:
        raise ValueError(f"a view names the column '{unknown[0]}', which X does not have.")
    return np.array([number_of_name[name] for name in columns], dtype=np.intp)
