"""A judge as a prior: against least squares written out, and refits without each vote."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from scipy.stats import kendalltau

from rankwise.datasets import PairData
from rankwise.leaderboard import rate
from rankwise.leaderboard.algebra.alpha_selection import alpha_of_prior, leave_one_out_errors
from rankwise.leaderboard.algebra.comparison_counts import ComparisonCounts
from rankwise.leaderboard.models.least_squares_model import LeastSquares
from rankwise.leaderboard.prior_reader import read_prior

ALPHA = 0.02


def votes(seed=0, n_items=8, n_votes=60):
    rng = np.random.default_rng(seed)
    first, second = rng.integers(n_items, size=(2, n_votes))
    second = np.where(first == second, (first + 1) % n_items, second)
    truth = np.linspace(1, -1, n_items)
    outcome = np.sign(truth[first] - truth[second] + rng.normal(size=n_votes))
    weight = rng.choice([1.0, 2.0], n_votes)
    return PairData(first, second, outcome, weight, np.arange(n_items)), truth


def written_out(data, B, lam, kept=slice(None)):
    """min Σ ω (δ − x (B β + u))² + λ ‖u‖², with a huge prior variance of β."""
    D = np.eye(data.n_items)[data.first] - np.eye(data.n_items)[data.second]
    D, w, y = D[kept], data.weight[kept], data.outcome[kept]
    rows = np.hstack([D, D @ B])
    penalty = np.diag(np.r_[np.full(data.n_items, lam), np.full(B.shape[1], 1e-10)])
    found = np.linalg.solve(rows.T @ (w[:, None] * rows) + penalty, rows.T @ (w * y))
    ratings = found[: data.n_items] + B @ found[data.n_items :]
    return ratings - ratings.mean()


def priors(n_items=8, seed=3):
    B = np.random.default_rng(seed).normal(size=(n_items, 2))
    return B, [dict(enumerate(column)) for column in B.T]


def test_ratings_are_those_of_the_least_squares_written_out():
    data, _ = votes()
    B, both = priors()
    board = rate(data, model="least-squares", prior=both, alpha=ALPHA)
    expected = written_out(data, B - B.mean(axis=0), ALPHA * data.weight.sum())
    np.testing.assert_allclose(board.ratings, expected, atol=1e-7)


def test_votes_left_out_are_foreseen_as_by_refits():
    data, _ = votes(n_votes=30)
    B, both = priors()
    _, read = read_prior(both, data)
    model = LeastSquares(ComparisonCounts.of(data), prior_ratings=read.orthogonal_basis)
    squares = []
    for k in range(data.n_pairs):
        kept = np.arange(data.n_pairs) != k
        r = written_out(data, B - B.mean(axis=0), ALPHA * data.weight[kept].sum(), kept)
        squares.append((data.outcome[k] - r[data.first[k]] + r[data.second[k]]) ** 2)
    error = leave_one_out_errors(model.system, np.array([ALPHA]))[0]
    np.testing.assert_allclose(error, np.average(squares, weights=data.weight), rtol=1e-6)


@pytest.mark.parametrize("model", ["least-squares", "bradley-terry"])
def test_a_strong_prior_is_the_judge_and_a_weak_one_the_people(model):
    data, truth = votes(n_votes=200)
    judge = dict(enumerate(truth**3))
    alone = rate(data, model=model, alpha=1e-8)
    weak = rate(data, prior=judge, alpha=1e-8, model=model)
    strong = rate(data, prior=judge, alpha=1e3, model=model)
    np.testing.assert_allclose(weak.ratings, alone.ratings, atol=1e-3)
    assert np.corrcoef(strong.ratings, truth**3)[0, 1] > 1 - 1e-6
    assert weak.prior.trust < 0.01
    assert strong.prior.trust > 0.99


def test_worth_is_half_lambda_an_item_times_the_share_explained_and_said():
    data, truth = votes()
    data = PairData(data.first, data.second, data.outcome, np.ones(60), data.items)
    board = rate(data, model="least-squares", prior=dict(enumerate(truth)), alpha=ALPHA)
    standard = (truth - truth.mean()) / truth.std()
    slope = board.ratings @ standard / 8  # u is orthogonal to the prior
    assert board.prior.slopes == pytest.approx((slope,))
    squares = []
    for k in range(60):
        kept = np.arange(60) != k
        r = written_out(data, standard[:, None], ALPHA * 59, kept)
        squares.append((data.outcome[k] - r[data.first[k]] + r[data.second[k]]) ** 2)
    share = slope**2 / (slope**2 + np.mean(squares) / (ALPHA * 60))
    assert board.prior.votes == pytest.approx(share * ALPHA * 60 * 8 / 2, rel=1e-6)
    assert board.prior.trust == pytest.approx(board.prior.votes / (board.prior.votes + 60))
    assert f"counts as much as {board.prior.votes:.0f} votes, compared with 60" in board.notes[0]
    noise = dict(enumerate(np.random.default_rng(1).normal(size=8)))
    assert (
        rate(data, model="least-squares", prior=noise, alpha=ALPHA).prior.votes
        < board.prior.votes / 3
    )


def test_an_upside_down_prior_gives_the_same_board_and_is_said():
    data, truth = votes()
    right = rate(data, prior=dict(enumerate(truth)))
    wrong = rate(data, prior=dict(enumerate(-5 * truth + 3)))
    np.testing.assert_allclose(right.ratings, wrong.ratings, atol=1e-9)
    assert wrong.prior.slopes[0] == pytest.approx(-right.prior.slopes[0])
    assert "contradict" in wrong.notes[0]
    assert "contradict" not in right.notes[0]


def test_intervals_are_the_posterior_where_noise_is_alike():
    """With squares of the residuals all equal, V is σ² A⁻¹ of what the ratings are made of."""
    data, truth = votes(n_votes=4000, n_items=5)
    noise = np.random.default_rng(0).normal(size=4000)
    outcome = truth[data.first] - truth[data.second] + noise
    data = PairData(data.first, data.second, outcome, np.ones(4000), data.items)
    B = (truth - truth.mean())[:, None] / truth.std()
    board = rate(data, prior=dict(enumerate(truth)), alpha=0.3)
    D = np.eye(5)[data.first] - np.eye(5)[data.second]
    rows = np.hstack([D, D @ B])
    A = rows.T @ rows + np.diag(np.r_[np.full(5, 0.3 * 4000), 1e-9])
    center = np.hstack([np.eye(5), B]) - np.hstack([np.eye(5), B]).mean(axis=0)
    expected = center @ np.linalg.inv(A) @ center.T
    np.testing.assert_allclose(
        board.spread.root @ board.spread.root.T, expected, atol=0.1 * expected.max()
    )


def test_items_of_one_side_only_have_a_stated_meaning():
    games = {"winner": ["a", "a", "b", "c"] * 5, "loser": ["b", "c", "c", "d"] * 5}
    judge = {"a": 3.0, "b": 2.0, "c": 1.0, "new": 5.0}
    board = rate(games, winner="winner", loser="loser", prior=judge)
    assert board["new"].n == 0
    assert board["new"].rank is not None
    assert board["new"].high - board["new"].low > board["b"].high - board["b"].low
    assert "does not rate 1 item, imputed as average" in board.notes[0]
    assert board.n_components == 1  # the prior joins what was never compared
    apart = {"winner": ["a", "c"] * 4, "loser": ["b", "new"] * 4}
    assert rate(apart, winner="winner", loser="loser", prior=judge).n_components == 1


def test_a_board_a_series_a_table_and_a_list_say_the_same():
    data, truth = votes()
    judge = rate(votes(seed=5, n_votes=300)[0])
    expected = rate(data, prior=judge).ratings
    rows = pd.DataFrame({"item": judge.items, "rating": judge.ratings, "other": "x"})
    same = [
        dict(zip(judge.items.tolist(), judge.ratings, strict=True)),
        pd.Series(judge.ratings, index=judge.items),
        rows,
        rows[["item", "rating"]].rename(columns={"item": "model", "rating": "gpt"}),
        [judge, judge],  # a prior that repeats another is one
    ]
    for prior in same:
        np.testing.assert_allclose(rate(data, prior=prior).ratings, expected, atol=1e-8)
    names = rate(data, prior=[judge, dict(enumerate(truth))]).prior.names
    assert names == ("the prior 1", "the prior 2")


@pytest.mark.parametrize(
    ("prior", "match"),
    [
        ({"x": 1.0, "y": 2.0}, "none of them"),
        (dict.fromkeys(range(8), 1.0), "same rating"),
        ([], "empty"),
        (7, "type int"),
        (pd.DataFrame({"item": [1, 1, 2], "rating": [1.0, 2.0, 3.0]}), "'1' twice"),
        ({0: np.inf, 1: 0.0}, "infinite"),
    ],
)
def test_priors_that_say_nothing_are_refused(prior, match):
    with pytest.raises((ValueError, TypeError), match=match):
        rate(votes()[0], prior=prior)


def test_prior_beside_features_is_refused():
    data, truth = votes()
    judge = dict(enumerate(truth))
    with pytest.raises(ValueError, match="pass one of them"):
        rate(data, prior=judge, features=np.eye(8))


def test_trust_never_runs_to_the_end_of_the_grid():
    alphas = np.logspace(-3, 3, 13)
    assert alpha_of_prior(np.logspace(-6, 6, 97), np.zeros(97), 3.0) == pytest.approx(
        1.5
    )  # b = 1/3
    for likelihoods in (-alphas, np.log(alphas)):  # they fall or rise for ever
        assert 1e-3 < alpha_of_prior(alphas, likelihoods, 1.0) < 1e3
    peaked = np.where(np.isclose(alphas, 10.0), 0.0, -1e3)
    assert alpha_of_prior(alphas, peaked, 1.0) == pytest.approx(10.0)


def test_a_good_prior_of_twenty_items_is_trusted_and_noise_is_not():
    """Means of 12 boards: Kendall's tau, trust, and how often intervals hold the truth."""
    tau, trust, inside = np.zeros((3, 3))
    for seed in range(12):
        rng = np.random.default_rng(seed)
        truth = rng.standard_normal(20)
        first = rng.integers(20, size=100)
        second = (first + 1 + rng.integers(19, size=100)) % 20
        outcome = truth[first] - truth[second] + 2 * rng.standard_normal(100)
        data = PairData(first, second, outcome, np.ones(100), np.arange(20))
        truth = truth - truth.mean()
        good = truth + 0.3 * rng.standard_normal(20)
        for k, prior in enumerate((good, -good, rng.standard_normal(20))):
            board = rate(data, prior=dict(enumerate(prior)))
            tau[k] += kendalltau(board.ratings, truth).statistic / 12
            trust[k] += board.prior.trust / 12
            error = np.abs(board.ratings - truth)
            width = board.spread.quantile(0.975) * board.spread.errors
            inside[k] += np.mean(error <= width) / 12
    assert tau[0] > tau[2] + 0.1
    assert tau[1] == pytest.approx(tau[0])
    assert trust[0] > 0.4 > 0.2 > trust[2]
    assert inside.min() > 0.92


