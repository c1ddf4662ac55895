"""Teams: boards of members equal explicit designs, and boards of single items."""

import gzip
from dataclasses import replace

import numpy as np
import pytest

from rankwise.datasets import PairData, pairs_from_frame
from rankwise.datasets.teams import Teams
from rankwise.leaderboard import backtest, next_pairs, rate, rate_groups
from rankwise.leaderboard.algebra.comparison_counts import ComparisonCounts
from rankwise.leaderboard.algebra.team_rows import NULL_LIMIT, side_rows
from rankwise.persistence import load, save
from rankwise.report import board_page
from tests.cli.shell import succeed
from tests.leaderboard.data import games, quiet_rate
from tests.oracle_boards import newton_of_rows, ridge_of_rows, team_rows

NAMES = list("abcdefgh")


def team_games(seed, n_games=60, sizes=(2,), n_items=8, partial=False, ties=0.2):
    """A frame of random teams with points, and the rows of the explicit design."""
    rng = np.random.default_rng(seed)
    truth = rng.normal(size=n_items)
    names = NAMES[:n_items]
    sides, shares, margins = [], [], []
    for _ in range(n_games):
        n_first, n_second = rng.choice(sizes, 2)
        players = rng.permutation(n_items)[: n_first + n_second]
        first, second = players[:n_first], players[n_first:]
        share = [np.ones(n_first), np.ones(n_second)]
        if partial:
            share = [rng.choice([0.25, 0.5, 1.0], len(s)) for s in share]
        sides.append(([names[i] for i in first], [names[i] for i in second]))
        shares.append([s.tolist() for s in share])
        margins.append(share[0] @ truth[first] - share[1] @ truth[second])
    margins = np.array(margins) + 0.5 * rng.normal(size=n_games)
    points = np.sign(margins) * (rng.random(n_games) > ties)
    frame = {
        "home": [tuple(first) for first, _ in sides],
        "away": [tuple(second) for _, second in sides],
        "result": [{1: "home", -1: "away", 0: "tie"}[int(p)] for p in points],
        "margin": margins.round(2),
        "home_share": [first for first, _ in shares],
        "away_share": [second for _, second in shares],
        "weight": rng.choice([0.5, 1.0, 2.0], n_games),
    }
    return frame, team_rows(sides, names, shares), points


COLUMNS = {"sides": ("home", "away"), "outcome": "result"}
MARGINS = {"sides": ("home", "away"), "outcome": "margin", "margin": True}
WEIGHTS = {"team_weights": ("home_share", "away_share")}


def centered(values):
    return values - values.mean()


@pytest.mark.parametrize("seed", range(200))
def test_margins_are_rated_by_least_squares_on_the_explicit_rows(seed):
    sizes = [(2,), (3,), (1, 2), (2, 3)][seed % 4]
    frame, D, _ = team_games(seed, sizes=sizes, partial=seed % 3 == 0)
    side = seed % 2 == 0
    Z = np.ones((len(D), int(side)))
    alpha = [1e-3, 0.1, 1.0][seed % 3]
    board = quiet_rate(frame, **MARGINS, **WEIGHTS, side=side, alpha=alpha, intervals=False)
    ratings, effects = ridge_of_rows(D, np.array(frame["margin"]), frame["weight"], Z, alpha)
    np.testing.assert_allclose(board.ratings, centered(ratings), atol=1e-9)
    np.testing.assert_allclose([e.value for e in board.effects], effects, atol=1e-9)
    margin = board.expected_margin(frame["home"][0], frame["away"][0]).value
    assert margin == pytest.approx(_row(D, frame, 0) @ ratings, abs=1e-9)


def _row(D, frame, k):
    """The row of a comparison in which every member played all the time."""
    items = NAMES[: D.shape[1]]
    return team_rows([(frame["home"][k], frame["away"][k])], items)[0]


@pytest.mark.parametrize("seed", range(200))
def test_results_are_rated_by_newtons_method_on_the_explicit_rows(seed):
    sizes = [(2,), (3,), (1, 2), (2, 3)][seed % 4]
    frame, D, points = team_games(seed, sizes=sizes, partial=seed % 3 == 0)
    side = seed % 2 == 0
    Z = np.ones((len(D), int(side)))
    alpha = [1e-3, 0.1][seed % 2]
    board = quiet_rate(frame, **COLUMNS, **WEIGHTS, side=side, alpha=alpha, intervals=False)
    ratings, effects = newton_of_rows(D, points, frame["weight"], Z, alpha)
    origin = board.ratings - ratings
    np.testing.assert_allclose(origin, origin[0], atol=1e-7)
    np.testing.assert_allclose([e.value for e in board.effects], effects, atol=1e-7)
    chances = board.predict(frame["home"][0], frame["away"][0], neutral=True)
    margin = _row(D, frame, 0) @ ratings
    if not (points == 0).any():
        assert chances.win == pytest.approx(1 / (1 + np.exp(-margin)), abs=1e-7)


