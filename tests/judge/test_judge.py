"""`rankwise judge`: items, answers on the disk, who may ask; the page is in test_judge_browser."""

from __future__ import annotations

import contextlib
import csv
import io
import json
import multiprocessing
import os
import signal
import socket
import sqlite3
import subprocess
import threading
import time
import urllib.error
import urllib.request
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta

import numpy as np
import pytest

pytest.importorskip("starlette")
pytest.importorskip("uvicorn")
pytest.importorskip("pyarrow")
pytest.importorskip("click")

from starlette.testclient import TestClient

from rankwise import PairGraph
from rankwise.judge import create_app, storage
from rankwise.judge import session as session_module
from rankwise.judge.item_set import Item, ItemSet, read_items
from rankwise.judge.session import JudgingSession
from rankwise.judge.storage import AnswerStore, NotOpenError
from rankwise.judge.web_app import Address, session_app
from rankwise.leaderboard.inference import pair_suggestions
from rankwise.leaderboard.inference.pair_suggestions import answers_to_go
from rankwise.leaderboard.inference.posterior import fit_posterior
from tests.cli.shell import fail, succeed
from tests.judge.data import MAX_WAIT, Program

LOCAL = "http://127.0.0.1"
FIVE = [Item(name, (("", f"about {name}"),)) for name in "abcde"]


@pytest.fixture
def store(tmp_path):
    store = AnswerStore(tmp_path / "answers.db", FIVE)
    yield store
    store.close()


@pytest.fixture
def session(store):
    session = JudgingSession(ItemSet(FIVE), store, random_state=0)
    yield session
    session.close()


@pytest.fixture
def client(session):
    app = session_app(session, hosts={"127.0.0.1"}, title="Best?")
    with TestClient(app, base_url=LOCAL) as client:
        yield client


def post(client, path, **body):
    return client.post(path, json={"judge": "Ann"} | body)


def names(session, question):
    """Of the two items, in the order of their sides."""
    return tuple(session.items[place].name for place in session.positions(question))


# ---------------------------------------------------------------- items


def write(tmp_path, text, name="items.csv"):
    path = tmp_path / name
    path.write_text(text, encoding="utf-8")
    return path


def test_a_table_gives_names_cells_and_features(tmp_path):
    path = write(tmp_path, "price;Name;note\n9,5;Brie;soft\n14,5;Comté;\n")
    found = read_items(path)
    assert found.names == ["Brie", "Comté"]
    assert [column for column, _ in found.items[0].cells] == ["price", "Name", "note"]
    assert [column for column, _ in found.items[1].cells] == ["price", "Name"]  # a gap says nothing
    assert found.features.shape[0] == 2
    np.testing.assert_allclose(found.features.mean(axis=0), 0, atol=1e-12)
    assert read_items(path, use_features=False).features is None
    only = read_items(path, show=["note", "price"])
    assert [column for column, _ in only.items[0].cells] == ["note", "price"]


def test_lines_and_folders_are_items_too(tmp_path):
    assert read_items(write(tmp_path, "\ufeffone\n\ntwo \n", "a.txt")).names == ["one", "two"]
    folder = tmp_path / "folder"
    folder.mkdir()
    (folder / "x.PNG").write_bytes(b"png")
    (folder / "y.md").write_text("# y")
    (folder / "other.bin").write_bytes(b"")
    found = read_items(folder)
    assert found.names == ["x", "y"]
    assert found.items[0].image.name == "x.PNG"
    assert found.items[1].cells == (("", "# y"),)


def test_a_folder_does_not_follow_links_out_of_itself(tmp_path):
    (tmp_path / "secret.txt").write_text("secret")
    folder = tmp_path / "folder"
    folder.mkdir()
    (folder / "a.txt").write_text("about a")
    (folder / "c.md").mkdir()
    (folder / "d.txt").symlink_to(folder / "a.txt")  # a link inside is a file like others
    assert read_items(folder).names == ["a", "d"]
    for name in ("b.txt", "b.png"):
        (folder / name).symlink_to(tmp_path / "secret.txt")
        with pytest.raises(ValueError, match=f"{name} is outside"):
            read_items(folder)
        (folder / name).unlink()


