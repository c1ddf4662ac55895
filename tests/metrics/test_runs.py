"""`evaluate_runs` equals pytrec_eval, query by query, and refuses what it cannot evaluate."""

from __future__ import annotations

import collections
import importlib.machinery
import sys
import types
import warnings

import ir_measures
import numpy as np
import pandas as pd
import pytest
import pytrec_eval
from scipy import stats

from rankwise.datasets import TrecRun, write_qrels, write_trec_run
from rankwise.metrics import evaluate_runs
from rankwise.metrics.run_metric_names import get_run_metric

OF_TREC_EVAL = {
    "nDCG": "ndcg",
    "nDCG@5": "ndcg_cut_5",
    "nDCG@10": "ndcg_cut_10",
    "AP": "map",
    "AP@5": "map_cut_5",
    "RR": "recip_rank",
    "P@5": "P_5",
    "P@30": "P_30",
    "R@5": "recall_5",
    "R@100": "recall_100",
    "Success@1": "success_1",
    "Success@5": "success_5",
    "Rprec": "Rprec",
    "Bpref": "bpref",
    "infAP": "infAP",
    "IPrec@0.0": "iprec_at_recall_0.00",
    "IPrec@0.1": "iprec_at_recall_0.10",
    "IPrec@0.5": "iprec_at_recall_0.50",
    "IPrec@1.0": "iprec_at_recall_1.00",
}


def random_problem(seed):
    """Judgments and a run with ties, unjudged documents and queries that only one of them has."""
    rng = np.random.default_rng(seed)
    qrels, run = {}, {}
    for query in range(12):
        documents = [f"d{k}" for k in rng.permutation(60)]
        judged = documents[: rng.integers(1, 40)]
        retrieved = rng.permutation(documents)[: rng.integers(1, 50)]
        qrels[f"q{query}"] = {
            d: int(g) for d, g in zip(judged, rng.integers(0, 4, len(judged)), strict=True)
        }
        n = len(retrieved)
        scores = rng.integers(0, 15, n) if query % 3 else rng.normal(size=n)
        run[f"q{query}"] = {str(d): float(s) for d, s in zip(retrieved, scores, strict=True)}
    del run["q3"]
    run["only in the run"] = {"d1": 1.0}
    return qrels, run


def values_of_pytrec_eval(qrels, run, name):
    measures = {"ndcg", "map", "recip_rank", "Rprec", "bpref", "infAP", "iprec_at_recall"}
    measures |= {"ndcg_cut.5,10", "map_cut.5", "P.5,30", "recall.5,100", "success.1,5"}
    by_query = pytrec_eval.RelevanceEvaluator(qrels, measures).evaluate(run)
    return np.array([by_query[q][name] if q in by_query else 0.0 for q in sorted(qrels)])


@pytest.mark.filterwarnings("ignore:.*judged queries are missing")
@pytest.mark.parametrize("ours, theirs", OF_TREC_EVAL.items())
def test_every_measure_equals_that_of_trec_eval(ours, theirs):
    for seed in range(20):
        qrels, run = random_problem(seed)
        values = evaluate_runs(qrels, run, ours).per_query(ours)
        expected = values_of_pytrec_eval(qrels, run, theirs)
        np.testing.assert_allclose(values, expected, rtol=0, atol=1e-12)


@pytest.mark.filterwarnings("ignore:.*judged queries are missing")
def test_names_of_trec_eval_and_objects_of_ir_measures_mean_the_same():
    qrels, run = random_problem(0)
    for ours, theirs in OF_TREC_EVAL.items():
        assert get_run_metric(ours).name == get_run_metric(theirs).name
    assert get_run_metric("ndcg_cut.10") == get_run_metric("ndcg_cut_10")  # trec_eval -m
    result = evaluate_runs(qrels, run, [ir_measures.nDCG @ 10, ir_measures.P(rel=2) @ 5])
    expected = ir_measures.calc_aggregate([ir_measures.P(rel=2) @ 5], qrels, run)
    assert result[ir_measures.P(rel=2) @ 5] == pytest.approx(
        expected[ir_measures.P(rel=2) @ 5], abs=1e-12
    )
    assert result.metrics == ("ndcg(gain=linear)@10", "p(rel=2)@5")


@pytest.mark.filterwarnings("ignore:.*judged queries are missing")
def test_exponential_gain_by_hand():
    qrels = {"q": {"a": 3, "b": 1, "c": 0}}
    run = {"q": {"b": 3.0, "c": 2.0, "a": 1.0}}
    expected = (1 + 7 / 2) / (7 + 1 / np.log2(3))
    assert evaluate_runs(qrels, run, "nDCG(dcg='exp-log2')@10")["nDCG(dcg='exp-log2')@10"] == (
        pytest.approx(expected, rel=1e-14)
    )
    assert evaluate_runs(qrels, run, "ndcg(gain=exponential)").metrics == (
        "ndcg(gain=exponential)",
    )


