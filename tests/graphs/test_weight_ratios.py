"""Weights over many decades: sums over pairs keep half of their digits; no factor matters."""

from __future__ import annotations

import numpy as np
import pytest

from rankwise import PairGraph, RankRLS, ScoreGraph
from rankwise.graphs import PreferenceGraph
from tests import oracle
from tests.ranker_cases import every_ranker

FACTORS = [1e-300, 1e-162, 1e300, 5e-324 * 2**20]


@pytest.mark.parametrize("group_weight", ["pairs", "groups"])
@pytest.mark.parametrize(
    ("cost", "ties"), [("magnitude", "include"), ("magnitude", "exclude"), ("sign", "exclude")]
)
def test_sums_over_pairs_keep_their_digits(cost, ties, group_weight):
    rng = np.random.default_rng(0)
    for _ in range(40):
        n = int(rng.integers(3, 9))
        y, groups = rng.integers(0, 4, n).astype(float), rng.integers(0, 2, n)
        weight = 10.0 ** (rng.uniform(-4, 4, n) - 20 * groups)  # as old groups decay
        rule = {"cost": cost, "ties": ties, "group_weight": group_weight}
        graph = ScoreGraph(y, groups, **rule, sample_weight=weight)
        if not graph.n_pairs:
            continue
        v = rng.standard_normal(n)
        edges = oracle.score_edges(y, groups, **rule, weights=weight)
        L, d = oracle.laplacian_and_divergence(edges, n)
        W, degrees, product = sum(w for *_, w in edges), np.diag(L), L @ v
        unit = np.where(degrees > 0, degrees, 1.0)
        np.testing.assert_allclose(graph.total_weight, W, rtol=1e-8)
        np.testing.assert_allclose(graph.degrees, degrees, rtol=1e-8)
        np.testing.assert_allclose(graph.divergence / unit, d / unit, atol=1e-8)
        np.testing.assert_allclose(graph.laplacian(v) / unit, product / unit, atol=1e-8)
        columns = graph.laplacian(np.stack([v, 2 * v], axis=1))
        np.testing.assert_allclose(columns[:, 1] / unit, 2 * product / unit, atol=1e-8)


@pytest.mark.parametrize("options", [{}, {"solver": "dual"}, {"cost": "sign"}, {"ties": "exclude"}])
def test_a_heavy_item_does_not_drop_its_pairs(options):
    X, y, groups = [[1, 0], [0, 0], [0, 1], [0, 0]], [1, 0, 1, 0], [0, 0, 1, 1]
    model = RankRLS(1e-3, group_weight="groups", **options)
    model.fit(X, y, groups, sample_weight=[1e8, 1, 1, 1])
    np.testing.assert_allclose(model.coef_, [0.998004, 0.998004], rtol=1e-6)


@pytest.mark.parametrize("factor", FACTORS)
@every_ranker
def test_a_common_factor_of_the_weights_does_not_matter(ranker, atol, factor):
    rng = np.random.default_rng(1)
    X, groups = rng.standard_normal((40, 3)), np.repeat(np.arange(8), 5)
    y, weight = X @ [1.0, 2.0, 3.0] + rng.standard_normal(40), rng.uniform(0.5, 2.0, 40)
    weight = np.round(weight * 16) / 16  # a subnormal weight keeps these digits
    before = ranker.fit(X, y, groups, sample_weight=weight).predict(X)
    after = ranker.fit(X, y, groups, sample_weight=weight * factor).predict(X)
    np.testing.assert_allclose(after, before, rtol=0, atol=1e-9 * np.ptp(before))
    plain = ranker.fit(X, y, groups).predict(X)
    alike = ranker.fit(X, y, groups, sample_weight=np.full(40, factor)).predict(X)
    np.testing.assert_allclose(alike, plain, rtol=0, atol=1e-9 * np.ptp(plain))


def test_weights_of_edges_may_have_any_common_factor():
    ends, X = ([0, 1, 2], [1, 2, 3]), np.eye(4)
    before = RankRLS().fit(X, PairGraph(*ends, weight=[1.0, 2.0, 3.0])).coef_
    for factor in FACTORS:
        graph = PairGraph(*ends, weight=np.array([1.0, 2.0, 3.0]) * factor)
        assert isinstance(graph, PreferenceGraph)
        np.testing.assert_allclose(RankRLS().fit(X, graph).coef_, before, rtol=1e-9)


def test_weights_too_far_apart_are_refused():
    X, y, groups = [[0.0], [1.0], [2.0]], [0, 1, 2], ["a", "b", "b"]
    with pytest.raises(ValueError, match=r"group b is 1, .* 9e-09; .*1e\+08"):
        RankRLS().fit(X, y, groups, sample_weight=[1.0, 9e-9, 1.0])
    RankRLS().fit(X, y, groups, sample_weight=[1.0, 1.1e-8, 1.0])
    RankRLS().fit(X, y, groups, sample_weight=[1.0, 1e-100, 1e-100])


def test_chunks_have_one_scale_of_weights():
    model = RankRLS().partial_fit([[0.0], [1.0]], [0, 1], sample_weight=[1.0, 2.0])
    with pytest.raises(ValueError, match=r"one (common )?factor"):
        model.partial_fit([[0.0], [1.0]], [0, 1], sample_weight=[1e-200, 1e-200])
