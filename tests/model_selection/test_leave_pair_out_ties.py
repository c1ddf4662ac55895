"""Leave-pair-out takes no rounding for order, and no order for rounding."""

from __future__ import annotations

import itertools
import tracemalloc

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rankwise import RankRLS, RankRLSCV
from rankwise.kernels.kernel import Kernel
from rankwise.model_selection import leave_pair_out, permutation_test

ALPHAS = np.logspace(-8, 4, 13)
KERNELS = ["linear", "rbf", "polynomial", "laplacian", "cosine"]


@pytest.mark.parametrize("kernel", [*KERNELS, "sigmoid"])
@pytest.mark.parametrize("solver", ["auto", "dual"])
@pytest.mark.parametrize("row", [[2.0], [0.1, -3.0, 1e6], [1e-12, 1e-12], [1e12, 0.3]], ids=str)
def test_identical_items_are_all_ties(kernel, solver, row):
    rng = np.random.default_rng(0)
    X = np.tile(row, (20, 1))
    model = RankRLS(kernel=kernel, solver=solver)
    for y in (rng.normal(size=20), 1e12 + rng.normal(size=20), np.arange(20) % 2.0):
        for scale in (1e-12, 1.0, 1e12):
            result = leave_pair_out(model, X, scale * y, alphas=ALPHAS)
            np.testing.assert_array_equal(result.auc, 0.5)
    assert not leave_pair_out(model, X, y).differences.any()
    search = RankRLSCV(kernel=kernel, solver=solver).fit(X, y)
    np.testing.assert_array_equal(search.cv_results_["mean_score"], 0.5)


@pytest.mark.parametrize("n_items", [18, 19, 23, 50])
@pytest.mark.parametrize("kernel", ["linear", "polynomial"])
@pytest.mark.parametrize("row", [[0.1, -3.0, 1e6], [1e12, 0.3]], ids=str)
def test_identical_items_of_any_number_get_one_score(n_items, kernel, row):
    """Centered, they are the rounding of their size, which no sum of them need cancel."""
    X, y = np.tile(row, (n_items, 1)), np.random.default_rng(0).normal(size=n_items)
    scores = RankRLS(1e-8, kernel=kernel, solver="dual").fit(X, y).predict(X)
    np.testing.assert_array_equal(scores, scores[0])
    assert np.isfinite(scores[0])


def test_a_permutation_test_of_identical_items_sees_ties():
    X, y = np.full((12, 1), 2.0), np.random.default_rng(1).normal(size=12)
    found = permutation_test(RankRLS(kernel="rbf"), X, y, n_permutations=20, random_state=0)
    assert found.score == 0.5
    np.testing.assert_array_equal(found.null_scores, 0.5)


@settings(max_examples=150, deadline=None)
@given(
    seed=st.integers(0, 10**6),
    kernel=st.sampled_from(KERNELS),
    log_alpha=st.floats(-8, 4),
    log_scale=st.sampled_from([-12, 0, 12]),
    offset=st.sampled_from([0.0, 1e4]),
    dtype=st.sampled_from([np.float32, np.float64]),
    beta=st.sampled_from([0.0, 0.3, 1.0]),
)
def test_identical_items_among_others_are_ties_and_the_others_are_not(
    seed, kernel, log_alpha, log_scale, offset, dtype, beta
):
    rng = np.random.default_rng(seed)
    kind = np.r_[0, 0, 1, 1, 1, np.arange(2, 14)]
    X = rng.normal(size=(14, 3))
    X[:, 2] = 0.7  # a constant column
    X = ((X + offset) * (10.0**log_scale if kernel == "linear" else 1.0)).astype(dtype)
    alpha = 10.0**log_alpha * (10.0 ** (2 * log_scale) if kernel == "linear" else 1.0)
    y = 10.0**log_scale * rng.normal(size=len(kind))
    differences = leave_pair_out(RankRLS(alpha, kernel=kernel, beta=beta), X[kind], y).differences
    same = kind[:, None] == kind
    assert not differences[same].any()
    if not offset:
        atol = 1e-6 * np.abs(y).max()
        np.testing.assert_allclose(differences, -differences.T, rtol=1e-6, atol=atol)
    if kernel == "rbf" and log_alpha > -4 and not offset:
        assert differences[~same].all()


