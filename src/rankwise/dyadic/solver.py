"""Tables: closed forms for all alphas and for rows or columns held out; else conjugate gradients.

Y is a table (q × t), F = G A K its scores by kernels of the rows and of the columns. RankRLS over
the pairs of cells of each row minimizes, if all cells are known,

    Σ_i ‖C (y_i − f_i)‖² + ρ ‖f‖²,      ρ = α W/t = α q (t − 1)/2,   C = I − 11ᵀ/t

With ``G = U Γ Uᵀ``, ``C K C = V Σ Vᵀ`` and ``Z = Uᵀ Y V``,

    A = U [Z_ab / (ρ + γ_a σ_b)] Vᵀ

so that every alpha is elementwise arithmetic. Labels instead of columns have ``K = I`` and no V.

With unknown cells or other costs, features of the two sides, ``G = R Rᵀ`` and ``K = S Sᵀ``, give
the scores ``F = R B Sᵀ`` and the system

    Rᵀ A(R B Sᵀ) S + α B = Rᵀ T S

A product takes four matrix products of the size of the table; the q t × q t kernel matrix of the
cells is never formed. If A were a Kronecker product ``H ⊗ L`` of diagonal matrices, features with
diagonal ``Rᵀ H R`` and ``Sᵀ L S`` would make the system diagonal. That is the preconditioner: the
solution of a complete table, with weights for rows and columns of fewer scores.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
import scipy.linalg
import scipy.sparse as sp

from rankwise.arrays import Array, Indices
from rankwise.caching import cached_property
from rankwise.dyadic.loss import DyadicLoss
from rankwise.kernels.kernel import center_kernel
from rankwise.runtime.threads import allow_threads
from rankwise.solvers.least_squares import Solutions, Watch, conjugate_gradients, solve_shifted
from rankwise.solvers.leave_items_out import Spectrum, find_spectrum

INDEFINITE = -1e-8  # of the largest eigenvalue: more negative than rounding makes them
FLOOR = 0.1  # of the mean weight: rows and columns of few scores are weighed as much


class PreconditionedSide(NamedTuple):
    """Features R of one side that suit weights H of its items.

    Attributes
    ----------
    features : array, sparse matrix or None
        R, shape (n, r); None for the identity.
    norms : ndarray of shape (r,)
        Diagonal of ``Rᵀ H R``.
    back : ndarray of shape (n_functions, r) or None
        From weights of R to those of the functions of the side; None for the identity.
    """

    features: Any
    norms: Array
    back: Array | None = None


@dataclass(frozen=True)
class KernelSide:
    """One side of a table, with as many functions as there are columns in `matrix`.

    Attributes
    ----------
    matrix : array, sparse matrix or None
        Features of the items, shape (n, p); or kernel values between them, (n, n). None if every
        item is only itself (labels).
    is_kernel : bool
        Which of the two.
    is_centered : bool
        Whether scores count up to a constant on this side, so that the mean of the items has no
        effect.
    is_decomposed : bool
        Whether `spectrum` is used; False for features that only conjugate gradients look at.
    added : float
        Constant among the functions; see `make_side`.
    """

    matrix: Any
    is_kernel: bool
    is_centered: bool = False
    is_decomposed: bool = True
    added: float = 0.0

    def split(self, B: Array) -> tuple[Array, Array]:
        """From B to the weights of the functions but the constant, and what that adds."""
        if self.is_kernel or not self.added:
            return B, self.added * B.sum(axis=0)
        return B[:-1], np.sqrt(self.added) * B[-1]

    def subset(self, items: Indices) -> KernelSide:
        """Some of the items; the side itself, with what it has decomposed, if these are all."""
        if self.matrix is None or len(items) == self.matrix.shape[0]:
            return self
        rows = self.matrix[items]
        return replace(self, matrix=rows[:, items] if self.is_kernel else rows)

    def seen_from(self, new: Indices, items: Indices) -> Any:
        """The functions of some items, at others: their features, or kernel values to it."""
        return self.matrix[np.ix_(new, items)] if self.is_kernel else self.matrix[new]

    @cached_property
    def spectrum(self) -> Spectrum:
        """Of the kernel matrix, centered if scores count up to a constant; no zero values."""
        matrix = self.matrix if self.is_kernel else self._features
        centered = self.is_kernel and self.is_centered
        values, vectors, weight, *_ = find_spectrum(
            matrix, is_kernel=self.is_kernel, centered=centered
        )
        rounding = len(vectors) * np.finfo(np.float64).eps * np.abs(values).max(initial=0.0)
        keep = np.abs(values) > rounding
        return Spectrum(values[keep], np.ascontiguousarray(vectors[:, keep]), weight)

    @property
    def back(self) -> Array:
        """From weights of the vectors of the spectrum to those of the functions."""
        U = self.spectrum.vectors
        return U if self.is_kernel else self._features.T @ U

    def weighted(self, weight: Array) -> PreconditionedSide:
        """Features that make ``Rᵀ H R`` diagonal, for H = diag(weight)."""
        if self.matrix is None:
            return PreconditionedSide(None, weight)
        if self.is_kernel:
            K = center_kernel(self.matrix.copy()) if self.is_centered else self.matrix
            features, norms, back = _of_kernel(K, weight)
            back = back - back.mean(axis=0) if self.is_centered else back
            return PreconditionedSide(features, norms, back)
        if not self.is_decomposed:
            squares = self.matrix**2 if not sp.issparse(self.matrix) else self.matrix.power(2)
            return PreconditionedSide(self.matrix, np.asarray(squares.T @ weight))
        R = self._features
        if R.shape[1] > R.shape[0]:
            features, norms, back = _of_kernel(R @ R.T, weight)
            return PreconditionedSide(features, norms, R.T @ back)
        values, P = scipy.linalg.eigh(R.T @ (weight[:, None] * R), check_finite=False)
        keep = values > _rounding(values)
        return PreconditionedSide(R @ P[:, keep], values[keep], P[:, keep])

    @cached_property
    def _features(self) -> Array:
        R = self.matrix.toarray() if sp.issparse(self.matrix) else self.matrix
        R = np.asarray(R, dtype=np.float64)
        return R - R.mean(axis=0) if self.is_centered else R


@dataclass(frozen=True)
class DyadicProblem:
    """Minimize ``loss(F) + α ‖f‖²`` over scores ``F = R B Sᵀ`` of a table.

    Attributes
    ----------
    loss : DyadicLoss
        What is known about the cells.
    rows, columns : Side
        R and S: features, or kernel values.
    tol, max_iter
        Limits of the conjugate gradients, if there is no closed form.
    """

    loss: DyadicLoss
    rows: KernelSide
    columns: KernelSide
    tol: float = 1e-8
    max_iter: int | None = None

    @property
    def has_closed_form(self) -> bool:
        """Whether two decompositions give everything."""
        return self.loss.is_complete and self.rows.is_decomposed

    def subset(self, rows: Indices, columns: Indices) -> DyadicProblem:
        """The problem of a smaller table."""
        sides = self.rows.subset(rows), self.columns.subset(columns)
        return DyadicProblem(self.loss.subset(rows, columns), *sides, self.tol, self.max_iter)

    def sides(self) -> tuple[PreconditionedSide, PreconditionedSide]:
        """Features of both sides with weights by the known cells, ``A ≈ diag(h) ⊗ diag(g)``."""
        loss, count = self.loss, self.loss.known.sum(axis=1)
        degrees = loss.table(loss.graph.degrees)
        across, down = degrees.sum(axis=1), degrees.sum(axis=0)
        gain = count.sum() / max(
            count.sum() - np.count_nonzero(count), 1
        )  # n/(n − 1) of a full row
        h = np.maximum(across / across.mean(), FLOOR)
        g = np.maximum(down, FLOOR * down.mean()) * (gain / len(h))
        return self.rows.weighted(h), self.columns.weighted(g)

    def solve(self, alphas: Array, watch: Watch | None = None) -> Solutions:
        """B for every alpha, shape (n_alphas, n_row_functions, n_column_functions)."""
        if not self.has_closed_form:
            return self.iterate(*self.sides(), alphas, watch)
        if self.columns.matrix is None:
            return self._ridge(alphas)
        _, _, Z, values = self._decomposed()
        coef = [
            self.rows.back @ (Z / (shift + values)) @ self.columns.back.T
            for shift in self._shifts(alphas)
        ]
        is_definite = values.min(initial=0.0) >= INDEFINITE * np.abs(values).max(initial=0.0)
        return Solutions(np.stack(coef), bool(is_definite))

    def intercept(self, B: Array) -> float:
        """What takes the scores of one list of cells to the scale of Y: the mean of Y − F."""
        F = np.linalg.multi_dot([self.rows.matrix, B, self.columns.matrix.T])
        return float(np.nanmean(self.loss.Y - F))

    def without_rows(self, alphas: Array) -> Array:
        """Scores of each row by models without it, shape (q, t, n_alphas); all cells are known.

        Each direction V_b is a ridge regression over the rows. With ``R = γσ/(ρ + γσ)`` and the
        leverages ``H = (U∘U) R``,

            F V = (U (R∘Z) − H∘(Y V)) / (1 − H)
        """
        U, V, Z, values = self._decomposed()
        target = self._centered if V is None else self._centered @ V
        squares = U**2
        beyond = target - U @ Z  # what U does not span: of the target, and of the length of rows
        short = np.maximum(1.0 - squares.sum(axis=1, keepdims=True), 0.0)
        out = np.empty((len(alphas), *self.loss.shape))
        for held, shift in zip(out, self._shifts(alphas, n_rows=-1), strict=True):
            if shift > np.abs(values).max(initial=0.0):
                R = values / (shift + values)
                H = squares @ R
                scores = (U @ (R * Z) - H * target) / (1.0 - H)
            else:  # 1 − H from its own terms, which do not cancel
                S = shift / (shift + values)
                scores = target - (beyond + U @ (S * Z)) / (short + squares @ S)
            held[:] = scores if V is None else scores @ V.T
        return out.transpose(1, 2, 0)

    def without_columns(self, alphas: Array, new_rows: Any = None) -> Array:
        """Scores of each column by models without it, less the mean score of the others.

        Shape (q, t, n_alphas); all cells are known. Each direction U_a is a ridge regression over
        the columns with a free intercept. With R as above, ``H = R (V∘V)ᵀ`` and ``k = 1 − 1/t``,

            Uᵀ F = ((R∘Z) Vᵀ − H∘(Uᵀ Y C)/k) / (k − H)

        For rows that the table does not have, such as `new_rows` (n, n_row_functions), the same
        divided by γ_a; where γ_a is small, from ``R/γ = σ/(ρ + γσ)``.
        """
        U, V, Z, values = self._decomposed()
        gamma, sigma = self.rows.spectrum.values, self.columns.spectrum.values
        target, squares = U.T @ self._centered, (V**2).T
        k = 1.0 - 1.0 / self.loss.shape[1]
        beyond = target - Z @ V.T  # what V and the constant do not span
        short = np.maximum(k - squares.sum(axis=0), 0.0)
        features = U if new_rows is None else np.asarray(new_rows @ self.rows.back)
        out = np.empty((len(alphas), len(features), self.loss.shape[1]))
        for held, shift in zip(out, self._shifts(alphas, n_columns=-1), strict=True):
            if shift > np.abs(values).max(initial=0.0):
                R = values / (shift + values)
                H = R @ squares
                scores = ((R * Z) @ V.T - H * target / k) / (k - H)
            else:
                S = shift / (shift + values)
                scores = target / k - (beyond + (S * Z) @ V.T) / (short + S @ squares)
            if new_rows is not None:
                small = np.abs(gamma) * np.abs(sigma).max(initial=0.0) < shift
                scores[~small] /= gamma[~small, None]
                R = sigma / (shift + values[small])
                H = R @ squares
                fitted = (R * Z[small]) @ V.T
                scores[small] = (fitted - H * target[small] / k) / (k - gamma[small, None] * H)
            held[:] = features @ scores
        return out.transpose(1, 2, 0)

    @cached_property
    def _centered(self) -> Array:
        """``Y C``."""
        return np.asarray(self.loss.Y - self.loss.Y.mean(axis=1, keepdims=True))

    def _shifts(self, alphas: Array, n_rows: int = 0, n_columns: int = 0) -> Array:
        """ρ of a table with so many more rows and columns."""
        q, t = self.loss.shape
        return np.asarray(alphas * (q + n_rows) * (t + n_columns - 1) / 2)

    def _decomposed(self) -> tuple[Array, Any, Array, Array]:
        """U, V (None for labels), Z and the products γσ."""
        gamma, U = self.rows.spectrum[:2]
        Z = U.T @ self._centered
        if self.columns.matrix is None:
            return U, None, Z, gamma[:, None] * np.ones(Z.shape[1])
        sigma, V = self.columns.spectrum[:2]
        return U, V, Z @ V, gamma[:, None] * sigma

    def _ridge(self, alphas: Array) -> Solutions:
        """Labels: ridge regression on the scores of each row less their mean."""
        R = self.rows.matrix.astype(np.float64)  # a copy: kernel values are overwritten
        system, target = R, self._centered
        if not self.rows.is_kernel:
            system, target = R.T @ R, R.T @ target
            system = system.toarray() if sp.issparse(system) else system
        return Solutions(*solve_shifted(system, target, self._shifts(alphas)))

    def iterate(
        self,
        rows: PreconditionedSide,
        columns: PreconditionedSide,
        alphas: Array,
        watch: Watch | None = None,
    ) -> Solutions:
        """Conjugate gradients; the largest alpha first, each the start of the next."""
        shape = (len(rows.norms), len(columns.norms))
        target = _to_features(self.loss.target, rows, columns).reshape(-1, 1)
        curvature = np.outer(rows.norms, columns.norms).reshape(-1)
        coef = np.empty((len(alphas), *shape))
        start, n_iter, unfinished = None, 1, []
        limits: dict[str, Any] = {"tol": self.tol, "max_iter": self.max_iter, "watch": watch}
        for k in np.argsort(alphas)[::-1]:
            alpha = float(alphas[k])

            def product(b: Array, alpha: float = alpha) -> Array:
                F = _scores(b.reshape(shape), rows, columns)
                return _to_features(self.loss.times_A(F), rows, columns).reshape(-1, 1) + alpha * b

            result = conjugate_gradients(product, target, curvature + alpha, start=start, **limits)
            start, n_iter = result.x, max(n_iter, result.n_iter)
            coef[k] = result.x.reshape(shape)
            if not result.converged:
                unfinished.append(alpha)
        coef = coef if rows.back is None else rows.back @ coef
        coef = coef if columns.back is None else coef @ columns.back.T
        return Solutions(coef, True, n_iter, tuple(unfinished))


def make_side(
    matrix: Any,
    *,
    is_kernel: bool,
    constant: bool,
    weight: Array | None = None,
    **options: bool,
) -> KernelSide:
    """A side; its constant is the mean k(x, x): added to kernel values, or its root a column."""
    if not constant:
        return KernelSide(matrix, is_kernel, **options)
    if is_kernel:
        lengths = np.diagonal(matrix)
    elif sp.issparse(matrix):
        lengths = np.asarray(matrix.multiply(matrix).sum(axis=1)).ravel()
    else:
        lengths = np.einsum("ij,ij->i", matrix, matrix, dtype=np.float64)
    added = float(np.average(lengths, weights=weight)) or 1.0
    if is_kernel:
        return KernelSide(matrix + added, True, **options, added=added)
    columns = [matrix, np.full((len(lengths), 1), np.sqrt(added))]
    stacked = sp.hstack(columns, format="csr") if sp.issparse(matrix) else np.hstack(columns)
    return KernelSide(stacked, False, **options, added=added)


def _of_kernel(K: Array, weight: Array) -> tuple[Array, Array, Array]:
    """With ``H^½ K H^½ = V Σ Vᵀ``: ``R = H^(−½) V Σ^½``; negative eigenvalues are left out."""
    root = np.sqrt(weight)[:, None]
    with allow_threads(len(K) ** 3):
        S = root * K * root.T
        values, vectors = scipy.linalg.eigh(S, check_finite=False, overwrite_a=True)
    keep = values > _rounding(values)
    scale = np.sqrt(values[keep])
    features = np.ascontiguousarray(vectors[:, keep] / root * scale)
    return features, values[keep], vectors[:, keep] * root / scale


def _rounding(values: Array) -> float:
    return float(len(values) * np.finfo(np.float64).eps * values.max(initial=0.0))


def _scores(B: Array, rows: PreconditionedSide, columns: PreconditionedSide) -> Array:
    """``R B Sᵀ``."""
    R, S = rows.features, columns.features
    return np.asarray(R @ B if S is None else np.linalg.multi_dot([R, B, S.T]))


def _to_features(F: Array, rows: PreconditionedSide, columns: PreconditionedSide) -> Array:
    """``Rᵀ F S``."""
    R, S = rows.features, columns.features
    return np.asarray(R.T @ F if S is None else np.linalg.multi_dot([R.T, F, S]))
