"""People's own files: leaks, twins, row counters, missing groups, gaps, odd names and signals."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time

import numpy as np
import pytest

pytest.importorskip("click")
pytest.importorskip("pyarrow")

from tests.cli.shell import fail, run, shell, succeed

SEEN = "was trained on"


def write_rows(path, columns, rows):
    lines = [",".join(columns), *(",".join(map(str, row)) for row in rows)]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


# Leaks and twins


def inspections(rng, n, start=0):
    """Restaurants of ten cities: few different rows, unless their numbers are looked at."""
    kind, stars = rng.integers(0, 4, n), rng.integers(1, 4, n)
    score = stars + kind + rng.integers(0, 2, n)
    city = rng.integers(0, 10, n)
    return list(zip(range(start, start + n), kind, stars, city, score, strict=True))


@pytest.mark.parametrize("names", [("license_id", "kind", "stars", "city", "y"), (None,)])
def test_honest_splits_raise_no_alarm_and_leaks_do(tmp_path, names):
    rng = np.random.default_rng(0)
    rows = inspections(rng, 800)
    rng.shuffle(rows)
    has_ids = names[0] is not None
    columns = ("license_id", "kind", "stars", "city", "y")[0 if has_ids else 1 :]
    rows = [row if has_ids else row[1:] for row in rows]
    train = write_rows(tmp_path / "train.csv", columns, rows[:500])
    new = write_rows(tmp_path / "new.csv", columns, rows[500:])
    half = write_rows(tmp_path / "half.csv", columns, rows[300:700])
    model = tmp_path / "m.rw"
    succeed("train", train, "--group", "city", "-o", model)
    assert SEEN not in succeed("evaluate", model, new).stderr
    for leak in (train, half):
        said = succeed("evaluate", model, leak).stderr
        assert (SEEN in said) == (has_ids or leak == train), said  # certain with the numbers
    assert SEEN in succeed("compare", train, model, model).stderr


def test_rows_of_other_groups_are_other_rows(tmp_path):
    rng = np.random.default_rng(1)
    rows = [row[1:] for row in inspections(rng, 600)]
    columns = ("kind", "stars", "city", "y")
    train = write_rows(tmp_path / "a.csv", columns, [row for row in rows if row[2] < 5])
    new = write_rows(tmp_path / "b.csv", columns, [row for row in rows if row[2] >= 5])
    succeed("train", train, "--group", "city", "-o", tmp_path / "m.rw")
    assert SEEN not in succeed("evaluate", tmp_path / "m.rw", new).stderr


def test_a_leak_is_told_without_the_columns_that_were_left_out(tmp_path):
    rng = np.random.default_rng(2)
    X = rng.normal(size=(200, 2)).round(4)
    rows = [(f"n{k}", *x, k % 10, float(x.sum())) for k, x in enumerate(X)]
    train = write_rows(tmp_path / "a.csv", ("name", "a", "b", "qid", "y"), rows)
    short = write_rows(
        tmp_path / "b.csv", ("b", "a", "qid", "y"), [(*r[2:0:-1], *r[3:]) for r in rows]
    )
    succeed("train", train, "-o", tmp_path / "m.rw")
    assert f"{SEEN} all of these items" in succeed("evaluate", tmp_path / "m.rw", short).stderr


# Row counters


@pytest.mark.parametrize("share", [0.005, 0.8])
def test_a_row_counter_is_no_feature_even_if_scores_are_missing(tmp_path, share):
    rng = np.random.default_rng(0)
    n = 300
    y = np.sort(rng.normal(size=n))  # the file is sorted by its target
    x = y + 3 * rng.normal(size=n)
    score = ["" if gap else repr(float(v)) for v, gap in zip(y, rng.random(n) < share, strict=True)]
    score[7] = ""
    rows = zip(range(1, n + 1), x, score, strict=True)
    file = write_rows(tmp_path / "a.csv", ("row", "x", "y"), rows)
    found = json.loads(succeed("train", file, "-o", tmp_path / "m.rw", "--json").stdout)
    assert found["data"]["features"] == ["x"]
    why = {column["name"]: column["why"] for column in found["data"]["columns"]}
    assert "counts the rows" in why["row"]
    assert found["chosen"]["held_out_score"] > 0.2
    assert len(succeed("predict", tmp_path / "m.rw", file).stdout.split()) == n


# Groups and gaps


@pytest.fixture
def cities(tmp_path):
    rng = np.random.default_rng(0)
    rows = [(*x, f"c{k % 8}", float(x.sum())) for k, x in enumerate(rng.normal(size=(80, 2)))]
    succeed("train", write_rows(tmp_path / "train.csv", ("a", "b", "city", "y"), rows),
            "--group", "city", "-o", tmp_path / "m.rw")  # fmt: skip
    return rows


def test_a_file_without_the_groups_of_the_model_is_not_judged_in_silence(tmp_path, cities):
    model = tmp_path / "m.rw"
    alone = write_rows(tmp_path / "b.csv", ("a", "b", "y"), [(*r[:2], r[3]) for r in cities])
    for command in (
        ["evaluate", model, alone],
        ["report", model, alone, "-o", tmp_path / "r.html"],
    ):
        message = fail(*command)
        assert "trained on groups by city" in message
        assert "--group none" in message
    succeed("evaluate", model, alone, "--group", "none")
    said = succeed("predict", model, alone)
    assert len(said.stdout.split()) == 80
    assert "trained on groups by city" in said.stderr
    assert "one list" in said.stderr
    assert succeed("predict", model, alone, "--group", "none").stderr == ""


def test_rows_without_a_group_are_left_out_and_counted(tmp_path, cities):
    gone = (3, 41)
    rows = [(*r[:2], "" if k in gone else r[2], r[3]) for k, r in enumerate(cities)]
    file = write_rows(tmp_path / "gaps.csv", ("a", "b", "city", "y"), rows)
    rest = write_rows(tmp_path / "rest.csv", ("a", "b", "city", "y"),
                      [r for k, r in enumerate(cities) if k not in gone])  # fmt: skip
    options = ["--group", "city", "--json"]
    done = succeed("train", file, "-o", tmp_path / "a.rw", *options)
    assert "2 of 80 rows are dropped: 2 without group" in done.stderr
    assert json.loads(done.stdout)["data"]["items"] == 78
    succeed("train", rest, "-o", tmp_path / "b.rw", *options)
    scores = [succeed("predict", tmp_path / f"{m}.rw", rest).stdout for m in "ab"]
    assert scores[0] == scores[1]
    printed = succeed("predict", tmp_path / "a.rw", file).stdout.split()
    assert [k for k, score in enumerate(printed) if score == "nan"] == list(gone)
    assert [score for score in printed if score != "nan"] == scores[0].split()
    out = tmp_path / "out.csv"
    succeed("predict", tmp_path / "a.rw", file, "--column", "p", "-o", out)
    assert [
        k for k, line in enumerate(out.read_text().splitlines()[1:]) if line[-1] == ","
    ] == list(gone)
    (tmp_path / "scores.txt").write_text("\n".join("0" if s == "nan" else s for s in printed))
    of = [json.loads(succeed("evaluate", ranker, file, "--group", "city", "--json").stdout)
          for ranker in (tmp_path / "a.rw", tmp_path / "scores.txt")]  # fmt: skip
    assert of[0]["metrics"] == of[1]["metrics"]


# Names that steer a terminal, memory, signals


def test_escapes_in_names_are_not_printed(tmp_path):
    evil = "\x1b[2Jname\x9b31m"
    rows = [(f"{k / 7:.3f}", k % 5, k % 3) for k in range(30)]
    file = write_rows(tmp_path / "a.csv", (evil, "y", "qid"), rows)
    more = write_rows(
        tmp_path / "c.csv", (evil, evil + "2", "y", "qid"), [(r[0], *r) for r in rows]
    )
    said = [
        run("train", file, "-o", tmp_path / "m.rw"),
        run("train", file, "--target", evil + "x", "-o", tmp_path / "n.rw"),
        run("evaluate", tmp_path / "m.rw", write_rows(tmp_path / "b.csv", ("a", "y", "qid"), rows)),
        run("evaluate", tmp_path / "m.rw", more),
        run("rank", write_rows(tmp_path / "g.csv", ("winner", "loser", "group"),
                               [(evil, "b", evil), ("b", evil, evil)] * 3)),
    ]  # fmt: skip
    for done in said:
        assert "name" in done.output
        assert "\x1b" not in done.output
        assert "\x9b" not in done.output


def test_out_of_memory_is_not_called_damage(tmp_path, monkeypatch):
    import pyarrow
    from pyarrow import parquet

    def full(*_, **__):
        raise pyarrow.lib.ArrowMemoryError("malloc of size 9 failed")

    file = tmp_path / "a.parquet"
    parquet.write_table(pyarrow.table({"y": [1, 2], "a": [3, 4]}), file)
    monkeypatch.setattr(parquet.ParquetFile, "read", full)
    message = fail("train", file, "-o", tmp_path / "m.rw")
    assert message.startswith("not enough memory")
    assert "damaged" not in message


def test_ctrl_c_while_the_command_is_imported_shows_no_traceback():
    code = """
