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
from rankwise.auto.gradient_trees import GradientTrees, start_gradient_trees
from rankwise.auto.item_comparisons import ItemComparisons
from rankwise.auto.linear_comparisons import ComparisonDesign, fitted_rank_logistic
from rankwise.auto.penalty_path import PenaltyPath
from rankwise.auto.tree_rounds import grow_to_least_held_out_loss

HINGE_ALPHAS = 10.0 ** np.arange(-1, 4)
STRENGTH_ALPHAS = 10.0 ** np.arange(-1, 2.5, 0.5)
COVARIATE_ALPHA = 1.0  # penalty of the covariates that accompany trees of items
MAX_STRENGTHS = 3000  # items, whose strengths are one linear system


def evaluate_hinges(
    problem: ComparisonProblem, min_upset_probability: float
) -> EvaluatedPairMember:
    """Hinge features and the covariates, with the logistic or the capped link."""
    comparisons = problem.comparisons
    features = problem.linear.R
    design = ComparisonDesign(
        features, comparisons.first, comparisons.second, comparisons.covariates
    )
    penalty_path = PenaltyPath(design, problem)
    selected_penalty = penalty_path.select(HINGE_ALPHAS, min_upset_probability)

    def train_on_all_comparisons() -> TrainedOrder:
        coefficients = penalty_path.fit_all_comparisons(
            selected_penalty.alpha, min_upset_probability
        )
        feature_coef, covariate_coef, _ = design.split(coefficients)
        ranker = fitted_rank_logistic(selected_penalty.alpha, feature_coef)
        model = as_pipeline(problem.linear.steps, ranker)
        return TrainedOrder(model, problem.view, covariate_coef)

    name = "hinges"
    if min_upset_probability:
        name = f"hinges, capped at {min_upset_probability:g}"
    return EvaluatedPairMember(
        name=name,
        is_order=True,
        differences=selected_penalty.differences,
        min_upset_probability=min_upset_probability,
        train=train_on_all_comparisons,
        alpha=selected_penalty.alpha,
    )


def evaluate_item_trees(problem: ComparisonProblem) -> EvaluatedPairMember:
    """Boosted trees of single items: gradients of the comparisons are summed at the items."""
    cells = problem.cells
    if cells is None:
        raise ValueError("trees need dense features")
    start_trees = partial(start_item_trees, cells.all, categorical=cells.categorical)

    # trees of a fold are fitted to the part that the covariates do not explain
    folds = problem.hold_out.folds
    covariate_coef_of_folds = []
    trees_of_folds = []
    for fold in folds:
        train_comparisons = problem.comparisons.take(fold.train)
        covariate_coef = covariate_effects(train_comparisons)
        covariate_coef_of_folds.append(covariate_coef)
        trees_of_folds.append(start_trees(train_comparisons, covariate_coef))

    def held_out_differences(fold_number: int, first_tree: int) -> Array:
        """Differences by the trees from the first one on; with tree 0, also of the covariates."""
        held_out = problem.comparisons.take(folds[fold_number].held_out)
        scores = trees_of_folds[fold_number].predict(cells.all, first_tree)
        differences: Array = scores[held_out.first] - scores[held_out.second]
        if first_tree == 0:  # the effects of the covariates are added once, to the first trees
            differences = differences + held_out.covariates @ covariate_coef_of_folds[fold_number]
        return differences

    selected_trees = grow_to_least_held_out_loss(trees_of_folds, held_out_differences, problem)

    def train_on_all_comparisons() -> TrainedOrder:
        covariate_coef = covariate_effects(problem.comparisons)
        trees = start_trees(problem.comparisons, covariate_coef)
        trees.add_trees(selected_trees.n_trees)
        model = BoostedTrees(selected_trees.n_trees, categorical=cells.categorical)
        model.store_trees(trees.model, trees.n_trees, cells.all.shape[1])
        return TrainedOrder(model, "cells", covariate_coef)

    return EvaluatedPairMember(
        name="trees of items",
        is_order=True,
        differences=selected_trees.differences,
        min_upset_probability=0.0,
        train=train_on_all_comparisons,
        n_trees=selected_trees.n_trees,
    )


