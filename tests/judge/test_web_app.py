"""The web application: what the page may ask, and who may ask."""

from __future__ import annotations

import contextlib
import json
import socket

import pytest

pytest.importorskip("starlette")
pytest.importorskip("uvicorn")
pytest.importorskip("pyarrow")
pytest.importorskip("click")

from starlette.testclient import TestClient

from rankwise.judge import create_app
from rankwise.judge.item_set import Item, ItemSet, read_items
from rankwise.judge.session import JudgingSession
from rankwise.judge.storage import AnswerStore
from rankwise.judge.web_app import Address, session_app
from tests.judge.data import LOCAL, post, write


@pytest.fixture
def client(session):
    app = session_app(session, hosts={"127.0.0.1"}, title="Best?")
    with TestClient(app, base_url=LOCAL) as client:
        yield client


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


def test_long_bodies_end_early(client, session):
    headers = {"content-type": "application/json"}
    done = client.post("/api/question", content=b"x" * 10_000, headers=headers)
    assert done.status_code == 400
    assert "more than 4096" in done.json()["message"]
    assert not session.store.n_answers()


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


def test_brackets_without_end_are_shown_as_text(tmp_path):
    items = [Item(name, (("", "[" * 100_000 if name == "a" else "*b*"),)) for name in "ab"]
    store = AnswerStore(tmp_path / "brackets.db", items)
    session = JudgingSession(ItemSet(items), store, random_state=0)
    app = session_app(session, hosts={"127.0.0.1"}, is_markdown=True)
    with TestClient(app, base_url=LOCAL) as client:
        question = post(client, "/api/question").json()
    session.close()
    store.close()
    cells = {question[side]["name"]: question[side]["cells"][0] for side in ("first", "second")}
    assert cells["a"] == {"column": "", "text": "[" * 100_000}  # rendering takes 6 seconds
    assert cells["b"]["html"].strip() == "<p><em>b</em></p>"


def test_an_application_for_another_server(tmp_path):
    table = write(tmp_path, "name\nBrie\nComté\nFeta\n")
    app = create_app(table, tmp_path / "a.db", title="Tastier?", random_state=0)
    with TestClient(app, base_url="http://localhost") as client:
        question = post(client, "/api/question").json()
        assert question["title"] == "Tastier?"
        post(client, "/api/answer", question=question["question"], outcome="first")
    with contextlib.closing(AnswerStore(tmp_path / "a.db", read_items(table).items)) as store:
        assert store.n_answers() == 1
