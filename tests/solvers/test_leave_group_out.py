"""Every shortcut equals refitting the estimator fold by fold."""

from __future__ import annotations

import importlib
import itertools

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.model_selection import GroupKFold, KFold, LeaveOneOut, ShuffleSplit

from rankwise import PairGraph, RankRLS, ScoreGraph, make_target
from rankwise.model_selection import (
    cross_val_predict_groups,
    cross_validate_candidates,
    leave_group_out_predict,
    leave_pair_out,
    shortcuts,
)
from rankwise.model_selection.shortcuts import HoldOutUnits
from tests.pairwise import pairwise

M = 30
ALPHAS = np.array([1e-3, 0.1, 5.0])
WAYS = {
    "primal": ({}, 3),
    "primal-wide-folds-small": ({"solver": "primal"}, 25),
    "dual": ({"solver": "dual"}, 40),
    "iterative": ({"solver": "iterative", "tol": 1e-13}, 3),
    "rbf": ({"kernel": "rbf", "gamma": 0.2}, 3),
    "basis": ({"kernel": "rbf", "gamma": 0.2, "basis": [0, 3, 7, 11, 20]}, 3),
}
TIES = ("include", "exclude")
BETAS = (0.0, 0.3, 1.0)


@pytest.fixture
def rng():
    return np.random.default_rng(3)


def items(rng, p):
    y = rng.integers(0, 4, M) + 0.5 * rng.integers(0, 2, M)
    groups = rng.permutation(np.repeat(np.arange(6), [1, 2, 4, 6, 8, 9]))
    return rng.normal(size=(M, p)) + 3, y, groups


def item_weights(kind):
    """None, or weights of very different size, one of them 0 if the kind says so."""
    if kind is None:
        return None
    weights = np.exp(np.random.default_rng(9).normal(size=M))
    weights[4] *= kind != "with a zero"
    return weights


def rows_of(values, rows):
    return None if values is None else values[rows]


def refit(model, X, y, groups, folds, weights=None):
    """The slow truth: a new estimator for each fold; a basis keeps its items."""
    out = np.empty((M, *np.shape(y)[1:], len(ALPHAS)))
    if not isinstance(model.basis, str):  # features of the basis, then a linear model
        X = basis_features(model, X)
        model = clone(model).set_params(kernel="linear", basis="random", solver="primal")
    for U in folds:
        rest = np.setdiff1d(np.arange(M), U)
        labels, weight = rows_of(groups, rest), rows_of(weights, rest)
        path = model.path(X[rest], y[rest], labels, alphas=ALPHAS, sample_weight=weight)
        out[U] = path.predict(X[U])
    return out


def inside(scores, folds):
    """Less the mean of each fold: with weights a model of pairs has no level."""
    out = scores.copy()
    for U in folds:
        out[U] -= out[U].mean(axis=0)
    return out


def basis_features(model, X):
    from rankwise.kernels.basis import basis_root
    from rankwise.kernels.kernel import Kernel

    K = Kernel("rbf", model.gamma).matrix(X, X[model.basis])
    return K @ basis_root(K[model.basis])


RULES = [
    *(("magnitude", ties, unit) for ties in TIES for unit in ("pairs", "groups")),
    *(("sign", "exclude", unit) for unit in ("pairs", "groups")),
    ("relative", "include", "pairs"),
]
WEIGHTS = (None, "positive", "with a zero")
CUT = KFold(3, shuffle=True, random_state=1)


def assert_equals_refitting(rng, case, cv, splitter, *, grouped, outputs=1):
    way, (cost, ties, group_weight), beta, weights = case
    options, p = WAYS[way]
    X, y, groups = items(rng, p)
    groups = groups if grouped else None
    y = y if outputs == 1 else np.column_stack([y, y[::-1]])
    weights = item_weights(weights)
    model = RankRLS(cost=cost, ties=ties, group_weight=group_weight, beta=beta, **options)
    options = {"alphas": ALPHAS, "sample_weight": weights}
    scores = cross_val_predict_groups(model, X, y, groups, cv=cv, **options)
    labels = groups if isinstance(splitter, GroupKFold) else None
    folds = [test for _, test in splitter.split(X, y, labels)]
    expected = refit(model, X, y, groups, folds, weights)
    assert scores.shape == expected.shape
    if beta == 0 and weights is not None:
        scores, expected = inside(scores, folds), inside(expected, folds)
    np.testing.assert_allclose(scores, expected, atol=1e-7)


