"""`compare` with clusters, seeds, frames in several layouts, runs, and its warnings."""

from __future__ import annotations

import warnings

import numpy as np
import pandas as pd
import polars as pl
import pytest

from rankwise.metrics import evaluate_runs, judgments_to_flip, unjudged_bounds
from rankwise.model_selection import compare


@pytest.fixture
def values():
    rng = np.random.default_rng(0)
    difficulty = rng.random(24)
    return {
        "new": difficulty + 0.1 * rng.normal(size=24) + 0.1,
        "old": difficulty + 0.1 * rng.normal(size=24),
        "third": difficulty + 0.1 * rng.normal(size=24),
    }


@pytest.fixture
def retrieval():
    """Qrels and two runs with unjudged documents."""
    rng = np.random.default_rng(1)
    qrels, one, two = {}, {}, {}
    for query in range(30):
        documents = [f"d{k}" for k in range(25)]
        grades = rng.integers(0, 3, 25)
        qrels[f"q{query}"] = {d: int(grades[k]) for k, d in enumerate(documents[:18])}
        one[f"q{query}"] = dict(zip(documents, grades + rng.normal(size=25), strict=True))
        two[f"q{query}"] = dict(zip(documents, grades + 3 * rng.normal(size=25), strict=True))
    return qrels, {"one": one, "two": two}


