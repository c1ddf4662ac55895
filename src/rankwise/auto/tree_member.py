"""Evaluation of boosted trees as a member of AutoRanker, and selection of their number."""

from __future__ import annotations

import time
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from sklearn.base import clone
from sklearn.pipeline import Pipeline

from rankwise.arrays import Array, Indices
from rankwise.auto.boosted_trees import BoostedTrees
from rankwise.auto.evaluated_member import EvaluatedMember, as_pipeline
from rankwise.auto.expected_time import FIRST_TREE_SECONDS, SEEN_TREE_SHARE, TREE_FOLDS
from rankwise.auto.training_data import HoldOut, TrainingData
from rankwise.auto.tree_features import TreeFeatures
from rankwise.auto.tree_growth import grow_trees, predict_trees
from rankwise.metrics.by_group import check_scoring, nanmean_over_units
from rankwise.model_selection.folds import Folds
from rankwise.runtime.memory import check_matrix_fits

STAGES = (20, 40, 80, 160, 320, 640, 1280, 2560)  # numbers of trees
MIN_TREES = 80  # trees that are grown even if fewer were the best
USUAL_TREES = 640  # grow beyond only while doubling removes at least `LEAST_GAIN` of wrong pairs
LEAST_GAIN = 0.02
MAX_WORK = 2e11  # trees times cells beyond `USUAL_TREES`; more would take a quarter of an hour
FEATURE_MATRICES = 1.5  # of the size of the cells in memory
REFIT_TIME = 0.5  # of a refit on all items, relative to the evaluation in three folds
REFIT_TIME_AFTER_SAMPLE = 1.25  # relative to the evaluation on a sample


class TreePlan(NamedTuple):
    """How trees are held out.

    Attributes
    ----------
    folds : list of ndarray of int
        Held-out items, numbers in the data of the hold-out.
    train_share : float
        Share of the groups that the trees are trained on.
    relative_refit_time : float
        Time of the refit relative to the evaluation; 0 if the evaluated trees are the member.
    """

    folds: Folds
    train_share: float
    relative_refit_time: float

    @property
    def is_final(self) -> bool:
        """Whether the evaluated trees are the member."""
        return self.relative_refit_time == 0.0


class GrowingFold(NamedTuple):
    """Training data of one fold, and the features of its held-out items."""

    step: TreeFeatures
    R: Array
    graph: Any
    held_out_items: Indices
    held_out_R: Array


class GrownTrees(NamedTuple):
    """The best number of trees, their held-out scores, and the model of the first fold."""

    n_trees: int
    scores: Array
    first_model: Any


def evaluate_trees(hold_out: HoldOut, seconds: float, pace: float) -> EvaluatedMember:
    """Grow trees without each fold, and stop when the share of wrong pairs rises.

    The folds consist of groups, or of items of one list. A sample of a large data set is one fold,
    and the trees are trained on all other items, or on as many as the time allows. The number of
    trees is doubled while this improves the share of wrong pairs and while there is time: each
    doubling takes as long as all trees before.
    """
    start = time.perf_counter()
    all_data = hold_out.all_data
    n_items, n_columns = all_data.views["trees"].shape
    n_values_and_words = sum(all_data.trees.sizes)
    check_matrix_fits(
        n_items,
        n_columns - n_values_and_words,
        "the features of trees",
        "drop them from members=",
        n_matrices=FEATURE_MATRICES,
    )
    categorical = all_data.trees.categorical(n_columns)
    plan = plan_trees(hold_out, seconds, pace)
    folds = _make_folds(hold_out, plan)
    # leave time for the refit on all items, which takes relative_refit_time evaluations
    evaluation_seconds = seconds / (1 + plan.relative_refit_time)
    grown = _grow_in_stages(folds, hold_out, categorical, start, evaluation_seconds)

    trees = BoostedTrees(grown.n_trees, categorical=categorical)
    if plan.is_final:  # the evaluated trees are the member
        (fold,) = folds
        trees.store_trees(grown.first_model, grown.n_trees, fold.R.shape[1])
        train = partial(as_pipeline, [fold.step], trees)
    else:
        train = partial(fit_trees, trees, all_data)
    return EvaluatedMember(
        alpha=np.nan,
        scores=grown.scores,
        metric_by_unit=hold_out.evaluate(grown.scores),
        train=train,
        view="trees",
        n_trees=grown.n_trees,
    )


