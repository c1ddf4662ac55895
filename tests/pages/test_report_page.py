"""The report page: what it says is true, nothing in it can run, and it stays small."""

from __future__ import annotations

import itertools
import re
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
import scipy.stats
from hypothesis import example, given, settings
from hypothesis import strategies as st
from sklearn.feature_selection import SelectKBest, f_regression
from sklearn.linear_model import Ridge
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import StandardScaler

from rankwise import (
    AutoRanker,
    CalibratedRanker,
    CoRankRLS,
    CoRankRLSCV,
    PairGraph,
    RankingPursuit,
    RankingPursuitCV,
    RankRLS,
    RankRLSCV,
    RankSVM,
    RankSVMCV,
    ScoreGraph,
    View,
    make_target,
)
from rankwise.datasets import make_ranking
from rankwise.metrics import evaluate, get_metric, kendall_tau, ndcg
from rankwise.model_selection import compare
from rankwise.pages.page_values import as_text
from rankwise.pages.report import (
    group_sections,
    html_text,
    margin_sections,
    metric_results,
    report_tables,
)
from rankwise.pages.report.report_data import make_scored_items
from rankwise.report import report
from rankwise.uncertainty.held_out_pairs import draw_pairs
from tests.auto.comparison_data import cyclic_types
from tests.pages.data import HOSTILE, Outline, assert_nothing_foreign_runs, data_of

ODD = "<>&\"'/\\!- aé🏳\u2028\ud800\x00\n"
X, y, groups = make_ranking(n_queries=12, n_documents=(3, 9), n_features=5, random_state=0)[:3]
MODEL = RankRLS().fit(X, y, groups)


def make_report(*arguments, **options):
    """The page as text."""
    return str(report(*arguments, **options))


def words_of(page):
    return Outline(page).words


# ---------------------------------------------------------------- what it says is true

levels = st.integers(0, 3).map(float)
items = st.lists(st.tuples(levels, levels, st.integers(0, 2)), min_size=1, max_size=25)


def pairs_of(scored):
    for i, j in itertools.permutations(range(len(scored.y)), 2):
        if scored.groups.codes[i] == scored.groups.codes[j] and scored.y[i] > scored.y[j]:
            yield i, j


@settings(max_examples=50)
@given(items)
def test_swaps_pairs_ties_and_margins_are_those_of_a_double_loop(rows):
    truth, scores, labels = (list(column) for column in zip(*rows, strict=True))
    scored = make_scored_items(scores, truth, labels, None)
    too_high, too_low = np.zeros(len(rows), int), np.zeros(len(rows), int)
    n_pairs, tied = np.zeros(scored.groups.n_groups, int), 0
    for i, j in pairs_of(scored):
        n_pairs[scored.groups.codes[i]] += 1
        tied += scores[i] == scores[j]
        if scores[i] < scores[j]:
            too_high[j] += 1
            too_low[i] += 1
    np.testing.assert_array_equal(scored.swaps[0], too_high)
    np.testing.assert_array_equal(scored.swaps[1], too_low)
    np.testing.assert_array_equal(scored.counts.different_y, n_pairs)
    assert scored.counts.tied_scores.sum() == tied
    expected = sorted(scores[i] - scores[j] for i, j in pairs_of(scored))
    np.testing.assert_array_equal(sorted(margins_of(scored)), expected)


def margins_of(scored, n_pairs=10**6, seed=0):
    drawn = draw_pairs(scored.y, scored.groups.codes, n_pairs, np.random.default_rng(seed))
    return np.subtract(*(scored.scores[ends] for ends in drawn))


def test_too_many_pairs_are_sampled_evenly_and_the_page_says_so(monkeypatch):
    rng = np.random.default_rng(0)
    truth, scores, labels = rng.integers(0, 3, 60), rng.normal(size=60), rng.integers(0, 4, 60)
    scored = make_scored_items(scores, truth, labels, None)
    every = margins_of(scored)
    drawn = np.concatenate([margins_of(scored, 20, seed) for seed in range(500)])
    values, counts = np.unique(drawn, return_counts=True)
    np.testing.assert_array_equal(values, np.unique(every))
    assert scipy.stats.chisquare(counts).pvalue > 0.001
    monkeypatch.setattr(margin_sections, "MAX_PAIRS", 20)
    page = make_report(scores, None, truth, labels, metrics="tau")
    assert f"random sample of 20 of the {len(every)} pairs" in words_of(page)


def test_margin_histogram_holds_every_pair_on_its_side_of_zero():
    rng = np.random.default_rng(1)
    truth, scores = rng.integers(0, 4, 50), rng.integers(0, 9, 50) / 8 + rng.normal(size=50).round()
    found = data_of(make_report(scores, None, truth, metrics="tau"))["margins"]
    edges, counts = np.array(found["edges"]), np.array(found["counts"])
    assert 0 in edges
    assert counts.sum() + found["zero"] == found["used"] == found["total"]
    assert counts[edges[1:] <= 0].sum() == found["wrong"]
    assert found["zero"] == found["tied"]
    found = data_of(make_report(np.ones(6), None, [0, 1, 2, 0, 1, 2], metrics="tau"))["margins"]
    assert found["tied"] == found["zero"] == found["total"] == 12
    assert found["wrong"] == 0
    assert sum(found["counts"]) == 0


