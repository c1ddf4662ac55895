"""The same model from every engine, and what adding up costs beside reading the file.

    python -m experiments.sums.engines --data DIR
    python -m experiments.sums.engines --rows 10000000 [--folder DIR]

First covtype (581,012 rows, 54 features; the rows of a wilderness area and a soil type are a
group, in the order of the file, so groups are cut everywhere): `SufficientStatistics` from PyArrow,
DuckDB, Polars, Spark (where Java is there) and `rankwise.distributed`, beside `RankRLS.fit` in
memory. Then made rows of 50 features of single precision in sorted groups of 100, in ten Parquet
files, which are deleted at the end: seconds and peak memory of reading alone and of reading and
adding up, each in a process of its own and in one thread. Differences are shares of the largest
coefficient.
"""

import gzip
import json
import math
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


def read_all(engine, folder, columns):
    """Read all rows, and drop them."""
    n_rows = sum(len(table) for table in all_batches(engine, folder, columns))
    assert n_rows


def from_batches(engine, folder, columns):
    """The model of `SufficientStatistics` of all batches."""
    sums = SufficientStatistics()
    for table in all_batches(engine, folder, columns):
        add(sums, table, columns)
    return sums.solve([ALPHA]).model(0)


def run(engine, folder, columns, task):
    """Coefficients, seconds and memory of one engine, in this process.

    The task is to "read" all rows, to "train" by `train_parquet`, or to add up the "sums".
    """
    import rankwise.distributed  # noqa: F401  imports are not measured

    start = time.perf_counter()
    processor_start = time.process_time()
    coef = None
    if task == "read":
        read_all(engine, folder, columns)
    elif task == "train":
        training = train_parquet(str(folder), target="y", group="group", engine=engine)
        coef = training.model.coef_.tolist()
    elif engine == "spark":
        coef = from_spark(folder, columns).coef_.tolist()
    elif engine == "dask":
        coef = from_dask(folder, columns).coef_.tolist()
    else:
        coef = from_batches(engine, folder, columns).coef_.tolist()
    return {
        "seconds": time.perf_counter() - start,
        "processor": time.process_time() - processor_start,
        "peak": peak_memory(),
        "coef": coef,
    }


def measure(engine, folder, columns, task):
    """The same in a process of its own; None if the engine or Java is missing."""
    if engine == "spark" and not shutil.which("java"):
        return None
    code = (
        "import json, sys; from experiments.sums.engines import run;"
        "print('RESULT' + json.dumps(run(*json.loads(sys.argv[1]))))"
    )
    arguments = json.dumps([engine, str(folder), columns, task])
    environment = {
        **os.environ,
        "POLARS_MAX_THREADS": "1",
        "PYSPARK_PYTHON": sys.executable,
        "OMP_NUM_THREADS": "1",
        "OPENBLAS_NUM_THREADS": "1",
    }
    process = subprocess.run(
        [sys.executable, "-c", code, arguments],
        capture_output=True,
        text=True,
        check=False,
        env=environment,
    )
    lines = [line for line in process.stdout.splitlines() if line.startswith("RESULT")]
    if not lines:
        print(f"{engine}: {process.stderr.strip().splitlines()[-1]:.200}")
        return None
    return json.loads(lines[0].removeprefix("RESULT"))


def write_covtype(data, folder):
    """Features, the class as score, and a group for each area and soil type."""
    (path,) = find_data(data, "covtype/covtype.csv.gz")
    with gzip.open(path, "rt") as file:
        values = np.loadtxt(file, delimiter=",", skiprows=1, dtype=np.float32)
    X = values[:, :-1].astype(np.float64)
    X = (X - X.mean(axis=0)) / np.maximum(X.std(axis=0), 1e-9)
    y = values[:, -1].astype(np.float64)
    area = np.argmax(values[:, 10:14], axis=1)
    soil_type = np.argmax(values[:, 14:54], axis=1)
    group = area * 100 + soil_type

    columns = [f"x{k}" for k in range(X.shape[1])]
    table = pa.table({**dict(zip(columns, X.T, strict=True)), "y": y, "group": group})
    rows_per_file = math.ceil(len(table) / 4)
    for k in range(4):
        rows = table.slice(k * rows_per_file, rows_per_file)
        pq.write_table(rows, folder / f"{k}.parquet", row_group_size=BATCH)
    return X, y, group, columns


