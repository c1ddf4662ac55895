"""What a number must beat: ratios of two times of the same run.

    python -m benchmarks.bars [--size short|full] [--only PATTERN] [--repeat N]

Numerator and denominator take turns (A B A B ...) in this process; the ratio is that of the
shortest times (of the medians where a new process is started), that of the medians is shown beside
it. The peak of memory is what the work allocates in a first turn, which does not count for the
time. Only the full size is the size of the bar.
"""

from __future__ import annotations

import argparse
import math
import re
import statistics
import subprocess
import sys
import time
import tracemalloc
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import scipy.linalg
from sklearn.kernel_ridge import KernelRidge
from sklearn.linear_model import Ridge
from sklearn.metrics.pairwise import rbf_kernel

from benchmarks import hold_out, logistic, margin, ranking_pursuit, tables
from benchmarks.libraries.rankwise_rls import N_ALPHAS
from benchmarks.margin_problems import even_features, mixed_features
from benchmarks.measure import blas_threads, load_per_core
from benchmarks.problems import SIZES
from rankwise import RankRLS, RankSVM
from rankwise.metrics import average_precision, disagreement_error, ndcg
from rankwise.rows import row_products

Work = Callable[[], Any]
GAMMA = 0.1


class Bar(NamedTuple):
    """`numerator` should take at most `limit` times as long as `denominator`.

    With `growth` (by size, how many times as many rows the numerator has) it is the slope of log
    time over log rows that should be at most `limit`.
    """

    name: str
    limit: float
    prepare: Callable[[str], tuple[Work, Work]]
    by_median: bool = False
    growth: dict[str, float] | None = None


class Ratio(NamedTuple):
    """Shortest and median time of each, in seconds, and the peaks of what each allocates."""

    numerator: tuple[float, float]
    denominator: tuple[float, float]
    peak_mib: tuple[float, float] = (0.0, 0.0)

    @property
    def of_minima(self) -> float:
        return self.numerator[0] / self.denominator[0]

    @property
    def of_medians(self) -> float:
        return self.numerator[1] / self.denominator[1]

    def as_slope(self, growth: float) -> Ratio:
        """Logarithms instead of seconds, so that the ratios are slopes."""
        logs = math.log(self.of_minima), math.log(self.of_medians)
        return Ratio(logs, (math.log(growth), math.log(growth)))


def one_alpha(size: str) -> tuple[Work, Work]:
    X, y = _curved_list(size)
    alpha = 1e-4
    ridge = KernelRidge(alpha=alpha * (len(y) - 1) / 2, kernel="rbf", gamma=GAMMA)
    rls = RankRLS(alpha, kernel="rbf", gamma=GAMMA)
    return lambda: rls.fit(X, y), lambda: ridge.fit(X, y)


def all_alphas(size: str) -> tuple[Work, Work]:
    X, y = _curved_list(size)
    K = rbf_kernel(X, gamma=GAMMA)
    rls = RankRLS(kernel="rbf", gamma=GAMMA)
    alphas = np.logspace(-7, -1, N_ALPHAS)
    return lambda: rls.path(X, y, alphas=alphas), lambda: scipy.linalg.eigh(K)


def predict(size: str) -> tuple[Work, Work]:
    """Without the check of X for NaN, which is no part of the product."""
    n_rows = {"tiny": 300, "short": 100_000, "full": 1_000_000}[size]
    X = np.random.default_rng(0).standard_normal((n_rows, 136))
    w = X[0].copy()
    return lambda: row_products(X, w), lambda: X @ w


def one_alpha_with_groups(size: str) -> tuple[Work, Work]:
    n_items = {"tiny": 60, "short": 1000, "full": 3000}[size]
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((n_items, 10)), rng.standard_normal(n_items)
    groups = np.arange(n_items) // (n_items // 20 if size == "tiny" else 30)
    ridge = KernelRidge(alpha=0.1, kernel="rbf", gamma=GAMMA)
    rls = RankRLS(kernel="rbf", gamma=GAMMA)
    return lambda: rls.fit(X, y, groups), lambda: ridge.fit(X, y)


def many_outputs(size: str) -> tuple[Work, Work]:
    n_rows = {"tiny": 300, "short": 20_000, "full": 200_000}[size]
    rng = np.random.default_rng(0)
    X, Y = rng.standard_normal((n_rows, 46)), rng.standard_normal((n_rows, 100))
    groups = np.arange(n_rows) // 100
    return lambda: RankRLS().fit(X, Y, groups), lambda: Ridge().fit(X, Y)


