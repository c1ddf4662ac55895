"""Nuisance columns: f(x) + zᵀγ in training, f(x) afterwards; against explicit pairs and refits."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize

from rankwise import PairGraph, RankLogistic, RankLogisticCV, RankRLS, RankRLSCV, RankSVM, RankSVMCV
from tests.oracle import logistic_objective, pair_edges, score_edges, with_nuisance

ALPHAS = [1e-3, 0.1, 10.0]
pytestmark = pytest.mark.filterwarnings("ignore:the best alpha")


def _clicks(seed=0, n_groups=8, size=5, offset=0.0, scale=1.0):
    rng = np.random.default_rng(seed)
    groups = np.repeat(np.arange(n_groups), size)
    place = np.tile(np.arange(size), n_groups)
    X = rng.normal(size=(len(groups), 3)) - 0.3 * place[:, None]
    y = X[:, 0] - 0.7 * place + rng.normal(size=len(groups))
    return X + offset, y, groups, np.eye(size)[place] * scale


@pytest.mark.parametrize("cost", ["magnitude", "sign"])
@pytest.mark.parametrize("group_weight", ["pairs", "groups", "explicit"])
def test_least_squares_on_explicit_pairs_gives_the_same_weights_and_effects(cost, group_weight):
    X, y, groups, Z = _clicks()
    rng = np.random.default_rng(1)
    if group_weight == "explicit":
        i, j = rng.integers(0, len(X), (2, 60))
        i, j = i[i != j], j[i != j]
        magnitude, weight = rng.uniform(size=(2, len(i)))
        data = {"y": PairGraph(i, j, magnitude, weight, n_items=len(X), cost=cost)}
        edges, model = pair_edges(i, j, magnitude, weight, cost), RankRLS(0.1)
    else:
        data = {"y": y, "groups": groups, "sample_weight": rng.uniform(size=len(y))}
        edges = score_edges(y, groups, cost, "include", group_weight, data["sample_weight"])
        model = RankRLS(0.1, cost=cost, group_weight=group_weight)
    model.fit(X, **data, nuisance=Z)
    w, gamma = with_nuisance(edges, X, Z, 0.1)
    np.testing.assert_allclose(model.coef_, w, atol=1e-12)
    np.testing.assert_allclose(model.nuisance_coef_, gamma, atol=1e-12)
    assert model.nuisance_coef_.sum() == pytest.approx(0, abs=1e-12)
    path = model.path(X, **data, alphas=ALPHAS, nuisance=Z)
    np.testing.assert_allclose(path.coefficients[1, :, 0], w, atol=1e-12)


@pytest.mark.parametrize("options", [{}, {"kernel": "rbf"}, {"kernel": "rbf", "n_basis": 9}])
def test_every_group_held_out_is_the_score_of_a_refit_without_it(options):
    X, y, groups, Z = _clicks()
    basis = {"basis": np.arange(9), "n_basis": None} if "n_basis" in options else {}
    options = {**options, **basis}
    search = RankRLSCV(ALPHAS, store_predictions=True, **options)
    held_out = search.fit(X, y, groups, nuisance=Z).cv_results_["predictions"][0]
    assert search.cv_results_["cv"] == "leave-group-out"
    for group in np.unique(groups)[:3]:
        own = groups == group
        for k, alpha in enumerate(ALPHAS):
            if basis:  # the same basis for all folds
                kept, own_items = RankRLS(alpha, **options), X
                weight = np.where(own, 0.0, 1.0)
                kept.fit(own_items, y, groups, weight, nuisance=Z)
            else:
                kept = RankRLS(alpha, **options).fit(
                    X[~own], y[~own], groups[~own], nuisance=Z[~own]
                )
            expected = kept.predict(X[own])
            found = held_out[own, k]
            np.testing.assert_allclose(found - found.mean(), expected - expected.mean(), atol=1e-9)


def test_items_of_one_list_held_out_are_scores_of_refits():
    X, y, _, Z = _clicks()
    cv = [(np.setdiff1d(np.arange(40), held), held) for held in np.split(np.arange(40), 4)]
    search = RankRLSCV([0.1, 1.0], cv=cv, store_predictions=True).fit(X, y, nuisance=Z)
    for rest, held in cv:
        expected = RankRLS(0.1).fit(X[rest], y[rest], nuisance=Z[rest]).predict(X[held])
        found = search.cv_results_["predictions"][0][held, 0]
        np.testing.assert_allclose(found, expected, atol=1e-10)
    assert np.isnan(search.nuisance_se_).all()  # one group tells nothing about errors


@given(
    st.integers(0, 99), st.sampled_from([0.0, 1e6]), st.sampled_from([1e-12, 1.0, 1e12]),
    st.sampled_from([np.float32, np.float64]),
)  # fmt: skip
@settings(max_examples=15, deadline=None)
def test_offsets_of_features_and_scales_of_nuisance_change_nothing(seed, offset, scale, dtype):
    X, y, groups, Z = _clicks(seed)
    X = X.astype(dtype)
    plain = RankRLS(0.1).fit(X, y, groups, nuisance=Z)
    Z_scaled = np.c_[Z * scale, Z[:, 0] * scale, np.full(len(y), 1e9)]  # a duplicate, a constant
    moved = RankRLS(0.1).fit(X.astype(np.float64) + offset, y, groups, nuisance=Z_scaled)
    np.testing.assert_allclose(moved.coef_, plain.coef_, atol=1e-6)
    effects = moved.nuisance_coef_[:5] * scale
    effects[0] += moved.nuisance_coef_[5] * scale
    np.testing.assert_allclose(effects - effects.mean(), plain.nuisance_coef_, atol=1e-6)
    assert moved.nuisance_coef_[6] == 0
    assert np.isnan(moved.nuisance_se_[6])


def test_text_frames_and_sparse_features_are_read_alike():
    pd = pytest.importorskip("pandas")
    X, y, groups, Z = _clicks()
    names = np.array(list("abcde"))[Z.argmax(axis=1)]
    expected = RankRLS(0.1).fit(X, y, groups, nuisance=Z)
    for nuisance in (names, pd.DataFrame({"place": names}), sp.csr_array(Z)):
        model = RankRLS(0.1).fit(sp.csr_array(X), y, groups, nuisance=nuisance)
        np.testing.assert_allclose(model.coef_, expected.coef_, atol=1e-12)
        np.testing.assert_allclose(model.nuisance_se_, expected.nuisance_se_, atol=1e-12)
    frame = pd.DataFrame({"place": names, "size": X[:, 1]})
    assert RankRLS().fit(X, y, groups, nuisance=frame).nuisance_names_[-2:] == ["place=e", "size"]


def test_standard_errors_are_those_of_data_made_again():
    effects, errors = [], []
    for seed in range(150):
        X, y, groups, Z = _clicks(seed, n_groups=40)
        model = RankRLS(1e-3).fit(X, y, groups, nuisance=Z)
        effects.append(model.nuisance_coef_)
        errors.append(model.nuisance_se_)
    ratio = np.mean(errors, axis=0) / np.std(effects, axis=0)
    assert (ratio > 0.8).all()
    assert (ratio < 1.2).all()


@pytest.mark.parametrize("ties", ["exclude", "include"])
def test_a_logistic_model_has_the_minimum_over_weights_and_effects(ties):
    X, y, groups, Z = _clicks(3)
    y = np.round(y)
    model = RankLogistic(0.01, tol=1e-12, ties=ties).fit(X, y, groups, nuisance=Z)
    edges = score_edges(y, groups, "magnitude", ties)
    norm = sum(w for *_, w in edges)

    centered = Z - np.array([Z[groups == g].mean(axis=0) for g in groups])
    ridge = 1e-8 * np.mean(centered**2, axis=0)

    def objective(theta):
        f = X @ theta[:3] + Z @ theta[3:]
        return logistic_objective(edges, f, theta[:3] @ theta[:3], 0.01) + ridge @ theta[3:] ** 2

    best = minimize(objective, np.zeros(8), method="BFGS", options={"gtol": 1e-9})
    assert norm > 0
    assert model.objective_ == pytest.approx(best.fun, rel=1e-9)
    assert model.lower_bound_ <= best.fun * (1 + 1e-12)
    np.testing.assert_allclose(model.coef_, best.x[:3], atol=1e-5)
    np.testing.assert_allclose(model.nuisance_coef_, best.x[3:] - best.x[3:].mean(), atol=1e-5)
    assert (model.nuisance_se_ > 0).all()


@pytest.mark.parametrize("seed", range(4))
def test_positions_that_are_never_clicked_have_finite_effects_and_a_certified_minimum(seed):
    rng = np.random.default_rng(seed)
    groups, position = np.repeat(np.arange(29), 10), np.tile(np.arange(10), 29)
    X = rng.normal(size=(290, 5))
    likes = X[:, 0] + rng.normal(size=290) > 0
    clicks = likes & (rng.random(290) < 0.6 ** (1.5 * position))
    words = position.astype(str)
    model = RankLogistic(0.01).fit(X, clicks.astype(float), groups, nuisance=words)
    assert 0 <= model.gap_ <= 1e-6
    assert np.abs(model.nuisance_coef_).max() < 30


def test_the_logistic_search_holds_out_as_refits_do():
    X, y, groups, Z = _clicks(3)
    cv = [(np.flatnonzero(groups != g), np.flatnonzero(groups == g)) for g in range(8)]
    search = RankLogisticCV([0.1, 1.0], cv=cv, tol=1e-10, store_predictions=True)
    search.fit(X, y, groups, nuisance=Z)
    rest, held = cv[0]
    refit = RankLogistic(0.1, tol=1e-10).fit(X[rest], y[rest], groups[rest], nuisance=Z[rest])
    found = search.cv_results_["predictions"][0][held, 0]
    np.testing.assert_allclose(found, refit.predict(X[held]), atol=1e-4)
    whole = RankLogistic(search.alpha_, tol=1e-10).fit(X, y, groups, nuisance=Z)
    np.testing.assert_allclose(search.nuisance_coef_, whole.nuisance_coef_, atol=1e-4)


def test_a_new_fit_forgets_the_effects():
    X, y, groups, Z = _clicks()
    model = RankRLS(0.1).fit(X, y, groups, nuisance=Z)
    assert not hasattr(model.fit(X, y, groups), "nuisance_coef_")


def test_nuisance_that_explains_everything_is_told():
    X, y, groups, Z = _clicks()
    for all_of_it in (X, y):
        with pytest.warns(UserWarning, match="explain"):
            model = RankRLS().fit(X, y, groups, nuisance=np.c_[Z, all_of_it])
        assert not model.coef_.any()
    with pytest.warns(UserWarning, match="explain"):
        RankLogistic().fit(X, y, groups, nuisance=np.c_[Z, X])
    with pytest.warns(UserWarning, match="explain"):
        RankLogistic().fit(X, y, groups, nuisance=y)


def test_bad_nuisance_is_named():
    X, y, groups, Z = _clicks()
    gap = np.where(Z == 1, np.nan, Z)
    for nuisance, word in ((Z[:-1], "39 rows"), (gap, "column 0"), (np.eye(40), "40 columns")):
        with pytest.raises(ValueError, match=word):
            RankRLS().fit(X, y, groups, nuisance=nuisance)
    for model in (RankSVM(), RankSVMCV()):
        with pytest.raises(ValueError, match="does not support nuisance"):
            model.fit(X, y, groups, nuisance=Z)
    with pytest.raises(ValueError, match="beta=0 and one output"):
        RankRLS(beta=0.5).fit(X, y, groups, nuisance=Z)
    with pytest.raises(ValueError, match="iterative"):
        RankRLS(solver="iterative").fit(X, y, groups, nuisance=Z)
