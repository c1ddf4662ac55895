"""Folds that cut the edges of a graph, and folds that leave no preference for training."""

from __future__ import annotations

import itertools

import numpy as np
from numpy.typing import NDArray

from rankwise.arrays import Array, Indices
from rankwise.graphs import PairGraph, PreferenceGraph
from rankwise.model_selection.folds import Folds, fold_of_item

RELATIVE_ROUNDING = 1e-13  # of the largest target: preferences that cancel up to rounding


def _folds_with_all_preferences(
    graph: PreferenceGraph, targets: Array, fold_of_items: Indices, is_closed: NDArray[np.bool_]
) -> NDArray[np.bool_]:
    """For each fold and output: do all items with a preference lie in this fold?"""
    # Folds outside of which no item has a preference, so that nothing remains for training, shape
    # (n_folds, n_outputs). Closed: no edge joins an item of the fold to one outside
    n_folds = len(is_closed)
    has_preference = _has_preference(graph, targets)
    # First and last fold with an item that has a preference, for each output
    first_fold = np.where(has_preference, fold_of_items[:, None], n_folds).min(axis=0)
    last_fold = np.where(has_preference, fold_of_items[:, None], -1).max(axis=0)
    is_last_fold = np.arange(n_folds)[:, None] == last_fold
    preferences_are_in_one_fold = first_fold == last_fold
    has_no_preferences = first_fold > last_fold
    contains_all = (preferences_are_in_one_fold & is_last_fold) | has_no_preferences
    if graph.is_complete:
        # A fold of half of the items or more may contain the median: decided by the check below
        has_half_of_items = 2 * np.bincount(fold_of_items, minlength=n_folds) >= graph.n_items
        contains_all[has_half_of_items] = True
    # If pairs cross a fold, preferences may cancel between folds: the other items must be tied, too
    for k in np.flatnonzero(contains_all.any(axis=1) & ~is_closed):
        other_items = np.flatnonzero(fold_of_items != k)
        contains_all[k] &= _are_tied_in_groups(graph, other_items)
    return np.asarray(contains_all)


def _has_preference(graph: PreferenceGraph, targets: Array) -> NDArray[np.bool_]:
    """Whether the preferences of each item do not cancel, shape (n_items, n_outputs)."""
    if graph.is_complete:
        # All pairs of one list: tied items outside of a fold of less than half of the items have
        # the median of y, so that only items with another y have a preference
        y = np.asarray(graph.y).reshape(targets.shape)
        median = np.sort(y, axis=0)[(len(y) - 1) // 2]
        return np.asarray(y != median)
    # Target of an item: weighted sum of its preferences
    largest_target = np.abs(targets).max(axis=0)
    return np.asarray(np.abs(targets) > RELATIVE_ROUNDING * largest_target)


def _are_tied_in_groups(graph: PreferenceGraph, items: Indices) -> NDArray[np.bool_]:
    """For each output: do these items have equal y in each group? Never for explicit edges."""
    if not graph.has_relevance:
        return np.zeros(1, dtype=bool)  # explicit edges have no y that could be equal
    if graph.item_weights is not None:
        has_weight = graph.item_weights[items] > 0
        items = items[has_weight]
    y = graph.y.reshape(graph.n_items, -1)[items]
    _, first_of_group, group_of_item = np.unique(
        graph.groups[items], return_index=True, return_inverse=True
    )
    first_y_of_group = y[first_of_group]
    return np.asarray((first_y_of_group[group_of_item] == y).all(axis=0))


def closed_folds(graph: PreferenceGraph, folds: Folds) -> NDArray[np.bool_]:
    """For each fold: do all edges of its items stay inside the fold?"""
    fold_of_items = fold_of_item(folds, graph.n_items)
    is_closed = np.ones(len(folds), dtype=bool)
    # A fold is closed if it splits no connected component
    partitions = [graph.components]
    if not graph.has_relevance and graph.group_weight == "groups":
        partitions.append(graph.groups)  # the weight of an edge depends on the others of its group
    for part_of_item in partitions:
        # A part is split if its items are in several folds, none of which is then closed
        n_parts = part_of_item.max() + 1
        first_fold = np.full(n_parts, len(folds))
        last_fold = np.full(n_parts, -1)
        np.minimum.at(first_fold, part_of_item, fold_of_items)
        np.maximum.at(last_fold, part_of_item, fold_of_items)
        is_split = first_fold != last_fold
        folds_with_split_parts = fold_of_items[is_split[part_of_item]]
        is_closed[folds_with_split_parts] = False
    return is_closed


def edges_of_folds(graph: PairGraph, folds: Folds) -> Folds:
    """Edges that touch each fold."""
    fold_of_items = fold_of_item(folds, graph.n_items)
    # Both ends of all edges, sorted by their fold
    fold_of_end = np.concatenate([fold_of_items[graph.winner], fold_of_items[graph.loser]])
    ends_by_fold = np.argsort(fold_of_end, kind="stable")
    boundaries = np.searchsorted(fold_of_end[ends_by_fold], np.arange(len(folds) + 1))
    edges = []
    for start, stop in itertools.pairwise(boundaries):
        edge_of_end = ends_by_fold[start:stop] % graph.n_pairs  # first all winners, then all losers
        edges.append(np.unique(edge_of_end))  # both ends may be in the fold
    return edges
