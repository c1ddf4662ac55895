"""scikit-learn's model selection around rankers: the groups must arrive, by either route.

* "routing": metadata routing is on, y are scores, the groups are metadata.
* "target": metadata routing is off, y carries its groups (`make_target`), and the splitter gets
  them as well.

Nothing here is content with not crashing: coefficients and scores are those of the ranker fitted
directly, with its groups, on the same rows.
"""

from __future__ import annotations

from contextlib import contextmanager

import numpy as np
import pytest
import scipy.sparse as sp
import scipy.stats
import sklearn
from sklearn.base import clone
from sklearn.linear_model import Ridge
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.model_selection import (
    GridSearchCV,
    GroupKFold,
    RandomizedSearchCV,
    cross_val_predict,
    cross_val_score,
    cross_validate,
    learning_curve,
    permutation_test_score,
    validation_curve,
)
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.fixes import parse_version

from rankwise import RankLogistic, RankRLS, RankRLSCV, RankSVM, RankSVMCV, make_target
from rankwise.datasets import make_ranking
from rankwise.metrics import ndcg
from rankwise.model_selection import cross_val_predict_groups, make_ranking_scorer

CV = GroupKFold(3)
# with scikit-learn 1.6 the search of RankSVMCV ends at the edge of its alphas in some fold
AT_EDGE = pytest.mark.filterwarnings("ignore:the best alpha .* is at the edge")
RANKERS = [
    RankRLS(alpha=0.3),
    RankRLS(alpha=0.3, kernel="rbf", gamma=0.1),
    RankRLSCV(),
    RankRLSCV(kernel="rbf", gamma=[0.01, 0.1], scoring="ndcg@5"),
    RankLogistic(alpha=0.3),
    RankSVM(alpha=0.3),
    RankSVMCV([1e-4, 1.0, 1e4], cv=2),
]
ranker_list = pytest.mark.parametrize("ranker", RANKERS, ids=repr)


class Route:
    """How groups are handed to scikit-learn."""

    def __init__(self, name, y, groups):
        self.is_routing = name == "routing"
        self.y = y if self.is_routing else make_target(y, groups)
        self.options = {"params": {"groups": groups}} if self.is_routing else {"groups": groups}
        self.fit_options = {"groups": groups}

    @contextmanager
    def active(self):
        with sklearn.config_context(enable_metadata_routing=self.is_routing):
            yield


@pytest.fixture
def data():
    X, y, groups = make_ranking(n_queries=12, n_features=4, noise=1.0, random_state=0)[:3]
    rng = np.random.default_rng(0)
    some = rng.permutation(len(y))[:90]
    names = np.array([f"query {g}" for g in groups])
    shift = rng.integers(0, 20, size=groups.max() + 1)[groups]  # ruinous for a global list
    return X[some], (y + shift)[some], names[some]


@pytest.fixture(params=["routing", "target"])
def route(request, data):
    route = Route(request.param, *data[1:])
    with route.active():
        yield route


def folds(data):
    X, y, groups = data
    return list(CV.split(X, y, groups))


def fitted(ranker, X, y, groups, rows=slice(None)):
    """The ranker fitted directly, with groups; for it to count, groups must make a difference."""
    model = clone(ranker).fit(X[rows], y[rows], groups[rows])
    without = clone(ranker).fit(X[rows], y[rows])
    assert not np.allclose(coefficients(model), coefficients(without), rtol=1e-3)
    return model


def coefficients(model):
    return model.coef_ if hasattr(model, "coef_") else model.dual_coef_


def assert_same_model(found, expected):
    np.testing.assert_allclose(coefficients(found), coefficients(expected), rtol=1e-9, atol=1e-12)


def expected_scores(ranker, data, scorer=None):
    """Score of each fold, computed by hand."""
    X, y, groups = data
    scores = []
    for train, test in folds(data):
        model = fitted(ranker, X, y, groups, train)
        score = scorer or type(model).score
        scores.append(score(model, X[test], y[test], groups[test]))
    return scores


