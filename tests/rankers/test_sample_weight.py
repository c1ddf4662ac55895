"""Weights of items: a pair weighs the product of its two, in every learner and its hold-out."""

from __future__ import annotations

import inspect

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone

from rankwise import (
    CoRankRLS,
    PairGraph,
    RankingPursuit,
    RankLogistic,
    RankRLS,
    RankRLSCV,
    RankSVM,
    ScoreGraph,
    View,
    make_target,
)
from rankwise.metrics import disagreement_error, ndcg
from rankwise.model_selection import (
    cross_validate_candidates,
    leave_group_out_predict,
    leave_pair_out,
    permutation_test,
)
from rankwise.model_selection.shortcuts import HoldOutUnits
from tests import oracle

M, P = 28, 4
ALPHAS = np.array([1e-2, 1.0])
pytestmark = pytest.mark.filterwarnings("ignore:the best")


@pytest.fixture
def data():
    """X, whole-numbered y, groups and weights of very different size, some of them 0."""
    rng = np.random.default_rng(5)
    X = rng.normal(size=(M, P)) + 2.0
    y = np.round(X[:, 0] - X[:, 1] + rng.normal(size=M))
    groups = rng.permutation(np.repeat(np.arange(6), [2, 3, 4, 5, 6, 8]))
    weights = np.exp(rng.normal(size=M))
    weights[rng.permutation(M)[:4]] = 0.0
    return X, y, groups, weights


def edges_of(y, groups, weights, cost="magnitude", ties="include", group_weight="pairs"):
    return oracle.score_edges(y, groups, cost, ties, group_weight, weights)


LEARNERS = {
    "RankRLS": lambda **options: RankRLS(0.1, **options),
    "RankRLS, rbf": lambda **options: RankRLS(0.1, kernel="rbf", gamma=0.5, **options),
    "RankRLS, beta": lambda **options: RankRLS(0.1, beta=0.3, **options),
    "RankLogistic": lambda **_: RankLogistic(0.1, tol=1e-12),
    "RankSVM": lambda **_: RankSVM(0.1, tol=1e-9, solver="newton-cg", loss="squared_hinge"),
    "CoRankRLS": lambda **options: CoRankRLS(
        0.1, views=2, n_basis=5, kernel="rbf", gamma=0.5, random_state=0, **options
    ),
    "RankingPursuit": lambda **options: RankingPursuit(
        n_basis=4, dictionary="features", kernel="linear", **options
    ),
    "RankingPursuit, beta": lambda **options: RankingPursuit(
        n_basis=4, dictionary="features", kernel="linear", beta=0.5, **options
    ),
}


SLACK = {"RankSVM": 1e-4}  # |w − w*|² ≤ gap/α, and the gap is 1e-9


@st.composite
def small_lists(draw):
    """A few items in groups with weights of any scale; no group but one may be weightless."""
    n = draw(st.integers(8, 20))
    rng = np.random.default_rng(draw(st.integers(0, 2**20)))
    X = rng.normal(size=(n, 3))
    y = rng.integers(0, 4, n).astype(float)
    groups = rng.integers(0, 3, n)
    groups[:4], y[:4] = 0, [0, 1, 2, 3]
    weights = np.exp(rng.normal(size=n) * draw(st.sampled_from([0.0, 1.0, 3.0])))
    return X, y, groups, weights, rng


@pytest.mark.parametrize("name", [name for name in LEARNERS if name != "CoRankRLS"])
@pytest.mark.parametrize("cost", ["magnitude", "sign"])
@settings(max_examples=8)
@given(case=small_lists())
def test_a_row_of_weight_zero_is_absent(name, cost, case):
    X, y, groups, weights, rng = case
    weights[4:][rng.random(len(y) - 4) < 0.4] = 0.0
    seen = weights > 0
    with_zeros = LEARNERS[name](cost=cost).fit(X, y, groups, sample_weight=weights)
    without = LEARNERS[name](cost=cost).fit(
        X[seen], y[seen], groups[seen], sample_weight=weights[seen]
    )
    expected = without.predict(X)
    atol = SLACK.get(name, 1e-6) * np.ptp(expected)
    np.testing.assert_allclose(with_zeros.predict(X), expected, atol=atol)


def test_a_row_of_weight_zero_is_absent_from_views():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(30, 4)), rng.normal(size=30)
    y[20:] = np.nan
    weights = rng.uniform(0.5, 2, 30) * (rng.random(30) < 0.7)
    seen = weights > 0
    views = [View(slice(0, 2)), View(slice(2, 4))]
    model = CoRankRLS(0.1, nu=2.0, views=views)
    found = model.fit(X, y, sample_weight=weights).predict(X)
    expected = clone(model).fit(X[seen], y[seen], sample_weight=weights[seen]).predict(X)
    np.testing.assert_allclose(found, expected, atol=1e-9)


