"""Leaderboards: ratings, the choice of alpha, intervals and tables, all against slow truths."""

from __future__ import annotations

import os
import warnings
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from rankwise import PairGraph, RankRLS
from rankwise.datasets import PairData
from rankwise.leaderboard import Leaderboard, RatingDifference, rate, rate_groups
from rankwise.leaderboard.algebra import alpha_selection, comparison_design, rating_system
from rankwise.leaderboard.algebra.alpha_selection import (
    RELATIVE_ALPHAS,
    leave_one_out_errors,
    middle_alpha,
)
from rankwise.leaderboard.algebra.rating_system import RatingSystem
from rankwise.uncertainty.possible_ranks import ranks_within
from tests.leaderboard.data import (
    consistent_games,
    count_comparisons,
    graphs,
    quiet_rate,
    random_games,
)

DATA = Path(os.environ.get("RANKWISE_DATA") or Path(__file__).parents[3] / "shared" / "data")


# -- ratings ------------------------------------------------------------------------------------


@settings(max_examples=40, deadline=None)
@given(graphs(), st.sampled_from([1e-4, 0.1, 10.0]))
def test_ratings_are_rank_rls_on_the_identity(graph, alpha):
    board = quiet_rate(graph, model="least-squares", alpha=alpha, intervals=False)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "no item is preferred")
        expected = RankRLS(alpha).fit(np.eye(graph.n_items), graph).coef_
    np.testing.assert_allclose(board.ratings, expected, atol=1e-9)


@pytest.mark.parametrize("cost", ["magnitude", "sign", "relative"])
def test_ratings_solve_the_dense_normal_equations_of_any_cost(cost):
    games = random_games(weights=(1.0, 2.0), levels=(1.0, 2.5))
    graph = PairGraph(games.winner, games.loser, games.magnitude, games.weight, cost=cost)
    n, L, d = graph.n_items, np.zeros((7, 7)), np.zeros(7)
    edges = (graph.winner, graph.loser, graph.edge_target, graph.edge_weight)
    for i, j, target, weight in zip(*edges, strict=True):
        x = np.eye(n)[i] - np.eye(n)[j]
        L += weight * np.outer(x, x)
        d += weight * target * x
    expected = np.linalg.solve(L + 0.02 * graph.edge_weight.sum() * np.eye(n), d)
    board = rate(graph, model="least-squares", alpha=0.02, intervals=False)
    np.testing.assert_allclose(board.ratings, expected)


def test_conjugate_gradients_and_dense_solve_agree(monkeypatch):
    graph = random_games(n_items=40, n_games=200)
    dense = rate(graph, alpha=1e-4)
    monkeypatch.setattr(rating_system, "DENSE_LIMIT", 5)
    iterative = rate(graph, alpha=1e-4)
    np.testing.assert_allclose(iterative.ratings, dense.ratings, atol=1e-8)
    np.testing.assert_allclose(iterative.spread.errors, dense.spread.errors, atol=1e-7)
    assert iterative.circles.cyclicity == pytest.approx(dense.circles.cyclicity)


def test_conjugate_gradients_that_do_not_end_are_noticed(monkeypatch):
    monkeypatch.setattr(rating_system, "DENSE_LIMIT", 5)
    monkeypatch.setattr(comparison_design, "MAX_ITERATIONS", 2)
    with pytest.warns(UserWarning, match="the ratings did not converge"):
        rate(random_games(n_items=10), alpha=1e-4, intervals=False)


def test_ties_only_give_equal_ratings_and_one_shared_rank():
    board = rate(PairGraph([0, 1, 2, 0], [1, 2, 0, 1], magnitude=[0, 0, 0, 0]))
    assert not board.ratings.any()
    assert [row.rank for row in board] == [1, 1, 1]
    assert [(row.best_rank, row.worst_rank, row.tier) for row in board] == [(1, 3, None)] * 3
    assert [(row.n, row.wins, row.ties, row.losses) for row in board] == [
        (3, 0, 3, 0), (3, 0, 3, 0), (2, 0, 2, 0),
    ]  # fmt: skip
    assert board.circles == (None, 0, None, None, None)
    assert "0.000" in repr(board)


