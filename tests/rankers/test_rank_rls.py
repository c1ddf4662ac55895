"""RankRLS against explicit pairs, for every combination of its options."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.exceptions import NotFittedError
from sklearn.kernel_ridge import KernelRidge
from sklearn.linear_model import Ridge
from sklearn.metrics.pairwise import PAIRWISE_KERNEL_FUNCTIONS, pairwise_kernels

from rankwise import PairGraph, RankRLS, ScoreGraph, make_target
from rankwise.runtime import memory
from tests import oracle
from tests.pairwise import pairwise

M, P, N = 26, 4, 9


@pytest.fixture
def data():
    rng = np.random.default_rng(11)
    X = rng.normal(size=(M, P))
    y = rng.integers(0, 4, M) + 0.5 * rng.integers(0, 2, M)
    groups = rng.permutation(np.repeat(np.arange(6), [1, 2, 3, 5, 6, 9]))
    return X, y, groups, rng.normal(size=(N, P))


@pytest.fixture
def weights():
    """Of very different size, some of them 0."""
    rng = np.random.default_rng(5)
    return np.exp(rng.normal(size=M)) * (rng.random(M) < 0.85)


def centred(f):
    return f - f.mean(axis=0)


def rbf(A, B):
    return pairwise_kernels(A, B, metric="rbf", gamma=0.3)


def linear(A, B):
    return A @ B.T


# name -> (options of the estimator, how X is given, its kernel)
WAYS = {
    "primal": ({}, lambda X: X, linear),
    "primal-sparse": ({}, sp.csr_matrix, linear),
    "dual": ({"solver": "dual"}, lambda X: X, linear),
    "dual-sparse": ({"solver": "dual"}, sp.csr_array, linear),
    "iterative": ({"solver": "iterative", "tol": 1e-12}, lambda X: X, linear),
    "iterative-sparse": ({"solver": "iterative", "tol": 1e-12}, sp.csc_matrix, linear),
    "rbf": ({"kernel": "rbf", "gamma": 0.3}, lambda X: X, rbf),
    "rbf-sparse": ({"kernel": "rbf", "gamma": 0.3}, sp.csr_matrix, rbf),
    "all as basis": ({"kernel": "rbf", "gamma": 0.3, "basis": np.arange(M)}, lambda X: X, rbf),
}
COSTS = ("magnitude", "sign", "relative")


TIES, UNITS, BETAS = ("include", "exclude"), ("pairs", "groups"), (0.0, 0.4, 1.0)


@pytest.mark.parametrize(
    "way, cost, ties, group_weight, beta, grouped, weighted",
    pairwise(WAYS, COSTS, TIES, UNITS, BETAS, (True, False), (True, False)),
)
def test_predictions_equal_brute_force_over_explicit_pairs(
    data, weights, way, cost, ties, group_weight, beta, grouped, weighted
):
    X, y, groups, X_new = data
    groups, weights = groups if grouped else None, weights if weighted else None
    options, convert, kernel = WAYS[way]
    model = RankRLS(0.02, cost=cost, ties=ties, group_weight=group_weight, beta=beta, **options)
    model.fit(convert(X), y, groups, weights)
    edges = oracle.score_edges(y, groups, cost, ties, group_weight, weights)
    expected = kernel(X_new, X) @ oracle.rank_rls(edges, kernel(X, X), 0.02, beta, y, weights)
    found = model.predict(convert(X_new))
    if weighted and beta == 0:
        found, expected = centred(found), centred(expected)
    np.testing.assert_allclose(found, expected, atol=1e-7)
    assert model.n_pairs_ == len(edges)


@pytest.mark.parametrize("way, cost", pairwise(WAYS, COSTS))
def test_explicit_preferences_equal_brute_force(data, way, cost):
    X, _, _, X_new = data
    rng = np.random.default_rng(5)
    winner = rng.integers(0, M - 2, 40)
    loser = (winner + rng.integers(1, M - 2, 40)) % (M - 2)
    magnitude, weight = rng.uniform(0.5, 3, 40), rng.uniform(0.5, 2, 40)
    options, convert, kernel = WAYS[way]
    graph = PairGraph(winner, loser, magnitude, weight, M, cost=cost)
    model = RankRLS(0.02, **options).fit(convert(X), graph)
    edges = oracle.pair_edges(winner, loser, magnitude, weight, cost)
    a = oracle.rank_rls(edges, kernel(X, X), 0.02)
    np.testing.assert_allclose(model.predict(convert(X_new)), kernel(X_new, X) @ a, atol=1e-7)


@pytest.mark.parametrize(
    "way, group_weight, beta, weighted", pairwise(WAYS, UNITS, (0.0, 0.4), (True, False))
)
def test_several_outputs_equal_one_model_each(data, weights, way, group_weight, beta, weighted):
    X, y, groups, X_new = data
    weights = weights if weighted else None
    Y = np.column_stack([y, y[::-1], np.arange(M) % 3])
    options, convert, _ = WAYS[way]
    model = RankRLS(0.02, group_weight=group_weight, beta=beta, **options)
    together = model.fit(convert(X), Y, groups, weights).predict(convert(X_new))
    assert together.shape == (N, 3)
    for k in range(3):
        alone = model.fit(convert(X), Y[:, k], groups, weights).predict(convert(X_new))
        np.testing.assert_allclose(together[:, k], alone, atol=1e-8)


@pytest.mark.parametrize(
    "way, cost, ties, group_weight, outputs",
    [
        *pairwise([*WAYS, "basis"], COSTS, TIES, UNITS, (1,)),
        *((way, "magnitude", "include", "pairs", 3) for way in ("primal", "rbf", "basis")),
    ],
)
def test_path_equals_one_fit_per_alpha(data, way, cost, ties, group_weight, outputs):
    X, y, groups, X_new = data
    Y = y if outputs == 1 else np.column_stack([y, y[::-1], np.arange(M) % 3])
    options, convert, _ = WAYS.get(
        way, ({"kernel": "rbf", "gamma": 0.3, "basis": [0, 5, 9, 11]}, lambda X: X, rbf)
    )
    alphas = [3.0, 1e-4, 0.05]
    model = RankRLS(cost=cost, ties=ties, group_weight=group_weight, **options)
    path = model.path(convert(X), Y, groups, alphas=alphas)
    predicted = path.predict(convert(X_new))
    assert predicted.shape == ((N, 3) if outputs == 1 else (N, 3, 3))
    for k, alpha in enumerate(alphas):
        alone = model.set_params(alpha=alpha).fit(convert(X), Y, groups).predict(convert(X_new))
        np.testing.assert_allclose(predicted[..., k], alone, atol=1e-7)
        np.testing.assert_allclose(path.model(k).predict(convert(X_new)), alone, atol=1e-7)
        assert path.model(k).alpha == alpha


def test_path_leaves_the_estimator_alone(data):
    X, y, groups, _ = data
    model = RankRLS(0.5)
    path = model.path(X, y, groups, alphas=[1.0, 2.0])
    assert model.alpha == 0.5
    assert len(path) == 2
    with pytest.raises(NotFittedError):
        model.predict(X)


@pytest.mark.parametrize("kernel", sorted(PAIRWISE_KERNEL_FUNCTIONS))
def test_every_named_kernel_equals_brute_force(data, kernel):
    X, y, groups, X_new = data
    X, X_new = np.abs(X), np.abs(X_new)  # the chi² kernels want histograms
    named = {"coef0": 0.5, "degree": 2}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # the sigmoid is indefinite; see below
        model = RankRLS(0.1, kernel=kernel, **named).fit(X, y, groups)
    K = pairwise_kernels(X, metric=kernel, filter_params=True, **named)
    K_new = pairwise_kernels(X_new, X, metric=kernel, filter_params=True, **named)
    a = oracle.rank_rls(oracle.score_edges(y, groups), K, 0.1)
    np.testing.assert_allclose(centred(model.predict(X_new)), centred(K_new @ a), atol=1e-8)


def test_a_callable_kernel_equals_the_named_one(data):
    X, y, groups, X_new = data

    def gaussian(a, b, width):
        return np.exp(-width * np.sum((a - b) ** 2))

    named = RankRLS(0.1, kernel="rbf", gamma=0.3).fit(X, y, groups).predict(X_new)
    called = RankRLS(0.1, kernel=gaussian, kernel_params={"width": 0.3}).fit(X, y, groups)
    np.testing.assert_allclose(called.predict(X_new), named, atol=1e-12)


def test_fitting_does_not_change_a_precomputed_matrix(data):
    X, y, groups, _ = data
    K = rbf(X, X)
    before = K.copy()
    RankRLS(kernel="precomputed").fit(K, y, groups)
    np.testing.assert_array_equal(K, before)


def test_indefinite_kernel_warns_and_finds_the_stationary_point(data):
    X, y, groups, _ = data
    K = rbf(X, X) - 0.5 * np.eye(M)
    for alphas in ([1e-4], [1e-4, 2e-4]):
        with pytest.warns(UserWarning, match="not positive semidefinite"):
            path = RankRLS(kernel="precomputed").path(K, y, groups, alphas=alphas)
        a = oracle.rank_rls(oracle.score_edges(y, groups), K, 1e-4)
        np.testing.assert_allclose(path.coefficients[0, :, 0], a, rtol=1e-6, atol=1e-9)


def test_more_features_than_rows_gives_the_same_weights_either_way(data):
    _, y, groups, _ = data
    X = np.random.default_rng(0).normal(size=(M, 3 * M)) + 5
    model = RankRLS(0.05).fit(X, y, groups)
    assert model.solver_ == "dual"
    primal = RankRLS(0.05, solver="primal").fit(X, y, groups)
    np.testing.assert_allclose(model.coef_, primal.coef_, atol=1e-10)


@pytest.mark.parametrize("basis", ["random", "kmeans++"])
def test_basis_is_reproducible_by_its_seed(data, basis):
    X, y, groups, _ = data
    model = RankRLS(kernel="rbf", n_basis=6, basis=basis, random_state=3)
    one = model.fit(X, y, groups).basis_indices_
    np.testing.assert_array_equal(one, model.fit(X, y, groups).basis_indices_)
    assert len(set(one)) == 6


def test_rank_rls_is_ridge_with_one_free_intercept_per_group(data):
    X, y, groups, _ = data  # fact 1 of docs/why_it_is_fast.md
    sizes = np.bincount(groups)[groups]
    dummies = np.eye(6)[groups]
    n_pairs = len(oracle.score_edges(y, groups))
    Z = np.hstack([X, dummies * 1e6])  # a huge column makes its weight free of charge
    ridge = Ridge(alpha=0.1 * n_pairs, fit_intercept=False, solver="cholesky")
    ridge.fit(Z, y, sample_weight=sizes)
    np.testing.assert_allclose(RankRLS(0.1).fit(X, y, groups).coef_, ridge.coef_[:P], atol=1e-6)


def test_beta_one_is_plain_regression(data):
    X, y, _, X_new = data
    ridge = Ridge(alpha=0.1 * M, fit_intercept=False).fit(X, y)
    np.testing.assert_allclose(RankRLS(0.1, beta=1).fit(X, y).coef_, ridge.coef_, atol=1e-10)
    kernel_model = RankRLS(0.1, beta=1, kernel="rbf", gamma=0.3).fit(X, y)
    kernel_ridge = KernelRidge(alpha=0.1 * M, kernel="rbf", gamma=0.3).fit(X, y)
    np.testing.assert_allclose(kernel_model.predict(X_new), kernel_ridge.predict(X_new), atol=1e-10)


def test_solution_minimises_the_stated_objective(data):
    X, y, groups, _ = data
    edges = oracle.score_edges(y, groups, "relative", "exclude", "groups")
    model = RankRLS(0.1, cost="relative", group_weight="groups", beta=0.2).fit(X, y, groups)
    best = oracle.objective(edges, X @ model.coef_, model.coef_ @ model.coef_, 0.1, 0.2, y)
    rng = np.random.default_rng(0)
    for _ in range(50):
        w = model.coef_ + 0.01 * rng.normal(size=P)
        assert oracle.objective(edges, X @ w, w @ w, 0.1, 0.2, y) > best


def test_alpha_means_the_same_for_any_amount_of_data(data):
    X, y, groups, X_new = data
    twice = RankRLS(0.1).fit(np.vstack([X, X]), np.r_[y, y], np.r_[groups, groups + 100])
    once = RankRLS(0.1).fit(X, y, groups)
    np.testing.assert_allclose(twice.predict(X_new), once.predict(X_new), atol=1e-10)


@settings(max_examples=25, deadline=None)
@given(seed=st.integers(0, 10**6), offset=st.floats(-1e3, 1e3))
def test_shifting_a_groups_scores_or_permuting_rows_changes_nothing(seed, offset):
    rng = np.random.default_rng(seed)
    X, y, groups = rng.normal(size=(20, 3)), rng.normal(size=20), rng.integers(0, 4, 20)
    model = RankRLS(0.1).fit(X, y, groups)
    moved = RankRLS(0.1).fit(X, y + offset * groups, groups)
    np.testing.assert_allclose(moved.coef_, model.coef_, atol=1e-7)
    order = rng.permutation(20)
    shuffled = RankRLS(0.1).fit(X[order], y[order], groups[order])
    np.testing.assert_allclose(shuffled.coef_, model.coef_, atol=1e-10)


def test_graph_or_structured_target_equal_scores_and_groups(data):
    X, y, groups, _ = data
    plain = RankRLS(cost="sign", group_weight="groups").fit(X, y, groups).coef_
    graph = ScoreGraph(y, groups, cost="sign", group_weight="groups")
    np.testing.assert_array_equal(RankRLS().fit(X, graph).coef_, plain)
    target = make_target(y, groups)
    model = RankRLS(cost="sign", group_weight="groups").fit(X, target)
    np.testing.assert_array_equal(model.coef_, plain)
    assert model.score(X, target) == model.score(X, y, groups) == model.score(X, graph)


def test_items_without_features_are_rated_from_many_edges():
    rng = np.random.default_rng(0)
    n_items, n_edges = 6000, 200_000
    strength = rng.normal(size=n_items)
    i, j = rng.integers(0, n_items, (2, n_edges))
    i, j = i[i != j], j[i != j]
    gap = strength[i] - strength[j] + 0.1 * rng.normal(size=len(i))
    graph = PairGraph(np.where(gap > 0, i, j), np.where(gap > 0, j, i), np.abs(gap), None, n_items)
    model = RankRLS(1e-8).fit(sp.identity(n_items, format="csr"), graph)
    assert model.solver_ == "iterative"
    np.testing.assert_allclose(centred(model.coef_), centred(strength), atol=0.2)
    assert model.score(sp.identity(n_items, format="csr"), graph) > 0.95


def test_ranks_count_the_better_items_of_the_group(data):
    X, y, groups, _ = data
    model = RankRLS().fit(X, np.column_stack([y, -y]), groups)
    X = X.round(0)  # ties among the predictions
    scores, ranks = model.predict(X), model.rank(X, groups)
    for k in range(2):
        np.testing.assert_array_equal(ranks[:, k], oracle.ranks(scores[:, k], groups))
        np.testing.assert_array_equal(model.rank(X)[:, k], oracle.ranks(scores[:, k], None))


def test_score_is_one_minus_the_share_of_wrong_pairs(data):
    X, y, groups, _ = data
    model = RankRLS().fit(X, y, groups)
    f = model.predict(X)
    per_group = []
    for g in np.unique(groups):
        edges = [e for e in oracle.score_edges(y, groups, ties="exclude") if groups[e[0]] == g]
        if edges:
            per_group.append(np.mean([f[i] > f[j] for i, j, *_ in edges]))
    assert model.score(X, y, groups) == pytest.approx(np.mean(per_group))


def test_score_on_explicit_preferences_weighs_the_edges(data):
    X, _, _, _ = data
    graph = PairGraph([0, 1, 2], [1, 2, 3], [1.0, 1.0, 0.0], [3.0, 1.0, 9.0], M)
    model = RankRLS().fit(X, graph)
    f = model.predict(X)
    expected = (3 * (f[0] > f[1]) + 1 * (f[1] > f[2])) / 4
    assert model.score(X, graph) == pytest.approx(expected)


def test_refitting_with_another_kernel_leaves_nothing_behind(data):
    X, y, groups, X_new = data
    model = RankRLS(kernel="rbf", n_basis=5).fit(X, y, groups)
    model.set_params(kernel="linear", n_basis=None).fit(X, y, groups)
    assert not {"X_fit_", "dual_coef_", "basis_indices_"} & set(vars(model))
    np.testing.assert_array_equal(model.predict(X_new), X_new @ model.coef_)
    model.set_params(kernel="rbf").fit(X, y, groups)
    assert "coef_" not in vars(model)


# -- bad input: what came, what was expected, what to do ------------------------------------------


def refuse(message, X, y, groups=None, **options):
    with pytest.raises(ValueError, match=message):
        RankRLS(**options).fit(X, y, groups)


@pytest.mark.parametrize(
    "message, y, groups, options",
    [
        ("y has 25 entries but X has 26 rows", np.arange(25), None, {}),
        ("groups has 25 entries but there are 26 rows", np.arange(M), np.zeros(25), {}),
        ("24 items but X has 26 rows", ScoreGraph(np.arange(24)), None, {}),
        ("pass n_items to PairGraph", PairGraph([0], [1]), None, {}),
        ("scores that differ", np.ones(M), None, {"ties": "exclude"}),
        ("scores that differ", np.ones(M), None, {"cost": "sign"}),
        ("shared by the items to be compared", np.arange(M), np.arange(M), {}),
        ("set the option of the graph", ScoreGraph(np.arange(M)), None, {"cost": "sign"}),
        ("groups was passed as well", ScoreGraph(np.arange(M)), np.zeros(M), {}),
        ("passed as well", make_target(np.arange(M), np.zeros(M)), np.zeros(M), {}),
        ("preferences only", PairGraph([0], [1], n_items=M), None, {"beta": 0.5}),
        ("'event', 'time'", np.zeros(M, dtype=[("event", bool), ("time", float)]), None, {}),
    ],
)
def test_targets_that_cannot_be_are_refused_with_the_reason(data, message, y, groups, options):
    refuse(message, data[0], y, groups, **options)


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_values_that_are_not_finite_are_refused(data, value):
    X, y, groups, _ = data
    y_bad, X_bad = y.copy(), X.copy()
    y_bad[3] = X_bad[3, 1] = value
    refuse("Input y contains", X, y_bad, groups)
    refuse("X contains", X_bad, y, groups)


@pytest.mark.parametrize("alpha", [-1.0, np.nan, np.inf, "much", None])
def test_alpha_must_not_be_negative_and_those_of_a_path_a_flat_list(data, alpha):
    X, y, groups, _ = data
    refuse("alpha", X, y, groups, alpha=alpha)
    with pytest.raises(ValueError, match="alphas"):
        RankRLS().path(X, y, groups, alphas=[1.0, alpha])
    for alphas in ([], [[1.0]], 1.0):
        with pytest.raises(ValueError, match="flat list"):
            RankRLS().path(X, y, groups, alphas=alphas)


@pytest.mark.parametrize(
    "options, message",
    [
        ({"kernel": "gauss"}, "kernel='gauss' is unknown. Choose one of additive_chi2"),
        ({"cost": "hinge"}, "'magnitude', 'sign', 'relative'"),
        ({"ties": "maybe"}, "'include', 'exclude'"),
        ({"group_weight": "size"}, "'pairs', 'groups'"),
        ({"solver": "svd"}, "'primal'"),
        ({"beta": 1.5}, "from 0"),
        ({"beta": "half"}, "from 0"),
        ({"kernel": "rbf", "gamma": -1.0}, "gamma=-1.0"),
        ({"kernel": "rbf", "kernel_params": {"width": 1}}, "for callable kernels"),
        ({"kernel": "rbf", "solver": "primal"}, "needs explicit features"),
        ({"kernel": "rbf", "n_basis": 27}, "from 1 to 26"),
        ({"kernel": "rbf", "n_basis": 2.5}, "from 1 to 26"),
        ({"kernel": "rbf", "n_basis": 3, "basis": "best"}, "'kmeans\\+\\+'"),
        ({"kernel": "rbf", "basis": [0, 26]}, "names row 26"),
        ({"kernel": "rbf", "basis": [-1, 2]}, "names row -1"),
        ({"kernel": "rbf", "basis": [1, 1]}, "twice"),
        ({"kernel": "rbf", "basis": [0.5]}, "row numbers"),
        ({"kernel": "rbf", "basis": [1, 2], "n_basis": 3}, "names 2 rows"),
        ({"kernel": "rbf", "n_basis": 3, "solver": "dual"}, "solver='primal'"),
        ({"n_basis": 3}, "for kernel models"),
        ({"kernel": "precomputed"}, "square matrix"),
    ],
)
def test_unknown_or_contradictory_parameters_are_refused(data, options, message):
    X, y, groups, _ = data
    refuse(message, X, y, groups, **options)


def test_kernel_matrix_that_would_not_fit_is_refused_before_it_is_allocated(data, monkeypatch):
    X, y, groups, _ = data
    monkeypatch.setattr(memory, "available_bytes", lambda: 8 * M * M - 1)
    refuse("GiB.*pass n_basis", X, y, groups, kernel="rbf")
    RankRLS(kernel="rbf", n_basis=10).fit(X, y, groups)


def test_a_linear_model_too_large_to_factor_is_solved_iteratively(data, monkeypatch):
    X, y, groups, _ = data
    expected = RankRLS().fit(X, y, groups).coef_
    monkeypatch.setattr("rankwise.solvers.methods.available_bytes", lambda: 1)
    model = RankRLS(tol=1e-12).fit(X, y, groups)
    assert model.solver_ == "iterative"
    np.testing.assert_allclose(model.coef_, expected, atol=1e-8)


def test_equal_scores_with_ties_warn_that_nothing_is_preferred(data):
    X, _, groups, _ = data
    with pytest.warns(UserWarning, match="no item is preferred"):
        model = RankRLS().fit(X, np.ones(M), groups)
    assert not model.coef_.any()


def test_a_group_without_pairs_and_a_graph_of_the_same_cost_are_no_errors(data):
    X, y, groups, _ = data
    assert (np.bincount(groups) == 1).any()
    RankRLS(ties="exclude").fit(X, y, groups)
    RankRLS(cost="sign").fit(X, ScoreGraph(y, groups, cost="sign"))


def test_score_refuses_groups_beside_explicit_preferences(data):
    X, _, groups, _ = data
    graph = PairGraph([0], [1], None, None, M)
    model = RankRLS().fit(X, graph)
    with pytest.raises(ValueError, match="which contains its groups"):
        model.score(X, graph, groups)
    with pytest.raises(ValueError, match="no edge of positive magnitude"):
        model.score(X, PairGraph([0], [1], [0.0], None, M))


def test_y_is_left_alone_and_may_be_read_only():
    rng = np.random.default_rng(0)
    X, Y = rng.normal(size=(40, 3)), rng.normal(size=(40, 2))
    before = Y.copy()
    expected = RankRLS().fit(X, Y).coef_
    np.testing.assert_array_equal(Y, before)
    assert Y.flags.writeable
    Y.flags.writeable = False
    np.testing.assert_array_equal(RankRLS().fit(X, Y).coef_, expected)


@pytest.mark.parametrize("ties", ["include", "exclude"])
def test_beta_is_checked_before_the_items_are_read(ties):
    """A large X is validated for seconds, in vain if a parameter is wrong."""
    X = np.full((4, 2), np.nan)
    y = np.array([[1.0, 2], [2, 1], [3, 4], [4, 3]])
    model = RankRLS(beta=2, ties=ties)
    for fit in (model.fit, lambda X, y: model.path(X, y, alphas=[1.0])):
        with pytest.raises(ValueError, match="beta=2"):
            fit(X, y)
