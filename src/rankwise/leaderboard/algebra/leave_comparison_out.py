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
from rankwise.uncertainty.possible_ranks import CovarianceRoot

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
    ridge : float
        λ.
    removes_exactly : bool
        Whether removing comparisons gives the model without them exactly (least squares), or is one
        Newton step towards it.
    """

    def __init__(
        self, system: RatingSystem, unknowns: Array, ridge: float, *, removes_exactly: bool = True
    ) -> None:
        self.system = system
        self.ridge = ridge
        self.margins = system.margins(unknowns)
        self.removes_exactly = removes_exactly

    @property
    def counts(self) -> ComparisonCounts:
        """The comparisons."""
        return self.system.counts

    @cached_property
    def gram(self) -> Array:
        """``A = Dᵀ W D + Λ``."""
        # The regularized Gram matrix A = Dᵀ W D + Λ
        n_unknowns = self.system.n_unknowns
        check_matrix_fits(4 * n_unknowns, n_unknowns, "the covariance", "use intervals=False")
        return self.system.regularized_gram(self.counts.pair_weights, self.ridge)

    @cached_property
    def inverse_gram(self) -> Array:
        """A⁻¹."""
        return np.asarray(np.linalg.inv(self.gram), np.float64)

    @cached_property
    def resistances(self) -> Array:
        """Effective resistance ``xᵀ A⁻¹ x`` of each distinct pair."""
        # The effective resistance of a row x of the design: xᵀ A⁻¹ x
        if self.system.parameter_basis is None:  # rows are as sparse as the incidence matrix
            return self._resistances_of_sparse_rows()
        return self._resistances_of_dense_rows()

    def _resistances_of_sparse_rows(self) -> Array:
        """Resistances from the few entries of A⁻¹ that each row needs."""
        incidence = self.system.incidence
        n_rows = len(self.margins)
        columns = incidence.indices.reshape(n_rows, -1)  # every row has the same number of entries
        values = incidence.data.reshape(n_rows, -1)
        row_width = columns.shape[1]
        block_size = max(1, BLOCK // row_width**2)

        resistances = np.empty(n_rows)
        for start in range(0, n_rows, block_size):
            block = slice(start, start + block_size)
            x = values[block]  # (n_block, row_width)
            # A⁻¹ restricted to the entries of each row, (n_block, row_width, row_width)
            inverses = self.inverse_gram[columns[block, :, None], columns[block, None, :]]
            resistances[block] = np.einsum("ka,kab,kb->k", x, inverses, x)  # xᵀ A⁻¹ x
        return resistances

    def _resistances_of_dense_rows(self) -> Array:
        n_rows = len(self.margins)
        block_size = max(1, BLOCK // self.system.n_unknowns)
        resistances = np.empty(n_rows)
        for start in range(0, n_rows, block_size):
            block = slice(start, start + block_size)
            x = self.system.rows(block)  # (n_block, n_unknowns)
            resistances[block] = np.einsum("ij,ij->i", x @ self.inverse_gram, x)  # xᵀ A⁻¹ x
        return resistances

    @cached_property
    def leverages(self) -> Array:
        """Leverage of one comparison of each outcome."""
        return np.asarray(self.counts.weight * self.resistances[self.counts.pair_of_outcome])

    @cached_property
    def held_out_residuals(self) -> Array:
        """Residual of one comparison of each outcome, predicted without it."""
        return compute_held_out_residuals(self.counts, self.margins, self.resistances)

    def change_without(self, comparisons: Indices) -> Array:
        """Return ``u − u^(−g)`` for the comparisons g.

        With their rows D, weights W and weighted residuals ρ = W (δ − D u) it is
        ``A⁻¹ Dᵀ (I − W D A⁻¹ Dᵀ)⁻¹ ρ = (A − Dᵀ W D)⁻¹ Dᵀ ρ``: Woodbury's formula for few
        comparisons, a solve for many.
        """
        # The unknowns of all comparisons minus those without some of them.
        counts = self.counts
        outcome = counts.outcome_of_comparison[comparisons]
        pairs = counts.pair_of_outcome[outcome]
        weights = counts.weight[outcome]
        weighted_residuals = weights * (counts.target[outcome] - self.margins[pairs])
        if len(comparisons) > self.system.n_unknowns:
            return self._change_by_solve(pairs, weights, weighted_residuals)

        # Woodbury's formula: a system of the size of the removed comparisons, with their rows D
        # and weighted residuals ρ: ρᵀ (I − W D A⁻¹ Dᵀ)⁻ᵀ D A⁻¹.
        D = self.system.rows(pairs)
        influence = D @ self.inverse_gram  # (n_removed, n_unknowns)
        hat_matrix = weights[:, None] * (D @ influence.T)  # W D A⁻¹ Dᵀ
        held_out_residuals = np.linalg.solve(np.eye(len(pairs)) - hat_matrix, weighted_residuals)
        return np.asarray(held_out_residuals @ influence)

    def _change_by_solve(self, pairs: Indices, weights: Array, weighted_residuals: Array) -> Array:
        n_pairs = len(self.margins)
        removed_weights = np.zeros(n_pairs)
        removed_residuals = np.zeros(n_pairs)
        np.add.at(removed_weights, pairs, weights)
        np.add.at(removed_residuals, pairs, weighted_residuals)

        # (A − Dᵀ W D)⁻¹ Dᵀ ρ with the removed comparisons D and their weighted residuals ρ
        remaining_gram = self.gram - self.system.dense_gram(removed_weights)
        right_side = self.system.apply_transpose(removed_residuals)
        return np.asarray(np.linalg.solve(remaining_gram, right_side))


def jackknife_covariance(
    leave_one_out: LeaveOneOut, clusters: Indices | None, has_few_data: NDArray[np.bool_]
) -> CovarianceRoot:
    """``V = (U − 1)/U Σ_u (w^(−u) − w)(w^(−u) − w)ᵀ`` over U comparisons or clusters u.

    w^(−u) are ratings and effects without u, for the same λ. For one comparison with
    x = [e_i − e_j, z], residual e, A = Dᵀ W D + λI and leverage h = ω xᵀ A⁻¹ x it is
    ``w − A⁻¹ x ω e / (1 − h)``: White's sandwich estimator with the correction HC3. For a cluster
    it is Woodbury's formula.

    A comparison that alone connects two sets of items has h = 1, and its error is unknown. Its
    noise is set to the mean noise of the other comparisons; so is that of comparisons with h above
    0.999. A few comparisons that agree by chance would look exact, too; the noise of comparisons of
    items with few data is therefore at least the mean.

    A prior shrinks ratings by λ, and the resulting bias is uncertain, too: u has the variance σ²/λ,
    with σ² the mean noise, and V has the additional term ``λ σ² A⁻¹ P A⁻¹``, with P = 1 for
    regularized unknowns. If all noise is equal, the two terms add up to σ² A⁻¹, the posterior
    covariance.
    """
    system = leave_one_out.system
    # Units that are left out: comparisons, or clusters of them.
    n_units = system.counts.n_comparisons
    if clusters is not None:
        n_units = int(clusters.max()) + 1

    # A root F of the covariance F Fᵀ of the unknowns, or random draws if it would be too large.
    if system.exceeds_covariance_limit:
        root = _root_by_draws(leave_one_out, clusters, has_few_data)
        n_independent = min(n_units, N_DRAWS)
    else:
        covariance = _leave_out_covariance(leave_one_out, clusters, has_few_data)
        root = factor_covariance(covariance)
        n_independent = n_units
    jackknife_factor = max(1, n_units - 1) / n_units
    root *= np.sqrt(jackknife_factor)

    # The same of the ratings and of the effects of covariates, which are linear in the unknowns.
    ratings_root, effects_root = system.ratings_and_effects(root)
    return CovarianceRoot(
        root=ratings_root,
        freedom=max(1, n_independent - 1),
        effects_root=effects_root,
        is_from_draws=system.exceeds_covariance_limit,
        unknowns_root=root,
    )


def _leave_out_covariance(
    leave_one_out: LeaveOneOut, clusters: Indices | None, has_few_data: NDArray[np.bool_]
) -> Array:
    """``Σ_u (w^(−u) − w)(w^(−u) − w)ᵀ`` and the noise that is missing from it."""
    system = leave_one_out.system
    counts = leave_one_out.counts
    residuals = leave_one_out.held_out_residuals
    inverse_gram = leave_one_out.inverse_gram

    # The sandwich A⁻¹ M A⁻¹, where M is the Gram matrix weighted by the noise of each pair.
    noise_by_pair = missing_noise(counts, residuals, has_few_data)
    if clusters is None:
        noise_by_pair += counts.sum_by_pair(counts.count * (counts.weight * residuals) ** 2)
    middle = system.dense_gram(noise_by_pair)
    if system.has_prior:  # the prior itself errs: each regularized unknown has a variance σ²/λ
        all_outcomes = np.ones(len(counts.count), bool)
        prior_noise = leave_one_out.ridge * mean_noise(counts, residuals, all_outcomes)  # λ σ²
        regularized = np.arange(system.n_regularized)
        middle[regularized, regularized] += prior_noise
    covariance = np.asarray(inverse_gram @ middle @ inverse_gram)
    if clusters is None:
        return covariance

    # With clusters, the sum of (u − u without the cluster)(…)ᵀ, in blocks that fit into memory.
    comparisons_by_cluster = indices_by_group(clusters)
    block_size = max(1, BLOCK // len(covariance))
    for start in track(range(0, len(comparisons_by_cluster), block_size), "jackknife"):
        block = comparisons_by_cluster[start : start + block_size]
        changes = np.array([leave_one_out.change_without(comparisons) for comparisons in block])
        covariance += changes.T @ changes
    return covariance


def held_out_margins(leave_one_out: LeaveOneOut, clusters: Indices) -> Array:
    """Margin of every comparison, predicted without its own cluster by Woodbury's formula.

    Above 2,000 items the prediction includes the cluster.
    """
    system = leave_one_out.system
    counts = leave_one_out.counts
    pair_of_comparison = counts.pair_of_outcome[counts.outcome_of_comparison]
    margins = leave_one_out.margins[pair_of_comparison]
    if system.exceeds_covariance_limit:  # too many items to leave anything out
        return margins
    for comparisons in indices_by_group(clusters):
        # D u − D (u − u without the cluster) = D u without it, for the rows D of the comparisons in
        # the design matrix and the unknowns u
        design_rows = system.rows(pair_of_comparison[comparisons])
        margins[comparisons] -= design_rows @ leave_one_out.change_without(comparisons)
    return margins


def compute_held_out_residuals(
    counts: ComparisonCounts, margins: Array, resistances: Array
) -> Array:
    """Residual e / (1 − h) of one comparison of each outcome, with its leverage h."""
    # Residual e / (1 − h); with a leverage h of about 1 no other comparison determines the margin.
    residual = counts.target - margins[counts.pair_of_outcome]
    one_minus_leverage = 1 - counts.weight * resistances[counts.pair_of_outcome]
    is_unsupported = one_minus_leverage < LEAST_SLACK
    held_out_residuals = np.where(is_unsupported, counts.target, residual)
    held_out_residuals /= np.where(is_unsupported, 1.0, one_minus_leverage)

    # Without other comparisons of its items an error is unknown: it gets the mean noise.
    if is_unsupported.any():
        has_known_error = ~is_unsupported
        is_reference = is_unsupported if is_unsupported.all() else has_known_error
        noise = mean_noise(counts, held_out_residuals, is_reference)  # mean of ω e²
        held_out_residuals[is_unsupported] = np.sqrt(noise / counts.weight[is_unsupported])
    return np.asarray(held_out_residuals)


def mean_noise(
    counts: ComparisonCounts, held_out_residuals: Array, is_selected: NDArray[np.bool_]
) -> float:
    """Mean of ω e² over the comparisons with the selected outcomes."""
    n_comparisons = counts.count[is_selected]  # with each outcome
    total_weights = counts.weight[is_selected] * n_comparisons
    sum_of_squares = total_weights @ held_out_residuals[is_selected] ** 2
    return float(sum_of_squares / n_comparisons.sum())


def missing_noise(
    counts: ComparisonCounts, held_out_residuals: Array, has_few_data: NDArray[np.bool_]
) -> Array:
    """Mean noise minus the noise of comparisons of items with few data, for each distinct pair.

    Few comparisons may fit without any error. The mean therefore counts, in addition to the N
    held-out squares, the mean square of the outcomes once for each of the unknown ratings and
    effects. If all outcomes are ties, one win takes that place.
    """
    # Few comparisons may fit without error, so the mean noise also counts the mean square of the
    # outcomes, once for each unknown rating and effect.
    n = counts.n_comparisons
    n_ratings = counts.n_items - int(counts.components.max())  # one is 0 in each component
    n_unknown = n_ratings + counts.covariates.shape[1]
    all_outcomes = np.ones(len(held_out_residuals), bool)
    noise = mean_noise(counts, held_out_residuals, all_outcomes)
    outcome_squares = counts.squared_target
    if outcome_squares == 0:  # only ties: as if one comparison had a winner
        outcome_squares = counts.total_weight
    expected_noise = (n * noise + n_unknown * outcome_squares / n) / (n + n_unknown)

    # Expected noise, a mean ω e², minus the squared residuals e² of items with few data.
    missing_squares = np.maximum(0.0, expected_noise / counts.weight - held_out_residuals**2)
    missing_by_outcome = counts.count * counts.weight**2 * missing_squares  # of (ω e)²
    is_affected = counts.has_member(has_few_data)[counts.pair_of_outcome]
    return counts.sum_by_pair(missing_by_outcome * is_affected)


def factor_covariance(covariance: Array) -> Array:
    """Return F with F Fᵀ = V, for the covariance V positive semidefinite up to rounding.

    The correlations of V are factorized, and the rows of the factor multiplied by the standard
    errors. The jitter that makes the factorization possible in spite of rounding is therefore small
    relative to each variance, also if one unknown is a million times as uncertain as another.
    """
    # Correlations are factorized: the jitter on their diagonal is small relative to each variance.
    errors = np.sqrt(np.maximum(covariance.diagonal(), 0.0))
    n = len(covariance)
    if not errors.any():
        return np.zeros((n, 1))

    inverse_errors = np.divide(1.0, errors, out=np.zeros_like(errors), where=errors > 0)
    symmetric = (covariance + covariance.T) / 2
    correlations = symmetric * inverse_errors[:, None] * inverse_errors
    correlations = np.clip(correlations, -1.0, 1.0)
    try:
        factor = np.linalg.cholesky(correlations + JITTER * np.eye(n))
    except np.linalg.LinAlgError:  # rounding exceeds the jitter if features are nearly collinear
        eigenvalues, eigenvectors = np.linalg.eigh(correlations)
        factor = eigenvectors * np.sqrt(np.maximum(eigenvalues, 0.0))
        row_norms = np.linalg.norm(factor, axis=1, keepdims=True)
        factor /= np.where(row_norms > 0, row_norms, 1.0)  # a correlation with itself is 1
    return np.asarray(errors[:, None] * factor)


def _root_by_draws(
    leave_one_out: LeaveOneOut, clusters: Indices | None, has_few_data: NDArray[np.bool_]
) -> Array:
    """Estimate the root for very many items: random leave-out changes, one solve for each.

    ``A⁻¹ Dᵀ z`` has the covariance V if z is a sum of the contributions of the units to the
    weighted residuals of the pairs, each with a random sign. The comparisons of a cluster are
    corrected by their own leverage only, not by that of the rest of the cluster.
    """
    system = leave_one_out.system
    counts = leave_one_out.counts
    ridge = leave_one_out.ridge
    rng = np.random.default_rng(0)
    pair_weights = counts.pair_weights
    n_pairs = len(pair_weights)
    resistances = _sketched_leverages(system, pair_weights, ridge, rng) / pair_weights
    residuals = compute_held_out_residuals(counts, leave_one_out.margins, resistances)
    unit_residuals = _pair_residuals_by_unit(counts, residuals, clusters)
    missing_errors = np.sqrt(missing_noise(counts, residuals, has_few_data))

    # A draw: the sum of the residuals of all units with random signs, as a right-hand side. The
    # covariance of such sums is M, and that of their solutions A⁻¹ M A⁻¹.
    solve = system.solver(pair_weights, ridge, DRAW_TOLERANCE, np.float32)
    root = np.empty((system.n_unknowns, N_DRAWS))
    for draw in track(range(N_DRAWS), "jackknife"):
        unit_signs = _random_signs(unit_residuals.shape[1], rng)
        pair_signs = _random_signs(n_pairs, rng)
        pair_values = unit_residuals @ unit_signs + missing_errors * pair_signs
        root[:, draw] = solve(system.apply_transpose(pair_values))
    return np.asarray(root / np.sqrt(N_DRAWS))  # so that root @ root.T is the mean over the draws


def _pair_residuals_by_unit(
    counts: ComparisonCounts, held_out_residuals: Array, clusters: Indices | None
) -> sp.csr_matrix:
    """Weighted residuals of each unit, by pair: (n_pairs, n_units).

    All independent comparisons of a pair are one unit, with the sum of their squares.
    """
    if clusters is None:
        squared_residuals = counts.count * (counts.weight * held_out_residuals) ** 2
        squares = counts.sum_by_pair(squared_residuals)
        return sp.diags(np.sqrt(squares)).tocsr()
    weighted_residuals = (counts.weight * held_out_residuals)[counts.outcome_of_comparison]
    positions = (counts.pair_of_outcome[counts.outcome_of_comparison], clusters)
    shape = (len(counts.first), clusters.max() + 1)
    return sp.coo_matrix((weighted_residuals, positions), shape).tocsr()


def _sketched_leverages(
    system: RatingSystem, weights: Array, ridge: float, rng: np.random.Generator
) -> Array:
    """Leverage of each distinct pair, with an error of 18% of h or of 1 − h, the smaller.

    With λ as comparisons of every item with 0 the hat matrix H is a projection. So h is the mean
    square of H q over random signs q, and 1 − h that of q − H q.
    """
    # Estimates of the diagonal of H = √W D A⁻¹ Dᵀ √W: mean squares of H q for random signs q, as
    # shares of those of H q and (I − H) q. The penalties count as further rows of the design.
    n_items = system.counts.n_items
    root_weights = np.sqrt(weights)
    root_penalties = np.sqrt(system.penalties(ridge))
    sum_of_projected_squares = np.zeros(len(weights))
    sum_of_residual_squares = np.zeros(len(weights))
    solve = system.solver(weights, ridge, SKETCH_TOLERANCE, np.float32)
    for _ in track(range(N_SKETCHES), "leverages"):
        signs = _random_signs(len(weights), rng)
        penalty_signs = _random_signs(system.n_unknowns, rng)
        # Only differences within a component have margins.
        penalty_signs[:n_items] = system.counts.center(penalty_signs[:n_items])

        right_side = system.apply_transpose(root_weights * signs)
        right_side += root_penalties * penalty_signs
        projected = root_weights * system.margins(solve(right_side))  # H q
        sum_of_projected_squares += projected**2
        sum_of_residual_squares += (signs - projected) ** 2
    total = sum_of_projected_squares + sum_of_residual_squares
    return np.asarray(sum_of_projected_squares / total)


def _random_signs(size: int, rng: np.random.Generator) -> Array:
    return np.where(rng.integers(2, size=size, dtype=np.int8), 1.0, -1.0)
