"""Stacking of the members of AutoRanker."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rankwise.arrays import Array, Indices
from rankwise.auto.evaluated_member import EvaluatedMember
from rankwise.auto.metric_weights import STRENGTHS, MetricWeights
from rankwise.auto.smooth_metrics import SmoothMetric, smooth_version
from rankwise.auto.training_data import HoldOut
from rankwise.graphs import ScoreGraph
from rankwise.metrics.by_group import check_scoring, nanmean_over_units

N_AVERAGED = 4  # members in the mean
LEAST_FOR_STACK = 200  # items: weights from fewer are noise
STACK_ALPHAS = 10.0 ** np.arange(2, -7, -1)  # relative to the mean square of a column
REPLACEMENT_ERRORS = 3.0  # standard errors by which a member must beat the stack to replace it
BATCH_ENTRIES = 2**23  # numbers of the draws that are evaluated at once
SYSTEM_COPIES = 5  # of the systems without each unit, in memory at once


def is_worse(metric: Array, metric_of_rival: Array, sign: float, n_errors: float = 1.0) -> bool:
    """Whether the metric in units is worse than that of a rival, by a number of standard errors.

    Parameters
    ----------
    metric, metric_of_rival : ndarray of shape (n_units,)
        Values in each unit, NaN where the metric is undefined.
    sign : float
        1 if larger values are better, else −1.
    n_errors : float, default=1.0
        Number of standard errors of the mean difference.
    """
    # worse: the mean gain is below zero by more than n_errors standard errors
    gain = sign * (metric - metric_of_rival)
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
    kind : {"stack", "mean", "best"}
        Kind of combination.
    weights : ndarray of shape (n_members,)
        Weights of the scores of the members, each scaled in its group.
    metric_by_unit : ndarray of shape (n_units,)
        The metric in each unit; the weights of a stack are computed without the unit.
    note : str
        Reason for this kind, if another one was requested.
    """

    kind: str
    weights: Array
    metric_by_unit: Array
    note: str = ""


class ProposedWeights(NamedTuple):
    """Weights of the members for several draws of units, by each of several criteria.

    Attributes
    ----------
    weights : ndarray of shape (n_draws, n_criteria, n_members)
        Weights from all drawn units; weights that count pairs come first.
    weights_without_unit : ndarray of shape (n_draws, n_criteria, n_units, n_members)
        The same without each unit.
    """

    weights: Array
    weights_without_unit: Array


class UnitNormalEquations(NamedTuple):
    """Normal equations of the stack as sums over units.

    Attributes
    ----------
    grams : ndarray of shape (n_units, n_members, n_members)
        ``Zᵀ L Z`` of each unit.
    right_sides : ndarray of shape (n_units, n_members)
        ``Zᵀ d`` of each unit.
    pair_weights : ndarray of shape (n_units,)
        W, the weight of the pairs of each unit.
    """

    grams: Array
    right_sides: Array
    pair_weights: Array

    @property
    def mean_square(self) -> float:
        """Mean square of a column over pairs; 1 if all are zero."""
        n_members = self.right_sides.shape[1]
        sum_of_squares = np.trace(self.grams.sum(axis=0))
        mean_square = sum_of_squares / self.pair_weights.sum() / n_members
        if not mean_square:  # all columns are zero
            return 1.0
        return float(mean_square)

    def member_weights(self, unit_counts: NDArray[Any], alpha: float) -> Array:
        """Weights of the members from units that count several times.

        Parameters
        ----------
        unit_counts : ndarray of shape (n_draws, n_units)
            How often each unit counts.
        alpha : float
            Regularization.

        Returns
        -------
        ndarray of shape (n_draws, n_members)
            Weights for each draw.
        """
        # normal equations of each draw: means over pairs, from sums over the drawn units
        total_weight = unit_counts @ self.pair_weights
        total_weight = np.where(total_weight > 0, total_weight, 1.0)[:, None]  # 1: means of 0
        sum_of_grams = np.tensordot(unit_counts, self.grams, axes=1)
        mean_gram = sum_of_grams / total_weight[:, :, None]
        mean_right_side = unit_counts @ self.right_sides / total_weight
        return _solve_ridge(mean_gram, mean_right_side, alpha)

    def weights_without_each_unit(self, unit_counts: NDArray[Any], alpha: float) -> Array:
        """The same without each unit, shape (n_draws, n_units, n_members)."""
        # each unit as often as it was drawn, (n_draws, n_units, …)
        grams = unit_counts[:, :, None, None] * self.grams
        right_sides = unit_counts[:, :, None] * self.right_sides
        pair_weights = unit_counts * self.pair_weights

        # normal equations without each unit: means over the other units
        gram_without = grams.sum(axis=1, keepdims=True) - grams
        right_side_without = right_sides.sum(axis=1, keepdims=True) - right_sides
        weight_without = pair_weights.sum(axis=1, keepdims=True) - pair_weights
        # inf: means of 0 if no pairs are left
        weight_without = np.where(weight_without > 0, weight_without, np.inf)[:, :, None]
        mean_gram = gram_without / weight_without[:, :, :, None]
        mean_right_side = right_side_without / weight_without
        return _solve_ridge(mean_gram, mean_right_side, alpha)