def long_frame(values, n_seeds=1):
    rows = []
    for name, array in values.items():
        for seed in range(n_seeds):
            for k, value in enumerate(array):
                rows.append((name, f"g{k:02}", value + 0.01 * seed, seed, k // 3))
    columns = ["model", "task", "score", "seed", "family"]
    return pd.DataFrame(rows, columns=columns).sample(frac=1.0, random_state=0)


LONG = {"arm": "model", "group": "task", "score": "score"}


def test_layouts_of_frames_give_the_same_comparison(values):
    expected = compare(values, greater_is_better=False).rows
    frame = pd.DataFrame(values)
    by_row = frame.T.rename_axis("model")
    named = by_row.reset_index().rename(columns=str)
    layouts = [
        compare(frame, greater_is_better=False),
        compare(pl.DataFrame(values), greater_is_better=False),
        compare(by_row.rename(columns=str), greater_is_better=False),
        compare(named, greater_is_better=False),
        compare(pl.DataFrame(named), greater_is_better=False),
        compare(named.rename(columns={"model": "x"}), arm="x", greater_is_better=False),
        compare(long_frame(values), **LONG, greater_is_better=False),
        compare(pl.DataFrame(long_frame(values)), **LONG, greater_is_better=False),
    ]
    for result in layouts:
        for row, other in zip(result.rows, expected, strict=True):
            assert (row.a, row.b) == (other.a, other.b)
            assert (row.difference, row.p) == pytest.approx((other.difference, other.p))


def test_rows_with_names_and_columns_that_differ_more_are_reported(values):
    rng = np.random.default_rng(0)
    table = pd.DataFrame(
        rng.normal(size=(4, 12)) * 0.1 + np.arange(12), index=["bert", "gte", "e5", "bge"]
    )
    table.columns = [f"task{k}" for k in range(12)]
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        compare(table, greater_is_better=False)
    assert any("frame.T" in str(warning.message) for warning in caught)
    queries = pd.DataFrame(values, index=[f"q{k}" for k in range(24)])
    assert (
        compare(queries, greater_is_better=False).rows
        == compare(values, greater_is_better=False).rows
    )


def test_clusters_are_given_by_position_by_name_or_as_a_column(values):
    codes = np.arange(24) // 3
    expected = compare(values, clusters=codes, greater_is_better=False).rows
    assert expected != compare(values, greater_is_better=False).rows
    frame = long_frame(values)
    by_name = {f"g{k:02}": f"family {k // 3}" for k in range(24)}
    for result in (
        compare(frame, **LONG, cluster="family", greater_is_better=False),
        compare(frame, **LONG, clusters=by_name, greater_is_better=False),
        compare(values, clusters=[str(code) for code in codes], greater_is_better=False),
    ):
        assert result.n_clusters == 8
        for row, other in zip(result.rows, expected, strict=True):
            assert (row.low, row.p) == pytest.approx((other.low, other.p))
    assert "24 groups in 8 clusters" in str(result)
    flipped = compare(values, clusters=codes, test="randomization", greater_is_better=False).rows[0]
    assert (flipped.p <= 0.05) == (flipped.low > 0 or flipped.high < 0)


def test_seeds_are_matrices_or_a_column(values):
    rng = np.random.default_rng(0)
    trained = {
        name: array + 0.05 * rng.normal(size=(3, 1)) + 0.02 * rng.normal(size=(3, 24))
        for name, array in values.items()
    }
    result = compare(trained, greater_is_better=False)
    averaged = compare(
        {name: array.mean(axis=0) for name, array in trained.items()}, greater_is_better=False
    )
    for row, of_means in zip(result.rows, averaged.rows, strict=True):
        assert row.difference == pytest.approx(of_means.difference)
        assert row.high - row.low > of_means.high - of_means.low
    assert result.n_seeds == {"new": 3, "old": 3, "third": 3}
    frame = long_frame(values, n_seeds=3)
    (row, *_) = compare(frame, **LONG, seed="seed", greater_is_better=False).rows
    shifted = {name: array + np.array([[0.0], [0.01], [0.02]]) for name, array in values.items()}
    assert row.p == pytest.approx(compare(shifted, greater_is_better=False).rows[0].p)
    with pytest.raises(ValueError, match="3 values in the group"):
        compare(frame, **LONG, greater_is_better=False)
    for test in ("randomization", "wilcoxon"):
        with pytest.raises(ValueError, match="seeds"):
            compare(trained, test=test, greater_is_better=False)
    with pytest.raises(ValueError, match="clusters"):
        compare(values, test="wilcoxon", clusters=np.arange(24) // 2, greater_is_better=False)


def test_a_single_trained_ranker_is_compared_with_a_fixed_one(values):
    result = compare(
        {"trained": np.vstack([values["new"]] * 4), "fixed": values["old"]}, greater_is_better=False
    )
    assert "1 to 4 seeds" in str(result)
    assert result.rows[0].difference == pytest.approx(np.mean(values["new"] - values["old"]))


def test_power_is_reported_and_the_number_of_groups_on_request(values):
    row = compare(values, greater_is_better=False).rows[0]
    assert row.groups_needed is None
    result = compare(values, difference=row.detectable, greater_is_better=False)
    assert result.rows[0].groups_needed == pytest.approx(24, abs=1)
    assert "would detect a difference of" in str(result)
    assert "groups to detect" in str(result)
    assert (
        compare(values, difference=row.detectable / 2, greater_is_better=False)
        .rows[0]
        .groups_needed
        > 80
    )
    with pytest.raises(ValueError, match="difference"):
        compare(values, difference=-0.1, greater_is_better=False)


def test_without_correction_the_mark_is_that_of_the_unadjusted_p(values):
    result = compare(values, correction="none", greater_is_better=False)
    assert [row.p for row in result] == [row.p_adjusted for row in result]
    assert "Holm" not in str(result)
    with pytest.raises(ValueError, match="correction"):
        compare(values, correction="bonferroni", greater_is_better=False)


def test_few_different_groups_and_skewed_differences_are_reported():
    same = np.full(40, 0.5)
    few = same.copy()
    few[:4] = 0.9
    with pytest.warns(UserWarning, match="fewer than 10 groups differ between a and b"):
        compare({"a": few, "b": np.r_[0.4, same[1:]]}, greater_is_better=False)
    skewed = np.r_[3.0, 0.001 * np.random.default_rng(0).normal(size=39)]
    with pytest.warns(UserWarning, match="a few groups decide"):
        compare({"a": skewed, "b": np.r_[0.1, np.zeros(39)]}, greater_is_better=False)


def test_runs_are_compared_by_the_values_of_evaluate_runs(retrieval):
    qrels, runs = retrieval
    result = compare(runs, qrels=qrels, metric="nDCG@5")
    evaluation = evaluate_runs(qrels, runs, "nDCG@5")
    by_run = {name: evaluation.per_query("nDCG@5", name) for name in runs}
    assert result.rows == compare(by_run, greater_is_better=True).rows
    assert result.evaluation["one", "nDCG@5"] == evaluation["one", "nDCG@5"]
    clusters = {query: int(query[1:]) // 3 for query in qrels}
    clustered = compare(runs, qrels=qrels, metric="nDCG@5", clusters=clusters)
    assert clustered.n_clusters == 10
    with pytest.raises(ValueError, match="two runs"):
        compare(runs["one"], qrels=qrels)
    assert result.rows == compare(by_run, metric="nDCG@5").rows
    with pytest.raises(ValueError, match="qrels="):
        compare(runs, metric="nDCG@5")
    with pytest.raises(ValueError, match="qrels="):
        compare({"one": "one.run", "two": "two.run"}, metric="nDCG@5")
    with pytest.raises(ValueError, match="qrels="):
        compare(by_run, metric="nDCG@5", unjudged="bounds")


def test_runs_are_compared_over_all_grades_of_unjudged_documents(retrieval):
    qrels, runs = retrieval
    result = compare(runs, qrels=qrels, metric="nDCG@5", unjudged="bounds")
    expected = unjudged_bounds(qrels, runs["one"], runs["two"], "nDCG@5")
    bounds = result.bounds["one", "two"]
    assert (bounds.low, bounds.high) == (expected.low, expected.high)
    assert bounds.zero == pytest.approx(result.rows[0].difference)
    n_to_flip = judgments_to_flip(qrels, runs["one"], runs["two"], "nDCG@5")
    loser = "two" if result.rows[0].difference > 0 else "one"
    assert f"{n_to_flip} of {loser}'s {bounds.n_unjudged_of_loser} must be" in result.summary()
    assert f"{bounds.n_unjudged} unjudged documents" in str(result)
    assert result.to_dict()["unjudged"][0]["judgments_to_flip"] == n_to_flip
    assert len(result.next_judgments(5)) == 5
    with pytest.raises(ValueError, match="unjudged='bounds'"):
        compare(runs, qrels=qrels).next_judgments()


@pytest.mark.parametrize(
    "arguments, word",
    [
        ({"arm": "model", "group": "task"}, "score="),
        ({"seed": "seed"}, "seed="),
        ({**LONG, "arm": "name"}, "arm='name'"),
        ({}, "pass arm="),
        ({"arm": "none"}, "arm='none'"),
    ],
)
def test_columns_that_are_missing_are_named(values, arguments, word):
    with pytest.raises(ValueError, match=word):
        compare(long_frame(values), **arguments, greater_is_better=False)


def test_bad_clusters_are_refused(values):
    with pytest.raises(ValueError, match="3 labels"):
        compare(values, clusters=[1, 2, 3], greater_is_better=False)
    with pytest.raises(ValueError, match="no names"):
        compare(values, clusters={"q": 1}, greater_is_better=False)
    frame = long_frame(values)
    with pytest.raises(ValueError, match="no entry for g01"):
        compare(
            frame,
            **LONG,
            clusters={f"g{k:02}": 0 for k in range(24) if k != 1},
            greater_is_better=False,
        )
    frame["family"] = range(len(frame))
    with pytest.raises(ValueError, match="a group is in the clusters"):
        compare(frame, **LONG, cluster="family", greater_is_better=False)
    one_arm = frame[frame["model"] == "new"]
    with pytest.raises(ValueError, match="one ranker only"):
        compare(one_arm, **LONG, greater_is_better=False)


@pytest.mark.parametrize("labels", [((1, 2), (3, 4)), ("a", "a\0"), (b"a", b"b"), (1.5, 1e22)])
def test_rankers_of_a_long_frame_have_labels_of_any_kind(values, labels):
    frame = long_frame({"new": values["new"], "old": values["old"]})
    label_of_name = dict(zip(("new", "old"), labels, strict=True))
    models = pd.Series([label_of_name[name] for name in frame["model"]], dtype=object)
    frame["model"] = models.to_numpy()
    (row,) = compare(frame, **LONG, greater_is_better=False).rows
    assert (row.a, row.b) == tuple(map(str, labels))


def test_series_in_different_orders_are_refused():
    rng = np.random.default_rng(0)
    names = [f"q{k}" for k in range(30)]
    old = pd.Series(rng.normal(size=30), index=names)
    new = old + 0.2 + 0.01 * rng.normal(size=30)
    topics = pd.Series(np.arange(30) // 3, index=names)
    with pytest.raises(ValueError, match="different orders"):
        compare({"old": old, "new": new[::-1]})
    with pytest.raises(ValueError, match="different orders"):
        compare({"old": old, "new": new}, clusters=topics[::-1])
    in_order = compare({"old": old, "new": new}, clusters=topics)
    np.testing.assert_allclose(in_order.rows[0].difference, (old - new).mean())

    frame = pd.DataFrame({"old": old, "new": new})
    with pytest.raises(ValueError, match="another order"):
        compare(frame, clusters=topics[::-1])
    by_name = compare(frame, clusters=topics[::-1].to_dict())
    assert by_name.rows[0].p == compare(frame, clusters=topics).rows[0].p
