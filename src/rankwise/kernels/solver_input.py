"""What a solver receives: the solution method and the matrix of features or kernel values."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
import scipy.linalg
import scipy.sparse as sp
from numpy.typing import ArrayLike

from rankwise.arrays import Array, Indices
from rankwise.kernels.basis import basis_map, basis_root
from rankwise.kernels.feature_maps import FeatureMap
from rankwise.kernels.kernel import Kernel, center_kernel
from rankwise.kernels.stable_products import first_equal_rows
from rankwise.runtime.memory import available_bytes, check_matrix_fits
from rankwise.runtime.threads import allow_threads
from rankwise.validation import check_option

SOLVERS = ("auto", "primal", "dual", "iterative")

KERNEL_MATRICES = 2.5  # kernel matrices in memory at a time

SPARSE_DIRECT_LIMIT = 5000  # sparse X with more rows and columns than this is solved iteratively


class LazyFeatures:
    """``[R_1 … R_M]`` of some rows of X (all if None), made a block at a time when it is indexed.

    Offers what `PreferenceGraph.gram` and `PreferenceGraph.system` ask of features, so Gram
    matrices over any number of rows need the memory of one block.
    """

    def __init__(self, maps: Sequence[FeatureMap], X: Any, rows: Indices | None = None) -> None:
        self._maps = maps
        self._X = X
        self._rows = rows
        n_rows = X.shape[0] if rows is None else len(rows)
        self.shape = (n_rows, sum(one.n_features for one in maps))

    def __getitem__(self, part: slice | Indices) -> Array:
        """Dense features of these of the rows."""
        X = self._X[part if self._rows is None else self._rows[part]]
        blocks = [one.features(X) for one in self._maps]
        dense = [block.toarray() if sp.issparse(block) else block for block in blocks]
        whole = dense[0] if len(dense) == 1 else np.hstack(dense)
        return np.asarray(whole, dtype=np.float64)


class SolverInput(NamedTuple):
    """What the solver sees of a `FeatureMap`.

    Attributes
    ----------
    method : {"primal", "dual", "iterative"}
        How to solve.
    matrix : array, sparse matrix or LazyFeatures
        Features R of the items for "primal" and "iterative", the kernel matrix for "dual". Features
        that a basis gives are made when they are read; see `stored`.
    map : FeatureMap
        What scores new items by the coefficients.
    back : callable or None
        Takes solutions to weights of columns or kernel items; None if they are that already.
    is_definite : bool
        False if negative eigenvalues of the kernel had to be left out.
    columns : array, sparse matrix or None
        The features of a linear model, whose scales tell what an alpha does to each.
    """

    method: str
    matrix: Any
    map: FeatureMap
    back: Callable[[Array], Array] | None = None
    is_definite: bool = True
    columns: Any = None

    def coefficients(self, solution: Array) -> Array:
        """From solutions of shape (n, k) to coefficients of columns or kernel items."""
        return solution if self.back is None else self.back(solution)

    def stored(self) -> SolverInput:
        """The same with all features in memory, for those who read them more than once."""
        if not isinstance(self.matrix, LazyFeatures):
            return self
        check_matrix_fits(*self.matrix.shape, "a kernel matrix", "use a smaller n_basis")
        return self._replace(matrix=self.matrix[:])


def make_solver_input(
    kernel: Kernel,
    X: Any,
    solver: str,
    *,
    n_basis: int | None = None,
    basis: str | ArrayLike = "random",
    random_state: Any = None,
    shift_invariant: bool = False,
    explicit: bool = False,
) -> SolverInput:
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
    features of a dual linear model are then centered, which keeps digits. `explicit` asks for
    features in the place of a kernel matrix: [RankRLS09] sections 4.2 and 4.4.
    """
    check_option("solver", solver, SOLVERS)
    n_rows, n_columns = X.shape
    if kernel.is_precomputed and n_rows != n_columns:
        raise ValueError(
            f"X has shape {X.shape}; kernel='precomputed' needs the square matrix of kernel "
            "values between all training items."
        )
    if n_basis is not None or not isinstance(basis, str):
        # R = K_mb K_bb^(−1/2), a block of rows at a time: [RankRLS09] equations 41 and 42
        if kernel.is_linear:
            raise ValueError(
                "n_basis and basis are for kernel models; a linear model already has just one "
                "weight per feature. Drop them or choose another kernel."
            )
        if solver not in ("auto", "primal"):
            raise ValueError(f"a basis is solved by solver='primal', not {solver!r}.")
        of_basis = basis_map(kernel, X, n_basis, basis, random_state)
        return SolverInput("primal", LazyFeatures([of_basis], X), of_basis, of_basis.coefficients)
    if not kernel.is_linear:
        if solver not in ("auto", "dual"):
            raise ValueError(
                f"solver={solver!r} needs explicit features; with kernel={kernel.function!r} use "
                "solver='auto', or n_basis for a primal solution on basis items."
            )
        _check_kernel_fits(n_rows)
        items = None if kernel.is_precomputed else X.copy()  # the caller may change X
        K, of_items = kernel.matrix(X), FeatureMap(kernel, None, n_rows, None, items)
        return _empirical_map(K, of_items) if explicit else SolverInput("dual", K, of_items)
    method, of_columns = solver, FeatureMap(kernel, None, n_columns)
    if solver == "auto":
        free, smaller = available_bytes(), min(X.shape)
        is_large = free is not None and 8 * smaller**2 > free
        is_large |= sp.issparse(X) and smaller > SPARSE_DIRECT_LIMIT
        direct = "primal" if n_columns <= n_rows else "dual"
        method = "iterative" if is_large else direct
    if method == "dual" and not explicit:
        _check_kernel_fits(n_rows)
        R = X
        if shift_invariant and not sp.issparse(X):
            R = X - X.mean(axis=0, dtype=np.float64)
        K = kernel.matrix(R)
        return SolverInput("dual", K, of_columns, lambda a: np.asarray(R.T @ a), columns=R)
    if method != "iterative":
        method, advice = "primal", "use solver='iterative' for so many features"
        check_matrix_fits(n_columns, n_columns, "a Gram matrix", advice)
    return SolverInput(method, X, of_columns, columns=X)


