"""What a board is without some comparisons: errors of the ratings, and what holds an order."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from rankwise.arrays import Array, Indices
from rankwise.caching import cached_property
from rankwise.groups import indices_by_group
from rankwise.leaderboard.algebra.comparison_counts import ComparisonCounts
from rankwise.leaderboard.algebra.rating_system import BLOCK, RatingSystem
from rankwise.runtime.memory import check_matrix_fits
from rankwise.runtime.progress import track
from rankwise.uncertainty.jackknife_errors import CovarianceRoot

N_DRAWS = 200

N_SKETCHES = 64

SKETCH_TOLERANCE = 1e-4

DRAW_TOLERANCE = 1e-3

JITTER = 1e-11  # added to correlations, of which the diagonal is 1

ALONE = 1e-3  # 1 − leverage of a comparison that the others cannot check

LARGEST_WEIGHT = (
    2_500_000  # items times outcomes of boards whose neighbors are all looked at: a second
)


def jackknife_covariance(
    exact: LeaveOneOut, clusters: Indices | None, thin: NDArray[np.bool_]
) -> CovarianceRoot:
    """``V = (U − 1)/U Σ_u (w^(−u) − w)(w^(−u) − w)ᵀ`` over U comparisons or clusters u.

    w^(−u) are ratings and effects without u, for the same λ. For one comparison with
    x = [e_i − e_j, z], residual e, A = Dᵀ W D + λI and leverage h = ω xᵀ A⁻¹ x it is
    ``w − A⁻¹ x ω e / (1 − h)``: the sandwich of White with the correction HC3. For a cluster it is
    Woodbury's formula.

    A comparison that alone connects two sets of items has h = 1, and its error is unknown. It is
    taken to be as noisy as the others are on average. So is one with h above 0.999. A few
    comparisons that happen to agree would look exact, too; those of `thin` items are taken to be
    at least as noisy as the average.

    Where ratings are drawn to a prior by λ, what they lack is unknown, too: u has the variance
    σ²/λ with σ² the mean noise, and V has ``λ σ² A⁻¹ P A⁻¹`` more, P being 1 for what is
    regularized. If all noise is alike the two add up to σ² A⁻¹, the posterior covariance.
    """
    system, tally = exact.system, exact.system.tally
    n_units = len(tally.outcome) if clusters is None else int(clusters.max()) + 1
    if system.is_huge:
        root = _by_draws(exact, clusters, thin)
        freedom, is_exact = min(n_units, N_DRAWS), False
    else:
        squares = missing_noise(tally, exact.held_out, thin)
        if clusters is None:
            squares += tally.by_pair(tally.count * (tally.weight * exact.held_out) ** 2)
        meat = system.dense_gram(squares)
        if system.has_prior:
            drawn, every = np.arange(system.n_regularized), np.ones(len(tally.count), bool)
            meat[drawn, drawn] += exact.shift * mean_noise(tally, exact.held_out, every)
        V = exact.inverse @ meat @ exact.inverse
        if clusters is not None:  # Σ (u^(−g) − u)(u^(−g) − u)ᵀ over the clusters g
            members, step = indices_by_group(clusters), max(1, BLOCK // len(V))
            for start in track(range(0, len(members), step), "jackknife"):
                changes = np.array([exact.change(rows) for rows in members[start : start + step]])
                V += changes.T @ changes
        root, freedom, is_exact = root_of(V), n_units, True
    root *= np.sqrt(max(1, n_units - 1) / n_units)
    ratings, effects = system.ratings_and_effects(root)
    return CovarianceRoot(ratings, max(1, freedom - 1), effects, is_exact)


class LeaveOneOut:
    """What ratings and effects become without some of the comparisons; dense.

    Parameters
    ----------
    system : RatingSystem
        The comparisons.
    unknowns : ndarray of shape (n_unknowns,)
        The solution of all comparisons.
    shift : float
        λ.
    """

    def __init__(self, system: RatingSystem, unknowns: Array, shift: float) -> None:
        self.system, self.shift, self.margins = system, shift, system.margins(unknowns)

    @cached_property
    def matrix(self) -> Array:
        """A."""
        size = self.system.size
        check_matrix_fits(4 * size, size, "the covariance", "use intervals=False")
        return self.system.grounded(self.system.tally.sums[0], self.shift)

    @cached_property
    def inverse(self) -> Array:
        """A⁻¹."""
        return np.asarray(np.linalg.inv(self.matrix), np.float64)

    @cached_property
    def resistances(self) -> Array:
        """``xᵀ A⁻¹ x`` of each distinct pair."""
        system, n = self.system, len(self.margins)
        if system.T is None:  # few entries in a row, as many in each
            at, values = system.E.indices.reshape(n, -1), system.E.data.reshape(n, -1)
            between = self.inverse[at[:, :, None], at[:, None, :]]
            return np.asarray(np.einsum("ka,kab,kb->k", values, between, values))
        resistances, size = np.empty(n), max(1, BLOCK // system.size)
        for start in range(0, n, size):
            D = system.rows(slice(start, start + size))
            resistances[start : start + size] = np.einsum("ij,ij->i", D @ self.inverse, D)
        return resistances

    @cached_property
    def held_out(self) -> Array:
        """Residual of a comparison of each outcome, left out."""
        return held_out_residuals(self.system.tally, self.margins, self.resistances)

    def change(self, rows: Indices) -> Array:
        """``u − u^(−g)`` without some comparisons g: Woodbury's formula, or a solve for many.

        With their rows D, weights W and what is left of their flows ρ = W (δ − D u) it is
        ``A⁻¹ Dᵀ (I − W D A⁻¹ Dᵀ)⁻¹ ρ = (A − Dᵀ W D)⁻¹ Dᵀ ρ``.
        """
        system, tally, outcome = self.system, self.system.tally, self.system.tally.outcome[rows]
        pairs, weights = tally.pair[outcome], tally.weight[outcome]
        left = weights * (tally.target[outcome] - self.margins[pairs])
        if len(rows) > system.size:
            gone, flows = np.zeros((2, len(self.margins)))
            np.add.at(gone, pairs, weights)
            np.add.at(flows, pairs, left)
            matrix = self.matrix - system.dense_gram(gone)
            return np.asarray(np.linalg.solve(matrix, system.right(flows)))
        D = system.rows(pairs)
        Y = D @ self.inverse
        inner = np.eye(len(pairs)) - weights[:, None] * (D @ Y.T)
        return np.asarray(np.linalg.solve(inner, left) @ Y)


def held_out_margins(exact: LeaveOneOut, clusters: Indices) -> Array:
    """Margin of every comparison without its own cluster, by Woodbury's formula.

    Above 2,000 items the cluster is in.
    """
    tally = exact.system.tally
    pair = tally.pair[tally.outcome]
    margins = exact.margins[pair]
    for rows in [] if exact.system.is_huge else indices_by_group(clusters):
        margins[rows] -= exact.system.rows(pair[rows]) @ exact.change(rows)
    return margins


def held_out_residuals(tally: ComparisonCounts, margins: Array, resistances: Array) -> Array:
    """Residual e / (1 − h) of a comparison of each outcome."""
    error = tally.target - margins[tally.pair]
    rest = 1 - tally.weight * resistances[tally.pair]
    alone = rest < ALONE
    held_out = np.where(alone, tally.target, error) / np.where(alone, 1.0, rest)
    if alone.any():
        others = ~alone if not alone.all() else alone
        held_out[alone] = np.sqrt(mean_noise(tally, held_out, others) / tally.weight[alone])
    return held_out


def mean_noise(tally: ComparisonCounts, held_out: Array, outcomes: NDArray[Any]) -> float:
    """Mean of ω e² over the comparisons of some outcomes."""
    weight = tally.weight[outcomes] * tally.count[outcomes]
    return float(weight @ held_out[outcomes] ** 2 / tally.count[outcomes].sum())


def missing_noise(tally: ComparisonCounts, held_out: Array, thin: NDArray[np.bool_]) -> Array:
    """What the squares of comparisons of thin items lack to the average, for each distinct pair.

    Few comparisons may fit without any error. So the average counts, beside the N held-out squares,
    the mean square of the outcomes themselves for each of the unknown ratings and effects. If all
    of them are ties, one win stands for that.
    """
    n, unknown = len(tally.outcome), tally.n_items - int(tally.components.max())
    unknown += tally.covariates.shape[1]
    noise = mean_noise(tally, held_out, np.ones(len(held_out), bool))
    size = tally.squared_target or tally.total_weight
    average = (n * noise + unknown * size / n) / (n + unknown) / tally.weight
    lack = tally.count * tally.weight**2 * np.maximum(0.0, average - held_out**2)
    return tally.by_pair(lack * (thin[tally.first] | thin[tally.second])[tally.pair])


def root_of(V: Array) -> Array:
    """F with F Fᵀ = V, which is positive semidefinite up to rounding.

    The correlations of V are factorized, and the rows of the factor multiplied by the standard
    errors. What makes the factorization possible in spite of rounding is therefore small beside
    each variance, also if one unknown is a million times as uncertain as another.
    """
    variances = np.maximum(V.diagonal(), 0.0)
    errors = np.sqrt(variances)
    if not errors.any():
        return np.zeros((len(V), 1))
    inverse_errors = np.divide(1.0, errors, out=np.zeros_like(errors), where=errors > 0)
    correlations = (V + V.T) / 2 * inverse_errors[:, None] * inverse_errors
    correlations = np.clip(correlations, -1.0, 1.0)
    try:
        factor = np.linalg.cholesky(correlations + JITTER * np.eye(len(V)))
    except np.linalg.LinAlgError:  # rounding exceeds the jitter if features are nearly collinear
        values, vectors = np.linalg.eigh(correlations)
        factor = vectors * np.sqrt(np.maximum(values, 0.0))
        norms = np.linalg.norm(factor, axis=1, keepdims=True)
        factor /= np.where(norms > 0, norms, 1.0)
    return np.asarray(errors[:, None] * factor)


def _by_draws(exact: LeaveOneOut, clusters: Indices | None, thin: NDArray[np.bool_]) -> Array:
    """The same for very many items: random leave-out changes, each one solve of one system.

    ``A⁻¹ Dᵀ z`` has the covariance V if z is a sum of what the units add to the flows of the
    pairs, each with a random sign. The comparisons of a cluster are corrected by their
    own leverage only, not by that of the rest of the cluster.
    """
    system, tally = exact.system, exact.system.tally
    (weights, _), rng = tally.sums, np.random.default_rng(0)
    resistances = _sketched_leverages(system, weights, exact.shift, rng) / weights
    held_out = held_out_residuals(tally, exact.margins, resistances)
    if clusters is None:
        changes = sp.diags(np.sqrt(tally.by_pair(tally.count * (tally.weight * held_out) ** 2)))
    else:
        flow, at = (tally.weight * held_out)[tally.outcome], (tally.pair[tally.outcome], clusters)
        changes = sp.coo_matrix((flow, at), (len(weights), clusters.max() + 1)).tocsr()
    more = np.sqrt(missing_noise(tally, held_out, thin))
    solve = system.solver(weights, exact.shift, DRAW_TOLERANCE, np.float32)
    root = np.empty((system.size, N_DRAWS))
    for k in track(range(N_DRAWS), "jackknife"):
        flows = changes @ _signs(changes.shape[1], rng) + more * _signs(len(more), rng)
        root[:, k] = solve(system.right(flows))
    return np.asarray(root / np.sqrt(N_DRAWS))


def _sketched_leverages(
    system: RatingSystem, weights: Array, shift: float, rng: np.random.Generator
) -> Array:
    """Leverage of each distinct pair, with an error of 18 % of h or of 1 − h, the smaller.

    With λ as comparisons of every item with 0 the hat matrix H is a projection. So h is the mean
    square of H q over random signs q, and 1 − h that of q − H q.
    """
    n, root = system.tally.n_items, np.sqrt(weights)
    inside, outside = np.zeros((2, len(weights)))
    solve = system.solver(weights, shift, SKETCH_TOLERANCE, np.float32)
    for _ in track(range(N_SKETCHES), "leverages"):
        signs, own = _signs(len(weights), rng), _signs(system.size, rng)
        own[:n] = system.tally.centered(own[:n])
        right = system.right(root * signs) + np.sqrt(system.penalty(shift)) * own
        projected = root * system.margins(solve(right))
        inside += projected**2
        outside += (signs - projected) ** 2
    return np.asarray(inside / (inside + outside))


def _signs(size: int, rng: np.random.Generator) -> Array:
    return np.where(rng.integers(2, size=size, dtype=np.int8), 1.0, -1.0)
