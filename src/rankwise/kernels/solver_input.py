"""The input of a solver: features or kernel values, and how solutions become coefficients."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
import scipy.linalg
import scipy.sparse as sp
from numpy.typing import ArrayLike

from rankwise.arrays import Array, Indices, Matrix, MatrixLike, RandomState, dense_rows
from rankwise.kernels.basis import basis_map, basis_root
from rankwise.kernels.feature_maps import ColumnFeatures, FeatureMap, KernelFeatures
from rankwise.kernels.kernel import Kernel, center_kernel
from rankwise.kernels.stable_products import first_equal_rows
from rankwise.runtime.memory import check_matrix_fits
from rankwise.runtime.threads import allow_threads

KERNEL_MATRICES = 2.5  # of the size of the kernel matrix, in memory during a fit
SEARCH_MATRICES = 3.5  # the same during a search, which keeps the kernel matrix
DEFINITE_TOLERANCE = 1e-6  # relative error of a Cholesky factor of a semidefinite kernel matrix


class LazyFeatures:
    """``[R_1 … R_M]`` of some rows of X (all if None), computed in blocks when it is indexed.

    Offers what `PreferenceGraph.gram` and `PreferenceGraph.system` require of features, so Gram
    matrices over any number of rows need the memory of one block.
    """

    def __init__(self, maps: Sequence[FeatureMap], X: Matrix, rows: Indices | None = None) -> None:
        self._maps = maps
        self._X = X
        self._rows = rows
        n_rows = X.shape[0]
        if rows is not None:
            n_rows = len(rows)
        n_features = sum(feature_map.n_features for feature_map in maps)
        self.shape = (n_rows, n_features)

    def __getitem__(self, rows: slice | Indices) -> Array:
        """Dense features of these of the rows."""
        # dense features of these rows, computed by each feature map and joined
        rows_of_X = rows
        if self._rows is not None:
            rows_of_X = self._rows[rows]
        X = self._X[rows_of_X]
        blocks = [dense_rows(feature_map.transform(X)) for feature_map in self._maps]
        if len(blocks) == 1:
            return blocks[0]
        return np.hstack(blocks)


class SolverInput(NamedTuple):
    """The matrix of a solver, and the map from its solutions to coefficients.

    Attributes
    ----------
    method : {"primal", "dual", "iterative"}
        How to solve.
    matrix : array, sparse matrix or LazyFeatures
        Features R of the items for "primal" and "iterative", the kernel matrix for "dual". Features
        of a basis are computed when they are read; see `stored`.
    map : FeatureMap
        Scores new items by the coefficients.
    to_coefficients : callable or None
        Computes coefficients from solutions; None if the solutions are the coefficients.
    is_definite : bool
        False if negative eigenvalues of the kernel had to be left out.
    linear_features : array, sparse matrix or None
        The features of a linear model, whose scales determine the effect of alpha on each feature.
    """

    method: str
    matrix: Matrix
    map: FeatureMap
    to_coefficients: Callable[[Array], Array] | None = None
    is_definite: bool = True
    linear_features: MatrixLike = None

    def coefficients(self, solution: Array) -> Array:
        """Coefficients of columns or kernel items from solutions of shape (n, k)."""
        if self.to_coefficients is None:
            return solution
        return self.to_coefficients(solution)

    def stored(self) -> SolverInput:
        """The same with all features in memory, for callers that read them more than once."""
        if not isinstance(self.matrix, LazyFeatures):
            return self
        check_matrix_fits(*self.matrix.shape, "a kernel matrix", "use a smaller n_basis")
        return self._replace(matrix=self.matrix[:])


def make_solver_input(
    kernel: Kernel,
    X: Matrix,
    method: str,
    *,
    n_basis: int | None = None,
    basis: str | ArrayLike = "random",
    random_state: RandomState = None,
    shift_invariant: bool = False,
    explicit: bool = False,
    keeps_matrix: bool = False,
) -> SolverInput:
    """Compute the features or the kernel matrix for a solution method.

    Parameters
    ----------
    kernel : Kernel
        The kernel.
    X : array or sparse matrix of shape (n_items, n_features)
        The training items.
    method : {"primal", "dual", "iterative"}
        How to solve, from `rankwise.solvers.methods.choose_method`.
    n_basis, basis, random_state
        Basis of a kernel model, as in `choose_basis`.
    shift_invariant : bool, default=False
        Whether adding a constant to all scores does not change the loss; dense features of a dual
        linear model are then centered, which keeps digits.
    explicit : bool, default=False
        Whether to compute features in place of a kernel matrix: [RankRLS09] sections 4.2 and 4.4.
    keeps_matrix : bool, default=False
        Whether the caller keeps a kernel matrix, so that solvers work on copies of it.

    Returns
    -------
    SolverInput
        Its method is "primal" instead of "dual" if features were computed.
    """
    n_items, n_columns = X.shape
    if kernel.is_precomputed and n_items != n_columns:
        raise ValueError(
            f"X has shape {X.shape}; kernel='precomputed' needs the square matrix of kernel "
            "values between all training items."
        )
    if has_basis(n_basis, basis):
        if kernel.is_linear:
            raise ValueError(
                "n_basis and basis are for kernel models; a linear model already has just one "
                "weight per feature. Drop them or choose another kernel."
            )
        # R = K_mb K_bb^(−1/2), one block of rows at a time: [RankRLS09] equations 41 and 42
        basis_features = basis_map(kernel, X, n_basis, basis, random_state)
        R = LazyFeatures([basis_features], X)
        return SolverInput("primal", R, basis_features, basis_features.coefficients)
    if kernel.is_linear:
        if method == "dual" and not explicit:
            _check_kernel_fits(n_items, keeps_matrix)
            return _linear_kernel_input(kernel, X, shift_invariant=shift_invariant)
        return _column_input(X, method)
    _check_kernel_fits(n_items, keeps_matrix)
    items = None
    if not kernel.is_precomputed:
        items = X.copy()  # the caller may change X
    K = kernel.matrix(X)
    item_features = KernelFeatures(kernel, columns=None, n_features=n_items, items=items)
    if explicit:  # features R with K = R Rᵀ instead of K
        return _factor_kernel(K, item_features)
    return SolverInput("dual", K, item_features)


def has_basis(n_basis: int | None, basis: str | ArrayLike) -> bool:
    """Whether the parameters of a kernel model name a basis."""
    return n_basis is not None or not isinstance(basis, str)


def _linear_kernel_input(kernel: Kernel, X: Matrix, *, shift_invariant: bool) -> SolverInput:
    """Kernel matrix of a linear model; its solutions become weights of the columns."""
    R = X
    if shift_invariant and not sp.issparse(X):
        R = X - X.mean(axis=0, dtype=np.float64)  # columns far from zero would cost digits

    def weights_of_columns(dual_coef: Array) -> Array:
        return np.asarray(R.T @ dual_coef)

    return SolverInput(
        "dual",
        kernel.matrix(R),
        ColumnFeatures(columns=None, n_features=X.shape[1]),
        weights_of_columns,
        linear_features=R,
    )


def _column_input(X: Matrix, method: str) -> SolverInput:
    """The columns of X as features."""
    n_columns = X.shape[1]
    if method != "iterative":
        method = "primal"
        advice = "use solver='iterative' for this many features"
        check_matrix_fits(n_columns, n_columns, "a Gram matrix", advice)
    all_columns = ColumnFeatures(columns=None, n_features=n_columns)
    return SolverInput(method, X, all_columns, linear_features=X)


def _factor_kernel(K: Array, item_features: KernelFeatures) -> SolverInput:
    """Features R of the items with ``K = R Rᵀ`` in place of K: [RankRLS09] section 4.2.

    A pivoted Cholesky factorization, which also finds the rank; the dual coefficients of items that
    are not pivots are zero before centering. A matrix that is not positive semidefinite is factored
    by its eigenvectors instead. K is overwritten.
    """
    # features R with K = R Rᵀ for the centered kernel matrix K: by a pivoted Cholesky factorization
    # in the memory of K, or by eigenvectors if K turns out to have negative eigenvalues
    K = center_kernel(K)
    first_equal_row = first_equal_rows(K)
    diagonal = np.diagonal(K).copy()
    probe = np.random.default_rng(0).standard_normal(len(K))
    K_probe = K @ probe
    factor, pivot_order, rank = _pivoted_cholesky(K)
    R = _rows_of_factor(factor, pivot_order, rank)
    if first_equal_row is not None:  # equal items have equal features, to the last bit
        R = R[first_equal_row]

    # compare R Rᵀ and K by their products with a random vector
    error = np.linalg.norm(R @ (R.T @ probe) - K_probe)
    is_semidefinite = error <= DEFINITE_TOLERANCE * np.linalg.norm(K_probe)
    if is_semidefinite:
        return _input_of_pivots(R, pivot_order[:rank], item_features)
    _restore_kernel(factor, diagonal)  # from the other triangle of its memory: it is K again
    return _input_of_eigenvectors(factor, item_features)


def _pivoted_cholesky(K: Array) -> tuple[Array, Indices, int]:
    """The factor in the lower triangle of the memory of K, the order of the pivots, and the rank.

    The upper triangle keeps the entries of K.
    """
    if not K.flags.f_contiguous:
        K = K.T  # the same matrix in the order of LAPACK, which then overwrites it without a copy
    with allow_threads(len(K) ** 3):
        factor, pivots, rank, _ = scipy.linalg.lapack.dpstrf(K, lower=1, overwrite_a=1)
    return factor, pivots - 1, rank  # LAPACK counts from 1


def _restore_kernel(factor: Array, diagonal: Array) -> None:
    """Turn the memory of `_pivoted_cholesky` into the kernel matrix again."""
    # undo the factorization, which overwrote the diagonal and one triangle
    for row in range(1, len(factor)):  # the lower triangle from the upper one
        factor[row, :row] = factor[:row, row]
    factor[np.diag_indices(len(factor))] = diagonal


def _input_of_pivots(R: Array, pivot_items: Indices, item_features: KernelFeatures) -> SolverInput:
    """Features of a Cholesky factor, whose solutions become coefficients of the pivots."""

    def coefficients_of_pivots(w: Array) -> Array:
        # Rᵀ a = w, with zero coefficients a of all items but the pivots
        dual_coef = np.zeros((len(R), *w.shape[1:]))
        triangle = R[pivot_items]
        dual_coef[pivot_items] = scipy.linalg.solve_triangular(triangle, w, lower=True, trans="T")
        return _centered(dual_coef)

    return SolverInput("primal", R, item_features, coefficients_of_pivots)


def _input_of_eigenvectors(K: Array, item_features: KernelFeatures) -> SolverInput:
    """Features of the eigenvectors of K with positive eigenvalues."""
    root = basis_root(K)  # eigenvectors / √eigenvalues: K root has the features

    def coefficients_of_eigenvectors(w: Array) -> Array:
        return _centered(root @ w)

    return SolverInput(
        "primal", K @ root, item_features, coefficients_of_eigenvectors, is_definite=False
    )


def _rows_of_factor(factor: Array, pivot_order: Indices, rank: int) -> Array:
    """The lower triangle of a pivoted Cholesky factor, its rows in the order of the items."""
    # undo the order of the pivots: row k of the triangular factor belongs to item pivot_order[k]
    R = np.zeros((len(factor), rank))
    for row, item in enumerate(pivot_order):
        n_nonzero = min(row + 1, rank)
        R[item, :n_nonzero] = factor[row, :n_nonzero]
    return R


def _centered(dual_coef: Array) -> Array:
    """Coefficients less their mean, which a centered kernel does not depend on."""
    # then the uncentered kernel gives the scores of the centered one, up to a constant
    return np.asarray(dual_coef - dual_coef.mean(axis=0))


def _check_kernel_fits(n_items: int, keeps_matrix: bool) -> None:
    n_matrices = KERNEL_MATRICES
    if keeps_matrix:
        n_matrices = SEARCH_MATRICES
    advice = "pass n_basis (for example n_basis=1000) to train on a basis of items"
    check_matrix_fits(n_items, n_items, "a kernel matrix", advice, n_matrices=n_matrices)
