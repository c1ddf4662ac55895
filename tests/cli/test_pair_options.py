"""Comparisons of items that have features: train, predict, evaluate, report and cv."""

from __future__ import annotations

import json
import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from sklearn.model_selection import GroupKFold
from sklearn.pipeline import make_pipeline

pytest.importorskip("click")

from rankwise import AutoRanker, PairGraph, RankLogisticCV, RankRLSCV, RankSVMCV, TableVectorizer
from rankwise.datasets import pairs_from_frame, read_ranking
from rankwise.persistence import load
from tests.cli.shell import fail, run, succeed

N_WINES = 30


@pytest.fixture(scope="module")
def tasting(tmp_path_factory):
    """Wines with gaps and words, and who was preferred by which judge, by how much."""
    folder = tmp_path_factory.mktemp("tasting")
    rng = np.random.default_rng(0)
    age, sugar = rng.integers(1, 20, N_WINES), rng.normal(size=N_WINES).round(2)
    color = rng.choice(["red", "white"], N_WINES)
    taste = 0.2 * age + sugar + (color == "red")
    rows = [
        f"wine {k:02},{'' if k % 9 == 4 else age[k]},{sugar[k]},{color[k]},region {k % 5}"
        for k in range(N_WINES)
    ]
    items = folder / "wines.csv"
    items.write_text("\n".join(["bottle,age,sugar,color,region", *rows, "wine 99,3,0.1,red,x"]))
    left = rng.integers(0, N_WINES, 300)
    right = (left + rng.integers(1, N_WINES, 300)) % N_WINES
    margin = taste[left] - taste[right] + rng.normal(size=300)
    judge, weight = rng.integers(0, 6, 300), rng.integers(1, 4, 300)
    header = "winner,loser,by,judge,w"
    lines = [
        f"wine {a:02},wine {b:02},{abs(m):.3f},judge {j},{w}"
        for a, b, m, j, w in zip(
            np.where(margin > 0, left, right), np.where(margin > 0, right, left), margin, judge,
            weight, strict=True,
        )
    ]  # fmt: skip
    for name, some in (("train", lines[:200]), ("test", lines[200:])):
        (folder / f"{name}.csv").write_text("\n".join([header, *some]))
    return folder


def library_data(folder, name="train"):
    """Items and the ends, magnitudes, judges and weights of the comparisons, read by hand."""
    X = read_ranking(folder / "wines.csv", target=None, group=None, id="bottle", as_frame=True).X
    rows = [line.split(",") for line in (folder / f"{name}.csv").read_text().splitlines()[1:]]
    winner, loser = (np.array([int(row[k][-2:]) for row in rows]) for k in (0, 1))
    magnitude, weight = (np.array([float(row[k]) for row in rows]) for k in (2, 4))
    return X.slice(0, N_WINES), winner, loser, magnitude, weight, [row[3] for row in rows]


def given(folder, name="train"):
    return [folder / f"{name}.csv", "--items", folder / "wines.csv"]


SEARCHES = {"rankrls": RankRLSCV, "ranksvm": RankSVMCV, "ranklogistic": RankLogisticCV}


