"""Boosted trees for an order, and what they see of a table: gaps, codes, scores of columns."""

from __future__ import annotations

import itertools
from importlib import import_module
from typing import Any, Self

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.ensemble import HistGradientBoostingRegressor
from sklearn.linear_model import Ridge
from sklearn.utils.validation import check_is_fitted

from rankwise.arrays import Array
from rankwise.estimators.base import RankerMixin
from rankwise.estimators.training_data import check_rows
from rankwise.features.group_scaling import ROUNDING, scale_in_groups
from rankwise.graphs import ScoreGraph
from rankwise.groups import encode_groups
from rankwise.inputs import split_weighted
from rankwise.machine import ENTRY_OF_TREE, calm, count_idle_cores, limit_threads
from rankwise.model_selection.folds import fold_numbers, make_folds

MAX_LEAVES = 15
LEARNING_RATE = 0.1
BLOCK = 2**20  # places in trees that are in memory at a time
N_CODES = 256  # codes of categories that a split tells apart
FOLDS = 5  # in which a column is scored by a model of the others
ALPHAS = (1.0, 10.0, 100.0)  # ridges of the scores of a column, as numbers of rows
NAN_IS_MISSING = 2  # how LightGBM marks a split that knows gaps


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

    __metadata_request__fit_transform = {"groups": True}  # noqa: RUF012
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

    def fit_transform(self, X: Any, y: Any, groups: ArrayLike | None = None) -> Array:
        """The columns for training; the scores of an item are of a model that has not seen it.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_items, n_columns)
            Items.
        y : array-like of shape (n_items,) or target of `make_target`
            Scores; larger is better.
        groups : array-like of shape (n_items,), optional
            Group labels.

        Returns
        -------
        ndarray of shape (n_items, n_features)
            Columns.
        """
        X = self._check(X, reset=True)
        y, groups, weights = split_weighted(y, groups)
        self.needs_groups_ = groups is not None
        cells, wide = self._split(X)
        scores = np.empty((len(cells), 0))
        self.value_coef_ = np.zeros(sum(self.sizes))
        if self.sizes:
            graph = ScoreGraph(y, groups, sample_weight=weights)
            n_units = graph.n_groups if graph.n_groups > 1 else graph.n_items
            folds = make_folds(min(FOLDS, n_units), graph)
            targets, fold = order_targets(graph), fold_numbers(folds, graph.n_items)
            columns = []
            for block in self._slices():
                coef, held = _column_score(sp.csc_array(wide)[:, block], targets, fold)
                self.value_coef_[block] = coef
                columns.append(held)
            scores = np.stack(columns, axis=1)
        return self._join(cells, groups, scores)

    def transform(self, X: Any, groups: ArrayLike | None = None) -> Array:
        """The columns of new items; see `fit_transform`."""
        check_is_fitted(self)
        cells, wide = self._split(self._check(X, reset=False))
        scores = [wide[:, block] @ self.value_coef_[block] for block in self._slices()]
        return self._join(cells, groups, np.stack(scores, axis=1) if scores else None)

    def _check(self, X: Any, *, reset: bool) -> Any:
        return check_rows(self, X, accept_sparse="csr", reset=reset, ensure_all_finite="allow-nan")

    def _split(self, X: Any) -> tuple[Array, Any]:
        n_cells = X.shape[1] - sum(self.sizes)
        cells = X[:, :n_cells]
        return (cells.toarray() if sp.issparse(X) else cells), X[:, n_cells:]

    def _slices(self) -> list[slice]:
        bounds = itertools.accumulate(self.sizes, initial=0)
        return [slice(start, end) for start, end in itertools.pairwise(bounds)]

    def _join(self, cells: Array, groups: Any, scores: Array | None) -> Array:
        parts = [cells]
        if self.needs_groups_:
            numbers = cells[:, : cells.shape[1] - self.n_codes]
            codes = encode_groups(groups, len(cells)).codes
            parts.append(_scale_known(numbers, codes))
        parts += [] if scores is None else [scores]
        return np.hstack([part.astype(np.float32) for part in parts])  # half of the memory


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
    [RankRLS09]). LightGBM grows the trees where it is installed (``pip install rankwise[trees]``),
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

    def __init__(self, n_trees: int = 100, *, categorical: tuple[int, ...] = ()) -> None:
        self.n_trees = n_trees
        self.categorical = categorical

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
        X = check_rows(self, X, ensure_all_finite="allow-nan")
        scores, groups, weights = split_weighted(y, groups, sample_weight)
        graph = ScoreGraph(scores, groups, sample_weight=weights)
        self._keep(grow_trees(None, self.n_trees, X, graph, self.categorical))
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
        checked = check_rows(self, X, reset=False, ensure_all_finite="allow-nan")
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

    def _keep(self, model: Any) -> None:
        """Keep the trees as arrays: those of LightGBM from its text, those of scikit-learn."""
        is_light = hasattr(model, "model_to_string")
        trees = _light_trees(model) if is_light else _plain_trees(model)
        sizes = np.array([len(tree["left"]) for tree in trees])
        self.roots_ = np.cumsum(sizes) - sizes
        first = np.repeat(self.roots_, sizes)
        nodes = {key: np.concatenate([tree[key] for tree in trees]) for key in trees[0]}
        own = np.arange(len(first))
        is_leaf = nodes["left"] < 0
        self.left_ = np.where(is_leaf, own, nodes["left"] + first)
        self.right_ = np.where(is_leaf, own, nodes["right"] + first)
        self.feature_ = np.where(is_leaf, 0, nodes["feature"]).astype(np.intp)
        self.threshold_ = np.where(is_leaf, 0.0, nodes["threshold"])
        self.value_ = np.where(is_leaf, nodes["value"], 0.0)
        self.gap_left_ = np.where(is_leaf, 0, nodes["gap_left"]).astype(np.int8)
        rows, self.set_ = np.unique(nodes["bits"], axis=0, return_inverse=True)
        self.sets_ = rows.astype(np.int8)


