"""One contract for every graph type, then what is special to each."""

from __future__ import annotations

import itertools
import pickle

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

from rankwise import PairGraph, PreferenceGraph, ScoreGraph, SurvivalGraph
from tests import oracle
from tests.graphs.data import ChampionGraph
from tests.pairwise import pairwise

M = 30


def _scores(rng, levels):
    return rng.integers(0, levels, M).astype(float) if levels else rng.normal(size=M)


def _weights(rng):
    """Weights of very different size; a tenth of the items has none."""
    return rng.permutation(np.r_[np.zeros(M // 10), np.exp(rng.normal(size=M - M // 10))])


def _score_case(cost, ties, group_weight, levels, grouped, weighted=False):
    def build(rng):
        y = _scores(rng, levels)
        groups = (
            rng.permutation(np.repeat(np.arange(7), [1, 1, 2, 4, 6, 7, 9])) if grouped else None
        )
        weights = _weights(rng) if weighted else None
        graph = ScoreGraph(
            y, groups, cost=cost, ties=ties, group_weight=group_weight, sample_weight=weights
        )
        return graph, oracle.score_edges(y, groups, cost, ties, group_weight, weights)

    name = f"{cost}-{ties}-{group_weight}-{levels or 'real'}-{'groups' if grouped else 'one'}"
    return pytest.param(build, id=name + "-weighted" * weighted)


def _pair_case(cost, group_weight="pairs", grouped=True):
    def build(rng):
        winner = rng.integers(0, M - 3, 60)
        loser = (winner + rng.integers(1, M - 3, 60)) % (M - 3)
        winner[:2], loser[:2] = [0, 1], [1, 0]  # a multigraph with opposite edges, isolated items
        magnitude = rng.exponential(size=60)
        if cost != "relative":
            magnitude[::9] = 0
        weight = rng.uniform(0.5, 2, 60)
        groups = rng.integers(0, 4, M) if grouped else None
        rule = {"cost": cost, "groups": groups, "group_weight": group_weight}
        graph = PairGraph(winner, loser, magnitude, weight, M, **rule)
        if group_weight == "groups":  # the edges of a group, that of the winner, weigh 1
            group = groups[winner] if grouped else graph.components[winner]
            weight = weight / np.bincount(group, weight)[group]
        return graph, oracle.pair_edges(winner, loser, magnitude, weight, cost)

    return pytest.param(build, id=f"pairs-{cost}-{group_weight}-{grouped}")


def _champion_case():
    def build(rng):
        y, groups = _scores(rng, 4), rng.permutation(np.repeat(np.arange(5), [1, 4, 7, 8, 10]))
        edges = []
        for g in range(5):
            best, *others = sorted(np.flatnonzero(groups == g), key=lambda i: (-y[i], -i))
            edges += [(best, i, y[best] - y[i], 1.0) for i in others]
        return ChampionGraph(y, groups), edges

    return pytest.param(build, id="champions")


def _survival_case(levels, grouped, weighted):
    def build(rng):
        time, event = np.abs(_scores(rng, levels)), rng.random(M) < 0.6
        groups = rng.permutation(np.repeat(np.arange(5), [1, 2, 6, 9, 12])) if grouped else None
        weights = _weights(rng) if weighted else None
        edges = oracle.survival_edges(time, event, groups, weights)
        return SurvivalGraph(time, event, groups, weights), edges

    name = f"survival-{levels or 'real'}-{'groups' if grouped else 'one'}"
    return pytest.param(build, id=name + "-weighted" * weighted)


COSTS = [
    ("magnitude", "include"),
    ("magnitude", "exclude"),
    ("sign", "include"),
    ("relative", "exclude"),
]
GRAPHS = [
    _score_case(*cost, *rest)
    for cost, *rest in pairwise(COSTS, ("pairs", "groups"), (3, None), (True, False))
]
GRAPHS += [
    _score_case(*cost, *rest, weighted=True)
    for cost, *rest in pairwise(COSTS, ("pairs", "groups"), (3, None), (True, False))
]
GRAPHS += [_pair_case(cost, grouped=False) for cost in ("magnitude", "sign", "relative")]
GRAPHS += [_pair_case(cost, "groups") for cost in ("magnitude", "sign", "relative")]
GRAPHS += [_pair_case("magnitude", "groups", grouped=False), _champion_case()]
GRAPHS += [
    _survival_case(*options) for options in pairwise((4, None), (True, False), (True, False))
]


@pytest.fixture(params=GRAPHS)
def case(request):
    rng = np.random.default_rng(7)
    graph, edges = request.param(rng)
    L, d = oracle.laplacian_and_divergence(edges, M)
    return graph, edges, L, d, rng


def test_sums_equal_those_over_explicit_pairs(case):
    graph, edges, L, d, rng = case
    assert graph.n_items == M
    assert graph.n_pairs == len(edges)
    assert graph.total_weight == pytest.approx(sum(omega for *_, omega in edges))
    assert graph.squared_magnitude == pytest.approx(sum(w * d**2 for _, _, d, w in edges))
    V, atol = rng.normal(size=(M, 3)), 1e-9 * np.abs(L).max()
    np.testing.assert_allclose(graph.laplacian(V), L @ V, atol=atol)
    np.testing.assert_allclose(graph.laplacian(V[:, 0]), L @ V[:, 0], atol=atol)
    np.testing.assert_allclose(graph.divergence, d, rtol=1e-9, atol=1e-10)
    np.testing.assert_allclose(graph.degrees, np.diag(L), rtol=1e-9, atol=1e-12)
    R = rng.normal(size=(M, 5)) * (rng.random((M, 5)) < 0.3)
    for convert in (sp.csr_matrix, sp.csc_array):
        np.testing.assert_allclose(graph.sparse_norms(convert(R)), np.diag(R.T @ L @ R), atol=atol)


def test_subset_keeps_the_edges_between_its_items(case):
    graph, edges, _, _, rng = case
    items = rng.permutation(M)[:20]
    kept = [(i, j, d) for i, j, d, _ in edges if i in items and j in items]
    part = graph.subset(items)
    assert part.n_items == 20
    assert part.n_pairs == len(kept)
    found = part.pairs()
    named = zip(items[found.winner], items[found.loser], found.edge_target, strict=True)
    pairs = {frozenset((i, j)): d for i, j, d in kept}
    for i, j, d in named:
        assert frozenset((i, j)) in pairs
        if graph.group_weight == "pairs" and isinstance(graph, ScoreGraph):
            assert d == pytest.approx(pairs[frozenset((i, j))])


def test_groups_are_numbered_as_their_labels_and_described(case):
    graph, edges, _, _, _ = case
    assert graph.n_groups == len(graph.group_labels) == graph.groups.max() + 1
    assert graph.groups.shape == (M,)
    inside = {graph.groups[i] for i, j, *_ in edges if graph.groups[i] == graph.groups[j]}
    assert len(inside) <= graph.n_units <= graph.n_groups
    about = graph.describe()
    assert about.n_groups_without_pairs == graph.n_groups - len(inside)
    assert about.n_isolated_items == M - len({i for edge in edges for i in edge[:2]})
    assert f"{len(edges):,}" in str(about)


def test_scores_tell_the_order_of_every_edge(case):
    graph, edges, _, _, _ = case
    if graph.has_relevance:
        assert all(graph.y[i] >= graph.y[j] for i, j, *_ in edges)
    if graph.is_complete:
        assert {frozenset(edge[:2]) for edge in edges} == set(
            map(frozenset, itertools.combinations(range(M), 2))
        )
        assert all(size == graph.y[i] - graph.y[j] for i, j, size, _ in edges)


def test_components_join_exactly_the_items_connected_by_edges(case):
    graph, edges, _, _, _ = case
    reach = np.eye(M, dtype=bool)
    for i, j, *_ in edges:
        reach[i, j] = reach[j, i] = True
    for _ in range(M):
        reach = (reach.astype(int) @ reach) > 0
    np.testing.assert_array_equal(graph.components[:, None] == graph.components, reach)
    assert set(graph.components) == set(range(graph.components.max() + 1))


def test_explicit_pairs_are_the_same_graph(case):
    graph, edges, L, d, _ = case
    pairs = graph.pairs()
    assert pairs.n_pairs == len(edges)
    np.testing.assert_allclose(pairs.laplacian(np.eye(M)), L, atol=1e-12 * np.abs(L).max())
    np.testing.assert_allclose(pairs.divergence, d, rtol=1e-9, atol=1e-10)


@pytest.mark.parametrize("scale, shift", [(1.0, 0.0), (0.3, 0.7)])
def test_root_squares_to_the_shifted_laplacian(case, scale, shift):
    graph, _, L, d, rng = case
    root = graph.root(scale, shift)
    F = root.apply(np.eye(M))
    D = np.eye(M) if graph.item_weights is None else np.diag(graph.item_weights)
    np.testing.assert_allclose(F @ F.T, scale * L + shift * D, atol=1e-9 * (1 + np.abs(L).max()))
    np.testing.assert_allclose(root.adjoint(np.eye(M)), F.T, atol=1e-12)
    np.testing.assert_allclose(F @ root.solve(d), d, atol=1e-8 * np.abs(d).max())
    X = rng.normal(size=(M, 5))
    np.testing.assert_allclose(
        root.sandwich(X @ X.T), F.T @ X @ X.T @ F, atol=1e-8 * np.abs(F).max() ** 2 * 10
    )


@pytest.mark.parametrize("kind", ["dense", "float32", "fortran", "sparse"])
def test_gram_equals_sum_over_pairs(case, kind):
    graph, _, L, _, rng = case
    R = rng.integers(-4, 5, size=(M, 6)).astype(float)
    given = {
        "dense": R,
        "float32": R.astype(np.float32),
        "fortran": np.asfortranarray(R),
        "sparse": sp.csr_matrix(R),
    }[kind]
    gram = graph.gram(given)
    np.testing.assert_allclose(gram, R.T @ L @ R, rtol=1e-9, atol=1e-9 * np.abs(gram).max())
    np.testing.assert_array_equal(gram, gram.T)


def test_gram_does_not_care_where_blocks_end(case, monkeypatch):
    graph, _, L, _, rng = case
    R = rng.normal(size=(M, 2))
    for rows in (1, 2, 3, 5):
        monkeypatch.setattr("rankwise.graphs.gram.block_rows", lambda n_columns, rows=rows: rows)
        np.testing.assert_allclose(graph.gram(R), R.T @ L @ R, rtol=1e-9)


def test_gram_keeps_its_digits_when_features_have_a_large_offset(case):
    graph, _, L, _, rng = case
    R = rng.integers(-4, 5, size=(M, 3)).astype(float)
    expected = R.T @ L @ R
    np.testing.assert_allclose(
        graph.gram(R + 2.0**26), expected, atol=1e-7 * np.abs(expected).max()
    )


def test_graph_survives_pickling(case):
    graph, _, L, _, _ = case
    again = pickle.loads(pickle.dumps(graph))
    assert isinstance(again, PreferenceGraph)
    np.testing.assert_allclose(again.laplacian(np.eye(M)), L, atol=1e-9 * np.abs(L).max())


@settings(max_examples=60, deadline=None)
@given(
    y=st.lists(st.sampled_from([-1.5, 0.0, 0.25, 3.0]), min_size=2, max_size=14),
    data=st.data(),
    cost=st.sampled_from(["magnitude", "sign", "relative"]),
    ties=st.sampled_from(["include", "exclude"]),
    group_weight=st.sampled_from(["pairs", "groups"]),
)
def test_score_graph_equals_double_loop_for_any_scores(y, data, cost, ties, group_weight):
    groups = data.draw(st.lists(st.sampled_from("abc"), min_size=len(y), max_size=len(y)))
    graph = ScoreGraph(y, groups, cost=cost, ties=ties, group_weight=group_weight)
    edges = oracle.score_edges(y, groups, cost, ties, group_weight)
    L, d = oracle.laplacian_and_divergence(edges, len(y))
    np.testing.assert_allclose(graph.laplacian(np.eye(len(y))), L, atol=1e-9)
    np.testing.assert_allclose(graph.divergence, d, atol=1e-9)
    assert graph.n_pairs == len(edges)


def test_several_outputs_share_one_graph():
    rng = np.random.default_rng(2)
    Y, groups = rng.normal(size=(M, 3)), rng.integers(0, 4, M)
    together = ScoreGraph(Y, groups)
    for k in range(3):
        np.testing.assert_allclose(
            together.divergence[:, k], ScoreGraph(Y[:, k], groups).divergence, atol=1e-12
        )
    assert together.describe().n_tied_pairs == 0


@pytest.mark.parametrize("cost", ["magnitude", "sign"])
@pytest.mark.parametrize("ties", ["include", "exclude"])
def test_one_group_of_a_million_items_needs_only_linear_memory(cost, ties):
    import tracemalloc

    m = 1_000_000
    y = np.random.default_rng(3).permutation(m).astype(float)
    v = np.cos(np.arange(m))
    tracemalloc.start()
    graph = ScoreGraph(y, cost=cost, ties=ties)
    product = graph.laplacian(v)
    divergence = graph.divergence
    white = graph.root().adjoint(v)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 200 * 8 * m  # a small multiple of the data; pairs would be 4e12 bytes
    np.testing.assert_allclose(product, m * (v - v.mean()), atol=1e-3)
    np.testing.assert_allclose(white @ white, v @ product, rtol=1e-9)
    assert graph.n_pairs == m * (m - 1) // 2
    if cost == "sign":
        np.testing.assert_allclose(divergence, 2 * y - (m - 1), atol=1e-6)


@pytest.mark.parametrize(
    "y, options, message",
    [
        ([1, 2], {"cost": "hinge"}, "'sign'"),
        ([1, 2], {"ties": "no"}, "'exclude'"),
        ([1, 2], {"group_weight": 3}, "'groups'"),
        (np.zeros((4, 2)), {"cost": "sign"}, "one ScoreGraph per output"),
        (np.zeros((4, 2)), {"cost": "relative"}, "one ScoreGraph per output"),
        ([0.0, 1e-200], {"cost": "relative"}, "overflows"),
    ],
)
def test_impossible_scores_and_unknown_options_are_refused(y, options, message):
    with pytest.raises(ValueError, match=message):
        ScoreGraph(y, **options)


@pytest.mark.parametrize(
    "arguments, message",
    [
        (([0, 1], [1]), "winner has 2 entries but loser has 1"),
        (([0.5], [1]), "row numbers"),
        (([-1], [1]), "numbered from 0"),
        (([1], [1]), "to itself"),
        (([0], [1], [-2.0]), "swap winner and loser"),
        (([0], [1], [np.nan]), r"magnitude\[0\] is nan"),
        (([0], [1], [1.0, 2.0]), "1 edges"),
        (([0], [1], None, [0.0]), "a positive number"),
        (([0], [5], None, None, 3), "n_items is 3"),
        (([0, 1], [1, 0], [1.0, 0.0], None, None, "relative"), "whose magnitude is 0"),
    ],
)
def test_impossible_edges_are_refused(arguments, message):
    with pytest.raises(ValueError, match=message):
        PairGraph(*arguments[:5], cost=(*arguments[5:], "magnitude")[0])


def test_a_graph_keeps_its_scores_when_the_array_they_came_in_changes():
    y = np.array([3.0, 1.0, 2.0])
    graph = ScoreGraph(y)
    y[:] = 0.0
    np.testing.assert_allclose(graph.divergence, [3.0, -3.0, 0.0])


@pytest.mark.parametrize("pooled", [False, True])
@pytest.mark.parametrize("folded", [False, True])
def test_disagreement_counts_every_strict_edge(case, folded, pooled):
    graph, _, _, _, rng = case
    F = rng.integers(0, 4, (M, 3)) + (rng.random((M, 3)) < 0.3)
    fold = rng.integers(0, 3, M) if folded else None
    edges = graph.pairs()
    wrong, total = np.zeros((graph.n_groups, 3)), np.zeros(graph.n_groups)
    for i, j, size, weight in zip(
        edges.winner, edges.loser, edges.magnitude, edges.preference_weight, strict=True
    ):
        if size > 0 and (fold is None or fold[i] == fold[j]):
            wrong[graph.groups[i]] += weight * ((F[i] < F[j]) + 0.5 * (F[i] == F[j]))
            total[graph.groups[i]] += weight
    if pooled:
        wrong, total = wrong.sum(axis=0, keepdims=True), total.sum(keepdims=True)
    with np.errstate(invalid="ignore"):
        expected = wrong / total[:, None]
    np.testing.assert_allclose(graph.disagreement(F, fold, pooled=pooled), expected, atol=1e-12)
    one = graph.disagreement(F[:, 0], fold, pooled=pooled)
    np.testing.assert_allclose(one, expected[:, 0], atol=1e-12)
