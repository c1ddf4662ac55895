"""Sparse RankRLS and RankSVM on a basis: [RankRLS09] equations 41 and 42, sections 3.5 and 4.4."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.metrics.pairwise import rbf_kernel

from rankwise import CoRankRLS, PairGraph, RankRLS, RankSVM, ScoreGraph, View
from rankwise.kernels.solver_input import LazyFeatures
from rankwise.model_selection import leave_group_out_predict
from rankwise.runtime import memory
from tests import oracle

M, P, GAMMA = 40, 3, 0.3


@pytest.fixture
def data():
    rng = np.random.default_rng(8)
    X = rng.normal(size=(M, P))
    y = rng.integers(0, 4, M).astype(float)
    groups = rng.permutation(np.repeat(np.arange(5), 8))
    return X, y, groups, rng.normal(size=(6, P))


def solution_of_equation_41(X, y, groups, points, alpha):
    """A = (K_R M Mᵀ K_Rᵀ + λ K_RR)⁺ K_R M N, densely, with λ = α W."""
    edges = oracle.score_edges(y, groups)
    L, d = oracle.laplacian_and_divergence(edges, len(y))
    K_R, K_RR = rbf_kernel(points, X, gamma=GAMMA), rbf_kernel(points, gamma=GAMMA)
    return np.linalg.lstsq(K_R @ L @ K_R.T + alpha * len(edges) * K_RR, K_R @ d)[0]


@pytest.mark.parametrize("form", [np.asarray, np.ndarray.tolist, sp.csr_matrix, np.float32])
def test_basis_of_points_equals_equation_41(data, form):
    X, y, groups, X_new = data
    points = np.random.default_rng(1).normal(size=(7, P)).astype(np.float32).astype(float)
    model = RankRLS(0.05, kernel="rbf", gamma=GAMMA, basis=form(points)).fit(X, y, groups)
    a = solution_of_equation_41(X, y, groups, points, 0.05)
    expected = rbf_kernel(X_new, points, gamma=GAMMA) @ a
    np.testing.assert_allclose(
        model.predict(X_new), expected, atol=1e-5 if form is np.float32 else 1e-8
    )
    assert model.dual_coef_.shape == (7,)
    assert not hasattr(model, "basis_indices_")


@pytest.mark.parametrize(
    "options", [{}, {"cost": "sign"}, {"cost": "relative"}, {"beta": 0.4}], ids=str
)
def test_points_that_are_rows_equal_the_row_numbers(data, options):
    X, y, groups, X_new = data
    rows = [3, 30, 11, 5]
    same = {"kernel": "rbf", "gamma": GAMMA, **options}
    by_rows = RankRLS(0.1, basis=rows, **same).fit(X, y, groups)
    by_points = RankRLS(0.1, basis=X[rows], **same).fit(X, y, groups)
    np.testing.assert_allclose(by_points.predict(X_new), by_rows.predict(X_new), atol=1e-10)


@pytest.mark.parametrize("graph", ["explicit", "relative"])
def test_basis_works_on_graphs_of_any_shape(data, graph):
    X, y, groups, X_new = data
    graph = (
        PairGraph([0, 1, 2, 9, 30], [5, 6, 7, 8, 0], n_items=M)
        if graph == "explicit"
        else ScoreGraph(y, groups, cost="relative")
    )
    points = X[[1, 2, 3, 9, 30, 31]]
    model = RankRLS(0.1, kernel="rbf", gamma=GAMMA, basis=points).fit(X, graph)
    K_R, K_RR = rbf_kernel(points, X, gamma=GAMMA), rbf_kernel(points, gamma=GAMMA)
    lam = 0.1 * graph.total_weight
    a = np.linalg.solve(K_R @ graph.laplacian(K_R.T) + lam * K_RR, K_R @ graph.divergence)
    np.testing.assert_allclose(
        model.predict(X_new), rbf_kernel(X_new, points, gamma=GAMMA) @ a, atol=1e-8
    )


def test_duplicate_and_nearly_equal_points_are_merged(data):
    X, y, groups, X_new = data
    points = X[:6]
    crowded = np.vstack([points, points, points + 1e-9, points[:1]])
    expected = RankRLS(0.01, kernel="rbf", gamma=GAMMA, basis=points).fit(X, y, groups)
    model = RankRLS(0.01, kernel="rbf", gamma=GAMMA, basis=crowded).fit(X, y, groups)
    np.testing.assert_allclose(model.predict(X_new), expected.predict(X_new), atol=1e-6)
    assert len(model.dual_coef_) == 19
    assert np.abs(model.dual_coef_).max() < 10 * np.abs(expected.dual_coef_).max()


def test_rows_of_a_precomputed_kernel_equal_equation_41(data):
    X, y, groups, X_new = data
    rows = np.array([3, 1, 20, 7, 15])
    model = RankRLS(0.1, kernel="precomputed", basis=rows).fit(
        rbf_kernel(X, gamma=GAMMA), y, groups
    )
    expected = rbf_kernel(X_new, X[rows], gamma=GAMMA) @ solution_of_equation_41(
        X, y, groups, X[rows], 0.1
    )
    np.testing.assert_allclose(
        model.predict(rbf_kernel(X_new, X, gamma=GAMMA)), expected, atol=1e-8
    )
    np.testing.assert_array_equal(model.basis_indices_, rows)


def test_more_points_than_items_are_the_full_model_if_the_items_are_among_them(data):
    X, y, groups, X_new = data
    points = np.vstack([X, np.random.default_rng(2).normal(size=(20, P))])
    many = RankRLS(0.1, kernel="rbf", gamma=GAMMA, basis=points).fit(X, y, groups)
    full = RankRLS(0.1, kernel="rbf", gamma=GAMMA).fit(X, y, groups)
    np.testing.assert_allclose(many.predict(X_new), full.predict(X_new), atol=1e-6)


@pytest.mark.parametrize("fraction", [0.1, 1.0], ids=["many folds", "few"])
def test_leave_group_out_in_basis_space_equals_training_again(data, fraction):
    X, y, groups, X_new = data
    alphas = np.array([1e-3, 1e-1])
    model = RankRLS(kernel="rbf", gamma=GAMMA, basis=X_new[: max(1, round(6 * fraction))])
    held_out = leave_group_out_predict(model, X, y, groups, alphas=alphas)
    for g in np.unique(groups):
        rest = groups != g
        for k, alpha in enumerate(alphas):
            model.set_params(alpha=alpha).fit(X[rest], y[rest], groups[rest])
            np.testing.assert_allclose(held_out[~rest, k], model.predict(X[~rest]), atol=1e-8)


def test_rank_svm_on_points_equals_the_linear_machine_on_their_kernel_map(data):
    X, y, groups, _ = data
    points = X[[0, 3, 7, 20]]
    svm = RankSVM(0.01, kernel="rbf", gamma=GAMMA, basis=points, tol=1e-8).fit(X, y, groups)
    values, vectors = np.linalg.eigh(rbf_kernel(points, gamma=GAMMA))
    R = rbf_kernel(X, points, gamma=GAMMA) @ vectors / np.sqrt(values)
    linear = RankSVM(0.01, tol=1e-8).fit(R, y, groups)
    assert svm.objective_ == pytest.approx(linear.objective_, rel=1e-6)
    np.testing.assert_allclose(svm.predict(X), linear.predict(R), atol=1e-3)
    rows = RankSVM(0.01, kernel="rbf", gamma=GAMMA, basis=[0, 3, 7, 20], tol=1e-8)
    assert rows.fit(X, y, groups).objective_ == pytest.approx(svm.objective_, rel=1e-6)


def test_views_take_points_of_all_columns(data):
    X, y, groups, X_new = data
    rows = [4, 9, 17, 2]
    options = {"columns": [0, 2], "kernel": "rbf", "gamma": GAMMA}
    by_points, by_rows = (
        CoRankRLS(0.1, views=[View(basis=basis, **options), View(kernel="linear")])
        .fit(X, y, groups)
        .predict(X_new)
        for basis in (X[rows], rows)
    )
    np.testing.assert_allclose(by_points, by_rows, atol=1e-8)


def test_training_never_holds_all_features_of_the_basis(data, monkeypatch):
    X, y, groups, X_new = data
    heights = []
    make = LazyFeatures.__getitem__

    def watched(self, part):
        block = make(self, part)
        heights.append(len(block))
        return block

    monkeypatch.setattr(LazyFeatures, "__getitem__", watched)
    monkeypatch.setattr("rankwise.graphs.gram.block_rows", lambda n_columns: 9)
    model = RankRLS(0.1, kernel="rbf", gamma=GAMMA, basis=X_new)
    lazy = model.fit(X, y, groups).predict(X_new)
    assert max(heights[1:]) <= 9  # after a few rows that tell whether columns are far from zero
    assert sum(heights[1:]) == M
    monkeypatch.setattr(memory, "available_bytes", lambda: 8 * 6 * M - 1)
    np.testing.assert_allclose(model.fit(X, y, groups).predict(X_new), lazy)
    with pytest.raises(ValueError, match=r"40 × 6 would take.*smaller n_basis"):
        leave_group_out_predict(model, X, y, groups)


@pytest.mark.parametrize(
    "options, message",
    [
        ({"basis": np.ones((2, 5))}, "points with 5 features but X has 3"),
        ({"basis": np.ones((2, 3)), "n_basis": 4}, "n_basis=4 but basis has 2 points"),
        ({"basis": np.empty((0, 3))}, "0 sample"),
        ({"basis": [[0.0, 1.0, np.nan]]}, "basis contains NaN"),
        ({"basis": np.ones(3)}, "row numbers or, for rankers that accept points"),
    ],
)
def test_bases_that_cannot_be_are_refused(data, options, message):
    X, y, groups, _ = data
    with pytest.raises(ValueError, match=message):
        RankRLS(**{"kernel": "rbf", **options}).fit(X, y, groups)


def test_points_have_no_values_in_a_precomputed_kernel(data):
    X, y, groups, _ = data
    K = rbf_kernel(X)
    with pytest.raises(ValueError, match="has no kernel values; pass row numbers"):
        RankRLS(kernel="precomputed", basis=K[:3]).fit(K, y, groups)
    with pytest.raises(ValueError, match="square matrix"):
        RankRLS(kernel="precomputed", basis=[0, 1]).fit(K[:, :9], y, groups)


def test_a_basis_whose_own_kernel_matrix_would_not_fit_is_refused(data, monkeypatch):
    X, y, groups, _ = data
    monkeypatch.setattr(memory, "available_bytes", lambda: 8 * 9 - 1)
    for options in ({"n_basis": 3}, {"basis": X[:3]}, {"basis": [0, 1, 2]}):
        with pytest.raises(ValueError, match="the kernel matrix of a basis of 3 × 3 would take"):
            RankRLS(kernel="rbf", **options).fit(X, y, groups)
