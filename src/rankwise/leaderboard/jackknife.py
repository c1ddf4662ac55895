"""Spread of the ratings from leaving out every comparison, or every cluster, without refits."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp
from scipy.stats import t as student

from rankwise.arrays import Array, Indices
from rankwise.leaderboard.solving import RatingSystem, SparseSystem
from rankwise.leaderboard.tally import Tally
from rankwise.leaderboard.units import Units
from rankwise.memory import check_matrix_fits
from rankwise.progress import Meter

__all__ = ["COVARIANCE_LIMIT", "Spread", "jackknife"]

COVARIANCE_LIMIT = 2000  # items; above, the covariance is estimated from draws
N_DRAWS = 200
N_SKETCHES = 64
SKETCH_TOLERANCE = 1e-4
DRAW_TOLERANCE = 1e-3
ALONE = 1e-3  # 1 − leverage of a comparison that the others cannot check
BLOCK = 2**22  # numbers


@dataclass(frozen=True)
class Spread:
    """Covariance V = F Fᵀ of the ratings, kept as its root.

    Attributes
    ----------
    root : ndarray of shape (n_items, n_columns)
        F.
    freedom : int
        Degrees of freedom of Student's t for the intervals.
    is_exact : bool
        Whether V is that of the jackknife, or an estimate of it from draws.
    """

    root: Array
    freedom: int
    is_exact: bool

    @property
    def errors(self) -> Array:
        """Standard error of each rating."""
        return np.asarray(np.sqrt(np.einsum("ij,ij->i", self.root, self.root)))

    def error_of_difference(self, i: int, j: int) -> float:
        """Standard error of r_i − r_j."""
        return float(np.linalg.norm(self.root[i] - self.root[j]))

    def quantile(self, probability: float) -> float:
        """Of Student's t."""
        return float(student.ppf(probability, self.freedom))

    def probability(self, ratio: float) -> float:
        """Distribution function of Student's t."""
        return float(student.cdf(ratio, self.freedom))

    def draw(self, ratings: Array, n_draws: int, rng: np.random.Generator) -> Array:
        """Ratings of shape (n_draws, n_items) from the multivariate t around the given ones."""
        n_items, n_columns = self.root.shape
        check_matrix_fits(n_draws, n_items, "the drawn ratings", "pass a smaller n_resamples")
        normal = rng.standard_normal((n_draws, n_columns))
        normal *= np.sqrt(self.freedom / rng.chisquare(self.freedom, n_draws))[:, None]
        return np.asarray(ratings + normal @ self.root.T)


def jackknife(
    system: RatingSystem,
    ratings: Array,
    alpha: float,
    clusters: Indices | None,
    rng: np.random.Generator,
) -> Spread:
    """``V = (U − 1)/U Σ_u (r^(−u) − r)(r^(−u) − r)ᵀ`` over U comparisons or clusters u.

    r^(−u) are the ratings without u, for the same λ. For one comparison with x = e_i − e_j,
    residual e, A = L + λI and leverage h = ω xᵀ A⁻¹ x it is ``r − A⁻¹ x ω e / (1 − h)``: the
    sandwich of White with the correction HC3. For a cluster it is Woodbury's formula.

    A comparison that alone connects two sets of items has h = 1, and its error is unknown. It is
    taken to be as noisy as the others are on average. So is one with h above 0.999.
    """
    shift = alpha * system.tally.total_weight
    if system.X is None and system.size > COVARIANCE_LIMIT:
        return _by_draws(system, ratings, shift, clusters, rng)
    check_matrix_fits(4 * system.size, system.size, "the covariance", 'use intervals="bootstrap"')
    weights, _ = system.tally.sums
    matrix = system.grounded(weights, shift)
    inverse = np.asarray(np.linalg.inv(matrix), np.float64)
    if clusters is None:
        n_units = system.tally.n_comparisons
        squares = _squares(system.tally, ratings, _leverages(system, weights, inverse))
        V = inverse @ system.gram(squares[None])[0] @ inverse
    else:
        n_units = int(clusters.max()) + 1
        V = _over_clusters(system, ratings, matrix, inverse, Units(system.tally, clusters))
    root = _root(V * max(1, n_units - 1) / n_units)
    if system.X is not None:
        root = (system.X - system.X.mean(axis=0)) @ root
    return Spread(root, max(1, n_units - 1), is_exact=True)


