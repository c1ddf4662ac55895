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
    by_n_relevant_above : ndarray of shape (n_relevant,) or None
        Derivative with respect to the number of relevant items above each relevant item; None if
        the metric does not depend on it.
    """

    values: Array
    by_rank: Array
    by_n_relevant_above: Array | None = None


class RankFunction(ABC):
    """A metric as a function of the smooth ranks of the relevant items."""

    depends_on_n_relevant_above = False

    @abstractmethod
    def is_relevant(self, y: Array) -> Mask:
        """Whether the metric depends on the rank of an item."""

    @abstractmethod
    def values_and_derivatives(
        self, y: Array, ranks: Array, n_relevant_above: Array, unit_starts: Indices, n_units: int
    ) -> RankDerivatives:
        """Values and derivatives.

        Parameters
        ----------
        y, ranks, n_relevant_above : ndarray of shape (n_relevant,)
            Relevance, smooth rank, and smooth number of relevant items above (0 unless
            `depends_on_n_relevant_above`), of each relevant item; the items of a unit follow each
            other.
        unit_starts : ndarray of shape (n_units,)
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
        return np.asarray(expit(self.k + 0.5 - ranks))  # falls from 1 to 0 between k and k + 1

    def derivative(self, ranks: Array) -> Array:
        """Derivative of the weight."""
        if self.k is None:
            return np.zeros_like(ranks)
        weight = self.weight(ranks)
        return -weight * (1.0 - weight)  # of a sigmoid


@dataclass(frozen=True)
class SmoothNDCG(RankFunction):
    """``Σ_i gain_i / log2(1 + rank_i)`` relative to the ideal order."""

    cut_off: CutOff
    has_exponential_gain: bool

    def is_relevant(self, y: Array) -> Mask:
        """Items with a gain."""
        return np.asarray(y > 0)

    def values_and_derivatives(
        self, y: Array, ranks: Array, n_relevant_above: Array, unit_starts: Indices, n_units: int
    ) -> RankDerivatives:
        """Values and derivatives; see `RankFunction`."""
        gains = y
        if self.has_exponential_gain:
            gains = np.exp2(y) - 1.0
        unit_of_item = _units_from_starts(unit_starts, len(y))
        ideal_gain = self._ideal_gain(gains, unit_of_item, unit_starts)
        share_of_ideal = gains / ideal_gain[unit_of_item]
        discount = 1.0 / np.log2(1.0 + ranks)
        weight = self.cut_off.weight(ranks)
        values = np.add.reduceat(share_of_ideal * weight * discount, unit_starts)

        # product rule: derivative of weight times discount
        derivative_of_discount = -(discount**2) / (math.log(2.0) * (1.0 + ranks))
        derivative = self.cut_off.derivative(ranks) * discount + weight * derivative_of_discount
        return RankDerivatives(values, by_rank=share_of_ideal * derivative)

    def _ideal_gain(self, gains: Array, unit_of_item: Indices, unit_starts: Indices) -> Array:
        """Discounted gain of the ideal order of each unit."""
        largest_gain_first = np.lexsort((-gains, unit_of_item))  # in each unit
        ideal_ranks = np.arange(len(gains)) - unit_starts[unit_of_item] + 1
        discount = 1.0 / np.log2(1.0 + ideal_ranks)
        if self.cut_off.k is not None:
            discount[ideal_ranks > self.cut_off.k] = 0.0
        return np.asarray(np.add.reduceat(gains[largest_gain_first] * discount, unit_starts))


@dataclass(frozen=True)
class SmoothAveragePrecision(RankFunction):
    """Mean of ``(1 + relevant items above i) / rank_i`` over the relevant items i."""

    depends_on_n_relevant_above = True

    cut_off: CutOff
    threshold: float | None

    def is_relevant(self, y: Array) -> Mask:
        """Items with ``y >= threshold``; with y > 0 if it is None."""
        return _is_relevant(y, self.threshold)

    def values_and_derivatives(
        self, y: Array, ranks: Array, n_relevant_above: Array, unit_starts: Indices, n_units: int
    ) -> RankDerivatives:
        """Values and derivatives; see `RankFunction`."""
        unit_of_item = _units_from_starts(unit_starts, len(y))
        n_relevant_per_unit = np.bincount(unit_of_item, minlength=n_units)
        n_relevant = n_relevant_per_unit[unit_of_item]
        weight = self.cut_off.weight(ranks)
        n_relevant_so_far = 1.0 + n_relevant_above  # the item itself, and those above it
        # average precision: mean of n_relevant_so_far / rank over the relevant items
        derivative_by_n_relevant = weight / (ranks * n_relevant)
        values = np.add.reduceat(derivative_by_n_relevant * n_relevant_so_far, unit_starts)

        # derivative of weight / rank
        derivative = self.cut_off.derivative(ranks) / ranks - weight / ranks**2
        derivative_by_rank = n_relevant_so_far / n_relevant * derivative
        return RankDerivatives(values, derivative_by_rank, derivative_by_n_relevant)


