"""Comparisons counted by pair of items and outcome."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from scipy.sparse.csgraph import connected_components

from rankwise.arrays import Array, Indices
from rankwise.caching import cached_property
from rankwise.datasets import PairData
from rankwise.groups import indices_by_group
from rankwise.leaderboard.algebra.team_rows import SignedMembers, TeamRows, number_by_size

LARGEST_CODE = 2**62  # of the integers that encode a comparison
FEW_VALUES = 8  # up to this number of distinct values, counting is faster than searching


@dataclass(frozen=True, eq=False)
class ComparisonCounts:
    """Distinct comparisons, each with the number of times that it occurs.

    Two comparisons are the same if their items, covariates, outcome and weight are the same.
    Thousands of battles between tens of items have few distinct outcomes, so everything computed
    from the counts is cheap relative to reading the comparisons once.

    Attributes
    ----------
    n_items : int
        Number of items.
    n_sides : int
        Number of teams, or of items if there are no teams.
    first, second : ndarray of shape (n_distinct,)
        The two items, or teams, of each distinct pair, sorted, with ``first < second``. A pair of
        items occurs once for each value of the covariates (and each cell).
    covariates : ndarray of shape (n_distinct, n_covariates)
        Z, from the point of view of `first`.
    pair_of_outcome : ndarray of shape (n_outcomes,)
        The distinct pair of each outcome, in increasing order.
    target : ndarray of shape (n_outcomes,)
        δ, the margin of `first`; negative if `second` won.
    weight : ndarray of shape (n_outcomes,)
        ω of each comparison with the outcome.
    count : ndarray of shape (n_outcomes,)
        Number of comparisons with the outcome.
    outcome_of_comparison : ndarray of shape (n_comparisons,)
        The outcome of each comparison.
    cell_of_pair : ndarray of shape (n_distinct,) or None
        The circumstances (time and context) of each distinct pair; None if they do not matter.
    teams : TeamRows or None
        Members of the sides of each distinct pair; None if each side is one item.
    """

    n_items: int
    n_sides: int
    first: Indices
    second: Indices
    covariates: Array
    pair_of_outcome: Indices
    target: Array
    weight: Array
    count: Indices
    outcome_of_comparison: Indices
    cell_of_pair: Indices | None = None
    teams: TeamRows | None = None

    @classmethod
    def of(
        cls,
        data: PairData,
        covariates: Array | None = None,
        cells: Indices | None = None,
    ) -> ComparisonCounts:
        """Count comparisons.

        Parameters
        ----------
        data : PairData
            The comparisons.
        covariates : ndarray of shape (n_comparisons, n_covariates), optional
            From the point of view of the first item of each comparison.
        cells : ndarray of shape (n_comparisons,), optional
            Circumstances of each comparison; comparisons in different cells are distinct.
        """
        if covariates is None:
            covariates = np.empty((data.n_pairs, 0))

        # Every comparison from the point of view of its item with the smaller number.
        is_reversed = data.first > data.second
        first = np.minimum(data.first, data.second)
        second = np.maximum(data.first, data.second)
        target = _negate_where(is_reversed, data.outcome)
        covariates = _negate_where(is_reversed[:, None], covariates)

        # One integer (code) for each distinct pair: its items, covariates and cell. With the target
        # and the weight it becomes a code for each distinct outcome of a pair.
        n_items = len(data.items)
        n_sides = data.n_sides
        codes = first * n_sides + second
        n_codes = n_sides**2
        for column in covariates.T:
            codes, n_codes = _combine_codes(codes, n_codes, column)
        if cells is not None:
            codes, n_codes = _combine_codes(codes, n_codes, cells)
        pair_codes = codes
        for column in (target, data.weight):
            codes, n_codes = _combine_codes(codes, n_codes, column)

        # Distinct codes increase, so the outcomes of a pair follow each other.
        distinct = _distinct_codes(codes, n_codes)
        outcome_rows = distinct.example_row  # one comparison with each outcome
        is_new_pair = np.diff(pair_codes[outcome_rows], prepend=-1) > 0
        pair_rows = outcome_rows[is_new_pair]
        teams = None
        if data.teams is not None:
            teams = TeamRows(data.teams, first[pair_rows], second[pair_rows], n_items)
        return cls(
            n_items=n_items,
            n_sides=n_sides,
            first=first[pair_rows],
            second=second[pair_rows],
            covariates=covariates[pair_rows],
            pair_of_outcome=np.cumsum(is_new_pair) - 1,
            target=target[outcome_rows],
            weight=data.weight[outcome_rows],
            count=distinct.n_rows,
            outcome_of_comparison=distinct.number_of_row,
            cell_of_pair=None if cells is None else cells[pair_rows],
            teams=teams,
        )

    @property
    def n_comparisons(self) -> int:
        """Number of comparisons, each counted as often as it occurs."""
        return len(self.outcome_of_comparison)

    @cached_property
    def rows(self) -> list[Indices]:
        """Row numbers of the comparisons with each outcome."""
        return indices_by_group(self.outcome_of_comparison)

    @cached_property
    def outcome_weight(self) -> Array:
        """Total weight of the comparisons with each outcome."""
        return np.asarray(self.count * self.weight)

    @cached_property
    def total_weight(self) -> float:
        """W, the sum of the weights of all comparisons."""
        return float(self.count @ self.weight)

    @cached_property
    def squared_target(self) -> float:
        """Σ ω δ² over all comparisons."""
        return float(self.outcome_weight @ self.target**2)

    @cached_property
    def pair_weights(self) -> Array:
        """Σ ω over the comparisons of each distinct pair."""
        return self.sum_by_pair(self.outcome_weight)

    @cached_property
    def pair_target_sums(self) -> Array:
        """Σ ω δ over the comparisons of each distinct pair."""
        return self.sum_by_pair(self.outcome_weight * self.target)

    def sum_by_pair(self, values: Array | NDArray[np.bool_]) -> Array:
        """Sum values of the outcomes over each distinct pair."""
        return np.asarray(
            np.bincount(self.pair_of_outcome, values, minlength=len(self.first)), np.float64
        )

    @cached_property
    def edges(self) -> Indices:
        """The first distinct pair of every two sides that met, for any covariates."""
        # Pairs of the same two sides (with other covariates or cells) follow each other; an edge is
        # the first of them.
        edge_codes = self.first * self.n_sides + self.second  # in increasing order
        return np.flatnonzero(np.diff(edge_codes, prepend=-1))

    def sum_by_edge(self, values: Array) -> Array:
        """Sum values of the distinct pairs over every two sides, along the last axis."""
        if len(self.edges) == len(self.first):  # every two sides are one distinct pair
            return values
        return np.asarray(np.add.reduceat(values, self.edges, axis=-1))

    @cached_property
    def members(self) -> SignedMembers:
        """Items of each distinct pair, with the weight 1 on the first side and −1 on the second."""
        if self.teams is not None:
            return self.teams.members
        items = np.column_stack([self.first, self.second])
        signs = np.tile([1.0, -1.0], (len(items), 1))
        return SignedMembers(items, signs)

    def sum_by_item(
        self, first_values: Array | NDArray[np.bool_], second_values: Array | NDArray[np.bool_]
    ) -> Array:
        """Sum values of the distinct pairs over the items on the first and on the second side."""
        if self.teams is not None:
            return self.teams.sum_members(first_values, second_values)
        sums_on_first = np.bincount(self.first, first_values, self.n_items)
        sums_on_second = np.bincount(self.second, second_values, self.n_items)
        return np.asarray(sums_on_first + sums_on_second)

    def has_member(self, is_selected: NDArray[np.bool_]) -> NDArray[np.bool_]:
        """Whether some of the items are in each distinct pair."""
        members = self.members
        # Short rows end with item 0 of weight 0, which is no member.
        is_selected_member = is_selected[members.item] & (members.weight != 0)
        return np.asarray(is_selected_member.any(axis=1))

    @cached_property
    def components(self) -> Indices:
        """Connected component of each item, numbered from 1 in decreasing order of size.

        With teams, the items whose differences the comparisons determine.
        """
        if self.teams is not None:
            return self.teams.components
        ones = np.ones(len(self.first))
        shape = (self.n_items, self.n_items)
        adjacency = sp.coo_matrix((ones, (self.first, self.second)), shape)
        _, labels = connected_components(adjacency, directed=False)
        return number_by_size(labels)

    def center(self, ratings: Array) -> Array:
        """Subtract the mean of each component, along the first axis."""
        component = self.components - 1  # numbered from 0
        component_means = self._component_averages @ ratings
        return np.asarray(ratings - component_means[component])

    @cached_property
    def _component_averages(self) -> sp.csr_matrix:
        """Matrix of shape (n_components, n_items) that averages the items of each component."""
        component = self.components - 1
        component_sizes = np.bincount(component)[component]
        items = np.arange(self.n_items)
        return sp.csr_matrix((1 / component_sizes, (component, items)))


class _DistinctCodes(NamedTuple):
    """Distinct integers of several rows, in increasing order.

    Attributes
    ----------
    example_row : ndarray of shape (n_distinct,)
        A row with each distinct code.
    n_rows : ndarray of shape (n_distinct,)
        Number of rows with each distinct code.
    number_of_row : ndarray of shape (n_rows,)
        Number of the distinct code of each row.
    """

    example_row: Indices
    n_rows: Indices
    number_of_row: Indices


def _negate_where(condition: NDArray[np.bool_], values: Array) -> Array:
    """Return a copy with the sign changed where the condition holds, without −0."""
    negated = np.array(values, np.float64)
    np.negative(negated, out=negated, where=condition)
    negated += 0.0  # −0 becomes 0
    return negated


def _combine_codes(codes: Indices, n_codes: int, values: Array | Indices) -> tuple[Indices, int]:
    """Encode (code, value) as one integer; return the codes and their upper bound."""
    distinct_values = np.unique(values)
    n_values = len(distinct_values)
    if n_values == 1:
        return codes, n_codes
    if n_codes > LARGEST_CODE // n_values:  # the product would overflow: renumber from 0
        distinct_codes, codes = np.unique(codes, return_inverse=True)
        n_codes = len(distinct_codes)

    # code · n_values + position of the value among the distinct ones
    combined = codes * n_values
    if n_values <= FEW_VALUES:  # count the smaller distinct values, faster than a search
        for value in distinct_values[:-1]:
            combined += values > value
    else:
        combined += np.searchsorted(distinct_values, values)
    return combined, n_codes * n_values


def _distinct_codes(codes: Indices, n_codes: int) -> _DistinctCodes:
    """Return the distinct codes, by counting if their upper bound is small."""
    n_all_rows = len(codes)
    has_many_possible_codes = n_codes > 4 * n_all_rows
    if has_many_possible_codes:  # sort the codes instead of counting each possible one
        _, example_row, number_of_row, n_rows = np.unique(
            codes, return_index=True, return_inverse=True, return_counts=True
        )
        return _DistinctCodes(example_row, n_rows, number_of_row)

    # Arrays with an entry for each possible code, from 0 to n_codes − 1.
    n_rows_of_code = np.bincount(codes, minlength=n_codes)
    example_row_of_code = np.empty(n_codes, dtype=np.intp)
    example_row_of_code[codes] = np.arange(n_all_rows)
    number_of_code = np.cumsum(n_rows_of_code > 0) - 1
    present_codes = np.flatnonzero(n_rows_of_code)
    return _DistinctCodes(
        example_row=example_row_of_code[present_codes],
        n_rows=n_rows_of_code[present_codes],
        number_of_row=number_of_code[codes],
    )
