"""Observed and expected outcomes of every two items that met."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp

from rankwise.arrays import Array
from rankwise.leaderboard.algebra.comparison_counts import ComparisonCounts
from rankwise.leaderboard.algebra.team_rows import TeamRows
from rankwise.leaderboard.board_records import HeadToHead
from rankwise.leaderboard.models.base import RatingModel


def head_to_head(model: RatingModel) -> HeadToHead:
    """Return the results of every two items that met; with teams, on opposite sides."""
    counts = model.counts
    # Of each pair: weight times expected outcome, summed over its comparisons, and their number
    expected_sums = counts.pair_weights * model.expected(model.margins())
    n_comparisons = counts.sum_by_pair(counts.count.astype(np.float64))
    if counts.teams is not None:
        return _between_members(counts, counts.teams, n_comparisons, expected_sums)
    # A pair is two items and values of the covariates; an edge is every two items that met.
    weight = counts.sum_by_edge(counts.pair_weights)
    return HeadToHead(
        first=counts.first[counts.edges],
        second=counts.second[counts.edges],
        n=counts.sum_by_edge(n_comparisons).astype(np.intp),
        observed=counts.sum_by_edge(counts.pair_target_sums) / weight,
        expected=counts.sum_by_edge(expected_sums) / weight,
    )


def _between_members(
    counts: ComparisonCounts, teams: TeamRows, n_comparisons: Array, expected_sums: Array
) -> HeadToHead:
    """Results of every two items on opposite sides, each comparison once for every such two."""
    # (n_pairs, n_items): 1 where an item is a member of the side
    is_on_first = sp.csr_array(teams.first != 0, dtype=np.float64)
    is_on_second = sp.csr_array(teams.second != 0, dtype=np.float64)

    def sum_by_members(pair_values: Array) -> sp.csr_array:
        """Sum over the pairs with item i on the first side and item j on the second."""
        return is_on_first.T @ sp.diags_array(pair_values) @ is_on_second

    n_met = sum_by_members(n_comparisons)
    # Every two items i < j that met, with either of them on the first side
    first, second = sp.csr_array(sp.triu(n_met + n_met.T, k=1)).nonzero()

    def sum_both_sides(i_on_first: sp.csr_array, i_on_second: sp.csr_array) -> Array:
        """Sum over the pairs with item i on either side, for every two items i < j that met."""
        total = sp.csr_array(i_on_first + i_on_second)
        return np.asarray(total[first, second]).reshape(len(first))

    # Outcomes are of the first side; for an item on the second side they change sign.
    weights = sum_by_members(counts.pair_weights)
    targets = sum_by_members(counts.pair_target_sums)
    expected = sum_by_members(expected_sums)
    total_weight = sum_both_sides(weights, weights.T)
    return HeadToHead(
        first=first.astype(np.intp),
        second=second.astype(np.intp),
        n=sum_both_sides(n_met, n_met.T).astype(np.intp),
        observed=sum_both_sides(targets, -targets.T) / total_weight,
        expected=sum_both_sides(expected, -expected.T) / total_weight,
    )
