"""Spread of the ratings from leaving out every comparison, or every cluster, without refits."""

from __future__ import annotations

from abc import ABC, abstractmethod
from functools import cached_property
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from rankwise.arrays import Array, Indices
from rankwise.leaderboard.resampling import Units
from rankwise.leaderboard.solving import RatingSystem, Solution, SparseSystem
from rankwise.leaderboard.tally import Tally
from rankwise.machine import Progress, check_matrix_fits
from rankwise.uncertainty.jackknife import COVARIANCE_LIMIT, Spread

N_DRAWS = 200
N_SKETCHES = 64
SKETCH_TOLERANCE = 1e-4
DRAW_TOLERANCE = 1e-3
ALONE = 1e-3  # 1 − leverage of a comparison that the others cannot check
BLOCK = 2**22  # numbers


def jackknife(
    system: RatingSystem,
    solution: Solution,
    alpha: float,
    clusters: Indices | None,
    rng: np.random.Generator,
    thin: NDArray[np.bool_],
    *,
    is_prior: bool = False,
) -> Spread:
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
    tally, shift = system.tally, alpha * system.tally.total_weight
    if system.X is None and system.size > COVARIANCE_LIMIT:
        return _by_draws(system, solution, shift, clusters, rng, thin)
    exact = LeaveOut(system, solution, shift)
    held_out = held_out_residuals(tally, exact.margins, exact.resistances)
    squares = missing_noise(tally, held_out, thin)
    if clusters is None:
        n_units = len(tally.outcome)
        squares += tally.by_pair(tally.count * (tally.weight * held_out) ** 2)
    else:
        n_units = int(clusters.max()) + 1
    meat = system.gram(squares[None])[0]
    if is_prior:
        drawn = np.arange(system.n_regularized)
        meat[drawn, drawn] += shift * mean_noise(tally, held_out, np.ones(len(held_out), bool))
    V = exact.inverse @ meat @ exact.inverse
    if clusters is not None:
        V += _over_clusters(exact, Units(tally, clusters))
    root = root_of(V * max(1, n_units - 1) / n_units)
    items, effects = np.split(root, [system.n_ratings])
    if system.X is not None:
        items = (system.X - system.X.mean(axis=0)) @ items
    return Spread(items, max(1, n_units - 1), effects)


