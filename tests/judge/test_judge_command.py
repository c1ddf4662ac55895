"""`rankwise judge` as a program; its page is in test_web_app_browser."""

from __future__ import annotations

import csv
import io
import os
import signal
import subprocess
import threading
import urllib.request
from concurrent.futures import ThreadPoolExecutor

import pytest

pytest.importorskip("starlette")
pytest.importorskip("uvicorn")
pytest.importorskip("pyarrow")
pytest.importorskip("click")

from rankwise.judge.item_set import read_items
from rankwise.judge.storage import AnswerStore
from rankwise.judge.web_app import Address
from tests.cli.shell import fail
from tests.judge.data import MAX_WAIT, Program, write


def test_nothing_is_lost_when_the_program_is_killed(tmp_path):
    path = write(tmp_path, "name\n" + "\n".join("abcdef"))
    program = Program(path)
    found = program.post("question", judge="Ann")
    for outcome in ("first", "tie", "second"):
        found = program.post("answer", judge="Ann", question=found["question"], outcome=outcome)
    program.end(signal.SIGKILL)
    program = Program(path)
    again = program.post("question", judge="Ann")
    assert again["question"] == found["question"]
    assert again["first"] == found["first"]
    with urllib.request.urlopen(f"{program.url}comparisons.csv") as reply:
        rows = list(csv.DictReader(io.TextIOWrapper(reply)))
    assert [row["outcome"] for row in rows] == ["first", "tie", "second"]
    assert "3 answers in" in program.end(signal.SIGINT)


def test_eight_clients_at_once_lose_nothing(tmp_path):
    path = write(tmp_path, "name\n" + "\n".join(f"n{k}" for k in range(30)))
    program = Program(path)
    lock, kept = threading.Lock(), []

    def judge(name):
        found = program.post("question", judge=name)
        for k in range(20):
            outcome = ("first", "second", "tie")[k % 3]
            number = found["question"]
            found = program.post("answer", judge=name, question=number, outcome=outcome)
            with lock:
                kept.append((name, outcome))

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(judge, [f"judge {k}" for k in range(8)]))
    program.end(signal.SIGTERM)
    found = read_items(path)
    store = AnswerStore(f"{path}.judged.db", found.items)
    assert sorted((c.judge, c.outcome) for c in store.answers()) == sorted(kept)
    assert len(kept) == 160
    store.close()


def test_it_stops_when_its_file_is_deleted_and_saves_the_answers(tmp_path):
    path = write(tmp_path, "name\n" + "\n".join("abcdef"))
    program = Program(path, stderr=subprocess.PIPE)
    found = program.post("question", judge="Ann")
    program.post("answer", judge="Ann", question=found["question"], outcome="tie")
    (tmp_path / "items.csv.judged.db").unlink()
    said = program.process.communicate(timeout=MAX_WAIT)[1]
    assert program.process.returncode == 1
    assert "deleted" in said
    assert len(said.splitlines()) <= 3
    rescued = (tmp_path / "items.csv.judged.db.rescued.csv").read_text()
    assert [row["outcome"] for row in csv.DictReader(io.StringIO(rescued))] == ["tie"]


def test_the_command_fails_in_one_line(tmp_path):
    path = write(tmp_path, "name\na\nb\n")
    taken = Address(port=0)
    nowhere = tmp_path / "nowhere" / "a.db"
    for options, message in (
        ([path, "--database", nowhere, "--port", "0"], "nowhere"),
        ([tmp_path / "no.csv"], "No such file"),
        ([path, "--goal", "bottom"], "--goal"),
        ([path, "--confidence", "2"], "--confidence"),
        ([path, "--top", "0"], "--top"),
        ([path, "--name", "nme"], "no column 'nme'"),
        ([path, "-o", tmp_path / "out.csv"], "no answers yet"),
        ([path, "--port", taken.port], f"port {taken.port} is in use"),
    ):
        assert message in fail("judge", *options)
    taken.socket.close()
    left = {"items.csv", "items.csv.judged.db"}
    assert {name for name in os.listdir(tmp_path) if "-" not in name} <= left


def test_the_database_of_answers_is_not_replaced_by_their_csv(tmp_path):
    items = tmp_path / "items.csv"
    items.write_text("name\na\nb\nc\n")
    database = tmp_path / "items.csv.judged.db"
    store = AnswerStore(database, read_items(items).items)
    store.close()
    content = database.read_bytes()
    assert str(database) in fail("judge", items, "-o", database)
    assert str(database) in fail("judge", items, "--database", database, "-o", database)
    assert database.read_bytes() == content