@dataclass(frozen=True)
class SmoothReciprocalRank(RankFunction):
    """Mean of 1 / rank over the relevant items with weights proportional to exp(−rank)."""

    cut_off: CutOff
    threshold: float | None

    def is_relevant(self, y: Array) -> Mask:
        """Items with ``y >= threshold``; with y > 0 if it is None."""
        return _is_relevant(y, self.threshold)

    def values_and_derivatives(
        self, y: Array, ranks: Array, n_relevant_above: Array, unit_starts: Indices, n_units: int
    ) -> RankDerivatives:
        """Values and derivatives; see `RankFunction`."""
        unit_of_item = _units_from_starts(unit_starts, len(y))

        # softmax of −rank: the probability that the item is the first relevant one
        first_rank = np.minimum.reduceat(ranks, unit_starts)
        exponential = np.exp(first_rank[unit_of_item] - ranks)
        sum_of_exponentials = np.add.reduceat(exponential, unit_starts)
        probability = exponential / sum_of_exponentials[unit_of_item]

        weight = self.cut_off.weight(ranks)
        reciprocal_rank = weight / ranks
        values = np.add.reduceat(probability * reciprocal_rank, unit_starts)
        # product rule for p(rank) · reciprocal(rank), where a larger rank of one item raises the
        # probabilities p of the others: ∂ value / ∂ rank = p (reciprocal' + value − reciprocal)
        derivative_of_reciprocal = self.cut_off.derivative(ranks) / ranks - weight / ranks**2
        derivative_of_softmax = values[unit_of_item] - reciprocal_rank
        return RankDerivatives(
            values, probability * (derivative_of_reciprocal + derivative_of_softmax)
        )


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
    unit_of_item : ndarray of int of shape (n_items,)
        Number of the unit of each item.
    rank_function : RankFunction
        The metric.
    """

    def __init__(
        self, Z: Array, y: Array, unit_of_item: Indices, rank_function: RankFunction
    ) -> None:
        # Z: scores of the items by each member, (n_items, n_members); sort all by unit
        items_by_unit = np.argsort(unit_of_item, kind="stable")
        sorted_unit = unit_of_item[items_by_unit]
        self._n_units = int(sorted_unit[-1]) + 1
        is_relevant = rank_function.is_relevant(y[items_by_unit])
        n_relevant = np.bincount(sorted_unit, weights=is_relevant, minlength=self._n_units)

        # units without a relevant item have no value
        self._valued_units = np.flatnonzero(n_relevant > 0)
        has_value = (n_relevant > 0)[sorted_unit]
        Z_with_value = Z[items_by_unit][has_value]
        y_with_value = y[items_by_unit][has_value]
        # blocks of whole units, so that the pairs of a block fit in memory
        runs = _split_units(sorted_unit[has_value], is_relevant[has_value])
        self._blocks = [
            _Block(Z_with_value[run.rows], y_with_value[run.rows], run.unit_of_item, rank_function)
            for run in runs
        ]

    def evaluate_at(self, weights: Array) -> SmoothValues:
        """Values and gradients at the weights of the columns."""
        values = np.full(self._n_units, np.nan)
        gradients = np.zeros((self._n_units, len(weights)))
        if self._blocks:
            blocks = [block.evaluate_at(weights) for block in self._blocks]
            values[self._valued_units] = np.concatenate([block.values for block in blocks])
            gradients[self._valued_units] = np.concatenate([block.gradients for block in blocks])
        return SmoothValues(values, gradients)


class _Block:
    """Consecutive units with a relevant item, and the pairs of a relevant and another item.

    Each relevant item is paired with all items of its unit, itself included. Arrays with an entry
    for each pair have single precision, which halves their time.
    """

    def __init__(
        self, Z: Array, y: Array, unit_of_item: Indices, rank_function: RankFunction
    ) -> None:
        self._Z = Z
        self._unit_of_item = unit_of_item
        self._rank_function = rank_function
        self._unit_sizes = np.bincount(unit_of_item)
        self._unit_starts = np.cumsum(self._unit_sizes) - self._unit_sizes

        is_relevant = rank_function.is_relevant(y)
        # Z: scores of the items by each member. Ranks are computed for the relevant items only.
        self._relevant_items = np.flatnonzero(is_relevant)
        self._relevant_y = y[self._relevant_items]
        unit_of_relevant = unit_of_item[self._relevant_items]
        self._relevant_starts = np.flatnonzero(np.diff(unit_of_relevant, prepend=-1))

        # Each relevant item is paired with all items of its unit, itself included. Its pairs follow
        # each other, in the order of the items.
        self._n_pairs = self._unit_sizes[unit_of_relevant]
        self._pair_starts = np.cumsum(self._n_pairs) - self._n_pairs
        every_pair = np.arange(int(self._n_pairs.sum()))
        position_in_unit = every_pair - np.repeat(self._pair_starts, self._n_pairs)
        first_item_of_unit = self._unit_starts[unit_of_relevant]
        self._paired_item = np.repeat(first_item_of_unit, self._n_pairs) + position_in_unit
        self._is_paired_item_relevant = is_relevant[self._paired_item]
        position_of_relevant = self._relevant_items - first_item_of_unit
        self._pair_with_itself = self._pair_starts + position_of_relevant

    def evaluate_at(self, weights: Array) -> SmoothValues:
        """Values and gradients at the weights of the columns."""
        # scores with standard deviation 1 in each unit; the columns of Z have mean 0 there
        scores = self._Z @ weights
        mean_square = np.add.reduceat(scores * scores, self._unit_starts) / self._unit_sizes
        deviation = np.sqrt(mean_square)
        deviation[deviation == 0.0] = 1.0
        scaled = scores / deviation[self._unit_of_item]

        # smooth ranks, and the smooth number of relevant items above
        probability_above = self._probability_above(scaled)
        ranks = 1.0 + self._sum_of_pairs(probability_above)
        n_relevant_above = np.zeros_like(ranks)
        if self._rank_function.depends_on_n_relevant_above:
            n_relevant_above = self._sum_of_pairs(probability_above * self._is_paired_item_relevant)
        result = self._rank_function.values_and_derivatives(
            self._relevant_y, ranks, n_relevant_above, self._relevant_starts, len(self._unit_sizes)
        )

        # derivatives of the metric by the chain rule: by_x is that with respect to x
        by_probability = self._per_pair(result.by_rank)
        if result.by_n_relevant_above is not None:
            by_probability += (
                self._per_pair(result.by_n_relevant_above) * self._is_paired_item_relevant
            )
        # a probability is σ((paired score − relevant score) / temperature), and σ' = σ (1 − σ)
        by_difference = by_probability * probability_above * (1.0 - probability_above)
        by_score: Array = np.bincount(self._paired_item, by_difference, len(scores)).astype(
            np.float64, copy=False
        )
        by_score[self._relevant_items] -= self._sum_of_pairs(by_difference)
        by_scaled = by_score / TEMPERATURE
        gradients = self._gradients_by_weights(by_scaled, scaled, deviation)
        return SmoothValues(result.values, gradients)

    def _probability_above(self, scaled: Array) -> NDArray[np.float32]:
        """σ((f_j − f_i) / τ) for each pair of a relevant item i and an item j; 0 for j = i."""
        # σ(difference of scores / temperature) of each pair of an item and a relevant item
        half = (scaled / (2.0 * TEMPERATURE)).astype(np.float32)
        half_difference = half[self._paired_item] - self._per_pair(half[self._relevant_items])
        probability: NDArray[np.float32] = np.tanh(half_difference)
        probability += 1.0  # in place: σ(x) = (1 + tanh(x / 2)) / 2
        probability *= 0.5
        probability[self._pair_with_itself] = 0.0  # no item is above itself
        return probability

    def _per_pair(self, values: NDArray[np.floating]) -> NDArray[np.float32]:
        """Values of the relevant items, for each of their pairs."""
        # a value of each relevant item, repeated for each of its pairs
        return np.asarray(np.repeat(values.astype(np.float32), self._n_pairs))

    def _sum_of_pairs(self, values: NDArray[np.float32]) -> Array:
        """Sum over the pairs of each relevant item."""
        return np.add.reduceat(values, self._pair_starts, dtype=np.float64)

    def _gradients_by_weights(self, by_scaled: Array, scaled: Array, deviation: Array) -> Array:
        """Gradient of each unit with respect to the weights, by the chain rule.

        Scaled scores are ``Z w / deviation``, where the deviation of a unit depends on w, too.

        Parameters
        ----------
        by_scaled : ndarray of shape (n_items,)
            Derivatives with respect to the scaled scores.
        scaled : ndarray of shape (n_items,)
            Scaled scores.
        deviation : ndarray of shape (n_units,)
            Standard deviation of the scores of each unit.
        """
        # scaled = Z w / σ with σ² = mean of (Z w)² in a unit of n items, so that the gradient of σ
        # is Σ scaled Z / n. By the quotient rule, with the derivatives d by the scaled scores,
        #     gradient = (Σ d Z − (Σ d scaled) (Σ scaled Z) / n) / σ
        sum_of_d_Z = np.add.reduceat(by_scaled[:, None] * self._Z, self._unit_starts)
        mean_of_d_scaled = np.add.reduceat(by_scaled * scaled, self._unit_starts) / self._unit_sizes
        sum_of_scaled_Z = np.add.reduceat(scaled[:, None] * self._Z, self._unit_starts)
        gradients = sum_of_d_Z - mean_of_d_scaled[:, None] * sum_of_scaled_Z
        return np.asarray(gradients / deviation[:, None])


def smooth_version(metric: Metric) -> RankFunction | None:
    """The smooth version of a metric; None if there is none."""
    name_without_options = metric.name.partition("@")[0].partition("(")[0]
    options = dict(metric.options)
    cut_off = CutOff(options.pop("k", None))
    options.pop("tied_scores", None)  # smooth ranks have no ties
    rank_function: RankFunction
    if name_without_options == "ndcg":
        has_exponential_gain = options.pop("gain", "exponential") == "exponential"
        rank_function = SmoothNDCG(cut_off, has_exponential_gain)
    elif name_without_options == "map":
        rank_function = SmoothAveragePrecision(cut_off, options.pop("relevant", None))
    elif name_without_options == "mrr":
        rank_function = SmoothReciprocalRank(cut_off, options.pop("relevant", None))
    else:
        return None
    if options:  # some that the smooth version does not have
        return None
    return rank_function


def _is_relevant(y: Array, threshold: float | None) -> Mask:
    if threshold is None:
        return np.asarray(y > 0)
    return np.asarray(y >= threshold)


def _units_from_starts(unit_starts: Indices, n_items: int) -> Indices:
    """Number of the unit of each item, from the positions of the first items."""
    is_first_of_unit = np.zeros(n_items, dtype=np.intp)
    is_first_of_unit[unit_starts] = 1
    return np.cumsum(is_first_of_unit) - 1


class _RunOfUnits(NamedTuple):
    """Consecutive units whose pairs are computed together.

    Attributes
    ----------
    rows : slice
        Their items.
    unit_of_item : ndarray of int
        Number of the unit of each of these items, from 0 on.
    """

    rows: slice
    unit_of_item: Indices


def _split_units(unit_of_item: Indices, is_relevant: Mask) -> list[_RunOfUnits]:
    """Runs of whole units with about `BLOCK_PAIRS` pairs; the items are sorted by unit."""
    if not len(unit_of_item):
        return []
    unit_starts = np.flatnonzero(np.diff(unit_of_item, prepend=-1))
    ends = np.append(unit_starts[1:], len(unit_of_item))
    n_relevant = np.add.reduceat(is_relevant.astype(np.intp), unit_starts)
    n_pairs = n_relevant * (ends - unit_starts)
    run_of_unit = np.cumsum(n_pairs) // BLOCK_PAIRS  # about BLOCK_PAIRS pairs in each run
    runs = []
    for run in np.unique(run_of_unit):
        units = np.flatnonzero(run_of_unit == run)
        rows = slice(int(unit_starts[units[0]]), int(ends[units[-1]]))
        starts_in_run = unit_starts[units] - rows.start
        n_rows = rows.stop - rows.start
        runs.append(_RunOfUnits(rows, _units_from_starts(starts_in_run, n_rows)))
    return runs
