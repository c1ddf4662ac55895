"""Label ranking against explicit dyads, refits and double loops."""

from __future__ import annotations

import itertools
import warnings

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from sklearn.linear_model import Ridge
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.model_selection import GridSearchCV, KFold, cross_val_score

from rankwise import LabelRanker, LabelRankerCV
from rankwise.metrics import spearman
from rankwise.model_selection import cross_validate_candidates
from tests.oracle_tables import OPTIONS, count_from_mean, explicit_dyads, with_missing

N, T = 10, 4


@pytest.fixture
def rng():
    return np.random.default_rng(5)


@pytest.fixture
def data(rng):
    return rng.standard_normal((N, 3)), rng.integers(0, 4, (N, T)).astype(float)


def truth_of(G, Y, alpha, **options):
    """Scores by explicit dyads of instance and label, at the training instances."""
    return G @ explicit_dyads(G, np.eye(T), Y, alpha, **options)


@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("kernel", ["linear", "rbf", "precomputed"])
@pytest.mark.parametrize("gaps", [False, True])
def test_the_model_and_leave_one_out_are_those_of_explicit_dyads(
    data, rng, gaps, kernel, intercept
):
    X, Y = data
    Y = with_missing(Y, rng) if gaps else Y
    G = X @ X.T if kernel == "linear" else rbf_kernel(X, gamma=0.4)
    items = G if kernel == "precomputed" else X
    constant = G.diagonal().mean() if intercept else 0.0
    for options, alpha in zip(OPTIONS, itertools.cycle([1e-3, 1.0]), strict=False):
        model = LabelRanker(
            alpha, kernel=kernel, gamma=0.4, fit_intercept=intercept, tol=1e-12, **options
        )
        found = count_from_mean(model.fit(items, Y).predict(items))
        truth = count_from_mean(truth_of(G + constant, Y, alpha, **options))
        assert np.abs(found - truth).max() < 1e-8 * np.abs(truth).max(), options
        held = model.leave_out(items, Y, alphas=[alpha, 2 * alpha])[:, :, 0]
        for i in range(0, N, 3):
            rest, known = np.delete(np.arange(N), i), ~np.isnan(Y[i])
            part = G[np.ix_(rest, rest)] + constant
            A = explicit_dyads(part, np.eye(T), Y[rest], alpha, **options)
            scores = ((G[i, rest] + constant) @ A)[known]
            found = held[i, known]
            np.testing.assert_allclose(
                found - found.mean(), scores - scores.mean(), atol=1e-8 * np.abs(truth).max()
            )


@pytest.mark.parametrize("options", [{}, {"ties": "exclude"}, {"cost": "sign"}])
@pytest.mark.parametrize("kernel", ["linear", "rbf"])
def test_weights_are_copies_of_instances_in_fits_and_hold_outs(data, rng, kernel, options):
    X, Y = data
    weight = np.array([1, 2, 3, 1, 1, 4, 0, 1, 2, 1])
    for scores in (Y, with_missing(Y, rng)):
        model = LabelRanker(0.1, kernel=kernel, tol=1e-13, **options)
        found = model.fit(X, scores, 3.0 * weight).predict(X)
        copies = np.repeat(np.arange(N), weight)
        truth = model.fit(X[copies], scores[copies]).predict(X)
        np.testing.assert_allclose(count_from_mean(found), count_from_mean(truth), atol=1e-8)
        model.set_params(fit_intercept=False)  # else the constant is that of all instances
        held = model.leave_out(X, scores, cv=None, sample_weight=3.0 * weight)
        rest = copies[copies != 5]  # an instance of weight 4
        known = ~np.isnan(scores[5]) if np.isnan(held[5]).any() else slice(None)
        truth = model.fit(X[rest], scores[rest]).predict(X[[5]])[:, known]
        found = held[[5]][:, known]
        np.testing.assert_allclose(count_from_mean(found), count_from_mean(truth), atol=1e-7)
    search = LabelRankerCV([0.1], kernel=kernel, tol=1e-13, **options).fit(X, Y, weight)
    model.set_params(fit_intercept=True).fit(X, Y, weight)
    np.testing.assert_allclose(search.predict(X), model.predict(X), atol=1e-10)


def test_complete_scores_without_intercept_are_ridge_on_centered_rows(data):
    X, Y = data
    alpha = 0.3
    ridge = Ridge(alpha * N * (T - 1) / 2, fit_intercept=False).fit(X, count_from_mean(Y))
    model = LabelRanker(alpha, fit_intercept=False).fit(X, Y)
    np.testing.assert_allclose(model.coef_, ridge.coef_, atol=1e-12)
    assert model.n_pairs_ == N * T * (T - 1) // 2
    assert model.coef_.shape == (T, 3)


