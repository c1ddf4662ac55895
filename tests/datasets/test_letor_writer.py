"""write_letor: exact round trips, nothing half-written."""

import builtins
import gzip
import os
import stat

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from numpy.testing import assert_array_equal

from rankwise.datasets import files, read_letor, write_letor

X = np.array([[0.1, 0.0, 1e-320], [-0.0, 2.0, 1 / 3], [1e308, -5e-324, np.pi]])
Y = np.array([0.3, 2.0, -1.0])
BIG = [2**53 + 1, 2**53 + 2, 2**53 + 1]

numbers = st.floats(allow_nan=False, allow_infinity=False)
words = st.text(st.characters(exclude_categories=["Z", "C"], exclude_characters="#"), min_size=1)
lines = st.text(st.characters(exclude_categories=["Cs", "Cc"])).map(str.strip)
quick = settings(
    max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)


@pytest.mark.parametrize("name", ["a.txt", "a.txt.gz", "a.bz2", "a.XZ"])
def test_round_trip_is_exact(tmp_path, name):
    path = tmp_path / name
    write_letor(path, X, Y, BIG, ids=["docid = 1", "", "a # b"])
    data = read_letor(path, ids=True)
    assert_array_equal(data.X, X)  # subnormal numbers too
    assert_array_equal(data.y, Y)
    assert data.groups.dtype == np.int64
    assert data.groups.tolist() == BIG
    assert data.ids.tolist() == ["docid = 1", "", "a # b"]


@quick
@given(
    data=st.integers(1, 6).flatmap(
        lambda n: st.tuples(
            arrays(np.float64, (n, 3), elements=numbers),
            arrays(np.float64, n, elements=numbers),
            st.one_of(
                st.lists(st.integers(-(2**63), 2**63 - 1), min_size=n, max_size=n),
                st.lists(words.map(lambda word: f"q{word}"), min_size=n, max_size=n),
            ),
            st.lists(lines, min_size=n, max_size=n),
        )
    ),
    packed=st.booleans(),
)
def test_any_data_round_trip(tmp_path, data, packed):
    features, labels, groups, ids = data
    path = tmp_path / ("a.gz" if packed else "a.txt")
    write_letor(path, features, labels, groups, ids=ids)
    back = read_letor(path, ids=True)
    assert_array_equal(back.X, features)
    assert_array_equal(back.y, labels)
    assert back.groups.tolist() == groups
    assert back.ids.tolist() == ids


@quick
@given(
    dense=arrays(np.float64, (4, 5), elements=st.sampled_from([0.0, 0.0, 0.0, 1.5, -2.0])),
    kind=st.sampled_from([sp.csr_matrix, sp.csc_matrix, sp.coo_matrix, sp.csr_array]),
)
def test_sparse_round_trip_keeps_the_shape(tmp_path, dense, kind):
    path = tmp_path / "sparse.txt"
    write_letor(path, kind(dense), np.arange(4))
    back = read_letor(path, sparse=True).X
    assert back.shape == dense.shape
    assert_array_equal(back.toarray(), dense)
    assert back.nnz <= np.count_nonzero(dense) + 1


def test_sparse_matrix_with_unsorted_and_repeated_entries(tmp_path):
    matrix = sp.csr_matrix((np.array([1.0, 2, 3]), np.array([2, 0, 2]), np.array([0, 3])), (1, 3))
    write_letor(tmp_path / "a.txt", matrix, [1])
    assert (tmp_path / "a.txt").read_text() == "1 1:2 3:4\n"
    assert matrix.nnz == 3  # the caller's matrix is as it was


def test_text_of_a_file(tmp_path):
    path = tmp_path / "a.txt"
    write_letor(path, [[1, 0.5], [0, 1e-7]], [2, 0.25], ["b", "a"], ids=[None, 17])
    assert path.read_text() == "2 qid:b 1:1 2:0.5\n0.25 qid:a 1:0 2:1e-07 # 17\n"
    write_letor(path, sp.csr_matrix([[1, 0, 0], [0, 0, 0]]), [2, 1])
    assert path.read_text() == "2 1:1 3:0\n1\n"


def test_gzip_bytes_do_not_depend_on_time_or_name(tmp_path):
    write_letor(tmp_path / "a.gz", X, Y)
    write_letor(tmp_path / "b.gz", X, Y)
    assert (tmp_path / "a.gz").read_bytes() == (tmp_path / "b.gz").read_bytes()
    assert gzip.decompress((tmp_path / "a.gz").read_bytes()).count(b"\n") == 3


# Group labels -----------------------------------------------------------------------------------


def qids_of(path):
    return [line.split()[1] for line in path.read_text().splitlines()]


