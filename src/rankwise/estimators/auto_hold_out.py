"""What AutoRanker holds out, and how the held-out scores of its members are judged."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankwise.arrays import Array, Indices
from rankwise.features import scale_in_groups
from rankwise.graphs import PairGraph, PreferenceGraph, ScoreGraph
from rankwise.graphs.roots import items_of_components
from rankwise.model_selection.candidates import Candidates
from rankwise.model_selection.folds import Folds, fold_numbers, make_folds
from rankwise.model_selection.measures import Measure, check_scoring, mean_defined, score_groups
from rankwise.model_selection.task import HoldOutTask

CLEAR = 1.0  # standard errors by which a candidate, or a combination, is clearly better
LIST_FOLDS = 5  # of the items of one list, or of the edges of connected preferences


@dataclass(eq=False)
class HeldOutItems:
    """Groups, or items of one list, that are held out in turn.

    Attributes
    ----------
    graph : PreferenceGraph
        What is known about the items.
    metric : Measure
        How they are judged.
    folds : list of ndarray of int
        Items that are held out together.
    is_compared : bool
        Whether the items of a fold are compared with each other only, and scaled together.
    """

    graph: PreferenceGraph
    metric: Measure
    folds: Folds
    is_compared: bool = True
    units: Indices = field(init=False)

    def __post_init__(self) -> None:
        fold = fold_numbers(self.folds, self.graph.n_items)
        joined = self.graph.groups * len(self.folds) + fold
        self.units = np.unique(joined, return_inverse=True)[1].astype(np.intp)

    def hold_out(self, task: HoldOutTask, candidates: Candidates) -> Array:
        """Scores of the items by models without them, (n_items, n_candidates)."""
        return task.held_out(self.folds, candidates)[:, 0]

    def judge(self, held: Array, metric: Measure | None = None) -> Array:
        """The metric in each group of each fold, (n_units, n_candidates)."""
        return score_groups(self.graph, held[:, None], self.folds, metric or self.metric)[0][
            :, :, 0
        ]

    def scaled(self, held: Array) -> Array:
        """Columns of held-out scores with mean 0 and deviation 1 in each group of each fold."""
        codes = self.units if self.is_compared else np.zeros(len(held), dtype=np.intp)
        return np.asarray(scale_in_groups(held, codes))

    def second_level(self) -> tuple[PreferenceGraph, Folds]:
        """The graph that a stack of held-out scores learns from, and what it holds out."""
        if self.graph.scores is None:
            return self.graph, self.folds
        weights = self.graph.item_weights
        graph = ScoreGraph(self.graph.scores, self.units, cost="sign", sample_weight=weights)
        return graph, items_of_components(self.units)


@dataclass(eq=False)
class HeldOutEdges:
    """Edges of connected preferences that are held out in turn.

    Each fold scores all items. So there is a row for each fold and item, and an edge joins the
    rows of the fold that it is held out in.

    Attributes
    ----------
    edges : PairGraph
        The preferences.
    metric : Measure
        How they are judged.
    """

    edges: PairGraph
    metric: Measure

    def __post_init__(self) -> None:
        edges, m = self.edges, self.edges.n_items
        n_folds = min(LIST_FOLDS, max(2, edges.n_pairs))
        self._fold = np.random.default_rng(0).permutation(edges.n_pairs) % n_folds
        self._n_folds = n_folds
        self.units = np.repeat(np.arange(n_folds), m)
        self.graph = PairGraph(
            edges.winner + m * self._fold,
            edges.loser + m * self._fold,
            edges.magnitude,
            edges.weight,
            n_folds * m,
            cost=edges.cost,
            groups=self.units,
        )
        self.folds = items_of_components(self.units)

    def hold_out(self, task: HoldOutTask, candidates: Candidates) -> Array:
        """Scores of all items by models without each fold of edges, one below the other."""
        parts = [self.edges.with_edges(self._fold != k) for k in range(self._n_folds)]
        return np.concatenate([task.from_edges(part, candidates) for part in parts])

    def judge(self, held: Array, metric: Measure | None = None) -> Array:
        """The metric in each fold, (n_folds, n_candidates)."""
        return score_groups(self.graph, held[:, None], self.folds, metric or self.metric)[0][
            :, :, 0
        ]

    def scaled(self, held: Array) -> Array:
        """Columns of held-out scores with mean 0 and deviation 1 in each fold."""
        return np.asarray(scale_in_groups(held, self.units))

    def second_level(self) -> tuple[PreferenceGraph, Folds]:
        """The graph that a stack of held-out scores learns from, and what it holds out."""
        return self.graph, self.folds


Units = HeldOutItems | HeldOutEdges


def make_units(graph: PreferenceGraph, metric: Measure, *, one_at_a_time: bool = True) -> Units:
    """What is held out: each group, five folds of the items of one list, or folds of edges.

    Parameters
    ----------
    graph : PreferenceGraph
        What is known about the items.
    metric : Measure
        How held-out scores are judged.
    one_at_a_time : bool
        Whether groups are held out one at a time; else in five folds.
    """
    if graph.n_units > 1 and not _is_joined(graph):
        is_single = one_at_a_time or graph.n_groups < LIST_FOLDS
        folds = make_folds(None if is_single else LIST_FOLDS, graph)
        is_compared = graph.scores is not None or bool(getattr(graph, "has_groups", True))
        return HeldOutItems(graph, metric, folds, is_compared)
    if graph.scores is None:
        return HeldOutEdges(graph.pairs(), metric)
    n_folds = max(2, min(LIST_FOLDS, graph.n_items // 2))
    return HeldOutItems(graph, metric, make_folds(n_folds, graph))


def _is_joined(graph: PreferenceGraph) -> bool:
    """Whether most preferences are in one connected component, which cannot be held out."""
    if graph.scores is not None or bool(getattr(graph, "has_groups", True)):
        return False
    in_component = np.bincount(graph.components, graph.degrees)
    return bool(in_component.max() > in_component.sum() / 2)


@dataclass(eq=False)
class Choice:
    """The best candidate.

    Attributes
    ----------
    at : int
        Its place among the candidates.
    alpha : float
        Its alpha; nan if it has none.
    held : ndarray of shape (n_rows,)
        Held-out scores.
    by_unit : ndarray of shape (n_units,)
        The metric in each unit.
    """

    at: int
    alpha: float
    held: Array
    by_unit: Array


def choose_alpha(task: HoldOutTask, units: Units, candidates: Candidates | None = None) -> Choice:
    """Judge the default alphas.

    Parameters
    ----------
    task : HoldOutTask
        A model and its data.
    units : HeldOutItems or HeldOutEdges
        What is held out.
    candidates : Candidates, optional
        Other alphas.
    """
    tried = task.candidates(alpha=None) if candidates is None else candidates
    held = units.hold_out(task, tried)
    by_unit = units.judge(held)
    return choose(units, tried, held, by_unit)


def choose(units: Units, tried: Candidates, held: Array, by_unit: Array) -> Choice:
    """Of the candidates within a standard error of the best, the one with the fewest wrong pairs.

    Parameters
    ----------
    units : HeldOutItems or HeldOutEdges
        What was held out.
    tried : Candidates
        The candidates.
    held : ndarray of shape (n_rows, n_candidates)
        Their held-out scores.
    by_unit : ndarray of shape (n_units, n_candidates)
        The metric of these.
    """
    at = _best(units, tried, by_unit)
    if len(tried) > 1:
        at = _fewest_wrong(units, tried, held, by_unit, at)
    alpha = float(tried.axes["alpha"][at]) if "alpha" in tried.axes else float("nan")
    return Choice(at, alpha, held[:, at].copy(), by_unit[:, at])


def _best(units: Units, tried: Candidates, by_unit: Array) -> int:
    mean = mean_defined(by_unit)
    if np.isnan(mean).all():
        raise ValueError(f"{units.metric.name} is undefined in all that is held out")
    return tried.best(mean if units.metric.greater_is_better else -mean)


def _fewest_wrong(units: Units, tried: Candidates, held: Array, by_unit: Array, best: int) -> int:
    """Of the candidates within a standard error of the best, the one that orders most pairs right.

    Metrics such as NDCG vary much from group to group, and the share of wrong pairs varies less.
    """
    pairwise = check_scoring("disagreement")
    if units.metric.name == pairwise.name or units.graph.scores is None:
        return best
    sign = 1.0 if units.metric.greater_is_better else -1.0
    wrong = mean_defined(units.judge(held, pairwise))
    for k in range(len(wrong)):
        if is_worse(by_unit[:, k], by_unit[:, best], sign, CLEAR):
            wrong[k] = np.nan
    return best if np.isnan(wrong).all() else tried.best(-wrong)


def is_worse(scores: NDArray[Any], rival: NDArray[Any], sign: float, limit: float) -> bool:
    """Whether scores in units are worse than those of a rival by some standard errors."""
    gap = sign * (scores - rival)
    gap = gap[~np.isnan(gap)]
    if len(gap) < 2:
        return False
    error = gap.std(ddof=1) / np.sqrt(len(gap))
    return bool(gap.mean() < -limit * error)