def exact_differences(K, y, alpha):
    """The slow truth, in long double: every pair held out, the rest solved with an intercept."""
    m = len(y)
    out = np.zeros((m, m))
    for i, j in itertools.combinations(range(m), 2):
        rest = np.setdiff1d(np.arange(m), [i, j])
        n = len(rest)
        A = np.zeros((n + 1, n + 2), dtype=np.longdouble)
        A[:n, :n] = K[np.ix_(rest, rest)] + alpha * (n - 1) / 2 * np.eye(n, dtype=np.longdouble)
        A[:n, n] = A[n, :n] = 1
        A[:n, n + 1] = y[rest]
        for k in range(n + 1):
            pivot = k + np.argmax(np.abs(A[k:, k]))
            A[[k, pivot]] = A[[pivot, k]]
            A[k] /= A[k, k]
            for other in range(n + 1):
                if other != k:
                    A[other] -= A[other, k] * A[k]
        out[i, j] = (K[i, rest] - K[j, rest]) @ A[:n, -1]
        out[j, i] = -out[i, j]
    return out


@pytest.mark.parametrize("options", [{}, {"solver": "dual"}, {"kernel": "rbf", "gamma": 0.3}])
@pytest.mark.parametrize("alpha", [1e-4, 1e-2, 1.0, 1e3])
@pytest.mark.parametrize("step", [1e-6, 1e-8])
def test_items_that_nearly_agree_keep_their_order(options, alpha, step):
    rng = np.random.default_rng(3)
    X = rng.normal(size=(5, 2))
    X = np.concatenate([X, X * (1 + step), X])
    y = rng.normal(size=15)
    K = Kernel(options.get("kernel", "linear"), options.get("gamma")).matrix(
        X.astype(np.longdouble)
    )
    truth = exact_differences(K, y, alpha)
    found = leave_pair_out(RankRLS(alpha, **options), X, y).differences
    np.testing.assert_allclose(found, truth, atol=2e-8, rtol=1e-6)
    kind = np.r_[np.arange(10), np.arange(5)]
    same = kind[:, None] == kind
    assert not found[same].any()
    if step == 1e-6:  # rounding is less than that
        np.testing.assert_array_equal(np.sign(found[~same]), np.sign(truth[~same]))


def test_ties_count_one_half_beside_what_is_ordered():
    rng = np.random.default_rng(4)
    X = np.repeat(rng.normal(size=(10, 2)), 2, axis=0)
    y = X[:, 0] + 1e-3 * np.arange(20)
    result = leave_pair_out(RankRLS(1e-3), X, y)
    i, j = np.triu_indices(20, 1)
    truth = result.differences[i, j] * (y[i] - y[j])
    assert (truth == 0).sum() == 10
    expected = ((truth < 0).sum() + 0.5 * (truth == 0).sum()) / 190
    assert result.disagreement == pytest.approx(expected, abs=1e-15)


def test_items_that_differ_in_what_the_rest_never_shows_are_ties():
    rng = np.random.default_rng(5)
    X = np.column_stack([np.repeat(rng.normal(size=8), 2), np.eye(16)[:, 0]])
    y = rng.normal(size=16)
    for options in ({}, {"solver": "dual"}):
        differences = leave_pair_out(RankRLS(1e-3, **options), X, y).differences
        assert differences[0, 1] == 0
        assert differences[0, 2] != 0


@pytest.mark.parametrize("kernel", ["rbf", "precomputed"])
def test_leave_pair_out_needs_two_and_a_half_kernel_matrices(kernel):
    rng = np.random.default_rng(6)
    X, y = rng.normal(size=(700, 4)), rng.normal(size=700)
    X = X if kernel == "rbf" else X @ X.T
    leave_pair_out(RankRLS(kernel=kernel), X[:20, :20], y[:20])  # imports are not counted
    tracemalloc.start()
    leave_pair_out(RankRLS(kernel=kernel), X, y, alphas=[0.1, 1.0])
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak / (8 * 700**2) < 2.5


def test_the_eigenvectors_are_counted_before_they_are_computed(monkeypatch):
    monkeypatch.setattr("rankwise.runtime.memory.available_bytes", lambda: 8 * 40**2 + 1)
    X, y = np.random.default_rng(7).normal(size=(40, 2)), np.arange(40.0)
    with pytest.raises(ValueError, match=r"2\.5 matrices of that size.*n_basis"):
        leave_pair_out(RankRLS(kernel="rbf"), X, y)
