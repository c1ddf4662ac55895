"""Damaged tables, comparisons and scores: a clear refusal that names the file, or valid data."""

import io
import random
from contextlib import suppress

import numpy as np
import pytest

from rankwise import Columns
from rankwise.datasets import (
    read_pairs,
    read_ranking,
    read_scores,
)
from rankwise.errors import DataFileError
from tests.datasets.test_datasets_fuzz import PIECES, mutated, refusal_of, zipped

TABLE = (
    b'id,qid,y,a,"b c"\r\nx1,1,2,0.5,-1e-3\n"x, 2",1,,.25,7\n'
    b'x3,b,nan,+3, 1\n\n"two\nlines",b,1,0,8\n'
)
PLAIN = b"qid\ty\ta\tb\n1\t2\t0.5\t-1e-3\n1\t1\t.25\t7\n2\t0\t3\t1\n"
LETOR = b"2 qid:1 1:0.5 2:1 # first\r\n0 qid:1 2:-0.25e-3\n# note\n\n1.5 qid:b 1:3 3:7 # x\n"
PAIRS = b'winner,loser,magnitude,tie,group\nAnn,"Bob",2,0,x\nCleo,Ann,,yes,y\n10,Ann,1.5,,"x"\n'
BATTLES = b"model_a,model_b,winner\nowl,jay,model_a\njay,owl,tie\nowl,crow,crow\n"
SCORES = b"0.5\n-1\n1e-7\r\n.25\n17\n"
MORE_PIECES = [
    *PIECES,
    *(b"\n\n", b",,", b'""', b'"\n', b"NA", b"tie", b"y", b"qid", b"a,", b"\r\r", b"1.2.3", b"e"),
    *(b"PAR1", b"PK\x03\x04", b"{", b"1:2", b"\xc3\xa9", b"1e5e5", b"- ", b"\t"),
]


JSONL = b'{"y": 1, "x": 2, "id": "a"}\n\n{"y": 2, "x": 2.5, "id": "b"}\n'
MESSY = (
    b"day;town;size;doc_id;note;score;qid;w\n2024-01-31;Rome;1,5;12;;2;q1;1\n"
    b'2024-02-29;NA;;2;"a; b";;q1;1\n2024-03-01; ;3;3;x;1;q2;0,5\n'
)


def arrow_table():
    pyarrow = pytest.importorskip("pyarrow")
    columns = {"id": ["x", None, "z"], "qid": [1, 1, 2], "y": [2, None, 0.5], "a": [1.5, 2, 3]}
    columns["winner"], columns["loser"] = ["a", "b", "a"], ["c", "a", "b"]
    return pyarrow.table(columns)


def parquet_bytes():
    stream = io.BytesIO()
    parquet = pytest.importorskip("pyarrow.parquet")
    parquet.write_table(arrow_table(), stream, compression="none")
    return stream.getvalue()


def feather_bytes():
    stream = io.BytesIO()
    feather = pytest.importorskip("pyarrow.feather")
    feather.write_feather(arrow_table(), stream, compression="uncompressed")
    return stream.getvalue()


def check_ranking(data):
    n_rows = data.X.shape[0]
    assert n_rows > 0
    assert np.isfinite(data.X.data if hasattr(data.X, "indptr") else data.X).all()
    assert data.y is None or (len(data.y) == n_rows and not np.isinf(data.y).any())
    assert data.groups is None or len(data.groups) == n_rows
    assert data.ids is None or len(data.ids) == n_rows
    assert data.feature_names is None or len(data.feature_names) == data.X.shape[1]


def check_table(path):
    check_ranking(read_ranking(path, id="id"))


def check_plain(path):
    check_ranking(read_ranking(path))


def check_parquet(path):
    check_ranking(read_ranking(path, id="id", ignore=["winner", "loser"]))