def test_a_pair_data_and_its_graph_give_the_same_board():
    graph = random_games()
    labels = np.array(list("GFEDCBA"))
    data = PairData(graph.winner, graph.loser, graph.magnitude, graph.weight, labels)
    named = PairGraph(graph.winner, graph.loser, graph.magnitude, graph.weight, items=labels)
    boards = rate(data), rate(named)
    assert boards[0].rows == boards[1].rows
    assert boards[0]["C"].item == "C"
    assert [row.item for row in rate(graph, intervals=False)] == [
        "GFEDCBA".index(row.item) for row in boards[0]
    ]


# -- features -----------------------------------------------------------------------------------


@pytest.mark.parametrize("n_features", [3, 12])
@pytest.mark.parametrize("limit", [300, 2])
def test_with_features_the_ratings_are_those_of_rank_rls(n_features, limit, monkeypatch):
    monkeypatch.setattr(rating_system, "DENSE_LIMIT", limit)
    graph = random_games(weights=(1.0, 3.0))
    X = 5 + np.random.default_rng(0).standard_normal((7, n_features))
    board = rate(graph, alpha=0.01, features=X)
    scores = RankRLS(0.01).fit(X, graph).predict(X)
    np.testing.assert_allclose(board.ratings, scores - scores.mean(), atol=1e-10)


def test_features_rate_items_that_were_never_compared():
    X = np.array([[0.0], [1.0], [2.0], [3.0]])
    graph = PairGraph([1, 2], [0, 1], n_items=4)
    board = rate(graph, model="least-squares", alpha=1e-6, features=X, intervals=False)
    assert [row.item for row in board] == [3, 2, 1, 0]
    assert (board[3].n, board.n_components) == (0, 1)
    assert board.expected_margin(3, 0).value == pytest.approx(3, abs=1e-4)


# -- alpha --------------------------------------------------------------------------------------


@pytest.mark.parametrize("n_features", [None, 3, 12])
@pytest.mark.parametrize("weights", [(1.0,), (0.5, 1.0, 4.0)])
def test_leave_one_comparison_out_equals_refitting(n_features, weights):
    graph = random_games(n_items=6, n_games=25, weights=weights)
    X = np.random.default_rng(1).standard_normal((6, n_features)) if n_features else None
    alphas = np.array([1e-4, 1e-2, 1.0])
    curve = leave_one_out_errors(RatingSystem(count_comparisons(graph), X), alphas)
    expected = np.zeros(3)
    for k in range(graph.n_pairs):
        rest = np.delete(np.arange(graph.n_pairs), k)
        fold = PairGraph(
            graph.winner[rest], graph.loser[rest], graph.magnitude[rest], graph.weight[rest], 6
        )
        items = np.eye(6) if X is None else X
        scores = RankRLS().path(items, fold, alphas=alphas).predict(items)
        margin = scores[graph.winner[k]] - scores[graph.loser[k]]
        expected += graph.weight[k] * (graph.magnitude[k] - margin) ** 2
    np.testing.assert_allclose(curve, expected / graph.total_weight, rtol=1e-9)


@pytest.mark.parametrize("model", ["least-squares", "bradley-terry"])
def test_columns_that_say_the_same_make_no_difference(model):
    """A filled gap and its indicator, a column twice; few of the items have met."""
    rng = np.random.default_rng(0)
    for _ in range(12):
        n, n_games = int(rng.integers(4, 30)), int(rng.integers(5, 80))
        X = rng.standard_normal((n, int(rng.integers(1, 6))))
        first = rng.integers(n, size=n_games)
        games = PairGraph(first, (first + 1 + rng.integers(n - 1, size=n_games)) % n, n_items=n)
        more = np.column_stack([X, np.eye(n)[:, 0]])
        board = quiet_rate(games, features=more, model=model)
        assert np.isfinite(board.ratings).all()
        assert np.isfinite(board.spread.errors).all()
        once = quiet_rate(games, features=X, model=model, alpha=0.02)
        twice = quiet_rate(games, features=np.hstack([X, X]), model=model, alpha=0.04)
        np.testing.assert_allclose(twice.ratings, once.ratings, atol=1e-7)
        np.testing.assert_allclose(twice.spread.errors, once.spread.errors, atol=1e-5)


