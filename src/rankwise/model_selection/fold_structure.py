"""Which folds cut the edges of a graph, and which leave no preference to learn from."""

from __future__ import annotations

import itertools

import numpy as np
from numpy.typing import NDArray

from rankwise.arrays import Array, Indices
from rankwise.graphs import PairGraph, PreferenceGraph
from rankwise.model_selection.folds import Folds, fold_of_item

TIED = 1e-13  # of the largest target: preferences that cancel up to rounding


def _folds_with_all_preferences(
    graph: PreferenceGraph, targets: Array, fold: Indices, is_closed: NDArray[np.bool_]
) -> NDArray[np.bool_]:
    """For each fold and output: do all items with a preference lie in this fold?"""
    if graph.is_complete:  # in one list these are the items whose y is not the median
        y = np.asarray(graph.y).reshape(targets.shape)
        median = np.sort(y, axis=0)[(len(y) - 1) // 2]
        has_preference = y != median
    else:
        has_preference = np.abs(targets) > TIED * np.abs(targets).max(axis=0)
    n_folds = len(is_closed)
    first_fold = np.where(has_preference, fold[:, None], n_folds).min(axis=0)
    last_fold = np.where(has_preference, fold[:, None], -1).max(axis=0)
    is_last_fold = np.arange(n_folds)[:, None] == last_fold
    has_no_preference = first_fold > last_fold
    contains_all = ((first_fold == last_fold) & is_last_fold) | has_no_preference
    for k in np.flatnonzero(contains_all.any(axis=1) & ~is_closed):
        contains_all[k] &= _is_tied(graph, np.flatnonzero(fold != k))
    return np.asarray(contains_all)


def _is_tied(graph: PreferenceGraph, items: Indices) -> NDArray[np.bool_]:
    """For each output: do these items have equal y in each group? Never for explicit edges."""
    if not graph.has_relevance:
        return np.zeros(1, dtype=bool)
    if graph.item_weights is not None:
        items = items[graph.item_weights[items] > 0]
    y = graph.y.reshape(graph.n_items, -1)[items]
    _, first_of_group, group = np.unique(
        graph.groups[items], return_index=True, return_inverse=True
    )
    return np.asarray((y[first_of_group][group] == y).all(axis=0))


def closed_folds(graph: PreferenceGraph, folds: Folds) -> NDArray[np.bool_]:
    """For each fold: does no edge leave it?"""
    fold = fold_of_item(folds, graph.n_items)
    is_closed = np.ones(len(folds), dtype=bool)
    partitions = [graph.components]
    if not graph.has_relevance and graph.group_weight == "groups":
        partitions.append(graph.groups)  # the weight of an edge depends on the others of its group
    for component in partitions:
        n_components = component.max() + 1
        first_fold = np.full(n_components, len(folds))
        last_fold = np.full(n_components, -1)
        np.minimum.at(first_fold, component, fold)
        np.maximum.at(last_fold, component, fold)
        is_split = first_fold != last_fold
        is_closed[fold[is_split[component]]] = False
    return is_closed


def edges_of_folds(graph: PairGraph, folds: Folds) -> Folds:
    """Edges that touch each fold."""
    fold = fold_of_item(folds, graph.n_items)
    ends = np.concatenate([fold[graph.winner], fold[graph.loser]])
    order = np.argsort(ends, kind="stable")
    bounds = np.searchsorted(ends[order], np.arange(len(folds) + 1))
    return [np.unique(order[a:b] % graph.n_pairs) for a, b in itertools.pairwise(bounds)]