@pytest.mark.parametrize("name", [name for name in LEARNERS if name != "CoRankRLS"])
@settings(max_examples=6)
@given(case=small_lists())
def test_without_ties_a_whole_weight_is_that_many_copies(name, case):
    """With ``ties="exclude"`` (or cost="sign") the copies of an item make no pair."""
    X, y, groups, _, rng = case
    counts = np.r_[np.ones(4, int), rng.integers(0, 4, len(y) - 4)]
    repeated = np.repeat(np.arange(len(y)), counts)
    weighted = LEARNERS[name](ties="exclude").fit(X, y, groups, sample_weight=counts)
    copied = LEARNERS[name](ties="exclude").fit(X[repeated], y[repeated], groups[repeated])
    expected = copied.predict(X)
    atol = SLACK.get(name, 1e-6) * np.ptp(expected)
    np.testing.assert_allclose(weighted.predict(X), expected, atol=atol)


@settings(max_examples=20)
@given(case=small_lists())
def test_with_ties_pairs_of_copies_count_in_the_total_weight_only(case):
    """Their loss is zero, but W of the copies is larger: the same model has a larger alpha W."""
    X, y, groups, _, rng = case
    counts = rng.integers(1, 4, len(y))
    repeated = np.repeat(np.arange(len(y)), counts)
    weighted, copied = (
        ScoreGraph(y, groups, sample_weight=counts),
        ScoreGraph(y[repeated], groups[repeated]),
    )
    own = (counts * (counts - 1) / 2).sum()
    assert copied.total_weight == pytest.approx(weighted.total_weight + own)
    alpha = 0.1 * copied.total_weight / weighted.total_weight
    np.testing.assert_allclose(
        RankRLS(alpha).fit(X, y, groups, counts).coef_,
        RankRLS(0.1).fit(X[repeated], y[repeated], groups[repeated]).coef_,
        rtol=1e-7,
        atol=1e-9,
    )


# ---- hold-out


def test_leave_pair_out_takes_no_weights(data):
    X, y, _, weights = data
    with pytest.raises(ValueError, match="sample_weight"):
        leave_pair_out(RankRLS(), X, make_target(y, np.zeros(len(y)), weights))
    assert "sample_weight" not in inspect.signature(leave_pair_out).parameters
    search = RankRLSCV(ALPHAS).fit(X, y, sample_weight=weights)
    assert search.cv_results_["cv"] == "folds of items"


def test_a_search_judges_held_out_groups_with_their_weights(data):
    X, y, groups, weights = data
    search = RankRLSCV(alphas=ALPHAS, scoring="ndcg(gain=linear)").fit(
        X, y - y.min(), groups, sample_weight=weights
    )
    options = {"alphas": ALPHAS, "sample_weight": weights}
    held = leave_group_out_predict(RankRLS(), X, y - y.min(), groups, **options)
    options = {"gain": "linear", "per_group": True, "sample_weight": weights}
    expected = ndcg(y - y.min(), held, groups, undefined="nan", **options)
    np.testing.assert_allclose(search.cv_results_["group_score"][0], expected, atol=1e-7)
    model = RankRLS(search.alpha_).fit(X, y - y.min(), groups, weights)
    np.testing.assert_allclose(search.coef_, model.coef_)


def test_folds_of_weighted_edges_and_groups(data):
    X, _, groups, weights = data
    rng = np.random.default_rng(3)
    winner = rng.integers(0, M, 80)
    loser = (winner + rng.integers(1, M, 80)) % M
    graph = PairGraph(winner, loser, rng.exponential(size=80), groups=groups, n_items=M)
    product = weights[winner] * weights[loser]
    kept = product > 0
    same = PairGraph(
        winner[kept],
        loser[kept],
        graph.magnitude[kept],
        product[kept],
        n_items=M,
        groups=groups,
    )
    np.testing.assert_allclose(
        RankRLS(0.1).fit(X, graph, sample_weight=weights).coef_, RankRLS(0.1).fit(X, same).coef_
    )
    found = leave_group_out_predict(RankRLS(0.1), X, graph, sample_weight=weights)
    np.testing.assert_allclose(found, leave_group_out_predict(RankRLS(0.1), X, same))
    model = RankSVM(0.1).fit(X, graph, sample_weight=weights)
    assert model.n_pairs_ == kept.sum()
    assert model.score(X, graph, sample_weight=weights) == pytest.approx(model.score(X, same))


def test_a_graph_brings_its_weights(data):
    X, y, groups, weights = data
    graph = ScoreGraph(y, groups, sample_weight=weights)
    model = RankRLS(0.1).fit(X, graph)
    np.testing.assert_allclose(model.coef_, RankRLS(0.1).fit(X, y, groups, weights).coef_)
    assert model.score(X, graph) == model.score(X, y, groups, weights)
    twice = RankRLS(0.1).fit(X, graph, sample_weight=weights)
    np.testing.assert_allclose(twice.coef_, RankRLS(0.1).fit(X, y, groups, weights**2).coef_)


