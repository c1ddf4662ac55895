"""What goes wrong on the command line ends in one line, an exit code, and no half-written file."""

from __future__ import annotations

import io
import os
import re
import signal
import subprocess
import sys
import warnings
from pathlib import Path

import pytest

pytest.importorskip("click")

from rankwise.cli import terminal
from rankwise.datasets.files import write_files
from rankwise.losses import HingeLoss, LogisticLoss
from tests.cli.shell import TABLE, fail, run, succeed

FULL = Path("/dev/full")


BAD_DATA = {  # what else can be wrong with a file is tested where files are read
    "malformed row": ("2 qid:1 1:0.5\n1 qid:1 1:0.5 2=3\n", "{file}:2"),
    "no column to learn from": ("y,qid,a\n1,1,\n2,1,\n", "{file}: no column can be learned from"),
    "no target column": ("height,qid,a\n1,1,2\n2,1,4\n", "target"),
}


@pytest.mark.parametrize("name", BAD_DATA)
def test_bad_data_are_told_in_one_line(tmp_path, name):
    text, expected = BAD_DATA[name]
    data, out = tmp_path / "data", tmp_path / "m.rw"
    data.write_text(text)
    message = fail("train", data, "-o", out)
    assert expected.format(file=data) in message
    assert sorted(tmp_path.iterdir()) == [data]
    assert fail("cv", data)


def test_wrong_kinds_of_files(tmp_path, table, model):
    missing = tmp_path / "missing.csv"
    assert fail("train", missing, "-o", tmp_path / "m.rw").startswith(f"{missing}: ")
    assert fail("predict", missing, table).startswith(f"{missing}: ")
    assert "not a rankwise model" in fail("predict", table, table)
    assert str(model) in fail("predict", model, model)
    assert str(tmp_path) in fail("train", tmp_path, "-o", tmp_path / "m.rw")
    cut = tmp_path / "cut.rw"
    cut.write_bytes(model.read_bytes()[:-50])
    assert str(cut) in fail("info", cut)
    assert str(cut) in fail("evaluate", cut, table)
    assert "expected parquet" in fail(
        "train", table, "--input-format", "parquet", "-o", tmp_path / "m.rw"
    )


BAD_PAIRS = {
    "several alphas": ("winner,loser\nAnn,Bob\n", ["--alpha", "1,2"], "one number"),
    "loser and sides": ("a,b,winner\nAnn,Bob,a\n", ["--sides", "a,b", "--loser", "b"], "--loser"),
}


@pytest.mark.parametrize("name", BAD_PAIRS)
def test_bad_comparisons_are_told_in_one_line(tmp_path, name):
    text, options, expected = BAD_PAIRS[name]
    pairs = tmp_path / "pairs.csv"
    pairs.write_text(text)
    assert expected.format(file=pairs) in fail("rank", pairs, *options, "-o", tmp_path / "b.csv")
    assert sorted(tmp_path.iterdir()) == [pairs]


def test_wrong_scores(tmp_path, table):
    scores = tmp_path / "s.txt"
    n = len(table.read_text().splitlines()) - 1
    scores.write_text("1.5\n" * (n - 1))
    message = fail("evaluate", scores, table, *TABLE)
    assert f"{n - 1} scores" in message
    assert f"{n} items" in message
    scores.write_text("1.5\nx\n")
    assert f"{scores}:2" in fail("evaluate", scores, table, *TABLE)


def test_outputs_are_checked_before_anything_is_read(tmp_path):
    data = tmp_path / "never-read.csv"
    assert "does not exist" in fail("train", data, "-o", tmp_path / "no" / "m.rw")
    assert "folder" in fail("train", data, "-o", tmp_path)
    assert "folder" in fail("cv", data, "--per-group", tmp_path)
    assert "does not exist" in fail("report", data, data, "-o", tmp_path / "no" / "r.html")
    assert "does not exist" in fail("rank", data, "-o", tmp_path / "no" / "r.csv")
    assert "--leave pair gives no score" in fail(
        "cv", data, "--leave", "pair", "-o", tmp_path / "a"
    )


def test_an_output_never_replaces_an_input(tmp_path, table, model):
    before = table.read_bytes()
    for command in (
        ["train", table, *TABLE, "-o", table],
        ["predict", model, table, "-o", table],
        ["predict", model, table, "-o", model],
        ["evaluate", model, table, "--per-group", table],
        ["cv", table, *TABLE, "-o", table],
        ["cv", table, *TABLE, "-o", tmp_path / "x", "--per-group", tmp_path / "x"],
        ["export", model, "-o", model],
        ["report", model, table, "-o", table],
    ):
        assert "input" in fail(*command)
    assert table.read_bytes() == before


