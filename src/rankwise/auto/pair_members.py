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
    choose_wedges,
    clipped_gaps,
    pair_rows,
    wedge_indicators,
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
    limits = choose_gap_limits(cells.numbers, *sides)
    wedges = choose_wedges(cells.codes)
    gaps = clipped_gaps(cells.numbers, *sides, limits)
    columns = np.hstack([comparisons.numbers, gaps])
    indicators = wedge_indicators(cells.codes, *sides, wedges)
    design = ComparisonDesign(problem.linear.R, *sides, columns, indicators.columns)
    path = LinearPath(design, problem)
    logistic = path.select(JOINT_ALPHAS, 0.0)
    candidates = [logistic]
    for cap in JOINT_CAPS:
        candidates.append(path.select(np.array([logistic.alpha]), cap))
    selected = min(candidates, key=lambda candidate: candidate.loss)

    def train() -> TrainedPairs:
        coefficients = path.fit(selected.alpha, selected.cap)
        of_features, of_columns, of_wedges = design.split(coefficients)
        ranker = RankLogistic(selected.alpha)
        ranker.n_features_in_ = problem.linear.R.shape[1]
        ranker.coef_ = of_features
        n_covariates = comparisons.numbers.shape[1]
        joint = JointPairs()
        joint.ranker_ = as_pipeline(problem.linear.steps, ranker)
        joint.covariate_coef_ = of_columns[:n_covariates]
        joint.cap_ = selected.cap
        wedge_coef = np.zeros(sum(table.n_entries for table in wedges))
        wedge_coef[indicators.entry] = of_wedges
        joint.store(limits, of_columns[n_covariates:], wedges, wedge_coef)
        return TrainedPairs(joint)

    return EvaluatedPairMember(
        "joint linear model of pairs",
        False,
        as_log_odds(selected.differences, selected.cap),
        0.0,
        train,
        alpha=selected.alpha,
    )


def evaluate_pair_trees(problem: ComparisonProblem) -> EvaluatedPairMember:
    """Boosted trees of the columns of both items and their gaps."""
    cells = problem.cells
    if cells is None:
        raise ValueError("trees need dense items")
    folds = problem.hold_out.folds
    growing = []
    held_out_rows = []
    for fold in folds:
        growing.append(grow_pair_trees(cells, problem.comparisons.take(fold.train)))
        held_out = problem.comparisons.take(fold.held_out)
        held_out_rows.append(rows_of_both_orders(cells, held_out))

    def differences(fold_number: int, first_tree: int) -> Array:
        return difference_of_orders(
            growing[fold_number].predict(held_out_rows[fold_number], first_tree)
        )

    rounds = select_rounds(growing, differences, problem)

    def train() -> TrainedPairs:
        trees = grow_pair_trees(cells, problem.comparisons)
        trees.add_trees(rounds.n_trees)
        n_columns = held_out_rows[0].shape[1]
        model = PairTrees()
        model.trees_ = BoostedTrees(
            rounds.n_trees, categorical=pair_categorical(cells, problem.comparisons)
        ).store(trees.model, trees.n_trees, n_columns)
        return TrainedPairs(model)

    return EvaluatedPairMember(
        "trees of pairs", False, rounds.differences, 0.0, train, n_trees=rounds.n_trees
    )


def grow_pair_trees(cells: ItemCells, comparisons: ItemComparisons) -> GradientTrees:
    """Start trees F of pairs for the logistic loss of ``F(a, b) − F(b, a)``."""
    outcomes = comparisons.outcomes

    def derivatives(scores: Array) -> tuple[Array, Array]:
        of_pairs = link_derivatives(difference_of_orders(scores), outcomes, 0.0)
        gradient = np.concatenate([of_pairs.gradient, -of_pairs.gradient])
        curvature = np.concatenate([of_pairs.information, of_pairs.information])
        return gradient, 2 * curvature

    X = rows_of_both_orders(cells, comparisons)
    return start_trees(X, derivatives, pair_categorical(cells, comparisons))


def rows_of_both_orders(cells: ItemCells, comparisons: ItemComparisons) -> Array:
    """Rows of (first, second), followed by those of (second, first)."""
    first, second = comparisons.first, comparisons.second
    context = comparisons.context
    forward = pair_rows(cells, first, second, context)
    backward = pair_rows(cells, second, first, context.swapped())
    return np.vstack([forward, backward])


def difference_of_orders(scores: Array) -> Array:
    """``F(a, b) − F(b, a)`` from the scores of `rows_of_both_orders`."""
    forward, backward = np.split(scores, 2)
    return np.asarray(forward - backward)


def pair_categorical(cells: ItemCells, comparisons: ItemComparisons) -> tuple[int, ...]:
    """Columns of codes in the rows of pairs."""
    n_before = 3 * cells.numbers.shape[1] + comparisons.numbers.shape[1]
    n_codes = 2 * cells.codes.shape[1] + comparisons.codes.shape[1]
    return tuple(range(n_before, n_before + n_codes))