def test_permutations_keep_the_weights_with_the_items(data):
    X, y, groups, weights = data
    for some in ({"groups": groups}, {}):
        found = permutation_test(
            RankRLS(0.1), X, y, **some, n_permutations=9, random_state=0, sample_weight=weights
        )
        curves = cross_validate_candidates(
            RankRLS(0.1), X, y, **some, candidates={}, sample_weight=weights
        )
        assert found.score == pytest.approx(np.nanmean(curves.by_group["disagreement"]))


@pytest.mark.parametrize("beta", [0.0, 0.4, 1.0])
@pytest.mark.parametrize("solver", ["primal", "dual"])
@pytest.mark.parametrize("grouped", [True, False])
def test_models_without_each_unit_equal_refits(data, beta, solver, grouped):
    X, y, groups, weights = data
    if not grouped:
        weights, groups = weights + 0.1, None
    model = RankRLS(0.1, beta=beta, solver=solver)
    task = model.hold_out_task(X, make_target(y, groups, weights))
    members = [np.flatnonzero(data[2] == g) for g in range(6)]
    if not grouped:
        members = [np.array([3]), np.array([1, 4, 7])]
    found = task.coefficients_without(HoldOutUnits("items", members), np.array([0.1]))
    for k, U in enumerate(members):
        rest = np.setdiff1d(np.arange(M), U)
        part = None if groups is None else groups[rest]
        fresh = clone(model).fit(X[rest], y[rest], part, weights[rest])
        np.testing.assert_allclose(found[:, k].ravel(), fresh.coef_, atol=1e-8)


# ---- RankSVM


@pytest.mark.parametrize(
    "loss, solver",
    [
        ("hinge", "lbfgs"),
        ("hinge", "bmrm"),
        ("squared_hinge", "newton-cg"),
        ("squared_hinge", "lbfgs"),
    ],
)
@pytest.mark.parametrize("group_weight", ["pairs", "groups"])
def test_rank_svm_reaches_the_minimum_over_weighted_pairs(data, loss, solver, group_weight):
    X, y, groups, weights = data
    edges = edges_of(y, groups, weights, "sign", "exclude", group_weight)
    _, low, high = oracle.rank_svm(edges, X, 0.01, loss)
    model = RankSVM(0.01, loss=loss, solver=solver, group_weight=group_weight, tol=1e-5)
    model.fit(X, y, groups, sample_weight=weights)
    w = model.coef_
    value = oracle.margin_objective(edges, X @ w, w @ w, 0.01, loss)
    assert model.objective_ == pytest.approx(value, rel=1e-9)
    assert model.lower_bound_ <= high * (1 + 1e-9)
    assert low * (1 - 1e-9) <= value <= high * (1 + 2e-5)
    assert model.gap_ <= 1e-5


def test_rank_svm_on_many_weighted_items_is_certified():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(50_000, 3))
    y = X @ [1.0, -1.0, 0.5] + rng.normal(size=len(X))
    weights = np.exp(rng.normal(size=len(X))) * (rng.random(len(X)) < 0.9)
    model = RankSVM(1e-3).fit(X, y, rng.integers(0, 50, len(X)), sample_weight=weights)
    assert 0 <= model.gap_ <= 1e-3


# ---- bad input


@pytest.mark.parametrize(
    "weights, message",
    [
        ([1.0] * (M - 1), r"sample_weight has shape \(27,\) but there are 28 rows"),
        ([[1.0]] * M, r"sample_weight has shape \(28, 1\)"),
        ([1.0] * 5 + [-1.0] * (M - 5), r"sample_weight\[5\] is -1.0; weights must be 0 or larger"),
        ([np.nan] + [1.0] * (M - 1), r"sample_weight\[0\] is nan; weights must be 0 or larger"),
        ([np.inf] + [1.0] * (M - 1), r"sample_weight\[0\] is inf; .* finite"),
        ([0.0] * M, "all sample weights are zero"),
        ([1.0] + [0.0] * (M - 1), "no pair of positive weight"),
        (["a"] * M, "sample_weight"),
    ],
)
@pytest.mark.parametrize("model", [RankRLS(), RankSVM(), RankRLSCV()], ids=str)
def test_bad_weights_are_told_apart(data, model, weights, message):
    X, y, groups, _ = data
    with pytest.raises(ValueError, match=message):
        clone(model).fit(X, y, groups, sample_weight=weights)


def test_weights_are_given_once(data):
    X, y, groups, weights = data
    target = make_target(y, groups, weights)
    with pytest.raises(ValueError, match="contains its groups or weights"):
        RankRLS().fit(X, target, sample_weight=weights)
    with pytest.raises(ValueError, match="make_target"):
        RankRLS().fit(X, target, groups)


def test_a_weightless_group_is_undefined_and_harmless(data):
    X, y, groups, weights = data
    weights = np.where(groups == 5, 0.0, weights)
    found = disagreement_error(
        y, X[:, 0], groups, sample_weight=weights, per_group=True, undefined="nan"
    )
    assert np.isnan(found[5])
    assert np.isfinite(found[4])
    search = RankRLSCV(ALPHAS).fit(X, y, groups, sample_weight=weights)
    assert search.cv_results_["n_undefined"] >= 1
