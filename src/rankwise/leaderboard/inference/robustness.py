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
from rankwise.uncertainty.possible_ranks import EQUAL

RIVALS = 10  # items that the first place is compared with
STRIDE = 10  # after many removed votes, a tenth of their number is removed at once
LEAST_DECREASE = 1e-12  # of the lead; a vote whose removal decreases it less does not help


class VotesToFlip(NamedTuple):
    """Fewest comparisons (judges, prompts) to drop to reverse the order of two items.

    Attributes
    ----------
    n : int or None
        Number found by removing one at a time, always the one that decreases the difference most:
        an upper bound of the fewest. None if removing more of them does not change the order.
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


class LowerBoundTerms(NamedTuple):
    """Terms of the lower bound, for one vote of each outcome (or for one block).

    With the weight ω, the sensitivity c of the lead to the target and the residual e: ω c e, ω c²
    and ω e².
    """

    decrease: Array
    squared_sensitivity: Array
    squared_residual: Array


class VoteRemoval:
    """Removes votes until item a is no longer above item b, and follows the model without them.

    Without comparison k, with the row x, weight ω, residual e and leverage h, the lead
    ``r_a − r_b = dᵀ u`` decreases by ``dᵀ A⁻¹ x ω e / (1 − h)``, exactly; A⁻¹ then changes by a
    matrix of rank one. Several equal votes are removed as one of their total weight.

    Parameters
    ----------
    leave_one_out : LeaveOneOut
        The least squares.
    contrast : ndarray of shape (n_unknowns,)
        d.
    lead : float
        ``r_a − r_b``, positive.

    Attributes
    ----------
    sensitivities : ndarray of shape (n_distinct,)
        ``dᵀ A⁻¹ x``: derivative of the lead in the target of each distinct pair, for weight 1.
    margins, resistances : ndarray of shape (n_distinct,)
        ``xᵀ u`` and ``xᵀ A⁻¹ x``.
    inverse_gram : ndarray of shape (n_unknowns, n_unknowns)
        A⁻¹.
    n_remaining : ndarray of shape (n_outcomes,)
        Number of votes of each outcome that are not removed.
    """

    def __init__(self, leave_one_out: LeaveOneOut, contrast: Array, lead: float) -> None:
        self.system = leave_one_out.system
        self.counts = leave_one_out.counts
        self.lead = lead  # r_a − r_b = dᵀ u, with the contrast d and the unknowns u
        self.rounding = EQUAL * lead
        self.inverse_gram = leave_one_out.inverse_gram.copy()  # A⁻¹, (n_unknowns, n_unknowns)
        # Of the row x of each distinct pair: xᵀ u, xᵀ A⁻¹ x and dᵀ A⁻¹ x
        self.margins = leave_one_out.margins.copy()
        self.resistances = leave_one_out.resistances.copy()
        self.sensitivities = self.system.margins(self.inverse_gram @ contrast)
        self.n_remaining = self.counts.count.copy()  # votes of each outcome

    @property
    def is_flipped(self) -> bool:
        """Whether item a is no longer above item b, up to rounding."""
        return self.lead <= self.rounding

    def remove_votes_until_flip(self) -> Indices:
        """Remove votes until the order flips; return the removed number for each outcome."""
        counts = self.counts
        n_removed = 0
        while not self.is_flipped:
            decreases = self._decreases_without_one_vote()
            best = int(np.argmax(decreases))
            if not decreases[best] > LEAST_DECREASE * self.lead:
                break
            if np.isinf(decreases[best]):  # the last connection of the two items
                self.n_remaining[best] -= 1
                self.lead = 0.0
                break
            n_votes = self._n_votes_at_once(best, n_removed)
            self.n_remaining[best] -= n_votes
            n_removed += n_votes
            removed_weight = n_votes * counts.weight[best]
            self._update_without(counts.pair_of_outcome[best], removed_weight, counts.target[best])
        return np.asarray(counts.count - self.n_remaining)

    def terms_of_lower_bound(self) -> LowerBoundTerms:
        """Return the terms of the lower bound, for one vote of each outcome."""
        # Of one vote of each outcome: weight ω, derivative c of the lead in the target, residual e
        weight = self.counts.weight
        sensitivity = self.sensitivities[self.counts.pair_of_outcome]
        residual = self._residuals()
        return LowerBoundTerms(
            decrease=weight * (sensitivity * residual),
            squared_sensitivity=weight * sensitivity**2,
            squared_residual=weight * residual**2,
        )

    def _residuals(self) -> Array:
        return self.counts.target - self.margins[self.counts.pair_of_outcome]

    def _decreases_without_one_vote(self) -> Array:
        """How much the lead decreases without one vote of each outcome; infinite for a bridge.

        Exact, by the residual that the vote would have if it were left out: its residual divided by
        one minus its leverage.
        """
        counts = self.counts
        sensitivity = self.sensitivities[counts.pair_of_outcome]
        leverage = counts.weight * self.resistances[counts.pair_of_outcome]
        slack = 1 - leverage
        # Without a vote its residual e becomes e / (1 − leverage); the lead falls by ω c times it.
        with np.errstate(divide="ignore", invalid="ignore"):
            decreases = counts.weight * sensitivity * self._residuals() / slack

        # A vote with the leverage 1 is the only connection of its items to each other. If the lead
        # depends on it, the two items cannot be compared without it.
        is_only_connection = slack < LEAST_SLACK
        least_sensitivity = LEAST_SLACK * np.abs(self.sensitivities).max()
        is_bridge = is_only_connection & (np.abs(sensitivity) > least_sensitivity)
        decreases[is_only_connection] = 0.0
        decreases[is_bridge] = np.inf
        decreases[self.n_remaining <= 0] = -np.inf
        return np.asarray(decreases)

    def _n_votes_at_once(self, outcome: int, n_removed: int) -> int:
        """Return how many votes of an outcome to remove.

        At most a tenth of the votes removed so far, no more than flip the order, and fewer than
        disconnect the board.
        """
        counts = self.counts
        pair = counts.pair_of_outcome[outcome]
        weight = counts.weight[outcome]
        resistance = self.resistances[pair]
        residual = counts.target[outcome] - self.margins[pair]

        # n votes decrease the lead by n ω c e / (1 − n ω R), with the weight ω, sensitivity c,
        # residual e and resistance R of a vote: solve for n with a decrease of the whole lead.
        decrease_per_weight = self.sensitivities[pair] * residual
        denominator = weight * (decrease_per_weight + self.lead * resistance)
        n_to_flip = int(np.ceil(self.lead / denominator - 1e-9))  # 1e-9: rounding errors
        # With more votes their leverage n ω R would reach 1.
        n_to_disconnect = int((1 - LEAST_SLACK) / (weight * resistance))
        n_present = int(self.n_remaining[outcome])
        return max(1, min(n_to_flip, n_to_disconnect, n_present, n_removed // STRIDE))

    def _update_without(self, pair: int, removed_weight: float, target: float) -> None:
        """Update lead, sensitivities, margins, resistances and inverse for removed votes."""
        # Sherman–Morrison, with the row x of the pair and its removed weight ω:
        # (A − ω x xᵀ)⁻¹ = A⁻¹ + factor · (A⁻¹ x)(A⁻¹ x)ᵀ
        (solved_row,) = self.system.rows([pair]) @ self.inverse_gram  # A⁻¹ x
        products = self.system.margins(solved_row)  # yᵀ A⁻¹ x for the row y of every pair
        factor = removed_weight / (1 - removed_weight * products[pair])
        residual = target - self.margins[pair]

        self.lead -= factor * residual * self.sensitivities[pair]
        self.sensitivities = self.sensitivities + factor * self.sensitivities[pair] * products
        self.margins = self.margins - factor * residual * products
        self.resistances = self.resistances + factor * products**2
        self.inverse_gram += factor * np.outer(solved_row, solved_row)


def lower_bound_of_units_to_flip(
    terms: LowerBoundTerms, leverages: Array, counts: Indices, lead: float
) -> int:
    """Return a lower bound of the number of units whose removal flips the order.

    Without the votes of a set the lead decreases by ``cᵀ (I − H)⁻¹ e``, with H their block of the
    hat matrix. That is at most ``Σ c e + ‖c‖ ‖e‖ η / (1 − η)`` with η the sum of the leverages (for
    a unit of many votes: the norm of its block). Each of the four sums is at most that of its k
    largest terms. The order also counts as changed if the remaining votes no longer connect the two
    items, by the same limit as in `VoteRemoval`: then H has an eigenvalue of at least
    1 − `LEAST_SLACK`, and so has η.

    Parameters
    ----------
    terms : LowerBoundTerms
        Of one unit of each kind.
    leverages : ndarray of shape (n_kinds,)
        Leverage of one unit of each kind.
    counts : ndarray of shape (n_kinds,)
        Number of units of each kind.
    lead : float
        The lead.
    """
    # Without a set of units with sensitivities c of the lead, residuals e and the sum η of their
    # leverages, the lead falls by at most Σ c e + ‖c‖ ‖e‖ η / (1 − η). Each of the sums is at most
    # that of the largest values.
    decreases = _SumsOfLargest(terms.decrease, counts)
    squared_sensitivities = _SumsOfLargest(terms.squared_sensitivity, counts)
    squared_residuals = _SumsOfLargest(terms.squared_residual, counts)
    largest_leverages = _SumsOfLargest(leverages, counts)

    def may_flip(n_units: int) -> bool:
        """Whether the bound of the decrease without n units reaches the lead."""
        leverage = largest_leverages.sum_of_largest(n_units)  # η
        if leverage >= 1 - LEAST_SLACK:  # the items may no longer be connected
            return True
        squared_sensitivity = squared_sensitivities.sum_of_largest(n_units)
        squared_residual = squared_residuals.sum_of_largest(n_units)
        norms = np.sqrt(squared_sensitivity * squared_residual)  # ‖c‖ ‖e‖
        largest_decrease = decreases.sum_of_largest(n_units) + norms * leverage / (1 - leverage)
        return bool(largest_decrease >= lead * (1 - 2 * EQUAL))  # nearly equal counts as flipped

    # Bisection: the bound increases with the number of units.
    too_few = 0
    enough = int(counts.sum())
    while enough - too_few > 1:
        middle = (too_few + enough) // 2
        if may_flip(middle):
            enough = middle
        else:
            too_few = middle
    return enough


class _SumsOfLargest:
    """Sums of the k largest values, where each value occurs several times."""

    def __init__(self, values: Array, counts: Indices) -> None:
        # Each value occurs several times: counts. Sums up to a number in between are interpolated.
        decreasing = np.argsort(-values)
        positive_values = np.maximum(values[decreasing], 0.0)
        n_occurrences = counts[decreasing]
        self.cumulative_counts = np.append(0, np.cumsum(n_occurrences))
        self.cumulative_sums = np.append(0.0, np.cumsum(n_occurrences * positive_values))

    def sum_of_largest(self, k: int) -> float:
        """Sum of the k largest values."""
        return float(np.interp(k, self.cumulative_counts, self.cumulative_sums))


def votes_to_flip(model: RemovableVotes, a: int, b: int) -> VotesToFlip:
    """Return the votes that must be removed until item a, which is above, is not above b.

    For models that are not linear, the removal is repeated from a refit until a refit confirms it.
    """
    leave_one_out = model.leave_one_out()
    if leave_one_out.removes_exactly:
        return votes_to_flip_by_one_step(model, leave_one_out, a, b)

    # Remove votes by one Newton step, and refit; repeat until a refit confirms the flip.
    n_removed_by_outcome = np.zeros(len(model.counts.count), np.intp)
    is_flipped = True  # no vote needs to go while a is not above b
    lead = rating_lead(model, a, b)
    while lead > 0:
        contrast = leave_one_out.system.difference_contrast(a, b)
        removal = VoteRemoval(leave_one_out, contrast, lead)
        n_removed_by_outcome += removal.remove_votes_until_flip()
        is_flipped = removal.is_flipped
        if not is_flipped:  # no further vote decreases the lead
            break
        refitted = _refit(model, model.counts.count - n_removed_by_outcome)
        leave_one_out = refitted.leave_one_out()
        lead = rating_lead(refitted, a, b)
    return _describe_removed_votes(
        model.counts, n_removed_by_outcome, at_least=None, is_flipped=is_flipped
    )


def votes_to_flip_by_one_step(
    model: RemovableVotes, leave_one_out: LeaveOneOut, a: int, b: int
) -> VotesToFlip:
    """Return the votes to flip without a refit; one Newton step for models that are not linear."""
    # The lower bound holds for least squares only, whose models without votes are exact.
    at_least: int | None = 0 if leave_one_out.removes_exactly else None
    n_removed_by_outcome = np.zeros(len(model.counts.count), np.intp)
    is_flipped = True  # no vote needs to go while a is not above b
    lead = rating_lead(model, a, b)
    if lead > 0:
        contrast = leave_one_out.system.difference_contrast(a, b)
        removal = VoteRemoval(leave_one_out, contrast, lead)
        if leave_one_out.removes_exactly:
            terms = removal.terms_of_lower_bound()
            n_votes = model.counts.count  # of each outcome
            at_least = lower_bound_of_units_to_flip(terms, leave_one_out.leverages, n_votes, lead)
        n_removed_by_outcome = removal.remove_votes_until_flip()
        is_flipped = removal.is_flipped
    return _describe_removed_votes(model.counts, n_removed_by_outcome, at_least, is_flipped)


def _describe_removed_votes(
    counts: ComparisonCounts, n_removed_by_outcome: Indices, at_least: int | None, is_flipped: bool
) -> VotesToFlip:
    """Return the first rows of each outcome as the removed ones."""
    # The rows of an outcome are equal votes: the first ones are removed.
    removed_rows = [np.empty(0, np.intp)]
    for outcome in np.flatnonzero(n_removed_by_outcome):
        rows_of_outcome = counts.rows[outcome]
        removed_rows.append(rows_of_outcome[: n_removed_by_outcome[outcome]])
    rows = np.sort(np.concatenate(removed_rows))
    return VotesToFlip(
        n=len(rows) if is_flipped else None,
        at_least=at_least,
        of=counts.n_comparisons,
        removed=rows,
    )


def blocks_to_flip(
    model: RemovableVotes, a: int, b: int, block_of_row: Indices, labels: Labels
) -> VotesToFlip:
    """Return the whole blocks of comparisons (judges, prompts) that must be removed."""
    counts = model.counts
    rows_by_block = indices_by_group(block_of_row)
    leave_one_out = model.leave_one_out()
    contrast = leave_one_out.system.difference_contrast(a, b)
    lead = rating_lead(model, a, b)
    at_least: int | None = None
    if leave_one_out.removes_exactly:  # least squares: a lower bound is known
        at_least = 0
        if lead > 0:
            at_least = _lower_bound_of_blocks(
                VoteRemoval(leave_one_out, contrast, lead), rows_by_block
            )

    # Remove the block that decreases the lead most, and refit.
    remaining = list(range(len(labels)))
    while lead > 0:
        decreases = []
        for block in remaining:
            # Decrease of the lead: its contrast times the change of all unknowns
            change = leave_one_out.change_without(rows_by_block[block])
            decreases.append(float(contrast @ change))
        best = int(np.argmax(decreases))
        if len(remaining) == 1 or not decreases[best] > 0:  # one block stays
            break
        remaining.pop(best)
        remaining_outcomes = counts.outcome_of_comparison[np.isin(block_of_row, remaining)]
        remaining_counts = np.bincount(remaining_outcomes, minlength=len(counts.count))
        refitted = _refit(model, remaining_counts)
        leave_one_out = refitted.leave_one_out()
        lead = rating_lead(refitted, a, b)

    removed = np.setdiff1d(np.arange(len(labels)), remaining)
    n_blocks = len(removed) if lead <= 0 else None
    return VotesToFlip(n=n_blocks, at_least=at_least, of=len(labels), removed=labels[removed])


def _lower_bound_of_blocks(removal: VoteRemoval, rows_by_block: list[Indices]) -> int:
    """Lower bound of the number of blocks, with norms of their hat matrices as leverages."""
    counts = removal.counts
    root = np.linalg.cholesky(removal.inverse_gram)
    terms = removal.terms_of_lower_bound()
    block_terms = []
    hat_norms = []
    for rows in rows_by_block:
        outcomes = counts.outcome_of_comparison[rows]
        # The terms of a block are the sums of those of its votes.
        block_terms.append([float(term[outcomes].sum()) for term in terms])
        # Norm of the hat matrix of the block, Fᵀ Dᵀ W D F with A⁻¹ = F Fᵀ
        block_weights = np.zeros(len(counts.first))
        np.add.at(block_weights, counts.pair_of_outcome[outcomes], counts.weight[outcomes])
        hat_matrix = root.T @ removal.system.dense_gram(block_weights) @ root
        hat_norms.append(float(np.linalg.norm(hat_matrix, 2)))
    one_each = np.ones(len(rows_by_block), np.intp)  # every block occurs once
    terms_by_block = LowerBoundTerms._make(np.transpose(block_terms))
    return lower_bound_of_units_to_flip(terms_by_block, np.array(hat_norms), one_each, removal.lead)


def votes_to_flip_neighbors(model: RemovableVotes, order: list[int]) -> list[VotesToFlip]:
    """Return the votes to flip each item of an order and the next one.

    The first item is compared with each of the next ten; the fewest votes count.
    """
    leave_one_out = model.leave_one_out()

    def flip(a: int, b: int) -> VotesToFlip:
        return votes_to_flip_by_one_step(model, leave_one_out, a, b)

    neighbors = [flip(a, b) for a, b in pairwise(order)]
    if not neighbors:
        return neighbors

    # The first item against each of the next ten: the fewest votes count
    rivals_of_first = neighbors[:1] + [flip(order[0], b) for b in order[2 : RIVALS + 1]]
    lower_bounds = [rival.at_least for rival in rivals_of_first if rival.at_least is not None]
    flipped = [rival for rival in rivals_of_first if rival.n is not None]
    fewest = neighbors[0]
    if flipped:
        n_votes = [rival.n for rival in rivals_of_first if rival.n is not None]
        fewest = flipped[int(np.argmin(n_votes))]
    if lower_bounds:
        fewest = fewest._replace(at_least=min(lower_bounds))
    neighbors[0] = fewest
    return neighbors


def rating_lead(model: RemovableVotes, a: int, b: int) -> float:
    """Return r_a − r_b; 0 if it is negative or rounding."""
    lead = float(model.ratings[a] - model.ratings[b])
    rounding = EQUAL * float(np.abs(model.ratings).max())
    if lead <= rounding:
        return 0.0
    return lead


def _refit(model: RemovableVotes, count: Indices) -> RemovableVotes:
    """Return the model with other numbers of each outcome, for the same λ."""
    return model.refit(replace(model.counts, count=count))
