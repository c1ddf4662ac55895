"""Equal rows get equal scores, to the last bit, wherever they stand and however X is stored."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

from rankwise import CoRankRLS, RankingPursuit, RankRLS, RankRLSCV, RankSVM, RankSVMCV, View
from rankwise.kernels.kernel import Kernel
from rankwise.kernels.stable_products import first_equal_rows, row_products
from rankwise.model_selection import cross_val_predict_groups, leave_group_out_predict

STORED = {
    "by rows": np.ascontiguousarray,
    "by columns": np.asfortranarray,
    "with gaps": lambda X: np.repeat(np.repeat(X, 2, axis=0), 3, axis=1)[::2, ::3],
    "backwards": lambda X: X[::-1].copy()[::-1],
    "sparse": sp.csr_matrix,
    "sparse, not sorted": lambda X: shuffled_entries(sp.csr_matrix(X)),
}
RANKERS = {
    "linear": RankRLS(0.1),
    "dual": RankRLS(0.1, solver="dual"),
    "rbf": RankRLS(0.1, kernel="rbf", gamma=0.1),
    "polynomial": RankRLS(0.1, kernel="polynomial"),
    "laplacian": RankRLS(0.1, kernel="laplacian"),
    "callable": RankRLS(0.1, kernel=lambda a, b: float((1 + a @ b) ** 2)),
    "basis": RankRLS(0.1, kernel="rbf", n_basis=7, random_state=0),
    "svm": RankSVM(0.1),
    "kernel svm": RankSVM(0.1, kernel="rbf"),
    "views": CoRankRLS(0.1, views=[View([0, 2, 4]), View(kernel="rbf", n_basis=9)], random_state=0),
    "pursuit of items": RankingPursuit(5, kernel="rbf"),
    "pursuit of features": RankingPursuit(3, dictionary="features", kernel="linear"),
    "search": RankRLSCV(),
}


def shuffled_entries(X):
    """The same matrix, each row's entries in an order of its own."""
    rng = np.random.default_rng(1)
    for a, b in zip(X.indptr[:-1], X.indptr[1:], strict=True):
        order = rng.permutation(b - a)
        X.indices[a:b], X.data[a:b] = X.indices[a:b][order], X.data[a:b][order]
    X.has_sorted_indices = X.has_canonical_format = False
    return X


