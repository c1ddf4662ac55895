"""Reading a board: scales, anchors, thin items, tiers, formats, judges, head-to-head results."""

from __future__ import annotations

import csv
import io
import json
import math
import warnings
from dataclasses import replace
from importlib import import_module
from itertools import permutations

import numpy as np
import pytest
from scipy import stats

from rankwise import PairGraph
from rankwise.datasets import PairData
from rankwise.leaderboard import rate, rate_groups
from rankwise.leaderboard.judges import _slope_by_judge, krippendorff
from rankwise.leaderboard.render import FORMATS, footnotes, tables
from rankwise.uncertainty.possible_ranks import CovarianceRoot, joint_quantile
from tests.leaderboard.data import consistent_games, random_games


def votes(n_items=5, n=2000, seed=0, strength=0.8):
    """Wins and losses with chances (1 + margin) / 2, sides at random."""
    rng = np.random.default_rng(seed)
    truth = np.linspace(strength, -strength, n_items) / 2
    first = rng.integers(n_items, size=n)
    second = (first + 1 + rng.integers(n_items - 1, size=n)) % n_items
    won = rng.random(n) < (1 + truth[first] - truth[second]) / 2
    return PairData(first, second, np.where(won, 1.0, -1.0), np.ones(n), np.arange(n_items))


# -- scales -------------------------------------------------------------------------------------


def test_scales_are_multiples_of_each_other():
    data = votes()
    margin, logit, elo = (rate(data, scale=scale) for scale in ("margin", "logit", "elo"))
    np.testing.assert_allclose(logit.ratings, margin.ratings)
    np.testing.assert_allclose(elo.ratings - 1000, logit.ratings * 400 / math.log(10))
    np.testing.assert_allclose(elo.spread.errors, 400 / math.log(10) * margin.spread.errors)
    for k in range(5):
        assert elo[k].rank == margin[k].rank
        assert (elo[k].best_rank, elo[k].worst_rank) == (margin[k].best_rank, margin[k].worst_rank)
    assert elo.above(0, 1) == pytest.approx(margin.above(0, 1))
    ratio = elo.expected_margin(0, 1).value / margin.expected_margin(0, 1).value
    assert ratio == pytest.approx(400 / math.log(10))
    assert margin.ratings.mean() == pytest.approx(0, abs=1e-8)
    assert elo.ratings.mean() == pytest.approx(1000)


def test_an_anchor_has_the_base_rating_and_no_error():
    data = votes()
    board = rate(data, scale="elo", anchor=2)
    assert (board[2].rating, board[2].low, board[2].high) == (1000, 1000, 1000)
    plain = rate(data, scale="elo")
    assert board[0].rating - 1000 == pytest.approx(plain[0].rating - plain[2].rating)
    margin = plain.expected_margin(0, 2)
    assert (board[0].low - 1000, board[0].high - 1000) == pytest.approx((margin.low, margin.high))
    assert board.above(0, 1) == pytest.approx(plain.above(0, 1))
    assert [row.best_rank for row in board] == [row.best_rank for row in plain]
    assert any("2 is the base" in line for line in footnotes(board))
    assert board.to_dict()["anchor"] == 2


def test_log_odds_are_not_called_margins():
    data = votes()
    board = rate(data, anchor=2, side=True)
    assert "ratings: log odds; 2 is the base" in footnotes(board)
    assert "margin" not in repr(board)
    assert board.to_dict()["scale"] == "logit"
    margins = rate(data, model="least-squares", side=True)
    assert "effects on the margin of the first item" in repr(margins)


def test_an_anchor_moves_only_the_items_that_it_can_be_compared_with():
    games = PairGraph([0, 0, 1, 3], [1, 2, 2, 4])
    with pytest.warns(UserWarning, match="never compared"):
        board = rate(games, model="least-squares", anchor=0, alpha=1e-3)
    assert board[0].rating == 0
    assert board[3].rating == pytest.approx(0.499, abs=1e-3)


