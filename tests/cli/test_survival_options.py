"""Survival times in files: train, cv, evaluate, compare, predict and report."""

from __future__ import annotations

import json
import re

import numpy as np
import pandas as pd
import pytest

from rankwise import RankRLSCV, SurvivalGraph
from rankwise.datasets import read_ranking
from rankwise.metrics import concordance, concordance_difference
from rankwise.persistence import load
from tests.cli.shell import fail, run, succeed

SURVIVAL = ("--survival-time", "days", "--event", "died")


@pytest.fixture(scope="module")
def patients(tmp_path_factory):
    """Two files of patients, with the age that shortens the survival."""
    rng = np.random.default_rng(0)
    n = 240
    age = rng.normal(size=n)
    survival = rng.exponential(np.exp(-age))
    end = rng.uniform(0.2, 3, n)
    frame = pd.DataFrame(
        {
            "age": age,
            "noise": rng.normal(size=n),
            "hospital": rng.integers(0, 6, n),
            "days": np.minimum(survival, end).round(3),
            "died": np.where(survival <= end, "yes", "no"),
        }
    )
    folder = tmp_path_factory.mktemp("patients")
    frame[:160].to_csv(folder / "train.csv", index=False)
    frame[160:].to_csv(folder / "test.csv", index=False)
    return folder


@pytest.fixture(scope="module")
def model(patients):
    path = patients / "model.rw"
    succeed("train", patients / "train.csv", *SURVIVAL, "--group", "hospital", "-o", path)
    return path


def times_of(path):
    frame = pd.read_csv(path)
    return frame, np.column_stack([frame["days"], frame["died"] == "yes"])


def test_the_model_is_that_of_the_graph(patients, model):
    frame, times = times_of(patients / "train.csv")
    graph = SurvivalGraph(*times.T, frame["hospital"])
    trained = load(model)
    features = trained[:-1].transform(frame[["age", "noise"]])
    expected = RankRLSCV(random_state=0).fit(features, graph)
    assert trained[-1].alpha_ == expected.alpha_
    np.testing.assert_allclose(trained[-1].coef_, expected.coef_)
    assert trained[-1].n_features_in_ == 2  # neither days nor died


def test_evaluate_remembers_the_columns_and_reports_the_concordance(patients, model):
    frame, times = times_of(patients / "test.csv")
    predicted = load(model).predict(frame[["age", "noise"]])
    done = succeed("evaluate", model, patients / "test.csv", "--group", "none", "--json")
    (row,) = json.loads(done.stdout)["metrics"]
    assert row["metric"] == "concordance"
    assert row["mean"] == pytest.approx(concordance(times, predicted))
    done = succeed("evaluate", model, patients / "test.csv", "--json")
    (row,) = json.loads(done.stdout)["metrics"]
    assert row["groups"] == 6
    assert row["mean"] == pytest.approx(concordance(times, predicted, frame["hospital"]))
    renamed = patients / "renamed.csv"
    frame.rename(columns={"days": "d", "died": "e"}).to_csv(renamed, index=False)
    again = succeed("evaluate", model, renamed, "--survival-time", "d", "--event", "e", "--json")
    assert json.loads(again.stdout)["metrics"] == [row]


def test_training_rows_are_recognized(patients, model):
    seen = succeed("evaluate", model, patients / "train.csv").stderr
    assert "was trained on all of these items" in seen
    assert "was trained" not in succeed("evaluate", model, patients / "test.csv").stderr


def test_predict_needs_no_times(patients, model):
    frame, _ = times_of(patients / "test.csv")
    new = patients / "new.csv"
    frame[["age", "noise"]].to_csv(new, index=False)
    printed = succeed("predict", model, new).stdout.split()
    predicted = load(model).predict(frame[["age", "noise"]])
    np.testing.assert_allclose(np.array(printed, dtype=float), predicted)


def test_cv_holds_out_folds_of_one_list(patients):
    options = ("--group", "none", "--alpha", "0.01,1,100", "--leave", "3", "--json")
    done = succeed("cv", patients / "train.csv", *SURVIVAL, *options)
    document = json.loads(done.stdout)
    assert document["held_out_by"] == "exact 3 folds of items" or "3 folds of items" in str(
        document
    )
    assert 0.2 < document["best"]["disagreement"] < 0.4