@pytest.mark.parametrize("name", SEARCHES)
def test_the_model_is_the_pipeline_of_the_library(tasting, tmp_path, name):
    model, new = tmp_path / "m.rw", tmp_path / "new.csv"
    options = ["--magnitude", "by", "--weight", "w", "--model", name]
    done = succeed("train", *given(tasting), *options, "-o", model)
    assert "30, bottle in" in done.stdout
    assert "1 rows of" in done.stderr  # wine 99 was never compared
    X, winner, loser, magnitude, weight, _ = library_data(tasting)
    graph = PairGraph(winner, loser, magnitude, weight, N_WINES)
    columns = TableVectorizer(scale=True)
    twin = make_pipeline(columns, SEARCHES[name](random_state=0)).fit(X, graph)
    new.write_text("sugar,age,color,region\n0.5,,red,region 1\n-1,7,white,nowhere\n")
    printed = succeed("predict", model, new).stdout.split()
    items = read_ranking(new, target=None, as_frame=True).X
    np.testing.assert_allclose(np.array(printed, float), twin.predict(items))
    told = json.loads(succeed("evaluate", model, *given(tasting, "test"), "--json").stdout)
    X, winner, loser, *_ = library_data(tasting, "test")
    scores = twin.predict(X)
    wrong = (scores[winner] < scores[loser]) + 0.5 * (scores[winner] == scores[loser])
    assert told["metrics"][0]["mean"] == pytest.approx(wrong.mean())
    assert told["metrics"][0]["groups"] == 100
    scores_file = tmp_path / "scores.txt"
    succeed("predict", model, tasting / "wines.csv", "-o", scores_file)
    by_scores = succeed("evaluate", scores_file, *given(tasting, "test"), "--json").stdout
    assert json.loads(by_scores)["metrics"] == told["metrics"]
    weighted = ["evaluate", model, *given(tasting, "test"), "--weight", "w", "--json"]
    weight = library_data(tasting, "test")[4]
    mean = json.loads(succeed(*weighted).stdout)["metrics"][0]["mean"]
    assert mean == pytest.approx(np.average(wrong, weights=weight))


def test_sides_and_ties_are_read_as_rank_reads_them(tasting, tmp_path):
    _, winner, loser, *_ = library_data(tasting)
    ends = np.sort(np.column_stack([winner, loser]))
    words = np.where(ends[:, 0] == winner, "left", "right")
    words[::7] = "hmm"
    rows = [f"wine {a:02},wine {b:02},{w}" for (a, b), w in zip(ends, words, strict=True)]
    (tmp_path / "sides.csv").write_text("\n".join(["left,right,better", *rows]))
    done = succeed("train", tmp_path / "sides.csv", "--items", tasting / "wines.csv",
                   "--map", "hmm=tie", "-o", tmp_path / "m.rw")  # fmt: skip
    assert "'left' and 'right' are read as the two sides, 'better' as the outcome" in done.stderr
    assert "200, 29 of them tied" in done.stdout


def test_what_is_held_out(tasting, tmp_path):
    data = given(tasting)
    X, winner, loser, *_, judges = library_data(tasting)
    prepared, ends = (
        TableVectorizer(scale=True).fit_transform(X),
        (winner, loser, None, None, N_WINES),
    )
    splits = list(GroupKFold(6).split(winner, groups=judges))
    searches = {
        (): RankRLSCV().fit(prepared, PairGraph(*ends)),
        ("--leave", "edge"): RankRLSCV(cv=10).fit(prepared, PairGraph(*ends)),
        ("--judge", "judge"): RankRLSCV(cv=splits).fit(prepared, PairGraph(*ends)),
    }
    regions = [f"region {k % 5}" for k in range(N_WINES)]
    graph = PairGraph(*ends, groups=regions)
    without = TableVectorizer(scale=True).fit_transform(X.drop_columns(["region"]))
    searches["--group", "region"] = RankRLSCV().fit(without, graph)
    searches["--group", "region", "--leave", "3"] = RankRLSCV(cv=3).fit(without, graph)
    for options, search in searches.items():
        best = json.loads(succeed("cv", *data, *options, "--json").stdout)["best"]
        assert best["alpha"] == pytest.approx(search.alpha_), options
        assert best["disagreement"] == pytest.approx(search.best_score_), options
    trained = json.loads(
        succeed("train", *data, "--judge", "judge", "-o", tmp_path / "m.rw", "--json").stdout
    )
    by_judge = searches["--judge", "judge"]
    assert trained["chosen"]["held_out_score"] == pytest.approx(by_judge.best_score_)
    both = run("cv", *data, "--judge", "judge", "--group", "region")
    assert "--group and --judge" in both.stderr
    assert "--judge" in run("cv", *data, "--leave", "judge").stderr


