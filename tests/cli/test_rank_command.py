"""rankwise rank on rankings, on games with dates, and on votes of people."""

from __future__ import annotations

import numpy as np

from tests.cli.shell import run


def test_rankings_of_drivers_by_place(tmp_path):
    file = tmp_path / "results.csv"
    rows = ["1,Ann,1", "1,Bob,2", "1,Cleo,DNF", "2,Bob,1", "2,Ann,1", "2,Cleo,3", "3,Cleo,1",
            "3,Ann,2", "3,Bob,"]  # fmt: skip
    file.write_text("\n".join(["race,driver,position", *rows]))
    columns = ("--ranking", "race", "--item", "driver", "--place", "position", "--alpha", "0.1")
    done = run("rank", file, *columns)
    assert done.exit_code == 0, done.output
    assert "3 rankings of 3 items by plackett-luce" in done.stdout
    ballots = tmp_path / "ballots.csv"
    ballots.write_text("first,second,third\na,b,c\nb,a,\nc,a,b\n")
    done = run(
        "rank", ballots, "--places", "first,second,third", "--unlisted", "last", "--alpha", 1
    )
    assert "3 rankings of 3 items" in done.stdout


def test_a_board_until_a_date_is_judged_on_what_came_later(tmp_path):
    rng = np.random.default_rng(0)
    first = rng.integers(4, size=200)
    second = (first + rng.integers(1, 4, size=200)) % 4
    better, other = np.minimum(first, second), np.maximum(first, second)
    won = rng.random(200) < 0.7
    winner, loser = np.where(won, better, other), np.where(won, other, better)
    lines = [
        f"p{a},p{b},20{10 + k // 20}-03-01"
        for k, (a, b) in enumerate(zip(winner, loser, strict=True))
    ]
    file = tmp_path / "games.csv"
    file.write_text("\n".join(["winner,loser,date", *lines]))
    done = run("rank", file, "--time", "date", "--until", "2018-01-01", "--backtest")
    assert done.exit_code == 0, done.output
    assert "160 comparisons of 4 items" in done.stdout
    for method in ("the board", "without time", "Elo, followed", "base rate"):
        assert method in done.stdout
    assert run("rank", file, "--until", "2018-01-01").exit_code == 1
    assert run("rank", file, "--time", "date", "--backtest").exit_code == 1


def test_a_backtest_fits_the_board_once(tmp_path, monkeypatch):
    from rankwise.leaderboard import rating

    fitted = []

    def fit_and_count(name, data, *arguments, **options):
        fitted.append(name)
        return fit_model(name, data, *arguments, **options)

    fit_model = rating.fit_model
    monkeypatch.setattr(rating, "fit_model", fit_and_count)
    file = tmp_path / "games.csv"
    lines = [f"{'ab'[k % 2]},{'bc'[k % 2]},{k}" for k in range(40)]
    lines += [f"{'ba'[k % 2]},{'ac'[k % 2]},{k}" for k in range(40)]
    file.write_text("\n".join(["winner,loser,day", *lines]))
    options = ["--time", "day", "--until", "30", "--backtest"]
    page = tmp_path / "board.html"
    done = run("rank", file, *options, "--half-life", "20", "--page", page)
    assert done.exit_code == 0, done.output
    assert len(fitted) == 2  # the board, and the one without time that it is compared with
    fitted.clear()
    assert run("rank", file, *options, "--rating-model", "least-squares").exit_code == 0
    assert len(fitted) == 1


def test_a_column_of_people_who_voted_often_is_named_unless_it_is_used(tmp_path):
    file = tmp_path / "tastings.csv"
    lines = [f"{'ab'[k % 2]},{'ba'[k % 2]},{k // 6},{k}" for k in range(60)]
    file.write_text("\n".join(["winner,loser,taster_id,order", *lines]))
    done = run("rank", file)
    assert "column taster_id has 10 values, 6 rows each; pass --judge taster_id" in done.stderr
    assert "order" not in done.stderr
    for options in (("--judge", "taster_id"), ("--cluster", "taster_id")):
        assert "taster_id has" not in run("rank", file, *options).stderr
    file.write_text("\n".join(["winner,loser,taster_id", *(f"a,b,{k}" for k in range(5)), "b,a,9"]))
    assert "taster_id has" not in run("rank", file).stderr  # one vote of each


def test_comparisons_without_header_have_numbered_columns(tmp_path):
    rows = ["Ann,Bob", "Bob,Cleo", "Cleo,Ann", "Ann,Bob"]
    named = tmp_path / "named.csv"
    named.write_text("\n".join(["winner,loser", *rows]))
    bare = tmp_path / "bare.csv"
    bare.write_text("\n".join(rows))
    done = run("rank", bare, "--no-header", "--winner", "0", "--loser", "1")
    assert done.exit_code == 0, done.output
    assert done.stdout == run("rank", named).stdout


def test_a_board_of_items_that_only_won_names_the_option_that_helps(tmp_path):
    file = tmp_path / "games.csv"
    file.write_text("winner,loser\na,b\nb,c\nc,b\n")
    done = run("rank", file)
    assert done.exit_code == 0, done.output
    assert "--alpha auto" in done.stdout
    assert "alpha=" not in done.stdout