@pytest.mark.parametrize(
    "text, options, message",
    [
        ("name\nx\n", {}, "1 item;"),
        ("name,a\nx,1\nx,2\n", {}, "item 1 has the name of another item"),
        ("name,a\n,1\ny,2\n", {}, "item 1 has no name"),
        ("name,a\nx,\ny,2\n", {"show": ["a"]}, "nothing to show.*x"),
        ("a,b\n1,1\n1,1\n", {}, "unique values"),
        ("name,a\nx,1\ny,2\n", {"name": "nme"}, "no column 'nme'; its columns are name, a"),
        ("name,p\nx,../../etc/passwd\ny,\n", {"image": "p"}, "outside"),
        ("name,p\nx,no.png\ny,\n", {"image": "p"}, "not a picture"),
        ("name,p\nx,items.csv\ny,\n", {"image": "p"}, "not a picture"),
        ("name\n" + "\n".join(f"n{k}" for k in range(2001)), {}, "2,001 items"),
        (f"name,a\nx,{'w' * 100_001}\ny,2\n", {}, "100,000 characters"),
    ],
)
def test_items_that_cannot_be_judged_are_refused(tmp_path, text, options, message):
    with pytest.raises(ValueError, match=message):
        read_items(write(tmp_path, text), **options)


def test_options_of_tables_are_refused_for_lines(tmp_path):
    with pytest.raises(ValueError, match="show= and image= are for tables"):
        read_items(write(tmp_path, "a\nb\n", "a.txt"), show=["x"])


# ---------------------------------------------------------------- answers on the disk


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


# ---------------------------------------------------------------- choice of questions


def test_the_first_round_connects_all_items(session):
    pairs = [names(session, session.question(f"judge {k}")) for k in range(5)]
    assert {name for pair in pairs for name in pair} == set("abcde")
    reached = {"a"}
    for _ in range(5):
        reached |= {name for pair in pairs if reached & set(pair) for name in pair}
    assert reached == set("abcde")


def test_two_judges_are_not_asked_the_same_at_once_and_nobody_twice(session):
    asked = {"Ann": [], "Bob": []}
    for _ in range(5):
        questions = {judge: session.question(judge) for judge in asked}
        assert len({frozenset(names(session, q)) for q in questions.values()}) == 2
        for judge, question in questions.items():
            asked[judge].append(frozenset(names(session, question)))
            session.answer(judge, question.id, "first")
        session.refresh()
    assert all(len(set(pairs)) == 5 for pairs in asked.values())


def test_sides_are_random_and_recorded(store):
    session = JudgingSession(ItemSet(FIVE), store, random_state=1)
    for k in range(100):
        question = session.question(f"judge {k}")
        session.answer(f"judge {k}", question.id, "first")
    session.close()
    answers = store.answers()
    lower_first = np.mean([c.first < c.second for c in answers])
    assert 0.3 < lower_first < 0.7
    assert {c.outcome for c in answers} == {"first"}


def test_all_pairs_asked_still_gives_questions(store):
    session = JudgingSession(ItemSet(FIVE[:2]), store, random_state=0)
    for _ in range(4):
        session.answer("Ann", session.question("Ann").id, "first")
    assert session.store.n_answers() == 4
    session.close()


def knowing_judge(path, n_answers, level=0.9):
    """A session in which Ann always takes the item that is later in the alphabet."""
    items = [Item(f"i{k:02}", (("", str(k)),)) for k in range(12)]
    store = AnswerStore(path, items)
    session = JudgingSession(ItemSet(items), store, goal="top", top=3, level=level, random_state=0)
    session.close()  # no thread that rates between an answer and the next question: refresh does it
    question = session.question("Ann")
    for _ in range(n_answers):
        first, second = names(session, question)
        session.refresh()
        question = session.answer("Ann", question.id, "first" if first > second else "second")
    session.refresh()
    store.close()
    return session


def test_a_judge_who_knows_the_order_gets_it(tmp_path):
    session = knowing_judge(tmp_path / "a.db", 40)
    assert [row["item"] for row in session.board()["rows"][:3]] == ["i11", "i10", "i09"]
    again = knowing_judge(tmp_path / "b.db", 40)  # what is asked depends on the answers alone
    assert again.board() == session.board()
    assert again._rated.confidence == session._rated.confidence > 0.4


