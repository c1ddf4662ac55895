"""Boards from data frames in one line: the words people use, counts, scores, sides."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

from rankwise import PairGraph, RankRLS
from rankwise.datasets import PairData, pairs_from_frame, read_pairs
from rankwise.datasets.comparison_words import WORDS, outcomes_of_words
from rankwise.errors import TableFormatError
from rankwise.leaderboard import rate, rate_groups

BATTLES = {
    "model_a": ["owl", "owl", "jay", "crow", "jay", "crow"],
    "model_b": ["jay", "crow", "owl", "jay", "crow", "owl"],
    "winner": ["model_a", "tie", "model_b", "crow", "both bad", "owl"],
    "judge": ["x", "x", "y", "y", "z", "z"],
    "words": [10, -3, 2, 0, 5, 1],
}
SIDES = {"sides": ("model_a", "model_b"), "outcome": "winner"}
OUTCOMES = [1, 0, -1, 1, 0, -1]


def polars_frame(columns):
    return pytest.importorskip("polars").DataFrame(columns)


def arrow_table(columns):
    return pytest.importorskip("pyarrow").table(columns)


def pandas_frame(columns):
    return pytest.importorskip("pandas").DataFrame(columns, index=np.arange(6)[::-1])


def categories(columns):
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(columns)
    return frame.astype(dict.fromkeys(("model_a", "model_b", "winner"), "category"))


FRAMES = [dict, pandas_frame, categories, polars_frame, arrow_table]


@pytest.mark.parametrize("make", FRAMES, ids=lambda f: f.__name__)
def test_every_kind_of_frame_gives_the_same_comparisons(make):
    data = pairs_from_frame(make(BATTLES), **SIDES, judge="judge", covariates=["words"])
    assert data.items.tolist() == ["crow", "jay", "owl"]
    assert data.items[data.first].tolist() == BATTLES["model_a"]
    assert data.items[data.second].tolist() == BATTLES["model_b"]
    assert data.outcome.tolist() == OUTCOMES
    assert data.judges.tolist() == BATTLES["judge"]
    assert data.covariates["words"].tolist() == BATTLES["words"]
    board = rate(make(BATTLES), **SIDES, intervals=False)
    assert [row.item for row in board] == ["owl", "crow", "jay"]


def test_winners_and_losers_need_no_names():
    winners = {"winner": ["a", "b"], "loser": ["b", "c"]}
    assert [row.item for row in rate(winners, intervals=False)] == ["a", "b", "c"]


def test_a_file_is_read_as_a_frame_is(tmp_path):
    rows = zip(*BATTLES.values(), strict=True)
    text = "\n".join([",".join(BATTLES), *(",".join(map(str, row)) for row in rows)])
    (tmp_path / "battles.csv").write_text(text)
    options = {**SIDES, "judge": "judge", "covariates": ["words"]}
    file, frame = (
        read_pairs(tmp_path / "battles.csv", **options),
        pairs_from_frame(BATTLES, **options),
    )
    for name in ("first", "second", "outcome", "weight", "items", "judges"):
        np.testing.assert_array_equal(getattr(file, name), getattr(frame, name))
    np.testing.assert_array_equal(file.covariates["words"], frame.covariates["words"])


# -- outcomes -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "words, expected",
    [
        (["LEFT", " right ", "Draw"], [1, -1, 0]),
        (["H", "D", "A"], [1, 0, -1]),
        (["H", "D"], [1, 0]),
        (["D", "A"], [0, -1]),
        (["H"], [1]),
        (["a", "b"], [1, -1]),
        (["W", "D"], [1, 0]),
        (["D", "L"], [None, None]),  # lost or left?
        (["D"], [None]),
        (["1", "X", "2"], [1, 0, -1]),
        (["2", "x"], [-1, 0]),
        (["1.0", "2.0", "1.5"], [1, -1, 0]),
        (["[[A]]", "[[B]]", "[[C]]"], [1, -1, 0]),
        (["c"], [None]),
        (["HOME_WIN", "AWAY_WIN", "DRAW"], [1, -1, 0]),
        (["1", "2", "0"], [1, -1, 0]),
        (["1", "2", "0.5"], [1, -1, 0]),
        (["1", "0", "0.5"], [1, -1, 0]),
        (["1.0", "0.0"], [1, -1]),
        (["-1", "0", "1"], [-1, 0, 1]),
        (["W", "l", "D", "w"], [1, -1, 0, 1]),
        (["L", "R", "T"], [1, -1, 0]),
        (["L", "l"], [None, None]),  # left or lost?
        (["Model A", "model-b", "MODEL_A", "modelb"], [1, -1, 1, -1]),
        (["response_a", "Player 2", "assistant-b", "team1"], [1, -1, -1, 1]),
        (["0"], [None]),
        (["3", "1"], [None, None]),
        (["maybe", "left", ""], [None, 1, None]),
    ],
)
def test_words_for_outcomes(words, expected):
    assert outcomes_of_words(words) == expected


FIRST_WORDS = [
    *("model_a", "left", "first", "a", "home", "home_team", "win", "wins", "won", "true", "1-0"),
    *("a>b", "a>>b", "b<a", "[[A]]", "[[A>B]]", "HOME_WIN", "home_wins", "model_a_wins"),
    *("team_1", "home_team_win", "left_won", "a_wins", "player1"),
]
SECOND_WORDS = [
    *("model_b", "right", "second", "b", "away", "away_team", "loss", "loses", "lost", "lose"),
    *("false", "0-1", "b>a", "b>>a", "a<b", "[[B]]", "[[B>>A]]", "AWAY_WIN", "away_won"),
    *("model_b_win", "team_2", "right_wins", "b_win", "response_b"),
]
TIE_WORDS = ["tie", "tied", "draw", "drawn", "equal", "same", "both", "neither", "ties", "both bad"]
TIE_WORDS += ["both good", "both are bad", "tie (both bad)", "1/2-1/2", "½-½", "a=b"]
TIE_WORDS += ["[[C]]", "[[A=B]]", "[[tie]]"]


@pytest.mark.parametrize(
    "words, side, other", [(FIRST_WORDS, 1, "tie"), (SECOND_WORDS, -1, "tie"), (TIE_WORDS, 0, "a")]
)
def test_every_word_for_a_side_or_a_tie(words, side, other):
    meant = {word: outcomes_of_words([word, other])[0] for word in words}
    assert meant == dict.fromkeys(words, side)


def test_every_word_of_the_list_is_tested():
    tested = {word.lower().replace("_", " ") for word in FIRST_WORDS + SECOND_WORDS + TIE_WORDS}
    listed = {word.replace("_", " ") for words in WORDS.values() for word in words}
    assert listed - tested <= {"tie both bad"}


def test_no_word_has_two_meanings():
    words = [word.replace(" ", "").replace("_", "") for side in WORDS.values() for word in side]
    assert len(words) == len(set(words))


def test_unknown_words_are_listed_all_at_once(tmp_path):
    strange = {**BATTLES, "winner": ["model_a", "skip", "model_c", "skip", "owl?", "owl"]}
    message = r"row 1 of the frame: the winner is 'skip' \(2 rows\), 'model_c' .*'owl\?' .*expected"
    with pytest.raises(ValueError, match=message):
        rate(strange, **SIDES)
    lines = ["model_a,model_b,winner"] + [
        ",".join(row) for row in list(zip(*strange.values(), strict=True)) for row in [row[:3]]
    ]
    (tmp_path / "a.csv").write_text("\n".join(lines))
    with pytest.raises(TableFormatError, match=r"'skip' .*'model_c'.*'owl") as caught:
        read_pairs(tmp_path / "a.csv", **SIDES)
    assert caught.value.line == 3


def test_items_called_a_and_b_win_by_their_names():
    battles = {"left": ["a", "b", "c"], "right": ["b", "a", "a"], "winner": ["b", "b", "a"]}
    data = pairs_from_frame(battles, sides=("left", "right"))
    assert data.outcome.tolist() == [-1, 1, -1]
    mixed = {"left": ["a", "b", "c"], "right": ["b", "a", "d"], "winner": ["b", "b", "b"]}
    with pytest.raises(ValueError, match=r"row 1 .*two ways"):  # b is the right side, and an item
        pairs_from_frame({**mixed, "right": ["c", "a", "d"]}, sides=("left", "right"))


def test_counts_of_wins_are_as_many_comparisons():
    table = {"one": ["a", "b"], "two": ["b", "c"], "win1": [3, 0], "win2": [1, 2], "tied": [0, 2]}
    data = pairs_from_frame(table, sides=("one", "two"), wins=("win1", "win2", "tied"))
    assert data.n_pairs == 8
    assert data.outcome.tolist() == [1, 1, 1, -1, -1, -1, 0, 0]
    single = {"winner": list("aaabccbb"), "loser": list("bbbabbcc"), "tie": [0] * 6 + [1, 1]}
    boards = rate(data), rate(single)
    np.testing.assert_allclose(boards[0].ratings, boards[1].ratings)
    np.testing.assert_allclose(boards[0].spread.errors, boards[1].spread.errors)
    for bad in ([-1, 0], [0.5, 0]):
        with pytest.raises(ValueError, match=r"row 0 .*number of wins"):
            pairs_from_frame({**table, "win1": bad}, sides=("one", "two"), wins=("win1", "win2"))


def test_scores_of_a_match_are_a_winner_or_a_margin():
    table = {"home": ["a", "b", "c"], "away": ["b", "c", "a"], "g1": [3, 0, 1], "g2": [1, 2, 1]}
    options = {"sides": ("home", "away"), "scores": ("g1", "g2")}
    assert pairs_from_frame(table, **options).outcome.tolist() == [1, -1, 0]
    assert pairs_from_frame(table, **options, margin=True).outcome.tolist() == [2, -2, 0]
    table["by"] = [2, -2, 0]
    found = pairs_from_frame(table, sides=("home", "away"), outcome="by", margin=True)
    assert found.outcome.tolist() == [2, -2, 0]
    with pytest.warns(UserWarning, match="1 of 3 rows are dropped: 1 without g1"):
        gaps = pairs_from_frame({**table, "g1": [1, np.nan, 2]}, **options)
    assert gaps.outcome.tolist() == [0, 1]


# -- bad input ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "options, message",
    [
        ({"sides": ("model_a", "model_c")}, "no column 'model_c' for the sides; did you mean"),
        ({"sides": ("model_a", "model_a")}, "two different columns"),
        ({"winner": "words"}, "no column 'loser' for the loser.* Pass sides="),
        ({"wins": ("a", "b")}, "wins= needs sides="),
        ({**SIDES, "scores": ("words", "words")}, "outcome and scores"),
        ({**SIDES, "weight": "words"}, "row 1 .*weight is -3, expected more than 0"),
        ({**SIDES, "weight": "judge"}, "column 'judge' .*expected real numbers"),
    ],
)
def test_bad_columns_are_explained(options, message):
    with pytest.raises(ValueError, match=message):
        rate(BATTLES, **options)


def test_misspelled_arguments_are_explained():
    with pytest.raises(TypeError, match="no argument 'side_s'; did you mean 'sides'"):
        pairs_from_frame(BATTLES, side_s=("model_a", "model_b"))
    with pytest.raises(TypeError, match="side_s"):
        rate(BATTLES, side_s=("model_a", "model_b"))
    with pytest.raises(ValueError, match="sides name columns of a data frame"):
        rate(PairGraph([0], [1]), sides=("a", "b"))
    with pytest.raises(ValueError, match="has no rows"):
        rate({"winner": [], "loser": []})
    with pytest.raises(ValueError, match="different lengths"):
        rate({"winner": ["a"], "loser": []})


def test_lazy_frames_are_refused():
    polars = pytest.importorskip("polars")
    with pytest.raises(TypeError, match=r"pass frame.collect\(\)"):
        rate(polars.LazyFrame(BATTLES), **SIDES)


@pytest.mark.parametrize("gap", [None, np.nan, ""])
def test_rows_with_a_gap_are_left_out_and_counted(gap):
    models = ["owl", "owl", gap, "crow", "jay", "crow"]
    with pytest.warns(UserWarning, match="the frame: 1 of 6 rows are dropped: 1 without model_a"):
        data = pairs_from_frame({**BATTLES, "model_a": models}, **SIDES)
    assert data.outcome.tolist() == [1, 0, 1, 0, -1]


# -- names in a PairGraph -------------------------------------------------------------------------


def test_a_graph_takes_names():
    graph = PairGraph(["Cleo", "Ann", "Ann"], ["Ann", "Bob", "Cleo"])
    assert graph.items.tolist() == ["Ann", "Bob", "Cleo"]
    assert (graph.winner.tolist(), graph.loser.tolist()) == ([2, 0, 0], [0, 1, 2])
    assert [row.item for row in rate(graph, intervals=False)] == ["Ann", "Cleo", "Bob"]
    assert graph.with_edges([0, 1]).items.tolist() == ["Ann", "Bob", "Cleo"]
    assert graph.subset(np.array([2, 0])).items.tolist() == ["Cleo", "Ann"]
    own = PairGraph(["Cleo", "Ann"], ["Ann", "Bob"], items=["Dan", "Cleo", "Bob", "Ann"])
    assert (own.n_items, own.winner.tolist()) == (4, [1, 3])
    scores = RankRLS(1e-3).fit(np.eye(4), own).predict(np.eye(4))
    assert scores[1] > scores[3] > scores[2]
    assert PairGraph([0], [1]).items.tolist() == [0, 1]


def test_names_that_are_not_there_are_explained():
    with pytest.raises(ValueError, match="Eve"):
        PairGraph(["Ann"], ["Eve"], items=["Ann", "Bob"])
    with pytest.raises(ValueError, match="a name twice"):
        PairGraph(["Ann"], ["Bob"], items=["Ann", "Ann"])
    with pytest.raises(ValueError, match="2 names, but n_items is 5"):
        PairGraph(["Ann"], ["Bob"], n_items=5)


# -- groups -------------------------------------------------------------------------------------


def test_groups_of_a_frame():
    boards = rate_groups(BATTLES, group="judge", **SIDES, intervals=False)
    assert list(boards) == ["x", "y", "z"]
    assert sorted(boards["x"].items) == ["crow", "jay", "owl"]
    alone = rate({name: values[:2] for name, values in BATTLES.items()}, **SIDES, intervals=False)
    assert boards["x"].rows == alone.rows


def test_judges_are_clusters_unless_others_are_given():
    data = pairs_from_frame(BATTLES, **SIDES, judge="judge")
    assert isinstance(data, PairData)
    with_judges = rate(data).spread.errors
    explicit = rate(BATTLES, **SIDES, clusters=BATTLES["judge"]).spread.errors
    np.testing.assert_allclose(with_judges, explicit)


def test_words_of_ones_own_for_outcomes():
    battles = {"left": ["owl", "crow", "jay"], "right": ["jay", "owl", "crow"]}
    battles["better"] = ["upper", "lower", "meh"]
    words = {"upper": "first", "lower": "second", "meh": "tie"}
    data = pairs_from_frame(battles, sides=("left", "right"), outcome="better", outcome_words=words)
    assert data.outcome.tolist() == [1, -1, 0]
    with pytest.raises(ValueError, match=r"'uper'.*'upper', 'lower', 'meh'"):
        pairs_from_frame(
            battles, sides=("left", "right"), outcome="better", outcome_words={"uper": "first"}
        )


def test_column_names_match_regardless_of_case():
    games = {"Winner": ["a", "b"], "LOSER": ["b", "c"], "Weight": [1, 2], "Group": ["x", "y"]}
    data = pairs_from_frame(games)
    expected = pairs_from_frame({name.lower(): column for name, column in games.items()})
    assert data.groups.tolist() == ["x", "y"]
    for name in ("first", "second", "outcome", "weight"):
        assert getattr(data, name).tolist() == getattr(expected, name).tolist()
    assert pairs_from_frame(games, group="GROUP").groups.tolist() == ["x", "y"]


def test_an_exact_column_name_comes_before_others():
    games = {"winner": ["a"], "loser": ["b"], "JUDGE": ["x"], "judge": ["y"], "Judge": ["z"]}
    assert pairs_from_frame(games, judge="judge").judges.tolist() == ["y"]
    with pytest.raises(ValueError, match="judGE"):
        pairs_from_frame(games, judge="judGE")


@pytest.mark.parametrize(
    "kind", ["list", "array", "pandas", "category", "object", "polars", "arrow"]
)
def test_strings_in_arrow_are_read_as_those_of_a_list(kind, monkeypatch):
    first = ["007", " b", "c", None, "7", "b"]
    second = ["c", "c", "b", "b", "b", "7"]
    expected = _quiet_pairs({"winner": first, "loser": second})
    monkeypatch.setattr("rankwise.datasets.table_files.LEAST_ARROW_ROWS", 1)
    data = _quiet_pairs(_frame_of(kind, first, second))
    assert data.items.tolist() == expected.items.tolist()
    np.testing.assert_array_equal(data.first, expected.first)
    np.testing.assert_array_equal(data.second, expected.second)


def _quiet_pairs(frame):
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=".* rows are dropped")
        return pairs_from_frame(frame)


def _frame_of(kind, first, second):
    """A frame of each library with two columns of strings."""
    columns = {"winner": first, "loser": second}
    if kind == "list":
        return columns
    if kind == "array":
        filled = ["" if label is None else label for label in first]
        return {"winner": np.array(filled), "loser": np.array(second)}
    if kind == "arrow":
        return pytest.importorskip("pyarrow").table(columns)
    if kind == "polars":
        return pytest.importorskip("polars").DataFrame(columns)
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(columns)
    if kind == "category":
        return frame.astype("category")
    if kind == "object":
        return frame.astype(object)
    return frame


def test_a_column_that_only_begins_with_strings_is_read_as_a_list(monkeypatch):
    monkeypatch.setattr("rankwise.datasets.table_files.LEAST_ARROW_ROWS", 1)
    mixed = {"winner": ["a", "b", 3], "loser": ["b", "c", "a"]}
    assert pairs_from_frame(mixed).items.tolist() == ["3", "a", "b", "c"]
    teams = {"winner": ["a", ("b", "c")], "loser": ["b", "a"]}
    assert pairs_from_frame(teams).teams.sizes.tolist() == [1, 2, 1]


def test_a_day_that_does_not_exist_is_refused():
    columns = {"winner": ["a", "b"], "loser": ["b", "a"], "day": ["20190131", "20190231"]}
    with pytest.raises(ValueError, match="the time is '20190231', expected a date"):
        pairs_from_frame(columns, time="day")
