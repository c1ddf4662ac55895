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
    escaped_name = roles.group.replace("`", "``")
    group_column = f"`{escaped_name}`"

    # First pass: each partition draws labels, and the final sample is drawn from these.
    labels_of_partitions = _run_on_partitions(
        rows.select(group_column).distinct(),
        lambda batches: _draw_labels(batches, roles, n_held_out),
    )
    candidates = (label for labels in labels_of_partitions for label in labels)
    held_out_labels = frozenset(sample_labels(candidates, n_held_out))

    # Second pass: totals of partitions of whole groups
    sorted_partitions = rows.repartition(group_column).sortWithinPartitions(group_column)
    return _run_on_partitions(
        sorted_partitions,
        lambda batches: _totals_of_partition(batches, roles, held_out_labels),
    )


def _draw_labels(
    batches: Iterator[pa.Table], roles: ColumnRoles, n_held_out: int
) -> list[Hashable]:
    """On an executor: the labels of a partition that may be in the sample."""
    drawn: list[Hashable] = []
    for batch in batches:
        labels_of_batch = distinct_labels(batch[roles.group].to_numpy())
        drawn = sample_labels([*drawn, *labels_of_batch], n_held_out)
    return drawn


def _totals_of_partition(
    batches: Iterator[pa.Table], roles: ColumnRoles, held_out_labels: frozenset[Hashable]
) -> Totals:
    """On an executor: the totals of a partition of sorted whole groups."""
    sorted_roles = replace(roles, seems_sorted=True)  # Spark has sorted the partition by group
    sample = GroupSample(len(held_out_labels), held_out_labels)
    totals = add_batches(batches, sorted_roles, sample)
    totals.statistics.close_groups()
    return totals


def _run_on_partitions(rows: DataFrame, function: Callable[[Iterator[pa.Table]], T]) -> list[T]:
    """Results of a function of the rows of each partition.

    The bytes come from executors of this session, which run code of this process anyway.
    """

    def pickle_result(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        import pyarrow

        tables = (pyarrow.Table.from_batches([batch]) for batch in batches)
        pickled_result = pickle.dumps(function(tables))
        yield pyarrow.RecordBatch.from_pydict({"result": [pickled_result]})

    row_of_each_partition = rows.mapInArrow(pickle_result, "result binary").collect()
    return [pickle.loads(row["result"]) for row in row_of_each_partition]