def test_the_board_equals_rank_on_the_exported_answers(tmp_path):
    items = [Item(f"i{k:02}", (("", str(k)),)) for k in range(8)]
    store = AnswerStore(tmp_path / "a.db", items)
    session = JudgingSession(ItemSet(items), store, random_state=0)
    session.close()  # no thread beside the test
    rng = np.random.default_rng(1)
    for _ in range(60):
        question = session.question("Ann")
        session.answer("Ann", question.id, str(rng.choice(["first", "second", "tie"])))
    session.refresh()
    path = tmp_path / "comparisons.csv"
    path.write_text(store.csv(), encoding="utf-8")
    succeed("rank", path, "-o", tmp_path / "board.json")
    board = json.loads((tmp_path / "board.json").read_text(encoding="utf-8"))
    store.close()
    shown = session.board()["rows"]
    assert [row["item"] for row in shown] == [row["item"] for row in board["rows"]]
    assert [row["best"] for row in shown] == [row["best_rank"] for row in board["rows"]]
    for name in ("rating", "low", "high"):
        expected = [row[name] for row in board["rows"]]
        np.testing.assert_allclose([row[name] for row in shown], expected, rtol=1e-9)


def test_the_posterior_is_fitted_once_for_each_refresh(tmp_path, monkeypatch):
    fits = []

    def fit_and_count(*arguments):
        fits.append(arguments)
        return fit_posterior(*arguments)

    for module in (session_module, pair_suggestions):
        monkeypatch.setattr(module, "fit_posterior", fit_and_count)
    session = knowing_judge(tmp_path / "a.db", 1)
    fits.clear()
    session.store = AnswerStore(tmp_path / "a.db", session.items)
    session.refresh()
    session.store.close()
    assert len(fits) == 1


def test_an_application_for_another_server(tmp_path):
    table = write(tmp_path, "name\nBrie\nComté\nFeta\n")
    app = create_app(table, tmp_path / "a.db", title="Tastier?", random_state=0)
    with TestClient(app, base_url="http://localhost") as client:
        question = post(client, "/api/question").json()
        assert question["title"] == "Tastier?"
        post(client, "/api/answer", question=question["question"], outcome="first")
    with contextlib.closing(AnswerStore(tmp_path / "a.db", read_items(table).items)) as store:
        assert store.n_answers() == 1


def test_the_page_says_when_to_stop_and_not_before(tmp_path):
    items = [Item(name, (("", name),)) for name in "abc"]
    store = AnswerStore(tmp_path / "a.db", items)
    said = []
    session = JudgingSession(ItemSet(items), store, goal="top", top=1, random_state=0)
    question = session.question("Ann")
    for _ in range(30):
        outcome = "first" if names(session, question)[0] == "c" else "second"
        if "c" not in names(session, question):
            outcome = "tie"
        question = session.answer("Ann", question.id, outcome)
        session.refresh()
        said.append((session.progress("Ann")["confidence"], session.progress("Ann")["text"]))
    assert said[0][0] < session.level <= said[-1][0]
    for settled, text in said:
        assert ("settled" in text) == ("you may stop" in text) == (settled >= session.level)
    session.level = session._rated.confidence
    assert "you may stop" in session.progress("Ann")["text"]
    session.level = np.nextafter(session._rated.confidence, 2)
    assert "you may stop" not in session.progress("Ann")["text"]
    session.close(), store.close()


def test_answers_to_go_are_few_where_little_is_open_and_none_when_settled():
    """The first of four is ahead after two wins against each other one, after eight, after 64."""
    left = {}
    for times in (2, 8, 64):
        graph = PairGraph([0, 0, 0] * times, [1, 2, 3] * times, n_items=4)
        belief = fit_posterior(graph, None, 1.0)
        left[times] = answers_to_go(belief, "top", 1, 0.9, np.random.default_rng(0))
    assert left[2] > left[8] == left[64] == 0
    belief = fit_posterior(PairGraph([0], [1], n_items=30), None, 1.0)
    assert answers_to_go(belief, "order", 1, 0.99, np.random.default_rng(0)) is None


def test_futures_and_what_is_left_add_up_to_what_is_believed():
    graph = PairGraph([0, 1, 2, 0], [1, 2, 3, 3], n_items=4)
    belief = fit_posterior(graph, None, 1.0)
    for pair in [(0, 1), (2, 3), (0, 1)]:
        belief.observe(*pair)
    means, errors = belief.futures(4000, 4000, np.random.default_rng(0))
    np.testing.assert_allclose(means.mean(axis=0), belief.mean, atol=0.05)
    total = np.cov(means.T) + np.cov(errors.T)
    np.testing.assert_allclose(total, belief.covariance, atol=0.2)


