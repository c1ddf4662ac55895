"""What every engine computes from the rows: sums for solving and a sample for leave-group-out."""

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
        Of all rows.
    sample : GroupSample
        Of the same rows.
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
    is_sorted : bool
        Whether the rows of a group follow each other, so that only the first and the last group of
        a batch can have rows in other batches. A group that comes back raises a ClosedGroupError.
    """

    features: tuple[str, ...]
    target: str
    group: str
    is_sorted: bool

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
        X = _matrix([batch[name].to_numpy() for name in roles.features])
        y = batch[roles.target].to_numpy()
        groups = batch[roles.group].to_numpy()
        totals.statistics.add(X, y, groups, is_sorted=roles.is_sorted)
        totals.sample.add(X, y, groups)
    return totals


def _matrix(columns: Sequence[AnyArray]) -> AnyArray:
    """A matrix of these columns, one after the other in memory, which takes the fewest copies."""
    shape = len(columns[0]), len(columns)
    matrix: AnyArray = np.empty(shape, dtype=np.result_type(*columns), order="F")
    for k, column in enumerate(columns):
        matrix[:, k] = column
    return matrix


def distinct_labels(groups: Labels) -> list[Hashable]:
    """The labels of a column of groups."""
    labels: list[Hashable] = encode_groups(groups, len(groups)).labels.tolist()
    return labels


def merge_totals(several: Sequence[Totals]) -> Totals:
    """Totals of all rows. The inputs are unchanged: Dask reads them again if a worker dies."""
    first = several[0]
    statistics = SufficientStatistics(**first.statistics.rule)
    merged = Totals(statistics, GroupSample(first.sample.n_groups, first.sample.labels))
    for totals in several:
        merged.statistics.merge(totals.statistics)
        merged.sample.merge(totals.sample)
    return merged


def merge_in_tree(totals: Sequence[Delayed]) -> Delayed:
    """Totals of all rows, merged on the Dask workers, `MERGE_WIDTH` in one task."""
    import dask

    merge = dask.delayed(merge_totals)
    level = list(totals)
    while len(level) > 1:
        starts = range(0, len(level), MERGE_WIDTH)
        level = [merge(level[start : start + MERGE_WIDTH]) for start in starts]
    return level[0]


def has_contiguous_groups(groups: np.ndarray) -> bool:
    """Whether the rows of each group follow each other."""
    codes = encode_groups(groups, len(groups)).codes
    n_runs = 1 + int(np.count_nonzero(np.diff(codes)))
    return n_runs == int(codes.max()) + 1
