"""Items and pairs held out of one complete group: leave-one-out, folds of items, leave-pair-out.

Every two items of the group are an edge of magnitude y_i − y_j (ties included). Without some items
the group is a complete group again. The cost over its n items is

    κ Σ (y_i − f_i − b)² + ρ b²,   minimized over one common b,

ridge regression with an intercept b: ρ is zero for β = 0 and infinite for β = 1. Leaving items
out of a ridge regression is exact algebra on one matrix (docs/exact_cross_validation.md);
[RankRLS09] equation 38 is equivalent. Leave-pair-out is the case |U| = 2, written out, for items
without weights.

With weights w of the items the squares are weighted, and D = diag(w) takes the place of I beside K.
κ then depends on which items are held out, not only on their number: each fold has a resolvent.
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

PRODUCT_ROWS = 256  # rows of G computed by one matrix product
MAX_SCALE_RATIO = 1e3  # of the largest entries of two columns, for the usual singular values
EPSILON = float(np.finfo(float).eps)
PAIR_ROUNDING = 16.0  # rounding error of a pair's numerator, in units of ε √m times its terms


class Spectrum(NamedTuple):
    """``K = V diag(values) Vᵀ`` with orthonormal columns, as many as K has rank or rows.

    Attributes
    ----------
    values : ndarray of shape (r,)
        Eigenvalues of K; of ``D^½ K D^½`` for items with weights.
    vectors : ndarray of shape (m, r)
        V; D^½ V for items with weights.
    weight : ndarray of shape (m,)
        Weights of the items.
    first : ndarray of int or None
        For each item the first item that is equal to it; None if all differ.
    right : ndarray or None
        P of the singular value decomposition ``D^½ R = V diag(values)^½ Pᵀ``; None if K itself was
        decomposed.
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
        Diagonal of B on the complement of the vectors.
    v : ndarray of shape (m,)
        B 1.
    s : float
        1ᵀ B 1 + ρ/α, infinite without an intercept.
    diagonal : ndarray of shape (m,)
        Diagonal of G.
    """

    shift: float
    factors: Array
    rest: Array
    v: Array
    s: float
    diagonal: Array


def find_spectrum(
    matrix: Array,
    weight: Array | None = None,
    *,
    is_kernel: bool,
    centered: bool = False,
    overwrite: bool = False,
) -> Spectrum:
    """Spectrum of a kernel matrix K, or of K = R Rᵀ for features R.

    Eigenvalues below the rounding error of K are set to zero: if they were negative, small alphas
    would divide by them.

    Parameters
    ----------
    matrix : ndarray of shape (m, m) or (m, p)
        K or R.
    weight : ndarray of shape (m,), optional
        Weights of the items.
    is_kernel : bool
        Whether the matrix is K.
    centered : bool, default=False
        Whether to center the features.
    overwrite : bool, default=False
        Whether a kernel matrix may be overwritten.

    Returns
    -------
    Spectrum
        Without `first`.
    """
    if weight is None:
        weight = np.ones(len(matrix))
    root = np.sqrt(weight)[:, None]
    if is_kernel:
        K = matrix
        if not overwrite:
            K = matrix.copy()
    else:
        R = matrix
        if centered:  # a large mean costs digits
            R = center_columns(matrix, weight)
        if R.shape[1] < R.shape[0]:
            vectors, singular, right = decompose_columns(R * root)
            return Spectrum(singular**2, vectors * root, weight, right=right)
        K = R @ R.T
    largest = max(K.max(), -K.min())
    rounding = len(K) * EPSILON * largest * weight.max()
    if is_kernel and centered:
        K = center_kernel(K)
    K *= root
    K *= root.T
    columns_first = K
    if K.flags.c_contiguous:  # LAPACK overwrites columns
        columns_first = K.T
    with allow_threads(len(K) ** 3):
        values, vectors = scipy.linalg.eigh(columns_first, check_finite=False, overwrite_a=True)
    values[np.abs(values) <= rounding] = 0.0
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
    as long, so it is used only for columns with different units.
    """
    largest = np.abs(R).max(axis=0, initial=0.0)
    if largest.max(initial=0.0) <= MAX_SCALE_RATIO * largest.min(initial=np.inf):
        vectors, singular, transposed = scipy.linalg.svd(R, full_matrices=False, check_finite=False)
        return vectors, singular, transposed.T
    singular, vectors, right, scales, _, info = lapack.dgejsv(R, joba=0, jobu=0, jobv=0)
    if info:
        raise np.linalg.LinAlgError("the singular values of the features do not converge.")
    return vectors[:, : R.shape[1]], singular * (scales[0] / scales[1]), right


