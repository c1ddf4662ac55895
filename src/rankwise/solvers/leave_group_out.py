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
MAX_BATCH_ENTRIES = 2**21  # limit of a batch if there is a large kernel matrix
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
    whitened_R : ndarray of shape (m, p)
        ``Fᵀ R`` with ``F Fᵀ = A``; F joins no item of a fold to one outside.
    target : ndarray of shape (m, n_outputs)
        t.
    amount : ndarray of shape (m,)
        Contribution of each item to T.
    eigenvalues : ndarray of shape (p,), optional
        Diagonal of ``Rᵀ A R``, if R was rotated such that this matrix is diagonal.
    """

    share: float
    whitened_R: Array
    target: Array
    amount: Array
    eigenvalues: Array | None = None

    @cached_property
    def gram(self) -> Array:
        """``Rᵀ A R``; do not write to it."""
        if self.eigenvalues is not None:
            return np.diag(self.eigenvalues)
        with allow_threads(self.whitened_R.size * self.whitened_R.shape[1]):
            return self.whitened_R.T @ self.whitened_R

    def grams_without(self, folds: Sequence[Fold]) -> Array:
        """``Rᵀ A R − R_Uᵀ A_U R_U`` of each fold U, shape (n_folds, p, p).

        If the difference would cancel digits, the sum over the other rows is computed instead.
        """
        # Rᵀ A R without the rows of each fold: a sum over all rows, less one over the fold
        gram = self.gram
        grams_without = np.empty((len(folds), *gram.shape))
        for k, fold in enumerate(folds):
            whitened_fold = self.whitened_R[fold]
            gram_of_fold = whitened_fold.T @ whitened_fold
            gram_of_others = gram - gram_of_fold
            has_cancelled = gram_of_others.trace() < gram_of_fold.trace()
            if has_cancelled:  # digits are lost: add up the other rows instead
                whitened_others = np.delete(self.whitened_R, fold, axis=0)
                gram_of_others = whitened_others.T @ whitened_others
            grams_without[k] = gram_of_others
        return grams_without

    @cached_property
    def total_amount(self) -> float:
        """T."""
        return float(self.amount.sum())

    def weights_without(self, folds: Sequence[Fold]) -> Array:
        """``share/(T − T_U)`` for each fold."""
        # share of the term, divided by the total of the items that remain
        amount_per_fold = np.array([self.amount[fold].sum() for fold in folds])
        return np.asarray(self.share / (self.total_amount - amount_per_fold))


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
    n_features = R.shape[1]
    # only the downdates of short folds need a diagonal Gram matrix, which one term can have
    has_short_fold = min(map(len, folds)) <= n_features / SHORT_FOLD_RATIO
    if len(terms) > 1 or not has_short_fold:
        return R, terms, None
    # Rᵀ A R = Q diag(eigenvalues) Qᵀ, so that it is diagonal for the features R Q
    eigenvalues, Q = scipy.linalg.eigh(terms[0].gram, check_finite=False)
    rotated_R = R @ Q
    rotated_term = replace(
        terms[0], whitened_R=whiten(rotated_R), eigenvalues=np.maximum(eigenvalues, 0.0)
    )
    return rotated_R, [rotated_term], Q


def coefficients_without_folds(
    R: Array,
    terms: Sequence[WhitenedTerm],
    folds: Sequence[Fold],
    alphas: Array,
    n_nuisance: int = 0,
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
    n_nuisance : int, default=0
        The last `n_nuisance` features are not penalized: they are eliminated, and have no weights.

    Yields
    ------
    numbers : list of int
        Numbers of k folds.
    weights : ndarray of shape (k, p, n_outputs, n_alphas)
        Weights without each of these folds.
    """
    # a fold of few items is a downdate of the model of all items; for others the Gram matrix of the
    # remaining items is computed
    short_folds = []
    long_folds = []
    for number, is_short in enumerate(_are_short(folds, terms[0])):
        if is_short:
            short_folds.append(number)
        else:
            long_folds.append(number)
    if short_folds:  # only if there is one term, without nuisance columns (`diagonalize_gram`)
        yield from _weights_by_downdates(R, terms[0], folds, short_folds, alphas)
    if long_folds:
        yield from _weights_by_grams(R, terms, folds, long_folds, alphas, n_nuisance)


