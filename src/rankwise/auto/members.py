"""What an AutoRanker combines: the menu, other people's models, and how each is held out.

All entries of the menu but the last are linear `RankRLS` models of some features, so they have the
same exact hold-out. They were written down from the prototype of the design before any run of this
code: each scaling, each expansion and each cost is there, and cheap entries come first. Boosted
trees were added for features that interact.
"""

from __future__ import annotations

import inspect
import math
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.kernel_approximation import Nystroem
from sklearn.metrics.pairwise import euclidean_distances
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import StandardScaler

from rankwise.arrays import Array
from rankwise.auto.boosted_trees import BoostedTrees, blocks_of_groups, grow_trees, predict_trees
from rankwise.auto.stacking import is_worse
from rankwise.auto.training_data import WIDE, HoldOut, TrainingData
from rankwise.graphs.supervision import Preferences, make_target
from rankwise.metrics.by_group import check_defined, check_scoring, nanmean
from rankwise.model_selection.folds import Folds, fold_of_item, make_folds
from rankwise.model_selection.scorer import predict_items
from rankwise.preprocessing.group_scaler import GroupScaler
from rankwise.preprocessing.hinge_features import HingeFeatures
from rankwise.rankers.base import RankerMixin
from rankwise.rankers.out_of_core import SufficientStatistics
from rankwise.rankers.pipelines import final_estimator, fit_transform, transform_step
from rankwise.rankers.rank_rls import RankRLS
from rankwise.runtime.memory import available_bytes, check_matrix_fits
from rankwise.runtime.threads import ENTRY_OF_TREE, n_threads_for
from rankwise.validation import check_option

DECADES = 13  # of alphas that are tried, from the largest default one: features are scaled
N_BASIS = 300  # items of the basis of a kernel
WIDTH = 0.3  # gamma times the median squared distance
N_KNOTS = 4
MOST_HINGES = 1000  # columns of an expansion by hinges
SAMPLE = 500  # items between which distances are measured
TOL = 1e-4  # of iterations, which only wide sparse items need: an order is settled long before 1e-8
COPIES = 3  # of its features that a hold-out has in memory at a time
BLOCK = 20_000  # items whose features are made at a time where there are a great many
FOREIGN_FOLDS = 5  # of groups, for models that are trained again
TREE_FOLDS = 3
STAGES = (20, 40, 80, 160, 320, 640, 1280, 2560)  # numbers of trees
ALWAYS_GROWN = 80  # trees, however many are the best up to there
USUAL = 640  # trees; more than that only if
GAIN = 0.02  # of the wrong pairs went by the last doubling
MOST_WORK = 2e11  # trees times cells: more would take a quarter of an hour
LEAST_FOR_TREES = 500  # items
FEW_HELD_OUT = 0.05  # of the items; trees that have not seen them are not grown again with them
TREE_NANOSECONDS = 10_000  # for each cell, until their number is found
FIRST_NANOSECONDS = 400  # until the first of them have grown
PRODUCTS, CUBES = 6.0, 30.0  # of a matrix of features, and of its Gram matrix, in a hold-out
SUMS = 1.5  # of a matrix of features, where they are made and added up block by block


class CandidateMember(NamedTuple):
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


TREES = CandidateMember("trees", "group", "sign", view="trees")
#: The simplest comes first, then the trees, which get a share of a time limit.
CANDIDATE_MEMBERS = (
    CandidateMember("linear", "standard"),
    TREES,
    CandidateMember("hinges", "standard"),
    CandidateMember("hinges", "group", ties="exclude"),
    CandidateMember("hinges", "log+group", "sign"),
    CandidateMember("rbf", "standard"),
    CandidateMember("rbf", "group", ties="exclude"),
    CandidateMember("rbf", "log+group", "sign"),
    CandidateMember("linear", "group", ties="exclude"),
    CandidateMember("linear", "log+group", "sign"),
    CandidateMember("linear", "standard+group", ties="exclude"),
)