@pytest.mark.parametrize(
    "way, rule, beta, weights, cv",
    pairwise(WAYS, RULES, BETAS, WEIGHTS, (None, 2, GroupKFold(4), CUT)),
    ids=str,
)
def test_held_out_groups_and_folds_that_cut_them_equal_refitting(rng, way, rule, beta, weights, cv):
    splitter = GroupKFold(cv or 6) if cv in (None, 2) else cv
    assert_equals_refitting(rng, (way, rule, beta, weights), cv, splitter, grouped=True)


@pytest.mark.parametrize(
    "way, rule, beta, weights, cv",
    pairwise(WAYS, RULES[::2], BETAS, WEIGHTS, (2, 7, 15, LeaveOneOut(), KFold(4))),
    ids=str,
)
def test_folds_of_items_of_one_list_equal_refitting(rng, way, rule, beta, weights, cv):
    splitter = KFold(cv, shuffle=True, random_state=0) if isinstance(cv, int) else cv
    assert_equals_refitting(rng, (way, rule, beta, weights), cv, splitter, grouped=False)


@pytest.mark.parametrize(
    "way, beta, cv", pairwise(WAYS, BETAS, (GroupKFold(6), KFold(3), KFold(15))), ids=str
)
def test_several_outputs_equal_refitting(rng, way, beta, cv):
    case = (way, RULES[0], beta, None)
    grouped = isinstance(cv, GroupKFold)
    assert_equals_refitting(rng, case, cv, cv, grouped=grouped, outputs=2)


def test_one_alpha_is_that_of_the_estimator(rng):
    X, y, groups = items(rng, 3)
    many = leave_group_out_predict(RankRLS(), X, y, groups, alphas=ALPHAS)
    one = leave_group_out_predict(RankRLS(ALPHAS[1]), X, y, groups)
    np.testing.assert_allclose(one, many[:, 1], atol=1e-7)


def test_long_lists_with_few_features_are_trained_again_and_single_items_are_not(rng, monkeypatch):
    refitted = []
    refit = shortcuts.Refit._weights_without

    def count(self, removed, *args):
        refitted.append(removed)
        return refit(self, removed, *args)

    monkeypatch.setattr(shortcuts.Refit, "_weights_without", count)
    X, y = rng.normal(size=(400, 3)), rng.normal(size=400)
    cross_val_predict_groups(RankRLS(), X, y, cv=KFold(4), alphas=ALPHAS)
    assert [len(U) for U in refitted] == [100] * 4
    cross_val_predict_groups(RankRLS(), X, y, cv=LeaveOneOut(), alphas=ALPHAS)
    assert len(refitted) == 4


@pytest.mark.parametrize("cv", [2, 3, GroupKFold(4)], ids=str)
@pytest.mark.parametrize("way", WAYS)
def test_folds_of_groups_equal_refitting(rng, way, cv):
    options, p = WAYS[way]
    X, y, groups = items(rng, p)
    model = RankRLS(**options)
    scores = cross_val_predict_groups(model, X, y, groups, cv=cv, alphas=ALPHAS)
    splitter = GroupKFold(cv) if isinstance(cv, int) else cv
    folds = [test for _, test in splitter.split(X, y, groups)]
    np.testing.assert_allclose(scores, refit(model, X, y, groups, folds), atol=1e-7)


@pytest.mark.parametrize("way", WAYS)
def test_folds_that_cut_groups_equal_refitting(rng, way):
    options, p = WAYS[way]
    X, y, groups = items(rng, p)
    model = RankRLS(cost="sign", **options)
    cv = KFold(3, shuffle=True, random_state=1)
    scores = cross_val_predict_groups(model, X, y, groups, cv=cv, alphas=ALPHAS)
    folds = [test for _, test in cv.split(X)]
    np.testing.assert_allclose(scores, refit(model, X, y, groups, folds), atol=1e-7)


def test_sparse_features_and_structured_targets_give_the_same(rng):
    X, y, groups = items(rng, 3)
    plain = leave_group_out_predict(RankRLS(), X, y, groups)
    target = make_target(y, groups)
    np.testing.assert_allclose(leave_group_out_predict(RankRLS(), X, target), plain, atol=1e-10)
    graph = ScoreGraph(y, groups)
    np.testing.assert_allclose(leave_group_out_predict(RankRLS(), X, graph), plain, atol=1e-10)
    sparse = leave_group_out_predict(RankRLS(), sp.csr_matrix(X), y, groups)
    np.testing.assert_allclose(sparse, plain, atol=1e-9)
    K = X @ X.T
    given = leave_group_out_predict(RankRLS(kernel="precomputed"), K, y, groups)
    np.testing.assert_allclose(given, plain, atol=1e-9)


