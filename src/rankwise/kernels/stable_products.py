"""Matrix products with bitwise equal results for equal rows, and a search for equal rows.

BLAS rounds a row of a product differently at different positions of the matrix. Without these
products, equal items could get scores that differ in the last digit, and a ranking would separate
them.
"""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from rankwise.arrays import Indices, Matrix

MAX_COLUMNS_WITHOUT_BLAS = 8  # up to this number of columns BLAS is not faster
BLOCK_ENTRIES = 2**15  # entries of a block, few compared to any kernel matrix
LABEL_FACTOR = np.uint64(0x9E3779B97F4A7C15)  # odd: mixes labels into hashes


def row_products(X: Matrix, W: NDArray[Any]) -> NDArray[Any]:
    """``X W``, with equal results for equal rows of X, to the last bit.

    For at most `MAX_COLUMNS_WITHOUT_BLAS` columns, and for sparse X, a row of the result depends on
    that row of X only (and on whether X is stored by rows or by columns): a subset of the rows has
    the same results. For more columns BLAS is faster, and equal rows get the product of the first
    of them.

    Parameters
    ----------
    X : array or sparse matrix of shape (m, p)
        Rows.
    W : ndarray of shape (p,) or (p, k)
        Columns.

    Returns
    -------
    ndarray of shape (m,) or (m, k)
        The product.
    """
    # X W, where equal rows of X give exactly equal rows of the product
    if sp.issparse(X):
        return np.asarray(_in_order(X) @ W)
    if W.ndim == 2 and W.shape[1] > MAX_COLUMNS_WITHOUT_BLAS:
        product: NDArray[Any] = X @ W
        first_equal_row = first_equal_rows(X)
        if first_equal_row is None:
            return product
        return np.asarray(product[first_equal_row])

    # einsum adds up the entries of all rows in the same order if these are stored without gaps
    row_stride, column_stride = X.strides
    order: Literal["C", "F"] = "C"
    smallest_stride = column_stride
    if abs(row_stride) < abs(column_stride):  # stored by columns
        order = "F"
        smallest_stride = row_stride
    if len(X) == 1:  # einsum sums a single row in another order
        row_twice = np.asarray(np.repeat(X, 2, axis=0), order=order)
        return row_products(row_twice, W)[:1]
    if smallest_stride != X.itemsize:  # gaps between entries
        X = np.asarray(X, order=order)
    if W.ndim == 1:
        return np.asarray(np.einsum("ij,j->i", X, W))
    columns = [np.einsum("ij,j->i", X, np.ascontiguousarray(w)) for w in W.T]
    return np.stack(columns, axis=1)


def first_equal_rows(X: Matrix, labels: Indices | None = None) -> Indices | None:
    """For each row the number of the first row that is equal to it.

    Candidates have equal hashes of 64 bits; then they are compared.

    Parameters
    ----------
    X : array or sparse matrix of shape (m, p)
        Rows; of objects, if they cannot be hashed, all are taken to differ.
    labels : ndarray of int, shape (m,), optional
        Only rows with the same label count as equal.

    Returns
    -------
    ndarray of int, shape (m,), or None
        None if all rows differ.
    """
    if X.dtype == object:
        return _first_equal_objects(X)
    # compare rows of equal hash only; `labels`, if given, must be equal, too
    rng = np.random.default_rng(0)
    # odd, so that different values of a column have different products modulo 2⁶⁴
    odd_factors = rng.integers(0, 2**63, X.shape[1], np.uint64) * np.uint64(2) + np.uint64(1)
    if sp.issparse(X):
        hashes = _hash_sparse(X, odd_factors)
    else:
        hashes = _hash_dense(X, odd_factors)
    if labels is not None:
        hashes += np.asarray(labels).astype(np.uint64) * LABEL_FACTOR
    row_number = np.arange(len(hashes))
    first_equal_hash = _first_equal_values(hashes)
    if first_equal_hash is None:
        return None
    candidates = np.flatnonzero(first_equal_hash != row_number)
    if labels is not None:
        has_same_label = labels[candidates] == labels[first_equal_hash[candidates]]
        candidates = candidates[has_same_label]
    is_equal = _are_equal(X, candidates, first_equal_hash[candidates])
    duplicates = candidates[is_equal]
    first_equal_row = row_number
    first_equal_row[duplicates] = first_equal_hash[duplicates]
    return first_equal_row


