"""scikit-learn's model selection around rankers: groups and weights must arrive, by either route.

* "routing": metadata routing is on, y are scores, groups and weights are metadata.
* "target": metadata routing is off, y carries them (`make_target`), and the splitter gets the
  groups as well.

Nothing here is content with not crashing: coefficients and scores are those of the ranker fitted
directly, with its groups and weights, on the same rows.
"""

from __future__ import annotations

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
)
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import MinMaxScaler
from sklearn.utils.fixes import parse_version

from rankwise import RankLogistic, RankRLS, RankRLSCV, RankSVM, RankSVMCV, make_target
from rankwise.datasets import make_ranking
from rankwise.metrics import ndcg
from rankwise.model_selection import make_ranking_scorer

CV = GroupKFold(3)
RANKER = RankRLS(alpha=0.3)
RANKERS = [
    RANKER,
    RankRLS(alpha=0.3, kernel="rbf", gamma=0.1),
    RankRLSCV(),
    RankRLSCV(kernel="rbf", gamma=[0.01, 0.1], scoring="ndcg@5"),
    RankLogistic(alpha=0.3),
    RankSVM(alpha=0.3),
    RankSVMCV([1e-4, 1.0, 1e4], cv=2),
]


class Route:
    """How groups and weights are handed to scikit-learn."""

    def __init__(self, name, y, groups, weights):
        self.name, self.is_routing = name, name == "routing"
        self.y = y if self.is_routing else make_target(y, groups, weights)
        metadata = {"groups": groups, "sample_weight": weights}
        self.fit_options = metadata if self.is_routing else {"groups": groups}
        self.options = {"params": metadata} if self.is_routing else {"groups": groups}


@pytest.fixture
def data():
    X, y, groups = make_ranking(n_queries=12, n_features=4, noise=1.0, random_state=0)[:3]
    rng = np.random.default_rng(0)
    some = rng.permutation(len(y))[:90]
    names = np.array([f"query {g}" for g in groups])
    shift = rng.integers(0, 20, size=groups.max() + 1)[groups]  # ruinous for a global list
    return X[some], (y + shift)[some], names[some], rng.uniform(0, 2, 90)


@pytest.fixture(params=["routing", "target"])
def route(request, data):
    with sklearn.config_context(enable_metadata_routing=request.param == "routing"):
        yield Route(request.param, *data[1:])


def folds(data):
    return list(CV.split(*data[:3]))


def fitted(ranker, X, y, groups, weights, rows=slice(None)):
    """The ranker fitted directly; for it to count, groups and weights must make a difference."""
    model = clone(ranker).fit(X[rows], y[rows], groups[rows], weights[rows])
    for less in ((None, weights[rows]), (groups[rows], None)):
        other = clone(ranker).fit(X[rows], y[rows], *less)
        assert not np.allclose(coefficients(model), coefficients(other), rtol=1e-3)
    return model


def coefficients(model):
    return model.coef_ if hasattr(model, "coef_") else model.dual_coef_


def assert_same_model(found, expected):
    np.testing.assert_allclose(coefficients(found), coefficients(expected), rtol=1e-9, atol=1e-12)


def score_of(model, data, rows, scorer=None):
    return (scorer or type(model).score)(model, *(part[rows] for part in data))


def expected_scores(ranker, data, scorer=None):
    """Score of each fold, computed by hand."""
    return [
        score_of(fitted(ranker, *data, train), data, test, scorer) for train, test in folds(data)
    ]


def scaled(X, train):
    return MinMaxScaler().fit(X[train]).transform(X)


# (what is cross-validated, how its X is made; the ranker that it must be on the X of a fold)
CASES = [(ranker, lambda X: X, ranker, lambda X, train: X) for ranker in RANKERS]
CASES += [(RANKER, kind, RANKER, lambda X, train: X) for kind in (sp.csr_matrix, sp.csr_array)]
CASES += [
    (make_pipeline(MinMaxScaler(), ranker), lambda X: X, ranker, scaled)
    for ranker in (RANKER, RankRLSCV())
]
CASES += [
    (
        kind(kernel="precomputed"),
        lambda X: rbf_kernel(X, gamma=0.1),
        kind(kernel="rbf", gamma=0.1),
        lambda X, train: X,
    )
    for kind in (RankRLS, RankRLSCV)
]


# with scikit-learn 1.6 the search of RankSVMCV ends at the edge of its alphas in some fold
@pytest.mark.filterwarnings("ignore:the best alpha .* is at the edge")
@pytest.mark.parametrize("estimator, convert, ranker, seen", CASES)
def test_cross_validation(data, route, estimator, convert, ranker, seen):
    X, *others = data
    given, is_pipeline = convert(X), isinstance(estimator, Pipeline)
    scoring = make_ranking_scorer("concordance") if is_pipeline else None
    options = {"cv": CV, "scoring": scoring, "return_estimator": True, "error_score": "raise"}
    result = cross_validate(estimator, given, route.y, **options, **route.options)
    predicted = cross_val_predict(estimator, given, route.y, cv=CV, **route.options)
    for k, (train, test) in enumerate(folds(data)):
        rows = (seen(X, train), *others)
        model = result["estimator"][k]
        expected = fitted(ranker, *rows, train)
        assert_same_model(model[-1] if is_pipeline else model, expected)
        assert result["test_score"][k] == pytest.approx(score_of(expected, rows, test))
        np.testing.assert_allclose(
            predicted[test], expected.predict(rows[0][test]), rtol=1e-8, atol=1e-10
        )


def test_cross_validation_in_worker_processes(data, route):
    options = {"cv": CV, "n_jobs": 2, "error_score": "raise"}
    scores = cross_val_score(RANKER, data[0], route.y, **options, **route.options)
    np.testing.assert_allclose(scores, expected_scores(RANKER, data))


