"""Ratings in context against Gaussian processes and static boards; forecasts; backtests."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from scipy.optimize import minimize

from rankwise.leaderboard import PriorScales, backtest, rate
from rankwise.leaderboard.forecast import Chances, elo_margins, fit_chances
from rankwise.leaderboard.models import dynamic
from rankwise.report import board_page
from tests.leaderboard.data import COLUMNS, IN_CONTEXT, games
from tests.oracle_boards import by_scipy

HALF = 2 * np.log(2)  # of τ = 2: knots at 0, 1, 2 and 3
SCALES = PriorScales(0.8, 0.6, HALF, 0.4)


def gaussian_process(table, scales):
    """Latent ratings of every item at every time and level, their mode and covariance."""
    names = np.unique(table["left"])
    cells = [(t, s) for t in range(4) for s in ("home", "sea")]
    t, s = np.array([c[0] for c in cells]), np.array([c[1] for c in cells])
    tau = scales.half_life / np.log(2)
    K = scales.constant**2 + scales.time**2 * np.exp(-np.abs(t[:, None] - t) / tau)
    K += scales.context**2 * (s[:, None] == s)
    cell = np.array(
        [cells.index((y, p)) for y, p in zip(table["year"], table["place"], strict=True)]
    )
    i, j = (np.searchsorted(names, table[side]) for side in ("left", "right"))
    won = np.where(table["better"] == "left", 1.0, -1.0)
    m, D = len(cells), np.zeros((len(won), len(names) * len(cells)))
    rows = np.arange(len(won))
    D[rows, i * m + cell], D[rows, j * m + cell] = 1, -1
    sizes, vectors = np.linalg.eigh(K)
    root = np.kron(np.eye(len(names)), vectors * np.sqrt(np.maximum(sizes, 0)))
    D = D @ root  # whitened

    def value(z):
        return np.logaddexp(0, -won * (D @ z)).sum() + 0.5 * z @ z

    def slope(z):
        return z - D.T @ (won / (1 + np.exp(won * (D @ z))))

    z = minimize(value, np.zeros(D.shape[1]), jac=slope, method="BFGS", tol=1e-9).x
    p = 1 / (1 + np.exp(-D @ z))
    H = D.T @ ((p * (1 - p))[:, None] * D) + np.eye(len(z))
    return cells, (root @ z).reshape(len(names), m), root @ np.linalg.inv(H) @ root.T


def centered(values):
    return values - values.mean(axis=0)


def test_ratings_are_the_mode_of_a_gaussian_process_and_errors_its_covariance():
    table = games()
    board = rate(table, scales=SCALES, **IN_CONTEXT)
    cells, f, V = gaussian_process(table, SCALES)
    for at, (time, place) in enumerate(cells):
        there = board.at(time, place)
        np.testing.assert_allclose(there.ratings, centered(f)[:, at], atol=2e-4)
        C = np.eye(4) - 0.25
        own = V.reshape(4, len(cells), 4, len(cells))[:, at, :, at]
        errors = np.sqrt(np.diag(C @ own @ C))
        np.testing.assert_allclose(there.spread.errors, errors, rtol=1e-3)


def test_draws_have_the_covariance_of_the_posterior(monkeypatch):
    table = games(1)
    exact = rate(table, scales=SCALES, **IN_CONTEXT)
    monkeypatch.setattr(dynamic, "EXACT_SIZE", 0)
    monkeypatch.setattr(dynamic, "N_DRAWS", 2000)
    drawn = rate(table, scales=SCALES, **IN_CONTEXT)
    assert drawn.spread.is_from_draws
    np.testing.assert_allclose(drawn.spread.errors, exact.spread.errors, rtol=0.1)


@pytest.mark.parametrize("ties", ["half", "davidson"])
def test_without_change_it_is_bradley_and_terrys_board_with_side_and_ties(ties):
    table = games(2, ties=0.2)
    still = PriorScales(0.9, 1e-9, HALF, 1e-9)
    board = rate(table, scales=still, side=True, ties=ties, **IN_CONTEXT)
    alpha = 0.5 / 0.9**2 / 120
    plain = rate(table, model="bradley-terry", ties=ties, side=True, alpha=alpha, **COLUMNS)
    np.testing.assert_allclose(board.ratings, plain.ratings, atol=1e-5)
    np.testing.assert_allclose(board.effects[0].value, plain.effects[0].value, atol=1e-5)
    assert board.ties == pytest.approx(plain.ties, abs=1e-5)
    data = plain.comparisons
    ends = data.first, data.second, data.outcome, data.weight, np.ones((120, 1))
    slow = by_scipy(*ends, 4, alpha, ties)
    np.testing.assert_allclose(board.ratings, centered(slow[0]), atol=1e-4)


def test_scales_are_chosen_on_later_comparisons():
    moving = rate(games(3, n=1500, n_items=8, drift=1.0), intervals=False, **IN_CONTEXT).scales
    still = rate(games(3, n=1500, n_items=8), intervals=False, **IN_CONTEXT).scales
    assert moving.time > 2 * still.time
    given = rate(games(3), half_life=7.0, intervals=False, **IN_CONTEXT).scales
    assert given.half_life == 7.0
    only = rate(games(3), context="place", intervals=False, **COLUMNS).scales
    assert only.time == 0
    assert only.context > 0


def test_ratings_fade_to_the_constant_after_the_last_day():
    board = rate(games(4, drift=1.0), scales=SCALES, **IN_CONTEXT)
    later, much_later, never = (board.at(3 + d).ratings for d in (2.0, 1e4, 1e5))
    values = board.fitted.system.term_values(board.fitted.unknowns)
    np.testing.assert_allclose(much_later, never, atol=1e-12)
    parts = board.parts
    phi = parts.term_weights_at() * 1.0
    phi[1 : 1 + len(parts.knots)] *= np.exp(-2.0 / parts.decay_time)
    np.testing.assert_allclose(later, centered(values @ phi), atol=1e-9)


def test_a_very_short_half_life_gives_finite_ratings():
    board = rate(games(4), scales=PriorScales(1.0, 0.5, 1e-4, 0.3), **IN_CONTEXT)
    assert np.isfinite(board.ratings).all()
    assert np.isfinite(board.spread.errors).all()


def test_two_items_that_never_met_in_a_context_are_rated_there():
    table = games(5)
    met = (table["left"] == "a") | (table["right"] == "a")
    table["place"] = np.where(met, "home", table["place"])
    at_sea = rate(table, scales=SCALES, **IN_CONTEXT).at(context="sea")
    assert at_sea["a"].low < at_sea["a"].rating < at_sea["a"].high
    assert at_sea["a"].high - at_sea["a"].low > at_sea["b"].high - at_sea["b"].low


def test_dates_numbers_and_the_order_of_the_rows_are_times():
    table = games(6)
    year = np.repeat(np.arange(4), 30)
    dates = [f"{2000 + y}-01-01" for y in year]
    digits = [int(f"{2000 + y}0101") for y in year]
    options = {**COLUMNS, "scales": PriorScales(1.0, 0.5, 500.0), "intervals": False}
    by_date = rate({**table, "when": dates}, time="when", **options)
    np.testing.assert_allclose(
        rate({**table, "when": digits}, time="when", **options).ratings, by_date.ratings
    )
    np.testing.assert_allclose(
        rate(table, time="rows", **options).ratings,
        rate({**table, "when": np.arange(120)}, time="when", **options).ratings,
    )
    assert by_date.at("2001-06-30").ratings.shape == (4,)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"year": [1.0] * 120}, "leave out time"),
        ({"place": ["home"] * 120}, "leave it out"),
        ({"year": ["2001-01-01"] * 60 + ["02/03/2001"] * 60}, "row 60 .*'02/03/2001'"),
        ({"year": ["2001-01-01"] * 60 + [7] * 60}, "row 60"),
        ({"year": ["soon"] * 120}, "'soon', expected a date or a number"),
    ],
)
def test_bad_times_and_contexts_are_refused(change, message):
    with pytest.raises(ValueError, match=message):
        rate({**games(), **change}, **IN_CONTEXT)


def test_a_missing_date_leaves_out_the_row_and_this_is_said():
    table = {**games(), "year": [None, *np.sort(np.arange(119) % 4)]}
    with pytest.warns(UserWarning, match="1 without year"):
        board = rate(table, scales=SCALES, **IN_CONTEXT)
    assert board.n_comparisons == 119


def test_what_does_not_go_with_time_is_refused():
    table = games()
    for option in ({"alpha": 0.1}, {"features": np.eye(4)}, {"model": "least-squares"},
                   {"half_life": -1.0}):  # fmt: skip
        with pytest.raises(ValueError, match=r"time=|half_life"):
            rate(table, **option, **IN_CONTEXT)
    board = rate(table, scales=SCALES, **IN_CONTEXT)
    with pytest.raises(ValueError, match="'moon'; the levels of the board are 'home', 'sea'"):
        board.at(context="moon")
    with pytest.raises(ValueError, match="format of the board's times, such as"):
        board.at("2001-01-01")
    with pytest.raises(ValueError, match="without time="):
        rate(table, **COLUMNS).at(3)


def test_forecasts_have_side_ties_time_and_context_in_them():
    table = games(7, n=400, ties=0.2)
    board = rate(table, scales=SCALES, side=True, ties="davidson", **IN_CONTEXT)
    one = board.predict("a", "b", time=2.0, context="sea")
    there = board.at(2.0, "sea")
    m = there["a"].rating - there["b"].rating + board.effects[0].value
    nu = board.ties
    expected = np.array([np.exp(m / 2), nu, np.exp(-m / 2)])
    np.testing.assert_allclose(one, expected / expected.sum(), rtol=1e-9)
    neutral = board.predict("a", "b", neutral=True)
    assert neutral.win == pytest.approx(board.predict("b", "a", neutral=True).loss)
    many = board.predict(
        ["a", "c"], ["b", "d"], time=[2.0, 3.0], context={"place": ["sea", "home"]}
    )
    assert many.win[0] == pytest.approx(one.win)


@pytest.mark.parametrize("model", ["least-squares", "bradley-terry"])
def test_static_boards_forecast_by_a_curve_of_margins_left_out(model):
    table = games(8, n=600, ties=0.25)
    board = rate(table, model=model, side=True, **COLUMNS)
    forecasts = board.predict(table["left"].tolist(), table["right"].tolist())
    assert forecasts.draw.mean() == pytest.approx((table["better"] == "tie").mean(), abs=0.02)
    assert forecasts.win.mean() == pytest.approx((table["better"] == "left").mean(), abs=0.02)


def test_the_curve_of_chances_is_found_again():
    rng = np.random.default_rng(0)
    margins, truth = rng.normal(size=20_000), Chances(1.7, 0.4, -0.5)
    draws = rng.random(20_000)[:, None] > np.cumsum(truth.probabilities(margins), axis=1)
    said = 1.0 - draws.sum(axis=1)
    found = fit_chances(margins, said, np.ones(20_000), estimate_side=True)
    np.testing.assert_allclose(found, truth, atol=0.1)


def test_elo_moves_by_the_step_times_the_surprise():
    board = rate({"winner": ["a", "b"], "loser": ["b", "a"]}, alpha=0.1)
    margins, ratings = elo_margins(board.comparisons, 0.2)
    assert margins[0] == 0
    assert margins[1] == pytest.approx(-0.2)
    surprise = 1 - 1 / (1 + np.exp(0.2))
    np.testing.assert_allclose(ratings[1] - ratings[0], -0.2 + 0.4 * surprise)


def test_a_backtest_judges_the_board_on_what_came_later():
    table = games(9, n=2000, n_items=8, drift=1.0)
    result = backtest(table, 3, scales=PriorScales(1.0, 0.8, 3.0), **{**IN_CONTEXT, "context": ()})
    board, static, *_, base = result.methods
    assert board.log_loss < static.log_loss < base.log_loss
    later = table["year"] >= 3
    chances = result.board.predict(
        table["left"][later].tolist(), table["right"][later].tolist(), time=table["year"][later]
    )
    right = np.where(table["better"][later] == "left", chances.win, chances.loss)
    assert board.log_loss == pytest.approx(-np.log(right).mean())
    assert "Elo, followed" in str(result)
    plain = backtest(table, 3, time="year", model="least-squares", **COLUMNS)
    assert [m.name for m in plain.methods][1:] == ["Elo, followed", "Elo, frozen", "base rate"]
    with pytest.raises(ValueError, match="before until=9"):
        backtest(table, 9, **IN_CONTEXT)


def test_new_items_and_levels_of_later_games_are_average():
    table = games(10, n=300, n_items=5)
    new = table["year"] < 3
    for side in ("left", "right"):
        table[side] = np.where(new & (table[side] == "e"), "x", table[side])
    keep = table["left"] != table["right"]
    table = {name: column[keep] for name, column in table.items()}
    result = backtest(table, 3, scales=SCALES, **IN_CONTEXT)
    assert result.n_later == (table["year"] >= 3).sum()
    assert np.isfinite(result.methods[0].log_loss)


def test_rankings_in_time_are_pairs_in_context():
    rng = np.random.default_rng(0)
    table = {
        "race": np.repeat(np.arange(30), 4), "driver": np.tile(list("abcd"), 30),
        "position": np.concatenate([rng.permutation(4) + 1 for _ in range(30)]),
        "season": np.repeat(np.arange(3), 40),
    }  # fmt: skip
    columns = {"ranking": "race", "item": "driver", "place": "position", "time": "season"}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        board = rate(table, scales=SCALES, **columns)
    assert board.model == "bradley-terry"
    assert board["a"].n == 30


def test_the_page_of_a_board_in_time():
    assert "Ratings in context" in str(board_page(rate(games(), scales=SCALES, **IN_CONTEXT)))


def test_paths_are_the_boards_of_their_moments():
    board = rate(games(), scales=SCALES, **IN_CONTEXT)
    path = board.paths(["a"], n_times=4)["a"]
    there = board.at(path.times[1])["a"]
    assert (path.rating[1], path.low[1], path.high[1]) == pytest.approx(there[2:5])
    with pytest.raises(ValueError, match="without time="):
        rate(games(), **COLUMNS).paths()


@pytest.mark.parametrize("n_times", [1, 0, 2.5])
def test_fewer_than_two_times_of_a_path_are_refused(n_times):
    board = rate(games(), scales=SCALES, **IN_CONTEXT)
    with pytest.raises(ValueError, match="expected a whole number from 2"):
        board.paths(["a"], n_times=n_times)
