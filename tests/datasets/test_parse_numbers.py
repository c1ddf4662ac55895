"""Prices and other numbers with a unit, among a few words that mean that there is none."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
import pytest
from sklearn.pipeline import make_pipeline

from rankwise import RankRLS
from rankwise.datasets.parse_numbers import NumberFormat, find_format, parse_quantity, read_format
from rankwise.persistence import load, save
from rankwise.preprocessing.table_vectorizer import TableVectorizer
from tests.cli.shell import succeed

PRICES = {
    "SR": (
        ["SR 1,395", "SR 250", "SR 99.50", "No old price", "SR 10"],
        [1395, 250, 99.5, None, 10],
    ),
    "dollars": (["$12", "$1,200.50", "-$3", "$7", "free"], [12, 1200.5, -3, 7, None]),
    "euros": (["1.234,50 €", "80 €", "9,5 €", "12 €", "auf Anfrage"], [1234.5, 80, 9.5, 12, None]),
    "points of thousands": (["1.234.567 €", "2.500 €", "10 €"], [1234567, 2500, 10]),
    "kilometers": (["12 km", "3.5 km", "1 200 km", "7 km", "unlimited"], [12, 3.5, 1200, 7, None]),
}


@pytest.mark.parametrize("name", PRICES)
def test_numbers_with_one_unit_are_read(name):
    texts, numbers = PRICES[name]
    found = find_format(texts)
    assert read_format(str(found)) == found
    values = [parse_quantity(text, found) for text in texts]
    np.testing.assert_array_equal(values, [np.nan if x is None else x for x in numbers])


@pytest.mark.parametrize(
    "texts",
    [
        ["good", "bad"],
        ["1", "2", "none"],  # no unit: numbers or a category, as before
        ["$1", "€2", "$3", "€4"],
        ["$1", "$2", "$3", "free", "free"],  # 60%
        ["$1"] * 20 + ["a", "b", "c", "d"],  # four words
        ["$1"] * 20 + ["2 for 3"],
        ["A1", "A2", "B1"],
        ["$1.2.3", "$1"],
    ],
)
def test_other_texts_have_no_format(texts):
    assert find_format(texts) is None


def test_another_unit_or_word_is_missing():
    assert math.isnan(parse_quantity("€ 12", NumberFormat("$", ".", "")))
    assert math.isnan(parse_quantity("twelve", NumberFormat("$", ".", "")))


def frame(n=200):
    rng = np.random.default_rng(0)
    prices = [f"SR {price:,}" for price in rng.integers(50, 5000, n)]
    prices[::10] = ["No old price"] * len(prices[::10])
    return pd.DataFrame({"price": prices, "size": rng.normal(size=n)})


@pytest.mark.parametrize("n", [30, 200])
def test_a_column_of_prices_is_a_number_in_fit_predict_and_the_file(tmp_path, n):
    data = frame(n)
    columns = TableVectorizer().fit(data)
    facts = columns.facts_[0]
    assert (facts.kind, facts.n_missing) == ("number", n // 10)
    new = pd.DataFrame({"price": ["SR 1,395", "SR 99.5", "Sold out"], "size": [0.0, 0, 0]})
    shown = dense(columns.transform(new))
    known = data["price"].str.extract(r"SR (.*)")[0].str.replace(",", "").astype(float)
    scale = facts.scales[0]
    assert shown[0, 0] - shown[1, 0] == pytest.approx((1395 - 99.5) / scale)
    assert shown[2, 0] - shown[1, 0] == pytest.approx((known.median() - 99.5) / scale)
    model = make_pipeline(TableVectorizer(), RankRLS()).fit(data, np.arange(n) % 7)
    save(model, tmp_path / "model.rw")
    again = load(tmp_path / "model.rw")
    assert again[0].facts_ == model[0].facts_
    np.testing.assert_array_equal(again.predict(new), model.predict(new))


def dense(X):
    return X.toarray() if hasattr(X, "toarray") else np.asarray(X)


def test_the_command_trains_and_predicts_on_prices(tmp_path):
    data = frame(60)
    data["score"] = np.arange(60) % 7
    data.to_csv(tmp_path / "train.csv", index=False)
    shown = succeed("train", tmp_path / "train.csv", "-o", tmp_path / "m.rw", "--target", "score")
    assert "number with 6 missing values" in shown.stdout
    new = pd.DataFrame({"price": ["SR 100", "SR 1,395", "Sold out"], "size": [0.0, 0, 0]})
    new.to_csv(tmp_path / "new.csv", index=False)
    plain = pd.DataFrame({"price": ["SR 100.00", "SR 1395", ""], "size": [0.0, 0, 0]})
    plain.to_csv(tmp_path / "plain.csv", index=False)
    scores = [
        succeed("predict", tmp_path / "m.rw", tmp_path / name).stdout
        for name in ("new.csv", "plain.csv")
    ]
    assert scores[0] == scores[1]
