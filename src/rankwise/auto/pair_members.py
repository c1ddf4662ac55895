"""Members of AutoRanker that predict a comparison from both of its items."""

from __future__ import annotations

import numpy as np

from rankwise.arrays import Array
from rankwise.auto.boosted_trees import BoostedTrees
from rankwise.auto.capped_link import as_log_odds, link_derivatives
from rankwise.auto.comparison_problem import (
    ComparisonProblem,
    EvaluatedPairMember,
    TrainedPairs,
)
from rankwise.auto.evaluated_member import as_pipeline
from rankwise.auto.gradient_trees import GradientTrees, start_gradient_trees
from rankwise.auto.item_cells import ItemCells
from rankwise.auto.item_comparisons import ItemComparisons
from rankwise.auto.linear_comparisons import ComparisonDesign, fitted_rank_logistic
from rankwise.auto.pair_columns import (
    choose_gap_limits,
    choose_interactions,
    clipped_gaps,
    interaction_indicators,
    pair_rows,
)
from rankwise.auto.pair_models import JointPairs, PairTrees
from rankwise.auto.penalty_path import PenaltyPath
from rankwise.auto.tree_rounds import grow_to_least_held_out_loss

JOINT_ALPHAS = 10.0 ** np.arange(-1, 3)
JOINT_UPSET_PROBABILITIES = (0.01, 0.03)  # in addition to 0, the logistic link


def evaluate_joint(problem: ComparisonProblem) -> EvaluatedPairMember:
    """Hinges of items, clipped gaps of numbers and pairs of categories in one linear model."""
    cells = problem.cells
    if cells is None:
        raise ValueError("feature differences need dense features")

    # columns of a comparison: gaps, which are differences of the numbers of both items up to some
    # limit, and indicators of the pair of their categories
    comparisons = problem.comparisons
    sides = comparisons.first, comparisons.second
    gap_limits = choose_gap_limits(cells.numbers, *sides)
    gaps = clipped_gaps(cells.numbers, *sides, gap_limits)
    interaction_tables = choose_interactions(cells.codes)
    indicators = interaction_indicators(cells.codes, *sides, interaction_tables)
    covariates_and_gaps = np.hstack([comparisons.covariates, gaps])
    features = problem.linear.R
    design = ComparisonDesign(features, *sides, covariates_and_gaps, indicators.columns)

    # select the penalty of the logistic model first, then the probability of an upset
    penalty_path = PenaltyPath(design, problem)
    logistic = penalty_path.select(JOINT_ALPHAS, min_upset_probability=0.0)
    candidates = [logistic]
    for min_upset_probability in JOINT_UPSET_PROBABILITIES:
        candidates.append(penalty_path.select(np.array([logistic.alpha]), min_upset_probability))
    selected_penalty = min(candidates, key=lambda candidate: candidate.loss)

    def train_on_all_comparisons() -> TrainedPairs:
        coefficients = penalty_path.fit_all_comparisons(
            selected_penalty.alpha, selected_penalty.min_upset_probability
        )
        feature_coef, dense_coef, indicator_coef = design.split(coefficients)
        n_covariates = comparisons.covariates.shape[1]
        covariate_coef, gap_coef = np.split(dense_coef, [n_covariates])
        interaction_coef = np.zeros(sum(table.n_entries for table in interaction_tables))
        interaction_coef[indicators.entry] = indicator_coef  # 0 for pairs that do not occur

        ranker = fitted_rank_logistic(selected_penalty.alpha, feature_coef)
        joint = JointPairs()
        joint.ranker_ = as_pipeline(problem.linear.steps, ranker)
        joint.cap_ = selected_penalty.min_upset_probability
        joint.covariate_coef_ = covariate_coef
        joint.store_gaps_and_interactions(
            gap_limits, gap_coef, interaction_tables, interaction_coef
        )
        return TrainedPairs(joint)

    return EvaluatedPairMember(
        name="joint linear model of pairs",
        is_order=False,
        differences=as_log_odds(
            selected_penalty.differences, selected_penalty.min_upset_probability
        ),
        min_upset_probability=0.0,  # these log odds have it already
        train=train_on_all_comparisons,
        alpha=selected_penalty.alpha,
    )


