"""Train RankRLS on a LETOR file that need not fit in memory; time and peak memory.

    python -m benchmarks.out_of_core [--size short|full | --gigabytes G] [--chunks ROWS]

Writes a file of G gigabytes (136 features, groups of 100 rows), streams it through
`read_letor(chunks=...)` into `RankRLS.partial_fit` in a process of its own, prints one line and
deletes the file.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.row import blas_threads, load_per_core
from rankwise import RankRLS
from rankwise.datasets import read_letor

N_FEATURES = 136
GROUP = 100
POOL = 5_000
GIGABYTES = {"tiny": 0.002, "short": 0.1, "full": 2.0}


def write_file(path: Path, n_bytes: float) -> int:
    """Groups drawn at random from a pool of rows; labels by a hidden model with noise.

    Returns the number of rows.
    """
    rng = np.random.default_rng(0)
    X = rng.standard_normal((POOL, N_FEATURES)).round(4)
    template = " ".join(f"{j}:%g" for j in range(1, N_FEATURES + 1))
    bodies = [(template % tuple(row)).encode() for row in X]
    scores = X @ rng.standard_normal(N_FEATURES) / np.sqrt(N_FEATURES)
    written = group = 0
    with open(path, "wb") as file:
        while written < n_bytes:
            group += 1
            drawn = rng.integers(0, POOL, GROUP)
            noisy = scores[drawn] + 0.3 * rng.standard_normal(GROUP)
            labels = np.clip(np.floor(2 + 1.5 * noisy), 0, 4).astype(int)
            pairs = zip(labels, drawn, strict=True)
            rows = b"".join(b"%d qid:%d %b\n" % (label, group, bodies[k]) for label, k in pairs)
            written += file.write(rows)
    return group * GROUP


def train(path: str, chunks: int) -> dict[str, Any]:
    """Stream the file through partial_fit; to be called in a fresh process."""
    before = _peak_mib()
    start = time.perf_counter()
    cpu = time.process_time()
    model = RankRLS(alpha=1e-3)
    n_chunks = 0
    for X, y, groups, *_ in read_letor(path, chunks=chunks, n_features=N_FEATURES):
        model.partial_fit(X, y, groups, whole_groups=True)
        n_chunks += 1
    return {
        "seconds": time.perf_counter() - start,
        "seconds_cpu": time.process_time() - cpu,
        "chunks": n_chunks,
        "rows": model.n_samples_seen_,
        "pairs": model.n_pairs_,
        "mib_before": before,
        "peak_mib": _peak_mib(),
        "coef": model.coef_.tolist(),
    }


def measure(gigabytes: float, chunks: int, folder: str | None) -> dict[str, Any]:
    """Write, train in another process, delete."""
    with tempfile.TemporaryDirectory(dir=folder) as place:
        path = Path(place) / "generated.txt"
        start = time.perf_counter()
        write_file(path, gigabytes * 1e9)
        writing = time.perf_counter() - start
        command = [sys.executable, "-m", "benchmarks.out_of_core", "--train", str(path)]
        process = subprocess.run(
            [*command, "--chunks", str(chunks)], check=True, stdout=subprocess.PIPE, text=True
        )
        figures: dict[str, Any] = json.loads(process.stdout)
        return {"gigabytes": os.path.getsize(path) / 1e9, "seconds_writing": writing, **figures}


def table(rows: list[dict[str, Any]]) -> str:
    """Markdown table."""
    heads = "file GB", "rows", "pairs", "chunks", "s writing", "s training", "s CPU", "MiB before"
    lines = [f"| {' | '.join(heads)} | peak MiB |", "|---" * (len(heads) + 1) + "|"]
    lines += [
        f"| {row['gigabytes']:.2f} | {row['rows']:,} | {row['pairs']:,} | {row['chunks']} "
        f"| {row['seconds_writing']:.0f} | {row['seconds']:.0f} | {row['seconds_cpu']:.0f} "
        f"| {row['mib_before']:.0f} | {row['peak_mib']:.0f} |"
        for row in rows
    ]
    return "\n".join(lines)


def _peak_mib() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def main(arguments: list[str] | None = None) -> None:
    """Command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--size", choices=sorted(GIGABYTES), default="short")
    parser.add_argument("--gigabytes", type=float, help="size of the file, instead of --size")
    parser.add_argument("--chunks", type=int, default=50_000, help="rows of a chunk")
    parser.add_argument(
        "--folder", help="where to write the file; the temporary folder if not given"
    )
    parser.add_argument("--train", help=argparse.SUPPRESS)
    chosen = parser.parse_args(arguments)
    if chosen.train:
        print(json.dumps(train(chosen.train, chosen.chunks)))
        return
    gigabytes = chosen.gigabytes or GIGABYTES[chosen.size]
    print(f"{blas_threads()} BLAS threads, load {load_per_core():.2f} per core\n")
    row = measure(gigabytes, chosen.chunks, chosen.folder)
    print(table([row]))


if __name__ == "__main__":
    main()
