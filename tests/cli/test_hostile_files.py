"""Files and options that nobody prepared: each failure names the cause, and writes nothing."""

from __future__ import annotations

import pyarrow
import pytest
from pyarrow import parquet

from tests.cli.shell import fail, succeed

N = 40
GRADES = [k % 4 for k in range(N)]
GAMES = "winner,loser,day\na,b,2020-01-02\nb,c,2020-03-01\nc,a,2020-04-01\n"


@pytest.fixture
def csv(tmp_path):
    path = tmp_path / "items.csv"
    rows = [f"q{k // 4},{k * 7 % 11},{k % 4}" for k in range(N)]
    path.write_text("query,price,grade\n" + "\n".join(rows) + "\n")
    return path


@pytest.fixture
def games(tmp_path):
    path = tmp_path / "games.csv"
    path.write_text(GAMES)
    return path


def write_parquet(path, **columns):
    queries = [f"q{k // 4}" for k in range(N)]
    prices = [k * 7 % 11 for k in range(N)]
    table = {"query": queries, "price": prices, **columns, "grade": GRADES}
    parquet.write_table(pyarrow.table(table), path)
    return path


BAD_OPTIONS = {  # of train
    "alpha twice": (["--set", "alpha=1"], "--set alpha=1: pass --alpha 1 instead."),
    "metric twice": (
        ["--model", "auto", "--set", "scoring=auc"],
        "--set scoring=auc: pass --metric auc instead.",
    ),
    "nuisance": (["--nuisance", "nope"], "--nuisance: {file} has no column 'nope'."),
    "ignore": (["--ignore", "prices"], "--ignore: {file} has no column 'prices'; did you mean"),
    "order": (["--order", "nope=a,b"], "--order: {file} has no column 'nope'."),
    "cut-off": (["--metric", "ndcg@0"], "--metric ndcg@0: k=0; expected"),
    "model": (["--model", "svm"], "--model svm is unknown"),
    "delimiter": (["--delimiter", "ab"], "--delimiter ab; pass one character"),
    "format": (["--input-format", "xls"], "--input-format xls; pass one of"),
    "time limit": (
        ["--model", "auto", "--time-limit", "-3"],
        "--time-limit -3.0; expected a non-negative number of seconds",
    ),
}


@pytest.mark.parametrize("name", BAD_OPTIONS)
def test_messages_name_the_option_that_was_passed(tmp_path, csv, name):
    options, expected = BAD_OPTIONS[name]
    message = fail("train", csv, "--target", "grade", *options, "-o", tmp_path / "m.rw")
    assert message.startswith(expected.format(file=csv))
    assert sorted(tmp_path.iterdir()) == [csv]


def test_advice_about_columns_follows_only_columns_that_cannot_be_used(tmp_path, csv):
    options = ["--target", "grade", "--numeric", "price", "--categorical", "price"]
    message = fail("train", csv, *options, "-o", tmp_path / "m.rw")
    assert message.endswith("pass it in one of them.")


def test_groups_of_one_item_are_refused_without_python_arguments(tmp_path):
    path = tmp_path / "singles.csv"
    rows = [f"q{k},{k * 7 % 11},{k % 4}" for k in range(N)]
    path.write_text("query,price,grade\n" + "\n".join(rows) + "\n")
    for command in (["train", path, "-o", tmp_path / "m.rw"], ["cv", path]):
        message = fail(*command, "--target", "grade")
        assert message.startswith(f"{path}: there is nothing to learn: no group has two items")
    assert sorted(tmp_path.iterdir()) == [path]


def test_an_infinite_feature(tmp_path):
    path = tmp_path / "inf.csv"
    rows = [f"q{k // 4},{'inf' if k == 7 else k * 7 % 11},{k % 4}" for k in range(N)]
    path.write_text("query,price,grade\n" + "\n".join(rows) + "\n")
    message = fail("train", path, "--target", "grade", "-o", tmp_path / "m.rw")
    assert "column price has an infinite value" in message


