"""Explicit preferences held out by the groups of their items, against training without them."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.model_selection import GroupKFold, KFold

from rankwise import PairGraph, RankingPursuit, RankLogistic, RankRLS, RankRLSCV, RankSVM, RankSVMCV
from rankwise.model_selection import cross_val_predict_groups, leave_group_out_predict, shortcuts
from rankwise.uncertainty import jackknife
from tests.pairwise import pairwise

ALPHAS = np.array([1e-3, 0.1, 10.0])
M, P = 40, 5
pytestmark = pytest.mark.filterwarnings("ignore:the best alpha .* is at the edge")


def preferences(seed=0, n_edges=150, *, ties=True, labels=None, m=M, p=P, **options):
    """Random edges between all items, most of them across the groups."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(m, p))
    f = X @ rng.normal(size=p) + rng.normal(size=m)
    i, j = rng.integers(0, m, (2, n_edges))
    i, j = i[i != j], j[i != j]
    winner, loser = np.where(f[i] > f[j], i, j), np.where(f[i] > f[j], j, i)
    magnitude = np.abs(f[i] - f[j]).round(1) + (0.0 if ties else 0.1)
    groups = rng.permutation(np.arange(m) % 6)
    if labels is not None:
        groups = np.array(labels)[groups]
    weight = rng.uniform(0.5, 2, len(winner))
    return X, PairGraph(winner, loser, magnitude, weight, m, groups=groups, **options), groups


def refits(model, X, graph, folds, alphas=ALPHAS):
    """Scores of each fold by a model trained on the edges between the other items."""
    out = np.empty((graph.n_items, len(alphas)))
    for held in folds:
        rest = np.setdiff1d(np.arange(graph.n_items), held)
        kept = np.isin(graph.winner, rest) & np.isin(graph.loser, rest)
        number = np.full(graph.n_items, -1)
        number[rest] = np.arange(len(rest))
        weight = graph.weight[kept]
        if graph.group_weight == "groups":  # the edges of a group count one
            group = graph.groups[graph.winner[kept]]
            weight = weight / np.bincount(group, weight)[group]
        edges = number[graph.winner[kept]], number[graph.loser[kept]], graph.magnitude[kept], weight
        part = PairGraph(*edges, len(rest), cost=graph.cost)
        for k, alpha in enumerate(alphas):
            fitted = clone(model).set_params(alpha=alpha).fit(X[rest], part)
            out[held, k] = fitted.predict(X[held])
    return out


def centered(f, groups):
    """Scores less the mean of their group: a common constant is free in a dual model."""
    return f - np.array([f[groups == g].mean(axis=0) for g in np.unique(groups)])[groups]


WAYS = {
    "primal": RankRLS(solver="primal"),
    "dual": RankRLS(solver="dual"),
    "iterative": RankRLS(solver="iterative", tol=1e-12),
    "rbf": RankRLS(kernel="rbf", gamma=0.2),
    "basis": RankRLS(kernel="rbf", gamma=0.2, basis=np.random.default_rng(7).normal(size=(6, P))),
}
COSTS = ("magnitude", "sign", "relative")


@pytest.mark.parametrize(
    "way, cost, group_weight, cv, form, grouped",
    pairwise(
        WAYS,
        COSTS,
        ("pairs", "groups"),
        (None, 2, 5, KFold(4, shuffle=True, random_state=0)),
        (np.asarray, sp.csr_matrix, np.float32),
        (True, False),
    ),
    ids=str,
)
def test_held_out_scores_equal_training_without_the_fold_and_the_edges_into_it(
    way, cost, group_weight, cv, form, grouped
):
    rule = {"cost": cost, "group_weight": group_weight}
    X, graph, groups = preferences(1, ties=False, **rule)
    X = X.astype(np.float32).astype(float)
    if not grouped:  # components take the place of groups
        inside = groups[graph.winner] == groups[graph.loser]
        edges = (graph.winner, graph.loser, graph.magnitude, graph.weight)
        graph = PairGraph(*(part[inside] for part in edges), M, **rule)
        groups = graph.components
    n_groups = len(set(groups))
    splitter = cv if isinstance(cv, KFold) else GroupKFold(cv or n_groups)
    labels = None if isinstance(cv, KFold) else groups
    folds = [test for _, test in splitter.split(X, None, labels)]
    fast = cross_val_predict_groups(WAYS[way], form(X), graph, cv=cv, alphas=ALPHAS)
    slow = refits(WAYS[way], X, graph, folds)
    for held in folds:  # a common constant is free in a dual model
        one, other = (f[held] - f[held].mean(axis=0) for f in (fast, slow))
        np.testing.assert_allclose(one, other, atol=1e-5 if form is np.float32 else 1e-6)


