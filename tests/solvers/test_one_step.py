"""One Newton step instead of a refit: how near it comes, and where it is the same."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

from rankwise import PairGraph, RankLogistic, ScoreGraph
from rankwise.solvers.one_step import without_edges, without_groups

ALPHA = 0.02


def _scored(rng, group_weight="pairs"):
    y, groups = rng.integers(0, 4, 120), np.arange(120) % 12
    return ScoreGraph(y, groups, ties="include", group_weight=group_weight)


def _explicit(rng, n_items=40, n_edges=300):
    winner = rng.integers(0, n_items, n_edges)
    loser = (winner + rng.integers(1, n_items, n_edges)) % n_items
    magnitude, weight = rng.integers(0, 3, n_edges) * 1.0, rng.random(n_edges) + 0.5
    return PairGraph(winner, loser, magnitude, weight, n_items, groups=np.arange(n_items) % 10)


GRAPHS = {
    "scores": _scored,
    "weighted items": lambda rng: _scored(rng).weighted(rng.random(120) + 0.5),
    "groups alike": lambda rng: _scored(rng, "groups"),
    "edges across groups": _explicit,
}


def _fit(X, graph):
    return RankLogistic(ALPHA, tol=1e-12).fit(X, graph).coef_


def _without_group(X, graph, group):
    rest = np.flatnonzero(graph.groups != group)
    return _fit(X[rest], graph.subset(rest))


@pytest.mark.filterwarnings("ignore:RankLogistic cannot go on")
@pytest.mark.parametrize("kind", GRAPHS)
def test_a_step_without_a_group_misses_little_of_the_way_to_the_refit(kind):
    rng = np.random.default_rng(0)
    graph = GRAPHS[kind](rng)
    X = rng.normal(size=(graph.n_items, 4))
    w = _fit(X, graph)
    found = without_groups(graph, X, w, alpha=ALPHA)
    for group in range(graph.n_groups):
        again = _without_group(X, graph, group)
        assert np.linalg.norm(found[group] - again) < 0.05 * np.linalg.norm(again - w)


@pytest.mark.filterwarnings("ignore:RankLogistic cannot go on")
def test_a_step_without_an_edge_misses_little_of_the_way_to_the_refit():
    rng = np.random.default_rng(1)
    graph = _explicit(rng)
    X = rng.normal(size=(graph.n_items, 4))
    w = _fit(X, graph)
    found = without_edges(graph, X, w, alpha=ALPHA)
    for edge in range(0, graph.n_pairs, 17):
        again = _fit(X, graph.with_edges(np.delete(np.arange(graph.n_pairs), edge)))
        assert np.linalg.norm(found[edge] - again) < 0.02 * np.linalg.norm(again - w)


@pytest.mark.filterwarnings("ignore:RankLogistic cannot go on")
def test_an_edge_is_a_group_of_two_items_that_meet_nobody_else():
    rng = np.random.default_rng(2)
    groups = np.repeat(np.arange(30), 2)
    graph = PairGraph(np.arange(0, 60, 2), np.arange(1, 60, 2), n_items=60, groups=groups)
    X = rng.normal(size=(60, 3)) + 1e5
    w = _fit(X, graph)
    np.testing.assert_allclose(
        without_edges(graph, X, w, alpha=ALPHA),
        without_groups(graph, X, w, alpha=ALPHA),
        rtol=1e-6,
    )


@pytest.mark.filterwarnings("ignore:RankLogistic cannot go on")
def test_sparse_features_give_the_same_steps_and_a_last_group_none():
    rng = np.random.default_rng(3)
    graph = _scored(rng)
    X = rng.normal(size=(120, 3)) * (rng.random((120, 3)) < 0.5)
    w = _fit(X, graph)
    dense = without_groups(graph, X, w, alpha=ALPHA)
    sparse = without_groups(graph, sp.csr_matrix(X), w, alpha=ALPHA)
    np.testing.assert_allclose(sparse, dense, rtol=1e-9)
    one = ScoreGraph([1.0, 2.0, 3.0])
    assert np.isnan(without_groups(one, X[:3], w, alpha=ALPHA)).all()
