"""SurvivalGraph against explicit pairs, its learners against refits, and bad input."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.metrics.pairwise import rbf_kernel

from rankwise import (
    CoRankRLS,
    RankLogistic,
    RankRLS,
    RankRLSCV,
    RankSVM,
    RankSVMCV,
    ScoreGraph,
    SurvivalGraph,
    View,
)
from rankwise.graphs.pair_blocks import pair_blocks
from rankwise.graphs.violated_pairs import strict_pairs
from rankwise.groups import cumulate_rows
from rankwise.model_selection import cross_val_predict_groups, permutation_test
from rankwise.persistence import load, save
from rankwise.uncertainty import jackknife
from tests import oracle


def survival_problem(rng, n_items=None, *, grouped=None, weighted=None):
    """Times with ties, events, groups and weights, each by lot if not given."""
    n_items = int(rng.integers(2, 40)) if n_items is None else n_items
    grouped = rng.random() < 0.5 if grouped is None else grouped
    weighted = rng.random() < 0.5 if weighted is None else weighted
    time = rng.exponential(size=n_items)
    if rng.random() < 0.5:
        time = np.round(4 * time)
    event = rng.random(n_items) < rng.uniform(0.2, 1.0)
    groups = rng.integers(0, 4, n_items) if grouped else None
    weights = None
    if weighted:
        weights = np.exp(rng.normal(size=n_items)) * (rng.random(n_items) < 0.9)
    return time, event, groups, weights


def comparable_problem(rng, *args, **kwargs):
    """A problem that has a pair, with its explicit edges."""
    while True:
        problem = survival_problem(rng, *args, **kwargs)
        edges = oracle.survival_edges(*problem)
        if edges:
            return problem, edges


@pytest.mark.parametrize("seed", range(400))
def test_all_sums_equal_those_over_explicit_pairs(seed):
    rng = np.random.default_rng(seed)
    problem, edges = comparable_problem(rng)
    graph = SurvivalGraph(*problem)
    m = graph.n_items
    L, d = oracle.laplacian_and_divergence(edges, m)
    scale = np.abs(L).max()
    R = rng.normal(size=(m, 3))
    assert graph.n_pairs == len(edges)
    np.testing.assert_allclose(graph.laplacian(R), L @ R, atol=1e-11 * scale)
    np.testing.assert_allclose(graph.divergence, d, atol=1e-12 * scale)
    np.testing.assert_allclose(graph.gram(R), R.T @ L @ R, atol=1e-10 * scale)
    sparse = sp.csr_array(R * (rng.random(R.shape) < 0.5))
    norms = np.diag(sparse.T @ L @ sparse.toarray())
    np.testing.assert_allclose(graph.sparse_norms(sparse), norms, atol=1e-10 * scale)
    root = graph.root()
    F = root.apply(np.eye(m))
    np.testing.assert_allclose(F @ F.T, L, atol=1e-11 * scale)
    np.testing.assert_allclose(root.adjoint(np.eye(m)), F.T, atol=1e-12 * scale)
    np.testing.assert_allclose(F @ root.solve(d), d, atol=1e-10 * scale)
    r = F.T @ rng.normal(size=m)
    np.testing.assert_allclose(F.T @ root.solve_adjoint(r), r, atol=1e-10 * scale)


@pytest.mark.parametrize("seed", range(40))
def test_the_sweep_finds_the_violated_pairs(seed):
    rng = np.random.default_rng(seed)
    problem, _ = comparable_problem(rng)
    graph = SurvivalGraph(*problem)
    f, v = rng.normal(size=(2, graph.n_items))
    expected = strict_pairs(graph.pairs()).violated(f)
    violated = strict_pairs(graph).violated(f)
    assert violated.weight == pytest.approx(expected.weight, abs=1e-12)
    assert violated.slack == pytest.approx(expected.slack, abs=1e-10)
    np.testing.assert_allclose(violated.divergence, expected.divergence, atol=1e-11)
    np.testing.assert_allclose(violated.laplacian(v), expected.laplacian(v), atol=1e-10)


@pytest.mark.parametrize("seed", range(40))
def test_blocks_of_pairs_are_the_explicit_pairs(seed, monkeypatch):
    rng = np.random.default_rng(seed)
    problem, edges = comparable_problem(rng)
    monkeypatch.setattr("rankwise.graphs.pair_blocks.BLOCK_PAIRS", 7)
    pairs = {}
    for block in pair_blocks(SurvivalGraph(*problem)):
        assert not block.weight_of_second.any()
        items = block.items[block.first], block.items[block.second]
        for winner, loser, weight in zip(*items, block.weight, strict=True):
            if weight > 0:
                pairs[winner, loser] = weight
    assert pairs == pytest.approx({(i, j): omega for i, j, _, omega in edges})


@pytest.mark.parametrize("seed", range(20))
def test_share_of_wrong_pairs_equals_a_double_loop(seed):
    rng = np.random.default_rng(seed)
    problem, _ = comparable_problem(rng)
    graph = SurvivalGraph(*problem)
    F = rng.integers(0, 4, (graph.n_items, 2)).astype(float)
    fold = rng.integers(0, 2, graph.n_items)
    explicit = graph.pairs()
    for options in ({}, {"pooled": True}, {"fold": fold}, {"fold": fold, "pooled": True}):
        np.testing.assert_allclose(
            graph.disagreement(F, **options), explicit.disagreement(F, **options), atol=1e-12
        )


@pytest.mark.parametrize("n_rows", [1, 2, 15, 16, 17, 127, 128, 1000, 1237])
def test_running_sums_of_matrices_equal_cumsum(n_rows):
    rows = np.random.default_rng(0).normal(size=(n_rows, 3))
    forward, backward = rows.copy(), rows.copy()
    cumulate_rows(forward)
    cumulate_rows(backward[::-1])
    np.testing.assert_allclose(forward, np.cumsum(rows, axis=0), atol=1e-11)
    np.testing.assert_allclose(backward, np.cumsum(rows[::-1], axis=0)[::-1], atol=1e-11)


@pytest.mark.parametrize("grouped", [False, True])
@pytest.mark.parametrize("offset, scale", [(0.0, 1.0), (1e6, 1.0), (0.0, 1e12), (0.0, 1e-12)])
def test_gram_of_many_rows_equals_products_with_the_laplacian(grouped, offset, scale):
    rng = np.random.default_rng(3)
    time, event, groups, weights = survival_problem(rng, 3000, grouped=grouped, weighted=True)
    graph = SurvivalGraph(time, event, groups, weights)
    R = rng.normal(size=(3000, 70))
    expected = R.T @ graph.laplacian(R)
    gram = graph.gram(scale * (R + offset)) / scale**2
    np.testing.assert_allclose(gram, expected, atol=1e-8 * np.abs(expected).max())
    np.testing.assert_array_equal(gram, gram.T)


def test_groups_of_very_different_scale_keep_their_digits():
    rng = np.random.default_rng(0)
    time, event, _, _ = survival_problem(rng, 60, grouped=False, weighted=False)
    groups = np.repeat([0, 1, 2], 20)
    V = rng.normal(size=(60, 2)) * np.repeat([1e10, 1e-6, 1e10], 20)[:, None]
    graph = SurvivalGraph(time, event, groups)
    small = np.flatnonzero(groups == 1)
    alone = graph.subset(small)
    np.testing.assert_allclose(graph.laplacian(V)[small], alone.laplacian(V[small]), rtol=1e-9)
    whitened = graph.root().adjoint(V)[small]
    np.testing.assert_allclose(whitened, alone.root().adjoint(V[small]), rtol=1e-9, atol=1e-16)


def test_an_event_and_a_censored_item_of_the_same_time_are_a_pair_but_two_events_are_not():
    pairs = SurvivalGraph([2, 2, 2, 1], [1, 1, 0, 0]).pairs()
    assert set(zip(pairs.winner.tolist(), pairs.loser.tolist(), strict=True)) == {(2, 0), (2, 1)}


def test_without_censoring_it_is_the_graph_of_scores_without_ties():
    rng = np.random.default_rng(0)
    time, groups = rng.integers(0, 9, 50).astype(float), rng.integers(0, 3, 50)
    graph = SurvivalGraph(time, np.ones(50), groups)
    scores = ScoreGraph(time, groups, cost="sign")
    V = rng.normal(size=(50, 2))
    np.testing.assert_allclose(graph.laplacian(V), scores.laplacian(V), atol=1e-10)
    np.testing.assert_allclose(graph.divergence, scores.divergence)


def test_items_without_follow_up_are_in_no_pair():
    time, event = [np.nan, 3.0, 1.0, 0.0, np.nan], [0, 0, 1, 1, 0]
    graph = SurvivalGraph(time, event)
    assert graph.n_pairs == 3
    np.testing.assert_array_equal(graph.degrees > 0, [False, True, True, True, False])


def test_a_million_items_need_linear_memory():
    rng = np.random.default_rng(0)
    m = 1_000_000
    time, event = rng.exponential(size=m), rng.random(m) < 0.5
    v = rng.normal(size=m)
    tracemalloc.start()
    graph = SurvivalGraph(time, event)
    product, white = graph.laplacian(v), graph.root().adjoint(v)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 200 * 8 * m
    assert white @ white == pytest.approx(v @ product, rel=1e-9)


# -- learners -----------------------------------------------------------------------------------

ALPHA = 0.05
N, P = 60, 4


@pytest.fixture(params=["one list", "hospitals", "weights"])
def data(request):
    rng = np.random.default_rng(5)
    X = rng.normal(size=(N, P))
    time = np.round(8 * np.exp(X[:, 0] + 0.5 * rng.normal(size=N)))
    event = rng.random(N) < 0.7
    groups = None if request.param == "one list" else np.arange(N) % 5
    weights = rng.uniform(0.5, 2.0, N) if request.param == "weights" else None
    edges = oracle.survival_edges(time, event, groups, weights)
    return X, SurvivalGraph(time, event, groups, weights), edges


def test_rank_rls_equals_the_dense_solution_over_explicit_pairs(data):
    X, graph, edges = data
    dual = oracle.rank_rls(edges, X @ X.T, ALPHA)
    for solver in ("primal", "dual", "iterative"):
        model = RankRLS(ALPHA, solver=solver, tol=1e-10).fit(X, graph)
        np.testing.assert_allclose(model.coef_, X.T @ dual, rtol=1e-6)
    K = rbf_kernel(X, gamma=0.3)
    model = RankRLS(ALPHA, kernel="rbf", gamma=0.3).fit(X, graph)
    np.testing.assert_allclose(model.predict(X), K @ oracle.rank_rls(edges, K, ALPHA), atol=1e-8)
    sparse = RankRLS(ALPHA, solver="iterative", tol=1e-10).fit(sp.csr_matrix(X), graph)
    np.testing.assert_allclose(sparse.coef_, X.T @ dual, rtol=1e-6)


@pytest.mark.parametrize("options", [{}, {"kernel": "rbf"}, {"kernel": "rbf", "n_basis": 20}])
def test_left_out_hospitals_are_predicted_as_by_refits(data, options):
    X, graph, _ = data
    if graph.n_groups == 1:
        pytest.skip("one list")
    model = RankRLS(ALPHA, random_state=0, **options)
    held_out = cross_val_predict_groups(model, X, graph, cv=None)
    for g in range(graph.n_groups):
        test = np.flatnonzero(graph.groups == g)
        train = np.flatnonzero(graph.groups != g)
        if "n_basis" in options:  # the basis of all data
            basis = model.fit(X, graph).X_fit_
            refit = RankRLS(ALPHA, kernel="rbf", basis=basis)
        else:
            refit = RankRLS(ALPHA, **options)
        expected = refit.fit(X[train], graph.subset(train)).predict(X[test])
        np.testing.assert_allclose(held_out[test], expected, atol=1e-7)


def test_folds_of_items_are_refits(data):
    X, graph, _ = data
    one_list = SurvivalGraph(graph.time, graph.event, sample_weight=graph.item_weights)
    folds = [np.arange(k, N, 4) for k in range(4)]
    splits = [(np.setdiff1d(np.arange(N), fold), fold) for fold in folds]
    held_out = cross_val_predict_groups(RankRLS(ALPHA), X, one_list, cv=splits)
    for train, test in splits:
        refit = RankRLS(ALPHA).fit(X[train], one_list.subset(train))
        np.testing.assert_allclose(held_out[test], refit.predict(X[test]), atol=1e-8)


def test_search_selects_by_held_out_pairs_and_refuses_leave_pair_out(data):
    X, graph, _ = data
    search = RankRLSCV().fit(X, graph)
    expected = "leave-group-out" if graph.n_groups > 1 else "folds of items"
    assert search.cv_results_["cv"] == expected
    assert 0 < search.best_score_ < 0.5
    with pytest.raises(ValueError, match="leave-pair-out"):
        RankRLSCV(cv="leave-pair-out").fit(X, graph)
    with pytest.raises(ValueError, match="SurvivalGraph"):
        RankRLSCV(scoring="ndcg@10").fit(X, graph)
    with pytest.raises(ValueError, match="beta"):
        RankRLS(beta=0.5).fit(X, graph)


@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
def test_rank_svm_is_certified_to_be_that_of_the_explicit_pairs(data, loss):
    X, graph, edges = data
    model = RankSVM(ALPHA, loss=loss, tol=1e-8).fit(X, graph)
    _, lower, upper = oracle.rank_svm(edges, X, ALPHA, loss)
    assert model.gap_ <= 1e-8
    assert lower - 1e-8 <= model.objective_ <= upper + 1e-7
    w = model.coef_
    explicit = oracle.margin_objective(edges, X @ w, w @ w, ALPHA, loss)
    assert model.objective_ == pytest.approx(explicit, rel=1e-9)
    assert RankSVMCV(loss=loss).fit(X, graph).best_score_ < 0.5


def test_rank_logistic_is_that_of_the_explicit_pairs(data):
    X, graph, edges = data
    model = RankLogistic(ALPHA, tol=1e-9).fit(X, graph)
    np.testing.assert_allclose(model.coef_, oracle.rank_logistic(edges, X, ALPHA), atol=1e-4)


def test_co_rank_rls_agrees_on_items_without_a_pair(data):
    X, graph, _ = data
    rng = np.random.default_rng(0)
    X_all = np.r_[X, rng.normal(size=(20, P))]
    time = np.r_[graph.time, np.full(20, np.nan)]
    event = np.r_[graph.event, np.zeros(20, dtype=bool)]
    groups = None if graph.n_groups == 1 else np.r_[graph.groups, np.arange(20) % 5]
    weights = None if graph.item_weights is None else np.r_[graph.item_weights, np.ones(20)]
    unlabeled = SurvivalGraph(time, event, groups, weights)
    views = [View([0, 1]), View([2, 3])]
    nu = 0.7
    model = CoRankRLS(ALPHA, nu=nu, views=views).fit(X_all, unlabeled)

    isolated = np.flatnonzero(unlabeled.degrees == 0)
    assert set(range(N, N + 20)) <= set(isolated)
    labels = np.zeros(N + 20) if groups is None else groups
    edges = oracle.survival_edges(time, event, groups, weights)
    L = oracle.laplacian_and_divergence(edges, N + 20)
    total = sum(omega for *_, omega in edges)
    agreement = ScoreGraph(
        np.zeros(len(isolated)),
        labels[isolated],
        sample_weight=None if weights is None else weights[isolated],
    )
    L_bar = agreement.laplacian(np.eye(len(isolated))) / agreement.total_weight
    R = [X_all[:, [0, 1]], X_all[:, [2, 3]]]
    U = [features[isolated] for features in R]
    B = [features.T @ L[0] @ features / total for features in R]
    C = [[2 * left.T @ L_bar @ right for right in U] for left in U]
    A = np.block([[B[0] + nu * C[0][0], -nu * C[0][1]], [-nu * C[1][0], B[1] + nu * C[1][1]]])
    E = np.r_[R[0].T @ L[1], R[1].T @ L[1]] / total
    w = np.linalg.solve(A + ALPHA * np.eye(4), E)
    np.testing.assert_allclose(np.concatenate(model.view_coef_), w, rtol=1e-7)


def test_jackknife_of_hospitals_and_of_patients_equals_refits(data):
    X, graph, _ = data
    errors = jackknife(RankRLS(ALPHA), X, graph)
    expected_units = "groups" if graph.n_groups > 1 else "items"
    assert errors.units == expected_units
    units = graph.groups if graph.n_groups > 1 else np.arange(N)
    full = RankRLS(ALPHA).fit(X, graph).coef_
    deviations = []
    for unit in np.unique(units):
        rest = np.flatnonzero(units != unit)
        if graph.degrees[units == unit].any():
            deviations.append(RankRLS(ALPHA).fit(X[rest], graph.subset(rest)).coef_ - full)
    D = np.array(deviations)
    covariance = (len(D) - 1) / len(D) * D.T @ D
    np.testing.assert_allclose(errors.coefficient_errors, np.sqrt(np.diag(covariance)), rtol=1e-6)


def test_permutations_exchange_times_inside_hospitals(data):
    X, graph, _ = data
    test = permutation_test(RankRLS(ALPHA), X, graph, n_permutations=39, random_state=0)
    assert test.pvalue <= 0.05
    noise = np.random.default_rng(1).normal(size=(N, P))
    assert permutation_test(RankRLS(ALPHA), noise, graph, n_permutations=39).pvalue > 0.05
    with pytest.raises(ValueError, match="PairGraph"):
        permutation_test(RankRLS(ALPHA), X, graph.pairs())


def test_models_are_saved_and_score_is_the_pooled_concordance(data, tmp_path):
    X, graph, edges = data
    for model in (RankRLS(ALPHA), RankSVM(ALPHA), RankRLS(ALPHA, kernel="rbf", n_basis=9)):
        model.fit(X, graph)
        save(model, tmp_path / "model.zip")
        again = load(tmp_path / "model.zip")
        np.testing.assert_array_equal(again.predict(X), model.predict(X))
        f = model.predict(X)
        right = sum(w * ((f[i] > f[j]) + 0.5 * (f[i] == f[j])) for i, j, _, w in edges)
        assert model.score(X, graph) == pytest.approx(right / sum(w for *_, w in edges))


def test_weights_of_fit_multiply_those_of_the_graph(data):
    X, graph, _ = data
    factor = np.random.default_rng(0).uniform(0.5, 2, N)
    before = np.ones(N) if graph.item_weights is None else graph.item_weights
    labels = None if graph.n_groups == 1 else graph.groups
    combined = SurvivalGraph(graph.time, graph.event, labels, before * factor)
    np.testing.assert_allclose(
        RankRLS(ALPHA).fit(X, graph, sample_weight=factor).coef_,
        RankRLS(ALPHA).fit(X, combined).coef_,
        rtol=1e-9,
    )


# -- bad input ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "time, event, message",
    [
        ([1, 2, 3], [0, 0, 0], "no event"),
        ([2, 2, 2], [1, 1, 1], "all times are 2"),
        ([1, 2], [0, 1], "observed for longer"),
        ([1, -2, 3], [1, 1, 1], r"time\[1\]"),
        ([1, np.inf, 3], [1, 1, 1], r"time\[1\]"),
        ([1, np.nan, 3], [1, 1, 1], r"time\[1\]"),
        ([1, 2, 3], [1, 2, 0], r"event\[1\]"),
        ([1, 2, 3], [1, np.nan, 0], r"event\[1\]"),
        ([1, 2, 3], [1, 0], "event has shape"),
        ([[1, 2, 3]], [[1, 0, 1]], "time has shape"),
        ([], [], "time has shape"),
    ],
)
def test_impossible_times_and_events_are_refused(time, event, message):
    with pytest.raises(ValueError, match=message):
        SurvivalGraph(time, event)


def test_left_truncation_is_refused_by_name():
    with pytest.raises(ValueError, match="left truncation"):
        SurvivalGraph([1, 2], [1, 1], entry=[0, 1])
