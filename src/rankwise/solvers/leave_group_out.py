"""Models without a fold of items, and held-out scores of its items, without refitting.

All functions here are exact (docs/exact_cross_validation.md). The objective is a sum of terms

    Σ_parts share / T · (fᵀ A f − 2 fᵀ t)  +  α ‖f‖²

A fold that no edge leaves can be removed from A and from T: A becomes A − A_U, and T becomes
T − T_U. The pairs of a graph are one term (T = W), the items of a regression are another (T = m).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
import scipy.linalg
import scipy.sparse as sp
from scipy.linalg import lapack

from rankwise.arrays import Array, Indices
from rankwise.caching import cached_property
from rankwise.graphs.laplacian_roots import GraphRoot
from rankwise.losses.profiled import partial_out
from rankwise.runtime.threads import allow_threads
from rankwise.solvers.least_squares import solve_shifted_systems

Fold = Indices
BATCH_ENTRIES = 2**18  # numbers in a batch of folds, so that they stay in the cache
MAX_BATCH_ENTRIES = 2**21  # limit of a batch beside a large kernel matrix
BATCHES_PER_KERNEL = 16  # a batch has at most this share of the entries of a kernel matrix
EPSILON = np.finfo(float).eps
SHORT_FOLD_RATIO = 4  # a fold is short if there are at least this many times more features
MIN_SHIFT = 1e-8  # λ relative to the largest diagonal entry from which an inverse is accurate
MAX_CONTRACTION = 0.3  # largest factor by which iterations with an inverse may converge
MAX_PRODUCTS = 3.0  # columns that such iterations may multiply by the inverse, relative to m
SINGULAR_RIDGE = 64 * EPSILON  # added to the diagonal of I − H if rounding made it singular


@dataclass(frozen=True, eq=False)
class WhitenedTerm:
    """One term of the objective, in whitened features.

    Attributes
    ----------
    share : float
        Weight of the term, 1 − β or β.
    white : ndarray of shape (m, p)
        ``Fᵀ R`` with ``F Fᵀ = A``; F joins no item of a fold to one outside.
    target : ndarray of shape (m, n_outputs)
        t.
    amount : ndarray of shape (m,)
        Contribution of each item to T.
    values : ndarray of shape (p,), optional
        Eigenvalues of ``Rᵀ A R``, if R was rotated such that it is diagonal.
    """

    share: float
    white: Array
    target: Array
    amount: Array
    values: Array | None = None

    @cached_property
    def gram(self) -> Array:
        """``Rᵀ A R``; do not write to it."""
        if self.values is not None:
            return np.diag(self.values)
        with allow_threads(self.white.size * self.white.shape[1]):
            return self.white.T @ self.white

    def grams_without(self, folds: Sequence[Fold]) -> Array:
        """``Rᵀ A R − R_Uᵀ A_U R_U`` of each fold U, shape (n_folds, p, p).

        If the difference would cancel digits, the sum over the other rows is computed instead.
        """
        gram = self.gram
        grams_without = np.empty((len(folds), *gram.shape))
        for k, fold in enumerate(folds):
            white_fold = self.white[fold]
            gram_fold = white_fold.T @ white_fold
            grams_without[k] = gram - gram_fold
            if grams_without[k].trace() < gram_fold.trace():
                other_rows = np.delete(self.white, fold, axis=0)
                grams_without[k] = other_rows.T @ other_rows
        return grams_without

    def weights_without(self, folds: Sequence[Fold]) -> Array:
        """``share/(T − T_U)`` for each fold."""
        amounts = np.array([self.amount[fold].sum() for fold in folds])
        return np.asarray(self.share / (self.amount.sum() - amounts))


def diagonalize_gram(
    R: Array, terms: list[WhitenedTerm], folds: Sequence[Fold], whiten: Callable[[Array], Array]
) -> tuple[Array, list[WhitenedTerm], Array | None]:
    """Rotate the features such that the Gram matrix of the only term is diagonal.

    Parameters
    ----------
    R : ndarray of shape (m, p)
        Features.
    terms : list of WhitenedTerm
        Terms of the objective.
    folds : sequence of ndarray of int
        Folds to be left out.
    whiten : callable
        Computes ``Fᵀ R``.

    Returns
    -------
    R : ndarray of shape (m, p)
        ``R Q``, or R if there are several terms or no short fold.
    terms : list of WhitenedTerm
        The terms in these features.
    Q : ndarray of shape (p, p) or None
        The rotation; None if R is unchanged.
    """
    shortest = min(map(len, folds))
    if len(terms) > 1 or shortest > R.shape[1] / SHORT_FOLD_RATIO:
        return R, terms, None
    values, Q = scipy.linalg.eigh(terms[0].gram, check_finite=False)
    R = R @ Q
    term = replace(terms[0], white=whiten(R), values=np.maximum(values, 0.0))
    return R, [term], Q


def leave_out_weights(
    R: Array, terms: Sequence[WhitenedTerm], folds: Sequence[Fold], alphas: Array, n_free: int = 0
) -> Iterator[tuple[list[int], Array]]:
    """Weights of the features without each fold.

        w = (Σ ω (Rᵀ A R − R_Uᵀ A_U R_U) + αI)⁻¹ Σ ω (Rᵀ t − R_Uᵀ t_U),   ω = share/(T − T_U)

    A short fold is a downdate of a diagonal matrix, if the features were rotated. For a longer fold
    its Gram matrix is subtracted from that of all items, and one tridiagonal reduction of the p × p
    difference serves all alphas. Folds may overlap.

    Parameters
    ----------
    R : ndarray of shape (m, p)
        Features.
    terms : sequence of WhitenedTerm
        Terms of the objective.
    folds : sequence of ndarray of int
        Items of each fold.
    alphas : ndarray of shape (n_alphas,)
        Regularization.
    n_free : int, default=0
        The last `n_free` features are not penalized: they are eliminated, and have no weights.

    Yields
    ------
    numbers : list of int
        Numbers of k folds.
    weights : ndarray of shape (k, p, n_outputs, n_alphas)
        Weights without each of these folds.
    """
    is_short = _short_folds(terms[0], folds)
    short = [number for number, fold_is_short in enumerate(is_short) if fold_is_short]
    long = [number for number, fold_is_short in enumerate(is_short) if not fold_is_short]
    if short:
        short_folds = [folds[number] for number in short]
        for positions, weights in _weights_by_downdates(R, terms[0], short_folds, alphas):
            yield [short[position] for position in positions], weights
    if long:
        long_folds = [folds[number] for number in long]
        for positions, weights in _weights_by_grams(R, terms, long_folds, alphas, n_free):
            yield [long[position] for position in positions], weights


def _short_folds(term: WhitenedTerm, folds: Sequence[Fold]) -> list[bool]:
    """Whether each fold is left out by a downdate.

    Only of a diagonal Gram matrix, for folds much shorter than the number of features. A fold with
    half of the squares is not: its downdate would cancel digits.
    """
    if term.values is None:
        return [False] * len(folds)
    squares = np.einsum("ij,ij->i", term.white, term.white)
    half = squares.sum() / 2
    max_size = term.white.shape[1] / SHORT_FOLD_RATIO
    are_short = []
    for fold in folds:
        fold_squares = squares[fold].sum()
        is_minor = fold_squares == 0 or fold_squares < half
        are_short.append(bool(len(fold) <= max_size and is_minor))
    return are_short


def _weights_by_grams(
    R: Array, terms: Sequence[WhitenedTerm], folds: Sequence[Fold], alphas: Array, n_free: int
) -> Iterator[tuple[list[int], Array]]:
    """Numbers of k folds and the weights without each, of shape (k, p, n_outputs, n_alphas).

    The Gram matrix of a fold is subtracted from that of all items.
    """
    n_features = R.shape[1]
    n_outputs = terms[0].target.shape[1]
    n_alphas = len(alphas)
    moments = [R.T @ term.target for term in terms]
    factors = [term.weights_without(folds) for term in terms]
    n_entries_of_fold = n_features * (n_features + n_outputs * n_alphas)
    batch_size = max(1, BATCH_ENTRIES // max(1, n_entries_of_fold))
    for start in range(0, len(folds), batch_size):
        numbers = list(range(start, min(start + batch_size, len(folds))))
        folds_of_batch = [folds[number] for number in numbers]
        grams_without = np.zeros((len(numbers), n_features, n_features))
        moments_without = np.zeros((len(numbers), n_features, n_outputs))
        for term, moment, factor_of_fold in zip(terms, moments, factors, strict=True):
            factor = factor_of_fold[numbers, None, None]
            moments_of_folds = [R[fold].T @ term.target[fold] for fold in folds_of_batch]
            grams_without += factor * term.grams_without(folds_of_batch)
            moments_without += factor * (moment - np.stack(moments_of_folds))
        if n_free:
            systems = zip(grams_without, moments_without, strict=True)
            penalized = [partial_out(gram, moment, n_free) for gram, moment in systems]
            grams_without = np.stack([gram for gram, _ in penalized])
            moments_without = np.stack([moment for _, moment in penalized])
        yield numbers, _solve_semidefinite(grams_without, moments_without, alphas)


def _solve_semidefinite(grams: Array, moments: Array, alphas: Array) -> Array:
    """``(G + αI)⁻¹ m`` of k systems whose G is semidefinite up to rounding.

    Parameters
    ----------
    grams : ndarray of shape (k, p, p)
        G.
    moments : ndarray of shape (k, p, n_outputs)
        m.
    alphas : ndarray of shape (n_alphas,)
        Regularization.

    Returns
    -------
    ndarray of shape (k, p, n_outputs, n_alphas)
        Solutions.
    """
    by_alpha, is_definite = solve_shifted_systems(grams, moments, alphas)
    solutions = by_alpha.transpose(0, 2, 3, 1)
    for k in np.flatnonzero(~is_definite):  # negative eigenvalues are rounding errors of zeros
        eigenvalues, vectors = scipy.linalg.eigh(grams[k], check_finite=False)
        shrinkage = 1.0 / (np.maximum(eigenvalues, 0.0)[:, None] + alphas)
        rotated = vectors.T @ moments[k]
        solutions[k] = np.einsum("ij,jo,jk->iok", vectors, rotated, shrinkage, optimize=True)
    return solutions


def _weights_by_downdates(
    R: Array, term: WhitenedTerm, folds: Sequence[Fold], alphas: Array
) -> Iterator[tuple[list[int], Array]]:
    """Numbers of k folds and the weights without each, of shape (k, p, n_outputs, n_alphas).

    With ``Rᵀ A R = Λ``, Z = Fᵀ R and ``D = (Λ + λ)⁻¹`` a fold is removed by |U| downdates:

        w = (D + D Z_Uᵀ (I − Z_U D Z_Uᵀ)⁻¹ Z_U D) (Rᵀ t − R_Uᵀ t_U),   λ = α (T − T_U)

    Folds of one size are computed together, for all alphas.
    """
    values = np.asarray(term.values)
    moment = R.T @ term.target
    total = term.amount.sum()
    n_features = len(values)
    n_alphas = len(alphas)
    n_columns = n_alphas * term.target.shape[1]

    def count_entries(size: int) -> int:
        """Numbers that a fold of this size takes in a batch."""
        n_products = size * size * (n_features + 2 * n_alphas)
        n_right_hand_sides = (3 * n_features + 2 * size) * n_columns
        return int(n_products + n_right_hand_sides)

    for numbers in _batches_of_one_size(folds, count_entries):
        rows = np.stack([folds[number] for number in numbers])
        moment_rest = moment - R[rows].transpose(0, 2, 1) @ term.target[rows]
        scale = (total - term.amount[rows].sum(axis=1)) / term.share
        shrinkage = 1.0 / (values[:, None] + scale[:, None, None] * alphas)
        yield numbers, _downdate(term.white[rows], moment_rest, shrinkage)


def _batches_of_one_size(
    folds: Sequence[Fold], count_entries: Callable[[int], int]
) -> Iterator[list[int]]:
    """Numbers of folds of one size, in batches of at most `BATCH_ENTRIES` entries."""
    sizes = np.array([len(fold) for fold in folds])
    for size in np.unique(sizes).tolist():
        numbers = np.flatnonzero(sizes == size).tolist()
        batch_size = max(1, BATCH_ENTRIES // max(1, count_entries(size)))
        for start in range(0, len(numbers), batch_size):
            yield numbers[start : start + batch_size]


def _downdate(Z: Array, moment: Array, shrinkage: Array) -> Array:
    """``(D + D Zᵀ (I − Z D Zᵀ)⁻¹ Z D) m`` for k folds of n rows each and all alphas.

    Parameters
    ----------
    Z : ndarray of shape (k, n, p)
        Whitened features of the folds.
    moment : ndarray of shape (k, p, n_outputs)
        m.
    shrinkage : ndarray of shape (k, p, n_alphas)
        Diagonal of D for each alpha.

    Returns
    -------
    ndarray of shape (k, p, n_outputs, n_alphas)
        The products.
    """
    k, n, p = Z.shape
    n_alphas = shrinkage.shape[2]
    i, j = np.triu_indices(n)
    systems = np.empty((k, n, n, n_alphas))
    systems[:, i, j] = -((Z[:, i] * Z[:, j]) @ shrinkage)
    systems[:, j, i] = systems[:, i, j]
    diagonal = np.arange(n)
    systems[:, diagonal, diagonal] = np.maximum(systems[:, diagonal, diagonal] + 1.0, EPSILON)
    weights = moment[:, :, :, None] * shrinkage[:, :, None, :]
    shape = weights.shape[2:]
    fitted = (Z @ weights.reshape(k, p, -1)).reshape(k, n, *shape)
    systems = systems.transpose(0, 3, 1, 2)
    fitted = fitted.transpose(0, 3, 1, 2)
    try:
        lift = np.linalg.solve(systems, fitted)
    except np.linalg.LinAlgError:  # singular by rounding
        lift = np.linalg.solve(systems + SINGULAR_RIDGE * np.eye(n), fitted)
    flat_lift = lift.transpose(0, 2, 3, 1).reshape(k, n, math.prod(shape))
    back = Z.transpose(0, 2, 1) @ flat_lift
    weights += shrinkage[:, :, None, :] * back.reshape(weights.shape)
    return np.asarray(weights)


def hold_out_dual(
    K: Array,
    root: GraphRoot,
    component: Indices,
    target: Array,
    amount: Array,
    folds: Sequence[Fold],
    alphas: Array,
    out: Array,
) -> None:
    """Held-out scores of each fold for a kernel matrix and one term.

    With ``F Fᵀ = A``, ``F b = t``, ``S = Fᵀ K F = Q Λ Qᵀ`` decomposed once and
    ``G = Q (Λ + λ)⁻¹ Qᵀ``:

        c = G b,    Fᵀ f = r with r = S (c − G_{·U} (G_UU)⁻¹ c_U),    λ = α (T − T_U)

    [RankRLS09] equation 33, with a symmetric G. F does not see the mean of a connected component.
    The same equation gives that mean, with the mean of the component's rows of K F in the place of
    rows of S.

    Parameters
    ----------
    K : ndarray of shape (m, m)
        Kernel matrix.
    root : GraphRoot
        F.
    component : ndarray of int, shape (m,)
        Number of the connected component of each item.
    target : ndarray of shape (m, n_outputs)
        t.
    amount : ndarray of shape (m,)
        Contribution of each item to T.
    folds : sequence of ndarray of int
        Items of each fold.
    alphas : ndarray of shape (n_alphas,)
        Regularization.
    out : ndarray of shape (m, n_outputs, n_alphas)
        Receives the scores.
    """
    weight = 1.0 / np.bincount(component)[component]
    averaging = sp.csr_array((weight, (component, np.arange(len(component)))))
    mean_rows = root.adjoint(np.ascontiguousarray((averaging @ K).T)).T  # of K F
    system = _DualSystem(
        S=root.sandwich(K.copy()),
        b=root.solve(target),
        mean_rows=mean_rows,
        components=[np.unique(component[fold]) for fold in folds],
        folds=folds,
        scales=_remaining_amounts(amount, folds),
    )
    residuals = np.zeros_like(out)
    means = np.zeros((len(mean_rows), *out.shape[1:]))
    models: _InverseModels | None = None
    if len(alphas) == 1:
        models = _InverseModels.from_matrix(system.S, system.b, alphas[0] * system.scales)
    if models is None:
        _hold_out_by_spectrum(system, alphas, residuals, means)
    else:
        _hold_out_by_inverse(system, models, residuals[:, :, 0], means[:, :, 0])
    scores = root.solve_adjoint(residuals.reshape(len(residuals), -1))
    scores += (means.reshape(len(means), -1) - averaging @ scores)[component]
    rows = np.concatenate(folds)
    out[rows] = scores.reshape(out.shape)[rows]


def _remaining_amounts(amount: Array, folds: Sequence[Fold]) -> Array:
    """``T − T_U`` for each fold U."""
    return np.asarray(amount.sum() - np.array([amount[fold].sum() for fold in folds]))


class _DualSystem(NamedTuple):
    """A kernel problem and its folds; symbols as in `hold_out_dual`.

    Attributes
    ----------
    S : ndarray of shape (m, m)
        ``Fᵀ K F``.
    b : ndarray of shape (m, n_outputs)
        ``F b = t``.
    mean_rows : ndarray of shape (n_components, m)
        Mean rows of K F of each connected component.
    components : list of ndarray of int
        Numbers of the connected components of each fold.
    folds : sequence of ndarray of int
        Items of each fold.
    scales : ndarray of shape (n_folds,)
        T − T_U.
    """

    S: Array
    b: Array
    mean_rows: Array
    components: list[Indices]
    folds: Sequence[Fold]
    scales: Array


def _hold_out_by_spectrum(
    system: _DualSystem, alphas: Array, residuals: Array, means: Array
) -> None:
    """Fill r of each fold and the means of its components for all alphas; S is overwritten."""
    models = _SpectralModel(system.S, system.b)
    mean_rows = system.mean_rows @ models.vectors.T
    batch_entries = min(MAX_BATCH_ENTRIES, system.S.size // BATCHES_PER_KERNEL)
    for fold, components, scale in zip(system.folds, system.components, system.scales, strict=True):
        n_alphas_at_once = max(1, batch_entries // (len(fold) ** 2 + system.b.size))
        for start in range(0, len(alphas), n_alphas_at_once):
            batch = slice(start, start + n_alphas_at_once)
            rotated = models.without(fold, scale * alphas[batch])
            shape = rotated.shape[1:]
            flat = rotated.reshape(len(rotated), -1)
            fitted = models.vectors[:, fold].T @ (models.values[:, None] * flat)
            residuals[fold, :, batch] = fitted.reshape(-1, *shape)
            means[components, :, batch] = (mean_rows[components] @ flat).reshape(-1, *shape)


def _hold_out_by_inverse(
    system: _DualSystem, models: _InverseModels, residuals: Array, means: Array
) -> None:
    """Fill r of each fold and the means of its components for one alpha."""
    n_folds_at_once = max(1, MAX_BATCH_ENTRIES // system.b.size)
    for start in range(0, len(system.folds), n_folds_at_once):
        numbers = range(start, min(start + n_folds_at_once, len(system.folds)))
        solutions = models.without([system.folds[k] for k in numbers], numbers)
        for position, k in enumerate(numbers):
            fold = system.folds[k]
            components = system.components[k]
            residuals[fold] = system.S[fold] @ solutions[:, position]
            means[components] = system.mean_rows[components] @ solutions[:, position]


class _InverseModels:
    """Models without each fold for one α, from an inverse instead of a decomposition.

    The model without U is zero on U and solves ``(S + λ_U I) c = b`` on the other coordinates. With
    ``G = (S + λ₀ I)⁻¹`` the inverse of the system at λ₀ is ``B = G − G_{·U} (G_UU)⁻¹ G_{U·}``, and

        c ← B (b − (λ_U − λ₀) c)

    converges by a factor of at most ``|λ_U − λ₀|/λ₀`` in each step: at once if all folds have the
    same λ_U, and in about ten steps for groups of different sizes.

    Attributes
    ----------
    G : ndarray of shape (m, m)
        The inverse.
    b : ndarray of shape (m, n_outputs)
        Target.
    differences : ndarray of shape (n_folds,)
        λ_U − λ₀.
    n_steps : int
        Number of steps.
    """

    def __init__(self, G: Array, b: Array, differences: Array, n_steps: int) -> None:
        self.G = G
        self.b = b
        self.differences = differences
        self.n_steps = n_steps

    @classmethod
    def from_matrix(cls, S: Array, b: Array, shifts: Array) -> _InverseModels | None:
        """The models for the λ of each fold; None if a decomposition is faster or more accurate."""
        m, n_outputs = b.shape
        middle = float(shifts.min() + shifts.max()) / 2
        if middle < MIN_SHIFT * np.diagonal(S).max():
            return None
        differences = shifts - middle
        contraction = float(np.abs(differences).max()) / middle
        n_steps = 1
        if contraction > EPSILON:
            if contraction > MAX_CONTRACTION:
                return None
            n_steps = math.ceil(math.log(EPSILON) / math.log(contraction))
        if (n_steps - 1) * len(shifts) * n_outputs > MAX_PRODUCTS * m:
            return None
        with allow_threads(m**3):
            upper, info = lapack.dpotrf(S + middle * np.eye(m), lower=0, clean=1, overwrite_a=1)
            if info != 0:
                return None
            upper, _ = lapack.dpotri(upper, lower=0, overwrite_c=1)
        G = upper + np.triu(upper, 1).T
        return cls(G, b, differences, n_steps)

    def without(self, folds: Sequence[Fold], numbers: range) -> Array:
        """C of the models without these folds, of shape (m, n_folds, n_outputs)."""
        m, n_outputs = self.b.shape
        factors = [scipy.linalg.cho_factor(self.G[np.ix_(fold, fold)]) for fold in folds]
        differences = self.differences[numbers.start : numbers.stop, None]
        solutions = np.repeat((self.G @ self.b)[:, None], len(folds), axis=1)
        self._remove(folds, factors, solutions)
        for _ in range(self.n_steps - 1):
            rest = self.b[:, None] - differences * solutions
            solutions = (self.G @ rest.reshape(m, -1)).reshape(m, len(folds), n_outputs)
            self._remove(folds, factors, solutions)
        return solutions

    def _remove(
        self, folds: Sequence[Fold], factors: list[tuple[Array, bool]], solutions: Array
    ) -> None:
        """Turn products with G into products with B, in place."""
        for position, (fold, factor) in enumerate(zip(folds, factors, strict=True)):
            lift = scipy.linalg.cho_solve(factor, solutions[fold, position])
            solutions[:, position] -= self.G[:, fold] @ lift
            solutions[fold, position] = 0.0


class _SpectralModel:
    """``S = Q Λ Qᵀ``, and the models without a fold; S is overwritten by Qᵀ.

    Attributes
    ----------
    values : ndarray of shape (m,)
        Diagonal of Λ.
    vectors : ndarray of shape (m, m)
        Qᵀ.
    """

    def __init__(self, S: Array, b: Array) -> None:
        with allow_threads(len(S) ** 3):
            self.values, Q = scipy.linalg.eigh(S.T, overwrite_a=True, check_finite=False)
        S[:] = Q.T
        self.vectors = S
        self._rotated_target = S @ b

    def without(self, fold: Fold, shifts: Array) -> Array:
        """Qᵀ c of the models without a fold U, of shape (m, n_outputs, n_shifts).

        With z = Qᵀ b and ``D = (Λ + λ)⁻¹`` it is ``D z − D Q_Uᵀ (Q_U D Q_Uᵀ)⁻¹ Q_U D z``: c is zero
        on U, and G = Q D Qᵀ.
        """
        shrinkage = 1.0 / (self.values[:, None] + shifts)
        rotated = self._rotated_target[:, :, None] * shrinkage[:, None, :]
        m, n_outputs, n_shifts = rotated.shape
        n = len(fold)
        V = np.ascontiguousarray(self.vectors[:, fold].T)
        G = np.empty((n, n, n_shifts))
        for row in range(n):
            G[row, row:] = (V[row:] * V[row]) @ shrinkage
            G[row:, row] = G[row, row:]
        c = (V @ rotated.reshape(m, -1)).reshape(n, n_outputs, n_shifts)
        lift = np.linalg.solve(G.transpose(2, 0, 1), c.transpose(2, 0, 1)).transpose(1, 2, 0)
        back = (V.T @ lift.reshape(n, n_outputs * n_shifts)).reshape(rotated.shape)
        rotated -= shrinkage[:, None, :] * back
        return np.asarray(rotated)


def leave_out_dual_coef(
    K: Array,
    root: GraphRoot,
    target: Array,
    amount: Array,
    units: Sequence[Indices],
    alphas: Array,
) -> Array:
    """Dual coefficients without each unit, for a kernel matrix and one term.

    ``a = F c`` with the c of `hold_out_dual`, which is zero on U ([RankRLS09] equation 33).

    Parameters
    ----------
    K, root, target, amount, alphas
        As in `hold_out_dual`.
    units : sequence of ndarray of int
        Items of each unit.

    Returns
    -------
    ndarray of shape (m, n_units, n_outputs, n_alphas)
        Coefficients.
    """
    S = root.sandwich(K.copy())
    b = root.solve(target)
    scales = _remaining_amounts(amount, units)
    if len(alphas) == 1:
        inverse = _InverseModels.from_matrix(S, b, alphas[0] * scales)
        if inverse is not None:
            solutions = inverse.without(units, range(len(units)))
            coef = root.apply(solutions.reshape(len(K), -1))
            return coef.reshape(*solutions.shape, 1)
    models = _SpectralModel(S, b)
    rotated = np.empty((len(K), len(units), target.shape[1], len(alphas)))
    for number, unit in enumerate(units):
        rotated[:, number] = models.without(unit, alphas * scales[number])
    flat = models.vectors.T @ rotated.reshape(len(K), -1)
    coef = flat.reshape(rotated.shape)
    for number, unit in enumerate(units):
        coef[unit, number] = 0.0  # not its rounding error
    return root.apply(flat).reshape(rotated.shape)
