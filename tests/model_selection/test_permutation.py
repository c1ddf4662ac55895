"""Permutation tests: permuted scores as extra outputs equal training again for each of them."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from sklearn.model_selection import GroupKFold, KFold

from rankwise import PairGraph, RankRLS, RankRLSCV, make_target
from rankwise.errors import UndefinedMetricError
from rankwise.metrics import disagreement_error, get_metric
from rankwise.model_selection import permutation, permutation_test


@pytest.fixture
def grouped(rng):
    X = rng.normal(size=(24, 3))
    groups = rng.permutation(np.repeat(["a", "b", "c", "d"], 6))
    y = np.round(X[:, 0] + rng.normal(size=24), 1)
    return X, y, groups


@pytest.fixture
def rng():
    return np.random.default_rng(0)


def permutations(y, groups, n, seed):
    """The permutations that `permutation_test` draws."""
    codes = np.zeros(len(y)) if groups is None else np.unique(groups, return_inverse=True)[1]
    draw = np.random.RandomState(seed)
    by_group = np.argsort(codes, kind="stable")
    for _ in range(n):
        permuted = np.empty_like(y)
        permuted[by_group] = y[np.argsort(codes + draw.random_sample(len(y)))]
        yield permuted


def refitted_score(model, X, y, groups, folds, metric):
    """Mean over the parts of groups that a fold holds, each by a model trained without the fold."""
    groups = np.zeros(len(y)) if groups is None else groups
    scores = []
    for fold in folds:
        rest = np.setdiff1d(np.arange(len(y)), fold)
        held = model.fit(X[rest], y[rest], groups[rest]).predict(X[fold])
        for g in np.unique(groups[fold]):
            own = groups[fold] == g
            scores.append(metric(y[fold][own], held[own], undefined="nan"))
    return np.nanmean(scores)


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"kernel": "rbf"},
        {"cost": "sign"},
        {"kernel": "rbf", "cost": "relative"},
        {"ties": "exclude", "group_weight": "groups"},
        {"beta": 0.5},
    ],
    ids=str,
)
@pytest.mark.parametrize("scoring", ["disagreement", "ndcg@3"])
def test_leave_group_out_equals_refitting_for_each_permutation(grouped, options, scoring):
    X, y, groups = grouped
    y = y - y.min()
    model = RankRLS(alpha=0.1, **options)
    result = permutation_test(
        model, X, y, groups, n_permutations=5, scoring=scoring, random_state=1
    )
    folds = [np.flatnonzero(groups == g) for g in np.unique(groups)]
    slow = [
        refitted_score(model, X, p, groups, folds, get_metric(scoring))
        for p in [y, *permutations(y, groups, 5, seed=1)]
    ]
    np.testing.assert_allclose([result.score, *result.null_scores], slow, rtol=0, atol=1e-10)


def refitted_pairs(model, X, y):
    """Share of wrong pairs, each by a model trained without its two items."""
    wrong = []
    for i, j in itertools.combinations(range(len(y)), 2):
        if y[i] != y[j]:
            rest = np.setdiff1d(np.arange(len(y)), [i, j])
            held = model.fit(X[rest], y[rest]).predict(X[[i, j]])
            wrong.append(disagreement_error(y[[i, j]], held))
    return np.mean(wrong)


@pytest.mark.parametrize("options", [{}, {"kernel": "rbf"}, {"beta": 0.3}], ids=str)
@pytest.mark.parametrize("way", ["pairs", "folds"])
def test_one_list_equals_refitting_for_each_permutation(rng, options, way):
    X, y = rng.normal(size=(9, 2)), np.round(rng.normal(size=9), 1)
    model = RankRLS(alpha=0.1, **options)
    cv = KFold(3, shuffle=True, random_state=0)
    folds = [test for _, test in cv.split(X)]
    how = {} if way == "pairs" else {"cv": cv.split(X), "scoring": "tau"}
    result = permutation_test(model, X, y, n_permutations=4, random_state=3, **how)
    slow = [
        refitted_pairs(model, X, p)
        if way == "pairs"
        else refitted_score(model, X, p, None, folds, get_metric("tau"))
        for p in [y, *permutations(y, None, 4, seed=3)]
    ]
    np.testing.assert_allclose([result.score, *result.null_scores], slow, rtol=0, atol=1e-10)


def test_every_permutation_is_inside_the_groups(grouped):
    _, y, groups = grouped
    codes = np.unique(groups, return_inverse=True)[1]
    (orders,) = permutation._permutations(codes, 30, 100, np.random.RandomState(0))
    Y = y[orders]
    assert (Y[:, 0] == y).all()
    assert len(np.unique(Y, axis=1).T) > 25
    for g in np.unique(groups):
        own = groups == g
        assert (np.sort(Y[own], axis=0) == np.sort(y[own])[:, None]).all()


@pytest.mark.parametrize("cost", ["magnitude", "sign"])
def test_chunks_give_what_one_pass_gives(grouped, monkeypatch, cost):
    X, y, groups = grouped
    options = {"n_permutations": 20, "cv": GroupKFold(3, shuffle=True), "random_state": 5}
    options["cv"] = list(options["cv"].split(X, y, groups))
    whole = permutation_test(RankRLS(cost=cost), X, y, groups, **options)
    monkeypatch.setattr(permutation, "CHUNK_ENTRIES", 7 * len(y))
    parts = permutation_test(RankRLS(cost=cost), X, y, groups, **options)
    np.testing.assert_allclose(parts.null_scores, whole.null_scores, atol=1e-12)
    pairs = permutation_test(RankRLS(), X, y, n_permutations=20, random_state=5)
    monkeypatch.undo()
    again = permutation_test(RankRLS(), X, y, n_permutations=20, random_state=5)
    np.testing.assert_allclose(pairs.null_scores, again.null_scores, atol=1e-12)


def test_a_splitter_without_a_seed_is_asked_once(rng, monkeypatch):
    X, y = rng.normal(size=(20, 2)), rng.normal(size=20)

    class Counting(KFold):
        asked = 0

        def split(self, X, y=None, groups=None):
            Counting.asked += 1
            return super().split(X, y, groups)

    monkeypatch.setattr(permutation, "CHUNK_ENTRIES", 60)
    permutation_test(RankRLS(), X, y, n_permutations=9, cv=Counting(4, shuffle=True))
    assert Counting.asked == 1


@pytest.mark.parametrize("with_groups", [True, False])
def test_p_values_of_noise_are_uniform(rng, with_groups):
    groups = np.repeat(np.arange(5), 4) if with_groups else None
    p = [
        permutation_test(
            RankRLS(alpha=1.0),
            rng.normal(size=(20, 2)),
            rng.integers(0, 4, size=20).astype(float),
            groups,
            n_permutations=19,
            random_state=seed,
        ).pvalue
        for seed in range(120)
    ]
    assert np.mean(np.array(p) <= 0.1) < 0.19  # 0.1, three standard errors above
    assert 0.44 < np.mean(p) < 0.61  # 0.525, three standard errors around


def test_choice_of_alpha_is_repeated_for_each_permutation(grouped):
    X, y, groups = grouped
    alphas = [1e-3, 0.1, 10.0]
    result = permutation_test(
        RankRLS(), X, y, groups, n_permutations=9, alphas=alphas, random_state=0
    )
    single = [
        permutation_test(RankRLS(alpha=a), X, y, groups, n_permutations=9, random_state=0)
        for a in alphas
    ]
    assert result.score == pytest.approx(min(s.score for s in single), abs=1e-12)
    np.testing.assert_allclose(
        result.null_scores, np.min([s.null_scores for s in single], axis=0), atol=1e-12
    )


def test_larger_is_better_for_scores_and_a_strong_signal_has_the_smallest_p(grouped):
    X, _, groups = grouped
    options = {"n_permutations": 49, "random_state": 0}
    error = permutation_test(RankRLS(), X, X[:, 0], groups, **options)
    right = permutation_test(RankRLS(), X, X[:, 0], groups, **options, scoring="concordance")
    np.testing.assert_allclose(right.null_scores, 1 - error.null_scores)
    assert right.pvalue == error.pvalue == 1 / 50
    assert right.n_permutations == len(right.null_scores) == 49
    assert repr(right).startswith("PermutationTest(concordance=")


def test_a_target_is_what_scores_are(grouped):
    X, y, groups = grouped
    options = {"n_permutations": 7, "random_state": 0}
    plain = permutation_test(RankRLS(cost="sign"), X, y, groups, **options)
    target = permutation_test(RankRLS(cost="sign"), X, make_target(y, groups), **options)
    np.testing.assert_allclose(target.null_scores, plain.null_scores, atol=1e-12)
    assert target.pvalue == plain.pvalue


def test_undefined_permutations_count_as_good():
    null = np.array([np.nan, 0.2, 0.6, 0.5 + 1e-16])
    assert permutation._pvalue(0.5, null, greater_is_better=True) == 4 / 5
    assert permutation._pvalue(0.5, null, greater_is_better=False) == 4 / 5


@pytest.mark.parametrize(
    "options, message",
    [
        ({"n_permutations": 2.5}, "whole number from 1"),
        ({"scoring": "accuracy"}, "not known"),
        ({"cv": "all"}, "cv='all' is unknown"),
    ],
    ids=str,
)
def test_bad_options(grouped, options, message):
    with pytest.raises(ValueError, match=message):
        permutation_test(RankRLS(), *grouped, **options)


def test_bad_data(grouped):
    X, y, groups = grouped
    with pytest.raises(ValueError, match=r"PairGraph.*pass scores"):
        permutation_test(RankRLS(), X[:2], PairGraph([0], [1]))
    with pytest.raises(TypeError, match="estimator is a RankRLSCV"):
        permutation_test(RankRLSCV(), X, y, groups)
    with pytest.raises(UndefinedMetricError, match="undefined"):
        permutation_test(RankRLS(), X, np.ones(24))
    with pytest.raises(ValueError, match="more than two values"):
        permutation_test(RankRLS(), X, y, scoring="auc")
    with pytest.raises(UndefinedMetricError, match="undefined"):
        permutation_test(RankRLS(), X, -np.abs(y), groups, scoring="map")
