"""The members of an AutoRanker: entries of the menu and other people's models, held out alike."""

from __future__ import annotations

import inspect
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from sklearn.base import clone

from rankwise.arrays import Array, Indices
from rankwise.estimators.anatomy import last_step
from rankwise.estimators.auto_hold_out import Choice, Units, choose, choose_alpha, is_worse
from rankwise.estimators.auto_menu import Features, Recipe, as_pipeline, check_recipe, menu_for
from rankwise.estimators.base import RankerMixin
from rankwise.graphs import PreferenceGraph
from rankwise.groups import encode_groups
from rankwise.model_selection.candidates import Candidates
from rankwise.model_selection.folds import fold_numbers, make_folds
from rankwise.model_selection.group_routing import predict_items
from rankwise.model_selection.nested_hold_out import NestedFolds
from rankwise.targets import make_target, with_weights

FOREIGN_FOLDS = 5
NEAR = np.array([0.1, 1.0, 10.0])
ONE = Candidates({"alpha": np.array([np.nan])})  # of a model without alphas
LARGE = 2**23  # features of a member that are not kept until all have been judged
CERTAIN = 4.0  # standard errors by which a model that is trained again is given up early
LEAST_UNITS = 10  # of which such a standard error is taken


@dataclass(eq=False)
class Problem:
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

    def part(self, rows: Any) -> Problem:
        """The same of some items."""
        is_graph = isinstance(self.y, PreferenceGraph)
        graph = self.graph.subset(rows)
        groups = None if self.groups is None else self.groups[rows]
        weights = None if self.weights is None else self.weights[rows]
        return Problem(self.X[rows], graph if is_graph else self.y[rows], groups, graph, weights)


class Again(NamedTuple):
    """Scores by models without the folds of an estimate.

    Attributes
    ----------
    candidates : Candidates
        Alphas near the one that was chosen with all data.
    scores : list of ndarray of shape (n_scored, n_candidates)
        One array for each of `NestedFolds.models`.
    """

    candidates: Candidates
    scores: list[Array]


@dataclass(eq=False)
class Member:
    """One model, judged on held-out data and not trained yet.

    Attributes
    ----------
    name : str
        How the table calls it.
    alpha : float
        The chosen alpha; nan if it has none.
    held : ndarray of shape (n_rows,)
        Its held-out scores.
    by_unit : ndarray of shape (n_units,)
        The metric in each unit that was held out.
    seconds : float
        Time that this took.
    train : callable
        Gives the model trained on all data.
    again : Again or None
        The same without the folds of an estimate.
    n_trees : int
        The chosen number of trees; 0 if it has none.
    """

    name: str
    alpha: float
    held: Array
    by_unit: Array
    seconds: float
    train: Callable[[], Any]
    again: Again | None = None
    n_trees: int = 0


def menu_of(problem: Problem) -> list[Recipe]:
    """The entries of the menu for these data."""
    has_groups, own_cost = problem.groups is not None, problem.y is problem.graph
    return menu_for(problem.X, has_groups=has_groups, has_scores=not own_cost)


def asked_members(members: Any, problem: Problem) -> list[tuple[str, Any]]:
    """Names, all different, and entries of the menu or rankers, as the user asks for them."""
    given, menu = [members] if isinstance(members, str) else members, menu_of(problem)
    if not isinstance(given, (list, tuple)) or not given:
        raise ValueError(f"members={given!r}; expected 'default' or a list of names and rankers.")
    asked: list[tuple[str, Any]] = []
    for each in given:
        if isinstance(each, str):
            chosen = menu if each == "default" else [check_recipe(each, menu)]
            asked += [(recipe.name, recipe) for recipe in chosen]
            continue
        name, ranker = each if isinstance(each, tuple) else (type(each).__name__, each)
        if not (hasattr(ranker, "fit") and hasattr(ranker, "predict")):
            raise ValueError(f"members has {ranker!r:.80}, which has no fit and predict.")
        names = [other for other, _ in asked]
        same = sum(other == name or other.startswith(f"{name} ") for other in names)
        asked.append((f"{name} {same + 1}" if name in names else name, ranker))
    return list(dict(asked).items())


