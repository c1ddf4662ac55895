"""What becomes of the columns of a table, and how training rows are recognized."""

from __future__ import annotations

import datetime

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from rankwise import RankRLS
from rankwise.datasets import column_kinds, column_transformer, find_identifiers, read_ranking
from rankwise.datasets.feature_columns import cast_columns, used_columns
from rankwise.errors import TableFormatError

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
    "list": ([[1, 2]] * N, "left out", "its type is list"),
    "mixed": ([*map(str, range(N - 1)), "many"], "left out", "also words, such as 'many'"),
    "commas": ([*(f"{k},5" for k in range(N - 1)), "k. A."], "left out", "words, such as 'k. A.'"),
    "long": (["x" * 400, "y" * 400] * (N // 2), "left out", "long texts"),
}


def frame(*names):
    return pyarrow.table({name: COLUMNS[name][0] for name in names or COLUMNS})


@pytest.mark.parametrize("name", COLUMNS)
def test_the_kind_of_each_column(name):
    found = {kind.name: kind for kind in column_kinds(frame())}
    _, use, why = COLUMNS[name]
    assert found[name].use == use
    assert why in found[name].why
    assert bool(why) == bool(found[name].why)


def test_words_tell_gaps_and_values():
    found = {kind.name: kind.words for kind in column_kinds(frame())}
    assert found["price"] == found["nan"] == "number with 1 gap"
    assert found["size"] == "number"
    assert found["color"] == "category of 2 values, 20 gaps"


def test_data_frames_are_taken_as_they_are():
    pandas, polars = pytest.importorskip("pandas"), pytest.importorskip("polars")
    table = frame("doc_id", "price", "color", "new", "day")
    expected = column_kinds(table)
    assert column_kinds(table.to_pandas()) == expected
    assert column_kinds(polars.from_arrow(table)) == expected
    assert (
        column_kinds(pandas.DataFrame({"a": pandas.Categorical(["x", "y"] * 9)}))[0].n_values == 2
    )
    with pytest.raises(ValueError, match="X is a ndarray; expected an Arrow table or a data frame"):
        column_kinds(np.eye(2))


def test_the_user_overrules():
    X = frame("doc_id", "stars", "row", "size")
    found = column_kinds(X, categorical=["stars", "doc_id"], wanted=["row"])
    assert [kind.use for kind in found] == ["category", "category", "number", "number"]
    assert column_kinds(X, numeric=["doc_id"])[0].use == "number"
    with pytest.raises(ValueError, match="'stars' is asked for as a category and as a number"):
        column_kinds(X, categorical=["stars"], numeric=["stars"])
    with pytest.raises(ValueError, match="X has no column 'star'"):
        column_kinds(X, numeric=["star"])


def test_all_that_cannot_be_used_is_told_at_once():
    with pytest.raises(ValueError, match=r"cannot be learned from: 'day' \(.*'empty' \(it has no"):
        column_kinds(frame("size", "day", "empty"), wanted=["day", "empty"])
    with pytest.raises(ValueError, match=r"no column can be learned from: 'doc_id'.*'day'"):
        column_kinds(frame("doc_id", "day"))
    with pytest.raises(
        ValueError, match=r"'color' \(it has words, such as 'red', expected numbers"
    ):
        column_kinds(frame("color"), numeric=["color"])


def test_a_category_with_a_million_values_is_refused():
    many = pyarrow.array(np.arange(1_000_000)).cast(pyarrow.string())
    X = pyarrow.table({"url": many, "x": np.zeros(1_000_000)})
    assert column_kinds(X)[0].use == "left out"
    with pytest.raises(ValueError, match=r"1,000,000 different values.*at most 1,000 make"):
        column_kinds(X, categorical=["url"])


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
    transformer = column_transformer(column_kinds(X), scaler=StandardScaler())
    assert_allclose(transformer.fit_transform(X), oracle_features(X.to_pylist(), X.to_pylist()))
    new = pyarrow.table({"color": ["green", None, "red"], "price": [None, 1.5, -2.0]})
    assert_allclose(transformer.transform(new), oracle_features(new.to_pylist(), X.to_pylist()))
    names = ["price", "missingindicator_price", "color_blue", "color_red", "color_None"]
    assert list(transformer.get_feature_names_out()) == names


def test_a_pipeline_ranks_a_frame_by_names():
    X = frame("price", "color", "size", "new")
    y = np.where(np.array(X["color"].to_pylist()) == "red", 2.0, 1.0)
    ranker = make_pipeline(column_transformer(column_kinds(X)), RankRLS(1e-3)).fit(X, y)
    scores = ranker.predict(X)
    assert scores[y == 2].min() > scores[y == 1].max()
    assert_array_equal(ranker.predict(X.select(["new", "size", "color", "price"])), scores)


def test_one_category_however_the_file_spells_it():
    texts = pyarrow.table({"a": ["7", "true", None]})
    numbers = pyarrow.table({"a": pyarrow.array([7.0, 7.0, None])})
    truth = pyarrow.table({"a": pyarrow.array([True, False, None])})
    assert cast_columns(texts, ["a"])["a"].to_pylist() == ["7", "true", None]
    assert cast_columns(numbers, ["a"])["a"].to_pylist() == ["7", "7", None]
    assert cast_columns(truth, ["a"])["a"].to_pylist() == ["true", "false", None]
    spelled = pyarrow.table({"a": ["True", "FALSE", "Trueish"]})
    assert cast_columns(spelled, ["a"])["a"].to_pylist() == ["true", "false", "Trueish"]
    coded = pyarrow.table({"a": pyarrow.array(["x", "y", "x"]).dictionary_encode()})
    assert cast_columns(coded, ["a"])["a"].to_pylist() == ["x", "y", "x"]


def test_numbers_that_a_float_would_round_are_refused():
    X = frame("key", "size")
    odd = pyarrow.table({"key": [2**53 + 1, 5]})
    with pytest.raises(ValueError, match="'key' has whole numbers that a float would round"):
        used_columns(odd, column_kinds(odd, wanted=["key"]))
    assert used_columns(X, column_kinds(X)).column_names == ["size"]


def test_columns_are_read_as_text_or_numbers_on_demand(tmp_path):
    file = tmp_path / "a.csv"
    file.write_text("y,zip,n\n1,007, 3\n2,7,NA\n,8,4\n")
    data = read_ranking(file, text=["zip"], numeric=["n"], as_frame=True)
    assert data.X.to_pydict() == {"zip": ["007", "7", "8"], "n": [3.0, None, 4.0]}
    assert_array_equal(data.y, [1, 2, np.nan])
    file.write_text("y,n\n1,3\n2,many\n")
    with pytest.raises(
        ValueError, match=r"a.csv:3: .*column 'n', is 'many', expected a finite number"
    ):
        read_ranking(file, numeric=["n"], as_frame=True)


@pytest.mark.parametrize(
    "gap", ["-", "--", "–", "?", "n/a", "N/A", ".", " - ", "#N/A", "\\N", "nil"]
)
def test_numbers_have_gaps_where_people_write_dashes(tmp_path, gap):
    path = tmp_path / "data.tsv"
    path.write_text(f"x\tz\ty\n1\t{gap}\t1\n{gap}\t5\t2\n3\t7\t{gap}\n", encoding="utf-8")
    for options in ({}, {"numeric": ["x"]}):
        found = read_ranking(path, **options, as_frame=True)
        assert found.X["x"].to_pylist() == [1, None, 3]
        np.testing.assert_array_equal(found.y, [1, 2, np.nan])
    with pytest.raises(TableFormatError, match=r":3: .*column 'x', is"):
        read_ranking(path)


def test_a_dash_among_words_is_a_word(tmp_path):
    path = tmp_path / "data.csv"
    path.write_text("size,y\n-,1\nL,2\nXL,3\n", encoding="utf-8")
    assert read_ranking(path, as_frame=True).X["size"].to_pylist() == ["-", "L", "XL"]


@pytest.mark.parametrize(
    ("cells", "numbers"),
    [
        (["12 %", "7%", "-"], [0.12, 0.07, None]),
        (["€ 3.50", "-€2", "€1,000"], [3.5, -2, 1000]),
        (["3 USD", "", "2.5 USD"], [3, None, 2.5]),
        (["+1", "-2", "+0.5"], [1, -2, 0.5]),
        (["1,234", "12", "1,234,567.5"], [1234, 12, 1234567.5]),
        (["1 234", "1'234.5", "1e3"], [1234, 1234.5, 1000]),
    ],
)
def test_numbers_with_marks(tmp_path, cells, numbers):
    path = tmp_path / "data.csv"
    rows = [f'"{cell}",{k}\n' for k, cell in enumerate(cells * 500)]
    path.write_text("x,y\n" + "".join(rows), encoding="utf-8")
    for options in ({}, {"numeric": ["x"]}):
        assert read_ranking(path, **options, as_frame=True).X["x"].to_pylist() == pytest.approx(
            numbers * 500
        )


def test_decimal_commas_leave_the_point_to_thousands(tmp_path):
    path = tmp_path / "data.csv"
    path.write_text("x;y\n1.234,5;1\n0,25;2\n", encoding="utf-8")
    assert read_ranking(path, decimal=",", as_frame=True).X["x"].to_pylist() == [1234.5, 0.25]


@pytest.mark.parametrize(
    "cell", ["12 %", "$1,200.50", "(3)", "\N{MINUS SIGN}3", "1,234", "many", "2020-01-01", "inf"]
)
def test_numbers_with_some_marks_are_refused(tmp_path, cell):
    path = tmp_path / "data.tsv"
    path.write_text(f"x\ty\n1.5\t1\n{cell}\t2\n", encoding="utf-8")
    with pytest.raises(TableFormatError) as raised:
        read_ranking(path, numeric=["x"], as_frame=True)
    problem = f":3: the feature, column 'x', is '{cell}', expected a finite number. "
    assert problem in str(raised.value)


# Identifiers


def test_identifiers_are_found_by_name_and_by_content():
    n = 40
    X = pyarrow.table(
        {
            "userID": list(range(n, 2 * n)),
            "row": list(range(10, 10 + n)),
            "key": [10**17 + 3 * k for k in range(n)],
            "text": [f"t{k}" for k in range(n)],
            "town": ["Rome", "Turku"] * (n // 2),
            "bid": [3, 1] * (n // 2),
            "gaps": pyarrow.array([None] * n, "int64"),
            "x": list(np.linspace(0, 1, n)),
        }
    )
    assert set(find_identifiers(X)) == {"userID", "row", "key", "text"}
    assert find_identifiers(X)["text"] == "40 of its 40 texts are different"


@pytest.mark.parametrize("n_texts, is_named", [(90, False), (91, True)])
def test_nine_tenths_of_the_texts_may_be_different(n_texts, is_named):
    texts = [f"t{min(k, n_texts - 1)}" for k in range(100)]
    assert bool(find_identifiers(pyarrow.table({"name": texts}))) == is_named


@pytest.mark.parametrize("n_rows, is_counter", [(19, False), (20, True)])
def test_twenty_rows_make_a_counter(n_rows, is_counter):
    assert bool(find_identifiers(pyarrow.table({"n": list(range(n_rows))}))) == is_counter


@pytest.mark.parametrize("step, is_counter", [(1, True), (2, True), (3, False)])
def test_a_counter_is_one_even_if_half_of_its_rows_are_gone(step, is_counter):
    counter = pyarrow.table({"n": list(range(0, 60 * step, step))})
    assert bool(find_identifiers(counter)) == is_counter
    assert not find_identifiers(pyarrow.table({"n": [3, *range(59)]}))


@pytest.mark.parametrize("n_rows, use", [(200, "category"), (199, "left out")])
def test_a_code_that_comes_back_is_a_category_whatever_its_name(n_rows, use):
    codes = pyarrow.table({"RoomTypeId": [k % 10 for k in range(n_rows)], "x": [0.5] * n_rows})
    (kind, _) = column_kinds(codes)
    assert (kind.use, "its name says so" in kind.why) == (use, use == "left out")
