"""The benchmarks keep running; nothing here looks at a clock."""

import csv
import math

import numpy as np
import pytest
from threadpoolctl import threadpool_limits

from benchmarks import __main__ as bench
from benchmarks import boards, large_lists, large_parquet, out_of_core
from benchmarks import row as rows_of_benchmarks
from benchmarks.row import DataMissing, Row

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
    try:
        ours, theirs = row.prepare("tiny")
    except DataMissing as missing:
        pytest.skip(str(missing))
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
    options = ["--size", "tiny", "--repeat", "1", "--patience", "0", "--write"]
    records = bench.main([*options, "--output", str(tmp_path)])
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


def test_the_ratio_is_the_median_of_the_turns():
    figures = iter([1.0, 9.0, 2.0, 3.0, 4.0])
    record = bench.measure(
        make_row(unit="s", limit=1.0, prepare=lambda size: (print, None)), "tiny", 3
    )
    assert record["unit"] == "s"
    assert record["ratio"] == record["seconds"]
    row = make_row(unit="MiB", limit=4.0, bar=0.5, prepare=lambda size: (figures.__next__, None))
    record = bench.measure(row, "tiny", 5)
    assert record["seconds"] == 1.0  # works that return their figure run once
    assert record["ratio"] == 0.25
    assert record["met"]


def test_rows_that_never_found_an_idle_machine_are_marked(monkeypatch):
    loads = iter([2.0, 1.0, 0.1])
    monkeypatch.setattr(rows_of_benchmarks, "busy_cores", lambda: next(loads))
    monkeypatch.setattr(rows_of_benchmarks, "PAUSE", 0.0)
    assert rows_of_benchmarks.wait_until_idle(60.0) == 0.1
    monkeypatch.setattr(rows_of_benchmarks, "busy_cores", lambda: 1.5)
    assert rows_of_benchmarks.wait_until_idle(0.0) == 1.5
    monkeypatch.setattr(bench, "busy_cores", lambda: 0.0)
    record = bench.measure(make_row(), "tiny", 1)
    assert record["busy_cores"] == 1.5
    assert not record["is_idle"]
    assert bench.cells_of(record)[-1] == "met †"
    assert "1 row was measured while" in bench.counts_of([record])
    assert bench.cells_of({**record, "is_idle": True, "bar": math.inf})[-1] == "–"


def test_busy_cores_are_counted():
    with bench.spinning(1):
        assert rows_of_benchmarks.busy_cores(0.2) > 0


def test_out_of_core_trains_on_the_file_it_writes_in_bounded_memory(tmp_path, capsys):
    row = out_of_core.measure(0.003, 500, str(tmp_path))
    assert row["chunks"] > 3
    assert row["pairs"] == row["rows"] * 99 // 2
    assert np.isfinite(row["coef"]).all()
    assert row["peak_mib"] < row["mib_before"] + 200
    assert list(tmp_path.iterdir()) == []
    out_of_core.main(["--size", "tiny", "--chunks", "500", "--folder", str(tmp_path)])
    assert "peak MiB" in capsys.readouterr().out


def test_files_larger_than_memory_and_large_lists_are_measured_in_processes_of_their_own():
    pytest.importorskip("duckdb")
    read, trained = (large_parquet.figures("duckdb", what, "tiny") for what in ("read", "train"))
    assert read["coef"] is None
    assert len(trained["coef"]) == 50
    assert 0 < read["peak"] <= trained["peak"]
    found = large_lists.fit_alone("auto", 200, 4, 0)
    assert found["seconds"] > 0
    assert found["memory"] >= 0


def test_scaling_table_compares_with_one_process():
    pytest.importorskip("distributed")
    from benchmarks.dask_scaling import Row, table

    rows = [Row("RankRLS", 0, 100, 3.0), Row("RankRLS", 2, 100, 2.0), Row("RankRLS", 2, 200, 3.0)]
    lines = table(rows + [row._replace(model="RankSVM") for row in rows])
    assert "| RankRLS | 2 | 100 | 2 | 1.50 |" in lines
    assert "| RankSVM | 2 | 200 | 3 | 2.00 |" in lines
