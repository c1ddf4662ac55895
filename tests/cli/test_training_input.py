"""Gaps, text, dates and identifiers: one command trains on a table as people have it."""

from __future__ import annotations

import json

import numpy as np
import pytest

pytest.importorskip("click")
pytest.importorskip("pyarrow")

from sklearn.pipeline import make_pipeline

import rankwise
from rankwise.datasets import read_ranking
from rankwise.persistence import load
from tests.cli.shell import fail, lines_of, run, succeed

HEADER = "Listing ID;Verkauft am;Straße;Bezirk;Heizung;Fläche;Zimmer;Balkon;Baujahr;leer;Preis"
ROLES = ["--target", "Preis", "--group", "Bezirk"]
FEATURES = ["Verkauft am", "Heizung", "Fläche", "Zimmer", "Balkon", "Baujahr"]


def decimal(number):
    return f"{number:.2f}".replace(".", ",")


def flat(rng, k):
    area, rooms = rng.uniform(20, 200), int(rng.integers(1, 7))
    heating = str(rng.choice(["Gas", "Öl", "Fernwärme", ""], p=[0.5, 0.2, 0.2, 0.1]))
    price = 3 * area + 20 * rooms + 30 * (heating == "Fernwärme") + 15 * rng.normal()
    return {
        "Listing ID": str(900719925474099300 + 7 * k),
        "Verkauft am": f"{rng.integers(1, 28):02d}.{rng.integers(1, 13):02d}.2024",
        "Straße": f'"Weg {k}; hinten"',
        "Bezirk": f"B{k % 10}",
        "Heizung": heating,
        "Fläche": "" if rng.random() < 0.1 else decimal(area),
        "Zimmer": "NA" if rng.random() < 0.05 else str(rooms),
        "Balkon": str(rng.choice(["ja", "nein"])),
        "Baujahr": str(rng.integers(1900, 2020)),
        "leer": "",
        "Preis": "" if k % 25 == 3 else decimal(price),
    }


def write_flats(path, flats, names=None, mark=";"):
    names = names or HEADER.split(";")
    rows = [mark.join(names), *(mark.join(one[name] for name in names) for one in flats)]
    path.write_text("\ufeff" + "\r\n".join(rows) + "\r\n", encoding="utf-8", newline="")
    return path


@pytest.fixture
def flats():
    rng = np.random.default_rng(0)
    return [flat(rng, k) for k in range(150)]


@pytest.fixture
def messy(tmp_path, flats):
    return write_flats(tmp_path / "flats.csv", flats)


@pytest.fixture
def model(tmp_path, messy):
    succeed("train", messy, *ROLES, "-o", tmp_path / "flats.rw")
    return tmp_path / "flats.rw"


def numbers(text):
    return np.array([float(line) for line in text.split()])


def test_a_messy_table_trains_with_one_command_and_its_report_opens(tmp_path, messy, flats):
    model, page = tmp_path / "flats.rw", tmp_path / "page.html"
    done = succeed("train", messy, *ROLES, "-o", model)
    assert done.stderr == f"rankwise: note: 6 rows of {messy} have no score and are dropped\n"
    start = done.stdout.index("column ")
    rows = done.stdout[start : done.stdout.index("\n\n", start)].splitlines()[2:]
    known = [one for one in flats if one["Preis"]]
    n_missing = [sum(one[name] in ("", "NA") for one in known) for name in FEATURES[1:]]
    assert [" ".join(row.split()) for row in rows] == [
        "Preis target",
        "Bezirk group",
        "Baujahr number",
        "Listing ID dropped an identifier: its name says so",
        "Verkauft am date: month, weekday, days",
        "Straße dropped texts in which every word occurs once, or in all of them",
        f"Heizung category of 3 values, {n_missing[0]} missing values",
        f"Fläche number with {n_missing[1]} missing values",
        f"Zimmer number with {n_missing[2]} missing values",
        "Balkon category of 2 values",
        "leer dropped it has no values",
    ]
    found = json.loads(succeed("cv", messy, *ROLES, "--json").stdout)
    assert found["best"]["disagreement"] < 0.15
    assert "all rows" in found["prepared"]
    assert len(numbers(succeed("predict", model, messy).stdout)) == 150
    values = json.loads(succeed("evaluate", model, messy, "--json").stdout)
    assert values["items"] == 144
    succeed("report", model, messy, "-o", page)
    text = page.read_text(encoding="utf-8")
    assert "Heizung=Fernwärme" in text
    assert "trained on all of these items, so these metrics are optimistic" in text


def test_the_model_is_the_pipeline_of_the_library(messy, model):
    data = read_ranking(messy, target="Preis", group="Bezirk", as_frame=True)
    data = data.take(np.flatnonzero(~np.isnan(data.y)))
    twin = make_pipeline(rankwise.TableVectorizer(scale=True), rankwise.RankRLSCV(random_state=0))
    twin.fit(data.X, data.y, rankrlscv__groups=data.groups)
    every = read_ranking(messy, target=None, group="Bezirk", as_frame=True).X
    scores = numbers(succeed("predict", model, messy).stdout)
    np.testing.assert_allclose(scores, twin.predict(every), rtol=1e-12)
    facts = load(model)[0].facts_
    assert [column.name for column in facts if column.kind != "dropped"] == FEATURES