def test_means_are_those_of_evaluate_and_intervals_are_students():
    scores = MODEL.predict(X) + np.random.default_rng(0).normal(size=len(y))
    page = make_report(scores, None, y, groups, confidence=0.9)
    table = evaluate(y, scores, groups)
    scored = make_scored_items(scores, y, groups, None)
    results = metric_results.measure(scored, ("ndcg@10", "map", "disagreement", "tau"), 0.9)
    for result, row in zip(results, table, strict=True):
        assert result.mean == pytest.approx(row.mean)
        assert result.n_undefined == row.n_undefined
        values = table.per_group[row.name]
        values = values[~np.isnan(values)]
        half = scipy.stats.t.ppf(0.95, len(values) - 1) * scipy.stats.sem(values)
        low, high = values.mean() - half, values.mean() + half
        assert result.low == pytest.approx(max(low, result.metric.lowest))
        assert result.high == pytest.approx(min(high, 1.0))
        assert f"{row.mean:.3f}" in words_of(page)


def test_a_value_that_all_groups_share_has_no_interval():
    words = words_of(make_report(y, None, y, groups, metrics="tau"))
    n_groups = len(np.unique(groups)) - sum(len(set(y[groups == g])) == 1 for g in set(groups))
    assert f"the same in all {n_groups} groups: no interval" in words
    assert "95%:" not in words


def test_an_interval_from_few_groups_is_called_a_rough_guess(rng):
    for n_groups in (2, 4, 5):
        truth, labels = np.tile(np.arange(9), n_groups), np.repeat(np.arange(n_groups), 9)
        scores = truth + 3 * rng.normal(size=len(truth))
        words = words_of(make_report(scores, None, truth, labels, metrics="tau"))
        assert "95% interval:" in words
        assert (f"a rough estimate from {n_groups} groups" in words) == (n_groups < 5)


def test_ratings_from_1_to_5_have_no_average_precision_by_default(rng):
    ratings, labels = rng.integers(1, 6, 40), np.repeat(np.arange(4), 10)
    scores = rng.normal(size=40)
    names = [
        each["name"] for each in data_of(make_report(scores, None, ratings, labels))["metrics"]
    ]
    assert names == ["ndcg@10", "disagreement", "tau"]
    assert [row.name for row in evaluate(ratings, scores, labels)] == names
    assert evaluate(ratings, scores, labels, "map")["map"] == 1.0  # whoever asks gets it
    assert "map" in evaluate(ratings - 1, scores, labels).to_dict()


def test_no_error_at_all_is_a_question(rng):
    X, y, groups = rng.normal(size=(60, 3)), rng.normal(size=60), np.repeat(np.arange(6), 10)
    leaking = np.c_[X, 10 + 2 * y]
    model = RankRLS(1e-9).fit(leaking, y, groups)
    names = ["a", "b", "c", "<d>"]
    words = words_of(make_report(model, leaking, y, groups, feature_names=names, metrics="tau"))
    assert (
        "Perfect score: is the true score, or something computed from it, among the features?"
        in words
    )
    assert "<d> alone has no error either." in words
    model = RankRLS().fit(X, y, groups)
    assert "Perfect score" not in words_of(make_report(model, X, y, groups, metrics="tau"))
    for n_low, n_high, is_asked in ((1, 19, False), (4, 5, True)):  # 19 pairs may be luck, 20 not
        truth = np.repeat([0.0, 1.0], [n_low, n_high])
        said = words_of(make_report(truth, None, truth, metrics="tau"))
        assert ("Perfect score" in said) == is_asked


@pytest.mark.parametrize(
    "n, total, said",
    [
        (0, 9, "0.0%"),
        (1, 2001, "less than 0.1%"),
        (1, 2000, "0.1%"),
        (1998, 2000, "99.9%"),
        (1999, 2000, "more than 99.9%"),
        (9, 9, "100.0%"),
    ],
)
def test_shares_at_the_edges_of_their_words(n, total, said):
    assert html_text.share_text(n, total) == said


def test_the_sentence_has_shares_in_words():
    truth = np.arange(200.0)
    words = words_of(make_report(np.r_[1.0, 0.0, truth[2:]], None, truth, metrics="tau"))
    assert "more than 99.9% are in the right order and less than 0.1% in the wrong order" in words


def test_a_level_of_best_sets_is_promised_from_as_many_groups_as_it_needs():
    scored = make_scored_items(MODEL.predict(X), y, groups)
    for n_gaps, levels in ((8, ["50%", "80%"]), (9, ["50%", "80%", "90%"]), (1, ["50%"])):
        table = report_tables.best_set_table(SimpleNamespace(gaps_=[np.zeros(n_gaps)]), scored)
        assert re.findall(r"<tr><td>(\d+%)</td>", table) == levels