class TrainingWeight(NamedTuple):
    """Sums of weights over the items that a model is trained on.

    Attributes
    ----------
    items : float
        s = Σ w.
    pairs : float
        W, the sum over their pairs.
    """

    items: float
    pairs: float


def weight_without(basis: Spectrum, fold: Indices) -> TrainingWeight:
    """Weight of the items that models without a fold are trained on, and that of their pairs."""
    rest = np.delete(basis.weight, fold)
    total = rest.sum()
    return TrainingWeight(float(total), float(0.5 * rest @ (total - rest)))


def resolvent(basis: Spectrum, alpha: float, beta: float, training: TrainingWeight) -> Resolvent:
    """G of the models that are trained on items of this weight.

    The normalized cost of a complete group of items with weights w, s = Σ w and W the sum over its
    pairs, is ``κ Σ w e² − η (Σ w e)²`` with ``κ = (1−β) s/W + β/s`` and ``η = (1−β)/W``. An
    intercept with the penalty ρ = κ²/η − κ s gives the same cost when it is minimized away.
    """
    kappa = beta / training.items
    rho = np.inf
    if beta < 1:
        eta = (1 - beta) / training.pairs
        kappa += eta * training.items
        rho = kappa**2 / eta - kappa * training.items
    shift = alpha / kappa
    penalty = 0.0 if beta == 0 else rho / alpha
    m, rank = basis.vectors.shape
    eigenvalue_of_rest = 1.0 / shift if rank < m else 0.0
    diagonal_of_rest = eigenvalue_of_rest * basis.weight
    factors = 1.0 / (basis.values + shift) - eigenvalue_of_rest
    v = basis.vectors @ (factors * basis.vectors.sum(axis=0)) + diagonal_of_rest
    s = float(v.sum() + penalty)
    diagonal_of_B = np.einsum("ij,ij,j->i", basis.vectors, basis.vectors, factors)
    diagonal = diagonal_of_B + diagonal_of_rest - v**2 / s
    return Resolvent(shift, factors, diagonal_of_rest, v, s, diagonal)


class FullModel(NamedTuple):
    """The model of all items with the regularization of a model without a fold, for one alpha.

    Attributes
    ----------
    folds : list of int
        Numbers of the folds with this regularization.
    alpha_index : int
        Number of the alpha.
    resolvent : Resolvent
        G.
    coef : ndarray of shape (m, n_outputs)
        c = G y.
    scores : ndarray of shape (m, n_outputs)
        f = K c.
    """

    folds: list[int]
    alpha_index: int
    resolvent: Resolvent
    coef: Array
    scores: Array


def _full_models(
    basis: Spectrum, y: Array, folds: Sequence[Indices], alphas: Array, beta: float
) -> Iterator[FullModel]:
    """The full model of each alpha, for all folds of the same size and the same weight."""
    if beta == 0:
        y = y - y.mean(axis=0)  # only differences matter: a smaller y keeps more digits
    folds_by_weight: dict[tuple[int, TrainingWeight], list[int]] = {}
    for number, fold in enumerate(folds):
        key = (len(fold), weight_without(basis, fold))
        folds_by_weight.setdefault(key, []).append(number)
    for key in sorted(folds_by_weight):
        _, training = key
        for alpha_index, alpha in enumerate(alphas):
            inverse = resolvent(basis, float(alpha), beta, training)
            coef, scores = fitted(basis, inverse, y)
            yield FullModel(folds_by_weight[key], alpha_index, inverse, coef, scores)


