"""RankRLS on tables: closed forms for all alphas, for held-out rows and columns; else iterations.

Y is a table (q × t), F = G A K its scores by kernels of the rows and of the columns. RankRLS over
the pairs of cells of each row minimizes, if all cells are observed,

    Σ_i ‖C (y_i − f_i)‖² + ρ ‖f‖²,      ρ = α W/t = α q (t − 1)/2,   C = I − 11ᵀ/t

With ``G = U Γ Uᵀ``, ``C K C = V Σ Vᵀ`` and ``Z = Uᵀ Y V``,

    A = U [Z_ab / (ρ + γ_a σ_b)] Vᵀ

so that every alpha is elementwise arithmetic. Labels instead of columns have ``K = I`` and no V.

With missing cells or other costs, features of the two sides, ``G = R Rᵀ`` and ``K = S Sᵀ``, give
the scores ``F = R B Sᵀ`` and the system

    Rᵀ A(R B Sᵀ) S + α B = Rᵀ T S

A product takes four matrix products of the size of the table; the q t × q t kernel matrix of the
cells is never formed. If A were a Kronecker product ``H ⊗ L`` of diagonal matrices, features with
diagonal ``Rᵀ H R`` and ``Sᵀ L S`` would make the system diagonal. That is the preconditioner: the
solution of a complete table, with weights for rows and columns with fewer scores.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from rankwise.arrays import Array, Indices
from rankwise.caching import cached_property
from rankwise.dyadic.loss import DyadicLoss
from rankwise.dyadic.sides import DecomposedSide, PreconditionedSide, Side
from rankwise.solvers.least_squares import (
    IterativeSolution,
    Solutions,
    Watch,
    conjugate_gradients,
    solve_shifted,
)

INDEFINITE = -1e-8  # eigenvalue, relative to the largest, that is more negative than rounding
LEAST_WEIGHT = 0.1  # of a row or column with few scores in the preconditioner, relative to the mean


class Diagonalization(NamedTuple):
    """The system of a complete table as a diagonal one.

    Attributes
    ----------
    row_vectors : ndarray of shape (q, a)
        U.
    column_vectors : ndarray of shape (t, b) or None
        V; None for the identity.
    rotated_target : ndarray of shape (a, b)
        ``Z = Uᵀ Y V``.
    eigenvalues : ndarray of shape (a, b)
        The products γ_a σ_b.
    """

    row_vectors: Array
    column_vectors: Array | None
    rotated_target: Array
    eigenvalues: Array

    @property
    def largest_eigenvalue(self) -> float:
        """Largest magnitude of an eigenvalue."""
        return float(np.abs(self.eigenvalues).max(initial=0.0))


@dataclass(frozen=True, eq=False)
class DyadicProblem:
    """Minimize ``loss(F) + α ‖f‖²`` over scores ``F = R B Sᵀ`` of a table.

    Attributes
    ----------
    loss : DyadicLoss
        The loss of the observed cells.
    rows : DecomposedSide
        R: features of the rows, or kernel values.
    columns : Side
        S: features or kernel values of the columns, or labels.
    tol, max_iter
        Limits of the conjugate gradients, if there is no closed form.
    """

    loss: DyadicLoss
    rows: DecomposedSide
    columns: Side
    tol: float = 1e-8
    max_iter: int | None = None

    @property
    def has_closed_form(self) -> bool:
        """Whether decompositions of the two sides give the solutions."""
        return self.loss.weighs_all_pairs_equally and self.rows.is_decomposed

    def subset(self, rows: Indices, columns: Indices) -> DyadicProblem:
        """The problem of a smaller table."""
        return DyadicProblem(
            self.loss.subset(rows, columns),
            self.rows.subset(rows),
            self.columns.subset(columns),
            self.tol,
            self.max_iter,
        )

    def solve(self, alphas: Array, watch: Watch | None = None) -> Solutions:
        """B for every alpha, shape (n_alphas, n_row_basis_functions, n_column_basis_functions)."""
        if not self.has_closed_form:
            rows, columns = self.preconditioned_sides()
            return self.solve_iteratively(rows, columns, alphas, watch)
        ridge_penalties = self._ridge_penalties(alphas)
        if not isinstance(self.columns, DecomposedSide):
            # Labels have no features: one ridge regression per label, all with the same matrix.
            matrix, target = self.rows.normal_equations(self._centered_target)
            coef, is_definite = solve_shifted(matrix, target, ridge_penalties, overwrite=True)
            return Solutions(coef, is_definite)

        # The system is diagonal in the eigenvectors of both kernels: for the target Z, rotated to
        # them, the weights are Z_ab / (penalty + product of the eigenvalues of a and b).
        diagonal = self._diagonalization
        to_row_weights = self.rows.vectors_to_basis_weights
        to_column_weights = self.columns.vectors_to_basis_weights
        coef_per_alpha = []
        for penalty in ridge_penalties:
            eigenvector_weights = diagonal.rotated_target / (penalty + diagonal.eigenvalues)
            coef_per_alpha.append(to_row_weights @ eigenvector_weights @ to_column_weights.T)
        # negative eigenvalues within rounding are zeros
        smallest_eigenvalue = diagonal.eigenvalues.min(initial=0.0)
        is_definite = bool(smallest_eigenvalue >= INDEFINITE * diagonal.largest_eigenvalue)
        return Solutions(np.stack(coef_per_alpha), is_definite)

    def mean_residual(self, B: Array) -> float:
        """Mean of Y − F: the intercept that puts the scores of one list on the scale of Y."""
        # B: weights of the products of a row feature and a column feature
        scores = np.linalg.multi_dot([self.rows.matrix, B, self.decomposed_columns.matrix.T])
        return float(np.nanmean(self.loss.Y - scores))

    def leave_row_out_scores(self, alphas: Array) -> Array:
        """Scores of each row by models without it, shape (q, t, n_alphas), for complete tables.

        Each direction V_b is a ridge regression over the rows. With ``R = γσ/(ρ + γσ)`` and the
        leverages ``H = (U∘U) R``,

            F V = (U (R∘Z) − H∘(Y V)) / (1 − H)

        If ρ is small, ``1 − H`` is the sum of its own terms, which do not cancel.
        """
        column_vectors = self._diagonalization.column_vectors
        n_rows, n_columns = self.loss.shape
        held_out = np.empty((len(alphas), n_rows, n_columns))
        ridge_penalties = self._ridge_penalties(alphas, n_rows=n_rows - 1)  # without one row
        for alpha_index, penalty in enumerate(ridge_penalties):
            # Scores of the eigenvectors of the column kernel, each of which is one ridge regression
            scores = self._leave_row_out_in_column_directions(penalty)
            if column_vectors is not None:  # back to scores of columns
                scores = scores @ column_vectors.T
            held_out[alpha_index] = scores
        return held_out.transpose(1, 2, 0)  # (n_rows, n_columns, n_alphas)

    def _leave_row_out_in_column_directions(self, penalty: float) -> Array:
        """``F V`` of `leave_row_out_scores`, shape (q, b)."""
        # One ridge regression over the rows for each eigenvector of the column kernel
        diagonal = self._diagonalization
        eigenvalues = diagonal.eigenvalues
        row_vectors = diagonal.row_vectors
        squared_vectors = self._squared_row_vectors
        target = self._target_of_column_directions  # (n_rows, n_column_eigenvectors)

        # Leave-one-out of ridge regression, (fitted − leverage · target) / (1 − leverage), in two
        # forms, so that no difference cancels: this one, and target − residual / (1 − leverage).
        if penalty > diagonal.largest_eigenvalue:
            shrinkage = eigenvalues / (penalty + eigenvalues)
            leverage = squared_vectors @ shrinkage
            fitted = row_vectors @ (shrinkage * diagonal.rotated_target)
            return np.asarray((fitted - leverage * target) / (1.0 - leverage))
        one_minus_shrinkage = penalty / (penalty + eigenvalues)
        # squared length of the part of each unit vector that is orthogonal to all eigenvectors
        length_off_span = np.maximum(1.0 - squared_vectors.sum(axis=1, keepdims=True), 0.0)
        one_minus_leverage = length_off_span + squared_vectors @ one_minus_shrinkage
        shrunk_target = row_vectors @ (one_minus_shrinkage * diagonal.rotated_target)
        residual = self._target_outside_row_vectors + shrunk_target
        return np.asarray(target - residual / one_minus_leverage)

    def leave_column_out_scores(self, alphas: Array) -> Array:
        """Scores of each column by models without it, minus the mean score of the other columns.

        Shape (q, t, n_alphas), for complete tables. Each direction U_a is a ridge regression over
        the columns with a free intercept. With R as in `leave_row_out_scores`, ``H = R (V∘V)ᵀ``
        and ``k = 1 − 1/t``,

            Uᵀ F = ((R∘Z) Vᵀ − H∘(Uᵀ Y C)/k) / (k − H)
        """
        row_vectors = self.rows.spectrum.vectors
        n_rows, n_columns = self.loss.shape
        held_out = np.empty((len(alphas), n_rows, n_columns))
        ridge_penalties = self._ridge_penalties(alphas, n_columns=n_columns - 1)  # without one
        for alpha_index, penalty in enumerate(ridge_penalties):
            # Scores of the eigenvectors of the row kernel, each of which is one ridge regression
            scores_of_directions = self._leave_column_out_in_row_directions(penalty)
            held_out[alpha_index] = row_vectors @ scores_of_directions
        return held_out.transpose(1, 2, 0)  # (n_rows, n_columns, n_alphas)

    def leave_column_out_scores_at(self, new_row_basis_values: Array, alphas: Array) -> Array:
        """As `leave_column_out_scores`, for rows that the table does not have.

        The basis functions of the rows are evaluated at the new rows, (n_new, n_basis_functions).
        The weights of the eigenvectors U_a are the scores of `leave_column_out_scores` divided by
        γ_a; where γ_a is small, they are computed from ``R/γ = σ/(ρ + γσ)``.
        """
        _, n_columns = self.loss.shape
        row_eigenvalues = self.rows.spectrum.eigenvalues
        column_eigenvalues = self.decomposed_columns.spectrum.eigenvalues
        largest_column_eigenvalue = np.abs(column_eigenvalues).max(initial=0.0)
        # Features of the new rows that belong to the weights of the eigenvectors of the row kernel
        new_row_features = np.asarray(new_row_basis_values @ self.rows.vectors_to_basis_weights)

        held_out = np.empty((len(alphas), len(new_row_features), n_columns))
        ridge_penalties = self._ridge_penalties(alphas, n_columns=n_columns - 1)  # without one
        for alpha_index, penalty in enumerate(ridge_penalties):
            # Weights of the eigenvectors, (n_eigenvectors, n_columns): their scores, divided by
            # their eigenvalues. For small eigenvalues, by which the division is inaccurate, another
            # formula gives the weights.
            weights = self._leave_column_out_in_row_directions(penalty)
            is_small = np.abs(row_eigenvalues) * largest_column_eigenvalue < penalty
            weights[~is_small] /= row_eigenvalues[~is_small, None]
            weights[is_small] = self._leave_column_out_weights(penalty, is_small)
            held_out[alpha_index] = new_row_features @ weights
        return held_out.transpose(1, 2, 0)  # (n_new_rows, n_columns, n_alphas)

    def _leave_column_out_in_row_directions(self, penalty: float) -> Array:
        """``Uᵀ F`` of `leave_column_out_scores`, shape (a, t)."""
        diagonal = self._diagonalization
        eigenvalues = diagonal.eigenvalues
        column_vectors = self.decomposed_columns.spectrum.vectors
        squared_vectors = np.square(column_vectors).T
        target = self._target_of_row_directions
        # squared length of the unit vector of a column after centering
        centered_length = 1.0 - 1.0 / self.loss.shape[1]

        # Leave-one-out of ridge regression, with k for centered_length, in two forms, so that no
        # difference cancels: (fitted − leverage · target / k) / (k − leverage), and
        # target / k − residual / (k − leverage).
        if penalty > diagonal.largest_eigenvalue:
            shrinkage = eigenvalues / (penalty + eigenvalues)
            leverage = shrinkage @ squared_vectors
            fitted = (shrinkage * diagonal.rotated_target) @ column_vectors.T
            scores = (fitted - leverage * target / centered_length) / (centered_length - leverage)
            return np.asarray(scores)
        one_minus_shrinkage = penalty / (penalty + eigenvalues)
        # squared length of the part of each unit vector that is orthogonal to all eigenvectors
        length_off_span = np.maximum(centered_length - squared_vectors.sum(axis=0), 0.0)
        length_minus_leverage = length_off_span + one_minus_shrinkage @ squared_vectors
        shrunk_target = (one_minus_shrinkage * diagonal.rotated_target) @ column_vectors.T
        residual = self._target_off_columns + shrunk_target
        return np.asarray(target / centered_length - residual / length_minus_leverage)

    def _leave_column_out_weights(self, penalty: float, directions: Array) -> Array:
        """``Γ⁻¹ Uᵀ F`` of `leave_column_out_scores` for the selected directions of the rows."""
        diagonal = self._diagonalization
        column_eigenvalues = self.decomposed_columns.spectrum.eigenvalues
        column_vectors = self.decomposed_columns.spectrum.vectors
        row_eigenvalues = self.rows.spectrum.eigenvalues[directions, None]
        eigenvalues = diagonal.eigenvalues[directions]
        rotated_target = diagonal.rotated_target[directions]
        target = self._target_of_row_directions[directions]
        centered_length = 1.0 - 1.0 / self.loss.shape[1]

        # The leave-one-out scores (fitted − leverage · target / k) / (k − leverage), with k for
        # centered_length, divided by the eigenvalue of the row direction: shrinkage, leverage and
        # fitted scores are those divided by it.
        shrinkage = column_eigenvalues / (penalty + eigenvalues)
        leverage = shrinkage @ np.square(column_vectors).T
        fitted = (shrinkage * rotated_target) @ column_vectors.T
        return np.asarray(
            (fitted - leverage * target / centered_length)
            / (centered_length - row_eigenvalues * leverage)
        )

    @property
    def decomposed_columns(self) -> DecomposedSide:
        """The columns, which must not be labels."""
        if not isinstance(self.columns, DecomposedSide):
            raise TypeError("the columns are labels, which have neither features nor a kernel")
        return self.columns

    @cached_property
    def _centered_target(self) -> Array:
        """``Y C``."""
        return np.asarray(self.loss.Y - self.loss.Y.mean(axis=1, keepdims=True))

    @cached_property
    def _target_of_column_directions(self) -> Array:
        """``Y C V``, shape (q, b)."""
        column_vectors = self._diagonalization.column_vectors
        if column_vectors is None:
            return self._centered_target
        return np.asarray(self._centered_target @ column_vectors)

    @cached_property
    def _target_outside_row_vectors(self) -> Array:
        """The part of ``Y C V`` outside of U, shape (q, b)."""
        # The part of the target that no combination of the row eigenvectors fits
        projected_target = self._diagonalization.row_vectors @ self._diagonalization.rotated_target
        return np.asarray(self._target_of_column_directions - projected_target)

    @cached_property
    def _squared_row_vectors(self) -> Array:
        """``U∘U``, shape (q, a)."""
        return np.square(self._diagonalization.row_vectors)

    @cached_property
    def _target_of_row_directions(self) -> Array:
        """``Uᵀ Y C``, shape (a, t)."""
        return np.asarray(self._diagonalization.row_vectors.T @ self._centered_target)

    @cached_property
    def _target_off_columns(self) -> Array:
        """The part of ``Uᵀ Y C`` outside of V and the constant, shape (a, t)."""
        column_vectors = self.decomposed_columns.spectrum.vectors
        # The part of the target that no combination of the column eigenvectors fits
        projected_target = self._diagonalization.rotated_target @ column_vectors.T
        return np.asarray(self._target_of_row_directions - projected_target)

    @cached_property
    def _diagonalization(self) -> Diagonalization:
        row_eigenvalues = self.rows.spectrum.eigenvalues
        row_vectors = self.rows.spectrum.vectors
        target = row_vectors.T @ self._centered_target
        if not isinstance(self.columns, DecomposedSide):
            # The kernel of labels is the identity: no vectors, and eigenvalues of 1.
            eigenvalues = np.repeat(row_eigenvalues[:, None], target.shape[1], axis=1)
            return Diagonalization(row_vectors, None, target, eigenvalues)
        column_eigenvalues = self.columns.spectrum.eigenvalues
        column_vectors = self.columns.spectrum.vectors
        return Diagonalization(
            row_vectors,
            column_vectors,
            rotated_target=target @ column_vectors,
            eigenvalues=np.outer(row_eigenvalues, column_eigenvalues),
        )

    def _ridge_penalties(
        self, alphas: Array, n_rows: int | None = None, n_columns: int | None = None
    ) -> Array:
        """ρ of a table with these numbers of rows and columns, by default of this table."""
        if n_rows is None:
            n_rows = self.loss.shape[0]
        if n_columns is None:
            n_columns = self.loss.shape[1]
        # The loss is a mean over W = n_rows · n_columns (n_columns − 1) / 2 pairs. The closed forms
        # minimize squared deviations from the means of the rows. Their sum is that over the pairs,
        # divided by n_columns, so that the penalty is alpha W / n_columns.
        return np.asarray(alphas * n_rows * (n_columns - 1) / 2)

    def preconditioned_sides(self) -> tuple[PreconditionedSide, PreconditionedSide]:
        """Features of both sides with weights from the observed cells, ``A ≈ diag(h) ⊗ diag(g)``.

        h is `row_weight` and g is `column_weight`.
        """
        # Degree of a cell: the total weight of its pairs, which is the diagonal of A.
        degree_of_cell = self.loss.to_table(self.loss.graph.degrees)
        row_degrees = degree_of_cell.sum(axis=1)
        column_degrees = degree_of_cell.sum(axis=0)

        # Weights whose products, row_weight × column_weight, approximate the degrees; rows and
        # columns of few scores have more than their degree, so that the system is well conditioned.
        row_weight = np.maximum(row_degrees / row_degrees.mean(), LEAST_WEIGHT)
        column_weight = np.maximum(column_degrees, LEAST_WEIGHT * column_degrees.mean())

        # Two corrections. The row weights have mean 1, so that the products of the weights add up
        # to n_rows times the column weights. And the mean of a row has no effect on the loss, so
        # that the n − 1 differences of a row share the degrees of its n cells.
        n_rows = len(row_weight)
        n_observed_per_row = self.loss.is_observed.sum(axis=1)
        n_observed = n_observed_per_row.sum()
        n_nonempty_rows = np.count_nonzero(n_observed_per_row)
        n_differences = max(n_observed - n_nonempty_rows, 1)
        cells_per_difference = n_observed / n_differences
        column_weight *= cells_per_difference / n_rows
        return self.rows.precondition(row_weight), self.columns.precondition(column_weight)

    def solve_iteratively(
        self,
        rows: PreconditionedSide,
        columns: PreconditionedSide,
        alphas: Array,
        watch: Watch | None = None,
    ) -> Solutions:
        """Conjugate gradients from the largest alpha down; each solution starts the next."""
        n_row_features = len(rows.squared_norms)
        n_column_features = len(columns.squared_norms)
        coef = np.empty((len(alphas), n_row_features, n_column_features))
        previous_coef: Array | None = None  # where the next solution starts
        n_iter = 1
        unfinished_alphas = []
        for alpha_index in np.argsort(alphas)[::-1]:  # the largest, and easiest, first
            alpha = float(alphas[alpha_index])
            solution = self._solve_for_alpha(rows, columns, alpha, previous_coef, watch)
            previous_coef = solution.x
            coef[alpha_index] = previous_coef
            n_iter = max(n_iter, solution.n_iter)
            if not solution.converged:
                unfinished_alphas.append(alpha)

        # From weights of the preconditioned features to weights of the basis functions of each side
        if rows.to_basis_weights is not None:
            coef = rows.to_basis_weights @ coef
        if columns.to_basis_weights is not None:
            coef = coef @ columns.to_basis_weights.T
        return Solutions(coef, is_definite=True, n_iter=n_iter, unfinished=tuple(unfinished_alphas))

    def _solve_for_alpha(
        self,
        rows: PreconditionedSide,
        columns: PreconditionedSide,
        alpha: float,
        start_coef: Array | None,
        watch: Watch | None,
    ) -> IterativeSolution:
        """The solution B for one alpha by conjugate gradients.

        The unknowns are scaled by the root of the preconditioner. The norm of the residual is then
        the preconditioned one, which does not depend on the units of the features.
        """
        # B: weights of the products of a row feature and a column feature. Conjugate gradients find
        # x = B / scale, where scale² is the inverse of the approximate diagonal of the system.
        scale = 1.0 / np.sqrt(np.outer(rows.squared_norms, columns.squared_norms) + alpha)

        def times_system_matrix(x: Array) -> Array:
            B = scale * x.reshape(scale.shape)
            scores = _scores_of_cells(B, rows, columns)
            laplacian_times_scores = self.loss.times_laplacian(scores)
            system_times_B = _times_features(laplacian_times_scores, rows, columns) + alpha * B
            return np.reshape(scale * system_times_B, (-1, 1))

        target = _times_features(self.loss.target, rows, columns)
        start = None
        if start_coef is not None:
            start = np.reshape(start_coef / scale, (-1, 1))
        diagonal = np.ones(target.size)  # of the scaled system, approximately
        result = conjugate_gradients(
            times_system_matrix,
            np.reshape(scale * target, (-1, 1)),
            diagonal,
            tol=self.tol,
            max_iter=self.max_iter,
            start=start,
            watch=watch,
        )
        return result._replace(x=scale * result.x.reshape(scale.shape))


def _scores_of_cells(B: Array, rows: PreconditionedSide, columns: PreconditionedSide) -> Array:
    """``R B Sᵀ``: the scores of all cells by the weights B."""
    if columns.features is None:  # labels, whose features are the identity
        return np.asarray(rows.features @ B)
    return np.asarray(np.linalg.multi_dot([rows.features, B, columns.features.T]))


def _times_features(table: Array, rows: PreconditionedSide, columns: PreconditionedSide) -> Array:
    """``Rᵀ F S``: a table of cells, multiplied by the features of both sides."""
    if columns.features is None:  # labels, whose features are the identity
        return np.asarray(rows.features.T @ table)
    return np.asarray(np.linalg.multi_dot([rows.features.T, table, columns.features]))
