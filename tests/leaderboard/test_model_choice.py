"""The default model of boards, Elo points, and circles against chance."""

from __future__ import annotations

import math

import numpy as np
import pytest

from rankwise.datasets import PairData
from rankwise.leaderboard import rate, rate_groups
from rankwise.leaderboard.inference.intransitivity import LEAST_CIRCLES, measure_intransitivity
from tests.oracle_boards import by_logistic_regression


def drawn_votes(n_items, n_votes, seed, *, spread=1.0, tie_share=0.0):
    """Strengths in log odds, and votes drawn from Bradley–Terry between random items."""
    rng = np.random.default_rng(seed)
    strength = spread * rng.normal(size=n_items)
    first = rng.integers(n_items, size=n_votes)
    second = (first + rng.integers(1, n_items, size=n_votes)) % n_items
    chance = 1 / (1 + np.exp(strength[second] - strength[first]))
    outcome = np.where(rng.random(n_votes) < chance, 1.0, -1.0)
    outcome[rng.random(n_votes) < tie_share] = 0.0
    data = PairData(first, second, outcome, np.ones(n_votes), np.arange(n_items))
    return strength, data


# -- the default ----------------------------------------------------------------------------------


def test_verdicts_are_rated_in_the_log_odds_of_a_logistic_regression():
    _, data = drawn_votes(5, 400, 0, tie_share=0.2)
    board = rate(data, alpha=0.01, intervals=False)
    no_covariates = np.empty((400, 0))
    expected, _ = by_logistic_regression(
        data.first, data.second, data.outcome, data.weight, no_covariates, 5, 0.01
    )
    assert (board.model, board.scale.name) == ("bradley-terry", "logit")
    np.testing.assert_allclose(board.ratings, expected - expected.mean(), atol=1e-4)


def test_margins_and_scores_are_rated_by_least_squares():
    games = {"a": [1, 2, 3], "b": [2, 3, 1], "points_a": [3, 2, 0], "points_b": [1, 2, 4]}
    columns = {"sides": ("a", "b"), "scores": ("points_a", "points_b")}
    assert rate(games, margin=True, **columns).model == "least-squares"
    assert rate(games, **columns).model == "bradley-terry"


def test_groups_share_the_model_that_all_outcomes_need():
    games = {
        "winner": ["a", "b", "a", "b"],
        "loser": ["b", "a", "b", "a"],
        "magnitude": [1, 1, 3, 2],
        "group": ["plain", "plain", "high", "high"],
    }
    boards = rate_groups(games, winner="winner", loser="loser", intervals=False)
    assert {board.model for board in boards.values()} == {"least-squares"}


def test_elo_points_of_votes_span_the_true_range():
    """Least squares of the same votes, scaled, had 482 points where the truth is 750."""
    strength, data = drawn_votes(40, 20_000, 3)
    board = rate(data, scale="elo")
    points = 400 / math.log(10) * (strength - strength.mean()) + 1000
    assert np.ptp(board.ratings) == pytest.approx(np.ptp(points), rel=0.06)
    low, high = np.array([[board[k].low, board[k].high] for k in range(40)]).T
    assert np.mean((low <= points) & (points <= high)) >= 0.85
    np.testing.assert_allclose(
        board.ratings - 1000, 400 / math.log(10) * rate(data, intervals=False).ratings
    )


@pytest.mark.parametrize("scale", ["elo", "logit"])
def test_least_squares_of_verdicts_has_no_log_odds(scale):
    _, data = drawn_votes(4, 50, 0)
    with pytest.raises(ValueError, match="model='least-squares'"):
        rate(data, model="least-squares", scale=scale)


# -- circles --------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize(
    ("n_votes", "spread", "tie_share"),
    [
        (1000, 1.0, 0.0),
        (6000, 1.0, 0.0),
        (20_000, 1.0, 0.0),
        (20_000, 1.0, 0.3),
        (120, 1.0, 0.0),
        (3000, 2.0, 0.0),
    ],
)
def test_votes_without_circles_have_the_circles_of_chance(n_votes, spread, tie_share):
    """By mean margins the ratio was 1.2, 2.1 and 5.2 at 1,000, 6,000 and 20,000 votes."""
    ratios = []
    n_inside = 0
    for seed in range(40):
        _, data = drawn_votes(12, n_votes, seed, spread=spread, tie_share=tie_share)
        circles = rate(data, intervals=False).circles
        ratios.append(circles.cycle_ratio)
        n_inside += circles.chance_low <= circles.cycle_ratio <= circles.chance_high
    assert np.mean(ratios) == pytest.approx(1, abs=0.15)
    assert n_inside >= 34  # of 40; fewer have a probability of 0.2% at 95%