def test_blind_judges_see_no_names_before_and_no_board_until_it_is_settled(tmp_path):
    path = write(tmp_path, "name,note\nBrie,soft\nComté,hard\nFeta,white\n")
    found = read_items(path, is_blind=True)
    with contextlib.closing(AnswerStore(tmp_path / "b.db", found.items)) as store:
        session = JudgingSession(found, store, top=1, is_blind=True, random_state=0)
        with TestClient(session_app(session, hosts={"127.0.0.1"}), base_url=LOCAL) as client:
            asked = post(client, "/api/question")
            assert not [name for name in found.names if name in asked.text]
            assert asked.json()["progress"]["isHidden"]
            assert client.get("/comparisons.csv").status_code == 403
            body = {"question": asked.json()["question"], "outcome": "first"}
            told = post(client, "/api/answer", **body).json()["message"]
            assert [name in told for name in found.names].count(True) == 2
            session.close()  # no thread beside the test
            session.refresh()
            assert client.get("/api/board").json()["rows"] == []
            session._rated = session._rated._replace(confidence=0.95)
            assert len(client.get("/api/board").json()["rows"]) == 3
            assert client.get("/comparisons.csv").status_code == 200
    with pytest.raises(ValueError, match="Brie"):
        read_items(write(tmp_path, "name\nBrie\nComté\n"), is_blind=True)


def test_an_odd_number_in_a_column_does_not_end_the_board(tmp_path):
    rows = [f"n{k},{k},{1e200 if k == 3 else k}" for k in range(8)]
    found = read_items(write(tmp_path, "\n".join(["name,price,weight", *rows])))
    assert np.isfinite(found.features).all()
    store = AnswerStore(tmp_path / "a.db", found.items)
    session = JudgingSession(found, store, random_state=0)
    session.answer("Ann", session.question("Ann").id, "first")
    session.refresh()
    assert len(session.board()["rows"]) == 8
    session.close(), store.close()


def test_the_rating_thread_survives_a_failure_and_says_what_it_was(session, monkeypatch):
    whole = session._graph
    monkeypatch.setattr(session, "_graph", lambda answers: 1 / 0)
    session.answer("Ann", session.question("Ann").id, "first")
    wait_for(lambda: "division by zero" in session.board()["note"])
    monkeypatch.setattr(session, "_graph", whole)
    session.answer("Ann", session.question("Ann").id, "first")
    wait_for(lambda: session.board()["note"].startswith("From 2 answers"))


def wait_for(condition):
    deadline = time.monotonic() + MAX_WAIT
    while not condition():
        assert time.monotonic() < deadline, f"it did not happen in {MAX_WAIT} s"
        time.sleep(0.02)


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


def test_the_export_is_what_rank_reads(session, tmp_path):
    from rankwise.datasets import read_pairs

    hard = ["a,b", 'c"d', "é\nf", "=1+1", "e"]
    items = [Item(name, (("", name),)) for name in hard]
    store = AnswerStore(tmp_path / "hard.db", items)
    for k in range(5):
        question = store.ask("Ann", lambda k=k: (k, (k + 1) % 5))
        store.answer("Ann", question.id, ("first", "second", "tie")[k % 3])
    rows = list(csv.DictReader(io.StringIO(store.csv())))
    assert [row["first"] for row in rows] == hard
    path = tmp_path / "c.csv"
    path.write_text(store.csv(), encoding="utf-8")
    pairs = read_pairs(path, sides=("first", "second"), winner="outcome")
    assert sorted(pairs.items) == sorted(hard)
    assert pairs.graph().n_pairs == 5
    store.close()


# ---------------------------------------------------------------- who may ask


def test_a_session_over_http(client, session):
    found = post(client, "/api/question").json()
    assert found["title"] == "Best?"
    assert {found["first"]["name"], found["second"]["name"]} < set("abcde")
    after = post(client, "/api/answer", question=found["question"], outcome="second").json()
    assert after["question"] != found["question"]
    assert after["progress"]["nByJudge"] == 1
    twice = post(client, "/api/answer", question=found["question"], outcome="first")
    assert twice.status_code == 409
    assert twice.json()["question"] == after["question"]
    assert "already answered" in twice.json()["message"]
    undone = post(client, "/api/undo").json()
    assert undone["first"]["name"] == found["first"]["name"]
    assert session.store.n_answers() == 0
    assert post(client, "/api/undo").json()["message"].startswith("there is no answer")


