"""The same model from every engine, and what adding up costs beside reading the file.

    python -m experiments.sums.engines --data DIR
    python -m experiments.sums.engines --rows 10000000 [--folder DIR]

First covtype (581,012 rows, 54 features; the rows of a wilderness area and a soil type are a
group, in the order of the file, so groups are cut everywhere): `SufficientStatistics` from PyArrow,
DuckDB, Polars,
Spark (where Java is there) and `rankwise.distributed`, beside `RankRLS.fit` in memory. Then made
rows of
50 features of single precision in sorted groups of 100, in ten Parquet files, which are deleted at
the end: seconds and peak memory of reading alone and of reading and adding up, each in a process of
its own and in one thread.
"""

import gzip
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from experiments.shared.command_line import find_data, make_parser, record
from experiments.shared.tables import print_notes, print_table
from rankwise import RankRLS, SufficientStatistics
from rankwise.datasets.parquet_batches import find_parquet_files, read_batches
from rankwise.distributed import train_parquet

ALPHA = 1e-3
BATCH = 100_000
ENGINES = ("pyarrow", "duckdb", "polars", "spark", "dask")


def all_batches(engine, folder, columns):
    """Batches of rows, by engines that hand them over one after the other."""
    return read_batches(find_parquet_files(str(folder)), [*columns, "y", "group"], engine)


def add(sums, table, columns):
    """Add a table of Arrow or Polars."""
    return sums.add(table.select(columns), table["y"], table["group"])


def from_spark(folder, columns):
    """One row of bytes from each partition, merged here."""
    from pyspark.sql import SparkSession

    builder = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false")
    spark = builder.config("spark.ui.showConsoleProgress", "false").getOrCreate()

    def add_up(batches):
        sums = SufficientStatistics()
        for batch in batches:
            add(sums, pa.Table.from_batches([batch]), columns)
        if sums.n_items:
            yield pa.RecordBatch.from_pydict({"sums": [sums.to_bytes()]})

    total = SufficientStatistics()
    for row in spark.read.parquet(str(folder)).mapInArrow(add_up, "sums binary").collect():
        total.merge(SufficientStatistics.from_bytes(row["sums"]))
    spark.stop()
    return total.solve([ALPHA]).model(0)


def from_dask(folder, columns):
    """`rankwise.distributed` with one thread."""
    import dask
    import dask.dataframe as dd

    from rankwise.distributed import RankRLS as LazyRankRLS

    with dask.config.set(scheduler="synchronous"):
        frame = dd.read_parquet(str(folder), split_row_groups=True)
        return LazyRankRLS(ALPHA).fit(frame[columns], frame["y"], frame["group"])


def peak_memory():
    """MiB of this process; getrusage would tell of the process that started it, too."""
    status = Path("/proc/self/status").read_text(encoding="utf-8")
    return int(re.search(r"VmHWM:\s+(\d+)", status)[1]) / 1024


def run(engine, folder, columns, what):
    """Coefficients, seconds and memory of one engine, in this process."""
    import rankwise.distributed  # noqa: F401  imports are not measured

    start = time.perf_counter()
    spent = time.process_time()
    model = None
    if what == "read":
        assert sum(len(table) for table in all_batches(engine, folder, columns))
    elif what == "train":
        model = train_parquet(str(folder), target="y", group="group", engine=engine).model
    elif engine in ("spark", "dask"):
        model = {"spark": from_spark, "dask": from_dask}[engine](folder, columns)
    else:
        sums = SufficientStatistics()
        for table in all_batches(engine, folder, columns):
            add(sums, table, columns)
        model = sums.solve([ALPHA]).model(0)
    return {
        "seconds": time.perf_counter() - start,
        "processor": time.process_time() - spent,
        "peak": peak_memory(),
        "coef": None if model is None else model.coef_.tolist(),
    }


