"""Questions and answers on the disk: nothing that was acknowledged is lost."""

from __future__ import annotations

import contextlib
import csv
import io
import multiprocessing
import sqlite3
import time
from datetime import timedelta

import pytest

pytest.importorskip("starlette")
pytest.importorskip("uvicorn")
pytest.importorskip("pyarrow")
pytest.importorskip("click")

from starlette.testclient import TestClient

from rankwise.judge import storage
from rankwise.judge.item_set import Item, ItemSet
from rankwise.judge.session import JudgingSession
from rankwise.judge.storage import AnswerStore, NotOpenError
from rankwise.judge.web_app import session_app
from tests.judge.data import FIVE, LOCAL, MAX_WAIT, names, post


def test_an_open_question_waits_for_its_judge(store):
    first = store.ask("Ann", lambda: (0, 1))
    assert store.ask("Ann", lambda: (2, 3)) == first
    assert store.ask("Bob", lambda: (2, 3))[2:] == (2, 3)
    assert store.open_pairs() == {(0, 1), (2, 3)}


def test_a_question_has_one_answer_by_its_own_judge(store):
    question = store.ask("Ann", lambda: (0, 1))
    with pytest.raises(NotOpenError, match="another judge"):
        store.answer("Bob", question.id, "first")
    with pytest.raises(NotOpenError, match="open question"):
        store.answer("Ann", 77, "first")
    with pytest.raises(ValueError, match="one of first, second, tie"):
        store.answer("Ann", question.id, "left")
    store.answer("Ann", question.id, "first")
    with pytest.raises(NotOpenError, match="already answered"):
        store.answer("Ann", question.id, "second")
    assert [c.outcome for c in store.answers()] == ["first"]


def test_undo_asks_the_same_question_again_and_keeps_the_history(store):
    assert not store.undo("Ann")
    for pair, outcome in (((0, 1), "first"), ((2, 3), "tie")):
        store.answer("Ann", store.ask("Ann", lambda pair=pair: pair).id, outcome)
    dropped = store.ask("Ann", lambda: (1, 4))
    assert store.undo("Ann")
    again = store.ask("Ann", None)
    assert again[2:] == (2, 3)
    with pytest.raises(NotOpenError):  # an answer to the question that was on the page before
        store.answer("Ann", dropped.id, "first")
    assert store.ask("Ann", lambda: (0, 4)) == again
    assert [c.outcome for c in store.answers()] == ["first"]
    assert store.undo("Ann")
    assert store.ask("Ann", None)[2:] == (0, 1)
    assert not store.undo("Ann")
    assert store.n_answers() == 0
    kept = sqlite3.connect(store.path).execute("SELECT count(*) FROM question WHERE is_undone = 1")
    assert kept.fetchone() == (2,)


def test_answers_survive_a_second_opening(tmp_path):
    path = tmp_path / "a.db"
    store = AnswerStore(path, FIVE)
    store.answer("Ann", store.ask("Ann", lambda: (0, 1)).id, "tie")
    waiting = store.ask("Ann", lambda: (3, 2))
    again = AnswerStore(path, FIVE)  # while the first is open, as after a crash
    assert again.answers() == store.answers()
    assert again.ask("Ann", lambda: (0, 4)) == waiting
    again.close(), store.close()


def test_other_items_are_told_and_accepted_by_choice(tmp_path):
    path = tmp_path / "a.db"
    store = AnswerStore(path, FIVE)
    store.answer("Ann", store.ask("Ann", lambda: (0, 1)).id, "first")
    store.ask("Ann", lambda: (0, 4))
    store.close()
    others = [Item("a", (("", "new text"),)), *FIVE[1:4], Item("f", (("", "f"),))]
    with pytest.raises(ValueError, match=r"1 new, 1 removed, 1 changed.*'f'.*accept_ch"):
        AnswerStore(path, others)
    store = AnswerStore(path, others, accept_changes=True)
    assert store.item_names() == ["a", "b", "c", "d", "e", "f"]
    assert len(store.answers()) == 1
    session = JudgingSession(ItemSet(others), store, random_state=0)
    asked = {name for k in range(40) for name in names(session, session.question(f"judge {k}"))}
    assert asked == {"a", "b", "c", "d", "f"}
    session.close(), store.close()


def test_undo_of_an_answer_about_an_item_that_is_gone_asks_about_others(tmp_path):
    path = tmp_path / "a.db"
    store = AnswerStore(path, FIVE)
    store.answer("Ann", store.ask("Ann", lambda: (0, 4)).id, "first")
    store.close()
    store = AnswerStore(path, FIVE[:4], accept_changes=True)
    session = JudgingSession(ItemSet(FIVE[:4]), store, random_state=0)
    with TestClient(session_app(session, hosts={"127.0.0.1"}), base_url=LOCAL) as client:
        shown = post(client, "/api/undo")
        assert shown.status_code == 200
        assert {shown.json()[side]["name"] for side in ("first", "second")} < set("abcd")
        assert post(client, "/api/question").json()["question"] == shown.json()["question"]
    assert store.n_answers() == 0
    session.close(), store.close()


N_FILES = 20


