"""CoRankRLS against the stacked system of the paper, its limits, and slow loops of refits."""

from __future__ import annotations

import itertools
import tracemalloc

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.metrics.pairwise import linear_kernel, rbf_kernel
from sklearn.model_selection import GridSearchCV, GroupKFold

from rankwise import CoRankRLS, CoRankRLSCV, PairGraph, RankRLS, View, make_target
from rankwise.kernels.solver_input import LazyFeatures
from rankwise.persistence import load, save
from rankwise.rankers.linear_models import linear_weights
from rankwise.runtime import memory
from tests import oracle, oracle_semi

M, P, N = 40, 6, 7
ALPHA, NU = 0.02, 0.7
BASES = ([3, 11, 25, 30], [0, 7, 14, 28, 39], [2, 9, 33])


@pytest.fixture
def data():
    """Rows in any order; groups of scored rows, of unscored rows, of both, and of one row."""
    rng = np.random.default_rng(7)
    X = rng.normal(size=(M, P))
    y = rng.integers(0, 4, M) + 0.5 * rng.integers(0, 2, M)
    groups = rng.permutation(np.repeat(np.arange(8), [1, 2, 3, 5, 6, 6, 8, 9]))
    y[np.isin(groups, [0, 5, 7])] = np.nan
    y[np.flatnonzero(groups == 6)[:3]] = np.nan
    return X, y, groups, rng.normal(size=(N, P))


def rbf(A, B):
    return rbf_kernel(A, B, gamma=0.3)


def rbf_views(bases=BASES):
    return [View(kernel="rbf", gamma=0.3, basis=basis) for basis in bases]


# name -> (views, and for each the columns, kernel and basis that the oracle uses)
VIEWS = {
    "two bases": (rbf_views(BASES[:2]), [(slice(None), rbf, basis) for basis in BASES[:2]]),
    "three bases": (rbf_views(), [(slice(None), rbf, basis) for basis in BASES]),
    "one view": (rbf_views(BASES[:1]), [(slice(None), rbf, BASES[0])]),
    "columns and kernels": (
        [
            View([0, 1, 4], kernel="rbf", gamma=0.3, basis=BASES[1]),
            View(slice(1, 3), basis=[8, 20]),
            View(np.arange(P) > 2, kernel="polynomial", degree=2, gamma=0.2, basis=BASES[0]),
        ],
        [
            ([0, 1, 4], rbf, BASES[1]),
            (slice(1, 3), linear_kernel, [8, 20]),
            (slice(3, P), lambda A, B: (0.2 * A @ B.T + 1) ** 2, BASES[0]),
        ],
    ),
}
OPTIONS = list(
    itertools.product(
        ("magnitude", "sign", "relative"), ("include", "exclude"), ("pairs", "groups")
    )
)


def slow_predictions(truth, X, y, groups, X_new, alpha=ALPHA, nu=NU, options=()):
    """Scores of each view by the stacked system over explicit pairs."""
    cost, ties, group_weight = options or ("magnitude", "include", "pairs")
    scored = oracle_semi.scored_edges(y, groups, cost, ties, group_weight)
    agreement = oracle_semi.agreement_edges(y, groups, group_weight)
    columns = [kernel(X[:, c], X[b][:, c]) for c, kernel, b in truth]
    blocks = [kernel(X[b][:, c], X[b][:, c]) for c, kernel, b in truth]
    coef = oracle_semi.co_rank_rls(scored, agreement, columns, blocks, alpha, nu)
    new = [kernel(X_new[:, c], X[b][:, c]) for c, kernel, b in truth]
    return np.column_stack([K @ a for K, a in zip(new, coef, strict=True)])


