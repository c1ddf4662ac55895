"""Damaged files: a clear error or valid data, never another exception."""

import gzip
import random

import numpy as np
import pytest

from rankwise.datasets import read_group_sizes, read_letor, read_pairs
from rankwise.errors import DataFileError

LETOR = b"2 qid:1 1:0.5 2:1 # first\r\n0 qid:1 2:-0.25e-3\n# note\n\n1.5 qid:b 1:3 3:7 # x\n" * 2
PLAIN = b"2 1:0.5 2:1 # first\n0 2:-0.25\n1 1:3 3:7\n"
PAIRS = b'winner,loser,magnitude,weight\nAnn,"Bob",2,1\nCleo,Ann,0,0.5\n10,Ann,1.5,3\n'
SIZES = b"3\n14\n\n15\r\n9\n"
PIECES = [
    *(b"qid:", b"qid", b":", b"#", b" ", b"\n", b"\r", b"\t", b"\0", b"\xff", b"\xef\xbb\xbf"),
    *(b"nan", b"inf", b"1e999", b"-1", b"0:", b"1_0", b"0x1", b"99999999999", b"9" * 25),
    *(b'"', b",", b";", b"\x0c", b"\x1c", b"\xc2\xa0", b"\xe2\x80\xa8", b"+", b"-", b".", b"\x1a"),
]


def mutated(content, rng):
    """Flip, delete, insert, repeat or cut some bytes."""
    data = bytearray(content)
    for _ in range(rng.randint(1, 4)):
        at = rng.randrange(len(data) + 1)
        change = rng.randrange(5)
        if change == 0 and at < len(data):
            data[at] = rng.randrange(256)
        elif change == 1:
            del data[at : at + rng.randint(1, 5)]
        elif change == 2:
            data[at:at] = rng.choice(PIECES)
        elif change == 3:
            data[at:at] = data[at : at + rng.randint(1, 30)]
        elif rng.random() < 0.2:
            del data[at:]
    return bytes(data)


def check_letor(path):
    data = read_letor(path, ids=True)
    n_rows = data.X.shape[0]
    assert n_rows == len(data.y) == len(data.ids) > 0
    assert data.groups is None or len(data.groups) == n_rows
    assert np.isfinite(data.y).all()
    assert np.isfinite(data.X.data if hasattr(data.X, "indptr") else data.X).all()


def check_pairs(path):
    data = read_pairs(path)
    assert len(data.winner) == len(data.loser) == len(data.magnitude) == len(data.weight) > 0
    assert min(data.winner.min(), data.loser.min()) >= 0
    assert max(data.winner.max(), data.loser.max()) == data.n_items - 1
    assert (data.winner != data.loser).all()
    assert (data.magnitude >= 0).all()
    assert (data.weight > 0).all()
    assert (np.sort(data.items) == data.items).all()


def check_sizes(path):
    assert (read_group_sizes(path) >= 0).all()


def refusal_of(check, path, content):
    try:
        check(path)
    except DataFileError as refusal:
        return refusal
    except Exception as error:
        raise AssertionError(f"{type(error).__name__} for {content!r}") from error
    return None


def zipped(content):
    return gzip.compress(content, mtime=0)  # no time stamp: every run sees the same bytes


@pytest.mark.parametrize("pack", [bytes, zipped], ids=["plain", "gzip"])
@pytest.mark.parametrize(
    "content, check",
    [(LETOR, check_letor), (PLAIN, check_letor), (PAIRS, check_pairs), (SIZES, check_sizes)],
    ids=["qid", "no qid", "pairs", "sizes"],
)
def test_mutated_files(tmp_path, content, check, pack):
    rng = random.Random(content[0] * 2 + (pack is bytes))
    path = tmp_path / "mutated"
    outcomes = {"read": 0, "refused": 0}
    for _ in range(700):
        broken = mutated(pack(content), rng)
        path.write_bytes(broken)
        refusal = refusal_of(check, path, broken)
        outcomes["read" if refusal is None else "refused"] += 1
        if refusal is not None:
            assert refusal.path == str(path)
            assert refusal.line is None or refusal.line >= 1
            if pack is bytes:  # damaged gzip data may decompress to any number of lines
                assert refusal.line is None or refusal.line <= broken.count(b"\n") + 1
    assert outcomes["refused"] > 50, outcomes


def test_random_bytes(tmp_path):
    rng = random.Random(0)
    path = tmp_path / "random"
    for start in (b"", b"\x1f\x8b\x08", b"BZh91AY&SY", b"\xfd7zXZ\x00", b"winner,loser\n"):
        for _ in range(40):
            path.write_bytes(start + rng.randbytes(rng.randrange(200)))
            for read in (read_letor, read_group_sizes, read_pairs):
                with pytest.raises(DataFileError):
                    read(path)
