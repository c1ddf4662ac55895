"""Data far from zero, and arrays that the caller changes afterwards."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

from rankwise import ConditionalRankRLS, RankingPursuit, RankRLS, View
from rankwise.kernels.kernel import Kernel
from tests.ranker_cases import kernel_rankers

RBF = {"kernel": "rbf", "gamma": 0.3}
VIEWS = [View(slice(0, 2), **RBF), View(slice(1, 3), **RBF)]


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(0)
    X = rng.integers(-40, 40, size=(60, 3)) / 16  # exact also far from zero
    y = np.sin(X[:, 0]) + X[:, 1] ** 2 - X[:, 2] + 0.1 * rng.standard_normal(60)
    return X, y, np.repeat(np.arange(10), 6)


def spread(one, other):
    one, other = one - one.mean(), other - other.mean()
    return np.abs(one - other).max() / np.ptp(one)


@kernel_rankers(VIEWS, **RBF)
@pytest.mark.parametrize("offset", [1e6, 1e9])
def test_a_kernel_of_distances_does_not_see_an_offset(model, offset, data):
    X, y, groups = data
    near = model.fit(X, y, groups).predict(X)
    far = model.fit(X + offset, y, groups).predict(X + offset)
    assert spread(near, far) < 1e-6
    alone = [model.predict(X[k : k + 1] + offset)[0] for k in range(5)]
    np.testing.assert_allclose(alone, far[:5], rtol=0, atol=1e-9 * np.ptp(far))


def test_kernel_values_far_from_zero_are_those_near_it(data):
    X, kernel = data[0], Kernel("rbf", 0.3)
    near = kernel.matrix(X[:20], X[20:])
    np.testing.assert_allclose(kernel.matrix(X[:20] + 2.0**30, X[20:] + 2.0**30), near, rtol=1e-12)


@pytest.mark.parametrize("as_matrix", [np.asarray, sp.csr_matrix], ids=["dense", "sparse"])
@pytest.mark.parametrize("kernel", ["linear", "polynomial"])
def test_float32_features_far_from_zero_predict_in_float64(as_matrix, kernel):
    rng = np.random.default_rng(1)
    X = (rng.integers(-200, 200, size=(80, 3)) / 16 + 1e6).astype(np.float32)
    X = X / np.float32(2**20) if kernel == "polynomial" else X
    y = X.astype(float) @ [1.0, -2.0, 0.5]
    model = RankRLS(1e-6, kernel=kernel, degree=2).fit(X, y)
    single = model.predict(as_matrix(X))
    assert single.dtype == np.float64
    double = model.predict(as_matrix(X).astype(np.float64))
    np.testing.assert_allclose(single, double, rtol=0, atol=1e-9 * np.ptp(double))


@pytest.mark.parametrize("as_matrix", [np.array, sp.csr_array], ids=["dense", "sparse"])
@kernel_rankers(VIEWS, **RBF)
def test_a_model_does_not_change_with_the_array_it_was_trained_on(model, as_matrix, data):
    X, y, groups = data
    items = as_matrix(X)
    before = model.fit(items, y, groups).predict(X)
    values = items if isinstance(items, np.ndarray) else items.data
    values[:] = 0.0
    np.testing.assert_array_equal(model.predict(X), before)


def test_a_model_does_not_change_with_basis_points_dictionaries_or_sides_of_a_table(data):
    X, y, groups = data
    points, rows, columns = X[:9].copy(), X[:8].copy(), X[8:14].copy()
    table = ConditionalRankRLS(row_kernel="rbf", column_kernel="rbf")
    table.fit(rows, columns, np.random.default_rng(2).standard_normal((8, 6)))
    basis = RankRLS(kernel="rbf", basis=points).fit(X, y, groups)
    pursuit = RankingPursuit(n_basis=5, dictionary=points).fit(X, y, groups)
    before = basis.predict(X), pursuit.predict(X), table.predict(X, X[8:14])
    for array in (points, rows, columns):
        array[:] = 0.0
    after = basis.predict(X), pursuit.predict(X), table.predict(X, X[8:14])
    for one, other in zip(after, before, strict=True):
        np.testing.assert_array_equal(one, other)
