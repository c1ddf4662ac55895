"""Tables on the command line: files of scores and of features, training, prediction, hold-out."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("typer")

from typer.testing import CliRunner

from rankwise import ConditionalRankRLS, ConditionalRankRLSCV
from rankwise.cli.app import app
from rankwise.datasets import read_item_features, read_score_table
from rankwise.errors import TableFormatError
from rankwise.persistence import load

Q, T = 12, 6


def run(*words, fails=False):
    done = CliRunner().invoke(app, [str(word) for word in words])
    assert (done.exit_code != 0) == fails, f"{done.output}\n{done.exception!r}"
    return done.output


def write_rows(path, header, lines):
    with open(path, "w", newline="") as stream:
        csv.writer(stream).writerows([header, *lines])


@pytest.fixture
def files(tmp_path, monkeypatch):
    """drugs.csv, targets.csv, wide.csv and long.csv, the last without some cells."""
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    drugs, targets = rng.standard_normal((Q, 3)), 5 + 3 * rng.standard_normal((T, 2))
    Y = (drugs @ rng.standard_normal((3, 2)) @ targets.T).round(3)
    rows, columns = [f"d{k}" for k in range(Q)], [f"t{k}" for k in range(T)]
    write_rows("drugs.csv", ["drug", "a", "b", "c"], [[n, *x] for n, x in zip(rows, drugs, strict=True)])  # fmt: skip # noqa: E501
    write_rows("targets.csv", ["target", "u", "v"], [[n, *x] for n, x in zip(columns, targets, strict=True)])  # fmt: skip # noqa: E501
    write_rows("wide.csv", ["drug", *columns], [[n, *y] for n, y in zip(rows, Y, strict=True)])
    cells = [[rows[i], columns[j], Y[i, j]] for i in range(Q) for j in range(T) if (i + j) % 5]
    rng.shuffle(cells)
    write_rows("long.csv", ["row", "column", "score"], cells)
    return drugs, targets, Y


def scaled(X):
    return (X - X.mean(axis=0)) / X.std(axis=0)


def test_wide_and_long_files_are_one_table(files):
    Y = files[2]
    wide, long = read_score_table("wide.csv"), read_score_table("long.csv")
    np.testing.assert_array_equal(wide.Y, Y)
    known = (np.add.outer(np.arange(Q), np.arange(T)) % 5) > 0
    order = [int(name[1:]) for name in long.rows], [int(name[1:]) for name in long.columns]
    found = np.full((Q, T), np.nan)
    found[np.ix_(*order)] = long.Y
    np.testing.assert_array_equal(found, np.where(known, Y, np.nan))
    features = read_item_features("drugs.csv")
    assert features.names.tolist()[:2] == ["d0", "d1"]
    assert features.feature_names == ["a", "b", "c"]
    np.testing.assert_array_equal(features.of(["d3"], "drugs.csv", "row"), files[0][[3]])


def test_a_file_of_three_columns_is_long_if_it_names_rows_twice(files):
    write_rows("short.csv", ["who", "what", "stars"], [["a", "x", 1], ["a", "y", 2], ["b", "x", 3]])
    assert read_score_table("short.csv").Y.shape == (2, 2)
    write_rows("narrow.csv", ["who", "x", "y"], [["a", 1, 2], ["b", "", 4]])
    table = read_score_table("narrow.csv")
    np.testing.assert_array_equal(table.Y, [[1, 2], [np.nan, 4]])
    assert table.columns.tolist() == ["x", "y"]


def test_train_and_predict_are_the_estimator_on_scaled_features(files):
    drugs, targets, Y = files
    shown = run("train", "wide.csv", "--table", "--rows", "drugs.csv", "--columns", "targets.csv",
                "-o", "model.rw")  # fmt: skip
    assert "leave-row-out" in shown
    assert "72 of 72 (100%)" in shown
    search = ConditionalRankRLSCV().fit(scaled(drugs), scaled(targets), Y)
    loaded = load("model.rw")
    assert loaded.alpha_ == search.alpha_
    new = np.random.default_rng(1).standard_normal((3, 3))
    write_rows("new.csv", ["drug", "a", "b", "c"], [[f"n{k}", *x] for k, x in enumerate(new)])
    run("predict", "model.rw", "new.csv", "-o", "scores.csv")
    found = read_score_table("scores.csv")
    X = (new - drugs.mean(axis=0)) / drugs.std(axis=0)
    np.testing.assert_allclose(found.Y, search.predict(X), rtol=1e-12)
    assert found.rows.tolist() == ["n0", "n1", "n2"]
    assert found.columns.tolist() == [f"t{k}" for k in range(T)]
    assert "1" in run("predict", "model.rw", "new.csv", "--rank")
    write_rows("more.csv", ["target", "u", "v"], [["z0", 1, 2], ["z1", 3, 4]])
    run("predict", "model.rw", "new.csv", "--columns", "more.csv", "-o", "scores.csv")
    Z = (np.array([[1.0, 2], [3, 4]]) - targets.mean(axis=0)) / targets.std(axis=0)
    np.testing.assert_allclose(read_score_table("scores.csv").Y, search.predict(X, Z), rtol=1e-12)


@pytest.mark.parametrize("leave", ["rows", "columns", "both", "cells"])
def test_cross_validation_of_a_table_is_leave_out(files, leave):
    drugs, targets, Y = files
    shown = run("cv", "wide.csv", "--table", "--rows", "drugs.csv", "--columns", "targets.csv",
                "--leave", leave, "--alpha", "0.01,1", "-m", "tau", "--json", "-o", "held.csv")  # fmt: skip # noqa: E501
    found = json.loads(shown[shown.index("{") :])
    held = ConditionalRankRLS().leave_out(
        scaled(drugs), scaled(targets), Y, leave, alphas=[0.01, 1]
    )
    best = [row["alpha"] for row in found["candidates"]].index(found["best"]["alpha"])
    np.testing.assert_allclose(read_score_table("held.csv").Y, held[:, :, best], rtol=1e-9)
    assert len(found["candidates"]) == 2


def test_columns_without_features_are_labels(files):
    shown = run("train", "long.csv", "--table", "--rows", "drugs.csv", "-o", "labels.rw",
                "--alpha", "0.1", "--kernel", "rbf", "--gamma", "0.1,1")  # fmt: skip
    assert "no features" in shown
    assert load("labels.rw").column_kernel == "delta"
    run("predict", "labels.rw", "drugs.csv", "-o", "scores.csv")
    assert read_score_table("scores.csv").Y.shape == (Q, T)


def test_words_become_columns_and_gaps_the_mean(files):
    lines = Path("drugs.csv").read_text().splitlines()
    kinds = ["kind", *(["acid", "base", ""] * len(lines))]
    words = [f"{line},{kind}" for line, kind in zip(lines, kinds, strict=False)]
    name, first, *rest = words[1].split(",")
    words[1] = ",".join([name, "", *rest])
    Path("words.csv").write_text("\n".join(words))
    read = read_item_features("words.csv")
    numbers = read_item_features("drugs.csv")
    assert read.feature_names == [*numbers.feature_names, "kind=acid", "kind=base"]
    assert read.categories == {"kind": ["acid", "base"]}
    assert np.isnan(read.X[0, 0])
    np.testing.assert_array_equal(read.X[1:, : numbers.X.shape[1]], numbers.X[1:])
    np.testing.assert_array_equal(read.X[:3, -2:], [[1, 0], [0, 1], [0, 0]])
    run("train", "wide.csv", "--table", "--rows", "words.csv", "-o", "words.rw")
    mean = read.X[1:, 0].mean()
    for cell, kind in (("", "acid"), (repr(float(mean)), "acid"), (first, "salt"), (first, "")):
        line = ",".join([name, cell, *rest[:-1], kind])
        Path("new.csv").write_text("\n".join([words[0], line]))
        run("predict", "words.rw", "new.csv", "-o", f"{bool(cell)}{kind}.csv")
    names = ("Falseacid", "Trueacid", "Truesalt", "True")
    empty, mean_given, unknown, no_word = (read_score_table(f"{file}.csv").Y for file in names)
    np.testing.assert_allclose(empty, mean_given, atol=1e-9)
    np.testing.assert_allclose(unknown, no_word, atol=1e-9)
    assert np.abs(unknown - mean_given).max() > 1e-3


def test_a_model_that_is_not_there_is_told_of(files):
    text = run("predict", "no.rw", "drugs.csv", "--columns", "targets.csv", fails=True)
    assert "there is no such file" in text


def test_precomputed_kernels_are_files_of_their_own(files):
    drugs = files[0]
    names = [f"d{k}" for k in range(Q)]
    G = drugs @ drugs.T
    write_rows("kernel.csv", ["drug", *names], [[n, *g] for n, g in zip(names, G, strict=True)])
    run("train", "long.csv", "--table", "--rows", "kernel.csv", "--kernel", "precomputed",
        "--columns", "targets.csv", "--alpha", "0.1", "-o", "model.rw")  # fmt: skip
    run("predict", "model.rw", "kernel.csv", "-o", "scores.csv")
    assert np.isfinite(read_score_table("scores.csv").Y).all()


def test_the_report_of_a_table_has_a_group_for_each_row(files):
    run("train", "wide.csv", "--table", "--rows", "drugs.csv", "--columns", "targets.csv",
        "-o", "model.rw")  # fmt: skip
    run("report", "model.rw", "long.csv", "--rows", "drugs.csv", "--columns", "targets.csv",
        "-o", "page.html")  # fmt: skip
    with open("page.html", encoding="utf-8") as stream:
        page = stream.read()
    assert "d11" in page
    assert "t5" in page


BAD = [
    (["train", "wide.csv", "--table"], "needs --rows FILE"),
    (["train", "wide.csv", "--rows", "drugs.csv"], "--rows is for tables; add --table"),
    (["train", "wide.csv", "--table", "--rows", "targets.csv"], "no features of 12 rows"),
    (["train", "wide.csv", "--table", "--rows", "drugs.csv", "--views", "2"], "not for tables"),
    (
        ["train", "wide.csv", "--table", "--rows", "drugs.csv", "--model", "ranksvm"],
        "not take tabl",
    ),
    (
        ["train", "wide.csv", "--table", "--rows", "drugs.csv", "--scale", "robust"],
        "not for tables",
    ),
    (
        ["train", "wide.csv", "--table", "--rows", "drugs.csv", "--column-kernel", "rbf"],
        "--columns",
    ),
    (
        ["train", "wide.csv", "--table", "--rows", "wide.csv", "--kernel", "precomputed"],
        "same names",
    ),
]


@pytest.mark.parametrize(("words", "message"), BAD)
def test_bad_calls_are_told_in_one_line(files, words, message):
    shown = run(*words, "-o", "model.rw", fails=True)
    assert message in " ".join(shown.split())
    assert "Traceback" not in shown


def test_leave_group_is_not_for_tables(files):
    shown = run("cv", "wide.csv", "--table", "--rows", "drugs.csv", "--leave", "group", fails=True)
    assert "rows, columns, both, cells" in shown


def test_predicting_with_other_columns_is_refused(files):
    run("train", "wide.csv", "--table", "--rows", "drugs.csv", "-o", "model.rw", "--alpha", "1")
    assert "and not a, with which" in run("predict", "model.rw", "targets.csv", fails=True)
    lines = [line.split(",") for line in Path("drugs.csv").read_text().splitlines()]
    write_rows("turned.csv", ["drug", *lines[0][:0:-1]], [[n, *x[::-1]] for n, *x in lines[1:]])
    run("predict", "model.rw", "turned.csv", "-o", "turned_scores.csv")
    run("predict", "model.rw", "drugs.csv", "-o", "scores.csv")
    assert Path("turned_scores.csv").read_text() == Path("scores.csv").read_text()
    shown = run("evaluate", "model.rw", "wide.csv", fails=True)
    assert "ranks the columns of tables" in " ".join(shown.split())
    assert "without features of columns" in run(
        "predict", "model.rw", "drugs.csv", "--columns", "targets.csv", fails=True
    )


def test_bad_files_are_told_with_their_line(files):
    write_rows("bad.csv", ["row", "column", "score"], [["a", "x", 1], ["a", "x", 2]])
    with pytest.raises(TableFormatError, match=r"bad.csv:3: the row 'a' has a second score"):
        read_score_table("bad.csv")
    write_rows("bad.csv", ["row", "x", "y"], [["a", 1, 2], ["a", 1, 2]])
    with pytest.raises(TableFormatError, match=r"bad.csv:3: the row 'a' comes a second time"):
        read_score_table("bad.csv", layout="wide")
    write_rows("bad.csv", ["row", "x", "y", "z"], [["a", 1, 2, 3], ["b", 1, "many", 4]])
    with pytest.raises(TableFormatError, match=r"bad.csv:3"):
        read_score_table("bad.csv")
    write_rows("bad.csv", ["row", "x"], [["a", 1]])
    with pytest.raises(TableFormatError, match="the file has 2 columns"):
        read_score_table("bad.csv")
    write_rows("bad.csv", ["row"], [["a"]])
    with pytest.raises(TableFormatError, match="expected column names"):
        read_item_features("bad.csv")
    with pytest.raises(ValueError, match="layout='broad' is unknown"):
        read_score_table("wide.csv", layout="broad")
