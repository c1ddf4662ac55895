"""RankingPursuit with several views against a naive figure 2 of [Pursuit13] on explicit pairs."""

from __future__ import annotations

import itertools

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.metrics.pairwise import linear_kernel, rbf_kernel

from rankwise import PairGraph, RankingPursuit, View
from rankwise.runtime import memory
from rankwise.solvers import pursuit
from tests import oracle, oracle_pursuit, oracle_semi

M, P, N = 16, 4, 6
TWO = [View([0, 1], kernel="rbf", gamma=0.5), View([2, 3], kernel="rbf", gamma=0.3)]
THREE = [*TWO, View(None, kernel="rbf", gamma=0.1)]


@pytest.fixture
def data():
    rng = np.random.default_rng(8)
    X = rng.normal(size=(M, P))
    y = (2 * X[:, 0] + X[:, 2]).round()
    y[::3] = np.nan
    groups = rng.permutation(np.repeat(np.arange(3), [3, 5, 8]))
    return X, y, groups, rng.normal(size=(N, P))


def kernels(X, views, X_new=None):
    X_new = X if X_new is None else X_new
    return [
        rbf_kernel(*(Z if view.columns is None else Z[:, view.columns] for Z in (X_new, X)), gamma)
        for view, gamma in zip(views, [view.gamma for view in views], strict=True)
    ]


def naive(model, X, y, groups, n_steps, **options):
    scored = np.flatnonzero(~np.isnan(y))
    labels = groups[scored]
    edges = oracle.score_edges(y[scored], labels, model.cost, model.ties, model.group_weight)
    level = model.beta > 0 and model.fit_intercept
    loss = oracle_pursuit.Loss(edges, len(scored), model.beta, y[scored], level)
    agreement = oracle_semi.agreement_edges(y, groups, model.group_weight)
    K = kernels(X, model.views)
    steps = oracle_pursuit.semi_supervised_pursuit(
        loss, K, scored, agreement, model.nu, n_steps, model.backfit, **options
    )
    return loss, K, scored, steps


def coefficients(model, view, n_functions, step):
    a = np.zeros(n_functions)
    a[model.basis_indices_[view]] = model.coef_path_[view][step]
    return a


@settings(max_examples=40, deadline=None)
@given(
    seed=st.integers(0, 10**6),
    n_items=st.integers(6, 9),
    nu=st.sampled_from([0.0, 0.1, 1.0, 30.0]),
    beta=st.sampled_from([0.0, 0.4]),
    cost=st.sampled_from(["magnitude", "sign"]),
    group_weight=st.sampled_from(["pairs", "groups"]),
    backfit=st.sampled_from([None, "final", "every"]),
    n_unscored=st.sampled_from([0, 3]),
)
def test_figure_2_every_step_makes_a_best_choice_with_the_naive_coefficients(
    seed, n_items, nu, beta, cost, group_weight, backfit, n_unscored
):
    rng = np.random.default_rng(seed)
    X, y = rng.normal(size=(n_items, P)), rng.integers(0, 5, n_items).astype(float)
    y[:2] = [0.0, 1.0]
    groups = np.zeros(n_items, dtype=int)
    y[n_items - n_unscored :] = np.nan
    groups[n_items - 2 :] = 1
    options = {"nu": nu, "beta": beta, "cost": cost, "group_weight": group_weight}
    model = RankingPursuit(3, views=TWO, backfit=backfit, **options).fit(X, y, groups)
    follow = [tuple(gamma) for gamma in model.choice_path_.tolist()]
    loss, K, scored, steps = naive(model, X, y, groups, model.n_basis_, follow=follow)
    for p, (_, a, J, best) in enumerate(steps):
        assert best + 1e-9 * np.sum(loss.z**2) >= J
        for v in range(2):
            ours = loss.rows(K[v][scored] @ coefficients(model, v, n_items, p))
            np.testing.assert_allclose(ours, loss.rows(K[v][scored] @ a[v]), atol=1e-5)