@pytest.mark.parametrize(
    ("name", "options", "grouped"),
    [
        (name, options, (i + j) % 2 == 0)
        for i, name in enumerate(VIEWS)
        for j, options in enumerate(OPTIONS)
    ],
)
def test_equation_18_predictions_equal_the_stacked_system(data, name, options, grouped):
    X, y, groups, X_new = data
    groups = groups if grouped else None
    views, truth = VIEWS[name]
    cost, ties, group_weight = options
    model = CoRankRLS(ALPHA, nu=NU, views=views, cost=cost, ties=ties, group_weight=group_weight)
    model.fit(X, y, groups)
    expected = slow_predictions(truth, X, y, groups, X_new, options=options)
    np.testing.assert_allclose(model.predict_views(X_new), expected, atol=1e-8)
    np.testing.assert_allclose(model.predict(X_new), expected.mean(axis=1), atol=1e-8)


@pytest.mark.parametrize("name", VIEWS)
def test_equation_18_without_unscored_rows_agrees_on_the_scored_ones(data, name):
    X, _, groups, X_new = data
    y = np.random.default_rng(1).normal(size=M)
    views, truth = VIEWS[name]
    model = CoRankRLS(ALPHA, nu=NU, views=views).fit(X, y, groups)
    expected = slow_predictions(truth, X, y, groups, X_new)
    np.testing.assert_allclose(model.predict_views(X_new), expected, atol=1e-8)
    assert model.n_unscored_ == 0


def test_equation_17_solution_minimises_the_objective(data):
    X, y, groups, _ = data
    views = [View(slice(0, 3)), View(slice(3, P)), View([0, 5])]
    columns = [X[:, :3], X[:, 3:], X[:, [0, 5]]]
    model = CoRankRLS(ALPHA, nu=NU, views=views, group_weight="groups").fit(X, y, groups)
    scored = oracle_semi.scored_edges(y, groups, group_weight="groups")
    agreement = oracle_semi.agreement_edges(y, groups, "groups")

    def J(coef):
        F = np.column_stack([R @ w for R, w in zip(columns, coef, strict=True)])
        return oracle_semi.objective(scored, agreement, F, [w @ w for w in coef], ALPHA, NU)

    best = J(model.view_coef_)
    rng = np.random.default_rng(0)
    for _ in range(30):
        assert J([w + 0.01 * rng.normal(size=len(w)) for w in model.view_coef_]) > best


def test_section_3_4_linear_view_with_a_large_basis_is_the_linear_view(data):
    X, y, groups, X_new = data
    plain = CoRankRLS(ALPHA, views=[View([0, 1, 2]), View([3, 4, 5])]).fit(X, y, groups)
    basis = CoRankRLS(
        ALPHA, views=[View([0, 1, 2], n_basis=20), View([3, 4, 5], n_basis=20)], random_state=0
    ).fit(X, y, groups)
    np.testing.assert_allclose(basis.predict_views(X_new), plain.predict_views(X_new), atol=1e-9)
    assert [len(coef) for coef in plain.view_coef_] == [3, 3]
    assert plain.basis_indices_ == [None, None]


# -- limits -----------------------------------------------------------------------------------


def test_nu_zero_gives_independent_sparse_rank_rls(data):
    X, y, groups, X_new = data
    scored = np.flatnonzero(~np.isnan(y))
    bases = [scored[[0, 3, 8]], scored[[1, 4, 6, 10]]]
    model = CoRankRLS(ALPHA, nu=0, views=rbf_views(bases)).fit(X, y, groups)
    for k, basis in enumerate(bases):
        alone = RankRLS(ALPHA, kernel="rbf", gamma=0.3, basis=np.searchsorted(scored, basis))
        alone.fit(X[scored], y[scored], groups[scored])
        expected = alone.predict(X_new)
        np.testing.assert_allclose(model.predict_views(X_new)[:, k], expected, atol=1e-9)


def test_large_nu_gives_views_that_agree_on_the_unscored_pairs(data):
    X, y, groups, _ = data
    unscored = np.isnan(y)

    def disagreement(nu):
        model = CoRankRLS(ALPHA, nu=nu, views=rbf_views()).fit(X, y, groups)
        F = model.predict_views(X)
        edges = oracle_semi.agreement_edges(y, groups)
        gaps = np.array([F[i] - F[j] for i, j, _ in edges])
        assert unscored[[i for i, *_ in edges]].all()
        return np.mean((gaps[:, :, None] - gaps[:, None, :]) ** 2)

    found = [disagreement(nu) for nu in (0.0, 0.1, 1.0, 10.0, 1e3, 1e6)]
    assert (np.diff(found) < 0).all()
    assert found[-1] < 1e-8 * found[0]


