"""Files, model files and the start of the command, beside what people use today."""

from __future__ import annotations

import functools
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow.parquet
from sklearn.datasets import load_svmlight_file

from benchmarks.row import Row, Work, Works
from rankwise import RankRLSCV
from rankwise.datasets import make_ranking, read_letor, read_ranking, write_letor
from rankwise.persistence import load, save

N_ROWS = {"tiny": 200, "short": 20_000, "full": 200_000}
FOLDER = tempfile.TemporaryDirectory(prefix="rankwise-bench-")


@functools.cache
def data_of(size: str) -> Any:
    """Made-up queries of 20 documents with 50 features."""
    return make_ranking(n_queries=N_ROWS[size] // 20, n_documents=20, n_features=50, random_state=0)


@functools.cache
def written(size: str, kind: str) -> Path:
    """A file of this kind with these data."""
    path = Path(FOLDER.name) / f"data-{size}.{kind}"
    X, y, groups = data_of(size)[:3]
    if kind == "txt":
        write_letor(path, X.round(4), y, groups)
        return path
    frame = pd.DataFrame(X.round(4), columns=[f"f{j}" for j in range(X.shape[1])])
    frame = frame.assign(y=y, qid=groups)
    if kind == "csv":
        frame.to_csv(path, index=False)
    else:
        frame.to_parquet(path)
    return path


def reading(kind: str, ours: Callable[..., Any], theirs: Callable[..., Any]) -> Any:
    """The same file read by both."""

    def prepare(size: str) -> Works:
        path = written(size, kind)
        return lambda: ours(path), lambda: theirs(path)

    return prepare


def model_file(is_read: bool) -> Callable[[str], tuple[Work, None]]:
    """A RankRLSCV written or read."""

    def prepare(size: str) -> tuple[Work, None]:
        X, y, groups = data_of("tiny")[:3]
        model = RankRLSCV().fit(X, y, groups)
        path = Path(FOLDER.name) / "model.rw"
        save(model, path)
        if is_read:
            return lambda: load(path), None
        return lambda: save(model, path), None

    return prepare


def process(*arguments: str) -> Callable[[str], tuple[Work, None]]:
    """A program that is started; tiny for the tests: only its version."""

    def prepare(size: str) -> tuple[Work, None]:
        words = [*arguments]
        if size == "tiny":
            words = ["--version"]
        command = [sys.executable, "-m", "rankwise", *words]
        options = {"check": True, "capture_output": True, "cwd": FOLDER.name}
        return lambda: subprocess.run(command, **options), None

    return prepare


TITLE = "Files and the command"
ROWS = [
    Row(
        TITLE, "CSV to a matrix, 2e5 × 50", "pandas", 1.2, reading("csv", read_ranking, pd.read_csv)
    ),
    Row(
        TITLE,
        "Parquet to a matrix, 2e5 × 50",
        "Arrow",
        1.5,
        reading("parquet", read_ranking, pyarrow.parquet.read_table),
    ),
    Row(
        TITLE,
        "LETOR to a matrix, 2e5 × 50",
        "scikit-learn",
        1.0,
        reading("txt", read_letor, lambda path: load_svmlight_file(str(path), query_id=True)),
    ),
    Row(TITLE, "save a RankRLSCV", "0.03 s", 1.0, model_file(False), limit=0.03),
    Row(TITLE, "load a RankRLSCV", "0.03 s", 1.0, model_file(True), limit=0.03),
    Row(TITLE, "`rankwise --help`", "1 s", 1.0, process("--help"), limit=1.0),
    Row(TITLE, "`rankwise demo`", "12 s", 1.0, process("demo"), limit=12.0),
]
