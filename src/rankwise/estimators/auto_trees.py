"""Boosted trees as a member of an AutoRanker: their number is chosen on held-out data."""

from __future__ import annotations

import time
from typing import Any

import numpy as np

from rankwise.arrays import Array, Indices
from rankwise.estimators.auto_hold_out import HeldOutEdges, Units, choose
from rankwise.estimators.auto_members import ONE, Member, Problem, scored_again
from rankwise.estimators.auto_menu import Features, Recipe, as_pipeline
from rankwise.estimators.boosted_trees import BoostedTrees, grow_trees, staged_scores
from rankwise.model_selection.folds import Folds, fold_numbers, make_folds
from rankwise.model_selection.measures import check_scoring, mean_defined
from rankwise.model_selection.nested_hold_out import NestedFolds

STAGES = ((20, 40, 80), (160, 320), (640,))  # a row is grown if the end of that before is the best
TREE_FOLDS = 3  # of groups


def judge_trees(
    recipe: Recipe, features: Features, problem: Problem, units: Units, nested: NestedFolds | None
) -> Member:
    """Grow trees without each of some folds, and stop where the share of wrong pairs rises.

    Folds are of groups, or those of the units for one list. The number of trees is doubled while
    that helps. Without the nested folds there are as many trees.
    """
    start = time.perf_counter()
    steps, R = features.make(recipe)
    folds = _folds(problem, units)
    fold = fold_numbers(folds, problem.graph.n_items)
    parts = [np.flatnonzero(fold != k) for k in range(len(folds))]
    graphs: list[Any] = [problem.graph.subset(rows) for rows in parts]
    models: list[Any] = [None] * len(folds)
    best, n_best, held_best = np.inf, 0, np.zeros(len(fold))
    for stages in STAGES:
        held = np.empty((len(fold), len(stages)))
        for k, rows in enumerate(folds):
            models[k] = grow_trees(models[k], stages[-1], R[parts[k]], graphs[k])
            held[rows] = staged_scores(models[k], R[rows], stages)
        wrong = mean_defined(units.judge(held, check_scoring("disagreement")))
        at = int(np.argmin(wrong))
        if wrong[at] < best or not n_best:
            best, n_best, held_best = float(wrong[at]), stages[at], held[:, at]
        if n_best != stages[-1]:
            break

    def train() -> Any:
        return as_pipeline(steps, BoostedTrees(n_best).fit(R, *problem.target))

    choice = choose(units, ONE, held_best[:, None], units.judge(held_best[:, None]))

    def score(seen: Indices, new: Indices) -> Array:
        graph: Any = problem.graph.subset(seen)
        return np.asarray(grow_trees(None, n_best, R[seen], graph).predict(R[new]))

    again = scored_again(nested, score)
    seconds = time.perf_counter() - start
    found = choice.held, choice.by_unit, seconds, train, again, n_best
    return Member(recipe.name, choice.alpha, *found)


def _folds(problem: Problem, units: Units) -> Folds:
    n_groups = problem.graph.n_groups
    if n_groups == 1 and not isinstance(units, HeldOutEdges):
        return units.folds
    return make_folds(min(TREE_FOLDS, n_groups), problem.graph)