def weighted(size: str) -> tuple[Work, Work]:
    """A primal fit of items with weights beside one of the same items without."""
    n_rows = {"tiny": 300, "short": 100_000, "full": 1_000_000}[size]
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((n_rows, 136)), rng.integers(0, 5, n_rows).astype(float)
    groups, weights = np.arange(n_rows) // 100, rng.exponential(size=n_rows)
    return lambda: RankRLS().fit(X, y, groups, weights), lambda: RankRLS().fit(X, y, groups)


def weighted_pairs(size: str) -> tuple[Work, Work]:
    """RankSVM of items with weights beside one of the same items without."""
    n_rows = {"tiny": 300, "short": 20_000, "full": 200_000}[size]
    rng = np.random.default_rng(0)
    X = rng.standard_normal((n_rows, 20))
    y, weights = X[:, 0] + rng.standard_normal(n_rows), rng.exponential(size=n_rows)
    return lambda: RankSVM().fit(X, y, None, weights), lambda: RankSVM().fit(X, y)


def primal(
    order: str, offset: float = 0.0, dtype: str = "float64"
) -> Callable[[str], tuple[Work, Work]]:
    def prepare(size: str) -> tuple[Work, Work]:
        n_rows, n_features = {
            "tiny": (300, 5),
            "short": (100_000, 136),
            "full": (1_000_000, 136),
        }[size]
        rng = np.random.default_rng(0)
        X = rng.standard_normal((n_rows, n_features))
        items = (X + offset).astype(dtype) if offset or dtype != "float64" else X
        y = rng.integers(0, 5, n_rows).astype(float)
        groups = {
            "one list": lambda: None,
            "groups in order": lambda: np.arange(n_rows) // 100,
            "groups shuffled": lambda: rng.permutation(n_rows) // 100,
            "groups of many sizes": lambda: np.sort(rng.integers(0, n_rows // 100, n_rows)),
        }[order]()
        return lambda: RankRLS().fit(items, y, groups), lambda: X.T @ X

    return prepare


def metrics(size: str) -> tuple[Work, Work]:
    n_rows = {"tiny": 300, "short": 100_000, "full": 1_000_000}[size]
    rng = np.random.default_rng(0)
    y = rng.integers(0, 5, n_rows).astype(float)
    scores = y + rng.standard_normal(n_rows)
    groups = np.arange(n_rows) // 100

    def three() -> None:
        ndcg(y, scores, groups, k=10)
        average_precision(y > 2, scores, groups)
        disagreement_error(y, scores, groups)

    return three, lambda: np.lexsort((scores, groups))


def importing(size: str) -> tuple[Work, Work]:
    def run(code: str) -> Work:
        return lambda: subprocess.run([sys.executable, "-c", code], check=True)

    return run("from rankwise import RankRLS"), run("import sklearn.linear_model")


BARS = [
    Bar("kernel RankRLS, one alpha / KernelRidge.fit", 1.1, one_alpha),
    Bar("kernel RankRLS, groups of 30 / KernelRidge.fit", 0.9, one_alpha_with_groups),
    Bar("kernel RankRLS, 31 alphas / one eigh", 0.6, all_alphas),
    Bar("leave-pair-out, 31 alphas / eigh + 31 products", 1.1, hold_out.leave_every_pair_out),
    Bar("leave-group-out, 31 alphas / one primal fit", 31.0, hold_out.leave_group_out),
    Bar("leave-group-out, 31 alphas / refitting", 1.0, hold_out.against_refitting),
    Bar("leave-group-out, p = 136, 2 threads / 1 thread", 1.0, hold_out.two_threads),
    Bar("leave-group-out, groups of 2 / groups of 100", 4.0, hold_out.tiny_groups),
    Bar("kernel RankRLSCV, 31 alphas / one eigh", 1.4, hold_out.kernel_search),
    Bar("pursuit of items / OMP on whitened data", 1.25, ranking_pursuit.items),
    Bar("pursuit of features / OMP on whitened data", 1.25, ranking_pursuit.features),
    Bar("primal fit, groups in order / X.T @ X", 1.4, primal("groups in order")),
    Bar("primal fit, groups shuffled / X.T @ X", 1.4, primal("groups shuffled")),
    Bar("primal fit, one list / X.T @ X", 1.4, primal("one list")),
    Bar("primal fit, groups of many sizes / X.T @ X", 1.8, primal("groups of many sizes")),
    Bar("primal fit, offset 1e6, in order / X.T @ X", 1.8, primal("groups in order", 1e6)),
    Bar("primal fit, float32, in order / X.T @ X", 1.8, primal("groups in order", 0.0, "float32")),
    Bar("primal fit, weights / no weights", 1.5, weighted),
    Bar("RankSVM, one list, weights / no weights", 2.0, weighted_pairs),
    Bar("primal fit, 100 outputs / Ridge.fit", 1.2, many_outputs),
    Bar("predict, one output / X @ w", 1.3, predict),
    Bar("RankSVM, mixed features / 2 products + argsort", 25.0, margin.certified(mixed_features)),
    Bar("RankSVM, even features / 2 products + argsort", 25.0, margin.certified(even_features)),
    Bar(
        "RankSVM, mixed features, slope over rows",
        1.15,
        margin.growing(mixed_features),
        growth=margin.GROWTH,
    ),
    Bar(
        "RankSVM, even features, slope over rows",
        1.15,
        margin.growing(even_features),
        growth=margin.GROWTH,
    ),
    Bar("RankLogistic in groups / LogisticRegression on pairs", 0.5, logistic.in_groups),
    Bar("RankLogistic, one list / LogisticRegression on pairs", 0.5, logistic.one_list),
    Bar("RankSVM in groups, hinge / squared hinge", 1.5, margin.hinge_in_groups),
    Bar("RankSVM in groups, float32 + 1e4 / float64", 1.5, margin.offset_in_groups),
    Bar("table, rows and columns out / 2 eighs, 31 products", 3.0, tables.complete),
    Bar("table with gaps, an iteration / its 2 products", 2.0, tables.incomplete),
    Bar("LabelRanker, 50 labels / Ridge", 1.3, tables.labels),
    Bar("NDCG@10 + MAP + disagreement / one lexsort", 5.0, metrics),
    Bar("import of RankRLS / import sklearn.linear_model", 1.1, importing, by_median=True),
]


def measure(numerator: Work, denominator: Work, repeat: int) -> Ratio:
    """Take turns, after one that measures memory."""
    peaks = peak_of(numerator), peak_of(denominator)
    seconds: tuple[list[float], list[float]] = ([], [])
    for _ in range(repeat):
        for times, work in zip(seconds, (numerator, denominator), strict=True):
            start = time.perf_counter()
            work()
            times.append(time.perf_counter() - start)
    return Ratio(*((min(times), statistics.median(times)) for times in seconds), peaks)


def peak_of(work: Work) -> float:
    """Most memory that the work holds at a time, in MiB; that of other processes is not seen."""
    tracemalloc.start()
    work()
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return peak / 2**20


def verdict(ratio: Ratio, bar: Bar) -> str:
    missing = (ratio.of_medians if bar.by_median else ratio.of_minima) - bar.limit
    return "met" if missing <= 0 else f"missed by {missing:.2f}"


def main(arguments: list[str] | None = None) -> None:
    options = _parse(arguments)
    head = ("work", "seconds", "against", "ratio", "median", "bar", "", "MiB", "against")
    line = "| {:<46} | {:>8} | {:>8} | {:>6} | {:>6} | {:>5} | {:<16} | {:>6} | {:>7} |"
    print(
        f"size {options.size}, {blas_threads()} BLAS threads, load per core {load_per_core():.1f}\n"
    )
    print(line.format(*head))
    print("|" + "|".join("-" * width for width in (48, 10, 10, 8, 8, 7, 18, 8, 9)) + "|")
    for bar in BARS:
        if options.only and not re.search(options.only, bar.name, re.IGNORECASE):
            continue
        ratio = measure(*bar.prepare(options.size), options.repeat)
        times = f"{ratio.numerator[0]:.3g}", f"{ratio.denominator[0]:.3g}"
        if bar.growth is not None:
            ratio = ratio.as_slope(bar.growth[options.size])
        ratios = f"{ratio.of_minima:.2f}", f"{ratio.of_medians:.2f}"
        peaks = (f"{peak:.3g}" for peak in ratio.peak_mib)
        row = (bar.name, *times, *ratios, bar.limit, verdict(ratio, bar), *peaks)
        print(line.format(*row), flush=True)


def _curved_list(size: str) -> tuple[np.ndarray, np.ndarray]:
    n_items = {"tiny": 50, "short": 1000, "full": 4000}[size]
    rng = np.random.default_rng(0)
    X = rng.standard_normal((n_items, 10))
    return X, np.sin(2 * X[:, 0]) + X[:, 1] * X[:, 2] + 0.3 * rng.standard_normal(n_items)


def _parse(arguments: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.bars", description="Ratios.")
    parser.add_argument("--size", choices=SIZES, default="short")
    parser.add_argument("--only", help="regular expression for the name of a bar")
    parser.add_argument("--repeat", type=int, default=5, help="turns; 5 if not given")
    return parser.parse_args(arguments)


if __name__ == "__main__":
    main()
