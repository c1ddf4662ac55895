"""Results that every engine computes from the rows: sums, and a sample for leave-group-out."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from rankwise.arrays import AnyArray, Labels
from rankwise.groups import encode_groups
from rankwise.rankers.group_sample import GroupSample
from rankwise.rankers.out_of_core import SufficientStatistics

if TYPE_CHECKING:
    import polars as pl
    import pyarrow as pa
    from dask.delayed import Delayed

MERGE_WIDTH = 8  # totals that are merged in one task


class Totals(NamedTuple):
    """Sums of rows, and a sample of their groups.

    Attributes
    ----------
    statistics : SufficientStatistics
        Sums over all rows.
    sample : GroupSample
        Sample of groups from the same rows.
    """

    statistics: SufficientStatistics
    sample: GroupSample


@dataclass(frozen=True)
class ColumnRoles:
    """Columns of the files, and how the rows are ordered.

    Attributes
    ----------
    features : tuple of str
        Columns with features.
    target, group : str
        Columns with the relevance and with the group labels.
    seems_sorted : bool
        Whether the rows of a group seem to follow each other, so that only the first and the last
        group of a batch can have rows in other batches. A group that continues later raises a
        ClosedGroupError.
    """

    features: tuple[str, ...]
    target: str
    group: str
    seems_sorted: bool

    @property
    def names(self) -> list[str]:
        """All columns that are read."""
        return [*self.features, self.target, self.group]


def add_batches(
    batches: Iterable[pa.Table | pl.DataFrame], roles: ColumnRoles, sample: GroupSample
) -> Totals:
    """Totals of batches of rows, with a sample that is still empty."""
    totals = Totals(SufficientStatistics(), sample)
    for batch in batches:
        if not len(batch):
            continue
        X = _stack_columns([batch[name].to_numpy() for name in roles.features])
        y = batch[roles.target].to_numpy()
        groups = batch[roles.group].to_numpy()
        totals.statistics.add(X, y, groups, is_sorted=roles.seems_sorted)
        totals.sample.add(X, y, groups)
    return totals


def _stack_columns(columns: Sequence[AnyArray]) -> AnyArray:
    """A matrix of these columns, stored by columns, which requires the fewest copies."""
    n_rows = len(columns[0])
    n_columns = len(columns)
    common_dtype = np.result_type(*columns)
    matrix: AnyArray = np.empty((n_rows, n_columns), dtype=common_dtype, order="F")
    for number, column in enumerate(columns):
        matrix[:, number] = column
    return matrix


def distinct_labels(groups: Labels) -> list[Hashable]:
    """The labels of a column of groups."""
    labels: list[Hashable] = encode_groups(groups, len(groups)).labels.tolist()
    return labels


def merge_totals(totals_to_merge: Sequence[Totals]) -> Totals:
    """Totals of all rows. The inputs are unchanged: Dask reads them again if a worker dies."""
    first = totals_to_merge[0]
    empty_statistics = SufficientStatistics(**first.statistics.rule)
    empty_sample = GroupSample(first.sample.n_groups, first.sample.labels)
    merged = Totals(empty_statistics, empty_sample)
    for totals in totals_to_merge:
        merged.statistics.merge(totals.statistics)
        merged.sample.merge(totals.sample)
    return merged


def merge_in_tree(totals: Sequence[Delayed]) -> Delayed:
    """Totals of all rows, merged on the Dask workers, `MERGE_WIDTH` in one task."""
    import dask

    merge = dask.delayed(merge_totals)
    remaining = list(totals)
    while len(remaining) > 1:
        starts = range(0, len(remaining), MERGE_WIDTH)
        remaining = [merge(remaining[start : start + MERGE_WIDTH]) for start in starts]
    return remaining[0]


def has_contiguous_groups(groups: np.ndarray) -> bool:
    """Whether the rows of each group follow each other."""
    encoded = encode_groups(groups, len(groups))
    n_changes = int(np.count_nonzero(np.diff(encoded.codes)))
    n_runs = 1 + n_changes
    return n_runs == encoded.n_groups
