"""Every group of explicit preferences counts alike: [RankRLS09] end of section 2.4."""

from __future__ import annotations

import numpy as np
import pytest

from rankwise import (
    PairGraph,
    RankingPursuit,
    RankLogistic,
    RankRLS,
    RankRLSCV,
    RankSVM,
)
from rankwise.model_selection import leave_group_out_predict
from rankwise.uncertainty import jackknife


@pytest.fixture(scope="module")
def edges():
    """Groups of 2, 5 and 9 items, many edges inside and a few across, ties among them."""
    rng = np.random.default_rng(0)
    groups = np.repeat(["x", "y", "z"], [3, 5, 9])
    winner, loser = [], []
    for size, start in ((3, 0), (5, 3), (9, 8)):
        for _ in range(size * 4):
            one, two = start + rng.choice(size, 2, replace=False)
            winner.append(one)
            loser.append(two)
    winner, loser = np.array([*winner, 0, 9]), np.array([*loser, 4, 5])
    magnitude, weight = rng.integers(0, 4, len(winner)), rng.uniform(0.1, 3.0, len(winner))
    return {
        "winner": winner,
        "loser": loser,
        "magnitude": magnitude.astype(float),
        "weight": weight,
        "n_items": 17,
        "groups": groups,
    }


X = np.random.default_rng(1).standard_normal((17, 4))


def normalized(edges, strict=False):
    """The same preferences with the weights that `group_weight="groups"` stands for."""
    kept = edges["magnitude"] > 0 if strict else np.ones(len(edges["winner"]), dtype=bool)
    group = edges["groups"][edges["winner"]]
    total = {g: edges["weight"][kept & (group == g)].sum() for g in "xyz"}
    return edges | {"weight": edges["weight"] / np.array([total[g] for g in group])}


LEARNERS = [
    RankRLS(0.1),
    RankRLS(0.1, solver="dual"),
    RankRLS(0.1, solver="iterative"),
    RankRLS(0.1, kernel="rbf", n_basis=6, random_state=0),
    RankSVM(0.1, tol=1e-6),
    RankSVM(0.1, loss="squared_hinge", tol=1e-6),
    RankLogistic(0.1, tol=1e-9),
    RankingPursuit(n_basis=4, kernel="rbf"),
]


@pytest.mark.filterwarnings("ignore:19 of 70 edges have magnitude 0")
@pytest.mark.parametrize("model", LEARNERS, ids=lambda model: type(model).__name__)
def test_learners_take_it(model, edges):
    strict = isinstance(model, RankSVM)  # ties are not among its pairs
    graph, plain = (
        PairGraph(**edges, group_weight="groups"),
        PairGraph(**normalized(edges, strict)),
    )
    expected = model.fit(X, plain).predict(X)
    found = model.fit(X, graph).predict(X)
    np.testing.assert_allclose(found, expected, atol=1e-4 if strict else 1e-7)
    again = model.set_params(group_weight="groups").fit(X, graph).predict(X)
    np.testing.assert_array_equal(again, found)
    model.set_params(group_weight="pairs")


def test_a_search_and_a_jackknife_train_again_where_weights_depend_on_the_others(edges):
    graph = PairGraph(**edges, group_weight="groups")
    search = RankRLSCV([0.01]).fit(X, graph)
    held = leave_group_out_predict(RankRLS(0.01), X, graph)
    assert search.best_score_ == pytest.approx(graph.disagreement(held, graph.groups).mean())
    left_out = jackknife(RankRLS(0.1), X, graph, units="comparisons")
    every, n = np.arange(graph.n_pairs), graph.n_pairs
    whole = RankRLS(0.1).fit(X, graph).coef_
    refits = [RankRLS(0.1).fit(X, graph.with_edges(np.delete(every, k))).coef_ for k in every]
    moved = np.array(refits) - whole
    np.testing.assert_allclose(
        left_out.root @ left_out.root.T, (n - 1) / n * moved.T @ moved, rtol=1e-6
    )
