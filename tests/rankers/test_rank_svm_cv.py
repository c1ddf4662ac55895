"""RankSVMCV chooses what a slow loop of fits would choose."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.model_selection import GroupKFold, KFold

from rankwise import PairGraph, RankRLS, RankSVM, RankSVMCV, make_target
from rankwise.datasets import make_ranking
from rankwise.metrics import disagreement_error, ndcg
from rankwise.model_selection import (
    cross_val_predict_groups,
    leave_group_out_predict,
    leave_pair_out,
    permutation_test,
)

ALPHAS = np.array([1e-3, 1.0, 1e-1])
pytestmark = pytest.mark.filterwarnings("ignore:the best (alpha|gamma) .* is at the edge")


@pytest.fixture
def data():
    return make_ranking(12, 8, 5, noise=1.0, n_levels=4, random_state=1)[:3]


def refits(X, y, groups, folds, alphas=ALPHAS, **options):
    """Held-out scores by separate fits, shape (n_items, n_alphas)."""
    out = np.empty((len(y), len(alphas)))
    for train, test in folds:
        for k, alpha in enumerate(alphas):
            model = RankSVM(alpha, tol=1e-8, **options).fit(X[train], y[train], groups[train])
            out[test, k] = model.predict(X[test])
    return out


@pytest.mark.parametrize(
    "options",
    [{}, {"loss": "squared_hinge"}, {"kernel": "rbf", "gamma": 0.1}, {"group_weight": "groups"}],
)
def test_choice_is_that_of_a_loop_of_fits(data, options):
    X, y, groups = data
    model = RankSVMCV(ALPHAS, cv=4, scoring="ndcg@5", tol=1e-8, **options).fit(X, y, groups)
    slow = refits(X, y, groups, GroupKFold(4).split(X, y, groups), **options)
    scores = np.array([ndcg(y, f, groups, k=5, per_group=True) for f in slow.T]).T
    np.testing.assert_allclose(model.cv_results_["group_score"][0], scores, atol=1e-9)
    mean = scores.mean(axis=0)
    np.testing.assert_allclose(model.cv_results_["mean_score"][0], mean)
    assert model.alpha_ == ALPHAS[mean == mean.max()].max()
    assert model.best_score_ == pytest.approx(mean.max())
    assert model.cv_results_["cv"] == "folds of groups"
    direct = RankSVM(model.alpha_, tol=1e-8, **options).fit(X, y, groups)
    np.testing.assert_allclose(model.predict(X), direct.predict(X), atol=1e-3)
    assert model.best_estimator_.gap_ <= 1e-8


def test_one_list_holds_out_items(data):
    X, y, _ = data
    model = RankSVMCV(ALPHAS, cv=3, tol=1e-7).fit(X, y)
    folds = KFold(3, shuffle=True, random_state=0).split(X)
    slow = refits(X, y, np.zeros(len(y)), folds)
    held = KFold(3, shuffle=True, random_state=0).split(X)
    error = np.mean(
        [[disagreement_error(y[test], slow[test, k]) for k in range(3)] for _, test in held], axis=0
    )
    np.testing.assert_allclose(model.cv_results_["mean_score"][0], error, atol=1e-3)


def test_explicit_preferences_hold_out_components_or_edges(data):
    X, y, groups = data
    edges = RankSVM().hold_out_task(X, y, groups).graph.pairs()
    model = RankSVMCV(ALPHAS, cv=None).fit(X, edges)
    assert model.cv_results_["cv"] == "leave-group-out"
    by_scores = RankSVMCV(ALPHAS, cv=None).fit(X, y, groups)
    np.testing.assert_allclose(
        model.cv_results_["mean_score"], by_scores.cv_results_["mean_score"], atol=0.02
    )
    chain = PairGraph(np.arange(20), np.arange(1, 21))
    connected = RankSVMCV(ALPHAS, cv=4).fit(np.arange(21.0)[::-1, None], chain)
    assert connected.cv_results_["cv"] == "folds of edges"
    assert connected.best_score_ == 0


def test_kernel_parameters_are_searched_and_predictions_stored(data):
    X, y, groups = data
    model = RankSVMCV([0.1, 1.0], kernel="rbf", gamma=[1e-3, 0.1], cv=3, store_predictions=True)
    model.fit(X, make_target(y, groups))
    assert model.cv_results_["mean_score"].shape == (2, 2)
    assert model.best_params_["gamma"] in (1e-3, 0.1)
    assert model.cv_results_["predictions"][0].shape == (len(y), 2)
    assert model.dual_coef_.shape == (len(y),)
    assert model.best_score_ == model.cv_results_["mean_score"].min()


def test_default_alphas_follow_the_scale_of_the_features(data):
    X, y, groups = data
    a = RankSVMCV(cv=3).fit(X, y, groups)
    b = RankSVMCV(cv=3).fit(100 * X, y, groups)
    np.testing.assert_allclose(
        b.cv_results_["alphas"][0], 1e4 * a.cv_results_["alphas"][0], rtol=1e-12
    )
    assert len(a.cv_results_["alphas"][0]) == 21
    assert a.score(X, y, groups) > 0.7


def test_held_out_scores_equal_refits(data):
    X, y, groups = data
    folds = [(np.flatnonzero(groups != g), np.flatnonzero(groups == g)) for g in np.unique(groups)]
    slow = refits(X, y, groups, folds)
    fast = leave_group_out_predict(RankSVM(tol=1e-8), X, y, groups, alphas=ALPHAS)
    np.testing.assert_allclose(fast, slow, atol=1e-2)
    assert disagreement_error(y, fast, groups).max() < 0.5
    single = cross_val_predict_groups(RankSVM(1.0, tol=1e-8), X, y, groups, cv=3)
    folds = GroupKFold(3).split(X, y, groups)
    np.testing.assert_allclose(single, refits(X, y, groups, folds, alphas=[1.0])[:, 0], atol=1e-2)


def test_a_fold_that_leaves_nothing_to_learn_is_explained():
    X = np.arange(6.0)[:, None]
    with pytest.raises(ValueError, match="leaves no pair to train on"):
        RankSVMCV([1.0], cv=None).fit(X, [1, 2, 1, 1, 1, 1], [0, 0, 1, 1, 2, 2])


def test_exact_shortcuts_are_for_rank_rls(data):
    X, y, groups = data
    with pytest.raises(ValueError, match="leave-pair-out"):
        leave_pair_out(RankSVM(), X, y)
    with pytest.raises(ValueError, match="takes a RankRLS, got RankSVM"):
        permutation_test(RankSVM(), X, y, groups)
    with pytest.raises(TypeError, match="expected RankRLS, RankSVM"):
        cross_val_predict_groups(RankSVMCV(), X, y, groups)
    assert leave_group_out_predict(RankRLS(), X, y, groups).shape == y.shape
