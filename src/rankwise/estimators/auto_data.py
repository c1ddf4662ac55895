"""What an AutoRanker learns from, what is held out, how several are made one, and its time."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from time import perf_counter
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray

from rankwise.arrays import Array, Indices
from rankwise.estimators.boosted_trees import TreeFeatures
from rankwise.estimators.training_data import ranking_loss
from rankwise.features.group_scaling import scale_in_groups
from rankwise.graphs import PreferenceGraph, ScoreGraph
from rankwise.inputs import Target, read_target, split_weighted
from rankwise.metrics import Metric
from rankwise.metrics.grades import are_grades
from rankwise.model_selection.curves import (
    check_scoring,
    mean_defined,
    score_groups,
    take_target,
)
from rankwise.model_selection.task import Folds, fold_numbers, make_folds

WIDE = 2000  # columns of sparse items from which groups are held out in folds, by iterations
LIST_FOLDS = 5  # of the items of one list
AVERAGED = 4  # members that the mean is taken of
LEAST_FOR_STACK = 200  # items: weights from fewer are noise
STACK_ALPHAS = 10.0 ** np.arange(2, -7, -1)  # relative to the mean square of a column
PROBE = 400  # rows of a matrix whose product tells how slow the machine is
SURE = 3.0  # standard errors by which the best of a dozen members is surely better than the stack


@dataclass(eq=False)
class TrainingData:
    """Checked data.

    Attributes
    ----------
    views : dict
        Items as "dense" columns; as "wide" ones, with a column for each value and word; and as
        "trees" take them (see `rankwise.estimators.columns.Views`). Sparse items are not for trees.
    target : Target
        Scores, groups and weights; or a graph that brings its own cost.
    groups : ndarray of int or None
        Number of the group of each item; None if there are no groups.
    graph : PreferenceGraph
        What is known about the items.
    trees : TreeFeatures
        The first step of trees, not fitted.
    """

    views: dict[str, Any]
    target: Target
    groups: Indices | None
    graph: PreferenceGraph
    trees: TreeFeatures = field(default_factory=TreeFeatures)

    @property
    def X(self) -> Any:
        """All columns, for rankers that are no entries of the menu."""
        return self.views["wide"]

    @property
    def has_scores(self) -> bool:
        """Whether scores were given, and not a graph."""
        return self.target.groups is not None

    def labels(self, rows: Indices) -> Indices | None:
        """Number of the group of some items; None if there are no groups."""
        return None if self.groups is None else self.groups[rows]

    def subset(self, rows: Indices) -> TrainingData:
        """The same of some items."""
        graph = self.graph.subset(rows)
        target = take_target(self.target, rows) if self.has_scores else Target(graph)
        taken = {id(X): X[rows] for X in self.views.values()}  # one view may be another, too
        views = {name: taken[id(X)] for name, X in self.views.items()}
        return TrainingData(views, target, self.labels(rows), graph, self.trees)

    def sample(self, most: int, rng: np.random.Generator) -> Indices:
        """Items of whole groups, or of one list, up to so many; of long groups a part."""
        groups = self.graph.groups
        order = rng.permutation(self.graph.n_groups)
        sizes = np.bincount(groups)[order]
        drawn = order[: max(LIST_FOLDS, np.searchsorted(np.cumsum(sizes), most, side="right"))]
        rows = np.flatnonzero(np.isin(groups, drawn))
        return np.sort(rng.permutation(rows)[:most]) if len(rows) > 2 * most else rows


def check_data(
    views: dict[str, Any],
    y: Any,
    groups: ArrayLike | None,
    sample_weight: ArrayLike | None = None,
    trees: TreeFeatures | None = None,
) -> TrainingData:
    """Check y, groups and weights as `RankRLS.fit` does; several outputs are refused."""
    target, n_items = read_target(y, groups, sample_weight), views["dense"].shape[0]
    loss, shape = ranking_loss(n_items, target, "magnitude", "include", "pairs", 0.0)
    if len(shape) and shape[0] > 1:
        raise ValueError(
            f"y has {shape[0]} outputs; AutoRanker learns one output, so fit one for each column "
            "(RankRLSCV learns several at once)."
        )
    graph = loss.graph
    if target.groups is None:
        has_groups = bool(getattr(y, "has_groups", y.scores is not None and y.n_groups > 1))
        in_component = np.bincount(graph.components, graph.degrees)
        is_free = graph.scores is not None or has_groups
        if not is_free and in_component.max() > in_component.sum() / 2:
            raise ValueError(
                "most of these preferences are connected with each other, so no items can be held "
                "out. RankRLSCV holds out single preferences; or build the PairGraph with groups."
            )
        return TrainingData(views, Target(graph), graph.groups if has_groups else None, graph)
    if not graph.divergence.any():
        raise ValueError(
            "there is nothing to rank: no two items of one group (of weight more than 0) have "
            "different scores; check y and groups."
        )
    has_groups = split_weighted(y, groups)[1] is not None
    codes = target.groups.codes if has_groups else None
    target = target._replace(y=graph.scores)
    return TrainingData(views, target, codes, graph, trees or TreeFeatures())


@dataclass(eq=False)
class HeldOut:
    """What is held out in turn: each group, or five folds of the items of one list.

    Attributes
    ----------
    data : TrainingData
        What is held out in turn: all items, or a sample of a great many.
    metric : Metric
        How held-out scores are judged. By default ndcg@10 for grades in groups, else disagreement.
    folds : list of ndarray of int
        Items that are held out together.
    every : TrainingData
        All items; models are trained on them in the end.
    rows : ndarray of int
        Which of them are in `data`.
    """

    data: TrainingData
    metric: Metric
    folds: Folds
    every: TrainingData
    rows: Indices

    @classmethod
    def of(cls, every: TrainingData, scoring: Any, rows: Indices | None = None) -> HeldOut:
        """Hold out one group at a time; wide sparse items in five folds of groups."""
        data = every if rows is None else every.subset(rows)
        graph, y = data.graph, data.graph.scores
        if scoring is None:
            scoring = "disagreement"
            if y is not None and data.groups is not None:
                scoring = "ndcg@10" if are_grades(y) else scoring
        metric = check_scoring(scoring)
        if y is None and metric.name not in ("disagreement", "concordance"):
            raise ValueError(
                f"scoring={metric.name!r} needs scores, but y is a graph of explicit preferences; "
                "use scoring='disagreement' or 'concordance'."
            )
        is_wide = sp.issparse(data.X) and data.X.shape[1] > WIDE
        n_folds: int | None = None
        if graph.n_groups == 1:
            n_folds = max(2, min(LIST_FOLDS, graph.n_items // 2))
        elif is_wide and graph.n_groups >= LIST_FOLDS:
            n_folds = LIST_FOLDS
        folds, rows = make_folds(n_folds, graph), np.arange(graph.n_items) if rows is None else rows
        return cls(data, metric, folds, every, rows)

    @property
    def graph(self) -> PreferenceGraph:
        """What is known about the items."""
        return self.data.graph

    @cached_property
    def unit(self) -> Indices:
        """For each item the number of its group, or of its fold of one list."""
        fold = fold_numbers(self.folds, self.graph.n_items)
        joined = self.graph.groups * len(self.folds) + fold
        return np.asarray(np.unique(joined, return_inverse=True)[1], dtype=np.intp)

    @property
    def sign(self) -> float:
        """1 if the metric is the better the larger, else −1."""
        return 1.0 if self.metric.greater_is_better else -1.0

    def judge(self, held: Array, metric: Metric | None = None) -> Array:
        """The metric in each unit of scores, or of several candidates for them, side by side."""
        columns = held.reshape(len(held), 1, -1)
        values = score_groups(self.graph, columns, self.folds, metric or self.metric)[0]
        return values.reshape(len(values), *held.shape[1:])

    def scaled(self, held: Array) -> Array:
        """Columns of held-out scores with mean 0 and deviation 1 in each unit."""
        is_compared = self.graph.scores is not None or self.data.groups is not None
        codes = self.unit if is_compared else np.zeros(len(held), dtype=np.intp)
        return np.asarray(scale_in_groups(held, codes))


def is_worse(scores: Array, rival: Array, sign: float, n_errors: float = 1.0) -> bool:
    """Whether scores in units are worse than those of a rival by so many standard errors."""
    gap = sign * (scores - rival)
    gap = gap[~np.isnan(gap)]
    return len(gap) > 1 and bool(gap.mean() < -n_errors * gap.std(ddof=1) / np.sqrt(len(gap)))


@dataclass(eq=False)
class Combination:
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


class Combiner:
    """Makes one ranker of several: a stack, the mean of the best, or the best.

    The stack is ``RankRLS(cost="sign")`` on the held-out scores of the members, centered and scaled
    in each group. Its systems are sums over the groups, ``(Σ G_g / Σ W_g + αI) w = Σ t_g / Σ W_g``,
    so that a group is taken out of the weights, or drawn several times, by a change of these sums.

    Parameters
    ----------
    members : list
        Their held-out scores `held`, and the metric `by_unit` in each unit.
    held_out : HeldOut
        What was held out, and how it is judged.
    how : {"stack", "mean", "best"}
        How they are combined; a stack gives way to what is clearly better on held-out data.
    """

    def __init__(self, members: list[Any], held_out: HeldOut, how: str) -> None:
        self._held_out, self._how = held_out, how
        self._by_unit = np.stack([member.by_unit for member in members], axis=1)
        self._Z = held_out.scaled(np.stack([member.held for member in members], axis=1))
        self.n_units = len(self._by_unit)
        if how == "stack" and len(members) > 1 and len(self._Z) >= LEAST_FOR_STACK:
            self._sum_systems()

    def combine(self, drawn: NDArray[np.intp] | None = None) -> Combination:
        """Choose and weigh by some units, which may be there several times; by default by all.

        The best of a dozen members flatters itself, so it replaces the stack only if it is better
        by three standard errors of the difference over groups. With fewer than 200 items the mean
        of the best members takes the place of the stack: it does not learn weights from noise.
        """
        held_out, (n_items, n_members) = self._held_out, self._Z.shape
        drawn = np.arange(self.n_units) if drawn is None else drawn
        gain = np.nan_to_num(held_out.sign * mean_defined(self._by_unit[drawn]), nan=-np.inf)
        order = np.argsort(-gain, kind="stable")
        best = Combination("best", np.eye(n_members)[order[0]], self._by_unit[:, order[0]])
        if self._how == "best" or n_members == 1:
            return best
        if self._how == "mean" or n_items < LEAST_FOR_STACK:
            averaged = order[:AVERAGED]
            weights = np.bincount(averaged, minlength=n_members) / len(averaged)
            mean = Combination("mean", weights, held_out.judge(self._Z @ weights))
            if self._how == "stack":
                what = "the mean of the best takes the place of the stack"
                mean.note = f"{what}: {n_items} items are too few for its weights"
            return mean
        stack = self._stack(np.bincount(drawn, minlength=self.n_units))
        pair = stack.by_unit[drawn], best.by_unit[drawn]
        if stack.weights.any() and not is_worse(*pair, held_out.sign, SURE):
            return stack
        values = [float(mean_defined(by_unit)) for by_unit in pair]
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
        if graph.scores is not None:
            weights = graph.item_weights
            graph = ScoreGraph(graph.scores, unit, cost="sign", sample_weight=weights)
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
        wrong = mean_defined(held_out.judge(held, check_scoring("disagreement")))
        self._alpha = float(alphas[np.nanargmin(wrong)])

    def _stack(self, counts: NDArray[np.intp]) -> Combination:
        """The weights of units that were drawn so many times."""
        total = (counts * self._amounts).sum() or 1.0
        gram = np.tensordot(counts, self._grams, 1) / total
        moment = counts @ self._moments / total
        weights = np.linalg.solve(gram + self._alpha * np.eye(len(gram)), moment)
        by_unit = self._held_out.judge(self._stacked(counts, self._alpha))
        return Combination("stack", weights / (np.abs(weights).sum() or 1.0), by_unit)

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


class Clock:
    """What is left of a time limit, and how slow the machine is.

    Attributes
    ----------
    pace : float
        Seconds that work takes for each second that it was expected to take.
    reserved : dict of float
        Seconds that the training of members will take, one after the other.
    """

    def __init__(self, limit: float | None, start: float) -> None:
        self._end = np.inf if limit is None else start + limit
        self.pace = 1.0 if limit is None else measure_pace()
        self.reserved: dict[str, float] = {}

    def left(self) -> float:
        """Seconds for further members."""
        return self._end - perf_counter() - sum(self.reserved.values())

    def affords(self, expected: float, share: float) -> bool:
        """Whether work that is expected to take so long fits in a share of what is left."""
        left = self.left()
        return left > 0 and self.pace * expected <= share * left


def measure_pace() -> float:
    """How many times as long as on one idle core of a usual machine a product takes now."""
    block = np.ones((PROBE, PROBE))
    begun = perf_counter()
    for _ in range(5):
        block @ block
    return max(1.0, (perf_counter() - begun) / (5 * 1e-10 * PROBE**3))