def test_views_that_see_the_same_are_rank_rls_for_every_nu(data):
    X, y, groups, X_new = data
    scored = ~np.isnan(y)
    expected = RankRLS(ALPHA).fit(X[scored], y[scored], groups[scored]).predict(X_new)
    for nu in (0.0, 1.0, 1e4):
        model = CoRankRLS(ALPHA, nu=nu, views=[View(), View()]).fit(X, y, groups)
        np.testing.assert_allclose(model.predict(X_new), expected, atol=1e-9)
    with pytest.warns(UserWarning, match="are the same view"):
        model = CoRankRLS(ALPHA, views=2).fit(X, y, groups)
    np.testing.assert_allclose(model.predict(X_new), expected, atol=1e-9)


# -- views --------------------------------------------------------------------------------------


def test_a_number_of_views_draws_disjoint_bases_of_all_rows(data):
    X, y, groups, X_new = data
    model = CoRankRLS(ALPHA, views=3, n_basis=8, kernel="rbf", gamma=0.3, random_state=0)
    model.fit(X, y, groups)
    bases = model.basis_indices_
    assert [len(basis) for basis in bases] == [8, 8, 8]
    assert len(set(np.concatenate(bases))) == 24
    given_views = CoRankRLS(ALPHA, views=rbf_views(bases)).fit(X, y, groups)
    np.testing.assert_allclose(
        model.predict_views(X_new), given_views.predict_views(X_new), atol=1e-12
    )
    again = clone(model).fit(X, y, groups)
    np.testing.assert_array_equal(again.predict(X_new), model.predict(X_new))


def test_random_bases_take_fewer_items_where_items_run_short(data):
    X, y, groups, _ = data
    model = CoRankRLS(views=3, n_basis=100, kernel="rbf").fit(X, y, groups)
    assert [len(basis) for basis in model.basis_indices_] == [13, 13, 13]
    one = CoRankRLS(views=[View(kernel="rbf")], n_basis=100).fit(X, y, groups)
    assert len(one.basis_indices_[0]) == M


def test_precomputed_kernels_equal_the_named_one(data):
    X, y, groups, X_new = data
    named = CoRankRLS(ALPHA, views=rbf_views(BASES[:2])).fit(X, y, groups).predict_views(X_new)
    views = [View(kernel="precomputed", basis=basis) for basis in BASES[:2]]
    model = CoRankRLS(ALPHA, views=views).fit(rbf(X, X), y, groups)
    np.testing.assert_allclose(model.predict_views(rbf(X_new, X)), named, atol=1e-10)
    both = [
        View(slice(0, M), kernel="precomputed", basis=BASES[0]),
        View(slice(M, None), basis=BASES[1]),
    ]
    joined = CoRankRLS(ALPHA, views=both).fit(np.hstack([rbf(X, X), X]), y, groups)
    assert joined.predict_views(np.hstack([rbf(X_new, X), X_new])).shape == (N, 2)
    seeded = {"views": 2, "n_basis": 5, "random_state": 0}
    direct = CoRankRLS(kernel="rbf", gamma=0.3, **seeded).fit(X, y, groups)
    drawn = CoRankRLS(kernel="precomputed", **seeded).fit(rbf(X, X), y, groups)
    np.testing.assert_allclose(drawn.predict(rbf(X_new, X)), direct.predict(X_new), atol=1e-10)


def test_columns_by_name_number_mask_and_slice_are_the_same_view(data):
    X, y, groups, X_new = data
    names = [f"c{k}" for k in range(P)]
    frame, new = pd.DataFrame(X, columns=names), pd.DataFrame(X_new, columns=names)
    mask = np.arange(P) < 2
    found = [
        CoRankRLS(ALPHA, views=[View(columns), View([3])]).fit(frame, y, groups).predict(new)
        for columns in (["c0", "c1"], [0, 1], np.array([0, 1]), mask, slice(2), list(mask))
    ]
    for other in found[1:]:
        np.testing.assert_array_equal(other, found[0])