def test_sentence_and_cards_say_what_counts_how_much():
    says = "in the sentence above, pairs have equal weights"
    assert says in words_of(make_report(MODEL, X, y, groups))
    pooled = "disagreement(average=pairs)"
    assert says not in words_of(make_report(MODEL, X, y, groups, metrics=pooled))


def test_groups_come_worst_first_with_their_values():
    groups_data = data_of(make_report(MODEL, X, y, groups))["groups"]
    values = [value for value in groups_data["values"][0] if value is not None]
    assert values == sorted(values)
    table = evaluate(y, MODEL.predict(X), groups, "ndcg@10")
    by_name = dict(zip(map(str, table.groups), table.per_group["ndcg@10"], strict=True))
    for name, value in zip(groups_data["names"], groups_data["values"][0], strict=True):
        assert value == pytest.approx(by_name[name], abs=1e-4, nan_ok=True)
    errors = data_of(make_report(MODEL, X, y, groups, metrics="disagreement"))["groups"]["values"]
    values = [value for value in errors[0] if value is not None]
    assert values == sorted(values, reverse=True)


@pytest.mark.parametrize("name", ["tau", "disagreement", "ndcg@5"])
def test_histogram_and_median_are_of_all_groups_even_if_few_are_listed(monkeypatch, name):
    monkeypatch.setattr(group_sections, "MAX_LISTED_GROUPS", 5)
    scores = MODEL.predict(X) + np.random.default_rng(0).normal(size=len(y))
    data = data_of(make_report(scores, None, y, groups, metrics=name))
    values = evaluate(y, scores, groups, name).per_group[name]
    values = values[~np.isnan(values)]
    metric = data["metrics"][0]
    assert len(data["groups"]["names"]) == 5 < len(values) == metric["defined"]
    assert metric["median"] == pytest.approx(np.median(values), rel=1e-4)
    edges = np.linspace(metric["start"], 1.0, 21)
    assert metric["counts"] == np.histogram(values, edges - 1e-9 * (edges < 1))[0].tolist()


def test_items_have_the_ranks_of_their_group():
    data = data_of(make_report(MODEL, X, y, groups, ids=[f"item {i}" for i in range(len(y))]))
    rank = MODEL.rank(X, groups)
    seen = 0
    for group in data["items"]:
        rows = [int(name.split()[1]) for name in group["names"]]
        assert group["predicted"] == rank[rows].tolist() == sorted(group["predicted"])
        assert group["y"] == y[rows].tolist()
        seen += len(rows)
    assert seen == len(y)


@pytest.mark.parametrize("convert", [np.asarray, sp.csr_matrix])
def test_contributions_add_up_to_the_centered_scores(convert):
    scaler = StandardScaler(with_mean=False)
    model = make_pipeline(scaler, RankRLS()).fit(X, make_target(y, groups))
    data = data_of(make_report(model, convert(X), y, groups))
    scores = model.predict(X)
    for name, group in zip(data["groups"]["names"], data["items"], strict=True):
        rows = [int(row.split()[1]) for row in group["names"]]
        centered = scores[rows] - scores[groups == int(name)].mean()
        np.testing.assert_allclose(np.sum(group["contributions"], axis=1), centered, atol=2e-3)


def test_unscored_items_are_left_out_and_counted():
    truth = y.copy()
    truth[::3] = np.nan
    kept = ~np.isnan(truth)
    page = make_report(MODEL, X, truth, groups)
    reduced = make_report(MODEL, X[kept], y[kept], groups[kept], ids=np.flatnonzero(kept))
    assert f"{(~kept).sum()} items without a true score (NaN) are dropped" in words_of(page)
    assert data_of(page)["groups"] == data_of(reduced)["groups"]
    assert data_of(page)["features"] == data_of(reduced)["features"]
    names = {int(name.split()[1]) for group in data_of(page)["items"] for name in group["names"]}
    assert names == set(np.flatnonzero(kept))


def test_structured_targets_graphs_and_given_scores_say_the_same():
    plain = data_of(make_report(MODEL, X, y, groups))
    target = data_of(make_report(MODEL, X, make_target(y, groups)))
    graph = data_of(make_report(MODEL, X, ScoreGraph(y, groups)))
    given_scores = data_of(make_report(MODEL.predict(X), None, y, groups))
    assert plain == target
    assert plain["groups"]["values"] == graph["groups"]["values"]
    assert plain["groups"] == given_scores["groups"]
    assert given_scores["features"] is None


def test_one_list_has_no_interval():
    words = words_of(make_report(MODEL, X, y))
    assert "one list: no interval" in words
    assert "only one list" in words
    words = words_of(make_report(MODEL, X, y, metrics="auc(relevant=2)"))
    assert "95% interval: " in words
    assert "rough estimate" not in words
    assert "interval is for other items of this list (DeLong)" in words
    assert f"on {len(y)} items" in words


