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
solution of a complete table, with weights for rows and columns of fewer scores.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from rankwise.arrays import Array, Indices
from rankwise.caching import cached_property
from rankwise.dyadic.loss import DyadicLoss
from rankwise.dyadic.sides import DecomposedSide, PreconditionedSide, Side
from rankwise.solvers.least_squares import Solutions, Watch, conjugate_gradients, solve_shifted

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
    target : ndarray of shape (a, b)
        ``Z = Uᵀ Y V``.
    values : ndarray of shape (a, b)
        The products γ_a σ_b.
    """

    row_vectors: Array
    column_vectors: Array | None
    target: Array
    values: Array

    @property
    def largest(self) -> float:
        """Largest magnitude of a product."""
        return float(np.abs(self.values).max(initial=0.0))


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
        return self.loss.is_complete and self.rows.is_decomposed

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
        """B for every alpha, shape (n_alphas, n_row_functions, n_column_functions)."""
        if not self.has_closed_form:
            return self.solve_iteratively(*self.preconditioned_sides(), alphas, watch)
        if not isinstance(self.columns, DecomposedSide):
            system, target = self.rows.normal_equations(self._centered_target)
            shifts = self._shifts(alphas)
            return Solutions(*solve_shifted(system, target, shifts, overwrite=True))
        diagonal = self._diagonalization
        to_row_functions = self.rows.vectors_to_functions
        to_column_functions = self.columns.vectors_to_functions
        coef = []
        for shift in self._shifts(alphas):
            weights = diagonal.target / (shift + diagonal.values)
            coef.append(to_row_functions @ weights @ to_column_functions.T)
        smallest = diagonal.values.min(initial=0.0)
        is_definite = bool(smallest >= INDEFINITE * diagonal.largest)
        return Solutions(np.stack(coef), is_definite)

    def mean_residual(self, B: Array) -> float:
        """Mean of Y − F: the intercept that puts the scores of one list on the scale of Y."""
        F = np.linalg.multi_dot([self.rows.matrix, B, self.decomposed_columns.matrix.T])
        return float(np.nanmean(self.loss.Y - F))

    def without_rows(self, alphas: Array) -> Array:
        """Scores of each row by models without it, shape (q, t, n_alphas), for complete tables.

        Each direction V_b is a ridge regression over the rows. With ``R = γσ/(ρ + γσ)`` and the
        leverages ``H = (U∘U) R``,

            F V = (U (R∘Z) − H∘(Y V)) / (1 − H)

        If ρ is small, ``1 − H`` is the sum of its own terms, which do not cancel.
        """
        diagonal = self._diagonalization
        U = diagonal.row_vectors
        V = diagonal.column_vectors
        target = self._centered_target if V is None else self._centered_target @ V
        squares = np.square(U)
        target_off_span = target - U @ diagonal.target
        length_off_span = np.maximum(1.0 - squares.sum(axis=1, keepdims=True), 0.0)
        held_out = np.empty((len(alphas), *self.loss.shape))
        for k, shift in enumerate(self._shifts(alphas, n_rows=self.loss.shape[0] - 1)):
            shrinkage = diagonal.values / (shift + diagonal.values)
            if shift > diagonal.largest:
                leverage = squares @ shrinkage
                fitted = U @ (shrinkage * diagonal.target)
                scores = (fitted - leverage * target) / (1.0 - leverage)
            else:
                complement = shift / (shift + diagonal.values)
                residual = target_off_span + U @ (complement * diagonal.target)
                scores = target - residual / (length_off_span + squares @ complement)
            held_out[k] = scores if V is None else scores @ V.T
        return held_out.transpose(1, 2, 0)

    def without_columns(self, alphas: Array) -> Array:
        """Scores of each column by models without it, minus the mean score of the other columns.

        Shape (q, t, n_alphas), for complete tables. Each direction U_a is a ridge regression over
        the columns with a free intercept. With R as in `without_rows`, ``H = R (V∘V)ᵀ`` and
        ``k = 1 − 1/t``,

            Uᵀ F = ((R∘Z) Vᵀ − H∘(Uᵀ Y C)/k) / (k − H)
        """
        held_out = np.empty((len(alphas), *self.loss.shape))
        for k, shift in enumerate(self._shifts(alphas, n_columns=self.loss.shape[1] - 1)):
            held_out[k] = self.rows.spectrum.vectors @ self._scores_without_columns(shift)
        return held_out.transpose(1, 2, 0)

    def without_columns_at(self, new_rows: Array, alphas: Array) -> Array:
        """As `without_columns`, for rows that the table does not have.

        `new_rows` are the functions of the rows at these, shape (n, n_row_functions). Their scores
        are those of `without_columns` divided by γ_a; where γ_a is small, they are computed from
        ``R/γ = σ/(ρ + γσ)``.
        """
        gamma = self.rows.spectrum.values
        sigma = self.decomposed_columns.spectrum.values
        largest_sigma = np.abs(sigma).max(initial=0.0)
        features = np.asarray(new_rows @ self.rows.vectors_to_functions)
        held_out = np.empty((len(alphas), len(features), self.loss.shape[1]))
        for k, shift in enumerate(self._shifts(alphas, n_columns=self.loss.shape[1] - 1)):
            scores = self._scores_without_columns(shift)
            is_small = np.abs(gamma) * largest_sigma < shift
            scores[~is_small] /= gamma[~is_small, None]
            scores[is_small] = self._weights_without_columns(shift, is_small)
            held_out[k] = features @ scores
        return held_out.transpose(1, 2, 0)

    def _scores_without_columns(self, shift: float) -> Array:
        """``Uᵀ F`` of `without_columns`, shape (a, t)."""
        diagonal = self._diagonalization
        V = self.decomposed_columns.spectrum.vectors
        target = self._target_of_row_directions
        squares = np.square(V).T
        k = 1.0 - 1.0 / self.loss.shape[1]
        if shift > diagonal.largest:
            shrinkage = diagonal.values / (shift + diagonal.values)
            leverage = shrinkage @ squares
            fitted = (shrinkage * diagonal.target) @ V.T
            return np.asarray((fitted - leverage * target / k) / (k - leverage))
        complement = shift / (shift + diagonal.values)
        target_off_span = self._target_off_columns
        length_off_span = np.maximum(k - squares.sum(axis=0), 0.0)
        residual = target_off_span + (complement * diagonal.target) @ V.T
        return np.asarray(target / k - residual / (length_off_span + complement @ squares))

    def _weights_without_columns(self, shift: float, directions: Array) -> Array:
        """``Γ⁻¹ Uᵀ F`` of `without_columns` for the selected directions of the rows."""
        diagonal = self._diagonalization
        sigma, V = self.decomposed_columns.spectrum[:2]
        gamma = self.rows.spectrum.values[directions, None]
        Z = diagonal.target[directions]
        target = self._target_of_row_directions[directions]
        k = 1.0 - 1.0 / self.loss.shape[1]
        gain = sigma / (shift + diagonal.values[directions])
        leverage = gain @ np.square(V).T
        fitted = (gain * Z) @ V.T
        return np.asarray((fitted - leverage * target / k) / (k - gamma * leverage))

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
    def _target_of_row_directions(self) -> Array:
        """``Uᵀ Y C``, shape (a, t)."""
        return np.asarray(self._diagonalization.row_vectors.T @ self._centered_target)

    @cached_property
    def _target_off_columns(self) -> Array:
        """The part of ``Uᵀ Y C`` outside of V and the constant, shape (a, t)."""
        V = self.decomposed_columns.spectrum.vectors
        return np.asarray(self._target_of_row_directions - self._diagonalization.target @ V.T)

    @cached_property
    def _diagonalization(self) -> Diagonalization:
        gamma = self.rows.spectrum.values
        U = self.rows.spectrum.vectors
        target = U.T @ self._centered_target
        if not isinstance(self.columns, DecomposedSide):
            values = np.repeat(gamma[:, None], target.shape[1], axis=1)
            return Diagonalization(U, None, target, values)
        sigma = self.columns.spectrum.values
        V = self.columns.spectrum.vectors
        return Diagonalization(U, V, target @ V, np.outer(gamma, sigma))

    def _shifts(
        self, alphas: Array, n_rows: int | None = None, n_columns: int | None = None
    ) -> Array:
        """ρ of a table with these numbers of rows and columns, by default those of the table."""
        q = self.loss.shape[0] if n_rows is None else n_rows
        t = self.loss.shape[1] if n_columns is None else n_columns
        return np.asarray(alphas * q * (t - 1) / 2)

    def preconditioned_sides(self) -> tuple[PreconditionedSide, PreconditionedSide]:
        """Features of both sides with weights from the observed cells, ``A ≈ diag(h) ⊗ diag(g)``.

        A row of n cells has the degrees of n cells times n/(n − 1): its mean has no degree.
        """
        n_observed = self.loss.is_observed.sum(axis=1)
        n_cells = n_observed.sum()
        n_differences = max(n_cells - np.count_nonzero(n_observed), 1)
        degrees = self.loss.to_table(self.loss.graph.degrees)
        row_degrees = degrees.sum(axis=1)
        column_degrees = degrees.sum(axis=0)
        h = np.maximum(row_degrees / row_degrees.mean(), LEAST_WEIGHT)
        g = np.maximum(column_degrees, LEAST_WEIGHT * column_degrees.mean())
        g *= (n_cells / n_differences) / len(h)
        return self.rows.precondition(h), self.columns.precondition(g)

    def solve_iteratively(
        self,
        rows: PreconditionedSide,
        columns: PreconditionedSide,
        alphas: Array,
        watch: Watch | None = None,
    ) -> Solutions:
        """Conjugate gradients; the largest alpha first, whose solution starts the next one.

        The unknowns are scaled by the root of the preconditioner. The norm of the residual is then
        the preconditioned one, in which features in small units count as those in large ones.
        """
        shape = (len(rows.norms), len(columns.norms))
        target = _to_features(self.loss.target, rows, columns)
        curvature = np.outer(rows.norms, columns.norms)
        coef = np.empty((len(alphas), *shape))
        previous: Array | None = None
        n_iter = 1
        unfinished = []
        for k in np.argsort(alphas)[::-1]:
            alpha = float(alphas[k])
            scale = 1.0 / np.sqrt(curvature + alpha)

            def product(x: Array, alpha: float = alpha, scale: Array = scale) -> Array:
                B = scale * x.reshape(shape)
                F = _scores(B, rows, columns)
                gradient = _to_features(self.loss.times_A(F), rows, columns) + alpha * B
                return np.reshape(scale * gradient, (-1, 1))

            result = conjugate_gradients(
                product,
                np.reshape(scale * target, (-1, 1)),
                np.ones(target.size),
                tol=self.tol,
                max_iter=self.max_iter,
                start=None if previous is None else np.reshape(previous / scale, (-1, 1)),
                watch=watch,
            )
            previous = scale * result.x.reshape(shape)
            coef[k] = previous
            n_iter = max(n_iter, result.n_iter)
            if not result.converged:
                unfinished.append(alpha)
        if rows.to_functions is not None:
            coef = rows.to_functions @ coef
        if columns.to_functions is not None:
            coef = coef @ columns.to_functions.T
        return Solutions(coef, True, n_iter, tuple(unfinished))


def _scores(B: Array, rows: PreconditionedSide, columns: PreconditionedSide) -> Array:
    """``R B Sᵀ``."""
    if columns.features is None:
        return np.asarray(rows.features @ B)
    return np.asarray(np.linalg.multi_dot([rows.features, B, columns.features.T]))


def _to_features(F: Array, rows: PreconditionedSide, columns: PreconditionedSide) -> Array:
    """``Rᵀ F S``."""
    if columns.features is None:
        return np.asarray(rows.features.T @ F)
    return np.asarray(np.linalg.multi_dot([rows.features.T, F, columns.features]))
