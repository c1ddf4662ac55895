"""An estimator whose refit is refused or interrupted is what it was before."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

from rankwise import (
    AutoRanker,
    CalibratedRanker,
    ConditionalRankRLS,
    HingeFeatures,
    LabelRanker,
    RankLogistic,
    RankLogisticCV,
    RankRLS,
    RankSVM,
    RankSVMCV,
)
from rankwise.losses import HingeLoss, LogisticLoss
from rankwise.model_selection.scorer import predict_items
from rankwise.uncertainty import jackknife
from tests.ranker_cases import RANKERS

RNG = np.random.default_rng(0)
X = RNG.standard_normal((30, 3))
Y = RNG.integers(0, 3, 30).astype(float)
GROUPS = np.arange(30) // 6
ESTIMATORS = RANKERS | {
    "AutoRanker": AutoRanker(members=["linear, standard, magnitude"], n_resamples=0),
    "CalibratedRanker": CalibratedRanker(RankRLS()),
    "RankSVM, rbf": RankSVM(kernel="rbf", gamma=0.5),
}
every_estimator = pytest.mark.parametrize("name", ESTIMATORS)
pytestmark = pytest.mark.filterwarnings("ignore:the best")


def state(model):
    return {name: value for name, value in vars(model).items() if name.endswith("_")}


@every_estimator
def test_a_refit_that_is_refused_leaves_the_model_as_it_was(name):
    model = clone(ESTIMATORS[name]).fit(X, Y, GROUPS)
    before, scores = state(model), predict_items(model, X, GROUPS)
    with pytest.raises(ValueError, match="nothing to rank"):  # every item is a group of its own
        model.fit(X[:, [0, 1, 2, 0]], Y, np.arange(30))
    assert state(model).keys() == before.keys()
    assert all(value is before[key] for key, value in state(model).items())
    np.testing.assert_array_equal(predict_items(model, X, GROUPS), scores)


@every_estimator
def test_a_first_fit_that_is_refused_leaves_no_fitted_model(name):
    model = clone(ESTIMATORS[name])
    with pytest.raises(ValueError, match="nothing to rank"):
        model.fit(X, Y, np.arange(30))
    assert not state(model)
    with pytest.raises(NotFittedError):
        model.predict(X)


@pytest.mark.parametrize("model", [LabelRanker(), ConditionalRankRLS()])
def test_a_refused_refit_of_a_table_leaves_the_model_as_it_was(model):
    table = X @ RNG.standard_normal((3, 4))
    data = (X,) if isinstance(model, LabelRanker) else (X, np.eye(4))
    model.fit(*data, table)
    scores = model.predict(*data)
    wider = (X[:, [0, 1, 2, 0]], *data[1:])
    with pytest.raises(ValueError, match="Y has the scores of one"):
        model.fit(*wider, table[:, :1])
    np.testing.assert_array_equal(model.predict(*data), scores)


def test_a_refused_refit_of_a_transformer_leaves_it_as_it_was():
    hinges = HingeFeatures().fit(X)
    features = hinges.transform(X)
    with pytest.raises(ValueError, match="n_knots"):
        hinges.set_params(n_knots=-1).fit(X[:, :2])
    np.testing.assert_array_equal(hinges.transform(X), features)


def interrupt(monkeypatch, look, loss):
    """Ctrl-C at a look at the loss; returns the number of looks so far."""
    at, looks = loss.at, []

    def impatient(self, scores):
        looks.append(1)
        if len(looks) == look:
            raise KeyboardInterrupt
        return at(self, scores)

    monkeypatch.setattr(loss, "at", impatient)
    return looks


def test_ctrl_c_before_the_search_begins_leaves_the_model_as_it_was(monkeypatch):
    model = RankSVM(kernel="rbf", gamma=0.5).fit(X, Y, GROUPS)
    scores = model.predict(X)

    def impatient(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr("rankwise.solvers.certified_descent.estimate_pair_covariance", impatient)
    with pytest.raises(KeyboardInterrupt):
        model.fit(X[:20], Y[:20], GROUPS[:20])
    np.testing.assert_array_equal(model.predict(X), scores)


@pytest.mark.parametrize("look", [1, 9, 20])
@pytest.mark.parametrize(
    "search, loss",
    [
        (RankSVMCV([1e-3, 1e-1], cv=3), HingeLoss),
        (RankLogisticCV([1e-3, 1e-1], cv=3), LogisticLoss),
    ],
)
def test_ctrl_c_stops_a_whole_search(monkeypatch, search, loss, look):
    looks = interrupt(monkeypatch, look, loss)
    with pytest.raises(KeyboardInterrupt):
        search.fit(X, Y, GROUPS)
    assert len(looks) == look  # nothing was computed afterwards
    assert not state(search)


def test_ctrl_c_in_the_last_fit_of_a_search_stops_it(monkeypatch):
    search = RankSVMCV([1e-3], cv=2)
    looks = interrupt(monkeypatch, 0, HingeLoss)
    search.fit(X, Y, GROUPS)
    looks = interrupt(monkeypatch, len(looks), HingeLoss)  # the last look is in the last fit
    with pytest.raises(KeyboardInterrupt):
        clone(search).fit(X, Y, GROUPS)


@pytest.mark.parametrize(
    "work",
    [
        lambda: RankSVM().path(X, Y, GROUPS, alphas=[1e-3, 1e-1]),
        lambda: jackknife(RankSVM(), X, Y, GROUPS),
        lambda: CalibratedRanker(RankSVM()).fit(X, Y, GROUPS),
    ],
    ids=["path", "jackknife", "CalibratedRanker"],
)
def test_ctrl_c_stops_all_work_that_consists_of_several_fits(monkeypatch, work):
    looks = interrupt(monkeypatch, 9, HingeLoss)
    with pytest.raises(KeyboardInterrupt):
        work()
    assert len(looks) == 9


def test_ctrl_c_in_a_single_fit_still_keeps_the_best_model_so_far(monkeypatch):
    interrupt(monkeypatch, 5, LogisticLoss)
    with pytest.warns(UserWarning, match="interrupted"):
        model = RankLogistic(1e-6).fit(X, Y, GROUPS)
    assert np.isfinite(model.coef_).all()
