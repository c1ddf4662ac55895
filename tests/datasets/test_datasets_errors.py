"""Every way a ranking file can be wrong: the message names file, line, problem and remedy."""

import bz2
import gzip
import lzma
import re

import pytest

from rankwise.datasets import letor, read_group_sizes, read_letor
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
    "word as label": (b"good qid:1 1:1", "label is 'good'", "expected a number", "label qid:group"),
    "two labels": (b"1,2 qid:1 1:1", "label is '1,2'", "expected a number"),
    "nan label": (b"nan qid:1 1:1", "label is 'nan'", "finite", "Leave out"),
    "infinite label": (b"-inf qid:1 1:1", "label is '-inf'", "finite", "Leave out"),
    "overflowing label": (b"1e999 qid:1 1:1", "label is '1e999'", "number"),
    "underscore in label": (b"1_0 qid:1 1:1", "label is '1_0'"),
    "no label": (b"qid:1 1:1", "starts with 'qid:1'", "a label first"),
    "label only of features": (b"1:1 2:2", "starts with '1:1'", "a label first"),
    "missing qid": (b"1 1:1", "this row has no qid", r"first row \(.*:1\) has one", "every row"),
    "empty qid": (b"1 qid: 1:1", "'qid:' has no group", "qid:7"),
    "blank after qid": (b"1 qid: 7 1:1", "'qid:' has no group", "without a space"),
    "undecodable qid": (b"1 qid:\xff 1:1", r"qid '\\xff' is not text in UTF-8"),
    "endless qid": (b"1 qid:" + b"x" * 300, "has 300 characters, at most 256", "Number the groups"),
    "capital qid": (b"1 QID:1 1:1", "not in its place", "small letters"),
    "qid too late": (b"1 1:1 qid:1", "not in its place", "right after the label"),
    "second qid": (b"1 qid:1 qid:2 1:1", "'qid:2' is not in its place", "once"),
    "qid without colon": (b"1 qid:1 qid7 1:1", "'qid7' is not in its place"),
    "NULL value": (b"1 qid:1 1:NULL", "feature 1 is missing", "'NULL'", "Fill it in", "means 0"),
    "no value": (b"1 qid:1 1: 2:1", "feature 1 is missing"),
    "nan value": (b"1 qid:1 2:nan", "feature 2 is missing", "'nan'"),
    "infinite value": (b"1 qid:1 2:inf", "feature 2 is 'inf'", "finite number"),
    "overflowing value": (b"1 qid:1 2:1e999", "feature 2 is '1e999'", "finite number"),
    "word as value": (b"1 qid:1 2:x", "feature 2 is 'x'", "expected a finite number"),
    "two colons": (b"1 qid:1 2:3:4", "feature 2 is '3:4'"),
    "underscore in value": (b"1 qid:1 2:1_0", "feature 2 is '1_0'"),
    "number without feature": (b"1 qid:1 0.5", "got '0.5'", "expected feature:value"),
    "blank before value": (b"1 qid:1 1: 0.5", "missing|without spaces"),
    "word as feature": (b"1 qid:1 age:3", "feature id 'age' is not a whole number"),
    "no feature": (b"1 qid:1 :3", "feature id '' is not a whole number"),
    "fraction as feature": (b"1 qid:1 1.5:3", "feature id '1.5' is not a whole number"),
    "negative feature": (b"1 qid:1 -1:3", "feature id '-1' is not a whole number"),
    "huge feature": (b"1 qid:1 2147483648:3", "'2147483648'", "to 2147483647"),
    "endless feature": (b"1 qid:1 " + b"9" * 5000 + b":3", "'9{40}...' is not a whole number"),
    "feature 0": (b"1 qid:1 0:3", "feature id 0", "start at 1", "zero_based=True"),
    "decreasing features": (b"1 qid:1 5:1 3:1", "feature 3 comes after feature 5", "Sort"),
    "repeated feature": (b"1 qid:1 3:1 3:2", "feature 3 is given twice", "Keep one"),
    "old line ends": (b"1 qid:1 1:1\r0 qid:1 1:1", "got '0'"),
    "letters beyond ASCII": (b"1 qid:1 1:\xd9\xa3", r"feature 1 is '\\xd9\\xa3'"),
    "zero byte": (b"1 qid:1 1:1\x00", "not a text file", "UTF-8"),
}


