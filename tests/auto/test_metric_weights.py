"""Weights of members that maximize the requested metric, against refits."""

import numpy as np
import pytest
from scipy.optimize import minimize

from rankwise import AutoRanker
from rankwise.auto.metric_weights import MetricWeights, scaled_weights
from rankwise.auto.smooth_metrics import SmoothMetric, smooth_version
from rankwise.datasets import make_ranking
from rankwise.metrics import get_metric
from rankwise.preprocessing.group_scaling import scale_in_groups

N_UNITS = 60


@pytest.fixture
def rng():
    return np.random.default_rng(0)


@pytest.fixture
def metric(rng):
    unit = np.repeat(np.arange(N_UNITS), 10)
    y = rng.integers(0, 3, len(unit)).astype(float)
    y[unit == 7] = 0.0
    Z = scale_in_groups(rng.standard_normal((len(unit), 3)) + 0.7 * y[:, None], unit)
    return SmoothMetric(Z, y, unit, smooth_version(get_metric("ndcg@5")))


def objective(metric, w, counts, pairwise, strength):
    values = metric.evaluate_at(w).values
    is_defined = ~np.isnan(values)
    mean = counts[is_defined] @ values[is_defined] / counts[is_defined].sum()
    return mean - strength * ((w - scaled_weights(pairwise)) ** 2).sum()


def refit(metric, counts, pairwise, strength):
    start = scaled_weights(pairwise)
    return minimize(
        lambda w: -objective(metric, w, counts, pairwise, strength),
        start,
        method="Nelder-Mead",
        options={"xatol": 1e-4, "fatol": 1e-9, "maxiter": 2000},
    ).x


@pytest.mark.parametrize("strength", [1.0, 0.1])
def test_weights_maximize_the_smooth_metric(metric, rng, strength):
    pairwise = rng.random(3)
    counts = np.ones(N_UNITS, dtype=np.intp)
    fitted = MetricWeights.fit(metric, pairwise, strength)
    best = refit(metric, counts, pairwise, strength)
    reached = objective(metric, fitted.optimum, counts, pairwise, strength)
    assert reached >= objective(metric, best, counts, pairwise, strength) - 1e-4
    assert reached >= objective(metric, scaled_weights(pairwise), counts, pairwise, strength)


@pytest.mark.parametrize("strength", [1.0, 0.1])
def test_weights_without_a_unit_are_near_those_of_a_refit(metric, rng, strength):
    pairwise = 0.5 + rng.random(3)
    fitted = MetricWeights.fit(metric, pairwise, strength)
    counts = np.ones(N_UNITS, dtype=np.intp)
    pairwise_without = np.tile(pairwise, (N_UNITS, 1))
    approximate = fitted.weights_without_each_unit(counts, pairwise_without)
    for u in (0, 7, 20, 41):
        without = counts.copy()
        without[u] = 0
        exact = refit(metric, without, pairwise, strength)
        np.testing.assert_allclose(approximate[u], exact, atol=0.05)
        np.testing.assert_allclose(
            fitted.member_weights(without, pairwise), approximate[u], atol=1e-12
        )


def test_a_unit_without_a_metric_changes_no_weights(metric, rng):
    pairwise = rng.random(3)
    fitted = MetricWeights.fit(metric, pairwise, 1.0)
    counts = np.ones(N_UNITS, dtype=np.intp)
    more = counts.copy()
    more[7] = 5
    np.testing.assert_array_equal(
        fitted.member_weights(counts, pairwise), fitted.member_weights(more, pairwise)
    )


@pytest.mark.parametrize("scoring", ["ndcg@3", "map", "mrr"])
def test_auto_ranker_optimizes_the_requested_metric(scoring):
    X, y, groups = make_ranking(n_queries=40, noise=1.0, random_state=3)[:3]
    members = ["linear, standard, magnitude", "linear, log+group, sign", "hinges, log+group, sign"]
    model = AutoRanker(members, scoring=scoring, n_resamples=0).fit(X, y, groups)
    pairwise = AutoRanker(members, scoring="disagreement", n_resamples=0).fit(X, y, groups)
    metric = get_metric(scoring)
    of_pairwise = metric(y, stacked(pairwise, groups), groups)
    assert model.score_ >= of_pairwise - 0.02  # held out by group, chosen from both


def stacked(model, groups):
    """Held-out scores of the members with the weights of the model."""
    weights = [row["weight"] for row in model.members_ if "score" in row]
    return (
        scale_in_groups(model.held_out_scores_, np.unique(groups, return_inverse=True)[1]) @ weights
    )
