"""Tables, lists of names and counts as text."""

from __future__ import annotations

import numpy as np
import pytest

from rankwise.formatting import (
    TABLE_FORMATS,
    TextTable,
    count,
    csv_text,
    join_tables,
    join_words,
    to_json_values,
)

BOARD = TextTable(
    ["rank", "item", "rating"],
    [["1", "a_long_name", "2.50"], ["10", "漢字", "−0.25"]],
    names=(1,),
    title="best first",
    notes=["n: 2"],
)


def test_names_are_aligned_to_the_left_and_numbers_to_the_right():
    assert BOARD.text().splitlines() == [
        "best first",
        "rank  item         rating",
        "   1  a_long_name    2.50",
        "  10  漢字          −0.25",
        "n: 2",
    ]


def test_a_narrow_terminal_cuts_names_and_never_numbers():
    assert BOARD.lines(22)[1] == "   1  a_long_…    2.50"
    assert BOARD.lines(5) == BOARD.lines(22)


@pytest.mark.parametrize("format", TABLE_FORMATS)
def test_no_name_can_steer_a_terminal_or_break_a_row(format):
    hostile = TextTable(["name"], [["a\x1b[2Jb\nc\u2028d"]])
    shown = join_tables([hostile], format)
    assert "\x1b" not in shown
    assert "\u2028" not in shown
    assert "b c d" in shown


def test_several_tables_have_their_titles_and_notes_in_every_format():
    assert join_tables([BOARD, BOARD], "markdown").count("**best first**\n\n| rank |") == 2
    assert join_tables([BOARD, BOARD], "latex").count("% best first\n\\begin{tabular}{rlr}") == 2
    assert join_tables([BOARD, BOARD], "html").count("<caption>best first</caption>") == 2
    assert join_tables([BOARD, BOARD], "text") == f"{BOARD.text()}\n\n{BOARD.text()}"


def test_what_is_missing_is_empty_in_csv_and_none_in_json():
    assert csv_text(["a", "b"], [[np.float64(0.1), float("nan")], [None, "x,y"]]) == (
        'a,b\n0.1,\n,"x,y"\n'
    )
    assert to_json_values({"a": np.array([1.0, np.inf]), "b": (np.int64(2),)}) == {
        "a": [1.0, None],
        "b": [2],
    }


def test_lists_and_counts():
    assert join_words("abcd", 3) == "a, b, c and 1 more"
    assert join_words("abc", 3) == "a, b, c"
    assert [count(n, "group") for n in (0, 1, 2000)] == ["0 groups", "1 group", "2,000 groups"]