def test_effects_are_on_the_scale_of_the_board():
    data = votes()
    rng = np.random.default_rng(0)
    options = {"covariates": {"length": rng.normal(size=2000)}, "side": True}
    X = rng.normal(size=(5, 2))
    for features in (None, X):
        one = rate(data, **options, features=features)
        two = rate(data, **options, features=features, scale="elo", anchor=1)
        factor = 400 / math.log(10)
        for small, large in zip(one.effects, two.effects, strict=True):
            assert np.divide(large[1:], small[1:]) == pytest.approx(factor)


@pytest.mark.parametrize(
    "options, message",
    [
        ({"scale": "points"}, "scale='points' is unknown"),
        ({"scale": "elo"}, "for wins, ties and losses, but the outcomes are margins"),
        ({"anchor": "Zoe"}, "anchor='Zoe' is not on the board; its items are 0, 1, 2"),
        ({"order": "name"}, "order='name' is unknown"),
        ({"order": "lower", "intervals": False}, "needs intervals"),
        ({"min_comparisons": -1}, "min_comparisons=-1"),
        ({"ties": "davidson"}, "least squares takes a tie as half a win"),
        ({"model": "glicko"}, "model='glicko' is unknown"),
        ({"reweight": True}, "column of judges with judge="),
    ],
)
def test_rate_refuses_wrong_options(options, message):
    with pytest.raises(ValueError, match=message):
        rate(random_games(levels=(1.0, 2.5)), **options)


# -- thin items ---------------------------------------------------------------------------------


def with_newcomers():
    """A well-known field, 'lucky' with two wins that agree, 'once' with a single win."""
    games = consistent_games(np.array([1.0, 0.5, 0.0, -0.5, -1.0]), 400, seed=0)
    names = np.array(["a", "b", "c", "d", "e", "lucky", "once"])
    winner = np.r_[games.winner, 5, 5, 6]
    loser = np.r_[games.loser, 3, 4, 4]
    return PairGraph(winner, loser, np.r_[games.magnitude, 2.5, 3.0, 2.2], items=names)


def test_a_few_comparisons_that_agree_are_not_sure():
    board = rate(with_newcomers())
    assert board["lucky"].rank == 1  # above the best of the field, by rating
    for name in ("lucky", "once"):
        row = board[name]
        assert row.thin
        assert row.worst_rank > 1
        assert row.high - row.low > 3 * (board["a"].high - board["a"].low)
    assert not board["a"].thin
    assert "lucky †" in repr(board)
    assert any(line.startswith("† few data") for line in footnotes(board))
    error = board.spread.error_of_difference(5, 4)
    assert error > 0.6  # two comparisons with noise of 1


def test_fewer_than_five_comparisons_are_thin_and_five_are_not():
    ties = [0, 0, 0, 1, 0, 0, 0, 0, 1]  # so that they did not all end alike
    winner = ["four"] * 4 + ["five"] * 5
    board = rate({"winner": winner, "loser": ["field"] * 9, "tie": ties})
    assert (board["four"].n, board["five"].n) == (4, 5)
    assert (board["four"].thin, board["five"].thin) == (True, False)
    assert (
        "† few data: fewer than 5 comparisons, or only wins, only ties or only losses"
        in footnotes(board)
    )


def test_a_few_games_that_fit_exactly_settle_nothing():
    games = {"winner": ["Ann", "Bob", "Ann"], "loser": ["Bob", "Cleo", "Cleo"], "tie": [0, 1, 0]}
    for model in ("least-squares", "bradley-terry"):
        board = rate(games, model=model)
        assert board.circles.unexplained < 1e-6
        assert all((row.best_rank, row.worst_rank) == (1, 3) for row in board)


def test_an_item_that_only_wins_is_finite_and_marked():
    games = votes(n=200).graph()
    winner, loser = np.r_[games.winner, np.full(20, 5)], np.r_[games.loser, np.arange(20) % 5]
    row = rate(PairGraph(winner, loser))[5]
    assert np.isfinite(row.rating)
    assert (row.thin, row.wins, row.losses) == (True, 20, 0)