def test_circles_of_three_items_are_found_above_chance():
    _, data = drawn_votes(12, 3000, 0, spread=0.3)
    turn = (data.first - data.second) % 3
    rng = np.random.default_rng(1)
    is_bent = rng.random(3000) < 0.3
    outcome = np.where(
        is_bent & (turn == 1), 1.0, np.where(is_bent & (turn == 2), -1.0, data.outcome)
    )
    cyclic = PairData(data.first, data.second, outcome, data.weight, data.items)
    circles = rate(cyclic, intervals=False).circles
    assert circles.cycle_ratio > 2 * circles.chance_high
    three = np.repeat([0, 1, 2], 50)
    rock = PairData(
        three, (three + 1) % 3, np.tile([1.0, 1, 1, 1, -1], 30), np.ones(150), np.arange(3)
    )
    circles = rate(rock, intervals=False).circles
    assert circles.cycle_ratio > circles.chance_high


def test_the_ratio_is_the_lack_of_fit_of_the_model_written_out():
    """Pearson residuals of every comparison; the minimum over ratings by a dense least squares."""
    _, data = drawn_votes(4, 200, 5)
    board = rate(data, intervals=False, alpha=1e-9)
    pairs = {}
    for i, j, outcome in zip(data.first, data.second, data.outcome, strict=True):
        sign = 1 if i < j else -1
        pairs.setdefault((min(i, j), max(i, j)), []).append(sign * outcome)
    assert len(pairs) - 3 < LEAST_CIRCLES  # the curve is not bent
    lack = within = 0.0
    for (i, j), outcomes in pairs.items():
        expected = np.tanh((board.ratings[i] - board.ratings[j]) / 2)
        variance = 1 - expected**2
        n = len(outcomes)
        lack += n * (np.mean(outcomes) - expected) ** 2 / variance
        within += np.sum((outcomes - np.mean(outcomes)) ** 2) / variance
    ratio = lack / (len(pairs) - 3) / (within / (200 - len(pairs)))
    assert board.circles.cycle_ratio == pytest.approx(ratio, rel=1e-5)


def test_rankings_and_boards_in_time_have_no_ratio():
    lists = [["a", "b", "c"], ["b", "a", "c"], ["c", "a", "b"], ["a", "c", "b"]]
    assert rate(lists).circles.cycle_ratio is None
    _, data = drawn_votes(5, 300, 0)
    board = rate(data, intervals=False)
    assert measure_intransitivity(board.fitted, is_testable=True).cycle_ratio is not None
    assert measure_intransitivity(board.fitted, is_testable=False).cycle_ratio is None


# -- reading comparisons --------------------------------------------------------------------------


def test_results_of_one_and_minus_one_are_sides_also_of_items_called_by_numbers():
    numbers = {"h": [1, 5, 5], "w": [5, 1, 1], "o": [1, 1, -1]}
    names = {"h": ["A", "B", "B"], "w": ["B", "A", "A"], "o": [1, 1, -1]}
    columns = {"sides": ("h", "w"), "outcome": "o"}
    by_number, by_name = (rate(games, **columns) for games in (numbers, names))
    assert (by_number[1].wins, by_number[1].losses) == (2, 1)
    assert (by_name["A"].wins, by_name["A"].losses) == (2, 1)


def test_a_column_of_winners_called_by_numbers_is_read_as_items():
    games = {"h": [1, 5, 7], "w": [5, 7, 1], "o": [5, 7, 1]}
    board = rate(games, sides=("h", "w"), outcome="o")
    assert [board[item].wins for item in (1, 5, 7)] == [1, 1, 1]
    assert board.comparisons.outcome.tolist() == [-1, -1, -1]


def test_a_column_as_margin_is_refused_with_the_argument_that_takes_it():
    games = {"winner": ["a", "b"], "loser": ["b", "a"], "points": [3, 1]}
    with pytest.raises(ValueError, match="magnitude='points'"):
        rate(games, winner="winner", loser="loser", margin="points")