def with_copies(rng, m, p, dtype=np.float64, n_kinds=None):
    """Rows of a few kinds in a random order, and the kind of each."""
    n_kinds = max(1, m // 3) if n_kinds is None else n_kinds
    kinds = (rng.normal(size=(n_kinds, p)) * 10.0 ** rng.integers(-3, 4, p)).astype(dtype)
    kind = rng.integers(0, n_kinds, m)
    return kinds[kind], kind


def assert_equal_rows_have_equal_scores(scores, kind):
    for k in np.unique(kind):
        own = np.asarray(scores)[kind == k]
        assert (own == own[0]).all(), f"scores of equal rows differ by {np.ptp(own, axis=0)}"


@pytest.mark.parametrize("stored", STORED)
@pytest.mark.parametrize("name", RANKERS)
def test_equal_rows_have_equal_scores_and_ranks(name, stored):
    if name in ("laplacian", "callable") and "sparse" in stored:
        pytest.skip("the kernel does not take sparse X")
    rng = np.random.default_rng(5)
    X, y = rng.normal(size=(40, 11)), rng.normal(size=40)
    model = RANKERS[name].fit(X, y)
    for m in (2, 3, 7, 50, 101):
        Z, kind = with_copies(rng, m, 11)
        Z = STORED[stored](Z)
        assert_equal_rows_have_equal_scores(model.predict(Z), kind)
        assert_equal_rows_have_equal_scores(model.rank(Z), kind)


@pytest.mark.parametrize("n_outputs", [2, 8, 9, 40])
@pytest.mark.parametrize("stored", STORED)
def test_equal_rows_have_equal_scores_for_every_output(n_outputs, stored):
    rng = np.random.default_rng(6)
    X, Y = rng.normal(size=(40, 11)), rng.normal(size=(40, n_outputs))
    for options in ({}, {"kernel": "rbf"}):
        model = RankRLS(0.1, **options).fit(X, Y)
        Z, kind = with_copies(rng, 61, 11)
        assert_equal_rows_have_equal_scores(model.predict(STORED[stored](Z)), kind)
    path = RankRLS().path(X, Y[:, 0], alphas=np.logspace(-3, 3, 31))
    assert_equal_rows_have_equal_scores(path.predict(STORED[stored](Z)), kind)


def test_kernel_values_given_by_the_user_count_as_rows():
    rng = np.random.default_rng(7)
    X, kind = with_copies(rng, 60, 6)
    K = np.round(X @ X.T, 6)
    model = RankRLS(0.1, kernel="precomputed").fit(K, rng.normal(size=60))
    same, back = np.unique(kind, return_index=True)
    exact = K[back][np.searchsorted(same, kind)]
    assert_equal_rows_have_equal_scores(model.predict(exact), kind)


@settings(max_examples=200, deadline=None)
@given(
    seed=st.integers(0, 10**6),
    m=st.integers(1, 70),
    p=st.one_of(st.integers(1, 70), st.sampled_from([255, 1024, 8193, 20_000])),
    k=st.one_of(st.none(), st.integers(1, 12)),
    dtype=st.sampled_from([np.float32, np.float64]),
    stored=st.sampled_from(sorted(STORED)),
    data=st.data(),
)
def test_a_score_depends_on_the_row_alone(seed, m, p, k, dtype, stored, data):
    rng = np.random.default_rng(seed)
    m = min(m, max(1, 200_000 // p))
    X, kind = with_copies(rng, m, p, dtype)
    W = rng.normal(size=p if k is None else (p, k)).astype(dtype)
    Z = STORED[stored](X)
    product = row_products(Z, W)
    assert product.dtype == dtype
    assert_equal_rows_have_equal_scores(product, kind)
    exact = X.astype(np.float64) @ W.astype(np.float64)
    scale = np.abs(X).astype(np.float64) @ np.abs(W).astype(np.float64)
    assert (np.abs(product - exact) <= 2 * p * np.finfo(dtype).eps * scale).all()
    a = data.draw(st.integers(0, m - 1))
    b = data.draw(st.integers(a + 1, m))
    if k is None or k <= 8 or "sparse" in stored:
        np.testing.assert_array_equal(row_products(Z[a:b], W), product[a:b])


@settings(max_examples=200, deadline=None)
@given(
    seed=st.integers(0, 10**6),
    m=st.integers(0, 60),
    p=st.integers(0, 5),
    dtype=st.sampled_from([np.float32, np.float64]),
    stored=st.sampled_from(sorted(STORED)),
    labeled=st.booleans(),
)
def test_equal_rows_are_found(seed, m, p, dtype, stored, labeled):
    rng = np.random.default_rng(seed)
    X = rng.choice([-0.0, 0.0, 1.0, 2.0, 1 + 1e-6, 1e-300, -3e38], size=(m, p)).astype(dtype)
    labels = rng.integers(0, 3, m) if labeled else np.zeros(m, dtype=np.intp)
    expected = np.arange(m)
    for i in range(m):
        for j in range(i):
            if labels[i] == labels[j] and (X[i] == X[j]).all():
                expected[i] = j
                break
    found = first_equal_rows(STORED[stored](X), labels if labeled else None)
    found = np.arange(m) if found is None else found
    np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("stored", ["by rows", "by columns", "sparse"])
@pytest.mark.parametrize("function", ["rbf", "linear", "polynomial", "sigmoid", "cosine"])
def test_a_kernel_matrix_has_equal_rows_for_equal_items(function, stored):
    rng = np.random.default_rng(8)
    X, kind = with_copies(rng, 83, 9)
    K = Kernel(function).matrix(STORED[stored](X))
    assert_equal_rows_have_equal_scores(K, kind)
    assert_equal_rows_have_equal_scores(K.T, kind)
    np.testing.assert_allclose(K, Kernel(function).matrix(X, X), rtol=1e-8, atol=1e-8)


HELD_OUT = {
    "linear": RankRLS(),
    "wide": RankRLS(solver="dual"),
    "rbf": RankRLS(kernel="rbf", gamma=0.1),
    "basis": RankRLS(kernel="rbf", gamma=0.1, n_basis=8, random_state=0),
    "sign": RankRLS(cost="sign"),
    "both losses": RankRLS(beta=0.3),
    "svm": RankSVM(),
    "kernel svm": RankSVM(kernel="rbf"),
}


@pytest.mark.parametrize("name", HELD_OUT)
def test_equal_rows_held_out_together_have_equal_scores(name):
    rng = np.random.default_rng(9)
    X, kind = with_copies(rng, 90, 7, n_kinds=12)
    X /= np.abs(X).max(axis=0)
    y, groups = rng.normal(size=90), rng.integers(0, 5, 90)
    alphas = [1e-3, 0.1, 10.0]
    held = leave_group_out_predict(HELD_OUT[name], X, y, groups, alphas=alphas)
    assert_equal_rows_have_equal_scores(held, kind + 100 * groups)
    folds = [(np.flatnonzero(groups != g), np.flatnonzero(groups == g)) for g in range(5)]
    held = cross_val_predict_groups(HELD_OUT[name], X, y, cv=folds, alphas=alphas)
    assert_equal_rows_have_equal_scores(held, kind + 100 * groups)


@pytest.mark.parametrize("search", [RankRLSCV, RankSVMCV])
@pytest.mark.parametrize("kernel", ["linear", "rbf"])
@pytest.mark.parametrize("cv", ["auto", 3])
def test_a_search_over_identical_items_finds_that_nothing_can_be_learned(search, kernel, cv):
    rng = np.random.default_rng(10)
    groups = np.repeat(np.arange(6), 5)
    model = search([1e-6, 1e-2, 1.0], kernel=kernel, cv=cv)
    for X in (np.full((30, 1), 2.0), np.tile(rng.normal(size=7), (30, 1))):
        model.fit(X, rng.normal(size=30), groups)
        np.testing.assert_array_equal(model.cv_results_["mean_score"], 0.5)