def test_a_view_is_cloned_with_its_learner():
    model = CoRankRLS(views=[View([0], kernel="rbf", gamma=2.0), View([1])])
    copy = clone(model)
    assert copy.views[0] is not model.views[0]
    assert copy.views[0].get_params() == model.views[0].get_params()
    assert repr(copy.views[1]) == repr(model.views[1])


# -- forms of the same data --------------------------------------------------------------------


SPARSE_VIEWS = [
    rbf_views(),
    [View([0, 1, 2]), View([2, 3, 4, 5])],
    [View([0, 1, 2], basis=[3, 9]), View(kernel="polynomial", n_basis=4)],
    2,
]


@pytest.mark.parametrize("views", SPARSE_VIEWS, ids=["rbf", "columns", "mixed", "random"])
@pytest.mark.parametrize("convert", [sp.csr_matrix, sp.csc_array])
def test_sparse_equals_dense(data, views, convert):
    X, y, groups, X_new = data
    X = np.where(np.abs(X) > 0.5, X, 0)
    model = CoRankRLS(ALPHA, views=views, n_basis=5, random_state=0)
    dense = model.fit(X, y, groups).predict_views(X_new)
    sparse = model.fit(convert(X), y, groups).predict_views(convert(X_new))
    np.testing.assert_allclose(sparse, dense, atol=1e-9)


def test_offset_of_the_features_of_a_linear_view_does_not_matter(data):
    X, y, groups, _ = data
    views = [View([0, 1, 2]), View([3, 4, 5])]
    plain = CoRankRLS(ALPHA, views=views).fit(X, y, groups)
    moved = CoRankRLS(ALPHA, views=views).fit(X + 1e6, y, groups)
    for one, other in zip(plain.view_coef_, moved.view_coef_, strict=True):
        np.testing.assert_allclose(one, other, atol=1e-8)


def test_alpha_and_nu_mean_the_same_for_any_amount_of_data(data):
    X, y, groups, X_new = data
    once = CoRankRLS(ALPHA, views=rbf_views()).fit(X, y, groups)
    twice = CoRankRLS(ALPHA, views=rbf_views())
    twice.fit(np.vstack([X, X]), np.r_[y, y], np.r_[groups, groups + 100])
    np.testing.assert_allclose(twice.predict(X_new), once.predict(X_new), atol=1e-9)


# -- section 5: the path ------------------------------------------------------------------------


@pytest.mark.parametrize("name", VIEWS)
def test_section_5_path_equals_one_fit_per_alpha_and_nu(data, name):
    X, y, groups, X_new = data
    alphas, nus = [3.0, 1e-4, 0.05], [0.0, 10.0, 0.3]
    model = CoRankRLS(views=VIEWS[name][0])
    path = model.path(X, y, groups, alphas=alphas, nus=nus)
    predicted = path.predict(X_new)
    assert predicted.shape == (N, 3, 3)
    assert len(path) == 9
    for (i, nu), (j, alpha) in itertools.product(enumerate(nus), enumerate(alphas)):
        alone = model.set_params(alpha=alpha, nu=nu).fit(X, y, groups)
        np.testing.assert_allclose(predicted[:, i, j], alone.predict(X_new), atol=1e-7)
        one = path.model(j, i)
        np.testing.assert_allclose(one.predict_views(X_new), alone.predict_views(X_new), atol=1e-7)
        assert (one.alpha, one.nu) == (alpha, nu)


def test_path_without_nus_takes_that_of_the_estimator_and_leaves_it_alone(data):
    X, y, groups, X_new = data
    model = CoRankRLS(0.5, nu=2.0, views=rbf_views())
    path = model.path(X, y, groups, alphas=[0.1, 1.0])
    assert path.predict(X_new).shape == (N, 2)
    assert path.model(1).nu == 2.0
    assert model.alpha == 0.5
    with pytest.raises(NotFittedError):
        model.predict(X)