def _block_of_B(basis: Spectrum, inverse: Resolvent, fold: Indices) -> Array:
    """B_UU."""
    V_U = basis.vectors[fold]
    return np.asarray((V_U * inverse.factors) @ V_U.T + np.diag(inverse.rest[fold]))


def hold_out_items(
    basis: Spectrum, y: Array, folds: Sequence[Indices], alphas: Array, beta: float, out: Array
) -> None:
    """Held-out scores of each fold.

        f_U = (K c)_U − (K G)_UU (G_UU)⁻¹ c_U

    Parameters
    ----------
    basis : Spectrum
        Of the kernel matrix of all items.
    y : ndarray of shape (m, n_outputs)
        Relevance.
    folds : sequence of ndarray of int
        Items of each fold.
    alphas : ndarray of shape (n_alphas,)
        Regularization.
    beta : float
        Share of the regression part.
    out : ndarray of shape (m, n_outputs, n_alphas)
        Receives the scores.
    """
    for model in _full_models(basis, y, folds, alphas, beta):
        for number in model.folds:
            fold = folds[number]
            out[fold, :, model.alpha_index] = _scores_without(basis, model, fold)


def hold_out_pairs(basis: Spectrum, y: Array, pairs: Indices, alpha: float, beta: float) -> Array:
    """Scores of both items of each pair by the model without the two, (n_pairs, 2, n_outputs).

    [RankRLS09] section 3.4; `pair_differences` has the differences of all pairs at once.
    """
    out = np.empty((len(pairs), 2, y.shape[1]))
    for model in _full_models(basis, y, list(pairs), np.array([alpha]), beta):
        for number in model.folds:
            out[number] = _scores_without(basis, model, pairs[number])
    return out


def _scores_without(basis: Spectrum, model: FullModel, fold: Indices) -> Array:
    """f_U by the model without the fold U."""
    inverse = model.resolvent
    v_U = inverse.v[fold]
    step_U = inverse.shift / basis.weight[fold]
    B_UU = _block_of_B(basis, inverse, fold)
    G_UU = B_UU - np.outer(v_U, v_U) / inverse.s
    KG_UU = np.eye(len(fold)) - step_U[:, None] * B_UU
    KG_UU -= np.outer(1 - step_U * v_U, v_U) / inverse.s
    correction = KG_UU @ np.linalg.solve(G_UU, model.coef[fold])
    return np.asarray(model.scores[fold] - correction)


