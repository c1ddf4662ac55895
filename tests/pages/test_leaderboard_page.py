"""The page of a leaderboard: the numbers are those of the comparisons, nothing in it can run."""

from __future__ import annotations

import json

import numpy as np
import pytest
from click.testing import CliRunner

from rankwise.cli.app import app
from rankwise.leaderboard import rate, rate_groups
from rankwise.pages.board.board_rows import as_sentences
from rankwise.pages.board.leaderboard_page import headline
from rankwise.report import board_page
from tests.pages.data import (
    HOSTILE,
    Outline,
    assert_nothing_foreign_runs,
    board_of,
    columns_of,
    data_of,
    make_battles,
)


@pytest.mark.parametrize("model", ["least-squares", "bradley-terry"])
def test_records_and_meetings_on_the_page_are_those_of_the_raw_comparisons(model):
    rows = make_battles()
    board = board_of(rows, model=model, side=True, covariates=["length"], judge="judge")
    (found,) = data_of(str(board_page(board)))["boards"]
    names = found["rows"]["item"]
    rating = dict(zip(names, found["rows"]["rating"], strict=True))
    effect = {each["name"]: each["value"] for each in found["effects"]}
    assert found["rows"]["rank"] == [
        1 + sum(rating[other] > rating[name] for other in names) for name in names
    ]
    for k, name in enumerate(names):
        won = sum(
            (left == name and word == "left") or (right == name and word == "right")
            for left, right, word, *_ in rows
        )
        met = sum(name in (left, right) for left, right, *_ in rows)
        tied = sum(name in (left, right) and word == "tie" for left, right, word, *_ in rows)
        record = [found["rows"][key][k] for key in ("n", "wins", "ties", "losses")]
        assert record == [met, won, tied, met - won - tied]
    pairs = found["meetings"]
    assert len(pairs["n"]) == 10
    for k in range(10):
        a, b = names[pairs["first"][k]], names[pairs["second"][k]]
        seen, expected = [], []
        for left, right, word, _, length in rows:
            if {left, right} != {a, b}:
                continue
            sign = 1 if left == a else -1
            margin = rating[left] - rating[right] + effect["first side"] + length * effect["length"]
            seen.append(sign * {"left": 1, "tie": 0, "right": -1}[word])
            chance = margin if model == "least-squares" else np.tanh(margin / 2)
            expected.append(sign * chance)
        assert pairs["n"][k] == len(seen)
        assert pairs["observed"][k] == pytest.approx(np.mean(seen), abs=1e-6)
        assert pairs["expected"][k] == pytest.approx(np.mean(expected), abs=1e-6)


def test_surprises_are_the_largest_deviations_for_their_number_of_comparisons(monkeypatch):
    monkeypatch.setattr("rankwise.pages.board.leaderboard_page.MAX_SURPRISES", 4)
    monkeypatch.setattr("rankwise.pages.board.leaderboard_page.MIN_SURPRISE", 0.0)
    board = board_of(make_battles(seed=1))
    (found,) = data_of(str(board_page(board)))["boards"]
    pairs, most = found["meetings"], found["surprises"]
    sizes = []
    for n, seen, expected in zip(pairs["n"], pairs["observed"], pairs["expected"], strict=True):
        sizes.append(abs(seen - expected) * n**0.5)
    typical = (sum(size**2 for size in sizes) / len(sizes)) ** 0.5
    largest = sorted((size / typical for size in sizes), reverse=True)[:4]
    assert [abs(value) for value in most["surprise"]] == pytest.approx(largest, abs=1e-5)
    assert found["nPairs"] == 10


def test_only_deviations_of_three_typical_ones_are_surprising():
    rows = [("a", "b", "left", "j", 0.0)] * 40 + [("b", "c", "left", "j", 0.0)] * 40
    rows += [("c", "d", "left", "j", 0.0), ("d", "e", "right", "j", 0.0)] * 20
    for board in (board_of(make_battles(seed=1)), board_of(rows)):
        (described,) = data_of(str(board_page(board)))["boards"]
        assert all(abs(value) >= 3 for value in described["surprises"]["surprise"])
        assert described["minSurprise"] == 3
    assert described["surprises"]["first"] == []


