"""The report page of survival times: its numbers and its curves."""

from __future__ import annotations

import re

import numpy as np
import pytest

from rankwise import RankRLS, SurvivalGraph
from rankwise.metrics import concordance, concordance_difference, evaluate, kaplan_meier
from rankwise.metrics.survival import SurvivalRanking
from rankwise.pages.report.survival_page import curves_of_thirds, draw_curves, round_ticks
from rankwise.report import report


def patients(n=120, n_groups=1, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 2))
    survival = rng.exponential(np.exp(X[:, 0]))
    end = rng.uniform(0.3, 3, n)
    time = np.minimum(survival, end)
    return X, time, survival <= end, rng.integers(0, n_groups, n)


def test_every_form_of_the_times_gives_the_same_page():
    X, time, event, groups = patients(n_groups=3)
    graph = SurvivalGraph(time, event, groups)
    model = RankRLS(1.0).fit(X, graph)
    structured = np.empty(len(X), dtype=[("event", bool), ("time", float)])
    structured["event"] = event
    structured["time"] = time
    pages = [
        str(report(model, X, graph)),
        str(report(model, X, np.column_stack([time, event]), groups)),
        str(report(model, X, structured, groups)),
        str(report(model.predict(X), X, graph, title="RankRLS report")),
    ]
    assert pages[1:3] == pages[:1] * 2
    mean = concordance(graph, model.predict(X))
    for page in pages:
        assert f'<p class="value">{mean:.3f}</p>' in page
        assert f"<strong>{model.score(X, graph):.1%}</strong>" in page


def test_the_interval_is_that_of_evaluate_and_the_previous_model_that_of_the_jackknife():
    X, time, event, _ = patients()
    y = np.column_stack([time, event])
    score = X[:, 0]
    page = str(report(score, X, y, previous=X[:, 1], confidence=0.9))
    (row,) = evaluate(y, score, confidence=0.9).rows
    assert f"90% interval: {row.low:.3f} to {row.high:.3f}" in page
    result = concordance_difference(y, score, X[:, 1], confidence=0.9)
    assert f"Concordance {result.difference:+.3f} against the previous model" in page


@pytest.mark.parametrize("n_groups", [1, 4])
def test_curves_are_those_of_thirds_inside_each_group(n_groups):
    X, time, event, groups = patients(90, n_groups)
    graph = SurvivalGraph(time, event, groups)
    curves = curves_of_thirds(SurvivalRanking(graph, X[:, 0]))
    assert np.sort(np.concatenate([curve.items for curve in curves])).tolist() == list(range(90))
    for curve in curves:
        times, survival = kaplan_meier(time[curve.items], event[curve.items])
        np.testing.assert_array_equal(curve.times, times)
        np.testing.assert_array_equal(curve.survival, survival)
        assert curve.end == time[curve.items].max()
    for group in range(n_groups):
        highest = -np.inf
        for curve in curves:
            scores = X[curve.items[groups[curve.items] == group], 0]
            assert scores.min() > highest
            highest = scores.max()


def test_the_median_is_the_first_time_that_half_of_the_items_survive():
    graph = SurvivalGraph([1, 2, 3, 4, 5, 6], [1, 1, 1, 1, 0, 0])
    curves = curves_of_thirds(SurvivalRanking(graph, np.arange(6.0)))
    assert [curve.median for curve in curves] == [1.0, 3.0, None]


def test_a_drawn_curve_has_a_step_for_each_event_time():
    X, time, event, _ = patients()
    curves = curves_of_thirds(SurvivalRanking(SurvivalGraph(time, event), X[:, 0]))
    paths = re.findall(r'class="curve third-(\d)" d="([^"]+)"', draw_curves(curves))
    assert [int(number) for number, _ in paths] == [0, 1, 2]
    for curve, (_, path) in zip(curves, paths, strict=True):
        assert path.count("V") == len(np.unique(time[curve.items][event[curve.items]]))


@pytest.mark.parametrize("end", [0.0, 0.013, 1.0, 5.9, 60.0, 99.9, 1234.5])
def test_ticks_are_few_round_numbers_up_to_the_end(end):
    ticks = round_ticks(end)
    assert ticks[0] == 0
    assert ticks[-1] <= end
    assert 1 + (end > 0) <= len(ticks) <= 6
    assert np.allclose(np.diff(ticks), ticks[1] if end else 0)


def test_names_from_users_are_escaped_and_nothing_foreign_runs():
    X, time, event, _ = patients(30)
    page = str(
        report(X[:, 0], X, np.column_stack([time, event]), title="<script>alert(1)</script>")
    )
    assert "<script>alert" not in page
    assert page.count("<script") == 2