@pytest.mark.parametrize("name", BAD_ROWS)
@pytest.mark.parametrize("pack", [bytes, gzip.compress], ids=["plain", "gzip"])
def test_bad_row(tmp_path, name, pack):
    row, *words = BAD_ROWS[name]
    text = GOOD + row + b"\n" + b"0 qid:1 1:1\n" * 3
    refused(tmp_path / "bad.txt", pack(text), 5, *words)


@pytest.mark.parametrize("name", [name for name in BAD_ROWS if name != "missing qid"])
def test_bad_first_row(tmp_path, name):
    row, *words = BAD_ROWS[name]
    refused(tmp_path / "bad.txt", row, 1, *words)


def test_line_number_beyond_the_first_block(tmp_path, monkeypatch):
    monkeypatch.setattr(letor, "BLOCK_BYTES", 100)
    text = b"1 qid:1 1:1 2:2\n" * 50 + b"1 qid:1 1:oops\n" + b"1 qid:1 1:1\n" * 50
    refused(tmp_path / "long.txt", text, 51, "feature 1 is 'oops'")


def test_qid_where_the_first_row_has_none(tmp_path):
    refused(tmp_path / "bad.txt", b"1 1:1\n0 qid:1 1:1\n", 2, "has a qid", ":1\\) has none")


def test_too_many_features(tmp_path):
    text = b"1 qid:1 1:1\n0 qid:1 3:1\n"
    refused(tmp_path / "a.txt", text, 2, "feature 3 does not fit into n_features=2", n_features=2)
    refused(
        tmp_path / "a.txt", text, 2, "fit into n_features=3", "None", n_features=3, zero_based=True
    )


def test_value_too_large_for_float32(tmp_path):
    text = b"1 qid:1 1:1\n0 qid:1 3:1e39\n"
    refused(tmp_path / "a.txt", text, 2, "'1e39', too large for float32", dtype="float32")


@pytest.mark.parametrize(
    "content", [b"", b"\n\n", b"# only a comment\n", gzip.compress(b"", mtime=0)]
)
def test_no_rows(tmp_path, content):
    refused(tmp_path / "empty.txt", content, None, "no rows")


@pytest.mark.parametrize("pack", [gzip.compress, bz2.compress, lzma.compress])
def test_truncated_compressed_file(tmp_path, pack):
    whole = pack(b"".join(b"%d qid:1 1:%d\n" % (i % 3, i * 7919) for i in range(1000)))
    path = tmp_path / "cut.gz"
    path.write_bytes(whole[: len(whole) // 2])
    with pytest.raises(LetorFormatError, match="damaged or cut short") as caught:
        read_letor(path)
    assert 1 <= caught.value.line <= 1000


def test_damaged_gzip(tmp_path):
    whole = bytearray(gzip.compress(GOOD))
    whole[-6] ^= 255  # the check sum
    refused(tmp_path / "damaged.gz", bytes(whole), 5, "damaged", "again")


@pytest.mark.parametrize(
    "content",
    [
        b"\x89HDF\r\0",
        b"PK\x03\x04\x14\0",
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
    with pytest.raises(LetorFormatError, match=r"no qid.*good\.txt:1\) has one") as caught:
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
    with pytest.raises(LetorFormatError, match=r"no file of group sizes.*a\.query.*None") as caught:
        read_letor([tmp_path / "a", tmp_path / "b"])
    assert caught.value.path == str(tmp_path / "b")


@pytest.mark.parametrize(
    "content, line, words",
    [
        (b"2\nx\n", 2, "got 'x', expected the number of rows"),
        (b"2\n-1\n", 2, "got '-1'"),
        (b"2\n\n1.5\n", 3, "got '1.5'"),
        (b"2 3\n", 1, "got '2 3'.*one whole number a line"),
        (b"1\n" + b"9" * 5000 + b"\n", 2, "no file has that many rows"),
        (b"9223372036854775807\n9223372036854775807\n4\n", 1, "no file has that many rows"),
        (b"", None, "no group sizes"),
        (gzip.compress(b"12\n" * 99, mtime=0)[:-9], 1, "damaged"),
        (b"1\n\0", 2, "not a text file"),
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
