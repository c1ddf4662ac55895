"""HingeFeatures by hand, and the curves of an additive model against its predictions."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from rankwise import GroupScaler, HingeFeatures, RankRLS, RankRLSCV, make_target

rng = np.random.default_rng(0)
X = rng.normal(size=(60, 3)) * [1.0, 10.0, 0.1]
X[:, 2] = np.round(X[:, 2], 1)  # few values
y = np.abs(X[:, 0]) + 0.1 * rng.normal(size=60)
GROUPS = np.repeat(np.arange(6), 10)


def test_columns_are_hinges_at_inner_quantiles():
    scaler = HingeFeatures(n_knots=3).fit(X)
    found = scaler.transform(X)
    columns = [X]
    for j in range(3):
        knots = sorted(set(np.quantile(X[:, j], [0.25, 0.5, 0.75])))
        inner = [k for k in knots if X[:, j].min() < k < X[:, j].max()]
        columns.append(np.array([[max(x - k, 0) for k in inner] for x in X[:, j]]))
    np.testing.assert_allclose(found, np.hstack(columns), atol=1e-12)
    assert len(scaler.get_feature_names_out()) == found.shape[1]


def test_a_constant_column_has_no_knot():
    scaler = HingeFeatures().fit(np.ones((5, 1)))
    assert scaler.transform(np.ones((2, 1))).shape == (2, 1)
    with pytest.raises(ValueError, match="n_knots=-1"):
        HingeFeatures(-1).fit(X)


def test_an_additive_model_learns_a_bend_that_a_line_cannot():
    line = RankRLSCV().fit(X, y, GROUPS)
    hinges = HingeFeatures().fit_transform(X)
    assert RankRLSCV().fit(hinges, y, GROUPS).best_score_ < line.best_score_ - 0.1


@pytest.mark.parametrize("scaler", [None, StandardScaler(), GroupScaler()])
def test_curves_add_up_to_the_score(scaler):
    pyplot = pytest.importorskip("matplotlib.pyplot")
    from rankwise.model_selection.scorer import predict_items
    from rankwise.plot import FeatureCurvesDisplay

    frame = pd.DataFrame(X, columns=["a", "b", "c"])
    steps = [step for step in (scaler, HingeFeatures(), RankRLS(0.01)) if step is not None]
    model = make_pipeline(*steps).fit(frame, make_target(y, GROUPS))
    display = FeatureCurvesDisplay.from_estimator(model, frame, GROUPS)
    assert {curve.name[0] for curve in display.curves} == {"a", "b", "c"}
    scores = predict_items(model, frame, GROUPS)
    total = np.zeros(60)
    for curve in display.curves:
        values = X[:, "abc".index(curve.name[0])]
        if display.scale == "scaled value":
            continue
        total += np.interp(values, curve.x, curve.added)
    if display.scale == "value":
        np.testing.assert_allclose(total, scores - scores.mean(), atol=1e-8)
    assert display.curves[0].name.startswith("a")
    assert display.plot(features=[display.curves[1].name]).lines_
    with pytest.raises(ValueError, match="'nothing'"):
        display.plot(features=["nothing"])
    with pytest.raises(TypeError, match="HingeFeatures"):
        FeatureCurvesDisplay.from_estimator(RankRLS().fit(X, y), X)
    pyplot.close("all")
