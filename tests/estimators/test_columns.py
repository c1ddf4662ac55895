"""Columns: what becomes of the columns of a table, and the features that are made of them."""

from __future__ import annotations

import datetime

import numpy as np
import pandas as pd
import polars
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.pipeline import make_pipeline
from sklearn.utils.estimator_checks import parametrize_with_checks

from rankwise import Columns, RankRLS

pyarrow = pytest.importorskip("pyarrow")


N = 60
RNG = np.random.default_rng(0)
COLUMNS = {
    "doc_id": (RNG.integers(0, 9, N).tolist(), "left out", "an identifier: its name says so"),
    "row": (list(range(7, 7 + N)), "left out", "an identifier: it counts the rows"),
    "key": ([10**17 + 3 * k for k in range(N)], "left out", "16 digits"),
    "longer": ([float(10**25 + k * 10**12) for k in range(N)], "left out", "16 digits"),
    "price": ([None, *RNG.normal(size=N - 1).tolist()], "number", ""),
    "nan": ([float("nan"), *range(1, N)], "number", ""),
    "size": (RNG.normal(size=N).tolist(), "number", ""),
    "stars": (RNG.integers(0, 5, N).tolist(), "number", ""),
    "odd": (RNG.permutation(10 * N)[:N].tolist(), "number", "whole numbers that are all different"),
    "color": (["red", None, "blue"] * (N // 3), "category", ""),
    "new": ([True, False] * (N // 2), "category", ""),
    "name": ([f"n{k}" for k in range(N)], "left out", "60 different values, such as 'n0'"),
    "day": ([datetime.date(2024, 1, 1 + k % 5) for k in range(N)], "left out", "dates or times"),
    "day2": ([f"{1 + k % 28}.12.2024" for k in range(N)], "left out", "dates or times"),
    "empty": ([None] * N, "left out", "it has no values"),
    "list": ([[1, 2]] * N, "left out", "lists or other objects"),
    "mixed": ([*map(str, range(N - 1)), "many"], "left out", "also words, such as 'many'"),
    "commas": ([*(f"{k},5" for k in range(N - 1)), "k. A."], "left out", "words, such as 'k. A.'"),
    "long": (["x" * 400, "y" * 400] * (N // 2), "left out", "long texts"),
}


def frame(*names):
    return pyarrow.table({name: COLUMNS[name][0] for name in names or COLUMNS})


def facts(X, **asked):
    return Columns(**asked).fit(X).facts_


@pytest.mark.parametrize("name", COLUMNS)
def test_the_kind_of_each_column(name):
    found = {column.name: column for column in facts(frame())}
    _, kind, why = COLUMNS[name]
    assert found[name].kind == kind
    assert why in found[name].why
    assert bool(why) == bool(found[name].why)


def test_words_tell_gaps_and_values():
    found = {column.name: column.words for column in facts(frame())}
    assert found["price"] == found["nan"] == "number with 1 gap"
    assert found["size"] == "number"
    assert found["color"] == "category of 2 values, 20 gaps"


@pytest.mark.parametrize("kind", ["pandas", "polars"])
def test_frames_of_all_kinds_have_the_same_facts_and_features(kind):
    table = frame("doc_id", "price", "color", "new", "day", "stars")
    other = table.to_pandas() if kind == "pandas" else polars.from_arrow(table)
    columns = Columns(scale=True).fit(table)
    assert Columns(scale=True).fit(other).facts_ == columns.facts_
    assert_array_equal(columns.transform(other), columns.transform(table))


def test_arrays_are_numbers_without_names():
    X = np.array([[1.0, np.nan], [3.0, 4.0], [5.0, 8.0]])
    columns = Columns().fit(X)
    assert_array_equal(columns.transform(X), [[1, 6, 1], [3, 4, 0], [5, 8, 0]])
    assert list(columns.get_feature_names_out()) == ["x0", "x1", "x1 is missing"]
    with pytest.raises(ValueError, match="expecting 2 features"):
        columns.transform(X[:, :1])


def test_categories_of_pandas_may_have_any_values():
    X = pd.DataFrame({"a": pd.Categorical(["x", "y"] * 9), "b": pd.Categorical([1, 2] * 9)})
    assert [column.categories for column in facts(X)] == [("x", "y"), ("1", "2")]


def test_the_user_overrules():
    X = frame("doc_id", "stars", "row", "size")
    found = facts(X, categorical=["stars", "doc_id"], wanted=["row"])
    assert [column.kind for column in found] == ["category", "category", "number", "number"]
    assert facts(X, numeric=["doc_id"])[0].kind == "number"
    with pytest.raises(ValueError, match="'stars' is asked for as a category and as a number"):
        facts(X, categorical=["stars"], numeric=["stars"])
    with pytest.raises(ValueError, match="X has no column 'star'"):
        facts(X, numeric=["star"])


def test_codes_that_are_called_an_id_are_categories():
    codes = np.random.default_rng(0).integers(0, 10, 5957)
    X = polars.DataFrame({"typeId": codes, "docId": np.arange(5957)[::-1], "x": codes / 3})
    assert [column.kind for column in facts(X)] == ["category", "left out", "number"]


def test_a_row_counter_is_found_where_rows_were_dropped():
    rows = np.flatnonzero(np.random.default_rng(0).random(300) < 0.7)
    X = polars.DataFrame({"row": rows, "x": np.sin(rows)})
    assert facts(X)[0].why == "an identifier: it counts the rows"


def kind_of(**columns):
    n_rows = len(next(iter(columns.values())))
    return facts(polars.DataFrame({**columns, "x": np.sin(np.arange(n_rows))}))[0].kind


@pytest.mark.parametrize("n_rows, kind", [(19, "number"), (20, "left out")])
def test_a_counter_needs_twenty_rows(n_rows, kind):
    assert kind_of(row=np.arange(n_rows)) == kind


@pytest.mark.parametrize("last, kind", [(99, "left out"), (100, "number")])
def test_a_counter_has_at_least_every_second_number(last, kind):
    rows = np.r_[np.arange(49), last]  # 50 rows, which end below twice as many or do not
    assert kind_of(row=rows) == kind


@pytest.mark.parametrize("n_rows, kind", [(200, "left out"), (201, "category")])
def test_a_value_of_a_code_has_more_than_twenty_rows(n_rows, kind):
    assert kind_of(typeId=np.arange(n_rows) % 10) == kind


@pytest.mark.parametrize("n_values, kind", [(50, "category"), (51, "left out")])
def test_fifty_values_of_text_make_a_category(n_values, kind):
    assert kind_of(town=[f"t{k % n_values}" for k in range(400)]) == kind


@pytest.mark.parametrize("n_values, kind", [(20, "category"), (21, "left out")])
def test_values_of_a_category_are_there_twice_on_average(n_values, kind):
    assert kind_of(town=[f"t{k % n_values}" for k in range(40)]) == kind


def test_all_that_cannot_be_used_is_told_at_once():
    with pytest.raises(ValueError, match=r"cannot be learned from: 'day' \(.*'empty' \(it has no"):
        facts(frame("size", "day", "empty"), wanted=["day", "empty"])
    with pytest.raises(ValueError, match=r"no column can be learned from: 'doc_id'.*'day'"):
        facts(frame("doc_id", "day"))
    with pytest.raises(ValueError, match=r"'color' \(it has words, such as 'red', expected"):
        facts(frame("color"), numeric=["color"])


def test_a_category_with_many_values_is_refused():
    X = pyarrow.table({"url": [f"u{k}" for k in range(2000)], "x": np.zeros(2000)})
    assert facts(X)[0].kind == "left out"
    with pytest.raises(ValueError, match=r"2,000 different values.*at most 1,000 make"):
        facts(X, categorical=["url"])


def oracle_features(rows, seen):
    """Medians, indicators and one-hot columns by loops over the rows."""
    prices = [row["price"] for row in seen]
    known = [price for price in prices if price is not None]
    median = float(np.median(known))
    colors = sorted({row["color"] for row in seen if row["color"] is not None})
    colors += [None] * any(row["color"] is None for row in seen)
    filled = [median if price is None else price for price in prices]
    features = []
    for row in rows:
        price = median if row["price"] is None else row["price"]
        features.append(
            [
                (price - np.mean(filled)) / np.std(filled),
                float(row["price"] is None),
                *(float(row["color"] == color) for color in colors),
            ]
        )
    return np.array(features)


def test_features_are_those_of_a_double_loop():
    X = frame("price", "color")
    columns = Columns(scale=True).fit(X)
    assert_allclose(columns.transform(X), oracle_features(X.to_pylist(), X.to_pylist()))
    new = pyarrow.table({"color": ["green", None, "red"], "price": [None, 1.5, -2.0]})
    assert_allclose(columns.transform(new), oracle_features(new.to_pylist(), X.to_pylist()))
    names = ["price", "price is missing", "color=blue", "color=red", "color is missing"]
    assert list(columns.get_feature_names_out()) == names


def test_a_gap_that_training_data_did_not_have_is_no_error():
    X = polars.DataFrame({"a": [1.0, 2.0, 4.0], "b": ["x", "y", "x"]})
    columns = Columns().fit(X)
    new = polars.DataFrame({"a": [None, 1.0], "b": [None, "z"]})
    assert_array_equal(columns.transform(new), [[2, 0, 0], [1, 0, 0]])


def test_a_pipeline_ranks_a_frame_by_names():
    X = frame("price", "color", "size", "new", "doc_id")
    y = np.where(np.array(X["color"].to_pylist()) == "red", 2.0, 1.0)
    ranker = make_pipeline(Columns(), RankRLS(1e-3)).fit(X, y)
    scores = ranker.predict(X)
    assert scores[y == 2].min() > scores[y == 1].max()
    assert_array_equal(ranker.predict(X.select(["new", "size", "color", "price"])), scores)
    with pytest.raises(ValueError, match="X lacks the columns 'color', 'new'"):
        ranker.predict(X.select(["size", "price"]))


@pytest.mark.parametrize(
    "cells", [["7", "true", None], [7.0, 1.0, None], [7, 1, None], ["7", "True", ""]]
)
def test_one_category_however_the_file_spells_it(cells):
    columns = Columns(categorical=["a"]).fit(pyarrow.table({"a": ["7", "true", "1", "7"]}))
    found = columns.transform(pyarrow.table({"a": cells}))
    seven, true, one = [0, 1, 0], [0, 0, 1], [1, 0, 0]
    second = true if isinstance(cells[1], str) else one
    assert_array_equal(found, [seven, second, [0, 0, 0]])


def test_numbers_that_a_float_would_change_are_refused():
    odd = pyarrow.table({"key": [2**53 + 1, 5], "x": [1.0, 2.0]})
    with pytest.raises(ValueError, match="'key' has whole numbers that a float would round"):
        Columns(wanted=["key"]).fit(odd)
    with pytest.raises(ValueError, match="'x' has infinite numbers"):
        Columns().fit(pyarrow.table({"x": [1.0, np.inf]}))
    columns = Columns().fit(odd)
    with pytest.raises(ValueError, match="column 'x' has words, such as 'many', expected numbers"):
        columns.transform(pyarrow.table({"x": ["1", "many"]}))


def test_many_categories_make_a_sparse_matrix():
    values = [f"v{k % 600}" for k in range(1800)]
    X = polars.DataFrame({"a": values, "b": values[::-1], "x": np.arange(1800.0) % 7})
    columns = Columns(categorical=["a", "b"]).fit(X)
    found = columns.transform(X)
    assert sp.issparse(found)
    assert found.shape == (1800, 1201)
    assert_array_equal(found.sum(axis=0)[1:], 3.0)
    assert_array_equal(found[:, [0]].toarray().ravel(), np.arange(1800.0) % 7)


@parametrize_with_checks([Columns(), Columns(scale=True)])
def test_scikit_learns_checks(estimator, check):
    check(estimator)
