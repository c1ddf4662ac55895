"""Scatter matrices of nested groups: row order, offsets, weights and lazy rows do not matter."""

from __future__ import annotations

import numpy as np
import pytest

from rankwise import PairGraph, RankRLS, ScoreGraph

M = 240


class Rows:
    """Features that exist only while they are read; counts the rows that were asked for."""

    def __init__(self, R):
        self._R, self.shape, self.n_read = R, R.shape, 0

    def __getitem__(self, rows):
        block = self._R[rows]
        self.n_read += len(block)
        return block


@pytest.fixture
def rng():
    return np.random.default_rng(5)


def groups_of(order, rng):
    groups = np.repeat(np.arange(9), [1, 2, 7, 20, 30, 30, 40, 50, 60])
    return {"sorted": groups, "shuffled": rng.permutation(groups), "one list": np.zeros(M, int)}[
        order
    ]


def features(rng, groups):
    """Columns of every kind: near zero, far from it, the same in a group, constant, all zero."""
    R = rng.normal(size=(M, 7))
    R[:, 1] += 1e6
    R[:, 2] = groups
    R[:, 3] = 1e3 * groups + 1e-3 * R[:, 3]
    R[:, 4] = 5.0
    R[:, 5] = 0.0
    return R


def centred_in_groups(R, groups):
    means = np.stack([R[groups == g].mean(axis=0) for g in range(groups.max() + 1)])
    return R - means[groups]


@pytest.mark.parametrize("height", [1, 7, 64, 1000])
@pytest.mark.parametrize("options", [{}, {"ties": "exclude"}, {"group_weight": "groups"}], ids=str)
@pytest.mark.parametrize("order", ["sorted", "shuffled", "one list"])
def test_system_equals_the_dense_laplacian(rng, monkeypatch, order, options, height):
    groups = groups_of(order, rng)
    y = rng.integers(0, 4, M).astype(float)
    graph = ScoreGraph(y, groups, **options)
    R = features(rng, groups)
    t = rng.normal(size=(M, 2))
    L = graph.pairs().laplacian_matrix.toarray()
    centred = centred_in_groups(R, groups)
    monkeypatch.setattr("rankwise.graphs.gram.block_rows", lambda n_columns: height)
    gram, moment = graph.system(R, t)
    scale = np.sqrt(np.outer(*2 * [np.diag(L) @ centred**2 + 1e-20]))
    np.testing.assert_allclose(gram / scale, centred.T @ L @ centred / scale, atol=1e-8)
    np.testing.assert_allclose(moment, R.T @ t, rtol=1e-12, atol=1e-6)


@pytest.mark.parametrize("order", ["sorted", "shuffled"])
def test_a_column_that_is_constant_in_groups_has_no_scatter_at_all(rng, order):
    groups = groups_of(order, rng)
    R = features(rng, groups)
    gram = ScoreGraph(rng.normal(size=M), groups).gram(R)
    assert np.abs(gram[[2, 4, 5]]).max() < 1e-9
    assert np.linalg.eigvalsh(gram).min() > -1e-9 * gram.max()


@pytest.mark.parametrize("order", ["sorted", "shuffled", "one list"])
def test_rows_that_are_made_when_read_are_read_twice_at_most(rng, monkeypatch, order):
    groups = groups_of(order, rng)
    graph = ScoreGraph(rng.normal(size=M), groups)
    R, t = features(rng, groups), rng.normal(size=M)
    lazy = Rows(R)
    monkeypatch.setattr("rankwise.graphs.gram.block_rows", lambda n_columns: 50)
    for found, expected in zip(graph.system(lazy, t), graph.system(R, t), strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-6)
    assert lazy.n_read <= 2 * M + 64  # a column that is constant in each family is read again


@pytest.mark.parametrize("graph", ["explicit", "relative"])
def test_graphs_that_need_columns_store_lazy_rows(rng, graph):
    y = rng.integers(0, 4, M).astype(float)
    graph = {
        "explicit": PairGraph(rng.integers(0, 99, 300), rng.integers(99, M, 300), n_items=M),
        "relative": ScoreGraph(y, cost="relative"),
    }[graph]
    R, t = rng.normal(size=(M, 3)), rng.normal(size=M)
    gram, moment = graph.system(Rows(R), t)
    np.testing.assert_allclose(gram, R.T @ graph.laplacian(R), rtol=1e-9)
    np.testing.assert_allclose(moment, R.T @ t)


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("order", ["sorted", "shuffled", "one list"])
@pytest.mark.parametrize("options", [{}, {"cost": "sign"}, {"beta": 1.0}, {"beta": 0.5}], ids=str)
def test_a_value_that_is_not_finite_shows_in_the_diagonal_and_is_refused(
    rng, order, value, options
):
    groups = groups_of(order, rng)
    X, y = rng.normal(size=(M, 4)), rng.integers(0, 3, M).astype(float)
    X[rng.integers(M), 2] = value
    what = "NaN" if np.isnan(value) else "infinity"
    with pytest.raises(ValueError, match=f"Input X contains {what}"):
        RankRLS(**options).fit(X, y, groups)
    with pytest.raises(ValueError, match=f"Input X contains {what}"):
        RankRLS(**options).path(X, y, groups, alphas=[0.1, 1.0])


def test_finite_features_whose_squares_overflow_are_refused_with_advice(rng):
    X, y = rng.normal(size=(M, 4)), rng.normal(size=M)
    with pytest.raises(ValueError, match=r"squares of some features.*scale the features"):
        RankRLS().fit(1e200 * X, y)


@pytest.mark.parametrize("order", ["sorted", "shuffled", "one list"])
@pytest.mark.parametrize("offset", [0.0, 1000.0])
def test_float32_features_give_the_sums_of_the_same_values_in_float64(rng, order, offset):
    groups = groups_of(order, rng)
    graph = ScoreGraph(rng.normal(size=M), groups)
    R = (rng.normal(size=(M, 4)) + offset).astype(np.float32)
    t = rng.normal(size=M)
    gram, moment = graph.system(R, t)
    centered = centred_in_groups(R.astype(np.float64), groups)
    np.testing.assert_allclose(gram, centered.T @ graph.laplacian(centered), rtol=1e-10, atol=1e-8)
    np.testing.assert_allclose(moment, R.astype(np.float64).T @ t, rtol=1e-10)


def test_a_family_that_does_not_tell_of_a_far_column_costs_no_digits(rng):
    """The longest family has the column near zero, all others have one large value each."""
    groups = np.repeat(np.arange(9), [100, 20, 20, 20, 20, 20, 20, 10, 10])
    R = rng.normal(size=(M, 3))
    R[100:, 1] = 1e7 * groups[100:]
    gram = ScoreGraph(rng.normal(size=M), groups).gram(R)
    centered = centred_in_groups(R, groups)
    expected = centered.T @ ScoreGraph(np.zeros(M), groups).laplacian(centered)
    np.testing.assert_allclose(gram, expected, rtol=1e-9, atol=1e-6)
