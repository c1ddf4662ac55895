"""What an AutoRanker combines: the menu, other people's models, and how each is held out.

All entries of the menu but the last are linear `RankRLS` models of some features, so they have the
same exact hold-out. They were written down from the prototype of the design before any run of this
code: each scaling, each expansion and each cost is there, and cheap entries come first. Boosted
trees were added for features that interact.
"""

from __future__ import annotations

import inspect
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.kernel_approximation import Nystroem
from sklearn.metrics.pairwise import euclidean_distances
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import StandardScaler

from rankwise.arrays import Array
from rankwise.estimators.anatomy import fit_transform, last_step
from rankwise.estimators.auto_data import WIDE, HeldOut, TrainingData
from rankwise.estimators.base import RankerMixin
from rankwise.estimators.boosted_trees import (
    BoostedTrees,
    grow_trees,
    staged_scores,
)
from rankwise.estimators.group_scaler import GroupScaler
from rankwise.estimators.hinge_features import HingeFeatures
from rankwise.estimators.rank_rls import RankRLS
from rankwise.graphs import PreferenceGraph
from rankwise.groups import encode_groups
from rankwise.inputs import (
    check_option,
    make_target,
)
from rankwise.machine import ENTRY_OF_TREE, check_matrix_fits, count_idle_cores
from rankwise.model_selection.curves import check_scoring, mean_defined
from rankwise.model_selection.folds import Folds, fold_numbers, make_folds
from rankwise.model_selection.scoring import predict_items

