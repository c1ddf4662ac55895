"""Covariates and sides on boards: closed forms against refits on explicit rows."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rankwise.datasets import PairData
from rankwise.leaderboard import rate, rate_groups
from rankwise.leaderboard.algebra import leave_comparison_out, rating_system
from rankwise.leaderboard.algebra.alpha_selection import leave_one_out_errors
from rankwise.leaderboard.algebra.comparison_counts import ComparisonCounts
from rankwise.leaderboard.algebra.comparison_design import TINY_PENALTY
from rankwise.leaderboard.algebra.rating_system import RatingSystem
from rankwise.leaderboard.covariates import covariate_columns


def battles(n_items=6, n=60, seed=0, weights=(1.0,), effect=0.5):
    """Comparisons with an advantage of the first side and of longer answers."""
    rng = np.random.default_rng(seed)
    first = np.r_[np.arange(n_items), rng.integers(n_items, size=n - n_items)]
    second = (first + 1 + rng.integers(n_items - 1, size=n)) % n_items
    length, style = rng.integers(-2, 3, size=n) * 100.0, rng.choice(["list", "prose", "table"], n)
    truth = np.linspace(1, -1, n_items)
    outcome = truth[first] - truth[second] + 0.2 + effect * length / 100 + rng.standard_normal(n)
    return PairData(
        first, second, outcome.round(1), rng.choice(weights, n), np.arange(n_items),
        covariates={"length": length, "style": style},
    )  # fmt: skip


def refit(data, Z, alpha, kept, X=None, shift=None):
    """Ratings and effects by a dense least-squares solve with one row for each comparison."""
    items = np.eye(data.n_items) if X is None else X
    D = np.hstack([items[data.first] - items[data.second], Z])[kept]
    w, y = data.weight[kept], data.outcome[kept]
    p, W = items.shape[1], data.weight.sum()
    shift = alpha * W if shift is None else shift
    penalty = np.r_[np.full(p, shift), np.full(Z.shape[1], TINY_PENALTY * W)]
    u = np.linalg.solve(D.T @ (w[:, None] * D) + np.diag(penalty), D.T @ (w * y))
    ratings = items @ u[:p]
    return ratings - ratings.mean(), u[p:]


def features(n_features, n_items=6):
    return np.random.default_rng(1).standard_normal((n_items, n_features)) if n_features else None


@pytest.mark.parametrize("n_features", [None, 2, 9])
@pytest.mark.parametrize("limit", [300, 3])
def test_ratings_and_effects_are_those_of_explicit_rows(n_features, limit, monkeypatch):
    monkeypatch.setattr(rating_system, "DENSE_LIMIT", limit)
    data, X = battles(weights=(1.0, 3.0)), features(n_features)
    control = covariate_columns(data, side=True)
    assert control.names[:2] == ("first side", "length")
    board = rate(
        data, covariates=["length", "style"], side=True, alpha=0.01, features=X, intervals=False
    )
    ratings, effects = refit(data, control.columns, 0.01, slice(None), X)
    np.testing.assert_allclose(board.ratings, ratings, atol=1e-7)
    found = [effect.value for effect in board.effects]
    np.testing.assert_allclose(found, effects / control.scale, rtol=1e-6, atol=1e-7)


@pytest.mark.parametrize("n_features", [None, 2, 9])
@pytest.mark.parametrize("clustered", [False, True])
def test_leaving_out_with_covariates_equals_refits(n_features, clustered):
    data, X = battles(weights=(1.0, 2.0)), features(n_features)
    control = covariate_columns(data, side=True)
    units = np.arange(60) % 9 if clustered else np.arange(60)
    board = rate(
        data, covariates=["length", "style"], side=True, alpha=1e-3, features=X,
        clusters=units if clustered else None,
    )  # fmt: skip
    whole = np.concatenate(refit(data, control.columns, 1e-3, slice(None), X))
    changes = [
        np.concatenate(refit(data, control.columns, 1e-3, units != u, X)) - whole
        for u in range(units.max() + 1)
    ]
    n_units = len(changes)
    V = (n_units - 1) / n_units * np.transpose(changes) @ changes
    found = np.vstack([board.spread.root, board.spread.effects_root])
    np.testing.assert_allclose(found @ found.T, V, atol=1e-7 * V.max())
    errors = np.sqrt(V.diagonal()[6:]) / control.scale
    np.testing.assert_allclose([effect.error for effect in board.effects], errors, rtol=1e-5)


@pytest.mark.parametrize("n_features", [None, 2, 9])
def test_leave_one_out_errors_with_covariates_equal_refits(n_features):
    data, X = battles(weights=(0.5, 1.0, 4.0)), features(n_features)
    control = covariate_columns(data, side=True)
    system = RatingSystem(ComparisonCounts.of(data, control.columns), X)
    alphas = np.array([1e-4, 1e-2, 1.0])
    expected = np.zeros(3)
    for at, alpha in enumerate(alphas):
        for k in range(data.n_pairs):
            kept = np.arange(data.n_pairs) != k
            shift = alpha * data.weight[kept].sum()
            r, g = refit(data, control.columns, alpha, kept, X, shift)
            margin = r[data.first[k]] - r[data.second[k]] + control.columns[k] @ g
            expected[at] += data.weight[k] * (data.outcome[k] - margin) ** 2
    found = leave_one_out_errors(system, alphas)
    np.testing.assert_allclose(found, expected / data.weight.sum(), rtol=1e-7)


def test_effects_of_very_many_items_are_estimated(monkeypatch):
    data = battles(n_items=30, n=600)
    options = {"covariates": ["length"], "side": True}
    exact = rate(data, **options)
    for module, name in ((rating_system, "COVARIANCE_LIMIT"), (rating_system, "DENSE_LIMIT")):
        monkeypatch.setattr(module, name, 10)
    monkeypatch.setattr(leave_comparison_out, "N_DRAWS", 1500)
    monkeypatch.setattr(leave_comparison_out, "N_SKETCHES", 500)
    drawn = rate(data, **options)
    assert drawn.spread.is_from_draws
    for one, two in zip(drawn.effects, exact.effects, strict=True):
        assert one.value == pytest.approx(two.value, abs=1e-8)
        assert one.error == pytest.approx(two.error, rel=0.1)
    np.testing.assert_allclose(drawn.ratings, exact.ratings, atol=1e-8)


def test_the_side_is_found_and_its_interval_holds_it():
    inside = []
    for seed in range(60):
        data = battles(n=200, seed=seed)
        side, length = rate(data, covariates=["length"], side=True).effects
        assert (side.name, length.name) == ("first side", "length")
        inside += [side.low < 0.2 < side.high, length.low < 0.005 < length.high]
    assert 0.88 <= np.mean(inside) <= 0.99


def test_control_changes_the_board_only_where_covariates_differ():
    data = battles(n=4000, effect=2.0)
    data.covariates["length"][:] = np.where(data.first == 0, 100.0, 0) - 100.0 * (data.second == 0)
    noise = np.random.default_rng(0).choice([-100.0, 0.0, 100.0], data.n_pairs)
    length = data.covariates["length"] + noise
    outcome = (data.second - data.first) * 0.4 + 0.02 * length
    plain = PairData(data.first, data.second, outcome, data.weight, data.items)
    without, with_control = rate(plain), rate(plain, covariates={"length": length})
    assert with_control.expected_margin(0, 1).value == pytest.approx(0.4, abs=1e-3)
    assert without.expected_margin(0, 1).value == pytest.approx(2.4, abs=0.2)
    assert with_control.circles.unexplained < 1e-6 < without.circles.unexplained


@settings(max_examples=20, deadline=None)
@given(st.integers(0, 10_000), st.sampled_from([1e-9, 1.0, 1e9]))
def test_turning_comparisons_round_or_scaling_changes_nothing(seed, scale):
    data = battles(seed=seed)
    length = data.covariates["length"]
    board = rate(data, covariates=["length"], intervals=False)
    turned = PairData(data.second, data.first, -data.outcome, data.weight, data.items)
    other = rate(turned, covariates={"length": -length * scale}, intervals=False)
    np.testing.assert_allclose(board.ratings, other.ratings, atol=1e-8)
    assert board.effects[0].value == pytest.approx(other.effects[0].value * scale, rel=1e-6)


def test_without_a_side_a_category_has_an_effect_for_every_level():
    data = battles()
    names = [effect.name for effect in rate(data, covariates=["style"], intervals=False).effects]
    assert names == ["style=list", "style=prose", "style=table"]
    both = rate(data, covariates=["style"], side=True, intervals=False).effects
    assert len(both) == 3
    assert both[0].name == "first side"


def test_groups_keep_their_covariates():
    data = battles(n=200)
    groups = np.arange(200) % 2
    boards = rate_groups(data, groups, covariates=["length"], side=True, intervals=False)
    alone = rate(data.take(groups == 1), covariates=["length"], side=True, intervals=False)
    assert boards[1].effects == alone.effects


# -- bad input ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "covariates, message",
    [
        ({"z": np.ones(60)}, "'z' is 1 in every comparison; leave it out"),
        ({"z": ["x"] * 60}, "'z' is 'x' in every comparison"),
        ({"z": np.arange(60).astype(str)}, "60 categories, and at most 50"),
        ({"z": np.r_[np.nan, np.ones(59)]}, "'z' is nan in comparison 0"),
        ({"z": np.ones(3)}, r"shape \(3,\), but there are 60 comparisons"),
        (["height"], "no 'height'; they have 'length', 'style'"),
    ],
)
def test_bad_covariates_are_explained(covariates, message):
    with pytest.raises(ValueError, match=message):
        rate(battles(), covariates=covariates)


def test_what_the_items_determine_is_refused():
    data = battles()
    age = np.arange(6.0) ** 2
    known = {"age": age[data.first] - age[data.second]}
    with pytest.raises(ValueError, match="'age' cannot be separated from the ratings"):
        rate(data, covariates=known)
    twice = {"one": data.covariates["length"], "two": 2 * data.covariates["length"]}
    with pytest.raises(ValueError, match="'one', 'two' cannot be separated"):
        rate(data, covariates=twice)


def test_winners_and_losers_have_no_sides():
    games = {"winner": ["a", "b", "a"], "loser": ["b", "c", "c"]}
    with pytest.raises(ValueError, match="do not say which item was on which side"):
        rate(games, side=True)
    with pytest.raises(ValueError, match=r"categories of 'where' .*which side"):
        rate({**games, "where": ["x", "y", "x"]}, covariates=["where"])


def test_a_pair_of_columns_is_their_difference():
    data = battles(n=100)
    names = np.array(list("uvwxyz"))
    frame = {
        "one": names[data.first],
        "two": names[data.second],
        "by": data.outcome,
        "len1": data.covariates["length"] + 7,
        "len2": np.full(100, 7.0),
    }
    options = {"sides": ("one", "two"), "outcome": "by", "margin": True, "intervals": False}
    (effect,) = rate(frame, **options, covariates=[("len1", "len2")]).effects
    (twin,) = rate(data, covariates=["length"], intervals=False).effects
    assert effect.name == "len1 − len2"
    assert effect.value == pytest.approx(twin.value)
    both = rate(frame, **options, covariates=["len1", ("len1", "by")])
    assert [effect.name for effect in both.effects] == ["len1", "len1 − by"]


@pytest.mark.parametrize("n_covariates", [0, 2])
@pytest.mark.parametrize("has_features", [False, True])
def test_the_matrix_of_the_system_is_that_of_its_rows(n_covariates, has_features):
    """Two items that meet several times, with other covariates or with none, are added up."""
    rng = np.random.default_rng(0)
    first, second = rng.integers(3, size=30), rng.integers(3, 6, size=30)
    Z = rng.integers(3, size=(30, 2)).astype(float)
    outcome = rng.choice([-1.0, 1.0], 30)
    tally = ComparisonCounts.of(PairData(first, second, outcome, np.ones(30), np.arange(7)), Z)
    tally = replace(tally, covariates=tally.covariates[:, :n_covariates])
    X = rng.normal(size=(7, 4)) if has_features else None
    system, weights = RatingSystem(tally, X), rng.random(len(tally.first))
    rows = system.rows(slice(None))
    rows = rows if has_features else rows.toarray()
    expected = rows.T @ (weights[:, None] * rows)
    np.testing.assert_allclose(system.dense_gram(weights), expected, atol=1e-12)
