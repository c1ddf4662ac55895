"""Boosted trees for an order, and what they see of a table: gaps, codes, scores of columns."""

from __future__ import annotations

import itertools
from importlib import import_module
from typing import Any, ClassVar, Self

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.ensemble import HistGradientBoostingRegressor
from sklearn.linear_model import Ridge
from sklearn.utils.validation import check_is_fitted

from rankwise.arrays import Array, Indices
from rankwise.fitted_schema import FittedSchema, Floats, Ints, Values
from rankwise.graphs import ScoreGraph
from rankwise.graphs.supervision import unpack_target
from rankwise.groups import encode_groups
from rankwise.model_selection.folds import Folds, fold_of_item, make_folds
from rankwise.model_selection.shortcuts import dense_rows
from rankwise.preprocessing.group_scaling import ROUNDING, scale_in_groups
from rankwise.preprocessing.validate_features import validate_X
from rankwise.rankers.base import RankerMixin
from rankwise.runtime.threads import ENTRY_OF_TREE, limit_threads, n_threads_for, single_threaded
from rankwise.validation import restored_on_failure

FEW_LEAVES, MAX_LEAVES = 15, 63
MANY = 50_000  # items from which trees have many leaves
LEARNING_RATE = 0.1
PATIENCE = 20  # trees after which idle cores are counted again
BLOCK = 2**20  # entries of X, or places in trees, that are made at a time
N_CODES = 256  # codes of categories that a split tells apart
FOLDS = 5  # in which a column is scored by a model of the others
TELLING = 0.1, 4.0  # correlation with the target, and in standard errors, of a column that tells
ALPHAS = (1.0, 10.0, 100.0)  # ridges of the scores of a column, as numbers of rows
#: One node of a tree. Children are numbers in the tree, 0 for a leaf; codes that go left are 1.
NODE = np.dtype(
    [
        *(("left", np.intp), ("right", np.intp), ("feature", np.intp), ("threshold", np.float64)),
        *(("gap_left", np.int8), ("value", np.float64), ("codes", np.int8, N_CODES)),
    ]
)


