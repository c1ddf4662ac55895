"""Rankers as ONNX operators."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.pipeline import Pipeline

from rankwise.arrays import Array, Indices
from rankwise.auto.auto_ranker import AutoRanker
from rankwise.auto.boosted_trees import BoostedTrees
from rankwise.kernels.feature_maps import BasisFeatures, ColumnFeatures, KernelFeatures
from rankwise.persistence.onnx_columns import add_table, take_one_hot
from rankwise.persistence.onnx_graph import ML_DOMAIN, NAN, ROWS, ZERO, OnnxGraph, Tensor
from rankwise.persistence.onnx_steps import Items, add_kernel, add_step
from rankwise.rankers.linear_models import kernel_expansion, map_weights


class Scores(NamedTuple):
    """Scores of items.

    Attributes
    ----------
    tensor : str
        Tensor of shape (n_items, *shape).
    shape : tuple of int
        Shape of the scores of one item: () or (n_outputs,).
    """

    tensor: Tensor
    shape: tuple[int, ...] = ()


def add_ranker(graph: OnnxGraph, ranker: BaseEstimator, items: Items) -> Scores:
    """Add the operators that compute the scores of the items.

    Raises
    ------
    ValueError
        If there are no operators for a part of the ranker.
    """
    if isinstance(ranker, Pipeline):
        for _, step in ranker.steps[:-1]:
            items = add_step(graph, step, items)
        return add_ranker(graph, ranker.steps[-1][1], items)
    if isinstance(ranker, AutoRanker):
        return Scores(_add_auto_ranker(graph, ranker, items))
    if isinstance(ranker, BoostedTrees):
        return Scores(_add_trees(graph, ranker, graph.join(items)))
    return _add_kernel_ranker(graph, ranker, graph.join(items))


def _add_kernel_ranker(graph: OnnxGraph, ranker: BaseEstimator, x: Tensor) -> Scores:
    """Scores of a linear or kernel ranker: the sum of its kernel expansion."""
    expansion = kernel_expansion(ranker)
    n_features = ranker.n_features_in_
    n_maps = len(expansion.maps)
    linear_weights = np.zeros((n_features, expansion.coefficients[0].shape[1]))
    terms = []
    for feature_map, coef in zip(expansion.maps, expansion.coefficients, strict=True):
        if isinstance(feature_map, ColumnFeatures) or feature_map.kernel.is_linear:
            linear_weights += map_weights(feature_map, coef, n_features) / n_maps
        elif len(coef):
            terms.append(_add_kernel_term(graph, feature_map, coef / n_maps, x))
    if linear_weights.any() or not terms:
        terms.append(graph.add("MatMul", x, linear_weights))
    if np.any(expansion.intercept):
        terms.append(graph.constant(expansion.intercept))
    scores = terms[0]
    for term in terms[1:]:
        scores = graph.add("Add", scores, term)
    if not expansion.output_shape:
        scores = graph.add("Squeeze", scores, ROWS)
    return Scores(scores, expansion.output_shape)


def _add_kernel_term(
    graph: OnnxGraph, feature_map: KernelFeatures | BasisFeatures, coef: Array, x: Tensor
) -> Tensor:
    """``Σ_j coef_j k(x, item_j)`` of one map."""
    if feature_map.columns is not None:
        x = graph.take(x, feature_map.columns)
    items = feature_map.items
    if hasattr(items, "toarray"):
        items = items.toarray()
    kernel_matrix = add_kernel(graph, feature_map.kernel, np.asarray(items, dtype=np.float64), x)
    return graph.add("MatMul", kernel_matrix, coef)


def _add_auto_ranker(graph: OnnxGraph, ranker: AutoRanker, items: Items) -> Tensor:
    """The weighted sum of the scaled scores of the members."""
    views = _add_views(graph, ranker, items)
    columns = []
    for member, view in zip(ranker.estimators_, ranker.views_, strict=True):
        scores = add_ranker(graph, member, [graph.join(views[view])])
        columns.append(graph.add("Unsqueeze", scores.tensor, ROWS))
    matrix = graph.join(columns)
    if len(columns) > 1:
        matrix = graph.join(add_step(graph, ranker.scaler_, [matrix]))
    weighted_sum = graph.add("MatMul", matrix, ranker.weights_[:, None])
    return graph.add("Squeeze", weighted_sum, ROWS)


def _add_views(graph: OnnxGraph, ranker: AutoRanker, items: Items) -> dict[str, Items]:
    """The features that the members of an AutoRanker take, by the name of the view."""
    if ranker.table_ is None:
        return dict.fromkeys(ranker.views_, items)
    table = add_table(graph, ranker.table_, items)
    return {
        "dense": table.dense,
        "wide": table.dense + take_one_hot(graph, table, ranker.kept_values_),
        "trees": table.cells + table.one_hot,
        "cells": table.cells,
    }


def _add_trees(graph: OnnxGraph, ranker: BoostedTrees, x: Tensor) -> Tensor:
    """Scores of trees. ONNX compares in float64, but adds the leaves in float32."""
    columns, feature, threshold = _split_sets(graph, ranker, x)
    nodes = np.arange(len(ranker.left_))
    is_leaf = ranker.left_ == nodes
    n_nodes = np.diff(ranker.roots_, append=len(nodes))
    tree = np.repeat(np.arange(len(n_nodes)), n_nodes)
    root = ranker.roots_[tree]
    node_in_tree = nodes - root
    is_set = ranker.set_ > 0
    modes = np.where(is_leaf, "LEAF", np.where(is_set, "BRANCH_GT", "BRANCH_LEQ"))
    scores = graph.add(
        "TreeEnsembleRegressor",
        graph.join(columns),
        domain=ML_DOMAIN,
        n_targets=1,
        nodes_treeids=tree.tolist(),
        nodes_nodeids=node_in_tree.tolist(),
        nodes_featureids=feature.tolist(),
        nodes_modes=modes.tolist(),
        nodes_truenodeids=np.where(is_leaf, 0, ranker.left_ - root).tolist(),
        nodes_falsenodeids=np.where(is_leaf, 0, ranker.right_ - root).tolist(),
        nodes_missing_value_tracks_true=ranker.gap_left_.tolist(),
        nodes_values_as_tensor=graph.tensor_proto(threshold),
        target_treeids=tree[is_leaf].tolist(),
        target_nodeids=node_in_tree[is_leaf].tolist(),
        target_ids=[0] * int(is_leaf.sum()),
        target_weights_as_tensor=graph.tensor_proto(ranker.value_[is_leaf]),
    )
    return graph.add("Squeeze", graph.cast(scores), ROWS)


class NumericSplits(NamedTuple):
    """Splits of trees that compare numbers only.

    Attributes
    ----------
    columns : list of str
        The features, and an indicator for each set of codes.
    feature, threshold : ndarray of shape (n_nodes,)
        Feature and threshold of each node.
    """

    columns: list[Tensor]
    feature: Indices
    threshold: Array


def _split_sets(graph: OnnxGraph, ranker: BoostedTrees, x: Tensor) -> NumericSplits:
    """Replace sets of codes, which ONNX's trees cannot compare, by indicator columns."""
    is_set = ranker.set_ > 0
    feature = ranker.feature_.copy()
    threshold = ranker.threshold_.copy()
    columns = [x]
    n_columns = ranker.n_features_in_
    for column in np.unique(feature[is_set]):
        nodes = np.flatnonzero(is_set & (ranker.feature_ == column))
        set_numbers, position = np.unique(ranker.set_[nodes], return_inverse=True)
        feature[nodes] = n_columns + position
        threshold[nodes] = 0.5
        codes = graph.take(x, [column])
        columns.append(_add_set_indicators(graph, ranker.sets_[set_numbers], codes))
        n_columns += len(set_numbers)
    return NumericSplits(columns, feature, threshold)


def _add_set_indicators(graph: OnnxGraph, sets: Indices, codes: Tensor) -> Tensor:
    """1 if the code is in the set, else 0; NaN for missing values. One column for each set."""
    is_missing = graph.add("IsNaN", codes)
    filled = graph.add("Where", is_missing, ZERO, codes)
    clipped = graph.add("Clip", filled, ZERO, float(sets.shape[1] - 1))
    code_numbers = graph.cast(graph.add("Squeeze", clipped, ROWS), "int64")
    is_in_set = graph.add("Gather", sets.T.astype(np.float64), code_numbers, axis=0)
    return graph.add("Where", is_missing, NAN, is_in_set)
