"""Cells of tables as text and numbers."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from rankwise.datasets import read_ranking
from rankwise.errors import TableFormatError

pyarrow = pytest.importorskip("pyarrow")


def test_codes_keep_their_zeros_unless_they_must_be_numbers(tmp_path):
    file = tmp_path / "a.csv"
    file.write_text('# from a register\nzip,"code",n,y\n07302,"007",1,05\n10001,"12",2,10\n')
    assert read_ranking(file, as_frame=True).X.to_pydict() == {
        **{"zip": ["07302", "10001"], "code": ["007", "12"], "n": [1, 2]},
    }
    assert read_ranking(file, as_frame=True).y.tolist() == [5, 10]
    assert_array_equal(read_ranking(file).X, [[7302, 7, 1], [10001, 12, 2]])


def test_columns_are_read_as_text_or_numbers_on_demand(tmp_path):
    file = tmp_path / "a.csv"
    file.write_text("y,zip,n\n1,007, 3\n2,7,NA\n,8,4\n")
    data = read_ranking(file, text=["zip"], numeric=["n"], as_frame=True)
    assert data.X.to_pydict() == {"zip": ["007", "7", "8"], "n": [3.0, None, 4.0]}
    assert_array_equal(data.y, [1, 2, np.nan])
    file.write_text("y,n\n1,3\n2,many\n")
    with pytest.raises(
        ValueError, match=r"a.csv:3: .*column 'n', is 'many', expected a finite number"
    ):
        read_ranking(file, numeric=["n"], as_frame=True)


@pytest.mark.parametrize(
    "gap", ["-", "--", "–", "?", "n/a", "N/A", ".", " - ", "#N/A", "\\N", "nil"]
)
def test_numbers_have_gaps_where_people_write_dashes(tmp_path, gap):
    path = tmp_path / "data.tsv"
    path.write_text(f"x\tz\ty\n1\t{gap}\t1\n{gap}\t5\t2\n3\t7\t{gap}\n", encoding="utf-8")
    for options in ({}, {"numeric": ["x"]}):
        found = read_ranking(path, **options, as_frame=True)
        assert found.X["x"].to_pylist() == [1, None, 3]
        np.testing.assert_array_equal(found.y, [1, 2, np.nan])
    with pytest.raises(TableFormatError, match=r":3: .*column 'x', is"):
        read_ranking(path)


@pytest.mark.parametrize(
    ("cells", "numbers"),
    [
        (["12 %", "7%", "-"], [0.12, 0.07, None]),
        (["€ 3.50", "-€2", "€1,000"], [3.5, -2, 1000]),
        (["3 USD", "", "2.5 USD"], [3, None, 2.5]),
        (["5.5 km", "12km", "?"], [5.5, 12, None]),
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
        assert read_ranking(path, **options, as_frame=True).X["x"].to_pylist() == pytest.approx(
            numbers * 500
        )


@pytest.mark.parametrize(
    "cell", ["12 %", "$1,200.50", "(3)", "\N{MINUS SIGN}3", "1,234", "many", "2020-01-01", "inf"]
)
def test_numbers_with_some_marks_are_refused(tmp_path, cell):
    path = tmp_path / "data.tsv"
    path.write_text(f"x\ty\n1.5\t1\n{cell}\t2\n", encoding="utf-8")
    with pytest.raises(TableFormatError) as raised:
        read_ranking(path, numeric=["x"], as_frame=True)
    problem = f":3: the feature, column 'x', is '{cell}', expected a finite number. "
    assert problem in str(raised.value)
