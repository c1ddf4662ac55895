"""The column that marks observed events and censored times."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from rankwise.arrays import Array
from rankwise.datasets.table_files import TableFile
from rankwise.datasets.vocabulary import as_text, shown_value

if TYPE_CHECKING:
    import pyarrow as pa

OBSERVED = frozenset({"1", "1.0", "true", "yes", "y", "t"})
CENSORED = frozenset({"0", "0.0", "false", "no", "n", "f"})


def read_events(
    table: TableFile, position: int, column: pa.ChunkedArray, time: Array
) -> NDArray[np.bool_]:
    """Read whether the event of each item was observed.

    Parameters
    ----------
    table : TableFile
        The table, for messages.
    position : int
        Position of the column.
    column : pyarrow.ChunkedArray
        Its cells.
    time : ndarray of shape (n_rows,)
        Time of each item. Items without a time, which were not followed, need no event.

    Returns
    -------
    ndarray of bool, shape (n_rows,)
        True for an observed event, False for a censored time.
    """
    words = [as_text(cell).strip().lower() for cell in column.to_pylist()]
    is_observed = np.array([word in OBSERVED for word in words])
    is_censored = np.array([word in CENSORED for word in words])
    has_time = ~np.isnan(time)  # an item without a time was not followed, and needs no event
    is_bad = ~is_observed & ~is_censored & has_time
    if is_bad.any():
        row = int(is_bad.argmax())
        raise table.error(
            f"the event, column {shown_value(table.names[position])}, is "
            f"{shown_value(as_text(column[row].as_py()))}, expected 1, true or yes for an observed "
            "event, and 0, false or no for a censored time.",
            row,
        )
    return is_observed
