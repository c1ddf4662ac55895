"""The benchmarks keep running; nothing here looks at a clock."""

import csv
import math

import numpy as np
import pytest
from threadpoolctl import threadpool_limits

from benchmarks import __main__ as bench
from benchmarks import boards, out_of_core
from benchmarks.row import Row

NAMES = [f"{row.work} / {row.against}" for row in bench.ROWS]


@pytest.fixture(autouse=True)
def _one_thread():
    """The problems are tiny, and threads that wait for each other are slow on a busy machine."""
    with threadpool_limits(1):
        yield


@pytest.mark.filterwarnings("ignore")  # tiny data, and other libraries
@pytest.mark.parametrize("row", bench.ROWS, ids=NAMES)
def test_both_works_of_a_row_run(row):
    if row.package:
        pytest.importorskip(row.package)
    ours, theirs = row.prepare("tiny")
    ours()
    if theirs is not None:
        theirs()
    assert (theirs is None) == (row.limit is not None)


def test_no_row_is_there_twice():
    assert len(set(NAMES)) == len(NAMES)


def test_peers_rate_as_we_do():
    n_items, winner, loser = boards.games_of("tiny")
    graph = boards.PairGraph(winner, loser, n_items=n_items)
    ours = boards.rate(graph, model="bradley-terry", intervals=False).ratings
    theirs = boards.by_scikit_learn(n_items, winner, loser).coef_[0]
    np.testing.assert_allclose(ours - ours.mean(), theirs - theirs.mean(), atol=1e-2)


def make_row(**options):
    work = lambda: sum(range(2000))  # noqa: E731
    given = {"section": "Any", "work": "a sum", "against": "itself", "bar": 1e9}
    return Row(**{**given, "prepare": lambda size: (work, work), **options})


def test_a_run_is_kept_and_becomes_the_page(tmp_path, monkeypatch, capsys):
    page = tmp_path / "README.md"
    page.write_text("before\n<!-- begin table -->\nold\n<!-- end table -->\nafter\n")
    rows = [
        make_row(),
        make_row(work="a slow sum", bar=1e-9),
        make_row(work="a limit", against="1 h", limit=3600.0, prepare=lambda size: (print, None)),
        make_row(work="of a library", package="no_such_library"),
    ]
    monkeypatch.setattr(bench, "ROWS", rows)
    monkeypatch.setattr(bench, "FOLDER", tmp_path)
    records = bench.main(["--size", "tiny", "--repeat", "1", "--write", "--output", str(tmp_path)])
    assert "no_such_library is not installed" in capsys.readouterr().out
    assert [record["met"] for record in records] == [True, False, True]
    (path,) = tmp_path.glob("*-tiny.csv")
    kept = list(csv.DictReader(path.read_text().splitlines()))
    assert [row["work"] for row in kept] == ["a sum", "a slow sum", "a limit"]
    text = page.read_text()
    assert text.startswith("before\n")
    assert text.endswith("after\n")
    assert "old" not in text
    assert "2 of 3 bars met" in text
    assert "**missed by" in text
    assert (tmp_path / "results" / "ratios.png").stat().st_size > 5_000
    with pytest.raises(SystemExit, match="matches no row"):
        bench.main(["--only", "nothing like it"])


def test_ratios_are_slopes_where_rows_grow_and_theirs_is_scaled():
    assert bench.ratio_of([8.0, 1.0], 4.0) == pytest.approx(1.5)
    assert bench.ratio_of([8.0, 2.0], None) == 4
    record = bench.measure(make_row(scale=1e6), "tiny", 2)
    assert record["ratio"] < 1e-2
    assert not math.isnan(record["mib"])
    assert bench.measure(make_row(is_long=True), "tiny", 2)["mib"] is None


def test_out_of_core_trains_on_the_file_it_writes_in_bounded_memory(tmp_path, capsys):
    row = out_of_core.measure(0.003, 500, str(tmp_path))
    assert row["chunks"] > 3
    assert row["pairs"] == row["rows"] * 99 // 2
    assert np.isfinite(row["coef"]).all()
    assert row["peak_mib"] < row["mib_before"] + 200
    assert list(tmp_path.iterdir()) == []
    out_of_core.main(["--size", "tiny", "--chunks", "500", "--folder", str(tmp_path)])
    assert "peak MiB" in capsys.readouterr().out


def test_scaling_table_compares_with_one_process():
    pytest.importorskip("distributed")
    from benchmarks.dask_scaling import Row, table

    rows = [Row("RankRLS", 0, 100, 3.0), Row("RankRLS", 2, 100, 2.0), Row("RankRLS", 2, 200, 3.0)]
    lines = table(rows + [row._replace(model="RankSVM") for row in rows])
    assert "| RankRLS | 2 | 100 | 2 | 1.50 |" in lines
    assert "| RankSVM | 2 | 200 | 3 | 2.00 |" in lines
