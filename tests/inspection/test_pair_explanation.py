"""Contributions to the difference of two items are Shapley values, and sum to the difference."""

from __future__ import annotations

from itertools import combinations
from math import factorial

import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.sparse as sp
import sklearn
from sklearn.linear_model import LinearRegression
from sklearn.pipeline import make_pipeline

from rankwise import AutoRanker, GroupScaler, RankRLS
from rankwise.inspection import contributions, pair_contributions

rng = np.random.default_rng(0)
N_COLUMNS = 5
X = rng.normal(size=(40, N_COLUMNS))
y = X[:, 0] * X[:, 1] + X[:, 2] - 0.5 * X[:, 3]
GROUPS = rng.permutation(np.repeat(["a", "b", "c", "d"], 10))
KERNEL = RankRLS(kernel="rbf").fit(X, y, GROUPS)


def two_rows_of(label):
    return np.flatnonzero(label == GROUPS)[[1, 7]]


def shapley_by_subsets(model, X, first, second):
    """The definition: a weighted sum over all sets of other columns."""
    n = X.shape[1]

    def value(own_columns):
        mixed = X[[first, second]].copy()
        others = [j for j in range(n) if j not in own_columns]
        mixed[:, others] = mixed[::-1][:, others]
        scores = model.predict(mixed)
        return (scores[0] - scores[1]) / 2

    result = np.zeros(n)
    for j in range(n):
        others = [k for k in range(n) if k != j]
        for size in range(n):
            weight = factorial(size) * factorial(n - size - 1) / factorial(n)
            for subset in combinations(others, size):
                result[j] += weight * (value({*subset, j}) - value(set(subset)))
    return result


def test_up_to_five_columns_are_exact_shapley_values():
    first, second = two_rows_of("a")
    result = pair_contributions(KERNEL, X, first, second, GROUPS)
    expected = shapley_by_subsets(KERNEL, X, first, second)
    np.testing.assert_allclose(result.values, expected, atol=1e-12)
    assert np.abs(expected).min() > 1e-3
    assert not result.standard_error.any()
    scores = KERNEL.predict(X)
    assert result.difference == pytest.approx(scores[first] - scores[second])
    assert result.values.sum() == pytest.approx(result.difference)


def test_exchanged_items_have_the_opposite_contributions():
    first, second = two_rows_of("b")
    one = pair_contributions(KERNEL, X, first, second, GROUPS)
    other = pair_contributions(KERNEL, X, second, first, GROUPS)
    np.testing.assert_allclose(one.values, -other.values, atol=1e-12)


def test_linear_models_have_the_difference_of_their_contributions():
    model = RankRLS().fit(X, y, GROUPS)
    first, second = two_rows_of("c")
    of_items = contributions(model, X, GROUPS).values
    result = pair_contributions(model, X, first, second, GROUPS)
    np.testing.assert_allclose(result.values, of_items[first] - of_items[second], atol=1e-12)


def test_random_orders_sum_to_the_difference_and_are_close_to_all_orders():
    wide = rng.normal(size=(60, 7))
    target = np.sign(wide[:, 0] * wide[:, 1]) + wide[:, 2:].sum(axis=1)
    model = RankRLS(kernel="rbf").fit(wide, target)
    result = pair_contributions(model, wide, 3, 5, n_orders=200)
    expected = shapley_by_subsets(model, wide, 3, 5)
    assert result.values.sum() == pytest.approx(result.difference)
    assert (np.abs(result.values - expected) <= 4 * result.standard_error).all()
    assert 0 < result.standard_error.max() < 0.1 * np.abs(expected).max()


