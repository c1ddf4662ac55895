"""``rankwise cv`` and ``rankwise rank``: numbers as the library or brute force gives them."""

from __future__ import annotations

import json

import numpy as np
import pytest

pytest.importorskip("click")

from sklearn.preprocessing import StandardScaler

from rankwise import RankRLS, RankSVM
from rankwise.metrics import evaluate, get_metric
from tests.cli.shell import TABLE, fail, lines_of, succeed


@pytest.mark.parametrize("name, model", [("rankrls", RankRLS), ("ranksvm", RankSVM)])
def test_held_out_scores_are_those_of_training_again(tmp_path, letor, problem, name, model):
    X, y, groups = StandardScaler().fit_transform(problem.X), problem.y, problem.groups
    out, per_group = tmp_path / "held.txt", tmp_path / "groups.csv"
    done = succeed(
        *("cv", letor, "--model", name, "--alpha", "0.1,1", "--leave", "group", "-m", "ndcg@5"),
        *("-o", out, "--per-group", per_group, "--json"),
    )
    found = json.loads(done.stdout)
    scores = np.empty((2, len(y)))
    for k, alpha in enumerate([0.1, 1.0]):
        for label in np.unique(groups):
            held = groups == label
            fitted = model(alpha).fit(X[~held], y[~held], groups[~held])
            scores[k, held] = fitted.predict(X[held])
    results = [evaluate(y, s, groups, ["ndcg@5"]) for s in scores]
    tolerance = 1e-9 if name == "rankrls" else 0.05
    means = [row["ndcg@5"] for row in found["candidates"]]
    np.testing.assert_allclose(means, [r["ndcg@5"] for r in results], atol=tolerance)
    best = int(np.argmax(means))
    assert found["best"]["alpha"] == [0.1, 1.0][best]
    if name == "rankrls":
        np.testing.assert_allclose([float(s) for s in lines_of(out)], scores[best], atol=1e-9)
        values = [row.split(",")[1] for row in lines_of(per_group)[1:]]
        expected = results[best].per_group["ndcg@5"]
        np.testing.assert_allclose([float(v or "nan") for v in values], expected, atol=1e-9)
        assert found["held_out_by"] == "exact leave-group-out"
    else:
        assert "refitted" in found["held_out_by"]


@pytest.mark.parametrize("name, values", [("corankrls", [0.1, 1.0]), ("pursuit", None)])
def test_semi_supervised_models_write_held_out_scores_and_groups(tmp_path, problem, name, values):
    from rankwise import CoRankRLS, RankingPursuit
    from rankwise.model_selection import cross_validate_candidates

    y = np.where(np.arange(len(problem.y)) % 7 == 3, np.nan, problem.y)
    path, out, per_group = tmp_path / "data.csv", tmp_path / "held.txt", tmp_path / "groups.csv"
    queries = np.array([f"q{group:02d}" for group in problem.groups])
    names = [*(f"f{k}" for k in range(problem.X.shape[1])), "query", "score"]
    scored = ["" if np.isnan(score) else repr(float(score)) for score in y]
    cells = [
        [*map(repr, x.tolist()), *rest] for x, *rest in zip(problem.X, queries, scored, strict=True)
    ]
    path.write_text("\n".join(",".join(row) for row in [names, *cells]))
    given = ("--alpha", "0.1,1", "--set", "nu=1") if values else ("--set", "n_basis=4")
    done = succeed(
        *("cv", path, "--model", name, *given, "--leave", "3", "-m", "ndcg@5"),
        *("--kernel", "rbf", "--set", "gamma=0.1", "-o", out, "--per-group", per_group, "--json"),
    )
    found = json.loads(done.stdout)
    scores = np.array([float(line) for line in lines_of(out)])
    np.testing.assert_array_equal(np.isnan(scores), np.isnan(y))
    assert f"{np.isnan(y).sum()} items without score are never held out" in done.stderr
    model = (
        CoRankRLS(kernel="rbf", gamma=0.1, nu=1.0, random_state=0)
        if values
        else RankingPursuit(4, kernel="rbf", gamma=0.1, random_state=0)
    )
    X = StandardScaler().fit_transform(problem.X)
    candidates = {"alpha": values} if values else {"n_basis": None}
    expected = cross_validate_candidates(
        model, X, y, queries, scoring="ndcg@5", cv=3, candidates=candidates
    )
    best = expected.best(expected_metric := get_metric("ndcg@5"))
    np.testing.assert_allclose(scores, expected.predictions[:, 0, best], rtol=1e-6, atol=1e-9)
    assert found["best"]["ndcg@5"] == pytest.approx(expected.overall(expected_metric)[best])
    written = [float(row.split(",")[1] or "nan") for row in lines_of(per_group)[1:]]
    np.testing.assert_allclose(written, expected.by_group["ndcg@5"][:, best, 0], atol=1e-9)