def begin_files_and_answer(folder, judge, barrier):
    """Begin each file at the same moment as another process, and give one answer in it."""
    try:
        for k in range(N_FILES):
            barrier.wait()
            store = AnswerStore(folder / f"{k}.db", FIVE)
            question = store.ask(judge, lambda: (0, 1))
            store.answer(judge, question.id, "first")
            barrier.wait()
            assert not store.is_gone()
            assert sorted(c.judge for c in store.answers()) == ["Ann", "Bob"]
            barrier.wait()
            store.close()
    except BaseException:
        barrier.abort()
        raise


def test_two_processes_that_begin_one_file_at_once_keep_both_answers(tmp_path):
    context = multiprocessing.get_context("spawn")
    barrier = context.Barrier(2, timeout=MAX_WAIT)
    processes = [
        context.Process(target=begin_files_and_answer, args=(tmp_path, judge, barrier))
        for judge in ("Ann", "Bob")
    ]
    for process in processes:
        process.start()
    for process in processes:
        process.join()
    assert [process.exitcode for process in processes] == [0, 0]
    for k in range(N_FILES):
        with contextlib.closing(AnswerStore(tmp_path / f"{k}.db", FIVE)) as store:
            assert sorted(c.judge for c in store.answers()) == ["Ann", "Bob"]


def test_a_file_that_could_not_be_begun_is_begun_at_the_next_opening(tmp_path, monkeypatch):
    path = tmp_path / "a.db"
    with monkeypatch.context() as patch:
        patch.setattr(storage, "SCHEMA", (*storage.SCHEMA, "nonsense"))
        with pytest.raises(OSError, match="nonsense"):
            AnswerStore(path, FIVE)
    with contextlib.closing(AnswerStore(path, FIVE)) as store:
        assert store.item_names() == list("abcde")
        assert not store.is_gone()


def test_a_folder_that_is_not_there_is_named(tmp_path):
    with pytest.raises(ValueError, match="nowhere"):
        AnswerStore(tmp_path / "nowhere" / "a.db", FIVE)
    with pytest.raises(OSError, match="permissions"):
        AnswerStore(tmp_path, FIVE)


@pytest.mark.parametrize("ending", ["", "-wal"])
@pytest.mark.parametrize("is_replaced", [True, False])
def test_an_answer_to_a_deleted_file_is_not_acknowledged(store, ending, is_replaced):
    store.answer("Ann", store.ask("Ann", lambda: (0, 1)).id, "first")
    question = store.ask("Ann", lambda: (2, 3))
    assert not store.is_gone()
    file = store.path.with_name(store.path.name + ending)
    content = file.read_bytes()
    file.rename(file.with_name("moved"))
    if is_replaced:
        file.write_bytes(content)
    with pytest.raises(OSError, match="not stored"):
        store.answer("Ann", question.id, "second")
    assert store.is_gone()
    assert "answers are in" in store.rescue()
    rescued = store.path.with_name("answers.db.rescued.csv").read_text()
    assert [row["outcome"] for row in csv.DictReader(io.StringIO(rescued))] == ["first"]


def test_files_of_others_and_damaged_files_are_left_alone(tmp_path):
    other, damaged, text = tmp_path / "o.db", tmp_path / "d.db", tmp_path / "t.db"
    sqlite3.connect(other).execute("CREATE TABLE x (y)")
    with pytest.raises(ValueError, match="another program"):
        AnswerStore(other, FIVE)
    AnswerStore(damaged, FIVE).close()
    connection = sqlite3.connect(damaged)
    connection.execute("PRAGMA user_version = 9")
    connection.close()
    with pytest.raises(ValueError, match="another version"):
        AnswerStore(damaged, FIVE)
    damaged.unlink()
    AnswerStore(damaged, FIVE).close()
    content = damaged.read_bytes()
    damaged.write_bytes(content[:100] + b"\xff" * (len(content) - 100))
    before = damaged.read_bytes()
    with pytest.raises(OSError, match="damaged"):
        AnswerStore(damaged, FIVE)
    assert damaged.read_bytes() == before
    text.write_text("name,price\n" * 100)
    with pytest.raises(OSError, match="not a database"):
        AnswerStore(text, FIVE)
    assert text.read_text().startswith("name")


def test_a_full_disk_keeps_what_was_there_and_says_so(store):
    question = store.ask("Ann", lambda: (0, 1))
    (pages,) = store._db.execute("PRAGMA page_count").fetchone()
    store._db.execute(f"PRAGMA max_page_count = {pages}")
    with pytest.raises(OSError, match="disk is full"):  # noqa: PT012
        for _ in range(3000):
            store.answer("Ann", question.id, "first")
            question = store.ask("Ann", lambda: (0, 1))
    n = store.n_answers()
    store._db.execute("PRAGMA max_page_count = 1000000")
    question = store.ask("Ann", lambda: (0, 1))
    store.answer("Ann", question.id, "second")
    assert store.n_answers() == n + 1


def test_a_judge_who_left_blocks_a_pair_for_some_minutes_only(store, monkeypatch):
    two = FIVE[:2]
    store.ask("gone", lambda: (0, 1))
    assert store.open_pairs() == {(0, 1)}
    monkeypatch.setattr(storage, "RESERVED", timedelta(0))
    time.sleep(0.01)
    assert store.open_pairs() == set()
    assert store.ask("gone", lambda: (2, 3))[2:] == (0, 1)  # who comes back finds it open still
    session = JudgingSession(ItemSet(two), store, random_state=0)
    assert set(names(session, session.question("Ann"))) == {"a", "b"}
    session.close()
