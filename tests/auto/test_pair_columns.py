"""Columns of pairs: gaps, pairs of categories, and rows of trees."""

import numpy as np

from rankwise.auto.item_cells import ItemCells
from rankwise.auto.pair_columns import (
    EncodedCovariates,
    choose_gap_limits,
    choose_interactions,
    clipped_gaps,
    interaction_indicators,
    pair_rows,
)
from rankwise.auto.pair_models import JointPairs


def draw_items(seed=0, n_items=20, n_comparisons=200):
    rng = np.random.default_rng(seed)
    numbers = rng.normal(size=(n_items, 2))
    numbers[3, 1] = np.nan
    codes = rng.integers(3, size=(n_items, 2)).astype(float)
    codes[5, 0] = np.nan
    first = rng.integers(n_items, size=n_comparisons)
    second = (first + rng.integers(1, n_items, size=n_comparisons)) % n_items
    return ItemCells(numbers, codes), first, second


def test_gaps_change_their_sign_with_the_sides_and_are_at_most_one():
    cells, first, second = draw_items()
    limits = choose_gap_limits(cells.numbers, first, second)
    gaps = clipped_gaps(cells.numbers, first, second, limits)
    assert np.abs(gaps).max() == 1.0
    np.testing.assert_array_equal(gaps, -clipped_gaps(cells.numbers, second, first, limits))
    is_missing = np.isnan(cells.numbers[first, 1] - cells.numbers[second, 1])
    assert (gaps[is_missing][:, limits.column == 1] == 0).all()


def test_constant_columns_have_no_gaps():
    limits = choose_gap_limits(np.ones((4, 1)), np.array([0, 1]), np.array([2, 3]))
    assert len(limits.max_gap) == 0


def test_interactions_equal_the_double_loop():
    cells, first, second = draw_items()
    tables = choose_interactions(cells.codes)
    assert [(table.left, table.right) for table in tables] == [(0, 0), (1, 1), (0, 1)]
    indicators = interaction_indicators(cells.codes, first, second, tables)
    rng = np.random.default_rng(1)
    coefficients = rng.normal(size=len(indicators.entry))
    effects = np.zeros(sum(table.n_entries for table in tables))
    effects[indicators.entry] = coefficients
    starts = np.cumsum([0, *[table.n_entries for table in tables]])
    expected = np.zeros(len(first))
    for k, (a, b) in enumerate(zip(first, second, strict=True)):
        for table, start in zip(tables, starts, strict=False):
            left = np.nan_to_num(cells.codes[:, table.left], nan=table.n_left - 1).astype(int)
            right = np.nan_to_num(cells.codes[:, table.right], nan=table.n_right - 1).astype(int)
            expected[k] += effects[start + left[a] * table.n_right + right[b]]
            expected[k] -= effects[start + left[b] * table.n_right + right[a]]
    np.testing.assert_allclose(indicators.columns @ coefficients, expected, atol=1e-12)
    joint = JointPairs()
    joint.cap_ = 0.0
    joint.covariate_coef_ = np.zeros(0)
    no_limits = choose_gap_limits(np.ones((20, 1)), first, second)
    joint.store_gaps_and_interactions(no_limits, np.zeros(0), tables, effects)
    encoded_covariates = EncodedCovariates(np.zeros((len(first), 0)), np.zeros((len(first), 0)))
    log_odds = joint.log_odds(np.zeros(20), cells, (first, second), encoded_covariates)
    np.testing.assert_allclose(log_odds, expected, atol=1e-12)
    reverse = joint.log_odds(np.zeros(20), cells, (second, first), encoded_covariates)
    np.testing.assert_array_equal(reverse, -log_odds)


def test_rows_of_trees_hold_both_items_and_signed_covariates():
    cells, first, second = draw_items()
    encoded_covariates = EncodedCovariates(np.ones((len(first), 1)), np.full((len(first), 1), 2.0))
    rows = pair_rows(cells, first, second, encoded_covariates)
    reverse = pair_rows(cells, second, first, encoded_covariates.swapped())
    np.testing.assert_array_equal(rows[:, :2], reverse[:, 2:4])
    np.testing.assert_array_equal(rows[:, 4:7], -reverse[:, 4:7])
    np.testing.assert_array_equal(rows[:, 7:9], reverse[:, 9:11])
    np.testing.assert_array_equal(rows[:, 11], reverse[:, 11])
