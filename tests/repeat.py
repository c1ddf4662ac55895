"""Run the whole suite several times, each with another order and another distribution.

``make test-repeat N=20`` finds tests that depend on the order, on the worker, or on luck. Each run
has a seed (the order of the tests and the cases that Hypothesis draws), a number of workers and a
way in which pytest-xdist distributes the tests. One line per run is appended to a log; the output
of a run that fails is kept in a file next to the log.
"""

from __future__ import annotations

import argparse
import random
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import NamedTuple
from xml.etree import ElementTree

ROOT = Path(__file__).parents[1]
DISTRIBUTIONS = ("load", "loadfile", "worksteal")
COLUMNS = ("seed", "workers", "distribution", "passed", "failed", "skipped", "seconds", "exit")


class Run(NamedTuple):
    """Options of one run of the suite."""

    seed: int
    n_workers: int
    distribution: str

    def command(self, junit: Path, selection: list[str]) -> list[str]:
        """Return the command that repeats this run."""
        return [
            *(sys.executable, "-m", "pytest", "-q"),
            *("-n", str(self.n_workers), "--dist", self.distribution),
            f"--randomly-seed={self.seed}",
            f"--hypothesis-seed={self.seed}",
            f"--junit-xml={junit}",
            *selection,
        ]


def draw_run(rng: random.Random, min_workers: int, max_workers: int) -> Run:
    n_workers = rng.randint(min_workers, max_workers)
    return Run(rng.getrandbits(32), n_workers, rng.choice(DISTRIBUTIONS))


def count_results(junit: Path) -> tuple[int, int, int]:
    """Return the numbers of tests that passed, failed (or had an error) and were skipped."""
    if not junit.exists():
        return 0, 0, 0
    n_passed = n_failed = n_skipped = 0
    for case in ElementTree.parse(junit).iter("testcase"):
        if case.find("failure") is not None or case.find("error") is not None:
            n_failed += 1
        elif case.find("skipped") is not None:
            n_skipped += 1
        else:
            n_passed += 1
    return n_passed, n_failed, n_skipped


def run_suite(run: Run, selection: list[str], log: Path) -> bool:
    """Run the suite once, append its line to the log, and return whether it passed."""
    start = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        junit = Path(folder) / "junit.xml"
        done = subprocess.run(
            run.command(junit, selection),
            cwd=ROOT,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
        )
        n_passed, n_failed, n_skipped = count_results(junit)
    seconds = round(time.monotonic() - start)
    is_passed = done.returncode == 0
    values = (*run, n_passed, n_failed, n_skipped, seconds, done.returncode)
    line = "\t".join(map(str, values))
    with log.open("a", encoding="utf-8") as stream:
        stream.write(f"{line}\n")
    print(line, flush=True)
    if not is_passed:
        log.with_suffix(f".{run.seed}.txt").write_text(done.stdout, encoding="utf-8")
    return is_passed


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("-n", "--runs", type=int, default=20, help="number of runs (default 20)")
    parser.add_argument(
        "--min-workers", type=int, default=1, help="smallest number of workers (default 1)"
    )
    parser.add_argument(
        "--max-workers", type=int, default=4, help="largest number of workers (default 4)"
    )
    parser.add_argument(
        "--log", type=Path, default=ROOT / "test-repeat.log", help="default: test-repeat.log"
    )
    parser.add_argument("selection", nargs="*", help="arguments of pytest (default: all tests)")
    arguments = parser.parse_args()
    header = "\t".join(COLUMNS)
    if not arguments.log.exists():
        arguments.log.write_text(f"{header}\n", encoding="utf-8")
    print(header, flush=True)
    rng = random.Random()
    n_failed = 0
    for _ in range(arguments.runs):
        run = draw_run(rng, arguments.min_workers, arguments.max_workers)
        if not run_suite(run, arguments.selection, arguments.log):
            n_failed += 1
    print(f"{arguments.runs - n_failed} of {arguments.runs} runs passed; see {arguments.log}")
    return int(n_failed > 0)


if __name__ == "__main__":
    sys.exit(main())
