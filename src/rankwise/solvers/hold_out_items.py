"""Items held out of one complete group: leave-one-out, k-fold over items.

Every two items of the group are an edge of magnitude y_i − y_j (ties included). Taking items out
cuts edges, but what is left is a complete group again. The cost over its n items is

    κ Σ (y_i − f_i − b)² + ρ b²,   minimized over one common b,

ridge regression with an intercept b: ρ is zero for β = 0 and infinite for β = 1. Leaving items
out of a ridge regression is exact algebra on one matrix (docs/exact_cross_validation.md);
[RankRLS09] equation 38 is the same thing written longer. `hold_out_pairs` has leave-pair-out.

With weights w of the items the squares are weighted, and D = diag(w) takes the place of I beside K.
κ then depends on which items are held out, not on how many: every fold has a resolvent of its own.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
import scipy.linalg

from rankwise.arrays import Array, Indices
from rankwise.features import center_kernel
from rankwise.machine import idle_cores


class Spectrum(NamedTuple):
    """``K = V diag(values) Vᵀ`` with orthonormal columns, as many as K has rank or rows.

    With weights of items it is the spectrum of ``D^½ K D^½``, and the vectors are D^½ V. `first` is
    for each item the first that is equal to it, None if all differ.
    """

    values: Array
    vectors: Array
    first: Indices | None = None
    weight: Array | None = None

    @property
    def weights(self) -> Array:
        """Weights of the items, all positive."""
        return np.ones(len(self.vectors)) if self.weight is None else self.weight


class Rest(NamedTuple):
    """Items that models are trained on: the sum of their weights, and that of their pairs."""

    size: float
    pairs: float


class Resolvent(NamedTuple):
    """``G = B − v vᵀ / s`` with ``B = (K + λ'D⁻¹)⁻¹``, ``v = B 1``; G y = c are the coefficients.

    Attributes
    ----------
    shift : float
        λ' = α / κ.
    factors : ndarray
        Eigenvalues of B on the columns of `vectors`, less the eigenvalue on the rest.
    rest : ndarray of shape (m,)
        Diagonal of B on what the vectors do not span.
    v : ndarray of shape (m,)
        B 1.
    s : float
        1ᵀ B 1 + ρ/α, infinite without an intercept.
    diagonal : ndarray of shape (m,)
        Of G.
    """

    shift: float
    factors: Array
    rest: Array
    v: Array
    s: float
    diagonal: Array


def spectrum_of_features(
    R: Array, *, centered: bool = False, weight: Array | None = None
) -> Spectrum:
    """Spectrum of K = R Rᵀ for features with fewer columns than rows, centered if wanted.

    If only differences of scores count, the mean of the features has no effect. Centered features
    keep the digits that a large mean would cost.
    """
    if centered:
        R = R - R.mean(axis=0)
    if weight is not None:
        R = R * np.sqrt(weight)[:, None]
    vectors, singular, _ = scipy.linalg.svd(
        R, full_matrices=False, check_finite=False, overwrite_a=centered
    )
    return _spectrum(singular**2, vectors, weight)


def _spectrum(values: Array, vectors: Array, weight: Array | None) -> Spectrum:
    if weight is not None:
        vectors *= np.sqrt(weight)[:, None]
    return Spectrum(values, vectors, None, weight)


def spectrum_of_kernel(
    K: Array, *, centered: bool = False, overwrite: bool = False, weight: Array | None = None
) -> Spectrum:
    """Spectrum of a kernel matrix, its features centered if wanted; K itself may be overwritten.

    Needs memory for one more matrix if K may be overwritten, else for two. Eigenvalues below the
    rounding of K are set to zero: if they were negative, small alphas would divide by them.
    """
    noise = len(K) * np.finfo(float).eps * max(K.max(), -K.min())
    K = K if overwrite else K.copy()
    if centered:
        K = center_kernel(K)
    if weight is not None:
        K *= np.sqrt(weight)
        K *= np.sqrt(weight)[:, None]
        noise *= weight.max()
    a = (
        K.T if K.flags.c_contiguous else K
    )  # symmetric; LAPACK can only overwrite a matrix stored by columns
    with idle_cores(len(a) ** 3):
        values, vectors = scipy.linalg.eigh(a, check_finite=False, overwrite_a=True)
    values[np.abs(values) <= noise] = 0.0
    return _spectrum(values, vectors, weight)


def resolvent(basis: Spectrum, alpha: float, beta: float, rest: Rest) -> Resolvent:
    """G for models trained on some of the items.

    The normalized cost of a complete group of items with weights w, s = Σ w and W the sum over its
    pairs, is ``κ Σ w e² − η (Σ w e)²`` with ``κ = (1−β) s/W + β/s`` and ``η = (1−β)/W``. An
    intercept with the penalty ρ = κ²/η − κ s gives the same cost when it is minimized away.
    """
    kappa, eta = beta / rest.size, 0.0
    if beta < 1:
        eta = (1 - beta) / rest.pairs
        kappa += eta * rest.size
    rho = np.inf if eta == 0 else kappa**2 / eta - kappa * rest.size
    shift, penalty = alpha / kappa, 0.0 if beta == 0 else rho / alpha
    m, rank = basis.vectors.shape
    outside = 1.0 / shift if rank < m else 0.0
    outer = outside * basis.weights
    factors = 1.0 / (basis.values + shift) - outside
    v = basis.vectors @ (factors * basis.vectors.sum(axis=0)) + outer
    s = float(v.sum() + penalty)
    diagonal = np.einsum("ij,ij,j->i", basis.vectors, basis.vectors, factors) + outer - v**2 / s
    return Resolvent(shift, factors, outer, v, s, diagonal)


def rest_without(basis: Spectrum, held: Indices) -> Rest:
    """What models without some items are trained on."""
    if basis.weight is None:
        n = len(basis.vectors) - len(held)
        return Rest(n, n * (n - 1) / 2)
    kept = np.delete(basis.weight, held)
    return Rest(float(kept.sum()), float(0.5 * kept @ (kept.sum() - kept)))


def hold_out_items(
    basis: Spectrum, y: Array, folds: Sequence[Indices], alphas: Array, beta: float
) -> Iterator[tuple[Indices, Array]]:
    """Held-out scores of each fold, shape (|U|, n_outputs, n_alphas).

    f_U = (K c)_U − (K G)_UU (G_UU)⁻¹ c_U
    """
    if beta == 0:
        y = y - y.mean(axis=0)  # only differences count: a smaller y keeps more digits
    rests = [rest_without(basis, U) for U in folds]
    for rest in sorted(set(rests)):
        inverses = [resolvent(basis, alpha, beta, rest) for alpha in alphas]
        coefficients = [fitted(basis, inverse, y) for inverse in inverses]
        for U in (U for U, other in zip(folds, rests, strict=True) if other == rest):
            size, w_U = len(U), basis.weights[U]
            scores = np.empty((size, y.shape[1], len(alphas)))
            for k, (inverse, (c, f)) in enumerate(zip(inverses, coefficients, strict=True)):
                V_U, v_U = basis.vectors[U], inverse.v[U]
                B_UU = (V_U * inverse.factors) @ V_U.T + np.diag(inverse.rest[U])
                G_UU = B_UU - np.outer(v_U, v_U) / inverse.s
                KG_UU = np.eye(size) - inverse.shift * B_UU / w_U[:, None]
                KG_UU -= np.outer(1 - inverse.shift * v_U / w_U, v_U) / inverse.s
                scores[:, :, k] = f[U] - KG_UU @ np.linalg.solve(G_UU, c[U])
            yield U, scores


def fitted(basis: Spectrum, inverse: Resolvent, y: Array) -> tuple[Array, Array]:
    """Coefficients c = G y and scores K c of the model of all items."""
    By = basis.vectors @ (inverse.factors[:, None] * (basis.vectors.T @ y))
    By += inverse.rest[:, None] * y
    pull = inverse.v @ y / inverse.s
    c = By - np.outer(inverse.v, pull)
    step = inverse.shift / basis.weights
    return c, y - step[:, None] * By - np.outer(1 - step * inverse.v, pull)
