"""Boosted trees for ranking, stored as plain arrays."""

from __future__ import annotations

from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator
from sklearn.ensemble import HistGradientBoostingRegressor
from sklearn.utils.validation import check_is_fitted

from rankwise.arrays import AnyArray, Array, Indices
from rankwise.auto.tree_growth import MAX_LEAVES, grow_trees
from rankwise.fitted_schema import FittedSchema, Floats, Ints
from rankwise.graphs import ScoreGraph
from rankwise.graphs.supervision import unpack_target
from rankwise.preprocessing.validate_features import validate_X
from rankwise.rankers.base import RankerMixin
from rankwise.runtime.threads import single_threaded
from rankwise.validation import restored_on_failure

BLOCK_PLACES = 2**20  # pairs of an item and a tree that are scored at a time
N_CODES = 256  # codes of categories that a split can distinguish
#: One node of a tree. Children are numbers in the tree, 0 for a leaf; codes that go left are 1.
NODE = np.dtype(
    [
        ("left", np.intp),
        ("right", np.intp),
        ("feature", np.intp),
        ("threshold", np.float64),
        ("gap_left", np.int8),
        ("value", np.float64),
        ("codes", np.int8, N_CODES),
    ]
)


class BoostedTrees(RankerMixin, BaseEstimator):
    """Boosted trees that predict the place of an item in its group.

    The target of an item is the weight of the items of its group below it, minus that of the items
    above it, as a share of the group (the divergence of the cost "sign", equation 20 of
    [RankRLS09]). LightGBM grows the trees if it is installed, otherwise
    scikit-learn's HistGradientBoostingRegressor. They are stored as plain arrays, so that a model
    file can contain them. X may have missing values (NaN).

    Parameters
    ----------
    n_trees : int, default=100
        Number of trees.
    categorical : tuple of int, default=()
        Columns of codes of categories, integers from 0 to 255; scikit-learn's trees treat them as
        numbers.

    Attributes
    ----------
    left_, right_ : ndarray of int, shape (n_nodes,)
        Children of the nodes of all trees; they have larger numbers, and a leaf is its own child.
    feature_, threshold_ : ndarray of shape (n_nodes,)
        An item goes left if this feature is not larger than the threshold.
    gap_left_ : ndarray of int, shape (n_nodes,)
        1 if an item with a missing value of that feature goes left.
    set_ : ndarray of int, shape (n_nodes,)
        0, or the row of `sets_` with the codes that go left.
    sets_ : ndarray of int, shape (n_sets, 256)
        1 for codes that go left.
    value_ : ndarray of shape (n_nodes,)
        Contribution of a leaf to the score.
    roots_ : ndarray of int, shape (n_trees,)
        First node of each tree.
    n_features_in_ : int
        Number of features seen in `fit`.
    """

    _fitted: ClassVar[FittedSchema] = {
        "roots_": Ints("trees"),
        "left_": Ints("nodes"),
        "right_": Ints("nodes"),
        "feature_": Ints("nodes"),
        "threshold_": Floats("nodes"),
        "gap_left_": Ints("nodes"),
        "set_": Ints("nodes"),
        "sets_": Ints("sets codes"),
        "value_": Floats("nodes"),
    }

    def __init__(self, n_trees: int = 100, *, categorical: tuple[int, ...] = ()) -> None:
        self.n_trees = n_trees
        self.categorical = categorical

    @single_threaded
    @restored_on_failure
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
        X = validate_X(self, X, ensure_all_finite="allow-nan")
        scores, groups, weights = unpack_target(y, groups, sample_weight)
        graph = ScoreGraph(scores, groups, sample_weight=weights)
        model = grow_trees(None, self.n_trees, X, graph, self.categorical)
        return self.store_trees(model, self.n_trees, X.shape[1])

    def predict(self, X: Any) -> AnyArray:
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
        X = validate_X(self, X, reset=False, ensure_all_finite="allow-nan")
        X = np.asarray(X, dtype=np.float64)
        smaller_child = np.minimum(self.left_, self.right_)
        if (smaller_child < np.arange(len(self.left_))).any():  # children have larger numbers
            raise ValueError("the trees have a loop")
        scores = np.empty(len(X))
        n_trees = max(1, len(self.roots_))
        n_rows_at_once = max(1, BLOCK_PLACES // n_trees)
        for start in range(0, len(X), n_rows_at_once):
            rows = slice(start, start + n_rows_at_once)
            value_of_trees = self.value_[self._leaves(X[rows])]
            scores[rows] = value_of_trees.sum(axis=1)
        return scores

    def store_trees(self, model: Any, n_trees: int, n_features: int) -> Self:
        """Store the first trees of a model of LightGBM or of models of scikit-learn as arrays."""
        self.n_features_in_ = n_features
        trees = _nodes_of_trees(model, n_trees)
        tree_sizes = np.array([len(tree) for tree in trees])
        nodes = np.concatenate(trees)
        self.roots_ = np.cumsum(tree_sizes) - tree_sizes  # the first node of each tree

        # children are numbered in their tree; here in all trees, and a leaf is its own child
        node_numbers = np.arange(len(nodes))
        root_of_node = np.repeat(self.roots_, tree_sizes)
        is_leaf = nodes["left"] == 0
        self.left_ = np.where(is_leaf, node_numbers, root_of_node + nodes["left"])
        self.right_ = np.where(is_leaf, node_numbers, root_of_node + nodes["right"])
        self.feature_ = nodes["feature"].copy()
        self.threshold_ = nodes["threshold"].copy()
        self.value_ = nodes["value"].copy()
        self.gap_left_ = nodes["gap_left"].copy()  # whether missing values go left

        # each set of codes is stored once; set 0 is that of the nodes without codes
        codes = nodes["codes"]
        has_codes = codes.any(axis=1)  # sorting the codes of all nodes would take seconds
        code_sets, set_of_node = np.unique(codes[has_codes], axis=0, return_inverse=True)
        no_codes = np.zeros_like(codes[:1])
        self.sets_ = np.concatenate([no_codes, code_sets])
        self.set_ = np.zeros(len(nodes), dtype=np.intp)
        self.set_[has_codes] = set_of_node + 1
        return self

    def _leaves(self, X: Array) -> Indices:
        """The leaf of each tree that each item reaches, (n_items, n_trees)."""
        # node: where each item is in each tree, (n_items, n_trees); all start at the roots
        items = np.arange(len(X))[:, None]
        node = np.tile(self.roots_, (len(X), 1))
        is_missing = np.isnan(X)
        has_missing = bool(is_missing.any())
        codes = np.clip(np.where(is_missing, 0, X), 0, N_CODES - 1).astype(np.intp)
        has_code_sets = len(self.sets_) > 1
        while True:  # all items go down one level in all trees
            feature = self.feature_[node]
            goes_left = X[items, feature] <= self.threshold_[node]
            if has_code_sets:
                code_set = self.set_[node]
                is_in_set = self.sets_[code_set, codes[items, feature]] > 0
                goes_left = np.where(code_set > 0, is_in_set, goes_left)
            if has_missing:
                missing_goes_left = self.gap_left_[node] > 0
                goes_left = np.where(is_missing[items, feature], missing_goes_left, goes_left)
            child = np.where(goes_left, self.left_[node], self.right_[node])
            if (child == node).all():  # all are leaves
                return node
            node = child

    def _check_fitted(self) -> None:
        """Check that every node leads to later nodes of its tree, down to a leaf."""
        n_nodes = len(self.left_)
        node_numbers = np.arange(n_nodes)
        tree_sizes = np.diff(self.roots_, append=n_nodes)
        largest_tree = 2 * MAX_LEAVES - 1  # nodes of a binary tree
        if self.roots_[0] != 0 or tree_sizes.min() < 1 or tree_sizes.max() > largest_tree:
            raise ValueError("the roots do not match the trees")
        end_of_tree = np.repeat(self.roots_ + tree_sizes, tree_sizes)
        for children in (self.left_, self.right_):
            if ((children < node_numbers) | (children >= end_of_tree)).any():
                raise ValueError("the trees have a loop, or a branch without a leaf")
        has_no_left_child = self.left_ == node_numbers
        has_no_right_child = self.right_ == node_numbers
        if (has_no_left_child != has_no_right_child).any():
            raise ValueError("the trees have a node with one child")
        n_sets, n_codes = self.sets_.shape
        if (self.set_ >= n_sets).any() or n_codes != N_CODES:
            raise ValueError("a node of the trees refers to a missing set of categories")
        if (self.feature_ >= self.n_features_in_).any():
            raise ValueError("a node of the trees refers to a missing feature")


def _nodes_of_trees(model: Any, n_trees: int) -> list[AnyArray]:
    """The nodes of the first trees of a model."""
    if isinstance(model, list):  # scikit-learn models of one tree
        return [_scikit_learn_nodes(tree._predictors[0][0].nodes) for tree in model[:n_trees]]
    if isinstance(model, HistGradientBoostingRegressor):
        predictors = model._predictors[:n_trees]  # a list of one predictor for each tree
        return [_scikit_learn_nodes(predictor.nodes) for (predictor,) in predictors]
    trees = model.dump_model(num_iteration=n_trees)["tree_info"]
    return [_lightgbm_nodes(tree["tree_structure"]) for tree in trees]


def _scikit_learn_nodes(source: AnyArray) -> AnyArray:
    """The nodes of a tree of scikit-learn."""
    nodes = np.zeros(len(source), dtype=NODE)
    is_leaf = source["is_leaf"] > 0
    nodes["value"][is_leaf] = source["value"][is_leaf]
    splits = source[~is_leaf]
    nodes["left"][~is_leaf] = splits["left"]
    nodes["right"][~is_leaf] = splits["right"]
    nodes["feature"][~is_leaf] = splits["feature_idx"]
    nodes["threshold"][~is_leaf] = splits["num_threshold"]
    nodes["gap_left"][~is_leaf] = splits["missing_go_to_left"]
    return nodes


def _lightgbm_nodes(root: Any) -> AnyArray:
    """The nodes of a tree of LightGBM, each before its descendants."""
    # all nodes, level by level; the list grows while it is read, so that children follow each other
    sources = [root]
    for source in sources:
        if "split_feature" in source:
            sources += [source["left_child"], source["right_child"]]

    nodes = np.zeros(len(sources), dtype=NODE)
    next_child = 1
    for node, source in zip(nodes, sources, strict=True):
        is_leaf = "split_feature" not in source
        if is_leaf:
            node["value"] = source["leaf_value"]
            continue
        node["left"] = next_child
        node["right"] = next_child + 1
        next_child += 2
        node["feature"] = source["split_feature"]
        if source["decision_type"] == "==":  # codes of categories, such as "2||5||11"
            codes = np.array(source["threshold"].split("||"), dtype=np.intp)
            node["codes"][codes[codes < N_CODES]] = 1
            continue
        node["threshold"] = source["threshold"]
        if source["missing_type"] == "NaN":
            node["gap_left"] = source["default_left"]
        else:  # missing values were 0 in training
            node["gap_left"] = source["threshold"] >= 0
    return nodes
