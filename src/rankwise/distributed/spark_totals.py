"""Totals of Parquet files on Spark executors, one row of bytes for each partition."""

from __future__ import annotations

import os
import pickle
import sys
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from rankwise.distributed.totals import ColumnRoles, Totals, add_batches
from rankwise.environment import require

if TYPE_CHECKING:
    import pyarrow as pa


def compute_partition_totals(
    files: Sequence[str], roles: ColumnRoles, n_held_out: int
) -> list[Totals]:
    """Totals of each partition, computed by the active Spark session or a local one.

    The rows of bytes come from executors of this session, which run code of this process anyway.
    """
    sql = require("pyspark.sql", "engine='spark'")
    pyarrow = require("pyarrow", "engine='spark'")
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)

    def add_up(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        tables = (pyarrow.Table.from_batches([batch]) for batch in batches)
        totals = add_batches(tables, roles, n_held_out)
        if totals.statistics.n_items:
            yield pyarrow.RecordBatch.from_pydict({"totals": [pickle.dumps(totals)]})

    session = sql.SparkSession.builder.getOrCreate()
    rows = session.read.parquet(*files).select(*roles.names)
    collected = rows.mapInArrow(add_up, "totals binary").collect()
    return [pickle.loads(row["totals"]) for row in collected]
