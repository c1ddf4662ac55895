"""Training data and held-out folds of AutoRanker."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike

from rankwise.arrays import Array, Indices
from rankwise.auto.boosted_trees import TreeFeatures
from rankwise.caching import cached_property
from rankwise.graphs import PreferenceGraph
from rankwise.graphs.supervision import (
    Preferences,
    Relevance,
    TrainingTarget,
    read_y,
    unpack_target,
)
from rankwise.metrics import Metric
from rankwise.metrics.by_group import check_scoring
from rankwise.metrics.grades import are_grades
from rankwise.model_selection.folds import Folds, fold_of_item, make_folds
from rankwise.model_selection.grid_search import score_groups
from rankwise.preprocessing.group_scaling import scale_in_groups
from rankwise.rankers.ranking_problem import ranking_loss

WIDE = 2000  # columns of sparse items from which groups are held out in folds, by iterations

LIST_FOLDS = 5  # of the items of one list


@dataclass(eq=False)
class TrainingData:
    """Checked data.

    Attributes
    ----------
    views : dict
        Items as "dense" columns; as "wide" ones, with a column for each value and word; and as
        "trees" take them (see `rankwise.preprocessing.table_vectorizer.Views`). Sparse items are
        not for trees.
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
    target: TrainingTarget
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
        return isinstance(self.target, Relevance)

    @property
    def relevance(self) -> Relevance:
        """The target of data with scores."""
        if not isinstance(self.target, Relevance):
            raise TypeError("the target is a preference graph, which has no relevance.")
        return self.target

    def labels(self, rows: Indices) -> Indices | None:
        """Number of the group of some items; None if there are no groups."""
        return None if self.groups is None else self.groups[rows]

    def subset(self, rows: Indices) -> TrainingData:
        """The same of some items."""
        graph = self.graph.subset(rows)
        target: TrainingTarget = Preferences(graph)
        if isinstance(self.target, Relevance):
            target = self.target.take(rows)
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
    target, n_items = read_y(y, groups, sample_weight), views["dense"].shape[0]
    loss, shape = ranking_loss(n_items, target, "magnitude", "include", "pairs", 0.0)
    if len(shape) and shape[0] > 1:
        raise ValueError(
            f"y has {shape[0]} outputs; AutoRanker learns one output, so fit one for each column "
            "(RankRLSCV learns several at once)."
        )
    graph = loss.graph
    if isinstance(target, Preferences):
        has_groups = bool(getattr(y, "has_groups", y.has_relevance and y.n_groups > 1))
        in_component = np.bincount(graph.components, graph.degrees)
        is_free = graph.has_relevance or has_groups
        if not is_free and in_component.max() > in_component.sum() / 2:
            raise ValueError(
                "most of these preferences are connected with each other, so no items can be held "
                "out. RankRLSCV holds out single preferences; or build the PairGraph with groups."
            )
        return TrainingData(views, Preferences(graph), graph.groups if has_groups else None, graph)
    if not graph.divergence.any():
        raise ValueError(
            "there is nothing to rank: no two items of one group (of weight more than 0) have "
            "different scores; check y and groups."
        )
    has_groups = unpack_target(y, groups)[1] is not None
    codes = target.groups.codes if has_groups else None
    relevance = replace(target, y=graph.y)
    return TrainingData(views, relevance, codes, graph, trees or TreeFeatures())


@dataclass(eq=False)
class HoldOut:
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
    def of(cls, every: TrainingData, scoring: Any, rows: Indices | None = None) -> HoldOut:
        """Hold out one group at a time; wide sparse items in five folds of groups."""
        data = every if rows is None else every.subset(rows)
        graph = data.graph
        if scoring is None:
            scoring = "disagreement"
            if graph.has_relevance and data.groups is not None:
                scoring = "ndcg@10" if are_grades(graph.y) else scoring
        metric = check_scoring(scoring)
        if not graph.supports_metric(metric.name):
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
        fold = fold_of_item(self.folds, self.graph.n_items)
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
        is_compared = self.graph.has_relevance or self.data.groups is not None
        codes = self.unit if is_compared else np.zeros(len(held), dtype=np.intp)
        return np.asarray(scale_in_groups(held, codes))