def start_item_trees(
    X: Array,
    comparisons: ItemComparisons,
    covariate_coef: Array,
    categorical: tuple[int, ...],
) -> GradientTrees:
    """Start trees of items for the logistic loss of their comparisons.

    The curvature is twice the diagonal of the Hessian, which bounds it, because both items of a
    comparison move.
    """
    effect_of_covariates = comparisons.covariates @ covariate_coef  # of each comparison

    # the rows of the trees are the compared items only: number the items by their row
    compared_items = np.unique([comparisons.first, comparisons.second])
    n_rows = len(compared_items)
    row_of_item = np.zeros(comparisons.n_items, dtype=np.intp)
    row_of_item[compared_items] = np.arange(n_rows)
    first_row = row_of_item[comparisons.first]
    second_row = row_of_item[comparisons.second]

    def gradient_and_curvature(scores: Array) -> tuple[Array, Array]:
        differences = scores[first_row] - scores[second_row] + effect_of_covariates
        of_comparisons = link_derivatives(
            differences, comparisons.outcomes, min_upset_probability=0.0
        )

        # sums over the comparisons of each item, as the first and as the second one
        gradient_as_first = np.bincount(first_row, of_comparisons.gradient, n_rows)
        gradient_as_second = np.bincount(second_row, of_comparisons.gradient, n_rows)
        information_as_first = np.bincount(first_row, of_comparisons.information, n_rows)
        information_as_second = np.bincount(second_row, of_comparisons.information, n_rows)
        gradient = gradient_as_first - gradient_as_second  # the second score is subtracted

        # twice the diagonal of the Hessian: a bound, since both items of a comparison move
        curvature = 2.0 * (information_as_first + information_as_second)
        return np.asarray(gradient), np.asarray(curvature)

    return start_gradient_trees(X[compared_items], gradient_and_curvature, categorical)


def covariate_effects(comparisons: ItemComparisons) -> Array:
    """Effects of the covariates alone."""
    if comparisons.covariates.shape[1] == 0:
        return np.zeros(0)
    # ridge logistic regression of the outcomes on the covariates alone
    no_features = np.zeros((comparisons.n_items, 0))
    design = ComparisonDesign(
        no_features, comparisons.first, comparisons.second, comparisons.covariates
    )
    return fit_coefficients(design, comparisons.outcomes, COVARIATE_ALPHA)


def evaluate_strengths(problem: ComparisonProblem) -> EvaluatedPairMember:
    """One strength per item name: ridge-regularized Bradley–Terry."""
    name_codes = problem.name_codes
    if name_codes is None:
        raise ValueError("items have no names")
    if problem.n_names > MAX_STRENGTHS:
        raise ValueError(f"there are more than {MAX_STRENGTHS:,} items")
    comparisons = problem.comparisons
    design = strength_design(name_codes, comparisons)
    penalty_path = PenaltyPath(design, problem)
    selected_penalty = penalty_path.select(STRENGTH_ALPHAS, min_upset_probability=0.0)

    def train_on_all_comparisons() -> TrainedStrengths:
        coefficients = penalty_path.fit_all_comparisons(
            selected_penalty.alpha, min_upset_probability=0.0
        )
        strengths, covariate_coef, _ = design.split(coefficients)
        return TrainedStrengths(strengths, covariate_coef)

    return EvaluatedPairMember(
        name="strengths of known items",
        is_order=True,
        differences=selected_penalty.differences,
        min_upset_probability=0.0,
        train=train_on_all_comparisons,
        alpha=selected_penalty.alpha,
    )


def strength_design(name_codes: Indices, comparisons: ItemComparisons) -> ComparisonDesign:
    """Indicators of the names as features of the items."""
    # the only features of an item are indicators of its name: one coefficient for each name
    n_items = len(name_codes)
    name_indicators = sp.csr_array((np.ones(n_items), (np.arange(n_items), name_codes)))
    return ComparisonDesign(
        name_indicators, comparisons.first, comparisons.second, comparisons.covariates
    )