def test_items_below_the_line_have_no_rank_and_take_none():
    board = rate(with_newcomers(), min_comparisons=5)
    assert [row.item for row in board] == ["a", "b", "c", "d", "e", "lucky", "once"]
    assert [row.rank for row in board] == [1, 2, 3, 4, 5, None, None]
    for name in ("lucky", "once"):
        row = board[name]
        assert (row.best_rank, row.worst_rank, row.tier) == (None, None, None)
        assert row.low < row.rating < row.high
    assert all(row.worst_rank <= 5 for row in board.rows[:5])
    assert any("below the line" in line for line in footnotes(board))
    lines = repr(board).splitlines()
    assert lines[6].split() == ["–", "–"]
    assert rate(with_newcomers(), min_comparisons=5, intervals=False)["once"].rank is None


def test_the_order_may_go_by_the_lower_end():
    board = rate(with_newcomers(), order="lower")
    low = [row.low for row in board]
    assert low == sorted(low, reverse=True)
    assert [row.rank for row in board] == list(range(1, 8))
    assert board.rows[0].item == "a"


# -- ranks and tiers ------------------------------------------------------------------------------


def test_tiers_follow_from_the_differences():
    board = rate(consistent_games(np.linspace(1, -1, 8), 300, seed=3))
    quantile = stats.t.ppf(0.975, board.spread.freedom)

    def sure(a, b):
        margin = board.ratings[a] - board.ratings[b]
        return margin > quantile * board.spread.error_of_difference(a, b)

    order = [row.item for row in board]
    tier, leader = 1, order[0]
    for item in order:
        if sure(leader, item):
            tier, leader = tier + 1, item
        assert board[item].tier == tier
    assert tier > 1


def test_thin_items_open_no_tier():
    """The first one is known badly; nobody is surely below it, but the tiers do not begin there."""
    winner, loser = ["new", "new", "new", "a"], ["a", "a", "a", "new"]
    for better, worse in ("ab", "bc", "ac"):
        winner += [better] * 200 + [worse] * 100
        loser += [worse] * 200 + [better] * 100
    board = rate(PairGraph(winner, loser))
    assert board.rows[0].item == "new"
    assert [board[item].tier for item in ("new", *"abc")] == [None, 1, 2, 3]
    assert board.expected_margin("a", "c").low > 0  # two items of a tier may be told apart


def test_the_joint_quantile_is_that_of_the_largest_error_of_all_pairs():
    rng = np.random.default_rng(0)
    root, lists = rng.normal(size=(7, 5)), np.array([1, 1, 1, 1, 2, 2, 2])
    spread = CovarianceRoot(root, 12)
    largest = []
    for _ in range(4000):
        z = root @ rng.standard_normal(5) / np.sqrt(rng.chisquare(12) / 12)
        pairs = [(i, j) for i in range(7) for j in range(i) if lists[i] == lists[j]]
        errors = [abs(z[i] - z[j]) / np.linalg.norm(root[i] - root[j]) for i, j in pairs]
        largest.append(max(errors))
    found = joint_quantile(spread, lists, 0.9)
    assert found == pytest.approx(np.quantile(largest, 0.9), rel=0.05)
    assert spread.quantile(0.95) < found < spread.quantile(1 - 0.05 / 9)  # one pair; Bonferroni's


def test_ranks_at_once_hold_those_of_each_item_and_all_true_ranks():
    n_held = 0
    for seed in range(40):
        data = votes(n_items=8, n=400, seed=seed, strength=0.3)
        board = rate(data)
        rows = [board[k] for k in range(8)]
        assert all(row.best_of_all <= row.best_rank for row in rows)
        assert all(row.worst_of_all >= row.worst_rank for row in rows)
        n_held += all(row.best_of_all <= k + 1 <= row.worst_of_all for k, row in enumerate(rows))
    assert n_held >= 37


def krippendorff_by_coincidences(first, second, outcome):
    """As in Krippendorff 2011: coincidences of values, each unit in both directions."""
    units = {}
    for i, j, value in zip(first, second, outcome, strict=True):
        units.setdefault((i, j), []).append(value)
        units.setdefault((j, i), []).append(-value)
    coincidence = {}
    for values in units.values():
        for a, b in permutations(range(len(values)), 2):
            key = values[a], values[b]
            coincidence[key] = coincidence.get(key, 0) + 1 / (len(values) - 1)
    totals = {}
    for (value, _), number in coincidence.items():
        totals[value] = totals.get(value, 0) + number
    n = sum(totals.values())
    observed = sum(number * (a - b) ** 2 for (a, b), number in coincidence.items()) / n
    every = [(a, b) for a in totals for b in totals]
    expected = sum(totals[a] * totals[b] * (a - b) ** 2 for a, b in every) / (n * (n - 1))
    return 1 - observed / expected


