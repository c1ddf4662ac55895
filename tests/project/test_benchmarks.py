"""The benchmarks keep running; nothing here looks at a clock."""

import csv
import subprocess

import numpy as np
import pytest
from threadpoolctl import threadpool_limits

from benchmarks import bars, busy, co_rank_rls, out_of_core, run, surface
from benchmarks.libraries import LIBRARIES, boosting
from benchmarks.measure import COLUMNS, measure, objective
from benchmarks.problems import PROBLEMS
from rankwise import ScoreGraph
from rankwise.datasets import RankingData

PAIRS = [
    (name, library.name)
    for name, load in PROBLEMS.items()
    for library in LIBRARIES.values()
    if library.solves(load("tiny"))
]


@pytest.fixture(autouse=True)
def one_thread(monkeypatch):
    """The problems are tiny, and threads that wait for each other are slow on a busy machine."""
    monkeypatch.setattr(boosting, "N_TREES", 2)
    monkeypatch.setattr(boosting, "N_THREADS", 1)
    with threadpool_limits(1):
        yield


def objective_of(problem, library):
    return measure(problem, library, "tiny", 1)["objective"]


@pytest.mark.filterwarnings("ignore")  # those of other libraries
@pytest.mark.parametrize("problem, library", PAIRS)
def test_every_library_runs_on_every_problem_it_solves(problem, library):
    if not LIBRARIES[library].is_installed:
        pytest.skip(f"{LIBRARIES[library].package} is not installed")
    row = measure(problem, library, "tiny", 2)
    assert tuple(row) == COLUMNS
    assert row["seconds_min"] <= row["seconds_median"]
    if not library.startswith("limit"):
        assert 0 <= row["disagreement"] <= 1


@pytest.mark.parametrize("problem", PROBLEMS)
def test_no_model_has_a_smaller_objective_than_rank_rls(problem):
    best = objective_of(problem, "rankwise RankRLS")
    assert objective_of(problem, "rankwise RankRLS 31 alphas") == pytest.approx(best, rel=1e-6)
    for name, library in LIBRARIES.items():
        if (problem, name) in PAIRS and library.package in ("scikit-learn", "numpy"):
            other = objective_of(problem, name)
            assert other is None or other >= best * (1 - 1e-9)


def test_ridge_on_one_list_is_rank_rls():
    expected = objective_of("one_list", "rankwise RankRLS")
    assert objective_of("one_list", "Ridge") == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize("problem", PROBLEMS)
def test_objective_is_the_sum_over_explicit_pairs(problem):
    data = PROBLEMS[problem]("tiny")
    model = LIBRARIES["rankwise RankRLS"].prepare(data)()
    f = model.predict(data.X).reshape(data.X.shape[0], -1)
    outputs = data.y.reshape(f.shape).T if data.has_scores else [None]
    total = data.alpha * model.squared_norm()
    for k, y in enumerate(outputs):
        graph = data.y if y is None else ScoreGraph(y, data.groups).pairs()
        gap = f[graph.winner, k] - f[graph.loser, k]
        total += np.mean((graph.magnitude - gap) ** 2)
    assert objective(data, model) == pytest.approx(total, rel=1e-9)


def test_run_writes_a_table_and_keeps_failures(tmp_path, monkeypatch, capsys):
    output = tmp_path / "new" / "table.csv"
    run.main(
        ["--size", "tiny", "--repeat", "1", "--only", "pairs / zeros", "--output", str(output)]
    )
    with output.open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    assert [row["library"] for row in rows] == ["zeros"]
    assert rows[0]["error"] == ""
    assert rows[0]["disagreement"] == "0.5"
    assert [path.name for path in output.parent.iterdir()] == ["table.csv"]
    assert "| pairs   | 20   |" in capsys.readouterr().out

    failed = subprocess.CompletedProcess([], 1, "", "Traceback\nMemoryError: too large")
    monkeypatch.setattr(run.subprocess, "run", lambda *args, **options: failed)
    row = run.run_one("letor", "zeros", "full", 1)
    assert row["error"] == "MemoryError: too large"
    assert "letor / zeros: MemoryError" in run.format_table([row])


