"""Smooth metrics against double loops, finite differences and the metrics themselves."""

import numpy as np
import pytest
from scipy.special import expit

from rankwise.auto import smooth_metrics
from rankwise.auto.smooth_metrics import TEMPERATURE, SmoothMetric, smooth_version
from rankwise.metrics import get_metric
from rankwise.preprocessing.group_scaling import scale_in_groups

NAMES = ["ndcg@5", "ndcg", "ndcg(gain=linear)@3", "map", "map@4", "mrr", "mrr@3", "map(relevant=2)"]


@pytest.fixture
def rng():
    return np.random.default_rng(0)


@pytest.fixture
def problem(rng):
    unit = rng.permutation(np.repeat(np.arange(12), rng.integers(1, 15, 12)))
    y = rng.integers(0, 4, len(unit)) * (rng.random(len(unit)) < 0.5).astype(float)
    y[unit == 3] = 0.0
    Z = scale_in_groups(rng.standard_normal((len(unit), 4)) + 0.3 * y[:, None], unit)
    return Z, y, unit


def value_by_loops(name, y, scores):
    """The smooth metric of one unit."""
    options = dict(get_metric(name).options)
    k = options.get("k")
    least = options.get("relevant", 1e-300)
    scaled = scores / (np.sqrt(np.mean(scores**2)) or 1.0)
    relevant = [i for i in range(len(y)) if y[i] >= least]
    if not relevant:
        return np.nan

    def above(i, items):
        return sum(expit((scaled[j] - scaled[i]) / TEMPERATURE) for j in items if j != i)

    rank = {i: 1 + above(i, range(len(y))) for i in relevant}
    weight = {i: 1.0 if k is None else expit(k + 0.5 - rank[i]) for i in relevant}
    if name.startswith("map"):
        precision = {i: (1 + above(i, relevant)) / rank[i] for i in relevant}
        return sum(weight[i] * precision[i] for i in relevant) / len(relevant)
    if name.startswith("mrr"):
        share = {i: np.exp(-rank[i]) for i in relevant}
        total = sum(share[i] * weight[i] / rank[i] for i in relevant)
        return total / sum(share.values())
    gains = y if options.get("gain") == "linear" else 2**y - 1
    ideal = sum(g / np.log2(2 + place) for place, g in enumerate(sorted(gains)[::-1][:k]))
    return sum(gains[i] * weight[i] / np.log2(1 + rank[i]) for i in relevant) / ideal


@pytest.mark.parametrize("name", NAMES)
def test_values_equal_double_loops(problem, rng, name):
    Z, y, unit = problem
    w = rng.standard_normal(4)
    values = SmoothMetric(Z, y, unit, smooth_version(get_metric(name))).evaluate_at(w).values
    expected = [value_by_loops(name, y[unit == u], (Z @ w)[unit == u]) for u in range(12)]
    np.testing.assert_allclose(values, expected, atol=1e-5)  # pairs have single precision


@pytest.mark.parametrize("name", NAMES)
def test_gradients_equal_finite_differences(problem, rng, name):
    Z, y, unit = problem
    metric = SmoothMetric(Z, y, unit, smooth_version(get_metric(name)))
    w = rng.standard_normal(4)
    step = 1e-3
    differences = [
        metric.evaluate_at(w + step * e).values - metric.evaluate_at(w - step * e).values
        for e in np.eye(4)
    ]
    expected = np.nan_to_num(np.stack(differences, axis=1)) / (2 * step)
    np.testing.assert_allclose(metric.evaluate_at(w).gradients, expected, atol=1e-3)


@pytest.mark.parametrize("name", NAMES)
def test_blocks_of_pairs_change_nothing(problem, rng, name, monkeypatch):
    Z, y, unit = problem
    w = rng.standard_normal(4)
    function = smooth_version(get_metric(name))
    whole = SmoothMetric(Z, y, unit, function).evaluate_at(w)
    monkeypatch.setattr(smooth_metrics, "BLOCK_PAIRS", 20)
    blocks = SmoothMetric(Z, y, unit, function)
    assert len(blocks._blocks) > 3
    np.testing.assert_allclose(blocks.evaluate_at(w).values, whole.values, rtol=1e-6)
    np.testing.assert_allclose(blocks.evaluate_at(w).gradients, whole.gradients, atol=1e-6)


@pytest.mark.parametrize("name", ["ndcg@5", "map", "mrr"])
def test_smooth_metrics_are_scale_invariant_and_near_the_metric(problem, rng, name):
    Z, y, unit = problem
    w = rng.standard_normal(4)
    metric = SmoothMetric(Z, y, unit, smooth_version(get_metric(name)))
    values = metric.evaluate_at(w).values
    np.testing.assert_allclose(metric.evaluate_at(1e12 * w).values, values, atol=1e-6)
    exact = get_metric(name)(y, Z @ w, unit)
    assert np.nanmean(values) == pytest.approx(exact, abs=0.2)


def test_zero_weights_and_units_without_a_relevant_item(problem):
    Z, y, unit = problem
    metric = SmoothMetric(Z, y, unit, smooth_version(get_metric("ndcg@5")))
    result = metric.evaluate_at(np.zeros(4))
    assert np.isnan(result.values[3])
    assert not result.gradients[3].any()
    assert np.isfinite(result.gradients).all()
    nothing = SmoothMetric(Z, np.zeros(len(y)), unit, smooth_version(get_metric("map")))
    assert np.isnan(nothing.evaluate_at(np.ones(4)).values).all()


@pytest.mark.parametrize("name", ["disagreement", "p@5", "err", "map(normalizer=attainable)@5"])
def test_other_metrics_have_no_smooth_version(name):
    assert smooth_version(get_metric(name)) is None
