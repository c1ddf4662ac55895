"""Targets in which some rows have no score, or are in no pair."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, field, replace
from typing import Self

import numpy as np

from rankwise.arrays import Array, Indices, take_weights
from rankwise.errors import warn_user
from rankwise.graphs import PairGraph, PreferenceGraph, ScoreGraph
from rankwise.graphs.supervision import Preferences, Relevance, TrainingTarget
from rankwise.groups import Groups
from rankwise.losses import SquaredLoss
from rankwise.rankers.ranking_problem import check_graph, check_something_to_rank, one_output


@dataclass(frozen=True, eq=False)
class PartialTarget(ABC):
    """Preferences between some rows, and groups of all rows.

    Attributes
    ----------
    scored, unscored : ndarray of int
        Rows with and without a score (or a pair), in ascending order.
    groups : Groups
        Groups of all rows.
    weights : ndarray or None
        Weights of all rows, if they have any.
    agreement_graph : PreferenceGraph or None
        Pairs of rows on whose differences the views agree; None for all pairs of unscored rows
        inside groups.
    """

    scored: Indices
    unscored: Indices
    groups: Groups
    weights: Array | None
    agreement_graph: PreferenceGraph | None = field(default=None, kw_only=True)

    @abstractmethod
    def loss(self, cost: str, ties: str, group_weight: str, beta: float = 0.0) -> SquaredLoss:
        """The loss of the scored rows."""

    @abstractmethod
    def without(self, test_items: Indices) -> Self:
        """Drop scored rows by their positions in `scored`."""

    def weights_of(self, rows: Indices) -> Array | None:
        """Weights of these rows; None without weights."""
        return take_weights(self.weights, rows)

    @property
    def has_unscored_pairs(self) -> bool:
        """Whether two unscored rows share a group, so that views can agree on their order."""
        rows = self.unscored
        if self.weights is not None:  # a row of weight 0 is in no pair
            rows = rows[self.weights[rows] > 0]
        n_unscored_of_groups = np.bincount(self.groups.codes[rows])
        return bool(n_unscored_of_groups.max(initial=0) > 1)

    def agreement(self, group_weight: str = "pairs") -> tuple[Indices, PreferenceGraph]:
        """Rows on whose order the views agree, and the graph of their pairs.

        By default all pairs inside groups of the unscored rows, or of the scored ones if no two
        unscored rows share a group.
        """
        if self.agreement_graph is not None:
            rows = np.flatnonzero(self.agreement_graph.degrees > 0)
            return rows, self.agreement_graph.subset(rows)
        # the views agree on the order of unscored rows, or of scored rows if there is no unscored
        # pair
        rows = self.scored
        if self.has_unscored_pairs:
            rows = self.unscored
        equal_scores = np.zeros(len(rows))  # the graph has all pairs of a group for any scores
        target = Relevance(equal_scores, self.groups.take(rows), self.weights_of(rows))
        return rows, ScoreGraph(target, group_weight=group_weight)


@dataclass(frozen=True, eq=False)
class PartialRelevance(PartialTarget):
    """Scores of some rows, and groups of all rows.

    Attributes
    ----------
    y : ndarray of shape (n_scored,) or (n_scored, n_outputs)
        Scores of the scored rows.
    """

    y: Array

    def graph(self, cost: str, ties: str, group_weight: str) -> ScoreGraph:
        """The pairs of the scored rows."""
        groups = self.groups.take(self.scored)
        target = Relevance(self.y, groups, self.weights_of(self.scored))
        return ScoreGraph(target, cost=cost, ties=ties, group_weight=group_weight)

    def loss(self, cost: str, ties: str, group_weight: str, beta: float = 0.0) -> SquaredLoss:
        """The loss of the scored rows."""
        loss = SquaredLoss(self.graph(cost, ties, group_weight), beta, self.y)
        check_something_to_rank(loss)
        return loss

    def without(self, test_items: Indices) -> PartialRelevance:
        """Drop scored rows by their positions in `scored`."""
        return replace(
            self,
            scored=np.delete(self.scored, test_items),
            y=np.delete(self.y, test_items, axis=0),
        )


@dataclass(frozen=True, eq=False)
class PartialPreferences(PartialTarget):
    """A graph in which some rows are in no pair.

    Attributes
    ----------
    graph : PreferenceGraph
        Preferences between the scored rows.
    """

    graph: PreferenceGraph

    def loss(self, cost: str, ties: str, group_weight: str, beta: float = 0.0) -> SquaredLoss:
        """The loss of the rows that are in a pair, with the options of the graph."""
        options = {"cost": cost, "ties": ties, "group_weight": group_weight}
        check_graph(self.graph, self.graph.n_items, options)
        loss = SquaredLoss(self.graph, beta)
        check_something_to_rank(loss)
        return loss

    def without(self, test_items: Indices) -> PartialPreferences:
        """Drop rows by their positions in `scored`."""
        is_train = np.ones(len(self.scored), dtype=bool)  # of the scored rows, as are test_items
        is_train[test_items] = False
        graph = self.graph.subset(np.flatnonzero(is_train))
        return replace(self, scored=self.scored[is_train], graph=graph)


def split_isolated(
    graph: PreferenceGraph, n_items: int, agreement: PreferenceGraph | None = None
) -> PartialPreferences:
    """Separate the rows that are in a pair from the other rows.

    Explicit comparisons require groups, which determine the comparable unscored rows, or a graph of
    the pairs of rows on which the views agree.
    """
    is_explicit = graph.hold_out_unit == "edges"  # a list of pairs, not all pairs of groups
    has_groups = isinstance(graph, PairGraph) and graph.has_groups
    if is_explicit and not has_groups and agreement is None:
        raise ValueError(
            f"y is a {type(graph).__name__} without groups, which does not say which unscored rows "
            "are compared; build it with the groups of all rows, or pass agreement=PairGraph(...)."
        )
    check_graph(graph, n_items, options={})
    is_in_pair = graph.degrees > 0  # counts as scored
    scored = np.flatnonzero(is_in_pair)
    return PartialPreferences(
        scored=scored,
        unscored=np.flatnonzero(~is_in_pair),
        groups=Groups(graph.groups, graph.group_labels),
        weights=graph.item_weights,
        graph=graph.subset(scored),
    )


def split_unscored(target: TrainingTarget, n_items: int) -> PartialRelevance:
    """Separate scored from unscored rows; y is NaN in unscored rows, in all outputs."""
    if isinstance(target, Preferences):
        raise ValueError(
            f"y is a {type(target.graph).__name__}, expected scores of the items, with NaN for "
            "unscored rows, and groups. For graphs use a search of another ranker, such as "
            "RankRLSCV."
        )
    scores = target.y
    if scores.shape[1:] == (1,):
        scores = scores[:, 0]
    has_score = ~np.isnan(scores).reshape(len(scores), -1)  # (n_items, n_outputs)
    is_scored = has_score.all(axis=1)
    is_partly_scored = has_score.any(axis=1) & ~is_scored
    if is_partly_scored.any():
        row = int(np.flatnonzero(is_partly_scored)[0])
        raise ValueError(
            f"row {row} of y has a score in some columns only; several outputs need the same "
            "scored rows. Fit a model for each column."
        )
    if not is_scored.any():
        raise ValueError(
            f"none of the {n_items} rows has a score (y is all NaN); there is nothing to learn the "
            "order from. Score the rows of at least one group."
        )
    partial_target = PartialRelevance(
        scored=np.flatnonzero(is_scored),
        unscored=np.flatnonzero(~is_scored),
        groups=target.groups,
        weights=target.weight,
        y=scores[is_scored],
    )
    n_unscored = len(partial_target.unscored)
    if n_unscored and not partial_target.has_unscored_pairs:
        warn_user(
            f"no two of the {n_unscored} unscored rows are in one group, so the unscored rows are "
            "not used, and the agreement of views is measured on the scored rows. Give unscored "
            "rows group labels that they share with other unscored rows.",
        )
    return partial_target


def split_unscored_of_one_output(
    learner: str, target: TrainingTarget, n_items: int
) -> PartialRelevance:
    """`split_unscored` for a learner of one output; several outputs raise an error."""
    if isinstance(target, Relevance):
        target = replace(target, y=one_output(learner, target.y))
    return split_unscored(target, n_items)


def check_agreement(agreement: PreferenceGraph, n_items: int) -> None:
    """Raise an error unless an agreement is a graph with an item for each row of X."""
    if not isinstance(agreement, PreferenceGraph):
        raise TypeError(
            f"agreement is a {type(agreement).__name__}; expected a graph such as PairGraph."
        )
    check_graph(agreement, n_items, options={})
    if not agreement.n_pairs:
        raise ValueError("agreement has no pairs; omit it, or pass pairs of rows.")
