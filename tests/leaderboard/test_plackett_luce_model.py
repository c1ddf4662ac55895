"""Boards of rankings: Plackett and Luce's model against SciPy, choix and refits; bad input."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import minimize

from rankwise.datasets import read_pairs
from rankwise.leaderboard import rate, rate_groups
from rankwise.report import board_page
from tests.leaderboard.data import random_lists
from tests.oracle_boards import plackett_luce_loss


def long_table(lists):
    rows = [
        (k, item, place)
        for k, ranked in enumerate(lists)
        for place, entry in enumerate(ranked, 1)
        for item in (entry if isinstance(entry, tuple) else [entry])
    ]
    return dict(
        zip(("race", "driver", "position"), map(list, zip(*rows, strict=True)), strict=True)
    )


COLUMNS = {"ranking": "race", "item": "driver", "place": "position"}


@pytest.mark.parametrize("shared", [False, True])
def test_ratings_have_the_greatest_likelihood(shared):
    lists, alpha = random_lists(shared=shared), 0.01
    board = rate(lists, alpha=alpha)
    table = long_table(lists)
    item = np.searchsorted(board.items, table["driver"])
    place, race = np.array(table["position"], float), np.array(table["race"])
    placed = np.ones(len(item), bool)

    def slow(r):
        total, n = plackett_luce_loss(r[item], -place, race, placed)
        return total / n + alpha * r @ r

    best = minimize(slow, np.zeros(5), method="BFGS", options={"gtol": 1e-9})
    np.testing.assert_allclose(board.ratings, best.x, atol=1e-6)


def test_strict_rankings_are_those_of_choix():
    choix = pytest.importorskip("choix")
    lists = random_lists(1)
    board = rate(lists, alpha=1e-12)
    number = {name: k for k, name in enumerate(board.items.tolist())}
    numbered = [[number[item] for item in ranked] for ranked in lists]
    peer = choix.opt_rankings(5, numbered, alpha=0.0, tol=1e-12)
    np.testing.assert_allclose(board.ratings, peer - peer.mean(), atol=1e-6)


def test_rankings_of_two_are_bradley_and_terrys_board():
    lists = [one[:2] for one in random_lists(2)]
    pairs = {"winner": [a for a, _ in lists], "loser": [b for _, b in lists]}
    listed, paired = rate(lists, alpha=1e-3), rate(pairs, model="bradley-terry", alpha=1e-3)
    np.testing.assert_allclose(listed.ratings, paired.ratings, atol=1e-6)
    np.testing.assert_allclose(listed.spread.errors, paired.spread.errors, rtol=0.02)


def test_errors_are_those_of_a_newton_step_without_each_ranking():
    lists, alpha = random_lists(3, n=25), 0.05
    board = rate(lists, alpha=alpha)
    model = board.fitted
    base, changes = board.ratings, []
    W = model.loss.total_weight
    for k in range(25):
        rest = rate(lists[:k] + lists[k + 1 :], alpha=alpha, intervals=False)
        scaled = alpha * W / rest.fitted.loss.total_weight  # the same λ
        changes.append(
            rate(lists[:k] + lists[k + 1 :], alpha=scaled, intervals=False).ratings - base
        )
    V = 24 / 25 * sum(np.outer(c, c) for c in changes)
    np.testing.assert_allclose(board.spread.errors, np.sqrt(np.diag(V)), rtol=0.05)


def test_least_squares_weigh_the_pairs_of_n_items_by_2_over_n():
    lists = random_lists(4)
    board = rate(lists, model="least-squares", alpha=1e-6)
    winner, loser, weight, race = [], [], [], []
    for k, ranked in enumerate(lists):
        for i, a in enumerate(ranked):
            for b in ranked[i + 1 :]:
                winner, loser = [*winner, a], [*loser, b]
                weight, race = [*weight, 2 / len(ranked)], [*race, k]
    pairs = {"winner": winner, "loser": loser, "weight": weight, "race": race}
    other = rate(pairs, model="least-squares", cluster="race", alpha=1e-6)
    np.testing.assert_allclose(board.ratings, other.ratings, atol=1e-12)
    np.testing.assert_allclose(board.spread.errors, other.spread.errors, rtol=1e-9)


def test_long_tables_wide_ballots_and_lists_say_the_same(tmp_path):
    lists = random_lists(5, n=20)
    board = rate(lists, alpha=0.01)
    table = long_table(lists)
    np.testing.assert_allclose(rate(table, alpha=0.01, **COLUMNS).ratings, board.ratings)
    header = ["first", "second", "third", "fourth", "fifth"]
    lines = [",".join([*ranked, *[""] * (5 - len(ranked))]) for ranked in lists]
    file = tmp_path / "ballots.csv"
    file.write_text("\n".join([",".join(header), *lines]), encoding="utf-8")
    data = read_pairs(file, places=header)
    np.testing.assert_allclose(rate(data, alpha=0.01).ratings, board.ratings)


def test_items_without_a_place_are_below_all_others_in_no_order():
    table = {
        "race": [1, 1, 1, 1, 2, 2, 2],
        "driver": ["a", "b", "c", "d", "c", "a", "d"],
        "position": [1, 2, "DNF", None, 1, 1, "dsq"],
    }
    data = rate(table, alpha=0.1, **COLUMNS).comparisons
    said = {
        (data.items[i], data.items[j], o)
        for i, j, o in zip(data.first, data.second, data.outcome, strict=True)
    }
    assert ("c", "d", 0.0) not in said
    assert ("b", "d", 1.0) in said
    assert ("c", "a", 0.0) in said
    board = rate([["a", "b"], ["b"], ["a", "c"]], unlisted="last", alpha=0.1)
    assert board["a"].n == 3
    assert board["b"].wins == 3


def test_rankings_by_group_and_with_weights():
    lists = random_lists(6, n=20)
    table = long_table(lists)
    table["year"] = [2000 + race % 2 for race in table["race"]]
    boards = rate_groups(table, group="year", alpha=0.01, **COLUMNS)
    np.testing.assert_allclose(boards[2001].ratings, rate(lists[1::2], alpha=0.01).ratings)
    twice = rate({**table, "weight": [2] * len(table["race"])}, alpha=0.01, **COLUMNS)
    np.testing.assert_allclose(twice.ratings, rate(lists, alpha=0.01).ratings, atol=1e-9)


def test_the_chosen_alpha_is_larger_where_rankings_say_less():
    rng = np.random.default_rng(7)
    noise = [list(rng.permutation(list("abcdefgh"))) for _ in range(12)]
    sure = [list("abcdefgh") for _ in range(6)] + [list("bacdefhg") for _ in range(6)]
    assert rate(noise, alpha="auto").alpha > rate(sure, alpha="auto").alpha


def test_the_page_and_the_table_of_rankings():
    board = rate(random_lists(8))
    assert "60 rankings of 5 items by plackett-luce" in str(board)
    assert "plackett-luce" in str(board_page(board))


@pytest.mark.parametrize(
    ("table", "message"),
    [
        (
            {"race": [1, 1], "driver": ["a", "a"], "position": [1, 2]},
            "row 1 .*'a' is in the ranking 1 twice",
        ),
        ({"race": [1, 1], "driver": ["a", "b"], "position": [1, "fast"]}, "row 1 .*'fast'"),
        ({"race": [1, 1], "driver": ["a", "b"], "position": [-1, 1]}, "row 0 .*'-1'"),
        ({"race": [1, 2], "driver": ["a", "b"], "position": [1, 1]}, "no ranking has two items"),
        (
            {"race": [1, 1], "driver": ["a", "b"], "position": ["DNF", ""]},
            "no ranking has two items",
        ),
    ],
)
def test_bad_rankings_are_refused_with_the_row(table, message):
    with pytest.raises(ValueError, match=message):
        rate(table, **COLUMNS)


def test_what_does_not_go_with_rankings_is_refused():
    lists = random_lists(9)
    with pytest.raises(ValueError, match="two sides"):
        rate(lists, side=True)
    with pytest.raises(ValueError, match="RankLogistic"):
        rate(lists, features=np.eye(5))
    with pytest.raises(ValueError, match="for rankings"):
        rate({"winner": ["a"], "loser": ["b"]}, model="plackett-luce")
    with pytest.raises(TypeError, match="expected a list of items"):
        rate(["ab", "ba"])
    with pytest.warns(UserWarning, match="1 of 3 rankings have one item"):
        rate([["a", "b"], ["b", "a"], ["a"]])


def test_races_taken_apart_without_clusters_are_warned_of():
    lists = [one for one in random_lists(10, n=40, names="abcdefgh") if len(one) > 3]
    rows = [
        (a, b, k) for k, one in enumerate(lists) for i, a in enumerate(one) for b in one[i + 1 :]
    ]
    winner, loser, race = map(list, zip(*rows, strict=True))
    pairs = {"winner": winner, "loser": loser, "race": race}
    with pytest.warns(UserWarning, match="races split into pairs"):
        rate(pairs)
    rate(pairs, cluster="race")
    rng = np.random.default_rng(0)
    first, second = rng.integers(0, 3, 400), rng.integers(1, 3, 400)
    rate({"winner": first, "loser": (first + second) % 3})
