"""Tables as people have them: formats, marks, encodings, gaps, and what a frame keeps."""

from __future__ import annotations

import datetime
import gzip
import io
import json
import sys
import zipfile

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from rankwise.datasets import (
    read_pairs,
    read_ranking,
    read_scores,
    write_letor,
    write_scores,
    write_table_with_scores,
)
from rankwise.errors import TableFormatError

pyarrow = pytest.importorskip("pyarrow")
feather = pytest.importorskip("pyarrow.feather")
parquet = pytest.importorskip("pyarrow.parquet")

COLUMNS = {"y": [1, 0, 2], "qid": ["a", "a", "b"], "x": [0.5, 2.0, -3e-7], "n": [1, 2, 3]}


def save(path, content):
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


def as_csv(columns=COLUMNS, mark=","):
    rows = [list(columns), *zip(*columns.values(), strict=True)]
    return "".join(mark.join(map(str, row)) + "\n" for row in rows)


def as_jsonl(columns=COLUMNS):
    rows = zip(*columns.values(), strict=True)
    return "".join(json.dumps(dict(zip(columns, row, strict=True))) + "\n" for row in rows)


def as_array(columns=COLUMNS):
    return json.dumps([json.loads(line) for line in as_jsonl(columns).splitlines()], indent=2)


def write_as(path, kind, columns=COLUMNS):
    if kind == "parquet":
        parquet.write_table(pyarrow.table(columns), path)
    elif kind == "feather":
        feather.write_feather(pyarrow.table(columns), str(path))
    else:
        save(path, {"csv": as_csv, "json": as_jsonl, "array": as_array}[kind](columns))
    return path


def check(data):
    assert_array_equal(data.X, [[0.5, 1], [2, 2], [-3e-7, 3]])
    assert_array_equal(data.y, [1, 0, 2])
    assert data.groups.tolist() == ["a", "a", "b"]
    assert data.feature_names.tolist() == ["x", "n"]


KINDS = ["csv", "parquet", "feather", "json", "array"]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("pack", ["", "gz", "zst", "zip"])
def test_every_format_gives_the_same_data(tmp_path, kind, pack):
    path = write_as(tmp_path / "data", kind)
    if pack == "gz":
        save(path, gzip.compress(path.read_bytes()))
    elif pack == "zip":
        content = path.read_bytes()
        with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
            archive.writestr("data", content)
            archive.writestr("__MACOSX/._data", b"rest")
    elif pack:
        save(path, pyarrow.compress(path.read_bytes(), "zstd", asbytes=True))
    check(read_ranking(path))
    check(read_ranking(path, format="json" if kind == "array" else kind))
    other = next(k for k in ("parquet", "feather") if k != kind)
    with pytest.raises(TableFormatError, match=f"expected {other}"):
        read_ranking(path, format=other)


@pytest.mark.parametrize("kind", KINDS)
def test_a_column_of_scores_in_every_format(tmp_path, kind):
    path = write_as(tmp_path / f"a.{kind.replace('array', 'json')}", kind)
    write_table_with_scores(path, path, [0.5, 1.5, 2.5], column="p")
    data = read_ranking(path)
    assert_array_equal(data.X[:, -1], [0.5, 1.5, 2.5])
    assert data.feature_names.tolist() == ["x", "n", "p"]
    with pytest.raises(ValueError, match="has 3 rows but there are 2 scores"):
        write_table_with_scores(path, path, [1.0, 2.0])


# Text as people have it --------------------------------------------------------------------------


@pytest.mark.parametrize("mark", [";", "\t", "|"])
@pytest.mark.parametrize("decimal", [None, ","])
def test_decimal_commas(tmp_path, mark, decimal):
    path = save(tmp_path / "a", as_csv(mark=mark).replace(".", ","))
    check(read_ranking(path, decimal=decimal))
    with pytest.raises(TableFormatError, match=r"a:2: .*column 'x', is '0,5'"):
        read_ranking(path, decimal=".")
    pairs = save(tmp_path / "p", f"winner{mark}loser{mark}magnitude\na{mark}b{mark}1,5\n")
    assert read_pairs(pairs).magnitude.tolist() == [1.5]


def test_a_comma_among_points_is_no_decimal_mark(tmp_path):
    path = save(tmp_path / "a", "y;x;z\n1;0.5;1,5\n2;1.5;2,5\n")
    with pytest.raises(TableFormatError, match=r"a:2: .*column 'z', is '1,5'"):
        read_ranking(path)
    with pytest.raises(ValueError, match="decimal='x'; pass"):
        read_ranking(path, decimal="x")


