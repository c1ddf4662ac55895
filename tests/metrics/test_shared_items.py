"""Standard errors of means over comparisons that share items."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rankwise.metrics import dyadic_robust_mean
from rankwise.metrics.shared_items import dyadic_robust_variance


def variance_by_double_loop(deviations, first, second):
    """The sum of products over all two comparisons with a common item."""
    total = 0.0
    for k, deviation in enumerate(deviations):
        for other, value in enumerate(deviations):
            if {first[k], second[k]} & {first[other], second[other]}:
                total += deviation * value
    return total


def draw_comparisons(rng, n_items, n_comparisons):
    first = rng.integers(n_items, size=n_comparisons)
    second = (first + rng.integers(1, n_items, size=n_comparisons)) % n_items
    return first, second


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 2**32 - 1), st.integers(2, 12), st.integers(2, 40))
def test_variance_equals_the_double_loop(seed, n_items, n_comparisons):
    rng = np.random.default_rng(seed)
    first, second = draw_comparisons(rng, n_items, n_comparisons)
    deviations = rng.normal(size=n_comparisons)
    expected = variance_by_double_loop(deviations, first, second)
    variance = dyadic_robust_variance(deviations, first, second)
    if expected > 1e-9:
        np.testing.assert_allclose(variance, expected, rtol=1e-9)
    else:
        np.testing.assert_allclose(variance, deviations @ deviations)


def test_weighted_mean_equals_the_double_loop():
    rng = np.random.default_rng(3)
    first, second = draw_comparisons(rng, 40, 200)
    values = rng.random(200)
    weight = rng.random(200)
    result = dyadic_robust_mean(values, first, second, sample_weight=weight)
    mean = (weight @ values) / weight.sum()
    deviations = weight * (values - mean) / weight.sum()
    expected = variance_by_double_loop(deviations, first, second)
    assert expected > 0
    np.testing.assert_allclose(result.mean, mean)
    np.testing.assert_allclose(result.standard_error**2, expected)


def test_nothing_changes_if_sides_rows_and_names_are_permuted():
    rng = np.random.default_rng(4)
    first, second = draw_comparisons(rng, 15, 80)
    values = rng.random(80)
    result = dyadic_robust_mean(values, first, second)
    order = rng.permutation(80)
    is_swapped = rng.random(80) < 0.5
    names = np.array([f"item {k}" for k in rng.permutation(15)])
    sides = np.where(is_swapped, second, first), np.where(is_swapped, first, second)
    other = dyadic_robust_mean(values[order], names[sides[0][order]], names[sides[1][order]])
    np.testing.assert_allclose(other, result, rtol=1e-10)


def test_comparisons_of_different_items_are_independent():
    values = np.random.default_rng(5).random(30)
    result = dyadic_robust_mean(values, np.arange(30), np.arange(30, 60))
    np.testing.assert_allclose(result.standard_error, values.std() / np.sqrt(30))


@pytest.mark.slow
def test_p_values_are_uniform_where_items_have_effects():
    """Two models that are equally good; differences of losses have effects of the items."""
    rng = np.random.default_rng(6)
    n_rejected = 0
    n_rejected_as_independent = 0
    n_trials = 600
    for _ in range(n_trials):
        first, second = draw_comparisons(rng, 60, 600)
        effects = rng.normal(size=60)
        values = effects[first] + effects[second] + rng.normal(size=600)
        n_rejected += dyadic_robust_mean(values, first, second).p < 0.05
        independent = abs(values.mean()) / (values.std() / np.sqrt(600))
        n_rejected_as_independent += independent > 1.96
    assert n_rejected / n_trials < 0.10
    assert n_rejected_as_independent / n_trials > 0.3


def test_limits():
    single = dyadic_robust_mean([1.0], ["a"], ["b"])
    assert single.mean == 1.0
    assert np.isnan(single.p)
    equal = dyadic_robust_mean([0.0, 0.0], [0, 1], [1, 2])
    assert equal.p == 1.0
    assert equal.standard_error == 0.0
    with pytest.raises(ValueError, match="one item for each"):
        dyadic_robust_mean([0.0, 1.0], [0], [1])
    with pytest.raises(ValueError, match="finite"):
        dyadic_robust_mean([np.nan, 1.0], [0, 1], [1, 2])
    with pytest.raises(ValueError, match="sample_weight"):
        dyadic_robust_mean([0.0, 1.0], [0, 1], [1, 2], sample_weight=[-1.0, 1.0])
