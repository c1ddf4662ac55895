"""read_letor: what is read, from one file or many, plain or compressed, with and without groups."""

import bz2
import gzip
import lzma
import subprocess
import sys

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_array_equal

from rankwise.datasets import RankingData, files, read_letor
from rankwise.runtime import memory

TOY = b"""\
# a comment line
2 qid:7 1:0.5 2:-1e-3 3:3 # doc a

0 qid:7 2:0.25 # doc b
1.5 qid:9007199254740993 1:1 2:2 3:4
   # an indented comment
-1 qid:7 3:1 #
"""
TOY_X = [[0.5, -1e-3, 3], [0, 0.25, 0], [1, 2, 4], [0, 0, 1]]
TOY_GROUPS = [7, 7, 2**53 + 1, 7]


def save(path, content):
    path.write_bytes(content)
    return path


def check_toy(data):
    assert isinstance(data, RankingData)
    assert_array_equal(data.X.toarray() if sp.issparse(data.X) else data.X, TOY_X)
    assert_array_equal(data.y, [2, 0, 1.5, -1])
    assert data.groups.dtype == np.int64
    assert data.groups.tolist() == TOY_GROUPS


@pytest.mark.parametrize("pack", [bytes, gzip.compress, bz2.compress, lzma.compress])
@pytest.mark.parametrize("as_type", [str, lambda path: path])
def test_reads_plain_and_compressed_files_whatever_their_name(tmp_path, pack, as_type):
    check_toy(read_letor(as_type(save(tmp_path / "toy.data", pack(TOY)))))


@pytest.mark.parametrize(
    "change",
    [
        lambda text: text.replace(b"\n", b"\r\n"),
        lambda text: b"\xef\xbb\xbf" + text,  # the mark that some editors put in front
        lambda text: text.replace(b" ", b"\t "),
        lambda text: text.rstrip(b"\n"),
        lambda text: text.replace(b"qid:7", b"qid:007"),
        lambda text: text + b"\n \t\n\n",
    ],
    ids=["crlf", "bom", "tabs", "no newline at end", "leading zeros", "blank lines"],
)
def test_harmless_variations_of_the_format(tmp_path, change):
    check_toy(read_letor(save(tmp_path / "toy.txt", change(TOY))))


def test_ids_are_the_comments_of_the_rows(tmp_path):
    path = save(tmp_path / "toy.txt", TOY.replace(b"doc b", b" caf\xe9 # 2 \r"))
    assert read_letor(path).ids is None
    assert read_letor(path, ids=True).ids.tolist() == ["doc a", "caf\\xe9 # 2", "", ""]


def test_small_blocks_give_the_same_data(tmp_path, monkeypatch):
    path = save(tmp_path / "toy.txt", TOY)
    monkeypatch.setattr(files, "BLOCK_BYTES", 1)
    check_toy(read_letor(path))
    check_toy(read_letor(path, sparse=True))
    with pytest.raises(ValueError, match=r"toy\.txt:5: "):
        read_letor(save(path, TOY.replace(b"1:1 ", b"1:x ")))


# Matrices ---------------------------------------------------------------------------------------


def test_sparse_switch(tmp_path):
    path = save(tmp_path / "toy.txt", TOY)
    sparse = read_letor(path, sparse=True).X
    assert isinstance(sparse, sp.csr_matrix)
    assert sparse.indices.dtype == np.int32
    assert_array_equal(sparse.toarray(), TOY_X)
    assert isinstance(read_letor(path, sparse=False).X, np.ndarray)


def test_auto_is_dense_from_a_third_of_stored_entries_on(tmp_path):
    third = save(tmp_path / "third.txt", b"0 1:0 2:0\n0 3:0 4:0\n0 1:0 6:0\n")  # 6 of 18
    assert isinstance(read_letor(third).X, np.ndarray)
    fewer = save(tmp_path / "fewer.txt", b"0 1:0 2:0\n0 3:0\n0 1:0 6:0\n")  # 5 of 18
    assert sp.issparse(read_letor(fewer).X)


def test_dtype_is_that_of_the_features_only(tmp_path):
    path = save(tmp_path / "toy.txt", TOY)
    data = read_letor(path, dtype="float32")
    assert data.X.dtype == np.float32
    assert data.y.dtype == np.float64
    assert_array_equal(data.X, np.float32(TOY_X))


@pytest.mark.parametrize("sparse", [True, False, "auto"])
@pytest.mark.parametrize("n_features", [None, 2, 5])
def test_rows_that_have_every_feature(tmp_path, sparse, n_features):
    path = save(tmp_path / "full.txt", b"1 1:1 2:2\n2 1:3 2:4\n")
    X = read_letor(path, sparse=sparse, n_features=n_features).X
    expected = np.zeros((2, n_features or 2))
    expected[:, :2] = [[1, 2], [3, 4]]
    assert_array_equal(X.toarray() if sp.issparse(X) else X, expected)


def test_zero_based_ids(tmp_path):
    path = save(tmp_path / "zero.txt", b"1 qid:1 0:5 1:6\n")
    assert_array_equal(read_letor(path, zero_based=True).X, [[5, 6]])
    toy = save(tmp_path / "toy.txt", TOY)
    assert read_letor(toy, zero_based=True, sparse=False).X.shape == (4, 4)