@pytest.mark.parametrize("sizes", [(2,), (2, 3)])
@pytest.mark.parametrize("clustered", [False, True])
def test_intervals_are_those_of_refits_without_each_comparison_or_cluster(sizes, clustered):
    frame, D, _ = team_games(3, n_games=60, sizes=sizes, partial=True)
    target, weight = np.array(frame["margin"]), frame["weight"]
    unit = np.arange(len(D)) // 6 if clustered else np.arange(len(D))
    alpha = 0.01
    clusters = {"clusters": unit} if clustered else {}
    board = quiet_rate(frame, **MARGINS, **WEIGHTS, alpha=alpha, **clusters)
    assert not any(row.thin for row in board)
    Z = np.empty((len(D), 0))
    everything = ridge_of_rows(D, target, weight, Z, alpha)[0]
    changes = []
    for u in np.unique(unit):
        rest = unit != u
        same_penalty = alpha * weight.sum() / weight[rest].sum()
        refit = ridge_of_rows(D[rest], target[rest], weight[rest], Z[rest], same_penalty)[0]
        changes.append(refit - everything)
    n = len(changes)
    V = (n - 1) / n * np.transpose(changes) @ changes
    center = np.eye(len(V)) - 1 / len(V)
    errors = np.sqrt(np.diag(center @ V @ center))
    np.testing.assert_allclose(board.spread.errors, errors, rtol=1e-6)
    home, away = frame["home"][0], frame["away"][0]
    row = _row(D, frame, 0)
    margin = board.expected_margin(home, away)
    quantile = board.spread.quantile(0.975)
    assert margin.high - margin.value == pytest.approx(quantile * np.sqrt(row @ V @ row), rel=1e-6)


def as_teams(data):
    """The same comparisons, each side as a team of one."""
    n = data.n_items
    return replace(data, teams=Teams(np.arange(n), np.arange(n), np.ones(n)))


@pytest.mark.parametrize("options", [{}, {"ties": "davidson"}, {"side": True}, {"alpha": "auto"},
                                     {"model": "least-squares"},
                                     {"model": "least-squares", "alpha": "auto"},
                                     {"judge": "place"}, {"covariates": ["place"]}])  # fmt: skip
def test_teams_of_one_are_single_items(options):
    columns = {"sides": ("left", "right"), "outcome": "better"}
    reading = {name: options[name] for name in ("judge", "covariates") if name in options}
    options = {name: value for name, value in options.items() if name != "judge"}
    data = pairs_from_frame(games(1, n=200, n_items=6, ties=0.2), **columns, **reading)
    single = rate(data, **options)
    team = rate(as_teams(data), **options)
    assert team.alpha == pytest.approx(single.alpha)
    np.testing.assert_allclose(team.ratings, single.ratings, atol=1e-8)
    np.testing.assert_allclose(team.spread.errors, single.spread.errors, rtol=1e-6)
    assert [row._replace(rating=0, low=0, high=0) for row in team] == [
        row._replace(rating=0, low=0, high=0) for row in single
    ]
    for name in ("first", "second", "n"):
        expected = getattr(single.head_to_head, name)
        np.testing.assert_array_equal(getattr(team.head_to_head, name), expected)
    np.testing.assert_allclose(team.head_to_head.observed, single.head_to_head.observed)
    np.testing.assert_allclose(team.head_to_head.expected, single.head_to_head.expected, atol=1e-8)
    np.testing.assert_allclose(team.predict("a", "b"), single.predict("a", "b"), atol=1e-6)
    assert team.votes_to_flip("a", "b").n == single.votes_to_flip("a", "b").n
    np.testing.assert_allclose([j.weight for j in team.judges], [j.weight for j in single.judges])


def test_teams_of_one_that_change_with_time_are_single_items():
    columns = {"sides": ("left", "right"), "outcome": "better", "time": "year", "context": "place"}
    data = pairs_from_frame(games(2, n=80, drift=0.5), **columns)
    single = rate(data)
    team = rate(as_teams(data), scales=single.scales)
    np.testing.assert_allclose(team.ratings, single.ratings, atol=1e-6)
    np.testing.assert_allclose(team.spread.errors, single.spread.errors, rtol=1e-5)
    np.testing.assert_allclose(team.predict("a", "b"), single.predict("a", "b"), atol=1e-6)
    assert list(team.paths(["a"], 5)["a"].times) == list(single.paths(["a"], 5)["a"].times)


