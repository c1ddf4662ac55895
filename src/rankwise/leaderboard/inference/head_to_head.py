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
    expected = counts.pair_weights * model.expected(model.margins())
    number = counts.sum_by_pair(counts.count.astype(np.float64))
    if counts.teams is not None:
        return _between_members(counts, counts.teams, number, expected)
    weight = counts.sum_by_edge(counts.pair_weights)
    return HeadToHead(
        first=counts.first[counts.edges],
        second=counts.second[counts.edges],
        n=counts.sum_by_edge(number).astype(np.intp),
        observed=counts.sum_by_edge(counts.pair_target_sums) / weight,
        expected=counts.sum_by_edge(expected) / weight,
    )


def _between_members(
    counts: ComparisonCounts, teams: TeamRows, number: Array, expected: Array
) -> HeadToHead:
    """Results of every two items on opposite sides, each comparison once for every such two."""
    on_first = sp.csr_array(teams.first != 0, dtype=np.float64)
    on_second = sp.csr_array(teams.second != 0, dtype=np.float64)

    def between(values: Array) -> sp.csr_array:
        """Sum of the values over the comparisons of an item on the first side and another one."""
        return on_first.T @ sp.diags_array(values) @ on_second

    met = between(number)
    first, second = sp.csr_array(sp.triu(met + met.T, k=1)).nonzero()

    def values_of(one_way: sp.csr_array, other_way: sp.csr_array) -> Array:
        total = sp.csr_array(one_way + other_way)
        return np.asarray(total[first, second]).reshape(len(first))

    weights = between(counts.pair_weights)
    flows = between(counts.pair_target_sums)
    expected_flows = between(expected)
    weight = values_of(weights, weights.T)
    return HeadToHead(
        first=first.astype(np.intp),
        second=second.astype(np.intp),
        n=values_of(met, met.T).astype(np.intp),
        observed=values_of(flows, -flows.T) / weight,
        expected=values_of(expected_flows, -expected_flows.T) / weight,
    )