def candidate_members(data: TrainingData) -> list[CandidateMember]:
    """The entries that differ on these data.

    Without groups scaling in groups is the same as standard scaling, and ties are few. Explicit
    preferences bring their own cost, and trees need scores and many items. Sparse features stay
    sparse, so they get neither hinges nor trees; and few features allow hinges. Where categories
    have many values, or there is text, the entries with standard scaling see them all.
    """
    X, has_scores = data.views["dense"], data.has_scores
    is_dense = not sp.issparse(X)
    has_wide = data.X.shape[1] > X.shape[1]
    menu: list[CandidateMember] = []
    for recipe in CANDIDATE_MEMBERS:
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


def requested_members(members: Any, data: TrainingData) -> dict[str, Any]:
    """Names, and entries of the menu or rankers, as the user asks for them."""
    given, menu = [members] if isinstance(members, str) else members, candidate_members(data)
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


def candidate_features(
    recipe: CandidateMember, data: TrainingData, seed: int
) -> tuple[list[Any], Any]:
    """The fitted steps before the ranker of an entry, and the features that it gets."""
    X, dense, scaling = data.views[recipe.view], data.views["dense"], recipe.scaling
    if not sp.issparse(X) or recipe.expansion == "rbf":
        what, advice = f"the features of the member {recipe.name!r}", "leave it out of members="
        check_matrix_fits(*feature_shape(recipe, data), what, advice, n_matrices=COPIES)
    with_mean = not sp.issparse(X)
    scaler: Any = StandardScaler(with_mean=with_mean)
    if scaling != "standard":
        both, log = scaling == "standard+group", "log" in scaling
        scaler = GroupScaler(with_log=log, with_standard=both, with_mean=with_mean)
    scaled = fit_transform(scaler, X, data.groups)
    n_dense = None
    if recipe.view == "wide":  # a rare value is not to weigh more than a frequent one
        n_dense = dense.shape[1]
        scaler.scale_[n_dense:] = 1.0
        scaled = scaler.transform(X)
    if recipe.expansion == "linear":
        return [scaler], scaled
    expansion: Any = HingeFeatures(_n_knots(n_dense or scaled.shape[1]), n_columns=n_dense)
    if recipe.expansion == "rbf":
        rows = np.random.RandomState(seed).permutation(X.shape[0])[:SAMPLE]
        squares = euclidean_distances(scaled[rows], squared=True)[np.triu_indices(len(rows), 1)]
        width = float(np.median(squares)) or float(squares.mean()) or 1.0
        n_basis = min(N_BASIS, X.shape[0])
        expansion = Nystroem(gamma=WIDTH / width, n_components=n_basis, random_state=seed)
    return [scaler, expansion], expansion.fit_transform(scaled)


def feature_shape(recipe: CandidateMember, data: TrainingData) -> tuple[int, int]:
    """Rows and columns of the features of an entry."""
    n_rows, n_columns = map(int, data.views[recipe.view].shape)
    n_dense = int(data.views["dense"].shape[1])
    n_columns *= 2 if recipe.scaling == "standard+group" else 1
    if recipe.expansion == "rbf":
        n_columns = min(N_BASIS, n_rows)
    elif recipe.expansion == "hinges":
        n_columns += n_dense * _n_knots(n_dense)
    return n_rows, n_columns


