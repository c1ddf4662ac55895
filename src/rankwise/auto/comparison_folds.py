"""Held-out comparisons when all items are connected: folds of items, or later blocks."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

import numpy as np

from rankwise.arrays import Array, Indices
from rankwise.auto.item_comparisons import ItemComparisons
from rankwise.formatting import count

N_FOLDS = 5  # folds of items
ENOUGH_COMPARISONS = 5000  # held out, after which no further fold is needed
LEAST_FOLDS = 2
N_TIME_BLOCKS = 6  # of which the last two are held out
N_LATER_BLOCKS = 2


class Novelty(StrEnum):
    """Which items of a held-out comparison are not in the training data."""

    BOTH = "both items new"
    ONE = "one item new"
    LATER = "later"


@dataclass(frozen=True, eq=False)
class ComparisonFold:
    """Comparisons to train on, and comparisons that are held out.

    Attributes
    ----------
    train, held_out : ndarray of int
        Row numbers of comparisons.
    is_new : ndarray of bool, shape (n_held_out, 2)
        Whether the first and the second item of a held-out comparison are held out.
    """

    train: Indices
    held_out: Indices
    is_new: Array


@dataclass(frozen=True, eq=False)
class HeldOutComparisons:
    """All folds, and their held-out comparisons one after the other.

    Attributes
    ----------
    folds : list of ComparisonFold
        The folds.
    comparisons : ItemComparisons
        Held-out comparisons; one with its items in two folds occurs in both.
    novelty : ndarray of str, shape (n_held_out,)
        A `Novelty` for each.
    """

    folds: list[ComparisonFold]
    comparisons: ItemComparisons
    novelty: Array

    @property
    def is_by_time(self) -> bool:
        """Whether later comparisons are held out."""
        return bool((self.novelty == Novelty.LATER).any())

    def mean(self, values: Array) -> float:
        """Weighted mean of one value per held-out comparison, without NaN."""
        is_defined = ~np.isnan(values)
        weights = self.comparisons.weight[is_defined]
        if not weights.any():
            return np.nan
        return float(np.average(values[is_defined], weights=weights))


def hold_out_comparisons(
    comparisons: ItemComparisons, rng: np.random.Generator
) -> HeldOutComparisons:
    """Hold out later comparisons if there are times, and folds of items otherwise."""
    if comparisons.days is None:
        folds = item_folds(comparisons, rng)
    else:
        folds = later_blocks(comparisons.days)
    if not folds:
        n_items = len(np.unique([comparisons.first, comparisons.second]))
        raise ValueError(
            f"{count(comparisons.n_comparisons, 'comparison')} of {count(n_items, 'item')}: too "
            "few to hold out some of the items, because no comparison is left to train on. Pass "
            "more comparisons, or use RankLogistic with a fixed alpha."
        )
    held_out = comparisons.take(np.concatenate([fold.held_out for fold in folds]))
    if comparisons.days is None:
        n_new_items = np.concatenate([fold.is_new.sum(axis=1) for fold in folds])
        novelty = np.where(n_new_items == 2, Novelty.BOTH, Novelty.ONE)
    else:
        novelty = np.full(held_out.n_comparisons, Novelty.LATER)
    return HeldOutComparisons(folds, held_out, novelty)


def item_folds(comparisons: ItemComparisons, rng: np.random.Generator) -> list[ComparisonFold]:
    """Folds of the compared items; trained on comparisons with no item in the fold.

    At least two folds are used, and as many as are required to hold out 5,000 comparisons.
    """
    unit_of_first = comparisons.unit_of_item[comparisons.first]
    unit_of_second = comparisons.unit_of_item[comparisons.second]
    compared_units = np.unique([unit_of_first, unit_of_second])

    # assign the compared units to folds of equal size, at random
    n_folds = min(N_FOLDS, len(compared_units))
    n_units = comparisons.unit_of_item.max() + 1
    fold_of_unit = np.full(n_units, -1)
    fold_of_unit[compared_units] = rng.permutation(len(compared_units)) % n_folds
    fold_of_first = fold_of_unit[unit_of_first]
    fold_of_second = fold_of_unit[unit_of_second]

    folds = []
    n_held_out = 0
    for fold in range(n_folds):
        # comparisons of a held-out item with any other: one of the items is new, or both
        is_new = np.column_stack([fold_of_first == fold, fold_of_second == fold])
        is_held_out = is_new.any(axis=1)
        held_out = np.flatnonzero(is_held_out)
        train = np.flatnonzero(~is_held_out)
        if not len(train) or not len(held_out):
            continue
        folds.append(ComparisonFold(train, held_out, is_new[held_out]))
        n_held_out += len(held_out)
        if n_held_out >= ENOUGH_COMPARISONS and len(folds) >= LEAST_FOLDS:
            break
    return folds


def later_blocks(days: Array) -> list[ComparisonFold]:
    """The last two of six blocks of comparisons; trained on all earlier ones.

    Comparisons of the same time are in one block.
    """
    distinct_days, day_number = np.unique(days, return_inverse=True)
    if len(distinct_days) < 2:
        raise ValueError(
            "all comparisons have the same time, so none is later than another; pass the time of "
            "each comparison, or omit time."
        )
    # cut the comparisons in the order of time into blocks of equal size, but no day in two
    n_until_day = np.cumsum(np.bincount(day_number))  # comparisons until the end of each day
    planned_block_of_day = (n_until_day - 1) * N_TIME_BLOCKS // len(days)
    _, block_of_day = np.unique(planned_block_of_day, return_inverse=True)  # without empty ones
    block = block_of_day[day_number]
    if block.max() == 0:  # nearly all comparisons have the latest time
        block = (day_number == day_number.max()).astype(np.intp)

    n_blocks = block.max() + 1
    folds = []
    for held_out_block in range(max(1, n_blocks - N_LATER_BLOCKS), n_blocks):
        train = np.flatnonzero(block < held_out_block)
        held_out = np.flatnonzero(block == held_out_block)
        no_item_is_new = np.zeros((len(held_out), 2), dtype=bool)
        folds.append(ComparisonFold(train, held_out, no_item_is_new))
    return folds
