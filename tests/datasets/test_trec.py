"""Runs and qrels of TREC: read, written, joined, and judged as trec_eval does."""

import gzip
import json

import numpy as np
import pytest
import pytrec_eval

from rankwise.datasets import TrecRun, read_qrels, read_trec_run, write_qrels, write_trec_run
from rankwise.errors import TableFormatError
from rankwise.metrics import evaluate
from rankwise.model_selection import compare
from tests.cli.shell import fail, succeed


@pytest.fixture
def files(tmp_path):
    """Thirty documents for each of eight queries; some judged ones were not found."""
    rng = np.random.default_rng(0)
    query = np.repeat([f"q{k}" for k in range(8)], 30)
    document = np.array([f"d{k % 30}" for k in range(240)])
    grades = rng.integers(0, 3, 240) * (rng.random(240) < 0.4)
    judged, found = rng.random(240) < 0.7, rng.random(240) < 0.8
    write_qrels(tmp_path / "qrels", query, document, np.where(judged, grades, np.nan))
    write_trec_run(tmp_path / "run", query[found], document[found], rng.normal(size=found.sum()))
    return read_trec_run(tmp_path / "run"), read_qrels(tmp_path / "qrels")


def as_dict(table, column):
    out = {}
    for query, document, value in zip(
        table.query, table.document, getattr(table, column), strict=True
    ):
        out.setdefault(str(query), {})[str(document)] = (
            int(value) if column == "relevance" else float(value)
        )
    return out


@pytest.mark.parametrize(
    ("theirs", "ours"),
    [
        ("ndcg_cut_10", "ndcg(gain=linear)@10"),
        ("P_5", "p@5"),
        ("recall_10", "recall@10"),
        ("recip_rank", "mrr"),
    ],
)
def test_joined_rows_are_judged_as_by_trec_eval(files, theirs, ours):
    run, qrels = files
    evaluator = pytrec_eval.RelevanceEvaluator(as_dict(qrels, "relevance"), {theirs})
    truth = evaluator.evaluate(as_dict(run, "score"))
    table = run.judged_by(qrels)
    found = evaluate(table.relevance, table.score, table.query, [ours, "judged@10"])
    values = dict(zip(found.groups, found.per_group[ours], strict=True))
    assert values == pytest.approx({query: row[theirs] for query, row in truth.items()})
    assert 0.4 < found["judged@10"] < 1


MEASURES = [
    ("ndcg_cut_10", "ndcg(gain=linear)@10"),
    ("P_5", "p@5"),
    ("recall_10", "recall@10"),
]


def trec_eval(qrels, run, measure):
    evaluator = pytrec_eval.RelevanceEvaluator(as_dict(qrels, "relevance"), {measure})
    rows = evaluator.evaluate(as_dict(run, "score"))
    return {query: row[measure] for query, row in rows.items()}


@pytest.mark.parametrize(("theirs", "ours"), MEASURES)
def test_missing_queries_count_zero_as_by_trec_eval_c(files, theirs, ours):
    run, qrels = files
    kept = ~np.isin(run.query, ["q2", "q5", "q7"])
    run = TrecRun(*(column[kept] for column in run))
    truth = trec_eval(qrels, run, theirs)
    assert len(truth) == 5
    with pytest.warns(UserWarning, match="3 of 8 judged queries"):
        table = run.judged_by(qrels)
    found = evaluate(table.relevance, table.score, table.query, [ours, "judged@10"])
    assert found[ours] == pytest.approx(sum(truth.values()) / 8)  # trec_eval -c
    values = dict(zip(found.groups.tolist(), found.per_group[ours].tolist(), strict=True))
    assert [values[query] for query in ("q2", "q5", "q7")] == [0, 0, 0]
    with pytest.warns(UserWarning, match="3 of 8 judged queries"):
        table = run.judged_by(qrels, missing_queries="skip")
    found = evaluate(table.relevance, table.score, table.query, [ours, "judged@10"])
    assert found[ours] == pytest.approx(sum(truth.values()) / 5)


