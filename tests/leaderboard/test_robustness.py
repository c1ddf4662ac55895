"""How many votes hold an order: downdates against refits, bounds against all subsets."""

from __future__ import annotations

from itertools import combinations, pairwise

import numpy as np
import pytest

from rankwise.datasets import PairData
from rankwise.leaderboard import rate
from rankwise.leaderboard.inference.robustness import VoteRemoval

ALPHA = 1e-2


def votes(seed, n_items=4, n_votes=10, margins=False):
    rng = np.random.default_rng(seed)
    first = np.r_[np.arange(n_items), rng.integers(n_items, size=n_votes - n_items)]
    second = (first + 1 + rng.integers(n_items - 1, size=n_votes)) % n_items
    outcome = rng.normal(size=n_votes) if margins else rng.choice([-1.0, 0.0, 1.0], n_votes)
    weight = rng.choice([0.5, 1.0, 2.0], n_votes)
    judges = rng.permutation(np.arange(n_votes) % 5)
    return PairData(first, second, outcome, weight, np.arange(n_items), judges=judges)


def refitted(data, kept, **options):
    """Ratings of the kept comparisons with the λ of all."""
    alpha = ALPHA * data.weight.sum() / data.weight[kept].sum()
    options = {"model": "least-squares", **options}
    return rate(data.take(kept), alpha=alpha, intervals=False, **options).ratings


def fewest_by_refits(data, a, b, units):
    """The fewest units without which a is not above b, all sets of them tried."""
    labels = np.unique(units)
    for size in range(1, len(labels)):
        for removed in combinations(labels, size):
            kept = np.flatnonzero(~np.isin(units, removed))
            ratings = refitted(data, kept)
            if ratings[a] <= ratings[b] + 1e-9:
                return size
    return None


@pytest.mark.parametrize("by", [None, "judge"])
@pytest.mark.parametrize("seed", range(6))
def test_bounds_hold_the_fewest_of_all_sets(seed, by):
    data = votes(seed, margins=seed % 2 == 1)
    board = rate(data, model="least-squares", alpha=ALPHA)
    a, b = np.argsort(-board.ratings)[:2]
    units = np.arange(data.n_pairs) if by is None else data.judges
    found = board.votes_to_flip(a, b, by=by)
    true = fewest_by_refits(data, a, b, units)
    assert found.of == len(np.unique(units))
    assert found.at_least >= 1
    if found.n is not None:
        assert found.at_least <= true <= found.n == len(found.removed)
        ratings = refitted(data, np.flatnonzero(~np.isin(units, found.removed)))
        assert ratings[a] <= ratings[b] + 1e-9


@pytest.mark.parametrize("options", [{}, {"side": True}, {"features": True}])
def test_the_gap_without_each_vote_is_that_of_a_refit(options):
    data = votes(1, n_items=6, n_votes=40)
    if "features" in options:
        options = {"features": np.random.default_rng(0).normal(size=(6, 3))}
    board = rate(data, model="least-squares", alpha=ALPHA, **options)
    a, b = np.argsort(-board.ratings)[:2]
    found = board.votes_to_flip(a, b)
    exact = board.fitted.leave_one_out()
    case = VoteRemoval(exact, exact.system.difference_contrast(a, b), 1e9)
    kept = np.ones(data.n_pairs, bool)
    for row in found.removed:
        outcome = case.counts.outcome_of_comparison[row]
        of = (
            case.counts.pair_of_outcome[outcome],
            case.counts.weight[outcome],
            case.counts.target[outcome],
        )
        before = case.lead
        case._update_without(*of)
        kept[row] = False
        ratings = refitted(data, np.flatnonzero(kept), **options)
        gap = board.ratings[a] - board.ratings[b] + case.lead - 1e9
        assert case.lead < before
        np.testing.assert_allclose(gap, ratings[a] - ratings[b], atol=1e-6)
    np.testing.assert_allclose(case.inverse_gram, case.inverse_gram.T, atol=1e-9)


def test_many_like_votes_go_at_once_and_the_order_turns():
    rng = np.random.default_rng(0)
    first, second = rng.integers(5, size=(2, 20_000))
    second = np.where(first == second, (first + 1) % 5, second)
    won = np.where(rng.random(20_000) < (1 + 0.2 * (second - first)) / 2, 1.0, -1.0)
    data = PairData(first, second, won, np.ones(20_000), np.arange(5))
    board = rate(data, model="least-squares", alpha=ALPHA)
    found = board.votes_to_flip(0, 1)
    assert found.at_least <= found.n <= 1.25 * found.at_least
    kept = np.setdiff1d(np.arange(20_000), found.removed)
    ratings = refitted(data, kept)
    assert ratings[0] <= ratings[1] + 1e-9
    one_more = refitted(data, np.r_[kept, found.removed[:100]])
    assert one_more[0] > one_more[1]


@pytest.mark.parametrize("by", [None, "judge"])
def test_bradley_terry_is_confirmed_by_a_refit(by):
    data = votes(3, n_items=6, n_votes=80)
    board = rate(data, model="bradley-terry", alpha=ALPHA)
    a, b = np.argsort(-board.ratings)[:2]
    found = board.votes_to_flip(b, a, by=by)  # whoever is above
    units = np.arange(data.n_pairs) if by is None else data.judges
    kept = np.flatnonzero(~np.isin(units, found.removed))
    ratings = refitted(data, kept, model="bradley-terry")
    assert ratings[a] <= ratings[b]
    assert found.at_least is None