def test_ranks_intervals_effects_and_judges_are_those_of_the_board():
    board = board_of(make_battles(), judge="judge", side=True, scale="elo", min_comparisons=5)
    (found,) = data_of(str(board_page(board)))["boards"]
    for k, row in enumerate(board):
        for name in ("rank", "best_rank", "worst_of_all", "tier", "n", "component"):
            assert found["rows"][name][k] == getattr(row, name)
        for name in ("rating", "low", "high"):
            assert found["rows"][name][k] == pytest.approx(getattr(row, name), rel=1e-6)
        assert (k in found["rows"]["thin"]) == row.thin
    for name, shown in (("effects", found["effects"]), ("judges", found["judges"])):
        assert len(shown) == len(getattr(board, name))
        for each, row in zip(shown, getattr(board, name), strict=True):
            for key, value in row._asdict().items():
                is_text = value is None or isinstance(value, str)
                assert each[key] == (value if is_text else pytest.approx(value, rel=1e-6))
    assert found["nClusters"] == 9


def test_thin_items_stand_below_the_line_and_a_board_without_intervals_has_none():
    rows = [*make_battles(), ("Zoe", "Ann", "left", "j1", 0.0)]
    (found,) = data_of(str(board_page(board_of(rows, min_comparisons=3))))["boards"]
    last = found["rows"]["item"].index("Zoe")
    assert (last, found["rows"]["rank"][last], found["rows"]["thin"]) == (5, None, [5])
    (plain,) = data_of(str(board_page(board_of(rows, intervals=False))))["boards"]
    assert plain["rows"]["low"] is plain["rows"]["best_rank"] is None
    assert not plain["hasIntervals"]
    assert "no intervals" in plain["headline"]


def test_headline_says_who_may_be_the_best():
    sure = rate({"winner": ["a"] * 40 + ["b"] * 4, "loser": ["b"] * 40 + ["a"] * 4},
                winner="winner", loser="loser")  # fmt: skip
    assert (
        headline(sure) == "\u2068a\u2069 is significantly above all other items (95% confidence)."
    )
    open_ = rate({"winner": ["a"], "loser": ["b"]}, winner="winner", loser="loser")
    assert headline(open_) == (
        "2 of 2 items may be the best: \u2068a\u2069, \u2068b\u2069. The confidence level is 95%."
    )
    board = board_of(make_battles(100))
    (sure, *others) = [row for row in board if row.best_of_all == 1]
    assert [row.best_rank for row in (sure, *others)] == [1, 2, 2]
    assert headline(board).endswith("for all items simultaneously, 3 may be the best.")


def test_footnotes_are_sentences_and_names_keep_their_first_letter():
    lines = ["ratings: log odds", "helena causes 52% of the errors", "see task_scale="]
    assert as_sentences(lines, names=["helena", ""]) == [
        "Ratings: log odds.",
        "helena causes 52% of the errors.",
        "See task_scale=",
    ]


def test_dates_on_the_time_axis_are_those_of_the_comparisons():
    days = np.array(["2024-01-01", "2024-07-01", "2025-01-01"] * 20, dtype="datetime64[D]")
    names = {"winner": ["a", "b", "a"] * 20, "loser": ["b", "a", "b"] * 20}
    board = rate({**names, "day": days}, winner="winner", loser="loser", time="day")
    (found,) = data_of(str(board_page(board)))["boards"]
    for path in found["paths"]:
        # 366 days of 365.2425: with years of equal length, this would be in 2023
        assert (path["dates"][0], path["x"][0]) == ("2024-01-01", 2024)
        assert (path["dates"][-1], path["x"][-1]) == ("2025-01-01", 2025)


def test_winners_and_losers_have_no_sides():
    pairs = {"winner": list("abcab"), "loser": list("bcaba"), "judge": list("jjkkk")}
    (winners,) = data_of(str(board_page(rate(pairs, judge="judge"))))["boards"]
    (sides,) = data_of(str(board_page(board_of(make_battles(), judge="judge"))))["boards"]
    assert (winners["hasSides"], sides["hasSides"]) == (False, True)


