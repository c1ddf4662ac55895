"""RankRLS and RankRLSCV on Dask workers, each a process: time and memory per worker.

    python -m experiments.sums.clusters [--rows 10000000] [--workers 3]

Rows of 50 features of single precision, in groups of 100 and blocks of 100,000, are made on the
workers when they are needed and dropped afterwards, so 100,000,000 rows (20 GB) need no disk. The
blocks are cut in the middle of groups. The coefficients are compared with `SufficientStatistics` of
the same rows, added up in one process.
"""

import time

import dask
import dask.array as da
import numpy as np
from distributed import Client, LocalCluster

from experiments.shared.command_line import make_parser, record
from experiments.shared.tables import print_notes, print_table
from experiments.sums.engines import difference, peak_memory
from rankwise import SufficientStatistics
from rankwise.distributed import RankRLS, RankRLSCV

BLOCK = 100_000
GROUP = 100
N_FEATURES = 50
SHIFT = GROUP // 2  # rows by which blocks and groups are shifted
ALPHA = 1e-3


def rows_of_block(number):
    """Features of a block."""
    rng = np.random.default_rng(number)
    return rng.standard_normal((BLOCK, N_FEATURES), dtype=np.float32)


def scores_of_block(number):
    """Scores of a block."""
    coef = np.random.default_rng(0).standard_normal(N_FEATURES)
    noise = np.random.default_rng([number, 1]).standard_normal(BLOCK)
    return rows_of_block(number) @ coef + noise


def groups_of_block(number):
    """Group labels of a block."""
    return (number * BLOCK + SHIFT + np.arange(BLOCK)) // GROUP


def collection(function, n_blocks, dtype, *shape):
    """A Dask array of the values of a function of the number of a block."""
    values = dask.delayed(function)
    blocks = [da.from_delayed(values(k), (BLOCK, *shape), dtype) for k in range(n_blocks)]
    return da.concatenate(blocks)


def solve_alone(n_blocks):
    """Sums and coefficients of the same rows in this process, and its seconds."""
    start = time.perf_counter()
    sums = SufficientStatistics()
    for k in range(n_blocks):
        sums.add(rows_of_block(k), scores_of_block(k), groups_of_block(k), is_sorted=True)
    path = sums.solve([ALPHA])
    return sums, path.coefficients[0].ravel(), time.perf_counter() - start


def fit_on_cluster(model, data, n_workers):
    """Fit on new workers; seconds, and MiB of the largest worker before and at its peak."""
    options = {"threads_per_worker": 1, "processes": True, "dashboard_address": None}
    with LocalCluster(n_workers=n_workers, **options) as cluster, Client(cluster) as client:
        RankRLS(ALPHA).fit(*(array[: 2 * BLOCK] for array in data))  # imports are not the fit
        memory_before = max(client.run(peak_memory).values())
        start = time.perf_counter()
        model.fit(*data)
        seconds = time.perf_counter() - start
        peak = max(client.run(peak_memory).values())
    return seconds, memory_before, peak


def main(arguments=None):
    """Print one table."""
    parser = make_parser(__doc__)
    parser.add_argument("--rows", type=int, default=10_000_000)
    parser.add_argument("--workers", type=int, default=3)
    options = parser.parse_args(arguments)
    n_blocks = options.rows // BLOCK
    sums, expected_coef, seconds = solve_alone(n_blocks)
    rows = [["SufficientStatistics, one process", None, seconds, None, None, None]]
    data = (
        collection(rows_of_block, n_blocks, np.float32, N_FEATURES),
        collection(scores_of_block, n_blocks, np.float64),
        collection(groups_of_block, n_blocks, np.int64),
    )
    for model in (RankRLS(ALPHA), RankRLSCV()):
        seconds, memory_before, peak = fit_on_cluster(model, data, options.workers)
        title = f"{type(model).__name__}, {options.workers} workers"
        alpha = ALPHA
        if isinstance(model, RankRLSCV):
            alpha = model.alpha_
            expected_coef = sums.solve([alpha]).coefficients[0].ravel()
            model = model.best_estimator_
        rows.append(
            [
                title,
                f"{alpha:.3g}",
                seconds,
                round(memory_before),
                round(peak),
                difference(model.coef_, expected_coef),
            ]
        )
    header = ["", "alpha", "seconds", "MiB of a worker\nbefore", "MiB of a worker\nat its peak",
              "difference from\none process"]  # fmt: skip
    title = f"{n_blocks * BLOCK:,} rows × {N_FEATURES} in {n_blocks:,} blocks"
    print_table(title, header, rows, 1)
    print_notes(
        "seconds include making the rows; the memory is that of the worker with the most",
        "every block is cut in the middle of a group; RankRLSCV holds out 1,000 of the groups",
    )


if __name__ == "__main__":
    record(main)