def test_vectors_of_a_parquet_file_are_learned_and_evaluated(tmp_path):
    path = write_parquet(tmp_path / "v.parquet", v=[[float(k), 1.0 - k % 3] for k in range(N)])
    model = tmp_path / "m.rw"
    done = succeed("train", path, "--target", "grade", "--alpha", "1", "-o", model)
    assert "vector of 2 numbers" in done.stdout
    assert "was trained on all of these items" in succeed("evaluate", model, path).stderr


UNUSABLE = {
    "struct": [{"a": k} for k in range(N)],
    "duration": pyarrow.array(range(N), pyarrow.duration("s")),
    "binary": [b"\xff%d" % k for k in range(N)],
}


@pytest.mark.parametrize("name", UNUSABLE)
def test_types_that_no_model_can_use_are_refused_by_name(tmp_path, name):
    path = write_parquet(tmp_path / "t.parquet", odd=UNUSABLE[name])
    options = ["--target", "grade", "--alpha", "1", "-o", tmp_path / "m.rw"]
    assert f"{path}: column odd has the type {name}" in fail("train", path, *options)
    assert sorted(tmp_path.iterdir()) == [path]
    succeed("train", path, *options, "--ignore", "odd")


def test_words_of_the_command_in_other_messages(tmp_path, csv, games):
    model = tmp_path / "m.rw"
    succeed("train", csv, "--target", "grade", "--alpha", "1", "-o", model)
    assert "--to foo is unknown. Choose one of 'json'" in fail("export", model, "--to", "foo")
    assert fail("cv", csv, "--target", "grade", "--leave", "99").startswith(
        "--leave 99; expected 2"
    )
    assert "--confidence 95: expected" in fail("predict", model, csv, "--confidence", "95")
    assert f"--output {csv} is a file" in fail("demo", "-o", csv)
    assert "--until foo: expected a date" in fail("rank", games, "--time", "day", "--until", "foo")
    assert "--sides winner; expected a list" in fail("rank", games, "--sides", "winner")
    prior = tmp_path / "prior.csv"
    prior.write_text("name,rating\na,1\nb,2\n")
    assert "Pass --item with the right one." in fail("rank", games, "--prior", prior)


@pytest.mark.parametrize("suffix", [".pdf", ".xlsx", ".parquet"])
def test_a_board_is_not_written_as_csv_under_another_suffix(tmp_path, games, suffix):
    output = tmp_path / f"board{suffix}"
    assert f"cannot be written as {suffix}" in fail("rank", games, "-o", output)
    assert not output.exists()


@pytest.mark.parametrize("options", [[], ["--item", "model", "--task", "task", "--score", "score"]])
def test_a_word_among_scores_is_named_with_its_line(tmp_path, options):
    path = tmp_path / "s.csv"
    path.write_text("model,task,score\nm1,t1,0.5\nm1,t2,\nm2,t1,NA\nm2,t2,fast\n")
    done = succeed("rank", path, *options, code=1)
    assert f"{path}:5: column 'score' has 'fast', expected a number" in done.stderr


def test_judge_refuses_before_it_writes_a_database(tmp_path):
    pytest.importorskip("starlette")
    items = tmp_path / "items.csv"
    items.write_text("name,age\na,20\nb,21\n")
    assert "--port 99999: expected" in fail("judge", items, "--port", "99999")
    assert "token" in fail("judge", items, "--token", "ab")
    assert sorted(tmp_path.iterdir()) == [items]
    missing = tmp_path / "nope.csv"
    assert (
        fail("judge", missing, "-o", tmp_path / "a.csv") == f"{missing}: No such file or directory"
    )
    text = tmp_path / "other.csv"
    text.write_text("name,price\n" * 100)
    message = fail("judge", items, "--database", text)
    assert "not a database of answers; name another file with --database" in message