def test_margins_train_again():
    X, graph, groups = preferences(3)
    folds = [np.flatnonzero(groups == g) for g in range(6)]
    strict = graph.with_edges(graph.magnitude > 0)
    margins = leave_group_out_predict(RankSVM(tol=1e-8), X, strict, alphas=ALPHAS)
    np.testing.assert_allclose(margins, refits(RankSVM(tol=1e-8), X, strict, folds), atol=1e-2)


def test_too_many_edges_train_again_with_the_same_result(monkeypatch):
    X, graph, _ = preferences(4)
    fast = leave_group_out_predict(RankRLS(), X, graph, alphas=ALPHAS)
    monkeypatch.setattr(shortcuts, "EDGE_ENTRIES", 0)
    slow = leave_group_out_predict(RankRLS(), X, graph, alphas=ALPHAS)
    np.testing.assert_allclose(fast, slow, atol=1e-9)


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 10**6), st.sampled_from([1e-6, 1.0, 1e6]), st.floats(-1e3, 1e3))
def test_held_out_scores_hold_for_any_graph_scale_and_offset(seed, scale, offset):
    X, graph, groups = preferences(seed, n_edges=60, m=18, p=3)
    X = scale * (X + offset)
    alphas = scale**2 * ALPHAS
    folds = [np.flatnonzero(groups == g) for g in range(6)]
    fast = leave_group_out_predict(RankRLS(), X, graph, alphas=alphas)
    slow = refits(RankRLS(), X, graph, folds, alphas)
    np.testing.assert_allclose(centered(fast, groups), centered(slow, groups), atol=1e-6)


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("options", [{}, {"solver": "dual"}])
def test_where_the_rest_prefers_nothing_on_balance_held_out_items_tie(seed, options):
    """Rounding must not order them."""
    X = np.random.default_rng(seed).normal(size=(6, 2))
    winner, loser = [0, 1, 2, 3, 4, 5], [1, 2, 3, 4, 5, 3]  # the last three are a circle
    magnitude, groups = [0.3, 0.1, 0.7, 0.1, 0.1, 0.1], [0, 0, 0, 1, 1, 1]
    graph = PairGraph(winner, loser, magnitude, n_items=6, groups=groups)
    scores = leave_group_out_predict(RankRLS(1e-3, **options), X, graph)
    np.testing.assert_array_equal(scores[:3], 0.0)
    assert len(set(scores[3:])) == 3


def test_balanced_circles_still_tell_an_order_when_they_are_cut():
    X = np.array([[0.0], [1.0], [2.0], [5.0], [3.0]])
    groups = ["a", "b", "b", "a", "a"]  # nothing but item 3 and 4 is preferred on balance
    graph = PairGraph([0, 1, 2, 3], [1, 2, 0, 4], n_items=5, groups=groups)
    scores = leave_group_out_predict(RankRLS(1.0), X, graph)
    rest = RankRLS(1.0).fit(X[1:3], PairGraph([0], [1]))
    np.testing.assert_allclose(scores[[0, 3, 4]], rest.predict(X[[0, 3, 4]]))
    assert len(set(scores[[0, 3, 4]])) == 3


@pytest.mark.parametrize(
    "cv, way", [("auto", "leave-group-out"), (3, "folds of groups"), (KFold(4), "folds of items")]
)
def test_searches_judge_the_edges_inside_the_folds(cv, way):
    X, graph, _ = preferences(5, n_edges=300, labels=["f", "e", "d", "c", "b", "a"])
    splitter = cv if isinstance(cv, KFold) else GroupKFold(6 if cv == "auto" else cv)
    fold = np.empty(M, dtype=int)
    labels = None if isinstance(cv, KFold) else graph.groups
    for k, (_, test) in enumerate(splitter.split(X, None, labels)):
        fold[test] = k
    options = {"cv": None if cv == "auto" else cv, "alphas": ALPHAS}
    held = cross_val_predict_groups(RankRLS(), X, graph, **options)
    expected = graph.disagreement(held, fold)
    model = RankRLSCV(ALPHAS, cv=cv).fit(X, graph)
    assert model.cv_results_["cv"] == way
    np.testing.assert_array_equal(model.cv_results_["groups"], list("abcdef"))
    np.testing.assert_allclose(model.cv_results_["group_score"][0], expected, atol=1e-12)
    np.testing.assert_allclose(model.cv_results_["mean_score"][0], np.nanmean(expected, axis=0))
    svm = RankSVMCV(**options).fit(X, graph.with_edges(graph.magnitude > 0))
    assert svm.cv_results_["cv"] == way
    assert svm.cv_results_["group_score"][0].shape == (6, 3)


