"""read_pairs: comparisons from CSV and TSV files."""

import re

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from rankwise.datasets import PairData, read_pairs
from rankwise.errors import TableFormatError

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


@pytest.mark.parametrize("label", ["007", "7.0", str(2**63)])
def test_one_other_label_makes_all_of_them_strings(tmp_path, label):
    data = read_pairs(save(tmp_path / "a.csv", f"winner,loser\n7,{label}\n10,9\n"))
    assert data.items.dtype.kind == "U"
    assert set(data.items.tolist()) == {"7", "10", "9", label}


def test_the_graph_of_pair_data_has_its_items_pairs_and_weights(tmp_path):
    graphs = pytest.importorskip("rankwise.graphs")
    graph = read_pairs(save(tmp_path / "a.csv", GAMES)).graph()
    assert isinstance(graph, graphs.PairGraph)
    assert (graph.n_items, graph.n_pairs, graph.total_weight) == (3, 3, 4.5)
    assert_array_equal(graph.divergence, [2 + 4.5, -2 - 4.5, 0])


# Ties, groups, sides ----------------------------------------------------------------------------


@pytest.mark.parametrize("column, options", [("tie", {}), ("drawn", {"tie": "drawn"})])
def test_a_tie_is_magnitude_zero(tmp_path, column, options):
    words = ["1", "true", "YES", "y", "T", "Tie", "draw", " 1 "]
    others = ["0", "false", "No", "n", "F", "", " "]
    rows = "".join(f"a,b,{word}\n" for word in words + others)
    data = read_pairs(save(tmp_path / "a.csv", f"winner,loser,{column}\n{rows}"), **options)
    assert_array_equal(data.magnitude, [0] * len(words) + [1] * len(others))


def test_groups_of_comparisons(tmp_path):
    assert read_pairs(save(tmp_path / "a.csv", GAMES)).groups is None
    text = 'winner,loser,group,judge\na,b,7,x\na,c,10,"y, z"\nc,b,7,x\n'
    path = save(tmp_path / "a.csv", text)
    groups = read_pairs(path).groups
    assert groups.dtype == np.int64
    assert groups.tolist() == [7, 10, 7]
    assert read_pairs(path, group="judge").groups.tolist() == ["x", "y, z", "x"]


BATTLES = "model_a,model_b,winner,n\nowl,jay,model_a,1\njay,owl,Model_B,2\nowl,crow,crow,3\n"


@pytest.mark.parametrize("sides", [("model_a", "model_b"), (0, 1), ["model_b", "model_a"]])
def test_sides_and_the_name_of_the_winning_one(tmp_path, sides):
    data = read_pairs(save(tmp_path / "a.csv", BATTLES), sides=sides, weight="n")
    assert data.items[data.winner].tolist() == ["owl", "owl", "crow"]
    assert data.items[data.loser].tolist() == ["jay", "jay", "owl"]
    assert_array_equal(data.magnitude, [1, 1, 1])
    assert_array_equal(data.weight, [1, 2, 3])


def test_an_item_may_have_the_name_of_its_own_side_only(tmp_path):
    def read(row):
        path = save(tmp_path / "a.csv", f"left,right,winner\nc,d,tie\n{row}\n")
        return read_pairs(path, sides=("left", "right"))

    data = read("left,b,left")
    assert (data.items[data.winner[1]], data.magnitude[1]) == ("left", 1)
    for row in ("a,left,left", "tie,b,tie"):
        with pytest.raises(TableFormatError, match=r"a\.csv:3: .*two ways"):
            read(row)


def test_bad_sides(tmp_path):
    path = save(tmp_path / "a.csv", BATTLES)
    for sides in ("model_a", ("model_a",), ("model_a", 0)):
        with pytest.raises(ValueError, match=r"sides=.*two"):
            read_pairs(path, sides=sides)
    with pytest.raises(TableFormatError, match="no column 'gone' for the sides"):
        read_pairs(path, sides=("model_a", "gone"))
    with pytest.raises(
        TableFormatError, match=r"no column 'loser'.*Pass sides=.*which of two sides"
    ):
        read_pairs(save(tmp_path / "b.csv", BATTLES.replace("model_a", "one")))


