"""Ranks at once with few clusters: Holm's procedure by hand, and how often all ranks are inside."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
from scipy import stats

from experiments.boards.few_clusters import (
    SETTINGS,
    comparisons,
    coverage,
    ranks_by_largest_error,
    ranks_of_board,
)
from rankwise.datasets import PairData
from rankwise.leaderboard import rate
from rankwise.leaderboard.algebra.effective_clusters import effective_clusters
from rankwise.leaderboard.inference.ranks import (
    FEW_UNITS,
    effective_number,
    holm_rejects,
    simultaneous_ranks,
)
from rankwise.uncertainty.possible_ranks import CovarianceRoot, joint_quantile, possible_ranks


def ranks_by_hand(scores, root, freedom, lists, level):
    """Holm's procedure, one pair after the other."""
    p_values = {}
    for i, j in combinations(range(len(scores)), 2):
        if lists[i] != lists[j]:
            continue
        upper, lower = (i, j) if scores[i] > scores[j] else (j, i)
        ratio = (scores[upper] - scores[lower]) / np.linalg.norm(root[upper] - root[lower])
        p_values[upper, lower] = 2 * stats.t.sf(ratio, freedom)
    best = np.ones(len(scores), int)
    worst = np.array([np.sum(lists == number) for number in lists])
    n_left = len(p_values)
    for (upper, lower), p in sorted(p_values.items(), key=lambda item: item[1]):
        if p > level / n_left:
            break
        best[lower] += 1
        worst[upper] -= 1
        n_left -= 1
    return best, worst


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("freedom", [3, 9, 18])
def test_ranks_at_once_of_few_units_are_those_of_holm(seed, freedom):
    rng = np.random.default_rng(seed)
    lists = rng.permutation(np.repeat([3, 1, 2], [7, 4, 1]))
    scores = 3.0 * rng.normal(size=12)
    root = 0.3 / np.sqrt(freedom) * rng.normal(size=(12, freedom + 1))
    best, worst = simultaneous_ranks(scores, CovarianceRoot(root, freedom), lists, 0.9)
    expected_best, expected_worst = ranks_by_hand(scores, root, freedom, lists, 0.1)
    np.testing.assert_array_equal(best, expected_best)
    np.testing.assert_array_equal(worst, expected_worst)
    assert (best > 1).any()


def test_from_twenty_units_on_the_largest_error_decides():
    rng = np.random.default_rng(0)
    scores, root, lists = rng.normal(size=9), 0.2 * rng.normal(size=(9, 9)), np.ones(9, int)
    spread = CovarianceRoot(root, FEW_UNITS - 1)
    quantile = joint_quantile(spread, lists, 0.95)
    found = simultaneous_ranks(scores, spread, lists, 0.95)
    np.testing.assert_array_equal(found, possible_ranks(scores, spread, lists, 0.95, quantile))


def test_items_of_equal_scores_or_without_error_are_ranked():
    lists = np.ones(3, int)
    certain = CovarianceRoot(np.zeros((3, 2)), 4)
    best, worst = simultaneous_ranks(np.array([2.0, 1.0, 1.0]), certain, lists, 0.95)
    assert (best.tolist(), worst.tolist()) == ([1, 2, 2], [1, 3, 3])
    best, worst = simultaneous_ranks(
        np.array([1.0]), CovarianceRoot(np.ones((1, 2)), 4), lists[:1], 0.95
    )
    assert (best.tolist(), worst.tolist()) == ([1], [1])


def test_holm_stops_at_the_first_p_value_that_is_too_large():
    assert holm_rejects(np.array([0.03, 0.04, 0.03]), 0.05).tolist() == [False] * 3
    assert holm_rejects(np.array([0.04, 0.01, 0.03]), 0.05).tolist() == [False, True, False]
    assert holm_rejects(np.array([0.04, 0.01, 0.02]), 0.05).tolist() == [True] * 3


