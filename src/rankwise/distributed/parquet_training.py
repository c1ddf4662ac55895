"""RankRLS from Parquet files that do not fit in memory, read by one of five engines.

Every engine produces the same two things: `SufficientStatistics` of all rows and a `GroupSample`
for leave-group-out. Selecting alpha and solving is shared code.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from numpy.typing import ArrayLike

from rankwise.datasets.parquet_batches import (
    find_parquet_files,
    first_column,
    parquet_columns,
    read_batches,
)
from rankwise.distributed.totals import (
    ColumnRoles,
    Totals,
    add_batches,
    has_contiguous_groups,
    merge_totals,
)
from rankwise.errors import ClosedGroupError
from rankwise.metrics.registry import MetricName
from rankwise.rankers.group_sample import AlphaSelection, GroupSample, select_alpha
from rankwise.validation import check_option

N_HELD_OUT = 1000


def train_parquet(
    pattern: str,
    *,
    target: str,
    group: str,
    features: Sequence[str] | None = None,
    engine: str = "pyarrow",
    alphas: ArrayLike | None = None,
    scoring: MetricName = "disagreement",
    n_held_out: int = N_HELD_OUT,
) -> AlphaSelection:
    """Train RankRLS on Parquet files of any size, with alpha selected by leave-group-out.

    Use it for more rows than fit in memory. The files are read once, in batches; memory holds one
    batch, a matrix of the size of the number of features squared, and the rows of the held-out
    groups.

    Parameters
    ----------
    pattern : str
        Files: a path with ``*``, a folder, or one file.
    target, group : str
        Columns with the relevance and with the group labels.
    features : sequence of str, optional
        Columns with features; by default all other columns, which must be numbers.
    engine : {"pyarrow", "duckdb", "polars", "dask", "spark"}, default="pyarrow"
        Library that reads the files. "dask" uses the current `distributed.Client`, or the threads
        of this machine; "spark" the active Spark session, or a local one.
    alphas : array-like of shape (n_alphas,), optional
        Candidates; by default the 40 values of `RankRLSCV`.
    scoring : str, Metric or function, default="disagreement"
        Metric that selects alpha.
    n_held_out : int, default=1000
        Number of groups that are held out in turn, drawn by the hash values of their labels; all
        groups if there are fewer.

    Returns
    -------
    AlphaSelection
        ``selection.model`` is the `RankRLS` of all rows; ``selection.alpha``, ``mean_score`` and
        ``group_score`` describe the selection.

    Examples
    --------
    >>> import tempfile
    >>> import polars as pl
    >>> from rankwise.datasets import make_ranking
    >>> from rankwise.distributed.parquet_training import train_parquet
    >>> X, y, groups = make_ranking(n_queries=40, noise=0.5, random_state=0)[:3]
    >>> frame = pl.DataFrame({f"x{k}": X[:, k] for k in range(X.shape[1])})
    >>> frame = frame.with_columns(y=y, query=groups)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     frame[:300].write_parquet(f"{folder}/0.parquet")
    ...     frame[300:].write_parquet(f"{folder}/1.parquet")
    ...     selection = train_parquet(folder, target="y", group="query", engine="polars")
    >>> selection.model.coef_.shape, len(selection.groups)
    ((10,), 40)
    """
    check_option("engine", engine, tuple(ENGINES))
    files = find_parquet_files(pattern)
    roles = _column_roles(files, target, group, features)
    try:
        totals = ENGINES[engine](files, roles, n_held_out)
    except ClosedGroupError:  # the rows are not sorted by group, although they seemed to be
        totals = ENGINES[engine](files, replace(roles, seems_sorted=False), n_held_out)
    return select_alpha(totals.statistics, totals.sample, alphas, scoring)


def _column_roles(
    files: Sequence[str], target: str, group: str, features: Sequence[str] | None
) -> ColumnRoles:
    type_of_column = parquet_columns(files)
    for role, name in (("target", target), ("group", group)):
        if name not in type_of_column:
            all_columns = ", ".join(type_of_column)
            raise ValueError(f"{role}={name!r} is not a column of {files[0]}: {all_columns}.")
    if features is None:
        features = [name for name in type_of_column if name not in (target, group)]
    unknown = [name for name in features if name not in type_of_column]
    if unknown:
        raise ValueError(f"features {', '.join(unknown)} are not columns of {files[0]}.")
    not_numeric = [name for name in features if not _is_number(str(type_of_column[name]))]
    if not_numeric:
        raise ValueError(
            f"the columns {', '.join(not_numeric)} are not numbers; list the numeric columns in "
            "features, or encode the columns with the engine."
        )
    # a guess from the first batch; `train_parquet` retries if it is wrong
    labels_of_first_batch = first_column(files[0], group)
    seems_sorted = has_contiguous_groups(labels_of_first_batch)
    return ColumnRoles(tuple(features), target, group, seems_sorted)


def _is_number(arrow_type: str) -> bool:
    """Whether an Arrow type, such as "int64" or "double", is a number."""
    return arrow_type.startswith(("int", "uint", "float", "double", "halffloat", "bool"))


def _make_local_engine(engine: str) -> Engine:
    """An engine that reads batches in this process."""

    def compute_local_totals(files: Sequence[str], roles: ColumnRoles, n_held_out: int) -> Totals:
        batches = read_batches(files, roles.names, engine)
        return add_batches(batches, roles, GroupSample(n_held_out))

    return compute_local_totals


def _compute_with_dask(files: Sequence[str], roles: ColumnRoles, n_held_out: int) -> Totals:
    """Each file is added up by one task; the totals are merged by others."""
    from rankwise.distributed.file_tasks import compute_file_totals

    return compute_file_totals(files, roles, n_held_out)


def _compute_with_spark(files: Sequence[str], roles: ColumnRoles, n_held_out: int) -> Totals:
    """Each partition is added up by one task; the totals are merged here."""
    from rankwise.distributed.spark_totals import compute_partition_totals

    return merge_totals(compute_partition_totals(files, roles, n_held_out))


Engine = Callable[[Sequence[str], ColumnRoles, int], Totals]
ENGINES: dict[str, Engine] = {
    "pyarrow": _make_local_engine("pyarrow"),
    "duckdb": _make_local_engine("duckdb"),
    "polars": _make_local_engine("polars"),
    "dask": _compute_with_dask,
    "spark": _compute_with_spark,
}