def _empirical_map(K: Array, of_items: FeatureMap) -> SolverInput:
    """Features R of the items with ``K = R Rᵀ`` instead of K: [RankRLS09] section 4.2.

    A pivoted Cholesky factorization, which also finds the rank; the dual coefficients are on the
    pivots alone. A matrix that is not positive semidefinite goes by its eigenvectors instead.
    """
    K = center_kernel(K)
    first = first_equal_rows(K)
    probe = np.random.default_rng(0).standard_normal(len(K))
    exact, diagonal = K @ probe, np.diagonal(K).copy()
    columns_first = K if K.flags.f_contiguous else K.T
    with allow_threads(len(K) ** 3):
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
        for row in range(1, len(factor)):  # the upper triangle was left alone
            factor[row, :row] = factor[:row, row]
        factor[np.diag_indices(len(factor))] = diagonal
        root = basis_root(factor)
        R = factor @ root

    def dual_coefficients(w: Array) -> Array:
        if root is not None:
            a = root @ w
        else:
            a = np.zeros((len(R), *w.shape[1:]))
            chosen = order[:rank]
            a[chosen] = scipy.linalg.solve_triangular(R[chosen], w, lower=True, trans="T")
        return np.asarray(a - a.mean(axis=0))  # a centered kernel does not see the mean

    return SolverInput("primal", R, of_items, dual_coefficients, is_definite)


def _check_kernel_fits(n_items: int) -> None:
    advice = "pass n_basis (for example n_basis=1000) to train on a basis of items"
    check_matrix_fits(n_items, n_items, "a kernel matrix", advice, n_matrices=KERNEL_MATRICES)