@pytest.mark.parametrize("alpha", [1e-6, 0.01, 1.0, 1e3, 1e9])
@pytest.mark.parametrize("kernel", ["rbf", "indefinite"])
def test_one_alpha_of_a_kernel_takes_an_inverse_and_gives_the_same(rng, alpha, kernel):
    X, groups = rng.normal(size=(40, 3)), np.arange(40) // 8
    y = rng.normal(size=(40, 2))
    K = np.exp(-0.2 * ((X[:, None] - X) ** 2).sum(axis=2))
    if kernel == "indefinite":
        K -= 0.5 * np.outer(X[:, 0], X[:, 0])
    model = RankRLS(alpha, kernel="precomputed")
    one = leave_group_out_predict(model, K, y, groups)
    many = leave_group_out_predict(model, K, y, groups, alphas=[alpha, 1.0])
    np.testing.assert_allclose(one, many[..., 0], rtol=1e-7, atol=1e-9 * np.abs(one).max())


@pytest.mark.parametrize("alpha", [1e-6, 0.01, 1e3])
def test_equation_33_of_groups_of_any_size_takes_one_inverse(rng, alpha, monkeypatch):
    def no_decomposition(*_):
        raise AssertionError("one alpha of groups of similar size needs no decomposition")

    groups = np.sort(rng.integers(0, 25, 120))
    X, y = rng.normal(size=(120, 3)), rng.normal(size=120)
    weights = rng.random(120)
    model = RankRLS(alpha, kernel="rbf", gamma=0.2)
    data = (X, y, groups)
    expected = leave_group_out_predict(model, *data, alphas=[alpha, 1.0], sample_weight=weights)
    units = HoldOutUnits("groups", [np.flatnonzero(groups == k) for k in np.unique(groups)])
    alphas = np.array([alpha, 1.0])
    task = model.hold_out_task(X, y, groups, weights)
    coefficients = task.coefficients_without(units, alphas)[..., :1]
    monkeypatch.setattr("rankwise.solvers.leave_group_out._SpectralModels", no_decomposition)
    scores = leave_group_out_predict(model, *data, sample_weight=weights)
    scale = np.abs(scores).max()
    np.testing.assert_allclose(scores, expected[..., 0], rtol=0, atol=1e-9 * scale)
    task = model.hold_out_task(X, y, groups, weights)
    fast = task.coefficients_without(units, alphas[:1])
    np.testing.assert_allclose(fast, coefficients, rtol=0, atol=1e-7 * np.abs(coefficients).max())


def test_a_fold_that_holds_nearly_everything_keeps_its_digits(rng):
    X, y, groups = items(rng, 3)
    X[groups == 5] *= 1e6
    scores = leave_group_out_predict(RankRLS(), X, y, groups, alphas=ALPHAS)
    U = np.flatnonzero(groups == 5)
    expected = refit(RankRLS(), X, y, groups, [U])
    np.testing.assert_allclose(scores[U], expected[U], rtol=1e-6)


def test_comparisons_that_alone_teach_something_are_left_out_at_any_alpha():
    winner, loser = np.array([0, 0, 2, 4]), np.array([1, 1, 3, 5])
    X, graph = np.eye(16), PairGraph(winner, loser, n_items=16)
    members = [np.array(some) for some in ([0], [0, 1], [2])]
    units = HoldOutUnits("comparisons", members, members_are_edges=True)
    found = RankRLS().hold_out_task(X, graph).coefficients_without(units, np.array([1e-30, 1e-3]))
    assert np.isfinite(found).all()  # whether or not rounding makes a system singular
    for k, some in enumerate(members):
        rest = PairGraph(np.delete(winner, some), np.delete(loser, some), n_items=16)
        expected = RankRLS(1e-3).fit(X, rest).coef_
        np.testing.assert_allclose(found[:, k, 0, 1], expected, atol=1e-9)


def test_shortcuts_are_taken_where_the_docs_say_so(rng, monkeypatch):
    X, y, groups = items(rng, 3)

    def no_refit(*args):
        raise AssertionError("trained again")

    monkeypatch.setattr(shortcuts.Refit, "_weights_without", no_refit)
    for options in ({}, {"kernel": "rbf"}, {"beta": 1}, {"cost": "relative"}, {"beta": 0.5}):
        leave_group_out_predict(RankRLS(**options), X, y, groups)
        if "cost" not in options:
            cross_val_predict_groups(RankRLS(**options), X, y, cv=10)
    with pytest.raises(AssertionError, match="trained again"):
        cross_val_predict_groups(RankRLS(cost="sign"), X, y, cv=5)
    with pytest.raises(AssertionError, match="trained again"):
        leave_group_out_predict(RankRLS(kernel="rbf", beta=0.5), X, y, groups)