@pytest.mark.parametrize("backfit", [None, "final", "every"])
@pytest.mark.parametrize("beta", [0.0, 0.4])
@pytest.mark.parametrize("nu", [0.0, 2.0])
def test_figure_2_of_three_views_tries_every_labeling(data, nu, beta, backfit):
    X, y, groups, _ = data
    items = [[0, 3, 5, 8], [1, 3, 10], [2, 4, 7, 11, 13]]  # a dictionary of each view
    views = [clone(view).set_params(basis=basis) for view, basis in zip(THREE, items, strict=True)]
    model = RankingPursuit(3, views=views, nu=nu, beta=beta, backfit=backfit).fit(X, y, groups)
    assert model.search_ == "all"
    combinations = list(itertools.product(*items))
    _, _, _, steps = naive(model, X, y, groups, 3, combinations=combinations)
    if nu > 0:  # without agreement views are independent, and several labelings are best
        assert [tuple(gamma) for gamma in model.choice_path_] == [gamma for gamma, *_ in steps]
    for p, (_, a, _, _) in enumerate(steps):
        for v in range(3):
            ours = kernels(X, THREE)[v] @ coefficients(model, v, M, p)
            np.testing.assert_allclose(ours, kernels(X, THREE)[v] @ a[v], atol=1e-6)


@pytest.mark.parametrize("backfit", [None, "final", "every"])
def test_all_combinations_of_two_views_are_all_pairs(data, backfit):
    X, y, groups, X_new = data
    pairs, combinations = (
        RankingPursuit(4, views=TWO, nu=0.5, backfit=backfit, search=search).fit(X, y, groups)
        for search in ("pairs", "all")
    )
    np.testing.assert_array_equal(pairs.choice_path_, combinations.choice_path_)
    np.testing.assert_allclose(pairs.predict(X_new), combinations.predict(X_new), atol=1e-9)


def test_views_by_number_have_different_items_and_too_many_combinations_are_refused(data):
    X, y, groups, X_new = data
    model = RankingPursuit(3, views=3, kernel="rbf", random_state=0).fit(X, y, groups)
    assert model.search_ == "all"
    assert model.predict_views(X_new).shape == (N, 3)
    bases = [set(basis.tolist()) for basis in model.basis_indices_]
    assert len(set.union(*bases)) == sum(map(len, bases))
    shared = RankingPursuit(3, views=THREE, nu=0.5).fit(X, y, groups)
    assert shared.search_ == "shared"
    rng = np.random.default_rng(0)
    X = rng.normal(size=(400, 2))
    with pytest.raises(ValueError, match="1,048,576"):
        RankingPursuit(3, views=3, kernel="rbf").fit(X, X[:, 0])


@pytest.mark.parametrize("backfit", [None, "final", "every"])
@pytest.mark.parametrize("beta", [0.0, 0.4])
@pytest.mark.parametrize("nu", [0.05, 2.0])
def test_figure_2_same_basis_and_coefficients_as_naive(data, nu, beta, backfit):
    X, y, groups, X_new = data
    model = RankingPursuit(4, views=TWO, nu=nu, beta=beta, backfit=backfit).fit(X, y, groups)
    assert model.search_ == "pairs"
    _, _, scored, steps = naive(model, X, y, groups, 4)
    assert [tuple(gamma) for gamma in model.choice_path_] == [gamma for gamma, *_ in steps]
    for p, (_, a, _, _) in enumerate(steps):
        for v in range(2):
            np.testing.assert_allclose(coefficients(model, v, M, p), a[v], rtol=1e-6, atol=1e-9)
    f = [k @ a for k, a in zip(kernels(X, TWO, X_new), steps[-1][1], strict=True)]
    if beta > 0:
        at_scored = [k[scored] @ a for k, a in zip(kernels(X, TWO), steps[-1][1], strict=True)]
        f = [own + y[scored].mean() - fit.mean() for own, fit in zip(f, at_scored, strict=True)]
    np.testing.assert_allclose(model.predict_views(X_new), np.stack(f, axis=1), atol=1e-7)
    np.testing.assert_allclose(model.predict(X_new), np.mean(f, axis=0), atol=1e-7)


@pytest.mark.parametrize("backfit", [None, "final", "every"])
def test_footnote_4_shared_indices_equal_naive_over_the_same_item_in_all_views(data, backfit):
    X, y, groups, _ = data
    model = RankingPursuit(4, views=THREE, nu=0.5, backfit=backfit).fit(X, y, groups)
    assert model.search_ == "shared"
    shared = [(j, j, j) for j in range(M)]
    *_, steps = naive(model, X, y, groups, 4, combinations=shared)
    assert [tuple(gamma) for gamma in model.choice_path_] == [gamma for gamma, *_ in steps]
    for v, a in enumerate(steps[-1][1]):
        np.testing.assert_allclose(coefficients(model, v, M, -1), a, rtol=1e-6, atol=1e-9)


