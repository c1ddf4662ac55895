"""read_pairs: comparisons from CSV and TSV files."""

import gzip
import re

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from rankwise.datasets import PairData, read_pairs
from rankwise.errors import LetorFormatError

GAMES = "winner,loser,magnitude,weight\nAnn,Bob,2,1\nCleo,Ann,0,0.5\nAnn,Bob,1.5,3\n"


def save(path, content):
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


def check_games(data):
    assert isinstance(data, PairData)
    assert data.items.tolist() == ["Ann", "Bob", "Cleo"]
    assert (data.n_items, data.n_pairs) == (3, 3)
    assert_array_equal(data.winner, [0, 2, 0])
    assert_array_equal(data.loser, [1, 0, 1])
    assert_array_equal(data.magnitude, [2, 0, 1.5])
    assert_array_equal(data.weight, [1, 0.5, 3])
    assert data.winner.dtype == data.loser.dtype == np.intp


@pytest.mark.parametrize("delimiter", [",", "\t", ";", "|"])
def test_delimiters_are_found(tmp_path, delimiter):
    check_games(read_pairs(save(tmp_path / "games", GAMES.replace(",", delimiter))))


@pytest.mark.parametrize(
    "change",
    [
        lambda text: text.replace("\n", "\r\n").encode(),
        lambda text: b"\xef\xbb\xbf" + text.encode(),
        lambda text: gzip.compress(text.encode()),
        lambda text: text.replace(",", " , ").encode(),
        lambda text: text.replace("Ann", '"Ann"').encode(),
        lambda text: b"\n\n" + text.replace("\n", "\n\n").encode(),
        lambda text: text.rstrip("\n").encode(),
    ],
    ids=["crlf", "bom", "gzip", "blanks", "quotes", "empty lines", "no newline at end"],
)
def test_harmless_variations(tmp_path, change):
    check_games(read_pairs(save(tmp_path / "games.csv", change(GAMES))))


def test_own_delimiter(tmp_path):
    path = save(tmp_path / "games.txt", GAMES.replace(",", "~"))
    check_games(read_pairs(path, delimiter="~"))
    with pytest.raises(ValueError, match="single character"):
        read_pairs(path, delimiter="~~")


def test_magnitude_and_weight_are_one_unless_the_file_says(tmp_path):
    data = read_pairs(save(tmp_path / "a.csv", "winner,loser\nb,a\n"))
    assert_array_equal(data.magnitude, [1])
    assert_array_equal(data.weight, [1])


@pytest.mark.parametrize(
    "names",
    [{"winner": "w", "loser": "l", "magnitude": "by"}, {"winner": 1, "loser": 2, "magnitude": 3}],
)
def test_columns_by_name_and_by_position(tmp_path, names):
    path = save(tmp_path / "a.csv", "date,w,l,by\n2020-01-01,b,a,7\n")
    data = read_pairs(path, **names)
    assert data.items[data.winner].tolist() == ["b"]
    assert_array_equal(data.magnitude, [7])


def test_whole_numbers_as_labels_are_sorted_as_numbers(tmp_path):
    data = read_pairs(save(tmp_path / "a.csv", "winner,loser\n10,9\n9007199254740993,-2\n"))
    assert data.items.dtype == np.int64
    assert data.items.tolist() == [-2, 9, 10, 2**53 + 1]
    assert_array_equal(data.winner, [2, 3])


@pytest.mark.parametrize("label", ["007", "+7", "7.0", "x7", str(2**63)])
def test_one_other_label_makes_all_of_them_strings(tmp_path, label):
    data = read_pairs(save(tmp_path / "a.csv", f"winner,loser\n7,{label}\n10,9\n"))
    assert data.items.dtype.kind == "U"
    assert set(data.items.tolist()) == {"7", "10", "9", label}


def test_record_is_frozen(tmp_path):
    data = read_pairs(save(tmp_path / "a.csv", GAMES))
    with pytest.raises(AttributeError):
        data.winner = None


def test_graph(tmp_path):
    graphs = pytest.importorskip("rankwise.graphs")
    graph = read_pairs(save(tmp_path / "a.csv", GAMES)).graph()
    assert isinstance(graph, graphs.PairGraph)
    assert (graph.n_items, graph.n_pairs, graph.total_weight) == (3, 3, 4.5)
    assert_array_equal(graph.divergence, [2 + 4.5, -2 - 4.5, 0])


