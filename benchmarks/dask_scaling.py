"""Weak and strong scaling of rankwise.dask on a LocalCluster of processes.

    python -m benchmarks.dask_scaling [--size short|full] [--repeat N]

The data are made and kept on the workers, one BLAS thread each; a time is that of `fit` alone, the
shortest of N. Strong scaling: the same rows on 1 and 2 workers; weak: rows for each worker.
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

from benchmarks.row import load_per_core
from rankwise.dask import RankRLS, RankSVM

GROUP, N_FEATURES = 100, 136
ROWS = {"tiny": 2_000, "short": 100_000, "full": 1_000_000}  # on one worker
WORKERS = (1, 2)
MODELS = {"RankRLS": RankRLS(1e-3), "RankSVM": RankSVM(1e-2)}


class Row(NamedTuple):
    """One line of the table."""

    model: str
    workers: int
    rows: int
    seconds: float


def make_data(client: Client, n_rows: int, n_blocks: int) -> tuple[Any, Any, Any]:
    """Groups of 100 rows; blocks hold whole groups."""
    size = n_rows // n_blocks // GROUP * GROUP
    chunks = (size,) * n_blocks
    X = da.random.default_rng(0).standard_normal((sum(chunks), N_FEATURES), chunks=(chunks, -1))
    w = np.random.default_rng(0).standard_normal(N_FEATURES) / np.sqrt(N_FEATURES)
    y = da.clip(da.round(2 + 1.5 * (X @ w)), 0, 4)
    groups = da.arange(sum(chunks), chunks=(chunks,)) // GROUP
    data: tuple[Any, Any, Any] = client.persist((X, y, groups))
    wait(data)
    return data


def measure(n_workers: int, n_rows: int, repeat: int) -> list[Row]:
    """Fit every model on a cluster of its own, eight blocks a worker."""
    options = {"threads_per_worker": 1, "processes": True, "dashboard_address": None}
    with LocalCluster(n_workers=n_workers, **options) as cluster, Client(cluster) as client:
        small = make_data(client, 20 * GROUP * n_workers, 2 * n_workers)
        data = make_data(client, n_rows, 8 * n_workers)
        found = []
        for name, model in MODELS.items():
            model.fit(*small)  # imports are not the fit
            seconds = []
            for _ in range(repeat):
                start = time.perf_counter()
                model.fit(*data)
                seconds.append(time.perf_counter() - start)
            found.append(Row(name, n_workers, data[0].shape[0], min(seconds)))
    return found


def table(strong: list[Row], weak: list[Row]) -> str:
    """Markdown table; the efficiency is that of the workers beyond the first."""
    lines = ["| model | workers | rows | s | efficiency |", "|---|---|---|---|---|"]
    for name in MODELS:
        one = next(row.seconds for row in strong if row.model == name and row.workers == 1)
        for kind, rows in (("strong", strong), ("weak", weak)):
            for row in rows:
                if row.model != name or (kind == "weak" and row.workers == 1):
                    continue
                ideal = one / row.workers if kind == "strong" else one
                lines.append(
                    f"| {name}, {kind} | {row.workers} | {row.rows:,} | {row.seconds:.3g} "
                    f"| {ideal / row.seconds:.2f} |"
                )
    return "\n".join(lines)


def main(arguments: list[str] | None = None) -> None:
    """Command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--size", choices=sorted(ROWS), default="short")
    parser.add_argument("--repeat", type=int, default=3)
    chosen = parser.parse_args(arguments)
    n_rows = ROWS[chosen.size]
    print(f"load {load_per_core():.2f} per core\n")
    strong = [row for k in WORKERS for row in measure(k, n_rows, chosen.repeat)]
    weak = [row for k in WORKERS[1:] for row in measure(k, k * n_rows, chosen.repeat)]
    print(table(strong, weak))


if __name__ == "__main__":
    main()
