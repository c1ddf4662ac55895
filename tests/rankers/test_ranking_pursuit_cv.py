"""The number of steps chosen by grouped folds or by patience, against loops that train again."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.model_selection import GroupKFold, GroupShuffleSplit

from rankwise import PairGraph, RankingPursuit, RankingPursuitCV, View
from rankwise.errors import UndefinedMetricError
from rankwise.metrics import get_metric

M, P, STEPS = 60, 4, 9


@pytest.fixture
def data():
    rng = np.random.default_rng(2)
    X = rng.normal(size=(M, P))
    groups = rng.permutation(np.repeat(np.arange(10), 6))
    y = (np.sin(2 * X[:, 0]) + X[:, 1] + 0.3 * rng.normal(size=M)).round(1)
    return X, y, groups


def folds_by_hand(X, y, groups, metric, n_folds, **options):
    """Mean over held-out groups of the metric after each step."""
    scored = np.flatnonzero(~np.isnan(y))
    values = []
    for _, test in GroupKFold(n_folds).split(X[scored], y[scored], groups[scored]):
        held = scored[test]
        rest = np.setdiff1d(np.arange(len(y)), held)
        model = RankingPursuit(STEPS, **options).fit(X[rest], y[rest], groups[rest])
        stages = np.stack(list(model.staged_predict(X[held])), axis=1)
        values.append(get_metric(metric)(y[held], stages, groups[held], per_group=True))
    return np.concatenate(values)


@pytest.mark.parametrize("metric", ["disagreement", "tau"])
@pytest.mark.parametrize("backfit", [None, "final", "every"])
def test_scores_equal_training_again_without_each_fold(data, metric, backfit):
    X, y, groups = data
    model = RankingPursuitCV(STEPS, cv=3, scoring=metric, gamma=0.5, backfit=backfit)
    model.fit(X, y, groups)
    by_group = folds_by_hand(X, y, groups, metric, 3, gamma=0.5, backfit=backfit)
    found = model.cv_results_["group_score"][0]
    np.testing.assert_allclose(np.sort(found, axis=0), np.sort(by_group, axis=0), atol=1e-9)
    mean = by_group.mean(axis=0)
    best = int(np.argmax(mean) if metric == "tau" else np.argmin(mean))
    assert model.n_basis_ == best + 1 == model.best_params_["n_basis"]
    assert model.best_score_ == pytest.approx(mean[best])
    alone = RankingPursuit(best + 1, gamma=0.5, backfit=backfit).fit(X, y, groups)
    np.testing.assert_allclose(model.predict(X), alone.predict(X))
    np.testing.assert_allclose(list(model.staged_predict(X)), list(alone.staged_predict(X)))
    np.testing.assert_array_equal(model.basis_indices_, alone.basis_indices_)
    assert not hasattr(model, "coef_")


def test_unscored_rows_take_part_in_every_fold(data):
    X, y, groups = data
    y = np.where(np.arange(M) % 4 == 0, np.nan, y)
    views = [View([0, 1], kernel="rbf", gamma=0.5), View([2, 3], kernel="rbf", gamma=0.5)]
    model = RankingPursuitCV(STEPS, cv=3, views=views).fit(X, y, groups)
    by_group = folds_by_hand(X, y, groups, "disagreement", 3, views=views)
    found = model.cv_results_["group_score"][0]
    np.testing.assert_allclose(np.sort(found, axis=0), np.sort(by_group, axis=0), atol=1e-9)
    assert model.predict_views(X).shape == (M, 2)


@pytest.mark.filterwarnings("ignore:the best gamma .* is at the edge")
def test_parameters_given_as_lists_are_searched(data):
    X, y, groups = data
    gammas = [1e-4, 0.1, 0.5]
    model = RankingPursuitCV(STEPS, gamma=gammas, cv=3).fit(X, y, groups)
    single = [RankingPursuitCV(STEPS, gamma=g, cv=3).fit(X, y, groups) for g in gammas]
    expected = [each.cv_results_["mean_score"][0] for each in single]
    np.testing.assert_allclose(model.cv_results_["mean_score"], expected)
    best = int(np.argmin([each.best_score_ for each in single]))
    assert model.best_score_ == single[best].best_score_
    assert model.best_params_ == {"n_basis": single[best].n_basis_, "gamma": gammas[best]}
    views = RankingPursuitCV(3, views=2, nu=[0.0, 1.0], cv=2, random_state=0).fit(X, y, groups)
    assert set(views.best_params_) == {"n_basis", "nu"}


def test_of_equally_good_numbers_of_steps_the_smallest_is_chosen():
    X = np.arange(20.0)[:, None]
    model = RankingPursuitCV(5, kernel="linear", dictionary="features", cv=2).fit(X, X[:, 0])
    assert model.best_score_ == 0.0
    assert model.n_basis_ == 1


def test_one_list_is_cut_into_folds_of_items_and_precomputed_kernels_follow(data):
    X, y, _ = data
    model = RankingPursuitCV(STEPS, gamma=0.5).fit(X, y)
    assert model.cv_results_["group_score"][0].shape == (5, STEPS)
    given = RankingPursuitCV(STEPS, kernel="precomputed").fit(rbf_kernel(X, gamma=0.5), y)
    np.testing.assert_allclose(given.cv_results_["mean_score"], model.cv_results_["mean_score"])
    sparse = RankingPursuitCV(STEPS, gamma=0.5).fit(sp.csr_matrix(X), y)
    np.testing.assert_allclose(sparse.cv_results_["mean_score"], model.cv_results_["mean_score"])


@pytest.mark.parametrize("grouped", [True, False])
def test_patience_keeps_the_best_step_on_held_out_rows(data, grouped):
    """[Pursuit13] figures 1 and 2: until a validation set says stop."""
    X, y, groups = data
    groups = groups if grouped else None
    options = {"gamma": 0.5, "backfit": "every", "beta": 0.2}
    model = RankingPursuit(
        50, n_iter_no_change=3, validation_fraction=0.3, random_state=0, **options
    ).fit(X, y, groups)
    errors = model.validation_score_
    best = int(np.argmin(errors))
    assert model.n_basis_ == best + 1 == len(model.train_error_)
    assert len(errors) == best + 4 < 50
    split = GroupShuffleSplit(1, test_size=0.3, random_state=0)
    rest, held = next(split.split(X, groups=groups if grouped else np.arange(M)))
    rest, held = np.sort(rest), np.sort(held)
    labels, held_labels = (None if groups is None else groups[rows] for rows in (rest, held))
    alone = RankingPursuit(best + 1, **options).fit(X[rest], y[rest], labels)
    np.testing.assert_allclose(model.predict(X), alone.predict(X), atol=1e-8)
    np.testing.assert_array_equal(model.basis_indices_, rest[alone.basis_indices_])
    stages = list(alone.staged_predict(X[held]))
    expected = [get_metric("disagreement")(y[held], f, held_labels) for f in stages]
    np.testing.assert_allclose(errors[: best + 1], expected)


def test_patience_with_views(data):
    X, y, groups = data
    y = np.where(np.arange(M) % 4 == 0, np.nan, y)
    options = {"views": 2, "validation_fraction": 0.3, "random_state": 0, "n_iter_no_change": 2}
    model = RankingPursuit(30, **options).fit(X, y, groups)
    assert model.n_basis_ <= len(model.validation_score_) <= 30
    model.set_params(n_iter_no_change=None).fit(X, y, groups)
    assert not hasattr(model, "validation_score_")


def test_undefined_scores_and_bad_parameters_are_explained(data):
    X, y, groups = data
    with pytest.raises(ValueError, match="cv='five' is unknown"):
        RankingPursuitCV(cv="five").fit(X, y, groups)
    with pytest.raises(ValueError, match="cv=11; expected 2 to 10 folds of the 10 groups"):
        RankingPursuitCV(cv=11).fit(X, y, groups)
    with pytest.raises(ValueError, match="gamma is an empty list"):
        RankingPursuitCV(gamma=[]).fit(X, y, groups)
    with pytest.raises(ValueError, match="unscored rows"):
        RankingPursuitCV().fit(X, PairGraph([0], [1], n_items=M))
    tied = np.where(groups == 0, np.arange(M), 1.0)
    with pytest.warns(UserWarning, match="no item is preferred"):
        model = RankingPursuitCV(3, cv=None).fit(X, tied, groups)
    assert np.isnan(model.cv_results_["group_score"][0]).sum() == 9 * 3
    with pytest.raises(UndefinedMetricError, match="undefined in every held-out fold"):
        RankingPursuitCV(3, cv=M).fit(X, y)