def test_run_says_what_it_cannot_run(monkeypatch, capsys):
    missing = LIBRARIES["XGBoost"]._replace(package="no_such_package")
    monkeypatch.setitem(run.LIBRARIES, "XGBoost", missing)
    assert all(library != "XGBoost" for _, library in run.pairs_to_run(None))
    assert "XGBoost: skipped, no_such_package is not installed" in capsys.readouterr().err
    with pytest.raises(SystemExit, match="matches no problem"):
        run.main(["--only", "no such thing"])


@pytest.mark.parametrize("bar", bars.BARS, ids=lambda bar: bar.name)
def test_both_sides_of_every_bar_run(bar):
    for work in bar.prepare("tiny"):
        work()


def test_bars_are_printed_with_a_verdict(capsys):
    bars.main(["--size", "tiny", "--repeat", "1", "--only", "one alpha|lexsort"])
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 6
    assert all("met" in line or "missed by" in line for line in lines[4:])


def test_verdict_compares_the_shortest_times_or_the_medians():
    ratio = bars.Ratio(numerator=(3.0, 9.0), denominator=(2.0, 2.0))
    bar = bars.Bar("", 1.5, bars.metrics)
    assert bars.verdict(ratio, bar) == "met"
    assert bars.verdict(ratio, bar._replace(limit=1.25)) == "missed by 0.25"
    assert bars.verdict(ratio, bar._replace(by_median=True)) == "missed by 3.00"


def test_co_rank_rls_prints_a_slope_and_two_tables(capsys):
    co_rank_rls.main(["--size", "tiny", "--repeat", "1"])
    lines = capsys.readouterr().out.splitlines()
    assert sum(line.startswith("| unscored rows |") for line in lines) == 2
    assert any(line.startswith("slope of log time over log rows") for line in lines)
    assert co_rank_rls.slope([1, 10, 100], [2.0, 20.0, 200.0]) == pytest.approx(1)


def test_out_of_core_trains_on_the_file_it_writes_in_bounded_memory(tmp_path, capsys):
    row = out_of_core.measure(0.003, 500, str(tmp_path))
    assert row["chunks"] > 3
    assert row["pairs"] == row["rows"] * 99 // 2
    assert np.isfinite(row["coef"]).all()
    assert row["peak_mib"] < row["mib_before"] + 200
    assert list(tmp_path.iterdir()) == []
    out_of_core.main(["--size", "tiny", "--chunks", "500", "--folder", str(tmp_path)])
    assert "peak MiB" in capsys.readouterr().out


def test_scaling_table_compares_with_one_worker():
    pytest.importorskip("distributed")
    from benchmarks.dask_scaling import Row, table

    strong = [Row("RankRLS", 1, 100, 3.0), Row("RankRLS", 2, 100, 2.0)]
    strong += [row._replace(model="RankSVM") for row in strong]
    lines = table(strong, [row._replace(rows=200) for row in strong if row.workers == 2])
    assert "| RankRLS, strong | 2 | 100 | 2 | 0.75 |" in lines
    assert "| RankSVM, weak | 2 | 200 | 2 | 1.50 |" in lines


def test_surface_reads_saves_and_reports_and_all_libraries_agree(capsys):
    surface.main(["--size", "tiny", "--repeat", "1", "--only", "read|save|load|report"])
    printed = capsys.readouterr().out
    for work in ("read csv", "read parquet", "read LETOR", "save a model", "report page"):
        assert f"| {work} | rankwise |" in printed


def test_surface_refuses_readers_that_disagree(monkeypatch):
    wrong = RankingData(np.zeros((1, 1)), None, None)
    monkeypatch.setattr(surface, "read_letor", lambda path: wrong)
    with pytest.raises(SystemExit, match="scikit-learn disagrees about read LETOR"):
        surface.main(["--size", "tiny", "--repeat", "1", "--only", "LETOR"])


def test_busy_compares_default_threads_with_one(capsys):
    busy.main(["--size", "tiny", "--repeat", "1", "--spinners", "1", "--only", "^Rank|rate|trees"])
    lines = capsys.readouterr().out.splitlines()
    assert [line.split("|")[1].strip() for line in lines[4:]] == [
        "RankRLS", "RankRLSCV", "RankSVM", "boosted trees", "rate"
    ]  # fmt: skip
