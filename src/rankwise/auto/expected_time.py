"""Estimates of the time and the memory that members of AutoRanker need."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

from rankwise.auto.member_features import FEATURE_COPIES, feature_shape
from rankwise.auto.members import TREES, CandidateMember
from rankwise.auto.training_data import HoldOut
from rankwise.runtime.memory import available_bytes

FOREIGN_FOLDS = 5  # folds of groups for models that are refitted
TREE_FOLDS = 3
SEEN_TREE_SHARE = 0.05  # share of held-out items up to which trees are not refitted
TREE_SECONDS = 1e-5  # per cell, until the number of trees is found
FIRST_TREE_SECONDS = 4e-7  # per cell, until the first trees have grown
PRODUCT_COST = 6.0  # of a hold-out, in products of the features with themselves
CUBE_COST = 30.0  # of a hold-out, in cubes of the number of columns
SUMS_COST = 1.5  # of features that are computed and summed by blocks, in the same products
SECONDS_PER_PRODUCT = 1e-10
LEAST_SECONDS = 0.05  # of an exact member
FOREIGN_SECONDS = 1.0  # of the hold-out of a ranker of unknown cost


class ExpectedSeconds(NamedTuple):
    """Expected time on one core of a typical machine.

    Attributes
    ----------
    evaluation : float
        Seconds of the hold-out.
    training : float
        Seconds of the refit on all items, if one is needed.
    """

    evaluation: float
    training: float

    @property
    def total(self) -> float:
        """Seconds of both."""
        return self.evaluation + self.training


def expected_seconds(member: Any, hold_out: HoldOut) -> ExpectedSeconds:
    """Expected time of an entry of the menu or of any ranker."""
    n_all = hold_out.all_data.graph.n_items
    n_evaluated = hold_out.graph.n_items
    if not isinstance(member, CandidateMember):  # other ranker: per item
        # k folds of (k − 1)/k of the items take as long as k − 1 fits of all
        training = FOREIGN_SECONDS * n_all / n_evaluated / (FOREIGN_FOLDS - 1)
        return ExpectedSeconds(FOREIGN_SECONDS, training)
    if member.is_trees:
        return _expected_seconds_of_trees(hold_out)
    n_rows, n_columns = feature_shape(member, hold_out.data)
    seconds_per_row = SECONDS_PER_PRODUCT * n_columns**2

    # products of n rows and cubes of p columns, both counted in rows
    hold_out_cost = n_rows * PRODUCT_COST + n_columns * CUBE_COST
    evaluation = LEAST_SECONDS + seconds_per_row * hold_out_cost
    training = 0.0  # the hold-out of all items already trains the model
    if n_evaluated < n_all:
        training = seconds_per_row * n_all * SUMS_COST
    return ExpectedSeconds(evaluation, training)


def _expected_seconds_of_trees(hold_out: HoldOut) -> ExpectedSeconds:
    """Expected time of boosted trees, which are evaluated in folds or on a sample."""
    n_all = hold_out.all_data.graph.n_items
    n_evaluated, n_columns = feature_shape(TREES, hold_out.data)
    seconds_of_all = TREE_SECONDS * n_columns * n_all
    if n_evaluated == n_all:  # three folds of two thirds; then all items once
        return ExpectedSeconds(seconds_of_all, training=seconds_of_all / 2)
    evaluation = seconds_of_all / 4  # one fold, the sample
    training = 0.0  # trees that were trained on nearly all items are not refitted
    if n_evaluated > SEEN_TREE_SHARE * n_all:
        training = evaluation
    return ExpectedSeconds(evaluation, training)


def first_tree_seconds(hold_out: HoldOut) -> float:
    """Expected time of the first trees; 0 for a sample, whose size is adapted to the time."""
    if hold_out.is_sample:  # the number of training items is then adapted to the time
        return 0.0
    _, n_columns = feature_shape(TREES, hold_out.data)
    return TREE_FOLDS * FIRST_TREE_SECONDS * n_columns * hold_out.graph.n_items


def can_run_together(members: dict[str, Any], hold_out: HoldOut) -> bool:
    """Whether all members are entries of the menu, and their features fit in memory together.

    Other models may not be thread-safe.
    """
    n_entries = 0
    for member in members.values():
        if not isinstance(member, CandidateMember):
            return False
        n_entries += math.prod(feature_shape(member, hold_out.data))
    free_bytes = available_bytes()
    needed_bytes = 8 * FEATURE_COPIES * n_entries  # 8 bytes for a float
    return free_bytes is None or needed_bytes < free_bytes
