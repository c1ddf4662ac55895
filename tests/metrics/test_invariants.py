"""What must hold for any data: bounds, invariances, limits."""

from itertools import permutations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rankwise.metrics import disagreement_error, get_metric, ndcg
from rankwise.metrics.grades import LARGEST_GRADE

NAMES = [
    *("ndcg", "ndcg(gain=linear)@2", "map@2", "p@3", "recall@2", "mrr@2", "err@3", "hit@2"),
    *("auc(relevant=2)", "disagreement", "tau", "spearman"),
]
AVERAGING = [name for name in NAMES if not name.startswith("err")]

UNIT_INTERVAL = [name for name in NAMES if not name.startswith(("tau", "spearman"))]


def each(names):
    return pytest.mark.parametrize("metric", [get_metric(name) for name in names], ids=str)


quick = settings(max_examples=40, deadline=None)


@st.composite
def lists(draw, distinct=False):
    n = draw(st.integers(1, 14))
    grades = st.integers(0, 4)
    whole = st.integers(-4, 4)
    y = draw(st.lists(grades, min_size=n, max_size=n))
    score = draw(st.permutations(range(n)) if distinct else st.lists(whole, min_size=n, max_size=n))
    groups = draw(st.lists(st.integers(0, 3), min_size=n, max_size=n))
    return np.array(y), np.array(score, dtype=float), np.array(groups)


def values(metric, y, score, groups):
    return metric(y, score, groups, per_group=True)


@each(NAMES)
@quick
@given(data=lists())
def test_values_stay_within_bounds(metric, data):
    found = values(metric, *data)
    found = found[~np.isnan(found)]
    assert ((found >= metric.lowest) & (found <= 1.0)).all()


@each(NAMES)
@quick
@given(data=lists(), seed=st.integers(0, 99))
def test_the_order_of_rows_does_not_matter(metric, data, seed):
    rows = np.random.default_rng(seed).permutation(len(data[0]))
    shuffled = [column[rows] for column in data]
    np.testing.assert_allclose(values(metric, *shuffled), values(metric, *data), atol=1e-12)


@each(NAMES)
@quick
@given(data=lists())
def test_only_the_partition_into_groups_matters(metric, data):
    y, score, groups = data
    names = np.array(["c", "a", "d", "b"])[groups]
    expected = dict(zip(np.unique(groups), values(metric, y, score, groups), strict=True))
    back = {"c": 0, "a": 1, "d": 2, "b": 3}
    relabeled = [expected[back[name]] for name in np.unique(names)]
    np.testing.assert_allclose(values(metric, y, score, names), relabeled, atol=1e-12)


@each(NAMES)
@quick
@given(data=lists(), shift=st.lists(st.integers(-9, 9), min_size=4, max_size=4))
def test_increasing_transforms_of_the_scores_in_a_group_change_nothing(metric, data, shift):
    y, score, groups = data
    moved = np.exp(score) + np.array(shift)[groups]
    np.testing.assert_allclose(
        values(metric, y, moved, groups), values(metric, y, score, groups), atol=1e-12
    )


@quick
@given(data=lists())
def test_reversing_the_scores_reverses_the_pairwise_metrics(data):
    y, score, groups = data
    for name, flip in (("disagreement", lambda v: 1 - v), ("tau", lambda v: -v)):
        metric = get_metric(name)
        found = values(metric, y, -score, groups)
        np.testing.assert_allclose(found, flip(values(metric, y, score, groups)), atol=1e-12)


@pytest.mark.parametrize("name", ["ndcg", "ndcg@2", "ndcg(gain=linear)", "concordance"])
@quick
@given(data=lists())
def test_relevance_itself_is_a_perfect_score(name, data):
    y, _, groups = data
    found = values(get_metric(name), y, y, groups)
    np.testing.assert_allclose(found[~np.isnan(found)], 1.0, rtol=0, atol=1e-15)


@each(UNIT_INTERVAL)
@quick
@given(data=lists(distinct=True))
def test_no_order_is_better_than_that_of_relevance(metric, data):
    y, score, groups = data
    sign = 1 if metric.greater_is_better else -1
    best = sign * values(metric, y, y, groups)
    found = sign * values(metric, y, score, groups)
    defined = ~np.isnan(found)
    assert (found[defined] <= best[defined] + 1e-12).all()


@each(AVERAGING)
@pytest.mark.parametrize("y", [[0, 1, 2, 0, 4], [3, 0, 0, 0, 2], [2, 2, 2, 2, 0]])
def test_a_constant_score_is_worth_the_mean_of_all_orders(metric, y):
    over_orders = np.mean([metric(y, list(order)) for order in permutations(range(5))])
    assert metric(y, [1.0] * 5) == pytest.approx(over_orders, abs=1e-12)


@pytest.mark.parametrize("y", [[0, 1, 2, 0, 4], [3, 0, 0, 0, 2]])
def test_a_constant_score_does_not_beat_random_orders_by_err(y):
    err = get_metric("err")
    assert err(y, [1.0] * 5) <= np.mean([err(y, list(order)) for order in permutations(range(5))])


@pytest.mark.parametrize("name", ["disagreement", "tau", "ndcg@10"])
def test_a_constant_model_keeps_its_groups_in_the_mean(name):
    y, groups = np.tile([0, 1, 2], 5), np.repeat(np.arange(5), 3)
    found = values(get_metric(name), y, np.zeros(15), groups)
    assert not np.isnan(found).any()


@quick
@given(data=lists(), exponent=st.integers(-7, 7))
def test_the_size_of_the_weights_in_a_group_does_not_matter(data, exponent):
    y, score, groups = data
    weights = np.linspace(1, 2, len(y))
    scaled = np.where(groups == 1, weights * 10.0**exponent, weights)
    np.testing.assert_allclose(
        disagreement_error(y, score, groups, sample_weight=scaled, per_group=True),
        disagreement_error(y, score, groups, sample_weight=weights, per_group=True),
        atol=1e-12,
    )


@quick
@given(
    y=st.lists(st.floats(0, LARGEST_GRADE), min_size=1, max_size=8),
    score=st.lists(st.floats(-1e300, 1e300), min_size=8, max_size=8),
    k=st.integers(1, 9),
)
def test_ndcg_of_real_valued_grades_stays_within_bounds(y, score, k):
    found = ndcg(y, score[: len(y)], k=k, undefined="zero")
    assert 0 <= found <= 1
