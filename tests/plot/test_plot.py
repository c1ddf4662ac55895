"""Displays hold the right numbers, and draw them."""

from __future__ import annotations

import subprocess
import sys

import matplotlib
import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import Ridge
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from rankwise import (
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
from rankwise.metrics import disagreement_error, get_metric, ndcg
from rankwise.model_selection import compare
from rankwise.plot import (
    AlphaPathDisplay,
    GroupComparisonDisplay,
    PreferenceGraphDisplay,
    StagedErrorDisplay,
    UnscoredCurveDisplay,
)
from rankwise.plot.curves import Curve, make_curve

matplotlib.use("Agg")
import matplotlib.pyplot as plt

ALPHAS = [1.0, 0.01, 100.0]
VIEWS = [View(slice(0, 2)), View(slice(2, None))]


@pytest.fixture(autouse=True)
def closed_figures():
    yield
    plt.close("all")


@pytest.fixture(scope="module")
def data():
    return make_ranking(n_queries=12, n_documents=6, n_features=4, noise=0.8, random_state=0)[:3]


def standard_error(values):
    values = np.asarray(values)[~np.isnan(values)]
    return values.std(ddof=1) / np.sqrt(len(values))


def leave_group_out(model, X, y, groups, metric):
    """The metric of every held-out group, by training again for each."""
    values = []
    for group in np.unique(groups):
        rest, held = groups != group, groups == group
        fitted = clone(model).fit(X[rest], y[rest], groups[rest])
        values.append(get_metric(metric)(y[held], fitted.predict(X[held]), undefined="nan"))
    return np.array(values)


# Curves


@given(
    st.integers(1, 6).flatmap(
        lambda n: st.lists(
            st.lists(st.one_of(st.floats(-10, 10), st.just(np.nan)), min_size=n, max_size=n),
            min_size=1,
            max_size=6,
        )
    )
)
def test_curve_has_mean_and_standard_error_of_the_defined_values(rows):
    table = np.array(rows)
    curve = make_curve("", -np.arange(table.shape[1]), table)  # sorted the other way round
    for mean, error, column in zip(curve.mean, curve.error, table.T[::-1], strict=True):
        defined = column[~np.isnan(column)]
        assert np.isnan(mean) if not len(defined) else mean == pytest.approx(defined.mean())
        if len(defined) < 2:
            assert np.isnan(error)
        else:
            assert error == pytest.approx(standard_error(defined), abs=1e-9)


def test_curve_keeps_its_best_place_when_it_is_sorted():
    curve = make_curve("", [3.0, 1.0, 2.0], [[0.3, 0.1, 0.2]], best=0)
    assert curve.x[curve.best] == 3.0
    assert curve.mean[curve.best] == 0.3


# Alpha path


@pytest.mark.parametrize("model", [RankRLS(), RankRLS(kernel="rbf"), RankSVM(tol=1e-8)], ids=str)
def test_alpha_path_from_data_equals_training_again_for_each_group(model, data):
    display = AlphaPathDisplay.from_data(model, *data, alphas=ALPHAS, metric="ndcg@3")
    (curve,) = display.curves
    np.testing.assert_array_equal(curve.x, sorted(ALPHAS))
    by_hand = [
        leave_group_out(clone(model).set_params(alpha=alpha), *data, "ndcg@3") for alpha in curve.x
    ]
    np.testing.assert_allclose(curve.mean, np.nanmean(by_hand, axis=1), atol=1e-6)
    np.testing.assert_allclose(curve.error, [standard_error(v) for v in by_hand], atol=1e-6)
    assert curve.mean[curve.best] == curve.mean.max()


def test_alpha_path_draws_curve_band_choice_and_coefficients(data):
    X, y, groups = data
    display = AlphaPathDisplay.from_data(RankRLS(), *data, alphas=ALPHAS, name="mine")
    curve = display.curves[0]
    np.testing.assert_array_equal(display.lines_[0].get_xydata(), np.c_[curve.x, curve.mean])
    assert display.lines_[0].get_label() == "mine"
    (mark,) = display.marks_
    assert mark.get_xdata()[0] == curve.x[curve.best]
    edge = display.bands_[0].get_paths()[0].vertices
    assert edge[:, 1].max() == pytest.approx((curve.mean + curve.error).max())
    assert display.ax_.get_xscale() == "log"
    for k, alpha in enumerate(curve.x):
        coef = RankRLS(alpha).fit(X, y, groups).coef_
        np.testing.assert_allclose(display.coefficients[k], coef, atol=1e-10)
    for j, line in enumerate(display.coefficient_lines_):
        np.testing.assert_array_equal(line.get_ydata(), display.coefficients[:, j])


def test_alpha_path_of_equal_scores_chooses_the_largest_alpha():
    X = np.array([[0.0], [1.0]] * 4)
    groups = np.repeat(np.arange(4), 2)
    display = AlphaPathDisplay.from_data(RankRLS(), X, X[:, 0], groups, alphas=[1.0, 10.0, 0.1])
    assert display.curves[0].x[display.curves[0].best] == 10.0


def test_alpha_path_without_alphas_chooses_as_the_search_does(data):
    found = AlphaPathDisplay.from_data(RankRLS(), *data).curves[0]
    search = RankRLSCV().fit(*data)
    searched = AlphaPathDisplay.from_estimator(search).curves[0]
    np.testing.assert_allclose(found.mean, searched.mean)
    assert found.x[found.best] == pytest.approx(search.alpha_)


@pytest.mark.parametrize("search", [RankRLSCV(), RankSVMCV(ALPHAS, cv=3, tol=1e-8)], ids=str)
@pytest.mark.filterwarnings("ignore:the best alpha")
def test_alpha_path_of_a_search_is_its_cv_results(search, data):
    search.fit(*data)
    display = AlphaPathDisplay.from_estimator(search, *data)
    (curve,) = display.curves
    order = np.argsort(search.cv_results_["alphas"][0])
    np.testing.assert_allclose(curve.mean, search.cv_results_["mean_score"][0][order])
    assert curve.x[curve.best] == search.alpha_
    assert curve.mean[curve.best] == pytest.approx(search.best_score_)
    assert display.coefficients.shape == (len(curve.x), 4)
    np.testing.assert_allclose(display.coefficients[curve.best], search.coef_, atol=1e-3)


@pytest.mark.filterwarnings("ignore:the best gamma .* is at the edge")
def test_alpha_path_has_a_line_for_each_kernel(data):
    search = RankRLSCV(kernel="rbf", gamma=[0.01, 0.1, 1.0]).fit(*data)
    display = AlphaPathDisplay.from_estimator(search, *data)
    assert [curve.label for curve in display.curves] == [
        "gamma = 0.01",
        "gamma = 0.1",
        "gamma = 1",
    ]
    (chosen,) = [curve for curve in display.curves if curve.best is not None]
    assert chosen.label == f"gamma = {search.best_params_['gamma']:.3g}"
    assert chosen.x[chosen.best] == search.alpha_
    assert len(display.bands_) == 1  # around the chosen one
    assert display.coefficient_ax_ is None  # a kernel model has none


def test_alpha_path_names_the_default_of_a_kernel(data):
    search = RankRLSCV(kernel="rbf", gamma=[None, 0.1]).fit(*data)
    labels = [curve.label for curve in AlphaPathDisplay.from_estimator(search).curves]
    assert labels == ["gamma = None", "gamma = 0.1"]


def test_alpha_path_has_a_line_for_each_nu(data):
    X, y, groups = data
    y = np.where(groups < 5, y, np.nan)
    search = CoRankRLSCV(views=VIEWS).fit(X, y, groups)
    display = AlphaPathDisplay.from_estimator(search)
    assert len(display.lines_) == 7
    for i, curve in enumerate(display.curves):
        np.testing.assert_allclose(curve.mean, search.cv_results_["mean_score"][i])
    (chosen,) = [curve for curve in display.curves if curve.best is not None]
    assert (chosen.label, chosen.x[chosen.best]) == (f"nu = {search.nu_:g}", search.alpha_)


@pytest.mark.parametrize("own", [True, False])
def test_alpha_path_has_a_line_for_each_output(own, data):
    X, y, groups = data
    Y = np.c_[y, -y + X[:, 0], X[:, 1]]
    search = RankRLSCV(alpha_per_output=own).fit(X, Y, groups)
    display = AlphaPathDisplay.from_estimator(search, X, Y, groups)
    chosen = [curve.x[curve.best] for curve in display.curves]
    np.testing.assert_array_equal(chosen, np.broadcast_to(search.alpha_, 3))
    mean = np.transpose([curve.mean for curve in display.curves])
    np.testing.assert_allclose(mean, search.cv_results_["mean_score"][0])
    assert display.coefficients is None


def test_alpha_path_of_one_list_has_no_band(data):
    X, y, _ = data
    display = AlphaPathDisplay.from_estimator(RankRLSCV().fit(X[:30], y[:30]))
    assert display.bands_ == []
    assert len(display.lines_) == 1


def test_alpha_path_of_explicit_preferences(data):
    X = data[0]
    graph = PairGraph([0, 1, 2, 4, 5, 6], [1, 2, 3, 5, 6, 7], n_items=len(X))
    search = RankRLSCV(cv=2).fit(X, graph)
    display = AlphaPathDisplay.from_estimator(search, X, graph)
    assert display.coefficients.shape == (31, 4)


def test_alpha_path_takes_pipelines(data):
    X, y, groups = data
    pipeline = make_pipeline(StandardScaler(), RankRLSCV()).fit(X, make_target(y, groups))
    display = AlphaPathDisplay.from_estimator(pipeline, X, y, groups)
    best = display.curves[0].best
    np.testing.assert_allclose(display.coefficients[best], pipeline[-1].coef_, atol=1e-8)

    plain = AlphaPathDisplay.from_data(RankRLS(), StandardScaler().fit_transform(X), y, groups)
    piped = AlphaPathDisplay.from_data(make_pipeline(StandardScaler(), RankRLS()), *data)
    np.testing.assert_allclose(piped.curves[0].mean, plain.curves[0].mean)


def test_alpha_path_names_the_largest_coefficients(data):
    X, y, groups = data
    frame = pd.DataFrame(np.c_[X, 0 * X], columns=list("abcdefgh"))
    display = AlphaPathDisplay.from_data(RankRLS(), frame, y, groups, alphas=ALPHAS)
    named = [text.get_text() for text in display.coefficient_ax_.get_legend().get_texts()]
    assert len(named) == 5
    assert set("abcd") <= set(named)


def test_alpha_path_draws_where_it_is_told(data):
    _, (upper, lower) = plt.subplots(2, 1)
    display = AlphaPathDisplay.from_data(
        RankRLS(), *data, alphas=ALPHAS, ax=(upper, lower), coefficients=True
    )
    assert (display.ax_, display.coefficient_ax_) == (upper, lower)
    _, ax = plt.subplots()
    display = AlphaPathDisplay.from_data(RankRLS(), *data, alphas=ALPHAS, ax=ax, color="k")
    assert display.ax_ is ax
    assert display.coefficient_ax_ is None
    assert display.lines_[0].get_color() == "k"
    with pytest.raises(ValueError, match="has no coefficients"):
        display.plot(coefficients=True)


def test_alpha_path_says_what_it_cannot_draw(data):
    X, y, groups = data
    with pytest.raises(TypeError, match="estimator is a RankRLS; expected a fitted RankRLSCV"):
        AlphaPathDisplay.from_estimator(RankRLS())
    with pytest.raises(NotFittedError):
        AlphaPathDisplay.from_estimator(RankRLSCV())
    with pytest.raises(TypeError, match="estimator is a Ridge; expected RankRLS"):
        AlphaPathDisplay.from_data(Ridge(), X, y, groups)
    with pytest.raises(ValueError, match="got 1; pass at least two groups"):
        AlphaPathDisplay.from_data(RankRLS(), X, y)
    with pytest.raises(ValueError, match="2 outputs"):
        AlphaPathDisplay.from_data(RankRLS(), X, np.c_[y, y], groups)
    with pytest.raises(TypeError, match="y is a ScoreGraph"):
        AlphaPathDisplay.from_data(RankRLS(), X, ScoreGraph(y, groups))
    with pytest.raises(ValueError, match="undefined in every held-out fold"):
        AlphaPathDisplay.from_data(RankRLS(), X, y - 10, groups, metric="map", alphas=ALPHAS)
    with pytest.raises(ValueError, match="two axes"):
        AlphaPathDisplay.from_data(
            RankRLS(), X, y, groups, alphas=ALPHAS, ax=plt.subplots()[1], coefficients=True
        )
    with pytest.raises(TypeError, match="expected matplotlib axes"):
        AlphaPathDisplay.from_data(RankRLS(), X, y, groups, alphas=ALPHAS, ax=3)


# Two rankers


@pytest.mark.parametrize("metric", ["ndcg@10", "disagreement", "map"])
def test_comparison_holds_the_metric_of_each_group(metric, data):
    _, y, groups = data
    rng = np.random.default_rng(0)
    a, b = y + rng.normal(size=(2, len(y)))
    display = GroupComparisonDisplay.from_predictions(y, a, b, groups, metric=metric)
    judge = get_metric(metric)
    labels, values = [], []
    for group in np.unique(groups):
        rows = groups == group
        pair = [judge(y[rows], scores[rows], undefined="nan") for scores in (a, b)]
        if np.isfinite(pair).all():
            labels.append(group)
            values.append(pair)
    np.testing.assert_allclose(np.c_[display.values_a, display.values_b], values)
    np.testing.assert_array_equal(display.groups, labels)
    assert display.n_dropped == len(np.unique(groups)) - len(labels)
    sign = 1 if judge.greater_is_better else -1
    np.testing.assert_array_equal(
        display.winner, sign * np.sign(np.subtract(*np.transpose(values)))
    )
    assert (display.winner == 1).sum() == display.row.wins
    assert (display.winner == -1).sum() == display.row.losses


def test_comparison_reports_the_test_of_compare(data):
    _, y, groups = data
    a, b = y, -y
    display = GroupComparisonDisplay.from_predictions(y, a, b, groups, names=("up", "down"))
    values = [ndcg(y, s, groups, k=10, per_group=True, undefined="nan") for s in (a, b)]
    expected = compare(dict(zip(("up", "down"), values, strict=True)), greater_is_better=True)
    assert display.row == expected.rows[0]
    title = display.ax_.get_title()
    assert "up − down" in title
    assert f"p = {display.row.p:.2g}" in title
    assert f"{display.row.low:+.3g} … {display.row.high:+.3g}" in title


def test_comparison_scatter_draws_every_group_once(data):
    _, y, groups = data
    rng = np.random.default_rng(1)
    display = GroupComparisonDisplay.from_predictions(y, *rng.normal(size=(2, len(y))), groups)
    drawn = np.concatenate([points.get_offsets() for points in display.points_])
    expected = np.c_[display.values_a, display.values_b]
    np.testing.assert_allclose(sorted(map(tuple, drawn)), sorted(map(tuple, expected)))
    better = display.points_[0].get_offsets()
    assert (better[:, 0] > better[:, 1]).all()
    (x0, x1), (y0, y1) = display.line_.get_data()
    assert (x0, x1) == (y0, y1)
    assert display.interval_ is None


def test_comparison_differences_are_sorted_with_their_mean(data):
    _, y, groups = data
    rng = np.random.default_rng(1)
    display = GroupComparisonDisplay.from_predictions(
        y, *rng.normal(size=(2, len(y))), groups, kind="difference", metric="tau"
    )
    bars = [bar for part in display.points_ for bar in part]
    bars.sort(key=lambda bar: bar.get_x())
    heights = [bar.get_height() for bar in bars]
    np.testing.assert_allclose(heights, np.sort(display.values_a - display.values_b))
    assert display.line_.get_ydata()[0] == pytest.approx(display.row.difference)
    low, high = (
        display.interval_.get_y(),
        display.interval_.get_y() + display.interval_.get_height(),
    )
    assert (low, high) == pytest.approx((display.row.low, display.row.high))


def test_comparison_of_equal_values_and_of_one_group():
    display = GroupComparisonDisplay(values_a=[0.5], values_b=[0.5], metric="map")
    for kind in ("scatter", "difference"):
        display.plot(kind=kind)
        assert display.interval_ is None
    assert display.winner.tolist() == [0]
    assert "equal: 1" in [text.get_text() for text in display.ax_.get_legend().get_texts()]


def test_comparison_of_estimators_is_that_of_their_predictions(data):
    X, y, groups = data
    target = make_target(y, groups)
    ranker = make_pipeline(StandardScaler(), RankRLS()).fit(X, target)
    ridge = Ridge().fit(X, y)
    display = GroupComparisonDisplay.from_estimators(ranker, ridge, X, target)
    assert display.names == ("RankRLS", "Ridge")
    direct = GroupComparisonDisplay.from_predictions(
        y, ranker.predict(X), ridge.predict(X), groups, names=display.names
    )
    assert direct.row == display.row
    same = GroupComparisonDisplay.from_estimators(ridge, ridge, X, y, groups)
    assert same.names == ("Ridge (a)", "Ridge (b)")


def test_comparison_says_what_is_wrong(data):
    X, y, groups = data
    with pytest.raises(ValueError, match="needs groups"):
        GroupComparisonDisplay.from_predictions(y, y, y)
    with pytest.raises(ValueError, match="two different names"):
        GroupComparisonDisplay.from_predictions(y, y, y, groups, names=("x", "x"))
    with pytest.raises(ValueError, match="kind='violin' is unknown"):
        GroupComparisonDisplay.from_predictions(y, y, y, groups, kind="violin")
    with pytest.raises(NotFittedError):
        GroupComparisonDisplay.from_estimators(RankRLS(), RankRLS(), X, y, groups)
    with pytest.raises(ValueError, match="no group is left"):
        GroupComparisonDisplay.from_predictions(0 * y, y, y, groups, metric="map")


# Stages of a pursuit


@pytest.fixture(scope="module")
def pursuit(data):
    return RankingPursuit(4, kernel="linear", dictionary="features").fit(*data)


def test_stages_are_those_of_smaller_pursuits(pursuit, data):
    X, y, groups = data
    held = make_ranking(n_queries=7, n_documents=5, n_features=4, random_state=9)[:3]
    display = StagedErrorDisplay.from_estimator(
        pursuit, *data, X_test=held[0], y_test=held[1], groups_test=held[2], metric="tau"
    )
    for curve, (Z, t, g) in zip(display.curves, [data, held], strict=True):
        np.testing.assert_array_equal(curve.x, [1, 2, 3, 4])
        for steps in (1, 2, 3, 4):
            smaller = clone(pursuit).set_params(n_basis=steps).fit(X, y, groups)
            value = get_metric("tau")(t, smaller.predict(Z), g)
            assert curve.mean[steps - 1] == pytest.approx(value)
    training, test = display.curves
    assert training.best is None
    assert test.mean[test.best] == test.mean.max()
    np.testing.assert_array_equal(display.lines_[1].get_ydata(), test.mean)
    assert display.marks_[0].get_label() == f"best: {test.best + 1}"
    assert display.ax_.get_ylabel() == "tau (higher is better)"


def test_stages_leave_unscored_items_out(data):
    X, y, groups = data
    partly = np.where(groups < 6, y, np.nan)
    model = RankingPursuit(3, views=VIEWS, kernel="linear").fit(X, partly, groups)
    curve = StagedErrorDisplay.from_estimator(model, X, partly, groups).curves[0]
    scored = groups < 6
    last = disagreement_error(y[scored], model.predict(X[scored]), groups[scored])
    assert curve.mean[-1] == pytest.approx(last)


def test_stages_of_a_search_come_with_its_folds(data):
    search = RankingPursuitCV(5, gamma=[0.01, 0.1]).fit(*data)
    display = StagedErrorDisplay.from_estimator(search, *data)
    assert len(display.curves) == 2
    assert display.curves[1].best + 1 == search.n_basis_
    assert display.curves[1].mean[display.curves[1].best] == pytest.approx(search.best_score_)
    other = StagedErrorDisplay.from_estimator(search, *data, metric="ndcg")
    assert len(other.curves) == 1  # the folds were judged by another metric


@pytest.mark.parametrize("scoring", ["disagreement", "ndcg@5", "loss"])
def test_stages_from_cv_results(scoring, data):
    search = RankingPursuitCV(5, gamma=[0.01, 0.1], scoring=scoring).fit(*data)
    display = StagedErrorDisplay.from_cv_results(search.cv_results_, metric=scoring, name="search")
    for k, curve in enumerate(display.curves):
        np.testing.assert_allclose(curve.mean, search.cv_results_["mean_score"][k])
    (chosen,) = [curve for curve in display.curves if curve.best is not None]
    assert chosen.best + 1 == search.n_basis_
    assert chosen.label == f"gamma = {search.best_params_['gamma']:.3g}"
    assert display.ax_.get_title() == "search"
    assert display.metric == scoring


def test_stages_of_a_pipeline(data):
    X, y, groups = data
    target = make_target(y, groups)
    pipeline = make_pipeline(
        StandardScaler(), RankingPursuit(3, kernel="linear", dictionary="features")
    ).fit(X, target)
    curve = StagedErrorDisplay.from_estimator(pipeline, X, target).curves[0]
    assert curve.mean[-1] == pytest.approx(disagreement_error(y, pipeline.predict(X), groups))


def test_stages_say_what_is_wrong(pursuit, data):
    X, y, groups = data
    with pytest.raises(TypeError, match="estimator is a RankRLS; expected a fitted RankingPursuit"):
        StagedErrorDisplay.from_estimator(RankRLS(), *data)
    with pytest.raises(NotFittedError):
        StagedErrorDisplay.from_estimator(RankingPursuit(), *data)
    with pytest.raises(ValueError, match="X_test and y_test go together"):
        StagedErrorDisplay.from_estimator(pursuit, *data, X_test=X)
    with pytest.raises(ValueError, match="undefined in every group of the training data"):
        StagedErrorDisplay.from_estimator(pursuit, X, 0 * y, groups)
    with pytest.raises(ValueError, match="no item of the training data has a score"):
        StagedErrorDisplay.from_estimator(pursuit, X, np.nan * y, groups)
    with pytest.raises(ValueError, match="expected the cv_results_ of a fitted RankingPursuitCV"):
        StagedErrorDisplay.from_cv_results(RankRLSCV().fit(*data).cv_results_)


# Unscored items


@pytest.fixture(scope="module")
def partly(data):
    X, y, groups = data
    train, test = groups < 9, groups >= 9
    known = np.where(groups < 3, y, np.nan)
    return X[train], known[train], groups[train], X[test], y[test], groups[test]


CO = CoRankRLS(0.1, nu=10.0, views=VIEWS)


def test_unscored_curve_ends_are_plain_fits(partly):
    X, y, groups, X_test, y_test, groups_test = partly
    display = UnscoredCurveDisplay.from_estimator(
        CO, *partly, n_unscored=[0, 12, 36], repeats=3, random_state=0
    )
    scored = ~np.isnan(y)

    def error(model, rows):
        fitted = clone(model).fit(X[rows], y[rows], groups[rows])
        return disagreement_error(y_test, fitted.predict(X_test), groups_test)

    assert display.scores.shape == (3, 3)
    np.testing.assert_allclose(display.scores[:, 0], error(CO, scored))
    np.testing.assert_allclose(display.scores[:, 2], error(CO, np.full(len(y), True)))
    alone = error(clone(CO).set_params(nu=0.0), scored)
    assert display.supervised_score == pytest.approx(alone)
    expected = np.c_[[0, 12, 36], display.scores.mean(axis=0)]
    np.testing.assert_allclose(display.line_.get_xydata(), expected)
    assert display.supervised_line_.get_ydata()[0] == display.supervised_score
    assert display.band_ is not None


def test_unscored_items_come_in_whole_groups_and_nested(partly):
    X, y = partly[:2]
    seen = []

    class Spy(CoRankRLS):
        def fit(self, X, y, groups=None):
            seen.append((X[:, 0].copy(), np.isnan(y["score"]), y["group"].copy()))
            return super().fit(X, y, groups)

    UnscoredCurveDisplay.from_estimator(
        Spy(views=VIEWS), *partly, n_unscored=[12, 24], repeats=2, random_state=0
    )
    for rows, is_unscored, labels in seen[:4]:
        assert set(X[~np.isnan(y), 0]) <= set(rows)
        sizes = np.unique(labels[is_unscored], return_counts=True)[1]
        assert (sizes == 6).all()  # six documents in each query
    small, large = seen[0][0], seen[1][0]
    assert set(small) < set(large)
    assert set(seen[0][0]) != set(seen[2][0])  # another order in the second repeat


def test_unscored_curve_takes_searches_pipelines_and_pursuits(partly):
    models = [
        CoRankRLSCV(views=VIEWS),
        make_pipeline(StandardScaler(), CO),
        RankingPursuit(3, views=VIEWS, kernel="linear"),
    ]
    for model in models:
        display = UnscoredCurveDisplay.from_estimator(
            model, *partly, n_unscored=[36], repeats=1, random_state=0, name="co"
        )
        assert display.band_ is None
        assert display.line_.get_label() == "co"
    ranked = UnscoredCurveDisplay.from_estimator(
        CO, *partly, n_unscored=[36], repeats=1, supervised=RankRLS(0.1)
    )
    scored = ~np.isnan(partly[1])
    alone = RankRLS(0.1).fit(*(part[scored] for part in partly[:3]))
    expected = disagreement_error(partly[4], alone.predict(partly[3]), partly[5])
    assert ranked.supervised_score == pytest.approx(expected)


def test_unscored_curve_takes_data_frames(partly):
    X, y, groups, X_test, y_test, groups_test = partly
    options = {"n_unscored": [0, 24], "repeats": 2, "random_state": 0}
    plain = UnscoredCurveDisplay.from_estimator(CO, *partly, **options)
    framed = UnscoredCurveDisplay.from_estimator(
        clone(CO).set_params(views=[View(["a", "b"]), View(["c", "d"])]),
        pd.DataFrame(X, columns=list("abcd")),
        pd.Series(y),
        pd.Series(groups),
        pd.DataFrame(X_test, columns=list("abcd")),
        y_test,
        groups_test,
        **options,
    )
    np.testing.assert_allclose(framed.scores, plain.scores)


def test_unscored_curve_of_one_list(partly):
    X, y, _, X_test, y_test, _ = partly
    display = UnscoredCurveDisplay.from_estimator(
        CO, X, y, None, X_test, y_test, repeats=2, random_state=0
    )
    assert display.n_unscored.tolist() == [0, 7, 14, 21, 28, 36]


def test_unscored_curve_says_what_is_wrong(partly):
    X, y, groups, *test = partly
    make = UnscoredCurveDisplay.from_estimator
    with pytest.raises(ValueError, match="0 unscored items"):
        make(CO, X, np.nan_to_num(y), groups, *test)
    with pytest.raises(ValueError, match="from 0 to 37, but there are 36"):
        make(CO, *partly, n_unscored=[0, 37])
    with pytest.raises(ValueError, match="a list of whole numbers"):
        make(CO, *partly, n_unscored=[0.5])
    with pytest.raises(ValueError, match="repeats=0"):
        make(CO, *partly, repeats=0)
    with pytest.raises(ValueError, match="has no parameter nu"):
        make(Ridge(), X, y, groups, *test, n_unscored=[0], repeats=1)


# Preference graphs


def test_graph_of_scores_has_an_arrow_for_every_pair():
    y = np.array([2.0, 0.0, 1.0, 1.0])
    display = PreferenceGraphDisplay.from_graph(ScoreGraph(y))
    edges = display.edges
    drawn = {
        (int(i), int(j)): m
        for i, j, m in zip(edges.winner, edges.loser, edges.magnitude, strict=True)
    }
    assert drawn == {(0, 1): 2, (0, 2): 1, (0, 3): 1, (2, 1): 1, (3, 1): 1, (2, 3): 0}
    assert edges.outcome.tolist().count("tie") == 1
    assert edges.outcome.tolist().count("agrees") == 5
    assert len(display.arrows_) == 6
    np.testing.assert_array_equal(display.nodes_.get_offsets(), display.positions_)
    np.testing.assert_array_equal(display.positions_[:, 1], y)
    assert [text.get_text() for text in display.texts_] == ["0", "1", "2", "3"]


def test_graph_arrows_point_from_winner_to_loser_and_ties_have_no_head():
    display = PreferenceGraphDisplay.from_graph(PairGraph([0, 2], [1, 1], magnitude=[1, 0]))
    for k, arrow in enumerate(display.arrows_):
        start, end = display.edges.winner[k], display.edges.loser[k]
        np.testing.assert_array_equal(arrow._posA_posB[0], display.positions_[start])
        np.testing.assert_array_equal(arrow._posA_posB[1], display.positions_[end])
    styles = [type(arrow.get_arrowstyle()).__name__ for arrow in display.arrows_]
    assert display.edges.outcome.tolist() == ["agrees", "tie"]
    assert styles == ["CurveFilledB", "Curve"]


def test_graph_colors_say_what_the_scores_contradict():
    y, predicted = np.array([3.0, 2.0, 1.0]), np.array([0.0, 1.0, 0.0])
    display = PreferenceGraphDisplay.from_graph(ScoreGraph(y), predicted)
    outcome = dict(zip(zip(*display.edges[:2], strict=True), display.edges.outcome, strict=True))
    assert outcome == {(0, 1): "disagrees", (0, 2): "equal scores", (1, 2): "agrees"}
    colors = {tuple(arrow.get_edgecolor()[:3]) for arrow in display.arrows_}
    assert len(colors) == 3
    legend = [text.get_text() for text in display.ax_.get_legend().get_texts()]
    assert legend == ["agrees: 1", "disagrees: 1", "equal scores: 1"]


def test_ratings_of_a_circle_are_equal_not_nearly_so():
    display = PreferenceGraphDisplay.from_graph(PairGraph([0, 1, 2], [1, 2, 0], [3.0, 3.0, 3.0]))
    assert set(display.edges.outcome) == {"equal scores"}


def test_long_names_of_items_stay_off_the_axis():
    labels = [f"Cleo the Great {k}" for k in range(6)]
    graph = PairGraph([0, 1, 2, 3, 4], [1, 2, 3, 4, 5])
    display = PreferenceGraphDisplay.from_graph(graph, labels=labels)
    display.figure_.canvas.draw()
    axes = display.ax_.get_window_extent()
    for text in display.texts_:
        assert text.get_window_extent().x0 > axes.x0
        assert text.get_window_extent().x1 < axes.x1


def test_names_of_many_curves_stand_beside_them():
    curves = [Curve(str(k), np.arange(1.0, 4), np.ones(3), np.zeros(3)) for k in range(5)]
    for some, is_beside in ((curves[:3], False), (curves, True)):
        display = StagedErrorDisplay(curves=some, metric="tau").plot()
        display.figure_.canvas.draw()
        legend = display.ax_.get_legend().get_window_extent()
        assert (legend.x0 >= display.ax_.get_window_extent().x1) == is_beside


def test_the_line_of_a_search_says_what_it_is_a_mean_of(data):
    X, y, groups = data

    def label(*given):
        return AlphaPathDisplay.from_estimator(RankRLSCV().fit(*given)).curves[0].label

    assert label(X, y, groups) == "mean over groups"
    assert label(X[:12], y[:12]) == "all pairs"


def test_graph_joins_repeated_edges():
    graph = PairGraph(
        [0, 0, 1, 1, 0], [1, 1, 0, 0, 1], magnitude=[1, 4, 2, 0, 0], weight=[1, 2, 1, 1, 2]
    )
    edges = PreferenceGraphDisplay.from_graph(graph).edges
    found = sorted(zip(edges.winner, edges.loser, edges.magnitude, edges.weight, strict=True))
    assert found == [(0, 1, 0.0, 3.0), (0, 1, 3.0, 3.0), (1, 0, 2.0, 1.0)]


@given(st.lists(st.tuples(st.integers(0, 5), st.integers(0, 5), st.floats(0, 5)), min_size=1))
def test_ratings_of_a_pair_graph_are_least_squares(rows):
    from rankwise.plot.preference_graph import _ratings

    rows = [row for row in rows if row[0] != row[1]] or [(0, 1, 1.0)]
    winner, loser, magnitude = map(np.array, zip(*rows, strict=True))
    graph = PairGraph(winner, loser, magnitude, n_items=6)
    incidence = np.zeros((len(rows), 6))
    incidence[np.arange(len(rows)), winner] = 1
    incidence[np.arange(len(rows)), loser] = -1
    expected = np.linalg.lstsq(incidence, magnitude, rcond=None)[0]
    np.testing.assert_allclose(_ratings(graph), expected, atol=1e-8)


@pytest.mark.parametrize("layout", ["layered", "circular"])
@given(st.lists(st.integers(0, 4), min_size=1, max_size=12))
def test_no_two_items_share_a_place(layout, scores):
    from rankwise.plot.preference_graph import _circle, _layers

    place = (_layers if layout == "layered" else _circle)(np.array(scores, dtype=float))
    distance = np.abs(place[:, None] - place[None]).sum(axis=2)
    assert (distance[~np.eye(len(place), dtype=bool)] > 0.05).all()


def test_circle_starts_at_the_best_item_and_goes_clockwise():
    display = PreferenceGraphDisplay.from_graph(
        ScoreGraph([1.0, 4.0, 2.0, 3.0]), layout="circular", name="four"
    )
    expected = {1: (0, 1), 3: (1, 0), 2: (0, -1), 0: (-1, 0)}
    for item, place in expected.items():
        assert display.positions_[item] == pytest.approx(place, abs=1e-12)
    assert display.ax_.get_title() == "four"


def test_graph_of_one_group_of_many(data):
    _, y, groups = data
    graph = ScoreGraph(y, groups)
    with pytest.raises(ValueError, match=r"12 groups; take some of them: graph.subset\(rows\)"):
        PreferenceGraphDisplay.from_graph(graph)
    display = PreferenceGraphDisplay.from_graph(graph.subset(np.flatnonzero(groups == 3)))
    assert len(display.scores) == 6


def test_graph_says_what_is_wrong():
    make = PreferenceGraphDisplay.from_graph
    with pytest.raises(ValueError, match="51 items, more than 50"):
        make(ScoreGraph(np.arange(51)))
    with pytest.raises(TypeError, match="graph is a list"):
        make([1, 2])
    with pytest.raises(ValueError, match="2 outputs"):
        make(ScoreGraph(np.eye(2)))
    with pytest.raises(ValueError, match="one finite score for each of the 2 items"):
        make(ScoreGraph([1, 2]), [1.0])
    with pytest.raises(ValueError, match="one finite score"):
        make(ScoreGraph([1, 2]), [1.0, np.nan])
    with pytest.raises(ValueError, match="3 labels for 2 items"):
        make(ScoreGraph([1, 2]), labels="abc")
    with pytest.raises(ValueError, match="layout='star' is unknown"):
        make(ScoreGraph([1, 2]), layout="star")


def test_graph_without_edges_is_drawn():
    display = PreferenceGraphDisplay.from_graph(PairGraph([], [], n_items=3))
    assert display.arrows_ == []
    assert len(display.texts_) == 3


# matplotlib


def test_importing_the_displays_does_not_import_matplotlib():
    code = "import sys, rankwise.plot; print('matplotlib' in sys.modules)"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.split() == ["False"]


def test_missing_matplotlib_is_said_with_its_remedy(monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib.pyplot", None)
    display = GroupComparisonDisplay(values_a=[0.5], values_b=[0.4], metric="map")
    with pytest.raises(ImportError, match=r"needs matplotlib.*pip install matplotlib"):
        display.plot()
