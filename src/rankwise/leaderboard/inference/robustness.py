"""The number of votes whose removal changes the order of two items."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from rankwise.arrays import Array, Indices, Labels
from rankwise.groups import indices_by_group
from rankwise.leaderboard.algebra.comparison_counts import ComparisonCounts
from rankwise.leaderboard.algebra.leave_comparison_out import LEAST_SLACK, LeaveOneOut
from rankwise.leaderboard.models.base import RemovableVotes
from rankwise.uncertainty.jackknife_errors import EQUAL

RIVALS = 10  # items that the first place is compared with
STRIDE = 10  # after many removed votes, a tenth of their number is removed at once
LEAST_FALL = 1e-12  # of the gap; a vote whose removal closes less does not help


class VotesToFlip(NamedTuple):
    """Fewest comparisons (judges, prompts) to drop to reverse the order of two items.

    Attributes
    ----------
    n : int or None
        Number found by removing one at a time, always the one that closes the gap most: an upper
        bound of the fewest. None if removing more of them does not change the order.
    at_least : int or None
        Lower bound of the fewest, never above `n`, for least squares only; None otherwise. It is 0
        if the two items are equal.
    of : int
        Number of comparisons or blocks.
    removed : ndarray
        The removed ones: rows of the comparisons, or labels of the blocks.
    """

    n: int | None
    at_least: int | None
    of: int
    removed: Labels

    def __str__(self) -> str:
        if self.n is None:
            return "–"
        if self.at_least is None or self.at_least == self.n:
            return str(self.n)
        return f"{self.at_least}–{self.n}"


class InfluenceTerms(NamedTuple):
    """Products of slopes c and residuals e times √ω, for one vote of each outcome."""

    slope_error: Array
    slope_square: Array
    error_square: Array


class PairInfluence:
    """Influence of single votes on the difference of two ratings, as votes are removed.

    Without comparison k, with the row x, weight ω, residual e and leverage h, the gap
    ``r_a − r_b = dᵀ u`` falls by ``dᵀ A⁻¹ x ω e / (1 − h)``, exactly; A⁻¹ then changes by a matrix
    of rank one. Several equal votes are removed as one of their total weight.

    Parameters
    ----------
    exact : LeaveOneOut
        The least squares.
    direction : ndarray of shape (n_unknowns,)
        d.
    gap : float
        ``r_a − r_b``, positive.
    """

    def __init__(self, exact: LeaveOneOut, direction: Array, gap: float) -> None:
        self.system = exact.system
        self.counts = exact.counts
        self.gap = gap
        self.rounding = EQUAL * gap
        self.inverse = exact.inverse.copy()
        self.margins = exact.margins.copy()
        self.resistances = exact.resistances.copy()
        self.slopes = self.system.margins(self.inverse @ direction)
        self.remaining = self.counts.count.copy()

    @property
    def is_closed(self) -> bool:
        """Whether the gap is closed, up to rounding."""
        return self.gap <= self.rounding

    def remove_fewest(self) -> Indices:
        """Remove votes until the gap is closed; return the removed number for each outcome."""
        counts = self.counts
        n_removed = 0
        while not self.is_closed:
            decreases = self._gap_decreases()
            best = int(np.argmax(decreases))
            if not decreases[best] > LEAST_FALL * self.gap:
                break
            if np.isinf(decreases[best]):  # the last connection of the two items
                self.remaining[best] -= 1
                self.gap = 0.0
                break
            number = self._number_at_once(best, n_removed)
            self.remaining[best] -= number
            n_removed += number
            weight = number * counts.weight[best]
            self._downdate(counts.pair[best], weight, counts.target[best])
        return np.asarray(counts.count - self.remaining)

    def terms(self) -> InfluenceTerms:
        """Return the terms of the lower bound, for one vote of each outcome."""
        weight = self.counts.weight
        slope = self.slopes[self.counts.pair]
        error = self._errors()
        return InfluenceTerms(weight * (slope * error), weight * slope**2, weight * error**2)

    def _errors(self) -> Array:
        return self.counts.target - self.margins[self.counts.pair]

    def _gap_decreases(self) -> Array:
        """How much the gap decreases without one vote of each outcome; infinite for a bridge.

        Exact, by the error that the vote would have if it were left out: its error divided by one
        minus its leverage.
        """
        counts = self.counts
        slope = self.slopes[counts.pair]  # of the gap in the target of the pair
        leverage = counts.weight * self.resistances[counts.pair]
        slack = 1 - leverage
        is_unsupported = slack < LEAST_SLACK
        is_bridge = is_unsupported & (np.abs(slope) > LEAST_SLACK * np.abs(self.slopes).max())
        with np.errstate(divide="ignore", invalid="ignore"):
            decreases = counts.weight * slope * self._errors() / slack
        decreases[is_unsupported] = 0.0
        decreases[is_bridge] = np.inf
        decreases[self.remaining <= 0] = -np.inf
        return np.asarray(decreases)

    def _number_at_once(self, outcome: int, n_removed: int) -> int:
        """Return how many votes of an outcome to remove.

        At most a tenth of the votes removed so far, no more than close the gap, and fewer than
        disconnect the board.
        """
        counts = self.counts
        pair = counts.pair[outcome]
        weight = counts.weight[outcome]
        resistance = self.resistances[pair]
        fall_per_weight = self.slopes[pair] * (counts.target[outcome] - self.margins[pair])
        denominator = weight * (fall_per_weight + self.gap * resistance)
        n_closing = int(np.ceil(self.gap / denominator - 1e-9))
        n_connected = int((1 - LEAST_SLACK) / (weight * resistance))
        limits = (n_closing, n_connected, int(self.remaining[outcome]), n_removed // STRIDE)
        return max(1, min(limits))

    def _downdate(self, pair: int, weight: float, target: float) -> None:
        """Remove a vote from gap, slopes, margins, resistances and inverse."""
        (influence,) = self.system.rows([pair]) @ self.inverse
        along = self.system.margins(influence)
        factor = weight / (1 - weight * along[pair])
        change = factor * (target - self.margins[pair])
        self.gap -= change * self.slopes[pair]
        self.slopes = self.slopes + factor * self.slopes[pair] * along
        self.margins = self.margins - change * along
        self.resistances = self.resistances + factor * along**2
        self.inverse += factor * np.outer(influence, influence)


def least_units(terms: InfluenceTerms, leverages: Array, counts: Indices, gap: float) -> int:
    """Return a lower bound of the number of units whose removal closes the gap.

    Without the votes of a set the gap falls by ``cᵀ (I − H)⁻¹ e``, with H their block of the hat
    matrix. That is at most ``Σ c e + ‖c‖ ‖e‖ η / (1 − η)`` with η the sum of the leverages (for a
    unit of many votes: the norm of its block). Each of the four sums is at most that of its k
    largest terms. The order also counts as changed if the remaining votes no longer connect the two
    items, by the same limit as in `PairInfluence`: then H has an eigenvalue of at least
    1 − `LEAST_SLACK`, and so has η.

    Parameters
    ----------
    terms : InfluenceTerms
        Of one unit of each kind.
    leverages : ndarray of shape (n_kinds,)
        Leverage of one unit of each kind.
    counts : ndarray of shape (n_kinds,)
        Number of units of each kind.
    gap : float
        The gap.
    """
    slope_error = _LargestSums(terms.slope_error, counts)
    slope_square = _LargestSums(terms.slope_square, counts)
    error_square = _LargestSums(terms.error_square, counts)
    leverage = _LargestSums(leverages, counts)

    def may_close(k: int) -> bool:
        eta = leverage.of(k)
        if eta >= 1 - LEAST_SLACK:
            return True
        second_order = np.sqrt(slope_square.of(k) * error_square.of(k)) * eta / (1 - eta)
        return bool(slope_error.of(k) + second_order >= gap * (1 - 2 * EQUAL))

    too_few = 0
    enough = int(counts.sum())
    while enough - too_few > 1:
        middle = (too_few + enough) // 2
        if may_close(middle):
            enough = middle
        else:
            too_few = middle
    return enough


class _LargestSums:
    """Sums of the k largest values, where each value occurs several times."""

    def __init__(self, values: Array, counts: Indices) -> None:
        order = np.argsort(-values)
        sizes = np.maximum(values[order], 0.0)
        number = counts[order]
        self.numbers = np.append(0, np.cumsum(number))
        self.sums = np.append(0.0, np.cumsum(number * sizes))

    def of(self, k: int) -> float:
        """Sum of the k largest values."""
        return float(np.interp(k, self.numbers, self.sums))


def votes_to_flip(model: RemovableVotes, a: int, b: int) -> VotesToFlip:
    """Return the votes that must be removed until item a, which is above, is not above b.

    For models that are not linear, the removal is repeated from a refit until a refit confirms it.
    """
    current = model
    exact = model.leave_out()
    removed = np.zeros(len(model.counts.count), np.intp)
    at_least: int | None = 0 if exact.is_exact else None
    is_flipped = True
    while (gap := rating_gap(current, a, b)) > 0:
        influence = PairInfluence(exact, exact.system.difference(a, b), gap)
        if exact.is_exact:
            at_least = _lower_bound(exact, influence)
        removed += influence.remove_fewest()
        is_flipped = influence.is_closed
        if exact.is_exact or not is_flipped:
            break
        current = _refit(model, model.counts.count - removed)
        exact = current.leave_out()
    return _flip_result(model.counts, removed, at_least, is_flipped)


def votes_to_flip_by_one_step(
    model: RemovableVotes, exact: LeaveOneOut, a: int, b: int
) -> VotesToFlip:
    """Return the same without a refit: exact for least squares, else by one Newton step."""
    removed = np.zeros(len(model.counts.count), np.intp)
    at_least: int | None = 0 if exact.is_exact else None
    is_flipped = True
    gap = rating_gap(model, a, b)
    if gap > 0:
        influence = PairInfluence(exact, exact.system.difference(a, b), gap)
        if exact.is_exact:
            at_least = _lower_bound(exact, influence)
        removed = influence.remove_fewest()
        is_flipped = influence.is_closed
    return _flip_result(model.counts, removed, at_least, is_flipped)


def _lower_bound(exact: LeaveOneOut, influence: PairInfluence) -> int:
    return least_units(influence.terms(), exact.leverages, exact.counts.count, influence.gap)


def _flip_result(
    counts: ComparisonCounts, removed: Indices, at_least: int | None, is_flipped: bool
) -> VotesToFlip:
    """Return the first rows of each outcome as the removed ones."""
    rows_by_outcome = [counts.rows[k][: removed[k]] for k in np.flatnonzero(removed)]
    rows = np.sort(np.concatenate([np.empty(0, np.intp), *rows_by_outcome]))
    n = len(rows) if is_flipped else None
    return VotesToFlip(n, at_least, len(counts.outcome), rows)


def blocks_to_flip(
    model: RemovableVotes, a: int, b: int, codes: Indices, labels: Labels
) -> VotesToFlip:
    """Return the whole blocks of comparisons (judges, prompts) that must be removed."""
    counts = model.counts
    members = indices_by_group(codes)
    exact = model.leave_out()
    direction = exact.system.difference(a, b)
    gap = rating_gap(model, a, b)
    at_least: int | None = None
    if exact.is_exact:
        at_least = 0
        if gap > 0:
            at_least = _least_blocks(PairInfluence(exact, direction, gap), members)
    remaining = list(range(len(labels)))
    while gap > 0:
        falls = [float(direction @ exact.change(members[block])) for block in remaining]
        best = int(np.argmax(falls))
        if len(remaining) == 1 or not falls[best] > 0:
            break
        remaining.pop(best)
        outcomes = counts.outcome[np.isin(codes, remaining)]
        current = _refit(model, np.bincount(outcomes, minlength=len(counts.count)))
        exact = current.leave_out()
        gap = rating_gap(current, a, b)
    removed = np.setdiff1d(np.arange(len(labels)), remaining)
    n = len(removed) if gap <= 0 else None
    return VotesToFlip(n, at_least, len(labels), labels[removed])


def _least_blocks(influence: PairInfluence, members: list[Indices]) -> int:
    """Lower bound of the number of blocks, with norms of their hat matrices as leverages."""
    counts = influence.counts
    root = np.linalg.cholesky(influence.inverse)
    terms = influence.terms()
    sums = []
    norms = []
    for rows in members:
        outcomes = counts.outcome[rows]
        sums.append([float(term[outcomes].sum()) for term in terms])
        weights = np.zeros(len(counts.first))
        np.add.at(weights, counts.pair[outcomes], counts.weight[outcomes])
        hat_matrix = root.T @ influence.system.dense_gram(weights) @ root
        norms.append(float(np.linalg.norm(hat_matrix, 2)))
    one_each = np.ones(len(members), np.intp)
    block_terms = InfluenceTerms(*np.transpose(sums))
    return least_units(block_terms, np.array(norms), one_each, influence.gap)


def next_places(model: RemovableVotes, order: list[int]) -> list[VotesToFlip]:
    """Return the votes to flip each item of an order and the next one.

    The first item is compared with each of the next ten; the fewest votes count.
    """
    exact = model.leave_out()
    neighbors = [votes_to_flip_by_one_step(model, exact, a, b) for a, b in pairwise(order)]
    further = [votes_to_flip_by_one_step(model, exact, order[0], b) for b in order[2 : RIVALS + 1]]
    rivals = [*neighbors[:1], *further]
    lower_bounds = [rival.at_least for rival in rivals if rival.at_least is not None]
    at_least = min(lower_bounds, default=None)
    flipped = [(rival.n, k) for k, rival in enumerate(rivals) if rival.n is not None]
    if flipped:
        _, fewest = min(flipped)
        neighbors[0] = rivals[fewest]._replace(at_least=at_least)
    elif at_least is not None:
        neighbors[0] = neighbors[0]._replace(at_least=at_least)
    return neighbors


def rating_gap(model: RemovableVotes, a: int, b: int) -> float:
    """Return r_a − r_b; 0 if it is negative or rounding."""
    gap = float(model.ratings[a] - model.ratings[b])
    rounding = EQUAL * float(np.abs(model.ratings).max())
    return gap if gap > rounding else 0.0


def _refit(model: RemovableVotes, count: Indices) -> RemovableVotes:
    """Return the model with other numbers of each outcome, for the same λ."""
    return model.refit(replace(model.counts, count=count))
