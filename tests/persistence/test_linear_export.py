"""An exported linear model scores as the model does, with the features as they come."""

from __future__ import annotations

import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import Ridge
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import (
    MaxAbsScaler,
    MinMaxScaler,
    Normalizer,
    RobustScaler,
    StandardScaler,
)

from rankwise import (
    CoRankRLS,
    RankingPursuit,
    RankingPursuitCV,
    RankRLS,
    RankRLSCV,
    RankSVM,
    RankSVMCV,
    View,
)
from rankwise.persistence import export_linear
from tests.persistence.saved_models import FRAME, GROUPS, NEW, PARTLY, SPARSE, X, Y, y

NAMES = ["age", "bm25", "länge", "x"]
MODELS = {
    "RankRLS": RankRLS().fit(X, y, GROUPS),
    "one column": RankRLS().fit(X, y[:, None], GROUPS),
    "float32": RankRLS().fit(X.astype(np.float32), y),
    "sparse": RankRLS(solver="iterative").fit(SPARSE, y),
    "RankSVM": RankSVM().fit(X, y, GROUPS),
    "RankRLSCV": RankRLSCV().fit(X, y, GROUPS),
    "RankSVMCV": RankSVMCV([1e-3], cv=3).fit(X, y, GROUPS),
    "views": CoRankRLS(views=[View([0, 3]), View([1, 2, 3]), View()]).fit(X, PARTLY, GROUPS),
    "basis": CoRankRLS(n_basis=3, random_state=0).fit(X, PARTLY, GROUPS),
    "sparse basis": CoRankRLS(n_basis=3, random_state=0).fit(SPARSE, PARTLY, GROUPS),
    "basis of columns": CoRankRLS(views=[View([2, 0], n_basis=2), View([1])]).fit(X, PARTLY),
    "features": RankingPursuit(2, kernel="linear", dictionary="features").fit(X, y),
    "level": RankingPursuit(3, kernel="linear", dictionary="features", beta=0.5).fit(X, y),
    "items": RankingPursuit(3, kernel="linear", beta=0.5).fit(X, y),
    "view pursuit": RankingPursuit(3, kernel="linear", views=2, random_state=0).fit(X, PARTLY),
    "RankingPursuitCV": RankingPursuitCV(3, kernel="linear").fit(X, y, GROUPS),
    "standard": make_pipeline(StandardScaler(), RankRLS()).fit(X, y),
    "mean": make_pipeline(StandardScaler(with_std=False), RankRLS()).fit(X, y),
    "spread": make_pipeline(StandardScaler(with_mean=False), RankRLS()).fit(X, y),
    "range": make_pipeline(MinMaxScaler((-1, 3)), RankSVM()).fit(X, y),
    "largest": make_pipeline(MaxAbsScaler(), RankRLSCV()).fit(X, y, rankrlscv__groups=GROUPS),
    "robust": make_pipeline(RobustScaler(), RankRLS()).fit(X, y),
    "centred": make_pipeline(RobustScaler(with_scaling=False), RankRLS()).fit(X, y),
    "quartiles": make_pipeline(RobustScaler(with_centering=False), RankRLS()).fit(X, y),
    "three": make_pipeline(MinMaxScaler(), "passthrough", StandardScaler(), RankRLS()).fit(X, y),
    "none": Pipeline([("nothing", None), ("rank", RankRLS())]).fit(X, y),
}


def scores(exported, X):
    return X @ np.array(list(exported["weights"].values())) + exported["intercept"]


@pytest.mark.parametrize("name", MODELS)
def test_dot_product_and_intercept_equal_predict(name):
    exported = json.loads(json.dumps(export_linear(MODELS[name])))
    assert list(exported["weights"]) == ["f1", "f2", "f3", "f4"]
    expected = MODELS[name].predict(NEW).ravel()
    np.testing.assert_allclose(scores(exported, NEW), expected, rtol=1e-12, atol=1e-12)


@settings(max_examples=40)
@given(
    shift=st.floats(-1e3, 1e3),
    scale=st.floats(1e-3, 1e3),
    scalers=st.lists(
        st.sampled_from(
            [StandardScaler(), MinMaxScaler(), MaxAbsScaler(), RobustScaler(), "passthrough"]
        ),
        max_size=3,
    ),
    seed=st.integers(0, 99),
)
def test_any_chain_of_scalers_is_folded_in(shift, scale, scalers, seed):
    rng = np.random.default_rng(seed)
    A = rng.normal(size=(12, 3)) * scale + shift
    model = make_pipeline(*scalers, RankRLS(0.1)).fit(A, rng.normal(size=12))
    exported = export_linear(model)
    parts = np.abs(A) @ np.abs(list(exported["weights"].values())) + abs(exported["intercept"])
    error = np.abs(scores(exported, A) - model.predict(A))
    assert (error <= 1e-12 * (1 + parts)).all()