class LeaveOut:
    """What ratings and effects become without some of the comparisons; dense.

    Parameters
    ----------
    system : RatingSystem
        The comparisons.
    solution : Solution
        Ratings of shape (n_items,) and effects of all comparisons.
    shift : float
        λ.
    """

    def __init__(self, system: RatingSystem, solution: Solution, shift: float) -> None:
        size = system.size
        check_matrix_fits(4 * size, size, "the covariance", 'use intervals="bootstrap"')
        self.system, self.solution = system, solution
        weights, _ = system.tally.sums
        self.matrix = system.grounded(weights, shift)
        self.inverse = np.asarray(np.linalg.inv(self.matrix), np.float64)
        self.margins = system.tally.margins(solution.ratings, solution.effects)

    @cached_property
    def resistances(self) -> Array:
        """``xᵀ A⁻¹ x`` of each distinct pair."""
        system, tally, inverse = self.system, self.system.tally, self.inverse
        first, second, Z = tally.first, tally.second, tally.covariates
        if system.X is None:
            own, n = inverse.diagonal(), tally.n_items
            values = own[first] + own[second] - 2 * inverse[first, second]
            cross = inverse[first, n:] - inverse[second, n:]
            values += np.einsum("ij,ij->i", 2 * cross + Z @ inverse[n:, n:], Z)
            return np.asarray(values)
        values = np.empty(len(first))
        size = max(1, BLOCK // system.size)
        for start in range(0, len(first), size):
            D = system.rows(slice(start, start + size))
            values[start : start + size] = np.einsum("ij,ij->i", D @ inverse, D)
        return values

    def change(self, pairs: NDArray[np.integer], weights: Array, flows: Array) -> Array:
        """``u − u^(−g)``: Woodbury's formula, or a solve where g has more pairs than unknowns.

        With the rows D of the pairs of g, their weights W and what is left of their flows
        ρ = f − W D u it is ``A⁻¹ Dᵀ (I − W D A⁻¹ Dᵀ)⁻¹ ρ = (A − Dᵀ W D)⁻¹ Dᵀ ρ``.
        """
        system, tally, n = self.system, self.system.tally, self.system.tally.n_items
        left = flows - weights * self.margins[pairs]
        if len(pairs) > system.size:
            every = np.zeros((2, len(tally.first)))
            every[0, pairs], every[1, pairs] = weights, left
            matrix = self.matrix - system.gram(every[:1])[0]
            return np.linalg.solve(matrix, system.right(every[1:])[0])
        if system.X is None:
            first, second, Z = tally.first[pairs], tally.second[pairs], tally.covariates[pairs]
            Y = self.inverse[first] - self.inverse[second] + Z @ self.inverse[n:]
            resistances = Y[:, first] - Y[:, second] + Y[:, n:] @ Z.T
        else:
            D = system.rows(pairs)
            Y = D @ self.inverse
            resistances = Y @ D.T
        inner = np.eye(len(pairs)) - weights[:, None] * resistances
        return np.asarray(np.linalg.solve(inner, left) @ Y)


def held_out_margins(
    system: RatingSystem, solution: Solution, alpha: float, clusters: Indices
) -> tuple[Array, str]:
    """Margin of every comparison without its own cluster, and a note if that is not so.

    By Woodbury's formula; above 2,000 items with the cluster in.
    """
    tally = system.tally
    pair = tally.pair[tally.outcome]
    margins = tally.margins(solution.ratings, solution.effects)[pair]
    if system.X is None and system.size > COVARIANCE_LIMIT:
        return margins, "judges are compared with ratings with their own votes in"
    exact, units = LeaveOut(system, solution, alpha * tally.total_weight), Units(tally, clusters)
    order = np.argsort(clusters, kind="stable")
    for rows in np.split(order, np.cumsum(np.bincount(clusters))[:-1]):
        change = exact.change(*units.of(int(clusters[rows[0]])))
        (ratings,), (effects,) = system.unpacked(change[None])
        margins[rows] -= tally.margins(ratings, effects)[pair[rows]]
    return margins, ""


def held_out_residuals(tally: Tally, margins: Array, resistances: Array) -> Array:
    """Residual e / (1 − h) of a comparison of each outcome."""
    error = tally.target - margins[tally.pair]
    rest = 1 - tally.weight * resistances[tally.pair]
    alone = rest < ALONE
    held_out = np.where(alone, tally.target, error) / np.where(alone, 1.0, rest)
    if alone.any():
        others = ~alone if not alone.all() else alone
        held_out[alone] = np.sqrt(mean_noise(tally, held_out, others) / tally.weight[alone])
    return held_out


def mean_noise(tally: Tally, held_out: Array, outcomes: NDArray[Any]) -> float:
    """Mean of ω e² over the comparisons of some outcomes."""
    weight = tally.weight[outcomes] * tally.count[outcomes]
    return float(weight @ held_out[outcomes] ** 2 / tally.count[outcomes].sum())


def missing_noise(tally: Tally, held_out: Array, thin: NDArray[np.bool_]) -> Array:
    """What the squares of comparisons of thin items lack to the average, for each distinct pair.

    Few comparisons may fit without any error. So the average counts, beside the N held-out squares,
    the mean square of the outcomes themselves for each of the unknown ratings and effects. If all
    of them are ties, one win stands for that.
    """
    n, unknown = len(tally.outcome), tally.n_items - int(tally.components.max())
    unknown += tally.n_covariates
    noise = mean_noise(tally, held_out, np.ones(len(held_out), bool))
    size = tally.squared_target or tally.total_weight
    average = (n * noise + unknown * size / n) / (n + unknown) / tally.weight
    lack = tally.count * tally.weight**2 * np.maximum(0.0, average - held_out**2)
    return tally.by_pair(lack * (thin[tally.first] | thin[tally.second])[tally.pair])


def _over_clusters(exact: LeaveOut, units: Units) -> Array:
    """Σ (u^(−g) − u)(u^(−g) − u)ᵀ of the unknowns u over the clusters g, exact."""
    V = np.zeros_like(exact.inverse)
    n_units = units.weights.shape[0]
    meter = Progress("jackknife", n_units)
    size = max(1, BLOCK // len(V))
    for start in range(0, n_units, size):
        numbers = range(start, min(n_units, start + size))
        changes = np.array([exact.change(*units.of(g)) for g in numbers])
        V += changes.T @ changes
        meter.update(numbers.stop)
    meter.close()
    return V


def root_of(V: Array) -> Array:
    """F with F Fᵀ = V, which is positive semidefinite up to rounding."""
    largest = V.diagonal().max()
    if largest <= 0:
        return np.zeros((len(V), 1))
    V = (V + V.T) / 2
    try:
        return np.linalg.cholesky(V + 1e-11 * largest * np.eye(len(V)))
    except np.linalg.LinAlgError:  # rounding is larger where features are nearly alike
        values, vectors = np.linalg.eigh(V)
        return np.asarray(vectors * np.sqrt(np.maximum(values, 0.0)))


def _by_draws(
    system: RatingSystem,
    solution: Solution,
    shift: float,
    clusters: Indices | None,
    rng: np.random.Generator,
    thin: NDArray[np.bool_],
) -> Spread:
    """The same for very many items: random leave-out changes, each one solve of one system.

    ``A⁻¹ Dᵀ z`` has the covariance V if z is a sum of what the units add to the flows of the
    pairs, each with a random sign. The comparisons of a cluster are corrected by their
    own leverage only, not by that of the rest of the cluster.
    """
    tally = system.tally
    weights, _ = tally.sums
    margins = tally.margins(solution.ratings, solution.effects)
    sparse = SparseSystem(system, weights, shift, np.float32)
    resistances = _sketched_leverages(system, weights, shift, sparse, rng) / weights
    held_out = held_out_residuals(tally, margins, resistances)
    if clusters is None:
        n_units = len(tally.outcome)
        scale = np.sqrt(tally.by_pair(tally.count * (tally.weight * held_out) ** 2))
    else:
        n_units = int(clusters.max()) + 1
        at = tally.pair[tally.outcome], clusters
        shape = len(tally.first), n_units
        flow = (tally.weight * held_out)[tally.outcome]
        changes = sp.coo_matrix((flow, at), shape).tocsr()
    more = np.sqrt(missing_noise(tally, held_out, thin))
    root = np.empty((N_DRAWS, system.size))
    meter = Progress("jackknife", N_DRAWS)
    for k in range(N_DRAWS):
        if clusters is None:
            flows = scale * _signs(len(tally.first), rng)
        else:
            flows = changes @ _signs(n_units, rng)
        flows += more * _signs(len(tally.first), rng)
        root[k] = sparse.solve(system.right(flows[None])[0], DRAW_TOLERANCE)
        meter.update(k + 1)
    meter.close()
    root *= np.sqrt(max(1, n_units - 1) / n_units / N_DRAWS)
    items, effects = np.split(root.T, [tally.n_items])
    return Spread(items, max(1, min(n_units, N_DRAWS) - 1), effects, is_exact=False)


def _sketched_leverages(
    system: RatingSystem,
    weights: Array,
    shift: float,
    sparse: SparseSystem,
    rng: np.random.Generator,
) -> Array:
    """Leverage of each distinct pair, with an error of 18 % of h or of 1 − h, the smaller.

    With λ as comparisons of every item with 0 the hat matrix H is a projection. So h is the mean
    square of H q over random signs q, and 1 − h that of q − H q.
    """
    tally = system.tally
    root = np.sqrt(weights)
    inside, outside = np.zeros((2, len(tally.first)))
    meter = Progress("leverages", N_SKETCHES)
    for k in range(N_SKETCHES):
        signs, own = _signs(len(tally.first), rng), _signs(system.size, rng)
        own[: tally.n_items] = tally.centered(own[: tally.n_items])
        right = system.right((root * signs)[None])[0] + np.sqrt(system.penalty(shift)) * own
        items, effects = np.split(sparse.solve(right, SKETCH_TOLERANCE), [tally.n_items])
        projected = root * tally.margins(items, effects)
        inside += projected**2
        outside += (signs - projected) ** 2
        meter.update(k + 1)
    meter.close()
    return np.asarray(inside / (inside + outside))


def _signs(size: int, rng: np.random.Generator) -> Array:
    return np.where(rng.integers(2, size=size, dtype=np.int8), 1.0, -1.0)


class LocalSpread(ABC):
    """The errors of a model whose solution is that of least squares nearby."""

    system: RatingSystem

    @abstractmethod
    def local(self, solution: Solution, alpha: float) -> tuple[RatingSystem, float]:
        """Least squares with the same solution and curvature, and their alpha."""

    def spread(
        self,
        solution: Solution,
        alpha: float,
        clusters: Indices | None,
        rng: np.random.Generator,
        thin: NDArray[np.bool_],
    ) -> Spread:
        """Errors of ratings and effects, by leaving out every comparison or cluster."""
        system, shift = self.local(solution, alpha)
        is_prior = self.system.has_prior
        return jackknife(system, solution, shift, clusters, rng, thin, is_prior=is_prior)
