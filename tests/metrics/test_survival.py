"""Concordance of survival times against double loops and scikit-survival, and the jackknife."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from rankwise import RankRLS, SurvivalGraph
from rankwise.metrics import (
    concordance,
    concordance_difference,
    disagreement_error,
    evaluate,
    kaplan_meier,
    ndcg,
)
from tests import oracle

N = 80


def survival_data(seed, n_items=N, *, ties=True):
    rng = np.random.default_rng(seed)
    time = rng.exponential(size=n_items)
    score = np.log(time) + rng.normal(size=n_items)
    if ties:
        time, score = np.ceil(5 * time), np.round(score)
    return time, rng.random(n_items) < 0.6, score


def structured(time, event):
    y = np.empty(len(time), dtype=[("event", bool), ("time", float)])
    y["event"], y["time"] = event, time
    return y


def slow_concordance(time, event, score, groups=None, weights=None, factor=None):
    """By a double loop; the factor is that of the pairs in which the item has the event."""
    right = total = 0.0
    for winner, loser, _, omega in oracle.survival_edges(time, event, groups, weights):
        weight = omega * (1.0 if factor is None else factor[loser])
        total += weight
        difference = score[winner] - score[loser]
        right += weight * ((difference > 0) + 0.5 * (difference == 0))
    return right / total


@pytest.mark.parametrize("seed", range(20))
def test_every_form_of_the_times_gives_the_share_of_a_double_loop(seed):
    time, event, score = survival_data(seed)
    expected = slow_concordance(time, event, score)
    frame = pd.DataFrame({"days": time, "died": event.astype(int)})
    for y in (
        structured(time, event),
        np.column_stack([time, event]),
        frame,
        SurvivalGraph(time, event),
    ):
        assert concordance(y, score) == pytest.approx(expected, abs=1e-13)
        assert disagreement_error(y, score) == pytest.approx(1 - expected, abs=1e-13)
        assert evaluate(y, score)["concordance"] == pytest.approx(expected, abs=1e-13)


@pytest.mark.parametrize("seed", range(20))
def test_groups_and_weights_equal_a_double_loop(seed):
    time, event, score = survival_data(seed)
    rng = np.random.default_rng(seed)
    groups, weights = rng.integers(0, 4, N), rng.uniform(0.5, 2, N)
    y = structured(time, event)
    values = concordance(y, score, groups, sample_weight=weights, per_group=True)
    for g in range(4):
        rows = groups == g
        expected = slow_concordance(time[rows], event[rows], score[rows], weights=weights[rows])
        assert values[g] == pytest.approx(expected, abs=1e-12)
    assert concordance(y, score, groups, sample_weight=weights) == pytest.approx(values.mean())
    pooled = concordance(y, score, groups, sample_weight=weights, average="pairs")
    assert pooled == pytest.approx(slow_concordance(time, event, score, groups, weights))
    graph = SurvivalGraph(time, event, groups, weights)
    assert concordance(graph, score) == pytest.approx(values.mean())


@pytest.mark.parametrize("ties", [False, True])
@pytest.mark.parametrize("seed", range(10))
def test_harrell_and_uno_equal_scikit_survival(seed, ties):
    metrics = pytest.importorskip("sksurv.metrics")
    time, event, score = survival_data(seed, 120, ties=ties)
    train_time, train_event, _ = survival_data(seed + 100, 150, ties=ties)
    y, train = structured(time, event), structured(train_time, train_event)
    harrell = metrics.concordance_index_censored(event, time, -score)[0]
    assert concordance(y, score) == pytest.approx(harrell, abs=1e-12)
    for tau in (None, np.quantile(time, 0.8), np.quantile(time, 0.4)):
        limit = np.inf if tau is None else tau
        last = train_time.max()
        if (event & (time < limit) & (time >= last)).any():
            continue  # the censoring distribution has no estimate there
        uno = metrics.concordance_index_ipcw(train, y, -score, tau)[0]
        assert concordance(y, score, ipcw=train, tau=tau) == pytest.approx(uno, abs=1e-12)
        own = metrics.concordance_index_ipcw(y, y, -score, np.quantile(time, 0.8))[0]
        by_own = concordance(y, score, ipcw=y, tau=np.quantile(time, 0.8))
        assert by_own == pytest.approx(own, abs=1e-12)


def test_interval_of_one_list_is_the_jackknife_over_items():
    time, event, score = survival_data(0)
    y = structured(time, event)
    (row,) = evaluate(y, score, metrics=["concordance"])
    without = []
    for i in range(N):
        rows = np.arange(N) != i
        if SurvivalGraph(time, event).degrees[i] > 0:
            without.append(slow_concordance(time[rows], event[rows], score[rows]))
    error = np.sqrt((len(without) - 1) * np.var(without))
    assert row.high - row.mean == pytest.approx(1.959963984540054 * error, rel=1e-9)
    assert row.mean - row.low == pytest.approx(1.959963984540054 * error, rel=1e-9)


@pytest.mark.parametrize("grouped", [False, True])
def test_paired_test_is_the_jackknife_of_the_difference(grouped):
    time, event, first = survival_data(1)
    second = np.random.default_rng(0).permutation(first)
    groups = np.arange(N) % 8 if grouped else None
    y = structured(time, event)
    result = concordance_difference(y, first, second, groups)
    assert result.first == pytest.approx(slow_concordance(time, event, first, groups))
    assert result.difference == pytest.approx(result.first - result.second)
    units = groups if grouped else np.arange(N)
    degrees = SurvivalGraph(time, event, groups).degrees
    without = []
    for unit in np.unique(units):
        rows = units != unit
        if degrees[units == unit].any():
            labels = None if groups is None else groups[rows]
            values = [
                slow_concordance(time[rows], event[rows], score[rows], labels)
                for score in (first, second)
            ]
            without.append(values[0] - values[1])
    assert result.n_units == len(without)
    error = np.sqrt((len(without) - 1) * np.var(without))
    assert result.standard_error == pytest.approx(error, rel=1e-9)
    assert result.low < result.difference < result.high
    assert result.pvalue < 0.05
    same = concordance_difference(y, first, first, groups)
    assert (same.difference, same.pvalue) == (0.0, 1.0)


@pytest.mark.slow
def test_intervals_of_the_jackknife_cover_the_concordance():
    rng = np.random.default_rng(0)
    covered = 0
    for _ in range(300):
        time, score = rng.exponential(size=150), rng.normal(size=150)
        y = structured(np.minimum(time, 1.5), time < 1.5)
        (row,) = evaluate(y, score, metrics=["concordance"])
        covered += row.low <= 0.5 <= row.high
    assert 0.91 <= covered / 300 <= 0.98


def test_model_and_metric_agree():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(N, 3))
    graph = SurvivalGraph(np.exp(X[:, 0]), rng.random(N) < 0.7)
    model = RankRLS(0.1).fit(X, graph)
    assert concordance(graph, model.predict(X)) == pytest.approx(model.score(X, graph))


def test_constant_scores_give_one_half():
    time, event, _ = survival_data(0)
    assert concordance(structured(time, event), np.zeros(N)) == 0.5


@pytest.mark.parametrize(
    "y, match",
    [
        (structured([1.0, 2, 3], [False] * 3), "no event"),
        (structured([2.0, 2, 2], [True] * 3), "all times are 2"),
        (structured([-1.0, 2, 3], [True] * 3), "time"),
        (np.array([[1, 1], [2, 3], [3, 0]]), "event"),
        (
            np.zeros(3, dtype=[("entry", float), ("time", float), ("event", bool)]),
            "left truncation",
        ),
    ],
)
def test_impossible_times_are_refused(y, match):
    with pytest.raises(ValueError, match=match):
        concordance(y, [1.0, 2, 3])


def test_impossible_options_are_refused():
    time, event, score = survival_data(0)
    y = structured(time, event)
    with pytest.raises(ValueError, match="survival times"):
        ndcg(y, score)
    with pytest.raises(ValueError, match="survival times"):
        evaluate(y, score, metrics=["concordance", "tau"])
    with pytest.raises(ValueError, match="survival times"):
        concordance([1, 2, 3], [1, 2, 3], tau=2.0)
    with pytest.raises(ValueError, match="80 items"):
        concordance(y, score[:-1])
    with pytest.raises(ValueError, match="omit groups"):
        concordance(SurvivalGraph(time, event), score, np.zeros(N))
    with pytest.raises(ValueError, match="tau"):
        concordance(y, score, ipcw=structured([0.5, 0.7], [True, False]))
    with pytest.raises(ValueError, match="y_true"):
        concordance_difference([1.0, 2.0], [1, 2], [2, 1])


def test_series_in_different_orders_are_refused():
    time = pd.Series([5.0, 8, 12, 3], index=list("abcd"))
    event = pd.Series([1, 0, 1, 1], index=list("dcba"))
    scores = pd.Series([1.0, 2, 3, 4], index=list("dcba"))
    for call in (
        lambda: SurvivalGraph(time, event),
        lambda: kaplan_meier(time, event),
        lambda: concordance(pd.DataFrame({"time": time, "event": event[::-1]}), scores),
    ):
        with pytest.raises(ValueError, match="different orders"):
            call()
