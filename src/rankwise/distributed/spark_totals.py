"""Totals of Parquet files on Spark executors, one row of bytes for each partition."""

from __future__ import annotations

import os
import pickle
import sys
from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, TypeVar

from rankwise.distributed.totals import ColumnRoles, Totals, add_batches, distinct_labels
from rankwise.environment import require
from rankwise.rankers.group_sample import GroupSample, sample_labels

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame


T = TypeVar("T")


def compute_partition_totals(
    files: Sequence[str], roles: ColumnRoles, n_held_out: int
) -> list[Totals]:
    """Totals of each partition, computed by the active Spark session or a local one.

    Spark moves the rows of a group to one partition and sorts them, so groups may be cut by the
    files in any way. The labels of the sample are drawn first: a partition then returns the rows of
    these groups only, and its result is small.
    """
    sql = require("pyspark.sql", "engine='spark'")
    require("pyarrow", "engine='spark'")
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    session = sql.SparkSession.builder.getOrCreate()
    rows = session.read.parquet(*files).select(*roles.names)
    column = f"`{roles.group.replace('`', '``')}`"
    labels = _run_on_partitions(
        rows.select(column).distinct(), lambda batches: _draw_labels(batches, roles, n_held_out)
    )
    drawn = sample_labels((label for several in labels for label in several), n_held_out)
    partitions = rows.repartition(column).sortWithinPartitions(column)
    return _run_on_partitions(
        partitions, lambda batches: _add_partition(batches, roles, frozenset(drawn))
    )


def _draw_labels(
    batches: Iterator[pa.Table], roles: ColumnRoles, n_held_out: int
) -> list[Hashable]:
    """On an executor: the labels of a partition that may be in the sample."""
    drawn: list[Hashable] = []
    for batch in batches:
        drawn = sample_labels([*drawn, *distinct_labels(batch[roles.group].to_numpy())], n_held_out)
    return drawn


def _add_partition(
    batches: Iterator[pa.Table], roles: ColumnRoles, labels: frozenset[Hashable]
) -> Totals:
    """On an executor: the totals of a partition of sorted whole groups."""
    roles = replace(roles, is_sorted=True)
    totals = add_batches(batches, roles, GroupSample(len(labels), labels))
    totals.statistics.close_groups()
    return totals


def _run_on_partitions(rows: DataFrame, function: Callable[[Iterator[pa.Table]], T]) -> list[T]:
    """Results of a function of the rows of each partition.

    The bytes come from executors of this session, which run code of this process anyway.
    """

    def run(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        import pyarrow

        tables = (pyarrow.Table.from_batches([batch]) for batch in batches)
        yield pyarrow.RecordBatch.from_pydict({"result": [pickle.dumps(function(tables))]})

    return [pickle.loads(row["result"]) for row in rows.mapInArrow(run, "result binary").collect()]
