"""Intervals of leaderboards by the jackknife: closed forms against refits without each unit."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from rankwise import PairGraph, RankRLS
from rankwise.leaderboard import rate
from rankwise.leaderboard.algebra import comparison_counts, leave_comparison_out, rating_system
from rankwise.leaderboard.algebra.rating_system import RatingSystem
from rankwise.leaderboard.models.least_squares_model import LeastSquares
from rankwise.leaderboard.render import footnotes
from tests.leaderboard.data import (
    consistent_games,
    count_comparisons,
    graphs,
    quiet_rate,
    random_games,
)

ALPHA = 1e-3


def refitted(graph, alpha, X, kept):
    """Ratings from the kept comparisons alone, with the λ of all of them."""
    parts = (graph.winner, graph.loser, graph.magnitude, graph.weight)
    part = PairGraph(*(values[kept] for values in parts), n_items=graph.n_items)
    items = np.eye(graph.n_items) if X is None else X
    scores = RankRLS(alpha * graph.total_weight / part.total_weight).fit(items, part).predict(items)
    return scores - scores.mean()


def covariance_by_refits(graph, alpha, X, units):
    n_units = units.max() + 1
    whole = refitted(graph, alpha, X, slice(None))
    changes = [refitted(graph, alpha, X, units != u) - whole for u in range(n_units)]
    return (n_units - 1) / n_units * np.transpose(changes) @ changes


def spread_of(graph, alpha=ALPHA, X=None, clusters=None):
    model, thin = LeastSquares(count_comparisons(graph), X), np.zeros(graph.n_items, bool)
    return model.fit(alpha).covariance(clusters, thin)


def assert_covariance(spread, expected):
    np.testing.assert_allclose(
        spread.root @ spread.root.T, expected, atol=1e-8 * expected.diagonal().max()
    )


# -- against refits -----------------------------------------------------------------------------


@pytest.mark.parametrize("n_features", [None, 3, 12])
@pytest.mark.parametrize("alpha", [1e-8, 1e-3, 0.3])
def test_leaving_out_each_comparison_equals_refits(n_features, alpha):
    graph = random_games(weights=(0.5, 1.0, 4.0))
    X = np.random.default_rng(1).standard_normal((7, n_features)) if n_features else None
    expected = covariance_by_refits(graph, alpha, X, np.arange(graph.n_pairs))
    spread = spread_of(graph, alpha, X)
    assert_covariance(spread, expected)
    assert (spread.freedom, spread.is_from_draws) == (graph.n_pairs - 1, False)


@pytest.mark.parametrize("n_features", [None, 3, 12])
@pytest.mark.parametrize("n_clusters", [2, 5, 40])
def test_leaving_out_each_cluster_equals_refits(n_features, n_clusters):
    graph = random_games(n_games=80, weights=(1.0, 2.0))
    X = np.random.default_rng(1).standard_normal((7, n_features)) if n_features else None
    rng = np.random.default_rng(2)
    clusters = rng.permutation(np.arange(graph.n_pairs) % n_clusters)
    expected = covariance_by_refits(graph, ALPHA, X, clusters)
    spread = spread_of(graph, ALPHA, X, clusters)
    assert_covariance(spread, expected)
    assert spread.freedom == n_clusters - 1


def test_a_cluster_without_which_items_are_unknown_equals_a_refit():
    games = random_games()
    ends = np.r_[games.winner, 7, 7], np.r_[games.loser, 0, 1]
    graph = PairGraph(*ends, np.r_[games.magnitude, 1, 2])
    clusters = np.r_[np.arange(games.n_pairs) % 6, 6, 6]
    for alpha in (1e-8, 1e-3):
        expected = covariance_by_refits(graph, alpha, None, clusters)
        spread = spread_of(graph, alpha, None, clusters)
        np.testing.assert_allclose(spread.root @ spread.root.T, expected, rtol=1e-5, atol=1e-6)


@settings(max_examples=20, deadline=None)
@given(graphs())
def test_clusters_of_one_comparison_are_no_clusters(graph):
    single = spread_of(graph, 0.1)
    clustered = spread_of(graph, 0.1, clusters=np.arange(graph.n_pairs))
    np.testing.assert_allclose(single.errors, clustered.errors, atol=1e-5)


@settings(max_examples=20, deadline=None)
@given(graphs())
def test_standard_errors_do_not_depend_on_the_order_of_the_items(graph):
    turn = np.arange(graph.n_items)[::-1]
    other = PairGraph(
        turn[graph.winner], turn[graph.loser], graph.magnitude, graph.weight, graph.n_items
    )
    errors = [spread_of(g).errors for g in (graph, other)]
    np.testing.assert_allclose(errors[0], errors[1][turn], atol=1e-5 * (1 + errors[0].max()))


@pytest.mark.parametrize("scale", [1e-12, 1e12])
def test_standard_errors_have_the_unit_of_the_margins_and_none_of_the_weights(scale):
    graph = random_games(weights=(1.0, 3.0))
    parts = graph.winner, graph.loser
    errors = spread_of(graph).errors
    margins = PairGraph(*parts, scale * graph.magnitude, graph.weight)
    weights = PairGraph(*parts, graph.magnitude, scale * graph.weight)
    np.testing.assert_allclose(spread_of(margins).errors, scale * errors)
    np.testing.assert_allclose(spread_of(weights).errors, errors)


# -- unknowns of very different size --------------------------------------------------------------


def errors_by_dense_refits(D, target, penalty):
    """Standard errors of the unknowns of ridge regression, refitted without each row."""
    n = len(target)

    def solution(rows):
        gram = D[rows].T @ D[rows] + np.diag(penalty)
        return np.linalg.solve(gram, D[rows].T @ target[rows])

    every = np.arange(n)
    changes = [solution(np.delete(every, k)) - solution(every) for k in range(n)]
    return np.sqrt((n - 1) / n * np.sum(np.square(changes), axis=0))


def games_by_two_features():
    rng = np.random.default_rng(0)
    Z = rng.normal(size=(12, 2))
    first = rng.integers(12, size=400)
    second = (first + rng.integers(1, 12, size=400)) % 12
    is_win = (Z[first] - Z[second]).sum(axis=1) + rng.logistic(size=400) > 0
    winner, loser = np.where(is_win, first, second), np.where(is_win, second, first)
    return PairGraph(winner, loser), Z


@pytest.mark.parametrize("unit", [1.0, 1e6, 1e7, 1e-7])
def test_errors_do_not_depend_on_the_units_of_the_features(unit):
    graph, Z = games_by_two_features()
    D = Z[graph.winner] - Z[graph.loser]
    expected = errors_by_dense_refits(D, np.ones(len(D)), np.zeros(2))
    spread = spread_of(graph, 1e-20, Z * [unit, 1.0])
    centered = Z - Z.mean(axis=0)
    weights = np.linalg.lstsq(centered, spread.root, rcond=None)[0]
    np.testing.assert_allclose(np.linalg.norm(weights, axis=1), expected, rtol=1e-5)


@pytest.mark.parametrize("alpha", [1e-8, 1.0, 1e6])
def test_errors_of_ratings_do_not_depend_on_those_of_a_covariate(alpha):
    graph, _ = games_by_two_features()
    z = np.random.default_rng(1).normal(size=400)
    board = rate(graph, model="least-squares", alpha=alpha, covariates={"z": z})
    rows = np.arange(400)
    D = np.zeros((400, 13))
    D[rows, graph.winner], D[rows, graph.loser] = 1.0, -1.0
    D[:, 12] = z
    penalty = np.append(np.full(12, 400 * alpha), 1e-10)
    expected = errors_by_dense_refits(D, np.ones(400), penalty)
    np.testing.assert_allclose(board.spread.errors, expected[:12], rtol=1e-5)
    assert board.effects[0].error == pytest.approx(expected[12], rel=1e-5)


def test_the_root_of_a_singular_covariance_has_its_variances_in_every_unit():
    changes = np.random.default_rng(0).normal(size=(6, 3))
    units = np.array([1e8, 1.0, 1e-8, 1.0, 1e-3, 0.0])[:, None] * changes
    V = units @ units.T
    root = leave_comparison_out.factor_covariance(V)
    errors = np.sqrt(V.diagonal())
    np.testing.assert_allclose(np.linalg.norm(root, axis=1), errors, rtol=1e-10)
    np.testing.assert_allclose(root @ root.T, V, atol=1e-7 * np.outer(errors, errors).max())
    assert not leave_comparison_out.factor_covariance(np.zeros((3, 3))).any()


# -- comparisons that no other one checks ---------------------------------------------------------


def test_an_item_with_one_comparison_is_as_unsure_as_one_comparison():
    games = consistent_games(np.array([0.5, 0.0, -0.5]), 400, seed=0)
    graph = PairGraph(
        np.r_[games.winner, 0], np.r_[games.loser, 3], np.r_[games.magnitude, 0.5]
    )  # 3 lost to 0 once
    board = rate(graph)
    error = board.spread.error_of_difference(0, 3)
    assert error == pytest.approx(1.0, rel=0.1)  # the noise of one comparison
    assert board[3].best_rank < board[3].worst_rank
    assert spread_of(games, 1e-8).errors.max() < 0.1


@pytest.mark.parametrize("alpha", [1e-8, 1e-4])
def test_a_tree_of_comparisons_settles_nothing(alpha):
    margin = rate(PairGraph([0], [1])).expected_margin(0, 1)
    assert margin.low < -1 < 3 < margin.high
    board = rate(PairGraph([0, 1], [1, 2]), alpha=alpha)
    assert all(row.low < 0 < row.high for row in board)
    assert all((row.best_rank, row.worst_rank) == (1, 3) for row in board)


# -- very many items ----------------------------------------------------------------------------


@pytest.mark.parametrize("alpha", [1e-8, 0.05])
@pytest.mark.parametrize("clustered", [False, True])
def test_draws_estimate_the_exact_standard_errors(alpha, clustered, monkeypatch):
    graph = consistent_games(np.linspace(-1, 1, 60), 600, seed=0)
    clusters = np.arange(graph.n_pairs) // 3 if clustered else None
    exact = spread_of(graph, alpha, clusters=clusters)
    monkeypatch.setattr(rating_system, "COVARIANCE_LIMIT", 10)
    monkeypatch.setattr(leave_comparison_out, "N_DRAWS", 2000)
    monkeypatch.setattr(leave_comparison_out, "N_SKETCHES", 1000)
    drawn = spread_of(graph, alpha, clusters=clusters)
    assert drawn.is_from_draws
    ratio = drawn.errors / exact.errors
    assert ratio.mean() == pytest.approx(1, abs=0.02 if clusters is None else 0.06)
    assert np.abs(ratio - 1).max() < (0.1 if clusters is None else 0.3)


def test_draws_are_honest_about_items_with_one_comparison(monkeypatch):
    games = consistent_games(np.zeros(50), 500, seed=0)
    graph = PairGraph(
        np.r_[games.winner, 50, 51], np.r_[games.loser, 0, 50], np.r_[games.magnitude, 1, 1]
    )
    monkeypatch.setattr(rating_system, "COVARIANCE_LIMIT", 10)
    drawn = spread_of(graph, 1e-8)
    assert drawn.errors[50] == pytest.approx(1.0, rel=0.25)
    assert drawn.errors[51] == pytest.approx(2**0.5, rel=0.25)


@pytest.mark.parametrize("alpha", [1e-8, 0.1])
def test_sketched_leverages_approach_the_exact_ones(alpha, monkeypatch):
    graph = random_games(n_items=30, n_games=90, weights=(1.0, 3.0))
    system = RatingSystem(count_comparisons(graph))
    weights = system.counts.pair_weights
    shift = alpha * graph.total_weight
    inverse = np.linalg.inv(system.regularized_gram(weights, shift))
    B = system.incidence.toarray()
    exact = weights * np.einsum("ij,jk,ik->i", B, inverse, B)
    monkeypatch.setattr(leave_comparison_out, "N_SKETCHES", 4000)
    found = leave_comparison_out._sketched_leverages(
        system, weights, shift, np.random.default_rng(0)
    )
    bound = 5 * np.sqrt(2 / 4000) * np.minimum(exact, 1 - exact)
    assert (np.abs(found - exact) < bound + 1e-4).all()


def test_the_footnotes_say_what_was_estimated(monkeypatch):
    graph = random_games()
    said = "58 comparisons of 7 items by least-squares, alpha 1e-08; jackknife"
    assert said in footnotes(rate(graph))
    clustered = rate(graph, clusters=np.arange(graph.n_pairs) % 9)
    assert f"{said} over 9 clusters" in footnotes(clustered)
    monkeypatch.setattr(rating_system, "COVARIANCE_LIMIT", 5)
    assert f"{said} estimated from 200 draws" in footnotes(rate(graph))


# -- the board ----------------------------------------------------------------------------------


def test_intervals_margins_and_shares_are_those_of_student():
    graph = random_games()
    board = rate(graph, confidence=0.9)
    covariance = covariance_by_refits(graph, 1e-8, None, np.arange(graph.n_pairs))
    freedom = graph.n_pairs - 1
    t = stats.t.ppf(0.95, freedom)
    for k in range(7):
        width = t * covariance[k, k] ** 0.5
        assert (board[k].high, board[k].low) == pytest.approx(
            (board.ratings[k] + width, board.ratings[k] - width), rel=1e-5
        )
    error = (covariance[2, 2] + covariance[5, 5] - 2 * covariance[2, 5]) ** 0.5
    margin = board.expected_margin(2, 5)
    assert margin.high - margin.value == pytest.approx(t * error, rel=1e-5)
    assert margin.value - margin.low == pytest.approx(t * error, rel=1e-5)
    assert board.above(2, 5) == pytest.approx(stats.t.cdf(margin.value / error, freedom), rel=1e-5)
    assert board.above(2, 5) + board.above(5, 2) == pytest.approx(1)
    assert board.above(2, 2) == 0.5
    assert board.to_dict()["intervals"] == board.intervals == "jackknife"


@settings(max_examples=20, deadline=None)
@given(graphs(), st.sampled_from([1e-8, 0.1]))
def test_every_board_has_finite_intervals_around_its_ratings(graph, alpha):
    for row in quiet_rate(graph, alpha=alpha):
        if not row.n:
            assert (row.rank, row.low, row.high, row.best_rank) == (None, None, None, None)
            continue
        assert np.isfinite([row.low, row.high]).all()
        assert row.low <= row.rating <= row.high
        assert 1 <= row.best_rank <= row.worst_rank


def coverage(n_items, n_games, n_runs, n_judges=None):
    """Share of the true ratings inside 95 % intervals."""
    inside = []
    for seed in range(n_runs):
        rng = np.random.default_rng(seed)
        truth = 0.3 * rng.standard_normal(n_items)
        truth -= truth.mean()
        i = np.r_[np.arange(n_items), rng.integers(n_items, size=n_games - n_items)]
        j = (i + 1 + rng.integers(n_items - 1, size=n_games)) % n_items
        margin = truth[i] - truth[j] + rng.standard_normal(n_games)
        judge = None
        if n_judges:
            judge = rng.integers(n_judges, size=n_games)
            taste = 0.5 * rng.standard_normal((n_judges, n_items))
            margin += taste[judge, i] - taste[judge, j]
        won, lost = np.where(margin > 0, i, j), np.where(margin > 0, j, i)
        games = PairGraph(won, lost, np.abs(margin), n_items=n_items)
        board = quiet_rate(games, clusters=judge)
        width = board.spread.quantile(0.975) * board.spread.errors
        inside.append(np.abs(board.ratings - truth) <= width)
    return np.mean(inside)


@pytest.mark.slow
@pytest.mark.parametrize(
    "setting",
    [(10, 300), (40, 200), (8, 40), (10, 600, 15)],
    ids=["balanced", "sparse", "few", "15 judges"],
)
def test_intervals_cover_in_different_settings(setting):
    n_items, n_games, *judges = setting
    assert 0.925 <= coverage(n_items, n_games, 100, *judges) <= 0.975


# -- counting -----------------------------------------------------------------------------------


@pytest.mark.parametrize("largest", [2**62, 2**12, 2])
@settings(max_examples=20, deadline=None)
@given(graphs())
def test_a_tally_counts_what_a_dictionary_counts(largest, graph):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(comparison_counts, "LARGEST_CODE", largest)
        found = count_comparisons(graph)
    counts = {}
    for k in range(graph.n_pairs):
        i, j, target = graph.winner[k], graph.loser[k], graph.magnitude[k]
        key = (i, j, target, graph.weight[k]) if i < j else (j, i, -target, graph.weight[k])
        counts[key] = counts.get(key, 0) + 1
        c = found.outcome_of_comparison[k]
        p = found.pair_of_outcome[c]
        assert (found.first[p], found.second[p], found.target[c], found.weight[c]) == key
    assert len(counts) == len(found.count)
    assert sorted(counts.values()) == sorted(found.count)
    pairs = list(zip(found.first.tolist(), found.second.tolist(), strict=True))
    assert pairs == sorted({key[:2] for key in counts})
    assert (np.diff(found.pair_of_outcome) >= 0).all()


@settings(max_examples=25, deadline=None)
@given(graphs())
def test_components_are_those_of_the_graph_by_size(graph):
    found = count_comparisons(graph).components
    same = graph.components[:, None] == graph.components
    np.testing.assert_array_equal(found[:, None] == found, same)
    sizes = np.bincount(found)[1:]
    assert (np.diff(sizes) <= 0).all()
    assert sizes.all()