def test_a_run_without_any_judged_query_has_the_value_zero(files):
    run, qrels = files
    other = TrecRun(np.array(["z"]), np.array(["d"]), np.array([1.0]), np.array([np.nan]))
    with pytest.warns(UserWarning, match="8 of 8 judged queries.*1 queries of the run"):
        table = other.judged_by(qrels)
    found = evaluate(table.relevance, table.score, table.query, ["ndcg@10", "judged@10"])
    assert found.to_dict() == {"ndcg@10": 0, "judged@10": 0}
    with pytest.raises(ValueError, match="missing_queries"):
        run.judged_by(qrels, missing_queries="drop")


def test_the_command_evaluates_a_run_on_qrels(files, tmp_path):
    run, qrels = files
    kept = ~np.isin(run.query, ["q2", "q5", "q7"])
    write_trec_run(tmp_path / "run", run.query[kept], run.document[kept], run.score[kept])
    truth = trec_eval(qrels, read_trec_run(tmp_path / "run"), "P_5")
    command = ["evaluate", tmp_path / "run", tmp_path / "qrels", "-m", "p@5", "--json"]
    for option, n_queries in (([], 8), (["--missing-queries", "skip"], 5)):
        done = succeed(*command, *option)
        row = json.loads(done.stdout)["metrics"][0]
        assert row["mean"] == pytest.approx(sum(truth.values()) / n_queries)
        assert "3 of 8 judged queries" in done.stderr
    assert "--missing-queries" in fail(*command, "--missing-queries", "drop")


def test_the_command_bounds_runs_over_unjudged_documents(files, tmp_path):
    run, qrels = files
    write_qrels(tmp_path / "qrels", qrels.query[::2], qrels.document[::2], qrels.relevance[::2])
    write_trec_run(tmp_path / "other", run.query[::2], run.document[::2], run.score[::2])
    runs = [tmp_path / "run", tmp_path / "other"]
    command = ["evaluate", "--qrels", tmp_path / "qrels", *runs, "-m", "nDCG@5"]
    done = json.loads(succeed(*command, "--next-judgments", "3", "--json").stdout)
    assert [row["run"] for row in done["metrics"]] == ["run", "other"]
    assert all(row["lowest"] <= row["mean"] <= row["highest"] for row in done["metrics"])
    assert len(done["next_judgments"]) == 3
    text = succeed(*command, "--unjudged", "bounds", "--per-group", tmp_path / "csv").stdout
    assert "any grades" in text
    assert len((tmp_path / "csv").read_text().splitlines()) == 1 + 2 * 8
    assert "--unjudged" in fail(*command, "--unjudged", "none")
    assert "--qrels" in fail("evaluate", tmp_path / "csv", tmp_path / "csv", "--unjudged", "zero")
    assert "rankwise evaluate MODEL DATA" in fail("evaluate", tmp_path / "csv")


def test_the_command_compares_runs_on_qrels(files, tmp_path):
    run, qrels = files
    write_qrels(tmp_path / "qrels", qrels.query[::2], qrels.document[::2], qrels.relevance[::2])
    rng = np.random.default_rng(0)
    other = run.score + rng.normal(size=len(run.score))
    write_trec_run(tmp_path / "one", run.query, run.document, run.score)
    write_trec_run(tmp_path / "two", run.query, run.document, other)
    runs = [tmp_path / "one", tmp_path / "two"]
    command = ["compare", "--qrels", tmp_path / "qrels", *runs, "-m", "nDCG@5"]
    options = ["--unjudged", "bounds", "--next-judgments", "2", "--json"]
    assert "AP of two runs" in fail(*command[:-1], "AP", *options)
    found = json.loads(succeed(*command, *options).stdout)
    with pytest.warns(UserWarning, match="fewer than 10 groups"):
        expected = compare(
            {"one": run.to_dict(), "two": read_trec_run(tmp_path / "two")},
            qrels=tmp_path / "qrels",
            metric="nDCG@5",
            unjudged="bounds",
        )
    assert found["ndcg(gain=linear)@5"] == expected.to_dict()
    names = [(entry["query"], entry["document"]) for entry in found["next_judgments"]["documents"]]
    assert names == [(query, document) for query, document, _ in expected.next_judgments(2)]
    text = succeed(*command, "--difference", "0.05", "--correction", "none").stdout
    assert "groups to detect 0.05" in text
    assert "Holm" not in text
    assert "--qrels" in fail("compare", *runs, *runs)
    assert "two runs" in fail("compare", "--qrels", tmp_path / "qrels", runs[0])
    assert "--missing-queries" in fail(*command, "--missing-queries", "skip")


