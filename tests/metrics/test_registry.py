"""All metrics are listed, and custom metrics are accepted wherever a metric name is."""

import pickle
from importlib import import_module
from inspect import isfunction

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV, GroupKFold

from rankwise import AutoRanker, LabelRankerCV, RankRLS, RankRLSCV, RankSVMCV, make_target
from rankwise.datasets import make_ranking
from rankwise.inspection import permutation_importance
from rankwise.metrics import disagreement_error, evaluate, get_metric, make_metric, ndcg
from rankwise.metrics.by_group import check_scoring
from rankwise.metrics.registry import METRICS
from rankwise.model_selection import cross_validate_candidates, make_ranking_scorer
from rankwise.persistence import load, save
from rankwise.plot import SearchCurveDisplay
from rankwise.report import report


def wrong_share(y, scores):
    """Share of the pairs in the wrong order."""
    higher = y[:, None] > y
    wrong = (1 - np.sign(scores[:, None] - scores)) / 2
    return wrong[higher].mean() if higher.any() else np.nan


OWN = make_metric(wrong_share, title="Wrong pairs", greater_is_better=False)


@pytest.fixture(scope="module")
def data():
    return make_ranking(n_queries=12, n_documents=8, noise=0.7, random_state=0)[:3]


def test_a_function_that_counts_wrong_pairs_is_the_disagreement(data):
    X, y, groups = data
    rows = np.random.default_rng(0).permutation(len(y))  # groups in any order of rows
    y, scores, groups = y[rows], X[rows, 0].round(1), groups[rows]
    truth = disagreement_error(y, scores, groups, per_group=True)
    np.testing.assert_allclose(OWN(y, scores, groups, per_group=True), truth)
    rows = evaluate(y, scores, groups, [OWN, "disagreement"]).rows
    np.testing.assert_allclose(rows[0][1:], rows[1][1:])


def test_it_has_a_title_a_direction_and_a_meaning():
    assert (OWN.name, OWN.title, OWN.greater_is_better) == ("wrong_share", "Wrong pairs", False)
    assert OWN.meaning == "Share of the pairs in the wrong order."
    assert get_metric(OWN) is OWN
    assert get_metric(wrong_share).greater_is_better
    assert get_metric(lambda y, s: 0.0).name == "<lambda>"
    assert pickle.loads(pickle.dumps(OWN)) == OWN
    assert get_metric(ndcg) == get_metric("ndcg")


@pytest.mark.filterwarnings("ignore:the best alpha")
@pytest.mark.parametrize("search", [RankRLSCV, RankSVMCV])
def test_a_search_chooses_by_it_as_by_the_metric_that_it_repeats(data, search):
    by_name = search(alphas=[1e-6, 1e-2, 1.0, 1e5]).fit(*data)
    own = clone(search(alphas=[1e-6, 1e-2, 1.0, 1e5], scoring=OWN)).fit(*data)
    assert own.alpha_ == by_name.alpha_
    np.testing.assert_allclose(own.cv_results_["mean_score"], by_name.cv_results_["mean_score"])


def test_labels_curves_scorers_and_importance_take_it(data):
    X, y, groups = data
    curves = cross_validate_candidates(RankRLS(), X, y, groups, scoring=[OWN, "disagreement"])
    np.testing.assert_allclose(curves.by_group["wrong_share"], curves.by_group["disagreement"])
    labels = np.random.default_rng(0).permuted(np.tile(np.arange(3.0), (12, 1)), axis=1)
    assert LabelRankerCV(scoring=OWN).fit(X[:12], labels).best_score_ <= 1
    scorer = make_ranking_scorer(OWN)
    model = RankRLS().fit(X, y, groups)
    assert scorer(model, X, make_target(y, groups)) == -OWN(y, model.predict(X), groups)
    grid = GridSearchCV(RankRLS(), {"alpha": [1e-3, 1e3]}, scoring=scorer, cv=GroupKFold(3))
    assert grid.fit(X, make_target(y, groups), groups=groups).best_params_["alpha"] > 0
    found = permutation_importance(model, X, y, groups, scoring=OWN, n_repeats=1)
    truth = permutation_importance(model, X, y, groups, scoring="disagreement", n_repeats=1)
    np.testing.assert_allclose(found.importance, truth.importance)


