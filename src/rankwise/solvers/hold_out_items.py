"""Items held out of one complete group: leave-one-out, k-fold over items, leave-pair-out.

Every two items of the group are an edge of magnitude y_i − y_j (ties included), so taking items out
cuts edges; but what is left is a complete group again, and the cost over its n items is

    κ Σ (y_i − f_i − b)² + ρ b²,   minimised over one common b,

ridge regression with an intercept b: free of charge for β = 0, shut off for β = 1. Leaving items
out of a ridge regression is exact algebra on one matrix (DESIGN.md section 4); [RankRLS09] equation
38 is the same thing written longer.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
import scipy.linalg
from numpy.typing import NDArray

from rankwise.solvers.iterative import binary_scale

__all__ = [
    "Resolvent",
    "Spectrum",
    "hold_out_items",
    "pair_differences",
    "pair_disagreement",
    "resolvent",
    "spectrum_of_features",
    "spectrum_of_kernel",
]

Array = NDArray[np.float64]
PRODUCT_ENTRIES = 2**21  # of G computed by one matrix product


class Spectrum(NamedTuple):
    """``K = V diag(values) Vᵀ`` with orthonormal columns, as many as K has rank or rows."""

    values: Array
    vectors: Array


class Resolvent(NamedTuple):
    """``G = B − v vᵀ / s`` with ``B = (K + λ'I)⁻¹``, ``v = B 1``; G y = c are the coefficients.

    Attributes
    ----------
    shift : float
        λ' = α / κ.
    factors : ndarray
        Eigenvalues of B on the columns of `vectors`, less the eigenvalue on the rest.
    rest : float
        Eigenvalue of B on what the vectors do not span.
    v : ndarray of shape (m,)
        B 1.
    s : float
        1ᵀ B 1 + ρ/α, infinite without an intercept.
    """

    shift: float
    factors: Array
    rest: float
    v: Array
    s: float


def spectrum_of_features(R: Array) -> Spectrum:
    """Spectrum of K = R Rᵀ for features with fewer columns than rows."""
    vectors, singular, _ = scipy.linalg.svd(R, full_matrices=False, check_finite=False)
    return Spectrum(singular**2, vectors)


def spectrum_of_kernel(K: Array) -> Spectrum:
    """Spectrum of a kernel matrix."""
    return Spectrum(*scipy.linalg.eigh(K, check_finite=False))


def resolvent(basis: Spectrum, alpha: float, beta: float, n: int) -> Resolvent:
    """G for models trained on n items.

    The normalised cost of a complete group of n items is ``κ Σ e² − η (Σ e)²``, which an intercept
    with penalty ρ = κ²/η − κ n gives when it is minimised away.
    """
    kappa = (1 - beta) * 2 / (n - 1) + beta / n
    eta = (1 - beta) * 2 / (n * (n - 1))
    shift = alpha / kappa
    m, rank = basis.vectors.shape
    rest = 1.0 / shift if rank < m else 0.0
    factors = 1.0 / (basis.values + shift) - rest
    v = basis.vectors @ (factors * basis.vectors.sum(axis=0)) + rest
    if eta == 0:
        return Resolvent(shift, factors, rest, v, np.inf)
    rho = 0.0 if beta == 0 else kappa**2 / eta - kappa * n
    return Resolvent(shift, factors, rest, v, float(v.sum() + rho / alpha))


def hold_out_items(
    basis: Spectrum, y: Array, folds: Sequence[NDArray[np.intp]], alphas: Array, beta: float
) -> Iterator[tuple[NDArray[np.intp], Array]]:
    """Held-out scores of each fold, shape (|U|, n_outputs, n_alphas).

    f_U = (K c)_U − (K G)_UU (G_UU)⁻¹ c_U
    """
    if beta == 0:
        y = y - y.mean(axis=0)  # the scores count up to a constant: keep the digits
    m = len(y)
    for size in sorted({len(U) for U in folds}):
        parts = [resolvent(basis, alpha, beta, m - size) for alpha in alphas]
        coefficients = [_fitted(basis, part, y) for part in parts]
        for U in (U for U in folds if len(U) == size):
            scores = np.empty((size, y.shape[1], len(alphas)))
            for k, (part, (c, f)) in enumerate(zip(parts, coefficients, strict=True)):
                V_U, v_U = basis.vectors[U], part.v[U]
                B_UU = (V_U * part.factors) @ V_U.T + part.rest * np.eye(size)
                G_UU = B_UU - np.outer(v_U, v_U) / part.s
                KG_UU = np.eye(size) - part.shift * B_UU
                KG_UU -= np.outer(1 - part.shift * v_U, v_U) / part.s
                scores[:, :, k] = f[U] - KG_UU @ np.linalg.solve(G_UU, c[U])
            yield U, scores


def pair_differences(
    basis: Spectrum, y: Array, alpha: float, beta: float, n_entries: int
) -> Iterator[tuple[slice, Array]]:
    """Leave-pair-out: blocks of rows i of ``f_i − f_j``, shape (rows, m, n_outputs).

        f_i − f_j = y_i − y_j − [(G_jj + G_ij) u_i − (G_ii + G_ij) u_j] / (G_ii G_jj − G_ij²)

    with u = G y, for every pair at once, in blocks of at most `n_entries` entries. What rounding
    leaves of a difference of zero is set to zero: a rest that is all tied must predict a tie.
    """
    if beta == 0:
        y = y - y.mean(axis=0)
    noise = _rounding(y)
    part = resolvent(basis, alpha, beta, len(y) - 2)
    u, _ = _fitted(basis, part, y)
    for rows, pull_i, pull_j, determinant in _pair_blocks(basis, part, max(1, n_entries // y.size)):
        block = np.empty((*determinant.shape, y.shape[1]))
        for k in range(y.shape[1]):
            pull = pull_i * u[rows, k, None] - pull_j * u[:, k]
            block[:, :, k] = y[rows, k, None] - y[:, k] - pull / determinant
        block[np.abs(block) < noise] = 0.0
        local = np.arange(len(block))
        block[local, rows.start + local] = 0.0
        yield rows, block


def pair_disagreement(
    basis: Spectrum, y: Array, alphas: Array, beta: float, n_entries: int = 2**15
) -> Array:
    """Share of the pairs with different y that leave-pair-out orders wrongly, ties one half.

    Shape (n_outputs, n_alphas); nan for an output whose y are all equal. The sign of a difference
    is that of its numerator over the (positive) determinant, so nothing is divided; blocks of
    n_entries stay in the cache while all outputs pass over them.
    """
    y = y / binary_scale(y)  # products of two differences neither overflow nor vanish
    if beta == 0:
        y = y - y.mean(axis=0)
    noise = _rounding(y)
    wrong = np.zeros((y.shape[1], len(alphas)))
    height = max(1, n_entries // len(y))
    for k, alpha in enumerate(alphas):
        part = resolvent(basis, float(alpha), beta, len(y) - 2)
        u, _ = _fitted(basis, part, y)
        for rows, pull_i, pull_j, determinant in _pair_blocks(basis, part, height):
            for j, (y_j, u_j) in enumerate(zip(y.T, u.T, strict=True)):
                gap = y_j[rows, None] - y_j
                agreement = gap * determinant
                agreement -= pull_i * u_j[rows, None]
                agreement += pull_j * u_j
                agreement[np.abs(agreement) < noise[j] * determinant] = 0.0
                agreement *= gap
                wrong[j, k] += np.count_nonzero(agreement < 0)
                wrong[j, k] += 0.5 * np.count_nonzero((agreement == 0) & (gap != 0))
    tied = [np.unique(column, return_counts=True)[1].astype(float) for column in y.T]
    count = len(y) ** 2 - np.array([n @ n for n in tied])[:, None]  # ordered pairs
    share: Array = np.full_like(wrong, np.nan)
    np.divide(wrong, count, out=share, where=count > 0)
    return share


def _rounding(y: Array) -> Array:
    """What rounding may leave of a difference of zero, for each output."""
    return np.asarray(64 * np.finfo(float).eps * np.abs(y).max(axis=0))


def _pair_blocks(
    basis: Spectrum, part: Resolvent, height: int
) -> Iterator[tuple[slice, Array, Array, Array]]:
    """Blocks of rows i of ``G_jj + G_ij``, ``G_ii + G_ij`` and ``G_ii G_jj − G_ij²``.

    G comes from matrix products of many rows, the blocks are of `height` rows at most.
    """
    m = len(part.v)
    scaled = basis.vectors * part.factors
    g = np.einsum("ij,ij->i", scaled, basis.vectors) + part.rest - part.v**2 / part.s
    many = max(height, PRODUCT_ENTRIES // m)
    for top in range(0, m, many):
        product = scaled[top : top + many] @ basis.vectors.T
        for start in range(top, min(top + many, m), height):
            rows = slice(start, min(start + height, top + len(product)))
            G = product[start - top : rows.stop - top]
            G -= np.outer(part.v[rows] / part.s, part.v)
            determinant = g[rows, None] * g - G * G
            local = np.arange(len(G))
            determinant[local, start + local] = 1.0
            yield rows, g + G, g[rows, None] + G, determinant


def _fitted(basis: Spectrum, part: Resolvent, y: Array) -> tuple[Array, Array]:
    """Coefficients c = G y and scores K c of the model of all items."""
    By = basis.vectors @ (part.factors[:, None] * (basis.vectors.T @ y)) + part.rest * y
    pull = part.v @ y / part.s
    c = By - np.outer(part.v, pull)
    return c, y - part.shift * By - np.outer(1 - part.shift * part.v, pull)