def judge_recipe(
    recipe: Recipe, features: Features, problem: Problem, units: Units, nested: NestedFolds | None
) -> Member:
    """Choose the alpha of an entry of the menu by exact hold-out; without the nested folds, too."""
    start = time.perf_counter()
    steps, R = features.make(recipe)
    task: Any = recipe.ranker(R).hold_out_task(R, *problem.target)
    choice = choose_alpha(task, units)
    near = task.candidates(alpha=choice.alpha * NEAR)
    again = None if nested is None else Again(near, task.nested(nested, near))

    def train() -> Any:
        return as_pipeline(steps, recipe.ranker(R, choice.alpha).fit(R, *problem.target))

    if R.size > LARGE:  # its features need not wait for the weights
        model = train()
        return _member(recipe.name, choice, start, lambda: model, again)
    return _member(recipe.name, choice, start, train, again)


def judge_estimator(
    name: str,
    estimator: Any,
    problem: Problem,
    units: Units,
    rival: Member | None,
    nested: NestedFolds | None = None,
) -> Member:
    """Hold out a model that the user brings.

    Learners of rankwise with a hold-out task keep their alpha and are held out as the menu is. All
    others are trained again without each of five folds of groups, or of items of one list. After
    two folds they are given up if they are worse than a rival by four standard errors.
    """
    start = time.perf_counter()
    if hasattr(estimator, "hold_out_task"):
        task = clone(estimator).hold_out_task(problem.X, *problem.target)
        choice = choose_alpha(task, units, task.candidates())
        again = _trained_again(estimator, problem, nested)
        return _member(
            name, choice, start, lambda: clone(estimator).fit(problem.X, *problem.target), again
        )
    if units.graph is not problem.graph:
        raise ValueError("connected preferences are held out by edges, which it cannot be")
    held = _held_out_by_folds(estimator, problem, units, rival)
    choice = choose(units, ONE, held[:, None], units.judge(held[:, None]))
    again = _trained_again(estimator, problem, nested)
    return _member(name, choice, start, lambda: fit_any(estimator, problem), again)


def fit_any(estimator: Any, problem: Problem) -> Any:
    """Train a copy of any ranker; groups go in as it takes them: groups, qid, group_id or group."""
    y, groups, weights = problem.y, problem.groups, problem.weights
    if isinstance(last_step(estimator), RankerMixin):
        carried = y if isinstance(y, PreferenceGraph) or groups is None else make_target(y, groups)
        return clone(estimator).fit(problem.X, carried if weights is None else problem.target[0])
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
    return clone(estimator).fit(problem.X[order], y[order], **given)


def _held_out_by_folds(
    estimator: Any, problem: Problem, units: Units, rival: Member | None
) -> Array:
    n_units = problem.graph.n_groups if problem.graph.n_groups > 1 else problem.graph.n_items
    is_list = problem.graph.n_groups == 1
    folds = units.folds if is_list else make_folds(min(FOREIGN_FOLDS, n_units), problem.graph)
    fold = fold_numbers(folds, problem.graph.n_items)
    held = np.zeros(problem.graph.n_items)
    sign = 1.0 if units.metric.greater_is_better else -1.0
    for k, rows in enumerate(folds):
        held[rows] = _fit_and_score(estimator, problem, np.flatnonzero(fold != k), rows)
        if k == 1 and rival is not None and len(folds) > 2:
            seen = np.zeros(units.units.max() + 1, dtype=bool)
            seen[units.units[fold <= k]] = True
            scores = units.judge(held[:, None])[:, 0]
            is_enough = seen.sum() >= LEAST_UNITS
            if is_enough and is_worse(scores[seen], rival.by_unit[seen], sign, CERTAIN):
                raise ValueError(f"given up after {k + 1} folds, worse than {rival.name!r}")
    if not np.isfinite(held).all():
        raise ValueError("its scores are not finite")
    return held


def _fit_and_score(estimator: Any, problem: Problem, seen: Indices, new: Indices) -> Array:
    model = fit_any(estimator, problem.part(seen))
    groups = None if problem.groups is None else problem.groups[new]
    return np.asarray(predict_items(model, problem.X[new], groups), dtype=np.float64)


def _trained_again(estimator: Any, problem: Problem, nested: NestedFolds | None) -> Again | None:
    return scored_again(nested, lambda seen, new: _fit_and_score(estimator, problem, seen, new))


def scored_again(
    nested: NestedFolds | None, score: Callable[[Indices, Indices], Array]
) -> Again | None:
    """What `score` gives the second items by a model of the first, for each of the models."""
    if nested is None:
        return None
    rows = [(nested.rows(kept), nested.rows(new)) for kept, new in nested.models()]
    return Again(ONE, [score(seen, new)[:, None] for seen, new in rows])


def _member(
    name: str, choice: Choice, start: float, train: Callable[[], Any], again: Again | None
) -> Member:
    seconds = time.perf_counter() - start
    return Member(name, choice.alpha, choice.held, choice.by_unit, seconds, train, again)
