"""CoRankRLSCV chooses what a slow loop of fits would choose."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.model_selection import GroupKFold, KFold

from rankwise import CoRankRLS, CoRankRLSCV, View, make_target
from rankwise.datasets import make_ranking
from rankwise.kernels.solver_input import LazyFeatures
from rankwise.metrics import disagreement_error, ndcg
from tests import oracle_semi

ALPHAS, NUS = np.array([1e-3, 0.1, 10.0]), np.array([0.0, 1.0, 30.0])
COLUMNS = [View([0, 1, 2]), View([2, 3, 4], kernel="rbf", gamma=0.1, basis="random", n_basis=8)]
pytestmark = pytest.mark.filterwarnings("ignore:the best (alpha|nu) .* is at the edge")


@pytest.fixture
def data():
    """Twelve groups, the last seven of them unscored, and some rows of the first."""
    X, y, groups = make_ranking(12, 8, 5, noise=1.0, n_levels=4, random_state=1)[:3]
    y = np.where(groups < 5, y, np.nan)
    y[np.flatnonzero(groups == 0)[:3]] = np.nan
    return X, y, groups


def unscored_bases(X, y):
    """Views with bases of unscored rows, which no fold takes away."""
    rows = np.flatnonzero(np.isnan(y))
    return [
        View(kernel="rbf", gamma=0.1, basis=rows[[1, 8, 20]]),
        View([0, 1, 2], kernel="rbf", gamma=0.2, basis=rows[[5, 9, 30, 31]]),
    ]


def slow_scores(views, X, y, groups, folds, metric, **options):
    """Fit without each fold for each nu and alpha; the metric in each scored group."""
    scored = np.flatnonzero(~np.isnan(y))
    held_out = np.empty((len(scored), len(NUS), len(ALPHAS)))
    for _, test in folds:
        kept = np.setdiff1d(np.arange(len(y)), scored[test])
        moved = [
            View(**{**view.get_params(), "basis": np.searchsorted(kept, view.basis)})
            if not isinstance(view.basis, str)
            else view
            for view in views
        ]
        for i, nu in enumerate(NUS):
            for j, alpha in enumerate(ALPHAS):
                model = CoRankRLS(alpha, nu=nu, views=moved, **options)
                model.fit(X[kept], y[kept], groups[kept])
                held_out[test, i, j] = model.predict(X[scored[test]])
    labels = np.unique(groups[scored])
    out = np.empty((len(labels), len(NUS), len(ALPHAS)))
    for row, label in enumerate(labels):
        own = groups[scored] == label
        for i in range(len(NUS)):
            for j in range(len(ALPHAS)):
                f = held_out[own, i, j]
                out[row, i, j] = metric(y[scored][own], f, undefined="nan")
    return out


@pytest.mark.parametrize(
    "options", [{}, {"cost": "sign", "group_weight": "groups"}, {"ties": "exclude"}]
)
def test_section_5_search_equals_a_naive_loop_of_fits(data, options):
    X, y, groups = data
    views = unscored_bases(X, y)
    folds = list(GroupKFold(3).split(X[~np.isnan(y)], groups=groups[~np.isnan(y)]))
    model = CoRankRLSCV(ALPHAS, nus=NUS, cv=3, scoring="ndcg@5", views=views, **options)
    model.fit(X, y, groups)
    slow = slow_scores(views, X, y, groups, folds, lambda *a, **k: ndcg(*a, k=5, **k), **options)
    by_nu = np.moveaxis(slow, 1, 0)
    np.testing.assert_allclose(model.cv_results_["group_score"], by_nu, atol=1e-9)
    mean = np.nanmean(slow, axis=0)
    np.testing.assert_allclose(model.cv_results_["mean_score"], mean, atol=1e-9)
    assert model.best_score_ == pytest.approx(mean.max())
    at = list(NUS).index(model.nu_), list(ALPHAS).index(model.alpha_)
    assert mean[at] == pytest.approx(mean.max())
    direct = CoRankRLS(model.alpha_, nu=model.nu_, views=views, **options).fit(X, y, groups)
    np.testing.assert_allclose(model.predict(X), direct.predict(X), atol=1e-9)
    np.testing.assert_allclose(model.predict_views(X), direct.predict_views(X), atol=1e-9)
    assert model.best_estimator_.get_params()["nu"] == model.nu_
    assert model.best_params_ == {"alpha": model.alpha_, "nu": model.nu_}


def test_search_without_unscored_rows_equals_a_naive_loop_of_fits(data):
    X, y, groups = data
    scored = ~np.isnan(y)
    X, y, groups = X[scored], y[scored], groups[scored]
    views = [View([0, 1, 2]), View([2, 3, 4])]
    folds = list(GroupKFold(4).split(X, groups=groups))
    model = CoRankRLSCV(ALPHAS, nus=NUS, cv=folds, views=views).fit(X, y, groups)
    slow = slow_scores(views, X, y, groups, folds, disagreement_error)
    by_nu = np.moveaxis(slow, 1, 0)
    np.testing.assert_allclose(model.cv_results_["group_score"], by_nu, atol=1e-9)
    assert model.best_score_ == pytest.approx(np.nanmean(slow, axis=0).min())


def test_equation_18_without_a_fold_keeps_the_basis_items_of_the_fold(data):
    X, y, groups = data
    rows = np.flatnonzero(~np.isnan(y))
    bases = [rows[[0, 7, 20]], rows[[3, 11, 15, 30]]]  # scored rows, held out at some time
    views = [View(kernel="rbf", gamma=0.1, basis=basis) for basis in bases]
    model = CoRankRLSCV([0.1], nus=[1.0], cv=None, views=views).fit(X, y, groups)
    found = model.cv_results_["group_score"][0][:, 0]
    K = rbf_kernel(X, gamma=0.1)
    for row, g in enumerate(range(5)):
        part = np.where(groups == g, np.nan, y)
        scored = oracle_semi.scored_edges(part, groups)
        agreement = oracle_semi.agreement_edges(y, groups)
        blocks = [K[np.ix_(basis, basis)] for basis in bases]
        coef = oracle_semi.co_rank_rls(
            scored, agreement, [K[:, basis] for basis in bases], blocks, 0.1, 1.0
        )
        f = np.mean([K[:, b] @ a for b, a in zip(bases, coef, strict=True)], axis=0)
        own = (groups == g) & ~np.isnan(y)
        expected = disagreement_error(y[own], f[own], undefined="nan")
        np.testing.assert_allclose(found[row], expected, atol=1e-9)


def test_folds_are_five_of_groups_or_five_of_one_list(data):
    X, y, groups = data
    model = CoRankRLSCV(ALPHAS, nus=NUS, views=COLUMNS, random_state=0).fit(X, y, groups)
    np.testing.assert_array_equal(model.cv_results_["groups"], np.arange(5))
    named = CoRankRLSCV(ALPHAS, nus=NUS, cv=GroupKFold(5), views=COLUMNS, random_state=0)
    named.fit(X, y, groups)
    np.testing.assert_array_equal(model.cv_results_["mean_score"], named.cv_results_["mean_score"])
    one = CoRankRLSCV(ALPHAS, nus=NUS, views=COLUMNS, random_state=0).fit(X, y)
    assert np.shape(one.cv_results_["group_score"]) == (3, 5, 3)
    items = KFold(5, shuffle=True, random_state=0)
    same = CoRankRLSCV(ALPHAS, nus=NUS, cv=items, views=COLUMNS, random_state=0).fit(X, y)
    np.testing.assert_array_equal(one.cv_results_["mean_score"], same.cv_results_["mean_score"])


def test_unscored_rows_are_visited_once_for_all_folds(data, monkeypatch):
    X, y, groups = data
    calls = []
    original = LazyFeatures.__getitem__

    def count(self, part):
        calls.append(self.shape[0])
        return original(self, part)

    monkeypatch.setattr(LazyFeatures, "__getitem__", count)
    CoRankRLS(0.1, views=unscored_bases(X, y)).fit(X, y, groups)
    by_one_fit = calls.count(int(np.isnan(y).sum()))
    calls.clear()
    CoRankRLSCV(ALPHAS, nus=NUS, views=unscored_bases(X, y)).fit(X, y, groups)
    assert calls.count(int(np.isnan(y).sum())) == by_one_fit


def test_default_grid_follows_the_scale_of_the_features(data):
    X, y, groups = data
    views = [View([0, 1]), View([2, 3, 4])]
    one = CoRankRLSCV(views=views).fit(X, y, groups)
    scaled = CoRankRLSCV(views=views).fit(1000 * X, y, groups)
    grid = one.cv_results_["alphas"][0]
    np.testing.assert_allclose(scaled.cv_results_["alphas"][0], 1e6 * grid, rtol=1e-9)
    np.testing.assert_allclose(scaled.predict(1000 * X), one.predict(X), atol=1e-6)
    nus = [params["nu"] for params in one.cv_results_["params"]]
    np.testing.assert_array_equal(nus, [0, 0.1, 1, 10, 100, 1e3, 1e4])
    scored = oracle_semi.scored_edges(y, groups)
    distance = [np.sum((X[i] - X[j]) ** 2) for i, j, *_ in scored]
    assert grid[-1] == pytest.approx(1e4 * np.mean(distance) / 2)  # two views share the columns


def test_equal_scores_choose_the_largest_alpha_then_the_smallest_nu(data):
    X, y, groups = data
    y = np.where(np.isnan(y), np.nan, X[:, 0])
    views = [View([0]), View([0])]
    model = CoRankRLSCV(ALPHAS, nus=[3.0, 0.0, 1.0], views=views).fit(X, y, groups)
    assert model.best_score_ == 0
    assert (model.alpha_, model.nu_) == (10.0, 0.0)


@pytest.mark.parametrize("nus, warns", [([0.5, 1.0], True), ([0.0, 0.5], False)])
def test_choice_of_nu_at_the_edge_warns_unless_it_is_zero(nus, warns, monkeypatch, data):
    X, y, groups = data
    best = len(nus) - 1 if warns else 0

    def scores(graph, held, folds, metric):
        error = np.ones((5, len(nus), 1))
        error[:, best] = 0.0
        return error.reshape(5, len(nus), 1), np.arange(5)

    monkeypatch.setattr(
        "rankwise.model_selection.candidate_evaluation.evaluate_held_out_scores", scores
    )
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        CoRankRLSCV([0.1], nus=nus, views=COLUMNS).fit(X, y, groups)
    assert [str(one.message).startswith("the best nu 1 is at the edge") for one in caught] == (
        [True] if warns else []
    )
    assert all(one.filename == __file__ for one in caught)


def test_forms_of_the_data_are_the_same(data):
    X, y, groups = data
    options = {"nus": NUS, "views": COLUMNS, "random_state": 0}
    plain = CoRankRLSCV(ALPHAS, **options).fit(X, y, groups)
    for other in (
        CoRankRLSCV(ALPHAS, **options).fit(sp.csr_matrix(X), y, groups),
        CoRankRLSCV(ALPHAS, **options).fit(X, make_target(y, groups)),
    ):
        np.testing.assert_allclose(
            other.cv_results_["mean_score"], plain.cv_results_["mean_score"], atol=1e-9
        )
        assert (other.alpha_, other.nu_) == (plain.alpha_, plain.nu_)
    assert plain.n_features_in_ == 5
    assert plain.n_unscored_ == int(np.isnan(y).sum())
    assert plain.score(X, y, groups) == plain.best_estimator_.score(X, y, groups)
    np.testing.assert_array_equal(
        plain.view_disagreement(X, groups), plain.best_estimator_.view_disagreement(X, groups)
    )
    with pytest.raises(AttributeError, match="coef_"):
        _ = plain.coef_


def test_bad_input_is_refused(data):
    X, y, groups = data
    for options, message in [
        ({"alphas": [1.0, -1.0]}, "positive"),
        ({"nus": [-1.0]}, "nus"),
        ({"nus": []}, "flat list"),
        ({"cv": "loo"}, "'auto'"),
        ({"cv": 6}, "5 groups"),
        ({"scoring": "ndgc"}, "ndcg"),
        ({"views": 0}, "number of views"),
        ({"scoring": "map(relevant=50)"}, "undefined in every"),
    ]:
        with pytest.raises(ValueError, match=message):
            CoRankRLSCV(**{"views": COLUMNS, **options}).fit(X, y, groups)
    one = np.where(groups == 1, y, np.nan)
    with pytest.raises(ValueError, match="at least two groups"):
        CoRankRLSCV(cv=None, views=COLUMNS).fit(X, one, groups)
    lonely = np.where(groups == 1, y, np.nan)
    lonely[np.flatnonzero(groups == 2)[0]] = 1.0
    with pytest.raises(ValueError, match="leaves no pair to train on"):
        CoRankRLSCV(cv=None, views=COLUMNS).fit(X, lonely, groups)
    with pytest.raises(ValueError, match="all NaN"):
        CoRankRLSCV(views=COLUMNS).fit(X, np.full(len(y), np.nan), groups)


@pytest.mark.parametrize("views", [[View([0, 1, 2])], [View([0, 1, 2])] * 2])
def test_where_nu_makes_no_difference_it_is_0(data, views):
    """One view has nothing to agree with, and two equal ones agree whatever nu is."""
    model = CoRankRLSCV(views=views).fit(*data)
    scores = model.cv_results_["mean_score"]
    np.testing.assert_allclose(scores, np.broadcast_to(scores[0], scores.shape), atol=1e-12)
    assert model.nu_ == 0.0
