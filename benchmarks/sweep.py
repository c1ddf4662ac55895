"""The compiled sweep against its NumPy twin, and against a look at every pair.

    python -m benchmarks.sweep [--size short|full] [--repeat N]

Counts the violated pairs of each item of one list in which all scores differ, the scores sorted
before. The results must be equal. Shortest times; all pairs of more than 10,000 items run once.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable

import numpy as np

from benchmarks.measure import load_per_core
from benchmarks.problems import SIZES
from rankwise._compiled import IS_COMPILED, count_violated, order_sweep_twin

ROWS = {
    "tiny": (100,),
    "short": (1_000, 10_000, 100_000),
    "full": (1_000, 10_000, 100_000, 1_000_000),
}
MOST_FOR_ALL_PAIRS = {"tiny": 100, "short": 10_000, "full": 100_000}
BLOCK = 500
Counts = tuple[np.ndarray, np.ndarray]


def sorted_list(n_items: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Scores, levels and starts; a margin of one is a third of the spread of the scores."""
    rng = np.random.default_rng(0)
    utility = 3 * rng.standard_normal(n_items)
    scores = utility + rng.standard_normal(n_items)
    order = np.argsort(scores)
    level = np.argsort(np.argsort(utility))[order].astype(np.int32)
    return scores[order], level, np.zeros(1, np.intp)


def all_pairs(scores: np.ndarray, level: np.ndarray, starts: np.ndarray) -> Counts:
    """Blocks of items against all items: O(m²) time, O(m) memory. For one group."""
    lost, won = np.zeros((2, len(scores)), np.int64)
    for start in range(0, len(scores), BLOCK):
        rows = slice(start, start + BLOCK)
        higher = level[rows, None] > level
        violated = higher & (scores[rows, None] - scores < 1)
        won[rows] = violated.sum(axis=1)
        lost += violated.sum(axis=0)
    return lost, won


def compare(n_items: int, size: str, repeat: int) -> list[float]:
    """Times of the compiled sweep, the twin and, if there are not too many items, all pairs."""
    data = sorted_list(n_items)
    works: list[Callable[..., Counts]] = [count_violated, order_sweep_twin.count_violated]
    if n_items <= MOST_FOR_ALL_PAIRS[size]:
        works.append(all_pairs)
    expected = count_violated(*data)
    times = []
    for work in works:
        seconds = []
        for _ in range(1 if work is all_pairs and n_items > 10_000 else repeat):
            start = time.perf_counter()
            counts = work(*data)
            seconds.append(time.perf_counter() - start)
        if not np.array_equal(counts, expected):
            raise RuntimeError(f"{work} counts other pairs.")
        times.append(min(seconds))
    return times


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.sweep", description="Sweeps.")
    parser.add_argument("--size", choices=SIZES, default="short")
    parser.add_argument("--repeat", type=int, default=5, help="runs of each; 5 if not given")
    options = parser.parse_args(arguments)
    if not IS_COMPILED:
        raise SystemExit("rankwise was installed without its compiled module.")
    line = "| {:>8} | {:>11} | {:>10} | {:>12} | {:>15} | {:>20} |"
    print(f"size {options.size}, load per core {load_per_core():.1f}\n")
    print(
        line.format("rows", "compiled, s", "NumPy, s", "all pairs, s", "NumPy/compiled",
                    "all pairs/compiled")
    )  # fmt: skip
    print("|" + "|".join("-" * width for width in (10, 13, 12, 14, 17, 22)) + "|")
    for n_items in ROWS[options.size]:
        times = compare(n_items, options.size, options.repeat)
        cells = [f"{seconds:.3g}" for seconds in times]
        ratios = [f"{seconds / times[0]:.3g}" for seconds in times[1:]]
        if len(times) == 2:
            cells.append("")
            ratios.append("")
        print(line.format(n_items, *cells, *ratios), flush=True)


if __name__ == "__main__":
    main()