def test_the_command_takes_the_board_of_another_judge(tmp_path):
    click_testing = pytest.importorskip("click.testing")
    from rankwise.cli.app import app

    def rank(name, *words):
        done = click_testing.CliRunner().invoke(app, ["rank", str(tmp_path / name), *words])
        assert done.exit_code == 0, done.output
        return done.stdout

    for name, seed in (("people.csv", 0), ("judge.csv", 1)):
        data, _ = votes(seed, n_votes=40)
        turned = data.outcome < 0
        winner, loser = (
            np.where(turned, data.second, data.first),
            np.where(turned, data.first, data.second),
        )
        table = pd.DataFrame({"winner": winner, "loser": loser})
        table.to_csv(tmp_path / name, index=False)
    rank("judge.csv", "-o", str(tmp_path / "gpt.csv"))
    text = rank("people.csv", "--prior", str(tmp_path / "gpt.csv"))
    assert "gpt counts as much as" in text
    people, judge = (pd.read_csv(tmp_path / f"{name}.csv") for name in ("people", "judge"))
    columns = {"winner": "winner", "loser": "loser"}
    board = rate(people, **columns, prior=rate(judge, **columns))
    shown = float(text.splitlines()[2].split(" … ")[0].split()[-2])  # before the interval
    assert shown == pytest.approx(board.rows[0].rating, abs=1e-3)
