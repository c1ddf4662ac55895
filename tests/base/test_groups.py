"""Group labels: anything hashable, in any order, and clear words for the usual mistakes."""

from __future__ import annotations

import datetime

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rankwise.datasets import groups_from_sizes
from rankwise.graphs.supervision import make_target
from rankwise.groups import encode_groups

LABELS = {
    "strings": ["b", "a", "b", "c"],
    "negative": [-3, 5, -3, 0],
    "huge": [2**62, -(2**62), 2**62, 7],
    "beyond float": [2**53, 2**53 + 1, 2**53, 2**53 + 2],
    "unsigned": np.array([2**63 + 5, 3, 2**63 + 5, 4], dtype=np.uint64),
    "bytes": np.array([-128, 127, -128, 0], dtype=np.int8),
    "floats": [0.5, -1.0, 0.5, 2.0],
    "bools and ints": [True, 2, True, 3],
    "tuples": [(1, "x"), (0, "y"), (1, "x"), (2, "z")],
    "mixed": ["a", 1, "a", (2, 3)],
    "dates": [datetime.date(2026, 1, 2), datetime.date(2025, 1, 1)] * 2,
    "datetime64": np.array(["2026-01-02", "2025-01-01"] * 2, dtype="datetime64[D]"),
    "categorical": pd.Categorical(["b", "a", "b", "c"]),
    "pandas": pd.Series(["b", "a", "b", "c"], index=[9, 8, 7, 6]),
    "polars": pl.Series(["b", "a", "b", "c"]),
    "column": np.array([[1], [0], [1], [2]]),
    "pandas text": pd.Series(["b", "a", "b", "c"], dtype="string[pyarrow]"),
    "pandas category": pd.Series(pd.Categorical([5, 3, 5, 7])),
    "polars category": pl.Series(["b", "a", "b", "c"], dtype=pl.Categorical),
    "polars enum": pl.Series(["b", "a", "b", "c"], dtype=pl.Enum(["c", "b", "a"])),
    "polars frame": pl.DataFrame({"query": [2, 1, 2, 3]}),
    "arrow dictionary": pa.array(["b", "a", "b", "c"]).dictionary_encode(),
    "arrow chunks": pa.chunked_array([["b", "a"], ["b", "c"]]),
    "arrow table": pa.table({"query": [2, 1, 2, 3]}),
}


@pytest.mark.parametrize("labels", LABELS.values(), ids=LABELS.keys())
def test_equal_labels_and_only_those_share_a_code(labels):
    groups = encode_groups(labels, 4)
    codes = groups.codes
    distinct = groups.labels
    assert codes[0] == codes[2] != codes[1]
    assert len(set(codes)) == (2 if codes[1] == codes[3] else 3) == len(distinct)
    assert sorted(set(codes)) == list(range(len(distinct)))


@given(st.lists(st.integers(-(2**63), 2**63 - 1) | st.integers(-3, 3), min_size=1))
def test_codes_are_those_of_numpy_unique(labels):
    groups = encode_groups(np.array(labels), len(labels))
    codes = groups.codes
    distinct = groups.labels
    expected, inverse = np.unique(labels, return_inverse=True)
    np.testing.assert_array_equal(distinct, expected)
    np.testing.assert_array_equal(codes, inverse)


def test_no_labels_mean_one_group():
    assert encode_groups(None, 3).n_groups == 1
    assert encode_groups(None, 3).sizes.tolist() == [3]


@pytest.mark.parametrize(
    "labels, n_items, message",
    [
        (["a", pd.NA], 2, "no label in row 1"),
        ([1, 2, 3], 5, "3 entries but there are 5 rows; pass one"),
        ([2, 3], 5, r"look like group sizes.*groups_from_sizes"),
        (pd.Series([[1], [2]]), 2, r"groups\[0\] is a list"),
        ([[1, 2], [3, 4]], 2, r"shape \(2, 2\)"),
    ],
)
def test_impossible_labels_are_refused(labels, n_items, message):
    with pytest.raises(ValueError, match=message):
        encode_groups(labels, n_items)


def test_sizes_become_labels_and_zero_is_a_size():
    assert groups_from_sizes([2, 0, 3], 5).tolist() == [0, 0, 2, 2, 2]


@pytest.mark.parametrize(
    "sizes, n_items, message",
    [
        ([2, 3], 6, "sum to 5 but there are 6 rows"),
        ([2, -1], None, r"sizes\[1\] is -1"),
        ([1.5], None, "whole numbers"),
        ([[1]], None, "flat"),
    ],
)
def test_impossible_sizes_are_refused(sizes, n_items, message):
    with pytest.raises(ValueError, match=message):
        groups_from_sizes(sizes, n_items)


@pytest.mark.parametrize(
    "labels",
    [[2**63, -1, 2**63 + 1], [2**70, 2**70 + 1, 0], ["a", "a\0", "b"], [b"a", b"a\0", b"b"]],
)
def test_labels_that_an_array_would_merge_stay_apart(labels):
    groups = encode_groups(labels, 3)
    assert groups.n_groups == 3
    assert [groups.labels[code] for code in groups.codes] == labels
    assert len(np.unique(make_target([1.0, 2.0, 3.0], labels)["group"])) == 3


def test_sums_means_and_ranks_equal_loops_over_the_groups():
    rng = np.random.default_rng(0)
    labels = rng.choice(list("abcd"), 40)
    groups = encode_groups(labels, 40)
    values = rng.integers(0, 5, (40, 3)).astype(float)
    weight = rng.uniform(0.5, 2, 40)
    centered = groups.center(values, weight)
    ranks = groups.rank(values[:, 0])
    for code, label in enumerate("abcd"):
        rows = np.flatnonzero(labels == label)
        mean = np.average(values[rows], axis=0, weights=weight[rows])
        np.testing.assert_allclose(groups.sum(values)[code], values[rows].sum(axis=0))
        np.testing.assert_allclose(groups.sum(values[:, 1])[code], values[rows, 1].sum())
        np.testing.assert_allclose(groups.mean(values)[code], values[rows].mean(axis=0))
        np.testing.assert_allclose(groups.mean(values, weight)[code], mean)
        np.testing.assert_allclose(centered[rows], values[rows] - mean)
        better = values[rows, 0][:, None] < values[rows, 0]
        np.testing.assert_array_equal(ranks[rows], 1 + better.sum(axis=1))
        start = groups.starts[code]
        np.testing.assert_array_equal(groups.order[start : start + groups.sizes[code]], rows)


def test_groups_of_some_rows_have_the_labels_of_these_rows():
    groups = encode_groups(["c", "a", "b", "a"], 4)
    taken = groups.take(np.array([3, 0]))
    assert taken.codes.tolist() == [0, 1]
    assert taken.labels.tolist() == ["a", "c"]
    assert taken.item_labels.tolist() == ["a", "c"]