def test_scaling_inside_groups_sees_the_whole_group():
    model = make_pipeline(GroupScaler(), RankRLS())
    with sklearn.config_context(enable_metadata_routing=True):
        model.fit(X, y, groups=GROUPS)
        scores = model.predict(X, groups=GROUPS)
    first, second = two_rows_of("d")
    result = pair_contributions(model, X, first, second, GROUPS)
    assert result.difference == pytest.approx(scores[first] - scores[second])
    spread = X[GROUPS == "d"].std(axis=0)
    expected = model[-1].coef_ * (X[first] - X[second]) / spread
    np.testing.assert_allclose(result.values, expected, atol=1e-9)


def test_auto_ranker_of_a_frame_with_text_and_missing_values():
    n = 240
    frame = pd.DataFrame(
        {
            "size": np.where(rng.random(n) < 0.1, np.nan, rng.uniform(20, 150, n)),
            "town": rng.choice(["A", "B", "C"], n),
            "unused": np.zeros(n),
        }
    )
    price = frame["size"].fillna(80) + 40 * (frame["town"] == "B")
    model = AutoRanker(["linear, standard, magnitude"], n_resamples=0).fit(frame, price)
    large = int(np.flatnonzero((frame["size"] > 120) & (frame["town"] == "A"))[0])
    small = int(np.flatnonzero((frame["size"] < 60) & (frame["town"] == "B"))[0])
    result = pair_contributions(model, frame, large, small)
    scores = model.predict(frame)
    assert result.difference == pytest.approx(scores[large] - scores[small])
    by_name = dict(zip(result.names, result.values, strict=True))
    assert by_name["size"] > 0 > by_name["town"]
    assert by_name["unused"] == 0
    assert [row.name for row in result] == ["size", "town", "unused"]
    assert [row.first for row in result][1] == "A"


@pytest.mark.parametrize(
    "convert",
    [
        sp.csr_array,
        lambda A: pd.DataFrame(A, columns=list("abcde")),
        lambda A: pl.DataFrame({name: A[:, j] for j, name in enumerate("abcde")}),
        lambda A: A.tolist(),
    ],
    ids=["sparse", "pandas", "polars", "list"],
)
def test_every_kind_of_X_gives_the_same_contributions(convert):
    first, second = two_rows_of("a")
    items = convert(X)
    model = RankRLS(kernel="rbf").fit(items, y, GROUPS)
    result = pair_contributions(model, items, first, second, GROUPS)
    expected = pair_contributions(KERNEL, X, first, second, GROUPS)
    np.testing.assert_allclose(result.values, expected.values, atol=1e-10)


def test_equal_columns_and_missing_values_have_no_contribution():
    frame = pd.DataFrame(
        {
            "equal": [1.0, 1.0],
            "nan": [np.nan, np.nan],
            "c": [1.0, 3.0],
            "none": [None, None],
            "masked": pd.array([pd.NA, pd.NA], dtype="Int64"),
            "vector": [np.arange(3), np.arange(3)],
        }
    )

    class Model:
        def predict(self, X):
            return X["c"].to_numpy() ** 2

    result = pair_contributions(Model(), frame, 0, 1)
    assert result.values.tolist() == [0, 0, -8, 0, 0, 0]
    assert str(result).splitlines()[1].split() == ["c", "1", "3", "-8"]


@pytest.mark.parametrize(
    "arguments, match",
    [
        ({"first": 40, "second": 0}, "first=40"),
        ({"first": -1, "second": 0}, "first"),
        ({"first": 3, "second": 3}, "second"),
        ({"first": 0, "second": 1, "n_orders": 0}, "n_orders"),
        (
            {
                "first": int(two_rows_of("a")[0]),
                "second": int(two_rows_of("b")[0]),
                "groups": GROUPS,
            },
            "groups",
        ),
    ],
)
def test_rows_that_cannot_be_compared_are_refused(arguments, match):
    with pytest.raises(ValueError, match=match):
        pair_contributions(KERNEL, X, **arguments)


def test_several_outputs_are_refused():
    model = LinearRegression().fit(X, np.c_[y, y])
    with pytest.raises(ValueError, match="output"):
        pair_contributions(model, X, 0, 1)
