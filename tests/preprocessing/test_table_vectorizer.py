"""TableVectorizer: how the columns of a table are used, and the features made from them."""

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

from rankwise import RankRLS, TableVectorizer
from rankwise.preprocessing.column_types import Reason

pyarrow = pytest.importorskip("pyarrow")


N = 60
RNG = np.random.default_rng(0)
COLUMNS = {
    "doc_id": (RNG.integers(0, 9, N).tolist(), "dropped", "an identifier: its name says so"),
    "row": (list(range(7, 7 + N)), "dropped", "an identifier: it counts the rows"),
    "key": ([10**17 + 3 * k for k in range(N)], "dropped", "16 digits"),
    "longer": ([float(10**25 + k * 10**12) for k in range(N)], "dropped", "16 digits"),
    "price": ([None, *RNG.normal(size=N - 1).tolist()], "number", ""),
    "nan": ([float("nan"), *range(1, N)], "number", ""),
    "size": (RNG.normal(size=N).tolist(), "number", ""),
    "stars": (RNG.integers(0, 5, N).tolist(), "number", ""),
    "color": (["red", None, "blue"] * (N // 3), "category", ""),
    "new": ([True, False] * (N // 2), "category", ""),
    "name": ([f"n{k}" for k in range(N)], "dropped", "an identifier: 60 values in 60 rows"),
    "day": ([datetime.date(2024, 1, 1 + k % 5) for k in range(N)], "date", ""),
    "day2": ([f"{1 + k % 28}.12.2024" for k in range(N)], "date", ""),
    "hours": ([f"2024-03-{1 + k % 9:02}T{k % 24:02}:30:00" for k in range(N)], "date", ""),
    "span": ([datetime.timedelta(hours=6 * k % 51) for k in range(N)], "number", ""),
    "empty": ([None] * N, "dropped", "it has no values"),
    "list": ([[1, 2], None, [3, 5]] * (N // 3), "vector", ""),
    "ragged": ([[1, 2], [1]] * (N // 2), "dropped", "lists of different lengths"),
    "tags": ([["new", "red"], ["red"]] * (N // 2), "category", ""),
    "mixed": (
        [*map(str, range(N - 1)), "many"],
        "number",
        "words, such as 'many', are treated as missing",
    ),
    "commas": ([*(f"{k},5" for k in range(N - 1)), "k. A."], "number", "are treated as missing"),
    "dollars": ([f"${k},{k:03}.50" for k in range(1, N + 1)], "number", ""),
    "zip": ([f"0{k % 55:04}" for k in range(N)], "dropped", "an identifier"),
    "long": (["x" * 400, "y" * 400] * (N // 2), "category", ""),
    "title": ([f"word {k % 7} {k}" for k in range(N)], "text", ""),
    "apart": (
        [f"a{k} b{k}" for k in range(N)],
        "dropped",
        "texts in which every word occurs once, or in all of them",
    ),
}


def frame(*names):
    return pyarrow.table({name: COLUMNS[name][0] for name in names or COLUMNS})


def facts(X, **asked):
    return TableVectorizer(**asked).fit(X).facts_


@pytest.mark.parametrize("name", COLUMNS)
def test_the_kind_of_each_column(name):
    found = {column.name: column for column in facts(frame())}
    _, kind, why = COLUMNS[name]
    assert found[name].kind == kind
    assert why in found[name].why
    assert bool(why) == bool(found[name].why)


def test_words_tell_gaps_and_values():
    found = {column.name: column.words for column in facts(frame())}
    assert found["price"] == found["nan"] == "number with 1 missing value"
    assert found["size"] == "number"
    assert found["color"] == "category of 2 values, 20 missing values"


@pytest.mark.parametrize("kind", ["pandas", "polars"])
def test_frames_of_all_kinds_have_the_same_facts_and_features(kind):
    table = frame("doc_id", "price", "color", "new", "day", "stars")
    other = table.to_pandas() if kind == "pandas" else polars.from_arrow(table)
    columns = TableVectorizer(scale=True).fit(table)
    assert TableVectorizer(scale=True).fit(other).facts_ == columns.facts_
    assert_array_equal(columns.transform(other), columns.transform(table))


def test_arrays_are_numbers_without_names():
    X = np.array([[1.0, np.nan], [3.0, 4.0], [5.0, 8.0]])
    columns = TableVectorizer().fit(X)
    assert_array_equal(columns.transform(X), [[1, 6, 1], [3, 4, 0], [5, 8, 0]])
    assert list(columns.get_feature_names_out()) == ["x0", "x1", "x1 is missing"]
    with pytest.raises(ValueError, match="expecting 2 features"):
        columns.transform(X[:, :1])


def test_categories_of_pandas_may_have_any_values():
    X = pd.DataFrame({"a": pd.Categorical(["x", "y"] * 9), "b": pd.Categorical([1, 2] * 9)})
    assert [column.categories for column in facts(X)] == [("x", "y"), ("1", "2")]


def test_the_user_overrules():
    X = frame("doc_id", "stars", "row", "size")
    found = facts(X, categorical=["stars", "doc_id"], keep=["row"])
    assert [column.kind for column in found] == ["category", "category", "number", "number"]
    assert facts(X, numeric=["doc_id"])[0].kind == "number"
    with pytest.raises(ValueError, match="'stars' is in two of"):
        facts(X, categorical=["stars"], numeric=["stars"])
    with pytest.raises(ValueError, match="X has no column 'star'"):
        facts(X, numeric=["star"])


def kind_of(**columns):
    n_rows = len(next(iter(columns.values())))
    return facts(polars.DataFrame({**columns, "x": np.sin(np.arange(n_rows))}))[0].kind


@pytest.mark.parametrize(
    "name, cells, kind",
    [
        ("typeId", np.random.default_rng(0).integers(0, 10, 5957), "category"),
        ("docId", np.arange(5957)[::-1], "dropped"),
        ("row", np.flatnonzero(np.random.default_rng(0).random(300) < 0.7), "dropped"),  # of more
        ("row", np.arange(19), "number"),  # a counter needs twenty rows
        ("row", np.arange(20), "dropped"),
        ("row", np.r_[np.arange(49), 99], "dropped"),  # and at least every second number
        ("row", np.r_[np.arange(49), 100], "number"),
        ("typeId", np.arange(200) % 10, "dropped"),  # a value of a code has more than twenty rows
        ("typeId", np.arange(201) % 10, "category"),
        ("town", [f"t{max(k, 19)}" for k in range(1, 101)], "dropped"),
        ("town", [f"t{max(k, 20)}" for k in range(1, 101)], "category"),  # a fifth repeats
    ],
)
def test_where_a_column_becomes_an_identifier(name, cells, kind):
    assert kind_of(**{name: cells}) == kind


def test_a_row_counter_is_recognized_after_rows_were_dropped():
    n_rows = 400
    counter = np.arange(7, 7 + n_rows)
    kept = np.sort(np.random.default_rng(0).choice(n_rows, 60, replace=False))
    X = polars.DataFrame({"row": counter[kept], "x": np.sin(kept)})
    assert TableVectorizer().fit(X).facts_[0].kind == "number"
    column = TableVectorizer().fit(X, row_numbers=kept).facts_[0]
    assert (column.kind, column.reason) == ("dropped", Reason.ROW_COUNTER)
    shuffled = np.random.default_rng(1).permutation(len(kept))
    columns = TableVectorizer().fit(X[shuffled], row_numbers=kept[shuffled])
    assert columns.facts_[0].reason is Reason.ROW_COUNTER
    rising_slowly = polars.DataFrame({"year": 1900 + np.arange(60), "x": np.sin(kept)})
    columns = TableVectorizer().fit(rising_slowly, row_numbers=kept)
    assert columns.facts_[0].kind == "number"


@pytest.mark.parametrize("row_numbers", [[0, 1], [0.0, 1.0, 2.0]])
def test_row_numbers_are_one_whole_number_per_row(row_numbers):
    X = polars.DataFrame({"x": [1.0, 2.0, 4.0]})
    with pytest.raises(ValueError, match="row_numbers"):
        TableVectorizer().fit(X, row_numbers=row_numbers)


def test_all_that_cannot_be_used_is_told_at_once():
    with pytest.raises(ValueError, match=r"learned from: 'ragged' \(lists.*'empty' \(it has no"):
        facts(frame("size", "ragged", "empty"), keep=["ragged", "empty"])
    with pytest.raises(ValueError, match=r"no column can be learned from: 'doc_id'.*'empty'"):
        facts(frame("doc_id", "empty"))
    with pytest.raises(ValueError, match=r"'color' \(it has words, such as 'red', expected"):
        facts(frame("color"), numeric=["color"])


def test_many_values_rare_values_and_new_values_have_a_place():
    towns = [f"t{k % 70}" for k in range(140)] + ["once", "single"]
    columns = TableVectorizer().fit(polars.DataFrame({"town": towns}))
    (column,) = columns.facts_
    assert (column.kind, len(column.categories), column.n_rare) == ("category", 70, 2)
    assert column.words == "category of 70 values, 2 rows with rare values"
    found = columns.transform(polars.DataFrame({"town": ["t3", "once", "new", None]}))
    names = list(columns.get_feature_names_out())
    assert names[-1] == "town is rare"
    expected = np.zeros((4, 71))
    expected[0, names.index("town=t3")] = expected[1, -1] = expected[2, -1] = 1
    assert_array_equal(found, expected)  # a gap that training did not have has no place


def test_dates_are_year_month_weekday_days_and_hour():
    days = ["2023-01-31 06:30:00", "2024-02-29 00:00:00", None]
    columns = TableVectorizer().fit(polars.DataFrame({"day": days}))
    found = columns.transform(polars.DataFrame({"day": days[:2]}))
    expected = []
    for text in days[:2]:
        day = datetime.datetime.fromisoformat(text)
        since = (day.date() - datetime.date(1970, 1, 1)).days
        expected.append([day.year, day.month, day.weekday(), since, day.hour + day.minute / 60, 0])
    assert_array_equal(found, expected)
    stamps = polars.DataFrame({"day": days}).with_columns(polars.col("day").str.to_datetime())
    assert_array_equal(columns.transform(stamps[:2]), expected)
    aware = stamps.to_pandas()["day"].dt.tz_localize("Europe/Helsinki")
    assert columns.transform(pd.DataFrame({"day": aware[:1]}))[0, 4] == 4.5  # of UTC


@pytest.mark.parametrize(
    "text, day",
    [
        ("31.12.2024", (2024, 12, 31)),
        ("12/31/2024", (2024, 12, 31)),
        ("31/12/2024 10:15", (2024, 12, 31)),
        ("Dec 31, 2024", (2024, 12, 31)),
        ("31-Dec-24", (2024, 12, 31)),
    ],
)
def test_dates_as_people_write_them(text, day):
    columns = TableVectorizer().fit(polars.DataFrame({"day": [text] * 3, "x": [1.0, 2, 4]}))
    since = (datetime.date(*day) - datetime.date(1970, 1, 1)).days
    assert columns.facts_[0].medians[-1] == since
    new = columns.transform(polars.DataFrame({"day": ["soon"], "x": [0.0]}))
    assert new[0, 0] == since  # what is no date is a gap, filled by the median


def test_text_is_the_tf_idf_of_its_words():
    texts = [None, *(f"{'red' if k % 2 else 'white'} wine {k % 9}" for k in range(18))]
    texts += [f"Red wine n{k}" for k in range(40)] + ["red wine 1"]
    columns = TableVectorizer().fit(polars.DataFrame({"text": texts, "k": np.arange(60) % 7}))
    text = columns.facts_[0]
    assert (text.kind, text.n_missing) == ("text", 1)
    tokens = [set() if each is None else {*each.lower().split()} for each in texts]
    n_known = len(texts) - 1
    found = columns.transform(polars.DataFrame({"text": texts, "k": [0] * 60}))[:, 1:]
    for row, own in zip(found, tokens, strict=True):
        idf = [
            1 + np.log((1 + n_known) / (1 + sum(word in each for each in tokens)))
            if word in own
            else 0.0
            for word in text.categories
        ]
        assert_allclose(row, np.array(idf) / (np.linalg.norm(idf) or 1.0))
    names = columns.get_feature_names_out()
    assert "text has red" in names
    repeated = facts(polars.DataFrame({"text": [f"red n{k % 55}" for k in range(110)]}))
    assert [column.kind for column in repeated] == ["category", "text"]


def test_words_with_an_order_are_their_place():
    X = polars.DataFrame({"size": ["S", "L", None, "M"]})
    columns = TableVectorizer(order={"size": ["S", "M", "L"]}).fit(X)
    assert_array_equal(columns.transform(X), [[0, 0], [2, 0], [1, 1], [1, 0]])
    assert_array_equal(columns.transform(polars.DataFrame({"size": ["XL"]})), [[1, 1]])
    with pytest.raises(ValueError, match="'L', which its order does not name"):
        TableVectorizer(order={"size": ["S", "M"]}).fit(X)


def test_vectors_are_their_numbers_and_other_lengths_are_refused():
    X = polars.DataFrame({"v": [[1.0, 5.0], None, [3.0, 7.0]]})
    columns = TableVectorizer().fit(X)
    assert_array_equal(columns.transform(X), [[1, 5, 0], [2, 6, 1], [3, 7, 0]])
    assert list(columns.get_feature_names_out()) == ["v 0", "v 1", "v is missing"]
    for wrong in ([[1.0]], [[1.0], [1.0, 2.0]]):
        with pytest.raises(ValueError, match=r"'v' has lists of another length .* vectors of 2"):
            columns.transform(polars.DataFrame({"v": wrong}))


def test_trees_get_gaps_as_gaps_and_categories_as_codes():
    X = frame("price", "color", "new", "list")
    views = TableVectorizer(scale=True).fit(X).views(X)
    assert views.n_codes == 2
    prices = [np.nan if price is None else price for price in COLUMNS["price"][0]]
    assert_array_equal(views.cells[:, 0], prices)
    assert_array_equal(views.cells[:3, 1:3], [[1, 2], [np.nan, np.nan], [3, 5]])
    assert_array_equal(views.cells[:3, 3:], [[1, 1], [2, 0], [0, 1]])  # blue, red, missing


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
    columns = TableVectorizer(scale=True).fit(X)
    assert_allclose(columns.transform(X), oracle_features(X.to_pylist(), X.to_pylist()))
    new = pyarrow.table({"color": ["green", None, "red"], "price": [None, 1.5, -2.0]})
    assert_allclose(columns.transform(new), oracle_features(new.to_pylist(), X.to_pylist()))
    names = ["price", "price is missing", "color=blue", "color=red", "color is missing"]
    assert list(columns.get_feature_names_out()) == names


def test_a_gap_that_training_data_did_not_have_is_no_error():
    X = polars.DataFrame({"a": [1.0, 2.0, 4.0], "b": ["x", "y", "x"]})
    columns = TableVectorizer().fit(X)
    new = polars.DataFrame({"a": [None, 1.0], "b": [None, "z"]})
    assert_array_equal(columns.transform(new), [[2, 0, 0], [1, 0, 0]])


def test_a_pipeline_ranks_a_frame_by_names():
    X = frame("price", "color", "size", "new", "doc_id")
    y = np.where(np.array(X["color"].to_pylist()) == "red", 2.0, 1.0)
    ranker = make_pipeline(TableVectorizer(), RankRLS(1e-3)).fit(X, y)
    scores = ranker.predict(X)
    assert scores[y == 2].min() > scores[y == 1].max()
    assert_array_equal(ranker.predict(X.select(["new", "size", "color", "price"])), scores)
    with pytest.raises(ValueError, match="X lacks the columns 'color', 'new'"):
        ranker.predict(X.select(["size", "price"]))


@pytest.mark.parametrize(
    "cells", [["7", "true", None], [7.0, 1.0, None], [7, 1, None], ["7", "True", ""]]
)
def test_one_category_however_the_file_spells_it(cells):
    columns = TableVectorizer(categorical=["a"]).fit(pyarrow.table({"a": ["7", "true", "1", "7"]}))
    found = columns.transform(pyarrow.table({"a": cells}))
    seven, true, one = [0, 1, 0], [0, 0, 1], [1, 0, 0]
    second = true if isinstance(cells[1], str) else one
    assert_array_equal(found, [seven, second, [0, 0, 0]])


def test_infinite_numbers_and_words_among_numbers_are_refused():
    with pytest.raises(ValueError, match="'x' has infinite values"):
        TableVectorizer().fit(pyarrow.table({"x": [1.0, np.inf]}))
    columns = TableVectorizer().fit(pyarrow.table({"x": [1.0, 2.0]}))
    with pytest.raises(ValueError, match="column 'x' has words, such as 'many', expected numbers"):
        columns.transform(pyarrow.table({"x": ["1", "many"]}))


def test_many_categories_make_a_sparse_matrix():
    values = [f"v{k % 600}" for k in range(1800)]
    X = polars.DataFrame({"a": values, "b": values[::-1], "x": np.arange(1800.0) % 7})
    columns = TableVectorizer(categorical=["a", "b"]).fit(X)
    found = columns.transform(X)
    assert sp.issparse(found)
    assert found.shape == (1800, 1201)
    assert_array_equal(found.sum(axis=0)[1:], 3.0)
    assert_array_equal(found[:, [0]].toarray().ravel(), np.arange(1800.0) % 7)


@parametrize_with_checks([TableVectorizer(scale=True)])
def test_scikit_learns_checks(estimator, check):
    check(estimator)


def test_lists_in_a_column_of_texts_are_read_as_texts():
    words = pd.DataFrame({"tags": [["red", "blue"], ["red"], ["blue", "green"]] * 20})
    vectorizer = TableVectorizer().fit(words)
    numbers = pd.DataFrame({"tags": [[1.0, 2.0], None, [3.0]]})
    assert vectorizer.transform(numbers).shape[0] == 3