@pytest.mark.parametrize("mark", ["\t", ";"])
def test_thousands_are_never_taken_for_decimals(tmp_path, mark):
    path = save(tmp_path / "a", f"y{mark}x\n1{mark}1,234\n2{mark}12,345\n")
    with pytest.raises(TableFormatError, match=r"a:2: .*column 'x', is '1,234'"):
        read_ranking(path)
    assert read_ranking(path, decimal=",").X.ravel().tolist() == [1.234, 12.345]
    assert read_ranking(save(path, f"y{mark}x\n1{mark}1,234\n2{mark}2,5\n")).X[0, 0] == 1.234


def test_blank_cells_beside_many_columns(tmp_path):
    path = save(tmp_path / "a.csv", f"y,x\n1,2\n , \n2,{2**60 + 1}\n")
    with pytest.raises(TableFormatError, match=r"a\.csv:4: .*which float64 would round"):
        read_ranking(path)
    with pytest.raises(TableFormatError, match=r"a\.csv:3: .*column 'x', is ''"):
        read_ranking(save(path, "y,x\n1,2\n , \n2,3\n"))


@pytest.mark.parametrize("header", [True, False])
def test_quotation_marks_from_the_first_byte_on(tmp_path, header):
    path = save(tmp_path / "a.csv", '"1","2"\n"3","4"\n"5","6"\n'.replace("1", "y" * header or "1"))
    data = read_ranking(path, header=header, target=0)
    assert data.X.ravel().tolist() == [2.0, 4, 6][header:]


def test_a_file_without_names(tmp_path):
    path = save(tmp_path / "a.csv", "1,7,0.5,3\n0,7,1.5,4\n")
    data = read_ranking(path, header=False, target=0, group="1")
    assert_array_equal(data.X, [[0.5, 3], [1.5, 4]])
    assert data.feature_names.tolist() == ["2", "3"]
    assert data.groups.tolist() == [7, 7]
    with pytest.raises(TableFormatError, match=r"only numbers.*header=False"):
        read_ranking(path)
    with pytest.raises(TableFormatError, match=r"a.csv:3: .*column '2', is 'x'"):
        read_ranking(save(path, "1,7,0.5,3\n0,7,1.5,4\n1,1,x,1\n"), header=False, target=0, group=1)


@pytest.mark.parametrize(
    "cell, words",
    [
        ("2020-01-31", "column 'x', is '2020-01-31'"),
        ("12:30", "column 'x', is '12:30"),
        ("123456789012345678", "123456789012345678, which float64 would round.*ignore="),
        ("12345678901234567891", "12345678901234567891, which float64 would round"),
        (f" {2**60 + 1} ", "which float64 would round"),
        ("9007199254740993", "9007199254740993, which float64 would round"),
        ("inf", "column 'x', is 'inf'"),
        ("-Infinity", "column 'x', is '-inf'"),
        ("NA", "column 'x', is ''"),
        ("", "column 'x', is ''"),
        ("#", "column 'x', is '#'"),
    ],
)
def test_cells_that_are_no_features(tmp_path, cell, words):
    for others in ("1", cell):
        path = save(tmp_path / "a.csv", f"y,z,x\n1,1,{others}\n2,1,{cell}\n")
        with pytest.raises(TableFormatError, match=words) as caught:
            read_ranking(path)
        assert caught.value.line == (3 if others != cell else 2)


def test_whole_numbers_that_floats_have_are_fine(tmp_path):
    path = save(tmp_path / "a.csv", f"y,x\n1,{2**53}\n2,{2**60}\n3,-{2**62}\n4,1e300\n")
    assert read_ranking(path).X.ravel().tolist() == [2.0**53, 2.0**60, -(2.0**62), 1e300]
    table = {"y": [1, 2], "x": pyarrow.array([2**64 - 1, 1], "uint64")}
    with pytest.raises(TableFormatError, match=f"{2**64 - 1}, which float64 would round"):
        read_ranking(write_as(tmp_path / "a.parquet", "parquet", table))


def test_types_may_change_far_below(tmp_path):
    rows = "1,1\n" * 400_000 + "1,2.5\n"
    assert read_ranking(save(tmp_path / "a.csv", f"y,x\n{rows}")).X[-1, 0] == 2.5
    with pytest.raises(TableFormatError, match=r"a\.csv:400002: .*column 'x', is 'oops'"):
        read_ranking(save(tmp_path / "a.csv", f"y,x\n{rows.replace('2.5', 'oops')}"))
    with pytest.raises(TableFormatError, match=r"a\.csv:400003: the row has 3 columns"):
        read_ranking(save(tmp_path / "a.csv", f"y,x\n{rows}1,2,3\n"))


