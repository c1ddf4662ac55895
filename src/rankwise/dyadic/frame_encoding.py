"""Data frames with text, dates or missing values as items of label ranking and tables."""

from __future__ import annotations

import numpy as np

from rankwise.arrays import AnyArray, MatrixLike
from rankwise.frames import as_array, frame_columns
from rankwise.kernels.kernel import Kernel
from rankwise.preprocessing.table_vectorizer import TableVectorizer


def fit_vectorizer(items: MatrixLike, kernel: Kernel) -> TableVectorizer | None:
    """A TableVectorizer fitted to a data frame that needs one; None for all other items.

    Frames of numbers without missing values, kernel values and objects are not encoded.
    """
    columns = frame_columns(items)
    if columns is None or kernel.is_precomputed or kernel.takes_objects:
        return None
    needs_no_encoding = all(has_only_numbers(as_array(column)) for column in columns.values())
    if needs_no_encoding:
        return None
    return TableVectorizer(scale=True).fit(items)


def has_only_numbers(values: AnyArray) -> bool:
    """Whether a column has numbers or bools only, none of them missing."""
    is_numeric = values.dtype.kind in "biuf"  # bool, signed and unsigned integers, floats
    return is_numeric and not np.isnan(values).any()


def encode_items(vectorizer: TableVectorizer | None, items: MatrixLike) -> MatrixLike:
    """Features of the items; items that are not a data frame are features already."""
    is_frame = frame_columns(items) is not None
    if vectorizer is None or not is_frame:
        return items
    return vectorizer.transform(items)
