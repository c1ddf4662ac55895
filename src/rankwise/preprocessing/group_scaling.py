"""Scale features inside groups.

    z_ij = (x_ij − mean_g x_j) / sd_g x_j                    for item i of group g, or
    z_ij = (x_ij − min_g x_j) / (max_g x_j − min_g x_j)      and 0 where the denominator is 0

All statistics are computed inside the group, so the scaling of a held-out group does not depend on
other groups.
"""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp

from rankwise.arrays import Indices, Matrix, MatrixLike, Numbers
from rankwise.groups import Groups, encode_groups

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
    groups = encode_groups(codes, len(codes))
    # a power of two near the largest entry, so that squares neither overflow nor underflow
    largest = np.maximum(X.max(axis=0), -X.min(axis=0)).astype(np.float64)
    _, exponent = np.frexp(largest)
    unit = np.ldexp(1.0, exponent - 1)
    tolerance = ROUNDING_EPSILONS * float(np.finfo(X.dtype).eps)

    # scale whole groups, several at a time
    rows_per_block = max(1, BLOCK_ENTRIES // max(1, X.shape[1]))
    block_of_group = groups.starts // rows_per_block
    starts_new_block = np.diff(block_of_group) > 0
    block_starts = groups.starts[1:][starts_new_block]
    for rows in np.split(groups.order, block_starts):
        block = X[rows] / unit
        groups_of_block = _groups_of_block(groups, rows)
        scaled[rows] = _scale_block(block, groups_of_block, tolerance, with_mean=with_mean)
    return scaled


def _groups_of_block(groups: Groups, rows: Indices) -> Groups:
    """The groups of rows that are sorted by group, as `Groups.take` without a pass over all groups.

    There may be as many blocks as groups, so such a pass for each block takes quadratic time.
    """
    codes = groups.codes[rows]
    first_code = codes[0]
    last_code = codes[-1]
    return Groups(codes - first_code, groups.labels[first_code : last_code + 1])


def _scale_block(x: Numbers, groups: Groups, tolerance: float, *, with_mean: bool) -> Numbers:
    """Standardize rows that are sorted by group; a smaller relative deviation is 0."""
    # (x − group mean) / group deviation; columns constant in a group become 0
    n_rows = len(x)
    every_row = np.arange(n_rows)
    averaging = sp.csr_array(  # its row g takes the mean over the rows of group g
        (1.0 / groups.sizes[groups.codes], every_row, np.append(groups.starts, n_rows)),
        shape=(groups.n_groups, n_rows),
    )
    # first relative to the first row of the group: a large offset costs no digits
    centered = x - x[groups.starts][groups.codes]
    centered -= (averaging @ centered)[groups.codes]
    deviation = np.sqrt(averaging @ np.square(centered))
    magnitude = np.sqrt(averaging @ np.square(x))  # root mean square, to recognize rounding
    factor = np.zeros_like(deviation)
    np.divide(1.0, deviation, out=factor, where=deviation > tolerance * magnitude)
    if with_mean:
        x = centered
    return np.asarray(x * factor[groups.codes])


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
    # (x − lowest) / (highest − lowest), and 0 for constant columns
    groups = encode_groups(codes, len(codes))
    sorted_X = X[groups.order]
    lowest = np.minimum.reduceat(sorted_X, groups.starts)
    highest = np.maximum.reduceat(sorted_X, groups.starts)
    half_range = highest / 2 - lowest / 2  # the range itself may overflow
    half_above_lowest = X / 2 - (lowest / 2)[groups.codes]
    half_range_of_row = half_range[groups.codes]
    scaled: Numbers = np.zeros_like(X)
    np.divide(half_above_lowest, half_range_of_row, out=scaled, where=half_range_of_row > 0)
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
    # divide the entries of each column by its standard deviation in the group, zeros included
    X = X.tocsr(copy=True)
    X.sum_duplicates()
    n_columns = X.shape[1]
    entries_per_row = np.diff(X.indptr)
    group_of_entry = np.repeat(codes, entries_per_row).astype(np.int64)

    # a cell is a column in a group; cells without an entry have no number
    key = group_of_entry * n_columns + X.indices
    _, cell_of_entry = np.unique(key, return_inverse=True)
    n_cells = cell_of_entry.max(initial=-1) + 1
    cell_size = np.zeros(n_cells)
    cell_size[cell_of_entry] = np.bincount(codes)[group_of_entry]
    n_zeros = cell_size - np.bincount(cell_of_entry)

    # relative to the largest entry of the cell, so that squares neither overflow nor underflow
    values = X.data.astype(np.float64)
    largest = np.zeros(n_cells)
    np.maximum.at(largest, cell_of_entry, np.abs(values))
    values /= np.where(largest > 0, largest, 1.0)[cell_of_entry]

    mean = np.bincount(cell_of_entry, values) / cell_size
    squared_deviations = (values - mean[cell_of_entry]) ** 2
    sum_of_squares = np.bincount(cell_of_entry, squared_deviations) + n_zeros * mean**2
    deviation = np.sqrt(sum_of_squares / cell_size)
    is_constant = deviation <= ROUNDING_EPSILONS * float(np.finfo(X.dtype).eps)
    divisor = np.where(is_constant, np.inf, deviation)
    X.data = (values / divisor[cell_of_entry]).astype(X.dtype)
    return X
