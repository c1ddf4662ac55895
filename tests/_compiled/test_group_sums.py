"""The passes over blocks of rows, compiled and in NumPy, against loops over the rows."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import rankwise._compiled as active
from rankwise._compiled import group_sums_fallback as group_sums_fallback

MODULES = [active, group_sums_fallback]
IDS = ["active", "fallback"]


@st.composite
def blocks(draw):
    """Rows in families, sorted or not, some families empty; values far from zero among them."""
    n_rows, n_columns, n_families = (draw(st.integers(1, n)) for n in (30, 5, 6))
    rng = np.random.default_rng(draw(st.integers(0, 2**31)))
    kind = draw(st.sampled_from([np.float32, np.float64]))
    X = (rng.normal(size=(n_rows, n_columns)) + draw(st.sampled_from([0.0, 1e6]))).astype(kind)
    family = rng.integers(0, n_families, n_rows)
    if draw(st.booleans()):
        family.sort()
    return X, family, n_families, rng


@pytest.mark.parametrize("module", MODULES, ids=IDS)
@pytest.mark.parametrize("has_mass", [True, False])
@settings(max_examples=60)
@given(case=blocks())
def test_sums_and_moment_are_those_of_a_loop_in_float64(module, has_mass, case):
    X, family, n_families, rng = case
    weight = rng.normal(size=len(X))
    mass = rng.uniform(0, 2, len(X)) if has_mass else np.ones(len(X))
    sums, moment = rng.normal(size=(n_families, X.shape[1])), rng.normal(size=X.shape[1])
    expected_sums, expected_moment = sums.copy(), moment.copy()
    for x, f, w, n in zip(X.astype(np.float64), family, weight, mass, strict=True):
        expected_sums[f] += n * x
        expected_moment += w * x
    module.add_rows(X, family, weight, sums, moment, mass if has_mass else None)
    scale = np.abs(X).max() * len(X)
    np.testing.assert_allclose(sums, expected_sums, rtol=1e-12, atol=1e-14 * scale)
    np.testing.assert_allclose(moment, expected_moment, rtol=1e-12, atol=1e-13 * scale)


@pytest.mark.parametrize("module", MODULES, ids=IDS)
@pytest.mark.parametrize("is_centered", [True, False])
@pytest.mark.parametrize("has_factor", [True, False])
@settings(max_examples=60)
@given(case=blocks())
def test_rows_are_centered_before_they_are_scaled(module, has_factor, is_centered, case):
    X, family, n_families, rng = case
    means = rng.normal(size=(n_families, X.shape[1])) + X[0] if is_centered else None
    scale = rng.uniform(0.5, 2, n_families)
    out = np.empty(X.shape)
    factor = rng.uniform(0, 2, len(X)) if has_factor else None
    module.scale_rows(X, family, means, scale, out, factor)
    for i, (x, f, z) in enumerate(zip(X.astype(np.float64), family, out, strict=True)):
        by = scale[f] * factor[i] if has_factor else scale[f]
        np.testing.assert_array_equal(z, by * (x - means[f] if is_centered else x))


@pytest.mark.parametrize("module", MODULES, ids=IDS)
def test_rows_may_be_written_in_their_own_place(module):
    X = np.array([[1.0, 2.0], [5.0, 2.0]])
    module.scale_rows(X, np.array([0, 0]), np.array([[3.0, 2.0]]), np.array([2.0]), X)
    np.testing.assert_array_equal(X, [[-4.0, 0.0], [4.0, 0.0]])


@pytest.mark.parametrize("module", MODULES, ids=IDS)
def test_rows_without_columns_are_fine(module):
    X = np.empty((3, 0))
    module.add_rows(X, np.zeros(3, int), np.ones(3), np.empty((1, 0)), np.empty(0))
    module.scale_rows(X, np.zeros(3, int), None, np.ones(1), X.copy())
