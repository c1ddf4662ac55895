"""Weak and strong scaling of rankwise.distributed on a LocalCluster of processes,
beside one process.

    python -m benchmarks.dask_scaling [--size short|full] [--repeat N]

The data are made and kept on the workers, one BLAS thread each; a time is that of `fit` alone, the
shortest of N. Strong scaling: the same rows on 1 and 2 workers; weak: rows for each worker. 0
workers is `rankwise` itself, without Dask, in one process and one thread.
"""

from __future__ import annotations

import argparse
import os
import time
from typing import Any, NamedTuple

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import dask.array as da
import numpy as np
from distributed import Client, LocalCluster, wait

import rankwise
from benchmarks.row import load_per_core
from rankwise.distributed import RankRLS, RankSVM

GROUP = 100
N_FEATURES = 136
ROWS = {"tiny": 2_000, "short": 100_000, "full": 1_000_000}  # on one worker
WORKERS = (1, 2)
MODELS = {"RankRLS": RankRLS(1e-3), "RankSVM": RankSVM(1e-2)}


class Row(NamedTuple):
    """One line of the table."""

    model: str
    workers: int
    rows: int
    seconds: float


def make_data(n_rows: int, n_blocks: int) -> tuple[Any, Any, Any]:
    """Groups of 100 rows; blocks hold whole groups."""
    size = n_rows // n_blocks // GROUP * GROUP
    chunks = (size,) * n_blocks
    X = da.random.default_rng(0).standard_normal((sum(chunks), N_FEATURES), chunks=(chunks, -1))
    w = np.random.default_rng(0).standard_normal(N_FEATURES) / np.sqrt(N_FEATURES)
    y = da.clip(da.round(2 + 1.5 * (X @ w)), 0, 4)
    return X, y, da.arange(sum(chunks), chunks=(chunks,)) // GROUP


def measure(n_workers: int, n_rows: int, repeat: int) -> list[Row]:
    """Fit every model on a cluster of its own, eight blocks a worker."""
    options = {"threads_per_worker": 1, "processes": True, "dashboard_address": None}
    with LocalCluster(n_workers=n_workers, **options) as cluster, Client(cluster) as client:
        small, data = (
            client.persist(make_data(n, blocks * n_workers))
            for n, blocks in ((20 * GROUP * n_workers, 2), (n_rows, 8))
        )
        wait([small, data])
        for model in MODELS.values():
            model.fit(*small)  # imports are not the fit
        return [
            Row(name, n_workers, data[0].shape[0], shortest(model, data, repeat))
            for name, model in MODELS.items()
        ]


def measure_alone(n_rows: int, repeat: int) -> list[Row]:
    """The same rows in one process, without Dask."""
    data = da.compute(*make_data(n_rows, 8))
    return [
        Row(name, 0, len(data[0]), shortest(getattr(rankwise, name)(model.alpha), data, repeat))
        for name, model in MODELS.items()
    ]


def shortest(model: Any, data: tuple[Any, Any, Any], repeat: int) -> float:
    """Seconds of a fit."""
    seconds = []
    for _ in range(repeat):
        start = time.perf_counter()
        model.fit(*data)
        seconds.append(time.perf_counter() - start)
    return min(seconds)


def table(rows: list[Row]) -> str:
    """Markdown table; rows a second beside those of one process without Dask."""
    lines = ["| model | workers | rows | s | times as fast as one process |", "|---" * 5 + "|"]
    for name in MODELS:
        rows_of_model = [row for row in rows if row.model == name]
        alone = next(row.rows / row.seconds for row in rows_of_model if row.workers == 0)
        lines += [
            f"| {name} | {row.workers or 'one process'} | {row.rows:,} | {row.seconds:.3g} "
            f"| {row.rows / row.seconds / alone:.2f} |"
            for row in rows_of_model
        ]
    return "\n".join(lines)


def main(arguments: list[str] | None = None) -> None:
    """Command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--size", choices=sorted(ROWS), default="short")
    parser.add_argument("--repeat", type=int, default=3)
    chosen = parser.parse_args(arguments)
    n_rows = ROWS[chosen.size]
    print(f"load {load_per_core():.2f} per core\n", flush=True)
    rows = measure_alone(n_rows, chosen.repeat)
    for workers in WORKERS:
        rows += measure(workers, n_rows, chosen.repeat)
    print(table(rows + measure(WORKERS[-1], WORKERS[-1] * n_rows, chosen.repeat)))


if __name__ == "__main__":
    main()
