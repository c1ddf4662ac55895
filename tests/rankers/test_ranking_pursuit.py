"""RankingPursuit with one view against a naive figure 1 of [Pursuit13] on explicit pairs."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import OrthogonalMatchingPursuit
from sklearn.metrics.pairwise import rbf_kernel

from rankwise import PairGraph, RankingPursuit, ScoreGraph, make_target
from rankwise.runtime import memory
from rankwise.solvers import pursuit
from rankwise.solvers.pursuit import OrthogonalBasis
from tests import oracle, oracle_pursuit

M, P, N = 24, 5, 7
BACKFITS = [None, "final", "every"]


@pytest.fixture
def data():
    rng = np.random.default_rng(3)
    X = rng.normal(size=(M, P))
    y = rng.integers(0, 4, M) + 0.5 * rng.integers(0, 2, M)
    groups = rng.permutation(np.repeat(np.arange(5), [1, 3, 4, 6, 10]))
    return X, y, groups, rng.normal(size=(N, P))


def naive_loss(model, y, groups):
    edges = oracle.score_edges(y, groups, model.cost, model.ties, model.group_weight)
    level = model.beta > 0 and model.fit_intercept
    return oracle_pursuit.Loss(edges, len(y), model.beta, y, level)


def coefficients(model, n_functions, step):
    a = np.zeros(n_functions)
    a[model.basis_indices_] = model.coef_path_[step]
    return a


@settings(max_examples=60, deadline=None)
@given(
    seed=st.integers(0, 10**6),
    n_items=st.integers(4, 12),
    n_groups=st.integers(1, 3),
    cost=st.sampled_from(["magnitude", "sign", "relative"]),
    ties=st.sampled_from(["include", "exclude"]),
    group_weight=st.sampled_from(["pairs", "groups"]),
    beta=st.sampled_from([0.0, 0.3, 1.0]),
    fit_intercept=st.booleans(),
    backfit=st.sampled_from(BACKFITS),
)
def test_figure_1_every_step_makes_a_best_choice_with_the_naive_coefficients(
    seed, n_items, n_groups, cost, ties, group_weight, beta, fit_intercept, backfit
):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n_items, 2))
    X[-1] = X[0]  # duplicate items
    y = rng.integers(0, 5, n_items).astype(float)
    y[:2] = [0.0, 1.0]
    groups = np.r_[0, 0, rng.integers(0, n_groups, n_items - 2)]
    model = RankingPursuit(
        4,
        gamma=0.7,
        cost=cost,
        ties=ties,
        group_weight=group_weight,
        beta=beta,
        fit_intercept=fit_intercept,
        backfit=backfit,
    ).fit(X, y, groups)
    loss, K = naive_loss(model, y, groups), rbf_kernel(X, gamma=0.7)
    steps = oracle_pursuit.ranking_pursuit(
        loss, K, model.n_basis_, backfit, follow=list(model.choice_path_)
    )
    for p, (_, a, J, best) in enumerate(steps):
        assert best + 1e-9 * np.sum(loss.z**2) >= J
        ours = loss.rows(K @ coefficients(model, n_items, p))  # where functions are dependent,
        np.testing.assert_allclose(ours, loss.rows(K @ a), atol=1e-6)  # coefficients may differ


@pytest.mark.parametrize("backfit", BACKFITS)
@pytest.mark.parametrize("beta", [0.0, 0.4, 1.0])
def test_figure_1_same_basis_and_coefficients_as_naive(data, beta, backfit):
    X, y, groups, _ = data
    model = RankingPursuit(8, gamma=0.3, beta=beta, backfit=backfit).fit(X, y, groups)
    loss, K = naive_loss(model, y, groups), rbf_kernel(X, gamma=0.3)
    steps = oracle_pursuit.ranking_pursuit(loss, K, 8, backfit)
    assert list(model.choice_path_) == [gamma for gamma, *_ in steps]
    for p, (_, a, _, _) in enumerate(steps):
        np.testing.assert_allclose(coefficients(model, M, p), a, rtol=1e-7, atol=1e-9)


@pytest.mark.parametrize("backfit", BACKFITS)
@pytest.mark.parametrize("beta", [0.0, 0.4, 1.0])
def test_train_error_is_the_loss_over_explicit_pairs(data, beta, backfit):
    X, y, groups, _ = data
    model = RankingPursuit(6, beta=beta, backfit=backfit, cost="sign").fit(X, y, groups)
    edges = oracle.score_edges(y, groups, "sign")
    for error, f in zip(model.train_error_, model.staged_predict(X), strict=True):
        assert error == pytest.approx(oracle.objective(edges, f, 0.0, 0.0, beta, y), abs=1e-10)
    assert (np.diff(model.train_error_) <= 1e-12).all()


@pytest.mark.parametrize("cost", ["magnitude", "sign", "relative"])
def test_figure_1_on_explicit_preferences(data, cost):
    X = data[0]
    rng = np.random.default_rng(5)
    winner = rng.integers(0, M - 2, 40)
    loser = (winner + rng.integers(1, M - 2, 40)) % (M - 2)
    magnitude, weight = rng.uniform(0.5, 3, 40), rng.uniform(0.5, 2, 40)
    graph = PairGraph(winner, loser, magnitude, weight, M, cost=cost)
    model = RankingPursuit(6, gamma=0.3).fit(X, graph)
    loss = oracle_pursuit.Loss(oracle.pair_edges(winner, loser, magnitude, weight, cost), M)
    steps = oracle_pursuit.ranking_pursuit(loss, rbf_kernel(X, gamma=0.3), 6, "final")
    assert list(model.choice_path_) == [gamma for gamma, *_ in steps]
    np.testing.assert_allclose(coefficients(model, M, -1), steps[-1][1], rtol=1e-7, atol=1e-9)


def test_a_score_graph_as_y_is_scores_and_groups(data):
    X, y, groups, X_new = data
    expected = RankingPursuit(5, beta=0.3).fit(X, y, groups).predict(X_new)
    graph = RankingPursuit(5, beta=0.3).fit(X, ScoreGraph(y, groups))
    np.testing.assert_allclose(graph.predict(X_new), expected)
    target = RankingPursuit(5, beta=0.3).fit(X, make_target(y, groups))
    np.testing.assert_allclose(target.predict(X_new), expected)


def test_equation_5_beta_0_ignores_the_level_of_each_group(data):
    X, y, groups, X_new = data
    shifted = y + 100.0 * groups
    model = RankingPursuit(6).fit(X, y, groups)
    np.testing.assert_allclose(
        RankingPursuit(6).fit(X, shifted, groups).predict(X_new), model.predict(X_new), atol=1e-9
    )
    assert model.intercept_ == 0


@pytest.mark.parametrize("level", [True, False])
def test_equation_5_beta_1_is_orthogonal_matching_pursuit_on_the_scale_of_y(data, level):
    X, y, groups, X_new = data
    y = y + 50.0 * level
    K = rbf_kernel(X, gamma=0.3)
    norms = np.linalg.norm(K - K.mean(axis=0) * level, axis=0)
    peer = OrthogonalMatchingPursuit(n_nonzero_coefs=6, fit_intercept=level).fit(K / norms, y)
    model = RankingPursuit(6, gamma=0.3, beta=1.0, backfit="every", fit_intercept=level)
    model.fit(X, y, groups)
    assert set(model.basis_indices_) == set(np.flatnonzero(peer.coef_))
    expected = peer.predict(rbf_kernel(X_new, X, gamma=0.3) / norms)
    np.testing.assert_allclose(model.predict(X_new), expected, rtol=1e-9)
    if level:
        assert model.predict(X).mean() == pytest.approx(y.mean())
    else:
        assert model.intercept_ == 0


@pytest.mark.parametrize("backfit", BACKFITS)
@pytest.mark.parametrize("beta", [0.0, 0.5])
def test_staged_predictions_are_those_of_a_smaller_model(data, backfit, beta):
    X, y, groups, X_new = data
    model = RankingPursuit(8, beta=beta, backfit=backfit).fit(X, y, groups)
    stages = list(model.staged_predict(X_new))
    assert len(stages) == model.n_basis_ == 8
    for p in (1, 4, 8):
        small = RankingPursuit(p, beta=beta, backfit=backfit).fit(X, y, groups)
        np.testing.assert_allclose(stages[p - 1], small.predict(X_new), atol=1e-9)
    np.testing.assert_allclose(stages[-1], model.predict(X_new), atol=1e-12)


@pytest.mark.parametrize("cost, beta", [("magnitude", 0.0), ("sign", 0.3), ("relative", 1.0)])
@pytest.mark.parametrize("dictionary", ["items", "features"])
def test_sparse_equals_dense(data, dictionary, cost, beta):
    X, y, groups, X_new = data
    X, X_new = X * (X > 0), X_new * (X_new > 0)
    options = {"kernel": "linear", "dictionary": dictionary, "cost": cost, "beta": beta}
    dense = RankingPursuit(4, **options).fit(X, y, groups)
    sparse = RankingPursuit(4, **options).fit(sp.csr_matrix(X), y, groups)
    np.testing.assert_array_equal(sparse.basis_indices_, dense.basis_indices_)
    for new in (sp.csr_array(X_new), X_new):
        np.testing.assert_allclose(sparse.predict(new), dense.predict(X_new), atol=1e-9)


def test_sparse_kernels_and_columns_that_are_constant_in_groups(data):
    X, y, groups, X_new = data
    X, X_new = X * (X > 0), X_new * (X_new > 0)
    dense = RankingPursuit(4).fit(X, y, groups)
    sparse = RankingPursuit(4).fit(sp.csr_matrix(X), y, groups)
    np.testing.assert_allclose(sparse.predict(X_new), dense.predict(X_new), atol=1e-9)
    X = sp.csr_matrix(np.column_stack([groups * 1e3, np.ones(M), X]))
    model = RankingPursuit(50, kernel="linear", dictionary="features").fit(X, y, groups)
    assert model.basis_indices_.min() >= 2


def test_small_blocks_of_columns_change_nothing(data, monkeypatch):
    X, y, groups, X_new = data
    whole = RankingPursuit(6, beta=0.2).fit(X, y, groups)
    monkeypatch.setattr(pursuit, "BLOCK_ENTRIES", 3 * M)
    blocks = RankingPursuit(6, beta=0.2).fit(X, y, groups)
    np.testing.assert_array_equal(blocks.choice_path_, whole.choice_path_)
    np.testing.assert_allclose(blocks.predict(X_new), whole.predict(X_new), atol=1e-10)


def test_a_dictionary_that_does_not_fit_is_refused_with_advice(data, monkeypatch):
    X, y, groups, _ = data
    monkeypatch.setattr(memory, "available_bytes", lambda: 1000)
    with pytest.raises(ValueError, match=r"dictionary of 24 × 24.*dictionary=2000"):
        RankingPursuit(3).fit(X, y, groups)


def test_greedy_feature_selection_finds_the_features_in_use(data):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(100, 30)) + 1e5  # the level of a feature must not matter
    groups = rng.integers(0, 10, 100)
    y = 2 * X[:, 3] - X[:, 17] + 0.5 * X[:, 29] + 10 * groups
    model = RankingPursuit(3, kernel="linear", dictionary="features", backfit="every")
    model.fit(X, y, groups)
    assert sorted(model.basis_indices_) == [3, 17, 29]
    np.testing.assert_allclose(model.coef_[[3, 17, 29]], [2.0, -1.0, 0.5], rtol=1e-6)
    assert np.count_nonzero(model.coef_) == 3
    np.testing.assert_allclose(model.predict(X), X @ model.coef_, rtol=1e-9)


def test_dictionary_of_given_points_of_random_items_or_of_scored_items(data):
    X, y, groups, X_new = data
    whole = RankingPursuit(5).fit(X, y, groups)
    points = RankingPursuit(5, dictionary=X).fit(X, y, groups)
    np.testing.assert_allclose(points.predict(X_new), whole.predict(X_new))
    sparse = RankingPursuit(5, dictionary=sp.csr_matrix(X)).fit(sp.csr_matrix(X), y, groups)
    np.testing.assert_allclose(sparse.predict(X_new), whole.predict(X_new), atol=1e-9)
    centres = RankingPursuit(5, dictionary=X_new, backfit="every").fit(X, y, groups)
    assert set(centres.basis_indices_) <= set(range(N))
    part = RankingPursuit(5, dictionary=6, random_state=0).fit(X, y, groups)
    assert len(part.basis_indices_) <= 6
    same = RankingPursuit(5, dictionary=6, random_state=0).fit(X, y, groups)
    np.testing.assert_array_equal(part.basis_indices_, same.basis_indices_)
    y = np.where(np.arange(M) < 10, np.nan, y)
    scored = RankingPursuit(5, dictionary="scored").fit(X, y, groups)
    assert scored.basis_indices_.min() >= 10


def test_one_view_learns_from_scored_rows_only(data):
    X, y, groups, X_new = data
    y = np.where(np.arange(M) < 10, np.nan, y)
    model = RankingPursuit(5, dictionary="scored").fit(X, y, groups)
    alone = RankingPursuit(5).fit(X[10:], y[10:], groups[10:])
    np.testing.assert_array_equal(model.basis_indices_, alone.basis_indices_ + 10)
    np.testing.assert_allclose(model.predict(X_new), alone.predict(X_new), atol=1e-10)
    everywhere = RankingPursuit(5, dictionary=X).fit(X[10:], y[10:], groups[10:])
    model = RankingPursuit(5).fit(X, y, groups)
    np.testing.assert_array_equal(model.basis_indices_, everywhere.basis_indices_)


def test_precomputed_kernel_equals_the_kernel(data):
    X, y, groups, X_new = data
    model = RankingPursuit(5, gamma=0.3).fit(X, y, groups)
    given = RankingPursuit(5, kernel="precomputed").fit(rbf_kernel(X, gamma=0.3), y, groups)
    np.testing.assert_array_equal(given.basis_indices_, model.basis_indices_)
    K_new = rbf_kernel(X_new, X, gamma=0.3)
    np.testing.assert_allclose(given.predict(K_new), model.predict(X_new))

    def rbf(a, b, width):
        return np.exp(-width * np.sum((a - b) ** 2))

    own = RankingPursuit(4, kernel=rbf, kernel_params={"width": 0.3}).fit(X, y, groups)
    named = RankingPursuit(4, gamma=0.3).fit(X, y, groups)
    np.testing.assert_allclose(own.predict(X_new), named.predict(X_new), rtol=1e-8)


def test_stops_early_when_nothing_is_left_to_explain(data):
    X, y, groups, _ = data
    y = X[:, 1] + 2 * X[:, 3]
    for backfit in ("every", "final", None):
        model = RankingPursuit(500, kernel="linear", dictionary="features", backfit=backfit)
        model.fit(X, y, groups)
        assert model.n_basis_ < 500
        assert model.train_error_[-1] < 1e-12
    assert model.set_params(backfit="every").fit(X, y, groups).n_basis_ <= P


def test_more_basis_functions_than_items_interpolate(data):
    X, y, groups, _ = data
    model = RankingPursuit(1000, gamma=1.0, backfit="every").fit(X, y, groups)
    assert model.n_basis_ <= M
    assert model.train_error_[-1] < 1e-12
    assert model.score(X, y, groups) == 1.0


def test_duplicate_items_are_chosen_once_with_backfit_every(data):
    X, y, groups, _ = data
    X, y, groups = np.tile(X, (3, 1)), np.tile(y, 3), np.tile(groups, 3)
    model = RankingPursuit(100, gamma=1.0, backfit="every").fit(X, y, groups)
    assert len(np.unique(model.basis_indices_ % M)) == len(model.basis_indices_) <= M


def test_equal_scores_give_a_model_without_functions(data):
    X, _, groups, X_new = data
    with pytest.warns(UserWarning, match="no item is preferred"):
        model = RankingPursuit(5).fit(X, np.ones(M), groups)
    assert model.n_basis_ == 0
    assert list(model.staged_predict(X_new)) == []
    np.testing.assert_array_equal(model.predict(X_new), np.zeros(N))
    level = RankingPursuit(5, beta=1.0).fit(X, np.full(M, 7.0), groups)
    np.testing.assert_allclose(level.predict(X_new), 7.0)


def test_orthogonal_basis_refuses_vectors_that_the_others_span():
    rng = np.random.default_rng(0)
    A = rng.normal(size=(9, 6))
    A, X = A @ A.T, rng.normal(size=(9, 4))
    t = A @ rng.normal(size=9)
    basis = OrthogonalBasis(lambda v: A @ v, t)
    assert [basis.add(x) for x in X.T] == [True] * 4
    assert not basis.add(X @ [1.0, -2.0, 0.5, 3.0])
    assert not basis.add(np.zeros(9))
    expected = np.linalg.solve(X.T @ A @ X, X.T @ t)
    np.testing.assert_allclose(basis.coefficients(), expected, rtol=1e-8)
    np.testing.assert_allclose(basis.fitted, X @ expected, rtol=1e-8)
    assert len(basis.coefficients()) == 4


BAD = [
    ({"n_basis": 0}, r"n_basis=0; expected a whole number from 1"),
    ({"n_basis": 2.5}, "n_basis=2.5"),
    ({"backfit": "last"}, r"backfit='last' is unknown.*'final', 'every'"),
    ({"beta": 1.5}, r"beta=1.5; expected a number from 0"),
    ({"nu": -1.0}, r"nu: got -1.0, expected a finite number"),
    ({"nu": np.inf}, "nu: got inf"),
    ({"search": "best"}, "search='best' is unknown"),
    ({"kernel": "gauss"}, "kernel='gauss' is unknown"),
    ({"gamma": -1.0}, "gamma=-1.0"),
    ({"dictionary": "feature"}, "did you mean 'features'"),
    ({"dictionary": 0}, "dictionary=0; expected a whole number from 1"),
    ({"dictionary": np.ones((3, P + 1))}, "dictionary has points with 6 features but X has 5"),
    ({"dictionary": np.full((3, P), np.nan)}, "dictionary contains NaN"),
    ({"dictionary": object()}, "expected one of 'items', 'scored', 'features'"),
    ({"dictionary": "features"}, r"kernel='rbf' and.*use kernel='linear'"),
    ({"kernel": "precomputed"}, r"needs the square matrix.*shape \(24, 5\)"),
    ({"n_iter_no_change": 0}, "n_iter_no_change=0"),
    ({"n_iter_no_change": 2, "validation_fraction": 1.0}, "test_size=1.0"),
    ({"cost": "signs"}, "did you mean 'sign'"),
]


@pytest.mark.parametrize("options, message", BAD)
def test_bad_parameters_are_explained(data, options, message):
    X, y, groups, _ = data
    with pytest.raises(ValueError, match=message):
        RankingPursuit(**options).fit(X, y, groups)


def test_bad_data_are_explained(data):
    X, y, groups, X_new = data
    model = RankingPursuit(3)
    with pytest.raises(NotFittedError):
        model.predict(X_new)
    with pytest.raises(ValueError, match="none of the 24 rows has a score"):
        model.fit(X, np.full(M, np.nan), groups)
    with pytest.raises(ValueError, match="nothing to rank"):
        model.fit(X, y, np.arange(M))
    with pytest.raises(ValueError, match="are constant inside groups"):
        model.fit(np.repeat(groups[:, None], 2, axis=1) / 7, y, groups)
    with pytest.raises(ValueError, match="learns one output"):
        model.fit(X, np.column_stack([y, y]), groups)
    with pytest.raises(ValueError, match="learns one output"):
        model.fit(X, ScoreGraph(np.column_stack([y, y]), groups))
    with pytest.raises(ValueError, match="graph has 3 items but X has 24 rows"):
        model.fit(X, PairGraph([0, 1], [1, 2]))
    with pytest.raises(ValueError, match="y is a PairGraph"):
        RankingPursuit(n_iter_no_change=2).fit(X, PairGraph([0, 1], [1, 2], n_items=M))
    with pytest.raises(ValueError, match="no points as dictionary"):
        RankingPursuit(kernel="precomputed", dictionary=X @ X.T).fit(X @ X.T, y, groups)
    with pytest.raises(ValueError, match="expecting 5 features"):
        model.fit(X, y, groups).predict(X_new[:, :3])


def test_whitened_data_make_orthogonal_matching_pursuit_rank(data):
    X, y, groups, X_new = data
    graph = ScoreGraph(y, groups)
    model = RankingPursuit(6, gamma=0.3, backfit="every").fit(X, y, groups)
    white = graph.root().adjoint(rbf_kernel(X, gamma=0.3))
    norms = np.linalg.norm(white, axis=0)
    peer = OrthogonalMatchingPursuit(n_nonzero_coefs=6, fit_intercept=False)
    peer.fit(white / norms, graph.root().adjoint(y))
    expected = rbf_kernel(X_new, X, gamma=0.3) @ (peer.coef_ / norms)
    np.testing.assert_allclose(model.predict(X_new), expected, rtol=1e-8)
