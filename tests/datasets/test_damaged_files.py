"""Damaged files: a clear refusal that names the file, or valid data, never another exception."""

import gzip
import io
import random

import numpy as np
import pytest

from rankwise.datasets import read_group_sizes, read_letor, read_pairs, read_ranking, read_scores
from rankwise.errors import DataFileError
from tests.datasets.data import LETOR, PLAIN, mutated

pytestmark = pytest.mark.filterwarnings("ignore:.*rows are dropped:UserWarning")

ROUNDS = 40  # mutations of each file; more are run by hand
SIZES = b"3\n14\n\n15\r\n9\n"
TABLE = (
    b'id,qid,y,a,"b c"\r\nx1,1,2,0.5,-1e-3\n"x, 2",1,,.25,7\n'
    b'x3,b,nan,+3, 1\n\n"two\nlines",b,1,0,8\n'
)
TABS = b"qid\ty\ta\tb\n1\t2\t0.5\t-1e-3\n1\t1\t.25\t7\n2\t0\t3\t1\n"
PAIRS = b'winner,loser,magnitude,tie,group\nAnn,"Bob",2,0,x\nCleo,Ann,,yes,y\n10,Ann,1.5,,"x"\n'
BATTLES = b"model_a,model_b,winner\nowl,jay,model_a\njay,owl,tie\nowl,crow,crow\n"
SCORES = b"0.5\n-1\n1e-7\r\n.25\n17\n"
JSON_LINES = b'{"y": 1, "x": 2, "id": "a"}\n\n{"y": 2, "x": 2.5, "id": "b"}\n'
JSON_ARRAY = b'[{"y": 1, "x": 2, "id": "a"},\n {"y": 2, "x": 2.5, "id": "b"}]\n'
MESSY = (
    b"day;town;size;doc_id;note;score;qid;w\n2024-01-31;Rome;1,5;12;;2;q1;1\n"
    b'2024-02-29;NA;;2;"a; b";;q1;1\n2024-03-01; ;3;3;x;1;q2;0,5\n'
)


def arrow_bytes(format):
    pyarrow = pytest.importorskip("pyarrow")
    columns = {"id": ["x", None, "z"], "qid": [1, 1, 2], "y": [2, None, 0.5], "a": [1.5, 2, 3]}
    table = pyarrow.table({**columns, "winner": ["a", "b", "a"], "loser": ["c", "a", "b"]})
    stream = io.BytesIO()
    if format == "parquet":
        pytest.importorskip("pyarrow.parquet").write_table(table, stream, compression="none")
    else:
        pytest.importorskip("pyarrow.feather").write_feather(
            table, stream, compression="uncompressed"
        )
    return stream.getvalue()


def check_ranking(data):
    n_rows = data.X.shape[0]
    assert n_rows > 0
    if not hasattr(data.X, "column_names"):
        assert np.isfinite(data.X.data if hasattr(data.X, "indptr") else data.X).all()
    assert data.y is None or not np.isinf(data.y).any()
    for values in (data.y, data.groups, data.ids, data.weight):
        assert values is None or len(values) == n_rows
    assert data.feature_names is None or len(data.feature_names) == data.X.shape[1]


def check_pairs(data):
    assert len(data.winner) == len(data.loser) == len(data.magnitude) == len(data.weight) > 0
    assert min(data.winner.min(), data.loser.min()) >= 0
    assert max(data.winner.max(), data.loser.max()) == data.n_items - 1
    assert (data.winner != data.loser).all()
    assert (data.magnitude >= 0).all()
    assert (data.weight > 0).all()
    assert (np.sort(data.items) == data.items).all()


def check_numbers(numbers):
    assert len(numbers) > 0
    assert np.isfinite(numbers).all()


CASES = {
    "qid": (LETOR, lambda path: check_ranking(read_letor(path, ids=True))),
    "no qid": (PLAIN, lambda path: check_ranking(read_ranking(path))),
    "sizes": (SIZES, lambda path: check_numbers(read_group_sizes(path))),
    "scores": (SCORES, lambda path: check_numbers(read_scores(path))),
    "table": (TABLE, lambda path: check_ranking(read_ranking(path, id="id", format="csv"))),
    "tabs": (TABS, lambda path: check_ranking(read_ranking(path))),
    "frame": (TABLE, lambda path: check_ranking(read_ranking(path, as_frame=True))),
    "messy": (MESSY, lambda path: check_ranking(read_ranking(path, as_frame=True, weight="w"))),
    "parquet": ("parquet", lambda path: check_ranking(read_ranking(path, as_frame=True))),
    "feather": ("feather", lambda path: check_ranking(read_ranking(path, as_frame=True))),
    "json": (JSON_LINES, lambda path: check_ranking(read_ranking(path, id="id"))),
    "array": (JSON_ARRAY, lambda path: check_ranking(read_ranking(path, id="id"))),
    "pairs": (PAIRS, lambda path: check_pairs(read_pairs(path))),
    "battles": (BATTLES, lambda path: check_pairs(read_pairs(path, sides=("model_a", "model_b")))),
    "parquet pairs": ("parquet", lambda path: check_pairs(read_pairs(path))),
}


def refusal_of(check, path, content):
    path.write_bytes(content)
    try:
        check(path)
    except DataFileError as refusal:
        return refusal
    except Exception as error:
        raise AssertionError(f"{type(error).__name__} for {content!r}") from error
    return None


@pytest.mark.parametrize("name, pack", [*((name, "plain") for name in CASES), ("frame", "gzip")])
def test_mutated_files(tmp_path, name, pack):
    content, check = CASES[name]
    content = arrow_bytes(content) if isinstance(content, str) else content
    content = gzip.compress(content, mtime=0) if pack == "gzip" else content
    rng = random.Random(f"{name} {pack}")
    path = tmp_path / "mutated.csv"
    outcomes = {"read": 0, "refused": 0}
    for _ in range(ROUNDS):
        broken = mutated(content, rng)
        refusal = refusal_of(check, path, broken)
        outcomes["read" if refusal is None else "refused"] += 1
        if refusal is not None:
            assert (refusal.path, str(refusal).startswith(str(path))) == (str(path), True)
            assert refusal.line is None or refusal.line >= 1
            if pack == "plain" and refusal.line is not None:
                assert refusal.line <= broken.count(b"\n") + broken.count(b"\r") + 4
    assert outcomes["refused"] > 3, outcomes
    if pack == "plain" and name not in ("parquet", "feather", "parquet pairs", "array"):
        assert outcomes["read"] > 0, outcomes


def test_random_bytes(tmp_path):
    rng = random.Random(0)
    path = tmp_path / "random"
    for start in (b"", b"\x1f\x8b\x08", b"PAR1", b"y,x\n", b"\xfd7zXZ\x00", b"PK\x03\x04"):
        for _ in range(4):
            path.write_bytes(start + rng.randbytes(rng.randrange(200)))
            for read in (read_letor, read_group_sizes, read_ranking, read_pairs, read_scores):
                with pytest.raises(DataFileError, match="random"):
                    read(path)


@pytest.mark.parametrize("header", [b"y,x\n", b"y,x,id\n"])
def test_an_endless_quotation_is_refused_soon(tmp_path, header):
    path = tmp_path / "open.csv"
    path.write_bytes(header + b'1,"2\n' + b"1,2\n" * 200_000)
    with pytest.raises(DataFileError, match="quotation marks") as caught:
        read_ranking(path)
    assert caught.value.line == 2
