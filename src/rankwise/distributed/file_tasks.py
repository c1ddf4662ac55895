"""Totals of Parquet files on Dask workers, one task for each file."""

from __future__ import annotations

from collections.abc import Hashable, Sequence

from rankwise.datasets.parquet_batches import read_batches
from rankwise.distributed.totals import (
    ColumnRoles,
    Totals,
    add_batches,
    distinct_labels,
    merge_in_tree,
)
from rankwise.distributed.workers import check_workers
from rankwise.environment import require
from rankwise.rankers.group_sample import GroupSample, sample_labels


def compute_file_totals(files: Sequence[str], roles: ColumnRoles, n_held_out: int) -> Totals:
    """Totals of all files, computed by the current Dask client or by threads.

    The labels of the sample are drawn first, from the column of the groups: a task then returns
    the rows of these groups only, and its result is small.
    """
    dask = require("dask", "engine='dask'")
    check_workers()
    draw = dask.delayed(_draw_labels, pure=True)
    labels_by_file = dask.compute(*[draw(file, roles.group, n_held_out) for file in files])
    drawn = sample_labels((label for labels in labels_by_file for label in labels), n_held_out)
    add_up = dask.delayed(_totals_of_file, pure=True)
    labels = dask.delayed(frozenset(drawn), traverse=False)
    totals = merge_in_tree([add_up(file, roles, labels) for file in files])
    result: Totals = totals.compute()
    return result


def _draw_labels(file: str, group: str, n_held_out: int) -> list[Hashable]:
    """On a worker: the labels of one file that may be in the sample."""
    drawn: list[Hashable] = []
    for batch in read_batches([file], [group], "pyarrow"):
        drawn = sample_labels([*drawn, *distinct_labels(batch[group].to_numpy())], n_held_out)
    return drawn


def _totals_of_file(file: str, roles: ColumnRoles, labels: frozenset[Hashable]) -> Totals:
    """On a worker: the totals of one file."""
    batches = read_batches([file], roles.names, "pyarrow")
    return add_batches(batches, roles, GroupSample(len(labels), labels))
