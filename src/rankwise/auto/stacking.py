"""Stacking of the members of AutoRanker."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankwise.arrays import Array
from rankwise.auto.training_data import HoldOut
from rankwise.graphs import ScoreGraph
from rankwise.metrics.by_group import check_scoring, nanmean

AVERAGED = 4  # members that the mean is taken of

LEAST_FOR_STACK = 200  # items: weights from fewer are noise

STACK_ALPHAS = 10.0 ** np.arange(2, -7, -1)  # relative to the mean square of a column

SURE = 3.0  # standard errors by which the best of a dozen members is surely better than the stack


def is_worse(scores: Array, rival: Array, sign: float, n_errors: float = 1.0) -> bool:
    """Whether scores in units are worse than those of a rival by so many standard errors."""
    gap = sign * (scores - rival)
    gap = gap[~np.isnan(gap)]
    return len(gap) > 1 and bool(gap.mean() < -n_errors * gap.std(ddof=1) / np.sqrt(len(gap)))


@dataclass(eq=False)
class Stack:
    """Weights of the members, and how good they are on held-out data.

    Attributes
    ----------
    how : {"stack", "mean", "best"}
        What was chosen.
    weights : ndarray of shape (n_members,)
        Weights of the scores of the members, each scaled in its group.
    by_unit : ndarray of shape (n_units,)
        The metric in each unit, which the weights of a stack have not seen.
    note : str
        Why this, if something else was asked for.
    """

    how: str
    weights: Array
    by_unit: Array
    note: str = ""


class Stacking:
    """Makes one ranker of several: a stack, the mean of the best, or the best.

    The stack is ``RankRLS(cost="sign")`` on the held-out scores of the members, centered and scaled
    in each group. Its systems are sums over the groups, ``(Σ G_g / Σ W_g + αI) w = Σ t_g / Σ W_g``,
    so that a group is taken out of the weights, or drawn several times, by a change of these sums.

    Parameters
    ----------
    members : list
        Their held-out scores `held`, and the metric `by_unit` in each unit.
    held_out : HoldOut
        What was held out, and how it is judged.
    how : {"stack", "mean", "best"}
        How they are combined; a stack gives way to what is clearly better on held-out data.
    """

    def __init__(self, members: list[Any], held_out: HoldOut, how: str) -> None:
        self._held_out, self._how = held_out, how
        self._by_unit = np.stack([member.by_unit for member in members], axis=1)
        self._Z = held_out.scaled(np.stack([member.held for member in members], axis=1))
        self.n_units = len(self._by_unit)
        if how == "stack" and len(members) > 1 and len(self._Z) >= LEAST_FOR_STACK:
            self._sum_systems()

    def combine(self, drawn: NDArray[np.intp] | None = None) -> Stack:
        """Choose and weigh by some units, which may be there several times; by default by all.

        The best of a dozen members flatters itself, so it replaces the stack only if it is better
        by three standard errors of the difference over groups. With fewer than 200 items the mean
        of the best members takes the place of the stack: it does not learn weights from noise.
        """
        held_out, (n_items, n_members) = self._held_out, self._Z.shape
        drawn = np.arange(self.n_units) if drawn is None else drawn
        gain = np.nan_to_num(held_out.sign * nanmean(self._by_unit[drawn]), nan=-np.inf)
        order = np.argsort(-gain, kind="stable")
        best = Stack("best", np.eye(n_members)[order[0]], self._by_unit[:, order[0]])
        if self._how == "best" or n_members == 1:
            return best
        if self._how == "mean" or n_items < LEAST_FOR_STACK:
            averaged = order[:AVERAGED]
            weights = np.bincount(averaged, minlength=n_members) / len(averaged)
            mean = Stack("mean", weights, held_out.judge(self._Z @ weights))
            if self._how == "stack":
                what = "the mean of the best takes the place of the stack"
                mean.note = f"{what}: {n_items} items are too few for its weights"
            return mean
        stack = self._stack(np.bincount(drawn, minlength=self.n_units))
        pair = stack.by_unit[drawn], best.by_unit[drawn]
        if stack.weights.any() and not is_worse(*pair, held_out.sign, SURE):
            return stack
        values = [float(nanmean(by_unit)) for by_unit in pair]
        best.note = (
            f"the best member takes the place of the stack: {held_out.metric.name} "
            f"{values[1]:.4f} against {values[0]:.4f} on held-out data"
        )
        return best

    def out_of_bag(self, n_resamples: int, rng: np.random.Generator) -> Array:
        """The mean metric in each unit, by combinations of draws that the unit is not in."""
        total, count = np.zeros(self.n_units), np.zeros(self.n_units)
        for _ in range(n_resamples):
            drawn = rng.integers(self.n_units, size=self.n_units)
            by_unit = self.combine(drawn).by_unit
            counts = ~np.isnan(by_unit)
            counts[drawn] = False
            total[counts] += by_unit[counts]
            count += counts
        return np.where(count > 0, total / np.maximum(count, 1.0), np.nan)

    def _sum_systems(self) -> None:
        """``G = Zᵀ L Z``, ``t = Zᵀ d`` and W, the weight of the pairs, of each unit; and alpha.

        Alpha is chosen by leave-group-out and the share of wrong pairs: that is what the cost asks
        for, and it varies less than other metrics.
        """
        held_out, unit = self._held_out, self._held_out.unit
        graph = held_out.graph
        if graph.has_relevance:
            weights = graph.item_weights
            graph = ScoreGraph(graph.y, unit, cost="sign", sample_weight=weights)
        order = np.argsort(unit, kind="stable")
        starts = np.flatnonzero(np.diff(unit[order], prepend=-1))
        Z, LZ = self._Z[order], np.asarray(graph.laplacian(self._Z))[order]
        parts = zip(np.split(Z, starts[1:]), np.split(LZ, starts[1:]), strict=True)
        self._grams = np.stack([part.T @ L_part for part, L_part in parts])
        self._moments = np.add.reduceat(Z * graph.divergence.reshape(-1, 1)[order], starts)
        self._amounts = np.bincount(unit, graph.degrees) / 2
        scale = np.trace(self._grams.sum(axis=0)) / self._amounts.sum() / Z.shape[1]
        alphas, every = STACK_ALPHAS * (scale or 1.0), np.ones(self.n_units)
        held = np.stack([self._stacked(every, alpha) for alpha in alphas], axis=1)
        wrong = nanmean(held_out.judge(held, check_scoring("disagreement")))
        self._alpha = float(alphas[np.nanargmin(wrong)])

    def _stack(self, counts: NDArray[np.intp]) -> Stack:
        """The weights of units that were drawn so many times."""
        total = (counts * self._amounts).sum() or 1.0
        gram = np.tensordot(counts, self._grams, 1) / total
        moment = counts @ self._moments / total
        weights = np.linalg.solve(gram + self._alpha * np.eye(len(gram)), moment)
        by_unit = self._held_out.judge(self._stacked(counts, self._alpha))
        return Stack("stack", weights / (np.abs(weights).sum() or 1.0), by_unit)

    def _stacked(self, counts: NDArray[Any], alpha: float) -> Array:
        """Scores of all items, each by weights without its unit."""
        grams, moments = counts[:, None, None] * self._grams, counts[:, None] * self._moments
        amounts = counts * self._amounts
        rest = amounts.sum() - amounts
        rest = np.where(rest > 0, rest, np.inf)
        left = (grams.sum(axis=0) - grams) / rest[:, None, None] + alpha * np.eye(len(grams[0]))
        right = (moments.sum(axis=0) - moments) / rest[:, None]
        weights = np.linalg.solve(left, right[:, :, None])[:, :, 0]
        return np.asarray(np.einsum("ij,ij->i", self._Z, weights[self._held_out.unit]))