def _solve_ridge(gram: Array, right_side: Array, alpha: float) -> Array:
    """``(G + αI)⁻¹ r`` for stacks of G of shape (…, p, p) and r of shape (…, p)."""
    # solve (gram + αI) weights = right_side for many systems at once
    regularized_gram = gram + alpha * np.eye(gram.shape[-1])
    solutions = np.linalg.solve(regularized_gram, right_side[..., None])
    return np.asarray(solutions[..., 0])


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
    kind : {"stack", "mean", "best"}
        How members are combined; a stack is replaced by the best member if that is clearly better
        on held-out data.
    """

    def __init__(self, members: Sequence[EvaluatedMember], hold_out: HoldOut, kind: str) -> None:
        held_out_scores = np.stack([member.scores for member in members], axis=1)
        self._hold_out = hold_out
        self._requested_kind = kind
        self._metric_of_members = np.stack([member.metric_by_unit for member in members], axis=1)
        self._scaled_scores = hold_out.scale_in_units(held_out_scores)
        self.n_units = len(self._metric_of_members)
        if self._has_stack:
            self._normal_equations = unit_normal_equations(self._scaled_scores, hold_out)
            self._alpha = self._select_alpha()
            self._metric_weights = self._fit_metric_weights()

    @property
    def _has_stack(self) -> bool:
        """Whether members are stacked, which requires enough items."""
        n_items, n_members = self._scaled_scores.shape
        return self._requested_kind == "stack" and n_members > 1 and n_items >= LEAST_FOR_STACK

    def combine(self, drawn: NDArray[np.intp] | None = None) -> Stack:
        """Select and weight the members by units, which may be drawn several times; all by default.

        The score of the best of a dozen members is biased upward, so it replaces the stack only if
        it is better by three standard errors of the difference over groups. With fewer than 200
        items the mean of the best members replaces the stack: weights from so few items are noise.
        """
        if drawn is None:
            drawn = np.arange(self.n_units)
        (combination_of_draw,) = self._combinations([drawn])
        return combination_of_draw

    def out_of_bag(self, n_resamples: int, rng: np.random.Generator) -> Array:
        """Mean metric in each unit, by combinations from bootstrap samples without the unit."""
        sum_of_metric = np.zeros(self.n_units)
        n_evaluated = np.zeros(self.n_units)
        # bootstrap samples of units: a unit that is not drawn evaluates the weights of the others
        draws = [rng.integers(self.n_units, size=self.n_units) for _ in range(n_resamples)]
        for drawn, combination in zip(draws, self._combinations(draws), strict=True):
            is_out_of_bag = ~np.isnan(combination.metric_by_unit)
            is_out_of_bag[drawn] = False
            sum_of_metric[is_out_of_bag] += combination.metric_by_unit[is_out_of_bag]
            n_evaluated += is_out_of_bag
        mean_metric = sum_of_metric / np.maximum(n_evaluated, 1.0)
        return np.where(n_evaluated > 0, mean_metric, np.nan)

    def _combinations(self, draws: Sequence[Indices]) -> Iterator[Stack]:
        """The combination for each draw of units."""
        if not self._has_stack:
            for drawn in draws:
                yield self._best_or_mean(drawn)
            return
        n_items, n_members = self._scaled_scores.shape
        # process as many draws at once as memory allows
        n_criteria = 1 + len(self._metric_weights)  # pairs, and smooth metrics
        n_entries_of_systems = SYSTEM_COPIES * self.n_units * n_members**2
        n_entries_of_draw = max(n_items * n_criteria, n_entries_of_systems)
        n_draws_at_once = max(1, BATCH_ENTRIES // n_entries_of_draw)
        for start in range(0, len(draws), n_draws_at_once):
            yield from self._stacks(draws[start : start + n_draws_at_once])

    def _best_or_mean(self, drawn: Indices) -> Stack:
        """The best member in the drawn units, or the mean of the best members."""
        n_items, n_members = self._scaled_scores.shape
        mean_gain = self._hold_out.gain_sign * nanmean_over_units(self._metric_of_members[drawn])
        best_first = np.argsort(-np.nan_to_num(mean_gain, nan=-np.inf), kind="stable")
        if self._requested_kind == "best" or n_members == 1:
            return self._single_member(best_first[0])
        averaged = best_first[:N_AVERAGED]  # numbers of the members in the mean
        weights = np.bincount(averaged, minlength=n_members) / len(averaged)
        metric_by_unit = self._hold_out.evaluate(self._scaled_scores @ weights)
        note = ""
        if self._requested_kind == "stack":
            note = (
                "the mean of the best members replaces the stack: "
                f"{n_items} items are too few for its weights"
            )
        return Stack("mean", weights, metric_by_unit, note)

    def _single_member(self, member: int, note: str = "") -> Stack:
        n_members = self._scaled_scores.shape[1]
        weights = np.eye(n_members)[member]
        return Stack("best", weights, self._metric_of_members[:, member], note)

    def _stacks(self, draws: Sequence[Indices]) -> Iterator[Stack]:
        """The stack, or the best member if that is clearly better, for each draw of units."""
        draws_of_units = [np.bincount(drawn, minlength=self.n_units) for drawn in draws]
        proposed = self._propose_weights(np.stack(draws_of_units))
        metric = self._metric_of_candidates(proposed.weights_without_unit)

        # candidates are compared on the drawn units, (n_drawn, n_draws, n_candidates)
        drawn_units = np.stack(draws, axis=1)[:, :, None]
        metric_of_drawn = np.take_along_axis(metric, drawn_units, axis=0)
        mean_of_drawn = nanmean_over_units(metric_of_drawn)
        for k, weights in enumerate(proposed.weights):
            yield self._stack_or_best(
                weights, metric[:, k], metric_of_drawn[:, k], mean_of_drawn[k]
            )

    def _metric_of_candidates(self, weights_without_unit: Array) -> Array:
        """Held-out metric of the stacks of each draw, followed by that of the members.

        Parameters
        ----------
        weights_without_unit : ndarray of shape (n_draws, n_criteria, n_units, n_members)
            Weights of the stacks without each unit.

        Returns
        -------
        ndarray of shape (n_units, n_draws, n_criteria + n_members)
            The metric in each unit.
        """
        # a stack for each draw and criterion, which scores each unit by weights without that unit
        n_draws, n_criteria, n_units, n_members = weights_without_unit.shape
        scores = self._held_out_scores(weights_without_unit.reshape(-1, n_units, n_members))
        metric_of_stacks = self._hold_out.evaluate(scores).reshape(n_units, n_draws, n_criteria)
        metric_of_members = np.repeat(self._metric_of_members[:, None], n_draws, axis=1)
        return np.concatenate([metric_of_stacks, metric_of_members], axis=2)

    def _propose_weights(self, unit_counts: NDArray[np.intp]) -> ProposedWeights:
        """Weights for units that count several times, by pairs and by the requested metric.

        Parameters
        ----------
        unit_counts : ndarray of int of shape (n_draws, n_units)
            How often each unit counts.
        """
        pairwise_weights = self._normal_equations.member_weights(unit_counts, self._alpha)
        pairwise_weights_without = self._normal_equations.weights_without_each_unit(
            unit_counts, self._alpha
        )
        # the criteria: errors of pairs, and then the smooth metric, pulled to the weights of pairs
        weights = [pairwise_weights]
        weights_without_unit = [pairwise_weights_without]
        for criterion in self._metric_weights:
            weights.append(criterion.member_weights(unit_counts, pairwise_weights))
            weights_without_unit.append(
                criterion.weights_without_each_unit(unit_counts, pairwise_weights_without)
            )
        return ProposedWeights(np.stack(weights, axis=1), np.stack(weights_without_unit, axis=1))

    def _stack_or_best(
        self, weights: Array, metric: Array, metric_of_drawn: Array, mean_of_drawn: Array
    ) -> Stack:
        """The best of the stacks, unless it is zero or the best member is clearly better.

        Parameters
        ----------
        weights : ndarray of shape (n_criteria, n_members)
            Weights of each stack.
        metric : ndarray of shape (n_units, n_criteria + n_members)
            Metric of each stack, whose weights were computed without the unit, and each member.
        metric_of_drawn : ndarray of shape (n_drawn, n_criteria + n_members)
            The same in the drawn units, by which stacks and members are compared.
        mean_of_drawn : ndarray of shape (n_criteria + n_members,)
            Its mean over units.
        """
        sign = self._hold_out.gain_sign
        n_stacks = len(weights)  # columns of the metric: stacks first, then members
        mean_gain = np.nan_to_num(sign * mean_of_drawn, nan=-np.inf)
        best_stack = int(np.argmax(mean_gain[:n_stacks]))
        best_member = int(np.argmax(mean_gain[n_stacks:]))
        column_of_member = n_stacks + best_member
        is_clearly_worse = is_worse(
            metric_of_drawn[:, best_stack],
            metric_of_drawn[:, column_of_member],
            sign,
            n_errors=REPLACEMENT_ERRORS,
        )
        sum_of_weights = np.abs(weights[best_stack]).sum()
        if sum_of_weights > 0 and not is_clearly_worse:
            return Stack("stack", weights[best_stack] / sum_of_weights, metric[:, best_stack])
        note = (
            f"the best member replaces the stack: {self._hold_out.metric.name} "
            f"{mean_of_drawn[column_of_member]:.4f} against {mean_of_drawn[best_stack]:.4f} on "
            "held-out data"
        )
        return self._single_member(best_member, note)

    def _select_alpha(self) -> float:
        """The alpha with the smallest share of wrong pairs by leave-group-out.

        The cost "sign" approximates this share, which varies less than other metrics.
        """
        alphas = STACK_ALPHAS * self._normal_equations.mean_square
        every_unit_once = np.ones((1, self.n_units), dtype=np.intp)
        weights_without_unit = [
            self._normal_equations.weights_without_each_unit(every_unit_once, alpha)[0]
            for alpha in alphas
        ]
        scores = self._held_out_scores(weights_without_unit)
        wrong_share = nanmean_over_units(
            self._hold_out.evaluate(scores, check_scoring("disagreement"))
        )
        return float(alphas[np.nanargmin(wrong_share)])

    def _fit_metric_weights(self) -> list[MetricWeights]:
        """Weights for the requested metric; none if it has no smooth version.

        Not for one list: five folds are too few units for a selection.
        """
        graph = self._hold_out.graph
        rank_function = smooth_version(self._hold_out.metric)
        # only metrics with a smooth version, of scored groups without weights of items
        has_groups = graph.has_relevance and graph.n_groups > 1
        has_item_weights = graph.item_weights is not None
        if rank_function is None or not has_groups or has_item_weights:
            return []
        metric = SmoothMetric(
            self._scaled_scores, graph.y, self._hold_out.unit_of_item, rank_function
        )
        no_weights = np.zeros(self._scaled_scores.shape[1])
        if np.isnan(metric.evaluate_at(no_weights).values).all():  # no unit has a relevant item
            return []
        every_unit_once = np.ones((1, self.n_units), dtype=np.intp)
        pairwise_weights = self._normal_equations.member_weights(every_unit_once, self._alpha)[0]
        return [
            MetricWeights.fit(metric, pairwise_weights, pull_strength)
            for pull_strength in STRENGTHS
        ]

    def _held_out_scores(self, weights_without_unit: Iterable[Array]) -> Array:
        """Scores of all items by several stacks, shape (n_items, n_stacks).

        Parameters
        ----------
        weights_without_unit : iterable of ndarray of shape (n_units, n_members)
            Weights of each stack without each unit. An item is scored by those without its own.
        """
        # the score of an item: its member scores times the weights without its unit
        columns = [
            np.einsum("ij,ij->i", self._scaled_scores, weights[self._hold_out.unit_of_item])
            for weights in weights_without_unit
        ]
        return np.stack(columns, axis=1)


def unit_normal_equations(scaled_scores: Array, hold_out: HoldOut) -> UnitNormalEquations:
    """``Zᵀ L Z``, ``Zᵀ d`` and W of each unit, for the cost "sign" or explicit preferences.

    Parameters
    ----------
    scaled_scores : ndarray of shape (n_items, n_members)
        Z.
    hold_out : HoldOut
        Units, and the graph with Laplacian L and divergence d.
    """
    unit_of_item = hold_out.unit_of_item
    graph = hold_out.graph
    if graph.has_relevance:  # all pairs of a unit, by the sign of their difference
        graph = ScoreGraph(graph.y, unit_of_item, cost="sign", sample_weight=graph.item_weights)
    items_by_unit = np.argsort(unit_of_item, kind="stable")
    start_of_unit = np.flatnonzero(np.diff(unit_of_item[items_by_unit], prepend=-1))

    # Normal equations Zᵀ L Z w = Zᵀ d of the scores Z of members, with the Laplacian L and the
    # divergence d of the graph. No pair joins two units, so each unit has its own summand.
    Z = scaled_scores[items_by_unit]
    LZ = np.asarray(graph.laplacian(scaled_scores))[items_by_unit]
    Z_of_units = np.split(Z, start_of_unit[1:])
    LZ_of_units = np.split(LZ, start_of_unit[1:])
    grams = [Z_u.T @ LZ_u for Z_u, LZ_u in zip(Z_of_units, LZ_of_units, strict=True)]

    divergence = graph.divergence.reshape(-1, 1)[items_by_unit]
    right_sides = np.add.reduceat(Z * divergence, start_of_unit)

    # a pair adds its weight to the degrees of two items
    pair_weights = np.bincount(unit_of_item, graph.degrees) / 2
    return UnitNormalEquations(np.stack(grams), right_sides, pair_weights)