@pytest.mark.filterwarnings("ignore:.*judged queries are missing")
def test_judged_documents_only_is_that_of_ir_measures():
    qrels, run = random_problem(1)
    for text in ("nDCG(judged_only=True)@10", "P(judged_only=True)@5"):
        measure = ir_measures.parse_measure(text)
        values = dict.fromkeys(qrels, 0.0)
        values |= {row.query_id: row.value for row in ir_measures.iter_calc([measure], qrels, run)}
        expected = [values[query] for query in sorted(qrels)]
        np.testing.assert_allclose(evaluate_runs(qrels, run, text).per_query(text), expected)


def test_rank_biased_precision_and_the_share_of_judged_documents_by_hand():
    qrels = {"q": {"a": 1, "b": 0, "c": 2}}
    run = {"q": {"a": 4.0, "x": 3.0, "c": 2.0, "b": 1.0}}
    result = evaluate_runs(qrels, run, ["RBP(p=0.5)", "RBP(p=0.5)@1", "Judged@2"])
    assert result["RBP(p=0.5)"] == pytest.approx(0.5 + 0.125)
    assert result["RBP(p=0.5)@1"] == pytest.approx(0.5)
    assert result["Judged@2"] == 0.5


@pytest.mark.parametrize("grades", [(-1, 0, 1, 2), (-2, 0, 1), (-3, -1, 1)], ids=str)
@pytest.mark.parametrize("ours, theirs", OF_TREC_EVAL.items())
def test_negative_grades_count_as_in_trec_eval(ours, theirs, grades):
    rng = np.random.default_rng(7)
    documents = [f"d{k}" for k in range(30)]
    qrels, run = {}, {}
    for query in range(20):
        judged = rng.permutation(documents)[:20]
        retrieved = rng.permutation(documents)[:20]
        qrels[f"q{query}"] = {str(d): int(rng.choice(grades)) for d in judged}
        run[f"q{query}"] = {str(d): float(rng.normal()) for d in retrieved}
    values = evaluate_runs(qrels, run, ours).per_query(ours)
    expected = values_of_pytrec_eval(qrels, run, theirs)
    np.testing.assert_allclose(values, expected, rtol=0, atol=1e-12)


@pytest.mark.filterwarnings("ignore:.*judged queries are missing")
def test_removing_unjudged_documents_is_the_option_judged_only_of_each_metric():
    qrels, run = random_problem(5)
    removed = evaluate_runs(qrels, run, ["nDCG@10", "P@5", "AP"], unjudged="judged_only")
    for name in ("nDCG@10", "P@5", "AP"):
        option = name.replace("@", "(judged_only=True)@") if "@" in name else "AP(judged_only=True)"
        expected = evaluate_runs(qrels, run, option).per_query(option)
        np.testing.assert_array_equal(removed.per_query(name), expected)
    assert "without a judgment" in str(removed)


def test_missing_queries_count_zero_or_are_left_out():
    qrels, run = random_problem(2)
    with pytest.warns(UserWarning, match="missing_queries"):
        with_zeros = evaluate_runs(qrels, run, "AP")
    with pytest.warns(UserWarning, match="missing_queries"):
        without = evaluate_runs(qrels, run, "AP", missing_queries="skip")
    assert with_zeros.n_missing == {"run": 1}
    assert with_zeros["AP"] == pytest.approx(without["AP"] * (len(qrels) - 1) / len(qrels))
    assert np.isnan(without.per_query("AP")).sum() == 1


@pytest.mark.filterwarnings("ignore:.*judged queries are missing")
def test_dictionaries_frames_files_and_trec_runs_are_read_alike(tmp_path):
    qrels, run = random_problem(3)
    rows = [(q, d, g) for q, documents in qrels.items() for d, g in documents.items()]
    found = [(q, d, s) for q, documents in run.items() for d, s in documents.items()]
    qrels_frame = pd.DataFrame(rows, columns=["query_id", "doc_id", "relevance"])
    run_frame = pd.DataFrame(found, columns=["query_id", "doc_id", "score"])
    query, document, score = (np.array(column) for column in zip(*found, strict=True))
    run_record = TrecRun(query, document, score, np.full(len(score), np.nan))
    write_qrels(tmp_path / "qrels", *zip(*rows, strict=True))
    clean = run_frame[run_frame["query_id"] != "only in the run"]
    write_trec_run(tmp_path / "run", clean["query_id"], clean["doc_id"], clean["score"])
    expected = evaluate_runs(qrels, run)
    for other_qrels, other_run in [
        (qrels_frame, run_frame),
        (qrels, run_record),
        (tmp_path / "qrels", tmp_path / "run"),
    ]:
        result = evaluate_runs(other_qrels, {"a": other_run})
        for measure in expected.metrics:
            np.testing.assert_allclose(
                result.per_query(measure, "a"), expected.per_query(measure), rtol=1e-12
            )


def test_several_runs_give_a_table_a_frame_and_intervals():
    qrels, run = random_problem(4)
    run["q3"] = {"d1": 1.0}
    other = {query: {d: -s for d, s in documents.items()} for query, documents in run.items()}
    result = evaluate_runs(qrels, {"one": run, "two": other}, ["P@5", "AP"], confidence=0.9)
    assert set(result.to_dict()) == {"one", "two"}
    frame = result.to_frame()
    assert len(frame) == 2 * 2 * len(qrels)
    values = result.per_query("AP", "two")
    low, high = result.interval("AP", "two")
    expected = stats.t.interval(0.9, len(values) - 1, values.mean(), stats.sem(values))
    assert (low, high) == pytest.approx(expected, rel=1e-12)
    assert "two" in str(result)
    with pytest.raises(KeyError, match="one, two"):
        result.per_query("AP")
    with pytest.raises(KeyError, match="p@5"):
        result["one", "RR"]


