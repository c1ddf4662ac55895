"""Leaderboards with 1,000 resamples: `rate` against a loop that fits RankRLS to each resample.

    python -m benchmarks.leaderboard [--size short|full] [--repeat N]

The loop draws the comparisons of a resample, and fits RankRLS with one feature for each item; its
first resamples are timed and the time scaled up. Both must give intervals of the same width, up to
the randomness of the resamples. Shortest times.
"""

from __future__ import annotations

import argparse
import time

import numpy as np

from benchmarks.measure import load_per_core
from benchmarks.problems import SIZES
from rankwise import PairGraph, RankRLS
from rankwise.leaderboard import rate

BOARDS = {  # items, comparisons
    "tiny": ((5, 200),),
    "short": ((60, 10_000), (60, 100_000), (300, 100_000)),
    "full": ((60, 10_000), (60, 100_000), (60, 1_000_000), (300, 100_000), (1_500, 100_000)),
}
N_RESAMPLES = 1000
N_LOOPS = {"tiny": 200, "short": 10, "full": 10}
ALPHA = 1e-4


def battles(n_items: int, n_comparisons: int) -> PairGraph:
    """Wins and ties between random items; the skills have a spread of one, noise as well."""
    rng = np.random.default_rng(0)
    skill = rng.standard_normal(n_items)
    i = rng.integers(n_items, size=n_comparisons)
    j = (i + 1 + rng.integers(n_items - 1, size=n_comparisons)) % n_items
    margin = skill[i] - skill[j] + rng.standard_normal(n_comparisons)
    won, lost = np.where(margin > 0, i, j), np.where(margin > 0, j, i)
    return PairGraph(won, lost, (np.abs(margin) > 0.3).astype(float), n_items=n_items)


def loop(graph: PairGraph, n_resamples: int) -> np.ndarray:
    """Ratings of resamples, fitted one after the other."""
    rng, identity = np.random.default_rng(0), np.eye(graph.n_items)
    ratings = []
    for _ in range(n_resamples):
        drawn = rng.integers(graph.n_pairs, size=graph.n_pairs)
        part = PairGraph(
            graph.winner[drawn],
            graph.loser[drawn],
            graph.magnitude[drawn],
            n_items=graph.n_items,
        )
        ratings.append(RankRLS(ALPHA).fit(identity, part).coef_)
    return np.array(ratings)


def compare(n_items: int, n_comparisons: int, size: str, repeat: int) -> tuple[float, ...]:
    """Times of a board without and with intervals, alpha chosen, and of the loop."""
    graph = battles(n_items, n_comparisons)
    times = []
    for n_resamples in (0, N_RESAMPLES):
        seconds = []
        for _ in range(repeat):
            start = time.perf_counter()
            rate(graph, alpha="auto", n_resamples=n_resamples)
            seconds.append(time.perf_counter() - start)
        times.append(min(seconds))
    start = time.perf_counter()
    looped = loop(graph, N_LOOPS[size])
    times.append((time.perf_counter() - start) * N_RESAMPLES / N_LOOPS[size])
    samples = rate(graph, alpha=ALPHA).samples
    spread = looped.std(axis=0).mean() / samples.std(axis=0).mean()
    if not 0.8 < spread < 1.25:
        raise RuntimeError(f"the resamples of the loop are {spread:.2f} times as wide.")
    return tuple(times)


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.leaderboard", description="Boards.")
    parser.add_argument("--size", choices=SIZES, default="short")
    parser.add_argument("--repeat", type=int, default=3, help="runs of each; 3 if not given")
    options = parser.parse_args(arguments)
    line = "| {:>6} | {:>11} | {:>13} | {:>18} | {:>7} | {:>9} |"
    print(f"size {options.size}, load per core {load_per_core():.1f}\n")
    print(
        line.format("items", "comparisons", "no samples, s", f"{N_RESAMPLES} resamples, s",
                    "loop, s", "loop/rate")
    )  # fmt: skip
    print("|" + "|".join("-" * width for width in (8, 13, 15, 20, 9, 11)) + "|")
    for n_items, n_comparisons in BOARDS[options.size]:
        plain, board, looped = compare(n_items, n_comparisons, options.size, options.repeat)
        cells = [f"{seconds:.3g}" for seconds in (plain, board, looped, looped / board)]
        print(line.format(n_items, n_comparisons, *cells), flush=True)


if __name__ == "__main__":
    main()
