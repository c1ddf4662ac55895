"""Comparisons counted by pair and outcome."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp
from scipy.sparse.csgraph import connected_components

from rankwise.arrays import Array, Indices
from rankwise.caching import cached_property
from rankwise.datasets import PairData
from rankwise.groups import indices_by_group

LARGEST = 2**62  # of the whole numbers that encode a comparison

FEW = 8  # distinct values that are faster to count than to search


@dataclass(frozen=True, eq=False)
class ComparisonCounts:
    """Comparisons of the same two items, covariates, outcome and weight are one with a count.

    Thousands of battles between tens of items have few outcomes. What follows then costs
    little compared with reading the comparisons once.

    Attributes
    ----------
    n_items : int
        Number of items.
    first, second : ndarray of shape (n_distinct,)
        The two items of each distinct pair, ``first < second``, in this order. A pair of items
        is there once for each value of the covariates that it was compared with.
    covariates : ndarray of shape (n_distinct, n_covariates)
        Z; they speak for `first`, as the target does.
    pair : ndarray of shape (n_outcomes,)
        The distinct pair of each outcome, rising.
    target : ndarray of shape (n_outcomes,)
        δ, by how much the first item of the pair won; negative if the second did.
    weight : ndarray of shape (n_outcomes,)
        ω of each comparison of the outcome.
    count : ndarray of shape (n_outcomes,)
        Number of comparisons in the outcome.
    outcome : ndarray of shape (n_comparisons,)
        The outcome of each comparison.
    cell : ndarray of shape (n_distinct,) or None
        The circumstances of each distinct pair, if these are told apart.
    """

    n_items: int
    first: Indices
    second: Indices
    covariates: Array
    pair: Indices
    target: Array
    weight: Array
    count: Indices
    outcome: Indices
    cell: Indices | None = None

    @classmethod
    def of(
        cls,
        data: PairData,
        covariates: Array | None = None,
        cells: Indices | None = None,
    ) -> ComparisonCounts:
        """Count comparisons, with a row of covariates for each, which speak for its first item.

        Comparisons of different cells are not alike.
        """
        n, weight, is_turned = data.n_items, data.weight, data.first > data.second
        first = np.minimum(data.first, data.second)
        second = np.maximum(data.first, data.second)
        Z = np.array(np.empty((data.n_pairs, 0)) if covariates is None else covariates)
        target = np.array(data.outcome, np.float64)
        np.negative(target, out=target, where=is_turned)
        np.negative(Z, out=Z, where=is_turned[:, None])
        target += 0.0  # −0 is 0
        Z += 0.0
        codes, n_codes = first * n + second, n * n
        for column in (*Z.T, *(() if cells is None else (cells,))):
            codes, n_codes = _joined(codes, n_codes, column)
        row = codes
        for column in (target, weight):
            codes, n_codes = _joined(codes, n_codes, column)
        chosen, count, outcome = _counted(codes, n_codes)
        starts = np.diff(row[chosen], prepend=-1) > 0
        one_of_each = chosen[starts]
        return cls(
            n, first[one_of_each], second[one_of_each], Z[one_of_each], np.cumsum(starts) - 1,
            target[chosen], weight[chosen], count, outcome,
            None if cells is None else cells[one_of_each],
        )  # fmt: skip

    @cached_property
    def rows(self) -> list[Indices]:
        """The comparisons of each outcome."""
        return indices_by_group(self.outcome)

    @cached_property
    def total_weight(self) -> float:
        """W, the sum of the weights of all comparisons."""
        return float(self.count @ self.weight)

    @cached_property
    def squared_target(self) -> float:
        """Σ ω δ²."""
        return float((self.count * self.weight) @ self.target**2)

    @cached_property
    def sums(self) -> tuple[Array, Array]:
        """Σ ω and Σ ω δ of each distinct pair."""
        weight = self.count * self.weight
        return self.by_pair(weight), self.by_pair(weight * self.target)

    def by_pair(self, values: Array) -> Array:
        """Sums over the outcomes of each distinct pair."""
        return np.asarray(np.bincount(self.pair, values, minlength=len(self.first)), np.float64)

    def comparisons(self, effects: Array) -> PairData:
        """The comparisons with the effects of the covariates taken from their outcomes."""
        at, weight = self.pair[self.outcome], self.weight[self.outcome]
        target = self.target[self.outcome] - self.covariates[at] @ effects
        ends = self.first[at], self.second[at]
        return PairData(*ends, target, weight, np.arange(self.n_items))

    @cached_property
    def edges(self) -> Indices:
        """The first distinct pair of every two items, whatever the covariates were."""
        return np.flatnonzero(np.diff(self.first * self.n_items + self.second, prepend=-1))

    def by_edge(self, weights: Array) -> Array:
        """Sums over the distinct pairs of the same two items, along the last axis."""
        if len(self.edges) == len(self.first):
            return weights
        return np.asarray(np.add.reduceat(weights, self.edges, axis=-1))

    @cached_property
    def components(self) -> Indices:
        """The component of each item, numbered from 1 by size."""
        shape = (self.n_items, self.n_items)
        met = sp.coo_matrix((np.ones(len(self.first)), (self.first, self.second)), shape)
        labels = connected_components(met, directed=False)[1]
        sizes = np.bincount(labels)
        number = np.empty(len(sizes), dtype=np.intp)
        first_item = np.unique(labels, return_index=True)[1]
        number[np.lexsort((first_item, -sizes))] = np.arange(1, len(sizes) + 1)
        return np.asarray(number[labels])

    def centered(self, ratings: Array) -> Array:
        """Less the mean of each component; along the first axis."""
        return np.asarray(ratings - (self._averages @ ratings)[self.components - 1])

    @cached_property
    def _averages(self) -> sp.csr_matrix:
        members = self.components - 1
        shares = (1 / np.bincount(members))[members]
        return sp.csr_matrix((shares, (members, np.arange(self.n_items))))


def _joined(codes: Indices, n_codes: int, values: Array) -> tuple[Indices, int]:
    """Whole numbers below the second result that stand for a code and a value together."""
    distinct = np.unique(values)
    n_values = len(distinct)
    if n_values == 1:
        return codes, n_codes
    if n_codes > LARGEST // n_values:
        known, codes = np.unique(codes, return_inverse=True)
        n_codes = len(known)
    joined = codes * n_values
    if n_values <= FEW:
        for value in distinct[:-1]:
            joined += values > value
    else:
        joined += np.searchsorted(distinct, values)
    return joined, n_codes * n_values


def _counted(codes: Indices, n_codes: int) -> tuple[Indices, Indices, Indices]:
    """One position of each code that is there, how often it is, and its number everywhere."""
    n = len(codes)
    if n_codes <= 4 * n:
        counts = np.bincount(codes, minlength=n_codes)
        position = np.empty(n_codes, dtype=np.intp)
        position[codes] = np.arange(n)
        present = np.flatnonzero(counts)
        return position[present], counts[present], (np.cumsum(counts > 0) - 1)[codes]
    _, position, number, count = np.unique(
        codes, return_index=True, return_inverse=True, return_counts=True
    )
    return position, count, number