def test_the_board_follows(client, session):
    assert client.get("/api/board").json()["rows"] == []
    found = post(client, "/api/question").json()
    post(client, "/api/answer", question=found["question"], outcome="first")
    session.refresh()
    rows = client.get("/api/board").json()["rows"]
    assert rows[0]["item"] == found["first"]["name"]
    assert rows[1]["item"] == found["second"]["name"]
    assert [row["rating"] for row in rows[2:]] == [None] * 3  # items without answers


@pytest.mark.parametrize(
    "headers, status",
    [
        ({"origin": "http://127.0.0.1"}, 200),
        ({"origin": "http://evil.example"}, 403),
        ({"origin": "null"}, 403),
        ({"origin": "http://127.0.0.1:9999"}, 403),
        ({"sec-fetch-site": "cross-site"}, 403),
        ({"sec-fetch-site": "same-site"}, 403),
        ({"host": "evil.example"}, 403),  # DNS that was made to point here
        ({"host": "["}, 403),
        ({"host": ""}, 403),
        ({"origin": "http://["}, 403),
        ({"content-type": "text/plain"}, 403),
        ({"content-type": "application/x-www-form-urlencoded"}, 403),
    ],
)
def test_no_foreign_origin_can_post(client, session, headers, status):
    body = json.dumps({"judge": "Ann"})
    headers = {"content-type": "application/json"} | headers
    assert client.post("/api/question", content=body, headers=headers).status_code == status
    assert len(session.store.open_pairs()) == (status == 200)


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"[]",
        b"nonsense",
        b"[" * 3000,
        b'{"judge": ""}',
        b'{"judge": 7}',
        b'{"judge": "a\\u0000b"}',
        b'{"judge": "' + b"x" * 61 + b'"}',
        b'{"judge": "Ann", "x": "' + b"x" * 5000 + b'"}',
    ],
)
def test_nonsense_is_refused_with_a_sentence(client, session, body):
    reply = client.post("/api/question", content=body, headers={"content-type": "application/json"})
    assert reply.status_code == 400
    assert reply.json()["message"].endswith(".")
    assert session.store.open_pairs() == set()


@pytest.mark.parametrize(
    "answer",
    [
        {},
        {"question": "1"},
        {"question": 1, "outcome": "left"},
        {"question": 10**30, "outcome": "first"},
        {"question": -(10**30), "outcome": "first"},
        {"question": 1.5, "outcome": "first"},
    ],
)
def test_an_answer_without_question_or_outcome_changes_nothing(client, session, answer):
    post(client, "/api/question")
    assert post(client, "/api/answer", **answer).status_code == 400
    assert session.store.n_answers() == 0


def test_other_computers_need_the_token(session):
    app = session_app(session, hosts={"10.0.0.1"}, token="secret-token")
    with TestClient(app, base_url="http://10.0.0.1") as client:
        assert client.get("/").status_code == 403
        assert client.get("/comparisons.csv").status_code == 403
        assert client.get("/?token=other").status_code == 403
        assert client.get("/?token=secret-token").status_code == 200
        assert client.get("/").status_code == 200  # by the cookie
        assert post(client, "/api/question").status_code == 200


def test_an_address_that_others_can_reach_gets_a_token():
    local = Address(port=0)
    assert local.socket.proto == socket.IPPROTO_TCP  # or asyncio holds back each reply by 40 ms
    local.socket.close()
    assert local.token is None
    with pytest.raises(ValueError, match="at least 8"):
        Address(port=0, token="short")
    address = Address("0.0.0.0", 0)
    assert len(address.token) > 15
    assert address.url.endswith(f"?token={address.token}")
    with pytest.raises(ValueError, match=f"port {address.port} is in use"):
        Address("0.0.0.0", address.port)
    with pytest.raises(ValueError, match="0-65535"):
        Address(port=70000)
    with pytest.raises(ValueError, match="cannot serve"):
        Address("203.0.113.7", 0)
    address.socket.close()


def test_every_reply_forbids_foreign_code(client):
    for path in ("/", "/judge.js", "/judge.css", "/api/board", "/nothing"):
        headers = client.get(path).headers
        assert "script-src 'self'" in headers["content-security-policy"]
        assert "unsafe" not in headers["content-security-policy"]
        assert headers["x-content-type-options"] == "nosniff"


