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
from rankwise.persistence.onnx_graph import AXIS_1, ML_DOMAIN, NAN, ZERO, OnnxGraph, Tensor
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
        *transformers, final_ranker = [step for _, step in ranker.steps]
        for transformer in transformers:
            items = add_step(graph, transformer, items)
        return add_ranker(graph, final_ranker, items)
    if isinstance(ranker, AutoRanker):
        return Scores(_add_auto_ranker(graph, ranker, items))
    if isinstance(ranker, BoostedTrees):
        return Scores(_add_trees(graph, ranker, graph.join(items)))
    return _add_kernel_ranker(graph, ranker, graph.join(items))


def _add_kernel_ranker(graph: OnnxGraph, ranker: BaseEstimator, x: Tensor) -> Scores:
    """Scores of a linear or kernel ranker: the sum of its kernel expansion."""
    # The scores are the mean over the feature maps (the views), plus an intercept. All linear maps
    # become one product with weights of the features.
    expansion = kernel_expansion(ranker)
    n_features = ranker.n_features_in_
    n_outputs = expansion.coefficients[0].shape[1]
    n_maps = len(expansion.maps)
    linear_weights = np.zeros((n_features, n_outputs))
    terms = []
    for feature_map, coef in zip(expansion.maps, expansion.coefficients, strict=True):
        if isinstance(feature_map, ColumnFeatures) or feature_map.kernel.is_linear:
            linear_weights += map_weights(feature_map, coef, n_features) / n_maps
        elif len(coef):  # a map without basis items adds nothing
            terms.append(_add_kernel_term(graph, feature_map, coef / n_maps, x))
    if linear_weights.any() or not terms:  # a graph needs one term, even if it is 0
        terms.append(graph.add("MatMul", x, linear_weights))
    if np.any(expansion.intercept):
        terms.append(graph.constant(expansion.intercept))

    sum_of_terms = terms[0]
    for term in terms[1:]:
        sum_of_terms = graph.add("Add", sum_of_terms, term)
    has_one_output = not expansion.output_shape
    if has_one_output:  # from (n_items, 1) to (n_items,)
        sum_of_terms = graph.add("Squeeze", sum_of_terms, AXIS_1)
    return Scores(sum_of_terms, expansion.output_shape)


def _add_kernel_term(
    graph: OnnxGraph, feature_map: KernelFeatures | BasisFeatures, coef: Array, x: Tensor
) -> Tensor:
    """``Σ_j coef_j k(x, item_j)`` of one map."""
    if feature_map.columns is not None:
        x = graph.take(x, feature_map.columns)
    training_items = feature_map.items
    if hasattr(training_items, "toarray"):  # a sparse matrix
        training_items = training_items.toarray()
    training_items = np.asarray(training_items, dtype=np.float64)
    kernel_matrix = add_kernel(graph, feature_map.kernel, training_items, x)
    return graph.add("MatMul", kernel_matrix, coef)


def _add_auto_ranker(graph: OnnxGraph, ranker: AutoRanker, items: Items) -> Tensor:
    """The weighted sum of the scaled scores of the members."""
    features_of_view = _add_views(graph, ranker, items)
    score_columns = []
    for member, view in zip(ranker.estimators_, ranker.views_, strict=True):
        scores = add_ranker(graph, member, [graph.join(features_of_view[view])])
        score_columns.append(graph.add("Unsqueeze", scores.tensor, AXIS_1))
    score_matrix = graph.join(score_columns)  # (n_items, n_members)
    if len(score_columns) > 1:  # AutoRanker does not scale the scores of a single member
        score_matrix = graph.join(add_step(graph, ranker.scaler_, [score_matrix]))
    weighted_sum = graph.add("MatMul", score_matrix, ranker.weights_[:, None])
    return graph.add("Squeeze", weighted_sum, AXIS_1)


