"""What every engine computes from the rows: sums for solving and a sample for leave-group-out."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from rankwise.groups import encode_groups
from rankwise.rankers.group_sample import GroupSample
from rankwise.rankers.out_of_core import SufficientStatistics

if TYPE_CHECKING:
    import polars as pl
    import pyarrow as pa


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
    batches: Iterable[pa.Table | pl.DataFrame], roles: ColumnRoles, n_held_out: int
) -> Totals:
    """Totals of batches of rows."""
    totals = Totals(SufficientStatistics(), GroupSample(n_held_out))
    for batch in batches:
        if not len(batch):
            continue
        X = np.column_stack([batch[name].to_numpy() for name in roles.features])
        y = batch[roles.target].to_numpy()
        groups = batch[roles.group].to_numpy()
        totals.statistics.add(X, y, groups, is_sorted=roles.is_sorted)
        totals.sample.add(X, y, groups)
    return totals


def merge_totals(several: Sequence[Totals]) -> Totals:
    """Totals of all rows. The inputs are unchanged: Dask reads them again if a worker dies."""
    first = several[0]
    merged = Totals(
        SufficientStatistics(**first.statistics.rule), GroupSample(first.sample.n_groups)
    )
    for totals in several:
        merged.statistics.merge(totals.statistics)
        merged.sample.merge(totals.sample)
    return merged


def has_contiguous_groups(groups: np.ndarray) -> bool:
    """Whether the rows of each group follow each other."""
    codes = encode_groups(groups, len(groups)).codes
    n_runs = 1 + int(np.count_nonzero(np.diff(codes)))
    return n_runs == int(codes.max()) + 1