def test_undefined_groups_are_counted_with_their_reason():
    words = words_of(make_report([1.0, 2, 3, 4], None, [1, 1, 1, 2], list("aabb"), metrics="tau"))
    assert "undefined in 1 of 2 groups: it requires two items with different true scores" in words
    assert "one group: no interval" in words
    assert "one list" not in words


def test_a_metric_that_refuses_the_true_scores_leaves_the_others():
    page = make_report(MODEL, X, y - 10, groups, metrics=["ndcg@5", "tau"])
    assert "ndcg needs relevance of 0 or larger" in words_of(page)
    assert [metric["name"] for metric in data_of(page)["metrics"]] == ["tau"]
    with pytest.raises(ValueError, match="ndcg needs relevance of 0 or larger"):
        make_report(MODEL, X, y - 10, groups, metrics="ndcg@5")


# ---------------------------------------------------------------- every kind of model

HALF = groups < 6
VIEWS = [View(slice(0, 2)), View(slice(2, None))]


@pytest.mark.parametrize(
    ("model", "has_weights", "variable"),
    [
        (RankRLS(), True, None),
        (RankRLS(kernel="rbf"), False, None),
        (RankRLSCV(), True, "alpha"),
        (RankRLSCV(kernel="rbf", gamma=[0.01, 0.1]), False, "alpha"),
        (RankSVM(), True, None),
        (RankSVMCV(cv=3), True, "alpha"),
        (CoRankRLS(views=VIEWS), True, None),
        (CoRankRLS(views=2, kernel="rbf", n_basis=10), False, None),
        (CoRankRLSCV(views=VIEWS), True, "alpha"),
        (RankingPursuit(5), False, None),
        (RankingPursuit(5, dictionary="features", kernel="linear"), True, None),
        (RankingPursuitCV(5, gamma=[0.01, 0.1]), False, "n_basis"),
        (make_pipeline(StandardScaler(), RankRLSCV()), True, "alpha"),
        (make_pipeline(StandardScaler(), Ridge()), True, None),
    ],
    ids=lambda value: re.sub(r"\s+", "", str(value))[:60],
)
def test_every_model_has_a_page(model, has_weights, variable):
    fit = {} if "ridge" in getattr(model, "named_steps", {}) else {"groups": groups[HALF]}
    if hasattr(model, "named_steps") and fit:
        model.fit(X[HALF], make_target(y[HALF], groups[HALF]))
    else:
        model.fit(X[HALF], y[HALF], **fit)
    data = data_of(make_report(model, X[~HALF], y[~HALF], groups[~HALF]))
    assert (data["features"] is not None) == has_weights
    assert (data["curves"] or {}).get("variable") == variable
    if has_weights:
        scores = model.predict(X)
        for name, group in zip(data["groups"]["names"], data["items"], strict=True):
            centered = np.array(group["scores"]) - scores[groups == int(name)].mean()
            np.testing.assert_allclose(np.sum(group["contributions"], axis=1), centered, atol=5e-3)


def test_names_of_features_pass_through_a_step_that_selects_some():
    names = ["a", "b", "c", "d", "e"]
    select = SelectKBest(f_regression, k=2).fit(X, y)
    kept = [name for name, stays in zip(names, select.get_support(), strict=True) if stays]
    model = Pipeline([("select", select), ("rank", RankRLS().fit(select.transform(X), y, groups))])
    page = make_report(model, X, y, groups, feature_names=names)
    assert sorted(data_of(page)["features"]["names"]) == kept


def test_a_grid_search_is_looked_into():
    search = GridSearchCV(make_pipeline(StandardScaler(), RankRLS()), {"rankrls__alpha": [0.1, 1]})
    search.fit(X, make_target(y, groups))
    page = make_report(search, X, y, groups)
    assert data_of(page)["features"]["total"] == 5
    assert "StandardScaler → RankRLS" in words_of(page)
    assert "The parameters were chosen by GridSearchCV" in words_of(page)
    assert "did not search" not in words_of(page)


def test_curve_of_a_search_is_its_cross_validation():
    model = RankRLSCV(kernel="rbf", gamma=[0.01, 0.1], scoring="ndcg@5").fit(X, y, groups)
    curves = data_of(make_report(model, X, y, groups))["curves"]
    assert curves["best"]["x"] == pytest.approx(model.alpha_, rel=1e-4)
    assert curves["best"]["y"] == pytest.approx(model.best_score_, rel=1e-4)
    best = model.cv_results_["params"].index(
        next(p for p in model.cv_results_["params"] if p["gamma"] == model.best_params_["gamma"])
    )
    np.testing.assert_allclose(
        curves["curves"][0]["mean"], model.cv_results_["mean_score"][best], rtol=1e-4
    )
    assert curves["curves"][0]["label"] == f"gamma = {model.best_params_['gamma']}"


