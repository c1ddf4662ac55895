"""Files as users have them, and what the command says about them."""

from __future__ import annotations

import json
import sys

import numpy as np
import pytest
import scipy.sparse as sp

from rankwise.datasets import make_ranking, read_ranking, write_letor
from rankwise.persistence import load

pytest.importorskip("click")

from tests.cli.shell import NAMES
from tests.cli.shell import succeed as run

ROW_NUMBERS = 1000 + np.arange(60)


@pytest.fixture(scope="module")
def problem():
    X, y, groups = make_ranking(n_queries=10, n_documents=6, n_features=3, random_state=0)[:3]
    return X, y, groups


@pytest.fixture
def write(tmp_path, problem):
    X, y, groups = problem

    def write(name, first=None, *, y=y, end="\n"):
        columns = dict(zip(NAMES, X.T.tolist(), strict=True)) | {"qid": groups.tolist(), "label": y}
        if first is not None:
            columns = {first: ROW_NUMBERS.tolist()} | columns
        rows = [",".join(columns)]
        rows += [",".join(map(str, row)) for row in zip(*columns.values(), strict=True)]
        path = tmp_path / name
        path.write_text(end.join(rows) + end, newline="")
        return path

    return write


@pytest.fixture
def model(write, tmp_path):
    path = tmp_path / "model.rw"
    run("train", write("plain.csv"), "-o", path)
    return path


# Columns that nobody meant to learn from


@pytest.mark.parametrize("name", ["docID", ""])
def test_features_that_look_like_identifiers_are_dropped(write, model, tmp_path, name):
    done = run("train", write("ids.csv", first=name), "-o", tmp_path / "a.rw")
    shown = name or "(no name)"
    row = next(line for line in done.stdout.splitlines() if line.startswith(shown))
    assert row.removeprefix(shown).split(maxsplit=1)[0] == "dropped"
    coef = [load(path)[-1].coef_ for path in (tmp_path / "a.rw", model)]
    np.testing.assert_array_equal(*coef)
    if not name:
        return
    options = ["--numeric", name, "-o", tmp_path / "b.rw"]
    kept = run("train", write("ids.csv", first=name), *options)
    assert f"features        4: {name}, size, age, stars\n" in kept.stdout


# Blank scores


def test_a_file_of_scores_skips_blank_targets_as_a_model_does(write, model, tmp_path, problem):
    blanks = ["" if k % 3 == 0 else value for k, value in enumerate(problem[1].tolist())]
    table, scores = write("blank.csv", y=blanks), tmp_path / "scores.txt"
    run("predict", model, table, "-o", scores)
    found = [run("evaluate", ranker, table, "--json") for ranker in (model, scores)]
    assert "20 items without score are dropped" in found[1].stderr
    of_model, of_scores = (json.loads(done.stdout) for done in found)
    assert of_scores["items"] == 40
    assert of_scores["metrics"] == of_model["metrics"]


def test_nothing_to_measure_is_said(write, model, problem):
    done = run("evaluate", model, write("flat.csv", y=[0.5] * len(problem[1])))
    assert "no group has items of different scores" in done.stderr


# Wrong files and wrong order