# Errors -----------------------------------------------------------------------------------------

HEADER = "winner,loser,magnitude,weight\n"


@pytest.mark.parametrize(
    "row, words",
    [
        ("a,b,1", "the row has 3 columns, the header has 4.*Quote"),
        ("a,b,1,1,1", "the row has 5 columns, the header has 4"),
        ("a,b,x,1", "magnitude is 'x', expected a finite number"),
        ("a,b,,1", "magnitude is '', expected a finite number"),
        ("a,b,nan,1", "magnitude is 'nan', expected a finite number"),
        ("a,b,1_0,1", "magnitude is '1_0', expected a finite number"),
        ("a,b,-2,1", "magnitude is -2, expected 0 .*Swap winner and loser"),
        ("a,b,1,inf", "weight is 'inf', expected a finite number"),
        ("a,b,1,0", "weight is 0, expected more than 0.*Leave out"),
        ("a,b,1,-1", "weight is -1, expected more than 0"),
        (",b,1,1", "the winner is empty"),
        ("a, ,1,1", "the loser is empty.*leave out the row"),
        ("a,a,1,1", "'a' is compared with itself"),
        ("a, a,1,1", "'a' is compared with itself"),
        (f"{'x' * 300},b,1,1", "has 300 characters, at most 256"),
        ('a,"b"c,1,1', "quotation marks"),
        ('a,"b,1,1', "quotation marks"),
        ("a\rb,b,1,1", "line ends"),
        (b"caf\xe9,b,1,1", r"'caf\\xe9,b,1,1' is not text in UTF-8"),
        ("a\0,b,1,1", "not a text file"),
        (f'a,"{"b" * 140_000}",1,1', "field larger than field limit"),
    ],
)
def test_bad_row(tmp_path, row, words):
    row = row if isinstance(row, bytes) else row.encode()
    good = b'\nA,"two\nlines",1,1\nA,B,1,1\n'
    path = save(tmp_path / "bad.csv", HEADER.encode() + good + row + b"\nA,B,1,1\n")
    with pytest.raises(LetorFormatError) as caught:
        read_pairs(path)
    assert (caught.value.path, caught.value.line) == (str(path), 6)
    assert str(caught.value).startswith(f"{path}:6: ")
    assert re.search(words, str(caught.value)), str(caught.value)


@pytest.mark.parametrize(
    "header, options, words",
    [
        ("a,b\n", {}, "no column 'winner' for the winner.*'a', 'b'; pass winner="),
        ("winner,b\n", {}, "no column 'loser' for the loser.*'winner', 'b'"),
        ("winner\tlooser\n", {}, "no column 'loser' for the loser.*'winner', 'looser'"),
        ("winner,loser\n", {"magnitude": "by"}, "no column 'by' for the magnitude"),
        ("winner,loser\n", {"weight": 2}, "no column 2 for the weight"),
        ("winner,loser\n", {"weight": -1}, "no column -1 for the weight"),
        ("winner,loser,loser\n", {}, "'loser' is there twice"),
        ("winner,loser\n", {"delimiter": ";"}, "columns are 'winner,loser'.*delimiter="),
        ('"winner,loser\n', {}, "cannot read the column names"),
    ],
)
def test_bad_header(tmp_path, header, options, words):
    path = save(tmp_path / "bad.csv", f"\n{header}a,b\n")
    with pytest.raises(LetorFormatError) as caught:
        read_pairs(path, **options)
    assert (caught.value.path, caught.value.line) == (str(path), 2)
    assert re.search(words, str(caught.value)), str(caught.value)


@pytest.mark.parametrize(
    "content, words",
    [("", "is empty"), ("\n \n", "is empty"), ("winner,loser\n", "no comparisons")],
)
def test_empty_file(tmp_path, content, words):
    with pytest.raises(LetorFormatError, match=words):
        read_pairs(save(tmp_path / "empty.csv", content))


def test_truncated_gzip(tmp_path):
    path = save(tmp_path / "cut.csv.gz", gzip.compress(GAMES.encode())[:-20])
    with pytest.raises(LetorFormatError, match="damaged or cut short"):
        read_pairs(path)


def test_missing_file(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"nowhere\.csv"):
        read_pairs(tmp_path / "nowhere.csv")