def test_auto_takes_the_alpha_of_least_error():
    graph = random_games()
    system = RatingSystem(count_comparisons(graph))
    alphas = middle_alpha(system) * RELATIVE_ALPHAS
    errors = leave_one_out_errors(system, alphas)
    assert rate(graph, alpha="auto", intervals=False).alpha == alphas[errors.argmin()]


def test_auto_of_very_many_items_is_refused(monkeypatch):
    monkeypatch.setattr(alpha_selection, "EIGEN_LIMIT", 10)
    with pytest.raises(ValueError, match="at most 10 items or features, but there are 12"):
        rate(random_games(n_items=12), alpha="auto")


def test_auto_regularizes_noise_more_than_signal():
    truth = np.arange(8.0)
    alphas = [
        rate(consistent_games(truth, 100, 0, noise), alpha="auto", intervals=False).alpha
        for noise in (0.1, 30.0)
    ]
    assert alphas[1] > 100 * alphas[0]


# -- intervals ----------------------------------------------------------------------------------


def test_clusters_see_through_comparisons_that_are_copies():
    games = consistent_games(np.array([0.5, 0.0, -0.5]), 60, seed=0)
    copies = PairGraph(*(np.repeat(a, 9) for a in (games.winner, games.loser, games.magnitude)))
    judge = np.repeat(np.arange(60), 9)
    boards = rate(games), rate(copies), rate(copies, clusters=judge)
    single, naive, clustered = ([row.high - row.low for row in board] for board in boards)
    np.testing.assert_allclose(np.divide(single, naive), 3, rtol=0.15)
    np.testing.assert_allclose(np.divide(clustered, single), 1, rtol=0.15)


# -- the table ----------------------------------------------------------------------------------


def test_ranks_and_intervals_equal_their_definitions():
    graph = random_games(n_items=9, n_games=40)
    board = rate(graph, confidence=0.8)
    V, quantile = board.spread.root @ board.spread.root.T, stats.t.ppf(0.9, graph.n_pairs - 1)
    for k in range(9):
        row = board[k]
        assert row.rank == 1 + np.sum(board.ratings > board.ratings[k])
        width = quantile * V[k, k] ** 0.5
        assert (row.low, row.high) == pytest.approx((row.rating - width, row.rating + width))
        gap = board.ratings - row.rating
        error = np.sqrt(V.diagonal() + V[k, k] - 2 * V[k])
        assert row.best_rank == 1 + np.sum(gap > quantile * error)
        assert row.worst_rank == 9 - np.sum(gap < -quantile * error)
        won, lost = graph.winner == k, graph.loser == k
        strict = graph.magnitude > 0
        assert row.n == won.sum() + lost.sum()
        assert (row.wins, row.losses) == ((won & strict).sum(), (lost & strict).sum())
        assert row.ties == row.n - row.wins - row.losses
    assert [row.rank for row in board] == sorted(row.rank for row in board)


@pytest.mark.parametrize("half", [0.5, 0.50000000005, 1 / 3, 2049 / 4096])
def test_neighboring_numbers_share_a_rank_wherever_they_are(half):
    for step in (-1.0, 2.0):
        ratings = np.array([1.0, half, np.nextafter(half, step), -1.0])
        assert ranks_within(ratings, np.ones(4, int)).tolist() == [1, 2, 2, 4]


def test_a_board_without_intervals_says_so():
    board = rate(random_games(), intervals=False)
    assert {row[3:8] for row in board} == {(None,) * 5}
    assert "interval" not in repr(board)
    assert board.expected_margin(0, 1)[1:] == (None, None)
    assert isinstance(board.expected_margin(0, 1), RatingDifference)
    with pytest.raises(ValueError, match="no intervals"):
        board.above(0, 1)