def measure(engine, folder, columns, what):
    """The same in a process of its own; None if the engine or Java is missing."""
    if engine == "spark" and not shutil.which("java"):
        return None
    code = ("import json, sys; from experiments.sums.engines import run;"
            "print('RESULT' + json.dumps(run(*json.loads(sys.argv[1]))))")  # fmt: skip
    words = json.dumps([engine, str(folder), columns, what])
    environment = {"POLARS_MAX_THREADS": "1", "PYSPARK_PYTHON": sys.executable,
                   "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}  # fmt: skip
    command = [sys.executable, "-c", code, words]
    environment = {**os.environ, **environment}
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
    lines = [line for line in done.stdout.splitlines() if line.startswith("RESULT")]
    if not lines:
        print(f"{engine}: {done.stderr.strip().splitlines()[-1]:.200}")
        return None
    return json.loads(lines[0].removeprefix("RESULT"))


def write_covtype(data, folder):
    """Features, the class as score, and a group for each area and soil type."""
    (path,) = find_data(data, "covtype/covtype.csv.gz")
    with gzip.open(path, "rt") as file:
        values = np.loadtxt(file, delimiter=",", skiprows=1, dtype=np.float32)
    X = values[:, :-1].astype(np.float64)
    y = values[:, -1].astype(np.float64)
    X = (X - X.mean(axis=0)) / np.maximum(X.std(axis=0), 1e-9)
    group = np.argmax(values[:, 10:14], axis=1) * 100 + np.argmax(values[:, 14:54], axis=1)
    columns = [f"x{k}" for k in range(X.shape[1])]
    table = pa.table({**dict(zip(columns, X.T, strict=True)), "y": y, "group": group})
    for k in range(4):
        size = -(-len(table) // 4)
        pq.write_table(table.slice(k * size, size), folder / f"{k}.parquet", row_group_size=BATCH)
    return X, y, group, columns


def write_made(folder, n_rows, n_features=50):
    """Ten files of made rows, in sorted groups of 100."""
    w = np.random.default_rng(0).standard_normal(n_features).astype(np.float32)
    columns = [f"x{k}" for k in range(n_features)]
    for part in range(10):
        writer = None
        size = n_rows // 10
        for start in range(0, size, BATCH):
            rng = np.random.default_rng([part, start])
            n = min(BATCH, size - start)
            X = rng.standard_normal((n, n_features), dtype=np.float32)
            y = X @ w + rng.standard_normal(n, dtype=np.float32)
            group = (part * size + start + np.arange(n)) // 100
            table = pa.table({**dict(zip(columns, X.T, strict=True)), "y": y, "group": group})
            writer = writer or pq.ParquetWriter(folder / f"{part}.parquet", table.schema)
            writer.write_table(table)
        writer.close()
    return columns


def solve_centered(X, y, group):
    """Coefficients by the formula, from rows less the mean of their group: nothing cancels."""
    gram = 0.0
    moment = 0.0
    n_pairs = 0
    for name in np.unique(group):
        rows = group == name
        n = int(rows.sum())
        Z = X[rows] - X[rows].mean(axis=0)
        t = y[rows] - y[rows].mean()
        gram = gram + n * Z.T @ Z
        moment = moment + n * Z.T @ t
        n_pairs = n_pairs + n * (n - 1) // 2
    return np.linalg.solve(gram / n_pairs + ALPHA * np.eye(X.shape[1]), moment / n_pairs)


def difference(coef, exact):
    """The largest difference of a coefficient, as a share of the largest coefficient."""
    return f"{np.abs(np.asarray(coef) - exact).max() / np.abs(exact).max():.0e}"


def compare_covtype(data, folder):
    X, y, group, columns = write_covtype(data, folder)
    exact = solve_centered(X, y, group)
    start = time.perf_counter()
    spent = time.process_time()
    model = RankRLS(ALPHA).fit(X, y, group)
    ours = time.perf_counter() - start, time.process_time() - spent
    rows = [["RankRLS.fit, in memory", difference(model.coef_, exact), *ours, None]]
    for engine in ENGINES:
        found = measure(engine, folder, columns, "sums")
        if found:
            gap = difference(found["coef"], exact)
            spent = None if engine == "spark" else found["processor"]
            rows.append([engine, gap, found["seconds"], spent, round(found["peak"])])
    header = [
        "engine",
        "difference from\ncentered groups",
        "seconds",
        "of processor",
        "peak MiB",
    ]
    print_table(f"covtype, {len(y):,} rows in {len(np.unique(group))} groups", header, rows, 1)


def compare_made(folder, n_rows):
    columns = write_made(folder, n_rows)
    size = sum(path.stat().st_size for path in folder.iterdir()) / 1e9
    rows = []
    coefficients = []
    for engine in ("pyarrow", "duckdb", "polars"):
        read = measure(engine, folder, columns, "read")
        found = measure(engine, folder, columns, "train")
        if not read or not found:
            continue
        coefficients.append(found["coef"])
        gap = difference(found["coef"], np.array(coefficients[0]))
        ratio = found["processor"] / read["processor"]
        rows.append([engine, gap, read["seconds"], found["seconds"], read["processor"],
                     found["processor"], f"{ratio:.2f}", round(read["peak"]),
                     round(found["peak"])])  # fmt: skip
    header = ["engine", "difference\nfrom the first", "seconds\nread", "seconds\ntraining",
              "processor\nread", "processor\ntraining", "ratio", "peak MiB\nread",
              "peak MiB\ntraining"]  # fmt: skip
    print_table(f"{n_rows:,} made rows × 50, {size:.1f} GB of Parquet", header, rows, 1)


def main(arguments=None):
    parser = make_parser(__doc__)
    parser.add_argument("--rows", type=int, default=0, help="number of made rows, not covtype")
    parser.add_argument("--folder", type=Path, default=None, help="where the files are made")
    given = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory(dir=given.folder) as name:
        if given.rows:
            compare_made(Path(name), given.rows)
        else:
            compare_covtype(given.data, Path(name))
    print_notes(
        "differences are shares of the largest coefficient; 44 of covtype's 54 columns have one "
        "value in a group, so their coefficient is 0 but for rounding, and there the largest is",
        "peak memory is that of the process, about 250 MiB of it Python and its libraries",
        "the processor time of Spark is spent in other processes, and Java's start is in its time",
        "dask, one thread: its first pass looks for groups that are cut, and moves their rows",
    )


if __name__ == "__main__":
    record(main)