def evaluate_pair_trees(problem: ComparisonProblem) -> EvaluatedPairMember:
    """Boosted trees of the columns of both items and their gaps."""
    cells = problem.cells
    if cells is None:
        raise ValueError("trees need dense features")
    trees_of_folds = []
    held_out_rows = []
    for fold in problem.hold_out.folds:
        train_comparisons = problem.comparisons.take(fold.train)
        held_out_comparisons = problem.comparisons.take(fold.held_out)
        trees_of_folds.append(start_pair_trees(cells, train_comparisons))
        held_out_rows.append(rows_of_both_orders(cells, held_out_comparisons))

    def held_out_differences(fold_number: int, first_tree: int) -> Array:
        # by the trees from the first one on
        scores = trees_of_folds[fold_number].predict(held_out_rows[fold_number], first_tree)
        return difference_of_orders(scores)

    selected_trees = grow_to_least_held_out_loss(trees_of_folds, held_out_differences, problem)

    def train_on_all_comparisons() -> TrainedPairs:
        trees = start_pair_trees(cells, problem.comparisons)
        trees.add_trees(selected_trees.n_trees)
        n_columns = held_out_rows[0].shape[1]
        categorical = pair_categorical(cells, problem.comparisons)
        stored_trees = BoostedTrees(selected_trees.n_trees, categorical=categorical)
        model = PairTrees()
        model.trees_ = stored_trees.store_trees(trees.model, trees.n_trees, n_columns)
        return TrainedPairs(model)

    return EvaluatedPairMember(
        name="trees of pairs",
        is_order=False,
        differences=selected_trees.differences,
        min_upset_probability=0.0,
        train=train_on_all_comparisons,
        n_trees=selected_trees.n_trees,
    )


def start_pair_trees(cells: ItemCells, comparisons: ItemComparisons) -> GradientTrees:
    """Start trees F of pairs for the logistic loss of ``F(a, b) − F(b, a)``.

    The curvature is twice the diagonal of the Hessian, which bounds it, because both rows of a
    comparison move.
    """

    def gradient_and_curvature(scores: Array) -> tuple[Array, Array]:
        differences = difference_of_orders(scores)
        of_comparisons = link_derivatives(
            differences, comparisons.outcomes, min_upset_probability=0.0
        )
        # the rows of the trees: each comparison, then each with swapped items, which is subtracted
        gradient = np.concatenate([of_comparisons.gradient, -of_comparisons.gradient])
        information = np.concatenate([of_comparisons.information, of_comparisons.information])
        return gradient, 2 * information  # twice the diagonal of the Hessian: a bound

    X = rows_of_both_orders(cells, comparisons)
    return start_gradient_trees(X, gradient_and_curvature, pair_categorical(cells, comparisons))


def rows_of_both_orders(cells: ItemCells, comparisons: ItemComparisons) -> Array:
    """Rows of (first, second), followed by rows of (second, first)."""
    first = comparisons.first
    second = comparisons.second
    encoded_covariates = comparisons.encoded_covariates
    rows_of_order = pair_rows(cells, first, second, encoded_covariates)
    rows_of_swapped = pair_rows(cells, second, first, encoded_covariates.swapped())
    return np.vstack([rows_of_order, rows_of_swapped])


def difference_of_orders(scores: Array) -> Array:
    """``F(a, b) − F(b, a)`` from the scores of `rows_of_both_orders`."""
    scores_of_order, scores_of_swapped = np.split(scores, 2)
    return np.asarray(scores_of_order - scores_of_swapped)


def pair_categorical(cells: ItemCells, comparisons: ItemComparisons) -> tuple[int, ...]:
    """Columns of codes in the rows of pairs."""
    # columns: numbers of both items, their differences, and covariates; then codes, of both items
    # and of covariates
    n_numbers = 3 * cells.numbers.shape[1] + comparisons.covariates.shape[1]
    n_codes = 2 * cells.codes.shape[1] + comparisons.covariate_codes.shape[1]
    return tuple(range(n_numbers, n_numbers + n_codes))