def fitted(basis: Spectrum, inverse: Resolvent, y: Array) -> tuple[Array, Array]:
    """Coefficients c = G y and scores K c of the model of all items."""
    By = basis.vectors @ (inverse.factors[:, None] * (basis.vectors.T @ y))
    By += inverse.rest[:, None] * y
    intercept = inverse.v @ y / inverse.s
    coef = By - np.outer(inverse.v, intercept)
    step = inverse.shift / basis.weight
    scores = y - step[:, None] * By - np.outer(1 - step * inverse.v, intercept)
    return coef, scores


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

    with the G of `resolvent` for the list without U. With the singular value decomposition of R,
    ``Rᵀ B = P diag(σ/(σ² + λ')) Vᵀ D^½``.

    Parameters
    ----------
    basis, y, alphas, beta
        As in `hold_out_items`.
    R : ndarray of shape (m, p) or None
        Features; None for dual coefficients.
    units : sequence of ndarray of int
        Items of each unit.

    Returns
    -------
    ndarray of shape (m or p, n_units, n_outputs, n_alphas)
        Coefficients or weights.
    """
    if beta == 0:
        y = y - y.mean(axis=0)
    n_rows = len(y) if R is None else R.shape[1]
    coef = np.empty((n_rows, len(units), y.shape[1], len(alphas)))
    for model in _full_models(basis, y, units, alphas, beta):
        inverse = model.resolvent
        items = np.concatenate([units[number] for number in model.folds])
        if R is None:
            full = model.coef
            columns = _columns_of_G(basis, inverse, items)
        else:
            full, columns = _weights_and_columns(basis, inverse, R, y, items)
        stop = 0
        for number in model.folds:
            unit = units[number]
            start = stop
            stop = start + len(unit)
            v_U = inverse.v[unit]
            G_UU = _block_of_B(basis, inverse, unit) - np.outer(v_U, v_U) / inverse.s
            removed = columns[:, start:stop] @ np.linalg.solve(G_UU, model.coef[unit])
            coef[:, number, :, model.alpha_index] = full - removed
    if R is None:
        for number, unit in enumerate(units):
            coef[unit, number] = 0.0  # not its rounding error
    return coef


def _columns_of_G(basis: Spectrum, inverse: Resolvent, items: Indices) -> Array:
    """Columns of G that belong to these items."""
    columns = (basis.vectors * inverse.factors) @ basis.vectors[items].T
    columns += np.eye(len(basis.vectors))[:, items] * inverse.rest[items]
    columns -= np.outer(inverse.v, inverse.v[items] / inverse.s)
    return columns


def _weights_and_columns(
    basis: Spectrum, inverse: Resolvent, R: Array, y: Array, items: Indices
) -> tuple[Array, Array]:
    """``Rᵀ G y``, and the columns of ``Rᵀ G`` that belong to these items.

    Computed from the decomposition of R: the terms of a product Rᵀ B would cancel.
    """
    singular = np.sqrt(np.maximum(basis.values, 0.0))
    sums = basis.vectors.sum(axis=0)
    intercepts = inverse.v / inverse.s
    shrunk = right_vectors(basis, R) * (singular / (basis.values + inverse.shift))
    weights = shrunk @ (basis.vectors.T @ y - np.outer(sums, intercepts @ y))
    columns = shrunk @ (basis.vectors[items].T - np.outer(sums, intercepts[items]))
    return weights, columns


def right_vectors(basis: Spectrum, R: Array) -> Array:
    """P with ``D^½ R = V diag(values)^½ Pᵀ``; zero where the eigenvalue is zero."""
    if basis.right is not None:
        return basis.right
    singular = np.sqrt(np.maximum(basis.values, 0.0))
    inverse_singular = np.divide(1.0, singular, out=np.zeros_like(singular), where=singular > 0)
    return (R.T @ basis.vectors) * inverse_singular


def pair_differences(
    basis: Spectrum, y: Array, alpha: float, beta: float, n_entries: int
) -> Iterator[tuple[slice, Array]]:
    """Leave-pair-out: blocks of rows i of ``f_i − f_j``, shape (rows, m, n_outputs).

        f_i − f_j = y_i − y_j − [(G_jj + G_ij) u_i − (G_ii + G_ij) u_j] / (G_ii G_jj − G_ij²)

    with u = G y, for every pair, in blocks of at most `n_entries` entries. Differences that are
    rounding errors of zero are set to zero (`_PairNumerators.rounding`).
    """
    if beta == 0:
        y = y - y.mean(axis=0)
    height = max(1, n_entries // y.size)
    inverse = _resolvent_without_pair(basis, alpha, beta)
    outputs = [_PairNumerators(basis, inverse, column) for column in y.T]
    all_columns = slice(0, len(y))
    for rows, G in _blocks(basis, inverse, height, whole=True):
        differences = np.empty((*G.shape, y.shape[1]))
        determinant = np.outer(inverse.diagonal[rows], inverse.diagonal) - G * G
        local_rows = np.arange(len(G))
        for output, pairs in enumerate(outputs):
            numerators, _ = pairs.numerators(rows, all_columns, G, determinant)
            numerators[local_rows, rows.start + local_rows] = 0.0
            differences[:, :, output] = numerators
        determinant[determinant == 0] = 1.0  # zero by rounding
        differences /= determinant[:, :, None]
        yield rows, differences


def pair_disagreement(
    basis: Spectrum, y: Array, alphas: Array, beta: float, n_entries: int = 2**15
) -> Array:
    """Share of the pairs with different y that leave-pair-out orders wrongly; a tie is one half.

    The determinant is positive, so the sign of a difference is that of its numerator and nothing is
    divided. Blocks of n_entries stay in the cache for all outputs. The pair (j, i) follows from
    (i, j).

    Returns
    -------
    ndarray of shape (n_outputs, n_alphas)
        Shares; nan for an output whose y are all equal.
    """
    n_pairs = np.array([[_count_pairs(column)] for column in y.T])
    y = y / binary_scale(y)  # sums of large scores must not overflow
    if beta == 0:
        y = y - y.mean(axis=0)
        y = y / binary_scale(y)  # products of small differences must not vanish

    def count_for(alphas_of_thread: list[float]) -> list[list[float]]:
        return [_count_wrong(basis, y, alpha, beta, n_entries) for alpha in alphas_of_thread]

    n_multiplications = basis.vectors.size * len(y) * len(alphas) / 2
    counts_by_thread = map_in_threads(count_for, alphas.tolist(), n_multiplications)
    wrong = np.concatenate(counts_by_thread).T
    share: Array = np.full_like(wrong, np.nan)
    np.divide(wrong, n_pairs, out=share, where=n_pairs > 0)
    return share


def _count_pairs(y: Array) -> float:
    """Number of pairs with different y."""
    _, tied = np.unique(y, return_counts=True)
    tied = tied.astype(float)
    return float(len(y) ** 2 - tied @ tied) / 2


def _count_wrong(
    basis: Spectrum, y: Array, alpha: float, beta: float, n_entries: int
) -> list[float]:
    """Pairs in the wrong order for each output, for one alpha."""
    inverse = _resolvent_without_pair(basis, alpha, beta)
    outputs = [_PairNumerators(basis, inverse, column) for column in y.T]
    wrong = [0.0] * len(outputs)
    height = max(1, n_entries // len(y))
    for rows, G in _blocks(basis, inverse, height, whole=False):
        columns = slice(rows.start, len(y))
        determinant = np.outer(inverse.diagonal[rows], inverse.diagonal[columns]) - G * G
        for output, pairs in enumerate(outputs):
            wrong[output] += pairs.count_wrong(rows, columns, G, determinant)
    return wrong


def _resolvent_without_pair(basis: Spectrum, alpha: float, beta: float) -> Resolvent:
    """G of the models without two items, the same for all pairs of items without weights."""
    return resolvent(basis, alpha, beta, weight_without(basis, np.arange(2)))


class _PairNumerators:
    """Numerators of the differences of all pairs for one output and one alpha, and their rounding.

    Attributes
    ----------
    y : ndarray of shape (m,)
        Relevance.
    """

    def __init__(self, basis: Spectrum, inverse: Resolvent, y: Array) -> None:
        self.y = y
        self._g = inverse.diagonal
        self._first = basis.first
        coef, _ = fitted(basis, inverse, y[:, None])
        self._u = coef[:, 0]
        diagonal_of_B = inverse.diagonal + inverse.v**2 / inverse.s
        self._root_of_B = np.sqrt(np.abs(diagonal_of_B) + inverse.rest)
        self._sensitivity = self._sensitivity_of_scores(basis, inverse)
        self._tolerance = PAIR_ROUNDING * EPSILON * np.sqrt(len(y))
        self._largest_y = np.abs(y).max()
        largest_g = self._g.max()
        largest_terms = 8 * largest_g * self._largest_y + 2 * np.abs(self._u).max()
        largest_sum = self._root_of_B.max() ** 2 * largest_terms
        largest_sum += largest_g**2 * self._sensitivity
        self._max_rounding = self._tolerance * largest_sum

    def _sensitivity_of_scores(self, basis: Spectrum, inverse: Resolvent) -> float:
        """The s of `rounding`: change of the scores per relative error of K or R."""
        values = np.maximum(basis.values, 0.0)
        largest = values.max(initial=0.0)
        if inverse.rest.any():
            ratios = np.sqrt(largest * values) / (values + inverse.shift)
            return float(np.max(ratios, initial=0.0) * np.linalg.norm(self.y))
        return float(largest * np.sqrt(abs(float(self.y @ self._u)) / inverse.shift))

    def numerators(
        self, rows: slice, columns: slice, G: Array, determinant: Array
    ) -> tuple[Array, bool]:
        """``(f_i − f_j) (G_ii G_jj − G_ij²)``, zero for ties; and whether there are ties.

        Equal items are ties, and so are pairs whose sign is lost to rounding.
        """
        y = self.y
        g = self._g
        u = self._u
        row_factors = np.stack([g[rows], -u[rows]], axis=1)
        numerators = row_factors @ np.stack([u[columns], g[columns]])
        numerators += (y[rows, None] - y[columns]) * determinant
        numerators -= (u[rows, None] - u[columns]) * G
        i, j = np.nonzero(np.abs(numerators) <= self._max_rounding)
        rounding = self.rounding(i + rows.start, j + columns.start, determinant[i, j])
        is_tie = np.abs(numerators[i, j]) <= rounding
        numerators[i[is_tie], j[is_tie]] = 0.0
        if self._first is None:
            return numerators, bool(is_tie.any())
        numerators[self._first[rows, None] == self._first[columns]] = 0.0
        return numerators, True

    def rounding(self, i: Indices, j: Indices, determinant: Array) -> Array:
        """Bound of the rounding error of a numerator; larger numerators have a sign.

            ε √(B_ii B_jj) [(G_ii + G_jj)(|y_i − y_j| + 2 max|y|) + |u_i| + |u_j|] + ε s (det)

        The first term is the rounding of G, relative to the terms ``B_ii`` that cancel in it, and
        of u. The second is that of the decomposition, which is exact for a matrix K + E with
        ``‖E‖ ≤ ε ‖K‖``. Coefficients c of a model without two items turn E into a difference of
        ``‖E‖ ‖c‖`` at most, and the objective bounds ``‖c‖² ≤ yᵀu/λ'``, so ``s = ‖K‖ √(yᵀu/λ')``.
        For features R an error of ``ε ‖R‖`` moves the fit by ``s = ‖y‖ ‖R‖ max σ/(σ² + λ')`` over
        the singular values. ε is `PAIR_ROUNDING` √m units in the last place.
        """
        y_terms = np.abs(self.y[i] - self.y[j]) + 2 * self._largest_y
        G_terms = (self._g[i] + self._g[j]) * y_terms + np.abs(self._u[i]) + np.abs(self._u[j])
        scale = self._root_of_B[i] * self._root_of_B[j]
        return np.asarray(self._tolerance * (scale * G_terms + self._sensitivity * determinant))

    def count_wrong(self, rows: slice, columns: slice, G: Array, determinant: Array) -> float:
        """Pairs i < j in the wrong order, ties one half; the block starts on the diagonal."""
        numerators, has_ties = self.numerators(rows, columns, G, determinant)
        y_difference = self.y[rows, None] - self.y[columns]
        square = slice(0, len(G))
        y_difference[:, square] = np.triu(y_difference[:, square], 1)
        n_ties = 0
        if has_ties:
            n_ties = int(np.count_nonzero((numerators == 0) & (y_difference != 0)))
        numerators *= y_difference
        return np.count_nonzero(numerators < 0) + 0.5 * n_ties


def _blocks(
    basis: Spectrum, inverse: Resolvent, height: int, *, whole: bool
) -> Iterator[tuple[slice, Array]]:
    """Blocks of at most `height` rows of G: all columns, or those from the diagonal on.

    G is computed by matrix products of more rows.
    """
    m = len(inverse.v)
    product_rows = max(height, PRODUCT_ROWS)
    for top in range(0, m, product_rows):
        left = 0 if whole else top
        scaled = basis.vectors[top : top + product_rows] * inverse.factors
        product = scaled @ basis.vectors[left:].T
        bottom = top + len(product)
        for start in range(top, bottom, height):
            rows = slice(start, min(start + height, bottom))
            first_column = 0 if whole else start
            G = product[start - top : rows.stop - top, first_column - left :]
            G -= np.outer(inverse.v[rows] / inverse.s, inverse.v[first_column:])
            yield rows, G