DECADES = 13  # of alphas that are tried, from the largest default one: features are scaled
N_BASIS = 300  # items of the basis of a kernel
WIDTH = 0.3  # gamma times the median squared distance
N_KNOTS = 4
MOST_HINGES = 1000  # columns of an expansion by hinges
SAMPLE = 500  # items between which distances are measured
TOL = 1e-4  # of iterations, which only wide sparse items need: an order is settled long before 1e-8
COPIES = 3  # of its features that a hold-out has in memory at a time
FOREIGN_FOLDS = 5  # of groups, for models that are trained again
TREE_FOLDS = 3
STAGES = (20, 40, 80, 160, 320, 640)  # numbers of trees
ALWAYS_GROWN = 80  # trees, however many are the best up to there
LEAST_FOR_TREES = 500  # items
TREE_NANOSECONDS = 10_000  # for each cell, until their number is found
PRODUCTS, CUBES = 6.0, 30.0  # of a matrix of features, and of its Gram matrix, in a hold-out
CLEAR = 1.0  # standard errors by which a candidate, or a combination, is clearly better


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
        boosted trees.
    scaling : {"standard", "group", "log+group", "standard+group", "log+standard"}
        How the features are scaled.
    cost, ties : str
        As in `RankRLS`.
    view : {"dense", "wide", "trees"}
        What it sees of the items.
    """

    expansion: str
    scaling: str
    cost: str = "magnitude"
    ties: str = "include"
    view: str = "dense"

    @property
    def name(self) -> str:
        """Such as "rbf, group, magnitude without ties"."""
        if self.expansion == "trees":
            return "trees"
        without = " without ties" if self.ties == "exclude" else ""
        words = " with all values and words" if self.view == "wide" else ""
        return f"{self.expansion}{words}, {self.scaling}, {self.cost}{without}"

    def ranker(self, X: Any, alpha: float = 1e-3) -> RankRLS:
        """The model on features X; sparse ones have the exact shortcut, wide ones iterations."""
        solver = "auto"
        if sp.issparse(X):
            solver = "primal" if X.shape[1] <= WIDE else "iterative"
        return RankRLS(alpha, cost=self.cost, ties=self.ties, solver=solver, tol=TOL)


TREES = Recipe("trees", "group", "sign", view="trees")
#: The simplest comes first, then the trees, which get a share of a time limit.
MENU = (
    Recipe("linear", "standard"),
    TREES,
    Recipe("hinges", "standard"),
    Recipe("hinges", "group", ties="exclude"),
    Recipe("hinges", "log+group", "sign"),
    Recipe("rbf", "standard"),
    Recipe("rbf", "group", ties="exclude"),
    Recipe("rbf", "log+group", "sign"),
    Recipe("linear", "group", ties="exclude"),
    Recipe("linear", "log+group", "sign"),
    Recipe("linear", "standard+group", ties="exclude"),
)


def menu_for(data: TrainingData) -> list[Recipe]:
    """The entries that differ on these data.

    Without groups scaling in groups is the same as standard scaling, and ties are few. Explicit
    preferences bring their own cost, and trees need scores and many items. Sparse features stay
    sparse, so they get neither hinges nor trees; and few features allow hinges. Where categories
    have many values, or there is text, the entries with standard scaling see them all.
    """
    X, has_scores = data.views["dense"], data.y is not data.graph
    is_dense = not sp.issparse(X)
    has_wide = data.X.shape[1] > X.shape[1]
    menu: list[Recipe] = []
    for recipe in MENU:
        if recipe is TREES:
            if has_scores and "trees" in data.views and X.shape[0] >= LEAST_FOR_TREES:
                menu.append(recipe)
            continue
        if data.groups is None:
            scaling = "log+standard" if "log" in recipe.scaling else "standard"
            recipe = recipe._replace(scaling=scaling, ties="include")
        if not has_scores:
            recipe = recipe._replace(cost="magnitude", ties="include")
        if has_wide and recipe.expansion != "rbf" and "standard" in recipe.scaling:
            recipe = recipe._replace(scaling="standard", view="wide")
        n_columns = data.views[recipe.view].shape[1]
        has_knots = is_dense and 0 < 2 * X.shape[1] <= MOST_HINGES
        if n_columns and (recipe.expansion != "hinges" or has_knots):
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
        self._views, self._groups, self._seed = data.views, data.groups, seed
        self._scaled: dict[tuple[str, str], tuple[list[Any], Any]] = {}

    def make(self, recipe: Recipe) -> tuple[list[Any], Any]:
        """The fitted steps before the ranker of an entry, and the features that it gets."""
        key = recipe.scaling, recipe.view
        self._check_memory(recipe)
        if key not in self._scaled:
            self._scaled = {key: self._scale(recipe)}  # the next entries may have the same
        steps, scaled = self._scaled[key]
        if recipe.expansion == "linear":
            return steps, scaled
        n_dense = self._views["dense"].shape[1] if recipe.view == "wide" else None
        n_knots = self._n_knots(n_dense or scaled.shape[1])
        expansion: Any = HingeFeatures(n_knots, n_columns=n_dense)
        if recipe.expansion == "rbf":
            n_basis = min(N_BASIS, scaled.shape[0])
            gamma = WIDTH / self._median_distance(scaled)
            expansion = Nystroem(gamma=gamma, n_components=n_basis, random_state=self._seed)
        return [*steps, expansion], expansion.fit_transform(scaled)

    def _scale(self, recipe: Recipe) -> tuple[list[Any], Any]:
        X, scaling = self._views[recipe.view], recipe.scaling
        with_mean = not sp.issparse(X)
        scaler: Any = StandardScaler(with_mean=with_mean)
        if scaling != "standard":
            both, log = scaling == "standard+group", "log" in scaling
            scaler = GroupScaler(with_log=log, with_standard=both, with_mean=with_mean)
        elif recipe.view == "wide":  # a rare value is not to weigh more than a frequent one
            scaler.fit(X)
            scaler.scale_[self._views["dense"].shape[1] :] = 1.0
            return [scaler], scaler.transform(X)
        return [scaler], fit_transform(scaler, X, self._groups)

    def _n_knots(self, n_columns: int) -> int:
        return max(1, min(N_KNOTS, MOST_HINGES // max(1, n_columns) - 1))

    def shape(self, recipe: Recipe) -> tuple[int, int]:
        """Rows and columns of the features of an entry."""
        n_rows, n_columns = map(int, self._views[recipe.view].shape)
        n_dense = int(self._views["dense"].shape[1])
        n_columns *= 2 if recipe.scaling == "standard+group" else 1
        if recipe.expansion == "rbf":
            n_columns = min(N_BASIS, n_rows)
        elif recipe.expansion == "hinges":
            n_columns += n_dense * self._n_knots(n_dense)
        return n_rows, n_columns

    def _check_memory(self, recipe: Recipe) -> None:
        if sp.issparse(self._views[recipe.view]) and recipe.expansion != "rbf":
            return
        what, advice = f"the features of the member {recipe.name!r}", "leave it out of members="
        check_matrix_fits(*self.shape(recipe), what, advice, n_matrices=COPIES)

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
        Gives the model trained on data, of which it gets the features.
    view : {"dense", "wide", "trees"}
        What it sees of the items.
    n_trees : int
        The chosen number of trees; 0 if it has none.
    is_dear : bool
        Whether it has more features than the items, so that it is not trained on a great many.
    """

    alpha: float
    held: Array
    by_unit: Array
    train: Callable[[TrainingData, Features], Any]
    view: str = "wide"
    n_trees: int = 0
    is_dear: bool = False