@AT_EDGE
@ranker_list
def test_cross_validate(data, route, ranker):
    result = cross_validate(
        ranker, data[0], route.y, cv=CV, return_estimator=True, error_score="raise", **route.options
    )
    for model, (train, _) in zip(result["estimator"], folds(data), strict=True):
        assert_same_model(model, fitted(ranker, *data, train))
    np.testing.assert_allclose(result["test_score"], expected_scores(ranker, data))


def test_cross_validate_in_worker_processes(data, route):
    scores = cross_val_score(
        RANKERS[0], data[0], route.y, cv=CV, n_jobs=2, error_score="raise", **route.options
    )
    np.testing.assert_allclose(scores, expected_scores(RANKERS[0], data))


@AT_EDGE
@ranker_list
def test_cross_val_predict(data, route, ranker):
    X, y, groups = data
    predicted = cross_val_predict(ranker, X, route.y, cv=CV, **route.options)
    for train, test in folds(data):
        expected = fitted(ranker, X, y, groups, train).predict(X[test])
        np.testing.assert_allclose(predicted[test], expected, rtol=1e-8, atol=1e-10)


def test_cross_val_predict_is_the_shortcut(data, route):
    X, y, groups = data
    slow = cross_val_predict(RANKERS[0], X, route.y, cv=CV, **route.options)
    fast = cross_val_predict_groups(RANKERS[0], X, y, groups, cv=CV)
    np.testing.assert_allclose(fast, slow, rtol=1e-8, atol=1e-10)


@pytest.mark.parametrize("ranker", RANKERS[:2], ids=repr)
def test_grid_search(data, route, ranker):
    alphas = [1e-2, 1.0, 100.0]
    scorer = make_ranking_scorer("ndcg@5")
    search = GridSearchCV(ranker, {"alpha": alphas}, cv=CV, scoring=scorer, error_score="raise")
    search.fit(data[0], route.y, **route.fit_options)
    for k, alpha in enumerate(alphas):
        expected = expected_scores(clone(ranker).set_params(alpha=alpha), data, scorer)
        found = [search.cv_results_[f"split{i}_test_score"][k] for i in range(3)]
        np.testing.assert_allclose(found, expected)
    assert_same_model(
        search.best_estimator_, fitted(clone(ranker).set_params(**search.best_params_), *data)
    )
    score_options = route.fit_options if route.is_routing else {}
    assert search.score(data[0], route.y, **score_options) == pytest.approx(
        scorer(search.best_estimator_, *data)
    )


def test_grid_search_over_a_ranker_that_searches(data, route):
    search = GridSearchCV(RankRLSCV(gamma=0.1), {"kernel": ["linear", "rbf"]}, cv=CV)
    search.fit(data[0], route.y, **route.fit_options)
    expected = fitted(RankRLSCV(gamma=0.1, **search.best_params_), *data)
    assert_same_model(search.best_estimator_, expected)
    assert search.best_estimator_.alpha_ == expected.alpha_
    assert expected.cv_results_["cv"] == "leave-group-out"


def test_randomized_search(data, route):
    search = RandomizedSearchCV(
        RankRLS(), {"alpha": scipy.stats.loguniform(1e-3, 10)}, n_iter=3, cv=CV, random_state=0
    )
    search.fit(data[0], route.y, **route.fit_options)
    assert_same_model(search.best_estimator_, fitted(RankRLS(**search.best_params_), *data))
    assert search.best_score_ == pytest.approx(
        np.mean(expected_scores(search.best_estimator_, data))
    )


def test_learning_curve(data, route):
    X, y, groups = data
    sizes, _, scores = learning_curve(
        RANKERS[0], X, route.y, cv=CV, train_sizes=[0.5, 1.0], error_score="raise", **route.options
    )
    for k, size in enumerate(sizes):
        expected = [
            fitted(RANKERS[0], X, y, groups, train[:size]).score(X[test], y[test], groups[test])
            for train, test in folds(data)
        ]
        np.testing.assert_allclose(scores[k], expected)