def with_plain_weights(graph, strict):
    """The same preferences with the weights that ``group_weight="groups"`` stands for."""
    counted = graph.weight * (graph.magnitude > 0 if strict else 1.0)
    group = graph.groups[graph.winner]
    weight = graph.weight / np.bincount(group, counted)[group]
    return PairGraph(graph.winner, graph.loser, graph.magnitude, weight, graph.n_items)


@pytest.mark.filterwarnings("ignore:.* edges have magnitude 0")
@pytest.mark.parametrize(
    "model",
    [
        *WAYS.values(),
        RankRLS(0.1, kernel="rbf", n_basis=6, random_state=0),
        RankSVM(0.1, tol=1e-6),
        RankSVM(0.1, loss="squared_hinge", tol=1e-6),
        RankLogistic(0.1, tol=1e-9),
        RankingPursuit(n_basis=4, kernel="rbf"),
    ],
    ids=str,
)
def test_every_group_counts_alike_for_every_learner(model):
    """[RankRLS09] end of section 2.4."""
    X, graph, _ = preferences(2, group_weight="groups")
    strict = isinstance(model, RankSVM)  # ties are not among its pairs
    found = clone(model).fit(X, graph).predict(X)
    expected = clone(model).fit(X, with_plain_weights(graph, strict)).predict(X)
    np.testing.assert_allclose(found, expected, atol=1e-4 if strict else 1e-7)
    again = clone(model).set_params(group_weight="groups").fit(X, graph).predict(X)
    np.testing.assert_array_equal(again, found)


def test_a_jackknife_trains_again_where_weights_depend_on_the_other_edges():
    X, graph, _ = preferences(2, n_edges=60, group_weight="groups")
    left_out = jackknife(RankRLS(0.1), X, graph, units="comparisons")
    every, n = np.arange(graph.n_pairs), graph.n_pairs
    whole = RankRLS(0.1).fit(X, graph).coef_
    refits = [RankRLS(0.1).fit(X, graph.with_edges(np.delete(every, k))).coef_ for k in every]
    moved = np.array(refits) - whole
    np.testing.assert_allclose(
        left_out.root @ left_out.root.T, (n - 1) / n * moved.T @ moved, rtol=1e-6
    )


def test_training_does_not_look_at_the_groups():
    X, graph, _ = preferences(7)
    plain = PairGraph(graph.winner, graph.loser, graph.magnitude, graph.weight, M)
    np.testing.assert_array_equal(RankRLS().fit(X, graph).coef_, RankRLS().fit(X, plain).coef_)


def test_parts_of_a_graph_keep_the_labels():
    graph = PairGraph([0, 1, 3], [1, 2, 4], n_items=5, groups=["x", "y", "y", ("z", 1), ("z", 1)])
    part = graph.subset(np.array([4, 3, 1]))
    assert [part.group_labels[g] for g in part.groups] == [("z", 1), ("z", 1), "y"]
    assert part.n_pairs == 1
    fewer = graph.with_edges(np.array([True, False, True]))
    np.testing.assert_array_equal(fewer.groups, graph.groups)
    assert (fewer.n_pairs, fewer.n_items, fewer.n_groups) == (2, 5, 3)


def test_a_graph_tells_of_its_groups_or_components():
    ends = [0, 1, 3], [1, 2, 4]
    for groups, told, n_groups in ((None, "", 3), ([0, 1, 1, 2, 2, 3], ", 4 groups", 4)):
        graph = PairGraph(*ends, n_items=6, groups=groups)
        assert repr(graph) == f"<PairGraph of 6 items, 3 edges{told}>"
        assert graph.n_groups == n_groups
    assert PairGraph([], []).n_groups == 0


def test_wrong_groups_and_missing_ones_are_explained():
    with pytest.raises(ValueError, match="groups has 2 entries but there are 3 rows"):
        PairGraph([0], [1], n_items=3, groups=[0, 1])
    with pytest.raises(ValueError, match="no label in row 1"):
        PairGraph([0], [1], groups=["a", None])
    X, graph, _ = preferences(8, m=10)
    connected = PairGraph(np.arange(9), np.arange(1, 10))
    with pytest.raises(ValueError, match="build the PairGraph with the groups of the items"):
        leave_group_out_predict(RankRLS(), X, connected)
    with pytest.raises(ValueError, match="build the graph with these groups"):
        RankRLS().fit(X, graph, np.zeros(10))
    across = PairGraph([0, 2], [1, 3], n_items=4, groups=[0, 1, 0, 1])
    with pytest.raises(ValueError, match="leaves no pair to train on"):
        leave_group_out_predict(RankRLS(), X[:4], across)