@pytest.mark.parametrize("seed", range(3))
def test_krippendorffs_alpha_is_that_of_coincidences(seed):
    rng = np.random.default_rng(seed)
    data = votes(n_items=4, n=30, seed=seed)
    outcome = rng.choice([-1.0, 0.0, 1.0], 30)
    data = replace(data, outcome=outcome, judges=outcome < 0)
    expected = krippendorff_by_coincidences(data.first, data.second, outcome)
    board = rate(data)
    assert board.krippendorff == pytest.approx(expected)
    assert krippendorff(data.second, data.first, -outcome) == pytest.approx(expected)
    assert krippendorff(np.array([0, 1]), np.array([1, 0]), np.array([1.0, -1.0])) == 1
    assert krippendorff(np.array([0, 1]), np.array([1, 2]), np.array([1.0, -1.0])) is None
    assert rate(votes(n=30)).krippendorff is None


def test_possible_ranks_of_very_many_items_are_wider(monkeypatch):
    games = consistent_games(np.linspace(1, -1, 8), 300, seed=3)
    exact = rate(games)
    monkeypatch.setattr(import_module("rankwise.uncertainty.possible_ranks"), "COVARIANCE_LIMIT", 3)
    wide = rate(games)
    for k in range(8):
        assert wide[k].best_rank <= exact[k].best_rank
        assert wide[k].worst_rank >= exact[k].worst_rank
    overlap = [1 + sum(row.low > exact[k].high for row in exact) for k in range(8)]
    assert [wide[k].best_rank for k in range(8)] == overlap


@pytest.mark.slow
def test_possible_ranks_hold_the_true_ones_on_average():
    inside = []
    for spread in (0.02, 0.3, 1.0):
        for seed in range(25):
            truth = spread * np.random.default_rng(seed).standard_normal(12)
            board = rate(consistent_games(truth, 300, seed))
            rank = 1 + np.sum(truth > truth[:, None], axis=1)
            inside += [board[k].best_rank <= rank[k] <= board[k].worst_rank for k in range(12)]
    assert np.mean(inside) > 0.95


# -- formats ------------------------------------------------------------------------------------


def test_names_stay_in_their_cells():
    """Line breaks, escape sequences, wide characters and the special characters of each format."""
    odd = ["a\nb", "\x1b[31mred", "日本語", "<b>&amp;|$x$~_%", "c\r\u2028d"]
    games = {"winner": odd * 2, "loser": (odd[1:] + odd[:1]) * 2}
    board = rate(games, anchor="a\nb")
    text, markdown, latex = (board.to_text(f) for f in ("text", "markdown", "latex"))
    assert not set("\x1b\r\u2028") & set(text + markdown + latex)
    assert "a b is the base" in text
    lines = text.splitlines()[1:6]
    assert len({line.index("2/0/2") + 3 * ("日本語" in line) for line in lines}) == 1
    assert r"\<b\>\&amp;\|\$x\$\~\_%" in markdown
    assert r"\textless{}b\textgreater{}\&amp;\textbar{}\$x\$\textasciitilde{}\_\%" in latex
    assert all(line.startswith(("\\", "%", "1 &", "rank &")) for line in latex.splitlines() if line)


def test_every_format_has_every_item():
    names = np.array(["a&b", "x|y", "<i>", "50%", "_z_"])
    board = rate(replace(votes(n=100), items=names), side=True)
    assert set(FORMATS) == {"text", "markdown", "csv", "json", "latex", "html"}
    assert list(board.to_frame()["item"]) == [row.item for row in board]
    rows = list(csv.DictReader(io.StringIO(board.to_text("csv"))))
    assert [row["item"] for row in rows] == [row.item for row in board]
    assert [float(row["rating"]) for row in rows] == [row.rating for row in board]
    assert json.loads(board.to_text("json")) == json.loads(json.dumps(board.to_dict()))
    markdown = board.to_text("markdown")
    assert r"x\|y" in markdown
    assert r"\<i\>" in markdown
    assert markdown.splitlines()[1].startswith("| --: | :-- | --: |")
    latex = board.to_text("latex")
    assert all(text in latex for text in (r"a\&b", r"50\%", r"\_z\_", r"\begin{tabular}{rlrr"))
    page = board.to_text("html")
    assert "&lt;i&gt;" in page
    assert "<i>" not in page
    assert "effects on the log odds" in repr(board)
    with pytest.raises(ValueError, match="format='word' is unknown"):
        board.to_text("word")