def test_the_rows_of_changing_teams_are_sums_over_their_members():
    frame, D, _ = team_games(4, n_games=30, sizes=(2, 3))
    frame["year"] = np.arange(30)
    board = quiet_rate(frame, **COLUMNS, time="year")
    model = board.fitted
    rows = side_rows(board.comparisons)
    np.testing.assert_array_equal(rows.toarray(), D)
    values = model.system.term_values(model.unknowns)
    phi = model.rating_terms.term_weights(board.comparisons.times, np.zeros((0, 30), int))
    margins = (phi.toarray() * (D @ values)).sum(axis=1)
    order = np.argsort(model.counts.cell_of_pair)
    sign = np.where(board.comparisons.first < board.comparisons.second, 1, -1)
    np.testing.assert_allclose(model.margins()[order], (sign * margins), atol=1e-10)


def test_readers_agree_on_tuples_lists_sets_dictionaries_and_separators(tmp_path):
    frame, _, _ = team_games(5, sizes=(2, 3))
    boards = [rate(frame, **COLUMNS, alpha=0.1)]
    frame["home"] = [list(team) for team in frame["home"]]
    frame["away"] = [set(team) for team in frame["away"]]
    boards.append(rate(frame, **COLUMNS, alpha=0.1))
    frame["home"] = [dict.fromkeys(team, 1) for team in frame["home"]]
    boards.append(rate(frame, **COLUMNS, alpha=0.1))
    frame["home"] = ["+".join(team) for team in frame["home"]]
    frame["away"] = [" + ".join(sorted(team)) for team in frame["away"]]
    boards.append(rate(frame, **COLUMNS, alpha=0.1, team_separator="+"))
    for board in boards[1:]:
        np.testing.assert_allclose(board.ratings, boards[0].ratings, atol=1e-10)


def test_list_columns_of_arrow_polars_and_parquet_are_teams(tmp_path):
    pytest.importorskip("pyarrow")
    import pyarrow as pa
    import pyarrow.parquet as pq

    from rankwise.datasets import read_pairs

    frame, _, _ = team_games(6)
    table = pa.table({name: list(map(list, frame[name])) for name in ("home", "away")})
    table = table.append_column("result", pa.array(frame["result"]))
    pq.write_table(table, tmp_path / "games.parquet")
    expected = rate({name: frame[name] for name in ("home", "away", "result")}, **COLUMNS)
    for pairs in (table, read_pairs(tmp_path / "games.parquet", **COLUMNS)):
        columns = {} if isinstance(pairs, PairData) else COLUMNS
        np.testing.assert_allclose(rate(pairs, **columns).ratings, expected.ratings, atol=1e-10)


def test_the_outcome_may_name_the_team_in_any_order():
    frame = {"a": ["x+y", "y+z"], "b": ["z", "x"], "winner": ["y+x", "x"]}
    data = pairs_from_frame(frame, sides=("a", "b"), outcome="winner", team_separator="+")
    assert data.outcome.tolist() == [1.0, -1.0]


def test_a_member_without_playing_time_is_not_in_the_team():
    frame = {"a": [("x", "y")], "b": [("z",)], "w": ["a"], "p": [(1, 0)], "q": [(0.5,)]}
    data = pairs_from_frame(frame, sides=("a", "b"), outcome="w", team_weights=("p", "q"))
    assert data.items.tolist() == ["x", "z"]
    assert side_rows(data).toarray().tolist() == [[1.0, -0.5]]


@pytest.mark.parametrize(
    ("first", "second", "message"),
    [
        (("x", "y"), ("y", "z"), "'y' is on both sides"),
        ((), ("y", "z"), "team is empty"),
        (("x", "x"), ("y", "z"), "has a member twice"),
        (("x", ""), ("y", "z"), "without a name"),
        ({"x": -1.0}, ("y", "z"), "the weight of 'x'"),
        ({"x": 0.0}, ("y", "z"), "positive weight"),
        ({"x": "much"}, ("y", "z"), "the weight of 'x'"),
    ],
)
def test_impossible_teams_are_refused(first, second, message):
    frame = {"a": [("u", "v"), first], "b": [("x", "w"), second], "w": ["a", "b"]}
    with pytest.raises(ValueError, match=message) as error:
        rate(frame, sides=("a", "b"), outcome="w")
    assert "row 1" in str(error.value)