def test_auto_ranker_takes_it(data):
    X, y, groups = data
    model = AutoRanker(["linear, standard, magnitude"], scoring=OWN).fit(X, y, groups)
    assert model.scoring_ == "wrong_share"


def test_a_model_file_keeps_the_model_and_forgets_the_function(data, tmp_path):
    X, y, groups = data
    model = RankRLSCV(scoring=OWN).fit(X, y, groups)
    save(model, tmp_path / "model.rw")
    found = load(tmp_path / "model.rw")
    np.testing.assert_array_equal(found.predict(X), model.predict(X))
    assert found.scoring == "disagreement"


def test_the_report_shows_it_on_a_scale_of_its_own(data):
    X, y, groups = data
    model = RankRLS().fit(X, y, groups)
    regret = make_metric(lambda y, s: y.max() - y[np.argmax(s)], title="Regret & co")
    page = report(model, X, y, groups, metrics=[regret, "mse"]).text
    assert "<h3>Regret &amp; co</h3>" in page
    assert "on a scale from 0 to" in page


def test_plots_take_it(data):
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("Agg")
    search = RankRLSCV(scoring=OWN).fit(*data)
    display = SearchCurveDisplay.from_estimator(search)
    assert "wrong_share (lower is better)" in display.ax_.get_ylabel()


@pytest.mark.parametrize("name", ["pooled_auc(relevant=2)", "mse(average=items)"])
def test_metrics_that_pool_groups_are_refused_where_groups_have_equal_weights(name):
    with pytest.raises(ValueError, match="in each group"):
        check_scoring(name)


def test_two_functions_of_one_name_are_refused(data):
    X, y, groups = data
    both = [lambda y, s: 0.0, lambda y, s: 1.0]
    with pytest.raises(ValueError, match="two metrics are called '<lambda>'"):
        evaluate(y, X[:, 0], groups, both)
    named = [make_metric(both[0], title="zero"), make_metric(both[1], title="one")]
    assert evaluate(y, X[:, 0], groups, named).to_dict() == {"zero": 0.0, "one": 1.0}


def test_nan_says_that_a_group_has_no_value():
    metric = make_metric(lambda y, s: np.nan if len(y) < 2 else float(len(y)), title="size")
    (row,) = evaluate([1, 2, 3], [1, 2, 3], [0, 0, 1], metric)
    assert (row.mean, row.n_undefined) == (2.0, 1)


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (lambda y, s: 1 / (len(y) - 1), r"failed for group b \(1 items\) with ZeroDivisionError"),
        (lambda y, s: y, "failed for group a .* returns one number"),
        (lambda y, s: "good", "failed for group a"),
        (lambda y, s: np.inf, "failed for group a .* infinite value.* NaN if"),
        (lambda y: 1.0, "failed for group a .*takes 1 positional argument"),
    ],
)
def test_a_function_that_fails_says_in_which_group(function, message):
    with pytest.raises(ValueError, match=message):
        evaluate([1, 2, 3], [1, 2, 3], ["a", "a", "b"], function)


@pytest.mark.parametrize("options", [{"function": 3}, {"function": min, "title": " "}])
def test_what_is_no_function_or_no_title_is_refused(options):
    with pytest.raises(ValueError, match="expected"):
        make_metric(**options)


@pytest.mark.parametrize("module", ["rank_correlation", "retrieval"])
def test_every_metric_function_is_listed(module):
    functions = vars(import_module(f"rankwise.metrics.{module}")).values()
    metrics = [vars(f)["metric"] for f in functions if isfunction(f) and "metric" in vars(f)]
    assert metrics
    for metric in metrics:
        assert METRICS[metric.name] is metric
