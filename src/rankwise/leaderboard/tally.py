"""Comparisons counted: which pairs of items there are, and what was said about each."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from scipy.sparse.csgraph import connected_components

from rankwise.arrays import Array, Indices
from rankwise.graphs import PairGraph

__all__ = ["Tally"]

LARGEST = 2**62  # of the whole numbers that encode a comparison
FEW = 8  # distinct values that are faster to count than to search


@dataclass(frozen=True, eq=False)
class Tally:
    """Comparisons of the same two items, magnitude and weight are one outcome with a count.

    Thousands of battles between tens of items have few outcomes. What follows then costs
    little compared with reading the comparisons once.

    Attributes
    ----------
    n_items : int
        Number of items.
    first, second : ndarray of shape (n_distinct,)
        The two items of each distinct pair, ``first < second``, in this order.
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
    """

    n_items: int
    first: Indices
    second: Indices
    pair: Indices
    target: Array
    weight: Array
    count: Indices
    outcome: Indices

    @classmethod
    def of(cls, graph: PairGraph) -> Tally:
        """Count the edges of a graph."""
        n = graph.n_items
        first = np.minimum(graph.winner, graph.loser)
        second = np.maximum(graph.winner, graph.loser)
        target = graph.edge_target.copy()
        np.negative(target, out=target, where=graph.winner > graph.loser)
        target += 0.0  # −0 is 0
        codes, n_codes = _joined(first * n + second, n * n, target)
        codes, n_codes = _joined(codes, n_codes, graph.edge_weight)
        chosen, count, outcome = _counted(codes, n_codes)
        ends = first[chosen] * n + second[chosen]
        starts = np.diff(ends, prepend=-1) > 0
        return cls(
            n,
            ends[starts] // n,
            ends[starts] % n,
            np.cumsum(starts) - 1,
            target[chosen],
            graph.edge_weight[chosen],
            count,
            outcome,
        )

    @property
    def n_distinct(self) -> int:
        """Number of distinct pairs of items."""
        return len(self.first)

    @property
    def n_comparisons(self) -> int:
        """Number of comparisons."""
        return len(self.outcome)

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
        return self.pair_sums(self.count)

    def pair_sums(self, count: NDArray[np.integer]) -> tuple[Array, Array]:
        """Σ ω and Σ ω δ of each distinct pair if the outcomes have these counts."""
        weight = count * self.weight
        return self.by_pair(weight), self.by_pair(weight * self.target)

    def by_pair(self, values: Array) -> Array:
        """Sums over the outcomes of each distinct pair."""
        return np.asarray(np.bincount(self.pair, values, minlength=self.n_distinct), np.float64)

    def differences(self, ratings: Array) -> Array:
        """``B r``: first less second item of each distinct pair, along the first axis."""
        return np.asarray(ratings[self.first] - ratings[self.second])

    @cached_property
    def incidence(self) -> sp.csr_matrix:
        """B of shape (n_distinct, n_items): a row is e_first − e_second, so L = Bᵀ diag(w) B."""
        n = self.n_distinct
        columns = np.column_stack([self.first, self.second]).ravel()
        signs = np.tile([1.0, -1.0], n)
        shape = (n, self.n_items)
        return sp.csr_matrix((signs, columns, np.arange(0, 2 * n + 1, 2)), shape=shape)

    def divergence(self, flows: Array) -> Array:
        """``Bᵀ f``: what goes out of each item."""
        return self._by_item(self.first, flows) - self._by_item(self.second, flows)

    def degrees(self, weights: Array) -> Array:
        """The diagonal of L."""
        return self._by_item(self.first, weights) + self._by_item(self.second, weights)

    def _by_item(self, ends: Indices, values: Array) -> Array:
        return np.asarray(np.bincount(ends, values, minlength=self.n_items), np.float64)

    def adjacency(self, weights: Array) -> sp.csr_matrix:
        """Symmetric S with the weights of the pairs, so that L = diag(degrees) − S."""
        pattern = self._pattern
        shape = (self.n_items, self.n_items)
        return sp.csr_matrix((weights[pattern.data], pattern.indices, pattern.indptr), shape=shape)

    @cached_property
    def components(self) -> Indices:
        """The component of each item, numbered from 1 by size."""
        S = self._pattern.copy()
        S.data[:] = 1
        labels = connected_components(S, connection="strong")[1]  # S is symmetric: no transpose
        sizes = np.bincount(labels)
        number = np.empty(len(sizes), dtype=np.intp)
        number[np.lexsort((_first_item(labels), -sizes))] = np.arange(1, len(sizes) + 1)
        return np.asarray(number[labels])

    @cached_property
    def _pattern(self) -> sp.csr_matrix:
        """The distinct pair of each entry of S."""
        starts = np.r_[0, np.cumsum(np.bincount(self.first, minlength=self.n_items))]
        numbers = np.arange(1, self.n_distinct + 1, dtype=np.int32)
        shape = (self.n_items, self.n_items)
        upper = sp.csr_matrix((numbers, self.second, starts), shape=shape)
        both = (upper + upper.T.tocsr()).tocsr()
        both.data -= 1
        return both


def _first_item(labels: Indices) -> Indices:
    """The first item of each component."""
    first = np.empty(labels.max() + 1, dtype=np.intp)
    first[labels[::-1]] = np.arange(len(labels))[::-1]
    return first


def _joined(codes: Indices, n_codes: int, values: Array) -> tuple[Indices, int]:
    """Whole numbers below the second result that stand for a code and a value together."""
    distinct = np.unique(values)
    n_values = len(distinct)
    if n_values == 1:
        return codes, n_codes
    if n_codes > LARGEST // n_values:
        found, codes = np.unique(codes, return_inverse=True)
        n_codes = len(found)
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
    order = _order(codes, n_codes)
    starts = np.flatnonzero(np.diff(codes[order], prepend=-1))
    count = np.diff(starts, append=n)
    number = np.empty(n, dtype=np.intp)
    number[order] = np.repeat(np.arange(len(count)), count)
    return order[starts], count, number


def _order(codes: Indices, n_codes: int) -> Indices:
    """Positions by rising code; code and position in one number sort faster than argsort."""
    bits = len(codes).bit_length()
    if n_codes > LARGEST >> bits:
        return np.argsort(codes)
    packed = (codes << bits) | np.arange(len(codes))
    packed.sort()
    return np.asarray(packed & ((1 << bits) - 1))
