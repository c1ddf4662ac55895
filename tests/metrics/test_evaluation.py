"""Metrics by name, and several of them in one report."""

import inspect
import pickle
import sys

import numpy as np
import pytest
import scipy.stats

import rankwise.metrics
from rankwise.errors import UndefinedMetricError
from rankwise.metrics import evaluate, get_metric, metric_names, ndcg
from tests.metrics.data import EVERY, GROUPS, SCORE, Y


@pytest.mark.parametrize(
    ("typed", "name"),
    [
        ("ndcg", "ndcg"),
        ("nDCG@10", "ndcg@10"),
        (" MAP@5 ", "map@5"),
        ("precision@5", "p@5"),
        ("P@5", "p@5"),
        ("mrr@10", "mrr@10"),
        ("err", "err"),
        ("kendall-tau", "tau"),
        ("disagreement_error", "disagreement"),
        ("ndcg( gain = linear )@3", "ndcg(gain=linear)@3"),
        ("map(tied_scores=order, relevant=2)", "map(relevant=2,tied_scores=order)"),
        ("map(relevant=0.5)", "map(relevant=0.5)"),
    ],
)
def test_a_metric_prints_as_its_name(typed, name):
    assert str(get_metric(typed)) == repr(get_metric(typed)) == name


@pytest.mark.parametrize("name", [*EVERY, "ndcg(gain=linear)@3", "map(relevant=0.5)@7"])
def test_the_printed_name_gives_the_same_metric_back(name):
    metric = get_metric(name)
    assert get_metric(str(metric)) == metric
    assert get_metric(metric) is metric


def test_metrics_can_be_pickled_and_hashed():
    metric = get_metric("ndcg(gain=linear)@3")
    assert {pickle.loads(pickle.dumps(metric)): 1}[metric] == 1


def with_cutoff(name):
    return get_metric(f"{name}@5" if name in ("p", "recall", "judged", "success") else name)


def test_only_errors_are_better_when_smaller():
    smaller = [n for n in metric_names() if not with_cutoff(n).greater_is_better]
    assert smaller == ["disagreement", "mse"]


def test_options_in_the_name_reach_the_metric_and_those_of_the_call_win():
    y, score = [3, 1, 2], [1, 3, 2]
    assert get_metric("ndcg(gain=linear)@2")(y, score) == ndcg(y, score, k=2, gain="linear")
    assert get_metric("ndcg@2")(y, score, k=1, gain="linear") == ndcg(y, score, k=1, gain="linear")


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("ndgc@10", "'ndgc@10' is not known; did you mean 'ndcg'"),
        ("accuracy", "The metrics are auc, concordance, disagreement, err"),
        ("", "'' is not known"),
        ("ndcg@10@5", "is not known"),
        ("p", "needs a cut-off, such as p@10"),
        ("tau@5", "tau has no cut-off"),
        ("ndcg@", "cut-off after @ must be a whole number"),
        ("ndcg@ten", "cut-off after @ must be a whole number"),
        ("ndcg@0", "k=0; expected a whole number"),
        ("ndcg(gian=linear)", "'gian=linear' is not an option; did you mean 'gain'"),
        ("ndcg(linear)", "'linear' is not an option. .*gain, tied_scores"),
        (10, "given by name, such as 'ndcg@10', or as a function, got 10"),
    ],
)
def test_unknown_names_are_refused_with_a_hint(name, message):
    with pytest.raises(ValueError, match=message):
        get_metric(name)


def test_evaluate_agrees_with_the_single_metrics():
    rng = np.random.default_rng(0)
    y, groups = rng.integers(0, 3, 200), rng.integers(0, 30, 200)
    score = rng.integers(0, 9, 200)
    result = evaluate(y, score, groups, EVERY)
    for name in EVERY:
        single = get_metric(name)(y, score, groups, per_group=True)
        np.testing.assert_array_equal(result.per_group[name], single)
        assert result[name] == get_metric(name)(y, score, groups)


def test_evaluate_pools_pairs_when_the_name_says_so():
    y, score, groups = [0, 1, 0, 1, 1], [1, 2, 2, 1, 1], [0, 0, 1, 1, 1]
    result = evaluate(y, score, groups, "disagreement(average=pairs)")
    assert [row.mean for row in result] == [pytest.approx(2 / 3)]


def test_evaluate_counts_the_groups_that_have_no_value_of_their_own():
    rows = evaluate(Y, SCORE, GROUPS, ["ndcg@3", "p@2"]).rows
    assert [(row.name, row.n_groups, row.n_undefined) for row in rows] == [
        ("ndcg@3", 2, 1),
        ("p@2", 2, 0),
    ]
    (row,) = evaluate(Y, SCORE, GROUPS, ["ndcg"], undefined="one")
    assert (row.n_undefined, row.mean) == (1, (1 + ndcg(Y, SCORE, GROUPS)) / 2)


