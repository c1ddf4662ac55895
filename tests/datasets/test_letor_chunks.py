"""read_letor in chunks: whole groups, the same data and the same errors as in one piece."""

from __future__ import annotations

import gzip

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rankwise import RankRLS
from rankwise.datasets import files, letor_blocks, make_ranking, read_letor, write_letor
from rankwise.datasets.files import line_blocks
from rankwise.errors import LetorFormatError


def save(path, text):
    path.write_bytes(text)
    return path


def stacked(chunks):
    chunks = list(chunks)
    X = np.vstack([np.asarray(c.X.toarray() if hasattr(c.X, "toarray") else c.X) for c in chunks])
    return X, np.concatenate([c.y for c in chunks]), np.concatenate([c.groups for c in chunks])


@pytest.fixture
def file(tmp_path):
    X, y, groups = make_ranking(n_queries=30, n_documents=7, random_state=0)[:3]
    order = np.argsort(groups, kind="stable")
    write_letor(tmp_path / "data.txt", X[order], y[order], groups[order])
    return tmp_path / "data.txt"


def test_training_on_the_stream_is_training_on_the_file(file):
    model = RankRLS(0.1)
    for X, y, groups, *_ in read_letor(file, chunks=40):
        model.partial_fit(X, y, groups, whole_groups=True)
    expected = RankRLS(0.1).fit(*read_letor(file)[:3])
    np.testing.assert_allclose(model.coef_, expected.coef_, rtol=1e-10)


def test_the_file_is_read_as_the_chunks_are_asked_for(tmp_path, monkeypatch):
    lines = []
    path = save(tmp_path / "long.txt", b"".join(b"1 qid:%d 1:1\n" % q for q in range(5000)))

    def noted(*arguments, **options):
        for number, block in line_blocks(*arguments, **options):
            lines.extend(range(number, number + block.count(b"\n")))
            yield number, block

    monkeypatch.setattr(letor_blocks, "line_blocks", noted)
    monkeypatch.setattr(files, "BLOCK_BYTES", 30)
    chunks = read_letor(path, chunks=10, n_features=1)
    assert lines == []
    assert len(next(chunks).y) == 10
    assert 11 <= len(lines) <= 13  # the first row of the next group ends the chunk


def test_columns_are_those_of_the_whole_file_or_as_given(tmp_path):
    path = save(tmp_path / "wide.txt", b"1 qid:1 1:1\n0 qid:1 2:1\n1 qid:2 1:1 5:2 # x\n0 qid:2\n")
    assert [chunk.X.shape for chunk in read_letor(path, chunks=1)] == [(2, 5), (2, 5)]
    assert [chunk.X.shape for chunk in read_letor(path, chunks=1, n_features=7)] == [(2, 7)] * 2
    with pytest.raises(LetorFormatError, match=r"wide\.txt:3: .*from 1 to 4"):
        list(read_letor(path, chunks=1, n_features=4))
    zero = [chunk.X.shape for chunk in read_letor(path, chunks=1, zero_based=True)]
    assert zero == [(2, 6), (2, 6)]


def test_the_first_chunk_decides_whether_all_are_dense(tmp_path):
    rows = b"1 qid:1 1:1 2:1 3:1\n0 qid:2 1:1\n"
    assert all(
        isinstance(chunk.X, np.ndarray)
        for chunk in read_letor(save(tmp_path / "a.txt", rows), chunks=1)
    )
    sparse = read_letor(save(tmp_path / "b.txt", b"0 qid:9\n" + rows), chunks=1)
    assert all(not isinstance(chunk.X, np.ndarray) for chunk in sparse)


def test_comments_and_labels_of_each_chunk(tmp_path):
    text = b"1 qid:1 1:1 # a\n0 qid:q 1:2 # b\n2 qid:q 1:2#c\n"
    one, two = read_letor(save(tmp_path / "a.txt", text), chunks=1, ids=True)
    assert one.ids.tolist() == ["a"]
    assert two.ids.tolist() == ["b", "c"]
    assert one.groups.tolist() == [1]
    assert two.groups.tolist() == ["q", "q"]


def test_a_group_may_go_on_in_the_next_file(tmp_path):
    one = save(tmp_path / "a.txt", b"1 qid:1 1:1\n0 qid:2 1:2\n")
    two = save(tmp_path / "b.txt", b"1 qid:2 1:1\n0 qid:3 1:2\n")
    groups = [chunk.groups.tolist() for chunk in read_letor([one, two], chunks=1)]
    assert groups == [[1], [2, 2], [3]]


