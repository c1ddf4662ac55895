"""The functions of `group_sums.pyx` in NumPy: the fallback, and a reference for tests."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankwise.arrays import Array, Indices


def add_rows(
    X: NDArray[Any],
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
        Added to.
    moment : ndarray of shape (n_columns,)
        Added to.
    mass : ndarray of shape (n_rows,), optional
        What each row is multiplied by in the sums; 1 if not given.

    Examples
    --------
    >>> sums, moment = np.zeros((2, 1)), np.zeros(1)
    >>> add_rows(np.array([[1.0], [2.0], [5.0]]), np.array([1, 0, 1]), np.ones(3), sums, moment)
    >>> sums.ravel(), moment
    (array([2., 6.]), array([8.]))
    """
    from scipy.sparse import csc_array  # late: readers of files do without SciPy

    mass = np.ones(len(X)) if mass is None else mass
    indicator = (mass, family, np.arange(len(X) + 1))
    sums += csc_array(indicator, shape=(len(sums), len(X))) @ X
    moment += weight @ X


def scale_rows(
    X: NDArray[Any],
    family: Indices,
    means: Array | None,
    scale: Array,
    out: Array,
    factor: Array | None = None,
) -> None:
    """Write ``scale (x − mean)`` of each row, by the mean and the scale of its family.

    Parameters
    ----------
    X, family
        As in `add_rows`.
    means : ndarray of shape (n_families, n_columns) or None
        None leaves the rows where they are.
    scale : ndarray of shape (n_families,)
        Factor of the rows of each family.
    out : ndarray of shape (n_rows, n_columns)
        Written to; may be X itself.
    factor : ndarray of shape (n_rows,), optional
        A further factor of each row.
    """
    by = scale[family, None]
    if factor is not None:
        by = by * factor[:, None]
    if means is None:
        np.multiply(X, by, out=out)
        return
    np.subtract(X, means[family], out=out)
    out *= by