def test_lines_fit_a_terminal():
    board = rate(votes(), side=True, scale="elo", anchor=0)
    assert max(map(len, repr(board).splitlines())) <= 80


# -- head to head ---------------------------------------------------------------------------------


def test_head_to_head_is_what_was_seen_and_what_was_expected():
    data = votes(n=60)
    length = np.random.default_rng(0).normal(size=60)
    board = rate(data, covariates={"length": length}, side=True)
    found = board.head_to_head
    side, slope = (effect.value for effect in board.effects)
    margin = board.ratings[data.first] - board.ratings[data.second] + side + slope * length
    assert found.n.sum() == data.n_pairs
    for a, b, n, observed, expected in zip(*found, strict=True):
        forth = (data.first == a) & (data.second == b)
        met = forth | (data.first == b) & (data.second == a)
        sign = np.where(forth, 1, -1)[met]
        assert n == met.sum()
        assert observed == pytest.approx(np.mean(sign * data.outcome[met]))
        assert expected == pytest.approx(np.mean(sign * np.tanh(margin[met] / 2)))


# -- judges -------------------------------------------------------------------------------------


def judged(seed=0, n_judges=20, n_each=60):
    """Judges 0 votes at random, 1 against everybody, 2 always for the first side."""
    rng = np.random.default_rng(seed)
    n = n_judges * n_each
    truth = np.linspace(1, -1, 8)
    judge = np.repeat(np.arange(n_judges), n_each)
    first = rng.integers(8, size=n)
    second = (first + 1 + rng.integers(7, size=n)) % 8
    margin = truth[first] - truth[second] + 0.5 * rng.standard_normal(n)
    outcome = np.sign(margin)
    outcome[judge == 0] = rng.choice([-1.0, 1.0], n_each)
    outcome[judge == 1] *= -1
    outcome[judge == 2] = 1.0
    return PairData(first, second, outcome, np.ones(n), np.arange(8), judges=judge), truth


def test_a_judge_who_compared_equal_items_only_has_an_infinite_error():
    margins = np.array([0.0, 0.0, 1.0, -1.0])
    estimates = _slope_by_judge(np.array([1.0, -1.0, 1.0, -1.0]), margins, np.array([0, 0, 1, 1]))
    np.testing.assert_array_equal(estimates.value, [0.0, 1.0])
    np.testing.assert_array_equal(np.isinf(estimates.error), [True, False])


def test_the_table_of_judges_has_ten_of_those_who_do_not_stand_out():
    data, _ = judged()
    board = rate(data)
    remarked = [judge for judge in board.judges if judge.remark]
    (table,) = [t for t in tables(board) if t.title.startswith("judges")]
    assert len(remarked) == 3
    assert len(table.rows) == 10
    assert [row[-1] != "" for row in table.rows] == [True] * 3 + [False] * 7


def test_planted_bad_judges_are_found():
    for seed in range(5):
        data, _ = judged(seed)
        table = {judge.name: judge for judge in rate(data).judges}
        assert "agrees little with the other judges" in table[0].remark
        assert table[1].remark == "votes against the others"
        assert "favors the first side" in table[2].remark
        assert all(not table[k].remark for k in range(3, 20))
        assert table[1].agreement_high < table[0].agreement < table[5].agreement_low
        assert table[1].weight < 0.3
        assert table[0].weight < 0.5 < table[5].weight
        assert table[2].side_low > 0.2