def order_targets(graph: ScoreGraph) -> Array:
    """The share of its group that an item is above, less the share that it is below."""
    weights = np.ones(graph.n_items) if graph.item_weights is None else graph.item_weights
    sign = ScoreGraph(graph.scores, graph.groups, cost="sign", sample_weight=weights)
    totals = np.bincount(graph.groups, weights)[graph.groups]
    size = weights * totals
    return np.divide(sign.divergence, size, out=np.zeros(graph.n_items), where=size > 0)


def grow_trees(
    model: Any, n_trees: int, X: Any, graph: ScoreGraph, categorical: tuple[int, ...] = ()
) -> Any:
    """Go on from a model, or begin one, up to so many trees."""
    n_threads = count_idle_cores(ENTRY_OF_TREE * X.size)
    lightgbm = _lightgbm()
    if lightgbm is None:
        if model is None:
            model = HistGradientBoostingRegressor(
                learning_rate=LEARNING_RATE,
                max_leaf_nodes=MAX_LEAVES,
                early_stopping=False,
                warm_start=True,
                random_state=0,
            )
        model.set_params(max_iter=n_trees)
        with limit_threads(n_threads):
            return model.fit(X, order_targets(graph), sample_weight=graph.item_weights)
    options = {
        "learning_rate": LEARNING_RATE,
        "num_leaves": MAX_LEAVES,
        "num_threads": n_threads,
        "deterministic": True,
        "force_col_wise": True,
        "boost_from_average": False,
        "seed": 0,
        "verbosity": -1,
    }
    if model is None:
        rows = lightgbm.Dataset(
            X,
            order_targets(graph),
            weight=graph.item_weights,
            categorical_feature=list(categorical),
            params=options,
        )
        model = lightgbm.Booster(options, rows)
    model.reset_parameter({"num_threads": n_threads})
    for _ in range(model.current_iteration(), n_trees):
        model.update()
    return model