def test_no_permission_is_noticed_before_training(tmp_path, monkeypatch):
    monkeypatch.setattr(os, "access", lambda *_: False)
    message = fail("train", tmp_path / "never-read", "-o", tmp_path / "m.rw")
    assert message.startswith(f"{tmp_path / 'm.rw'}: no permission")


@pytest.mark.skipif(not FULL.exists(), reason="needs /dev/full")
def test_a_full_disk(tmp_path, table, model):
    message = fail("train", table, *TABLE, "-o", FULL)
    assert message.startswith("/dev/full: No space left on device, nothing was")
    with FULL.open("w") as full:
        done = subprocess.run(
            [sys.executable, "-m", "rankwise", "predict", model, table],
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
        )
    assert done.returncode == 1
    assert done.stderr.startswith("rankwise: standard output: No space left on device")
    assert done.stderr.count("\n") == 1


def test_a_broken_pipe_is_no_failure(tmp_path, model):
    data = tmp_path / "long.csv"
    data.write_text("size,age,stars,shop\n" + "1,2,3,4\n" * 20000)
    with subprocess.Popen(
        [sys.executable, "-m", "rankwise", "predict", model, data],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as running:
        running.stdout.readline()
        running.stdout.close()
        assert running.stderr.read() == b""
    assert running.returncode == 141


def after_interrupt(error):
    """The error as NumPy raises it when Ctrl-C ends the import of a compiled module."""
    error.__cause__ = KeyboardInterrupt()
    return error


def break_training(monkeypatch, error):
    from rankwise.cli.training_input import TrainingSet

    def broken(*_):
        raise error

    monkeypatch.setattr(TrainingSet, "fit", broken)


@pytest.mark.parametrize(
    "error, code, words",
    [
        (KeyboardInterrupt(), 130, "interrupted"),
        (after_interrupt(RuntimeError("not a valid format")), 130, "interrupted"),
        (MemoryError(), 1, "not enough memory"),
        (ImportError("pip install this"), 1, "pip install this"),
        (ValueError("two\n  lines"), 1, "two lines"),
        (TypeError("a bug"), 1, "please report it: TypeError: a bug"),
    ],
)
def test_whatever_happens_is_one_line(tmp_path, table, monkeypatch, error, code, words):
    break_training(monkeypatch, error)
    command = ["train", table, *TABLE, "-o", tmp_path / "m.rw"]
    done = run(*command)
    assert done.exit_code == code
    assert done.stderr.startswith("rankwise: ")
    assert words in done.stderr
    assert done.output.count("\n") == 1
    assert "Traceback" in run(*command, "--debug").stderr
    assert "Traceback" not in run(*command).stderr  # nothing is remembered


@pytest.mark.parametrize("alpha", [[], ["--alpha", "1e-6"]], ids=["search", "one alpha"])
@pytest.mark.parametrize("model, loss", [("ranksvm", HingeLoss), ("ranklogistic", LogisticLoss)])
def test_an_interrupted_training_leaves_the_model_file_as_it_was(
    tmp_path, table, monkeypatch, model, loss, alpha
):
    at, looks = loss.at, []

    def impatient(self, scores):
        looks.append(1)
        if len(looks) == 3:
            raise KeyboardInterrupt
        return at(self, scores)

    monkeypatch.setattr(loss, "at", impatient)
    output = tmp_path / "m.rw"
    output.write_bytes(b"an earlier model")
    done = run("train", table, *TABLE, "--model", model, *alpha, "-o", output)
    assert done.exit_code == 130
    assert len(looks) == 3
    assert output.read_bytes() == b"an earlier model"
    assert "interrupted" in done.stderr


def test_warnings_are_notes_of_one_line_told_once(tmp_path, table, monkeypatch):
    from rankwise.cli.training_input import TrainingSet

    fit = TrainingSet.fit

    def warning(*arguments):
        for _ in range(3):
            warnings.warn("mind\nthe step", stacklevel=1)
        warnings.warn("old news", DeprecationWarning, stacklevel=1)
        return fit(*arguments)

    monkeypatch.setattr(TrainingSet, "fit", warning)
    command = ["train", table, *TABLE, "-o", tmp_path / "m.rw"]
    assert succeed(*command).stderr == "rankwise: note: mind the step\n"
    assert succeed(*command, "--quiet").stderr == ""


def test_quiet_work_draws_no_bars(monkeypatch, capsys):
    from rankwise.cli import terminal
    from rankwise.runtime import progress, threads

    monkeypatch.setattr(sys.stderr, "isatty", lambda: True, raising=False)
    for is_quiet in (False, True, False):
        with terminal.command_session(quiet=is_quiet), monkeypatch.context() as later:
            bar = progress.Progress("x", 1)
            later.setattr(threads.time, "monotonic", lambda: 1e12)
            bar.update(1)
            assert ("1/1" in capsys.readouterr().err) != is_quiet


def test_a_terminal_without_greek_letters_still_gets_its_table(tmp_path, monkeypatch):
    from rankwise.cli import main

    scores, data = tmp_path / "α.txt", tmp_path / "data.txt"
    scores.write_text("1\n2\n3\n")
    data.write_text("1 qid:1 1:1\n2 qid:1 1:2\n1 qid:2 1:2\n")
    out = io.TextIOWrapper(io.BytesIO(), encoding="ascii")
    monkeypatch.setattr(sys, "stdout", out)
    monkeypatch.setattr(signal, "signal", lambda *_: None)
    monkeypatch.setattr(sys, "argv", ["rankwise", "evaluate", str(scores), str(data)])
    with pytest.raises(SystemExit) as end:
        main()
    assert end.value.code == 0
    assert b"disagreement" in out.buffer.getvalue()


GAMES = "winner,loser\na,b\nb,c\na,c\nc,a\n"


@pytest.mark.skipif(not FULL.exists(), reason="needs /dev/full")
def test_no_file_of_cv_is_replaced_if_one_cannot_be_written(tmp_path, table):
    scores = tmp_path / "scores.txt"
    scores.write_text("the scores of yesterday")
    command = ["cv", table, *TABLE, "--leave", "3", "-o", scores, "--per-group", FULL]
    assert str(FULL) in fail(*command)
    assert scores.read_text() == "the scores of yesterday"


@pytest.mark.skipif(not FULL.exists(), reason="needs /dev/full")
def test_no_file_of_rank_is_replaced_if_one_cannot_be_written(tmp_path):
    games, board = tmp_path / "games.csv", tmp_path / "board.csv"
    games.write_text(GAMES)
    board.write_text("the board of yesterday")
    assert str(FULL) in fail("rank", games, "-o", board, "--page", FULL)
    assert board.read_text() == "the board of yesterday"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["board.csv", "games.csv"]


def test_rank_writes_board_and_page(tmp_path):
    games, board, page = tmp_path / "games.csv", tmp_path / "board.csv", tmp_path / "page.html"
    games.write_text(GAMES)
    succeed("rank", games, "-o", board, "--page", page)
    assert len(board.read_text().splitlines()) == 4
    assert page.read_text().startswith("<!DOCTYPE html>")


def test_a_later_file_that_fails_leaves_the_earlier_files_unchanged(tmp_path):
    first = tmp_path / "first"
    first.write_text("before")
    with pytest.raises(OSError, match="folder"):
        write_files([(first, b"after"), (tmp_path / "nowhere" / "second", b"after")])
    assert [path.read_text() for path in tmp_path.iterdir()] == ["before"]


@pytest.mark.parametrize("command", ["train", "cv"])
def test_features_whose_squares_overflow_are_refused_by_name(tmp_path, command):
    path = tmp_path / "huge.csv"
    path.write_text("a,b,y\n" + "".join(f"{k}.5e300,{k},{k % 3}\n" for k in range(1, 40)))
    output = ["-o", tmp_path / "m.rw"] if command == "train" else []
    message = fail(command, path, *output)
    assert "column a" in message
    assert "encountered" not in message


def test_the_skewness_of_scores_of_1e300_is_a_number(tmp_path):
    path = tmp_path / "huge.csv"
    rows = [f"{k * 7 % 61},{(1 if k % 9 else 1e300) * k}\n" for k in range(1, 60)]
    path.write_text("a,y\n" + "".join(rows))
    shown = succeed("train", path, "-o", tmp_path / "m.rw").stderr
    assert "encountered" not in shown
    assert "skewness nan" not in shown
    assert re.search(r"skewness [34]\.\d", shown)


def test_numpy_warnings_become_one_note_in_our_words(tmp_path, capsys):
    with terminal.command_session():
        warnings.warn("overflow encountered in square", RuntimeWarning, stacklevel=1)
        warnings.warn("invalid value encountered in subtract", RuntimeWarning, stacklevel=1)
    shown = capsys.readouterr().err
    assert shown.count("rankwise: note:") == 1
    assert "encountered" not in shown
