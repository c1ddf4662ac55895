"""Ratings without single comparisons or clusters of them, and the covariance that follows."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from rankwise.arrays import Array, Indices
from rankwise.caching import cached_property
from rankwise.groups import indices_by_group
from rankwise.leaderboard.algebra.comparison_counts import ComparisonCounts
from rankwise.leaderboard.algebra.rating_system import RatingSystem
from rankwise.runtime.memory import check_matrix_fits
from rankwise.runtime.progress import track
from rankwise.uncertainty.jackknife_errors import CovarianceRoot

BLOCK = 2**22  # numbers
N_DRAWS = 200
N_SKETCHES = 64
SKETCH_TOLERANCE = 1e-4
DRAW_TOLERANCE = 1e-3
JITTER = 1e-11  # added to the diagonal of correlations, which is 1
LEAST_SLACK = 1e-3  # 1 − leverage of a comparison that no other comparison supports


class LeaveOneOut:
    """A fitted least-squares problem from which comparisons are removed; dense.

    Parameters
    ----------
    system : RatingSystem
        The comparisons.
    unknowns : ndarray of shape (n_unknowns,)
        The solution of all comparisons.
    shift : float
        λ.
    is_exact : bool
        Whether removing comparisons gives the model without them exactly (least squares), or is one
        Newton step towards it.
    """

    def __init__(
        self, system: RatingSystem, unknowns: Array, shift: float, *, is_exact: bool = True
    ) -> None:
        self.system = system
        self.shift = shift
        self.margins = system.margins(unknowns)
        self.is_exact = is_exact

    @property
    def counts(self) -> ComparisonCounts:
        """The comparisons."""
        return self.system.counts

    @cached_property
    def matrix(self) -> Array:
        """``A = Dᵀ W D + Λ``."""
        size = self.system.size
        check_matrix_fits(4 * size, size, "the covariance", "use intervals=False")
        return self.system.regularized_gram(self.counts.pair_weights, self.shift)

    @cached_property
    def inverse(self) -> Array:
        """A⁻¹."""
        return np.asarray(np.linalg.inv(self.matrix), np.float64)

    @cached_property
    def resistances(self) -> Array:
        """Effective resistance ``xᵀ A⁻¹ x`` of each distinct pair."""
        system = self.system
        n = len(self.margins)
        resistances = np.empty(n)
        if system.T is None:  # every row has the same small number of entries
            columns = system.E.indices.reshape(n, -1)
            values = system.E.data.reshape(n, -1)
            size = max(1, BLOCK // columns.shape[1] ** 2)
            for start in range(0, n, size):
                rows = slice(start, start + size)
                blocks = self.inverse[columns[rows, :, None], columns[rows, None, :]]
                products = np.einsum("ka,kab,kb->k", values[rows], blocks, values[rows])
                resistances[rows] = products
            return resistances
        size = max(1, BLOCK // system.size)
        for start in range(0, n, size):
            D = system.rows(slice(start, start + size))
            resistances[start : start + size] = np.einsum("ij,ij->i", D @ self.inverse, D)
        return resistances

    @cached_property
    def leverages(self) -> Array:
        """Leverage of one comparison of each outcome."""
        return np.asarray(self.counts.weight * self.resistances[self.counts.pair])

    @cached_property
    def held_out(self) -> Array:
        """Residual of one comparison of each outcome, predicted without it."""
        return held_out_residuals(self.counts, self.margins, self.resistances)

    def change(self, rows: Indices) -> Array:
        """Return ``u − u^(−g)`` for the comparisons g in these rows.

        With their rows D, weights W and residual flows ρ = W (δ − D u) it is
        ``A⁻¹ Dᵀ (I − W D A⁻¹ Dᵀ)⁻¹ ρ = (A − Dᵀ W D)⁻¹ Dᵀ ρ``: Woodbury's formula for few
        comparisons, a solve for many.
        """
        counts = self.counts
        outcome = counts.outcome[rows]
        pairs = counts.pair[outcome]
        weights = counts.weight[outcome]
        residual_flows = weights * (counts.target[outcome] - self.margins[pairs])
        if len(rows) > self.system.size:
            return self._change_by_solve(pairs, weights, residual_flows)
        D = self.system.rows(pairs)
        influence = D @ self.inverse
        slack = np.eye(len(pairs)) - weights[:, None] * (D @ influence.T)
        return np.asarray(np.linalg.solve(slack, residual_flows) @ influence)

    def _change_by_solve(self, pairs: Indices, weights: Array, residual_flows: Array) -> Array:
        removed_weights = np.zeros(len(self.margins))
        flows = np.zeros(len(self.margins))
        np.add.at(removed_weights, pairs, weights)
        np.add.at(flows, pairs, residual_flows)
        matrix = self.matrix - self.system.dense_gram(removed_weights)
        return np.asarray(np.linalg.solve(matrix, self.system.apply_transpose(flows)))


def jackknife_covariance(
    exact: LeaveOneOut, clusters: Indices | None, thin: NDArray[np.bool_]
) -> CovarianceRoot:
    """``V = (U − 1)/U Σ_u (w^(−u) − w)(w^(−u) − w)ᵀ`` over U comparisons or clusters u.

    w^(−u) are ratings and effects without u, for the same λ. For one comparison with
    x = [e_i − e_j, z], residual e, A = Dᵀ W D + λI and leverage h = ω xᵀ A⁻¹ x it is
    ``w − A⁻¹ x ω e / (1 − h)``: White's sandwich estimator with the correction HC3. For a cluster
    it is Woodbury's formula.

    A comparison that alone connects two sets of items has h = 1, and its error is unknown. Its
    noise is set to the mean noise of the other comparisons; so is that of comparisons with h above
    0.999. A few comparisons that agree by chance would look exact, too; the noise of comparisons of
    `thin` items is therefore at least the mean.

    A prior shrinks ratings by λ, and what they lack is unknown, too: u has the variance σ²/λ, with
    σ² the mean noise, and V has the additional term ``λ σ² A⁻¹ P A⁻¹``, with P = 1 for regularized
    unknowns. If all noise is equal, the two terms add up to σ² A⁻¹, the posterior covariance.
    """
    system = exact.system
    n_units = len(system.counts.outcome)
    if clusters is not None:
        n_units = int(clusters.max()) + 1
    if system.is_huge:
        root = _root_by_draws(exact, clusters, thin)
        n_degrees = min(n_units, N_DRAWS)
    else:
        root = factor_covariance(_leave_out_covariance(exact, clusters, thin))
        n_degrees = n_units
    root *= np.sqrt(max(1, n_units - 1) / n_units)
    ratings, effects = system.ratings_and_effects(root)
    return CovarianceRoot(ratings, max(1, n_degrees - 1), effects, not system.is_huge, root)


def _leave_out_covariance(
    exact: LeaveOneOut, clusters: Indices | None, thin: NDArray[np.bool_]
) -> Array:
    """``Σ_u (w^(−u) − w)(w^(−u) − w)ᵀ`` and the noise that is missing from it."""
    system = exact.system
    counts = system.counts
    squares = missing_noise(counts, exact.held_out, thin)
    if clusters is None:
        squares += counts.sum_by_pair(counts.count * (counts.weight * exact.held_out) ** 2)
    meat = system.dense_gram(squares)
    if system.has_prior:
        regularized = np.arange(system.n_regularized)
        all_outcomes = np.ones(len(counts.count), bool)
        meat[regularized, regularized] += exact.shift * mean_noise(
            counts, exact.held_out, all_outcomes
        )
    V = exact.inverse @ meat @ exact.inverse
    if clusters is None:
        return np.asarray(V)
    members = indices_by_group(clusters)
    size = max(1, BLOCK // len(V))
    for start in track(range(0, len(members), size), "jackknife"):
        changes = np.array([exact.change(rows) for rows in members[start : start + size]])
        V += changes.T @ changes
    return np.asarray(V)


def held_out_margins(exact: LeaveOneOut, clusters: Indices) -> Array:
    """Margin of every comparison, predicted without its own cluster by Woodbury's formula.

    Above 2,000 items the prediction includes the cluster.
    """
    counts = exact.counts
    pair = counts.pair[counts.outcome]
    margins = exact.margins[pair]
    if exact.system.is_huge:
        return margins
    for rows in indices_by_group(clusters):
        margins[rows] -= exact.system.rows(pair[rows]) @ exact.change(rows)
    return margins


def held_out_residuals(counts: ComparisonCounts, margins: Array, resistances: Array) -> Array:
    """Residual e / (1 − h) of one comparison of each outcome."""
    error = counts.target - margins[counts.pair]
    slack = 1 - counts.weight * resistances[counts.pair]
    is_unsupported = slack < LEAST_SLACK
    held_out = np.where(is_unsupported, counts.target, error)
    held_out /= np.where(is_unsupported, 1.0, slack)
    if is_unsupported.any():
        reference = is_unsupported if is_unsupported.all() else ~is_unsupported
        noise = mean_noise(counts, held_out, reference)
        held_out[is_unsupported] = np.sqrt(noise / counts.weight[is_unsupported])
    return np.asarray(held_out)


def mean_noise(counts: ComparisonCounts, held_out: Array, outcomes: NDArray[np.bool_]) -> float:
    """Mean of ω e² over the comparisons with the selected outcomes."""
    weight = counts.weight[outcomes] * counts.count[outcomes]
    return float(weight @ held_out[outcomes] ** 2 / counts.count[outcomes].sum())


def missing_noise(counts: ComparisonCounts, held_out: Array, thin: NDArray[np.bool_]) -> Array:
    """Noise that comparisons of thin items lack to the mean, for each distinct pair.

    Few comparisons may fit without any error. The mean therefore counts, in addition to the N
    held-out squares, the mean square of the outcomes once for each of the unknown ratings and
    effects. If all outcomes are ties, one win takes that place.
    """
    n = len(counts.outcome)
    n_unknown = counts.n_items - int(counts.components.max()) + counts.covariates.shape[1]
    noise = mean_noise(counts, held_out, np.ones(len(held_out), bool))
    outcome_squares = counts.squared_target or counts.total_weight
    mean_square = (n * noise + n_unknown * outcome_squares / n) / (n + n_unknown) / counts.weight
    lack = counts.count * counts.weight**2 * np.maximum(0.0, mean_square - held_out**2)
    is_thin = counts.has_member(thin)
    return counts.sum_by_pair(lack * is_thin[counts.pair])


def factor_covariance(V: Array) -> Array:
    """Return F with F Fᵀ = V, for V positive semidefinite up to rounding.

    The correlations of V are factorized, and the rows of the factor multiplied by the standard
    errors. The jitter that makes the factorization possible in spite of rounding is therefore small
    relative to each variance, also if one unknown is a million times as uncertain as another.
    """
    errors = np.sqrt(np.maximum(V.diagonal(), 0.0))
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


def _root_by_draws(exact: LeaveOneOut, clusters: Indices | None, thin: NDArray[np.bool_]) -> Array:
    """Estimate the root for very many items: random leave-out changes, one solve for each.

    ``A⁻¹ Dᵀ z`` has the covariance V if z is a sum of the contributions of the units to the flows
    of the pairs, each with a random sign. The comparisons of a cluster are corrected by their own
    leverage only, not by that of the rest of the cluster.
    """
    system = exact.system
    counts = system.counts
    rng = np.random.default_rng(0)
    weights = counts.pair_weights
    resistances = _sketched_leverages(system, weights, exact.shift, rng) / weights
    held_out = held_out_residuals(counts, exact.margins, resistances)
    if clusters is None:
        squares = counts.sum_by_pair(counts.count * (counts.weight * held_out) ** 2)
        contributions = sp.diags(np.sqrt(squares))
    else:
        flows = (counts.weight * held_out)[counts.outcome]
        positions = (counts.pair[counts.outcome], clusters)
        shape = (len(weights), clusters.max() + 1)
        contributions = sp.coo_matrix((flows, positions), shape).tocsr()
    missing = np.sqrt(missing_noise(counts, held_out, thin))
    solve = system.solver(weights, exact.shift, DRAW_TOLERANCE, np.float32)
    root = np.empty((system.size, N_DRAWS))
    for k in track(range(N_DRAWS), "jackknife"):
        unit_signs = _random_signs(contributions.shape[1], rng)
        pair_signs = _random_signs(len(missing), rng)
        drawn_flows = contributions @ unit_signs + missing * pair_signs
        root[:, k] = solve(system.apply_transpose(drawn_flows))
    return np.asarray(root / np.sqrt(N_DRAWS))


def _sketched_leverages(
    system: RatingSystem, weights: Array, shift: float, rng: np.random.Generator
) -> Array:
    """Leverage of each distinct pair, with an error of 18% of h or of 1 − h, the smaller.

    With λ as comparisons of every item with 0 the hat matrix H is a projection. So h is the mean
    square of H q over random signs q, and 1 − h that of q − H q.
    """
    n_items = system.counts.n_items
    root_weights = np.sqrt(weights)
    inside = np.zeros(len(weights))
    outside = np.zeros(len(weights))
    solve = system.solver(weights, shift, SKETCH_TOLERANCE, np.float32)
    for _ in track(range(N_SKETCHES), "leverages"):
        signs = _random_signs(len(weights), rng)
        penalty_signs = _random_signs(system.size, rng)
        penalty_signs[:n_items] = system.counts.center(penalty_signs[:n_items])
        right = system.apply_transpose(root_weights * signs)
        right += np.sqrt(system.penalty(shift)) * penalty_signs
        projected = root_weights * system.margins(solve(right))
        inside += projected**2
        outside += (signs - projected) ** 2
    return np.asarray(inside / (inside + outside))


def _random_signs(size: int, rng: np.random.Generator) -> Array:
    return np.where(rng.integers(2, size=size, dtype=np.int8), 1.0, -1.0)
