"""next_pairs asks what teaches most, does not repeat itself, and knows when to stop."""

from __future__ import annotations

from importlib import import_module

import numpy as np
import pytest
from scipy.special import expit

from rankwise import CalibratedRanker, PairGraph, RankRLS
from rankwise.datasets import make_ranking
from rankwise.leaderboard import next_pairs, rate
from rankwise.leaderboard.inference.posterior import fit_posterior
from tests.leaderboard.data import random_games
from tests.oracle_uncertainty import logistic_posterior, posterior, worths


def comparisons(n_items, n_pairs, seed=0, spread=1.0, margin=1.0):
    rng = np.random.default_rng(seed)
    skill = spread * rng.standard_normal(n_items)
    a = rng.integers(n_items, size=n_pairs)
    b = (a + 1 + rng.integers(n_items - 1, size=n_pairs)) % n_items
    wins = rng.random(n_pairs) < expit(skill[a] - skill[b])
    ends = np.where(wins, a, b), np.where(wins, b, a)
    return PairGraph(*ends, magnitude=np.full(n_pairs, margin), n_items=n_items), skill


def of_differences(C):
    return np.diag(C)[:, None] + np.diag(C) - 2 * C


def all_variances(belief):
    n = belief.n_items
    i, j = np.triu_indices(n, 1)
    out = np.zeros((n, n))
    out[i, j] = belief.variances(i, j)
    return out + out.T


@pytest.mark.parametrize("p", [None, 3, 40])
def test_the_belief_of_margins_is_the_normal_posterior(p):
    graph, _ = comparisons(20, 50, margin=1.5)
    X = None if p is None else np.random.default_rng(1).standard_normal((20, p)) + 100
    belief = fit_posterior(graph, X, 0.7)
    mean, C, noise = posterior(20, graph.winner, graph.loser, graph.edge_target, 0.7, X)
    np.testing.assert_allclose(belief.mean, mean, atol=1e-10)
    np.testing.assert_allclose(belief.noise, noise, rtol=1e-9)
    np.testing.assert_allclose(all_variances(belief), noise * of_differences(C), atol=1e-9)
    center = np.eye(20) - 1 / 20
    np.testing.assert_allclose(
        belief.item_variances(), noise * np.diag(center @ C @ center), atol=1e-9
    )
    draws = belief.draw(np.arange(5), 20_000, np.random.default_rng(0))
    np.testing.assert_allclose(np.cov(draws.T), noise * C[:5, :5], atol=0.05 * noise * C.max())


@pytest.mark.parametrize("p", [None, 3, 40])
def test_the_belief_of_verdicts_is_laplace_at_the_most_probable_ratings(p):
    """A prior of 0.7 is that much of a tie with an average item, of curvature 1/4."""
    graph, _ = comparisons(20, 50, spread=3.0)
    graph = PairGraph(graph.winner, graph.loser, np.r_[np.ones(40), np.zeros(10)], n_items=20)
    X = None if p is None else np.random.default_rng(1).standard_normal((20, p)) + 100
    belief = fit_posterior(graph, X, 0.7)
    mean, C = logistic_posterior(graph, 0.7, X)
    np.testing.assert_allclose(belief.mean, mean, atol=1e-6)
    np.testing.assert_allclose(all_variances(belief), of_differences(C), rtol=1e-5, atol=1e-9)
    assert belief.curve.probability(np.array([0.3]), np.array([0.0])) == expit(0.3)


def test_an_observed_pair_changes_the_variances_as_an_answer_would():
    graph, _ = comparisons(12, 30, margin=1.5)
    belief = fit_posterior(graph, None, 1.0)
    noise, asked = belief.noise, [(3, 7), (7, 1), (3, 7)]
    for i, j in asked:
        belief.observe(i, j)
    ends = np.array(asked).T
    winner, loser = np.r_[graph.winner, ends[0]], np.r_[graph.loser, ends[1]]
    _, C, _ = posterior(12, winner, loser, np.ones(33), 1.0)
    np.testing.assert_allclose(all_variances(belief), noise * of_differences(C), atol=1e-10)


@pytest.mark.parametrize("k", [1, 8])
def test_the_pairs_are_the_best_one_after_the_other(k):
    graph, _ = comparisons(15, 40, seed=2, margin=1.5)
    asked = next_pairs(graph, k=k, random_state=0)
    winner, loser = graph.winner, graph.loser
    mean, C, noise = posterior(15, winner, loser, graph.edge_target, 1.0)
    done = set()
    for question in asked:
        worth = worths(mean, noise * C, 1.702 / np.sqrt(noise), 1 / noise)
        for i, j in done:
            worth[i, j] = 0
        i, j = sorted([question.first, question.second])
        assert worth[i, j] >= worth.max() * (1 - 1e-4)
        done.add((i, j))
        winner, loser = np.r_[winner, i], np.r_[loser, j]
        _, C, _ = posterior(15, winner, loser, np.ones(len(winner)), 1.0)
    assert len(done) == k


