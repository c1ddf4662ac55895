"""Claims that hold for every ranker: the form in which data come does not change what it learns."""

from __future__ import annotations

import pickle

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import scipy.sparse as sp
from sklearn.base import clone

from rankwise import CoRankRLS, View, make_target
from tests.ranker_cases import every_ranker

M, NAMES = 60, list("abcde")
FORMS = {
    "csr matrix": sp.csr_matrix,
    "csr array": sp.csr_array,
    "csc array": sp.csc_array,
    "by columns": np.asfortranarray,
    "pandas": lambda X: pd.DataFrame(X, columns=NAMES),
    "polars": lambda X: pl.DataFrame(X, schema=NAMES),
    "arrow": lambda X: pa.table(dict(zip(NAMES, X.T, strict=True))),
}


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
@pytest.mark.parametrize("form", FORMS)
def test_sparse_matrices_and_frames_equal_dense_arrays(data, ranker, atol, form):
    X, y, groups, _ = data
    plain, items = clone(ranker).fit(X, y, groups), FORMS[form](X)
    model = clone(ranker).fit(items, y, groups)
    np.testing.assert_allclose(model.predict(items), plain.predict(X), atol=atol)
    if atol < 1e-6:
        np.testing.assert_array_equal(model.rank(items, groups), plain.rank(X, groups))
        assert model.score(items, y, groups) == plain.score(X, y, groups)
    if form in ("pandas", "polars", "arrow"):
        assert list(model.feature_names_in_) == NAMES


def test_views_take_names_of_columns(data):
    X, y, groups, _ = data
    plain = CoRankRLS(views=[View([0, 3]), View([1, 2])]).fit(X, y, groups).predict(X)
    named = CoRankRLS(views=[View(["a", "d"]), View(["b", "c"])])
    for form in ("pandas", "polars", "arrow"):
        items = FORMS[form](X)
        found = clone(named).fit(items, y, groups).predict(items)
        np.testing.assert_allclose(found, plain, rtol=1e-10, atol=1e-12)


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