def test_a_group_that_comes_back_is_refused_with_its_line(tmp_path):
    path = save(tmp_path / "a.txt", b"1 qid:1 1:1\n0 qid:2 1:2\n\n2 qid:1 1:3\n")
    with pytest.raises(LetorFormatError, match=r"a\.txt:4: the group '1'"):
        list(read_letor(path, chunks=1))
    assert len(read_letor(path).y) == 3


def test_files_without_groups_are_one_list_cut_anywhere(tmp_path):
    path = save(tmp_path / "a.txt", b"".join(b"%d 1:%d\n" % (k % 3, k) for k in range(10)))
    chunks = list(read_letor(path, chunks=4))
    assert [len(chunk.y) for chunk in chunks] == [4, 4, 2]
    assert all(chunk.groups is None for chunk in chunks)


def test_group_sizes_cut_as_qids_do(tmp_path):
    path = save(tmp_path / "a.txt", b"".join(b"%d 1:%d\n" % (k % 3, k) for k in range(9)))
    save(tmp_path / "a.txt.query", b"2\n0\n3\n4\n0\n")
    other = save(tmp_path / "b.txt", b"1 1:1\n0 1:2\n")
    (tmp_path / "b.txt.query").write_text("1\n1\n")
    chunks = list(read_letor([path, other], chunks=3))
    whole = read_letor([path, other])
    np.testing.assert_array_equal(stacked(chunks)[2], whole.groups)
    assert [len(chunk.y) for chunk in chunks] == [5, 4, 2]
    twice = read_letor([other, other], chunks=1)
    assert [chunk.groups.tolist() for chunk in twice] == [[0], [1], [2], [3]]


@pytest.mark.parametrize("sizes, found", [(b"2\n", "more rows"), (b"2\n3\n", "3 rows")])
def test_group_sizes_that_do_not_fit_are_refused(tmp_path, sizes, found):
    path = save(tmp_path / "a.txt", b"1 1:1\n0 1:2\n0 1:2\n")
    save(tmp_path / "a.txt.query", sizes)
    with pytest.raises(LetorFormatError, match=rf"group sizes sum to \d but .*a\.txt has {found}"):
        list(read_letor(path, chunks=1))


@pytest.mark.parametrize(
    "text",
    [
        b"1 qid:1 1:1\n0 qid:1 1:oops\n",
        b"1 qid:1 1:1\n0 1:2\n",
        b"",
    ],
)
def test_errors_are_those_of_reading_the_file_whole(tmp_path, text):
    path = save(tmp_path / "bad.txt", text)
    with pytest.raises(LetorFormatError) as whole:
        read_letor(path)
    with pytest.raises(LetorFormatError) as streamed:
        list(read_letor(path, chunks=1))
    assert streamed.value.line == whole.value.line


def test_a_damaged_archive_is_refused_in_the_middle_of_the_stream(tmp_path, monkeypatch):
    monkeypatch.setattr(files, "BLOCK_BYTES", 10_000)
    rng = np.random.default_rng(0)
    text = b"".join(b"1 qid:%d 1:%.9f\n" % (q, rng.random()) for q in range(5000))
    packed = gzip.compress(text)
    path = save(tmp_path / "cut.gz", packed[: len(packed) // 2])
    chunks = read_letor(path, chunks=100, n_features=1)
    assert len(next(chunks).y) == 100
    with pytest.raises(LetorFormatError, match="damaged"):
        list(chunks)


def test_bad_arguments_are_refused_at_once(file, tmp_path):
    for chunks in (0, -1, 2.5, "many"):
        with pytest.raises(ValueError, match="whole number from 1"):
            read_letor(file, chunks=chunks)
    with pytest.raises(ValueError, match="has qids and group_sizes is given too"):
        next(read_letor(file, chunks=1, group_sizes=file))
    with pytest.raises(FileNotFoundError):
        next(read_letor(tmp_path / "nowhere.txt", chunks=1))


@given(
    sizes=st.lists(st.integers(1, 6), min_size=1, max_size=12),
    n_rows=st.integers(1, 20),
    block=st.integers(1, 60),
)
def test_any_groups_and_chunk_lengths(tmp_path_factory, sizes, n_rows, block):
    path = tmp_path_factory.mktemp("stream") / "a.txt"
    rows = [b"%d qid:%d 1:%d\n" % (k % 2, q, k) for q, n in enumerate(sizes) for k in range(n)]
    path.write_bytes(b"".join(rows))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(files, "BLOCK_BYTES", block)
        chunks = list(read_letor(path, chunks=n_rows))
    for together, expected in zip(stacked(chunks), read_letor(path)[:3], strict=True):
        np.testing.assert_array_equal(together, expected)
    for chunk in chunks:
        assert all((chunk.groups == q).sum() == sizes[q] for q in set(chunk.groups))
        assert n_rows <= len(chunk.y) < n_rows + max(sizes) or chunk is chunks[-1]