def test_parquet(tmp_path):
    pyarrow = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    columns = {
        "winner": ["Ann", "Cleo", "Ann"],
        "loser": ["Bob", "Ann", "Bob"],
        "magnitude": [2, 0, 1.5],
        "weight": [1, 0.5, 3],
        "tie": [False, True, None],
        "group": [1, 2, 1],
    }
    path = tmp_path / "games.parquet"
    parquet.write_table(pyarrow.table(columns), path)
    data = read_pairs(path)
    check_games(data)
    assert data.groups.tolist() == [1, 2, 1]
    with pytest.raises(TableFormatError, match="no column 'x' for the winner"):
        read_pairs(path, winner="x")
    parquet.write_table(pyarrow.table({**columns, "loser": ["Bob", None, "Bob"]}), path)
    with pytest.warns(UserWarning, match="1 of 3 rows are dropped: 1 without loser"):
        assert read_pairs(path).n_pairs == 2
    path.write_bytes(path.read_bytes()[:-3])
    with pytest.raises(TableFormatError, match="damaged"):
        read_pairs(path)


# Errors -----------------------------------------------------------------------------------------

ROWS = 'winner,loser,magnitude,weight,tie\n\nA,"two\nlines",1,1,0\n{}\nA,B,1,1,0\n'
BATTLE = "model_a,model_b,winner\nowl,jay,tie\n{}\n"


@pytest.mark.parametrize(
    "text, row, line, words",
    [
        (ROWS, "a,b,x,1,", 5, "the number, column 'magnitude', is 'x', expected a finite number"),
        (ROWS, "a,b,-2,1,", 5, "magnitude is -2, expected 0 .*Swap winner and loser"),
        (ROWS, "a,b,1,inf,", 5, "column 'weight', is 'inf', expected a finite number"),
        (ROWS, "a,b,1,0,", 5, "weight is 0, expected more than 0.*Leave out"),
        (ROWS, "a,a,1,1,", 5, "'a' is compared with itself"),
        (ROWS, 'a,"b,1,1,', 5, "quotation marks"),
        (ROWS, "a,b,1,1,maybe", 5, "the tie is 'maybe', expected 1 or 0"),
        (ROWS, "a,b,1,1,2", 5, "the tie is '2'"),
        (ROWS, "a,b,2,1,yes", 5, "the row is a tie, but its magnitude is 2"),
        (BATTLE, "owl,jay,raven", 3, "is 'raven' .*, expected 'model_a', 'model_b'.* or 'tie'"),
        (BATTLE, "owl,owl,tie", 3, "'owl' is compared with itself"),
        ("\n{}\na,b\n", "a,b", 2, "no column 'winner' for the winner.*'a', 'b'. Pass winner="),
        ("\n{}\na,b\n", "winner,b", 2, "no column 'loser' for the loser.*'winner', 'b'"),
        ("\n{}\na,b\n", "winner\tlooser", 2, "no column 'loser' for the loser.*'looser'"),
        ("\n{}\na,b\n", "winner,loser,loser", 2, "'loser' occurs twice"),
        ("a,b,p,q\n{}\n", "Ann,Bob,3,x", 2, "the .*, column 'q', is 'x', expected"),
    ],
)
def test_bad_rows_and_headers(tmp_path, text, row, line, words):
    path = save(tmp_path / "bad.csv", text.format(row))
    sides = {"sides": ("a", "b"), "scores": ("p", "q")} if "a,b,p,q" in text else {}
    with pytest.raises(TableFormatError) as caught:
        read_pairs(path, **sides)
    assert (caught.value.path, caught.value.line) == (str(path), line)
    assert re.search(words, str(caught.value)), str(caught.value)


@pytest.mark.parametrize("role, column", [("magnitude", "by"), ("weight", 2)])
def test_columns_that_are_not_there(tmp_path, role, column):
    path = save(tmp_path / "bad.csv", "winner,loser\na,b\n")
    with pytest.raises(TableFormatError, match=f"no column {column!r} for the {role}"):
        read_pairs(path, **{role: column})


