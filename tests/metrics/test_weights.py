"""Metrics of items with weights, against loops over pairs and over all orders of tied items."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rankwise.metrics import evaluate, get_metric, ndcg
from tests import oracle_metrics as oracle

TRUTHS = {
    "ndcg": oracle.weighted_ndcg,
    "ndcg@2": lambda *data: oracle.weighted_ndcg(*data, k=2),
    "tau": oracle.weighted_tau,
    "disagreement": lambda y, score, weights: oracle.disagreement_error(y, score, weights=weights),
    "disagreement(tied_scores=wrong)": lambda y, score, weights: oracle.disagreement_error(
        y, score, tied_scores="wrong", weights=weights
    ),
}
WEIGHTED = [get_metric(name) for name in [*TRUTHS, "concordance"]]
quick = settings(max_examples=30, deadline=None)


@st.composite
def lists(draw):
    """At most five items in each of up to three groups, with ties, weights from 0 to 3."""
    n = draw(st.integers(2, 9))
    rng = np.random.default_rng(draw(st.integers(0, 2**20)))
    groups = np.sort(np.arange(n) % draw(st.sampled_from([2, 3])))
    y, score = rng.integers(0, 4, n), rng.integers(0, 3, n).astype(float)
    weights = rng.uniform(0, 3, n) * (rng.random(n) < 0.8)
    return y, score, groups, weights


@pytest.mark.parametrize("name", TRUTHS)
@quick
@given(data=lists())
def test_values_are_those_of_loops(name, data):
    y, score, groups, weights = data
    found = get_metric(name)(
        y, score, groups, sample_weight=weights, per_group=True, undefined="nan"
    )
    for value, label in zip(found, np.unique(groups), strict=True):
        rows = groups == label
        truth = TRUTHS[name](y[rows].tolist(), score[rows].tolist(), weights[rows].tolist())
        assert value == pytest.approx(truth, nan_ok=True, abs=1e-12)


@pytest.mark.parametrize("metric", WEIGHTED, ids=str)
@quick
@given(data=lists(), factor=st.sampled_from([1e-150, 0.7, 1e100]))
def test_equal_weights_are_no_weights_and_only_ratios_count(metric, data, factor):
    y, score, groups, weights = data

    def value(sample_weight):
        return metric(
            y, score, groups, sample_weight=sample_weight, per_group=True, undefined="nan"
        )

    np.testing.assert_allclose(value(np.full(len(y), factor)), value(None), atol=1e-12)
    np.testing.assert_allclose(value(factor * weights), value(weights), atol=1e-12)


@pytest.mark.parametrize("name", ["disagreement", "concordance", "tau"])
@quick
@given(data=lists())
def test_in_metrics_of_pairs_a_whole_weight_is_that_many_items(name, data):
    y, score, groups, weights = data
    counts = np.ceil(weights).astype(int)
    repeated = np.repeat(np.arange(len(y)), counts)
    metric = get_metric(name)
    found = metric(y, score, groups, sample_weight=counts, per_group=True, undefined="nan")
    if len(repeated):
        kept = np.isin(np.unique(groups), groups[repeated])
        expected = metric(
            y[repeated], score[repeated], groups[repeated], per_group=True, undefined="nan"
        )
        np.testing.assert_allclose(found[kept], expected, atol=1e-12)
        assert np.isnan(found[~kept]).all()


@pytest.mark.parametrize("name", ["map", "p@1", "recall@1", "mrr", "err", "auc", "spearman", "hit"])
def test_metrics_that_take_no_weights_say_so(name):
    with pytest.raises(ValueError, match=r"sample_weight.*ndcg"):
        get_metric(name)([1, 0], [2, 1], sample_weight=[1, 2])
    with pytest.raises(ValueError, match="sample_weight"):
        evaluate([1, 0], [2, 1], metrics=["ndcg", name], sample_weight=[1, 2])


def test_an_evaluation_takes_weights_for_all_its_metrics():
    y, score, weights = [2, 0, 1, 1], [0.1, 0.9, 0.5, 0.5], [1.0, 2.0, 0.5, 3.0]
    by_default = evaluate(y, score, sample_weight=weights)
    assert list(by_default.to_dict()) == ["ndcg@10", "disagreement", "tau"]
    for name in by_default.to_dict():
        assert by_default[name] == get_metric(name)(y, score, sample_weight=weights)


def test_columns_of_scores_share_the_weights():
    y, weights = np.array([2, 0, 1, 1]), np.array([1.0, 2.0, 0.5, 3.0])
    scores = np.random.default_rng(0).normal(size=(4, 3))
    both = ndcg(y, scores, sample_weight=weights)
    alone = [ndcg(y, score, sample_weight=weights) for score in scores.T]
    np.testing.assert_allclose(both, alone)
