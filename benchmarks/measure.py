"""Measure one library on one problem; `benchmarks.run` does so in a process of its own.

    python -m benchmarks.measure PROBLEM LIBRARY SIZE REPEAT

prints one JSON object, a row of the table.
"""

from __future__ import annotations

import contextlib
import gc
import json
import os
import resource
import statistics
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
from threadpoolctl import threadpool_info

from benchmarks.libraries import LIBRARIES, Model
from benchmarks.margin_problems import MARGIN_PROBLEMS
from benchmarks.problems import PROBLEMS, Problem
from rankwise import ScoreGraph
from rankwise.losses import HingeLoss, SquaredHingeLoss
from rankwise.metrics import disagreement_error, ndcg

ALL_PROBLEMS = PROBLEMS | MARGIN_PROBLEMS
MARGIN_LOSSES = {"hinge": HingeLoss, "squared_hinge": SquaredHingeLoss}

COLUMNS = (
    "problem", "size", "rows", "features", "outputs", "library", "version", "threads", "load",
    "repeats", "seconds_min", "seconds_median", "peak_mib", "objective", "ndcg@10", "disagreement",
    "error",
)  # fmt: skip


def measure(problem_name: str, library_name: str, size: str, repeat: int) -> dict[str, Any]:
    """One row of the table."""
    library = LIBRARIES[library_name]
    library.prepare(
        ALL_PROBLEMS[problem_name]("tiny")
    )()  # imports and thread pools are not the fit
    problem = ALL_PROBLEMS[problem_name](size)
    work = library.prepare(problem)
    gc.collect()
    before = start_of_peak()
    seconds = []
    for _ in range(repeat):
        start = time.perf_counter()
        model = work()
        seconds.append(time.perf_counter() - start)
    return {
        "problem": problem_name,
        "size": size,
        "rows": problem.X.shape[0],
        "features": problem.X.shape[1],
        "outputs": problem.n_outputs,
        "library": library_name,
        "version": library.version,
        "threads": blas_threads(),
        "load": round(load_per_core(), 2),
        "repeats": repeat,
        "seconds_min": min(seconds),
        "seconds_median": statistics.median(seconds),
        "peak_mib": model.peak_mib or max(0.0, peak_mib() - before),
        "objective": objective(problem, model),
        **quality(problem, model),
        "error": "",
    }


def objective(problem: Problem, model: Model) -> float | None:
    """J(f) of RankSVM, or of RankRLS with the magnitude cost, with no pair of scores formed.

    For the squared loss ``Σ ω (δ − (f_i − f_j))² = eᵀ L e`` with ``e = y − f``; several outputs are
    summed.
    """
    if model.predict is None or model.squared_norm is None:
        return None
    f = np.asarray(model.predict(problem.X))
    penalty = problem.alpha * model.squared_norm()
    if not problem.has_scores:
        graph = problem.y
        residual = graph.magnitude - (f[graph.winner] - f[graph.loser])
        return float(graph.weight @ residual**2 / graph.total_weight + penalty)
    graph = ScoreGraph(problem.y, problem.groups)
    if problem.has_margin_loss:
        loss = MARGIN_LOSSES[problem.loss](graph)
        return float(loss.at(f).value + penalty)
    residual = problem.y - f.reshape(problem.y.shape)
    return float(np.sum(residual * graph.laplacian(residual)) / graph.total_weight + penalty)


def quality(problem: Problem, model: Model) -> dict[str, float | None]:
    """Metrics on the test part; NDCG only for relevance levels."""
    if model.predict is None:
        return {"ndcg@10": None, "disagreement": None}
    y, groups = problem.y_test, problem.groups_test
    f = np.asarray(model.predict(problem.X_test)).reshape(y.shape)
    return {
        "ndcg@10": float(ndcg(y, f, groups, k=10)) if problem.has_levels else None,
        "disagreement": float(np.mean(disagreement_error(y, f, groups))),
    }


def blas_threads() -> int:
    """Threads that BLAS may use here."""
    return max((library["num_threads"] for library in threadpool_info()), default=1)


def load_per_core() -> float:
    """Processes that want a core, for each core there is, in the last minute."""
    return os.getloadavg()[0] / (os.cpu_count() or 1)


def start_of_peak() -> float:
    """Forget the peak of loading the data, where the system can, and tell where the fit starts."""
    with contextlib.suppress(OSError):
        Path("/proc/self/clear_refs").write_text("5")
    return peak_mib()


def peak_mib() -> float:
    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit / 2**20


if __name__ == "__main__":
    name, library, size, repeat = sys.argv[1:]
    print(json.dumps(measure(name, library, size, int(repeat))))
