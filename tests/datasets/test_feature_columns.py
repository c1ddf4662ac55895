"""Cells of tables as text and numbers, and how training rows are recognized."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_array_equal

from rankwise.datasets import read_frame, read_table
from rankwise.datasets.row_sketch import SIZE, sketch_rows, sketched_share
from rankwise.errors import TableFormatError

pyarrow = pytest.importorskip("pyarrow")


def test_columns_are_read_as_text_or_numbers_on_demand(tmp_path):
    file = tmp_path / "a.csv"
    file.write_text("y,zip,n\n1,007, 3\n2,7,NA\n,8,4\n")
    data = read_frame(file, text=["zip"], numeric=["n"])
    assert data.X.to_pydict() == {"zip": ["007", "7"], "n": [3.0, None]}
    assert data.n_without_score == 1
    kept = read_frame(file, keep_unscored=True)
    assert kept.n_without_score == 0
    assert_array_equal(kept.y, [1, 2, np.nan])
    file.write_text("y,n\n1,3\n2,many\n")
    with pytest.raises(
        ValueError, match=r"a.csv:3: column 'n' is 'many', expected a finite number"
    ):
        read_frame(file, numeric=["n"])


# Rows that were seen before


def data_of(seed, n_rows, n_columns=3):
    rng = np.random.default_rng(seed)
    return rng.normal(size=(n_rows, n_columns)), rng.integers(0, 3, n_rows).astype(float)


@settings(max_examples=30, deadline=None)
@given(seed=st.integers(0, 10**6), n_rows=st.integers(1, 600), n_columns=st.integers(1, 40))
def test_rows_are_recognized_in_any_order(seed, n_rows, n_columns):
    X, y = data_of(seed, n_rows, n_columns)
    order = np.random.default_rng(seed).permutation(n_rows)
    assert sketched_share(sketch_rows(X, y), X[order], y[order]) == 1.0
    other, _ = data_of(seed + 1, n_rows, n_columns)
    assert sketched_share(sketch_rows(X, y), other, y) == 0.0


def test_the_share_of_seen_rows_is_about_right():
    X, y = data_of(0, 20_000)
    new, new_y = data_of(1, 20_000)
    sketch = sketch_rows(X, y)
    assert len(sketch) == 16 * SIZE
    mixed = np.concatenate([X[:10_000], new[:10_000]]), np.concatenate([y[:10_000], new_y[:10_000]])
    assert abs(sketched_share(sketch, *mixed) - 0.5) < 0.15


def test_sparse_and_dense_rows_are_the_same():
    import scipy.sparse as sp

    X, y = data_of(0, 50)
    X[X < 0] = 0
    assert sketch_rows(sp.csr_matrix(X), y) == sketch_rows(X, y) == sketch_rows(-0.0 + X, y)
    assert sketched_share("not hexadecimal", X, y) == 0.0
    wide = sp.random(400, 300, 0.02, "csr", random_state=0)  # most rows are 0 in most columns
    assert (
        sketched_share(sketch_rows(wide[:200], y[:1].repeat(200)), wide[200:], y[:1].repeat(200))
        < 0.1
    )
    assert sketched_share("", X, y) == 0.0


@pytest.mark.parametrize(
    "gap", ["-", "--", "–", "?", "n/a", "N/A", ".", " - ", "#N/A", "\\N", "nil"]
)
def test_numbers_have_gaps_where_people_write_dashes(tmp_path, gap):
    path = tmp_path / "data.tsv"
    path.write_text(f"x\tz\ty\n1\t{gap}\t1\n{gap}\t5\t2\n3\t7\t{gap}\n", encoding="utf-8")
    for options in ({}, {"numeric": ["x"]}):
        found = read_frame(path, **options, keep_unscored=True)
        assert found.X["x"].to_pylist() == [1, None, 3]
        np.testing.assert_array_equal(found.y, [1, 2, np.nan])
    with pytest.raises(TableFormatError, match=r":3: the value of column 'x' is missing"):
        read_table(path)


def test_a_dash_among_words_is_a_word(tmp_path):
    path = tmp_path / "data.csv"
    path.write_text("size,y\n-,1\nL,2\nXL,3\n", encoding="utf-8")
    assert read_frame(path).X["size"].to_pylist() == ["-", "L", "XL"]


@pytest.mark.parametrize(
    ("cells", "numbers"),
    [
        (["12 %", "7%", "-"], [0.12, 0.07, None]),
        (["€ 3.50", "-€2", "€1,000"], [3.5, -2, 1000]),
        (["3 USD", "", "2.5 USD"], [3, None, 2.5]),
        (["+1", "-2", "+0.5"], [1, -2, 0.5]),
        (["1,234", "12", "1,234,567.5"], [1234, 12, 1234567.5]),
        (["1 234", "1'234.5", "1e3"], [1234, 1234.5, 1000]),
    ],
)
def test_numbers_with_marks(tmp_path, cells, numbers):
    path = tmp_path / "data.csv"
    rows = [f'"{cell}",{k}\n' for k, cell in enumerate(cells * 500)]
    path.write_text("x,y\n" + "".join(rows), encoding="utf-8")
    for options in ({}, {"numeric": ["x"]}):
        assert read_frame(path, **options).X["x"].to_pylist() == pytest.approx(numbers * 500)


def test_decimal_commas_leave_the_point_to_thousands(tmp_path):
    path = tmp_path / "data.csv"
    path.write_text("x;y\n1.234,5;1\n0,25;2\n", encoding="utf-8")
    assert read_frame(path, decimal=",").X["x"].to_pylist() == [1234.5, 0.25]


@pytest.mark.parametrize(
    ("cell", "remedy"),
    [
        ("12 %", "the same mark (%, currency) in all rows"),
        ("$1,200.50", "Write the number alone"),
        ("(3)", "Write the number alone"),
        ("\N{MINUS SIGN}3", "Write the number alone"),
        ("1,234", "Write decimals with a point"),
        ("many", "Encode words as numbers"),
        ("2020-01-01", "Write the number alone"),
        ("inf", "Write nothing for a gap"),
    ],
)
def test_numbers_with_some_marks_are_refused_with_what_to_write(tmp_path, cell, remedy):
    path = tmp_path / "data.tsv"
    path.write_text(f"x\ty\n1.5\t1\n{cell}\t2\n", encoding="utf-8")
    with pytest.raises(TableFormatError) as raised:
        read_frame(path, numeric=["x"])
    assert f":3: column 'x' is '{cell}', expected a finite number. " in str(raised.value)
    assert remedy in str(raised.value)