def test_components_that_were_never_compared_are_marked():
    graph = PairGraph([0, 1, 3, 3], [1, 2, 4, 4], items=list("pqrstu"))
    with pytest.warns(UserWarning, match=r"3 components .* \(the item u is in the smallest\)"):
        board = rate(graph, alpha=0.01)
    assert [(row.component, row.rank, row.item) for row in board] == [
        (1, 1, "p"), (1, 2, "q"), (1, 3, "r"), (2, 1, "s"), (2, 2, "t"), (3, None, "u"),
    ]  # fmt: skip
    assert repr(board).splitlines()[0].endswith("component")
    assert board.n_components == 3
    assert all(row.worst_rank <= 3 and row.best_rank <= 3 for row in board.rows[:-1])
    assert (board["u"].n, board["u"].low, board["u"].best_rank) == (0, None, None)
    with pytest.raises(ValueError, match="'p' and 's' are in different components"):
        board.expected_margin("p", "s")


@pytest.mark.parametrize("ties", [None, "half", "davidson"])
def test_ties_alone_leave_the_ratings_open(ties):
    """No error is seen in ties, but three of them do not make items equal for sure."""
    options = {"model": "bradley-terry", "ties": ties} if ties else {}
    games = {"a": list("xyz"), "b": list("yzx"), "o": ["tie"] * 3}
    board = rate(games, sides=("a", "b"), outcome="o", **options)
    assert board.ratings.tolist() == [0.0, 0.0, 0.0]
    assert all(row.high > 0.5 and (row.best_rank, row.worst_rank) == (1, 3) for row in board)


def test_what_only_alpha_tells_apart_shares_a_rank():
    board = rate({"winner": [1, 2, 3, 10], "loser": [2, 3, 1, 1]}, model="least-squares")
    assert [row.rank for row in board] == [1, 2, 2, 2]


@pytest.mark.parametrize("model", ["least-squares", "bradley-terry"])
def test_an_alpha_lost_in_rounding_still_gives_centered_ratings(model):
    graph = PairGraph([0, 1, 0, 2, 1], [1, 0, 2, 1, 2])
    tiny = rate(graph, alpha=1e-300, model=model, intervals=False).ratings
    np.testing.assert_allclose(tiny, rate(graph, model=model, intervals=False).ratings, atol=1e-6)
    assert abs(tiny.sum()) < 1e-6
    assert np.isfinite(rate(PairGraph([0], [1]), alpha=1e-300, model=model).ratings).all()


def test_margins_that_overflow_are_refused():
    with pytest.raises(ValueError, match=r"margin of 1e\+300"):
        rate(PairGraph([0, 1], [1, 0], magnitude=[1e300, 1.0]))


def test_the_board_is_a_table_a_frame_and_a_dictionary():
    pytest.importorskip("pandas")
    graph = PairGraph([0, 0, 1], [1, 2, 2], items=["<b>", "mid", "low"])
    board = rate(graph, model="least-squares", alpha=1e-3)
    assert isinstance(board, Leaderboard)
    header, first, *_, line, _, _ = repr(board).splitlines()
    assert " ".join(header.split()) == (
        "rank item rating 95% interval ranks at once tier to flip w/t/l"
    )
    assert first.split()[:3] == ["1", "<b>", "†"]
    assert line == "3 comparisons of 3 items by least-squares, alpha 0.001; jackknife"
    assert board._repr_html_().count("<tr>") == 4
    assert board.to_frame()["wins"].sum() == len(board) == 3
    with pytest.raises(KeyError, match="'top' is not on the board; its items are '<b>', 'mid'"):
        board["top"]


# -- consistency --------------------------------------------------------------------------------


def test_circles_are_cyclic_and_trees_are_not():
    circle = rate(PairGraph([0, 1, 2], [1, 2, 0]), intervals=False)
    tree = rate(PairGraph([0, 0, 1], [1, 2, 3], magnitude=[1, 2, 3]), intervals=False)
    assert circle.circles.cyclicity == pytest.approx(1)
    assert tree.circles.cyclicity == pytest.approx(0, abs=1e-12)
    assert (circle.circles.cycle_ratio, tree.circles.cycle_ratio) == (None, None)


