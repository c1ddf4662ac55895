"""Data frames with text and missing values as instances, rows and columns."""

import numpy as np
import pandas as pd
import polars as pl
import pytest

from rankwise import (
    ConditionalRankRLSCV,
    LabelRanker,
    LabelRankerCV,
    RankRLS,
    TableVectorizer,
)
from rankwise.persistence import load, save

N = 60


@pytest.fixture
def rng():
    return np.random.default_rng(0)


def make_frame(rng, n=N):
    kind = rng.choice(["red", "green", "blue"], n)
    size = rng.standard_normal(n)
    size[::7] = np.nan
    return pd.DataFrame({"kind": kind, "size": size})


def make_scores(rng, frame, n_labels=4):
    effect = rng.standard_normal((2, n_labels))
    features = np.column_stack([frame["kind"] == "red", frame["size"].fillna(0)])
    return features @ effect + 0.1 * rng.standard_normal((len(frame), n_labels))


@pytest.mark.parametrize("convert", [pd.DataFrame, pl.from_pandas])
def test_a_label_ranker_encodes_a_frame_as_a_table_vectorizer_does(rng, convert):
    frame = make_frame(rng)
    Y = make_scores(rng, frame)
    model = LabelRanker(0.1).fit(convert(frame), Y)
    vectorizer = TableVectorizer(scale=True).fit(frame)
    expected = LabelRanker(0.1).fit(vectorizer.transform(frame), Y)
    np.testing.assert_allclose(
        model.predict(convert(frame)), expected.predict(vectorizer.transform(frame))
    )
    assert model.predict_order(convert(frame[:5])).shape == (5, 4)
    assert model.score(convert(frame), Y) > 0.5


def test_a_search_predicts_orders_and_sets_of_a_frame_and_is_saved(rng, tmp_path):
    frame = make_frame(rng)
    Y = make_scores(rng, frame)
    model = LabelRankerCV().fit(frame, Y)
    assert model.score(frame, Y) > 0.5
    assert model.predict_order(frame[:3]).shape == (3, 4)
    assert len(model.predict_set(frame[:3])) == 3
    save(model, tmp_path / "m.rw")
    np.testing.assert_array_equal(load(tmp_path / "m.rw").predict(frame), model.predict(frame))


def test_frames_of_numbers_are_used_as_they_are(rng):
    frame = pd.DataFrame(rng.standard_normal((N, 3)), columns=list("abc"))
    Y = rng.standard_normal((N, 4))
    model = LabelRanker(0.1).fit(frame, Y)
    assert model.vectorizer_ is None
    assert list(model.feature_names_in_) == ["a", "b", "c"]
    np.testing.assert_array_equal(
        model.predict(frame), LabelRanker(0.1).fit(frame.to_numpy(), Y).predict(frame.to_numpy())
    )


@pytest.mark.parametrize("ranked", ["columns", "rows", "cells"])
def test_both_sides_of_a_table_may_be_frames(rng, ranked, tmp_path):
    rows, columns = make_frame(rng, 30), make_frame(rng, 12)
    Y = rng.standard_normal((30, 12)) + (rows["kind"] == "red").to_numpy()[:, None] * np.arange(12)
    model = ConditionalRankRLSCV(ranked=ranked, leave="rows").fit(rows, columns, Y)
    row_features = TableVectorizer(scale=True).fit_transform(rows)
    column_features = TableVectorizer(scale=True).fit_transform(columns)
    expected = ConditionalRankRLSCV(ranked=ranked, leave="rows")
    expected.fit(row_features, column_features, Y)
    np.testing.assert_allclose(
        model.predict(rows, columns), expected.predict(row_features, column_features)
    )
    np.testing.assert_allclose(model.predict(rows), expected.predict(row_features))
    save(model, tmp_path / "m.rw")
    np.testing.assert_array_equal(load(tmp_path / "m.rw").predict(rows), model.predict(rows))


def test_other_rankers_still_ask_for_a_table_vectorizer(rng):
    frame = make_frame(rng)
    with pytest.raises(ValueError, match="TableVectorizer"):
        RankRLS().fit(frame, np.arange(N))
