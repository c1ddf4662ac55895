"""One command, one table: ``make bench``.

    python -m benchmarks [--size short|full] [--only PATTERN] [--repeat N] [--write]

A row starts when other programs use less than 0.3 cores; a row that has waited in vain is measured
and marked. The two works of a row take turns in this process (A B A B …), five times; the ratio is
the median of the five. Memory is what a work allocates in a turn before, which does not count for
the time. Every run is kept in ``results/DATE-COMMIT-SIZE.csv``, row by row, so that a run that is
interrupted leaves what it has measured; with ``--write`` its table and charts become those of the
page. A row whose library is not installed is named and left out.
"""

from __future__ import annotations

import argparse
import csv
import datetime
import importlib.util
import math
import re
import statistics
import subprocess
import sys
import time
import tracemalloc
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from benchmarks import (
    boards,
    busy,
    files,
    hold_out,
    large_lists,
    large_parquet,
    logistic,
    margin,
    ranking_pursuit,
    retrieval_runs,
    tables,
    training,
    trees,
)
from benchmarks.charts import draw_charts
from benchmarks.row import (
    IDLE,
    SIZES,
    DataMissing,
    Row,
    Work,
    blas_threads,
    busy_cores,
    wait_until_idle,
)

FOLDER = Path(__file__).parent
ROWS = [
    *training.ROWS,
    *hold_out.ROWS,
    *margin.ROWS,
    *logistic.ROWS,
    *ranking_pursuit.ROWS,
    *tables.ROWS,
    *boards.ROWS,
    *retrieval_runs.ROWS,
    *trees.ROWS,
    *files.ROWS,
    *large_parquet.ROWS,
    *large_lists.ROWS,
    *busy.ROWS,
]
SPIN = "import os; parent = os.getppid()\nwhile os.getppid() == parent: pass"
MARKS = "<!-- begin table -->", "<!-- end table -->"
Record = dict[str, Any]


@contextmanager
def spinning(n_programs: int) -> Iterator[None]:
    """Programs that use a core each, as long as the context lasts."""
    programs = [subprocess.Popen([sys.executable, "-c", SPIN]) for _ in range(n_programs)]
    try:
        yield
    finally:
        for program in programs:
            program.kill()
            program.wait()


def measure(row: Row, size: str, repeat: int, patience: float = 0.0) -> Record:
    """Seconds and memory of both works, and whether the bar is met."""
    ours, theirs = row.prepare(size)
    works = [ours]
    if theirs is not None:
        works.append(theirs)
    is_timed_often = row.unit == "s" and not row.is_long
    n_turns = 1
    peaks: list[float | None] = [None for _ in works]
    if is_timed_often:
        n_turns = repeat
        peaks = [peak_of(work) for work in works]

    busy = wait_until_idle(patience)
    turns = []
    with spinning(row.spinners):
        for _ in range(n_turns):
            figures = [figure_of(work, row.unit) for work in works]
            if theirs is None:
                figures.append(row.limit or math.nan)
            turns.append((figures[0], figures[1] * row.scale))
    busy = max(busy, busy_cores())

    growth = None
    if row.growth is not None:
        growth = row.growth[size]
    our_figures, their_figures = zip(*turns, strict=True)
    ratio = statistics.median(ratio_of(turn, growth) for turn in turns)
    return {
        "section": row.section,
        "work": row.work,
        "against": row.against,
        "seconds": statistics.median(our_figures),
        "seconds_against": statistics.median(their_figures),
        "unit": row.unit,
        "ratio": ratio,
        "ratio_of_shortest": ratio_of((min(our_figures), min(their_figures)), growth),
        "bar": row.bar,
        "met": ratio <= row.bar,
        "mib": peaks[0],
        "mib_against": None if theirs is None else peaks[1],
        "busy_cores": busy,
        "is_idle": busy < IDLE,
    }


def figure_of(work: Work, unit: str) -> float:
    """Seconds of a work, or the number that it returns."""
    start = time.perf_counter()
    figure = work()
    seconds = time.perf_counter() - start
    if unit == "s":
        return seconds
    return float(figure)


def ratio_of(turn: tuple[float, ...], growth: float | None) -> float:
    """Ours over theirs; the slope of log time over log rows where the works differ in rows."""
    ratio = turn[0] / turn[1]
    if growth is None:
        return ratio
    return math.log(ratio) / math.log(growth)


def peak_of(work: Work) -> float:
    """Most memory that the work holds at a time, in MiB; that of other processes is not seen."""
    tracemalloc.start()
    work()
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return peak / 2**20