def test_a_dash_is_standard_output(model, write, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    table = write("a.csv")
    done = run("train", table, "-o", "-", "--json")
    assert json.loads(done.stderr[done.stderr.index("{") :])["output"] == "-"
    assert done.stdout_bytes == model_bytes(tmp_path, table)
    assert run("predict", model, table, "-o", "-").stdout == run("predict", model, table).stdout
    for command, rest in (
        (["report", model, table, "-o"], "written to -"),
        (["evaluate", model, table, "--per-group"], "disagreement"),
        (["cv", table, "-o"], "disagreement"),
        (["export", model, "-o"], ""),
    ):
        done = run(*command, "-")
        run(*command, "copy")
        assert done.stdout == (tmp_path / "copy").read_text()
        assert rest in done.stderr
    both = run("cv", table, "-o", "-", "--per-group", "-", code=1)
    assert "standard output (-)" in both.stderr
    assert not (tmp_path / "-").exists()


def model_bytes(folder, table):
    """What `train` with the same arguments writes to a file."""
    run("train", table, "-o", folder / "same.rw", "--json")
    return (folder / "same.rw").read_bytes()


def test_models_and_scores_come_from_standard_input(model, write, tmp_path):
    table = write("a.csv")
    expected = run("predict", model, table).stdout
    assert run("predict", "-", table, input=model.read_bytes()).stdout == expected
    assert "RankRLSCV" in run("info", "-", input=model.read_bytes()).stdout
    direct = run("evaluate", model, table, "--json").stdout
    from_scores = run("evaluate", "-", table, "--json", input=expected.encode()).stdout
    assert json.loads(from_scores)["metrics"] == json.loads(direct)["metrics"]
    twice = run("predict", "-", "-", code=1, input=b"")
    assert "standard input (-)" in twice.stderr


def test_data_come_from_standard_input_and_go_to_standard_output(model, write, tmp_path):
    table = write("a.csv")
    options = ["--column", "p", "-o", "-"]
    done = run("predict", model, "-", *options, input=table.read_bytes())
    lines = done.stdout.splitlines()
    assert lines[0] == "size,age,stars,qid,label,p"
    assert [line.rsplit(",", 1)[1] for line in lines[1:]] == run(
        "predict", model, table
    ).stdout.split()
    run("train", "-", "-o", tmp_path / "b.rw", input=table.read_bytes())
    coef = [load(path)[-1].coef_ for path in (tmp_path / "b.rw", model)]
    np.testing.assert_array_equal(*coef)
    evaluated = run("evaluate", model, "-", "--json", input=table.read_bytes())
    assert json.loads(evaluated.stdout)["items"] == 60


def test_new_features_of_sparse_data_are_left_out_and_this_is_said(tmp_path):
    rng = np.random.default_rng(0)
    X = sp.random(40, 500, density=0.02, random_state=rng, format="csr")
    wider = sp.hstack([X, sp.random(40, 7, density=0.5, random_state=rng)], format="csr")
    y, groups = rng.integers(0, 3, 40), np.repeat(np.arange(8), 5)
    for name, features in (("train", X), ("test", wider)):
        write_letor(tmp_path / name, features, y, groups)
    run("train", tmp_path / "train", "-o", tmp_path / "m.rw")
    done = run("predict", tmp_path / "m.rw", tmp_path / "test")
    assert f"beyond the {X.shape[1]} of the training data are dropped" in done.stderr
    same = run("predict", tmp_path / "m.rw", tmp_path / "train")
    assert done.stdout == same.stdout


# Narrow terminals


def test_a_narrow_terminal_wraps_names_and_never_numbers(monkeypatch, capsys):
    from rankwise.cli.terminal import print_key_values, print_table
    from rankwise.formatting import TextTable

    monkeypatch.setattr(sys.stdout, "isatty", lambda: True, raising=False)
    monkeypatch.setenv("COLUMNS", "50")
    header = ["name", "mean", "interval"]
    print_table(TextTable(header, [["x" * 100, "0.1234", "-0.1234 … +0.5678"], ["y", "1", "2"]]))
    lines = capsys.readouterr().out.splitlines()
    assert max(map(len, lines[1:])) == 50
    assert lines[2].endswith("x…  0.1234  -0.1234 … +0.5678")
    assert lines[3].split() == ["y", "1", "2"]
    table = TextTable(
        header, [["two long words and more", "0.1", "0.1 … " * 5]], notes=["is it? " * 9]
    )
    print_table(table)
    print_key_values([("name", "some words " * 8)])
    lines = capsys.readouterr().out.splitlines()
    first, *others = (line.split() for line in lines[2:5])
    assert first == ["two", "long", "0.1", *["0.1", "…"] * 5]
    assert others == [["words", "and"], ["more"]]
    assert max(map(len, lines[1:])) <= 50
    assert lines[-1] == "      some words some words some words some words"
    monkeypatch.setattr(sys.stdout, "isatty", lambda: False)
    print_table(TextTable(header, [["x" * 100, "0.1234", "2"]]))
    assert "x" * 100 in capsys.readouterr().out


def test_a_comparison_fits_80_columns_with_whole_names(monkeypatch, capsys):
    from rankwise.cli.compare_command import print_comparison
    from rankwise.model_selection import compare

    values = np.random.default_rng(0).random((2, 150))
    test = compare({"AutoRanker": values[0], "RankRLS": values[1] / 2}, greater_is_better=True)
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True, raising=False)
    for columns, has_means in (("80", False), ("130", True)):
        monkeypatch.setenv("COLUMNS", columns)
        print_comparison(test)
        lines = capsys.readouterr().out.splitlines()
        assert max(map(len, lines[1:])) <= int(columns)
        assert lines[2].split()[:2] == ["AutoRanker", "RankRLS"]
        assert ("mean a" in lines[0]) == has_means
        assert "significant" in lines[0]