def test_small_blocks_of_pairs_and_of_columns_change_nothing(data, monkeypatch):
    X, y, groups, X_new = data
    whole = RankingPursuit(4, views=TWO).fit(X, y, groups)
    three = RankingPursuit(4, views=THREE).fit(X, y, groups)
    monkeypatch.setattr(pursuit, "BLOCK_ENTRIES", 3 * M)
    blocks = RankingPursuit(4, views=TWO).fit(X, y, groups)
    np.testing.assert_array_equal(blocks.choice_path_, whole.choice_path_)
    np.testing.assert_allclose(blocks.predict(X_new), whole.predict(X_new), atol=1e-9)
    blocks = RankingPursuit(4, views=THREE).fit(X, y, groups)
    np.testing.assert_allclose(blocks.predict(X_new), three.predict(X_new), atol=1e-9)


def test_nu_0_lets_each_view_fit_the_residual_of_the_mean_alone(data):
    X, y, groups, X_new = data
    scored = ~np.isnan(y)
    model = RankingPursuit(1, views=TWO, nu=0.0).fit(X, y, groups)
    for v, view in enumerate(TWO):
        own = RankingPursuit(1, gamma=view.gamma, dictionary=X[:, view.columns])
        own.fit(X[scored][:, view.columns], y[scored], groups[scored])
        expected = own.predict(X_new[:, view.columns])
        np.testing.assert_allclose(model.predict_views(X_new)[:, v], expected, atol=1e-10)


def test_large_nu_makes_the_views_agree_on_the_order_of_unscored_items(data):
    X, y, groups, _ = data
    rows = np.flatnonzero(np.isnan(y))

    def disagreement(nu):
        model = RankingPursuit(6, views=TWO, nu=nu, backfit="every").fit(X, y, groups)
        f = model.predict_views(X[rows])
        gap = np.subtract.outer(f[:, 0] - f[:, 1], f[:, 0] - f[:, 1])
        return np.sum(gap[groups[rows][:, None] == groups[rows]] ** 2)

    assert disagreement(1e4) < 1e-3 * disagreement(0.0)


def test_a_number_of_views_deals_the_dictionary_out(data):
    X, y, groups, X_new = data
    model = RankingPursuit(20, views=2, backfit="every", random_state=1).fit(X, y, groups)
    first, second = model.basis_indices_
    assert not set(first) & set(second)
    again = RankingPursuit(20, views=2, backfit="every", random_state=1).fit(X, y, groups)
    np.testing.assert_array_equal(again.predict(X_new), model.predict(X_new))
    one, none = (RankingPursuit(3, views=v).fit(X, y, groups) for v in (1, None))
    np.testing.assert_allclose(one.predict(X_new), none.predict(X_new))


def test_one_view_of_some_columns_is_a_pursuit_on_them(data):
    X, y, groups, X_new = data
    model = RankingPursuit(4, views=TWO[1:]).fit(X, y, groups)
    alone = RankingPursuit(4, gamma=0.3).fit(X[:, 2:], y, groups)
    np.testing.assert_allclose(model.predict(X_new), alone.predict(X_new[:, 2:]), atol=1e-10)


def test_views_of_features_select_columns_and_have_weights(data):
    X, y, groups, X_new = data
    views = [View([0, 1]), View([2, 3])]
    model = RankingPursuit(2, kernel="linear", dictionary="features", views=views)
    model.fit(X, y, groups)
    assert set(model.basis_indices_[0]) <= {0, 1}
    assert set(model.basis_indices_[1]) <= {2, 3}
    np.testing.assert_allclose(model.predict(X_new), X_new @ model.coef_, atol=1e-10)
    sparse = clone(model).fit(sp.csr_matrix(X), y, groups)
    np.testing.assert_allclose(sparse.predict(sp.csr_matrix(X_new)), model.predict(X_new))
    split = RankingPursuit(2, kernel="linear", dictionary="features", views=2, random_state=0)
    first, second = split.fit(X, y, groups).basis_indices_
    assert not set(first) & set(second)


def test_a_view_brings_its_own_dictionary(data):
    X, y, groups, X_new = data
    views = [View(kernel="rbf", basis=[1, 4, 7, 10]), View(kernel="linear", n_basis=5)]
    model = RankingPursuit(3, views=views, random_state=0).fit(X, y, groups)
    assert set(model.basis_indices_[0]) <= {1, 4, 7, 10}
    scores = linear_kernel(X_new, X[model.basis_indices_[1]]) @ model.dual_coef_[1]
    np.testing.assert_allclose(model.predict_views(X_new)[:, 1], scores)
    with pytest.raises(ValueError, match="need the same dictionary, but their"):
        clone(model).set_params(search="shared").fit(X, y, groups)