def test_evaluate_reports_nan_where_no_group_has_a_value_or_raises_on_request():
    result = evaluate([0, 0], [1, 2], None, ["ndcg", "p@1"])
    assert np.isnan(result["ndcg"])
    assert result["p@1"] == 0.0
    assert evaluate(Y, SCORE, GROUPS).groups.tolist() == ["a", "b"]
    with pytest.raises(UndefinedMetricError, match="group 'b'"):
        evaluate(Y, SCORE, GROUPS, ["ndcg"], undefined="raise")


def test_an_evaluation_is_found_under_any_spelling():
    result = evaluate(Y, SCORE, GROUPS, ["precision@2", "P@2"])
    assert len(result) == len(result.per_group) == 1
    assert result["P@2"] == result[get_metric("p@2")] == result.to_dict()["p@2"]
    with pytest.raises(KeyError, match="map"):
        result["map"]


def test_an_evaluation_prints_as_an_aligned_table():
    result = evaluate(Y, SCORE, GROUPS, ["ndcg@10", "map(tied_scores=order)@3", "tau"])
    lines = str(result).splitlines()
    assert lines[0].split() == ["metric", "mean", "95%", "interval", "groups", "undefined"]
    end = lines[0].index("mean") + len("mean")
    assert [line[:end].split()[-1] for line in lines[1:]] == [f"{row.mean:.4f}" for row in result]


def test_the_interval_is_that_of_student_over_the_groups():
    rng = np.random.default_rng(0)
    y, score, groups = rng.integers(0, 3, 300), rng.normal(size=300), np.arange(300) % 30
    for row in evaluate(y, score, groups, ["tau", "disagreement"], confidence=0.9):
        values = get_metric(row.name)(y, score, groups, per_group=True)
        truth = scipy.stats.t.interval(0.9, 29, values.mean(), scipy.stats.sem(values))
        np.testing.assert_allclose([row.low, row.high], truth)


def test_the_interval_of_pooled_pairs_is_that_of_the_jackknife():
    rng = np.random.default_rng(0)
    groups = np.sort(rng.integers(0, 40, 400))
    y, score = rng.integers(0, 3, 400), rng.normal(size=400)
    name = "disagreement(average=pairs)"
    (row,) = evaluate(y, score, groups, name)
    alone = [get_metric(name)(*(c[groups != g] for c in (y, score, groups))) for g in range(40)]
    error = np.sqrt(39 / 40 * np.sum((alone - np.mean(alone)) ** 2))
    half = scipy.stats.t.ppf(0.975, 39) * error
    np.testing.assert_allclose([row.mean - row.low, row.high - row.mean], half, rtol=0.1)


def test_an_interval_needs_two_groups_that_differ_and_stays_on_the_scale():
    assert np.isnan(evaluate([0, 1], [1, 2], None, "tau").rows[0].low)
    (same,) = evaluate([0, 1, 0, 1], [1, 2, 1, 2], [0, 0, 1, 1], "tau")
    assert np.isnan([same.low, same.high]).all()
    (wide,) = evaluate([0, 1, 0, 1], [1, 2, 2, 1], [0, 0, 1, 1], "tau")
    assert (wide.low, wide.high) == (-1.0, 1.0)
    with pytest.raises(ValueError, match="confidence=95"):
        evaluate([0, 1], [1, 2], confidence=95)


def test_a_metric_knows_its_title_and_what_it_means():
    metric = get_metric("p(relevant=2)@5")
    assert (metric.title, metric.short_title) == ("Precision(relevant=2)@5", "P(relevant=2)@5")
    assert get_metric("map").title == "Mean average precision"
    assert metric.meaning == "Share of the first 5 places that are relevant."
    assert get_metric("hit").meaning == get_metric("hit@1").meaning
    assert "in the first place" in get_metric("hit").meaning
    assert "all places" in get_metric("ndcg").meaning
    for name in metric_names():
        metric = with_cutoff(name)
        assert metric.title[0].isupper()
        assert metric.meaning.endswith(".")
        assert "k places" not in metric.meaning


def test_the_public_function_has_the_options_of_the_metric():
    names = list(inspect.signature(ndcg).parameters)
    options = ["k", "gain", "tied_scores", "sample_weight", "undefined", "per_group"]
    assert names == ["y_true", "y_score", "groups", *options]
    assert "sample_weight" not in inspect.signature(rankwise.metrics.auc).parameters


def test_html_and_frame_have_a_row_for_each_metric(monkeypatch):
    result = evaluate(Y, SCORE, GROUPS, ["ndcg", "p@2"])
    assert result._repr_html_().count("<tr>") == 3
    assert "<td>p@2</td>" in result._repr_html_()
    frame = result.to_frame()
    assert frame.index.tolist() == ["ndcg", "p@2"]
    assert frame["undefined"].tolist() == [1, 0]
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(ImportError, match="pip install pandas"):
        result.to_frame()