def test_judges_of_winners_and_losers_have_no_side_bias():
    rng = np.random.default_rng(0)
    winner = rng.integers(0, 4, 200)
    loser = (winner + rng.integers(1, 4, 200)) % 4
    judge = rng.integers(0, 3, 200)
    board = rate({"winner": winner, "loser": loser, "judge": judge}, judge="judge")
    assert [judge.side_bias for judge in board.judges] == [None] * 3
    assert [judge.side_low for judge in board.judges] == [None] * 3
    assert all("side" not in judge.remark for judge in board.judges)
    (table,) = [table for table in tables(board) if table.title.startswith("judges")]
    assert {row[4] for row in table.rows} == {"–"}

    columns = {"a": winner, "b": loser, "won": ["a"] * 200, "judge": judge}
    columns["won"][0] = "b"  # now the sides have a meaning
    board = rate(columns, sides=("a", "b"), outcome="won", judge="judge")
    assert all(judge.side_bias > 0.5 for judge in board.judges)


def test_ties_alone_explain_nothing():
    ties = {"a": list("ABCABC"), "b": list("BCABCA"), "outcome": ["tie"] * 6}
    board = rate(ties, sides=("a", "b"), outcome="outcome")
    assert board.circles.unexplained is None
    assert not any("explain" in note for note in footnotes(board))


def test_agreement_is_with_ratings_made_without_the_judge():
    data, _ = judged(n_judges=4, n_each=15)
    found = rate(data, alpha=1e-3)
    W, margin = data.weight.sum(), np.empty(data.n_pairs)
    for judge in found.judges:
        own = data.judges == judge.name
        part = data.take(~own)
        alone = rate(part, alpha=1e-3 * W / part.weight.sum(), intervals=False)
        margin[own] = (alone.ratings[data.first] - alone.ratings[data.second])[own]
    average = margin @ data.outcome / (margin @ margin)
    for judge in found.judges:
        own = data.judges == judge.name
        outcome = data.outcome[own]
        assert judge.agreement == pytest.approx(np.mean(np.sign(margin[own]) == outcome))
        if judge.weight > 0:
            left = outcome - average * judge.weight * margin[own]
            assert judge.side_bias == pytest.approx(np.mean(left), abs=1e-7)
        assert judge.agreement_low < judge.agreement < judge.agreement_high


def test_reweighting_brings_the_ratings_closer_to_the_truth():
    errors = {False: [], True: []}
    for seed in range(10):
        data, truth = judged(seed, n_judges=6, n_each=40)
        for reweight in (False, True):
            board = rate(data, reweight=reweight, intervals=False)
            errors[reweight].append(1 - np.corrcoef(board.ratings, truth)[0, 1])
    assert np.mean(errors[True]) < 0.7 * np.mean(errors[False])


def test_a_judge_with_one_vote_says_little():
    data, _ = judged(n_judges=5)
    judges = np.where(np.arange(data.n_pairs) == 299, 99, data.judges)
    last = rate(replace(data, judges=judges)).judges[-1]
    assert (last.name, last.n, last.remark) == (99, 1, "")
    assert (last.side_low, last.side_high) == (None, None)
    assert last.agreement_high - last.agreement_low > 0.7
    assert last.weight == pytest.approx(1)
    ties = replace(data, outcome=0 * data.outcome)
    assert {judge.agreement for judge in rate(ties).judges} == {None}


def test_one_judge_is_no_table():
    alone = replace(votes(n=50), judges=np.zeros(50, int))
    assert rate(alone).judges == ()
    with pytest.raises(ValueError, match="at least two"):
        rate(alone, reweight=True)


def test_judges_of_very_many_items_are_compared_with_all_comparisons(monkeypatch):
    data, _ = judged(n_judges=4, n_each=15)
    monkeypatch.setattr(
        import_module("rankwise.leaderboard.algebra.rating_system"), "COVARIANCE_LIMIT", 3
    )
    board = rate(data)
    margin = board.ratings[data.first] - board.ratings[data.second]
    right = np.sign(margin) == data.outcome
    for judge in board.judges:
        assert judge.agreement == pytest.approx(right[data.judges == judge.name].mean())
    assert any("include their own votes" in line for line in footnotes(board))


def test_groups_take_every_option():
    data, _ = judged()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        boards = rate_groups(data, np.arange(1200) % 2, scale="elo", reweight=True)
    assert {board.scale.name for board in boards.values()} == {"elo"}
    assert all(len(board.judges) == 20 for board in boards.values())
