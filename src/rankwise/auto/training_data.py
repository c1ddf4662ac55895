"""Training data and held-out folds of AutoRanker."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike

from rankwise.arrays import Array, Indices
from rankwise.auto.scaling import ScaledView, Scaling, scale_view
from rankwise.auto.tree_features import TreeFeatures
from rankwise.caching import cached_property
from rankwise.graphs import PreferenceGraph
from rankwise.graphs.supervision import (
    Preferences,
    Relevance,
    TrainingTarget,
    read_y,
    unpack_target,
)
from rankwise.groups import Groups
from rankwise.losses import SquaredLoss
from rankwise.metrics import Metric
from rankwise.metrics.by_group import GroupedRelevance, check_scoring
from rankwise.metrics.grades import are_grades
from rankwise.model_selection.candidate_evaluation import evaluate_held_out_scores
from rankwise.model_selection.folds import Folds, fold_of_item, make_folds
from rankwise.preprocessing.group_scaling import scale_in_groups
from rankwise.rankers.ranking_problem import ranking_loss

WIDE = 2000  # columns of sparse items from which groups are held out in folds, by iterations
LIST_FOLDS = 5  # folds of the items of one list


@dataclass(eq=False)
class TrainingData:
    """Items in the views that members receive, with their scores or preferences.

    Attributes
    ----------
    views : dict
        Items as "dense" columns; as "wide" ones, with a column for each value and word; and as
        features of "trees" (see `TableFeatures`), whose first columns are the view "cells". Sparse
        items have neither.
    target : Relevance or Preferences
        Scores, groups and weights; or a graph with its own cost.
    groups : ndarray of int or None
        Number of the group of each item; None if there are no groups.
    graph : PreferenceGraph
        Graph of the items.
    trees : TreeFeatures
        The first step of trees, not fitted.
    """

    views: dict[str, Any]
    target: TrainingTarget
    groups: Indices | None
    graph: PreferenceGraph
    trees: TreeFeatures = field(default_factory=TreeFeatures)
    _losses: dict[tuple[str, str], SquaredLoss] = field(default_factory=dict, init=False)
    _scaled_views: dict[tuple[Scaling, str], ScaledView] = field(default_factory=dict, init=False)

    @property
    def X(self) -> Any:
        """All columns, for rankers that are not in the menu."""
        return self.views["wide"]

    @property
    def has_scores(self) -> bool:
        """Whether the target is scores, not a preference graph."""
        return isinstance(self.target, Relevance)

    @property
    def relevance(self) -> Relevance:
        """The target of data with scores."""
        if not isinstance(self.target, Relevance):
            raise TypeError("the target is a preference graph, which has no relevance.")
        return self.target

    def loss(self, cost: str, ties: str) -> SquaredLoss:
        """The squared loss of the pairs, which members of equal cost share."""
        if (cost, ties) not in self._losses:  # computed once
            n_items = self.graph.n_items
            loss, _ = ranking_loss(n_items, self.target, cost, ties, group_weight="pairs", beta=0.0)
            self._losses[cost, ties] = loss
        return self._losses[cost, ties]

    def scaled_view(self, view: str, scaling: Scaling) -> ScaledView:
        """A view with scaled columns, which members of equal scaling share."""
        if (scaling, view) not in self._scaled_views:  # computed once
            n_dense = self.views["dense"].shape[1]
            scaled = scale_view(self.views[view], n_dense, scaling, self.groups)
            self._scaled_views[scaling, view] = scaled
        return self._scaled_views[scaling, view]

    def group_labels(self, rows: Indices) -> Indices | None:
        """Group numbers of the selected items; None if there are no groups."""
        if self.groups is None:
            return None
        return self.groups[rows]

    def subset(self, rows: Indices) -> TrainingData:
        """Data of the selected items."""
        graph = self.graph.subset(rows)
        target: TrainingTarget = Preferences(graph)
        if isinstance(self.target, Relevance):
            target = self.target.take(rows)
        # views that are the same array stay the same array
        rows_of_array = {id(X): X[rows] for X in self.views.values()}
        views = {name: rows_of_array[id(X)] for name, X in self.views.items()}
        return TrainingData(views, target, self.group_labels(rows), graph, self.trees)

    def sample_rows(self, n_sample: int, rng: np.random.Generator) -> Indices:
        """About this number of items, of whole groups; if groups are long, a part of their items.

        At least `LIST_FOLDS` groups are sampled.
        """
        group_of_item = self.graph.groups
        shuffled_groups = rng.permutation(self.graph.n_groups)
        sizes = np.bincount(group_of_item)[shuffled_groups]
        n_items_until_group = np.cumsum(sizes)
        n_whole_groups = np.searchsorted(n_items_until_group, n_sample, side="right")
        n_groups = max(LIST_FOLDS, n_whole_groups)  # at least one for each fold
        rows = np.flatnonzero(np.isin(group_of_item, shuffled_groups[:n_groups]))
        if len(rows) <= 2 * n_sample:
            return rows
        return np.sort(rng.permutation(rows)[:n_sample])  # parts of long groups


def read_training_data(
    views: dict[str, Any],
    y: Any,
    groups: ArrayLike | None,
    sample_weight: ArrayLike | None = None,
    trees: TreeFeatures | None = None,
) -> TrainingData:
    """Check y, groups and weights as `RankRLS.fit` does; several outputs are refused."""
    target = read_y(y, groups, sample_weight)
    n_items = views["dense"].shape[0]
    loss, output_shape = ranking_loss(
        n_items, target, cost="magnitude", ties="include", group_weight="pairs", beta=0.0
    )
    if output_shape and output_shape[0] > 1:
        raise ValueError(
            f"y has {output_shape[0]} outputs; AutoRanker learns one output, so fit one for each "
            "column (RankRLSCV learns several at once)."
        )
    graph = loss.graph
    if isinstance(target, Preferences):
        return _data_of_graph(views, graph)
    if not graph.divergence.any():
        raise ValueError(
            "there is nothing to rank: no two items of one group (of weight more than 0) have "
            "different scores; check y and groups."
        )
    _, group_labels, _ = unpack_target(y, groups)
    group_codes = None
    if group_labels is not None:  # else all items are one list
        group_codes = target.groups.codes
    if trees is None:
        trees = TreeFeatures()
    relevance = replace(target, y=graph.y)
    return TrainingData(views, relevance, group_codes, graph, trees)


def _data_of_graph(views: dict[str, Any], graph: PreferenceGraph) -> TrainingData:
    """Training data of a preference graph, of which items can be held out."""
    if not graph.has_relevance:
        # components: items that preferences connect, which must be held out together
        weight_of_component = np.bincount(graph.components, graph.degrees)
        if weight_of_component.max() > weight_of_component.sum() / 2:
            raise ValueError(
                "most of the preferences form one connected graph, so items cannot be held out; "
                "use RankRLSCV, which holds out single preferences, or folds of items with "
                "survival times."
            )
    group_codes = None
    if graph.has_relevance and graph.n_groups > 1:
        group_codes = graph.groups
    return TrainingData(views, Preferences(graph), group_codes, graph)


@dataclass(eq=False)
class HoldOut:
    """Held-out units: each group in turn, or five folds of the items of one list.

    Attributes
    ----------
    data : TrainingData
        Items that are held out in turn: all items, or a sample.
    metric : Metric
        Metric of held-out scores. By default ndcg@10 for grades in groups, else disagreement.
    folds : list of ndarray of int
        Items that are held out together.
    all_data : TrainingData
        All items; the final models are trained on them.
    rows : ndarray of int
        Rows of `all_data` that are in `data`.
    """

    data: TrainingData
    metric: Metric
    folds: Folds
    all_data: TrainingData
    rows: Indices

    @classmethod
    def of(cls, all_data: TrainingData, scoring: Any, rows: Indices | None = None) -> HoldOut:
        """Hold out one group at a time, or wide sparse items in five folds of groups."""
        if rows is None:
            data = all_data
            rows = np.arange(all_data.graph.n_items)
        else:
            data = all_data.subset(rows)
        metric = _hold_out_metric(data, scoring)
        folds = make_folds(_n_folds(data), data.graph)
        return cls(data, metric, folds, all_data, rows)

    @property
    def is_sample(self) -> bool:
        """Whether the held-out items are a sample of all items."""
        return self.data is not self.all_data

    @property
    def graph(self) -> PreferenceGraph:
        """Graph of the held-out items."""
        return self.data.graph

    @cached_property
    def unit_of_item(self) -> Indices:
        """For each item the number of its group, or of its fold if there is one list."""
        fold = fold_of_item(self.folds, self.graph.n_items)
        group_and_fold = self.graph.groups * len(self.folds) + fold
        _, number_of_unit = np.unique(group_and_fold, return_inverse=True)
        return np.asarray(number_of_unit, dtype=np.intp)

    @cached_property
    def gain_sign(self) -> float:
        """1 if larger values of the metric are better, else −1."""
        if self.metric.greater_is_better:
            return 1.0
        return -1.0

    def group_folds(self, n_folds: int) -> Folds:
        """At most this number of folds of groups, for refits; for one list the folds in `folds`."""
        if self.graph.n_groups == 1:
            return self.folds
        return make_folds(min(n_folds, self.graph.n_groups), self.graph)

    def evaluate(self, scores: Array, metric: Metric | None = None) -> Array:
        """The metric in each unit, for one column of held-out scores or for several.

        Parameters
        ----------
        scores : ndarray of shape (n_items,) or (n_items, n_columns)
            Held-out scores.
        metric : Metric, optional
            Another metric than that of the hold-out.

        Returns
        -------
        ndarray of shape (n_units,) or (n_units, n_columns)
            Values; NaN where the metric is undefined.
        """
        if metric is None:
            metric = self.metric
        if not np.isfinite(scores).all():
            raise ValueError("held-out scores overflow; scale the features.")
        columns = scores.reshape(len(scores), 1, -1)  # with an axis for outputs
        if self.graph.has_relevance:
            metric_by_unit = self._relevance_by_unit.evaluate(metric, columns)
        else:
            metric_by_unit, _ = evaluate_held_out_scores(self.graph, columns, self.folds, metric)
        return metric_by_unit.reshape(len(metric_by_unit), *scores.shape[1:])

    @cached_property
    def _relevance_by_unit(self) -> GroupedRelevance:
        graph = self.graph
        units = Groups(self.unit_of_item, np.unique(self.unit_of_item))
        return GroupedRelevance(graph.y.reshape(graph.n_items, -1), units, graph.item_weights)

    def scale_in_units(self, scores: Array) -> Array:
        """Columns of held-out scores with mean 0 and standard deviation 1 in each unit."""
        group_codes = self.unit_of_item
        if not self.graph.has_relevance and self.data.groups is None:
            # explicit preferences join all items
            group_codes = np.zeros(len(scores), dtype=np.intp)
        return np.asarray(scale_in_groups(scores, group_codes))


def _hold_out_metric(data: TrainingData, scoring: Any) -> Metric:
    """The metric that the user requests, or the default for these data."""
    graph = data.graph
    if scoring is None:
        scoring = "disagreement"
        if graph.has_relevance and data.groups is not None and are_grades(graph.y):
            scoring = "ndcg@10"
    metric = check_scoring(scoring)
    if not graph.supports_metric(metric.name):
        raise ValueError(
            f"scoring={metric.name!r} needs scores, but y is a graph of explicit preferences; "
            "use scoring='disagreement' or 'concordance'."
        )
    return metric


def _n_folds(data: TrainingData) -> int | None:
    """Number of folds; None for one group at a time."""
    if data.graph.n_groups == 1:
        return max(2, min(LIST_FOLDS, data.graph.n_items // 2))  # of at least two items
    needs_refits = sp.issparse(data.X) and data.X.shape[1] > WIDE  # of iterative solvers
    if needs_refits and data.graph.n_groups >= LIST_FOLDS:
        return LIST_FOLDS
    return None  # one group at a time
