"""Scale features inside groups.

    z_ij = (x_ij − mean_g x_j) / sd_g x_j                    for item i of group g, or
    z_ij = (x_ij − min_g x_j) / (max_g x_j − min_g x_j)      and 0 where the denominator is 0

All statistics are those of the group itself, so the scaling of a held-out group does not depend on
the other groups.
"""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp

from rankwise.arrays import Indices, Matrix, MatrixLike, Numbers

BLOCK_ENTRIES = 2**16
"""Number of entries of the groups that are scaled together; a block fits into the cache."""
ROUNDING_EPSILONS = 4.0
"""Machine epsilons, relative to the magnitude of a feature, below which a deviation is 0."""


def signed_log(X: MatrixLike) -> Matrix:
    """Return ``sign(x) log(1 + |x|)`` of a dense array or a sparse matrix."""
    if sp.issparse(X):
        result = X.copy()
        result.data = np.sign(X.data) * np.log1p(np.abs(X.data))
        return result
    return np.sign(X) * np.log1p(np.abs(X))


def scale_in_groups(X: Numbers, codes: Indices, *, with_mean: bool = True) -> Numbers:
    """Standardize each column inside each group; the result has the type of X.

    Values are taken relative to the first item of the group before they are summed. A large offset
    therefore costs no precision, and a column that is constant in a group becomes exactly 0.

    Parameters
    ----------
    X : ndarray of shape (m, p), float64 or float32
        Features.
    codes : ndarray of shape (m,)
        Number of the group of each row, from 0, in any order.
    with_mean : bool, default=True
        Whether to subtract the mean.

    Returns
    -------
    ndarray of shape (m, p)
        Scaled features.
    """
    scaled = np.empty_like(X)
    largest = np.maximum(X.max(axis=0), -X.min(axis=0)).astype(np.float64)
    unit = np.ldexp(1.0, np.frexp(largest)[1] - 1)  # so that squares neither overflow nor underflow
    tolerance = ROUNDING_EPSILONS * float(np.finfo(X.dtype).eps)
    rows_by_group = np.argsort(codes, kind="stable")
    starts = np.flatnonzero(np.diff(codes[rows_by_group], prepend=-1))
    rows_per_block = max(1, BLOCK_ENTRIES // max(1, X.shape[1]))
    block_of_group = starts // rows_per_block
    is_first_of_block = np.diff(block_of_group) > 0
    for rows in np.split(rows_by_group, starts[1:][is_first_of_block]):
        block = X[rows] / unit
        scaled[rows] = _scale_block(block, codes[rows], tolerance, with_mean=with_mean)
    return scaled


def _scale_block(x: Numbers, codes: Indices, tolerance: float, *, with_mean: bool) -> Numbers:
    """Standardize rows that are sorted by group; a smaller relative deviation is 0."""
    _, first, group, sizes = np.unique(
        codes, return_index=True, return_inverse=True, return_counts=True
    )
    n_rows = len(x)
    averaging = sp.csr_array(
        (1.0 / sizes[group], np.arange(n_rows), np.append(first, n_rows)),
        shape=(len(sizes), n_rows),
    )
    centered = x - x[first][group]
    centered -= (averaging @ centered)[group]
    deviation = np.sqrt(averaging @ np.square(centered))
    magnitude = np.sqrt(averaging @ np.square(x))
    factor = np.zeros_like(deviation)
    np.divide(1.0, deviation, out=factor, where=deviation > tolerance * magnitude)
    if with_mean:
        x = centered
    return np.asarray(x * factor[group])


def scale_to_range_in_groups(X: Numbers, codes: Indices) -> Numbers:
    """Scale each column to the range from 0 to 1 inside each group; constant columns become 0.

    Parameters
    ----------
    X : ndarray of shape (m, p), float64 or float32
        Features.
    codes : ndarray of shape (m,)
        Number of the group of each row, from 0, in any order.

    Returns
    -------
    ndarray of shape (m, p)
        Scaled features.
    """
    rows_by_group = np.argsort(codes, kind="stable")
    starts = np.flatnonzero(np.diff(codes[rows_by_group], prepend=-1))
    sorted_X = X[rows_by_group]
    lowest = np.minimum.reduceat(sorted_X, starts)
    highest = np.maximum.reduceat(sorted_X, starts)
    half_range = highest / 2 - lowest / 2  # the range itself may overflow
    group = np.cumsum(np.diff(codes[rows_by_group], prepend=-1) != 0) - 1
    half_width = half_range[group]
    above_lowest = sorted_X / 2 - lowest[group] / 2
    scaled = np.zeros_like(X)
    scaled[rows_by_group] = np.divide(
        above_lowest, half_width, out=np.zeros_like(sorted_X), where=half_width > 0
    )
    return scaled


def scale_sparse_in_groups(X: MatrixLike, codes: Indices) -> Matrix:
    """Divide sparse columns by their standard deviation in the group, without centering.

    Zeros count in the standard deviation and stay zero. Inside a group the result differs from
    centered columns by a constant, which has no effect on a linear ranker.

    Parameters
    ----------
    X : sparse matrix of shape (m, p)
        Features.
    codes : ndarray of shape (m,)
        Number of the group of each row, from 0, in any order.

    Returns
    -------
    csr matrix of shape (m, p)
        Scaled features.
    """
    X = X.tocsr(copy=True)
    X.sum_duplicates()
    group_of_entry = np.repeat(codes, np.diff(X.indptr)).astype(np.int64)
    column_in_group = group_of_entry * X.shape[1] + X.indices
    _, cell = np.unique(column_in_group, return_inverse=True)  # cell: a column in a group
    n_cells = cell.max(initial=-1) + 1
    sizes = np.zeros(n_cells)
    sizes[cell] = np.bincount(codes)[group_of_entry]
    n_zeros = sizes - np.bincount(cell)
    values = X.data.astype(np.float64)
    largest = np.zeros(n_cells)
    np.maximum.at(largest, cell, np.abs(values))
    values /= np.where(largest > 0, largest, 1.0)[cell]
    mean = np.bincount(cell, values) / sizes
    sum_of_squares = np.bincount(cell, (values - mean[cell]) ** 2) + n_zeros * mean**2
    deviation = np.sqrt(sum_of_squares / sizes)
    is_constant = deviation <= ROUNDING_EPSILONS * float(np.finfo(X.dtype).eps)
    divisor = np.where(is_constant, np.inf, deviation)
    X.data = (values / divisor[cell]).astype(X.dtype)
    return X