def test_relevant_documents_that_were_not_found_come_last_and_others_do_not():
    run = TrecRun(
        np.array(["a", "a", "c"]),
        np.array(["x", "y", "x"]),
        np.array([1.0, 2, 3]),
        np.full(3, np.nan),
    )
    qrels = TrecRun(
        np.array(["a", "a", "a", "b"]),
        np.array(["y", "z", "w", "x"]),
        np.full(4, np.nan),
        np.array([1.0, 2, 0, 1]),
    )
    with pytest.warns(UserWarning, match="1 of 2 judged queries"):
        table = run.judged_by(qrels, missing_queries="skip")
    assert table.document.tolist() == ["x", "y", "z"]
    assert table.score[2] < 1
    np.testing.assert_array_equal(table.relevance, [np.nan, 1, 2])


def test_what_is_written_comes_back(tmp_path):
    score = [0.1, 1 / 3, 1e300, -2.0]
    write_trec_run(tmp_path / "run", ["b", "a", "b", "a"], list("wxyz"), score, "mine")
    run = read_trec_run(tmp_path / "run")
    assert run.query.tolist() == ["a", "a", "b", "b"]
    assert run.score.tolist() == [1 / 3, -2.0, 1e300, 0.1]
    ranks = [line.split()[3] for line in (tmp_path / "run").read_text().splitlines()]
    assert ranks == ["1", "2", "1", "2"]
    with gzip.open(tmp_path / "qrels.gz", "wb") as stream:
        stream.write(b"q 0 d 2\n\nq 0 e -1\n")
    qrels = read_qrels(tmp_path / "qrels.gz")
    assert qrels.relevance.tolist() == [2.0, -1.0]
    assert TrecRun.from_dict({"q": {"e": 1.0}}).judged_by(qrels).relevance.tolist() == [0.0, 2.0]


def test_runs_and_qrels_become_dictionaries_and_come_back(files):
    run, qrels = files
    assert run.to_dict() == as_dict(run, "score")
    assert qrels.to_dict() == as_dict(qrels, "relevance")
    again = TrecRun.from_dict(run.to_dict())
    for column, expected in zip(again, run, strict=True):
        np.testing.assert_array_equal(column, expected)
    judged_again = TrecRun.from_dict(qrels.to_dict(), field="relevance")
    np.testing.assert_array_equal(judged_again.relevance, qrels.relevance)
    pytrec_eval.RelevanceEvaluator(qrels.to_dict(), {"map"}).evaluate(run.to_dict())
    with pytest.raises(ValueError, match="field"):
        TrecRun.from_dict(run.to_dict(), field="grade")


@pytest.mark.parametrize(
    ("text", "line", "message"),
    [
        ("q Q0 d 1 0.5 tag\nq Q0 d 2\n", 2, "not of TREC"),
        ("q Q0 d 1 high tag\n", 1, "not of TREC"),
        ("q Q0 d 1 nan tag\n", 1, "not of TREC"),
        ("q Q0 d 1 0.5 tag\nq Q0 d 2 0.4 tag\n", 2, "'d' occurs twice for query 'q'"),
        ("\n", None, "empty"),
    ],
)
def test_what_is_no_run_is_refused_with_its_line(tmp_path, text, line, message):
    (tmp_path / "run").write_text(text)
    with pytest.raises(TableFormatError, match=message) as caught:
        read_trec_run(tmp_path / "run")
    assert caught.value.line == line


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ((["a b"], ["d"], [1.0]), "'a b' has spaces"),
        ((["a"], [""], [1.0]), "has spaces"),
        ((["a"], ["d", "e"], [1.0]), "2 names but 1 numbers"),
        ((["a"], ["d"], [np.nan]), "finite"),
    ],
)
def test_what_a_run_cannot_say_is_not_written(tmp_path, columns, message):
    with pytest.raises(ValueError, match=message):
        write_trec_run(tmp_path / "run", *columns)
    assert list(tmp_path.iterdir()) == []
    if message != "finite":
        return
    with pytest.raises(ValueError, match="whole numbers"):
        write_qrels(tmp_path / "qrels", ["a"], ["d"], [0.5])