def test_leave_pair_out_of_one_list(table, problem):
    from rankwise.model_selection import leave_pair_out

    one_list = ["cv", table, "--target", "rating", "--ignore", "shop", "--alpha", "0.1,10"]
    X = StandardScaler().fit_transform(problem.X)
    expected = leave_pair_out(RankRLS(), X, problem.y, alphas=[0.1, 10.0]).disagreement
    for leave in ("pair", "auto"):
        done = succeed(*one_list, "--leave", leave, "-m", "disagreement", "--json")
        found = json.loads(done.stdout)
        assert found["held_out_by"] == "exact leave-pair-out"
        means = [row["disagreement"] for row in found["candidates"]]
        np.testing.assert_allclose(means, expected, atol=1e-12)
    assert "ndcg" in fail(*one_list, "--leave", "pair", "-m", "ndcg@5")
    assert "12 groups" in fail("cv", table, *TABLE, "--leave", "pair", "-m", "tau")
    assert "--leave group" in fail(*one_list, "--leave", "group")
    folds = json.loads(succeed(*one_list, "--leave", "4", "--json").stdout)
    assert folds["held_out_by"] == "exact 4 folds of items"
    assert "--leave x" in fail(*one_list, "--leave", "x")


@pytest.mark.parametrize("name, parameter", [("corankrls", "alpha"), ("pursuit", "n_basis")])
def test_models_without_a_shortcut_are_judged_by_their_search(letor, name, parameter):
    from rankwise import CoRankRLSCV, RankingPursuitCV
    from rankwise.datasets import read_letor

    few = ["--set", "n_basis=2"]
    done = succeed("cv", letor, "--model", name, *few, "-m", "map", "-m", "tau", "--json")
    found = json.loads(done.stdout)
    search = CoRankRLSCV if name == "corankrls" else RankingPursuitCV
    X, y, groups = read_letor(letor)[:3]
    model = search(n_basis=2, scoring="map", random_state=0)
    model.fit(StandardScaler().fit_transform(X), y, groups)
    assert found["best"]["map"] == pytest.approx(model.best_score_)
    assert found["best"][parameter] == pytest.approx(model.best_params_[parameter])
    assert "5 folds of groups" in found["held_out_by"]
    written = letor.with_suffix(".out")
    succeed("cv", letor, "--model", name, *few, "-m", "map", "-o", written)
    assert len(written.read_text().splitlines()) == len(y)


@pytest.fixture
def games(tmp_path):
    path = tmp_path / "games.csv"
    path.write_text(
        "winner,loser,judge,league\nAnn,Bob,1,x\nAnn,Cleo,1,x\nBob,Cleo,2,x\nCleo,Bob,2,y\n"
        "Ann,Bob,3,y\nBob,Ann,3,y\n"
    )
    return path