@pytest.mark.parametrize("n, more", [(5, "."), (6, " and 1 more.")])
def test_the_headline_names_five_items_and_counts_the_others(n, more):
    names = np.array([f"item {k}" for k in range(n)])
    board = rate({"winner": names, "loser": np.roll(names, 1)}, winner="winner", loser="loser")
    assert headline(board).startswith(f"{n} of {n} items may be the best: ")
    assert headline(board).endswith(f"\u2069{more} The confidence level is 95%.")


def test_margins_are_told_as_they_are():
    games = {"home": ["a", "b", "c"], "away": ["b", "c", "a"], "x": [3, 2, 1], "y": [0, 1, 2]}
    options = {"sides": ("home", "away"), "scores": ("x", "y")}
    margins = rate(games, margin=True, **options)
    assert not data_of(str(board_page(margins)))["boards"][0]["areVerdicts"]
    assert data_of(str(board_page(rate(games, **options))))["boards"][0]["areVerdicts"]


def test_page_of_many_boards_has_all_of_them_in_order():
    rows = make_battles()
    boards = rate_groups(
        columns_of(rows), [k % 3 for k in range(300)], sides=("left", "right"), outcome="better"
    )
    found = data_of(str(board_page(boards)))["boards"]
    assert [each["label"] for each in found] == ["0", "1", "2"]
    assert [each["nComparisons"] for each in found] == [100, 100, 100]


def test_only_the_meetings_of_the_first_items_are_on_the_page(monkeypatch):
    monkeypatch.setattr("rankwise.pages.board.leaderboard_page.MATRIX_ITEMS", 3)
    (found,) = data_of(str(board_page(board_of(make_battles()))))["boards"]
    assert found["nMatrix"] == 3
    assert max(found["meetings"]["first"] + found["meetings"]["second"]) == 2
    assert len(found["meetings"]["n"]) == 3


def test_hostile_names_stay_data_and_nothing_foreign_runs():
    board = board_of(make_battles(names=HOSTILE), judge="judge")
    page = str(board_page({HOSTILE[0]: board, HOSTILE[3]: board}, title=HOSTILE[0]))
    page.encode("utf-8")
    assert "img" not in Outline(page).tags
    assert_nothing_foreign_runs(page)


def test_what_is_no_board_is_refused(tmp_path):
    for wrong, words in ((3, "a int;"), ({}, "empty dict"), ({"a": []}, "a list;")):
        with pytest.raises(TypeError, match=words):
            board_page(wrong).save(tmp_path / "x.html")
    assert not (tmp_path / "x.html").exists()


def write_battles(path, rows):
    lines = ["left,right,better,judge,length", *(",".join(map(str, row)) for row in rows)]
    path.write_text("\n".join(lines), encoding="utf-8")
    return path


def test_command_writes_the_page_beside_the_table(tmp_path):
    path = write_battles(tmp_path / "battles.csv", make_battles(60))
    page = tmp_path / "board.html"
    words = ["rank", str(path), "--sides", "left,right", "--outcome", "better"]
    done = CliRunner().invoke(app, [*words, "--page", str(page)])
    assert done.exit_code == 0, done.output
    assert done.stdout == CliRunner().invoke(app, words).stdout
    text = page.read_text(encoding="utf-8")
    assert "<title>Leaderboard of battles.csv</title>" in text
    printed = json.loads(CliRunner().invoke(app, [*words, "--json", "--page", str(page)]).stdout)
    (found,) = data_of(text)["boards"]
    assert found["rows"]["item"] == [row["item"] for row in printed["rows"]]
    grouped = [*words, "--board-per", "judge", "--page", "-"]
    streamed = CliRunner().invoke(app, grouped)
    assert streamed.exit_code == 0, streamed.output
    assert streamed.stdout.startswith("<!DOCTYPE html>")
    assert len(data_of(streamed.stdout)["boards"]) == 9


def test_page_must_not_take_the_place_of_another_file(tmp_path):
    path = write_battles(tmp_path / "battles.csv", make_battles(60))
    words = ["rank", str(path), "--sides", "left,right", "--outcome", "better"]
    for more in (["--page", str(path)], ["-o", "b.csv", "--page", "b.csv"]):
        done = CliRunner().invoke(app, [*words, *more])
        assert done.exit_code == 1
        assert "replace" in done.stderr