def test_the_only_vote_between_two_holds_them_alone():
    games = {"winner": ["a", "a", "b", "c"], "loser": ["b", "b", "c", "d"]}
    board = rate(games, winner="winner", loser="loser")
    assert board.votes_to_flip("c", "d").n == 1
    assert board.votes_to_flip("c", "d").removed.tolist() == [3]
    assert board.votes_to_flip("a", "b").n == 2


def test_holds_by_is_to_the_next_place_and_asks_for_votes():
    board = rate(votes(0, n_items=5, n_votes=60), model="least-squares", alpha=ALPHA)
    order = [row.item for row in board]
    assert list(board.votes_to_flip_next) == order[:-1]
    for a, b in list(pairwise(order))[1:]:
        assert board.votes_to_flip_next[a].n == board.votes_to_flip(a, b).n
    first = [board.votes_to_flip(order[0], b) for b in order[1:]]
    assert board.votes_to_flip_next[order[0]].n == min(found.n for found in first)
    assert board.votes_to_flip_next[order[0]].at_least == min(found.at_least for found in first)
    assert rate(votes(0), intervals=False).votes_to_flip_next == {}
    ties = PairData(*np.array([[0, 1, 2], [1, 2, 0]]), np.zeros(3), np.ones(3), np.arange(3))
    assert [found.n for found in rate(ties).votes_to_flip_next.values()] == [0, 0]
    with pytest.raises(ValueError, match="have no clusters"):
        board.votes_to_flip(*order[:2], by="cluster")
    with pytest.raises(ValueError, match="by='prompt'"):
        board.votes_to_flip(*order[:2], by="prompt")


@pytest.mark.parametrize("weight", [1.0, 0.1, 0.3, 0.7])
@pytest.mark.parametrize("alpha", [1e-8, 0.01])
def test_equal_ratings_are_turned_whatever_rounding_says(weight, alpha):
    """Without wins − losses of its votes the first item is level with the second."""
    for wins, losses in [(1, 0), (2, 0), (2, 1), (4, 3), (7, 2), (9, 5)]:
        n = wins + losses
        first, second = np.r_[np.zeros(n, int), 1, 2], np.r_[np.ones(n, int), 2, 1]
        outcome = np.r_[np.ones(wins), -np.ones(losses), 1, 1]
        votes = PairData(first, second, outcome, np.full(n + 2, weight), np.arange(3))
        board = rate(votes, model="least-squares", alpha=alpha, intervals=False)
        held = board.votes_to_flip(0, 1)
        assert held.n == wins - losses
        assert held.at_least <= held.n


# -- bounds against every subset of the votes -----------------------------------------------------


def is_turned(data, kept, a, b, alpha):
    """Whether a is not above b after a refit, or no chain of comparisons joins them any more."""
    n = data.n_items
    laplacian, right = np.zeros((n, n)), np.zeros(n)
    for k in kept:
        i, j, weight = data.first[k], data.second[k], data.weight[k]
        laplacian[[i, j], [i, j]] += weight
        laplacian[[i, j], [j, i]] -= weight
        right[i] += weight * data.outcome[k]
        right[j] -= weight * data.outcome[k]
    if alpha < 1e-6:
        is_joined = np.linalg.matrix_power(np.eye(n) + (laplacian != 0), n)[a, b] > 0
        if not is_joined:
            return True
    ratings = np.linalg.solve(laplacian + alpha * data.weight.sum() * np.eye(n), right)
    return ratings[a] - ratings[b] <= 1e-7 * np.abs(ratings).max()


def fewest_of_all_subsets(data, a, b, alpha):
    every = range(data.n_pairs)
    for size in range(data.n_pairs):
        for removed in combinations(every, size):
            kept = [k for k in every if k not in removed]
            if is_turned(data, kept, a, b, alpha):
                return size
    return data.n_pairs


@pytest.mark.parametrize("alpha", [1e-8, 1e-2])
@pytest.mark.parametrize("margins", [False, True])
def test_bounds_are_on_both_sides_of_the_fewest_of_all_subsets(margins, alpha):
    for seed in range(24):
        data = votes(seed, n_items=3 + seed % 2, n_votes=6 + seed % 3, margins=margins)
        board = rate(data, alpha=alpha, model="least-squares")
        a, b, *_ = np.argsort(-board.ratings)
        held = board.votes_to_flip(a, b)
        fewest = fewest_of_all_subsets(data, a, b, alpha)
        assert held.at_least <= fewest
        if held.n is not None:
            assert fewest <= held.n == len(held.removed)
            kept = np.setdiff1d(np.arange(data.n_pairs), held.removed)
            assert is_turned(data, kept, a, b, alpha)


@pytest.mark.parametrize("alpha", [1e-8, 1e-2])
def test_bounds_of_places_are_on_both_sides_of_the_fewest_of_all_subsets(alpha):
    for seed in range(16):
        data = votes(seed, n_items=4, n_votes=7)
        board = rate(data, alpha=alpha, model="least-squares")
        place = {row.item: k for k, row in enumerate(board)}
        order = sorted(range(4), key=place.get)
        for above, below in list(pairwise(order))[1:]:
            held = board.votes_to_flip_next[above]
            fewest = fewest_of_all_subsets(data, above, below, alpha)
            assert held.at_least <= fewest
            assert held.n is None or fewest <= held.n
        held = board.votes_to_flip_next[order[0]]
        fewest = min(fewest_of_all_subsets(data, order[0], b, alpha) for b in order[1:])
        assert held.at_least <= fewest
        assert held.n is None or fewest <= held.n


def test_a_shared_first_place_holds_by_nothing():
    games = {"winner": list("ABAABBAB"), "loser": list("BACCCCCC")}
    held = rate(games, model="least-squares").votes_to_flip_next["A"]
    assert (held.n, held.at_least, str(held)) == (0, 0, "0")