def test_the_board_is_that_of_the_library(tmp_path, games):
    from rankwise.datasets import read_pairs
    from rankwise.leaderboard import rate

    found = json.loads(succeed("rank", games, "--json").stdout)
    board = rate(read_pairs(games))
    assert found == json.loads(json.dumps(board.to_dict()))
    for alpha, value in (("auto", "auto"), ("0.5", 0.5)):
        options = ["--alpha", alpha, "--json"]
        twin = rate(read_pairs(games), alpha=value)
        assert json.loads(succeed("rank", games, *options).stdout)["alpha"] == twin.alpha
    shown = succeed("rank", games).stdout.splitlines()
    assert shown[2].split()[:2] == ["1", "Ann"]
    clustered = succeed("rank", games, "--cluster", "judge", "--json").stdout
    twin = rate(read_pairs(games), clusters=[1, 1, 2, 2, 3, 3])
    assert json.loads(clustered) == json.loads(json.dumps(twin.to_dict()))
    succeed("rank", games, "-o", tmp_path / "board.csv")
    head, first, *_ = lines_of(tmp_path / "board.csv")
    assert head.split(",")[:3] == ["rank", "item", "rating"]
    assert first.split(",")[:2] == ["1", "Ann"]
    assert float(first.split(",")[2]) == board["Ann"].rating


def test_one_board_for_each_group(tmp_path, games):
    out = tmp_path / "boards.csv"
    options = ["--board-per", "league", "--alpha", "0.1"]
    found = json.loads(succeed("rank", games, *options, "--json", "-o", out).stdout)
    assert list(found) == ["x", "y"]
    assert [row["item"] for row in found["x"]["rows"]] == ["Ann", "Bob", "Cleo"]
    assert lines_of(out)[1].startswith("x,1,Ann,")


def test_two_sides_and_who_won(tmp_path, games):
    battles = tmp_path / "battles.csv"
    battles.write_text(
        "left,right,winner,judge,league\nAnn,Bob,left,1,x\nCleo,Ann,right,1,x\nBob,Cleo,Bob,2,x\n"
        "Cleo,Bob,left,2,y\nBob,Ann,Ann,3,y\nAnn,Bob,right,3,y\n"
    )
    options = ["--cluster", "judge", "--json"]
    sides = ["--sides", "left,right"]
    assert (
        succeed("rank", battles, *sides, *options).stdout == succeed("rank", games, *options).stdout
    )
    battles.write_text("left,right,winner\nAnn,Bob,tie\nAnn,Cleo,left\n")
    done = succeed("rank", battles, *sides, "--json")
    rows = {row["item"]: row for row in json.loads(done.stdout)["rows"]}
    assert rows["Bob"]["ties"] == 1
    assert rows["Cleo"]["losses"] == 1
    battles.write_text("left,right,winner\nAnn,Bob,left\nAnn,Cleo,nobody\n")
    message = fail("rank", battles, *sides)
    assert f"{battles}:3" in message
    assert "nobody" in message
    assert "two columns" in fail("rank", battles, "--sides", "left")
    mapped = json.loads(succeed("rank", battles, *sides, "--map", "nobody=tie", "--json").stdout)
    assert {row["item"]: row["ties"] for row in mapped["rows"]}["Cleo"] == 1
    assert "expected WORD=first" in fail("rank", battles, *sides, "--map", "nobody")


def test_items_may_have_features(tmp_path, games):
    features = tmp_path / "items.csv"
    features.write_text("item,speed\nCleo,1\nBob,2\nAnn,3\nDan,4\n")
    options = ["--item-features", features, "--json"]
    rows = json.loads(succeed("rank", games, *options).stdout)["rows"]
    assert [row["item"] for row in rows] == ["Ann", "Bob", "Cleo"]
    gap = rows[0]["rating"] - rows[1]["rating"]
    assert gap == pytest.approx(rows[1]["rating"] - rows[2]["rating"])
    features.write_text("item,speed\nCleo,1\nBob,2\n")
    assert "3 compared items: Ann." in fail("rank", games, *options, "--judge", "judge")