def _first_equal_values(values: NDArray[np.uint64]) -> Indices | None:
    """For each value the number of the first value that is equal to it; None if all differ."""
    # for each value the position of the first equal one; None if all differ
    order = np.argsort(values, kind="stable")
    starts_run = np.empty(len(values), dtype=bool)  # of equal values in sorted order
    starts_run[:1] = True
    np.not_equal(values[order[1:]], values[order[:-1]], out=starts_run[1:])
    if starts_run.all():
        return None
    position = np.arange(len(values))
    start_of_run = np.maximum.accumulate(np.where(starts_run, position, 0))
    first_equal = np.empty(len(values), dtype=np.intp)
    first_equal[order] = order[start_of_run]
    return first_equal


def _first_equal_objects(X: NDArray[Any]) -> Indices | None:
    """For each row of objects the first equal row; None if all differ or cannot be hashed."""
    first_row_of_objects: dict[Any, int] = {}
    first_equal_row = np.empty(len(X), dtype=np.intp)
    try:
        for row, objects in enumerate(X):
            first_equal_row[row] = first_row_of_objects.setdefault(tuple(objects), row)
    except TypeError:
        return None
    if len(first_row_of_objects) == len(X):
        return None
    return first_equal_row


def _hash_dense(X: NDArray[Any], factors: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Sums of the bits of each row times odd random numbers, modulo 2⁶⁴."""
    n_rows, n_columns = X.shape
    hashes = np.empty(n_rows, dtype=np.uint64)
    n_rows_of_block = max(1, BLOCK_ENTRIES // max(1, n_columns))
    for start in range(0, n_rows, n_rows_of_block):
        rows = slice(start, start + n_rows_of_block)
        block = np.add(X[rows], 0.0, order="C")  # −0.0 becomes 0.0
        if X.dtype == np.float32:
            bits = block.view(np.uint32).astype(np.uint64)
        else:
            bits = block.astype(np.float64, copy=False).view(np.uint64)
        bits ^= bits >> np.uint64(29)  # whole numbers differ in their high bits only
        hashes[rows] = bits @ factors
    return hashes


def _hash_sparse(X: Matrix, factors: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """As `_hash_dense`: zeros contribute nothing."""
    X = _in_order(X)
    bits = np.asarray(X.data + 0.0, dtype=np.float64).view(np.uint64)
    bits = bits ^ (bits >> np.uint64(29))  # as in `_hash_dense`
    products = bits * factors[X.indices]
    zero = np.zeros(1, dtype=np.uint64)
    sum_before = np.concatenate([zero, np.cumsum(products, dtype=np.uint64)])  # modulo 2⁶⁴
    row_start = X.indptr[:-1]
    row_stop = X.indptr[1:]
    return np.asarray(sum_before[row_stop] - sum_before[row_start])


def _in_order(X: Matrix) -> Matrix:
    """X with the entries of each row sorted by column, the order of summation in products."""
    # entries of each row in the order of the columns, each once
    X = X.tocsr()
    if not X.has_canonical_format:
        X = X.copy()
        X.sum_duplicates()
    return X


def _are_equal(X: Matrix, rows: Indices, earlier_rows: Indices) -> NDArray[np.bool_]:
    """Whether each of these rows is equal to the earlier row in the same position."""
    # whether row rows[k] of X is equal to row earlier_rows[k]
    is_equal = np.ones(len(rows), dtype=bool)
    n_rows, n_columns = X.shape
    if n_columns == 0:
        return is_equal
    is_sparse = sp.issparse(X)
    entries_per_row = n_columns
    if is_sparse:
        entries_per_row = X.nnz // n_rows + 1
    n_rows_of_chunk = max(1, BLOCK_ENTRIES // entries_per_row)
    for start in range(0, len(rows), n_rows_of_chunk):
        chunk = slice(start, start + n_rows_of_chunk)
        block = X[rows[chunk]]
        earlier_block = X[earlier_rows[chunk]]
        if is_sparse:
            largest_difference = abs(block - earlier_block).max(axis=1).toarray().ravel()
            is_equal[chunk] = largest_difference == 0
        else:
            is_equal[chunk] = (block == earlier_block).all(axis=1)
    return is_equal
