"""CoRankRLS with several outputs, and with views weighted by their held-out errors."""

import numpy as np
import pytest

from rankwise import CoRankRLS, CoRankRLSCV, View
from rankwise.metrics import disagreement_error
from rankwise.persistence import load, save

pytestmark = pytest.mark.filterwarnings("ignore:the best .* is at the edge of the grid")

VIEWS = [View([0, 1], kernel="rbf", gamma=0.5, n_basis=6), View([2, 3])]


@pytest.fixture
def data():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(48, 4))
    groups = np.repeat(np.arange(8), 6)
    Y = X @ rng.normal(size=(4, 3)) + rng.normal(size=(48, 3))
    Y[groups > 4] = np.nan
    return X, Y, groups


def test_equation_18_of_several_outputs_is_a_model_of_each(data, tmp_path):
    X, Y, groups = data
    model = CoRankRLS(0.1, nu=2.0, views=VIEWS, view_weights=[2, 1], random_state=0)
    both = model.fit(X, Y, groups)
    path = model.path(X, Y, groups, alphas=[0.1, 1.0], nus=[0.0, 2.0])
    for k in range(3):
        one = CoRankRLS(0.1, nu=2.0, views=VIEWS, view_weights=[2, 1], random_state=0)
        one.fit(X, Y[:, k], groups)
        np.testing.assert_allclose(both.predict(X)[:, k], one.predict(X), atol=1e-12)
        np.testing.assert_allclose(both.predict_views(X)[..., k], one.predict_views(X), atol=1e-12)
        one_path = one.path(X, Y[:, k], groups, alphas=[0.1, 1.0], nus=[0.0, 2.0])
        np.testing.assert_allclose(path.predict(X)[:, k], one_path.predict(X), atol=1e-12)
    np.testing.assert_allclose(path.model(0, nu=1).predict(X), both.predict(X), atol=1e-10)
    assert both.rank(X, groups).shape == (48, 3)
    save(both, tmp_path / "model.rankwise")
    np.testing.assert_array_equal(load(tmp_path / "model.rankwise").predict(X), both.predict(X))
    with pytest.raises(ValueError, match="one output"):
        both.view_disagreement(X)


def test_search_of_several_outputs_is_a_loop_of_fits(data):
    X, Y, groups = data
    is_scored = ~np.isnan(Y[:, 0])
    labels = groups[is_scored]
    folds = [(np.flatnonzero(labels != g), np.flatnonzero(labels == g)) for g in range(5)]
    grid = {"alphas": [0.01, 1.0], "nus": [0.0, 3.0]}
    search = CoRankRLSCV(**grid, views=VIEWS, cv=folds, random_state=0).fit(X, Y, groups)
    assert search.cv_results_["mean_score"].shape == (2, 2, 3)
    for k in range(3):
        one = CoRankRLSCV(**grid, views=VIEWS, cv=folds, random_state=0).fit(X, Y[:, k], groups)
        scores = search.cv_results_["mean_score"][..., k]
        np.testing.assert_allclose(scores, one.cv_results_["mean_score"], atol=1e-12)
    best = search.cv_results_["mean_score"].mean(axis=2).min()
    assert search.best_score_ == pytest.approx(best)


@pytest.mark.parametrize("views", [VIEWS, 3])
def test_views_weighted_by_their_held_out_errors_are_a_loop_of_fits(data, views):
    X, Y, groups = data
    y = Y[:, 0]
    scored = np.flatnonzero(~np.isnan(y))
    folds = [(scored[groups[scored] != g], scored[groups[scored] == g]) for g in range(5)]
    positions = [tuple(np.searchsorted(scored, rows) for rows in fold) for fold in folds]
    options = {"views": views, "kernel": "rbf", "n_basis": 8, "random_state": 0}
    grid = {"alphas": [0.01, 1.0], "nus": [0.0, 3.0]}
    mean = CoRankRLSCV(**grid, cv=positions, **options).fit(X, y, groups)
    weighted = CoRankRLSCV(**grid, cv=positions, view_weights="held_out", **options)
    weighted.fit(X, y, groups)
    assert weighted.best_params_ == mean.best_params_
    bases = weighted.basis_indices_
    errors = []
    for _, held_out in folds:
        rest = np.setdiff1d(np.arange(48), held_out)
        if views == 3:
            kernel = {"kernel": "rbf", "gamma": 1 / 4}
            refitted_views = [View(basis=X[basis], **kernel) for basis in bases]
        else:
            kernel = {"kernel": "rbf", "gamma": 0.5}
            refitted_views = [View([0, 1], basis=X[bases[0]], **kernel), View([2, 3])]
        refit = CoRankRLS(weighted.alpha_, nu=weighted.nu_, views=refitted_views)
        scores = refit.fit(X[rest], y[rest], groups[rest]).predict_views(X[held_out])
        errors.append([disagreement_error(y[held_out], column) for column in scores.T])
    below_chance = np.maximum(0.5 - np.mean(errors, axis=0), 0)
    weights = below_chance / below_chance.sum()
    expected = weighted.predict_views(X) @ weights
    np.testing.assert_allclose(weighted.predict(X), expected, atol=1e-8)
    assert np.ptp(weights) > 0.01


def test_random_views_of_no_seed_are_weighted_as_drawn(data):
    X, Y, groups = data
    options = {"views": 2, "kernel": "rbf", "n_basis": 8, "view_weights": "held_out"}
    model = CoRankRLSCV([0.1], nus=[1.0], **options).fit(X, Y[:, 0], groups)
    again = CoRankRLSCV([0.1], nus=[1.0], **options)
    again.random_state = model.best_estimator_.random_state
    again.fit(X, Y[:, 0], groups)
    np.testing.assert_array_equal(model.predict(X), again.predict(X))


def test_view_weights_of_a_search_are_checked(data):
    X, Y, groups = data
    with pytest.raises(ValueError, match="view_weights"):
        CoRankRLSCV([0.1], views=VIEWS, view_weights="error").fit(X, Y[:, 0], groups)
    with pytest.raises(ValueError, match="time"):
        CoRankRLSCV([0.1], views=VIEWS, view_weights="held_out").fit(
            X, Y[:, 0], groups, time=groups
        )
