"""Selection of alpha by the comparisons that are left out one at a time."""

from __future__ import annotations

from collections.abc import Callable, Iterator

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
    if system.size > EIGEN_LIMIT:
        raise ValueError(
            f'alpha="auto" is for at most {EIGEN_LIMIT:,} items or features, but there are '
            f"{system.size:,}; pass a number."
        )
    middle = middle_alpha(system)
    alphas = middle * RELATIVE_ALPHAS[::grid_step]
    losses = held_out_losses(alphas)
    if system.has_prior:
        log_likelihoods = -len(system.counts.outcome) * losses
        return alpha_of_prior(alphas, log_likelihoods, middle / stiffness)
    is_best = losses == np.nanmin(losses)
    return float(alphas[is_best].max())


def alpha_of_prior(alphas: Array, log_likelihoods: Array, middle: float) -> float:
    """Return the alpha that weights a prior, from the likelihood of left-out votes for each alpha.

    The prior has the share b = α/(α + m) of a rating, with m the `middle`; the votes have the rest.
    The density of b before votes are counted is 2(1 − b), a shrinkage prior (Daniels, A prior for
    the variance in hierarchical models, 1999). The result has the mean of b over the likelihoods.
    The alpha with the best likelihood would often be infinite for few votes: the prior ratings
    would be taken as exact, and the intervals would not cover the true ratings.
    """
    share = alphas / (alphas + middle)
    likelihoods = np.exp(log_likelihoods - log_likelihoods.max())
    weights = likelihoods * share * (1 - share) ** 2
    mean = float(weights @ share / weights.sum())
    return middle * mean / (1 - mean)


def middle_alpha(system: RatingSystem) -> float:
    """Return the mean eigenvalue of ``Xᵀ L X``, as an alpha."""
    counts = system.counts
    weights = counts.pair_weights
    if system.X is None:
        squares = (counts.members.weight**2).sum(axis=1)
        return float(weights @ squares / counts.n_items / counts.total_weight)
    differences = system.X[counts.first] - system.X[counts.second]
    squares = (differences**2).sum(axis=1)
    return float(weights @ squares / system.n_features / counts.total_weight)


def leave_one_out_errors(system: RatingSystem, alphas: Array) -> Array:
    """Weighted mean square of δ − (r_i − r_j), with r fitted without that comparison; exact.

    With x = x_i − x_j and A = Xᵀ L X + λI the residual of a left-out comparison is
    ``e / (1 − ω xᵀ A⁻¹ x)``. The λ of that fold is α (W − ω), as in a rating fitted to the
    remaining comparisons. One eigendecomposition serves all comparisons. The unknowns without
    regularization are eliminated first, by a Schur complement: their part of the leverage does not
    depend on λ.
    """
    counts = system.counts
    p = system.n_regularized
    gram = system.dense_gram(counts.pair_weights)
    right = system.apply_transpose(counts.pair_flows)

    free_gram = gram[p:, p:] + np.diag(system.penalty(0.0)[p:])
    eliminated = np.linalg.solve(free_gram, np.column_stack([gram[p:, :p], right[p:]]))
    values, vectors = eigh(gram[:p, :p] - gram[:p, p:] @ eliminated[:, :-1])
    values = np.maximum(values, 0.0)
    items = vectors if system.X is None else system.X @ vectors
    rotated_right = vectors.T @ (right[:p] - gram[:p, p:] @ eliminated[:, -1])
    free_columns = eliminated[:, :-1] @ vectors
    free_right = eliminated[:, -1]

    sums = np.zeros(len(alphas))
    for outcomes in _blocks_of_equal_weight(counts, len(values)):
        pairs = counts.pair[outcomes]
        omega = counts.weight[outcomes[0]]
        z = system.free_columns[pairs]
        inverse = 1 / (values[:, None] + alphas * (counts.total_weight - omega))
        x = _sums_over_members(counts, pairs, items) - z @ free_columns
        target = counts.target[outcomes] - z @ free_right
        residual = target[:, None] - x @ (inverse * rotated_right[:, None])
        free_leverage = np.einsum("ij,ij->i", z, np.linalg.solve(free_gram, z.T).T)
        leverage = omega * (free_leverage[:, None] + x**2 @ inverse)
        held_out = residual / (1 - leverage)
        sums += omega * (counts.count[outcomes] @ held_out**2)
    return np.asarray(sums / counts.total_weight)


def _sums_over_members(counts: ComparisonCounts, pairs: Indices, items: Array) -> Array:
    """Difference of the rows of two items; with teams, of the sums over their members."""
    if counts.teams is None:
        return np.asarray(items[counts.first[pairs]] - items[counts.second[pairs]])
    return np.asarray(counts.teams.select(pairs) @ items)


def _blocks_of_equal_weight(counts: ComparisonCounts, n_columns: int) -> Iterator[Indices]:
    """Yield all outcomes in blocks that fit into the cache and have equal weights."""
    order = np.argsort(counts.weight, kind="stable")
    changes = 1 + np.flatnonzero(np.diff(counts.weight[order]))
    size = max(1, BLOCK // n_columns)
    for equal_weight in np.split(order, changes):
        for start in range(0, len(equal_weight), size):
            yield equal_weight[start : start + size]
