"""Alpha by leave-group-out from batches, against RankRLSCV and refits."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rankwise import RankRLS, RankRLSCV, SufficientStatistics
from rankwise.metrics import get_metric
from rankwise.rankers.group_sample import GroupSample, select_alpha, stable_hash


def make_problem(n_groups=30, seed=0, n_features=4):
    rng = np.random.default_rng(seed)
    groups = np.repeat(np.arange(n_groups), rng.integers(2, 9, n_groups))
    X = rng.standard_normal((len(groups), n_features))
    y = X @ rng.standard_normal(n_features) + rng.standard_normal(len(groups))
    return X, y, groups


def read_in_batches(X, y, groups, n_sample, size):
    statistics = SufficientStatistics()
    sample = GroupSample(n_sample)
    for start in range(0, len(y), size):
        batch = X[start : start + size], y[start : start + size], groups[start : start + size]
        statistics.add(*batch)
        sample.add(*batch)
    return statistics, sample


@pytest.mark.parametrize("scoring", ["disagreement", "tau"])
@pytest.mark.parametrize("size", [7, 50, 10_000])
def test_a_sample_of_all_groups_selects_as_rank_rls_cv(scoring, size):
    X, y, groups = make_problem()
    statistics, sample = read_in_batches(X, y, groups, 1000, size)
    selection = select_alpha(statistics, sample, scoring=scoring)
    search = RankRLSCV(scoring=scoring).fit(X, y, groups)
    np.testing.assert_allclose(selection.alphas, search.cv_results_["alphas"][0], rtol=1e-9)
    np.testing.assert_allclose(
        selection.mean_score, search.cv_results_["mean_score"][0], rtol=1e-9, atol=1e-12
    )
    assert selection.alpha == pytest.approx(search.alpha_)
    assert selection.best_score == pytest.approx(search.best_score_)
    np.testing.assert_allclose(selection.model.coef_, search.coef_, rtol=1e-7)


def test_held_out_scores_of_a_sample_equal_refits_without_each_group():
    X, y, groups = make_problem()
    statistics, sample = read_in_batches(X, y, groups, 5, 11)
    alphas = [1e-2, 1.0]
    selection = select_alpha(statistics, sample, alphas, "tau")
    assert len(selection.groups) == 5
    tau = get_metric("tau")
    for label, values in zip(selection.groups, selection.group_score, strict=True):
        rest = groups != label
        for alpha, value in zip(alphas, values, strict=True):
            model = RankRLS(alpha).fit(X[rest], y[rest], groups[rest])
            assert value == pytest.approx(tau(y[~rest], model.predict(X[~rest])), abs=1e-9)


@given(st.integers(0, 2**31), st.integers(1, 12), st.integers(1, 40))
def test_the_sample_does_not_depend_on_batches_order_and_merges(seed, n_sample, size):
    X, y, groups = make_problem(20, seed)
    order = np.random.default_rng(seed).permutation(len(y))
    whole = GroupSample(n_sample).add(X, y, groups)
    first = GroupSample(n_sample)
    second = GroupSample(n_sample)
    for k, start in enumerate(range(0, len(y), size)):
        rows = order[start : start + size]
        (second if k % 3 else first).add(X[rows], y[rows], groups[rows])
    merged = first.merge(second)
    expected = {label: (groups == label).sum() for label in np.unique(whole.rows()[2])}
    labels, counts = np.unique(merged.rows()[2], return_counts=True)
    assert dict(zip(labels, counts, strict=True)) == expected
    smallest = sorted(range(20), key=lambda label: stable_hash(label))[:n_sample]
    assert set(labels) == set(smallest)


def test_several_outputs_have_one_mean():
    X, y, groups = make_problem()
    Y = np.column_stack([y, -y])
    statistics, sample = read_in_batches(X, Y, groups, 8, 40)
    one_output, one_sample = read_in_batches(X, y, groups, 8, 40)
    alphas = [0.1, 10.0]
    several = select_alpha(statistics, sample, alphas)
    single = select_alpha(one_output, one_sample, alphas)
    np.testing.assert_allclose(several.mean_score, single.mean_score, atol=1e-12)


@pytest.mark.parametrize("n_groups", [-1, 2.5, True])
def test_a_number_of_groups_that_is_none_is_refused(n_groups):
    with pytest.raises(ValueError, match="n_groups"):
        GroupSample(n_groups)
