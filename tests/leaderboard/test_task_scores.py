"""The additive model of scores and its jackknife: refits with dummies, and the paired t-test."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from rankwise.leaderboard import rate_scores
from rankwise.leaderboard.models.task_scores import (
    AdditiveModel,
    TaskDesign,
    TaskJackknife,
    unit_kinds,
)
from tests.oracle_scores import ScoreOracle


def random_table(seed):
    """Scores with gaps; every model has at least three tasks, every task two models."""
    rng = np.random.default_rng(seed)
    n_models = int(rng.integers(3, 9))
    n_tasks = int(rng.integers(5, 13))
    scores = rng.normal(size=(n_models, n_tasks)) + 3 * rng.normal(size=n_tasks)
    if seed % 4:
        gaps = rng.random(scores.shape) < 0.35
        gaps[:, :2] = False
        for row in gaps:
            row[rng.choice(n_tasks, 3, replace=False)] = False
        for column in gaps.T:
            column[rng.choice(n_models, 2, replace=False)] = False
        scores[gaps] = np.nan
    weights = rng.uniform(0.2, 3, n_tasks) if seed % 3 else np.ones(n_tasks)
    units = np.arange(n_tasks)
    if seed % 5 == 0:
        units = np.r_[np.arange(3), rng.integers(0, 3, n_tasks - 3)]
    return scores, weights, units


def board_of(scores, weights, units, **options):
    tasks = [f"t{k:02}" for k in range(scores.shape[1])]
    frame = pd.DataFrame(scores, columns=tasks)
    frame["model"] = [f"m{k}" for k in range(len(scores))]
    return rate_scores(
        frame,
        item="model",
        score=tasks,
        task_weight=dict(zip(tasks, weights, strict=True)),
        family=dict(zip(tasks, units.tolist(), strict=True)),
        **options,
    )


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("seed", range(100))
def test_ratings_covariance_and_freedom_are_those_of_refits(seed):
    scores, weights, units = random_table(seed)
    board = board_of(scores, weights, units, min_tasks=0)
    oracle = ScoreOracle(scores, weights / weights.mean(), units)
    n = len(scores)
    np.testing.assert_allclose(board.ratings, oracle.ratings, atol=1e-9)
    connected = np.flatnonzero(board.score_errors.jackknife.remains_connected)
    assert len(connected) >= 2
    pairs = np.ix_(connected, connected)
    variance = board.score_errors.by_tasks.variance[:n, :n]
    np.testing.assert_allclose(variance[pairs], oracle.variances[pairs], atol=1e-9, rtol=1e-9)
    effective = board.score_errors.left_out.effective_units[:n, :n]
    off_diagonal = ~np.eye(len(connected), dtype=bool)
    np.testing.assert_allclose(
        effective[pairs][off_diagonal], oracle.effective[pairs][off_diagonal], rtol=1e-9
    )


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("n_tasks", [2, 5, 19, 20, 41])
@pytest.mark.parametrize("unit", [1e-12, 1.0, 1e12])
def test_complete_table_is_students_t_of_each_pair(n_tasks, unit):
    rng = np.random.default_rng(n_tasks)
    scores = unit * (rng.normal(size=(5, n_tasks)) + rng.normal(size=(5, 1)))
    board = rate_scores(
        pd.DataFrame(scores, index=list("abcde"), columns=[f"t{k}" for k in range(n_tasks)])
    )
    np.testing.assert_allclose(board.ratings, scores.mean(axis=1), rtol=1e-12)
    for i in range(5):
        for j in range(5):
            if i == j:
                continue
            difference = board.difference("abcde"[i], "abcde"[j])
            test = stats.ttest_rel(scores[i], scores[j])
            interval = test.confidence_interval(0.95)
            np.testing.assert_allclose(difference.p_value, test.pvalue, rtol=1e-12)
            np.testing.assert_allclose(
                [difference.low, difference.high], [*interval], rtol=1e-11, atol=1e-12 * unit
            )
            np.testing.assert_allclose(difference.freedom, n_tasks - 1, rtol=1e-12)


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("seed", [1, 2, 7, 11])
def test_interval_excludes_zero_exactly_if_p_is_small(seed):
    scores, weights, units = random_table(seed)
    board = board_of(scores, weights, units, min_tasks=0, confidence=0.8)
    for a in board.items:
        for b in board.items:
            difference = board.difference(a, b)
            if a == b or difference.p_value is None:
                continue
            excludes = difference.low > 0 or difference.high < 0
            assert excludes == (difference.p_value <= 0.2 + 1e-12)


def test_model_that_skips_hard_tasks_is_not_rated_too_high():
    easy = np.r_[np.full(6, 0.9), np.full(6, 0.3)]
    scores = easy + np.array([[0.05], [0.02], [0.0], [-0.05]])
    scores = scores + 0.01 * np.random.default_rng(0).normal(size=scores.shape)
    scores[3, 6:] = np.nan
    board = board_of(scores, np.ones(12), np.arange(12))
    assert board.rows[-1].item == "m3"
    assert np.nanmean(scores[3]) > scores[0].mean()
    np.testing.assert_allclose(board["m3"].rating, 0.55, atol=0.02)


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_model_with_one_unit_has_no_interval_and_no_rank():
    scores = np.random.default_rng(0).normal(size=(4, 6))
    scores[0, 1:] = np.nan
    board = board_of(scores, np.ones(6), np.arange(6), min_tasks=0)
    row = board["m0"]
    assert (row.rank, row.low, row.tier) == (None, None, None)
    assert board.difference("m0", "m1").low is None
    complete = board_of(scores[1:], np.ones(6), np.arange(6))
    for name, other in [("m1", "m0"), ("m2", "m1"), ("m3", "m2")]:
        assert board[name].rank == complete[other].rank


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_offset_and_float32_change_nothing():
    rng = np.random.default_rng(3)
    scores = rng.normal(size=(5, 8)).astype(np.float32)
    plain = board_of(scores.astype(np.float64), np.ones(8), np.arange(8))
    single = board_of(scores, np.ones(8), np.arange(8))
    shifted = board_of(scores.astype(np.float64) + 1e6, np.ones(8), np.arange(8))
    np.testing.assert_allclose(plain.ratings, single.ratings, rtol=1e-12)
    np.testing.assert_allclose(plain.ratings + 1e6, shifted.ratings, rtol=1e-12)
    for name in ("rank", "best_rank", "worst_rank", "best_of_all", "worst_of_all", "tier"):
        np.testing.assert_array_equal(plain.columns[name], shifted.columns[name])


def test_fit_of_several_parts_without_common_tasks():
    scores = np.full((5, 6), np.nan)
    rng = np.random.default_rng(0)
    scores[:3, :4] = rng.normal(size=(3, 4))
    scores[3:, 4:] = rng.normal(size=(2, 2))
    design = TaskDesign(~np.isnan(scores), np.ones(6), np.arange(6))
    model = AdditiveModel(design, scores)
    np.testing.assert_array_equal(model.components, [0, 0, 0, 1, 1])
    np.testing.assert_allclose(model.ratings[:3], scores[:3, :4].mean(axis=1))
    np.testing.assert_allclose(model.ratings[3:], scores[3:, 4:].mean(axis=1))
    assert np.isnan(model.fitted_scores[0, 5])
    rows, tasks = np.nonzero(design.is_observed)
    dummies = np.concatenate([np.eye(5)[rows], np.eye(6)[tasks]], axis=1)
    observed = scores[rows, tasks]
    coefficients, _, rank, _ = np.linalg.lstsq(dummies, observed, rcond=None)
    squares = ((observed - dummies @ coefficients) ** 2).sum()
    assert model.residual_variance == pytest.approx(squares / (len(observed) - rank))


def test_models_that_share_one_task_are_not_connected_without_it():
    scores = np.full((5, 5), np.nan)
    scores[:3, :4] = np.random.default_rng(0).normal(size=(3, 4))
    scores[3:, 4] = [0.1, 0.2]
    design = TaskDesign(~np.isnan(scores), np.ones(5), np.arange(5))
    jackknife = TaskJackknife(AdditiveModel(design, scores), unit_kinds(design))
    assert jackknife.remains_connected.tolist() == [True, True, True, False, False]
