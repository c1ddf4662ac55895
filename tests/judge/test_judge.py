"""`rankwise judge`: items, answers on the disk, who may ask; the page is in test_judge_browser."""

from __future__ import annotations

import csv
import io
import json
import os
import signal
import socket
import sqlite3
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

pytest.importorskip("starlette")
pytest.importorskip("uvicorn")
pytest.importorskip("pyarrow")
pytest.importorskip("typer")

from starlette.testclient import TestClient

from rankwise.judge import (
    Address,
    Item,
    ItemSet,
    JudgementStore,
    JudgingSession,
    read_items,
)
from rankwise.judge.app import judging_app
from rankwise.judge.items import Cell
from rankwise.judge.storage import NotOpenError
from tests.cli.shell import fail

FIVE = [Item(name, (Cell("", f"about {name}"),)) for name in "abcde"]


@pytest.fixture
def store(tmp_path):
    store = JudgementStore(tmp_path / "answers.db", FIVE)
    yield store
    store.close()


@pytest.fixture
def session(store):
    session = JudgingSession(ItemSet(FIVE), store, random_state=0)
    yield session
    session.close()


@pytest.fixture
def client(session):
    app = judging_app(session, hosts={"127.0.0.1"}, title="Best?")
    with TestClient(app, base_url="http://127.0.0.1") as client:
        yield client


def post(client, path, **body):
    return client.post(path, json={"judge": "Ann"} | body)


# ---------------------------------------------------------------- items


def write(tmp_path, text, name="items.csv"):
    path = tmp_path / name
    path.write_text(text, encoding="utf-8")
    return path


def test_a_table_gives_names_cells_and_features(tmp_path):
    path = write(tmp_path, "price;Name;note\n9,5;Brie;soft\n14,5;Comté;\n")
    found = read_items(path)
    assert found.names == ["Brie", "Comté"]
    assert [cell.column for cell in found.items[0].cells] == ["price", "Name", "note"]
    assert [cell.column for cell in found.items[1].cells] == ["price", "Name"]  # a gap says nothing
    assert found.features.shape[0] == 2
    np.testing.assert_allclose(found.features.mean(axis=0), 0, atol=1e-12)
    assert read_items(path, use_features=False).features is None
    only = read_items(path, show=["note", "price"])
    assert [cell.column for cell in only.items[0].cells] == ["note", "price"]


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
    assert found.items[1].cells == (Cell("", "# y"),)


@pytest.mark.parametrize(
    "text, options, message",
    [
        ("name\nx\n", {}, "1 item; two are needed"),
        ("name,a\nx,1\nx,2\n", {}, "twice.*: x"),
        ("name,a\n,1\ny,2\n", {}, "without a name"),
        ("name,a\nx,1\ny,1\n", {"show": ["a"]}, "look the same to a judge.*x = y"),
        ("name,a\nx,\ny,2\n", {"show": ["a"]}, "nothing to show.*x"),
        ("a,b\n1,1\n1,1\n", {}, "tells its rows apart"),
        ("name,a\nx,1\ny,2\n", {"name": "nme"}, "no column 'nme'; its columns are name, a"),
        ("name,p\nx,../../etc/passwd\ny,\n", {"image": "p"}, "outside"),
        ("name,p\nx,no.png\ny,\n", {"image": "p"}, "no picture"),
        ("name,p\nx,items.csv\ny,\n", {"image": "p"}, "is no picture"),
        ("name\n" + "\n".join(f"n{k}" for k in range(2001)), {}, "2,001 items"),
        (f"name,a\nx,{'w' * 100_001}\ny,2\n", {}, "100,000 characters"),
    ],
)
def test_items_that_cannot_be_judged_are_refused(tmp_path, text, options, message):
    with pytest.raises(ValueError, match=message):
        read_items(write(tmp_path, text), **options)


def test_options_of_tables_are_refused_for_lines(tmp_path):
    with pytest.raises(ValueError, match=r"show= is for tables"):
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
    with pytest.raises(NotOpenError, match="not open"):
        store.answer("Ann", 77, "first")
    with pytest.raises(ValueError, match="one of first, second, tie"):
        store.answer("Ann", question.id, "left")
    store.answer("Ann", question.id, "first")
    with pytest.raises(NotOpenError, match="answered already"):
        store.answer("Ann", question.id, "second")
    assert [c.outcome for c in store.comparisons()] == ["first"]