@settings(max_examples=30, deadline=None)
@given(graphs())
def test_the_square_sum_splits_in_disagreement_circles_and_ratings(graph):
    board = quiet_rate(graph, model="least-squares", alpha=1e-3, intervals=False)
    pairs, margins = {}, []
    for k in range(graph.n_pairs):
        i, j, sign = graph.winner[k], graph.loser[k], 1
        if i > j:
            i, j, sign = j, i, -1
        margins.append((i, j, sign * graph.magnitude[k], graph.weight[k]))
        pairs.setdefault((i, j), []).append((sign * graph.magnitude[k], graph.weight[k]))
    weights = {key: sum(w for _, w in values) for key, values in pairs.items()}
    means = {key: sum(m * w for m, w in pairs[key]) / weights[key] for key in pairs}
    rows = np.array([np.eye(graph.n_items)[i] - np.eye(graph.n_items)[j] for i, j in pairs])
    root = np.sqrt(list(weights.values()))
    y = root * list(means.values())
    r, *_ = np.linalg.lstsq(root[:, None] * rows, y, rcond=None)
    circles = np.sum((y - root * (rows @ r)) ** 2)
    disagreement = sum(w * (m - means[i, j]) ** 2 for i, j, m, w in margins)
    np.testing.assert_allclose(
        board.circles.cyclicity, circles / (y @ y) if y.any() else 0, atol=1e-9
    )
    total = sum(w * m**2 for _, _, m, w in margins)
    residual = sum(w * (m - board.ratings[i] + board.ratings[j]) ** 2 for i, j, m, w in margins)
    if total:
        assert board.circles.unexplained == pytest.approx(residual / total)
    else:
        assert board.circles.unexplained is None
    free = len(pairs) - np.linalg.matrix_rank(rows)
    repeats = graph.n_pairs - len(pairs)
    if free and repeats and disagreement > 1e-9:
        expected = circles / free * repeats / disagreement
        assert board.circles.cycle_ratio == pytest.approx(expected, abs=1e-9)
    else:
        assert board.circles.cycle_ratio is None


def test_the_ratio_tells_chance_from_real_circles():
    truth = np.zeros(6)
    ratios = [
        rate(consistent_games(truth, 600, s), intervals=False).circles.cycle_ratio
        for s in range(30)
    ]
    assert np.mean(ratios) == pytest.approx(1, abs=0.15)
    games = consistent_games(truth, 600, 0)
    step = (games.loser - games.winner) % 3 == 1  # 0 beats 1 beats 2 beats 0
    turned = (games.loser - games.winner) % 3 == 2
    margin = games.magnitude + 2.0 * step
    won = np.where(turned, games.loser, games.winner)
    lost = np.where(turned, games.winner, games.loser)
    assert rate(PairGraph(won, lost, margin), intervals=False).circles.cycle_ratio > 5


# -- groups -------------------------------------------------------------------------------------


def test_boards_by_group_are_the_boards_of_their_comparisons():
    graph = random_games(n_items=6, n_games=120, weights=(1.0, 2.0))
    labels, random = np.array(list("uvwxyz")), np.random.default_rng(0)
    groups = random.choice(["new", "old"], graph.n_pairs)
    judges = random.integers(9, size=graph.n_pairs)
    every = graph.winner, graph.loser, graph.magnitude, graph.weight
    boards = rate_groups(PairGraph(*every, items=labels), groups, clusters=judges)
    assert list(boards) == ["new", "old"]
    for label, board in boards.items():
        chosen = groups == label
        some = PairGraph(*(values[chosen] for values in every), items=labels)
        alone = rate(some, clusters=judges[chosen])
        assert board.rows == alone.rows


def test_a_group_has_the_items_that_it_names_and_their_features():
    graph = PairGraph([0, 2, 3], [1, 3, 4], n_items=5)
    X = np.arange(10.0).reshape(5, 2) ** 2
    boards = rate_groups(graph, [1, 2, 2], features=X, alpha=0.1, intervals=False)
    assert {label: sorted(board.items) for label, board in boards.items()} == {
        1: [0, 1],
        2: [2, 3, 4],
    }
    alone = rate(PairGraph([0, 1], [1, 2]), features=X[2:], alpha=0.1, intervals=False)
    np.testing.assert_allclose(boards[2].ratings, alone.ratings)


def test_what_is_wrong_with_one_group_is_said_of_that_group():
    games = PairGraph([0, 1, 1, 2], [1, 0, 2, 1])
    years, judges = ["old", "new", "new", "new"], ["Ann", "Ann", "Bob", "Bob"]
    with pytest.raises(ValueError, match="group old: all comparisons are in one cluster, Ann;"):
        rate_groups(games, years, clusters=judges)
    with pytest.raises(ValueError, match=r"group old: alpha=\"auto\" leaves out one"):
        rate_groups(games, years, alpha="auto", intervals=False)
    with pytest.raises(ValueError, match="have no groups"):
        rate_groups(games)


