"""A judging session: which question is asked, the board, and when to stop."""

from __future__ import annotations

import contextlib
import csv
import io
import json
import time

import numpy as np
import pytest

pytest.importorskip("starlette")
pytest.importorskip("uvicorn")
pytest.importorskip("pyarrow")
pytest.importorskip("click")

from starlette.testclient import TestClient

from rankwise import PairGraph
from rankwise.judge import session as session_module
from rankwise.judge.item_set import Item, ItemSet, read_items
from rankwise.judge.session import JudgingSession
from rankwise.judge.storage import AnswerStore
from rankwise.judge.web_app import session_app
from rankwise.leaderboard.inference import pair_suggestions
from rankwise.leaderboard.inference.pair_suggestions import answers_to_go
from rankwise.leaderboard.inference.posterior import fit_posterior
from tests.cli.shell import succeed
from tests.judge.data import FIVE, LOCAL, MAX_WAIT, names, post, write


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
        judge = str(rng.choice(["Ann", "Bob", "tie"]))
        question = session.question(judge)
        session.answer(judge, question.id, str(rng.choice(["first", "second", "tie"])))
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
    make_graph = session._make_graph
    monkeypatch.setattr(session, "_make_graph", lambda answers: 1 / 0)
    session.answer("Ann", session.question("Ann").id, "first")
    wait_for(lambda: "division by zero" in session.board()["note"])
    monkeypatch.setattr(session, "_make_graph", make_graph)
    session.answer("Ann", session.question("Ann").id, "first")
    wait_for(lambda: session.board()["note"].startswith("From 2 answers"))


def wait_for(condition):
    deadline = time.monotonic() + MAX_WAIT
    while not condition():
        assert time.monotonic() < deadline, f"it did not happen in {MAX_WAIT} s"
        time.sleep(0.02)


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
