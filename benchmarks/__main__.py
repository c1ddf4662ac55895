"""One command, one table: ``make bench``.

    python -m benchmarks [--size short|full] [--only PATTERN] [--repeat N] [--write]

The two works of a row take turns in this process (A B A B …); the ratio is that of the shortest
times. Memory is what a work allocates in a turn before, which does not count for the time. Every
run is kept in ``results/DATE-COMMIT-SIZE.csv``; with ``--write`` its table and charts become those
of the page. A row whose library is not installed is named and left out.
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
    logistic,
    margin,
    ranking_pursuit,
    retrieval_runs,
    tables,
    training,
    trees,
)
from benchmarks.charts import draw_charts
from benchmarks.row import SIZES, Row, Work, blas_threads, load_per_core

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


def measure(row: Row, size: str, repeat: int) -> Record:
    """Seconds and memory of both works, and whether the bar is met."""
    ours, theirs = row.prepare(size)
    works = [ours] if theirs is None else [ours, theirs]
    peaks = [None if row.is_long else peak_of(work) for work in works]
    seconds: list[list[float]] = [[] for _ in works]
    with spinning(row.spinners):
        for _ in range(1 if row.is_long else repeat):
            for times, work in zip(seconds, works, strict=True):
                start = time.perf_counter()
                work()
                times.append(time.perf_counter() - start)
    shortest = [min(times) for times in seconds]
    medians = [statistics.median(times) for times in seconds]
    for values in (shortest, medians):
        if theirs is None:
            values.append(row.limit or math.nan)
        values[1] *= row.scale
    growth = None if row.growth is None else row.growth[size]
    ratio = ratio_of(shortest, growth)
    return {
        "section": row.section,
        "work": row.work,
        "against": row.against,
        "seconds": shortest[0],
        "seconds_against": shortest[1],
        "ratio": ratio,
        "ratio_of_medians": ratio_of(medians, growth),
        "bar": row.bar,
        "met": ratio <= row.bar,
        "mib": peaks[0],
        "mib_against": None if theirs is None else peaks[1],
        "load_per_core": load_per_core(),
    }


def ratio_of(seconds: list[float], growth: float | None) -> float:
    """Ours over theirs; the slope of log time over log rows where the works differ in rows."""
    ratio = seconds[0] / seconds[1]
    return ratio if growth is None else math.log(ratio) / math.log(growth)


def peak_of(work: Work) -> float:
    """Most memory that the work holds at a time, in MiB; that of other processes is not seen."""
    tracemalloc.start()
    work()
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return peak / 2**20


def cells_of(record: Record) -> list[str]:
    """A line of the table."""
    met = "met" if record["met"] else f"**missed by {record['ratio'] - record['bar']:.2g}**"
    times = (f"{record[name]:.3g} s" for name in ("seconds", "seconds_against"))
    ratios = (f"{record[name]:.2g}" for name in ("ratio", "bar"))
    return [record["work"], record["against"], *times, *ratios, met]


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
    n_met = sum(record["met"] for record in records)
    counted = f"{n_met} of {len(records)} bars met."
    middle = f"\n{about} {counted}\n\n{table_of(records)}\n"
    page.write_text(f"{before}{MARKS[0]}\n{middle}\n{MARKS[1]}{after}", encoding="utf-8")
    draw_charts(records, page.parent / "results")


def commit() -> str:
    """The commit that runs, or a word where there is none."""
    command = ["git", "-C", str(FOLDER), "rev-parse", "--short", "HEAD"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    return done.stdout.strip() or "unknown"


def main(arguments: list[str] | None = None) -> list[Record]:
    """Measure, keep and print."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("--size", choices=SIZES, default="short")
    parser.add_argument("--only", default="", help="regular expression: section or work")
    parser.add_argument("--repeat", type=int, default=3, help="turns (%(default)s)")
    parser.add_argument("--write", action="store_true", help="also the page and its charts")
    parser.add_argument("--output", type=Path, default=FOLDER / "results", help="folder")
    options = parser.parse_args(arguments)
    day = datetime.datetime.now(datetime.UTC).date()
    about = (
        f"{day}, commit {commit()}, size {options.size}, {blas_threads()} BLAS threads, "
        f"load per core {load_per_core():.1f} at the start."
    )
    print(about, flush=True)
    start, records = time.perf_counter(), []
    for row in ROWS:
        name = f"{row.section}: {row.work} / {row.against}"
        if not re.search(options.only, name, re.IGNORECASE):
            continue
        if row.package and not importlib.util.find_spec(row.package):
            print(f"{name}: left out, {row.package} is not installed", flush=True)
            continue
        records.append(measure(row, options.size, options.repeat))
        print(" | ".join(cells_of(records[-1])), flush=True)
    if not records:
        raise SystemExit(f"--only {options.only!r} matches no row.")
    path = options.output / f"{day}-{commit()}-{options.size}.csv"
    write_csv(records, path)
    print(f"{(time.perf_counter() - start) / 60:.1f} minutes, written to {path}")
    if options.write:
        write_page(records, about, FOLDER / "README.md")
    return records


if __name__ == "__main__":
    main()