@pytest.mark.parametrize(
    ("model", "in_groups", "in_one_list"),
    [
        (RankRLSCV(), "groups", None),
        (RankRLSCV(cv=4), "groups", "folds"),
        (RankSVMCV(cv=3), "groups", "folds"),
        (CoRankRLSCV(views=VIEWS, cv=4), "groups", "folds"),
        (RankingPursuitCV(3, cv=4), "groups", "folds"),
    ],
    ids=lambda value: re.sub(r"\s+", "", str(value))[:40],
)
@pytest.mark.filterwarnings("ignore:the best alpha")  # of thirty random items
def test_the_band_of_a_curve_says_what_it_is_over(model, in_groups, in_one_list):
    curves = data_of(make_report(model.fit(X, y, groups), X, y, groups))["curves"]
    n_defined = sum(len(set(y[groups == g])) > 1 for g in set(groups))
    assert (curves["nUnits"], curves["unit"]) == (n_defined, in_groups)
    some = slice(0, 30)
    model.fit(X[some], y[some])
    curves = data_of(make_report(model, X[some], y[some]))["curves"]
    if in_one_list is None:  # leave-pair-out: one value, no band
        assert curves["nUnits"] == 1
        assert curves["curves"][0]["low"][0] is None
    else:
        assert 1 < curves["nUnits"] <= 4
        assert curves["unit"] == in_one_list


def test_feature_names_come_from_the_user_the_frame_or_the_model():
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(X, columns=[*"abcde"])
    model = RankRLS().fit(frame, y, groups)
    listed = lambda page: set(data_of(page)["features"]["names"])  # noqa: E731
    assert listed(make_report(model, frame, y, groups)) == {*"abcde"}
    assert listed(make_report(MODEL, X, y, groups)) == {"x0", "x1", "x2", "x3", "x4"}
    named = make_report(MODEL, X.tolist(), y, groups, feature_names=[*"vwxyz"])
    assert listed(named) == {*"vwxyz"}
    pipeline = make_pipeline(StandardScaler(), RankRLS()).fit(X, make_target(y, groups))
    assert listed(make_report(pipeline, X, y, groups, feature_names=[*"vwxyz"])) == {*"vwxyz"}


# ---------------------------------------------------------------- nothing in it can run


def test_hostile_names_stay_text():
    labels = [HOSTILE[i % len(HOSTILE)] for i in range(40)]
    truth = np.arange(40) // 8
    features = np.random.default_rng(0).normal(size=(40, 8))
    model = RankRLS().fit(features, truth)
    page = make_report(
        *(model, features, truth, labels),
        ids=labels,
        feature_names=HOSTILE,
        title=HOSTILE[0],
    )
    clean = make_report(model, features, truth, [str(len(label)) for label in labels], title="t")
    assert Outline(page).tags == Outline(clean).tags
    assert HOSTILE[0] in words_of(page)
    assert set(data_of(page)["groups"]["names"]) == {as_text(label) for label in labels}
    assert set(data_of(page)["features"]["names"]) <= {as_text(name) for name in HOSTILE}
    page.encode("utf-8")


@settings(max_examples=25)
@example(HOSTILE)
@given(st.lists(st.text(ODD, max_size=12), min_size=2, max_size=6))
def test_any_names_survive_as_data_that_html_and_script_cannot_mistake(names):
    page = make_report(np.arange(len(names)), None, np.arange(len(names)), ids=names, metrics="tau")
    assert sorted(data_of(page)["items"][0]["names"]) == sorted(as_text(name) for name in names)
    inside = page.split('id="data">')[1].split("</script>")[0]
    assert not set(inside) & set("<>&\u2028\u2029")


def test_page_loads_nothing_allows_its_own_script_only_and_is_the_same_again():
    page = make_report(MODEL, X, y, groups)
    assert_nothing_foreign_runs(page)
    assert make_report(MODEL, X, y, groups) == page


# ---------------------------------------------------------------- it stays small


def test_long_groups_are_cut_and_the_page_says_so():
    rng = np.random.default_rng(0)
    truth, scores = rng.normal(size=1000), rng.normal(size=1000)
    page = make_report(scores, None, truth, metrics="tau")
    group = data_of(page)["items"][0]
    assert group["total"] == 1000
    assert len(group["names"]) == group_sections.MAX_ITEMS_PER_GROUP
    assert set(range(1, 51)) <= set(group["predicted"])
    assert set(range(1, 51)) <= set(group["true"])
    assert "1 group of more than 200 items is shortened" in words_of(page)
    for n in (200, 201):
        page = make_report(scores[:n], None, truth[:n], metrics="tau")
        assert ("of more than 200 items" in words_of(page)) == (n > 200)