@pytest.mark.parametrize("way", [way for way in WAYS if way != "iterative"])
def test_what_teaches_nothing_predicts_ties_and_not_rounding(rng, way):
    options, p = WAYS[way]
    X, _, groups = items(rng, p)
    lone = np.zeros(M)
    lone[5] = 1.0
    model = RankRLS(1.0, **options)
    assert leave_pair_out(model, X, lone).auc == 0.5
    first = [(np.arange(6, M), np.arange(6)), (np.arange(6), np.arange(6, M))]
    held = cross_val_predict_groups(model, X, np.column_stack([lone, rng.normal(size=M)]), cv=first)
    assert not held[:6, 0].any()
    assert held[:6, 1].any()
    only = np.where(groups == 5, rng.normal(size=M), 0.1)
    scores = leave_group_out_predict(model, X, only, groups)
    assert not scores[groups == 5].any()
    assert scores[groups != 5].any()


@settings(max_examples=30, deadline=None)
@given(seed=st.integers(0, 10**6), log_alpha=st.floats(-6, 3))
def test_leave_group_out_equals_refitting_for_any_groups(seed, log_alpha):
    rng = np.random.default_rng(seed)
    X, y, groups = rng.normal(size=(18, 4)), rng.normal(size=18).round(1), rng.integers(0, 5, 18)
    groups[:4] = [0, 0, 1, 1]
    alpha = 10.0**log_alpha
    scores = leave_group_out_predict(RankRLS(alpha), X, y, groups)
    for g in np.unique(groups):
        rest = groups != g
        expected = RankRLS(alpha).fit(X[rest], y[rest], groups[rest]).predict(X[~rest])
        np.testing.assert_allclose(scores[~rest], expected, atol=1e-7)


@pytest.mark.parametrize("beta", [0.0, 0.3, 1.0])
@pytest.mark.parametrize("way", [way for way in WAYS if way != "iterative"])
def test_leave_pair_out_equals_refitting(rng, way, beta):
    options, p = WAYS[way]
    X, y, _ = items(rng, p)
    Y = np.column_stack([y, rng.normal(size=M)])
    model = RankRLS(0.1, beta=beta, **options)
    result = leave_pair_out(model, X, Y)
    Z = X if isinstance(model.basis, str) else basis_features(model, X)
    part = model if isinstance(model.basis, str) else RankRLS(0.1, beta=beta, solver="primal")
    for i, j in itertools.combinations(range(M), 2):
        rest = np.setdiff1d(np.arange(M), [i, j])
        f = part.fit(Z[rest], Y[rest]).predict(Z[[i, j]])
        np.testing.assert_allclose(result.differences[i, j], f[0] - f[1], atol=1e-7)
        np.testing.assert_allclose(result.differences[j, i], f[1] - f[0], atol=1e-7)
        if (i, j) > (2, 20):
            break  # the differences are checked; count the rest from them
    i, j = np.triu_indices(M, 1)
    order = np.sign(Y[i] - Y[j])
    expected = ((order * result.differences[i, j] < 0).sum(0)) / (order != 0).sum(0)
    np.testing.assert_allclose(result.disagreement, expected)
    np.testing.assert_allclose(result.auc, 1 - expected)
    np.testing.assert_array_equal(result.n_pairs, (order != 0).sum(0))


@pytest.mark.parametrize("way", ["primal", "dual", "rbf", "basis"])
@pytest.mark.parametrize("beta", BETAS)
def test_section_3_4_predicts_both_items_of_a_pair(rng, way, beta):
    options, p = WAYS[way]
    X, y, _ = items(rng, p)
    model = RankRLS(0.1, beta=beta, **options)
    result = leave_pair_out(model, X, y)
    pairs = np.array([[0, 1], [5, 2], [29, 7]])
    predictions = result.predictions(pairs)
    for pair, both in zip(pairs, predictions, strict=True):
        if way == "basis":
            features = basis_features(model, X)
            refitted = RankRLS(0.1, beta=beta, solver="primal")
        else:
            features, refitted = X, clone(model)
        rest = np.setdiff1d(np.arange(M), pair)
        expected = refitted.fit(features[rest], y[rest]).predict(features[pair])
        np.testing.assert_allclose(both, expected, rtol=1e-7, atol=1e-8)
        i, j = pair
        np.testing.assert_allclose(both[0] - both[1], result.differences[i, j], atol=1e-8)
    with pytest.raises(ValueError, match="twice"):
        result.predictions([[1, 1]])
    with pytest.raises(ValueError, match="two row numbers"):
        result.predictions([1, 2])


