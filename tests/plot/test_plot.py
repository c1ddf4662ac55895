"""Displays hold the right numbers, and draw them."""

from __future__ import annotations

import subprocess
import sys

import matplotlib
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.exceptions import NotFittedError
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from rankwise import CoRankRLSCV, PairGraph, RankingPursuitCV, RankRLS, RankRLSCV, RankSVMCV, View
from rankwise.datasets import make_ranking
from rankwise.metrics import get_metric, ndcg
from rankwise.model_selection import compare
from rankwise.plot import Curve, GroupComparisonDisplay, SearchCurveDisplay
from rankwise.plot.search_curve import _make_curve

matplotlib.use("Agg")
import matplotlib.pyplot as plt

ALPHAS = [1.0, 0.01, 100.0]
VIEWS = [View(slice(0, 2)), View(slice(2, None))]


@pytest.fixture(scope="module")
def data():
    return make_ranking(n_queries=12, n_documents=6, n_features=4, noise=0.8, random_state=0)[:3]


def standard_error(values):
    values = np.asarray(values)[~np.isnan(values)]
    return values.std(ddof=1) / np.sqrt(len(values))


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
    curve = _make_curve("", -np.arange(table.shape[1]), table, None)  # sorted the other way round
    for mean, error, column in zip(curve.mean, curve.error, table.T[::-1], strict=True):
        defined = column[~np.isnan(column)]
        assert np.isnan(mean) if not len(defined) else mean == pytest.approx(defined.mean())
        if len(defined) < 2:
            assert np.isnan(error)
        else:
            assert error == pytest.approx(standard_error(defined), abs=1e-9)


# Alpha path


@pytest.mark.parametrize("search", [RankRLSCV(), RankSVMCV(ALPHAS, cv=3, tol=1e-8)], ids=str)
@pytest.mark.filterwarnings("ignore:the best alpha")
def test_the_curve_of_a_search_is_its_cv_results(search, data):
    search.fit(*data)
    display = SearchCurveDisplay.from_estimator(search, name="mine")
    (curve,) = display.curves
    order = np.argsort(search.cv_results_["alphas"][0])
    by_group = search.cv_results_["group_score"][0][:, order]
    np.testing.assert_allclose(curve.mean, search.cv_results_["mean_score"][0][order])
    np.testing.assert_allclose(curve.error, [standard_error(column) for column in by_group.T])
    np.testing.assert_array_equal(display.lines_[0].get_xydata(), np.c_[curve.x, curve.mean])
    edge = display.bands_[0].get_paths()[0].vertices
    assert edge[:, 1].max() == pytest.approx((curve.mean + curve.error).max())
    assert display.ax_.get_title() == "mine"
    assert display.ax_.get_xscale() == "log"


@pytest.mark.filterwarnings("ignore:the best alpha")
def test_the_marks_are_drawn_at_what_was_chosen(data):
    search = RankRLSCV(np.logspace(-6, 6, 13)).fit(*data)
    display = SearchCurveDisplay.from_estimator(search)
    assert display.curves[0].x[0] < search.alpha_ < display.curves[0].x[-1]
    (mark,) = display.marks_
    assert (mark.get_xdata()[0], mark.get_ydata()[0]) == (search.alpha_, search.best_score_)
    assert mark.get_label() == f"chosen: {search.alpha_:.3g}"
    curve = display.curves[0]
    assert curve.x[curve.best] == search.alpha_


@pytest.mark.parametrize("scoring", ["disagreement", "ndcg@5"])
def test_the_curve_of_a_pursuit_runs_over_its_steps(scoring, data):
    search = RankingPursuitCV(5, gamma=[0.01, 0.1], scoring=scoring).fit(*data)
    display = SearchCurveDisplay.from_estimator(search)
    for k, curve in enumerate(display.curves):
        np.testing.assert_array_equal(curve.x, [1, 2, 3, 4, 5])
        np.testing.assert_allclose(curve.mean, search.cv_results_["mean_score"][k])
    (chosen,) = [curve for curve in display.curves if curve.best is not None]
    assert chosen.label == f"gamma = {search.best_params_['gamma']:.3g}"
    (mark,) = display.marks_
    assert (mark.get_xdata()[0], mark.get_ydata()[0]) == (
        search.n_basis_,
        pytest.approx(search.best_score_),
    )
    assert str(display.metric) == scoring
    assert display.ax_.get_xlabel() == "number of basis functions"
    assert display.ax_.get_xscale() == "linear"


@pytest.mark.filterwarnings("ignore:the best gamma .* is at the edge")
def test_search_curve_has_a_line_for_each_kernel(data):
    search = RankRLSCV(kernel="rbf", gamma=[0.01, 0.1, 1.0]).fit(*data)
    display = SearchCurveDisplay.from_estimator(search)
    assert [curve.label for curve in display.curves] == [
        "gamma = 0.01",
        "gamma = 0.1",
        "gamma = 1",
    ]
    (chosen,) = [curve for curve in display.curves if curve.best is not None]
    assert chosen.label == f"gamma = {search.best_params_['gamma']:.3g}"
    assert chosen.x[chosen.best] == search.alpha_
    assert len(display.bands_) == 1  # around the chosen one