def test_compare_tests_the_difference_of_concordances(patients, model):
    other = patients / "other.rw"
    succeed("train", patients / "train.csv", *SURVIVAL, "--features", "noise", "-o", other)
    frame, times = times_of(patients / "test.csv")
    done = succeed("compare", patients / "test.csv", model, other, "--group", "none")
    by_age, by_noise = (load(path).predict(frame[["age", "noise"]]) for path in (model, other))
    expected = concordance_difference(times, by_age, by_noise)
    shown = re.search(r"(\+0\.\d{4}) \(95% interval (\+0\.\d{4}) to (\+0\.\d{4})", done.stderr)
    numbers = [float(text) for text in shown.groups()]
    np.testing.assert_allclose(
        numbers, [expected.difference, expected.low, expected.high], atol=6e-5
    )


def test_the_report_shows_concordance_and_curves_of_thirds(patients, model):
    page = patients / "page.html"
    succeed("report", model, patients / "test.csv", "--group", "none", "-o", page)
    text = page.read_text(encoding="utf-8")
    frame, times = times_of(patients / "test.csv")
    value = concordance(times, load(model).predict(frame[["age", "noise"]]))
    assert f'<p class="value">{value:.3f}</p>' in text
    assert text.count('class="curve third-') == 3


@pytest.mark.parametrize(
    "options, words",
    [
        (["--survival-time", "days"], "--event"),
        (["--event", "died"], "--survival-time"),
        ([*SURVIVAL, "--target", "age"], "--target"),
        ([*SURVIVAL, "--lower-is-better"], "--lower-is-better"),
        (["--survival-time", "days", "--event", "hospital"], "'hospital'"),
        (["--survival-time", "noise", "--event", "died"], "time"),
        (["--survival-time", "days", "--event", "dead"], "dead"),
        ([*SURVIVAL, "--model", "pursuit"], "SurvivalGraph"),
        ([*SURVIVAL, "--model", "auto"], "survival"),
    ],
)
def test_what_cannot_be_trained_on_is_refused(patients, options, words):
    message = fail("train", patients / "train.csv", *options, "-o", patients / "x.rw")
    assert words in message
    assert not (patients / "x.rw").exists()


def test_times_without_events_are_not_read_as_scores(patients, model):
    frame, _ = times_of(patients / "test.csv")
    frame.drop(columns="died").to_csv(patients / "no_events.csv", index=False)
    assert "died" in run("evaluate", model, patients / "no_events.csv").stderr


@pytest.mark.parametrize(
    "cells, expected",
    [
        (["1", "0", "1"], [True, False, True]),
        (["true", "FALSE", "True"], [True, False, True]),
        (["yes", "no", "Y"], [True, False, True]),
        (["1.0", "0.0", "1"], [True, False, True]),
    ],
)
def test_events_are_read_in_usual_words(tmp_path, cells, expected):
    path = tmp_path / "table.csv"
    rows = [f"{k},{k + 1},{cell}" for k, cell in enumerate(cells)]
    path.write_text("\n".join(["x,days,died", *rows]))
    data = read_ranking(path, target="days", event="died")
    assert data.event.tolist() == expected
    np.testing.assert_array_equal(data.truth, np.column_stack([[1, 2, 3], expected]))
    assert data.feature_names.tolist() == ["x"]
    assert data.take(np.array([2])).event.tolist() == [expected[2]]


def test_items_without_a_time_need_no_event(tmp_path):
    path = tmp_path / "table.csv"
    path.write_text("x,days,died\n1,3,1\n2,,\n3,5,0\n")
    data = read_ranking(path, target="days", event="died")
    assert np.isnan(data.y[1])
    assert data.event.tolist() == [True, False, False]
    path.write_text("x,days,died\n1,3,1\n2,4,\n3,5,0\n")
    with pytest.raises(ValueError, match="died"):
        read_ranking(path, target="days", event="died")
