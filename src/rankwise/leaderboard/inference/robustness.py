"""The number of votes whose removal changes the order of two items."""

from __future__ import annotations

from copy import copy
from dataclasses import replace
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rankwise.arrays import Array, Indices
from rankwise.groups import indices_by_group
from rankwise.leaderboard.algebra.leave_comparison_out import ALONE, LeaveOneOut
from rankwise.uncertainty.jackknife_errors import EQUAL

RIVALS = 10  # of the first place, which any of them may take

STRIDE = 10  # of many votes already left out, a tenth goes at a time


class VotesToFlip(NamedTuple):
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


class PairInfluence:
    """Two items and the least squares that their order rests on.

    Without comparison k, of the row x, weight ω, residual e and leverage h, the gap
    ``r_a − r_b = dᵀ w`` falls by ``dᵀ A⁻¹ x ω e / (1 − h)``, exactly; A⁻¹ then changes by a matrix
    of rank one. Many like votes are one of their weight.

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


def votes_to_flip(model: Any, a: int, b: int, exact: LeaveOneOut | None = None) -> VotesToFlip:
    """Of the order of item a, which is above, and b; confirmed by a refit if `exact` is None."""
    tally, current = model.tally, model
    is_final = model.is_linear or exact is not None
    exact = exact or model.left_out()
    at_least: int | None = 0 if model.is_linear else None
    is_turned = True
    removed = np.zeros(len(tally.count), np.intp)
    while (gap := _gap(current, a, b)) > 0:
        case = PairInfluence(exact, exact.system.difference(a, b), gap)
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
    return VotesToFlip(len(rows) if is_turned else None, at_least, len(tally.outcome), rows)


def blocks_to_flip(model: Any, a: int, b: int, codes: Indices, labels: Any) -> VotesToFlip:
    """The same by whole blocks of comparisons: judges, prompts."""
    tally, current, members = model.tally, model, indices_by_group(codes)
    direction = model.system.difference(a, b)
    left = list(range(len(labels)))
    at_least: int | None = 0 if model.is_linear else None
    while (gap := _gap(current, a, b)) > 0:
        exact = current.left_out()
        if current is model and model.is_linear:
            at_least = _least_blocks(PairInfluence(exact, direction, gap), members)
        falls = [float(direction @ exact.change(members[g])) for g in left]
        best = int(np.argmax(falls))
        if len(left) == 1 or not falls[best] > 0:
            break
        left.pop(best)
        kept = tally.outcome[np.isin(codes, left)]
        current = _refitted(model, np.bincount(kept, minlength=len(tally.count)))
    removed = np.setdiff1d(np.arange(len(labels)), left)
    n = len(removed) if gap <= 0 else None
    return VotesToFlip(n, at_least, len(labels), labels[removed])


def _least_blocks(case: PairInfluence, members: list[Indices]) -> int:
    tally, half = case.tally, np.linalg.cholesky(case.inverse)
    terms, sums, norms = case.terms(), [], []
    for outcomes in (tally.outcome[rows] for rows in members):
        sums.append(terms[:, outcomes].sum(axis=1))
        weights = np.zeros(len(tally.first))
        np.add.at(weights, tally.pair[outcomes], tally.weight[outcomes])
        norms.append(np.linalg.norm(half.T @ case.system.dense_gram(weights) @ half, 2))
    counts = np.ones(len(members), np.intp)
    return least_units(np.transpose(sums), np.array(norms), counts, case.gap)


def next_places(model: Any, order: list[int]) -> list[VotesToFlip]:
    """What holds each item of an order above the next one, and the first above any of ten."""
    exact = model.left_out()
    found = [votes_to_flip(model, a, b, exact) for a, b in pairwise(order)]
    others = [votes_to_flip(model, order[0], b, exact) for b in order[2 : RIVALS + 1]]
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
