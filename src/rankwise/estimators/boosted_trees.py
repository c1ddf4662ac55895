"""Boosted regression trees for an order: the member of an AutoRanker that sees interactions."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator
from sklearn.ensemble import HistGradientBoostingRegressor
from sklearn.utils.validation import check_is_fitted

from rankwise.arrays import Array
from rankwise.estimators.base import RankerMixin
from rankwise.estimators.problem import check_rows
from rankwise.graphs import ScoreGraph
from rankwise.inputs import split_weighted
from rankwise.machine import ENTRY_OF_TREE, calm, idle_cores

MAX_LEAVES = 15
LEARNING_RATE = 0.1
BLOCK = 2**20  # places in trees that are in memory at a time


class BoostedTrees(RankerMixin, BaseEstimator):
    """Boosted trees that learn how far up in its group an item is.

    The target of an item is the weight of the items of its group below it, less that of the items
    above it, as a share of the group (the divergence of the cost "sign", equation 20 of
    [RankRLS09]). scikit-learn's HistGradientBoostingRegressor grows the trees. They are kept as
    plain arrays, so that a model file can hold them.

    Parameters
    ----------
    n_trees : int
        Number of trees.

    Attributes
    ----------
    left_, right_ : ndarray of int, shape (n_nodes,)
        Children of the nodes of all trees; they have larger numbers, and a leaf is its own child.
    feature_, threshold_ : ndarray of shape (n_nodes,)
        An item goes left if this feature is not larger than the threshold.
    value_ : ndarray of shape (n_nodes,)
        What a leaf adds to the score.
    roots_ : ndarray of int, shape (n_trees,)
        First node of each tree.
    n_features_in_ : int
        Number of features seen in `fit`.
    """

    def __init__(self, n_trees: int = 100) -> None:
        self.n_trees = n_trees

    @calm
    def fit(
        self,
        X: Any,
        y: Any,
        groups: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
    ) -> Self:
        """Grow the trees.

        Parameters
        ----------
        X : array-like or data frame of shape (n_items, n_features)
            Items.
        y : array-like of shape (n_items,) or target of `make_target`
            Scores; larger is better.
        groups : array-like of shape (n_items,), optional
            Group labels.
        sample_weight : array-like of shape (n_items,), optional
            Weights of the items.

        Returns
        -------
        BoostedTrees
            The fitted estimator.
        """
        X = check_rows(self, X)
        scores, groups, weights = split_weighted(y, groups, sample_weight)
        graph = ScoreGraph(scores, groups, sample_weight=weights)
        self._keep(grow_trees(None, self.n_trees, X, graph))
        return self

    def predict(self, X: Any) -> NDArray[Any]:
        """Score items; larger is better.

        Parameters
        ----------
        X : array-like or data frame of shape (n_items, n_features)
            Items.

        Returns
        -------
        ndarray of shape (n_items,)
            Scores.
        """
        check_is_fitted(self)
        X = np.asarray(check_rows(self, X, reset=False), dtype=np.float64)
        if (np.minimum(self.left_, self.right_) < np.arange(len(self.left_))).any():
            raise ValueError("the trees have a loop")
        scores = np.empty(len(X))
        n_rows = max(1, BLOCK // max(1, len(self.roots_)))
        for start in range(0, len(X), n_rows):
            rows = slice(start, start + n_rows)
            scores[rows] = self.value_[self._leaves(X[rows])].sum(axis=1)
        return scores

    def _leaves(self, X: Array) -> NDArray[np.intp]:
        """The leaf of each tree that each item ends in, (n_items, n_trees)."""
        each = np.arange(len(X))[:, None]
        at = np.tile(self.roots_, (len(X), 1))
        while True:
            is_left = X[each, self.feature_[at]] <= self.threshold_[at]
            below = np.where(is_left, self.left_[at], self.right_[at])
            if (below == at).all():
                return at
            at = below

    def _keep(self, model: Any) -> None:
        trees = [predictor.nodes for (predictor,) in model._predictors]
        sizes = np.array([len(nodes) for nodes in trees])
        self.roots_ = np.cumsum(sizes) - sizes
        first = np.repeat(self.roots_, sizes)
        nodes = np.concatenate(trees)
        is_leaf, own = nodes["is_leaf"].astype(bool), np.arange(len(nodes))
        self.left_ = np.where(is_leaf, own, nodes["left"] + first)
        self.right_ = np.where(is_leaf, own, nodes["right"] + first)
        self.feature_ = np.where(is_leaf, 0, nodes["feature_idx"]).astype(np.intp)
        self.threshold_ = np.where(is_leaf, 0.0, nodes["num_threshold"])
        self.value_ = np.where(is_leaf, nodes["value"], 0.0)


def order_targets(graph: ScoreGraph) -> Array:
    """The share of its group that an item is above, less the share that it is below."""
    weights = np.ones(graph.n_items) if graph.item_weights is None else graph.item_weights
    sign = ScoreGraph(graph.scores, graph.groups, cost="sign", sample_weight=weights)
    totals = np.bincount(graph.groups, weights)[graph.groups]
    size = weights * totals
    return np.divide(sign.divergence, size, out=np.zeros(graph.n_items), where=size > 0)


def grow_trees(model: Any, n_trees: int, X: Any, graph: ScoreGraph) -> Any:
    """Go on from a model, or begin one, up to so many trees."""
    if model is None:
        model = HistGradientBoostingRegressor(
            learning_rate=LEARNING_RATE,
            max_leaf_nodes=MAX_LEAVES,
            early_stopping=False,
            warm_start=True,
            random_state=0,
        )
    model.set_params(max_iter=n_trees)
    targets = order_targets(graph)
    with idle_cores(ENTRY_OF_TREE * X.size):
        return model.fit(X, targets, sample_weight=graph.item_weights)


def staged_scores(model: Any, X: Any, stages: tuple[int, ...]) -> Array:
    """Scores of items by so many of the first trees, (n_items, n_stages)."""
    found = {n: scores for n, scores in enumerate(model.staged_predict(X), 1) if n in stages}
    return np.stack([found[n] for n in stages], axis=1)
