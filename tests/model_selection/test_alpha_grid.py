"""Default alphas for columns on any scale, and what is said of a choice at the end of a grid."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

from rankwise import (
    CoRankRLSCV,
    RankingPursuitCV,
    RankRLS,
    RankRLSCV,
    RankSVMCV,
    View,
)
from rankwise.datasets import make_ranking
from rankwise.model_selection.alpha_grid import Edges, edges_of, flat_note, make_grid, median_share

EPS = np.finfo(float).eps


def raw_columns(seed=1, n_groups=40, size=20, p=136):
    """Columns on scales from 1e-3 to 1e8, of which some tell the order of the items."""
    rng = np.random.default_rng(seed)
    Z = rng.normal(size=(n_groups * size, p))
    w = np.where(rng.permutation(p) < 30, rng.normal(size=p), 0.0)
    y = Z @ w
    y = y / y.std() + 2 * rng.normal(size=len(y))
    scale = 10 ** rng.uniform(-3, 8, p)
    return scale * (Z + rng.uniform(0, 5, p)), y.round(), np.repeat(np.arange(n_groups), size), Z


@pytest.mark.filterwarnings("ignore:the best alpha .* is at the edge")
@pytest.mark.filterwarnings("ignore:half of the features")
@pytest.mark.parametrize("seed", range(4))
def test_the_choice_for_136_raw_columns_is_near_the_best_of_a_wide_grid(seed):
    X, y, groups, _ = raw_columns(seed)
    model = RankRLSCV().fit(X, y, groups)
    trace = 2 * sum(column.var() for column in X.T)
    wide = RankRLSCV(trace * np.logspace(-15.6, 3, 60)).fit(X, y, groups)
    narrow = RankRLSCV(trace * np.logspace(-8, 2, 31)).fit(X, y, groups)
    assert model.best_score_ < wide.best_score_ + 0.01  # at the limit of rounding BLAS decides
    assert model.best_score_ < narrow.best_score_ - 0.01  # as the grid was before
    again = RankRLS(model.alpha_).fit(X, y, groups)
    np.testing.assert_allclose(model.predict(X), again.predict(X))


def test_features_hidden_by_rounding_are_said_and_scaled_ones_are_not():
    X, y, groups, Z = raw_columns(0)
    with pytest.warns(UserWarning, match="Scale the features, for example with .*StandardScaler"):
        RankRLSCV().fit(X, y, groups)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        RankRLSCV().fit(Z, y, groups)


@pytest.mark.parametrize("options", [{}, {"solver": "dual"}, {"solver": "iterative"}])
def test_the_default_grid_is_the_same_for_every_solver_of_a_linear_model(options):
    X, y, groups = make_ranking(8, 8, 5, noise=1.0, random_state=0)[:3]
    X = X * [1e-3, 1, 1, 1, 1e3]
    grids = [RankRLS(**o).hold_out_task(X, y, groups).candidates(alpha=None) for o in ({}, options)]
    grids = [grid.axes["alpha"] for grid in grids]
    np.testing.assert_allclose(grids[1], grids[0], rtol=1e-9)
    assert len(grids[0]) > 31


def search_with_scores(monkeypatch, score_of, **options):
    """RankRLSCV whose held-out score is a function of alpha over the scale of the default grid."""
    X, y, groups = make_ranking(6, 6, 3, noise=1.0, random_state=0)[:3]
    scale = RankRLS().hold_out_task(X, y, groups).candidates(alpha=None).grid.scale
    seen = []

    def scores(graph, held, folds, metric):
        values = np.array([score_of(alpha) for alpha in seen[-1] / scale])
        return np.tile(values[None, :, None], (6, 1, 1)), np.arange(6)

    from rankwise.model_selection import curves as module

    inner = module.hold_out_folds

    def remember(task, cv, candidates, progress=None):
        seen.append(candidates.axes["alpha"])
        return inner(task, cv, candidates, progress)

    monkeypatch.setattr(module, "hold_out_folds", remember)
    monkeypatch.setattr(module, "score_groups", scores)
    return RankRLSCV(**options).fit(X, y, groups), scale, seen


@pytest.mark.parametrize("best, n_runs", [(1e-5, 1), (1e-12, 3), (1e4, 2), (1.0, 1)])
def test_the_grid_goes_on_while_the_best_is_at_its_end(monkeypatch, best, n_runs):
    model, scale, seen = search_with_scores(
        monkeypatch, lambda a: abs(np.log10(a) - np.log10(best))
    )
    assert model.alpha_ == pytest.approx(best * scale, rel=1e-9)
    assert len(seen) == n_runs
    grid = model.cv_results_["alphas"][0]
    assert (np.diff(grid) > 0).all()
    np.testing.assert_allclose(np.diff(np.log10(grid)), 1 / 3)
    assert model.cv_results_["mean_score"].shape == (1, len(grid))
    assert model.cv_results_["group_score"][0].shape == (6, len(grid))
    np.testing.assert_allclose(
        model.cv_results_["mean_score"][0], np.abs(np.log10(grid / scale / best)), atol=1e-9
    )


@pytest.mark.parametrize(
    "sign, end, message", [(1, EPS, "Scale the features"), (-1, 1e6, "nearly nothing is learned")]
)
def test_a_choice_that_stays_at_the_end_warns_and_the_search_ends(monkeypatch, sign, end, message):
    with pytest.warns(UserWarning, match=message) as caught:
        model, scale, _ = search_with_scores(monkeypatch, lambda a: sign * np.log10(a))
    assert caught[0].filename.endswith("test_alpha_grid.py")
    assert 1 <= model.alpha_ / (end * scale) < 10 ** (1 / 3) + 1e-9


def test_a_flat_score_is_not_extended(monkeypatch):
    model, scale, seen = search_with_scores(monkeypatch, lambda a: 0.25)
    assert len(seen) == 1
    assert model.alpha_ == pytest.approx(100 * scale)
    assert model.cv_results_["note"].startswith("all 31 values of alpha, from ")
    assert "score the same: the choice hardly matters" in model.cv_results_["note"]


def test_widened_scores_are_those_of_one_wide_grid():
    rng = np.random.default_rng(3)
    X = rng.normal(size=(60, 3)) * [1e-4, 1.0, 1e4]
    y = 1e4 * X[:, 0] + 0.1 * rng.normal(size=60)
    groups = np.arange(60) % 10
    for options in ({}, {"kernel": "rbf", "gamma": [1e-12, 1e-9]}, {"solver": "dual"}):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            model = RankRLSCV(**options, store_predictions=True).fit(X, y, groups)
        results = model.cv_results_
        for k, params in enumerate(results["params"]):
            gamma = params["gamma"]
            wide = RankRLSCV(
                results["alphas"][k], **{**options, "gamma": gamma}, store_predictions=True
            )
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                wide.fit(X, y, groups)
            np.testing.assert_allclose(
                results["predictions"][k], wide.cv_results_["predictions"][0], rtol=1e-4, atol=1e-4
            )
            assert results["mean_score"][k] == pytest.approx(
                wide.cv_results_["mean_score"][0], abs=0.02
            )


def test_one_list_widens_with_one_decomposition(monkeypatch):
    from rankwise.model_selection import least_squares_task as module

    calls = []
    inner = module.item_spectrum
    monkeypatch.setattr(module, "item_spectrum", lambda *a, **k: calls.append(1) or inner(*a, **k))
    rng = np.random.default_rng(0)
    X = rng.normal(size=(30, 2)) * [1e-5, 1.0]
    y = 1e5 * X[:, 0]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = RankRLSCV(kernel="poly", degree=1, coef0=0).fit(X, y)
    assert model.cv_results_["cv"] == "leave-pair-out"
    assert len(model.cv_results_["alphas"][0]) > 31
    assert len(calls) == 1
    assert model.best_score_ < 0.02


def test_ranksvm_and_co_rank_rls_reach_small_columns():
    rng = np.random.default_rng(4)
    groups = np.repeat(np.arange(12), 8)
    X = rng.normal(size=(96, 4)) * [1e3, 1.0, 1.0, 1.0]
    y = X[:, 1] + X[:, 2] - X[:, 3]
    svm = RankSVMCV(cv=3).fit(X, y, groups)
    assert len(svm.cv_results_["alphas"][0]) > 15
    assert svm.best_score_ < 0.1
    views = [View([0, 1, 2]), View([1, 2, 3])]
    co = CoRankRLSCV(views=views, nus=[0.0]).fit(X, np.where(groups < 9, y, np.nan), groups)
    assert co.cv_results_["alphas"].size > 31
    assert co.cv_results_["mean_score"].shape == (1, co.cv_results_["alphas"].size)
    assert co.best_score_ == co.cv_results_["mean_score"].min()


@pytest.mark.filterwarnings("ignore:alpha=.* is lost in rounding")
def test_co_rank_rls_goes_on_beyond_its_grid(monkeypatch):
    from rankwise.model_selection import curves as module

    X, y, groups = make_ranking(9, 6, 4, noise=1.0, random_state=0)[:3]
    y = np.where(groups < 6, y, np.nan)
    views = [View([0, 1]), View([2, 3])]
    seen = []
    inner = module.hold_out_folds

    def remember(task, cv, candidates, progress=None):
        seen.append(candidates.axes["alpha"])
        return inner(task, cv, candidates, progress)

    def falling(graph, held, folds, metric):
        return np.tile(np.log10(seen[-1])[None, :, None], (5, 1, 1)), np.arange(5)

    monkeypatch.setattr(module, "hold_out_folds", remember)
    monkeypatch.setattr(module, "score_groups", falling)
    with pytest.warns(UserWarning, match="Scale the features"):
        model = CoRankRLSCV(views=views, nus=[0.0]).fit(X, y, groups)
    assert len(seen) == 4  # from 1e-8 by three decades to 2e-16
    assert model.alpha_ == model.cv_results_["alphas"].min()
    assert (np.diff(model.cv_results_["alphas"]) > 0).all()


def test_median_share_leaves_out_constant_columns():
    assert median_share(np.ones(7)) == 1
    assert median_share(np.r_[np.zeros(9), np.ones(3)]) == 1
    assert median_share(np.zeros(4)) == 1
    assert median_share(np.empty(0)) == 1
    assert median_share(np.array([1e-31, 1e-31, 1e-31, 1.0, 1.0])) == 1
    assert median_share(np.array([1e-6, 1e-6, 1.0])) == pytest.approx(3e-6, rel=1e-5)


def test_grids_end_where_they_say():
    grid = make_grid(2.0)
    np.testing.assert_allclose(grid.alphas, 2 * np.logspace(-8, 2, 31))
    np.testing.assert_allclose(
        make_grid(2.0, decades=(-7, 0), per_decade=2).alphas, 2 * np.logspace(-7, 0, 15)
    )
    np.testing.assert_allclose(make_grid(0.0).alphas, np.logspace(-8, 2, 31))
    assert make_grid(1.0, 1e-20).hides
    assert not make_grid(1.0, 1e-3).hides
    for one in (make_grid(1.0, 1e-20), grid):
        for _ in range(9):
            one = one.wider(Edges(True, True))
        assert EPS <= one.alphas[0] / one.scale < 3 * EPS
        assert one.alphas[-1] / one.scale == pytest.approx(1e6)
    assert grid.wider(Edges(False, False)) == grid
    assert len(grid.wider(Edges(True, False)).beyond(grid)) == 9


def test_edges_are_strict():
    grid = np.array([1.0, 100.0, 10.0])
    assert edges_of(grid, np.array([0.1, 0.2, 0.3]), 0) == (True, False)
    assert edges_of(grid, np.array([0.2, 0.1, 0.3]), 1) == (False, True)
    assert edges_of(grid, np.array([0.2, 0.3, 0.1]), 2) == (False, False)
    assert edges_of(grid, np.array([0.2, 0.1, 0.1]), 1) == (False, False)
    assert edges_of(grid[:1], np.array([0.2]), 0) == (False, False)


def test_a_flat_stretch_is_half_of_the_grid_within_a_tenth_of_the_standard_error():
    grid = np.logspace(0, 3, 4)
    error = np.full(4, 0.1)
    steep = np.array([0.1, 0.2, 0.3, 0.4])
    assert flat_note("alpha", grid, steep, error, 0) == ""
    near = np.array([0.1, 0.109, 0.3, 0.4])
    assert flat_note("alpha", grid, near, error, 0) == (
        "2 of 4 values of alpha, from 1 to 10, score within a tenth of the standard error: "
        "the choice hardly matters"
    )
    assert flat_note("alpha", grid, near, np.full(4, np.nan), 0) == ""
    same = np.array([0.1, 0.1, 0.1 + 1e-15, 0.4])
    assert "3 of 4 values of alpha, from 1 to 100, score the same" in flat_note(
        "alpha", grid, same, np.full(4, np.nan), 0
    )
    assert flat_note("alpha", grid[:1], steep[:1], error[:1], 0) == ""


def test_gamma_at_the_edge_of_three_or_more_is_said():
    X, y, groups = make_ranking(10, 8, 4, noise=0.3, random_state=0)[:3]
    for search in (RankRLSCV(kernel="rbf"), RankSVMCV(kernel="rbf", cv=2), RankingPursuitCV(5)):
        with pytest.warns(UserWarning, match="the best gamma .* is at the edge of the grid"):
            search.set_params(gamma=[0.05, 10.0, 1e3]).fit(X, y, groups)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            search.set_params(gamma=[0.05, 1e3]).fit(X, y, groups)


def test_the_largest_number_of_steps_is_said_without_a_warning():
    X, y, groups = make_ranking(10, 8, 4, noise=0.3, random_state=0)[:3]
    model = RankingPursuitCV(3, kernel="linear", dictionary="features").fit(X, y, groups)
    assert model.n_basis_ == 3
    assert model.cv_results_["note"].startswith("the best n_basis 3 is the largest tried")
