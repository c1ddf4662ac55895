"""Problems × libraries → CSV.

    python -m benchmarks.run [--size short|full] [--only PATTERN] [--repeat N] [--output FILE]
                             [--svmrank PATH] [--liblinear-ranksvm PATH]

Each pair runs in a process of its own, so that its peak of memory is its own.
"""

from __future__ import annotations

import argparse
import csv
import json
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from benchmarks.libraries import LIBRARIES
from benchmarks.libraries.programs import LIBRARIES as PROGRAMS
from benchmarks.measure import ALL_PROBLEMS, COLUMNS
from benchmarks.problems import SIZES

ROOT = Path(__file__).parents[1]
SHOWN = (
    "problem", "rows", "features", "library", "load", "seconds_min", "seconds_median",
    "peak_mib", "objective", "ndcg@10", "disagreement",
)  # fmt: skip
Row = dict[str, Any]


def main(arguments: list[str] | None = None) -> None:
    options = _parse(arguments)
    for library in PROGRAMS:
        if path := vars(options)[library.option.replace("-", "_")]:
            os.environ[library.variable] = str(path.resolve(strict=True))
    rows = []
    for problem, library in pairs_to_run(options.only):
        row = run_one(problem, library, options.size, options.repeat)
        rows.append(row)
        outcome = row["error"] or f"{row['seconds_min']:.4g} s"
        print(f"{problem} / {library}: {outcome}", file=sys.stderr, flush=True)
    if not rows:
        raise SystemExit(f"--only {options.only!r} matches no problem / library that there is.")
    output = options.output or ROOT / "benchmarks" / "results" / f"{_commit()}-{options.size}.csv"
    write_csv(rows, output)
    print(format_table(rows))
    print(f"\nwritten to {output}")


def pairs_to_run(only: str | None) -> Iterator[tuple[str, str]]:
    """Names of the problems and of the libraries that can be asked for them."""
    missing = [library for library in LIBRARIES.values() if not library.is_installed]
    for library in missing:
        how = f" (--{library.option} PATH)" if library.option else ""
        print(f"{library.name}: skipped, {library.package} is not installed{how}", file=sys.stderr)
    for name, load in ALL_PROBLEMS.items():
        small = load("tiny")
        for library in LIBRARIES.values():
            wanted = only is None or re.search(only, f"{name} / {library.name}", re.IGNORECASE)
            if wanted and library.is_installed and library.solves(small):
                yield name, library.name


def run_one(problem: str, library: str, size: str, repeat: int) -> Row:
    """The row of one pair; a failure is a row, too."""
    command = [sys.executable, "-m", "benchmarks.measure", problem, library, size, str(repeat)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    if done.returncode == 0:
        return dict(json.loads(done.stdout.splitlines()[-1]))
    last = done.stderr.strip().splitlines()[-1:] or [f"exit code {done.returncode}"]
    row = dict.fromkeys(COLUMNS)
    return row | {"problem": problem, "size": size, "library": library, "error": last[0]}


def write_csv(rows: list[Row], path: Path) -> None:
    """Write to a temporary neighbor first: a half-written table never has the final name."""
    path.parent.mkdir(parents=True, exist_ok=True)
    descriptor, name = tempfile.mkstemp(dir=path.parent, suffix=".part")
    try:
        with os.fdopen(descriptor, "w", newline="", encoding="utf-8") as file:
            writer = csv.DictWriter(file, COLUMNS)
            writer.writeheader()
            writer.writerows(rows)
        Path(name).chmod(0o644)
        Path(name).replace(path)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise


def format_table(rows: list[Row]) -> str:
    """Aligned columns, as a Markdown table."""
    cells = [list(SHOWN)] + [[_cell(row[column]) for column in SHOWN] for row in rows]
    widths = [max(len(line[k]) for line in cells) for k in range(len(SHOWN))]
    lines = [
        "| "
        + " | ".join(f"{cell:<{width}}" for cell, width in zip(line, widths, strict=True))
        + " |"
        for line in cells
    ]
    lines.insert(1, "|" + "|".join("-" * (width + 2) for width in widths) + "|")
    errors = [
        f"{row['problem']} / {row['library']}: {row['error']}" for row in rows if row["error"]
    ]
    return "\n".join(lines + errors)


def _cell(value: Any) -> str:
    if value is None:
        return ""
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def _commit() -> str:
    def git(*arguments: str) -> str:
        command = ["git", *arguments]
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
        return done.stdout.strip()

    changed = git("status", "--porcelain", "--untracked-files=no", "--", "src")
    return (git("rev-parse", "--short", "HEAD") or "unknown") + ("-changed" if changed else "")


def _parse(arguments: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.run", description="Measure all.")
    parser.add_argument("--size", choices=SIZES, default="short")
    parser.add_argument("--only", help="regular expression for 'problem / library'")
    parser.add_argument("--repeat", type=int, default=3, help="runs of each; 3 if not given")
    parser.add_argument(
        "--output", type=Path, help="CSV file; by default results/<commit>-<size>.csv"
    )
    for library in PROGRAMS:
        parser.add_argument(f"--{library.option}", type=Path, help=f"a built {library.package}")
    return parser.parse_args(arguments)


if __name__ == "__main__":
    main()