def test_leave_pair_out_says_which_requirement_fails(rng):
    X, y, groups = items(rng, 3)
    weighted = {"sample_weight": np.linspace(0.5, 1, M)}
    with pytest.raises(ValueError, match="sample_weight"):
        cross_validate_candidates(RankRLS(), X, y, cv="leave-pair-out", **weighted)
    with pytest.raises(ValueError, match="ties='exclude'"):
        leave_pair_out(RankRLS(ties="exclude"), X, y)
    with pytest.raises(ValueError, match="6 groups"):
        leave_pair_out(RankRLS(), X, make_target(y, groups))


def test_leave_pair_out_along_alphas_and_in_blocks(rng, monkeypatch):
    X, y, _ = items(rng, 3)
    result = leave_pair_out(RankRLS(), X, y, alphas=ALPHAS)
    assert result.disagreement.shape == (3,)
    single = leave_pair_out(RankRLS(ALPHAS[1]), X, y)
    assert isinstance(single.disagreement, float)
    assert single.disagreement == pytest.approx(result.disagreement[1])
    module = importlib.import_module("rankwise.model_selection.cross_val_predict")
    monkeypatch.setattr(module, "BLOCK_ENTRIES", 4 * M)
    rows = [(r.start, block) for r, block in result.blocks(ALPHAS[1])]
    assert len(rows) > 5
    np.testing.assert_allclose(
        np.concatenate([block for _, block in rows]), single.differences, atol=1e-12
    )
    with pytest.raises(ValueError, match=r"blocks\(alpha\)"):
        _ = result.differences


# -- bad input ------------------------------------------------------------------------------------


def test_a_fold_that_leaves_nothing_to_learn_from_is_refused(rng):
    X, y, _ = items(rng, 3)
    lonely = np.where(np.arange(M) < 10, 0, np.arange(M))
    with pytest.raises(ValueError, match="at least two groups"):
        leave_group_out_predict(RankRLS(), X, y)
    for model in (RankRLS(), RankRLS(kernel="rbf"), RankRLS(solver="iterative")):
        with pytest.raises(ValueError, match="no pair to train on"):
            leave_group_out_predict(model, X, y, lonely)
    with pytest.raises(ValueError, match="no pair to train on"):
        cross_val_predict_groups(RankRLS(), X[:2], y[:2], cv=2)


@pytest.mark.parametrize(
    "cv, message",
    [
        (1, "expected 2 to 6 folds of the 6 groups"),
        (7, "expected 2 to 6 folds"),
        (ShuffleSplit(3, random_state=0), "hold out each of the 30 items once"),
        ([(range(30), range(30))], "fold 0 of cv must train on exactly the items"),
        ([(range(10, 30), range(5))], "trains on 20 and holds out 5 of 30"),
        ([(range(10, 30), range(10))], "hold out each of the 30 items once"),
        (
            [(range(10, 30), range(10)), (range(20), range(20, 31))],
            "fold 1 of cv must train on exactly",
        ),
    ],
)
def test_impossible_folds_are_refused(rng, cv, message):
    X, y, groups = items(rng, 3)
    with pytest.raises(ValueError, match=message):
        cross_val_predict_groups(RankRLS(), X, y, groups, cv=cv)


def test_leave_pair_out_refuses_what_it_cannot_do(rng):
    X, y, groups = items(rng, 3)
    for model, target in [
        (RankRLS(cost="sign"), y),
        (RankRLS(ties="exclude"), y),
        (RankRLS(), make_target(y, groups)),
        (RankRLS(), PairGraph([0], [1], None, None, M)),
    ]:
        with pytest.raises(ValueError, match="no shortcut"):
            leave_pair_out(model, X, target)
    with pytest.raises(ValueError, match="at least 4 items"):
        leave_pair_out(RankRLS(), X[:3], y[:3])
    with (
        pytest.warns(UserWarning, match="no item"),
        pytest.raises(ValueError, match="all scores are"),
    ):
        leave_pair_out(RankRLS(), X, np.ones(M))
