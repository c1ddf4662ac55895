"""Files, model files and the report page: time and memory beside the libraries people know.

    python -m benchmarks.surface [--size short|full] [--repeat N] [--only PATTERN]

Shortest and median times; the peak is that of the process beyond what it had before the work. All
readers of a file must give the same numbers, and all model files the same predictions.
"""

from __future__ import annotations

import argparse
import importlib.util
import re
import statistics
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import joblib
import numpy as np
import pandas as pd
import pyarrow.csv
import pyarrow.parquet
from sklearn.datasets import load_svmlight_file

from benchmarks.measure import load_per_core, peak_mib, start_of_peak
from benchmarks.out_of_core import write_file
from benchmarks.problems import SIZES
from rankwise import RankRLS
from rankwise.datasets import make_ranking, read_letor, read_ranking
from rankwise.persistence import load, save
from rankwise.report import report

N_ROWS = {"tiny": 200, "short": 20_000, "full": 200_000}
N_FEATURES = 50
LETOR_BYTES = {"tiny": 2e5, "short": 1e7, "full": 58e6}  # with 136 features


class Row(NamedTuple):
    """One work done by one library; `check` gives numbers that all libraries must agree on."""

    work: str
    library: str
    run: Callable[[], Any]
    check: Callable[[Any], Any] | None = None


def rows(folder: Path, size: str) -> Iterator[Row]:
    """All works on data of this size; the files are made on the way."""
    X, y, groups = make_ranking(
        n_queries=N_ROWS[size] // 20, n_documents=20, n_features=N_FEATURES, random_state=0
    )[:3]
    yield from _tables(folder, X.round(4), y, groups)
    yield from _letor(folder, LETOR_BYTES[size])
    yield from _models(folder, X, y, groups)
    yield Row("--help", "rankwise", _process("-m", "rankwise", "--help"))
    yield Row("--help", "import sklearn", _process("-c", "import sklearn"))
    parts = "import rankwise.persistence"
    yield Row("start of load", "rankwise", _process("-c", parts))


def _tables(folder: Path, X: np.ndarray, y: np.ndarray, groups: np.ndarray) -> Iterator[Row]:
    frame = pd.DataFrame(X, columns=[f"f{j}" for j in range(X.shape[1])]).assign(y=y, qid=groups)
    csv, parquet = folder / "data.csv", folder / "data.parquet"
    frame.to_csv(csv, index=False)
    frame.to_parquet(parquet)
    readers = {
        csv: (pyarrow.csv.read_csv, pd.read_csv),
        parquet: (pyarrow.parquet.read_table, pd.read_parquet),
    }
    for path, (arrow, pandas) in readers.items():
        name = f"read {path.suffix[1:]}"
        yield Row(name, "rankwise", lambda path=path: read_ranking(path), lambda d: d.X.sum())
        yield Row(
            name,
            "rankwise as_frame",
            lambda path=path: read_ranking(path, as_frame=True),
            lambda d: d.X.to_pandas().to_numpy().sum(),
        )
        yield Row(name, "pyarrow", lambda path=path, read=arrow: read(path))
        yield Row(
            name,
            "pandas",
            lambda path=path, read=pandas: read(path),
            lambda d: d.drop(columns=["y", "qid"]).to_numpy().sum(),
        )


def _letor(folder: Path, n_bytes: float) -> Iterator[Row]:
    path = folder / "data.txt"
    write_file(path, n_bytes)
    yield Row("read LETOR", "rankwise", lambda: read_letor(path), lambda d: d.X.sum())
    if importlib.util.find_spec("xgboost"):
        yield Row("read LETOR", "XGBoost (float32)", lambda: _dmatrix(path))
    yield Row(
        "read LETOR",
        "scikit-learn",
        lambda: load_svmlight_file(str(path), query_id=True),
        lambda d: d[0].sum(),
    )


def _dmatrix(path: Path) -> Any:
    import xgboost

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # text files are deprecated there
        return xgboost.DMatrix(f"{path}?format=libsvm")


def _models(folder: Path, X: np.ndarray, y: np.ndarray, groups: np.ndarray) -> Iterator[Row]:
    model = RankRLS(kernel="rbf", n_basis=min(500, len(X) // 2), random_state=0).fit(X, y, groups)
    ours, theirs = folder / "model.rw", folder / "model.joblib"
    save(model, ours)
    joblib.dump(model, theirs)
    yield Row("save a model", "rankwise", lambda: save(model, ours))
    yield Row("save a model", "joblib (pickle)", lambda: joblib.dump(model, theirs))
    sum_of_scores = lambda loaded: loaded.predict(X[:100]).sum()  # noqa: E731
    yield Row("load a model", "rankwise", lambda: load(ours), sum_of_scores)
    yield Row("load a model", "joblib (pickle)", lambda: joblib.load(theirs), sum_of_scores)
    linear = RankRLS().fit(X, y, groups)
    page = folder / "report.html"
    yield Row("report page", "rankwise", lambda: report(linear, X, y, groups).save(page))


def _process(*arguments: str) -> Callable[[], Any]:
    return lambda: subprocess.run([sys.executable, *arguments], check=True, capture_output=True)


def measure(row: Row, repeat: int) -> tuple[float, float, float, Any]:
    """Shortest and median time in seconds, peak in MiB, and the number to agree on."""
    seconds = []
    before = start_of_peak()
    for _ in range(repeat):
        start = time.perf_counter()
        result = row.run()
        seconds.append(time.perf_counter() - start)
    peak = max(0.0, peak_mib() - before)
    number = None if row.check is None else float(row.check(result))
    return min(seconds), statistics.median(seconds), peak, number


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--size", choices=SIZES, default="short")
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--only", default="", help="regular expression: works")
    options = parser.parse_args(arguments)
    size = f"{N_ROWS[options.size]:,} × {N_FEATURES}"
    print(f"{size}, load {load_per_core():.1f} per core\n")
    print("| work | library | s, shortest | s, median | peak MiB |\n|---|---|---|---|---|")
    agreed: dict[str, float] = {}
    with tempfile.TemporaryDirectory() as folder:
        for row in rows(Path(folder), options.size):
            if not re.search(options.only, row.work):
                continue
            shortest, median, peak, number = measure(row, options.repeat)
            if number is not None and not np.isclose(
                agreed.setdefault(row.work, number), number, rtol=1e-9
            ):
                raise SystemExit(f"{row.library} disagrees about {row.work}: {number}")
            print(f"| {row.work} | {row.library} | {shortest:.3g} | {median:.3g} | {peak:.0f} |")


if __name__ == "__main__":
    main()
