"""What an AutoRanker combines: the menu, other people's models, and how each is held out.

All entries of the menu but the last are linear `RankRLS` models of some features, so they have the
same exact hold-out. They were written down from the prototype of the design before any run of this
code: each scaling, each expansion and each cost is there, and cheap entries come first. Boosted
trees were added for features that interact.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike
from sklearn.base import clone
from sklearn.kernel_approximation import Nystroem
from sklearn.metrics.pairwise import euclidean_distances
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils import column_or_1d

from rankwise.arrays import Array, Indices
from rankwise.estimators.anatomy import fit_transform, last_step
from rankwise.estimators.base import RankerMixin
from rankwise.estimators.boosted_trees import BoostedTrees, grow_trees, staged_scores
from rankwise.estimators.group_scaler import GroupScaler
from rankwise.estimators.hinge_features import HingeFeatures
from rankwise.estimators.problem import ranking_loss
from rankwise.estimators.rank_rls import RankRLS
from rankwise.features.group_scaling import scale_in_groups
from rankwise.graphs import PreferenceGraph, ScoreGraph
from rankwise.groups import encode_groups
from rankwise.inputs import (
    as_scores,
    as_weights,
    check_option,
    make_target,
    read_target,
    split_weighted,
    with_weights,
)
from rankwise.machine import ENTRY_OF_TREE, check_matrix_fits, count_idle_cores
from rankwise.metrics import Metric
from rankwise.model_selection.curves import check_scoring, mean_defined, score_groups
from rankwise.model_selection.folds import Folds, fold_numbers, make_folds
from rankwise.model_selection.scoring import predict_items

DECADES = 13  # of alphas that are tried, from the largest default one: features are scaled
N_BASIS = 300  # items of the basis of a kernel
WIDTH = 0.3  # gamma times the median squared distance
N_KNOTS = 4
MOST_HINGES = 1000  # columns of an expansion by hinges
SAMPLE = 500  # items between which distances are measured
WIDE = 2000  # columns of sparse items from which groups are held out in folds, by iterations
TOL = 1e-4  # of iterations, which only wide sparse items need: an order is settled long before 1e-8
COPIES = 3  # of its features that a hold-out has in memory at a time
LIST_FOLDS = 5  # of the items of one list
FOREIGN_FOLDS = 5  # of groups, for models that are trained again
TREE_FOLDS = 3
STAGES = ((20, 40, 80), (160, 320), (640,))  # a row is grown if the end of that before is the best
LEAST_FOR_TREES = 500  # items
MOST_GRADES = 32  # 2 ** y is the gain of NDCG
CLEAR = 1.0  # standard errors by which a candidate, or a combination, is clearly better


@dataclass(eq=False)
class TrainingData:
    """Checked data.

    Attributes
    ----------
    X : ndarray or csr matrix
        Items.
    y : ndarray or PreferenceGraph
        Scores, or a graph that brings its own cost.
    groups : ndarray or None
        Groups of the items.
    graph : PreferenceGraph
        What is known about the items.
    weights : ndarray or None
        Weights of the items; a graph as y has its own.
    """

    X: Any
    y: Any
    groups: Any
    graph: PreferenceGraph
    weights: Any = None

    @property
    def target(self) -> tuple[Any, Any]:
        """What `fit` of a ranker gets after X; scores carry their weights."""
        if isinstance(self.y, PreferenceGraph):
            return self.y, None
        return with_weights(self.y, self.groups, self.weights)

    def subset(self, rows: Any) -> TrainingData:
        """The same of some items."""
        graph = self.graph.subset(rows)
        y = graph if isinstance(self.y, PreferenceGraph) else self.y[rows]
        groups = None if self.groups is None else self.groups[rows]
        weights = None if self.weights is None else self.weights[rows]
        return TrainingData(self.X[rows], y, groups, graph, weights)


def check_data(
    X: Any, y: Any, groups: ArrayLike | None, sample_weight: ArrayLike | None = None
) -> TrainingData:
    """Check y, groups and weights as `RankRLS.fit` does; several outputs are refused."""
    loss, shape = ranking_loss(
        X.shape[0], read_target(y, groups, sample_weight), "magnitude", "include", "pairs", 0.0
    )
    if len(shape) and shape[0] > 1:
        raise ValueError(
            f"y has {shape[0]} outputs; AutoRanker learns one output, so fit one for each column "
            "(RankRLSCV learns several at once)."
        )
    if isinstance(y, PreferenceGraph):
        graph = loss.graph
        has_groups = bool(getattr(y, "has_groups", y.scores is not None and y.n_groups > 1))
        if graph.scores is None and not has_groups:
            _check_not_connected(graph)
        return TrainingData(X, graph, y.group_labels[y.groups] if has_groups else None, graph)
    y, groups, weights = split_weighted(y, groups, sample_weight)
    scores = column_or_1d(as_scores(y), warn=True)
    weights = None if weights is None else as_weights(weights, len(scores))
    labels = None
    if groups is not None:
        codes, names = encode_groups(groups, len(scores))
        labels = names[codes]
    graph = ScoreGraph(scores, labels, sample_weight=weights)
    if not graph.divergence.any():
        raise ValueError(
            "there is nothing to rank: no two items of one group (of weight more than 0) have "
            "different scores; check y and groups."
        )
    return TrainingData(X, scores, labels, graph, weights)


def _check_not_connected(graph: PreferenceGraph) -> None:
    in_component = np.bincount(graph.components, graph.degrees)
    if in_component.max() > in_component.sum() / 2:
        raise ValueError(
            "most of these preferences are connected with each other, so no items can be held out. "
            "RankRLSCV holds out single preferences; or build the PairGraph with groups."
        )


@dataclass(eq=False)
class HeldOut:
    """What is held out in turn: each group, or five folds of the items of one list.

    Attributes
    ----------
    graph : PreferenceGraph
        What is known about the items.
    metric : Metric
        How held-out scores are judged. By default ndcg@10 for grades in groups, else disagreement.
    folds : list of ndarray of int
        Items that are held out together.
    is_compared : bool
        Whether the items of a fold are compared with each other only, and scaled together.
    """

    graph: PreferenceGraph
    metric: Metric
    folds: Folds
    is_compared: bool

    @classmethod
    def of(cls, data: TrainingData, scoring: Any) -> HeldOut:
        """Hold out one group at a time; wide sparse items in five folds of groups."""
        graph, y = data.graph, data.graph.scores
        if scoring is None:
            scoring = "disagreement"
            if y is not None and data.groups is not None:
                is_grade = (y >= 0) & (y < MOST_GRADES) & (y % 1 == 0)
                scoring = "ndcg@10" if is_grade.all() else scoring
        metric = check_scoring(scoring)
        if y is None and metric.name not in ("disagreement", "concordance"):
            raise ValueError(
                f"scoring={metric.name!r} needs scores, but y is a graph of explicit preferences; "
                "use scoring='disagreement' or 'concordance'."
            )
        is_wide = sp.issparse(data.X) and data.X.shape[1] > WIDE
        n_folds: int | None = None
        if graph.n_groups == 1:
            n_folds = max(2, min(LIST_FOLDS, graph.n_items // 2))
        elif is_wide and graph.n_groups >= LIST_FOLDS:
            n_folds = LIST_FOLDS
        is_compared = y is not None or data.groups is not None
        return cls(graph, metric, make_folds(n_folds, graph), is_compared)

    @cached_property
    def unit(self) -> Indices:
        """For each item the number of its group, or of its fold of one list."""
        fold = fold_numbers(self.folds, self.graph.n_items)
        joined = self.graph.groups * len(self.folds) + fold
        return np.asarray(np.unique(joined, return_inverse=True)[1], dtype=np.intp)

    @property
    def sign(self) -> float:
        """1 if the metric is the better the larger, else −1."""
        return 1.0 if self.metric.greater_is_better else -1.0

    def judge(self, held: Array, metric: Metric | None = None) -> Array:
        """The metric in each unit, (n_units, n_candidates), of scores (n_items, n_candidates)."""
        metric = metric or self.metric
        return score_groups(self.graph, held[:, None], self.folds, metric)[0][:, :, 0]

    def scaled(self, held: Array) -> Array:
        """Columns of held-out scores with mean 0 and deviation 1 in each unit."""
        codes = self.unit if self.is_compared else np.zeros(len(held), dtype=np.intp)
        return np.asarray(scale_in_groups(held, codes))


def is_worse(scores: Array, rival: Array, sign: float) -> bool:
    """Whether scores in units are worse than those of a rival by more than a standard error."""
    gap = sign * (scores - rival)
    gap = gap[~np.isnan(gap)]
    return len(gap) > 1 and bool(gap.mean() < -CLEAR * gap.std(ddof=1) / np.sqrt(len(gap)))


class Recipe(NamedTuple):
    """One entry of the menu.

    Attributes
    ----------
    expansion : {"linear", "hinges", "rbf", "trees"}
        The scaled features as they are, with hinges, or kernel values to a basis of items; or
        boosted trees of the scaled features.
    scaling : {"standard", "group", "log+group", "standard+group", "log+standard"}
        How the features are scaled.
    cost, ties : str
        As in `RankRLS`.
    """

    expansion: str
    scaling: str
    cost: str = "magnitude"
    ties: str = "include"

    @property
    def name(self) -> str:
        """Such as "rbf, group, magnitude without ties"."""
        without = " without ties" if self.ties == "exclude" else ""
        return f"{self.expansion}, {self.scaling}, {self.cost}{without}"

    def ranker(self, X: Any, alpha: float = 1e-3) -> RankRLS:
        """The model on features X; sparse ones have the exact shortcut, wide ones iterations."""
        solver = "auto"
        if sp.issparse(X):
            solver = "primal" if X.shape[1] <= WIDE else "iterative"
        return RankRLS(alpha, cost=self.cost, ties=self.ties, solver=solver, tol=TOL)


MENU = (
    Recipe("linear", "standard"),
    Recipe("linear", "group", ties="exclude"),
    Recipe("linear", "log+group", "sign"),
    Recipe("linear", "standard+group", ties="exclude"),
    Recipe("hinges", "standard"),
    Recipe("hinges", "group", ties="exclude"),
    Recipe("hinges", "log+group", "sign"),
    Recipe("rbf", "standard"),
    Recipe("rbf", "group", ties="exclude"),
    Recipe("rbf", "log+group", "sign"),
)
TREES = Recipe("trees", "standard+group", "sign")


def menu_for(data: TrainingData) -> list[Recipe]:
    """The entries that differ on these data.

    Without groups scaling in groups is the same as standard scaling. Explicit preferences bring
    their own cost, and trees need scores and many items. Sparse features stay sparse, so they get
    neither hinges nor trees; and few features allow hinges.
    """
    X, has_scores = data.X, data.y is not data.graph
    is_dense = not sp.issparse(X)
    has_trees = has_scores and is_dense and X.shape[0] >= LEAST_FOR_TREES
    menu: list[Recipe] = []
    for recipe in (*MENU, TREES) if has_trees else MENU:
        if data.groups is None:
            scaling = "log+standard" if "log" in recipe.scaling else "standard"
            recipe = recipe._replace(scaling=scaling)
        if not has_scores:
            recipe = recipe._replace(cost="magnitude", ties="include")
        if recipe.expansion != "hinges" or (is_dense and 2 * X.shape[1] <= MOST_HINGES):
            menu.append(recipe)
    return list(dict.fromkeys(menu))


def asked_members(members: Any, data: TrainingData) -> dict[str, Any]:
    """Names, and entries of the menu or rankers, as the user asks for them."""
    given, menu = [members] if isinstance(members, str) else members, menu_for(data)
    if not isinstance(given, (list, tuple)) or not given:
        raise ValueError(f"members={given!r}; expected 'default' or a list of names and rankers.")
    recipes = {recipe.name: recipe for recipe in menu}
    asked: dict[str, Any] = {}
    for each in given:
        if isinstance(each, str):
            check_option("members", each, ("default", *recipes))
            asked.update(recipes if each == "default" else {each: recipes[each]})
            continue
        name, ranker = each if isinstance(each, tuple) else (type(each).__name__, each)
        if not (hasattr(ranker, "fit") and hasattr(ranker, "predict")):
            raise ValueError(f"members has {ranker!r:.80}, which has no fit and predict.")
        same = sum(other == name or other.startswith(f"{name} ") for other in asked)
        asked[f"{name} {same + 1}" if name in asked else name] = ranker
    return asked


class Features:
    """What the members see of the items; members of one scaling share its columns.

    Parameters
    ----------
    data : TrainingData
        Items and their groups.
    seed : int
        Seed of the choice of basis items.
    """

    def __init__(self, data: TrainingData, seed: int) -> None:
        self._X, self._groups, self._seed = data.X, data.groups, seed
        self._scaled: dict[str, tuple[list[Any], Any]] = {}

    def make(self, recipe: Recipe) -> tuple[list[Any], Any]:
        """The fitted steps before the ranker of an entry, and the features that it gets."""
        if recipe.scaling not in self._scaled:
            self._check_memory(recipe._replace(expansion="linear"))
            self._scaled[recipe.scaling] = self._scale(recipe.scaling)
        steps, scaled = self._scaled[recipe.scaling]
        if recipe.expansion not in ("hinges", "rbf"):
            return steps, scaled
        self._check_memory(recipe)
        expansion: Any = HingeFeatures(self._n_knots(scaled.shape[1]))
        if recipe.expansion == "rbf":
            n_basis = min(N_BASIS, scaled.shape[0])
            gamma = WIDTH / self._median_distance(scaled)
            expansion = Nystroem(gamma=gamma, n_components=n_basis, random_state=self._seed)
        return [*steps, expansion], expansion.fit_transform(scaled)

    def _scale(self, scaling: str) -> tuple[list[Any], Any]:
        with_mean = not sp.issparse(self._X)
        scaler: Any = StandardScaler(with_mean=with_mean)
        if scaling != "standard":
            both, log = scaling == "standard+group", "log" in scaling
            scaler = GroupScaler(with_log=log, with_standard=both, with_mean=with_mean)
        return [scaler], fit_transform(scaler, self._X, self._groups)

    def _n_knots(self, n_columns: int) -> int:
        return max(1, min(N_KNOTS, MOST_HINGES // n_columns - 1))

    def _check_memory(self, recipe: Recipe) -> None:
        n_rows, n_columns = map(int, self._X.shape)
        n_columns *= 2 if recipe.scaling == "standard+group" else 1
        if recipe.expansion == "rbf":
            n_columns = min(N_BASIS, n_rows)
        elif recipe.expansion == "hinges":
            n_columns *= 1 + self._n_knots(n_columns)
        elif sp.issparse(self._X):
            return
        what, advice = f"the features of the member {recipe.name!r}", "leave it out of members="
        check_matrix_fits(n_rows, n_columns, what, advice, n_matrices=COPIES)

    def _median_distance(self, X: Any) -> float:
        """The median squared distance of some items; the mean if half of them are equal."""
        rows = np.random.RandomState(self._seed).permutation(X.shape[0])[:SAMPLE]
        squares = euclidean_distances(X[rows], squared=True)[np.triu_indices(len(rows), 1)]
        return float(np.median(squares)) or float(squares.mean()) or 1.0


@dataclass(eq=False)
class Member:
    """One model, judged on held-out data and not trained yet.

    Attributes
    ----------
    alpha : float
        The chosen alpha; nan if it has none.
    held : ndarray of shape (n_items,)
        Its held-out scores.
    by_unit : ndarray of shape (n_units,)
        The metric in each unit that was held out.
    train : callable
        Gives the model trained on all data.
    n_trees : int
        The chosen number of trees; 0 if it has none.
    """

    alpha: float
    held: Array
    by_unit: Array
    train: Callable[[], Any]
    n_trees: int = 0


def judge_member(what: Any, data: TrainingData, features: Features, held_out: HeldOut) -> Member:
    """Hold out an entry of the menu or any ranker."""
    if not isinstance(what, Recipe):
        member = _judge_ranker(what, data, held_out)
    elif what.expansion == "trees":
        member = _judge_trees(what, data, features, held_out)
    else:
        member = _judge_recipe(what, data, features, held_out)
    if np.isnan(member.by_unit).all():
        raise ValueError(f"{held_out.metric.name} is undefined in all that is held out")
    return member


def _judge_ranker(ranker: Any, data: TrainingData, held_out: HeldOut) -> Member:
    """Learners of rankwise keep their alpha; others are trained again for five folds of groups."""
    alpha = np.nan
    if hasattr(ranker, "hold_out_task"):
        task: Any = clone(ranker).hold_out_task(data.X, *data.target)
        held = task.held_out(held_out.folds, task.candidates())[:, 0, 0]
        alpha = float(getattr(ranker, "alpha", np.nan))
    else:
        folds = _folds_of_groups(FOREIGN_FOLDS, data, held_out)
        fold = fold_numbers(folds, data.graph.n_items)
        held = np.zeros(data.graph.n_items)
        for k, rows in enumerate(folds):
            model = fit_any(ranker, data.subset(np.flatnonzero(fold != k)))
            groups = None if data.groups is None else data.groups[rows]
            held[rows] = predict_items(model, data.X[rows], groups)
        if not np.isfinite(held).all():
            raise ValueError("its scores are not finite")
    by_unit = held_out.judge(held[:, None])[:, 0]
    return Member(alpha, held, by_unit, lambda: fit_any(ranker, data))


def _judge_recipe(
    recipe: Recipe, data: TrainingData, features: Features, held_out: HeldOut
) -> Member:
    """Choose the alpha, one in each decade, by exact hold-out.

    Of the alphas within a standard error of the best the one with the fewest wrong pairs is taken:
    metrics such as NDCG vary much from group to group, and the share of wrong pairs varies less.
    """
    R = features.make(recipe)[1]
    task: Any = recipe.ranker(R).hold_out_task(R, *data.target)
    default = task.candidates(alpha=None).axes["alpha"]
    alphas = default[::-2][:DECADES]  # of equal ones the largest is taken
    held = task.held_out(held_out.folds, task.candidates(alpha=alphas))[:, 0]
    by_unit = held_out.judge(held)
    gain = held_out.sign * mean_defined(by_unit)
    at = int(np.argmax(np.nan_to_num(gain, nan=-np.inf)))
    if held_out.metric.name != "disagreement" and data.graph.scores is not None:
        wrong = mean_defined(held_out.judge(held, check_scoring("disagreement")))
        for k in range(len(alphas)):
            if is_worse(by_unit[:, k], by_unit[:, at], held_out.sign):
                wrong[k] = np.nan
        at = at if np.isnan(wrong).all() else int(np.nanargmin(wrong))
    alpha = float(alphas[at])

    def train() -> Any:
        steps, R = features.make(recipe)
        return as_pipeline(steps, recipe.ranker(R, alpha).fit(R, *data.target))

    return Member(alpha, held[:, at].copy(), by_unit[:, at], train)


def _judge_trees(
    recipe: Recipe, data: TrainingData, features: Features, held_out: HeldOut
) -> Member:
    """Grow trees without each of some folds, and stop where the share of wrong pairs rises.

    Folds are of groups, or those of one list. The number of trees is doubled while that helps.
    """
    steps, R = features.make(recipe)
    folds = _folds_of_groups(TREE_FOLDS, data, held_out)
    fold = fold_numbers(folds, data.graph.n_items)
    kept = [np.flatnonzero(fold != k) for k in range(len(folds))]
    graphs: list[Any] = [data.graph.subset(rows) for rows in kept]
    models: list[Any] = [None] * len(folds)
    fewest, n_trees, best = np.inf, 0, np.zeros(len(fold))
    for stages in STAGES:
        held = np.empty((len(fold), len(stages)))
        for k, rows in enumerate(folds):
            models[k] = grow_trees(models[k], stages[-1], R[kept[k]], graphs[k])
            held[rows] = staged_scores(models[k], R[rows], stages)
        wrong = mean_defined(held_out.judge(held, check_scoring("disagreement")))
        at = int(np.argmin(wrong))
        if wrong[at] < fewest or not n_trees:
            fewest, n_trees, best = float(wrong[at]), stages[at], held[:, at]
        if n_trees != stages[-1]:
            break
    by_unit = held_out.judge(best[:, None])[:, 0]

    def train() -> Any:
        return as_pipeline(steps, BoostedTrees(n_trees).fit(R, *data.target))

    return Member(np.nan, best, by_unit, train, n_trees)


def _folds_of_groups(n_folds: int, data: TrainingData, held_out: HeldOut) -> Folds:
    n_groups = data.graph.n_groups
    return held_out.folds if n_groups == 1 else make_folds(min(n_folds, n_groups), data.graph)


def fit_any(estimator: Any, data: TrainingData) -> Any:
    """Train a copy of any ranker; groups go in as it takes them: groups, qid, group_id or group."""
    y, groups, weights = data.y, data.groups, data.weights
    if isinstance(last_step(estimator), RankerMixin):
        carried = y if isinstance(y, PreferenceGraph) or groups is None else make_target(y, groups)
        return clone(estimator).fit(data.X, carried if weights is None else data.target[0])
    if isinstance(y, PreferenceGraph):
        raise ValueError("it learns from scores, and y is a graph of preferences")
    taken = inspect.signature(estimator.fit).parameters
    codes = encode_groups(groups, len(y)).codes
    order = np.argsort(codes, kind="stable")
    names = [name for name in ("qid", "group_id", "group") if name in taken][:1]
    given = {name: np.bincount(codes) if name == "group" else codes[order] for name in names}
    if weights is not None:
        if "sample_weight" not in taken or names not in ([], ["group"]):
            raise ValueError("it takes no weights of items")
        given["sample_weight"] = weights[order]
    model = clone(estimator)
    if model.get_params(deep=False).get("n_jobs", 0) is None:  # LightGBM heeds no other limit
        model.set_params(n_jobs=count_idle_cores(ENTRY_OF_TREE * data.X.size))
    return model.fit(data.X[order], y[order], **given)


def as_pipeline(steps: list[Any], ranker: Any) -> Pipeline:
    """Fitted steps and a fitted ranker as one model of the items."""
    names = ["scale", "expand"][: len(steps)]
    return Pipeline([*zip(names, steps, strict=True), ("rank", ranker)])