def test_markdown_lets_no_html_through(store):
    text = "**bold** <img src=x onerror=alert(1)> [x](javascript:alert(1)) <script>1</script>"
    items = [Item(name, (("", f"{name} {text}"),)) for name in "ab"]
    session = JudgingSession(ItemSet(items), store, random_state=0)
    app = session_app(session, hosts={"127.0.0.1"}, is_markdown=True)
    with TestClient(app, base_url=LOCAL) as client:
        html = post(client, "/api/question").json()["first"]["cells"][0]["html"]
    session.close()
    assert "<strong>bold</strong>" in html
    assert "<img" not in html
    assert "<script" not in html
    assert "href" not in html


def test_only_pictures_of_items_are_served(tmp_path, store):
    (tmp_path / "a.png").write_bytes(b"\x89PNG")
    items = [Item("a", (), tmp_path / "a.png"), Item("b", (("", "b"),))]
    session = JudgingSession(ItemSet(items), store, random_state=0)
    app = session_app(session, hosts={"127.0.0.1"})
    with TestClient(app, base_url=LOCAL) as client:
        assert client.get("/image/0").content == b"\x89PNG"
        assert client.get("/image/0").headers["content-type"] == "image/png"
        for path in (
            "/image/1",
            "/image/2",
            f"/image/{'9' * 5000}",
            "/image/../answers.db",
            "/image/x",
            "/answers.db",
        ):
            assert client.get(path).status_code == 404
    session.close()


# ---------------------------------------------------------------- the whole program


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


def test_long_bodies_end_early(client, session):
    headers = {"content-type": "application/json"}
    done = client.post("/api/question", content=b"x" * 10_000, headers=headers)
    assert done.status_code == 400
    assert "more than 4096" in done.json()["message"]
    assert not session.store.n_answers()


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


@pytest.mark.parametrize("token", ["a&b=c d%20#e", "salaisuus-äö", "秘密の言葉は八文字", "x" * 8])
def test_the_printed_address_of_any_token_lets_judges_in(session, token):
    address = Address(port=0, token=token)
    address.socket.close()
    app = session_app(session, hosts=address.hosts, token=token)
    with TestClient(app, base_url=f"http://127.0.0.1:{address.port}") as client:
        assert client.get("/").status_code == 403
        assert client.get(address.url).status_code == 200
        assert post(client, "/api/question").status_code == 200  # by the cookie


def test_two_servers_of_one_host_keep_their_tokens_apart(session):
    first = session_app(session, hosts={"127.0.0.1"}, token="first-token")
    second = session_app(session, hosts={"127.0.0.1"}, token="second-token")
    with TestClient(first, base_url=f"{LOCAL}:8001") as one:
        one.get("/?token=first-token")
        with TestClient(second, base_url=f"{LOCAL}:8002", cookies=one.cookies) as two:
            two.get("/?token=second-token")
            names = sorted(two.cookies)
            assert names == ["rankwise_token_8001", "rankwise_token_8002"]
        one.cookies.update(two.cookies)  # a browser sends both cookies to both ports
        assert one.get("/").status_code == 200


@pytest.mark.parametrize("name", ["علی\u200cرضا", "👩\u200d🚀", "Ann"])
def test_names_with_zero_width_joiners_are_names(client, name):
    assert post(client, "/api/question", judge=name).status_code == 200


@pytest.mark.parametrize("name", ["\u200d", "\u200c \u200d", "Ann\u202eb", "A\u0007"])
def test_names_that_cannot_be_seen_are_refused(client, name):
    assert post(client, "/api/question", judge=name).status_code == 400


def test_joiners_at_the_ends_do_not_make_another_judge(client, session):
    first = post(client, "/api/question", judge="Ann").json()
    assert post(client, "/api/question", judge="\u200dAnn\u200c").json() == first


def test_brackets_without_end_are_shown_as_text_at_once(tmp_path):
    items = [Item(name, (("", "[" * 100_000 if name == "a" else "*b*"),)) for name in "ab"]
    store = AnswerStore(tmp_path / "brackets.db", items)
    session = JudgingSession(ItemSet(items), store, random_state=0)
    app = session_app(session, hosts={"127.0.0.1"}, is_markdown=True)
    start = time.process_time()
    with TestClient(app, base_url=LOCAL) as client:
        question = post(client, "/api/question").json()
    seconds = time.process_time() - start
    session.close()
    store.close()
    cells = {question[side]["name"]: question[side]["cells"][0] for side in ("first", "second")}
    assert cells["a"] == {"column": "", "text": "[" * 100_000}
    assert cells["b"]["html"].strip() == "<p><em>b</em></p>"
    assert seconds < 2


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