def test_lazy_choice_of_few_candidates_is_the_choice_among_all(monkeypatch):
    graph, _ = comparisons(30, 60, seed=3)
    for goal in ("order", "top"):
        wide = next_pairs(graph, k=20, goal=goal, random_state=0)
        monkeypatch.setattr(
            import_module("rankwise.leaderboard.inference.pair_suggestions"), "CANDIDATES", 5
        )
        narrow = next_pairs(graph, k=20, goal=goal, random_state=1)
        monkeypatch.undo()
        assert [{q.first, q.second} for q in narrow] == [{q.first, q.second} for q in wide]


def test_batches_do_not_repeat_and_end_with_the_last_pair():
    asked = next_pairs(PairGraph([], [], n_items=5), k=100, random_state=0)
    pairs = {frozenset([q.first, q.second]) for q in asked}
    assert len(asked) == len(pairs) == 10


def test_without_comparisons_any_pair_may_be_asked_first():
    first = [next_pairs(PairGraph([], [], n_items=6), k=1, random_state=s)[0] for s in range(300)]
    count = np.zeros((6, 6))
    for question in first:
        count[question.first, question.second] += 1
        assert question.probability == 0.5
    assert (count + np.eye(6) > 0).all()  # every pair, on both sides
    spread = next_pairs(PairGraph([], [], n_items=20), k=10, random_state=0)
    assert len({item for q in spread for item in (q.first, q.second)}) == 20


def test_boards_speak_of_their_labels_and_rankers_of_rows():
    graph, _ = comparisons(8, 40)
    named = PairGraph(graph.winner, graph.loser, graph.magnitude, items=list("abcdefgh"))
    board = rate(named)
    asked = next_pairs(board, k=3, random_state=0)
    numbers = next_pairs(graph, k=3, random_state=0)
    assert [(q.first, q.second) for q in asked] == [
        ("abcdefgh"[q.first], "abcdefgh"[q.second]) for q in numbers
    ]
    X, y, groups = make_ranking(n_queries=10, n_features=4, noise=0.5, random_state=0)[:3]
    model = CalibratedRanker(RankRLS()).fit(X, y, groups)
    (question,) = next_pairs(model, X[:30], k=1, random_state=0)
    i, j = question.first, question.second
    _, error = model.predict_difference(X[:30], *np.triu_indices(30, 1))
    p = model.predict_above(X[:30], *np.triu_indices(30, 1))
    (own,) = model.predict_difference(X[:30], i, j).error
    (odds,) = model.predict_above(X[:30], i, j)
    worth = own**2 * odds * (1 - odds)
    np.testing.assert_allclose(worth, (error**2 * p * (1 - p)).max(), rtol=1e-4)
    np.testing.assert_allclose([question.error, question.probability], [own, odds], rtol=1e-9)


def test_what_is_known_is_not_asked_though_its_variance_is_large():
    """Item 0 loses by far and is known least: pure variance would ask about it."""
    rng = np.random.default_rng(0)
    winner, loser = [1, 2, 3, 4], [0, 0, 0, 0]
    for _ in range(40):
        a, b = rng.choice([1, 2, 3, 4, 5], 2, replace=False)
        winner.append(a)
        loser.append(b)
    graph = PairGraph(winner, loser, magnitude=[8.0] * 4 + [1.0] * 40, n_items=6)
    belief = fit_posterior(graph, None, 1.0)
    i, j = np.triu_indices(6, 1)
    assert i[np.argmax(belief.variances(i, j))] == 0
    (question,) = next_pairs(graph, k=1)
    assert 0 not in (question.first, question.second)


def test_the_top_is_settled_when_it_is_beyond_doubt_and_open_before():
    graph, skill = comparisons(12, 3000, seed=1, spread=3.0)
    order = np.argsort(-skill)
    gap = np.argmax(-np.diff(skill[order])[1:9]) + 2
    sure = next_pairs(graph, goal="top", top=int(gap), random_state=0)
    assert sure.settled
    assert sure.confidence > 0.95
    few = next_pairs(graph.with_edges(np.arange(15)), goal="top", top=int(gap), random_state=0)
    assert not few.settled
    assert few.n_open > 0
    nothing = next_pairs(PairGraph([], [], n_items=12), goal="top", top=3, random_state=0)
    assert not nothing.settled


def test_the_order_is_settled_when_all_neighbors_are():
    winner = np.repeat([0, 1, 2], 60)
    graph = PairGraph(winner, winner + 1, n_items=4)
    asked = next_pairs(graph, level=0.9)
    assert asked.settled
    assert asked.n_open == 0
    tied = PairGraph(np.r_[winner, 3], np.r_[winner + 1, 4], n_items=6)
    assert next_pairs(tied, level=0.9).n_open >= 1


def test_top_questions_are_about_the_edge_of_the_top():
    graph, _ = comparisons(60, 1500, seed=5, spread=2.0)
    board = rate(graph, intervals=False)
    rank = {row.item: row.rank for row in board}
    asked = next_pairs(graph, k=10, goal="top", top=10, random_state=0)
    assert np.mean([abs(rank[item] - 10.5) for q in asked for item in (q.first, q.second)]) < 6


