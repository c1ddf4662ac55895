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

TINY_PENALTY = 1e-12  # λ of an effect, as a share of W
MAX_ITERATIONS = 10_000


class ComparisonDesign:
    """Design matrix ``D = incidence @ parameter_basis`` with a row for each distinct pair.

    The margin of a distinct pair is its row of ``D u``, with the unknowns u: first those that are
    regularized, then those that are not (effects of covariates, coefficients of a prior).

    Parameters
    ----------
    counts : ComparisonCounts
        The comparisons.
    incidence : sparse matrix of shape (n_distinct, n_parameters)
        Margins of the parameters: the ratings of the items (1 and −1 in a row) or their components,
        and the coefficients of the other columns. The same number of entries in each row.
    parameter_basis : array or sparse matrix of shape (n_parameters, n_unknowns), optional
        Parameters of each unknown. By default the unknowns are the parameters.
    n_regularized : int
        Number of regularized unknowns.
    """

    def __init__(
        self,
        counts: ComparisonCounts,
        incidence: sp.csr_matrix,
        parameter_basis: Matrix,
        n_regularized: int,
    ) -> None:
        # Design D = incidence @ parameter_basis; without a basis the unknowns are the parameters.
        self.counts = counts
        self.incidence = incidence
        self.parameter_basis = parameter_basis
        self.n_regularized = n_regularized
        self.n_parameters: int = incidence.shape[1]
        self.n_unknowns: int = (
            self.n_parameters if parameter_basis is None else parameter_basis.shape[1]
        )

    def penalties(self, ridge: float) -> Array:
        """λ of each unknown: `ridge` for regularized unknowns, a tiny value for all others."""
        # The regularized unknowns come first; the others have almost no penalty.
        tiny_penalty = TINY_PENALTY * self.counts.total_weight
        n_unregularized = self.n_unknowns - self.n_regularized
        return np.repeat([ridge, tiny_penalty], [self.n_regularized, n_unregularized])

    def parameters(self, unknowns: Array) -> Array:
        """Parameters that the unknowns determine, for each column."""
        if self.parameter_basis is None:  # the unknowns are the parameters
            return unknowns
        return np.asarray(self.parameter_basis @ unknowns)

    def margins(self, unknowns: Array) -> Array:
        """``D u``: the margin of each distinct pair, for each column of u."""
        if self.parameter_basis is None:  # the unknowns are the parameters
            return np.asarray(self.incidence @ unknowns)
        return np.asarray(self.incidence @ (self.parameter_basis @ unknowns))

    def apply_transpose(self, pair_values: Array) -> Array:
        """``Dᵀ v`` for a value of each distinct pair, for each column of v."""
        # Dᵀ v with D = incidence @ parameter_basis
        parameter_values = self._transposed_incidence @ pair_values
        if self.parameter_basis is None:
            return np.asarray(parameter_values)
        return np.asarray(self._transposed_parameter_basis @ parameter_values)

    @cached_property
    def _transposed_incidence(self) -> sp.csr_matrix:
        return self.incidence.T.tocsr()

    @cached_property
    def _transposed_parameter_basis(self) -> Matrix:
        return self.parameter_basis.T

    def rows(self, pairs: Indices | slice | list[int]) -> Matrix:
        """Rows of D of distinct pairs."""
        # Rows of D = incidence @ parameter_basis
        if self.parameter_basis is None:
            return self.incidence[pairs]
        return self.incidence[pairs] @ self.parameter_basis

    def gram(self, weights: Array) -> Matrix:
        """``Dᵀ W D``, sparse if D is."""
        # Dᵀ W D with D = incidence @ parameter_basis; W multiplies the rows of the incidence.
        incidence = self.incidence
        n_entries_by_row = np.diff(incidence.indptr)
        weighted_entries = incidence.data * np.repeat(weights, n_entries_by_row)
        weighted_incidence = sp.csr_matrix(
            (weighted_entries, incidence.indices, incidence.indptr), incidence.shape
        )
        gram_of_parameters = self._transposed_incidence @ weighted_incidence
        if self.parameter_basis is None:
            return gram_of_parameters
        return self._transposed_parameter_basis @ (gram_of_parameters @ self.parameter_basis)

    def solver(self, weights: Array, ridge: float, tol: float) -> Callable[[Array], Array]:
        """Return a function that solves with ``Dᵀ W D + Λ`` for a vector or for columns."""
        raise NotImplementedError

    def dense_gram(self, weights: Array) -> Array:
        """``Dᵀ W D`` as an array."""
        matrix = self.gram(weights)
        if sp.issparse(matrix):
            matrix = matrix.toarray()
        return np.asarray(matrix)


def fixed_width_csr(
    columns: Indices, values: Array, dense_columns: Array, n_sparse_columns: int
) -> sp.csr_matrix:
    """Return a sparse matrix with the same number of entries in each row.

    Parameters
    ----------
    columns, values : ndarray of shape (n_rows, width)
        Position and value of the entries of each row.
    dense_columns : ndarray of shape (n_rows, n_dense)
        Dense columns that follow the sparse ones.
    n_sparse_columns : int
        Number of columns before the dense ones.
    """
    # Every row has the same number of entries: the given ones, then all dense columns.
    n_rows, n_dense = dense_columns.shape
    n_columns = n_sparse_columns + n_dense
    dense_positions = np.tile(np.arange(n_sparse_columns, n_columns), (n_rows, 1))
    all_values = np.hstack([values, dense_columns])
    all_columns = np.hstack([columns, dense_positions])

    row_width = all_values.shape[1]
    row_starts = np.arange(0, all_values.size + 1, row_width)
    return sp.csr_matrix((all_values.ravel(), all_columns.ravel(), row_starts), (n_rows, n_columns))


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
    iteration_limit = MAX_ITERATIONS if max_iter is None else max_iter

    def solve(right: Array) -> Array:
        right_columns = right.reshape(len(right), -1).astype(diagonal.dtype)
        solution = conjugate_gradients(
            product, right_columns, preconditioner, tol=tol, max_iter=iteration_limit
        )
        # A caller that passes a limit expects to stop there.
        if not solution.converged and max_iter is None:
            warn_user(
                f"the ratings did not converge in {MAX_ITERATIONS} iterations of conjugate "
                "gradients; increase alpha.",
                ConvergenceWarning,
            )
        return np.asarray(solution.x.reshape(right.shape))

    return solve