def test_cv_holds_out_the_features_that_train_makes(messy):
    data = read_ranking(messy, target="Preis", group="Bezirk", as_frame=True)
    data = data.take(np.flatnonzero(~np.isnan(data.y)))
    X = rankwise.TableVectorizer(scale=True).fit_transform(data.X)
    found = json.loads(succeed("cv", messy, *ROLES, "--alpha", "0.5", "--json").stdout)
    wrong = []
    for label in np.unique(data.groups):
        held = data.groups == label
        fitted = rankwise.RankRLS(0.5).fit(X[~held], data.y[~held], data.groups[~held])
        wrong.append(rankwise.metrics.disagreement_error(data.y[held], fitted.predict(X[held])))
    assert found["best"]["disagreement"] == pytest.approx(np.mean(wrong))


def test_columns_may_come_in_another_order_with_new_categories(tmp_path, messy, model, flats):
    names = [*FEATURES[::-1], "Bezirk"]
    other = write_flats(tmp_path / "other.csv", flats, names, mark="|")
    expected = succeed("predict", model, messy).stdout
    assert succeed("predict", model, other).stdout == expected
    changed = [one | {"Heizung": "Pellets"} for one in flats]
    blank = [one | {"Heizung": ""} for one in flats]
    scores = [
        numbers(succeed("predict", model, write_flats(tmp_path / "new.csv", rows)).stdout)
        for rows in (changed, blank)
    ]
    assert np.isfinite(scores).all()
    assert np.ptp(scores[1] - scores[0]) < 1e-9  # by the same, the weight of a gap
    assert abs(scores[1] - scores[0]).max() > 1e-9


def test_predictions_stand_beside_the_messy_table(tmp_path, messy, model):
    out = tmp_path / "out.csv"
    succeed("predict", model, messy, "--column", "Schätzung", "-o", out)
    assert out.read_text("utf-8-sig").splitlines()[0] == HEADER + ";Schätzung"
    assert len(lines_of(out)) == 151


def test_other_files_of_the_same_table_give_the_same(tmp_path, messy, model):
    import pyarrow.parquet as parquet

    every = read_ranking(messy, target=None, group=None, as_frame=True).X
    parquet.write_table(every, tmp_path / "flats.parquet")
    done = succeed("predict", model, tmp_path / "flats.parquet")
    assert done.stdout == succeed("predict", model, messy).stdout


def test_a_file_that_is_one_column_to_the_reader_names_the_delimiter(tmp_path):
    rows = [f"{k % 7}#{k % 5}#{k // 6}#{k % 3}" for k in range(60)]
    path = tmp_path / "rooms.csv"
    path.write_text("\n".join(["size#age#town#grade", *rows]))
    model, words = tmp_path / "rooms.rw", ("--target", "grade", "--group", "town")
    succeed("train", path, *words, "--delimiter", "#", "-o", model)
    assert "--delimiter" in fail("predict", model, path)
    assert len(numbers(succeed("predict", model, path, "--delimiter", "#").stdout)) == 60


def test_missing_columns_are_named_at_once(tmp_path, model, flats):
    renamed = [one | {"zimmer": one["Zimmer"]} for one in flats]
    bad = write_flats(tmp_path / "bad.csv", renamed, ["Heizung", "zimmer", "Baujahr"])
    message = fail("predict", model, bad)
    assert "lacks 4 of the 6 columns" in message
    assert ": Verkauft am, Fläche, Zimmer, Balkon. It has Heizung, zimmer" in message


def test_a_word_in_a_column_of_numbers_is_told_with_its_line(tmp_path, model, flats):
    flats[1] = flats[1] | {"Zimmer": "viele"}
    bad = write_flats(tmp_path / "bad.csv", flats)
    assert f"{bad}:3: the feature, column 'Zimmer', is 'viele'" in fail("predict", model, bad)


def test_the_user_overrules_what_columns_are(tmp_path, messy):
    options = ["-o", tmp_path / "m.rw", "--json"]

    def columns(*more):
        found = json.loads(succeed("train", messy, *ROLES, *more, *options).stdout)
        return {column["name"]: column for column in found["data"]["columns"]}

    found = columns("--categorical", "Baujahr,Verkauft am", "--ignore", "Zimmer")
    assert found["Baujahr"]["use"] == found["Verkauft am"]["use"] == "category"
    assert found["Zimmer"] == {
        **{"name": "Zimmer", "use": "dropped", "n_missing": 0},
        "why": "as requested",
    }
    assert columns("--numeric", "Listing ID")["Listing ID"]["use"] == "number"
    assert [n for n, c in columns("--features", "Zimmer").items() if c["use"] == "number"] == [
        "Zimmer"
    ]


