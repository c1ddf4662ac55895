"""Claims that hold for every ranker: the form in which data come does not change what it learns."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone

from rankwise import (
    CoRankRLS,
    CoRankRLSCV,
    RankingPursuit,
    RankLogistic,
    RankRLS,
    RankRLSCV,
    RankSVM,
    RankSVMCV,
    View,
    make_target,
)

M = 60
VIEWS = [View([0, 1, 2]), View([2, 3, 4])]
CLOSED = {
    "RankRLS, magnitude": RankRLS(0.01),
    "RankRLS, sign": RankRLS(0.01, cost="sign", group_weight="groups"),
    "RankRLS, relative": RankRLS(0.01, cost="relative"),
    "RankRLS, rbf": RankRLS(0.01, kernel="rbf"),
    "RankRLSCV": RankRLSCV([0.01]),
    "CoRankRLS": CoRankRLS(0.01, views=VIEWS),
    "CoRankRLSCV": CoRankRLSCV([0.01], nus=[1.0], views=VIEWS, cv=None),
    "RankingPursuit": RankingPursuit(3, kernel="linear", dictionary="features"),
}
CERTIFIED = {
    "RankSVM, hinge": RankSVM(0.1, tol=1e-9),
    "RankSVM, squared hinge": RankSVM(0.1, loss="squared_hinge", tol=1e-9),
    "RankSVMCV": RankSVMCV([0.1], loss="squared_hinge", tol=1e-9, cv=None),
    "RankLogistic": RankLogistic(0.1, tol=1e-9),
}
RANKERS = [(ranker, 1e-8) for ranker in CLOSED.values()]
RANKERS += [(ranker, 1e-3) for ranker in CERTIFIED.values()]
every_ranker = pytest.mark.parametrize("ranker, atol", RANKERS, ids=[*CLOSED, *CERTIFIED])


@pytest.fixture(params=[0, 1])
def data(request):
    rng = np.random.default_rng(request.param)
    X = rng.normal(size=(M, 5))
    y = (X @ rng.normal(size=5) + rng.normal(size=M)).round()
    X[np.abs(X) < 0.5] = 0.0
    return X, y, rng.permutation(np.repeat(np.arange(6), M // 6)), rng


@every_ranker
def test_a_target_carries_groups_and_weights(data, ranker, atol):
    X, y, groups, rng = data
    weights = rng.uniform(0.5, 2, M)
    model = clone(ranker).fit(X, make_target(y, groups, weights))
    plain = clone(ranker).fit(X, y, groups, sample_weight=weights)
    np.testing.assert_array_equal(model.predict(X), plain.predict(X))
    target = make_target(y, groups)
    assert model.score(X, target) == model.score(X, y, groups)


@every_ranker
def test_order_of_rows_and_names_of_groups_do_not_matter(data, ranker, atol):
    X, y, groups, rng = data
    if ranker.allows_unscored:
        y = np.where(groups == 5, np.nan, y)
    order, names = rng.permutation(M), np.array(["d", "f", "a", "c", "b", "e"])[groups]
    expected = clone(ranker).fit(X, y, groups).predict(X)
    moved = clone(ranker).fit(X[order], y[order], names[order]).predict(X)
    np.testing.assert_allclose(moved, expected, atol=atol)


@every_ranker
@pytest.mark.parametrize("convert", [sp.csr_matrix, sp.csr_array, sp.csc_array])
def test_sparse_equals_dense(data, ranker, atol, convert):
    X, y, groups, _ = data
    expected = clone(ranker).fit(X, y, groups).predict(X)
    sparse = clone(ranker).fit(convert(X), y, groups).predict(convert(X))
    np.testing.assert_allclose(sparse, expected, atol=atol)


@every_ranker
def test_float32_trains_as_float64_on_the_same_values(data, ranker, atol):
    X, y, groups, _ = data
    single = X.astype(np.float32)
    expected = clone(ranker).fit(single.astype(float), y, groups).predict(X)
    model = clone(ranker).fit(single, y, groups)
    np.testing.assert_allclose(model.predict(X), expected, atol=max(atol, 1e-6))
    assert model.predict(single).dtype == np.float64


@every_ranker
def test_a_fitted_model_survives_pickling(data, ranker, atol):
    X, y, groups, _ = data
    model = clone(ranker).fit(X, y, groups)
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(model)).predict(X), model.predict(X))
