"""Leaderboards with intervals: `rate` against a loop that fits RankRLS to each resample.

    python -m benchmarks.leaderboard [--size short|full] [--repeat N] [--cpu]

`rate` without intervals, with the jackknife and with 1,000 bootstrap resamples; the last and the
loop only up to 1,500 items. The loop draws the comparisons of a resample, and fits RankRLS with one
feature for each item; its first resamples are timed and the time scaled up. All three must give
ratings of the same spread, up to the randomness of the resamples. Shortest times; --cpu counts
processor seconds, for a machine that others use.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from typing import Any

import numpy as np

from benchmarks.measure import load_per_core
from benchmarks.problems import SIZES
from rankwise import PairGraph, RankRLS
from rankwise.leaderboard import rate

BOARDS = {  # items, comparisons
    "tiny": ((5, 200),),
    "short": ((60, 10_000), (60, 100_000), (300, 100_000)),
    "full": (
        (60, 10_000),
        (60, 100_000),
        (60, 1_000_000),
        (300, 100_000),
        (1_500, 100_000),
        (100_000, 1_000_000),
    ),
}
LOOP_LIMIT = 1_500  # items
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


def timed(graph: PairGraph, repeat: int, clock: Callable[[], float], **options: Any) -> Any:
    """Shortest time of a board, and the board."""
    seconds = []
    for _ in range(repeat):
        start = clock()
        board = rate(graph, alpha=ALPHA, **options)
        seconds.append(clock() - start)
    return min(seconds), board


def compare(
    n_items: int, n_comparisons: int, n_loops: int, repeat: int, clock: Callable[[], float]
) -> list[float | None]:
    """Times of a board without intervals, by the jackknife, by the bootstrap, and of the loop."""
    graph = battles(n_items, n_comparisons)
    plain, _ = timed(graph, repeat, clock, n_resamples=0)
    closed, board = timed(graph, repeat, clock)
    if n_items > LOOP_LIMIT:
        return [plain, closed, None, None]
    options = {"intervals": "bootstrap", "n_resamples": N_RESAMPLES}
    drawn, resampled = timed(graph, 1, clock, **options)
    start = clock()
    looped = loop(graph, n_loops)
    seconds = (clock() - start) * N_RESAMPLES / n_loops
    for errors in (board.spread.errors, resampled.samples.std(axis=0)):
        ratio = looped.std(axis=0).mean() / errors.mean()
        if not 0.8 < ratio < 1.25:
            raise RuntimeError(f"the resamples of the loop are {ratio:.2f} times as wide.")
    return [plain, closed, drawn, seconds]


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.leaderboard", description="Boards.")
    parser.add_argument("--size", choices=SIZES, default="short")
    parser.add_argument("--repeat", type=int, default=3, help="runs of each; 3 if not given")
    parser.add_argument("--cpu", action="store_true", help="processor seconds")
    options = parser.parse_args(arguments)
    clock = time.process_time if options.cpu else time.perf_counter
    print(f"size {options.size}, load per core {load_per_core():.1f}\n")
    print(
        f"| items | comparisons | no intervals, s | jackknife, s | {N_RESAMPLES} resamples, s ",
        end="",
    )
    print("| loop, s | loop/jackknife |\n|---|---|---|---|---|---|---|")
    for n_items, n_comparisons in BOARDS[options.size]:
        n_loops = N_LOOPS[options.size]
        times = compare(n_items, n_comparisons, n_loops, options.repeat, clock)
        ratio = None if times[3] is None else times[3] / times[1]
        cells = ["–" if value is None else f"{value:.3g}" for value in (*times, ratio)]
        print(f"| {n_items:,} | {n_comparisons:,} | " + " | ".join(cells) + " |", flush=True)


if __name__ == "__main__":
    main()