def judge_member(
    what: Any, data: TrainingData, features: Features, held_out: HeldOut, seconds: float = np.inf
) -> Member:
    """Hold out an entry of the menu or any ranker; trees grow for so many seconds at most."""
    if not isinstance(what, Recipe):
        member = _judge_ranker(what, data, held_out)
    elif what.expansion == "trees":
        member = _judge_trees(data, held_out, seconds)
    else:
        member = _judge_recipe(what, data, features, held_out)
    if np.isnan(member.by_unit).all():
        raise ValueError(f"{held_out.metric.name} is undefined in all that is held out")
    return member


def expected_seconds(what: Any, data: TrainingData, features: Features) -> float:
    """About how long an entry of the menu takes on one core of a usual machine."""
    if not isinstance(what, Recipe):
        return 1.0
    n_rows, n_columns = features.shape(what)
    if what.expansion == "trees":
        return TREE_NANOSECONDS * 1e-9 * n_rows * n_columns
    work = n_rows * n_columns**2 * PRODUCTS + n_columns**3 * CUBES
    return 0.05 + 1e-10 * work


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
    return Member(alpha, held, by_unit, lambda data, features: fit_any(ranker, data))


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

    def train(data: TrainingData, features: Features) -> Any:
        steps, R = features.make(recipe)
        return as_pipeline(steps, recipe.ranker(R, alpha).fit(R, *data.target))

    is_dear = R.shape[1] > data.views[recipe.view].shape[1]
    held_best = held[:, at].copy()
    return Member(alpha, held_best, by_unit[:, at], train, recipe.view, is_dear=is_dear)


def _judge_trees(data: TrainingData, held_out: HeldOut, seconds: float) -> Member:
    """Grow trees without each of some folds, and stop where the share of wrong pairs rises.

    Folds are of groups, or those of one list. The number of trees is doubled while that helps, and
    while there is time: the next trees take as long as all before.
    """
    start = time.perf_counter()
    folds = _folds_of_groups(TREE_FOLDS, data, held_out)
    fold = fold_numbers(folds, data.graph.n_items)
    codes = data.trees.categorical(data.views["trees"].shape[1])
    seen: list[tuple[Array, Any, Array]] = []
    for k, rows in enumerate(folds):
        rest = data.subset(np.flatnonzero(fold != k))
        step = clone(data.trees)
        inside = step.fit_transform(rest.views["trees"], *rest.target)
        groups = None if data.groups is None else data.groups[rows]
        seen.append((inside, rest.graph, step.transform(data.views["trees"][rows], groups)))
    models: list[Any] = [None] * len(folds)
    fewest, n_trees, best = np.inf, 0, np.zeros(len(fold))
    for stage in STAGES:
        held = np.empty((len(fold), 1))
        for k, (inside, graph, outside) in enumerate(seen):
            models[k] = grow_trees(models[k], stage, inside, graph, codes)
            held[folds[k]] = staged_scores(models[k], outside, (stage,))
        wrong = float(mean_defined(held_out.judge(held, check_scoring("disagreement")))[0])
        if wrong < fewest or not n_trees:
            fewest, n_trees, best = wrong, stage, held[:, 0]
        is_over = n_trees < stage and stage >= ALWAYS_GROWN
        if is_over or 2 * (time.perf_counter() - start) > seconds:
            break
    by_unit = held_out.judge(best[:, None])[:, 0]

    def train(data: TrainingData, features: Features) -> Any:
        step = clone(data.trees)
        R = step.fit_transform(data.views["trees"], *data.target)
        return as_pipeline([step], BoostedTrees(n_trees, categorical=codes).fit(R, *data.target))

    return Member(np.nan, best, by_unit, train, "trees", n_trees)


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
