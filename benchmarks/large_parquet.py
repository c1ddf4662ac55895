"""RankRLS from Parquet files, alpha selected by leave-group-out, beside reading the files.

Both works read all columns with the same engine, each in a process of its own; their figures are
seconds of processor time. The files are made once and deleted when this process ends.
"""

from __future__ import annotations

import atexit
import tempfile
from collections.abc import Callable
from functools import cache
from pathlib import Path

from benchmarks.row import Row, Work, Works
from experiments.sums.engines import measure, write_made

N_ROWS = {"tiny": 2_000, "short": 100_000, "full": 10_000_000}
MEBIBYTES = 1024.0


@cache
def made_files(size: str) -> tuple[Path, list[str]]:
    """Folder of the files, and the names of their features."""
    folder = tempfile.TemporaryDirectory()
    atexit.register(folder.cleanup)
    return Path(folder.name), write_made(Path(folder.name), N_ROWS[size])


@cache
def figures(engine: str, task: str, size: str) -> dict[str, float]:
    """Processor time and memory of reading, or of training."""
    figures_of_engine: dict[str, float] | None = measure(engine, *made_files(size), task)
    if figures_of_engine is None:
        raise RuntimeError(f"{engine} could not {task} the files: see the message above.")
    return figures_of_engine


def beside_reading(engine: str) -> Callable[[str], Works]:
    """Processor seconds of training, and of reading alone."""

    def prepare(size: str) -> Works:
        return (
            lambda: figures(engine, "train", size)["processor"],
            lambda: figures(engine, "read", size)["processor"],
        )

    return prepare


def memory(engine: str) -> Callable[[str], tuple[Work, None]]:
    """Peak memory of training, in MiB."""
    return lambda size: (lambda: figures(engine, "train", size)["peak"], None)


TITLE = "Out of core"
WORK = "RankRLS and its alpha from Parquet files, 1e7 × 50"
ENGINES = {"PyArrow": "pyarrow", "DuckDB": "duckdb", "Polars": "polars"}
ROWS = [
    *(
        Row(
            TITLE,
            f"{WORK}, {name}",
            "reading the files",
            2.0,
            beside_reading(engine),
            engine,
            is_long=True,
            unit="s of processor",
        )
        for name, engine in ENGINES.items()
    ),
    *(
        Row(
            TITLE,
            f"{WORK}, {name}: memory",
            "1 GiB",
            1.0,
            memory(engine),
            engine,
            limit=MEBIBYTES,
            is_long=True,
            unit="MiB",
        )
        for name, engine in ENGINES.items()
    ),
]