def write_made(folder, n_rows, n_features=50):
    """Ten files of made rows, in sorted groups of 100."""
    coef = np.random.default_rng(0).standard_normal(n_features).astype(np.float32)
    columns = [f"x{k}" for k in range(n_features)]
    rows_per_file = n_rows // 10
    for number in range(10):
        writer = None
        for start in range(0, rows_per_file, BATCH):
            rng = np.random.default_rng([number, start])
            n = min(BATCH, rows_per_file - start)
            X = rng.standard_normal((n, n_features), dtype=np.float32)
            y = X @ coef + rng.standard_normal(n, dtype=np.float32)
            group = (number * rows_per_file + start + np.arange(n)) // 100
            table = pa.table({**dict(zip(columns, X.T, strict=True)), "y": y, "group": group})
            if writer is None:
                writer = pq.ParquetWriter(folder / f"{number}.parquet", table.schema)
            writer.write_table(table)
        writer.close()
    return columns


def solve_centered(X, y, group):
    """Coefficients by the formula, from rows less the mean of their group: nothing cancels."""
    gram = 0.0
    moment = 0.0
    n_pairs = 0
    for name in np.unique(group):
        in_group = group == name
        n = int(in_group.sum())
        centered_X = X[in_group] - X[in_group].mean(axis=0)
        centered_y = y[in_group] - y[in_group].mean()
        gram = gram + n * centered_X.T @ centered_X
        moment = moment + n * centered_X.T @ centered_y
        n_pairs = n_pairs + n * (n - 1) // 2
    ridge = ALPHA * np.eye(X.shape[1])
    return np.linalg.solve(gram / n_pairs + ridge, moment / n_pairs)


def difference(coef, exact):
    """The largest difference of a coefficient, as a share of the largest coefficient."""
    largest_difference = np.abs(np.asarray(coef) - exact).max()
    return f"{largest_difference / np.abs(exact).max():.0e}"


def compare_covtype(data, folder):
    """The table of covtype: each engine beside `RankRLS.fit`."""
    X, y, group, columns = write_covtype(data, folder)
    exact = solve_centered(X, y, group)
    start = time.perf_counter()
    processor_start = time.process_time()
    model = RankRLS(ALPHA).fit(X, y, group)
    seconds = time.perf_counter() - start
    processor_seconds = time.process_time() - processor_start
    rows = [
        [
            "RankRLS.fit, in memory",
            difference(model.coef_, exact),
            seconds,
            processor_seconds,
            None,
        ]
    ]
    for engine in ENGINES:
        figures = measure(engine, folder, columns, "sums")
        if figures is None:
            continue
        processor_seconds = figures["processor"]
        if engine == "spark":  # its work is done in other processes
            processor_seconds = None
        rows.append(
            [
                engine,
                difference(figures["coef"], exact),
                figures["seconds"],
                processor_seconds,
                round(figures["peak"]),
            ]
        )
    header = [
        "engine",
        "difference from\ncentered groups",
        "seconds",
        "of processor",
        "peak MiB",
    ]
    print_table(f"covtype, {len(y):,} rows in {len(np.unique(group))} groups", header, rows, 1)


def compare_made(folder, n_rows):
    """The table of made rows: reading alone beside training."""
    columns = write_made(folder, n_rows)
    gigabytes = sum(path.stat().st_size for path in folder.iterdir()) / 1e9
    rows = []
    first_coef = None
    for engine in ("pyarrow", "duckdb", "polars"):
        reading = measure(engine, folder, columns, "read")
        training = measure(engine, folder, columns, "train")
        if reading is None or training is None:
            continue
        if first_coef is None:
            first_coef = np.array(training["coef"])
        ratio = training["processor"] / reading["processor"]
        rows.append(
            [
                engine,
                difference(training["coef"], first_coef),
                reading["seconds"],
                training["seconds"],
                reading["processor"],
                training["processor"],
                f"{ratio:.2f}",
                round(reading["peak"]),
                round(training["peak"]),
            ]
        )
    header = ["engine", "difference\nfrom the first", "seconds\nread", "seconds\ntraining",
              "processor\nread", "processor\ntraining", "ratio", "peak MiB\nread",
              "peak MiB\ntraining"]  # fmt: skip
    print_table(f"{n_rows:,} made rows × 50, {gigabytes:.1f} GB of Parquet", header, rows, 1)


def main(arguments=None):
    """Print the table of covtype, or of made rows."""
    parser = make_parser(__doc__)
    parser.add_argument("--rows", type=int, default=0, help="number of made rows, not covtype")
    parser.add_argument("--folder", type=Path, default=None, help="where the files are made")
    options = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory(dir=options.folder) as name:
        if options.rows:
            compare_made(Path(name), options.rows)
        else:
            compare_covtype(options.data, Path(name))
    print_notes(
        "differences are shares of the largest coefficient; 44 of covtype's 54 columns have one "
        "value in a group, so their coefficient is 0 but for rounding, and there the largest is",
        "peak memory is that of the process, about 250 MiB of it Python and its libraries",
        "the processor time of Spark is spent in other processes, and Java's start is in its time",
        "dask, one thread: its first pass looks for groups that are cut, and moves their rows",
    )


if __name__ == "__main__":
    record(main)