def test_dense_array_that_does_not_fit_is_refused_before_it_is_allocated(tmp_path, monkeypatch):
    monkeypatch.setattr(memory, "available_bytes", lambda: 2**33)
    path = save(tmp_path / "wide.txt", b"1 1073741824:1\n0 1:1\n")
    with pytest.raises(ValueError, match=r"2 × 1,073,741,824 .* 16\.0 GiB.*sparse"):
        read_letor(path, sparse=False, n_features=1073741824)


# Groups -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "qids",
    [
        [2**53 + 1, 2**53 + 2, 2**53 + 1],
        [-(2**63), 2**63 - 1, 0],
    ],
)
def test_integer_qids_are_exact(tmp_path, qids):
    text = "".join(f"0 qid:{qid} 1:1\n" for qid in qids).encode()
    groups = read_letor(save(tmp_path / "qids.txt", text)).groups
    assert groups.dtype == np.int64
    assert groups.tolist() == qids


@pytest.mark.parametrize("qids", [["q_1", "7", "q_1"], ["é", "1.5", "qid:x"], [str(2**63), "1"]])
def test_other_qids_are_strings(tmp_path, qids):
    text = "".join(f"0 qid:{qid} 1:1\n" for qid in qids).encode()
    groups = read_letor(save(tmp_path / "qids.txt", text)).groups
    assert groups.dtype.kind == "U"
    assert groups.tolist() == qids


@pytest.mark.parametrize(
    "data, side",
    [
        ("a.train", "a.train.query"),
        ("a.train", "a.train.group"),
        ("a.train.gz", "a.train.query"),
        ("a.train.gz", "a.train.query.gz"),
    ],
)
def test_group_sizes_are_found_next_to_the_data(tmp_path, data, side):
    path = save(tmp_path / data, b"1 1:2\n0 1:3\n1 1:4\n")
    save(tmp_path / side, gzip.compress(b"1\n2\n") if side.endswith("gz") else b"1\r\n\n2")
    assert read_letor(path).groups.tolist() == [0, 1, 1]
    assert read_letor(path, group_sizes=None).groups is None
    assert read_letor(path, group_sizes=tmp_path / side).groups.tolist() == [0, 1, 1]


def test_qids_win_over_a_side_file_that_nobody_named(tmp_path):
    path = save(tmp_path / "toy.txt", TOY)
    side = save(tmp_path / "toy.txt.query", b"99\n")
    assert read_letor(path).groups.tolist() == TOY_GROUPS
    with pytest.raises(ValueError, match="has qids and group_sizes is given too; pass group_sizes"):
        read_letor(path, group_sizes=side)


# Several files ----------------------------------------------------------------------------------


def test_several_files_are_read_as_one(tmp_path):
    first = save(tmp_path / "S1.txt", b"1 qid:1 1:1 # a\n0 qid:2 1:2 # b\n")
    second = save(tmp_path / "S2.txt.gz", gzip.compress(b"2 qid:2 3:1 # c\n"))
    data = read_letor([first, str(second)], ids=True, sparse=False)
    assert_array_equal(data.X, [[1, 0, 0], [2, 0, 0], [0, 0, 1]])
    assert_array_equal(data.y, [1, 0, 2])
    assert data.groups.tolist() == [1, 2, 2]  # qid 2 of both files is one group
    assert data.ids.tolist() == ["a", "b", "c"]


def test_group_sizes_of_several_files_count_on(tmp_path):
    paths = [save(tmp_path / name, b"1 1:2\n0 1:3\n") for name in ("a", "b")]
    sides = [save(tmp_path / "a.query", b"2\n"), save(tmp_path / "b.query", b"1\n1\n")]
    assert read_letor(paths).groups.tolist() == [0, 0, 1, 2]
    assert read_letor(paths, group_sizes=sides[::-1]).groups.tolist() == [0, 1, 2, 2]
    with pytest.raises(ValueError, match="names 1 files but there are 2 data files"):
        read_letor(paths, group_sizes=sides[0])


# Arguments --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "options, message",
    [
        ({"dtype": int}, "dtype is int64; pass"),
        ({"sparse": "yes"}, "sparse is 'yes'; pass"),
        ({"n_features": 0}, "n_features=0"),
    ],
)
def test_bad_options(tmp_path, options, message):
    with pytest.raises(ValueError, match=message):
        read_letor(save(tmp_path / "toy.txt", TOY), **options)


def test_bad_paths(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"nowhere\.txt"):
        read_letor(tmp_path / "nowhere.txt")
    with pytest.raises(IsADirectoryError):
        read_letor(tmp_path)
    with pytest.raises(ValueError, match="empty list"):
        read_letor([])
    with (
        open(save(tmp_path / "toy.txt", TOY)) as stream,
        pytest.raises(TypeError, match="open file"),
    ):
        read_letor(stream)


def test_modules_do_not_import_scipy_or_scikit_learn_at_the_top():
    """Importing the reader is cheap: the heavy packages come when a file is read."""
    code = (
        "import sys, types, importlib.util, pathlib\n"
        "root = pathlib.Path(importlib.util.find_spec('rankwise').submodule_search_locations[0])\n"
        "package = types.ModuleType('rankwise'); package.__path__ = [str(root)]\n"
        "sys.modules['rankwise'] = package  # without what rankwise/__init__.py imports\n"
        "import rankwise.datasets\n"
        "print(*sorted({'scipy', 'sklearn'} & set(sys.modules)))"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == ""