def test_undo_asks_the_same_question_again_and_keeps_the_history(store):
    assert store.undo("Ann") is None
    for pair, outcome in (((0, 1), "first"), ((2, 3), "tie")):
        store.answer("Ann", store.ask("Ann", lambda pair=pair: pair).id, outcome)
    dropped = store.ask("Ann", lambda: (1, 4))
    again = store.undo("Ann")
    assert again[2:] == (2, 3)
    with pytest.raises(NotOpenError):  # an answer to the question that was on the page before
        store.answer("Ann", dropped.id, "first")
    assert store.ask("Ann", lambda: (0, 4)) == again
    assert [c.outcome for c in store.comparisons()] == ["first"]
    assert store.undo("Ann")[2:] == (0, 1)
    assert store.undo("Ann") is None
    assert store.n_answers() == 0
    kept = sqlite3.connect(store.path).execute("SELECT count(*) FROM question WHERE is_undone = 1")
    assert kept.fetchone() == (2,)


def test_answers_survive_a_second_opening(tmp_path):
    path = tmp_path / "a.db"
    store = JudgementStore(path, FIVE)
    store.answer("Ann", store.ask("Ann", lambda: (0, 1)).id, "tie")
    waiting = store.ask("Ann", lambda: (3, 2))
    again = JudgementStore(path, FIVE)  # while the first is open, as after a crash
    assert again.comparisons() == store.comparisons()
    assert again.ask("Ann", lambda: (0, 4)) == waiting
    again.close(), store.close()


def test_other_items_are_told_and_accepted_by_choice(tmp_path):
    path = tmp_path / "a.db"
    store = JudgementStore(path, FIVE)
    store.answer("Ann", store.ask("Ann", lambda: (0, 1)).id, "first")
    store.ask("Ann", lambda: (0, 4))
    store.close()
    others = [Item("a", (Cell("", "new text"),)), *FIVE[1:4], Item("f", (Cell("", "f"),))]
    with pytest.raises(ValueError, match=r"1 new \(f\); 1 gone \(e\); 1 changed \(a\).*accept_ch"):
        JudgementStore(path, others)
    store = JudgementStore(path, others, accept_changes=True)
    assert store.item_names() == ["a", "b", "c", "d", "e", "f"]
    assert len(store.comparisons()) == 1
    session = JudgingSession(ItemSet(others), store, random_state=0)
    names = {name for k in range(40) for name in session.names_of(session.question(f"judge {k}"))}
    assert names == {"a", "b", "c", "d", "f"}
    session.close(), store.close()


def test_files_of_others_and_damaged_files_are_left_alone(tmp_path):
    other, damaged, text = tmp_path / "o.db", tmp_path / "d.db", tmp_path / "t.db"
    sqlite3.connect(other).execute("CREATE TABLE x (y)")
    with pytest.raises(ValueError, match="another program"):
        JudgementStore(other, FIVE)
    JudgementStore(damaged, FIVE).close()
    connection = sqlite3.connect(damaged)
    connection.execute("PRAGMA user_version = 9")
    connection.close()
    with pytest.raises(ValueError, match=r"another version.*format 9"):
        JudgementStore(damaged, FIVE)
    damaged.unlink()
    JudgementStore(damaged, FIVE).close()
    content = damaged.read_bytes()
    damaged.write_bytes(content[:100] + b"\xff" * (len(content) - 100))
    before = damaged.read_bytes()
    with pytest.raises(OSError, match="damaged"):
        JudgementStore(damaged, FIVE)
    assert damaged.read_bytes() == before
    text.write_text("name,price\n" * 100)
    with pytest.raises(OSError, match="no database"):
        JudgementStore(text, FIVE)
    assert text.read_text().startswith("name")


