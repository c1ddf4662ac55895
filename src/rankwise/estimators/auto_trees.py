"""Boosted trees as a member of an AutoRanker: their number is chosen on held-out data."""

from __future__ import annotations

import time
from typing import Any

import numpy as np

from rankwise.arrays import Array
from rankwise.estimators.auto_hold_out import HeldOutEdges, Units
from rankwise.estimators.auto_members import Member, Problem
from rankwise.estimators.auto_menu import Features, Recipe, as_pipeline
from rankwise.estimators.boosted_trees import BoostedTrees, grow_trees
from rankwise.model_selection.folds import Folds, fold_numbers, make_folds
from rankwise.model_selection.measures import check_scoring, mean_defined

__all__ = ["judge_trees"]

STAGES = (20, 40, 80, 160, 320, 640)
PATIENCE = 2  # stages that may be worse than the best before the trees stop growing
TREE_FOLDS = 3  # of groups


def judge_trees(
    recipe: Recipe, features: Features, problem: Problem, units: Units, near: float | None = None
) -> Member:
    """Grow trees without each of some folds, and stop where the share of wrong pairs rises.

    Folds are of groups, or those of the units for one list. The number of trees is doubled while
    that helps; `near` is a number that was found on more data.
    """
    start = time.perf_counter()
    steps, R = features.make(recipe)
    folds = _folds(problem, units)
    fold = fold_numbers(folds, problem.graph.n_items)
    parts = [np.flatnonzero(fold != k) for k in range(len(folds))]
    graphs: list[Any] = [problem.graph.subset(rows) for rows in parts]
    models: list[Any] = [None] * len(folds)
    best, n_best, held_best, n_worse = np.inf, 0, np.zeros(len(fold)), 0
    for n_trees in STAGES if near is None else (int(near),):
        held = np.empty(len(fold))
        for k, rows in enumerate(folds):
            models[k] = grow_trees(models[k], n_trees, R[parts[k]], graphs[k])
            held[rows] = models[k].predict(R[rows])
        wrong = _wrong(units, held)
        n_worse = 0 if wrong < best else n_worse + 1
        if wrong < best or not n_best:
            best, n_best, held_best = wrong, n_trees, held
        if n_worse == PATIENCE:
            break

    def train() -> Any:
        return as_pipeline(steps, BoostedTrees(n_best).fit(R, *problem.target))

    by_unit = units.judge(held_best[:, None])[:, 0]
    if np.isnan(by_unit).all():
        raise ValueError(f"{units.metric.name} is undefined in all that is held out")
    seconds = time.perf_counter() - start
    return Member(recipe.name, float("nan"), held_best, by_unit, seconds, train, n_best)


def _folds(problem: Problem, units: Units) -> Folds:
    n_groups = problem.graph.n_groups
    if n_groups == 1 and not isinstance(units, HeldOutEdges):
        return units.folds
    return make_folds(min(TREE_FOLDS, n_groups), problem.graph)


def _wrong(units: Units, held: Array) -> float:
    return float(mean_defined(units.judge(held[:, None], check_scoring("disagreement")))[0])