def _lightgbm() -> Any:
    """LightGBM, or None where it is not installed."""
    try:
        return import_module("lightgbm")
    except (ImportError, OSError):  # OSError: its library lacks the one of OpenMP
        return None


def staged_scores(model: Any, X: Any, stages: tuple[int, ...]) -> Array:
    """Scores of items by so many of the first trees, (n_items, n_stages)."""
    if hasattr(model, "current_iteration"):
        columns = [model.predict(X, num_iteration=n, num_threads=1) for n in stages]
        return np.stack(columns, axis=1)
    found = {n: scores for n, scores in enumerate(model.staged_predict(X), 1) if n in stages}
    return np.stack([found[n] for n in stages], axis=1)


def _plain_trees(model: Any) -> list[dict[str, Array]]:
    """The trees of scikit-learn; children of leaves are −1."""
    trees = []
    for (predictor,) in model._predictors:
        nodes = predictor.nodes
        is_leaf = nodes["is_leaf"].astype(bool)
        children = [
            np.where(is_leaf, -1, nodes[side].astype(np.intp)) for side in ("left", "right")
        ]
        trees.append(
            {
                "left": children[0],
                "right": children[1],
                "feature": nodes["feature_idx"],
                "threshold": nodes["num_threshold"],
                "gap_left": nodes["missing_go_to_left"],
                "value": nodes["value"],
                "bits": np.zeros((len(nodes), N_CODES), dtype=np.int8),
            }
        )
    return trees


def _light_trees(model: Any) -> list[dict[str, Array]]:
    """The trees of LightGBM, from the arrays of its model text: inner nodes, and then leaves."""
    trees = []
    text = model.model_to_string(num_iteration=-1).partition("\nend of trees")[0]
    for part in text.split("\nTree=")[1:]:
        lines = (line.partition("=") for line in part.splitlines()[1:])
        words = {key: value.split() for key, _, value in lines}
        values = np.array(words["leaf_value"], dtype=np.float64)
        n_inner, n_leaves = len(words.get("split_feature", ())), len(values)

        def inner(key: str, kind: Any, words: Any = words, n_leaves: int = n_leaves) -> Any:
            known = np.array(words.get(key, []), dtype=kind)
            return np.concatenate([known, np.full(n_leaves, -1, dtype=kind)])

        flags, thresholds = inner("decision_type", np.intp), inner("threshold", np.float64)
        is_inner = np.arange(len(flags)) < n_inner
        is_set = (flags & 1 > 0) & is_inner
        knows_gaps = flags >> 2 == NAN_IS_MISSING
        gap_left = np.where(knows_gaps, flags >> 1 & 1, thresholds >= 0)  # else a gap counts as 0
        sides = [inner(side, np.intp) for side in ("left_child", "right_child")]
        left, right = (np.where(side < 0, n_inner - 1 - side, side) for side in sides)
        bits = np.zeros((len(flags), N_CODES), dtype=np.int8)
        if is_set.any():
            bounds = np.array(words["cat_boundaries"], dtype=np.intp)
            masks = np.array(words["cat_threshold"], dtype="<u4")
            for node in np.flatnonzero(is_set):
                k = int(thresholds[node])
                own = np.unpackbits(
                    masks[bounds[k] : bounds[k + 1]].view(np.uint8), bitorder="little"
                )
                bits[node, : len(own)] = own[:N_CODES]
        trees.append(
            {
                "left": np.where(is_inner, left, -1),
                "right": np.where(is_inner, right, -1),
                "feature": inner("split_feature", np.intp),
                "threshold": np.where(is_set, 0.0, thresholds),
                "gap_left": np.where(is_set, 0, gap_left),
                "value": np.concatenate([np.zeros(n_inner), values]),
                "bits": bits,
            }
        )
    return trees