def test_many_groups_are_cut_and_the_page_says_so(monkeypatch):
    monkeypatch.setattr(group_sections, "MAX_LISTED_GROUPS", 40)
    monkeypatch.setattr(group_sections, "MAX_SHOWN_ITEMS", 45)
    labels = np.repeat(np.arange(60), 3)
    rng = np.random.default_rng(0)
    truth, scores = rng.integers(0, 3, 180), rng.normal(size=180)
    page = make_report(scores, None, truth, labels, metrics="disagreement")
    data = data_of(page)
    assert len(data["groups"]["names"]) == len(set(data["groups"]["names"])) == 40
    assert data["groups"]["total"] == 60
    assert len(data["items"]) == 15
    errors = evaluate(truth, scores, labels, "disagreement").per_group["disagreement"]
    worst = np.argsort(-np.nan_to_num(errors, nan=-1), kind="stable")
    assert {str(g) for g in worst[:8]} <= set(data["groups"]["names"][:15])
    assert str(worst[: (~np.isnan(errors)).sum()][-1]) in data["groups"]["names"][:15]
    words = words_of(page)
    assert "40 of 60 groups are listed" in words
    assert "the items of 15 groups" in words


def test_page_of_large_data_is_at_most_five_megabytes():
    n = 60_000
    rng = np.random.default_rng(0)
    features = rng.normal(size=(n, 20))
    labels = np.array([f"a rather long name of the query number {g}" for g in range(n // 2)])
    groups = np.repeat(labels, 2)
    model = RankRLS().fit(features, rng.integers(0, 3, n), groups)
    page = make_report(
        *(model, features, rng.integers(0, 3, n), groups),
        ids=[f"document with a long name in a long collection number {i}" for i in range(n)],
    )
    assert len(page.encode()) < 5_500_000


# ---------------------------------------------------------------- bad input


@pytest.mark.parametrize(
    ("arguments", "options", "message"),
    [
        ((MODEL, X, y[:-1], groups), {}, "entries; pass one y for each row"),
        ((MODEL, X, y, groups[:-1]), {}, "groups has .* entries but there are"),
        ((MODEL, X[:, :-1], y, groups), {}, "features"),
        ((MODEL, X, np.full(len(y), np.nan), groups), {}, "every y is NaN"),
        ((MODEL, X, np.where(y == 1, np.inf, y), groups), {}, "infinity"),
        ((MODEL, X, np.c_[y, y], groups), {}, "one output"),
        ((np.c_[y, y], X, y, groups), {}, "the predicted scores: the shape"),
        ((np.where(y == 1, np.nan, y), X, y, groups), {}, "y_score contains NaN"),
        ((MODEL, X, y, groups), {"ids": ["a"]}, "ids has 1 entries"),
        ((MODEL, X, y, groups), {"feature_names": ["a"]}, "feature_names has 1 entries"),
        ((MODEL, X, y, groups), {"confidence": 95}, "confidence=95"),
        ((MODEL, X, y, groups), {"metrics": []}, "metrics is empty"),
        ((MODEL, X, y, groups), {"metrics": "ndgc"}, "did you mean 'ndcg'"),
        ((RankRLS, X, y, groups), {}, "expected a fitted estimator"),
        ((None, X, y, groups), {}, "expected a fitted estimator"),
        ((MODEL, X, PairGraph([0], [1], n_items=len(y))), {}, "y is a PairGraph"),
        ((RankRLS(), X, y, groups), {}, "not fitted"),
        ((RankRLSCV(), X, y, groups), {}, "not fitted"),
        (([1.0, 2, 3], None, [0, 0, 0], [1, 1, 2]), {}, "no metric is defined in any of the 2"),
    ],
)
def test_bad_input_is_refused_with_a_remedy(arguments, options, message):
    with pytest.raises(ValueError, match=message):
        make_report(*arguments, **options)


def test_file_appears_whole_or_not_at_all(tmp_path):
    path = tmp_path / "report.html"
    report(MODEL, X, y, groups, title="First").save(path)
    assert path.read_text(encoding="utf-8") == make_report(MODEL, X, y, groups, title="First")
    with pytest.raises(ValueError, match="groups has"):
        report(MODEL, X, y, groups[:-1]).save(path)
    assert "First" in path.read_text(encoding="utf-8")
    assert [each.name for each in tmp_path.iterdir()] == ["report.html"]
    with pytest.raises(FileNotFoundError, match="does not exist"):
        report(MODEL, X, y, groups).save(tmp_path / "nowhere" / "report.html")


def test_a_notebook_shows_the_page_in_a_frame_of_its_own():
    page = report(MODEL, X, y, groups, title=HOSTILE[0])
    shown = Outline(page._repr_html_())
    assert shown.tags == ["iframe"]
    assert shown.attributes[0][1]["srcdoc"] == str(page)


@pytest.mark.parametrize("outside", [False, True])
def test_a_calibrated_model_shows_how_sure_it_is(outside):
    if outside:
        model = CalibratedRanker(make_pipeline(StandardScaler(), RankRLSCV())).fit(X, y, groups)
        ranker, seen = model, X
    else:
        model = make_pipeline(StandardScaler(), CalibratedRanker(RankRLSCV()))
        model.fit(X, make_target(y, groups))
        ranker, seen = model[-1], model[:-1].transform(X)
    page = make_report(model, X, y, groups)
    data = data_of(page)
    found = ranker.rank_interval(seen, groups)
    scores = model.predict(X)
    shown = {name: k for k, name in enumerate(data["groups"]["names"])}
    for label in np.unique(groups)[:4]:
        items = data["items"][shown[str(label)]]
        rows = np.flatnonzero(groups == label)
        rows = rows[np.argsort(-scores[rows], kind="stable")]
        assert items["rankLow"] == found.low[rows].tolist()
        assert items["rankHigh"] == found.high[rows].tolist()
    errors = np.linalg.norm(ranker.root_, axis=1)
    listed = [int(name[1:]) for name in data["features"]["names"]]
    np.testing.assert_allclose(data["features"]["errors"], errors[listed], rtol=1e-3)
    bins = ranker.reliability()
    np.testing.assert_allclose(data["reliability"]["predicted"], bins.predicted, rtol=1e-4)
    np.testing.assert_allclose(data["reliability"]["observed"], bins.observed, rtol=1e-4)
    assert data["reliability"]["pairs"] == bins.n_pairs.sum()
    assert data["reliability"]["loss"] == pytest.approx(ranker.log_loss_, rel=1e-4)
    assert data_of(make_report(MODEL, X, y, groups))["reliability"] is None
    codes = np.unique(groups, return_inverse=True)[1]
    sizes = np.bincount(codes, ranker.best_set(seen, groups, level=0.8))
    mean = np.bincount(codes).mean()
    assert f"<td>80%</td><td>{sizes.mean():.1f} of {mean:.1f}</td>" in str(page)
    assert "How many must be looked at" not in str(make_report(MODEL, X, y, groups))


@pytest.fixture
def rng():
    return np.random.default_rng(0)


def test_random_order_on_a_card_is_that_of_a_constant_score(rng):
    # which is the mean over all orders: tests/metrics/test_invariants.py
    y, groups = rng.integers(0, 3, 24), np.repeat([0, 1, 2], 8)
    names = ["ndcg@3", "map", "p@2", "recall@2", "mrr", "disagreement", "tau"]
    words = words_of(make_report(rng.random(24), None, y, groups, metrics=names))
    shown = [
        float(text.replace("−", "-")) for text in re.findall(r"random order (−?[\d.]+)", words)
    ]
    truth = [get_metric(name)(y, np.zeros(24), groups) for name in names]
    np.testing.assert_allclose(shown, truth, atol=5e-4)


def test_random_order_is_left_out_where_a_metric_takes_one_order_of_ties(rng):
    for name in ("err", "ndcg(tied_scores=order)@3"):
        page = make_report(rng.random(9), None, rng.integers(0, 3, 9), metrics=name)
        assert "random order</" not in page
        assert '<ul class="rivals">' not in page


def test_best_single_feature_is_the_best_of_all_columns_in_both_directions(rng):
    y, groups = rng.integers(0, 4, 60), np.repeat(np.arange(6), 10)
    X = rng.normal(size=(60, 5))
    X[:, 3] -= 0.8 * y  # low values first
    model = RankRLS().fit(X, y, groups)
    names = ["a", "b", "c", "<d>", "e"]
    words = words_of(make_report(model, X, y, groups, feature_names=names, metrics="ndcg@5"))
    tried = [ndcg(y, sign * X[:, j], groups, k=5) for j in range(5) for sign in (1, -1)]
    assert np.argmax(tried) == 7
    assert f"best single feature: <d>, low first {max(tried):.3f}" in words


def test_columns_that_cannot_be_compared_are_no_rival(rng):
    y = rng.integers(0, 3, 12)

    class Foreign:
        def predict(self, X):
            return np.arange(len(X))

    texts = np.array([["x", "y"]] * 12, dtype=object)
    assert "best single feature:" not in make_report(Foreign(), texts, y, metrics="tau")
    holes = np.full((12, 2), np.nan)
    assert "best single feature:" not in make_report(Foreign(), holes, y, metrics="tau")


def test_previous_model_is_compared_group_by_group(rng):
    X, y, groups = make_ranking(n_queries=15, noise=0.5, random_state=0)[:3]
    model, old = RankRLS().fit(X, y, groups), RankRLS(alpha=1e3).fit(X[:, :1], y, groups)
    before = old.predict(X[:, :1])
    words = words_of(make_report(model, X, y, groups, previous=before, metrics="tau"))
    values = [kendall_tau(y, s, groups, per_group=True) for s in (model.predict(X), before)]
    row = compare(dict(zip("ab", values, strict=True)), greater_is_better=True).rows[0]
    assert f"previous model {row.mean_b:.3f}".replace("-", "−") in words
    sure = (
        f"{row.difference:+.3f} against the previous model (95%: {row.low:+.3f} to {row.high:+.3f})"
    )
    assert sure.replace("-", "−") in words
    same = make_report(model, X, y, groups, previous=model, metrics="tau")
    assert "+0.000 against the previous model" in same
    with pytest.raises(ValueError, match="previous has 3 scores; expected a model or one score"):
        make_report(model, X, y, groups, previous=[1, 2, 3])


def test_members_of_an_auto_ranker_are_a_table():
    X, y, groups = make_ranking(n_queries=20, n_documents=6, random_state=0)[:3]
    model = AutoRanker().fit(X, y, groups)
    words = words_of(make_report(model, X, y, groups))
    assert f"Held-out {model.scoring_}" in words
    for row in model.members_:
        assert row["name"] in words
        if "score" in row:
            assert f"{row['score']:.3f} {row['low']:.3f} to {row['high']:.3f}" in words
    assert words.index("Members") < words.index("Model, data and versions")


def test_members_without_an_evaluation_are_below_all_others():
    model = AutoRanker()
    model.scoring_ = "ndcg@10"
    evaluated = {"note": "", "score": 0.5, "low": 0.4, "high": 0.6}
    model.members_ = [
        {"name": "too slow", "note": "left out: the time limit was reached"},
        {"name": "unused", "weight": 0.0, **evaluated},
        {"name": "opposite", "weight": -2.0, **evaluated},
        {"name": "small", "weight": 1.0, **evaluated},
    ]
    table = report_tables.member_table(SimpleNamespace(learner=model))
    names = re.findall(r"<t[dh][^>]*>([a-z ]+)</t[dh]>", table)
    assert names == ["opposite", "small", "unused", "too slow"]


def test_comparisons_of_an_auto_ranker_have_a_section():
    data = cyclic_types(60, 900)
    members = ["hinges", "joint linear model of pairs"]
    model = AutoRanker(members, n_resamples=0).fit(data.items, data.graph)
    page = make_report(model, data.items, np.arange(60.0))
    words = words_of(page)
    assert "Who beats whom: held-out comparisons" in words
    assert model.notes_[-1] in words
    for row in model.held_out_comparisons_:
        for name in ("order", "pairs"):
            error = f"{row[f'{name}_wrong']:.1%} ± {row[f'{name}_wrong_error']:.1%}"
            assert f"{row['kind']} {row['n']:,}" in words
            assert error in words
    example = model.examples_[0]
    assert f"{example['first']} {example['second']}" in words
    assert f"{model.explained_['share']:.0%}" in words
    scored = AutoRanker(["linear, standard, magnitude"], n_resamples=0)
    scored.fit(data.items[["strength"]], data.items["noise"])
    other = words_of(make_report(scored, data.items[["strength"]], data.items["noise"]))
    assert "Who beats whom" not in other


def test_one_is_not_many():
    words = words_of(make_report([2.0, 1.0], None, [1, 0], metrics="tau"))
    assert "Of 1 pair of items" in words
    words = words_of(make_report([2.0, 1.0, 3.0], None, [1, 0, np.nan], metrics="tau"))
    assert "1 item without a true score (NaN) is dropped" in words


def test_a_warning_is_a_banner_on_top():
    assert "note banner" not in make_report([2.0, 1.0], None, [1, 0])
    page = make_report([2.0, 1.0], None, [1, 0], warning="seen <before>")
    assert 'class="note banner" role="note">seen &lt;before&gt;<' in page


def test_items_are_named_by_the_text_index_of_a_frame():
    names = [f"hotel {row}" for row in range(len(y))]
    frame = pd.DataFrame(X, index=names)
    assert make_report(MODEL, frame, y, groups) == make_report(MODEL, frame, y, groups, ids=names)
    numbered = pd.DataFrame(X)
    assert "row 0" in make_report(MODEL, numbered, y, groups)


def test_comparisons_are_counted_as_comparisons():
    sides = np.array([[0, 1], [1, 2], [2, 0], [0, 3]])
    winners = np.array([[1, 0], [0, 1], [1, 0], [1, 0]])
    ids = sides.ravel().tolist()
    page = make_report(MODEL, X[ids], winners.ravel(), np.repeat(np.arange(4), 2), ids=ids)
    words = words_of(page)
    assert "4 comparisons of 4 items" in words
    assert "Of 4 comparisons with a winner" in words


def test_data_with_the_same_index_in_different_orders_are_refused():
    X, y, groups = make_ranking(n_queries=8, random_state=0)[:3]
    model = RankRLS().fit(X, y, groups)
    scores = pd.Series(model.predict(X))
    frame, relevance = pd.DataFrame(X), pd.Series(y)
    with pytest.raises(ValueError, match="same pandas index"):
        report(model, frame, relevance[::-1], groups)
    with pytest.raises(ValueError, match="same pandas index"):
        report(model, frame, relevance, groups, previous=scores[::-1])
    assert str(report(model, frame, relevance, groups, previous=scores))
