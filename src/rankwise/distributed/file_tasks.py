"""Totals of Parquet files on Dask workers, one task for each file."""

from __future__ import annotations

from collections.abc import Sequence

from rankwise.datasets.parquet_batches import read_batches
from rankwise.distributed.totals import ColumnRoles, Totals, add_batches
from rankwise.distributed.workers import check_workers
from rankwise.environment import require


def compute_file_totals(
    files: Sequence[str], roles: ColumnRoles, n_held_out: int
) -> tuple[Totals, ...]:
    """Totals of each file, computed by the current Dask client or by threads."""
    dask = require("dask", "engine='dask'")
    check_workers()
    add_up = dask.delayed(_totals_of_file, pure=True)
    totals: tuple[Totals, ...] = dask.compute(*[add_up(file, roles, n_held_out) for file in files])
    return totals


def _totals_of_file(file: str, roles: ColumnRoles, n_held_out: int) -> Totals:
    """On a worker: the totals of one file."""
    return add_batches(read_batches([file], roles.names, "pyarrow"), roles, n_held_out)
