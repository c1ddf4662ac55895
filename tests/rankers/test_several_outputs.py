"""Outputs whose pairs differ, an alpha for each output, and alpha = 0."""

import numpy as np
import pytest
from sklearn.base import clone

from rankwise import RankRLS, RankRLSCV
from rankwise.model_selection import leave_group_out_predict
from rankwise.persistence import load, save

GROUPS = np.repeat(np.arange(8), 6)
WAYS = [{}, {"kernel": "rbf", "gamma": 0.3}, {"kernel": "rbf", "gamma": 0.3, "basis": [0, 7, 20]}]
RULES = [("sign", "exclude"), ("relative", "exclude"), ("magnitude", "exclude")]


@pytest.fixture
def data():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(48, 3))
    Y = np.round(X @ rng.normal(size=(3, 2)) + 0.3 * rng.normal(size=(48, 2)), 1)
    return X, Y, rng.random(48)


@pytest.mark.parametrize("options", WAYS)
@pytest.mark.parametrize(("cost", "ties"), RULES)
def test_section_2_4_costs_of_several_outputs_are_models_of_each(data, options, cost, ties):
    X, Y, weight = data
    model = RankRLS(0.1, cost=cost, ties=ties, **options)
    both = clone(model).fit(X, Y, GROUPS, sample_weight=weight)
    for k in range(2):
        one = clone(model).fit(X, Y[:, k], GROUPS, sample_weight=weight)
        np.testing.assert_allclose(both.predict(X)[:, k], one.predict(X), atol=1e-12)
    path = model.path(X, Y, GROUPS, alphas=[0.1, 1.0])
    assert path.predict(X).shape == (48, 2, 2)
    unweighted = clone(model).fit(X, Y, GROUPS).predict(X)
    np.testing.assert_allclose(path.model(0).predict(X), unweighted, atol=1e-10)
    held_out = leave_group_out_predict(model, X, Y, GROUPS)
    for k in range(2):
        expected = leave_group_out_predict(model, X, Y[:, k], GROUPS)
        np.testing.assert_allclose(held_out[:, k], expected, atol=1e-12)


def test_searches_of_outputs_with_different_pairs(data, tmp_path):
    X, Y, _ = data
    alphas = np.logspace(-3, 2, 6)
    search = RankRLSCV(alphas, ties="exclude").fit(X, Y, GROUPS)
    assert search.cv_results_["mean_score"].shape == (1, 6, 2)
    for k in range(2):
        one = RankRLSCV(alphas, ties="exclude").fit(X, Y[:, k], GROUPS)
        scores = search.cv_results_["mean_score"][..., k]
        np.testing.assert_allclose(scores, one.cv_results_["mean_score"])
    assert RankRLSCV(ties="exclude").fit(X, Y, GROUPS).alpha_ > 0
    save(search, tmp_path / "model.rankwise")
    loaded = load(tmp_path / "model.rankwise")
    np.testing.assert_array_equal(loaded.predict(X), search.predict(X))


@pytest.mark.parametrize("ties", ["include", "exclude"])
def test_alpha_per_output_is_a_search_for_each_output(data, ties, tmp_path):
    X, Y, _ = data
    Y[:, 1] = np.round(np.random.default_rng(1).normal(size=48), 1)  # needs a larger alpha
    alphas = np.logspace(-3, 2, 6)
    search = RankRLSCV(alphas, ties=ties, alpha_per_output=True).fit(X, Y, GROUPS)
    ones = [RankRLSCV(alphas, ties=ties).fit(X, Y[:, k], GROUPS) for k in range(2)]
    np.testing.assert_array_equal(search.alpha_, [one.alpha_ for one in ones])
    assert search.best_score_ == pytest.approx(np.mean([one.best_score_ for one in ones]))
    for k, one in enumerate(ones):
        np.testing.assert_allclose(search.predict(X)[:, k], one.predict(X), atol=1e-12)
    again = RankRLS(search.alpha_, ties=ties).fit(X, Y, GROUPS)
    np.testing.assert_allclose(again.predict(X), search.predict(X), atol=1e-12)
    save(search, tmp_path / "model.rankwise")
    loaded = load(tmp_path / "model.rankwise")
    np.testing.assert_array_equal(loaded.predict(X), search.predict(X))


def test_an_alpha_for_each_output_must_have_their_number(data):
    X, Y, _ = data
    with pytest.raises(ValueError, match="3 values, but y has 2 outputs"):
        RankRLS([0.1, 1.0, 2.0]).fit(X, Y, GROUPS)


@pytest.mark.parametrize("options", [{"solver": "primal"}, {"solver": "dual"}, WAYS[1], WAYS[2]])
@pytest.mark.parametrize("n_features", [3, 80])
def test_alpha_0_is_the_limit_of_equation_28_and_of_smallest_norm(data, options, n_features):
    rng = np.random.default_rng(2)
    X = rng.normal(size=(48, n_features))
    X[:, 1] = X[:, 0]  # the system is singular in any case
    if "kernel" in options and n_features == 3:
        X *= 5  # a kernel matrix of nearby items is singular up to rounding
    y = rng.normal(size=48)
    model = RankRLS(0, **options).fit(X, y, GROUPS)
    limit = RankRLS(1e-9, **options).fit(X, y, GROUPS)
    np.testing.assert_allclose(model.predict(X), limit.predict(X), atol=1e-3)
    if "kernel" not in options:
        within = X - np.stack([X[g == GROUPS].mean(axis=0) for g in GROUPS])
        y_within = y - np.array([y[g == GROUPS].mean() for g in GROUPS])
        expected = np.linalg.lstsq(within, y_within, rcond=None)[0]
        np.testing.assert_allclose(model.coef_, expected, atol=1e-6)


def test_alpha_0_of_a_path_and_of_sparse_features():
    X = np.array([[1.0, 1.0], [2.0, 2.0], [4.0, 4.0]])
    path = RankRLS().path(X, [1, 2, 4], alphas=[0, 1.0])
    np.testing.assert_allclose(path.coefficients[0, :, 0], [0.5, 0.5])
    with pytest.raises(ValueError, match="direct solver"):
        RankRLS(0, solver="iterative").fit(X, [1, 2, 4])
    with pytest.raises(ValueError, match="alphas"):
        RankRLSCV([0.0, 1.0]).fit(X, [1, 2, 4])