@pytest.mark.parametrize(
    "options, words",
    [
        (["--no-impute"], "missing values in the columns Fläche ("),
        (
            ["--features", "leer,Verkauft am"],
            "these columns cannot be learned from: 'leer' (it has no values)",
        ),
        (["--numeric", "Heizung"], ":2: the feature, column 'Heizung', is"),
        (["--categorical", "leer"], "'leer' (it has no values)"),
        (["--categorical", "Zimmer", "--numeric", "Zimmer"], "is in two of"),
    ],
)
def test_what_cannot_be_done_is_refused_and_nothing_is_written(tmp_path, messy, options, words):
    done = run("train", messy, *ROLES, *options, "-o", tmp_path / "m.rw")
    assert done.exit_code == 1
    assert words in done.stderr
    assert done.stdout == ""
    assert sorted(tmp_path.iterdir()) == [messy]


def test_leading_zeros_of_a_category_are_kept(tmp_path):
    train, new = tmp_path / "train.csv", tmp_path / "new.csv"
    rows = [f"{k % 2},{'007' if k % 2 else '7'},{k % 3}" for k in range(40)]
    train.write_text("y,zip,x\n" + "\n".join(rows))
    succeed("train", train, "--categorical", "zip", "--alpha", "1e-3", "-o", tmp_path / "m.rw")
    new.write_text("zip,x\n7,1\n007,1\n")
    low, high = numbers(succeed("predict", tmp_path / "m.rw", new).stdout)
    assert low < high - 0.5


def test_a_headerless_table_has_numbers_for_names(tmp_path, problem):
    data = tmp_path / "bare.csv"
    rows = np.c_[problem.y, problem.groups, problem.X]
    data.write_text("\n".join(",".join(map(repr, row)) for row in rows.tolist()))
    bare = ["--no-header", "--target", "0", "--group", "1"]
    done = succeed("train", data, *bare, "-o", tmp_path / "m.rw")
    assert "features        3: 2, 3, 4\n" in done.stdout
    for options in ([], ["--rank"]):
        scores = succeed("predict", tmp_path / "m.rw", data, "--no-header", *options).stdout
        assert len(scores.split()) == len(rows)


# Figures on training rows


def test_figures_on_training_rows_are_said_to_flatter(tmp_path, messy, model, flats):
    words = f"{model} was trained on all of these items, so these metrics are optimistic"
    assert words in succeed("evaluate", model, messy).stderr
    assert words in succeed("compare", messy, model, model).stderr
    shuffled = write_flats(tmp_path / "shuffled.csv", flats[::-2])
    assert words in succeed("evaluate", model, shuffled).stderr
    rng = np.random.default_rng(1)
    fresh = write_flats(tmp_path / "fresh.csv", [flat(rng, k) for k in range(60)])
    assert "flatter" not in succeed("evaluate", model, fresh).stderr
    page = tmp_path / "page.html"
    succeed("report", model, fresh, "-o", page)
    assert "figures flatter" not in page.read_text(encoding="utf-8")


# One rule for train and cv


def judged(command, *arguments):
    found = json.loads(succeed(command, *arguments, "--json").stdout)
    if command == "cv":
        best = found["best"]
        name = "n_basis" if "n_basis" in best else "alpha"
        return best[name], best["by"], best["disagreement"]
    chosen = found["chosen"]
    parameters = chosen["parameters"]
    name = "n_basis" if "n_basis" in parameters else "alpha"
    return parameters[name], chosen["metric"], chosen["held_out_score"]


@pytest.mark.parametrize(
    "name, is_grouped",
    [
        *(("rankrls", True), ("rankrls", False), ("ranksvm", True), ("pursuit", False)),
    ],
)
def test_train_and_cv_judge_alike(tmp_path, table, name, is_grouped):
    options = ["--target", "rating", "--model", name]
    options += ["--group", "shop"] if is_grouped else ["--ignore", "shop"]
    options += ["--set", "n_basis=3"] if name in ("corankrls", "pursuit") else []
    trained = judged("train", table, *options, "-o", tmp_path / "m.rw")
    assert judged("cv", table, *options) == pytest.approx(trained)


def test_many_categories_are_scaled_inside_groups_as_a_sparse_matrix(tmp_path):
    rng = np.random.default_rng(0)
    data = tmp_path / "wide.csv"
    rows = [
        f"{k % 40},v{k % 700},w{k * 7 % 500},{x:.3f},{x:.3f}"
        for k, x in enumerate(rng.normal(size=1400))
    ]
    data.write_text("\n".join(["qid,a,b,x,y", *rows]))
    options = ["--categorical", "a,b", "--feature-scaling", "group", "--alpha", "1"]
    succeed("train", data, *options, "-o", tmp_path / "m.rw")
    assert len(numbers(succeed("predict", tmp_path / "m.rw", data).stdout)) == 1400
