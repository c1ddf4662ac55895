"""Selection of the number of boosted trees by held-out comparisons."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from rankwise.arrays import Array
from rankwise.auto.comparison_problem import ComparisonProblem
from rankwise.auto.gradient_trees import GradientTrees

TREES_PER_STEP = 25  # trees between two evaluations
MAX_TREES = 600
PATIENCE = 3  # stages without improvement, after which growth ends
LEAST_IMPROVEMENT = 1e-3  # relative improvement of the loss that counts


class SelectedTrees(NamedTuple):
    """The number of trees with the smallest held-out loss, and its differences of scores."""

    n_trees: int
    differences: Array


def grow_to_least_held_out_loss(
    trees_of_folds: Sequence[GradientTrees],
    differences_by_trees: Callable[[int, int], Array],
    problem: ComparisonProblem,
) -> SelectedTrees:
    """Grow the trees of all folds together until the held-out loss stops falling.

    Parameters
    ----------
    trees_of_folds : sequence of GradientTrees
        Trees of each fold, none of them grown.
    differences_by_trees : callable
        Held-out differences of scores by the trees of a fold, from a tree on.
    problem : ComparisonProblem
        Held-out outcomes.
    """
    differences_of_folds = [np.zeros(len(fold.held_out)) for fold in problem.hold_out.folds]
    best = SelectedTrees(0, np.concatenate(differences_of_folds))
    least_loss = np.inf
    last_stage_with_gain = 0  # stage that lowered the loss by more than `LEAST_IMPROVEMENT`
    for stage in range(1, MAX_TREES // TREES_PER_STEP + 1):
        for fold_number, trees in enumerate(trees_of_folds):
            first_new_tree = trees.n_trees
            trees.add_trees(TREES_PER_STEP)
            of_new_trees = differences_by_trees(fold_number, first_new_tree)
            differences_of_folds[fold_number] = differences_of_folds[fold_number] + of_new_trees
        held_out_differences = np.concatenate(differences_of_folds)
        loss = problem.held_out_loss(held_out_differences, min_upset_probability=0.0)
        if loss < least_loss * (1 - LEAST_IMPROVEMENT):
            last_stage_with_gain = stage
        if loss < least_loss:
            least_loss = loss
            best = SelectedTrees(stage * TREES_PER_STEP, held_out_differences)
        if stage - last_stage_with_gain >= PATIENCE or problem.is_time_over():
            break
    if not any(trees.n_trees for trees in trees_of_folds):
        raise ValueError("there are too few comparisons for a split")
    return best
