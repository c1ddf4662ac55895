"""Differentiable approximations of NDCG, average precision and reciprocal rank.

The rank of an item is replaced by ``1 + Σ_j σ((f_j − f_i) / τ)``, the sum over the other items of
its group, with scores f of standard deviation 1 in the group. A cut-off k multiplies the term of an
item of rank r by ``σ(k + 1/2 − r)``. Qin, Liu, Li: A general approximation framework for direct
optimization of information retrieval measures. Information Retrieval 13, 2010.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from rankwise.arrays import Array, Indices, Mask
from rankwise.metrics import Metric

TEMPERATURE = 0.3  # τ, in standard deviations of the scores in a group
BLOCK_PAIRS = 2**20  # pairs of items whose sigmoids are in memory at once


class RankDerivatives(NamedTuple):
    """Value of each unit, and its derivatives with respect to the ranks.

    Attributes
    ----------
    values : ndarray of shape (n_units,)
        The smooth metric.
    by_rank : ndarray of shape (n_relevant,)
        Derivative with respect to the rank of each relevant item.
    by_hits : ndarray of shape (n_relevant,) or None
        Derivative with respect to the number of relevant items above each relevant item; None if
        the metric does not depend on it.
    """

    values: Array
    by_rank: Array
    by_hits: Array | None = None


class RankFunction(ABC):
    """A metric as a function of the smooth ranks of the relevant items."""

    depends_on_hits = False

    @abstractmethod
    def is_relevant(self, y: Array) -> Mask:
        """Whether the metric depends on the rank of an item."""

    @abstractmethod
    def derivatives(
        self, y: Array, ranks: Array, hits: Array, starts: Indices, n_units: int
    ) -> RankDerivatives:
        """Values and derivatives.

        Parameters
        ----------
        y, ranks, hits : ndarray of shape (n_relevant,)
            Relevance, smooth rank, and smooth number of relevant items above (0 unless
            `depends_on_hits`), of each relevant item; the items of a unit follow each other.
        starts : ndarray of shape (n_units,)
            Position of the first relevant item of each unit.
        n_units : int
            Number of units.
        """


@dataclass(frozen=True)
class CutOff:
    """Weight of a rank: near 1 up to rank k, near 0 below; always 1 if k is None."""

    k: int | None

    def weight(self, ranks: Array) -> Array:
        """Weight of each rank."""
        if self.k is None:
            return np.ones_like(ranks)
        return np.asarray(expit(self.k + 0.5 - ranks))

    def slope(self, ranks: Array) -> Array:
        """Derivative of the weight."""
        if self.k is None:
            return np.zeros_like(ranks)
        weight = self.weight(ranks)
        return -weight * (1.0 - weight)


@dataclass(frozen=True)
class SmoothNDCG(RankFunction):
    """``Σ_i gain_i / log2(1 + rank_i)`` relative to the ideal order."""

    cut_off: CutOff
    has_exponential_gain: bool

    def is_relevant(self, y: Array) -> Mask:
        """Items with a gain."""
        return np.asarray(y > 0)

    def derivatives(
        self, y: Array, ranks: Array, hits: Array, starts: Indices, n_units: int
    ) -> RankDerivatives:
        """Values and derivatives; see `RankFunction`."""
        gains = y
        if self.has_exponential_gain:
            gains = np.exp2(y) - 1.0
        unit = _unit_of_item(starts, len(y))
        share = gains / self._ideal(gains, unit, starts)[unit]
        log_rank = np.log2(1.0 + ranks)
        weight = self.cut_off.weight(ranks)
        values = np.add.reduceat(share * weight / log_rank, starts)
        slope_of_discount = -1.0 / (math.log(2.0) * (1.0 + ranks) * log_rank**2)
        by_rank = share * (self.cut_off.slope(ranks) / log_rank + weight * slope_of_discount)
        return RankDerivatives(values, by_rank)

    def _ideal(self, gains: Array, unit: Indices, starts: Indices) -> Array:
        """Discounted gain of the ideal order of each unit."""
        best_first = np.lexsort((-gains, unit))
        places = np.arange(len(gains)) - starts[unit] + 1
        discount = 1.0 / np.log2(1.0 + places)
        if self.cut_off.k is not None:
            discount[places > self.cut_off.k] = 0.0
        return np.asarray(np.add.reduceat(gains[best_first] * discount, starts))


@dataclass(frozen=True)
class SmoothAveragePrecision(RankFunction):
    """Mean of ``(1 + relevant items above i) / rank_i`` over the relevant items i."""

    depends_on_hits = True

    cut_off: CutOff
    threshold: float | None

    def is_relevant(self, y: Array) -> Mask:
        """Items with ``y >= threshold``; with y > 0 if it is None."""
        return _is_relevant(y, self.threshold)

    def derivatives(
        self, y: Array, ranks: Array, hits: Array, starts: Indices, n_units: int
    ) -> RankDerivatives:
        """Values and derivatives; see `RankFunction`."""
        unit = _unit_of_item(starts, len(y))
        n_relevant = np.bincount(unit, minlength=n_units)[unit]
        weight = self.cut_off.weight(ranks)
        share = weight / (ranks * n_relevant)
        precision = (1.0 + hits) / n_relevant
        values = np.add.reduceat(share * (1.0 + hits), starts)
        by_rank = precision * (self.cut_off.slope(ranks) / ranks - weight / ranks**2)
        return RankDerivatives(values, by_rank, share)


@dataclass(frozen=True)
class SmoothReciprocalRank(RankFunction):
    """Mean of 1 / rank over the relevant items with weights proportional to exp(−rank)."""

    cut_off: CutOff
    threshold: float | None

    def is_relevant(self, y: Array) -> Mask:
        """Items with ``y >= threshold``; with y > 0 if it is None."""
        return _is_relevant(y, self.threshold)

    def derivatives(
        self, y: Array, ranks: Array, hits: Array, starts: Indices, n_units: int
    ) -> RankDerivatives:
        """Values and derivatives; see `RankFunction`."""
        unit = _unit_of_item(starts, len(y))
        first_rank = np.minimum.reduceat(ranks, starts)
        closeness = np.exp(first_rank[unit] - ranks)
        probability = closeness / np.add.reduceat(closeness, starts)[unit]
        weight = self.cut_off.weight(ranks)
        reciprocal = weight / ranks
        values = np.add.reduceat(probability * reciprocal, starts)
        slope = self.cut_off.slope(ranks) / ranks - weight / ranks**2
        by_rank = probability * (slope - (reciprocal - values[unit]))
        return RankDerivatives(values, by_rank)


class SmoothValues(NamedTuple):
    """The smooth metric in each unit, and its gradients.

    Attributes
    ----------
    values : ndarray of shape (n_units,)
        NaN for units without a relevant item.
    gradients : ndarray of shape (n_units, n_columns)
        Gradients with respect to the weights of the columns; 0 where the value is NaN.
    """

    values: Array
    gradients: Array


class SmoothMetric:
    """A smooth metric of ``Z w`` in each unit.

    Parameters
    ----------
    Z : ndarray of shape (n_items, n_columns)
        Columns with mean 0 in each unit.
    y : ndarray of shape (n_items,)
        Relevance.
    unit : ndarray of int of shape (n_items,)
        Number of the unit of each item.
    rank_function : RankFunction
        The metric.
    """

    def __init__(self, Z: Array, y: Array, unit: Indices, rank_function: RankFunction) -> None:
        order = np.argsort(unit, kind="stable")
        sorted_unit = unit[order]
        self._n_units = int(sorted_unit[-1]) + 1
        is_relevant = rank_function.is_relevant(y[order])
        has_relevant = np.bincount(sorted_unit, weights=is_relevant, minlength=self._n_units) > 0
        used = has_relevant[sorted_unit]
        self._units = np.flatnonzero(has_relevant)
        self._blocks = [
            _Block(Z[order][used][rows], y[order][used][rows], codes, rank_function)
            for rows, codes in _split_units(sorted_unit[used], is_relevant[used])
        ]

    def at(self, w: Array) -> SmoothValues:
        """Values and gradients at the weights w."""
        values = np.full(self._n_units, np.nan)
        gradients = np.zeros((self._n_units, len(w)))
        if self._blocks:
            blocks = [block.at(w) for block in self._blocks]
            values[self._units] = np.concatenate([block.values for block in blocks])
            gradients[self._units] = np.concatenate([block.gradients for block in blocks])
        return SmoothValues(values, gradients)


class _Block:
    """Consecutive units with a relevant item, and the pairs of a relevant and another item.

    Arrays with an entry for each pair have single precision, which halves their time.
    """

    def __init__(self, Z: Array, y: Array, unit: Indices, rank_function: RankFunction) -> None:
        self._Z = Z
        self._unit = unit
        self._rank_function = rank_function
        self._sizes = np.bincount(unit)
        self._starts = np.cumsum(self._sizes) - self._sizes
        is_relevant = rank_function.is_relevant(y)
        self._relevant = np.flatnonzero(is_relevant)
        self._y = y[self._relevant]
        unit_of_relevant = unit[self._relevant]
        self._relevant_starts = np.flatnonzero(np.diff(unit_of_relevant, prepend=-1))
        self._n_pairs = self._sizes[unit_of_relevant]
        self._pair_starts = np.cumsum(self._n_pairs) - self._n_pairs
        place_of_first = self._starts[unit_of_relevant] - self._pair_starts
        n_all_pairs = int(self._n_pairs.sum())
        self._paired_item = np.arange(n_all_pairs) + np.repeat(place_of_first, self._n_pairs)
        self._pair_with_itself = self._pair_starts + self._relevant - self._starts[unit_of_relevant]
        self._is_hit = is_relevant[self._paired_item]

    def at(self, w: Array) -> SmoothValues:
        """Values and gradients at the weights w."""
        scores = self._Z @ w
        mean_square = np.add.reduceat(scores * scores, self._starts) / self._sizes
        deviation = np.sqrt(mean_square)
        deviation[deviation == 0.0] = 1.0
        scaled = scores / deviation[self._unit]

        above = self._probability_above(scaled)
        ranks = 1.0 + self._sum_of_pairs(above)
        hits = np.zeros_like(ranks)
        if self._rank_function.depends_on_hits:
            hits = self._sum_of_pairs(above * self._is_hit)
        result = self._rank_function.derivatives(
            self._y, ranks, hits, self._relevant_starts, len(self._sizes)
        )

        by_pair = self._per_pair(result.by_rank)
        if result.by_hits is not None:
            by_pair += self._per_pair(result.by_hits) * self._is_hit
        flow = by_pair * above * (1.0 - above)
        by_score: Array = np.bincount(self._paired_item, flow, len(scores)).astype(
            np.float64, copy=False
        )
        by_score[self._relevant] -= self._sum_of_pairs(flow)
        gradients = self._to_weights(by_score / TEMPERATURE, scaled, deviation)
        return SmoothValues(result.values, gradients)

    def _probability_above(self, scaled: Array) -> NDArray[np.float32]:
        """σ((f_j − f_i) / τ) for each pair of a relevant item i and an item j; 0 for j = i."""
        half = (scaled / (2.0 * TEMPERATURE)).astype(np.float32)
        difference = half[self._paired_item] - self._per_pair(half[self._relevant])
        above: NDArray[np.float32] = np.tanh(difference)  # σ(x) = (1 + tanh(x / 2)) / 2
        above += 1.0
        above *= 0.5
        above[self._pair_with_itself] = 0.0
        return above

    def _per_pair(self, values: NDArray[np.floating]) -> NDArray[np.float32]:
        """Values of the relevant items, for each of their pairs."""
        return np.asarray(np.repeat(values.astype(np.float32), self._n_pairs))

    def _sum_of_pairs(self, values: NDArray[np.float32]) -> Array:
        """Sum over the pairs of each relevant item."""
        return np.add.reduceat(values, self._pair_starts, dtype=np.float64)

    def _to_weights(self, by_score: Array, scaled: Array, deviation: Array) -> Array:
        """Gradients with respect to the weights, from those with respect to the scaled scores."""
        direct = np.add.reduceat(by_score[:, None] * self._Z, self._starts)
        by_deviation = np.add.reduceat(by_score * scaled, self._starts) / self._sizes
        slope_of_deviation = np.add.reduceat(scaled[:, None] * self._Z, self._starts)
        gradients = direct - by_deviation[:, None] * slope_of_deviation
        return np.asarray(gradients / deviation[:, None])


def smooth_version(metric: Metric) -> RankFunction | None:
    """The smooth version of a metric; None if there is none."""
    name = metric.name.partition("@")[0].partition("(")[0]
    options = dict(metric.options)
    cut_off = CutOff(options.pop("k", None))
    options.pop("tied_scores", None)
    if name == "ndcg":
        gain = options.pop("gain", "exponential")
        function: RankFunction = SmoothNDCG(cut_off, gain == "exponential")
    elif name == "map":
        function = SmoothAveragePrecision(cut_off, options.pop("relevant", None))
    elif name == "mrr":
        function = SmoothReciprocalRank(cut_off, options.pop("relevant", None))
    else:
        return None
    if options:
        return None
    return function


def _is_relevant(y: Array, threshold: float | None) -> Mask:
    if threshold is None:
        return np.asarray(y > 0)
    return np.asarray(y >= threshold)


def _unit_of_item(starts: Indices, n_items: int) -> Indices:
    """Number of the unit of each item, from the positions of the first items."""
    is_start = np.zeros(n_items, dtype=np.intp)
    is_start[starts] = 1
    return np.cumsum(is_start) - 1


def _split_units(unit: Indices, is_relevant: Mask) -> list[tuple[slice, Indices]]:
    """Rows and unit numbers (from 0) of runs of whole units with about `BLOCK_PAIRS` pairs."""
    if not len(unit):
        return []
    starts = np.flatnonzero(np.diff(unit, prepend=-1))
    ends = np.append(starts[1:], len(unit))
    n_pairs = np.add.reduceat(is_relevant.astype(np.intp), starts) * (ends - starts)
    block_of_unit = np.cumsum(n_pairs) // BLOCK_PAIRS
    runs = []
    for block in np.unique(block_of_unit):
        units = np.flatnonzero(block_of_unit == block)
        rows = slice(int(starts[units[0]]), int(ends[units[-1]]))
        is_next = np.diff(unit[rows], prepend=unit[rows][0]) > 0
        codes = np.cumsum(is_next, dtype=np.intp)
        runs.append((rows, codes))
    return runs