@pytest.mark.parametrize("gaps", [False, True])
@pytest.mark.parametrize("solver", ["auto", "iterative"])
def test_folds_are_refits(data, rng, gaps, solver):
    X, Y = data
    Y = with_missing(Y, rng) if gaps else Y
    model = LabelRanker(0.1, fit_intercept=False, tol=1e-12, solver=solver)
    splits = list(KFold(3).split(X))
    held = model.leave_out(sp.csr_array(X) if solver == "iterative" else X, Y, cv=splits)
    for train, test in splits:
        scores = count_from_mean(model.fit(X[train], Y[train]).predict(X[test]))
        np.testing.assert_allclose(held[test], scores, atol=1e-8)


def test_sparse_iterative_basis_and_dual_solvers_agree(data, rng):
    X, Y = data
    truth = LabelRanker(0.1).fit(X, Y)
    for gaps in (False, True):
        Y = with_missing(Y, rng) if gaps else Y
        truth = LabelRanker(0.1, tol=1e-12).fit(X, Y).predict(X)
        for solver, items in itertools.product(
            ("primal", "dual", "iterative"), (X, sp.csr_array(X))
        ):
            found = LabelRanker(0.1, solver=solver, tol=1e-12).fit(items, Y).predict(items)
            np.testing.assert_allclose(count_from_mean(found), count_from_mean(truth), atol=1e-8)
        full = LabelRanker(0.1, kernel="rbf", tol=1e-12, fit_intercept=False).fit(X, Y).predict(X)
        basis = LabelRanker(0.1, kernel="rbf", n_basis=N, tol=1e-12, fit_intercept=False)
        np.testing.assert_allclose(basis.fit(X, Y).predict(X), full, atol=1e-6)
    some = LabelRanker(kernel="rbf", n_basis=4, random_state=0).fit(X, Y)
    assert some.dual_coef_.shape == (4, T)
    assert some.leave_out(X, Y).shape == (N, T)


def test_several_thousand_labels_take_the_memory_of_the_table():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((40, 3))
    Y = X @ rng.standard_normal((3, 3000))
    model = LabelRanker(1e-6).fit(X, Y)
    assert model.score(X, Y) > 0.99
    Y[rng.random(Y.shape) < 0.5] = np.nan
    assert LabelRanker(1e-6, max_iter=100).fit(X, Y).score(X, Y) > 0.99


def test_ranks_are_scores_from_the_other_end(data, rng):
    X = data[0]
    ranks = np.stack([rng.permutation(T) + 1.0 for _ in range(N)])
    one = LabelRanker(values="ranks").fit(X, ranks)
    other = LabelRanker().fit(X, -ranks)
    np.testing.assert_array_equal(one.predict(X), other.predict(X))
    assert one.score(X, ranks) == other.score(X, -ranks)
    gaps = ranks.copy()
    gaps[ranks == T] = np.nan
    assert np.isfinite(LabelRanker(values="ranks").fit(X, gaps).predict(X)).all()


def test_classes_are_compared_with_the_others_and_these_not_with_each_other(data, rng):
    X = data[0]
    y = np.array(list("bacbacabcc"))
    model = LabelRanker(0.1, tol=1e-12).fit(X, y)
    one_hot = (y[:, None] == np.array(list("abc"))).astype(float)
    sets = LabelRanker(0.1, ties="exclude", tol=1e-12).fit(X, one_hot)
    np.testing.assert_array_equal(model.predict(X), sets.predict(X))
    assert model.n_pairs_ == N * 2
    assert model.labels_.tolist() == ["a", "b", "c"]
    assert set(model.predict_order(X, k=1).ravel()) <= set("abc")
    assert model.score(X, y, "hit@3") == 1.0
    shown = model.predict_order(X)[:, 0] == y
    assert model.score(X, y, "hit@1") == pytest.approx(shown.mean())


def test_sets_of_labels_may_be_sparse(data):
    X, Y = data
    sets = (Y > 1).astype(float)
    one = LabelRanker(ties="exclude").fit(X, sets).predict(X)
    other = LabelRanker(ties="exclude").fit(X, sp.csr_array(sets)).predict(X)
    np.testing.assert_array_equal(one, other)


