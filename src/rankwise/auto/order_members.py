"""Members of AutoRanker that order items, trained on comparisons."""

from __future__ import annotations

from functools import partial

import numpy as np
import scipy.sparse as sp

from rankwise.arrays import Array, Indices
from rankwise.auto.boosted_trees import BoostedTrees
from rankwise.auto.capped_link import fit_coefficients, link_derivatives
from rankwise.auto.comparison_problem import (
    ComparisonProblem,
    EvaluatedPairMember,
    TrainedOrder,
    TrainedStrengths,
)
from rankwise.auto.evaluated_member import as_pipeline
from rankwise.auto.gradient_trees import GradientTrees, start_trees
from rankwise.auto.item_comparisons import ItemComparisons
from rankwise.auto.linear_comparisons import ComparisonDesign
from rankwise.auto.penalty_path import LinearPath
from rankwise.auto.tree_rounds import select_rounds
from rankwise.rankers.rank_logistic import RankLogistic

HINGE_ALPHAS = 10.0 ** np.arange(-1, 4)
STRENGTH_ALPHAS = 10.0 ** np.arange(-1, 2.5, 0.5)
COVARIATE_ALPHA = 1.0  # of covariates beside trees of items
MAX_STRENGTHS = 3000  # items, whose strengths are one linear system


def evaluate_hinges(problem: ComparisonProblem, cap: float) -> EvaluatedPairMember:
    """Hinge features and the covariates, with the logistic or the capped link."""
    comparisons = problem.comparisons
    features = problem.linear.R
    design = ComparisonDesign(features, comparisons.first, comparisons.second, comparisons.numbers)
    path = LinearPath(design, problem)
    selected = path.select(HINGE_ALPHAS, cap)

    def train() -> TrainedOrder:
        coefficients = path.fit(selected.alpha, cap)
        of_features, of_covariates, _ = design.split(coefficients)
        ranker = RankLogistic(selected.alpha)
        ranker.n_features_in_ = features.shape[1]
        ranker.coef_ = of_features
        model = as_pipeline(problem.linear.steps, ranker)
        return TrainedOrder(model, problem.view, of_covariates)

    name = "hinges"
    if cap:
        name = f"hinges, capped at {cap:g}"
    return EvaluatedPairMember(name, True, selected.differences, cap, train, alpha=selected.alpha)


def evaluate_item_trees(problem: ComparisonProblem) -> EvaluatedPairMember:
    """Boosted trees of single items: gradients of the comparisons are summed at the items."""
    cells = problem.cells
    if cells is None:
        raise ValueError("trees need dense items")
    grow = partial(grow_item_trees, cells.all, categorical=cells.categorical)
    effects = []
    growing = []
    for fold in problem.hold_out.folds:
        comparisons = problem.comparisons.take(fold.train)
        effects.append(covariate_effects(comparisons))
        growing.append(grow(comparisons, effects[-1]))

    def differences(fold_number: int, first_tree: int) -> Array:
        fold = problem.hold_out.folds[fold_number]
        held_out = problem.comparisons.take(fold.held_out)
        scores = growing[fold_number].predict(cells.all, first_tree)
        change: Array = scores[held_out.first] - scores[held_out.second]
        if first_tree == 0:
            change = change + held_out.numbers @ effects[fold_number]
        return change

    rounds = select_rounds(growing, differences, problem)

    def train() -> TrainedOrder:
        covariate_coef = covariate_effects(problem.comparisons)
        trees = grow(problem.comparisons, covariate_coef)
        trees.add_trees(rounds.n_trees)
        model = BoostedTrees(rounds.n_trees, categorical=cells.categorical)
        model.store(trees.model, trees.n_trees, cells.all.shape[1])
        return TrainedOrder(model, "cells", covariate_coef)

    return EvaluatedPairMember(
        "trees of items", True, rounds.differences, 0.0, train, n_trees=rounds.n_trees
    )


def grow_item_trees(
    X: Array,
    comparisons: ItemComparisons,
    covariate_coef: Array,
    categorical: tuple[int, ...],
) -> GradientTrees:
    """Start trees of items for the logistic loss of their comparisons.

    The curvature is twice the diagonal of the Hessian, which bounds it, because both items of a
    comparison move.
    """
    first, second = comparisons.first, comparisons.second
    offset = comparisons.numbers @ covariate_coef
    compared = np.unique([first, second])
    row_of_item = np.zeros(comparisons.n_items, dtype=np.intp)
    row_of_item[compared] = np.arange(len(compared))
    first_row = row_of_item[first]
    second_row = row_of_item[second]
    n_rows = len(compared)

    def derivatives(scores: Array) -> tuple[Array, Array]:
        differences = scores[first_row] - scores[second_row] + offset
        of_pairs = link_derivatives(differences, comparisons.outcomes, 0.0)
        as_first = np.bincount(first_row, of_pairs.gradient, n_rows)
        as_second = np.bincount(second_row, of_pairs.gradient, n_rows)
        of_first = np.bincount(first_row, of_pairs.information, n_rows)
        of_second = np.bincount(second_row, of_pairs.information, n_rows)
        return np.asarray(as_first - as_second), np.asarray(2.0 * (of_first + of_second))

    return start_trees(X[compared], derivatives, categorical)


def covariate_effects(comparisons: ItemComparisons) -> Array:
    """Effects of the covariates alone."""
    if comparisons.numbers.shape[1] == 0:
        return np.zeros(0)
    no_features = np.zeros((comparisons.n_items, 0))
    design = ComparisonDesign(
        no_features, comparisons.first, comparisons.second, comparisons.numbers
    )
    return fit_coefficients(design, comparisons.outcomes, COVARIATE_ALPHA)


def evaluate_strengths(problem: ComparisonProblem) -> EvaluatedPairMember:
    """A strength for each name of an item: ridge regularized Bradley–Terry."""
    identity = problem.identity
    if identity is None:
        raise ValueError("items have no names")
    n_names = int(identity.max()) + 1
    if n_names > MAX_STRENGTHS:
        raise ValueError(f"there are more than {MAX_STRENGTHS:,} items")
    comparisons = problem.comparisons
    design = strength_design(identity, comparisons)
    path = LinearPath(design, problem)
    selected = path.select(STRENGTH_ALPHAS, 0.0)

    def train() -> TrainedStrengths:
        of_names, of_covariates, _ = design.split(path.fit(selected.alpha, 0.0))
        return TrainedStrengths(of_names, of_covariates)

    return EvaluatedPairMember(
        "strengths of known items", True, selected.differences, 0.0, train, alpha=selected.alpha
    )


def strength_design(identity: Indices, comparisons: ItemComparisons) -> ComparisonDesign:
    """Indicators of the names as features of the items."""
    n_items = len(identity)
    indicators = sp.csr_array((np.ones(n_items), (np.arange(n_items), identity)))
    return ComparisonDesign(indicators, comparisons.first, comparisons.second, comparisons.numbers)