# What people write into cells


def test_prices_percents_dashes_and_the_names_of_a_spreadsheet(tmp_path):
    rng = np.random.default_rng(0)
    rows = ["sep=;", "User ID;Rating;Price;Sold;Reviews"]
    for k in range(60):
        reviews = "–" if k % 7 == 0 else f"{rng.integers(1, 9)}.{rng.integers(100, 999)}"
        price, sold = rng.uniform(1, 99), rng.integers(0, 99)
        decimals = f"{price / 10 - sold:.1f};{price:.2f}".replace(".", ",")
        rows.append(f"u{k % 6};{decimals} €;{sold} %;{reviews}")
    file = tmp_path / "shop.csv"
    file.write_text("\r\n".join(rows), encoding="utf-16", newline="")
    done = run("train", file, "-o", tmp_path / "m.rw")
    assert "groups          6 by User ID\n" in done.stdout
    assert "scores          Rating\n" in done.stdout
    assert "Price, Sold" in done.stdout
    assert "number with 9 missing values" in done.stdout
    assert read_ranking(file, as_frame=True).X["Reviews"].to_pylist()[1] > 1000
    assert len(run("predict", tmp_path / "m.rw", file).stdout.split()) == 60


def test_features_that_count_from_zero(tmp_path, problem):
    from sklearn.datasets import dump_svmlight_file

    X, y, groups = problem
    file, model = tmp_path / "zero.txt", tmp_path / "m.rw"
    dump_svmlight_file(X, y, str(file), query_id=groups)
    said = run("train", file, "-o", model, code=1).stderr
    assert "zero.txt:1: feature id 0" in said
    assert "--zero-based" in said
    run("train", file, "--zero-based", "-o", model)
    first = run("predict", model, file).stdout
    dump_svmlight_file(X, y, str(file), query_id=groups, zero_based=False)
    run("train", file, "-o", tmp_path / "one.rw")
    assert run("predict", tmp_path / "one.rw", file).stdout == first
    failed = run("train", write_table(tmp_path), "--zero-based", "-o", model, code=1)
    assert "leave out --zero-based" in failed.stderr


def write_table(tmp_path):
    path = tmp_path / "table.csv"
    path.write_text("y,a\n1,2\n2,3\n3,1\n4,4\n")
    return path


def test_scores_that_are_all_equal_or_not_there(tmp_path):
    file = tmp_path / "equal.csv"
    file.write_text("y,qid,a\n" + "".join(f"1,{k % 3},{k}\n" for k in range(12)))
    for command in (["train", file, "-o", tmp_path / "m.rw"], ["cv", file]):
        (line,) = run(*command, code=1).stderr.splitlines()
        assert "all items of a group have the same score in column y" in line
    run("train", write_table(tmp_path), "-o", tmp_path / "m.rw", "--alpha", "1")
    file.write_text("y,a\n,1\n,2\n")
    (line,) = run("evaluate", tmp_path / "m.rw", file, code=1).stderr.splitlines()
    assert line.startswith("rankwise: no item of the data has a true score")


def test_a_gap_in_the_features_of_items_does_not_end_a_board(tmp_path):
    items, games = tmp_path / "items.csv", tmp_path / "games.csv"
    items.write_text("item,size,age\na,1.0,3\nb,2.0,\nc,1.5,2\nd,0.5,4\n")
    games.write_text("winner,loser\na,b\nb,c\na,c\nc,d\nd,a\nb,d\n")
    for model in ("least-squares", "bradley-terry"):
        run("rank", games, "--item-features", items, "--rating-model", model)


# Reading


def test_commands_parse_a_table_once(model, write, tmp_path, monkeypatch):
    from rankwise.datasets.delimited_table import DelimitedTable

    table = write("a.csv")
    run("predict", model, table, "-o", tmp_path / "s.txt")
    parsed = []
    parse = DelimitedTable._parse
    monkeypatch.setattr(
        DelimitedTable, "_parse", lambda *arguments: parsed.append(1) or parse(*arguments)
    )
    for arguments in (
        ["train", table, "-o", tmp_path / "n.rw"],
        ["evaluate", model, table],
        ["compare", table, model, tmp_path / "s.txt", model],
        ["report", model, table, "--previous", tmp_path / "s.txt", "-o", tmp_path / "page.html"],
        ["predict", model, table, "--rank", "-o", tmp_path / "ranked.csv"],
    ):
        parsed.clear()
        run(*arguments)
        assert len(parsed) == 1, arguments