def test_nu_path_builds_the_blocks_once(data, monkeypatch):
    X, y, groups, _ = data
    calls = []
    original = LazyFeatures.__getitem__
    monkeypatch.setattr(
        LazyFeatures, "__getitem__", lambda self, part: calls.append(1) or original(self, part)
    )
    model = CoRankRLS(views=rbf_views())
    model.path(X, y, groups, alphas=[0.1, 1.0], nus=[1.0])
    once = len(calls)
    model.path(X, y, groups, alphas=[0.1, 1.0], nus=[0.1, 1.0, 10.0])
    assert len(calls) == 2 * once


# -- on new data --------------------------------------------------------------------------------


def test_view_disagreement_is_the_share_of_pairs_in_opposite_order(data):
    X, y, groups, _ = data
    model = CoRankRLS(ALPHA, nu=0, views=rbf_views()).fit(X, y, groups)
    F = model.predict_views(X)
    found = model.view_disagreement(X, groups)
    for v, u in itertools.product(range(3), range(3)):
        per_group = []
        for g in np.unique(groups):
            pairs = list(itertools.combinations(np.flatnonzero(groups == g), 2))
            if pairs:
                opposite = [(F[i, v] - F[j, v]) * (F[i, u] - F[j, u]) < 0 for i, j in pairs]
                per_group.append(np.mean(opposite))
        assert found[v, u] == pytest.approx(np.mean(per_group))
    agreeing = CoRankRLS(ALPHA, nu=1e5, views=rbf_views()).fit(X, y, groups)
    assert agreeing.view_disagreement(X, groups).sum() < found.sum()
    single = CoRankRLS(views=rbf_views(BASES[:1])).fit(X, y, groups)
    np.testing.assert_array_equal(single.view_disagreement(X), [[0.0]])


def test_ranks_and_score_are_those_of_the_mean(data):
    X, y, groups, _ = data
    model = CoRankRLS(ALPHA, views=rbf_views()).fit(X, y, groups)
    f = model.predict_views(X).mean(axis=1)
    np.testing.assert_array_equal(model.rank(X, groups), oracle.ranks(f, groups))
    per_group = []
    for g in np.unique(groups):
        edges = oracle_semi.scored_edges(np.where(groups == g, y, np.nan), groups, ties="exclude")
        if edges:
            per_group.append(np.mean([f[i] > f[j] for i, j, *_ in edges]))
    assert model.score(X, y, groups) == pytest.approx(np.mean(per_group))
    weight = np.where(np.isnan(y), 5.0, 1.0)
    assert model.score(X, y, groups, weight) == pytest.approx(np.mean(per_group))


def test_search_of_scikit_learn_keeps_unscored_rows_and_groups(data):
    X, y, groups, _ = data
    model = CoRankRLS(views=[View([0, 1, 2]), View([3, 4, 5])])
    search = GridSearchCV(model, {"nu": [0.0, 1.0]}, cv=GroupKFold(2))
    search.fit(X, make_target(y, groups), groups=groups)
    assert 0 <= search.best_score_ <= 1


def test_memory_does_not_grow_with_a_kernel_matrix_of_the_unscored_rows():
    rng = np.random.default_rng(0)
    m, b = 120_000, 60
    X, y = rng.normal(size=(m, 3)), np.full(m, np.nan)
    y[:300] = rng.normal(size=300)
    groups = np.arange(m) // 20
    model = CoRankRLS(views=2, n_basis=b, kernel="rbf", random_state=0)
    tracemalloc.start()
    model.fit(X, y, groups)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 8 * m * b  # one of the two kernel matrices, unscored rows × basis
    assert model.n_unscored_ == m - 300


# -- bad input ----------------------------------------------------------------------------------


def refuse(message, X, y, groups=None, **options):
    with pytest.raises(ValueError, match=message):
        CoRankRLS(**{"views": rbf_views(), **options}).fit(X, y, groups)


