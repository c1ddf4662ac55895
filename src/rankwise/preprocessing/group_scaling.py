"""Features relative to their group: how far an item is above the others of its list.

    z_ij = (x_ij − mean_g x_j) / sd_g x_j        for item i of group g, 0 where sd_g x_j = 0

The mean and the standard deviation are those of the group itself, so a group that is held out is
scaled as it would be alone.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from rankwise.arrays import Indices

BLOCK_ENTRIES = 2**16  # of whole groups that are scaled together: what a cache holds
ROUNDING = 4.0  # units in the last digit of the largest value: a smaller deviation is rounding


def signed_log(X: Any) -> Any:
    """``sign(x) log(1 + |x|)`` of a dense array, or of the entries of a sparse matrix."""
    if sp.issparse(X):
        out = X.copy()
        out.data = np.sign(X.data) * np.log1p(np.abs(X.data))
        return out
    return np.sign(X) * np.log1p(np.abs(X))


def scale_in_groups(X: NDArray[Any], codes: Indices, *, with_mean: bool = True) -> NDArray[Any]:
    """The scaled columns, in the type of X; each group of rows by itself.

    Values are taken relative to the first item of the group before they are summed up. So a large
    offset costs no digits, and a column that is constant in a group becomes 0 exactly.

    Parameters
    ----------
    X : ndarray of shape (m, p), float64 or float32
        Features.
    codes : ndarray of shape (m,)
        Number of the group of each row, from 0; in any order.
    with_mean : bool
        Whether the mean is taken off; if not, the columns are only divided.
    """
    out = np.empty_like(X)
    largest = np.maximum(X.max(axis=0), -X.min(axis=0)).astype(np.float64)
    unit = np.ldexp(1.0, np.frexp(largest)[1] - 1)  # so that no square is too large or small
    eps = ROUNDING * float(np.finfo(X.dtype).eps)
    order = np.argsort(codes, kind="stable")
    starts = np.flatnonzero(np.diff(codes[order], prepend=-1))
    block = starts // max(1, BLOCK_ENTRIES // max(1, X.shape[1]))  # of each group
    for rows in np.split(order, starts[1:][np.diff(block) > 0]):
        _, first, code, sizes = np.unique(
            codes[rows], return_index=True, return_inverse=True, return_counts=True
        )
        average = sp.csr_array(
            (1.0 / sizes[code], np.arange(len(rows)), np.append(first, len(rows))),
            shape=(len(sizes), len(rows)),
        )
        x = X[rows] / unit
        z = x - x[first][code]
        z -= (average @ z)[code]
        deviation = np.sqrt(average @ np.square(z))
        magnitude = np.sqrt(average @ np.square(x))
        factor = np.zeros_like(deviation)
        np.divide(1.0, deviation, out=factor, where=deviation > eps * magnitude)
        out[rows] = (z if with_mean else x) * factor[code]
    return out


def scale_sparse_in_groups(X: Any, codes: Indices) -> Any:
    """Sparse columns divided by the deviation in their group; zeros count, and stay zeros.

    Inside a group this differs from the centered columns by a constant, which no linear ranker
    sees.
    """
    X = X.tocsr(copy=True)
    X.sum_duplicates()
    group = np.repeat(codes, np.diff(X.indptr)).astype(np.int64)
    _, cell = np.unique(group * X.shape[1] + X.indices, return_inverse=True)
    sizes = np.zeros(cell.max(initial=-1) + 1)
    sizes[cell] = np.bincount(codes)[group]
    values, n_zeros = X.data.astype(np.float64), sizes - np.bincount(cell)
    largest = np.zeros(len(sizes))
    np.maximum.at(largest, cell, np.abs(values))
    values /= np.where(largest > 0, largest, 1.0)[cell]
    mean = np.bincount(cell, values) / sizes
    squares = np.bincount(cell, (values - mean[cell]) ** 2) + n_zeros * mean**2
    deviation = np.sqrt(squares / sizes)
    is_constant = deviation <= ROUNDING * float(np.finfo(X.dtype).eps)
    X.data = (values / np.where(is_constant, np.inf, deviation)[cell]).astype(X.dtype)
    return X
