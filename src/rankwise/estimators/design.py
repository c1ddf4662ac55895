"""The design of a ranker: which matrix the solver sees, and the way back from it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray

from rankwise.estimators.views import StackedFeatures, fit_basis
from rankwise.kernels import Kernel, kernel_root
from rankwise.memory import available_bytes, check_matrix_fits
from rankwise.options import check_option

__all__ = [
    "FITTING",
    "HOLDING_OUT",
    "MAPPING",
    "Design",
    "is_read_once",
    "make_design",
    "make_features",
]

Array = NDArray[np.float64]
SOLVERS = ("auto", "primal", "dual", "iterative")
FITTING, HOLDING_OUT, MAPPING = 2.25, 2.5, 2.25  # kernel matrices in memory at a time
SPARSE_DIRECT_LIMIT = 5000  # sparse X with more rows and columns than this is solved iteratively


class Design(NamedTuple):
    """What the solver sees.

    Attributes
    ----------
    method : {"primal", "dual", "iterative"}
        How to solve.
    matrix : array, sparse matrix or StackedFeatures
        Features R of the items for "primal" and "iterative", the kernel matrix for "dual". Features
        that a basis gives are made when they are read; see `stored`.
    coefficients : callable
        Takes solutions, shape (n, k), to coefficients of features or kernel items.
    items : array, sparse matrix or None
        The items that the coefficients of a kernel model belong to.
    basis : ndarray of int or None
        Their row numbers, if they are a basis of rows.
    is_definite : bool
        False if negative eigenvalues of the kernel had to be left out.
    """

    method: str
    matrix: Any
    coefficients: Callable[[Array], Array]
    items: Any = None
    basis: NDArray[np.intp] | None = None
    is_definite: bool = True

    def stored(self) -> Design:
        """The same with all features in memory, for those who read them more than once."""
        if not isinstance(self.matrix, StackedFeatures):
            return self
        check_matrix_fits(*self.matrix.shape, "a kernel matrix", "use a smaller n_basis")
        return self._replace(matrix=self.matrix[:])


def is_read_once(kernel: Kernel, X: Any, solver: str) -> bool:
    """Whether the design of X is primal on X itself, dense: its Gram matrix tells of NaN in X."""
    return kernel.is_linear and not sp.issparse(X) and _linear_method(X, solver) == "primal"


def make_design(
    kernel: Kernel,
    X: Any,
    solver: str,
    *,
    n_basis: int | None = None,
    basis: str | ArrayLike = "random",
    random_state: Any = None,
    shift_invariant: bool = False,
    n_matrices: float = FITTING,
) -> Design:
    """Choose by the table of DESIGN.md section 3.

    `shift_invariant` says that adding a constant to all scores does not change the loss; dense
    features of a dual linear model are then centred, which keeps digits. `n_matrices` is how many
    matrices of the size of a kernel matrix must fit in memory.
    """
    check_option("solver", solver, SOLVERS)
    if n_basis is not None or not isinstance(basis, str):
        return _basis_design(kernel, X, solver, n_basis, basis, random_state)
    if not kernel.is_linear:
        return _kernel_design(kernel, X, solver, n_matrices)
    method = _linear_method(X, solver)
    if method == "dual":
        _check_kernel_fits(X.shape[0], n_matrices)
        R = X
        if shift_invariant and not sp.issparse(X):
            R = X - X.mean(axis=0, dtype=np.float64)
        return Design("dual", kernel.matrix(R), lambda a: np.asarray(R.T @ a))
    if method == "primal":
        check_matrix_fits(
            X.shape[1], X.shape[1], "a Gram matrix", "use solver='iterative' for so many features"
        )
    return Design(method, X, lambda w: w)


def make_features(
    kernel: Kernel,
    X: Any,
    *,
    n_basis: int | None = None,
    basis: str | ArrayLike = "random",
    random_state: Any = None,
) -> Design:
    """Explicit features for a loss over pairs: X itself, or an empirical kernel map.

    [RankRLS09] sections 4.2 and 4.4.
    """
    if n_basis is not None or not isinstance(basis, str):
        return _basis_design(kernel, X, "auto", n_basis, basis, random_state).stored()
    if kernel.is_linear:
        return Design("primal", X, lambda w: w)
    design = _kernel_design(kernel, X, "auto", MAPPING)
    root = kernel_root(_centre(design.matrix))

    def coefficients(w: Array) -> Array:
        a = root.coefficients(w)
        return np.asarray(a - a.mean(axis=0))  # a centred kernel does not see the mean

    return Design("primal", root.features, coefficients, design.items, is_definite=root.is_definite)


def _centre(K: Array) -> Array:
    """Centre the features of a kernel matrix, in its place.

    A loss over pairs sees differences only, so that its dual coefficients sum to zero and no
    constant matters; a conditionally positive kernel becomes a positive one.
    """
    mean = K.mean(axis=0)
    K -= mean
    K -= (mean - mean.mean())[:, None]
    return K


def _kernel_design(kernel: Kernel, X: Any, solver: str, n_matrices: float) -> Design:
    if solver not in ("auto", "dual"):
        raise ValueError(
            f"solver={solver!r} needs explicit features; with kernel={kernel.function!r} use "
            "solver='auto', or n_basis for a primal solution on basis items."
        )
    _check_square(kernel, X)
    _check_kernel_fits(X.shape[0], n_matrices)
    items = None if kernel.is_precomputed else X
    return Design("dual", kernel.matrix(X), lambda a: a, items)


def _basis_design(
    kernel: Kernel,
    X: Any,
    solver: str,
    n_basis: int | None,
    basis: str | ArrayLike,
    random_state: Any,
) -> Design:
    """R = K_mb K_bb^(−1/2), then primal: [RankRLS09] equations 41 and 42.

    Only a block of rows of R is in memory at a time.
    """
    if kernel.is_linear:
        raise ValueError(
            "n_basis and basis are for kernel models; a linear model already has just one weight "
            "per feature. Drop them or choose another kernel."
        )
    if solver not in ("auto", "primal"):
        raise ValueError(f"a basis is solved by solver='primal', not {solver!r}.")
    _check_square(kernel, X)
    size = n_basis if isinstance(basis, str) else np.shape(basis)[0]
    if isinstance(size, int):  # anything else is refused by fit_basis
        check_matrix_fits(size, size, "the kernel matrix of a basis", "use a smaller n_basis")
    view = fit_basis(kernel, X, n_basis, basis, random_state)
    return Design("primal", StackedFeatures([view], X), view.coefficients, view.items, view.basis)


def _linear_method(X: Any, solver: str) -> str:
    if solver != "auto":
        return solver
    smaller = min(X.shape)
    free = available_bytes()
    too_large = free is not None and 8 * smaller**2 > free
    if too_large or (sp.issparse(X) and smaller > SPARSE_DIRECT_LIMIT):
        return "iterative"
    return "primal" if X.shape[1] <= X.shape[0] else "dual"


def _check_square(kernel: Kernel, X: Any) -> None:
    if kernel.is_precomputed and X.shape[0] != X.shape[1]:
        raise ValueError(
            f"X has shape {X.shape}; kernel='precomputed' needs the square matrix of kernel "
            "values between all training items."
        )


def _check_kernel_fits(n_items: int, n_matrices: float) -> None:
    advice = "pass n_basis (for example n_basis=1000) to train on a basis of items"
    check_matrix_fits(n_items, n_items, "a kernel matrix", advice, n_matrices)