# Frames -------------------------------------------------------------------------------------------

MESSY = """\
day;town;size;doc_id;note;score;qid;w
2024-01-31;Rome;1,5;123456789012345678;;2;q1;1
2024-02-29;NA;;2;"a; b";;q1;1
2024-03-01; ;3;3;x;1;q2;0,5
"""


@pytest.mark.parametrize("pack", [bytes, gzip.compress])
def test_a_frame_keeps_names_types_and_gaps(tmp_path, pack):
    data = read_ranking(
        save(tmp_path / "messy.csv", pack(MESSY.encode())), weight="w", as_frame=True
    )
    assert data.X.to_pydict() == {
        "day": [datetime.date(2024, 1, 31), datetime.date(2024, 2, 29), datetime.date(2024, 3, 1)],
        "town": ["Rome", None, None],
        "size": [1.5, None, 3.0],
        "doc_id": [123456789012345678, 2, 3],
        "note": [None, "a; b", "x"],
    }
    assert_array_equal(data.y, [2, np.nan, 1])
    assert data.groups.tolist() == ["q1", "q1", "q2"]
    assert_array_equal(data.weight, [1, 1, 0.5])
    assert data.ids is None
    assert data.roles == {"target": "score", "group": "qid", "weight": "w"}


@pytest.mark.parametrize("kind", KINDS)
def test_a_frame_of_every_format(tmp_path, kind):
    path = write_as(tmp_path / "a", kind, {**COLUMNS, "w": [1, 0, 3], "t": ["u", "v", "NA"]})
    data = read_ranking(path, id="t", weight="w", ignore=["n"], as_frame=True)
    assert data.X.column_names == ["x"]
    assert data.ids.tolist() == ["u", "v", "NA"]
    assert_array_equal(data.weight, [1, 0, 3])


@pytest.mark.parametrize("weight", ["-1", "x", "inf"])
def test_bad_weights_are_named(tmp_path, weight):
    path = save(tmp_path / "a.csv", f"y,x,w\n1,a,1\n2,b,{weight}\n")
    with pytest.raises(TableFormatError, match=r"a\.csv:3: .*column 'w'"):
        read_ranking(path, weight="w", as_frame=True)


def test_a_frame_without_scores(tmp_path):
    path = save(tmp_path / "a.csv", "y,x\n,a\nNA,b\n")
    assert np.isnan(read_ranking(path, as_frame=True).y).all()
    assert read_ranking(path, target=None, as_frame=True).X.column_names == ["y", "x"]
    data = read_ranking(save(path, "z,x\n1,a\n"), target_needed=False, as_frame=True)
    assert data.y is None
    assert data.X.num_rows == 1


# Standard input and output ----------------------------------------------------------------------


@pytest.mark.parametrize("kind", KINDS)
def test_tables_from_standard_input(tmp_path, monkeypatch, kind):
    content = write_as(tmp_path / "a", kind).read_bytes()
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(content)))
    check(read_ranking("-"))
    check(read_ranking("-"))  # once more


def test_scores_and_pairs_from_standard_input(monkeypatch):
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"1\n2.5\n")))
    assert read_scores("-").tolist() == [1, 2.5]
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"winner,loser\na,b\n")))
    assert read_pairs("-").items.tolist() == ["a", "b"]
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"winner,loser\na,a\n")))
    with pytest.raises(TableFormatError, match=r"^-:2: 'a' is compared with itself"):
        read_pairs("-")


def test_everything_can_be_written_to_standard_output(tmp_path, capsysbinary):
    write_scores("-", [1.5, 2])
    write_letor("-", [[1.0]], [2])
    write_table_with_scores(save(tmp_path / "a.csv", "x,y\n1,2\n"), "-", [0.5])
    assert capsysbinary.readouterr().out == b"1.5\n2.0\n2 1:1\nx,y,prediction\n1,2,0.5\n"


def test_zstandard_is_written_too(tmp_path):
    write_scores(tmp_path / "a.zst", np.arange(1000.0))
    assert (tmp_path / "a.zst").read_bytes()[:4] == b"\x28\xb5\x2f\xfd"
    assert_array_equal(read_scores(tmp_path / "a.zst"), np.arange(1000.0))