def _leverages(system: RatingSystem, weights: Array, inverse: Array) -> Array:
    """``w xᵀ A⁻¹ x`` of each distinct pair."""
    tally = system.tally
    first, second = tally.first, tally.second
    if system.X is None:
        own = inverse.diagonal()
        return np.asarray(weights * (own[first] + own[second] - 2 * inverse[first, second]))
    X, Y = system.X, system.X @ inverse
    resistance = np.empty(len(first))
    size = max(1, BLOCK // X.shape[1])
    for start in range(0, len(first), size):
        i, j = first[start : start + size], second[start : start + size]
        resistance[start : start + size] = np.einsum("ij,ij->i", X[i] - X[j], Y[i] - Y[j])
    return np.asarray(weights * resistance)


def _residuals(tally: Tally, ratings: Array, leverages: Array) -> Array:
    """Residual e / (1 − h) of a comparison of each outcome, from the leverage of its pair."""
    weights, _ = tally.sums
    error = tally.target - tally.differences(ratings)[tally.pair]
    rest = 1 - tally.weight * (leverages / weights)[tally.pair]
    alone = rest < ALONE
    held_out = np.where(alone, tally.target, error) / np.where(alone, 1.0, rest)
    if alone.any():
        others = ~alone if not alone.all() else alone
        weight = tally.weight[others] * tally.count[others]
        mean = weight @ held_out[others] ** 2 / tally.count[others].sum()
        held_out[alone] = np.sqrt(mean / tally.weight[alone])
    return held_out


def _squares(tally: Tally, ratings: Array, leverages: Array) -> Array:
    """Σ (ω e / (1 − h))² over the comparisons of each distinct pair."""
    held_out = _residuals(tally, ratings, leverages)
    return tally.by_pair(tally.count * (tally.weight * held_out) ** 2)


def _over_clusters(
    system: RatingSystem, ratings: Array, matrix: Array, inverse: Array, units: Units
) -> Array:
    """Σ (w^(−g) − w)(w^(−g) − w)ᵀ of the unknowns w over the clusters g, exact."""
    V = np.zeros_like(inverse)
    n_units = units.weights.shape[0]
    meter = Meter("jackknife", n_units)
    size = max(1, BLOCK // len(V))
    for start in range(0, n_units, size):
        numbers = range(start, min(n_units, start + size))
        changes = np.array([_without(system, ratings, matrix, inverse, units, g) for g in numbers])
        V += changes.T @ changes
        meter.update(numbers.stop)
    meter.close()
    return V


def _without(
    system: RatingSystem, ratings: Array, matrix: Array, inverse: Array, units: Units, g: int
) -> Array:
    """``w − w^(−g)``: Woodbury's formula, or a solve where g has more pairs than unknowns.

    With the rows D of the pairs of g, their weights W and what is left of their flows
    ρ = f − W D w it is ``A⁻¹ Dᵀ (I − W D A⁻¹ Dᵀ)⁻¹ ρ = (A − Dᵀ W D)⁻¹ Dᵀ ρ``.
    """
    tally = system.tally
    pairs, weights, flows = units.of(g)
    first, second = tally.first[pairs], tally.second[pairs]
    left = flows - weights * (ratings[first] - ratings[second])
    if len(pairs) > system.size:
        every = np.zeros((2, tally.n_distinct))
        every[0, pairs], every[1, pairs] = weights, left
        right = tally.divergence(every[1])
        right = right if system.X is None else system.X.T @ right
        return np.linalg.solve(matrix - system.gram(every[:1])[0], right)
    if system.X is None:
        Y = inverse[first] - inverse[second]
        resistances = Y[:, first] - Y[:, second]
    else:
        D = system.X[first] - system.X[second]
        Y = D @ inverse
        resistances = Y @ D.T
    inner = np.eye(len(pairs)) - weights[:, None] * resistances
    return np.asarray(np.linalg.solve(inner, left) @ Y)


def _root(V: Array) -> Array:
    """F with F Fᵀ = V, which is positive semidefinite up to rounding."""
    largest = V.diagonal().max()
    if largest <= 0:
        return np.zeros((len(V), 1))
    return np.linalg.cholesky((V + V.T) / 2 + 1e-11 * largest * np.eye(len(V)))


def _by_draws(
    system: RatingSystem,
    ratings: Array,
    shift: float,
    clusters: Indices | None,
    rng: np.random.Generator,
) -> Spread:
    """The same for very many items: random leave-out changes, each one solve of one system.

    ``A⁻¹ Bᵀ z`` has the covariance V if z is a sum of what the units add to the flows of the
    pairs, each with a random sign. The comparisons of a cluster are corrected by their
    own leverage only, not by that of the rest of the cluster.
    """
    tally = system.tally
    weights, _ = tally.sums
    sparse = SparseSystem(tally, weights, shift, np.float32)
    leverages = _sketched_leverages(tally, weights, shift, sparse, rng)
    if clusters is None:
        n_units = tally.n_comparisons
        scale = np.sqrt(_squares(tally, ratings, leverages))
    else:
        n_units = int(clusters.max()) + 1
        held_out = tally.weight * _residuals(tally, ratings, leverages)
        at = tally.pair[tally.outcome], clusters
        shape = tally.n_distinct, n_units
        changes = sp.coo_matrix((held_out[tally.outcome], at), shape).tocsr()
    root = np.empty((N_DRAWS, tally.n_items))
    meter = Meter("jackknife", N_DRAWS)
    for k in range(N_DRAWS):
        if clusters is None:
            flows = scale * _signs(tally.n_distinct, rng)
        else:
            flows = changes @ _signs(n_units, rng)
        root[k] = sparse.solve(tally.divergence(flows), DRAW_TOLERANCE)
        meter.update(k + 1)
    meter.close()
    root *= np.sqrt(max(1, n_units - 1) / n_units / N_DRAWS)
    return Spread(root.T, max(1, min(n_units, N_DRAWS) - 1), is_exact=False)


def _sketched_leverages(
    tally: Tally, weights: Array, shift: float, sparse: SparseSystem, rng: np.random.Generator
) -> Array:
    """Leverage of each distinct pair, with an error of 18 % of h or of 1 − h, the smaller.

    With λ as comparisons of every item with 0 the hat matrix H is a projection. So h is the mean
    square of H q over random signs q, and 1 − h that of q − H q.
    """
    root, component = np.sqrt(weights), tally.components
    inside, outside = np.zeros((2, tally.n_distinct))
    meter = Meter("leverages", N_SKETCHES)
    for k in range(N_SKETCHES):
        signs, own = _signs(tally.n_distinct, rng), _signs(tally.n_items, rng)
        own -= (np.bincount(component, own) / np.maximum(1, np.bincount(component)))[component]
        right = tally.divergence(root * signs) + np.sqrt(shift) * own
        projected = root * tally.differences(sparse.solve(right, SKETCH_TOLERANCE))
        inside += projected**2
        outside += (signs - projected) ** 2
        meter.update(k + 1)
    meter.close()
    return np.asarray(inside / (inside + outside))


def _signs(size: int, rng: np.random.Generator) -> Array:
    return np.where(rng.integers(2, size=size, dtype=np.int8), 1.0, -1.0)