@pytest.mark.slow
@pytest.mark.parametrize("n_clusters", [5, 6])
def test_all_true_ranks_of_equal_items_are_inside_with_few_clusters(n_clusters):
    """79 % of the boards with the largest error, which is not enough for 95 %."""
    n_inside = n_inside_by_largest_error = 0
    for seed in range(60):
        truth, data = comparisons(SETTINGS["near equal"], n_clusters, np.random.default_rng(seed))
        board = rate(data)
        best, worst = ranks_of_board(board)
        n_inside += coverage(truth, best, worst)[0]
        n_inside_by_largest_error += coverage(truth, *ranks_by_largest_error(board))[0]
    assert n_inside >= 57
    assert n_inside_by_largest_error < 54


def votes_of_unequal_judges(seed, n_judges=30, n_items=12, n_votes=600):
    """Votes on equal items by judges with tastes; the first judge has half of the votes."""
    rng = np.random.default_rng(seed)
    share = np.full(n_judges, 0.5 / (n_judges - 1))
    share[0] = 0.5
    judge = rng.choice(n_judges, n_votes, p=share)
    first = rng.integers(n_items, size=n_votes)
    second = (first + rng.integers(1, n_items, n_votes)) % n_items
    taste = 0.7 * rng.normal(size=(n_judges, n_items))
    margin = taste[judge, first] - taste[judge, second]
    outcome = np.where(rng.random(n_votes) < 1 / (1 + np.exp(-margin)), 1.0, -1.0)
    data = PairData(first, second, outcome, np.ones(n_votes), np.arange(n_items))
    return data, judge


@pytest.mark.slow
def test_ranks_at_once_hold_where_one_judge_has_half_of_the_votes():
    n_held = 0
    for seed in range(20):
        data, judge = votes_of_unequal_judges(seed)
        rows = rate(data, clusters=judge, alpha=1e-3).rows
        n_held += all(row.best_of_all == 1 and row.worst_of_all == len(rows) for row in rows)
    assert n_held >= 18


def test_the_effective_number_of_equal_units_is_their_number():
    assert effective_number(np.full(7, 1e200)) == pytest.approx(7)
    assert effective_number(np.array([29.0, *np.ones(29)])) == pytest.approx(58**2 / (29**2 + 29))


def test_effective_clusters_of_a_pair_are_those_that_compared_it():
    rng = np.random.default_rng(0)
    first, second, judges = [], [], []
    for judge in range(8):
        for _ in range(3):  # all judges compare items 0 to 4 equally often
            for i, j in combinations(range(5), 2):
                first.append(i), second.append(j), judges.append(judge)
        if judge < 2:  # two judges know item 5
            for i in range(5):
                first.append(5), second.append(i), judges.append(judge)
    n = len(first)
    data = PairData(
        np.array(first), np.array(second), rng.normal(size=n), np.ones(n), np.arange(6),
        judges=np.array(judges),
    )  # fmt: skip
    board = rate(data, model="least-squares", alpha=1e-12)
    units = effective_clusters(board.fitted.leave_one_out(), board.inputs.clusters)
    np.testing.assert_allclose(units[:5, :5][~np.eye(5, dtype=bool)], 8, rtol=0.05)
    assert (units[5, :5] < 3).all()
    # the definition, one cluster and one difference at a time
    laplacians = np.zeros((8, 6, 6))
    for i, j, judge in zip(first, second, judges, strict=True):
        row = np.zeros(6)
        row[i], row[j] = 1, -1
        laplacians[judge] += np.outer(row, row)
    inverse = np.linalg.pinv(laplacians.sum(axis=0))
    contrast = inverse[5] - inverse[2]
    parts = [np.sum((laplacian @ contrast) ** 2) for laplacian in laplacians]
    np.testing.assert_allclose(units[5, 2], np.sum(parts) ** 2 / np.sum(np.square(parts)))
