"""Default threads against one thread, beside four programs that spin.

    python -m benchmarks.busy [--size short|full] [--only PATTERN] [--repeat N] [--spinners N]

Both take turns; the ratio of the shortest times should be at most 1.3. With ``--spinners 0`` the
same rows show what the default threads gain on an idle machine.
"""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

from benchmarks.measure import blas_threads, load_per_core
from benchmarks.problems import SIZES
from rankwise import AutoRanker, PairGraph, RankRLS, RankRLSCV, RankSVM
from rankwise.estimators.boosted_trees import BoostedTrees
from rankwise.leaderboard import rate

LIMIT = 1.3
SPIN = "import os; parent = os.getppid()\nwhile os.getppid() == parent: pass"
SHAPES = {"tiny": (60, 3, 10), "short": (2_000, 46, 20), "full": (5_000, 136, 50)}


def works(size: str) -> dict[str, Callable[[], Any]]:
    """What is measured, by name."""
    n_rows, n_columns, n_groups = SHAPES[size]
    rng = np.random.default_rng(0)
    X = rng.standard_normal((n_rows, n_columns))
    y = np.round(X[:, 0] + X[:, 1] * X[:, 2] + rng.standard_normal(n_rows))
    groups = np.arange(n_rows) * n_groups // n_rows
    few = slice(0, n_rows * 2 // 5)
    basis = {"kernel": "rbf", "n_basis": n_rows // 10, "random_state": 0}
    i, j = rng.integers(0, n_groups, (2, 20 * n_rows))
    battles = PairGraph(i[i != j], j[i != j], n_items=n_groups)
    return {
        "RankRLS": lambda: RankRLS().fit(X, y, groups),
        "RankRLSCV": lambda: RankRLSCV().fit(X, y, groups),
        "RankSVM": lambda: RankSVM().fit(X, y, groups),
        "basis search": lambda: RankRLSCV(**basis).fit(X, y, groups),
        "kernel search": lambda: RankRLSCV(kernel="rbf").fit(X[few], y[few], groups[few]),
        "boosted trees": lambda: BoostedTrees(50).fit(X, y, groups),
        "AutoRanker": lambda: AutoRanker().fit(X, y, groups),
        "rate": lambda: rate(battles),
    }


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


def measure(work: Callable[[], Any], repeat: int) -> tuple[float, float]:
    """Shortest seconds with the default threads and with one."""
    seconds: tuple[list[float], list[float]] = ([], [])
    for _ in range(repeat):
        for times, n_threads in zip(seconds, (None, 1), strict=True):
            with threadpool_limits(n_threads):
                start = time.perf_counter()
                work()
                times.append(time.perf_counter() - start)
    return min(seconds[0]), min(seconds[1])


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.busy", description=__doc__)
    parser.add_argument("--size", choices=SIZES, default="short")
    parser.add_argument("--only", default="", help="regular expression for the work")
    parser.add_argument("--repeat", type=int, default=3, help="turns; 3 if not given")
    parser.add_argument("--spinners", type=int, default=4, help="programs beside it")
    options = parser.parse_args(arguments)
    print(f"size {options.size}, {blas_threads()} threads, load per core {load_per_core():.1f}\n")
    print("| work | default, s | one thread, s | ratio | |\n|---|---|---|---|---|")
    with spinning(options.spinners):
        for name, work in works(options.size).items():
            if re.search(options.only, name):
                default, one = measure(work, options.repeat)
                verdict = "met" if default <= LIMIT * one else f"missed, bar {LIMIT}"
                ratio = f"{default / one:.2f}"
                print(f"| {name} | {default:.3g} | {one:.3g} | {ratio} | {verdict} |", flush=True)


if __name__ == "__main__":
    main()
