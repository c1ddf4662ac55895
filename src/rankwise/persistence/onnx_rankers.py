"""Rankers as ONNX operators: sums of kernels in float64, trees, and combinations of rankers."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.pipeline import Pipeline

from rankwise.estimators.anatomy import map_weights, score_functions
from rankwise.estimators.auto_ranker import AutoRanker
from rankwise.estimators.boosted_trees import BoostedTrees
from rankwise.persistence.onnx_graph import ML, Graph, Values
from rankwise.persistence.onnx_steps import ROWS, ZERO, add_step, kernel_values
from rankwise.persistence.onnx_tables import add_table
from rankwise.uncertainty import CalibratedRanker


def add_ranker(graph: Graph, ranker: Any, values: Values) -> tuple[str, tuple[int, ...]]:
    """The scores of the items in `values`: the name of their tensor, and the shape of one item's.

    Raises
    ------
    ValueError
        If there are no operators for a part of the ranker.
    """
    if isinstance(ranker, Pipeline):
        for _, step in ranker.steps[:-1]:
            values = add_step(graph, step, values)
        return add_ranker(graph, ranker.steps[-1][1], values)
    if isinstance(ranker, CalibratedRanker):
        return add_ranker(graph, ranker.estimator_, values)
    if isinstance(ranker, AutoRanker):
        return _combination(graph, ranker, values), ()
    if isinstance(ranker, BoostedTrees):
        return _trees(graph, ranker, values), ()
    return _kernel_ranker(graph, ranker, values)


def _kernel_ranker(graph: Graph, ranker: Any, values: Values) -> tuple[str, tuple[int, ...]]:
    parts = score_functions(ranker)
    n_features = ranker.n_features_in_
    linear = np.zeros((n_features, parts.coefficients[0].shape[1]))
    scores = None
    for one, coef in zip(parts.maps, parts.coefficients, strict=True):
        if one.kernel.is_linear:
            linear += map_weights(one, coef, n_features) / len(parts.maps)
        elif len(coef):
            x = graph.matrix(values if one.columns is None else graph.take(values, one.columns))
            items = one.items.toarray() if hasattr(one.items, "toarray") else one.items
            K = kernel_values(graph, one.kernel, np.asarray(items, dtype=np.float64), x)
            added = graph.add("MatMul", K, coef / len(parts.maps))
            scores = added if scores is None else graph.add("Add", scores, added)
    if scores is None or linear.any():
        added = graph.add("MatMul", graph.matrix(values), linear)
        scores = added if scores is None else graph.add("Add", scores, added)
    if np.any(parts.intercept):
        scores = graph.add("Add", scores, np.asarray(parts.intercept))
    if not parts.output_shape:
        scores = graph.add("Squeeze", scores, ROWS)
    return scores, parts.output_shape


def _combination(graph: Graph, ranker: AutoRanker, values: Values) -> str:
    """The weighted sum of the scores of the members, scaled to be comparable."""
    views = _views(graph, ranker, values)
    pairs = zip(ranker.estimators_, ranker.views_, strict=True)
    scores = [add_ranker(graph, member, views[name])[0] for member, name in pairs]
    if len(scores) == 1:
        return scores[0]
    columns = Values([graph.add("Unsqueeze", one, ROWS) for one in scores], [1] * len(scores))
    scaled = graph.matrix(add_step(graph, ranker.scaler_, columns))
    return graph.add("Squeeze", graph.add("MatMul", scaled, ranker.weights_[:, None]), ROWS)


def _views(graph: Graph, ranker: AutoRanker, values: Values) -> dict[str, Values]:
    """The items as the members see them."""
    if ranker.table_ is None:
        return dict.fromkeys(("dense", "wide", "trees"), values)
    table = add_table(graph, ranker.table_, values)
    dense, kept = table.dense, ranker.kept_values_
    wide = dense + graph.take(table.sparse, kept) if len(kept) else dense
    return {"dense": dense, "wide": wide, "trees": table.cells + table.sparse}


def _trees(graph: Graph, ranker: BoostedTrees, values: Values) -> str:
    """Trees in the operator for them, which compares in float64 and gives the sum in float32.

    It compares with numbers only, so each set of codes that a tree asks for becomes a column.
    """
    own = np.arange(len(ranker.left_))
    is_leaf, is_set = ranker.left_ == own, ranker.set_ > 0
    feature, threshold = ranker.feature_.copy(), ranker.threshold_.copy()
    for column in np.unique(feature[is_set]):
        at = np.flatnonzero(is_set & (ranker.feature_ == column))
        rows, place = np.unique(ranker.set_[at], return_inverse=True)
        feature[at], threshold[at] = values.n_columns + place, 0.5
        inside = _in_sets(graph, ranker.sets_[rows], graph.take(values, [column]))
        values = values + Values([inside], [len(rows)])
    n_nodes = np.diff(ranker.roots_, append=len(own))
    tree = np.repeat(np.arange(len(n_nodes)), n_nodes)
    node, leaves = own - ranker.roots_[tree], np.flatnonzero(is_leaf)
    modes = np.where(is_leaf, "LEAF", np.where(is_set, "BRANCH_GT", "BRANCH_LEQ"))
    scores = graph.add(
        "TreeEnsembleRegressor",
        graph.matrix(values),
        domain=ML,
        n_targets=1,
        nodes_treeids=tree.tolist(),
        nodes_nodeids=node.tolist(),
        nodes_featureids=feature.tolist(),
        nodes_modes=modes.tolist(),
        nodes_truenodeids=np.where(is_leaf, 0, ranker.left_ - ranker.roots_[tree]).tolist(),
        nodes_falsenodeids=np.where(is_leaf, 0, ranker.right_ - ranker.roots_[tree]).tolist(),
        nodes_missing_value_tracks_true=ranker.gap_left_.tolist(),
        nodes_values_as_tensor=graph.tensor(threshold),
        target_treeids=tree[leaves].tolist(),
        target_nodeids=node[leaves].tolist(),
        target_ids=[0] * len(leaves),
        target_weights_as_tensor=graph.tensor(ranker.value_[leaves]),
    )
    return graph.add("Squeeze", graph.floats(scores), ROWS)


def _in_sets(graph: Graph, sets: Any, column: Values) -> str:
    """1 for the codes of each set, else 0, and NaN for gaps."""
    x = graph.matrix(column)
    is_gap = graph.add("IsNaN", x)
    known = graph.add("Where", is_gap, ZERO, x)
    code = graph.add("Clip", known, ZERO, np.array(float(sets.shape[1] - 1)))
    place = graph.whole_numbers(graph.add("Squeeze", code, ROWS))
    inside = graph.add("Gather", sets.T.astype(np.float64), place, axis=0)
    return graph.add("Where", is_gap, np.array(np.nan), inside)
