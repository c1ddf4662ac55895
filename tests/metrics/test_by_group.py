"""Metrics of many candidates at once: equal to one ranking for each candidate."""

import weakref

import numpy as np
import pytest

from rankwise.groups import encode_groups
from rankwise.metrics import by_group, get_metric, make_metric, metric_names
from rankwise.metrics.by_group import GroupedRelevance, metric_by_group
from rankwise.metrics.ranking import GroupedTargets, Ranking

NEEDS_CUT_OFF = {"p": "p@3", "recall": "recall@3", "success": "success@3", "judged": "judged@3"}


def one_at_a_time(metric, Y, groups, weight, held_out):
    values = np.empty((groups.n_groups, held_out.shape[2], Y.shape[1]))
    for j in range(Y.shape[1]):
        targets = GroupedTargets(np.ascontiguousarray(Y[:, j]), groups, weight)
        for k in range(held_out.shape[2]):
            ranking = Ranking(targets, np.ascontiguousarray(held_out[:, j, k]))
            values[:, k, j] = metric.by_group(ranking).values
    return values


def problem(n_items, n_groups, n_outputs=2, n_candidates=7):
    rng = np.random.default_rng(0)
    groups = encode_groups(rng.integers(0, n_groups, n_items), n_items)
    Y = rng.integers(0, 2, (n_items, n_outputs)).astype(float)
    held_out = rng.standard_normal((n_items, n_outputs, n_candidates)).round(1)
    return Y, groups, held_out, rng.integers(0, 3, n_items).astype(float)


@pytest.mark.parametrize("name", metric_names())
@pytest.mark.parametrize("n_groups", [1, 6])
def test_candidates_are_stacked_without_a_difference(name, n_groups):
    Y, groups, held_out, weight = problem(60, n_groups)
    metric = get_metric(NEEDS_CUT_OFF.get(name, name))
    for weights in (None, weight) if metric.accepts_weights else (None,):
        values = metric_by_group(metric, Y, groups, weights, held_out)
        expected = one_at_a_time(metric, Y, groups, weights, held_out)
        np.testing.assert_allclose(values, expected, rtol=0, atol=1e-14)


def test_a_metric_of_a_user_is_stacked_without_a_difference():
    Y, groups, held_out, _ = problem(60, 5)
    metric = make_metric(lambda y, scores: float(y[np.argmax(scores)]))
    values = metric_by_group(metric, Y, groups, None, held_out)
    np.testing.assert_array_equal(values, one_at_a_time(metric, Y, groups, None, held_out))


def test_the_last_block_of_candidates_is_shorter(monkeypatch):
    monkeypatch.setattr("rankwise.metrics.by_group.STACKED_ROWS", 120)
    Y, groups, held_out, _ = problem(40, 4)
    metric = get_metric("ndcg@5")
    values = metric_by_group(metric, Y, groups, None, held_out)
    expected = one_at_a_time(metric, Y, groups, None, held_out)
    np.testing.assert_allclose(values, expected, rtol=0, atol=1e-14)


def test_relevance_is_reused_for_other_metrics_and_numbers_of_candidates():
    Y, groups, held_out, weights = problem(60, 6)
    relevance = GroupedRelevance(Y, groups, weights)
    for name in ("ndcg", "map", "ndcg"):
        metric = get_metric(name)
        for n_candidates in (1, 5, 7):
            candidates = held_out[:, :, :n_candidates]
            values = relevance.evaluate(metric, candidates)
            expected = one_at_a_time(metric, Y, groups, weights, candidates)
            np.testing.assert_array_equal(values, expected)


def test_what_follows_from_relevance_is_kept_for_one_output_at_a_time(monkeypatch):
    """Thousands of permutations of y are outputs, too, and each would keep its order and levels."""
    n_alive = []
    kept = weakref.WeakSet()

    class CountedTargets(GroupedTargets):
        def __init__(self, *arguments):
            super().__init__(*arguments)
            kept.add(self)
            n_alive.append(len(kept))

    monkeypatch.setattr(by_group, "GroupedTargets", CountedTargets)
    rng = np.random.default_rng(0)
    Y = rng.integers(0, 3, (30, 8)).astype(float)
    groups = encode_groups(np.repeat(np.arange(6), 5), 30)
    metric_by_group(get_metric("disagreement"), Y, groups, None, rng.random((30, 8, 3)))
    assert len(n_alive) == 8
    assert max(n_alive) <= 2  # that of the previous output is replaced
