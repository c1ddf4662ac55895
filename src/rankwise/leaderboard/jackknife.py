"""What a board is without some comparisons: errors of the ratings, and what holds an order."""

from __future__ import annotations

from copy import copy
from dataclasses import replace
from functools import cached_property
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from rankwise.arrays import Array, Indices
from rankwise.groups import members_of
from rankwise.leaderboard.solving import BLOCK, RatingSystem, Tally
from rankwise.machine import check_matrix_fits, track
from rankwise.uncertainty.jackknife import EQUAL, Spread

N_DRAWS = 200
N_SKETCHES = 64
SKETCH_TOLERANCE = 1e-4
DRAW_TOLERANCE = 1e-3
JITTER = 1e-11  # added to correlations, of which the diagonal is 1
ALONE = 1e-3  # 1 − leverage of a comparison that the others cannot check
LARGEST = 2_500_000  # items times outcomes of boards whose neighbors are all looked at: a second
RIVALS = 10  # of the first place, which any of them may take
STRIDE = 10  # of many votes already left out, a tenth goes at a time


def jackknife(exact: LeaveOut, clusters: Indices | None, thin: NDArray[np.bool_]) -> Spread:
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
            members, step = members_of(clusters), max(1, BLOCK // len(V))
            for start in track(range(0, len(members), step), "jackknife"):
                changes = np.array([exact.change(rows) for rows in members[start : start + step]])
                V += changes.T @ changes
        root, freedom, is_exact = root_of(V), n_units, True
    root *= np.sqrt(max(1, n_units - 1) / n_units)
    ratings, effects = system.ratings_and_effects(root)
    return Spread(ratings, max(1, freedom - 1), effects, is_exact)


class LeaveOut:
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


def held_out_margins(exact: LeaveOut, clusters: Indices) -> Array:
    """Margin of every comparison without its own cluster, by Woodbury's formula.

    Above 2,000 items the cluster is in.
    """
    tally = exact.system.tally
    pair = tally.pair[tally.outcome]
    margins = exact.margins[pair]
    for rows in [] if exact.system.is_huge else members_of(clusters):
        margins[rows] -= exact.system.rows(pair[rows]) @ exact.change(rows)
    return margins


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


def _by_draws(exact: LeaveOut, clusters: Indices | None, thin: NDArray[np.bool_]) -> Array:
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


class Overturn(NamedTuple):
    """The fewest comparisons (judges, prompts) without which one item is not above the other.

    Attributes
    ----------
    n : int or None
        So many were found, one at a time, each time the one that helps most: an upper bound of the
        fewest. None if leaving out more of them does not turn the order around.
    at_least : int or None
        Fewer than so many cannot do it: a lower bound, never above `n`, which only least squares
        has. It is 0 if the two are level.
    of : int
        How many there are.
    removed : ndarray
        Which ones: rows of the comparisons, or labels of the blocks.
    """

    n: int | None
    at_least: int | None
    of: int
    removed: NDArray[Any]

    def __str__(self) -> str:
        if self.n is None:
            return "–"
        return str(self.n) if self.at_least in (None, self.n) else f"{self.at_least}–{self.n}"


class Case:
    """Two items and the least squares that their order rests on.

    Without comparison k, of the row x, weight ω, residual e and leverage h, the gap
    ``r_a − r_b = dᵀ w`` falls by ``dᵀ A⁻¹ x ω e / (1 − h)``, exactly; A⁻¹ then changes by a matrix
    of rank one. Many like votes are one of their weight.

    Parameters
    ----------
    exact : LeaveOut
        The least squares.
    direction : ndarray of shape (n_unknowns,)
        d.
    gap : float
        ``r_a − r_b``, positive.
    """

    def __init__(self, exact: LeaveOut, direction: Array, gap: float) -> None:
        self.system, self.tally = exact.system, exact.system.tally
        self.gap, self.tiny = gap, EQUAL * gap  # less is rounding
        self.inverse, self.margins = exact.inverse.copy(), exact.margins.copy()
        self.resistances = exact.resistances.copy()
        self.slopes = self.system.margins(self.inverse @ direction)
        self.left = self.tally.count.copy()

    def fewest_votes(self) -> Indices:
        """Leave out votes until the gap is closed; how many of each outcome."""
        tally, n_left = self.tally, 0
        while self.gap > self.tiny:
            falls = self._falls()
            best = int(np.argmax(falls))
            if not falls[best] > 1e-12 * self.gap:
                break
            number = 1 if np.isinf(falls[best]) else self._at_once(best, n_left)
            self.left[best] -= number
            n_left += number
            if np.isinf(falls[best]):  # nothing leads from one to the other any more
                self.gap = 0.0
                break
            self._drop(tally.pair[best], number * tally.weight[best], tally.target[best])
        return np.asarray(tally.count - self.left)

    def terms(self) -> Array:
        """Products c e, c² and e² of a vote of each outcome: slopes c and residuals e times √ω."""
        tally = self.tally
        slope, error = self.slopes[tally.pair], self._errors()
        return tally.weight * np.stack([slope * error, slope**2, error**2])

    def _errors(self) -> Array:
        return self.tally.target - self.margins[self.tally.pair]

    def _falls(self) -> Array:
        """By how much the gap falls without a vote of each outcome; infinite for a bridge."""
        tally = self.tally
        slope, error = self.slopes[tally.pair], self._errors()
        rest = 1 - tally.weight * self.resistances[tally.pair]
        is_bridge = (rest < ALONE) & (np.abs(slope) > ALONE * np.abs(self.slopes).max())
        with np.errstate(divide="ignore", invalid="ignore"):
            falls = tally.weight * slope * error / rest
        falls = np.where(is_bridge, np.inf, np.where(rest < ALONE, 0.0, falls))
        return np.where(self.left > 0, falls, -np.inf)

    def _at_once(self, outcome: int, n_left: int) -> int:
        """How many votes of an outcome: a tenth of all so far, and no more than close the gap."""
        tally, pair = self.tally, self.tally.pair[outcome]
        weight, resistance = tally.weight[outcome], self.resistances[pair]
        pull = self.slopes[pair] * (tally.target[outcome] - self.margins[pair])
        enough = int(np.ceil(self.gap / (weight * (pull + self.gap * resistance)) - 1e-9))
        free = int((1 - ALONE) / (weight * resistance))  # more would cut the board in two
        return max(1, min(enough, free, int(self.left[outcome]), n_left // STRIDE))

    def _drop(self, pair: int, weight: float, target: float) -> None:
        (g,) = self.system.rows([pair]) @ self.inverse
        along = self.system.margins(g)
        share = weight / (1 - weight * along[pair])
        pull = share * (target - self.margins[pair])
        self.gap -= pull * self.slopes[pair]
        self.slopes = self.slopes + share * self.slopes[pair] * along
        self.margins = self.margins - pull * along
        self.resistances = self.resistances + share * along**2
        self.inverse += share * np.outer(g, g)


def least_units(terms: Array, leverages: Array, counts: Indices, gap: float) -> int:
    """No fewer units can close the gap.

    Without the votes of a set it falls by ``cᵀ (I − H)⁻¹ e``, H being their block of the hat
    matrix. That is at most ``Σ c e + ‖c‖ ‖e‖ η / (1 − η)`` with η the sum of the leverages (of a
    unit of many votes: the norm of its block). Each of the four sums is at most that of its k
    largest terms. The order also counts as turned if the votes left over no longer join the two
    items, by the same limit as in `Case`: then H has an eigenvalue of at least 1 − `ALONE`, and so
    has η.
    """
    tops = []
    for values in (*terms, leverages):
        order = np.argsort(-values)
        sizes, number = np.maximum(values[order], 0.0), counts[order]
        tops.append((np.r_[0, np.cumsum(number)], np.r_[0.0, np.cumsum(number * sizes)]))

    def may_close(k: int) -> bool:
        first, slope, error, eta = (float(np.interp(k, *top)) for top in tops)
        if eta >= 1 - ALONE:
            return True
        largest_fall = first + np.sqrt(slope * error) * eta / (1 - eta)
        return bool(largest_fall >= gap * (1 - 2 * EQUAL))

    low, high = 0, int(counts.sum())
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if may_close(middle) else (middle, high)
    return high


def votes_to_overturn(model: Any, a: int, b: int, exact: LeaveOut | None = None) -> Overturn:
    """Of the order of item a, which is above, and b; confirmed by a refit if `exact` is None."""
    tally, current = model.tally, model
    is_final = model.is_linear or exact is not None
    exact = exact or model.left_out()
    at_least: int | None = 0 if model.is_linear else None
    is_turned = True
    removed = np.zeros(len(tally.count), np.intp)
    while (gap := _gap(current, a, b)) > 0:
        case = Case(exact, exact.system.difference(a, b), gap)
        if model.is_linear:
            leverages = tally.weight * case.resistances[tally.pair]
            at_least = least_units(case.terms(), leverages, tally.count, gap)
        removed += case.fewest_votes()
        is_turned = case.gap <= case.tiny
        if is_final or not is_turned:
            break
        current = _refitted(model, tally.count - removed)  # a Newton step is not the whole way
        exact = current.left_out()
    first = [tally.rows[k][: removed[k]] for k in np.flatnonzero(removed)]
    rows = np.sort(np.concatenate([np.empty(0, np.intp), *first]))
    return Overturn(len(rows) if is_turned else None, at_least, len(tally.outcome), rows)


def blocks_to_overturn(model: Any, a: int, b: int, codes: Indices, labels: Any) -> Overturn:
    """The same by whole blocks of comparisons: judges, prompts."""
    tally, current, members = model.tally, model, members_of(codes)
    direction = model.system.difference(a, b)
    left = list(range(len(labels)))
    at_least: int | None = 0 if model.is_linear else None
    while (gap := _gap(current, a, b)) > 0:
        exact = current.left_out()
        if current is model and model.is_linear:
            at_least = _least_blocks(Case(exact, direction, gap), members)
        falls = [float(direction @ exact.change(members[g])) for g in left]
        best = int(np.argmax(falls))
        if len(left) == 1 or not falls[best] > 0:
            break
        left.pop(best)
        kept = tally.outcome[np.isin(codes, left)]
        current = _refitted(model, np.bincount(kept, minlength=len(tally.count)))
    removed = np.setdiff1d(np.arange(len(labels)), left)
    n = len(removed) if gap <= 0 else None
    return Overturn(n, at_least, len(labels), labels[removed])


def _least_blocks(case: Case, members: list[Indices]) -> int:
    tally, half = case.tally, np.linalg.cholesky(case.inverse)
    terms, sums, norms = case.terms(), [], []
    for outcomes in (tally.outcome[rows] for rows in members):
        sums.append(terms[:, outcomes].sum(axis=1))
        weights = np.zeros(len(tally.first))
        np.add.at(weights, tally.pair[outcomes], tally.weight[outcomes])
        norms.append(np.linalg.norm(half.T @ case.system.dense_gram(weights) @ half, 2))
    counts = np.ones(len(members), np.intp)
    return least_units(np.transpose(sums), np.array(norms), counts, case.gap)


def next_places(model: Any, order: list[int]) -> list[Overturn]:
    """What holds each item of an order above the next one, and the first above any of ten."""
    exact = model.left_out()
    found = [votes_to_overturn(model, a, b, exact) for a, b in pairwise(order)]
    others = [votes_to_overturn(model, order[0], b, exact) for b in order[2 : RIVALS + 1]]
    rivals = [*found[:1], *others]
    lower_bounds = [rival.at_least for rival in rivals if rival.at_least is not None]
    overturned = [rival for rival in rivals if rival.n is not None]
    if overturned:
        fewest = min(overturned, key=lambda rival: rival.n or 0)
        found[0] = fewest._replace(at_least=min(lower_bounds, default=None))
    elif lower_bounds:
        found[0] = found[0]._replace(at_least=min(lower_bounds))
    return found


def _gap(model: Any, a: int, b: int) -> float:
    """By how much a is above b; 0 if that is rounding."""
    gap = float(model.ratings[a] - model.ratings[b])
    return gap if gap > EQUAL * float(np.abs(model.ratings).max()) else 0.0


def _refitted(model: Any, count: Indices) -> Any:
    """The model without some comparisons, λ being the same."""
    tally, other = replace(model.tally, count=count), copy(model)
    other.tally, other.system = tally, model.system.of(tally)
    return other.solve(model.alpha * model.tally.total_weight / tally.total_weight)
