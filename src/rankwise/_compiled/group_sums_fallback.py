"""The functions of `group_sums.pyx` in NumPy: the fallback, and a reference for tests."""

from __future__ import annotations

import numpy as np

from rankwise.arrays import Array, Indices, Numbers


def add_rows(
    X: Numbers,
    family: Indices,
    weight: Array,
    sums: Array,
    moment: Array,
    mass: Array | None = None,
) -> None:
    """Add each row to the sums of its family, and ``Xᵀ weight`` to the moment.

    Parameters
    ----------
    X : ndarray of shape (n_rows, n_columns), float32 or float64
        A block of rows, C-contiguous.
    family : ndarray of shape (n_rows,)
        The family of each row.
    weight : ndarray of shape (n_rows,)
        The weight of each row in the moment.
    sums : ndarray of shape (n_families, n_columns)
        The rows of each family are added to it.
    moment : ndarray of shape (n_columns,)
        ``Xᵀ weight`` is added to it.
    mass : ndarray of shape (n_rows,), optional
        Factor of each row in the sums; by default 1.

    Examples
    --------
    >>> sums, moment = np.zeros((2, 1)), np.zeros(1)
    >>> add_rows(np.array([[1.0], [2.0], [5.0]]), np.array([1, 0, 1]), np.ones(3), sums, moment)
    >>> sums.ravel(), moment
    (array([2., 6.]), array([8.]))
    """
    from scipy.sparse import csc_array  # imported here, because readers of files need no SciPy

    if mass is None:
        mass = np.ones(len(X))
    one_row_per_column = np.arange(len(X) + 1)
    indicator = csc_array((mass, family, one_row_per_column), shape=(len(sums), len(X)))
    sums += indicator @ X
    moment += weight @ X


def scale_rows(
    X: Numbers,
    family: Indices,
    means: Array | None,
    scale: Array,
    out: Array,
    factor: Array | None = None,
) -> None:
    """Compute ``scale (x − mean)`` of each row, with the mean and the scale of its family.

    Parameters
    ----------
    X, family
        As in `add_rows`.
    means : ndarray of shape (n_families, n_columns) or None
        None subtracts nothing.
    scale : ndarray of shape (n_families,)
        Factor of the rows of each family.
    out : ndarray of shape (n_rows, n_columns)
        The result is written to it; it may be X itself.
    factor : ndarray of shape (n_rows,), optional
        Additional factor of each row.
    """
    row_scale = scale[family, None]
    if factor is not None:
        row_scale = row_scale * factor[:, None]
    if means is None:
        np.multiply(X, row_scale, out=out)
        return
    np.subtract(X, means[family], out=out)
    out *= row_scale
