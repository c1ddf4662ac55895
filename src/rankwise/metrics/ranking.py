"""Items sorted once inside their groups; every metric is a function of a `Ranking`.

    GroupedTargets   y and groups: everything that does not depend on the scores
    Ranking          the same items ordered by score, with the runs of tied scores

All groups are stored in flat arrays, one group after the other, so a sum per group is one
``np.add.reduceat`` without padding or loops.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from rankwise._compiled import sort_by_group, sort_in_groups
from rankwise.arrays import Array, Indices, Numbers
from rankwise.caching import cached_property
from rankwise.groups import Groups

SMALL_GROUP = 200
"""Mean group size up to which groups are sorted one by one; larger ones are sorted together."""


class GroupedTargets:
    """Relevance ``y`` of items in groups.

    Parameters
    ----------
    y : ndarray of shape (m,)
        Finite numbers.
    groups : Groups
        The group of each item.
    weights : ndarray of shape (m,), optional
        Weights of the items, 0 or larger.
    judged : ndarray of bool of shape (m,), optional
        Whether the relevance of an item is known; None if it is known for all items.
    """

    def __init__(
        self,
        y: Numbers,
        groups: Groups,
        weights: NDArray[np.float64] | None = None,
        judged: NDArray[np.bool_] | None = None,
    ) -> None:
        self.y = y
        self.weights = weights
        self.judged = judged
        self.labels = groups.labels
        self.n_groups = len(groups.labels)
        self.group_sizes: Indices = np.bincount(groups.codes, minlength=self.n_groups)
        self.group_starts: Indices = np.cumsum(self.group_sizes) - self.group_sizes
        self.codes = groups.codes.astype(np.int32)

    @cached_property
    def place_in_group(self) -> Indices:
        """Place inside the group, 1, 2, ..., of each row of any array sorted by group."""
        return np.arange(1, len(self.y) + 1) - np.repeat(self.group_starts, self.group_sizes)

    @cached_property
    def ideal_order(self) -> Indices:
        """Rows by group, highest y first."""
        return self.stable_sort_by_group(np.argsort(self.y)[::-1])

    @cached_property
    def level_starts(self) -> Indices:
        """Where a new group or a lower y begins in ``y[ideal_order]``."""
        return find_run_starts(self.y[self.ideal_order], self.group_starts)

    @cached_property
    def levels(self) -> Numbers:
        """Small integer for each row that orders a group like y does, 0 for the highest."""
        # Number the distinct values of y through all groups, and restart at 0 in each group
        starts_level = np.zeros(len(self.y), dtype=np.uint32)
        starts_level[self.level_starts] = 1
        level_in_ideal_order = np.cumsum(starts_level, dtype=np.uint32)
        first_level = level_in_ideal_order[self.group_starts]
        level_in_ideal_order -= np.repeat(first_level, self.group_sizes)
        # Back to the order of the rows
        levels = np.empty_like(level_in_ideal_order)
        levels[self.ideal_order] = level_in_ideal_order
        return levels

    @cached_property
    def n_differing_pairs(self) -> Numbers:
        """Number of pairs of each group with different y."""
        return self.count_pairs_between_runs(
            None, outer_starts=self.group_starts, inner_starts=self.level_starts
        )

    def count_pairs_between_runs(
        self, weights: Array | None, *, outer_starts: Indices, inner_starts: Indices
    ) -> Numbers:
        """Number (or weight) of pairs per group that share an outer run but no inner run.

        Parameters
        ----------
        weights : ndarray of shape (m,) or None
            Weights of the items in the order of the runs, group after group; a pair counts the
            product of its weights. None counts pairs.
        outer_starts, inner_starts : ndarray of int
            Starts of the runs. Each outer run consists of whole inner runs.
        """
        # For each group: pairs of items of one outer run that are in different inner runs.
        # Number (or total weight) of the items of each inner run
        if weights is None:
            run_totals = np.diff(inner_starts, append=len(self.y))
        else:
            run_totals = np.add.reduceat(weights, inner_starts)
        # The same for all earlier inner runs of the same outer run
        total_before = np.concatenate([[0], np.cumsum(run_totals)[:-1]])
        first_inner_run = np.searchsorted(inner_starts, outer_starts)
        n_inner_runs = np.diff(first_inner_run, append=len(inner_starts))
        total_before_outer_run = np.repeat(total_before[first_inner_run], n_inner_runs)
        earlier_total = total_before - total_before_outer_run
        # Each item makes a pair with each item of the earlier runs
        pairs_of_run = run_totals * earlier_total
        first_run_of_group = np.searchsorted(inner_starts, self.group_starts)
        return np.asarray(np.add.reduceat(pairs_of_run, first_run_of_group))

    def stable_sort_by_group(self, order: Indices) -> Indices:
        """Sort rows by group; the order inside each group is preserved."""
        order = np.ascontiguousarray(order)
        if self.n_groups == 1:
            return order
        rows: Indices = sort_by_group(order, self.codes, self.group_starts)
        return rows

    def sum_by_group(self, values: Numbers) -> Numbers:
        """Sum per group of an array that is sorted by group."""
        dtype: type[np.number] = np.float64
        is_integer = values.dtype.kind in "biu"
        if is_integer:
            dtype = np.int64
        return np.asarray(np.add.reduceat(values, self.group_starts, dtype=dtype))

    def sum_rows_by_group(self, values: Numbers) -> Array:
        """Sum per group of an array in row order."""
        return np.bincount(self.codes, values, self.n_groups).astype(np.float64, copy=False)

    def cumsum_by_group(self, counts: Numbers) -> NDArray[np.int64]:
        """Cumulative sum within each group of an integer array sorted by group."""
        running_total: NDArray[np.int64] = np.cumsum(counts, dtype=np.int64)
        # Subtract the sums of earlier groups
        total_of_earlier_groups = running_total[self.group_starts] - counts[self.group_starts]
        running_total -= np.repeat(total_of_earlier_groups, self.group_sizes)
        return running_total


class Ranking:
    """Items ordered by group and, inside a group, from the highest score to the lowest.

    Parameters
    ----------
    targets : GroupedTargets
        Relevance and groups.
    score : ndarray of shape (m,)
        Finite scores.
    """

    def __init__(self, targets: GroupedTargets, score: Numbers) -> None:
        self.targets = targets
        self.score = score
        has_small_groups = targets.n_groups * SMALL_GROUP > len(score)
        if has_small_groups:
            # Sort each group on its own, starting from the ideal order
            negative_score = -score.astype(np.float64)
            self._order: Indices = sort_in_groups(
                negative_score, targets.ideal_order, targets.group_starts
            )
        else:
            highest_first = np.argsort(score)[::-1]
            self._order = targets.stable_sort_by_group(highest_first)
        self.tied_run_starts = find_run_starts(score[self._order], targets.group_starts)
        self.has_ties = len(self.tied_run_starts) < len(score)
        self._order_by_tie_rule: dict[str, Indices] = {}

    @cached_property
    def tied_run_sizes(self) -> Indices:
        """Number of items in each run of tied scores."""
        return np.diff(self.tied_run_starts, append=len(self._order))

    def order(self, tied_scores: str = "average") -> Indices:
        """Rows in ranked order.

        ``tied_scores`` orders tied items: "optimistic" by falling y, "pessimistic" by rising y,
        "order" by row number; "average" leaves the order unspecified.
        """
        if not self.has_ties or tied_scores == "average":
            return self._order
        if tied_scores not in self._order_by_tie_rule:
            self._order_by_tie_rule[tied_scores] = self._break_ties(tied_scores)
        return self._order_by_tie_rule[tied_scores]

    def sort_values(self, values: Numbers, tied_scores: str) -> Numbers:
        """Values of the rows in ranked order; "average" takes their means over tied items."""
        ranked_values = values[self.order(tied_scores)]
        if tied_scores == "average":
            return self.mean_over_ties(ranked_values)
        return ranked_values

    def mean_over_ties(self, values: Numbers) -> Numbers:
        """Replace values in ranked order by their mean over each run of tied scores."""
        if not self.has_ties:
            return values
        sums = np.add.reduceat(values, self.tied_run_starts, dtype=np.float64)
        mean_of_run = sums / self.tied_run_sizes
        return np.repeat(mean_of_run, self.tied_run_sizes)

    def _break_ties(self, tied_scores: str) -> Indices:
        """The ranked order with each run of tied items sorted by y or by row number."""
        run_of_place = np.repeat(np.arange(len(self.tied_run_sizes)), self.tied_run_sizes)
        is_tied = np.repeat(self.tied_run_sizes > 1, self.tied_run_sizes)
        tied_places = np.flatnonzero(is_tied)
        tied_rows = self._order[tied_places]
        key = tied_rows  # "order": in the order of rows
        if tied_scores in ("optimistic", "pessimistic"):
            key = self.targets.levels[tied_rows].astype(np.int64)  # 0 is the highest y
        if tied_scores == "pessimistic":
            key = key.max() - key  # lowest y first
        # One sort by run, then by key
        run_and_key = run_of_place[tied_places] * (key.max() + 1) + key
        order = self._order.copy()
        order[tied_places] = tied_rows[np.argsort(run_and_key)]
        return order


def find_run_starts(values: Numbers, outer_starts: Indices) -> Indices:
    """Positions where the value changes, or where an outer run starts."""
    is_start = np.empty(len(values), dtype=bool)
    np.not_equal(values[1:], values[:-1], out=is_start[1:])
    is_start[outer_starts] = True
    return np.flatnonzero(is_start)


def divide_or_nan(numerator: Numbers, denominator: Numbers) -> Array:
    """Quotient; NaN where the denominator is 0."""
    quotient = np.full(len(numerator), np.nan)
    np.divide(numerator, denominator, out=quotient, where=denominator > 0)
    return quotient
