"""read_ranking and the writers of scores: tables as arrays, and clear refusals."""

import builtins
import csv
import errno
import gzip
import io
import json
import os
import re
import sys

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from numpy.testing import assert_array_equal

from rankwise.datasets import (
    files,
    read_letor,
    read_ranking,
    read_scores,
    write_scores,
    write_table_with_scores,
)
from rankwise.errors import DataFileError, TableFormatError

HOTELS = "hotel,query,price,stars,relevance\nRitz,7,310,5,1\nLake,7,95.5,-3e-1,2\nEnd,8,.5,4,0\n"
quick = settings(
    max_examples=80, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
numbers = st.floats(allow_nan=False, allow_infinity=False)


def save(path, content):
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


def check_hotels(data):
    assert_array_equal(data.X, [[310, 5], [95.5, -0.3], [0.5, 4]])
    assert_array_equal(data.y, [1, 2, 0])
    assert data.groups.tolist() == [7, 7, 8]
    assert data.groups.dtype == np.int64
    assert data.ids.tolist() == ["Ritz", "Lake", "End"]
    assert data.feature_names.tolist() == ["price", "stars"]
    assert data.X.flags.forc


def refused(read, path, line, *words, error=DataFileError, **options):
    with pytest.raises(error) as caught:
        read(path, **options)
    message = str(caught.value)
    if error is DataFileError:
        assert (caught.value.path, caught.value.line) == (str(path), line), message
    assert str(path) in message
    for word in words:
        assert re.search(word, message), message


# Reading text -----------------------------------------------------------------------------------


def test_quoted_cells_may_hold_marks_and_line_ends(tmp_path):
    text = 'y,id,x\n1,"a, ""b""\nc",2\n\n0,5" pipe,3\n0,"",4\n'
    data = read_ranking(save(tmp_path / "a.csv", text), id="id")
    assert data.ids.tolist() == ['a, "b"\nc', '5" pipe', ""]
    assert_array_equal(data.X, [[2], [3], [4]])
    with pytest.raises(TableFormatError) as caught:
        read_ranking(save(tmp_path / "a.csv", f"{text}1,d,oops\n"), id="id")
    assert caught.value.line == 7


@pytest.mark.parametrize("target, group", [("y", "qid"), ("LABEL", "Groups"), ("Target", "user")])
def test_usual_names_are_found(tmp_path, target, group):
    data = read_ranking(save(tmp_path / "a.csv", f"a,{group},{target},b\n1,2,3,4\n"))
    assert (data.X.tolist(), data.y.tolist(), data.groups.tolist()) == ([[1, 4]], [3], [2])
    assert data.ids is None


@pytest.mark.parametrize(
    "options, X, y, groups",
    [
        ({"target": "a"}, [[1, 4]], 2, 3),
        ({"target": 1}, [[1, 4]], 2, 3),
        ({"group": None}, [[2, 3, 4]], 1, None),
        ({"group": "b"}, [[2, 3]], 1, 4),
        ({"ignore": ["a"]}, [[4]], 1, 3),
        ({"ignore": [1, "b"], "group": None}, [[3]], 1, None),
        ({"features": ["b", "a"]}, [[4, 2]], 1, 3),
        ({"features": ["b", "a", "qid"]}, [[4, 2, 3]], 1, None),
        ({"features": ["b"], "target": None}, [[4]], None, 3),
        ({"target": None}, [[1, 2, 4]], None, 3),
        ({"target": "gone", "target_needed": False}, [[1, 2, 4]], None, 3),
    ],
)
def test_columns_by_option(tmp_path, options, X, y, groups):
    data = read_ranking(save(tmp_path / "a.csv", "y,a,qid,b\n1,2,3,4\n"), **options)
    assert_array_equal(data.X, X)
    assert y == (None if data.y is None else data.y[0])
    assert groups == (None if data.groups is None else data.groups[0])
    names = {1: "y", 2: "a", 3: "qid", 4: "b"}
    assert data.feature_names.tolist() == [names[value] for value in X[0]]


@pytest.mark.parametrize("cell", ["", " ", "NaN", '""'])
def test_an_empty_target_is_an_item_without_a_score(tmp_path, cell):
    data = read_ranking(save(tmp_path / "a.csv", f"a,y\n1,2\n3,{cell}\n"))
    assert_array_equal(data.y, [2, np.nan])


def test_group_labels_keep_their_type_and_spelling(tmp_path):
    rows = {"7": 7, "-3": -3, str(2**53 + 1): 2**53 + 1}
    text = "y,x,qid\n" + "".join(f"1,2,{label}\n" for label in rows)
    groups = read_ranking(save(tmp_path / "a.csv", text)).groups
    assert groups.dtype == np.int64
    assert groups.tolist() == list(rows.values())
    groups = read_ranking(save(tmp_path / "a.csv", f"{text}1,2,007\n1,2, é b \n")).groups
    assert groups.tolist() == [*rows, "007", "é b"]


@quick
@given(
    X=st.lists(st.lists(numbers, min_size=3, max_size=3), min_size=1, max_size=8),
    order=st.permutations(["y", "qid", "id", "skip", "a", "b", "c"]),
    quoting=st.sampled_from([csv.QUOTE_MINIMAL, csv.QUOTE_ALL, csv.QUOTE_NONNUMERIC]),
    end=st.sampled_from(["\n", "\r\n"]),
    word=st.text(st.characters(exclude_categories=["Cs", "Cc"]), max_size=5),
)
def test_any_table_round_trip(tmp_path, X, order, quoting, end, word):
    """Whatever stands where, quoted or not, every number comes back exactly."""
    text = io.StringIO()
    writer = csv.DictWriter(text, order, quoting=quoting, lineterminator=end)
    writer.writeheader()
    for k, (a, b, c) in enumerate(X):
        others = {"y": k / 3, "qid": k // 2, "id": f"{word}{k}", "skip": word}
        writer.writerow({"a": a, "b": b, "c": c, **others})
    path = save(tmp_path / "a.csv", text.getvalue())
    data = read_ranking(path, id="id", ignore=["skip"], features=["c", "a", "b"])
    assert_array_equal(data.X, np.array(X)[:, [2, 0, 1]])
    assert_array_equal(data.y, np.arange(len(X)) / 3)
    assert data.groups.tolist() == [k // 2 for k in range(len(X))]
    assert data.ids.tolist() == [f"{word}{k}".strip() for k in range(len(X))]


@pytest.mark.parametrize("other", ["1", "+1"], ids=["fast", "exact"])
def test_minus_zero_is_zero(tmp_path, other):
    data = read_ranking(save(tmp_path / "a.csv", f"y,x\n-0,-0.0\n{other},{other}\n"))
    scores = read_scores(save(tmp_path / "a.txt", f"-0.0\n{other}\n"))
    assert not np.signbit([*data.X.ravel(), *data.y, *scores]).any()


def test_gaps_levels_and_groups_in_words_of_ones_own(tmp_path):
    text = "judged,town,year,price\nfair,Rome,2024,7\nGOOD,Rome,2025,k.A.\nk.A.,Rome,2024,-999\n"
    text += "bad,Oslo/Bergen,2024,9\ngood,,2024,8\nn.a.,Oslo,2024,3\n"
    path = save(tmp_path / "a.csv", text)
    known = {"target": "judged", "group": ["town", "year"], "missing": ["k.A.", "-999"]}
    with pytest.warns(UserWarning, match="1 of 6 rows are dropped: 1 without group"):
        data = read_ranking(path, levels=["bad", "fair", "good"], as_frame=True, **known)
    assert data.X.to_pydict() == {"price": [7, None, None, 9, 3]}
    assert_array_equal(data.y, [1, 2, np.nan, 0, np.nan])
    groups = ["Rome / 2024", "Rome / 2025", "Rome / 2024", "Oslo//Bergen / 2024", "Oslo / 2024"]
    assert data.groups.tolist() == groups
    assert data.roles["group"] == "town, year"
    refused(
        read_ranking, path, 3, "is 'GOOD', 'good', expected one of", levels=["bad", "fair"], **known
    )
    save_parquet(tmp_path / "a.parquet", {"y": [1, 2, 3], "x": [1.5, -999, 3], "n": [1, 2, -999]})
    found = read_ranking(tmp_path / "a.parquet", missing=["-999"], as_frame=True)
    assert found.X.to_pydict() == {"x": [1.5, None, 3], "n": [1, 2, None]}


@pytest.mark.parametrize(
    "cells, days",
    [
        (["1970-01-02", "1969-12-31", "2024-02-29"], [1, -1, 19782]),
        (["1970-01-01 12:00:00", "1970-01-02", "1970-01-03T06:00:00"], [0.5, 1, 2.25]),
        (["2019", "2020.5", "1999"], [2019, 2020.5, 1999]),
        (["19700103", "19691231", "19700101"], [2, -1, 0]),
        (["1970-01-02", "NA", "1970-01-04"], [1, 3]),
    ],
)
@pytest.mark.filterwarnings("ignore:.*without time:UserWarning")
def test_times_are_numbers_or_dates(tmp_path, cells, days):
    text = "y,when,x\n" + "".join(f"1,{cell},2\n" for cell in cells)
    data = read_ranking(save(tmp_path / "a.csv", text), time="when")
    assert_array_equal(data.time, days)
    assert data.X.shape == (len(days), 1)
    assert len(read_ranking(tmp_path / "a.csv", time="when", group="when").groups) == len(days)
    refused(
        *(read_ranking, save(tmp_path / "a.csv", "y,when,x\n1,soon,2\n"), 2),
        *("the time is 'soon'", "a date or a number"),
        time="when",
    )


# Text that is refused ---------------------------------------------------------------------------

BAD_ROWS = {  # beside those of the folder of messy files
    "overflow": "1,2,1e999,4",
    "comma as point": '1,2,"3,5",4',
    "line end in a number": '1,2,"3\n5",4',
    "huge field": f'1,2,"{"3" * 140_000}",4',
}


@pytest.mark.parametrize("name", BAD_ROWS)
def test_read_ranking_names_the_line_of_a_bad_row(tmp_path, name):
    good = "y,a,b,qid\n1,2,3,4\n\n" + "1,2,3,4\n" * 3
    path = save(tmp_path / "bad.csv", good + BAD_ROWS[name] + "\n1,2,3,4\n")
    refused(read_ranking, path, 7)


@pytest.mark.parametrize(
    "row, words",
    [
        ("1,2,red,4", "column 'b', is 'red', expected a finite number.*words as numbers.*ignore="),
        ("1,2,,4", "column 'b', is ''.*Fill in missing values"),
        ("good,2,3,4", "the target, column 'y', is 'good'.*target="),
        ("1,2,3", "has 3 columns, the header has 4.*Quote"),
        ('1,2,"3,4', "quotation marks"),
        (b"1,2,3,\xe9", r"'1,2,3,\\xe9' is not text in UTF-8.*iconv"),
    ],
)
def test_the_likeliest_mistakes_are_told_with_their_remedy(tmp_path, row, words):
    row = row if isinstance(row, bytes) else row.encode()
    path = save(tmp_path / "bad.csv", b"y,a,b,qid\n1,2,3,4\n" + row + b"\n")
    refused(read_ranking, path, 3, words)


@pytest.mark.parametrize("kind", ["csv", "json"])
def test_rows_without_a_group_or_weight_are_left_out_and_counted(tmp_path, kind):
    rows = {"csv": "y,a,qid,w\n1,2,3,1\n1,3,,1\n0,4,4,\n0,5, ,\n2,6,7,0\n"}
    cells = [(1, 2, 3, 1), (1, 3, None, 1), (0, 4, 4, None), (0, 5, None, None), (2, 6, 7, 0)]
    rows["json"] = json.dumps(
        [dict(zip(["y", "a", "qid", "w"], row, strict=True)) for row in cells]
    )
    path = save(tmp_path / "gaps", rows[kind])
    words = "3 of 5 rows are dropped: 2 without group, 2 without weight"
    for as_frame in (True, False):
        with pytest.warns(UserWarning, match=words):
            data = read_ranking(path, weight="w", as_frame=as_frame)
        assert data.rows.tolist() == [0, 4]
        assert (data.groups.tolist(), data.groups.dtype) == ([3, 7], np.int64)
        assert_array_equal(np.ravel(data.X), [2, 6])
        assert_array_equal(data.y, [1, 2])
        assert_array_equal(data.weight, [1, 0])
    path = save(tmp_path / "gaps", "y,a,qid\n1,2,\n0,3,\n")
    with pytest.raises(TableFormatError, match="no row is complete: 2 without group"):
        read_ranking(path)


@pytest.mark.parametrize(
    "header, options, words",
    [
        ("a,b", {}, ["no column is called y, label", "'a', 'b'", "Pass target="]),
        ("y,score,b", {}, ["several columns may be the target: 'y', 'score'", "Pass target="]),
        ("y,qid,user,b", {}, ["several columns may be the group: 'qid', 'user'", "group="]),
        ("y,a,a", {}, ["column 'a' occurs twice", "Rename"]),
        ("y,qid", {}, ["no column is left for the features"]),
        ("y,a", {"ignore": ["a"]}, ["no column is left for the features"]),
        ("y,a", {"target": "z"}, ["no column 'z'", "'y', 'a'", "target="]),
        ("y,a", {"group": "z"}, ["no column 'z'", "Pass group="]),
        ("y,a", {"id": 2}, ["no column 2"]),
        ("y,a,b", {"features": ["a", "y"], "target": "y"}, ["has two roles"]),
        ("y,a,b", {"group": "a", "id": "a"}, ["has two roles"]),
        ("1,2,0.5", {}, ["only numbers", "line of names"]),
        ("word", {}, ["only column is 'word'", "delimiter="]),
        ("y,a;b,c;d", {}, ["separated by comma", "delimiter="]),
        ("y,a", {"delimiter": ";"}, ["'y,a'"]),
        ('y,"a', {}, ["cannot read the column names"]),
    ],
)
def test_bad_header(tmp_path, header, options, words):
    row = re.sub(r"[^,;]+", "1", header)
    path = save(tmp_path / "bad.csv", f"\n{header}\n{row}\n")
    refused(read_ranking, path, 2, *words, **options)


def test_the_delimiter_splits_the_header_and_the_first_row_alike(tmp_path):
    path = save(tmp_path / "styled.csv", "y,a {b:1;c:2;d:3;e:4},f\n1,2,3\n4,5,7\n")
    assert read_ranking(path).feature_names.tolist() == ["a {b:1;c:2;d:3;e:4}", "f"]
    path = save(tmp_path / "prices.csv", "y;price in 1,000;a,b,c\n1;2,5;3\n0;1,5;2\n")
    assert read_ranking(path).feature_names.tolist() == ["price in 1,000", "a,b,c"]


@pytest.mark.parametrize("delimiter", ["", ",,", "a", "\n", 7])
def test_delimiters_that_cannot_be(tmp_path, delimiter):
    path = save(tmp_path / "a.csv", HOTELS)
    with pytest.raises(ValueError, match=r"delimiter=.*one character"):
        read_ranking(path, delimiter=delimiter)


def test_features_are_an_array_of_names_or_one_name(tmp_path):
    path = save(tmp_path / "a.csv", HOTELS)
    names = read_ranking(path, id="hotel").feature_names
    assert read_ranking(path, features=names).feature_names.tolist() == names.tolist()
    assert read_ranking(path, features="price").feature_names.tolist() == ["price"]


@pytest.mark.parametrize(
    "content, line, words",
    [
        ("", None, "is empty"),
        ("\n \n", None, "is empty"),
        (gzip.compress(b"", mtime=0), None, "is empty"),
        ("y,x\n", None, "column names but no rows"),
        ("y,x\n\n\n", None, "column names but no rows"),
        (b"PK\x03\x04rest", None, "damaged"),
        (b"\xd0\xcf\x11\xe0rest", 1, "not text in UTF-8"),
        (b"ARROW1\0\0", None, "damaged"),
        (b'{"y": 1}', None, "no column is left for the features"),
        (b'{"y": 1, "x": 2}\n\n{"y": \n', None, "JSON parse error.*row 1"),
        (b'{"y": 1, "x": 2}\n{"y": 1, "x": "a"}\n', None, "changed from number to string"),
        (b'{"y": 1, "x": 2}\n{"y": 1}\n', 2, "column 'x', is ''"),
        (b'[{"y": 1,\n"x": ]', 2, "in an array or one a line"),
        (b"[1, 2]", None, "expected objects"),
        ("<html>", 1, "only column is"),
        (b"\x00\x01\x02,\xff", 1, "zero bytes"),
        (gzip.compress(b"y,x\n1,2\n" * 999, mtime=0)[:-12], None, "damaged"),
    ],
)
def test_read_ranking_refuses_files_that_are_no_table(tmp_path, content, line, words):
    refused(read_ranking, save(tmp_path / "a.csv", content), line, words)


def test_files_that_cannot_be_opened(tmp_path, monkeypatch):
    for read in (read_ranking, read_scores):
        with pytest.raises(FileNotFoundError, match=r"nowhere\.csv"):
            read(tmp_path / "nowhere.csv")
        with pytest.raises(IsADirectoryError, match=str(tmp_path)):
            read(tmp_path)

    def refuse(path, *args):
        raise PermissionError(13, "Permission denied", path)

    path = save(tmp_path / "a.csv", HOTELS)
    monkeypatch.setattr(builtins, "open", refuse)
    with pytest.raises(PermissionError, match=r"a\.csv"):
        read_ranking(path)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no pipes here")
def test_a_pipe_is_refused_and_not_waited_for(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(OSError, match="not a file on disk; save"):
        read_ranking(tmp_path / "pipe")


# Parquet ----------------------------------------------------------------------------------------


@pytest.fixture
def pyarrow():
    pytest.importorskip("pyarrow.parquet")
    return pytest.importorskip("pyarrow")


def save_parquet(path, columns, **options):
    import pyarrow
    import pyarrow.parquet

    pyarrow.parquet.write_table(pyarrow.table(columns), path, **options)
    return path


HOTEL_COLUMNS = {
    "hotel": ["Ritz", "Lake", "End"],
    "query": [7, 7, 8],
    "price": [310.0, 95.5, 0.5],
    "stars": [5, -0.3, 4],
    "relevance": [1, 2, 0],
}


@pytest.mark.parametrize(
    "labels, expected",
    [
        (lambda pa: pa.array([2**53 + 1, -1]), [2**53 + 1, -1]),
        (lambda pa: pa.array([3.0, 1.0]), [3, 1]),
        (lambda pa: pa.array(["b", "a"]), ["b", "a"]),
        (lambda pa: pa.array(["b", "a"], pa.large_string()), ["b", "a"]),
        (lambda pa: pa.array(["b", "a"]).dictionary_encode(), ["b", "a"]),
        (lambda pa: pa.array([True, False]), ["true", "false"]),
        (lambda pa: pa.array([1, 2], pa.date32()), ["1970-01-02", "1970-01-03"]),
        (lambda pa: pa.array([0, 1], pa.timestamp("ns")), None),
    ],
)
def test_group_types_of_parquet(tmp_path, pyarrow, labels, expected):
    columns = {"qid": labels(pyarrow), "y": [1, None], "x": [1, 2]}
    data = read_ranking(save_parquet(tmp_path / "a.parquet", columns))
    assert_array_equal(data.y, [1, np.nan])
    if expected is not None:
        assert data.groups.tolist() == expected
    assert len(set(data.groups.tolist())) == 2


@pytest.mark.parametrize(
    "make, line, words",
    [
        (lambda pa: {"x": [1, float("nan")]}, 2, "column 'x', is ''"),
        (lambda pa: {"x": [float("inf"), 1]}, 1, "column 'x', is 'inf'.*finite"),
        (lambda pa: {"x": ["1", "b"]}, 2, "column 'x', is 'b', expected a finite number.*ignore="),
        (lambda pa: {"x": pa.array([1, 2], pa.timestamp("s"))}, 1, "column 'x', is '1970"),
        (lambda pa: {"x": [[1], [2]]}, 1, r"column 'x', is '\[1\]'"),
        (lambda pa: {"y": ["a", "b"]}, 1, "the target, column 'y', is 'a'.*levels=.*target="),
    ],
)
def test_bad_parquet(tmp_path, pyarrow, make, line, words):
    columns = {"y": [1, 2], "x": [1, 2], "qid": [1, 1], **make(pyarrow)}
    refused(read_ranking, save_parquet(tmp_path / "a.parquet", columns), line, words)


def test_columns_of_parquet_that_are_numbers_by_another_type(tmp_path, pyarrow):
    columns = {
        "y": pyarrow.array([True, False]),
        "decimal": pyarrow.array([1, 2], pyarrow.decimal128(5)),
        "half": pyarrow.array(np.array([0.5, 1], dtype=np.float16)),
        "text": ["3", "-4.5"],
        "category": pyarrow.array([7, 8]).dictionary_encode(),
        "bool": [False, True],
    }
    data = read_ranking(save_parquet(tmp_path / "a.parquet", columns))
    assert_array_equal(data.y, [1, 0])
    assert_array_equal(data.X, [[1, 0.5, 3, 7, 0], [2, 1, -4.5, 8, 1]])


def test_parquet_without_rows_and_damaged(tmp_path, pyarrow):
    path = save_parquet(tmp_path / "a.parquet", {"y": pyarrow.array([], "double"), "x": []})
    refused(read_ranking, path, None, "no rows")
    path = save_parquet(path, {"y": pyarrow.array([], "double"), "x": pyarrow.array([], "double")})
    refused(read_ranking, path, None, "no rows")
    whole = save_parquet(path, HOTEL_COLUMNS).read_bytes()
    refused(read_ranking, save(path, whole[:-9]), None, "damaged")
    refused(read_ranking, save(path, b"PAR1"), None, "damaged")
    with pytest.raises(ValueError, match="parquet, expected csv"):
        read_ranking(save(path, whole), delimiter=",")


def test_index_columns_of_pandas_are_no_features(tmp_path, pyarrow):
    columns = {"x": [1, 2], "y": [1, 2], "__index_level_0__": [5, 9]}
    data = read_ranking(save_parquet(tmp_path / "a.parquet", columns))
    assert data.feature_names.tolist() == ["x"]


@pytest.mark.parametrize("content", [b"PAR1rest", HOTELS.encode(), b'{"y": 1, "x": 2}'])
def test_missing_pyarrow_is_named_with_its_remedy(tmp_path, monkeypatch, content):
    for name in ("pyarrow", "pyarrow.parquet", "pyarrow.csv", "pyarrow.json"):
        monkeypatch.setitem(sys.modules, name, None)
    path = save(tmp_path / "a", content)
    with pytest.raises(ImportError, match="pip install pyarrow"):
        read_ranking(path)
    assert read_ranking(save(path, LETOR)).y.tolist() == [2, 0]


# Any format -------------------------------------------------------------------------------------

LETOR = "# made by hand\n2 qid:7 1:0.5 3:1 # first\n0 qid:8 2:1\n"


@pytest.mark.parametrize("name", ["a.csv", "a.dat.gz"])
def test_letor_is_told_by_its_content(tmp_path, name):
    path = save(tmp_path / name, gzip.compress(LETOR.encode()) if "gz" in name else LETOR)
    data, same = read_ranking(path), read_letor(path, ids=True)
    assert_array_equal(data.X, same.X)
    assert_array_equal(data.y, same.y)
    assert_array_equal(data.groups, same.groups)
    assert data.ids.tolist() == ["first", ""]
    assert data.feature_names is None
    assert read_ranking(path, n_features=9).X.shape == (2, 9)


@pytest.mark.parametrize("name", ["a.tsv", "a", "a.svm"])
def test_tables_are_told_by_their_content(tmp_path, name):
    check_hotels(read_ranking(save(tmp_path / name, HOTELS), id="hotel"))


def test_format_by_option(tmp_path):
    path = save(tmp_path / "a", HOTELS.replace(",", "\t"))
    check_hotels(read_ranking(path, format="tsv", id="hotel"))
    check_hotels(read_ranking(path, format="csv", id="hotel", delimiter="\t"))
    blanks = save(tmp_path / "c", HOTELS.replace(",", " "))
    check_hotels(read_ranking(blanks, id="hotel", delimiter=" "))
    refused(read_ranking, path, 1, "expected 'label qid", format="letor")
    path = save(tmp_path / "b", "1\n2\n")
    assert read_ranking(path, format="letor").y.tolist() == [1, 2]
    assert read_ranking(save(tmp_path / "b.svm", "1\n2\n")).y.tolist() == [1, 2]


def test_what_is_not_clear_has_to_be_said(tmp_path):
    path = save(tmp_path / "a.txt", "1\n2\n")
    refused(read_ranking, path, None, "Pass format=")
    refused(read_ranking, save(tmp_path / "a.csv", "1\n2\n"), 1, "only column is '1'")
    refused(read_ranking, save(path, HOTELS), None, "expected parquet", format="parquet")
    refused(read_ranking, save(path, LETOR), 2, "only column is", format="csv")
    refused(read_ranking, save(path, b"PAR1"), None, "parquet, expected csv", format="csv")
    with pytest.raises(ValueError, match="format='excel'; pass one of auto, letor"):
        read_ranking(path, format="excel")


@pytest.mark.parametrize("options", [{"target": "y"}, {"group": None}, {"features": ["a"]}])
def test_options_of_tables_do_not_belong_to_letor_files(tmp_path, options):
    path = save(tmp_path / "a.txt", LETOR)
    words = f"leave out {next(iter(options))}=.*format='csv'"
    refused(read_ranking, path, None, words, error=ValueError, **options)


def test_a_table_must_have_the_features_that_are_expected(tmp_path):
    path = save(tmp_path / "a.csv", HOTELS)
    check_hotels(read_ranking(path, id="hotel", n_features=2))
    refused(read_ranking, path, None, "has 2 features.*expected 3", id="hotel", n_features=3)


# Scores -----------------------------------------------------------------------------------------


@quick
@given(scores=st.lists(numbers, min_size=1, max_size=20), packed=st.booleans())
def test_scores_round_trip(tmp_path, scores, packed):
    path = tmp_path / ("a.gz" if packed else "a.txt")
    write_scores(path, scores)
    assert_array_equal(read_scores(path), scores)


def test_scores_are_written_one_a_line(tmp_path):
    write_scores(tmp_path / "a.txt", np.array([0.1, 1, 1e-9, 1 / 3]))
    assert (tmp_path / "a.txt").read_text() == "0.1\n1.0\n1e-09\n0.3333333333333333\n"
    assert read_scores(save(tmp_path / "a.txt", "1\r\n +2 \r\n3")).tolist() == [1, 2, 3]


@pytest.mark.parametrize(
    "content, line, words",
    [
        ("1\n\n2\n", 2, "got ''.*one finite number per line"),
        ("1\n2 3\n", 2, "got '2 3'"),
        ("score\n1\n", 1, "got 'score'"),
        ("1\nnan\n", 2, "got 'nan'"),
        ("1\n2\n1e999\n", 3, "got '1e999'"),
        ("", None, "is empty"),
        (b"1\n\xff\n", 2, r"got '\\xff'"),
    ],
)
def test_bad_scores(tmp_path, content, line, words):
    refused(read_scores, save(tmp_path / "a.txt", content), line, words)


@pytest.mark.parametrize(
    "scores, words",
    [([[1.0]], r"shape \(1, 1\)"), ([1.0, np.nan], r"scores\[1\] is nan"), (1.0, r"shape \(\)")],
)
def test_scores_that_cannot_be_written(tmp_path, scores, words):
    with pytest.raises(ValueError, match=words):
        write_scores(tmp_path / "a.txt", scores)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_a_column_of_scores_leaves_the_rest_as_it_is(tmp_path, end):
    rows = ["id;x;y", '"a;b";1.50;2', "", 'c;"2";', f'"two{end}lines";3;1']
    path = save(tmp_path / "a.csv", end.join(rows) + end)
    write_table_with_scores(path, tmp_path / "b.csv", [0.5, -1, 1e-9])
    added = [
        "id;x;y;prediction",
        '"a;b";1.50;2;0.5',
        'c;"2";;-1.0',
        f'"two{end}lines";3;1;1e-09',
    ]
    assert (tmp_path / "b.csv").read_bytes().decode() == end.join(added) + end
    write_table_with_scores(path, tmp_path / "c.csv", [0.5, -1, 1e-9], order=[2, 0, 1])
    in_order = [added[k] for k in (0, 3, 1, 2)]
    assert (tmp_path / "c.csv").read_bytes().decode() == end.join(in_order) + end
    assert path.read_bytes().decode() == end.join(rows) + end
    data = read_ranking(tmp_path / "b.csv", id="id")
    assert data.feature_names.tolist() == ["x", "prediction"]


@pytest.mark.parametrize("quote", ["", '"'])
def test_an_empty_list_of_features_reads_the_target_and_groups_only(tmp_path, quote):
    rows = f"y,qid,word\n1,7,{quote}a{quote}\n,8,b\n"
    data = read_ranking(save(tmp_path / "a.csv", rows), features=[])
    assert data.X.shape == (2, 0)
    np.testing.assert_array_equal(data.y, [1, np.nan])
    assert data.groups.tolist() == [7, 8]


def test_a_table_may_be_replaced_and_packed(tmp_path):
    path = save(tmp_path / "a.csv.gz", gzip.compress(HOTELS.encode()))
    write_table_with_scores(path, path, [1.0, 2.0, 3.0], column="a,b")
    text = gzip.decompress(path.read_bytes()).decode()
    assert text.splitlines()[:2] == [
        'hotel,query,price,stars,relevance,"a,b"',
        "Ritz,7,310,5,1,1.0",
    ]
    check_hotels(read_ranking(path, id="hotel", ignore=["a,b"]))


def test_a_column_of_scores_in_parquet(tmp_path, pyarrow):
    from pyarrow import parquet

    day = pyarrow.array([1, 2, 3], pyarrow.date32())
    columns = {**HOTEL_COLUMNS, "day": day, "kind": pyarrow.array(list("aba")).dictionary_encode()}
    path = save_parquet(tmp_path / "a.parquet", columns)
    before = parquet.read_table(path)
    write_table_with_scores(path, path, [0.5, 1, 2])
    after = parquet.read_table(path)
    assert after.column("prediction").to_pylist() == [0.5, 1, 2]
    assert after.drop_columns("prediction").equals(before)
    assert after.schema.remove(len(columns)).equals(before.schema)
    write_table_with_scores(path, path, [7, 8, 9], column="rank", order=[1, 2, 0])
    assert parquet.read_table(path).equals(after.append_column("rank", [[7, 8, 9]]).take([1, 2, 0]))


@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_tables_that_get_no_column(tmp_path, kind):
    path = tmp_path / f"a.{kind}"
    if kind == "csv":
        save(path, HOTELS)
    else:
        pytest.importorskip("pyarrow")
        save_parquet(path, HOTEL_COLUMNS)
    before = path.read_bytes()
    with pytest.raises(TableFormatError, match="'stars'"):
        write_table_with_scores(path, path, [1, 2, 3], column="stars")
    for scores in ([1, 2], [1, 2, 3, 4]):
        with pytest.raises(ValueError, match=f"has 3 rows but there are {len(scores)} scores"):
            write_table_with_scores(path, path, scores)
    with pytest.raises(ValueError, match="column is ' '"):
        write_table_with_scores(path, path, [1, 2, 3], column=" ")
    other = tmp_path / ("b.parquet" if kind == "csv" else "b.csv")
    with pytest.raises(ValueError, match="and so is its copy"):
        write_table_with_scores(path, other, [1, 2, 3])
    assert path.read_bytes() == before
    assert [file.name for file in tmp_path.iterdir()] == [path.name]


def test_sources_that_are_no_good_tables(tmp_path):
    path = save(tmp_path / "a.txt", LETOR)
    with pytest.raises(TableFormatError, match="LETOR"):
        write_table_with_scores(path, tmp_path / "b.txt", [1, 2])
    save(path, "a,b\n1,2\n1\n")
    with pytest.raises(TableFormatError, match="1 columns, the header has 2") as caught:
        write_table_with_scores(path, tmp_path / "b.txt", [1, 2])
    assert caught.value.line == 3
    assert [file.name for file in tmp_path.iterdir()] == ["a.txt"]


# A full disk ------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["a.csv.gz", "a.parquet"])
@pytest.mark.parametrize(
    "write",
    [
        lambda path: write_scores(path, np.random.default_rng(0).random(5000)),
        lambda path: write_table_with_scores(path, path, [1 / 3, 2 / 3, 1 / 7]),
    ],
    ids=["scores", "table"],
)
def test_full_disk_leaves_the_old_file_and_nothing_else(tmp_path, monkeypatch, name, write):
    path = tmp_path / name
    if name == "a.parquet":
        pytest.importorskip("pyarrow")
        save_parquet(path, HOTEL_COLUMNS)
    else:
        save(path, gzip.compress(HOTELS.encode()) if name.endswith("gz") else HOTELS)
    before = path.read_bytes()

    def full(descriptor):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(files.os, "fsync", full)
    with pytest.raises(OSError, match="No space left on device"):
        write(path)
    assert path.read_bytes() == before
    assert [file.name for file in tmp_path.iterdir()] == [name]


@pytest.mark.parametrize("cell", ["x" * 3_000_000, '"' + "x,\n" * 1_000_000 + '"'])
def test_a_cell_longer_than_the_blocks_of_the_reader(tmp_path, cell):
    text = "y,x,t\n1,2,a\n" + f"2,3,{cell}\n" + "3,4,b\n" * 20
    path = save(tmp_path / "a.csv", text)
    found = read_ranking(path, as_frame=True)
    assert_array_equal(found.X["x"].to_numpy()[:3], [2, 3, 4])
    write_table_with_scores(path, path, np.arange(22))
    assert path.read_text().startswith(f"y,x,t,prediction\n1,2,a,0\n2,3,{cell},1\n3,4,b,2\n")


def test_an_object_longer_than_the_blocks_of_the_reader(tmp_path):
    lines = [json.dumps({"y": k, "x": 2 * k, "t": "x" * 3_000_000 * (k == 1)}) for k in range(3)]
    found = read_ranking(save(tmp_path / "a.jsonl", "\n".join(lines)), as_frame=True)
    assert found.X["x"].to_pylist() == [0, 2, 4]


def test_columns_of_a_text_are_parsed_once(tmp_path, monkeypatch):
    from rankwise.datasets.delimited_table import DelimitedTable
    from rankwise.datasets.open_tables import open_table

    file = tmp_path / "a.csv"
    file.write_text('a,b,c,d\n1,"x, y",true,2024-01-01\n,"",false,NA\n3,z,true,\n')
    typed = open_table(str(file)).read([], range(4))
    parsed = []
    parse = DelimitedTable._parse
    monkeypatch.setattr(
        DelimitedTable, "_parse", lambda *arguments: parsed.append(1) or parse(*arguments)
    )
    table = open_table(str(file))
    texts = table.read(range(4), [])
    assert texts[0].to_pylist() == ["1", "", "3"]
    inferred = table.read([], range(4))
    assert table.n_rows() == 3
    assert len(parsed) == 1
    for at in range(4):
        assert inferred[at].type == typed[at].type
        assert inferred[at].to_pylist() == typed[at].to_pylist()