@pytest.mark.parametrize(
    "header",
    [
        "first,second,outcome",
        "left,right,winner",
        "model_a,model_b,winner",
        "Player 1,Player 2,result",
    ],
)
def test_sides_under_their_usual_names_are_found_and_said(tmp_path, header):
    path = tmp_path / "battles.csv"
    path.write_text(f"{header}\nx,y,first\ny,z,second\nz,x,tie\n")
    first, second, outcome = header.split(",")
    found, asked = (
        read_pairs(path),
        read_pairs(path, sides=(first, second), outcome=outcome),
    )
    for name in ("first", "second", "outcome"):
        np.testing.assert_array_equal(getattr(found, name), getattr(asked, name))
    assert (
        found.read_as
        == f"'{first}' and '{second}' are read as the two sides, '{outcome}' as the outcome"
    )
    assert asked.read_as == ""


@pytest.mark.parametrize(
    "header",
    ["left,right,loser", "left,right,a,b,winner", "left,right,winner,outcome", "left,x,winner"],
)
def test_sides_that_could_mean_something_else_are_asked_for(tmp_path, header):
    path = tmp_path / "battles.csv"
    path.write_text(f"{header}\n" + ",".join("pqrst"[: header.count(",") + 1]) + "\n")
    with pytest.raises(TableFormatError, match="Pass sides="):
        read_pairs(path)


# Gaps -------------------------------------------------------------------------------------------

MATCHES = """home_team,away_team,home_score,away_score,date
Ajax,Bonn,2,1,1
Bonn,Como,,,2
Como,Ajax,0,0,3
Ajax,Como,,,4
Bonn,Ajax,0,3,5
"""


def test_matches_that_were_not_played_are_left_out_and_their_columns_are_found(tmp_path):
    path = save(tmp_path / "matches.csv", MATCHES)
    with pytest.warns(UserWarning, match="2 of 5 rows are dropped: 2 without home_score"):
        data = read_pairs(path)
    assert data.outcome.tolist() == [1, 0, -1]
    assert data.items[data.first].tolist() == ["Ajax", "Como", "Bonn"]
    assert data.read_as == (
        "'home_team' and 'away_team' are read as the two sides, 'home_score' and 'away_score' as "
        "their scores"
    )
    with pytest.warns(UserWarning, match="dropped"):
        assert read_pairs(path, margin=True).outcome.tolist() == [1, 0, -3]


@pytest.mark.parametrize(
    "row, role",
    [
        (",b,left,1,g,x", "left"),
        ("a,,left,1,g,x", "right"),
        ("a,b,,1,g,x", "winner"),
        ("a,b,NA,1,g,x", "winner"),
        ("a,b,null,1,g,x", "winner"),
        ("a,b,left,,g,x", "weight"),
        ("a,b,left,1,,x", "group"),
        ("a,b,left,1,g,", "judge"),
    ],
)
def test_a_gap_anywhere_leaves_out_the_row(tmp_path, row, role):
    text = f"left,right,winner,weight,group,judge\na,b,left,1,7,x\n{row}\nb,c,tie,2,8,y\n"
    path = save(tmp_path / "a.csv", text)
    with pytest.warns(UserWarning, match=f"1 of 3 rows are dropped: 1 without {role}"):
        data = read_pairs(path, judge="judge")
    assert data.items.tolist() == ["a", "b", "c"]
    assert data.weight.tolist() == [1, 2]
    assert data.groups.tolist() == [7, 8]
    path = save(path, text.replace("b,c,tie,2", "b,c,tie,-2"))
    with (
        pytest.warns(UserWarning, match="dropped"),
        pytest.raises(TableFormatError, match="weight is -2") as caught,
    ):
        read_pairs(path, judge="judge")
    assert caught.value.line == 4


def test_a_tie_needs_no_magnitude_and_other_rows_do(tmp_path):
    text = "left,right,winner,magnitude\na,b,tie,\na,b,left,\nb,c,left,2\n"
    path = save(tmp_path / "a.csv", text)
    with pytest.warns(UserWarning, match="1 of 3 rows are dropped: 1 without magnitude"):
        assert read_pairs(path).outcome.tolist() == [0, 2]


def test_football_data_as_they_are(tmp_path):
    text = "Date,HomeTeam,AwayTeam,FTHG,FTAG,FTR\n1,Ajax,Bonn,2,1,H\n2,Bonn,Como,0,0,D\n"
    data = read_pairs(save(tmp_path / "e0.csv", text))
    assert data.outcome.tolist() == [1, 0]
    assert "'FTR' as the outcome" in data.read_as