def plan_trees(hold_out: HoldOut, seconds: float, pace: float) -> TreePlan:
    """Folds for the trees, and the share of the items that they are trained on."""
    n_held_out = hold_out.graph.n_items
    n_items, n_columns = hold_out.all_data.views["trees"].shape
    if n_held_out == n_items:
        return TreePlan(hold_out.group_folds(TREE_FOLDS), 1.0, REFIT_TIME)
    # the sample is one fold; trees are trained on all other items for which there is time
    n_train = n_items - n_held_out
    first_tree_seconds = pace * FIRST_TREE_SECONDS * n_columns * n_train
    train_share = seconds / first_tree_seconds
    relative_refit_time = REFIT_TIME_AFTER_SAMPLE
    # keep these trees if there is no time for a refit, or if they were trained on nearly all items
    if train_share < 1 or n_held_out <= SEEN_TREE_SHARE * n_items:
        relative_refit_time = 0.0
    return TreePlan([np.arange(n_held_out)], train_share, relative_refit_time)


def fit_trees(trees: BoostedTrees, data: TrainingData) -> Pipeline:
    """Grow trees on all items."""
    y = data.relevance.y
    weight = data.relevance.weight
    feature_step = clone(data.trees)
    features = feature_step.fit_transform(data.views["trees"], y, data.groups, weight)
    return as_pipeline([feature_step], trees.fit(features, y, data.groups, weight))


def _make_folds(hold_out: HoldOut, plan: TreePlan) -> list[GrowingFold]:
    """Features of the training items and the held-out items of each fold."""
    all_data = hold_out.all_data
    X = all_data.views["trees"]
    graph = all_data.graph
    unit_of_item = graph.groups  # items of a unit are trained on together
    if graph.n_groups == 1:
        unit_of_item = np.arange(graph.n_items)
    n_units = unit_of_item.max() + 1
    is_drawn = np.random.default_rng(0).random(n_units) < plan.train_share  # 1 or more: all
    drawn_rows = np.flatnonzero(is_drawn[unit_of_item])
    folds = []
    for held_out_items in plan.folds:
        held_out_rows = hold_out.rows[held_out_items]
        train_rows = np.setdiff1d(drawn_rows, held_out_rows)
        train_target = all_data.relevance.take(train_rows)
        step = clone(all_data.trees)
        R = step.fit_transform(
            X, train_target.y, all_data.group_labels(train_rows), train_target.weight, train_rows
        )
        held_out_R = step.transform(X[held_out_rows], all_data.group_labels(held_out_rows))
        folds.append(GrowingFold(step, R, graph.subset(train_rows), held_out_items, held_out_R))
    return folds


def _grow_in_stages(
    folds: list[GrowingFold],
    hold_out: HoldOut,
    categorical: tuple[int, ...],
    start: float,
    seconds: float,
) -> GrownTrees:
    """Grow the trees of all folds in stages; keep the stage with the fewest wrong pairs.

    Parameters
    ----------
    folds : list of GrowingFold
        Training data and held-out items.
    hold_out : HoldOut
        Evaluates held-out scores.
    categorical : tuple of int
        Columns of codes.
    start : float
        Time of `perf_counter` from which the seconds count.
    seconds : float
        Time for the evaluation.
    """
    disagreement = check_scoring("disagreement")
    n_entries = sum(fold.R.size for fold in folds)
    models: list[Any] = [None] * len(folds)
    least_wrong = np.inf
    best_n_trees = 0
    best_scores = np.zeros(hold_out.graph.n_items)
    for n_trees in STAGES:
        if n_trees > USUAL_TREES and n_trees * n_entries > MAX_WORK:
            break
        scores = np.empty(hold_out.graph.n_items)
        for k, fold in enumerate(folds):
            models[k] = grow_trees(models[k], n_trees, fold.R, fold.graph, categorical)
            scores[fold.held_out_items] = predict_trees(models[k], fold.held_out_R)

        wrong_share = float(nanmean_over_units(hold_out.evaluate(scores, disagreement)))
        gains_little = wrong_share > (1 - LEAST_GAIN) * least_wrong
        if wrong_share < least_wrong or best_n_trees == 0:
            least_wrong = wrong_share
            best_n_trees = n_trees
            best_scores = scores
        is_past_best = best_n_trees < n_trees
        if is_past_best and n_trees >= MIN_TREES:
            break
        if gains_little and n_trees >= USUAL_TREES:
            break
        elapsed = time.perf_counter() - start
        if 2 * elapsed > seconds:  # the next stage takes as long as all before
            break
    return GrownTrees(best_n_trees, best_scores, models[0])
