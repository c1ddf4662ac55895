"""AutoRanker on large made-up lists, beside LightGBM: seconds and memory in a process of its own.

    python -m benchmarks.large_lists auto|lightgbm ROWS FEATURES

One fit, with the default number of threads. The memory is the peak beyond that before the fit, as a
multiple of the size of X. 2,270,296 × 137 is the size of the data set with which LightGBM's
documentation compares its speed; its 500 trees are grown here with the defaults of this library.
"""

from __future__ import annotations

import json
import math
import re
import subprocess
import sys
import time
from collections.abc import Callable
from functools import cache
from pathlib import Path

from benchmarks.row import Row, Work
from benchmarks.trees import lightgbm, queries
from rankwise import AutoRanker

MILLION = {"tiny": (200, 4), "short": (5_000, 136), "full": (1_000_000, 136)}
PUBLISHED = {"tiny": (200, 4), "short": (5_000, 137), "full": (2_270_296, 137)}
N_TREES = {"tiny": 2, "short": 100, "full": 500}


def fit_here(learner: str, n_rows: int, n_features: int, n_trees: int) -> dict[str, float]:
    """Seconds of a fit in this process, and memory as a multiple of the size of X."""
    data = queries((n_rows, n_features))
    size = data[0].nbytes / 2**20
    before = peak_mib()
    start = time.perf_counter()
    if learner == "auto":
        AutoRanker().fit(*data)
    else:
        lightgbm(n_trees, *data)
    seconds = time.perf_counter() - start
    return {"seconds": seconds, "memory": (peak_mib() - before) / size}


def peak_mib() -> float:
    """Most memory of this process so far; getrusage would count the one that started it, too."""
    status = Path("/proc/self/status").read_text(encoding="utf-8")
    peak_line = re.search(r"VmHWM:\s+(\d+)", status)
    if peak_line is None:
        return math.nan
    return int(peak_line[1]) / 1024


@cache
def fit_alone(learner: str, n_rows: int, n_features: int, n_trees: int) -> dict[str, float]:
    """The same in a process of its own."""
    arguments = [learner, *map(str, (n_rows, n_features, n_trees))]
    command = [sys.executable, "-m", "benchmarks.large_lists", *arguments]
    process = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
    figures: dict[str, float] = json.loads(process.stdout.splitlines()[-1])
    return figures


def figure(learner: str, shapes: dict[str, tuple[int, int]], name: str, size: str) -> Work:
    """A work that returns seconds or memory of a fit; each fit runs once."""
    n_trees = N_TREES[size]
    if learner == "auto":
        n_trees = 0
    return lambda: fit_alone(learner, *shapes[size], n_trees)[name]


def against_limit(name: str) -> Callable[[str], tuple[Work, None]]:
    """AutoRanker on a million rows against a limit."""
    return lambda size: (figure("auto", MILLION, name, size), None)


def against_lightgbm(size: str) -> tuple[Work, Work]:
    """Seconds of AutoRanker and of LightGBM's trees."""
    return tuple(figure(learner, PUBLISHED, "seconds", size) for learner in ("auto", "lightgbm"))


TITLE = "AutoRanker on large lists"
ROWS = [
    Row(
        TITLE,
        "AutoRanker, 1e6 × 136, seconds",
        "300 s",
        1.0,
        against_limit("seconds"),
        limit=300.0,
        is_long=True,
        unit="s in all",
    ),
    Row(
        TITLE,
        "AutoRanker, 1e6 × 136, memory beyond X",
        "2.5 × X",
        1.0,
        against_limit("memory"),
        limit=2.5,
        is_long=True,
        unit="× X",
    ),
    Row(
        TITLE,
        "AutoRanker, 2.27e6 × 137",
        "LightGBM, 500 trees",
        math.inf,
        against_lightgbm,
        "lightgbm",
        is_long=True,
        unit="s in all",
    ),
]


if __name__ == "__main__":
    print(json.dumps(fit_here(sys.argv[1], *map(int, sys.argv[2:]))))
