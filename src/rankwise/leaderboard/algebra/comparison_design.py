"""The design matrix of comparisons, and iterative solves with its normal equations."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import scipy.sparse as sp
from sklearn.exceptions import ConvergenceWarning

from rankwise.arrays import Array, Indices, Matrix
from rankwise.caching import cached_property
from rankwise.errors import warn_user
from rankwise.leaderboard.algebra.comparison_counts import ComparisonCounts
from rankwise.solvers.least_squares import conjugate_gradients

TINY = 1e-12  # λ of an effect, as a share of W
MAX_ITERATIONS = 10_000


class ComparisonDesign:
    """Rows D of distinct pairs, as the product ``D = E T``.

    The margin of a distinct pair is its row of ``D u``, with the unknowns u: first those that are
    regularized, then those that are not (effects of covariates, coefficients of a prior).

    Parameters
    ----------
    counts : ComparisonCounts
        The comparisons.
    E : sparse matrix of shape (n_distinct, n_inner)
        The same number of entries in each row.
    T : array or sparse matrix of shape (n_inner, n_unknowns), optional
        The identity by default.
    n_regularized : int
        Number of regularized unknowns.
    """

    def __init__(
        self, counts: ComparisonCounts, E: sp.csr_matrix, T: Matrix, n_regularized: int
    ) -> None:
        self.counts = counts
        self.E = E
        self.T = T
        self.n_regularized = n_regularized
        self.size: int = E.shape[1] if T is None else T.shape[1]

    def penalty(self, shift: float) -> Array:
        """λ of each unknown: `shift` for the regularized ones, next to nothing for the others."""
        tiny = TINY * self.counts.total_weight
        return np.repeat([shift, tiny], [self.n_regularized, self.size - self.n_regularized])

    def transform(self, unknowns: Array) -> Array:
        """``T u``."""
        if self.T is None:
            return unknowns
        return np.asarray(self.T @ unknowns)

    def margins(self, unknowns: Array) -> Array:
        """``D u``: the margin of each distinct pair, for each column of u."""
        if self.T is None:
            return np.asarray(self.E @ unknowns)
        return np.asarray(self.E @ self.transform(unknowns))

    def apply_transpose(self, flows: Array) -> Array:
        """``Dᵀ f``, for each column of f."""
        inner = self._transposed_E @ flows
        if self.T is None:
            return np.asarray(inner)
        return np.asarray(self._transposed_T @ inner)

    @cached_property
    def _transposed_E(self) -> sp.csr_matrix:
        return self.E.T.tocsr()

    @cached_property
    def _transposed_T(self) -> Matrix:
        return self.T.T

    def rows(self, pairs: Indices | slice | list[int]) -> Matrix:
        """Rows of D of distinct pairs."""
        if self.T is None:
            return self.E[pairs]
        return self.E[pairs] @ self.T

    def gram(self, weights: Array) -> Matrix:
        """``Dᵀ W D``, sparse if D is."""
        E = self.E
        values = E.data * np.repeat(weights, np.diff(E.indptr))
        weighted = sp.csr_matrix((values, E.indices, E.indptr), E.shape)
        inner = self._transposed_E @ weighted
        if self.T is None:
            return inner
        return self._transposed_T @ (inner @ self.T)

    def solver(self, weights: Array, shift: float, tol: float) -> Callable[[Array], Array]:
        """Return a function that solves with ``Dᵀ W D + Λ`` for a vector or for columns."""
        raise NotImplementedError

    def dense_gram(self, weights: Array) -> Array:
        """``Dᵀ W D`` as an array."""
        matrix = self.gram(weights)
        if sp.issparse(matrix):
            matrix = matrix.toarray()
        return np.asarray(matrix)


def fixed_width_csr(
    columns: Indices, values: Array, dense_columns: Array, size: int
) -> sp.csr_matrix:
    """Return a sparse matrix with the same number of entries in each row.

    Parameters
    ----------
    columns, values : ndarray of shape (n_rows, width)
        Position and value of the entries of each row.
    dense_columns : ndarray of shape (n_rows, n_dense)
        Dense columns that follow the first `size` columns.
    size : int
        Number of columns before the dense ones.
    """
    n, n_dense = dense_columns.shape
    dense_positions = np.tile(np.arange(size, size + n_dense), (n, 1))
    all_values = np.hstack([values, dense_columns])
    all_columns = np.hstack([columns, dense_positions])
    starts = np.arange(0, all_values.size + 1, all_values.shape[1])
    return sp.csr_matrix((all_values.ravel(), all_columns.ravel(), starts), (n, size + n_dense))


def iterative_solver(
    product: Callable[[Array], Array], diagonal: Array, tol: float, max_iter: int | None = None
) -> Callable[[Array], Array]:
    """Return a solver by conjugate gradients, preconditioned with the diagonal of the matrix.

    Parameters
    ----------
    product : callable
        Product of the matrix and a block of vectors.
    diagonal : ndarray of shape (n_unknowns,)
        Diagonal of the matrix; its dtype is that of the iterations.
    tol : float
        Relative tolerance of the residual.
    max_iter : int, optional
        Limit after which the result is returned without a warning. By default the limit is
        `MAX_ITERATIONS`, with a warning.
    """
    preconditioner = np.where(diagonal > 0, diagonal, 1.0).astype(diagonal.dtype)
    limit = MAX_ITERATIONS if max_iter is None else max_iter

    def solve(right: Array) -> Array:
        columns = right.reshape(len(right), -1).astype(diagonal.dtype)
        solved = conjugate_gradients(product, columns, preconditioner, tol=tol, max_iter=limit)
        if not solved.converged and max_iter is None:
            warn_user(
                f"conjugate gradients stopped after {MAX_ITERATIONS} iterations before the "
                "ratings were exact; a larger alpha makes the system easier.",
                ConvergenceWarning,
            )
        return np.asarray(solved.x.reshape(right.shape))

    return solve
