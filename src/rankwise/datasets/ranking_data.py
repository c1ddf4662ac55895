"""Items to rank as arrays: features, relevance labels, groups and further columns."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from rankwise.arrays import Array, Indices, Labels, Texts

if TYPE_CHECKING:
    import pyarrow as pa
    from scipy.sparse import csr_matrix

Features: TypeAlias = "Array | csr_matrix | pa.Table"


class RankingData(NamedTuple):
    """Items to rank; ``X, y, groups = data[:3]`` unpacks the arguments of `fit`.

    Attributes
    ----------
    X : ndarray, csr_matrix or pyarrow.Table of shape (n_rows, n_features)
        Features; a table contains text, dates and missing values (nulls).
    y : ndarray of shape (n_rows,), float64, or None
        Relevance labels; larger is better.  None if the file has none, as in data to predict.
    groups : ndarray of shape (n_rows,) or None
        Group (query) label of each row, or None if the file has none: one list.
    ids : ndarray of str objects of shape (n_rows,) or None
        Comment or name of each row.
    feature_names : ndarray of str objects of shape (n_features,) or None
        Names of the columns of X, if the file has any.
    weight : ndarray of shape (n_rows,) or None
        Weights of the items.
    roles : dict from str to str
        Names of the columns that were read as "target", "group", "id" and "weight".
    rows : ndarray of int or None
        Row numbers in the file, from 0; None if no row was dropped.
    time : ndarray of shape (n_rows,) or None
        Time of each item; dates are days since 1970.
    event : ndarray of bool, shape (n_rows,), or None
        If y are right-censored survival times: whether the event was observed.
    """

    X: Features
    y: Array | None
    groups: Labels | None
    ids: Texts | None = None
    feature_names: Texts | None = None
    weight: Array | None = None
    roles: dict[str, str] = {}  # noqa: RUF012, never changed
    rows: Indices | None = None
    time: Array | None = None
    event: NDArray[np.bool_] | None = None

    @property
    def truth(self) -> Array | None:
        """True values for evaluation: y, or survival times and events as two columns."""
        if self.event is None or self.y is None:
            return self.y
        return np.column_stack([self.y, self.event])

    @property
    def frame(self) -> pa.Table:
        """The features as an Arrow table, for data that were read with ``as_frame=True``."""
        if hasattr(self.X, "column_names"):
            return self.X
        raise TypeError(
            "the features were read as a matrix, from svmlight rows or plain numbers, not as a "
            "table; use X."
        )

    def take(self, rows: Indices) -> RankingData:
        """Return the data of these rows.

        Parameters
        ----------
        rows : ndarray of int
            Row numbers.

        Returns
        -------
        RankingData
            The data of the rows.
        """
        if hasattr(self.X, "column_names"):
            features_of_rows = self.X.take(rows)
        else:
            features_of_rows = self.X[rows]
        rows_in_file = rows
        if self.rows is not None:  # some rows of the file were dropped before
            rows_in_file = self.rows[rows]
        return self._replace(
            X=features_of_rows,
            y=_take_rows(self.y, rows),
            groups=_take_rows(self.groups, rows),
            ids=_take_rows(self.ids, rows),
            weight=_take_rows(self.weight, rows),
            rows=rows_in_file,
            time=_take_rows(self.time, rows),
            event=_take_rows(self.event, rows),
        )


def _take_rows(values: Labels | None, rows: Indices) -> Labels | None:
    """Return the values of these rows; None stays None."""
    if values is None:
        return None
    return values[rows]