def cells_of(record: Record) -> list[str]:
    """A line of the table."""
    unit = record["unit"]
    if math.isinf(record["bar"]):
        bar = "–"
        verdict = "–"
    else:
        bar = f"{record['bar']:.2g}"
        verdict = "met"
        if not record["met"]:
            verdict = f"**missed by {record['ratio'] - record['bar']:.2g}**"
    if not record["is_idle"]:
        verdict += " †"
    return [
        record["work"],
        record["against"],
        f"{record['seconds']:.3g} {unit}",
        f"{record['seconds_against']:.3g} {unit}",
        f"{record['ratio']:.2g}",
        bar,
        verdict,
    ]


def table_of(records: list[Record]) -> str:
    """The table in Markdown, by section."""
    lines = []
    for section in dict.fromkeys(record["section"] for record in records):
        lines += ["", f"### {section}", ""]
        lines += [
            "| work | peer or limit | ours | peer or limit | ratio | bar | |",
            "|---" * 7 + "|",
        ]
        chosen = (record for record in records if record["section"] == section)
        lines += [f"| {' | '.join(cells_of(record))} |" for record in chosen]
    return "\n".join(lines[1:])


def write_csv(records: list[Record], path: Path) -> None:
    """All that was measured."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with open(path, "w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, fieldnames=list(records[0]))
        writer.writeheader()
        writer.writerows(records)


def write_page(records: list[Record], about: str, page: Path) -> None:
    """Put the table between the marks of the page, and draw the charts beside it."""
    text = page.read_text(encoding="utf-8")
    before, rest = text.split(MARKS[0])
    after = rest.split(MARKS[1])[1]
    middle = f"\n{about} {counts_of(records)}\n\n{table_of(records)}\n"
    page.write_text(f"{before}{MARKS[0]}\n{middle}\n{MARKS[1]}{after}", encoding="utf-8")
    draw_charts(records, page.parent / "results")


def counts_of(records: list[Record]) -> str:
    """How many bars were met, and how many rows were measured on a busy machine."""
    n_met = sum(record["met"] for record in records if math.isfinite(record["bar"]))
    n_bars = sum(math.isfinite(record["bar"]) for record in records)
    text = f"{n_met} of {n_bars} bars met."
    n_busy = sum(not record["is_idle"] for record in records)
    if n_busy:
        rows = f"{n_busy} rows were"
        if n_busy == 1:
            rows = "1 row was"
        text += f" † {rows} measured while other programs used the processors."
    return text


def commit() -> str:
    """The commit that runs, or a word where there is none."""
    command = ["git", "-C", str(FOLDER), "rev-parse", "--short", "HEAD"]
    process = subprocess.run(command, capture_output=True, text=True, check=False)
    return process.stdout.strip() or "unknown"


def main(arguments: list[str] | None = None) -> list[Record]:
    """Measure, keep and print."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("--size", choices=SIZES, default="short")
    parser.add_argument("--only", default="", help="regular expression: section or work")
    parser.add_argument("--repeat", type=int, default=5, help="turns (%(default)s)")
    parser.add_argument(
        "--patience",
        type=float,
        default=60.0,
        help="seconds to wait for an idle machine before each row (%(default)s)",
    )
    parser.add_argument("--write", action="store_true", help="also the page and its charts")
    parser.add_argument("--output", type=Path, default=FOLDER / "results", help="folder")
    options = parser.parse_args(arguments)
    day = datetime.datetime.now(datetime.UTC).date()
    about = (
        f"{day}, commit {commit()}, size {options.size}, {blas_threads()} BLAS threads, "
        f"{busy_cores():.1f} cores busy at the start."
    )
    print(about, flush=True)
    path = options.output / f"{day}-{commit()}-{options.size}.csv"
    start = time.perf_counter()
    records = []
    for row in ROWS:
        name = f"{row.section}: {row.work} / {row.against}"
        if not re.search(options.only, name, re.IGNORECASE):
            continue
        if row.package and not importlib.util.find_spec(row.package):
            print(f"{name}: left out, {row.package} is not installed", flush=True)
            continue
        try:
            records.append(measure(row, options.size, options.repeat, options.patience))
        except DataMissing as error:
            print(f"{name}: left out, {error}", flush=True)
            continue
        write_csv(records, path)
        print(" | ".join(cells_of(records[-1])), flush=True)
    if not records:
        raise SystemExit(f"--only {options.only!r} matches no row.")
    print(f"{(time.perf_counter() - start) / 60:.1f} minutes, written to {path}")
    if options.write:
        write_page(records, about, FOLDER / "README.md")
    return records


if __name__ == "__main__":
    main()
