"""Selection of the number of boosted trees by held-out comparisons."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from rankwise.arrays import Array
from rankwise.auto.comparison_problem import ComparisonProblem
from rankwise.auto.gradient_trees import GradientTrees

STAGE = 25  # trees between two evaluations
MAX_TREES = 600
PATIENCE = 3  # stages without improvement, after which growth ends
LEAST_GAIN = 1e-3  # relative improvement of the loss that counts


class SelectedRounds(NamedTuple):
    """The number of trees with the smallest held-out loss, and its differences of scores."""

    n_trees: int
    differences: Array


def select_rounds(
    growing: Sequence[GradientTrees],
    differences: Callable[[int, int], Array],
    problem: ComparisonProblem,
) -> SelectedRounds:
    """Grow the trees of all folds together until the held-out loss stops falling.

    Parameters
    ----------
    growing : sequence of GradientTrees
        Trees of each fold, none of them grown.
    differences : callable
        Held-out differences of scores by the trees of a fold, from a tree on.
    problem : ComparisonProblem
        Held-out outcomes.
    """
    scores = [np.zeros(len(fold.held_out)) for fold in problem.hold_out.folds]
    best = SelectedRounds(0, np.concatenate(scores))
    least_loss = np.inf
    best_stage = 0
    for stage in range(1, MAX_TREES // STAGE + 1):
        for k, trees in enumerate(growing):
            first_tree = trees.n_trees
            trees.add_trees(STAGE)
            scores[k] = scores[k] + differences(k, first_tree)
        held_out = np.concatenate(scores)
        loss = problem.loss(held_out, 0.0)
        if loss < least_loss * (1 - LEAST_GAIN):
            best_stage = stage
        if loss < least_loss:
            least_loss = loss
            best = SelectedRounds(stage * STAGE, held_out)
        if stage - best_stage >= PATIENCE or problem.is_time_over():
            break
    if not any(trees.n_trees for trees in growing):
        raise ValueError("there are too few comparisons for a split")
    return best