def test_validation_curve(data, route):
    alphas = [0.1, 10.0]
    _, scores = validation_curve(
        RankRLS(),
        data[0],
        route.y,
        param_name="alpha",
        param_range=alphas,
        cv=CV,
        error_score="raise",
        **route.options,
    )
    for alpha, found in zip(alphas, scores, strict=True):
        np.testing.assert_allclose(found, expected_scores(RankRLS(alpha=alpha), data))


def test_permutation_test_score(data, route):
    score, null, _ = permutation_test_score(
        RANKERS[0], data[0], route.y, cv=CV, n_permutations=5, random_state=0, **route.options
    )
    assert score == pytest.approx(np.mean(expected_scores(RANKERS[0], data)))
    assert ((null > 0) & (null < score)).all()


@pytest.mark.parametrize("ranker", [RANKERS[0], RANKERS[2]], ids=repr)
def test_pipeline(data, route, ranker):
    X, y, groups = data
    pipeline = make_pipeline(StandardScaler(), ranker)
    result = cross_validate(
        pipeline,
        X,
        route.y,
        cv=CV,
        scoring=make_ranking_scorer("concordance"),
        return_estimator=True,
        error_score="raise",
        **route.options,
    )
    for k, (train, test) in enumerate(folds(data)):
        scaler = StandardScaler().fit(X[train])
        expected = fitted(ranker, scaler.transform(X), y, groups, train)
        assert_same_model(result["estimator"][k][-1], expected)
        score = expected.score(scaler.transform(X[test]), y[test], groups[test])
        assert result["test_score"][k] == pytest.approx(score)


def test_default_score_of_a_pipeline(data, route):
    if route.is_routing and parse_version(sklearn.__version__) < parse_version("1.8"):
        pytest.skip("scikit-learn 1.7 does not route metadata to the score of a Pipeline")
    X = StandardScaler().fit_transform(data[0])
    scores = cross_val_score(make_pipeline(RANKERS[0]), X, route.y, cv=CV, **route.options)
    np.testing.assert_allclose(scores, expected_scores(RANKERS[0], (X, *data[1:])))


def test_pipeline_fitted_by_itself(data, route):
    X, y, groups = data
    pipeline = make_pipeline(StandardScaler(), RankRLS())
    pipeline.fit(X, route.y, **(route.fit_options if route.is_routing else {}))
    scaled = StandardScaler().fit_transform(X)
    assert_same_model(pipeline[-1], fitted(RankRLS(), scaled, y, groups))


def test_search_over_a_pipeline(data, route):
    X, y, groups = data
    pipeline = make_pipeline(StandardScaler(), RankRLS())
    search = GridSearchCV(pipeline, {"rankrls__alpha": [0.1, 10.0]}, cv=CV, error_score="raise")
    search.fit(X, route.y, **route.fit_options)
    alpha = search.best_params_["rankrls__alpha"]
    scaled = StandardScaler().fit_transform(X)
    assert_same_model(search.best_estimator_[-1], fitted(RankRLS(alpha), scaled, y, groups))


def test_nested_search(data, route):
    X, y, groups = data
    inner_cv = GroupKFold(2) if route.is_routing else 2  # off: the inner splitter gets no groups
    pipeline = make_pipeline(StandardScaler(), RankRLS())
    inner = GridSearchCV(pipeline, {"rankrls__alpha": [0.1, 10.0]}, cv=inner_cv)
    result = cross_validate(
        inner, X, route.y, cv=CV, return_estimator=True, error_score="raise", **route.options
    )
    for search, (train, _) in zip(result["estimator"], folds(data), strict=True):
        alpha = search.best_params_["rankrls__alpha"]
        scaled = StandardScaler().fit(X[train]).transform(X)
        expected = fitted(RankRLS(alpha), scaled, y, groups, train)
        assert_same_model(search.best_estimator_[-1], expected)