@pytest.mark.parametrize("name", ["largest", "level"])
def test_solr_gets_its_linear_model(name):
    exported = export_linear(MODELS[name], format="solr", name="mine", feature_names=NAMES)
    weights = export_linear(MODELS[name], feature_names=NAMES)["weights"]
    assert exported == {
        "class": "org.apache.solr.ltr.model.LinearModel",
        "name": "mine",
        "features": [{"name": "age"}, {"name": "bm25"}, {"name": "länge"}, {"name": "x"}],
        "params": {"weights": weights},
    }
    assert json.loads(json.dumps(exported)) == exported


def test_opensearch_gets_its_linear_model():
    exported = export_linear(MODELS["RankRLS"], format="opensearch", name="mine")
    weights = export_linear(MODELS["RankRLS"])["weights"]
    definition = {"type": "model/linear", "definition": weights}
    assert exported == {"model": {"name": "mine", "model": definition}}


def test_without_the_intercept_the_order_is_the_same():
    model = MODELS["level"]
    weights = export_linear(model, format="opensearch")["model"]["model"]["definition"]
    assert export_linear(model)["intercept"] != 0
    found = NEW @ np.array(list(weights.values()))
    np.testing.assert_array_equal(np.argsort(found), np.argsort(model.predict(NEW)))


def test_names_are_those_of_the_data_frame_or_the_given_ones():
    model = RankRLS().fit(FRAME, y)
    pipeline = make_pipeline(StandardScaler(), RankRLS()).fit(FRAME, y)
    late = make_pipeline("passthrough", StandardScaler(), RankRLS()).fit(FRAME, y)
    for each in (model, pipeline, late):
        assert list(export_linear(each)["weights"]) == NAMES
        given = export_linear(each, feature_names=np.array(["a", "b", "c", "d"]))
        assert list(given["weights"]) == ["a", "b", "c", "d"]


@pytest.mark.parametrize("last", [[], ["c", ""], ["c", 4], ["c", ["d"]], ["c", "a"]], ids=str)
def test_bad_feature_names_are_refused(last):
    with pytest.raises(ValueError, match="expected 4 different names"):
        export_linear(MODELS["RankRLS"], feature_names=["a", "b", *last])


@pytest.mark.parametrize(
    "model, match",
    [
        (RankRLS(kernel="rbf").fit(X, y), "kernel='rbf' is not linear"),
        (RankSVM(kernel="precomputed").fit(X @ X.T, y), "kernel='precomputed' is not linear"),
        (RankingPursuit(2).fit(X, y), "kernel='rbf' is not linear"),
        (CoRankRLS(views=[View(), View(kernel="rbf", n_basis=3)]).fit(X, PARTLY), "'rbf'"),
        (RankRLS().fit(X, Y), "2 outputs"),
        (make_pipeline(MinMaxScaler(clip=True), RankRLS()).fit(X, y), "clip=True.*not linear"),
        (make_pipeline(Normalizer(), RankRLS()).fit(X, y), "Normalizer cannot be folded"),
        (Ridge().fit(X, y), "Ridge is not a ranker of rankwise"),
    ],
    ids=str,
)
def test_models_that_are_not_linear_are_refused(model, match):
    with pytest.raises(ValueError, match=match):
        export_linear(model)


def test_a_name_that_two_columns_of_the_data_frame_had_loses_no_weight():
    model = RankRLS().fit(X, y)
    model.feature_names_in_ = np.array(["a", "b", "a", "c"], dtype=object)  # scikit-learn 1.8 may
    with pytest.raises(ValueError, match="expected 4 different names: pass feature_names="):
        export_linear(model)
    assert len(export_linear(model, feature_names=["a", "b", "a2", "c"])["weights"]) == 4


def test_unknown_formats_and_unfitted_models_are_refused():
    with pytest.raises(ValueError, match="format='xml' is unknown"):
        export_linear(MODELS["RankRLS"], format="xml")
    with pytest.raises(NotFittedError):
        export_linear(RankRLS())