def _are_short(folds: Sequence[Fold], term: WhitenedTerm) -> list[bool]:
    """Whether each fold is left out by a downdate.

    Only of a diagonal Gram matrix, for folds much shorter than the number of features. A fold with
    half of the squares is not: its downdate would cancel digits.
    """
    if term.eigenvalues is None:
        return [False] * len(folds)
    # a downdate needs few rows, and must not remove most of the sum of squares
    squared_norms = np.einsum("ij,ij->i", term.whitened_R, term.whitened_R)
    half_of_total = squared_norms.sum() / 2
    n_features = len(term.eigenvalues)
    are_short = []
    for fold in folds:
        is_small = len(fold) <= n_features / SHORT_FOLD_RATIO
        squared_norm_of_fold = squared_norms[fold].sum()
        is_minor = squared_norm_of_fold == 0 or squared_norm_of_fold < half_of_total
        are_short.append(bool(is_small and is_minor))
    return are_short


def _weights_by_grams(
    R: Array,
    terms: Sequence[WhitenedTerm],
    folds: Sequence[Fold],
    fold_numbers: list[int],
    alphas: Array,
    n_nuisance: int,
) -> Iterator[tuple[list[int], Array]]:
    """Numbers of k folds and the weights without each, of shape (k, p, n_outputs, n_alphas).

    The Gram matrix of a fold is subtracted from that of all items.
    """
    # solve (Σ ω (G − G_U) + αI) w = Σ ω (m − m_U) for each fold U, with sums over the terms of the
    # loss: their weights ω, Gram matrices G = Rᵀ A R and moments m = Rᵀ t, and G_U and m_U of U
    n_features = R.shape[1]
    n_outputs = terms[0].target.shape[1]
    moment_per_term = [R.T @ term.target for term in terms]
    entries_per_fold = n_features * (n_features + n_outputs * len(alphas))
    batch_size = max(1, BATCH_ENTRIES // max(1, entries_per_fold))
    for start in range(0, len(fold_numbers), batch_size):
        batch = fold_numbers[start : start + batch_size]
        folds_of_batch = [folds[number] for number in batch]
        grams_without = np.zeros((len(batch), n_features, n_features))
        moments_without = np.zeros((len(batch), n_features, n_outputs))
        for term, moment in zip(terms, moment_per_term, strict=True):
            term_weights = term.weights_without(folds_of_batch)[:, None, None]  # ω of each fold
            moments_of_folds = [R[fold].T @ term.target[fold] for fold in folds_of_batch]
            grams_without += term_weights * term.grams_without(folds_of_batch)
            moments_without += term_weights * (moment - np.stack(moments_of_folds))
        if n_nuisance:
            systems = zip(grams_without, moments_without, strict=True)
            penalized = [partial_out(gram, moment, n_nuisance) for gram, moment in systems]
            grams_without = np.stack([gram for gram, _ in penalized])
            moments_without = np.stack([moment for _, moment in penalized])
        yield batch, _solve_semidefinite(grams_without, moments_without, alphas)


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
    # solve (gram + alpha I) x = moment for each gram and alpha
    by_alpha, is_definite = solve_shifted_systems(grams, moments, alphas)
    solutions = by_alpha.transpose(0, 2, 3, 1)
    for k in np.flatnonzero(~is_definite):  # negative eigenvalues are rounding errors of zeros
        # Q diag(1 / (eigenvalues + alpha)) Qᵀ moment
        eigenvalues, Q = scipy.linalg.eigh(grams[k], check_finite=False)
        inverse_eigenvalues = 1.0 / (np.maximum(eigenvalues, 0.0)[:, None] + alphas)
        solutions[k] = np.einsum(
            "ij,jo,jk->iok", Q, Q.T @ moments[k], inverse_eigenvalues, optimize=True
        )
    return solutions


def _weights_by_downdates(
    R: Array,
    term: WhitenedTerm,
    folds: Sequence[Fold],
    fold_numbers: list[int],
    alphas: Array,
) -> Iterator[tuple[list[int], Array]]:
    """Numbers of k folds and the weights without each, of shape (k, p, n_outputs, n_alphas).

    With ``Rᵀ A R = Λ``, Z = Fᵀ R and ``D = (Λ + λ)⁻¹`` a fold is removed by |U| downdates:

        w = (D + D Z_Uᵀ (I − Z_U D Z_Uᵀ)⁻¹ Z_U D) (Rᵀ t − R_Uᵀ t_U),   λ = α (T − T_U)

    Folds of one size are computed together, for all alphas.
    """
    # solve (Λ − Zᵀ Z + λI) w = m − m_U for each fold U, with its whitened rows Z, the diagonal Gram
    # matrix Λ, the moment m = Rᵀ t of all items and m_U of the fold
    eigenvalues = np.asarray(term.eigenvalues)
    moment = R.T @ term.target
    n_features = len(eigenvalues)
    n_alphas = len(alphas)
    n_right_hand_sides = n_alphas * term.target.shape[1]

    def count_entries(fold_size: int) -> int:
        """Size of the arrays that `_downdate` makes for a fold."""
        n_products = fold_size * fold_size * (n_features + 2 * n_alphas)
        return int(n_products + (3 * n_features + 2 * fold_size) * n_right_hand_sides)

    for batch in _batches_of_one_size(folds, fold_numbers, count_entries):
        rows = np.stack([folds[number] for number in batch])  # (k, fold size)
        moment_of_folds = R[rows].transpose(0, 2, 1) @ term.target[rows]
        amount_of_folds = term.amount[rows].sum(axis=1)
        # the weight of the term, share/(T − T_U), is divided out: λ = α (T − T_U)/share
        scale = (term.total_amount - amount_of_folds) / term.share
        shifts = scale[:, None, None] * alphas
        inverse_diagonal = 1.0 / (eigenvalues[:, None] + shifts)  # D, (k, n_features, n_alphas)
        yield batch, _downdate(term.whitened_R[rows], moment - moment_of_folds, inverse_diagonal)


def _batches_of_one_size(
    folds: Sequence[Fold], fold_numbers: list[int], count_entries: Callable[[int], int]
) -> Iterator[list[int]]:
    """Numbers of folds of one size, in batches of at most `BATCH_ENTRIES` entries."""
    # batches of folds of the same size, whose arrays together stay in the cache
    numbers_by_size: dict[int, list[int]] = {}
    for number in fold_numbers:
        numbers_by_size.setdefault(len(folds[number]), []).append(number)
    for fold_size, numbers in sorted(numbers_by_size.items()):
        batch_size = max(1, BATCH_ENTRIES // max(1, count_entries(fold_size)))
        for start in range(0, len(numbers), batch_size):
            yield numbers[start : start + batch_size]


def _downdate(Z: Array, moment: Array, inverse_diagonal: Array) -> Array:
    """``(D + D Zᵀ (I − Z D Zᵀ)⁻¹ Z D) m`` for k folds of n rows each and all alphas.

    Parameters
    ----------
    Z : ndarray of shape (k, n, p)
        Whitened features of the folds.
    moment : ndarray of shape (k, p, n_outputs)
        m.
    inverse_diagonal : ndarray of shape (k, p, n_alphas)
        Diagonal of D for each alpha.

    Returns
    -------
    ndarray of shape (k, p, n_outputs, n_alphas)
        The products.
    """
    # (D⁻¹ − Zᵀ Z)⁻¹ m = (D + D Zᵀ (I − Z D Zᵀ)⁻¹ Z D) m, by the Woodbury identity
    # of k folds at once: Z (k, n, p) their n rows of p features, D diagonal, one for each alpha
    k, n, p = Z.shape
    n_outputs = moment.shape[2]
    n_alphas = inverse_diagonal.shape[2]

    # I − Z D Zᵀ, of which each entry is computed once, (k, n, n, n_alphas); without rounding its
    # diagonal is positive
    i, j = np.triu_indices(n)
    downdates = np.empty((k, n, n, n_alphas))
    downdates[:, i, j] = -((Z[:, i] * Z[:, j]) @ inverse_diagonal)
    downdates[:, j, i] = downdates[:, i, j]
    diagonal = np.arange(n)
    downdates[:, diagonal, diagonal] = np.maximum(downdates[:, diagonal, diagonal] + 1.0, EPSILON)

    # D m and Z D m
    weights = moment[:, :, :, None] * inverse_diagonal[:, :, None, :]
    scores = (Z @ weights.reshape(k, p, -1)).reshape(k, n, n_outputs, n_alphas)

    # (I − Z D Zᵀ)⁻¹ Z D m, with the alphas second because NumPy solves over the last two axes
    downdates = downdates.transpose(0, 3, 1, 2)
    scores = scores.transpose(0, 3, 1, 2)
    try:
        lifted_scores = np.linalg.solve(downdates, scores)
    except np.linalg.LinAlgError:  # singular by rounding
        lifted_scores = np.linalg.solve(downdates + SINGULAR_RIDGE * np.eye(n), scores)

    columns = lifted_scores.transpose(0, 2, 3, 1).reshape(k, n, n_outputs * n_alphas)
    correction = (Z.transpose(0, 2, 1) @ columns).reshape(weights.shape)
    weights += inverse_diagonal[:, :, None, :] * correction
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
    # the model of all items minimizes fᵀ A f − 2 fᵀ t + λ cᵀ Fᵀ K F c for scores f = K F c, with
    # `root` F, F Fᵀ = A and F b = t: it solves (S + λI) c = b with S = Fᵀ K F. Without a fold λ is
    # α times the amount of the remaining items, `scales`.
    # r = S c of the models without each fold is Fᵀ f of their scores f, which it determines up to
    # the mean of each connected component of the graph: that is the mean row of K F, times c
    component_size = np.bincount(component)
    n_items = len(component)
    averaging = sp.csr_array(  # row c takes the mean over the items of component c
        (1.0 / component_size[component], (component, np.arange(n_items)))
    )
    mean_rows = root.adjoint(np.ascontiguousarray((averaging @ K).T)).T  # of K F
    system = _DualSystem(
        S=root.sandwich(K.copy()),
        b=root.solve(target),
        mean_rows=mean_rows,
        components=[np.unique(component[fold]) for fold in folds],
        folds=folds,
        scales=_remaining_amounts(amount, folds),
    )

    residuals = np.zeros_like(out)  # r of each fold, filled below together with the means
    means = np.zeros((len(mean_rows), *out.shape[1:]))
    models: _InverseModels | None = None
    if len(alphas) == 1:
        models = _InverseModels.from_matrix(system.S, system.b, alphas[0] * system.scales)
    if models is None:
        _hold_out_by_spectrum(system, alphas, residuals, means)
    else:
        _hold_out_by_inverse(system, models, residuals[:, :, 0], means[:, :, 0])

    # solve Fᵀ f = r, and give each component its mean
    scores = root.solve_adjoint(residuals.reshape(n_items, -1))
    missing_means = means.reshape(len(means), -1) - averaging @ scores
    scores += missing_means[component]
    held_out = np.concatenate(folds)
    out[held_out] = scores.reshape(out.shape)[held_out]


def _remaining_amounts(amount: Array, folds: Sequence[Fold]) -> Array:
    """``T − T_U`` for each fold U."""
    # amount: part of each item in the total that the loss is divided by
    amount_per_fold = np.array([amount[fold].sum() for fold in folds])
    return np.asarray(amount.sum() - amount_per_fold)


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
    # fill `residuals` with r = S c, and `means` with those of the scores K F c in each component,
    # with the c of the model without each fold
    models = _SpectralModels(system.S, system.b)
    eigenvalues = models.eigenvalues[:, None]
    rotated_mean_rows = system.mean_rows @ models.Q_transposed.T
    max_entries = min(MAX_BATCH_ENTRIES, system.S.size // BATCHES_PER_KERNEL)
    for fold, components, scale in zip(system.folds, system.components, system.scales, strict=True):
        batch_size = max(1, max_entries // (len(fold) ** 2 + system.b.size))
        for start in range(0, len(alphas), batch_size):
            batch = slice(start, start + batch_size)
            rotated_c = models.without(fold, scale * alphas[batch])  # Qᵀ c
            n_outputs_and_alphas = rotated_c.shape[1:]
            columns = rotated_c.reshape(len(rotated_c), -1)
            # rows of S c = Q Λ Qᵀ c, and the means of K F c
            residual = models.Q_transposed[:, fold].T @ (eigenvalues * columns)
            residuals[fold, :, batch] = residual.reshape(-1, *n_outputs_and_alphas)
            mean = rotated_mean_rows[components] @ columns
            means[components, :, batch] = mean.reshape(-1, *n_outputs_and_alphas)


def _hold_out_by_inverse(
    system: _DualSystem, models: _InverseModels, residuals: Array, means: Array
) -> None:
    """Fill r of each fold and the means of its components for one alpha."""
    # fill `residuals` with r = S c, and `means` with those of the scores K F c in each component,
    # with the c of the model without each fold
    batch_size = max(1, MAX_BATCH_ENTRIES // system.b.size)
    n_folds = len(system.folds)
    for start in range(0, n_folds, batch_size):
        batch = range(start, min(start + batch_size, n_folds))
        solutions = models.without([system.folds[number] for number in batch], batch)
        for position, number in enumerate(batch):
            fold = system.folds[number]
            components = system.components[number]
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
        # for the systems (S + λ_U I) c = b without each fold U, where λ_U is its regularization
        self.G = G  # (S + λ₀ I)⁻¹
        self.b = b
        self.differences = differences  # λ_U − λ₀ of each fold
        self.n_steps = n_steps

    @classmethod
    def from_matrix(cls, S: Array, b: Array, shifts: Array) -> _InverseModels | None:
        """The models for the λ of each fold; None if a decomposition is faster or more accurate."""
        # (S + λ_U I) c = b for the λ_U of each fold in `shifts`, by the inverse for a middle λ₀
        m, n_outputs = b.shape
        middle_shift = float(shifts.min() + shifts.max()) / 2
        if middle_shift < MIN_SHIFT * np.diagonal(S).max():  # the inverse would be inaccurate
            return None

        # each step multiplies the error by at most the contraction, 0 if all λ_U are equal
        differences = shifts - middle_shift
        contraction = float(np.abs(differences).max()) / middle_shift
        if contraction > MAX_CONTRACTION:
            return None
        n_steps = 1
        if contraction > EPSILON:
            n_steps = math.ceil(math.log(EPSILON) / math.log(contraction))
        # columns that the iterations multiply by the inverse
        if (n_steps - 1) * len(shifts) * n_outputs > MAX_PRODUCTS * m:  # slower than a spectrum
            return None

        with allow_threads(m**3):
            shifted = S + middle_shift * np.eye(m)
            cholesky_factor, info = lapack.dpotrf(shifted, lower=0, clean=1, overwrite_a=1)
            is_definite = info == 0
            if not is_definite:
                return None
            upper_triangle, _ = lapack.dpotri(cholesky_factor, lower=0, overwrite_c=1)
        G = upper_triangle + np.triu(upper_triangle, 1).T
        return cls(G, b, differences, n_steps)

    def without(self, folds: Sequence[Fold], fold_numbers: range) -> Array:
        """C of the models without these folds, of shape (m, n_folds, n_outputs)."""
        # the coefficients c of the model without each fold U, by iteration from c = B b:
        # c ← B (b − (λ_U − λ₀) c) with the inverse B of the system without U, for λ₀
        m, n_outputs = self.b.shape
        factors = [scipy.linalg.cho_factor(self.G[np.ix_(fold, fold)]) for fold in folds]
        differences = self.differences[fold_numbers.start : fold_numbers.stop, None]
        solutions = np.repeat((self.G @ self.b)[:, None], len(folds), axis=1)
        self._leave_out_folds(solutions, folds, factors)
        for _ in range(self.n_steps - 1):
            right_hand_sides = self.b[:, None] - differences * solutions
            products = self.G @ right_hand_sides.reshape(m, -1)
            solutions = products.reshape(m, len(folds), n_outputs)
            self._leave_out_folds(solutions, folds, factors)
        return solutions

    def _leave_out_folds(
        self, solutions: Array, folds: Sequence[Fold], factors: list[tuple[Array, bool]]
    ) -> None:
        """Turn products with G into products with B, in place; `factors` belong to G_UU."""
        # `solutions` are G v of any vectors v: change them to B v, where B is the inverse without
        # the rows and columns of the fold U, B v = G v − G_{·U} (G_UU)⁻¹ (G v)_U
        for position, (fold, factor) in enumerate(zip(folds, factors, strict=True)):
            c_U = scipy.linalg.cho_solve(factor, solutions[fold, position])
            solutions[:, position] -= self.G[:, fold] @ c_U
            solutions[fold, position] = 0.0


class _SpectralModels:
    """``S = Q Λ Qᵀ``, and the models without a fold; S is overwritten by Qᵀ.

    Attributes
    ----------
    eigenvalues : ndarray of shape (m,)
        Diagonal of Λ.
    Q_transposed : ndarray of shape (m, m)
        Qᵀ.
    """

    def __init__(self, S: Array, b: Array) -> None:
        # S = Q diag(eigenvalues) Qᵀ, which serves (S + λI) c = b for every λ
        with allow_threads(len(S) ** 3):
            self.eigenvalues, Q = scipy.linalg.eigh(S.T, overwrite_a=True, check_finite=False)
        S[:] = Q.T  # in the memory of S, which is not needed any more
        self.Q_transposed = S
        self._rotated_b = self.Q_transposed @ b

    def without(self, fold: Fold, shifts: Array) -> Array:
        """Qᵀ c of the models without a fold U, of shape (m, n_outputs, n_shifts).

        With z = Qᵀ b and ``D = (Λ + λ)⁻¹`` it is ``D z − D Q_Uᵀ (Q_U D Q_Uᵀ)⁻¹ Q_U D z``: c is zero
        on U, and G = Q D Qᵀ.
        """
        # c without the fold U: c − G_{·U} (G_UU)⁻¹ c_U, with c = G b of all items and
        # G = (S + λI)⁻¹ = Q D Qᵀ; all is multiplied by Qᵀ, for each λ of `shifts`
        D = 1.0 / (self.eigenvalues[:, None] + shifts)  # (m, n_shifts)
        rotated_c = self._rotated_b[:, :, None] * D[:, None, :]  # Qᵀ c = D Qᵀ b
        m, n_outputs, n_shifts = rotated_c.shape
        n = len(fold)

        # G_UU = Q_U D Q_Uᵀ, of which each entry is computed once
        Q_U = np.ascontiguousarray(self.Q_transposed[:, fold].T)
        G_UU = np.empty((n, n, n_shifts))
        for row in range(n):
            G_UU[row, row:] = (Q_U[row:] * Q_U[row]) @ D
            G_UU[row:, row] = G_UU[row, row:]

        # c_U, and (G_UU)⁻¹ c_U, for all λ at once: NumPy solves over the last two axes
        c_U = (Q_U @ rotated_c.reshape(m, -1)).reshape(n, n_outputs, n_shifts)
        solution_U = np.linalg.solve(G_UU.transpose(2, 0, 1), c_U.transpose(2, 0, 1))
        columns = solution_U.transpose(1, 2, 0).reshape(n, n_outputs * n_shifts)
        rotated_c -= D[:, None, :] * (Q_U.T @ columns).reshape(rotated_c.shape)
        return np.asarray(rotated_c)


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
    # a = F c with the solution c of (S + λI) c = b without each unit, where S = Fᵀ K F and F b = t;
    # λ = α times the amount of the other items
    n_items = len(K)
    S = root.sandwich(K.copy())
    b = root.solve(target)
    scales = _remaining_amounts(amount, units)

    if len(alphas) == 1:
        inverse_models = _InverseModels.from_matrix(S, b, alphas[0] * scales)
        if inverse_models is not None:
            c = inverse_models.without(units, range(len(units)))
            return root.apply(c.reshape(n_items, -1)).reshape(*c.shape, 1)

    spectral_models = _SpectralModels(S, b)
    rotated_c = np.empty((n_items, len(units), target.shape[1], len(alphas)))
    for number, unit in enumerate(units):
        rotated_c[:, number] = spectral_models.without(unit, alphas * scales[number])
    columns = spectral_models.Q_transposed.T @ rotated_c.reshape(n_items, -1)
    c = columns.reshape(rotated_c.shape)  # a view of the columns
    for number, unit in enumerate(units):
        c[unit, number] = 0.0  # not its rounding error
    return root.apply(columns).reshape(c.shape)
