"""Gaps, orders, groups and outcomes in the words of the user."""

from __future__ import annotations

import json
import re

import numpy as np
import pytest

pytest.importorskip("click")

from rankwise import RankRLSCV, TableVectorizer
from rankwise.cli.command import Option
from rankwise.datasets import read_ranking
from tests.cli.shell import fail, succeed

GRADES = ["poor", "fair", "good"]


@pytest.fixture(scope="module")
def flats():
    """Rows of a table: score, its place, words for it, and columns with odd gaps."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=(120, 2))
    place = np.clip(np.round(1 + x[:, 0] + 0.3 * rng.normal(size=120)), 0, 2).astype(int)
    return [
        {
            "grade": GRADES[place[k]],
            "place": 3 - place[k],
            "level": place[k],
            "town": "AB"[k % 2],
            "year": 2020 + k % 3,
            "size, sqm": "k.A." if k % 10 == 3 else f"{x[k, 0]:.3f}",
            "age": -999 if k % 10 == 5 else round(x[k, 1], 3),
        }
        for k in range(120)
    ]


def write(path, rows, *columns):
    header = ",".join(f'"{name}"' for name in columns)
    lines = [",".join(str(row[name]) for name in columns) for row in rows]
    path.write_text("\n".join([header, *lines]))
    return path


FEATURES = ("town", "year", "size, sqm", "age")
GAPS = ["--missing", "k.A.", "--missing=-999"]


def trained(*arguments, out):
    return json.loads(succeed("train", *arguments, *GAPS, "-o", out, "--json").stdout)


def test_words_and_ranks_train_what_numbers_train(flats, tmp_path):
    plain = write(tmp_path / "plain.csv", flats, "level", *FEATURES)
    words = write(tmp_path / "words.csv", flats, "grade", *FEATURES)
    places = write(tmp_path / "places.csv", flats, "place", *FEATURES)
    group = ["--group", "town,year"]
    expected = trained(plain, "--target", "level", *group, out=tmp_path / "a.rw")
    assert expected["data"]["groups"] == 6
    gaps = {column["name"]: column["n_missing"] for column in expected["data"]["columns"]}
    assert gaps == {"size, sqm": 12, "age": 12}
    order = ["--order", "poor,fair,good"]
    found = trained(words, "--target", "grade", *order, *group, out=tmp_path / "b.rw")
    assert found["chosen"] == expected["chosen"]
    turned = ["--target", "place", "--lower-is-better", "--group", "town", "--group", "year"]
    assert trained(places, *turned, out=tmp_path / "c.rw")["chosen"] == expected["chosen"]
    judged = []
    for model, file in (("a", plain), ("b", words), ("c", places)):  # models remember the words
        shown = succeed("evaluate", tmp_path / f"{model}.rw", file, "-m", "tau", "--json").stdout
        judged.append(json.loads(shown)["metrics"])
        scores = succeed("predict", tmp_path / f"{model}.rw", file).stdout
        assert scores == succeed("predict", tmp_path / "a.rw", plain).stdout
    assert judged[0] == judged[1] == judged[2]


def test_names_with_commas(flats, tmp_path):
    file = write(tmp_path / "a.csv", flats, "level", *FEATURES)
    options = ["--target", "level", "--group", "none"]
    for names in ("size, sqm", '"size, sqm"'):
        found = trained(file, *options, "--features", names, out=tmp_path / "m.rw")
        assert found["data"]["features"] == ["size, sqm"]
    both = trained(file, *options, "--features", 'age,"size, sqm"', out=tmp_path / "m.rw")
    assert both["data"]["features"] == ["age", "size, sqm"]


def test_bad_words_are_told(flats, tmp_path):
    words = write(tmp_path / "words.csv", flats, "grade", *FEATURES)
    given = ("train", words, "--target", "grade", "-o", tmp_path / "m.rw", "--group", "town")
    assert "expected one of poor, good" in fail(*given, "--order", "poor,good")
    assert "one order" in fail(*given, "--order", "a,b", "--order", "c,d")
    assert "'grade', is" in fail(*given)


def test_very_skewed_scores_are_told(tmp_path):
    rng = np.random.default_rng(0)
    x, file = rng.normal(size=200), tmp_path / "skewed.csv"
    rows = [f"{np.exp(3 * v):.4f},{v + 0.1 * rng.normal():.3f},{k % 10}" for k, v in enumerate(x)]
    file.write_text("\n".join(["y,x,qid", *rows]))
    said = succeed("train", file, "-o", tmp_path / "m.rw").stderr
    assert "--set cost=sign" in said
    quiet = succeed("train", file, "--set", "cost=sign", "-o", tmp_path / "m.rw").stderr
    assert "skewed" not in quiet


HELPED = ["cv", "evaluate", "compare", "report", "predict", "rank", "judge"]


@pytest.mark.parametrize("command", ["train", *HELPED])
def test_help_fits_80_columns_and_the_short_one_a_screen(command, monkeypatch):
    from rankwise.cli.app import app

    monkeypatch.setenv("COLUMNS", "80")
    short, whole = (succeed(command, flag).stdout for flag in ("--help", "--help-all"))
    for text in (short, whole):
        assert max(map(len, text.splitlines())) <= 80
    assert len(short.splitlines()) <= 40
    for parameter in app.commands[command].params:
        if isinstance(parameter, Option) and parameter.name != "help_all":
            name = parameter.opts[-1]
            assert (f"{name} " in short) != parameter.is_advanced, name
            assert f"{name} " in whole, name
    assert "--quiet" in whole
    assert "--quiet" not in short


@pytest.mark.parametrize("command", ["train", *HELPED])
def test_examples_of_help_can_be_pasted(command, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    text = succeed(command, "--help-all").stdout
    examples = re.findall(rf"^  (rankwise {command} .*)$", text, flags=re.MULTILINE)
    assert examples
    for option in re.findall(r" (--?[a-z-]+)", " ".join(examples)):
        assert re.search(rf"^  (-\w, )?{option}\b", text, flags=re.MULTILINE), option


def test_cv_gives_the_standard_error_of_the_best_line(tmp_path):
    rng = np.random.default_rng(0)
    x, file = rng.normal(size=120), tmp_path / "a.csv"
    rows = [f"{v + rng.normal():.3f},{v:.3f},{k % 6}" for k, v in enumerate(x)]
    file.write_text("\n".join(["y,x,qid", *rows]))
    out = tmp_path / "groups.csv"
    given = ("cv", file, "--alpha", "0.01,1", "-m", "disagreement")
    best = json.loads(succeed(*given, "--json", "--per-group", out).stdout)["best"]
    values = [float(line.split(",")[1]) for line in out.read_text().splitlines()[1:]]
    assert best["standard_error"] == pytest.approx(np.std(values, ddof=1) / np.sqrt(6))
    line = f"best, disagreement ± {best['standard_error']:.4f}"
    assert line in succeed(*given).stdout


def test_a_time_limit_is_for_auto(tmp_path, flats):
    file = write(tmp_path / "a.csv", flats, "level", *FEATURES)
    given = ("train", file, "--target", "level", "--group", "town", "-o", tmp_path / "m.rw")
    short = succeed(*given, "--model", "auto", "--time-limit", "0", "--json")
    members = json.loads(short.stdout)["chosen"]["members"]
    assert sum("score" in member for member in members) == 1
    assert "no parameter time_limit" in fail(*given, "--time-limit", "5")


@pytest.fixture(scope="module")
def races(tmp_path_factory):
    """Races on dates, in any order, with words of an order among the features."""
    rng = np.random.default_rng(3)
    rows = ["score,race,day,size,x"]
    for k in rng.permutation(240):
        x, size = rng.normal(), k % 3
        score = x * (1 + k / 100) + size + 0.3 * rng.normal()
        cells = [f"{score:.3f}", k // 8, f"20{10 + k // 80}-0{1 + k // 8 % 9}-01"]
        rows.append(",".join(map(str, [*cells, ["small", "mid", "large"][size], f"{x:.3f}"])))
    path = tmp_path_factory.mktemp("races") / "races.csv"
    path.write_text("\n".join(rows))
    return path


def test_later_groups_are_held_out(races, tmp_path):
    order = {"size": ["small", "mid", "large"]}
    given = (races, "--group", "race", "--time", "day", "--order", "size=small,mid,large")
    data = read_ranking(races, group="race", time="day", as_frame=True)
    X = TableVectorizer(order=order, scale=True).fit_transform(data.X)
    assert X.shape[1] == 2
    search = RankRLSCV(random_state=0).fit(X, data.y, data.groups, time=data.time)
    found = json.loads(succeed("train", *given, "-o", tmp_path / "m.rw", "--json").stdout)
    assert found["chosen"]["parameters"]["alpha"] == pytest.approx(search.alpha_)
    assert found["chosen"]["held_out_score"] == pytest.approx(search.best_score_)
    assert found["chosen"]["held_out_by"] == "later groups"
    best = json.loads(succeed("cv", *given, "--json").stdout)["best"]
    assert (best["alpha"], best["disagreement"]) == pytest.approx(
        (search.alpha_, search.best_score_)
    )
    scores = succeed("predict", tmp_path / "m.rw", races).stdout.split()
    np.testing.assert_allclose(np.array(scores, float), search.predict(X))
    assert "--leave 3" in fail("cv", *given, "--leave", "3")
    assert "leave out --time" in fail("train", *given, "--alpha", "1", "-o", tmp_path / "n.rw")


def test_auto_takes_the_columns_of_a_table_as_they_are(races, tmp_path):
    from rankwise.persistence import load

    given = ("train", races, "--group", "race", "--model", "auto", "--time-limit", "0")
    succeed(*given, "-o", tmp_path / "m.rw")
    kinds = {column.name: column.kind for column in load(tmp_path / "m.rw").table_.facts_}
    assert kinds == {"size": "category", "day": "date", "x": "number"}
    assert len(succeed("predict", tmp_path / "m.rw", races).stdout.split()) == 240
    succeed("evaluate", tmp_path / "m.rw", races)
    succeed(*given, "--calibrate", "-o", tmp_path / "c.rw")
    first, *rows = succeed("predict", tmp_path / "c.rw", races, "--intervals").stdout.split()
    assert (first, len(rows)) == ("score,error,rank,rank_low,rank_high", 240)
    succeed(*given, "--order", "size=small,mid,large", "-o", tmp_path / "n.rw")
    assert "TableVectorizer" in str(load(tmp_path / "n.rw")[0])
