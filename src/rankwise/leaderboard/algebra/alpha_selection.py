"""Selection of alpha by the comparisons that are left out one at a time."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np
from scipy.linalg import eigh

from rankwise.arrays import Array, Indices
from rankwise.leaderboard.algebra.comparison_counts import ComparisonCounts
from rankwise.leaderboard.algebra.rating_system import RatingSystem

RELATIVE_ALPHAS = np.logspace(-5, 3, 33)  # from almost no regularization to a very strong one
EIGEN_LIMIT = 3000  # items or features for which alpha can be selected
BLOCK = 2**22  # numbers


def select_alpha(
    system: RatingSystem,
    held_out_losses: Callable[[Array], Array],
    *,
    grid_step: int = 1,
    stiffness: float = 1.0,
) -> float:
    """Return the alpha that predicts best the comparisons left out one at a time.

    Parameters
    ----------
    system : RatingSystem
        The comparisons.
    held_out_losses : callable
        Mean loss of the left-out comparisons for each of several alphas.
    grid_step : int
        Use every n-th alpha of the grid; larger for models that need a fit for each alpha.
    stiffness : float
        Factor of alpha in the Hessian, relative to the curvature of one comparison.
    """
    if system.n_unknowns > EIGEN_LIMIT:
        raise ValueError(
            f'alpha="auto" is for at most {EIGEN_LIMIT:,} items or features, but there are '
            f"{system.n_unknowns:,}; pass a number."
        )
    center_of_grid = middle_alpha(system)
    alphas = center_of_grid * RELATIVE_ALPHAS[::grid_step]
    losses = held_out_losses(alphas)
    if system.has_prior:  # the mean over the posterior of alpha, not its mode
        n_comparisons = system.counts.n_comparisons
        log_likelihoods = -n_comparisons * losses
        middle = center_of_grid / stiffness  # where prior and votes have the same curvature
        return alpha_of_prior(alphas, log_likelihoods, middle)

    # The strongest regularization with the smallest loss.
    is_best = losses == np.nanmin(losses)
    return float(alphas[is_best].max())


def would_select_larger_alpha(system: RatingSystem, alpha: float) -> bool:
    """Whether `select_alpha` accepts the system, and tries larger values than this alpha only."""
    if system.n_unknowns > EIGEN_LIMIT:
        return False
    smallest = middle_alpha(system) * RELATIVE_ALPHAS[0]
    return bool(alpha < smallest)


def alpha_of_prior(alphas: Array, log_likelihoods: Array, middle: float) -> float:
    """Return the alpha that weights a prior, from the likelihood of left-out votes for each alpha.

    The prior has the share b = α/(α + m) of a rating, with m the `middle`; the votes have the rest.
    The density of b before votes are counted is 2(1 − b), a shrinkage prior (Daniels, A prior for
    the variance in hierarchical models, 1999). The result has the mean of b over the likelihoods.
    The alpha with the best likelihood would often be infinite for few votes: the prior ratings
    would be taken as exact, and the intervals would not cover the true ratings.
    """
    # Mean of the share b = α/(α + middle) of the prior in a rating, for the prior density 2(1 − b).
    prior_share = alphas / (alphas + middle)  # b
    likelihoods = np.exp(log_likelihoods - log_likelihoods.max())
    # The alphas are evenly spaced in log alpha, where db = b (1 − b) d log alpha.
    posterior_weights = likelihoods * prior_share * (1 - prior_share) ** 2
    mean_share = float(posterior_weights @ prior_share / posterior_weights.sum())

    # Back from the share to alpha.
    return middle * mean_share / (1 - mean_share)


def middle_alpha(system: RatingSystem) -> float:
    """Return the mean eigenvalue of ``Xᵀ L X``, as an alpha."""
    # The mean eigenvalue of the Gram matrix is its trace / number of eigenvalues; the trace is the
    # weighted sum of the squared lengths of the design rows x_i − x_j.
    counts = system.counts
    if system.X is None:
        squared_lengths = (counts.members.weight**2).sum(axis=1)
        n_eigenvalues = counts.n_items
    else:
        differences = system.X[counts.first] - system.X[counts.second]
        squared_lengths = (differences**2).sum(axis=1)
        n_eigenvalues = system.max_n_eigenvalues
    trace = counts.pair_weights @ squared_lengths
    return float(trace / n_eigenvalues / counts.total_weight)


def leave_one_out_errors(system: RatingSystem, alphas: Array) -> Array:
    """Weighted mean square of δ − (r_i − r_j), with r fitted without that comparison; exact.

    With x = x_i − x_j and A = Xᵀ L X + λI the residual of a left-out comparison is
    ``e / (1 − ω xᵀ A⁻¹ x)``. The λ of that fold is α (W − ω), as in a rating fitted to the
    remaining comparisons. One eigendecomposition serves all comparisons. The unknowns without
    regularization are eliminated first, by a Schur complement: their part of the leverage does not
    depend on λ.
    """
    # One eigendecomposition serves all alphas and all left-out comparisons.
    counts = system.counts
    eigensystem = _eigensystem_of_regularized(system)
    n_eigenvalues = len(eigensystem.eigenvalues)
    weighted_squares = np.zeros(len(alphas))
    for outcomes in _blocks_of_equal_weight(counts, n_eigenvalues):
        residuals = _left_out_residuals(system, eigensystem, outcomes, alphas)
        weight = counts.weight[outcomes[0]]
        weighted_squares += weight * (counts.count[outcomes] @ residuals**2)
    return np.asarray(weighted_squares / counts.total_weight)


class _Eigensystem(NamedTuple):
    """Normal equations of the regularized unknowns, in the coordinates of their eigenvectors.

    The unknowns without regularization, called free, are eliminated.

    Attributes
    ----------
    eigenvalues : ndarray of shape (n_regularized,)
        Eigenvalues of the Schur complement of the free unknowns.
    right_side : ndarray of shape (n_regularized,)
        Right-hand side.
    item_rows : ndarray of shape (n_items, n_regularized)
        Ratings of the items as functions of the unknowns.
    free_gram : ndarray of shape (n_free, n_free)
        Gram matrix F of the free unknowns.
    solved_cross_gram : ndarray of shape (n_free, n_regularized)
        F⁻¹ times the cross products of free and regularized unknowns.
    solved_free_right_side : ndarray of shape (n_free,)
        F⁻¹ times the right-hand side of the free unknowns.
    """

    eigenvalues: Array
    right_side: Array
    item_rows: Array
    free_gram: Array
    solved_cross_gram: Array
    solved_free_right_side: Array


def _eigensystem_of_regularized(system: RatingSystem) -> _Eigensystem:
    # Normal equations [[G, Cᵀ], [C, F]] [u, v] = [b, c] of the regularized unknowns u and of the
    # free ones v (effects of covariates, weights of priors), which have no regularization.
    counts = system.counts
    regularized = slice(system.n_regularized)
    free = slice(system.n_regularized, None)
    gram = system.dense_gram(counts.pair_weights)
    right_side = system.apply_transpose(counts.pair_target_sums)
    cross_gram = gram[regularized, free]  # Cᵀ
    free_gram = gram[free, free] + np.diag(system.penalties(0.0)[free])  # F

    # F⁻¹ C and F⁻¹ c by one solve.
    free_right_sides = np.column_stack([gram[free, regularized], right_side[free]])
    solved = np.asarray(np.linalg.solve(free_gram, free_right_sides), np.float64)
    solved_cross_gram = solved[:, :-1]
    solved_free_right_side = solved[:, -1]

    # Without the free unknowns: (G − Cᵀ F⁻¹ C) u = b − Cᵀ F⁻¹ c, in coordinates of eigenvectors.
    schur_complement = gram[regularized, regularized] - cross_gram @ solved_cross_gram
    reduced_right_side = right_side[regularized] - cross_gram @ solved_free_right_side
    eigenvalues, eigenvectors = eigh(schur_complement)
    return _Eigensystem(
        eigenvalues=np.maximum(eigenvalues, 0.0),
        right_side=eigenvectors.T @ reduced_right_side,
        item_rows=eigenvectors if system.X is None else system.X @ eigenvectors,
        free_gram=free_gram,
        solved_cross_gram=solved_cross_gram @ eigenvectors,
        solved_free_right_side=solved_free_right_side,
    )


def _left_out_residuals(
    system: RatingSystem, eigensystem: _Eigensystem, outcomes: Indices, alphas: Array
) -> Array:
    """Residual of a comparison of each outcome, without it, of shape (n_outcomes, n_alphas).

    The outcomes have the same weight.
    """
    counts = system.counts
    pairs = counts.pair_of_outcome[outcomes]
    weight = counts.weight[outcomes[0]]  # all outcomes have the same weight

    # Design rows and targets, less the part that the unregularized unknowns explain.
    free_columns = system.unregularized_columns[pairs]
    item_differences = _differences_of_sides(counts, pairs, eigensystem.item_rows)
    x = item_differences - free_columns @ eigensystem.solved_cross_gram
    target = counts.target[outcomes] - free_columns @ eigensystem.solved_free_right_side

    # Residuals of a fit with the λ that the left-out fit has, of shape (n_outcomes, n_alphas).
    ridges = alphas * (counts.total_weight - weight)
    inverse_eigenvalues = 1 / (eigensystem.eigenvalues[:, None] + ridges)
    solutions = inverse_eigenvalues * eigensystem.right_side[:, None]
    residuals = target[:, None] - x @ solutions

    # A left-out residual is the residual / (1 − leverage).
    solved_free_columns = np.linalg.solve(eigensystem.free_gram, free_columns.T).T
    free_leverage = np.einsum("ij,ij->i", free_columns, solved_free_columns)
    leverages = weight * (free_leverage[:, None] + x**2 @ inverse_eigenvalues)
    return np.asarray(residuals / (1 - leverages))


def _differences_of_sides(counts: ComparisonCounts, pairs: Indices, item_rows: Array) -> Array:
    """Difference of the rows of two items; with teams, of the sums over their members."""
    if counts.teams is None:
        return np.asarray(item_rows[counts.first[pairs]] - item_rows[counts.second[pairs]])
    return np.asarray(counts.teams.select(pairs) @ item_rows)


def _blocks_of_equal_weight(counts: ComparisonCounts, n_columns: int) -> Iterator[Indices]:
    """Yield all outcomes in blocks that fit into the cache and have equal weights."""
    # Outcomes sorted by weight, in blocks that fit into the cache.
    outcomes_by_weight = np.argsort(counts.weight, kind="stable")
    sorted_weights = counts.weight[outcomes_by_weight]
    starts_of_weights = 1 + np.flatnonzero(np.diff(sorted_weights))
    block_size = max(1, BLOCK // n_columns)
    for outcomes_of_weight in np.split(outcomes_by_weight, starts_of_weights):
        for start in range(0, len(outcomes_of_weight), block_size):
            yield outcomes_of_weight[start : start + block_size]
