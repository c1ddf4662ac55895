"""Every way a ranking file can be wrong: the message names file, line, problem and remedy."""

import gzip
import lzma
import re

import pytest

from rankwise.datasets import read_group_sizes, read_letor
from rankwise.errors import LetorFormatError

GOOD = b"2 qid:1 1:0.5 2:1 # first\n# comment\n\n0 qid:1 2:0.25\n"  # four lines, two rows


def refused(path, content, line, *words, **options):
    """Assert that the file is refused at the line, in words that match all the patterns."""
    path.write_bytes(content)
    with pytest.raises(LetorFormatError) as caught:
        read_letor(path, **options)
    assert caught.value.path == str(path)
    assert caught.value.line == line
    message = str(caught.value)
    assert message.startswith(str(path) if line is None else f"{path}:{line}: ")
    for word in words:
        assert re.search(word, message), message
    return message


BAD_ROWS = {
    "word as label": b"good qid:1 1:1",
    "nan label": b"nan qid:1 1:1",
    "overflowing label": b"1e999 qid:1 1:1",
    "no label": b"qid:1 1:1",
    "label only of features": b"1:1 2:2",
    "missing qid": b"1 1:1",
    "empty qid": b"1 qid: 1:1",
    "undecodable qid": b"1 qid:\xff 1:1",
    "endless qid": b"1 qid:" + b"x" * 300,
    "capital qid": b"1 QID:1 1:1",
    "qid too late": b"1 1:1 qid:1",
    "second qid": b"1 qid:1 qid:2 1:1",
    "NULL value": b"1 qid:1 1:NULL",
    "no value": b"1 qid:1 1: 2:1",
    "nan value": b"1 qid:1 2:nan",
    "overflowing value": b"1 qid:1 2:1e999",
    "two colons": b"1 qid:1 2:3:4",
    "underscore in value": b"1 qid:1 2:1_0",
    "number without feature": b"1 qid:1 0.5",
    "word as feature": b"1 qid:1 age:3",
    "no feature": b"1 qid:1 :3",
    "negative feature": b"1 qid:1 -1:3",
    "huge feature": b"1 qid:1 2147483648:3",
    "feature 0": b"1 qid:1 0:3",
    "decreasing features": b"1 qid:1 5:1 3:1",
    "repeated feature": b"1 qid:1 3:1 3:2",
    "old line ends": b"1 qid:1 1:1\r0 qid:1 1:1",
    "zero byte": b"1 qid:1 1:1\x00",
}


@pytest.mark.parametrize("name", BAD_ROWS)
def test_read_letor_names_the_line_of_a_bad_row(tmp_path, name):
    text = GOOD + BAD_ROWS[name] + b"\n" + b"0 qid:1 1:1\n" * 3
    refused(tmp_path / "bad.txt", text, 5)


def test_the_likeliest_mistakes_are_told_with_their_remedy(tmp_path):
    path = tmp_path / "bad.txt"
    refused(path, b"1 qid:1 0:3", 1, "feature id 0", "zero_based=True")
    refused(path, b"1 qid:1 1:NULL", 1, "got '1:NULL'", "finite numbers", "left out")
    refused(path, b"1 qid:1 5:1 3:1", 1, "expected 'label qid:group feature:value", "increasing")
    refused(path, GOOD + b"1 1:1", 5, "has no qid, but the first row has one")


def test_qid_where_the_first_row_has_none(tmp_path):
    refused(tmp_path / "bad.txt", b"1 1:1\n0 qid:1 1:1\n", 2, "has a qid", "has none")


def test_too_many_features_and_too_large_values(tmp_path):
    text = b"1 qid:1 1:1\n0 qid:1 3:1\n"
    refused(tmp_path / "a.txt", text, 2, "features from 1 to 2", "n_features=", n_features=2)
    refused(tmp_path / "a.txt", text, 2, "from 0 to 2", n_features=3, zero_based=True)
    refused(tmp_path / "a.txt", b"1 qid:1 1:1\n0 qid:1 3:1e39\n", 2, dtype="float32")


@pytest.mark.parametrize(
    "content", [b"", b"\n\n", b"# only a comment\n", gzip.compress(b"", mtime=0)]
)
def test_no_rows(tmp_path, content):
    refused(tmp_path / "empty.txt", content, None, "no rows")