@pytest.mark.parametrize("ranker", RANKERS[:2], ids=repr)
def test_grid_search_by_several_metrics(data, route, ranker):
    alphas = [1e-2, 1.0, 100.0]
    scoring = {name: make_ranking_scorer(name) for name in ("disagreement", "tau")}
    options = {"cv": CV, "scoring": scoring, "refit": "tau", "error_score": "raise"}
    search = GridSearchCV(ranker, {"alpha": alphas}, **options)
    search.fit(data[0], route.y, **route.fit_options)
    for name, scorer in scoring.items():
        for k, alpha in enumerate(alphas):
            expected = expected_scores(clone(ranker).set_params(alpha=alpha), data, scorer)
            found = [search.cv_results_[f"split{i}_test_{name}"][k] for i in range(3)]
            np.testing.assert_allclose(found, expected)
    best = fitted(clone(ranker).set_params(**search.best_params_), *data)
    assert_same_model(search.best_estimator_, best)
    score_options = route.fit_options if route.is_routing else {}
    score = search.score(data[0], route.y, **score_options)
    assert score == pytest.approx(scoring["tau"](best, *data))


def test_randomized_search(data, route):
    options = {"n_iter": 3, "cv": CV, "random_state": 0, "error_score": "raise"}
    search = RandomizedSearchCV(RankRLS(), {"alpha": scipy.stats.loguniform(1e-3, 10)}, **options)
    search.fit(data[0], route.y, **route.fit_options)
    best = RankRLS(**search.best_params_)
    assert_same_model(search.best_estimator_, fitted(best, *data))
    assert search.best_score_ == pytest.approx(np.mean(expected_scores(best, data)))


def test_learning_curve(data, route):
    options = {"cv": CV, "train_sizes": [0.5, 1.0], "error_score": "raise"}
    sizes, _, scores = learning_curve(RANKER, data[0], route.y, **options, **route.options)
    for size, found in zip(sizes, scores, strict=True):
        expected = [
            score_of(fitted(RANKER, *data, train[:size]), data, test) for train, test in folds(data)
        ]
        np.testing.assert_allclose(found, expected)


def test_permutation_test_score(data, route):
    score, null, _ = permutation_test_score(
        RANKER, data[0], route.y, cv=CV, n_permutations=5, random_state=0, **route.options
    )
    assert score == pytest.approx(np.mean(expected_scores(RANKER, data)))
    assert ((null > 0) & (null < score)).all()


def test_default_score_of_a_pipeline(data, route):
    if route.is_routing and parse_version(sklearn.__version__) < parse_version("1.8"):
        pytest.skip("scikit-learn 1.7 does not route metadata to the score of a Pipeline")
    scores = cross_val_score(make_pipeline(RANKER), data[0], route.y, cv=CV, **route.options)
    np.testing.assert_allclose(scores, expected_scores(RANKER, data))


def test_nested_search_over_a_pipeline(data, route):
    X, *others = data
    inner_cv = GroupKFold(2) if route.is_routing else 2  # off: the inner splitter gets no groups
    pipeline = make_pipeline(MinMaxScaler(), RankRLS())
    inner = GridSearchCV(pipeline, {"rankrls__alpha": [0.1, 10.0]}, cv=inner_cv)
    options = {"cv": CV, "return_estimator": True, "error_score": "raise"}
    if route.is_routing:
        options["scoring"] = inner.scoring = make_ranking_scorer("concordance")
    result = cross_validate(inner, X, route.y, **options, **route.options)
    for search, (train, _) in zip(result["estimator"], folds(data), strict=True):
        ranker = RankRLS(search.best_params_["rankrls__alpha"])
        expected = fitted(ranker, scaled(X, train), *others, train)
        assert_same_model(search.best_estimator_[-1], expected)


def test_several_outputs(data, route):
    X, y, groups, weights = data
    both = X, np.c_[y, X[:, 0] + y], groups, weights
    route = Route(route.name, *both[1:])
    scorer = make_ranking_scorer("tau")
    options = {"cv": CV, "scoring": scorer, "return_estimator": True, "error_score": "raise"}
    result = cross_validate(RankRLS(), X, route.y, **options, **route.options)
    for model, (train, _) in zip(result["estimator"], folds(data), strict=True):
        assert_same_model(model, fitted(RankRLS(), *both, train))
    np.testing.assert_allclose(result["test_score"], expected_scores(RankRLS(), both, scorer))


def test_scorer_gets_groups_for_a_regressor_too(data):
    X, y, groups, _ = data
    with sklearn.config_context(enable_metadata_routing=True):
        found = cross_val_score(
            Ridge(), X, y, cv=CV, scoring=make_ranking_scorer("ndcg@5"), params={"groups": groups}
        )
    expected = [
        ndcg(y[test], Ridge().fit(X[train], y[train]).predict(X[test]), groups[test], k=5)
        for train, test in folds(data)
    ]
    np.testing.assert_allclose(found, expected)


def test_routing_without_groups_is_one_list_and_groups_by_both_routes_an_error(data):
    X, y, groups, _ = data
    with sklearn.config_context(enable_metadata_routing=True):
        search = GridSearchCV(RankRLS(), {"alpha": [0.1, 1.0]}, cv=3).fit(X, y)
        options = {"cv": CV, "params": {"groups": groups}, "error_score": "raise"}
        with pytest.raises(ValueError, match="pass them once"):
            cross_validate(RankRLS(), X, make_target(y, groups), **options)
    assert_same_model(search.best_estimator_, RankRLS(**search.best_params_).fit(X, y))
