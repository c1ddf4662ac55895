"""A graph of somebody else works everywhere, as the same edges in a PairGraph do."""

from __future__ import annotations

import numpy as np
import pytest

from rankwise import PairGraph, PreferenceGraph, RankingPursuit, RankRLS, RankRLSCV, RankSVM
from rankwise.leaderboard import rate
from rankwise.metrics import disagreement_error
from rankwise.model_selection import cross_val_predict_groups, leave_group_out_predict
from rankwise.report import report
from tests.graphs.data import ChampionGraph

M = 40


@pytest.fixture
def data():
    rng = np.random.default_rng(0)
    X, groups = rng.normal(size=(M, 3)), np.repeat(np.arange(8), 5)
    y = np.round(X @ [2.0, 1.0, 0.0] + rng.normal(size=M), 1)
    return X, y, groups, ChampionGraph(y, groups)


class Chain(PreferenceGraph):
    """Each item beats the next: a graph that only lists its edges, without scores or groups."""

    def __init__(self, n_items):
        self._n_items = n_items

    def pairs(self):
        every = np.arange(self._n_items)
        return PairGraph(every[:-1], every[1:], n_items=self._n_items)


@pytest.mark.parametrize(
    "model",
    [
        RankRLS(0.1),
        RankRLS(0.1, kernel="rbf"),
        RankRLS(0.1, solver="iterative", tol=1e-10),
        RankSVM(0.1, tol=1e-8),
        RankSVM(0.1, loss="squared_hinge", tol=1e-8),
        RankingPursuit(n_basis=5),
    ],
    ids=["rls", "kernel", "iterative", "svm", "squared hinge", "pursuit"],
)
@pytest.mark.filterwarnings("ignore:.*edges have magnitude 0")
def test_learners_learn_from_it_as_from_its_edges(data, model):
    X, y, groups, graph = data
    found = model.fit(X, graph).predict(X)
    score = model.score(X, graph)
    expected = model.fit(X, graph.pairs()).predict(X)
    np.testing.assert_allclose(found - found.mean(), expected - expected.mean(), atol=1e-4)
    assert score == pytest.approx(1 - disagreement_error(y, found, groups))


@pytest.mark.parametrize("model", [RankRLS(0.1), RankSVM(0.1, tol=1e-8)], ids=["rls", "svm"])
def test_learners_take_a_graph_that_only_lists_its_edges(model):
    X = np.random.default_rng(0).normal(size=(12, 2))
    model.fit(X, Chain(12))
    f = model.predict(X)
    right = [(f[i] > f[i + 1]) + 0.5 * (f[i] == f[i + 1]) for i in range(11)]
    assert model.score(X, Chain(12)) == pytest.approx(np.mean(right))
    w = np.random.default_rng(1).uniform(0, 2, 12)
    weighted = np.average(right, weights=w[:-1] * w[1:])
    assert model.score(X, Chain(12), sample_weight=w) == pytest.approx(weighted)
    with pytest.raises(ValueError, match="graph has 5 items but X has 12 rows"):
        model.fit(X, Chain(5))


def test_regression_can_be_mixed_in_where_a_graph_has_scores(data):
    X, y, _, graph = data
    everything = RankRLS(0.1, beta=1.0).fit(X, graph).predict(X)
    np.testing.assert_allclose(everything, RankRLS(0.1, beta=1.0).fit(X, y).predict(X), atol=1e-9)
    with pytest.raises(ValueError, match="y is a Chain, which has preferences only; use beta=0"):
        RankRLS(beta=0.5).fit(X, Chain(M))


@pytest.mark.parametrize("options", [{}, {"kernel": "rbf"}, {"solver": "iterative", "tol": 1e-12}])
def test_leave_group_out_is_training_without_the_group(data, options):
    X, y, groups, graph = data
    model = RankRLS(0.1, **options)
    held = leave_group_out_predict(model, X, graph)
    for label in np.unique(groups):
        out = groups == label
        rest = ChampionGraph(y[~out], groups[~out])
        scores = model.fit(X[~out], rest).predict(X[out])
        np.testing.assert_allclose(np.diff(held[out]), np.diff(scores), atol=1e-8)


class Ladder(Chain):
    """The same with evenly spaced scores: all but the two ends win as much as they lose."""

    @property
    def scores(self):
        return -np.arange(self._n_items, dtype=float)


@pytest.mark.parametrize("graph", [Chain(12), Ladder(12)], ids=["chain", "ladder"])
def test_a_fold_of_all_items_that_win_more_than_they_lose_leaves_something_to_learn(graph):
    X = np.random.default_rng(0).normal(size=(12, 2))
    ends, inner = np.array([0, 11]), np.arange(1, 11)
    tests = [ends, inner[:5], inner[5:]]
    folds = [(np.setdiff1d(np.arange(12), test), test) for test in tests]
    held = cross_val_predict_groups(RankRLS(0.1), X, graph, cv=folds)
    again = RankRLS(0.1).fit(X[inner], graph.subset(inner)).predict(X[ends])
    np.testing.assert_allclose(np.diff(held[ends]), np.diff(again), atol=1e-9)


@pytest.mark.filterwarnings("ignore:the best alpha")
def test_a_search_judges_held_out_scores_of_the_groups(data):
    X, y, groups, graph = data
    alphas = [1e-2, 1.0, 100.0]
    search = RankRLSCV(alphas).fit(X, graph)
    for k, alpha in enumerate(alphas):
        held = leave_group_out_predict(RankRLS(alpha), X, graph)
        error = disagreement_error(y, held, groups)
        assert search.cv_results_["mean_score"][0, k] == pytest.approx(error)
    by_edge = RankRLSCV(alphas).fit(X, Chain(M)).cv_results_
    same = RankRLSCV(alphas).fit(X, Chain(M).pairs()).cv_results_
    assert by_edge["cv"] == "folds of edges"
    np.testing.assert_allclose(by_edge["mean_score"], same["mean_score"])


def test_a_report_compares_with_its_scores(data):
    X, y, groups, graph = data
    model = RankRLS(0.1).fit(X, graph)
    assert str(report(model, X, graph)) == str(report(model, X, y, groups))
    with pytest.raises(ValueError, match="needs one true score for each item"):
        str(report(model, X, Chain(M)))


def test_it_is_rated_by_its_edges():
    board = rate(Chain(4), alpha=0.01, intervals=False)
    assert (np.diff(board.ratings) < 0).all()
