"""Hold-out in one complete group: leave-one-out, folds of items, leave-pair-out.

Every two items of the group are an edge of magnitude y_i − y_j (ties included). Without some items
the group is a complete group again. The cost over its n items is

    κ Σ (y_i − f_i − b)² + ρ b²,   minimized over one common b,

ridge regression with an intercept b: ρ is zero for β = 0 and infinite for β = 1. Leaving items
out of a ridge regression is exact algebra on one matrix (docs/exact_cross_validation.md);
[RankRLS09] equation 38 is equivalent. Leave-pair-out is the case |U| = 2, written out, for items
without weights.

With weights w of the items the squares are weighted, and ``K + λ'D⁻¹`` with D = diag(w) replaces
``K + λ'I``. κ then depends on the held-out items, not only on their number, so each fold has its
own resolvent.
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
    """``K = V diag(eigenvalues) Vᵀ`` with orthonormal columns; their number is the rank of K or its
    rows.

    Attributes
    ----------
    eigenvalues : ndarray of shape (r,)
        Of K; of ``D^½ K D^½`` for items with weights.
    vectors : ndarray of shape (m, r)
        V; D^½ V for items with weights.
    weight : ndarray of shape (m,)
        Weights of the items.
    first_equal_item : ndarray of int or None
        For each item the first item that is equal to it; None if all differ.
    right_vectors : ndarray or None
        P of the singular value decomposition ``D^½ R = V diag(eigenvalues)^½ Pᵀ``; None if K itself
        was decomposed.
    """

    eigenvalues: Array
    vectors: Array
    weight: Array
    first_equal_item: Indices | None = None
    right_vectors: Array | None = None


class Resolvent(NamedTuple):
    """``G = B − v vᵀ / s`` with ``B = (K + λ'D⁻¹)⁻¹``, ``v = B 1``; G y = c are the coefficients.

    B is ``V diag(vector_factors) Vᵀ + diag(complement_diagonal)`` with the vectors V of a spectrum.

    Attributes
    ----------
    shift : float
        λ' = α / κ.
    vector_factors : ndarray of shape (r,)
        Eigenvalues of B on the vectors, less the eigenvalue on their complement.
    complement_diagonal : ndarray of shape (m,)
        Diagonal of B on the complement of the vectors; 0 if there is none.
    B_ones : ndarray of shape (m,)
        v = B 1.
    pivot : float
        s = 1ᵀ B 1 + ρ/α, infinite without an intercept.
    diagonal_of_G : ndarray of shape (m,)
        Diagonal of G.
    """

    shift: float
    vector_factors: Array
    complement_diagonal: Array
    B_ones: Array
    pivot: float
    diagonal_of_G: Array


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
        Without `first_equal_item`.
    """
    # eigenvalues of D^½ K D^½, and D^½ times its eigenvectors, with the item weights D; K = R Rᵀ
    # for features R
    if weight is None:
        weight = np.ones(len(matrix))
    root_of_weight = np.sqrt(weight)[:, None]
    if is_kernel:
        K = matrix
        if not overwrite:
            K = matrix.copy()
    else:
        R = matrix
        if centered:  # a large mean costs digits
            R = center_columns(matrix, weight)
        n_items, n_features = R.shape
        if n_features < n_items:
            vectors, singular_values, right_vectors = decompose_columns(R * root_of_weight)
            return Spectrum(
                singular_values**2,
                vectors * root_of_weight,
                weight,
                right_vectors=right_vectors,
            )
        K = R @ R.T

    largest_entry = max(K.max(), -K.min())
    rounding_error = len(K) * EPSILON * largest_entry * weight.max()
    if is_kernel and centered:
        K = center_kernel(K)
    K *= root_of_weight
    K *= root_of_weight.T
    if K.flags.c_contiguous:
        K = K.T  # the same matrix in the order that LAPACK can overwrite
    with allow_threads(len(K) ** 3):
        eigenvalues, vectors = scipy.linalg.eigh(K, check_finite=False, overwrite_a=True)
    eigenvalues[np.abs(eigenvalues) <= rounding_error] = 0.0  # K may have a smaller rank
    vectors *= root_of_weight
    return Spectrum(eigenvalues, vectors, weight)


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
    # R = U diag(singular_values) Vᵀ; if the scales of the columns differ, the usual algorithm loses
    # digits of small columns
    column_scale = np.abs(R).max(axis=0, initial=0.0)
    largest_scale = column_scale.max(initial=0.0)
    smallest_scale = column_scale.min(initial=np.inf)
    if largest_scale <= MAX_SCALE_RATIO * smallest_scale:
        U, singular_values, Vt = scipy.linalg.svd(R, full_matrices=False, check_finite=False)
        return U, singular_values, Vt.T

    # the accurate algorithm returns singular values divided by scales[0] / scales[1]
    singular_values, U, V, scales, _, info = lapack.dgejsv(R, joba=0, jobu=0, jobv=0)
    if info:
        raise np.linalg.LinAlgError("the singular values of the features do not converge.")
    n_features = R.shape[1]
    return U[:, :n_features], singular_values * (scales[0] / scales[1]), V


class TrainingWeight(NamedTuple):
    """Sums of weights over the items that a model is trained on.

    Attributes
    ----------
    item_weight : float
        s = Σ w.
    pair_weight : float
        W, the sum over their pairs.
    """

    item_weight: float
    pair_weight: float


def weight_without(spectrum: Spectrum, fold: Indices) -> TrainingWeight:
    """Weight of the items that models without a fold are trained on, and that of their pairs."""
    weight = np.delete(spectrum.weight, fold)
    total = weight.sum()
    # Σ w_i w_j over the pairs i < j is half of Σ w_i (s − w_i)
    return TrainingWeight(
        item_weight=float(total), pair_weight=float(0.5 * weight @ (total - weight))
    )


def make_resolvent(
    spectrum: Spectrum, alpha: float, beta: float, training: TrainingWeight
) -> Resolvent:
    """G of the models that are trained on items of this weight.

    The normalized cost of a complete group of items with weights w, s = Σ w and W the sum over its
    pairs, is ``κ Σ w e² − η (Σ w e)²`` with ``κ = (1−β) s/W + β/s`` and ``η = (1−β)/W``. An
    intercept with the penalty ρ = κ²/η − κ s gives the same cost when it is minimized away.
    """
    # the loss κ Σ w e² − η (Σ w e)² of errors e = y − f, weighted w, over all pairs (1 − β) and all
    # items (β), is that of κ Σ w (e − b)² + ρ b² with the best intercept b: a ridge regression.
    # G = (K + λ'D⁻¹)⁻¹ with that intercept eliminated; c = G y are the dual coefficients. With the
    # weights s of the items and W of their pairs κ = (1−β) s/W + β/s, η = (1−β)/W, ρ = κ²/η − κ s
    kappa = beta / training.item_weight
    rho = np.inf
    if beta < 1:
        eta = (1 - beta) / training.pair_weight
        kappa += eta * training.item_weight
        rho = kappa**2 / eta - kappa * training.item_weight
    intercept_penalty = 0.0  # ρ/α; ρ is exactly 0 if β = 0
    if beta > 0:
        intercept_penalty = rho / alpha
    shift = alpha / kappa  # λ'

    # B = (K + λ'D⁻¹)⁻¹ = V diag(vector_factors) Vᵀ + diag(complement_diagonal)
    eigenvalues_of_B = 1.0 / (spectrum.eigenvalues + shift)
    n_items, rank = spectrum.vectors.shape
    complement_eigenvalue = 0.0
    if rank < n_items:
        complement_eigenvalue = 1.0 / shift
    vector_factors = eigenvalues_of_B - complement_eigenvalue
    complement_diagonal = complement_eigenvalue * spectrum.weight

    # G = B − (B 1)(B 1)ᵀ / pivot
    V = spectrum.vectors
    B_ones = V @ (vector_factors * V.sum(axis=0)) + complement_diagonal
    pivot = float(B_ones.sum() + intercept_penalty)
    diagonal_of_B = np.einsum("ij,ij,j->i", V, V, vector_factors) + complement_diagonal
    diagonal_of_G = diagonal_of_B - B_ones**2 / pivot
    return Resolvent(shift, vector_factors, complement_diagonal, B_ones, pivot, diagonal_of_G)


class FullModel(NamedTuple):
    """The model of all items with the regularization of a model without a fold, for one alpha.

    Attributes
    ----------
    fold_numbers : list of int
        Folds with this regularization.
    alpha_index : int
        Number of the alpha.
    resolvent : Resolvent
        G.
    coef : ndarray of shape (m, n_outputs)
        c = G y.
    scores : ndarray of shape (m, n_outputs)
        f = K c.
    """

    fold_numbers: list[int]
    alpha_index: int
    resolvent: Resolvent
    coef: Array
    scores: Array


def _full_models(
    spectrum: Spectrum, y: Array, folds: Sequence[Indices], alphas: Array, beta: float
) -> Iterator[FullModel]:
    """The full model of each alpha, for all folds of the same size and the same weight."""
    # models of all items, one for each regularization that the models without a fold have
    if beta == 0:
        y = y - y.mean(axis=0)  # only differences matter: a smaller y keeps more digits
    # folds of the same size and weight have the same regularization, and so the same full model
    folds_by_weight: dict[tuple[int, TrainingWeight], list[int]] = {}
    for number, fold in enumerate(folds):
        size_and_weight = (len(fold), weight_without(spectrum, fold))
        folds_by_weight.setdefault(size_and_weight, []).append(number)
    for (_, training), fold_numbers in sorted(folds_by_weight.items()):
        for alpha_index, alpha in enumerate(alphas):
            resolvent = make_resolvent(spectrum, float(alpha), beta, training)
            coef, scores = fit_all_items(spectrum, resolvent, y)
            yield FullModel(fold_numbers, alpha_index, resolvent, coef, scores)


def _block_of_B(spectrum: Spectrum, resolvent: Resolvent, fold: Indices) -> Array:
    """B_UU."""
    # rows and columns of the fold U in B = V diag(vector_factors) Vᵀ + diag(complement_diagonal)
    V_U = spectrum.vectors[fold]
    complement = np.diag(resolvent.complement_diagonal[fold])
    return np.asarray((V_U * resolvent.vector_factors) @ V_U.T + complement)


def _block_of_G(spectrum: Spectrum, resolvent: Resolvent, fold: Indices) -> Array:
    """G_UU."""
    # rows and columns of the fold U in G = B − (B 1)(B 1)ᵀ / pivot
    B_ones_U = resolvent.B_ones[fold]
    B_UU = _block_of_B(spectrum, resolvent, fold)
    return B_UU - np.outer(B_ones_U, B_ones_U) / resolvent.pivot


def hold_out_items(
    spectrum: Spectrum, y: Array, folds: Sequence[Indices], alphas: Array, beta: float, out: Array
) -> None:
    """Held-out scores of each fold.

        f_U = (K c)_U − (K G)_UU (G_UU)⁻¹ c_U

    Parameters
    ----------
    spectrum : Spectrum
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
    for model in _full_models(spectrum, y, folds, alphas, beta):
        for number in model.fold_numbers:
            fold = folds[number]
            out[fold, :, model.alpha_index] = _scores_without(spectrum, model, fold)


def hold_out_pairs(
    spectrum: Spectrum, y: Array, pairs: Indices, alpha: float, beta: float
) -> Array:
    """Scores of both items of each pair by the model without the two, (n_pairs, 2, n_outputs).

    [RankRLS09] section 3.4; `pair_differences` has the differences of all pairs at once.
    """
    out = np.empty((len(pairs), 2, y.shape[1]))
    for model in _full_models(spectrum, y, list(pairs), np.array([alpha]), beta):
        for number in model.fold_numbers:
            out[number] = _scores_without(spectrum, model, pairs[number])
    return out


def _scores_without(spectrum: Spectrum, model: FullModel, fold: Indices) -> Array:
    """f_U by the model without the fold U."""
    # scores of the fold U by the model without it: f_U − (K G)_UU (G_UU)⁻¹ c_U, with the scores f
    # and the coefficients c = G y of the model of all items; G = B − (B 1)(B 1)ᵀ / pivot
    resolvent = model.resolvent
    B_UU = _block_of_B(spectrum, resolvent, fold)
    B_ones_U = resolvent.B_ones[fold]
    G_UU = B_UU - np.outer(B_ones_U, B_ones_U) / resolvent.pivot

    # K G = (K B) − (K B 1)(B 1)ᵀ / pivot with K B = I − λ'D⁻¹ B, for item weights D
    shift_U = resolvent.shift / spectrum.weight[fold]  # λ'D⁻¹
    KB_UU = np.eye(len(fold)) - shift_U[:, None] * B_UU
    KB_ones_U = 1 - shift_U * B_ones_U
    KG_UU = KB_UU - np.outer(KB_ones_U, B_ones_U) / resolvent.pivot

    contribution_of_fold = KG_UU @ np.linalg.solve(G_UU, model.coef[fold])
    return np.asarray(model.scores[fold] - contribution_of_fold)


def fit_all_items(spectrum: Spectrum, resolvent: Resolvent, y: Array) -> tuple[Array, Array]:
    """Coefficients c = G y and scores K c of the model of all items."""
    # coefficients c = G y with G = B − (B 1)(B 1)ᵀ / pivot
    V = spectrum.vectors
    B_y = V @ (resolvent.vector_factors[:, None] * (V.T @ y))
    B_y += resolvent.complement_diagonal[:, None] * y
    intercept = resolvent.B_ones @ y / resolvent.pivot
    coef = B_y - np.outer(resolvent.B_ones, intercept)

    # scores K c by K B = I − λ'D⁻¹ B, for item weights D
    shift = resolvent.shift / spectrum.weight
    KB_ones = 1 - shift * resolvent.B_ones
    scores = y - shift[:, None] * B_y - np.outer(KB_ones, intercept)
    return coef, scores


def leave_out_items(
    spectrum: Spectrum,
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
    spectrum, y, alphas, beta
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
        y = y - y.mean(axis=0)  # only differences matter: a smaller y keeps more digits
    # dual coefficients without the unit U: c − G_{·U} (G_UU)⁻¹ c_U with c = G y of all items;
    # with features R the weights, Rᵀ times that
    if R is None:
        n_coef = len(y)
    else:
        n_coef = R.shape[1]
    coef = np.empty((n_coef, len(units), y.shape[1], len(alphas)))
    for model in _full_models(spectrum, y, units, alphas, beta):
        resolvent = model.resolvent
        items = np.concatenate([units[number] for number in model.fold_numbers])
        if R is None:
            coef_of_all_items = model.coef
            columns = _columns_of_G(spectrum, resolvent, items)
        else:
            coef_of_all_items, columns = _weights_and_columns(spectrum, resolvent, R, y, items)
        stop = 0
        for number in model.fold_numbers:
            unit = units[number]
            start = stop
            stop = start + len(unit)  # columns[:, start:stop] belong to the items of the unit
            G_UU = _block_of_G(spectrum, resolvent, unit)
            contribution = columns[:, start:stop] @ np.linalg.solve(G_UU, model.coef[unit])
            coef[:, number, :, model.alpha_index] = coef_of_all_items - contribution
    if R is None:
        for number, unit in enumerate(units):
            coef[unit, number] = 0.0  # not its rounding error
    return coef


def _columns_of_G(spectrum: Spectrum, resolvent: Resolvent, items: Indices) -> Array:
    """Columns of G that belong to these items."""
    # G = V diag(vector_factors) Vᵀ + diag(complement_diagonal) − (B 1)(B 1)ᵀ / pivot
    V = spectrum.vectors
    unit_vectors = np.eye(len(V))[:, items]
    columns = (V * resolvent.vector_factors) @ V[items].T
    columns += unit_vectors * resolvent.complement_diagonal[items]
    columns -= np.outer(resolvent.B_ones, resolvent.B_ones[items] / resolvent.pivot)
    return columns


def _weights_and_columns(
    spectrum: Spectrum, resolvent: Resolvent, R: Array, y: Array, items: Indices
) -> tuple[Array, Array]:
    """``Rᵀ G y``, and the columns of ``Rᵀ G`` that belong to these items.

    Computed from the decomposition of R: the terms of a product Rᵀ B would cancel.
    """
    # Rᵀ G = P diag(shrinkage) (Vᵀ − Vᵀ1 (B 1)ᵀ / pivot) with the singular vectors P and V of R
    V = spectrum.vectors
    V_sums = V.sum(axis=0)
    intercept_row = resolvent.B_ones / resolvent.pivot  # its product with y is the intercept
    singular_values = np.sqrt(np.maximum(spectrum.eigenvalues, 0.0))
    shrinkage = singular_values / (spectrum.eigenvalues + resolvent.shift)  # σ/(σ² + λ')
    shrunk_vectors = right_singular_vectors(spectrum, R) * shrinkage
    weights = shrunk_vectors @ (V.T @ y - np.outer(V_sums, intercept_row @ y))
    columns = shrunk_vectors @ (V[items].T - np.outer(V_sums, intercept_row[items]))
    return weights, columns


def right_singular_vectors(spectrum: Spectrum, R: Array) -> Array:
    """P with ``D^½ R = V diag(eigenvalues)^½ Pᵀ``; zero where the eigenvalue is zero."""
    if spectrum.right_vectors is not None:
        return spectrum.right_vectors
    # P of R = V diag(singular_values) Pᵀ
    singular_values = np.sqrt(np.maximum(spectrum.eigenvalues, 0.0))
    inverse = np.zeros_like(singular_values)
    np.divide(1.0, singular_values, out=inverse, where=singular_values > 0)
    return (R.T @ spectrum.vectors) * inverse


def pair_differences(
    spectrum: Spectrum, y: Array, alpha: float, beta: float, n_entries: int
) -> Iterator[tuple[slice, Array]]:
    """Leave-pair-out: blocks of rows i of ``f_i − f_j``, shape (rows, m, n_outputs).

        f_i − f_j = y_i − y_j − [(G_jj + G_ij) u_i − (G_ii + G_ij) u_j] / (G_ii G_jj − G_ij²)

    with u = G y, for every pair, in blocks of at most `n_entries` entries. Differences that are
    rounding errors of zero are set to zero (`_PairNumerators.rounding_bound`).
    """
    # for all pairs of items i and j the difference of their scores by a model without both
    if beta == 0:
        y = y - y.mean(axis=0)  # only differences matter: a smaller y keeps more digits
    # f_i − f_j = numerator / (G_ii G_jj − G_ij²), by models without i and j
    n_items, n_outputs = y.shape
    block_rows = max(1, n_entries // y.size)
    resolvent = _resolvent_without_pair(spectrum, alpha, beta)
    numerators_of_outputs = [_PairNumerators(spectrum, resolvent, column) for column in y.T]
    all_columns = slice(0, n_items)
    for rows, G in _blocks_of_G(spectrum, resolvent, block_rows, only_upper=False):
        determinant = np.outer(resolvent.diagonal_of_G[rows], resolvent.diagonal_of_G) - G * G
        differences = np.empty((*G.shape, n_outputs))
        row_in_block = np.arange(len(G))
        for output, pair_numerators in enumerate(numerators_of_outputs):
            numerators, _ = pair_numerators.of_block(rows, all_columns, G, determinant)
            numerators[row_in_block, rows.start + row_in_block] = 0.0  # an item with itself
            differences[:, :, output] = numerators
        determinant[determinant == 0] = 1.0  # zero by rounding
        differences /= determinant[:, :, None]
        yield rows, differences


def pair_disagreement(
    spectrum: Spectrum, y: Array, alphas: Array, beta: float, n_entries: int = 2**15
) -> Array:
    """Share of the pairs with different y that leave-pair-out orders wrongly; a tie is one half.

    The determinant is positive, so a difference has the sign of its numerator, and no division is
    needed. Blocks of n_entries stay in the cache for all outputs. The pair (j, i) follows from (i,
    j).

    Returns
    -------
    ndarray of shape (n_outputs, n_alphas)
        Shares; nan for an output whose y are all equal.
    """
    n_pairs = np.array([[_count_pairs_of_different_y(column)] for column in y.T])  # (n_outputs, 1)
    y = y / binary_scale(y)  # sums of large scores must not overflow
    if beta == 0:
        y = y - y.mean(axis=0)
        y = y / binary_scale(y)  # products of small differences must not vanish

    def count_for_alphas(alphas_of_thread: list[float]) -> list[list[float]]:
        return [_count_wrong(spectrum, y, alpha, beta, n_entries) for alpha in alphas_of_thread]

    n_multiplications = spectrum.vectors.size * len(y) * len(alphas) / 2
    counts_by_thread = map_in_threads(count_for_alphas, alphas.tolist(), n_multiplications)
    n_wrong = np.concatenate(counts_by_thread).T  # (n_outputs, n_alphas)
    share: Array = np.full_like(n_wrong, np.nan)
    np.divide(n_wrong, n_pairs, out=share, where=n_pairs > 0)
    return share


def _count_pairs_of_different_y(y: Array) -> float:
    """Number of pairs with different y."""
    _, n_items_per_value = np.unique(y, return_counts=True)
    n_items_per_value = n_items_per_value.astype(float)
    n_equal_ordered_pairs = n_items_per_value @ n_items_per_value
    return float(len(y) ** 2 - n_equal_ordered_pairs) / 2


def _count_wrong(
    spectrum: Spectrum, y: Array, alpha: float, beta: float, n_entries: int
) -> list[float]:
    """Pairs in the wrong order for each output, for one alpha."""
    # pairs in the wrong order, a tie counts half; the sign of f_i − f_j, by models without i and j,
    # is that of its numerator
    resolvent = _resolvent_without_pair(spectrum, alpha, beta)
    diagonal = resolvent.diagonal_of_G
    numerators_of_outputs = [_PairNumerators(spectrum, resolvent, column) for column in y.T]
    n_wrong = [0.0] * len(numerators_of_outputs)
    block_rows = max(1, n_entries // len(y))
    for rows, G in _blocks_of_G(spectrum, resolvent, block_rows, only_upper=True):
        columns = slice(rows.start, len(y))
        determinant = np.outer(diagonal[rows], diagonal[columns]) - G * G
        for output, pair_numerators in enumerate(numerators_of_outputs):
            n_wrong[output] += pair_numerators.count_wrong(rows, columns, G, determinant)
    return n_wrong


def _resolvent_without_pair(spectrum: Spectrum, alpha: float, beta: float) -> Resolvent:
    """G of the models without two items, the same for all pairs of items without weights."""
    any_pair = np.arange(2)  # without weights all pairs leave the same amount of items
    return make_resolvent(spectrum, alpha, beta, weight_without(spectrum, any_pair))


class _PairNumerators:
    """Numerators of the differences of all pairs for one output and one alpha, and their rounding.

    Attributes
    ----------
    y : ndarray of shape (m,)
        Relevance.
    """

    def __init__(self, spectrum: Spectrum, resolvent: Resolvent, y: Array) -> None:
        self.y = y
        self._diagonal_of_G = resolvent.diagonal_of_G
        self._first_equal_item = spectrum.first_equal_item
        coef, _ = fit_all_items(spectrum, resolvent, y[:, None])
        self._coef = coef[:, 0]  # u = G y

        # constants of `rounding_bound`; B is a sum of two terms that partly cancel, so its rounding
        # errors are relative to both
        diagonal_of_B = resolvent.diagonal_of_G + resolvent.B_ones**2 / resolvent.pivot
        self._root_of_B = np.sqrt(np.abs(diagonal_of_B) + resolvent.complement_diagonal)
        self._sensitivity = self._sensitivity_of_scores(spectrum, resolvent)
        self._rounding_unit = PAIR_ROUNDING * EPSILON * np.sqrt(len(y))
        self._largest_y = np.abs(y).max()

        # upper bound of `rounding_bound` for all pairs, with |y_i − y_j| ≤ 2 max|y| and det ≤ G²
        largest_G = self._diagonal_of_G.max()
        largest_terms = 8 * largest_G * self._largest_y + 2 * np.abs(self._coef).max()
        largest_sum = self._root_of_B.max() ** 2 * largest_terms
        largest_sum += largest_G**2 * self._sensitivity
        self._max_rounding = self._rounding_unit * largest_sum

    def _sensitivity_of_scores(self, spectrum: Spectrum, resolvent: Resolvent) -> float:
        """The s of `rounding_bound`: change of the scores per relative error of K or R."""
        # how much rounding of the matrix that was decomposed, R or K, may change the scores
        eigenvalues = np.maximum(spectrum.eigenvalues, 0.0)
        largest = eigenvalues.max(initial=0.0)
        has_fewer_features_than_items = resolvent.complement_diagonal.any()
        if has_fewer_features_than_items:  # R was decomposed: ‖y‖ ‖R‖ max σ/(σ² + λ')
            ratios = np.sqrt(largest * eigenvalues) / (eigenvalues + resolvent.shift)
            return float(np.max(ratios, initial=0.0) * np.linalg.norm(self.y))
        # K was decomposed: ‖K‖ √(yᵀu/λ')
        y_u = abs(float(self.y @ self._coef))
        return float(largest * np.sqrt(y_u / resolvent.shift))

    def of_block(
        self, rows: slice, columns: slice, G: Array, determinant: Array
    ) -> tuple[Array, bool]:
        """``(f_i − f_j) (G_ii G_jj − G_ij²)``, zero for ties; and whether there are ties.

        Equal items are ties, and so are pairs whose sign is lost to rounding.
        """
        y = self.y
        g = self._diagonal_of_G  # G_ii of each item
        u = self._coef
        # numerators of the differences f_i − f_j by models without i and j, with u = G y:
        # G_ii u_j − u_i G_jj + (y_i − y_j) determinant_ij − (u_i − u_j) G_ij
        numerators = np.stack([g[rows], -u[rows]], axis=1) @ np.stack([u[columns], g[columns]])
        numerators += (y[rows, None] - y[columns]) * determinant
        numerators -= (u[rows, None] - u[columns]) * G

        # the exact bound is computed only for numerators below the bound for all pairs
        i, j = np.nonzero(np.abs(numerators) <= self._max_rounding)
        rounding_bound = self.rounding_bound(i + rows.start, j + columns.start, determinant[i, j])
        is_tie = np.abs(numerators[i, j]) <= rounding_bound
        numerators[i[is_tie], j[is_tie]] = 0.0
        if self._first_equal_item is None:
            return numerators, bool(is_tie.any())
        are_equal = self._first_equal_item[rows, None] == self._first_equal_item[columns]
        numerators[are_equal] = 0.0
        return numerators, True

    def rounding_bound(self, i: Indices, j: Indices, determinant: Array) -> Array:
        """Bound of the rounding error of a numerator; larger numerators have a sign.

            ε √(B_ii B_jj) [(G_ii + G_jj)(|y_i − y_j| + 2 max|y|) + |u_i| + |u_j|] + ε s (det)

        The first term is the rounding of G, relative to the terms ``B_ii`` that cancel in it, and
        of u. The second is that of the decomposition, which is exact for a matrix K + E with
        ``‖E‖ ≤ ε ‖K‖``. Coefficients c of a model without two items turn E into a difference of
        ``‖E‖ ‖c‖`` at most, and the objective bounds ``‖c‖² ≤ yᵀu/λ'``, so ``s = ‖K‖ √(yᵀu/λ')``.
        For features R an error of ``ε ‖R‖`` moves the fit by ``s = ‖y‖ ‖R‖ max σ/(σ² + λ')`` over
        the singular values. ε is `PAIR_ROUNDING` √m units in the last place.
        """
        # of the numerator of the pair (i, j), with u = G y and the sensitivity s of its scores:
        # ε (√(B_ii B_jj) [(G_ii + G_jj)(|y_i − y_j| + 2 max|y|) + |u_i| + |u_j|] + s det)
        g = self._diagonal_of_G
        u = self._coef
        y_terms = np.abs(self.y[i] - self.y[j]) + 2 * self._largest_y
        G_terms = (g[i] + g[j]) * y_terms + np.abs(u[i]) + np.abs(u[j])
        scale = self._root_of_B[i] * self._root_of_B[j]
        terms = scale * G_terms + self._sensitivity * determinant
        return np.asarray(self._rounding_unit * terms)

    def count_wrong(self, rows: slice, columns: slice, G: Array, determinant: Array) -> float:
        """Pairs i < j in the wrong order, ties one half; the block starts on the diagonal."""
        # a pair is wrong if f_i − f_j has not the sign of y_i − y_j; a tie counts half
        numerators, has_ties = self.of_block(rows, columns, G, determinant)
        y_difference = self.y[rows, None] - self.y[columns]
        diagonal_square = slice(0, len(G))  # count its pairs once
        y_difference[:, diagonal_square] = np.triu(y_difference[:, diagonal_square], 1)
        n_ties = 0
        if has_ties:
            n_ties = int(np.count_nonzero((numerators == 0) & (y_difference != 0)))
        numerators *= y_difference  # negative if predictions and y have opposite orders
        return np.count_nonzero(numerators < 0) + 0.5 * n_ties


def _blocks_of_G(
    spectrum: Spectrum, resolvent: Resolvent, block_rows: int, *, only_upper: bool
) -> Iterator[tuple[slice, Array]]:
    """Blocks of at most `block_rows` rows of G: all columns, or those from the diagonal on.

    G is computed by matrix products of more rows. Entries on its diagonal are without the
    complement of the vectors: the callers do not use them.
    """
    # blocks of rows of G, with all columns or those from the diagonal on. Products of many rows are
    # faster, so blocks are views of larger products. Off its diagonal G is
    # V diag(vector_factors) Vᵀ − (B 1)(B 1)ᵀ / pivot
    V = spectrum.vectors
    n_items = len(V)
    product_rows = max(block_rows, PRODUCT_ROWS)
    for top in range(0, n_items, product_rows):
        bottom = min(top + product_rows, n_items)
        first_product_column = 0
        if only_upper:
            first_product_column = top
        product = (V[top:bottom] * resolvent.vector_factors) @ V[first_product_column:].T

        for start in range(top, bottom, block_rows):
            rows = slice(start, min(start + block_rows, bottom))
            first_column = 0
            if only_upper:
                first_column = start
            G = product[start - top : rows.stop - top, first_column - first_product_column :]
            B_ones = resolvent.B_ones
            G -= np.outer(B_ones[rows] / resolvent.pivot, B_ones[first_column:])
            yield rows, G