# -- bad input ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"alpha": -1.0}, r"alpha=-1\.0; expected a positive number"),
        ({"alpha": "best"}, "alpha='best'"),
        ({"confidence": 1.0}, "confidence=1.0; expected a number between 0 and 1"),
        ({"confidence": 95}, "confidence=95; expected a number between 0 and 1"),
        ({"clusters": ["a", "b"]}, r"clusters has shape \(2,\), but there are 3 comparisons"),
        ({"clusters": ["a"] * 3}, "all comparisons are in one cluster, a"),
        ({"features": np.ones((2, 4))}, "features has 2 rows, but the comparisons have 3 items"),
        ({"features": [[1.0], [np.nan], [2.0]]}, "contains NaN"),
        ({"features": np.ones((3, 4))}, "the features of the two items are equal"),
    ],
)
def test_bad_options_are_explained(options, message):
    with pytest.raises(ValueError, match=message):
        rate(PairGraph([0, 1, 2], [1, 2, 0]), **options)


def test_bad_comparisons_are_explained():
    data = PairData(np.array([0, 1]), np.array([1, 0]), np.ones(2), np.ones(2), np.arange(2))
    with pytest.raises(ValueError, match=r"magnitude\[1\] is nan"):
        rate(replace(data, outcome=np.array([1.0, np.nan])))
    with pytest.raises(ValueError, match=r"weight\[1\] is -1.0"):
        rate(replace(data, weight=np.array([1.0, -1.0])))
    with pytest.raises(ValueError, match="name twice"):
        PairGraph([0, 1], [1, 2], items=["a", "b", "a"])
    with pytest.raises(ValueError, match="there are no comparisons"):
        rate(PairGraph([], [], n_items=1))
    with pytest.raises(TypeError, match="pairs is of type int, expected a data frame, a dict"):
        rate(3)
    with pytest.raises(ValueError, match="there is only one; pass a number"):
        rate(PairGraph([0], [1]), alpha="auto")


# -- experiment and benchmark -------------------------------------------------------------------


@pytest.mark.skipif(not (DATA / "llmfao").is_dir(), reason=f"no {DATA / 'llmfao'}")
def test_least_squares_and_bradley_terry_agree_on_the_battles(capsys):
    from experiments.boards import battles as leaderboard_battles

    leaderboard_battles.main(["--data", str(DATA), "--folds", "2"])
    printed = capsys.readouterr().out
    tau = float(printed.split("Kendall tau of the two boards: ")[1].split()[0])
    assert tau > 0.9
    assert "GPT 4" in printed.split("1  ")[1]


@pytest.mark.skipif(not (DATA / "chameleons").is_dir(), reason=f"no {DATA / 'chameleons'}")
def test_measurements_and_wins_before_foresee_contests_of_new_animals(capsys):
    from experiments.boards import chameleons as leaderboard_chameleons

    leaderboard_chameleons.main(["--data", str(DATA)])
    last = capsys.readouterr().out.strip().splitlines()[-1].split()
    assert 0.7 < float(last[-1]) < 0.9


def test_simulations_of_judges_and_intervals_print_shares(capsys, monkeypatch):
    from experiments.boards import coverage as leaderboard_coverage
    from experiments.boards import judges as leaderboard_judges

    settings = {"newcomers": leaderboard_coverage.SETTINGS["newcomers"]}
    monkeypatch.setattr(leaderboard_coverage, "SETTINGS", settings)
    leaderboard_coverage.main(["--runs", "2"])
    (row,) = capsys.readouterr().out.splitlines()[2:]
    assert row.startswith("| newcomers | ")
    assert all(0 <= float(c) <= 1 for c in row.split("|")[2:-1] if c.strip() != "–")
    leaderboard_judges.main(["--runs", "1"])
    last = capsys.readouterr().out.strip().splitlines()[-1].split()
    assert last[:4] == ["320", "1.000", "1.000", "1.000"]
