"""`rankwise rank` with scores over tasks: recognized columns, options, output and messages."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

pytest.importorskip("click")

from click.testing import CliRunner

from rankwise.cli.app import app
from rankwise.leaderboard import rate_scores


@pytest.fixture
def tables(tmp_path, monkeypatch):
    """Files with the same scores: one score a row, one model a row, and folds."""
    rng = np.random.default_rng(0)
    wide = pd.DataFrame(
        0.6 - 0.05 * np.arange(6)[:, None] + 0.02 * rng.normal(size=(6, 8)),
        columns=[f"t{k}" for k in range(8)],
    )
    wide.insert(0, "model", [f"m{k}" for k in range(6)])
    wide.loc[2, ["t1", "t5"]] = np.nan
    long = wide.melt("model", var_name="task", value_name="score").dropna()
    long["kind"] = long.task.map(lambda task: "ab"[int(task[1]) % 2] + task[1])
    folds = pd.concat([long.assign(fold=k, score=long.score + 0.01 * k) for k in range(3)])
    transposed = wide.set_index("model").T.rename_axis("task").reset_index()
    files = {"wide": wide, "long": long, "folds": folds, "transposed": transposed}
    for name, table in files.items():
        table.to_csv(tmp_path / f"{name}.csv", index=False)
    monkeypatch.chdir(tmp_path)
    return {"wide": wide, "long": long, "folds": folds}


def run(*arguments):
    return CliRunner().invoke(app, ["rank", *arguments])


def test_long_table_is_recognized_and_named(tables):
    done = run("long.csv", "--json")
    assert done.exit_code == 0
    assert "'score' is read as the scores of 'model' on 'task'" in done.stderr
    rows = json.loads(done.stdout)["rows"]
    board = rate_scores(tables["long"], item="model", task="task", score="score")
    assert [row["item"] for row in rows] == [row.item for row in board]
    np.testing.assert_allclose([row["low"] for row in rows], [row.low for row in board])


def test_wide_table_is_recognized_and_named(tables):
    done = run("wide.csv", "--json")
    assert "scores of 6 models ('model') on 8 tasks" in done.stderr
    long = run("long.csv", "--json")
    for row, other in zip(*(json.loads(each.stdout)["rows"] for each in (done, long)), strict=True):
        assert row == pytest.approx(other)


def test_columns_that_are_no_tasks_are_left_out(tables):
    table = tables["wide"].assign(org="acme", rank=range(6), Average=0.5)
    table["#Params (B)"] = [1, 7, 8, 13, 70, 405]
    table.to_csv("published.csv", index=False)
    done = run("published.csv", "--json")
    assert "without org, rank, Average and 1 more" in done.stderr
    assert json.loads(done.stdout)["rows"] == json.loads(run("wide.csv", "--json").stdout)["rows"]


def test_seeds_of_a_wide_table_are_no_task(tables):
    wide = tables["wide"]
    pd.concat([wide.assign(seed=k) for k in range(2)]).to_csv("seeds.csv", index=False)
    document = json.loads(run("seeds.csv", "--seed", "seed", "--json").stdout)
    assert document["n_tasks"] == 8
    assert document["noise"]["seed"] == 0.0


def test_task_is_recognized_if_only_the_score_is_named(tables):
    named = run("long.csv", "--score", "score", "--json")
    assert json.loads(named.stdout) == json.loads(run("long.csv", "--json").stdout)


def test_notes_name_options_of_the_command(tables):
    table = tables["long"].copy()
    table.loc[table.task == "t1", "score"] *= 100
    table.to_csv("units.csv", index=False)
    done = run("units.csv")
    assert "--task-scale sd" in done.stdout
    assert "task_scale" not in done.output


def test_options_are_arguments_of_rate_scores(tables):
    done = run(
        *("folds.csv", "--item", "model", "--task", "task", "--score", "score", "--seed", "fold"),
        *("--lower-is-better", "all", "--baseline", "m3", "--confidence", "0.9", "--json"),
    )
    assert done.exit_code == 0, done.output
    document = json.loads(done.stdout)
    assert document["baseline"] == "m3"
    assert document["noise"]["seed"] == pytest.approx(0.01, rel=0.01)
    assert document["rows"][0]["item"] == "m5"
    named = run("wide.csv", "--score", "t0,t1,t2", "--score", "t3", "--score", "t4", "--json")
    assert json.loads(named.stdout)["n_tasks"] == 5


def test_files_and_page_are_written(tables):
    done = run("long.csv", "--family", "kind", "-o", "board.md", "--page", "board.html")
    assert done.exit_code == 0, done.output
    assert Path("board.md").read_text().startswith("| rank | model |")
    assert "Which tasks decide?" in Path("board.html").read_text()
    assert run("long.csv").stdout.startswith("rank  model")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["wide.csv", "--score", "t0"], "--task as well"),
        (["long.csv", "--item", "model", "--score", "kind"], "column 'kind' has 'a0', expected"),
        (["long.csv", "--task", "tsk"], "did you mean 'task'"),
        (["long.csv", "--task", "task", "--weight", "kind"], "--task-weight"),
        (["folds.csv"], "has 3 scores for the task"),
        (["long.csv", "--fixed-tasks", "--task", "task"], "repeated scores"),
        (["long.csv", "--anchor", "m1"], "--anchor is for comparisons"),
        (["long.csv", "--backtest"], "--backtest is for comparisons"),
        (["wide.csv", "--baseline", "m9"], "The models are m0, m1"),
        (["wide.csv", "--lower-is-better", "t9"], "--lower-is-better t9 is not a task"),
        (["transposed.csv"], "transpose the table"),
    ],
)
def test_rank_refuses_wrong_columns_of_scores(tables, arguments, message):
    done = run(*arguments)
    assert done.exit_code == 1
    assert message in done.stderr


def test_comparisons_are_still_comparisons(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    table = {"winner": list("abcab"), "loser": list("bcabc"), "score": [1, 2, 3, 4, 5]}
    pd.DataFrame(table).to_csv("games.csv", index=False)
    assert "5 comparisons" in run("games.csv").stdout
    pd.DataFrame({"home": ["a", "b"], "away": ["b", "a"], "x": [1, 2]}).to_csv("no.csv")
    assert "no column 'winner'" in run("no.csv").stderr
    done = run("games.csv", "--missing", "worst")
    assert done.exit_code == 1
    assert "--missing is for scores over tasks" in done.stderr


def test_rank_without_header_names_columns_by_number(tables):
    tables["long"][["model", "task", "score"]].to_csv("bare.csv", index=False, header=False)
    columns = ["--item", "0", "--task", "1", "--score", "2"]
    bare = run("bare.csv", "--no-header", *columns, "--json")
    assert bare.exit_code == 0
    assert json.loads(bare.stdout)["rows"] == json.loads(run("long.csv", "--json").stdout)["rows"]


def test_rank_explains_leaderboards_with_two_header_lines(tables):
    """The format of EuroEval: a line of task types above the names, and scores with errors."""
    lines = ["Task type,,,Sentiment,Reading", "Model,Type,Rank,tweets,wiki"]
    lines += ["m1,x,1.2@@1.2,60.2 ± 1.4@@60.2,75.5 ± 1.1@@75.5"]
    Path("two.csv").write_text("\n".join(lines), encoding="utf-8")
    done = run("two.csv")
    assert done.exit_code == 1
    assert "the first line has no names for 2 columns, which have 'Type', 'Rank'" in done.stderr
    assert "delete the first line" in done.stderr
    Path("one.csv").write_text("\n".join(lines[1:]), encoding="utf-8")
    assert "Write one number in each cell" in run("one.csv").stderr