def test_a_full_disk_keeps_what_was_there_and_says_so(store):
    question = store.ask("Ann", lambda: (0, 1))
    (pages,) = store._db.execute("PRAGMA page_count").fetchone()
    store._db.execute(f"PRAGMA max_page_count = {pages}")
    with pytest.raises(OSError, match="disk is full; this answer is not kept"):  # noqa: PT012
        for _ in range(3000):
            store.answer("Ann", question.id, "first")
            question = store.ask("Ann", lambda: (0, 1))
    n = store.n_answers()
    store._db.execute("PRAGMA max_page_count = 1000000")
    question = store.ask("Ann", lambda: (0, 1))
    store.answer("Ann", question.id, "second")
    assert store.n_answers() == n + 1


def test_many_threads_lose_nothing(store):
    def judge(name):
        for k in range(25):
            question = store.ask(name, lambda k=k: (k % 5, (k + 1) % 5))
            store.answer(name, question.id, "tie")

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(judge, [f"judge {k}" for k in range(8)]))
    assert store.n_answers() == 200
    assert store.n_answers("judge 3") == 25


# ---------------------------------------------------------------- choice of questions


def settle(session):
    """Wait until the thread has seen all answers."""
    for _ in range(500):
        board = session.standing()
        n = session.n_answers
        if not n or (board["rows"] and sum(row["n"] for row in board["rows"]) == 2 * n):
            return board
        time.sleep(0.02)
    raise AssertionError("the board does not follow")


def test_the_first_round_connects_all_items(session):
    pairs = [session.names_of(session.question(f"judge {k}")) for k in range(5)]
    assert {name for pair in pairs for name in pair} == set("abcde")
    reached = {"a"}
    for _ in range(5):
        reached |= {name for pair in pairs if reached & set(pair) for name in pair}
    assert reached == set("abcde")


def test_two_judges_are_not_asked_the_same_at_once_and_nobody_twice(session):
    asked = {"Ann": [], "Bob": []}
    for _ in range(5):
        questions = {judge: session.question(judge) for judge in asked}
        assert len({frozenset(session.names_of(q)) for q in questions.values()}) == 2
        for judge, question in questions.items():
            asked[judge].append(frozenset(session.names_of(question)))
            session.answer(judge, question.id, "first")
        settle(session)
    assert all(len(set(pairs)) == 5 for pairs in asked.values())


def test_sides_are_random_and_recorded(store):
    session = JudgingSession(ItemSet(FIVE), store, random_state=1)
    for k in range(100):
        question = session.question(f"judge {k}")
        session.answer(f"judge {k}", question.id, "first")
    session.close()
    answers = store.comparisons()
    lower_first = np.mean([c.first < c.second for c in answers])
    assert 0.3 < lower_first < 0.7
    assert {c.outcome for c in answers} == {"first"}


def test_all_pairs_asked_still_gives_questions(store):
    session = JudgingSession(ItemSet(FIVE[:2]), store, random_state=0)
    for _ in range(4):
        session.answer("Ann", session.question("Ann").id, "first")
    assert session.n_answers == 4
    session.close()


def test_a_judge_who_knows_the_order_gets_it(tmp_path):
    items = [Item(f"i{k:02}", (Cell("", str(k)),)) for k in range(12)]
    store = JudgementStore(tmp_path / "a.db", items)
    session = JudgingSession(ItemSet(items), store, goal="top", top=3, random_state=0)
    question = session.question("Ann")
    for _ in range(40):
        first, second = session.names_of(question)
        question = session.answer("Ann", question.id, "first" if first > second else "second")
        settle(session)
    assert [row["item"] for row in settle(session)["rows"][:3]] == ["i11", "i10", "i09"]
    assert session.progress("Ann")["settled"] > 0.5
    session.close(), store.close()


def test_the_export_is_what_rank_reads(session, tmp_path):
    from rankwise.datasets import read_pairs

    hard = ["a,b", 'c"d', "é\nf", "=1+1", "e"]
    items = [Item(name, (Cell("", name),)) for name in hard]
    store = JudgementStore(tmp_path / "hard.db", items)
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
    assert after["progress"]["own"] == 1
    twice = post(client, "/api/answer", question=found["question"], outcome="first")
    assert twice.status_code == 409
    assert twice.json()["question"] == after["question"]
    assert "answered already" in twice.json()["message"]
    undone = post(client, "/api/undo").json()
    assert undone["first"]["name"] == found["first"]["name"]
    assert session.n_answers == 0
    assert post(client, "/api/undo").json()["message"].startswith("there is no answer")