def _add_views(graph: OnnxGraph, ranker: AutoRanker, items: Items) -> dict[str, Items]:
    """The features that the members of an AutoRanker take, by the name of the view."""
    if ranker.table_ is None:  # all members take the same matrix
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
    splits = _splits_without_category_sets(graph, ranker, x)
    # left_, right_: children of each node; roots_: first node of each tree; set_: number of the set
    # of categories that a node asks for, or 0
    nodes = np.arange(len(ranker.left_))
    is_leaf = ranker.left_ == nodes  # a leaf is its own child

    # ONNX numbers the nodes of each tree from 0; here the nodes of all trees follow each other.
    n_nodes_of_tree = np.diff(ranker.roots_, append=len(nodes))
    tree_of_node = np.repeat(np.arange(len(ranker.roots_)), n_nodes_of_tree)
    root_of_node = ranker.roots_[tree_of_node]
    node_in_tree = nodes - root_of_node
    # ONNX ignores the children of a leaf.
    left_in_tree = np.where(is_leaf, 0, ranker.left_ - root_of_node)
    right_in_tree = np.where(is_leaf, 0, ranker.right_ - root_of_node)

    modes = np.full(len(nodes), "BRANCH_LEQ")  # to the left if the feature is at most the threshold
    modes[ranker.set_ > 0] = "BRANCH_GT"  # to the left if the category is in the set
    modes[is_leaf] = "LEAF"
    scores = graph.add(
        "TreeEnsembleRegressor",
        graph.join(splits.columns),
        domain=ML_DOMAIN,
        n_targets=1,
        nodes_treeids=tree_of_node.tolist(),
        nodes_nodeids=node_in_tree.tolist(),
        nodes_featureids=splits.feature.tolist(),
        nodes_modes=modes.tolist(),
        nodes_truenodeids=left_in_tree.tolist(),
        nodes_falsenodeids=right_in_tree.tolist(),
        nodes_missing_value_tracks_true=ranker.gap_left_.tolist(),  # 1: NaN goes to the left
        nodes_values_as_tensor=graph.tensor_proto(splits.threshold),
        target_treeids=tree_of_node[is_leaf].tolist(),
        target_nodeids=node_in_tree[is_leaf].tolist(),
        target_ids=[0] * int(is_leaf.sum()),  # all leaves add to the only output
        target_weights_as_tensor=graph.tensor_proto(ranker.value_[is_leaf]),
    )
    return graph.add("Squeeze", graph.cast(scores), AXIS_1)


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


def _splits_without_category_sets(
    graph: OnnxGraph, ranker: BoostedTrees, x: Tensor
) -> NumericSplits:
    """Replace sets of codes, which ONNX's trees cannot compare, by indicator columns."""
    # A node either compares a feature with a threshold, or asks whether a category is in a set.
    splits_by_set = ranker.set_ > 0  # number of the set of each node; 0: it has a threshold
    feature = ranker.feature_.copy()
    threshold = ranker.threshold_.copy()
    columns = [x]
    n_columns = ranker.n_features_in_  # grows with the appended columns
    # For each set append a column to the features: 1 if the category is in the set, otherwise 0.
    # The nodes of the set compare this column with 0.5.
    for category_column in np.unique(feature[splits_by_set]):
        nodes = np.flatnonzero(splits_by_set & (ranker.feature_ == category_column))
        set_numbers, indicator_of_node = np.unique(ranker.set_[nodes], return_inverse=True)
        feature[nodes] = n_columns + indicator_of_node
        threshold[nodes] = 0.5
        codes = graph.take(x, [category_column])
        columns.append(_add_set_indicators(graph, ranker.sets_[set_numbers], codes))
        n_columns += len(set_numbers)
    return NumericSplits(columns, feature, threshold)


def _add_set_indicators(graph: OnnxGraph, sets: Indices, codes: Tensor) -> Tensor:
    """1 if the code is in the set, else 0; NaN for missing values. One column for each set."""
    # sets: (n_sets, n_codes), 1 where a code is in a set; Gather takes the column of each code.
    is_missing = graph.add("IsNaN", codes)
    filled = graph.add("Where", is_missing, ZERO, codes)
    largest_code = float(sets.shape[1] - 1)  # larger codes count as this one, as in BoostedTrees
    clipped = graph.add("Clip", filled, ZERO, largest_code)
    code_numbers = graph.cast(graph.add("Squeeze", clipped, AXIS_1), "int64")
    is_in_set = graph.add("Gather", sets.T.astype(np.float64), code_numbers, axis=0)
    return graph.add("Where", is_missing, NAN, is_in_set)