def test_options_without_teams_and_teams_in_rankings_are_refused():
    frame = {"winner": ["a"], "loser": ["b"], "p": ["1"], "q": ["1"]}
    with pytest.raises(ValueError, match="team_separator="):
        rate(frame, team_weights=("p", "q"))
    with pytest.raises(ValueError, match="team_separator="):
        rate(frame, team_separator="")
    races = {"race": [1, 1], "item": [("a", "b"), ("c", "d")], "place": [1, 2]}
    with pytest.raises(ValueError, match="rankings of teams"):
        rate(races, ranking="race", item="item", place="place")


def test_features_priors_graphs_and_suggested_pairs_of_teams_are_refused():
    frame, _, _ = team_games(7)
    board = rate(frame, **COLUMNS)
    with pytest.raises(ValueError, match="sides are teams"):
        rate(frame, **COLUMNS, features=np.eye(8))
    with pytest.raises(ValueError, match="sides are teams"):
        rate(frame, **COLUMNS, prior=dict.fromkeys(NAMES, 1.0) | {"a": 2.0})
    with pytest.raises(ValueError, match="between teams"):
        board.comparisons.graph()
    with pytest.raises(ValueError, match="between teams"):
        next_pairs(board)


def test_members_who_always_play_together_have_no_rank():
    frame, _, _ = team_games(8)
    frame["home"] = [(*team, "twin") if "a" in team else team for team in frame["home"]]
    frame["away"] = [(*team, "twin") if "a" in team else team for team in frame["away"]]
    with pytest.warns(UserWarning, match="do not determine"):
        board = rate(frame, **COLUMNS)
    assert board["a"].rank is None
    assert board["twin"].low is None
    assert board["b"].rank is not None
    with pytest.raises(ValueError, match="do not determine"):
        board.expected_margin(("a", "b"), ("c", "d"))
    together = board.expected_margin(("a", "twin", "b"), ("c", "d"))
    assert together.low < together.value < together.high
    assert any("always played" in note for note in board.notes)


def test_fixed_pairs_are_component_values_their_own():
    frame = {"a": [("a", "b"), ("a", "b")], "b": [("c", "d"), ("c", "d")], "w": ["a", "b"]}
    with pytest.warns(UserWarning, match="do not determine"):
        board = rate(frame, sides=("a", "b"), outcome="w")
    assert board.n_components == 4
    assert board.predict(("a", "b"), ("c", "d")).win == pytest.approx(0.5)


def test_determined_sets_are_the_connected_items_for_very_many(monkeypatch):
    frame, _, _ = team_games(9)
    data = pairs_from_frame(frame, **COLUMNS)
    sets = ComparisonCounts.of(data).components
    assert data.n_items < NULL_LIMIT
    monkeypatch.setattr("rankwise.leaderboard.algebra.team_rows.NULL_LIMIT", 2)
    np.testing.assert_array_equal(ComparisonCounts.of(data).components, sets)


def test_many_members_by_conjugate_gradients_are_the_same_board(monkeypatch):
    frame, _, _ = team_games(10, sizes=(2, 3))
    dense = rate(frame, **COLUMNS)
    monkeypatch.setattr("rankwise.leaderboard.algebra.rating_system.DENSE_LIMIT", 2)
    iterative = rate(frame, **COLUMNS)
    origin = iterative.ratings - dense.ratings
    np.testing.assert_allclose(origin, 0, atol=1e-5)


def test_an_undefeated_member_does_not_widen_the_intervals_of_the_others():
    frame, _, _ = team_games(11, n_games=150)
    without = rate(frame, **COLUMNS)
    frame = {name: frame[name] for name in ("home", "away", "result")}
    frame["home"] = [*frame["home"], ("star", "a"), ("star", "b")]
    frame["away"] = [*frame["away"], ("c", "d"), ("e", "f")]
    frame["result"] = [*frame["result"], "home", "home"]
    board = rate(frame, **COLUMNS)
    for name in NAMES:
        width = board[name].high - board[name].low
        assert width < 1.2 * (without[name].high - without[name].low)
    assert board["star"].high - board["star"].low > 5 * (board["a"].high - board["a"].low)