def test_views_by_column_names_and_precomputed_kernels(data):
    X, y, groups, X_new = data
    expected = RankingPursuit(3, views=TWO).fit(X, y, groups).predict(X_new)
    named = [View(["a", "b"], kernel="rbf", gamma=0.5), View(["c", "d"], kernel="rbf", gamma=0.3)]
    frame, frame_new = (pd.DataFrame(Z, columns=list("abcd")) for Z in (X, X_new))
    model = RankingPursuit(3, views=named).fit(frame, y, groups)
    np.testing.assert_allclose(model.predict(frame_new), expected)
    stacked = [View(slice(v * M, v * M + M), kernel="precomputed") for v in range(2)]
    model = RankingPursuit(3, views=stacked).fit(np.hstack(kernels(X, TWO)), y, groups)
    found = model.predict(np.hstack(kernels(X, TWO, X_new)))
    np.testing.assert_allclose(found, expected, atol=1e-9)


def test_staged_predictions_are_those_of_a_smaller_model(data):
    X, y, groups, X_new = data
    stages = list(RankingPursuit(5, views=TWO).fit(X, y, groups).staged_predict(X_new))
    small = RankingPursuit(3, views=TWO).fit(X, y, groups)
    np.testing.assert_allclose(stages[2], small.predict(X_new), atol=1e-10)


def test_a_group_with_only_unscored_rows_takes_part_in_the_agreement(data):
    X, y, groups, X_new = data
    more = np.vstack([X, X_new])
    y_more, groups_more = np.r_[y, np.full(N, np.nan)], np.r_[groups, np.full(N, 9)]
    model = RankingPursuit(4, views=TWO, dictionary=X).fit(more, y_more, groups_more)
    without = RankingPursuit(4, views=TWO, dictionary=X).fit(X, y, groups)
    assert model.n_pairs_ == without.n_pairs_
    assert not np.allclose(model.predict(X_new), without.predict(X_new))


def test_unscored_rows_that_share_no_group_are_noticed(data):
    X, y, groups, _ = data
    groups = np.where(np.isnan(y), 100 + np.arange(M), groups)
    with pytest.warns(UserWarning, match="no two of the"):
        model = RankingPursuit(3, views=TWO).fit(X, y, groups)
    assert np.isfinite(model.predict(X)).all()


def test_all_pairs_of_large_dictionaries_are_refused_before_they_are_allocated(data, monkeypatch):
    X, y, groups, _ = data
    monkeypatch.setattr(memory, "available_bytes", lambda: 1000)
    with pytest.raises(ValueError, match=r"all pairs of functions.*search='shared'"):
        RankingPursuit(views=TWO).fit(X, y, groups)


BAD = [
    ({"views": 0}, "views=0; expected a whole number from 1"),
    ({"views": "both"}, "views='both'; expected a number of random views"),
    ({"views": []}, r"views=\[\]; expected"),
    ({"views": [View([]), View()]}, "a view has no columns"),
    ({"views": [View([0]), View([9])]}, "index 9"),
    ({"views": [View([0]), View([4])]}, r"view 1\) are constant inside groups"),
    ({"views": THREE, "search": "pairs"}, "search='pairs' needs two views, but there are 3"),
    ({"views": 3, "search": "shared"}, "3 views that share an item need the same dictionary"),
    ({"views": 3, "dictionary": 2}, "views=3, but the dictionary has 2"),
    ({"views": TWO, "dictionary": "features"}, "use kernel='linear' without n_basis"),
    ({"views": [View(kernel="precomputed"), View()]}, "needs the square matrix"),
    ({"views": [View(kernel="rbf", n_basis=99), View()]}, "n_basis=99"),
]


@pytest.mark.parametrize("options, message", BAD)
def test_bad_views_are_explained(data, options, message):
    X, y, groups, _ = data
    X = np.column_stack([X, np.ones(M)])  # a constant column
    with pytest.raises(ValueError, match=message):
        RankingPursuit(3, **options).fit(X, y, groups)


def test_a_graph_holds_no_unscored_rows(data):
    X = data[0]
    with pytest.raises(ValueError, match="y is a PairGraph"):
        RankingPursuit(views=2).fit(X, PairGraph([0], [1], n_items=M))
