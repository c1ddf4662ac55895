"""Growth of boosted trees for ranking by LightGBM or scikit-learn."""

from __future__ import annotations

from importlib import import_module
from typing import Any

import numpy as np
from sklearn.ensemble import HistGradientBoostingRegressor

from rankwise.arrays import Array
from rankwise.graphs import ScoreGraph
from rankwise.model_selection.folds import Folds, make_folds
from rankwise.runtime.threads import ENTRY_OF_TREE, limit_threads, n_threads_for

FEW_LEAVES = 15
MAX_LEAVES = 63
MANY_ITEMS = 50_000  # from which trees have `MAX_LEAVES`
LEARNING_RATE = 0.1
TREES_PER_THREAD_COUNT = 20  # trees after which idle cores are counted again
COLUMN_FOLDS = 5  # folds for the out-of-fold scores of a column
PROBE_TREES = 50  # trees that test whether a column is predictive
LEAST_CORRELATION = 0.1  # of a predictive column with the target
LEAST_STANDARD_ERRORS = 4.0  # of that correlation


def rank_targets(graph: ScoreGraph) -> Array:
    """Share of the group that is ranked below each item, minus the share above it."""
    weights = graph.item_weights
    if weights is None:
        weights = np.ones(graph.n_items)
    # target of an item: share of its group that is ranked below it minus share above, −1 to 1
    sign_graph = ScoreGraph(graph.y, graph.groups, cost="sign", sample_weight=weights)
    divergence = sign_graph.divergence  # weight × (weight of items below − above)
    weight_of_group = np.bincount(graph.groups, weights)[graph.groups]
    largest_divergence = weights * weight_of_group
    no_targets = np.zeros(graph.n_items)  # of items of weight 0
    has_weight = largest_divergence > 0
    return np.divide(divergence, largest_divergence, out=no_targets, where=has_weight)


def grow_trees(
    model: Any, n_trees: int, X: Any, graph: ScoreGraph, categorical: tuple[int, ...] = ()
) -> Any:
    """Grow a model, or a new one if it is None, to this number of trees."""
    lightgbm = lightgbm_or_none()
    if lightgbm is None:
        return _grow_scikit_learn(model, n_trees, X, graph)
    if model is None:
        model = _start_lightgbm(lightgbm, X, graph, categorical)
    for tree_number in range(model.current_iteration(), n_trees):
        if tree_number % TREES_PER_THREAD_COUNT == 0:  # count idle cores again
            model.reset_parameter({"num_threads": n_threads_for(ENTRY_OF_TREE * X.size)})
        model.update()
    return model


def predict_trees(model: Any, X: Array) -> Array:
    """Scores of items by all trees of a model, in one thread."""
    if isinstance(model, HistGradientBoostingRegressor):
        return np.asarray(model.predict(X))
    return np.asarray(model.predict(X, num_threads=1))


def is_predictive(numbers: Array, graph: ScoreGraph) -> bool:
    """Whether trees on one column predict the order of held-out groups, or items of one list."""
    X = np.reshape(numbers, (-1, 1))
    scores = np.zeros(graph.n_items)
    for held_out in column_folds(graph):
        train = np.setdiff1d(np.arange(graph.n_items), held_out)
        model = grow_trees(None, PROBE_TREES, X[train], graph.subset(train))
        scores[held_out] = predict_trees(model, X[held_out])

    # correlation of held-out scores and targets = covariance / product of standard deviations
    targets = rank_targets(graph)
    product_of_deviations = np.sqrt(scores.var() * targets.var())
    covariance = float(np.cov(scores, targets, bias=True)[0, 1])
    standard_error = 1.0 / np.sqrt(graph.n_items)
    threshold = max(LEAST_CORRELATION, LEAST_STANDARD_ERRORS * standard_error)
    is_varied = product_of_deviations > 0
    return bool(is_varied and covariance > threshold * product_of_deviations)


def column_folds(graph: ScoreGraph) -> Folds:
    """Folds of groups, or of the items of one list, for the out-of-fold scores of columns."""
    n_units = graph.n_groups
    if n_units == 1:
        n_units = graph.n_items
    return make_folds(min(COLUMN_FOLDS, n_units), graph)


def _n_leaves(n_items: int) -> int:
    if n_items < MANY_ITEMS:
        return FEW_LEAVES
    return MAX_LEAVES


def _grow_scikit_learn(model: Any, n_trees: int, X: Any, graph: ScoreGraph) -> Any:
    if model is None:
        model = HistGradientBoostingRegressor(
            learning_rate=LEARNING_RATE,
            max_leaf_nodes=_n_leaves(len(X)),
            early_stopping=False,
            warm_start=True,
            random_state=0,
        )
    model.set_params(max_iter=n_trees)  # with warm_start, `fit` adds the missing trees
    with limit_threads(n_threads_for(ENTRY_OF_TREE * X.size)):
        return model.fit(X, rank_targets(graph), sample_weight=graph.item_weights)


def _start_lightgbm(lightgbm: Any, X: Any, graph: ScoreGraph, categorical: tuple[int, ...]) -> Any:
    options = {
        "learning_rate": LEARNING_RATE,
        "num_leaves": _n_leaves(len(X)),
        "num_threads": n_threads_for(ENTRY_OF_TREE * X.size),
        "deterministic": True,
        "force_col_wise": True,
        "boost_from_average": False,
        "bin_construct_sample_cnt": MANY_ITEMS,
        "seed": 0,
        "verbosity": -1,
    }
    dataset = lightgbm.Dataset(
        X,
        rank_targets(graph),
        weight=graph.item_weights,
        categorical_feature=list(categorical),
        params=options,
    )
    return lightgbm.Booster(options, dataset)


def lightgbm_or_none() -> Any:
    """LightGBM, or None if it is not installed."""
    try:
        return import_module("lightgbm")
    except (ImportError, OSError):  # OSError: the OpenMP library is missing
        return None
