"""Data frames with text, dates or missing values as items of label ranking and tables."""

from __future__ import annotations

from typing import Any

import narwhals.stable.v2 as nw
import numpy as np

from rankwise.arrays import MatrixLike
from rankwise.frames import narwhals_frame
from rankwise.kernels.kernel import Kernel
from rankwise.preprocessing.table_vectorizer import TableVectorizer


def fit_vectorizer(items: MatrixLike, kernel: Kernel) -> TableVectorizer | None:
    """A TableVectorizer fitted to a data frame that needs one; None for all other items.

    A frame of numbers without missing values is used as it is, and so are kernel values and
    objects.
    """
    frame = narwhals_frame(items)
    if frame is None or kernel.is_precomputed or kernel.takes_objects:
        return None
    columns = [frame[name] for name in frame.columns]
    if all(column.dtype.is_numeric() and not has_missing(column) for column in columns):
        return None
    return TableVectorizer(scale=True).fit(items)


def has_missing(column: nw.Series[Any]) -> bool:
    """Whether a numeric column has null or NaN."""
    if column.null_count():
        return True
    return bool(np.isnan(column.to_numpy().astype(np.float64)).any())


def encode_items(vectorizer: TableVectorizer | None, items: MatrixLike) -> MatrixLike:
    """Features of the items; items that are not a data frame are features already."""
    if vectorizer is None or narwhals_frame(items) is None:
        return items
    return vectorizer.transform(items)
