"""Items and pairs held out of one complete group: leave-one-out, folds of items, leave-pair-out.

Every two items of the group are an edge of magnitude y_i − y_j (ties included). Taking items out
cuts edges, but what is left is a complete group again. The cost over its n items is

    κ Σ (y_i − f_i − b)² + ρ b²,   minimized over one common b,

ridge regression with an intercept b: ρ is zero for β = 0 and infinite for β = 1. Leaving items
out of a ridge regression is exact algebra on one matrix (docs/exact_cross_validation.md);
[RankRLS09] equation 38 is the same thing written longer. Leave-pair-out is the same with |U| = 2,
written out, for items without weights.

With weights w of the items the squares are weighted, and D = diag(w) takes the place of I beside K.
κ then depends on which items are held out, not on how many: every fold has a resolvent of its own.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
import scipy.linalg
from scipy.linalg import lapack

from rankwise.arrays import Array, Indices
from rankwise.kernels.kernel import center_kernel
from rankwise.runtime.threads import allow_threads, map_in_threads
from rankwise.solvers.least_squares import binary_scale

PRODUCT_ROWS = 256  # of G computed by one matrix product
SIMILAR = 1e3  # ratio of the largest entries of two columns up to which their units are alike
ROUNDING = 16.0  # units in the last place, times √m, that may be wrong


class Spectrum(NamedTuple):
    """``K = V diag(values) Vᵀ`` with orthonormal columns, as many as K has rank or rows.

    With weights of the items it is the spectrum of ``D^½ K D^½``, and the vectors are D^½ V.
    `first` is for each item the first that is equal to it, None if all differ. `right` is P of the
    singular value decomposition ``D^½ R = V diag(values)^½ Pᵀ``, None if K itself was decomposed.
    """

    values: Array
    vectors: Array
    weight: Array
    first: Indices | None = None
    right: Array | None = None


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


def find_spectrum(
    matrix: Array, weight: Array | None = None, *, is_kernel: bool, centered: bool = False
) -> Spectrum:
    """Spectrum of a kernel matrix, which is overwritten, or of K = R Rᵀ for features R.

    The features are centered if wanted. Eigenvalues below the rounding of K are set to zero: if
    they were negative, small alphas would divide by them.
    """
    weight = np.ones(len(matrix)) if weight is None else weight
    root, K = np.sqrt(weight)[:, None], matrix
    if not is_kernel:
        R = center_columns(matrix, weight) if centered else matrix  # a large mean costs digits
        if R.shape[1] < R.shape[0]:
            vectors, singular, right = decompose_columns(R * root)
            return Spectrum(singular**2, vectors * root, weight, right=right)
        K = R @ R.T
    noise = len(K) * np.finfo(float).eps * max(K.max(), -K.min()) * weight.max()
    if is_kernel and centered:
        K = center_kernel(K)
    K *= root
    K *= root.T
    columns_first = K.T if K.flags.c_contiguous else K  # which LAPACK can overwrite
    with allow_threads(len(K) ** 3):
        values, vectors = scipy.linalg.eigh(columns_first, check_finite=False, overwrite_a=True)
    values[np.abs(values) <= noise] = 0.0
    vectors *= root
    return Spectrum(values, vectors, weight)


def center_columns(R: Array, weight: Array | None) -> Array:
    """The features less their weighted means."""
    return np.asarray(R - np.average(R, axis=0, weights=weight))


def decompose_columns(R: Array) -> tuple[Array, Array, Array]:
    """V, σ and P with ``R = V diag(σ) Pᵀ``, for at most as many columns as rows.

    The usual algorithm is exact relative to the largest singular value only, and columns in much
    smaller units lose their digits. Jacobi's method keeps the digits of every column (Drmač and
    Veselić, SIAM Journal on Matrix Analysis and Applications 29, 2008). It takes two to three times
    as long, so it is for columns whose units differ.
    """
    largest = np.abs(R).max(axis=0, initial=0.0)
    if largest.max(initial=0.0) <= SIMILAR * largest.min(initial=np.inf):
        vectors, singular, transposed = scipy.linalg.svd(R, full_matrices=False, check_finite=False)
        return vectors, singular, transposed.T
    singular, vectors, right, scales, _, info = lapack.dgejsv(R, joba=0, jobu=0, jobv=0)
    if info:
        raise np.linalg.LinAlgError("the singular values of the features do not converge.")
    return vectors[:, : R.shape[1]], singular * (scales[0] / scales[1]), right


def resolvent(basis: Spectrum, alpha: float, beta: float, rest: tuple[float, float]) -> Resolvent:
    """G for models trained on some of the items, with the weights of `rest_of_items`.

    The normalized cost of a complete group of items with weights w, s = Σ w and W the sum over its
    pairs, is ``κ Σ w e² − η (Σ w e)²`` with ``κ = (1−β) s/W + β/s`` and ``η = (1−β)/W``. An
    intercept with the penalty ρ = κ²/η − κ s gives the same cost when it is minimized away.
    """
    size, pairs = rest
    kappa, eta = beta / size, 0.0
    if beta < 1:
        eta = (1 - beta) / pairs
        kappa += eta * size
    rho = np.inf if eta == 0 else kappa**2 / eta - kappa * size
    shift, penalty = alpha / kappa, 0.0 if beta == 0 else rho / alpha
    m, rank = basis.vectors.shape
    outside = 1.0 / shift if rank < m else 0.0
    outer = outside * basis.weight
    factors = 1.0 / (basis.values + shift) - outside
    v = basis.vectors @ (factors * basis.vectors.sum(axis=0)) + outer
    s = float(v.sum() + penalty)
    diagonal = np.einsum("ij,ij,j->i", basis.vectors, basis.vectors, factors) + outer - v**2 / s
    return Resolvent(shift, factors, outer, v, s, diagonal)


def rest_of_items(basis: Spectrum, held: Indices) -> tuple[float, float]:
    """Weight of the items that models without some are trained on, and that of their pairs."""
    kept = np.delete(basis.weight, held)
    return float(kept.sum()), float(0.5 * kept @ (kept.sum() - kept))


def _models(
    basis: Spectrum, y: Array, folds: Sequence[Indices], alphas: Array, beta: float
) -> Iterator[tuple[list[int], int, Resolvent, Array, Array]]:
    """Numbers of folds that share G, the number of the alpha, G, and the c and f of all items."""
    if beta == 0:
        y = y - y.mean(axis=0)  # only differences count: a smaller y keeps more digits
    rests = [(len(U), rest_of_items(basis, U)) for U in folds]
    for size, rest in sorted(set(rests)):
        numbers = [k for k, other in enumerate(rests) if other == (size, rest)]
        for a, alpha in enumerate(alphas):
            inverse = resolvent(basis, float(alpha), beta, rest)
            yield numbers, a, inverse, *fitted(basis, inverse, y)


def _corner(basis: Spectrum, inverse: Resolvent, U: Indices) -> Array:
    """B_UU."""
    V_U = basis.vectors[U]
    return np.asarray((V_U * inverse.factors) @ V_U.T + np.diag(inverse.rest[U]))


def hold_out_items(
    basis: Spectrum, y: Array, folds: Sequence[Indices], alphas: Array, beta: float, out: Array
) -> None:
    """Held-out scores of each fold.

    f_U = (K c)_U − (K G)_UU (G_UU)⁻¹ c_U
    """
    for numbers, a, inverse, c, f in _models(basis, y, folds, alphas, beta):
        for U in (folds[k] for k in numbers):
            v_U, w_U = inverse.v[U], basis.weight[U]
            B_UU = _corner(basis, inverse, U)
            G_UU = B_UU - np.outer(v_U, v_U) / inverse.s
            KG_UU = np.eye(len(U)) - inverse.shift * B_UU / w_U[:, None]
            KG_UU -= np.outer(1 - inverse.shift * v_U / w_U, v_U) / inverse.s
            out[U, :, a] = f[U] - KG_UU @ np.linalg.solve(G_UU, c[U])


def fitted(basis: Spectrum, inverse: Resolvent, y: Array) -> tuple[Array, Array]:
    """Coefficients c = G y and scores K c of the model of all items."""
    By = basis.vectors @ (inverse.factors[:, None] * (basis.vectors.T @ y))
    By += inverse.rest[:, None] * y
    pull = inverse.v @ y / inverse.s
    c = By - np.outer(inverse.v, pull)
    step = inverse.shift / basis.weight
    return c, y - step[:, None] * By - np.outer(1 - step * inverse.v, pull)


def leave_out_items(
    basis: Spectrum,
    R: Array | None,
    y: Array,
    units: Sequence[Indices],
    alphas: Array,
    beta: float,
) -> Array:
    """Items of one complete list left out: dual coefficients, or weights of the features R.

        c_without = c − G_{·U} (G_UU)⁻¹ c_U,     w = Rᵀ c

    with the G of `rankwise.solvers.leave_items_out` for the list without U. With the singular value
    decomposition of R, ``Rᵀ B = P diag(σ/(σ² + λ')) Vᵀ D^½``.
    """
    if beta == 0:
        y = y - y.mean(axis=0)
    if R is not None:
        right = right_vectors(basis, R)
        roots = np.sqrt(np.maximum(basis.values, 0.0))
        total = basis.vectors.sum(axis=0)
    n_rows = len(y) if R is None else R.shape[1]
    out = np.empty((n_rows, len(units), y.shape[1], len(alphas)))
    for numbers, a, inverse, c, _ in _models(basis, y, units, alphas, beta):
        items = np.concatenate([units[k] for k in numbers])
        pull = inverse.v / inverse.s
        if R is None:
            whole = c
            columns = (basis.vectors * inverse.factors) @ basis.vectors[items].T
            columns += np.eye(len(y))[:, items] * inverse.rest[items]
            columns -= np.outer(inverse.v, pull[items])
        else:  # Rᵀ B from the decomposition of R: as a product its terms would cancel
            shrunk = right * (roots / (basis.values + inverse.shift))
            whole = shrunk @ (basis.vectors.T @ y - np.outer(total, pull @ y))
            columns = shrunk @ (basis.vectors[items].T - np.outer(total, pull[items]))
        stop = 0
        for k in numbers:
            U = units[k]
            start, stop = stop, stop + len(U)
            G_UU = _corner(basis, inverse, U) - np.outer(inverse.v[U], inverse.v[U]) / inverse.s
            out[:, k, :, a] = whole - columns[:, start:stop] @ np.linalg.solve(G_UU, c[U])
    if R is None:
        for k, U in enumerate(units):
            out[U, k] = 0.0  # what rounding leaves
    return out


def right_vectors(basis: Spectrum, R: Array) -> Array:
    """P with ``D^½ R = V diag(values)^½ Pᵀ``; zero where the eigenvalue is."""
    if basis.right is not None:
        return basis.right
    roots = np.sqrt(np.maximum(basis.values, 0.0))
    inverse_roots = np.divide(1.0, roots, out=np.zeros_like(roots), where=roots > 0)
    return (R.T @ basis.vectors) * inverse_roots


def pair_differences(
    basis: Spectrum, y: Array, alpha: float, beta: float, n_entries: int
) -> Iterator[tuple[slice, Array]]:
    """Leave-pair-out: blocks of rows i of ``f_i − f_j``, shape (rows, m, n_outputs).

        f_i − f_j = y_i − y_j − [(G_jj + G_ij) u_i − (G_ii + G_ij) u_j] / (G_ii G_jj − G_ij²)

    with u = G y, for every pair at once, in blocks of at most `n_entries` entries. What rounding
    leaves of a difference of zero is set to zero (`_Pairs.rounding`).
    """
    y = y - y.mean(axis=0) if beta == 0 else y
    height = max(1, n_entries // y.size)
    inverse = resolvent(basis, alpha, beta, rest_of_items(basis, np.arange(2)))
    pairs = [_Pairs(basis, inverse, column) for column in y.T]
    for rows, G in _blocks(basis, inverse, height, whole=True):
        block = np.empty((*G.shape, y.shape[1]))
        determinant = np.outer(pairs[0].g[rows], pairs[0].g) - G * G
        local = np.arange(len(G))
        for k, pair in enumerate(pairs):
            numerator, _ = pair.numerators(rows, slice(0, len(y)), G, determinant)
            numerator[local, rows.start + local] = 0.0
            block[:, :, k] = numerator
        determinant[determinant == 0] = 1.0  # zero by rounding
        block /= determinant[:, :, None]
        yield rows, block


def pair_disagreement(
    basis: Spectrum, y: Array, alphas: Array, beta: float, n_entries: int = 2**15
) -> Array:
    """Share of the pairs with different y that leave-pair-out orders wrongly, ties one half.

    Shape (n_outputs, n_alphas); nan for an output whose y are all equal. The determinant is
    positive, so the sign of a difference is that of its numerator and nothing is divided. Blocks
    of n_entries stay in the cache for all outputs. The pair (j, i) follows from (i, j).
    """
    tied = [np.unique(column, return_counts=True)[1].astype(float) for column in y.T]
    n_pairs = (len(y) ** 2 - np.array([n @ n for n in tied])[:, None]) / 2
    y = y / binary_scale(y)  # sums of large scores must not overflow
    if beta == 0:
        y = y - y.mean(axis=0)
        y = y / binary_scale(y)  # products of small differences must not vanish

    def count(some_alphas: list[float]) -> list[list[float]]:
        return [_count_wrong(basis, y, alpha, beta, n_entries) for alpha in some_alphas]

    n_multiplications = basis.vectors.size * len(y) * len(alphas) / 2
    runs = map_in_threads(count, alphas.tolist(), n_multiplications)
    wrong = np.concatenate(runs).T
    share: Array = np.full_like(wrong, np.nan)
    np.divide(wrong, n_pairs, out=share, where=n_pairs > 0)
    return share


def _count_wrong(
    basis: Spectrum, y: Array, alpha: float, beta: float, n_entries: int
) -> list[float]:
    """Pairs in the wrong order for each output, by one alpha."""
    inverse = resolvent(basis, alpha, beta, rest_of_items(basis, np.arange(2)))
    pairs = [_Pairs(basis, inverse, column) for column in y.T]
    wrong = [0.0] * len(pairs)
    for rows, G in _blocks(basis, inverse, max(1, n_entries // len(y)), whole=False):
        columns = slice(rows.start, len(y))
        determinant = np.outer(pairs[0].g[rows], pairs[0].g[columns]) - G * G
        for k, pair in enumerate(pairs):
            wrong[k] += pair.count_wrong(rows, columns, G, determinant)
    return wrong


class _Pairs:
    """One output and one alpha: numerators of the differences of all pairs, and their rounding."""

    def __init__(self, basis: Spectrum, inverse: Resolvent, y: Array) -> None:
        self.y = y
        self.g = inverse.diagonal
        self._first = basis.first
        self._wide = np.sqrt(np.abs(inverse.diagonal + inverse.v**2 / inverse.s) + inverse.rest)
        self._u = fitted(basis, inverse, y[:, None])[0][:, 0]
        values = np.maximum(basis.values, 0.0)
        top = values.max(initial=0.0)
        if inverse.rest.any():
            spread = float(np.max(np.sqrt(top * values) / (values + inverse.shift), initial=0.0))
            self._shaken = spread * np.linalg.norm(y)
        else:
            self._shaken = top * np.sqrt(abs(float(y @ self._u)) / inverse.shift)
        self._eps = ROUNDING * np.finfo(float).eps * np.sqrt(len(y))
        self._largest = np.abs(y).max()
        widest, g, u = self._wide.max(), self.g.max(), np.abs(self._u).max()
        most = widest**2 * (8 * g * self._largest + 2 * u) + g**2 * self._shaken
        self._limit = self._eps * most

    def numerators(
        self, rows: slice, columns: slice, G: Array, determinant: Array
    ) -> tuple[Array, bool]:
        """``(f_i − f_j) (G_ii G_jj − G_ij²)``, zero for ties; and whether there are ties.

        Equal items are ties. So are pairs whose sign is lost in rounding.
        """
        y, g, u = self.y, self.g, self._u
        left = np.stack([g[rows], -u[rows]], axis=1)
        numerators = left @ np.stack([u[columns], g[columns]])
        numerators += (y[rows, None] - y[columns]) * determinant
        numerators -= (u[rows, None] - u[columns]) * G
        i, j = np.nonzero(np.abs(numerators) <= self._limit)
        near = np.abs(numerators[i, j]) <= self.rounding(
            i + rows.start, j + columns.start, determinant[i, j]
        )
        numerators[i[near], j[near]] = 0.0
        if self._first is not None:
            numerators[self._first[rows, None] == self._first[columns]] = 0.0
        return numerators, bool(near.any()) or self._first is not None

    def rounding(self, i: Indices, j: Indices, determinant: Array) -> Array:
        """What rounding may leave of a numerator of zero; larger numerators have a sign.

            ε √(B_ii B_jj) [(G_ii + G_jj)(|y_i − y_j| + 2 max|y|) + |u_i| + |u_j|] + ε s (det)

        The first term is the rounding of G, relative to the terms ``B_ii`` that cancel in it, and
        of u. The second is that of the decomposition, which is exact for a matrix K + E with
        ``‖E‖ ≤ ε ‖K‖``. Coefficients c of a model without two items turn E into a difference of
        ``‖E‖ ‖c‖`` at most, and the objective bounds ``‖c‖² ≤ yᵀu/λ'``, so ``s = ‖K‖ √(yᵀu/λ')``.
        For features R an error of ``ε ‖R‖`` moves the fit by ``s = ‖y‖ ‖R‖ max σ/(σ² + λ')`` over
        the singular values. ε is `ROUNDING` √m units in the last place.
        """
        gap = np.abs(self.y[i] - self.y[j]) + 2 * self._largest
        moved = (self.g[i] + self.g[j]) * gap + np.abs(self._u[i]) + np.abs(self._u[j])
        return np.asarray(
            self._eps * (self._wide[i] * self._wide[j] * moved + self._shaken * determinant)
        )

    def count_wrong(self, rows: slice, columns: slice, G: Array, determinant: Array) -> float:
        """Pairs i < j in the wrong order, ties one half; the block starts on the diagonal."""
        numerators, has_ties = self.numerators(rows, columns, G, determinant)
        gap = self.y[rows, None] - self.y[columns]
        gap[:, : len(G)] = np.triu(gap[:, : len(G)], 1)
        if has_ties:
            ties = np.count_nonzero((numerators == 0) & (gap != 0))
        numerators *= gap
        return np.count_nonzero(numerators < 0) + (0.5 * ties if has_ties else 0.0)


def _blocks(
    basis: Spectrum, inverse: Resolvent, height: int, *, whole: bool
) -> Iterator[tuple[slice, Array]]:
    """Blocks of at most `height` rows of G: all columns, or those from the diagonal on.

    G comes from matrix products of more rows.
    """
    m = len(inverse.v)
    many = max(height, PRODUCT_ROWS)
    for top in range(0, m, many):
        left = 0 if whole else top
        scaled = basis.vectors[top : top + many] * inverse.factors
        product = scaled @ basis.vectors[left:].T
        for start in range(top, top + len(product), height):
            rows = slice(start, min(start + height, top + len(product)))
            first = 0 if whole else start
            G = product[start - top : rows.stop - top, first - left :]
            G -= np.outer(inverse.v[rows] / inverse.s, inverse.v[first:])
            yield rows, G