def test_ties_are_broken_by_descending_id_in_single_precision():
    qrels = {"q": {"a": 1}}
    tied_in_single_precision = {"q": {"a": 1.0 + 1e-12, "b": 1.0}}
    assert evaluate_runs(qrels, tied_in_single_precision, "P@1")["P@1"] == 0.0
    assert evaluate_runs(qrels, {"q": {"b": 1.0, "a": 1.1}}, "P@1")["P@1"] == 1.0


@pytest.mark.parametrize(
    "qrels, run, measures, word",
    [
        ({}, {"q": {"a": 1.0}}, "AP", "qrels"),
        ({"q": {"a": 1}}, {"x": {"a": 1.0}}, "AP", "in common"),
        ({"q": {"a": 1}}, {"q": {}}, "AP", "documents"),
        ({"q": {"a": 1}}, {"q": {"a": float("nan")}}, "AP", "NaN"),
        ({"q": {"a": 1}}, {}, "AP", "runs"),
        ({"q": {"a": 1}}, {"q": {"a": 1.0}}, [], "metrics"),
        ({"q": {"a": 1}}, {"q": {"a": 1.0}}, "nDGC@10", "nDGC"),
        ({"q": {"a": 1}}, {"q": {"a": 1.0}}, "P", "cut-off"),
        ({"q": {"a": 1}}, {"q": {"a": 1.0}}, "Rprec@3", "cut-off"),
        ({"q": {"a": 1}}, {"q": {"a": 1.0}}, "nDCG@0", "whole number"),
        ({"q": {"a": 1}}, {"q": {"a": 1.0}}, "P(grade=2)@5", "rel"),
        ({"q": {"a": 1}}, {"q": {"a": 1.0}}, "IPrec@2", "recall"),
    ],
)
def test_bad_input_is_refused_by_name(qrels, run, measures, word):
    with pytest.raises(ValueError, match=word):
        evaluate_runs(qrels, run, measures)


def test_a_document_twice_for_a_query_is_refused():
    frame = pd.DataFrame({"query_id": ["q", "q"], "doc_id": ["a", "a"], "score": [1.0, 2.0]})
    with pytest.raises(ValueError, match="twice"):
        evaluate_runs({"q": {"a": 1}}, frame)


def test_data_sets_of_ir_datasets_are_read_by_their_id(monkeypatch):
    record = collections.namedtuple("record", ["query_id", "doc_id", "relevance", "score"])
    records = [record("q", "a", 1, 0.5), record("q", "b", 0, 0.75)]
    dataset = types.SimpleNamespace(
        qrels_iter=lambda: iter(records), scoreddocs_iter=lambda: iter(records)
    )
    package = types.ModuleType("ir_datasets")
    package.__spec__ = importlib.machinery.ModuleSpec("ir_datasets", None)
    package.load = lambda name: {"antique/test": dataset, "only-docs": types.SimpleNamespace()}[
        name
    ]
    monkeypatch.setitem(sys.modules, "ir_datasets", package)
    result = evaluate_runs("antique/test", {"bm25": "antique/test"}, "RR")
    assert result["RR"] == 0.5
    with pytest.raises(FileNotFoundError, match="neither a file nor a data set"):
        evaluate_runs("antique", {"q": {"a": 1.0}})
    with pytest.raises(ValueError, match="has no qrels"):
        evaluate_runs("only-docs", {"q": {"a": 1.0}})


def test_without_ir_datasets_a_missing_file_is_reported(tmp_path):
    with pytest.raises(FileNotFoundError):
        evaluate_runs(str(tmp_path / "none"), {"q": {"a": 1.0}})
    with pytest.raises(ValueError, match="expected nested dictionaries"):
        evaluate_runs([1, 2], {"q": {"a": 1.0}})


def test_a_run_without_any_judged_document_is_named():
    qrels = {query: {f"d{k}": k % 2 for k in range(6)} for query in ("q1", "q2")}
    run = {query: {f"D{k}": -float(k) for k in range(6)} for query in qrels}
    with pytest.warns(UserWarning, match="'D0'.*'d0'"):
        evaluation = evaluate_runs(qrels, {"run": run})
    assert all(not values.any() for values in evaluation.values.values())
    run["q2"]["d2"] = 2.0
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        evaluate_runs(qrels, {"run": run})


@pytest.mark.parametrize(
    "runs", [{"run": {"q1": ["d1", "d2"]}}, {"run": {"q1": {"d1": None}}}, {"q1": {"d1": "best"}}]
)
def test_documents_without_numbers_are_refused_by_name(runs):
    with pytest.raises(ValueError, match=r"query|document"):
        evaluate_runs({"q1": {"d1": 1}}, runs)
