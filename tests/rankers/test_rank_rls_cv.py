"""RankRLSCV chooses what a slow search by refitting would choose."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.model_selection import GroupKFold, KFold

from rankwise import PairGraph, RankRLS, RankRLSCV
from rankwise.datasets import make_ranking
from rankwise.metrics import disagreement_error, ndcg
from rankwise.model_selection import cross_val_predict_groups, leave_pair_out

ALPHAS = np.logspace(-4, 2, 7)
pytestmark = pytest.mark.filterwarnings("ignore:the best (alpha|gamma) .* is at the edge")


@pytest.fixture
def data():
    return make_ranking(12, 8, 5, noise=1.0, n_levels=4, random_state=1)[:3]


def slow_scores(X, y, groups, metric, alphas=ALPHAS, **options):
    """Refit without each group, for each alpha; the metric in each group."""
    out = np.empty((len(np.unique(groups)), len(alphas)))
    for row, g in enumerate(np.unique(groups)):
        held = groups == g
        for k, alpha in enumerate(alphas):
            model = RankRLS(alpha, **options).fit(X[~held], y[~held], groups[~held])
            out[row, k] = metric(y[held], model.predict(X[held]), undefined="nan")
    return out


@pytest.mark.parametrize("options", [{}, {"cost": "sign"}, {"kernel": "rbf", "gamma": 0.1}])
def test_alpha_is_the_one_that_refitting_without_each_group_would_choose(data, options):
    X, y, groups = data
    model = RankRLSCV(ALPHAS, scoring="ndcg@5", **options).fit(X, y, groups)
    slow = slow_scores(X, y, groups, lambda *a, **k: ndcg(*a, k=5, **k), **options)
    np.testing.assert_allclose(model.cv_results_["group_score"][0], slow, atol=1e-9)
    mean = np.nanmean(slow, axis=0)
    np.testing.assert_allclose(model.cv_results_["mean_score"][0], mean, atol=1e-9)
    assert model.best_score_ == pytest.approx(mean.max())
    assert mean[list(ALPHAS).index(model.alpha_)] == pytest.approx(mean.max())
    direct = RankRLS(model.alpha_, **options).fit(X, y, groups)
    np.testing.assert_allclose(model.predict(X), direct.predict(X), atol=1e-9)
    assert model.cv_results_["cv"] == "leave-group-out"


def test_errors_are_minimised_and_gains_maximised(data):
    X, y, groups = data
    error = RankRLSCV(ALPHAS, scoring="disagreement").fit(X, y, groups)
    gain = RankRLSCV(ALPHAS, scoring="concordance").fit(X, y, groups)
    assert error.alpha_ == gain.alpha_
    assert error.best_score_ == pytest.approx(1 - gain.best_score_)
    assert error.best_score_ == error.cv_results_["mean_score"].min()


def test_kernel_parameters_given_as_lists_are_searched(data):
    X, y, groups = data
    gammas = [1e-3, 0.1, 10.0]
    model = RankRLSCV(ALPHAS, kernel="rbf", gamma=gammas).fit(X, y, groups)
    slow = [
        np.nanmean(
            slow_scores(X, y, groups, disagreement_error, kernel="rbf", gamma=gamma), axis=0
        ).min()
        for gamma in gammas
    ]
    assert model.best_params_["gamma"] == gammas[int(np.argmin(slow))]
    assert model.best_score_ == pytest.approx(min(slow))
    assert model.cv_results_["mean_score"].shape == (3, 7)
    assert set(model.best_params_) == {"alpha", "gamma"}


def test_a_single_list_is_judged_by_leave_pair_out(data):
    X, y, _ = data
    model = RankRLSCV(ALPHAS).fit(X, y)
    expected = leave_pair_out(RankRLS(), X, y, alphas=ALPHAS).disagreement
    np.testing.assert_allclose(model.cv_results_["mean_score"][0], expected)
    assert model.cv_results_["cv"] == "leave-pair-out"


@pytest.mark.parametrize("cv", [10, GroupKFold(3), KFold(2, shuffle=True, random_state=0)], ids=str)
def test_scores_are_those_of_held_out_items_of_one_group_and_fold(data, cv):
    X, y, groups = data
    splitter = KFold(cv, shuffle=True, random_state=0) if isinstance(cv, int) else cv
    fold = np.empty(len(y), dtype=int)
    labels = groups if isinstance(cv, GroupKFold) else None  # KFold cuts the groups
    for k, (_, test) in enumerate(splitter.split(X, y, labels)):
        fold[test] = k
    groups = None if isinstance(cv, int) else groups
    model = RankRLSCV(ALPHAS, cv=cv).fit(X, y, groups)
    held = cross_val_predict_groups(RankRLS(), X, y, groups, cv=cv, alphas=ALPHAS)
    lists = fold if groups is None else groups * 10 + fold
    expected = [disagreement_error(y, scores, lists) for scores in held.T]
    np.testing.assert_allclose(model.cv_results_["mean_score"][0], expected)
    keeps_groups = isinstance(cv, GroupKFold)
    assert model.cv_results_["cv"] == ("folds of groups" if keeps_groups else "folds of items")


def test_default_grid_follows_the_scale_of_the_features(data):
    X, y, groups = data
    one = RankRLSCV().fit(X, y, groups)
    scaled = RankRLSCV().fit(1000 * X, y, groups)
    np.testing.assert_allclose(
        scaled.cv_results_["alphas"][0], 1e6 * one.cv_results_["alphas"][0], rtol=1e-9
    )
    np.testing.assert_allclose(scaled.predict(1000 * X), one.predict(X), atol=1e-8)
    pairs = [
        np.sum((X[i] - X[j]) ** 2)
        for i in range(len(y))
        for j in range(i)
        if groups[i] == groups[j]
    ]
    assert one.cv_results_["alphas"][0][-1] == pytest.approx(1e4 * np.mean(pairs))


@pytest.mark.parametrize(
    "options", [{"kernel": "rbf"}, {"solver": "dual"}, {"solver": "iterative"}]
)
def test_default_grid_is_that_of_the_kernel(data, options):
    X, y, groups = data
    grid = RankRLSCV(**options).fit(X, y, groups).cv_results_["alphas"][0]
    K = np.exp(-((X[:, None] - X) ** 2).sum(2) / X.shape[1]) if "kernel" in options else X @ X.T
    same = (groups[:, None] == groups) & ~np.eye(len(y), dtype=bool)
    square = np.diag(K)[:, None] + np.diag(K) - 2 * K
    assert grid[-1] == pytest.approx(1e4 * square[same].mean())


def test_one_alpha_for_all_outputs(data):
    X, y, groups = data
    noise = np.random.default_rng(0).normal(size=len(y))
    Y = np.column_stack([y, noise])
    together = RankRLSCV(ALPHAS).fit(X, Y, groups)
    alone = [RankRLSCV(ALPHAS).fit(X, column, groups) for column in Y.T]
    assert isinstance(together.alpha_, float)
    assert together.cv_results_["mean_score"].shape == (1, 7, 2)
    for k in range(2):
        np.testing.assert_allclose(
            together.cv_results_["mean_score"][0, :, k], alone[k].cv_results_["mean_score"][0]
        )


def test_explicit_preferences_by_component_and_by_edge(data):
    X, y, groups = data
    i, j = np.triu_indices(len(y), 1)
    keep = (groups[i] == groups[j]) & (y[i] != y[j])
    i, j = i[keep], j[keep]
    winner, loser = np.where(y[i] > y[j], i, j), np.where(y[i] > y[j], j, i)
    graph = PairGraph(winner, loser, n_items=len(y))
    model = RankRLSCV(ALPHAS).fit(X, graph)
    scored = RankRLSCV(ALPHAS, cost="sign").fit(X, y, groups)
    np.testing.assert_allclose(
        model.cv_results_["mean_score"], scored.cv_results_["mean_score"], atol=1e-9
    )
    chain = PairGraph(np.arange(len(y) - 1), np.arange(1, len(y)))
    by_edge = RankRLSCV(ALPHAS, kernel="rbf").fit(X, chain)
    assert by_edge.cv_results_["cv"] == "folds of edges"
    assert by_edge.cv_results_["group_score"][0].shape == (10, 7)
    alone = PairGraph([0, 2, *range(4, 40)], [1, 3, *range(5, 41)], n_items=len(y))
    assert RankRLSCV(ALPHAS).fit(X, alone).cv_results_["cv"] == "folds of edges"
    players = RankRLSCV([1e-3, 1e-1, 10.0]).fit(sp.identity(len(y), format="csr"), chain)
    assert 0 <= players.best_score_ <= 1


def test_folds_of_edges_equal_training_without_them(data):
    X, y, _ = data
    i, j = np.random.default_rng(0).integers(0, len(y), (2, 900))
    i, j = i[y[i] > y[j]], j[y[i] > y[j]]
    graph = PairGraph(i, j, n_items=len(y))
    assert graph.components.max() == 0
    model = RankRLSCV(ALPHAS, cv=4).fit(X, graph)
    fold = np.random.default_rng(0).permutation(len(i)) % 4
    for k in range(4):
        rest = PairGraph(i[fold != k], j[fold != k], n_items=len(y))
        held = PairGraph(i[fold == k], j[fold == k], n_items=len(y))
        slow = [1 - RankRLS(a).fit(X, rest).score(X, held) for a in ALPHAS]
        np.testing.assert_allclose(model.cv_results_["group_score"][0][k], slow, atol=1e-9)
    splits = ((np.flatnonzero(fold != k), np.flatnonzero(fold == k)) for k in range(4))
    same = RankRLSCV(ALPHAS, cv=splits).fit(X, graph)
    np.testing.assert_array_equal(
        same.cv_results_["group_score"][0], model.cv_results_["group_score"][0]
    )
    with pytest.raises(ValueError, match="must train on exactly the edges"):
        RankRLSCV(cv=[([0], [1])]).fit(X, graph)


def test_a_search_stands_for_its_best_model(data):
    X, y, groups = data
    one = RankRLSCV(ALPHAS).fit(X, y, groups)
    assert "predictions" not in one.cv_results_
    assert one.n_features_in_ == X.shape[1]
    assert one.coef_.shape == (X.shape[1],)
    assert one.score(X, y, groups) == one.best_estimator_.score(X, y, groups)
    with pytest.raises(AttributeError, match="dual_coef_"):
        _ = one.dual_coef_


def test_a_flat_score_does_not_warn_and_takes_the_largest_alpha(data):
    X, y, groups = data
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = RankRLSCV([1e-9, 1e-8, 1e-7]).fit(X, y, groups)
    assert model.alpha_ == 1e-7


def test_undefined_groups_are_skipped_and_counted(data):
    X, y, groups = data
    y = np.where(groups < 2, 1.0, y)
    model = RankRLSCV(ALPHAS).fit(X, y, groups)
    assert model.cv_results_["n_undefined"] >= 2
    assert np.isnan(model.cv_results_["group_score"][0][:2]).all()
    assert np.isfinite(model.cv_results_["mean_score"]).all()


def test_bad_input_is_refused(data):
    X, y, groups = data
    for options, message in [
        ({"alphas": [1.0, -1.0]}, "positive"),
        ({"cv": "loo"}, "'auto'"),
        ({"scoring": "ndgc"}, "ndcg"),
        ({"gamma": [], "kernel": "rbf"}, "empty list"),
        ({"cv": 40}, "12 groups"),
    ]:
        with pytest.raises(ValueError, match=message):
            RankRLSCV(**options).fit(X, y, groups)
    with pytest.raises(ValueError, match="at least two groups"):
        RankRLSCV(cv=None).fit(X, y)
    with pytest.raises(ValueError, match="needs scores"):
        RankRLSCV(scoring="ndcg").fit(X, PairGraph([0], [1], n_items=len(y)))
    with pytest.raises(ValueError, match="edges"):
        RankRLSCV(cv=9).fit(X, PairGraph([0, 1], [1, 2], n_items=len(y)))
    levels = np.zeros(len(y))
    levels[0] = 1
    with pytest.raises(ValueError, match="undefined in every"):
        RankRLSCV(scoring="map(relevant=5)").fit(X, levels, groups)


def test_memory_is_looked_at_before_held_out_scores_take_it(data, monkeypatch):
    monkeypatch.setattr("rankwise.runtime.memory.available_bytes", lambda: 8 * len(data[1]) * 59)
    with pytest.raises(ValueError, match=r"96 × 60 would take .* give fewer alphas"):
        RankRLSCV().fit(*data)
    assert RankRLSCV(ALPHAS).fit(*data).alpha_ > 0


def test_ties_are_searched_like_kernel_parameters(data):
    X, y, groups = data
    y = np.round(y)
    both = RankRLSCV(ties=["include", "exclude"]).fit(X, y, groups)
    alone = [RankRLSCV(ties=ties).fit(X, y, groups) for ties in ("include", "exclude")]
    for row, model in enumerate(alone):
        np.testing.assert_array_equal(
            both.cv_results_["mean_score"][row], model.cv_results_["mean_score"][0]
        )
    best = min(alone, key=lambda model: model.best_score_)
    assert both.best_params_["ties"] == best.ties
    np.testing.assert_array_equal(both.coef_, best.coef_)
    with pytest.raises(ValueError, match="cv=10"):
        RankRLSCV(ties=["include", "exclude"]).fit(X, y)
    assert RankRLSCV(ties=["include", "exclude"], cv=5).fit(X, y).best_params_["ties"]