def test_names_of_labels_come_from_the_columns(data):
    pd = pytest.importorskip("pandas")
    X, Y = data
    frame = pd.DataFrame(Y, columns=["w", "x", "y", "z"])
    model = LabelRanker(0.1).fit(X, frame)
    assert model.labels_.tolist() == ["w", "x", "y", "z"]
    turned = frame[["z", "y", "x", "w"]]
    assert model.score(X, turned) == model.score(X, frame) == model.score(X, Y)
    with pytest.raises(ValueError, match="the model was trained with 'w', 'x', 'y', 'z'"):
        model.score(X, frame.rename(columns={"w": "v"}))
    best = model.predict_order(X)[:, 0]
    np.testing.assert_array_equal(best, model.labels_[model.predict(X).argmax(axis=1)])
    assert (model.rank(X).min(axis=1) == 1).all()


def test_the_search_chooses_by_leave_one_instance_out(data):
    X, Y = data
    alphas = np.logspace(-6, 3, 10)
    search = LabelRankerCV(alphas, kernel="rbf", gamma=[0.1, 1.0], scoring="spearman").fit(X, Y)
    means = []
    for gamma in (0.1, 1.0):
        held = LabelRanker(kernel="rbf", gamma=gamma).leave_out(X, Y, alphas=alphas)
        means.append([
            np.nanmean(
                spearman(Y.ravel(), held[:, :, k].ravel(), np.repeat(np.arange(N), T),
                         per_group=True, undefined="nan")
            )
            for k in range(len(alphas))
        ])  # fmt: skip
    np.testing.assert_allclose(search.cv_results_["mean_score"], means)
    assert search.best_score_ == pytest.approx(np.max(means))
    single = LabelRanker(search.alpha_, kernel="rbf", gamma=search.best_params_["gamma"])
    np.testing.assert_array_equal(search.predict(X), single.fit(X, Y).predict(X))
    assert search.cv_results_["cv"] == "leave-row-out"
    assert search.labels_.tolist() == [0, 1, 2, 3]


def test_large_incomplete_data_are_judged_by_folds(data, rng, monkeypatch):
    X, Y = data
    monkeypatch.setattr("rankwise.dyadic.cross_validation.FEW_ENTRIES", 1)
    found = cross_validate_candidates(
        LabelRanker(tol=1e-12), X, with_missing(Y, rng), scoring="tau"
    )
    assert found.scheme == "folds of rows"
    assert found.refits
    assert found.n_folds == 5


def test_scikit_learn_searches_and_splitters_work(data):
    X, Y = data
    found = GridSearchCV(LabelRanker(), {"alpha": [0.01, 1.0]}, cv=3).fit(X, Y)
    assert np.isfinite(found.best_score_)
    assert len(cross_val_score(LabelRanker(), X, Y, cv=3)) == 3
    assert LabelRankerCV([0.1], cv=KFold(3)).fit(X, Y).cv_results_["cv"] == "folds of rows"


def test_far_features_and_scores_keep_their_digits(data):
    X, Y = data
    truth = count_from_mean(LabelRanker(0.01, fit_intercept=False).fit(X, Y).predict(X))
    for scale, offset in ((1e12, 5e3), (1.0, 1e6)):
        model = LabelRanker(0.01 * scale**2, fit_intercept=False)
        model.fit(scale * X, offset + scale * Y)
        found = count_from_mean(model.predict(scale * X)) / scale
        np.testing.assert_allclose(found, truth, atol=1e-8)


@given(
    arrays(float, (6, 3), elements=st.integers(0, 3)),
    arrays(float, (6, 3), elements=st.integers(0, 3)),
)
def test_a_shift_of_the_scores_of_an_instance_changes_nothing(Y, shifts):
    if not (Y[:, :1] != Y).any():
        return
    X = np.arange(6.0)[:, None]
    one = LabelRanker(0.1).fit(X, Y).predict(X)
    other = LabelRanker(0.1).fit(X, Y + shifts[:, :1]).predict(X)
    np.testing.assert_allclose(count_from_mean(one), count_from_mean(other), atol=1e-10)


