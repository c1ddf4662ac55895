"""Boards of very few comparisons, of extreme numbers, and arguments that are refused."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from rankwise.datasets import PairData
from rankwise.leaderboard import backtest, rate, rate_groups
from rankwise.leaderboard.models.dynamic import FIRST_SCALES
from rankwise.leaderboard.models.rating_terms import PriorScales

N_ITEMS, N_GAMES = 5, 40
RNG = np.random.default_rng(0)
FIRST_ITEM = RNG.integers(N_ITEMS, size=N_GAMES)
SECOND_ITEM = (FIRST_ITEM + RNG.integers(1, N_ITEMS, size=N_GAMES)) % N_ITEMS
VERDICTS = np.where(RNG.random(N_GAMES) < 0.6, 1.0, -1.0)
MARGINS = RNG.normal(size=N_GAMES)
COVARIATE = RNG.normal(size=N_GAMES)


def games(outcome=VERDICTS, weight=1.0, **options):
    weights = np.full(N_GAMES, weight)
    return PairData(FIRST_ITEM, SECOND_ITEM, outcome, weights, np.arange(N_ITEMS), **options)


def frame():
    rounds = np.arange(N_GAMES)
    return pd.DataFrame({"winner": FIRST_ITEM, "loser": SECOND_ITEM, "round": rounds})


# -- few comparisons ----------------------------------------------------------------------------


def test_two_comparisons_over_time_have_the_scales_of_the_start():
    board = rate({"winner": ["A", "B"], "loser": ["B", "C"], "date": [1, 2]}, time="date")
    assert board.scales == FIRST_SCALES._replace(context=0.0)
    assert [row.item for row in board] == ["A", "B", "C"]
    assert np.isfinite(board.ratings).all()


def test_two_comparisons_before_a_date_predict_the_later_ones():
    votes = {"winner": ["A", "B", "A"], "loser": ["B", "C", "C"], "date": [1, 2, 3]}
    result = backtest(votes, 3, time="date")
    assert (result.n_before, result.n_later) == (2, 1)
    assert all(np.isfinite(method.log_loss) for method in result.methods)


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("model", ["least-squares", "bradley-terry"])
def test_a_prior_beside_one_comparison_counts_for_nothing(model):
    board = rate({"winner": ["A"], "loser": ["B"]}, prior={"A": 1, "B": 2}, alpha=0.1, model=model)
    assert (board.prior.votes, board.prior.trust) == (0.0, 0.0)
    assert "nan" not in str(board)


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("alpha", [0.1, None])
@pytest.mark.parametrize("model", ["least-squares", "bradley-terry"])
def test_a_prior_beside_ties_explains_nothing(model, alpha):
    ties = PairData(*np.array([[0, 1, 0], [1, 2, 2]]), np.zeros(3), np.ones(3), np.arange(3))
    board = rate(ties, prior={0: 1, 1: 2, 2: 5}, alpha=alpha, model=model)
    assert (board.prior.votes, board.prior.trust) == (0.0, 0.0)


# -- extreme numbers ----------------------------------------------------------------------------


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("unit", [1e-90, 1e30, 1e50, 1e99])
def test_ranks_and_judges_do_not_depend_on_the_unit_of_the_margins(unit):
    judges = np.arange(N_GAMES) % 4
    for options in ({}, {"judges": judges}):
        usual, scaled = (rate(games(values, **options)) for values in (MARGINS, unit * MARGINS))
        for name in ("best_rank", "worst_rank", "best_of_all", "worst_of_all"):
            np.testing.assert_array_equal(scaled.columns[name], usual.columns[name])
        assert [judge.remark for judge in scaled.judges] == [j.remark for j in usual.judges]
        weights = [judge.weight for judge in usual.judges]
        assert [judge.weight for judge in scaled.judges] == pytest.approx(weights)


@pytest.mark.parametrize("model", ["least-squares", "bradley-terry"])
@pytest.mark.parametrize("weight", [1e-99, 1e99])
def test_ratings_and_errors_do_not_depend_on_the_unit_of_the_weights(model, weight):
    usual, scaled = (rate(games(weight=value), model=model) for value in (1.0, weight))
    np.testing.assert_allclose(scaled.ratings, usual.ratings, rtol=1e-7, atol=1e-9)
    np.testing.assert_allclose(scaled.spread.errors, usual.spread.errors, rtol=1e-5)


@pytest.mark.parametrize("weight", [1e-300, 1e-120, 1e120, 1e290])
def test_weights_whose_squares_overflow_are_refused(weight):
    with pytest.raises(ValueError, match="weights"):
        rate(games(weight=weight))


# -- arguments ----------------------------------------------------------------------------------


def test_covariates_may_be_values_beside_a_frame():
    columns = {"winner": "winner", "loser": "loser"}
    by_values = rate(frame(), covariates={"z": COVARIATE.tolist()}, **columns)
    by_name = rate(frame().assign(z=COVARIATE), covariates=["z"], **columns)
    assert by_values.effects == by_name.effects
    np.testing.assert_array_equal(by_values.ratings, by_name.ratings)
    boards = rate_groups(frame(), [0, 1] * 20, covariates={"z": COVARIATE}, **columns)
    assert [board.effects[0].name for board in boards.values()] == ["z", "z"]
    with pytest.raises(ValueError, match="'z' has shape"):
        rate(frame(), covariates={"z": [1.0, 2.0]}, **columns)


@pytest.mark.parametrize("half_life", [np.inf, np.nan, 0, -1.0, "x", True])
def test_a_half_life_that_is_no_positive_number_is_refused(half_life):
    with pytest.raises(ValueError, match="half_life"):
        rate(frame(), winner="winner", loser="loser", time="round", half_life=half_life)


@pytest.mark.parametrize("scales", [3, (1.0, 1.0, 3.0, 0.0), {"constant": 1.0}])
def test_scales_of_another_type_are_refused(scales):
    with pytest.raises(TypeError, match="scales"):
        rate(frame(), winner="winner", loser="loser", time="round", scales=scales)


@pytest.mark.parametrize(
    "scales", [PriorScales(0.0, 1.0), PriorScales(1.0, -1.0), PriorScales(1.0, 1.0, 0.0)]
)
def test_scales_out_of_range_are_refused(scales):
    with pytest.raises(ValueError, match="scales"):
        rate(frame(), winner="winner", loser="loser", time="round", scales=scales)


@pytest.mark.parametrize("confidence", ["a", None, 0, 1, 95, np.nan, True])
def test_a_confidence_that_is_no_probability_is_refused(confidence):
    with pytest.raises(ValueError, match="confidence"):
        rate(games(), confidence=confidence)


@pytest.mark.parametrize("alpha", [1e308, 1e100, 0, -1.0, np.nan, np.inf, True, "x", [1.0]])
def test_an_alpha_out_of_range_is_refused(alpha):
    with pytest.raises(ValueError, match="alpha"):
        rate(games(), alpha=alpha)


@pytest.mark.parametrize("missing", [None, np.nan, pd.NA])
def test_a_missing_label_of_a_cluster_is_named(missing):
    with pytest.raises(ValueError, match=r"clusters .* row 3"):
        rate(games(), clusters=["a", "b", "c", missing] + ["d"] * (N_GAMES - 4))


def test_times_that_differ_by_less_than_a_second_are_one_time():
    times = np.datetime64("2020-01-01T00:00:00", "ms") + np.arange(N_GAMES)
    with pytest.raises(ValueError, match="time"):
        rate(games(times=times))
    seconds = np.datetime64("2020-01-01T00:00:00", "s") + np.arange(N_GAMES)
    boards = [rate(games(times=seconds.astype(f"datetime64[{unit}]"))) for unit in ("s", "ns")]
    np.testing.assert_array_equal(boards[0].ratings, boards[1].ratings)
    days = [path.times for path in boards[1].paths([0], n_times=5).values()]
    assert days[0].min() >= seconds[0]
    assert days[0].max() <= seconds[-1]