def test_several_metrics(data, route):
    scoring = {name: make_ranking_scorer(name) for name in ("disagreement", "tau", "concordance")}
    search = GridSearchCV(
        RankRLS(), {"alpha": [0.1, 10.0]}, cv=CV, scoring=scoring, refit="tau", error_score="raise"
    )
    search.fit(data[0], route.y, **route.fit_options)
    for name, scorer in scoring.items():
        for k, alpha in enumerate([0.1, 10.0]):
            found = search.cv_results_[f"mean_test_{name}"][k]
            expected = expected_scores(RankRLS(alpha=alpha), data, scorer)
            assert found == pytest.approx(np.mean(expected))


@pytest.mark.parametrize("kind", [RankRLS, RankRLSCV], ids=lambda kind: kind.__name__)
def test_precomputed_kernel_is_sliced_both_ways(data, route, kind):
    X, y, groups = data
    K = rbf_kernel(X, gamma=0.1)
    result = cross_validate(
        kind(kernel="precomputed"),
        K,
        route.y,
        cv=CV,
        return_estimator=True,
        error_score="raise",
        **route.options,
    )
    for k, (train, test) in enumerate(folds(data)):
        expected = fitted(kind(kernel="rbf", gamma=0.1), X, y, groups, train)
        assert_same_model(result["estimator"][k], expected)
        score = expected.score(X[test], y[test], groups[test])
        assert result["test_score"][k] == pytest.approx(score)


def test_search_with_a_precomputed_kernel(data, route):
    X, y, groups = data
    search = GridSearchCV(RankRLS(kernel="precomputed"), {"alpha": [0.1, 10.0]}, cv=CV)
    search.fit(rbf_kernel(X, gamma=0.1), route.y, **route.fit_options)
    expected = fitted(RankRLS(kernel="rbf", gamma=0.1, **search.best_params_), X, y, groups)
    assert_same_model(search.best_estimator_, expected)


@pytest.mark.parametrize("kind", [sp.csr_matrix, sp.csr_array], ids=lambda kind: kind.__name__)
def test_sparse_items(data, route, kind):
    scores = cross_val_score(
        RANKERS[0], kind(data[0]), route.y, cv=CV, error_score="raise", **route.options
    )
    np.testing.assert_allclose(scores, expected_scores(RANKERS[0], data))


def test_several_outputs(data, route):
    X, y, groups = data
    Y = np.c_[y, X[:, 0] + y]
    route = Route("routing" if route.is_routing else "target", Y, groups)
    result = cross_validate(
        RankRLS(),
        X,
        route.y,
        cv=CV,
        scoring=make_ranking_scorer("tau"),
        return_estimator=True,
        error_score="raise",
        **route.options,
    )
    for model, (train, _) in zip(result["estimator"], folds(data), strict=True):
        assert_same_model(model, fitted(RankRLS(), X, Y, groups, train))
    expected = expected_scores(RankRLS(), (X, Y, groups), make_ranking_scorer("tau"))
    np.testing.assert_allclose(result["test_score"], expected)


def test_scorer_gets_groups_for_a_regressor_too(data):
    X, y, groups = data
    with sklearn.config_context(enable_metadata_routing=True):
        found = cross_val_score(
            Ridge(), X, y, cv=CV, scoring=make_ranking_scorer("ndcg@5"), params={"groups": groups}
        )
    expected = [
        ndcg(y[test], Ridge().fit(X[train], y[train]).predict(X[test]), groups[test], k=5)
        for train, test in folds(data)
    ]
    np.testing.assert_allclose(found, expected)


def test_routing_without_groups_is_one_list(data):
    X, y, _ = data
    with sklearn.config_context(enable_metadata_routing=True):
        search = GridSearchCV(RankRLS(), {"alpha": [0.1, 1.0]}, cv=3).fit(X, y)
    assert_same_model(search.best_estimator_, RankRLS(**search.best_params_).fit(X, y))


def test_groups_by_both_routes_are_an_error(data):
    X, y, groups = data
    with (
        sklearn.config_context(enable_metadata_routing=True),
        pytest.raises(ValueError, match="pass one of them"),
    ):
        cross_validate(
            RankRLS(),
            X,
            make_target(y, groups),
            cv=CV,
            params={"groups": groups},
            error_score="raise",
        )