def test_bad_data_are_refused(data, monkeypatch):
    X, y, groups, _ = data
    refuse("none of the 40 rows has a score", X, np.full(M, np.nan), groups)
    three = np.where(np.arange(M) < 3, y, np.nan)
    refuse("nothing to rank", X, three, np.r_[0, 1, 2, np.full(M - 3, 3)])
    for columns in (np.zeros(P, dtype=bool), slice(3, 3)):
        refuse("no columns", X, y, groups, views=[View(), View(columns)])
    frame = pd.DataFrame(X, columns=list("abcdef"))
    refuse("'g', which X does not have", frame, y, groups, views=[View(["a", "g"])])
    refuse("dense square", sp.csr_matrix(rbf(X, X)), y, groups, views=[View(kernel="precomputed")])
    refuse("y has 39 entries but X has 40 rows", X, y[:-1], groups[:-1])
    refuse("infinity", X, np.where(np.isnan(y), np.inf, y), groups)
    two = np.column_stack([y, y])
    refuse("several outputs need cost='magnitude'", X, two, groups, cost="sign")
    two[np.flatnonzero(~np.isnan(y))[0], 1] = np.nan
    refuse("in some columns only", X, two, groups)
    refuse("PairGraph without groups", X, PairGraph([0], [1], n_items=M))
    monkeypatch.setattr(memory, "available_bytes", lambda: 500)
    refuse("the stacked system of all views of 12 × 12", X, y, groups)


