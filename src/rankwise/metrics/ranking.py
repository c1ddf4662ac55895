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
        self.sizes: Indices = np.bincount(groups.codes, minlength=self.n_groups)
        self.starts: Indices = np.cumsum(self.sizes) - self.sizes
        self.codes = groups.codes.astype(np.int32)

    @cached_property
    def position(self) -> Indices:
        """Place inside the group, 1, 2, ..., of each row of any array sorted by group."""
        return np.arange(1, len(self.y) + 1) - np.repeat(self.starts, self.sizes)

    @cached_property
    def order(self) -> Indices:
        """Rows by group, highest y first."""
        return self.by_group(np.argsort(self.y)[::-1])

    @cached_property
    def level_starts(self) -> Indices:
        """Where a new group or a lower y begins in ``y[order]``."""
        return run_starts(self.y[self.order], self.starts)

    @cached_property
    def levels(self) -> Numbers:
        """Small integer for each row that orders a group like y does, 0 for the highest."""
        is_start = np.zeros(len(self.y), dtype=np.uint32)
        is_start[self.level_starts] = 1
        rank = np.cumsum(is_start, dtype=np.uint32)
        rank -= np.repeat(rank[self.starts], self.sizes)
        levels = np.empty_like(rank)
        levels[self.order] = rank
        return levels

    @cached_property
    def differing(self) -> Numbers:
        """Number of pairs of each group with different y."""
        return self.pairs_between(None, self.starts, self.level_starts)

    def pairs_between(self, weights: Array | None, outer: Indices, inner: Indices) -> Numbers:
        """Number (or weight) of pairs per group that share an outer run but no inner run.

        Parameters
        ----------
        weights : ndarray of shape (m,) or None
            Weights of the items in the order of the runs, group after group; a pair counts the
            product of its weights. None counts pairs.
        outer, inner : ndarray of int
            Starts of the runs. Each outer run consists of whole inner runs.
        """
        if weights is None:
            inner_sums = np.diff(inner, append=len(self.y))
        else:
            inner_sums = np.add.reduceat(weights, inner)
        sum_before = np.concatenate([[0], np.cumsum(inner_sums)[:-1]])
        first_inner = np.searchsorted(inner, outer)
        n_inner = np.diff(first_inner, append=len(inner))
        sum_before_in_outer = sum_before - np.repeat(sum_before[first_inner], n_inner)
        first_of_group = np.searchsorted(inner, self.starts)
        return np.asarray(np.add.reduceat(inner_sums * sum_before_in_outer, first_of_group))

    def by_group(self, order: Indices) -> Indices:
        """Sort rows by group; the order inside each group is preserved."""
        order = np.ascontiguousarray(order)
        if self.n_groups == 1:
            return order
        rows: Indices = sort_by_group(order, self.codes, self.starts)
        return rows

    def sum(self, values: Numbers) -> Numbers:
        """Sum per group of an array that is sorted by group."""
        dtype = np.int64 if values.dtype.kind in "biu" else np.float64
        return np.asarray(np.add.reduceat(values, self.starts, dtype=dtype))

    def sum_rows(self, values: Numbers) -> Array:
        """Sum per group of an array in row order."""
        return np.bincount(self.codes, values, self.n_groups).astype(np.float64, copy=False)

    def cumulate(self, counts: Numbers) -> NDArray[np.int64]:
        """Cumulative sum within each group of an integer array sorted by group."""
        running: NDArray[np.int64] = np.cumsum(counts, dtype=np.int64)
        running -= np.repeat(running[self.starts] - counts[self.starts], self.sizes)
        return running


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
        if targets.n_groups * SMALL_GROUP > len(score):
            falling = -score.astype(np.float64)
            self._order: Indices = sort_in_groups(falling, targets.order, targets.starts)
        else:
            self._order = targets.by_group(np.argsort(score)[::-1])
        self.run_starts = run_starts(score[self._order], targets.starts)
        self.has_ties = len(self.run_starts) < len(score)
        self._resolved: dict[str, Indices] = {}

    @cached_property
    def run_sizes(self) -> Indices:
        """Number of items in each run of tied scores."""
        return np.diff(self.run_starts, append=len(self._order))

    def order(self, tied_scores: str = "average") -> Indices:
        """Rows in ranked order.

        ``tied_scores`` orders tied items: "optimistic" by falling y, "pessimistic" by rising y,
        "order" by row number; "average" leaves the order unspecified.
        """
        if not self.has_ties or tied_scores == "average":
            return self._order
        if tied_scores not in self._resolved:
            self._resolved[tied_scores] = self._resolve(tied_scores)
        return self._resolved[tied_scores]

    def ranked(self, values: Numbers, tied_scores: str) -> Numbers:
        """Values of the rows in ranked order; "average" takes their means over tied items."""
        ranked_values = values[self.order(tied_scores)]
        if tied_scores == "average":
            return self.average(ranked_values)
        return ranked_values

    def average(self, values: Numbers) -> Numbers:
        """Replace values in ranked order by their mean over each run of tied scores."""
        if not self.has_ties:
            return values
        sums = np.add.reduceat(values, self.run_starts, dtype=np.float64)
        return np.repeat(sums / self.run_sizes, self.run_sizes)

    def _resolve(self, tied_scores: str) -> Indices:
        """The ranked order with each run of tied items sorted by y or by row number."""
        tied_places = np.flatnonzero(np.repeat(self.run_sizes > 1, self.run_sizes))
        run = np.repeat(np.arange(len(self.run_sizes)), self.run_sizes)[tied_places]
        tied_rows = self._order[tied_places]
        if tied_scores == "order":
            key = tied_rows
        else:
            key = self.targets.levels[tied_rows].astype(np.int64)
            if tied_scores == "pessimistic":
                key = key.max() - key
        key_by_run = run * (key.max() + 1) + key
        order = self._order.copy()
        order[tied_places] = tied_rows[np.argsort(key_by_run)]
        return order


def run_starts(values: Numbers, outer: Indices) -> Indices:
    """Positions where the value changes, or where a run of `outer` starts."""
    is_start = np.empty(len(values), dtype=bool)
    np.not_equal(values[1:], values[:-1], out=is_start[1:])
    is_start[outer] = True
    return np.flatnonzero(is_start)


def divide(numerator: Numbers, denominator: Numbers) -> Array:
    """Quotient; NaN where the denominator is 0."""
    quotient = np.full(len(numerator), np.nan)
    np.divide(numerator, denominator, out=quotient, where=denominator > 0)
    return quotient