@pytest.mark.parametrize("pack", [gzip.compress, lzma.compress])
def test_truncated_compressed_file(tmp_path, pack):
    whole = pack(b"".join(b"%d qid:1 1:%d\n" % (i % 3, i * 7919) for i in range(1000)))
    path = tmp_path / "cut.gz"
    path.write_bytes(whole[: len(whole) // 2])
    with pytest.raises(LetorFormatError, match="damaged"):
        read_letor(path)


def test_damaged_gzip(tmp_path):
    whole = bytearray(gzip.compress(GOOD))
    whole[-6] ^= 255  # the check sum
    refused(tmp_path / "damaged.gz", bytes(whole), None, "damaged", "again")


@pytest.mark.parametrize(
    "content",
    [
        b"\x89HDF\r\0",
        "1 qid:1 1:1\n".encode("utf-16"),
        b"\xff\xfe\xfd",
        b"BZhello",
    ],
)
def test_not_a_text_file(tmp_path, content):
    refused(tmp_path / "junk", content, 1)


def test_error_in_the_second_of_two_files(tmp_path):
    good, bad = tmp_path / "good.txt", tmp_path / "bad.txt.gz"
    good.write_bytes(GOOD)
    bad.write_bytes(gzip.compress(b"#\n1 qid:1 1:1\n1 qid:1 x:1\n", mtime=0))
    with pytest.raises(LetorFormatError) as caught:
        read_letor([good, bad])
    assert (caught.value.path, caught.value.line) == (str(bad), 3)
    bad.write_bytes(b"1 1:1\n")
    with pytest.raises(LetorFormatError, match=r"no qid.*has one") as caught:
        read_letor([good, bad])
    assert (caught.value.path, caught.value.line) == (str(bad), 1)
    bad.write_bytes(b"")
    with pytest.raises(LetorFormatError, match=r"bad\.txt\.gz: the file has no rows"):
        read_letor([good, bad])


# Group sizes ------------------------------------------------------------------------------------


@pytest.mark.parametrize("group_sizes", ["auto", "named"])
def test_group_sizes_that_do_not_fit_name_both_numbers(tmp_path, group_sizes):
    path, side = tmp_path / "a.txt", tmp_path / "a.txt.query"
    side.write_bytes(b"2\n2\n")
    path.write_bytes(b"1 1:1\n" * 3)
    with pytest.raises(LetorFormatError, match=r"sizes sum to 4 but .*a\.txt has 3 rows") as caught:
        read_letor(path, group_sizes=side if group_sizes == "named" else "auto")
    assert caught.value.path == str(side)


def test_side_file_of_one_of_two_data_files(tmp_path):
    for name in ("a", "b"):
        (tmp_path / name).write_bytes(b"1 1:1\n")
    (tmp_path / "a.query").write_bytes(b"1\n")
    with pytest.raises(LetorFormatError, match=r"no file of group sizes.*None") as caught:
        read_letor([tmp_path / "a", tmp_path / "b"])
    assert caught.value.path == str(tmp_path / "b")


@pytest.mark.parametrize(
    "content, line, words",
    [
        (b"2\nx\n", 2, "got 'x', expected the number of rows"),
        (b"2\n-1\n", 2, "got '-1'"),
        (b"2\n\n1.5\n", 3, "got '1.5'"),
        (b"2 3\n", 1, "got '2 3'"),
        (b"1\n" + b"9" * 5000 + b"\n", 2, "got '9"),
        (b"9223372036854775807\n9223372036854775807\n4\n", 1, "got '9"),
        (b"", None, "no group sizes"),
        (gzip.compress(b"12\n" * 99, mtime=0)[:-9], 1, "damaged"),
    ],
)
def test_bad_group_sizes(tmp_path, content, line, words):
    path = tmp_path / "a.query"
    path.write_bytes(content)
    with pytest.raises(LetorFormatError, match=words) as caught:
        read_group_sizes(path)
    assert caught.value.path == str(path)
    if line is not None and "damaged" not in words:
        assert caught.value.line == line


def test_missing_group_sizes(tmp_path):
    (tmp_path / "a.txt").write_bytes(b"1 1:1\n")
    with pytest.raises(FileNotFoundError, match=r"nowhere\.query"):
        read_letor(tmp_path / "a.txt", group_sizes=tmp_path / "nowhere.query")
