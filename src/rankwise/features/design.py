"""The design of a ranker: how to solve, which matrix the solver sees, and the way back from it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import scipy.linalg
import scipy.sparse as sp
from numpy.typing import ArrayLike

from rankwise.arrays import Array
from rankwise.features.basis import basis_root
from rankwise.features.feature_map import FeatureMap, FeatureRows, basis_map
from rankwise.features.kernel import Kernel, center_kernel
from rankwise.machine import available_bytes, check_matrix_fits, idle_cores
from rankwise.options import check_option
from rankwise.rows import first_equal_rows

SOLVERS = ("auto", "primal", "dual", "iterative")
FITTING, HOLDING_OUT, MAPPING = 2.25, 2.5, 2.25  # kernel matrices in memory at a time
SPARSE_DIRECT_LIMIT = 5000  # sparse X with more rows and columns than this is solved iteratively


class Design(NamedTuple):
    """What the solver sees of a `FeatureMap`.

    Attributes
    ----------
    method : {"primal", "dual", "iterative"}
        How to solve.
    matrix : array, sparse matrix or FeatureRows
        Features R of the items for "primal" and "iterative", the kernel matrix for "dual". Features
        that a basis gives are made when they are read; see `stored`.
    features : FeatureMap
        What scores new items by the coefficients.
    back : callable or None
        Takes solutions of the solver to weights of the features; None if they are that already.
    is_definite : bool
        False if negative eigenvalues of the kernel had to be left out.
    columns : array, sparse matrix or None
        The features of a linear model, whose scales tell what an alpha does to each.
    """

    method: str
    matrix: Any
    features: FeatureMap
    back: Callable[[Array], Array] | None = None
    is_definite: bool = True
    columns: Any = None

    def coefficients(self, solution: Array) -> Array:
        """From solutions of shape (n, k) to coefficients of columns or kernel items."""
        return self.features.coefficients(solution if self.back is None else self.back(solution))

    def stored(self) -> Design:
        """The same with all features in memory, for those who read them more than once."""
        if not isinstance(self.matrix, FeatureRows):
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
    """Choose how to solve.

    ===================================  ============================================
    data                                 method and matrix
    ===================================  ============================================
    linear, at most as many features     "primal" on X
    as items
    linear, more features than items     "dual" on the kernel matrix
    linear, sparse and large both ways,  "iterative" on X
    or no room for the matrix
    kernel                               "dual" on the kernel matrix
    kernel with a basis                  "primal" on the features of the basis
    ===================================  ============================================

    `shift_invariant` says that adding a constant to all scores does not change the loss; dense
    features of a dual linear model are then centered, which keeps digits. `n_matrices` is how many
    matrices of the size of a kernel matrix must fit in memory.
    """
    check_option("solver", solver, SOLVERS)
    if n_basis is not None or not isinstance(basis, str):
        return _basis_design(kernel, X, solver, n_basis, basis, random_state)
    if not kernel.is_linear:
        return _kernel_design(kernel, X, solver, n_matrices)
    method, plain = _linear_method(X, solver), FeatureMap(kernel, None, X.shape[1])
    if method == "dual":
        _check_kernel_fits(X.shape[0], n_matrices)
        R = X
        if shift_invariant and not sp.issparse(X):
            R = X - X.mean(axis=0, dtype=np.float64)
        return Design("dual", kernel.matrix(R), plain, lambda a: np.asarray(R.T @ a), columns=R)
    if method == "primal":
        check_matrix_fits(
            X.shape[1], X.shape[1], "a Gram matrix", "use solver='iterative' for so many features"
        )
    return Design(method, X, plain, columns=X)


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
        return Design("primal", X, FeatureMap(kernel, None, X.shape[1]), columns=X)
    return _empirical_map(_kernel_design(kernel, X, "auto", MAPPING))


def _empirical_map(design: Design) -> Design:
    """Features R of the items with ``K = R Rᵀ`` instead of K: [RankRLS09] section 4.2.

    A pivoted Cholesky factorization, which also finds the rank; the dual coefficients are on the
    pivots alone. A matrix that is not positive semidefinite goes by its eigenvectors instead.
    """
    K = center_kernel(design.matrix)
    first = first_equal_rows(K)
    probe = np.random.default_rng(0).standard_normal(len(K))
    exact, diagonal = K @ probe, np.diagonal(K).copy()
    columns_first = K if K.flags.f_contiguous else K.T
    with idle_cores(len(K) ** 3):
        factor, pivots, rank, _ = scipy.linalg.lapack.dpstrf(columns_first, lower=1, overwrite_a=1)
    order = pivots - 1
    R = np.zeros((len(K), rank))
    for row, item in enumerate(order):
        width = min(row + 1, rank)
        R[item, :width] = factor[row, :width]
    R = R if first is None else R[first]
    is_definite = bool(np.linalg.norm(R @ (R.T @ probe) - exact) <= 1e-6 * np.linalg.norm(exact))
    root = None
    if not is_definite:
        K = _from_upper(factor, diagonal)
        root = basis_root(K)
        R = K @ root

    def dual_coefficients(w: Array) -> Array:
        if root is not None:
            a = root @ w
        else:
            a = np.zeros((len(R), *w.shape[1:]))
            chosen = order[:rank]
            a[chosen] = scipy.linalg.solve_triangular(R[chosen], w, lower=True, trans="T")
        return np.asarray(a - a.mean(axis=0))  # a centered kernel does not see the mean

    return Design("primal", R, design.features, dual_coefficients, is_definite)


def _from_upper(factor: Array, diagonal: Array) -> Array:
    """The symmetric matrix whose upper triangle a factorization of the lower one left alone."""
    for row in range(1, len(factor)):
        factor[row, :row] = factor[:row, row]
    factor[np.diag_indices(len(factor))] = diagonal
    return factor


def _kernel_design(kernel: Kernel, X: Any, solver: str, n_matrices: float) -> Design:
    if solver not in ("auto", "dual"):
        raise ValueError(
            f"solver={solver!r} needs explicit features; with kernel={kernel.function!r} use "
            "solver='auto', or n_basis for a primal solution on basis items."
        )
    _check_square(kernel, X)
    _check_kernel_fits(X.shape[0], n_matrices)
    items = None if kernel.is_precomputed else X.copy()  # the caller may change X
    return Design("dual", kernel.matrix(X), FeatureMap(kernel, None, X.shape[0], None, items))


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
    if isinstance(size, int):  # anything else is refused by basis_map
        check_matrix_fits(size, size, "the kernel matrix of a basis", "use a smaller n_basis")
    features = basis_map(kernel, X, n_basis, basis, random_state)
    return Design("primal", FeatureRows([features], X), features)


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
    check_matrix_fits(n_items, n_items, "a kernel matrix", advice, n_matrices=n_matrices)
