"""Store the results of rankwise on a few thousand random problems, to compare two versions.

While the package is restructured, its results must not change. This program runs random problems
of the whole public interface and writes what they give as named arrays; `compare` lists where two
such files differ. Run it on an old commit and on the working tree, in two processes::

    git worktree add /tmp/old COMMIT
    cp src/rankwise/_compiled/*.so /tmp/old/src/rankwise/_compiled/
    PYTHONPATH=/tmp/old/src python -m tests.baseline.collect old.npz
    PYTHONPATH=$PWD/src python -m tests.baseline.collect new.npz
    python -m tests.baseline.compare old.npz new.npz

Copying the compiled modules works while the Cython sources of the two commits are the same; else
build the old commit in its own environment (``pip install -e /tmp/old``).

Problems use the names of version 0.4; `names` maps them to older ones. A problem that raises is
stored as the type of its exception. The seed of a problem is its area and number, so that areas and
problems can be added without a change of the others.
"""

from __future__ import annotations

import os

if __name__ == "__main__":  # before NumPy is imported: sums depend on the number of threads
    for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
        os.environ[variable] = "1"

import argparse
import collections
import sys
import time
import traceback
import warnings
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np

from tests.baseline import boards, command, dyadic, evaluation, rankers, searches, uncertainty
from tests.baseline.record import Record

Problem = Callable[[np.random.Generator, Record], None]

AREAS: dict[str, tuple[Problem, int]] = (
    rankers.AREAS
    | searches.AREAS
    | dyadic.AREAS
    | evaluation.AREAS
    | uncertainty.AREAS
    | boards.AREAS
    | command.AREAS
)
QUICK_SHARE = 0.15
LARGEST_ERROR_SHARE = 0.05


def problem_numbers(n_problems: int, quick: bool) -> range:
    """Return the numbers of the problems of an area; the quick subset has the first ones."""
    if quick:
        return range(max(1, round(QUICK_SHARE * n_problems)))
    return range(n_problems)


def run_problem(area: str, number: int, problem: Problem) -> tuple[Record, Exception | None]:
    """Run one problem with its own random numbers; an exception is stored as its type."""
    rng = np.random.default_rng([zlib.crc32(area.encode()), number])
    record = Record(f"{area}/{number:04d}")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            problem(rng, record)
    except Exception as error:
        record.add("error", type(error).__name__)
        record.describe(error)
        return record, error
    return record, None


def run_areas(names: list[str], quick: bool, verbose: bool) -> Iterator[tuple[str, Record, bool]]:
    """Run the problems of some areas; yields the area, the record and whether it failed."""
    for area in names:
        problem, n_problems = AREAS[area]
        for number in problem_numbers(n_problems, quick):
            record, error = run_problem(area, number, problem)
            if error is not None and verbose:
                print(f"{record.problem}: {error!r}", file=sys.stderr)
                traceback.print_exception(error, limit=-2, file=sys.stderr)
            yield area, record, error is not None


def collect(path: Path, names: list[str], *, quick: bool = False, verbose: bool = False) -> int:
    """Run problems, write their results to an .npz file, and return the exit status."""
    arrays: dict[str, np.ndarray] = {}
    n_problems: collections.Counter[str] = collections.Counter()
    n_errors: collections.Counter[str] = collections.Counter()
    seconds: collections.Counter[str] = collections.Counter()
    start = time.process_time()
    for area, record, failed in run_areas(names, quick, verbose):
        arrays |= record.arrays
        n_problems[area] += 1
        n_errors[area] += failed
        now = time.process_time()
        seconds[area] += now - start
        start = now
    with open(path, "wb") as file:
        np.savez(file, **arrays)
    print(f"{'area':<28} problems  errors  seconds")
    for area in names:
        print(f"{area:<28} {n_problems[area]:8}  {n_errors[area]:6}  {seconds[area]:7.1f}")
    n_all = n_problems.total()
    n_failed = n_errors.total()
    print(f"{'all':<28} {n_all:8}  {n_failed:6}  {seconds.total():7.1f}")
    if n_failed > LARGEST_ERROR_SHARE * n_all:
        print(f"{n_failed} of {n_all} problems raised an error; --verbose prints them.")
        return 1
    return 0


def main() -> int:
    """Run the command line."""
    parser = argparse.ArgumentParser(description="Store results of rankwise on random problems.")
    parser.add_argument("path", type=Path, help="the .npz file to write")
    parser.add_argument("--quick", action="store_true", help="run a small part of the problems")
    parser.add_argument("--area", action="append", choices=AREAS, help="run one area; repeatable")
    parser.add_argument("--verbose", action="store_true", help="print the errors of problems")
    options = parser.parse_args()
    names = options.area or list(AREAS)
    return collect(options.path, names, quick=options.quick, verbose=options.verbose)


if __name__ == "__main__":
    sys.exit(main())
