"""The functions of `group_sums.pyx` in NumPy: the fallback, and a reference for tests."""

from __future__ import annotations

import numpy as np

from rankwise.arrays import Array, Indices, Numbers


def add_rows(
    X: Numbers,
    group: Indices,
    target: Array,
    sums: Array,
    moment: Array,
    row_weight: Array | None = None,
) -> None:
    """Add each row to the sums of its group, and ``Xᵀ target`` to the moment.

    Parameters
    ----------
    X : ndarray of shape (n_rows, n_columns), float32 or float64
        A block of rows, C-contiguous.
    group : ndarray of shape (n_rows,)
        The group of each row.
    target : ndarray of shape (n_rows,)
        The target of each row in the moment.
    sums : ndarray of shape (n_groups, n_columns)
        The rows of each group are added to it.
    moment : ndarray of shape (n_columns,)
        ``Xᵀ target`` is added to it.
    row_weight : ndarray of shape (n_rows,), optional
        Factor of each row in the sums; by default 1.

    Examples
    --------
    >>> sums, moment = np.zeros((2, 1)), np.zeros(1)
    >>> add_rows(np.array([[1.0], [2.0], [5.0]]), np.array([1, 0, 1]), np.ones(3), sums, moment)
    >>> sums.ravel(), moment
    (array([2., 6.]), array([8.]))
    """
    from scipy.sparse import csc_array  # imported here, because readers of files need no SciPy

    # add the weighted rows of each group to `sums`, and targetᵀ X to `moment`, both in place
    if row_weight is None:
        row_weight = np.ones(len(X))
    n_groups = len(sums)
    n_rows = len(X)
    entry_bounds = np.arange(n_rows + 1)  # one entry in each column: at the group of the row
    indicator = csc_array((row_weight, group, entry_bounds), shape=(n_groups, n_rows))
    sums += indicator @ X
    moment += target @ X


def scale_rows(
    X: Numbers,
    group: Indices,
    means: Array | None,
    scale: Array,
    out: Array,
    factor: Array | None = None,
) -> None:
    """Compute ``scale (x − mean)`` of each row, with the mean and the scale of its group.

    Parameters
    ----------
    X, group
        As in `add_rows`.
    means : ndarray of shape (n_groups, n_columns) or None
        None for no subtraction.
    scale : ndarray of shape (n_groups,)
        Factor of the rows of each group.
    out : ndarray of shape (n_rows, n_columns)
        The result is written to it; it may be X itself.
    factor : ndarray of shape (n_rows,), optional
        Additional factor of each row.
    """
    # write (X − mean of the group) · scale of the group · factor of the row to `out`
    row_scale = scale[group, None]
    if factor is not None:
        row_scale = row_scale * factor[:, None]
    if means is None:
        np.multiply(X, row_scale, out=out)
        return
    np.subtract(X, means[group], out=out)
    out *= row_scale
