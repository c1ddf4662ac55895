"""RankLogistic against LogisticRegression on explicit pairs, and what it says of itself."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import expit
from sklearn.exceptions import ConvergenceWarning

from rankwise import PairGraph, RankLogistic, RankLogisticCV, RankSVM, ScoreGraph
from rankwise.graphs import pair_blocks
from rankwise.losses import LogisticLoss, pairwise
from tests import oracle
from tests.graphs.data import ChampionGraph

TIGHT = {"tol": 1e-12}


def _scores(seed, n=36):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 4))
    y = np.digitize(X @ [1.0, -1.0, 0.5, 0.0] + 2 * rng.normal(size=n), [-1.0, 0.0, 1.0])
    return X, y, rng.integers(0, 3, n)


def _edges(seed, n_items=12, n_edges=60):
    rng = np.random.default_rng(seed)
    winner = rng.integers(0, n_items, n_edges)
    loser = (winner + rng.integers(1, n_items, n_edges)) % n_items
    magnitude, weight = rng.integers(0, 3, n_edges) * 1.0, rng.random(n_edges) + 0.1
    return rng.normal(size=(n_items, 3)), (winner, loser, magnitude, weight)


@pytest.mark.parametrize("alpha", [1.0, 1e-2, 1e-5])
@pytest.mark.parametrize("ties", ["include", "exclude"])
@pytest.mark.parametrize("group_weight", ["pairs", "groups"])
def test_scores_give_what_logistic_regression_gives_on_explicit_pairs(alpha, ties, group_weight):
    X, y, groups = _scores(0)
    model = RankLogistic(alpha, ties=ties, group_weight=group_weight, **TIGHT).fit(X, y, groups)
    edges = oracle.score_edges(y, groups, ties=ties, group_weight=group_weight)
    w = oracle.rank_logistic(edges, X, alpha)
    np.testing.assert_allclose(model.coef_, w, atol=1e-6)
    assert model.objective_ == pytest.approx(
        oracle.logistic_objective(edges, X @ w, w @ w, alpha), rel=1e-10
    )
    assert model.n_pairs_ == len(edges)
    assert -1e-12 < model.gap_ <= 1e-12


@pytest.mark.parametrize("alpha", [1.0, 1e-4])
@pytest.mark.parametrize("kind", ["edges", "champions"])
def test_edges_with_ties_weights_and_repeats_give_what_logistic_regression_gives(alpha, kind):
    X, edges = _edges(1)
    graph = PairGraph(*edges, n_items=len(X))
    if kind == "champions":  # any graph will do
        X, y, groups = _scores(2)
        graph = ChampionGraph(y.astype(float), groups)
        pairs = graph.pairs()
        edges = pairs.winner, pairs.loser, pairs.magnitude, pairs.weight
    truth = oracle.rank_logistic(oracle.pair_edges(*edges), X, alpha)
    np.testing.assert_allclose(RankLogistic(alpha, **TIGHT).fit(X, graph).coef_, truth, atol=1e-6)


def test_the_gap_is_the_bound_of_strong_convexity():
    X, y, groups = _scores(3)
    edges = oracle.score_edges(y, groups, ties="exclude")
    with pytest.warns(ConvergenceWarning, match="RankLogistic reached max_iter"):
        model = RankLogistic(0.01, max_iter=2, tol=1e-12).fit(X, y, groups)
    w = oracle.rank_logistic(edges, X, 0.01)
    best = oracle.logistic_objective(edges, X @ w, w @ w, 0.01)
    slope = np.zeros(4)
    for i, j, *_ in edges:
        x = X[i] - X[j]
        slope -= x * expit(-model.coef_ @ x) / len(edges)
    slope += 2 * 0.01 * model.coef_
    assert model.lower_bound_ <= best <= model.objective_
    assert model.objective_ - model.lower_bound_ <= slope @ slope / (4 * 0.01) * (1 + 1e-6) + 1e-13


def test_pairs_in_many_blocks_are_the_same_pairs(monkeypatch):
    X, y, groups = _scores(4)
    whole = RankLogistic(0.01, ties="include").fit(X, y, groups)
    monkeypatch.setattr(pair_blocks, "BLOCK_PAIRS", 7)
    monkeypatch.setattr(pairwise, "MAX_STORED_PAIRS", 5)
    assert len(list(pair_blocks.pair_blocks(ScoreGraph(y, groups)))) > 10
    blocks = RankLogistic(0.01, ties="include").fit(X, y, groups)
    np.testing.assert_allclose(blocks.coef_, whole.coef_, rtol=1e-9)


def test_separable_data_have_a_finite_model_that_says_so():
    X, y = np.array([[0.0, 1.0], [1.0, 0.0], [2.0, 5.0]]), [0, 1, 2]
    for alpha in (1e-2, 1e-6, 1e-10):
        model = RankLogistic(alpha).fit(X, y)
        assert model.is_separable_
        assert np.isfinite(model.coef_).all()
        edges = oracle.score_edges(y, None, ties="exclude")
        np.testing.assert_allclose(
            model.coef_, oracle.rank_logistic(edges, X, alpha), rtol=2e-3, atol=1e-3
        )
    assert not RankLogistic(ties="include").fit(X, [0, 1, 1]).is_separable_
    assert not RankLogistic().fit(X, PairGraph([0, 1], [1, 0], n_items=3)).is_separable_
    searched = RankLogisticCV([1e-4, 0.1, 1e4], cv=2).fit(*_scores(0)).best_estimator_
    assert not searched.is_separable_


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_an_offset_of_the_features_changes_nothing(dtype):
    X, y, groups = _scores(5)
    X = np.round(X, 2).astype(dtype)
    model = RankLogistic(0.01, **TIGHT).fit(X, y, groups)
    moved = X + dtype(4096)
    shifted = RankLogistic(0.01, **TIGHT).fit(moved, y, groups)
    same = moved.astype(np.float64) - 4096
    truth = RankLogistic(0.01, **TIGHT).fit(same, y, groups)
    np.testing.assert_allclose(shifted.coef_, truth.coef_, rtol=1e-6, atol=1e-8)
    np.testing.assert_allclose(shifted.coef_, model.coef_, rtol=0.1, atol=0.05)


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 10**6), st.sampled_from([1e-12, 1e-3, 1.0, 1e6, 1e12]))
def test_the_scale_of_the_features_and_alpha_go_together(seed, scale):
    X, y, groups = _scores(seed, 12)
    if len(np.unique(y[groups == groups[0]])) < 2:
        return
    model = RankLogistic(0.1, **TIGHT).fit(X, y, groups)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        scaled = RankLogistic(0.1 * scale**2, **TIGHT).fit(scale * X, y, groups)
    np.testing.assert_allclose(scale * scaled.coef_, model.coef_, rtol=1e-5, atol=1e-8)


def test_scores_that_would_overflow_have_a_finite_loss():
    loss = LogisticLoss(PairGraph([0, 1], [1, 0]))
    at = loss.at(np.array([1e4, -1e4]))
    assert at.value == pytest.approx(1e4)
    assert np.isfinite(at.gradient).all()
    assert np.isfinite(at.hessian_product(np.ones(2))).all()


def test_predict_above_is_a_probability_with_its_opposite():
    X, y, groups = _scores(6)
    model = RankLogistic(0.01).fit(X, y, groups)
    f = model.predict(X)
    above = model.predict_above(X, [0, 1, 2], [3, 4, 5])
    np.testing.assert_allclose(above, expit(f[:3] - f[3:6]))
    np.testing.assert_allclose(above + model.predict_above(X, [3, 4, 5], [0, 1, 2]), 1.0)
    assert model.predict_above(X, 0, 0) == 0.5
    search = RankLogisticCV([0.01], cv=2).fit(X, y, groups)
    np.testing.assert_allclose(search.predict_above(X, [0, 1, 2], [3, 4, 5]), above, rtol=1e-4)
    for wrong in ([0.5], [len(X)], ["a"]):
        with pytest.raises(IndexError, match=r"integer|out of bounds"):
            model.predict_above(X, wrong, [0])


def test_a_path_and_a_warm_start_give_the_models_of_single_fits():
    X, y, groups = _scores(7)
    alphas = [1e-4, 1.0, 1e-2]
    path = RankLogistic(**TIGHT).path(X, y, groups, alphas=alphas)
    warm = RankLogistic(warm_start=True, **TIGHT).fit(X, y, groups)
    for k, alpha in enumerate(alphas):
        single = RankLogistic(alpha, **TIGHT).fit(X, y, groups)
        np.testing.assert_allclose(path.model(k).coef_, single.coef_, atol=1e-7)
        np.testing.assert_allclose(
            warm.set_params(alpha=alpha).fit(X, y, groups).coef_, single.coef_, atol=1e-7
        )
        assert path.gaps[k] <= 1e-12


@pytest.mark.parametrize("options", [{}, {"n_basis": 36}])
def test_a_linear_kernel_matrix_gives_the_linear_model(options):
    X, y, groups = _scores(8)
    linear = RankLogistic(0.01, **TIGHT).fit(X, y, groups)
    kernel = RankLogistic(0.01, kernel="poly", degree=1, gamma=1, coef0=0, **TIGHT, **options)
    f, g = kernel.fit(X, y, groups).predict(X), linear.predict(X)
    np.testing.assert_allclose(f - f.mean(), g - g.mean(), atol=1e-5)


@pytest.mark.filterwarnings("ignore:.*edge of the grid")
def test_the_search_chooses_as_refits_by_hand_do():
    X, y, groups = _scores(10, 60)
    alphas = [1e-6, 1e-2, 1.0, 1e4]
    search = RankLogisticCV(alphas, cv=None, store_predictions=True).fit(X, y, groups)
    held = np.empty((len(y), 4))
    for group in range(3):
        out = groups == group
        for k, alpha in enumerate(alphas):
            model = RankLogistic(alpha).fit(X[~out], y[~out], groups[~out])
            held[out, k] = model.predict(X[out])
    found = search.cv_results_["predictions"][0]
    for group in range(3):  # scores have no common level
        mine, theirs = found[groups == group], held[groups == group]
        np.testing.assert_allclose(mine - mine[0], theirs - theirs[0], atol=2e-3)
    assert search.alpha_ in alphas


def test_many_items_start_from_a_sample():
    rng = np.random.default_rng(0)
    X, groups = rng.normal(size=(21_000, 3)), np.arange(21_000) // 3
    y = (X @ [1.0, 0.5, 0.0] + rng.logistic(size=21_000)).round()
    model = RankLogistic(1e-4).fit(X, y, groups)
    assert model.n_iter_ <= 4
    assert model.gap_ <= 1e-6


def test_bad_input_is_named():
    X, y, groups = _scores(0)
    with pytest.raises(ValueError, match="nothing to rank"):
        RankLogistic(ties="include").fit(X, np.ones(len(X)), groups)
    for learner in (RankLogistic, RankSVM):
        with pytest.raises(ValueError, match=f"{learner.__name__} learns one output"):
            learner().fit(X, np.c_[y, y], groups)
    with pytest.raises(ValueError, match="ties='maybe'"):
        RankLogistic(ties="maybe").fit(X, y, groups)
    with pytest.raises(ValueError, match="relative"):
        RankLogistic().fit(X, ScoreGraph(y, groups, cost="relative"))
    with pytest.raises(ValueError, match="alpha"):
        RankLogistic(alpha=0.0).fit(X, y, groups)