class TreeFeatures(TransformerMixin, BaseEstimator):
    """What boosted trees see of the items: the cells of a table, and what they cannot make of them.

    The columns are numbers, codes of categories, and then one column for each value of categories
    and each word of texts. Numbers and codes stay as they are, gaps too. Beside them come the
    numbers scaled in their group, and for each category or text one column: what a ridge regression
    on its values or words alone says of the place in the group. In `fit_transform` that is said of
    each item by a regression on other groups (other items of one list), or trees would trust it too
    much.

    Parameters
    ----------
    n_codes : int
        Number of columns of codes.
    sizes : tuple of int
        Numbers of columns of each category and text.

    Attributes
    ----------
    value_coef_ : ndarray of shape (n_values,)
        Coefficients of the columns of values and words.
    needs_groups_ : bool
        Whether there are columns that are scaled in groups.
    n_features_in_ : int
        Number of columns seen in `fit`.
    """

    _fitted: ClassVar[FittedSchema] = {
        "value_coef_": Floats("values"),
        "needs_groups_": Values(),
    }

    __metadata_request__fit = {"groups": True}  # noqa: RUF012
    __metadata_request__transform = {"groups": True}  # noqa: RUF012

    def __init__(self, n_codes: int = 0, sizes: tuple[int, ...] = ()) -> None:
        self.n_codes = n_codes
        self.sizes = sizes

    def categorical(self, n_columns: int) -> tuple[int, ...]:
        """The columns of codes among so many."""
        n_cells = n_columns - sum(self.sizes)
        return tuple(range(n_cells - self.n_codes, n_cells))

    def fit(self, X: Any, y: Any, groups: ArrayLike | None = None) -> Self:
        """Learn the coefficients; see `fit_transform`."""
        self.fit_transform(X, y, groups)
        return self

    def fit_transform(
        self,
        X: Any,
        y: Any,
        groups: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
        rows: Indices | None = None,
    ) -> Array:
        """The columns for training; the scores of an item are of a model that has not seen it.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_items, n_columns)
            Items.
        y : array-like of shape (n_rows,) or target of `make_target`
            Scores; larger is better.
        groups : array-like of shape (n_rows,), optional
            Group labels.
        sample_weight : array-like of shape (n_rows,), optional
            Weights of the items.
        rows : ndarray of int, optional
            The items that y, groups and weights are of; by default all.

        Returns
        -------
        ndarray of float32, shape (n_rows, n_features)
            Columns.
        """
        X = self._check(X, reset=True)
        rows = np.arange(X.shape[0]) if rows is None else rows
        y, groups, weights = unpack_target(y, groups, sample_weight)
        self.needs_groups_ = groups is not None
        self.value_coef_ = np.zeros(sum(self.sizes))
        scores = np.empty((len(rows), len(self.sizes)))
        if self.sizes:
            wide = sp.csc_array(X[rows][:, X.shape[1] - sum(self.sizes) :])
            graph = ScoreGraph(y, groups, sample_weight=weights)
            fold = fold_of_item(_folds(graph), graph.n_items)
            for k, block in enumerate(self._slices()):
                values = wide[:, block]
                self.value_coef_[block], scores[:, k] = _column_score(
                    values, rank_targets(graph), fold
                )
        return self._join(X, rows, groups, scores)

    def transform(self, X: Any, groups: ArrayLike | None = None) -> Array:
        """The columns of new items; see `fit_transform`."""
        check_is_fitted(self)
        X = self._check(X, reset=False)
        wide = X[:, X.shape[1] - sum(self.sizes) :]
        scores = [wide[:, block] @ self.value_coef_[block] for block in self._slices()]
        return self._join(X, np.arange(X.shape[0]), groups, np.array(scores).T)

    def _check(self, X: Any, *, reset: bool) -> Any:
        return validate_X(self, X, accept_sparse="csr", reset=reset, ensure_all_finite="allow-nan")

    def _slices(self) -> list[slice]:
        bounds = itertools.accumulate(self.sizes, initial=0)
        return [slice(start, end) for start, end in itertools.pairwise(bounds)]

    def _join(self, X: Any, rows: Indices, groups: Any, scores: Array) -> Array:
        """Cells, numbers scaled in groups, and scores, made block by block."""
        n_cells = X.shape[1] - sum(self.sizes)
        n_numbers = n_cells - self.n_codes
        n_scaled = n_numbers if self.needs_groups_ else 0
        out = np.empty((len(rows), n_cells + n_scaled + len(self.sizes)), dtype=np.float32)
        codes = encode_groups(groups if self.needs_groups_ else None, len(rows)).codes
        for block in blocks_of_groups(codes, max(1, BLOCK // max(1, n_cells))):
            cells = dense_rows(X[rows[block]])[:, :n_cells]
            out[block, :n_cells] = cells
            if n_scaled:
                scaled = _scale_known(cells[:, :n_numbers], codes[block])
                out[block, n_cells : n_cells + n_scaled] = scaled
        if self.sizes:
            out[:, n_cells + n_scaled :] = scores
        return out


def blocks_of_groups(codes: Indices, most: int) -> list[Indices]:
    """Rows in blocks of about so many, of whole groups; a list is cut into every kth row."""
    n_blocks = max(1, len(codes) // most)
    if not codes.any():
        return [np.arange(k, len(codes), n_blocks) for k in range(n_blocks)]
    order = np.argsort(codes, kind="stable")
    starts = np.flatnonzero(np.diff(codes[order], prepend=-1))
    return np.split(order, starts[1:][np.diff(starts // most) > 0])


def _scale_known(numbers: Array, codes: NDArray[np.intp]) -> Array:
    """Numbers scaled in their group by those that are known there; gaps stay."""
    gaps = np.isnan(numbers)
    if not gaps.any():
        return np.asarray(scale_in_groups(numbers, codes))
    n = len(codes)
    total = sp.csr_array((np.ones(n), (codes, np.arange(n))))
    count = np.maximum(total @ ~gaps, 1)
    filled = np.where(gaps, 0.0, numbers)
    from_mean = np.where(gaps, 0.0, filled - (total @ filled / count)[codes])
    deviation, magnitude = (np.sqrt(total @ x**2 / count)[codes] for x in (from_mean, filled))
    is_more = deviation > ROUNDING * np.finfo(np.float64).eps * magnitude
    scaled = np.divide(from_mean, deviation, out=np.zeros_like(filled), where=is_more)
    return np.where(gaps, np.nan, scaled)


def _column_score(W: Any, targets: Array, fold: NDArray[np.intp]) -> tuple[Array, Array]:
    """Coefficients of a ridge regression on some columns, and its scores without each fold."""
    best, alpha_of_best, held_of_best = np.inf, ALPHAS[0], targets
    for alpha in ALPHAS:
        held = np.empty(len(targets))
        for k in range(fold.max() + 1):
            inside = fold == k
            held[inside] = W.tocsr()[inside] @ _ridge(W[~inside], targets[~inside], alpha)
        error = float(((held - targets) ** 2).sum())
        if error < best:
            best, alpha_of_best, held_of_best = error, alpha, held
    return _ridge(W, targets, alpha_of_best), held_of_best


def _ridge(W: Any, targets: Array, alpha: float) -> Array:
    model = Ridge(alpha, fit_intercept=False, solver="lsqr", tol=1e-4).fit(W, targets)
    return np.asarray(model.coef_)


class BoostedTrees(RankerMixin, BaseEstimator):
    """Boosted trees that learn how far up in its group an item is.

    The target of an item is the weight of the items of its group below it, less that of the items
    above it, as a share of the group (the divergence of the cost "sign", equation 20 of
    [RankRLS09]). LightGBM grows the trees where it is installed,
    scikit-learn's HistGradientBoostingRegressor otherwise. They are kept as plain arrays, so that a
    model file can hold them. X may have gaps (NaN).

    Parameters
    ----------
    n_trees : int
        Number of trees.
    categorical : tuple of int
        Columns that are codes of categories, whole numbers from 0 to 255; scikit-learn's trees take
        them as numbers.

    Attributes
    ----------
    left_, right_ : ndarray of int, shape (n_nodes,)
        Children of the nodes of all trees; they have larger numbers, and a leaf is its own child.
    feature_, threshold_ : ndarray of shape (n_nodes,)
        An item goes left if this feature is not larger than the threshold.
    gap_left_ : ndarray of int, shape (n_nodes,)
        1 where an item without that feature goes left.
    set_ : ndarray of int, shape (n_nodes,)
        0, or the row of `sets_` that tells which codes go left.
    sets_ : ndarray of int, shape (n_sets, 256)
        1 for codes that go left.
    value_ : ndarray of shape (n_nodes,)
        What a leaf adds to the score.
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
        return self.keep(model, self.n_trees, X.shape[1])

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
        checked = validate_X(self, X, reset=False, ensure_all_finite="allow-nan")
        X = np.asarray(checked, dtype=np.float64)
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
        gaps = np.isnan(X)
        codes = np.clip(np.where(gaps, 0, X), 0, N_CODES - 1).astype(np.intp)
        has_gaps, has_sets = bool(gaps.any()), len(self.sets_) > 1
        while True:
            column = self.feature_[at]
            is_left = X[each, column] <= self.threshold_[at]
            if has_sets:
                row = self.set_[at]
                is_left = np.where(row > 0, self.sets_[row, codes[each, column]] > 0, is_left)
            if has_gaps:
                is_left = np.where(gaps[each, column], self.gap_left_[at] > 0, is_left)
            below = np.where(is_left, self.left_[at], self.right_[at])
            if (below == at).all():
                return at
            at = below

    def keep(self, model: Any, n_trees: int, n_features: int) -> Self:
        """Keep so many trees of a model of LightGBM or scikit-learn as arrays."""
        self.n_features_in_ = n_features
        if hasattr(model, "dump_model"):
            found = model.dump_model(num_iteration=n_trees)["tree_info"]
            trees = [_light_nodes(tree["tree_structure"]) for tree in found]
        else:
            trees = [_plain_nodes(predictor.nodes) for (predictor,) in model._predictors[:n_trees]]
        sizes = np.array([len(tree) for tree in trees])
        self.roots_ = np.cumsum(sizes) - sizes
        nodes, first = np.concatenate(trees), np.repeat(self.roots_, sizes)
        own, is_leaf = np.arange(len(first)), nodes["left"] == 0
        self.left_ = np.where(is_leaf, own, first + nodes["left"])
        self.right_ = np.where(is_leaf, own, first + nodes["right"])
        for name in ("feature", "threshold", "value", "gap_left"):
            setattr(self, f"{name}_", nodes[name].copy())
        self.set_ = np.zeros(len(nodes), dtype=np.intp)
        has_codes = nodes["codes"].any(axis=1)  # to sort the codes of all nodes takes seconds
        sets, number = np.unique(nodes["codes"][has_codes], axis=0, return_inverse=True)
        self.sets_ = np.concatenate([np.zeros_like(nodes["codes"][:1]), sets])
        self.set_[has_codes] = number + 1
        return self

    def _check_fitted(self) -> None:
        """Check that every node leads to later nodes of its tree, down to a leaf."""
        n_nodes = len(self.left_)
        nodes = np.arange(n_nodes)
        sizes = np.diff(self.roots_, append=n_nodes)
        if self.roots_[0] != 0 or sizes.min() < 1 or sizes.max() >= 2 * MAX_LEAVES:
            raise ValueError("the trees have other roots than trees have")
        end_of_tree = np.repeat(self.roots_ + sizes, sizes)
        for children in (self.left_, self.right_):
            if ((children < nodes) | (children >= end_of_tree)).any():
                raise ValueError("the trees have a loop, or a branch that leads nowhere")
        if ((self.left_ == nodes) != (self.right_ == nodes)).any():
            raise ValueError("the trees have a node with one child")
        n_sets, n_codes = self.sets_.shape
        if (self.set_ >= n_sets).any() or n_codes != N_CODES:
            raise ValueError("a node of the trees refers to a missing set of categories")
        if (self.feature_ >= self.n_features_in_).any():
            raise ValueError("a node of the trees refers to a missing feature")


def rank_targets(graph: ScoreGraph) -> Array:
    """The share of its group that an item is above, less the share that it is below."""
    weights = np.ones(graph.n_items) if graph.item_weights is None else graph.item_weights
    sign = ScoreGraph(graph.y, graph.groups, cost="sign", sample_weight=weights)
    totals = np.bincount(graph.groups, weights)[graph.groups]
    size = weights * totals
    return np.divide(sign.divergence, size, out=np.zeros(graph.n_items), where=size > 0)


def grow_trees(
    model: Any, n_trees: int, X: Any, graph: ScoreGraph, categorical: tuple[int, ...] = ()
) -> Any:
    """Go on from a model, or begin one, up to so many trees."""
    n_threads = n_threads_for(ENTRY_OF_TREE * X.size)
    n_leaves = FEW_LEAVES if len(X) < MANY else MAX_LEAVES
    lightgbm = _lightgbm()
    if lightgbm is None:
        if model is None:
            model = HistGradientBoostingRegressor(
                learning_rate=LEARNING_RATE,
                max_leaf_nodes=n_leaves,
                early_stopping=False,
                warm_start=True,
                random_state=0,
            )
        model.set_params(max_iter=n_trees)
        with limit_threads(n_threads):
            return model.fit(X, rank_targets(graph), sample_weight=graph.item_weights)
    options = {
        "learning_rate": LEARNING_RATE,
        "num_leaves": n_leaves,
        "num_threads": n_threads,
        "deterministic": True,
        "force_col_wise": True,
        "boost_from_average": False,
        "bin_construct_sample_cnt": MANY,
        "seed": 0,
        "verbosity": -1,
    }
    if model is None:
        rows = lightgbm.Dataset(
            X,
            rank_targets(graph),
            weight=graph.item_weights,
            categorical_feature=list(categorical),
            params=options,
        )
        model = lightgbm.Booster(options, rows)
    for k in range(model.current_iteration(), n_trees):
        if k % PATIENCE == 0:
            model.reset_parameter({"num_threads": n_threads_for(ENTRY_OF_TREE * X.size)})
        model.update()
    return model


def _lightgbm() -> Any:
    """LightGBM, or None where it is not installed."""
    try:
        return import_module("lightgbm")
    except (ImportError, OSError):  # OSError: its library lacks the one of OpenMP
        return None


def _folds(graph: ScoreGraph) -> Folds:
    n_units = graph.n_groups if graph.n_groups > 1 else graph.n_items
    return make_folds(min(FOLDS, n_units), graph)


def is_predictive(numbers: Array, graph: ScoreGraph) -> bool:
    """Whether trees on one column order groups, or items of one list, that they have not seen."""
    X, targets, n_items = np.reshape(numbers, (-1, 1)), rank_targets(graph), graph.n_items
    held = np.zeros(n_items)
    for rows in _folds(graph):
        others = np.setdiff1d(np.arange(n_items), rows)
        model = grow_trees(None, 50, X[others], graph.subset(others))
        held[rows] = predict_trees(model, X[rows])
    least, errors = TELLING
    size = np.sqrt(held.var() * targets.var())
    covariance = float(np.cov(held, targets, bias=True)[0, 1])
    return bool(covariance > max(least, errors / np.sqrt(n_items)) * size > 0)


def predict_trees(model: Any, X: Array) -> Array:
    """Scores of items by all trees of a model, in one thread."""
    options = {"num_threads": 1} if hasattr(model, "dump_model") else {}
    return np.asarray(model.predict(X, **options))


def _plain_nodes(theirs: NDArray[Any]) -> NDArray[Any]:
    """The nodes of a tree of scikit-learn."""
    nodes = np.zeros(len(theirs), dtype=NODE)
    is_leaf = theirs["is_leaf"] > 0
    nodes["value"][is_leaf] = theirs["value"][is_leaf]
    theirs = theirs[~is_leaf]
    nodes["left"][~is_leaf], nodes["right"][~is_leaf] = theirs["left"], theirs["right"]
    nodes["feature"][~is_leaf] = theirs["feature_idx"]
    nodes["threshold"][~is_leaf] = theirs["num_threshold"]
    nodes["gap_left"][~is_leaf] = theirs["missing_go_to_left"]
    return nodes


def _light_nodes(root: Any) -> NDArray[Any]:
    """The nodes of a tree of LightGBM, each before those below it."""
    queue = [root]
    for node in queue:
        queue += [node[side] for side in ("left_child", "right_child") if side in node]
    nodes = np.zeros(len(queue), dtype=NODE)
    next_one = 1
    for node, theirs in zip(nodes, queue, strict=True):
        if "split_feature" not in theirs:
            node["value"] = theirs["leaf_value"]
            continue
        node["left"], node["right"] = next_one, next_one + 1
        next_one += 2
        node["feature"] = theirs["split_feature"]
        if theirs["decision_type"] == "==":
            codes = np.array(theirs["threshold"].split("||"), dtype=np.intp)
            node["codes"][codes[codes < N_CODES]] = 1
            continue
        node["threshold"] = theirs["threshold"]
        knows_gaps = theirs["missing_type"] == "NaN"
        node["gap_left"] = theirs["default_left"] if knows_gaps else theirs["threshold"] >= 0
    return nodes
