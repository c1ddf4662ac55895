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
from rankwise.auto.gradient_trees import GradientTrees, start_trees
from rankwise.auto.item_cells import ItemCells
from rankwise.auto.item_comparisons import ItemComparisons
from rankwise.auto.linear_comparisons import ComparisonDesign
from rankwise.auto.pair_columns import (
    choose_gap_limits,
    choose_interactions,
    clipped_gaps,
    interaction_indicators,
    pair_rows,
)
from rankwise.auto.pair_models import JointPairs, PairTrees
from rankwise.auto.penalty_path import LinearPath
from rankwise.auto.tree_rounds import select_rounds
from rankwise.rankers.rank_logistic import RankLogistic

JOINT_ALPHAS = 10.0 ** np.arange(-1, 3)
JOINT_CAPS = (0.01, 0.03)  # beside the logistic link


def evaluate_joint(problem: ComparisonProblem) -> EvaluatedPairMember:
    """Hinges of items, clipped gaps of numbers and pairs of categories in one linear model."""
    cells = problem.cells
    if cells is None:
        raise ValueError("gaps need dense items")
    comparisons = problem.comparisons
    sides = comparisons.first, comparisons.second
    gap_limits = choose_gap_limits(cells.numbers, *sides)
    gaps = clipped_gaps(cells.numbers, *sides, gap_limits)
    interaction_tables = choose_interactions(cells.codes)
    indicators = interaction_indicators(cells.codes, *sides, interaction_tables)
    covariates_and_gaps = np.hstack([comparisons.numbers, gaps])
    features = problem.linear.R
    design = ComparisonDesign(features, *sides, covariates_and_gaps, indicators.columns)

    # the penalty of the logistic link, then the link with that penalty
    path = LinearPath(design, problem)
    logistic = path.select(JOINT_ALPHAS, cap=0.0)
    candidates = [logistic]
    for cap in JOINT_CAPS:
        candidates.append(path.select(np.array([logistic.alpha]), cap))
    selected = min(candidates, key=lambda candidate: candidate.loss)

    def train() -> TrainedPairs:
        coefficients = path.fit(selected.alpha, selected.cap)
        feature_coef, column_coef, indicator_coef = design.split(coefficients)
        ranker = RankLogistic(selected.alpha)
        ranker.n_features_in_ = features.shape[1]
        ranker.coef_ = feature_coef
        joint = JointPairs()
        joint.ranker_ = as_pipeline(problem.linear.steps, ranker)
        joint.cap_ = selected.cap

        n_covariates = comparisons.numbers.shape[1]
        joint.covariate_coef_ = column_coef[:n_covariates]
        gap_coef = column_coef[n_covariates:]
        interaction_coef = np.zeros(sum(table.n_entries for table in interaction_tables))
        interaction_coef[indicators.entry] = indicator_coef  # 0 for pairs that do not occur
        joint.store(gap_limits, gap_coef, interaction_tables, interaction_coef)
        return TrainedPairs(joint)

    return EvaluatedPairMember(
        name="joint linear model of pairs",
        is_order=False,
        differences=as_log_odds(selected.differences, selected.cap),
        cap=0.0,  # the log odds are capped above
        train=train,
        alpha=selected.alpha,
    )


def evaluate_pair_trees(problem: ComparisonProblem) -> EvaluatedPairMember:
    """Boosted trees of the columns of both items and their gaps."""
    cells = problem.cells
    if cells is None:
        raise ValueError("trees need dense items")
    trees_of_folds = []
    held_out_rows = []
    for fold in problem.hold_out.folds:
        train_comparisons = problem.comparisons.take(fold.train)
        held_out_comparisons = problem.comparisons.take(fold.held_out)
        trees_of_folds.append(grow_pair_trees(cells, train_comparisons))
        held_out_rows.append(rows_of_both_orders(cells, held_out_comparisons))

    def held_out_differences(fold_number: int, first_tree: int) -> Array:
        scores = trees_of_folds[fold_number].predict(held_out_rows[fold_number], first_tree)
        return difference_of_orders(scores)

    rounds = select_rounds(trees_of_folds, held_out_differences, problem)

    def train() -> TrainedPairs:
        trees = grow_pair_trees(cells, problem.comparisons)
        trees.add_trees(rounds.n_trees)
        n_columns = held_out_rows[0].shape[1]
        categorical = pair_categorical(cells, problem.comparisons)
        stored_trees = BoostedTrees(rounds.n_trees, categorical=categorical)
        model = PairTrees()
        model.trees_ = stored_trees.store(trees.model, trees.n_trees, n_columns)
        return TrainedPairs(model)

    return EvaluatedPairMember(
        name="trees of pairs",
        is_order=False,
        differences=rounds.differences,
        cap=0.0,
        train=train,
        n_trees=rounds.n_trees,
    )


def grow_pair_trees(cells: ItemCells, comparisons: ItemComparisons) -> GradientTrees:
    """Start trees F of pairs for the logistic loss of ``F(a, b) − F(b, a)``.

    The curvature is twice the diagonal of the Hessian, which bounds it, because both rows of a
    comparison move.
    """

    def gradient_and_curvature(scores: Array) -> tuple[Array, Array]:
        differences = difference_of_orders(scores)
        of_comparisons = link_derivatives(differences, comparisons.outcomes, cap=0.0)
        gradient = np.concatenate([of_comparisons.gradient, -of_comparisons.gradient])
        information = np.concatenate([of_comparisons.information, of_comparisons.information])
        return gradient, 2 * information  # twice the diagonal of the Hessian: a bound

    X = rows_of_both_orders(cells, comparisons)
    return start_trees(X, gradient_and_curvature, pair_categorical(cells, comparisons))


def rows_of_both_orders(cells: ItemCells, comparisons: ItemComparisons) -> Array:
    """Rows of (first, second), followed by those of (second, first)."""
    first = comparisons.first
    second = comparisons.second
    context = comparisons.context
    rows_of_order = pair_rows(cells, first, second, context)
    rows_of_swapped = pair_rows(cells, second, first, context.swapped())
    return np.vstack([rows_of_order, rows_of_swapped])


def difference_of_orders(scores: Array) -> Array:
    """``F(a, b) − F(b, a)`` from the scores of `rows_of_both_orders`."""
    scores_of_order, scores_of_swapped = np.split(scores, 2)
    return np.asarray(scores_of_order - scores_of_swapped)


def pair_categorical(cells: ItemCells, comparisons: ItemComparisons) -> tuple[int, ...]:
    """Columns of codes in the rows of pairs."""
    # numbers of both items and their differences, and covariates; then codes of both items
    n_numbers = 3 * cells.numbers.shape[1] + comparisons.numbers.shape[1]
    n_codes = 2 * cells.codes.shape[1] + comparisons.codes.shape[1]
    return tuple(range(n_numbers, n_numbers + n_codes))