def test_search_curve_has_a_line_for_each_nu(data):
    X, y, groups = data
    y = np.where(groups < 5, y, np.nan)
    search = CoRankRLSCV(views=VIEWS).fit(X, y, groups)
    display = SearchCurveDisplay.from_estimator(search)
    assert len(display.lines_) == 7
    for i, curve in enumerate(display.curves):
        np.testing.assert_allclose(curve.mean, search.cv_results_["mean_score"][i])
    (chosen,) = [curve for curve in display.curves if curve.best is not None]
    assert (chosen.label, chosen.x[chosen.best]) == (f"nu = {search.nu_:.3g}", search.alpha_)


def test_search_curve_has_a_line_for_each_output(data):
    X, y, groups = data
    Y = np.c_[y, -y + X[:, 0], X[:, 1]]
    search = RankRLSCV().fit(X, Y, groups)
    display = SearchCurveDisplay.from_estimator(search)
    chosen = [curve.x[curve.best] for curve in display.curves]
    np.testing.assert_array_equal(chosen, np.broadcast_to(search.alpha_, 3))
    mean = np.transpose([curve.mean for curve in display.curves])
    np.testing.assert_allclose(mean, search.cv_results_["mean_score"][0])


def test_search_curve_of_explicit_preferences_in_a_pipeline(data):
    X = data[0]
    graph = PairGraph([0, 1, 2, 4, 5, 6], [1, 2, 3, 5, 6, 7], n_items=len(X))
    search = make_pipeline(StandardScaler(), RankRLSCV(cv=2)).fit(X, graph)
    assert len(SearchCurveDisplay.from_estimator(search).curves[0].x) == 40


def test_search_curve_draws_where_it_is_told(data):
    search = RankRLSCV().fit(*data)
    _, ax = plt.subplots()
    display = SearchCurveDisplay.from_estimator(search, ax=ax, color="k")
    assert display.ax_ is ax
    assert display.lines_[0].get_color() == "k"


def test_search_curve_says_what_it_cannot_draw(data):
    with pytest.raises(TypeError, match="estimator is a RankRLS; expected a fitted search"):
        SearchCurveDisplay.from_estimator(RankRLS().fit(*data))
    with pytest.raises(NotFittedError):
        SearchCurveDisplay.from_estimator(RankRLSCV())


# Two rankers


@pytest.mark.filterwarnings("ignore:fewer than 10 groups differ")
@pytest.mark.parametrize("metric", ["ndcg@10", "disagreement", "map"])
def test_comparison_holds_the_metric_of_each_group(metric, data):
    _, y, groups = data
    rng = np.random.default_rng(0)
    a, b = y + rng.normal(size=(2, len(y)))
    display = GroupComparisonDisplay.from_predictions(y, a, b, groups, metric=metric)
    judge = get_metric(metric)
    values = []
    for group in np.unique(groups):
        rows = groups == group
        pair = [judge(y[rows], scores[rows], undefined="nan") for scores in (a, b)]
        if np.isfinite(pair).all():
            values.append(pair)
    np.testing.assert_allclose(np.c_[display.values_a, display.values_b], values)
    assert display.n_dropped == len(np.unique(groups)) - len(values)
    sign = 1 if judge.greater_is_better else -1
    np.testing.assert_array_equal(
        display.winner, sign * np.sign(np.subtract(*np.transpose(values)))
    )
    assert (display.winner == 1).sum() == display.row.wins
    assert (display.winner == -1).sum() == display.row.losses


@pytest.mark.filterwarnings("ignore:fewer than 10 groups differ")
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


def test_comparison_of_equal_values_and_of_one_group():
    display = GroupComparisonDisplay(values_a=[0.5], values_b=[0.5], metric="map").plot()
    assert display.winner.tolist() == [0]
    assert "equal: 1" in [text.get_text() for text in display.ax_.get_legend().get_texts()]


def test_comparison_says_what_is_wrong(data):
    _, y, groups = data
    with pytest.raises(ValueError, match="needs groups"):
        GroupComparisonDisplay.from_predictions(y, y, y)
    with pytest.raises(ValueError, match="two different names"):
        GroupComparisonDisplay.from_predictions(y, y, y, groups, names=("x", "x"))
    with pytest.raises(ValueError, match="no group"):
        GroupComparisonDisplay.from_predictions(0 * y, y, y, groups, metric="map")


def test_names_of_many_curves_stand_beside_them():
    curves = [Curve(str(k), np.arange(1.0, 4), np.ones(3), np.zeros(3)) for k in range(5)]
    for some, is_beside in ((curves[:3], False), (curves, True)):
        display = SearchCurveDisplay(curves=some, metric="tau").plot()
        display.figure_.canvas.draw()
        legend = display.ax_.get_legend().get_window_extent()
        assert (legend.x0 >= display.ax_.get_window_extent().x1) == is_beside


def test_the_line_of_a_search_says_what_it_is_a_mean_of(data):
    X, y, groups = data

    def label(*given):
        return SearchCurveDisplay.from_estimator(RankRLSCV().fit(*given)).curves[0].label

    assert label(X, y, groups) == "mean over groups"
    assert label(X[:12], y[:12]) == "all pairs"


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
