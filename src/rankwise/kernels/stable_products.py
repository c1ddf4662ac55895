"""Matrix products in which equal rows have equal results, and a search for equal rows.

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
    if sp.issparse(X):
        return np.asarray(_in_order(X) @ W)
    if W.ndim == 2 and W.shape[1] > MAX_COLUMNS_WITHOUT_BLAS:
        product: NDArray[Any] = X @ W
        first = first_equal_rows(X)
        if first is None:
            return product
        return np.asarray(product[first])
    order: Literal["C", "F"] = "C"
    smallest_stride = X.strides[1]
    if abs(X.strides[0]) < abs(X.strides[1]):
        order = "F"
        smallest_stride = X.strides[0]
    if len(X) == 1:  # einsum sums a single row in another order
        twice = np.asarray(np.repeat(X, 2, axis=0), order=order)
        return row_products(twice, W)[:1]
    if smallest_stride != X.itemsize:  # and rows that are not contiguous, too
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
    rng = np.random.default_rng(0)
    odd_factors = rng.integers(0, 2**63, X.shape[1], np.uint64) * np.uint64(2) + np.uint64(1)
    if sp.issparse(X):
        hashes = _hash_sparse(X, odd_factors)
    else:
        hashes = _hash_dense(X, odd_factors)
    if labels is not None:
        hashes += np.asarray(labels).astype(np.uint64) * LABEL_FACTOR
    first = _first_equal_values(hashes)
    if first is None:
        return None
    later = np.flatnonzero(first != np.arange(len(first)))
    if labels is not None:
        later = later[labels[later] == labels[first[later]]]
    equal = later[_are_equal(X, later, first[later])]
    first_equal = np.arange(len(first))
    first_equal[equal] = first[equal]
    return first_equal


def _first_equal_values(values: NDArray[np.uint64]) -> Indices | None:
    """For each value the number of the first value that is equal to it; None if all differ."""
    order = np.argsort(values, kind="stable")
    is_new = np.empty(len(values), dtype=bool)
    is_new[:1] = True
    np.not_equal(values[order[1:]], values[order[:-1]], out=is_new[1:])
    if is_new.all():
        return None
    position_of_first = np.maximum.accumulate(np.where(is_new, np.arange(len(values)), 0))
    first = np.empty(len(values), dtype=np.intp)
    first[order] = order[position_of_first]
    return first


def _first_equal_objects(X: NDArray[Any]) -> Indices | None:
    first_rows: dict[Any, int] = {}
    first = np.empty(len(X), dtype=np.intp)
    try:
        for number, row in enumerate(X):
            first[number] = first_rows.setdefault(tuple(row), number)
    except TypeError:
        return None
    if len(first_rows) == len(X):
        return None
    return first


def _hash_dense(X: NDArray[Any], factors: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Sums of the bits of each row times odd random numbers, modulo 2⁶⁴."""
    hashes = np.empty(len(X), dtype=np.uint64)
    size = max(1, BLOCK_ENTRIES // max(1, X.shape[1]))
    for start in range(0, len(X), size):
        rows = slice(start, start + size)
        block = np.add(X[rows], 0.0, order="C")  # −0.0 becomes 0.0
        if X.dtype == np.float32:
            bits = block.view(np.uint32).astype(np.uint64)
        else:
            bits = block.astype(np.float64, copy=False).view(np.uint64)
        bits ^= bits >> np.uint64(29)  # whole numbers differ in their high bits only
        hashes[rows] = bits @ factors
    return hashes


def _hash_sparse(X: Matrix, factors: NDArray[np.uint64]) -> NDArray[np.uint64]:
    X = _in_order(X)
    bits = np.asarray(X.data + 0.0, dtype=np.float64).view(np.uint64)
    products = (bits ^ (bits >> np.uint64(29))) * factors[X.indices]
    sums = np.concatenate([np.zeros(1, dtype=np.uint64), np.cumsum(products, dtype=np.uint64)])
    return np.asarray(sums[X.indptr[1:]] - sums[X.indptr[:-1]])


def _in_order(X: Matrix) -> Matrix:
    """X with the entries of each row in the order of the columns, in which products are summed."""
    X = X.tocsr()
    if not X.has_canonical_format:
        X = X.copy()
        X.sum_duplicates()
    return X


def _are_equal(X: Matrix, rows: Indices, earlier_rows: Indices) -> NDArray[np.bool_]:
    """Whether each of these rows is equal to the earlier row in the same position."""
    equal = np.ones(len(rows), dtype=bool)
    if not X.shape[1]:
        return equal
    is_sparse = sp.issparse(X)
    entries_per_row = X.shape[1]
    if is_sparse:
        entries_per_row = X.nnz // X.shape[0] + 1
    size = max(1, BLOCK_ENTRIES // entries_per_row)
    for start in range(0, len(rows), size):
        chunk = slice(start, start + size)
        first_block = X[rows[chunk]]
        second_block = X[earlier_rows[chunk]]
        if is_sparse:
            largest = abs(first_block - second_block).max(axis=1).toarray().ravel()
            equal[chunk] = largest == 0
        else:
            equal[chunk] = (first_block == second_block).all(axis=1)
    return equal
