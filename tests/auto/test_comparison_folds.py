"""Folds of items and later blocks of comparisons."""

import numpy as np
import pytest

from rankwise.auto.comparison_folds import Novelty, hold_out_comparisons
from rankwise.auto.item_comparisons import (
    ItemComparisons,
    canonical_item_order,
    number_by_first_occurrence,
)


def draw(n_items=30, n_comparisons=300, days=None, unit=None, seed=0):
    rng = np.random.default_rng(seed)
    first = rng.integers(n_items, size=n_comparisons)
    second = (first + rng.integers(1, n_items, size=n_comparisons)) % n_items
    none = np.zeros((n_comparisons, 0))
    first_win_share = rng.integers(2, size=n_comparisons).astype(float)
    if unit is None:
        unit = np.arange(n_items)
    return ItemComparisons(
        first, second, first_win_share, np.ones(n_comparisons), none, none, unit, days
    )


@pytest.mark.parametrize("n_units", [30, 12])
def test_no_training_comparison_has_an_item_of_the_fold(n_units):
    unit = np.arange(30) % n_units
    comparisons = draw(unit=unit)
    hold_out = hold_out_comparisons(comparisons, np.random.default_rng(0))
    assert len(hold_out.folds) == 5
    for fold in hold_out.folds:
        is_new = np.zeros(n_units, dtype=bool)
        is_new[unit[comparisons.first[fold.held_out]][fold.is_new[:, 0]]] = True
        is_new[unit[comparisons.second[fold.held_out]][fold.is_new[:, 1]]] = True
        ends = np.array([comparisons.first, comparisons.second])
        assert not is_new[unit[ends[:, fold.train]]].any()
        np.testing.assert_array_equal(is_new[unit[ends[:, fold.held_out]]].T, fold.is_new)
    is_both = np.concatenate([fold.is_new.all(axis=1) for fold in hold_out.folds])
    np.testing.assert_array_equal(hold_out.novelty == Novelty.BOTH, is_both)


def test_folds_end_when_5000_comparisons_are_held_out():
    hold_out = hold_out_comparisons(draw(200, 20_000), np.random.default_rng(0))
    assert len(hold_out.folds) == 2


def test_later_blocks_are_trained_on_earlier_comparisons_only():
    days = np.random.default_rng(1).integers(40, size=300).astype(float)
    comparisons = draw(days=days)
    hold_out = hold_out_comparisons(comparisons, np.random.default_rng(0))
    assert hold_out.is_by_time
    assert len(hold_out.folds) == 2
    for fold in hold_out.folds:
        assert days[fold.train].max() < days[fold.held_out].min()
    with pytest.raises(ValueError, match="same time"):
        hold_out_comparisons(draw(days=np.zeros(300)), np.random.default_rng(0))


def test_canonical_order_does_not_depend_on_sides_rows_and_items():
    rng = np.random.default_rng(2)
    cells = rng.normal(size=(30, 2))
    comparisons = draw()
    canonical = comparisons.in_canonical_order(canonical_item_order(cells))
    order = rng.permutation(30)
    place = np.argsort(order)
    rows = rng.permutation(300)
    swap = rng.random(300) < 0.5
    first, second = place[comparisons.first], place[comparisons.second]
    none = np.zeros((300, 0))
    other = ItemComparisons(
        np.where(swap, second, first)[rows],
        np.where(swap, first, second)[rows],
        np.where(swap, 1 - comparisons.first_win_share, comparisons.first_win_share)[rows],
        np.ones(300),
        none,
        none,
        np.arange(30),
    ).in_canonical_order(canonical_item_order(cells[order]))
    for name in ("first", "second", "first_win_share", "unit_of_item"):
        np.testing.assert_array_equal(getattr(other, name), getattr(canonical, name))


def test_numbers_follow_the_first_occurrence():
    np.testing.assert_array_equal(number_by_first_occurrence(["b", "a", "b", "c"]), [0, 1, 0, 2])