def test_more_items_than_can_be_looked_through_are_refused():
    with pytest.raises(ValueError, match="3,001 items; pairs are chosen among at most 3,000"):
        next_pairs(PairGraph([0], [1], n_items=3001))
    X, y, groups = make_ranking(n_queries=10, n_features=4, random_state=0)[:3]
    model = CalibratedRanker(RankRLS()).fit(X, y, groups)
    with pytest.raises(ValueError, match="at most 3,000"):
        next_pairs(model, np.zeros((3001, 4)))


def played(choose, n_items, n_pairs, seed):
    """Ratings and skills after so many comparisons that `choose` asked for."""
    rng = np.random.default_rng(seed)
    skill = 1.5 * rng.standard_normal(n_items)
    winner: list[int] = []
    loser: list[int] = []
    while len(winner) < n_pairs:
        for a, b in choose(PairGraph(winner, loser, n_items=n_items), rng):
            is_upset = rng.random() > expit(skill[a] - skill[b])
            winner.append(b if is_upset else a)
            loser.append(a if is_upset else b)
    return PairGraph(winner, loser, n_items=n_items), skill


def chosen(graph, rng):
    return [(asked.first, asked.second) for asked in next_pairs(graph, k=5, random_state=rng)]


def at_random(graph, rng):
    return [rng.choice(graph.n_items, 2, replace=False) for _ in range(5)]


@pytest.mark.slow
def test_choosing_finds_the_order_sooner():
    pairs, tau = np.triu_indices(20, 1), {}
    for choose in (chosen, at_random):
        games = [played(choose, 20, 50, seed) for seed in range(40)]
        found = [(fit_posterior(g, None, 1.0).mean, skill) for g, skill in games]
        order = [np.sign(r[pairs[0]] - r[pairs[1]]) for r, _ in found]
        truth = [np.sign(s[pairs[0]] - s[pairs[1]]) for _, s in found]
        tau[choose] = np.mean([np.mean(a * b) for a, b in zip(order, truth, strict=True)])
    assert tau[chosen] > tau[at_random]


@pytest.mark.slow
@pytest.mark.parametrize("choose", [chosen, at_random])
def test_the_choice_of_pairs_does_not_bias_a_board_of_the_right_alpha(choose):
    """Skills of spread 1.5 are what alpha = 1/(2 · 1.5² W) expects, however pairs are chosen.

    A difference of ratings of 1 is then one of skills on average; without alpha it is less.
    """
    products, squares, raw = [], [], []
    for seed in range(25):
        graph, skill = played(choose, 12, 60, seed)
        truth = skill - skill.mean()
        fitted = rate(graph, model="bradley-terry", alpha=1 / (4.5 * 60), intervals=False).ratings
        products.append(truth @ fitted)
        squares.append(fitted @ fitted)
        free = rate(graph, model="bradley-terry", alpha=1e-4, intervals=False).ratings
        raw.append(free @ truth / (free @ free))
    assert 0.8 < np.sum(products) / np.sum(squares) < 1.2  # about three standard errors
    assert np.mean(raw) < 0.85


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"k": 0}, "k=0"),
        ({"goal": "best"}, "goal='best'"),
        ({"goal": "top", "top": 9}, "top=9"),
        ({"level": 1.0}, "level=1.0"),
        ({"prior": 0.0}, "prior=0"),
        ({"X": np.ones((3, 2))}, "X has 3 rows"),
    ],
)
def test_wrong_arguments_are_explained(arguments, message):
    with pytest.raises(ValueError, match=message):
        next_pairs(PairGraph([0], [1], n_items=8), **arguments)


def test_what_knows_nothing_of_pairs_is_refused():
    with pytest.raises(TypeError, match="Wrap another ranker"):
        next_pairs(RankRLS())
    with pytest.raises(ValueError, match="there is 1 item"):
        next_pairs(PairGraph([], [], n_items=1))
    X, y, groups = make_ranking(n_queries=5, n_features=3, random_state=0)[:3]
    with pytest.raises(ValueError, match="X is missing"):
        next_pairs(CalibratedRanker(RankRLS()).fit(X, y, groups))


def test_the_posterior_mean_are_the_ratings_of_a_board_with_the_same_prior():
    graph = random_games(6, 60, seed=3, levels=(0.0, 1.0))
    prior = 0.7
    posterior = fit_posterior(graph, None, prior)
    alpha = prior / 8 / graph.n_pairs
    board = rate(graph, alpha=alpha, model="bradley-terry")
    origin = board.fitted.system.ratings_and_effects(board.fitted.unknowns)[0]
    np.testing.assert_allclose(posterior.mean, origin, atol=1e-5)
    variances = posterior.variances(np.array([0, 1]), np.array([1, 2]))
    assert (variances > 0).all()