def test_the_board_follows(client, session):
    assert client.get("/api/board").json()["rows"] == []
    found = post(client, "/api/question").json()
    post(client, "/api/answer", question=found["question"], outcome="first")
    settle(session)
    rows = client.get("/api/board").json()["rows"]
    assert rows[0]["item"] == found["first"]["name"]
    assert rows[-1]["item"] == found["second"]["name"]


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


@pytest.mark.parametrize("answer", [{}, {"question": "1"}, {"question": 1, "outcome": "left"}])
def test_an_answer_without_question_or_outcome_changes_nothing(client, session, answer):
    post(client, "/api/question")
    assert post(client, "/api/answer", **answer).status_code == 400
    assert session.n_answers == 0


def test_other_computers_need_the_token(session):
    app = judging_app(session, hosts={"10.0.0.1"}, token="secret-token")
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
    with pytest.raises(ValueError, match="0 to 65535"):
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
    items = [Item(name, (Cell("", f"{name} {text}"),)) for name in "ab"]
    session = JudgingSession(ItemSet(items), store, random_state=0)
    app = judging_app(session, hosts={"127.0.0.1"}, is_markdown=True)
    with TestClient(app, base_url="http://127.0.0.1") as client:
        html = post(client, "/api/question").json()["first"]["cells"][0]["html"]
    session.close()
    assert "<strong>bold</strong>" in html
    assert "<img" not in html
    assert "<script" not in html
    assert "href" not in html


def test_only_pictures_of_items_are_served(tmp_path, store):
    (tmp_path / "a.png").write_bytes(b"\x89PNG")
    items = [Item("a", (), tmp_path / "a.png"), Item("b", (Cell("", "b"),))]
    session = JudgingSession(ItemSet(items), store, random_state=0)
    app = judging_app(session, hosts={"127.0.0.1"})
    with TestClient(app, base_url="http://127.0.0.1") as client:
        assert client.get("/image/0").content == b"\x89PNG"
        assert client.get("/image/0").headers["content-type"] == "image/png"
        for path in ("/image/1", "/image/2", "/image/../answers.db", "/image/x", "/answers.db"):
            assert client.get(path).status_code == 404
    session.close()


# ---------------------------------------------------------------- the whole program


class Program:
    """`rankwise judge` in a process of its own."""

    def __init__(self, path, *options):
        command = [sys.executable, "-m", "rankwise", "judge", str(path), "--port", "0", *options]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        for line in self.process.stdout:
            if line.startswith("Open "):
                self.url = line.split()[1]
                break
        else:
            raise AssertionError("it did not start")

    def post(self, path, **body):
        request = urllib.request.Request(
            f"{self.url}api/{path}",
            json.dumps(body).encode(),
            {"Content-Type": "application/json"},
        )
        with urllib.request.urlopen(request) as reply:
            return json.load(reply)

    def end(self, sign):
        self.process.send_signal(sign)
        said = self.process.communicate(timeout=30)[0]
        return said


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
    store = JudgementStore(f"{path}.judged.db", found.items)
    assert sorted((c.judge, c.outcome) for c in store.comparisons()) == sorted(kept)
    assert len(kept) == 160
    store.close()


def test_the_command_fails_in_one_line(tmp_path):
    path = write(tmp_path, "name\na\nb\n")
    taken = Address(port=0)
    for options, message in (
        ([tmp_path / "no.csv"], "there is no such file"),
        ([path, "--goal", "bottom"], "--goal is top or order"),
        ([path, "--level", "2"], "--level"),
        ([path, "--top", "0"], "--top"),
        ([path, "--name", "nme"], "no column 'nme'"),
        ([path, "-o", tmp_path / "out.csv"], "no answers yet"),
        ([path, "--port", taken.port], f"port {taken.port} is in use"),
    ):
        assert message in fail("judge", *options)
    taken.socket.close()
    left = {"items.csv", "items.csv.judged.db"}
    assert {name for name in os.listdir(tmp_path) if "-" not in name} <= left