@pytest.mark.parametrize(
    "groups, qids",
    [
        ([3, -1, 3], ["qid:3", "qid:-1", "qid:3"]),
        ([3.0, 1.0, 3.0], ["qid:3", "qid:1", "qid:3"]),
        ([True, False, True], ["qid:1", "qid:0", "qid:1"]),
        (np.array([2**64 - 1, 1, 2], dtype=np.uint64), [f"qid:{2**64 - 1}", "qid:1", "qid:2"]),
        (["b-1", "é", "b-1"], ["qid:b-1", "qid:é", "qid:b-1"]),
    ],
)
def test_labels_that_are_written_as_they_are(tmp_path, groups, qids):
    write_letor(tmp_path / "a.txt", X, Y, groups)
    assert qids_of(tmp_path / "a.txt") == qids


@pytest.mark.parametrize(
    "groups",
    [
        ["a b", "c", "c"],
        ["x" * 300, "c", "c"],
        [0.5, 1, 1],
        np.array(["2020-01-01", "2020-01-02", "2020-01-02"], dtype="datetime64[D]"),
    ],
)
def test_labels_that_need_numbers(tmp_path, groups):
    with pytest.raises(ValueError, match=r"group label .* cannot be written"):
        write_letor(tmp_path / "a.txt", X, Y, groups)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("groups", [["1", "01", "2"], [1, "1", "2"]])
def test_labels_that_would_be_merged(tmp_path, groups):
    with pytest.raises(ValueError, match=r"group labels"):
        write_letor(tmp_path / "a.txt", X, Y, groups)


# Refused data -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "arguments, options, message",
    [
        (([[1.0], [np.nan]], [1, 2]), {}, "Input X contains NaN"),
        ((sp.csr_matrix([[0.0], [0], [np.inf]]), [1, 2, 3]), {}, "Input X contains infinity"),
        (([[1.0], [2.0]], [np.nan, 2]), {}, "Input y contains NaN"),
        (([[1.0], [2.0]], [1]), {}, "inconsistent numbers of samples"),
        (([[1.0], [2.0]], [1, 2], [1]), {}, "groups has 1 entries but there are 2 rows"),
        (([[1.0], [2.0]], [1, 2]), {"ids": ["a"]}, "ids has 1 entries but X has 2 rows"),
        (([[1.0], [2.0]], [1, 2]), {"ids": ["a", "b\nc"]}, r"ids\[1\] is 'b\\nc'"),
        ((np.empty((0, 2)), []), {}, "0 sample"),
    ],
)
def test_write_letor_refuses_data_and_writes_nothing(tmp_path, arguments, options, message):
    with pytest.raises(ValueError, match=message):
        write_letor(tmp_path / "a.txt", *arguments, **options)
    assert not list(tmp_path.iterdir())


# Whole or not at all ----------------------------------------------------------------------------


@pytest.mark.parametrize("name, error", [("a.txt", KeyboardInterrupt), ("a.gz", OSError)])
def test_failure_in_the_middle_leaves_the_old_file(tmp_path, name, error):
    class Bad:
        def __str__(self):
            raise error("in the middle")

    path = tmp_path / name
    path.write_bytes(b"precious")
    with pytest.raises(error, match="in the middle"):
        write_letor(path, np.ones((2000, 20)), np.ones(2000), ids=["fine"] * 1999 + [Bad()])
    assert path.read_bytes() == b"precious"
    assert [file.name for file in tmp_path.iterdir()] == [name]


def test_failure_of_the_last_step_leaves_the_old_file(tmp_path, monkeypatch):
    def fail(source, target):
        raise OSError("disk gone")

    monkeypatch.setattr(os, "replace", fail)
    with pytest.raises(OSError, match="disk gone"):
        write_letor(tmp_path / "a.txt", X, Y)
    assert not list(tmp_path.iterdir())


def test_mode_of_the_old_file_is_kept_and_links_are_followed(tmp_path):
    real, link = tmp_path / "real.txt", tmp_path / "link.txt"
    real.write_text("old")
    real.chmod(0o640)
    link.symlink_to(real)
    write_letor(link, X, Y)
    assert link.is_symlink()
    assert len(read_letor(real).y) == 3
    assert stat.S_IMODE(real.stat().st_mode) == 0o640


def test_missing_directory(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"nowhere does not exist; create it"):
        write_letor(tmp_path / "nowhere" / "a.txt", X, Y)


def test_no_permission(tmp_path, monkeypatch):
    def refuse(*args, **kwargs):
        raise PermissionError(13, "Permission denied")

    path = tmp_path / "a.txt"
    with monkeypatch.context() as patch:
        patch.setattr(builtins, "open", refuse)
        with pytest.raises(PermissionError, match="Permission denied"):
            write_letor(path, X, Y)
    path.write_text("old")
    monkeypatch.setattr(files.os, "access", lambda *args: False)
    with pytest.raises(PermissionError, match="no permission"):
        write_letor(path, X, Y)
    assert path.read_text() == "old"


def test_write_letor_to_a_device_replaces_no_file(tmp_path):
    write_letor("/dev/null", X, Y)
    assert not os.path.isfile("/dev/null")


def test_data_for_lightgbm_come_back_with_their_groups(tmp_path):
    path = tmp_path / "rank.train"
    write_letor(path, X, Y)
    (tmp_path / "rank.train.query").write_text("2\n1\n")
    assert read_letor(path).groups.tolist() == [0, 0, 1]
