"""Scorers by the name of a metric; how they fare inside searches is in test_sklearn_interop."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
import sklearn
from sklearn.base import clone
from sklearn.linear_model import Ridge
from sklearn.model_selection import GridSearchCV, KFold, cross_validate

from rankwise import CoRankRLSCV, RankingPursuitCV, RankRLS, RankRLSCV, RankSVMCV, make_target
from rankwise.datasets import make_ranking
from rankwise.errors import UndefinedMetricError
from rankwise.metrics import disagreement_error, get_metric, kendall_tau, ndcg, pooled_auc
from rankwise.model_selection import cross_validate_candidates, make_ranking_scorer


@pytest.fixture
def data():
    return make_ranking(n_queries=12, n_features=4, noise=1.0, random_state=0)[:3]


@pytest.fixture
def model(data):
    return RankRLS().fit(*data)


@pytest.mark.parametrize("name", ["ndcg@3", "map", "mrr", "tau", "concordance", "err@5"])
def test_scorer_gives_the_metric(data, model, name):
    X, y, groups = data
    expected = get_metric(name)(y, model.predict(X), groups)
    assert make_ranking_scorer(name)(model, X, y, groups) == expected
    assert make_ranking_scorer(get_metric(name))(model, X, y, groups=groups) == expected


def test_errors_are_negated_and_groups_may_come_with_the_target(data, model):
    X, y, groups = data
    error = disagreement_error(y, model.predict(X), groups)
    scorer = make_ranking_scorer("disagreement")
    assert scorer(model, X, y, groups) == scorer(model, X, make_target(y, groups)) == -error
    assert scorer(model, X, y) != -error


def test_options_reach_the_metric(data, model):
    X, y, groups = data
    scorer = make_ranking_scorer("ndcg", k=3, gain="linear")
    assert scorer(model, X, y, groups) == ndcg(y, model.predict(X), groups, k=3, gain="linear")


def test_several_outputs_are_averaged(data):
    X, y, groups = data
    Y = np.c_[y, -y]
    model = RankRLS().fit(X, Y, groups)
    scorer = make_ranking_scorer("disagreement")
    each = [disagreement_error(Y[:, j], model.predict(X)[:, j], groups) for j in range(2)]
    assert scorer(model, X, Y, groups) == pytest.approx(-np.mean(each))
    assert scorer(model, X, make_target(Y, groups)) == pytest.approx(-np.mean(each))


def test_undefined_is_nan_unless_told_otherwise(data, model):
    X, _, groups = data
    nothing = np.zeros(len(X))
    assert np.isnan(make_ranking_scorer("map")(model, X, nothing, groups))
    assert make_ranking_scorer("map", undefined="one")(model, X, nothing, groups) == 1.0
    with pytest.raises(UndefinedMetricError, match="undefined"):
        make_ranking_scorer("map", undefined="raise")(model, X, nothing, groups)


def test_fold_without_a_value_is_nan_in_cross_validation(data):
    X, y, groups = data
    y = np.where(groups == groups[0], 0.0, y)
    own = groups == groups[0]
    folds = [(~own, own), (own | (groups == groups[-1]), ~own & (groups != groups[-1]))]
    folds = [(np.flatnonzero(a), np.flatnonzero(b)) for a, b in folds]
    scores = cross_validate(
        RankRLS(), X, make_target(y, groups), cv=folds, scoring=make_ranking_scorer("map")
    )["test_score"]
    assert np.isnan(scores).tolist() == [True, False]


def test_scorer_survives_pickling_and_cloning(data, model):
    scorer = make_ranking_scorer("ndcg@3", gain="linear")
    assert pickle.loads(pickle.dumps(scorer)) == scorer
    search = clone(GridSearchCV(RankRLS(), {"alpha": [1.0]}, scoring=scorer))
    assert search.scoring == scorer
    assert search.scoring(model, *data) == scorer(model, *data)


def test_repr_is_the_call_that_makes_it():
    scorer = make_ranking_scorer("nDCG@10", undefined="zero", gain="linear")
    assert repr(scorer) == "make_ranking_scorer('ndcg@10', gain='linear', undefined='zero')"
    assert eval(repr(scorer)) == scorer


@pytest.mark.parametrize("enabled", [True, False])
def test_groups_are_requested_whether_or_not_routing_is_on(enabled):
    with sklearn.config_context(enable_metadata_routing=enabled):
        request = make_ranking_scorer("ndcg").get_metadata_routing()
        no_weights = make_ranking_scorer("mrr").get_metadata_routing()
    assert request.score.requests == {"groups": True, "sample_weight": True}
    assert no_weights.score.requests == {"groups": True}


def test_weights_reach_the_scorers_that_take_them(data):
    X, y, _ = data
    scoring = {"tau": make_ranking_scorer("tau"), "mrr": make_ranking_scorer("mrr")}
    search = GridSearchCV(Ridge(), {"alpha": [1.0]}, scoring=scoring, refit="tau", cv=3)
    weights = np.random.default_rng(0).uniform(0, 2, len(y))
    if "_check_scorers_accept_sample_weight" in dir(search):
        with pytest.warns(UserWarning, match=r"mrr=.* does not support sample_weight"):
            search.fit(X, y, sample_weight=weights)
        fits = [
            (Ridge().fit(X[train], y[train], weights[train]), test)
            for train, test in KFold(3).split(X)
        ]
        values = [
            kendall_tau(y[test], model.predict(X[test]), sample_weight=weights[test])
            for model, test in fits
        ]
        assert search.best_score_ == pytest.approx(np.mean(values))
    else:
        search.fit(X, y, sample_weight=weights)
    assert np.isfinite(search.cv_results_["mean_test_mrr"]).all()


@pytest.mark.parametrize(
    "name, options, message",
    [
        ("accuracy", {}, "not known"),
        ("ndcg@3", {"gian": "linear"}, "ndcg@3 has no such option"),
        ("ndcg@3", {"gain": "cubic"}, "gain='cubic' is unknown"),
        ("map", {"undefined": "maybe"}, "undefined='maybe' is unknown"),
        ("map", {"per_group": True}, "one number"),
    ],
    ids=str,
)
def test_bad_options_are_refused_at_once(name, options, message):
    with pytest.raises(ValueError, match=message):
        make_ranking_scorer(name, **options)


@pytest.mark.parametrize("search", [RankRLSCV, RankSVMCV, CoRankRLSCV, RankingPursuitCV])
@pytest.mark.parametrize("average", ["groups", "pairs"])
def test_searches_take_the_mean_that_the_metric_names(data, search, average):
    X, y, groups = data
    y = np.where(np.arange(len(y)) % 5, y, np.nan) if search is CoRankRLSCV else y
    kernel = {"kernel": "rbf"} if search is CoRankRLSCV else {}
    scoring = f"disagreement(average={average})"
    model = search(scoring=scoring, cv=2, store_predictions=True, **kernel).fit(X, y, groups)
    (predictions,) = model.cv_results_["predictions"][:1]
    is_scored = ~np.isnan(y)
    expected = [
        disagreement_error(y[is_scored], scores[is_scored], groups[is_scored], average=average)
        for scores in predictions.T
    ]
    np.testing.assert_allclose(model.cv_results_["mean_score"][0], expected, rtol=1e-12)


def test_pooled_auc_of_section_4_1_compares_the_held_out_scores_of_all_folds(data):
    X, y, groups = data
    labels = (y > np.median(y)).astype(float)
    search = RankRLSCV(scoring="pooled_auc", cv=5, store_predictions=True)
    search.fit(X, labels, groups)
    expected = [pooled_auc(labels, scores) for scores in search.cv_results_["predictions"][0].T]
    np.testing.assert_allclose(search.cv_results_["mean_score"][0], expected, rtol=1e-12)
    assert search.best_score_ == search.cv_results_["mean_score"].max()
    assert search.cv_results_["groups"].tolist() == ["all items"]


@pytest.mark.parametrize("with_time", [False, True])
def test_groups_of_a_result_name_the_rows_of_metrics_by_group(data, with_time):
    X, y, groups = data
    labels = (y > np.median(y)).astype(float)
    options = {"time": groups} if with_time else {"cv": 5}
    for scoring in (["disagreement", "pooled_auc"], ["pooled_auc", "disagreement"]):
        result = cross_validate_candidates(RankRLS(), X, labels, groups, scoring=scoring, **options)
        assert len(result.groups) == len(result.by_group["disagreement"]) > 1
        assert len(result.by_group["pooled_auc"]) == 1
