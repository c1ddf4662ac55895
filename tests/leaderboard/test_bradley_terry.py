"""Boards of Bradley and Terry's model against explicit likelihoods and refits."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy.special import expit

from experiments.boards import peers as comparisons
from rankwise import PairGraph, RankLogistic
from rankwise.datasets import PairData
from rankwise.leaderboard import PriorScales, rate
from rankwise.leaderboard.algebra import rating_system
from rankwise.leaderboard.algebra.alpha_selection import RELATIVE_ALPHAS, middle_alpha
from rankwise.leaderboard.algebra.comparison_counts import ComparisonCounts
from rankwise.leaderboard.algebra.leave_comparison_out import held_out_margins
from rankwise.leaderboard.algebra.newton import PairLikelihood, newton
from rankwise.leaderboard.algebra.outcome_likelihood import OutcomeLikelihood
from rankwise.leaderboard.models.bradley_terry import TOLERANCE, BradleyTerry
from tests import oracle_boards
from tests.leaderboard.data import count_comparisons

TIES = ["half", "davidson"]
N = 6


def _games(seed, n_games=80, n=N, n_covariates=0):
    rng = np.random.default_rng(seed)
    first = rng.integers(0, n, n_games)
    second = (first + rng.integers(1, n, n_games)) % n
    Z = rng.normal(size=(n_games, n_covariates)).round(1)
    r = np.linspace(-1, 1, n)
    chance = expit(r[first] - r[second] + Z.sum(axis=1) / 2)
    said = np.where(rng.random(n_games) < chance, 1.0, -1.0)
    said[rng.random(n_games) < 0.25] = 0.0
    return PairData(first, second, said, rng.choice([0.5, 1.0, 2.0], n_games), np.arange(n)), Z


def _model(data, Z, ties):
    return BradleyTerry(ComparisonCounts.of(data, Z), ties=ties)


def _numbers(data, Z):
    return data.first, data.second, data.outcome, data.weight, Z


@pytest.mark.parametrize("alpha", [1e-6, 1e-2])
@pytest.mark.parametrize("n_covariates", [0, 2])
def test_half_wins_are_logistic_regression_on_explicit_rows(alpha, n_covariates):
    data, Z = _games(0, n_covariates=n_covariates)
    found = _model(data, Z, "half").fit(alpha)
    ratings, effects = oracle_boards.by_logistic_regression(*_numbers(data, Z), N, alpha)
    np.testing.assert_allclose(found.ratings, ratings, atol=1e-6)
    np.testing.assert_allclose(found.effects, effects, atol=1e-6)
    assert found.ties is None
    assert found.note == ""


@pytest.mark.parametrize("n_covariates", [0, 1])
def test_davidsons_model_maximizes_the_explicit_likelihood(n_covariates):
    ties = "davidson"
    data, Z = _games(1, 50, 4, n_covariates)
    found = _model(data, Z, ties).fit(1e-3)
    ratings, effects, theta = oracle_boards.by_scipy(*_numbers(data, Z), 4, 1e-3, ties)
    np.testing.assert_allclose(found.ratings, ratings, atol=2e-5)
    np.testing.assert_allclose(found.effects, effects, atol=2e-5)
    assert found.ties == pytest.approx(np.exp(theta), rel=2e-5)


@pytest.mark.parametrize("ties", TIES)
def test_the_gap_bounds_the_distance_to_the_minimum(ties, monkeypatch):
    data, Z = _games(2)
    model = _model(data, Z, ties)
    problem = PairLikelihood(model.system, model.likelihood, 1e-3)
    best = newton(problem, problem.start(), TOLERANCE)
    assert best.relative_gap <= 1e-14
    monkeypatch.setattr("rankwise.leaderboard.algebra.newton.MAX_ITERATIONS", 2)
    with pytest.warns(UserWarning, match="relative gap"):
        early = newton(problem, problem.start(), TOLERANCE)
    assert early.n_iter == 2
    assert 0 <= early.value - best.value <= early.relative_gap * early.value
    *u, theta = best.unknowns
    truth = oracle_boards.objective(np.array(u), theta, *_numbers(data, Z), 1e-3, ties)
    assert best.value == pytest.approx(truth, rel=1e-9)


@pytest.mark.parametrize("alpha", [1e-12, 1e-8])
def test_the_margin_of_a_single_win_needs_few_steps_for_a_tiny_alpha(alpha):
    one_win = PairData(np.array([0]), np.array([1]), np.ones(1), np.ones(1), np.arange(2))
    model = _model(one_win, np.empty((1, 0)), "half")
    problem = PairLikelihood(model.system, model.likelihood, alpha)
    best = newton(problem, problem.start(), TOLERANCE)
    margin = best.unknowns[0] - best.unknowns[1]
    assert expit(-margin) == pytest.approx(alpha * margin, rel=1e-7)  # the derivative is 0
    assert best.n_iter < 20  # steps that add 1 to the margin each: 19 and 27


@pytest.mark.parametrize("ties", TIES)
def test_derivatives_are_differences_and_chances_add_up_to_one(ties):
    verdicts = OutcomeLikelihood(ties == "davidson")
    rng = np.random.default_rng(0)
    m, said, theta, h = rng.normal(size=30) * 3, rng.integers(-1, 2, 30) * 1.0, 0.4, 1e-5
    at = verdicts.derivatives(m, said, theta)
    ahead, behind = (
        verdicts.derivatives(m + h, said, theta),
        verdicts.derivatives(m - h, said, theta),
    )
    np.testing.assert_allclose(at.slope, (ahead.loss - behind.loss) / (2 * h), atol=1e-8)
    np.testing.assert_allclose(at.curvature, (ahead.slope - behind.slope) / (2 * h), atol=1e-8)
    if verdicts.has_tie_parameter:
        ahead, behind = (
            verdicts.derivatives(m, said, theta + h),
            verdicts.derivatives(m, said, theta - h),
        )
        np.testing.assert_allclose(at.theta_slope, (ahead.loss - behind.loss) / (2 * h), atol=1e-7)
        np.testing.assert_allclose(
            at.mixed_curvature, (ahead.slope - behind.slope) / (2 * h), atol=1e-7
        )
        np.testing.assert_allclose(
            at.theta_curvature, (ahead.theta_slope - behind.theta_slope) / (2 * h), atol=1e-7
        )
        truth = [oracle_boards.chances(x, theta) for x in m]
        np.testing.assert_allclose(verdicts.probabilities(m, theta), truth, atol=1e-12)
        shown = np.choose((1 - said).astype(int), verdicts.probabilities(m, theta).T)
        np.testing.assert_allclose(at.loss, -np.log(shown), atol=1e-12)
    np.testing.assert_allclose(verdicts.probabilities(m, theta).sum(axis=1), 1.0)
    extreme = verdicts.derivatives(np.array([800.0, -800.0]), np.array([-1.0, 0.0]), theta)
    assert all(np.isfinite(part).all() for part in extreme)


def test_without_ties_both_models_are_the_same():
    data, Z = _games(3)
    data.outcome[data.outcome == 0] = 1.0
    half, other = _model(data, Z, "half").fit(1e-3), _model(data, Z, "davidson").fit(1e-3)
    np.testing.assert_allclose(other.ratings, half.ratings, atol=1e-9)
    assert other.ties == 0.0


def test_a_note_recommends_alpha_auto_only_where_it_changes_alpha():
    wins = PairGraph([0, 0, 1, 2, 3, 1], [1, 2, 2, 3, 1, 3])
    model = BradleyTerry(count_comparisons(wins))
    advice = "use alpha='auto'"
    assert advice in model.fit(1e-8).note
    selected = model.fit(model.select_alpha())
    assert "1 of 4 items only won" in selected.note
    assert advice not in selected.note
    assert advice not in model.fit(0.1).note


def test_an_item_that_only_wins_has_a_finite_rating_and_is_said():
    ends = np.array([[0, 0, 1, 2, 3, 3], [1, 2, 2, 1, 1, 2]])
    board = BradleyTerry(count_comparisons(PairGraph(*ends)))
    for alpha in (1e-2, 1e-8, 1e-14):
        found = board.fit(alpha)
        assert np.isfinite(found.ratings).all()
        assert found.ratings[[0, 3]].min() > found.ratings[[1, 2]].max()
        assert "2 of 4 items only won or only lost" in found.note
        if alpha > 1e-10:
            rows = (*ends, np.ones(6), np.ones(6), np.empty((6, 0)))
            truth, _ = oracle_boards.by_logistic_regression(*rows, 4, alpha)
            np.testing.assert_allclose(found.ratings - found.ratings.mean(), truth, atol=1e-4)
    assert (
        "explain every comparison"
        in BradleyTerry(count_comparisons(PairGraph([0], [1]))).fit(0.1).note
    )
    cycle = BradleyTerry(count_comparisons(PairGraph([0, 1, 2], [1, 2, 0]))).fit(1e-8)
    assert cycle.note == ""
    np.testing.assert_allclose(cycle.ratings, 0.0, atol=1e-9)


def _without(data, Z, kept):
    return data.take(kept), Z[kept]


@pytest.mark.parametrize("ties", TIES)
def test_a_newton_step_without_a_comparison_misses_little_of_the_refit(ties):
    data, Z = _games(4, 120, n_covariates=1)
    alpha, model = 1e-3, _model(data, Z, ties)
    steps = held_out_margins(model.fit(alpha).leave_one_out(), np.arange(data.n_pairs))
    tally = model.counts
    inside = model.margins()[tally.pair_of_outcome][tally.outcome_of_comparison]
    for k in range(0, data.n_pairs, 7):
        kept = np.delete(np.arange(data.n_pairs), k)
        again = _model(*_without(data, Z, kept), ties).fit(alpha)
        sign = 1.0 if data.first[k] < data.second[k] else -1.0
        refit = sign * (
            again.ratings[data.first[k]] - again.ratings[data.second[k]] + Z[k] @ again.effects
        )
        assert abs(steps[k] - refit) < 0.1 * abs(inside[k] - refit) + 2e-3


@pytest.mark.parametrize("ties", TIES)
def test_held_out_log_loss_is_near_that_of_refits(ties):
    """θ stays, so that with ties of their own the differences between alphas are near."""
    data, Z = _games(5, 50, 4)
    model, alphas = _model(data, Z, ties), (1e-2, 1e-1, 1.0)
    losses = np.zeros(3)
    for k in range(data.n_pairs):
        rest = _model(*_without(data, Z, np.delete(np.arange(data.n_pairs), k)), ties)
        for a, alpha in enumerate(alphas):
            again = rest.fit(alpha)
            margin = again.ratings[data.first[k]] - again.ratings[data.second[k]]
            loss = rest.likelihood.derivatives(
                np.array([margin]), data.outcome[[k]], again.theta
            ).loss[0]
            losses[a] += data.weight[k] * loss / data.weight.sum()
    found = np.array([model.fit(alpha).held_out_log_loss() for alpha in alphas])
    if ties == "half":
        np.testing.assert_allclose(found, losses, rtol=2e-3)
    np.testing.assert_allclose(np.diff(found), np.diff(losses), atol=2e-3)


@pytest.mark.parametrize("ties, clustered", [("half", False), ("half", True), ("davidson", True)])
def test_the_jackknife_is_near_that_of_refits(ties, clustered):
    n = 150 if clustered else 50
    data, Z = _games(6, n, n_covariates=1)
    clusters = np.arange(n) // 10 if clustered else None
    units = np.arange(n) if clusters is None else clusters
    alpha, model = 1e-3, _model(data, Z, ties)
    full = model.fit(alpha)
    thin = np.zeros(model.counts.n_items, bool)
    spread = model.covariance(clusters, thin)
    changes = []
    for unit in range(units.max() + 1):
        kept = np.flatnonzero(units != unit)
        share = data.weight[kept].sum() / data.weight.sum()
        again = _model(*_without(data, Z, kept), ties).fit(alpha / share)  # the same λ
        changes.append(np.r_[again.ratings - full.ratings, again.effects - full.effects])
    n_units = len(changes)
    errors = np.sqrt((n_units - 1) / n_units * np.sum(np.square(changes), axis=0))
    np.testing.assert_allclose(spread.errors, errors[:N], rtol=0.04)
    np.testing.assert_allclose(np.linalg.norm(spread.effects_root, axis=1), errors[N:], rtol=0.04)


def test_many_items_by_conjugate_gradients_are_the_same_board(monkeypatch):
    data, Z = _games(7, 200, n_covariates=1)
    dense = [_model(data, Z, ties).fit(1e-4) for ties in TIES]
    monkeypatch.setattr(rating_system, "DENSE_LIMIT", 2)
    for ties, board in zip(TIES, dense, strict=True):
        sparse = _model(data, Z, ties).fit(1e-4)
        np.testing.assert_allclose(sparse.ratings, board.ratings, atol=1e-6)
        np.testing.assert_allclose(sparse.effects, board.effects, atol=1e-6)


def test_features_give_the_ratings_of_rank_logistic():
    data, _ = _games(8)
    X = np.random.default_rng(0).normal(size=(N, 2))
    board = rate(data, model="bradley-terry", features=X, alpha=0.01, intervals=False)
    model = RankLogistic(0.01, tol=1e-12).fit(X, data.graph())
    f = model.predict(X)
    np.testing.assert_allclose(board.ratings, f - f.mean(), atol=1e-7)


def test_margins_are_refused_and_unknown_models_of_ties_are_named():
    data, _ = _games(10)
    more = replace(data, outcome=3 * data.outcome)
    with pytest.raises(ValueError, match="wins, ties and losses, but the outcomes are margi"):
        rate(more, model="bradley-terry")
    assert 0 < rate(data, model="bradley-terry", intervals=False).circles.unexplained < 1
    with pytest.raises(ValueError, match=r"ties='davids'.*davidson"):
        rate(data, model="bradley-terry", ties="davids")


def test_alpha_has_the_least_held_out_log_loss():
    data, Z = _games(11, 60)
    model = _model(data, Z, "half")
    alphas = middle_alpha(model.system) * RELATIVE_ALPHAS[::2]
    losses = [model.fit(a).held_out_log_loss() for a in alphas]
    assert model.select_alpha() == pytest.approx(alphas[int(np.argmin(losses))])
    board = rate(data, model="bradley-terry", alpha="auto", intervals=False)
    assert board.alpha == pytest.approx(model.select_alpha())


def test_expected_is_wins_less_losses():
    data, Z = _games(12)
    margins = np.linspace(-2, 2, 5)
    half, davidson = (_model(data, Z, ties).fit(1e-3) for ties in TIES)
    np.testing.assert_allclose(half.expected(margins), 2 * expit(margins) - 1)
    truth = [oracle_boards.chances(m, davidson.theta) for m in margins]
    np.testing.assert_allclose(davidson.expected(margins), [c[0] - c[2] for c in truth])


@pytest.mark.parametrize("peer", ["choix", "evalica"])
def test_peers_find_the_same_ratings(peer):
    pytest.importorskip(peer)
    games = comparisons.made_up(8, 400)
    ours = comparisons.bradley_terry(games, 1e-10)
    theirs = getattr(comparisons, f"by_{peer}")(games)
    np.testing.assert_allclose(theirs - theirs.mean(), ours, atol=5e-3)
    np.testing.assert_allclose(comparisons.by_scikit_learn(games), ours, atol=1e-2)


def test_the_experiment_times_and_judges(capsys):
    comparisons.print_times(500)
    assert "Processor seconds for 500 comparisons" in capsys.readouterr().out
    right, loss = comparisons.judged(np.array([2.0, -1.0, 3.0]), np.array([1.0, 1.0, 0.0]))
    np.testing.assert_allclose(right, [1, 0])
    np.testing.assert_allclose(loss, -np.log(expit([2.0, -1.0])))
    games = comparisons.made_up(5, 300)
    scaled = comparisons.least_squares(games, 1e-8)
    np.testing.assert_allclose(scaled, comparisons.bradley_terry(games, 1e-8), atol=0.15)
    ratings, before = comparisons.elo(games, 24.0)
    assert before[0] == 0
    assert ratings.sum() == pytest.approx(0.0, abs=1e-9)


# -- next to no regularization -------------------------------------------------------------------


def newton_in_full(D, verdicts, penalty):
    """Maximum of the penalized likelihood; dense Newton steps of at most 3 until they vanish."""
    unknowns = np.zeros(D.shape[1])
    for _ in range(200):
        losing = expit(-verdicts * (D @ unknowns))
        slope = penalty * unknowns - D.T @ (verdicts * losing)
        hessian = (D.T * (losing * (1 - losing))) @ D + np.diag(penalty)
        step = -np.linalg.solve(hessian, slope)
        unknowns += step * min(1.0, 3.0 / np.abs(step).max())
        if np.abs(step).max() < 1e-12:
            break
    return unknowns


@pytest.mark.parametrize("alpha", [1e-8, 1e-10, 1e-12])
def test_ratings_are_exact_also_where_only_alpha_keeps_them_finite(alpha):
    n_items, n_games, rows = 8, 60, np.arange(60)
    for seed in range(6):
        rng = np.random.default_rng(seed)
        strength = 1.5 * rng.normal(size=n_items)
        first = rng.integers(n_items, size=n_games)
        second = (first + rng.integers(1, n_items, size=n_games)) % n_items
        chance = expit(strength[first] - strength[second])
        verdicts = np.where(rng.random(n_games) < chance, 1.0, -1.0)
        z = rng.normal(size=n_games)
        data = PairData(first, second, verdicts, np.ones(n_games), np.arange(n_items))
        board = rate(data, model="bradley-terry", alpha=alpha, covariates={"z": z}, intervals=False)
        D = np.zeros((n_games, n_items + 1))
        D[rows, first] = 1.0
        D[rows, second] = -1.0
        D[:, -1] = z
        penalty = np.append(np.full(n_items, 2 * alpha * n_games), 1e-12 * n_games)
        expected = newton_in_full(D, verdicts, penalty)
        ratings = expected[:-1] - expected[:-1].mean()
        centered = board.ratings - board.ratings.mean()  # the origin is not that of all items
        np.testing.assert_allclose(centered, ratings, atol=1e-6)
        assert board.effects[0].value == pytest.approx(expected[-1], abs=1e-6)


def established_games():
    """Games of eight items that all won and lost."""
    rng = np.random.default_rng(0)
    strength = rng.normal(size=8)
    first = rng.integers(8, size=400)
    second = (first + rng.integers(1, 8, 400)) % 8
    first_wins = rng.random(400) < 1 / (1 + np.exp(strength[second] - strength[first]))
    winner = np.where(first_wins, first, second)
    loser = np.where(first_wins, second, first)
    return [*map(str, winner)], [*map(str, loser)]


def test_an_unbeaten_newcomer_does_not_widen_the_intervals_of_other_items():
    winner, loser = established_games()
    without = rate({"winner": winner, "loser": loser}, scale="elo")
    games = {"winner": [*winner, "new", "new"], "loser": [*loser, "0", "3"]}
    board = rate(games, scale="elo")
    for row in without:
        assert board[row.item].rating == pytest.approx(row.rating, abs=0.1)
        width = board[row.item].high - board[row.item].low
        assert width == pytest.approx(row.high - row.low, rel=0.01)
    assert board["new"].rating > max(row.rating for row in without)
    assert board["new"].high - board["new"].low > 10_000
    assert board.ratings[board.items != "new"].mean() == pytest.approx(1000)


def test_an_undefeated_horse_does_not_widen_the_intervals_of_other_horses():
    rng = np.random.default_rng(1)
    races = [rng.permutation(list("abcdef")).tolist() for _ in range(80)]
    without = rate(races)
    board = rate([*races, ["new", "a", "b"]])
    assert board.model == "plackett-luce"
    for row in without:
        assert board[row.item].high - board[row.item].low < 1.5 * (row.high - row.low)


def test_the_mean_of_all_items_is_the_origin_where_no_two_ratings_are_finite():
    chain = {"winner": ["a", "b", "c"], "loser": ["b", "c", "d"]}
    assert rate(chain, alpha=1e-3).ratings.mean() == pytest.approx(0)


@pytest.mark.parametrize("options", [{"half_life": 3.0}, {"scales": PriorScales(1.0)}])
def test_scales_without_time_and_context_are_refused(options):
    winner, loser = established_games()
    with pytest.raises(ValueError, match=next(iter(options))):
        rate({"winner": winner, "loser": loser}, **options)


def test_a_half_life_without_time_is_refused_with_a_context():
    winner, loser = established_games()
    place = ["home", "away"] * 200
    games = {"winner": winner, "loser": loser, "place": place}
    with pytest.raises(ValueError, match="half_life"):
        rate(games, context="place", half_life=3.0)