def test_a_best_alpha_at_the_edge_is_said_in_one_line(tmp_path, letor):
    done = succeed("train", letor, "--alpha", "1e-3,1e9", "-o", tmp_path / "model.rw")
    assert "is at the edge of the grid from 0.001 to 1e+09" in " ".join(done.output.split())


def test_default_alphas_of_cv_are_those_of_the_search(tmp_path):
    from rankwise import RankRLSCV

    rng = np.random.default_rng(0)
    groups = np.repeat(np.arange(12), 6)
    X = rng.normal(size=(72, 3)) * [1e-4, 1.0, 1e3]
    y = (1e4 * X[:, 0]).round(1)
    file = tmp_path / "raw.csv"
    rows = [",".join(map(repr, row)) for row in np.c_[y, groups, X].tolist()]
    file.write_text("\n".join(["score,group,a,b,c", *rows]))
    options = [
        "--target",
        "score",
        "--group",
        "group",
        "--feature-scaling",
        "none",
        "-m",
        "disagreement",
    ]
    found = json.loads(succeed("cv", file, *options, "--json").stdout)
    search = RankRLSCV().fit(X, y, groups)
    alphas = search.cv_results_["alphas"][0]
    assert len(alphas) > 31
    np.testing.assert_allclose([row["alpha"] for row in found["candidates"]], alphas, rtol=1e-6)
    assert found["best"]["alpha"] == pytest.approx(search.alpha_)


def test_sides_covariates_and_counts_are_those_of_the_library(tmp_path):
    from rankwise.datasets import read_pairs
    from rankwise.leaderboard import rate

    battles = tmp_path / "battles.csv"
    battles.write_text(
        "a,b,better,who,long\nAnn,Bob,left,1,3\nCleo,Ann,right,1,-1\nBob,Cleo,Bob,2,0\n"
        "Cleo,Bob,first,2,2\nBob,Ann,both bad,3,1\nAnn,Bob,right,3,-2\nCleo,Ann,draw,1,1\n"
    )
    columns = ["--sides", "a,b", "--outcome", "better", "--judge", "who", "--covariates", "long"]
    found = json.loads(succeed("rank", battles, *columns, "--side", "--json").stdout)
    data = read_pairs(battles, sides=("a", "b"), outcome="better", judge="who", covariates=["long"])
    board = rate(data, covariates=["long"], side=True)
    assert found == json.loads(json.dumps(board.to_dict()))
    assert [effect["name"] for effect in found["effects"]] == ["first side", "long"]
    counts = tmp_path / "counts.csv"
    counts.write_text("one,two,w1,w2,t\nAnn,Bob,5,2,1\nBob,Cleo,3,1,0\nCleo,Ann,1,4,2\n")
    shown = succeed("rank", counts, "--sides", "one,two", "--wins", "w1,w2,t", "--json").stdout
    assert json.loads(shown)["n_comparisons"] == 19
    message = fail("rank", battles, "--sides", "a,b", "--outcome", "long")
    assert all(word in message for word in ("'3'", "'-1'", "'2'", "'-2'"))


def test_boards_in_every_format(tmp_path, games):
    from rankwise.datasets import read_pairs
    from rankwise.leaderboard import rate

    board = rate(read_pairs(games), scale="elo", anchor="Bob", min_comparisons=4, order="lower")
    options = ["--rating-scale", "elo", "--anchor", "Bob", "--min-comparisons", 4]
    options += ["--sort-by", "lower"]
    formats = {"a.md": "markdown", "a.tex": "latex", "a.csv": "csv", "a.json": "json"}
    for name, format in formats.items():
        succeed("rank", games, *options, "-o", tmp_path / name)
        assert (tmp_path / name).read_text() == board.to_text(format)
    assert "Zoe is not on the board" in fail("rank", games, "--anchor", "Zoe", "--judge", "judge")
    shown = succeed("rank", games, "--judge", "judge", "--reweight").stdout
    assert "judges with remarks" in shown
    succeed("rank", games, "--board-per", "league", "-o", tmp_path / "a.md")
    assert "**x**" in (tmp_path / "a.md").read_text()