def check_frame(path):
    data = read_ranking(path, as_frame=True)
    n_rows = data.X.num_rows
    assert n_rows > 0
    assert data.y is None or (len(data.y) == n_rows and np.isfinite(data.y).all())
    with suppress(ValueError):  # no column can be used
        assert len(Columns().fit(data.X).facts_) == data.X.num_columns


def check_pairs(path, **options):
    data = read_pairs(path, **options)
    assert len(data.winner) == len(data.loser) == len(data.magnitude) == len(data.weight) > 0
    assert max(data.winner.max(), data.loser.max()) == data.n_items - 1
    assert (data.winner != data.loser).all()
    assert (data.magnitude >= 0).all()
    assert data.groups is None or len(data.groups) == data.n_pairs


def check_battles(path):
    check_pairs(path, sides=("model_a", "model_b"))


def check_scores(path):
    scores = read_scores(path)
    assert len(scores) > 0
    assert np.isfinite(scores).all()


CASES = {
    "table": (lambda: TABLE, check_table),
    "plain table": (lambda: PLAIN, check_plain),
    "letor": (lambda: LETOR, check_plain),
    "parquet": (parquet_bytes, check_parquet),
    "feather": (feather_bytes, check_parquet),
    "json lines": (lambda: JSONL, check_table),
    "frame": (lambda: TABLE, check_frame),
    "messy frame": (lambda: MESSY, check_frame),
    "feather frame": (feather_bytes, check_frame),
    "pairs": (lambda: PAIRS, check_pairs),
    "battles": (lambda: BATTLES, check_battles),
    "parquet pairs": (parquet_bytes, check_pairs),
    "scores": (lambda: SCORES, check_scores),
}


def spliced(content, rng):
    """Mutate the bytes, with pieces that mean something in a table."""
    data = bytearray(mutated(content, rng))
    if rng.random() < 0.5:
        at = rng.randrange(len(data) + 1)
        data[at : at + rng.randrange(3)] = rng.choice(MORE_PIECES)
    return bytes(data)


def outcomes_of(content, check, pack, path, rng, n_rounds):
    """Number of files read and refused; anything but a clear refusal is a failure."""
    outcomes = {"read": 0, "refused": 0}
    for _ in range(n_rounds):
        broken = spliced(pack(content), rng)
        path.write_bytes(broken)
        refusal = refusal_of(check, path, broken)
        outcomes["read" if refusal is None else "refused"] += 1
        if refusal is not None:
            assert str(refusal).startswith(str(path))
            assert refusal.line is None or refusal.line >= 1
    return outcomes


@pytest.mark.parametrize("pack", [bytes, zipped], ids=["plain", "gzip"])
@pytest.mark.parametrize("name", CASES)
def test_mutated_files(tmp_path, name, pack):
    make, check = CASES[name]
    rng = random.Random(f"{name} {pack.__name__}")
    outcomes = outcomes_of(make(), check, pack, tmp_path / "mutated.csv", rng, 150)
    assert outcomes["refused"] > 20, outcomes
    if pack is bytes and "parquet" not in name and "feather" not in name:
        assert outcomes["read"] > 5, outcomes


def test_random_bytes(tmp_path):
    rng = random.Random(0)
    path = tmp_path / "random"
    for start in (b"", b"\x1f\x8b\x08", b"PAR1", b"y,x\n", b"BZh91AY&SY", b"\xfd7zXZ\x00"):
        for _ in range(20):
            path.write_bytes(start + rng.randbytes(rng.randrange(200)))
            for read in (read_ranking, read_ranking, read_pairs, read_scores):
                with pytest.raises(DataFileError, match="random"):
                    read(path)


@pytest.mark.parametrize("header", [b"y,x\n", b"y,x,id\n"])
def test_an_endless_quotation_is_refused_soon(tmp_path, header):
    path = tmp_path / "open.csv"
    path.write_bytes(header + b'1,"2\n' + b"1,2\n" * 200_000)
    with pytest.raises(DataFileError, match="quotation marks") as caught:
        read_ranking(path)
    assert caught.value.line == 2
