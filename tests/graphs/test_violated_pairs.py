"""Violated pairs and margin losses against explicit edges."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

from rankwise import PairGraph, ScoreGraph
from rankwise.graphs import violated_pairs
from rankwise.losses import HingeLoss, SquaredHingeLoss, pairwise
from rankwise.solvers import pairwise_objective
from rankwise.solvers.pairwise_objective import estimate_pair_covariance, make_objective
from tests import oracle
from tests.graphs.data import ChampionGraph

M = 14


def scored(seed, **options):
    rng = np.random.default_rng(seed)
    y, groups = rng.integers(0, 4, M).astype(float), rng.integers(0, 3, M)
    edges = oracle.score_edges(y, groups, "sign", group_weight=options.get("group_weight", "pairs"))
    return ScoreGraph(y, groups, **options), edges


def explicit(seed, cost):
    rng = np.random.default_rng(seed)
    winner = rng.integers(0, M, 40)
    loser = (winner + rng.integers(1, M, 40)) % M
    magnitude, weight = rng.integers(cost == "relative", 3, 40) * 1.0, rng.random(40) + 0.1
    graph = PairGraph(winner, loser, magnitude, weight, n_items=M, cost=cost)
    edges = oracle.pair_edges(winner, loser, magnitude, weight, cost)
    return graph, [edge for edge in edges if edge[2] > 0]


def champions(seed):
    rng = np.random.default_rng(seed)
    graph = ChampionGraph(rng.integers(0, 4, M), rng.integers(0, 3, M))
    pairs = graph.pairs()
    edges = oracle.pair_edges(pairs.winner, pairs.loser, pairs.magnitude, pairs.weight)
    return graph, [edge for edge in edges if edge[2] > 0]


CASES = {
    "sign": lambda: scored(0, cost="sign"),
    "magnitude": lambda: scored(1),
    "magnitude without ties": lambda: scored(2, ties="exclude"),
    "groups alike": lambda: scored(3, cost="sign", group_weight="groups"),
    "groups alike, magnitude": lambda: scored(4, group_weight="groups"),
    "edges": lambda: explicit(5, "magnitude"),
    "edges, sign": lambda: explicit(6, "sign"),
    "edges, relative": lambda: explicit(7, "relative"),
    "champions": lambda: champions(8),
}


@pytest.fixture(params=CASES)
def case(request):
    return CASES[request.param]()


@pytest.fixture
def scores():
    """On a grid of tenths: some margins are exactly one, others shorter by rounding."""
    return np.round(np.random.default_rng(8).normal(size=M) * 1.5, 1)


def test_violated_pairs_are_those_that_a_filter_of_the_edges_finds(case, scores):
    graph, edges = case
    preferences = violated_pairs.strict_pairs(graph)
    assert preferences.n_pairs == len(edges)
    assert preferences.total_weight == pytest.approx(sum(w for *_, w in edges))
    f = scores + np.random.default_rng(0).normal(size=M) * 1e-3  # no margin is exactly one
    short = [(i, j, 1.0, w) for i, j, _, w in edges if f[i] - f[j] < 1]
    assert 0 < len(short) < len(edges)
    L, d = oracle.laplacian_and_divergence(short, M)
    violated = preferences.violated(f)
    v = np.random.default_rng(1).normal(size=M) + 5
    assert violated.weight == pytest.approx(sum(w for *_, w in short))
    np.testing.assert_allclose(violated.divergence, d, atol=1e-12)
    np.testing.assert_allclose(violated.laplacian(v), L @ v, atol=1e-12)


def test_scores_far_from_zero_lose_no_digits(case, scores):
    graph, _ = case
    if isinstance(graph, ScoreGraph):
        loss = SquaredHingeLoss(graph)
        shifted = loss.at(scores + 2.0**30)
        assert shifted.value == pytest.approx(loss.at(scores).value, rel=1e-6)


def test_float32_scores_are_compared_exactly():
    graph = ScoreGraph([0, 1])
    f = np.array([-0.1, 0.9], dtype=np.float32)  # differ by a little less than one
    assert violated_pairs.strict_pairs(graph).violated(f).weight == 1


def test_a_sample_has_whole_groups_or_every_so_many_scores(monkeypatch):
    monkeypatch.setattr(pairwise, "MIN_SAMPLE_ITEMS", 10)
    many = ScoreGraph(np.tile([0, 1, 2], 1000), np.repeat(np.arange(1000), 3))
    rows, part = HingeLoss(many).sample(10)
    assert len(rows) == 300
    assert part.graph.n_pairs == 300
    one = ScoreGraph(np.arange(1000) % 50)
    rows, part = SquaredHingeLoss(one).sample(10)
    assert len(rows) == 100
    assert set(one.y[rows]) == set(range(50))
    f = np.random.default_rng(0).normal(size=100)
    expected = SquaredHingeLoss(ScoreGraph(one.y[rows])).at(f)
    assert part.at(f).value == pytest.approx(expected.value, rel=1e-12)
    assert HingeLoss(ScoreGraph([0, 1])).sample(10) is None
    assert HingeLoss(PairGraph([0], [1])).sample(10) is None


def test_weights_of_any_size_are_added_up_without_cancellation():
    """s² − Σ s² of the weights of a list would lose the pairs of all but the heaviest item."""
    y, weight = np.array([0.0, 1.0, 2.0, 2.0]), np.array([1e-4, 1.0, 1e4, 1e4])
    graph = ScoreGraph(y, sample_weight=weight)
    edges = [(i, j, weight[i] * weight[j]) for i in range(4) for j in range(4) if y[i] > y[j]]
    exact = sum(w for *_, w in edges)
    assert violated_pairs.strict_pairs(graph).total_weight == pytest.approx(exact, rel=1e-14)
    f = np.array([0.0, 1.5, 0.1, 3.0])
    value = sum(w * max(0.0, 1 - (f[i] - f[j])) for i, j, w in edges) / exact
    assert HingeLoss(graph).at(f).value == pytest.approx(value, rel=1e-12)


def test_second_moment_is_the_mean_over_the_pairs(case):
    graph, edges = case
    R = np.random.default_rng(5).normal(size=(M, 3))
    truth = sum(w * np.outer(R[i] - R[j], R[i] - R[j]) for i, j, _, w in edges)
    for features in (R, sp.csr_matrix(R)):
        found = estimate_pair_covariance(make_objective(features, HingeLoss(graph), 0.1))
        np.testing.assert_allclose(found, truth / sum(w for *_, w in edges), atol=1e-12)


def test_second_moment_of_many_items_comes_from_a_sample(monkeypatch):
    rng = np.random.default_rng(0)
    R, y, groups = rng.normal(size=(4000, 2)), rng.normal(size=4000), rng.integers(0, 5, 4000)
    objective = make_objective(R, HingeLoss(ScoreGraph(y, groups)), 0.1)
    whole = estimate_pair_covariance(objective)
    monkeypatch.setattr(pairwise_objective, "MAX_COVARIANCE_ITEMS", 500)
    monkeypatch.setattr(pairwise, "MIN_SAMPLE_ITEMS", 100)
    part = estimate_pair_covariance(objective)
    assert not np.array_equal(whole, part)
    np.testing.assert_allclose(part, whole, atol=0.3)
    edges = PairGraph(rng.integers(0, 2000, 4000), rng.integers(2000, 4000, 4000))
    explicit = make_objective(R, HingeLoss(edges), 0.1)
    np.testing.assert_allclose(estimate_pair_covariance(explicit), whole, atol=0.3)


def test_small_and_large_groups_are_sorted_alike(scores, monkeypatch):
    graph, _ = scored(0, cost="sign")
    small = violated_pairs.strict_pairs(graph).violated(scores)
    monkeypatch.setattr(violated_pairs, "SMALL_GROUP", 0)
    large = violated_pairs.strict_pairs(graph).violated(scores)
    np.testing.assert_array_equal(small.divergence, large.divergence)
    np.testing.assert_allclose(small.laplacian(scores), large.laplacian(scores))


def test_relative_costs_of_scores_are_refused():
    graph = ScoreGraph([1.0, 2.0, 4.0], cost="relative")
    with pytest.raises(ValueError, match=r"graph\.pairs\(\)"):
        violated_pairs.strict_pairs(graph)
    assert violated_pairs.strict_pairs(graph.pairs()).n_pairs == 3
