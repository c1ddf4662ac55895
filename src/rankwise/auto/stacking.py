"""Stacking of the members of AutoRanker."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rankwise.arrays import Array, Indices
from rankwise.auto.evaluated_member import EvaluatedMember
from rankwise.auto.metric_weights import STRENGTHS, MetricWeights
from rankwise.auto.smooth_metrics import SmoothMetric, smooth_version
from rankwise.auto.training_data import HoldOut
from rankwise.graphs import ScoreGraph
from rankwise.metrics.by_group import check_scoring, nanmean

N_AVERAGED = 4  # members in the mean
LEAST_FOR_STACK = 200  # items: weights from fewer are noise
STACK_ALPHAS = 10.0 ** np.arange(2, -7, -1)  # relative to the mean square of a column
REPLACEMENT_ERRORS = 3.0  # standard errors by which a member must beat the stack to replace it
BATCH_ENTRIES = 2**23  # held-out scores of stacks that are evaluated at once


def is_worse(scores: Array, rival: Array, sign: float, n_errors: float = 1.0) -> bool:
    """Whether values in units are worse than those of a rival by this number of standard errors."""
    gain = sign * (scores - rival)
    gain = gain[~np.isnan(gain)]
    if len(gain) < 2:
        return False
    standard_error = gain.std(ddof=1) / np.sqrt(len(gain))
    return bool(gain.mean() < -n_errors * standard_error)


@dataclass(frozen=True, eq=False)
class Stack:
    """Weights of the members, and their performance on held-out data.

    Attributes
    ----------
    how : {"stack", "mean", "best"}
        Kind of combination.
    weights : ndarray of shape (n_members,)
        Weights of the scores of the members, each scaled in its group.
    by_unit : ndarray of shape (n_units,)
        The metric in each unit; the weights of a stack are computed without the unit.
    note : str
        Why this kind, if another one was requested.
    """

    how: str
    weights: Array
    by_unit: Array
    note: str = ""


class ProposedWeights(NamedTuple):
    """Weights of the members from the same units, by each of several criteria.

    Attributes
    ----------
    weights : list of ndarray of shape (n_members,)
        Weights from all drawn units; those that count pairs are the first.
    weights_without : list of ndarray of shape (n_units, n_members)
        The same without each unit.
    """

    weights: list[Array]
    weights_without: list[Array]


class UnitSystems(NamedTuple):
    """Normal equations of the stack as sums over units.

    Attributes
    ----------
    grams : ndarray of shape (n_units, n_members, n_members)
        ``Zᵀ L Z`` of each unit.
    moments : ndarray of shape (n_units, n_members)
        ``Zᵀ d`` of each unit.
    pair_weights : ndarray of shape (n_units,)
        W, the weight of the pairs of each unit.
    """

    grams: Array
    moments: Array
    pair_weights: Array

    @property
    def scale(self) -> float:
        """Mean square of a column over pairs; 1 if all are zero."""
        n_members = self.moments.shape[1]
        scale = np.trace(self.grams.sum(axis=0)) / self.pair_weights.sum() / n_members
        if not scale:
            return 1.0
        return float(scale)

    def weights(self, counts: NDArray[Any], alpha: float) -> Array:
        """Weights of the members from units that count several times, shape (n_members,)."""
        total = (counts * self.pair_weights).sum()
        if total == 0:
            total = 1.0
        gram = np.tensordot(counts, self.grams, 1) / total
        moment = counts @ self.moments / total
        return np.asarray(np.linalg.solve(gram + alpha * np.eye(len(gram)), moment))

    def weights_without_units(self, counts: NDArray[Any], alpha: float) -> Array:
        """The same without each unit, shape (n_units, n_members)."""
        grams = counts[:, None, None] * self.grams
        moments = counts[:, None] * self.moments
        pair_weights = counts * self.pair_weights
        rest = pair_weights.sum() - pair_weights
        rest = np.where(rest > 0, rest, np.inf)
        ridge = alpha * np.eye(grams.shape[1])
        gram_without = (grams.sum(axis=0) - grams) / rest[:, None, None] + ridge
        moment_without = (moments.sum(axis=0) - moments) / rest[:, None]
        return np.asarray(np.linalg.solve(gram_without, moment_without[:, :, None])[:, :, 0])


class Stacking:
    """Combines several members: by a stack, the mean of the best, or the best.

    The stack is ``RankRLS(cost="sign")`` on the held-out scores of the members, centered and scaled
    in each group. Its systems are sums over the groups, ``(Σ G_g / Σ W_g + αI) w = Σ t_g / Σ W_g``,
    so that a group is dropped, or drawn several times, by a change of these sums.

    These weights count pairs. If the metric is NDCG, average precision or reciprocal rank, weights
    that maximize a smooth version of it are computed as well (see `MetricWeights`), and the weights
    with the best metric by leave-group-out are used.

    Parameters
    ----------
    members : sequence of EvaluatedMember
        Their held-out scores, and the metric in each unit.
    hold_out : HoldOut
        What was held out, and the metric.
    how : {"stack", "mean", "best"}
        How they are combined; a stack is replaced by what is clearly better on held-out data.
    """

    def __init__(self, members: Sequence[EvaluatedMember], hold_out: HoldOut, how: str) -> None:
        self._hold_out = hold_out
        self._how = how
        self._by_unit = np.stack([member.by_unit for member in members], axis=1)
        self._Z = hold_out.scaled(np.stack([member.scores for member in members], axis=1))
        self.n_units = len(self._by_unit)
        if self._has_stack:
            self._systems = unit_systems(self._Z, hold_out)
            self._alpha = self._select_alpha()
            self._metric_weights = self._fit_metric_weights()

    @property
    def _has_stack(self) -> bool:
        """Whether members are stacked; weights from few items are noise."""
        n_items, n_members = self._Z.shape
        return self._how == "stack" and n_members > 1 and n_items >= LEAST_FOR_STACK

    def combine(self, drawn: NDArray[np.intp] | None = None) -> Stack:
        """Select and weight the members by units, which may be drawn several times; all by default.

        The score of the best of a dozen members is biased upward, so it replaces the stack only if
        it is better by three standard errors of the difference over groups. With fewer than 200
        items the mean of the best members replaces the stack: weights from so few items are noise.
        """
        if drawn is None:
            drawn = np.arange(self.n_units)
        return next(self._combinations([drawn]))

    def out_of_bag(self, n_resamples: int, rng: np.random.Generator) -> Array:
        """Mean metric in each unit, by combinations from bootstrap samples without the unit."""
        total = np.zeros(self.n_units)
        n_values = np.zeros(self.n_units)
        draws = [rng.integers(self.n_units, size=self.n_units) for _ in range(n_resamples)]
        for drawn, combination in zip(draws, self._combinations(draws), strict=True):
            is_out_of_bag = ~np.isnan(combination.by_unit)
            is_out_of_bag[drawn] = False
            total[is_out_of_bag] += combination.by_unit[is_out_of_bag]
            n_values += is_out_of_bag
        return np.where(n_values > 0, total / np.maximum(n_values, 1.0), np.nan)

    def _combinations(self, draws: Sequence[Indices]) -> Iterator[Stack]:
        """The combination for each draw of units; stacks of many draws are evaluated at once."""
        if not self._has_stack:
            for drawn in draws:
                yield self._without_stack(drawn)
            return
        n_columns = len(self._Z) * (1 + len(self._metric_weights))
        n_together = max(1, BATCH_ENTRIES // n_columns)
        for start in range(0, len(draws), n_together):
            batch = draws[start : start + n_together]
            proposals = [self._propose_weights(drawn) for drawn in batch]
            scores = [
                self._scores_by_unit(weights)
                for proposed in proposals
                for weights in proposed.weights_without
            ]
            by_unit = self._hold_out.evaluate(np.stack(scores, axis=1))
            of_draws = np.split(by_unit, len(batch), axis=1)
            for drawn, proposed, values in zip(batch, proposals, of_draws, strict=True):
                stack = self._best_stack(drawn, proposed, values)
                yield self._stack_or_best(stack, drawn)

    def _without_stack(self, drawn: Indices) -> Stack:
        """The best member, or the mean of the best members."""
        n_items, n_members = self._Z.shape
        order = self._best_first(drawn)
        if self._how == "best" or n_members == 1:
            return self._single(order[0])
        mean = self._mean_of(order[:N_AVERAGED])
        if self._how == "mean":
            return mean
        note = (
            "the mean of the best members replaces the stack: "
            f"{n_items} items are too few for its weights"
        )
        return replace(mean, note=note)

    def _best_first(self, drawn: Indices) -> Indices:
        """Numbers of the members, those with the best metric in these units first."""
        mean_gain = self._hold_out.sign * nanmean(self._by_unit[drawn])
        return np.argsort(-np.nan_to_num(mean_gain, nan=-np.inf), kind="stable")

    def _single(self, member: int) -> Stack:
        weights = np.eye(self._Z.shape[1])[member]
        return Stack("best", weights, self._by_unit[:, member])

    def _mean_of(self, members: Indices) -> Stack:
        weights = np.bincount(members, minlength=self._Z.shape[1]) / len(members)
        return Stack("mean", weights, self._hold_out.evaluate(self._Z @ weights))

    def _propose_weights(self, drawn: Indices) -> ProposedWeights:
        """Weights of the stack from these units, by pairs and by the requested metric."""
        counts = np.bincount(drawn, minlength=self.n_units)
        pairwise = self._systems.weights(counts, self._alpha)
        pairwise_without = self._systems.weights_without_units(counts, self._alpha)
        weights = [pairwise]
        weights_without = [pairwise_without]
        for metric_weights in self._metric_weights:
            weights.append(metric_weights.weights(counts, pairwise))
            weights_without.append(metric_weights.weights_without_units(counts, pairwise_without))
        return ProposedWeights(weights, weights_without)

    def _best_stack(self, drawn: Indices, proposed: ProposedWeights, by_unit: Array) -> Stack:
        """The proposed weights with the best metric by leave-group-out, in columns of `by_unit`."""
        mean_gains = self._hold_out.sign * nanmean(by_unit[drawn])
        best = int(np.argmax(np.nan_to_num(mean_gains, nan=-np.inf)))
        return Stack("stack", _with_sum_one(proposed.weights[best]), by_unit[:, best])

    def _stack_or_best(self, stack: Stack, drawn: Indices) -> Stack:
        """The stack, unless it is zero or the best member is clearly better."""
        best = self._single(self._best_first(drawn)[0])
        sign = self._hold_out.sign
        stack_values = stack.by_unit[drawn]
        best_values = best.by_unit[drawn]
        is_replaced = is_worse(stack_values, best_values, sign, REPLACEMENT_ERRORS)
        if stack.weights.any() and not is_replaced:
            return stack
        note = (
            f"the best member replaces the stack: {self._hold_out.metric.name} "
            f"{float(nanmean(best_values)):.4f} against {float(nanmean(stack_values)):.4f} on "
            "held-out data"
        )
        return replace(best, note=note)

    def _select_alpha(self) -> float:
        """The alpha with the smallest share of wrong pairs by leave-group-out.

        The cost is about that share, and it varies less than other metrics.
        """
        alphas = STACK_ALPHAS * self._systems.scale
        counts = np.ones(self.n_units, dtype=np.intp)
        scores = [
            self._scores_by_unit(self._systems.weights_without_units(counts, alpha))
            for alpha in alphas
        ]
        disagreement = check_scoring("disagreement")
        wrong = nanmean(self._hold_out.evaluate(np.stack(scores, axis=1), disagreement))
        return float(alphas[np.nanargmin(wrong)])

    def _fit_metric_weights(self) -> list[MetricWeights]:
        """Weights for the requested metric; none if it has no smooth version.

        The five folds of one list are too few units to choose by.
        """
        graph = self._hold_out.graph
        rank_function = smooth_version(self._hold_out.metric)
        has_groups = graph.has_relevance and graph.n_groups > 1
        if rank_function is None or not has_groups or graph.item_weights is not None:
            return []
        metric = SmoothMetric(self._Z, graph.y, self._hold_out.unit, rank_function)
        if np.isnan(metric.at(np.zeros(self._Z.shape[1])).values).all():
            return []
        counts = np.ones(self.n_units, dtype=np.intp)
        pairwise = self._systems.weights(counts, self._alpha)
        return [MetricWeights.fit(metric, pairwise, strength) for strength in STRENGTHS]

    def _scores_by_unit(self, weights: Array) -> Array:
        """Scores of all items by the weights of their units, of shape (n_units, n_members)."""
        return np.asarray(np.einsum("ij,ij->i", self._Z, weights[self._hold_out.unit]))


def _with_sum_one(weights: Array) -> Array:
    """Weights with Σ|w| = 1; zero weights stay zero."""
    size = np.abs(weights).sum()
    if size == 0:
        return weights
    return np.asarray(weights / size)


def unit_systems(Z: Array, hold_out: HoldOut) -> UnitSystems:
    """``Zᵀ L Z``, ``Zᵀ d`` and W of each unit, for the cost "sign" or explicit preferences."""
    unit = hold_out.unit
    graph = hold_out.graph
    if graph.has_relevance:
        graph = ScoreGraph(graph.y, unit, cost="sign", sample_weight=graph.item_weights)
    order = np.argsort(unit, kind="stable")
    starts = np.flatnonzero(np.diff(unit[order], prepend=-1))
    Z_of_units = np.split(Z[order], starts[1:])
    LZ_of_units = np.split(np.asarray(graph.laplacian(Z))[order], starts[1:])
    grams = [Z_u.T @ LZ_u for Z_u, LZ_u in zip(Z_of_units, LZ_of_units, strict=True)]
    flow = Z[order] * graph.divergence.reshape(-1, 1)[order]
    moments = np.add.reduceat(flow, starts)
    return UnitSystems(np.stack(grams), moments, np.bincount(unit, graph.degrees) / 2)
