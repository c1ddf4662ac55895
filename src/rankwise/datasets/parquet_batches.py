"""Batches of rows of Parquet files that do not fit in memory, read by one of several engines."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from rankwise.arrays import AnyArray
from rankwise.environment import require

if TYPE_CHECKING:
    import polars as pl
    import pyarrow as pa

BATCH_ROWS = 100_000


def find_parquet_files(pattern: str) -> list[str]:
    """Files of a pattern such as ``"folder/*.parquet"``, of a folder, or one file, sorted.

    Parameters
    ----------
    pattern : str
        Path, which may contain ``*``, ``?`` and ``[…]``.

    Returns
    -------
    list of str
        At least one path.
    """
    path = Path(pattern)
    if path.is_dir():
        files = sorted(path.glob("*.parquet"))
    elif path.is_file():
        files = [path]
    else:
        anchor = Path(path.anchor)  # the working directory for a relative pattern
        files = sorted(anchor.glob(str(path.relative_to(anchor))))
    if not files:
        raise FileNotFoundError(f"{pattern}: no Parquet file has this name or pattern.")
    return [str(file) for file in files]


def parquet_columns(files: Sequence[str]) -> dict[str, pa.DataType]:
    """Names and Arrow types of the columns of the first file."""
    parquet = require("pyarrow.parquet", "reading Parquet files")
    schema = parquet.read_schema(files[0])
    return dict(zip(schema.names, schema.types, strict=True))


def first_column(file: str, name: str) -> AnyArray:
    """Values of a column in the first row group of a file."""
    parquet = require("pyarrow.parquet", "reading Parquet files")
    table = parquet.ParquetFile(file).read_row_group(0, columns=[name])
    return np.asarray(table[name].to_numpy())


def read_batches(
    files: Sequence[str], columns: Sequence[str], engine: str
) -> Iterator[pa.Table | pl.DataFrame]:
    """Read batches of rows in the order of the files.

    Parameters
    ----------
    files : sequence of str
        Parquet files with the same columns.
    columns : sequence of str
        Columns to read.
    engine : {"pyarrow", "duckdb", "polars"}
        Library that reads the files.

    Yields
    ------
    pyarrow.Table or polars.DataFrame
        About `BATCH_ROWS` rows.
    """
    return READERS[engine](files, columns)


def _read_with_pyarrow(files: Sequence[str], columns: Sequence[str]) -> Iterator[pa.Table]:
    """Read one row group at a time; a scan of a dataset would keep files in memory."""
    pyarrow = require("pyarrow", "engine='pyarrow'")
    parquet = require("pyarrow.parquet", "engine='pyarrow'")
    for file in files:
        with parquet.ParquetFile(file, pre_buffer=False) as opened:
            for batch in opened.iter_batches(BATCH_ROWS, columns=list(columns)):
                yield pyarrow.Table.from_batches([batch])


def _read_with_duckdb(files: Sequence[str], columns: Sequence[str]) -> Iterator[pa.Table]:
    duckdb = require("duckdb", "engine='duckdb'")
    pyarrow = require("pyarrow", "engine='duckdb'")
    with duckdb.connect() as connection:
        relation = connection.read_parquet(list(files))
        quoted_names = ", ".join('"{}"'.format(name.replace('"', '""')) for name in columns)
        for batch in relation.project(quoted_names).to_arrow_reader(BATCH_ROWS):
            yield pyarrow.Table.from_batches([batch])


def _read_with_polars(files: Sequence[str], columns: Sequence[str]) -> Iterator[pl.DataFrame]:
    polars = require("polars", "engine='polars'")
    rows = polars.scan_parquet(list(files)).select(list(columns))
    yield from rows.collect_batches(chunk_size=BATCH_ROWS, maintain_order=True)


Reader = Callable[[Sequence[str], Sequence[str]], Iterator["pa.Table | pl.DataFrame"]]
READERS: dict[str, Reader] = {
    "pyarrow": _read_with_pyarrow,
    "duckdb": _read_with_duckdb,
    "polars": _read_with_polars,
}