def test_held_out_comparisons_are_reported_and_training_ones_are_recognized(tasting, tmp_path):
    model, page = tmp_path / "m.rw", tmp_path / "page.html"
    succeed("train", *given(tasting), "-o", model)
    assert "flatter" not in succeed("evaluate", model, *given(tasting, "test")).stderr
    seen = succeed("evaluate", model, *given(tasting)).stderr
    assert "was trained on all of these comparisons" in seen
    succeed("report", model, *given(tasting, "test"), "-o", page)
    text = page.read_text(encoding="utf-8")
    assert "wine 0" in text
    assert "figures flatter" not in text
    shown = succeed("compare", tasting / "test.csv", model, model, "--items",
                    tasting / "wines.csv", "--json")  # fmt: skip
    comparison = json.loads(shown.stdout)["disagreement"]
    assert comparison["groups"] == 100
    assert comparison["items"] == evaluated_items(model, tasting)


def evaluated_items(model, tasting):
    """Number of items in the note of the table of `evaluate`, which names shared items."""
    table = succeed("evaluate", model, *given(tasting, "test")).stdout
    return int(re.search(r"groups are comparisons of (\d+) items", table)[1])


@pytest.mark.parametrize(
    "pairs, items, options, words",
    [
        ("a,b", "n,x\na,1\nc,2", [], "lacks 1 of the 2 compared items: b"),
        ("a,b", "n,x\na,1\nb,2\na,3", [], "several rows for a"),
        ("a,a", "n,x\na,1\nb,2", [], "'a' is compared with itself"),
        ("a,b", "n,x\nc,1\nd,2", [], "no column has names of compared items, such as a"),
        ("a,b", "n,x\na,1\nb,2", ["--target", "x"], "leave out --target or --items"),
        ("a,b", "n,x\na,1\nb,2", ["--feature-scaling", "group"], "--feature-scaling group"),
        ("a,b", "1 qid:1 1:2\n2 qid:1 1:3", [], "svmlight rows, expected a table"),
        ("a,b", "n,m,x\na,b,1\nb,a,2", ["--judge", "loser"], "only one judge"),
    ],
)
def test_what_cannot_be_trained_on_is_told(tmp_path, pairs, items, options, words):
    (tmp_path / "pairs.csv").write_text(f"winner,loser\n{pairs}\n")
    (tmp_path / "items.csv").write_text(items)
    data = (tmp_path / "pairs.csv", "--items", tmp_path / "items.csv")
    assert words in fail("train", *data, *options, "-o", tmp_path / "m.rw")
    assert not (tmp_path / "m.rw").exists()


def test_comparisons_without_items_are_explained(tmp_path):
    (tmp_path / "pairs.csv").write_text("left,right,winner\na,b,a\n")
    message = fail("train", tmp_path / "pairs.csv", "--sides", "left,right", "-o", tmp_path / "m")
    assert "--items" in message


def test_auto_learns_from_the_sides_as_the_library_does(tmp_path):
    folder = Path(__file__).parents[2] / "examples" / "data"
    duels = pd.read_csv(folder / "duels.csv")[:900]
    duels.to_csv(tmp_path / "duels.csv", index=False)
    creatures = pd.read_csv(folder / "creatures.csv")
    data = (tmp_path / "duels.csv", "--items", folder / "creatures.csv")
    path = tmp_path / "auto.rw"
    succeed("train", *data, "--model", "auto", "--time-limit", "60", "-o", path)
    comparisons = pairs_from_frame(duels, sides=["left", "right"], outcome="winner")
    expected = AutoRanker(time_limit=60).fit(creatures, comparisons, item_id="name")
    model = load(path)
    np.testing.assert_allclose(model.predict(creatures), expected.predict(creatures))
    rows = np.arange(60)
    above = model.predict_above(creatures, rows, rows + 60, covariates={"named first": 1})
    np.testing.assert_allclose(
        above,
        expected.predict_above(creatures, rows, rows + 60, covariates={"named first": 1}),
    )
    assert model.comparison_.uses_pairs_

    row_of = pd.Series(np.arange(len(creatures)), index=creatures["name"])
    left, right = row_of[duels["left"]].to_numpy(), row_of[duels["right"]].to_numpy()
    is_wrong = (model.predict_above(creatures, left, right) > 0.5) != (
        duels["winner"] == duels["left"]
    )
    note = succeed("evaluate", path, *data).stderr
    shown = float(re.search(r"misorders (\d+\.\d)%", note)[1])
    assert shown == pytest.approx(100 * is_wrong.mean(), abs=0.06)