import builtins
real = builtins.__import__
def stop(name, *rest, **options):
    if name == "rankwise.cli.app":
        raise KeyboardInterrupt
    return real(name, *rest, **options)
from rankwise.cli import main
builtins.__import__ = stop
main()
"""
    done = shell("info", code=code)
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "rankwise: interrupted\n")


@pytest.mark.skipif(sys.platform == "win32", reason="no signals to send there")
def test_sigterm_leaves_no_copy_of_standard_input_behind(tmp_path):
    copies = tmp_path / "copies"
    copies.mkdir()
    with subprocess.Popen(
        [sys.executable, "-m", "rankwise", "train", "-", "-o", tmp_path / "m.rw"],
        stdin=subprocess.PIPE,
        env={**os.environ, "TMPDIR": str(copies)},
    ) as running:
        running.stdin.write(b"y,a\n" + b"1,2\n" * 100_000)
        running.stdin.flush()
        for _ in range(1200):
            if list(copies.iterdir()):
                break
            time.sleep(0.1)
        assert len(list(copies.iterdir())) == 1
        time.sleep(0.5)  # all is read, and the command waits for more input
        running.send_signal(signal.SIGTERM)
        assert running.wait(120) == 143
    assert list(copies.iterdir()) == []


def test_train_opens_its_file_once_and_parses_it_once(tmp_path, cities, monkeypatch):
    import builtins

    import pyarrow
    import pyarrow.csv

    opened, file = [], tmp_path / "train.csv"

    def noted(real, name):
        def call(*arguments, **options):
            if str(arguments[0]) == str(file) or name == "parse":
                opened.append(name)
            return real(*arguments, **options)

        return call

    monkeypatch.setattr(builtins, "open", noted(open, "open"))
    monkeypatch.setattr(pyarrow, "memory_map", noted(pyarrow.memory_map, "map"))
    monkeypatch.setattr(pyarrow.csv, "read_csv", noted(pyarrow.csv.read_csv, "parse"))
    succeed("train", file, "--group", "city", "-o", tmp_path / "n.rw")
    assert opened == ["open", "map", "parse"]  # its head is looked at first
