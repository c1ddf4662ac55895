"""Sides of a table keep the digits of features with large offsets and different units."""

from __future__ import annotations

import numpy as np
import pytest

from rankwise import ConditionalRankRLS, LabelRanker
from rankwise.dyadic.sides import decompose_features, feature_side
from tests.oracle_tables import count_from_mean, exact_scores

N_ROWS, N_COLUMNS = 10, 4


def relative_error(scores, truth):
    return np.abs(count_from_mean(scores) - truth).max() / np.abs(truth).max()


def drop_cells(Y):
    Y = Y.copy()
    Y[[0, 3, 7], [1, 2, 3]] = np.nan
    return Y


@pytest.mark.parametrize("has_missing", [False, True])
@pytest.mark.parametrize("alpha", [1e-3, 1.0, 100.0])
@pytest.mark.parametrize(
    "offset, spread, tolerance", [(0.0, 1.0, 1e-9), (1e6, 1.0, 1e-8), (1.7e9, 5.0, 1e-6)]
)
def test_a_column_of_rows_with_a_large_offset_keeps_its_digits(
    offset, spread, tolerance, alpha, has_missing
):
    rng = np.random.default_rng(0)
    rows, new_rows = rng.normal(size=(N_ROWS, 2)), rng.normal(size=(3, 2))
    columns = rng.normal(size=(N_COLUMNS, 2))
    Y = rng.normal(size=(N_ROWS, N_COLUMNS)) + rows[:, :1] * columns[:, 0]
    Y = drop_cells(Y) if has_missing else Y
    rows[:, 0] = offset + spread * rows[:, 0]
    new_rows[:, 0] = offset + spread * new_rows[:, 0]
    truth = exact_scores(rows, columns, Y, alpha, new_rows)
    model = ConditionalRankRLS(alpha, tol=1e-10).fit(rows, columns, Y)
    assert relative_error(model.predict(new_rows), truth) < tolerance


@pytest.mark.parametrize("has_missing", [False, True])
def test_held_out_rows_with_a_large_offset_keep_their_digits(has_missing):
    rng = np.random.default_rng(1)
    rows, columns = rng.normal(size=(N_ROWS, 2)), rng.normal(size=(N_COLUMNS, 2))
    Y = rng.normal(size=(N_ROWS, N_COLUMNS)) + rows[:, :1] * columns[:, 0]
    Y = drop_cells(Y) if has_missing else Y
    far = rows + np.array([1e8, 0.0])
    model = ConditionalRankRLS(1.0, fit_intercept=False, tol=1e-12)
    held_out = model.leave_out(far, columns, Y, cv=None)
    for k in (0, 5):
        rest = np.arange(N_ROWS) != k
        refitted = model.fit(far[rest], columns, Y[rest]).predict(far[[k]], columns)[0]
        is_scored = ~np.isnan(held_out[k])
        difference = held_out[k, is_scored] - refitted[is_scored]
        assert np.ptp(difference) < 1e-6 * np.ptp(refitted)


@pytest.mark.parametrize(
    "units",
    [[1e12, 1e12, 1e12], [1e-12, 1.0, 1e12], [1.0, 1e-12, 1e-24]],
    ids=["large", "24 decades", "small"],
)
def test_iterations_do_not_stop_early_for_any_units_of_features(units):
    rng = np.random.default_rng(2)
    rows, new_rows = rng.normal(size=(N_ROWS, 3)), rng.normal(size=(3, 3))
    columns = rng.normal(size=(N_COLUMNS, 2))
    Y = drop_cells(rows @ rng.normal(size=(3, N_COLUMNS)))
    rows, new_rows = rows * units, new_rows * units
    alpha = 1e-3 * float(np.median(units)) ** 2
    model = ConditionalRankRLS(alpha).fit(rows, columns, Y)
    truth = exact_scores(rows, columns, Y, alpha, new_rows)
    assert relative_error(model.predict(new_rows), truth) < 1e-6
    labels = LabelRanker(alpha).fit(rows, Y)
    truth = exact_scores(rows, np.eye(N_COLUMNS), Y, alpha, new_rows)
    assert relative_error(labels.predict(new_rows), truth) < 1e-6


def test_a_reflection_keeps_the_kernel_and_its_constant():
    R = np.random.default_rng(3).normal(size=(6, 3)) + np.array([3.0, -2.0, 0.0])
    side = feature_side(R, has_constant=True)
    np.testing.assert_allclose(side.matrix @ side.matrix.T, R @ R.T + side.constant)
    B = np.random.default_rng(4).normal(size=(4, 2))
    weights, constant = side.split_constant(B)
    np.testing.assert_allclose(R @ weights + constant, side.matrix @ B)


@pytest.mark.parametrize("shape", [(7, 3), (3, 7)])
def test_features_are_the_product_of_their_decomposition(shape):
    R = np.random.default_rng(5).normal(size=shape) * np.geomspace(1, 1e9, shape[1])
    left, singular, right = decompose_features(R)
    np.testing.assert_allclose(left * singular @ right.T, R, rtol=1e-9)
    np.testing.assert_allclose(left.T @ left, np.eye(3), atol=1e-12)
    np.testing.assert_allclose(right.T @ right, np.eye(3), atol=1e-12)
