"""Time and memory of CoRankRLS over the number of unscored rows, and over the number of views.

    python -m benchmarks.co_rank_rls [--size short|full] [--repeat N]

Prints two tables; the slope is that of log time over log rows, 1 if time is linear in the rows.
"""

from __future__ import annotations

import argparse
import time
import tracemalloc
from typing import NamedTuple

import numpy as np

from benchmarks.measure import blas_threads, load_per_core
from rankwise import CoRankRLS

N_SCORED, N_FEATURES, GROUP = 1000, 20, 20


class Size(NamedTuple):
    """Numbers of unscored rows and of views to go through, and the basis of a view."""

    rows: tuple[int, ...]
    views: tuple[int, ...]
    n_basis: int


SIZES = {
    "tiny": Size((200, 400), (1, 2), 5),
    "short": Size((10_000, 20_000, 40_000, 80_000), (1, 2, 4), 50),
    "full": Size((25_000, 50_000, 100_000, 200_000, 400_000), (1, 2, 4, 8), 100),
}


class Row(NamedTuple):
    """One line of a table: the shortest of some fits, and the peak of one more."""

    n_unscored: int
    n_views: int
    n_basis: int
    seconds: float
    peak_mib: float


def measure(n_unscored: int, n_views: int, n_basis: int, repeat: int) -> Row:
    """Fit Gaussian views on random bases."""
    rng = np.random.default_rng(0)
    m = N_SCORED + n_unscored
    X = rng.standard_normal((m, N_FEATURES))
    y = X @ rng.standard_normal(N_FEATURES)
    y[N_SCORED:] = np.nan
    groups = np.arange(m) // GROUP
    model = CoRankRLS(views=n_views, n_basis=n_basis, kernel="rbf", gamma=0.05, random_state=0)
    seconds = []
    for _ in range(repeat):
        start = time.perf_counter()
        model.fit(X, y, groups)
        seconds.append(time.perf_counter() - start)
    tracemalloc.start()
    model.fit(X, y, groups)
    peak = tracemalloc.get_traced_memory()[1] / 2**20
    tracemalloc.stop()
    return Row(n_unscored, n_views, n_basis, min(seconds), peak)


def slope(x: list[float], seconds: list[float]) -> float:
    """Exponent of x in the time, by least squares on logarithms."""
    return float(np.polyfit(np.log(x), np.log(seconds), 1)[0])


def table(rows: list[Row]) -> str:
    """Markdown table."""
    lines = ["| unscored rows | views | basis | s, shortest | peak MiB |", "|---|---|---|---|---|"]
    lines += [
        f"| {r.n_unscored:,} | {r.n_views} | {r.n_basis} | {r.seconds:.3g} | {r.peak_mib:.0f} |"
        for r in rows
    ]
    return "\n".join(lines)


def main(arguments: list[str] | None = None) -> None:
    """Command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--size", choices=sorted(SIZES), default="short")
    parser.add_argument("--repeat", type=int, default=3, help="fits of each row of the tables")
    chosen = parser.parse_args(arguments)
    size = SIZES[chosen.size]
    print(f"{blas_threads()} BLAS threads, load {load_per_core():.2f} per core\n")
    measure(size.rows[0], 2, size.n_basis, 1)  # imports and thread pools are not the fit

    by_rows = [measure(n, 2, size.n_basis, chosen.repeat) for n in size.rows]
    print(table(by_rows))
    exponent = slope([r.n_unscored for r in by_rows], [r.seconds for r in by_rows])
    print(f"\nslope of log time over log rows: {exponent:.2f} (bar 1.1)\n")

    by_views = [measure(size.rows[-2], k, size.n_basis, chosen.repeat) for k in size.views]
    print(table(by_views))


if __name__ == "__main__":
    main()
