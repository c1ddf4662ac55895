"""Groups that reach only the splitter are noticed, and nothing else is."""

from __future__ import annotations

import joblib
import numpy as np
import pytest
import sklearn
from sklearn.base import BaseEstimator
from sklearn.feature_selection import RFECV
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

from rankwise import make_target
from rankwise.datasets import make_ranking
from rankwise.estimators.lost_groups import warn_if_groups_were_lost

CV = GroupKFold(3)
TRAINED = "trained to order all items as one list"
SCORED = "score judges all items as one list"
X, y, groups = make_ranking(n_queries=9, n_features=3, noise=1.0, random_state=0)[:3]


class Ranker(BaseEstimator):
    """As little of a ranker as scikit-learn needs; those below notice in one place each."""

    __metadata_request__fit = {"groups": True}
    __metadata_request__score = {"groups": True}

    def __init__(self, alpha=1.0):
        self.alpha = alpha

    def fit(self, X, y, groups=None):
        self.coef_ = np.arange(X.shape[1])
        return self

    def predict(self, X):
        return X @ self.coef_

    def score(self, X, y, groups=None, sample_weight=None):
        return 0.5


class NoticesInFit(Ranker):
    def fit(self, X, y, groups=None):
        warn_if_groups_were_lost(y, groups, "fit")
        return super().fit(X, y, groups)


class NoticesInScore(Ranker):
    def score(self, X, y, groups=None, sample_weight=None):
        warn_if_groups_were_lost(y, groups, "score")
        return super().score(X, y, groups, sample_weight)


GRID = {"alpha": [0.1, 1.0]}
CALLS = {
    "GridSearchCV": lambda r, y: GridSearchCV(r, GRID, cv=CV).fit(X, y, groups=groups),
    "RandomizedSearchCV": lambda r, y: RandomizedSearchCV(r, GRID, n_iter=2, cv=CV).fit(
        X, y, groups=groups
    ),
    "cross_validate": lambda r, y: cross_validate(r, X, y, groups=groups, cv=CV),
    "cross_val_score": lambda r, y: cross_val_score(r, X, y, groups=groups, cv=CV),
    "cross_val_predict": lambda r, y: cross_val_predict(r, X, y, groups=groups, cv=CV),
    "learning_curve": lambda r, y: learning_curve(
        r, X, y, groups=groups, cv=CV, train_sizes=[0.5, 1.0]
    ),
    "validation_curve": lambda r, y: validation_curve(
        r, X, y, groups=groups, cv=CV, param_name="alpha", param_range=[0.1, 1.0]
    ),
    "permutation_test_score": lambda r, y: permutation_test_score(
        r, X, y, groups=groups, cv=CV, n_permutations=2
    ),
    "pipeline": lambda r, y: cross_validate(
        make_pipeline(StandardScaler(), r), X, y, groups=groups, cv=CV
    ),
    "nested": lambda r, y: cross_validate(GridSearchCV(r, GRID, cv=2), X, y, groups=groups, cv=CV),
}
FUNCTIONS = pytest.mark.parametrize("call", CALLS.values(), ids=CALLS.keys())


@FUNCTIONS
def test_groups_of_the_splitter_alone_are_reported_where_the_user_called(call):
    with pytest.warns(UserWarning, match=TRAINED) as caught:
        call(NoticesInFit(), y)
    assert {(warning.filename, warning.lineno) for warning in caught} == {
        (__file__, caught[0].lineno)  # one line, so that a user sees it once
    }


@FUNCTIONS
def test_groups_inside_the_target_are_not_lost(call):
    call(NoticesInFit(), make_target(y, groups))


def test_feature_elimination_is_noticed():
    with pytest.warns(UserWarning, match=TRAINED):
        RFECV(NoticesInFit(), cv=CV).fit(X, y, groups=groups)


@pytest.mark.parametrize(
    "call",
    [
        lambda r: cross_validate(r, X, y, cv=3),
        lambda r: GridSearchCV(r, GRID, cv=3).fit(X, y),
        lambda r: r.fit(X, y),
        lambda r: sklearn.clone(r),
        lambda r: cross_validate(r, X, y, groups=groups, cv=CV, params={"groups": groups}),
        lambda r: cross_validate(
            make_pipeline(r),
            X,
            y,
            groups=groups,
            cv=CV,
            params={f"{type(r).__name__.lower()}__groups": groups},
        ),
    ],
)
def test_nothing_is_reported_where_nothing_is_lost(call):
    call(NoticesInFit())


def test_nothing_is_reported_with_routing_on():
    with sklearn.config_context(enable_metadata_routing=True):
        cross_validate(NoticesInFit(), X, y, cv=CV, params={"groups": groups})
        GridSearchCV(NoticesInFit(), GRID, cv=CV).fit(X, y, groups=groups)


@pytest.mark.parametrize("name", sorted(CALLS.keys() - {"cross_val_predict"}))
def test_groups_that_do_not_reach_score_are_reported(name):
    call = CALLS[name]
    with pytest.warns(UserWarning, match=SCORED) as caught:
        call(NoticesInScore(), y)
    assert {warning.filename for warning in caught} == {__file__}
    call(NoticesInScore(), make_target(y, groups))


def test_groups_for_fit_alone_do_not_reach_score():
    with pytest.warns(UserWarning, match=SCORED):
        cross_validate(NoticesInScore(), X, y, cv=3, params={"groups": groups})


def test_the_refit_of_a_parallel_search_is_noticed_in_fit():
    with pytest.warns(UserWarning, match=TRAINED):
        GridSearchCV(NoticesInFit(), GRID, cv=CV, n_jobs=2).fit(X, y, groups=groups)


def test_a_fit_in_another_thread_or_process_cannot_tell():
    cross_validate(NoticesInFit(), X, y, groups=groups, cv=CV, n_jobs=2)
    with joblib.parallel_config("threading"):
        cross_validate(NoticesInFit(), X, y, groups=groups, cv=CV, n_jobs=2)


@pytest.mark.parametrize(
    "routed_params",
    [
        None,
        {},
        {"splitter": None, "estimator": {"fit": {}}},
        {"splitter": {"split": {}}, "estimator": {"fit": {}}},
        {"splitter": {"split": {"groups": [0, 1]}}},
    ],
    ids=str,
)
def test_a_version_that_keeps_other_books_is_no_error(routed_params):
    space = {"__name__": "sklearn.model_selection._validation", "f": warn_if_groups_were_lost}
    exec("def cross_validate(given):\n    routed_params = given\n    f([0, 1], None, 'fit')", space)
    space["cross_validate"](routed_params)