def test_boards_of_teams_are_saved_and_shown(tmp_path):
    frame, _, _ = team_games(12, sizes=(1, 2, 3), partial=True)
    frame["judge"] = np.arange(60) % 7
    board = rate(frame, **COLUMNS, **WEIGHTS, side=True, judge="judge", scale="elo")
    save(board, tmp_path / "board.model")
    loaded = load(tmp_path / "board.model")
    np.testing.assert_allclose(loaded.ratings, board.ratings)
    assert str(loaded) == str(board)
    assert "in teams of 1 to 3" in str(board)
    assert "Leaderboard" in str(board_page(board))
    assert board.to_dict()["cyclicity"] is None


def test_groups_of_team_games_have_boards_of_their_members():
    frame, _, _ = team_games(13, n_games=120)
    years = np.repeat([2001, 2002], 60)
    boards = rate_groups(frame, years, **COLUMNS)
    first_year = {name: list(column)[:60] for name, column in frame.items()}
    np.testing.assert_allclose(boards[2001].ratings, rate(first_year, **COLUMNS).ratings)


def test_later_team_games_are_predicted():
    frame, _, _ = team_games(14, n_games=300, ties=0.0)
    frame["year"] = np.arange(300)
    frame["away"][-1] = ("newcomer", *frame["away"][-1][1:])
    result = backtest(frame, 200, **COLUMNS, time="year", scales=None)
    losses = {score.name: score.log_loss for score in result.methods}
    assert losses["the board"] < losses["base rate"]
    assert losses["Elo, followed"] < losses["base rate"]
    static = backtest(frame, 200, **COLUMNS, time="year", model="least-squares")
    assert static.methods[0].log_loss < losses["base rate"]


def test_several_games_of_teams_are_a_list():
    frame, _, _ = team_games(15, sizes=(1, 2))
    board = rate(frame, **COLUMNS)
    win, draw, loss = board.predict([("a", "b"), "a"], [("c", "d"), ("c", "d")])
    np.testing.assert_allclose(win + draw + loss, 1)
    assert win[0] == pytest.approx(board.predict(("a", "b"), ("c", "d")).win)
    with pytest.raises(ValueError, match="both sides"):
        board.predict(("a", "b"), ("b", "c"))


def test_the_command_reads_teams(tmp_path):
    file = tmp_path / "games.csv"
    file.write_text("a,b,winner,p,q\nx+y,z+u,a,1+1,1+.5\nx+z,y+u,b,1+1,1+1\nx+u,y+z,a,1+1,1+1\n")
    options = ["--sides", "a,b", "--team-separator", "+", "--team-weights", "p,q"]
    assert "in teams of 2" in succeed("rank", file, *options).stdout


def test_simulations_of_teams_print_shares(capsys, monkeypatch):
    from experiments.boards import teams

    settings = {"2 against 2": teams.SETTINGS["2 against 2, first side"]}
    monkeypatch.setattr(teams, "SETTINGS", settings)
    teams.main(["--runs", "2"])
    (row,) = capsys.readouterr().out.splitlines()[2:]
    assert all(0 <= float(cell) <= 1 for cell in row.split("|")[3:-1])


def test_players_predict_doubles_better_than_pairs_of_players(tmp_path, capsys, monkeypatch):
    from experiments.boards import doubles

    monkeypatch.setattr(doubles, "ALPHAS", [1e-3])
    monkeypatch.setattr(doubles, "SCALES", doubles.SCALES[:1])
    monkeypatch.setattr(doubles, "STEPS", (0.1,))
    rng = np.random.default_rng(0)
    skill = rng.normal(size=12)
    columns = ["tourney_date", "tourney_id", "match_num", "winner1_id", "winner2_id"]
    columns += ["loser1_id", "loser2_id"]
    folder = tmp_path / "atp_doubles"
    folder.mkdir()
    for year in doubles.YEARS:
        lines = [",".join(columns)]
        for match in range(40):
            a, b, c, d = rng.permutation(12)[:4]
            wins = rng.random() < 1 / (1 + np.exp(skill[c] + skill[d] - skill[a] - skill[b]))
            players = (a, b, c, d) if wins else (c, d, a, b)
            date = f"{year}{1 + match // 4:02d}01"
            lines.append(",".join([date, "t", str(match), *map(str, players)]))
        with gzip.open(folder / f"atp_matches_doubles_{year}.csv.gz", "wt") as file:
            file.write("\n".join(lines))
    doubles.main(["--data", str(tmp_path)])
    lines = capsys.readouterr().out.splitlines()
    losses = {line[:21].strip(): line[21:].split() for line in lines[4:8]}
    assert float(losses["players"][0]) < float(losses["pairs"][0])