def _n_knots(n_columns: int) -> int:
    return max(1, min(N_KNOTS, MOST_HINGES // max(1, n_columns) - 1))


@dataclass(eq=False)
class EvaluatedMember:
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
        Gives the model trained on all items.
    view : {"dense", "wide", "trees"}
        What it sees of the items.
    n_trees : int
        The chosen number of trees; 0 if it has none.
    """

    alpha: float
    held: Array
    by_unit: Array
    train: Callable[[], Any]
    view: str = "wide"
    n_trees: int = 0


def evaluate_member(
    what: Any, held_out: HoldOut, seed: int, seconds: float = np.inf, pace: float = 1.0
) -> EvaluatedMember:
    """Hold out an entry of the menu or any ranker; trees grow for so many seconds at most."""
    if not isinstance(what, CandidateMember):
        member = _evaluate_ranker(what, held_out)
    elif what.expansion == "trees":
        member = _evaluate_trees(held_out, seconds, pace)
    else:
        member = _evaluate_candidate(what, held_out, seed)
    check_defined(held_out.metric, member.by_unit)
    return member


def expected_seconds(what: Any, held_out: HoldOut) -> tuple[float, float]:
    """About how long judging and training take on one core of a usual machine."""
    data, n_all = held_out.data, held_out.every.graph.n_items
    growth = n_all / data.graph.n_items
    if not isinstance(what, CandidateMember):
        return 1.0, growth / (FOREIGN_FOLDS - 1)
    n_rows, n_columns = feature_shape(what, data)
    if what.expansion == "trees":
        seconds = TREE_NANOSECONDS * 1e-9 * n_columns
        if growth == 1:
            return seconds * n_rows, seconds * n_rows / 2
        again = 0.0 if n_rows <= FEW_HELD_OUT * n_all else 1.0
        return seconds * n_all / 4, again * seconds * n_all / 4
    square = 1e-10 * n_columns**2
    judging = 0.05 + square * (n_rows * PRODUCTS + n_columns * CUBES)
    return judging, square * n_all * SUMS if growth > 1 else 0.0


def may_go_together(asked: dict[str, Any], held_out: HoldOut) -> bool:
    """Whether all are entries of the menu, whose features fit in memory at once.

    Other people's models may not allow anything beside them.
    """
    free, needed = available_bytes(), 0
    for what in asked.values():
        if not isinstance(what, CandidateMember):
            return False
        needed += 8 * COPIES * math.prod(feature_shape(what, held_out.data))
    return free is None or needed < free


def first_seconds(held_out: HoldOut) -> float:
    """About how long the first trees take; of a sample, they see as much as there is time for."""
    if held_out.data is not held_out.every:
        return 0.0
    n_columns = feature_shape(TREES, held_out.data)[1]
    return TREE_FOLDS * FIRST_NANOSECONDS * 1e-9 * n_columns * held_out.graph.n_items


def _evaluate_ranker(ranker: Any, held_out: HoldOut) -> EvaluatedMember:
    """Learners of rankwise keep their alpha; others are trained again for five folds of groups."""
    alpha, data = np.nan, held_out.data
    if hasattr(ranker, "hold_out_task"):
        task: Any = clone(ranker).hold_out_task(data.X, data.target)
        held = task.held_out(held_out.folds, task.candidates())[:, 0, 0]
        alpha = float(getattr(ranker, "alpha", np.nan))
    else:
        folds = _folds_of_groups(FOREIGN_FOLDS, held_out)
        fold = fold_of_item(folds, data.graph.n_items)
        held = np.zeros(data.graph.n_items)
        for k, rows in enumerate(folds):
            model = fit_any(ranker, data.subset(np.flatnonzero(fold != k)))
            held[rows] = predict_items(model, data.X[rows], data.labels(rows))
        if not np.isfinite(held).all():
            raise ValueError("its scores are not finite")
    by_unit = held_out.judge(held)
    return EvaluatedMember(alpha, held, by_unit, partial(fit_any, ranker, held_out.every))


def _evaluate_candidate(recipe: CandidateMember, held_out: HoldOut, seed: int) -> EvaluatedMember:
    """Choose the alpha, one in each decade, by exact hold-out.

    Of the alphas within a standard error of the best the one with the fewest wrong pairs is taken:
    metrics such as NDCG vary much from group to group, and the share of wrong pairs varies less.
    """
    data = held_out.data
    steps, R = candidate_features(recipe, data, seed)
    task: Any = recipe.ranker(R).hold_out_task(R, data.target)
    default = task.candidates(alpha=None).axes["alpha"]
    alphas = default[::-2][:DECADES]  # of equal ones the largest is taken
    held = task.held_out(held_out.folds, task.candidates(alpha=alphas))[:, 0]
    by_unit = held_out.judge(held)
    gain = held_out.sign * nanmean(by_unit)
    at = int(np.argmax(np.nan_to_num(gain, nan=-np.inf)))
    if held_out.metric.name != "disagreement" and data.graph.has_relevance:
        wrong = nanmean(held_out.judge(held, check_scoring("disagreement")))
        for k in range(len(alphas)):
            if is_worse(by_unit[:, k], by_unit[:, at], held_out.sign):
                wrong[k] = np.nan
        at = at if np.isnan(wrong).all() else int(np.nanargmin(wrong))
    alpha, held_best = float(alphas[at]), held[:, at].copy()
    train = partial(fit_candidate, recipe, alpha, steps, held_out)
    if data is held_out.every:  # now, while its features are there
        train = partial(as_pipeline, steps, task.train(alpha=alpha))
    return EvaluatedMember(alpha, held_best, by_unit[:, at], train, recipe.view)


def fit_candidate(
    recipe: CandidateMember, alpha: float, steps: list[Any], held_out: HoldOut
) -> Pipeline:
    """Train an exact member, chosen on a sample, on all items, by blocks of groups into sums.

    A list of a great many items is compared in parts, each spread over the whole list.
    """
    data = held_out.every
    X, target = data.views[recipe.view], data.target
    n_columns = feature_shape(recipe, data)[1]
    if not data.has_scores or n_columns > WIDE:
        for step in steps:
            X = transform_step(step, X, data.groups)
        return as_pipeline(steps, recipe.ranker(X, alpha).fit(X, target))
    sums, codes = SufficientStatistics(cost=recipe.cost, ties=recipe.ties), data.graph.groups
    for k, rows in enumerate(blocks_of_groups(codes, BLOCK)):
        R, part = X[rows], data.relevance.take(rows)
        for step in steps:
            R = transform_step(step, R, data.labels(rows))
        labels = codes[rows] if codes.any() else np.full(len(rows), k)
        sums.add(R, part.y, labels, part.weight, whole_groups=True)
    return as_pipeline(steps, sums.solve([alpha]).model(0))


def _evaluate_trees(held_out: HoldOut, seconds: float, pace: float) -> EvaluatedMember:
    """Grow trees without each of some folds, and stop where the share of wrong pairs rises.

    Folds are of groups, or those of one list; a sample of a great many items is one fold, and the
    trees see all others, or as many of them as there is time for. The number of trees is doubled
    while that helps, and while there is time: the next trees take as long as all before.
    """
    start = time.perf_counter()
    every, n_judged = held_out.every, held_out.graph.n_items
    X, n_items = every.views["trees"], every.graph.n_items
    codes = every.trees.categorical(X.shape[1])
    what, advice = "the features of trees", "leave them out of members="
    check_matrix_fits(n_items, X.shape[1] - sum(every.trees.sizes), what, advice, n_matrices=1.5)
    folds, share, more = _folds_of_groups(TREE_FOLDS, held_out), 1.0, 0.5
    if n_judged < n_items:
        n_cells = X.shape[1] * (n_items - n_judged)
        share = seconds / (pace * FIRST_NANOSECONDS * 1e-9 * n_cells)
        is_kept = share < 1 or n_judged <= FEW_HELD_OUT * n_items
        folds, more = [np.arange(n_judged)], 0.0 if is_kept else 1.25
    unit = every.graph.groups if every.graph.n_groups > 1 else np.arange(n_items)
    is_seen = np.random.default_rng(0).random(unit.max() + 1) < share
    seen: list[tuple[Array, Any, Array]] = []
    for fold in folds:
        outside = held_out.rows[fold]
        rows = np.setdiff1d(np.flatnonzero(is_seen[unit]), outside)
        step, part = clone(every.trees), every.relevance.take(rows)
        R = step.fit_transform(X, part.y, every.labels(rows), part.weight, rows)
        new = step.transform(X[outside], every.labels(outside))
        seen.append((R, every.graph.subset(rows), new))
    models: list[Any] = [None] * len(folds)
    fewest, n_trees, best = np.inf, 0, np.zeros(n_judged)
    n_cells = sum(R.size for R, _, _ in seen)
    for stage in STAGES:
        if stage > USUAL and stage * n_cells > MOST_WORK:
            break
        held = np.empty(n_judged)
        for k, (R, graph, new) in enumerate(seen):
            models[k] = grow_trees(models[k], stage, R, graph, codes)
            held[folds[k]] = predict_trees(models[k], new)
        wrong = float(nanmean(held_out.judge(held, check_scoring("disagreement"))))
        is_slow = stage >= USUAL and wrong > (1 - GAIN) * fewest
        if wrong < fewest or not n_trees:
            fewest, n_trees, best = wrong, stage, held
        is_over = is_slow or (n_trees < stage and stage >= ALWAYS_GROWN)
        if is_over or 2 * (time.perf_counter() - start) * (1 + more) > seconds:
            break
    by_unit = held_out.judge(best)
    trees = BoostedTrees(n_trees, categorical=codes)
    train = partial(fit_trees, trees, every)
    if more == 0:
        model = as_pipeline([step], trees.keep(models[0], n_trees, R.shape[1]))
        train = partial(Pipeline, model.steps)
    return EvaluatedMember(np.nan, best, by_unit, train, "trees", n_trees)


def fit_trees(trees: BoostedTrees, data: TrainingData) -> Pipeline:
    """Grow trees on all items."""
    step = clone(data.trees)
    relevance = data.relevance
    R = step.fit_transform(data.views["trees"], relevance.y, data.groups, relevance.weight)
    return as_pipeline([step], trees.fit(R, relevance.y, data.groups, relevance.weight))


def _folds_of_groups(n_folds: int, held_out: HoldOut) -> Folds:
    graph = held_out.graph
    return (
        held_out.folds if graph.n_groups == 1 else make_folds(min(n_folds, graph.n_groups), graph)
    )


def fit_any(estimator: Any, data: TrainingData) -> Any:
    """Train a copy of any ranker; groups go in as it takes them: groups, qid, group_id or group."""
    groups = data.groups
    y: Any
    if isinstance(data.target, Preferences):
        y = data.target.graph
        weights = None
    else:
        y = data.target.y
        weights = data.target.weight
    if isinstance(final_estimator(estimator), RankerMixin):
        if data.has_scores and not (groups is None and weights is None):
            y = make_target(y, data.graph.groups, weights)
        return clone(estimator).fit(data.X, y)
    if not data.has_scores:
        raise ValueError("it learns from scores, and y is a graph of preferences")
    taken, codes = inspect.signature(estimator.fit).parameters, data.graph.groups
    order = np.argsort(codes, kind="stable")
    names = [name for name in ("qid", "group_id", "group") if name in taken][:1]
    given: dict[str, Any] = {
        name: np.bincount(codes) if name == "group" else codes[order] for name in names
    }
    if weights is not None:
        if "sample_weight" not in taken or names not in ([], ["group"]):
            raise ValueError("it takes no weights of items")
        given["sample_weight"] = weights[order]
    model = clone(estimator)
    if model.get_params(deep=False).get("n_jobs", 0) is None:  # LightGBM heeds no other limit
        model.set_params(n_jobs=n_threads_for(ENTRY_OF_TREE * data.X.size))
    return model.fit(data.X[order], y[order], **given)


def as_pipeline(steps: list[Any], ranker: Any) -> Pipeline:
    """Fitted steps and a fitted ranker as one model of the items."""
    names = ["scale", "expand"][: len(steps)]
    return Pipeline([*zip(names, steps, strict=True), ("rank", ranker)])
