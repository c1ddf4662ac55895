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
    # First pass: each file draws labels, and the final sample is drawn from these.
    draw_labels = dask.delayed(_draw_labels_of_file, pure=True)
    labels_of_files = dask.compute(*[draw_labels(file, roles.group, n_held_out) for file in files])
    candidates = (label for labels in labels_of_files for label in labels)
    held_out_labels = frozenset(sample_labels(candidates, n_held_out))

    # Second pass: totals of each file
    delayed_labels = dask.delayed(held_out_labels, traverse=False)
    totals_of_file = dask.delayed(_totals_of_file, pure=True)
    totals_of_files = [totals_of_file(file, roles, delayed_labels) for file in files]
    totals: Totals = merge_in_tree(totals_of_files).compute()
    return totals


def _draw_labels_of_file(file: str, group_column: str, n_held_out: int) -> list[Hashable]:
    """On a worker: the labels of one file that may be in the sample."""
    drawn: list[Hashable] = []
    for batch in read_batches([file], [group_column], "pyarrow"):
        labels_of_batch = distinct_labels(batch[group_column].to_numpy())
        drawn = sample_labels([*drawn, *labels_of_batch], n_held_out)
    return drawn


def _totals_of_file(file: str, roles: ColumnRoles, held_out_labels: frozenset[Hashable]) -> Totals:
    """On a worker: the totals of one file."""
    batches = read_batches([file], roles.names, "pyarrow")
    sample = GroupSample(len(held_out_labels), held_out_labels)
    return add_batches(batches, roles, sample)
