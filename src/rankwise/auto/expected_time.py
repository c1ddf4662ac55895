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
SEEN_TREE_SHARE = 0.05  # of the items; trees that were held out on fewer are not refitted
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
    growth = n_all / hold_out.data.graph.n_items
    if not isinstance(member, CandidateMember):
        return ExpectedSeconds(FOREIGN_SECONDS, growth / (FOREIGN_FOLDS - 1))
    n_rows, n_columns = feature_shape(member, hold_out.data)
    if member.is_trees:
        seconds_per_row = TREE_SECONDS * n_columns
        if growth == 1:
            evaluation = seconds_per_row * n_rows
            return ExpectedSeconds(evaluation, evaluation / 2)
        evaluation = seconds_per_row * n_all / 4
        is_refitted = n_rows > SEEN_TREE_SHARE * n_all
        return ExpectedSeconds(evaluation, evaluation if is_refitted else 0.0)
    row_seconds = SECONDS_PER_PRODUCT * n_columns**2
    hold_out_work = n_rows * PRODUCT_COST + n_columns * CUBE_COST
    evaluation = LEAST_SECONDS + row_seconds * hold_out_work
    return ExpectedSeconds(evaluation, row_seconds * n_all * SUMS_COST if growth > 1 else 0.0)


def first_tree_seconds(hold_out: HoldOut) -> float:
    """Expected time of the first trees; 0 for a sample, of which trees see what time allows."""
    if hold_out.is_sample:
        return 0.0
    n_columns = feature_shape(TREES, hold_out.data)[1]
    return TREE_FOLDS * FIRST_TREE_SECONDS * n_columns * hold_out.graph.n_items


def can_run_together(members: dict[str, Any], hold_out: HoldOut) -> bool:
    """Whether all members are entries of the menu, whose features fit in memory together.

    Other models may not be thread-safe.
    """
    n_entries = 0
    for member in members.values():
        if not isinstance(member, CandidateMember):
            return False
        n_entries += math.prod(feature_shape(member, hold_out.data))
    n_free = available_bytes()
    return n_free is None or 8 * FEATURE_COPIES * n_entries < n_free
