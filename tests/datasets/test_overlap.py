"""Rows that a model was trained on are recognized; rows that only have twins there are not."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

from rankwise.datasets.overlap import (
    FINGERPRINT_SIZE,
    describe_overlap,
    fingerprint_rows,
    share_seen,
)


def data_of(seed, n_rows, n_columns=3):
    rng = np.random.default_rng(seed)
    return rng.normal(size=(n_rows, n_columns)), rng.integers(0, 3, n_rows).astype(float)


@settings(max_examples=30, deadline=None)
@given(seed=st.integers(0, 10**6), n_rows=st.integers(2, 600), n_columns=st.integers(1, 40))
def test_rows_are_recognized_in_any_order(seed, n_rows, n_columns):
    X, y = data_of(seed, n_rows, n_columns)
    order = np.random.default_rng(seed).permutation(n_rows)
    assert share_seen(fingerprint_rows(X, y), X[order], y[order]) == 1.0
    other, _ = data_of(seed + 1, n_rows, n_columns)
    assert share_seen(fingerprint_rows(X, y), other, y) == 0.0


def test_the_share_of_seen_rows_is_about_right():
    X, y = data_of(0, 20_000)
    new, new_y = data_of(1, 20_000)
    sketch = fingerprint_rows(X, y)
    assert len(sketch) == len("0.0000 ") + 16 * FINGERPRINT_SIZE
    mixed = np.concatenate([X[:10_000], new[:10_000]]), np.concatenate([y[:10_000], new_y[:10_000]])
    assert abs(share_seen(sketch, *mixed) - 0.5) < 0.15


def test_sparse_and_dense_rows_are_the_same():
    X, y = data_of(0, 50)
    X[X < 0] = 0
    assert (
        fingerprint_rows(sp.csr_matrix(X), y)
        == fingerprint_rows(X, y)
        == fingerprint_rows(-0.0 + X, y)
    )
    wide = sp.random(400, 300, 0.02, "csr", random_state=0)  # most rows are 0 in most columns
    ones = np.ones(200)
    assert share_seen(fingerprint_rows(wide[:200], ones), wide[200:], ones) == 0.0
    for damaged in ("", "not hexadecimal", "0.5 xy"):
        assert share_seen(damaged, X, y) == 0.0


def honest_split(kind, seed):
    """Disjoint rows of one source, many of which have twins: (X, y, groups) twice."""
    rng = np.random.default_rng(seed)
    n = 4000
    X = {  # a few values, ratings of popular films, clicks with many all-zero rows
        "codes": rng.integers(0, 6, (n, 3)),
        "films": np.column_stack([rng.zipf(1.5, n) % 300, rng.integers(0, 2, n)]),
        "zeros": rng.normal(size=(n, 3)) * (rng.random(n) < 0.5)[:, None],
    }[kind].astype(float)
    y = rng.integers(1, 6, n) * (X.sum(axis=1) != 0)
    groups = rng.integers(0, 5, n)
    return [(X[part], y[part].astype(float), groups[part]) for part in np.split(np.arange(n), 2)]


@pytest.mark.parametrize("kind", ["codes", "films", "zeros"])
def test_honest_splits_raise_no_alarm_and_leaks_do(kind):
    alarms, missed = 0, 0
    for seed in range(20):
        train, test = honest_split(kind, seed)
        sketch = fingerprint_rows(*train)
        alarms += share_seen(sketch, *test) > 0.1
        missed += share_seen(sketch, *train) < 0.5
    assert alarms == 0
    assert missed <= 2


def test_new_groups_are_new_rows():
    (X, y, groups), (new, new_y, other) = honest_split("codes", 0)
    assert share_seen(fingerprint_rows(X, y, groups), new, new_y, other + 100) == 0.0


def test_columns_of_a_table_count_by_name_in_any_order_and_type():
    pyarrow = pytest.importorskip("pyarrow")
    rng = np.random.default_rng(0)
    columns = {"zip": rng.integers(0, 10**5, 50), "name": [f"n{k % 7}" for k in range(50)]}
    y, groups = np.arange(50.0), np.repeat(np.arange(5), 10)
    sketch = fingerprint_rows(pyarrow.table(columns), y, groups)
    same = {"name": columns["name"], "zip": [str(v) for v in columns["zip"]]}
    assert share_seen(sketch, pyarrow.table(same), y, groups.astype(str)) == 1.0
    other = {**columns, "name": ["n7"] * 50}
    assert share_seen(sketch, pyarrow.table(other), y, groups) == 0.0


def test_describe_overlap_says_how_many_items_the_training_had():
    assert describe_overlap(0.05, "m") == ""
    assert "m was trained on all of these items" in describe_overlap(1.0, "m")
    assert "m was trained on about 30% of these items" in describe_overlap(0.3, "m")