BAD = [
    (lambda X, Y: (X, Y[:, :1]), {}, "one label only; expected at least two"),
    (lambda X, Y: (X, Y[:, 0] + 0.5), {}, "Unknown label type: continuous"),
    (lambda X, Y: (X, np.where(np.arange(N)[:, None] == 3, np.nan, Y)), {}, "no score for 1 inst"),
    (lambda X, Y: (X, np.where(np.arange(T) == 1, np.nan, Y)), {}, "no score for 1 label"),
    (lambda X, Y: (X, Y[:-1]), {}, "Y has 9 rows but X has 10"),
    (lambda X, Y: (X, None), {}, "requires y to be passed"),
    (lambda X, Y: (X, np.full((N, T), 2.0)), {"ties": "exclude"}, "nothing to rank"),
    (lambda X, Y: (X, np.zeros(N, dtype=int)), {}, "at least two classes"),
    (lambda X, Y: (X, np.tile([1.0, 2, 4, 5], (N, 1))), {"values": "ranks"}, "row 0 have gaps or"),
    (
        lambda X, Y: (X, np.tile([1.0, 2, 2, 4], (N, 1))),
        {"values": "ranks"},
        "gaps or duplicates: 1, 2, 2, 4",
    ),
    (lambda X, Y: (X, np.tile([0.0, 1, 2, 3], (N, 1))), {"values": "ranks"}, "expected 1 .best"),
    (lambda X, Y: (X, Y), {"values": "grades"}, "values='grades' is unknown"),
    (lambda X, Y: (X, Y), {"group_weight": "group"}, "group_weight='group' is unknown"),
    (lambda X, Y: (X, Y.astype(complex)), {}, "Complex data"),
    (lambda X, Y: (X, Y[:, :, None]), {}, "Y has shape"),
    (lambda X, Y: (X, np.where(Y > 2, np.inf, Y)), {}, "infinity"),
    (lambda X, Y: (X, [["a"], ["b", "c"]] * 5), {}, "MultiLabelBinarizer"),
    (lambda X, Y: (X, [{1}, {2}] * 5), {}, "Unknown label type"),
]


@pytest.mark.parametrize(("change", "options", "message"), BAD)
def test_bad_input_is_refused_in_plain_words(data, change, options, message):
    with pytest.raises(ValueError, match=message):
        LabelRanker(**options).fit(*change(*data))


def test_a_search_on_far_features_finds_what_it_finds_without_the_offset(rng):
    X = rng.standard_normal((60, 3))
    Y = X @ rng.standard_normal((3, T)) + 0.1 * rng.standard_normal((60, T))
    near, far = LabelRankerCV().fit(X, Y), LabelRankerCV().fit(X + 1e6, Y)
    assert near.best_score_ > 0.9
    assert far.best_score_ == pytest.approx(near.best_score_, abs=0.02)
    with pytest.raises(ValueError, match="overflow; scale the features"):
        LabelRankerCV().fit(X * 1e160, Y)


def test_bad_cut_offs_classes_weights_and_ways_to_hold_out_are_refused(data):
    X, Y = data
    model = LabelRanker().fit(X, Y)
    for call, message in (
        (lambda: model.predict_order(X, 0), "k=0; expected"),
        (lambda: model.leave_out(X, Y, cv="loo"), "cv='loo' is unknown"),
        (
            lambda: LabelRanker().fit(X, list("ababababab")).score(X, list("ababababac")),
            "the class 'c' is unknown to the model",
        ),
        (
            lambda: LabelRanker(group_weight="groups").fit(X, Y, np.arange(N)),
            "sample_weight needs group_weight='pairs'",
        ),
        (lambda: LabelRanker().fit(X, Y, np.zeros(N)), "all sample weights are zero"),
    ):
        with pytest.raises(ValueError, match=message):
            call()


@pytest.mark.parametrize("classes", [(False, True), (10.0, 2.0), (10, 2)])
def test_classes_of_any_kind_are_known_again_at_score(data, classes):
    y = np.array(classes)[np.arange(10) % 2]
    model = LabelRanker(1e-6, kernel="rbf").fit(data[0], y)
    assert model.score(data[0], y, "hit@1") == 1


def test_a_frame_and_labels_in_different_orders_are_refused():
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.normal(size=(20, 3)), columns=list("abc"))
    Y = pd.DataFrame(rng.normal(size=(20, 4)))
    model = LabelRanker().fit(X, Y)
    with pytest.raises(ValueError, match="X and y"):
        LabelRanker().fit(X, Y[::-1])
    with pytest.raises(ValueError, match="X and y"):
        model.score(X, Y[::-1])


def test_scores_that_look_like_ranks_are_named():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(20, 3))
    ranks = 1 + np.argsort(rng.normal(size=(20, 4)), axis=1)
    with pytest.warns(UserWarning, match="values='ranks'"):
        LabelRanker().fit(X, ranks)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        LabelRanker(values="ranks").fit(X, ranks)
        LabelRanker().fit(X, ranks - 1)