def test_unscored_rows_without_pairs_warn_and_scored_ones_are_agreed_on(data):
    X, _, _, X_new = data
    y = np.r_[np.arange(M - 3.0), np.full(3, np.nan)]
    groups = np.r_[np.arange(M - 3) // 10, 10, 11, 12]
    with pytest.warns(UserWarning, match="no two of the 3 unscored rows are in one group"):
        model = CoRankRLS(ALPHA, views=rbf_views([[0, 5], [7, 8]])).fit(X, y, groups)
    scored = CoRankRLS(ALPHA, views=rbf_views([[0, 5], [7, 8]]))
    scored.fit(X[: M - 3], y[: M - 3], groups[: M - 3])
    np.testing.assert_allclose(model.predict(X_new), scored.predict(X_new), atol=1e-12)


@pytest.mark.parametrize("value", [0.0, 3.7])
@pytest.mark.parametrize("options", [{}, {"n_basis": 4}, {"kernel": "rbf", "n_basis": 4}])
def test_constant_columns_predict_ties(data, value, options):
    X, y, groups, X_new = data
    X, X_new = X.copy(), X_new.copy()
    X[:, 0] = X_new[:, 0] = value
    model = CoRankRLS(ALPHA, views=[View([1, 2]), View([0], **options)]).fit(X, y, groups)
    np.testing.assert_allclose(np.ptp(model.predict_views(X_new)[:, 1]), 0, atol=1e-12)
    assert np.isnan(model.view_disagreement(X_new)[0, 1])


def test_duplicate_items_do_not_matter(data):
    X, y, groups, X_new = data
    X = X.copy()
    X[11] = X[3]
    merged = [[3, 25, 30], BASES[1]]
    one = CoRankRLS(ALPHA, views=rbf_views(merged)).fit(X, y, groups).predict(X_new)
    two = CoRankRLS(ALPHA, views=rbf_views(BASES[:2])).fit(X, y, groups).predict(X_new)
    np.testing.assert_allclose(one, two, atol=1e-6)
    same = np.repeat(X[:1], M, axis=0)
    model = CoRankRLS(views=2, kernel="rbf", n_basis=5).fit(same, y, groups)
    assert np.isfinite(model.predict(X)).all()


@pytest.mark.parametrize(
    "options, message",
    [
        ({"alpha": 0.0}, "positive"),
        ({"nu": -1.0}, "nu: got -1.0, expected a finite number"),
        ({"nu": np.inf}, "finite"),
        ({"nu": "much"}, "finite number"),
        ({"views": 0}, "from 1 to 40"),
        ({"views": 41}, "from 1 to 40"),
        ({"views": []}, "at least one View"),
        ({"views": [View(), "rbf"]}, "at least one View"),
        ({"views": "two"}, "at least one View"),
        ({"views": 2, "n_basis": 0}, "number from 1"),
        ({"views": 2, "n_basis": 2.5}, "number from 1"),
        ({"views": 2, "kernel": "gauss"}, "is unknown"),
        ({"views": [View(n_basis=41)]}, "from 1 to 40"),
        ({"views": [View(basis=[0, 40])]}, "names row 40"),
        ({"views": [View(kernel="rbf", basis="best", n_basis=3)]}, "'random'"),
        ({"views": [View([0, 6])]}, "index 6 is out of bounds"),
        ({"views": [View(["a"])]}, "'a', which X does not have"),
        ({"views": [View([0.5])]}, "integer"),
        ({"views": [View([True, False])]}, "boolean"),
        ({"views": [View([1, 1])]}, "twice"),
        ({"views": [View(kernel="precomputed")]}, "square matrix"),
        ({"cost": "hinge"}, "'magnitude'"),
        ({"group_weight": "size"}, "'pairs', 'groups'"),
    ],
)
def test_unknown_or_contradictory_parameters_are_refused(data, options, message):
    X, y, groups, _ = data
    refuse(message, X, y, groups, **options)


def test_supervised_learners_go_on_refusing_nan(data):
    X, y, groups, _ = data
    for target in (y, make_target(y, groups)):
        with pytest.raises(ValueError, match="only the semi-supervised learners"):
            RankRLS().fit(X, target)


def test_score_without_any_score_is_refused(data):
    X, y, groups, _ = data
    model = CoRankRLS(views=rbf_views()).fit(X, y, groups)
    with pytest.raises(ValueError, match="all NaN"):
        model.score(X, np.full(M, np.nan), groups)
    with pytest.raises(ValueError, match="39"):
        model.score(X, y[:-1])


def test_alpha_lost_beside_nu_warns(data):
    _, y, groups, _ = data
    wide = np.random.default_rng(0).normal(size=(M, 3 * M))
    views = [View(slice(0, 2 * M)), View(slice(M, 3 * M))]
    with pytest.warns(
        UserWarning, match="below the rounding error of a system with nu=1e\\+12; 0\\."
    ):
        model = CoRankRLS(1e-12, nu=1e12, views=views).fit(wide, y, groups)
    assert np.abs(model.predict(wide)).max() < 10
    F = model.predict_views(wide)[np.isnan(y)]
    np.testing.assert_allclose(np.ptp((F[:, 0] - F[:, 1])[groups[np.isnan(y)] == 7]), 0, atol=1e-6)


def test_features_of_a_basis_view_reproduce_the_kernel_of_its_basis(data):
    X, y, groups, X_new = data
    model = CoRankRLS(views=[View([0, 2], kernel="rbf", gamma=0.3, basis=BASES[1])])
    (view,) = model.fit(X, y, groups).views_
    R, R_new = view.transform(X), view.transform(X_new)
    K = rbf(X[:, [0, 2]], X[BASES[1]][:, [0, 2]])
    np.testing.assert_allclose(R @ R[BASES[1]].T, K, atol=1e-10)
    w = np.arange(view.n_features, dtype=float)
    np.testing.assert_allclose(view.scores(X_new, view.coefficients(w)), R_new @ w, atol=1e-10)


@pytest.mark.parametrize("nu", [0.0, 0.7, 50.0])
def test_section_2_explicit_preferences_w_and_agreement_are_those_of_loops(nu):
    rng = np.random.default_rng(4)
    X = rng.normal(size=(12, 4))
    views = [View([0, 1]), View([2, 3])]
    W = PairGraph([0, 1, 2, 0], [1, 2, 3, 3], [1.0, 0.5, 2.0, 1.0], [1, 2, 1, 3], n_items=12)
    agreement = PairGraph([4, 5, 6, 7, 10], [5, 6, 8, 9, 0], weight=[1, 2, 1, 3, 2], n_items=12)
    model = CoRankRLS(0.05, nu=nu, views=views).fit(X, W, agreement=agreement)
    rows, targets = [], []
    parts = [slice(0, 2), slice(2, 4)]
    omega, delta = np.array(W.edge_weight), np.array(W.magnitude)
    for part in parts:
        for i, j, weight, magnitude in zip(W.winner, W.loser, omega, delta, strict=True):
            row = np.zeros(4)
            row[part] = np.sqrt(weight / omega.sum()) * (X[i] - X[j])[part]
            rows.append(row)
            targets.append(np.sqrt(weight / omega.sum()) * magnitude)
    omega = np.array(agreement.edge_weight)
    sign = np.array([1, 1, -1, -1])
    for i, j, weight in zip(agreement.winner, agreement.loser, omega, strict=True):
        for _ in range(2):  # both ordered pairs of views
            rows.append(np.sqrt(nu * weight / omega.sum()) * (X[i] - X[j]) * sign)
            targets.append(0.0)
    rows.extend(np.sqrt(0.05) * np.eye(4))
    targets.extend(np.zeros(4))
    w = np.linalg.lstsq(np.array(rows), np.array(targets), rcond=None)[0]
    np.testing.assert_allclose(np.concatenate(model.view_coef_), w, rtol=1e-9)
    assert model.n_scored_ == 4


def test_explicit_preferences_with_groups_agree_on_unscored_rows_of_a_group():
    rng = np.random.default_rng(5)
    X = rng.normal(size=(12, 4))
    views = [View([0, 1]), View([2, 3])]
    groups = np.repeat([0, 1, 2], 4)
    W = PairGraph([0, 1, 4], [1, 2, 5], n_items=12, groups=groups)
    every_pair = PairGraph([6, *[8, 8, 8, 9, 9, 10]], [7, *[9, 10, 11, 10, 11, 11]], n_items=12)
    by_groups = CoRankRLS(0.05, nu=2.0, views=views).fit(X, W)
    explicit = CoRankRLS(0.05, nu=2.0, views=views).fit(X, W, agreement=every_pair)
    np.testing.assert_allclose(by_groups.predict(X), explicit.predict(X), atol=1e-10)
    search = CoRankRLSCV([0.01, 0.1], nus=[0.0, 1.0], views=views, cv=2).fit(X, W)
    assert search.cv_results_["cv"] == "folds of groups"
    with pytest.raises(ValueError, match="agreement"):
        CoRankRLS(views=views).fit(X, PairGraph([0], [1], n_items=12))
    with pytest.raises(TypeError, match="PairGraph"):
        CoRankRLS(views=views).fit(X, W, agreement=[[0, 1]])


def test_views_are_aggregated_by_weights(tmp_path):
    rng = np.random.default_rng(6)
    X, groups = rng.normal(size=(24, 4)), np.repeat(np.arange(6), 4)
    y = X @ [1.0, 0.5, 0.2, 0.0]
    y[groups > 3] = np.nan
    views = [View([0, 1]), View([2, 3])]
    plain = CoRankRLS(0.1, nu=0.5, views=views).fit(X, y, groups)
    model = clone(plain).set_params(view_weights=[3, 1]).fit(X, y, groups)
    expected = plain.predict_views(X) @ [0.75, 0.25]
    np.testing.assert_allclose(model.predict(X), expected, atol=1e-12)
    path = model.path(X, y, groups, alphas=[0.1])
    np.testing.assert_allclose(path.predict(X)[:, 0], expected, atol=1e-12)
    np.testing.assert_allclose(X @ linear_weights(model).weights, expected, atol=1e-12)
    save(model, tmp_path / "model.rankwise")
    loaded = load(tmp_path / "model.rankwise")
    np.testing.assert_allclose(loaded.predict(X), expected, atol=1e-12)
    search = CoRankRLSCV([0.1], nus=[0.5], views=views, view_weights=[1, 0], cv=2)
    search.fit(X, y, groups)
    np.testing.assert_allclose(search.predict(X), plain.predict_views(X)[:, 0], atol=1e-12)
    for weights in ([1], [-1, 2], [0, 0]):
        with pytest.raises(ValueError, match="view_weights"):
            CoRankRLS(views=views, view_weights=weights).fit(X, y, groups)
