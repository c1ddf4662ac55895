"""Rows of a matrix: products that treat equal rows alike, and which rows are equal.

The way BLAS rounds a row of a product depends on the place of the row. So equal rows may get scores
that differ in the last digit, and a ranking would separate them.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from rankwise.arrays import Indices

FEW_COLUMNS = 8  # as fast without BLAS
BLOCK_ENTRIES = 2**15  # of a few arrays at a time: little beside any kernel matrix


def row_products(X: Any, W: NDArray[Any]) -> NDArray[Any]:
    """``X W``, in which equal rows of X give equal rows, to the last bit.

    For at most `FEW_COLUMNS` columns, and for sparse X, a row of the result depends on that row of
    X alone (and on whether X is stored by rows or by columns), not on the others: parts of X give
    parts of the result. For more columns BLAS is faster, and equal rows get the product of the
    first of them.

    Parameters
    ----------
    X : array or sparse matrix of shape (m, p)
        Rows.
    W : ndarray of shape (p,) or (p, k)
        Columns.
    """
    if sp.issparse(X):
        return np.asarray(_in_order(X) @ W)
    if W.ndim == 2 and W.shape[1] > FEW_COLUMNS:
        product = X @ W
        first = first_equal_rows(X)
        return product if first is None else np.asarray(product[first])
    by_columns = abs(X.strides[0]) < abs(X.strides[1])
    if len(X) == 1:  # einsum sums a lone row in another order
        twice = np.asarray(np.repeat(X, 2, axis=0), order="F" if by_columns else "C")
        return row_products(twice, W)[:1]
    if X.strides[0 if by_columns else 1] != X.itemsize:  # and one with gaps, too
        X = np.asarray(X, order="F" if by_columns else "C")
    if W.ndim == 1:
        return np.asarray(np.einsum("ij,j->i", X, W))
    columns = [np.einsum("ij,j->i", X, np.ascontiguousarray(w)) for w in W.T]
    return np.stack(columns, axis=1)


def first_equal_rows(X: Any, labels: Indices | None = None) -> Indices | None:
    """For each row the number of the first row that is equal to it; None if all rows differ.

    Only rows of the same label are equal, if labels are given. Rows are found by a hash of 64 bits
    and then compared. Objects that cannot be hashed are taken to differ.
    """
    if X.dtype == object:
        return _first_equal_objects(X)
    rng = np.random.default_rng(0)
    factors = rng.integers(0, 2**63, X.shape[1], np.uint64) * np.uint64(2) + np.uint64(1)
    key = _hash_sparse(X, factors) if sp.issparse(X) else _hash_dense(X, factors)
    if labels is not None:
        key += np.asarray(labels).astype(np.uint64) * np.uint64(0x9E3779B97F4A7C15)
    order = np.argsort(key, kind="stable")
    fresh = np.empty(len(key), dtype=bool)
    fresh[:1] = True
    np.not_equal(key[order[1:]], key[order[:-1]], out=fresh[1:])
    if fresh.all():
        return None
    first = np.empty(len(key), dtype=np.intp)
    first[order] = order[np.maximum.accumulate(np.where(fresh, np.arange(len(key)), 0))]
    later = np.flatnonzero(first != np.arange(len(key)))
    if labels is not None:
        later = later[labels[later] == labels[first[later]]]
    equal = later[_are_equal(X, later, first[later])]
    first_equal = np.arange(len(key))
    first_equal[equal] = first[equal]
    return first_equal


def _first_equal_objects(X: NDArray[Any]) -> Indices | None:
    rows: dict[Any, int] = {}
    try:
        first = np.array([rows.setdefault(tuple(row), k) for k, row in enumerate(X)], dtype=np.intp)
    except TypeError:
        return None
    return first if len(rows) < len(X) else None


def _hash_dense(X: NDArray[Any], factors: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Sums of the bits of each row times odd random numbers, modulo 2⁶⁴."""
    bits = np.uint32 if X.dtype == np.float32 else np.uint64
    key = np.empty(len(X), dtype=np.uint64)
    size = max(1, BLOCK_ENTRIES // max(1, X.shape[1]))
    for start in range(0, len(X), size):
        block = np.add(X[start : start + size], 0.0, order="C")  # −0.0 becomes 0.0
        block = (block if bits is np.uint32 else block.astype(np.float64, copy=False)).view(bits)
        mixed = block.astype(np.uint64)
        mixed ^= mixed >> np.uint64(29)  # whole numbers differ in their high bits only
        key[start : start + size] = mixed @ factors
    return key


def _hash_sparse(X: Any, factors: NDArray[np.uint64]) -> NDArray[np.uint64]:
    X = _in_order(X)
    values = np.asarray(X.data + 0.0, dtype=np.float64).view(np.uint64)
    mixed = (values ^ (values >> np.uint64(29))) * factors[X.indices]
    total = np.concatenate([np.zeros(1, dtype=np.uint64), np.cumsum(mixed, dtype=np.uint64)])
    return np.asarray(total[X.indptr[1:]] - total[X.indptr[:-1]])


def _in_order(X: Any) -> Any:
    """X with the entries of each row in the order of the columns, which is that of sums."""
    X = X.tocsr()
    if not X.has_canonical_format:
        X = X.copy()
        X.sum_duplicates()
    return X


def _are_equal(X: Any, rows: Indices, others: Indices) -> NDArray[np.bool_]:
    equal = np.ones(len(rows), dtype=bool)
    if not X.shape[1]:
        return equal
    width = X.nnz // X.shape[0] + 1 if sp.issparse(X) else X.shape[1]
    size = max(1, BLOCK_ENTRIES // width)
    for start in range(0, len(rows), size):
        here, there = X[rows[start : start + size]], X[others[start : start + size]]
        if sp.issparse(X):
            equal[start : start + size] = abs(here - there).max(axis=1).toarray().ravel() == 0
        else:
            equal[start : start + size] = (here == there).all(axis=1)
    return equal
